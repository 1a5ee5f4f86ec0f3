"""A workspace as one grows in a year: the files of an agent called Fenn, in tests/data/workspace."""

from __future__ import annotations

import re
import shutil
from datetime import date, timedelta
from pathlib import Path

_DATA = Path(__file__).parent / "data" / "workspace"
FOLDER = "initiatives/adaptive-context-injection"


def grown(root: Path, today: date | None = None) -> Path:
    """Daily notes are named by how many days ago they were written, and get their dates here."""
    shutil.copytree(_DATA, root)
    day = today or date.today()  # noqa: DTZ011 - as the machine that runs the command sees it
    for note in (root / "memory").iterdir():
        ago = re.search(r"\d+", note.name)
        assert ago
        note.rename(note.with_name(f"{day - timedelta(int(ago[0]))}.md"))
    return root


def text(name: str) -> str:
    return (_DATA / name).read_text()

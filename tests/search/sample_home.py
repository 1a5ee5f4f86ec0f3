"""The sample home, played once for all tests of a run, however many processes they are spread over."""

from __future__ import annotations

import fcntl
import shutil
from datetime import datetime
from pathlib import Path

import pytest

from tacit import sample
from tacit.cli.commands import demo
from tacit.health.access import trust
from tacit.home.layout import Home

QUESTIONS = Path(__file__).parents[1] / "data" / "questions.jsonl"


def copy_of_sample(factory: pytest.TempPathFactory) -> tuple[Path, datetime]:
    """A copy of its own, and the moment at which the story ends."""
    base = factory.getbasetemp()
    shared = (base.parent if base.name.startswith("popen-") else base) / "sample"
    shared.mkdir(exist_ok=True)
    ended = shared / "ended"
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ended.exists():
            clock = demo.StoryClock(sample.conversations()[0].started)
            demo.build(shared / "home", clock, quiet=True)
            ended.write_text(clock.moment.isoformat())
    root = factory.mktemp("sample") / "home"
    shutil.copytree(shared / "home", root, symlinks=True)
    trust(Home(root))
    return root, datetime.fromisoformat(ended.read_text())

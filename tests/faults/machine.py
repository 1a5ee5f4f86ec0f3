"""What this machine allows, and the surroundings every process of a test runs in."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
MEMORY = Path("/dev/shm")  # acknowledgements go here: no fault of ours reaches it


class Impossible(Exception):
    """This machine cannot run the part; the text says what is missing."""


def need_program(name: str, hint: str = "") -> str:
    # The sbin folders hold mkfs and losetup, and are often not on a user's PATH.
    found = shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
    if found is None:
        raise Impossible(f"{name} is not installed" + (f" ({hint})" if hint else ""))
    return found


def need_root() -> None:
    if os.geteuid() != 0:
        raise Impossible("mounting needs root")


def environment(nobody: Path) -> dict[str, str]:
    """A person without home, settings or identity. No bytecode is written, so that calls can be counted."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(nobody),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C.UTF-8",
    }


@contextmanager
def workshop(where: str | None = None) -> Iterator[Path]:
    """A folder that is gone afterwards, in a place where files are really written unless told otherwise."""
    folder = Path(tempfile.mkdtemp(prefix="tacit-faults-", dir=where))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def acknowledgements() -> Iterator[Path]:
    """An empty file that no fault reaches, for what was acknowledged."""
    with workshop(str(MEMORY) if MEMORY.is_dir() else None) as folder:
        file = folder / "acks"
        file.touch()
        yield file

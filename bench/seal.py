"""Ending a session (seal and commit) against git's own add and commit with the same durability."""

from __future__ import annotations

import os
import subprocess
from itertools import islice
from pathlib import Path
from time import perf_counter

import tacit
from bench import homes
from bench.pairs import Measured, Timed, paired

# The settings that tacit runs git with: sync everything, run nothing else.
_GIT_SETTINGS = (
    "core.fsync=all",
    "core.fsyncMethod=fsync",
    "core.hooksPath=/dev/null",
    "gc.auto=0",
    "maintenance.auto=false",
    "user.name=bench",
    "user.email=bench@localhost",
)
_GIT = ("git", *(part for setting in _GIT_SETTINGS for part in ("-c", setting)))


def measure(folder: Path) -> list[Measured]:
    earlier = homes.with_transcripts(1000)
    memory = tacit.open(homes.copy(earlier, folder / "seal"))
    bare = homes.copy(earlier, folder / "seal-bare")
    what = "seal: `session.end()`, 20 messages, 1,000 transcripts before it"
    against = "durable `git add` + `git commit`"
    return [
        paired(
            what, against, _time_git(bare, memory), _time_session_end(memory), samples=100, aim=1.5, warm=3
        )
    ]


def _time_session_end(memory: tacit.Memory) -> Timed:
    def once() -> float:
        session = talk(memory, 20)
        began = perf_counter()
        sealed = session.end()
        took = perf_counter() - began
        assert sealed is not None
        assert sealed.commit is not None, sealed.waiting
        return took

    return once


def talk(memory: tacit.Memory, messages: int) -> tacit.Session:
    """An open session with this many messages of 400 characters."""
    session = memory.session(channel="bench", model="none")
    for number, text in enumerate(islice(homes.words(400), messages)):
        session.message("agent" if number % 2 else "user", text)
    return session


def _time_git(root: Path, memory: tacit.Memory) -> Timed:
    """Commit the same bytes under another name of the same depth; on disk before the clock starts."""
    session = talk(memory, 20)
    path, data = str(session.path), (memory.home.root / str(session.path)).read_bytes()
    session.end()
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    number = 0

    def once() -> float:
        nonlocal number
        number += 1
        name = f"{path.removesuffix('.md')}-{number}.md"
        _write_durably(root / name, data + f"{number}\n".encode())
        began = perf_counter()
        add_and_commit(root, name)
        return perf_counter() - began

    return once


def add_and_commit(root: Path, *names: str) -> None:
    """git alone; its settings sync its files, and we sync its directories."""
    for command in (("add", "--", *names), ("commit", "--quiet", "--no-verify", "--message=bench")):
        subprocess.run([*_GIT, *command], cwd=root, check=True)
    for folder in ("refs/heads", "objects", ""):
        _sync_folder(root / ".git" / folder)


def _write_durably(file: Path, data: bytes) -> None:
    with file.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    _sync_folder(file.parent)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(fd)
    os.close(fd)

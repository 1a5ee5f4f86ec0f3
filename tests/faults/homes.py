"""Homes to break: real ones, with a past, and with a person's own git work in progress beside ours."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import tacit
from tests.faults.machine import environment
from tests.faults.said import NOTE, note_of, text_of

STAGED_NOTE = "knowledge/people/mine.md"
_PERSON = (
    "-c",
    "user.name=Person",
    "-c",
    "user.email=person@example.org",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "safe.directory=*",
)


@dataclass(frozen=True, slots=True)
class Own:
    """What belongs to the person: their files, what they staged, what they committed."""

    files: Mapping[str, bytes]
    index: bytes
    committed: bytes
    staged: frozenset[str]


def git(
    home: Path, *arguments: str, given: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """git as the person runs it, hooks left out."""
    command = ["git", "-C", str(home), *_PERSON, *arguments]
    return subprocess.run(command, capture_output=True, env={**environment(home.parent), **(given or {})})


def must(home: Path, *arguments: str) -> bytes:
    done = git(home, *arguments)
    if done.returncode:
        raise RuntimeError(f"git {arguments[0]}: {done.stderr.decode('utf-8', 'replace')}")
    return done.stdout


def furnish(home: Path) -> None:
    """A home with a past conversation and a note, and the person's own work half done."""
    memory = tacit.init(home)
    with memory.session(session_id="past", channel="test") as session:
        session.message("user", text_of("past.question"))
        session.message("agent", text_of("past.answer"))
    memory.write(NOTE, note_of(1), replacing=None)
    memory.commit()
    start_own_work(home)


def fill(home: Path) -> None:
    """So many loose objects that each pass of work packs them. One of git's 256 folders tells for all, and
    these belong to nothing, so they stay there. Synced: a power cut must not make them look like damage."""
    folder = home / ".git/objects/17"
    folder.mkdir(exist_ok=True)
    for name, data in islice(_objects_in("17"), 40):
        with (folder / name).open("wb") as file:
            file.write(zlib.compress(data))
            file.flush()
            os.fsync(file.fileno())
    for place in (folder, folder.parent):
        fd = os.open(place, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)


def _objects_in(folder: str) -> Iterator[tuple[str, bytes]]:
    for number in count():
        data = b"blob 8\0%08d" % number
        name = hashlib.sha1(data, usedforsecurity=False).hexdigest()
        if name.startswith(folder):
            yield name[2:], data


def start_own_work(home: Path) -> None:
    _write(home, {"own/plan.txt": "plan\n", "own/both.txt": "one\n"})
    must(home, "add", "own")
    must(home, "commit", "-q", "-m", "my own")
    _write(home, {"own/both.txt": "two\n", "own/staged.txt": "staged\n", STAGED_NOTE: "# Mine\n\nstaged\n"})
    must(home, "add", "own", STAGED_NOTE)
    _write(home, {"own/plan.txt": "plan, edited\n", "own/both.txt": "three\n", "own/new.txt": "untracked\n"})


def _write(home: Path, texts: Mapping[str, str]) -> None:
    for path, text in texts.items():
        file = home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def own_work(home: Path) -> Own:
    paths = ["own", STAGED_NOTE]
    files = [home / STAGED_NOTE, *sorted((home / "own").iterdir())]
    return Own(
        files={str(file.relative_to(home)): file.read_bytes() for file in files},
        index=must(home, "ls-files", "--stage", "-z", "--", *paths),
        committed=must(home, "ls-tree", "-r", "-z", "HEAD", "--", *paths),
        staged=frozenset(staged(home)),
    )


def staged(home: Path) -> set[str]:
    out = must(home, "diff-index", "--cached", "--name-only", "-z", "HEAD", "--")
    return {os.fsdecode(path) for path in out.split(b"\0") if path}

"""Lines of notes that carry a mark: what tacit wrote into them, also where somebody changed it since."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from tacit.errors import StoreError
from tacit.store.files import Tree
from tacit.store.git import Git
from tacit.store.home import CONVERSATIONS, NOTE_FOLDERS, Home
from tacit.text import marks, notes
from tacit.text.marks import Mark

REBUILT = "extract: "  # how the subject of a commit begins that brings what was learned anew
FOLDERS = tuple(folder for folder in NOTE_FOLDERS if folder != "attachments")
ARCHIVED = "archive/conversations"  # where transcripts go that are old


@dataclass(frozen=True, slots=True)
class Marked:
    path: str
    number: int  # of the line, from 1
    text: str  # without its mark
    mark: Mark
    is_edited: bool  # somebody changed it: it counts as that person's


def marked_in(text: str, path: str) -> Iterator[Marked]:
    if "-->" not in text:
        return
    for number, line in enumerate(text.split("\n"), 1):
        said, mark = marks.read(line)
        if mark is not None:
            yield Marked(path, number, said, mark, is_edited=not marks.is_generated(line))


def marked_lines(home: Home) -> Iterator[Marked]:
    """Of all notes and drafts, in the order of their paths."""
    tree = Tree(home.root)
    for path in note_paths(home):
        with suppress(StoreError, OSError):
            yield from marked_in(notes.decode(tree.read(path)), path)


def note_paths(home: Home) -> Iterator[str]:
    """Notes and drafts. A transcript is neither, wherever it stands."""
    for path in Tree(home.root).files(*FOLDERS):
        if path.endswith(".md") and not path.startswith(f"{ARCHIVED}/"):
            yield path


def transcript_at(home: Home, path: str) -> str | None:
    """Where a transcript stands now; None: it is gone."""
    places = (path, f"{ARCHIVED}/{path.removeprefix(f'{CONVERSATIONS}/')}")
    return next((place for place in places if (home.root / place).is_file()), None)


class Removed(NamedTuple):
    path: str
    text: str  # without its mark
    mark: Mark
    at: datetime  # of the commit


def removed(git: Git, commit: str) -> Iterator[Removed]:
    """Lines of tacit's that a commit up to this one took out of a note. What an adopted rebuild took out is
    not meant, nor what went when that was undone."""
    form = ("--format=%x01%cI %s", "-p", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv")
    told = git.run("log", *form, "--no-prefix", commit, "--", "knowledge", timeout=600)
    is_rebuilt, at, path = False, datetime.min.replace(tzinfo=UTC), ""
    for line in told.decode("utf-8", "surrogateescape").split("\n"):
        if line.startswith("\x01"):
            when, _, subject = line[1:].partition(" ")
            is_rebuilt, at = REBUILT in subject, datetime.fromisoformat(when)
        elif line.startswith("--- "):
            path = line[4:].rstrip("\t")
        elif line.startswith("-") and not is_rebuilt and marks.is_generated(line[1:]):
            text, mark = marks.read(line[1:])
            assert mark is not None
            yield Removed(path, text, mark, at)


def without(data: bytes, path: str, is_meant: Callable[[Marked], bool]) -> bytes | None:
    """The note without the lines that are meant, all other bytes as they were. None: nothing is left of a
    note that tacit made."""
    text = data.decode("utf-8", "surrogateescape")
    gone = {one.number for one in marked_in(text, path) if is_meant(one)}
    if not gone:
        return data
    lines = text.split("\n")
    left = "\n".join(line for number, line in enumerate(lines, 1) if number not in gone)
    return None if _is_empty(left, path) else left.encode("utf-8", "surrogateescape")


def _is_empty(text: str, path: str) -> bool:
    note = notes.parse(text, path)
    words = (line.strip() for line in note.body.split("\n"))
    return note.fields.get("generated") is True and all(not line or line.startswith("#") for line in words)

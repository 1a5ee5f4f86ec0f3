"""Lines of notes with a provenance comment: tacit wrote them, and people may have edited them since."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from tacit.errors import StoreError
from tacit.git.repository import Git
from tacit.home.files import Tree
from tacit.home.layout import CONVERSATIONS, NOTE_FOLDERS, Home
from tacit.markdown import notes
from tacit.provenance import comment
from tacit.provenance.comment import Provenance

REBUILD_SUBJECT = "extract: "  # prefix of the commit subjects of a rebuild
FOLDERS = tuple(folder for folder in NOTE_FOLDERS if folder != "attachments")
ARCHIVED_CONVERSATIONS = "archive/conversations"  # old transcripts


@dataclass(frozen=True, slots=True)
class GeneratedLine:
    path: str
    number: int  # of the line, from 1
    text: str  # without its provenance comment
    mark: Provenance
    is_edited: bool  # a person edited it, so it counts as theirs


def find_generated(text: str, path: str) -> Iterator[GeneratedLine]:
    if "-->" not in text:
        return
    for number, line in enumerate(text.split("\n"), 1):
        text_only, mark = comment.read(line)
        if mark is not None:
            yield GeneratedLine(path, number, text_only, mark, is_edited=not comment.is_generated(line))


def read_generated(home: Home) -> Iterator[GeneratedLine]:
    """The lines of all notes and drafts, ordered by path."""
    tree = Tree(home.root)
    for path in note_paths(home):
        with suppress(StoreError, OSError):
            yield from find_generated(notes.decode(tree.read(path)), path)


def note_paths(home: Home) -> Iterator[str]:
    """Notes and drafts, without archived transcripts."""
    for path in Tree(home.root).files(*FOLDERS):
        if path.endswith(".md") and not path.startswith(f"{ARCHIVED_CONVERSATIONS}/"):
            yield path


def locate_transcript(home: Home, path: str) -> str | None:
    """The current path of a transcript; None if it is gone."""
    places = (path, f"{ARCHIVED_CONVERSATIONS}/{path.removeprefix(f'{CONVERSATIONS}/')}")
    return next((place for place in places if (home.root / place).is_file()), None)


class RemovedLine(NamedTuple):
    path: str
    text: str  # without its provenance comment
    mark: Provenance
    at: datetime  # of the commit


def find_removed(git: Git, commit: str) -> Iterator[RemovedLine]:
    """Generated lines that a commit up to this one removed from a note, except those removed by a merged
    rebuild or by reverting one."""
    log_options = ("--format=%x01%cI %s", "-p", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv")
    output = git.run("log", *log_options, "--no-prefix", commit, "--", "knowledge", timeout=600)
    is_rebuilt, moment, path = False, datetime.min.replace(tzinfo=UTC), ""
    for line in output.decode("utf-8", "surrogateescape").split("\n"):
        if line.startswith("\x01"):
            when, _, subject = line[1:].partition(" ")
            is_rebuilt, moment = REBUILD_SUBJECT in subject, datetime.fromisoformat(when)
        elif line.startswith("--- "):
            path = line[4:].rstrip("\t")
        elif line.startswith("-") and not is_rebuilt and comment.is_generated(line[1:]):
            text, mark = comment.read(line[1:])
            assert mark is not None
            yield RemovedLine(path, text, mark, moment)


def remove_matching(data: bytes, path: str, is_meant: Callable[[GeneratedLine], bool]) -> bytes | None:
    """The note without the matching lines, all other bytes unchanged. None if tacit made the note and nothing
    is left."""
    text = data.decode("utf-8", "surrogateescape")
    gone = {line.number for line in find_generated(text, path) if is_meant(line)}
    if not gone:
        return data
    lines = text.split("\n")
    remaining = "\n".join(line for number, line in enumerate(lines, 1) if number not in gone)
    return None if _is_empty(remaining, path) else remaining.encode("utf-8", "surrogateescape")


def _is_empty(text: str, path: str) -> bool:
    note = notes.parse(text, path)
    words = (line.strip() for line in note.body.split("\n"))
    return note.fields.get("generated") is True and all(not line or line.startswith("#") for line in words)

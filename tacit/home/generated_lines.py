"""Lines of notes with a provenance comment: tacit wrote them, and people may have edited them since."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from tacit.errors import StoreError
from tacit.home.files import Tree
from tacit.home.layout import CONVERSATIONS, NOTE_FOLDERS, Home
from tacit.markdown import comment, notes
from tacit.markdown.comment import Provenance

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


def original_path(path: str) -> str:
    """The path that an archived transcript had before; its sources are named by it."""
    return path.replace(f"{ARCHIVED_CONVERSATIONS}/", f"{CONVERSATIONS}/", 1)


def locate_transcript(home: Home, path: str) -> str | None:
    """The current path of a transcript; None if it is gone."""
    places = (path, f"{ARCHIVED_CONVERSATIONS}/{path.removeprefix(f'{CONVERSATIONS}/')}")
    return next((place for place in places if (home.root / place).is_file()), None)

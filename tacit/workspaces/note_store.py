"""Reading and writing the notes of a home, each write only if the note is still what the writer read."""

from __future__ import annotations

from tacit.errors import UsageError
from tacit.git.conflicts import NoteTree
from tacit.git.index import require_checked_out
from tacit.home import files
from tacit.home.layout import NOTE_FOLDERS, Home
from tacit.markdown import notes
from tacit.markdown.notes import Note
from tacit.workspaces.folders import Workspaces


class NoteStore:
    def __init__(self, home: Home, workspaces: Workspaces) -> None:
        self._home, self._workspaces = home, workspaces

    def read(self, path: str) -> Note:
        """A note of the home, or a file of a workspace."""
        return notes.parse(notes.decode(self._workspaces.read(path)), path)

    def write(self, path: str, text: str, *, replacing: Note | None) -> Note:
        """Write a note if it is still what the writer read (`replacing`; None: there was none)."""
        path = files.Tree(self._home.root).resolve(path)
        if files.split_safe_path(path)[0] not in NOTE_FOLDERS:
            places = ", ".join(f"{folder}/" for folder in NOTE_FOLDERS)
            raise UsageError(f"{path} is not a note. Notes are in {places}; transcripts are never edited.")
        expected = None if replacing is None else files.digest(notes.encode(replacing.text))
        with files.hold_lock(self._home.lock):
            if replacing is None:
                require_checked_out(self._home.root, "/".join(files.split_safe_path(path)))
            NoteTree(self._home.root).write(path, notes.encode(text), expected)
        return notes.parse(text, path)


def read_note(home: Home, path: str) -> bytes | None:
    """None if there is no such note. Raises if it is in conflict: it must not be read or changed then."""
    try:
        return NoteTree(home.root).read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None

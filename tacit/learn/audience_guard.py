"""Keep learned lines out of notes that more people can read than the conversation they come from.

What was said in the owner's own sessions is private. Reference notes and procedures are for groups unless
they say otherwise, so a line from a private session goes into a private note beside the group one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from tacit.learn.model import Change
from tacit.markdown import notes
from tacit.markdown.model import Note
from tacit.search.documents import audience_of
from tacit.sessions.profiles import SessionProfiles

_OWNER_SUFFIX = "-owner"


def redirect_changes(
    changes: Iterable[Change], profiles: SessionProfiles, read: Callable[[str], bytes | None]
) -> Iterator[Change]:
    """Redirect each change to a note with no wider audience than its session. `read` returns the current
    notes."""
    is_private: dict[str, bool] = {}
    places: dict[str, str] = {}
    for change in changes:
        key = change.source.session_key
        if key not in is_private:
            is_private[key] = profiles.profile_of(key, trial=True).rule.audience == "owner"
        if is_private[key] and change.path not in places:
            places[change.path] = private_note(change.path, read)
        yield replace(change, path=places[change.path]) if is_private[key] else change


def private_note(path: str, read: Callable[[str], bytes | None]) -> str:
    """The note itself, or, if others can read it, the private note beside it."""
    while (data := read(path)) is not None and is_shared(notes.parse(notes.decode(data), path), path):
        path = f"{path.removesuffix('.md')}{_OWNER_SUFFIX}.md"
    return path


def is_shared(note: Note, path: str) -> bool:
    """Whether people other than the owner can read it. A note that does not exist yet is created private."""
    return audience_of(note, path)[0] != "owner"

"""Where learned lines may stand: never in a note that more people see than the conversation they are from.

What was said in the owner's own sessions is the owner's. Notes for reference and procedures are for groups
unless they say otherwise; a line from a private session goes into a note beside such a one, which is the
owner's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tacit.model.changes import Change
from tacit.text import notes
from tacit.text.passages import audience_of

if TYPE_CHECKING:
    from tacit.memory.memory import Memory

_OWN = "-owner"


def placed(
    memory: Memory, changes: Iterable[Change], read: Callable[[str], bytes | None]
) -> Iterator[Change]:
    """The changes, each with a note that is not for more people than its session. `read` gives notes as they
    are now."""
    private: dict[str, bool] = {}
    wide: dict[str, bool] = {}
    for change in changes:
        key = change.source.session_key
        if key not in private:
            private[key] = memory.profile_of(key, trial=True).rule.audience == "owner"
        if change.path not in wide:
            wide[change.path] = _is_wide(change.path, read(change.path))
        own = private[key] and wide[change.path]
        yield replace(change, path=own_note(change.path)) if own else change


def own_note(path: str) -> str:
    """The note beside it that is the owner's alone."""
    return f"{path.removesuffix('.md')}{_OWN}.md"


def _is_wide(path: str, data: bytes | None) -> bool:
    """A note that is not there yet is made for the owner."""
    return data is not None and audience_of(notes.parse(notes.decode(data), path), path)[0] != "owner"

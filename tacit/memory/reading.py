"""A file of the home as a session may read it: the same rules as for search, for one file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from tacit.errors import StoreError, UsageError
from tacit.model.search import AUDIENCES, Document, Scope
from tacit.store.listing import ENDINGS, some
from tacit.text import notes
from tacit.text.ours import without_sections
from tacit.text.passages import document
from tacit.text.redact import clean
from tacit.text.workspaces import is_of_one

if TYPE_CHECKING:
    from tacit.memory.memory import Memory

MOST_LINES = 400
_MOST_BYTES = 4 * 2**20


class Read(NamedTuple):
    path: str
    text: str
    first: int
    last: int
    lines: int  # of the whole file


def read(memory: Memory, path: str, scope: Scope, first: int = 1, count: int = MOST_LINES) -> Read:
    """What is not there and what may not be seen is refused in the same words: a name is a secret too."""
    name = path.removeprefix("./")
    text = _readable(memory, name, scope)
    if text is None:
        raise UsageError(f"There is no {name[:120]!r} that this session may read. Search for it first.")
    lines = text.split("\n")
    begin = max(1, first)
    end = min(len(lines), begin + max(1, min(count, MOST_LINES)) - 1)
    return Read(name, clean("\n".join(lines[begin - 1 : end])).text, begin, end, len(lines))


def _readable(memory: Memory, path: str, scope: Scope) -> str | None:
    if not _is_searched(memory, path):
        return None
    try:
        text = notes.decode(memory.workspaces.read(path, _MOST_BYTES))
    except (StoreError, OSError, ValueError):
        return None
    found = document(path, text, memory.moment().date(), memory.workspaces.agents_of(path))
    return without_sections(text) if is_visible(found, scope) else None


def _is_searched(memory: Memory, path: str) -> bool:
    if is_of_one(path):
        return bool((memory.workspaces.some([path]) or {}).get(path))
    listed = some(os.fspath(memory.home.root), [path]) if path.endswith(ENDINGS) else None
    return (listed or {}).get(path) is not None


def is_visible(found: Document, scope: Scope) -> bool:
    """As the index filters: whom it is for, or a conversation of this very session; and whose it is."""
    heard = AUDIENCES.index(found.audience) <= AUDIENCES.index(scope.audience)
    own = bool(scope.conversation) and found.conversation == scope.conversation
    shared = not scope.agents or not found.agents or bool(set(found.agents) & set(scope.agents))
    return (heard or own) and shared

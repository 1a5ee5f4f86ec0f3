"""Reading one file of the home in a session, by the same access rules as search."""

from __future__ import annotations

import os
from typing import NamedTuple

from tacit.clock import Clock
from tacit.errors import MergeConflict, StoreError, UsageError
from tacit.home.layout import Home
from tacit.home.listing import ENDINGS, stat_listed
from tacit.home.workspace_files import is_workspace_path
from tacit.markdown import notes
from tacit.privacy.audience import AUDIENCES
from tacit.privacy.redaction import clean
from tacit.privacy.strip_injected import remove_sections
from tacit.search.documents import read_document
from tacit.search.model import Document, Scope
from tacit.workspaces.folders import Workspaces

MAX_LINES = 400
_MAX_BYTES = 4 * 2**20


class ReadResult(NamedTuple):
    path: str
    text: str
    first: int
    last: int
    lines: int  # of the whole file


class FileReader:
    def __init__(self, home: Home, clock: Clock, workspaces: Workspaces) -> None:
        self._home, self._clock, self._workspaces = home, clock, workspaces

    def read(self, path: str, scope: Scope, first: int = 1, count: int = MAX_LINES) -> ReadResult:
        """Read some lines. Missing and forbidden files get the same error: a name is a secret too."""
        name = self._resolve_path(path)
        text = self._read_visible(name, scope)
        if text is None:
            raise UsageError(f"There is no {path[:120]!r} that this session may read. Search for it first.")
        lines = text.split("\n")
        begin = max(1, first)
        end = min(len(lines), begin + max(1, min(count, MAX_LINES)) - 1)
        return ReadResult(name, clean("\n".join(lines[begin - 1 : end])).text, begin, end, len(lines))

    def _resolve_path(self, path: str) -> str:
        """The canonical path, by which access is decided for every spelling; empty if there is none."""
        try:
            return self._workspaces.resolve(path)
        except (StoreError, OSError, ValueError):
            return ""

    def _read_visible(self, path: str, scope: Scope) -> str | None:
        if not self._is_searched(path):
            return None
        try:
            text = notes.decode(self._workspaces.read(path, _MAX_BYTES))
        except MergeConflict:
            if scope.audience == "owner":  # others are not told that there is such a file
                raise
            return None
        except (StoreError, OSError, ValueError):
            return None
        parsed = read_document(path, text, self._clock.now().date(), self._workspaces.agents_of(path))
        return remove_sections(text) if is_visible(parsed, scope) else None

    def _is_searched(self, path: str) -> bool:
        if is_workspace_path(path):
            return bool((self._workspaces.some([path]) or {}).get(path))
        listed = stat_listed(os.fspath(self._home.root), [path]) if path.endswith(ENDINGS) else None
        return (listed or {}).get(path) is not None


def is_visible(document: Document, scope: Scope) -> bool:
    """The filter of the index: the audience must fit or the conversation be the session's own, and the agent
    must fit too."""
    is_in_audience = AUDIENCES.index(document.audience) <= AUDIENCES.index(scope.audience)
    is_own_conversation = bool(scope.conversation) and document.conversation == scope.conversation
    is_limited_to_agents = bool(scope.agents and document.agents)
    is_agent_allowed = not is_limited_to_agents or not set(document.agents).isdisjoint(scope.agents)
    return (is_in_audience or is_own_conversation) and is_agent_allowed

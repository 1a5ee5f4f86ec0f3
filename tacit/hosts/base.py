"""What a host is to tacit: how its records translate into tacit's own operations.

A host is a module or object with these functions, named in HOSTS of tacit/hosts/__init__.py. They are pure: a
record as the host sends it goes in, bodies of operations come out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

Body = dict[str, Any]


class OperationCall(NamedTuple):
    """An operation of tacit.operations and its body."""

    operation: str
    body: Body


class Host(Protocol):
    def turn(self, body: Mapping[str, Any], /) -> Body:
        """The body of an operation that a session asks for: a turn, a search, one of the tools."""

    def event(self, body: Mapping[str, Any], /) -> list[OperationCall]:
        """What happened on the host: messages, tool calls, the end of a session."""

    def bootstrap_entries(self, session_key: str, files: Sequence[Mapping[str, Any]], /) -> list[Body]:
        """The files of a rule, as entries that the host accepts in its own list."""

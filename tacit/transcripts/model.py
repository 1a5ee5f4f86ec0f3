"""One conversation as values: its turns with speaker and time, in the order they were kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Literal, TypeAlias

from tacit.diagnostics import Problem

Role: TypeAlias = Literal["user", "agent", "system"]


@dataclass(frozen=True, slots=True)
class Message:
    number: int
    at: datetime
    role: Role
    text: str
    speaker: str | None = None
    line: int = 0  # of the file, where its text begins


@dataclass(frozen=True, slots=True)
class ToolCall:
    number: int
    at: datetime
    name: str
    summary: str
    result: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class KnowledgeChange:
    number: int
    at: datetime
    action: str
    path: str
    summary: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Attachment:
    number: int
    at: datetime
    role: Role
    path: str
    line: int = 0


Turn: TypeAlias = Message | ToolCall | KnowledgeChange | Attachment


@dataclass(frozen=True, slots=True)
class Opening:
    """What is known about a conversation before its first message."""

    session_id: str
    started: datetime  # aware; its offset is the one all times of the transcript are written in
    session_key: str = "agent:main:main"
    agent: str = "main"
    channel: str | None = None
    model: str | None = None
    continues: str | None = None  # the sealed transcript that an earlier part of this session is in


@dataclass(frozen=True, slots=True)
class Closing:
    """What finalizing adds."""

    ended: datetime
    tags: tuple[str, ...] = ()
    tokens_in: int | None = None
    tokens_out: int | None = None


@dataclass(frozen=True, slots=True)
class Transcript:
    path: str
    fields: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    title: str = ""
    turns: tuple[Turn, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def sealed(self) -> bool:
        return "ended" in self.fields

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(turn for turn in self.turns if isinstance(turn, Message))


@dataclass(frozen=True, slots=True)
class Sealed:
    """A closed conversation: where it is, what it hashes to, and the commit that keeps it (None: waiting)."""

    session_id: str
    path: str
    sha256: str
    commit: str | None
    waiting: str = ""

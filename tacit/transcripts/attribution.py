"""Who said what in a conversation: each turn as an utterance, with its speaker and how far it is trusted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from tacit.markdown.comment import Trust
from tacit.transcripts.model import Message, ToolCall, Turn

SpeakerRole: TypeAlias = Literal["user", "agent", "system", "tool"]


@dataclass(frozen=True, slots=True)
class Utterance:
    """One turn of a history. For tools it is the call or the result."""

    number: int  # of the message, or the position in the history, from 1
    role: SpeakerRole
    text: str
    speaker: str = ""  # of a tool: its name
    at: datetime | None = None
    trust: Trust = "other"


@dataclass(frozen=True, slots=True)
class AttributedTranscript:
    """One finalized conversation without what tacit injected, each turn attributed to its speaker."""

    transcript: str  # path in the home
    session_id: str
    session_key: str
    agent: str
    day: str  # on which it began, YYYY-MM-DD in the zone of the transcript
    title: str
    said: tuple[Utterance, ...]


def role_of(turn: Turn) -> SpeakerRole:
    return turn.role if isinstance(turn, Message) else "tool"


def speaker_of(turn: Turn) -> str:
    """The name of the speaker or of the tool; empty if unknown."""
    if isinstance(turn, ToolCall):
        return turn.name
    return (turn.speaker or "") if isinstance(turn, Message) else ""


def text_of(turn: Turn, max_result_chars: int | None = None) -> str:
    """The words of a message, or a tool's call and the beginning of its result."""
    if isinstance(turn, ToolCall):
        return f"{turn.summary} → {turn.result[:max_result_chars]}" if turn.result else turn.summary
    return turn.text if isinstance(turn, Message) else ""

"""Captures one conversation as it happens.

Everything is kept except three things, which are removed before anything is written: text marked as private,
secrets, and context that tacit itself had put into the prompt. `Session.removed` counts them.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import NamedTuple, Self

from tacit.errors import SessionError, UsageError
from tacit.privacy import redaction, strip_injected
from tacit.text import tokens
from tacit.transcripts import format as form
from tacit.transcripts.format import RecordPosition, RenderedRecord
from tacit.transcripts.model import Closing, Message, Role, Sealed, ToolCall, Turn
from tacit.transcripts.writer import TranscriptWriter

# The words that hosts use for our three roles. None: not kept, since reasoning is no part of a transcript.
_ROLES: dict[str, Role | None] = {
    "user": "user",
    "human": "user",
    "agent": "agent",
    "assistant": "agent",
    "system": "system",
    "thinking": None,
    "reasoning": None,
}

_PRIVATE, _OWN = "private", "own"  # no kind of secret has such a name

Finish = Callable[[TranscriptWriter, Closing, Sequence[Turn]], Sealed | None]


class RemovedCounts(NamedTuple):
    """What was removed from a session so far: private parts, secrets by kind, and records that repeated
    context from tacit."""

    private: int
    secrets: Mapping[str, int]
    own: int

    def __str__(self) -> str:
        """For a log; empty if nothing was removed."""
        parts = [f"{self.private} private"] if self.private else []
        parts += [f"{count} {kind}" for kind, count in sorted(self.secrets.items())]
        parts += [f"{self.own} own"] if self.own else []
        return f"removed: {', '.join(parts)}" if parts else ""


class Session:
    """Records a conversation. Each method returns the record's number once the record is on disk.

    A context manager: leaving the block finalizes the transcript, also when the block raised.
    Safe to use from several threads.
    """

    def __init__(
        self,
        live: TranscriptWriter | None,
        *,
        now: Callable[[], datetime],
        in_zone: Callable[[datetime], datetime],
        finish: Finish,
        started_given: bool = True,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._writer = live  # None: this agent's conversations are not kept
        self._now, self._in_zone, self._finish = now, in_zone, finish
        self._has_given_start, self._on_end = started_given, ended
        self._last_time: datetime | None = None
        self._has_given_times = False
        self._result: Sealed | None = None
        self._closed = False
        self._end_lock = threading.Lock()
        self._removed: Counter[str] = Counter()
        self._removed_lock = threading.Lock()
        # The sender whose message left a private tag open. Hosts split long messages, and the next one of the
        # same sender belongs to it, unless another sender spoke in between.
        self._open_sender: tuple[Role, str | None] | None = None
        # Another process may have left one open.
        self._is_resumed = live is not None and live.record.path is not None

    @property
    def removed(self) -> RemovedCounts:
        with self._removed_lock:
            counts = dict(self._removed)
        return RemovedCounts(counts.pop(_PRIVATE, 0), counts, counts.pop(_OWN, 0))

    @property
    def session_id(self) -> str:
        return self._writer.record.opening.session_id if self._writer else ""

    @property
    def path(self) -> str | None:
        """Where the transcript is in the home; None before the first message."""
        return self._writer.record.path if self._writer else None

    def message(self, role: str, text: str, at: datetime | None = None, speaker: str | None = None) -> int:
        known_role = _role(role)
        if known_role == "agent":
            text = form.strip_reasoning(text)
        if known_role is None or (known_role == "agent" and not text):
            return 0
        sender: Role = known_role
        name = self._clean(speaker) if speaker else None
        cleaned = self._clean_message(sender, name, text)
        return self._append(
            cleaned, at, lambda cursor, moment: form.render_message(cursor, moment, sender, cleaned, name)
        )

    def tool(self, name: str, summary: str, result: str = "", at: datetime | None = None) -> int:
        """One line: what was called and briefly what came back."""
        self._is_resumed, self._open_sender = False, None
        call, request, answer = self._clean(name), self._clean(summary), self._clean(result)
        hint = f"{call} {request}"
        return self._append(
            hint, at, lambda cursor, moment: form.render_tool_call(cursor, moment, call, request, answer)
        )

    def knowledge(self, action: str, path: str, summary: str = "", at: datetime | None = None) -> int:
        """The agent changed a note: the action, the path and a short summary."""
        verb, note, reason = self._clean(action), self._clean(path), self._clean(summary)
        return self._append(
            note, at, lambda cursor, moment: form.render_knowledge_change(cursor, moment, verb, note, reason)
        )

    def attachment(self, path: str, role: str = "user", at: datetime | None = None) -> int:
        """A file that belongs to the conversation: named, never embedded."""
        sender: Role = _role(role) or "agent"
        file = self._clean(path)
        return self._append(
            file, at, lambda cursor, moment: form.render_attachment(cursor, moment, sender, file)
        )

    def turns(self) -> tuple[Turn, ...]:
        return self._writer.turns() if self._writer else ()

    def end(
        self,
        at: datetime | None = None,
        *,
        tags: Sequence[str] = (),
        tokens_in: int | None = None,
        tokens_out: int | None = None,
    ) -> Sealed | None:
        """Finalize and commit. None when there was no message. Calling it again returns the same result."""
        with self._end_lock:
            if self._writer is None or self._closed:
                return self._result
            if self._writer.record.path is None:
                self.detach()
                self._on_end()
                return None
            last = self._last_time if self._has_given_times else None
            ended = self._local(require_valid_time(at) if at else last or self._now())
            turns = self._writer.turns()
            total_in, total_out = count_tokens(turns, tokens_in, tokens_out)
            cleaned_tags = tuple(self._clean(tag) for tag in tags)
            self._result = self._finish(
                self._writer, Closing(ended, cleaned_tags, total_in, total_out), turns
            )
            self._closed = True
            self._on_end()
            return self._result

    def detach(self) -> None:
        """Close without finalizing: another process goes on with this session."""
        if self._writer is not None:
            self._writer.detach()
            self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.end()
        finally:
            # If it could not be finalized now, the next process to open the home does it.
            if self._writer is not None:
                self._writer.close()

    def _clean_message(self, role: Role, speaker: str | None, text: str) -> str:
        """The part of a message that may be kept, or a placeholder if nothing is left."""
        sender = (role, speaker)
        if self._is_resumed:
            self._is_resumed, self._open_sender = False, _find_open_sender(self.turns())
        text = f"<private>{text}" if self._open_sender == sender else text
        cleaned = self._clean(text)
        self._open_sender = sender if redaction.is_left_open(cleaned) else None
        return cleaned

    def _clean(self, text: str) -> str:
        remaining = strip_injected.remove_injected(text)
        cleaned = redaction.clean(remaining)
        if cleaned.text != text:
            with self._removed_lock:
                self._removed.update({_PRIVATE: cleaned.private, _OWN: int(remaining != text)})
                self._removed.update(cleaned.secrets)
        return cleaned.text if remaining.strip() or not text.strip() else strip_injected.PLACEHOLDER

    def _append(
        self, hint: str, at: datetime | None, write: Callable[[RecordPosition, datetime], RenderedRecord]
    ) -> int:
        writer = self._writer
        if writer is None:
            return 0
        if self._closed:
            raise SessionError("This session has ended. Continue it with Memory.session(session_id=…).")
        moment = require_valid_time(at) if at else self._now()
        started = (
            fix_offset(self._in_zone(self._aware(moment)))
            if at is not None and not self._has_given_start
            else None
        )
        number = writer.append(hint, lambda cursor: write(cursor, self._local(moment)), started)
        self._last_time, self._has_given_times = moment, at is not None
        return number

    def _aware(self, at: datetime) -> datetime:
        return at if at.tzinfo else self._in_zone(at)

    def _local(self, at: datetime) -> datetime:
        """In the offset that the transcript began with, so that its times can be compared."""
        zone = self._writer.record.opening.started.tzinfo if self._writer else None
        return self._aware(at).astimezone(zone)


def _role(role: str) -> Role | None:
    if role not in _ROLES:
        hint = "Use .tool() for tool calls. " if role == "tool" else ""
        raise UsageError(
            f"{role!r} is not a role. {hint}The roles are user, agent (or assistant) and system."
        )
    return _ROLES[role]


def _find_open_sender(turns: Sequence[Turn]) -> tuple[Role, str | None] | None:
    last = turns[-1] if turns else None
    if isinstance(last, Message) and redaction.is_left_open(last.text):
        return last.role, last.speaker
    return None


def count_tokens(
    turns: Sequence[Turn], given_in: int | None = None, given_out: int | None = None
) -> tuple[int, int]:
    """The counts that the host reported; else our own of the text to the agent and from it."""
    if given_in is None:
        received = [turn.text for turn in turns if isinstance(turn, Message) and turn.role != "agent"]
        given_in = sum(
            map(tokens.count, received + [turn.result for turn in turns if isinstance(turn, ToolCall)])
        )
    if given_out is None:
        written = [turn.text for turn in turns if isinstance(turn, Message) and turn.role == "agent"]
        given_out = sum(map(tokens.count, written))
    return given_in, given_out


def require_valid_time(at: datetime) -> datetime:
    """The time, if it exists in every zone: the ends of the calendar do not."""
    if not 2 <= at.year <= 9998:
        raise UsageError(f"{at} cannot be the time. Give one like 2026-02-16T18:45:00+01:00.")
    return at


def fix_offset(at: datetime) -> datetime:
    """The same moment with the offset written out instead of a zone whose offset may change."""
    zone = form.parse_zone(form.format_offset(at))
    return at if zone is None else at.astimezone(zone)

"""One conversation while it happens.

What is said is kept, with three exceptions, which are taken out before anything is written: what somebody
marked as private, secrets, and what tacit itself had put into the prompt. `Session.removed` tells how much.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import NamedTuple, Self

from tacit.errors import SessionError, UsageError
from tacit.model.turns import Closing, Message, Role, Sealed, ToolCall, Turn
from tacit.store.transcripts import Live
from tacit.text import ours, redact, tokens
from tacit.text import transcript as form
from tacit.text.transcript import Place, Written

# The words hosts use for our three roles. None: not kept, because reasoning is not part of the record.
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

Finish = Callable[[Live, Closing, Sequence[Turn]], Sealed | None]


class Removed(NamedTuple):
    """What was taken out of a session so far: parts that were private, secrets by kind, records that repeated
    what tacit had given."""

    private: int
    secrets: Mapping[str, int]
    own: int

    def __str__(self) -> str:
        """For a log; empty where nothing was."""
        parts = [f"{self.private} private"] if self.private else []
        parts += [f"{count} {kind}" for kind, count in sorted(self.secrets.items())]
        parts += [f"{self.own} own"] if self.own else []
        return f"removed: {', '.join(parts)}" if parts else ""


class Session:
    """Keeps what is said. Each method returns the record's number once the record is on disk.

    A context manager: leaving the block seals the transcript, also when the block raised.
    Safe to use from several threads.
    """

    def __init__(
        self,
        live: Live | None,
        *,
        now: Callable[[], datetime],
        in_zone: Callable[[datetime], datetime],
        finish: Finish,
        started_given: bool = True,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._live = live  # None: this agent's conversations are not kept
        self._now, self._in_zone, self._finish = now, in_zone, finish
        self._started_given, self._when_ended = started_given, ended
        self._last: datetime | None = None
        self._last_given = False
        self._ended: Sealed | None = None
        self._closed = False
        self._ending = threading.Lock()
        self._removed: Counter[str] = Counter()
        self._counting = threading.Lock()
        # Whose message left a private tag open. Hosts cut long messages in pieces, and the next one of the
        # same sender belongs to it, unless somebody else spoke.
        self._open: tuple[Role, str | None] | None = None
        self._goes_on = live is not None and live.record.path is not None  # another process may have left one

    @property
    def removed(self) -> Removed:
        with self._counting:
            counts = dict(self._removed)
        return Removed(counts.pop(_PRIVATE, 0), counts, counts.pop(_OWN, 0))

    @property
    def session_id(self) -> str:
        return self._live.record.opening.session_id if self._live else ""

    @property
    def path(self) -> str | None:
        """Where the transcript is in the home; None before the first message."""
        return self._live.record.path if self._live else None

    def message(self, role: str, text: str, at: datetime | None = None, speaker: str | None = None) -> int:
        kept = _role(role)
        if kept == "agent":
            text = form.without_reasoning(text)
        if kept is None or (kept == "agent" and not text):
            return 0
        who: Role = kept
        name = self._clean(speaker) if speaker else None
        said = self._said(who, name, text)
        return self._append(said, at, lambda place, when: form.message(place, when, who, said, name))

    def tool(self, name: str, summary: str, result: str = "", at: datetime | None = None) -> int:
        """One line: what was called and briefly what came back."""
        self._goes_on, self._open = False, None
        call, asked, answer = self._clean(name), self._clean(summary), self._clean(result)
        hint = f"{call} {asked}"
        return self._append(hint, at, lambda place, when: form.tool_call(place, when, call, asked, answer))

    def knowledge(self, action: str, path: str, summary: str = "", at: datetime | None = None) -> int:
        """The agent changed a note: which, how, and in a few words what."""
        what, note, why = self._clean(action), self._clean(path), self._clean(summary)
        return self._append(note, at, lambda place, when: form.knowledge_change(place, when, what, note, why))

    def attachment(self, path: str, role: str = "user", at: datetime | None = None) -> int:
        """A file that belongs to the conversation: named, never embedded."""
        who: Role = _role(role) or "agent"
        file = self._clean(path)
        return self._append(file, at, lambda place, when: form.attachment(place, when, who, file))

    def turns(self) -> tuple[Turn, ...]:
        return self._live.turns() if self._live else ()

    def end(
        self,
        at: datetime | None = None,
        *,
        tags: Sequence[str] = (),
        tokens_in: int | None = None,
        tokens_out: int | None = None,
    ) -> Sealed | None:
        """Seal and commit. None when nothing was said. Calling it again returns the same answer."""
        with self._ending:
            if self._live is None or self._closed:
                return self._ended
            if self._live.record.path is None:
                self.detach()
                self._when_ended()
                return None
            last = self._last if self._last_given else None
            ended = self._local(possible(at) if at else last or self._now())
            turns = self._live.turns()
            said_in, said_out = counted(turns, tokens_in, tokens_out)
            kept = tuple(self._clean(tag) for tag in tags)
            self._ended = self._finish(self._live, Closing(ended, kept, said_in, said_out), turns)
            self._closed = True
            self._when_ended()
            return self._ended

    def detach(self) -> None:
        """Let go without sealing: another process goes on with this session."""
        if self._live is not None:
            self._live.detach()
            self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.end()
        finally:
            # What could not be sealed now is left open, for whoever opens the home next.
            if self._live is not None:
                self._live.close()

    def _said(self, who: Role, speaker: str | None, text: str) -> str:
        """What may be kept of a message; where nothing is left, the mark that stands for it."""
        sender = (who, speaker)
        if self._goes_on:
            self._goes_on, self._open = False, _left_open_by(self.turns())
        text = f"<private>{text}" if self._open == sender else text
        said = self._clean(text)
        self._open = sender if redact.is_left_open(said) else None
        return said

    def _clean(self, text: str) -> str:
        left = ours.without_ours(text)
        cleaned = redact.clean(left)
        if cleaned.text != text:
            with self._counting:
                self._removed.update({_PRIVATE: cleaned.private, _OWN: int(left != text)})
                self._removed.update(cleaned.secrets)
        return cleaned.text if left.strip() or not text.strip() else ours.MARK

    def _append(self, hint: str, at: datetime | None, write: Callable[[Place, datetime], Written]) -> int:
        live = self._live
        if live is None:
            return 0
        if self._closed:
            raise SessionError("This session has ended. Continue it with Memory.session(session_id=…).")
        said = possible(at) if at else self._now()
        started = (
            fixed_offset(self._in_zone(self._aware(said)))
            if at is not None and not self._started_given
            else None
        )
        number = live.append(hint, lambda place: write(place, self._local(said)), started)
        self._last, self._last_given = said, at is not None
        return number

    def _aware(self, at: datetime) -> datetime:
        return at if at.tzinfo else self._in_zone(at)

    def _local(self, at: datetime) -> datetime:
        """In the offset the transcript began with, so that its hours and minutes can be compared."""
        zone = self._live.record.opening.started.tzinfo if self._live else None
        return self._aware(at).astimezone(zone)


def _role(role: str) -> Role | None:
    if role not in _ROLES:
        hint = "Use .tool() for tool calls. " if role == "tool" else ""
        raise UsageError(
            f"{role!r} is not a role. {hint}The roles are user, agent (or assistant) and system."
        )
    return _ROLES[role]


def _left_open_by(turns: Sequence[Turn]) -> tuple[Role, str | None] | None:
    last = turns[-1] if turns else None
    if isinstance(last, Message) and redact.is_left_open(last.text):
        return last.role, last.speaker
    return None


def counted(
    turns: Sequence[Turn], given_in: int | None = None, given_out: int | None = None
) -> tuple[int, int]:
    """What the host reported; else the tokens of what was said to the agent and by it."""
    if given_in is None:
        heard = [turn.text for turn in turns if isinstance(turn, Message) and turn.role != "agent"]
        given_in = sum(
            map(tokens.count, heard + [turn.result for turn in turns if isinstance(turn, ToolCall)])
        )
    if given_out is None:
        said = [turn.text for turn in turns if isinstance(turn, Message) and turn.role == "agent"]
        given_out = sum(map(tokens.count, said))
    return given_in, given_out


def possible(at: datetime) -> datetime:
    """The time, if it exists in every zone: the ends of the calendar do not."""
    if not 2 <= at.year <= 9998:
        raise UsageError(f"{at} cannot be the time. Give one like 2026-02-16T18:45:00+01:00.")
    return at


def to_milliseconds(at: datetime) -> datetime:
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def fixed_offset(at: datetime) -> datetime:
    """The same moment with the offset written out instead of a zone whose offset may change."""
    zone = form.zone_of(form.offset(at))
    return at if zone is None else at.astimezone(zone)

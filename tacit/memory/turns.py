"""class Turns: the turns of one home, from its files as they are or as they were."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tacit.context.absorbed import Conversation, conversation
from tacit.errors import TacitError, UsageError
from tacit.memory.request import Request, keepable, nothing, sane
from tacit.memory.turn import ContextCompiler
from tacit.memory.views import Past, Present
from tacit.model.context import Compiled, Notice, Receipt
from tacit.model.search import EVERYTHING
from tacit.search.parts import Parts
from tacit.sessions.classify import classify
from tacit.sessions.guard import look
from tacit.store import receipts, transcripts
from tacit.store.mirrors import empty_mirror
from tacit.store.purged import purged
from tacit.store.transcripts import Record
from tacit.text import tokens
from tacit.watch.gate import GatedActivator
from tacit.watch.pipeline import WatcherPipeline
from tacit.watch.shelf import Shelf

if TYPE_CHECKING:
    from tacit.memory.memory import Memory


_REHEARSAL = 2.0  # seconds at most
_TAKING: ContextVar[bool] = ContextVar("taking", default=False)


class Turns:
    def __init__(self, memory: Memory, parts: Parts, gate: Callable[[], GatedActivator] | None) -> None:
        self._memory, self._parts = memory, parts
        self.present = Present(memory.home, lambda: memory.searcher, memory.workspaces)
        self._compiler = ContextCompiler(
            memory.home, memory.config, gate or GatedActivator, memory.profile_of
        )
        self._is_warm = False

    def take(self, message: str, *, seconds: float | None = None, **asked: Any) -> Compiled:
        """A turn of a session, within these seconds or the time that the config gives.

        Whatever a turn asks (a model, an embedder of somebody's own) may come back to us before it is
        answered. That is no turn: it gets nothing, and nothing is searched for it."""
        now, began = self._memory.moment(), time.time_ns()
        if _TAKING.get():
            return nothing(message, "own-tool", "A turn asked for a turn.", now, asked)
        mark = _TAKING.set(True)
        try:
            self.warm()
            if seconds is None:
                seconds = self._memory.config.inject.deadline_ms / 1000
            request = self._in_session(sane(Request(message, seconds=seconds, **asked)))
            return self._compiler.compile(request, self.present, now)
        except Exception as error:  # noqa: BLE001 - a turn never breaks, whatever is wrong with us
            told = f"{type(error).__name__}: {error}"
            return self._failed(nothing(message, "bug", told, now, asked), began)
        finally:
            _TAKING.reset(mark)

    def _failed(self, made: Compiled, began: int) -> Compiled:
        """What is wrong may name what the session may not see: the log has it, the host is told where."""
        receipt = self._unmade(made, began)
        told = Notice("bug", f"This is a mistake in tacit. See: tacit why {receipt.id}")
        return replace(made, receipt=replace(receipt, notices=(told,)))

    def skipped(self, asked: Mapping[str, Any], began: int, code: str = "", reason: str = "") -> None:
        """A turn was answered with nothing by somebody else. With a code and a reason where nobody took it:
        then it leaves its receipt here. `asked`: as a host sent it. `began`: in nanoseconds."""
        made = nothing(asked.get("message", ""), code, reason, self._memory.moment(), asked)
        if code:
            self._unmade(made, began)
        else:
            self._empty(made.receipt, began)

    def _unmade(self, made: Compiled, began: int) -> Receipt:
        receipt = replace(made.receipt, id=receipts.new_id(self._memory.moment(), secrets.randbits(20)))
        with suppress(Exception):
            receipts.append(self._memory.home, receipt)
        self._empty(receipt, began)
        return receipt

    def _empty(self, receipt: Receipt, began: int) -> None:
        """A whole prompt has no copy."""
        if receipt.lane != "prompt":
            with suppress(Exception):
                directory = self._memory.config.sessions.directory
                empty_mirror(self._memory.home, directory, receipt.session_key, began)

    def ended(self, session_key: str) -> None:
        """A session is over, or begins anew under the same key."""
        self._compiler.ended(session_key, classify(session_key).agent)

    def look(self, request: Request, at: str | None = None) -> Compiled:
        """As `take`, to look at: it counts as no turn of the session, and takes the time it needs. `at`: a
        date, a tag or a commit; then it is compiled from the home as it was."""
        request = replace(request, trial=True)
        if at is None:
            return self._compiler.compile(self._in_session(request), self.present, self._memory.moment())
        view, when = self._past(at)
        return self._compiler.compile(request, view, when)

    def _past(self, at: str) -> tuple[Past, datetime]:
        memory = self._memory
        commit = memory.history.at(at)
        if commit is None:
            raise UsageError(f"There was nothing yet at {at}. See: tacit history tags")
        when = memory.history.describe(commit).when
        return Past(memory.git, commit, when, self._parts, purged(memory.home.root)), when

    def warm(self) -> None:
        """Load what turns need. The first one does so by itself, before its time begins to count."""
        if not self._is_warm:
            self._is_warm = True
            with suppress(Exception):  # the turn itself says what is wrong
                tokens.count("Zwrxq vfahn")  # words that are no tokens make it build its tables
                look("ok")
                look("error")
                self.watchers()
                self._compiler.given.look(self._memory.moment() - timedelta(hours=48))
                self.present.find("", EVERYTHING, 1, self._memory.moment(), None)

    def rehearse(self) -> None:
        """A turn that is none, so that all that the first question needs is loaded: for who answers many."""
        self.warm()
        request = Request("What did we decide last week?", trial=True, quiet=True, seconds=_REHEARSAL)
        with suppress(Exception):
            self._compiler.compile(request, self.present, self._memory.moment())

    def topics(self) -> Shelf:
        """All that could be loaded, and what is wrong with the others."""
        return self.present.shelf()

    def watchers(self) -> WatcherPipeline:
        return self._compiler.pipeline(self.present)

    def _is_sealed(self, record: Record) -> bool:
        """A sealed one may wait for its commit; its session is over."""
        file = self._memory.home.root / (record.path or "")
        return record.sha256 is not None or (file.is_file() and transcripts.is_sealed(file))

    def _in_session(self, request: Request) -> Request:
        """With the id and the transcript of the session that is open under this key, if there is one; or with
        the transcript of the one that the host names."""
        with suppress(TacitError, OSError):
            if last := self._open_record(request):
                name, joins = last.opening.session_id, not request.session_id
                return replace(request, session_id=name, joins=joins, transcript=last.path or "")
        return request

    def _open_record(self, request: Request) -> Record | None:
        mine = [record for record in self._records(request) if not self._is_sealed(record)]
        return max(mine, key=lambda record: record.opening.started, default=None)

    def conversation(self, session_key: str, message: str) -> Conversation:
        """What the model has in view of the session that is open under this key, besides this message."""
        record, said = self._open_record(Request("", session_key)), keepable(message)
        if record is None:
            return Conversation((), (said,))
        opening = record.opening
        renewed = self._compiler.given.renewed(session_key, opening.session_id, opening.started)
        return conversation(transcripts.turns(self._memory.home, record), said, renewed)

    def _records(self, request: Request) -> list[Record]:
        if request.session_id:
            record = transcripts.find_record(self._memory.home, request.session_id)
            return [record] if record and record.opening.session_id == request.session_id else []
        records = self._memory.open_sessions()
        return [record for record in records if record.opening.session_key == request.session_key]

"""Compiles the turns of one home, from its current files or from a past commit."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from tacit.config import Config
from tacit.context import receipts
from tacit.context.compiler import ContextCompiler
from tacit.context.delivery.files import clear_context_file
from tacit.context.file_usage import ConversationText, split_conversation
from tacit.context.home_view import CommitSnapshot, LiveHome
from tacit.context.model import Compiled, Receipt
from tacit.context.request import Request, empty_result, normalize_request, sanitize
from tacit.context.state import CompilerState
from tacit.diagnostics import Notice
from tacit.errors import TacitError, UsageError
from tacit.git.history import History
from tacit.git.repository import Git
from tacit.home.layout import Home
from tacit.search.index import SearchParts
from tacit.search.model import EVERYTHING
from tacit.search.query_filter import filter_query
from tacit.sessions.keys import classify
from tacit.sessions.policy import SessionProfile
from tacit.text import tokens
from tacit.topics.activation import GatedActivator
from tacit.topics.parser import TopicLoader
from tacit.topics.pipeline import WatcherPipeline
from tacit.transcripts import writer
from tacit.transcripts.purged import load_purged
from tacit.transcripts.writer import SessionState

_REHEARSAL_TIMEOUT_S = 2.0
_IN_TURN: ContextVar[bool] = ContextVar("taking", default=False)


class TurnService:
    """`history` and `models` serve turns that are compiled from a past commit."""

    def __init__(
        self,
        home: Home,
        config: Config,
        present: LiveHome,
        *,
        history: History,
        models: SearchParts,
        profile_of: Callable[..., SessionProfile],
        now: Callable[[], datetime],
        gate: Callable[[], GatedActivator] | None = None,
    ) -> None:
        self._home, self._config, self.present = home, config, present
        self._history, self._models, self._now = history, models, now
        self._state = CompilerState(home, config, gate or GatedActivator, profile_of)
        self._compiler = ContextCompiler(self._state)
        self._is_warm = False

    def take(self, message: str, *, seconds: float | None = None, **fields: Any) -> Compiled:
        """Compile a turn of a session, within these seconds or the deadline in the config.

        A model or an embedder that a turn calls may call tacit again before the turn is done. Such a nested
        call is no turn: it gets an empty answer without a search."""
        now, began = self._now(), time.time_ns()
        if _IN_TURN.get():
            return empty_result(message, "own-tool", "A turn asked for a turn.", now, fields)
        token = _IN_TURN.set(True)
        try:
            self.warm()
            if seconds is None:
                seconds = self._config.inject.deadline_ms / 1000
            request = self._attach_session(normalize_request(Request(message, seconds=seconds, **fields)))
            return self._compiler.compile(request, self.present, now)
        except Exception as error:  # noqa: BLE001 - a turn never breaks, even if tacit has a bug
            reason = f"{type(error).__name__}: {error}"
            return self._answer_failure(empty_result(message, "bug", reason, now, fields), began)
        finally:
            _IN_TURN.reset(token)

    def _answer_failure(self, compiled: Compiled, began: int) -> Compiled:
        """The error text may name things that the session may not see: only the log has it, and the host gets
        a pointer to the log."""
        receipt = self._record_skip(compiled, began)
        notice = Notice("bug", f"This is a mistake in tacit. See: tacit why {receipt.id}")
        return replace(compiled, receipt=replace(receipt, notices=(notice,)))

    def note_skip(self, fields: Mapping[str, Any], began: int, code: str = "", reason: str = "") -> None:
        """Another component gave an empty answer to a turn. With a code, no receipt was written yet, so it is
        written here. `fields`: the request as the host sent it. `began`: in nanoseconds."""
        compiled = empty_result(fields.get("message", ""), code, reason, self._now(), fields)
        if code:
            self._record_skip(compiled, began)
        else:
            self._clear_context_file(compiled.receipt, began)

    def _record_skip(self, compiled: Compiled, began: int) -> Receipt:
        receipt = replace(compiled.receipt, id=receipts.new_id(self._now(), secrets.randbits(20)))
        with suppress(Exception):
            receipts.append(self._home, receipt)
        self._clear_context_file(receipt, began)
        return receipt

    def _clear_context_file(self, receipt: Receipt, began: int) -> None:
        """Clear the context file of the session. Whole prompts have none."""
        if receipt.lane != "prompt":
            with suppress(Exception):
                directory = self._config.sessions.directory
                clear_context_file(self._home, directory, receipt.session_key, began)

    def end_session(self, session_key: str) -> None:
        """Call this when a session ends, or begins anew under the same key."""
        self._state.end_session(session_key, classify(session_key).agent)

    def look(self, request: Request, at: str | None = None) -> Compiled:
        """A dry run of `take`: it does not count as a turn of the session and has no deadline. `at`: a date,
        a tag or a commit; then it is compiled from the home as it was."""
        request = replace(request, trial=True)
        if at is None:
            return self._compiler.compile(self._attach_session(request), self.present, self._now())
        view, moment = self._open_past(at)
        return self._compiler.compile(request, view, moment)

    def _open_past(self, version: str) -> tuple[CommitSnapshot, datetime]:
        commit = self._history.at(version)
        if commit is None:
            raise UsageError(f"There was nothing yet at {version}. See: tacit history tags")
        moment = self._history.describe(commit).when
        purged = load_purged(self._home.root)
        return CommitSnapshot(Git(self._home.root), commit, moment, self._models, purged), moment

    def warm(self) -> None:
        """Load what turns need. The first turn does so itself, before its deadline starts."""
        if not self._is_warm:
            self._is_warm = True
            with suppress(Exception):  # the turn itself reports the error
                tokens.count("Zwrxq vfahn")  # words that are no single tokens make it build its tables
                filter_query("ok")
                filter_query("error")
                self.watchers()
                self._state.injections.read_new(self._now() - timedelta(hours=48))
                self.present.find("", EVERYTHING, 1, self._now(), None)

    def rehearse(self) -> None:
        """Compile a trial turn, so that a long-running process is warm before the first question."""
        self.warm()
        request = Request(
            "What did we decide last week?", trial=True, quiet=True, seconds=_REHEARSAL_TIMEOUT_S
        )
        with suppress(Exception):
            self._compiler.compile(request, self.present, self._now())

    def topics(self) -> TopicLoader:
        """The topics that could be loaded, and the problems of the others."""
        return self.present.shelf()

    def watchers(self) -> WatcherPipeline:
        return self._state.pipeline(self.present)

    def _is_sealed(self, record: SessionState) -> bool:
        """Whether the session is over. Its finalized transcript may still wait for the commit."""
        file = self._home.root / (record.path or "")
        return record.sha256 is not None or (file.is_file() and writer.is_sealed(file))

    def _attach_session(self, request: Request) -> Request:
        """Add the id and the transcript of the open session under this key, if there is one; or the
        transcript of the session that the host names."""
        with suppress(TacitError, OSError):
            if last := self._find_open_record(request):
                name, joins = last.opening.session_id, not request.session_id
                return replace(request, session_id=name, joins=joins, transcript=last.path or "")
        return request

    def _find_open_record(self, request: Request) -> SessionState | None:
        records = [record for record in self._find_records(request) if not self._is_sealed(record)]
        return max(records, key=lambda record: record.opening.started, default=None)

    def conversation(self, session_key: str, message: str) -> ConversationText:
        """The part of the open session under this key that the model sees, and this message."""
        record, query = self._find_open_record(Request("", session_key)), sanitize(message)
        if record is None:
            return ConversationText((), (query,))
        opening = record.opening
        renewed = self._state.injections.last_restart(session_key, opening.session_id, opening.started)
        return split_conversation(writer.read_turns(self._home, record), query, renewed)

    def _find_records(self, request: Request) -> list[SessionState]:
        if request.session_id:
            record = writer.find_state(self._home, request.session_id)
            return [record] if record and record.opening.session_id == request.session_id else []
        records = writer.list_states(self._home)
        return [record for record in records if record.opening.session_key == request.session_key]

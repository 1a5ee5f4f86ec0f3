"""A home that is opened in the process of its client, because no daemon runs.

It loads most of the package, so the client loads this module only when it is needed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress

from tacit.app import open_home
from tacit.client.daemon import encode_body
from tacit.context.history_window import normalize_history
from tacit.deadline import IS_ANSWERED
from tacit.errors import TacitError
from tacit.home.layout import Home
from tacit.operations.catalog import OPERATIONS_BY_NAME
from tacit.operations.handlers import HANDLERS, OperationContext, take_spooled
from tacit.sessions.registry import SessionRegistry
from tacit.transcripts import spool
from tacit.wire import Json


class LocalHome:
    """Runs operations on a home, and keeps it open for the next one."""

    def __init__(self, home: Home, *, recover: bool) -> None:
        memory = open_home(home.root, recover=recover)
        self._root = home.root
        self._context = OperationContext(memory, SessionRegistry(memory.services))

    def run(
        self,
        operation: str,
        body: Json,
        deadline: float | None = None,
        is_abandoned: Callable[[], bool] = lambda: False,
    ) -> Json:
        """`deadline`: of a turn. `is_abandoned`: whether the caller has stopped waiting for the answer."""
        if deadline is not None:
            body = {**body, "deadline_ms": max(1, int((deadline - time.monotonic()) * 1000))}
        if OPERATIONS_BY_NAME[operation].is_spooled:
            self._drain_spool()
        # Through JSON, so that the answer is the same as from a daemon.
        fields = json.loads(encode_body(body))
        token = IS_ANSWERED.set(is_abandoned)
        try:
            answer: Json = json.loads(json.dumps(HANDLERS[operation](self._context, fields)))
        finally:
            IS_ANSWERED.reset(token)
        if operation == "end_session":
            with suppress(TacitError, OSError):  # finalized; the next process that opens the home commits it
                self._context.live.commit_ended_sessions()
        return answer

    def _drain_spool(self) -> None:
        """Take spooled messages of hooks first, as they are older."""
        if spool.count_waiting(self._root):
            spool.drain(self._root, lambda record: take_spooled(self._context, record))

    def close(self) -> None:
        self._context.live.close()


def history_as_json(history: object) -> list[Json]:
    """The messages of a history that can be read."""
    return [
        {"role": message.role, "content": message.text, "speaker": message.speaker}
        | ({"at": message.at.isoformat()} if message.at else {})
        for message in normalize_history(history)
    ]

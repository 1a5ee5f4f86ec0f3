"""Turns errors of operations into replies: one map from error to status and code.

An unexpected error is logged with its trace, and the caller gets only a reference to the log entry.
"""

from __future__ import annotations

import secrets
import traceback

from tacit.errors import (
    Busy,
    ConfigError,
    DiskError,
    GitError,
    HomeError,
    SessionError,
    StoreError,
    TacitError,
    UsageError,
)
from tacit.privacy.redaction import clean
from tacit.server.http import RETRY_AFTER, Reply, error_reply
from tacit.server.log import Log
from tacit.server.metrics import Metrics

_ERROR_CODES: tuple[tuple[type[TacitError], str], ...] = (
    (DiskError, "disk"),
    (StoreError, "store"),
    (ConfigError, "config"),
    (HomeError, "home"),
    (SessionError, "session"),
    (GitError, "git"),
)


class FailureReporter:
    def __init__(self, metrics: Metrics, log: Log) -> None:
        self._metrics, self._log = metrics, log

    def reply(self, name: str, error: BaseException, *, is_turn: bool = False) -> Reply:
        """`is_turn`: a host may show the text to anyone in the session, so only the log has details."""
        if isinstance(error, UsageError):
            # Without the message: it may quote the request.
            self._log.sometimes("warning", "usage", operation=name)
            return error_reply(400, "usage", _first_line(error))
        if isinstance(error, Busy):
            self._log.sometimes("warning", "held", operation=name)
            return error_reply(503, "busy", _first_line(error), RETRY_AFTER)
        if isinstance(error, TacitError):
            code = next((code for kind, code in _ERROR_CODES if isinstance(error, kind)), "failed")
            self._log.sometimes("error", code, operation=name, error=_first_line(error))
            text = (
                "The turn could not be compiled. See .tacit/daemon.log for why."
                if is_turn
                else _first_line(error)
            )
            return error_reply(500, code, text)
        if isinstance(error, OSError):
            self._log.sometimes(
                "error", "system", operation=name, error=error.strerror or type(error).__name__
            )
            return error_reply(
                500, "system", f"The operating system refused it: {error.strerror or 'no reason given'}."
            )
        reference = self.log_bug(name, error)
        return error_reply(
            500, "bug", f"An unexpected error happened. See .tacit/daemon.log, under {reference}."
        )

    def log_bug(self, name: str, error: BaseException) -> str:
        reference = secrets.token_hex(4)
        self._metrics.bugs.add()
        trace = "".join(traceback.format_exception(error))
        self._log.say("error", "bug", operation=name, reference=reference, trace=trace)
        return reference


def _first_line(error: TacitError) -> str:
    """The first line of its message: the lines after it are output of another program."""
    return clean(str(error).split("\n", 1)[0]).text[:500]

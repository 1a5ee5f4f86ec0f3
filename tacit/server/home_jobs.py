"""What the background jobs do: sessions, commits, learning, condensing, schedules.

Each job returns a text on what still waits and why; empty: all is done. `jobs.py` says when they run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tacit.errors import Busy
from tacit.operations.handlers import OperationContext
from tacit.server.log import Log
from tacit.topics.schedules import DueSchedule, find_due_topics

_MAX_CONVERSATIONS = 20  # conversations to learn from in one run, before other jobs get a turn


class HomeJobs:
    """`served` returns what the daemon serves now: it is replaced when the config changes."""

    def __init__(
        self, served: Callable[[], OperationContext], log: Log, is_stopping: Callable[[], bool]
    ) -> None:
        self._served, self._log, self._is_stopping = served, log, is_stopping
        self.due_topics: Sequence[DueSchedule] = ()
        self.due_total = 0  # topics that came due since the start
        self.due_problem = ""
        self._has_checked_notes = False

    # ------------------------------------------------------------ sessions

    def release_quiet(self) -> str:
        self._served().live.let_go_quiet()
        return ""

    def seal_idle(self) -> str:
        sealed = self._served().live.seal_idle()
        if sealed:
            self._log.say("info", "sealed_idle", sessions=len(sealed))
        return ""

    def commit_ended(self) -> str:
        outcome = self._served().live.commit_ended_sessions()
        if outcome is None:
            return ""
        if outcome.commits or outcome.sealed:
            self._log.say(
                "info", "committed", commits=len(outcome.commits), sealed_after_crash=len(outcome.sealed)
            )
        for problem in outcome.problems:
            self._log.say("warning", "problem", problem=problem)
        return outcome.waiting if self._served().memory.config.git.auto_commit else ""

    # ------------------------------------------------------------ notes

    def commit_interval(self) -> float:
        return self._served().memory.config.lifecycle.commit_interval_minutes * 60.0

    def commit_notes(self) -> str:
        """Commit changed notes, tag the day and the week. Soon after the start only if that is overdue."""
        memory, is_first = self._served().memory, not self._has_checked_notes
        self._has_checked_notes = True
        if not memory.config.git.auto_commit or (
            is_first and not memory.services.maintenance.is_commit_due()
        ):
            return ""
        outcome = memory.commit()
        if outcome.changed:
            self._log.say("info", "worked", commits=len(outcome.commits), tags=" ".join(outcome.tags))
        for problem in outcome.problems:
            self._log.say("warning", "problem", problem=problem)
        return outcome.waiting

    # ------------------------------------------------------------ the lifecycle

    def learn_interval(self) -> float:
        hourly = self._served().memory.config.lifecycle.extraction_trigger == "hourly"
        return 3600.0 if hourly else 5.0

    def _may_change_notes(self) -> bool:
        """Whether notes may change without a request."""
        config = self._served().memory.config
        return config.lifecycle.extraction_trigger != "manual" and config.git.auto_commit

    def learn(self) -> str:
        """Learn from ended conversations."""
        memory = self._served().memory
        if not self._may_change_notes():
            return ""
        try:
            result = memory.services.extractor.learn_pending(
                most=_MAX_CONVERSATIONS, is_over=self._is_stopping
            )
        except Busy:
            return ""  # another process is doing it
        drafts = (*result.drafts, *memory.services.inbox.take_offers())
        if result.sessions or drafts:
            self._log.say(
                "info", "learned", sessions=len(result.sessions), lines=len(result.added), drafts=len(drafts)
            )
        if result.failed:
            return f"{result.waiting} conversations are still to be learned from: {result.failed[0]}"
        return ""

    def condense(self) -> str:
        if not self._may_change_notes():
            return ""
        try:
            result = self._served().memory.services.condenser.condense_due()
        except Busy:
            return ""
        if result.periods or result.edits or result.drafts:
            self._log.say(
                "info",
                "condensed",
                periods=len(result.periods),
                notes=len(result.edits),
                drafts=len(result.drafts),
            )
        return result.waiting

    # ------------------------------------------------------------ schedules

    def check_schedules(self) -> str:
        known = {(due.topic.name, due.at) for due in self.due_topics}
        memory = self._served().memory
        now = memory.services.clock.local_now()
        topics = memory.services.turns.topics().topics
        self.due_topics, self.due_problem = find_due_topics(memory.home, topics, now)
        for due in self.due_topics:
            if (due.topic.name, due.at) not in known:
                self.due_total += 1
                self._log.say("info", "topic_due", topic=due.topic.name, at=due.at.isoformat())
        return ""

"""The background jobs of a daemon.

A follower keeps the index up to date with a Searcher of its own, so that no turn waits for indexing. All
other work is a table of jobs, run on a schedule by a few threads: `quick` for file access, `git` and `learn`
for work that may take long.

What must stay true:
- no job ends its thread: an error is logged, shown and retried, with growing pauses;
- setting the system clock changes nothing: jobs are timed by a monotonic clock;
- while the home is gone, nothing runs and nothing is created; when it is back, everything goes on.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import datetime
from typing import NamedTuple

from tacit.app import load_config, search_parts
from tacit.config import Config
from tacit.errors import HomeError, TacitError
from tacit.home.layout import Home
from tacit.home.listing import INDEXED
from tacit.memory import Memory
from tacit.operations.handlers import OperationContext, take_spooled
from tacit.search.home_index import IndexResult
from tacit.search.searcher import Searcher
from tacit.search.watcher import watch_home
from tacit.server.home_jobs import HomeJobs
from tacit.server.log import Log
from tacit.server.metrics import Metrics
from tacit.sessions.registry import boot_seconds
from tacit.transcripts import spool
from tacit.wire import Json

_MAX_WAIT_S = 1.0  # seconds between two checks of a thread for jobs that are due
_MAX_BACKOFF_S = 300.0  # seconds between two attempts of a job that fails
_FIRST_DRAIN_S = 10.0  # seconds for draining the spool before the daemon starts to answer
_DRAIN_BEFORE_S = 0.25  # seconds that draining may delay a new message
_FIRST_SCAN_PENDING = "the first look at the files is not done yet"  # not reported as a problem
_MIN_LOGGED_FILES = 100  # files indexed in one pass
_FIRST_COMMIT_DELAY_S = 60.0  # seconds after the start
_FIRST_LEARN_DELAY_S = 10.0


class BackgroundJob(NamedTuple):
    name: str
    every: Callable[[], float]  # seconds
    run: Callable[[], str]  # returns a text on what still waits and why; empty: all is done
    thread: str = "quick"
    first: float = 0.0  # seconds after the start


class JobState:
    """The state of a job: its schedule and how its last runs went."""

    def __init__(self, job: BackgroundJob, now: float) -> None:
        self.job = job
        self.next = now + job.first
        self.last: datetime | None = None
        self.seconds = 0.0
        self.runs = 0
        self.failures = 0  # in a row
        self.error = ""
        self.waiting = ""

    def pause(self) -> float:
        """Seconds until the next run; they double with every failure."""
        every = self.job.every()
        longer = every * 2.0 ** min(16, self.failures + bool(self.waiting))
        return max(every, min(_MAX_BACKOFF_S, longer))

    def as_value(self) -> Json:
        value: Json = {
            "runs": self.runs,
            "last": self.last.isoformat() if self.last else None,
            "seconds": round(self.seconds, 4),
        }
        if self.failures:
            value |= {"error": self.error, "failures": self.failures}
        return value | ({"waiting": self.waiting} if self.waiting else {})


class OutOfTime(Exception):
    """Draining ran out of time; the rest waits for the next run."""


class SpoolDrainer:
    """Takes the events that hosts spooled while no daemon ran, oldest first."""

    def __init__(
        self,
        served: Callable[[], OperationContext],
        log: Log,
        clock: Callable[[], float],
        is_stopping: Callable[[], bool],
    ) -> None:
        self._served, self._log, self._clock, self._is_stopping = served, log, clock, is_stopping
        self._root = served().memory.home.root
        self._lock = threading.Lock()
        self.taken = 0

    def drain_before(self) -> None:
        """Drain before a new message is kept: spooled messages are older. Both meet after the daemon hung or
        was not asked for a while. A new message does not wait for a long spool."""
        deadline = self._clock() + _DRAIN_BEFORE_S
        if spool.count_waiting(self._root) and self._lock.acquire(timeout=_DRAIN_BEFORE_S):
            try:
                self._drain_until(deadline)  # the job reports the error, if any
            finally:
                self._lock.release()

    def drain(self, deadline: float | None = None) -> str:
        with self._lock:
            drained = self._drain_until(deadline)
        if drained.stopped is not None and not isinstance(drained.stopped, OutOfTime):
            raise drained.stopped
        return ""

    def _drain_until(self, deadline: float | None) -> spool.DrainResult:
        def take(record: spool.SpooledEvent) -> None:
            if self._is_stopping() or (deadline is not None and self._clock() > deadline):
                raise OutOfTime
            take_spooled(self._served(), record)

        drained = spool.drain(self._root, take)
        self.taken += drained.taken
        if drained.taken or drained.aside:
            self._log.say("info", "drained", taken=drained.taken, aside=len(drained.aside))
        for reason in drained.aside[:10]:
            self._log.say("warning", "set_aside", why=reason)
        return drained


class JobRunner:
    def __init__(
        self,
        served: OperationContext,
        log: Log,
        *,
        reopened: Callable[[Config], Memory],
        changed: Callable[[Config], None] = lambda config: None,
        clock: Callable[[], float] = boot_seconds,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`reopened` opens the same home with another config, ready to answer. `changed` is called with each
        new config. `warn` shows a text to the operator even if the log is gone with the home."""
        self.served = served  # replaced when the config changes
        self._home: Home = served.memory.home
        self._log, self._open_memory, self._clock, self._warn = log, reopened, clock, warn
        self._on_config_change = changed
        self._server_settings = served.memory.config.serve  # the settings that the server started with
        self._stop = threading.Event()
        self._follower_restart = threading.Event()
        self._wake = {name: threading.Event() for name in ("quick", "git", "learn")}
        self._threads: list[threading.Thread] = []
        self._config_stamp = self._read_config_stamp()
        self._config_trouble = ""
        self._follow_trouble = _FIRST_SCAN_PENDING
        self._last_index_notes = ""  # notes of the last index update
        self._index_inode: int | None = None
        self._is_home_gone = False
        self._first_drain_deadline: float | None = None
        self.drainer = SpoolDrainer(lambda: self.served, log, clock, self._stop.is_set)
        self._home_jobs = HomeJobs(lambda: self.served, log, self._stop.is_set)
        self.jobs = [JobState(job, clock()) for job in self._make_jobs()]

    def _make_jobs(self) -> Iterator[BackgroundJob]:
        work = self._home_jobs
        yield BackgroundJob("config", lambda: 2.0, self._reload_if_changed)
        yield BackgroundJob("spool", lambda: 2.0, lambda: self.drainer.drain(self._first_drain_deadline))
        yield BackgroundJob("index", lambda: 2.0, self._check_index)
        yield BackgroundJob("let_go", lambda: 5.0, work.release_quiet)
        yield BackgroundJob("idle", lambda: 60.0, work.seal_idle)
        yield BackgroundJob("due", lambda: 30.0, work.check_schedules)
        yield BackgroundJob("commit", lambda: 2.0, work.commit_ended, "git")
        yield BackgroundJob("notes", work.commit_interval, work.commit_notes, "git", _FIRST_COMMIT_DELAY_S)
        yield BackgroundJob("learn", work.learn_interval, work.learn, "learn", _FIRST_LEARN_DELAY_S)
        yield BackgroundJob("condense", lambda: 60.0, work.condense, "learn", _FIRST_COMMIT_DELAY_S)

    # ------------------------------------------------------------ life

    def start(self) -> None:
        loops = {f"tacit-{name}": lambda name=name: self._run_thread(name) for name in self._wake}
        for name, loop in {**loops, "tacit-follow": self._follow_files}.items():
            thread = threading.Thread(target=loop, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self, seconds: float = 10.0) -> bool:
        """Stop all threads within this time, and return whether they did. Ended sessions are committed; open
        ones stay open."""
        self._stop.set()
        self._follower_restart.set()
        for event in self._wake.values():
            event.set()
        deadline = self._clock() + seconds
        for thread in self._threads:
            thread.join(max(0.0, deadline - self._clock()))
        late = [thread.name for thread in self._threads if thread.is_alive()]
        if late:
            self._log.say("warning", "work_stopped_early", threads=" ".join(late))
        self.served.live.close()
        return not late

    def reload(self) -> None:
        """Check the config now."""
        self._config_stamp = None
        self._run_soon("config")

    def _run_soon(self, name: str) -> None:
        for state in self.jobs:
            if state.job.name == name:
                state.next = 0.0
                self._wake[state.job.thread].set()

    def _run_thread(self, thread: str) -> None:
        states = [state for state in self.jobs if state.job.thread == thread]
        while not self._stop.is_set():
            for state in states:
                if state.next <= self._clock() and not self._stop.is_set():
                    self.run(state)
            soonest = min(state.next for state in states) - self._clock()
            self._wake[thread].wait(min(_MAX_WAIT_S, max(0.01, soonest)))
            self._wake[thread].clear()
        if thread == "git":
            self.run(next(state for state in states if state.job.name == "commit"))

    def run(self, ran: JobState) -> None:
        """Run one job now. If it fails, the others go on."""
        started = self._clock()
        ran.last = self.served.memory.services.clock.now()
        try:
            self._home.require()
            self._set_home_gone(gone=False)
            ran.waiting = ran.job.run()
        except HomeError as error:
            self._set_home_gone(gone=True)
            self._record_failure(ran, str(error), "")
        except (TacitError, OSError) as error:
            self._record_failure(ran, str(error), "")
        except Exception as error:  # noqa: BLE001 - the edge of a loop that must go on
            self._record_failure(ran, f"{type(error).__name__}: {error}", traceback.format_exc())
        else:
            if ran.failures:
                self._log.say("info", "job_recovered", job=ran.job.name, failures=ran.failures)
            ran.failures, ran.error = 0, ""
        ran.runs += 1
        ran.seconds = self._clock() - started
        ran.next = self._clock() + ran.pause()

    def _record_failure(self, state: JobState, error: str, trace: str) -> None:
        # The same error is logged only once: a full disk must not fill the log too.
        if error != state.error and not self._is_home_gone:
            self._log.say(
                "error", "job_failed", job=state.job.name, error=error, **({"trace": trace} if trace else {})
            )
        state.failures, state.error = state.failures + 1, error

    def _set_home_gone(self, *, gone: bool) -> None:
        if gone != self._is_home_gone:
            self._is_home_gone = gone
            self._log.say("error" if gone else "info", "home_gone" if gone else "home_back")
            self._warn(f"{self._home.root} is gone; nothing is kept until it is back." if gone else
                       f"{self._home.root} is back.")  # fmt: skip

    # ------------------------------------------------------------ following

    def _follow_files(self) -> None:
        while not self._stop.is_set():
            self._follower_restart.clear()
            memory = self.served.memory
            searcher = Searcher(self._home, search_parts(memory.config), memory.workspaces)
            try:
                stop = _EitherEvent(self._stop, self._follower_restart)
                root = str(self._home.root)
                for indexed in watch_home(
                    searcher, root, INDEXED, stop, self._update_follow_state, memory.workspaces
                ):
                    self._log_indexed(indexed)
            except Exception as error:  # noqa: BLE001 - the edge of a loop that must go on
                self._log.say("error", "following_failed", error=error, trace=traceback.format_exc())
                self._update_follow_state(f"following failed: {error}")
                self._stop.wait(10.0)
            finally:
                searcher.close()

    def _update_follow_state(self, trouble: str) -> None:
        """Called after every scan, so that a rebuilt index counts as followed again."""
        present = self.served.memory.services.turns.present
        if not trouble:
            present.refresh()
        present.is_watched = not trouble
        if trouble != self._follow_trouble:
            self._follow_trouble = trouble
            self._log.say("warning" if trouble else "info", "following", trouble=trouble)

    def _log_indexed(self, indexed: IndexResult) -> None:
        """Log only unusual updates, and each only once: every message changes a file."""
        report, notes = indexed.report, "; ".join(indexed.notes)
        if report.read + report.gone >= _MIN_LOGGED_FILES or report.failed or notes != self._last_index_notes:
            self._log.say(
                "warning" if notes else "info",
                "indexed",
                read=report.read,
                gone=report.gone,
                failed=len(report.failed),
                odd=notes,
            )
        self._last_index_notes = notes

    def _check_index(self) -> str:
        """Log that the index is gone or new. Anyone who needs it rebuilds it from the files."""
        previous, self._index_inode = self._index_inode, self.served.memory.services.searcher.inode()
        if previous is not None and previous != self._index_inode:
            self._log.say("warning", "index_gone" if self._index_inode < 0 else "index_anew")
        return ""

    @property
    def is_followed(self) -> bool:
        return not self._follow_trouble

    # ------------------------------------------------------------ the config

    def _read_config_stamp(self) -> tuple[int, int, int] | None:
        try:
            info = self._home.config.stat()
        except OSError:
            return None
        return info.st_mtime_ns, info.st_size, info.st_ino

    def _reload_if_changed(self) -> str:
        """Load a changed config. If it is broken, keep the current one and report the error."""
        stamp = self._read_config_stamp()
        if stamp != self._config_stamp:
            self._config_stamp = stamp
            try:
                config = load_config(self._home).config
            except TacitError as error:
                self._config_trouble = f"{error} Until it is mended, the settings from before hold."
                self._log.say("error", "config_broken", error=error)
                self._warn(self._config_trouble)
                return ""
            self._config_trouble = ""
            if config != self.served.memory.config:
                self._replace_memory(config)
        return ""

    def _replace_memory(self, config: Config) -> None:
        old = self.served.memory
        new = self._open_memory(config)
        is_same = (config.search, config.workspaces) == (old.config.search, old.config.workspaces)
        new.services.turns.present.is_watched = self.is_followed and is_same
        self.served.live.use(new.services)
        self.served = OperationContext(new, self.served.live)
        if not is_same:
            self._follow_trouble = _FIRST_SCAN_PENDING
            self._follower_restart.set()
        old.services.close()
        self._on_config_change(config)
        self._log.say("info", "config_reloaded", waits=" ".join(self._settings_awaiting_restart()))

    def _settings_awaiting_restart(self) -> list[str]:
        """Changed settings that take effect only when the server restarts."""
        current = self.served.memory.config.serve
        names = [setting.name for setting in fields(current)]
        return [
            f"serve.{name}"
            for name in names
            if getattr(current, name) != getattr(self._server_settings, name)
        ]

    # ------------------------------------------------------------ the spool

    def drain_first(self) -> None:
        """Drain the spool before the first request is answered, so that messages keep their order."""
        self._first_drain_deadline = self._clock() + _FIRST_DRAIN_S
        self.run(next(state for state in self.jobs if state.job.name == "spool"))
        self._first_drain_deadline = None

    # ------------------------------------------------------------ reports

    def about(self) -> Json:
        """For /v1/health and `tacit status`."""
        config = self.served.memory.config
        return {
            "jobs": {state.job.name: state.as_value() for state in self.jobs},
            "followed": self.is_followed,
            "spool": spool.count_waiting(self._home.root),
            "due": len(self._home_jobs.due_topics),
            "inject": {
                "enabled": config.inject.enabled,
                "exclude_agents": list(config.inject.exclude_agents),
                "lanes": list(config.inject.lanes),
            },
            "capture": {
                "enabled": config.capture.enabled,
                "exclude_agents": list(config.capture.exclude_agents),
            },
            "memory": {"read_only": config.memory.read_only},
            "problems": self.problems(),
        }

    def note_skip(self, asked: Json, began: int, code: str, reason: str) -> None:
        """Note that a turn got an empty answer."""
        self.served.memory.services.turns.note_skip(asked, began, code, reason)

    def problems(self) -> list[str]:
        """The problems that an operator should know, as texts."""
        if self._is_home_gone:
            return [f"There is no home at {self._home.root} any more. It goes on when it is back."]
        problems = [self._config_trouble] if self._config_trouble else []
        if waits := self._settings_awaiting_restart():
            names = ", ".join(waits)
            problems.append(f"In force only after a restart (tacit stop, then tacit serve): {names}.")
        problems += [f"The workspace {missing}." for missing in self.served.memory.workspaces.missing()]
        if self._follow_trouble not in ("", _FIRST_SCAN_PENDING):
            problems.append(
                f"Files are not followed, so turns look for changes themselves: {self._follow_trouble}."
            )
        problems += [
            f"The job {state.job.name} fails: {state.error}" for state in self.jobs if state.failures
        ]
        problems += [
            f"The job {state.job.name} waits: {state.waiting}." for state in self.jobs if state.waiting
        ]
        if aside := spool.report_quarantined(self._home.root):
            problems.append(aside)
        return problems + ([self._home_jobs.due_problem] if self._home_jobs.due_problem else [])

    def measure(self, metrics: Metrics) -> None:
        def of_jobs(value: Callable[[JobState], float]) -> Callable[[], dict[str, float]]:
            return lambda: {state.job.name: value(state) for state in self.jobs}

        gauge = metrics.gauge
        gauge(
            "tacit_job_runs", "Runs of each job.", of_jobs(lambda state: state.runs), label="job", quick=True
        )
        gauge("tacit_job_seconds", "How long the last run of each job took.",
             of_jobs(lambda state: state.seconds), label="job", quick=True)  # fmt: skip
        gauge("tacit_job_failures", "Failures of each job in a row.",
             of_jobs(lambda state: state.failures), label="job", quick=True)  # fmt: skip
        gauge("tacit_followed", "Whether changes of files are followed.",
             lambda: float(self.is_followed), quick=True)  # fmt: skip
        gauge("tacit_spool_waiting", "Records in the spool.", lambda: spool.count_waiting(self._home.root))
        gauge("tacit_spool_taken", "Records taken from the spool.", lambda: self.drainer.taken, quick=True)
        gauge(
            "tacit_topics_due",
            "Topics that came due and wait.",
            lambda: len(self._home_jobs.due_topics),
            quick=True,
        )
        gauge("tacit_topics_came_due", "Topics that came due.", lambda: self._home_jobs.due_total, quick=True)


class _EitherEvent(threading.Event):
    """Set when one of the events is set."""

    def __init__(self, *events: threading.Event) -> None:
        super().__init__()
        self._events = events

    def is_set(self) -> bool:
        return any(event.is_set() for event in self._events)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the first event only; the others are noticed within a second."""
        return self._events[0].wait(timeout) or self.is_set()

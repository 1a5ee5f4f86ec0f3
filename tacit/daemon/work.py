"""class Work: what a daemon does beside answering.

A follower keeps the index true, with a Searcher of its own, so that no turn waits for indexing. Everything
else is a table of jobs, run now and then by two threads: `quick` for what touches files, `git` for what may
take long.

What must stay true:
- no job ends its thread: what it raises is logged, shown and tried again, later each time;
- a clock that somebody sets changes nothing: jobs are timed by one that cannot be set;
- where the home is gone nothing is done and nothing is made; when it is back, everything goes on.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from typing import NamedTuple

from tacit.api import Served, take_spooled
from tacit.app import load_config, parts_of
from tacit.config import Config
from tacit.daemon.log import Log
from tacit.daemon.metrics import Metrics
from tacit.errors import Busy, HomeError, TacitError
from tacit.memory import Memory
from tacit.memory.learning import learn_pending
from tacit.memory.lifecycle import condense_due
from tacit.memory.live import steady
from tacit.memory.offers import take_offers
from tacit.memory.schedules import came_due
from tacit.search.follow import follow
from tacit.search.searcher import Indexed, Searcher
from tacit.store import spool
from tacit.store.home import Home
from tacit.store.listing import INDEXED
from tacit.text.wire import Json
from tacit.watch.due import Due

_WAIT = 1.0  # seconds after which a thread looks again which job has its time
_LONGEST_PAUSE = 300.0  # seconds between two tries of a job that fails
_FIRST_DRAIN = 10.0  # seconds that what was spooled may take before the daemon answers
_DRAIN_BEFORE = 0.25  # seconds that it may hold up what is said now
_NOT_YET = "the first look at the files is not done yet"  # and that is no problem
_MANY = 100  # files that are indexed at once
_FIRST_NOTES = 60.0  # seconds after the start
_FIRST_LEARNING = 10.0
_AT_ONCE = 20  # conversations that are learned from before anything else is looked at


class Job(NamedTuple):
    name: str
    every: Callable[[], float]  # seconds
    run: Callable[[], str]  # returns what still waits and why, in words; empty: all is done
    thread: str = "quick"
    first: float = 0.0  # seconds after the start


class Ran:
    """How a job went."""

    def __init__(self, job: Job, now: float) -> None:
        self.job = job
        self.next = now + job.first
        self.last: datetime | None = None
        self.seconds = 0.0
        self.runs = 0
        self.failures = 0  # in a row
        self.error = ""
        self.waiting = ""

    def pause(self) -> float:
        """Until the next time: longer with every failure."""
        every = self.job.every()
        longer = every * 2.0 ** min(16, self.failures + bool(self.waiting))
        return max(every, min(_LONGEST_PAUSE, longer))

    def as_value(self) -> Json:
        value: Json = {
            "runs": self.runs,
            "last": self.last.isoformat() if self.last else None,
            "seconds": round(self.seconds, 4),
        }
        if self.failures:
            value |= {"error": self.error, "failures": self.failures}
        return value | ({"waiting": self.waiting} if self.waiting else {})


class Enough(Exception):
    """The time for it is over; the rest is for the next time."""


class Work:
    def __init__(
        self,
        served: Served,
        log: Log,
        *,
        reopened: Callable[[Config], Memory],
        changed: Callable[[Config], None] = lambda config: None,
        clock: Callable[[], float] = steady,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`reopened`: the same home with another config, ready to answer. `changed`: told of a config that is
        in force from now on. `warn`: for what an operator must see, also where the log is gone with the
        home."""
        self.served = served  # replaced when the config changes
        self._home: Home = served.memory.home
        self._log, self._reopened, self._clock, self._warn = log, reopened, clock, warn
        self._changed = changed
        self._serve = served.memory.config.serve  # as the server was made
        self._stop = threading.Event()
        self._turn_follower = threading.Event()
        self._wake = {name: threading.Event() for name in ("quick", "git", "learn")}
        self._threads: list[threading.Thread] = []
        self._config_stamp = self._stamp()
        self._config_trouble = ""
        self._following = _NOT_YET
        self._odd = ""  # what was out of the ordinary when the index was last brought up to date
        self._index_seen: int | None = None
        self._is_gone = False
        self._due: Sequence[Due] = ()
        self._due_total = 0
        self._due_doubt = ""
        self._taken = 0
        self._draining = threading.Lock()
        self._drain_until: float | None = None
        self._noted = False
        self.jobs = [Ran(job, clock()) for job in self._table()]

    def _table(self) -> Iterator[Job]:
        yield Job("config", lambda: 2.0, self._reload_if_changed)
        yield Job("spool", lambda: 2.0, self._drain)
        yield Job("index", lambda: 2.0, self._look_at_index)
        yield Job("let_go", lambda: 5.0, self._let_go)
        yield Job("idle", lambda: 60.0, self._seal_idle)
        yield Job("due", lambda: 30.0, self._look_what_is_due)
        yield Job("commit", lambda: 2.0, self._commit_ended, "git")
        yield Job("notes", self._interval, self._commit_notes, "git", _FIRST_NOTES)
        yield Job("learn", self._learn_interval, self._learn, "learn", _FIRST_LEARNING)
        yield Job("condense", lambda: 60.0, self._condense, "learn", _FIRST_NOTES)

    # ------------------------------------------------------------ life

    def start(self) -> None:
        loops = {f"tacit-{name}": lambda name=name: self._loop(name) for name in self._wake}
        for name, loop in {**loops, "tacit-follow": self._follow_on}.items():
            thread = threading.Thread(target=loop, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self, seconds: float = 10.0) -> bool:
        """Finish: no session is sealed, what was ended is committed, within this time. Whether it was."""
        self._stop.set()
        self._turn_follower.set()
        for event in self._wake.values():
            event.set()
        until = self._clock() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - self._clock()))
        late = [thread.name for thread in self._threads if thread.is_alive()]
        if late:
            self._log.say("warning", "work_stopped_early", threads=" ".join(late))
        self.served.live.close()
        return not late

    def reload(self) -> None:
        """Look at the config now."""
        self._config_stamp = None
        self._now("config")

    def _now(self, name: str) -> None:
        for ran in self.jobs:
            if ran.job.name == name:
                ran.next = 0.0
                self._wake[ran.job.thread].set()

    def _loop(self, thread: str) -> None:
        mine = [ran for ran in self.jobs if ran.job.thread == thread]
        while not self._stop.is_set():
            for ran in mine:
                if ran.next <= self._clock() and not self._stop.is_set():
                    self.run(ran)
            soonest = min(ran.next for ran in mine) - self._clock()
            self._wake[thread].wait(min(_WAIT, max(0.01, soonest)))
            self._wake[thread].clear()
        if thread == "git":
            self.run(next(ran for ran in mine if ran.job.name == "commit"))

    def run(self, ran: Ran) -> None:
        """One job, now. Whatever happens in it, the others go on."""
        begun = self._clock()
        ran.last = self.served.memory.moment()
        try:
            self._home.require()
            self._home_is(gone=False)
            ran.waiting = ran.job.run()
        except HomeError as error:
            self._home_is(gone=True)
            self._failed(ran, str(error), "")
        except (TacitError, OSError) as error:
            self._failed(ran, str(error), "")
        except Exception as error:  # noqa: BLE001 - the edge of a loop that must go on
            self._failed(ran, f"{type(error).__name__}: {error}", traceback.format_exc())
        else:
            if ran.failures:
                self._log.say("info", "job_recovered", job=ran.job.name, failures=ran.failures)
            ran.failures, ran.error = 0, ""
        ran.runs += 1
        ran.seconds = self._clock() - begun
        ran.next = self._clock() + ran.pause()

    def _failed(self, ran: Ran, error: str, trace: str) -> None:
        # The same again is not said again: a full disk must not fill the log too.
        if error != ran.error and not self._is_gone:
            self._log.say(
                "error", "job_failed", job=ran.job.name, error=error, **({"trace": trace} if trace else {})
            )
        ran.failures, ran.error = ran.failures + 1, error

    def _home_is(self, *, gone: bool) -> None:
        if gone != self._is_gone:
            self._is_gone = gone
            self._log.say("error" if gone else "info", "home_gone" if gone else "home_back")
            self._warn(f"{self._home.root} is gone; nothing is kept until it is back." if gone else
                       f"{self._home.root} is back.")  # fmt: skip

    # ------------------------------------------------------------ following

    def _follow_on(self) -> None:
        while not self._stop.is_set():
            self._turn_follower.clear()
            memory = self.served.memory
            searcher = Searcher(self._home, parts_of(memory.config), memory.workspaces)
            try:
                stop = _Either(self._stop, self._turn_follower)
                root = str(self._home.root)
                for done in follow(searcher, root, INDEXED, stop, self._looked, memory.workspaces):
                    self._indexed(done)
            except Exception as error:  # noqa: BLE001 - the edge of a loop that must go on
                self._log.say("error", "following_failed", error=error, trace=traceback.format_exc())
                self._looked(f"following failed: {error}")
                self._stop.wait(10.0)
            finally:
                searcher.close()

    def _looked(self, trouble: str) -> None:
        """Called after every look, so that an index that was made anew counts as followed again."""
        present = self.served.memory.turns.present
        if not trouble:
            present.refresh()
        present.followed = not trouble
        if trouble != self._following:
            self._following = trouble
            self._log.say("warning" if trouble else "info", "following", trouble=trouble)

    def _indexed(self, done: Indexed) -> None:
        """Every message changes a file; only what is out of the ordinary is worth a line, and once."""
        report, odd = done.report, "; ".join(done.notes)
        if report.read + report.gone >= _MANY or report.failed or odd != self._odd:
            self._log.say(
                "warning" if odd else "info",
                "indexed",
                read=report.read,
                gone=report.gone,
                failed=len(report.failed),
                odd=odd,
            )
        self._odd = odd

    def _look_at_index(self) -> str:
        """Whoever needs the index makes it anew from the files, a turn as well; here it is only said."""
        was, self._index_seen = self._index_seen, self.served.memory.searcher.inode()
        if was is not None and was != self._index_seen:
            self._log.say("warning", "index_gone" if self._index_seen < 0 else "index_anew")
        return ""

    @property
    def is_followed(self) -> bool:
        return not self._following

    # ------------------------------------------------------------ the config

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            info = self._home.config.stat()
        except OSError:
            return None
        return info.st_mtime_ns, info.st_size, info.st_ino

    def _reload_if_changed(self) -> str:
        """A broken file changes nothing: what was in force stays so, and it is said."""
        stamp = self._stamp()
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
                self._swap(config)
        return ""

    def _swap(self, config: Config) -> None:
        old = self.served.memory
        new = self._reopened(config)
        is_same = (config.search, config.workspaces) == (old.config.search, old.config.workspaces)
        new.turns.present.followed = self.is_followed and is_same
        self.served.live.use(new)
        self.served = Served(new, self.served.live)
        if not is_same:
            self._following = _NOT_YET
            self._turn_follower.set()
        if "searcher" in old.__dict__:
            old.searcher.close()
        self._changed(config)
        self._log.say("info", "config_reloaded", waits=" ".join(self._wait_for_restart()))

    def _wait_for_restart(self) -> list[str]:
        """Settings that were changed, and that the server is made of."""
        now = self.served.memory.config.serve
        names = [one.name for one in fields(now)]
        return [f"serve.{name}" for name in names if getattr(now, name) != getattr(self._serve, name)]

    # ------------------------------------------------------------ what hosts left in the spool

    def drain_first(self) -> None:
        """Before anything is answered, so that what was said first is kept first."""
        self._drain_until = self._clock() + _FIRST_DRAIN
        self.run(next(ran for ran in self.jobs if ran.job.name == "spool"))
        self._drain_until = None

    def drain_before(self) -> None:
        """What waits was said before what comes now: a daemon that hung, or that was not asked for a while,
        meets both. Where that is much, what comes now does not wait for all of it."""
        until = self._clock() + _DRAIN_BEFORE
        if spool.waiting(self._home.root) and self._draining.acquire(timeout=_DRAIN_BEFORE):
            try:
                self._drained(until)  # what stops it is told by the job
            finally:
                self._draining.release()

    def _drain(self) -> str:
        with self._draining:
            done = self._drained(self._drain_until)
        if done.stopped is not None and not isinstance(done.stopped, Enough):
            raise done.stopped
        return ""

    def _drained(self, until: float | None) -> spool.Drained:
        def take(record: spool.Record) -> None:
            if self._stop.is_set() or (until is not None and self._clock() > until):
                raise Enough
            take_spooled(self.served, record)

        done = spool.drain(self._home.root, take)
        self._taken += done.taken
        if done.taken or done.aside:
            self._log.say("info", "drained", taken=done.taken, aside=len(done.aside))
        for why in done.aside[:10]:
            self._log.say("warning", "set_aside", why=why)
        return done

    # ------------------------------------------------------------ sessions

    def _let_go(self) -> str:
        self.served.live.let_go_quiet()
        return ""

    def _seal_idle(self) -> str:
        sealed = self.served.live.seal_idle()
        if sealed:
            self._log.say("info", "sealed_idle", sessions=len(sealed))
        return ""

    def _commit_ended(self) -> str:
        done = self.served.live.commit_ended()
        if done is None:
            return ""
        if done.commits or done.sealed:
            self._log.say("info", "committed", commits=len(done.commits), sealed_after_crash=len(done.sealed))
        for problem in done.problems:
            self._log.say("warning", "problem", problem=problem)
        return done.waiting if self.served.memory.config.git.auto_commit else ""

    # ------------------------------------------------------------ notes

    def _interval(self) -> float:
        return self.served.memory.config.lifecycle.commit_interval_minutes * 60.0

    def _commit_notes(self) -> str:
        """Commit what changed, tag the day and the week. Soon after the start only if that is overdue."""
        memory, is_first = self.served.memory, not self._noted
        self._noted = True
        if not memory.config.git.auto_commit or (is_first and not memory.commit_due()):
            return ""
        done = memory.commit()
        if done.changed:
            self._log.say("info", "worked", commits=len(done.commits), tags=" ".join(done.tags))
        for problem in done.problems:
            self._log.say("warning", "problem", problem=problem)
        return done.waiting

    # ------------------------------------------------------------ the lifecycle

    def _learn_interval(self) -> float:
        hourly = self.served.memory.config.lifecycle.extraction_trigger == "hourly"
        return 3600.0 if hourly else 5.0

    def _lives(self) -> bool:
        """Whether notes may change without anybody asking."""
        config = self.served.memory.config
        return config.lifecycle.extraction_trigger != "manual" and config.git.auto_commit

    def _learn(self) -> str:
        """What ended conversations leave behind."""
        memory = self.served.memory
        if not self._lives():
            return ""
        try:
            done = learn_pending(memory, most=_AT_ONCE, is_over=self._stop.is_set)
        except Busy:
            return ""  # another process is at it
        drafts = (*done.drafts, *take_offers(memory))
        if done.sessions or drafts:
            self._log.say(
                "info", "learned", sessions=len(done.sessions), lines=len(done.added), drafts=len(drafts)
            )
        if done.failed:
            return f"{done.waiting} conversations are still to be learned from: {done.failed[0]}"
        return ""

    def _condense(self) -> str:
        if not self._lives():
            return ""
        try:
            done = condense_due(self.served.memory)
        except Busy:
            return ""
        if done.periods or done.edits or done.drafts:
            self._log.say(
                "info", "condensed", periods=len(done.periods), notes=len(done.edits), drafts=len(done.drafts)
            )
        return done.waiting

    # ------------------------------------------------------------ schedules

    def _look_what_is_due(self) -> str:
        known = {(one.topic.name, one.at) for one in self._due}
        self._due, self._due_doubt = came_due(self.served.memory)
        for one in self._due:
            if (one.topic.name, one.at) not in known:
                self._due_total += 1
                self._log.say("info", "topic_due", topic=one.topic.name, at=one.at.isoformat())
        return ""

    # ------------------------------------------------------------ what others are told

    def about(self) -> Json:
        """For /v1/health and `tacit status`."""
        config = self.served.memory.config
        return {
            "jobs": {ran.job.name: ran.as_value() for ran in self.jobs},
            "followed": self.is_followed,
            "spool": spool.waiting(self._home.root),
            "due": len(self._due),
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

    def skipped(self, asked: Json, began: int, code: str, reason: str) -> None:
        """A turn was answered with nothing, on the home as it is now."""
        self.served.memory.turns.skipped(asked, began, code, reason)

    def problems(self) -> list[str]:
        """What an operator should know, in words."""
        if self._is_gone:
            return [f"There is no home at {self._home.root} any more. It goes on when it is back."]
        found = [self._config_trouble] if self._config_trouble else []
        if waits := self._wait_for_restart():
            names = ", ".join(waits)
            found.append(f"In force only after a restart (tacit stop, then tacit serve): {names}.")
        found += [f"The workspace {missing}." for missing in self.served.memory.workspaces.missing()]
        if self._following not in ("", _NOT_YET):
            found.append(f"Files are not followed, so turns look for changes themselves: {self._following}.")
        found += [f"The job {ran.job.name} fails: {ran.error}" for ran in self.jobs if ran.failures]
        found += [f"The job {ran.job.name} waits: {ran.waiting}." for ran in self.jobs if ran.waiting]
        if aside := spool.set_aside(self._home.root):
            found.append(f"{aside} spooled records could not be taken. See .tacit/spool/{spool.ASIDE}.")
        return found + ([self._due_doubt] if self._due_doubt else [])

    def measure(self, metrics: Metrics) -> None:
        def of_jobs(value: Callable[[Ran], float]) -> Callable[[], dict[str, float]]:
            return lambda: {ran.job.name: value(ran) for ran in self.jobs}

        tell = metrics.gauge
        tell("tacit_job_runs", "Runs of each job.", of_jobs(lambda ran: ran.runs), label="job", quick=True)
        tell("tacit_job_seconds", "How long the last run of each job took.",
             of_jobs(lambda ran: ran.seconds), label="job", quick=True)  # fmt: skip
        tell("tacit_job_failures", "Failures of each job in a row.",
             of_jobs(lambda ran: ran.failures), label="job", quick=True)  # fmt: skip
        tell("tacit_followed", "Whether changes of files are followed.",
             lambda: float(self.is_followed), quick=True)  # fmt: skip
        tell("tacit_spool_waiting", "Records in the spool.", lambda: spool.waiting(self._home.root))
        tell("tacit_spool_taken", "Records taken from the spool.", lambda: self._taken, quick=True)
        tell("tacit_topics_due", "Topics that came due and wait.", lambda: len(self._due), quick=True)
        tell("tacit_topics_came_due", "Topics that came due.", lambda: self._due_total, quick=True)


class _Either(threading.Event):
    """Set when one of the two is."""

    def __init__(self, *events: threading.Event) -> None:
        super().__init__()
        self._events = events

    def is_set(self) -> bool:
        return any(event.is_set() for event in self._events)

    def wait(self, timeout: float | None = None) -> bool:
        """Only the first one is waited for; the other one is seen within a second."""
        return self._events[0].wait(timeout) or self.is_set()

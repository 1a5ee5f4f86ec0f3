"""What a daemon does beside answering: everything in its time, and no trouble stops the rest."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tacit.app import create_memory
from tacit.config import Config
from tacit.errors import UsageError
from tacit.home.files import hold_lock
from tacit.home.layout import CONFIG, Home
from tacit.llm.chat import ChatError
from tacit.memory import Memory
from tacit.operations.handlers import HANDLERS, OperationContext
from tacit.search.searcher import Searcher
from tacit.server.jobs import BackgroundJob, JobRunner, JobState
from tacit.server.log import Log
from tacit.server.metrics import Metrics
from tacit.sessions.live_sessions import SessionRef
from tacit.sessions.registry import SessionRegistry
from tacit.transcripts import spool
from tests.conftest import GitLog, eventually
from tests.memory.homes import opened, write

PATIENCE = 60.0
TOPIC = (
    "---\ntriggers:\n  - type: cron\n    schedule: '0 8 * * *'\nactivation: auto\n---\n"
    "# Morning\n\nSay good morning.\n"
)


class Clock:
    def __init__(self) -> None:
        self.wall, self.steady = datetime(2026, 3, 10, 9, 30, tzinfo=UTC), 1000.0

    def pass_by(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.steady += seconds


class At:
    """Work on a home, with everything that it can be asked about."""

    def __init__(self, home: Path) -> None:
        self.clock = Clock()
        self.home = home
        self.warned: list[str] = []
        memory = opened(home, self._now)
        self.live = SessionRegistry(memory.services, clock=lambda: self.clock.steady)
        self.work = JobRunner(
            OperationContext(memory, self.live),
            Log(home / ".tacit/daemon.log"),
            reopened=self._reopened,
            clock=lambda: self.clock.steady,
            warn=self.warned.append,
        )

    def _now(self) -> datetime:
        return self.clock.wall

    def _reopened(self, config: Config) -> Memory:
        return create_memory(Home(self.home), config, self._now)

    def run(self, name: str) -> JobState:
        ran = next(ran for ran in self.work.jobs if ran.job.name == name)
        self.work.run(ran)
        return ran

    def logged(self, event: str) -> list[dict[str, object]]:
        lines = [json.loads(line) for line in (self.home / ".tacit/daemon.log").read_text().splitlines()]
        return [line for line in lines if line["event"] == event]


@pytest.fixture
def at(home: Path) -> Iterator[At]:
    (home / CONFIG).write_text("timezone: UTC\n")
    made = At(home)
    yield made
    made.work.stop(PATIENCE)


# ---------------------------------------------------------------- jobs


def test_a_job_that_fails_is_told_tried_later_each_time_and_recovers(at: At) -> None:
    broken = True

    def job() -> str:
        if broken:
            raise UsageError("no")
        return ""

    ran = JobState(BackgroundJob("mine", lambda: 2.0, job), at.clock.steady)
    at.work.jobs.append(ran)
    pauses = []
    for _ in range(12):
        at.work.run(ran)
        pauses.append(ran.next - at.clock.steady)
    assert pauses[:4] == [4.0, 8.0, 16.0, 32.0]
    assert max(pauses) == 300.0
    assert len(at.logged("job_failed")) == 1  # the same again is not said again
    assert at.work.about()["jobs"]["mine"]["error"] == "no"
    assert any("mine" in problem for problem in at.work.problems())
    broken = False
    at.work.run(ran)
    assert ran.next - at.clock.steady == 2.0
    assert at.logged("job_recovered")[0]["failures"] == 12
    assert at.work.about()["jobs"]["mine"].keys() == {"runs", "last", "seconds"}


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), OSError(28, "No space left"), RecursionError()])
def test_whatever_a_job_raises_its_thread_goes_on(at: At, error: Exception) -> None:
    runs = []

    def job() -> str:
        runs.append(1)
        raise error

    at.work.jobs.append(JobState(BackgroundJob("mine", lambda: 0.01, job), at.clock.steady))
    at.clock.pass_by(1)
    at.work.start()

    def moved_on() -> bool:
        at.clock.pass_by(400)
        return len(runs) >= 3

    assert eventually(moved_on)
    assert at.work.stop(PATIENCE)


def test_jobs_are_timed_by_a_clock_that_nobody_can_set(at: At) -> None:
    ran = at.run("idle")
    due = ran.next
    at.clock.wall += timedelta(days=3653)
    assert ran.next == due
    assert due == at.clock.steady + 60.0
    assert at.run("idle").next == due


def test_a_long_job_of_git_does_not_hold_up_the_quick_ones(at: At) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def job() -> str:
        begun.set()
        go_on.wait(PATIENCE)
        return ""

    at.work.jobs.append(JobState(BackgroundJob("slow", lambda: 60.0, job, "git"), at.clock.steady))
    at.work.start()
    assert begun.wait(PATIENCE)
    spool.add(at.home, "message", {"text": "hello"})
    at.clock.pass_by(5)
    assert eventually(lambda: spool.count_waiting(at.home) == 0)
    go_on.set()


def test_what_jobs_did_is_in_the_metrics(at: At) -> None:
    metrics = Metrics()
    at.work.measure(metrics)
    at.run("spool")
    text = metrics.text()
    assert 'tacit_job_runs{job="spool"} 1\n' in text
    assert 'tacit_job_failures{job="notes"} 0\n' in text
    assert "tacit_spool_waiting 0\n" in text
    assert "tacit_followed 0\n" in text


# ---------------------------------------------------------------- sessions and notes


def test_what_ended_is_committed_and_idle_sessions_are_sealed(at: At, git_log: GitLog) -> None:
    at.live.message(SessionRef(session_id="a"), "user", "hello")
    at.live.message(SessionRef(session_id="b"), "user", "hello")
    at.live.end(SessionRef(session_id="a"))
    at.run("commit")
    assert git_log()[0].subject == "conversation: hello"
    before = len(git_log())
    at.run("idle")
    at.clock.pass_by(13 * 3600)
    at.run("idle")
    at.run("commit")
    assert len(git_log()) == before + 1
    assert at.work.served.memory.services.conversations.list_open() == []


def test_notes_are_committed_when_they_are_due_and_then_every_interval(at: At, git_log: GitLog) -> None:
    notes = next(ran for ran in at.work.jobs if ran.job.name == "notes")
    assert notes.next == at.clock.steady + 60
    at.clock.wall = datetime.now(UTC)
    write(at.home, "knowledge/reference/new.md", "A zebra.\n")
    at.run("notes")  # `tacit init` committed just now
    assert "reference/new.md" not in str(git_log())
    assert notes.next == at.clock.steady + 30 * 60
    at.run("notes")
    assert "reference/new.md" in str(git_log())


def test_what_ended_conversations_taught_is_learned_and_the_day_is_condensed(at: At, git_log: GitLog) -> None:
    at.live.message(SessionRef(session_id="a"), "user", "We decided to fire the plates at 1,215 degrees.")
    at.live.end(SessionRef(session_id="a"))
    at.run("commit")
    assert at.run("learn").waiting == ""
    assert "1,215" in (at.home / "knowledge/memory/MEMORY.md").read_text()
    assert git_log()[0].trailer("Learned")
    assert at.logged("learned")[0]["lines"] == 1
    at.run("condense")
    assert not at.logged("condensed")
    at.clock.pass_by(24 * 3600)
    at.run("condense")
    assert at.logged("condensed")
    assert "Condensed: day 2026-03-10" in git_log("-1")[0].message
    commits = len(git_log())
    at.run("learn")
    at.run("condense")
    assert len(git_log()) == commits


def test_where_it_is_a_persons_to_ask_for_nothing_is_learned(at: At, git_log: GitLog) -> None:
    at.work.stop(PATIENCE)
    (at.home / CONFIG).write_text("timezone: UTC\nlifecycle: {extraction_trigger: manual}\n")
    by_hand = At(at.home)
    by_hand.live.message(
        SessionRef(session_id="a"), "user", "We decided to fire the plates at 1,215 degrees."
    )
    by_hand.live.end(SessionRef(session_id="a"))
    by_hand.run("commit")
    by_hand.run("learn")
    assert "1,215" not in (at.home / "knowledge/memory/MEMORY.md").read_text()
    by_hand.work.stop(PATIENCE)


def test_learning_that_another_process_does_is_no_failure(at: At) -> None:
    with hold_lock(at.home / ".tacit/lifecycle.lock"):
        assert at.run("learn").failures == 0


def test_a_provider_that_is_down_is_told_and_tried_again(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(task: str) -> Any:
        def ask(*_: object) -> Any:
            raise ChatError("The provider does not answer. Try again later.")

        return ask

    monkeypatch.setattr(at.work.served.memory.services.extractor, "_ask", down)
    at.live.message(SessionRef(session_id="a"), "user", "We decided to fire the plates at 1,215 degrees.")
    at.live.end(SessionRef(session_id="a"))
    at.run("commit")
    assert "1 conversations are still to be learned from" in at.run("learn").waiting
    assert any("does not answer" in problem for problem in at.work.problems())
    monkeypatch.setattr(at.work.served.memory.services.extractor, "_ask", lambda task: None)
    assert at.run("learn").waiting == ""
    assert "1,215" in (at.home / "knowledge/memory/MEMORY.md").read_text()


def test_without_auto_commit_nobody_commits(home: Path, git_log: GitLog) -> None:
    (home / CONFIG).write_text("git:\n  auto_commit: false\n")
    at = At(home)
    before = len(git_log())
    write(home, "knowledge/reference/new.md", "A zebra.\n")
    at.live.message(SessionRef(), "user", "hello")
    at.live.end(SessionRef())
    for _ in range(2):
        at.run("notes")
        at.run("commit")
    assert len(git_log()) == before
    assert at.work.problems() == []
    at.work.stop(PATIENCE)


def test_a_commit_that_must_wait_is_said_and_made_later(at: At, git_log: GitLog) -> None:
    at.live.message(SessionRef(), "user", "hello")
    at.live.end(SessionRef())
    (at.home / ".git/MERGE_HEAD").write_text("x")
    assert at.run("commit").next > at.clock.steady + 2
    assert any("in progress" in problem for problem in at.work.problems())
    (at.home / ".git/MERGE_HEAD").unlink()
    at.run("commit")
    assert git_log()[0].subject == "conversation: hello"
    assert not any("in progress" in problem for problem in at.work.problems())


def test_stopping_commits_what_ended_and_leaves_open_what_is_open(at: At, git_log: GitLog) -> None:
    at.work.start()
    at.live.message(SessionRef(session_id="a"), "user", "open")
    at.live.message(SessionRef(session_id="b"), "user", "over")
    at.live.end(SessionRef(session_id="b"))
    assert at.work.stop(PATIENCE)
    assert git_log()[0].subject == "conversation: over"
    memory = opened(at.home)
    memory.recover()
    assert [record.opening.session_id for record in memory.services.conversations.list_open()] == ["a"]
    assert not any(thread.name.startswith("tacit-") for thread in threading.enumerate())


def test_stopping_does_not_wait_for_ever(at: At) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def job() -> str:
        begun.set()
        go_on.wait(PATIENCE)
        return ""

    at.work.jobs.append(JobState(BackgroundJob("hangs", lambda: 60.0, job, "git"), at.clock.steady))
    at.work._clock = time.monotonic
    at.work.jobs[-1].next = 0.0
    at.work.start()
    assert begun.wait(PATIENCE)
    assert not at.work.stop(0.05)
    assert at.logged("work_stopped_early")
    go_on.set()


# ---------------------------------------------------------------- the spool


def test_what_hosts_spooled_is_taken_once_before_anything_is_answered(at: At) -> None:
    for number in range(3):
        spool.add(at.home, "message", {"role": "user", "text": f"message {number}"})
    spool.add(at.home, "tool", {"name": "read", "summary": "notes.md"})
    spool.add(at.home, "end_session", {})
    at.work.drain_first()
    assert spool.count_waiting(at.home) == 0
    [record] = at.work.served.memory.services.conversations.list_open()
    assert record.sha256 is not None
    turns = at.work.served.memory.transcript(record.path or "").turns
    assert [turn.number for turn in turns] == [1, 2, 3, 4]
    assert at.logged("drained")[0]["taken"] == 5


def test_what_is_nothing_for_a_daemon_is_set_aside_and_said(at: At) -> None:
    spool.add(at.home, "turn", {"message": "x"})
    spool.add(at.home, "message", {"role": "nobody", "text": "x"})
    spool.add(at.home, "message", {"role": "user", "text": "kept"})
    at.run("spool")
    assert (spool.count_waiting(at.home), spool.count_quarantined(at.home)) == (0, 2)
    assert any("2 events of hosts" in problem and "nobody" in problem for problem in at.work.problems())
    assert len(at.logged("set_aside")) == 2


def test_a_full_disk_stops_the_draining_and_loses_nothing(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        spool.add(at.home, "message", {"role": "user", "text": f"message {number}"})

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", full)
        assert "full" in at.run("spool").error
    assert (spool.count_waiting(at.home), spool.count_quarantined(at.home)) == (3, 0)
    assert at.run("spool").error == ""
    assert spool.count_waiting(at.home) == 0
    [record] = at.work.served.memory.services.conversations.list_open()
    assert len(at.work.served.memory.transcript(record.path or "").turns) == 3


# ---------------------------------------------------------------- the home


def test_a_home_that_is_gone_is_said_once_and_goes_on_when_it_is_back(at: At) -> None:
    away = at.home.with_name("away")
    spool.add(at.home, "message", {"role": "user", "text": "before"})
    at.home.rename(away)
    for name in ("spool", "config", "commit", "idle", "notes"):
        at.run(name)
    assert len(at.warned) == 1
    assert at.work.problems() == [f"There is no home at {at.home} any more. It goes on when it is back."]
    assert not at.home.exists()
    away.rename(at.home)
    at.run("spool")
    assert at.warned[1:] == [f"{at.home} is back."]
    assert spool.count_waiting(at.home) == 0


def excluded(at: At) -> tuple[str, ...]:
    return at.work.served.memory.config.capture.exclude_agents


def test_a_config_that_changed_is_in_force_and_a_broken_one_changes_nothing(at: At) -> None:
    config = at.home / CONFIG
    first = at.work.served.memory
    at.run("config")
    assert at.work.served.memory is first

    config.write_text("timezone: UTC\ncapture:\n  exclude_agents: [main]\n")
    at.run("config")
    assert excluded(at) == ("main",)
    assert at.live.message(SessionRef(), "user", "psst").session_id == ""
    assert at.work.about()["capture"]["exclude_agents"] == ["main"]

    config.write_text("timezone: UTC\ncapture:\n  exclude_agent: [other]\n")
    at.run("config")
    assert excluded(at) == ("main",)
    [problem, *_] = at.work.problems()
    assert "unknown key" in problem
    assert "settings from before" in problem
    assert "unknown key" in at.warned[0]
    at.run("config")
    assert len(at.logged("config_broken")) == 1

    config.write_text("timezone: UTC\n")
    at.run("config")
    assert excluded(at) == ()
    assert "unknown key" not in str(at.work.problems())


def test_a_session_goes_on_through_a_change_of_the_config(at: At) -> None:
    kept = at.live.message(SessionRef(), "user", "before")
    (at.home / CONFIG).write_text("timezone: Asia/Tokyo\n")
    at.work.reload()
    at.run("config")
    assert at.live.message(SessionRef(), "user", "after") == kept._replace(number=2)


# ---------------------------------------------------------------- following


def is_followed(at: At) -> bool:
    return at.work.served.memory.services.turns.present.is_watched


def test_files_are_followed_after_a_complete_look_and_turns_need_not_look(at: At) -> None:
    present = at.work.served.memory.services.turns.present
    write(at.home, "knowledge/reference/new.md", "A zebra in the garden.\n")
    assert not is_followed(at)
    at.work.start()
    assert eventually(lambda: at.work.is_followed)
    assert is_followed(at)
    found = at.work.served.memory.services.searcher.find("zebra", catch_up=0)
    assert found.hits[0].path == "knowledge/reference/new.md"
    generation = present.shelf().generation
    write(at.home, "topics/morning.md", TOPIC)
    assert eventually(lambda: present._shelf.generation > generation)
    assert "morning" in [topic.name for topic in present.shelf().topics]


def test_workspaces_are_followed_as_soon_as_the_config_names_them(at: At, tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    write(folder, "MEMORY.md", "A zebra in the stable.\n")
    at.work.start()
    assert eventually(lambda: is_followed(at))
    (at.home / CONFIG).write_text(f"timezone: UTC\nworkspaces: [{folder}]\n")
    at.run("config")
    assert not is_followed(at)
    assert eventually(lambda: is_followed(at))

    def hits(words: str) -> list[str]:
        return [hit.path for hit in at.work.served.memory.services.searcher.find(words, catch_up=0).hits]

    assert hits("zebra")[0] == "workspace/ws/MEMORY.md"
    write(folder, "memory/2026-03-10.md", "A giraffe came by.\n")
    assert eventually(lambda: "workspace/ws/memory/2026-03-10.md" in hits("giraffe"))
    folder.rename(tmp_path / "away")
    assert any("ws is missing" in problem for problem in at.work.problems())
    assert "workspace/ws/MEMORY.md" in hits("zebra")
    (at.home / CONFIG).write_text("timezone: UTC\n")
    at.run("config")
    assert eventually(lambda: is_followed(at) and "workspace/ws/MEMORY.md" not in hits("zebra"))
    assert at.work.problems() == []


def test_an_index_that_is_deleted_is_made_anew_and_followed_again(at: At) -> None:
    at.work.start()
    assert eventually(lambda: is_followed(at))
    (at.home / ".tacit/memory.db").unlink()
    assert not is_followed(at)
    write(at.home, "knowledge/reference/new.md", "A zebra in the garden.\n")
    assert eventually(lambda: is_followed(at))


def limit_reached(_: object) -> object:
    raise OSError(28, "OS file watch limit reached")


def test_following_that_fails_is_said_and_turns_look_themselves(
    at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> Iterator[object]:
        return map(limit_reached, [1])

    monkeypatch.setattr("watchfiles.watch", refused)
    monkeypatch.setattr("tacit.search.watcher._POLL_S", 0.01)
    at.work.start()
    assert eventually(lambda: "limit reached" in str(at.work.problems()))
    assert not at.work.served.memory.services.turns.present.is_watched
    monkeypatch.undo()
    assert eventually(lambda: at.work.is_followed)


def test_an_index_that_cannot_be_written_ends_no_following(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def broken(self: Searcher, **_: object) -> None:
        calls.append(1)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Searcher, "update", broken)
    monkeypatch.setattr("tacit.search.watcher._FULL_CHECK_S", 0.0)
    at.work.start()
    assert eventually(lambda: len(calls) >= 2 and "No space" in str(at.work.problems()))
    monkeypatch.undo()
    write(at.home, "knowledge/reference/new.md", "A zebra.\n")
    assert eventually(lambda: at.work.is_followed)


def test_a_home_that_comes_back_is_followed_again(at: At) -> None:
    at.work.start()
    assert eventually(lambda: at.work.is_followed)
    away = at.home.with_name("away")
    at.home.rename(away)
    assert eventually(lambda: not at.work.is_followed)
    assert not at.home.exists()
    away.rename(at.home)
    write(at.home, "knowledge/reference/new.md", "A zebra in the garden.\n")
    assert eventually(lambda: at.work.is_followed)
    assert at.work.served.memory.services.searcher.find("zebra", catch_up=0).hits


# ---------------------------------------------------------------- schedules


def asked(at: At, name: str) -> Any:
    return HANDLERS[name](at.work.served, {})["due"]


def waiting(at: At) -> Any:
    return asked(at, "due")


def test_topics_that_came_due_are_told_once_and_offered_until_somebody_says_done(at: At) -> None:
    write(at.home, "topics/morning.md", TOPIC)
    for _ in range(3):
        at.run("due")
    [due] = waiting(at)
    assert (due["topic"], due["at"]) == ("morning", "2026-03-10T08:00:00+00:00")
    assert len(at.logged("topic_due")) == 1
    assert at.work.about()["due"] == 1
    assert asked(at, "done_due") == [due]
    assert waiting(at) == []
    at.clock.pass_by(86_400)
    at.run("due")
    assert [one["at"] for one in waiting(at)] == ["2026-03-11T08:00:00+00:00"]
    assert len(at.logged("topic_due")) == 2


def test_a_clock_that_goes_back_makes_nothing_due_twice_in_the_log(at: At) -> None:
    write(at.home, "topics/morning.md", TOPIC)
    asked(at, "done_due")
    at.clock.wall -= timedelta(days=2)
    at.run("due")
    assert any("due.json" in problem for problem in at.work.problems())
    assert len(waiting(at)) == 1


def test_a_private_folder_that_is_deleted_stops_nothing(at: At) -> None:
    at.live.message(SessionRef(), "user", "before")
    shutil.rmtree(at.home / ".tacit")
    for ran in at.work.jobs:
        at.work.run(ran)
        assert ran.error == ""
    assert at.live.message(SessionRef(), "user", "after").number == 2

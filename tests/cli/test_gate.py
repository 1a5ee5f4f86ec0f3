"""`tacit gate`: what people read, mark and write, the JSON, the exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tacit.home.layout import Home
from tacit.topics.decision_log import GateLog
from tacit.topics.model import TopicDecision

if TYPE_CHECKING:
    from tests.conftest import Tacit

MADE = TopicDecision(
    timestamp="2026-11-16T09:30:00+01:00",
    message_hash="ab" * 32,
    topic_name="mail",
    tier1_matched=True,
    tier2_score=0.25,
    outcome="activated",
    by="rule",
    reason="inbox; score 0.25 is enough",
    gate_result=True,
    channels={"bm25": 0.5},
)
MAIL = """---
type: topic
description: Sorting the inbox  # and nothing else
triggers:
  - type: keywords
    words: [inbox]
activation: gated
priority: high
---

# Mail

Answer the old ones first.
"""


@pytest.fixture
def log(home: Path) -> GateLog:
    (home / "topics" / "mail.md").write_text(MAIL)
    return GateLog(Home(home))


def at(minute: int, score: float = 0.25) -> TopicDecision:
    return replace(
        MADE, timestamp=f"2026-11-16T09:{minute:02}:00+01:00", message_hash=f"{minute:064}", tier2_score=score
    )


def ids(log: GateLog) -> list[str]:
    return [one.id for one in log.read()]


def marks(log: GateLog) -> list[bool | None]:
    return [one.decision.was_useful for one in log.read()]


def marked(log: GateLog) -> None:
    """Half of the activations were of use, and the score tells which."""
    scores = [0.16, 0.17, 0.18, 0.19, 0.26, 0.27, 0.28, 0.29]
    log.append([at(minute, score) for minute, score in enumerate(scores)], "What is in my inbox?")
    for name, score in zip(ids(log), scores, strict=True):
        log.mark(name, score > 0.2, "now")


# ---------------------------------------------------------------- log


def test_the_log_shows_the_last_decisions_with_their_ids(log: GateLog, tacit: Tacit) -> None:
    log.append([at(1), replace(at(2), outcome="dropped", by="table", reason="too low")], "Anything urgent?")
    ran = tacit("gate", "log", "-n", "1")
    assert (ran.code, ran.stderr) == (0, "")
    (line,) = ran.stdout.splitlines()
    assert ids(log)[1] in line
    assert "2026-11-16 09:02" in line
    assert "dropped" in line
    assert "“Anything urgent?”" in line
    assert "table: too low" in line


def test_the_log_of_one_topic(log: GateLog, tacit: Tacit) -> None:
    log.append([at(1), replace(at(2), topic_name="kiln")])
    found = json.loads(tacit("gate", "log", "--topic", "kiln", "--json").stdout)
    assert [one["topic_name"] for one in found] == ["kiln"]
    assert found[0]["id"] == ids(log)[1]
    assert found[0]["channels"] == {"bm25": 0.5}


@pytest.mark.parametrize("action", ["log", "report"])
def test_without_decisions_it_says_so(tacit: Tacit, action: str) -> None:
    assert tacit("gate", action).stdout == "Nothing was decided yet: no message came near a topic.\n"
    assert tacit("gate", action, "--topic", "x").stdout == "Nothing was decided about 'x'.\n"
    assert json.loads(tacit("gate", action, "--json").stdout) == []


@pytest.mark.parametrize("action", ["log", "report", "tune"])
def test_lines_that_cannot_be_read_are_told(log: GateLog, home: Path, tacit: Tacit, action: str) -> None:
    log.append([at(1)])
    with (home / ".tacit" / "gate" / "decisions.jsonl").open("a") as file:
        file.write("broken\n")
    ran = tacit("gate", action)
    assert (ran.code, ran.stderr) == (0, "warning: 1 line of the gate log could not be read.\n")


def test_a_message_cannot_move_the_cursor(log: GateLog, tacit: Tacit) -> None:
    log.append([replace(at(1), topic_name="a\x1b[2J", reason="b\x1b[2J")], "c\x1b[2J\nd")
    assert "\x1b" not in tacit("gate", "log").stdout + tacit("gate", "report").stdout


# ---------------------------------------------------------------- mark


def test_a_decision_is_marked_by_the_beginning_of_its_id(log: GateLog, tacit: Tacit) -> None:
    log.append([at(1), at(2)], "Hello")
    name = ids(log)[0]
    ran = tacit("gate", "mark", name[:6], "useless")
    assert ran.stdout == f"{name}: mail was useless to “Hello”.\n"
    assert marks(log) == [False, None]


def test_last_is_what_the_newest_message_woke(log: GateLog, tacit: Tacit) -> None:
    asleep = replace(at(2), topic_name="kiln", outcome="rejected")
    log.append([at(1), at(2), asleep])
    assert tacit("gate", "mark", "last", "useful").code == 0
    assert marks(log) == [None, True, None]


def test_last_of_a_topic_may_be_one_that_stayed_asleep(log: GateLog, tacit: Tacit) -> None:
    asleep = replace(at(1), topic_name="kiln", outcome="rejected")
    log.append([asleep, at(2)], "Hello")
    ran = tacit("gate", "mark", "last", "useful", "--topic", "kiln", "--json")
    assert json.loads(ran.stdout)["was_useful"] is True
    assert marks(log) == [True, None]
    assert "kiln would have been useless to" in tacit("gate", "mark", ids(log)[0], "useless").stdout


def test_last_must_mean_one(log: GateLog, tacit: Tacit) -> None:
    assert tacit("gate", "mark", "last", "useful").code == 2
    log.append([at(1), replace(at(1), topic_name="kiln")])
    ran = tacit("gate", "mark", "last", "useful")
    assert ran.code == 2
    assert "woke mail, kiln. Say which with --topic" in ran.stderr
    log.append([replace(at(2), outcome="dropped")])
    assert "woke nothing" in tacit("gate", "mark", "last", "useful").stderr
    assert marks(log) == [None, None, None]


@pytest.mark.parametrize("name", ["zzzz", "abc", ""])
def test_an_id_that_nothing_has_is_usage(log: GateLog, tacit: Tacit, name: str) -> None:
    log.append([at(1)])
    assert tacit("gate", "mark", name, "useful").code == 2
    assert marks(log) == [None]


def test_a_mark_that_cannot_be_kept_is_an_error(log: GateLog, home: Path, tacit: Tacit) -> None:
    log.append([at(1)])
    (home / ".tacit" / "gate" / "marks.jsonl").mkdir()
    ran = tacit("gate", "mark", "last", "useful")
    assert (ran.code, ran.stdout) == (1, "")
    assert "could not be written" in ran.stderr


# ---------------------------------------------------------------- report


def test_the_report_shows_each_topic_and_what_may_have_been_missed(log: GateLog, tacit: Tacit) -> None:
    marked(log)
    log.append([replace(at(30, 0.28), outcome="rejected", by="model:m", reason="m said no")])
    lines = tacit("gate", "report").stdout.splitlines()
    assert lines[0].split() == [
        "topic",
        "awake",
        "no",
        "dropped",
        "score",
        "p10",
        "p50",
        "p90",
        "0",
        "to",
        "1",
        "marks",
    ]
    assert lines[1].split()[:4] == ["mail", "8", "1", "0"]
    assert lines[1].endswith("4 useful, 4 useless")
    assert "mail, decided by: model:m 1, rule 8" in lines
    assert "  1 suspected miss; the newest:" in lines
    assert lines[-1] == f"    {ids(log)[-1]}  0.28  m said no"


def test_the_report_as_json_names_the_suspects(log: GateLog, tacit: Tacit) -> None:
    log.append([replace(at(30, 0.17), topic_name="kiln"), *(at(n, 0.3) for n in range(3))])
    log.append([replace(at(31, 0.35), outcome="rejected")])
    first, second = json.loads(tacit("gate", "report", "--json").stdout)
    assert (first["topic"], first["activated"], first["rejected"]) == ("mail", 3, 1)
    assert first["scores"]["middle"] == 0.3
    assert [one["id"] for one in first["suspects"]] == [ids(log)[-1]]
    assert second["topic"] == "kiln"
    assert len(json.loads(tacit("gate", "report", "--topic", "kiln", "--json").stdout)) == 1


# ---------------------------------------------------------------- tune


def test_thresholds_are_proposed_and_nothing_is_written(log: GateLog, home: Path, tacit: Tacit) -> None:
    marked(log)
    ran = tacit("gate", "tune")
    first, last = ran.stdout.splitlines()
    assert first.startswith("mail: 0.15 → 0.2")
    assert first.endswith("false 4→0, missed 0→0 of 8 marks")
    assert "tacit gate tune --write" in last
    assert (home / "topics" / "mail.md").read_text() == MAIL


def test_told_to_it_writes_the_threshold_and_shows_the_difference(
    log: GateLog, home: Path, tacit: Tacit
) -> None:
    marked(log)
    (proposal,) = json.loads(tacit("gate", "tune", "--json").stdout)
    assert (proposal["path"], proposal["written"]) == ("topics/mail.md", False)
    ran = tacit("gate", "tune", "--write")
    assert ran.code == 0
    line = f"similarity_threshold: {proposal['proposed']}"
    assert f"  +{line}" in ran.stdout.splitlines()
    assert (home / "topics" / "mail.md").read_text() == MAIL.replace("high\n", f"high\n{line}\n", 1)
    assert tacit("gate", "tune").stdout.startswith("No threshold would do better")


def test_the_threshold_of_the_home_is_where_it_starts(log: GateLog, home: Path, tacit: Tacit) -> None:
    marked(log)
    (home / "memory-config.yaml").write_text("watchers:\n  similarity_threshold: 0.25\n")
    assert json.loads(tacit("gate", "tune", "--json").stdout) == []


def test_a_topic_that_cannot_be_read_does_not_hinder_the_others(
    log: GateLog, home: Path, tacit: Tacit
) -> None:
    marked(log)
    (home / "topics" / "broken.md").write_text("---\n: [\n---\n")
    (home / "topics" / "link.md").symlink_to(home / "topics" / "mail.md")
    (home / "topics" / "twice.md").hardlink_to(home / "topics" / "broken.md")
    (home / "topics" / "odd.md").write_bytes(b"\xff\0\xfe")
    assert len(json.loads(tacit("gate", "tune", "--json").stdout)) == 1


def test_a_topic_that_is_gone_gets_no_proposal(log: GateLog, home: Path, tacit: Tacit) -> None:
    marked(log)
    (home / "topics" / "mail.md").unlink()
    assert json.loads(tacit("gate", "tune", "--write", "--json").stdout) == []


@pytest.mark.parametrize(
    "arguments",
    [[], ["nosuch"], ["mark", "last"], ["mark", "last", "great"], ["log", "-n", "0"], ["tune", "x"]],
)
def test_wrong_arguments_are_usage(tacit: Tacit, arguments: list[str]) -> None:
    assert tacit("gate", *arguments).code == 2

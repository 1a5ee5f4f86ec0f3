"""One message, two topics, one that wakes: who is asked, what is loaded, and what is kept of the decision."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from tacit.context.model import Compiled
from tacit.memory import Memory
from tacit.topics.model import TopicDecision
from tests.embeddings.conftest import Reply, Request, Serve
from tests.memory.homes import (
    OWNERS,
    PATIENT,
    dropped_as,
    in_slot,
    labels,
    notice_codes,
    opened,
    settle,
    write,
)

MESSAGE = "Can you review the PR that just came in?"
PROCEDURE = "knowledge/procedures/code-review.md"
ACTIVE = "knowledge/projects/_active.md"
IMPATIENT = "inject: {deadline_ms: 1000}\n"  # a gate that gets no answer takes all the time there is


@pytest.fixture
def office(home: Path) -> Path:
    settle(home)
    (home / "topics" / "weekly-review.md").unlink()  # what `tacit init` writes as an example
    write(
        home,
        "topics/github-pr-review.md",
        "---\ntype: topic\ntriggers:\n  - type: pattern\n    match: 'PR|pull request|review'\n"
        f"subscriptions:\n  - {PROCEDURE}\n  - {ACTIVE}\nactivation: gated\npriority: medium\n---\n"
        "# GitHub PR review\n\n## Instructions\n\n1. Read the whole PR before the first comment.\n"
        "2. Review tests first, then the code.\n",
    )
    write(
        home,
        "topics/email-triage.md",
        "---\ntype: topic\ntriggers:\n  - type: pattern\n    match: 'email|inbox'\nactivation: gated\n"
        "priority: medium\n---\n# Email triage\n\n## Instructions\n\n1. Sort the inbox by sender.\n",
    )
    write(home, PROCEDURE, "# Code review\n\n- Every finding names a line.\n")
    write(home, ACTIVE, "# Active Projects\n\n- **harbour**: the scheduler, release 2 is due.\n")
    return home


def model(office: Path, address: str, settings: str = PATIENT) -> None:
    settle(office, f"{OWNERS}{settings}watchers: {{gate_model: '{address}#m'}}\n")


def says(text: str) -> Reply:
    message = {"role": "assistant", "content": text}
    return Reply({"object": "chat.completion", "choices": [{"index": 0, "message": message}]})


def decisions(memory: Memory) -> dict[str, TopicDecision]:
    return {one.decision.topic_name: one.decision for one in memory.services.turns._state.decisions.read()}


def assert_awake(compiled: Compiled) -> None:
    assert in_slot(compiled, "topics") == ["topics/github-pr-review.md"]
    assert in_slot(compiled, "subscriptions") == [PROCEDURE]
    assert "Every finding names a line." in compiled.text
    assert "Read the whole PR" in compiled.text
    assert "Sort the inbox" not in compiled.text
    assert compiled.text.count("the scheduler, release 2 is due") == 1
    assert "duplicate" in dropped_as(compiled, f"sub:{ACTIVE}")


def assert_goes_on_without(compiled: Compiled) -> None:
    assert in_slot(compiled, "topics") == in_slot(compiled, "subscriptions") == []
    assert "identity:SOUL.md" in labels(compiled)
    assert compiled.text.rstrip().endswith(MESSAGE)
    assert dropped_as(compiled, "topic:github-pr-review") == ["gate"]


def test_a_model_that_says_yes_wakes_the_topic_and_loads_what_it_subscribes_to(
    office: Path, serve: Serve
) -> None:
    server = serve(lambda request: says("YES"))
    model(office, server.base)
    memory = opened(office)
    assert_awake(memory.turn(MESSAGE))
    assert [request.path for request in server.requests] == ["/v1/chat/completions"]
    assert MESSAGE in server.requests[0].json["messages"][1]["content"]
    found = decisions(memory)
    assert found.keys() == {"github-pr-review"}
    decision = found["github-pr-review"]
    assert decision.tier1_matched
    assert decision.tier2_score >= 0.15
    assert decision.gate_result is True
    assert decision.outcome == "activated"
    assert decision.by == f"model:{server.base}#m"


def test_the_answer_of_a_model_is_asked_for_once(office: Path, serve: Serve) -> None:
    server = serve(lambda request: says("YES"))
    model(office, server.base)
    opened(office).turn(MESSAGE)
    assert_awake(opened(office).turn(MESSAGE, session_key="agent:main:telegram:direct:7"))
    assert len(server.requests) == 1


def test_without_a_model_the_rule_decides_and_is_named(office: Path) -> None:
    memory = opened(office)
    assert_awake(memory.turn(MESSAGE))
    decision = decisions(memory)["github-pr-review"]
    assert decision.by == "rule"
    assert decision.tier1_matched
    assert decision.tier2_score >= 0.15
    assert decision.gate_result is True
    assert "0.15 is needed" in decision.reason


def test_a_model_that_says_no_leaves_the_topic_asleep(office: Path, serve: Serve) -> None:
    server = serve(lambda request: says("NO"))
    model(office, server.base)
    memory = opened(office)
    compiled = memory.turn(MESSAGE)
    assert_goes_on_without(compiled)
    assert "gate-error" not in notice_codes(compiled)
    decision = decisions(memory)["github-pr-review"]
    assert decision.gate_result is False
    assert decision.outcome == "rejected"


def test_a_server_that_hangs_costs_the_topic_and_not_the_turn(office: Path, serve: Serve) -> None:
    def wait(request: Request) -> Reply:
        server.stopped.wait(60)
        return says("YES")

    server = serve(wait)
    model(office, server.base, IMPATIENT)
    memory = opened(office)
    memory.services.turns.warm()
    began = time.monotonic()
    compiled = memory.turn(MESSAGE)
    assert time.monotonic() - began < 30
    assert_goes_on_without(compiled)
    assert "gate-error" in notice_codes(compiled)
    assert decisions(memory)["github-pr-review"].gate_result is None


def test_a_server_that_hangs_does_not_cost_what_the_notes_say(office: Path, serve: Serve) -> None:
    def wait(request: Request) -> Reply:
        server.stopped.wait(60)
        return says("YES")

    server = serve(wait)
    model(office, server.base, IMPATIENT)
    for number in range(3):
        write(
            office, f"knowledge/reference/pr-{number}.md", f"# PR {number}\n\nReview the PR {number} first."
        )
    memory = opened(office)
    memory.services.turns.warm()
    assert in_slot(memory.turn(MESSAGE), "knowledge")


@pytest.mark.parametrize("answer", [Reply({}, 500), Reply(b"<html>"), says("perhaps")])
def test_an_answer_that_is_none_costs_the_topic_and_says_so(
    office: Path, serve: Serve, answer: Reply
) -> None:
    server = serve(lambda request: answer)
    model(office, server.base, IMPATIENT)
    memory = opened(office)
    compiled = memory.turn(MESSAGE)
    assert_goes_on_without(compiled)
    told = [notice.text for notice in compiled.receipt.notices if notice.code == "gate-error"]
    assert len(told) == 1
    assert "github-pr-review" in told[0]
    assert decisions(memory)["github-pr-review"].by == "error"


def test_a_server_that_died_costs_the_topic_and_the_next_turn_asks_again(office: Path, serve: Serve) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    model(office, gone, IMPATIENT)
    compiled = opened(office).turn(MESSAGE)
    assert_goes_on_without(compiled)
    assert "gate-error" in notice_codes(compiled)
    model(office, serve(lambda request: says("YES")).base)
    assert_awake(opened(office).turn(MESSAGE))


def test_a_message_about_neither_wakes_neither(office: Path) -> None:
    memory = opened(office)
    compiled = memory.turn("What is the weather in Lisbon?")
    assert in_slot(compiled, "topics") == []
    assert decisions(memory) == {}

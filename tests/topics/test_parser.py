from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.diagnostics import Problem
from tacit.topics.model import Topic, Trigger
from tacit.topics.parser import MAX_TRIGGERS, parse_topic
from tacit.topics.triggers import TRIGGER_TYPES
from tests.hostile import hostile

BODY = "# Review\n\n## Instructions\n\n1. Read the change first.\n2. Then speak.\n"


def topic_of(head: str, body: str = BODY) -> tuple[Topic, tuple[Problem, ...]]:
    topic, problems = parse_topic("topics/review.md", f"---\ntype: topic\n{head.strip()}\n---\n{body}")
    assert topic is not None
    return topic, problems


def triggers_of(yaml: str) -> tuple[tuple[Trigger, ...], tuple[Problem, ...]]:
    topic, problems = topic_of(f"triggers:\n{yaml}\nsimilarity: true")
    return topic.triggers, problems


def test_a_topic_is_read_with_all_its_fields() -> None:
    topic, problems = topic_of("""
title: Pull requests
description: Reviewing other people's changes
updated: 2026-02-16
triggers:
  - type: pattern
    match: "\\\\bPR\\\\b"
    scope: both
    correction_hint: Name the file and the line.
  - type: webhook
    source: github
    event: pull_request
  - type: cron
    schedule: "0 8 * * 1-5"
subscriptions:
  - knowledge/projects/_active.md
activation: auto
priority: high
max_context_kb: 6
similarity_threshold: 0.2
similarity: true
keywords: [diff, merge]
steering_pause: 3
audience: owner
agent: [main, coder]
""")
    assert problems == ()
    assert topic == Topic(
        name="review",
        path="topics/review.md",
        title="Pull requests",
        description="Reviewing other people's changes",
        body=BODY,
        triggers=(
            Trigger("pattern", r"\bPR\b", "both", correction_hint="Name the file and the line."),
            Trigger("webhook", source="github", event="pull_request"),
            Trigger("cron", schedule="0 8 * * 1-5"),
        ),
        subscriptions=("knowledge/projects/_active.md",),
        activation="auto",
        priority="high",
        max_context_kb=6,
        similarity_threshold=0.2,
        by_similarity=True,
        keywords=("diff", "merge"),
        steering=True,
        steering_pause=3,
        audience="owner",
        agents=("main", "coder"),
        day="2026-02-16",
    )


def test_every_field_has_a_default() -> None:
    topic, problems = topic_of("triggers: deploy")
    assert problems == ()
    assert topic.triggers == (Trigger("pattern", "deploy"),)
    assert topic.title == "Review"
    assert topic.description == "Review: Read the change first."
    assert (topic.activation, topic.priority, topic.max_context_kb) == ("gated", "medium", 4)
    assert (topic.audience, topic.agents, topic.similarity_threshold) == ("group", (), None)
    assert not topic.steering


@pytest.mark.parametrize(
    ("yaml", "triggers"),
    [
        ("  - 'mail|inbox'", [Trigger("pattern", "mail|inbox")]),
        ("  - type: regex\n    pattern: a+", [Trigger("pattern", "a+")]),
        ("  - pattern: a+", [Trigger("pattern", "a+")]),
        ("  - match: a+", [Trigger("pattern", "a+")]),
        ("  - match: [a+, b+]\n    scope: output",
         [Trigger("pattern", "a+", "output"), Trigger("pattern", "b+", "output")]),
        ("  - match: 404", [Trigger("pattern", "404")]),
        ("  - type: keywords\n    words: [deploy, free  shipping]",
         [Trigger("keywords", words=("deploy", "free shipping"))]),
        ("  - type: keywords\n    keywords: deploy, rollback",
         [Trigger("keywords", words=("deploy", "rollback"))]),
        ("  - keywords: [a, b, a]", [Trigger("keywords", words=("a", "b"))]),
        ("  - type: Keyword\n    match: a, b", [Trigger("keywords", words=("a", "b"))]),
        ("  - type: glob\n    match: '*.py'", [Trigger("glob", "*.py")]),
        ("  - glob: ['*.py', '*.pyi']", [Trigger("glob", "*.py"), Trigger("glob", "*.pyi")]),
        ("  - type: code", [Trigger("code")]),
        ("  - type: code\n    languages: [py]", [Trigger("code", words=("py",))]),
        ("  - type: language\n    language: German", [Trigger("language", words=("de",))]),
        ("  - type: language\n    words: [de, no]", [Trigger("language", words=("de", "no"))]),
        ("  - type: mention\n    names: [David, '@silas']", [Trigger("mention", words=("David", "@silas"))]),
        ("  - type: url\n    match: github.com/*/pull/*", [Trigger("url", "github.com/*/pull/*")]),
        ("  - type: url\n    hosts: [github.com, gitlab.com]",
         [Trigger("url", words=("github.com", "gitlab.com"))]),
        ("  - type: url", [Trigger("url")]),
        ("  - type: urgency", [Trigger("urgency")]),
        ("  - type: sentiment\n    words: [negative]", [Trigger("sentiment", words=("negative",))]),
        ("  - type: webhook\n    source: '*'", [Trigger("webhook", source="*")]),
        ("  - cron: '@daily'", [Trigger("cron", schedule="0 0 * * *")]),
        ("  - match: a\n    scope: [input, output]", [Trigger("pattern", "a", "both")]),
        ("  keywords: [a, b]\n  pattern: x",
         [Trigger("keywords", words=("a", "b")), Trigger("pattern", "x")]),
        ("  type: keywords\n  words: [a]", [Trigger("keywords", words=("a",))]),
    ],
)  # fmt: skip
def test_triggers_may_be_written_in_several_ways(yaml: str, triggers: list[Trigger]) -> None:
    assert triggers_of(yaml) == (tuple(triggers), ())


@pytest.mark.parametrize(
    ("yaml", "line", "said"),
    [
        ("  - match: ok\n  - type: patern\n    match: x", 5, "cron"),
        ("  - match: ok\n  - type: pattern", 5, "match"),
        ("  - match: ok\n  - 7", 5, "7"),
        ("  - match: ok\n  - type: pattern\n    match: yes", 5, "quotes"),
        ("  - match: ok\n  - type: keywords", 5, "words"),
        ("  - match: ok\n  - type: mention\n    names: []", 5, "words"),
        ("  - match: ok\n  - type: language\n    words: [Klingon]", 5, "Klingon"),
        ("  - match: ok\n  - type: webhook\n    event: x", 5, "source"),
        ("  - match: ok\n  - type: cron", 5, "schedule"),
        ("  - match: ok\n  - type: cron\n    schedule: '0 25 * * *'", 5, "hour"),
        ("  - match: ok\n  - type: cron\n    schedule: '0 8 30 2 *'", 5, "30 2"),
        ("  - match: ok\n  - type: cron\n    schedule: every day", 5, "five fields"),
        ("  - match: ok\n  - foo: bar", 5, "type"),
    ],
)
def test_a_bad_trigger_is_left_out_and_said_with_its_line(yaml: str, line: int, said: str) -> None:
    triggers, problems = triggers_of(yaml)
    assert triggers == (Trigger("pattern", "ok"),)
    assert [problem.line for problem in problems] == [line]
    assert said in str(problems[0])


def test_an_unknown_scope_means_what_the_user_says() -> None:
    triggers, problems = triggers_of("  - match: ok\n    scope: everywhere")
    assert triggers == (Trigger("pattern", "ok", "input"),)
    assert "input, output or both" in str(problems[0])


def test_a_field_that_is_not_read_is_a_warning() -> None:
    triggers, problems = triggers_of("  - match: ok\n    sope: output")
    assert triggers == (Trigger("pattern", "ok"),)
    assert [problem.level for problem in problems] == ["warning"]
    assert "sope" in problems[0].what


@pytest.mark.parametrize(
    ("line", "get", "safe", "said"),
    [
        ("activation: always", lambda t: t.activation, "manual", "auto, gated, manual"),
        ("priority: urgent", lambda t: t.priority, "low", "low, medium, high, critical"),
        ("max_context_kb: -1", lambda t: t.max_context_kb, 4, "above 0"),
        ("max_context_kb: .nan", lambda t: t.max_context_kb, 4, "above 0"),
        ("max_context_kb: yes", lambda t: t.max_context_kb, 4, "above 0"),
        ("similarity_threshold: 20", lambda t: t.similarity_threshold, None, "0 to 1"),
        ("similarity_threshold: high", lambda t: t.similarity_threshold, None, "0 to 1"),
        ("similarity: 0.3", lambda t: t.by_similarity, False, "true or false"),
        ("steering: sometimes", lambda t: t.steering, False, "true or false"),
        ("steering_pause: -3", lambda t: t.steering_pause, 10, "number of turns"),
        ("audience: friends", lambda t: t.audience, "owner", "owner"),
    ],
)
def test_a_wrong_value_gives_the_safe_one_and_says_what_is_allowed(
    line: str, get: Callable[[Topic], object], safe: object, said: str
) -> None:
    topic, problems = topic_of(f"triggers: deploy\n{line}")
    assert get(topic) == safe
    assert len(problems) == 1
    assert said in problems[0].todo
    assert problems[0].line in (4, None)


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "../other/notes.md", "knowledge/../../x.md", "knowledge\\\\a.md", "~/x.md", "C:/x.md"],
)
def test_subscriptions_stay_in_the_home(path: str) -> None:
    topic, problems = topic_of(f'triggers: a\nsubscriptions:\n  - knowledge/a.md\n  - "{path}"\n  - b.md')
    assert topic.subscriptions == ("knowledge/a.md", "b.md")
    assert [problem.line for problem in problems] == [6]


def test_fields_among_the_triggers_are_found_and_read_as_meant() -> None:
    topic, problems = topic_of("""
triggers:
  - type: pattern
    match: "PR|review"
  - type: keywords
    words: [diff]
  similarity_threshold: 0.2
  activation: auto
priority: high
""")
    assert [trigger.type for trigger in topic.triggers] == ["pattern", "keywords"]
    assert (topic.similarity_threshold, topic.activation, topic.priority) == (0.2, "auto", "high")
    assert [problem.line for problem in problems] == [8]
    assert "similarity_threshold" in problems[0].what
    assert "beside `triggers:`" in problems[0].todo


def test_a_head_that_cannot_be_read_is_no_topic() -> None:
    topic, problems = parse_topic("topics/x.md", "---\ntriggers: [a\naudience: owner\n---\nText\n")
    assert topic is None
    assert problems[0].line is not None


@pytest.mark.parametrize("text", ["", "---\ntype: topic\n---\n", "---\ntype: reference\n---\nText\n"])
def test_what_has_nothing_to_use_is_no_topic(text: str) -> None:
    topic, problems = parse_topic("topics/x.md", text)
    assert topic is None
    assert len(problems) == 1


def test_a_topic_that_nothing_wakes_says_so() -> None:
    assert "Nothing wakes it" in topic_of("activation: auto")[1][0].what
    assert topic_of("activation: manual")[1] == ()
    assert topic_of("similarity: true")[1] == ()
    topic, problems = parse_topic("topics/plain.md", "Just text.\n")
    assert topic is not None
    assert topic.name == "plain"
    assert topic.description == "plain: Just text."
    assert [problem.level for problem in problems] == ["warning"]


def test_a_hint_for_the_agent_is_steering_only_where_its_output_is_watched() -> None:
    assert topic_of("triggers:\n - match: a\n   scope: output\n   correction_hint: b")[0].steering
    assert not topic_of("triggers:\n - match: a\n   correction_hint: b")[0].steering
    assert not topic_of("triggers:\n - match: a\n   scope: output")[0].steering


def test_there_is_an_end_to_triggers() -> None:
    topic, problems = topic_of("triggers:\n" + "\n".join(f"  - w{n}" for n in range(MAX_TRIGGERS + 5)))
    assert len(topic.triggers) == MAX_TRIGGERS
    assert len(problems) == 1


KEYS = st.sampled_from(["type", "match", "words", "scope", "schedule", "source", "pattern", "keywords", "x"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | hostile,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["triggers", "activation", "priority", "subscriptions", "keywords", "similarity", "max_context_kb",
     "similarity_threshold", "steering_pause", "description", "title", "agent", "audience"]
)  # fmt: skip


@given(st.dictionaries(FIELDS, VALUES))
def test_no_value_whatsoever_breaks_the_reader(fields: dict[str, object]) -> None:
    head = "".join(f"{key}: {json.dumps(value)}\n" for key, value in fields.items())
    topic, problems = parse_topic("topics/x.md", f"---\n{head}---\nText\n")
    assert topic is not None or problems
    assert parse_topic("topics/x.md", f"---\n{head}---\nText\n") == (topic, problems)


@given(hostile)
def test_no_text_whatsoever_breaks_the_reader(text: str) -> None:
    parse_topic("topics/x.md", text)


def test_the_documentation_shows_every_type_of_trigger() -> None:
    documented = (Path(__file__).parents[2] / "docs/topics.md").read_text()
    assert [name for name in TRIGGER_TYPES if f"\n  - type: {name} " not in documented] == []

"""The sample home agrees with itself: notes, sessions and dates tell one story."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from tacit import sample

VIENNA = ZoneInfo("Europe/Vienna")
NOTES = {path: content.decode("utf-8") for path, content in sample.notes()}
CONVERSATIONS = sample.conversations()
EVERY = [*CONVERSATIONS, sample.live()]

REQUIRED = {
    "identity": {"role", "updated"},
    "memory": {"updated", "line_count"},
    "journal": {"date", "sessions"},
    "project_index": {"updated"},
    "project_context": {"project", "updated"},
    "project_progress": {"project", "updated"},
    "project_notes": {"project", "updated"},
    "people_index": {"updated"},
    "person": {"name", "relationship", "updated"},
    "procedure": {"updated"},
    "reference": {"updated"},
    "topic": {"triggers", "subscriptions", "activation", "priority", "max_context_kb"},
}
TRIGGER_FIELDS = {
    "pattern": {"match", "scope"},
    "keywords": {"words"},
    "webhook": {"source", "event"},
    "cron": {"schedule"},
}
SESSION_KINDS = {
    "main": r"agent:main:main",
    "other agent": r"agent:werkbank:main",
    "owner's direct chat": r"agent:main:telegram:direct:48210011",
    "direct chat of someone else": r"agent:main:telegram:direct:(?!48210011)\d+",
    "group": r"agent:main:telegram:group:-\d+",
    "forum topic": r"agent:main:telegram:group:-\d+:topic:\d+",
    "subagent": r"agent:main:subagent:[0-9a-f-]{36}",
    "cron": r"agent:main:cron:[a-z-]+",
}


def front(path: str) -> dict[str, Any]:
    match = re.match(r"---\n(.*?)\n---\n", NOTES[path], re.DOTALL)
    assert match, f"{path} has no frontmatter"
    data = yaml.safe_load(match[1])
    assert isinstance(data, dict), path
    return data


def under(prefix: str) -> list[str]:
    return [path for path in NOTES if path.startswith(prefix)]


def local_dates(conversation: sample.Conversation) -> set[date]:
    return {t.astimezone(VIENNA).date() for t in (conversation.started, conversation.ended)}


def all_texts() -> Iterator[tuple[str, str]]:
    yield from NOTES.items()
    for c in EVERY:
        for turn in c.turns:
            for text in (turn.text, turn.summary, turn.result, turn.path or "", turn.attachment or ""):
                yield c.slug, text


def test_there_is_as_much_as_promised() -> None:
    assert 35 <= len(NOTES) <= 45
    assert len(CONVERSATIONS) == 25
    assert 12 <= len(under("knowledge/journal/")) <= 14
    assert 6 <= len(sample.live().turns) <= 8
    long_ones = [c.slug for c in CONVERSATIONS if len(c.turns) >= 40]
    short_ones = [c.slug for c in CONVERSATIONS if len(c.turns) <= 4]
    assert len(long_ones) == 2
    assert len(short_ones) >= 2
    assert all(len(c.turns) >= 3 for c in CONVERSATIONS)


def test_notes_come_sorted_and_end_with_a_newline() -> None:
    paths = [path for path, _ in sample.notes()]
    assert paths == sorted(paths)
    assert all(text.endswith("\n") and "\r" not in text for text in NOTES.values())


@pytest.mark.parametrize("path", NOTES)
def test_each_note_has_the_frontmatter_of_its_type(path: str) -> None:
    fields = front(path)
    assert fields["type"] in REQUIRED
    assert REQUIRED[fields["type"]] <= fields.keys()
    assert fields.get("audience", "owner") in {"owner", "group", "anyone"}
    if fields["type"] == "identity":
        assert fields["role"] in {"soul", "user", "rules", "tools"}
        assert isinstance(fields["updated"], datetime)
        assert fields["updated"].utcoffset() is not None


@pytest.mark.parametrize(
    ("folder", "kind", "sections"),
    [
        ("knowledge/people/", "person", ("Communication", "Context")),
        ("knowledge/projects/", "project_context", ("Current State", "Key Decisions", "Stack")),
        ("knowledge/memory/", "memory", ("Key Decisions", "Lessons Learned", "Active Context")),
        ("topics/", "topic", ("Instructions", "Context Notes")),
    ],
)
def test_notes_have_the_sections_of_their_type(folder: str, kind: str, sections: tuple[str, ...]) -> None:
    found = [path for path in under(folder) if front(path)["type"] == kind]
    assert found
    for path in found:
        for section in sections:
            assert f"\n## {section}\n" in NOTES[path], f"{path} has no section {section}"


def test_memory_counts_its_lines_and_dates_its_entries() -> None:
    path = "knowledge/memory/MEMORY.md"
    lines = NOTES[path].splitlines()
    assert front(path)["line_count"] == len(lines)
    assert 60 <= len(lines) <= 110
    entries = [line for line in lines if line.startswith("- ")]
    assert len(entries) > 40
    assert all(re.match(r"- 2026-\d\d-\d\d: \S", line) for line in entries)


def test_soul_is_short() -> None:
    assert len(NOTES["knowledge/identity/SOUL.md"].split()) < 140


def test_journals_name_sessions_of_their_day() -> None:
    sessions = {c.session_id: c for c in CONVERSATIONS}
    for path in under("knowledge/journal/"):
        fields = front(path)
        day = fields["date"]
        assert path == f"knowledge/journal/{day.isoformat()}.md"
        assert f"\n## {day.isoformat()}\n" in NOTES[path]
        assert "\n### " in NOTES[path]
        assert fields["sessions"]
        for session in fields["sessions"]:
            assert day in local_dates(sessions[session]), f"{path}: {session} is of another day"


def test_topics_subscribe_to_notes_that_exist() -> None:
    kinds = set()
    assert 6 <= len(under("topics/")) <= 7
    for path in under("topics/"):
        fields = front(path)
        assert fields["activation"] in {"auto", "gated", "manual"}
        assert fields["priority"] in {"low", "medium", "high", "critical"}
        assert fields["subscriptions"]
        assert set(fields["subscriptions"]) <= NOTES.keys(), path
        for trigger in fields["triggers"]:
            kinds.add(trigger["type"])
            assert trigger.keys() - {"type"} == TRIGGER_FIELDS[trigger["type"]], path
            if trigger["type"] == "pattern":
                re.compile(trigger["match"])
    assert kinds == TRIGGER_FIELDS.keys()


def test_session_ids_are_well_formed_and_unique() -> None:
    ids = [c.session_id for c in EVERY]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"ses_[0-9a-f]{8}", i) for i in ids)


@pytest.mark.parametrize("conversation", EVERY, ids=lambda c: c.slug)
def test_times_increase_and_are_those_of_vienna(conversation: sample.Conversation) -> None:
    times = [conversation.started, *(t.at for t in conversation.turns), conversation.ended]
    assert all(a < b for a, b in pairwise(times))
    for time in times:
        assert time.utcoffset() == time.astimezone(VIENNA).utcoffset(), time


def test_conversations_are_in_order_and_do_not_overlap() -> None:
    assert all(a.ended < b.started for a, b in pairwise(EVERY))
    assert EVERY[0].started.date() == date(2026, 10, 5)
    assert CONVERSATIONS[-1].started.date() == date(2026, 10, 31)
    assert sample.live().started.date() == date(2026, 11, 2)


def test_every_kind_of_session_is_there() -> None:
    for kind, pattern in SESSION_KINDS.items():
        assert any(re.fullmatch(pattern, c.session_key) for c in CONVERSATIONS), kind
    known = "|".join(SESSION_KINDS.values())
    assert all(re.fullmatch(known, c.session_key) for c in EVERY)
    assert all(c.session_key.split(":")[1] == c.agent for c in EVERY)


def test_one_session_crosses_midnight_and_one_the_clock_change() -> None:
    offsets = {c.slug: (c.started.utcoffset(), c.ended.utcoffset()) for c in CONVERSATIONS}
    assert [s for s, (a, b) in offsets.items() if a != b] == ["the-hour-twice"]
    assert offsets["the-hour-twice"] == (timedelta(hours=2), timedelta(hours=1))
    assert [c.slug for c in CONVERSATIONS if len(local_dates(c)) == 2] == ["firing-night"]


@pytest.mark.parametrize("conversation", EVERY, ids=lambda c: c.slug)
def test_turns_are_whole(conversation: sample.Conversation) -> None:
    assert conversation.tags
    assert conversation.tokens_in > conversation.tokens_out > 0
    for turn in conversation.turns:
        assert sum(map(bool, (turn.role, turn.tool, turn.knowledge, turn.attachment))) == 1, turn
        match turn.kind:
            case "message":
                assert turn.role in {"user", "agent", "system"}
                assert turn.text.strip()
            case "tool":
                assert turn.summary
                assert turn.result
                assert "\n" not in turn.summary + turn.result
            case "knowledge":
                assert turn.knowledge in {"created", "updated", "appended"}
                assert turn.path in NOTES
                assert turn.summary


def test_groups_say_who_speaks() -> None:
    for c in CONVERSATIONS:
        if ":group:" in c.session_key:
            users = {turn.speaker for turn in c.turns if turn.role == "user"}
            assert None not in users
            assert len(users) >= 2


def test_there_are_at_most_two_attachments() -> None:
    found = [turn.attachment for c in EVERY for turn in c.turns if turn.attachment]
    assert 1 <= len(found) <= 2
    assert all(path.startswith("attachments/2026/10/") for path in found)


def test_hard_texts_are_there() -> None:
    """What importers and search must cope with: other scripts, code, tables, quoted headings."""
    messages = "\n".join(turn.text for c in CONVERSATIONS for turn in c.turns)
    for piece in (
        "\n## 18:45 — agent\n",
        "```sql",
        "```python",
        "お世話になっております",
        "Hoftor",
        "| tile |",
    ):
        assert piece in messages, piece


def test_no_absolute_paths_and_only_example_addresses() -> None:
    for where, text in all_texts():
        assert not re.search(r"(?:^|[\s\"'`(=])/[A-Za-z]", text), where
        for host in re.findall(r"https?://([^/\s:)>,]+)", text):
            assert re.search(r"(^|\.)example\.(com|net|org)\.?$|^192\.168\.40\.\d+$", host), (where, host)


def test_the_gate_code_stays_with_the_owner() -> None:
    """The sample follows its own rules, so that tests for leaks can rely on it."""
    holders = [path for path, text in NOTES.items() if "4471" in text]
    assert holders == ["knowledge/reference/studio.md"]
    assert front(holders[0])["audience"] == "owner"
    told = {c.session_key for c in EVERY for turn in c.turns if "4471" in turn.text}
    assert told == {"agent:main:main"}


def test_importing_the_sample_does_not_import_yaml() -> None:
    code = "import sys, tacit.sample; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0

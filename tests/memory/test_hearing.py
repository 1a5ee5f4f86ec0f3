"""What is learned from in a home, and whose word it is by the rules of its sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.app import WORKER_VARIABLE
from tacit.home.layout import CONFIG
from tacit.markdown import comment
from tacit.markdown.comment import Trust
from tacit.memory import Memory
from tacit.sessions.live_sessions import SessionRef
from tacit.sessions.registry import SessionRegistry
from tacit.transcripts import purged as purging
from tests.memory.homes import CRON, GROUP, NOW, OWNER, OWNER_DM, STRANGER, SUBAGENT, UNKNOWN, opened, write

GLAZE = "The glaze of the blue bowls is called Reif 3b."


def talked(
    memory: Memory, key: str, *said: tuple[str, str] | tuple[str, str, str], agent: str | None = None
) -> str:
    with memory.session(session_key=key, agent=agent) as session:
        for role, text, *speaker in said:
            session.message(role, text, speaker=speaker[0] if speaker else None)
        path = session.path
    assert path
    return path


def trusts(memory: Memory, path: str) -> list[Trust]:
    found = memory.services.attribution.attribute(path)
    assert found is not None
    return [one.trust for one in found.said]


def configured(home: Path, text: str) -> Memory:
    (home / CONFIG).write_text(text)
    return opened(home, lambda: NOW)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (OWNER, ["owner", "agent"]),
        (OWNER_DM, ["owner", "agent"]),
        (STRANGER, ["other", "other"]),
        (GROUP, ["other", "other"]),
        (UNKNOWN, ["other", "other"]),
        (CRON, ["tool"]),
        (SUBAGENT, ["tool"]),
    ],
)
def test_whose_word_it_is_the_key_of_the_session_tells(home: Path, key: str, expected: list[Trust]) -> None:
    memory = configured(home, "owners: ['7']\n")
    path = talked(memory, key, ("user", "The kiln is hot"), ("agent", "I see"))
    assert trusts(memory, path) == expected


def test_in_a_group_the_owner_is_not_known_by_a_name_that_anybody_may_take(home: Path) -> None:
    memory = configured(home, "owners: ['7', 'hanna']\n")
    assert trusts(memory, talked(memory, GROUP, ("user", "The kiln is hot", "hanna"))) == ["other"]


def test_a_main_session_with_several_names_is_nobodys(memory: Memory) -> None:
    path = talked(memory, OWNER, ("user", "One", "Hanna"), ("user", "Two", "Mallory"), ("user", "Three"))
    assert trusts(memory, path) == ["other", "other", "other"]


def test_a_main_session_with_one_name_is_the_owners_where_no_owner_is_configured(memory: Memory) -> None:
    assert trusts(memory, talked(memory, OWNER, ("user", "One", "Hanna"))) == ["owner"]


def test_a_name_in_a_main_session_is_an_owners_by_the_config_or_by_who_was_seen_to_write(home: Path) -> None:
    memory = configured(home, "owners: ['telegram:7']\n")
    path = talked(
        memory, OWNER, ("user", "One", "Hanna"), ("user", "Two", "telegram:7"), ("user", "3", "telegram:9")
    )
    assert trusts(memory, path) == ["other", "owner", "other"]
    memory.services.profiles.profile_of(OWNER, sender="telegram:7")
    assert trusts(memory, path) == ["owner", "owner", "other"]
    memory.services.profiles.profile_of(OWNER, sender="telegram:9")
    assert trusts(memory, path) == ["other", "other", "other"]


# What nothing is learned from


def test_tacits_own_work_is_neither_kept_nor_heard(memory: Memory) -> None:
    key = "agent:main:tacit-worker:extract"
    with memory.session(session_key=key) as session:
        session.message("user", "Extract the decisions")
    assert session.path is None
    live = SessionRegistry(memory.services)
    assert live.message(SessionRef(key), "user", "Extract the decisions").number == 0
    path = "raw/conversations/2026/03/04/0900-s-x.md"
    head = "---\nsession_id: s\nstarted: 2026-03-04T09:00:00+01:00\nsession_key: {}\norigin: {}\n---\n\n"
    text = f"{head}# x\n\n## 09:00 — user\n\nHi\n"
    write(memory.home.root, path, text.format(key, "host"))
    assert memory.services.attribution.attribute(path) is None
    write(memory.home.root, path, text.format(OWNER, "tacit"))
    assert memory.services.attribution.attribute(path) is None
    write(memory.home.root, path, text.format(OWNER, "host"))
    assert memory.services.attribution.attribute(path) is not None


def test_a_program_that_tacit_started_keeps_no_conversation(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(WORKER_VARIABLE, "1")
    with opened(home, lambda: NOW).session() as session:
        session.message("user", "Extract the decisions")
    assert session.path is None


def test_an_agent_whose_conversations_are_not_kept_any_more_is_not_heard(home: Path, memory: Memory) -> None:
    path = talked(memory, "agent:spy:main", ("user", "Hello"), agent="spy")
    assert memory.services.attribution.attribute(path) is not None
    assert configured(home, "capture: {exclude_agents: [spy]}\n").services.attribution.attribute(path) is None


def test_what_was_purged_is_not_heard(memory: Memory) -> None:
    path = talked(memory, OWNER, ("user", "One"), ("user", "Two"))
    purging.record_purge(
        memory.home, at="2026-03-04", origin="x", sources=[comment.source_name(path, 2)], by="me"
    )
    found = memory.services.attribution.attribute(path)
    assert found is not None
    assert [one.text for one in found.said] == ["One"]
    purging.record_purge(
        memory.home, at="2026-03-04", origin="x", sources=[comment.source_name(path)], by="me"
    )
    assert memory.services.attribution.attribute(path) is None


# What was given comes back


def test_fifty_turns_in_which_an_agent_repeats_a_note_teach_nothing(memory: Memory) -> None:
    write(memory.home.root, "knowledge/reference/glazes.md", f"# Glazes\n\n- {GLAZE}\n")
    turns = [
        one
        for number in range(25)
        for one in (("user", f"And bowl {number}?"), ("agent", f"As I noted: {GLAZE}\n\nANSWER{number}"))
    ]
    found = memory.services.attribution.attribute(talked(memory, OWNER, *turns))
    assert found is not None
    assert [one.text for one in found.said if one.role == "agent"] == [f"ANSWER{n}" for n in range(25)]


def test_what_a_turn_was_given_is_known_by_its_receipt_also_where_it_is_a_conversation(home: Path) -> None:
    memory = configured(home, "inject: {deadline_ms: 60000}\n")
    talked(memory, OWNER, ("user", f"{GLAZE} What about it, and the bowls?"))
    memory.services.searcher.update()
    with memory.session(session_key=OWNER) as session:
        session.message("user", "What is the glaze of the blue bowls called?")
        given = memory.turn("What is the glaze of the blue bowls called?", session_key=OWNER)
        assert GLAZE in given.text
        session.message("agent", f"You said: {GLAZE} Shall I order more?")
    assert session.path
    found = memory.services.attribution.attribute(session.path)
    assert found is not None
    assert [one.text for one in found.said if one.role == "agent"] == ["Shall I order more?"]


def test_a_line_that_was_learned_from_a_conversation_does_not_keep_it_from_being_learned_again(
    memory: Memory,
) -> None:
    path = talked(memory, OWNER, ("user", "What is it?"), ("agent", f"Decided: {GLAZE}"))
    line = comment.attach(f"- 2026-03-04: {GLAZE}", "decisions/1", [comment.source_name(path, 2)], "agent")
    write(memory.home.root, "knowledge/memory/MEMORY.md", f"# Memory\n\n{line}\n")
    found = memory.services.attribution.attribute(path)
    assert found is not None
    assert GLAZE in found.said[1].text

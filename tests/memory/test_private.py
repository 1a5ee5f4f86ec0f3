"""Who hears what: nothing that a session may not see is anywhere in what it gets, not even as left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.context.request import Request
from tacit.memory import Memory
from tests.memory.homes import (
    CRON,
    FORUM,
    GROUP,
    NOTES,
    OTHER_GROUP,
    OWNER,
    OWNER_DM,
    PATIENT,
    QUESTION,
    SAID,
    STRANGER,
    SUBAGENT,
    TOPICS,
    UNKNOWN,
    dropped_as,
    everything,
    in_slot,
    labels,
    opened,
    settle,
    write,
)

OPEN = {"knowledge/reference/hoses.md", "knowledge/reference/taps.md"}
SHARED = {*OPEN, "knowledge/procedures/watering.md", "topics/watering.md"}
OWNERS_OWN = {
    "knowledge/memory/MEMORY.md",
    "knowledge/journal/2026-03-09.md",
    "knowledge/projects/_active.md",
    "knowledge/projects/greenhouse/context.md",
    "knowledge/people/mira-olsen.md",
    "knowledge/reference/codes.md",
    "topics/codes.md",
    OWNER,
    GROUP,
    OTHER_GROUP,
    STRANGER,
}
SOUL, USER, TOOLS, BEAT, RULES = (
    f"knowledge/identity/{name}.md" for name in ("SOUL", "USER", "TOOLS_COMPACT", "HEARTBEAT", "AGENTS")
)
ALL_IDENTITY = {SOUL, USER, TOOLS, BEAT, RULES}
MAY_SEE: dict[str, set[str]] = {
    OWNER: {*SHARED, *OWNERS_OWN, *ALL_IDENTITY},
    OWNER_DM: {*SHARED, *OWNERS_OWN, *ALL_IDENTITY},
    CRON: {*SHARED, *OWNERS_OWN, *ALL_IDENTITY},
    GROUP: {*SHARED, SOUL, TOOLS, GROUP},
    OTHER_GROUP: {*SHARED, SOUL, TOOLS, OTHER_GROUP},
    FORUM: {*SHARED, SOUL, TOOLS},
    SUBAGENT: {*SHARED, SOUL},
    STRANGER: {*OPEN, SOUL},
    UNKNOWN: {*OPEN, SOUL},  # an identity that the host may load itself
}
ALL = {**NOTES, **TOPICS, **SAID}
ASKED = [
    QUESTION,
    "What does Mira Olsen do on Tuesdays?",
    "the code of the valve SECRETWORD",
    "PERSONWORD USERWORD COREWORD JOURNALWORD ELSEWHERESAID GROUPSAID MAINSAID",
    "Do you remember what Ines said about the tomatoes?",
    "ok",
]


def marks(source: str) -> Iterator[str]:
    """The word that stands in a file alone, and its path where that tells something."""
    yield next(word for word in ALL[source].split() if word.isupper() and len(word) > 7)
    if source.startswith(("knowledge/", "topics/")) and not source.startswith("knowledge/identity/"):
        yield source


def hidden_from(key: str) -> list[str]:
    return sorted(ALL.keys() - MAY_SEE[key])


def asked_for(message: str) -> set[str]:
    return {word for word in message.split() if word.isupper()}


@pytest.mark.parametrize("message", ASKED)
@pytest.mark.parametrize("key", MAY_SEE)
def test_what_a_session_may_not_see_is_nowhere_in_what_it_gets(lived: Memory, key: str, message: str) -> None:
    wake = ("codes", "pump", "watering")
    compiled = lived.services.turns.look(Request(message, key, wake=wake))
    told = everything(compiled)
    marked = {mark for source in hidden_from(key) for mark in marks(source)} - asked_for(message)
    # A topic for the group subscribes to a person; that it could not be had is said without a word of it.
    marked.discard("knowledge/people/mira-olsen.md")
    assert sorted(mark for mark in marked if mark in told) == []


@pytest.mark.parametrize("key", [OWNER, GROUP, OTHER_GROUP, STRANGER])
def test_what_a_session_may_see_reaches_it(lived: Memory, key: str) -> None:
    compiled = lived.services.turns.look(Request(QUESTION, key))
    seen = {source for source in ALL for mark in marks(source) if mark in compiled.text}
    expected = MAY_SEE[key] - {BEAT, RULES}  # loaded in other sessions of the owner's
    assert sorted(expected - seen) == []


def test_the_owner_of_one_agent_does_not_hear_another_agent(lived: Memory) -> None:
    assert "PUMP" not in everything(lived.services.turns.look(Request("the pump gives water", OWNER)))
    other = lived.services.turns.look(Request("the pump gives water to the tomatoes", "agent:pumpkin:main"))
    assert "PUMPWORD" in other.text
    assert "PUMPTOPIC" in other.text
    assert "MAINSAID" not in everything(other)


def test_an_agent_given_by_hand_counts_where_no_session_is_given(lived: Memory) -> None:
    given = lived.services.turns.look(Request("the pump gives water", OWNER, agent="pumpkin"))
    assert "PUMPTOPIC" in given.text
    assert (given.receipt.agent, given.receipt.session_key) == ("pumpkin", "agent:pumpkin:main")
    assert "MAINSAID" not in everything(lived.services.turns.look(Request(QUESTION, OWNER, agent="pumpkin")))


@pytest.mark.parametrize(("key", "agent"), [(CRON, "pumpkin"), ("agent:pumpkin:main", "main")])
def test_an_agent_that_is_not_the_one_of_the_key_hears_what_all_agents_share(
    lived: Memory, key: str, agent: str
) -> None:
    compiled = lived.services.turns.look(Request("the pump gives water to the tomatoes", key, agent=agent))
    told = everything(compiled)
    assert "COREWORD" in told
    assert not [word for word in ("PUMPWORD", "PUMPTOPIC", "MAINSAID", "GROUPSAID") if word in told]
    assert "agents" in [notice.code for notice in compiled.receipt.notices]


def test_a_topic_for_the_group_loses_what_it_subscribes_to_for_the_owner(lived: Memory) -> None:
    compiled = lived.services.turns.look(Request(QUESTION, GROUP))
    assert "TOPICWORD" in compiled.text
    assert in_slot(compiled, "subscriptions") == ["knowledge/procedures/watering.md"]
    assert dropped_as(compiled, "sub:knowledge/people/mira-olsen.md") == ["audience"]


def test_a_stranger_does_not_wake_topics_by_their_names(lived: Memory) -> None:
    compiled = lived.services.turns.look(
        Request(QUESTION, STRANGER, wake=("codes", "watering", "no-such-topic"))
    )
    assert in_slot(compiled, "topics") == []


def test_notices_do_not_tell_of_topics_that_a_session_may_not_see(garden: Path) -> None:
    head = "---\ntriggers:\n  - type: pattern\n    match: '(?<=HIDDENPATTERN)x'\naudience: owner\n---\n"
    write(garden, "topics/secret-deal.md", f"{head}# Secret deal\n\nSay nothing.\n")
    memory = opened(garden)
    assert "HIDDENPATTERN" in everything(memory.turn(QUESTION))
    told = everything(memory.turn(QUESTION, session_key=STRANGER))
    assert "HIDDENPATTERN" not in told
    assert "secret-deal" not in told


def test_a_gate_that_fails_does_not_tell_of_hidden_topics(garden: Path) -> None:
    write(
        garden,
        "topics/secret-deal.md",
        "---\ntriggers:\n  - {keywords: [water]}\naudience: owner\n---\n# Water deal\n\nWater.\n",
    )
    settle(garden, "inject: {deadline_ms: 2000}\nwatchers: {gate_model: 'openai:none'}\n")
    memory = opened(garden)
    assert "secret-deal" in everything(memory.turn(QUESTION))
    assert "secret-deal" not in everything(memory.turn(QUESTION, session_key=STRANGER))


def test_a_rule_that_is_narrower_holds_for_the_owner_too(garden: Path) -> None:
    narrow = "sessions:\n  main_session: {files: [SOUL.md], audience: group}\n"
    settle(garden, PATIENT + narrow)
    told = everything(opened(garden).turn(QUESTION))
    for mark in ("SECRETWORD", "COREWORD", "PERSONWORD", "USERWORD", "ACTIVEWORD"):
        assert mark not in told


def test_an_identity_file_that_restricts_itself_is_not_given_to_others(garden: Path) -> None:
    write(garden, "knowledge/identity/SOUL.md", "---\naudience: group\n---\n# Soul\n\nFor us. SOULWORD\n")
    memory = opened(garden)
    assert "identity:SOUL.md" in labels(memory.turn(QUESTION, session_key=GROUP))
    assert "SOULWORD" not in everything(memory.turn(QUESTION, session_key=STRANGER))


def test_a_typing_mistake_in_an_audience_makes_it_the_owners(garden: Path) -> None:
    write(
        garden, "knowledge/procedures/watering.md", "---\naudience: gruop\n---\n# W\n\nPROCEDUREWORD water\n"
    )
    assert "PROCEDUREWORD" not in everything(opened(garden).turn(QUESTION, session_key=GROUP))


def test_two_sessions_of_a_group_do_not_give_each_other_their_words(garden: Path) -> None:
    memory = opened(garden)
    for key in (GROUP, OTHER_GROUP):
        session = memory.session(key, started=memory.services.clock.now())
        session.message("user", f"The tomatoes in the greenhouse get water LATER{key[-3:]}")
        session.end()
    told = everything(memory.turn(QUESTION, session_key=GROUP))
    assert "LATER100" in told
    assert "LATER200" not in told


def test_a_subscription_to_a_conversation_is_for_the_owner_alone(garden: Path) -> None:
    (raw,) = (file for file in garden.glob("raw/conversations/*/*/*/*.md") if "GROUPSAID" in file.read_text())
    path = raw.relative_to(garden)
    write(
        garden,
        "topics/watering.md",
        f"---\ntriggers: [water]\nactivation: auto\nsubscriptions:\n  - {path}\n---\n# W\n\nTOPICWORD\n",
    )
    memory = opened(garden)
    assert f"sub:{path}" in labels(memory.turn(QUESTION))
    other = memory.turn(QUESTION, session_key=OTHER_GROUP)
    assert "TOPICWORD" in other.text
    assert "GROUPSAID" not in everything(other)


def test_names_that_a_session_may_not_know_do_not_change_what_it_gets(garden: Path) -> None:
    """A name overrides a skip; for a stranger that would tell which names there are."""
    memory = opened(garden)
    assert memory.turn("/status Mira Olsen").receipt.skipped == ""
    assert memory.turn("/status Mira Olsen", session_key=STRANGER).receipt.skipped == "command"

"""The seven rules of hot context, one after the other. What a host gets is `Memory.inject`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tacit.context import receipts
from tacit.context.model import Compiled
from tacit.memory import Memory
from tests.memory.homes import (
    GROUP,
    NOTES,
    OTHER_GROUP,
    OWNER,
    OWNERS,
    PATIENT,
    QUESTION,
    STRANGER,
    files_of,
    notice_codes,
    opened,
    settle,
    write,
)
from tests.search.fakes import Meaning

NOTHING_FITS = "Welche Farbe hat der Mantel von Kaiser Barbarossa im Kyffhäuser?"
OTHER = "What did we say about drip hoses and litres?"
DURABLE = ("knowledge", "topics", "raw", "archive", "drafts")


def durable(root: Path) -> dict[str, str]:
    return {path: digest for path, digest in files_of(root).items() if path.startswith(DURABLE)}


def searches(monkeypatch: pytest.MonkeyPatch, memory: Memory) -> list[str]:
    """What is searched for from now on, warming up apart."""
    memory.services.turns.warm()
    asked: list[str] = []
    find = memory.services.searcher.find

    def noted(text: Any, *args: Any, **more: Any) -> Any:
        asked.append(text)
        return find(text, *args, **more)

    monkeypatch.setattr(memory.services.searcher, "find", noted)
    return asked


# Rule 1


def test_rule_1_what_is_relevant_is_injected_and_nothing_that_the_host_has(garden: Path) -> None:
    given = opened(garden).inject(QUESTION)
    assert "CONTEXTWORD" in given.text
    assert QUESTION not in given.text
    assert "SOULWORD" not in given.text + given.standing  # it comes by the bootstrap lane
    assert given.receipt.lane == "runtime"
    assert given.tokens == given.receipt.tokens > 0


def test_rule_1_a_host_without_the_bootstrap_lane_gets_the_identity_as_standing_text(garden: Path) -> None:
    settle(garden, PATIENT.replace("inject: {", "inject: {lanes: [runtime], ") + OWNERS)
    memory = opened(garden)
    first = memory.inject(QUESTION)
    second = memory.inject(OTHER)
    assert "SOULWORD" in first.standing
    assert "SOULWORD" not in first.text
    assert first.standing == second.standing  # byte for byte: the provider caches it


def test_rule_1_no_passage_comes_twice_in_a_session(garden: Path) -> None:
    memory = opened(garden)
    first = memory.inject(QUESTION)
    said = [("user", QUESTION), ("agent", "With drip hoses.")]
    second = memory.inject("And how do we water the tomatoes at the root?", history=said)
    assert first.given
    assert not {one.text for one in first.given} & {one.text for one in second.given}


def test_rule_1_a_passage_that_changed_comes_again(garden: Path) -> None:
    memory = opened(garden)
    assert "four litres" in memory.inject(QUESTION).text
    path = "knowledge/projects/greenhouse/context.md"
    write(garden, path, NOTES[path].replace("four litres", "nine litres"))
    said = [("user", QUESTION), ("agent", "Yes.")]
    assert "nine litres" in memory.inject(QUESTION, history=said).text


# Rule 2


@pytest.mark.parametrize("message", [NOTHING_FITS, "ok", "", "  \n", "HEARTBEAT_OK", "/reset", "👍"])
def test_rule_2_where_nothing_is_relevant_nothing_at_all_is_injected(garden: Path, message: str) -> None:
    given = opened(garden).inject(message)
    assert (given.text, given.standing, given.tokens, given.sections) == ("", "", 0, ())
    assert given.receipt.id


def test_rule_2_an_empty_home_injects_nothing(plain: Path) -> None:
    given = opened(plain).inject(QUESTION)
    assert given.text == ""


# Rule 3


def lived_through(memory: Memory) -> None:
    """All that a host does: begins, asks, keeps messages and tools, looks up, ends."""
    memory.bootstrap(OWNER, [], None)
    with memory.session(OWNER) as session:
        session.message("user", QUESTION)
        memory.inject(QUESTION)
        session.tool("memory_search", "tomatoes", "found")
        memory.search("tomatoes")
        session.message("agent", "With drip hoses.")
        memory.turn(OTHER, history=[("user", QUESTION)])
    memory.session_ended(OWNER)


def test_rule_3_neither_injecting_nor_capturing_writes_to_durable_memory(garden: Path) -> None:
    before = durable(garden)
    lived_through(opened(garden))
    changed = {path for path in before.keys() | durable(garden).keys()
               if before.get(path) != durable(garden).get(path)}  # fmt: skip
    assert {path.split("/")[0] for path in changed} == {"raw"}


# Rule 4


def test_rule_4_an_excluded_agent_gets_nothing_and_its_neighbour_does(garden: Path) -> None:
    settle(garden, PATIENT.replace("inject: {", "inject: {exclude_agents: [watchdog], ") + OWNERS)
    memory = opened(garden)
    silent = memory.inject(QUESTION, session_key="agent:watchdog:main")
    assert (silent.text, silent.standing, silent.receipt.skipped) == ("", "", "excluded")
    assert "inject.exclude_agents" in silent.receipt.notices[0].text
    assert memory.inject(QUESTION).text


@pytest.mark.parametrize(
    ("key", "agent"),
    [("agent:watchdog:main", "main"), ("agent:main:main", "watchdog"), ("agent:WatchDog:main", None)],
)
def test_rule_4_an_agent_is_excluded_whoever_names_it_and_however_it_is_written(
    garden: Path, key: str, agent: str | None
) -> None:
    settle(garden, PATIENT.replace("inject: {", "inject: {exclude_agents: [Watchdog], ") + OWNERS)
    silent = opened(garden).inject(QUESTION, session_key=key, agent=agent)
    assert (silent.text, silent.receipt.skipped) == ("", "excluded")


def test_rule_4_a_type_of_session_can_opt_out_by_its_lanes(garden: Path) -> None:
    settle(garden, PATIENT + OWNERS + "sessions: {group_chat: {lanes: [bootstrap]}}\n")
    memory = opened(garden)
    silent = memory.inject(QUESTION, session_key=GROUP)
    assert (silent.text, silent.receipt.skipped) == ("", "lane")
    assert memory.inject(QUESTION).text


# Rule 5


@pytest.mark.parametrize(
    "tool",
    [
        "memory_search", "memory_get", "tacit_search", "mcp__tacit__search", "tacit", "Memory_Search",
        "mcp__plugin_tacit_tacit__search", "openclaw__memory_search", "functions.memory_search",
        "memorySearch", " memory_search", "mcp_memory_search", "tacit search",
    ],
)  # fmt: skip
def test_rule_5_our_own_tools_cause_no_fetch(
    garden: Path, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(garden)
    asked = searches(monkeypatch, memory)
    given = memory.inject(QUESTION, tool=tool)
    assert (given.text, given.receipt.skipped) == ("", "own-tool")
    assert asked == []


@pytest.mark.parametrize("tool", ["memorable_recipes", "gpu_memory_usage", "search", "attacit"])
def test_rule_5_tools_of_others_do(garden: Path, tool: str) -> None:
    assert opened(garden).inject(QUESTION, tool=tool).text


def test_rule_5_our_own_tools_neither_correct_the_agent_nor_count_as_turns(garden: Path) -> None:
    write(
        garden,
        "topics/litres.md",
        "---\ntriggers:\n  - type: pattern\n    match: 'five litres'\n    scope: output\n"
        "    correction_hint: Four litres CORRECTWORD\nsteering_pause: 2\n---\n# Litres\n\nFour.\n",
    )
    memory = opened(garden)
    said = [("user", "How much?"), ("agent", "It is five litres each.")]

    def corrected(message: str, tool: str = "") -> bool:
        return "CORRECTWORD" in memory.inject(message, history=said, tool=tool).text

    assert not corrected("One.", "memory_search")
    assert corrected("One.")
    for number in range(4):
        assert not corrected(f"Two {number}.", "memory_search")
    assert not corrected("Two."), "only one turn has passed"
    assert not corrected("Three.")
    assert corrected("Four.")


def test_rule_5_our_own_block_feeds_no_fetch(garden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = opened(garden)
    block = memory.inject(QUESTION).text
    asked = searches(monkeypatch, memory)
    given = memory.inject(block, session_key="agent:main:telegram:direct:7")
    assert (given.text, given.receipt.skipped) == ("", "own-block")
    memory.inject(f"{block}\n\n{OTHER}", session_key="agent:main:telegram:direct:7")
    assert asked == [OTHER]


def test_rule_5_a_turn_that_is_asked_for_within_a_turn_gets_nothing(garden: Path) -> None:
    inner: list[Compiled] = []

    class Curious(Meaning):
        """An embedder of somebody's own that asks us in turn."""

        def query(
            self, text: str, weigh: Callable[[str], float] | None = None, seconds: float | None = None
        ) -> bytes | None:
            inner.append(memory.inject(QUESTION))
            return super().query(text, weigh, seconds)

    memory = opened(
        garden, parts=lambda parts: replace(parts, embedder=lambda: Curious(senses=["water tomatoes"]))
    )
    outer = memory.inject(QUESTION)
    assert outer.text
    assert inner
    assert {one.receipt.skipped for one in inner} == {"own-tool"}


# Rule 6


def test_rule_6_the_same_question_is_searched_once_within_the_time(
    garden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(garden)
    asked = searches(monkeypatch, memory)
    memory.inject(QUESTION, session_key=OWNER)
    other = memory.inject(QUESTION, session_key="agent:main:dashboard", history=[("user", "hello")])
    again = memory.inject(QUESTION, session_key=OWNER, history=[("user", "hello")])
    assert "cache" in notice_codes(again)
    assert "cache" not in notice_codes(other)  # of another type: it may see less
    assert len(asked) == 2


def _change_the_index(memory: Memory) -> None:
    write(memory.home.root, "knowledge/reference/new.md", "# New\n\nSomething else entirely.\n")


def _end_the_session(memory: Memory) -> None:
    memory.session_ended(OWNER)


@pytest.mark.parametrize("reset", [_change_the_index, _end_the_session], ids=["index", "session"])
def test_rule_6_the_cache_is_empty_when_the_index_changed_or_a_session_ended(
    garden: Path, reset: Callable[[Memory], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(garden)
    first = memory.inject(QUESTION)
    reset(memory)
    asked = searches(monkeypatch, memory)
    second = memory.inject(QUESTION, history=[("user", "hello")])
    assert "cache" not in notice_codes(second)
    assert len(asked) == 1
    assert first.receipt.id != second.receipt.id


def test_rule_6_a_restart_knows_nothing_of_the_cache(garden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(garden).inject(QUESTION)
    after = opened(garden)
    asked = searches(monkeypatch, after)
    assert "cache" not in notice_codes(after.inject(QUESTION))
    assert len(asked) == 1


def test_rule_6_a_turn_that_is_asked_for_again_is_answered_the_same(garden: Path) -> None:
    memory = opened(garden)
    said = [("user", "Good morning"), ("agent", "Good morning.")]
    first = memory.inject(QUESTION, history=said)
    assert first.text
    assert memory.inject(QUESTION, history=said) == first
    changed = memory.inject(QUESTION, history=[*said, ("user", QUESTION)])
    assert changed.receipt.id != first.receipt.id


def test_rule_6_the_cache_can_be_turned_off(garden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(garden, PATIENT.replace("inject: {", "inject: {cache_seconds: 0, debounce_ms: 0, ") + OWNERS)
    memory = opened(garden)
    asked = searches(monkeypatch, memory)
    for _ in range(3):
        memory.inject(QUESTION)
    assert len(asked) == 3


def test_rule_6_nobody_is_served_what_was_found_for_somebody_else(garden: Path) -> None:
    memory = opened(garden)
    memory.inject(QUESTION, session_key=OWNER)
    stranger = memory.inject(QUESTION, session_key=STRANGER)
    group = memory.inject(QUESTION, session_key=GROUP)
    for text in (stranger.text + repr(stranger), group.text + repr(group)):
        assert "COREWORD" not in text
        assert "SECRETWORD" not in text
    other = memory.inject(QUESTION, session_key=OTHER_GROUP)
    assert "GROUPSAID" in group.text
    assert "GROUPSAID" not in other.text + repr(other)
    assert "ELSEWHERESAID" in other.text
    assert "ELSEWHERESAID" not in group.text + repr(group)


# Rule 7


def _no_index(memory: Memory) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise OSError(5, "Input/output error")

    memory.services.searcher.find = memory.services.searcher.names = broken  # type: ignore[method-assign]


def _no_topics(memory: Memory) -> None:
    def broken() -> Any:
        raise RuntimeError("boom")

    memory.services.turns.present.shelf = broken  # type: ignore[method-assign]


@pytest.mark.parametrize("breaks", [_no_index, _no_topics])
def test_rule_7_a_failure_gives_less_and_says_why(garden: Path, breaks: Callable[[Memory], None]) -> None:
    memory = opened(garden)
    breaks(memory)
    given = memory.inject(QUESTION)
    assert isinstance(given.text, str)
    assert given.receipt.notices
    assert all(notice.text for notice in given.receipt.notices)


def test_rule_7_a_home_that_is_gone_costs_no_turn(garden: Path) -> None:
    memory = opened(garden)
    memory.inject(QUESTION)
    garden.rename(garden.with_name("elsewhere"))
    given = memory.inject(OTHER)
    assert given.text == ""
    assert "No such file or directory" in {one.code: one.text for one in given.receipt.notices}["index"]
    assert not garden.exists()


@pytest.mark.parametrize("message", [None, 7, b"bytes", ["list"], "\ud800", "x" * 300_000])
def test_rule_7_no_message_breaks_a_turn(garden: Path, message: Any) -> None:
    assert isinstance(opened(garden).inject(message, sender=message, trigger=message, tool=message), Compiled)


def _no_profile(memory: Memory) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("could not read knowledge/reference/codes.md: SECRETWORD")

    memory.services.turns._state.profile_of = broken


@pytest.mark.parametrize("key", [OWNER, STRANGER, GROUP, "whatever:this:is"])
def test_rule_7_a_mistake_of_ours_tells_nobody_what_is_in_the_home(garden: Path, key: str) -> None:
    memory = opened(garden)
    _no_profile(memory)
    given = memory.inject(QUESTION, session_key=key)
    assert (given.text, given.standing, given.receipt.skipped) == ("", "", "bug")
    assert "SECRETWORD" not in repr(given)
    assert "codes.md" not in repr(given)
    [kept] = receipts.recent(memory.home, 1)
    assert kept.id in given.receipt.notices[0].text
    assert "SECRETWORD" in kept.notices[0].text, "the owner can find out"

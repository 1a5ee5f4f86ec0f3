"""Turns of a session: what is looked for, what wakes, what comes once, and what is left on disk."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tacit.context.model import Compiled
from tacit.context.request import Request
from tacit.embeddings.protocol import Embedder
from tacit.memory import Memory
from tacit.search.index import SearchParts
from tacit.topics.model import Event
from tests.memory.homes import (
    GROUP,
    NOW,
    OWNER,
    OWNER_DM,
    OWNERS,
    PATIENT,
    QUESTION,
    dropped_as,
    everything,
    files_of,
    in_slot,
    labels,
    notice_codes,
    opened,
    settle,
    write,
)
from tests.search.fakes import Meaning

HEARTBEAT = "Read HEARTBEAT.md. If nothing needs attention, reply HEARTBEAT_OK."


def knowledge(compiled: Compiled) -> list[str]:
    return [source.rpartition(":")[0] for source in in_slot(compiled, "knowledge")]


# ---------------------------------------------------------------- what is looked for


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("", "empty"),
        ("…", "empty"),
        (HEARTBEAT, "heartbeat"),
        ("/new", "command"),
        ("ok, thanks!", "acknowledgement"),
        ("alles klar, danke", "acknowledgement"),
        ("了解です", "acknowledgement"),
        ("好的，谢谢", "acknowledgement"),
        ("👍", "acknowledgement"),
    ],
)
def test_what_asks_for_nothing_gets_no_knowledge_and_the_receipt_says_why(
    lived: Memory, message: str, code: str
) -> None:
    compiled = lived.services.turns.look(Request(message))
    assert compiled.receipt.skipped == code
    assert in_slot(compiled, "knowledge") == in_slot(compiled, "topics") == []
    assert "identity:SOUL.md" in labels(compiled)


@pytest.mark.parametrize(
    "message",
    ["ok, as we said last time", "/ask do you remember the water?", "ok Mira Olsen", "/ask Mira Olsen"],
)
def test_a_word_that_asks_for_memory_overrides_a_skip(lived: Memory, message: str) -> None:
    compiled = lived.services.turns.look(Request(message))
    assert compiled.receipt.skipped == ""
    assert "search" in compiled.receipt.timings_ms
    assert "knowledge/people/mira-olsen.md" in knowledge(compiled) or "Mira" not in message


def test_a_heartbeat_in_its_session_has_what_it_looks_at(lived: Memory) -> None:
    compiled = lived.services.turns.look(Request(HEARTBEAT, "agent:main:main:heartbeat"))
    assert labels(compiled)[:3] == ["system", "identity:SOUL.md", "identity:HEARTBEAT.md"]
    assert compiled.receipt.session_type == "heartbeat_cron"


def test_a_question_gets_notes_conversations_and_where_they_are_from(lived: Memory) -> None:
    compiled = lived.services.turns.look(Request(QUESTION))
    assert {"knowledge/projects/greenhouse/context.md", "knowledge/memory/MEMORY.md"} <= {
        *knowledge(compiled)
    }
    assert any(path.startswith("raw/conversations/") for path in knowledge(compiled))
    assert "2026-03-09 knowledge/journal/2026-03-09.md]" in compiled.text
    assert all(section.reason for section in compiled.sections)


def test_a_question_about_something_else_gets_nothing_strong(lived: Memory) -> None:
    compiled = lived.services.turns.look(Request("Which opera did Verdi finish in 1871?"))
    strong = lived.config.inject.strong
    assert [one for one in compiled.sections if one.score is not None and one.score >= strong] == []


# ---------------------------------------------------------------- once in a session


def test_a_passage_comes_once_in_a_session_and_the_receipt_says_so(garden: Path) -> None:
    memory = opened(garden)
    assert "CONTEXTWORD" in memory.turn(QUESTION).text
    again = memory.turn(QUESTION)
    assert "CONTEXTWORD" not in again.text
    assert dropped_as(again, "knowledge:knowledge/projects/greenhouse/context.md") == ["repeated"]


def test_a_passage_that_changed_comes_again(garden: Path) -> None:
    memory = opened(garden)
    memory.turn(QUESTION)
    path = garden / "knowledge/projects/greenhouse/context.md"
    path.write_text(path.read_text().replace("four litres", "six litres"))
    again = memory.turn(QUESTION)
    assert "six litres each CONTEXTWORD" in again.text
    assert "COREWORD" not in again.text


def test_where_the_host_keeps_no_text_of_ours_a_passage_comes_again(garden: Path) -> None:
    memory = opened(garden)
    for question in (QUESTION, QUESTION, f"{QUESTION} Once more, please."):
        for take in (memory.turn, memory.inject):
            made = take(question, keeps_text=False)
            assert made.text.count("CONTEXTWORD") == 1
            assert "repeated" not in {one.code for one in made.dropped}
    assert "CONTEXTWORD" not in memory.turn(QUESTION).text  # which host asks decides, turn by turn


def test_another_session_gets_its_own(garden: Path) -> None:
    memory = opened(garden)
    memory.turn(QUESTION)
    assert "CONTEXTWORD" in memory.turn(QUESTION, session_key=OWNER_DM).text


def test_a_session_that_begins_anew_gets_it_again(garden: Path) -> None:
    memory = opened(garden)
    said = [("user", QUESTION), ("assistant", "With hoses.")]
    memory.turn(QUESTION)
    assert "CONTEXTWORD" not in memory.turn(QUESTION, history=said).text
    fresh = memory.turn(QUESTION)
    assert "CONTEXTWORD" in fresh.text


def test_a_session_after_a_long_pause_is_another_one(garden: Path) -> None:
    moments = [NOW, NOW + timedelta(hours=1), NOW + timedelta(hours=20)]
    texts = [opened(garden, now).turn(QUESTION).text for now in moments]
    assert ["CONTEXTWORD" in text for text in texts] == [True, False, True]


def test_another_process_knows_what_was_given(garden: Path) -> None:
    opened(garden).turn(QUESTION)
    assert "CONTEXTWORD" not in opened(garden).turn(QUESTION).text


def test_after_as_many_turns_as_the_config_says_it_comes_again(garden: Path) -> None:
    settle(garden, OWNERS + "inject: {deadline_ms: 60000, repeat_after_turns: 2}\n")
    memory = opened(garden)
    assert ["CONTEXTWORD" in memory.turn(QUESTION).text for _ in range(4)] == [True, False, False, True]


def test_what_did_not_fit_may_still_come(garden: Path) -> None:
    memory = opened(garden)
    first = memory.turn(QUESTION, budget=420)
    missed = [one.source for one in first.dropped if one.slot == "knowledge" and one.code == "budget"]
    assert missed
    second = memory.turn(QUESTION)
    assert not {*missed} & {one.source for one in second.dropped if one.code == "repeated"}
    assert {*missed} & {*in_slot(second, "knowledge")}


# ---------------------------------------------------------------- the conversation itself


def test_a_conversation_is_not_told_its_own_words(garden: Path) -> None:
    memory = opened(garden)
    session = memory.session(OWNER, started=memory.services.clock.now())
    said = "Please water the tomatoes in the greenhouse with the red can OWNSAID"
    before = memory.services.turns.look(Request(said))
    session.message("user", said)
    during = memory.turn(said)
    assert during.text.count("OWNSAID") == 1
    assert during.text.endswith(said)
    best = [max(one.score or 0 for one in turn.sections) for turn in (before, during)]
    assert best[1] < best[0] + 0.1
    assert "OWNSAID" not in everything(during).replace(said, "")
    session.end()


def test_what_was_said_before_in_an_ended_conversation_comes_back(garden: Path) -> None:
    memory = opened(garden)
    session = memory.session(OWNER, started=memory.services.clock.now())
    session.message("user", "Please water the tomatoes in the greenhouse with the red can OWNSAID")
    session.end()
    assert "OWNSAID" in memory.turn(QUESTION).text


# ---------------------------------------------------------------- what wakes topics


def topic(garden: Path, name: str, triggers: str, body: str, more: str = "activation: auto\n") -> None:
    write(garden, f"topics/{name}.md", f"---\ntriggers:\n{triggers}{more}---\n# {name}\n\n{body}\n")


def test_files_that_tools_touched_wake_topics(garden: Path) -> None:
    topic(garden, "python", "  - {type: glob, match: 'src/**/*.py'}\n", "Type everything. PYTHONTOPIC")
    memory = opened(garden)
    assert "PYTHONTOPIC" not in memory.turn("Go on").text
    assert "PYTHONTOPIC" in memory.turn("Go on", paths=["src/app/main.py"]).text
    calls = [
        {"role": "user", "content": "Fix it"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "1", "function": {"name": "edit", "arguments": '{"path": "src/app/other.py"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "done"},
    ]
    assert "PYTHONTOPIC" in memory.turn("Go on", history=calls).text
    old = [*calls, {"role": "user", "content": "And now?"}, {"role": "assistant", "content": "Hm."}]
    assert "PYTHONTOPIC" not in memory.turn("Go on", history=old).text


def test_a_webhook_wakes_the_topics_that_wait_for_it(garden: Path) -> None:
    topic(garden, "orders", "  - {type: webhook, source: shop, event: order_created}\n", "ORDERTOPIC")
    topic(garden, "refunds", "  - {type: webhook, source: shop, event: refund}\n", "REFUNDTOPIC")
    compiled = opened(garden).turn("", event=Event("webhook", "shop", "order_created"))
    assert in_slot(compiled, "topics") == ["topics/orders.md"]
    assert "ORDERTOPIC" in compiled.text


def test_a_schedule_wakes_its_own_topic_alone(garden: Path) -> None:
    for name in ("morning", "evening"):
        topic(garden, name, "  - {type: cron, schedule: '40 6 * * *'}\n", f"{name.upper()}TOPIC", "")
    event = Event("cron", topic="morning")
    compiled = opened(garden).turn("Scheduled run.", session_key="agent:main:cron:morning", event=event)
    assert in_slot(compiled, "topics") == ["topics/morning.md"]
    assert compiled.receipt.session_type == "heartbeat_cron"


def test_a_topic_asked_for_by_name_wakes_whatever_is_said(garden: Path) -> None:
    topic(garden, "rare", "  - {type: keywords, words: [never]}\n", "RARETOPIC", "activation: manual\n")
    memory = opened(garden)
    assert "RARETOPIC" not in memory.turn("never").text
    for message in ("ok", "", "anything else?"):
        assert "RARETOPIC" in memory.turn(message, wake=["rare"]).text
    assert "rare" in dict.fromkeys(
        one.decision.topic_name for one in memory.services.turns._state.decisions.read()
    )


def test_a_name_that_no_topic_has_is_told(garden: Path) -> None:
    compiled = opened(garden).turn(QUESTION, wake=["no-such-topic"])
    assert "no-such-topic" in everything(compiled)


def test_a_topic_that_subscribes_to_what_is_not_there_says_so_and_wakes(garden: Path) -> None:
    (garden / "knowledge/reference/blob.md").write_bytes(b"\0\1\2" * 100)
    write(garden, "knowledge/reference/huge.md", "# Huge\n\n" + "All about hoses. " * 200_000)
    subscribed = (
        "knowledge/none.md", "knowledge/reference", "knowledge/reference/blob.md",
        "knowledge/reference/huge.md", "../outside.md", "knowledge/reference/hoses.md",
    )  # fmt: skip
    listed = "".join(f"  - {path}\n" for path in subscribed)
    topic(garden, "wide", "  - {type: keywords, words: [water]}\n", "WIDETOPIC", f"subscriptions:\n{listed}"
          "activation: auto\npriority: critical\n")  # fmt: skip
    compiled = opened(garden).turn(QUESTION)
    assert "WIDETOPIC" in compiled.text
    assert dropped_as(compiled, "sub:knowledge/none.md") == ["missing"]
    assert dropped_as(compiled, "sub:knowledge/reference/blob.md") == ["unsafe"]
    (huge,) = (one for one in compiled.sections if one.source == "knowledge/reference/huge.md")
    assert huge.shortened
    assert "outside" not in compiled.text


# ---------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("key", "path", "word"),
    [
        ("memory_md", "knowledge/memory/MEMORY.md", "COREWORD"),
        ("journal", "knowledge/journal/2026-03-09.md", "JOURNALWORD"),
        ("projects", "knowledge/projects/_active.md", "ACTIVEWORD"),
    ],
)
def test_what_a_session_always_has_is_a_setting(garden: Path, key: str, path: str, word: str) -> None:
    def turn(loading: str, message: str) -> Compiled:
        settle(garden, PATIENT + OWNERS + f"context_compiler: {{{key}: {loading}}}\n")
        return opened(garden).services.turns.look(Request(message))

    always = turn("always", "ok")
    assert word in always.text
    assert path not in in_slot(always, "knowledge")
    retrieved = turn("retrieve", QUESTION)
    assert path in knowledge(retrieved)
    assert word not in turn("retrieve", "ok").text
    assert word not in turn("never", QUESTION).text
    settle(garden, PATIENT + OWNERS + f"context_compiler: {{{key}: always}}\n")
    assert word not in everything(opened(garden).services.turns.look(Request(QUESTION, GROUP)))


def test_what_is_loaded_whole_is_not_retrieved_as_well(garden: Path) -> None:
    settle(garden, PATIENT + OWNERS + "context_compiler: {memory_md: always, journal: always}\n")
    compiled = opened(garden).turn(QUESTION)
    for word in ("COREWORD", "JOURNALWORD", "ACTIVEWORD", "PROCEDUREWORD", "PERSONWORD"):
        assert compiled.text.count(word) == 1


def test_the_full_profile_loads_all_of_the_identity_for_the_owner(garden: Path) -> None:
    settle(garden, PATIENT + OWNERS + "context_compiler: {profile: full}\n")
    memory = opened(garden)
    assert "RULEWORD" in memory.turn("ok").text
    assert "RULEWORD" not in memory.turn("ok", session_key=GROUP).text


def test_an_agent_that_is_excluded_gets_its_message_and_its_history(garden: Path) -> None:
    settle(garden, "inject: {exclude_agents: [main], deadline_ms: 60000}\n")
    compiled = opened(garden).turn(QUESTION, history=[("user", "before")])
    assert labels(compiled) == ["history", "message"]
    assert compiled.receipt.skipped == "excluded"


def test_injection_that_is_off_gives_no_context(garden: Path) -> None:
    settle(garden, "inject: {enabled: false}\n")
    compiled = opened(garden).turn(QUESTION)
    assert labels(compiled) == ["message"]
    assert compiled.receipt.skipped == "disabled"


def test_no_more_characters_are_injected_than_the_config_says(garden: Path) -> None:
    settle(garden, PATIENT + OWNERS + "context_compiler: {max_injected_chars: 500}\n")
    compiled = opened(garden).turn(QUESTION)
    assert 0 < len(knowledge(compiled)) < 5
    assert "characters" in {one.code for one in compiled.dropped}


@pytest.mark.parametrize("most", [600, 1000, 4000])
def test_the_characters_are_those_of_the_whole_block(garden: Path, most: int) -> None:
    settle(garden, PATIENT + OWNERS + f"context_compiler: {{max_injected_chars: {most}}}\n")
    shutil.rmtree(garden / "topics")
    for number in range(30):
        said = f"# Tomatoes {number}\n\nHow we water the tomatoes in the greenhouse, part {number}."
        write(garden, f"knowledge/reference/n{number}.md", f"{said} {'And so on. ' * 12}\n")
    text = opened(garden).inject(QUESTION).text
    assert most * 0.6 < len(text) <= most


# ---------------------------------------------------------------- time


@dataclass(frozen=True)
class _Slow:
    """An embedder that takes its time for a question, whatever it is given."""

    embedder: Embedder
    seconds: float

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def dimensions(self) -> int:
        return self.embedder.dimensions

    def documents(self, texts: Sequence[str], seconds: float | None = None) -> list[bytes | None]:
        return self.embedder.documents(texts, seconds)

    def query(
        self, text: str, weigh: Callable[[str], float] | None = None, seconds: float | None = None
    ) -> bytes | None:
        time.sleep(self.seconds)
        return self.embedder.query(text, weigh, seconds)


def _slowly(parts: SearchParts) -> SearchParts:
    embedder = parts.embedder()
    assert embedder is not None
    return replace(parts, embedder=lambda: _Slow(embedder, 0.2))


def test_a_turn_without_time_has_its_identity_and_says_what_is_missing(garden: Path) -> None:
    settle(garden, OWNERS + "inject: {deadline_ms: 10}\n")
    for number in range(300):
        write(
            garden,
            f"topics/many-{number}.md",
            f"---\ntriggers: ['bed {number}']\n---\n# Bed {number}\n\nWater bed {number}.\n",
        )
    memory = opened(garden)
    long = [("user", f"{number} {QUESTION}") for number in range(20_000)]
    compiled = memory.turn(QUESTION, history=long)
    assert "deadline" in notice_codes(compiled)
    assert compiled.text.endswith(QUESTION)
    assert "SOULWORD" in compiled.text


def test_a_slow_embedder_costs_time_and_never_the_identity(garden: Path) -> None:
    settle(garden, OWNERS + "inject: {deadline_ms: 10}\n")
    compiled = opened(garden, parts=_slowly).turn(QUESTION)
    assert "SOULWORD" in compiled.text
    assert compiled.text.endswith(QUESTION)
    assert compiled.receipt.timings_ms["search"] >= 200


def test_a_step_that_ends_too_late_is_told(garden: Path) -> None:
    settle(garden, OWNERS + "inject: {deadline_ms: 10}\n")
    assert "deadline" in notice_codes(opened(garden, parts=_slowly).turn(QUESTION))


# ---------------------------------------------------------------- what is left on disk


def test_turns_write_nothing_but_into_their_own_folder(garden: Path) -> None:
    memory = opened(garden)
    memory.services.turns.warm()
    before = files_of(garden, without=(".tacit/", ".git/"))
    history = [{"role": "user", "content": f"We decided to use hose {number}."} for number in range(300)]
    for message in (QUESTION, "ok", "Mira Olsen", "/new"):
        memory.turn(message, history=history, budget=400)
        memory.services.turns.look(Request(message))
    assert files_of(garden, without=(".tacit/", ".git/")) == before
    status = subprocess.run(["git", "-C", garden, "status", "--porcelain"], capture_output=True, check=True)
    assert status.stdout == b""


def test_a_rehearsal_loads_what_a_question_needs_and_leaves_nothing(garden: Path) -> None:
    embedder = Meaning(senses=["water tomatoes"])
    memory = opened(garden, parts=lambda parts: replace(parts, embedder=lambda: embedder))
    memory.services.turns.rehearse()
    assert [text for text, _ in embedder.asked] == ["What did we decide last week?"]
    assert not (garden / ".tacit/receipts").exists()


def test_a_receipt_tells_the_whole_turn(garden: Path) -> None:
    memory = opened(garden)
    compiled = memory.turn(QUESTION, budget=900)
    (log,) = (garden / ".tacit/receipts").glob("*.jsonl")
    kept = json.loads(log.read_text().splitlines()[-1])
    receipt = compiled.receipt
    assert kept["id"] == receipt.id
    assert kept["session_type"] == "main_session"
    assert (kept["budget"], kept["tokens"]) == (900, compiled.tokens)
    assert [one["label"] for one in kept["sections"]] == labels(compiled)
    assert datetime.fromisoformat(kept["at"]) == NOW
    assert receipt.timings_ms.keys() >= {"history", "fixed", "guard", "watch", "search", "assemble"}
    assert sum(used for used, _ in receipt.slots.values()) == sum(one.tokens for one in compiled.sections)


def test_a_look_is_marked_as_one(garden: Path) -> None:
    memory = opened(garden)
    assert memory.services.turns.look(Request(QUESTION)).receipt.trial
    assert not memory.turn(QUESTION).receipt.trial


def test_every_source_that_is_kept_or_dropped_says_why(lived: Memory) -> None:
    compiled = lived.services.turns.look(Request(QUESTION, budget=700))
    kept: Sequence[str] = [one.reason for one in compiled.sections]
    assert all(kept)
    assert all(one.code and one.reason for one in compiled.dropped)


def test_keywords_of_an_awake_topic_are_looked_for_too(garden: Path) -> None:
    write(garden, "knowledge/reference/zinnia.md", "# Zinnia\n\nZinnia gets lime. ZINNIAWORD\n")
    triggers = "triggers: [{type: pattern, match: flowers}]\nactivation: auto\n"
    body = "# Flowers\n\nTell what each bed wants.\n"
    asked = Request("What about the flowers there?")
    write(garden, "topics/flowers.md", f"---\n{triggers}---\n{body}")
    assert "ZINNIAWORD" not in opened(garden).services.turns.look(asked).text
    write(garden, "topics/flowers.md", f"---\n{triggers}keywords: [zinnia, lime]\n---\n{body}")
    assert "ZINNIAWORD" in opened(garden).services.turns.look(asked).text


def test_a_long_passage_is_cut_around_what_was_asked_unless_a_budget_is_named(garden: Path) -> None:
    filler = "\n".join(
        f"- Line {number} about something else altogether, to fill the page." for number in range(14)
    )
    text = f"# Seeds\n\n{filler}\n- The Brandywine seeds are in the blue tin. TINWORD\n"
    write(garden, "knowledge/reference/seeds.md", text)
    question = "Where are the Brandywine seeds, in which tin?"
    memory = opened(garden)
    lean = memory.turn(question).text
    assert "TINWORD" in lean
    assert "[…]" in lean
    assert "Line 0 about" not in lean
    assert (
        "Line 0 about" in memory.turn(question, budget=3000, session_key="agent:main:telegram:direct:7").text
    )


def test_a_long_passage_of_a_file_that_is_loaded_whole_is_not_given_a_second_time(garden: Path) -> None:
    filler = "\n".join(f"- Line {number} about water for the tomatoes, to fill it." for number in range(18))
    write(garden, "knowledge/procedures/long.md", f"# Long\n\n{filler}\n- Brandywine last. TWICEWORD\n")
    head = "---\ntriggers: [{type: pattern, match: Brandywine}]\nactivation: auto\n"
    subscribed = "subscriptions: [knowledge/procedures/long.md]\n---\n# T\n\nTOPICWORD\n"
    write(garden, "topics/brandywine.md", head + subscribed)
    compiled = opened(garden).turn("When do we water the Brandywine tomatoes?")
    assert compiled.text.count("TWICEWORD") == 1
    assert "knowledge/procedures/long.md" in in_slot(compiled, "subscriptions")


def test_a_passage_that_was_cut_says_so_in_the_receipt(garden: Path) -> None:
    filler = "\n".join(
        f"- Line {number} about something else altogether, to fill it." for number in range(15)
    )
    write(garden, "knowledge/reference/seeds.md", f"# Seeds\n\n{filler}\n- Brandywine seeds: blue tin.\n")
    compiled = opened(garden).turn("Where are the Brandywine seeds, in which tin?")
    cut = [
        one.shortened for one in compiled.sections if one.source.startswith("knowledge/reference/seeds.md")
    ]
    assert cut
    assert re.fullmatch(r"only 7\d\d of 8\d\d characters", cut[0])


KILN = (
    "The kiln was bought from a school, and it came without a manual. "
    + "It heats slowly at first, because the lower part of it is weaker than the upper one. " * 8
    + "The fuse is number seven in the grey box. The spare element lies in the blue drawer."
)


def test_of_a_passage_in_one_long_line_what_was_asked_for_is_given(garden: Path) -> None:
    write(garden, "knowledge/reference/kiln.md", f"# Kiln\n\n{KILN}\n")
    memory = opened(garden)
    given = memory.inject("Where is the spare element of the kiln?")
    assert "blue drawer" in given.text
    [part] = [one for one in given.sections if one.source.startswith("knowledge/reference/kiln.md")]
    [quote] = [one for one in given.given if one.source == part.source]
    assert part.shortened == f"only {len(quote.text.removeprefix('[…] ')):,} of {len(KILN) + 8:,} characters"


def test_a_heading_or_the_frame_of_a_table_is_not_given_as_knowledge(garden: Path) -> None:
    write(
        garden, "knowledge/reference/hoses.md", "# Hoses of the greenhouse\n\n| what | value |\n|---|---|\n"
    )
    compiled = opened(garden).turn("Which hoses are there in the greenhouse?")
    assert "Hoses of the greenhouse" not in compiled.text

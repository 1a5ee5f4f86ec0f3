"""The conversation in a turn: its window, what leaves it, and what the agent is told about its own words."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tacit.context.model import Compiled
from tests.memory.homes import (
    GROUP,
    OWNER,
    OWNER_DM,
    everything,
    files_of,
    in_slot,
    labels,
    notice_codes,
    opened,
    write,
)

HEAD = (
    "---\ntriggers:\n  - type: pattern\n    match: 'hose'\n    scope: output\n    correction_hint: {hint}\n"
)


def history_of(compiled: Compiled) -> list[str]:
    """The lines between the marks of the history."""
    lines = compiled.text.split("\n")
    (start,) = (at for at, line in enumerate(lines) if line.startswith("<!-- history "))
    (end,) = (at for at, line in enumerate(lines) if line.startswith("<!-- /history "))
    return lines[start + 1 : end]


# ---------------------------------------------------------------- the window


def test_a_history_is_read_in_the_order_of_time_and_tools_take_one_line(garden: Path) -> None:
    history = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Open the valve.\nPlease."},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "7", "function": {"name": "valve", "arguments": '{"open": true}'}}]},
        {"role": "tool", "tool_call_id": "7", "content": "opened\n" + "noise\n" * 500},
        {"role": "assistant", "content": "It is open."},
    ]  # fmt: skip
    lines = history_of(opened(garden).turn("And now?", history=history))
    assert lines[:3] == ["system: Be short.", "user: Open the valve.", "Please."]
    assert lines[3] == 'tool valve: called with {"open": true}'
    assert lines[4].startswith("tool valve: opened … (")
    assert lines[5:] == ["agent: It is open."]


def test_the_oldest_turns_leave_and_the_newest_stay_in_order(garden: Path) -> None:
    history = [("user", f"sentence number {number}") for number in range(500)]
    compiled = opened(garden).turn("And now?", history=history, budget=1000)
    lines = history_of(compiled)
    kept = [int(line.rpartition(" ")[2]) for line in lines]
    assert kept == [*range(500 - len(kept), 500)]
    assert 20 < len(kept) < 400
    (section,) = (one for one in compiled.sections if one.slot == "history")
    assert section.shortened == f"{500 - len(kept)} older left out"


def test_the_conversation_keeps_its_floor_beside_an_identity_that_wants_all(garden: Path) -> None:
    write(garden, "knowledge/identity/SOUL.md", "# Soul\n\n" + "One of many rules. " * 3000)
    history = [("user", f"sentence number {number}") for number in range(500)]
    compiled = opened(garden).turn("And now?", history=history, budget=1000)
    (section,) = (one for one in compiled.sections if one.slot == "history")
    assert section.tokens >= 0.2 * 1000


def test_nothing_of_the_system_is_dropped_while_turns_are_kept(garden: Path) -> None:
    history = [("system", "Never open the valve at night."), *[("user", f"number {n}") for n in range(900)]]
    compiled = opened(garden).turn("And now?", history=history, budget=700)
    assert history_of(compiled)[0] == "system: Never open the valve at night."


# ---------------------------------------------------------------- what leaves the window


def proposals(garden: Path) -> list[Any]:
    return [json.loads(file.read_text()) for file in sorted(garden.glob(".tacit/proposals/*.json"))]


def spoken(turns: int) -> list[dict[str, str]]:
    history = [{"role": "user", "content": f"And then bed {number} was dry."} for number in range(turns)]
    history[2] = {"role": "user", "content": "We decided to water bed nine with rain only."}
    history[3] = {"role": "assistant", "content": "Understood. Bed nine it is."}
    return history


def test_what_leaves_the_window_is_offered_once_and_no_note_is_touched(garden: Path) -> None:
    memory = opened(garden)
    memory.services.turns.warm()
    before = files_of(garden, without=(".tacit/", ".git/"))
    first = memory.turn("And now?", history=spoken(150), budget=600)
    assert "flushed" in notice_codes(first)
    memory.turn("And now?", history=spoken(152), budget=600)
    opened(garden).turn("And now?", history=spoken(153), budget=600)
    (kept,) = proposals(garden)
    texts = [change["text"] for change in kept["changes"]]
    assert [text for text in texts if "bed nine with rain only" in text] == [
        "We decided to water bed nine with rain only."
    ]
    assert files_of(garden, without=(".tacit/", ".git/")) == before
    status = subprocess.run(["git", "-C", garden, "status", "--porcelain"], capture_output=True, check=True)
    assert status.stdout == b""


def test_what_stays_in_the_window_is_not_offered(garden: Path) -> None:
    compiled = opened(garden).turn("And now?", history=spoken(20), budget=8000)
    assert proposals(garden) == []
    assert not {"flushed", "flush-ok"} & {*notice_codes(compiled)}


def test_the_word_of_a_stranger_is_not_offered_as_the_owners(garden: Path) -> None:
    opened(garden).turn("And now?", session_key=GROUP, history=spoken(150), budget=600)
    (kept,) = proposals(garden)
    assert {change["trust"] for change in kept["changes"]} == {"other"}


def test_words_without_a_decision_are_told_and_leave_nothing(garden: Path) -> None:
    history = [("user", "la la la")] * 900
    compiled = opened(garden).turn("And now?", history=history, budget=400)
    assert "flush-ok" in notice_codes(compiled)
    assert proposals(garden) == []


# ---------------------------------------------------------------- the agent's own words


@pytest.fixture
def strict(garden: Path) -> Path:
    head = HEAD.format(hint="We say pipe and never hose.")
    write(garden, "topics/words.md", f"{head}activation: auto\nsteering_pause: 3\n---\n# Words\n\nBODYWORD\n")
    return garden


def said(text: str) -> list[tuple[str, str]]:
    return [("user", "What do I need?"), ("assistant", text)]


def test_an_agent_is_corrected_once_and_then_not_for_some_turns(strict: Path) -> None:
    memory = opened(strict)
    turns = [memory.turn("And now?", history=said("A hose.")) for _ in range(6)]
    told = ["We say pipe and never hose." in turn.text for turn in turns]
    assert told == [True, False, False, False, True, False]
    assert labels(turns[0]).count("correction:words") == 1
    assert "BODYWORD" not in turns[0].text


def test_another_session_is_corrected_on_its_own(strict: Path) -> None:
    memory = opened(strict)
    memory.turn("And now?", history=said("A hose."))
    assert "We say pipe" in memory.turn("And now?", session_key=OWNER_DM, history=said("A hose.")).text


def test_only_what_the_agent_said_last_is_corrected(strict: Path) -> None:
    memory = opened(strict)
    older = [*said("A hose."), ("user", "Which?"), ("assistant", "The long one.")]
    assert "We say pipe" not in memory.turn("And now?", history=older).text
    assert "We say pipe" not in memory.turn("I want a hose", history=[("user", "a hose")]).text


def test_a_topic_that_does_not_ask_for_it_corrects_nobody(garden: Path) -> None:
    head = "---\ntriggers:\n  - {type: pattern, match: 'hose', scope: output}\nactivation: auto\n"
    write(garden, "topics/words.md", f"{head}---\n# Words\n\nBODYWORD\n")
    assert "BODYWORD" not in everything(opened(garden).turn("And now?", history=said("A hose.")))


def test_a_correction_comes_with_an_acknowledgement_too(strict: Path) -> None:
    """The agent speaks next, whatever the user said."""
    compiled = opened(strict).turn("ok", history=said("A hose."))
    assert "We say pipe" in compiled.text
    assert compiled.receipt.skipped == "acknowledgement"
    assert in_slot(compiled, "topics") == ["topics/words.md"]
    assert compiled.receipt.session_key == OWNER


def test_a_topic_that_corrects_without_a_hint_gives_its_text_and_pauses_too(garden: Path) -> None:
    head = "---\nsteering: true\nsteering_pause: 3\nactivation: auto\ntriggers:\n"
    trigger = "  - {type: pattern, match: 'hose', scope: output}\n"
    write(garden, "topics/words.md", f"{head}{trigger}---\n# Words\n\nSay drip line. BODYWORD\n")
    memory = opened(garden)
    history = [("user", "How?"), ("agent", "With the hose.")]
    turns = [memory.turn("And then?", history=history) for _ in range(3)]
    assert [labels(turn).count("correction:words") for turn in turns] == [1, 0, 0]
    assert "BODYWORD" in turns[0].text

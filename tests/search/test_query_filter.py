from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.search.query_filter import (
    MAX_ACKNOWLEDGEMENT_CHARS,
    MAX_START_CHARS,
    FilterResult,
    filter_query,
    load_patterns,
    load_phrases,
)
from tests.hostile import hostile

MESSAGES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "data" / "skip_messages.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]
SKIPS = {"", "empty", "heartbeat", "command", "acknowledgement"}


@pytest.mark.parametrize("row", MESSAGES, ids=lambda row: ascii(row["text"])[:40])
def test_each_message_is_skipped_or_searched_as_people_would(row: dict[str, Any]) -> None:
    found = filter_query(row["text"], row.get("names", ()))
    assert (found.skip, found.technical) == (row["skip"], row["technical"])
    if "cue" in row:
        assert found.cue == row["cue"]


def test_the_messages_cover_every_rule_in_four_languages() -> None:
    for language in ("en", "de", "ja", "zh"):
        of = [row for row in MESSAGES if row["lang"] == language]
        assert len(of) > 40
        assert {"", "acknowledgement", "heartbeat"} <= {row["skip"] for row in of}
        assert any(row["technical"] for row in of)
        assert any(row.get("cue") for row in of)


@pytest.mark.parametrize("message", [None, 7, 1.5, b"ok", ["ok"], {"text": "ok"}, object()])
def test_what_is_no_text_is_empty(message: object) -> None:
    assert filter_query(message).skip == "empty"


def test_a_plain_question_gets_no_remark() -> None:
    assert filter_query("When does the post office close?") == FilterResult()


def test_every_skip_says_why_in_words() -> None:
    for row in MESSAGES:
        found = filter_query(row["text"], row.get("names", ()))
        assert bool(found.reason) == bool(found.skip or found.technical or found.cue)


def test_the_reason_names_what_was_seen() -> None:
    assert filter_query("/status all").reason == "it is a command: /status"
    assert filter_query("docker is slow").reason == "it is technical: it says “docker”"
    assert filter_query("the server has a bug").reason == "it is technical: it says “server” and “bug”"
    assert filter_query("my docker is slow").reason == "it is technical: it says “docker”; but it says “my”"


def test_a_name_overrides_as_a_whole_word_only() -> None:
    assert filter_query("docker for Ana", ["Ana Ruiz"]).cue == "Ana Ruiz"
    assert filter_query("docker for Anabel", ["Ana Ruiz"]).technical
    assert filter_query("docker for ANA ruiz", ["Ana Ruiz"]).cue == "Ana Ruiz"
    assert filter_query("docker für Müller", ["Mueller", "müller"]).cue == "müller"


def test_a_name_in_code_or_in_a_quote_overrides_nothing() -> None:
    assert filter_query("```\nana = 1\n```\nwhy?", ["Ana"]).technical
    assert filter_query("> Ana likes it\nwhich docker image?", ["Ana"]).technical


def test_nothing_overrides_an_empty_message() -> None:
    assert filter_query("...", ["..."]).skip == "empty"
    assert filter_query("", [""]).skip == "empty"


def test_odd_names_do_no_harm() -> None:
    assert filter_query("ok", ["", " ", "...", "\ud800", "\0", "(", "a" * 10_000]).skip == "acknowledgement"


def test_a_long_message_is_judged_by_its_beginning_and_its_end() -> None:
    log = "12:00 the pump is on\n" * 50_000
    assert filter_query(f"{log}error").technical
    assert filter_query(f"npm\n{log}").technical
    assert filter_query(f"npm\n{log}what did we decide about this?").cue == "did we"
    assert not filter_query(f"{log}npm{log}").technical


def test_what_comes_before_the_first_word_does_not_hide_it() -> None:
    assert filter_query(" " * 1_000_000 + "/new").skip == "command"
    assert filter_query("\n" * 100_000 + "ok").skip == "acknowledgement"
    assert filter_query("." * 100_000 + "Ana") == FilterResult()


def test_a_long_row_of_acknowledgements_is_searched() -> None:
    assert filter_query("ok " * (MAX_ACKNOWLEDGEMENT_CHARS // 3)).skip == "acknowledgement"
    assert filter_query("ok " * MAX_ACKNOWLEDGEMENT_CHARS).skip == ""


@pytest.mark.parametrize(
    "piece",
    ["a", " ", "\n", "```", "<a ", ">", "function ", "--a", "SELECT ", "/", "o", "no ", "あ", "好", "好 x",
     "if nothing ", "read heartbeat.md ", "heartbeat:", "1:", "0x", "_", "from a.", "class A", "\u0301\u0316",
     "\U0001f44d", "\U0001f468\u200d", "はー", "っ", ": ", "; ", "{"],
)  # fmt: skip
def test_a_megabyte_of_anything_is_taken(piece: str) -> None:
    """Whatever takes the square of the length would not come back from this."""
    for text in (piece * (1_000_000 // len(piece)), piece * (MAX_START_CHARS // len(piece)), piece * 30):
        assert filter_query(text).skip in SKIPS
        assert filter_query(f"{text}x", ["x"]).skip in SKIPS


@given(st.one_of(st.text(), hostile), st.lists(st.text(max_size=20), max_size=4))
def test_any_text_gives_the_same_result_twice(text: str, names: list[str]) -> None:
    found = filter_query(text, names)
    assert found == filter_query(text, names)
    assert found.skip in SKIPS
    assert not (found.skip and (found.technical or found.cue))


@given(st.text(max_size=60))
def test_whatever_follows_a_cue_is_searched(text: str) -> None:
    assert filter_query(f"remember {text}").skip == ""


_ACKNOWLEDGED = [
    *load_phrases("acknowledgement"),
    *load_patterns("acknowledgement").split("|"),
]


@given(
    st.lists(st.sampled_from(_ACKNOWLEDGED), min_size=1, max_size=3),
    st.sampled_from(["", "!", ".", " 👍", "...", " :)", "。", "\n"]),
)
def test_acknowledgements_may_follow_each_other(phrases: list[str], end: str) -> None:
    text = ", ".join(phrases) + end
    assert filter_query(text).skip == "acknowledgement"
    assert filter_query(text.upper()).skip == "acknowledgement"
    assert filter_query(f"{text} xylophone").skip == ""


def test_no_word_is_listed_twice_in_a_meaning() -> None:
    names = ("memory", "personal", "technical", "weak technical", "acknowledgement", "beside")
    lists = {f"{name} SPACED": load_phrases(name) for name in names}
    lists |= {
        f"{name} UNSPACED": load_patterns(name).split("|") for name in names if name != "weak technical"
    }
    assert len(lists) == 11
    for name, words in lists.items():
        bare = [" ".join(word.split()) for word in words]
        assert "" not in bare, name
        assert sorted({word for word in bare if bare.count(word) > 1}) == [], name

"""Sentences end where a reader would end them."""

from __future__ import annotations

import pytest
from hypothesis import given

from tacit.search.weights import MAX_SAME_QUESTION_FACTOR, MIN_SAME_WORDS
from tacit.text.sentences import (
    MAX_SENTENCE_CHARS,
    is_informative,
    is_question,
    mask_quotes,
    match_same_question,
    shorten_sentence,
    split_sentences,
)
from tests.hostile import hostile


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Drive slowly. It rains.", ["Drive slowly.", "It rains."]),
        ("We use e.g. oak. It lasts.", ["We use e.g. oak.", "It lasts."]),
        ("Am 22. Oktober kommt er. Um acht.", ["Am 22. Oktober kommt er.", "Um acht."]),
        ("It was 125 °C at 22:32. But nothing came.", ["It was 125 °C at 22:32.", "But nothing came."]),
        ("Sie wohnt in Nummer 17. Sie mag Tee.", ["Sie wohnt in Nummer 17.", "Sie mag Tee."]),
        ("It boils at 78 °C. It burns.", ["It boils at 78 °C.", "It burns."]),
        ("It holds 1222. Then it cools.", ["It holds 1222.", "Then it cools."]),
        ("we are home. mama is fine. it rains", ["we are home.", "mama is fine.", "it rains"]),
        ("Open report.pdf now. Then close it.", ["Open report.pdf now.", "Then close it."]),
        ("- one thing\n- another thing", ["one thing", "another thing"]),
        ("> quoted\n\nsaid", ["said"]),
        ("# title\n\n```\ncode.\n```\nsaid", ["said"]),
        ("| a | b |\n\nsaid", ["said"]),
    ],
)
def test_a_text_is_cut_into_its_sentences(text: str, expected: list[str]) -> None:
    assert list(split_sentences(text)) == expected


def test_what_is_quoted_or_code_is_masked_in_its_length() -> None:
    assert mask_quotes('he said "no way" and `rm`') == 'he said "······" and `··`'


def test_what_ends_with_a_colon_or_is_short_says_too_little() -> None:
    assert not is_informative("Here it comes:")
    assert not is_informative("Oh no")
    assert is_informative("Close the door.")
    assert is_informative("窓を閉める。")


def test_what_is_too_long_is_cut_at_a_word() -> None:
    text = shorten_sentence("word " * 100)
    assert len(text) <= MAX_SENTENCE_CHARS
    assert text.endswith("word …")


QUESTION = "What did we decide about local model strategy?"


@pytest.mark.parametrize(
    "text",
    [
        QUESTION,
        "what did we decide about local models",
        "Hi Jules, when did we fire the kiln",
        "[Telegram Ines 2026-11-18 09:12] who loads the kiln",
        "remind me what we decided",
        "tell me about the kiln",
        "hast du den Ofen bestellt",
        "Wie lange brennt der Ofen",
        "qu'est-ce qu'on a décidé",
        "когда запуск",
        "我们决定了什么",
        "次のリリースはいつ",
        "窑坏了？",
    ],
)
def test_questions_are_told_by_their_sign_or_their_beginning(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "Forge was set up on Monday.",
        "Forge is ready, which is good.",
        "When the kiln is hot, open no door.",
        "Have a look at the kiln.",
        "Remind me to order clay.",
        "Wie besprochen: der Ofen kommt am Montag.",
        "Hello Jules.",
        "",
    ],
)
def test_statements_ask_nothing(text: str) -> None:
    assert not is_question(text)
    assert match_same_question(text, MIN_SAME_WORDS, MAX_SAME_QUESTION_FACTOR) is None


@pytest.mark.parametrize(
    "text",
    [
        f"{QUESTION} After the pause?",
        f"{QUESTION} Once more, please.",
        f"Hello! {QUESTION} And who wrote that?",
    ],
)
def test_what_only_asks_may_ask_something_more(text: str) -> None:
    assert is_same(QUESTION, text)


def is_same(question: str, text: str) -> bool:
    same = match_same_question(question, MIN_SAME_WORDS, MAX_SAME_QUESTION_FACTOR)
    assert same is not None
    return same(text)


@pytest.mark.parametrize(
    "text",
    [
        QUESTION,
        "what did we decide about local model strategy",
        "WHAT DID WE DECIDE — about LOCAL MODEL STRATEGY??",
        "Hi Jules, what did we decide about local model strategy? Thanks!",
        "[Telegram Ines id:7 2026-11-18 09:12 GMT+1] What did we decide about local model strategy?",
        "What did we decide about the local model strategy?",
    ],
)
def test_the_same_question_is_recognised_however_it_is_written_and_both_ways(text: str) -> None:
    assert is_same(QUESTION, text)
    assert is_same(text, QUESTION)


@pytest.mark.parametrize(
    "text",
    [
        "We decided about local model strategy: small models at home.",
        "What did we decide about local model strategy? Small ones.",
        "Since May the shop pays. What did we decide about local model strategy?",
        "What did we decide about local model strategy? Yes.",
        "What did we decide about local model strategy on the 14?",
        "What did we decide about the glaze?",
        "What did we decide?",
        "Understood.",
        "",
    ],
)
def test_what_says_more_or_asks_something_else_is_not_the_same(text: str) -> None:
    assert not is_same(QUESTION, text)


def test_a_statement_with_the_words_of_a_question_answers_it() -> None:
    assert not is_same("Is the kiln in the studio broken?", "The kiln in the studio is broken.")
    assert not is_same("Is the kiln broken?", "The kiln is broken. Is the kiln broken?")


def test_one_word_of_five_may_be_another() -> None:
    assert is_same("Is the kiln on?", "Ines, is the kiln on?")
    assert not is_same("Is the kiln on?", "Ines, is the old kiln on?")


def test_words_to_look_for_beside_a_question_make_it_no_other_one() -> None:
    beside = "\nkiln glaze clay firing cone bisque wheel oxide shelf wax"
    assert is_same(QUESTION + beside, QUESTION)
    assert is_same(QUESTION.rstrip("?") + beside, QUESTION)
    assert not is_same(QUESTION + beside, "What about kiln and glaze and clay?")


def test_scripts_without_spaces_are_compared_too() -> None:
    assert is_same("次のリリースはいつですか？", "次のリリースはいつですか")
    assert not is_same("次のリリースはいつですか？", "次のリリースは金曜日です。いつ？")


@given(hostile, hostile)
def test_any_two_texts_can_be_compared(question: str, text: str) -> None:
    same = match_same_question(question, MIN_SAME_WORDS, MAX_SAME_QUESTION_FACTOR)
    assert same is None or same(text) in (True, False)

"""The key is held against what was found as it says, and the rules keep what they reached."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tacit import sample
from tacit.errors import UsageError
from tacit.evaluation.extraction import (
    AnswerKey,
    ExtractionScore,
    attributed_conversations,
    pair_with_names,
    read_key,
    score_conversation,
    score_extractors,
)
from tacit.evaluation.homes import build_sample_home
from tacit.evaluation.prompt_quality import measure_searchable
from tacit.evaluation.questions import read_answers
from tacit.learn.entities import load_known_names
from tacit.learn.extractors.decisions import EXTRACTOR
from tacit.learn.extractors.registry import BUILT_IN
from tacit.memory import Memory
from tests.learn.talk import found

SAMPLE = Path(sample.__file__).parent

KEY = {"a": {"decisions": {"wanted": [[1, "close", "six|6"], [[2, 3], "blue"]], "also": [[1, "Monday"]]}}}


def written(name: str) -> object:
    return yaml.safe_load((SAMPLE / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def key() -> AnswerKey:
    by_slug = read_key(written("key.yaml"), "key.yaml")
    return {one.session_id: by_slug[one.slug] for one in sample.conversations()}


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory, _nobody: None) -> Memory:
    return build_sample_home(tmp_path_factory.mktemp("sample") / "home")


def test_a_line_is_right_by_its_turn_and_all_words_and_an_item_counts_once() -> None:
    items = read_key(KEY, "key")["a"]["decisions"]
    right = found(EXTRACTOR, "We decided to close at six.")
    one = score_conversation("a", right, items)
    assert (one.wanted, one.found, one.lines, one.right) == (2, 1, 1, 1)
    assert one.missed == ("a#2,3 blue",)
    wrong = found(EXTRACTOR, "Hm.", "We decided to close at six.")  # another turn
    assert score_conversation("a", wrong, items).mistaken == ("a#2 We decided to close at six.",)
    again = score_conversation("a", [*right, *found(EXTRACTOR, "We agreed on six: we close then.")], items)
    assert (again.found, again.lines, again.right) == (1, 2, 1)
    beside = score_conversation("a", found(EXTRACTOR, "We decided to rest on Monday."), items)
    assert (beside.found, beside.right) == (0, 1)


def test_shares_of_nothing_are_none() -> None:
    assert (ExtractionScore().precision, ExtractionScore().recall) == (None, None)
    both = ExtractionScore(2, 1, 1, 1) + ExtractionScore(2, 2, 3, 2)
    assert (both.recall, both.precision) == (0.75, 0.75)


@pytest.mark.parametrize(
    "data",
    [None, [], "x", {"a": []}, {"a": {"facts": {"wanted": [[1]]}}}, {"a": {"facts": {"wanted": ["x"]}}}],
)
def test_what_is_no_key_is_said(data: object) -> None:
    with pytest.raises(UsageError, match=r"key.yaml is no key\. Write"):
        read_key(data, "key.yaml")


def test_the_key_of_the_sample_names_conversations_turns_and_extractors_that_are_there() -> None:
    by_slug = read_key(written("key.yaml"), "key.yaml")
    conversations = {one.slug: one for one in sample.conversations()}
    assert set(by_slug) == set(conversations)
    wanted = 0
    for slug, by_extractor in by_slug.items():
        assert set(by_extractor) <= set(BUILT_IN)
        for items in by_extractor.values():
            wanted += sum(item.is_wanted for item in items)
            for item in items:
                for number in item.turns:
                    assert conversations[slug].turns[number - 1].kind == "message"
    assert wanted >= 150


def test_every_item_of_the_key_can_be_found_in_its_turns() -> None:
    """Else it could never count. Words of a table or a list may stand in two lines of a turn."""
    by_slug = read_key(written("key.yaml"), "key.yaml")
    for conversation in sample.conversations():
        for items in by_slug[conversation.slug].values():
            for item in items:
                text = " ".join(conversation.turns[number - 1].text for number in item.turns).casefold()
                for either in item.words:
                    assert any(word.casefold() in text for word in either), (conversation.slug, item)


def test_turns_of_a_transcript_have_the_numbers_of_the_sample(lived: Memory, key: AnswerKey) -> None:
    by_id = {one.session_id: one for one in sample.conversations()}
    heard = dict(pair_with_names(attributed_conversations(lived), key))
    assert set(heard) == set(by_id)
    for name, one in heard.items():
        for said in one.said:
            turn = by_id[name].turns[said.number - 1]
            assert said.text.startswith(turn.text.strip()[:20])


# What was reached when this was written, less a little: 97 % of the lines are right; of what is wanted 67 %
# is found in the conversations that the rules were tuned on, and 38 % in the others. Those are no blind test:
# whoever wrote the rules had read them, and the rules for procedures know wordings from them.
FLOORS = {"odd": (0.92, 0.60), "even": (0.90, 0.34)}


def test_the_rules_keep_their_precision_and_recall(lived: Memory, key: AnswerKey) -> None:
    conversations = list(pair_with_names(attributed_conversations(lived), key))
    for half, some in (("odd", conversations[0::2]), ("even", conversations[1::2])):
        by_name = score_extractors(some, key, load_known_names(lived.home), list(BUILT_IN.values()))
        total = sum(by_name.values(), ExtractionScore())
        precision, recall = FLOORS[half]
        assert (total.precision or 0) >= precision, total.mistaken
        assert (total.recall or 0) >= recall, total.missed
        for name, one in by_name.items():
            assert one.precision is None or one.precision >= 0.8, (name, one.mistaken)


def test_the_sample_has_questions_whose_answers_were_said() -> None:
    questions = read_answers(written("questions.yaml"), "questions.yaml")
    said = "\n".join(turn.text for one in sample.conversations() for turn in one.turns)
    assert len(questions) >= 25
    for question in questions:
        assert all(any(place.quote in said for place in places) for places in question.gold), question


@pytest.mark.parametrize("data", [None, {}, [1], [{"question": "x"}]])
def test_what_are_no_questions_is_said(data: object) -> None:
    with pytest.raises(UsageError, match="is no list of questions"):
        read_answers(data, "questions.yaml")


def test_evidence_is_measured_by_what_may_be_searched() -> None:
    """Emil's allergy was told by the owner, so it was learned; the label's size was told in a group."""
    questions = [
        one
        for one in read_answers(written("questions.yaml"), "questions.yaml")
        if "Emil" in one.text or "paper size" in one.text
    ]
    recalls = {
        name: [one.results["compiled", 2048].recall for one in measured]
        for name, measured in measure_searchable(
            questions, ("knowledge", "transcripts", "both"), (2048,), lambda *_: None
        )
    }
    assert recalls == {"knowledge": [0.0, 1.0], "transcripts": [1.0, 1.0], "both": [1.0, 1.0]}

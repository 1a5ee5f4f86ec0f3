"""A set is asked in homes made as a user's would be, and what came of it is counted right."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as product
from tacit.evaluation.calibration import fit_constants
from tacit.evaluation.homes import build_home
from tacit.evaluation.questions import EvalQuestion, EvidencePlace, read_set
from tacit.evaluation.search_quality import (
    QuestionHits,
    ask_home,
    ask_set,
    means,
    measure_ranking,
    percentile,
    share_found,
    summarize,
)
from tacit.memory import Memory
from tests.evaluation.tiny import messages, write

WORDS = {"embedding_model": "none"}


def quietly(done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, _nobody: None) -> list[QuestionHits]:
    """All questions, of their own home and of the other one."""
    collections = read_set(write(tmp_path_factory.mktemp("tiny") / "set"))
    return list(ask_set(collections, {}, quietly, foreign=True))


@pytest.fixture(scope="module")
def own(asked: list[QuestionHits]) -> list[QuestionHits]:
    return [one for one in asked if not one.foreign]


def test_a_home_holds_every_message_where_it_says(tmp_path: Path) -> None:
    pottery, _ = read_set(write(tmp_path / "set"))
    memory, known = build_home(tmp_path / "home", pottery, WORDS)
    assert {said.id for said in known.values()} == {said.id for said in pottery.messages}
    for (path, number), said in known.items():
        [turn] = [turn for turn in memory.transcript(path).turns if turn.number == number]
        assert getattr(turn, "text", None) == said.text
    assert len({path for path, _ in known}) == 2


def test_messages_of_strange_sessions_are_kept(tmp_path: Path) -> None:
    said = messages()
    for line in said:
        line["session"] = f"../{line['session']}/\0 ü" + "x" * 300
        line["text"] = f"{line['text']} \ud83d \0"
    said[0]["text"] = ""
    pottery, _ = read_set(write(tmp_path / "set", [_plain(line) for line in said]))
    _, known = build_home(tmp_path / "home", pottery, WORDS)
    assert len(known) >= len(pottery.messages) - 1


def _plain(line: dict[str, object]) -> dict[str, object]:
    """Half of a character cannot be in a file of UTF-8."""
    return {key: str(value).replace("\ud83d", "") if key == "text" else value for key, value in line.items()}


def test_every_question_of_the_tiny_set_finds_its_answer(own: list[QuestionHits]) -> None:
    assert len(own) == 7
    found = summarize(own, 0.75)
    assert (found["questions"], found["unanswerable"]) == (6, 1)
    assert found["R@5"] == 1.0
    assert found["session R@5"] == 1.0
    assert found["MRR"] > 0.8
    assert 0 < found["p50 ms"] <= found["p95 ms"]


def test_a_hit_is_right_if_it_is_the_message_that_was_meant(own: list[QuestionHits]) -> None:
    for one in own:
        assert any(one.right) == bool(one.ranks)
        assert len(one.right) == len(one.found.hits)


def test_questions_about_another_home_have_no_answer(asked: list[QuestionHits]) -> None:
    foreign = [one for one in asked if one.foreign]
    assert len(foreign) == 7
    assert not any(any(one.right) or one.ranks for one in foreign)


def test_a_session_that_was_not_found_counts_as_not_found(own: list[QuestionHits]) -> None:
    lost = [
        replace(one, found=replace(one.found, hits=()), sessions=(), right=()) for one in own if one.ranks
    ]
    assert summarize([own[0], lost[1]], 0.75)["session R@5"] == 0.5


def test_nothing_asked_is_summed_up_too() -> None:
    assert summarize([], 0.75) == {"questions": 0.0, "p50 ms": 0.0, "p95 ms": 0.0}


def test_constants_are_fitted_that_tell_the_homes_apart(
    asked: list[QuestionHits], own: list[QuestionHits]
) -> None:
    foreign = [one for one in asked if one.foreign]
    constants = fit_constants(own, foreign)
    assert constants.keys() >= {"mean", "spread", "bias", "words", "meaning", "fall"}
    assert constants["spread"] > 0
    assert constants["words"] > 0
    assert constants["fall"] >= 0


# A home of one's own


def test_questions_about_a_home_are_answered_by_places(home: Path) -> None:
    (home / "memory-config.yaml").write_text("search:\n  embedding_model: none\n")
    (home / "knowledge" / "reference" / "a.md").write_text("# A\n\nThe kiln is Berta.\n")
    memory: Memory = product.open(home)
    place = EvidencePlace("knowledge/reference/a.md", "kiln is Berta")
    wrong = EvidencePlace("knowledge/reference/a.md", "kiln is Anton")
    elsewhere = EvidencePlace("knowledge/reference/b.md", "kiln is Berta")
    questions = [
        EvalQuestion("1", "kiln", "", ((place,),)),
        EvalQuestion("2", "kiln", "", ((wrong, elsewhere, place), (wrong,))),
        EvalQuestion("3", "kiln", "absent"),
    ]
    one, two, three = ask_home(memory, questions, quietly)
    assert one.ranks == (0,)
    assert two.ranks == (0, None)
    assert three.ranks == ()
    assert one.right[0]
    assert not any(three.right)
    memory.services.searcher.close()


# Measures: those that people mean by these names


def test_all_found_at_the_top_is_perfect() -> None:
    assert measure_ranking([0]) == {"R@5": 1, "R@10": 1, "R@20": 1, "MRR": 1, "nDCG@10": 1}
    assert measure_ranking([1, 0]) == {"R@5": 1, "R@10": 1, "R@20": 1, "MRR": 1, "nDCG@10": 1}


def test_nothing_found_is_nothing() -> None:
    assert set(measure_ranking([None, None]).values()) == {0.0}


def test_a_rank_counts_up_to_its_depth() -> None:
    found = measure_ranking([4, 9, 19, None])
    assert (found["R@5"], found["R@10"], found["R@20"]) == (0.25, 0.5, 0.75)
    assert found["MRR"] == 1 / 5
    best = sum(1 / log2(place + 2) for place in range(4))
    assert found["nDCG@10"] == pytest.approx((1 / log2(6) + 1 / log2(11)) / best)
    assert measure_ranking([5])["R@5"] == 0.0


@given(
    st.lists(st.one_of(st.none(), st.integers(0, 60)), min_size=1, max_size=30, unique_by=lambda x: x or -1)
)
def test_measures_are_shares(ranks: list[int | None]) -> None:
    found = measure_ranking(ranks)
    assert all(0.0 <= value <= 1.0 + 1e-9 for value in found.values())
    assert found["R@5"] <= found["R@10"] <= found["R@20"]


def test_sessions_count_once() -> None:
    assert share_found(["a", "b"], ["x", "x", "x", "a", "b"], 2) == 0.5
    assert share_found(["a"], [], 5) == 0.0


def test_a_mean_is_of_the_rows_that_have_it() -> None:
    assert means([{"a": 1.0, "b": 0.0}, {"a": 0.0}]) == {"a": 0.5, "b": 0.0}
    assert means([]) == {}


def test_percentiles() -> None:
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile([1.0], 0.95) == 1.0
    assert percentile([], 0.5) == 0.0
    assert percentile(range(100), 0.95) == 95

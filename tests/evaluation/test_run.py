"""A set is asked in homes made as a user's would be, and what came of it is counted right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import tacit as product
from tacit.evaluation.calibrate import fit_constants
from tacit.evaluation.homes import build_home
from tacit.evaluation.run import QuestionHits, ask_home, ask_set, summarize
from tacit.evaluation.sets import EvalQuestion, EvidencePlace, read_set
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
    assert {said.id for said in known.values()} == {said.id for said in pottery.said}
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
    assert len(known) >= len(pottery.said) - 1


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
    memory.searcher.close()

"""Evidence counts when its text stands in the prompt, and what it is compared with is what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit as product
from tacit.evaluation.homes import build_home, temporary_home
from tacit.evaluation.prompt_quality import (
    PROMPT_METHODS,
    EvalCompiler,
    Measurement,
    PromptEvidence,
    PromptLine,
    PromptMethod,
    collapse_space,
    evidence_of_lines,
    is_in_prompt,
    is_partly_in_prompt,
    list_messages,
    measure_home,
    measure_set,
    pack_lines,
    rank_chunks,
    summarize,
)
from tacit.evaluation.questions import EvalQuestion, EvidencePlace, read_set
from tacit.memory import Memory
from tacit.search.model import EVERYTHING
from tacit.search.sqlite.index import open_index
from tacit.text import tokens
from tests.evaluation.tiny import messages, questions, write

BUDGETS = (1, 16, 40, 120, 4000)
ALL_PASS = {"inject.confidence_gate": 0}
STRICT = {"inject.confidence_gate": 0.99, "inject.strong": 1}


def quietly(done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory, _nobody: None) -> list[Measurement]:
    collections = read_set(write(tmp_path_factory.mktemp("tiny") / "set"))
    return list(measure_set(collections, ALL_PASS, BUDGETS, quietly))


def recalls(measured: Sequence[Measurement], way: PromptMethod, budget: int) -> dict[str, float | None]:
    return {one.question.id: one.results[way, budget].recall for one in measured}


# The measure


def test_with_room_for_everything_all_evidence_is_found(measured: list[Measurement]) -> None:
    found = summarize(measured, BUDGETS, 0.75)
    assert (found.questions, found.unanswerable) == (6, 1)
    for way in PROMPT_METHODS:
        assert found.ways[way][4000].recall == 1.0
        assert found.ways[way][4000].part == 1.0


def test_evidence_of_the_last_conversation_is_found_too(measured: list[Measurement]) -> None:
    """Each home has only sealed ones: none is left out as the one that goes on."""
    found = recalls(measured, "compiled", 4000)
    assert (found["q2"], found["q6"]) == (1.0, 1.0)


def test_without_room_nothing_is_found(measured: list[Measurement]) -> None:
    for way in PROMPT_METHODS:
        assert set(recalls(measured, way, 1).values()) == {0.0, None}


def test_no_prompt_is_over_its_budget(measured: list[Measurement]) -> None:
    found = summarize(measured, BUDGETS, 0.75)
    assert {found.ways[way][budget].over for way in PROMPT_METHODS for budget in BUDGETS} == {0.0}
    for one in measured:
        for (_, budget), result in one.results.items():
            assert result.tokens <= budget


def test_a_message_that_is_not_in_the_set_or_says_nothing_is_never_found(tmp_path: Path) -> None:
    said = messages()[:5]
    said[1]["text"] = "  "
    asked = [
        {**questions()[0], "gold": ["pottery-99"]},
        {**questions()[0], "gold": ["pottery-1", "pottery-0"]},
    ]
    one, two = measure_set(read_set(write(tmp_path / "set", said, asked)), ALL_PASS, (4000,), quietly)
    for way in PROMPT_METHODS:
        assert (one.results[way, 4000].recall, one.results[way, 4000].part) == (0.0, 0.0)
        assert two.results[way, 4000].recall == 0.5


@given(st.text(), st.text(), st.text())
def test_a_text_stands_where_it_was_put_whatever_the_white_space(before: str, text: str, after: str) -> None:
    prompt = PromptEvidence(collapse_space(f"{before}\n{text}\n{after}"), frozenset(), 0)
    assert is_in_prompt(EvidencePlace("", text.replace(" ", " \n\t ")), prompt) == bool(text.strip())


@given(st.text("ab \n", max_size=40), st.text("ab \n", max_size=40))
def test_a_text_that_is_absent_does_not_stand(text: str, prompt: str) -> None:
    shown_text = collapse_space(prompt)
    if collapse_space(text) not in shown_text or not text.strip():
        assert not is_in_prompt(EvidencePlace("", text), PromptEvidence(shown_text, frozenset(("",)), 0))
        assert not is_partly_in_prompt(
            EvidencePlace("", text), PromptEvidence(shown_text, frozenset(("",)), 0)
        )


def test_a_place_without_a_quote_is_its_file() -> None:
    prompt = PromptEvidence("something", frozenset(("a.md",)), 1)
    assert is_in_prompt(EvidencePlace("a.md", ""), prompt)
    assert not is_in_prompt(EvidencePlace("b.md", ""), prompt)
    assert not is_in_prompt(EvidencePlace("a.md", "something else"), prompt)


def test_a_long_message_counts_in_part_when_one_of_its_passages_is_there(tmp_path: Path) -> None:
    sentences = [f"Sentence {number} tells nothing about anything at all." for number in range(60)]
    sentences[50] = "The password of the boathouse is Zwetschgendatschi."
    said = [{**messages()[0], "text": " ".join(sentences)}, *messages()[1:5]]
    asked = [{**questions()[0], "text": "What is the password of the boathouse?"}]
    [one] = measure_set(read_set(write(tmp_path / "set", said, asked)), ALL_PASS, (400, 4000), quietly)
    short, long = one.results["bm25", 400], one.results["recent", 4000]
    assert (short.recall, short.part) == (0.0, 1.0)
    assert (long.recall, long.part) == (1.0, 1.0)


# Questions without an answer


def test_a_question_without_an_answer_has_no_recall(measured: list[Measurement]) -> None:
    [one] = [one for one in measured if not one.question.gold]
    assert {result.recall for result in one.results.values()} == {None}
    found = summarize([one], BUDGETS, 0.75)
    assert (found.questions, found.unanswerable) == (0, 1)
    assert found.ways["compiled"][4000].recall is None


def test_what_a_question_without_an_answer_was_given_is_told(measured: list[Measurement]) -> None:
    """Everything passes in these homes, and nothing fits into one token."""
    at = summarize(measured, BUDGETS, 0.75).ways["compiled"]
    assert (at[1].injected, at[4000].injected) == (0.0, 1.0)
    assert at[4000].strong == 0.0
    at = summarize(measured, BUDGETS, 0.0).ways["compiled"]
    assert (at[1].strong, at[4000].strong) == (0.0, 1.0)


def test_what_the_gate_stopped_was_not_given(tmp_path: Path) -> None:
    collections = read_set(write(tmp_path / "set", messages()[:5], questions()[3:4]))
    at = summarize(list(measure_set(collections, STRICT, (4000,), quietly)), (4000,), 0.0).ways["compiled"]
    assert (at[4000].injected, at[4000].strong) == (0.0, 0.0)


def test_nothing_measured_is_summed_up_too() -> None:
    at = summarize([], (512,), 0.75).ways["compiled"][512]
    assert (at.recall, at.part, at.tokens, at.over, at.strong, at.injected) == (None,) * 6
    assert (at.p50, at.p95) == (0.0, 0.0)


# What it is compared with

DRY = "assistant: Two coats, then dry for a day."
GLAZE = "Ana: The glaze Reif needs two coats of cobalt."


def test_recent_is_the_newest_turns_that_fit(measured: list[Measurement]) -> None:
    """16 tokens hold the last turn of either home, 40 the last three."""
    assert tokens.count(DRY) <= 16 < tokens.count(f"{GLAZE}\n{DRY}")
    at_16, at_40 = recalls(measured, "recent", 16), recalls(measured, "recent", 40)
    assert at_16 == {"q1": 0, "q2": 0, "q3": 0, "q4": None, "q5": 0, "q6": 1, "q7": 0}
    assert at_40 == {"q1": 0, "q2": 1, "q3": 1, "q4": None, "q5": 0, "q6": 1, "q7": 1}


def test_a_line_that_does_not_fit_is_passed_over_and_shorter_ones_behind_it_are_taken() -> None:
    lines = [PromptLine("", "Ana", text) for text in ("one", "two " * 50, "three")]
    short, third = (tokens.count(f"{line}\n") for line in (lines[0], lines[2]))
    assert pack_lines(lines, short - 1) == []
    assert pack_lines(lines, short) == lines[:1]
    assert pack_lines(lines, short + third) == [lines[0], lines[2]]
    assert pack_lines(lines, 1000) == lines


@pytest.mark.parametrize("way", ["bm25", "recent"])
def test_a_long_message_does_not_end_the_prompt_of_a_rival(tmp_path: Path, way: PromptMethod) -> None:
    """Each budget is packed from the whole ranking: at 60 tokens the long message has no room, at 300 it
    takes most of it, and the short one is there both times."""
    long = "The anchor chain, the anchor chain! " * 25
    said = [
        {**messages()[8], "id": "sailing-8", "seq": 8, "text": "Its chain measures 40 metres."},
        {**messages()[8], "id": "sailing-9", "seq": 9, "text": long},
    ]
    asked = [{**questions()[5], "text": "Which anchor chain?", "gold": ["sailing-8"]}]
    [one] = measure_set(read_set(write(tmp_path / "set", said, asked)), ALL_PASS, (60, 300), quietly)
    assert one.results[way, 60].recall == 1.0
    assert one.results[way, 300].recall == 1.0
    assert one.results[way, 300].tokens > 200


@given(st.lists(st.tuples(st.text(max_size=5), st.text(max_size=60)), max_size=12), st.integers(0, 200))
def test_lines_that_fit_are_never_more_than_the_budget(said: list[tuple[str, str]], budget: int) -> None:
    kept = pack_lines([PromptLine("", speaker, text.strip()) for speaker, text in said], budget)
    assert evidence_of_lines(kept).tokens <= budget


@pytest.fixture
def sailing(tmp_path: Path) -> Iterator[Memory]:
    _, collection = read_set(write(tmp_path / "set"))
    with temporary_home(collection, {"embedding_model": "none"}) as (memory, _):
        yield memory


def ranked(memory: Memory, question: str, budget: int = 1000) -> list[str]:
    with closing(open_index(memory.services.searcher.file)) as index:
        return [str(line) for line in rank_chunks(index, question, EVERYTHING, budget)]


def test_bm25_is_the_word_index_best_first(sailing: Memory) -> None:
    """Two of the words stand in one message, one of them in another; the chain is nowhere near."""
    found = ranked(sailing, "torn mainsail")
    assert found[:2] == [
        "Bo: The boat Möwe has a torn mainsail.",
        "agent: A sailmaker in Kiel could mend the mainsail.",
    ]
    assert "Bo: The anchor chain is 40 metres long." not in found
    assert ranked(sailing, "anchor chain") == ["Bo: The anchor chain is 40 metres long."]


def test_bm25_finds_nothing_for_words_that_are_nowhere(sailing: Memory) -> None:
    assert ranked(sailing, "dentist") == []
    assert ranked(sailing, "") == []


def test_bm25_holds_the_best_passages_that_fit(measured: list[Measurement]) -> None:
    assert recalls(measured, "bm25", 16)["q6"] == 1.0
    [one] = [one for one in measured if one.question.id == "q6"]
    line = "Bo: The anchor chain is 40 metres long."
    assert one.results["bm25", 4000].tokens == tokens.count(line)


# The homes


def test_a_home_holds_transcripts_and_nothing_else(tmp_path: Path) -> None:
    pottery, _ = read_set(write(tmp_path / "set"))
    memory, known = build_home(tmp_path / "home", pottery, {})
    root = tmp_path / "home"
    folders = ("raw", "knowledge", "topics", "archive", "drafts")
    files = {str(file.relative_to(root)) for name in folders for file in (root / name).rglob("*.md")}
    assert files == {path for path, _ in known}
    assert memory.services.clock.now() == datetime(2026, 3, 5, 10, 1, tzinfo=UTC)


def test_a_prompt_in_which_nothing_passed_is_the_message(tmp_path: Path) -> None:
    pottery, _ = read_set(write(tmp_path / "set"))
    (tmp_path / "log").mkdir()
    with temporary_home(pottery, STRICT) as (memory, _):
        compiled, _ = EvalCompiler(memory, tmp_path / "log").compile("What is the kiln called?", 4000)
    assert {section.slot for section in compiled.sections} == {"message"}


def test_settings_of_other_sections_are_tried(tmp_path: Path) -> None:
    pottery, _ = read_set(write(tmp_path / "set"))
    settings = {"embedding_model": "none", "inject.strong": 0.9, "inject.confidence_gate": 0.3}
    memory, _ = build_home(tmp_path / "home", pottery, settings)
    config = memory.config
    assert (config.search.embedding_model, config.inject.strong) == ("none", 0.9)
    assert config.inject.confidence_gate == 0.3
    assert not config.git.auto_commit


# A home of one's own


@pytest.fixture
def own(home: Path) -> Memory:
    (home / "memory-config.yaml").write_text(
        "search:\n  embedding_model: none\ninject:\n  confidence_gate: 0\n"
    )
    note = home / "knowledge" / "reference" / "a.md"
    note.write_text("# Studio\n\nThe kiln is Berta.\n\n# Clay\n\nThe kiln takes  forty\nkilos of clay.\n")
    memory = product.open(home)
    for day, text in (("2026-03-01", "Older words of ours."), ("2026-03-02", "Newer words of ours.")):
        session = memory.session(started=datetime.fromisoformat(f"{day}T09:00:00+00:00"))
        session.message("user", text, at=datetime.fromisoformat(f"{day}T09:00:00+00:00"))
        session.message("agent", "I see.", at=datetime.fromisoformat(f"{day}T09:01:00+00:00"))
        session.end()
    return memory


PATH = "knowledge/reference/a.md"


def test_a_quote_is_found_in_the_prompt_for_ones_own_home(own: Memory) -> None:
    asked = [
        EvalQuestion("1", "How many kilos does the kiln take?", "", ((EvidencePlace(PATH, "forty kilos"),),)),
        EvalQuestion(
            "2", "kiln", "", ((EvidencePlace(PATH, "kiln is Anton"), EvidencePlace(PATH, "kiln is Berta")),)
        ),
        EvalQuestion(
            "3", "kiln", "", ((EvidencePlace(PATH, ""),), (EvidencePlace("knowledge/reference/b.md", ""),))
        ),
    ]
    one, two, three = measure_home(own, asked, (4000,), quietly)
    for way in (PROMPT_METHODS[0], PROMPT_METHODS[2]):
        assert one.results[way, 4000].recall == 1.0
        assert two.results[way, 4000].recall == 1.0
        assert three.results[way, 4000].recall == 0.5
    assert one.results["recent", 4000].recall == 0.0
    own.services.searcher.close()


def test_the_words_of_the_question_itself_prove_nothing(own: Memory) -> None:
    asked = [
        EvalQuestion("1", "Where does the zeppelin land?", "", ((EvidencePlace(PATH, "zeppelin land"),),))
    ]
    [one] = measure_home(own, asked, (4000,), quietly)
    assert {result.recall for result in one.results.values()} == {0.0}
    own.services.searcher.close()


def test_what_stands_in_every_prompt_of_the_home_counts_and_costs(own: Memory) -> None:
    soul = EvidencePlace("knowledge/identity/SOUL.md", "say when I do not know")
    [one] = measure_home(own, [EvalQuestion("1", "kiln", "", ((soul,),))], (4000,), quietly)
    assert one.results["compiled", 4000].recall == 1.0
    assert one.results["compiled", 4000].tokens > 100
    own.services.searcher.close()


def test_measuring_leaves_no_trace_in_the_home(own: Memory) -> None:
    list(measure_home(own, [EvalQuestion("1", "kiln", "")], (64, 4000), quietly))
    assert not (own.home.private / "receipts").exists()
    assert not (own.home.private / "gate").exists()
    own.services.searcher.close()


def test_turns_of_a_home_come_newest_first(own: Memory) -> None:
    said = list(list_messages(own))
    assert [str(line) for line in said] == [
        "agent: I see.", "user: Newer words of ours.", "agent: I see.", "user: Older words of ours.",
    ]  # fmt: skip
    asked = [
        EvalQuestion(
            "1", "kiln", "", ((EvidencePlace("", "Newer words"),), (EvidencePlace("", "Older words"),))
        )
    ]
    [one] = measure_home(own, asked, (16, 64), quietly)
    assert one.results["recent", 16].recall == 0.5
    assert one.results["recent", 64].recall == 1.0
    own.services.searcher.close()


def test_a_session_that_is_open_is_looked_through_as_well(own: Memory) -> None:
    session = own.session()
    session.message("user", "The zeppelin lands on Thursday.")
    asked = [
        EvalQuestion("1", "When does the zeppelin land?", "", ((EvidencePlace("", "lands on Thursday"),),))
    ]
    [one] = measure_home(own, asked, (4000,), quietly)
    assert one.results["compiled", 4000].recall == 1.0
    session.end()
    own.services.searcher.close()


def test_what_a_turn_had_to_do_without_is_kept(own: Memory) -> None:
    [one] = measure_home(own, [EvalQuestion("1", "kiln " * 400, "")], (64,), quietly)
    assert "message-shortened" in {notice.code for notice in one.notices}
    own.services.searcher.close()

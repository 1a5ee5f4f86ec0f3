"""Which passages pass, and in which order they are tried."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from tacit.context.ranking import RankedBlocks, RankingRules, rank
from tacit.home.categories import Category
from tacit.search.index import StoredChunk
from tacit.search.model import Chunk, Hit, Why

TODAY = date(2026, 11, 2)
RULES = RankingRules("what about the kiln", 0.12, 0.75, 7.0, TODAY)


def hit(
    path: str = "knowledge/reference/kiln.md",
    text: str = "The kiln is on.",
    *,
    score: float = 0.3,
    standing: float = 2.0,
    category: Category = "reference",
    day: str = "2026-10-01",
    line: int = 5,
    turn: int = 0,
    speaker: str = "",
    words_rank: int | None = 1,
    meaning_rank: int | None = 1,
) -> Hit:
    why = Why(standing, standing, bm25=3.0, lexical_rank=words_rank, vector_rank=meaning_rank)
    return Hit(
        path, text, "", score, category, (line, line), day, speaker, turn, "", (), "owner", False, why
    )  # fmt: skip


def said(turn: int, text: str, speaker: str = "Noor", **given: float) -> Hit:
    path = "raw/conversations/2026/10/06/0931-ses_a-hello.md"
    standing = given.pop("standing", 2.0)
    return hit(
        path, text, category="conversation", line=turn * 4, turn=turn, speaker=speaker, standing=standing
    )


def stored(
    turn: int, text: str, speaker: str = "Noor", *, id_: int | None = None, line: int = 0
) -> StoredChunk:
    line = line or turn * 4
    passage = Chunk(text, line, line, (), "2026-10-06", speaker, turn, (0, 1))
    path = "raw/conversations/2026/10/06/0931-ses_a-hello.md"
    return StoredChunk(id_ or turn, path, "", "conversation", "owner", False, passage)


def ranked(*hits: Hit, rules: RankingRules = RULES, **more: object) -> RankedBlocks:
    given = {"near": {}, **more}
    return rank(hits, rules, **given)  # type: ignore[arg-type]


def texts(found: RankedBlocks) -> list[str]:
    return [block.text for block in found.blocks]


def test_nothing_is_given_when_even_the_best_is_below_the_gate() -> None:
    found = ranked(hit(score=0.119), hit(line=9, score=0.05, text="other"))
    assert found.blocks == ()
    assert found.band == "none"
    assert {one.code for one in found.dropped} == {"gate"}


def test_one_strong_passage_is_enough() -> None:
    found = ranked(hit(score=0.75, words_rank=None))
    assert found.band == "strong"
    assert len(found.blocks) == 1


def test_a_weak_one_needs_another_that_passes_or_words_and_meaning_together() -> None:
    alone = hit(score=0.74, words_rank=None)
    assert ranked(alone).band == "none"
    assert [one.code for one in ranked(alone).dropped] == ["weak"]
    assert ranked(alone, hit(line=9, text="other", score=0.12)).band == "weak"
    assert ranked(alone, hit(line=9, text="other", score=0.11)).band == "none"
    assert ranked(hit(score=0.2)).band == "weak"


def test_passages_beside_the_best_go_in_by_their_standing_not_by_their_own_relevance() -> None:
    found = ranked(
        hit(score=0.5, text="first"), hit(line=9, score=0.04, standing=1.0, text="second, by itself nothing")
    )
    assert texts(found) == ["first", "second, by itself nothing"]


def test_the_turn_after_a_question_that_was_found_comes_along() -> None:
    question = said(4, "Which programme for Reif?", "Tomasz")
    near = {(question.path, question.lines[0]): [stored(4, question.text), stored(5, "Five.", "Hanna")]}
    found = ranked(question, said(9, "Something else.", standing=0.1), near=near)
    assert "Five." in texts(found)
    answer = next(block for block in found.blocks if block.text == "Five.")
    assert answer.reason == "it follows a question that was found"
    assert answer.speaker == "Hanna"
    assert "Five." not in texts(ranked(replace(question, text="Programme for Reif."), near=near))


def echo(turn: int = 4, *, score: float = 0.3, standing: float = 2.0, relevance: float = 0.9) -> Hit:
    """The message, asked before."""
    found = said(turn, "What about the kiln", "user", standing=standing)
    return replace(found, score=score, why=replace(found.why, echo=relevance))


def after(question: Hit, *replies: str) -> dict[tuple[str, int], list[StoredChunk]]:
    turns = [question.text, *replies]
    told = [stored(question.turn + n, text, "agent" if n else "user") for n, text in enumerate(turns)]
    return {(question.path, question.lines[0]): told}


def test_the_same_question_asked_before_is_not_given_but_what_was_answered_is_beside_the_note() -> None:
    asked, note = echo(), hit()
    found = ranked(note, asked, near=after(asked, "It goes to cone six."))
    assert texts(found) == [note.text, "It goes to cone six."]
    assert [(one.code, one.source) for one in found.dropped] == [("echo", f"{asked.path}:16")]
    assert found.blocks[1].score == asked.score


def test_an_earlier_answer_is_never_far_below_the_best_nor_above_it() -> None:
    for standing in (0.0, 2.0, 12.0):
        asked, note = echo(standing=standing), hit(standing=standing)
        first, second = ranked(note, asked, near=after(asked, "Six. " * 300)).blocks
        assert first.text == note.text
        assert 0 <= first.value - second.value < 4


def test_an_earlier_answer_is_given_alone_where_nothing_else_is_about_the_question() -> None:
    asked, note = echo(score=0.02), hit(score=0.02)
    near = after(asked, "It goes to cone six.")
    found = ranked(note, asked, near=near)
    assert texts(found)[0] == "It goes to cone six."
    assert found.blocks[0].score == asked.why.echo
    assert found.band == "strong"
    assert texts(ranked(asked, near=near)) == ["It goes to cone six."]
    weak = echo(score=0.02, relevance=0.05)
    assert ranked(note, weak, near=near).band == "none"


def test_that_the_same_was_asked_makes_a_weak_question_no_stronger() -> None:
    asked = echo(relevance=0.95)
    assert ranked(hit(score=0.3), asked, near=after(asked, "Six.")).band == "weak"


def test_several_earlier_answers_are_given_and_equal_ones_once() -> None:
    one, other = echo(), replace(echo(), path="raw/conversations/2026/10/07/0931-ses_b-hello.md")

    def given(reply: str) -> list[str]:
        told = [place._replace(path=other.path) for place in after(one, reply)[one.path, 16]]
        near = {**after(one, "Understood."), (other.path, 16): told}
        return sorted(texts(ranked(hit(), one, other, near=near)))

    assert given("Six, I think.") == ["Six, I think.", "The kiln is on.", "Understood."]
    assert given("Understood.") == ["The kiln is on.", "Understood."]


def test_an_earlier_answer_that_was_found_itself_is_as_relevant_as_the_question() -> None:
    asked = echo()
    reply = replace(said(5, "Six.", "agent", standing=-0.5), score=0.001)
    answer = next(
        block for block in ranked(hit(), asked, reply, near=after(asked, "Six.")).blocks if block.turn
    )
    assert (answer.text, answer.score) == ("Six.", asked.score)


def test_a_longer_turn_with_the_question_in_it_is_given() -> None:
    asked = echo()
    more = stored(4, "The kiln hums.", "user", id_=40, line=18)
    near = {(asked.path, 16): [stored(4, asked.text, "user"), more, stored(5, "Six.", "agent")]}
    found = ranked(hit(), asked, near=near)
    assert any("The kiln hums." in text for text in texts(found))
    assert not found.dropped


def test_words_of_whom_the_question_names_or_means_count_more() -> None:
    hanna, noor = said(1, "I load at noon.", "Hanna"), said(2, "It goes in at one.", "Noor")
    assert texts(ranked(noor, hanna, rules=replace(RULES, question="When does Hanna load?")))[0] == hanna.text
    user, agent = said(1, "mine", "user"), said(2, "yours", "agent")
    assert texts(ranked(user, agent, rules=replace(RULES, question="what did you propose")))[0] == "yours"
    assert texts(ranked(user, agent, rules=replace(RULES, question="was habe ich gesagt")))[0] == "mine"
    assert texts(ranked(user, agent, rules=replace(RULES, question="你上次建议了什么")))[0] == "yours"


def test_being_recent_only_decides_among_near_equals() -> None:
    old = hit("knowledge/journal/2025-01-01.md", "old", category="journal", day="2025-01-01", standing=2.0)
    new = hit("knowledge/journal/2026-11-02.md", "new", category="journal", day="2026-11-02", standing=1.95)
    assert texts(ranked(old, new))[0] == "new"
    assert texts(ranked(old, replace(new, why=replace(new.why, standing=1.8))))[0] == "old"


@pytest.mark.parametrize("category", ["procedure", "person", "reference", "memory"])
def test_some_kinds_of_notes_never_grow_old(category: Category) -> None:
    old = hit("a.md", "old", category=category, day="2015-01-01", standing=2.0)
    new = hit("b.md", "new", category=category, day="2026-11-02", standing=1.99)
    assert texts(ranked(old, new)) == ["old", "new"]


def test_a_note_of_years_ago_that_answers_is_given() -> None:
    found = ranked(
        hit(category="journal", day="2016-03-01", score=0.9, text="In 2016 the kiln cost 4,000 €.")
    )
    assert texts(found) == ["In 2016 the kiln cost 4,000 €."]


def _linked(path: str, standing: float, score: float = 0.5) -> Hit:
    found = hit(path, f"text of {path}", standing=standing, score=score)
    return replace(found, why=replace(found.why, linked="knowledge/people/mara.md"))


def test_what_is_only_linked_with_a_hit_stands_below_every_strong_one() -> None:
    """Whatever nudges it has."""
    strong = hit("strong.md", "strong", score=0.8, standing=1.0)
    weak = hit("weak.md", "weak", score=0.5, standing=0.5)
    found = ranked(strong, _linked("linked.md", 3.0), weak)
    assert texts(found) == ["strong", "text of linked.md", "weak"]


def test_what_is_only_linked_with_a_hit_does_not_support_it() -> None:
    """Else one weak hit would be given because of its own link."""
    alone = hit("alone.md", "alone", score=0.3, standing=2.0)
    alone = replace(alone, why=replace(alone.why, lexical_rank=1, vector_rank=None))
    assert ranked(alone, _linked("linked.md", 1.0, score=0.3)).band == "none"
    assert ranked(alone, hit("other.md", "other", score=0.3)).band == "weak"
    assert ranked(_linked("linked.md", 1.0, score=0.74)).band == "none"


def test_personal_notes_count_less_beside_a_technical_question() -> None:
    person, code = hit("p.md", "person", category="person"), hit("c.md", "code", standing=1.5)
    assert texts(ranked(person, code)) == ["person", "code"]
    assert texts(ranked(person, code, rules=replace(RULES, technical=True))) == ["code", "person"]


def test_what_the_session_has_is_not_given_again_unless_it_changed() -> None:
    first = ranked(hit())
    given = [block.digest for block in first.blocks]
    again = ranked(hit(), injected=given)
    assert again.blocks == ()
    assert [one.code for one in again.dropped] == ["repeated"]
    assert texts(ranked(hit(text="The kiln is off."), injected=given)) == ["The kiln is off."]


def test_when_all_that_passed_was_given_the_rest_is_not_given_alone() -> None:
    best, rest = hit(score=0.5), hit("b.md", "Hardly about it.", score=0.05, standing=0.5)
    first = ranked(best, rest)
    assert len(first.blocks) == 2
    again = ranked(best, rest, injected=[first.blocks[0].digest])
    assert again.blocks == ()
    assert {one.code for one in again.dropped} == {"repeated", "gate"}


def test_of_two_that_say_the_same_one_is_given() -> None:
    text = "Glaze firings start by 19:30 or wait for the next day, because of the night tariff."
    found = ranked(
        hit(text=text), hit("b.md", text.replace("Glaze", "All glaze")), hit("c.md", "Quite another.")
    )
    assert len(found.blocks) == 2
    assert [one.code for one in found.dropped] == ["duplicate"]


def test_an_excluded_hit_says_why_and_does_not_count_for_the_gate() -> None:
    found = ranked(hit("topics/kiln.md", score=0.9), exclusion_of=lambda one: "topics wake by their triggers")
    assert found.band == "none"
    assert [(one.code, one.reason) for one in found.dropped] == [
        ("excluded", "topics wake by their triggers")
    ]


def test_a_long_turn_is_whole_with_its_found_pieces_to_fall_back_to() -> None:
    piece = said(3, "the second part", "agent")
    whole = [
        stored(3, "the first part", id_=1, line=12),
        stored(3, "the second part", id_=2, line=14),
    ]
    found = ranked(piece, near={(piece.path, piece.lines[0]): whole})
    (block,) = found.blocks
    assert block.text == "the first part\n\nthe second part"
    assert [one.text for one in block.pieces] == ["the second part"]


def test_the_order_does_not_depend_on_the_order_of_equals() -> None:
    one, other = hit("a.md", "alpha text"), hit("b.md", "beta words")
    assert texts(ranked(one, other)) == texts(ranked(other, one)) == ["alpha text", "beta words"]

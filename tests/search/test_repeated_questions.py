"""The same question in another session: it is found, and takes nothing from what answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tacit.search.hybrid import Engine, find
from tacit.search.model import Found, Hit
from tests.search.fakes import Meaning, Reader, engine_of

QUESTION = "Which cone does the kiln get on Friday nights?"
ANSWER = "knowledge/reference/firing.md"
# The kiln is in every tenth of them, so that there is something to stand out from.
NOTES = {
    **{
        f"knowledge/reference/{n}.md": f"# N{n}\n\nThe {'kiln' if n % 10 == 0 else 'cat'} and number {n}.\n"
        for n in range(120)
    },
    ANSWER: "# Firing\n\nThe kiln goes to cone six, at night.\n",
}


def talk(number: int, *said: str) -> tuple[str, str]:
    turns = "".join(
        f"## 09:{turn:02} — {'agent' if turn % 2 else 'user'}\n{text}\n\n" for turn, text in enumerate(said)
    )
    head = f"---\nsession_id: ses_{number}\nstarted: 2026-05-{number % 27 + 1:02}T09:00:00Z\n"
    path = f"raw/conversations/2026/05/{number % 27 + 1:02}/0900-ses_{number}-a.md"
    return path, f'{head}topic: "{said[0]}"\n---\n\n# {said[0]}\n\n{turns}'


def talks(count: int, question: str = QUESTION, answer: str = "Understood.") -> dict[str, str]:
    return dict(talk(number, question, f"{answer} {number}") for number in range(count))


def engine(*more: Mapping[str, str], reader: Reader | None = None) -> Engine:
    texts = dict(NOTES)
    for some in more:
        texts |= some
    return engine_of(texts, Meaning(), reader)


def echoes(found: Found) -> list[Hit]:
    return [hit for hit in found.hits if hit.why.echo is not None]


def without(found: Found) -> list[Hit]:
    return [hit for hit in found.hits if hit.why.echo is None]


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("has_vectors", [True, False])
def test_what_answers_stands_and_counts_as_if_nobody_had_asked_before(count: int, has_vectors: bool) -> None:
    def ask(some: Engine) -> Found:
        return find(some if has_vectors else replace(some, embedder=None), QUESTION)

    before, after = ask(engine()), ask(engine(talks(count)))
    assert after.hits[0].path == before.hits[0].path == ANSWER
    assert without(after)[0].why.standing == pytest.approx(before.hits[0].why.standing, rel=0.25)
    assert after.hits[0].score == pytest.approx(before.hits[0].score, abs=0.1)
    assert after.trace["echoes"] == count


def test_an_echo_is_a_hit_beside_the_best_and_says_what_it_is() -> None:
    found = find(engine(talks(5)), QUESTION, limit=60)
    first, echo, other = found.hits[:3]
    assert (echo.text, other.text) == (QUESTION, QUESTION)
    assert echo.score == first.score
    assert echo.why.standing == first.why.standing
    assert echo.why.echo is not None
    assert echo.why.echo > first.score
    assert echo.path > other.path  # the newest first
    assert len(echoes(found)) == 3
    assert echo.why.score == pytest.approx(echo.why.lexical + echo.why.vector)


def test_words_that_a_turn_has_from_the_echo_beside_it_alone_do_not_count() -> None:
    found = find(engine(talks(3)), QUESTION, limit=60)
    replies = [hit for hit in found.hits if hit.text.startswith("Understood")]
    assert all(hit.why.bm25 is None for hit in replies)
    telling = dict([talk(0, QUESTION, "To cone six, the kiln holds it.")])
    reply = next(hit for hit in find(engine(telling), QUESTION).hits if hit.text.startswith("To cone"))
    assert reply.why.bm25 is not None


def test_a_question_that_was_asked_hundreds_of_times_crowds_nothing_out() -> None:
    found = find(engine(talks(250)), QUESTION)
    assert found.hits[0].path == ANSWER
    assert len(echoes(found)) == 1
    assert len(found.hits) == 10


@pytest.mark.parametrize("limit", [0, 1, 2, 3])
def test_no_more_hits_than_wanted(limit: int) -> None:
    found = find(engine(talks(5)), QUESTION, limit=limit)
    assert len(found.hits) == limit
    assert limit == 0 or found.hits[0].path == ANSWER


def test_where_nothing_else_is_found_the_echo_has_its_own_standing() -> None:
    texts = dict([talk(0, QUESTION)])
    (hit,) = find(engine_of(texts), QUESTION).hits
    assert hit.why.echo == hit.score
    assert hit.why.standing == hit.why.score


def test_a_statement_that_was_made_before_is_found_as_ever() -> None:
    said = "The kiln goes to cone six on Friday."
    found = find(engine(dict([talk(0, said, "Noted.")])), said)
    assert not echoes(found)
    assert found.hits[0].text == said
    assert found.trace["echoes"] == 0


def test_a_note_that_quotes_the_question_is_no_echo() -> None:
    found = find(engine({"knowledge/reference/faq.md": f"# FAQ\n\n{QUESTION}\n"}), QUESTION)
    assert not echoes(found)
    assert found.hits[0].path.endswith("faq.md")


def test_a_cross_encoder_reads_what_is_left() -> None:
    reader = Reader({"cone six": 5.0})
    found = find(engine(talks(2), reader=reader), QUESTION)
    assert found.hits[0].path == ANSWER
    assert not any(text.endswith(QUESTION) for text in reader.read)
    assert [hit.why.standing for hit in echoes(found)] == [found.hits[0].why.standing]

"""One question to one index: every answer is made, says what it was made of, and adds up."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.search.hybrid import Engine, find
from tacit.search.model import EVERYTHING, Found, Scope
from tests.hostile import hostile
from tests.search.fakes import SENSES, Meaning, Reader, engine_of, index_of

NOW = datetime(2026, 5, 13, 12, tzinfo=UTC)  # a Wednesday

NOTES = {
    "knowledge/reference/garage.md": "# Garage\n\nThe automobile gets new tyres in spring.\n",
    "knowledge/reference/parking.md": "# Parking\n\nThe car park ticket is in the drawer.\n",
    "knowledge/reference/studio.md": "# Studio\n\nBerta is the furnace; she fires at night.\n",
    "knowledge/reference/health.md": "# Health\n\nThe physician is Dr Lind.\n",
    "knowledge/reference/pets.md": "# Pets\n\nThe kitten is called Mohn.\n",
}


def paths(found: Found) -> list[str]:
    return [hit.path.rpartition("/")[2] for hit in found.hits]


# Both sides


def test_both_sides_together_find_more_than_either() -> None:
    """Words alone miss the automobile, meaning alone cannot tell Mohn from any other kitten."""
    texts = {
        **{f"knowledge/reference/{n}.md": f"# N{n}\n\nA kitten slept, {n}.\n" for n in range(120)},
        "knowledge/reference/vehicle.md": "# Garage\n\nThe automobile gets new tyres.\n",
        "knowledge/reference/mohn.md": "# Pets\n\nThe kitten is called Mohn.\n",
    }
    both = engine_of(texts, Meaning())
    words = replace(both, embedder=None)
    meaning = replace(both, lexical_weight=0.0)

    def is_first(engine: Engine, question: str, path: str) -> bool:
        return paths(find(engine, question, limit=1)) == [path]

    assert not is_first(words, "car", "vehicle.md")
    assert not is_first(meaning, "cat Mohn", "mohn.md")
    assert is_first(both, "car", "vehicle.md")
    assert is_first(both, "cat Mohn", "mohn.md")


def test_an_answer_says_which_sides_gave_it() -> None:
    found = find(engine_of(NOTES, Meaning()), "car")
    assert found.channels == ("lexical", "vector")
    assert found.degraded == ()
    assert set(paths(found)[:2]) == {"garage.md", "parking.md"}
    assert found.trace["embedder"] == "senses/1"


def test_words_answer_where_there_is_no_embedder() -> None:
    found = find(engine_of(NOTES), "car tyres")
    assert found.channels == ("lexical",)
    assert found.degraded == ()
    assert sorted(paths(found)) == ["garage.md", "parking.md"]


def test_words_answer_where_the_embedder_fails_and_the_answer_says_so() -> None:
    embedder = Meaning()
    engine = engine_of(NOTES, embedder)
    embedder.broken = "http://localhost:1 cannot be reached."
    found = find(engine, "car")
    assert found.channels == ("lexical",)
    assert found.degraded == ("vector: http://localhost:1 cannot be reached.",)
    assert paths(found) == ["parking.md"]


def test_a_question_in_which_the_model_knows_nothing_is_answered_by_words() -> None:
    found = find(engine_of(NOTES, Meaning()), "tyres")
    assert found.channels == ("lexical",)
    assert found.degraded == ()
    assert paths(found) == ["garage.md"]


def test_the_time_there_is_goes_to_the_embedder() -> None:
    embedder = Meaning()
    engine = engine_of(NOTES, embedder)
    find(engine, "car")
    find(engine, "car", deadline=time.monotonic() + 100)
    find(engine, "car", deadline=time.monotonic() - 1)
    seconds = [given for _, given in embedder.asked]
    assert seconds[0] is None
    assert seconds[1] is not None
    assert 0 < seconds[1] <= 100
    assert seconds[2] is not None
    assert seconds[2] < 0


def test_a_scope_holds_on_both_sides() -> None:
    texts = {**NOTES, "archive/reference/old.md": "# Old\n\nThe old car was an automobile.\n"}
    engine = engine_of(texts, Meaning())
    assert "old.md" in paths(find(engine, "vehicle car"))
    assert "old.md" not in paths(find(engine, "vehicle car", Scope(archived=False)))
    assert paths(find(engine, "vehicle car", Scope(archived=True))) == ["old.md"]


def test_days_narrow_what_is_found() -> None:
    texts = {
        f"knowledge/journal/2026-05-{day:02}.md": f"# Day\n\nThe kiln was fired, {day}.\n"
        for day in (1, 5, 9)
    }
    engine = engine_of(texts)
    scope = Scope(since=date(2026, 5, 2), until=date(2026, 5, 8))
    assert paths(find(engine, "kiln", scope)) == ["2026-05-05.md"]


def test_in_a_small_home_a_common_word_is_still_looked_for_beside_one_that_is_nowhere() -> None:
    texts = {f"knowledge/reference/{n}.md": f"# N{n}\n\nThe kiln, part {n}.\n" for n in range(3)}
    assert len(find(engine_of(texts), "kiln manual").hits) == 3


# Equal ones


def test_equal_chunks_come_in_the_order_of_the_files_however_the_index_grew() -> None:
    texts = {f"knowledge/reference/{name}.md": "The same words about a kiln.\n" for name in "fbdaecg"}
    backwards = dict(reversed(texts.items()))
    for limit in (3, 10):
        one, other = (find(engine_of(given, Meaning()), "kiln", limit=limit) for given in (texts, backwards))
        assert paths(one) == paths(other) == [f"{name}.md" for name in "abcdefg"][:limit]


# Boosts


JOURNAL = {
    f"knowledge/journal/2026-05-{day:02}.md": "# Day\n\nWe talked about the kiln.\n" for day in range(1, 13)
}
OTHERS = {f"knowledge/reference/{n}.md": f"# N{n}\n\nSomething else, {n}.\n" for n in range(60)}


def test_what_is_from_the_named_day_comes_first() -> None:
    found = find(engine_of({**JOURNAL, **OTHERS}), "what about the kiln last Tuesday?", now=NOW)
    assert paths(found)[0] == "2026-05-12.md"
    assert found.hits[0].why.boosts == (("day: last Tuesday", 0.5),)
    assert found.trace["days"] == ["2026-05-12", "2026-05-12", "last Tuesday"]


def test_without_a_clock_days_say_nothing() -> None:
    found = find(engine_of({**JOURNAL, **OTHERS}), "what about the kiln last Tuesday?")
    assert found.hits
    assert not any(hit.why.boosts for hit in found.hits)
    assert found.trace["days"] is None


PEOPLE = {
    "knowledge/people/ana-ruiz.md": "# Ana Ruiz\n\nPhones on the weekend about the kiln.\n",
    "knowledge/people/bo.md": "# Bo\n\nPhones on the weekend about the kiln.\n",
    "knowledge/reference/phones.md": "# Phones\n\nPhones on the weekend about the kiln. Ana Ruiz wrote it.\n",
    "knowledge/projects/night-shop/context.md": "# Night shop\n\nOpens on the weekend, with a kiln.\n",
}


@pytest.mark.parametrize("asked", ["when does Ana phone about the kiln", "ana ruiz kiln", "ANA RUIZ weekend"])
def test_the_file_of_a_named_person_is_lifted(asked: str) -> None:
    found = find(engine_of(PEOPLE), asked, now=NOW)
    assert paths(found)[0] == "ana-ruiz.md"
    assert found.hits[0].why.boosts == (("name: Ana Ruiz", 0.3),)
    others = [hit for hit in found.hits if not hit.path.endswith("ana-ruiz.md")]
    assert not any(hit.why.boosts for hit in others)


def test_the_files_of_a_named_project_are_lifted() -> None:
    found = find(engine_of(PEOPLE), "night shop on the weekend", now=NOW)
    assert paths(found)[0] == "context.md"
    assert [name for name, _ in found.hits[0].why.boosts] == ["name: Night shop"]


# A second reading


CROWD = {f"knowledge/reference/{n:02}.md": f"# N{n}\n\nThe kiln, and number {n:02}.\n" for n in range(12)}


def test_a_reader_changes_the_order() -> None:
    reader = Reader({"number 07": 9.0})
    found = find(engine_of(CROWD, reader=reader), "kiln")
    assert found.channels == ("lexical", "rerank")
    assert found.degraded == ()
    assert paths(found)[0] == "07.md"
    assert found.hits[0].why.rerank == 9.0
    assert found.hits[0].score > found.hits[1].score


def test_a_reader_gets_the_deadline() -> None:
    reader = Reader({})
    find(engine_of(CROWD, reader=reader), "kiln", deadline=123.0)
    assert reader.deadlines == [123.0]


def test_a_reader_without_time_changes_nothing_and_the_answer_says_so() -> None:
    plain = find(engine_of(CROWD), "kiln")
    found = find(engine_of(CROWD, reader=Reader({"number 07": 9.0}, most=0)), "kiln")
    assert paths(found) == paths(plain)
    assert found.channels == ("lexical",)
    assert found.degraded == ("rerank: no time to read the best passages",)


def test_a_reader_with_little_time_orders_what_it_read_and_leaves_the_rest_below() -> None:
    found = find(engine_of(CROWD, reader=Reader({"number 03": 9.0}, most=6)), "kiln", limit=12)
    assert found.degraded == ("rerank: time for 6 passages only",)
    read = [hit.why.rerank is not None for hit in found.hits]
    assert read == sorted(read, reverse=True)
    assert sum(read) == 6
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)


def test_a_turn_is_read_alone_and_among_those_around_it() -> None:
    reader = Reader({})
    index = index_of({"raw/conversations/2026/05/01/0900-ses_1-a.md": TALK})
    find(replace(engine_of({}), index=index, reranker=reader), "Tuesday")
    assert "agent: On Tuesday." in reader.read
    assert any("When is it?" in text and "On Tuesday." in text for text in reader.read)


TALK = """---
session_id: ses_1
started: 2026-05-01T09:00:00Z
---

# A talk

## 09:00 — user
When is it?

## 09:01 — agent
On Tuesday.
"""


# Why


QUESTIONS = st.one_of(
    hostile,
    st.sampled_from(
        ["car", "cat kiln", "what did Ana say last Tuesday about the kiln?", "night shop payment"]
    ),
)
EVERYTHING_AT_ONCE = {**NOTES, **PEOPLE, **JOURNAL, "raw/conversations/2026/05/01/0900-ses_1-a.md": TALK}
ENGINE = engine_of(EVERYTHING_AT_ONCE, Meaning())
READING = replace(ENGINE, reranker=Reader({"kiln": 2.0, "Ana": 1.0}))


@settings(max_examples=60)
@given(QUESTIONS, st.booleans())
def test_the_parts_of_each_hit_add_up(question: str, reading: bool) -> None:
    found = find(READING if reading else ENGINE, question, limit=30, now=NOW)
    for hit in found.hits:
        why = hit.why
        assert why.score == pytest.approx(why.lexical + why.vector + sum(size for _, size in why.boosts))
        assert 0.0 <= hit.score <= 1.0
        assert reading or why.standing == why.score
    standings = [hit.why.standing for hit in found.hits]
    assert standings == sorted(standings, reverse=True)
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)


def test_hits_without_snippets_are_the_same_otherwise() -> None:
    engine = engine_of(NOTES, Meaning())
    full, bare = find(engine, "car tyres"), find(engine, "car tyres", snippets=False)
    assert full.hits
    assert all(hit.snippet and hit.why for hit in full.hits)
    assert bare.hits == tuple(replace(hit, snippet="", why=replace(hit.why, words=())) for hit in full.hits)


def test_each_hit_says_which_words_were_found_in_it() -> None:
    found = find(engine_of(NOTES), "the tyres of an automobile, and a kitten")
    assert {hit.path: hit.why.words for hit in found.hits} == {
        "knowledge/reference/garage.md": ("automobile", "tyres"),
        "knowledge/reference/pets.md": ("kitten",),
    }


def test_the_trace_tells_how_the_answer_was_made() -> None:
    found = find(ENGINE, "what did Ana say last Tuesday about the kiln?", now=NOW)
    assert found.trace["names"] == ["Ana Ruiz"]
    assert found.trace["scope"] is EVERYTHING
    steps = found.trace["milliseconds"]
    assert isinstance(steps, dict)
    assert list(steps) == [
        "understand", "words", "vector", "nearest", "fuse", "echoes", "rerank", "links", "explain",
    ]  # fmt: skip


# Anything is a question


@settings(max_examples=150)
@given(st.one_of(hostile, st.text(st.characters(), max_size=200)))
def test_any_text_is_a_question(text: str) -> None:
    find(ENGINE, text, now=NOW)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\n\t",
        "the of and",
        "?",
        '"',
        '""',
        "'",
        "*",
        "kiln*",
        "^kiln",
        "body:kiln",
        "{body heading}: kiln",
        "-kiln",
        "NOT kiln",
        "kiln AND",
        "kiln OR OR",
        "NEAR(kiln hot, 5)",
        "kiln + hot",
        "(kiln",
        "kiln)",
        "kiln; DROP TABLE passages",
        "kiln\0hot",
        "\0",
        "\ud800",
        "kiln \udcff",
        "--",
        "%_%",
        "\\",
        "kiln " * 20_000,
        "k" * 100_000,
        '"' * 100_000,
        "東" * 100_000,
        "".join(f"word{number} " for number in range(15_000)),
    ],
)
def test_what_means_something_to_the_database_means_nothing_in_a_question(text: str) -> None:
    found = find(ENGINE, text, now=NOW)
    if "kiln" in text:
        assert "kiln" in found.hits[0].text


@pytest.mark.parametrize("text", [None, 42, b"kiln", ["kiln"], {"text": "kiln"}, object()])
def test_what_is_no_text_finds_nothing(text: object) -> None:
    assert find(ENGINE, text, now=NOW).hits == ()


def test_a_question_of_common_words_alone_looks_for_them() -> None:
    texts = {"knowledge/reference/a.md": "# Hamlet\n\nTo be or not to be.\n", **NOTES}
    assert paths(find(engine_of(texts), "to be or not to be"))[0] == "a.md"


def test_an_empty_index_answers_with_nothing() -> None:
    assert find(engine_of({}, Meaning()), "car").hits == ()


@pytest.mark.parametrize("limit", [-1, 0])
def test_no_hits_can_be_asked_for(limit: int) -> None:
    assert find(ENGINE, "kiln", limit=limit).hits == ()


def test_more_can_be_asked_for_than_there_are() -> None:
    assert 0 < len(find(ENGINE, "kiln", limit=1000).hits) < 1000


def test_senses_do_not_overlap() -> None:
    """What the tests above stand on."""
    words = " ".join(SENSES).split()
    assert len(words) == len(set(words))

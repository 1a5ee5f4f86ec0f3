"""Values as JSON and back: nothing is lost on the way, and nothing that came wrong is taken."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.context.model import Compiled, Dropped, Quote, Receipt, Section
from tacit.diagnostics import Notice
from tacit.home.categories import CATEGORIES
from tacit.operations.fields import read_scope
from tacit.search.model import Found, Hit, Scope, Why
from tacit.topics.model import Event
from tacit.wire import compiled_form, compiled_from, event_form, found_form, found_from, scope_form

SECTION = Section(
    "memory", "memory", "MEMORY.md", 12, 0.7, "because", "2026-03-01", {"bm25": 1.5}, "cut", "d1"
)
RECEIPT = Receipt(
    "r1", "2026-03-10T09:30:00+00:00", "agent:main:main", "ses_1", "main_session", "main", "hash", "Hello",
    1000, 12, 40, (SECTION,), (Dropped("x", "knowledge", "x.md", "gate", "below", 5, 0.1, {"v": 0.2}),),
    notices=(Notice("deadline", "It was late."),), timings_ms={"all": 1.5}, slots={"memory": (12, 100)},
    had_history=True, audience="owner", unlisted={"weak": 3}, lane="runtime", rule="sessions.main_session",
)  # fmt: skip
COMPILED = Compiled(
    "Text",
    12,
    RECEIPT.sections,
    RECEIPT.dropped,
    RECEIPT,
    "Standing",
    (Quote("a", "b.md:3", "2026-01-01", 0.5),),
)
HIT = Hit(
    "a.md", "text", "**text**", 0.5, "reference", (3, 4), "2026-03-01", "", 0, "A", ("A", "B"), "group",
    False, Why(1.5, 1.2, 0.7, 0.8, (("name: A", 0.3),), 2.5, None, 0.1, ("text",), 1, None),
)  # fmt: skip


def sent(form: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(form))
    return made


def test_a_compiled_turn_comes_back_as_it_was() -> None:
    assert compiled_from(sent(compiled_form(COMPILED, full=True))) == COMPILED
    prompt = replace(COMPILED, standing="", given=(), receipt=replace(RECEIPT, lane="prompt"))
    assert compiled_from(sent(compiled_form(prompt, full=True))) == prompt


def test_of_a_short_form_comes_back_what_is_in_it() -> None:
    found = compiled_from(sent(compiled_form(COMPILED)))
    assert (found.text, found.tokens, found.standing) == ("Text", 12, "Standing")
    assert (found.receipt.id, found.receipt.notices) == ("r1", RECEIPT.notices)
    assert found.sections == ()


def test_what_another_version_adds_or_leaves_out_does_no_harm() -> None:
    form = sent(compiled_form(COMPILED, full=True)) | {"colour": "red"}
    form["record"]["colour"] = form["record"]["sections"][0]["colour"] = "red"
    form["given"][0]["colour"] = "red"
    assert compiled_from(form) == COMPILED
    del form["given"], form["standing"]
    assert compiled_from(form) == replace(COMPILED, given=(), standing="")
    hit = sent(found_form(Found((HIT,), ("lexical",))))
    hit["hits"][0]["why"]["colour"] = hit["hits"][0]["colour"] = "red"
    del hit["channels"], hit["trace"]
    assert found_from(hit).hits == (HIT,)


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"text": 5},
        {"text": None, "tokens": "many"},
        {"text": "", "record": {}},
        {"text": "", "record": {"id": 1}},
        {"text": "", "record": "r1"},
        {"text": "", "given": [1]},
        {"text": "", "notices": {"code": "x"}},
        {"text": "", "tokens": True},
    ],
    ids=str,
)
def test_what_is_no_compiled_turn_is_refused(form: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        compiled_from(form)


@pytest.mark.parametrize(
    "change",
    [
        {"lines": [1]},
        {"lines": ["1", "2"]},
        {"lines": None},
        {"score": "high"},
        {"why": []},
        {"why": {"boosts": [1]}},
        {"why": {"boosts": "xy"}},
        {"archived": "no"},
        {"section": "A"},
    ],
    ids=str,
)
def test_what_is_no_hit_is_refused(change: dict[str, Any]) -> None:
    form = sent(found_form(Found((HIT,), ("lexical",))))
    form["hits"][0] |= change
    with pytest.raises(ValueError):
        found_from(form)
    bad: list[dict[str, Any]] = [{}, {"hits": None, "channels": 3}, {"hits": [1]}, {"hits": {}}]
    for wrong in bad:
        with pytest.raises(ValueError):
            found_from(wrong)


@given(
    st.builds(
        Hit,
        path=st.text(),
        text=st.text(),
        snippet=st.text(),
        score=st.floats(0, 1),
        category=st.sampled_from(CATEGORIES),
        lines=st.tuples(st.integers(1, 9), st.integers(1, 9)),
        section=st.lists(st.text()).map(tuple),
        why=st.builds(
            Why,
            score=st.floats(-9, 9),
            boosts=st.lists(st.tuples(st.text(), st.floats(-9, 9))).map(tuple),
            words=st.lists(st.text()).map(tuple),
        ),
    )
)
def test_any_hit_comes_back_as_it_was(hit: Hit) -> None:
    found = Found((hit,), ("lexical", "vector"), ("no vectors",), {"terms": ["a"], "weights": [0.4, 0.4]})
    assert found_from(sent(found_form(found))) == found


def test_a_form_of_what_came_back_is_the_same_form() -> None:
    """So that a program gets the same whether it asks the daemon or the command line."""
    found = Found((HIT,), ("lexical",), (), {"scope": Scope(categories=("journal",)), "days": None})
    form = sent(found_form(found))
    assert sent(found_form(found_from(form))) == form
    assert form["trace"]["scope"] == {"categories": "('journal',)", "audience": "owner"}


@pytest.mark.parametrize(
    "scope",
    [
        Scope(),
        Scope(archived=False),
        Scope(archived=True, audience="anyone", under="knowledge"),
        Scope(("journal", "topic"), "group", "agent:x", ("a", "b"), date(2026, 1, 2), date(2026, 3, 4)),
        Scope(without=("a.md",)),
    ],
)
def test_a_scope_is_read_as_it_was_meant(scope: Scope) -> None:
    assert read_scope(sent(scope_form(scope))) == scope


def test_an_event_has_the_names_of_a_request() -> None:
    form = event_form(Event("webhook", "shop", "order"))
    assert form == {"type": "webhook", "source": "shop", "event": "order", "topic": ""}

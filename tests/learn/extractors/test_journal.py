"""The journal gets what happened, on the page of the day on which it was told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tacit.learn.extractors.journal import EXTRACTOR
from tests.learn.talk import KNOWN, found, lines, said, talk, texts

HAPPENED = """
We shipped the last order.
The lorry arrived yesterday at noon.
His car has broken down, so he comes on Friday.
The printer was replaced on Saturday.
Gerhard rang at seven.
Wir haben den Vertrag unterschrieben.
Die Lieferung ist gestern angekommen.
"""
NOTHING = """
We will ship the last order tomorrow.
Did the lorry arrive yesterday?
If we shipped the order, she would know.
The lorry has not arrived.
I hope the lorry arrived.
Sie sagte „wir haben unterschrieben“.
Wir werden den Vertrag unterschreiben.
Ist die Lieferung gestern angekommen?
"""


@pytest.mark.parametrize("sentence", lines(HAPPENED))
def test_what_happened_is_on_the_page_of_the_day(sentence: str) -> None:
    [one] = found(EXTRACTOR, sentence)
    assert (one.path, one.line) == ("knowledge/journal/2026-02-16.md", f"- {sentence}")


@pytest.mark.parametrize("sentence", lines(NOTHING))
def test_what_did_not_happen_is_not(sentence: str) -> None:
    assert texts(EXTRACTOR, sentence) == []


def test_lines_are_grouped_by_project() -> None:
    assert [
        one.section for one in found(EXTRACTOR, "We shipped kilnlog 0.10.", "We shipped the last box.")
    ] == [
        "kilnlog",
        "general",
    ]


def test_the_day_is_that_of_the_turn_and_without_one_that_of_the_session() -> None:
    late = replace(said("We shipped the last order."), at=datetime(2026, 2, 17, 0, 10, tzinfo=UTC))
    assert found(EXTRACTOR, late)[0].path == "knowledge/journal/2026-02-17.md"
    assert found(EXTRACTOR, replace(late, at=None))[0].path == "knowledge/journal/2026-02-16.md"


def test_an_agent_tells_what_it_did_itself() -> None:
    assert texts(EXTRACTOR, said("I've opened it as issue 73.", "agent")) == ["I've opened it as issue 73."]
    assert texts(EXTRACTOR, said("I've looked at your code.", "agent")) == []
    assert texts(EXTRACTOR, said("I've changed it to a generator.", "agent")) == []


def test_by_model_the_topic_is_one_line_without_marks() -> None:
    turns = (said("The lorry came at last.", number=3),)
    item = {"text": "The lorry came.", "turn": 3, "topic": "# Clay\n## 2026-01-01"}
    [one] = EXTRACTOR.by_model(item, talk(*turns), turns, KNOWN)
    assert one.section == "clay ## 2026-01-01"
    [one] = EXTRACTOR.by_model({**item, "topic": "<!-- x -->"}, talk(*turns), turns, KNOWN)
    assert one.section == "general"

"""Facts give a named thing a value. What is guessed, asked, planned or past is none."""

from __future__ import annotations

import pytest

from tacit.learn.extractors.facts import EXTRACTOR
from tests.learn.talk import KNOWN, found, lines, said, talk, texts

FACTS = """
The printer is at 192.168.40.31. -> addresses
Staging listens on port 8096. -> addresses
Upload at https://receipts.example.com, not by mail. -> addresses
A parcel to Germany costs 11.90 €. -> prices
The gate code is 4471. -> codes
Our server has 32 GB of memory. -> measures
The library opens at 9:30. -> times
The contract ends on 30 November. -> dates
The router runs on version 3.8. -> versions
Wifi password: `tulip-42` -> codes
Der Ton kostet 1,31 € das Kilo. -> prices
Der Drucker steht auf 192.168.40.31. -> addresses
Die Bücherei öffnet um 9:30. -> times
Der Ofen braucht 63 kWh. -> measures
Lieferung Donnerstag, 22. Oktober, im Hof. -> dates
"""
NOTHING = """
Does the printer cost 300 €?
Maybe the printer costs 300 €.
If the printer costs 300 €, we take it.
The printer would cost 300 €.
The printer will cost 300 €.
The printer does not cost 300 €.
The printer was 300 € last year.
It costs 300 €.
I have 20 minutes.
Then 600 °C comes at 03:17.
He said "the printer costs 300 €".
The weather is nice.
Kostet der Drucker 300 €?
Vielleicht kostet der Drucker 300 €.
Falls der Drucker 300 € kostet, nehmen wir ihn.
Der Drucker wird 300 € kosten.
Es kostet 300 €.
"""


@pytest.mark.parametrize("case", lines(FACTS))
def test_a_thing_with_a_value_is_a_fact(case: str) -> None:
    sentence, _, page = case.rpartition(" -> ")
    [one] = found(EXTRACTOR, sentence)
    assert (one.text, one.path, one.section) == (sentence, f"knowledge/reference/{page}.md", None)


@pytest.mark.parametrize("sentence", lines(NOTHING))
def test_what_is_not_said_to_be_so_is_none(sentence: str) -> None:
    assert texts(EXTRACTOR, sentence) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "The test suite takes 3.2 seconds.",
        "Coverage is 93 %.",
        "The forecast for Saturday is 18 °C.",
        "Memory: 12 MB",
        "Die Abdeckung ist 93 %.",
    ],
)
def test_what_an_agent_reads_off_holds_for_the_moment_and_is_none(sentence: str) -> None:
    assert texts(EXTRACTOR, said(sentence, "agent")) == []
    assert texts(EXTRACTOR, said(sentence, "user")) == [sentence]


def test_what_names_no_thing_is_none() -> None:
    assert texts(EXTRACTOR, "Its density is 12 kg.", "Ihre Miete ist 940 €.") == []


def test_facts_of_a_project_go_to_its_notes() -> None:
    [one] = found(EXTRACTOR, "The web page of kilnlog is on port 8417.")
    assert one.path == "knowledge/projects/kilnlog/notes.md"


def test_rows_of_a_table_are_facts() -> None:
    table = (
        "| what | price | weight |\n|---|---|---|\n| cup | 32 € | 0.3 kg |\n| bowl | 46 € | |\n| vase | ? | |"
    )
    assert texts(EXTRACTOR, said(f"As of today:\n\n{table}", "agent")) == [
        "cup: price 32 €, weight 0.3 kg",
        "bowl: price 46 €",
    ]
    assert texts(EXTRACTOR, "| a | b |\n|---|---|\n| cup | 32 € |\n| bowl | 46 € |") == [
        "cup: 32 €",
        "bowl: 46 €",
    ]


def test_items_of_a_list_of_values_are_facts_with_their_title() -> None:
    recipe = "The white glaze:\n\n- feldspar 38\n- silica 27\n- plus iron 0.8\n\nSieve it twice."
    assert texts(EXTRACTOR, recipe) == [
        "The white glaze: feldspar 38",
        "The white glaze: silica 27",
        "The white glaze: plus iron 0.8",
    ]
    assert texts(EXTRACTOR, "To do:\n\n- call Noor\n- buy milk\n- pay 2 bills") == []


def test_a_decision_is_not_a_fact_as_well() -> None:
    assert texts(EXTRACTOR, "We decided that a parcel to Germany costs 12.90 €.") == []


def test_what_stands_for_itself_in_a_sentence_is_taken_alone() -> None:
    text = "Last night's backup had the photos in it, and German sales stand at 8,905 €."
    assert texts(EXTRACTOR, text) == ["German sales stand at 8,905 €."]


def test_by_model_the_subject_names_the_page() -> None:
    turns = (said("Staging? That listens on 8096.", number=3),)
    item = {"text": "Staging listens on 8096.", "turn": 3, "subject": "Ports"}
    [one] = EXTRACTOR.by_model(item, talk(*turns), turns, KNOWN)
    assert one.path == "knowledge/reference/ports.md"
    [one] = EXTRACTOR.by_model({**item, "project": "shop"}, talk(*turns), turns, KNOWN)
    assert one.path == "knowledge/projects/shop/notes.md"

"""Procedures are steps that somebody says are the way to do it, one line each."""

from __future__ import annotations

import pytest

from tacit.learn.extractors.procedures import EXTRACTOR
from tests.learn.talk import KNOWN, found, said, talk, texts

STEPS = "1. honeycomb paper\n2. shake it\n3. label on top"
EXPECTED = ["honeycomb paper", "shake it", "label on top"]


@pytest.mark.parametrize(
    ("above", "name"),
    [
        ("To pack a parcel:", "pack-a-parcel"),
        ("Here is how we pack a parcel:", "pack-a-parcel"),
        ("Steps for packing a parcel:", "packing-a-parcel"),
        ("Our packing procedure:", "packing"),
        ("So packen wir ein Paket:", "packen-wir-ein-paket"),
        ("Anleitung für ein Paket:", "ein-paket"),
        ("Das ist unsere Paket-Checkliste:", "paket"),
    ],
)
def test_a_list_below_a_line_that_says_how_is_a_procedure(above: str, name: str) -> None:
    changes = found(EXTRACTOR, f"{above}\n\n{STEPS}")
    assert [one.text for one in changes] == EXPECTED
    assert {one.path for one in changes} == {f"knowledge/procedures/{name}.md"}


@pytest.mark.parametrize(
    "above",
    [
        "Options:",
        "Three things have no owner:",
        "How could we pack a parcel:",
        "Maybe to pack a parcel:",
        "How to pack a parcel?",
        "Möglichkeiten, um zu packen:",
        "Fragen zum Packen:",
        "My shopping list:",
    ],
)
def test_other_lists_are_none(above: str) -> None:
    assert texts(EXTRACTOR, f"{above}\n\n{STEPS}") == []


def test_one_sentence_may_hold_all_steps() -> None:
    text = "To restore a backup, first mount the disk, then run restic, then open three files."
    changes = found(EXTRACTOR, text)
    assert [one.text for one in changes] == ["mount the disk", "run restic", "open three files"]
    assert {one.path for one in changes} == {"knowledge/procedures/restore-a-backup.md"}
    german = "Um den Ofen zu starten: zuerst die Klappe schließen, dann Programm 5 wählen, zuletzt starten."
    assert texts(EXTRACTOR, german) == ["die Klappe schließen", "Programm 5 wählen", "starten"]
    assert texts(EXTRACTOR, "If you want to restore it, first mount the disk, then run restic.") == []


def test_what_an_agent_lists_counts_when_somebody_agrees_or_it_was_written_down() -> None:
    listed = said(f"To pack a parcel:\n\n{STEPS}", "agent", 1)
    assert texts(EXTRACTOR, listed) == []
    assert texts(EXTRACTOR, listed, said("No, not like that.", number=2)) == []
    assert texts(EXTRACTOR, listed, said("Perfect, thanks!", number=2)) == EXPECTED
    assert texts(EXTRACTOR, said(f"Written into the packing procedure:\n\n{STEPS}", "agent")) == EXPECTED


def test_what_is_code_or_quoted_is_no_list_of_steps() -> None:
    assert texts(EXTRACTOR, f"```\nTo pack a parcel:\n\n{STEPS}\n```") == []


def test_by_model_a_step_goes_to_the_procedure_of_its_name() -> None:
    turns = (said("You shake it first.", number=3),)
    item = {"text": "Shake it.", "turn": 3, "name": "Packing a parcel"}
    [one] = EXTRACTOR.by_model(item, talk(*turns), turns, KNOWN)
    assert (one.path, one.section) == ("knowledge/procedures/packing-a-parcel.md", "Steps")
    assert list(EXTRACTOR.by_model({**item, "name": "../.."}, talk(*turns), turns, KNOWN)) == []

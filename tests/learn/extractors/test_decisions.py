"""Decisions are found as they were said, in the project they are about, and nothing is decided by asking."""

from __future__ import annotations

import pytest

from tacit.learn.extractors.decisions import EXTRACTOR
from tests.learn.talk import KNOWN, found, lines, said, talk, texts

SETTLED = """
We decided to move the launch to 21 November.
OK, rule: invoices are sent on the first of the month.
We stay with the old printer until March.
We switch to the blue boxes.
The opening moves to Saturday 5 June.
Tickets go to 12 from May.
The morning mail comes at 06:40 instead of 7:00.
Please always answer in German.
When I ask for a price, give me the net one first.
I change my mind, we paint it white.
Wir haben beschlossen, den Kurs auf acht Leute zu begrenzen.
Neue Regel: Rechnungen gehen am Ersten raus.
Die Öffnung ist um 9:30 statt 9:00.
Bitte immer per Sie mit Frau Kern.
Wenn ich dich nach Preisen frage, nenn mir zuerst den Nettopreis.
"""
OPEN = """
It's decided only if Anna agrees.
Should we move the launch to 21 November?
Maybe we stay with the old printer.
If it rains, we switch to the small tent.
I don't want to decide while I am angry.
We have not decided yet.
She said "we decided to sell the house".
I could move it to 06:40.
Sollen wir den Kurs begrenzen?
Vielleicht nehmen wir den alten.
Wir haben noch nichts entschieden.
Falls es regnet, nehmen wir das kleine Zelt.
`from now on` is the name of the flag.
"""


@pytest.mark.parametrize("sentence", lines(SETTLED))
def test_what_was_settled_is_found(sentence: str) -> None:
    assert len(texts(EXTRACTOR, sentence)) == 1


@pytest.mark.parametrize("sentence", lines(OPEN))
def test_what_is_open_is_no_decision(sentence: str) -> None:
    assert texts(EXTRACTOR, sentence) == []


def test_it_goes_to_the_project_that_is_named_else_to_memory() -> None:
    [one] = found(EXTRACTOR, "We decided that the shop closes at six.")
    assert (one.path, one.section) == ("knowledge/projects/shop/context.md", "Key Decisions")
    [one] = found(EXTRACTOR, "This is about the Webshop. We decided to close at six.")
    assert one.path == "knowledge/projects/shop/context.md"
    [one] = found(EXTRACTOR, "We decided to close at six.")
    assert (one.path, one.section) == ("knowledge/memory/MEMORY.md", "Key Decisions")


def test_a_label_goes_and_a_reason_stands_behind_a_dash() -> None:
    assert texts(EXTRACTOR, "Decision: backups run at 04:15. Because the hour before happens twice.") == [
        "backups run at 04:15 — the hour before happens twice."
    ]


def test_after_a_bare_word_the_next_sentence_is_the_decision() -> None:
    assert texts(EXTRACTOR, "decided. oak for the table, ash for the chairs") == [
        "oak for the table, ash for the chairs"
    ]


def test_who_takes_up_an_offer_has_decided() -> None:
    offer = said("Two ways: keep 90 €, or raise it to 110 €. I'd take the second.", "agent", 1)
    assert texts(EXTRACTOR, offer, said("Second. Free shipping from 110.", number=2)) == [
        "Free shipping from 110."
    ]
    assert texts(EXTRACTOR, offer, said("Yes. 110 for everybody.", number=2)) == ["110 for everybody."]
    assert texts(EXTRACTOR, offer, said("Yes. I am on the train now.", number=2)) == []
    assert texts(EXTRACTOR, offer, said("Second. Or would that be too much?", number=2)) == []
    assert texts(EXTRACTOR, said("Second. Free shipping from 110.", number=2)) == []
    offer = said("The test sleeps too long. I would inject a clock. Should I go ahead?", "agent", 1)
    assert texts(EXTRACTOR, offer, said("Yes, go ahead.", number=2)) == []


def test_an_agents_plans_are_no_decisions_of_its_own() -> None:
    assert texts(EXTRACTOR, said("We switch to the blue boxes.", "agent")) == []
    assert texts(EXTRACTOR, said("Noted: we decided to use the blue boxes.", "agent")) != []


def test_a_line_has_its_day_source_trust_and_extractor() -> None:
    [one] = found(EXTRACTOR, "Fine.", said("We decided to close at six.", number=7, trust="other"))
    assert one.line == "- 2026-02-16: We decided to close at six."
    assert (one.source.number, one.source.transcript, one.trust) == (7, talk().transcript, "other")
    assert one.extractor == "decisions/1"


def test_by_model_context_and_project_have_their_places() -> None:
    turns = (said("Then backups run at 04:15, or the hour comes twice.", number=3), said("y", "agent", 4))
    item = {"text": "Backups run at 04:15", "turn": 3, "context": "the hour twice", "project": "kilnlog"}
    [one] = EXTRACTOR.by_model(item, talk(*turns), turns, KNOWN)
    assert one.text == "Backups run at 04:15 — the hour twice"
    assert one.path == "knowledge/projects/kilnlog/context.md"
    assert (one.trust, one.source.number) == ("agent", 3)  # no more than anything that was shown
    [one] = EXTRACTOR.by_model({**item, "project": "another"}, talk(*turns), turns, KNOWN)
    assert one.path == "knowledge/memory/MEMORY.md"

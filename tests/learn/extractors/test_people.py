"""People get a line when something lasting is told of them, and a note when somebody says who they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tacit.learn.extractors.people import EXTRACTOR
from tests.learn.talk import KNOWN, found, lines, said, talk, texts

TOLD = """
my brother Klaus drives her on Tuesday -> klaus
Ana Silva is our new accountant. -> ana-silva
Emil has a bad peanut allergy, so no cake with nuts. -> emil
Paula turns ten on the 24th. -> paula
Noor is an apprentice. -> noor-haddad
Noor prefers written notes to calls. -> noor-haddad
Noor doesn't work on Mondays. -> noor-haddad
Noor's number is 0660 123456. -> noor-haddad
About Noor: only by phone, only in the morning. -> noor-haddad
Meine Schwester Eva kommt aus Linz. -> eva
Frau Kern ist unsere Buchhalterin. -> frau-kern
Ben hat eine schwere Nussallergie. -> ben
Noor arbeitet montags nicht. -> noor-haddad
Noor mag keine langen Mails. -> noor-haddad
Und merk dir zu Noor: nur Telefon, nur vor zehn. -> noor-haddad
"""
NOTHING = """
I met Noor and Tomasz in Graz.
Noor called at seven.
Is Noor an apprentice?
If Noor doesn't work on Mondays, we close.
Maybe Noor prefers tea.
Please tell Noor that she owns the list.
Berta is the big kiln.
Postgres is our database.
Vienna is the capital.
Hanna is our accountant.
She said "my brother Klaus is ill".
Ist Noor unsere Kollegin?
Vielleicht mag Noor keine Mails.
Gestern war Noor in Graz.
"""


@pytest.mark.parametrize("case", lines(TOLD))
def test_what_is_told_of_somebody_goes_to_their_note(case: str) -> None:
    sentence, _, name = case.rpartition(" -> ")
    [one] = found(EXTRACTOR, sentence)
    assert (one.path, one.section, one.kind) == (f"knowledge/people/{name}.md", "Context", "person")
    assert one.text == sentence


@pytest.mark.parametrize("sentence", lines(NOTHING))
def test_a_name_alone_is_nothing(sentence: str) -> None:
    assert texts(EXTRACTOR, sentence) == []


def test_what_people_say_of_themselves_stands_with_their_name() -> None:
    text = "Hi. I don't work Fridays, that's my day with the kids."
    [one] = found(EXTRACTOR, said(text, trust="other", speaker="Deniz"))
    assert one.path == "knowledge/people/deniz.md"
    assert one.text == "Deniz: I don't work Fridays, that's my day with the kids."
    assert one.trust == "other"


def test_what_a_guest_asks_for_is_nothing_to_know() -> None:
    assert texts(EXTRACTOR, said("I'd like to order two cups.", trust="other", speaker="Guest")) == []
    assert texts(EXTRACTOR, said("Ich möchte zwei Tassen.", trust="other", speaker="Guest")) == []


def test_the_owner_gets_no_note() -> None:
    assert texts(EXTRACTOR, "I don't work Fridays.") == []
    assert texts(EXTRACTOR, said("I don't work Fridays.", trust="other", speaker="Hanna")) == []
    assert texts(EXTRACTOR, "my sister Hanna drives her on Tuesday") == []


def test_the_sentence_after_may_say_she() -> None:
    assert texts(EXTRACTOR, "Noor is an apprentice. She doesn't work on Mondays.") == [
        "Noor is an apprentice.",
        "She doesn't work on Mondays.",
    ]
    assert texts(EXTRACTOR, "my brother Klaus drives her. She doesn't lift boxes.") == [
        "my brother Klaus drives her."
    ]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "con", "_index", "a/b", "..", "#", "x" * 300, "佐藤 由紀"]
)
def test_by_model_a_name_becomes_a_safe_file_name_or_nothing(name: str) -> None:
    turns = (said("She likes tea.", number=3),)
    item = {"text": "Likes tea.", "turn": 3, "name": name}
    for one in EXTRACTOR.by_model(item, talk(*turns), turns, KNOWN):
        folder, _, file = one.path.rpartition("/")
        assert folder == "knowledge/people"
        assert file.removesuffix(".md").replace("-", "").isalnum()
        assert file not in ("con.md", "index.md", "session.md")
        assert len(file) < 80


def test_by_model_the_owner_gets_no_note_and_the_known_keep_theirs() -> None:
    turns = (said("She likes tea.", number=3),)
    item = {"text": "Likes tea.", "turn": 3, "name": "Hanna Weidlich"}
    assert list(EXTRACTOR.by_model(item, talk(*turns), turns, KNOWN)) == []
    [one] = EXTRACTOR.by_model({**item, "name": "Noor"}, talk(*turns), turns, KNOWN)
    assert one.path == "knowledge/people/noor-haddad.md"
    assert list(EXTRACTOR.by_model({**item, "name": ""}, talk(*turns), turns, KNOWN)) == []


def test_names_with_accents_are_found_as_they_are_written() -> None:
    known = replace(KNOWN, people={"Özge": "knowledge/people/oezge.md"})
    assert found(EXTRACTOR, "Özge prefers tea to coffee.", known=known)[0].path == "knowledge/people/oezge.md"

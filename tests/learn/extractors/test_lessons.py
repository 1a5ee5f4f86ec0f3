"""Lessons are what somebody says they learned, and nothing that only sounds wise."""

from __future__ import annotations

import pytest

from tacit.learn.extractors.lessons import EXTRACTOR
from tests.learn.talk import KNOWN, found, lines, said, talk, texts

LEARNED = """
Lesson learned: label the cables before you pull them.
Never again without a second key.
It turned out that the paper settles on the way.
Next time we measure twice.
So nothing heavy goes on the top shelf, ever.
Beim nächsten Mal messen wir vorher.
Nie wieder ohne Ersatzschlüssel auf die Baustelle.
Es stellte sich heraus, dass der Filter verkehrt eingebaut war.
Daraus haben wir gelernt, dass Kork quillt.
"""
NOTHING = """
We should have done this earlier.
See you next time.
Did we learn anything from this?
I never learned to swim because of my ears.
The children learn a lot at school.
If it turned out that the paper settles, we would notice.
Vielleicht lernen wir das noch.
Was haben wir daraus gelernt?
Bis zum nächsten Mal!
"""


@pytest.mark.parametrize("sentence", lines(LEARNED))
def test_what_was_learned_is_found(sentence: str) -> None:
    [one] = found(EXTRACTOR, sentence)
    assert (one.path, one.section, one.kind) == ("knowledge/memory/MEMORY.md", "Lessons Learned", "lesson")


def test_what_an_agent_found_while_looking_for_a_bug_is_no_lesson() -> None:
    assert texts(EXTRACTOR, said("It turns out the value was None.", "agent")) == []
    assert texts(EXTRACTOR, said("I should have asked before I deleted the branch.", "agent")) != []


@pytest.mark.parametrize("sentence", lines(NOTHING))
def test_what_nobody_learned_is_not(sentence: str) -> None:
    assert texts(EXTRACTOR, sentence) == []


def test_the_list_that_answers_what_was_learned_is_taken_whole() -> None:
    answer = said("My list:\n\n1. Measure twice.\n2. Ask first.\n\nThe last one is mine.", "agent", 2)
    assert texts(EXTRACTOR, "What did we learn this month?", answer) == ["Measure twice.", "Ask first."]
    assert texts(EXTRACTOR, "What did we buy this month?", answer) == []
    assert texts(EXTRACTOR, "What we learned:\n- Measure twice.\n- Ask first.") == [
        "Measure twice.",
        "Ask first.",
    ]


def test_by_model_it_goes_to_memory() -> None:
    turns = (said("I measure twice from today.", number=3),)
    [one] = EXTRACTOR.by_model({"text": "Measure twice.", "turn": 3}, talk(*turns), turns, KNOWN)
    assert (one.path, one.section, one.trust) == ("knowledge/memory/MEMORY.md", "Lessons Learned", "owner")

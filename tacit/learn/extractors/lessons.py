"""Lessons: what was learned the hard way, into MEMORY.md.

By rules: sentences that say so ("never again", "it turned out that", "nächstes Mal"), and lists that answer
the question what was learned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tacit.home.layout import MEMORY
from tacit.learn.extractors.extractor import (
    Extractor,
    find_lists,
    item_schema,
    make_change,
    parse_answer,
    spoken_turns,
    turn_statements,
    turn_words,
)
from tacit.learn.model import Change, Known
from tacit.transcripts.attribution import AttributedTranscript, Utterance

_TARGET = (MEMORY, "Lessons Learned")
_LABEL = re.compile(
    r"(?:[^\s:]{1,20} ){0,4}(?:lessons?(?: learned)?|gelernt|lektion|merke|fazit)\s*:\s+", re.IGNORECASE
)
# Also as a question: its answer is what was learned.
_LEARNED = re.compile(
    r"\b(?:lessons? learn(?:ed|t)|what (?:did|have|do) (?:we|i|you) learn(?:ed|t)?\b|what (?:we"
    r"|i)(?: have|['’]ve)? learn(?:ed|t)"
    r"|was (?:haben wir|habe ich|hast du|wir|ich)\b[^.?:]{0,40}\bgelernt|lehren (?:aus|daraus))",
    re.IGNORECASE,
)


def by_rules(conversation: AttributedTranscript, known: Known) -> Iterator[Change]:  # noqa: ARG001
    previous = ""
    for turn in spoken_turns(conversation):
        learned = [sentence for kind, sentence in turn_statements(turn) if kind == "lesson"]
        for sentence in [*learned, *_listed_lessons(turn, previous)]:
            text = _LABEL.sub("", sentence, count=1)
            yield from make_change(conversation, turn, text, _TARGET, "lesson")
        previous = turn_words(turn)


def _listed_lessons(turn: Utterance, previous: str) -> Iterator[str]:
    was_asked = _LEARNED.search(previous) is not None
    for listing in find_lists(turn_words(turn)):
        if was_asked or _LEARNED.search(listing.title):
            yield from listing.items


def by_model(
    item: Mapping[str, Any],
    conversation: AttributedTranscript,
    turns: tuple[Utterance, ...],
    known: Known,  # noqa: ARG001
) -> Iterator[Change]:
    answer = parse_answer(item, turns)
    if answer:
        turn, text, trust = answer
        yield from make_change(conversation, turn, text, _TARGET, "lesson", trust)


EXTRACTOR = Extractor(
    "lessons",
    1,
    by_rules,
    """Find lessons: what a speaker learned because something went wrong or surprisingly well, and would do
differently or again next time. Ignore general wisdom without an experience in this conversation,
decisions and facts. Write each lesson as advice that can be understood without the conversation, with
its reason, in the language of the turn.""",
    item_schema(),
    by_model,
)

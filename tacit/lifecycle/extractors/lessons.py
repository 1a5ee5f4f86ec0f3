"""Lessons: what was learned the hard way, into MEMORY.md.

By rules: sentences that say so ("never again", "it turned out that", "nächstes Mal"), and the list with which
somebody answers what was learned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tacit.lifecycle.extractors.extractor import Extractor
from tacit.lifecycle.extractors.lines import (
    MEMORY,
    answered,
    change,
    schema,
    told_in,
    turns_of,
    words_of,
)
from tacit.lifecycle.extractors.lists import lists_of
from tacit.model.changes import Change, Heard, Known, Said

_TARGET = (MEMORY, "Lessons Learned")
_LABEL = re.compile(
    r"(?:[^\s:]{1,20} ){0,4}(?:lessons?(?: learned)?|gelernt|lektion|merke|fazit)\s*:\s+", re.IGNORECASE
)
# Also as a question: the answer is what was learned.
_LEARNED = re.compile(
    r"\b(?:lessons? learn(?:ed|t)|what (?:did|have|do) (?:we|i|you) learn(?:ed|t)?\b|what (?:we"
    r"|i)(?: have|['’]ve)? learn(?:ed|t)"
    r"|was (?:haben wir|habe ich|hast du|wir|ich)\b[^.?:]{0,40}\bgelernt|lehren (?:aus|daraus))",
    re.IGNORECASE,
)


def by_rules(heard: Heard, known: Known) -> Iterator[Change]:  # noqa: ARG001
    before = ""
    for said in turns_of(heard):
        learned = [sentence for kind, sentence in told_in(said) if kind == "lesson"]
        for sentence in [*learned, *_listed(said, before)]:
            text = _LABEL.sub("", sentence, count=1)
            yield from change(heard, said, text, _TARGET, "lesson", EXTRACTOR.label)
        before = words_of(said)


def _listed(said: Said, before: str) -> Iterator[str]:
    was_asked = _LEARNED.search(before) is not None
    for found in lists_of(words_of(said)):
        if was_asked or _LEARNED.search(found.title):
            yield from found.items


def by_model(
    item: Mapping[str, Any],
    heard: Heard,
    said: tuple[Said, ...],
    known: Known,  # noqa: ARG001
) -> Iterator[Change]:
    found = answered(item, said)
    if found:
        turn, text, trust = found
        yield from change(heard, turn, text, _TARGET, "lesson", EXTRACTOR.label, trust)


EXTRACTOR = Extractor(
    "lessons",
    1,
    by_rules,
    """Find lessons: what somebody learned from what went wrong or surprisingly well, and would do otherwise
or again next time. General wisdom that nobody in this conversation paid for is none, and neither is a
decision or a fact. Write it as advice that is understood without the conversation, with its reason, in the
language in which it was said.""",
    schema(),
    by_model,
)

"""Journal: what happened, on the page of the day on which it was told, grouped by project.

By rules: sentences that tell what somebody did or what came about. What belongs to no known project stands
under "general".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tacit.lifecycle.extractors.extractor import Extractor
from tacit.lifecycle.extractors.lines import (
    answered,
    change,
    day_of,
    field,
    line_of,
    schema,
    told_in,
    turns_of,
    words_of,
)
from tacit.lifecycle.named import Names
from tacit.model.changes import Change, Heard, Known, Said

_GENERAL = "general"
_LONGEST_TOPIC = 40


def by_rules(heard: Heard, known: Known) -> Iterator[Change]:
    names = Names(known.projects)
    for said in turns_of(heard):
        for kind, sentence in told_in(said):
            if kind == "event":
                topic = names.one_in(sentence) or names.one_in(words_of(said)) or _GENERAL
                yield from change(
                    heard, said, sentence, _target(heard, said, topic), "event", EXTRACTOR.label
                )


def _target(heard: Heard, said: Said, topic: str) -> tuple[str, str]:
    return f"knowledge/journal/{day_of(said, heard)}.md", topic


def by_model(item: Mapping[str, Any], heard: Heard, said: tuple[Said, ...], known: Known) -> Iterator[Change]:
    found = answered(item, said)
    if found:
        turn, text, trust = found
        topic = line_of(field(item, "topic")).strip("# ").lower()
        topic = Names(known.projects).one_in(topic) or topic[:_LONGEST_TOPIC].strip() or _GENERAL
        yield from change(heard, turn, text, _target(heard, turn, topic), "event", EXTRACTOR.label, trust)


EXTRACTOR = Extractor(
    "journal",
    1,
    by_rules,
    """Find what is worth remembering of this day: what happened, what was done, finished, ordered, broken
or moved, and what was agreed. Leave out small talk, questions, greetings, readings of the moment and what
is only planned. One short sentence for each, most important first, at most ten, in the language in which it
was said. `topic` is one word or the name of a known project, by which the lines are grouped.""",
    schema(topic="one word, or the name of a known project"),
    by_model,
)

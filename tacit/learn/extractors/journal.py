"""Journal: what happened, on the page of the day it was told, grouped by project.

By rules: sentences that say what a person did or what happened. Events that belong to no known project go
under "general".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tacit.learn.entities import NameIndex
from tacit.learn.extractors.extractor import (
    Extractor,
    clean_line,
    item_schema,
    make_change,
    parse_answer,
    spoken_turns,
    text_field,
    turn_day,
    turn_statements,
    turn_words,
)
from tacit.learn.model import Change, Known
from tacit.transcripts.attribution import AttributedTranscript, Utterance

_GENERAL_TOPIC = "general"
_MAX_TOPIC_CHARS = 40


def by_rules(conversation: AttributedTranscript, known: Known) -> Iterator[Change]:
    names = NameIndex(known.projects)
    for turn in spoken_turns(conversation):
        for kind, sentence in turn_statements(turn):
            if kind == "event":
                topic = names.one_in(sentence) or names.one_in(turn_words(turn)) or _GENERAL_TOPIC
                yield from make_change(
                    conversation, turn, sentence, _target_note(conversation, turn, topic), "event"
                )


def _target_note(conversation: AttributedTranscript, turn: Utterance, topic: str) -> tuple[str, str]:
    return f"knowledge/journal/{turn_day(turn, conversation)}.md", topic


def by_model(
    item: Mapping[str, Any], conversation: AttributedTranscript, turns: tuple[Utterance, ...], known: Known
) -> Iterator[Change]:
    answer = parse_answer(item, turns)
    if answer:
        turn, text, trust = answer
        topic = clean_line(text_field(item, "topic")).strip("# ").lower()
        topic = NameIndex(known.projects).one_in(topic) or topic[:_MAX_TOPIC_CHARS].strip() or _GENERAL_TOPIC
        yield from make_change(
            conversation, turn, text, _target_note(conversation, turn, topic), "event", trust
        )


EXTRACTOR = Extractor(
    "journal",
    1,
    by_rules,
    """Find what is worth remembering about this day: what happened, what was done, finished, ordered, broken
or moved, and what was agreed. Ignore small talk, questions, greetings, momentary readings and plans.
Write one short sentence for each, the most important first, at most ten, in the language of the turn.
`topic` is one word or the name of a known project, by which the lines are grouped.""",
    item_schema(topic="one word, or the name of a known project"),
    by_model,
)

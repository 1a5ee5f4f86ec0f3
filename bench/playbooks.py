"""Realistic topics for the notes of `bench.corpus`. The same number gives the same bytes.

A topic is about the machines, dishes or programs of one maker, "bexley-lathe". Most activate on a list of
words, some on an expression, people, files or a URL; most ask the gate; half subscribe to a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import tacit.sample
from bench import corpus
from bench.corpus import FIELDS, MAKERS, PEOPLE, Field
from tacit.topics.model import Topic
from tacit.topics.parser import parse_topic

_SUBSCRIBABLE_NOTES = 1000  # topics subscribe only to the first notes, which every home has
_ACTIVATIONS, _PRIORITIES = ("gated", "auto", "manual"), ("medium", "high", "low", "critical")
_STEPS = (
    "Ask which {thing} is meant, if it isn't said.",
    "Look up the {noun} {figure} before you name a number. It is in {unit}.",
    "If the {noun} has changed since, ask {who} first and write down the answer.",
    "A {noun} below 10 {unit} is a mistake of the {other}. Say so.",
    "Never promise a {figure} for the {other} without a look at the {noun}.",
    "When {who} is away, {other_who} decides about the {noun}, but not about the {figure}.",
    "List what is missing: {noun}, {other}, and whether the {thing} was checked this month.",
    "Say in one line what follows for the {other}.",
)
_NOTES = (
    "{who} wants it short, without the {noun}.",
    "The {figure} is the one of last year, not the one on the {other}.",
    "Since March the {noun} and the {other} are kept apart.",
)


def topics(count: int) -> list[Topic]:
    parsed = [parse_topic(path, text)[0] for path, text in written(count)]
    return [topic for topic in parsed if topic is not None]


def written(count: int) -> Iterator[tuple[str, str]]:
    """Path and text of each topic."""
    things = [(field, thing) for field, about in FIELDS.items() for thing in about.things]
    for number in range(count):
        rng = Random(corpus.SEED + number)
        (field, thing), maker = things[number * 37 % len(things)], MAKERS[number * 7 % len(MAKERS)]
        name = f"{maker.lower()}-{thing}-{number}"
        yield f"topics/{name}.md", _topic_text(rng, number, FIELDS[field], maker, thing)


def _topic_text(rng: Random, number: int, about: Field, maker: str, thing: str) -> str:
    subscribed = [corpus.note(rng.randrange(_SUBSCRIBABLE_NOTES))[0] for _ in range(number % 4 % 3)]
    head = [
        "type: topic",
        f"description: What to do when the {thing} of {maker} comes up",
        "triggers:",
        *(f"  {line}" for line in _trigger_lines(rng, number, about, maker, thing)),
        *(["subscriptions:", *(f"  - {path}" for path in subscribed)] if subscribed else []),
        f"activation: {rng.choices(_ACTIVATIONS, (12, 7, 1))[0]}",
        f"priority: {rng.choices(_PRIORITIES, (10, 6, 3, 1))[0]}",
        f"keywords: [{maker}, {rng.choice(about.nouns)}]",
    ]
    words = {"thing": thing, "who": rng.choice(PEOPLE), "other_who": rng.choice(PEOPLE)}
    steps = [
        f"{step_number}. {_fill_in(rng, about, words, line)}"
        for step_number, line in enumerate(rng.sample(_STEPS, 6), 1)
    ]
    notes = [f"- {_fill_in(rng, about, words, line)}" for line in _NOTES]
    body = [f"# {maker} {thing}", "", "## Instructions", "", *steps, "", "## Context Notes", "", *notes]
    return "\n".join(["---", *head, "---", "", *body, ""])


def _fill_in(rng: Random, about: Field, words: dict[str, str], line: str) -> str:
    noun, other = rng.sample(about.nouns, 2)
    figure, unit = rng.choice(about.figures), rng.choice(about.units)
    return line.format(noun=noun, other=other, figure=figure, unit=unit, **words)


def _trigger_lines(rng: Random, number: int, about: Field, maker: str, thing: str) -> Iterator[str]:
    rare = about.nouns[len(about.nouns) // 2 :]
    noun, other = rng.sample(rare, 2)
    figure = rng.choice(about.figures)
    kind = number % 10
    if kind < 5:
        yield f"- {{type: pattern, match: '\\b({maker} {thing}|{thing}s?|{noun} {figure})\\b'}}"
    elif kind < 7:
        yield f"- {{type: keywords, words: [{maker} {thing}, {noun} {other}, {other} {figure}]}}"
    elif kind == 7:
        yield f"- {{type: pattern, match: '\\b{thing}s?\\s+(is|was|sounds)\\s+\\w*{noun}'}}"
        yield f"- {{type: pattern, match: '{maker}[ -]{thing}|{noun} no\\.? ?[0-9]{{2,6}}'}}"
    elif kind == 8:
        yield f"- {{type: mention, words: [{rng.choice(PEOPLE)} {maker}]}}"
        yield f"- {{type: keywords, words: [{noun} {thing}]}}"
    else:
        yield f"- {{type: glob, match: '**/{thing}/*.{rng.choice(('py', 'csv', 'md'))}'}}"
        yield f"- {{type: url, match: '*.{maker.lower()}.example/{thing}/*'}}"
    if number % 8 == 0:
        yield f"- {{type: pattern, match: '\\b({noun} {other})\\b', scope: output}}"
    if number % 40 == 0:
        yield "- {type: urgency}"


def furnish(root: Path, count: int) -> None:
    """Write the topics and the identity of the sample's agent."""
    for path, text in written(count):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    for path, data in tacit.sample.notes():
        if path.startswith("knowledge/identity/") or path == "knowledge/projects/_active.md":
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)

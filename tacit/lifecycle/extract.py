"""The extractor that needs no model: sentences that say they are decisions, lessons or events.

It is shallow. It knows wordings (`cues`), not meanings: a decision in other words is missed, and a joke told
in those words is taken. What it takes stands as it was said, one sentence at a time, with who said it and
when; nothing is summed up or put together. It is for the moment when turns leave the window and nobody may
be asked; the transcript still has everything, for better readers later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime

from tacit.lifecycle.cues import Noticed, noticed, possible
from tacit.model.changes import Change, ChangeSet, Said, Source, Trust
from tacit.text.lines import scan
from tacit.text.words import fold, unspaced

EXTRACTOR = "cues/1"
LEFT_THE_WINDOW = "history left the window"
MOST = 20  # changes in one set
LONGEST = 300  # characters of a sentence
_LOOKED_AT = 20_000  # characters of one turn
_MOST_TURNS = 200  # the newest of them; the transcript has the others
_NO_SENTENCE = 1_000  # characters; what is longer is a list or a dump
_FEWEST_WORDS = 3
_FEWEST_LETTERS = 5  # where words are not apart

_MEMORY = "knowledge/memory/MEMORY.md"
_SECTIONS: dict[Noticed, str] = {"decision": "Key Decisions", "lesson": "Lessons Learned"}

# What stands in quotation marks or is code was said by somebody else, or by nobody.
# Bounded, and `++` gives nothing back: a message may be a megabyte of dots or of opening marks.
_QUOTED = re.compile(
    r"`[^`\n]{0,400}`|\"[^\"\n]{0,400}\"|“[^”\n]{0,400}”|„[^“”\n]{0,400}[“”]|«[^»\n]{0,400}»"
    r"|「[^」\n]{0,400}」|『[^』\n]{0,400}』"
)
_ITEM = re.compile(r"\s*(?:[-*+•]\s+(?:\[[ xX]\]\s+)?|[0-9]{1,3}[.)]\s+)?")
_END = re.compile(r"[.!?…]++[\"'”’)\]]*+\s++|[。！？]++[」』”）)]*+|[;；]\s++")
_NO_END = re.compile(
    r"(?:\b[A-Za-zÄÖÜäöü]|[0-9]|\b(?:Dr|Mr|Mrs|Ms|Prof|Fr|Hr|St|Nr|No|ca|bzw|evtl|ggf|inkl|usw|vs|approx|etc))\.\s+\Z"
)


def extract(
    turns: Sequence[Said],
    *,
    session_key: str,
    session_id: str,
    made_at: datetime,
    day: date | None = None,
    projects: Mapping[str, str] | None = None,
    users: Trust = "other",
    most: int = MOST,
    reason: str = LEFT_THE_WINDOW,
) -> ChangeSet | None:
    """What is worth keeping of `turns`; None if nothing is.

    `day` is for turns that carry no time: give the day on which the session began, so that the same turns
    make the same changes tomorrow. `projects` has the names by which a project is known, each with its slug.
    `users` tells whose word a user's is in this session.
    """
    names = _by_length(projects or {})
    found: dict[tuple[str, str], Change] = {}
    for turn in turns[-_MOST_TURNS:]:
        if turn.role not in ("user", "agent"):
            continue
        trust: Trust = "agent" if turn.role == "agent" else users
        for kind, sentence in told(turn.text, by_agent=turn.role == "agent"):
            when = (turn.at.date() if turn.at else day or made_at.date()).isoformat()
            slug = _project(sentence, names) or _project(turn.text[:_LOOKED_AT], names)
            change = Change(
                *_target(kind, when, slug), sentence, when, kind, _source(turn, session_key), trust
            )
            found.setdefault((change.path, fold(sentence)), change)
    changes = tuple(found.values())[-most:] if most > 0 else ()
    if not changes:
        return None
    return ChangeSet(session_key, session_id, made_at.isoformat(), EXTRACTOR, reason, changes)


def told(text: str, *, by_agent: bool = False) -> Iterator[tuple[Noticed, str]]:
    """The sentences of a message that tell something, with what it is."""
    text = text[:_LOOKED_AT]
    cues = possible(text, by_agent=by_agent)
    for sentence in sentences(text) if cues else ():
        kind = noticed(_masked(sentence), cues) if _says_enough(sentence) else None
        if kind:
            yield kind, _cut(sentence)


def sentences(text: str) -> Iterator[str]:
    """Of prose: no code, no quoted lines, no tables, no headings."""
    paragraph: list[str] = []
    for line in scan(text):
        prose = line.kind == "text" and not line.text.lstrip().startswith((">", "|"))
        item = _ITEM.match(line.text)
        begins = not prose or (item is not None and bool(item[0].strip()))
        if begins and paragraph:
            yield from _split(" ".join(paragraph))
            paragraph = []
        if prose:
            paragraph.append(line.text[item.end() :].strip() if item else line.text.strip())
    yield from _split(" ".join(paragraph))


def _split(paragraph: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(_masked(paragraph)):
        following = paragraph[end.end() : end.end() + 1]
        if following.islower() and "." in end[0]:
            continue
        if _NO_END.search(paragraph[max(start, end.end() - 12) : end.end()]):
            continue
        yield from _bare(paragraph[start : end.end()])
        start = end.end()
    yield from _bare(paragraph[start:])


def _bare(sentence: str) -> Iterator[str]:
    sentence = sentence.strip().strip("*_ ")
    if sentence:
        yield sentence


def _masked(text: str) -> str:
    return _QUOTED.sub(lambda found: found[0][0] + "·" * (len(found[0]) - 2) + found[0][-1], text)


def _says_enough(sentence: str) -> bool:
    if len(sentence) > _NO_SENTENCE or sentence.endswith((":", "：")):  # what it tells comes after it
        return False
    if unspaced(sentence):
        return sum(map(str.isalnum, sentence[:LONGEST])) >= _FEWEST_LETTERS
    return len(sentence.split(maxsplit=_FEWEST_WORDS)) >= _FEWEST_WORDS


def _cut(sentence: str) -> str:
    if len(sentence) <= LONGEST:
        return sentence
    start = sentence[: LONGEST - 2]
    space = start.rfind(" ", LONGEST // 2)
    return f"{start[:space] if space > 0 else start} …"


def _target(kind: Noticed, day: str, slug: str | None) -> tuple[str, str | None]:
    if kind == "event":
        return f"knowledge/journal/{day}.md", slug
    if kind == "decision" and slug:
        return f"knowledge/projects/{slug}/context.md", _SECTIONS[kind]
    return _MEMORY, _SECTIONS[kind]


def _source(turn: Said, session_key: str) -> Source:
    at = turn.at.isoformat() if turn.at else ""
    return Source(session_key, turn.number, turn.role, turn.speaker, at)


def _by_length(projects: Mapping[str, str]) -> list[tuple[re.Pattern[str], str]]:
    folded = sorted(
        ((fold(name), slug) for name, slug in projects.items()), key=lambda one: (-len(one[0]), one)
    )
    return [(_whole(name), slug) for name, slug in folded if len(name) > 1]


def _whole(name: str) -> re.Pattern[str]:
    quoted = re.escape(name)
    return re.compile(quoted if unspaced(name) else rf"(?<!\w){quoted}(?!\w)")


def _project(text: str, names: Iterable[tuple[re.Pattern[str], str]]) -> str | None:
    """The one project that is named; None where it is none, or cannot be told."""
    folded = fold(text)
    slugs = dict.fromkeys(slug for name, slug in names if name.search(folded))
    return next(iter(slugs)) if len(slugs) == 1 else None

"""The extractor that needs no model: sentences that say they are decisions, lessons or events.

It is shallow. It knows wordings (`cues`), not meanings: a decision in other words is missed, and a joke told
in those words is taken. What it takes stands as it was said, one sentence at a time, with who said it and
when; nothing is summed up or put together. It is for the moment when turns leave the window and nobody may
be asked; the transcript still has everything, for better readers later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache

from tacit.lifecycle.cues import Noticed, noticed, possible
from tacit.lifecycle.named import Names
from tacit.model.changes import Change, ChangeSet, Said, Source, Trust
from tacit.text.sentences import masked, says_enough, sentences, shortened
from tacit.text.words import fold

EXTRACTOR = "cues/1"
LEFT_THE_WINDOW = "history left the window"
MOST = 20  # changes in one set
_LOOKED_AT = 20_000  # characters of one turn
_MOST_TURNS = 200  # the newest of them; the transcript has the others

_MEMORY = "knowledge/memory/MEMORY.md"
_SECTIONS: dict[Noticed, str] = {"decision": "Key Decisions", "lesson": "Lessons Learned"}


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
    names = Names(projects or {})
    found: dict[tuple[str, str], Change] = {}
    for turn in turns[-_MOST_TURNS:]:
        if turn.role not in ("user", "agent"):
            continue
        trust: Trust = "agent" if turn.role == "agent" else users
        for kind, sentence in told(turn.text, by_agent=turn.role == "agent"):
            when = (turn.at.date() if turn.at else day or made_at.date()).isoformat()
            slug = names.one_in(sentence) or names.one_in(turn.text[:_LOOKED_AT])
            change = Change(
                *_target(kind, when, slug), sentence, when, kind, _source(turn, session_key), trust
            )
            found.setdefault((change.path, fold(sentence)), change)
    changes = tuple(found.values())[-most:] if most > 0 else ()
    if not changes:
        return None
    return ChangeSet(session_key, session_id, made_at.isoformat(), EXTRACTOR, reason, changes)


def told(text: str, *, by_agent: bool = False) -> tuple[tuple[Noticed, str], ...]:
    """The sentences of a message that tell something, with what it is."""
    return _told(text[:_LOOKED_AT], by_agent)


@lru_cache(maxsize=512)  # several extractors read a turn, and then the summary of its day does
def _told(text: str, by_agent: bool) -> tuple[tuple[Noticed, str], ...]:
    return tuple(_telling(text, by_agent))


def _telling(text: str, by_agent: bool) -> Iterator[tuple[Noticed, str]]:
    cues = possible(text, by_agent=by_agent)
    for sentence in sentences(text) if cues else ():
        kind = noticed(masked(sentence), cues) if says_enough(sentence) else None
        if kind:
            yield kind, shortened(sentence)


def _target(kind: Noticed, day: str, slug: str | None) -> tuple[str, str | None]:
    if kind == "event":
        return f"knowledge/journal/{day}.md", slug
    if kind == "decision" and slug:
        return f"knowledge/projects/{slug}/context.md", _SECTIONS[kind]
    return _MEMORY, _SECTIONS[kind]


def _source(turn: Said, session_key: str) -> Source:
    at = turn.at.isoformat() if turn.at else ""
    return Source(session_key, turn.number, turn.role, turn.speaker, at)

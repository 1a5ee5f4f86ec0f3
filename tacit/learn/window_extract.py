"""The extractor that needs no model: sentences that say they are decisions, lessons or events.

It is shallow. It knows wordings (`patterns`), not meanings: a decision in other words is missed, and a joke
in those words is taken. It takes sentences word for word, each with its speaker and time, and summarizes
nothing. It is for the moment when turns leave the window and no model may be called; the transcript still has
everything for better extractors later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache

from tacit.learn.mentions import NameIndex
from tacit.learn.model import Change, ChangeSet, Source
from tacit.learn.patterns import StatementKind, classify_sentence, find_cues
from tacit.markdown.comment import Trust
from tacit.text.sentences import is_informative, mask_quotes, shorten_sentence, split_sentences
from tacit.text.words import fold
from tacit.transcripts.attribution import Utterance

EXTRACTOR = "cues/1"
LEFT_THE_WINDOW = "history left the window"
MAX_CHANGES = 20  # changes in one set
_MAX_TURN_CHARS = 20_000
_MAX_TURNS = 200  # the newest; the transcript has the others

_MEMORY = "knowledge/memory/MEMORY.md"
_SECTIONS: dict[StatementKind, str] = {"decision": "Key Decisions", "lesson": "Lessons Learned"}


def extract(
    turns: Sequence[Utterance],
    *,
    session_key: str,
    session_id: str,
    made_at: datetime,
    day: date | None = None,
    projects: Mapping[str, str] | None = None,
    users: Trust = "other",
    most: int = MAX_CHANGES,
    reason: str = LEFT_THE_WINDOW,
) -> ChangeSet | None:
    """The changes worth keeping from `turns`; None if there are none.

    `day` is for turns without a time: pass the day on which the session began, so that the same turns give
    the same changes tomorrow. `projects` maps the names of projects to their slugs. `users` is the trust of
    users in this session.
    """
    names = NameIndex(projects or {})
    changes_by_key: dict[tuple[str, str], Change] = {}
    for turn in turns[-_MAX_TURNS:]:
        if turn.role not in ("user", "agent"):
            continue
        trust: Trust = "agent" if turn.role == "agent" else users
        for kind, sentence in find_statements(turn.text, by_agent=turn.role == "agent"):
            day_text = (turn.at.date() if turn.at else day or made_at.date()).isoformat()
            slug = names.one_in(sentence) or names.one_in(turn.text[:_MAX_TURN_CHARS])
            change = Change(
                *_target_note(kind, day_text, slug),
                sentence,
                day_text,
                kind,
                _source_of(turn, session_key),
                trust,
            )
            changes_by_key.setdefault((change.path, fold(sentence)), change)
    changes = tuple(changes_by_key.values())[-most:] if most > 0 else ()
    if not changes:
        return None
    return ChangeSet(session_key, session_id, made_at.isoformat(), EXTRACTOR, reason, changes)


def find_statements(text: str, *, by_agent: bool = False) -> tuple[tuple[StatementKind, str], ...]:
    """The sentences of a message that state something, each with its kind."""
    return _cached_statements(text[:_MAX_TURN_CHARS], by_agent)


@lru_cache(maxsize=512)  # several extractors read a turn, and then the day's summary
def _cached_statements(text: str, by_agent: bool) -> tuple[tuple[StatementKind, str], ...]:
    return tuple(_iter_statements(text, by_agent))


def _iter_statements(text: str, by_agent: bool) -> Iterator[tuple[StatementKind, str]]:
    cues = find_cues(text, by_agent=by_agent)
    for sentence in split_sentences(text) if cues else ():
        kind = classify_sentence(mask_quotes(sentence), cues) if is_informative(sentence) else None
        if kind:
            yield kind, shorten_sentence(sentence)


def _target_note(kind: StatementKind, day: str, slug: str | None) -> tuple[str, str | None]:
    if kind == "event":
        return f"knowledge/journal/{day}.md", slug
    if kind == "decision" and slug:
        return f"knowledge/projects/{slug}/context.md", _SECTIONS[kind]
    return _MEMORY, _SECTIONS[kind]


def _source_of(turn: Utterance, session_key: str) -> Source:
    timestamp = turn.at.isoformat() if turn.at else ""
    return Source(session_key, turn.number, turn.role, turn.speaker, timestamp)

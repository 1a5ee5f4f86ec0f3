"""The sample home as the steps of condensing get it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

from tacit import sample
from tacit.markdown.comment import Trust
from tacit.transcripts.attribution import AttributedTranscript, Utterance

VIENNA = ZoneInfo("Europe/Vienna")
NOW = datetime(2026, 11, 1, 23, 5, tzinfo=VIENNA)
MEMORY = "knowledge/memory/MEMORY.md"


@cache
def notes() -> Mapping[str, str]:
    return {path: data.decode() for path, data in sample.notes()}


@cache
def heards() -> tuple[AttributedTranscript, ...]:
    """The 25 conversations; the owner's agent talks to the owner in all but those with Deniz."""
    return tuple(_heard(one) for one in sample.conversations())


def _heard(one: sample.Conversation) -> AttributedTranscript:
    day = one.started.date().isoformat()
    whose: Trust = "other" if one.slug in ("deniz-staging", "deniz-asks") else "owner"
    said = tuple(
        Utterance(
            number,
            "agent" if turn.role == "agent" else "user",
            turn.text,
            turn.speaker or "",
            turn.at,
            "agent" if turn.role == "agent" else whose,
        )
        for number, turn in enumerate(one.turns, 1)
        if turn.kind == "message" and turn.role != "system"
    )
    path = f"raw/conversations/{day.replace('-', '/')}/{one.started:%H%M}-{one.session_id}-{one.slug}.md"
    return AttributedTranscript(path, one.session_id, one.session_key, one.agent, day, one.slug, said)


def heard(*said: tuple[Trust, str], name: str = "a", day: str = "2026-11-17") -> AttributedTranscript:
    """A conversation of these turns."""
    turns = tuple(
        Utterance(number, "agent" if trust == "agent" else "user", text, trust=trust)
        for number, (trust, text) in enumerate(said, 1)
    )
    path = f"raw/conversations/{day.replace('-', '/')}/0900-ses_{name}-talk.md"
    return AttributedTranscript(path, f"ses_{name}", "agent:main:main", "main", day, "talk", turns)


class Model:
    """Answers the same to whatever it is asked, and remembers the questions."""

    def __init__(self, *items: Mapping[str, Any]) -> None:
        self.items = list(items)
        self.asked: list[tuple[str, str]] = []

    def __call__(
        self, task: str, system: str, user: str, schema: Mapping[str, Any]
    ) -> list[Mapping[str, Any]]:
        assert system
        assert schema
        self.asked.append((task, user))
        return self.items

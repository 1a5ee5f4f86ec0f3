"""Conversations for tests of what is learned from them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from tacit.learn.extractors.extractor import Extractor
from tacit.learn.model import Change, Known
from tacit.learn.pipeline import learn
from tacit.markdown.comment import Trust
from tacit.transcripts.attribution import AttributedTranscript, SpeakerRole, Utterance

AT = datetime(2026, 2, 16, 18, 45, tzinfo=UTC)
TRANSCRIPT = "raw/conversations/2026/02/16/1845-ses_1-glaze.md"
KNOWN = Known(
    {"shop": "shop", "Webshop": "shop", "kilnlog": "kilnlog"},
    {"Noor Haddad": "knowledge/people/noor-haddad.md", "Noor": "knowledge/people/noor-haddad.md"},
    ("Hanna Weidlich", "Hanna"),
)


def said(
    text: str, role: SpeakerRole = "user", number: int = 1, trust: Trust | None = None, speaker: str = ""
) -> Utterance:
    usual: Trust = "owner" if role == "user" else "agent" if role == "agent" else "tool"
    return Utterance(number, role, text, speaker, AT + timedelta(minutes=number), trust or usual)


def talk(*turns: Utterance | str) -> AttributedTranscript:
    """Strings are the owner's, one turn each."""
    numbered = [
        said(one, number=number) if isinstance(one, str) else one for number, one in enumerate(turns, 1)
    ]
    return AttributedTranscript(
        TRANSCRIPT, "ses_1", "agent:main:main", "main", "2026-02-16", "Glaze", tuple(numbered)
    )


def found(extractor: Extractor, *turns: Utterance | str, known: Known = KNOWN) -> list[Change]:
    learned = learn(talk(*turns), known, [extractor], None)
    assert not learned.failed
    return list(learned.changes)


def texts(extractor: Extractor, *turns: Utterance | str, known: Known = KNOWN) -> list[str]:
    return [change.text for change in found(extractor, *turns, known=known)]


def lines(text: str) -> Sequence[str]:
    return [line for line in text.strip().split("\n") if line.strip()]

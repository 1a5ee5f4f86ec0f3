"""The interface of an extractor. Users add their own through the entry point `tacit.extractors`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tacit.learn.model import Change, Known
from tacit.transcripts.attribution import AttributedTranscript, Utterance


class Extractor(NamedTuple):
    """Extracts lines for notes from one conversation. Both ways give the same lines for the same words.

    `by_rules` needs no model. `by_model` turns one item of a model's answer, valid against `schema`, into
    lines; `said` are the turns that the model was shown, all of one trust. Neither reads files or the clock.
    """

    name: str  # also its category, which selects the review policy for its lines
    version: int  # a new number means that the same conversation gives different lines
    by_rules: Callable[[AttributedTranscript, Known], Iterable[Change]]
    prompt: str  # for the model: what to look for
    schema: Mapping[str, Any]  # JSON schema of one item; the answer is {"items": [...]}
    by_model: Callable[
        [Mapping[str, Any], AttributedTranscript, tuple[Utterance, ...], Known], Iterable[Change]
    ]

    @property
    def label(self) -> str:
        """Its name in provenance comments."""
        return f"{self.name}/{self.version}"

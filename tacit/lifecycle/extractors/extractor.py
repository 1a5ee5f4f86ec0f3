"""What an extractor is. One that a user brings is the same, found by the entry point `tacit.extractors`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tacit.model.changes import Change, Heard, Known, Said


class Extractor(NamedTuple):
    """From one conversation, lines for notes. Both ways give the same lines for the same words.

    `by_rules` needs no model. `by_model` turns one item of a model's answer, valid by `schema`, into lines;
    `said` are the turns that the model was shown, all of one trust. Neither sees a file or a clock.
    """

    name: str  # also its category, by which the config says what becomes of its lines
    version: int  # another number: the same conversation gives other lines than before
    by_rules: Callable[[Heard, Known], Iterable[Change]]
    prompt: str  # for the model: what to look for
    schema: Mapping[str, Any]  # JSON schema of one item; the answer is {"items": [...]}
    by_model: Callable[[Mapping[str, Any], Heard, tuple[Said, ...], Known], Iterable[Change]]

    @property
    def label(self) -> str:
        """As marks name it."""
        return f"{self.name}/{self.version}"

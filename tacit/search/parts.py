"""What the config chose to search with. Nothing heavy is imported; models are made when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tacit.embed.protocol import Embedder


class Reranker(Protocol):
    """A cross-encoder: reads the question and a passage together."""

    @property
    def name(self) -> str: ...

    def scores(self, query: str, texts: Sequence[str], deadline: float | None) -> list[float | None]:
        """One number for each text, higher is better; None for those it had no time for."""


@dataclass(frozen=True, slots=True)
class Parts:
    embedder: Callable[[], Embedder | None] = lambda: None
    reranker: Callable[[], Reranker | None] = lambda: None
    lexical_weight: float = 0.4
    vector_weight: float = 0.6
    spreading: float = 0.5

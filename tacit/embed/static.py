"""The mean of the vectors of a text's tokens, looked up in a table: no network, tens of microseconds.

`bundled` is the default: the WordLlama table that the package of that name carries. A query is summed in
plain Python, because importing numpy takes longer than everything else a one-shot command does; documents
are summed by numpy. Both give the same bytes: what is summed are multiples of 1/4096, few enough at a time
that every sum is exact, so neither the order of adding nor the width of the numbers makes a difference.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from math import frexp, ldexp
from typing import TYPE_CHECKING, NamedTuple

from tacit.embed.llama import Llama, read_vocabulary
from tacit.embed.packages import package_folder
from tacit.embed.protocol import EmbedderError, not_finite, scaled
from tacit.embed.weights import Table, Weights, fingerprint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_POOLING = "p1"  # raise it with every change of `weight`, of `AWAY` or of the tokens: old vectors must go

_STEPS = 4096
_TO_A_STEP = 1.5 * 2**52 / _STEPS  # added and taken away again, it leaves the nearest multiple of a step
_EXACT = 2**24  # up to this, 32 bits hold every whole number

_LONG = 4096  # tokens from which numpy is worth its import
_WORD = re.compile(r"\w+[+#]*")  # commas and question marks of a question tell nothing
_BLOCK = 256  # texts scaled together
_KEPT = 2**18  # numbers of rows that questions needed before: 8 MB


def weight(token: int, piece: str) -> float:  # noqa: ARG001
    """How much a token of the bundled table counts. Above 0; twelve bits of it are used."""
    return 1.0


# Subtracted from every mean before it is scaled, if given: what all texts have in common tells none apart.
AWAY: tuple[float, ...] = ()


class _Arrays(NamedTuple):
    matrix: NDArray[np.float32]  # the table, each row times its weight
    weights: NDArray[np.float64]
    most: int  # rows that may be summed at once


class Static:
    """An embedder over one table. `ids` gives the tokens of a text, each the number of a row."""

    def __init__(
        self,
        name: str,
        table: Table,
        ids: Callable[[str], array[int]],
        weigh: Callable[[int], float] = lambda token: 1.0,
        away: Sequence[float] = (),
    ) -> None:
        self.name, self.dimensions = name, table.columns
        self._table, self._ids, self._weigh = table, ids, weigh
        self._away = away or [0.0] * table.columns
        self._row = lru_cache(_KEPT // table.columns)(self._row_of)

    def query(
        self,
        text: str,
        weigh: Callable[[str], float] | None = None,
        seconds: float | None = None,  # noqa: ARG002 - there is nothing to wait for
    ) -> bytes | None:
        sums, total = [0.0] * self.dimensions, 0.0
        for token, times in self._counted(text, weigh).items():
            share, row = self._row(token)
            total += times * share
            sums = [held + times * number for held, number in zip(sums, row, strict=True)]
        if total == 0.0:
            return None
        return scaled([held / total - mean for held, mean in zip(sums, self._away, strict=True)])

    def _counted(self, text: str, weigh: Callable[[str], float] | None) -> dict[int, float]:
        """How often each token is in the text, each time as much as its word weighs."""
        if weigh is None:
            return dict(Counter(self._ids(text)))
        counts: dict[int, float] = {}
        for word in _WORD.findall(text):
            weight = weigh(word)
            for token in self._ids(word):
                counts[token] = counts.get(token, 0.0) + weight
        return counts

    def _row_of(self, token: int) -> tuple[float, tuple[float, ...]]:
        """The weight of a token, and its row times that."""
        share = self._weigh(token)
        return share, tuple(self._steps(share, self._table.row(token)))

    def _steps(self, share: float, row: Sequence[float]) -> list[float]:
        return [share * number for number in row]

    def documents(
        self,
        texts: Sequence[str],
        seconds: float | None = None,  # noqa: ARG002 - there is nothing to wait for
    ) -> list[bytes | None]:
        blocks = [texts[at : at + _BLOCK] for at in range(0, len(texts), _BLOCK)]
        return [vector for block in blocks for vector in self._block(block)]

    def _block(self, texts: Sequence[str]) -> Iterator[bytes | None]:
        import numpy as np  # 80 ms, which a query has no time for

        pooled = [self._pooled(self._ids(text)) for text in texts]
        totals = np.array([total for _, total in pooled])[:, None]
        known = totals > 0.0
        means = np.array([sums for sums, _ in pooled]) / np.where(known, totals, 1.0) - known * self._away
        largest = np.abs(means).max(axis=1, keepdims=True)
        some = largest > 0.0
        rows = np.rint(means / np.where(some, largest, 1.0) * 127).astype(np.int8)
        return (row.tobytes() if points else None for row, points in zip(rows, some[:, 0], strict=True))

    def _pooled(self, ids: array[int]) -> tuple[NDArray[np.float64], float]:
        """The weighted vectors of the tokens summed up, and their weights."""
        import numpy as np

        matrix, weights, most = self._arrays
        tokens = np.frombuffer(ids, f"u{ids.itemsize}")
        sums = np.zeros(self.dimensions)
        for at in range(0, len(tokens), most):
            rows = matrix[tokens[at : at + most]]
            sums += np.ones(len(rows), np.float32) @ rows
        return sums, float(weights[tokens].sum())

    @cached_property
    def _arrays(self) -> _Arrays:
        return self._weighted()

    def _weighted(self) -> _Arrays:
        import numpy as np

        matrix = self._table.matrix()
        if not np.isfinite(matrix).all():
            raise not_finite()
        weights = np.array([self._weigh(token) for token in range(self._table.rows)], np.float64)
        matrix *= weights.astype(np.float32)[:, None]
        return _Arrays(matrix, weights, _LONG)


class Exact(Static):
    """A table whose numbers have at most eleven bits, with weights of at most twelve: see above."""

    def query(
        self, text: str, weigh: Callable[[str], float] | None = None, seconds: float | None = None
    ) -> bytes | None:
        if weigh is None and len(self._ids(text)) > _LONG:
            return self.documents([text])[0]
        return super().query(text, weigh, seconds)

    def _steps(self, share: float, row: Sequence[float]) -> list[float]:
        return [share * number + _TO_A_STEP - _TO_A_STEP for number in row]

    def _weighted(self) -> _Arrays:
        import numpy as np

        matrix, weights, _ = super()._weighted()
        matrix *= _STEPS
        np.rint(matrix, out=matrix)
        most = max(1, int(_EXACT / np.abs(matrix).max(initial=1.0)))
        matrix /= _STEPS
        return _Arrays(matrix, weights, most)


def bundled() -> Static:
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
    name = f"wordllama/{fingerprint(numbers, words)}/{table.columns}/{_POOLING}"
    ids = Llama(vocabulary).ids
    return Exact(name, table, ids, lambda token: _twelve_bits(weight(token, pieces[token])), AWAY)


def _twelve_bits(number: float) -> float:
    mantissa, exponent = frexp(number)
    return ldexp(round(mantissa * _STEPS), exponent - 12)

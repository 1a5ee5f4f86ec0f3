"""How similar texts are, from 0 to 1: by vectors if there are any, else by shared words.

Both measure the subject, not the meaning: "always" and "never" do the same count as similar.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from tacit.text.stopwords import STOPWORDS
from tacit.text.words import UNSPACED_RUN, fold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix: TypeAlias = NDArray[np.float64]

Vectors: TypeAlias = Callable[[Sequence[str]], Sequence[bytes | None]]

# Average similarity from which lessons are about the same thing. Below 0.12 themes start to merge, above
# 0.16 the looser ones fall apart (tests/data/workspace).
MIN_SIMILARITY = 0.14

_WORD = re.compile(r"[^\W\d_]{3,}")
_ENDING = re.compile(r"(?<=...)(?:ings?|ers?|ed|s|ly)\Z")
# In every second lesson, so they do not tell lessons apart.
_COMMON_WORDS = frozenset(
    {
        "always", "never", "before", "after", "make", "made", "use", "using", "used", "need", "needs",
        "first", "again", "every", "still", "even", "only", "instead", "because", "until", "unless",
        "immer", "nie", "nur", "vor", "nach", "erst",
    }
)  # fmt: skip


class Likeness:
    """Similarity within one set of texts, and of other texts to them."""

    def __init__(self, texts: Sequence[str], vectors: Vectors | None) -> None:
        self._texts, self._vectors = list(texts), vectors
        self._rows = self._embed(self._texts)

    def among(self) -> Matrix:
        return self._compare(self._rows, self._rows)

    def of(self, others: Sequence[str]) -> Matrix:
        """The similarity of each of the others to each of the texts."""
        return self._compare(self._embed(others), self._rows)

    def _embed(self, texts: Sequence[str]) -> Matrix:
        """One row per text, of length 1 or 0. With vectors, words still count for half: few lessons have more
        than two short sentences, and a table of word vectors alone finds too much in common between any two
        of them."""
        import numpy as np

        words = _normalize(self._count_words(texts))
        if self._vectors is None:
            return words
        combined: Matrix = np.hstack((_normalize(_decode_vectors(self._vectors(texts))), words))
        return _normalize(combined)

    def _count_words(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        columns = {
            word: index for index, word in enumerate(sorted({w for text in self._texts for w in stems(text)}))
        }
        rows = np.zeros((len(texts), max(1, len(columns))))
        for index, text in enumerate(texts):
            for word in stems(text):
                if word in columns:
                    rows[index, columns[word]] = 1
        return rows

    def _compare(self, left: Matrix, right: Matrix) -> Matrix:
        import numpy as np

        similarities: Matrix = np.clip(left @ right.T, 0, 1)
        return similarities


def _decode_vectors(vectors: Sequence[bytes | None]) -> Matrix:
    import numpy as np

    rows = np.zeros((len(vectors), max((len(vector) for vector in vectors if vector), default=1)))
    for index, vector in enumerate(vectors):
        if vector:
            rows[index] = np.frombuffer(vector, dtype=np.int8)
    return rows


def _normalize(rows: Matrix) -> Matrix:
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    normalized: Matrix = rows / np.where(lengths == 0, 1, lengths)
    return normalized


@lru_cache(4096)
def stems(text: str) -> frozenset[str]:
    """The distinctive words without their endings; pairs of characters in scripts without word spaces."""
    folded = fold(text)
    words = {
        _ENDING.sub("", word).removesuffix("e") for word in _WORD.findall(folded) if is_distinctive(word)
    }
    pairs = {run[start : start + 2] for run in UNSPACED_RUN.findall(folded) for start in range(len(run) - 1)}
    return frozenset(words | pairs)


def is_distinctive(word: str) -> bool:
    return word not in STOPWORDS and word not in _COMMON_WORDS

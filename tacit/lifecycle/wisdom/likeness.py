"""How alike texts are, from 0 to 1: by vectors where there are any, else by the words that they share.

Both are about the subject and know no meaning: "always" and "never" do the same are alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from tacit.text.stopwords import STOPWORDS
from tacit.text.words import RUN, fold

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix: TypeAlias = NDArray[np.float64]

Vectors: TypeAlias = Callable[[Sequence[str]], Sequence[bytes | None]]

# Average likeness from which lessons are about the same thing. Below 0.12 themes begin to run together, above
# 0.16 the looser ones fall apart (tests/data/workspace).
ALIKE = 0.14

_WORD = re.compile(r"[^\W\d_]{3,}")
_ENDING = re.compile(r"(?<=...)(?:ings?|ers?|ed|s|ly)\Z")
# In every second lesson, so they tell no two of them apart.
_COMMON = frozenset(
    {
        "always", "never", "before", "after", "make", "made", "use", "using", "used", "need", "needs",
        "first", "again", "every", "still", "even", "only", "instead", "because", "until", "unless",
        "immer", "nie", "nur", "vor", "nach", "erst",
    }
)  # fmt: skip


class Likeness:
    """Of one set of texts among themselves, and of others to them."""

    def __init__(self, texts: Sequence[str], vectors: Vectors | None) -> None:
        self._texts, self._vectors = list(texts), vectors
        self._rows = self._of(self._texts)

    def among(self) -> Matrix:
        return self._between(self._rows, self._rows)

    def of(self, others: Sequence[str]) -> Matrix:
        """How much each of the others is like each of them."""
        return self._between(self._of(others), self._rows)

    def _of(self, texts: Sequence[str]) -> Matrix:
        """One row each, of length 1 or 0. With vectors the words still count for half: few lessons are of
        more than two short sentences, and a table of word vectors alone sees too much in common in any two
        of those."""
        import numpy as np

        words = _unit(self._counted(texts))
        if self._vectors is None:
            return words
        both: Matrix = np.hstack((_unit(_meant(self._vectors(texts))), words))
        return _unit(both)

    def _counted(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        places = {
            word: at for at, word in enumerate(sorted({w for text in self._texts for w in stems(text)}))
        }
        rows = np.zeros((len(texts), max(1, len(places))))
        for at, text in enumerate(texts):
            for word in stems(text):
                if word in places:
                    rows[at, places[word]] = 1
        return rows

    def _between(self, these: Matrix, those: Matrix) -> Matrix:
        import numpy as np

        found: Matrix = np.clip(these @ those.T, 0, 1)
        return found


def _meant(vectors: Sequence[bytes | None]) -> Matrix:
    import numpy as np

    rows = np.zeros((len(vectors), max((len(vector) for vector in vectors if vector), default=1)))
    for at, vector in enumerate(vectors):
        if vector:
            rows[at] = np.frombuffer(vector, dtype=np.int8)
    return rows


def _unit(rows: Matrix) -> Matrix:
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Matrix = rows / np.where(lengths == 0, 1, lengths)
    return unit


@lru_cache(4096)
def stems(text: str) -> frozenset[str]:
    """The words that tell what it is about, without their endings; pairs of characters where there are no
    words."""
    folded = fold(text)
    words = {_ENDING.sub("", word).removesuffix("e") for word in _WORD.findall(folded) if telling(word)}
    pairs = {run[at : at + 2] for run in RUN.findall(folded) for at in range(len(run) - 1)}
    return frozenset(words | pairs)


def telling(word: str) -> bool:
    return word not in STOPWORDS and word not in _COMMON

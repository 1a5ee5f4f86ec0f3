"""What every embedder does, and what a vector is.

A vector is `bytes`: one signed byte for each dimension, scaled so that the component largest in size is
127 or -127. Its length says nothing, only its direction does, so vectors are compared by cosine. A text
in which nothing is known has no direction, and its vector is None.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Protocol

from tacit.errors import TacitError

_SURROGATE = re.compile("[\ud800-\udfff]")


class EmbedderError(TacitError):
    """An embedder cannot be had, or cannot answer. Search goes on with words alone."""


class Embedder(Protocol):
    """A document's vector depends on its text and on nothing else, never on what else is in the batch.

    So an index that grew note by note is the same as one that was built at once.
    """

    @property
    def name(self) -> str:
        """Names the vectors: the model, its weights, their length, how they are pooled.

        Two embedders of one name give the same vectors; those of two names must not be compared.
        """

    @property
    def dimensions(self) -> int: ...

    def documents(self, texts: Sequence[str], seconds: float | None = None) -> list[bytes | None]:
        """The vectors of texts, within so many seconds where they have to be waited for."""

    def query(
        self, text: str, weigh: Callable[[str], float] | None = None, seconds: float | None = None
    ) -> bytes | None:
        """The vector of a question, within so many seconds where it has to be waited for.

        `weigh` says how much each word of it should count, for embedders that add up words; others read the
        text as it is.
        """


def scaled(values: Sequence[float]) -> bytes | None:
    """The vector in the direction of `values`, or None if they point nowhere."""
    if not all(map(isfinite, values)):
        raise not_finite()
    largest = max(map(abs, values), default=0.0)
    if largest == 0.0:
        return None
    return array("b", [round(value / largest * 127) for value in values]).tobytes()


def not_finite() -> EmbedderError:
    return EmbedderError(
        "The embedding model has numbers that are not finite, so its vectors cannot be used. "
        "Choose another one in search.embedding_model."
    )


def whole(text: str) -> str:
    """The text with the replacement character for each half of a character, which no model can read."""
    return _SURROGATE.sub("\ufffd", text)

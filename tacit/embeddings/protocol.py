"""The embedder protocol and the format of vectors.

A vector is `bytes`: one signed byte for each dimension, scaled so that the component with the largest
magnitude is 127 or -127. Only its direction matters, not its length, so vectors are compared by cosine. A
text without known tokens has no direction, and its vector is None.
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
    """An embedder is not available or cannot answer. Search continues with words only."""


class Embedder(Protocol):
    """A document's vector depends only on its text, never on the rest of the batch.

    So an index that grew note by note equals one that was built at once.
    """

    @property
    def name(self) -> str:
        """Identifies the vectors: the model, its weights, their length, the pooling.

        Embedders with the same name give the same vectors; vectors of different names must not be compared.
        """

    @property
    def dimensions(self) -> int: ...

    def documents(self, texts: Sequence[str], seconds: float | None = None) -> list[bytes | None]:
        """The vectors of texts. `seconds` is a timeout for remote models."""

    def query(
        self, text: str, weigh: Callable[[str], float] | None = None, seconds: float | None = None
    ) -> bytes | None:
        """The vector of a query. `seconds` is a timeout for remote models.

        `weigh` gives the weight of each word, for embedders that sum up words; others ignore it.
        """


class Reranker(Protocol):
    """A cross-encoder: reads the query and a chunk together."""

    @property
    def name(self) -> str: ...

    def scores(self, query: str, texts: Sequence[str], deadline: float | None) -> list[float | None]:
        """One number for each text, higher is better; None for those it had no time for."""


def scale_to_bytes(values: Sequence[float]) -> bytes | None:
    """The vector in the direction of `values`, or None if all are zero."""
    if not all(map(isfinite, values)):
        raise not_finite_error()
    largest = max(map(abs, values), default=0.0)
    if largest == 0.0:
        return None
    return array("b", [round(value / largest * 127) for value in values]).tobytes()


def not_finite_error() -> EmbedderError:
    return EmbedderError(
        "The embedding model has numbers that are not finite, so its vectors cannot be used. "
        "Choose another one in search.embedding_model."
    )


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which no model can read, by the replacement character."""
    return _SURROGATE.sub("\ufffd", text)

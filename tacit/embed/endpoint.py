"""Models behind an address: OpenAI's way of asking, which most servers speak, and Gemini's.

What comes back is not believed: the count, the order, the length and every number are checked, because a
wrong vector in the index is found by nobody. Blank texts are not sent; some servers refuse them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from typing import Any, NamedTuple
from urllib.parse import quote

from tacit.embed.post import Post
from tacit.embed.protocol import EmbedderError, scaled, whole
from tacit.errors import LimitReached
from tacit.model.spending import Meter
from tacit.net.post import Each, at_once
from tacit.text import tokens

_VERSION = "p1"  # raise it when the same text is sent in another way
_MOST_TEXTS = 64
_MOST_CHARACTERS = 100_000
_LONGEST_TEXT = 8_000  # characters; models take 8,192 tokens or fewer, and refuse the rest of the batch too

DOCUMENTS_TIMEOUT, DOCUMENTS_PATIENCE = 30.0, 120.0
QUERY_TIMEOUT = 3.0


class Asked(NamedTuple):
    model: str
    texts: Sequence[str]
    dimensions: int
    query: bool


class Dialect(NamedTuple):
    """How a server wants to be asked, and where in its answer the vectors are."""

    path: Callable[[str], str]
    payload: Callable[[Asked], object]
    vectors: Callable[[Any], list[Any]]


class Endpoint:
    """An embedder over the network. A query has little time, a batch of documents may be patient."""

    def __init__(
        self,
        label: str,
        model: str,
        dimensions: int,
        dialect: Dialect,
        post: Post,
        *,
        timeout: float = DOCUMENTS_TIMEOUT,
        patience: float = DOCUMENTS_PATIENCE,
        query_timeout: float = QUERY_TIMEOUT,
        meter: Meter | None = None,
    ) -> None:
        self.name, self.dimensions = f"{label}:{model}/{post.base}/{dimensions}/{_VERSION}", dimensions
        self._model, self._dialect, self._post = model, dialect, post
        self._timeout, self._patience, self._query_timeout = timeout, patience, query_timeout
        self._meter = meter

    def documents(self, texts: Sequence[str], seconds: float | None = None) -> list[bytes | None]:
        found: list[bytes | None] = [None] * len(texts)
        timeout, patience = self._timeout, self._patience
        if seconds is not None:
            timeout, patience = min(timeout, seconds), min(patience, seconds)
        for batch in _batches(texts):
            vectors = self._vectors([texts[at] for at in batch], timeout, patience)
            for at, vector in zip(batch, vectors, strict=True):
                found[at] = vector
        return found

    def query(
        self,
        text: str,
        weigh: Callable[[str], float] | None = None,  # noqa: ARG002 - it reads sentences, not words
        seconds: float | None = None,
    ) -> bytes | None:
        if not text.strip():
            return None
        time = self._query_timeout if seconds is None else min(seconds, self._query_timeout)
        if time <= 0:
            raise EmbedderError(f"There was no time left to ask {self._post.place}. Try again.")
        return self._vectors([text], time, time, query=True)[0]

    def _vectors(
        self, texts: Sequence[str], timeout: float, patience: float, *, query: bool = False
    ) -> list[bytes | None]:
        sent = [whole(text[:_LONGEST_TEXT]) for text in texts]
        path = self._dialect.path(self._model)
        payload = self._dialect.payload(Asked(self._model, sent, self.dimensions, query))
        answer = self._post(path, payload, timeout, patience, each=self._counting(sent))
        try:
            vectors = self._dialect.vectors(answer)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._strange("with something other than vectors") from None
        if len(vectors) != len(sent):
            raise self._strange(f"with {len(vectors)} vectors for {len(sent)} texts")
        return [self._checked(vector) for vector in vectors]

    def _counting(self, sent: Sequence[str]) -> Each:
        """Who makes an attempt and counts it."""
        meter = self._meter
        if meter is None:
            return at_once
        size = sum(map(tokens.count, sent))

        def counted(attempt: Callable[[], Any]) -> Any:
            try:
                call = meter.begin(size, 0)
            except LimitReached as error:
                raise EmbedderError(str(error)) from None
            try:
                answer = attempt()
            except BaseException as error:
                meter.end(call, "failed", size if getattr(error, "spent", True) else 0, 0, str(error))
                raise
            meter.end(call, "ok", size, 0)
            return answer

        return counted

    def _checked(self, vector: object) -> bytes | None:
        if not isinstance(vector, list) or not all(type(number) in (int, float) for number in vector):
            raise self._strange("with a vector that is no list of numbers")
        if len(vector) != self.dimensions:
            raise EmbedderError(
                f"The model {self._model!r} gives vectors of length {len(vector)}, but "
                f"search.embedding_dimensions is {self.dimensions}. Set it to {len(vector)}."
            )
        try:
            numbers = [float(number) for number in vector]
        except OverflowError:
            numbers = [float("inf")]
        if not all(map(isfinite, numbers)):
            raise self._strange("with numbers that are not finite")
        return scaled(numbers)

    def _strange(self, what: str) -> EmbedderError:
        return EmbedderError(
            f"{self._post.place} answered {what}. Check that {self._model!r} is an embedding model, "
            "or choose another search.embedding_model."
        )


def _batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """The places of the texts that are not blank, in groups that one call may hold."""
    held: list[int] = []
    size = 0
    for at, text in enumerate(texts):
        if not text.strip():
            continue
        length = min(len(text), _LONGEST_TEXT)
        if held and (len(held) == _MOST_TEXTS or size + length > _MOST_CHARACTERS):
            yield held
            held, size = [], 0
        held.append(at)
        size += length
    if held:
        yield held


def _openai_payload(asked: Asked) -> object:
    payload: dict[str, object] = {"model": asked.model, "input": list(asked.texts)}
    # Only these can shorten their vectors; servers refuse the word for any other model.
    if asked.model.startswith("text-embedding-3"):
        payload["dimensions"] = asked.dimensions
    return payload


def _openai_vectors(answer: Any) -> list[Any]:
    """In the order asked: `index` counts where it is given, for some servers answer as they finish."""
    data = list(answer["data"])
    places = [item.get("index", at) for at, item in enumerate(data)]
    if sorted(places) != list(range(len(data))):
        raise ValueError(places)
    by_place = dict(zip(places, data, strict=True))
    return [by_place[at]["embedding"] for at in range(len(data))]


def _gemini_payload(asked: Asked) -> object:
    task = "RETRIEVAL_QUERY" if asked.query else "RETRIEVAL_DOCUMENT"
    return {
        "requests": [
            {
                "model": f"models/{asked.model}",
                "content": {"parts": [{"text": text}]},
                "taskType": task,
                # Without it the vectors have the model's full length, 3072.
                "outputDimensionality": asked.dimensions,
            }
            for text in asked.texts
        ]
    }


OPENAI = Dialect(lambda model: "/embeddings", _openai_payload, _openai_vectors)
GEMINI = Dialect(
    lambda model: f"/models/{quote(model, safe='')}:batchEmbedContents",
    _gemini_payload,
    lambda answer: [item["values"] for item in answer["embeddings"]],
)

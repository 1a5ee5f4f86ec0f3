"""Remote models: the OpenAI API, which most servers support, and Gemini's.

Responses are verified: the count, the order, the length and every number, because no one would notice a wrong
vector in the index. Blank texts are not sent; some servers refuse them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple
from urllib.parse import quote

from tacit import json_http
from tacit.embeddings.protocol import EmbedderError, replace_surrogates, scale_to_bytes
from tacit.errors import LimitReached
from tacit.json_http import AttemptRunner, run_attempt
from tacit.llm.ledger import Meter
from tacit.text import tokens

_VERSION = "p1"  # raise it when texts are sent differently
_MAX_TEXTS = 64
_MAX_BATCH_CHARS = 100_000
_MAX_TEXT_CHARS = 8_000  # characters; models take 8,192 tokens or fewer, and refuse the rest of the batch too

DOCUMENTS_TIMEOUT_S, DOCUMENTS_TOTAL_TIMEOUT_S = 30.0, 120.0
QUERY_TIMEOUT_S = 3.0


class EmbeddingRequest(NamedTuple):
    model: str
    texts: Sequence[str]
    dimensions: int
    query: bool


class EmbeddingDialect(NamedTuple):
    """The requests that a server expects, and how to get the vectors from its responses."""

    path: Callable[[str], str]
    payload: Callable[[EmbeddingRequest], object]
    vectors: Callable[[Any], list[Any]]


class EmbeddingEndpoint:
    """An embedder over the network. A query has a short timeout, a batch of documents a long one."""

    def __init__(
        self,
        label: str,
        model: str,
        dimensions: int,
        dialect: EmbeddingDialect,
        post: EmbeddingPost,
        *,
        timeout: float = DOCUMENTS_TIMEOUT_S,
        patience: float = DOCUMENTS_TOTAL_TIMEOUT_S,
        query_timeout: float = QUERY_TIMEOUT_S,
        meter: Meter | None = None,
    ) -> None:
        self.name, self.dimensions = f"{label}:{model}/{post.base}/{dimensions}/{_VERSION}", dimensions
        self._model, self._dialect, self._post = model, dialect, post
        self._timeout, self._patience, self._query_timeout = timeout, patience, query_timeout
        self._meter = meter

    def documents(self, texts: Sequence[str], seconds: float | None = None) -> list[bytes | None]:
        results: list[bytes | None] = [None] * len(texts)
        timeout, patience = self._timeout, self._patience
        if seconds is not None:
            timeout, patience = min(timeout, seconds), min(patience, seconds)
        for batch in _split_batches(texts):
            vectors = self._request_vectors([texts[position] for position in batch], timeout, patience)
            for position, vector in zip(batch, vectors, strict=True):
                results[position] = vector
        return results

    def query(
        self,
        text: str,
        weigh: Callable[[str], float] | None = None,  # noqa: ARG002 - it reads sentences, not words
        seconds: float | None = None,
    ) -> bytes | None:
        if not text.strip():
            return None
        seconds_left = self._query_timeout if seconds is None else min(seconds, self._query_timeout)
        if seconds_left <= 0:
            raise EmbedderError(f"There was no time left to ask {self._post.place}. Try again.")
        return self._request_vectors([text], seconds_left, seconds_left, query=True)[0]

    def _request_vectors(
        self, texts: Sequence[str], timeout: float, patience: float, *, query: bool = False
    ) -> list[bytes | None]:
        texts_sent = [replace_surrogates(text[:_MAX_TEXT_CHARS]) for text in texts]
        path = self._dialect.path(self._model)
        payload = self._dialect.payload(EmbeddingRequest(self._model, texts_sent, self.dimensions, query))
        answer = self._post(path, payload, timeout, patience, each=self._make_counter(texts_sent))
        try:
            vectors = self._dialect.vectors(answer)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise self._unexpected_answer("with something other than vectors") from None
        if len(vectors) != len(texts_sent):
            raise self._unexpected_answer(f"with {len(vectors)} vectors for {len(texts_sent)} texts")
        return [self._check_vector(vector) for vector in vectors]

    def _make_counter(self, texts_sent: Sequence[str]) -> AttemptRunner:
        """A function that makes an attempt and counts it."""
        meter = self._meter
        if meter is None:
            return run_attempt
        size = sum(map(tokens.count, texts_sent))

        def count_attempt(attempt: Callable[[], Any]) -> Any:
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

        return count_attempt

    def _check_vector(self, vector: object) -> bytes | None:
        if not isinstance(vector, list) or not all(type(number) in (int, float) for number in vector):
            raise self._unexpected_answer("with a vector that is no list of numbers")
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
            raise self._unexpected_answer("with numbers that are not finite")
        return scale_to_bytes(numbers)

    def _unexpected_answer(self, description: str) -> EmbedderError:
        return EmbedderError(
            f"{self._post.place} answered {description}. Check that {self._model!r} is an embedding model, "
            "or choose another search.embedding_model."
        )


def _split_batches(texts: Sequence[str]) -> Iterator[list[int]]:
    """The indices of texts that are not blank, in groups that fit into one call."""
    batch: list[int] = []
    size = 0
    for position, text in enumerate(texts):
        if not text.strip():
            continue
        length = min(len(text), _MAX_TEXT_CHARS)
        if batch and (len(batch) == _MAX_TEXTS or size + length > _MAX_BATCH_CHARS):
            yield batch
            batch, size = [], 0
        batch.append(position)
        size += length
    if batch:
        yield batch


def _openai_payload(request: EmbeddingRequest) -> object:
    payload: dict[str, object] = {"model": request.model, "input": list(request.texts)}
    # Only these can shorten their vectors; servers refuse the field for any other model.
    if request.model.startswith("text-embedding-3"):
        payload["dimensions"] = request.dimensions
    return payload


def _openai_vectors(answer: Any) -> list[Any]:
    """The vectors in request order, by `index` if given: some servers answer in order of completion."""
    data = list(answer["data"])
    positions = [item.get("index", position) for position, item in enumerate(data)]
    if sorted(positions) != list(range(len(data))):
        raise ValueError(positions)
    by_position = dict(zip(positions, data, strict=True))
    return [by_position[position]["embedding"] for position in range(len(data))]


def _gemini_payload(request: EmbeddingRequest) -> object:
    task = "RETRIEVAL_QUERY" if request.query else "RETRIEVAL_DOCUMENT"
    return {
        "requests": [
            {
                "model": f"models/{request.model}",
                "content": {"parts": [{"text": text}]},
                "taskType": task,
                # Without it the vectors have the model's full length, 3072.
                "outputDimensionality": request.dimensions,
            }
            for text in request.texts
        ]
    }


OPENAI = EmbeddingDialect(lambda model: "/embeddings", _openai_payload, _openai_vectors)
GEMINI = EmbeddingDialect(
    lambda model: f"/models/{quote(model, safe='')}:batchEmbedContents",
    _gemini_payload,
    lambda answer: [item["values"] for item in answer["embeddings"]],
)


# ---------------------------------------------------------------- requests


_PURPOSE = json_http.Purpose("embedding model", "search.embedding_model")


class EmbeddingPost(json_http.JsonPoster):
    def __init__(
        self,
        base: str,
        *,
        key: str = "",
        headers: Callable[[str], Mapping[str, str]] = json_http.bearer_header,
    ) -> None:
        try:
            super().__init__(base, _PURPOSE, key=key, headers=headers)
        except json_http.PostError as error:
            raise EmbedderError(str(error)) from None

    def __call__(
        self,
        path: str,
        payload: object,
        timeout: float,
        patience: float,
        *,
        again: bool = True,
        each: json_http.AttemptRunner = json_http.run_attempt,
    ) -> Any:
        try:
            return super().__call__(path, payload, timeout, patience, again=again, each=each)
        except json_http.PostError as error:
            raise EmbedderError(str(error)) from None

"""Answers that are right, and all the ways in which they are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tacit.embeddings.endpoint import GEMINI, OPENAI, EmbeddingDialect, EmbeddingEndpoint, EmbeddingPost
from tacit.embeddings.protocol import EmbedderError, scale_to_bytes
from tacit.json_http import AttemptRunner, run_attempt
from tests.embeddings.conftest import Reply, Request, Serve


def numbers(text: str) -> list[float]:
    """What the fake model thinks of a text."""
    return [float(len(text)), 1.0, -2.0]


def vector(text: str) -> bytes | None:
    return scale_to_bytes(numbers(text))


def openai(request: Request) -> Reply:
    data = [{"index": at, "embedding": numbers(text)} for at, text in enumerate(request.json["input"])]
    return Reply({"object": "list", "data": data, "model": request.json["model"]})


def gemini(request: Request) -> Reply:
    texts = [one["content"]["parts"][0]["text"] for one in request.json["requests"]]
    return Reply({"embeddings": [{"values": numbers(text)} for text in texts]})


def endpoint(
    base: str, dialect: EmbeddingDialect = OPENAI, model: str = "m", dimensions: int = 3
) -> EmbeddingEndpoint:
    return EmbeddingEndpoint("test", model, dimensions, dialect, EmbeddingPost(base), patience=0.1)


def test_the_way_of_openai(serve: Serve) -> None:
    server = serve(openai)
    embedder = endpoint(server.base)
    assert embedder.documents(["a", "bb"]) == [vector("a"), vector("bb")]
    assert embedder.query("ccc") == vector("ccc")
    assert [request.path for request in server.requests] == ["/v1/embeddings"] * 2
    assert server.requests[0].json == {"model": "m", "input": ["a", "bb"]}


def test_the_length_is_asked_for_where_the_model_can_shorten_its_vectors(serve: Serve) -> None:
    server = serve(openai)
    endpoint(server.base, model="text-embedding-3-small").query("a")
    assert server.requests[0].json["dimensions"] == 3


def test_the_way_of_gemini(serve: Serve) -> None:
    server = serve(gemini)
    embedder = endpoint(server.base, GEMINI, "gemini-embedding-001")
    assert embedder.documents(["a", "bb"]) == [vector("a"), vector("bb")]
    assert embedder.query("ccc") == vector("ccc")
    documents, query = server.requests
    assert documents.path == "/v1/models/gemini-embedding-001:batchEmbedContents"
    assert query.json["requests"] == [
        {
            "model": "models/gemini-embedding-001",
            "content": {"parts": [{"text": "ccc"}]},
            "taskType": "RETRIEVAL_QUERY",
            "outputDimensionality": 3,
        }
    ]
    assert documents.json["requests"][0]["taskType"] == "RETRIEVAL_DOCUMENT"


def test_blank_texts_are_not_sent(serve: Serve) -> None:
    server = serve(openai)
    embedder = endpoint(server.base)
    assert embedder.documents(["", "a", " \n", "b", ""]) == [None, vector("a"), None, vector("b"), None]
    assert server.requests[0].json["input"] == ["a", "b"]
    assert embedder.query(" ") is None
    assert embedder.documents(["", " "]) == [None, None]
    assert len(server.requests) == 1


def test_many_texts_go_in_batches_of_bounded_number_and_length(serve: Serve) -> None:
    server = serve(openai)
    texts = ["x" * (number % 7 + 1) for number in range(150)] + ["y" * 7000] * 30 + ["z"]
    assert endpoint(server.base).documents(texts) == [vector(text) for text in texts]
    sent = [request.json["input"] for request in server.requests]
    assert [text for batch in sent for text in batch] == texts
    assert max(map(len, sent)) <= 64
    assert max(sum(map(len, batch)) for batch in sent) <= 100_000


def test_a_text_that_is_too_long_for_any_model_is_cut(serve: Serve) -> None:
    server = serve(openai)
    endpoint(server.base).query("x" * 100_000)
    assert len(server.requests[0].json["input"][0]) == 8000


def test_half_characters_reach_no_server(serve: Serve) -> None:
    server = serve(openai)
    endpoint(server.base).query("a\ud800\0🔥")
    assert server.requests[0].json["input"] == ["a\ufffd\0🔥"]


def test_vectors_that_come_in_another_order_are_put_back(serve: Serve) -> None:
    def shuffled(request: Request) -> Reply:
        body: Any = openai(request).body
        return Reply({"data": body["data"][::-1]})

    assert endpoint(serve(shuffled).base).documents(["a", "bb", "ccc"]) == [
        vector("a"),
        vector("bb"),
        vector("ccc"),
    ]


def test_without_an_index_the_order_is_the_one_asked_for(serve: Serve) -> None:
    def bare(request: Request) -> Reply:
        return Reply({"data": [{"embedding": numbers(text)} for text in request.json["input"]]})

    assert endpoint(serve(bare).base).documents(["a", "bb"]) == [vector("a"), vector("bb")]


@pytest.mark.parametrize("length", [2, 4, 0])
def test_a_wrong_length_names_the_setting_to_change(serve: Serve, length: int) -> None:
    server = serve(lambda request: Reply({"data": [{"index": 0, "embedding": [1.0] * length}]}))
    wanted = f"length {length}, but search.embedding_dimensions is 3. Set it to {length}"
    with pytest.raises(EmbedderError, match=wanted):
        endpoint(server.base).query("a")


def _one(values: object) -> object:
    return {"data": [{"index": 0, "embedding": values}]}


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        None,
        5,
        {"data": None},
        {"data": {}},
        {"data": []},
        {"data": {"index": 0}},
        {"data": ["a"]},
        {"data": [{"index": 0}]},
        {"data": [{"index": 1, "embedding": [1, 2, 3]}]},
        {"data": [{"index": "0", "embedding": [1, 2, 3]}]},
        {"data": [{"index": 0, "embedding": [1, 2, 3]}] * 2},
        {"error": {"message": "not loaded"}},
        _one("AAAA"),
        _one(None),
        _one([1, 2, None]),
        _one([1, 2, "3"]),
        _one([1, 2, True]),
        _one([[1, 2, 3]]),
        _one([1, 2, float("nan")]),
        _one([1, 2, float("inf")]),
        _one([1, 2, 10**400]),
        b'{"data": [{"index": 0, "embedding": [1, 2, 1e999]}]}',
    ],
    ids=str,
)
def test_a_strange_answer_is_told_and_never_becomes_a_vector(serve: Serve, body: object) -> None:
    server = serve(lambda request: Reply(body))
    with pytest.raises(EmbedderError, match=r"answered .*choose another search\.embedding_model"):
        endpoint(server.base).query("a")


@pytest.mark.parametrize(
    "body", [{}, {"embeddings": None}, {"embeddings": [{}]}, {"embeddings": [{"values": 1}]}]
)
def test_a_strange_answer_of_gemini_is_told_too(serve: Serve, body: object) -> None:
    server = serve(lambda request: Reply(body))
    with pytest.raises(EmbedderError, match="answered"):
        endpoint(server.base, GEMINI).query("a")


def test_too_few_vectors_are_told(serve: Serve) -> None:
    server = serve(lambda request: Reply(_one([1, 2, 3])))
    with pytest.raises(EmbedderError, match="1 vectors for 2 texts"):
        endpoint(server.base).documents(["a", "b"])


def test_a_vector_of_zeros_is_none(serve: Serve) -> None:
    assert endpoint(serve(lambda request: Reply(_one([0, 0, 0]))).base).query("a") is None


def test_the_name_tells_model_place_and_length_apart() -> None:
    def name(base: str = "http://127.0.0.1:1/v1", model: str = "m", dimensions: int = 3) -> str:
        return endpoint(base, model=model, dimensions=dimensions).name

    others = [
        name("http://127.0.0.1:2/v1"),
        name("http://127.0.0.1:1/v2"),
        name(model="n"),
        name(dimensions=4),
    ]
    assert len({name(), *others}) == 5
    assert name() == name("http://127.0.0.1:1/v1/")


def test_a_query_has_no_more_time_than_its_caller(serve: Serve) -> None:
    calls: list[float] = []

    class Watched(EmbeddingPost):
        def __call__(
            self,
            path: str,
            payload: object,
            timeout: float,
            patience: float,
            *,
            again: bool = True,
            each: AttemptRunner = run_attempt,
        ) -> Any:
            calls.append(patience)
            return _one([1, 2, 3])

    embedder = EmbeddingEndpoint("t", "m", 3, OPENAI, Watched("http://127.0.0.1:1/v1"), query_timeout=2.0)
    for seconds in (0.5, 60.0, None):
        embedder.query("a", None, seconds)
    assert calls == [0.5, 2.0, 2.0]
    with pytest.raises(EmbedderError, match="no time left"):
        embedder.query("a", None, -1.0)
    assert len(calls) == 3


def test_a_query_has_less_time_than_documents(serve: Serve) -> None:
    calls: list[tuple[float, float]] = []

    class Watched(EmbeddingPost):
        def __call__(
            self,
            path: str,
            payload: object,
            timeout: float,
            patience: float,
            *,
            again: bool = True,
            each: AttemptRunner = run_attempt,
        ) -> Any:
            calls.append((timeout, patience))
            return _one([1, 2, 3])

    embedder = EmbeddingEndpoint("t", "m", 3, OPENAI, Watched("http://127.0.0.1:1/v1"))
    asks: list[Callable[[], object]] = [lambda: embedder.query("a"), lambda: embedder.documents(["a"])]
    for ask in asks:
        ask()
    assert calls[0] < calls[1]
    assert calls[0][0] == calls[0][1]


@pytest.mark.parametrize(
    ("base", "key"), [("nowhere", ""), ("http://me:pw@host/v1", ""), ("http://host/v1", "é")]
)
def test_an_address_or_key_that_cannot_be_used_is_told(base: str, key: str) -> None:
    with pytest.raises(EmbedderError, match="the embedding model"):
        EmbeddingPost(base, key=key)


def test_a_server_that_cannot_answer_is_told(serve: Serve) -> None:
    server = serve(lambda request: Reply(b"", 400))
    with pytest.raises(EmbedderError, match=r"status 400\. Correct search\.embedding_model\."):
        EmbeddingPost(server.base)("/e", {}, 5, 0.1)

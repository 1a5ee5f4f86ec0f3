"""Loads a local folder in the model2vec format: a table and a tokenizer.json (config.json is ignored).

The table may be mapped (many tokens share a row) and weighted, as after `model2vec` reduced it.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.embeddings.packages import import_optional
from tacit.embeddings.protocol import EmbedderError, replace_surrogates
from tacit.embeddings.static_table import StaticEmbedder
from tacit.embeddings.weights import Weights, fingerprint

_POOLING_VERSION = "p1"


def open_model2vec(folder: Path) -> StaticEmbedder:
    numbers, words = folder / "model.safetensors", folder / "tokenizer.json"
    weights = Weights(numbers)
    mapping = [int(row) for row in weights.numbers("mapping")] if "mapping" in weights else []
    table = weights.table("embeddings", mapping)
    tokenizer, unknown = _load_tokenizer(words)
    if max(tokenizer.get_vocab().values(), default=0) >= table.rows:
        raise EmbedderError(f"{words} and {numbers} do not belong together. Install the model again.")
    shares = weights.numbers("weights") if "weights" in weights else ()
    if shares and len(shares) != table.rows:
        raise EmbedderError(f"{numbers} has not one weight for each token. Install the model again.")
    name = f"{folder.name}/{fingerprint(numbers, words)}/{table.columns}/model2vec-{_POOLING_VERSION}"
    return StaticEmbedder(
        name, table, _make_tokenizer(tokenizer, unknown), shares.__getitem__ if shares else lambda token: 1.0
    )


def _load_tokenizer(file: Path) -> tuple[Any, int | None]:
    """The tokenizer, and its token for unknown words."""
    load = import_optional("tokenizers", "onnx").Tokenizer
    try:
        text = file.read_text("utf-8")
        tokenizer = load.from_str(text)
        model = json.loads(text)["model"]
    except OSError as error:
        raise EmbedderError(f"{file} cannot be read: {error.strerror}. Install the model again.") from None
    except Exception as error:  # noqa: BLE001  # the package raises no narrower kind
        raise EmbedderError(f"{file} is no tokenizer ({error}). Install the model again.") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    unknown = model.get("unk_token")
    return tokenizer, model.get("unk_id") if unknown is None else tokenizer.token_to_id(unknown)


def _make_tokenizer(tokenizer: Any, unknown: int | None) -> Callable[[str], array[int]]:
    def ids(text: str) -> array[int]:
        tokens = tokenizer.encode(replace_surrogates(text), add_special_tokens=False).ids
        return array("I", [token for token in tokens if token != unknown])

    return ids

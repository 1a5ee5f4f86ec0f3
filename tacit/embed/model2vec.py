"""Any local folder in the form of model2vec: a table, a tokenizer.json, and a config.json that we leave.

The table may be mapped (many tokens share a row) and weighted, as after `model2vec` made it smaller.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.embed.packages import optional
from tacit.embed.protocol import EmbedderError, whole
from tacit.embed.static import Static
from tacit.embed.weights import Weights, fingerprint

_POOLING = "p1"


def model2vec(folder: Path) -> Static:
    numbers, words = folder / "model.safetensors", folder / "tokenizer.json"
    weights = Weights(numbers)
    mapping = [int(row) for row in weights.numbers("mapping")] if "mapping" in weights else []
    table = weights.table("embeddings", mapping)
    tokenizer, unknown = _tokenizer(words)
    if max(tokenizer.get_vocab().values(), default=0) >= table.rows:
        raise EmbedderError(f"{words} and {numbers} do not belong together. Install the model again.")
    shares = weights.numbers("weights") if "weights" in weights else ()
    if shares and len(shares) != table.rows:
        raise EmbedderError(f"{numbers} has not one weight for each token. Install the model again.")
    name = f"{folder.name}/{fingerprint(numbers, words)}/{table.columns}/model2vec-{_POOLING}"
    return Static(name, table, _ids(tokenizer, unknown), shares.__getitem__ if shares else lambda token: 1.0)


def _tokenizer(file: Path) -> tuple[Any, int | None]:
    """The tokenizer, and its token for what it does not know."""
    load = optional("tokenizers", "onnx").Tokenizer
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


def _ids(tokenizer: Any, unknown: int | None) -> Callable[[str], array[int]]:
    def ids(text: str) -> array[int]:
        found = tokenizer.encode(whole(text), add_special_tokens=False).ids
        return array("I", [token for token in found if token != unknown])

    return ids

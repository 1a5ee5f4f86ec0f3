from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

from tacit.embeddings import weights
from tacit.embeddings.protocol import EmbedderError, scale_to_bytes
from tacit.embeddings.static_table import open_model2vec
from tests.embeddings.tiny import DIMENSIONS, ROWS, WORDS, write_model2vec, write_safetensors


def mean(*words: str) -> bytes | None:
    rows = np.array([ROWS[WORDS.index(word)] for word in words])
    return scale_to_bytes([float(number) for number in rows.mean(axis=0)])


def test_a_vector_is_the_mean_of_the_known_words(model2vec_folder: Path) -> None:
    embedder = open_model2vec(model2vec_folder)
    assert embedder.dimensions == DIMENSIONS
    assert embedder.documents(["The red car", "red zebra", "zebra", ""]) == [
        mean("the", "red", "car"),
        mean("red"),
        None,
        None,
    ]
    assert embedder.query("The red car") == mean("the", "red", "car")


def test_a_folder_made_smaller_by_model2vec_is_read(model2vec_folder: Path, tmp_path: Path) -> None:
    """Then tokens share rows, and each has a weight."""
    folder = tmp_path / "small"
    write_model2vec(folder)
    mapping = [token % 2 for token in range(len(WORDS))]
    shares = [1.0 + token for token in range(len(WORDS))]
    write_safetensors(
        folder / "model.safetensors",
        {"embeddings": ("F16", ROWS[:2]), "mapping": ("I64", mapping), "weights": ("F32", shares)},
    )
    tokens = [WORDS.index("red"), WORDS.index("boat")]
    expected = np.array([np.array(ROWS[mapping[token]]) * shares[token] for token in tokens]).sum(axis=0)
    assert open_model2vec(folder).query("red boat") == scale_to_bytes([float(number) for number in expected])
    assert open_model2vec(folder).name != open_model2vec(model2vec_folder).name


def test_damaged_folders_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    write_model2vec(folder)
    table, words = folder / "model.safetensors", folder / "tokenizer.json"
    good = {"embeddings": ("F32", ROWS)}
    write_safetensors(table, {"embeddings": ("F32", ROWS[:-1])})
    with pytest.raises(EmbedderError, match="do not belong together"):
        open_model2vec(folder)
    write_safetensors(table, {**good, "weights": ("F32", [1.0, 2.0])})
    with pytest.raises(EmbedderError, match="one weight for each token"):
        open_model2vec(folder)
    write_safetensors(table, {"other": ("F32", ROWS)})
    with pytest.raises(EmbedderError, match="no usable tensor 'embeddings'"):
        open_model2vec(folder)
    write_safetensors(table, good)
    words.write_text("{}")
    with pytest.raises(EmbedderError, match="is no tokenizer"):
        open_model2vec(folder)
    words.unlink()
    with pytest.raises(EmbedderError, match="cannot be read: No such file"):
        open_model2vec(folder)


def test_a_tokenizer_that_knows_no_unknown_word_is_fine(tmp_path: Path) -> None:
    folder = tmp_path / "bytes"
    write_model2vec(folder)
    words = folder / "tokenizer.json"
    content = json.loads(words.read_text())
    content["model"] = {
        "type": "BPE", "vocab": {word: token for token, word in enumerate(WORDS)}, "merges": [],
        "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
        "fuse_unk": False, "byte_fallback": False, "ignore_merges": True,
    }  # fmt: skip
    words.write_text(json.dumps(content))
    assert open_model2vec(folder).query("red") == mean("red")


def test_without_the_tokenizers_package_it_says_what_to_install(
    model2vec_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> object:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(weights, "import_module", missing)
    with pytest.raises(EmbedderError, match=r"tokenizers, which is not installed .*tacit\[onnx\]"):
        open_model2vec(model2vec_folder)
    assert importlib.import_module("json") is json

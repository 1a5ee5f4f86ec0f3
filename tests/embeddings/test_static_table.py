from __future__ import annotations

import random
import subprocess
import sys
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.embeddings import static_table
from tacit.embeddings.protocol import EmbedderError
from tacit.embeddings.static_table import ExactStaticEmbedder, StaticEmbedder, open_bundled, token_weight
from tacit.embeddings.weights import Weights
from tests.embeddings.tiny import ROWS, write_safetensors
from tests.hostile import hostile

EMBEDDER = open_bundled()
TEXTS = [
    "When does Anna move to Berlin?",
    "def add(a: int, b: int) -> int:\n    return a + b",
    "日本語のテキスト、改行\nと 🔥🔥",
    "x" * 5000,
    " ".join(str(number) for number in range(3000)),
]


def cosine(left: bytes | None, right: bytes | None) -> float:
    a, b = (np.frombuffer(vector or b"", np.int8).astype(np.float64) for vector in (left, right))
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def odd_weights() -> StaticEmbedder:
    """The bundled table, with weights and a mean that are anything but round."""
    dice = random.Random(3)
    weights = [static_table._round_to_twelve_bits(dice.uniform(0.0001, 3.0)) for _ in range(32_000)]
    away = [dice.uniform(-0.5, 0.5) for _ in range(256)]
    return ExactStaticEmbedder("odd", EMBEDDER._table, EMBEDDER._ids, weights.__getitem__, away)


ODD = odd_weights()


@pytest.mark.parametrize("embedder", [EMBEDDER, ODD], ids=["bundled", "odd weights"])
@pytest.mark.parametrize("text", TEXTS)
def test_a_query_and_a_document_of_one_text_are_the_same_bytes(embedder: StaticEmbedder, text: str) -> None:
    assert embedder.query(text) == embedder.documents([text])[0]


@given(st.text(st.characters()) | hostile)
def test_this_holds_for_any_text_and_any_weights(text: str) -> None:
    for embedder in (EMBEDDER, ODD):
        assert embedder.query(text) == embedder.documents([text])[0]


@given(st.lists(hostile, max_size=5))
def test_a_vector_does_not_depend_on_the_rest_of_the_batch(texts: list[str]) -> None:
    alone = [ODD.documents([text])[0] for text in texts]
    assert ODD.documents(texts) == alone
    assert ODD.documents([*texts, *TEXTS])[: len(texts)] == alone


def test_a_text_of_a_hundred_kilobytes_has_a_vector_like_any_other() -> None:
    text = "The quick brown fox. " * 5000
    assert cosine(EMBEDDER.query(text), EMBEDDER.query("The quick brown fox.")) > 0.999


def test_vectors_of_many_blocks_come_in_order() -> None:
    texts = [f"number {number}" for number in range(600)] + [""]
    vectors = EMBEDDER.documents(texts)
    assert vectors[:5] == [EMBEDDER.query(text) for text in texts[:5]]
    assert vectors[598:] == [EMBEDDER.query("number 598"), EMBEDDER.query("number 599"), None]


@pytest.mark.parametrize("blank", ["", " \n\t", "\u2581", "\u3000"])
def test_a_text_without_words_has_no_vector(blank: str) -> None:
    assert EMBEDDER.query(blank) is None
    assert EMBEDDER.documents([blank, "word"])[0] is None
    assert EMBEDDER.documents([]) == []


def test_the_vector_is_the_mean_of_the_rows_but_for_rounding() -> None:
    matrix = EMBEDDER._table.matrix().astype(np.float64)
    for text in TEXTS:
        mean = matrix[np.array(EMBEDDER._ids(text))].mean(axis=0)
        found = np.frombuffer(EMBEDDER.query(text) or b"", np.int8).astype(np.float64)
        assert mean @ found / np.sqrt((mean @ mean) * (found @ found)) > 0.999


def test_texts_about_the_same_are_nearer_than_others() -> None:
    query = EMBEDDER.query("When does Anna move to Berlin?")
    near, far = EMBEDDER.documents(["Anna told me she moves to Berlin in March.", "Hold the reset button."])
    assert cosine(query, near) > cosine(query, far) + 0.3


def test_the_vectors_change_only_together_with_the_name() -> None:
    """If this fails, raise _POOLING_VERSION and write both new values here: indexes have to be rebuilt."""
    vectors = b"".join(vector or b"" for vector in EMBEDDER.documents(TEXTS))
    assert EMBEDDER.name == "wordllama/218196a0c4ad/256/p1"
    assert sha256(vectors).hexdigest()[:12] == "91db5951fd36"


def test_words_of_a_query_count_as_much_as_they_are_said_to() -> None:
    question = "what about Berlin?"
    even = EMBEDDER.query(question, lambda word: 1.0)
    tilted = EMBEDDER.query(question, lambda word: 1.0 if word == "Berlin" else 0.05)
    city = EMBEDDER.query("Berlin")
    assert cosine(tilted, city) > 0.98 > cosine(even, city)
    assert EMBEDDER.query(question, lambda word: 0.0) is None


def test_every_weight_is_above_zero() -> None:
    assert all(token_weight(token, "a") > 0.0 for token in range(0, 32_000, 100))


def test_a_query_imports_neither_numpy_nor_the_package_of_the_weights() -> None:
    code = (
        "import sys; from tacit.embeddings.static_table import open_bundled;"
        "open_bundled().query('hello world');"
        "print({'numpy', 'wordllama', 'tokenizers', 'pydantic', 'requests'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_threads_that_come_first_together_get_the_same_vectors() -> None:
    fresh = open_bundled()
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: fresh.documents(TEXTS), range(8)))
    assert found == [EMBEDDER.documents(TEXTS)] * 8


def test_without_the_package_of_the_weights_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_table, "package_folder", lambda name: None)
    with pytest.raises(EmbedderError, match="pip install wordllama"):
        open_bundled()


def test_files_that_do_not_belong_together_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "tokenizers").mkdir()
    table = tmp_path / "weights" / "l2_supercat_256.safetensors"
    write_safetensors(table, {"embedding.weight": ("F16", ROWS)})
    (tmp_path / "tokenizers" / "l2_supercat_tokenizer_config.json").write_text('{"vocab": {"a": 0}}')
    monkeypatch.setattr(static_table, "package_folder", lambda name: tmp_path)
    with pytest.raises(EmbedderError, match="do not belong together"):
        open_bundled()


def test_numbers_that_are_not_finite_are_told_in_both_ways(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    write_safetensors(file, {"t": ("F16", [[1.0, float("nan")], [1.0, 2.0]])})
    table = Weights(file).table("t")
    broken = ExactStaticEmbedder("broken", table, lambda text: array("H", [0] if text else []))
    asks: list[Callable[[], object]] = [lambda: broken.query("a"), lambda: broken.documents(["a"])]
    for ask in asks:
        with pytest.raises(EmbedderError, match="not finite"):
            ask()

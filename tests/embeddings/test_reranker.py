from __future__ import annotations

from pathlib import Path

import pytest

from tacit.embeddings.protocol import EmbedderError
from tacit.embeddings.reranker import CrossEncoder, open_packaged_reranker
from tests.embeddings.tiny import ROWS, WORDS, write_onnx, write_reranker


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

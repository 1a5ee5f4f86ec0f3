"""What holds for every embedder, whichever it is."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.embeddings.protocol import Embedder
from tacit.embeddings.registry import choose_embedder
from tests.embeddings.conftest import Reply, Request, Serve
from tests.embeddings.tiny import DIMENSIONS
from tests.hostile import hostile

Make = Callable[[], Embedder]


def _hashed(request: Request) -> Reply:
    """A model whose vectors are as good as random, and the same each time."""
    vectors = [list(sha256(text.encode()).digest()[:8]) for text in request.json["input"]]
    return Reply({"data": [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]})


@pytest.fixture(params=["bundled", "model2vec", "onnx", "endpoint"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    if request.param == "endpoint":
        serve: Serve = request.getfixturevalue("serve")
        found = choose_embedder(f"{serve(_hashed).base}#m", 8, {})
    elif request.param == "bundled":
        found = choose_embedder("bundled", 256, {})
    else:
        folder: Path = request.getfixturevalue(f"{request.param}_folder")
        found = choose_embedder(str(folder), DIMENSIONS, {})
    assert found is not None
    return found


# Each embedder is made once and asked often: it must not change by being asked.
asked_often = settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@asked_often
@given(text=st.text(st.characters()) | hostile)
def test_any_string_gives_a_vector_of_the_right_length_or_none(embedder: Embedder, text: str) -> None:
    weighed = embedder.query(text, lambda word: 1.0 / len(word), 60.0)
    for vector in (embedder.query(text), weighed, *embedder.documents([text])):
        assert vector is None or len(vector) == embedder.dimensions
        assert vector is None or max(vector[at] in (127, 129) for at in range(len(vector)))


@asked_often
@given(texts=st.lists(hostile, max_size=4))
def test_a_document_has_the_same_vector_in_any_company(embedder: Embedder, texts: list[str]) -> None:
    assert embedder.documents(texts) == [embedder.documents([text])[0] for text in texts]


def test_words_have_a_vector_and_their_absence_has_none(embedder: Embedder) -> None:
    vectors = embedder.documents(["", "red car", " \n ", "blue boat"])
    assert [vector is None for vector in vectors] == [True, False, True, False]
    assert embedder.query("red car") is not None
    assert embedder.query("") is None
    assert embedder.documents([]) == []


@pytest.mark.parametrize("text", ["x" * 100_000, "red car " * 12_500, "🔥" * 25_000, "\0" * 100_000])
def test_a_hundred_kilobytes_are_no_trouble(embedder: Embedder, text: str) -> None:
    vector = embedder.query(text)
    assert vector is None or len(vector) == embedder.dimensions


def test_the_name_is_one_line_and_stays(embedder: Embedder) -> None:
    name = embedder.name
    embedder.query("red car")
    assert embedder.name == name
    assert name.isprintable()
    assert str(embedder.dimensions) in name

"""The address of an embedding model: its errors are those that search goes on without."""

from __future__ import annotations

import pytest

from tacit.embeddings.protocol import EmbedderError
from tacit.embeddings.request import EmbeddingPost
from tests.embeddings.conftest import Reply, Serve


@pytest.mark.parametrize(
    ("base", "key"), [("nowhere", ""), ("http://me:pw@host/v1", ""), ("http://host/v1", "é")]
)
def test_an_address_or_key_that_cannot_be_used_is_told(base: str, key: str) -> None:
    with pytest.raises(EmbedderError, match="the embedding model"):
        EmbeddingPost(base, key=key)


def test_a_server_that_cannot_answer_is_told(serve: Serve) -> None:
    server = serve(lambda request: Reply(b"", 400))
    with pytest.raises(EmbedderError, match=r"status 400\. Correct search\.embedding_model\."):
        EmbeddingPost(server.base)("/e", {}, 5, 0.1)

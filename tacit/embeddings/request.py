"""HTTP requests to an embedding model. Failures become EmbedderError."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tacit import json_http
from tacit.embeddings.protocol import EmbedderError

_PURPOSE = json_http.Purpose("embedding model", "search.embedding_model")


class EmbeddingPost(json_http.JsonPoster):
    def __init__(
        self,
        base: str,
        *,
        key: str = "",
        headers: Callable[[str], Mapping[str, str]] = json_http.bearer_header,
    ) -> None:
        try:
            super().__init__(base, _PURPOSE, key=key, headers=headers)
        except json_http.PostError as error:
            raise EmbedderError(str(error)) from None

    def __call__(
        self,
        path: str,
        payload: object,
        timeout: float,
        patience: float,
        *,
        again: bool = True,
        each: json_http.AttemptRunner = json_http.run_attempt,
    ) -> Any:
        try:
            return super().__call__(path, payload, timeout, patience, again=again, each=each)
        except json_http.PostError as error:
            raise EmbedderError(str(error)) from None

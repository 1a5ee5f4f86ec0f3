"""The address of an embedding model. What goes wrong there is an EmbedderError."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tacit.embed.protocol import EmbedderError
from tacit.net import post

_PURPOSE = post.Purpose("embedding model", "search.embedding_model")


class Post(post.Post):
    def __init__(
        self, base: str, *, key: str = "", headers: Callable[[str], Mapping[str, str]] = post.bearer
    ) -> None:
        try:
            super().__init__(base, _PURPOSE, key=key, headers=headers)
        except post.PostError as error:
            raise EmbedderError(str(error)) from None

    def __call__(
        self,
        path: str,
        payload: object,
        timeout: float,
        patience: float,
        *,
        again: bool = True,
        each: post.Each = post.at_once,
    ) -> Any:
        try:
            return super().__call__(path, payload, timeout, patience, again=again, each=each)
        except post.PostError as error:
            raise EmbedderError(str(error)) from None

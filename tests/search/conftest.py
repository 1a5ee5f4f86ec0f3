"""A server on the loopback for embedders that are reached by network."""

from __future__ import annotations

from tests.embeddings.conftest import serve

__all__ = ["serve"]

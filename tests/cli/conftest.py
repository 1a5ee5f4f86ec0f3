"""A server on the loopback."""

from __future__ import annotations

from tests.embeddings.conftest import serve

__all__ = ["serve"]

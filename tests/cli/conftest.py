"""A server on the loopback."""

from __future__ import annotations

from tests.embed.conftest import serve

__all__ = ["serve"]

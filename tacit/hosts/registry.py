"""Which hosts there are. A new host is a folder here and its name in `HOSTS`."""

from __future__ import annotations

from importlib import import_module

from tacit.errors import UsageError

TYPE_CHECKING = False  # as in typing, which would cost every command several milliseconds
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from tacit.hosts.base import Host, Translation

HOSTS = ["openclaw", "hooks"]


def load_hosts() -> list[Host]:
    return [import_module(f"tacit.hosts.{name}.host").HOST for name in HOSTS]


def find_translation(body: Mapping[str, Any]) -> Translation | None:
    """The translation of the host that a request names. None: it names none, and already uses tacit's own
    fields."""
    name = body.get("host")
    if name is None:
        return None
    host = next((host for host in load_hosts() if host.name == name), None)
    if host is None:
        raise UsageError(f"'host' must be one of {', '.join(HOSTS)}.")
    return host.load_translation()

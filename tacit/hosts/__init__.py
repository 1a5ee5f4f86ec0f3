"""Hosts: what tacit knows of each program that runs agents.

A new host is a folder or module here and one line in `HOSTS`; `base.py` says what it has to offer. A host's
plugin forwards its records unchanged, and the host's module translates them into operations. Nothing
outside this package names a host. Start reading at `base.py`, then at `hooks.py`, the smaller of the two
hosts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tacit.errors import UsageError
from tacit.hosts import hooks
from tacit.hosts.base import Host
from tacit.hosts.openclaw import events

HOSTS: Mapping[str, Host] = {"openclaw": events, "hooks": hooks}


def host_of(body: Mapping[str, Any]) -> Host | None:
    """The host that a request names; None if it names none and already uses tacit's own
    fields."""
    name = body.get("host")
    if name is None:
        return None
    if name not in HOSTS:
        raise UsageError(f"'host' must be one of {', '.join(HOSTS)}.")
    return HOSTS[str(name)]

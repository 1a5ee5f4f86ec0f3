"""What hosts say, in our words. A host's plugin forwards its records as they are; here they are read.

Each module is one host and pure: a record in, the body of an operation of tacit.api out.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from tacit.errors import UsageError
from tacit.hosts import openclaw

HOSTS: Mapping[str, ModuleType] = {"openclaw": openclaw}


def host_of(body: Mapping[str, Any]) -> ModuleType | None:
    """The module of the host that a request names; None where it names none and speaks our words."""
    name = body.get("host")
    if name is None:
        return None
    if name not in HOSTS:
        raise UsageError(f"'host' must be one of {', '.join(HOSTS)}.")
    return HOSTS[str(name)]

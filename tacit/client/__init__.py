"""The Python client of a home's daemon, and the relay for hooks.

`Client` asks the daemon (`daemon.py`) and falls back to opening the home itself (`local.py`). `relay.py`
forwards one hook event of a host and must start within milliseconds, so it imports almost nothing; `Client`
and `connect` are therefore loaded on first use. What a client sends is what `tacit.operations` lists. Start
reading at `client.py`.
"""

TYPE_CHECKING = False  # as in typing, which would cost every hook several milliseconds
if TYPE_CHECKING:
    from typing import Any

    from tacit.client.client import Client, Kept, connect
    from tacit.client.daemon import NotServed

__all__ = ["Client", "Kept", "NotServed", "connect"]


def __getattr__(name: str) -> "Any":
    if name in __all__:
        from importlib import import_module

        return getattr(import_module("tacit.client.client"), name)
    raise AttributeError(f"module 'tacit.client' has no attribute {name!r}")

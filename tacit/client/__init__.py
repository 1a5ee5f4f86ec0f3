"""The Python client of a home's daemon, the relay for hooks, and the socket code that both use.

`Client` asks the daemon and falls back to opening the home itself; `relay.py` forwards one hook event of a
host and must start within milliseconds, so it imports almost nothing. `Client` and `connect` are therefore
loaded on first use. What a client sends is exactly what `tacit.operations` lists. Start reading at
`client.py`.
"""

TYPE_CHECKING = False  # as in typing, which would cost every hook several milliseconds
if TYPE_CHECKING:
    from typing import Any

    from tacit.client.client import Client, Kept, NotServed, connect

__all__ = ["Client", "Kept", "NotServed", "connect"]


def __getattr__(name: str) -> "Any":
    if name in __all__:
        from tacit.client import client

        return getattr(client, name)
    raise AttributeError(f"module 'tacit.client' has no attribute {name!r}")

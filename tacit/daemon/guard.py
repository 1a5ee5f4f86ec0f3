"""Who may ask. A unix socket is guarded by its mode and by the user at the other end; a port on the loopback
can be reached by every user of the machine and by every page in a browser, so there

- the name that was asked for must be the machine itself (a name that an attacker made point here is not),
- nothing that a page of another origin sends is answered, nor is its question whether it might send it,
- the caller must know the token.

The same is refused to pages on the unix socket: somebody may have put a port in front of it.
"""

from __future__ import annotations

from hmac import compare_digest
from typing import NamedTuple

from tacit.daemon.http import JSON, Head, Reply, problem

_OWN_SITES = ("same-origin", "none")


class Door(NamedTuple):
    """The TCP side of a server."""

    port: int
    token: str

    @property
    def hosts(self) -> tuple[str, ...]:
        return (f"127.0.0.1:{self.port}", f"localhost:{self.port}", f"[::1]:{self.port}")


def refuse(head: Head, door: Door | None) -> Reply | None:
    """Why this caller is not answered; None: it is."""
    if not head.tcp:
        return _page(head, "")
    if door is None:
        return problem(403, "forbidden", "There is no token for this port.", close=True)
    hosts = head.values(b"host")
    host = hosts[0].lower() if len(hosts) == 1 else ""
    if host not in door.hosts:
        return problem(421, "host", f"Ask for {door.hosts[0]}, not for another name.", close=True)
    return _page(head, f"http://{host}") or _unknown(head, door.token) or _form(head)


def _page(head: Head, own: str) -> Reply | None:
    """`own`: the origin of pages that are ours; there are none on a unix socket."""
    origins, sites = head.values(b"origin"), head.values(b"sec-fetch-site")
    if any(origin.lower() != own or not own for origin in origins) or len(origins) > 1:
        return problem(403, "origin", "Pages of another origin are not answered.", close=True)
    if any(site.lower() not in _OWN_SITES for site in sites):
        return problem(403, "origin", "Pages of another site are not answered.", close=True)
    if head.method == "OPTIONS" and head.values(b"access-control-request-method"):
        return problem(403, "origin", "No other origin is let in.", close=True)
    return None


def _unknown(head: Head, token: str) -> Reply | None:
    given = head.values(b"authorization")
    scheme, _, said = (given[0] if len(given) == 1 else "").partition(" ")
    known = compare_digest(said.strip().encode("latin-1"), token.encode("ascii"))
    if scheme.lower() == "bearer" and known and token:
        return None
    return problem(
        401,
        "token",
        "Send the token that is in .tacit/daemon.token, as: Authorization: Bearer TOKEN",
        ("WWW-Authenticate", "Bearer"),
        close=True,
    )


def _form(head: Head) -> Reply | None:
    """A page can send a form to any address without being asked about its origin, but not JSON."""
    kinds = head.values(b"content-type")
    if head.method != "POST" or [kind.split(";")[0].strip().lower() for kind in kinds] == [JSON]:
        return None
    return problem(415, "content_type", f"Send JSON, with: Content-Type: {JSON}", close=True)

"""Access checks. A unix socket is guarded by its mode and by the user at the other end. Every user of the
machine and every page in a browser can reach a loopback port, so there

- the Host header must name this machine (against DNS rebinding),
- requests and preflight requests of pages from another origin are refused,
- the caller must send the token.

Pages are refused on the unix socket too: another program may forward a port to it.
"""

from __future__ import annotations

from hmac import compare_digest
from typing import NamedTuple

from tacit.server.http import JSON_TYPE, Reply, RequestHead, error_reply

_OWN_SITES = ("same-origin", "none")


class TcpAccess(NamedTuple):
    """The TCP side of a server."""

    port: int
    token: str

    @property
    def hosts(self) -> tuple[str, ...]:
        return (f"127.0.0.1:{self.port}", f"localhost:{self.port}", f"[::1]:{self.port}")


def refuse(head: RequestHead, door: TcpAccess | None) -> Reply | None:
    """The reply that refuses this caller; None: it is let in."""
    if not head.tcp:
        return _refuse_page(head, "")
    if door is None:
        return error_reply(403, "forbidden", "There is no token for this port.", close=True)
    hosts = head.values(b"host")
    host = hosts[0].lower() if len(hosts) == 1 else ""
    if host not in door.hosts:
        return error_reply(421, "host", f"Ask for {door.hosts[0]}, not for another name.", close=True)
    return _refuse_page(head, f"http://{host}") or _refuse_unknown(head, door.token) or _refuse_form(head)


def _refuse_page(head: RequestHead, own_origin: str) -> Reply | None:
    """`own_origin`: the origin of our own pages; a unix socket has none."""
    origins, sites = head.values(b"origin"), head.values(b"sec-fetch-site")
    if any(origin.lower() != own_origin or not own_origin for origin in origins) or len(origins) > 1:
        return error_reply(403, "origin", "Pages of another origin are not answered.", close=True)
    if any(site.lower() not in _OWN_SITES for site in sites):
        return error_reply(403, "origin", "Pages of another site are not answered.", close=True)
    if head.method == "OPTIONS" and head.values(b"access-control-request-method"):
        return error_reply(403, "origin", "No other origin is let in.", close=True)
    return None


def _refuse_unknown(head: RequestHead, token: str) -> Reply | None:
    headers = head.values(b"authorization")
    scheme, _, credential = (headers[0] if len(headers) == 1 else "").partition(" ")
    is_known = compare_digest(credential.strip().encode("latin-1"), token.encode("ascii"))
    if scheme.lower() == "bearer" and is_known and token:
        return None
    return error_reply(
        401,
        "token",
        "Send the token that is in .tacit/daemon.token, as: Authorization: Bearer TOKEN",
        ("WWW-Authenticate", "Bearer"),
        close=True,
    )


def _refuse_form(head: RequestHead) -> Reply | None:
    """A page can send a form to any address without a preflight request, but not JSON."""
    kinds = head.values(b"content-type")
    if head.method != "POST" or [kind.split(";")[0].strip().lower() for kind in kinds] == [JSON_TYPE]:
        return None
    return error_reply(415, "content_type", f"Send JSON, with: Content-Type: {JSON_TYPE}", close=True)

"""Requests: who may send them, and parsing of the address and of the JSON object in the body.

A unix socket is guarded by its mode and by the user at the other end. Every user of the machine and every
page in a browser can reach a loopback port, so there

- the Host header must name this machine (against DNS rebinding),
- requests and preflight requests of pages from another origin are refused,
- the caller must send the token.

Pages are refused on the unix socket too: another program may forward a port to it.

UsageError says what is wrong with a request without quoting it.
"""

from __future__ import annotations

import json
from hmac import compare_digest
from math import isfinite
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from tacit.errors import UsageError
from tacit.server.http import JSON_TYPE, Reply, RequestHead, error_reply

_OWN_SITES = ("same-origin", "none")
_MAX_DEPTH = 64
_MAX_DIGITS = 19
_MAX_FIELDS = 50


# ---------------------------------------------------------------- access


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


# ---------------------------------------------------------------- parsing


def parse_object(data: bytes) -> dict[str, Any]:
    """Parse a body. Half a surrogate pair is accepted: hosts that cut a text in the middle of a character
    send it, and a turn must not fail because of that."""
    if not data.strip():
        raise UsageError('The body is empty. Send a JSON object, at least "{}".')
    try:
        value = json.loads(
            data.decode("utf-8-sig"),
            parse_constant=_refuse_constant,
            parse_float=_parse_float,
            parse_int=_parse_int,
        )
    except RecursionError:
        raise _too_deep() from None
    except UnicodeDecodeError as error:
        raise UsageError(f"The body is not UTF-8 (at byte {error.start}).") from None
    except json.JSONDecodeError as error:
        raise UsageError(
            f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        ) from None
    if not isinstance(value, dict):
        raise UsageError("The body must be a JSON object, such as {}.")
    if data.count(b"[") + data.count(b"{") > _MAX_DEPTH:
        _require_shallow(value)
    return value


def _refuse_constant(_name: str) -> float:
    raise UsageError("NaN and Infinity are not JSON. Leave such a number out.")


def _parse_float(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise UsageError("There is a number in the body that is too large. Send a smaller one.")
    return number


def _parse_int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise UsageError("There is a number in the body that is too large. Send a smaller one, or text.")
    return int(text)


def _require_shallow(value: object) -> None:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)  # type: ignore[attr-defined]
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> UsageError:
    return UsageError(f"The body is nested too deeply: more than {_MAX_DEPTH} levels.")


def split_target(target: str) -> tuple[str, str]:
    """The path and the query of a request target, still encoded."""
    if not target.startswith("/"):
        raise UsageError("Ask for a path that begins with a slash.")
    path, _, query = target.partition("#")[0].partition("?")
    return path, query


def parse_query(query: str) -> dict[str, Any]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict")
    except ValueError:
        raise UsageError("What stands after the ? cannot be read. Send name=value, in UTF-8.") from None
    return dict(pairs)


def decode_segment(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise UsageError("The address is not UTF-8.") from None

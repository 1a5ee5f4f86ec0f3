"""JSON sent to one address, patiently with a server that is busy and not at all with one that is dead.

Tried again are only answers that may be better next time: 429, 5xx and a broken connection. A wait that
the server asks for is kept to, unless the caller's time would be over before it.

After three calls that failed, all calls fail at once for half a minute: who waits for a turn must not wait
for a dead server each time. (`breaks=False` leaves that to a caller who keeps count beyond this process.) No
error ever holds the key.

What the server is for, and which setting named it, is told by whoever posts: the errors speak of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import urljoin, urlsplit

from tacit.errors import TacitError

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

_LARGEST_ANSWER = 64 * 1024 * 1024
_PIECE = 64 * 1024
_REDIRECTS = (301, 302, 307, 308)
_MOST_REDIRECTS = 3
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 16.0
_FAILURES, _PAUSE = 3, 30.0


class PostError(TacitError):
    """A server cannot be asked, or did not give an answer that can be used.

    `again`: it may next time, after `wait` seconds if it said so. `spent`: it has the question and may have
    worked on it."""

    def __init__(
        self, message: str, *, again: bool = False, wait: float | None = None, spent: bool = False
    ) -> None:
        super().__init__(message)
        self.again, self.wait, self.spent = again, wait, spent


class Purpose(NamedTuple):
    """What stands behind an address, and the setting that says which."""

    model: str
    setting: str


class Address(NamedTuple):
    scheme: str
    host: str
    port: int
    path: str

    @property
    def place(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def address(url: str, model: str) -> Address:
    """The parts of the address of a server, which has to be a plain one."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise PostError(_no_address(url, model)) from None
    if parts.username is not None or parts.password is not None:
        raise PostError(f"The address of the {model} holds a name or a key. Take it out.")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise PostError(_no_address(url, model))
    if not url.isascii() or not url.isprintable() or " " in url:
        raise PostError(_no_address(url, model))
    return Address(parts.scheme, parts.hostname, port, parts.path.rstrip("/"))


def _no_address(url: str, model: str) -> str:
    return f"{url[:80]!r} is no address for the {model}. Write it like http://localhost:11434/v1#MODEL."


class Breaker:
    """Counts the calls that failed one after the other."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._lock = clock, Lock()
        self._failures, self._until = 0, 0.0

    def wait(self) -> float:
        """Seconds until a call may be made. When they are over one more failure is enough."""
        with self._lock:
            return max(0.0, self._until - self._clock()) if self._failures >= _FAILURES else 0.0

    def tell(self, worked: bool) -> None:
        with self._lock:
            self._failures = 0 if worked else self._failures + 1
            self._until = self._clock() + _PAUSE


def bearer(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"}


Each: TypeAlias = Callable[[Callable[[], Any]], Any]


def at_once(attempt: Callable[[], Any]) -> Any:
    return attempt()


class _Busy(Exception):
    """May be better next time; `wait` is what the server asked for."""

    def __init__(self, what: str, wait: float | None = None, *, spent: bool = False) -> None:
        super().__init__(what)
        self.wait, self.spent = wait, spent


class Post:
    """Posts to paths under one address. The key goes into the header that `headers` names for it."""

    def __init__(
        self,
        base: str,
        purpose: Purpose,
        *,
        key: str = "",
        headers: Callable[[str], Mapping[str, str]] = bearer,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        breaks: bool = True,
    ) -> None:
        self._base, self._key = address(base, purpose.model), key.strip()
        self._purpose = purpose
        if not self._key.isascii() or not self._key.isprintable():  # http.client would show it in its error
            raise PostError(f"The key of the {purpose.model} has characters that no key has. Set it again.")
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Connection": "close",
            "User-Agent": "tacit",
            **(headers(self._key) if self._key else {}),
        }
        self._clock, self._sleep = clock, sleep
        self._breaker = Breaker(clock) if breaks else None

    @property
    def place(self) -> str:
        return self._base.place

    @property
    def base(self) -> str:
        return self._base.place + self._base.path

    def __call__(
        self,
        path: str,
        payload: object,
        timeout: float,
        patience: float,
        *,
        again: bool = True,
        each: Each = at_once,
    ) -> Any:
        """The answer as JSON. `timeout` seconds for each attempt, `patience` for all of them; `again`: more
        than one attempt may be made. `each` makes an attempt, and may count it: what an attempt raises
        says by `spent` whether the server may have worked on it."""
        breaker = self._breaker
        if breaker is not None and (wait := breaker.wait()):
            raise PostError(
                f"{self.place} failed {_FAILURES} times in a row and is left alone for {wait:.0f} s more. "
                f"Start it, or choose another {self._purpose.setting}."
            )
        try:
            answer = self._patiently(path, json.dumps(payload).encode(), timeout, patience, again, each)
        except PostError:
            if breaker is not None:
                breaker.tell(worked=False)
            raise
        if breaker is not None:
            breaker.tell(worked=True)
        return answer

    def _patiently(
        self,
        path: str,
        body: bytes,
        timeout: float,
        patience: float,
        again: bool,
        each: Each,
    ) -> Any:
        end, wait = self._clock() + patience, _FIRST_WAIT
        while True:
            try:
                return each(lambda: self._attempt(path, body, min(end, self._clock() + timeout)))
            except _Busy as busy:
                pause = wait if busy.wait is None else busy.wait
                if not again or self._clock() + pause >= end:
                    raise PostError(
                        f"{self.place} {busy}. Try again later, or choose another {self._purpose.setting}.",
                        again=True,
                        wait=busy.wait,
                        spent=busy.spent,
                    ) from None
            self._sleep(pause)
            wait = min(2 * wait, _LONGEST_WAIT)

    def _attempt(self, path: str, body: bytes, end: float) -> Any:
        import http.client  # 20 ms, for those alone who use an endpoint

        where = self._base.path + path
        try:
            for _ in range(_MOST_REDIRECTS):
                status, headers, answer = self._exchange(where, body, end)
                if status not in _REDIRECTS:
                    return self._judged(status, headers, answer)
                where = self._redirected(where, headers.get("location", ""))
        except TimeoutError:
            raise _Busy("did not answer in time", spent=True) from None
        except (OSError, http.client.HTTPException) as error:
            raise _Busy(f"broke off its answer ({type(error).__name__})", spent=True) from None
        raise PostError(f"{self.place} redirects in a circle. Correct {self._purpose.setting}.")

    def _exchange(self, where: str, body: bytes, end: float) -> tuple[int, dict[str, str], bytes]:
        with closing(self._connection(self._left(end))) as connection:
            self._connect(connection)
            socket = connection.sock  # the connection lets go of it once the headers are read
            socket.settimeout(self._left(end))
            connection.request("POST", where, body, self._headers)
            with connection.getresponse() as response:
                headers = {name.lower(): value for name, value in response.getheaders()}
                return response.status, headers, self._read(response, socket, end)

    def _connect(self, connection: HTTPConnection) -> None:
        """What goes wrong before the question is sent costs nothing."""
        try:
            connection.connect()
        except TimeoutError:
            raise _Busy("did not answer in time") from None
        except OSError as error:
            self._refuse_certificate(error)
            raise _Busy(f"cannot be reached ({error.strerror or type(error).__name__})") from None

    def _read(self, response: HTTPResponse, socket: Any, end: float) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while size <= _LARGEST_ANSWER:
            socket.settimeout(self._left(end))
            piece = response.read1(_PIECE)
            if not piece and response.length:  # bytes that were announced and are still to come
                raise _Busy("broke off its answer", spent=True)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
            size += len(piece)
        raise PostError(
            f"{self.place} sent more than {_LARGEST_ANSWER >> 20} MB, which is no answer to what was asked. "
            f"Correct {self._purpose.setting}.",
            spent=True,
        )

    def _connection(self, timeout: float) -> HTTPConnection:
        from http.client import HTTPConnection, HTTPSConnection

        kind = HTTPSConnection if self._base.scheme == "https" else HTTPConnection  # verifies, by default
        return kind(self._base.host, self._base.port, timeout=timeout)

    def _left(self, end: float) -> float:
        left = end - self._clock()
        if left <= 0.0:
            raise TimeoutError
        return left

    def _redirected(self, where: str, location: str) -> str:
        """The new path, on the same server. Another one would get both the text and the key."""
        try:
            new = urlsplit(urljoin(self.place + where, location))
            port = new.port or (443 if new.scheme == "https" else 80)
        except ValueError:
            new, port = urlsplit(""), 0
        if (new.scheme, new.hostname, port) != self._base[:3] or not location.isascii():
            raise PostError(
                f"{self.place} redirects to {without_key(location, self._key)[:80]!r}, "
                "and text is sent only where you said. "
                f"If that is right, write the new address in {self._purpose.setting}."
            )
        return new.path + (f"?{new.query}" if new.query else "")

    def _judged(self, status: int, headers: Mapping[str, str], answer: bytes) -> Any:
        if status == 200:
            return self._parsed(answer)
        what = f"answered with status {status}{self._said(answer)}"
        if status == 429 or status >= 500:
            raise _Busy(what, retry_after(headers.get("retry-after", "")))
        hint = "Check the key and the name of the model." if status in (401, 403, 404) else ""
        raise PostError(f"{self.place} {what}. {hint or f'Correct {self._purpose.setting}.'}")

    def _parsed(self, answer: bytes) -> Any:
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise PostError(
                f"{self.place} did not answer in JSON, so no {self._purpose.model} is behind this address. "
                f"Correct {self._purpose.setting}.",
                spent=True,
            ) from None

    def _said(self, answer: bytes) -> str:
        plain = without_key(answer[:2000].decode("utf-8", "replace"), self._key)
        return f": {plain}" if plain else ""

    def _refuse_certificate(self, error: OSError) -> None:
        from ssl import SSLCertVerificationError

        if isinstance(error, SSLCertVerificationError):
            raise PostError(
                f"{self.place} shows a certificate that is not trusted ({error.verify_message}). "
                f"Correct {self._purpose.setting}, or name its authority in SSL_CERT_FILE."
            ) from None


def without_key(said: str, key: str) -> str:
    """A server's own words, short, on one line, and without the key should it repeat it."""
    text = said.replace(key, "***") if key else said
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:200]


def retry_after(text: str) -> float | None:
    """Seconds to wait, from seconds or from a date."""
    if text.strip().isdecimal():
        return float(text.strip()[:9])
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None

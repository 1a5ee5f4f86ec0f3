"""An HTTP client that posts JSON to one address, with retries and a circuit breaker.

It retries only what may work next time: 429, 5xx and a broken connection. It waits as long as the server
asks, unless the caller's time would be over before.

After three failed calls, all calls fail at once for half a minute, so that turns do not wait for a dead
server each time. (`breaks=False` leaves that to a caller that counts across processes.) No error ever
contains the key.

The caller says what the server is for and which setting names it, for the error messages.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import urljoin, urlsplit

from tacit.circuit_breaker import MAX_FAILURES, CircuitBreaker, Pauses
from tacit.errors import TacitError

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

_MAX_ANSWER = 64 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024
_REDIRECT_STATUSES = (301, 302, 307, 308)
_MAX_REDIRECTS = 3
_FIRST_WAIT_S, _MAX_WAIT_S = 0.5, 16.0
_BREAKER_PAUSES = Pauses(first=30.0, longest=30.0)


class PostError(TacitError):
    """A server cannot be reached, or gave no usable answer.

    `again`: a retry may work, after `wait` seconds if the server said so. `spent`: the server got the request
    and may have worked on it."""

    def __init__(
        self, message: str, *, again: bool = False, wait: float | None = None, spent: bool = False
    ) -> None:
        super().__init__(message)
        self.again, self.wait, self.spent = again, wait, spent


class Purpose(NamedTuple):
    """What is behind an address, and the setting that names it."""

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


def parse_address(url: str, model: str) -> Address:
    """Split the URL of a server; it must have no credentials, query or fragment."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise PostError(_bad_address_text(url, model)) from None
    if parts.username is not None or parts.password is not None:
        raise PostError(f"The address of the {model} holds a name or a key. Take it out.")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise PostError(_bad_address_text(url, model))
    if not url.isascii() or not url.isprintable() or " " in url:
        raise PostError(_bad_address_text(url, model))
    return Address(parts.scheme, parts.hostname, port, parts.path.rstrip("/"))


def _bad_address_text(url: str, model: str) -> str:
    return f"{url[:80]!r} is no address for the {model}. Write it like http://localhost:11434/v1#MODEL."


def bearer_header(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"}


AttemptRunner: TypeAlias = Callable[[Callable[[], Any]], Any]


def run_attempt(attempt: Callable[[], Any]) -> Any:
    return attempt()


class _TemporaryError(Exception):
    """A failure that a retry may fix; `wait` is what the server asked for."""

    def __init__(self, message: str, wait: float | None = None, *, spent: bool = False) -> None:
        super().__init__(message)
        self.wait, self.spent = wait, spent


class JsonPoster:
    """Posts to paths under one address. `headers` puts the key into a header."""

    def __init__(
        self,
        base: str,
        purpose: Purpose,
        *,
        key: str = "",
        headers: Callable[[str], Mapping[str, str]] = bearer_header,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        breaks: bool = True,
    ) -> None:
        self._base, self._key = parse_address(base, purpose.model), key.strip()
        self._purpose = purpose
        if not self._key.isascii() or not self._key.isprintable():  # http.client would put it into its error
            raise PostError(f"The key of the {purpose.model} has characters that no key has. Set it again.")
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Connection": "close",
            "User-Agent": "tacit",
            **(headers(self._key) if self._key else {}),
        }
        self._clock, self._sleep = clock, sleep
        self._breaker = CircuitBreaker(_BREAKER_PAUSES, clock) if breaks else None

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
        each: AttemptRunner = run_attempt,
    ) -> Any:
        """The parsed JSON answer. `timeout`: seconds for each attempt, `patience`: for all of them; `again`:
        retry. `each` runs an attempt and may count it: `spent` of the error tells whether the server may
        have worked on it."""
        breaker = self._breaker
        if breaker is not None and (wait := breaker.wait()):
            raise PostError(
                f"{self.place} failed {MAX_FAILURES} times in a row and is paused for {wait:.0f} s more. "
                f"Start it, or choose another {self._purpose.setting}."
            )
        try:
            answer = self._retry(path, json.dumps(payload).encode(), timeout, patience, again, each)
        except PostError as error:
            if breaker is not None:
                breaker.tell(str(error))
            raise
        if breaker is not None:
            breaker.tell("")
        return answer

    def _retry(
        self,
        path: str,
        body: bytes,
        timeout: float,
        patience: float,
        again: bool,
        each: AttemptRunner,
    ) -> Any:
        end, wait = self._clock() + patience, _FIRST_WAIT_S
        while True:
            try:
                return each(lambda: self._post_once(path, body, min(end, self._clock() + timeout)))
            except _TemporaryError as error:
                pause = wait if error.wait is None else error.wait
                if not again or self._clock() + pause >= end:
                    raise PostError(
                        f"{self.place} {error}. Try again later, or choose another {self._purpose.setting}.",
                        again=True,
                        wait=error.wait,
                        spent=error.spent,
                    ) from None
            self._sleep(pause)
            wait = min(2 * wait, _MAX_WAIT_S)

    def _post_once(self, path: str, body: bytes, end: float) -> Any:
        import http.client  # takes 20 ms, and only users of an endpoint need it

        target = self._base.path + path
        try:
            for _ in range(_MAX_REDIRECTS):
                status, headers, answer = self._exchange(target, body, end)
                if status not in _REDIRECT_STATUSES:
                    return self._handle_answer(status, headers, answer)
                target = self._redirect_path(target, headers.get("location", ""))
        except TimeoutError:
            raise _TemporaryError("did not answer in time", spent=True) from None
        except (OSError, http.client.HTTPException) as error:
            raise _TemporaryError(f"broke off its answer ({type(error).__name__})", spent=True) from None
        raise PostError(f"{self.place} redirects in a circle. Correct {self._purpose.setting}.")

    def _exchange(self, target: str, body: bytes, end: float) -> tuple[int, dict[str, str], bytes]:
        with closing(self._connection(self._remaining(end))) as connection:
            self._connect(connection)
            socket = connection.sock  # the connection drops it once the headers are read
            socket.settimeout(self._remaining(end))
            connection.request("POST", target, body, self._headers)
            with connection.getresponse() as response:
                headers = {name.lower(): value for name, value in response.getheaders()}
                return response.status, headers, self._read(response, socket, end)

    def _connect(self, connection: HTTPConnection) -> None:
        """Connect. A failure before the request is sent costs nothing."""
        try:
            connection.connect()
        except TimeoutError:
            raise _TemporaryError("did not answer in time") from None
        except OSError as error:
            self._refuse_certificate(error)
            raise _TemporaryError(f"cannot be reached ({error.strerror or type(error).__name__})") from None

    def _read(self, response: HTTPResponse, socket: Any, end: float) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while size <= _MAX_ANSWER:
            socket.settimeout(self._remaining(end))
            chunk = response.read1(_CHUNK_BYTES)
            if not chunk and response.length:  # announced bytes are missing
                raise _TemporaryError("broke off its answer", spent=True)
            if not chunk:
                return b"".join(chunks)
            chunks.append(chunk)
            size += len(chunk)
        raise PostError(
            f"{self.place} sent more than {_MAX_ANSWER >> 20} MB, which is no answer to what was asked. "
            f"Correct {self._purpose.setting}.",
            spent=True,
        )

    def _connection(self, timeout: float) -> HTTPConnection:
        from http.client import HTTPConnection, HTTPSConnection

        kind = HTTPSConnection if self._base.scheme == "https" else HTTPConnection  # verifies, by default
        return kind(self._base.host, self._base.port, timeout=timeout)

    def _remaining(self, end: float) -> float:
        remaining = end - self._clock()
        if remaining <= 0.0:
            raise TimeoutError
        return remaining

    def _redirect_path(self, target: str, location: str) -> str:
        """The new path on the same server. Another server must not get the text and the key."""
        try:
            new = urlsplit(urljoin(self.place + target, location))
            port = new.port or (443 if new.scheme == "https" else 80)
        except ValueError:
            new, port = urlsplit(""), 0
        if (new.scheme, new.hostname, port) != self._base[:3] or not location.isascii():
            raise PostError(
                f"{self.place} redirects to {redact_key(location, self._key)[:80]!r}, "
                "and text is sent only where you said. "
                f"If that is right, write the new address in {self._purpose.setting}."
            )
        return new.path + (f"?{new.query}" if new.query else "")

    def _handle_answer(self, status: int, headers: Mapping[str, str], answer: bytes) -> Any:
        if status == 200:
            return self._parse_json(answer)
        summary = f"answered with status {status}{self._answer_excerpt(answer)}"
        if status == 429 or status >= 500:
            raise _TemporaryError(summary, parse_retry_after(headers.get("retry-after", "")))
        hint = "Check the key and the name of the model." if status in (401, 403, 404) else ""
        raise PostError(f"{self.place} {summary}. {hint or f'Correct {self._purpose.setting}.'}")

    def _parse_json(self, answer: bytes) -> Any:
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise PostError(
                f"{self.place} did not answer in JSON, so no {self._purpose.model} is behind this address. "
                f"Correct {self._purpose.setting}.",
                spent=True,
            ) from None

    def _answer_excerpt(self, answer: bytes) -> str:
        plain = redact_key(answer[:2000].decode("utf-8", "replace"), self._key)
        return f": {plain}" if plain else ""

    def _refuse_certificate(self, error: OSError) -> None:
        from ssl import SSLCertVerificationError

        if isinstance(error, SSLCertVerificationError):
            raise PostError(
                f"{self.place} shows a certificate that is not trusted ({error.verify_message}). "
                f"Correct {self._purpose.setting}, or name its authority in SSL_CERT_FILE."
            ) from None


def redact_key(said: str, key: str) -> str:
    """A server's message, shortened to one line, without the key in case it repeats it."""
    text = said.replace(key, "***") if key else said
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:200]


def parse_retry_after(text: str) -> float | None:
    """Seconds to wait, from seconds or from a date."""
    if text.strip().isdecimal():
        return float(text.strip()[:9])
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None

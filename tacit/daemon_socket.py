"""The path of the daemon's socket, and one HTTP request over it.

The relay loads this module before every turn of a host, so it imports built-in modules only: `socket`, with
its imports, would take as long as starting Python does.

What must stay true:
- a request ends by its deadline even if the other side stalls, and its answer has a size limit;
- only a daemon of the same user is asked;
- every failure is an `Unreachable`.
"""

import _socket
import os
import time

TYPE_CHECKING = False  # as in typing, which would cost more than the rest of this module
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    # absent: nothing listens. foreign: another user listens. late: no answer in time. gone: the daemon went
    # away before its answer was complete, so it is unknown what it did. garbage: not an HTTP answer.
    Kind: TypeAlias = Literal["absent", "foreign", "late", "gone", "garbage"]

SOCKET_FILE = ".tacit/daemon.sock"
_MAX_PATH_BYTES = 100  # systems allow 104 or 108
_SHORT_FOLDER = "/tmp"  # noqa: S108 - always the same one: see socket_path
_MAX_HEAD_BYTES = 65_536  # for a status line with its headers
_CHUNK_BYTES = 262_144
_RETRY_INTERVAL_S = 0.002  # seconds between two attempts while the queue of the socket is full
_GONE_TEXT = "the daemon went away before it answered"


class Unreachable(OSError):
    """The daemon gave no answer; `kind` says why."""

    def __init__(self, kind: "Kind", message: str) -> None:
        super().__init__(message)
        self.kind = kind


# ---------------------------------------------------------------- paths


def socket_path(root: str) -> str:
    """The socket of the home at `root`, the same for every process and every way to write `root`.

    If the path is too long for a socket, the socket is in a folder of our own in /tmp. Environment variables
    are ignored: a host's hook may run without those that the daemon was started with.
    """
    home = os.path.realpath(root)
    path = f"{home}/{SOCKET_FILE}"
    if len(os.fsencode(path)) <= _MAX_PATH_BYTES:
        return path
    from hashlib import sha256  # rarely needed, and slow to import

    return f"{_short_socket_folder()}/{sha256(os.fsencode(home)).hexdigest()[:16]}.sock"


def prepare_folder(path: str) -> None:
    """Create the folder for a socket outside of its home; Unreachable if it is not safe to use."""
    if os.path.dirname(path) == _short_socket_folder():
        try:
            os.mkdir(_short_socket_folder(), 0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise Unreachable(
                "absent", f"{_short_socket_folder()} could not be created: {error.strerror}"
            ) from None
        _require_own_folder(path)


def _short_socket_folder() -> str:
    return f"{_SHORT_FOLDER}/tacit-{os.getuid()}"


def _require_own_socket(path: str) -> None:
    """Refuse a socket that another user put in place of ours."""
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        raise Unreachable("absent", "the daemon is not running: it has no socket") from None
    if info.st_mode & 0o170000 != 0o140000:
        raise Unreachable("absent", "the daemon is not running: the file in its place is not a socket")
    if info.st_uid != os.getuid():
        raise Unreachable("foreign", f"the socket belongs to user {info.st_uid}, not to this user")
    if os.path.dirname(path) == _short_socket_folder():
        _require_own_folder(path)


def _require_own_folder(path: str) -> None:
    """In /tmp, another user may have taken the name of our folder."""
    folder = os.path.dirname(path)
    try:
        info = os.lstat(folder)
    except OSError:
        raise Unreachable("absent", f"the daemon is not running: there is no folder {folder}") from None
    if info.st_mode & 0o170000 != 0o040000 or info.st_uid != os.getuid() or info.st_mode & 0o022:
        raise Unreachable(
            "foreign", f"others can write to {folder}; remove it, and the daemon creates it again"
        )


# ---------------------------------------------------------------- requests


def send_request(
    path: str, method: str, target: str, body: bytes, seconds: float, max_bytes: int = 16_000_000
) -> tuple[int, bytes]:
    """Send one request to the socket at `path`, and return the status and the body of the answer: at most
    `max_bytes` bytes, within `seconds` in all."""
    deadline = time.monotonic() + seconds
    _require_own_socket(path)
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        _connect(sock, path, deadline)
        _send(sock, _encode_request(method, target, body), deadline)
        return _read_answer(sock, deadline, max_bytes)
    except TimeoutError:
        raise Unreachable("late", f"there was no answer within {seconds:.3g} seconds") from None
    except Unreachable:
        raise
    except ConnectionError:
        raise Unreachable("gone", _GONE_TEXT) from None
    except (OSError, ValueError) as error:
        raise Unreachable("garbage", f"the connection broke: {error}") from None
    finally:
        sock.close()


def is_listening(path: str, seconds: float) -> bool:
    """Whether a daemon of ours listens, even if it is too busy or too broken to answer."""
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        _require_own_socket(path)
        _connect(sock, path, time.monotonic() + seconds)
    except TimeoutError:
        return True  # its queue is full
    except Unreachable:
        return False
    finally:
        sock.close()
    return True


def _encode_request(method: str, target: str, body: bytes) -> bytes:
    if not target.startswith("/") or not target.isascii() or not target.isprintable() or " " in target:
        raise ValueError(f"{target!r} is not a valid request target")
    head = (
        f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


def _set_timeout(sock: _socket.socket, deadline: float) -> None:
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError
    sock.settimeout(remaining)


def _connect(sock: _socket.socket, path: str, deadline: float) -> None:
    while True:
        _set_timeout(sock, deadline)
        try:
            sock.connect(path)
            break
        except BlockingIOError:  # it listens, and its queue is full
            time.sleep(min(_RETRY_INTERVAL_S, max(0.0, deadline - time.monotonic())))
        except TimeoutError:
            raise
        except OSError as error:
            raise Unreachable("absent", f"the daemon is not running: {error.strerror or error}") from None
    _require_own_peer(sock)


def _require_own_peer(sock: _socket.socket) -> None:
    """Check the user again: the file may have been replaced between the check and the connection."""
    if hasattr(_socket, "SO_PEERCRED"):
        credentials = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # process, user, group
        user = memoryview(credentials).cast("I")[1]
        if user != os.getuid():
            raise Unreachable("foreign", f"the daemon at the socket belongs to user {user}, not to this user")


def _send(sock: _socket.socket, request: bytes, deadline: float) -> None:
    _set_timeout(sock, deadline)
    try:  # noqa: SIM105 - contextlib is slow to import
        sock.sendall(request)
    except (BrokenPipeError, ConnectionResetError):
        pass  # it refused to read all of it, and may have answered why


def _read_answer(sock: _socket.socket, deadline: float, max_bytes: int) -> tuple[int, bytes]:
    head, received = _receive_head(sock, deadline)
    status, length = _parse_head(head)
    if length is not None and length > max_bytes:
        raise Unreachable("garbage", f"the answer has {length} bytes, and the limit is {max_bytes}")
    body = _receive_body(
        sock, deadline, bytearray(received), max_bytes if length is None else length, length is None
    )
    return status, body


def _receive_head(sock: _socket.socket, deadline: float) -> tuple[bytes, bytes]:
    data = bytearray()
    while (end := data.find(b"\r\n\r\n", 0, _MAX_HEAD_BYTES)) < 0:
        if len(data) >= _MAX_HEAD_BYTES:
            raise Unreachable("garbage", "the answer is not HTTP")
        chunk = _receive(sock, deadline)
        if not chunk:
            raise Unreachable("gone", _GONE_TEXT)
        data += chunk
        if not b"HTTP/1.".startswith(data[:7]):
            raise Unreachable("garbage", "the answer is not HTTP")
    return bytes(data[:end]), bytes(data[end + 4 :])


def _parse_head(head: bytes) -> tuple[int, int | None]:
    """The status, and the length of the body; None: it ends with the connection."""
    status_line, *fields = head.split(b"\r\n")
    status = status_line.split(b" ")[1:2]
    if not status or len(status[0]) != 3 or not status[0].isdigit():
        raise Unreachable("garbage", "the answer has no HTTP status")
    lengths = set()
    for field in fields:
        name, _, value = field.partition(b":")
        if name.strip().lower() == b"transfer-encoding":
            raise Unreachable("garbage", "the answer is chunked, which a daemon never does")
        if name.strip().lower() == b"content-length":
            lengths.add(value.strip())
    if len(lengths) > 1 or not all(length.isdigit() and len(length) < 16 for length in lengths):
        raise Unreachable("garbage", "the answer has no valid length")
    return int(status[0]), int(lengths.pop()) if lengths else None


def _receive_body(
    sock: _socket.socket, deadline: float, data: bytearray, max_bytes: int, until_close: bool
) -> bytes:
    while until_close or len(data) < max_bytes:
        if len(data) > max_bytes:
            raise Unreachable("garbage", f"the answer has more than {max_bytes} bytes")
        chunk = _receive(sock, deadline)
        if not chunk and until_close:
            break
        if not chunk:
            raise Unreachable("gone", "the daemon went away in the middle of its answer")
        data += chunk
    return bytes(data if until_close else data[:max_bytes])


def _receive(sock: _socket.socket, deadline: float) -> bytes:
    _set_timeout(sock, deadline)
    return sock.recv(_CHUNK_BYTES)

"""The way to the daemon of a home: where its socket is, and one question over it.

A hook helper starts with this module before every turn of a host, so it imports what is built in and nothing
else: `socket`, with all that it imports, would take as long as starting Python does.

What must stay true:
- a question takes no longer than it was given, whatever the other side does, and its answer has a size limit;
- nobody but the owner of this process is asked;
- what goes wrong is an `Unreachable`, nothing else.
"""

import _socket
import os
import time

TYPE_CHECKING = False  # as in typing, which would cost more than the rest of this module
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    # nobody: nothing listens there. foreign: somebody else does. late: there was no answer in time.
    # gone: it went away before its answer was whole; nobody knows what it did. garbage: what came is none.
    Kind: TypeAlias = Literal["nobody", "foreign", "late", "gone", "garbage"]

SOCKET = ".tacit/daemon.sock"
_LONGEST = 100  # bytes of a path; systems allow 104 or 108
_SHORT = "/tmp"  # noqa: S108 - always the same one: see socket_path
_HEAD = 65_536  # bytes of a status line with its headers
_PIECE = 262_144
_PAUSE = 0.002  # seconds between two tries where too many wait to be let in
_GONE = "the daemon went away before it answered"


class Unreachable(OSError):
    """There is no answer; `kind` says why."""

    def __init__(self, kind: "Kind", what: str) -> None:
        super().__init__(what)
        self.kind = kind


# ---------------------------------------------------------------- where


def socket_path(root: str) -> str:
    """The socket of the home at `root`, the same for every process and every way to write `root`.

    Where the path is too long for a socket it is in a folder of our own in /tmp. No variable of the
    environment has a say: a host's hook may run with none of those that the daemon was started with.
    """
    home = os.path.realpath(root)
    path = f"{home}/{SOCKET}"
    if len(os.fsencode(path)) <= _LONGEST:
        return path
    from hashlib import sha256  # rarely needed, and not free

    return f"{_folder()}/{sha256(os.fsencode(home)).hexdigest()[:16]}.sock"


def prepare(path: str) -> None:
    """Make the folder for a socket outside of its home; Unreachable where it is not safe to use."""
    if os.path.dirname(path) == _folder():
        try:
            os.mkdir(_folder(), 0o700)
        except FileExistsError:
            pass
        except OSError as error:
            raise Unreachable("nobody", f"{_folder()} could not be made: {error.strerror}") from None
        _require_own_folder(path)


def _folder() -> str:
    return f"{_SHORT}/tacit-{os.getuid()}"


def _require_own(path: str) -> None:
    """Refuse what somebody else put in the place of our socket."""
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        raise Unreachable("nobody", "there is no daemon: nothing is at its socket") from None
    if info.st_mode & 0o170000 != 0o140000:
        raise Unreachable("nobody", "there is no daemon: what is at its place is no socket")
    if info.st_uid != os.getuid():
        raise Unreachable("foreign", f"the socket belongs to user {info.st_uid}, not to this one")
    if os.path.dirname(path) == _folder():
        _require_own_folder(path)


def _require_own_folder(path: str) -> None:
    """Where everybody can write, the name of our folder may be taken by somebody else."""
    folder = os.path.dirname(path)
    try:
        info = os.lstat(folder)
    except OSError:
        raise Unreachable("nobody", f"there is no folder {folder}") from None
    if info.st_mode & 0o170000 != 0o040000 or info.st_uid != os.getuid() or info.st_mode & 0o022:
        raise Unreachable("foreign", f"others can write in {folder}; remove it, and the daemon makes it anew")


# ---------------------------------------------------------------- asking


def ask(
    path: str, method: str, target: str, body: bytes, seconds: float, most: int = 16_000_000
) -> tuple[int, bytes]:
    """One request to the socket at `path`: the status and the body of the answer, which has at most `most`
    bytes, within `seconds` in all."""
    until = time.monotonic() + seconds
    _require_own(path)
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        _connect(line, path, until)
        _send(line, _request(method, target, body), until)
        return _answer(line, until, most)
    except TimeoutError:
        raise Unreachable("late", f"there was no answer within {seconds:.3g} seconds") from None
    except Unreachable:
        raise
    except ConnectionError:
        raise Unreachable("gone", _GONE) from None
    except (OSError, ValueError) as error:
        raise Unreachable("garbage", f"the connection broke: {error}") from None
    finally:
        line.close()


def listens(path: str, seconds: float) -> bool:
    """Whether anybody of ours is there, also one that is too busy, or too ill, to answer."""
    line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        _require_own(path)
        _connect(line, path, time.monotonic() + seconds)
    except TimeoutError:
        return True  # so many wait at its door
    except Unreachable:
        return False
    finally:
        line.close()
    return True


def _request(method: str, target: str, body: bytes) -> bytes:
    if not target.startswith("/") or not target.isascii() or not target.isprintable() or " " in target:
        raise ValueError(f"{target!r} is no address")
    head = (
        f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


def _wait_until(line: _socket.socket, until: float) -> None:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    line.settimeout(left)


def _connect(line: _socket.socket, path: str, until: float) -> None:
    while True:
        _wait_until(line, until)
        try:
            line.connect(path)
            break
        except BlockingIOError:  # it listens, and as many wait already as it lets wait
            time.sleep(min(_PAUSE, max(0.0, until - time.monotonic())))
        except TimeoutError:
            raise
        except OSError as error:
            raise Unreachable("nobody", f"nobody listens at the socket: {error.strerror or error}") from None
    _require_own_peer(line)


def _require_own_peer(line: _socket.socket) -> None:
    """Between the look at the file and the connection the file may have been another one."""
    if hasattr(_socket, "SO_PEERCRED"):
        who = line.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # process, user, group
        user = memoryview(who).cast("I")[1]
        if user != os.getuid():
            raise Unreachable("foreign", f"user {user} listens at the socket, not this one")


def _send(line: _socket.socket, request: bytes, until: float) -> None:
    _wait_until(line, until)
    try:  # noqa: SIM105 - contextlib is not free
        line.sendall(request)
    except (BrokenPipeError, ConnectionResetError):
        pass  # it did not want to read all of it; it may have said why


def _answer(line: _socket.socket, until: float, most: int) -> tuple[int, bytes]:
    head, rest = _head(line, until)
    status, length = _read_head(head)
    if length is not None and length > most:
        raise Unreachable("garbage", f"the answer has {length} bytes, and at most {most} are taken")
    body = _body(line, until, bytearray(rest), most if length is None else length, length is None)
    return status, body


def _head(line: _socket.socket, until: float) -> tuple[bytes, bytes]:
    data = bytearray()
    while (end := data.find(b"\r\n\r\n", 0, _HEAD)) < 0:
        if len(data) >= _HEAD:
            raise Unreachable("garbage", "the answer does not begin as one")
        piece = _receive(line, until)
        if not piece:
            raise Unreachable("gone", _GONE)
        data += piece
        if not b"HTTP/1.".startswith(data[:7]):
            raise Unreachable("garbage", "what came is no answer of a daemon")
    return bytes(data[:end]), bytes(data[end + 4 :])


def _read_head(head: bytes) -> tuple[int, int | None]:
    """The status, and how long the body is; None: it ends with the connection."""
    first, *fields = head.split(b"\r\n")
    status = first.split(b" ")[1:2]
    if not status or len(status[0]) != 3 or not status[0].isdigit():
        raise Unreachable("garbage", "the answer has no status")
    lengths = set()
    for field in fields:
        name, _, value = field.partition(b":")
        if name.strip().lower() == b"transfer-encoding":
            raise Unreachable("garbage", "the answer is in pieces, which a daemon never does")
        if name.strip().lower() == b"content-length":
            lengths.add(value.strip())
    if len(lengths) > 1 or not all(length.isdigit() and len(length) < 16 for length in lengths):
        raise Unreachable("garbage", "the answer does not say how long it is")
    return int(status[0]), int(lengths.pop()) if lengths else None


def _body(line: _socket.socket, until: float, data: bytearray, most: int, to_the_end: bool) -> bytes:
    while to_the_end or len(data) < most:
        if len(data) > most:
            raise Unreachable("garbage", f"the answer has more than {most} bytes")
        piece = _receive(line, until)
        if not piece and to_the_end:
            break
        if not piece:
            raise Unreachable("gone", "the daemon went away in the middle of its answer")
        data += piece
    return bytes(data if to_the_end else data[:most])


def _receive(line: _socket.socket, until: float) -> bytes:
    _wait_until(line, until)
    return line.recv(_PIECE)

"""The lock that one daemon holds on a home, and where that daemon listens.

    .tacit/daemon.lock    flocked by the daemon for as long as it lives; never deleted
    .tacit/daemon.json    its pid, started, version, socket, tcp, deadline_ms
    .tacit/daemon.sock    where it listens (elsewhere if the path is too long for a socket)
    .tacit/daemon.token   the token that TCP clients must send

What must stay true:
- the lock alone says whether a daemon runs. The kernel frees it when its holder dies, so leftover files and
  reused pids mean nothing;
- only the holder of the lock creates and removes the socket and daemon.json;
- from the moment the socket exists, only the owner of the home can connect.

`tacit status` starts with this module: it must stay light.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import socket
import stat
import time
from contextlib import suppress
from typing import NamedTuple, Self

from tacit.daemon_socket import socket_path
from tacit.errors import Busy, HomeError
from tacit.home import files
from tacit.home.layout import Home
from tacit.version import VERSION

LISTEN_BACKLOG = 128  # connections that wait in the system until we accept them
_OPEN_FLAGS = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_TOKEN_BYTES = 32  # random bytes
_MAX_INFO_BYTES = 1 << 16  # daemon.json has a few hundred bytes


class DaemonInfo(NamedTuple):
    """What a daemon announces about itself. `pid` is 0 until it has announced anything."""

    pid: int
    started: str
    version: str
    socket: str
    tcp: int | None
    deadline_ms: int = 0  # for turns that name none; 0: unknown


class DaemonInstance:
    """One daemon's hold on a home: take the lock, listen, announce; release it all at the end."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock_fd: int | None = None
        self._socket: tuple[str, int, int] | None = None
        self._info: DaemonInfo | None = None

    @property
    def socket_file(self) -> str:
        return socket_path(str(self._home.root))

    def take(self, wait: float = 0.5) -> None:
        """Take the lock; Busy if another daemon has it. `wait`: seconds to wait for processes that hold it
        briefly, such as a command that checks for a daemon or a daemon that is just stopping."""
        with files.explain_disk_errors("take the home for the daemon"):
            files.make_directories(self._home.private)
            _require_own_folder(str(self._home.private))
            self._lock_fd = self._acquire_lock(time.monotonic() + wait)
        with suppress(FileNotFoundError):
            os.unlink(_info_path(self._home))  # left by a daemon that was killed

    def _acquire_lock(self, deadline: float) -> int:
        while True:
            fd = os.open(_lock_path(self._home), os.O_RDWR | _OPEN_FLAGS, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_same_file(
                    fd, _lock_path(self._home)
                ):  # not a file that was deleted between these two steps
                    os.fchmod(fd, 0o600)
                    return fd
            except BlockingIOError:
                pass
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
            if time.monotonic() >= deadline:
                raise Busy(_held_message(self._home))
            time.sleep(0.005)

    def holds(self) -> bool:
        """Whether the home is still ours. If .tacit was deleted or replaced, another daemon may take the
        home, so this one must stop."""
        return self._lock_fd is not None and _is_same_file(self._lock_fd, _lock_path(self._home))

    def require_held(self) -> None:
        """Raise if another home is in the place of ours: it must not be read or written."""
        if not self.holds():
            raise HomeError(
                f"The home of this daemon is not at {self._home.root} any more: it was moved, replaced or "
                "removed. Name the home where it is now, and start its daemon with: tacit serve"
            )

    def moved_to(self) -> str:
        """Where our home is now; empty if it did not move or that is unknown."""
        path = "" if self._lock_fd is None else _path_of(self._lock_fd)
        if self._lock_fd is None or not path or not _is_same_file(self._lock_fd, path):
            return ""
        root = os.path.dirname(os.path.dirname(path))
        return "" if root == os.path.realpath(self._home.root) else root

    def is_bound(self) -> bool:
        """Whether clients find our socket: it may have been deleted or replaced."""
        if self._socket is None:
            return False
        try:
            info = os.lstat(self._socket[0])
        except OSError:
            return False
        return (info.st_dev, info.st_ino) == self._socket[1:]

    def listen(self) -> socket.socket:
        """The bound socket, with mode 0600 from the start. A dead daemon's socket is removed first."""
        if self._lock_fd is None:
            raise RuntimeError("take the place first")
        path = self.socket_file
        _make_socket_folder(os.path.dirname(path), self._home)
        _remove_stale(path)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _bind(sock, path)
            sock.listen(LISTEN_BACKLOG)
        except BaseException:
            sock.close()
            raise
        info = os.lstat(path)
        self._socket = (path, info.st_dev, info.st_ino)
        return sock

    def announce(self, tcp: int | None = None, deadline_ms: int = 0) -> DaemonInfo:
        """Write daemon.json, so that clients find us; call it once the server answers."""
        if self._lock_fd is None:
            raise RuntimeError("take the place first")
        started = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        started = f"{started[:-2]}:{started[-2:]}"
        return self._write_info(DaemonInfo(os.getpid(), started, VERSION, self.socket_file, tcp, deadline_ms))

    def announce_deadline(self, deadline_ms: int) -> None:
        """Announce a deadline that changed since the start."""
        if self._info is not None and self.holds():
            self._write_info(self._info._replace(deadline_ms=deadline_ms))

    def _write_info(self, info: DaemonInfo) -> DaemonInfo:
        files.replace(self._home.private / "daemon.json", json.dumps(info._asdict()).encode() + b"\n")
        self._info = info
        return info

    def token(self) -> str:
        """The token, created if there is none. One that others could have read is refused."""
        path = self._home.private / "daemon.token"
        try:
            return _read_token(str(path))
        except FileNotFoundError:
            token = secrets.token_urlsafe(_TOKEN_BYTES)
            files.replace(path, token.encode() + b"\n")
            return token

    def leave(self) -> None:
        """Release everything. Never raises, as the home may be gone."""
        if self._lock_fd is None:
            return
        if self.holds():
            with suppress(OSError):
                os.unlink(_info_path(self._home))
        if self._socket is not None:
            _remove_own(*self._socket)
        os.close(self._lock_fd)  # last: the next holder must find nothing of ours
        self._lock_fd = self._socket = self._info = None

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_error: object) -> None:
        self.leave()


def find_daemon(home: Home) -> DaemonInfo | None:
    """The daemon that holds the lock of this home, if any."""
    try:
        fd = os.open(_lock_path(home), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_info(home) or DaemonInfo(0, "", "", socket_path(str(home.root)), None)
    except OSError:
        return None
    finally:
        os.close(fd)
    return None


def _read_info(home: Home) -> DaemonInfo | None:
    try:
        fd = os.open(_info_path(home), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            fields = json.loads(file.read(_MAX_INFO_BYTES))
        tcp, deadline_ms = fields["tcp"], fields.get("deadline_ms", 0)
        return DaemonInfo(
            int(fields["pid"]),
            str(fields["started"]),
            str(fields["version"]),
            str(fields["socket"]),
            None if tcp is None else int(tcp),
            int(deadline_ms),
        )
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _held_message(home: Home) -> str:
    info = _read_info(home)
    if info is None:
        return (
            "Another process is just starting the daemon of this home. "
            f"Ask it in a moment with: tacit --home {home.root} status"
        )
    return (
        f"The daemon of this home runs already: process {info.pid} since {info.started} on {info.socket}. "
        f"Use it, or end it with: tacit --home {home.root} stop"
    )


def _lock_path(home: Home) -> str:
    return os.path.join(home.private, "daemon.lock")


def _info_path(home: Home) -> str:
    return os.path.join(home.private, "daemon.json")


def _is_same_file(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except OSError:
        return False


def _path_of(fd: int) -> str:
    """The current path of an open file; empty if the system does not tell."""
    with suppress(OSError):
        if hasattr(fcntl, "F_GETPATH"):
            return os.fsdecode(fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
        return os.readlink(f"/proc/self/fd/{fd}")
    return ""


def _require_own_folder(folder: str) -> None:
    """Refuse a folder in which another user could replace our socket."""
    info = os.lstat(folder)
    if not stat.S_ISDIR(info.st_mode):
        raise HomeError(f"{folder} is not a folder (a link, perhaps). Move it away and start again.")
    if info.st_uid != os.geteuid():
        raise HomeError(
            f"{folder} belongs to user {info.st_uid}, not to this one ({os.geteuid()}). "
            "Start the daemon as the user who owns it."
        )
    if info.st_mode & 0o077:
        os.chmod(folder, stat.S_IMODE(info.st_mode) & 0o700)


def _make_socket_folder(folder: str, home: Home) -> None:
    if folder != str(home.private):
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
    _require_own_folder(folder)


def _remove_stale(path: str) -> None:
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(info.st_mode):
        raise HomeError(f"{path} is in the way: it is not a socket. Move it away and start again.")
    os.unlink(path)


def _bind(sock: socket.socket, path: str) -> None:
    with suppress(OSError):
        os.fchmod(sock.fileno(), 0o600)  # Linux makes the file with this mode
    # Elsewhere the umask keeps others out until the chmod. It applies to all threads, so it must take away
    # the rights of others only: a folder created meanwhile stays usable.
    mask = os.umask(0o077)
    try:
        sock.bind(path)
    finally:
        os.umask(mask)
    os.chmod(path, 0o600)


def _remove_own(path: str, device: int, number: int) -> None:
    with suppress(OSError):
        info = os.lstat(path)
        if (info.st_dev, info.st_ino) == (device, number):
            os.unlink(path)


def _read_token(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise HomeError(f"{path} cannot be read: {error.strerror}. Delete it, and start again.") from error
    with open(fd, "rb") as file:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.geteuid() or info.st_mode & 0o077:
            raise HomeError(
                f"{path} can be read by others, so it is no secret. Delete it; a new one is made."
            )
        token = file.read(1024).decode("ascii", "replace").strip()
    if len(token) < _TOKEN_BYTES or not token.isprintable():
        raise HomeError(f"{path} holds no token. Delete it; a new one is made at the start.")
    return token

"""Who holds a home, and where that process can be asked.

    .tacit/daemon.lock    flocked by the daemon for as long as it lives; never deleted
    .tacit/daemon.json    who that is: pid, started, version, socket, tcp, deadline_ms
    .tacit/daemon.sock    where it listens (elsewhere when the path is too long for a socket)
    .tacit/daemon.token   what a caller by TCP must know

What must stay true:
- the lock alone says whether a daemon runs. The kernel frees it when its holder dies, so neither a file that
  was left behind nor a pid that somebody else has by now means anything;
- socket and daemon.json are made and removed by the holder of the lock only;
- nobody but the owner of the home can connect, from the moment the socket is there.

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

from tacit.errors import Busy, HomeError
from tacit.net.local import socket_path
from tacit.store import files
from tacit.store.home import Home
from tacit.version import VERSION

BACKLOG = 128  # connections that the system keeps for us until we take them
_FLAGS = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_TOKEN = 32  # random bytes
_SIZE = 1 << 16  # daemon.json has a few hundred bytes


class Info(NamedTuple):
    """What a daemon says about itself. `pid` is 0 as long as it has not said anything yet."""

    pid: int
    started: str
    version: str
    socket: str
    tcp: int | None
    deadline_ms: int = 0  # of a turn that names none; 0: it did not say


class Place:
    """The place of one daemon: take it, listen, announce; leave it at the end."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock: int | None = None
        self._socket: tuple[str, int, int] | None = None
        self._info: Info | None = None

    @property
    def socket_file(self) -> str:
        return socket_path(str(self._home.root))

    def take(self, wait: float = 0.5) -> None:
        """Busy if another daemon holds the home. `wait` is for those who hold it for a moment: a command
        that looks whether a daemon runs, a daemon that is just ending."""
        with files.explained("take the home for the daemon"):
            files.make_directories(self._home.private)
            _own(str(self._home.private))
            self._lock = self._flocked(time.monotonic() + wait)
        with suppress(FileNotFoundError):
            os.unlink(_json(self._home))  # of one that was killed

    def _flocked(self, deadline: float) -> int:
        while True:
            fd = os.open(_lock(self._home), os.O_RDWR | _FLAGS, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _same(fd, _lock(self._home)):  # not a file that was deleted between these two steps
                    os.fchmod(fd, 0o600)
                    return fd
            except BlockingIOError:
                pass
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
            if time.monotonic() >= deadline:
                raise Busy(_held(self._home))
            time.sleep(0.005)

    def holds(self) -> bool:
        """Whether the home is still ours: not when .tacit was deleted or replaced under us. Another daemon
        may take it then, so this one must end."""
        return self._lock is not None and _same(self._lock, _lock(self._home))

    def require_held(self) -> None:
        """Nothing is answered from, and nothing kept in, a home that took the place of ours."""
        if not self.holds():
            raise HomeError(
                f"The home of this daemon is not at {self._home.root} any more: it was moved, replaced or "
                "removed. Name the home where it is now, and start its daemon with: tacit serve"
            )

    def moved_to(self) -> str:
        """Where our home is by now; empty where that is its place, or nobody can tell."""
        path = "" if self._lock is None else _path_of(self._lock)
        if self._lock is None or not path or not _same(self._lock, path):
            return ""
        root = os.path.dirname(os.path.dirname(path))
        return "" if root == os.path.realpath(self._home.root) else root

    def is_bound(self) -> bool:
        """Whether who looks for our socket finds it: somebody may have deleted it, or put another there."""
        if self._socket is None:
            return False
        try:
            found = os.lstat(self._socket[0])
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._socket[1:]

    def listen(self) -> socket.socket:
        """The bound socket, its mode 0600 from the start. What a dead daemon left is removed first."""
        if self._lock is None:
            raise RuntimeError("take the place first")
        path = self.socket_file
        _folder(os.path.dirname(path), self._home)
        _remove_stale(path)
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _bind(bound, path)
            bound.listen(BACKLOG)
        except BaseException:
            bound.close()
            raise
        found = os.lstat(path)
        self._socket = (path, found.st_dev, found.st_ino)
        return bound

    def announce(self, tcp: int | None = None, deadline_ms: int = 0) -> Info:
        """From now on others are told where to ask; call it when the server answers."""
        if self._lock is None:
            raise RuntimeError("take the place first")
        started = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        started = f"{started[:-2]}:{started[-2:]}"
        return self._tell(Info(os.getpid(), started, VERSION, self.socket_file, tcp, deadline_ms))

    def announce_deadline(self, deadline_ms: int) -> None:
        """Another one than at the start."""
        if self._info is not None and self.holds():
            self._tell(self._info._replace(deadline_ms=deadline_ms))

    def _tell(self, info: Info) -> Info:
        files.replace(self._home.private / "daemon.json", json.dumps(info._asdict()).encode() + b"\n")
        self._info = info
        return info

    def token(self) -> str:
        """Made if there is none. One that others could have read is refused."""
        path = self._home.private / "daemon.token"
        try:
            return _read_token(str(path))
        except FileNotFoundError:
            made = secrets.token_urlsafe(_TOKEN)
            files.replace(path, made.encode() + b"\n")
            return made

    def leave(self) -> None:
        """Never raises: the home may be gone by now."""
        if self._lock is None:
            return
        if self.holds():
            with suppress(OSError):
                os.unlink(_json(self._home))
        if self._socket is not None:
            _remove_own(*self._socket)
        os.close(self._lock)  # last of all: whoever takes the home now finds nothing of ours
        self._lock = self._socket = self._info = None

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_error: object) -> None:
        self.leave()


def running(home: Home) -> Info | None:
    """The daemon that holds this home now, by its lock."""
    try:
        fd = os.open(_lock(home), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _announced(home) or Info(0, "", "", socket_path(str(home.root)), None)
    except OSError:
        return None
    finally:
        os.close(fd)
    return None


def _announced(home: Home) -> Info | None:
    try:
        fd = os.open(_json(home), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            said = json.loads(file.read(_SIZE))
        tcp, deadline_ms = said["tcp"], said.get("deadline_ms", 0)
        return Info(
            int(said["pid"]),
            str(said["started"]),
            str(said["version"]),
            str(said["socket"]),
            None if tcp is None else int(tcp),
            int(deadline_ms),
        )
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _held(home: Home) -> str:
    info = _announced(home)
    if info is None:
        return (
            "Another process is just starting the daemon of this home. "
            f"Ask it in a moment with: tacit --home {home.root} status"
        )
    return (
        f"The daemon of this home runs already: process {info.pid} since {info.started} on {info.socket}. "
        f"Use it, or end it with: tacit --home {home.root} stop"
    )


def _lock(home: Home) -> str:
    return os.path.join(home.private, "daemon.lock")


def _json(home: Home) -> str:
    return os.path.join(home.private, "daemon.json")


def _same(fd: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except OSError:
        return False


def _path_of(fd: int) -> str:
    """Where an open file is now, as the system tells; empty where it does not."""
    with suppress(OSError):
        if hasattr(fcntl, "F_GETPATH"):
            return os.fsdecode(fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
        return os.readlink(f"/proc/self/fd/{fd}")
    return ""


def _own(folder: str) -> None:
    """Refuse a folder in which somebody else could put a socket in place of ours."""
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode):
        raise HomeError(f"{folder} is not a folder (a link, perhaps). Move it away and start again.")
    if found.st_uid != os.geteuid():
        raise HomeError(
            f"{folder} belongs to user {found.st_uid}, not to this one ({os.geteuid()}). "
            "Start the daemon as the user who owns it."
        )
    if found.st_mode & 0o077:
        os.chmod(folder, stat.S_IMODE(found.st_mode) & 0o700)


def _folder(folder: str, home: Home) -> None:
    if folder != str(home.private):
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
    _own(folder)


def _remove_stale(path: str) -> None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise HomeError(f"{path} is in the way: it is not a socket. Move it away and start again.")
    os.unlink(path)


def _bind(bound: socket.socket, path: str) -> None:
    with suppress(OSError):
        os.fchmod(bound.fileno(), 0o600)  # Linux makes the file with this mode
    # Elsewhere it is the mask that keeps others out until the chmod. It holds for all threads, so it must
    # not take away more than the rights of others: a folder that is made meanwhile stays usable.
    mask = os.umask(0o077)
    try:
        bound.bind(path)
    finally:
        os.umask(mask)
    os.chmod(path, 0o600)


def _remove_own(path: str, device: int, number: int) -> None:
    with suppress(OSError):
        found = os.lstat(path)
        if (found.st_dev, found.st_ino) == (device, number):
            os.unlink(path)


def _read_token(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise HomeError(f"{path} cannot be read: {error.strerror}. Delete it, and start again.") from error
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise HomeError(
                f"{path} can be read by others, so it is no secret. Delete it; a new one is made."
            )
        token = file.read(1024).decode("ascii", "replace").strip()
    if len(token) < _TOKEN or not token.isprintable():
        raise HomeError(f"{path} holds no token. Delete it; a new one is made at the start.")
    return token

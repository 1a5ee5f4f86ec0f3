"""Files inside one directory that survive power cuts and cannot be led outside it.

What must stay true:
- a replaced file is the old one or the new one, never a torn one, and the new one is on disk when we return;
- no path given by a person, a model or a note ever reaches a file outside the root: every directory on the
  way is opened without following links, and only plain files with one name are read or replaced.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tacit.errors import Busy, ChangedOnDisk, DiskError, UnsafePath

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME_MAX = 255
_TEMPORARY = re.compile(r"\.tmp\.[0-9a-f]{12}\Z")

_MEANING = {
    errno.ENOSPC: "the disk is full; nothing was changed. Free some space and try again",
    errno.EDQUOT: "the disk quota is used up; nothing was changed. Free some space and try again",
    errno.EROFS: "the file system is read-only; reading still works. Make it writable and try again",
    errno.EACCES: "this user may not write there. Check who owns the home",
    errno.EPERM: "this user may not write there. Check who owns the home",
    errno.EIO: "the disk reported an error; nothing was acknowledged. Check the disk, then try again",
}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class explained:  # noqa: N801 - used as a function; a class because it stands around every message
    """Turn what the operating system says about the disk into words, and leave the rest alone."""

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        meaning = _MEANING.get(error.errno or 0) if isinstance(error, OSError) else None
        if meaning is not None:
            raise DiskError(f"Could not {self._doing}: {meaning}.") from error


def fsync_directory(path: str | os.PathLike[str]) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def fsync_file(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_directories(path: Path, mode: int = 0o700) -> None:
    """mkdir -p whose result survives a power cut: each new name is synced in its parent."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        with suppress(FileExistsError):
            directory.mkdir(mode)
        fsync_directory(directory.parent)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


LOGGED = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def append_lines(fd: int, data: bytes) -> int:
    """Whole lines to a log that was opened as LOGGED, in one call, so that those of two processes never mix.
    Nothing is synced: a log may lose its end. Returns the size of the file."""
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "there is something in the log's place that is not a file")
    if info.st_size and os.pread(fd, 1, info.st_size - 1) != b"\n":
        data = b"\n" + data  # what a full disk tore must not take this line with it
    if os.write(fd, data) < len(data):
        raise OSError(errno.ENOSPC, "only a part could be written")
    return info.st_size + len(data)


def temporary_name(name: str) -> str:
    suffix = f".tmp.{secrets.token_hex(6)}"
    fits = len(os.fsencode(name)) + len(suffix) <= _NAME_MAX
    return (name if fits else "") + suffix


def is_temporary(name: str) -> bool:
    return _TEMPORARY.search(name) is not None


def replace(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Durable atomic replace: a temporary file beside it, synced, renamed, and the directory synced."""
    with explained(f"write {path.name}"):
        fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _replace_in(fd, path.name, data, mode)
        finally:
            os.close(fd)


def _replace_in(directory: int, name: str, data: bytes, mode: int) -> None:
    temporary = temporary_name(name)
    try:
        _write_new(directory, temporary, data, mode)
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise
    os.fsync(directory)


def _write_new(directory: int, name: str, data: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, 0o600, dir_fd=directory)
    try:
        write_all(fd, data)
        os.fchmod(fd, mode)
        os.fsync(fd)
    finally:
        os.close(fd)


def parts_of(path: str) -> list[str]:
    """The names along a path that stays inside, or UnsafePath."""
    if "\0" in path:
        raise UnsafePath(path, "it contains a NUL")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise UnsafePath(path, "it is not text that a file name can hold") from None
    if path.startswith(("/", "~")) or os.path.isabs(path):
        raise UnsafePath(path, "it is not relative to the home")
    names = [name for name in path.split("/") if name not in ("", ".")]
    if not names or ".." in names:
        raise UnsafePath(path, "it leaves the home" if names else "it names no file")
    # git takes .GIT for .git on some disks, and a .git further down makes a repository inside ours.
    if names[0].lower() == ".tacit" or any(name.lower() == ".git" for name in names):
        raise UnsafePath(path, ".git and .tacit are not places for notes")
    return names


class Tree:
    """Plain files below one root, reached by relative paths only."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str, most: int = -1) -> bytes:
        """The bytes of a file, or the first `most` of them."""
        with self.folder(path) as (directory, name):
            return _read_plain(directory, name, path, most)

    def exists(self, path: str) -> bool:
        with suppress(FileNotFoundError):
            self.read(path)
            return True
        return False

    def mode(self, path: str) -> int:
        """Who may read a file; of one that is not there, its owner alone."""
        try:
            with self.folder(path) as (directory, name):
                return stat.S_IMODE(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return 0o600

    def write(self, path: str, data: bytes, expected: str | None, mode: int = 0o600) -> str:
        """Write if the file still has the digest the writer saw (None: there was no file).

        Call it while holding the home's lock; then two writers of ours can never both win.
        """
        with explained(f"write {path}"), self.folder(path, make=True) as (directory, name):
            if _digest_or_none(directory, name, path) != expected:
                raise ChangedOnDisk(path)
            _replace_in(directory, name, data, mode)
        return digest(data)

    def put(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Durable atomic replace, whatever is there."""
        with explained(f"write {path}"), self.folder(path, make=True) as (directory, name):
            _replace_in(directory, name, data, mode)

    def remove(self, path: str, expected: str) -> None:
        with explained(f"remove {path}"), self.folder(path) as (directory, name):
            if _digest_or_none(directory, name, path) != expected:
                raise ChangedOnDisk(path)
            os.unlink(name, dir_fd=directory)
            os.fsync(directory)

    @contextmanager
    def folder(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The open folder of a file and the file's name in it, reached without following a link."""
        *folders, name = parts_of(path)
        with self._directory(path, folders, make=make) as directory:
            yield directory, name

    def files(self, *folders: str) -> Iterator[str]:
        """Every plain file below the folders, sorted; links, devices and hidden temporary files left out."""
        for folder in folders:
            if self._is_folder(folder):
                yield from _plain_files(str(self.root), folder)

    def _is_folder(self, folder: str) -> bool:
        try:
            with self._directory(folder, parts_of(folder)):
                return True
        except (FileNotFoundError, UnsafePath):
            return False

    @contextmanager
    def _directory(self, path: str, folders: list[str], *, make: bool = False) -> Iterator[int]:
        fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for folder in folders:
                if make:
                    _make_folder(fd, folder)
                below = _open_folder(fd, folder, path)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)


def _make_folder(directory: int, name: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=directory)
        os.fsync(directory)


def _open_folder(directory: int, name: str, path: str) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise UnsafePath(path, f"{name} is a link or not a folder") from error
        raise


def _read_plain(directory: int, name: str, path: str, most: int = -1) -> bytes:
    # O_NONBLOCK: opening a FIFO that somebody put there must not wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise UnsafePath(path, "it is a link or a device") from error
        raise
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise UnsafePath(path, "it is not a plain file")
        if info.st_nlink != 1:
            raise UnsafePath(path, "the same file has another name elsewhere (a hard link)")
        with open(fd, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(fd)


def _plain_files(root: str, top: str) -> Iterator[str]:
    """Depth first, the files of a folder before its folders. scandir tells what is a file without asking
    the disk for each one, which is half of the time for ten thousand of them."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            entries = sorted(os.scandir(f"{root}/{folder}"), key=lambda entry: entry.name)
        except FileNotFoundError:  # gone while we were looking
            continue
        if any(entry.name == ".git" for entry in entries):
            continue  # somebody's repository inside ours is theirs
        for entry in entries:
            if entry.is_file(follow_symlinks=False) and not is_temporary(entry.name):
                yield f"{folder}/{entry.name}"
        folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        waiting.extend(f"{folder}/{name}" for name in reversed(folders))


def _digest_or_none(directory: int, name: str, path: str) -> str | None:
    try:
        return digest(_read_plain(directory, name, path))
    except FileNotFoundError:
        return None


@contextmanager
def locked(path: Path, wait: float = 30.0) -> Iterator[None]:
    """One process at a time. flock is freed by the kernel when its holder dies, so nobody ever unlocks by
    hand; the file itself is never deleted, because deleting it would let two holders in."""
    with explained("take the home's lock"):
        make_directories(path.parent)  # a home that was cloned, or whose .tacit was deleted, has none yet
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        flock_within(
            fd, wait, f"Another process has held {path.name} for {wait:.0f} s. Try again when it is done."
        )
        yield
    finally:
        os.close(fd)


def flock_within(fd: int, wait: float, message: str) -> None:
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise Busy(message) from None
            time.sleep(0.005)
        else:
            return

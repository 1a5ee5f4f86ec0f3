"""Read and write files below one directory, safe from power cuts and from paths that lead outside.

What must stay true:
- a replaced file is either the old or the new one, never truncated, and the new one is on disk on return;
- no path from a person, a model or a note ever reaches a file outside the root: every directory on the way
  is opened without following links, and only regular files without hard links are read or replaced.
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
from unicodedata import normalize

from tacit.errors import Busy, ChangedOnDisk, DiskError, Locked, UnsafePath
from tacit.home.paths import MAX_NAME_BYTES, name_key, split_names

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_PATH_BYTES = 4096  # bytes
_TEMPORARY_SUFFIX = re.compile(r"\.tmp\.[0-9a-f]{12}\Z")

_ERROR_MEANINGS = {
    errno.ENOSPC: "the disk is full; nothing was changed. Free some space and try again",
    errno.EDQUOT: "the disk quota is used up; nothing was changed. Free some space and try again",
    errno.EROFS: "the file system is read-only; reading still works. Make it writable and try again",
    errno.EACCES: "this user may not write there. Check who owns the home",
    errno.EPERM: "this user may not write there. Check who owns the home",
    errno.EIO: "the disk reported an error; nothing was acknowledged. Check the disk, then try again",
}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class explain_disk_errors:  # noqa: N801 - used as a function; a class because it is entered for every message
    """Turn disk errors of the operating system into DiskError with an explanation; let others pass."""

    def __init__(self, doing: str) -> None:
        self._action = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        meaning = _ERROR_MEANINGS.get(error.errno or 0) if isinstance(error, OSError) else None
        if meaning is not None:
            raise DiskError(f"Could not {self._action}: {meaning}.") from error


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


def make_directories(path: Path, mode: int = 0o700, *, synced: bool = True) -> None:
    """mkdir -p, readable by the owner only, that survives a power cut: each new name is synced in its parent.
    Not `synced`: for content that can be recreated."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        with suppress(FileExistsError):
            directory.mkdir(mode)
        if synced:
            fsync_directory(directory.parent)


def write_unsynced(path: Path, data: bytes) -> None:
    """Neither atomic nor synced: for content that can be recreated. Only the owner can read it."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


LOG_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def append_lines(fd: int, data: bytes) -> int:
    """Append whole lines to a log that was opened as LOGGED, in one call, so that lines of two processes
    never mix. Does not sync: a log may lose its end. Returns the size of the file."""
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):
        raise OSError(errno.EINVAL, "there is something in the log's place that is not a file")
    if info.st_size and os.pread(fd, 1, info.st_size - 1) != b"\n":
        data = b"\n" + data  # a line truncated by a full disk must not spoil this one
    if os.write(fd, data) < len(data):
        raise OSError(errno.ENOSPC, "only a part could be written")
    return info.st_size + len(data)


def temporary_name(name: str) -> str:
    suffix = f".tmp.{secrets.token_hex(6)}"
    fits = len(os.fsencode(name)) + len(suffix) <= MAX_NAME_BYTES
    return (name if fits else "") + suffix


def is_temporary(name: str) -> bool:
    return _TEMPORARY_SUFFIX.search(name) is not None


def replace(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Durable atomic replace: write a temporary file next to it, sync, rename, sync the directory."""
    with explain_disk_errors(f"write {path.name}"):
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


def split_safe_path(path: str) -> list[str]:
    """The names along a path that stays inside the root; else raises UnsafePath."""
    if "\0" in path:
        raise UnsafePath(path, "it contains a NUL")
    try:
        size = len(os.fsencode(path))
    except UnicodeEncodeError:
        raise UnsafePath(path, "it is not text that a file name can hold") from None
    if size > MAX_NAME_BYTES:
        _refuse_long(path, size)
    if path.startswith(("/", "~")) or os.path.isabs(path):
        raise UnsafePath(path, "it is not relative to the home")
    names = split_names(path)
    if not names or ".." in names:
        raise UnsafePath(path, "it leaves the home" if names else "it names no file")
    # On some disks git treats .GIT as .git, and a .git further down makes a repository inside ours.
    if name_key(names[0]) == ".tacit" or any(name_key(name) == ".git" for name in names):
        raise UnsafePath(path, ".git and .tacit are not places for notes")
    return names


def _refuse_long(path: str, size: int) -> None:
    if size >= _MAX_PATH_BYTES:
        raise UnsafePath(path, f"it has {size} bytes, and a path has fewer than {_MAX_PATH_BYTES}")
    for name in split_names(path):
        if (name_size := len(os.fsencode(name))) > MAX_NAME_BYTES:
            raise UnsafePath(
                path, f"a name in it has {name_size} bytes, and a name has at most {MAX_NAME_BYTES}"
            )


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
        """The permissions of a file; of a missing one, owner only."""
        try:
            with self.folder(path) as (directory, name):
                return stat.S_IMODE(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return 0o600

    def write(self, path: str, data: bytes, expected: str | None, mode: int = 0o600) -> str:
        """Write if the file still has the digest the writer saw (None: there was no file).

        Hold the home's lock, so that two writers of ours can never both succeed.
        """
        with explain_disk_errors(f"write {path}"), self.folder(path, make=True) as (directory, name):
            if _digest_or_none(directory, name, path) != expected:
                raise ChangedOnDisk(path)
            _replace_in(directory, name, data, mode)
        return digest(data)

    def put(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Durable atomic replace, without checking the present file."""
        with explain_disk_errors(f"write {path}"), self.folder(path, make=True) as (directory, name):
            _replace_in(directory, name, data, mode)

    def remove(self, path: str, expected: str) -> None:
        with explain_disk_errors(f"remove {path}"), self.folder(path) as (directory, name):
            if _digest_or_none(directory, name, path) != expected:
                raise ChangedOnDisk(path)
            os.unlink(name, dir_fd=directory)
            os.fsync(directory)

    def resolve(self, path: str) -> str:
        """The path as spelled on disk; of a missing file, as it would be created. If the exact name does not
        exist, a name that some disks treat as the same is used, so that callers can check the result by name.
        Raises UnsafePath for a link on the way, or if several names match."""
        names = split_safe_path(path)
        parts: list[str] = []
        for index, name in enumerate(names):
            try:
                with self._open_directory(path, parts) as directory:
                    spelling = _find_spelling(directory, name, path)
            except FileNotFoundError:
                spelling = None
            if spelling is None:
                return "/".join([*parts, *(normalize("NFC", new) for new in names[index:])])
            parts.append(spelling)
        return "/".join(parts)

    @contextmanager
    def folder(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder of a file without following links; yields it and the file's name in it."""
        *folders, name = split_safe_path(path)
        with self._open_directory(path, folders, make=make) as directory:
            yield directory, name

    def files(self, *folders: str) -> Iterator[str]:
        """Every regular file below the folders, sorted, without links, devices and temporary files."""
        for folder in folders:
            if self._is_folder(folder):
                yield from _walk_files(str(self.root), folder)

    def _is_folder(self, folder: str) -> bool:
        try:
            with self._open_directory(folder, split_safe_path(folder)):
                return True
        except (FileNotFoundError, UnsafePath):
            return False

    @contextmanager
    def _open_directory(self, path: str, folders: list[str], *, make: bool = False) -> Iterator[int]:
        fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for folder in folders:
                if make:
                    _make_folder(fd, folder)
                child = _open_folder(fd, folder, path)
                os.close(fd)
                fd = child
            yield fd
        finally:
            os.close(fd)


def _find_spelling(directory: int, name: str, path: str) -> str | None:
    """The name as spelled in the folder; None if it has no such name."""
    entries = os.listdir(directory)
    if name in entries:
        return name
    matches = [entry for entry in entries if name_key(entry) == name_key(name)]
    if len(matches) > 1:
        raise UnsafePath(path, "several files are called nearly so. Write the name exactly as it is")
    return matches[0] if matches else None


def _make_folder(directory: int, name: str) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=directory)
        os.fsync(directory)


def _open_folder(directory: int, name: str, path: str) -> int:
    try:
        return os.open(name, _DIRECTORY_FLAGS, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise UnsafePath(path, f"{name} is a link or not a folder") from error
        raise


def _read_plain(directory: int, name: str, path: str, max_bytes: int = -1) -> bytes:
    # O_NONBLOCK: opening a FIFO must not wait for a writer.
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
            data = file.read(max_bytes)
        if is_encrypted(data):
            raise Locked(path)
        return data
    finally:
        os.close(fd)


# First bytes of files encrypted by git-crypt, OpenSSL (also used by transcrypt) and age.
_ENCRYPTED_PREFIXES = (
    b"\0GITCRYPT\0",
    b"Salted__",
    b"U2FsdGVkX1",
    b"age-encryption.org/v1\n",
    b"-----BEGIN AGE ENCRYPTED",
)


def is_encrypted(data: bytes) -> bool:
    """Whether the bytes are encrypted, so that they can be neither read as text nor edited as a note."""
    return data.startswith(_ENCRYPTED_PREFIXES)


def _walk_files(root: str, top: str) -> Iterator[str]:
    """Depth first, the files of a folder before its folders. scandir tells which entries are files without
    a stat for each, which saves half of the time for ten thousand files."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            entries = sorted(os.scandir(f"{root}/{folder}"), key=lambda entry: entry.name)
        except FileNotFoundError:  # removed in the meantime
            continue
        if any(entry.name == ".git" for entry in entries):
            continue  # skip another repository inside ours
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
def hold_lock(path: Path, wait: float = 30.0) -> Iterator[None]:
    """Hold a lock between processes. The kernel frees a flock when its holder dies, so it never has to be
    unlocked by hand; the file is never deleted, because then two processes could hold the lock."""
    with explain_disk_errors("take the home's lock"):
        make_directories(path.parent)  # missing in a cloned home, or if .tacit was deleted
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        acquire_flock(
            fd, wait, f"Another process has held {path.name} for {wait:.0f} s. Try again when it is done."
        )
        yield
    finally:
        os.close(fd)


def acquire_flock(fd: int, wait: float, message: str) -> None:
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

"""Copies of what was given, for hosts and agents that read files: ETHOS_CONTEXT.md and daily notes.

What must stay true:
- each session has a copy of its own, in a folder that only the owner opens, so no session reads another's;
- a copy never outlives its turn: where it cannot be replaced it is emptied;
- there are never more than some hundred of them;
- a daily note is added to by one process at a time, and gets one section of a session;
- nothing here raises: who wanted it written is told why it was not.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import date
from hashlib import sha256
from pathlib import Path

from tacit.errors import Busy, TacitError
from tacit.store import files
from tacit.store.home import Home

MIRROR = "ETHOS_CONTEXT.md"
MOST_MIRRORS = 256
_LARGEST_NOTE = 16 * 2**20
_WAIT = 0.25  # seconds for the lock: a turn is waiting
_FOLDER = re.compile(r"[0-9a-f]{16}")


def _told(doing: str, write: Callable[[], str]) -> str:
    """What it returns, or why it could not be done."""
    try:
        with files.explained(doing):
            return write()
    except Busy:
        return (
            f"Could not {doing}: another process is writing to the home. It is tried again in the next turn."
        )
    except TacitError as error:
        return str(error)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL or half a character in it
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"Could not {doing}: {why}."


# ETHOS_CONTEXT.md


def mirror_file(home: Home, directory: str | None, session_key: str) -> Path:
    """The folder is named by a hash: keys are chosen by others, and may hold anything."""
    name = sha256(session_key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return _mirrors(home, directory) / name / MIRROR


def _mirrors(home: Home, directory: str | None) -> Path:
    return home.private / "context" if directory is None else Path(directory)


def write_mirror(home: Home, directory: str | None, session_key: str, text: str) -> str:
    """Empty, or why it was not written. An empty text leaves an empty file."""
    if directory is None and not home.root.is_dir():
        return f"There is no home at {home.root}."  # and none is made by writing into it
    file = mirror_file(home, directory, session_key)
    data = text.encode("utf-8", "replace")
    reason = _told(f"write {MIRROR}", lambda: _mirrored(file, data))
    if reason and not _is_emptied(file):
        reason += f" What {file} says may be of an earlier turn."
    return reason


def empty_mirror(home: Home, directory: str | None, session_key: str) -> None:
    """After a turn that was not made: what an earlier one was given is not for this one."""
    _is_emptied(mirror_file(home, directory, session_key))


def _mirrored(file: Path, data: bytes) -> str:
    mirrors = file.parent.parent
    is_new = not file.parent.is_dir()
    files.make_directories(mirrors)
    for last in (False, False, True):
        try:
            _replace(mirrors, file.parent.name, data)
            break
        except FileNotFoundError:  # another process made room just now
            if last:
                raise
    if is_new:
        _make_room(mirrors, keep=file.parent.name)
    return ""


def _replace(mirrors: Path, session: str, data: bytes) -> None:
    """All of it or nothing. Not synced: after a power cut no turn is waiting for it."""
    with files.Tree(mirrors).folder(f"{session}/{MIRROR}", make=True) as (directory, name):
        temporary = files.temporary_name(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(temporary, flags, 0o600, dir_fd=directory)
            try:
                files.write_all(fd, data)
            finally:
                os.close(fd)
            os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=directory)
            raise


def _is_emptied(file: Path) -> bool:
    """Whether nothing of an earlier turn is left. To cut a file off needs no room on a full disk."""
    try:
        with files.Tree(file.parent.parent).folder(f"{file.parent.name}/{MIRROR}") as (directory, name):
            fd = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        try:
            is_ours = stat.S_ISREG(os.fstat(fd).st_mode)
            if is_ours:
                os.ftruncate(fd, 0)
            return is_ours
        finally:
            os.close(fd)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError, TacitError):
        return False


def _make_room(mirrors: Path, keep: str) -> None:
    """Remove the copies that were written longest ago. The folder may be one where other things are kept as
    well: only what looks exactly like ours is touched."""
    with suppress(OSError):
        found = [
            (entry.stat(follow_symlinks=False).st_mtime_ns, entry.path)
            for entry in os.scandir(mirrors)
            if _FOLDER.fullmatch(entry.name) and entry.name != keep and entry.is_dir(follow_symlinks=False)
        ]
        for _, path in sorted(found)[: max(0, len(found) + 1 - MOST_MIRRORS)]:
            with suppress(OSError):
                _remove(path)


def _remove(folder: str) -> None:
    names = os.listdir(folder)
    if MIRROR in names and all(name == MIRROR or _is_left_over(name) for name in names):
        for name in names:
            os.unlink(f"{folder}/{name}")
        os.rmdir(folder)


def _is_left_over(name: str) -> bool:
    """By a process that was killed while it wrote."""
    return name.startswith(f"{MIRROR}.tmp.") and files.is_temporary(name)


# Daily notes


def add_daily(
    home: Home, folder: Path, day: date, marker: str, section: str, earlier: Collection[date] = ()
) -> str:
    """Add a section to the note of a day, unless its marker stands there already, or in that of one of the
    earlier days. Empty, or why it is not there."""
    name = f"{day.isoformat()}.md"

    def add() -> str:
        if _is_marked(folder, (day, *earlier), marker):  # most turns end here, and wait for nobody
            return ""
        home.require()  # a lock would make a folder where there is no home any more
        with files.locked(home.lock, _WAIT):  # whoever else writes notes of the home holds it as well
            files.make_directories(folder)
            return _added(files.Tree(folder), name, marker, section)

    return _told(f"add to {name}", add)


def _is_marked(folder: Path, days: Collection[date], marker: str) -> bool:
    tree = files.Tree(folder)
    for day in days:
        with suppress(OSError, TacitError):
            if _has_line(tree.read(f"{day.isoformat()}.md", _LARGEST_NOTE), marker):
                return True
    return False


def _added(tree: files.Tree, name: str, marker: str, section: str) -> str:
    try:
        before = tree.read(name, _LARGEST_NOTE + 1)
    except FileNotFoundError:
        tree.write(name, _encoded(section), None)
        return ""
    if len(before) > _LARGEST_NOTE:
        return f"{name} is too large to add to. Move a part of it elsewhere."
    if not _is_text(before):
        return f"{name} is not text, so nothing was added to it. Look what it is."
    if _has_line(before, marker):
        return ""
    mode = stat.S_IMODE(os.stat(tree.root / name, follow_symlinks=False).st_mode)
    tree.write(name, before + _gap(before) + _encoded(section), files.digest(before), mode)
    return ""


def _encoded(section: str) -> bytes:
    return section.encode("utf-8", "replace") + b"\n"


def _gap(before: bytes) -> bytes:
    """What is missing for an empty line between."""
    if not before:
        return b""
    ends = len(before) - len(before.rstrip(b"\n"))
    return b"\n" * max(0, 2 - ends)


def _has_line(data: bytes, line: str) -> bool:
    return any(one.strip() == line.encode() for one in data.split(b"\n"))


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data

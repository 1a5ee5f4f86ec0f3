"""Copies of what was given, for hosts and agents that read files: ETHOS_CONTEXT.md and daily notes.

What must stay true:
- each session has a copy of its own, in a folder that only the owner opens, so no session reads another's;
- a copy never outlives its turn: where it cannot be replaced it is emptied;
- a turn that began earlier never replaces or empties the copy of one that began later. So a copy carries the
  moment at which its turn began, as the time of its file: other processes see it as well;
- no repository that the folder may stand in ever takes a copy along;
- there are never more than some hundred of them;
- a daily note is added to by one process at a time, and gets one section of a session;
- nothing here raises: who wanted it written is told why it was not.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import date
from hashlib import sha256
from pathlib import Path

from tacit.errors import Busy, TacitError
from tacit.store import files
from tacit.store.home import MIRROR, Home

NOTED = "context-folder"  # in .tacit: where copies are, for who empties one and has not read the config
MOST_MIRRORS = 256
_LARGEST_NOTE = 16 * 2**20
_WAIT = 0.25  # seconds for the lock: a turn is waiting
_PAGES = 60  # of daily notes that are looked through for a session that goes on
_PAGE = re.compile(r"\d{4}-\d\d-\d\d\.md")
_FOLDER = re.compile(r"[0-9a-f]{16}")
_IGNORE = ".gitignore"


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


def write_mirror(
    home: Home, directory: str | None, session_key: str, text: str, began: int | None = None
) -> str:
    """Empty, or why it was not written. An empty text leaves an empty file. `began`: when the turn did, in
    nanoseconds; now, where nobody says."""
    if directory is None and not home.root.is_dir():
        return f"There is no home at {home.root}."  # and none is made by writing into it
    began = time.time_ns() if began is None else began
    file = mirror_file(home, directory, session_key)
    data = text.encode("utf-8", "replace")
    reason = _told(f"write {MIRROR}", lambda: _mirrored(file, data, began))
    if directory is not None:
        _note_folder(home, directory)
        _ignore(file.parent)
    if reason and not _is_emptied(file, began):
        reason += f" What {file} says may be of an earlier turn."
    return reason


def empty_mirror(home: Home, directory: str | None, session_key: str, began: int | None = None) -> None:
    """After a turn that was not made: what an earlier one was given is not for this one. `directory`: None
    where the config was not read, or names none; then it is emptied where the last ones were written."""
    began = time.time_ns() if began is None else began
    for folder in {None, directory, _noted_folder(home)}:
        _is_emptied(mirror_file(home, folder, session_key), began)


def _noted_folder(home: Home) -> str | None:
    with suppress(OSError, ValueError):
        return (home.private / NOTED).read_text(encoding="utf-8").rstrip("\n") or None
    return None


def _note_folder(home: Home, directory: str) -> None:
    with suppress(OSError, ValueError, TacitError):
        if _noted_folder(home) != directory:
            files.replace(home.private / NOTED, f"{directory}\n".encode())


def _ignore(folder: Path) -> None:
    """It may stand in somebody's repository. Only our own folder is ignored: beside it may be theirs."""
    tree = files.Tree(folder.parent)
    with (
        suppress(OSError, ValueError, TacitError),
        tree.folder(f"{folder.name}/{_IGNORE}") as (directory, name),
    ):
        _write_new(directory, name, b"*\n", time.time_ns())


def _mirrored(file: Path, data: bytes, began: int) -> str:
    mirrors = file.parent.parent
    is_new = not file.parent.is_dir()
    files.make_directories(mirrors)
    for last in (False, False, True):
        try:
            _replace(mirrors, file.parent.name, data, began)
            break
        except FileNotFoundError:  # another process made room just now
            if last:
                raise
    if is_new:
        _make_room(mirrors, keep=file.parent.name)
    return ""


def _replace(mirrors: Path, session: str, data: bytes, began: int) -> None:
    """All of it or nothing. Not synced: after a power cut no turn is waiting for it."""
    with files.Tree(mirrors).folder(f"{session}/{MIRROR}", make=True) as (directory, name):
        temporary = files.temporary_name(name)
        try:
            _write_new(directory, temporary, data, began)
            if _is_newer(directory, name, began):
                os.unlink(temporary, dir_fd=directory)
            else:
                os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=directory)
            raise


def _write_new(directory: int, name: str, data: bytes, began: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, 0o600, dir_fd=directory)
    try:
        files.write_all(fd, data)
        os.utime(fd, ns=(began, began))
    finally:
        os.close(fd)


def _is_newer(directory: int, name: str, began: int) -> bool:
    try:
        return _is_later(os.stat(name, dir_fd=directory, follow_symlinks=False), began)
    except FileNotFoundError:
        return False


def _is_later(info: os.stat_result, began: int) -> bool:
    """Whether it is of a later turn. A time that is yet to come says only that the clock was set."""
    return began < info.st_mtime_ns <= time.time_ns()


def _is_emptied(file: Path, began: int) -> bool:
    """Whether nothing of an earlier turn is left. To cut a file off needs no room on a full disk."""
    try:
        with files.Tree(file.parent.parent).folder(f"{file.parent.name}/{MIRROR}") as (directory, name):
            fd = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        try:
            info = os.fstat(fd)
            is_ours = stat.S_ISREG(info.st_mode)
            if is_ours and not _is_later(info, began):
                os.ftruncate(fd, 0)
                os.utime(fd, ns=(began, began))
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
    if MIRROR in names and all(name in (MIRROR, _IGNORE) or _is_left_over(name) for name in names):
        for name in names:
            os.unlink(f"{folder}/{name}")
        os.rmdir(folder)


def _is_left_over(name: str) -> bool:
    """By a process that was killed while it wrote."""
    return name.startswith(f"{MIRROR}.tmp.") and files.is_temporary(name)


# Daily notes


def add_daily(
    home: Home, folder: Path, day: date, markers: Collection[str], section: str, *, goes_on: bool = False
) -> str:
    """Add a section to the note of a day, unless one of its markers stands there already. Of a session that
    goes on it may stand on an earlier page. Empty, or why it is not there."""
    name = f"{day.isoformat()}.md"

    def is_marked() -> bool:
        pages = [name, *_earlier(folder, name)] if goes_on else [name]
        return any(_is_marked(folder, page, markers) for page in pages)

    def add() -> str:
        if is_marked():  # most turns end here, and wait for nobody
            return ""
        home.require()  # a lock would make a folder where there is no home any more
        with files.locked(home.lock, _WAIT):  # whoever else writes notes of the home holds it as well
            files.make_directories(folder)
            return "" if is_marked() else _added(files.Tree(folder), name, section)

    return _told(f"add to {name}", add)


def _earlier(folder: Path, name: str) -> list[str]:
    """Pages of earlier days, the newest first. A session may go on for weeks."""
    with suppress(OSError):
        pages = [page for page in os.listdir(folder) if _PAGE.fullmatch(page) and page < name]
        return sorted(pages, reverse=True)[:_PAGES]
    return []


def _is_marked(folder: Path, page: str, markers: Collection[str]) -> bool:
    with suppress(OSError, TacitError):
        lines = {line.strip() for line in files.Tree(folder).read(page, _LARGEST_NOTE).split(b"\n")}
        return any(marker.encode() in lines for marker in markers)
    return False


def _added(tree: files.Tree, name: str, section: str) -> str:
    try:
        before = tree.read(name, _LARGEST_NOTE + 1)
    except FileNotFoundError:
        tree.write(name, _encoded(section), None)
        return ""
    if len(before) > _LARGEST_NOTE:
        return f"{name} is too large to add to. Move a part of it elsewhere."
    if not _is_text(before):
        return f"{name} is not text, so nothing was added to it. Look what it is."
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


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data

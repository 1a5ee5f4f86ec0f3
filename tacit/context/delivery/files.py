"""Writes context files (ETHOS_CONTEXT.md) and daily notes, for hosts and agents that read files.

What must stay true:
- each session has its own context file, in a folder that only the owner can open;
- a context file never outlives its turn: if it cannot be replaced, it is emptied;
- a turn never replaces or empties the file of a turn that began later. The start of the turn is stored as the
  file's modification time, so that other processes see it too;
- if the folder is inside a git repository, git ignores the files;
- there are never more than a few hundred files;
- only one process at a time appends to a daily note, and each session has one section;
- nothing here raises: the caller gets the reason as text.
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
from tacit.git.conflicts import NoteTree
from tacit.home import files
from tacit.home.layout import CONTEXT_FILE, Home

FOLDER_NOTE = (
    "context-folder"  # in .tacit: names the folder of the context files, for callers without the config
)
MAX_CONTEXT_FILES = 256
_MAX_NOTE_BYTES = 16 * 2**20
_LOCK_TIMEOUT_S = 0.25  # a turn is waiting
_MAX_PAGES = 60  # earlier daily notes that are searched for a section of the session
_PAGE_NAME = re.compile(r"\d{4}-\d\d-\d\d\.md")
_FOLDER_NAME = re.compile(r"[0-9a-f]{16}")
_IGNORE = ".gitignore"


def _explain_failure(doing: str, write: Callable[[], str]) -> str:
    """Return the result of `write`, or why it failed."""
    try:
        with files.explain_disk_errors(doing):
            return write()
    except Busy:
        return (
            f"Could not {doing}: another process is writing to the home. It is tried again in the next turn."
        )
    except TacitError as error:
        return str(error)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL or half a character in it
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return f"Could not {doing}: {reason}."


# ETHOS_CONTEXT.md


def context_file_path(home: Home, directory: str | None, session_key: str) -> Path:
    """The folder name is a hash, because keys come from outside and may contain anything."""
    name = sha256(session_key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return _context_folder(home, directory) / name / CONTEXT_FILE


def _context_folder(home: Home, directory: str | None) -> Path:
    return home.private / "context" if directory is None else Path(directory)


def write_context_file(
    home: Home, directory: str | None, session_key: str, text: str, began: int | None = None
) -> str:
    """Return empty, or why it was not written. An empty text leaves an empty file. `began`: the start of the
    turn in nanoseconds; default now."""
    if directory is None and not home.root.is_dir():
        return f"There is no home at {home.root}."  # and writing must not create one
    began = time.time_ns() if began is None else began
    file = context_file_path(home, directory, session_key)
    data = text.encode("utf-8", "replace")
    reason = _explain_failure(f"write {CONTEXT_FILE}", lambda: _write_copy(file, data, began))
    if directory is not None:
        _write_folder_note(home, directory)
        _add_gitignore(file.parent)
    if reason and not _try_empty(file, began):
        reason += f" What {file} says may be of an earlier turn."
    return reason


def clear_context_file(home: Home, directory: str | None, session_key: str, began: int | None = None) -> None:
    """Call this after a turn without a result, so that the file does not keep an earlier turn's context.
    `directory`: None if the config was not read or names none; the last used folder is cleared too."""
    began = time.time_ns() if began is None else began
    for folder in {None, directory, _read_folder_note(home)}:
        _try_empty(context_file_path(home, folder, session_key), began)


def _read_folder_note(home: Home) -> str | None:
    with suppress(OSError, ValueError):
        return (home.private / FOLDER_NOTE).read_text(encoding="utf-8").rstrip("\n") or None
    return None


def _write_folder_note(home: Home, directory: str) -> None:
    with suppress(OSError, ValueError, TacitError):
        if _read_folder_note(home) != directory:
            files.replace(home.private / FOLDER_NOTE, f"{directory}\n".encode())


def _add_gitignore(folder: Path) -> None:
    """Make git ignore the session's folder, in case it is inside a repository, but nothing beside it."""
    tree = files.Tree(folder.parent)
    with (
        suppress(OSError, ValueError, TacitError),
        tree.folder(f"{folder.name}/{_IGNORE}") as (directory, name),
    ):
        _write_new(directory, name, b"*\n", time.time_ns())


def _write_copy(file: Path, data: bytes, began: int) -> str:
    context_folder = file.parent.parent
    is_new = not file.parent.is_dir()
    files.make_directories(context_folder)
    for is_last_attempt in (False, False, True):
        try:
            _replace_file(context_folder, file.parent.name, data, began)
            break
        except FileNotFoundError:  # another process removed the folder just now
            if is_last_attempt:
                raise
    if is_new:
        _remove_oldest(context_folder, keep=file.parent.name)
    return ""


def _replace_file(context_folder: Path, session: str, data: bytes, began: int) -> None:
    """Atomic, but not synced: after a power cut no turn needs the file."""
    with files.Tree(context_folder).folder(f"{session}/{CONTEXT_FILE}", make=True) as (directory, name):
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
    """Whether the file is of a later turn. A time in the future only means that the clock was set."""
    return began < info.st_mtime_ns <= time.time_ns()


def _try_empty(file: Path, began: int) -> bool:
    """Truncate the file, which works even on a full disk; return whether no earlier content is left."""
    try:
        with files.Tree(file.parent.parent).folder(f"{file.parent.name}/{CONTEXT_FILE}") as (directory, name):
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


def _remove_oldest(context_folder: Path, keep: str) -> None:
    """Remove the oldest context files. The folder may contain other things: only folders that look exactly
    like ours are touched."""
    with suppress(OSError):
        folders = [
            (entry.stat(follow_symlinks=False).st_mtime_ns, entry.path)
            for entry in os.scandir(context_folder)
            if _FOLDER_NAME.fullmatch(entry.name)
            and entry.name != keep
            and entry.is_dir(follow_symlinks=False)
        ]
        for _, path in sorted(folders)[: max(0, len(folders) + 1 - MAX_CONTEXT_FILES)]:
            with suppress(OSError):
                _remove_folder(path)


def _remove_folder(folder: str) -> None:
    names = os.listdir(folder)
    if CONTEXT_FILE in names and all(name in (CONTEXT_FILE, _IGNORE) or _is_leftover(name) for name in names):
        for name in names:
            os.unlink(f"{folder}/{name}")
        os.rmdir(folder)


def _is_leftover(name: str) -> bool:
    """Whether a process that was killed while writing left the file."""
    return name.startswith(f"{CONTEXT_FILE}.tmp.") and files.is_temporary(name)


# Daily notes


def append_daily_section(
    home: Home, folder: Path, day: date, markers: Collection[str], section: str, *, goes_on: bool = False
) -> str:
    """Append a section to the daily note, unless one of its markers is there already; with `goes_on`, earlier
    notes are checked too. Return empty, or why it failed."""
    name = f"{day.isoformat()}.md"

    def is_marked() -> bool:
        pages = [name, *_earlier_pages(folder, name)] if goes_on else [name]
        return any(_is_marked(folder, page, markers) for page in pages)

    def add() -> str:
        _refuse_links(home, folder)
        if is_marked():  # most turns end here, without the lock
            return ""
        home.require()  # locking would create a folder if the home is gone
        with files.hold_lock(home.lock, _LOCK_TIMEOUT_S):  # all writers of notes in the home take it
            files.make_directories(folder)
            return "" if is_marked() else _append_section(NoteTree(folder), name, section)

    return _explain_failure(f"add to {name}", add)


def _refuse_links(home: Home, folder: Path) -> None:
    """Refuse links inside the home: it may be a clone of another person's repository."""
    if folder.is_relative_to(home.root):
        with suppress(FileNotFoundError):
            inside = folder.relative_to(home.root).as_posix()
            with files.Tree(home.root).folder(f"{inside}/page.md"):
                pass


def _earlier_pages(folder: Path, name: str) -> list[str]:
    """Notes of earlier days, newest first. A session may last for weeks."""
    with suppress(OSError):
        pages = [page for page in os.listdir(folder) if _PAGE_NAME.fullmatch(page) and page < name]
        return sorted(pages, reverse=True)[:_MAX_PAGES]
    return []


def _is_marked(folder: Path, page: str, markers: Collection[str]) -> bool:
    with suppress(OSError, TacitError):
        lines = {line.strip() for line in files.Tree(folder).read(page, _MAX_NOTE_BYTES).split(b"\n")}
        return any(marker.encode() in lines for marker in markers)
    return False


def _append_section(tree: files.Tree, name: str, section: str) -> str:
    try:
        content = tree.read(name, _MAX_NOTE_BYTES + 1)
    except FileNotFoundError:
        tree.write(name, _encode(section), None)
        return ""
    if len(content) > _MAX_NOTE_BYTES:
        return f"{name} is too large to add to. Move a part of it elsewhere."
    if not _is_text(content):
        return f"{name} is not text, so nothing was added to it. Look what it is."
    mode = stat.S_IMODE(os.stat(tree.root / name, follow_symlinks=False).st_mode)
    tree.write(name, content + _missing_newlines(content) + _encode(section), files.digest(content), mode)
    return ""


def _encode(section: str) -> bytes:
    return section.encode("utf-8", "replace") + b"\n"


def _missing_newlines(content: bytes) -> bytes:
    """The newlines needed for an empty line before the section."""
    if not content:
        return b""
    newlines = len(content) - len(content.rstrip(b"\n"))
    return b"\n" * max(0, 2 - newlines)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data

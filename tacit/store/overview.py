"""A quick look at a home, from files alone: nothing heavy is imported and no process is started."""

from __future__ import annotations

import fcntl
import json
import os
import struct
from collections.abc import Iterator

from tacit.store.home import CONVERSATIONS, NOTE_FOLDERS, Home
from tacit.store.listing import walk


class Overview:
    """What there is to see. A plain class, for the same reason as everything else here."""

    home: str
    branch: str  # empty: HEAD is detached
    commit: str
    transcripts: int
    last_transcript: str
    notes: int
    edited: int  # notes changed after the branch last moved
    open: list[tuple[str, str]]  # id and path; no path before the first message
    left_open: list[str]
    waiting: list[str]


def look(home: Home) -> Overview:
    root = str(home.root)
    seen = Overview()
    seen.home = root
    seen.branch, seen.commit, moved = _head(root)
    conversations = [(path, info.st_mtime) for path, info in walk(root, CONVERSATIONS)]
    seen.transcripts = len(conversations)
    seen.last_transcript = max(conversations, key=_began, default=("", 0.0))[0]
    notes = [file for folder in NOTE_FOLDERS for file in walk(root, folder)]
    seen.notes = len(notes)
    seen.edited = _edited(root, [(path, info) for path, info in notes if info.st_mtime > moved])
    seen.open, seen.left_open, seen.waiting = _sessions(root)
    return seen


def _began(transcript: tuple[str, float]) -> tuple[str, float, str]:
    """The minute in the name of a transcript, and within it when the file was written."""
    path, changed = transcript
    minute = path[len(CONVERSATIONS) + 1 :][: len("2026/02/16/1845")]
    return (minute if minute.replace("/", "").isdecimal() else "", changed, path)


def _head(root: str) -> tuple[str, str, float]:
    """Branch, commit, and when the branch last moved."""
    text = _read(f"{root}/.git/HEAD").strip()
    if not text.startswith("ref: "):
        return "", text, 0.0
    ref = text[5:]
    commit = _read(f"{root}/.git/{ref}").strip() or _packed(root, ref)
    return ref.removeprefix("refs/heads/"), commit, _changed(f"{root}/.git/logs/{ref}", f"{root}/.git/{ref}")


def _packed(root: str, ref: str) -> str:
    """`git gc` moves branches into one file."""
    lines = (line.partition(" ") for line in _read(f"{root}/.git/packed-refs").split("\n"))
    return next((commit for commit, _, name in lines if name == ref), "")


def _changed(*paths: str) -> float:
    for path in paths:
        try:
            return os.stat(path).st_mtime
        except OSError:
            continue
    return 0.0


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _edited(root: str, newer: list[tuple[str, os.stat_result]]) -> int:
    """How many of the files that are newer than the last commit git itself has not just written, as it does
    all of them in a clone."""
    written = _index(f"{root}/.git/index") if newer else {}
    return sum(written.get(path) != (info.st_mtime_ns, info.st_size) for path, info in newer)


def _index(file: str) -> dict[str, tuple[int, int]]:
    """Path to time and size, from git's index; nothing when it is of a kind we do not read."""
    try:
        with open(file, "rb") as opened:
            data = opened.read()
        magic, version, count = _INDEX_HEAD.unpack_from(data)
        if magic != b"DIRC" or version not in (2, 3):
            return {}
        return dict(_index_entries(data, version, count))
    except (OSError, ValueError, struct.error):
        return {}


_INDEX_HEAD = struct.Struct(">4sII")
_INDEX_ENTRY = struct.Struct(
    ">8xII20xI20xH"
)  # time, nanoseconds, size and flags; 20 is the length of a SHA-1


def _index_entries(data: bytes, version: int, count: int) -> Iterator[tuple[str, tuple[int, int]]]:
    position = _INDEX_HEAD.size
    for _ in range(count):
        seconds, nanoseconds, size, flags = _INDEX_ENTRY.unpack_from(data, position)
        name = position + _INDEX_ENTRY.size + (2 if version == 3 and flags & 0x4000 else 0)
        end = data.index(b"\0", name)
        yield os.fsdecode(data[name:end]), (seconds * 10**9 + nanoseconds, size)
        position += (end - position + 8) // 8 * 8  # entries are padded to eight bytes, with one NUL at least


def _sessions(root: str) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    alive: list[tuple[str, str]] = []
    left: list[str] = []
    waiting: list[str] = []
    for name in sorted(_names(f"{root}/.tacit/sessions")):
        try:
            record = json.loads(_read(f"{root}/.tacit/sessions/{name}"))
            path, detached, session_id = record["path"], record["detached"], record["opening"]["session_id"]
            state = "open" if path is None else _state(f"{root}/{path}", detached)
        except (ValueError, KeyError, TypeError, OSError):
            continue
        if state == "open":
            alive.append((str(session_id), path or ""))
        else:
            (waiting if state == "sealed" else left).append(path)
    return alive, left, waiting


def _state(file: str, detached: bool) -> str:
    """From the file itself: its rights may have been changed, or lost on the way to another disk."""
    with open(file, "rb") as opened:
        head = opened.read(65536).partition(b"\n---")[0]
        if b"\nended: " in head:
            return "sealed"
        return "open" if detached or _is_held(opened.fileno()) else "left open"


def _names(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith(".json")]
    except OSError:
        return []


def _is_held(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False

"""A quick look at a home, from files alone: nothing heavy is imported and no process is started."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator

from tacit.store.home import CONVERSATIONS, NOTE_FOLDERS, Home


class Overview:
    """What there is to see. A plain class, for the same reason as everything else here."""

    home: str
    branch: str  # empty: HEAD is detached
    commit: str
    transcripts: int
    last_transcript: str
    notes: int
    edited: int  # notes changed after the branch last moved
    open: list[str]
    left_open: list[str]
    waiting: list[str]


def look(home: Home) -> Overview:
    root = str(home.root)
    seen = Overview()
    seen.home = root
    seen.branch, seen.commit, moved = _head(root)
    conversations = sorted(path for path, _ in _files(root, CONVERSATIONS))
    seen.transcripts = len(conversations)
    seen.last_transcript = conversations[-1] if conversations else ""
    notes = [changed for folder in NOTE_FOLDERS for _, changed in _files(root, folder)]
    seen.notes = len(notes)
    seen.edited = sum(changed > moved for changed in notes)
    seen.open, seen.left_open, seen.waiting = _sessions(root)
    return seen


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


def _files(root: str, folder: str) -> Iterator[tuple[str, float]]:
    """Markdown files below a folder with the time each was changed."""
    stack = [folder]
    while stack:
        here = stack.pop()
        try:
            entries = list(os.scandir(f"{root}/{here}"))
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                stack.append(f"{here}/{entry.name}")
            elif entry.name.endswith(".md") and entry.is_file(follow_symlinks=False):
                yield f"{here}/{entry.name}", entry.stat(follow_symlinks=False).st_mtime


def _sessions(root: str) -> tuple[list[str], list[str], list[str]]:
    alive: list[str] = []
    left: list[str] = []
    waiting: list[str] = []
    for name in sorted(_names(f"{root}/.tacit/sessions")):
        try:
            record = json.loads(_read(f"{root}/.tacit/sessions/{name}"))
            path, detached, session_id = record["path"], record["detached"], record["opening"]["session_id"]
        except (ValueError, KeyError, TypeError):
            continue
        if path is None:
            alive.append(f"{session_id} (no message yet)")
        elif not os.access(f"{root}/{path}", os.F_OK):
            continue
        elif not os.stat(f"{root}/{path}").st_mode & 0o200:
            waiting.append(path)
        elif detached or _is_held(f"{root}/{path}"):
            alive.append(path)
        else:
            left.append(path)
    return alive, left, waiting


def _names(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith(".json")]
    except OSError:
        return []


def _is_held(path: str) -> bool:
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False

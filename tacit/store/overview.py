"""A quick look at a home, from files alone: nothing heavy is imported and no process is started."""

from __future__ import annotations

import fcntl
import json
import os
import re
import struct
from collections.abc import Iterator

from tacit.store import spool
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
    daemon: dict[str, object] | None  # what it says of itself; empty while it starts; None: none runs
    spool: int  # records that wait for a daemon
    unlearned: int  # sealed transcripts that nothing was looked for in yet, or not by all extractors
    unlearned_why: str  # the last reason, where that failed
    drafts: int  # that wait for a review
    settings: dict[str, object] | None  # who is left out; None: the config is not written plainly enough


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
    seen.daemon = _daemon(root)
    seen.spool = spool.waiting(root)
    open_now = {path for _, path in seen.open}
    sealed = [path for path, _ in conversations if path not in open_now]
    seen.unlearned, seen.unlearned_why = _unlearned(f"{root}/.tacit/runs.jsonl", sealed)
    seen.drafts = sum(1 for path, _ in notes if path.startswith("drafts/") and path.count("/") == 1)
    seen.settings = settings(_read(str(home.config)))
    return seen


def _unlearned(runs: str, sealed: list[str]) -> tuple[int, str]:
    """By the last word on each transcript. Most lines are only glanced at: there is one for each."""
    left = set(sealed)
    why = ""
    for line in _read(runs).split("\n"):
        path = line.partition('"transcript": "')[2].partition('"')[0]
        if path and '"failed": []' in line:
            left.discard(path)
        elif path in left:
            why = line.partition('"why": "')[2].partition('"}')[0].replace('\\"', '"') or why
    return len(left), why if left else ""


def adopts(home: Home) -> bool:
    """Whether the config names workspaces, by the look of it."""
    return _ADOPTS.search(_read(str(home.config))) is not None


def names_models(home: Home) -> bool:
    """Whether the config names a model that is asked something, by the look of it."""
    return _MODEL.search(_COMMENT.sub("", _read(str(home.config)))) is not None


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


# ---------------------------------------------------------------- the daemon


def _daemon(root: str) -> dict[str, object] | None:
    """By its lock, which dies with it: files that a daemon left behind say nothing."""
    try:
        with open(f"{root}/.tacit/daemon.lock", "rb") as lock:
            if not _is_held(lock.fileno()):
                return None
    except OSError:
        return None
    try:
        said = json.loads(_read(f"{root}/.tacit/daemon.json"))
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


# ---------------------------------------------------------------- a few settings


# With their defaults.
SETTINGS: dict[str, object] = {
    "inject.enabled": True,
    "inject.lanes": ["bootstrap", "runtime"],
    "inject.exclude_agents": [],
    "capture.enabled": True,
    "capture.exclude_agents": [],
    "memory.read_only": None,
}
LANES = ("bootstrap", "runtime", "file", "daily")
_ADOPTS = re.compile(r"""^[ {]*["']?workspaces\b(?!["']?: *\[ *\] *$)""", re.MULTILINE)
_MODEL = re.compile(r"""(?:\b|_)model["']?\s*:\s*["']?(?!null\b|~|none\b|bundled\b)[A-Za-z/$]""")
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_SECTION = re.compile(r"([A-Za-z_][A-Za-z0-9_]*):(?: .*)?")
_KEY = re.compile(r"( +)([A-Za-z_][A-Za-z0-9_]*):(?: +([A-Za-z0-9_., \[\]-]*?))?(?: +#.*)?")
_FLOW = re.compile(r": +\{([^{}]*)\}")
_COMMA = re.compile(r",(?![^\[]*\])")  # that is not in a list
_PAIR = re.compile(r" *([A-Za-z_][A-Za-z0-9_]*): +(\[[A-Za-z0-9_., -]*\]|[A-Za-z0-9_.-]+) *")
_ITEM = re.compile(r" *- +([A-Za-z0-9_-]+)(?: +#.*)?")
_QUOTED = re.compile(r"'[^']*'|\"[^\"\\]*\"")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_FLAGS = {"true": True, "false": False, "null": None}
_NO_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")


def settings(text: str) -> dict[str, object] | None:
    """Some settings of a config that is written as plainly as `tacit init` writes it. None for every other
    form, however right it may be: YAML is not read here, and a wrong answer is worse than none."""
    found: dict[str, object] = {}
    sections: dict[str, list[str]] = {}
    name = ""
    for line in text.split("\n"):
        if not line.strip(" ") or line.lstrip(" ").startswith("#"):
            continue
        if not _is_closed(line):
            return None
        if line[0] != " ":
            begun = _SECTION.fullmatch(line)
            if begun is None or begun[1] in sections:
                return None
            name = begun[1]
        if not name:  # the whole config is indented
            return None
        sections.setdefault(name, []).append(line)
    for name in ("inject", "capture", "memory"):
        if not _take_section(found, name, sections.get(name, [f"{name}:"])):
            return None
    return {name: found.get(name, default) for name, default in SETTINGS.items()}


def _is_closed(line: str) -> bool:
    """Whether nothing in it can reach into the next line: no quote, bracket or block stays open."""
    bare = _QUOTED.sub("", line).partition(" #")[0]
    odd = any(ch in bare for ch in "'\"&*!|>%@`\ufffd") or not line.isprintable()
    return not odd and all(bare.count(one) == bare.count(other) for one, other in ("[]", "{}"))


def _take_section(found: dict[str, object], section: str, lines: list[str]) -> bool:
    """Whether it is certain what is meant."""
    head = lines[0].partition(" #")[0].rstrip(" ")
    if len(lines) == 1 and (flow := _FLOW.fullmatch(head, len(section))):
        return _take_flow(found, section, flow[1].strip(" "))
    if head != f"{section}:":
        return False
    indent, name = "", ""
    for line in lines[1:]:
        item, key = _ITEM.fullmatch(line), _KEY.fullmatch(line)
        if item is not None:
            if not name or not _add_item(found, name, item[1]):
                return False
            continue
        if key is None or key[1] != (indent := indent or key[1]) or found.get(name) == []:
            return False
        name = f"{section}.{key[2]}"
        if name in found or not _take(found, name, key[3] or ""):
            return False
        name = "" if key[3] else name  # only a key without a value can have items below it
    return found.get(name) != []


def _take_flow(found: dict[str, object], section: str, inside: str) -> bool:
    for part in _COMMA.split(inside) if inside else []:
        pair = _PAIR.fullmatch(part)
        name = f"{section}.{pair[1]}" if pair else ""
        if pair is None or name in found or not _take(found, name, pair[2]):
            return False
    return True


def _take(found: dict[str, object], name: str, value: str) -> bool:
    if name not in SETTINGS:
        found[name] = value
        return True
    default = SETTINGS[name]
    if default is None:
        found[name] = _FLAGS.get(value)
        return value in _FLAGS
    if isinstance(default, bool):
        found[name] = value == "true"
        return value in ("true", "false")
    items = [item.strip(" ") for item in value[1:-1].split(",")] if value not in ("", "[]") else []
    found[name] = items
    is_list = not value or (value[0] == "[" and value[-1] == "]")
    return is_list and len(set(items)) == len(items) and all(_is_word(name, item) for item in items)


def _add_item(found: dict[str, object], name: str, item: str) -> bool:
    items = found[name]
    if not isinstance(items, list):  # of a setting that nobody asks about
        return name not in SETTINGS
    items.append(item)
    return _is_word(name, item) and items.count(item) == 1


def _is_word(name: str, item: str) -> bool:
    if name == "inject.lanes":
        return item in LANES
    return _WORD.fullmatch(item) is not None and item.lower() not in _NO_WORDS

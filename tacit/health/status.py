"""A quick overview of a home, from files only: imports nothing heavy and starts no process."""

from __future__ import annotations

import fcntl
import json
import os
import re

from tacit.git.index_file import list_unmerged, read_entries
from tacit.home.layout import CONFLICTS, CONVERSATIONS, NOTE_FILES, NOTE_FOLDERS, Home
from tacit.home.listing import TEXT_ENDINGS, walk
from tacit.transcripts import spool


class Overview:
    """The state of a home. A plain class, because importing dataclasses would be too slow here."""

    home: str
    branch: str  # empty: HEAD is detached
    commit: str
    transcripts: int
    last_transcript: str
    notes: int
    edited: int  # notes changed after the branch last moved
    conflicts: list[tuple[str, str]]  # files in a merge conflict, and what to do
    open: list[tuple[str, str]]  # session id and path; no path before the first message
    left_open: list[str]
    waiting: list[str]
    daemon: dict[str, object] | None  # its state file; empty while it starts; None: not running
    spool: int  # events that wait for a daemon
    set_aside: str  # quarantined events and why; empty: none
    unlearned: int  # finalized transcripts that not all extractors have processed yet
    unlearned_why: str  # the last reason, if extraction failed
    drafts: int  # waiting for review
    settings: dict[str, object] | None  # excluded agents and the like; None: the config is not simple enough


def inspect_home(home: Home) -> Overview:
    root = str(home.root)
    overview = Overview()
    overview.home = root
    overview.branch, overview.commit, moved = _read_head(root)
    conversations = [(path, info.st_mtime) for path, info in walk(root, CONVERSATIONS)]
    overview.transcripts = len(conversations)
    overview.last_transcript = max(conversations, key=_start_key, default=("", 0.0))[0]
    texts = [file for folder in NOTE_FOLDERS for file in walk(root, folder, TEXT_ENDINGS)]
    notes = [file for file in texts if file[0].endswith(".md")]
    overview.notes = len(notes)
    overview.edited = _count_edited(root, [(path, info) for path, info in notes if info.st_mtime > moved])
    overview.conflicts = _find_conflicts(home, [path for path, _ in texts])
    overview.open, overview.left_open, overview.waiting = _read_sessions(root)
    overview.daemon = _read_daemon(root)
    overview.spool = spool.count_waiting(root)
    overview.set_aside = spool.report_quarantined(root)
    open_now = {path for _, path in overview.open}
    sealed = [path for path, _ in conversations if path not in open_now]
    overview.unlearned, overview.unlearned_why = _count_unlearned(f"{root}/.tacit/runs.jsonl", sealed)
    overview.drafts = sum(1 for path, _ in notes if path.startswith("drafts/") and path.count("/") == 1)
    overview.settings = read_settings(_read_text(str(home.config)))
    return overview


def _count_unlearned(runs: str, sealed: list[str]) -> tuple[int, str]:
    """Uses the last line about each transcript. Lines are not parsed as JSON, because there are many."""
    pending = set(sealed)
    reason = ""
    for line in _read_text(runs).split("\n"):
        path = line.partition('"transcript": "')[2].partition('"')[0]
        if path and '"failed": []' in line:
            pending.discard(path)
        elif path in pending:
            reason = line.partition('"why": "')[2].partition('"}')[0].replace('\\"', '"') or reason
    return len(pending), reason if pending else ""


def has_workspaces(home: Home) -> bool:
    """Whether the config seems to list workspaces (a text search)."""
    return _WORKSPACES_KEY.search(_read_text(str(home.config))) is not None


def uses_models(home: Home) -> bool:
    """Whether the config seems to name a model that would be called (a text search)."""
    return _MODEL_KEY.search(_COMMENT.sub("", _read_text(str(home.config)))) is not None


def _start_key(transcript: tuple[str, float]) -> tuple[str, float, str]:
    """Sort key: the minute in the name of a transcript, then the time of the file."""
    path, changed = transcript
    minute = path[len(CONVERSATIONS) + 1 :][: len("2026/02/16/1845")]
    return (minute if minute.replace("/", "").isdecimal() else "", changed, path)


def _read_head(root: str) -> tuple[str, str, float]:
    """Branch, commit, and when the branch last moved."""
    text = _read_text(f"{root}/.git/HEAD").strip()
    if not text.startswith("ref: "):
        return "", text, 0.0
    ref = text[5:]
    commit = _read_text(f"{root}/.git/{ref}").strip() or _read_packed_ref(root, ref)
    return (
        ref.removeprefix("refs/heads/"),
        commit,
        _modified_time(f"{root}/.git/logs/{ref}", f"{root}/.git/{ref}"),
    )


def _read_packed_ref(root: str, ref: str) -> str:
    """`git gc` moves branches into one file."""
    lines = (line.partition(" ") for line in _read_text(f"{root}/.git/packed-refs").split("\n"))
    return next((commit for commit, _, name in lines if name == ref), "")


def _modified_time(*paths: str) -> float:
    for path in paths:
        try:
            return os.stat(path).st_mtime
        except OSError:
            continue
    return 0.0


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _count_edited(root: str, newer: list[tuple[str, os.stat_result]]) -> int:
    """How many of the files newer than the last commit were not written by git itself, which writes all of
    them in a clone."""
    written = _read_index(f"{root}/.git/index") if newer else {}
    return sum(written.get(path) != (info.st_mtime_ns, info.st_size) for path, info in newer)


def _read_index(file: str) -> dict[str, tuple[int, int]]:
    """Path to time and size, from git's index."""
    try:
        with open(file, "rb") as stream:
            return {path: (changed, size) for path, changed, size, *_ in read_entries(stream.read())}
    except (OSError, IndexError):
        return {}


def _find_conflicts(home: Home, notes: list[str]) -> list[tuple[str, str]]:
    """Files in a merge conflict, and what to do. All notes are checked; of the many conversations, only those
    that the search index could not read."""
    root = str(home.root)
    suspects = [
        path
        for path in (*notes, *list_known_conflicts(home), *NOTE_FILES)
        if _may_be_in_conflict(f"{root}/{path}")
    ]
    if not suspects and not list_unmerged(root):
        return []
    from tacit.git.conflicts import conflict_problems  # imports markdown, which is rarely needed

    return [
        (problem.where, f"{problem.what} {problem.todo}") for problem in conflict_problems(home, suspects)
    ]


def list_known_conflicts(home: Home) -> list[str]:
    """Conversations and workspace files that the search index could not read in its last update."""
    return [path for path in _read_text(str(home.private / CONFLICTS)).split("\n") if path]


def _may_be_in_conflict(file: str) -> bool:
    try:
        with open(file, "rb") as stream:
            data = stream.read()
    except OSError:
        return False
    return b"<<<<<<<" in data or b">>>>>>>" in data


def _read_sessions(root: str) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    open_sessions: list[tuple[str, str]] = []
    left_open: list[str] = []
    waiting: list[str] = []
    for name in sorted(_list_json(f"{root}/.tacit/sessions")):
        try:
            record = json.loads(_read_text(f"{root}/.tacit/sessions/{name}"))
            path, detached, session_id = record["path"], record["detached"], record["opening"]["session_id"]
            state = "open" if path is None else _session_state(f"{root}/{path}", detached)
        except (ValueError, KeyError, TypeError, OSError):
            continue
        if state == "open":
            open_sessions.append((str(session_id), path or ""))
        else:
            (waiting if state == "sealed" else left_open).append(path)
    return open_sessions, left_open, waiting


def _session_state(file: str, detached: bool) -> str:
    """Read from the file, because its permissions may have been changed, or lost in a copy."""
    with open(file, "rb") as stream:
        head = stream.read(65536).partition(b"\n---")[0]
        if b"\nended: " in head:
            return "sealed"
        return "open" if detached or _is_held(stream.fileno()) else "left open"


def _list_json(folder: str) -> list[str]:
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


def _read_daemon(root: str) -> dict[str, object] | None:
    """Checks the lock, which dies with the daemon: files that it left behind prove nothing."""
    try:
        with open(f"{root}/.tacit/daemon.lock", "rb") as lock:
            if not _is_held(lock.fileno()):
                return None
    except OSError:
        return None
    try:
        state = json.loads(_read_text(f"{root}/.tacit/daemon.json"))
    except ValueError:
        return {}
    return state if isinstance(state, dict) else {}


# ---------------------------------------------------------------- a few settings


# Settings and their defaults.
DEFAULT_SETTINGS: dict[str, object] = {
    "inject.enabled": True,
    "inject.lanes": ["bootstrap", "runtime"],
    "inject.exclude_agents": [],
    "capture.enabled": True,
    "capture.exclude_agents": [],
    "memory.read_only": None,
}
DELIVERY_MODES = ("bootstrap", "runtime", "file", "daily")
_WORKSPACES_KEY = re.compile(r"""^[ {]*["']?workspaces\b(?!["']?: *\[ *\] *$)""", re.MULTILINE)
_MODEL_KEY = re.compile(r"""(?:\b|_)model["']?\s*:\s*["']?(?!null\b|~|none\b|bundled\b)[A-Za-z/$]""")
_COMMENT = re.compile(r"^\s*#.*$", re.MULTILINE)
_SECTION = re.compile(r"([A-Za-z_][A-Za-z0-9_]*):(?: .*)?")
_KEY = re.compile(r"( +)([A-Za-z_][A-Za-z0-9_]*):(?: +([A-Za-z0-9_., \[\]-]*?))?(?: +#.*)?")
_FLOW = re.compile(r": +\{([^{}]*)\}")
_COMMA = re.compile(r",(?![^\[]*\])")  # a comma outside lists
_PAIR = re.compile(r" *([A-Za-z_][A-Za-z0-9_]*): +(\[[A-Za-z0-9_., -]*\]|[A-Za-z0-9_.-]+) *")
_ITEM = re.compile(r" *- +([A-Za-z0-9_-]+)(?: +#.*)?")
_QUOTED = re.compile(r"'[^']*'|\"[^\"\\]*\"")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_BOOLEANS = {"true": True, "false": False, "null": None}
_RESERVED_WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")


def read_settings(text: str) -> dict[str, object] | None:
    """Some settings of a config in the simple form that `tacit init` writes. None for any other form, even if
    valid: this is no YAML parser, and a wrong answer is worse than none."""
    values: dict[str, object] = {}
    sections: dict[str, list[str]] = {}
    name = ""
    for line in text.split("\n"):
        if not line.strip(" ") or line.lstrip(" ").startswith("#"):
            continue
        if not _is_closed(line):
            return None
        if line[0] != " ":
            match = _SECTION.fullmatch(line)
            if match is None or match[1] in sections:
                return None
            name = match[1]
        if not name:  # the whole config is indented
            return None
        sections.setdefault(name, []).append(line)
    for name in ("inject", "capture", "memory"):
        if not _parse_section(values, name, sections.get(name, [f"{name}:"])):
            return None
    return {name: values.get(name, default) for name, default in DEFAULT_SETTINGS.items()}


def _is_closed(line: str) -> bool:
    """Whether no quote, bracket or block continues on the next line."""
    bare = _QUOTED.sub("", line).partition(" #")[0]
    odd = any(character in bare for character in "'\"&*!|>%@`\ufffd") or not line.isprintable()
    return not odd and all(bare.count(opening) == bare.count(closing) for opening, closing in ("[]", "{}"))


def _parse_section(values: dict[str, object], section: str, lines: list[str]) -> bool:
    """Add the section's values; False if they are not certain."""
    head = lines[0].partition(" #")[0].rstrip(" ")
    if len(lines) == 1 and (flow := _FLOW.fullmatch(head, len(section))):
        return _parse_flow(values, section, flow[1].strip(" "))
    if head != f"{section}:":
        return False
    indent, name = "", ""
    for line in lines[1:]:
        item, key = _ITEM.fullmatch(line), _KEY.fullmatch(line)
        if item is not None:
            if not name or not _add_item(values, name, item[1]):
                return False
            continue
        if key is None or key[1] != (indent := indent or key[1]) or values.get(name) == []:
            return False
        name = f"{section}.{key[2]}"
        if name in values or not _parse_value(values, name, key[3] or ""):
            return False
        name = "" if key[3] else name  # only a key without a value can have items below it
    return values.get(name) != []


def _parse_flow(values: dict[str, object], section: str, content: str) -> bool:
    for part in _COMMA.split(content) if content else []:
        pair = _PAIR.fullmatch(part)
        name = f"{section}.{pair[1]}" if pair else ""
        if pair is None or name in values or not _parse_value(values, name, pair[2]):
            return False
    return True


def _parse_value(values: dict[str, object], name: str, value: str) -> bool:
    if name not in DEFAULT_SETTINGS:
        values[name] = value
        return True
    default = DEFAULT_SETTINGS[name]
    if default is None:
        values[name] = _BOOLEANS.get(value)
        return value in _BOOLEANS
    if isinstance(default, bool):
        values[name] = value == "true"
        return value in ("true", "false")
    items = [item.strip(" ") for item in value[1:-1].split(",")] if value not in ("", "[]") else []
    values[name] = items
    is_list = not value or (value[0] == "[" and value[-1] == "]")
    return is_list and len(set(items)) == len(items) and all(_is_word(name, item) for item in items)


def _add_item(values: dict[str, object], name: str, item: str) -> bool:
    items = values[name]
    if not isinstance(items, list):  # not one of our settings
        return name not in DEFAULT_SETTINGS
    items.append(item)
    return _is_word(name, item) and items.count(item) == 1


def _is_word(name: str, item: str) -> bool:
    if name == "inject.lanes":
        return item in DELIVERY_MODES
    return _WORD.fullmatch(item) is not None and item.lower() not in _RESERVED_WORDS

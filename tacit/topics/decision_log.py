"""Decisions about topics, feedback on them, and cached answers of models: `.tacit/gate/`.

    decisions.jsonl      one line for each decision; at 8 MB it becomes decisions.1.jsonl, and so on up to 4
    marks.jsonl          feedback, useful or not; a later mark of a decision replaces an earlier one
    cache.jsonl          yes or no by a hash of the question; the 2,000 most recently used

Invariants:
- each write appends whole lines, so processes that append at the same time never mix them;
- a turn never waits for the disk (nothing is synced) and never fails because of it;
- a line that cannot be read is skipped and counted.

A decision holds the hash of the message and its start: a hash alone would not tell whether a topic was
useful. The folder is private to the owner and ignored by git.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from math import isfinite
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, get_args

from tacit.errors import Busy, StoreError
from tacit.home import files
from tacit.home.files import write_all
from tacit.home.layout import Home
from tacit.topics.model import Outcome, TopicDecision

MAX_FILE_BYTES = 8 << 20
MAX_OLD_FILES = 4  # old files of decisions
MAX_CACHED_ANSWERS = 2000  # answers in the cache
_MAX_MESSAGE_CHARS = 80
_MAX_REASON_CHARS = 300
_MAX_LINE_BYTES = 64 << 10  # longer than any line that is written here
_OUTCOMES = get_args(Outcome)


class LoggedDecision(NamedTuple):
    id: str
    decision: TopicDecision
    message: str  # its start


def decision_id(timestamp: str, message_hash: str, topic: str) -> str:
    parts = f"{timestamp}\0{message_hash}\0{topic}"
    return sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:10]


class GateLog:
    def __init__(
        self, home: Home, *, max_bytes: int = MAX_FILE_BYTES, old_files: int = MAX_OLD_FILES
    ) -> None:
        self._folder = home.private / "gate"
        self._max_bytes, self._old_files = max_bytes, old_files

    def append(self, decisions: Sequence[TopicDecision], message: str = "") -> str:
        """Empty, or why they could not be written. Never raises: a turn goes on without its log."""
        if not decisions:
            return ""
        try:
            size = _append_lines(
                self._folder / "decisions.jsonl",
                [_decision_fields(decision, message) for decision in decisions],
            )
            if size >= self._max_bytes:
                self._rotate()
        except (OSError, StoreError) as error:
            return f"The gate log could not be written: {_explain(error)}."
        return ""

    def mark(self, name: str, useful: bool, at: str) -> str:
        """Empty, or why it could not be written."""
        try:
            _append_lines(self._folder / "marks.jsonl", [{"id": name, "useful": useful, "at": at}])
        except OSError as error:
            return f"The mark could not be written: {_explain(error)}."
        return ""

    def read(self) -> Decisions:
        """All stored decisions with their marks, oldest first."""
        return Decisions([self._file(number) for number in range(self._old_files, -1, -1)], self._marks())

    def _marks(self) -> dict[str, bool]:
        marks: dict[str, bool] = {}
        for line in _read_lines(self._folder / "marks.jsonl"):
            data = _parse_json(line)
            if data is not None and isinstance(data.get("id"), str) and isinstance(data.get("useful"), bool):
                marks[data["id"]] = data["useful"]
        return marks

    def _file(self, number: int) -> Path:
        return self._folder / (f"decisions.{number}.jsonl" if number else "decisions.jsonl")

    def _rotate(self) -> None:
        """If another process holds the lock, that one does it."""
        with suppress(Busy), files.hold_lock(self._folder / "lock", 0.0):
            if self._file(0).stat().st_size >= self._max_bytes:
                for number in range(self._old_files, 0, -1):
                    with suppress(FileNotFoundError):
                        os.rename(self._file(number - 1), self._file(number))


class Decisions:
    """Iterates over decisions. Afterwards `broken` is the number of lines that could not be read."""

    def __init__(self, files: Sequence[Path], marks: dict[str, bool]) -> None:
        self._files, self._marks = files, marks
        self.broken = 0

    def __iter__(self) -> Iterator[LoggedDecision]:
        self.broken = 0
        for file in self._files:
            for line in _read_lines(file):
                decision = _parse_decision(line, self._marks)
                if decision is None:
                    self.broken += 1
                else:
                    yield decision


class GateCache:
    """The most recently used answers of models. Thread-safe; answers of other processes are read at the start
    and kept when the file is compacted."""

    def __init__(self, home: Home, *, bound: int = MAX_CACHED_ANSWERS) -> None:
        self._folder, self._bound = home.private / "gate", bound
        self._file = self._folder / "cache.jsonl"
        self._answers: dict[str, bool] | None = None
        self._line_count = 0
        self._lock = Lock()

    def get(self, key: str) -> bool | None:
        with self._lock:
            answers = self._load_answers()
            if key not in answers:
                return None
            answers[key] = yes = answers.pop(key)  # the most recently used one is last
            return yes

    def put(self, key: str, yes: bool) -> None:
        """If the disk fails, only later processes lose the answer."""
        with self._lock:
            answers = self._load_answers()
            answers.pop(key, None)
            answers[key] = yes
            if len(answers) > self._bound:
                del answers[next(iter(answers))]
            with suppress(OSError, StoreError):
                _append_lines(self._file, [{"key": key, "yes": yes}])
                self._line_count += 1
                if self._line_count >= 2 * self._bound:
                    self._compact(answers)

    def _load_answers(self) -> dict[str, bool]:
        if self._answers is None:
            self._answers = self._read_answers()
        return self._answers

    def _read_answers(self) -> dict[str, bool]:
        answers: dict[str, bool] = {}
        self._line_count = 0
        for line in _read_lines(self._file):
            self._line_count += 1
            data = _parse_json(line)
            if data is not None and isinstance(data.get("key"), str) and isinstance(data.get("yes"), bool):
                answers.pop(data["key"], None)
                answers[data["key"]] = data["yes"]
        return dict(list(answers.items())[-self._bound :])

    def _compact(self, answers: dict[str, bool]) -> None:
        """Compact the file, with answers that other processes added; the most recently used come last."""
        with files.hold_lock(self._folder / "lock", 0.0):
            merged = self._read_answers()
            for key, yes in answers.items():
                merged.pop(key, None)
                merged[key] = yes
            newest = dict(list(merged.items())[-self._bound :])
            _replace(self._file, [{"key": key, "yes": yes} for key, yes in newest.items()])
            self._answers, self._line_count = newest, len(newest)


# A decision as a line


def _decision_fields(decision: TopicDecision, message: str) -> dict[str, object]:
    return {
        "id": decision_id(decision.timestamp, decision.message_hash, decision.topic_name),
        "timestamp": decision.timestamp,
        "message_hash": decision.message_hash,
        "topic_name": decision.topic_name,
        "tier1_matched": decision.tier1_matched,
        "tier2_score": round(decision.tier2_score, 4),
        "gate_result": decision.gate_result,
        "outcome": decision.outcome,
        "by": decision.by,
        "reason": decision.reason[:_MAX_REASON_CHARS],
        "channels": {name: round(value, 4) for name, value in decision.channels.items()},
        "message": " ".join(message[: 4 * _MAX_MESSAGE_CHARS].split())[:_MAX_MESSAGE_CHARS],
    }


def _parse_decision(line: bytes, marks: dict[str, bool]) -> LoggedDecision | None:
    data = _parse_json(line)
    if data is None:
        return None
    try:
        name, message = _require_text(data["id"]), _require_text(data["message"])
        decision = TopicDecision(
            timestamp=_require_text(data["timestamp"]),
            message_hash=_require_text(data["message_hash"]),
            topic_name=_require_text(data["topic_name"]),
            tier1_matched=data["tier1_matched"] is True,
            tier2_score=_require_number(data["tier2_score"]),
            outcome=_OUTCOMES[_OUTCOMES.index(data["outcome"])],
            by=_require_text(data["by"]),
            reason=_require_text(data["reason"]),
            gate_result=data["gate_result"] if isinstance(data["gate_result"], bool) else None,
            channels={key: _require_number(value) for key, value in data["channels"].items()},
            was_useful=marks.get(name),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return LoggedDecision(name, decision, message)


def _require_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _require_number(value: object) -> float:
    if type(value) not in (int, float) or not isfinite(value):  # type: ignore[arg-type]
        raise TypeError(value)
    return float(value)  # type: ignore[arg-type]


# Lines and files


def _explain(error: OSError | StoreError) -> str:
    return str(error.strerror or error) if isinstance(error, OSError) else str(error)


def _append_lines(path: Path, lines: Sequence[dict[str, Any]]) -> int:
    """Returns the size of the file."""
    try:
        fd = os.open(path, files.LOG_FLAGS, 0o600)
    except FileNotFoundError:
        for folder in (path.parent.parent, path.parent):
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700)
        fd = os.open(path, files.LOG_FLAGS, 0o600)
    try:
        return files.append_lines(fd, _encode_lines(lines))
    finally:
        os.close(fd)


def _encode_lines(lines: Sequence[dict[str, Any]]) -> bytes:
    # ASCII: messages may contain lone surrogates, which UTF-8 cannot encode.
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode("ascii")


def _replace(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    """Replace the file atomically. Not synced: losing it costs a few questions."""
    new = path.with_suffix(".new")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, _encode_lines(lines))
    finally:
        os.close(fd)
    os.rename(new, path)


def _read_lines(path: Path) -> Iterator[bytes]:
    """Lines that are not blank. A missing or unreadable file has none."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = open(path, "rb", opener=lambda name, _: os.open(name, flags))  # noqa: SIM115
    except OSError:
        return
    with file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            yield from (
                line for line in iter(lambda: file.readline(_MAX_LINE_BYTES), b"") if not line.isspace()
            )


def _parse_json(line: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None

"""What was decided about topics, what people say about it, and what models answered: `.tacit/gate/`.

    decisions.jsonl      one line for each decision; at 8 MB it becomes decisions.1.jsonl, and so on up to 4
    marks.jsonl          what was useful and what was not; a later mark of a decision replaces an earlier one
    cache.jsonl          yes or no by a hash of what was asked; the 2,000 that were used last

What must stay true:
- lines are added by one write of whole lines, so processes that add at the same time never mix them;
- a turn never waits for the disk (nothing is synced) and never fails because of it;
- a line that cannot be read is passed over and counted.

Of a message there is its hash and its beginning: nobody could say of a hash whether a topic was of use to it.
The folder is the owner's alone and git does not see it.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from math import isfinite
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, get_args

from tacit.model.topics import Decision, Outcome
from tacit.store import files
from tacit.store.files import write_all
from tacit.store.home import Home

LARGEST = 8 << 20
KEPT = 4  # old files of decisions
BOUND = 2000  # answers in the cache
_MESSAGE = 80  # characters
_REASON = 300
_LINE = 64 << 10  # no line of ours is longer
_OUTCOMES = get_args(Outcome)


class Logged(NamedTuple):
    id: str
    decision: Decision
    message: str  # its beginning


def decision_id(timestamp: str, message_hash: str, topic: str) -> str:
    parts = f"{timestamp}\0{message_hash}\0{topic}"
    return sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:10]


class GateLog:
    def __init__(self, home: Home, *, largest: int = LARGEST, kept: int = KEPT) -> None:
        self._folder = home.private / "gate"
        self._largest, self._kept = largest, kept

    def append(self, decisions: Sequence[Decision], message: str = "") -> str:
        """Empty, or why they could not be kept. Never raises: a turn goes on without its log."""
        if not decisions:
            return ""
        try:
            size = _append(self._folder / "decisions.jsonl", [_fields(one, message) for one in decisions])
            if size >= self._largest:
                self._rotate()
        except OSError as error:
            return f"The gate log could not be written: {error.strerror or error}."
        return ""

    def mark(self, name: str, useful: bool, at: str) -> str:
        """Empty, or why it could not be kept."""
        try:
            _append(self._folder / "marks.jsonl", [{"id": name, "useful": useful, "at": at}])
        except OSError as error:
            return f"The mark could not be written: {error.strerror or error}."
        return ""

    def read(self) -> Decisions:
        """All that is kept, the oldest first, with their marks."""
        return Decisions([self._file(number) for number in range(self._kept, -1, -1)], self._marks())

    def _marks(self) -> dict[str, bool]:
        marks: dict[str, bool] = {}
        for line in _lines(self._folder / "marks.jsonl"):
            data = _parsed(line)
            if data is not None and isinstance(data.get("id"), str) and isinstance(data.get("useful"), bool):
                marks[data["id"]] = data["useful"]
        return marks

    def _file(self, number: int) -> Path:
        return self._folder / (f"decisions.{number}.jsonl" if number else "decisions.jsonl")

    def _rotate(self) -> None:
        with _alone(self._folder) as alone:
            # Another process may have been faster; then there is nothing to do.
            if alone and self._file(0).stat().st_size >= self._largest:
                for number in range(self._kept, 0, -1):
                    with suppress(FileNotFoundError):
                        os.rename(self._file(number - 1), self._file(number))


class Decisions:
    """Iterate over it. Afterwards `broken` says how many lines were no decisions."""

    def __init__(self, files: Sequence[Path], marks: dict[str, bool]) -> None:
        self._files, self._marks = files, marks
        self.broken = 0

    def __iter__(self) -> Iterator[Logged]:
        self.broken = 0
        for file in self._files:
            for line in _lines(file):
                found = _logged(line, self._marks)
                if found is None:
                    self.broken += 1
                else:
                    yield found


class GateCache:
    """Answers of models, the last used ones. For any number of threads; other processes' answers are seen
    when this one starts, and kept when it tidies up."""

    def __init__(self, home: Home, *, bound: int = BOUND) -> None:
        self._folder, self._bound = home.private / "gate", bound
        self._file = self._folder / "cache.jsonl"
        self._answers: dict[str, bool] | None = None
        self._lines = 0
        self._lock = Lock()

    def get(self, key: str) -> bool | None:
        with self._lock:
            answers = self._loaded()
            if key not in answers:
                return None
            answers[key] = yes = answers.pop(key)  # the last used one stands last
            return yes

    def put(self, key: str, yes: bool) -> None:
        """A disk that refuses costs the next process an answer, and this one nothing."""
        with self._lock:
            answers = self._loaded()
            answers.pop(key, None)
            answers[key] = yes
            if len(answers) > self._bound:
                del answers[next(iter(answers))]
            with suppress(OSError):
                _append(self._file, [{"key": key, "yes": yes}])
                self._lines += 1
                if self._lines >= 2 * self._bound:
                    self._tidy(answers)

    def _loaded(self) -> dict[str, bool]:
        if self._answers is None:
            self._answers = self._read()
        return self._answers

    def _read(self) -> dict[str, bool]:
        answers: dict[str, bool] = {}
        self._lines = 0
        for line in _lines(self._file):
            self._lines += 1
            data = _parsed(line)
            if data is not None and isinstance(data.get("key"), str) and isinstance(data.get("yes"), bool):
                answers.pop(data["key"], None)
                answers[data["key"]] = data["yes"]
        return dict(list(answers.items())[-self._bound :])

    def _tidy(self, answers: dict[str, bool]) -> None:
        """The file holds what others added as well; what this process used last stands last."""
        with _alone(self._folder) as alone:
            if not alone:
                return
            others = self._read()
            for key, yes in answers.items():
                others.pop(key, None)
                others[key] = yes
            kept = dict(list(others.items())[-self._bound :])
            _replace(self._file, [{"key": key, "yes": yes} for key, yes in kept.items()])
            self._answers, self._lines = kept, len(kept)


# A decision as a line


def _fields(one: Decision, message: str) -> dict[str, object]:
    return {
        "id": decision_id(one.timestamp, one.message_hash, one.topic_name),
        "timestamp": one.timestamp,
        "message_hash": one.message_hash,
        "topic_name": one.topic_name,
        "tier1_matched": one.tier1_matched,
        "tier2_score": round(one.tier2_score, 4),
        "gate_result": one.gate_result,
        "outcome": one.outcome,
        "by": one.by,
        "reason": one.reason[:_REASON],
        "channels": {name: round(value, 4) for name, value in one.channels.items()},
        "message": " ".join(message[: 4 * _MESSAGE].split())[:_MESSAGE],
    }


def _logged(line: bytes, marks: dict[str, bool]) -> Logged | None:
    data = _parsed(line)
    if data is None:
        return None
    try:
        name, message = _text(data["id"]), _text(data["message"])
        decision = Decision(
            timestamp=_text(data["timestamp"]),
            message_hash=_text(data["message_hash"]),
            topic_name=_text(data["topic_name"]),
            tier1_matched=data["tier1_matched"] is True,
            tier2_score=_number(data["tier2_score"]),
            outcome=_OUTCOMES[_OUTCOMES.index(data["outcome"])],
            by=_text(data["by"]),
            reason=_text(data["reason"]),
            gate_result=data["gate_result"] if isinstance(data["gate_result"], bool) else None,
            channels={key: _number(value) for key, value in data["channels"].items()},
            was_useful=marks.get(name),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return Logged(name, decision, message)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _number(value: object) -> float:
    if type(value) not in (int, float) or not isfinite(value):  # type: ignore[arg-type]
        raise TypeError(value)
    return float(value)  # type: ignore[arg-type]


# Lines and files


def _append(path: Path, lines: Sequence[dict[str, Any]]) -> int:
    """Returns the size of the file."""
    try:
        fd = os.open(path, files.LOGGED, 0o600)
    except FileNotFoundError:
        for folder in (path.parent.parent, path.parent):
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700)
        fd = os.open(path, files.LOGGED, 0o600)
    try:
        return files.append_lines(fd, _encoded(lines))
    finally:
        os.close(fd)


def _encoded(lines: Sequence[dict[str, Any]]) -> bytes:
    # ASCII: halves of characters come in with messages, and UTF-8 has no place for them.
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode("ascii")


def _replace(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    """All of it or nothing. Not synced: losing it costs a few questions."""
    new = path.with_suffix(".new")
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, _encoded(lines))
    finally:
        os.close(fd)
    os.rename(new, path)


def _lines(path: Path) -> Iterator[bytes]:
    """Those that are not blank. A file that is not there, or cannot be read, has none."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = open(path, "rb", opener=lambda name, _: os.open(name, flags))  # noqa: SIM115
    except OSError:
        return
    with file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            yield from (line for line in iter(lambda: file.readline(_LINE), b"") if not line.isspace())


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


@contextmanager
def _alone(folder: Path) -> Iterator[bool]:
    """Whether nobody else tidies up at this moment. Nobody waits for it."""
    fd = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        yield _is_locked(fd)
    finally:
        os.close(fd)


def _is_locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""A chat model that remembers: every question and its answer in a file of JSON lines, to be played back.

What must stay true:
- one question has one answer: the same model, task, texts and length are asked once in a run, however often
  it asks, so a run that is played back makes the same bytes;
- an answer is on disk before it is used, so that a run which is killed goes on where it was;
- an answer that a power cut tore is not there; what comes after it is;
- errors are not kept.

    record   ask, whatever is in the file already, and keep what is said
    replay   never ask: what is not in the file is a ChatError that names it
    both     ask for what is not in the file
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NamedTuple

from tacit.llm.chat import Answer, Chat, ChatError

Mode = Literal["record", "replay", "both"]
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Asked(NamedTuple):
    model: str
    task: str
    system: str
    user: str
    max_tokens: int


class Tape:
    """The file. One for all tasks and models of a run; for any number of threads."""

    def __init__(self, path: Path, mode: Mode = "both") -> None:
        self.path, self.mode = path, mode
        self._lock = Lock()
        self._answers = {} if mode == "record" else dict(kept(path))

    def get(self, asked: Asked) -> Answer | None:
        with self._lock:
            return self._answers.get(asked)

    def put(self, asked: Asked, answer: Answer) -> Answer:
        """The answer that counts: another thread may have asked the same and been faster."""
        with self._lock:
            if asked not in self._answers:
                _append(self.path, {**asked._asdict(), "answer": answer._asdict()})
                self._answers[asked] = answer
            return self._answers[asked]


class Recorded:
    def __init__(self, tape: Tape, task: str, chat: Chat | None, name: str = "") -> None:
        """`chat`: who is asked; None where nobody is. `name`: whose answers they are, if not by its own."""
        self.name = name or (chat.name if chat is not None else "")
        self._tape, self._task, self._chat = tape, task, chat

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> Answer:
        asked = Asked(self.name, self._task, system, user, max_tokens)
        if (known := self._tape.get(asked)) is not None:
            return known
        if self._chat is None or self._tape.mode == "replay":
            raise ChatError(_missing(self._tape.path, asked))
        answer = self._chat.answer(system, user, max_tokens=max_tokens, seconds=seconds)
        try:
            return self._tape.put(asked, answer)
        except OSError as error:
            raise ChatError(
                f"The answer of {self.name} could not be kept in {self._tape.path.name} "
                f"({error.strerror or error}), so it is not used. Free some space and run it again.",
                spent=True,
            ) from None


def _missing(path: Path, asked: Asked) -> str:
    name = sha256(repr(asked).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    begins = " ".join(asked.user[:80].split())
    return (
        f"{path.name} holds no answer of {asked.model} to question {name} of task {asked.task!r} "
        f"({begins!r}…). Record it by running it once with the model."
    )


def kept(path: Path) -> Iterator[tuple[Asked, Answer]]:
    """What stands in such a file. Of two answers to one question, as two recordings leave them, the later one
    counts."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    for line in lines:
        if (found := _read(line)) is not None:
            yield found


def _read(line: bytes) -> tuple[Asked, Answer] | None:
    try:
        said = json.loads(line)
        answer = Answer(**said.pop("answer"))
        asked = Asked(**said)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return (asked, answer) if isinstance(answer.text, str) else None


def _append(path: Path, said: dict[str, Any]) -> None:
    # ASCII: halves of characters are possible, and UTF-8 has no place for them.
    data = json.dumps(said).encode("ascii") + b"\n"
    fd = os.open(path, _FLAGS, 0o600)
    try:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            data = b"\n" + data  # what was torn must not take this line with it
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    finally:
        os.close(fd)

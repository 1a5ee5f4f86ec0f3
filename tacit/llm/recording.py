"""Records every question to a chat model and its answer in a file of JSON lines, for replay.

What must stay true:
- one question has one answer: the same model, task, texts and length are asked once in a run, so that a
  replayed run makes the same bytes;
- an answer is on disk before it is used, so that a killed run goes on where it was;
- an answer that a power cut truncated is skipped; those after it are read;
- errors are not recorded.

    record   always ask, and record the answers
    replay   never ask: a question that is not in the file is a ChatError that names it
    both     ask only what is not in the file
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NamedTuple

from tacit.llm.chat import Chat, ChatAnswer, ChatError

Mode = Literal["record", "replay", "both"]
_OPEN_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class RecordedQuestion(NamedTuple):
    model: str
    task: str
    system: str
    user: str
    max_tokens: int


class Recording:
    """The file, one for all tasks and models of a run. Safe to use from several threads."""

    def __init__(self, path: Path, mode: Mode = "both") -> None:
        self.path, self.mode = path, mode
        self._lock = Lock()
        self._answers = {} if mode == "record" else dict(read_recordings(path))

    def get(self, question: RecordedQuestion) -> ChatAnswer | None:
        with self._lock:
            return self._answers.get(question)

    def put(self, question: RecordedQuestion, answer: ChatAnswer) -> ChatAnswer:
        """Record the answer and return the one that counts: another thread may have been faster."""
        with self._lock:
            if question not in self._answers:
                _append(self.path, {**question._asdict(), "answer": answer._asdict()})
                self._answers[question] = answer
            return self._answers[question]


class RecordedChat:
    def __init__(self, tape: Recording, task: str, chat: Chat | None, name: str = "") -> None:
        """`chat`: the model to ask, or None. `name`: the name to record, if not the model's own."""
        self.name = name or (chat.name if chat is not None else "")
        self._tape, self._task, self._chat = tape, task, chat

    def answer(self, system: str, user: str, *, max_tokens: int, seconds: float) -> ChatAnswer:
        question = RecordedQuestion(self.name, self._task, system, user, max_tokens)
        if (recorded := self._tape.get(question)) is not None:
            return recorded
        if self._chat is None or self._tape.mode == "replay":
            raise ChatError(_missing_message(self._tape.path, question))
        answer = self._chat.answer(system, user, max_tokens=max_tokens, seconds=seconds)
        try:
            return self._tape.put(question, answer)
        except OSError as error:
            raise ChatError(
                f"The answer of {self.name} could not be kept in {self._tape.path.name} "
                f"({error.strerror or error}), so it is not used. Free some space and run it again.",
                spent=True,
            ) from None


def _missing_message(path: Path, question: RecordedQuestion) -> str:
    name = sha256(repr(question).encode("utf-8", "surrogatepass")).hexdigest()[:12]
    beginning = " ".join(question.user[:80].split())
    return (
        f"{path.name} holds no answer of {question.model} to question {name} of task {question.task!r} "
        f"({beginning!r}…). Record it by running it once with the model."
    )


def read_recordings(path: Path) -> Iterator[tuple[RecordedQuestion, ChatAnswer]]:
    """The entries of such a file. Of two answers to one question the later one counts."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return
    for line in lines:
        if (entry := _parse_line(line)) is not None:
            yield entry


def _parse_line(line: bytes) -> tuple[RecordedQuestion, ChatAnswer] | None:
    try:
        fields = json.loads(line)
        answer = ChatAnswer(**fields.pop("answer"))
        question = RecordedQuestion(**fields)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return (question, answer) if isinstance(answer.text, str) else None


def _append(path: Path, fields: dict[str, Any]) -> None:
    # ASCII: lone surrogates are possible, and UTF-8 cannot encode them.
    data = json.dumps(fields).encode("ascii") + b"\n"
    fd = os.open(path, _OPEN_FLAGS, 0o600)
    try:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            data = b"\n" + data  # a truncated line must not damage this one
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    finally:
        os.close(fd)

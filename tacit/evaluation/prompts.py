"""What a turn would be given: compiled, and in the two ways that need no compiler.

    recent   the newest turns, as many as fit
    bm25     passages as the word index ranks them, as many as fit

Tokens are counted alike. The two hold nothing besides, while a compiled prompt also pays for the message, for
its frame and, in a home of one's own, for identity and topics.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tacit.app import gate_of, parts_of
from tacit.index.protocol import Index
from tacit.memory import Memory
from tacit.memory.request import Request
from tacit.memory.turn import ContextCompiler
from tacit.memory.views import Present
from tacit.model.context import Compiled, Section
from tacit.model.search import Found, Scope
from tacit.model.turns import Message
from tacit.store.home import CONVERSATIONS, Home
from tacit.store.transcripts import attempt_load
from tacit.text import tokens
from tacit.text.query import understand

SESSION = "agent:main:main"
DEFAULT = 0
_MOST_PASSAGES = 10_000
_AT_ONCE = 100
_MESSAGE = re.compile(r"(?:\A|\n)<!-- message [0-9a-z]+ -->\n")
_LINE = re.compile(r":\d+\Z")


class Line(NamedTuple):
    path: str
    speaker: str
    text: str

    def __str__(self) -> str:
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


class Shown(NamedTuple):
    """What of a prompt may be evidence."""

    text: str  # white space collapsed
    paths: frozenset[str]  # the files it is from
    tokens: int  # of the whole prompt


def collapsed(text: str) -> str:
    return " ".join(text.split())


@lru_cache(maxsize=16_384)
def _count(line: str) -> int:
    return tokens.count(line)


def fitting(lines: Iterable[Line], budget: int) -> list[Line]:
    """The first ones, up to the one that would be too much."""
    kept: list[Line] = []
    left = budget
    for line in lines:
        left -= _count(f"{line}\n")
        if left < 0:
            break
        kept.append(line)
    return kept


def shown(lines: Iterable[Line]) -> Shown:
    kept = list(lines)
    text = "\n".join(map(str, kept))
    return Shown(collapsed(text), frozenset(line.path for line in kept), tokens.count(text))


# Turns


def turns_of(memory: Memory) -> Iterator[Line]:
    """What was said in a home, the newest first; of two conversations the one that began later."""
    root = memory.home.root
    for file in sorted(root.glob(f"{CONVERSATIONS}/*/*/*/*.md"), reverse=True):
        path = file.relative_to(root).as_posix()
        for turn in reversed(attempt_load(memory.home, path).turns):
            if isinstance(turn, Message) and turn.text.strip():
                yield Line(path, turn.speaker or turn.role, turn.text.strip())


# Words


def passages(index: Index, message: str, scope: Scope, budget: int) -> Iterator[Line]:
    """By BM25 alone, best first: all words of the message that are no stop words, and no more than a prompt
    of `budget` tokens could hold."""
    terms = [term.text for term in understand(message).terms]
    scored = index.lexical(terms, scope, min(_MOST_PASSAGES, budget // 2 + 1)) if terms else []
    for at in range(0, len(scored), _AT_ONCE):
        some = [one.id for one in scored[at : at + _AT_ONCE]]
        stored = index.stored(some)
        for found in (stored[one] for one in some if one in stored):
            yield Line(found.path, found.passage.speaker, found.passage.text.strip())


# Compiled


class Compiler:
    """Compiles turns of a home and leaves no trace in it: what turns log goes to `folder`. They are of no
    session, so that no conversation is left out as the one that goes on."""

    def __init__(self, memory: Memory, folder: Path) -> None:
        gate = gate_of(memory.home, memory.config, parts_of(memory.config, memory.home))
        self._compiler = ContextCompiler(Home(folder), memory.config, gate, memory.profile_of)
        self._view = _Once(memory)
        self._now = memory.moment()
        self.scope = replace(memory.scope_of(SESSION), archived=False)

    def compile(self, message: str, budget: int) -> tuple[Compiled, float]:
        """And how many milliseconds it took. DEFAULT: as a turn that names no budget."""
        request = Request(message, SESSION, session_id="eval", budget=budget or None, trial=True)
        self._view.begin(message)
        began = time.perf_counter()
        compiled = self._compiler.compile(request, self._view, self._now)
        return compiled, (time.perf_counter() - began + self._view.spared) * 1000


class _Once(Present):
    """Searches once for a message, however many budgets it is compiled with."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory.home, lambda: memory.searcher, memory.workspaces)
        self.followed = True
        self.spared = 0.0  # seconds that the answers given again once took
        self._message: str | None = None
        self._found: dict[tuple[str, Scope, int], tuple[Found, float]] = {}

    def begin(self, message: str) -> None:
        self.spared = 0.0
        if message != self._message:
            self._message, self._found = message, {}

    def find(self, text: str, scope: Scope, limit: int, now: datetime, deadline: float | None) -> Found:
        asked = (text, scope, limit)
        if asked in self._found:
            found, seconds = self._found[asked]
            self.spared += seconds
            return found
        began = time.perf_counter()
        found = super().find(text, scope, limit, now, deadline)
        self._found[asked] = found, time.perf_counter() - began
        return found


def shown_in(compiled: Compiled) -> Shown:
    """Without the message: a question that holds the words of its answer proves nothing."""
    ends = [found.start() for found in _MESSAGE.finditer(compiled.text)]
    text = compiled.text[: ends[-1]] if ends else compiled.text
    return Shown(collapsed(text), frozenset(map(_path, compiled.sections)), compiled.tokens)


def _path(section: Section) -> str:
    return _LINE.sub("", section.source)

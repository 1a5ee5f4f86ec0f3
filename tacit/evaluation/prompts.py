"""The prompt of a turn: compiled, and with two baselines that need no compiler.

    recent   the newest turns, as many as fit
    bm25     chunks as the word index ranks them, as many as fit

Tokens are counted the same way. The baselines contain nothing else, while a compiled prompt also pays for the
message, its frame and, in a user's home, for identity and topics.
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

from tacit.app import gate_factory, search_parts
from tacit.context.compiler import ContextCompiler
from tacit.context.home_view import LiveHome
from tacit.context.model import Compiled, Section
from tacit.context.request import Request
from tacit.home.layout import CONVERSATIONS, Home
from tacit.memory import Memory
from tacit.search.index import Index
from tacit.search.model import Found, Scope
from tacit.search.query import parse_query
from tacit.text import tokens
from tacit.transcripts.model import Message
from tacit.transcripts.writer import attempt_load

SESSION_KEY = "agent:main:main"
DEFAULT_BUDGET = 0
_MAX_CHUNKS = 10_000
_BATCH_SIZE = 100
_MESSAGE_MARK = re.compile(r"(?:\A|\n)<!-- message [0-9a-z]+ -->\n")
_LINE_SUFFIX = re.compile(r":\d+\Z")


class PromptLine(NamedTuple):
    path: str
    speaker: str
    text: str

    def __str__(self) -> str:
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


class PromptEvidence(NamedTuple):
    """The part of a prompt that may be evidence."""

    text: str  # white space collapsed
    paths: frozenset[str]  # the files it is from
    tokens: int  # of the whole prompt


def collapse_space(text: str) -> str:
    return " ".join(text.split())


@lru_cache(maxsize=16_384)
def _count_tokens(line: str) -> int:
    return tokens.count(line)


def pack_lines(lines: Iterable[PromptLine], budget: int) -> list[PromptLine]:
    """Take the lines in order and skip those that no longer fit.

    Stopping at the first line that is too long would make the baselines weaker than anyone would build them:
    in sets with long messages, one of those would end the prompt early.
    """
    packed: list[PromptLine] = []
    remaining = budget
    for line in lines:
        if remaining <= 0:
            break
        cost = _count_tokens(f"{line}\n")
        if cost <= remaining:
            packed.append(line)
            remaining -= cost
    return packed


def evidence_of_lines(lines: Iterable[PromptLine]) -> PromptEvidence:
    all_lines = list(lines)
    text = "\n".join(map(str, all_lines))
    return PromptEvidence(
        collapse_space(text), frozenset(line.path for line in all_lines), tokens.count(text)
    )


# Turns


def list_messages(memory: Memory) -> Iterator[PromptLine]:
    """The messages of a home, newest first; of two conversations the one that began later."""
    root = memory.home.root
    for file in sorted(root.glob(f"{CONVERSATIONS}/*/*/*/*.md"), reverse=True):
        path = file.relative_to(root).as_posix()
        for turn in reversed(attempt_load(memory.home, path).turns):
            if isinstance(turn, Message) and turn.text.strip():
                yield PromptLine(path, turn.speaker or turn.role, turn.text.strip())


# Words


def rank_chunks(index: Index, message: str, scope: Scope, budget: int) -> Iterator[PromptLine]:
    """Chunks ranked by BM25 alone, best first: for all words of the message except stop words, and no more
    than a prompt of `budget` tokens could hold."""
    terms = [term.text for term in parse_query(message).terms]
    scored = index.lexical(terms, scope, min(_MAX_CHUNKS, budget // 2 + 1)) if terms else []
    for start in range(0, len(scored), _BATCH_SIZE):
        ids = [entry.id for entry in scored[start : start + _BATCH_SIZE]]
        stored = index.stored(ids)
        for row in (stored[key] for key in ids if key in stored):
            yield PromptLine(row.path, row.chunk.speaker, row.chunk.text.strip())


# Compiled


class EvalCompiler:
    """Compiles turns of a home without changing it: their logs go to `folder`. They have no session, so that
    no conversation is left out as the current one."""

    def __init__(self, memory: Memory, folder: Path) -> None:
        gate = gate_factory(memory.home, memory.config, search_parts(memory.config, memory.home))
        self._compiler = ContextCompiler(Home(folder), memory.config, gate, memory.profile_of)
        self._search_view = _CachedSearch(memory)
        self._now = memory.moment()
        self.scope = replace(memory.scope_of(SESSION_KEY), archived=False)

    def compile(self, message: str, budget: int) -> tuple[Compiled, float]:
        """The compiled turn and its time in milliseconds. DEFAULT: as a turn that names no budget."""
        request = Request(message, SESSION_KEY, session_id="eval", budget=budget or None, trial=True)
        self._search_view.begin(message)
        began = time.perf_counter()
        compiled = self._compiler.compile(request, self._search_view, self._now)
        return compiled, (time.perf_counter() - began + self._search_view.spared) * 1000


class _CachedSearch(LiveHome):
    """Searches only once for a message, even if it is compiled with several budgets."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory.home, lambda: memory.searcher, memory.workspaces)
        self.followed = True
        self.spared = 0.0  # seconds that the cached searches took when they ran
        self._message: str | None = None
        self._results: dict[tuple[str, Scope, int], tuple[Found, float]] = {}

    def begin(self, message: str) -> None:
        self.spared = 0.0
        if message != self._message:
            self._message, self._results = message, {}

    def find(self, text: str, scope: Scope, limit: int, now: datetime, deadline: float | None) -> Found:
        query = (text, scope, limit)
        if query in self._results:
            result, seconds = self._results[query]
            self.spared += seconds
            return result
        began = time.perf_counter()
        result = super().find(text, scope, limit, now, deadline)
        self._results[query] = result, time.perf_counter() - began
        return result


def evidence_of_prompt(compiled: Compiled) -> PromptEvidence:
    """The prompt without the message: a question that contains the words of its answer proves nothing."""
    ends = [match.start() for match in _MESSAGE_MARK.finditer(compiled.text)]
    text = compiled.text[: ends[-1]] if ends else compiled.text
    return PromptEvidence(
        collapse_space(text), frozenset(map(_section_path, compiled.sections)), compiled.tokens
    )


def _section_path(section: Section) -> str:
    return _LINE_SUFFIX.sub("", section.source)

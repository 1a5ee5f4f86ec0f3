"""How much of the evidence that answers need is in prompts of a given size.

A piece of evidence is a message of a set or a quote from the user's home. It is in a prompt if its whole text
is, ignoring white space; `part`: if one of its chunks is, as the index cuts them. The prompt of a turn is
compared with two baselines that need no compiler:

    recent   the newest turns, as many as fit
    bm25     chunks as the word index ranks them, as many as fit

Tokens are counted the same way. The baselines contain nothing else, while a compiled prompt also pays for the
message, its frame and, in a user's home, for identity and topics.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

from tacit.app import create_memory, gate_factory, search_parts
from tacit.context.compiler import ContextCompiler
from tacit.context.home_view import LiveHome
from tacit.context.model import Compiled, Section
from tacit.context.request import Request
from tacit.context.state import CompilerState
from tacit.diagnostics import Notice
from tacit.evaluation.homes import copy_home, sample_home, temporary_folder, temporary_home
from tacit.evaluation.questions import EvalQuestion, EvidencePlace, QuestionSet
from tacit.evaluation.search_quality import ProgressCallback, percentile
from tacit.git.work_trees import check_out
from tacit.home.layout import CONVERSATIONS, Home
from tacit.markdown.chunker import split_message
from tacit.memory import Memory
from tacit.search.index import Index
from tacit.search.model import Found, Scope
from tacit.search.query import parse_query
from tacit.text import tokens
from tacit.transcripts.model import Message
from tacit.transcripts.writer import attempt_load

PromptMethod: TypeAlias = Literal["compiled", "recent", "bm25"]
PROMPT_METHODS: tuple[PromptMethod, ...] = get_args(PromptMethod)
Searchable: TypeAlias = Literal["knowledge", "transcripts", "both"]
SEARCHABLE: tuple[Searchable, ...] = get_args(Searchable)
DEFAULT_BUDGET = 0  # of a turn that names no budget
SESSION_KEY = "agent:main:main"

_EXCLUDED_FOLDERS: dict[Searchable, tuple[str, ...]] = {
    "knowledge": (CONVERSATIONS, "drafts", "attachments"),
    "transcripts": ("knowledge", "drafts", "attachments"),
    "both": ("drafts", "attachments"),
}
_MAX_CHUNKS = 10_000
_BATCH_SIZE = 100
_MESSAGE_MARK = re.compile(r"(?:\A|\n)<!-- message [0-9a-z]+ -->\n")
_LINE_SUFFIX = re.compile(r":\d+\Z")


@dataclass(frozen=True, slots=True)
class PromptScore:
    """One question with one method and one budget. `recall` and `part` are None without an answer."""

    recall: float | None
    part: float | None
    tokens: int
    milliseconds: float = 0.0
    best: float | None = None  # relevance of the best chunk in the prompt; None: there is none


@dataclass(frozen=True, slots=True)
class Measurement:
    question: EvalQuestion
    results: Mapping[tuple[PromptMethod, int], PromptScore]
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class BudgetStats:
    """All questions with one method and one budget: shares and means; None without values."""

    recall: float | None
    part: float | None
    tokens: float | None
    over: float | None
    p50: float
    p95: float
    strong: float | None  # share of unanswerable questions that got a chunk this relevant
    injected: float | None  # and share of those that got any


@dataclass(frozen=True, slots=True)
class Summary:
    questions: int
    unanswerable: int
    ways: Mapping[PromptMethod, Mapping[int, BudgetStats]]


def measure_set(
    collections: Sequence[QuestionSet],
    settings: Mapping[str, object],
    budgets: Sequence[int],
    tick: ProgressCallback,
) -> Iterator[Measurement]:
    """Each collection in a home of its own."""
    non_empty = [collection for collection in collections if collection.questions]
    total, finished = sum(len(collection.questions) for collection in non_empty), 0
    for collection in non_empty:
        texts = {message.id: message.text for message in collection.messages}
        questions = [_quote_messages(question, texts) for question in collection.questions]
        newest = (
            PromptLine("", message.speaker, message.text.strip()) for message in reversed(collection.messages)
        )
        with temporary_home(collection, settings) as (memory, _):
            for measured in _measure_questions(memory, questions, newest, budgets):
                yield measured
                finished += 1
                tick(finished, total)


def measure_home(
    memory: Memory, questions: Sequence[EvalQuestion], budgets: Sequence[int], tick: ProgressCallback
) -> Iterator[Measurement]:
    memory.services.searcher.update()
    for finished, measured in enumerate(
        _measure_questions(memory, questions, list_messages(memory), budgets), 1
    ):
        yield measured
        tick(finished, len(questions))


def _quote_messages(question: EvalQuestion, texts: Mapping[str, str]) -> EvalQuestion:
    """Replace ids of messages by their text. A message that is not in the set counts as never found."""
    gold = tuple((EvidencePlace("", texts.get(places[0].path, "")),) for places in question.gold)
    return replace(question, gold=gold)


def _measure_questions(
    memory: Memory, questions: Iterable[EvalQuestion], newest: Iterable[PromptLine], budgets: Sequence[int]
) -> Iterator[Measurement]:
    default_budget = memory.config.context_compiler.token_budget
    room = {budget: default_budget if budget == DEFAULT_BUDGET else budget for budget in budgets}
    max_tokens = max(room.values())
    turns = [line for line in newest if line.text]
    recent = {budget: evidence_of_lines(reversed(pack_lines(turns, room[budget]))) for budget in budgets}
    memory.services.turns.warm()
    with (
        temporary_folder() as folder,
        memory.services.searcher.reading() as index,
    ):
        compiler = EvalCompiler(memory, folder)
        for question in questions:
            ranked = list(rank_chunks(index, question.text, compiler.scope, max_tokens))
            results: dict[tuple[PromptMethod, int], PromptScore] = {}
            notices: list[Notice] = []
            for budget in budgets:
                compiled, milliseconds = compiler.compile(question.text, budget)
                results["compiled", budget] = replace(
                    _score_prompt(question, evidence_of_prompt(compiled)),
                    milliseconds=milliseconds,
                    best=_best_score(compiled),
                )
                results["recent", budget] = _score_prompt(question, recent[budget])
                results["bm25", budget] = _score_prompt(
                    question, evidence_of_lines(pack_lines(ranked, room[budget]))
                )
                notices += compiled.receipt.notices
            yield Measurement(question, results, tuple(notices))


def _best_score(compiled: Compiled) -> float | None:
    scores = [section.score or 0.0 for section in compiled.sections if section.slot == "knowledge"]
    return max(scores, default=None)


def _score_prompt(question: EvalQuestion, prompt: PromptEvidence) -> PromptScore:
    if not question.gold:
        return PromptScore(None, None, prompt.tokens)
    complete = [any(is_in_prompt(place, prompt) for place in places) for places in question.gold]
    part = [any(is_partly_in_prompt(place, prompt) for place in places) for places in question.gold]
    return PromptScore(sum(complete) / len(complete), sum(part) / len(part), prompt.tokens)


def is_in_prompt(place: EvidencePlace, prompt: PromptEvidence) -> bool:
    """Whether a place is in a prompt. One without a quote is a file: any text of it counts."""
    quote = collapse_space(place.quote)
    return quote in prompt.text if quote else place.path in prompt.paths and place.path != ""


def is_partly_in_prompt(place: EvidencePlace, prompt: PromptEvidence) -> bool:
    return is_in_prompt(place, prompt) or any(
        collapse_space(piece.text) in prompt.text for piece in split_message(place.quote)
    )


# What is searchable


def measure_searchable(
    questions: Sequence[EvalQuestion],
    searchable: Sequence[Searchable],
    budgets: Sequence[int],
    tick: ProgressCallback,
) -> Iterator[tuple[Searchable, list[Measurement]]]:
    """Measure the sample's conversations after the rules have learned from them as in a real home: lines that
    need review are left out."""
    total = len(searchable) * len(questions)
    with sample_home() as memory:
        memory.services.extractor.learn_pending()
        for number, kind in enumerate(searchable):
            with temporary_folder() as folder:
                part = copy_home(memory, folder / "home", _EXCLUDED_FOLDERS[kind])
                shared_tick = offset_tick(tick, number * len(questions), total)
                yield kind, _measure_and_close(part, questions, budgets, shared_tick)


def measure_commit(
    memory: Memory,
    commit: str,
    searchable: Searchable,
    questions: Sequence[EvalQuestion],
    budgets: Sequence[int],
    tick: ProgressCallback,
) -> list[Measurement]:
    """Measure the notes as they are at a commit, with the settings of the home, which is not touched."""
    # On the same disk as the home, so that transcripts need not be copied.
    with tempfile.TemporaryDirectory(prefix="compare-", dir=memory.home.private) as folder:
        root = Path(folder) / "home"
        root.mkdir()
        check_out(memory.git, commit, root, _EXCLUDED_FOLDERS[searchable])
        isolated = create_memory(Home(root), replace(memory.config, workspaces=()), memory.services.clock.now)
        return _measure_and_close(isolated, questions, budgets, tick)


def offset_tick(tick: ProgressCallback, offset: int, total: int) -> ProgressCallback:
    """Report progress as a part of a longer measurement."""
    return lambda finished, _: tick(offset + finished, total)


def _measure_and_close(
    memory: Memory, questions: Sequence[EvalQuestion], budgets: Sequence[int], tick: ProgressCallback
) -> list[Measurement]:
    try:
        return list(measure_home(memory, questions, budgets, tick))
    finally:
        memory.services.searcher.close()


# All questions


def summarize(measured: Sequence[Measurement], budgets: Sequence[int], strong: float) -> Summary:
    with_answer = sum(bool(item.question.gold) for item in measured)
    ways: dict[PromptMethod, Mapping[int, BudgetStats]] = {
        way: {
            budget: _aggregate([item.results[way, budget] for item in measured], budget, strong)
            for budget in budgets
        }
        for way in PROMPT_METHODS
    }
    return Summary(with_answer, len(measured) - with_answer, ways)


def _aggregate(results: Sequence[PromptScore], budget: int, strong: float) -> BudgetStats:
    unanswered = [result for result in results if result.recall is None]
    times = [result.milliseconds for result in results]
    return BudgetStats(
        recall=_mean(result.recall for result in results if result.recall is not None),
        part=_mean(result.part for result in results if result.part is not None),
        tokens=_mean(result.tokens for result in results),
        over=_mean(result.tokens > budget for result in results) if budget != DEFAULT_BUDGET else None,
        p50=percentile(times, 0.5),
        p95=percentile(times, 0.95),
        strong=_mean(result.best is not None and result.best >= strong for result in unanswered),
        injected=_mean(result.best is not None for result in unanswered),
    )


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else None


# Prompts


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
    scored = index.words.search(terms, scope, min(_MAX_CHUNKS, budget // 2 + 1)) if terms else []
    for start in range(0, len(scored), _BATCH_SIZE):
        ids = [entry.id for entry in scored[start : start + _BATCH_SIZE]]
        stored = index.read_chunks(ids)
        for row in (stored[key] for key in ids if key in stored):
            yield PromptLine(row.path, row.chunk.speaker, row.chunk.text.strip())


# Compiled


class EvalCompiler:
    """Compiles turns of a home without changing it: their logs go to `folder`. They have no session, so that
    no conversation is left out as the current one."""

    def __init__(self, memory: Memory, folder: Path) -> None:
        gate = gate_factory(memory.home, memory.config, search_parts(memory.config, memory.home))
        state = CompilerState(Home(folder), memory.config, gate, memory.services.profiles.profile_of)
        self._compiler = ContextCompiler(state)
        self._search_view = _CachedSearch(memory)
        self._now = memory.services.clock.now()
        self.scope = replace(memory.services.profiles.scope_of(SESSION_KEY), archived=False)

    def compile(self, message: str, budget: int) -> tuple[Compiled, float]:
        """The compiled turn and its time in milliseconds. DEFAULT_BUDGET: as a turn that names no budget."""
        request = Request(message, SESSION_KEY, session_id="eval", budget=budget or None, trial=True)
        self._search_view.begin(message)
        began = time.perf_counter()
        compiled = self._compiler.compile(request, self._search_view, self._now)
        return compiled, (time.perf_counter() - began + self._search_view.spared) * 1000


class _CachedSearch(LiveHome):
    """Searches only once for a message, even if it is compiled with several budgets."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory.home, lambda: memory.services.searcher, memory.workspaces)
        self.is_watched = True
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

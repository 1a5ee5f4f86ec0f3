"""Evidence recall at a token budget: how much of what an answer needs is in the prompt?

A piece of evidence is a message of a set or a quote from the user's home. It is in a prompt if its whole text
is, ignoring white space; `part`: if one of its chunks is, as the index cuts them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from tacit.context.model import Compiled, Notice
from tacit.evaluation.homes import temporary_home
from tacit.evaluation.measures import percentile
from tacit.evaluation.prompts import (
    DEFAULT_BUDGET,
    EvalCompiler,
    PromptEvidence,
    PromptLine,
    collapse_space,
    evidence_of_lines,
    evidence_of_prompt,
    list_messages,
    pack_lines,
    rank_chunks,
)
from tacit.evaluation.sets import EvalQuestion, EvidencePlace, QuestionSet
from tacit.markdown.chunker import split_message
from tacit.memory import Memory
from tacit.search.open_index import open_index

PromptMethod: TypeAlias = Literal["compiled", "recent", "bm25"]
PROMPT_METHODS: tuple[PromptMethod, ...] = get_args(PromptMethod)
ProgressCallback: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class PromptScore:
    """One question with one way and one budget. `recall` and `part` are None for unanswerable questions."""

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
    """All questions with one way and one budget: shares and means; None without values."""

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
        texts = {message.id: message.text for message in collection.said}
        questions = [_quote_messages(question, texts) for question in collection.questions]
        newest = (
            PromptLine("", message.speaker, message.text.strip()) for message in reversed(collection.said)
        )
        with temporary_home(collection, settings) as (memory, _):
            for measured in _measure_questions(memory, questions, newest, budgets):
                yield measured
                finished += 1
                tick(finished, total)


def measure_home(
    memory: Memory, questions: Sequence[EvalQuestion], budgets: Sequence[int], tick: ProgressCallback
) -> Iterator[Measurement]:
    memory.searcher.update()
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
    memory.turns.warm()
    with (
        tempfile.TemporaryDirectory(prefix="tacit-eval-") as folder,
        closing(open_index(memory.searcher.file)) as index,
    ):
        compiler = EvalCompiler(memory, Path(folder))
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

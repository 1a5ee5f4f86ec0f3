"""Evidence recall at a token budget: of what an answer needs, how much stands in the prompt?

A piece of evidence is a message of a set or a quote from one's own home. It stands in a prompt when its whole
text does, white space aside; `part`: when one of its passages does, as the index cuts them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from tacit.evaluation.homes import home_of
from tacit.evaluation.measures import percentile
from tacit.evaluation.prompts import (
    DEFAULT,
    Compiler,
    Line,
    Shown,
    collapsed,
    fitting,
    passages,
    shown,
    shown_in,
    turns_of,
)
from tacit.evaluation.sets import Collection, Place, Question
from tacit.index.opening import open_index
from tacit.memory import Memory
from tacit.model.context import Compiled, Notice
from tacit.text.chunk import pieces
from tacit.text.passages import LIMIT

Way: TypeAlias = Literal["compiled", "recent", "bm25"]
WAYS: tuple[Way, ...] = get_args(Way)
Tick: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Result:
    """One question in one way with one budget. `recall` and `part` are None for one without an answer."""

    recall: float | None
    part: float | None
    tokens: int
    milliseconds: float = 0.0
    best: float | None = None  # relevance of the best passage given; None: none was


@dataclass(frozen=True, slots=True)
class Measured:
    question: Question
    results: Mapping[tuple[Way, int], Result]
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class At:
    """All questions in one way with one budget: shares and means, None of nothing."""

    recall: float | None
    part: float | None
    tokens: float | None
    over: float | None
    p50: float
    p95: float
    strong: float | None  # of the questions without an answer those that got a passage this relevant,
    injected: float | None  # and those that got any


@dataclass(frozen=True, slots=True)
class Summary:
    questions: int
    unanswerable: int
    ways: Mapping[Way, Mapping[int, At]]


def measure_set(
    collections: Sequence[Collection], settings: Mapping[str, object], budgets: Sequence[int], tick: Tick
) -> Iterator[Measured]:
    """Each collection in a home of its own."""
    asked = [one for one in collections if one.questions]
    total, done = sum(len(one.questions) for one in asked), 0
    for collection in asked:
        texts = {said.id: said.text for said in collection.said}
        questions = [_quoting(question, texts) for question in collection.questions]
        newest = (Line("", said.speaker, said.text.strip()) for said in reversed(collection.said))
        with home_of(collection, settings) as (memory, _):
            for measured in _measure(memory, questions, newest, budgets):
                yield measured
                done += 1
                tick(done, total)


def measure_home(
    memory: Memory, questions: Sequence[Question], budgets: Sequence[int], tick: Tick
) -> Iterator[Measured]:
    memory.searcher.update()
    for done, measured in enumerate(_measure(memory, questions, turns_of(memory), budgets), 1):
        yield measured
        tick(done, len(questions))


def _quoting(question: Question, texts: Mapping[str, str]) -> Question:
    """Messages by their text. One that is not in the set is nowhere, and so not in a prompt."""
    gold = tuple((Place("", texts.get(places[0].path, "")),) for places in question.gold)
    return replace(question, gold=gold)


def _measure(
    memory: Memory, questions: Iterable[Question], newest: Iterable[Line], budgets: Sequence[int]
) -> Iterator[Measured]:
    usual = memory.config.context_compiler.token_budget
    room = {budget: usual if budget == DEFAULT else budget for budget in budgets}
    most = max(room.values())
    said = fitting((line for line in newest if line.text), most)
    recent = {budget: shown(reversed(fitting(said, room[budget]))) for budget in budgets}
    memory.turns.warm()
    with (
        tempfile.TemporaryDirectory(prefix="tacit-eval-") as folder,
        closing(open_index(memory.searcher.file)) as index,
    ):
        compiler = Compiler(memory, Path(folder))
        for question in questions:
            ranked = fitting(passages(index, question.text, compiler.scope, most), most)
            results: dict[tuple[Way, int], Result] = {}
            notices: list[Notice] = []
            for budget in budgets:
                compiled, milliseconds = compiler.compile(question.text, budget)
                results["compiled", budget] = replace(
                    _result(question, shown_in(compiled)), milliseconds=milliseconds, best=_best(compiled)
                )
                results["recent", budget] = _result(question, recent[budget])
                results["bm25", budget] = _result(question, shown(fitting(ranked, room[budget])))
                notices += compiled.receipt.notices
            yield Measured(question, results, tuple(notices))


def _best(compiled: Compiled) -> float | None:
    scores = [section.score or 0.0 for section in compiled.sections if section.slot == "knowledge"]
    return max(scores, default=None)


def _result(question: Question, prompt: Shown) -> Result:
    if not question.gold:
        return Result(None, None, prompt.tokens)
    whole = [any(stands(place, prompt) for place in places) for places in question.gold]
    part = [any(stands_in_part(place, prompt) for place in places) for places in question.gold]
    return Result(sum(whole) / len(whole), sum(part) / len(part), prompt.tokens)


def stands(place: Place, prompt: Shown) -> bool:
    """A place without a quote is a file: anything of it will do."""
    quote = collapsed(place.quote)
    return quote in prompt.text if quote else place.path in prompt.paths and place.path != ""


def stands_in_part(place: Place, prompt: Shown) -> bool:
    return stands(place, prompt) or any(
        collapsed(piece.text) in prompt.text for piece in pieces(place.quote, LIMIT)
    )


# All of them


def summary(measured: Sequence[Measured], budgets: Sequence[int], strong: float) -> Summary:
    with_answer = sum(bool(one.question.gold) for one in measured)
    ways: dict[Way, Mapping[int, At]] = {
        way: {
            budget: _at([one.results[way, budget] for one in measured], budget, strong) for budget in budgets
        }
        for way in WAYS
    }
    return Summary(with_answer, len(measured) - with_answer, ways)


def _at(results: Sequence[Result], budget: int, strong: float) -> At:
    without = [one for one in results if one.recall is None]
    times = [one.milliseconds for one in results]
    return At(
        recall=_mean(one.recall for one in results if one.recall is not None),
        part=_mean(one.part for one in results if one.part is not None),
        tokens=_mean(one.tokens for one in results),
        over=_mean(one.tokens > budget for one in results) if budget != DEFAULT else None,
        p50=percentile(times, 0.5),
        p95=percentile(times, 0.95),
        strong=_mean(one.best is not None and one.best >= strong for one in without),
        injected=_mean(one.best is not None for one in without),
    )


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return sum(found) / len(found) if found else None

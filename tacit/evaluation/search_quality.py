"""How well search finds what it should: ranks of the evidence, and the means over all questions."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2

from tacit.evaluation.homes import MessagesByPlace, temporary_home
from tacit.evaluation.questions import EvalQuestion, EvidencePlace, QuestionSet
from tacit.memory import Memory
from tacit.search.model import Found, Hit

RECALL_DEPTHS = (5, 10, 20)
_MAX_HITS = 60  # chunks, of which long messages have several


@dataclass(frozen=True, slots=True)
class QuestionHits:
    """A question and its hits. `ranks`: where each gold item was found; `right`: whether each hit is."""

    question: EvalQuestion
    found: Found
    milliseconds: float
    ranks: tuple[int | None, ...]
    right: tuple[bool, ...]
    sessions: tuple[str, ...] = ()
    foreign: bool = False

    @property
    def best(self) -> float:
        return self.found.hits[0].score if self.found.hits else 0.0


ProgressCallback = Callable[[int, int], None]


def ask_set(
    collections: Sequence[QuestionSet],
    search: Mapping[str, object],
    tick: ProgressCallback,
    *,
    foreign: bool = False,
) -> Iterator[QuestionHits]:
    """Ask each collection in a home of its own. `foreign`: also ask the questions of another collection, to
    which the home has no answer."""
    total = sum(len(collection.questions) for collection in collections) * (2 if foreign else 1)
    finished = 0
    for place, collection in enumerate(collections):
        foreign_questions = collections[(place + 1) % len(collections)].questions if foreign else ()
        with temporary_home(collection, search) as (memory, known):
            for number, question in enumerate((*collection.questions, *foreign_questions)):
                yield _ask_question(memory, question, known, number >= len(collection.questions))
                finished += 1
                tick(finished, total)


def ask_home(
    memory: Memory, questions: Sequence[EvalQuestion], tick: ProgressCallback
) -> Iterator[QuestionHits]:
    memory.services.searcher.update()
    for number, question in enumerate(questions, 1):
        result, milliseconds = _timed_search(memory, question)
        ranks = tuple(_rank_of(gold, result.hits) for gold in question.gold)
        right = tuple(_is_right(hit, question) for hit in result.hits)
        yield QuestionHits(question, result, milliseconds, ranks, right)
        tick(number, len(questions))


def _timed_search(memory: Memory, question: EvalQuestion) -> tuple[Found, float]:
    began = time.perf_counter()
    result = memory.services.searcher.find(
        question.text, limit=_MAX_HITS, now=memory.services.clock.now(), catch_up=0
    )
    return result, (time.perf_counter() - began) * 1000


def _ask_question(
    memory: Memory, question: EvalQuestion, known: MessagesByPlace, foreign: bool
) -> QuestionHits:
    result, milliseconds = _timed_search(memory, question)
    messages = [known.get((hit.path, hit.turn)) for hit in result.hits]
    ids = [message.id if message else "" for message in messages]
    gold = [] if foreign else [places[0].path for places in question.gold]
    unique_ids = list(dict.fromkeys(ids))
    return QuestionHits(
        question,
        result,
        milliseconds,
        ranks=tuple(
            unique_ids.index(message_id) if message_id in unique_ids else None for message_id in gold
        ),
        right=tuple(message_id in gold for message_id in ids),
        sessions=tuple(message.session for message in messages if message),
        foreign=foreign,
    )


def _rank_of(gold: Sequence[EvidencePlace], hits: Sequence[Hit]) -> int | None:
    return next(
        (rank for rank, hit in enumerate(hits) if any(_is_hit_at(hit, place) for place in gold)), None
    )


def _is_right(hit: Hit, question: EvalQuestion) -> bool:
    return any(_is_hit_at(hit, place) for gold in question.gold for place in gold)


def _is_hit_at(hit: Hit, place: EvidencePlace) -> bool:
    return hit.path == place.path and place.quote in hit.text


def summarize(answers: Sequence[QuestionHits], strong: float) -> dict[str, float]:
    """The measures over all answerable questions, and the false hits of the others."""
    rows = []
    for answer in answers:
        if answer.ranks:
            row = measure_ranking(answer.ranks)
            if answer.question.sessions:
                row["session R@5"] = share_found(answer.question.sessions, answer.sessions, 5)
            rows.append(row)
    unanswered = [answer for answer in answers if not answer.ranks]
    result = {"questions": float(len(rows)), **means(rows)}
    if rows:
        result["strong"] = sum(answer.best >= strong for answer in answers if answer.ranks) / len(rows)
    if unanswered:
        result["unanswerable"] = float(len(unanswered))
        result["false strong"] = sum(answer.best >= strong for answer in unanswered) / len(unanswered)
    times = [answer.milliseconds for answer in answers]
    return result | {"p50 ms": percentile(times, 0.5), "p95 ms": percentile(times, 0.95)}


def measure_ranking(ranks: Sequence[int | None]) -> dict[str, float]:
    """`ranks`: for each expected item its first rank, from 0; None: not found."""
    total = len(ranks)
    found_ranks = sorted(rank for rank in ranks if rank is not None)
    measures = {f"R@{depth}": sum(rank < depth for rank in found_ranks) / total for depth in RECALL_DEPTHS}
    measures["MRR"] = 1 / (1 + found_ranks[0]) if found_ranks else 0.0
    best = sum(1 / log2(place + 2) for place in range(min(total, 10)))
    measures["nDCG@10"] = sum(1 / log2(rank + 2) for rank in found_ranks if rank < 10) / best
    return measures


def share_found(wanted: Collection[str], ranking: Iterable[str], depth: int) -> float:
    """The share of the expected items that are among the first `depth` distinct ones."""
    top = list(dict.fromkeys(ranking))[:depth]
    return sum(item in top for item in wanted) / len(wanted)


def means(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {
        name: sum(values) / len(values)
        for name in names
        if (values := [row[name] for row in rows if name in row])
    }


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

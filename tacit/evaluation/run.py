"""Asking every question of a set, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tacit.evaluation.homes import Known, home_of
from tacit.evaluation.measures import means, of_ranking, percentile, share_found
from tacit.evaluation.sets import Collection, Place, Question
from tacit.memory import Memory
from tacit.model.search import Found, Hit

_DEEP = 60  # passages asked for: long messages have several


@dataclass(frozen=True, slots=True)
class Asked:
    """One question with its answer. `ranks`: where each gold thing was found; `right`: which hits are."""

    question: Question
    found: Found
    milliseconds: float
    ranks: tuple[int | None, ...]
    right: tuple[bool, ...]
    sessions: tuple[str, ...] = ()
    foreign: bool = False

    @property
    def best(self) -> float:
        return self.found.hits[0].score if self.found.hits else 0.0


Tick = Callable[[int, int], None]


def ask_set(
    collections: Sequence[Collection], search: Mapping[str, object], tick: Tick, *, foreign: bool = False
) -> Iterator[Asked]:
    """Each collection in a home of its own. `foreign`: ask each home the questions of another one as well, to
    which it has no answer."""
    total = sum(len(one.questions) for one in collections) * (2 if foreign else 1)
    done = 0
    for place, collection in enumerate(collections):
        others = collections[(place + 1) % len(collections)].questions if foreign else ()
        with home_of(collection, search) as (memory, known):
            for number, question in enumerate((*collection.questions, *others)):
                yield _asked_of_set(memory, question, known, number >= len(collection.questions))
                done += 1
                tick(done, total)


def ask_home(memory: Memory, questions: Sequence[Question], tick: Tick) -> Iterator[Asked]:
    memory.searcher.update()
    for number, question in enumerate(questions, 1):
        found, milliseconds = _timed(memory, question)
        ranks = tuple(_rank_of(gold, found.hits) for gold in question.gold)
        right = tuple(_is_one_of(hit, question) for hit in found.hits)
        yield Asked(question, found, milliseconds, ranks, right)
        tick(number, len(questions))


def _timed(memory: Memory, question: Question) -> tuple[Found, float]:
    began = time.perf_counter()
    found = memory.searcher.find(question.text, limit=_DEEP, now=memory.moment(), catch_up=0)
    return found, (time.perf_counter() - began) * 1000


def _asked_of_set(memory: Memory, question: Question, known: Known, foreign: bool) -> Asked:
    found, milliseconds = _timed(memory, question)
    messages = [known.get((hit.path, hit.turn)) for hit in found.hits]
    ids = [message.id if message else "" for message in messages]
    gold = [] if foreign else [places[0].path for places in question.gold]
    first = list(dict.fromkeys(ids))
    return Asked(
        question,
        found,
        milliseconds,
        ranks=tuple(first.index(one) if one in first else None for one in gold),
        right=tuple(one in gold for one in ids),
        sessions=tuple(message.session for message in messages if message),
        foreign=foreign,
    )


def _rank_of(gold: Sequence[Place], hits: Sequence[Hit]) -> int | None:
    return next((rank for rank, hit in enumerate(hits) if any(_is_at(hit, place) for place in gold)), None)


def _is_one_of(hit: Hit, question: Question) -> bool:
    return any(_is_at(hit, place) for gold in question.gold for place in gold)


def _is_at(hit: Hit, place: Place) -> bool:
    return hit.path == place.path and place.quote in hit.text


def summary(asked: Sequence[Asked], strong: float) -> dict[str, float]:
    """The measures over all questions that have an answer, and what the others were told."""
    rows = []
    for one in asked:
        if one.ranks:
            row = of_ranking(one.ranks)
            if one.question.sessions:
                row["session R@5"] = share_found(one.question.sessions, one.sessions, 5)
            rows.append(row)
    without = [one for one in asked if not one.ranks]
    result = {"questions": float(len(rows)), **means(rows)}
    if rows:
        result["strong"] = sum(one.best >= strong for one in asked if one.ranks) / len(rows)
    if without:
        result["unanswerable"] = float(len(without))
        result["false strong"] = sum(one.best >= strong for one in without) / len(without)
    times = [one.milliseconds for one in asked]
    return result | {"p50 ms": percentile(times, 0.5), "p95 ms": percentile(times, 0.95)}

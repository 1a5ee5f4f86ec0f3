"""What wakes topics, tier by tier, on messages of 300 characters, against one bare pass over their words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter

from bench import corpus, homes, playbooks
from bench.pairs import Measured, Timed, paired
from tacit.model.topics import Stimulus
from tacit.watch.gate import GatedActivator, Question
from tacit.watch.patterns import PatternMatcher
from tacit.watch.pipeline import Moment, WatcherPipeline
from tacit.watch.similarity import SimilarityScorer

_LENGTH = 300
_WORD = re.compile(r"\w+")
_MANY, _SOME, _FEW = 500, 200, 10  # topics


def measure(folder: Path) -> list[Measured]:
    del folder  # nothing is written
    many = playbooks.topics(_MANY)
    some, few = many[:_SOME], many[:_FEW]
    matcher, scorer, gate = PatternMatcher(many), SimilarityScorer(some), GatedActivator()
    pipeline = WatcherPipeline(some, gate)
    moment = Moment("2026-03-20T09:00:00+00:00")
    return [
        _measured(f"triggers of {_MANY} topics, aim 1 ms", lambda text: matcher.find(Stimulus(text))),
        _measured(f"similarity to {_SOME} topics", scorer.measure),
        _measured(
            f"the rule of the gate, {_FEW} topics",
            lambda text: gate.ask_all(text, [Question(topic, 0.25, True) for topic in few]),
        ),
        _measured(f"all of them, {_SOME} topics", lambda text: pipeline.process(Stimulus(text), moment)),
    ]


def messages() -> list[str]:
    """Questions about the notes, each among other words."""
    around = homes.words(_LENGTH)
    return [f"{question.text}. {next(around)}"[:_LENGTH] for question in corpus.questions(10_000)]


def _measured(what: str, work: Callable[[str], object]) -> Measured:
    said, took = cycle(messages()), list[float]()

    def ours() -> float:
        took.append(_took(work, next(said)))
        return took[-1]

    samples = 5 * corpus.ASKED
    found = paired(
        f"tiers: {what}", "re.findall of its words", _floor(), ours, samples=samples, warm=corpus.ASKED
    )
    last = [1000 * seconds for seconds in took[-samples:]]
    return replace(found, remark=f"p50 {median(last):.3f} ms, p95 {quantiles(last, n=20)[-1]:.3f} ms")


def _floor() -> Timed:
    said = cycle(messages())
    return lambda: _took(_WORD.findall, next(said))


def _took(work: Callable[[str], object], text: str) -> float:
    began = perf_counter()
    work(text)
    return perf_counter() - began

"""Topic activation, tier by tier, on messages of 300 characters, against one bare pass over their words."""

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
from tacit.topics.activation import GatedActivator, GateQuestion
from tacit.topics.model import Stimulus
from tacit.topics.patterns import PatternMatcher
from tacit.topics.pipeline import Moment, WatcherPipeline
from tacit.topics.similarity import SimilarityScorer

_MESSAGE_CHARS = 300
_WORD = re.compile(r"\w+")
_MANY_TOPICS, _SOME_TOPICS, _FEW_TOPICS = 500, 200, 10  # topics


def measure(folder: Path) -> list[Measured]:
    del folder  # nothing is written
    many = playbooks.topics(_MANY_TOPICS)
    some, few = many[:_SOME_TOPICS], many[:_FEW_TOPICS]
    matcher, scorer, gate = PatternMatcher(many), SimilarityScorer(some), GatedActivator()
    pipeline = WatcherPipeline(some, gate)
    moment = Moment("2026-03-20T09:00:00+00:00")
    return [
        _measure_step(
            f"triggers of {_MANY_TOPICS} topics, aim 1 ms", lambda text: matcher.find(Stimulus(text))
        ),
        _measure_step(f"similarity to {_SOME_TOPICS} topics", scorer.measure),
        _measure_step(
            f"the rule of the gate, {_FEW_TOPICS} topics",
            lambda text: gate.ask_all(text, [GateQuestion(topic, 0.25, True) for topic in few]),
        ),
        _measure_step(
            f"all of them, {_SOME_TOPICS} topics", lambda text: pipeline.process(Stimulus(text), moment)
        ),
    ]


def messages() -> list[str]:
    """Questions about the notes, each surrounded by other words."""
    around = homes.words(_MESSAGE_CHARS)
    return [f"{question.text}. {next(around)}"[:_MESSAGE_CHARS] for question in corpus.questions(10_000)]


def _measure_step(label: str, work: Callable[[str], object]) -> Measured:
    texts, times = cycle(messages()), list[float]()

    def ours() -> float:
        times.append(_time_call(work, next(texts)))
        return times[-1]

    samples = 5 * corpus.ASKED
    result = paired(
        f"tiers: {label}", "re.findall of its words", _time_words(), ours, samples=samples, warm=corpus.ASKED
    )
    times_ms = [1000 * seconds for seconds in times[-samples:]]
    return replace(
        result, remark=f"p50 {median(times_ms):.3f} ms, p95 {quantiles(times_ms, n=20)[-1]:.3f} ms"
    )


def _time_words() -> Timed:
    texts = cycle(messages())
    return lambda: _time_call(_WORD.findall, next(texts))


def _time_call(work: Callable[[str], object], text: str) -> float:
    began = perf_counter()
    work(text)
    return perf_counter() - began

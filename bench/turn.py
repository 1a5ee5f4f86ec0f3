"""A warm turn against the bare SQL statements of its search.

A turn has everything: identity, 200 topics of which about one activates, twenty turns of conversation, the
chunks for its question, a receipt at the end. No files are listed, as with a daemon that follows them. Each
turn is a session of its own, so that no chunk is left out because an earlier turn had it. Each turn asks
another question, and an answer from the cache is an error, since the search is to be measured.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from statistics import mean, median, quantiles
from time import perf_counter
from typing import NamedTuple, TypeVar

import apsw

from bench import corpus, homes, playbooks
from bench.pairs import Measured, Timed, paired
from bench.query import Statement, connected, recording
from tacit import Memory
from tacit.app import create_memory, load_config, utc_now
from tacit.context.model import Compiled
from tacit.home.layout import Home

_Number = TypeVar("_Number", int, float)

SIZES = (1_000, 10_000)  # notes
_TOPICS = 200
KIND = corpus.Kind("turns", partial(playbooks.furnish, count=_TOPICS))
_HISTORY = 20
_MAX_RATIO = 2.5
_FAILURE_CODES = {"bug", "deadline", "index", "vector", "cache"}
_SETUP_SQL = ("CREATE TEMP ", "INSERT INTO temp.")
_SEARCH_SQL = ("bm25(", "vec_distance_hamming(", "vec_distance_cosine(", "p.checksum")


def measure(folder: Path) -> list[Measured]:
    del folder  # only receipts are written, to a cached home
    return [warm(notes) for notes in SIZES]


def warm(notes: int, samples: int = corpus.ASKED) -> Measured:
    root = corpus.indexed(notes, KIND)
    _clear_logs(root)
    warm_up = samples // 2
    setup, searches = _record_statements(root, notes, warm_up + samples)
    memory = _open_memory(root)
    bare = connected(memory.services.searcher.file)
    for statement in setup:
        bare.execute(*statement)
    timer = _TurnTimer(memory, asked(notes, warm_up + samples), samples)
    result = paired(
        f"turn: {notes:,} notes, {_TOPICS} topics",
        "its bare statements",
        _time_statements(bare, searches),
        timer.once,
        samples=samples,
        aim=_MAX_RATIO,
        warm=warm_up,
    )
    memory.services.searcher.close()
    bare.close()
    timer.print_steps(notes)
    return replace(result, remark=timer.remark())


def growth(small: Measured, large: Measured, what: str) -> Measured:
    """How much faster turns grow than statements do: below 1, statements grow faster."""
    times = (
        f"turns grow {large.ours / small.ours:.1f} times, statements {large.floor / small.floor:.1f} times"
    )
    return replace(
        large,
        what=what,
        ratio=large.ratio / small.ratio,
        middle=(large.middle[0] / small.middle[1], large.middle[1] / small.middle[0]),
        aim=1.0,
        remark=times,
    )


# ---------------------------------------------------------------- turns


class Asked(NamedTuple):
    message: str
    session_key: str
    history: Sequence[tuple[str, str]]


def asked(notes: int, count: int) -> Iterator[Asked]:
    """This many distinct questions. The conversation advances by two turns each time."""
    questions = {question.text: question for question in corpus.questions(notes, 2 * count)}
    conversation = list(zip(cycle(("user", "agent")), islice(homes.words(200), 2_000), strict=False))
    for number, question in enumerate(islice(questions.values(), count)):
        start = 2 * number % (len(conversation) - _HISTORY)
        key = f"agent:main:telegram:direct:7:thread:{number}"
        yield Asked(question.text, key, conversation[start : start + _HISTORY])


def _open_memory(root: Path) -> Memory:
    """The owner's memory, with a deadline that is long enough for a busy machine."""
    home = Home(root)
    config = load_config(home).config
    config = replace(config, owners=("telegram:7",), inject=replace(config.inject, deadline_ms=60_000))
    memory = create_memory(home, config, utc_now)
    memory.services.turns.present.is_watched = True
    return memory


def _run_turn(memory: Memory, turn: Asked) -> Compiled:
    return memory.turn(turn.message, session_key=turn.session_key, history=turn.history)


class _TurnTimer:
    """Runs one turn after the other, and times their steps."""

    def __init__(self, memory: Memory, questions: Iterator[Asked], samples: int) -> None:
        self._memory, self._turns, self._samples = memory, questions, samples
        self._totals: list[float] = []
        self._steps: defaultdict[str, list[float]] = defaultdict(list)
        self._counts: defaultdict[str, list[int]] = defaultdict(list)

    def once(self) -> float:
        turn = next(self._turns)
        began = perf_counter()
        compiled = _run_turn(self._memory, turn)
        took = perf_counter() - began
        self._note(took, compiled)
        return took

    def _note(self, took: float, compiled: Compiled) -> None:
        receipt = compiled.receipt
        assert not _FAILURE_CODES & {notice.code for notice in receipt.notices}, receipt.notices
        assert receipt.audience == "owner"
        self._totals.append(took * 1000)
        for step, milliseconds in receipt.timings_ms.items():
            self._steps[step].append(milliseconds)
        slots = [section.slot for section in compiled.sections]
        for slot in ("topics", "subscriptions", "knowledge"):
            self._counts[slot].append(slots.count(slot))
        self._counts["dropped"].append(len(compiled.dropped))
        self._counts["tokens"].append(compiled.tokens)

    def remark(self) -> str:
        totals = self._measured(self._totals)
        return f"p50 {median(totals):.1f} ms, p95 {quantiles(totals, n=20)[-1]:.1f} ms"

    def print_steps(self, notes: int) -> None:
        print(f"\nturn: {notes:,} notes, medians of the steps in ms")
        steps = {step: median(self._measured(took)) for step, took in self._steps.items()}
        total = median(self._measured(self._totals))
        steps |= {"besides": total - sum(steps.values()), "all": total}
        print("  " + "  ".join(f"{step} {took:.2f}" for step, took in steps.items()))
        print(
            "  "
            + ", ".join(f"{mean(self._measured(counts)):.1f} {name}" for name, counts in self._counts.items())
        )
        print()

    def _measured(self, values: Sequence[_Number]) -> Sequence[_Number]:
        return values[-self._samples :]


# ---------------------------------------------------------------- the floor


def _record_statements(root: Path, notes: int, count: int) -> tuple[list[Statement], list[list[Statement]]]:
    """The statements that create temporary tables, and the search statements of each turn, without those
    whose results are cached from turn to turn."""
    setup, searches = list[Statement](), []
    with recording() as recorded:
        memory = _open_memory(root)
        for turn in asked(notes, count):
            recorded.clear()
            _run_turn(memory, turn)
            setup += [statement for statement in recorded if statement.sql.startswith(_SETUP_SQL)]
            searches.append(
                [statement for statement in recorded if any(part in statement.sql for part in _SEARCH_SQL)]
            )
    memory.services.searcher.close()
    _clear_logs(root)
    return setup, searches


def _time_statements(bare: apsw.Connection, statements: Sequence[Sequence[Statement]]) -> Timed:
    statement_cycle = cycle(statements)

    def once() -> float:
        turn_statements = next(statement_cycle)
        began = perf_counter()
        for statement in turn_statements:
            list(bare.execute(*statement))
        return perf_counter() - began

    return once


def _clear_logs(root: Path) -> None:
    """Delete the logs of earlier runs."""
    for name in ("receipts", "gate"):
        shutil.rmtree(root / ".tacit" / name, ignore_errors=True)

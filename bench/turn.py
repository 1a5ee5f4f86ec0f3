"""A warm turn against the bare statements that its search asks of the index.

Everything that a turn has: identity, 200 topics of which about one wakes, twenty turns of conversation, the
passages of its question, a receipt at the end. Nobody lists files: a daemon follows them. Each turn is a
session of its own, so that none goes without a passage because an earlier one had it.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count, cycle, islice
from pathlib import Path
from statistics import mean, median, quantiles
from time import perf_counter
from typing import NamedTuple, TypeVar

import apsw

from bench import corpus, homes, playbooks
from bench.pairs import Measured, Timed, paired
from bench.query import Statement, connected, recording
from tacit import Memory
from tacit.app import load_config, memory_of, now
from tacit.model.context import Compiled
from tacit.store.home import Home

_Number = TypeVar("_Number", int, float)

SIZES = (1_000, 10_000)  # notes
_TOPICS = 200
KIND = corpus.Kind("turns", partial(playbooks.furnish, count=_TOPICS))
_HISTORY = 20
_AIM = 2.5
_FAILED = {"bug", "deadline", "index", "vector"}
_BEFORE = ("CREATE TEMP ", "INSERT INTO temp.")
_FLOOR = ("bm25(", "vec_distance_hamming(", "vec_distance_cosine(", "p.checksum")


def measure(folder: Path) -> list[Measured]:
    del folder  # only the receipts of a cached home are written
    return [warm(notes) for notes in SIZES]


def warm(notes: int, samples: int = corpus.ASKED) -> Measured:
    root = corpus.indexed(notes, KIND)
    _forget(root)
    before, floor = _statements(root, notes, samples)
    memory = _opened(root)
    bare = connected(memory.searcher.file)
    for statement in before:
        bare.execute(*statement)
    ours = _Ours(memory, notes, samples)
    found = paired(
        f"turn: {notes:,} notes, {_TOPICS} topics",
        "its bare statements",
        _floor(bare, floor),
        ours.once,
        samples=samples,
        aim=_AIM,
        warm=samples // 2,
    )
    memory.searcher.close()
    bare.close()
    ours.print_steps(notes)
    return replace(found, remark=ours.remark())


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


def asked(notes: int, samples: int) -> Iterator[Asked]:
    """So many questions again and again. The conversation goes on by two turns each time."""
    questions = cycle(corpus.questions(notes)[:samples])
    said = list(zip(cycle(("user", "agent")), islice(homes.words(200), 2_000), strict=False))
    for number, question in zip(count(), questions, strict=False):
        at = 2 * number % (len(said) - _HISTORY)
        key = f"agent:main:telegram:direct:7:thread:{number}"
        yield Asked(question.text, key, said[at : at + _HISTORY])


def _opened(root: Path) -> Memory:
    """The owner's, with time enough for a busy machine."""
    home = Home(root)
    config = load_config(home).config
    config = replace(config, owners=("telegram:7",), inject=replace(config.inject, deadline_ms=60_000))
    memory = memory_of(home, config, now)
    memory.turns.present.followed = True
    return memory


def _taken(memory: Memory, one: Asked) -> Compiled:
    return memory.turn(one.message, session_key=one.session_key, history=one.history)


class _Ours:
    """Each question in turn, and how long its steps took."""

    def __init__(self, memory: Memory, notes: int, samples: int) -> None:
        self._memory, self._asked, self._samples = memory, asked(notes, samples), samples
        self._whole: list[float] = []
        self._steps: defaultdict[str, list[float]] = defaultdict(list)
        self._counts: defaultdict[str, list[int]] = defaultdict(list)

    def once(self) -> float:
        one = next(self._asked)
        began = perf_counter()
        compiled = _taken(self._memory, one)
        took = perf_counter() - began
        self._note(took, compiled)
        return took

    def _note(self, took: float, compiled: Compiled) -> None:
        receipt = compiled.receipt
        assert not _FAILED & {notice.code for notice in receipt.notices}, receipt.notices
        assert receipt.audience == "owner"
        self._whole.append(took * 1000)
        for step, milliseconds in receipt.timings_ms.items():
            self._steps[step].append(milliseconds)
        slots = [section.slot for section in compiled.sections]
        for slot in ("topics", "subscriptions", "knowledge"):
            self._counts[slot].append(slots.count(slot))
        self._counts["dropped"].append(len(compiled.dropped))
        self._counts["tokens"].append(compiled.tokens)

    def remark(self) -> str:
        whole = self._last(self._whole)
        return f"p50 {median(whole):.1f} ms, p95 {quantiles(whole, n=20)[-1]:.1f} ms"

    def print_steps(self, notes: int) -> None:
        print(f"\nturn: {notes:,} notes, medians of the steps in ms")
        steps = {step: median(self._last(took)) for step, took in self._steps.items()}
        whole = median(self._last(self._whole))
        steps |= {"besides": whole - sum(steps.values()), "all": whole}
        print("  " + "  ".join(f"{step} {took:.2f}" for step, took in steps.items()))
        print("  " + ", ".join(f"{mean(self._last(each)):.1f} {what}" for what, each in self._counts.items()))
        print()

    def _last(self, values: Sequence[_Number]) -> Sequence[_Number]:
        return values[-self._samples :]


# ---------------------------------------------------------------- the floor


def _statements(root: Path, notes: int, samples: int) -> tuple[list[Statement], list[list[Statement]]]:
    """What the search of each turn asks of the index, without what is remembered from turn to turn; and
    before it what makes tables that are asked again and again."""
    before, found = list[Statement](), []
    with recording() as recorded:
        memory = _opened(root)
        for one in islice(asked(notes, samples), samples):
            recorded.clear()
            _taken(memory, one)
            before += [said for said in recorded if said.sql.startswith(_BEFORE)]
            found.append([said for said in recorded if any(part in said.sql for part in _FLOOR)])
    memory.searcher.close()
    _forget(root)
    return before, found


def _floor(bare: apsw.Connection, statements: Sequence[Sequence[Statement]]) -> Timed:
    turn = cycle(statements)

    def once() -> float:
        each = next(turn)
        began = perf_counter()
        for statement in each:
            list(bare.execute(*statement))
        return perf_counter() - began

    return once


def _forget(root: Path) -> None:
    """What earlier runs left in the logs."""
    for name in ("receipts", "gate"):
        shutil.rmtree(root / ".tacit" / name, ignore_errors=True)

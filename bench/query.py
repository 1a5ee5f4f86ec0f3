"""A query to a warm index against its bare SQL statements, and to a cold one in a new process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any, NamedTuple

import apsw

from bench import corpus
from bench.corpus import Question
from bench.index import MANY, NOTES, searcher_of
from bench.pairs import Measured, Timed, paired
from bench.processes import BARE, TACIT, process
from tacit.app import load_config, search_parts
from tacit.home.layout import Home
from tacit.search.model import Found
from tacit.search.searcher import Searcher
from tacit.search.sqlite.index import open_index

_HOME_SIZES = (440, 4_400, MANY)  # notes; they have about 1,000, 10,000 and 100,000 chunks
_MAX_HITS = 60  # as many as a compiled turn asks for
_NOW = datetime(2026, 3, 20, 9, 0, tzinfo=UTC)


class Statement(NamedTuple):
    sql: str
    bindings: tuple[Any, ...]


class Asked(NamedTuple):
    """The statements of a query: the best by words; the nearest by signs, then by their vectors."""

    words: Statement
    signs: Statement
    vectors: Statement | None  # None: both in one statement

    @property
    def vector(self) -> bytes:
        return next(value for value in self.signs.bindings if isinstance(value, bytes))


def measure(folder: Path) -> list[Measured]:
    del folder  # nothing is written
    results = [measured for notes in _HOME_SIZES for measured in _measure_warm(notes)]
    results += [spreading(corpus.indexed(notes), corpus.questions(notes)) for notes in _HOME_SIZES[:2]]
    _print_accuracy()
    return [*results, _measure_cold()]


# ---------------------------------------------------------------- warm


def _measure_warm(notes: int) -> list[Measured]:
    searcher = searcher_of(corpus.indexed(notes))
    question_statements = all_asked(notes)
    bare = connected(searcher.file)
    ((passages,),) = bare.execute("SELECT count(*) FROM passages")
    results = []
    for label, limit, snippets in (
        ("", 10, True),
        (f" {_MAX_HITS} hits without snippets,", _MAX_HITS, False),
    ):
        timer = _QuestionTimer(searcher, corpus.questions(notes), limit, snippets)
        measured = paired(
            f"query: {passages:,} passages,{label} without the question's vector",
            "bare statements",
            _time_statements(bare, question_statements),
            timer.once,
            samples=corpus.ASKED,
            aim=1.5,
            warm=corpus.ASKED,
        )
        timer.print_steps(passages)
        results.append(replace(measured, remark=timer.remark()))
    searcher.close()
    bare.close()
    return results


def spreading(home: Path, questions: Sequence[Question]) -> Measured:
    """The same questions with and without link expansion; half of the notes have a link."""
    parts = search_parts(load_config(Home(home)).config)
    without, with_links = (
        Searcher(Home(home), replace(parts, spreading=weight)) for weight in (0.0, parts.spreading)
    )
    reached = sum(any(hit.why.linked for hit in ask(with_links, question).hits) for question in questions)
    floor, ours = (_QuestionTimer(searcher, questions, 10, True) for searcher in (without, with_links))
    measured = paired(
        f"query: {with_links.update().report.unchanged:,} notes, one hop along links",
        "without it",
        floor.once,
        ours.once,
        samples=2 * len(questions),
        aim=1.2,
        warm=len(questions),
    )
    without.close()
    with_links.close()
    return replace(
        measured, remark=f"a linked note among the hits of {reached} of {len(questions)} questions"
    )


def ask(searcher: Searcher, question: Question, limit: int = 10, snippets: bool = True) -> Found:
    answer = searcher.find(question.text, limit=limit, now=_NOW, catch_up=0, snippets=snippets)
    assert answer.channels == ("lexical", "vector"), answer.degraded
    return answer


class _QuestionTimer:
    """Runs one question after the other, and times their steps."""

    def __init__(self, searcher: Searcher, questions: Sequence[Question], limit: int, snippets: bool) -> None:
        self._searcher, self._questions = searcher, cycle(questions)
        self._limit, self._snippets = limit, snippets
        self._totals: list[float] = []
        self._steps: defaultdict[str, list[float]] = defaultdict(list)

    def once(self) -> float:
        question = next(self._questions)
        began = perf_counter()
        answer = ask(self._searcher, question, self._limit, self._snippets)
        took = perf_counter() - began
        steps = answer.trace["milliseconds"]
        assert isinstance(steps, dict)
        self._totals.append(took * 1000)
        for step, milliseconds in steps.items():
            self._steps[step].append(milliseconds)
        return float(took - steps["vector"] / 1000)

    def _measure_warm(self, took: Sequence[float]) -> Sequence[float]:
        return took[corpus.ASKED :]

    def remark(self) -> str:
        totals, vector = self._measure_warm(self._totals), self._measure_warm(self._steps["vector"])
        return (
            f"with it p50 {median(totals):.1f} ms, p95 {quantiles(totals, n=20)[-1]:.1f} ms;"
            f" the vector {median(vector):.2f} ms"
        )

    def print_steps(self, passages: int) -> None:
        print(f"\nquery: {passages:,} passages, medians of the steps in ms")
        steps = {step: median(self._measure_warm(took)) for step, took in self._steps.items()}
        steps["all"] = median(self._measure_warm(self._totals))
        print("  " + "  ".join(f"{step} {took:.2f}" for step, took in steps.items()) + "\n")


def _time_statements(bare: apsw.Connection, statements: Sequence[Asked]) -> Timed:
    statement_cycle = cycle(statements)

    def once() -> float:
        question_statements = next(statement_cycle)
        began = perf_counter()
        for statement in question_statements:
            if statement:
                list(bare.execute(*statement))
        return perf_counter() - began

    return once


# ---------------------------------------------------------------- the statements


@contextmanager
def recording() -> Iterator[list[Statement]]:
    """Record the statements of all connections that are opened inside the block."""
    statements: list[Statement] = []

    def trace(cursor: apsw.Cursor, sql: str, bindings: Any) -> bool:
        del cursor
        statements.append(Statement(sql, tuple(bindings or ())))
        return True

    def hook(connection: apsw.Connection) -> None:
        connection.exec_trace = trace

    apsw.connection_hooks.append(hook)
    try:
        yield statements
    finally:
        apsw.connection_hooks.remove(hook)


def all_asked(notes: int) -> list[Asked]:
    with recording() as recorded:
        searcher = searcher_of(corpus.indexed(notes))
        recorded_questions = [
            _record_statements(searcher, question, recorded) for question in corpus.questions(notes)
        ]
    searcher.close()
    return recorded_questions


def _record_statements(searcher: Searcher, question: Question, recorded: list[Statement]) -> Asked:
    recorded.clear()
    ask(searcher, question)
    words, signs, vectors = (
        next(statement for statement in recorded if part in statement.sql)
        for part in ("bm25(", "vec_distance_hamming(", "vec_distance_cosine(")
    )
    return Asked(words, signs, None if vectors is signs else vectors)


def connected(file: Path) -> apsw.Connection:
    """A bare connection with the same settings as tacit's own."""
    with recording() as recorded:
        open_index(file).close()
    bare = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)
    spec = find_spec("sqlite_vec")
    assert spec
    assert spec.submodule_search_locations
    bare.enable_load_extension(True)
    bare.load_extension(str(Path(spec.submodule_search_locations[0]) / "vec0"))
    for sql, _ in recorded:
        if "mmap_size=" in sql or "cache_size=" in sql:
            bare.execute(sql)
    return bare


# ---------------------------------------------------------------- accuracy and cold start


def _print_accuracy() -> None:
    searcher = searcher_of(corpus.indexed(NOTES))
    in_first: defaultdict[str, int] = defaultdict(int)
    in_ten: defaultdict[str, int] = defaultdict(int)
    for question in corpus.questions(NOTES):
        hit_paths = [hit.path for hit in ask(searcher, question).hits]
        in_first[question.kind] += hit_paths[:1] == [question.target]
        in_ten[question.kind] += question.target in hit_paths
    searcher.close()
    kinds = ", ".join(f"{kind} {in_ten[kind]}" for kind in sorted(in_ten))
    print(
        f"query: {sum(in_ten.values())}/{corpus.ASKED} answers among the first ten of {NOTES:,} notes"
        f" ({kinds}),"
        f" {sum(in_first.values())} in the first place\n"
    )


def _measure_cold() -> Measured:
    home, question = corpus.indexed(NOTES), corpus.questions(NOTES)[1]
    ours = process(TACIT, "--home", str(home), "search", question.text)
    what = f"query: `tacit search`, {NOTES:,} notes"
    return paired(what, "`python -c pass`", process(*BARE), ours, samples=40, warm=3)

"""Two states of the notes beside each other, such as main and a rebuild.

  tacit compare main v2 --questions questions.yaml

For each: how large the notes are, what models took for them, and how much of what answers need stands in the
prompt of a turn, when only what was learned is searched, and when the conversations are as well. Then where
the notes differ. States are rebuilds, branches, tags or commits; nothing changes.

Questions are a YAML list of {question: …, answer: [PHRASE, EITHER|OR]}, or JSON lines as `tacit eval` takes
them ({"text": …, "gold": [{"path": …, "quote": …}]}), whose quotes may then stand in any note. Write them
about what you want to be remembered, before you look at either side.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tacit.app import open_home
from tacit.cli.eval_lifecycle import format_percent, read_yaml
from tacit.errors import UsageError
from tacit.evaluation.budgets import ProgressCallback, summarize
from tacit.evaluation.searchable import Searchable, read_answers
from tacit.evaluation.sets import EvalQuestion, read_questions
from tacit.llm.ledger import SpendTotal
from tacit.memory import Memory
from tacit.rebuild.comparison import (
    NoteDiff,
    NotesSize,
    NotesVersion,
    diff_notes,
    find_version,
    match_by_quotes,
    measure_recall,
    measure_size,
    sum_spending,
)
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, add_quiet_option, utf8_argument

_BUDGETS = "512,1024,2048"
_MAX_NOTES_SHOWN = 20
_WAYS: Mapping[str, tuple[Searchable, ...]] = {
    "all": ("knowledge", "both"),
    "knowledge": ("knowledge",),
    "both": ("both",),
}
Recall = Mapping[str, Mapping[int, float | None]]  # by searched content, then by budget


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("one", metavar="ONE", type=utf8_argument, help="such as main")
    parser.add_argument("other", metavar="OTHER", type=utf8_argument, help="such as v2")
    parser.add_argument("--questions", type=Path, metavar="FILE", help="what is asked of both")
    parser.add_argument(
        "--budgets", default=_BUDGETS, type=utf8_argument, metavar="N,N", help="tokens of a prompt"
    )
    parser.add_argument(
        "--searchable", choices=tuple(_WAYS), default="all", help="notes alone, conversations too, or each"
    )
    parser.add_argument("--diff", action="store_true", help="every line that differs")
    add_home_option(parser)
    add_json_option(parser)
    add_quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    budgets = _parse_budgets(options.budgets)
    questions = _read_questions(options.questions) if options.questions else []
    memory = open_home(options.home, recover=False)
    sides = [find_version(memory, options.one), find_version(memory, options.other)]
    with output.progress("asking", quiet=options.quiet or options.json) as tick:
        recalls = _measure_recalls(memory, sides, _WAYS[options.searchable], questions, budgets, tick)
    differ = list(diff_notes(memory, *sides))
    sizes = [measure_size(memory, side) for side in sides]
    spent = [sum_spending(memory, side) for side in sides]
    if options.json:
        output.dump({
            "sides": [_side_json(*each) for each in zip(sides, sizes, spent, recalls, strict=True)],
            "questions": len(questions),
            "budgets": budgets,
            "differences": [difference._asdict() for difference in differ],
        })  # fmt: skip
        return 0
    output.print_table([*_rows(sides, sizes, spent), *_recall_rows(recalls, len(questions))])
    _say_differences(differ, whole=options.diff)
    if not questions:
        output.say("Which one answers better? Ask both: --questions FILE (see: tacit compare --help)")
    return 0


def _parse_budgets(text: str) -> list[int]:
    try:
        budgets = [int(part) for part in text.split(",")]
    except ValueError:
        budgets = []
    if not budgets or min(budgets) < 1:
        raise UsageError(f"--budgets {text!r} is no list of numbers of tokens. Write: {_BUDGETS}")
    return budgets


def _read_questions(file: Path) -> list[EvalQuestion]:
    if file.suffix == ".jsonl":
        questions = match_by_quotes(read_questions(file))
    else:
        questions = read_answers(read_yaml(file, str(file)), str(file))
    if not any(question.gold for question in questions):
        raise UsageError(f"{file} has no question with an answer. See: tacit compare --help")
    return questions


def _measure_recalls(
    memory: Memory,
    sides: Sequence[NotesVersion],
    ways: Sequence[Searchable],
    questions: Sequence[EvalQuestion],
    budgets: Sequence[int],
    tick: ProgressCallback,
) -> list[Recall]:
    if not questions:
        return [{} for _ in sides]
    recalls: list[Recall] = []
    total = len(sides) * len(ways) * len(questions)
    for side in sides:
        recall: dict[str, Mapping[int, float | None]] = {}
        for way in ways:
            offset = (len(recalls) * len(ways) + len(recall)) * len(questions)
            measured = measure_recall(
                memory, side, way, questions, budgets, _offset_tick(tick, offset, total)
            )
            compiled = summarize(measured, budgets, 1.0).ways["compiled"]
            recall[way] = {budget: metrics.recall for budget, metrics in compiled.items()}
        recalls.append(recall)
    return recalls


def _offset_tick(tick: ProgressCallback, offset: int, total: int) -> ProgressCallback:
    return lambda done, _: tick(offset + done, total)


def _side_json(side: NotesVersion, size: NotesSize, spent: SpendTotal, recall: Recall) -> dict[str, object]:
    return {
        "name": side.name,
        "commit": side.commit,
        "size": size._asdict(),
        "spent": spent._asdict(),
        "recall": {way: {str(budget): share for budget, share in row.items()} for way, row in recall.items()},
    }


def _rows(
    sides: Sequence[NotesVersion], sizes: Sequence[NotesSize], spent: Sequence[SpendTotal]
) -> Iterator[list[str]]:
    yield ["", *(side.name for side in sides)]
    yield ["commit", *(side.commit[:10] for side in sides)]
    for name, label in (
        ("notes", "notes"),
        ("lines", "lines"),
        ("learned", "of them learned"),
        ("tokens", "tokens"),
    ):
        yield [label, *(format(getattr(size, name), ",") for size in sizes)]
    yield ["model calls", *(format(usage.calls, ",") for usage in spent)]
    yield ["model cost", *(_format_cost(usage) for usage in spent)]


def _format_cost(spent: SpendTotal) -> str:
    if spent.unpriced:
        return f"${spent.usd:.2f} and {spent.unpriced} calls without a price"
    return f"${spent.usd:.2f}"


def _recall_rows(recalls: Sequence[Recall], questions: int) -> Iterator[list[str]]:
    labels = {"knowledge": "notes alone", "both": "with conversations"}
    for way, row in recalls[0].items():
        yield [""]
        yield [f"evidence of {questions} questions, {labels[way]}"]
        for budget in row:
            yield [f"  in {budget:,} tokens", *(format_percent(recall[way][budget]) for recall in recalls)]


def _say_differences(differ: Sequence[NoteDiff], *, whole: bool) -> None:
    output.say()
    if not differ:
        output.say("The notes are the same.")
        return
    added, removed = (sum(len(getattr(note, name)) for note in differ) for name in ("added", "removed"))
    output.say(f"{output.pluralize(len(differ), 'note')} differ: {added} lines more, {removed} lines less")
    for note in differ if whole else differ[:_MAX_NOTES_SHOWN]:
        output.say(f"  {note.path}  +{len(note.added)} -{len(note.removed)}")
        if whole:
            for line in (*(f"- {line}" for line in note.removed), *(f"+ {line}" for line in note.added)):
                output.say(f"    {line}")
    if len(differ) > _MAX_NOTES_SHOWN and not whole:
        output.say(f"  and {len(differ) - _MAX_NOTES_SHOWN} more: --diff")

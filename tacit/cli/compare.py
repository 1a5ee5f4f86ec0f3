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
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, quiet_option, words
from tacit.cli.eval_lifecycle import percent, yaml_of
from tacit.errors import UsageError
from tacit.evaluation.budgets import Tick, summary
from tacit.evaluation.compared import (
    Differs,
    Side,
    Size,
    asked,
    by_quotes,
    differences,
    side_of,
    size_of,
    spent_on,
)
from tacit.evaluation.searchable import Searchable, read_answers
from tacit.evaluation.sets import Question, read_questions
from tacit.memory import Memory
from tacit.model.spending import Spent

_BUDGETS = "512,1024,2048"
_SHOWN = 20  # notes that differ
_WAYS: Mapping[str, tuple[Searchable, ...]] = {
    "all": ("knowledge", "both"),
    "knowledge": ("knowledge",),
    "both": ("both",),
}
Recall = Mapping[str, Mapping[int, float | None]]  # by what is searched and the budget


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("one", metavar="ONE", type=words, help="such as main")
    parser.add_argument("other", metavar="OTHER", type=words, help="such as v2")
    parser.add_argument("--questions", type=Path, metavar="FILE", help="what is asked of both")
    parser.add_argument("--budgets", default=_BUDGETS, type=words, metavar="N,N", help="tokens of a prompt")
    parser.add_argument(
        "--searchable", choices=tuple(_WAYS), default="all", help="notes alone, conversations too, or each"
    )
    parser.add_argument("--diff", action="store_true", help="every line that differs")
    home_option(parser)
    json_option(parser)
    quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    budgets = _budgets(options.budgets)
    questions = _questions(options.questions) if options.questions else []
    memory = open_home(options.home, recover=False)
    sides = [side_of(memory, options.one), side_of(memory, options.other)]
    with output.progress("asking", quiet=options.quiet or options.json) as tick:
        found = _recalls(memory, sides, _WAYS[options.searchable], questions, budgets, tick)
    differ = list(differences(memory, *sides))
    sizes = [size_of(memory, side) for side in sides]
    spent = [spent_on(memory, side) for side in sides]
    if options.json:
        output.dump({
            "sides": [_value(*each) for each in zip(sides, sizes, spent, found, strict=True)],
            "questions": len(questions),
            "budgets": budgets,
            "differences": [one._asdict() for one in differ],
        })  # fmt: skip
        return 0
    output.table([*_rows(sides, sizes, spent), *_asked_rows(found, len(questions))])
    _say_differences(differ, whole=options.diff)
    if not questions:
        output.say("Which one answers better? Ask both: --questions FILE (see: tacit compare --help)")
    return 0


def _budgets(given: str) -> list[int]:
    try:
        found = [int(part) for part in given.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1:
        raise UsageError(f"--budgets {given!r} is no list of numbers of tokens. Write: {_BUDGETS}")
    return found


def _questions(file: Path) -> list[Question]:
    if file.suffix == ".jsonl":
        found = by_quotes(read_questions(file))
    else:
        found = read_answers(yaml_of(file, str(file)), str(file))
    if not any(one.gold for one in found):
        raise UsageError(f"{file} has no question with an answer. See: tacit compare --help")
    return found


def _recalls(
    memory: Memory,
    sides: Sequence[Side],
    ways: Sequence[Searchable],
    questions: Sequence[Question],
    budgets: Sequence[int],
    tick: Tick,
) -> list[Recall]:
    if not questions:
        return [{} for _ in sides]
    found: list[Recall] = []
    total = len(sides) * len(ways) * len(questions)
    for side in sides:
        recall: dict[str, Mapping[int, float | None]] = {}
        for way in ways:
            before = (len(found) * len(ways) + len(recall)) * len(questions)
            measured = asked(memory, side, way, questions, budgets, _from(tick, before, total))
            compiled = summary(measured, budgets, 1.0).ways["compiled"]
            recall[way] = {budget: at.recall for budget, at in compiled.items()}
        found.append(recall)
    return found


def _from(tick: Tick, before: int, total: int) -> Tick:
    return lambda done, _: tick(before + done, total)


def _value(side: Side, size: Size, spent: Spent, recall: Recall) -> dict[str, object]:
    return {
        "name": side.name,
        "commit": side.commit,
        "size": size._asdict(),
        "spent": spent._asdict(),
        "recall": {way: {str(budget): share for budget, share in row.items()} for way, row in recall.items()},
    }


def _rows(sides: Sequence[Side], sizes: Sequence[Size], spent: Sequence[Spent]) -> Iterator[list[str]]:
    yield ["", *(side.name for side in sides)]
    yield ["commit", *(side.commit[:10] for side in sides)]
    for name, label in (
        ("notes", "notes"),
        ("lines", "lines"),
        ("learned", "of them learned"),
        ("tokens", "tokens"),
    ):
        yield [label, *(format(getattr(size, name), ",") for size in sizes)]
    yield ["model calls", *(format(one.calls, ",") for one in spent)]
    yield ["model cost", *(_cost(one) for one in spent)]


def _cost(spent: Spent) -> str:
    if spent.unpriced:
        return f"${spent.usd:.2f} and {spent.unpriced} calls without a price"
    return f"${spent.usd:.2f}"


def _asked_rows(found: Sequence[Recall], questions: int) -> Iterator[list[str]]:
    labels = {"knowledge": "notes alone", "both": "with conversations"}
    for way, row in found[0].items():
        yield [""]
        yield [f"evidence of {questions} questions, {labels[way]}"]
        for budget in row:
            yield [f"  in {budget:,} tokens", *(percent(recall[way][budget]) for recall in found)]


def _say_differences(differ: Sequence[Differs], *, whole: bool) -> None:
    output.say()
    if not differ:
        output.say("The notes are the same.")
        return
    added, removed = (sum(len(getattr(one, name)) for one in differ) for name in ("added", "removed"))
    output.say(f"{output.plural(len(differ), 'note')} differ: {added} lines more, {removed} lines less")
    for one in differ if whole else differ[:_SHOWN]:
        output.say(f"  {one.path}  +{len(one.added)} -{len(one.removed)}")
        if whole:
            for line in (*(f"- {line}" for line in one.removed), *(f"+ {line}" for line in one.added)):
                output.say(f"    {line}")
    if len(differ) > _SHOWN and not whole:
        output.say(f"  and {len(differ) - _SHOWN} more: --diff")

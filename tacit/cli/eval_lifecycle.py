"""The two measures of `tacit eval` that are about what is learned from conversations."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from tacit import sample
from tacit.app import open_home
from tacit.cli import output
from tacit.errors import UsageError
from tacit.evaluation.budgets import At, Summary, Way, summary
from tacit.evaluation.extraction import Key, Score, read_key, scores
from tacit.evaluation.hearings import hearings, named
from tacit.evaluation.sampled import sample_home
from tacit.evaluation.searchable import SEARCHABLE, measure, read_answers
from tacit.lifecycle.extractors.registry import BUILT_IN
from tacit.memory import Memory
from tacit.memory.names import known

_BUDGETS = (512, 1024, 2048, 4096)


def arguments(parser: argparse.ArgumentParser, instead: argparse._MutuallyExclusiveGroup) -> None:
    instead.add_argument(
        "--extractors", action="store_true", help="precision and recall of the rules that learn"
    )
    instead.add_argument(
        "--searchable",
        choices=("all", *SEARCHABLE),
        help="evidence in prompts, by what may be searched after learning",
    )
    parser.add_argument(
        "--key", type=Path, metavar="FILE", help="with --extractors: a key to conversations of your home"
    )


# Extractors


def extractors(options: argparse.Namespace) -> int:
    if options.key is None:
        by_slug = read_key(yaml_of(files("tacit.sample") / "key.yaml", "key.yaml"), "key.yaml")
        key: Key = {one.session_id: by_slug[one.slug] for one in sample.conversations()}
        with sample_home() as memory:
            halves = _halves(memory, key)
    else:
        key = read_key(yaml_of(options.key, str(options.key)), str(options.key))
        halves = _halves(open_home(options.home, recover=False), key)
    if options.json:
        output.dump(
            {half: {name: _row(one) for name, one in found.items()} for half, found in halves.items()}
        )
    else:
        output.table(list(_table(halves)))
    return 0


def yaml_of(file: Any, where: str) -> object:
    import yaml  # late: most commands read none

    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{where} cannot be read: {error}. Give a YAML file.") from None


def _halves(memory: Memory, key: Key) -> dict[str, dict[str, Score]]:
    conversations = [one for one in named(hearings(memory), key) if one[0] in key]
    if not conversations:
        raise UsageError(
            "The key names no conversation of this home. Use the last part of a transcript's name."
        )
    built_in, names = list(BUILT_IN.values()), known(memory)
    odd = scores(conversations[0::2], key, names, built_in)
    even = scores(conversations[1::2], key, names, built_in)
    return {"all": {name: odd[name] + even[name] for name in odd}, "odd": odd, "even": even}


def _row(score: Score) -> dict[str, object]:
    return {
        "wanted": score.wanted,
        "found": score.found,
        "recall": score.recall,
        "lines": score.lines,
        "right": score.right,
        "precision": score.precision,
        "missed": list(score.missed),
        "mistaken": list(score.mistaken),
    }


def _table(halves: Mapping[str, Mapping[str, Score]]) -> Iterator[list[str]]:
    for half, found in halves.items():
        label = "all conversations" if half == "all" else f"{half} ones"
        yield [label, "wanted", "found", "recall", "lines", "right", "precision"]
        for name, one in [*found.items(), ("together", _together(found))]:
            yield [
                f"  {name}",
                str(one.wanted),
                str(one.found),
                percent(one.recall),
                str(one.lines),
                str(one.right),
                percent(one.precision),
            ]


def _together(found: Mapping[str, Score]) -> Score:
    total = Score()
    for one in found.values():
        total += one
    return total


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


# What may be searched


def searchable(options: argparse.Namespace) -> int:
    wanted = SEARCHABLE if options.searchable == "all" else (options.searchable,)
    questions = read_answers(
        yaml_of(files("tacit.sample") / "questions.yaml", "questions.yaml"), "questions.yaml"
    )
    found: dict[str, Summary] = {}
    with output.progress("asking", quiet=options.quiet or options.json) as tick:
        for one, measured in measure(questions, wanted, _BUDGETS, tick):
            found[one] = summary(measured, _BUDGETS, options.strong)
    if options.json:
        output.dump({"budgets": _BUDGETS, **{name: as_json(one) for name, one in found.items()}})
        return 0
    rows = [[f"{len(questions)} questions: % of the evidence in the prompt"]]
    rows.append(["tokens", *(format(budget, ",") for budget in _BUDGETS)])
    for name, by_way in found.items():
        rows.append([f"  {name}", *(percent(at.recall) for at in by_way.ways["compiled"].values())])
    output.table(rows)
    return 0


def as_json(summary: Summary) -> dict[str, object]:
    ways: dict[str, object] = {
        way: {str(budget): _numbers(way, at) for budget, at in row.items()}
        for way, row in summary.ways.items()
    }
    return {"questions": summary.questions, "unanswerable": summary.unanswerable, **ways}


def _numbers(way: Way, at: At) -> dict[str, float | None]:
    found = {"recall": at.recall, "any": at.part, "tokens": at.tokens, "over": at.over}
    if way == "compiled":
        found |= {"p50 ms": at.p50, "p95 ms": at.p95, "false strong": at.strong, "injected": at.injected}
    return found

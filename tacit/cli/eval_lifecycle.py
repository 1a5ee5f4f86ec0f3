"""The two measures of `tacit eval` that are about what is learned from conversations."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from tacit import sample
from tacit.app import open_home
from tacit.errors import UsageError
from tacit.evaluation.budgets import BudgetStats, PromptMethod, Summary, summarize
from tacit.evaluation.extraction import AnswerKey, ExtractionScore, read_key, score_extractors
from tacit.evaluation.hearings import attributed_conversations, pair_with_names
from tacit.evaluation.sampled import sample_home
from tacit.evaluation.searchable import SEARCHABLE, measure_searchable, read_answers
from tacit.learn.entities import load_known_names
from tacit.learn.extractors.registry import BUILT_IN
from tacit.memory import Memory
from tacit.terminal import output

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


def evaluate_extractors(options: argparse.Namespace) -> int:
    if options.key is None:
        by_slug = read_key(read_yaml(files("tacit.sample") / "key.yaml", "key.yaml"), "key.yaml")
        key: AnswerKey = {item.session_id: by_slug[item.slug] for item in sample.conversations()}
        with sample_home() as memory:
            halves = _score_halves(memory, key)
    else:
        key = read_key(read_yaml(options.key, str(options.key)), str(options.key))
        halves = _score_halves(open_home(options.home, recover=False), key)
    if options.json:
        output.dump(
            {half: {name: _score_json(score) for name, score in row.items()} for half, row in halves.items()}
        )
    else:
        output.print_table(list(_score_rows(halves)))
    return 0


def read_yaml(file: Any, where: str) -> object:
    import yaml  # imported late: most commands read no YAML

    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{where} cannot be read: {error}. Give a YAML file.") from None


def _score_halves(memory: Memory, key: AnswerKey) -> dict[str, dict[str, ExtractionScore]]:
    conversations = [
        pair for pair in pair_with_names(attributed_conversations(memory), key) if pair[0] in key
    ]
    if not conversations:
        raise UsageError(
            "The key names no conversation of this home. Use the last part of a transcript's name."
        )
    built_in, names = list(BUILT_IN.values()), load_known_names(memory.home)
    odd = score_extractors(conversations[0::2], key, names, built_in)
    even = score_extractors(conversations[1::2], key, names, built_in)
    return {"all": {name: odd[name] + even[name] for name in odd}, "odd": odd, "even": even}


def _score_json(score: ExtractionScore) -> dict[str, object]:
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


def _score_rows(halves: Mapping[str, Mapping[str, ExtractionScore]]) -> Iterator[list[str]]:
    for half, by_extractor in halves.items():
        label = "all conversations" if half == "all" else f"{half} ones"
        yield [label, "wanted", "found", "recall", "lines", "right", "precision"]
        for name, score in [*by_extractor.items(), ("together", _sum_scores(by_extractor))]:
            yield [
                f"  {name}",
                str(score.wanted),
                str(score.found),
                format_percent(score.recall),
                str(score.lines),
                str(score.right),
                format_percent(score.precision),
            ]


def _sum_scores(by_extractor: Mapping[str, ExtractionScore]) -> ExtractionScore:
    total = ExtractionScore()
    for score in by_extractor.values():
        total += score
    return total


def format_percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


# Searchable content


def evaluate_searchable(options: argparse.Namespace) -> int:
    selected = SEARCHABLE if options.searchable == "all" else (options.searchable,)
    questions = read_answers(
        read_yaml(files("tacit.sample") / "questions.yaml", "questions.yaml"), "questions.yaml"
    )
    results: dict[str, Summary] = {}
    with output.progress("asking", quiet=options.quiet or options.json) as tick:
        for searched, measured in measure_searchable(questions, selected, _BUDGETS, tick):
            results[searched] = summarize(measured, _BUDGETS, options.strong)
    if options.json:
        output.dump({"budgets": _BUDGETS, **{name: as_json(result) for name, result in results.items()}})
        return 0
    rows = [[f"{len(questions)} questions: % of the evidence in the prompt"]]
    rows.append(["tokens", *(format(budget, ",") for budget in _BUDGETS)])
    for name, result in results.items():
        rows.append(
            [f"  {name}", *(format_percent(metrics.recall) for metrics in result.ways["compiled"].values())]
        )
    output.print_table(rows)
    return 0


def as_json(summary: Summary) -> dict[str, object]:
    ways: dict[str, object] = {
        way: {str(budget): _numbers(way, metrics) for budget, metrics in row.items()}
        for way, row in summary.ways.items()
    }
    return {"questions": summary.questions, "unanswerable": summary.unanswerable, **ways}


def _numbers(way: PromptMethod, metrics: BudgetStats) -> dict[str, float | None]:
    numbers = {"recall": metrics.recall, "any": metrics.part, "tokens": metrics.tokens, "over": metrics.over}
    if way == "compiled":
        numbers |= {
            "p50 ms": metrics.p50,
            "p95 ms": metrics.p95,
            "false strong": metrics.strong,
            "injected": metrics.injected,
        }
    return numbers

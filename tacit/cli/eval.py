"""Measure how well search finds what it should, and how much of it reaches the prompt.

WHAT is a folder with docs.jsonl and queries.jsonl, each collection of which becomes a home for the time of
the measuring; or a .jsonl file with questions about your own home. Settings can be tried on a folder without
changing your home's: --set reranker=ms-marco-minilm, --set inject.confidence_gate=0.2.

With --budgets each question is compiled as a turn, once for each number of tokens, and the evidence in the
prompt is measured: the share of the gold messages, or quotes, whose whole text stands there. "In part" counts
a message when one of its passages of up to 1,200 characters does. Beside it, with the same budget and nothing
else in the prompt: the newest turns that fit (recent), and the passages that the word index ranks first and
that fit (bm25). The budget "default" (0 in the JSON) is a turn that names none and gives only what it must.
Of questions without an answer: how many got a passage that counts as strong, or any at all.

As JSON: {"budgets": [TOKENS], "all": S, "categories": {NAME: S}, "notices": {CODE: TIMES}}, where S is
{"questions", "unanswerable", "compiled": {TOKENS: M}, "recent": {TOKENS: M}, "bm25": {TOKENS: M}} and M is
{"recall", "any", "tokens", "over"}, for compiled also {"p50 ms", "p95 ms", "false strong", "injected"}.
Shares go from 0 to 1; null is a share of nothing. Categories are filled by --by-category.

With --extractors the rules that learn from conversations are held against a key of what a careful person
would note: of the sample's conversations, or with --key of your own home's. A line is right if the key has
it; a line that the key lacks, or that says again what another line said, is wrong. "odd" and "even" are the
two halves of the conversations. The rules were tuned by what they missed in the odd ones, but by somebody who
had read both; the even half shows overfitting and is no blind test. As JSON: {"all": {EXTRACTOR:
{"wanted", "found", "recall", "lines", "right", "precision", "missed", "mistaken"}}, "odd": …, "even": …}.

With --searchable the sample's conversations are learned from, and questions about them are compiled as turns,
once with only what was learned to search, once with only the conversations, once with both. As JSON:
{"budgets": [TOKENS], "knowledge": S, "transcripts": S, "both": S}.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tacit.app import open_home
from tacit.cli import eval_lifecycle as lifecycle
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, quiet_option
from tacit.cli.eval_lifecycle import as_json
from tacit.errors import UsageError
from tacit.evaluation.budgets import WAYS, At, Measured, Summary, Way, measure_home, measure_set
from tacit.evaluation.budgets import summary as summary_at
from tacit.evaluation.calibrate import fit
from tacit.evaluation.prompts import DEFAULT
from tacit.evaluation.run import Asked, ask_home, ask_set, summary
from tacit.evaluation.sets import Question, read_questions, read_set

_USUAL = "default"  # as a turn that names no budget of its own
_MOST_TOKENS = 1_000_000
_MODES = {"hybrid": {}, "words": {"vector_weight": 0}, "vectors": {"bm25_weight": 0}}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", nargs="*", type=Path, metavar="WHAT", help="a folder, or a file with questions"
    )
    parser.add_argument(
        "--mode", choices=_MODES, default="hybrid", help="rank by both sides or by one (default: hybrid)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="settings", help="try a setting"
    )
    parser.add_argument(
        "--category",
        "-c",
        action="append",
        default=[],
        help="only questions of this category; may be repeated",
    )
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="ask only every Nth question of a folder"
    )
    parser.add_argument("--by-category", action="store_true", help="a line for each category too")
    parser.add_argument("--strong", type=float, default=0.75, help="what counts as strong (default: 0.75)")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument(
        "--budgets",
        type=_budgets,
        metavar="TOKENS,…",
        help="measure the evidence in prompts of these sizes, such as 512,1024,2048,4096,8192",
    )
    lifecycle.arguments(parser, instead)
    instead.add_argument(
        "--calibrate", action="store_true", help="fit the constants of relevance and print them as JSON"
    )
    home_option(parser)
    json_option(parser)
    quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    if options.extractors or options.key:
        return lifecycle.extractors(options)
    if options.searchable:
        return lifecycle.searchable(options)
    if not options.what:
        raise UsageError("Name a folder or a file with questions, or use --extractors or --searchable.")
    settings = {**_MODES[options.mode], **_settings(options.settings)}
    if options.calibrate:
        return _calibrate(options, settings)
    if options.budgets:
        return _at_budgets(options, settings)
    asked = [
        one
        for one in _ask(options, settings)
        if not options.category or one.question.category in options.category
    ]
    rows = {"all": summary(asked, options.strong)}
    if options.by_category:
        for name in sorted({one.question.category for one in asked}):
            rows[name] = summary([one for one in asked if one.question.category == name], options.strong)
    if options.json:
        output.dump(rows)
    else:
        _print(rows)
    return 0


def _settings(given: Sequence[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for one in given:
        key, equals, value = one.partition("=")
        if not equals:
            raise UsageError(f"--set takes KEY=VALUE, not {one!r}.")
        found[key.strip().removeprefix("search.")] = value
    return found


def _budgets(given: str) -> tuple[int, ...]:
    parts = [part.strip() for part in given.split(",")]
    for part in parts:
        if part != _USUAL and not (part.isascii() and part.isdecimal() and 0 < int(part[:9]) <= _MOST_TOKENS):
            raise argparse.ArgumentTypeError(
                f"{part!r} is no number of tokens from 1 to {_MOST_TOKENS:,}; write default,512,1024"
            )
    return tuple(dict.fromkeys(DEFAULT if part == _USUAL else int(part) for part in parts))


def _ask(options: argparse.Namespace, settings: dict[str, object]) -> list[Asked]:
    with output.progress("asking", quiet=options.quiet or options.json) as tick:
        asked: list[Asked] = []
        for what in options.what:
            if what.is_dir():
                asked += ask_set(read_set(what, options.every, options.category), settings, tick)
            else:
                questions = _own_questions(what, settings)
                asked += ask_home(open_home(options.home, recover=False), questions, tick)
    return asked


def _own_questions(file: Path, settings: dict[str, object]) -> list[Question]:
    if settings:
        raise UsageError("Settings can be tried on a folder; your home has its own in its config.")
    return read_questions(file)


def _calibrate(options: argparse.Namespace, settings: dict[str, object]) -> int:
    with output.progress("asking", quiet=options.quiet) as tick:
        asked: list[Asked] = []
        for what in options.what:
            collections = read_set(what, options.every, options.category)
            if len(collections) < 2:
                raise UsageError(f"{what} has one collection. Fitting needs two, each asked about the other.")
            asked += ask_set(collections, settings, tick, foreign=True)
    own = [one for one in asked if not one.foreign]
    foreign = [one for one in asked if one.foreign]
    if not any(any(one.right[:10]) for one in own) or not any(one.found.hits for one in foreign):
        raise UsageError("Too little was found to fit anything to. Give more messages and questions.")
    output.dump(fit(own, foreign))
    return 0


def _print(rows: dict[str, dict[str, float]]) -> None:
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = [["", *names]]
    for label, row in rows.items():
        lines.append([label, *(_shown(name, row.get(name)) for name in names)])
    output.table(lines)


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name in ("questions", "unanswerable"):
        return f"{value:.0f}"
    return f"{value:.1f}" if name.endswith("ms") else f"{100 * value:.1f}"


# Evidence at token budgets


def _at_budgets(options: argparse.Namespace, settings: dict[str, object]) -> int:
    budgets: tuple[int, ...] = options.budgets
    measured = _measure(options, settings)
    total = summary_at(measured, budgets, options.strong)
    names = sorted({one.question.category for one in measured}) if options.by_category else []
    categories = {
        name: summary_at([one for one in measured if one.question.category == name], budgets, options.strong)
        for name in names
    }
    noticed = Counter(notice.code for one in measured for notice in one.notices)
    if options.json:
        output.dump(
            {
                "budgets": budgets,
                "all": as_json(total),
                "categories": {name: as_json(one) for name, one in categories.items()},
                "notices": dict(sorted(noticed.items())),
            }
        )
        return 0
    below = [row for name, one in categories.items() for row in _of_category(name, one)]
    output.table([*_rows(total), *below])
    texts = {notice.code: notice.text for one in reversed(measured) for notice in reversed(one.notices)}
    for code, times in sorted(noticed.items()):
        output.warn(f"{output.plural(times, 'notice')} of {code}, the first: {texts[code]}")
    return 0


def _measure(options: argparse.Namespace, settings: dict[str, object]) -> list[Measured]:
    with output.progress("compiling", quiet=options.quiet or options.json) as tick:
        measured: list[Measured] = []
        for what in options.what:
            if what.is_dir():
                collections = read_set(what, options.every, options.category)
                measured += measure_set(collections, settings, options.budgets, tick)
            else:
                questions = _own_questions(what, settings)
                wanted = [
                    one for one in questions if not options.category or one.category in options.category
                ]
                memory = open_home(options.home, recover=False)
                measured += measure_home(memory, wanted, options.budgets, tick)
    return measured


def _rows(summary: Summary) -> Iterator[list[str]]:
    compiled = summary.ways["compiled"]
    yield [f"{_questions(summary.questions)} with an answer: % of the evidence in the prompt"]
    yield ["tokens", *(f"{_USUAL if budget == DEFAULT else format(budget, ',')!s:>7}" for budget in compiled)]
    yield from _recalls(summary.ways)
    yield ["compiled prompts"]
    yield ["  tokens used", *(_cell(at.tokens, 1) for at in compiled.values())]
    yield ["  over budget, %", *(_cell(at.over) for at in compiled.values())]
    yield ["  p50 ms", *(_cell(at.p50, 1) for at in compiled.values())]
    yield ["  p95 ms", *(_cell(at.p95, 1) for at in compiled.values())]
    yield from _unanswerable(summary)


def _of_category(name: str, summary: Summary) -> Iterator[list[str]]:
    yield [""]
    yield [f"{name or 'no category'}: {_questions(summary.questions + summary.unanswerable)}"]
    if summary.questions:
        yield from _recalls(summary.ways)
    yield from _unanswerable(summary)


def _recalls(ways: Mapping[Way, Mapping[int, At]]) -> Iterator[list[str]]:
    """The parts are told where they differ: short messages are there as a whole or not at all."""
    for way in WAYS:
        yield [f"  {way}", *(_cell(at.recall) for at in ways[way].values())]
    if any(at.part != at.recall for row in ways.values() for at in row.values()):
        for way in WAYS:
            yield [f"  {way}, in part", *(_cell(at.part) for at in ways[way].values())]


def _unanswerable(summary: Summary) -> Iterator[list[str]]:
    if summary.unanswerable:
        compiled = summary.ways["compiled"]
        yield [f"{_questions(summary.unanswerable)} without an answer: % that got passages all the same"]
        yield ["  strong", *(_cell(at.strong) for at in compiled.values())]
        yield ["  any", *(_cell(at.injected) for at in compiled.values())]


def _questions(number: int) -> str:
    return output.plural(number, "question")


def _cell(value: float | None, times: float = 100) -> str:
    return f"{'-' if value is None else format(times * value, '.1f'):>7}"

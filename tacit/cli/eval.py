"""Measure how well search finds what it should.

WHAT is a folder with docs.jsonl and queries.jsonl, each collection of which becomes a home for the time of
the measuring; or a .jsonl file with questions about your own home. Settings of search can be tried without
changing the home's: --set reranker=ms-marco-minilm.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from tacit.app import open_home
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, quiet_option
from tacit.errors import UsageError
from tacit.evaluation.calibrate import fit
from tacit.evaluation.run import Asked, ask_home, ask_set, summary
from tacit.evaluation.sets import read_questions, read_set

_MODES = {"hybrid": {}, "words": {"vector_weight": 0}, "vectors": {"bm25_weight": 0}}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what", nargs="+", type=Path, metavar="WHAT", help="a folder, or a file with questions"
    )
    parser.add_argument(
        "--mode", choices=_MODES, default="hybrid", help="rank by both sides or by one (default: hybrid)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="settings", help="a setting of search"
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
    parser.add_argument(
        "--calibrate", action="store_true", help="fit the constants of relevance and print them as JSON"
    )
    home_option(parser)
    json_option(parser)
    quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    settings = {**_MODES[options.mode], **_settings(options.settings)}
    if options.calibrate:
        return _calibrate(options, settings)
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


def _ask(options: argparse.Namespace, settings: dict[str, object]) -> list[Asked]:
    with output.progress("asking", quiet=options.quiet or options.json) as tick:
        asked: list[Asked] = []
        for what in options.what:
            if what.is_dir():
                asked += ask_set(read_set(what, options.every, options.category), settings, tick)
            else:
                if settings:
                    raise UsageError(
                        "Settings can be tried on a folder; your home has its own in its config."
                    )
                questions = read_questions(what)
                asked += ask_home(open_home(options.home, recover=False), questions, tick)
    return asked


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

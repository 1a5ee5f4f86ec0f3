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
two halves of the conversations. The rules were tuned by what they missed in the odd ones, but by a person who
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
from importlib.resources import files
from pathlib import Path

from tacit import sample
from tacit.app import open_home
from tacit.errors import UsageError
from tacit.evaluation.calibration import fit_constants
from tacit.evaluation.extraction import (
    AnswerKey,
    ExtractionScore,
    attributed_conversations,
    pair_with_names,
    read_key,
    score_extractors,
)
from tacit.evaluation.homes import sample_home
from tacit.evaluation.prompt_quality import (
    DEFAULT_BUDGET,
    PROMPT_METHODS,
    SEARCHABLE,
    BudgetStats,
    Measurement,
    PromptMethod,
    Summary,
    measure_home,
    measure_searchable,
    measure_set,
)
from tacit.evaluation.prompt_quality import summarize as summarize_prompts
from tacit.evaluation.questions import EvalQuestion, read_answers, read_questions, read_set, read_yaml
from tacit.evaluation.search_quality import QuestionHits, ask_home, ask_set
from tacit.evaluation.search_quality import summarize as summarize_hits
from tacit.learn.entities import load_known_names
from tacit.learn.extractors.registry import BUILT_IN
from tacit.memory import Memory
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, add_quiet_option

_DEFAULT_LABEL = "default"  # a turn that names no budget
_MAX_TOKENS = 1_000_000
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
        type=_parse_budgets,
        metavar="TOKENS,…",
        help="measure the evidence in prompts of these sizes, such as 512,1024,2048,4096,8192",
    )
    _add_learning_arguments(parser, instead)
    instead.add_argument(
        "--calibrate", action="store_true", help="fit the constants of relevance and print them as JSON"
    )
    add_home_option(parser)
    add_json_option(parser)
    add_quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    if options.extractors or options.key:
        return _evaluate_extractors(options)
    if options.searchable:
        return _evaluate_searchable(options)
    if not options.what:
        raise UsageError("Name a folder or a file with questions, or use --extractors or --searchable.")
    settings = {**_MODES[options.mode], **_parse_settings(options.settings)}
    if options.calibrate:
        return _calibrate(options, settings)
    if options.budgets:
        return _run_at_budgets(options, settings)
    answers = [
        answer
        for answer in _ask(options, settings)
        if not options.category or answer.question.category in options.category
    ]
    rows = {"all": summarize_hits(answers, options.strong)}
    if options.by_category:
        for name in sorted({answer.question.category for answer in answers}):
            rows[name] = summarize_hits(
                [answer for answer in answers if answer.question.category == name], options.strong
            )
    if options.json:
        output.dump(rows)
    else:
        _print_search_rows(rows)
    return 0


def _parse_settings(pairs: Sequence[str]) -> dict[str, object]:
    settings: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--set takes KEY=VALUE, not {pair!r}.")
        settings[key.strip().removeprefix("search.")] = value
    return settings


def _parse_budgets(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if part != _DEFAULT_LABEL and not (
            part.isascii() and part.isdecimal() and 0 < int(part[:9]) <= _MAX_TOKENS
        ):
            raise argparse.ArgumentTypeError(
                f"{part!r} is no number of tokens from 1 to {_MAX_TOKENS:,}; write default,512,1024"
            )
    return tuple(dict.fromkeys(DEFAULT_BUDGET if part == _DEFAULT_LABEL else int(part) for part in parts))


def _ask(options: argparse.Namespace, settings: dict[str, object]) -> list[QuestionHits]:
    with output.progress("asking", quiet=options.quiet or options.json) as tick:
        answers: list[QuestionHits] = []
        for path in options.what:
            if path.is_dir():
                answers += ask_set(read_set(path, options.every, options.category), settings, tick)
            else:
                questions = _read_own_questions(path, settings)
                answers += ask_home(open_home(options.home, recover=False), questions, tick)
    return answers


def _read_own_questions(file: Path, settings: dict[str, object]) -> list[EvalQuestion]:
    if settings:
        raise UsageError("Settings can be tried on a folder; your home has its own in its config.")
    return read_questions(file)


def _calibrate(options: argparse.Namespace, settings: dict[str, object]) -> int:
    with output.progress("asking", quiet=options.quiet) as tick:
        answers: list[QuestionHits] = []
        for path in options.what:
            collections = read_set(path, options.every, options.category)
            if len(collections) < 2:
                raise UsageError(f"{path} has one collection. Fitting needs two, each asked about the other.")
            answers += ask_set(collections, settings, tick, foreign=True)
    own = [answer for answer in answers if not answer.foreign]
    foreign = [answer for answer in answers if answer.foreign]
    if not any(any(answer.right[:10]) for answer in own) or not any(answer.found.hits for answer in foreign):
        raise UsageError("Too little was found to fit anything to. Give more messages and questions.")
    output.dump(fit_constants(own, foreign))
    return 0


def _print_search_rows(rows: dict[str, dict[str, float]]) -> None:
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = [["", *names]]
    for label, row in rows.items():
        lines.append([label, *(_format_value(name, row.get(name)) for name in names)])
    output.print_table(lines)


def _format_value(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    if name in ("questions", "unanswerable"):
        return f"{value:.0f}"
    return f"{value:.1f}" if name.endswith("ms") else f"{100 * value:.1f}"


# Evidence at token budgets


def _run_at_budgets(options: argparse.Namespace, settings: dict[str, object]) -> int:
    budgets: tuple[int, ...] = options.budgets
    measured = _measure(options, settings)
    total = summarize_prompts(measured, budgets, options.strong)
    names = sorted({case.question.category for case in measured}) if options.by_category else []
    categories = {
        name: summarize_prompts(
            [case for case in measured if case.question.category == name], budgets, options.strong
        )
        for name in names
    }
    noticed = Counter(notice.code for case in measured for notice in case.notices)
    if options.json:
        output.dump(
            {
                "budgets": budgets,
                "all": _summary_json(total),
                "categories": {name: _summary_json(result) for name, result in categories.items()},
                "notices": dict(sorted(noticed.items())),
            }
        )
        return 0
    category_rows = [row for name, result in categories.items() for row in _category_rows(name, result)]
    output.print_table([*_summary_rows(total), *category_rows])
    texts = {notice.code: notice.text for case in reversed(measured) for notice in reversed(case.notices)}
    for code, times in sorted(noticed.items()):
        output.warn(f"{output.pluralize(times, 'notice')} of {code}, the first: {texts[code]}")
    return 0


def _measure(options: argparse.Namespace, settings: dict[str, object]) -> list[Measurement]:
    with output.progress("compiling", quiet=options.quiet or options.json) as tick:
        measured: list[Measurement] = []
        for path in options.what:
            if path.is_dir():
                collections = read_set(path, options.every, options.category)
                measured += measure_set(collections, settings, options.budgets, tick)
            else:
                questions = _read_own_questions(path, settings)
                selected = [
                    question
                    for question in questions
                    if not options.category or question.category in options.category
                ]
                memory = open_home(options.home, recover=False)
                measured += measure_home(memory, selected, options.budgets, tick)
    return measured


def _summary_rows(summary: Summary) -> Iterator[list[str]]:
    compiled = summary.ways["compiled"]
    yield [f"{_count_questions(summary.questions)} with an answer: % of the evidence in the prompt"]
    yield [
        "tokens",
        *(
            f"{_DEFAULT_LABEL if budget == DEFAULT_BUDGET else format(budget, ',')!s:>7}"
            for budget in compiled
        ),
    ]
    yield from _recall_rows(summary.ways)
    yield ["compiled prompts"]
    yield ["  tokens used", *(_format_cell(metrics.tokens, 1) for metrics in compiled.values())]
    yield ["  over budget, %", *(_format_cell(metrics.over) for metrics in compiled.values())]
    yield ["  p50 ms", *(_format_cell(metrics.p50, 1) for metrics in compiled.values())]
    yield ["  p95 ms", *(_format_cell(metrics.p95, 1) for metrics in compiled.values())]
    yield from _unanswerable_rows(summary)


def _category_rows(name: str, summary: Summary) -> Iterator[list[str]]:
    yield [""]
    yield [f"{name or 'no category'}: {_count_questions(summary.questions + summary.unanswerable)}"]
    if summary.questions:
        yield from _recall_rows(summary.ways)
    yield from _unanswerable_rows(summary)


def _recall_rows(ways: Mapping[PromptMethod, Mapping[int, BudgetStats]]) -> Iterator[list[str]]:
    """Partial recall is listed only if it differs: short messages are there as a whole or not at all."""
    for way in PROMPT_METHODS:
        yield [f"  {way}", *(_format_cell(metrics.recall) for metrics in ways[way].values())]
    if any(metrics.part != metrics.recall for row in ways.values() for metrics in row.values()):
        for way in PROMPT_METHODS:
            yield [f"  {way}, in part", *(_format_cell(metrics.part) for metrics in ways[way].values())]


def _unanswerable_rows(summary: Summary) -> Iterator[list[str]]:
    if summary.unanswerable:
        compiled = summary.ways["compiled"]
        yield [
            f"{_count_questions(summary.unanswerable)} without an answer: % that got passages all the same"
        ]
        yield ["  strong", *(_format_cell(metrics.strong) for metrics in compiled.values())]
        yield ["  any", *(_format_cell(metrics.injected) for metrics in compiled.values())]


def _count_questions(number: int) -> str:
    return output.pluralize(number, "question")


def _format_cell(value: float | None, factor: float = 100) -> str:
    return f"{'-' if value is None else format(factor * value, '.1f'):>7}"


_SEARCHABLE_BUDGETS = (512, 1024, 2048, 4096)


def _add_learning_arguments(
    parser: argparse.ArgumentParser, instead: argparse._MutuallyExclusiveGroup
) -> None:
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


def _evaluate_extractors(options: argparse.Namespace) -> int:
    if options.key is None:
        by_slug = read_key(read_yaml(files("tacit.sample") / "key.yaml"), "key.yaml")
        key: AnswerKey = {item.session_id: by_slug[item.slug] for item in sample.conversations()}
        with sample_home() as memory:
            halves = _score_halves(memory, key)
    else:
        key = read_key(read_yaml(options.key), str(options.key))
        halves = _score_halves(open_home(options.home, recover=False), key)
    if options.json:
        output.dump(
            {half: {name: _score_json(score) for name, score in row.items()} for half, row in halves.items()}
        )
    else:
        output.print_table(list(_score_rows(halves)))
    return 0


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
                output.percent(score.recall),
                str(score.lines),
                str(score.right),
                output.percent(score.precision),
            ]


def _sum_scores(by_extractor: Mapping[str, ExtractionScore]) -> ExtractionScore:
    total = ExtractionScore()
    for score in by_extractor.values():
        total += score
    return total


# Searchable content


def _evaluate_searchable(options: argparse.Namespace) -> int:
    selected = SEARCHABLE if options.searchable == "all" else (options.searchable,)
    questions = read_answers(read_yaml(files("tacit.sample") / "questions.yaml"), "questions.yaml")
    results: dict[str, Summary] = {}
    with output.progress("asking", quiet=options.quiet or options.json) as tick:
        for searched, measured in measure_searchable(questions, selected, _SEARCHABLE_BUDGETS, tick):
            results[searched] = summarize_prompts(measured, _SEARCHABLE_BUDGETS, options.strong)
    if options.json:
        output.dump(
            {
                "budgets": _SEARCHABLE_BUDGETS,
                **{name: _summary_json(result) for name, result in results.items()},
            }
        )
        return 0
    rows = [[f"{len(questions)} questions: % of the evidence in the prompt"]]
    rows.append(["tokens", *(format(budget, ",") for budget in _SEARCHABLE_BUDGETS)])
    for name, result in results.items():
        rows.append(
            [f"  {name}", *(output.percent(metrics.recall) for metrics in result.ways["compiled"].values())]
        )
    output.print_table(rows)
    return 0


def _summary_json(summary: Summary) -> dict[str, object]:
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

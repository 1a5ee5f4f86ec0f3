"""Estimate what models cost per month, and show what was spent.

The estimate goes by your own rates: the sessions of the last 30 days (or --sessions), the length of your
transcripts, the models that the config names (or --model for all of them) and the prices in models.prices,
before those that are built in (--prices shows all). Real spending comes from the ledger, which counts every
call. No model is called and nothing is sent.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from math import ceil
from os import environ
from typing import Any

from tacit.app import ledger_of, limits_of, open_home
from tacit.config import Config
from tacit.config.schema import flatten
from tacit.embeddings.registry import is_remote
from tacit.errors import UsageError
from tacit.home.layout import CONVERSATIONS, NOTE_FOLDERS, Home
from tacit.home.listing import walk
from tacit.learn.pipeline import MAX_QUESTION_CHARS
from tacit.llm.ledger import Call, SpendingLimits, SpendTotal, sum_calls
from tacit.llm.prices import BUILT_IN, EstimateItem, Rates, estimate_items, find_price
from tacit.llm.tasks import EMBED, TASKS, find_model
from tacit.memory import Memory
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option
from tacit.transcripts import writer

_MONTH_DAYS = 30
_PERIODS = {"today": 1, "7 days": 7, "30 days": 30}
_DEFAULT_MESSAGES = 6.0  # of the user in a session, if nothing is known
_DEFAULT_TOKENS = 3000.0  # of a transcript, if there is none
_MAX_SAMPLED = 20  # transcripts read for the estimate
_BYTES_PER_TOKEN = 4.0  # of a transcript
_EXAMPLE = "anthropic:claude-haiku-4-5"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sessions", type=_count, default=None, metavar="N", help="sessions a day")
    parser.add_argument("--model", default="", metavar="NAME", help="as if this model did everything")
    parser.add_argument("--prices", action="store_true", help="show every price that is known")
    add_home_option(parser)
    add_json_option(parser)


def _count(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 100_000:
        raise ValueError(text)
    return number


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    config = memory.config
    if options.prices:
        return _print_prices(config, options)
    ledger = ledger_of(config, memory.home)
    days = ledger.days(_MONTH_DAYS)
    month_calls = [call for calls in days.values() for call in calls]
    models = _choose_models(config, options.model)
    rates = _estimate_rates(memory, options.sessions)
    prices = {model: find_price(model, environ, config.models.prices) for model in models.values()}
    estimate = estimate_items(rates, models, prices, month_calls)
    if options.json:
        output.dump(_as_json(rates, estimate, days, limits_of(config), memory.services.clock.now().date()))
        return 0
    _say_estimate(rates, estimate, models, options.model)
    output.say()
    _say_spent(days, limits_of(config), memory.services.clock.now().date())
    return 0


def _choose_models(config: Config, override: str) -> dict[str, str]:
    """The model of each task: the override if given, otherwise the configured one."""
    if override and not _is_model(override):
        raise UsageError(f"{override!r} is not a model. Write it as in the config: {_EXAMPLE}.")
    settings = flatten(config)
    models = {task: override or find_model(task, settings)[1] for task in TASKS}
    embed = config.search.embedding_model
    if is_remote(embed):
        models[EMBED] = embed
    return {task: model for task, model in models.items() if model}


def _is_model(name: str) -> bool:
    kind, _, rest = name.partition(":")
    return kind in ("openai", "anthropic", "http", "https", "local") and bool(rest)


# ---------------------------------------------------------------- the home's own rates


def _estimate_rates(memory: Memory, sessions: float | None) -> Rates:
    root, config = str(memory.home.root), memory.config
    today = memory.services.clock.now().date()
    files = list(walk(root, CONVERSATIONS))
    transcripts = [(day, info.st_size) for path, info in files if (day := _day_of(path))]
    first = today - timedelta(_MONTH_DAYS - 1)
    recent = [size for day, size in transcripts if first <= day <= today]
    oldest = min((day for day, _ in transcripts), default=today)
    span = (today - max(oldest, first)).days + 1 if recent else _MONTH_DAYS
    sizes = recent or [size for _, size in transcripts]
    return Rates(
        sessions=len(recent) / span if sessions is None else sessions,
        messages=_mean_messages(memory.home, sorted(path for path, _ in files)[-_MAX_SAMPLED:]),
        tokens=round(sum(sizes) / len(sizes) / _BYTES_PER_TOKEN) if sizes else _DEFAULT_TOKENS,
        questions=_mean_chunks(sizes or [round(_DEFAULT_TOKENS * _BYTES_PER_TOKEN)]),
        transcripts=len(transcripts),
        notes=sum(1 for folder in NOTE_FOLDERS for _ in walk(root, folder)),
        extractors=len(config.lifecycle.extractors),
        commit_minutes=config.lifecycle.commit_interval_minutes,
    )


def _mean_chunks(sizes: Sequence[int]) -> float:
    return sum(max(1, ceil(size / MAX_QUESTION_CHARS)) for size in sizes) / len(sizes)


def _mean_messages(home: Home, paths: Sequence[str]) -> float:
    """Messages of the user per session, from the newest transcripts."""
    conversations = [writer.attempt_load(home, path).messages for path in paths]
    count = sum(message.role == "user" for messages in conversations for message in messages)
    return round(count / len(conversations), 1) if conversations else _DEFAULT_MESSAGES


def _day_of(path: str) -> date | None:
    """The day that the folders name: raw/conversations/2026/02/16/…"""
    try:
        return date(*map(int, path.split("/")[2:5]))
    except (ValueError, TypeError):
        return None


# ---------------------------------------------------------------- output


def _say_estimate(
    rates: Rates, estimate: Sequence[EstimateItem], models: Mapping[str, str], override: str
) -> None:
    if not models:
        output.say("No model is configured, so nothing is asked and nothing is spent.")
        output.say(f"To see what one would cost: tacit cost --model {_EXAMPLE}")
        return
    output.say(
        f"A month with {rates.sessions:g} sessions a day of about {rates.tokens:.0f} tokens"
        + (f", all by {override}:" if override else ":")
    )
    monthly = [item for item in estimate if not item.once]
    rows = [("", "calls", "in / out", "", "model"), *map(_row, monthly)]
    output.print_table([*rows, ("together", "", "", _format_sum(monthly), "")])
    output.say("Once, when you ask for it:")
    output.print_table(_row(item) for item in estimate if item.once)
    for model in sorted({item.model for item in estimate if item.usd is None}):
        output.say(f'{model} has no price here. Say what it costs: models.prices: ["{model} INPUT OUTPUT"]')


def _row(item: EstimateItem) -> tuple[str, ...]:
    if not item.model:
        return item.name, "0", "", "$0.00", "none: done here" if item.task == EMBED else "none: rules do it"
    return item.name, f"{item.calls:.0f}", _format_tokens(item), _format_usd(item.usd), item.model


def _format_tokens(item: EstimateItem) -> str:
    return f"{item.take.tokens_in:.0f} / {item.take.tokens_out:.0f}"


def _format_sum(estimate: Iterable[EstimateItem]) -> str:
    costs = [item.usd for item in estimate]
    remark = " and what has no price" if None in costs else ""
    return _format_usd(sum(usd for usd in costs if usd is not None)) + remark


def _format_usd(usd: float | None) -> str:
    if usd is None:
        return "no price"
    return f"${usd:.2f}" if usd >= 0.095 or usd == 0 else f"${usd:.4f}"


def _say_spent(days: Mapping[date, Sequence[Call]], limits: SpendingLimits, today: date) -> None:
    output.say("Spent:")
    output.print_table(
        (name, _format_spent(sum_calls(_calls_within(days, today, count))))
        for name, count in _PERIODS.items()
    )
    if days:
        output.say("By task and model, 30 days:")
        output.print_table(
            (task, model, _format_spent(spent)) for task, model, spent in _split_by_model(days)
        )
    output.say(
        f"Daily limits: {', '.join(_format_limits(limits))}. Change them in models of memory-config.yaml."
    )


def _calls_within(days: Mapping[date, Sequence[Call]], today: date, count: int) -> list[Call]:
    return [call for day, calls in days.items() if (today - day).days < count for call in calls]


def _format_spent(spent: SpendTotal) -> str:
    if not spent.calls and not spent.refused:
        return "nothing"
    summary = f"{_format_usd(spent.usd)}, {output.pluralize(spent.calls, 'call')}, {spent.tokens} tokens"
    kinds = {"failed": spent.failed, "refused": spent.refused, "with a bad answer": spent.bad}
    kinds["of unknown cost"] = spent.unpriced
    return ", ".join([summary, *(f"{count} {kind}" for kind, count in kinds.items() if count)])


def _split_by_model(days: Mapping[date, Sequence[Call]]) -> Iterator[tuple[str, str, SpendTotal]]:
    groups: dict[tuple[str, str], list[Call]] = {}
    for calls in days.values():
        for call in calls:
            groups.setdefault((call.task, call.model), []).append(call)
    for (task, model), calls in sorted(groups.items()):
        yield task, model, sum_calls(calls)


def _format_limits(limits: SpendingLimits) -> Iterator[str]:
    yield "calls without limit" if limits.calls is None else output.pluralize(limits.calls, "call")
    yield "tokens without limit" if limits.tokens is None else f"{limits.tokens} tokens"
    yield "dollars without limit" if limits.usd is None else f"${limits.usd:g}"


def _as_json(
    rates: Rates,
    estimate: Sequence[EstimateItem],
    days: Mapping[date, Sequence[Call]],
    limits: SpendingLimits,
    today: date,
) -> dict[str, Any]:
    monthly = [item.usd for item in estimate if not item.once and item.model]
    return {
        "rates": rates._asdict(),
        "items": [{**item._asdict(), "take": item.take._asdict()} for item in estimate],
        "month_usd": None if None in monthly else sum(usd for usd in monthly if usd is not None),
        "spent": {
            name: sum_calls(_calls_within(days, today, count))._asdict() for name, count in _PERIODS.items()
        },
        "by_task": [
            {"task": task, "model": model, **spent._asdict()} for task, model, spent in _split_by_model(days)
        ],
        "limits": limits._asdict(),
    }


def _print_prices(config: Config, options: argparse.Namespace) -> int:
    own_prices = [line.split(" ") for line in config.models.prices]
    rows = [(name, tokens_in, tokens_out, "yours") for name, tokens_in, tokens_out in own_prices]
    rows += [
        (name, f"{price.tokens_in:g}", f"{price.tokens_out:g}", "built in")
        for name, price in BUILT_IN.items()
    ]
    if options.json:
        names = ("model", "tokens_in", "tokens_out", "from")
        output.dump([dict(zip(names, row, strict=True)) for row in rows])
        return 0
    output.print_table([("dollars per million tokens", "read", "written", ""), *rows])
    return 0

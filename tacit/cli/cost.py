"""What models cost: a month as it would be, and what was really spent.

The estimate goes by your own rates: the sessions of the last 30 days (or --sessions), the length of your
transcripts, the models that the config names (or --model for all of them) and the prices in models.prices,
before those that are built in (--prices shows all). Real spending comes from the ledger, which counts every
call. Nothing is asked and nothing is sent.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from math import ceil
from os import environ
from typing import Any

from tacit.app import ledger_of, limits_of, open_home
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option
from tacit.config import Config
from tacit.config.keys import flatten
from tacit.embed.choose import is_remote
from tacit.errors import UsageError
from tacit.lifecycle.learn import CHUNK
from tacit.llm.estimate import Item, Rates, items
from tacit.llm.prices import BUILT_IN, price_of
from tacit.llm.tasks import EMBED, TASKS, named_model
from tacit.memory import Memory
from tacit.model.spending import Call, Limits, Spent, total
from tacit.store import transcripts
from tacit.store.home import CONVERSATIONS, NOTE_FOLDERS, Home
from tacit.store.listing import walk

_MONTH = 30
_PERIODS = {"today": 1, "7 days": 7, "30 days": 30}
_MESSAGES = 6.0  # of the user in a session, where nothing is known
_TRANSCRIPT = 3000.0  # tokens, where there is none
_SAMPLE = 20  # transcripts that are read for it
_LETTERS = 4.0  # bytes of a transcript for each token
_EXAMPLE = "anthropic:claude-haiku-4-5"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sessions", type=_count, default=None, metavar="N", help="sessions a day")
    parser.add_argument("--model", default="", metavar="NAME", help="as if this model did everything")
    parser.add_argument("--prices", action="store_true", help="show every price that is known")
    home_option(parser)
    json_option(parser)


def _count(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 100_000:
        raise ValueError(text)
    return number


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    config = memory.config
    if options.prices:
        return _prices(config, options)
    ledger = ledger_of(config, memory.home)
    days = ledger.days(_MONTH)
    seen = [call for calls in days.values() for call in calls]
    models = _models(config, options.model)
    rates = _rates(memory, options.sessions)
    prices = {model: price_of(model, environ, config.models.prices) for model in models.values()}
    found = items(rates, models, prices, seen)
    if options.json:
        output.dump(_as_json(rates, found, days, limits_of(config), memory.moment().date()))
        return 0
    _say_estimate(rates, found, models, options.model)
    output.say()
    _say_spent(days, limits_of(config), memory.moment().date())
    return 0


def _models(config: Config, given: str) -> dict[str, str]:
    """Of each task, that which is configured, or the one that is asked about."""
    if given and not _is_model(given):
        raise UsageError(f"{given!r} is no model. Write it as in the config: {_EXAMPLE}.")
    settings = flatten(config)
    found = {task: given or named_model(task, settings)[1] for task in TASKS}
    embed = config.search.embedding_model
    if is_remote(embed):
        found[EMBED] = embed
    return {task: model for task, model in found.items() if model}


def _is_model(name: str) -> bool:
    kind, _, rest = name.partition(":")
    return kind in ("openai", "anthropic", "http", "https", "local") and bool(rest)


# ---------------------------------------------------------------- the home's own rates


def _rates(memory: Memory, sessions: float | None) -> Rates:
    root, config = str(memory.home.root), memory.config
    today = memory.moment().date()
    files = list(walk(root, CONVERSATIONS))
    found = [(day, info.st_size) for path, info in files if (day := _day(path))]
    first = today - timedelta(_MONTH - 1)
    recent = [size for day, size in found if first <= day <= today]
    oldest = min((day for day, _ in found), default=today)
    span = (today - max(oldest, first)).days + 1 if recent else _MONTH
    sizes = recent or [size for _, size in found]
    return Rates(
        sessions=len(recent) / span if sessions is None else sessions,
        messages=_messages(memory.home, sorted(path for path, _ in files)[-_SAMPLE:]),
        tokens=round(sum(sizes) / len(sizes) / _LETTERS) if sizes else _TRANSCRIPT,
        questions=_questions(sizes or [round(_TRANSCRIPT * _LETTERS)]),
        transcripts=len(found),
        notes=sum(1 for folder in NOTE_FOLDERS for _ in walk(root, folder)),
        extractors=len(config.lifecycle.extractors),
        commit_minutes=config.lifecycle.commit_interval_minutes,
    )


def _questions(sizes: Sequence[int]) -> float:
    return sum(max(1, ceil(size / CHUNK)) for size in sizes) / len(sizes)


def _messages(home: Home, paths: Sequence[str]) -> float:
    """What the user says in a session, by the last few of them."""
    kept = [transcripts.attempt_load(home, path).messages for path in paths]
    said = sum(message.role == "user" for messages in kept for message in messages)
    return round(said / len(kept), 1) if kept else _MESSAGES


def _day(path: str) -> date | None:
    """By the folders: raw/conversations/2026/02/16/…"""
    try:
        return date(*map(int, path.split("/")[2:5]))
    except (ValueError, TypeError):
        return None


# ---------------------------------------------------------------- saying it


def _say_estimate(rates: Rates, found: Sequence[Item], models: Mapping[str, str], given: str) -> None:
    if not models:
        output.say("No model is configured, so nothing is asked and nothing is spent.")
        output.say(f"To see what one would cost: tacit cost --model {_EXAMPLE}")
        return
    output.say(
        f"A month with {rates.sessions:g} sessions a day of about {rates.tokens:.0f} tokens"
        + (f", all by {given}:" if given else ":")
    )
    monthly = [item for item in found if not item.once]
    rows = [("", "calls", "in / out", "", "model"), *map(_row, monthly)]
    output.table([*rows, ("together", "", "", _sum(monthly), "")])
    output.say("Once, when you ask for it:")
    output.table(_row(item) for item in found if item.once)
    for model in sorted({item.model for item in found if item.usd is None}):
        output.say(f'{model} has no price here. Say what it costs: models.prices: ["{model} INPUT OUTPUT"]')


def _row(item: Item) -> tuple[str, ...]:
    if not item.model:
        return item.name, "0", "", "$0.00", "none: done here" if item.task == EMBED else "none: rules do it"
    return item.name, f"{item.calls:.0f}", _take(item), _dollars(item.usd), item.model


def _take(item: Item) -> str:
    return f"{item.take.tokens_in:.0f} / {item.take.tokens_out:.0f}"


def _sum(found: Iterable[Item]) -> str:
    known = [item.usd for item in found]
    more = " and what has no price" if None in known else ""
    return _dollars(sum(usd for usd in known if usd is not None)) + more


def _dollars(usd: float | None) -> str:
    if usd is None:
        return "no price"
    return f"${usd:.2f}" if usd >= 0.095 or usd == 0 else f"${usd:.4f}"


def _say_spent(days: Mapping[date, Sequence[Call]], limits: Limits, today: date) -> None:
    output.say("Really spent:")
    output.table((name, _spent(total(_of(days, today, count)))) for name, count in _PERIODS.items())
    if days:
        output.say("By task and model, 30 days:")
        output.table((task, model, _spent(spent)) for task, model, spent in _split(days))
    output.say(f"Limits of a day: {', '.join(_limits(limits))}. Change them in models of memory-config.yaml.")


def _of(days: Mapping[date, Sequence[Call]], today: date, count: int) -> list[Call]:
    return [call for day, calls in days.items() if (today - day).days < count for call in calls]


def _spent(spent: Spent) -> str:
    if not spent.calls and not spent.refused:
        return "nothing"
    said = f"{_dollars(spent.usd)}, {output.plural(spent.calls, 'call')}, {spent.tokens} tokens"
    kinds = {"failed": spent.failed, "refused": spent.refused, "with a bad answer": spent.bad}
    kinds["of unknown cost"] = spent.unpriced
    return ", ".join([said, *(f"{count} {what}" for what, count in kinds.items() if count)])


def _split(days: Mapping[date, Sequence[Call]]) -> Iterator[tuple[str, str, Spent]]:
    groups: dict[tuple[str, str], list[Call]] = {}
    for calls in days.values():
        for call in calls:
            groups.setdefault((call.task, call.model), []).append(call)
    for (task, model), calls in sorted(groups.items()):
        yield task, model, total(calls)


def _limits(limits: Limits) -> Iterator[str]:
    yield "calls without limit" if limits.calls is None else output.plural(limits.calls, "call")
    yield "tokens without limit" if limits.tokens is None else f"{limits.tokens} tokens"
    yield "dollars without limit" if limits.usd is None else f"${limits.usd:g}"


def _as_json(
    rates: Rates, found: Sequence[Item], days: Mapping[date, Sequence[Call]], limits: Limits, today: date
) -> dict[str, Any]:
    monthly = [item.usd for item in found if not item.once and item.model]
    return {
        "rates": rates._asdict(),
        "items": [{**item._asdict(), "take": item.take._asdict()} for item in found],
        "month_usd": None if None in monthly else sum(usd for usd in monthly if usd is not None),
        "spent": {name: total(_of(days, today, count))._asdict() for name, count in _PERIODS.items()},
        "by_task": [{"task": task, "model": model, **spent._asdict()} for task, model, spent in _split(days)],
        "limits": limits._asdict(),
    }


def _prices(config: Config, options: argparse.Namespace) -> int:
    own = [line.split(" ") for line in config.models.prices]
    rows = [(name, tokens_in, tokens_out, "yours") for name, tokens_in, tokens_out in own]
    rows += [
        (name, f"{one.tokens_in:g}", f"{one.tokens_out:g}", "built in") for name, one in BUILT_IN.items()
    ]
    if options.json:
        names = ("model", "tokens_in", "tokens_out", "from")
        output.dump([dict(zip(names, row, strict=True)) for row in rows])
        return 0
    output.table([("dollars per million tokens", "read", "written", ""), *rows])
    return 0

"""Prices of models, and an estimate of what a month costs.

Prices are those of the user in models.prices, else the built-in list prices. A model on this machine or in
its network costs nothing. The price of a model in neither list is unknown: None.

The estimate goes item by item, from how much a user talks with agents. The number of calls follows from the
sessions per day and the settings; the tokens per call are the average of that task in the ledger if it has
enough calls, else a typical figure. Nothing here asks a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tacit.llm.ledger import FREE, Call, Price
from tacit.llm.tasks import determine_tier

# Dollars per million tokens, read and written, as the providers list them. They change: models.prices wins.
BUILT_IN: Mapping[str, Price] = {
    "anthropic:claude-haiku-4-5": Price(1, 5),
    "anthropic:claude-3-5-haiku": Price(0.8, 4),
    "anthropic:claude-3-haiku": Price(0.25, 1.25),
    "anthropic:claude-sonnet-4-5": Price(3, 15),
    "anthropic:claude-sonnet-4": Price(3, 15),
    "anthropic:claude-opus-4-5": Price(5, 25),
    "anthropic:claude-opus-4-1": Price(15, 75),
    "openai:gpt-5": Price(1.25, 10),
    "openai:gpt-5-mini": Price(0.25, 2),
    "openai:gpt-5-nano": Price(0.05, 0.4),
    "openai:gpt-4.1": Price(2, 8),
    "openai:gpt-4.1-mini": Price(0.4, 1.6),
    "openai:gpt-4.1-nano": Price(0.1, 0.4),
    "openai:gpt-4o": Price(2.5, 10),
    "openai:gpt-4o-mini": Price(0.15, 0.6),
    "openai:text-embedding-3-small": Price(0.02, 0),
    "openai:text-embedding-3-large": Price(0.13, 0),
    "gemini:gemini-embedding-001": Price(0.15, 0),
    "gemini-2.5-flash-lite": Price(0.1, 0.4),
    "gemini-2.5-flash": Price(0.3, 2.5),
    "gemini-2.5-pro": Price(1.25, 10),
}
# A model has dated releases; `gpt-5-pro` is not a release of `gpt-5`.
_RELEASE = re.compile(r"(-\d{4,8}(-\d\d-\d\d)?|-latest)?")


def find_price(model: str, environ: Mapping[str, str], prices: Sequence[str] = ()) -> Price | None:
    own_prices = sorted(_parse_prices(prices), key=lambda entry: len(entry[0]), reverse=True)
    for name, price in own_prices:
        if model.startswith(name):
            return price
    if model.startswith("local:") or determine_tier(model, environ) != "cloud":
        return FREE
    bare_name = model.partition("#")[2] or model
    for name, price in BUILT_IN.items():
        if bare_name.startswith(name) and _RELEASE.fullmatch(bare_name, len(name)):
            return price
    return None


def _parse_prices(prices: Sequence[str]) -> Iterator[tuple[str, Price]]:
    for line in prices:
        name, tokens_in, tokens_out = line.split(" ")
        yield name, Price(float(tokens_in), float(tokens_out))


# The estimate

_DAYS_PER_MONTH = 30.0
_WEEKS_PER_MONTH = 52 / 12
_MIN_CALLS = 5  # calls of a task from which its average is better than a guess


class Rates(NamedTuple):
    """Of one home."""

    sessions: float  # a day
    messages: float  # of the user, in a session
    tokens: float  # of one transcript
    transcripts: int  # all there are
    notes: int
    extractors: int
    commit_minutes: int
    questions: float = 1.0  # per extractor and transcript: long ones are split


class TokenUse(NamedTuple):
    """Tokens of one call."""

    tokens_in: float
    tokens_out: float


# Tokens of a call if the ledger has none of this task.
_TYPICAL_TAKES: Mapping[str, TokenUse] = {
    "gate": TokenUse(200, 1),
    "commit": TokenUse(1000, 50),
    "daily": TokenUse(4000, 500),
    "weekly": TokenUse(6000, 2000),
    "prune": TokenUse(4000, 2000),
    "wisdom": TokenUse(6000, 1500),
    "identity": TokenUse(4000, 1500),
}
_NO_TOKENS = TokenUse(0, 0)  # never asked of a model
_PROMPT_TOKENS = 700  # tokens around a transcript
_EXTRACTED_TOKENS = 250  # tokens that one extractor writes


class EstimateItem(NamedTuple):
    name: str
    task: str
    model: str  # empty: none is configured, and rules do it
    calls: float  # a month; of what is done once, all
    take: TokenUse
    usd: float | None  # None: the model has no price
    once: bool = False

    @property
    def tokens(self) -> float:
        return self.calls * sum(self.take)


def estimate_items(
    rates: Rates,
    models: Mapping[str, str],
    prices: Mapping[str, Price | None],
    ledger_calls: Sequence[Call] = (),
) -> list[EstimateItem]:
    """`models`: the model of each task. `prices`: the price of each model."""
    average = _averages(ledger_calls)
    return [
        EstimateItem(
            name,
            task,
            model,
            calls,
            take,
            _estimate_usd(prices.get(model), calls, take) if model else 0.0,
            once,
        )
        for name, task, calls, take, once in _plan_calls(rates, average)
        for model in [models.get(task, "")]
    ]


def _plan_calls(
    rates: Rates, average: Mapping[str, TokenUse]
) -> Iterator[tuple[str, str, float, TokenUse, bool]]:
    """Name, task, calls per month, tokens per call, whether it is done only once."""

    def take(task: str, typical: str = "") -> TokenUse:
        return average.get(task) or _TYPICAL_TAKES[typical or task]

    sessions = rates.sessions * _DAYS_PER_MONTH
    commits = min(24 * 60 / rates.commit_minutes, 2 * rates.sessions) * _DAYS_PER_MONTH
    questions = rates.extractors * rates.questions
    extract = average.get("extract") or TokenUse(
        rates.tokens / rates.questions + _PROMPT_TOKENS, _EXTRACTED_TOKENS
    )
    yield "gates", "gate", sessions * rates.messages, take("gate"), False
    yield "commit messages", "commit", commits, take("commit"), False
    yield "flush", "flush", sessions, _NO_TOKENS, False
    yield "daily summary", "condense", _DAYS_PER_MONTH, take("condense", "daily"), False
    yield "weekly rollup", "condense", _WEEKS_PER_MONTH, take("condense", "weekly"), False
    yield "monthly rollup", "monthly", 1.0, _NO_TOKENS, False
    yield "pruning", "prune", _WEEKS_PER_MONTH, take("prune"), False
    yield "extraction", "extract", sessions * questions, extract, False
    yield "embedding text", "embed", sessions, TokenUse(rates.tokens, 0), False
    yield "embedding questions", "embed", sessions * rates.messages, TokenUse(100, 0), False
    yield "rebuild of all transcripts", "extract", rates.transcripts * questions, extract, True
    documents = float(rates.transcripts + rates.notes)
    yield "reindex of everything", "embed", documents, TokenUse(rates.tokens or 1000, 0), True
    yield "a wisdom section", "wisdom", 1.0, take("wisdom"), True
    yield "a shorter SOUL.md", "identity", 1.0, take("identity"), True


def _averages(ledger_calls: Sequence[Call]) -> dict[str, TokenUse]:
    by_task: dict[str, list[Call]] = {}
    for call in ledger_calls:
        if call.outcome == "ok":
            by_task.setdefault(call.task, []).append(call)
    return {
        task: TokenUse(
            sum(call.tokens_in for call in calls) / len(calls),
            sum(call.tokens_out for call in calls) / len(calls),
        )
        for task, calls in by_task.items()
        if len(calls) >= _MIN_CALLS
    }


def _estimate_usd(price: Price | None, calls: float, take: TokenUse) -> float | None:
    if price is None:
        return None
    return calls * (price.of(1, 0) * take.tokens_in + price.of(0, 1) * take.tokens_out)

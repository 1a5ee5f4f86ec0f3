"""The cost of model calls: prices, daily limits, and whether one more call fits under them.

A call is counted before it is made, with its maximum, and again when it is done, with its actual cost.
The cost of a model without a price is unknown, and unknown never counts as zero."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

_MILLION = 1_000_000


class Price(NamedTuple):
    """Dollars per million tokens."""

    tokens_in: float
    tokens_out: float

    def of(self, tokens_in: int, tokens_out: int) -> float:
        return (self.tokens_in * tokens_in + self.tokens_out * tokens_out) / _MILLION


FREE = Price(0.0, 0.0)


class SpendingLimits(NamedTuple):
    """Of one day; None is no limit."""

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None


class Call(NamedTuple):
    """One call of a model, as the ledger keeps it."""

    id: str
    at: str  # ISO, with its offset
    task: str
    model: str
    outcome: str  # begun, ok, failed, refused, bad
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = 0.0  # None: unknown
    ms: int = 0
    why: str = ""

    @property
    def counts(self) -> bool:
        """Whether a call was made. A bad answer is a line of its own beside its call."""
        return self.outcome in ("begun", "ok", "failed")


class SpendTotal(NamedTuple):
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    unpriced: int = 0  # calls of unknown cost
    failed: int = 0
    refused: int = 0
    bad: int = 0
    ms: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def and_(self, call: Call) -> SpendTotal:
        counts = call.counts
        return SpendTotal(
            self.calls + counts,
            self.tokens_in + call.tokens_in,
            self.tokens_out + call.tokens_out,
            self.usd + (call.usd or 0.0),
            self.unpriced + (counts and call.usd is None),
            self.failed + (call.outcome == "failed"),
            self.refused + (call.outcome == "refused"),
            self.bad + (call.outcome == "bad"),
            self.ms + call.ms,
        )


def sum_calls(calls: Iterable[Call]) -> SpendTotal:
    spent = SpendTotal()
    for call in calls:
        spent = spent.and_(call)
    return spent


def check_limits(
    limits: SpendingLimits, spent: SpendTotal, model: str, tokens: int, usd: float | None
) -> str:
    """Why a call of so many tokens would exceed a limit; empty if it fits."""
    if limits.calls is not None and spent.calls + 1 > limits.calls:
        return _limit_message("daily_calls", f"{limits.calls} calls", f"{spent.calls} were made")
    if limits.tokens is not None and spent.tokens + tokens > limits.tokens:
        used = f"{spent.tokens} are used and this call may take {tokens}"
        return _limit_message("daily_tokens", f"{limits.tokens} tokens", used)
    if limits.usd is None:
        return ""
    if usd is None:
        return (
            f"{model} has no price, so the limit of ${limits.usd:g} a day cannot be kept. Say what it costs "
            f'in models.prices: ["{model} INPUT OUTPUT"], dollars per million tokens; '
            "or set models.daily_usd to null."
        )
    if spent.usd + usd > limits.usd and usd > 0:
        used = f"${spent.usd:.4f} is spent and this call may cost ${usd:.4f}"
        return _limit_message("daily_usd", f"${limits.usd:g}", used)
    return ""


def _limit_message(key: str, limit: str, used: str) -> str:
    return (
        f"The limit of {limit} a day is reached: {used}. Raise models.{key} in memory-config.yaml, or wait."
    )


class Meter(Protocol):
    """Counts the calls of one model for one task."""

    def begin(self, tokens_in: int, tokens_out: int) -> str:
        """Call it before asking, with the maximum number of tokens. Returns an id or raises LimitReached."""

    def end(self, call: str, outcome: str, tokens_in: int, tokens_out: int, why: str = "") -> None: ...

    def bad(self, why: str) -> None:
        """Count an answer that was paid for and could not be used."""

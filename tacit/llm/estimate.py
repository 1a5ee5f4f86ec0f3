"""What a month of models would cost, item by item, from how much somebody talks with agents.

An estimate: how often each thing is asked follows from the sessions of a day and the settings; how many
tokens a call takes is what calls of that task took before, where the ledger has some, else a figure from
experience. Nothing here asks a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tacit.model.spending import Call, Price

_DAYS = 30.0
_WEEKS = 52 / 12
_ENOUGH = 5  # calls of a task from which its average is better than a guess


class Rates(NamedTuple):
    """Of one home."""

    sessions: float  # a day
    messages: float  # of the user, in a session
    tokens: float  # of one transcript
    transcripts: int  # all there are
    notes: int
    extractors: int
    commit_minutes: int
    questions: float = 1.0  # in which an extractor reads one transcript: long ones are shown in parts


class Take(NamedTuple):
    """Tokens of one call."""

    tokens_in: float
    tokens_out: float


# What a call takes, where nothing is known of the home's own.
_TYPICAL: Mapping[str, Take] = {
    "gate": Take(200, 1),
    "commit": Take(1000, 50),
    "daily": Take(4000, 500),
    "weekly": Take(6000, 2000),
    "prune": Take(4000, 2000),
    "wisdom": Take(6000, 1500),
    "identity": Take(4000, 1500),
}
_NOTHING = Take(0, 0)  # never asked of a model
_PROMPT = 700  # tokens around a transcript
_EXTRACTED = 250  # tokens that one extractor writes


class Item(NamedTuple):
    name: str
    task: str
    model: str  # empty: none is configured, and rules do it
    calls: float  # a month; of what is done once, all
    take: Take
    usd: float | None  # None: the model has no price
    once: bool = False

    @property
    def tokens(self) -> float:
        return self.calls * sum(self.take)


def items(
    rates: Rates, models: Mapping[str, str], prices: Mapping[str, Price | None], seen: Sequence[Call] = ()
) -> list[Item]:
    """`models`: the model of each task. `prices`: what each of them costs. `seen`: calls of the ledger."""
    average = _averages(seen)
    return [
        Item(name, task, model, calls, take, _usd(prices.get(model), calls, take) if model else 0.0, once)
        for name, task, calls, take, once in _asked(rates, average)
        for model in [models.get(task, "")]
    ]


def _asked(rates: Rates, average: Mapping[str, Take]) -> Iterator[tuple[str, str, float, Take, bool]]:
    """Name, task, calls a month, what one takes, whether it is done once only."""

    def take(task: str, typical: str = "") -> Take:
        return average.get(task) or _TYPICAL[typical or task]

    sessions = rates.sessions * _DAYS
    commits = min(24 * 60 / rates.commit_minutes, 2 * rates.sessions) * _DAYS
    read = rates.extractors * rates.questions
    extract = average.get("extract") or Take(rates.tokens / rates.questions + _PROMPT, _EXTRACTED)
    yield "gates", "gate", sessions * rates.messages, take("gate"), False
    yield "commit messages", "commit", commits, take("commit"), False
    yield "flush", "flush", sessions, _NOTHING, False
    yield "daily summary", "condense", _DAYS, take("condense", "daily"), False
    yield "weekly rollup", "condense", _WEEKS, take("condense", "weekly"), False
    yield "monthly rollup", "monthly", 1.0, _NOTHING, False
    yield "pruning", "prune", _WEEKS, take("prune"), False
    yield "extraction", "extract", sessions * read, extract, False
    yield "embedding text", "embed", sessions, Take(rates.tokens, 0), False
    yield "embedding questions", "embed", sessions * rates.messages, Take(100, 0), False
    yield "rebuild of all transcripts", "extract", rates.transcripts * read, extract, True
    everything = float(rates.transcripts + rates.notes)
    yield "reindex of everything", "embed", everything, Take(rates.tokens or 1000, 0), True
    yield "a wisdom section", "wisdom", 1.0, take("wisdom"), True
    yield "a shorter SOUL.md", "identity", 1.0, take("identity"), True


def _averages(seen: Sequence[Call]) -> dict[str, Take]:
    by_task: dict[str, list[Call]] = {}
    for call in seen:
        if call.outcome == "ok":
            by_task.setdefault(call.task, []).append(call)
    return {
        task: Take(
            sum(call.tokens_in for call in calls) / len(calls),
            sum(call.tokens_out for call in calls) / len(calls),
        )
        for task, calls in by_task.items()
        if len(calls) >= _ENOUGH
    }


def _usd(price: Price | None, calls: float, take: Take) -> float | None:
    if price is None:
        return None
    return calls * (price.of(1, 0) * take.tokens_in + price.of(0, 1) * take.tokens_out)

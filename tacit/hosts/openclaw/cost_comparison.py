"""What a session costs with the host's own files and with tacit, by kind of session. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tacit.context.model import Receipt
from tacit.hosts.openclaw.bootstrap_files import TYPES, kind_of

AIMS = {"main": 60, "topic": 85, "subagent": 85}  # target savings in percent
_MAX_RECEIPTS = 500  # newest receipts per kind and delivery mode


class DefaultContext(NamedTuple):
    """What the host loads by itself."""

    tokens: float
    source: str  # where the figure comes from


class AverageTurns(NamedTuple):
    """What tacit added on average in the turns of one kind."""

    files: float | None = None
    listed: float | None = None  # what the host would have loaded in those turns
    text: float | None = None
    runs: int = 0
    turns: int = 0


class ComparisonRow(NamedTuple):
    kind: str
    bulk: float
    bulk_source: str
    files: float
    text: float | None  # None: no turn yet
    source: str

    @property
    def total(self) -> float:
        return self.files + (self.text or 0)

    @property
    def saving(self) -> float | None:
        """In percent; None if the host loads nothing."""
        return 100 * (1 - self.total / self.bulk) if self.bulk else None

    @property
    def aim(self) -> int | None:
        return AIMS.get(self.kind)

    @property
    def verdict(self) -> str:
        if self.aim is None or self.saving is None:
            return ""
        return "reached" if self.saving >= self.aim else "missed"


def gather_turns(receipts: Iterable[Receipt], without: Sequence[str] = ()) -> dict[str, AverageTurns]:
    """`without`: session keys that are not real conversations."""
    files: dict[str, list[Receipt]] = {}
    turns: dict[str, list[Receipt]] = {}
    for receipt in receipts:
        kind = kind_of(receipt.session_type)
        if not kind or receipt.trial or receipt.session_key in without:
            continue
        if receipt.lane == "bootstrap" and receipt.host_tokens is not None:
            files.setdefault(kind, []).append(receipt)
        elif receipt.lane == "runtime":
            turns.setdefault(kind, []).append(receipt)
    return {
        kind: _average_turns(files.get(kind, [])[:_MAX_RECEIPTS], turns.get(kind, [])[:_MAX_RECEIPTS])
        for kind in {*files, *turns}
    }


def _average_turns(files: Sequence[Receipt], turns: Sequence[Receipt]) -> AverageTurns:
    return AverageTurns(
        _mean([receipt.tokens for receipt in files]),
        _mean([receipt.host_tokens or 0 for receipt in files]),
        _mean([receipt.tokens for receipt in turns]),
        len(files),
        len(turns),
    )


def _mean(numbers: Sequence[int]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def compare_costs(
    seen: Mapping[str, AverageTurns],
    reported: Mapping[str, DefaultContext],
    replayed: Mapping[str, tuple[DefaultContext, float]],
) -> list[ComparisonRow]:
    """Measured turns count most, then the host's own report, then the replay. The host shortens long files,
    so the files that a hook was shown may be larger than what the host would have loaded."""
    rows = []
    for kind in TYPES:
        turns = seen.get(kind, AverageTurns())
        replay, replay_files = replayed.get(kind, (None, None))
        bulk = _choose_bulk(turns, reported.get(kind), replay)
        files = replay_files if turns.files is None else turns.files
        if bulk is not None and files is not None:
            source = "replayed" if turns.files is None else _describe_runs(turns)
            rows.append(ComparisonRow(kind, bulk.tokens, bulk.source, files, turns.text, source))
    return rows


def _choose_bulk(
    turns: AverageTurns, reported: DefaultContext | None, replay: DefaultContext | None
) -> DefaultContext | None:
    if turns.listed is None:
        return reported or replay
    if replay is not None and replay.tokens < turns.listed and replay.source.endswith("shortened"):
        return replay
    return DefaultContext(turns.listed, _describe_runs(turns))


def _describe_runs(turns: AverageTurns) -> str:
    return "1 run" if turns.runs == 1 else f"{turns.runs} runs"

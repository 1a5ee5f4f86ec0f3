"""What a session costs with the host's own files and with tacit, by the kind of session. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tacit.model.context import Receipt
from tacit.openclaw.listing import TYPES, kind_of

AIMS = {"main": 60, "topic": 85, "subagent": 85}  # percent less
_MOST = 500  # receipts of a kind and a lane that count, the newest


class Bulk(NamedTuple):
    """What the host loads by itself."""

    tokens: float
    source: str  # how it is known


class Turns(NamedTuple):
    """What tacit gave in the turns of one kind."""

    files: float | None = None
    listed: float | None = None  # what the host would have loaded in those
    text: float | None = None
    runs: int = 0
    turns: int = 0


class Row(NamedTuple):
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
        """In percent; None where the host loads nothing."""
        return 100 * (1 - self.total / self.bulk) if self.bulk else None

    @property
    def aim(self) -> int | None:
        return AIMS.get(self.kind)

    @property
    def verdict(self) -> str:
        if self.aim is None or self.saving is None:
            return ""
        return "reached" if self.saving >= self.aim else "missed"


def gathered(receipts: Iterable[Receipt], without: Sequence[str] = ()) -> dict[str, Turns]:
    """`without`: session keys that are no conversations of anybody."""
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
        kind: _turns(files.get(kind, [])[:_MOST], turns.get(kind, [])[:_MOST]) for kind in {*files, *turns}
    }


def _turns(files: Sequence[Receipt], turns: Sequence[Receipt]) -> Turns:
    return Turns(
        _mean([one.tokens for one in files]),
        _mean([one.host_tokens or 0 for one in files]),
        _mean([one.tokens for one in turns]),
        len(files),
        len(turns),
    )


def _mean(numbers: Sequence[int]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def compared(
    seen: Mapping[str, Turns],
    reported: Mapping[str, Bulk],
    replayed: Mapping[str, tuple[Bulk, float]],
) -> list[Row]:
    """What was seen in turns counts most, then the host's own report, then the replay. The host shortens long
    files, so what a hook was shown may be more than what it would have loaded."""
    rows = []
    for kind in TYPES:
        turns = seen.get(kind, Turns())
        replay, replay_files = replayed.get(kind, (None, None))
        bulk = _bulk(turns, reported.get(kind), replay)
        files = replay_files if turns.files is None else turns.files
        if bulk is not None and files is not None:
            source = "replayed" if turns.files is None else _runs(turns)
            rows.append(Row(kind, bulk.tokens, bulk.source, files, turns.text, source))
    return rows


def _bulk(turns: Turns, reported: Bulk | None, replay: Bulk | None) -> Bulk | None:
    if turns.listed is None:
        return reported or replay
    if replay is not None and replay.tokens < turns.listed and replay.source.endswith("shortened"):
        return replay
    return Bulk(turns.listed, _runs(turns))


def _runs(turns: Turns) -> str:
    return "1 run" if turns.runs == 1 else f"{turns.runs} runs"

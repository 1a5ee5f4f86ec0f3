"""All that is due, in its order: summary of days, rollup of weeks, the month's look, pruning, archiving.

Steps see what earlier ones did only where that happens by itself: a line that waits for somebody's approval
is not there yet. What several steps of one run want of one file is one rewrite, made from the text that is on
disk, so that no two proposals of a run contradict each other.

Nothing is read but through the reader, and nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NamedTuple, TypeAlias

from tacit.config.keys import Lifecycle, Review
from tacit.lifecycle.apply import MEMORY
from tacit.lifecycle.archive import Use, prune_journals, score_and_evict
from tacit.lifecycle.calendar import Period
from tacit.lifecycle.condense.day import daily_summary, page_of, with_summary
from tacit.lifecycle.condense.month import monthly_review
from tacit.lifecycle.condense.week import weekly_rollup
from tacit.lifecycle.prune import archive_page, prune_memory
from tacit.llm.items import Ask
from tacit.model.changes import Change, Heard, Move, Rewrite, lowest
from tacit.text import notes
from tacit.text.frontmatter import TRUE

Reader: TypeAlias = Callable[[str], str | None]
# Where a line of MEMORY.md may stand as well.
_ELSEWHERE = re.compile(r"knowledge/(?:projects/[^/]+/context|people/[^/]+|reference/.+)\.md")
_MONTHLY = re.compile(r"knowledge/(?:projects|people|journal)/.+\.md|archive/journal/.+\.md")


@dataclass(frozen=True, slots=True)
class Home:
    """What a plan is made from: the files of a home, and what others know about them."""

    read: Reader
    paths: Collection[str]
    changed: Mapping[str, date] = field(default_factory=dict)  # the day of a note's last change
    references: Mapping[str, int] = field(default_factory=dict)  # how many notes and conversations name it
    linked: Collection[str] = ()  # notes that a person wrote a link to
    rolled: Mapping[str, Collection[str]] = field(default_factory=dict)  # lines that a week has looked at


class Condensed(NamedTuple):
    changes: tuple[Change, ...]  # lines for journal pages
    untrusted: tuple[Change, ...]  # lines by the word of others: for review, whatever the config says
    rewrites: tuple[Rewrite, ...]
    moves: tuple[Move, ...]
    periods: tuple[Period, ...]  # that are done with this
    sessions: Mapping[str, tuple[str, ...]]  # by journal page: the sessions that its summary has seen
    notes: tuple[str, ...]  # for whoever reviews it or reads the log
    rolled: Mapping[str, tuple[str, ...]] = {}  # by week: the lines that were looked at, by their tokens


def plan(
    home: Home,
    heards: Mapping[str, Sequence[Heard]],
    periods: Sequence[Period],
    *,
    now: datetime,
    lifecycle: Lifecycle,
    review: Review,
    ask: Ask | None = None,
    prune: bool = True,
    archive: bool = True,
) -> Condensed:
    """`heards`: the conversations of the days that are due; `periods`: what is due, as calendar.due gives it.
    `prune` and `archive` say whether it is time for these too; a month ends with the cap in any case."""
    run = _Run(home, now, lifecycle, review, ask)
    for kind, step in (("day", run.day), ("week", run.week), ("month", run.month)):
        for period in periods:
            if period.kind == kind:
                step(period, heards)
    if prune or any(period.kind == "month" for period in periods):
        run.prune()
    if archive:
        run.archive()
    return run.result(periods)


class _Run:
    """One plan while it is made."""

    def __init__(
        self, home: Home, now: datetime, lifecycle: Lifecycle, review: Review, ask: Ask | None
    ) -> None:
        self._home, self._now, self._ask = home, now, ask
        self._lifecycle, self._review = lifecycle, review
        self._applied: dict[str, str] = {}
        self._rewrites: dict[str, Rewrite] = {}
        self._changes: list[Change] = []
        self._untrusted: list[Change] = []
        self._moves: list[Move] = []
        self._sessions: dict[str, tuple[str, ...]] = {}
        self._notes: list[str] = []
        self._rolled: dict[str, tuple[str, ...]] = {}

    def result(self, periods: Iterable[Period]) -> Condensed:
        return Condensed(
            tuple(self._changes),
            tuple(dict.fromkeys(self._untrusted)),
            tuple(self._rewrites.values()),
            tuple(self._moves),
            tuple(periods),
            self._sessions,
            tuple(self._notes),
            self._rolled,
        )

    # Steps

    def day(self, period: Period, heards: Mapping[str, Sequence[Heard]]) -> None:
        page = self._read(page_of(period.name))
        found = daily_summary(period.name, heards.get(period.name, ()), page, self._ask)
        self._changes += found.changes
        self._untrusted += found.untrusted
        self._note(period, found.notes)
        if not found.changes:
            return
        self._sessions[found.path] = found.sessions
        text = with_summary(page, period.name, found.changes, found.sessions)
        if text is not None and self._lifecycle.auto_apply and self._review.journal == "auto":
            self._applied[found.path] = text

    def week(self, period: Period, _: Mapping[str, Sequence[Heard]]) -> None:
        pages = self._texts(map(page_of, period.days))
        if not pages:
            return
        found = weekly_rollup(
            pages,
            self._proposed(MEMORY),
            week=period.name,
            cap=self._lifecycle.memory_line_cap,
            now=self._now,
            archive=self._proposed(archive_page(self._now)),
            elsewhere=self._texts(filter(_ELSEWHERE.fullmatch, self._home.paths)),
            ask=self._ask,
            seen=self._home.rolled.get(str(period), ()),
        )
        self._untrusted += found.untrusted
        self._rolled[period.name] = found.seen
        self._note(period, found.notes)
        self._rewrite(found.rewrites)

    def month(self, period: Period, _: Mapping[str, Sequence[Heard]]) -> None:
        texts = self._texts(filter(_MONTHLY.fullmatch, {*self._home.paths, *self._applied}))
        found = monthly_review(texts, self._home.changed, self._now.date(), period.name)
        self._note(period, found.notes)
        self._rewrite([found.rewrite] if found.rewrite else [])

    def prune(self) -> None:
        memory = self._proposed(MEMORY)
        if memory is None:
            return
        found = prune_memory(
            memory,
            cap=self._lifecycle.memory_line_cap,
            now=self._now,
            archive=self._proposed(archive_page(self._now)),
            elsewhere=self._texts(filter(_ELSEWHERE.fullmatch, self._home.paths)),
            ask=self._ask,
        )
        self._note("prune", found.notes)
        self._rewrite(found.rewrites)

    def archive(self) -> None:
        today = self._now.date()
        paths = set(self._home.paths)
        pages = prune_journals(paths, today, self._lifecycle.journal_retention_days)
        self._moves += [move for move in pages if not self._is_pinned(move.path)]
        taken = {move.to for move in self._moves}
        uses = [self._use(path) for path in paths if path in self._home.changed]
        self._moves += score_and_evict(uses, today, paths | taken)

    def _use(self, path: str) -> Use:
        pinned = path.startswith("knowledge/") and self._is_pinned(path)
        changed = self._home.changed[path]
        if path in self._applied:
            changed = self._now.date()
        return Use(path, changed, self._home.references.get(path, 0), pinned, path in self._home.linked)

    def _is_pinned(self, path: str) -> bool:
        return str(notes.parse(self._read(path) or "").fields.get("pinned", "")).lower() in TRUE

    # What is there

    def _read(self, path: str) -> str | None:
        return self._applied[path] if path in self._applied else self._home.read(path)

    def _proposed(self, path: str) -> str | None:
        """With what this run wants of it so far."""
        return self._rewrites[path].new if path in self._rewrites else self._read(path)

    def _texts(self, paths: Iterable[str]) -> dict[str, str]:
        found = ((path, self._read(path)) for path in sorted(paths))
        return {path: text for path, text in found if text is not None}

    def _rewrite(self, rewrites: Iterable[Rewrite]) -> None:
        for one in rewrites:
            before = self._rewrites.get(one.path)
            self._rewrites[one.path] = one if before is None else _joined(before, one)

    def _note(self, of: object, told: Iterable[str]) -> None:
        self._notes += [f"{of}: {one}" for one in told]


def _joined(first: Rewrite, second: Rewrite) -> Rewrite:
    """Two rewrites of one file, one made from the result of the other, as one."""
    return Rewrite(
        first.path,
        first.old,
        second.new,
        first.category,
        f"{first.reason}; {second.reason}",
        tuple(dict.fromkeys((*first.sources, *second.sources))),
        lowest((first.trust, second.trust)),
    )

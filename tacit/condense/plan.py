"""Plan everything that is due, in order: daily summaries, weekly rollups, monthly review, pruning, archiving.

A step sees the changes of earlier steps only if those need no approval. Changes of several steps to one file
are joined into one rewrite of the text on disk, so that no two proposals of a run contradict each other.

All reads go through the reader, and nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import NamedTuple, TypeAlias

from tacit.condense.day import add_summary, daily_summary, journal_path
from tacit.condense.month import monthly_review
from tacit.condense.periods import Period
from tacit.condense.prune import NoteUsage, prune_journals, prune_memory, score_and_evict
from tacit.condense.week import weekly_rollup
from tacit.config.schema import LifecycleSettings, ReviewSettings
from tacit.home.layout import MEMORY
from tacit.learn.model import Change, Move, Rewrite
from tacit.llm.structured import Ask
from tacit.markdown import notes
from tacit.markdown.comment import lowest
from tacit.review.entries import archive_page_path
from tacit.text.yaml_reader import TRUE_WORDS
from tacit.transcripts.attribution import AttributedTranscript

NoteReader: TypeAlias = Callable[[str], str | None]
# Notes that may repeat a line of MEMORY.md.
_ELSEWHERE = re.compile(r"knowledge/(?:projects/[^/]+/context|people/[^/]+|reference/.+)\.md")
_MONTHLY = re.compile(r"knowledge/(?:projects|people|journal)/.+\.md|archive/journal/.+\.md")


@dataclass(frozen=True, slots=True)
class PlanInput:
    """The input of a plan: the files of a home and facts about them."""

    read: NoteReader
    paths: Collection[str]
    changed: Mapping[str, date] = field(default_factory=dict)  # the day of a note's last change
    references: Mapping[str, int] = field(default_factory=dict)  # number of notes and conversations naming it
    linked: Collection[str] = ()  # notes that a person wrote a link to
    rolled: Mapping[str, Collection[str]] = field(default_factory=dict)  # by week: lines that it has seen


class CondensePlan(NamedTuple):
    changes: tuple[Change, ...]  # lines for journal pages
    untrusted: tuple[Change, ...]  # lines in the words of others: always for review
    rewrites: tuple[Rewrite, ...]
    moves: tuple[Move, ...]
    periods: tuple[Period, ...]  # that are completed by this plan
    sessions: Mapping[str, tuple[str, ...]]  # by journal page: the sessions that its summary has seen
    notes: tuple[str, ...]  # for reviewers and the log
    rolled: Mapping[str, tuple[str, ...]] = {}  # by week: tokens of the lines that were considered


def plan(
    home: PlanInput,
    conversations: Mapping[str, Sequence[AttributedTranscript]],
    periods: Sequence[Period],
    *,
    now: datetime,
    lifecycle: LifecycleSettings,
    review: ReviewSettings,
    ask: Ask | None = None,
    prune: bool = True,
    archive: bool = True,
) -> CondensePlan:
    """`conversations`: those of the due days; `periods`: the due periods. `prune` and `archive` say
    whether these steps are due too; a month always ends with pruning."""
    run = _Run(home, now, lifecycle, review, ask)
    for kind, step in (("day", run.day), ("week", run.week), ("month", run.month)):
        for period in periods:
            if period.kind == kind:
                step(period, conversations)
    if prune or any(period.kind == "month" for period in periods):
        run.prune()
    if archive:
        run.archive()
    return run.result(periods)


class _Run:
    """Builds one plan."""

    def __init__(
        self,
        home: PlanInput,
        now: datetime,
        lifecycle: LifecycleSettings,
        review: ReviewSettings,
        ask: Ask | None,
    ) -> None:
        self._home, self._now, self._ask = home, now, ask
        self._lifecycle, self._review = lifecycle, review
        self._new_texts: dict[str, str] = {}
        self._rewrites: dict[str, Rewrite] = {}
        self._changes: list[Change] = []
        self._untrusted: list[Change] = []
        self._moves: list[Move] = []
        self._sessions: dict[str, tuple[str, ...]] = {}
        self._notes: list[str] = []
        self._seen_by_week: dict[str, tuple[str, ...]] = {}

    def result(self, periods: Iterable[Period]) -> CondensePlan:
        return CondensePlan(
            tuple(self._changes),
            tuple(dict.fromkeys(self._untrusted)),
            tuple(self._rewrites.values()),
            tuple(self._moves),
            tuple(periods),
            self._sessions,
            tuple(self._notes),
            self._seen_by_week,
        )

    # Steps

    def day(self, period: Period, conversations: Mapping[str, Sequence[AttributedTranscript]]) -> None:
        page = self._read(journal_path(period.name))
        summary = daily_summary(period.name, conversations.get(period.name, ()), page, self._ask)
        self._changes += summary.changes
        self._untrusted += summary.untrusted
        self._add_notes(period, summary.notes)
        if not summary.changes:
            return
        self._sessions[summary.path] = summary.sessions
        text = add_summary(page, period.name, summary.changes, summary.sessions)
        if text is not None and self._lifecycle.auto_apply and self._review.journal == "auto":
            self._new_texts[summary.path] = text

    def week(self, period: Period, _: Mapping[str, Sequence[AttributedTranscript]]) -> None:
        pages = self._texts(map(journal_path, period.days))
        if not pages:
            return
        rollup = weekly_rollup(
            pages,
            self._latest_text(MEMORY),
            week=period.name,
            cap=self._lifecycle.memory_line_cap,
            now=self._now,
            archive=self._latest_text(archive_page_path(self._now)),
            elsewhere=self._texts(filter(_ELSEWHERE.fullmatch, self._home.paths)),
            ask=self._ask,
            seen=self._home.rolled.get(str(period), ()),
        )
        self._untrusted += rollup.untrusted
        self._seen_by_week[period.name] = rollup.seen
        self._add_notes(period, rollup.notes)
        self._add_rewrites(rollup.rewrites)

    def month(self, period: Period, _: Mapping[str, Sequence[AttributedTranscript]]) -> None:
        texts = self._texts(filter(_MONTHLY.fullmatch, {*self._home.paths, *self._new_texts}))
        monthly = monthly_review(texts, self._home.changed, self._now.date(), period.name)
        self._add_notes(period, monthly.notes)
        self._add_rewrites([monthly.rewrite] if monthly.rewrite else [])

    def prune(self) -> None:
        memory = self._latest_text(MEMORY)
        if memory is None:
            return
        pruned = prune_memory(
            memory,
            cap=self._lifecycle.memory_line_cap,
            now=self._now,
            archive=self._latest_text(archive_page_path(self._now)),
            elsewhere=self._texts(filter(_ELSEWHERE.fullmatch, self._home.paths)),
            ask=self._ask,
        )
        self._add_notes("prune", pruned.notes)
        self._add_rewrites(pruned.rewrites)

    def archive(self) -> None:
        today = self._now.date()
        paths = set(self._home.paths)
        pages = prune_journals(paths, today, self._lifecycle.journal_retention_days)
        self._moves += [move for move in pages if not self._is_pinned(move.path)]
        targets = {move.to for move in self._moves}
        uses = [self._usage_of(path) for path in paths if path in self._home.changed]
        self._moves += score_and_evict(uses, today, paths | targets)

    def _usage_of(self, path: str) -> NoteUsage:
        pinned = path.startswith("knowledge/") and self._is_pinned(path)
        changed = self._home.changed[path]
        if path in self._new_texts:
            changed = self._now.date()
        return NoteUsage(path, changed, self._home.references.get(path, 0), pinned, path in self._home.linked)

    def _is_pinned(self, path: str) -> bool:
        return str(notes.parse(self._read(path) or "").fields.get("pinned", "")).lower() in TRUE_WORDS

    # Reading

    def _read(self, path: str) -> str | None:
        return self._new_texts[path] if path in self._new_texts else self._home.read(path)

    def _latest_text(self, path: str) -> str | None:
        """Its text with the rewrites of this run so far."""
        return self._rewrites[path].new if path in self._rewrites else self._read(path)

    def _texts(self, paths: Iterable[str]) -> dict[str, str]:
        texts = ((path, self._read(path)) for path in sorted(paths))
        return {path: text for path, text in texts if text is not None}

    def _add_rewrites(self, rewrites: Iterable[Rewrite]) -> None:
        for rewrite in rewrites:
            earlier = self._rewrites.get(rewrite.path)
            self._rewrites[rewrite.path] = rewrite if earlier is None else _join_rewrites(earlier, rewrite)

    def _add_notes(self, subject: object, messages: Iterable[str]) -> None:
        self._notes += [f"{subject}: {message}" for message in messages]


def _join_rewrites(first: Rewrite, second: Rewrite) -> Rewrite:
    """Join two rewrites of one file, the second made from the result of the first."""
    return Rewrite(
        first.path,
        first.old,
        second.new,
        first.category,
        f"{first.reason}; {second.reason}",
        tuple(dict.fromkeys((*first.sources, *second.sources))),
        lowest((first.trust, second.trust)),
    )

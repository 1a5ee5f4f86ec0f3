"""Turn conversations into lines of notes: once each, with their sources, and only where the audience allows.

What must stay true:
- a conversation is learned from once; if that failed, it is tried again later;
- if a model's answers were paid for and unusable, the conversation waits a day, and those that failed before
  come after the others, so that none is retried endlessly or holds up the rest;
- a kill at any point followed by a restart gives the same notes as no kill;
- concurrent edits are kept: lines are added to the note as it is at that moment;
- words of strangers, and changes that a policy holds back, wait as drafts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from tacit.clock import Clock
from tacit.config import Config, Policy
from tacit.errors import ChangedOnDisk, MergeConflict, NotCheckedOut, TacitError, UnsafePath
from tacit.git.conflicts import NoteTree, find_note_conflicts
from tacit.git.index import require_checked_out
from tacit.git.note_committer import NoteCommitter
from tacit.home import files
from tacit.home.layout import CONVERSATIONS, MEMORY, REVIEWED, Home
from tacit.home.listing import walk
from tacit.learn.attribution import SpeakerAttribution
from tacit.learn.drafts import DraftMaker, policy_for_change
from tacit.learn.entities import load_known_names
from tacit.learn.extractors.extractor import Extractor
from tacit.learn.extractors.registry import load_extractors
from tacit.learn.model import Change
from tacit.learn.note_changes import AppliedChanges, apply_changes, redirect_changes
from tacit.learn.pipeline import learn
from tacit.learn.runs import LearnRun, RunLog, format_learned_trailer
from tacit.llm.structured import Ask
from tacit.markdown import notes
from tacit.markdown.note_page import line_count
from tacit.review.store import ReviewQueue
from tacit.sessions.policy import SessionProfiles
from tacit.transcripts import writer
from tacit.workspaces.note_store import read_note

_MAX_ATTEMPTS = 5  # another process may write to the same note
_RETRY_DELAY = timedelta(days=1)
MEMORY_FULL = "MEMORY.md is full: with these lines it would have more than lifecycle.memory_line_cap"


class PendingTranscript(NamedTuple):
    """A finalized conversation, and the extractors that have not read it yet."""

    transcript: str
    extractors: tuple[str, ...]
    failed: tuple[str, ...] = ()  # labels of those that tried and could not
    later: str = ""  # when they may try again


@dataclass(frozen=True, slots=True)
class LearnResult:
    """What one pass did."""

    sessions: tuple[str, ...] = ()
    added: tuple[Change, ...] = ()
    superseded: int = 0
    drafts: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    waiting: int = 0  # conversations that are still to be learned from
    failed: tuple[str, ...] = ()  # why some of them could not be, each reason once
    stopped: bool = False  # no model is asked for a while, so the rest was not tried


class KnowledgeExtractor:
    """`ask` returns the model for a task, or None."""

    def __init__(
        self,
        home: Home,
        config: Config,
        clock: Clock,
        *,
        runs: RunLog,
        reviews: ReviewQueue,
        committer: NoteCommitter,
        attribution: SpeakerAttribution,
        profiles: SessionProfiles,
        drafts: DraftMaker,
        ask: Callable[[str], Ask | None],
    ) -> None:
        self._home, self._config, self._clock = home, config, clock
        self._runs, self._reviews, self._committer = runs, reviews, committer
        self._attribution, self._profiles, self._drafts, self._ask = attribution, profiles, drafts, ask

    def find_pending(self) -> list[PendingTranscript]:
        """Oldest first, because later lines may contradict earlier ones."""
        done = self._runs.list_learn_runs()
        names = tuple(dict.fromkeys(self._config.lifecycle.extractors))
        candidates = []
        for path in sorted(path for path, _ in walk(str(self._home.root), CONVERSATIONS)):
            done_names = (
                {label.partition("/")[0] for label in done[path].extractors} if path in done else set()
            )
            missing = tuple(name for name in names if name not in done_names)
            if missing and writer.is_sealed(self._home.root / path):
                previous = (done[path].failed, done[path].later) if path in done else ((), "")
                candidates.append(PendingTranscript(path, missing, *previous))
        return candidates

    def learn_pending(
        self,
        *,
        most: int | None = None,
        tick: Callable[[int, int], None] = lambda result, total: None,
        is_over: Callable[[], bool] = lambda: False,
        again: bool = False,
    ) -> LearnResult:
        """Learn from conversations that were not learned from yet. One process at a time; `is_over` stops it
        between two conversations. `again`: include those that were postponed to another day."""
        with files.hold_lock(self._home.private / "lifecycle.lock", 0.5):
            waiting = self.find_pending()
            batch = (waiting if again else _select_due(waiting, self._clock.now()))[:most]
            result = LearnResult()
            for number, candidate in enumerate(batch):
                if is_over() or result.stopped:
                    break
                result = _combine(result, self._attempt_learning(candidate))
                tick(number + 1, len(batch))
            return replace(result, waiting=len(self.find_pending()) if waiting else 0)

    def _attempt_learning(self, candidate: PendingTranscript) -> LearnResult:
        """A merge conflict in the transcript or in a target note postpones the conversation until it is
        resolved. Until then no model is paid for the same answer again."""
        if (
            candidate.failed
            and self._ask("extract") is not None
            and (conflict := next(find_note_conflicts(self._home), None))
        ):
            return LearnResult(failed=(str(conflict),))
        try:
            return self._learn_one(candidate)
        except MergeConflict as error:
            labels = _labels(load_extractors(candidate.extractors).extractors)
            if candidate.failed != labels:
                sha = files.digest((self._home.root / candidate.transcript).read_bytes())
                run = LearnRun(candidate.transcript, sha, (), labels, why=str(error))
                self._runs.finish(run, self._clock.now())
            return LearnResult(failed=(str(error),))

    def _learn_one(self, candidate: PendingTranscript) -> LearnResult:
        extractors, broken = load_extractors(candidate.extractors)
        sha = files.digest((self._home.root / candidate.transcript).read_bytes())
        conversation = self._attribution.attribute(candidate.transcript)
        if conversation is None:
            self._runs.finish(LearnRun(candidate.transcript, sha, _labels(extractors)), self._clock.now())
            return LearnResult()
        learned = learn(conversation, load_known_names(self._home), extractors, self._ask("extract"))
        reasons = tuple(dict.fromkeys((*learned.failed.values(), *map(str, broken))))
        labels = tuple(label for label in _labels(extractors) if label not in learned.failed)
        later = (self._clock.now() + _RETRY_DELAY).isoformat(timespec="seconds") if learned.paid else ""
        run = LearnRun(candidate.transcript, sha, labels, tuple(learned.failed), later, "; ".join(reasons))
        result = self._store_changes(learned.changes, run)
        # Otherwise the same run is recorded already, and there are many attempts a day.
        if run.extractors or run.failed != candidate.failed or later:
            self._runs.finish(run, self._clock.now())
        sessions = (candidate.transcript,) if run.extractors else ()
        return replace(result, sessions=sessions, failed=reasons, stopped=learned.stopped)

    def _store_changes(self, changes: Sequence[Change], run: LearnRun) -> LearnResult:
        """Apply the changes that need no review, in one commit; the rest waits as drafts. Raises before
        writing anything if a note is in conflict."""
        with files.hold_lock(self._home.lock):
            changes = list(redirect_changes(changes, self._profiles, self._try_read))
            for path in group_by_path(changes):
                self._try_read(path)
            automatic = [change for change in changes if policy_for_change(self._config, change) == "auto"]
            for_review = [change for change in changes if policy_for_change(self._config, change) != "auto"]
            if self._config.git.auto_commit:
                self._committer.commit_theirs(list(dict.fromkeys(change.path for change in automatic)))
            outcomes, over_cap, absent = self._write_notes(automatic)
            drafts = [
                *self._drafts.draft_changes(for_review),
                *self._drafts.draft_changes(over_cap, MEMORY_FULL),
                *self._drafts.draft_changes(absent, "the note is locked, a link or not checked out"),
            ]
            drafts += [
                draft
                for path, outcome in outcomes.items()
                for draft in self._drafts.draft_contradictions(path, outcome.contradicts)
            ]
            proposed = self._reviews.propose(drafts)
            paths = [
                *outcomes,
                *(self._reviews.path_of(draft) for draft in proposed),
                *([REVIEWED] if proposed else []),
            ]
            commits = self._commit(paths, run)
        return LearnResult(
            added=tuple(change for outcome in outcomes.values() for change in outcome.added),
            superseded=sum(len(outcome.superseded) for outcome in outcomes.values()),
            drafts=tuple(draft.id for draft in proposed),
            commits=commits,
        )

    def _try_read(self, path: str) -> bytes | None:
        try:
            return read_note(self._home, path)
        except UnsafePath:  # locked or a link: its changes become a draft
            return None

    def _write_notes(
        self, changes: Sequence[Change]
    ) -> tuple[dict[str, AppliedChanges], list[Change], list[Change]]:
        """The notes with their new lines, the changes over the line cap, and those for notes that cannot be
        read here."""
        outcomes: dict[str, AppliedChanges] = {}
        over_cap: list[Change] = []
        absent: list[Change] = []
        for path, note_changes in group_by_path(changes).items():
            try:
                outcome = self._write_note(path, note_changes)
            except (UnsafePath, NotCheckedOut):
                absent += note_changes
                continue
            if outcome is None:
                over_cap += note_changes
            else:
                outcomes[path] = outcome
        return outcomes, over_cap, absent

    def _write_note(self, path: str, changes: Sequence[Change]) -> AppliedChanges | None:
        tree = NoteTree(self._home.root)
        for _ in range(_MAX_ATTEMPTS):
            try:
                old: bytes | None = tree.read(path)
            except FileNotFoundError:
                require_checked_out(self._home.root, path)
                old = None
            text = None if old is None else notes.decode(old)
            outcome = apply_changes(text, path, changes, supersede=self._config.review.supersede == "auto")
            if (
                path == MEMORY
                and outcome.added
                and line_count(outcome.text) > self._config.lifecycle.memory_line_cap
            ):
                return None
            if not outcome.added:
                return outcome
            try:
                tree.write(
                    path,
                    notes.encode(outcome.text),
                    None if old is None else files.digest(old),
                    tree.mode(path),
                )
            except ChangedOnDisk:
                continue
            return outcome
        raise ChangedOnDisk(path)

    def _commit(self, paths: Sequence[str], run: LearnRun) -> tuple[str, ...]:
        if not paths or not self._config.git.auto_commit:
            return ()
        name = os.path.basename(run.transcript).removesuffix(".md")
        message = (
            f"memory: learned from {name[:60]}\n\nSession: {run.transcript}\n{format_learned_trailer(run)}\n"
        )
        try:
            return self._committer.commit_paths(message, paths).commits
        except TacitError:
            return ()  # the lines are on disk, and the next commit of notes includes them

    def preview(self) -> LearnPreview:
        """What would be learned now. Asks the model too, if one is configured."""
        previews: list[tuple[Change, Policy]] = []
        sessions: list[str] = []
        failed: list[str] = []
        by_note: dict[str, list[Change]] = {}
        names = load_known_names(self._home)
        for candidate in self.find_pending():
            try:
                conversation = self._attribution.attribute(candidate.transcript)
            except MergeConflict as error:
                failed.append(str(error))
                continue
            if conversation is None:
                continue
            learned = learn(
                conversation, names, load_extractors(candidate.extractors).extractors, self._ask("extract")
            )
            sessions.append(candidate.transcript)
            failed += learned.failed.values()
            if learned.stopped:
                break
            try:
                for change in list(redirect_changes(learned.changes, self._profiles, self._try_read)):
                    by_note.setdefault(change.path, []).append(change)
            except MergeConflict as error:
                failed.append(str(error))
        for path, changes in by_note.items():
            old = self._try_read(path)
            outcome = apply_changes(None if old is None else notes.decode(old), path, changes)
            previews += [(change, policy_for_change(self._config, change)) for change in outcome.added]
        return LearnPreview(tuple(previews), tuple(sessions), tuple(dict.fromkeys(failed)))


def _select_due(candidates: Iterable[PendingTranscript], now: datetime) -> list[PendingTranscript]:
    due = [
        candidate
        for candidate in candidates
        if not candidate.later or datetime.fromisoformat(candidate.later) <= now
    ]
    return sorted(due, key=lambda candidate: bool(candidate.failed))


def _combine(first: LearnResult, second: LearnResult) -> LearnResult:
    return LearnResult(
        (*first.sessions, *second.sessions),
        (*first.added, *second.added),
        first.superseded + second.superseded,
        (*first.drafts, *second.drafts),
        (*first.commits, *second.commits),
        failed=tuple(dict.fromkeys((*first.failed, *second.failed))),
        stopped=first.stopped or second.stopped,
    )


def _labels(extractors: Iterable[Extractor]) -> tuple[str, ...]:
    return tuple(extractor.label for extractor in extractors)


def group_by_path(changes: Iterable[Change]) -> dict[str, list[Change]]:
    """Group the changes by note, in their order."""
    grouped: dict[str, list[Change]] = {}
    for change in changes:
        grouped.setdefault(change.path, []).append(change)
    return grouped


class LearnPreview(NamedTuple):
    changes: tuple[tuple[Change, Policy], ...]
    sessions: tuple[str, ...]
    failed: tuple[str, ...]

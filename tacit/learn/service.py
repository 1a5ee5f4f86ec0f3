"""Turn conversations into lines of notes: once each, with their sources, and only where the audience allows.

What must stay true:
- a conversation is learned from once; if that failed, it is tried again later;
- if a model's answers were paid for and unusable, the conversation waits a day, and those that failed before
  come after the others, so that none is retried endlessly or holds up the rest;
- a kill at any point followed by a restart gives the same notes as no kill;
- concurrent edits are kept: lines are added to the note as it is at that moment;
- words of strangers, and whatever a policy holds back, wait as drafts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from tacit.config import Policy
from tacit.errors import ChangedOnDisk, MergeConflict, NotCheckedOut, TacitError, UnsafePath
from tacit.git.attributes import find_blocking_filters
from tacit.git.index import require_checked_out
from tacit.home import files
from tacit.home.conflicts import NoteTree, find_note_conflicts
from tacit.home.layout import CONVERSATIONS, REVIEWED
from tacit.home.listing import walk
from tacit.learn.audience_guard import redirect_changes
from tacit.learn.entities import load_known_names
from tacit.learn.extractors.registry import load_extractors
from tacit.learn.model import Change, lowest
from tacit.learn.note_lines import MEMORY, AppliedChanges, apply_changes, format_line, line_count
from tacit.learn.pipeline import learn
from tacit.learn.runs import LearnRun, learned_trailer
from tacit.markdown import notes
from tacit.provenance import comment
from tacit.review.format import Addition, render_additions
from tacit.review.model import Draft
from tacit.review.policies import find_policy, policy_for_change, waiting_policy
from tacit.review.service import read_note
from tacit.transcripts import writer
from tacit.transcripts.attribution import attribute_transcript

if TYPE_CHECKING:
    from tacit.learn.extractors.extractor import Extractor
    from tacit.memory import Memory

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


def find_pending(memory: Memory) -> list[PendingTranscript]:
    """Oldest first, because later lines may contradict earlier ones."""
    done = memory.runs.learned()
    names = tuple(dict.fromkeys(memory.config.lifecycle.extractors))
    candidates = []
    for path in sorted(path for path, _ in walk(str(memory.home.root), CONVERSATIONS)):
        done_names = {label.partition("/")[0] for label in done[path].extractors} if path in done else set()
        missing = tuple(name for name in names if name not in done_names)
        if missing and writer.is_sealed(memory.home.root / path):
            previous = (done[path].failed, done[path].later) if path in done else ((), "")
            candidates.append(PendingTranscript(path, missing, *previous))
    return candidates


def _select_due(candidates: Iterable[PendingTranscript], now: datetime) -> list[PendingTranscript]:
    due = [
        candidate
        for candidate in candidates
        if not candidate.later or datetime.fromisoformat(candidate.later) <= now
    ]
    return sorted(due, key=lambda candidate: bool(candidate.failed))


def learn_pending(
    memory: Memory,
    *,
    most: int | None = None,
    tick: Callable[[int, int], None] = lambda result, total: None,
    is_over: Callable[[], bool] = lambda: False,
    again: bool = False,
) -> LearnResult:
    """Learn from conversations that were not learned from yet. One process at a time; `is_over` stops it
    between two conversations. `again`: include those that were postponed to another day."""
    with files.hold_lock(memory.home.private / "lifecycle.lock", 0.5):
        waiting = find_pending(memory)
        batch = (waiting if again else _select_due(waiting, memory.moment()))[:most]
        result = LearnResult()
        for number, candidate in enumerate(batch):
            if is_over() or result.stopped:
                break
            result = _combine(result, _attempt_learning(memory, candidate))
            tick(number + 1, len(batch))
        return replace(result, waiting=len(find_pending(memory)) if waiting else 0)


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


def _attempt_learning(memory: Memory, candidate: PendingTranscript) -> LearnResult:
    """A merge conflict in the transcript or in a target note postpones the conversation until it is resolved.
    Until then no model is paid for the same answer again."""
    if (
        candidate.failed
        and memory.ask("extract") is not None
        and (conflict := next(find_note_conflicts(memory.home), None))
    ):
        return LearnResult(failed=(str(conflict),))
    try:
        return _learn_one(memory, candidate)
    except MergeConflict as error:
        labels = _labels(load_extractors(candidate.extractors).extractors)
        if candidate.failed != labels:
            sha = files.digest((memory.home.root / candidate.transcript).read_bytes())
            run = LearnRun(candidate.transcript, sha, (), labels, why=str(error))
            memory.runs.finish(run, memory.moment())
        return LearnResult(failed=(str(error),))


def _learn_one(memory: Memory, candidate: PendingTranscript) -> LearnResult:
    extractors, broken = load_extractors(candidate.extractors)
    sha = files.digest((memory.home.root / candidate.transcript).read_bytes())
    heard = attribute_transcript(memory, candidate.transcript)
    if heard is None:
        memory.runs.finish(LearnRun(candidate.transcript, sha, _labels(extractors)), memory.moment())
        return LearnResult()
    learned = learn(heard, load_known_names(memory), extractors, memory.ask("extract"))
    reasons = tuple(dict.fromkeys((*learned.failed.values(), *map(str, broken))))
    labels = tuple(label for label in _labels(extractors) if label not in learned.failed)
    later = (memory.moment() + _RETRY_DELAY).isoformat(timespec="seconds") if learned.paid else ""
    run = LearnRun(candidate.transcript, sha, labels, tuple(learned.failed), later, "; ".join(reasons))
    result = store_changes(memory, learned.changes, run)
    # Otherwise the same run is recorded already, and there are many attempts a day.
    if run.extractors or run.failed != candidate.failed or later:
        memory.runs.finish(run, memory.moment())
    sessions = (candidate.transcript,) if run.extractors else ()
    return replace(result, sessions=sessions, failed=reasons, stopped=learned.stopped)


def _labels(extractors: Iterable[Extractor]) -> tuple[str, ...]:
    return tuple(extractor.label for extractor in extractors)


# ---------------------------------------------------------------- apply changes


def store_changes(memory: Memory, changes: Sequence[Change], run: LearnRun) -> LearnResult:
    """Apply the changes that need no review, in one commit; the rest waits as drafts. Raises before writing
    anything if a note is in conflict."""
    with files.hold_lock(memory.home.lock):
        changes = list(redirect_changes(memory, changes, lambda path: _read_if_allowed(memory, path)))
        for path in group_by_path(changes):
            _read_if_allowed(memory, path)
        automatic = [change for change in changes if policy_for_change(memory.config, change) == "auto"]
        for_review = [change for change in changes if policy_for_change(memory.config, change) != "auto"]
        if memory.config.git.auto_commit:
            memory.commit_theirs(list(dict.fromkeys(change.path for change in automatic)))
        outcomes, over_cap, absent = _write_notes(memory, automatic)
        drafts = [
            *make_drafts(memory, for_review),
            *make_drafts(memory, over_cap, MEMORY_FULL),
            *make_drafts(memory, absent, "the note is locked, a link or not checked out"),
        ]
        drafts += [
            draft
            for path, outcome in outcomes.items()
            for draft in draft_contradictions(memory, path, outcome.contradicts)
        ]
        proposed = memory.reviews.propose(drafts)
        paths = [
            *outcomes,
            *(memory.reviews.path_of(draft) for draft in proposed),
            *([REVIEWED] if proposed else []),
        ]
        commits = _commit(memory, paths, run)
    return LearnResult(
        added=tuple(change for outcome in outcomes.values() for change in outcome.added),
        superseded=sum(len(outcome.superseded) for outcome in outcomes.values()),
        drafts=tuple(draft.id for draft in proposed),
        commits=commits,
    )


def _read_if_allowed(memory: Memory, path: str) -> bytes | None:
    try:
        return read_note(memory, path)
    except UnsafePath:  # locked or a link: its changes become a draft
        return None


def _write_notes(
    memory: Memory, changes: Sequence[Change]
) -> tuple[dict[str, AppliedChanges], list[Change], list[Change]]:
    """The notes with their new lines, the changes over the line cap, and those for notes that cannot be read
    here."""
    outcomes: dict[str, AppliedChanges] = {}
    over_cap: list[Change] = []
    absent: list[Change] = []
    for path, note_changes in group_by_path(changes).items():
        try:
            outcome = _write_note(memory, path, note_changes)
        except (UnsafePath, NotCheckedOut):
            absent += note_changes
            continue
        if outcome is None:
            over_cap += note_changes
        else:
            outcomes[path] = outcome
    return outcomes, over_cap, absent


def group_by_path(changes: Iterable[Change]) -> dict[str, list[Change]]:
    """Group the changes by note, in their order."""
    grouped: dict[str, list[Change]] = {}
    for change in changes:
        grouped.setdefault(change.path, []).append(change)
    return grouped


def _write_note(memory: Memory, path: str, changes: Sequence[Change]) -> AppliedChanges | None:
    tree = NoteTree(memory.home.root)
    for _ in range(_MAX_ATTEMPTS):
        try:
            old: bytes | None = tree.read(path)
        except FileNotFoundError:
            require_checked_out(memory.home.root, path)
            old = None
        text = None if old is None else notes.decode(old)
        outcome = apply_changes(text, path, changes, supersede=memory.config.review.supersede == "auto")
        if (
            path == MEMORY
            and outcome.added
            and line_count(outcome.text) > memory.config.lifecycle.memory_line_cap
        ):
            return None
        if not outcome.added:
            return outcome
        try:
            tree.write(
                path, notes.encode(outcome.text), None if old is None else files.digest(old), tree.mode(path)
            )
        except ChangedOnDisk:
            continue
        return outcome
    raise ChangedOnDisk(path)


def make_drafts(memory: Memory, changes: Sequence[Change], reason: str = "") -> Iterator[Draft]:
    """One draft per conversation, category and trust."""

    def kind(change: Change) -> tuple[str, str, str]:
        return change.source.transcript, change.extractor.partition("/")[0], change.trust

    for (transcript, category, _), group in groupby(sorted(changes, key=kind), key=kind):
        lines = list(group)
        trust = lowest(change.trust for change in lines)
        yield Draft(
            id="",
            form="lines",
            category=category,
            policy=waiting_policy(policy_for_change(memory.config, lines[0])),
            reason=reason or _review_reason(memory, lines[0]),
            made=memory.moment().isoformat(timespec="seconds"),
            trust=trust,
            sources=(comment.source_name(transcript),),
            body=render_additions(
                Addition(line.path, line.section, format_line(line).text) for line in lines
            ),
        )


def _review_reason(memory: Memory, change: Change) -> str:
    reasons = {
        "other": "said by somebody who is not the owner",
        "tool": "said after a tool had told it, and tools are no owners",
        "web": "said after reading what strangers write",
    }
    if change.trust in reasons:
        return reasons[change.trust]
    category = change.extractor.partition("/")[0]
    return f"review.{category} is {policy_for_change(memory.config, change)}"


def draft_contradictions(memory: Memory, path: str, found: Iterable[tuple[str, Change]]) -> Iterator[Draft]:
    """Propose to mark lines that people wrote as superseded: only a person may do that."""
    found = list(found)
    filtered = find_blocking_filters(memory.git, [path] if found else [])
    for line, change in found:
        data = NoteTree(memory.home.root).read(path)
        old, new = notes.decode(data), comment.mark_superseded(line, change.day)
        if f"{line}\n" not in old:
            continue
        yield make_text_draft(
            memory,
            path,
            data,
            old.replace(f"{line}\n", f"{new}\n", 1),
            category="supersede",
            # The review log stores the reason, and the note's git filter does not apply to it.
            reason=f"contradicted on {change.day}" + (f": {change.text}" if not filtered else ""),
            sources=line_sources(change),
        )


def line_sources(change: Change) -> tuple[str, ...]:
    return (comment.source_name(change.source.transcript, change.source.number or None), *change.also)


def make_text_draft(
    memory: Memory,
    path: str,
    base: bytes | None,
    new: str,
    *,
    category: str,
    reason: str,
    sources: Sequence[str] = (),
    remarks: Sequence[str] = (),
    trust: str = "agent",
) -> Draft:
    """A draft that replaces the note's current text."""
    return Draft(
        id="",
        form="text",
        category=category,
        policy=waiting_policy(find_policy(memory.config, category, is_own=False, path=path)),
        reason=reason,
        made=memory.moment().isoformat(timespec="seconds"),
        trust=trust,  # type: ignore[arg-type]
        sources=tuple(sources),
        target=path,
        base=None if base is None else files.digest(base),
        blob="" if base is None else memory.git.blob_name(base),
        body=new,
        notes=tuple(remarks),
    )


def _commit(memory: Memory, paths: Sequence[str], run: LearnRun) -> tuple[str, ...]:
    if not paths or not memory.config.git.auto_commit:
        return ()
    name = os.path.basename(run.transcript).removesuffix(".md")
    message = f"memory: learned from {name[:60]}\n\nSession: {run.transcript}\n{learned_trailer(run)}\n"
    try:
        return memory.commit_paths(message, paths).commits
    except TacitError:
        return ()  # the lines are on disk, and the next commit of notes includes them


# ---------------------------------------------------------------- dry run


class LearnPreview(NamedTuple):
    changes: tuple[tuple[Change, Policy], ...]
    sessions: tuple[str, ...]
    failed: tuple[str, ...]


def preview_learning(memory: Memory) -> LearnPreview:
    """What would be learned now. Asks the model too, if one is configured."""
    previews: list[tuple[Change, Policy]] = []
    sessions: list[str] = []
    failed: list[str] = []
    by_note: dict[str, list[Change]] = {}
    names = load_known_names(memory)
    for candidate in find_pending(memory):
        try:
            heard = attribute_transcript(memory, candidate.transcript)
        except MergeConflict as error:
            failed.append(str(error))
            continue
        if heard is None:
            continue
        learned = learn(heard, names, load_extractors(candidate.extractors).extractors, memory.ask("extract"))
        sessions.append(candidate.transcript)
        failed += learned.failed.values()
        if learned.stopped:
            break
        try:
            for change in list(
                redirect_changes(memory, learned.changes, lambda path: _read_if_allowed(memory, path))
            ):
                by_note.setdefault(change.path, []).append(change)
        except MergeConflict as error:
            failed.append(str(error))
    for path, changes in by_note.items():
        old = _read_if_allowed(memory, path)
        outcome = apply_changes(None if old is None else notes.decode(old), path, changes)
        previews += [(change, policy_for_change(memory.config, change)) for change in outcome.added]
    return LearnPreview(tuple(previews), tuple(sessions), tuple(dict.fromkeys(failed)))

"""Conversations become lines in notes: once each, with their sources, and only where that may be.

What must stay true:
- a conversation that was learned from is not learned from again, and one that could not be is tried later;
- one whose answers were paid for and could not be used is left alone for a day, and those that failed
  before come after the others: neither is asked for without end nor keeps the rest waiting;
- a kill at any point and a second start give the same notes as no kill;
- what somebody changes meanwhile stays: lines are added to the note as it is then;
- words of strangers, and whatever a policy says, wait as drafts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from tacit.config import Policy
from tacit.errors import ChangedOnDisk, TacitError
from tacit.lifecycle.apply import MEMORY, Applied, applied, line_of, lines_of
from tacit.lifecycle.extractors.registry import chosen
from tacit.lifecycle.learn import learn
from tacit.memory.hearing import hear
from tacit.memory.names import known
from tacit.memory.placing import placed
from tacit.memory.policies import policy, policy_of, reviewed
from tacit.memory.reviewing import read_note
from tacit.model.changes import Change, lowest
from tacit.model.review import Draft
from tacit.store import files, transcripts
from tacit.store.home import CONVERSATIONS, REVIEWED
from tacit.store.listing import walk
from tacit.store.runs import Run, learned_trailer
from tacit.text import marks, notes
from tacit.text.proposals import Addition, body_of

if TYPE_CHECKING:
    from tacit.lifecycle.extractors.extractor import Extractor
    from tacit.memory.memory import Memory

_TRIES = 5  # somebody else may write to the same note
_LATER = timedelta(days=1)
FULL = "MEMORY.md is full: with these lines it would have more than lifecycle.memory_line_cap"


class Pending(NamedTuple):
    """A sealed conversation, and the extractors that have not read it yet."""

    transcript: str
    extractors: tuple[str, ...]
    failed: tuple[str, ...] = ()  # labels of those that tried and could not
    later: str = ""  # when they may try again


@dataclass(frozen=True, slots=True)
class Learnt:
    """What one pass did."""

    sessions: tuple[str, ...] = ()
    added: tuple[Change, ...] = ()
    superseded: int = 0
    drafts: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    waiting: int = 0  # conversations that are still to be learned from
    failed: tuple[str, ...] = ()  # why some of them could not be, each reason once
    stopped: bool = False  # no model is asked for a while, so the rest was not tried


def pending(memory: Memory) -> list[Pending]:
    """Oldest first: what is learned later may contradict what was learned before."""
    done = memory.runs.learned()
    names = tuple(dict.fromkeys(memory.config.lifecycle.extractors))
    found = []
    for path in sorted(path for path, _ in walk(str(memory.home.root), CONVERSATIONS)):
        read = {label.partition("/")[0] for label in done[path].extractors} if path in done else set()
        missing = tuple(name for name in names if name not in read)
        if missing and transcripts.is_sealed(memory.home.root / path):
            before = (done[path].failed, done[path].later) if path in done else ((), "")
            found.append(Pending(path, missing, *before))
    return found


def _to_try(found: Iterable[Pending], now: datetime) -> list[Pending]:
    due = [one for one in found if not one.later or datetime.fromisoformat(one.later) <= now]
    return sorted(due, key=lambda one: bool(one.failed))


def learn_pending(
    memory: Memory,
    *,
    most: int | None = None,
    tick: Callable[[int, int], None] = lambda done, total: None,
    is_over: Callable[[], bool] = lambda: False,
    again: bool = False,
) -> Learnt:
    """Learn from what was not learned from yet. One process at a time; `is_over` ends it between two
    conversations. `again`: also from what was put off to another day."""
    with files.locked(memory.home.private / "lifecycle.lock", 0.5):
        waiting = pending(memory)
        now_tried = (waiting if again else _to_try(waiting, memory.moment()))[:most]
        done = Learnt()
        for number, one in enumerate(now_tried):
            if is_over() or done.stopped:
                break
            done = _with(done, _learn_one(memory, one))
            tick(number + 1, len(now_tried))
        return replace(done, waiting=len(pending(memory)) if waiting else 0)


def _with(done: Learnt, more: Learnt) -> Learnt:
    return Learnt(
        (*done.sessions, *more.sessions),
        (*done.added, *more.added),
        done.superseded + more.superseded,
        (*done.drafts, *more.drafts),
        (*done.commits, *more.commits),
        failed=tuple(dict.fromkeys((*done.failed, *more.failed))),
        stopped=done.stopped or more.stopped,
    )


def _learn_one(memory: Memory, one: Pending) -> Learnt:
    extractors, broken = chosen(one.extractors)
    sha = files.digest((memory.home.root / one.transcript).read_bytes())
    heard = hear(memory, one.transcript)
    if heard is None:
        memory.runs.finish(Run(one.transcript, sha, _labels(extractors)), memory.moment())
        return Learnt()
    learned = learn(heard, known(memory), extractors, memory.ask("extract"))
    whys = tuple(dict.fromkeys((*learned.failed.values(), *map(str, broken))))
    labels = tuple(label for label in _labels(extractors) if label not in learned.failed)
    later = (memory.moment() + _LATER).isoformat(timespec="seconds") if learned.paid else ""
    run = Run(one.transcript, sha, labels, tuple(learned.failed), later, "; ".join(whys))
    done = keep(memory, learned.changes, run)
    # Else it is known already, and a day has many tries.
    if run.extractors or run.failed != one.failed or later:
        memory.runs.finish(run, memory.moment())
    sessions = (one.transcript,) if run.extractors else ()
    return replace(done, sessions=sessions, failed=whys, stopped=learned.stopped)


def _labels(extractors: Iterable[Extractor]) -> tuple[str, ...]:
    return tuple(extractor.label for extractor in extractors)


# ---------------------------------------------------------------- what becomes of changes


def keep(memory: Memory, changes: Sequence[Change], run: Run) -> Learnt:
    """What may happen by itself happens, in one commit; the rest waits as drafts."""
    with files.locked(memory.home.lock):
        changes = list(placed(memory, changes, lambda path: read_note(memory, path)))
        own = [change for change in changes if policy_of(memory.config, change) == "auto"]
        others = [change for change in changes if policy_of(memory.config, change) != "auto"]
        if memory.config.git.auto_commit:
            memory.commit_theirs(list(dict.fromkeys(change.path for change in own)))
        done, full = _written(memory, own)
        drafts = [*drafts_of(memory, others), *drafts_of(memory, full, FULL)]
        drafts += [
            draft for path, one in done.items() for draft in contradictions(memory, path, one.contradicts)
        ]
        kept = memory.reviews.propose(drafts)
        paths = [*done, *(memory.reviews.path_of(draft) for draft in kept), *([REVIEWED] if kept else [])]
        commits = _commit(memory, paths, run)
    return Learnt(
        added=tuple(change for one in done.values() for change in one.added),
        superseded=sum(len(one.superseded) for one in done.values()),
        drafts=tuple(draft.id for draft in kept),
        commits=commits,
    )


def _written(memory: Memory, changes: Sequence[Change]) -> tuple[dict[str, Applied], list[Change]]:
    """The notes with their new lines, and what had no room."""
    done: dict[str, Applied] = {}
    full: list[Change] = []
    for path, mine in by_path(changes).items():
        made = _write(memory, path, mine)
        if made is None:
            full += mine
        else:
            done[path] = made
    return done, full


def by_path(changes: Iterable[Change]) -> dict[str, list[Change]]:
    """The changes of each note, in their order."""
    found: dict[str, list[Change]] = {}
    for change in changes:
        found.setdefault(change.path, []).append(change)
    return found


def _write(memory: Memory, path: str, changes: Sequence[Change]) -> Applied | None:
    tree = files.Tree(memory.home.root)
    for _ in range(_TRIES):
        try:
            old: bytes | None = tree.read(path)
        except FileNotFoundError:
            old = None
        text = None if old is None else notes.decode(old)
        made = applied(text, path, changes, supersede=memory.config.review.supersede == "auto")
        if path == MEMORY and made.added and lines_of(made.text) > memory.config.lifecycle.memory_line_cap:
            return None
        if not made.added:
            return made
        try:
            tree.write(
                path, notes.encode(made.text), None if old is None else files.digest(old), tree.mode(path)
            )
        except ChangedOnDisk:
            continue
        return made
    raise ChangedOnDisk(path)


def drafts_of(memory: Memory, changes: Sequence[Change], reason: str = "") -> Iterator[Draft]:
    """One draft for what one conversation gave of one category and one trust."""

    def kind(change: Change) -> tuple[str, str, str]:
        return change.source.transcript, change.extractor.partition("/")[0], change.trust

    for (transcript, category, _), some in groupby(sorted(changes, key=kind), key=kind):
        lines = list(some)
        trust = lowest(change.trust for change in lines)
        yield Draft(
            id="",
            form="lines",
            category=category,
            policy=reviewed(policy_of(memory.config, lines[0])),
            reason=reason or _reason(memory, lines[0]),
            made=memory.moment().isoformat(timespec="seconds"),
            trust=trust,
            sources=(marks.source_of(transcript),),
            body=body_of(Addition(line.path, line.section, line_of(line).text) for line in lines),
        )


def _reason(memory: Memory, change: Change) -> str:
    told = {
        "other": "said by somebody who is not the owner",
        "tool": "said after a tool had told it, and tools are no owners",
        "web": "said after reading what strangers write",
    }
    if change.trust in told:
        return told[change.trust]
    category = change.extractor.partition("/")[0]
    return f"review.{category} is {policy_of(memory.config, change)}"


def contradictions(memory: Memory, path: str, found: Iterable[tuple[str, Change]]) -> Iterator[Draft]:
    """A line that a person wrote is only ever marked as superseded by a person."""
    for line, change in found:
        now = files.Tree(memory.home.root).read(path)
        old, new = notes.decode(now), marks.superseded(line, change.day)
        if f"{line}\n" not in old:
            continue
        yield text_draft(
            memory,
            path,
            now,
            old.replace(f"{line}\n", f"{new}\n", 1),
            category="supersede",
            reason=f"contradicted on {change.day}: {change.text}",
            sources=line_sources(change),
        )


def line_sources(change: Change) -> tuple[str, ...]:
    return (marks.source_of(change.source.transcript, change.source.number or None), *change.also)


def text_draft(
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
    """A draft that replaces a note as it is now."""
    return Draft(
        id="",
        form="text",
        category=category,
        policy=reviewed(policy(memory.config, category, is_own=False, path=path)),
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


def _commit(memory: Memory, paths: Sequence[str], run: Run) -> tuple[str, ...]:
    if not paths or not memory.config.git.auto_commit:
        return ()
    name = os.path.basename(run.transcript).removesuffix(".md")
    message = f"memory: learned from {name[:60]}\n\nSession: {run.transcript}\n{learned_trailer(run)}\n"
    try:
        return memory.commit_paths(message, paths).commits
    except TacitError:
        return ()  # they are on disk, and the next commit of notes takes them along


# ---------------------------------------------------------------- without doing it


class Would(NamedTuple):
    changes: tuple[tuple[Change, Policy], ...]
    sessions: tuple[str, ...]
    failed: tuple[str, ...]


def would_learn(memory: Memory) -> Would:
    """What would be learned now. A model is asked all the same, if one is configured."""
    found: list[tuple[Change, Policy]] = []
    sessions: list[str] = []
    failed: list[str] = []
    seen: dict[str, list[Change]] = {}
    names = known(memory)
    for one in pending(memory):
        heard = hear(memory, one.transcript)
        if heard is None:
            continue
        learned = learn(heard, names, chosen(one.extractors).extractors, memory.ask("extract"))
        sessions.append(one.transcript)
        failed += learned.failed.values()
        if learned.stopped:
            break
        for change in placed(memory, learned.changes, lambda path: read_note(memory, path)):
            seen.setdefault(change.path, []).append(change)
    for path, changes in seen.items():
        old = read_note(memory, path)
        made = applied(None if old is None else notes.decode(old), path, changes)
        found += [(change, policy_of(memory.config, change)) for change in made.added]
    return Would(tuple(found), tuple(sessions), tuple(dict.fromkeys(failed)))

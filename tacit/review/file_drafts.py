"""Drafts of files that people curate: proposed, approved, applied, undone.

What must stay true:
- only a draft that was approved, exactly as it is, by a person with permission changes its target;
- a target that changed since the draft was made is never overwritten, neither by applying nor by undoing;
- the replaced text is backed up first, so that one command restores it;
- the log, `approvals.jsonl`, is append-only, and is on disk before any result is reported.

The log and the drafts are in the folder that they are about and not in a home: they belong to the owner of
the files, and outlive tacit. The log is also the lock: hold it to work on drafts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_args

from tacit.errors import DraftRefused
from tacit.git.conflicts import NoteTree
from tacit.git.index import require_checked_out
from tacit.git.jsonl import JsonlLog
from tacit.home.files import digest
from tacit.review.file_drafts_model import Artefact, DraftEventKind, DraftStatus, Event
from tacit.text.words import fold

LOG_FILE = "approvals.jsonl"
BACKUP_FOLDER = "backups"
_EVENT_FIELDS = {part.name for part in fields(Event)}

RenderTarget: TypeAlias = Callable[
    [bytes | None, bytes], bytes
]  # the target as it is, the draft → the target as it will be


class RefusalHints(NamedTuple):
    """The commands that a refusal suggests."""

    draft: str
    approve: str
    allow: str


class FileDrafts:
    """The drafts below `folder` in `root`."""

    def __init__(self, root: Path, folder: str, now: Callable[[], datetime]) -> None:
        self.root, self._folder, self._now = root, folder, now
        self._tree = NoteTree(root)
        self.record = JsonlLog(root, f"{folder}/{LOG_FILE}")

    def events(self, artefact: Artefact | None = None) -> list[Event]:
        """All readable events, oldest first."""
        events = [event for event in map(_parse_event, self.record.lines()) if event is not None]
        return [event for event in events if artefact is None or event.artefact == artefact.name]

    def text(self, artefact: Artefact) -> bytes | None:
        return self._read(artefact.draft)

    def target(self, artefact: Artefact) -> bytes | None:
        return self._read(artefact.target)

    def standing(self, artefact: Artefact, allowed: Collection[str], advice: RefusalHints) -> DraftStatus:
        """The state of the last draft, and what is missing to apply it."""
        snapshot = _Snapshot(
            artefact, _digest_or_none(self.text(artefact)), _digest_or_none(self.target(artefact))
        )
        return _find_standing(self.events(artefact), snapshot, allowed, advice)

    # Proposing

    def propose(
        self, artefact: Artefact, text: bytes, base: str | None, notes: Mapping[str, Any]
    ) -> tuple[Event, str]:
        """Store a draft that was made from the target with the hash `base`. An older draft that was edited is
        backed up; returns where."""
        with self._lock_record() as record:
            backup = self._back_up_edited(artefact, text)
            self._tree.put(artefact.draft, text)
            event = self._make_event("drafted", artefact, draft=digest(text), base=base, notes=notes)
            record(event)
        return event, backup

    def _back_up_edited(self, artefact: Artefact, text: bytes) -> str:
        old = self.text(artefact)
        written = {event.draft for event in self.events(artefact) if event.what == "drafted"}
        if old is None or old == text or digest(old) in written:
            return ""
        return self._back_up(artefact.draft, old)

    # Approving

    def approve(
        self,
        artefact: Artefact,
        by: str,
        allowed: Collection[str],
        advice: RefusalHints,
        notes: Mapping[str, Any],
    ) -> Event:
        """Approve the draft as it is now."""
        with self._lock_record() as record:
            standing = self.standing(artefact, allowed, advice)
            refusal = (
                f"{standing.why} {standing.todo}" if standing.state in ("none", "stale", "promoted") else ""
            )
            if not refusal and not is_allowed(by, allowed):
                refusal = _explain_not_allowed(by, artefact, advice)
            if refusal:
                raise self._record_refusal(record, artefact, by, refusal)
            text, target = self.text(artefact), self.target(artefact)
            event = self._make_event(
                "approved",
                artefact,
                by=by,
                draft=_digest_or_none(text),
                base=_digest_or_none(target),
                notes=notes,
            )
            record(event)
        return event

    # Promoting

    def promote(
        self, artefact: Artefact, by: str, allowed: Collection[str], advice: RefusalHints, make: RenderTarget
    ) -> Event:
        """Apply an approved draft to its target. `make` may refuse by raising DraftRefused."""
        with self._lock_record() as record:
            standing = self.standing(artefact, allowed, advice)
            draft, old = self.text(artefact), self.target(artefact)
            if standing.state != "approved" or draft is None:
                raise self._record_refusal(record, artefact, by, f"{standing.why} {standing.todo}")
            try:
                new = make(old, draft)
            except DraftRefused as error:
                raise self._record_refusal(record, artefact, by, str(error)) from None
            if old is None:
                require_checked_out(self.root, artefact.target)
            backup = "" if old is None else self._back_up(artefact.target, old)
            # Logged before and after: if the power fails in between, the target shows whether it was written.
            details = {"by": by, "draft": digest(draft), "base": _digest_or_none(old), "result": digest(new)}
            record(self._make_event("promoting", artefact, backup=backup, **details))
            self._tree.write(artefact.target, new, _digest_or_none(old), self._tree.mode(artefact.target))
            event = self._make_event("promoted", artefact, backup=backup, **details)
            record(event)
        return event

    def undo(self, artefact: Artefact, by: str) -> Event:
        """Restore what the last applied draft replaced, unless the target was edited since."""
        with self._lock_record() as record:
            target = self.target(artefact)
            last = _last_promotion(self.events(artefact), _digest_or_none(target))
            if last is None:
                raise self._record_refusal(
                    record,
                    artefact,
                    by,
                    f"No draft for {artefact.target} was promoted, so none can be undone.",
                )
            if _digest_or_none(target) != last.result:
                raise self._record_refusal(record, artefact, by, _explain_edited(artefact, last))
            self._restore_target(record, artefact, last, by)
            event = self._make_event("undone", artefact, by=by, base=last.result, result=last.base)
            record(event)
        return event

    def _restore_target(
        self, record: Callable[[Event], None], artefact: Artefact, last: Event, person: str
    ) -> None:
        assert last.result is not None
        if last.base is None:
            self._tree.remove(artefact.target, last.result)
            return
        old = self._read(last.backup)
        if old is None or digest(old) != last.base:
            why = f"{last.backup} is not what was there before, so {artefact.target} was left as it is."
            raise self._record_refusal(record, artefact, person, f"{why} Look for it in your own backups.")
        self._tree.write(artefact.target, old, last.result, self._tree.mode(artefact.target))

    # Restoring

    def is_ours(self, artefacts: Sequence[Artefact], text: bytes | None) -> bool:
        """Whether this text is the result of a recorded event of these drafts."""
        known = {event.result for artefact in artefacts for event in self.events(artefact)}
        return text is not None and digest(text) in known

    def restore(
        self, artefacts: Sequence[Artefact], old: bytes | None, by: str, *, force: bool = False
    ) -> str:
        """Restore the target to its state before all of these drafts; None: there was no such file. Returns
        where the previous text is backed up; empty if there was none. Refused if somebody else wrote it last.
        """
        with self._lock_record() as record:
            first, current = artefacts[0], self.target(artefacts[0])
            if current != old and not force and not self.is_ours(artefacts, current):
                why = f"{first.target} was changed since by somebody else, so it was not overwritten."
                raise self._record_refusal(record, first, by, why)
            promoted = [
                artefact
                for artefact in artefacts
                if _last_promotion(self.events(artefact), _digest_or_none(current))
            ]
            backup = "" if current is None or current == old else self._back_up(first.target, current)
            self._write_target(first.target, old, current)
            for artefact in promoted or artefacts[:1]:
                record(
                    self._make_event(
                        "undone",
                        artefact,
                        by=by,
                        base=_digest_or_none(current),
                        result=_digest_or_none(old),
                        backup=backup,
                    )
                )
        return backup

    def _write_target(self, path: str, new: bytes | None, current: bytes | None) -> None:
        if new == current:
            return
        if new is not None:
            self._tree.write(path, new, _digest_or_none(current), self._tree.mode(path))
        elif current is not None:
            self._tree.remove(path, digest(current))

    def change(self, artefact: Artefact, old: bytes, new: bytes, by: str, why: str) -> Event:
        """Change a target at a person's explicit request, without a draft. The old text is backed up."""
        with self._lock_record() as record:
            backup = self._back_up(artefact.target, old)
            self._write_target(artefact.target, new, old)
            details = {"base": digest(old), "result": digest(new), "backup": backup}
            event = self._make_event("changed", artefact, by=by, why=why, **details)
            record(event)
        return event

    # The record

    @contextmanager
    def _lock_record(self) -> Iterator[Callable[[Event], None]]:
        with self.record.adding() as add:
            yield lambda event: add(_to_dict(event))

    def _record_refusal(
        self, record: Callable[[Event], None], artefact: Artefact, person: str, why: str
    ) -> DraftRefused:
        hashes = {
            "draft": _digest_or_none(self.text(artefact)),
            "base": _digest_or_none(self.target(artefact)),
        }
        record(self._make_event("refused", artefact, by=person, why=why, **hashes))
        return DraftRefused(why)

    def _make_event(self, kind: DraftEventKind, artefact: Artefact, **details: Any) -> Event:
        return Event(self._now().isoformat(timespec="seconds"), kind, artefact.name, **details)

    # Files

    def _read(self, path: str) -> bytes | None:
        try:
            return self._tree.read(path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _back_up(self, path: str, data: bytes) -> str:
        """Back up a text under a name with its hash: a text is stored once, and no copy replaces another."""
        backup = f"{self._folder}/{BACKUP_FOLDER}/{path.rpartition('/')[2]}.{digest(data)[:12]}.bak"
        if self._read(backup) != data:
            self._tree.put(backup, data)
        return backup


def is_allowed(by: str, allowed: Collection[str]) -> bool:
    return bool(by.strip()) and fold(by.strip()) in {fold(name) for name in allowed}


# The state of a draft


class _Snapshot(NamedTuple):
    artefact: Artefact
    draft: str | None
    target: str | None


def _find_standing(
    events: Sequence[Event], snapshot: _Snapshot, allowed: Collection[str], advice: RefusalHints
) -> DraftStatus:
    index = max((index for index, event in enumerate(events) if event.what == "drafted"), default=None)
    if index is None or snapshot.draft is None:
        return DraftStatus(
            "none", f"There is no draft for {snapshot.artefact.target}.", f"Make one: {advice.draft}"
        )
    drafted, later = events[index], events[index + 1 :]
    promoted = _last_promotion(later, snapshot.target)
    if promoted is not None:
        why = f"This draft was promoted on {promoted.at[:10]}."
        return DraftStatus("promoted", why, f"For a new one: {advice.draft}", drafted, promoted=promoted)
    if snapshot.target != drafted.base:
        why = f"{snapshot.artefact.target} changed since the draft was made, so nothing was overwritten."
        todo = f"Draft it anew: {advice.draft}; to keep the words of this draft: {advice.draft} --as-is"
        return DraftStatus("stale", why, todo, drafted)
    return _find_approval(drafted, later, snapshot, allowed, advice)


def _find_approval(
    drafted: Event,
    later: Sequence[Event],
    snapshot: _Snapshot,
    allowed: Collection[str],
    advice: RefusalHints,
) -> DraftStatus:
    undone = max((at for at, event in enumerate(later) if event.what == "undone"), default=-1)
    approvals = [event for event in later[undone + 1 :] if event.what == "approved"]
    if not approvals:
        why = f"Nobody has approved {snapshot.artefact.draft} yet."
        return DraftStatus("waiting", why, f"Read it, then: {advice.approve}", drafted)
    last = approvals[-1]
    if last.draft != snapshot.draft:
        why = f"{snapshot.artefact.draft} changed since {last.by} approved it."
        return DraftStatus("changed", why, f"Read it again, then: {advice.approve}", drafted, last)
    if not is_allowed(last.by, allowed):
        return DraftStatus(
            "not allowed", _explain_not_allowed(last.by, snapshot.artefact, advice), "", drafted, last
        )
    return DraftStatus("approved", f"{last.by} approved it on {last.at[:10]}.", "", drafted, last)


def _last_promotion(events: Sequence[Event], target: str | None) -> Event | None:
    """The last promotion that really happened and was not undone. An unfinished one happened if the target is
    what it would have produced."""
    for event in reversed(events):
        if event.what == "undone":
            return None
        if event.what == "promoted" or (event.what == "promoting" and event.result == target):
            return event
    return None


def _explain_not_allowed(person: str, artefact: Artefact, advice: RefusalHints) -> str:
    subject = f"{person!r} may not approve" if person.strip() else "Somebody has to say who approves"
    return f"{subject} what changes {artefact.target}. {advice.allow}"


def _explain_edited(artefact: Artefact, last: Event) -> str:
    backup_hint = (
        f"The text from before is in {last.backup}." if last.backup else "Before there was no such file."
    )
    return (
        f"{artefact.target} changed since the draft was promoted, so it was not overwritten. {backup_hint} "
        "Take from it by hand what you want back."
    )


# Lines


def _to_dict(event: Event) -> dict[str, Any]:
    """The fields that are set; None stays, because it means that there was no file."""
    return {name: value for name, value in asdict(event).items() if value not in ("", {})}


def _parse_event(entry: Mapping[str, Any]) -> Event | None:
    try:
        event = Event(**{name: value for name, value in entry.items() if name in _EVENT_FIELDS})
    except TypeError:
        return None
    return event if event.what in get_args(DraftEventKind) and isinstance(event.at, str) else None


def _digest_or_none(data: bytes | None) -> str | None:
    return None if data is None else digest(data)

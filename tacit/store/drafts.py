"""Drafts of files that people curate: proposed, approved by somebody, promoted, undone.

What must stay true:
- nothing changes its target but a draft that somebody who may do so approved, word for word as it stands;
- a target that changed since the draft was made is never overwritten, neither by promoting nor by undoing;
- what a promotion replaces is kept beside the record first, so that one command brings it back;
- the record, `approvals.jsonl`, is only ever added to, and is on disk before anybody is told.

The record and the drafts lie in the folder that they are about and not in a home: they belong to whoever owns
the files, and outlive tacit. The record is also the lock: who works on drafts holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_args

from tacit.errors import DraftRefused
from tacit.model.drafts import Artefact, Event, Standing, What
from tacit.store.files import Tree, digest
from tacit.store.record import Record
from tacit.text.words import fold

RECORD = "approvals.jsonl"
BACKUPS = "backups"
_NAMES = {part.name for part in fields(Event)}

Make: TypeAlias = Callable[
    [bytes | None, bytes], bytes
]  # the target as it is, the draft → the target as it will be


class Advice(NamedTuple):
    """What somebody would type, which a refusal ends with."""

    draft: str
    approve: str
    allow: str


class Drafts:
    """The drafts of one folder: those below `folder` in `root`."""

    def __init__(self, root: Path, folder: str, now: Callable[[], datetime]) -> None:
        self.root, self._folder, self._now = root, folder, now
        self._tree = Tree(root)
        self.record = Record(root, f"{folder}/{RECORD}")

    def events(self, artefact: Artefact | None = None) -> list[Event]:
        """All that can be read, oldest first."""
        found = [event for event in map(_event, self.record.lines()) if event is not None]
        return [one for one in found if artefact is None or one.artefact == artefact.name]

    def text(self, artefact: Artefact) -> bytes | None:
        return self._read(artefact.draft)

    def target(self, artefact: Artefact) -> bytes | None:
        return self._read(artefact.target)

    def standing(self, artefact: Artefact, allowed: Collection[str], advice: Advice) -> Standing:
        """What has become of the last draft, and what is missing for it to be promoted."""
        now = _Now(artefact, _hash(self.text(artefact)), _hash(self.target(artefact)))
        return _standing(self.events(artefact), now, allowed, advice)

    # Proposing

    def propose(
        self, artefact: Artefact, text: bytes, base: str | None, notes: Mapping[str, Any]
    ) -> tuple[Event, str]:
        """Keep a draft that was made from the target with the hash `base`. An older draft that somebody has
        worked on is kept; where is told."""
        with self._recording() as record:
            kept = self._keep_edited(artefact, text)
            self._tree.put(artefact.draft, text)
            event = self._event("drafted", artefact, draft=digest(text), base=base, notes=notes)
            record(event)
        return event, kept

    def _keep_edited(self, artefact: Artefact, text: bytes) -> str:
        old = self.text(artefact)
        written = {event.draft for event in self.events(artefact) if event.what == "drafted"}
        if old is None or old == text or digest(old) in written:
            return ""
        return self._back_up(artefact.draft, old)

    # Approving

    def approve(
        self, artefact: Artefact, by: str, allowed: Collection[str], advice: Advice, notes: Mapping[str, Any]
    ) -> Event:
        """Somebody says yes to the draft as it stands now."""
        with self._recording() as record:
            standing = self.standing(artefact, allowed, advice)
            why = f"{standing.why} {standing.todo}" if standing.state in ("none", "stale", "promoted") else ""
            if not why and not is_allowed(by, allowed):
                why = _not_allowed(by, artefact, advice)
            if why:
                raise self._refused(record, artefact, by, why)
            text, target = self.text(artefact), self.target(artefact)
            event = self._event(
                "approved", artefact, by=by, draft=_hash(text), base=_hash(target), notes=notes
            )
            record(event)
        return event

    # Promoting

    def promote(
        self, artefact: Artefact, by: str, allowed: Collection[str], advice: Advice, make: Make
    ) -> Event:
        """Bring an approved draft into its target. `make` may refuse too, by DraftRefused."""
        with self._recording() as record:
            standing = self.standing(artefact, allowed, advice)
            draft, old = self.text(artefact), self.target(artefact)
            if standing.state != "approved" or draft is None:
                raise self._refused(record, artefact, by, f"{standing.why} {standing.todo}")
            try:
                new = make(old, draft)
            except DraftRefused as error:
                raise self._refused(record, artefact, by, str(error)) from None
            backup = "" if old is None else self._back_up(artefact.target, old)
            # Said before and after: should the power fail between, the target itself tells which it was.
            said = {"by": by, "draft": digest(draft), "base": _hash(old), "result": digest(new)}
            record(self._event("promoting", artefact, backup=backup, **said))
            self._tree.write(artefact.target, new, _hash(old), self._tree.mode(artefact.target))
            event = self._event("promoted", artefact, backup=backup, **said)
            record(event)
        return event

    def undo(self, artefact: Artefact, by: str) -> Event:
        """Bring back what the last promotion replaced, unless somebody has worked on the target since."""
        with self._recording() as record:
            target = self.target(artefact)
            last = _promotion(self.events(artefact), _hash(target))
            if last is None:
                raise self._refused(
                    record,
                    artefact,
                    by,
                    f"No draft for {artefact.target} was promoted, so none can be undone.",
                )
            if _hash(target) != last.result:
                raise self._refused(record, artefact, by, _edited(artefact, last))
            self._bring_back(record, artefact, last, by)
            event = self._event("undone", artefact, by=by, base=last.result, result=last.base)
            record(event)
        return event

    def _bring_back(self, record: Callable[[Event], None], artefact: Artefact, last: Event, by: str) -> None:
        assert last.result is not None
        if last.base is None:
            self._tree.remove(artefact.target, last.result)
            return
        old = self._read(last.backup)
        if old is None or digest(old) != last.base:
            why = f"{last.backup} is not what was there before, so {artefact.target} was left as it is."
            raise self._refused(record, artefact, by, f"{why} Look for it in your own backups.")
        self._tree.write(artefact.target, old, last.result, self._tree.mode(artefact.target))

    # Going back as a whole

    def is_ours(self, artefacts: Sequence[Artefact], text: bytes | None) -> bool:
        """Whether that is how the target of these looked after something that is recorded here."""
        known = {event.result for artefact in artefacts for event in self.events(artefact)}
        return text is not None and digest(text) in known

    def restore(
        self, artefacts: Sequence[Artefact], old: bytes | None, by: str, *, force: bool = False
    ) -> str:
        """The target of these as it was before all of them; None: there was no such file. Where the text is
        kept that was there until now; empty: there was none. Refused where somebody else wrote it last."""
        with self._recording() as record:
            first, now = artefacts[0], self.target(artefacts[0])
            if now != old and not force and not self.is_ours(artefacts, now):
                why = f"{first.target} was changed since by somebody else, so it was not overwritten."
                raise self._refused(record, first, by, why)
            standing = [one for one in artefacts if _promotion(self.events(one), _hash(now))]
            backup = "" if now is None or now == old else self._back_up(first.target, now)
            self._put(first.target, old, now)
            for one in standing or artefacts[:1]:
                record(self._event("undone", one, by=by, base=_hash(now), result=_hash(old), backup=backup))
        return backup

    def _put(self, path: str, new: bytes | None, now: bytes | None) -> None:
        if new == now:
            return
        if new is not None:
            self._tree.write(path, new, _hash(now), self._tree.mode(path))
        elif now is not None:
            self._tree.remove(path, digest(now))

    def change(self, artefact: Artefact, old: bytes, new: bytes, by: str, why: str) -> Event:
        """A target changed as a person asked for in so many words, without a draft. What it was is kept."""
        with self._recording() as record:
            backup = self._back_up(artefact.target, old)
            self._put(artefact.target, new, old)
            said = {"base": digest(old), "result": digest(new), "backup": backup}
            event = self._event("changed", artefact, by=by, why=why, **said)
            record(event)
        return event

    # The record

    @contextmanager
    def _recording(self) -> Iterator[Callable[[Event], None]]:
        with self.record.adding() as add:
            yield lambda event: add(_plain(event))

    def _refused(
        self, record: Callable[[Event], None], artefact: Artefact, by: str, why: str
    ) -> DraftRefused:
        now = {"draft": _hash(self.text(artefact)), "base": _hash(self.target(artefact))}
        record(self._event("refused", artefact, by=by, why=why, **now))
        return DraftRefused(why)

    def _event(self, what: What, artefact: Artefact, **said: Any) -> Event:
        return Event(self._now().isoformat(timespec="seconds"), what, artefact.name, **said)

    # Files

    def _read(self, path: str) -> bytes | None:
        try:
            return self._tree.read(path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _back_up(self, path: str, data: bytes) -> str:
        """Named by what is in it: the same text is kept once, and no copy ever takes another's place."""
        kept = f"{self._folder}/{BACKUPS}/{path.rpartition('/')[2]}.{digest(data)[:12]}.bak"
        if self._read(kept) != data:
            self._tree.put(kept, data)
        return kept


def is_allowed(by: str, allowed: Collection[str]) -> bool:
    return bool(by.strip()) and fold(by.strip()) in {fold(name) for name in allowed}


# What has become of a draft


class _Now(NamedTuple):
    artefact: Artefact
    draft: str | None
    target: str | None


def _standing(events: Sequence[Event], now: _Now, allowed: Collection[str], advice: Advice) -> Standing:
    at = max((at for at, event in enumerate(events) if event.what == "drafted"), default=None)
    if at is None or now.draft is None:
        return Standing("none", f"There is no draft for {now.artefact.target}.", f"Make one: {advice.draft}")
    drafted, since = events[at], events[at + 1 :]
    promoted = _promotion(since, now.target)
    if promoted is not None:
        why = f"This draft was promoted on {promoted.at[:10]}."
        return Standing("promoted", why, f"For a new one: {advice.draft}", drafted, promoted=promoted)
    if now.target != drafted.base:
        why = f"{now.artefact.target} changed since the draft was made, so nothing was overwritten."
        todo = f"Draft it anew: {advice.draft}; to keep the words of this draft: {advice.draft} --as-is"
        return Standing("stale", why, todo, drafted)
    return _approval(drafted, since, now, allowed, advice)


def _approval(
    drafted: Event, since: Sequence[Event], now: _Now, allowed: Collection[str], advice: Advice
) -> Standing:
    undone = max((at for at, event in enumerate(since) if event.what == "undone"), default=-1)
    approvals = [event for event in since[undone + 1 :] if event.what == "approved"]
    if not approvals:
        why = f"Nobody has approved {now.artefact.draft} yet."
        return Standing("waiting", why, f"Read it, then: {advice.approve}", drafted)
    last = approvals[-1]
    if last.draft != now.draft:
        why = f"{now.artefact.draft} changed since {last.by} approved it."
        return Standing("changed", why, f"Read it again, then: {advice.approve}", drafted, last)
    if not is_allowed(last.by, allowed):
        return Standing("not allowed", _not_allowed(last.by, now.artefact, advice), "", drafted, last)
    return Standing("approved", f"{last.by} approved it on {last.at[:10]}.", "", drafted, last)


def _promotion(events: Sequence[Event], target: str | None) -> Event | None:
    """The last promotion that really happened and was not undone. One that was only begun happened if the
    target is what it would have made."""
    for event in reversed(events):
        if event.what == "undone":
            return None
        if event.what == "promoted" or (event.what == "promoting" and event.result == target):
            return event
    return None


def _not_allowed(by: str, artefact: Artefact, advice: Advice) -> str:
    who = f"{by!r} may not approve" if by.strip() else "Somebody has to say who approves"
    return f"{who} what changes {artefact.target}. {advice.allow}"


def _edited(artefact: Artefact, last: Event) -> str:
    kept = f"The text from before is in {last.backup}." if last.backup else "Before there was no such file."
    return (
        f"{artefact.target} changed since the draft was promoted, so it was not overwritten. {kept} "
        "Take from it by hand what you want back."
    )


# Lines


def _plain(event: Event) -> dict[str, Any]:
    """Only what says something; a hash is None where there was no file, which says something too."""
    return {name: value for name, value in asdict(event).items() if value not in ("", {})}


def _event(said: Mapping[str, Any]) -> Event | None:
    try:
        event = Event(**{name: value for name, value in said.items() if name in _NAMES})
    except TypeError:
        return None
    return event if event.what in get_args(What) and isinstance(event.at, str) else None


def _hash(data: bytes | None) -> str | None:
    return None if data is None else digest(data)

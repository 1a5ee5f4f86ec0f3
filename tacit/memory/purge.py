"""Remove what was derived from one origin, and nothing else.

    a session key or the beginning of one, a session id, a transcript    all that was said there
    tool:NAME                  what this tool gave back, and what the agent said in answer or repeated
    url:TEXT, web:DOMAIN       the same for tools whose call or answer has this text, or an address there

What must stay true:
- transcripts stay as they are; raw/purged.jsonl says which of their records count no more, and is on disk
  before anything goes, so that nothing comes back by a search, by learning or by a rebuild;
- a line goes if its mark names such a record, also among others, since it was made from it. A line that
  somebody changed since is that person's: it goes only if they say so. What such a line struck out holds
  again;
- every other byte stays, what somebody has not committed yet too, and the commit holds the purge alone;
- cut short anywhere and done again, it is done.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.errors import Busy, ChangedOnDisk, StoreError, UsageError
from tacit.lifecycle.apply import held_again
from tacit.lifecycle.hearing import derived
from tacit.memory.hearing import listening
from tacit.model.changes import Change as Proposed
from tacit.model.changes import ChangeSet
from tacit.model.turns import ToolCall, Transcript
from tacit.store import files, generated, proposals, transcripts
from tacit.store.committer import Committer
from tacit.store.forgetting.sessions import sessions_of
from tacit.store.generated import ARCHIVED, FOLDERS, Marked
from tacit.store.git import Change, Planned
from tacit.store.home import CONVERSATIONS, PURGED
from tacit.store.purged import add, purged
from tacit.text import escape, marks, notes

if TYPE_CHECKING:
    from tacit.memory.memory import Memory

_TRIES = 5  # somebody else may write to the same note
_SHORTEST = 4  # characters of url:TEXT
_DOMAIN = re.compile(r"[\w-]+(?:\.[\w-]+)+")
_STEM = re.compile(r"\d{4}/\d\d/\d\d/[^\s#,<>]+")

Sources = Mapping[str, frozenset[int] | None]  # of transcripts, by stem, which records; None: all of it


@dataclass(frozen=True, slots=True)
class Purge:
    """What goes with an origin, or went."""

    origin: str
    sources: tuple[str, ...]  # as marks name them
    lines: tuple[Marked, ...]  # of notes and drafts
    edited: tuple[Marked, ...]  # that somebody changed since: they stay, unless asked for
    notes: tuple[str, ...]  # that tacit made, and of which nothing is left
    proposals: int  # changes that waited
    is_named: bool  # it was purged before
    commit: str = ""

    @property
    def is_empty(self) -> bool:
        return not self.sources


def look(memory: Memory, origin: str, *, edited: bool = False) -> Purge:
    """What would go. `edited`: lines that somebody changed since, too."""
    return _Purging(memory, origin, edited=edited).seen()


def carry_out(memory: Memory, origin: str, *, by: str, why: str = "", edited: bool = False) -> Purge:
    committer = Committer(memory.home, memory.git, memory.moment)
    with files.locked(memory.home.lock), files.explained("purge"):
        if waiting := committer.waits_for():
            raise Busy(f"Nothing was purged: {waiting}.")
        purging_now = _Purging(memory, origin, edited=edited)
        seen = purging_now.seen()
        if seen.is_empty:
            return seen
        commit = purging_now.carry_out(committer, seen, by, why)
    return _done(seen, commit)


def _done(seen: Purge, commit: str) -> Purge:
    values = {name: getattr(seen, name) for name in Purge.__dataclass_fields__}
    return Purge(**{**values, "commit": commit})


class _Purging:
    def __init__(self, memory: Memory, origin: str, *, edited: bool) -> None:
        self._memory, self._home, self._git = memory, memory.home, memory.git
        self.origin, self._with_edited = origin.strip(), edited
        self._sources = dict(_sources(memory, self.origin))
        self._tree = files.Tree(memory.home.root)

    def seen(self) -> Purge:
        before = purged(self._home.root).sources
        sources = tuple(sorted(_named(self._sources)))
        found = [one for one in self._marked() if self._is_from(one)]
        gone = [
            path
            for path in sorted({one.path for one in found})
            if self._without(self._tree.read(path), path) is None
        ]
        waiting = sum(
            self._is_proposed(proposal, change)
            for proposal in proposals.waiting(self._home)
            for change in proposal.changes
        )
        return Purge(
            self.origin,
            sources,
            tuple(one for one in found if self._goes(one)),
            tuple(one for one in found if not self._goes(one)),
            tuple(gone),
            waiting,
            is_named=bool(sources) and before.issuperset(sources),
        )

    def carry_out(self, committer: Committer, seen: Purge, by: str, why: str) -> str:
        committed = self._committed()
        touched = {*committed, PURGED}
        if theirs := sorted(touched & committer.staged()):
            what = f"{', '.join(theirs)} is staged by you, so nothing was purged."
            raise UsageError(f"{what} Commit it or take it back with: git restore --staged PATH")
        now = self._memory.moment()
        if not seen.is_named:
            at = now.isoformat(timespec="seconds")
            add(self._home, at=at, origin=self.origin, sources=seen.sources, by=by, why=why)
        for path in sorted({one.path for one in seen.lines}):
            self._rewrite(path)
        proposals.drop(self._home, self._is_proposed)
        changes = [*committed.values(), *self._record()]
        return committer.commit(Planned(self._message(seen, by), changes, now)) if changes else ""

    # Lines

    def _marked(self) -> Iterator[Marked]:
        return generated.marked_lines(self._home) if self._sources else iter(())

    def _is_from(self, line: Marked) -> bool:
        return any(self._is_source(source) for source in line.mark.sources)

    def _is_source(self, source: str) -> bool:
        """What was made from a whole conversation was made from each of its records."""
        stem, number = source.partition("#")[0], marks.number_of(source)
        if stem not in self._sources:
            return False
        numbers = self._sources[stem]
        return numbers is None or number is None or number in numbers

    def _goes(self, line: Marked) -> bool:
        return self._is_from(line) and (self._with_edited or not line.is_edited)

    def _is_proposed(self, proposal: ChangeSet, change: Proposed) -> bool:
        source = change.source
        named = [
            *change.also,
            *([marks.source_of(source.transcript, source.number)] if source.transcript else ()),
        ]
        if any(map(self._is_source, named)):
            return True
        meant = _meant(self.origin)  # what is proposed while it is said has no transcript yet
        return (
            meant is not None and not source.transcript and meant(proposal.session_id, proposal.session_key)
        )

    # Files

    def _without(self, data: bytes, path: str) -> bytes | None:
        """The note without the lines that go. What they struck out holds again: that was derived too."""
        text = notes.decode(data)
        found = [one for one in generated.marked_in(text, path) if self._goes(one)]
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        held = held_again(text, {lines[one.number - 1] for one in found}) if found else text
        return generated.without(notes.encode(held), path, self._goes)

    def _rewrite(self, path: str) -> None:
        for _ in range(_TRIES):
            with suppress(ChangedOnDisk, FileNotFoundError):
                data = self._tree.read(path)
                left = self._without(data, path)
                if left is None:
                    self._tree.remove(path, files.digest(data))
                elif left != data:
                    self._tree.write(path, left, files.digest(data), self._tree.mode(path))
                return
            if not (self._home.root / path).exists():
                return
        raise ChangedOnDisk(path)

    def _committed(self) -> dict[str, Change]:
        """What HEAD has of it. The commit is made of that and not of what is on disk, so that nothing goes
        with it that somebody is still working on."""
        if self._git.head() is None:
            return {}
        kept = {
            path: blob
            for path, blob in self._git.tree("HEAD", *FOLDERS).items()
            if path.endswith(".md") and not path.startswith(f"{ARCHIVED}/")
        }
        data = self._git.blobs({blob.name for blob in kept.values()})
        found = {}
        for path, blob in kept.items():
            old = data.get(blob.name, b"")
            new = self._without(old, path)
            if new != old:
                found[path] = Change(path, new, blob.mode)
        return found

    def _record(self) -> Iterator[Change]:
        data = self._tree.read(PURGED)
        head = self._git.head()
        if head is None or self._git.read(head, PURGED) != data:
            yield Change(PURGED, data)

    def _message(self, seen: Purge, by: str) -> str:
        origin = escape.inline(self.origin)
        who = f" by {escape.inline(by)}" if by else ""
        lines = "line" if len(seen.lines) == 1 else "lines"
        return f"maintenance: purge {origin}\n\n{len(seen.lines)} {lines}{who}.\n\nPurged: {origin}\n"


# Which records


def _named(sources: Sources) -> Iterator[str]:
    for stem, numbers in sources.items():
        yield from (stem,) if numbers is None else (f"{stem}#{number}" for number in numbers)


def _sources(memory: Memory, origin: str) -> Iterator[tuple[str, frozenset[int] | None]]:
    is_call, probe = _call(origin)
    if is_call is not None:
        yield from _of_calls(memory, is_call, probe)
        return
    stem = marks.source_of(origin.replace(f"{ARCHIVED}/", f"{CONVERSATIONS}/", 1))
    if _STEM.fullmatch(stem):
        if generated.transcript_at(memory.home, marks.transcript_of(stem)):
            yield stem, None
        return
    meant = _meant(origin)
    assert meant is not None
    for path in _transcripts(memory, b""):
        fields = transcripts.attempt_load(memory.home, path).fields
        if meant(str(fields.get("session_id", "")), str(fields.get("session_key", ""))):
            yield _stem(path), None


def _meant(origin: str) -> Callable[[str, str], bool] | None:
    """Which sessions an origin names; None: it names none."""
    if _call(origin)[0] is not None or _STEM.fullmatch(marks.source_of(origin)):
        return None
    if origin == "agent":
        raise UsageError("Every session key begins with agent. Name more of it, such as agent:main:telegram.")
    below = sessions_of(origin)
    return lambda session_id, key: session_id == origin or below(session_id, key)


def _call(origin: str) -> tuple[Callable[[ToolCall], bool] | None, str]:
    """Which calls of tools an origin names, and letters that their transcripts have; None: it names none."""
    kind, _, text = origin.partition(":")
    if kind == "tool":
        if not text:
            raise UsageError("Name a tool: tacit purge --origin tool:NAME")
        return lambda call: call.name.casefold() == text.casefold(), text
    if kind == "url":
        if len(text) < _SHORTEST:
            raise UsageError(
                f"{text!r} is too short to tell an address. Give at least {_SHORTEST} characters."
            )
        return lambda call: text.casefold() in f"{call.summary}\n{call.result}".casefold(), text
    if kind == "web" and _DOMAIN.fullmatch(text):
        there = re.compile(rf"(?<![\w-]){re.escape(text)}(?![\w-])(?!\.\w)", re.IGNORECASE)
        return lambda call: there.search(f"{call.summary}\n{call.result}") is not None, text
    return None, ""


def _of_calls(
    memory: Memory, is_call: Callable[[ToolCall], bool], probe: str
) -> Iterator[tuple[str, frozenset[int]]]:
    trusted = memory.config.lifecycle.trusted_tools
    # What a transcript would write in another way is none of these letters.
    letters = max(re.findall(r"[a-z0-9]+", probe.casefold()), key=len, default="")
    for path in _transcripts(memory, letters.encode()):
        transcript = transcripts.attempt_load(memory.home, path)
        calls = {turn.number for turn in transcript.turns if isinstance(turn, ToolCall) and is_call(turn)}
        if calls:
            yield _stem(path), frozenset(_derived(memory, transcript, calls, trusted))


def _derived(
    memory: Memory, transcript: Transcript, calls: set[int], trusted: tuple[str, ...]
) -> tuple[int, ...]:
    is_owner = listening(memory, transcript).is_owner
    return derived(transcript, calls, is_owner=is_owner, trusted_tools=trusted)


def _transcripts(memory: Memory, probe: bytes) -> Iterator[str]:
    """All that hold these bytes in any case."""
    tree = files.Tree(memory.home.root)
    for path in tree.files(CONVERSATIONS, ARCHIVED):
        if path.endswith(".md"):
            with suppress(StoreError, OSError):
                if not probe or probe in tree.read(path).lower():
                    yield path


def _stem(path: str) -> str:
    return marks.source_of(path.replace(f"{ARCHIVED}/", f"{CONVERSATIONS}/", 1))

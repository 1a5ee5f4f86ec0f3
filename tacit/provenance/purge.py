"""Retract everything that was derived from one origin, and nothing else.

    a session key or the beginning of one, a session id, a transcript    everything said there
    tool:NAME                  the results of this tool, and what the agent answered or repeated from them
    url:TEXT, web:DOMAIN       the same for tools whose call or result has this text, or an address there

What must stay true:
- transcripts stay as they are; raw/purged.jsonl lists the messages that no longer count, and is on disk
  before anything is removed, so that search, learning or a rebuild cannot bring anything back;
- a line is removed if its provenance comment names such a message, even among others. A line that was edited
  since belongs to the editor and is removed only on request. Lines that a removed line superseded hold again;
- every other byte stays, including uncommitted edits, and the commit contains only the purge;
- an interrupted purge can be repeated to completion.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from tacit.clock import Clock
from tacit.config import Config
from tacit.erase.targets import match_origin
from tacit.errors import Busy, ChangedOnDisk, StoreError, UsageError
from tacit.git.attributes import find_blocking_filters
from tacit.git.commits import CommitPlan, FileChange
from tacit.git.committer import Committer
from tacit.git.repository import Git
from tacit.home import files, generated_lines
from tacit.home.generated_lines import ARCHIVED_CONVERSATIONS, FOLDERS, GeneratedLine
from tacit.home.layout import CONVERSATIONS, PURGED, Home
from tacit.learn import window_proposals
from tacit.learn.attribution import SpeakerAttribution
from tacit.learn.model import Change as Proposed
from tacit.learn.model import ChangeSet
from tacit.learn.taint import find_derivations
from tacit.markdown import comment, escape, notes
from tacit.markdown.comment import Provenance
from tacit.markdown.note_page import remove_lines, restore_superseded
from tacit.transcripts import writer
from tacit.transcripts.model import ToolCall, Transcript
from tacit.transcripts.purged import load_purged, record_purge

_MAX_ATTEMPTS = 5  # another process may write to the same note
_MIN_URL_CHARS = 4  # in url:TEXT
_DOMAIN = re.compile(r"[\w-]+(?:\.[\w-]+)+")
_STEM = re.compile(r"\d{4}/\d\d/\d\d/[^\s#,<>]+")

SourceNumbers = Mapping[str, frozenset[int] | None]  # transcript stem → message numbers; None: all of it


@dataclass(frozen=True, slots=True)
class Purge:
    """What a purge of an origin removes, or removed."""

    origin: str
    sources: tuple[str, ...]  # as provenance comments name them
    lines: tuple[GeneratedLine, ...]  # of notes and drafts
    edited: tuple[GeneratedLine, ...]  # edited since: they stay unless requested
    notes: tuple[str, ...]  # created by tacit and empty afterwards
    proposals: int  # waiting changes
    is_named: bool  # purged before
    commit: str = ""

    @property
    def is_empty(self) -> bool:
        return not self.sources


class PurgeService:
    def __init__(
        self,
        home: Home,
        config: Config,
        clock: Clock,
        git: Git,
        committer: Committer,
        attribution: SpeakerAttribution,
    ) -> None:
        self._home, self._config, self._clock = home, config, clock
        self._git, self._committer, self._attribution = git, committer, attribution

    def inspect(self, origin: str, *, edited: bool = False) -> Purge:
        """What would be removed. `edited`: include lines that were edited since."""
        return self._plan_purge(origin, edited=edited).preview()

    def carry_out(self, origin: str, *, by: str, why: str = "", edited: bool = False) -> Purge:
        with files.hold_lock(self._home.lock), files.explain_disk_errors("purge"):
            if waiting := self._committer.waits_for():
                raise Busy(f"Nothing was purged: {waiting}.")
            purging = self._plan_purge(origin, edited=edited)
            preview = purging.preview()
            if preview.is_empty:
                return preview
            return replace(preview, commit=purging.carry_out(self._committer, preview, by, why))

    def _plan_purge(self, origin: str, *, edited: bool) -> _OriginPurge:
        origin = origin.strip()
        sources = dict(self._find_sources(origin))
        return _OriginPurge(self._home, self._clock, self._git, origin, sources, with_edited=edited)

    def _find_sources(self, origin: str) -> Iterator[tuple[str, frozenset[int] | None]]:
        is_call, probe = _call_matcher(origin)
        if is_call is not None:
            yield from self._find_call_sources(is_call, probe)
            return
        stem = _stem_of(origin)
        if _STEM.fullmatch(stem):
            if generated_lines.locate_transcript(self._home, comment.transcript_path(stem)):
                yield stem, None
            return
        is_origin = _session_matcher(origin)
        assert is_origin is not None
        for path in _transcripts_containing(self._home, b""):
            fields = writer.attempt_load(self._home, path).fields
            if is_origin(str(fields.get("session_id", "")), str(fields.get("session_key", ""))):
                yield _stem_of(path), None

    def _find_call_sources(
        self, is_call: Callable[[ToolCall], bool], probe: str
    ) -> Iterator[tuple[str, frozenset[int]]]:
        trusted = self._config.lifecycle.trusted_tools
        # Only letters that a transcript never escapes.
        letters = max(re.findall(r"[a-z0-9]+", probe.casefold()), key=len, default="")
        for path in _transcripts_containing(self._home, letters.encode()):
            transcript = writer.attempt_load(self._home, path)
            calls = {turn.number for turn in transcript.turns if isinstance(turn, ToolCall) and is_call(turn)}
            if calls:
                yield _stem_of(path), frozenset(self._derived_numbers(transcript, calls, trusted))

    def _derived_numbers(
        self, transcript: Transcript, calls: set[int], trusted: tuple[str, ...]
    ) -> tuple[int, ...]:
        is_owner = self._attribution.trust_of(transcript).is_owner
        return find_derivations(transcript, calls, is_owner=is_owner, trusted_tools=trusted)


class _OriginPurge:
    def __init__(
        self, home: Home, clock: Clock, git: Git, origin: str, sources: SourceNumbers, *, with_edited: bool
    ) -> None:
        self._home, self._clock, self._git = home, clock, git
        self.origin, self._sources, self._with_edited = origin, sources, with_edited
        self._tree = files.Tree(home.root)

    def preview(self) -> Purge:
        already_purged = load_purged(self._home.root).sources
        sources = tuple(sorted(_source_names(self._sources)))
        lines = [line for line in self._marked_lines() if self._is_from(line.mark)]
        gone = [
            path
            for path in sorted({line.path for line in lines})
            if self._remove_lines(self._tree.read(path), path) is None
        ]
        waiting = sum(
            self._is_proposed(proposal, change)
            for proposal in window_proposals.list_waiting(self._home)
            for change in proposal.changes
        )
        return Purge(
            self.origin,
            sources,
            tuple(line for line in lines if self._is_removed(line)),
            tuple(line for line in lines if not self._is_removed(line)),
            tuple(gone),
            waiting,
            is_named=bool(sources) and already_purged.issuperset(sources),
        )

    def carry_out(self, committer: Committer, preview: Purge, by: str, why: str) -> str:
        committed = self._committed_changes()
        touched = {*committed, PURGED}
        if staged := sorted(touched & committer.list_staged()):
            problem = f"{', '.join(staged)} is staged by you, so nothing was purged."
            raise UsageError(f"{problem} Commit it or take it back with: git restore --staged PATH")
        if filters := find_blocking_filters(self._git, touched):
            path, name = next(iter(filters.items()))
            problem = f"{path} has the git filter {name}, which tacit does not run, so nothing was purged."
            raise UsageError(f"{problem} Take the filter out of the git attributes first.")
        now = self._clock.now()
        if not preview.is_named:
            timestamp = now.isoformat(timespec="seconds")
            record_purge(
                self._home, at=timestamp, origin=self.origin, sources=preview.sources, by=by, why=why
            )
        for path in sorted({line.path for line in preview.lines}):
            self._rewrite(path)
        window_proposals.drop_changes(self._home, self._is_proposed)
        changes = [*committed.values(), *self._record_change()]
        return committer.commit(CommitPlan(self._message(preview, by), changes, now)) if changes else ""

    # Lines

    def _marked_lines(self) -> Iterator[GeneratedLine]:
        return generated_lines.read_generated(self._home) if self._sources else iter(())

    def _is_from(self, mark: Provenance) -> bool:
        return any(map(self._is_source, mark.sources))

    def _is_source(self, source: str) -> bool:
        """Whether a source is purged. A line from a whole conversation comes from each of its messages."""
        stem, number = source.partition("#")[0], comment.message_number(source)
        if stem not in self._sources:
            return False
        numbers = self._sources[stem]
        return numbers is None or number is None or number in numbers

    def _is_removed(self, line: GeneratedLine) -> bool:
        return self._is_from(line.mark) and (self._with_edited or not line.is_edited)

    def _is_proposed(self, proposal: ChangeSet, change: Proposed) -> bool:
        source = change.source
        sources = [
            *change.also,
            *([comment.source_name(source.transcript, source.number)] if source.transcript else ()),
        ]
        if any(map(self._is_source, sources)):
            return True
        is_origin = _session_matcher(self.origin)  # a proposal during the session has no transcript yet
        return (
            is_origin is not None
            and not source.transcript
            and is_origin(proposal.session_id, proposal.session_key)
        )

    # Files

    def _remove_lines(self, data: bytes, path: str) -> bytes | None:
        """The note without the removed lines. What they superseded holds again, as that was derived too."""
        text = notes.decode(data)
        removed = [
            marked for marked in generated_lines.find_generated(text, path) if self._is_removed(marked)
        ]
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        restored = (
            restore_superseded(text, {lines[marked.number - 1] for marked in removed}) if removed else text
        )
        rest = remove_lines(
            restored, lambda _, mark: self._is_from(mark), with_edited=self._with_edited, with_spacing=False
        )
        return None if rest is None else notes.encode(rest)

    def _rewrite(self, path: str) -> None:
        for _ in range(_MAX_ATTEMPTS):
            with suppress(ChangedOnDisk, FileNotFoundError):
                data = self._tree.read(path)
                remaining = self._remove_lines(data, path)
                if remaining is None:
                    self._tree.remove(path, files.digest(data))
                elif remaining != data:
                    self._tree.write(path, remaining, files.digest(data), self._tree.mode(path))
                return
            if not (self._home.root / path).exists():
                return
        raise ChangedOnDisk(path)

    def _committed_changes(self) -> dict[str, FileChange]:
        """The changes relative to HEAD. The commit is made from HEAD and not from the files on disk, so that
        it contains no unfinished edits of other people."""
        if self._git.head() is None:
            return {}
        blobs = {
            path: blob
            for path, blob in self._git.tree("HEAD", *FOLDERS).items()
            if path.endswith(".md") and not path.startswith(f"{ARCHIVED_CONVERSATIONS}/")
        }
        data = self._git.blobs({blob.name for blob in blobs.values()})
        changes = {}
        for path, blob in blobs.items():
            old = data.get(blob.name, b"")
            new = self._remove_lines(old, path)
            if new != old:
                changes[path] = FileChange(path, new, blob.mode)
        return changes

    def _record_change(self) -> Iterator[FileChange]:
        data = self._tree.read(PURGED)
        head = self._git.head()
        if head is None or self._git.read(head, PURGED) != data:
            yield FileChange(PURGED, data)

    def _message(self, preview: Purge, purger: str) -> str:
        origin = escape.inline(self.origin)
        author = f" by {escape.inline(purger)}" if purger else ""
        lines = "line" if len(preview.lines) == 1 else "lines"
        return f"maintenance: purge {origin}\n\n{len(preview.lines)} {lines}{author}.\n\nPurged: {origin}\n"


# Which messages


def _source_names(sources: SourceNumbers) -> Iterator[str]:
    for stem, numbers in sources.items():
        yield from (stem,) if numbers is None else (f"{stem}#{number}" for number in numbers)


def _session_matcher(origin: str) -> Callable[[str, str], bool] | None:
    """A test for the sessions that an origin names; None if it names no session."""
    if _call_matcher(origin)[0] is not None or _STEM.fullmatch(comment.source_name(origin)):
        return None
    if origin == "agent":
        raise UsageError("Every session key begins with agent. Name more of it, such as agent:main:telegram.")
    below = match_origin(origin)
    return lambda session_id, key: session_id == origin or below(session_id, key)


def _call_matcher(origin: str) -> tuple[Callable[[ToolCall], bool] | None, str]:
    """A test for the tool calls that an origin names, and text that their transcripts must contain; None if
    it names no tool calls."""
    kind, _, text = origin.partition(":")
    if kind == "tool":
        if not text:
            raise UsageError("Name a tool: tacit purge --origin tool:NAME")
        return lambda call: call.name.casefold() == text.casefold(), text
    if kind == "url":
        if len(text) < _MIN_URL_CHARS:
            raise UsageError(
                f"{text!r} is too short for an address. Give at least {_MIN_URL_CHARS} characters."
            )
        return lambda call: text.casefold() in f"{call.summary}\n{call.result}".casefold(), text
    if kind == "web" and _DOMAIN.fullmatch(text):
        domain = re.compile(rf"(?<![\w-]){re.escape(text)}(?![\w-])(?!\.\w)", re.IGNORECASE)
        return lambda call: domain.search(f"{call.summary}\n{call.result}") is not None, text
    return None, ""


def _transcripts_containing(home: Home, probe: bytes) -> Iterator[str]:
    """The transcripts that contain these bytes, ignoring case."""
    tree = files.Tree(home.root)
    for path in tree.files(CONVERSATIONS, ARCHIVED_CONVERSATIONS):
        if path.endswith(".md"):
            with suppress(StoreError, OSError):
                if not probe or probe in tree.read(path).lower():
                    yield path


def _stem_of(path: str) -> str:
    return comment.source_name(generated_lines.original_path(path))

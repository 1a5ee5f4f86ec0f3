"""Where a line is from: the file, the commit that brought it, and the words that it was made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from tacit.errors import StoreError, TacitError, UsageError
from tacit.lifecycle.hearing import heard
from tacit.memory.hearing import listening
from tacit.model.known import How, Since, Trace, Words
from tacit.model.turns import Message, ToolCall, Transcript, Turn
from tacit.store import files, generated, proposals, transcripts
from tacit.store.home import CONVERSATIONS
from tacit.store.purged import purged
from tacit.text import marks, notes
from tacit.text.words import fold

if TYPE_CHECKING:
    from tacit.memory.memory import Memory
    from tacit.model.search import Hit
    from tacit.store.history import Commit

_MOST = 20  # places that are told of
_NEAREST = 3
_BEFORE = 160  # characters of the turn before
_LONGEST = 2_000  # characters of what was said


def why_known(memory: Memory, text: str) -> list[Trace]:
    """Places in notes and in what waits; only where there is none, in conversations; and where there is none
    of these either, the nearest that search finds."""
    wanted = " ".join(text.split())
    if not wanted:
        raise UsageError("Say what you ask about: tacit why-known TEXT")
    known = _Known(memory)
    for exact in (_holds_exactly(wanted), _holds(wanted)):
        found = list(islice(known.in_notes(exact), _MOST)) + list(islice(known.waiting(exact), _MOST))
        if found:
            return found
    found = list(islice(known.said(_holds(wanted)), _MOST))
    return found or known.nearest(wanted)


def _holds_exactly(wanted: str) -> Callable[[str], bool]:
    return lambda line: wanted in line


def _holds(wanted: str) -> Callable[[str], bool]:
    letters = fold(wanted)
    return lambda line: letters in " ".join(fold(line).split())


class _Known:
    def __init__(self, memory: Memory) -> None:
        self._memory, self._home = memory, memory.home
        self._purged = purged(memory.home.root).sources

    # Notes

    def in_notes(self, holds: Callable[[str], bool]) -> Iterator[Trace]:
        tree = files.Tree(self._home.root)
        for path in generated.note_paths(self._home):
            with suppress(StoreError, OSError):
                yield from self._in_note(path, notes.decode(tree.read(path)), holds)

    def _in_note(self, path: str, text: str, holds: Callable[[str], bool]) -> Iterator[Trace]:
        commits: dict[str, Commit] | None = None
        for number, line in enumerate(text.split("\n"), 1):
            if not holds(marks.read(line)[0]):
                continue
            commits = self._commits(path) if commits is None else commits
            yield self._trace(path, number, line.rstrip("\r"), commits)

    def _trace(self, path: str, number: int, line: str, commits: dict[str, Commit]) -> Trace:
        text, mark = marks.read(line)
        how: How = "written" if mark is None else "generated" if marks.is_generated(line) else "edited"
        trace = Trace(
            path,
            number,
            text.strip(),
            "drafted" if path.startswith("drafts/") else how,
            is_superseded=marks.is_superseded(line),
            since=self._since(path, line, commits),
        )
        if mark is None:
            return trace
        words = tuple(self._words(source) for source in mark.sources)
        return replace(trace, extractor=mark.extractor, trust=mark.trust, words=words)

    def _commits(self, path: str) -> dict[str, Commit]:
        try:
            origins = self._memory.history.blame(path)
        except TacitError:  # not committed yet
            return {}
        return {line: origin.commit for origin in origins for line in origin.lines}

    def _since(self, path: str, line: str, commits: dict[str, Commit]) -> Since | None:
        """The first commit that had these words: since then somebody may have marked them as superseded."""
        if line not in commits:
            return None
        text = marks.read(line)[0].strip()
        if marks.is_superseded(line):
            text = text[: text.lower().rindex("(superseded")].rstrip()
        commit = commits[line]
        with suppress(TacitError):
            commit = self._memory.history.first(path, text) or commit
        return Since(commit.name, commit.when, commit.author, commit.subject)

    # What waits

    def waiting(self, holds: Callable[[str], bool]) -> Iterator[Trace]:
        for proposal in proposals.waiting(self._home):
            for change in proposal.changes:
                if not holds(change.text):
                    continue
                source = change.source
                first = [marks.source_of(source.transcript, source.number)] if source.transcript else []
                words = tuple(self._words(one) for one in (*first, *change.also))
                extractor = change.extractor or proposal.extractor
                yield Trace(
                    change.path,
                    0,
                    change.line,
                    "proposed",
                    extractor=extractor,
                    trust=change.trust,
                    words=words,
                )

    # Conversations

    def said(self, holds: Callable[[str], bool]) -> Iterator[Trace]:
        """Purged ones too: who asks here is the owner, and is told."""
        for path in files.Tree(self._home.root).files(CONVERSATIONS, generated.ARCHIVED):
            transcript = transcripts.attempt_load(self._home, path)
            for turn in transcript.turns:
                if holds(_text(turn)):
                    yield self._spoken(transcript, turn)

    def _spoken(self, transcript: Transcript, turn: Turn) -> Trace:
        how = listening(self._memory, transcript)
        trusted = self._memory.config.lifecycle.trusted_tools
        said = heard(transcript, is_owner=how.is_owner, trusted_tools=trusted, agents=how.agents).said
        trust = next((one.trust for one in said if one.number == turn.number), "")
        source = marks.source_of(_first_path(transcript.path), turn.number)
        first = _text(turn).strip().split("\n", 1)[0]
        words = (self._words_of(transcript, source),)
        since = None
        with suppress(TacitError, StopIteration):
            origin = next(iter(self._memory.history.blame(transcript.path)))
            commit = origin.commit
            since = Since(commit.name, commit.when, commit.author, commit.subject)
        return Trace(transcript.path, turn.line, first, "said", since=since, trust=trust, words=words)

    def _words(self, source: str) -> Words:
        path = marks.transcript_of(source)
        at = generated.transcript_at(self._home, path)
        if at is None:
            return Words(path, marks.number_of(source), state="gone")
        return self._words_of(transcripts.attempt_load(self._home, at), source)

    def _words_of(self, transcript: Transcript, source: str) -> Words:
        number = marks.number_of(source)
        is_purged = source in self._purged or source.partition("#")[0] in self._purged
        words = Words(transcript.path, number, state="purged" if is_purged else "")
        before, turn = _at(transcript.turns, number)
        if turn is None:
            return words
        role, speaker = _who(turn)
        return replace(
            words,
            role=role,
            speaker=speaker,
            at=turn.at,
            text=_text(turn)[:_LONGEST],
            before=_in_short(before),
        )

    # Nearest

    def nearest(self, text: str) -> list[Trace]:
        """What would be given to somebody who asks for it."""
        least = self._memory.config.inject.confidence_gate
        hits = [hit for hit in self._memory.search(text, limit=_NEAREST) if hit.score >= least]
        found = [trace for hit in hits for trace in self._like(hit, text)]
        return [replace(one, is_nearest=True) for one in found]

    def _like(self, hit: Hit, text: str) -> list[Trace]:
        """The turn, or the line of the passage that has most of the words."""
        if hit.category == "conversation":
            transcript = transcripts.attempt_load(self._home, hit.path)
            turns = [turn for turn in transcript.turns if turn.number == hit.turn]
            return [self._spoken(transcript, turn) for turn in turns[:1]]
        try:
            whole = notes.decode(self._memory.workspaces.read(hit.path))
        except (StoreError, OSError):
            return []
        lines = whole.split("\n")[hit.lines[0] - 1 : hit.lines[1]]
        best = marks.read(max(lines, key=lambda line: _shared(line, text), default=""))[0]
        if not _shared(best, text):
            return []
        return list(islice(self._in_note(hit.path, whole, lambda line: line == best), 1))


def _first_path(path: str) -> str:
    return path.replace(f"{generated.ARCHIVED}/", f"{CONVERSATIONS}/", 1)


def _shared(line: str, text: str) -> int:
    return len(set(fold(line).split()) & set(fold(text).split()))


def _at(turns: Sequence[Turn], number: int | None) -> tuple[Turn | None, Turn | None]:
    """A turn, and the one before it."""
    before = None
    for turn in turns:
        if turn.number == number:
            return before, turn
        before = turn if isinstance(turn, Message) else before
    return None, None


def _who(turn: Turn) -> tuple[str, str]:
    if isinstance(turn, ToolCall):
        return "tool", turn.name
    return (turn.role, turn.speaker or "") if isinstance(turn, Message) else ("", "")


def _text(turn: Turn | None) -> str:
    if isinstance(turn, ToolCall):
        return f"{turn.summary} → {turn.result}" if turn.result else turn.summary
    return turn.text if isinstance(turn, Message) else ""


def _in_short(turn: Turn | None) -> str:
    text = " ".join(_text(turn).split())
    role = _who(turn)[0] if turn is not None else ""
    return f"{role}: {text[:_BEFORE]}{'…' if len(text) > _BEFORE else ''}" if text else ""

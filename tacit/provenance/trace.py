"""Trace a line to its file, the commit that added it, and the words it was made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Literal, TypeAlias

from tacit.errors import StoreError, TacitError, UsageError
from tacit.git.history import Commit, History
from tacit.home import files, generated_lines
from tacit.home.layout import CONVERSATIONS, Home
from tacit.learn import window_proposals
from tacit.learn.attribution import SpeakerAttribution
from tacit.learn.taint import attribute_turns
from tacit.markdown import comment, notes
from tacit.search.model import Hit
from tacit.text.words import fold
from tacit.transcripts import writer
from tacit.transcripts.attribution import role_of, speaker_of, text_of
from tacit.transcripts.model import Message, ToolCall, Transcript, Turn
from tacit.transcripts.purged import load_purged
from tacit.workspaces.folders import Workspaces

_MAX_TRACES = 20
_MAX_NEAREST = 3
_MAX_BEFORE_CHARS = 160  # of the preceding turn
_MAX_TEXT_CHARS = 2_000  # of the turn


# generated: tacit wrote the line; edited: tacit wrote it and a person edited it; written: a person wrote it;
# said: it is only in a conversation; drafted, proposed: it waits for review.
TraceKind: TypeAlias = Literal["generated", "edited", "written", "said", "drafted", "proposed"]


@dataclass(frozen=True, slots=True)
class SourceTurn:
    """One source turn of a line. If the transcript is gone, only its path is known."""

    transcript: str
    number: int | None  # None: all of the conversation
    role: str = ""
    speaker: str = ""
    at: datetime | None = None
    text: str = ""
    before: str = ""  # the preceding turn, shortened
    state: Literal["", "gone", "purged"] = ""


@dataclass(frozen=True, slots=True)
class FirstCommit:
    """The commit that added something."""

    commit: str
    when: datetime
    author: str
    subject: str


@dataclass(frozen=True, slots=True)
class Trace:
    """One place where a text is found, and how it got there."""

    path: str
    line: int
    text: str
    how: TraceKind
    is_nearest: bool = False  # the text itself was not found; this one is similar
    is_superseded: bool = False
    since: FirstCommit | None = None  # None: not committed
    extractor: str = ""
    trust: str = ""
    words: tuple[SourceTurn, ...] = ()


def _contains_exactly(wanted: str) -> Callable[[str], bool]:
    return lambda line: wanted in line


def _contains_folded(wanted: str) -> Callable[[str], bool]:
    letters = fold(wanted)
    return lambda line: letters in " ".join(fold(line).split())


class LineTracer:
    """`search` and the least score it must reach serve questions whose words are in no file."""

    def __init__(
        self,
        home: Home,
        history: History,
        workspaces: Workspaces,
        attribution: SpeakerAttribution,
        search: Callable[[str, int], Sequence[Hit]],
        *,
        trusted_tools: Sequence[str],
        min_score: float,
    ) -> None:
        self._home, self._history, self._workspaces = home, history, workspaces
        self._attribution, self._search = attribution, search
        self._trusted_tools, self._min_score = tuple(trusted_tools), min_score

    def why_known(self, text: str) -> list[Trace]:
        """Places in notes and proposals; if there are none, in conversations; and otherwise the nearest
        search hits."""
        wanted = " ".join(text.split())
        if not wanted:
            raise UsageError("Name the text to trace: tacit why-known TEXT")
        for exact in (_contains_exactly(wanted), _contains_folded(wanted)):
            traces = list(islice(self._in_notes(exact), _MAX_TRACES)) + list(
                islice(self._in_proposals(exact), _MAX_TRACES)
            )
            if traces:
                return traces
        traces = list(islice(self._in_conversations(_contains_folded(wanted)), _MAX_TRACES))
        return traces or self._nearest(wanted)

    # Notes

    def _in_notes(self, holds: Callable[[str], bool]) -> Iterator[Trace]:
        tree = files.Tree(self._home.root)
        for path in generated_lines.note_paths(self._home):
            with suppress(StoreError, OSError):
                yield from self._traces_in_note(path, notes.decode(tree.read(path)), holds)

    def _traces_in_note(self, path: str, text: str, holds: Callable[[str], bool]) -> Iterator[Trace]:
        commits: dict[str, Commit] | None = None
        for number, line in enumerate(text.split("\n"), 1):
            if not holds(comment.read(line)[0]):
                continue
            commits = self._commits_by_line(path) if commits is None else commits
            yield self._trace(path, number, line.rstrip("\r"), commits)

    def _trace(self, path: str, number: int, line: str, commits: dict[str, Commit]) -> Trace:
        text, mark = comment.read(line)
        how: TraceKind = (
            "written" if mark is None else "generated" if comment.is_generated(line) else "edited"
        )
        trace = Trace(
            path,
            number,
            text.strip(),
            "drafted" if path.startswith("drafts/") else how,
            is_superseded=comment.is_superseded(line),
            since=self._find_since(path, line, commits),
        )
        if mark is None:
            return trace
        words = tuple(self._words_from(source) for source in mark.sources)
        return replace(trace, extractor=mark.extractor, trust=mark.trust, words=words)

    def _commits_by_line(self, path: str) -> dict[str, Commit]:
        try:
            origins = self._history.blame(path)
        except TacitError:  # not committed yet
            return {}
        return {line: origin.commit for origin in origins for line in origin.lines}

    def _find_since(self, path: str, line: str, commits: dict[str, Commit]) -> FirstCommit | None:
        """The first commit with these words: a later one may only have marked them as superseded."""
        if line not in commits:
            return None
        text = comment.read(line)[0].strip()
        if comment.is_superseded(line):
            text = text[: text.lower().rindex("(superseded")].rstrip()
        commit = commits[line]
        with suppress(TacitError):
            commit = self._history.first(path, text) or commit
        return FirstCommit(commit.name, commit.when, commit.author, commit.subject)

    # Proposals

    def _in_proposals(self, holds: Callable[[str], bool]) -> Iterator[Trace]:
        for proposal in window_proposals.list_waiting(self._home):
            for change in proposal.changes:
                if not holds(change.text):
                    continue
                source = change.source
                first = [comment.source_name(source.transcript, source.number)] if source.transcript else []
                words = tuple(self._words_from(name) for name in (*first, *change.also))
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

    def _in_conversations(self, holds: Callable[[str], bool]) -> Iterator[Trace]:
        """Includes purged conversations, because only the owner asks here."""
        for path in files.Tree(self._home.root).files(CONVERSATIONS, generated_lines.ARCHIVED_CONVERSATIONS):
            transcript = writer.attempt_load(self._home, path)
            for turn in transcript.turns:
                if holds(text_of(turn)):
                    yield self._trace_turn(transcript, turn)

    def _trace_turn(self, transcript: Transcript, turn: Turn) -> Trace:
        trust = self._attribution.trust_of(transcript)
        turns = attribute_turns(
            transcript, is_owner=trust.is_owner, trusted_tools=self._trusted_tools, agents=trust.agents
        ).said
        trusts = (attributed.trust for attributed in turns if attributed.number == turn.number)
        source = comment.source_name(generated_lines.original_path(transcript.path), turn.number)
        first = text_of(turn).strip().split("\n", 1)[0]
        words = (self._words_in(transcript, source),)
        since = None
        with suppress(TacitError, StopIteration):
            origin = next(iter(self._history.blame(transcript.path)))
            commit = origin.commit
            since = FirstCommit(commit.name, commit.when, commit.author, commit.subject)
        return Trace(
            transcript.path, turn.line, first, "said", since=since, trust=next(trusts, ""), words=words
        )

    def _words_from(self, source: str) -> SourceTurn:
        path = comment.transcript_path(source)
        current_path = generated_lines.locate_transcript(self._home, path)
        if current_path is None:
            return SourceTurn(path, comment.message_number(source), state="gone")
        return self._words_in(writer.attempt_load(self._home, current_path), source)

    def _words_in(self, transcript: Transcript, source: str) -> SourceTurn:
        number = comment.message_number(source)
        purged = load_purged(self._home.root).sources
        is_purged = source in purged or source.partition("#")[0] in purged
        words = SourceTurn(transcript.path, number, state="purged" if is_purged else "")
        before, turn = _find_turn(transcript.turns, number)
        if turn is None:
            return words
        return replace(
            words,
            role=role_of(turn) if isinstance(turn, Message | ToolCall) else "",
            speaker=speaker_of(turn),
            at=turn.at,
            text=text_of(turn)[:_MAX_TEXT_CHARS],
            before=_shorten(before),
        )

    # Nearest

    def _nearest(self, text: str) -> list[Trace]:
        """The nearest search hits for the text."""
        hits = [hit for hit in self._search(text, _MAX_NEAREST) if hit.score >= self._min_score]
        traces = [trace for hit in hits for trace in self._traces_of_hit(hit, text)]
        return [replace(trace, is_nearest=True) for trace in traces]

    def _traces_of_hit(self, hit: Hit, text: str) -> list[Trace]:
        """The turn, or the line of the chunk that shares the most words."""
        if hit.category == "conversation":
            transcript = writer.attempt_load(self._home, hit.path)
            turns = [turn for turn in transcript.turns if turn.number == hit.turn]
            return [self._trace_turn(transcript, turn) for turn in turns[:1]]
        try:
            whole = notes.decode(self._workspaces.read(hit.path))
        except (StoreError, OSError):
            return []
        lines = whole.split("\n")[hit.lines[0] - 1 : hit.lines[1]]
        best_line = comment.read(max(lines, key=lambda line: _count_shared(line, text), default=""))[0]
        if not _count_shared(best_line, text):
            return []
        return list(islice(self._traces_in_note(hit.path, whole, lambda line: line == best_line), 1))


def _count_shared(line: str, text: str) -> int:
    return len(set(fold(line).split()) & set(fold(text).split()))


def _find_turn(turns: Sequence[Turn], number: int | None) -> tuple[Turn | None, Turn | None]:
    """A turn, and the one before it."""
    before = None
    for turn in turns:
        if turn.number == number:
            return before, turn
        before = turn if isinstance(turn, Message) else before
    return None, None


def _shorten(turn: Turn | None) -> str:
    text = " ".join(text_of(turn).split()) if turn is not None else ""
    if turn is None or not text:
        return ""
    return f"{role_of(turn)}: {text[:_MAX_BEFORE_CHARS]}{'…' if len(text) > _MAX_BEFORE_CHARS else ''}"

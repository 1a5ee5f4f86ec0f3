"""What a note keeps while everything is learned anew, and what must not come back.

What must stay true:
- what a person wrote stays, and so does a line of tacit's that a person changed, wrote something below, or
  approved: only lines that came by themselves go;
- a line whose conversation is not read again stays: nothing would bring it back;
- what a person took out, or changed, does not come back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from tacit.errors import StoreError
from tacit.lifecycle.apply import said_of, without_lines
from tacit.lifecycle.condense.day import SUMMARISED
from tacit.lifecycle.contradict import says_the_same, words_in
from tacit.lifecycle.items import items
from tacit.model.changes import Change
from tacit.text import marks, notes
from tacit.text.frontmatter import names_in
from tacit.text.marks import Mark
from tacit.text.transcript import safe_name
from tacit.text.words import fold

DAY = "day"  # the name in the marks of a day's summary


class Learned(NamedTuple):
    """A line that has a mark, where it stands or stood."""

    path: str
    line: str  # without its mark
    mark: Mark
    is_intact: bool = True  # as tacit wrote it
    until: datetime | None = None  # when it was taken out


class Gone:
    """Lines that were learned once and are no longer where they were."""

    def __init__(self, removed: Iterable[Learned], present: Collection[Learned]) -> None:
        """`removed`: lines that a commit took out of a note; `present`: those that stand in notes."""
        there = {_key(one) for one in present if one.is_intact}
        taken = [one for one in removed if _key(one) not in there]
        self._by_word: dict[tuple[str, str], list[Learned]] = {}
        for one in taken:
            for word in words_in(said_of(one.line)):
                self._by_word.setdefault((one.path, word), []).append(one)
        self._emptied = _turns([*taken, *(one for one in present if not one.is_intact)])
        self._emptied -= _turns(one for one in present if one.is_intact)

    def has(self, change: Change) -> bool:
        """Whether it is from a turn of which nothing was left, or says what its note said then and somebody
        took out later. Said again after that, it is learned again."""
        source = marks.source_of(change.source.transcript, change.source.number or None)
        return (change.extractor.partition("/")[0], source) in self._emptied or any(
            _is_before(change, one.until) and says_the_same(said_of(one.line), change.text)
            for word in words_in(change.text)
            for one in self._by_word.get((change.path, word), ())
        )

    def transcripts(self, name: str) -> frozenset[str]:
        """Those from which a line of this extractor was taken out or changed."""
        return frozenset(marks.transcript_of(source) for by, source in self._emptied if by == name)


def _is_before(change: Change, moment: datetime | None) -> bool:
    if moment is None:
        return True
    try:
        said = datetime.fromisoformat(change.source.at or change.day)
    except ValueError:
        return True
    return (said if said.tzinfo else said.replace(tzinfo=moment.tzinfo)) <= moment


def _key(one: Learned) -> tuple[str, ...]:
    return (one.mark.name, fold(said_of(one.line)), *one.mark.sources)


def _turns(lines: Iterable[Learned]) -> set[tuple[str, str]]:
    return {(one.mark.name, source) for one in lines for source in one.mark.sources}


def stripped(text: str, goes: Callable[[Mark], bool], settled: Collection[str] = ()) -> str | None:
    """The note without the lines of tacit's that are to be learned anew. None: nothing of it is left.
    `settled`: transcripts that are not summed up again."""
    whole = {one.raw for one in items(text) if one.is_generated}
    rest = without_lines(text, lambda line, mark: line.rstrip("\r") in whole and goes(mark))
    if rest is None or rest == text:
        return rest
    return _not_summarised(rest, settled)


def _not_summarised(page: str, settled: Collection[str]) -> str:
    """Of a journal page: sessions whose lines went are to be summed up again."""
    note = notes.parse(page)
    seen = names_in(note.fields.get(SUMMARISED))
    if not seen:
        return page
    cited = (one.mark for one in items(page) if one.mark is not None and one.mark.name == DAY)
    kept = {*settled, *(path for mark in cited for path in mark.transcripts)}
    left = [name for name in seen if any(f"-{safe_name(name)}-" in path for path in kept)]
    try:
        return notes.with_fields(note, {SUMMARISED: left or None}).text
    except StoreError:  # somebody's frontmatter is broken: doctor tells
        return page


def in_old_order(old: str, new: str) -> str:
    """The note as it was made anew, with lines that it had before in the order they had: what differs is then
    what was learned otherwise, and a note that says the same is the same, down to its frontmatter. One that
    has other sections than before stays as it was made."""
    head, body = notes.split(new)
    before, after = _gaps(notes.split(old)[1]), _gaps(body)
    if [frame for frame, _ in before] != [frame for frame, _ in after]:
        return new
    pairs = zip(before, after, strict=True)
    lines = (line for (_, was), (frame, now) in pairs for line in (*_ordered(was, now), *frame))
    ordered = "\n".join(lines)
    return old if ordered == notes.split(old)[1] else head + ordered


def _gaps(body: str) -> list[tuple[tuple[str, ...], list[str]]]:
    """Each line that has no mark, with the marked ones before it; and what comes last."""
    found: list[tuple[tuple[str, ...], list[str]]] = []
    marked: list[str] = []
    for line in body.split("\n"):
        if marks.read(line)[1] is not None:
            marked.append(line)
        else:
            found.append(((line,), marked))
            marked = []
    return [*found, ((), marked)]


def _ordered(was: Collection[str], now: Iterable[str]) -> Iterator[str]:
    """Lines of `now`: those that were there as they stood, each other one behind the one that it follows."""
    behind: dict[str, list[str]] = {"": []}
    known, last = set(was), ""
    for line in now:
        if line in known:
            behind[line] = []
            last = line
        else:
            behind[last].append(line)
    yield from behind[""]
    for line in was:
        if line in behind:
            yield line
            yield from behind.pop(line)

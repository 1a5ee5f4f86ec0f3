"""What a note keeps while everything is learned anew, and what must not come back.

What must stay true:
- what a person wrote stays, and so does a line of tacit's that a person changed, wrote something below, or
  approved: only lines that came by themselves go;
- a line whose conversation is not read again stays: nothing would bring it back;
- what a person took out, or changed, or put into the archive, does not come back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from tacit.errors import StoreError
from tacit.lifecycle.apply import said_of, without_lines
from tacit.lifecycle.condense.day import SUMMARISED
from tacit.lifecycle.contradict import says_the_same
from tacit.lifecycle.items import items
from tacit.model.changes import Change
from tacit.text import marks, notes
from tacit.text.frontmatter import names_in
from tacit.text.marks import Mark
from tacit.text.transcript import safe_name
from tacit.text.words import fold

DAY = "day"  # the name in the marks of a day's summary


class Learned(NamedTuple):
    """A line that has a mark, wherever it stands or stood."""

    line: str  # without its mark
    mark: Mark
    is_intact: bool = True  # as tacit wrote it


class Gone:
    """Lines that were learned once and are no longer where they were."""

    def __init__(self, removed: Iterable[Learned], present: Collection[Learned]) -> None:
        """`removed`: lines that a commit took out of a note, or that stand in the archive; `present`: those
        that stand in notes."""
        there = {_key(one) for one in present if one.is_intact}
        taken = [one for one in removed if _key(one) not in there]
        self._said: dict[str, list[str]] = {}
        for one in taken:
            for transcript in one.mark.transcripts:
                self._said.setdefault(transcript, []).append(said_of(one.line))
        self._emptied = _turns([*taken, *(one for one in present if not one.is_intact)])
        self._emptied -= _turns(one for one in present if one.is_intact)

    def has(self, change: Change) -> bool:
        """Whether it says again what was taken out, or is from a turn of which nothing was left."""
        said = self._said.get(change.source.transcript, ())
        source = marks.source_of(change.source.transcript, change.source.number or None)
        name = change.extractor.partition("/")[0]
        return (name, source) in self._emptied or any(says_the_same(one, change.text) for one in said)

    def transcripts(self, name: str) -> frozenset[str]:
        """Those from which a line of this extractor was taken out or changed."""
        return frozenset(marks.transcript_of(source) for by, source in self._emptied if by == name)


def _key(one: Learned) -> tuple[str, ...]:
    return (fold(said_of(one.line)), *one.mark.sources)


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
    what was learned otherwise. A note that has other sections than before stays as it is."""
    head, body = notes.split(new)
    before, after = _gaps(notes.split(old)[1]), _gaps(body)
    if [frame for frame, _ in before] != [frame for frame, _ in after]:
        return new
    pairs = zip(before, after, strict=True)
    lines = (line for (_, was), (frame, now) in pairs for line in (*_ordered(was, now), *frame))
    return head + "\n".join(lines)


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

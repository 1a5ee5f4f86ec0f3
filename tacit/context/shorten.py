"""A text in fewer tokens, cut where a section ends, and never in silence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from tacit.context.plain import says_something
from tacit.text.lines import scan

Count = Callable[[str], int]

_TOKEN = 12  # characters of the longest common tokens: what is longer than this times the room cannot fit
_NAMED = 4  # sections named in a mark


class Shortened(NamedTuple):
    text: str  # with a mark where something is missing
    left_out: str  # what is missing, for people; empty: nothing


def shorten(text: str, room: int, count: Count) -> Shortened:
    """The first sections that fit, then a mark that says what is missing. If not even the first fits, its
    first paragraphs, then its first words. What cannot be told in this room at all is empty."""
    if len(text) <= room * _TOKEN and count(text) <= room:
        return Shortened(text, "")
    sections = _sections(text)
    fitting = _first_fitting(sections, room, count, _without_sections)
    if fitting and says_something(fitting.text.rpartition("[…")[0]):
        return fitting
    return _cut(sections[0] if sections else text, room, count, after=sections[1:])


def middle_out(text: str, room: int, count: Count) -> Shortened:
    """Beginning and end, for what is said rather than written: the question often comes last."""
    if len(text) <= room * _TOKEN and count(text) <= room:
        return Shortened(text, "")
    left = f"{len(text):,} characters in all"
    mark = f"\n[… the middle is left out: {left} …]\n"
    size = min(len(text), room * _TOKEN)
    while size > 0:
        head, tail = text[: size * 2 // 3], text[len(text) - size // 3 :]
        shown = head.rstrip() + mark + tail.lstrip()
        over = count(shown) - room
        if over <= 0:
            return Shortened(shown, left)
        size = min(size - 1, int(size * max(0.3, 1 - over / (over + room))))
    return Shortened("", left)


def around(text: str, characters: int, words: Collection[str]) -> Shortened:
    """The part of a passage with the most of the words, as much as fits, with marks where it is cut. Empty
    where nothing can be said in so few characters."""
    if len(text) <= characters:
        return Shortened(text, "")
    pieces = _pieces(text, max(1, (characters - 2 * len(_CUT)) // 2))
    first, last = _fullest(pieces, characters - 2 * len(_CUT), words)
    part = "".join(pieces[first:last]).strip()
    if not part:
        return Shortened("", f"all of it: {characters:,} characters are no room")
    before = "" if not first else "[…]\n" if pieces[first - 1].endswith("\n") else "[…] "
    after = _CUT if last < len(pieces) else ""
    return Shortened(f"{before}{part}{after}", f"only {len(part):,} of {len(text):,} characters")


_CUT = " […]"
_SENTENCE = re.compile(r".+?(?:[.!?]\s+|[。！？]\s*|\Z)", re.DOTALL)


def _pieces(text: str, size: int) -> list[str]:
    """Lines; where one is longer than that, its sentences; where such a one is, as many words as fit.
    Together they are the text."""
    pieces: list[str] = []
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        for sentence in [line] if len(line) <= size else _SENTENCE.findall(line):
            pieces += _by_words(sentence, size)
    return pieces


def _by_words(text: str, size: int) -> Iterator[str]:
    while len(text) > size:
        cut = max(1, len(_at_word(text, size)))
        yield text[:cut]
        text = text[cut:]
    yield text


def _fullest(pieces: Sequence[str], room: int, words: Collection[str]) -> tuple[int, int]:
    """From which piece to which the most of the words stand, those most that stand in few places; of equals
    where they stand most often, then the first. A heading alone is no answer."""
    counts = [{word: times for word in words if (times := piece.casefold().count(word))} for piece in pieces]
    places = Counter(word for one in counts for word in one)
    best, most = (0, 0), (-1.0, -1)
    last = size = 0
    for first, piece in enumerate(pieces):
        while last < len(pieces) and size + len(pieces[last]) <= room:
            size += len(pieces[last])
            last += 1
        found = counts[first:last]
        rare = sum(1 / places[word] for word in sorted(set().union(*found)))
        full = round(rare, 9), sum(sum(one.values()) for one in found)
        if full > most and says_something("".join(pieces[first:last])):
            best, most = (first, last), full
        size -= len(piece) if last > first else 0
        last = max(last, first + 1)
    return best


def _sections(text: str) -> list[str]:
    """In pieces, each beginning with a heading; what stands above the first one is a piece as well."""
    pieces: list[list[str]] = [[]]
    for line in scan(text):
        if line.kind == "heading":
            pieces.append([])
        pieces[-1].append(line.text)
    return [piece for lines in pieces if (piece := "\n".join(lines).strip("\n"))]


def _first_fitting(
    pieces: Sequence[str],
    room: int,
    count: Count,
    mark: Callable[[Sequence[str]], str],
    joint: str = "\n\n",
) -> Shortened | None:
    """As many whole pieces from the beginning as fit together with the mark about the others."""
    best: Shortened | None = None
    low, high = 1, len(pieces) - 1
    while low <= high:
        middle = (low + high) // 2
        left = mark(pieces[middle:])
        shown = joint.join([*pieces[:middle], f"[… {left}]"])
        if len(shown) <= room * _TOKEN and count(shown) <= room:
            best, low = Shortened(shown, left), middle + 1
        else:
            high = middle - 1
    return best


def _without_sections(missing: Sequence[str]) -> str:
    titles = [title for piece in missing if (title := _title(piece))]
    named = ", ".join(titles[:_NAMED]) + (" …" if len(titles) > _NAMED else "")
    what = f"{len(missing)} section{'s' if len(missing) > 1 else ''} left out"
    return f"{what}: {named}" if named else what


def _title(piece: str) -> str:
    first = piece.partition("\n")[0].strip("# \t")
    return first if len(first) <= 40 else first[:39] + "…"


def _cut(piece: str, room: int, count: Count, after: Sequence[str]) -> Shortened:
    rest = f"the rest left out{f', {_without_sections(after)}' if after else ''}"
    for parts, joint in ((re.split(r"\n[ \t]*\n", piece), "\n\n"), (piece.split("\n"), "\n")):
        fitting = _first_fitting([*parts, ""], room, count, lambda _: rest, joint)
        if fitting and says_something(fitting.text.rpartition("[…")[0]):
            return fitting
    mark = f" [… {rest}]"
    size = min(len(piece), room * _TOKEN)
    while size > 0:
        shown = _at_word(piece, size) + mark
        over = count(shown) - room
        if over <= 0:
            said = says_something(shown.removesuffix(mark))
            return Shortened(shown, rest) if said else Shortened("", "all of it: there is no room")
        size = min(size - 1, int(size * max(0.3, 1 - over / (over + room))))
    return Shortened("", "all of it: there is no room")


def _at_word(text: str, size: int) -> str:
    if size >= len(text):
        return text
    space = max(text.rfind(" ", size // 2, size), text.rfind("\n", size // 2, size))
    return text[: space if space > 0 else size].rstrip()

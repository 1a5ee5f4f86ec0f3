"""Shortens texts to a number of tokens, at the end of a section, with a mark that says what is missing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from tacit.markdown.strip import has_content
from tacit.text.lines import scan

TokenCounter = Callable[[str], int]

_MAX_TOKEN_CHARS = 12  # longest common tokens; a text longer than this times the limit cannot fit
_MAX_NAMED_SECTIONS = 4  # sections named in a mark


class ShortenedText(NamedTuple):
    text: str  # with a mark where something is missing
    left_out: str  # describes what is missing, for people; empty: nothing


def shorten(text: str, room: int, count: TokenCounter) -> ShortenedText:
    """Keep the first sections that fit, then a mark that says what is missing. If not even the first section
    fits, keep its first paragraphs, or its first words. Empty if nothing useful fits."""
    if len(text) <= room * _MAX_TOKEN_CHARS and count(text) <= room:
        return ShortenedText(text, "")
    sections = _split_sections(text)
    fitting = _fit_first(sections, room, count, _describe_missing)
    if fitting and has_content(fitting.text.rpartition("[…")[0]):
        return fitting
    return _cut_piece(sections[0] if sections else text, room, count, following=sections[1:])


def shorten_middle(text: str, room: int, count: TokenCounter) -> ShortenedText:
    """Keep beginning and end, for messages: the question often comes last."""
    if len(text) <= room * _MAX_TOKEN_CHARS and count(text) <= room:
        return ShortenedText(text, "")
    left_out = f"{len(text):,} characters in all"
    mark = f"\n[… the middle is left out: {left_out} …]\n"
    size = min(len(text), room * _MAX_TOKEN_CHARS)
    while size > 0:
        start, end = text[: size * 2 // 3], text[len(text) - size // 3 :]
        shortened = start.rstrip() + mark + end.lstrip()
        over = count(shortened) - room
        if over <= 0:
            return ShortenedText(shortened, left_out)
        size = min(size - 1, int(size * max(0.3, 1 - over / (over + room))))
    return ShortenedText("", left_out)


def excerpt_around(text: str, characters: int, words: Collection[str]) -> ShortenedText:
    """The part of a text that has the most of the words and fits, with marks where it is cut. Empty if
    nothing useful fits."""
    if len(text) <= characters:
        return ShortenedText(text, "")
    pieces = _split_pieces(text[:_MAX_EXCERPT_CHARS], max(1, (characters - 2 * len(_ELLIPSIS)) // 2))
    first, last = _find_fullest(pieces, characters - 2 * len(_ELLIPSIS), words)
    part = "".join(pieces[first:last]).strip()
    if not part:
        return ShortenedText("", f"all of it: {characters:,} characters are no room")
    before = "" if not first else "[…]\n" if pieces[first - 1].endswith("\n") else "[…] "
    after = _ELLIPSIS if last < len(pieces) or len(text) > _MAX_EXCERPT_CHARS else ""
    return ShortenedText(f"{before}{part}{after}", f"only {len(part):,} of {len(text):,} characters")


_ELLIPSIS = " […]"
_MAX_EXCERPT_CHARS = 20_000  # of a text: an answer may be a book
_MAX_ATTEMPTS = 200  # parts that are checked for useful text
_SENTENCE = re.compile(r".+?(?:[.!?]\s+|[。！？]\s*|\Z)", re.DOTALL)


def _split_pieces(text: str, size: int) -> list[str]:
    """Split into lines, lines longer than `size` into sentences, and those into groups of words. Joined, the
    pieces are the text."""
    pieces: list[str] = []
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        for sentence in [line] if len(line) <= size else _SENTENCE.findall(line):
            pieces += _split_words(sentence, size)
    return pieces


def _split_words(text: str, size: int) -> Iterator[str]:
    while len(text) > size:
        cut = max(1, len(_cut_at_word(text, size)))
        yield text[:cut]
        text = text[cut:]
    yield text


def _find_fullest(pieces: Sequence[str], room: int, words: Collection[str]) -> tuple[int, int]:
    """The range of pieces with the most of the words; words in few pieces count more. Ties go to the range
    with more occurrences, then to the first. A heading alone does not count."""
    counts = _count_words(pieces, words)
    places = Counter(word for count in counts for word in count)
    inside: Counter[str] = Counter()  # number of pieces in the range with each word
    best, highest = (0, 0), (-1.0, -1)
    last = size = times = attempts = 0
    for first, piece in enumerate(pieces):
        while last < len(pieces) and size + len(pieces[last]) <= room:
            size += len(pieces[last])
            inside.update(counts[last].keys())
            times += sum(counts[last].values())
            last += 1
        fullness = round(sum(1 / places[word] for word in sorted(inside)), 9), times
        if fullness > highest and attempts < _MAX_ATTEMPTS:
            attempts += 1
            if has_content("".join(pieces[first:last])):
                best, highest = (first, last), fullness
        if last > first:
            size -= len(piece)
            times -= sum(counts[first].values())
            inside = inside - Counter(counts[first].keys()) if counts[first] else inside
        last = max(last, first + 1)
    return best


def _count_words(pieces: Sequence[str], words: Collection[str]) -> list[dict[str, int]]:
    """Occurrences of each word in each piece."""
    whole = "".join(pieces).casefold()
    present = [word for word in words if word in whole]
    shortest = min(map(len, present), default=0)
    return [
        {word: times for word in present if (times := piece.casefold().count(word))}
        if present and len(piece) * 3 >= shortest  # casefolding may turn one letter into three
        else {}
        for piece in pieces
    ]


def _split_sections(text: str) -> list[str]:
    """Split before each heading; the text above the first heading is a piece too."""
    pieces: list[list[str]] = [[]]
    for line in scan(text):
        if line.kind == "heading":
            pieces.append([])
        pieces[-1].append(line.text)
    return [piece for lines in pieces if (piece := "\n".join(lines).strip("\n"))]


def _fit_first(
    pieces: Sequence[str],
    room: int,
    count: TokenCounter,
    mark: Callable[[Sequence[str]], str],
    joint: str = "\n\n",
) -> ShortenedText | None:
    """As many first pieces as fit together with the mark about the others."""
    best: ShortenedText | None = None
    low, high = 1, len(pieces) - 1
    while low <= high:
        middle = (low + high) // 2
        left_out = mark(pieces[middle:])
        shortened = joint.join([*pieces[:middle], f"[… {left_out}]"])
        if len(shortened) <= room * _MAX_TOKEN_CHARS and count(shortened) <= room:
            best, low = ShortenedText(shortened, left_out), middle + 1
        else:
            high = middle - 1
    return best


def _describe_missing(missing: Sequence[str]) -> str:
    titles = [title for piece in missing if (title := _title(piece))]
    named = ", ".join(titles[:_MAX_NAMED_SECTIONS]) + (" …" if len(titles) > _MAX_NAMED_SECTIONS else "")
    summary = f"{len(missing)} section{'s' if len(missing) > 1 else ''} left out"
    return f"{summary}: {named}" if named else summary


def _title(piece: str) -> str:
    first = piece.partition("\n")[0].strip("# \t")
    return first if len(first) <= 40 else first[:39] + "…"


def _cut_piece(piece: str, room: int, count: TokenCounter, following: Sequence[str]) -> ShortenedText:
    rest = f"the rest left out{f', {_describe_missing(following)}' if following else ''}"
    for parts, joint in ((re.split(r"\n[ \t]*\n", piece), "\n\n"), (piece.split("\n"), "\n")):
        fitting = _fit_first([*parts, ""], room, count, lambda _: rest, joint)
        if fitting and has_content(fitting.text.rpartition("[…")[0]):
            return fitting
    mark = f" [… {rest}]"
    size = min(len(piece), room * _MAX_TOKEN_CHARS)
    while size > 0:
        shortened = _cut_at_word(piece, size) + mark
        over = count(shortened) - room
        if over <= 0:
            is_useful = has_content(shortened.removesuffix(mark))
            return (
                ShortenedText(shortened, rest)
                if is_useful
                else ShortenedText("", "all of it: there is no room")
            )
        size = min(size - 1, int(size * max(0.3, 1 - over / (over + room))))
    return ShortenedText("", "all of it: there is no room")


def _cut_at_word(text: str, size: int) -> str:
    if size >= len(text):
        return text
    space = max(text.rfind(" ", size // 2, size), text.rfind("\n", size // 2, size))
    return text[: space if space > 0 else size].rstrip()

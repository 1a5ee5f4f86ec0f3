"""A note in pieces small enough to index and to quote.

Text is cut at headings, then between paragraphs and fenced blocks, which are packed together up to the
limit. Only what is too long by itself is cut further: code at line ends; text where a list item or a
sentence ends, else at a line end, else at a space, else anywhere. Every character that is not blank is
in exactly one chunk, in order, and no chunk is longer than the limit.

There is no cap on the number: the 201st chunk of a long file is text that nobody would find again. Who
wants fewer can take a slice and say so. Time grows with the length of the file, whatever is in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise

from tacit.text.frontmatter import BOM
from tacit.text.lines import Line, scan
from tacit.text.notes import split

LIMIT = 1200
_VERSION = "c1"  # of the ids: raise it when the cutting or the hashing changes
_LONGEST_TITLE = 200  # a heading may be megabytes long, and its section is repeated in every chunk
_FARTHEST_BACK = 64  # marks on one letter that a cut still steps over

_ITEM = re.compile(r"(?=\n[ \t]*(?:[-*+>|]|[0-9]{1,9}[.)]))")
_SENTENCE = re.compile(r"[.!?…][\"')\]»”’*_]*(?=\s)|[。！？]")
_LINE = re.compile(r"(?=\n)")
_SPACE = re.compile(r"(?=\s)")
_BLANKS = re.compile(r"\s*")
_ZERO_WIDTH_JOINER = "\u200d"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Lines `start` to `end` of the file, counted from 1; the first and the last may be in part."""

    id: str
    section: tuple[str, ...]  # the headings above, outermost first
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class _Block:
    start: int
    end: int
    text: str
    code: bool = False


def chunks(text: str, limit: int = LIMIT) -> list[Chunk]:
    """The body of a note in chunks of at most `limit` characters; its frontmatter is left out.

    An id depends on the text of the chunk, on its section, and on how many equal ones came before. So
    an edit changes the ids of the chunks it changed and no others.
    """
    seen: Counter[bytes] = Counter()
    named = []
    for chunk in unnamed(text, limit):
        prefix = "\n".join((_VERSION, str(len(chunk.section)), *chunk.section, ""))
        named.append(replace(chunk, id=_name(prefix, chunk.text, seen)))
    return named


def unnamed(text: str, limit: int = LIMIT) -> Iterator[Chunk]:
    """The same chunks without ids, which take a fifth of the time."""
    if limit < 1:
        raise ValueError(f"a chunk has at least one character, so the limit cannot be {limit}")
    head, body = split(text)
    for section, lines in _sections(scan(body.removeprefix(BOM), head.count("\n") + 1)):
        for block in _packed(_blocks(lines), limit):
            yield Chunk("", section, block.start, block.end, block.text)


def pieces(text: str, limit: int = LIMIT) -> list[Chunk]:
    """A message in pieces of at most `limit` characters, lines counted from 0. It is cut for length alone: a
    heading inside a message is part of what was said, and begins nothing new."""
    if len(text) <= limit and "\r" not in text:
        return [Chunk("", (), 0, text.count("\n"), text)] if text.strip() else []
    return [
        Chunk("", (), block.start, block.end, block.text) for block in _packed(_blocks(scan(text, 0)), limit)
    ]


def _name(prefix: str, text: str, seen: Counter[bytes]) -> str:
    digest = sha256((prefix + text).encode("utf-8", "surrogatepass")).digest()
    seen[digest] += 1
    if seen[digest] > 1:
        digest = sha256(digest + str(seen[digest]).encode()).digest()
    return f"{_VERSION}-{digest.hex()[:24]}"


def _sections(lines: Iterable[Line]) -> Iterator[tuple[tuple[str, ...], list[Line]]]:
    path: list[Line] = []
    held: list[Line] = []
    for line in lines:
        if line.kind == "heading":
            yield _titles(path), held
            path = [above for above in path if above.level < line.level] + [line]
            held = []
        held.append(line)
    yield _titles(path), held


def _titles(path: list[Line]) -> tuple[str, ...]:
    return tuple(line.title[:_LONGEST_TITLE] for line in path)


def _blocks(lines: Iterable[Line]) -> Iterator[_Block]:
    """Paragraphs and fenced blocks. A heading stays with the paragraph under it."""
    held: list[Line] = []
    for line in lines:
        if held and _ends_before(line, held):
            yield from _block(held)
            held = []
        if held or line.kind != "blank":
            held.append(line)
    yield from _block(held)


def _ends_before(line: Line, held: list[Line]) -> bool:
    last = held[-1].kind
    if held[0].kind == "fence":
        closed = last == "fence" and len(held) > 1
        return closed or line.kind not in ("code", "fence")
    return line.kind == "fence" or (line.kind == "blank" and last == "text")


def _block(held: list[Line]) -> Iterator[_Block]:
    while held and held[-1].kind == "blank":
        held.pop()
    if held:
        text = "\n".join(line.text for line in held)
        yield _Block(held[0].number, held[-1].number, text, held[0].kind == "fence")


def _packed(blocks: Iterable[_Block], limit: int) -> Iterator[_Block]:
    held: list[_Block] = []
    size = 0
    for block in blocks:
        gap = block.start - held[-1].end if held else 0
        if held and size + gap + len(block.text) <= limit:
            held.append(block)
            size += gap + len(block.text)
        else:
            for piece in _cut_up(block, limit):
                yield from _joined(held)
                held, size = [piece], len(piece.text)
    yield from _joined(held)


def _joined(held: list[_Block]) -> Iterator[_Block]:
    if len(held) == 1:
        yield held[0]
    elif held:
        parts = [held[0].text]
        for above, block in pairwise(held):
            parts += ["\n" * (block.start - above.end), block.text]
        yield _Block(held[0].start, held[-1].end, "".join(parts))


def _cut_up(block: _Block, limit: int) -> Iterator[_Block]:
    if len(block.text) <= limit and block.text.strip():
        yield block
        return
    text, line, at = block.text, block.start, 0
    while at < len(text):
        end = len(text) if len(text) - at <= limit else at + _cut(text[at : at + limit + 1], block.code)
        piece = text[at:end].rstrip()
        if piece:
            yield _Block(line, line + piece.count("\n"), piece, block.code)
        after = _after_blanks(text, end)
        line += text.count("\n", at, after)
        at = after


def _after_blanks(text: str, at: int) -> int:
    """Where the next piece begins: at what is not blank, or at the indentation in front of it."""
    found = _BLANKS.match(text, at)
    end = found.end() if found else at
    newline = text.rfind("\n", at - 1, end)
    return newline + 1 if newline >= 0 else end


def _cut(window: str, code: bool) -> int:
    """Where to cut `window`, which is one character longer than a chunk may be.

    The best kind of place in its second half wins, so that chunks do not get too small.
    """
    longest = len(window) - 1
    shortest = max(1, longest // 2)
    for place in (_LINE, _SPACE) if code else (_ITEM, _SENTENCE, _LINE, _SPACE):
        ends = [found.end() for found in place.finditer(window, shortest - 1)]
        fitting = [end for end in ends if shortest <= end <= longest]
        if fitting:
            return fitting[-1]
    return _between_letters(window, longest, shortest)


def _between_letters(window: str, longest: int, shortest: int) -> int:
    for at in range(longest, max(shortest, longest - _FARTHEST_BACK), -1):
        if not _joins(window[at - 1], window[at]):
            return at
    return longest


def _joins(left: str, right: str) -> bool:
    """Whether both make one visible letter: accents, joined emoji, skin tones. Flags are not known."""
    return (
        unicodedata.category(right).startswith("M")
        or _ZERO_WIDTH_JOINER in (left, right)
        or "\U0001f3fb" <= right <= "\U0001f3ff"
    )

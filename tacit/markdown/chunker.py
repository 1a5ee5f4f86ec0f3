"""Splits a note into chunks small enough to index and to quote.

Text is split at headings, then between paragraphs and fenced blocks, which are packed together up to the
limit. A block that is too long by itself is split further: code at line ends; text at the end of a list item
or a sentence, else at a line end, else at a space, else anywhere. Every character that is not blank is in
exactly one chunk, in order, and no chunk is longer than the limit.

The number of chunks is not limited: without the 201st chunk of a long file its text could not be found. A
caller that wants fewer can take a slice. Time is linear in the length of the file.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise

from tacit.markdown.notes import split
from tacit.text.lines import MarkdownLine, scan
from tacit.text.yaml_reader import BOM

MAX_CHUNK_CHARS = 1200
_VERSION = "c1"  # of the ids: raise it when the splitting or the hashing changes
_MAX_TITLE_CHARS = 200  # a heading may be megabytes long, and its section is repeated in every chunk
_MAX_STEPS_BACK = 64  # marks on one letter that a cut still steps over

_ITEM_START = re.compile(r"(?=\n[ \t]*(?:[-*+>|]|[0-9]{1,9}[.)]))")
_SENTENCE_END = re.compile(r"[.!?…][\"')\]»”’*_]*(?=\s)|[。！？]")
_LINE_END = re.compile(r"(?=\n)")
_SPACE = re.compile(r"(?=\s)")
_BLANKS = re.compile(r"\s*")
_ZERO_WIDTH_JOINER = "\u200d"


@dataclass(frozen=True, slots=True)
class TextChunk:
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


def split_chunks(text: str, limit: int = MAX_CHUNK_CHARS) -> list[TextChunk]:
    """The body of a note in chunks of at most `limit` characters; its frontmatter is left out.

    An id depends on the text of the chunk, on its section, and on how many equal ones came before. So
    an edit changes the ids of the chunks it changed and no others.
    """
    count_by_digest: Counter[bytes] = Counter()
    identified = []
    for chunk in iterate_chunks(text, limit):
        prefix = "\n".join((_VERSION, str(len(chunk.section)), *chunk.section, ""))
        identified.append(replace(chunk, id=_make_id(prefix, chunk.text, count_by_digest)))
    return identified


def iterate_chunks(text: str, limit: int = MAX_CHUNK_CHARS) -> Iterator[TextChunk]:
    """The same chunks without ids, which take a fifth of the time."""
    if limit < 1:
        raise ValueError(f"a chunk has at least one character, so the limit cannot be {limit}")
    head, body = split(text)
    for section, lines in _split_sections(scan(body.removeprefix(BOM), head.count("\n") + 1)):
        for block in _pack_blocks(_split_blocks(lines), limit):
            yield TextChunk("", section, block.start, block.end, block.text)


def split_message(text: str, limit: int = MAX_CHUNK_CHARS) -> list[TextChunk]:
    """A message in chunks of at most `limit` characters, lines counted from 0. Only length counts: a heading
    inside a message is part of its text and begins no section."""
    if len(text) <= limit and "\r" not in text:
        return [TextChunk("", (), 0, text.count("\n"), text)] if text.strip() else []
    return [
        TextChunk("", (), block.start, block.end, block.text)
        for block in _pack_blocks(_split_blocks(scan(text, 0)), limit)
    ]


def _make_id(prefix: str, text: str, count_by_digest: Counter[bytes]) -> str:
    digest = sha256((prefix + text).encode("utf-8", "surrogatepass")).digest()
    count_by_digest[digest] += 1
    if count_by_digest[digest] > 1:
        digest = sha256(digest + str(count_by_digest[digest]).encode()).digest()
    return f"{_VERSION}-{digest.hex()[:24]}"


def _split_sections(lines: Iterable[MarkdownLine]) -> Iterator[tuple[tuple[str, ...], list[MarkdownLine]]]:
    path: list[MarkdownLine] = []
    section_lines: list[MarkdownLine] = []
    for line in lines:
        if line.kind == "heading":
            yield _section_titles(path), section_lines
            path = [above for above in path if above.level < line.level] + [line]
            section_lines = []
        section_lines.append(line)
    yield _section_titles(path), section_lines


def _section_titles(path: list[MarkdownLine]) -> tuple[str, ...]:
    return tuple(line.title[:_MAX_TITLE_CHARS] for line in path)


def _split_blocks(lines: Iterable[MarkdownLine]) -> Iterator[_Block]:
    """Paragraphs and fenced blocks. A heading stays with the paragraph under it."""
    block_lines: list[MarkdownLine] = []
    for line in lines:
        if block_lines and _ends_before(line, block_lines):
            yield from _make_block(block_lines)
            block_lines = []
        if block_lines or line.kind != "blank":
            block_lines.append(line)
    yield from _make_block(block_lines)


def _ends_before(line: MarkdownLine, block_lines: list[MarkdownLine]) -> bool:
    last = block_lines[-1].kind
    if block_lines[0].kind == "fence":
        is_closed = last == "fence" and len(block_lines) > 1
        return is_closed or line.kind not in ("code", "fence")
    return line.kind == "fence" or (line.kind == "blank" and last == "text")


def _make_block(block_lines: list[MarkdownLine]) -> Iterator[_Block]:
    while block_lines and block_lines[-1].kind == "blank":
        block_lines.pop()
    if block_lines:
        text = "\n".join(line.text for line in block_lines)
        yield _Block(block_lines[0].number, block_lines[-1].number, text, block_lines[0].kind == "fence")


def _pack_blocks(blocks: Iterable[_Block], limit: int) -> Iterator[_Block]:
    pending: list[_Block] = []
    size = 0
    for block in blocks:
        gap = block.start - pending[-1].end if pending else 0
        if pending and size + gap + len(block.text) <= limit:
            pending.append(block)
            size += gap + len(block.text)
        else:
            for piece in _split_block(block, limit):
                yield from _join_blocks(pending)
                pending, size = [piece], len(piece.text)
    yield from _join_blocks(pending)


def _join_blocks(blocks: list[_Block]) -> Iterator[_Block]:
    if len(blocks) == 1:
        yield blocks[0]
    elif blocks:
        parts = [blocks[0].text]
        for above, block in pairwise(blocks):
            parts += ["\n" * (block.start - above.end), block.text]
        yield _Block(blocks[0].start, blocks[-1].end, "".join(parts))


def _split_block(block: _Block, limit: int) -> Iterator[_Block]:
    if len(block.text) <= limit and block.text.strip():
        yield block
        return
    text, line, start = block.text, block.start, 0
    while start < len(text):
        end = (
            len(text)
            if len(text) - start <= limit
            else start + _find_cut(text[start : start + limit + 1], block.code)
        )
        piece = text[start:end].rstrip()
        if piece:
            yield _Block(line, line + piece.count("\n"), piece, block.code)
        following = _skip_blanks(text, end)
        line += text.count("\n", start, following)
        start = following


def _skip_blanks(text: str, start: int) -> int:
    """Where the next chunk begins: at the next text, or at the indentation in front of it."""
    match = _BLANKS.match(text, start)
    end = match.end() if match else start
    newline = text.rfind("\n", start - 1, end)
    return newline + 1 if newline >= 0 else end


def _find_cut(window: str, code: bool) -> int:
    """Where to cut `window`, which is one character longer than a chunk may be.

    The best kind of place in its second half is used, so that chunks do not get too small.
    """
    longest = len(window) - 1
    shortest = max(1, longest // 2)
    for pattern in (_LINE_END, _SPACE) if code else (_ITEM_START, _SENTENCE_END, _LINE_END, _SPACE):
        ends = [match.end() for match in pattern.finditer(window, shortest - 1)]
        fitting = [end for end in ends if shortest <= end <= longest]
        if fitting:
            return fitting[-1]
    return _find_letter_cut(window, longest, shortest)


def _find_letter_cut(window: str, longest: int, shortest: int) -> int:
    for index in range(longest, max(shortest, longest - _MAX_STEPS_BACK), -1):
        if not _is_one_letter(window[index - 1], window[index]):
            return index
    return longest


def _is_one_letter(left: str, right: str) -> bool:
    """Whether both form one visible letter: accents, joined emoji, skin tones. Flags are not recognized."""
    return (
        unicodedata.category(right).startswith("M")
        or _ZERO_WIDTH_JOINER in (left, right)
        or "\U0001f3fb" <= right <= "\U0001f3ff"
    )

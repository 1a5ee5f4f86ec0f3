"""Finds context that tacit itself put into a prompt or a note, so that it is not remembered as if a person
had said it.

    compiled text      `<!-- knowledge e722 -->` … `<!-- /knowledge e722 -->` with one delimiter, and blocks
                       without an end of their own: system, identity:…, topic:…, correction:…, message
    ETHOS_CONTEXT.md   `<!-- ethos:context … -->` … `<!-- /ethos:context… -->`
    daily notes        `<!-- adaptive-memory:session=… -->` … `---`

What must stay true: nothing but such a block is removed. A person may quote its opening line, so that line
alone is no block; the text below it must have the form of one:
- a fence has its first source (`[e722 …]`) right below. If its end is cut off, as in a truncated answer, it
  ends with the paragraph below its last source, and the headings above that paragraph; if its beginning is
  cut off, it begins with its first source;
- a block without an end reaches to the next block, and counts only if a real one follows, or the line
  `<!-- /context -->`; right below a real one it counts as well and ends like a truncated fence, and so does a
  conversation. The text below `message` is its sender's and stays: only the line above it is removed;
- the other two have their heading in the second line; without an end they reach as far as their form does.

Time grows with the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

PLACEHOLDER = "[own context]"  # replaces a message that was nothing else

_FENCE_CODE = "[a-z][0-9]{3}|[0-9a-f]{64}"
_FENCED = "memory|journal|projects|subscriptions|knowledge|history"
# A line ends with a newline, or with the two letters that stand for one in JSON.
_LINE_END = r"(?=[ \t]*+(?:\r?\n|\\[rn]|\Z))"
_MARKS = re.compile(
    rf"<!-- (?P<slot>{_FENCED}) (?P<opens>{_FENCE_CODE}) -->"
    rf"|<!-- /(?P<closed>{_FENCED}) (?P<closes>{_FENCE_CODE}) -->"
    rf"|\[(?P<source>{_FENCE_CODE}) "
    # `Between` alone is how earlier versions began.
    r"|(?P<system><!-- system -->(?:[\s>]|\\[rn])*+(?:Text between|Between) <!-- name code -->"
    r"[^\n\\]{0,250}?instructions\.)"
    rf"|(?P<message><!-- message (?:{_FENCE_CODE}) -->){_LINE_END}"
    rf"|(?P<endless><!-- (?:identity|topic|correction):[\w./:@+ -]{{1,200}} -->){_LINE_END}"
    r"|(?P<end><!-- /context -->)"
)
_BLANKS = re.compile(r"(?:[\s>]|\\[rn])*+")
_HEADINGS = re.compile(  # the rest of a source's line, and headings: they carry no text of their own
    r"[^\n\\]*+(?:(?:[\s>]|\\[rn])++#{1,6} [^\n\\]*+)*+(?:[\s>]|\\[rn])*+"
)
_PARAGRAPH_END = re.compile(r"\n[ \t>]*+\r?(?=\n)|\\n(?=\\n)|\Z")
_BLANK_LINES = re.compile(r"(?:[ \t]*+\r?\n){0,2}")

_CONTEXT_FILE = re.compile(
    r"^[ \t>]*<!-- ethos:context [^\n]{0,200}?-->[ \t]*\r?\n[ \t>]*## \S{1,8} Memory Context[^\n]*+",
    re.MULTILINE,
)
_CONTEXT_FILE_END = re.compile(r"^[ \t>]*<!-- /ethos:context[^\n]{0,200}?-->", re.MULTILINE)
_CONTEXT_FILE_LINES = re.compile(
    r"(?:(?:[ \t>]*+\r?\n)++[ \t>]*+(?:Relevant memories retrieved|\d{1,6}\. \*\*\[)[^\n]*+)*+"
)
_SECTION = re.compile(
    r"^<!-- adaptive-memory:session=[^\n]{0,250}?-->[ \t]*\r?\n## Adaptive Memory Context[^\n]*+",
    re.MULTILINE,
)
_SECTION_END = re.compile(r"^---(?=[ \t]*\r?$)", re.MULTILINE)
_SECTION_LINES = re.compile(r"(?:(?:[ \t]*+\r?\n)++(?:\*Loaded at |Query: |>|### \d{1,6}\. )[^\n]*+)*+")

Span = tuple[int, int]


def remove_injected(text: str) -> str:
    """The text without the context that tacit put into it."""
    spans = sorted([*_find_blocks(text), *_context_files(text), *find_injected_sections(text)])
    if not spans:
        return text
    pieces, position = [], 0
    for begin, end in (_include_blanks(text, *span) for span in spans):
        pieces.append(text[position : max(position, begin)])
        position = max(position, end)
    remaining = "".join([*pieces, text[position:]])
    remaining = remaining.lstrip("\r\n") if not pieces[0] else remaining
    return remaining.rstrip() if position == len(text) else remaining


def remove_sections(text: str) -> str:
    """A note without the sections that daily delivery added. Every other line keeps its number."""
    pieces, position = [], 0
    for begin, end in find_injected_sections(text):
        pieces += [text[position:begin], "\n" * text.count("\n", begin, end)]
        position = end
    return "".join([*pieces, text[position:]])


def find_injected_sections(text: str) -> Iterator[Span]:
    """The spans of sections from daily delivery."""
    if "<!-- adaptive-memory:session=" in text:
        yield from _find_spans(text, _SECTION, _SECTION_END, _SECTION_LINES)


def _context_files(text: str) -> Iterator[Span]:
    if "<!-- ethos:context " in text:
        yield from _find_spans(text, _CONTEXT_FILE, _CONTEXT_FILE_END, _CONTEXT_FILE_LINES)


def _find_spans(
    text: str, opening: re.Pattern[str], closing: re.Pattern[str], lines: re.Pattern[str]
) -> Iterator[Span]:
    """From each opening to the first end before the next opening; else as far as the lines keep the form."""
    begins = list(opening.finditer(text))
    ends = iter(closing.finditer(text))
    end = next(ends, None)
    for index, begin in enumerate(begins):
        limit = begins[index + 1].start() if index + 1 < len(begins) else len(text)
        while end is not None and end.start() < begin.end():
            end = next(ends, None)
        if end is not None and end.start() < limit:
            yield begin.start(), end.end()
        else:
            form = lines.match(text, begin.end())
            yield begin.start(), form.end() if form is not None else begin.end()


def _include_blanks(text: str, begin: int, end: int) -> Span:
    """The span with the quote marks before it on its first line, and the blank lines after it."""
    lead = text[max(0, begin - 16) : begin]
    bare = lead.rstrip(" \t>")
    if bare.endswith("\n") or len(bare) == 0 == begin - len(lead):
        blank = _BLANK_LINES.match(text, end)
        return begin - len(lead) + len(bare), blank.end() if blank is not None else end
    return begin, end


# Compiled text


class _Mark(NamedTuple):
    """One place that looks like ours. `key`: the section and code of a fence, or the code of a source."""

    kind: str  # opens, closes, source, system, message, endless, end
    begin: int
    end: int
    key: str


def _find_blocks(text: str) -> Iterator[Span]:
    if "<!-- " not in text:
        return
    marks = [mark for match in _MARKS.finditer(text) if (mark := _read_mark(text, match)) is not None]
    ends = _block_ends(text, marks)
    covered, first_sources = 0, dict[str, int]()  # of each code, the first source that is in no block
    for index, (mark, end) in enumerate(zip(marks, ends, strict=True)):
        if mark.begin < covered:
            continue
        if mark.kind == "source":
            first_sources.setdefault(mark.key, mark.begin)
        elif mark.kind == "closes":
            start = first_sources.pop(mark.key.partition(" ")[2], None)
            if start is not None:
                yield start, mark.end
                covered = mark.end
        elif end > mark.begin:
            yield mark.begin, end
            covered = end
        elif (
            mark.kind in ("endless", "opens") and covered and not text[covered : mark.begin].strip("> \t\r\n")
        ):
            limit = marks[index + 1].begin if index + 1 < len(marks) else len(text)
            covered = _paragraph_end(text, mark.end, limit)
            yield mark.begin, covered


def _read_mark(text: str, match: re.Match[str]) -> _Mark | None:
    kind = match.lastgroup or ""
    if kind == "opens":
        key = f"{match['slot']} {match['opens']}"
    elif kind == "closes":
        key = f"{match['closed']} {match['closes']}"
    else:
        key = match["source"] or ""
    if kind in ("source", "message", "endless") and not _is_line_start(text, match.start()):
        return None
    if kind == "opens" and not _has_fence_form(text, match):
        return None
    return _Mark(kind, match.start(), match.end(), key)


def _is_line_start(text: str, start: int) -> bool:
    preceding = text[max(0, start - 4) : start].rstrip(" \t>")
    return preceding == "" or preceding.endswith(("\n", "\\n", '"', "--"))


def _has_fence_form(text: str, match: re.Match[str]) -> bool:
    """Whether the line that opens a fence is followed by what we put there."""
    rest = _BLANKS.match(text, match.end())
    start = rest.end() if rest is not None else match.end()
    return start > match.end() and (
        match["slot"] == "history" or text.startswith(f"[{match['opens']} ", start)
    )


def _block_ends(text: str, marks: Sequence[_Mark]) -> list[int]:
    """The end of the block that each mark opens; 0 if it opens none."""
    ends = [0] * len(marks)
    closing: dict[str, int] = {}  # of each fence where the next end of it stands; 0: it opens once more
    below = 0  # where a block without an end would end that stands above; 0: unknown
    for index in reversed(range(len(marks))):
        mark = marks[index]
        if mark.kind == "closes":
            closing[mark.key] = mark.end
        elif mark.kind != "source":
            ends[index] = _block_end(text, marks, index, closing, below)
            below = mark.end if mark.kind == "end" else mark.begin if ends[index] else 0
    return ends


def _block_end(text: str, marks: Sequence[_Mark], index: int, closing: dict[str, int], below: int) -> int:
    mark = marks[index]
    if mark.kind == "endless":
        return below
    if mark.kind != "opens":
        return mark.end
    end = closing.get(mark.key, 0) or _truncated_end(text, marks, index)
    closing[mark.key] = 0
    return end


def _truncated_end(text: str, marks: Sequence[_Mark], index: int) -> int:
    """The end of a fence whose closing line is missing: the paragraph below its last source. For a
    conversation on its own the end is unknown."""
    code, below = marks[index].key.partition(" ")[2], index + 1
    while below < len(marks) and marks[below].kind == "source" and marks[below].key == code:
        below += 1
    if below == index + 1:
        return 0
    limit = marks[below].begin if below < len(marks) else len(text)
    return _paragraph_end(text, marks[below - 1].end, limit)


def _paragraph_end(text: str, begin: int, limit: int) -> int:
    headings = _HEADINGS.match(text, begin, limit)
    match = _PARAGRAPH_END.search(text, headings.end() if headings is not None else begin, limit)
    return match.end() if match is not None else limit

"""What tacit itself put into a prompt or a note, found again: it must not be remembered as if somebody had
said it.

    compiled text      `<!-- knowledge e722 -->` … `<!-- /knowledge e722 -->` with one fence mark, and blocks
                       that have no end of their own: system, identity:…, topic:…, correction:…, message
    ETHOS_CONTEXT.md   `<!-- ethos:context … -->` … `<!-- /ethos:context… -->`
    daily notes        `<!-- adaptive-memory:session=… -->` … `---`

What must stay true: never more than such a block is taken out. Somebody may quote the line that opens one, so
that line alone is no block; what follows must have its form:
- a fence has its first source (`[e722 …]`) right below. One that is cut off, because an answer was, ends with
  the paragraph below the last of its sources, and the headings above that; one whose beginning is cut off
  begins with the first of them;
- a block without an end reaches to the next block, and counts only if a real one follows, or the line
  `<!-- /context -->`; right below a real one it counts as well, and ends as a fence does that is cut off, and
  so does a conversation. The text below `message` is its sender's and stays: only the line above it goes;
- the other two have their heading in the second line; without their end they go as far as their form does.

Time grows with the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

MARK = "[own context]"  # in place of a message that was nothing else

_CODE = "[a-z][0-9]{3}|[0-9a-f]{64}"
_FENCED = "memory|journal|projects|subscriptions|knowledge|history"
# A line ends with a newline, or with the two letters that stand for one in JSON.
_LINE_END = r"(?=[ \t]*+(?:\r?\n|\\[rn]|\Z))"
_OURS = re.compile(
    rf"<!-- (?P<slot>{_FENCED}) (?P<opens>{_CODE}) -->"
    rf"|<!-- /(?P<closed>{_FENCED}) (?P<closes>{_CODE}) -->"
    rf"|\[(?P<source>{_CODE}) "
    r"|(?P<system><!-- system -->(?:[\s>]|\\[rn])*+Between <!-- name code -->[^\n\\]{0,250}?instructions\.)"
    rf"|(?P<message><!-- message (?:{_CODE}) -->){_LINE_END}"
    rf"|(?P<endless><!-- (?:identity|topic|correction):[\w./:@+ -]{{1,200}} -->){_LINE_END}"
    r"|(?P<end><!-- /context -->)"
)
_NOTHING = re.compile(r"(?:[\s>]|\\[rn])*+")
_HEADINGS = re.compile(  # the rest of the line of a source, and headings: alone they say nothing
    r"[^\n\\]*+(?:(?:[\s>]|\\[rn])++#{1,6} [^\n\\]*+)*+(?:[\s>]|\\[rn])*+"
)
_PARAGRAPH_END = re.compile(r"\n[ \t>]*+\r?(?=\n)|\\n(?=\\n)|\Z")
_AFTER = re.compile(r"(?:[ \t]*+\r?\n){0,2}")

_MIRROR = re.compile(
    r"^[ \t>]*<!-- ethos:context [^\n]{0,200}?-->[ \t]*\r?\n[ \t>]*## \S{1,8} Memory Context[^\n]*+",
    re.MULTILINE,
)
_MIRROR_END = re.compile(r"^[ \t>]*<!-- /ethos:context[^\n]{0,200}?-->", re.MULTILINE)
_MIRROR_LINES = re.compile(
    r"(?:(?:[ \t>]*+\r?\n)++[ \t>]*+(?:Relevant memories retrieved|\d{1,6}\. \*\*\[)[^\n]*+)*+"
)
_SECTION = re.compile(
    r"^<!-- adaptive-memory:session=[^\n]{0,250}?-->[ \t]*\r?\n## Adaptive Memory Context[^\n]*+",
    re.MULTILINE,
)
_SECTION_END = re.compile(r"^---(?=[ \t]*\r?$)", re.MULTILINE)
_SECTION_LINES = re.compile(r"(?:(?:[ \t]*+\r?\n)++(?:\*Loaded at |Query: |>|### \d{1,6}\. )[^\n]*+)*+")

Span = tuple[int, int]


def without_ours(text: str) -> str:
    """The text without what tacit put into it."""
    spans = sorted([*_blocks(text), *_mirrors(text), *sections(text)])
    if not spans:
        return text
    pieces, at = [], 0
    for begin, end in (_with_blanks(text, *span) for span in spans):
        pieces.append(text[at : max(at, begin)])
        at = max(at, end)
    left = "".join([*pieces, text[at:]])
    left = left.lstrip("\r\n") if not pieces[0] else left
    return left.rstrip() if at == len(text) else left


def without_sections(text: str) -> str:
    """A note without what the daily lane added to it. Every other line keeps its number."""
    pieces, at = [], 0
    for begin, end in sections(text):
        pieces += [text[at:begin], "\n" * text.count("\n", begin, end)]
        at = end
    return "".join([*pieces, text[at:]])


def sections(text: str) -> Iterator[Span]:
    """Where the daily lane's are."""
    if "<!-- adaptive-memory:session=" in text:
        yield from _ended(text, _SECTION, _SECTION_END, _SECTION_LINES)


def _mirrors(text: str) -> Iterator[Span]:
    if "<!-- ethos:context " in text:
        yield from _ended(text, _MIRROR, _MIRROR_END, _MIRROR_LINES)


def _ended(
    text: str, opening: re.Pattern[str], closing: re.Pattern[str], lines: re.Pattern[str]
) -> Iterator[Span]:
    """From each opening to the first end before the next opening; else as far as the lines have its form."""
    begins = list(opening.finditer(text))
    ends = iter(closing.finditer(text))
    end = next(ends, None)
    for at, begin in enumerate(begins):
        most = begins[at + 1].start() if at + 1 < len(begins) else len(text)
        while end is not None and end.start() < begin.end():
            end = next(ends, None)
        if end is not None and end.start() < most:
            yield begin.start(), end.end()
        else:
            form = lines.match(text, begin.end())
            yield begin.start(), form.end() if form is not None else begin.end()


def _with_blanks(text: str, begin: int, end: int) -> Span:
    """With the rest of its first line, where nothing but quote marks stands there, and blank lines behind."""
    lead = text[max(0, begin - 16) : begin]
    bare = lead.rstrip(" \t>")
    if bare.endswith("\n") or len(bare) == 0 == begin - len(lead):
        blank = _AFTER.match(text, end)
        return begin - len(lead) + len(bare), blank.end() if blank is not None else end
    return begin, end


# Compiled text


class _Mark(NamedTuple):
    """One place that looks like ours. `key`: of a fence its slot and code, of a source its code."""

    kind: str  # opens, closes, source, system, message, endless, end
    begin: int
    end: int
    key: str


def _blocks(text: str) -> Iterator[Span]:
    if "<!-- " not in text:
        return
    marks = [mark for found in _OURS.finditer(text) if (mark := _mark(text, found)) is not None]
    ends = _ends(text, marks)
    taken, first = 0, dict[str, int]()  # of each code, the first source that is in no block
    for at, (mark, end) in enumerate(zip(marks, ends, strict=True)):
        if mark.begin < taken:
            continue
        if mark.kind == "source":
            first.setdefault(mark.key, mark.begin)
        elif mark.kind == "closes":
            begun = first.pop(mark.key.partition(" ")[2], None)
            if begun is not None:
                yield begun, mark.end
                taken = mark.end
        elif end > mark.begin:
            yield mark.begin, end
            taken = end
        elif mark.kind in ("endless", "opens") and taken and not text[taken : mark.begin].strip("> \t\r\n"):
            most = marks[at + 1].begin if at + 1 < len(marks) else len(text)
            taken = _paragraph_end(text, mark.end, most)
            yield mark.begin, taken


def _mark(text: str, found: re.Match[str]) -> _Mark | None:
    kind = found.lastgroup or ""
    if kind == "opens":
        key = f"{found['slot']} {found['opens']}"
    elif kind == "closes":
        key = f"{found['closed']} {found['closes']}"
    else:
        key = found["source"] or ""
    if kind in ("source", "message", "endless") and not _begins_line(text, found.start()):
        return None
    if kind == "opens" and not _has_form(text, found):
        return None
    return _Mark(kind, found.start(), found.end(), key)


def _begins_line(text: str, at: int) -> bool:
    before = text[max(0, at - 4) : at].rstrip(" \t>")
    return before == "" or before.endswith(("\n", "\\n", '"', "--"))


def _has_form(text: str, found: re.Match[str]) -> bool:
    """Whether below the line that opens a fence stands what we put there."""
    rest = _NOTHING.match(text, found.end())
    at = rest.end() if rest is not None else found.end()
    return at > found.end() and (found["slot"] == "history" or text.startswith(f"[{found['opens']} ", at))


def _ends(text: str, marks: Sequence[_Mark]) -> list[int]:
    """For each mark where its block ends; 0 where it opens none."""
    ends = [0] * len(marks)
    closing: dict[str, int] = {}  # of each fence where the next end of it stands; 0: it opens once more
    below = 0  # where a block without an end would end that stands above; 0: nobody knows
    for at in reversed(range(len(marks))):
        mark = marks[at]
        if mark.kind == "closes":
            closing[mark.key] = mark.end
        elif mark.kind != "source":
            ends[at] = _end(text, marks, at, closing, below)
            below = mark.end if mark.kind == "end" else mark.begin if ends[at] else 0
    return ends


def _end(text: str, marks: Sequence[_Mark], at: int, closing: dict[str, int], below: int) -> int:
    mark = marks[at]
    if mark.kind == "endless":
        return below
    if mark.kind != "opens":
        return mark.end
    end = closing.get(mark.key, 0) or _cut_off(text, marks, at)
    closing[mark.key] = 0
    return end


def _cut_off(text: str, marks: Sequence[_Mark], at: int) -> int:
    """Where a fence ends whose end is missing: with the paragraph below the last source of its own. Of a
    conversation that stands alone nobody can tell."""
    code, below = marks[at].key.partition(" ")[2], at + 1
    while below < len(marks) and marks[below].kind == "source" and marks[below].key == code:
        below += 1
    if below == at + 1:
        return 0
    most = marks[below].begin if below < len(marks) else len(text)
    return _paragraph_end(text, marks[below - 1].end, most)


def _paragraph_end(text: str, begin: int, most: int) -> int:
    above = _HEADINGS.match(text, begin, most)
    found = _PARAGRAPH_END.search(text, above.end() if above is not None else begin, most)
    return found.end() if found is not None else most

"""What a rewritten MEMORY.md must have kept of the old one. A model's answer may end where its tokens did;
such a file must never replace a whole one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tacit.lifecycle.apply import MEMORY, lines_of
from tacit.lifecycle.condense.asking import gives_orders
from tacit.lifecycle.items import items
from tacit.model.problems import Problem
from tacit.text import marks, notes
from tacit.text.lines import scan
from tacit.text.words import fold

KEPT = 0.7  # of the entries
_SHORTEST_CUT = 8  # characters from which the beginning of an old line is a cut one
_OWN = ("updated", "line_count")  # fields that a rewrite changes
_TODO = "The old text stays."


def validate_rewrite(old: str, new: str, cap: int | None = None, path: str = MEMORY) -> list[Problem]:
    """What speaks against `new` in the place of `old`; nothing does where the list is empty."""
    found = (*_head(old, new), *_headings(old, new), *_entries(old, new), *_cut(old, new))
    problems = [*found, *_orders(old, new)]
    if cap is not None and lines_of(new) > cap:
        problems.append(f"It has {lines_of(new)} lines, over the cap of {cap}.")
    return [Problem(path, what, _TODO) for what in problems]


def _head(old: str, new: str) -> Iterator[str]:
    before, after = notes.parse(old), notes.parse(new)
    if any(problem.level == "error" for problem in after.problems):
        yield "Its frontmatter cannot be read."
    for key, value in before.fields.items():
        if key not in after.fields:
            yield f"Its frontmatter lost `{key}`."
        elif key not in _OWN and repr(after.fields[key]) != repr(value):
            yield f"Its frontmatter has another `{key}`."


def _headings(old: str, new: str) -> Iterator[str]:
    lost = Counter(_titles(old)) - Counter(_titles(new))
    for level, title in lost:
        yield f"The heading `{'#' * level} {title}` is gone."


def _titles(text: str) -> list[tuple[int, str]]:
    body = notes.split(text)[1]
    return [(line.level, line.title) for line in scan(body) if line.kind == "heading"]


def _entries(old: str, new: str) -> Iterator[str]:
    """By their words: an entry that moved, got a mark or stood there twice is still there."""
    before, after = _said(old), set(_said(new))
    total, kept = len(before), sum(one in after for one in before)
    if kept < KEPT * total:
        yield f"Only {kept} of {total} entries are kept; at least {KEPT:.0%} must be."


def _said(text: str) -> list[str]:
    return [fold(one.said) for one in items(text)]


def _cut(old: str, new: str) -> Iterator[str]:
    if old.endswith("\n") and not new.endswith("\n"):
        yield "Its last line has no end."
    if new.count("<!--") > new.count("-->"):
        yield "A comment in it is never closed."
    if _open_fences(new) > _open_fences(old):
        yield "A block of code in it is never closed."
    there = {_bare(line) for line in old.split("\n")}
    for line in new.split("\n"):
        bare = _bare(line)
        if bare not in there and len(bare) >= _SHORTEST_CUT and any(one.startswith(bare) for one in there):
            yield f"A line is cut short: {bare[:60]!r}."


def _bare(line: str) -> str:
    return marks.as_it_held(marks.read(line.rstrip("\r"))[0]).rstrip()


def _open_fences(text: str) -> int:
    last = ""
    for line in scan(text):
        last = line.kind
    return sum(line.kind == "fence" for line in scan(text)) % 2 or int(last == "code")


def _orders(old: str, new: str) -> Iterator[str]:
    there = set(_said(old))
    for one in items(new):
        if fold(one.said) not in there and one.mark is None and gives_orders(one.said):
            yield f"A new line tells what to do and has no source: {one.said[:60]!r}."
    known = {line.strip() for line in old.split("\n")}
    listed = {at for one in items(new) for at in range(one.start, one.stop)}
    for at, line in enumerate(new.split("\n")):
        if at not in listed and line.strip() not in known and gives_orders(line):
            yield f"A new line tells what to do and has no source: {line.strip()[:60]!r}."

"""Check what a rewritten MEMORY.md must keep of the old one. A model's answer may be cut off at its token
limit, and such a text must never replace a complete file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tacit.diagnostics import Problem
from tacit.home.layout import MEMORY
from tacit.learn.model_answers import gives_orders
from tacit.markdown import comment, notes
from tacit.markdown.items import line_count, read_items
from tacit.text.lines import scan
from tacit.text.words import fold

MIN_KEPT_SHARE = 0.7  # of the entries
_MIN_CUT_CHARS = 8  # a new line of at least this length that begins an old one counts as cut off
_CHANGING_FIELDS = ("updated", "line_count")  # fields that a rewrite changes
_TODO = "The old text stays."


def validate_rewrite(old: str, new: str, cap: int | None = None, path: str = MEMORY) -> list[Problem]:
    """The problems of replacing `old` by `new`; empty if there are none."""
    findings = (
        *_check_frontmatter(old, new),
        *_check_headings(old, new),
        *_check_entries(old, new),
        *_check_cut(old, new),
    )
    problems = [*findings, *_check_orders(old, new)]
    if cap is not None and line_count(new) > cap:
        problems.append(f"It has {line_count(new)} lines, over the cap of {cap}.")
    return [Problem(path, message, _TODO) for message in problems]


def _check_frontmatter(old: str, new: str) -> Iterator[str]:
    before, after = notes.parse(old), notes.parse(new)
    if any(problem.level == "error" for problem in after.problems):
        yield "Its frontmatter cannot be read."
    for key, value in before.fields.items():
        if key not in after.fields:
            yield f"Its frontmatter lost `{key}`."
        elif key not in _CHANGING_FIELDS and repr(after.fields[key]) != repr(value):
            yield f"Its frontmatter has another `{key}`."


def _check_headings(old: str, new: str) -> Iterator[str]:
    lost = Counter(_heading_titles(old)) - Counter(_heading_titles(new))
    for level, title in lost:
        yield f"The heading `{'#' * level} {title}` is gone."


def _heading_titles(text: str) -> list[tuple[int, str]]:
    body = notes.split(text)[1]
    return [(line.level, line.title) for line in scan(body) if line.kind == "heading"]


def _check_entries(old: str, new: str) -> Iterator[str]:
    """Compare entries by their words: a moved, newly marked or deduplicated entry is still there."""
    before, after = _statements(old), set(_statements(new))
    total, kept_count = len(before), sum(statement in after for statement in before)
    if kept_count < MIN_KEPT_SHARE * total:
        yield f"Only {kept_count} of {total} entries are kept; at least {MIN_KEPT_SHARE:.0%} must be."


def _statements(text: str) -> list[str]:
    return [fold(item.said) for item in read_items(text)]


def _check_cut(old: str, new: str) -> Iterator[str]:
    if old.endswith("\n") and not new.endswith("\n"):
        yield "Its last line has no end."
    if new.count("<!--") > new.count("-->"):
        yield "A comment in it is never closed."
    if _open_fences(new) > _open_fences(old):
        yield "A block of code in it is never closed."
    old_lines = {_bare_text(line) for line in old.split("\n")}
    for line in new.split("\n"):
        text = _bare_text(line)
        if (
            text not in old_lines
            and len(text) >= _MIN_CUT_CHARS
            and any(old_line.startswith(text) for old_line in old_lines)
        ):
            yield f"A line is cut short: {text[:60]!r}."


def _bare_text(line: str) -> str:
    return comment.strip_superseded(comment.read(line.rstrip("\r"))[0]).rstrip()


def _open_fences(text: str) -> int:
    last = ""
    for line in scan(text):
        last = line.kind
    return sum(line.kind == "fence" for line in scan(text)) % 2 or int(last == "code")


def _check_orders(old: str, new: str) -> Iterator[str]:
    old_statements = set(_statements(old))
    for item in read_items(new):
        if fold(item.said) not in old_statements and item.mark is None and gives_orders(item.said):
            yield f"A new line tells what to do and has no source: {item.said[:60]!r}."
    old_lines = {line.strip() for line in old.split("\n")}
    item_lines = {index for item in read_items(new) for index in range(item.start, item.stop)}
    for index, line in enumerate(new.split("\n")):
        if index not in item_lines and line.strip() not in old_lines and gives_orders(line):
            yield f"A new line tells what to do and has no source: {line.strip()[:60]!r}."

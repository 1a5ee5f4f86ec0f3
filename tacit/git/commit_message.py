"""Generate commit messages from the change itself: the same change always gets the same message."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.markdown import escape
from tacit.text.lines import scan

_MAX_SUBJECT_CHARS = 72
_MAX_DIFF_LINES = 4000  # longer files are not compared line by line


@dataclass(frozen=True, slots=True)
class TextEdit:
    """One file before and after; None if it did not or does not exist."""

    path: str
    before: str | None
    after: str | None

    @property
    def verb(self) -> str:
        if self.before is None:
            return "add"
        return "remove" if self.after is None else "update"


def commit_kind(path: str, branch: str) -> str:
    for prefix in ("explore", "extract"):
        if branch.startswith(f"{prefix}/"):
            return prefix
    if path.startswith("knowledge/identity/"):
        return "identity"
    return "memory" if path.startswith(("knowledge/", "topics/", "attachments/")) else "maintenance"


def compose(kind: str, edits: Sequence[TextEdit], sessions: Sequence[str] = ()) -> str:
    """`kind: summary`, a line per file, and the sessions it came from."""
    body = "\n".join(f"- {escape.inline(edit.path)}: {_describe_edit(edit)}" for edit in edits)
    trailers = "".join(f"Session: {path}\n" for path in sessions)
    return f"{_build_subject(kind, edits)}\n\n{body}\n" + (f"\n{trailers}" if trailers else "")


def _build_subject(kind: str, edits: Sequence[TextEdit]) -> str:
    groups: dict[str, list[str]] = {}
    for edit in edits:
        groups.setdefault(edit.verb, []).append(short_name(edit.path))
    phrases = [f"{verb} {', '.join(names)}" for verb, names in groups.items()]
    subject = f"{kind}: {'; '.join(phrases)}"
    if len(subject) <= _MAX_SUBJECT_CHARS:
        return subject
    counts = [f"{verb} {len(names)} file{'s' if len(names) > 1 else ''}" for verb, names in groups.items()]
    return f"{kind}: {', '.join(counts)} ({_list_areas(edits)})"[:_MAX_SUBJECT_CHARS]


def _list_areas(edits: Sequence[TextEdit]) -> str:
    areas: list[str] = []
    for edit in edits:
        area = short_name(edit.path).split("/")[0]
        if area not in areas:
            areas.append(area)
    return ", ".join(areas)


def short_name(path: str) -> str:
    return escape.inline(path.removeprefix("knowledge/").removesuffix(".md"))


def _describe_edit(edit: TextEdit) -> str:
    if edit.before is None:
        return f"added, {_format_line_count(edit.after or '')}"
    if edit.after is None:
        return f"removed, {_format_line_count(edit.before)}"
    old, new = edit.before.split("\n"), edit.after.split("\n")
    if max(len(old), len(new)) > _MAX_DIFF_LINES:
        return f"changed, now {_format_line_count(edit.after)}"
    return _describe_difference(old, new, edit.after)


def _describe_difference(old: list[str], new: list[str], text: str) -> str:
    added = removed = 0
    changed: set[int] = set()
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            removed, added = removed + i2 - i1, added + j2 - j1
            # A pure removal belongs to the section of the line before it.
            changed.update(range(j1 + 1, j2 + 1) if j2 > j1 else (j1,))
    sections = _find_sections(text, changed)
    return f"+{added} −{removed}" + (f" in {', '.join(sections)}" if sections else "")


def _find_sections(text: str, changed: set[int]) -> list[str]:
    names: list[str] = []
    current = ""
    for line in scan(text):
        if line.kind == "heading":
            current = line.title
        if line.number in changed and current and current not in names:
            names.append(current)
    return names[:4]


def _format_line_count(text: str) -> str:
    lines = len(text.splitlines())
    return f"{lines} line" if lines == 1 else f"{lines} lines"

"""Who may see a note, according to `audience` and `agent` in its frontmatter.

A typing mistake must never widen the audience. So a key counts in any case, in the plural and misspelt; of
several values the narrowest holds; and a head that cannot be read, or that does not begin on the first line,
restricts as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from textwrap import dedent
from typing import Literal, TypeAlias, get_args
from unicodedata import normalize

from tacit.diagnostics import Problem
from tacit.markdown import frontmatter
from tacit.markdown.frontmatter import parse_names
from tacit.markdown.notes import Note
from tacit.text.words import space_marks
from tacit.text.yaml_reader import BOM

Audience: TypeAlias = Literal["anyone", "group", "owner"]
AUDIENCES: tuple[Audience, ...] = get_args(Audience)  # from the widest to the narrowest

NO_AGENT = "?"  # an agent whose name cannot be read; no real agent has this name

_Field: TypeAlias = Literal["audience", "agent"]
_FIELDS: tuple[_Field, ...] = ("audience", "agent")
_MAX_HEAD_CHARS = 4000  # characters in which a head that cannot be read may say whom the file is for
# Text may well mention agents, but hardly with a colon after the word.
_RESTRICTION: Mapping[_Field, re.Pattern[str]] = {
    "audience": re.compile(r"^\W*audiences?\b", re.IGNORECASE | re.MULTILINE),
    "agent": re.compile(r"^\W*agents?\W{0,3}[:=]", re.IGNORECASE | re.MULTILINE),
}
_ENTRY = re.compile(r"^[ \t]*['\"]?(?P<key>[^\s:#'\"][^:\r\n'\"]*?)['\"]?[ \t]*:(?=\s|$)", re.MULTILINE)
_FENCE = r"(?:-{3,}|\+{3,})[ \t]*$"
# A head after blank lines, spaces or a comment, or with other fences than ours.
_MISPLACED = re.compile(
    rf"(?:<!--(?:(?!-->).)*+-->\s*+)*+{_FENCE}(?P<head>.*?)(?:^[ \t]*{_FENCE}|\Z)",
    re.DOTALL | re.MULTILINE,
)
_MIN_KEY_SIMILARITY = 0.8  # of 1, how alike a key and the name that is meant must be


def has_audience(note: Note) -> bool:
    """Whether the note itself, and not only its folder, says who may see it."""
    return bool(list(_find_values(note, "audience"))) or _restricts_unread(note, "audience")


def read_audience(note: Note, path: str) -> tuple[Audience | None, tuple[Problem, ...]]:
    """The audience that the note names, or None."""
    values = list(_find_values(note, "audience"))
    unknown = next((value for value in values if value not in AUDIENCES), None)
    if unknown is not None:
        message = f"audience is {unknown!r}, so only the owner sees it."
        return "owner", (Problem(path, message, f"Write one of: {', '.join(AUDIENCES)}.", level="warning"),)
    if _misplaced_head(note):
        message = (
            "What looks like its frontmatter does not stand at its beginning, so only the owner sees it."
        )
        todo = "Let the first line be `---`, without anything before it."
        return "owner", (Problem(path, message, todo, level="warning"),)
    if values:
        return max((audience for audience in AUDIENCES if audience in values), key=AUDIENCES.index), ()
    return ("owner" if _has_error(note) else None), ()  # it may say so where we cannot read it


def read_agents(note: Note) -> tuple[str, ...]:
    """The agents to which a note belongs; empty: all. If it is set twice, both must hold."""
    name_lists = [names for value in _find_values(note, "agent") if (names := parse_names(value))]
    if not name_lists:
        return (NO_AGENT,) if _restricts_unread(note, "agent") else ()
    common = tuple(name for name in name_lists[0] if all(name in names for names in name_lists))
    return common or (NO_AGENT,)


# What is written


def _find_values(note: Note, name: _Field) -> Iterator[object]:
    """Every value that a note has under this name."""
    yield from _matching_values(note.fields, name)
    if note.fields and _has_error(note):
        yield from _duplicate_values(note.head, name)
    if head := _misplaced_head(note):
        yield from _matching_values(frontmatter.read(head)[0], name)


def _matching_values(fields: Mapping[str, object], name: _Field) -> Iterator[object]:
    for key, value in fields.items():
        if value is not None and _is_key(key, name):
            yield value


def _is_key(key: str, name: _Field) -> bool:
    word = (key if key.isascii() else normalize("NFKC", space_marks(key))).strip().casefold()
    if word in (name, f"{name}s"):
        return True
    if word[:1] != name[0] or abs(len(word) - len(name)) > 2:
        return False
    import difflib  # few notes have such a key

    return difflib.SequenceMatcher(None, word, name).ratio() >= _MIN_KEY_SIMILARITY


def _duplicate_values(head: str, name: _Field) -> Iterator[object]:
    """All values of a duplicate key, of which the fields have only the last."""
    if "{" in head and len(re.findall(name, head, re.IGNORECASE)) > 1:
        yield NO_AGENT  # they may stand on one line
    entries = [entry for entry in _ENTRY.finditer(head) if _is_key(entry["key"], name)]
    for entry in entries if len(entries) > 1 else ():
        line = head[entry.start() :].splitlines()[0]
        yield from list(_matching_values(frontmatter.read(f"{line.strip()}\n")[0], name)) or [NO_AGENT]


def _has_error(note: Note) -> bool:
    return any(problem.level == "error" for problem in note.problems)


def _restricts_unread(note: Note, name: _Field) -> bool:
    """Whether a head that cannot be read mentions the key."""
    is_unread = _has_error(note) and not note.fields
    return (
        _RESTRICTION[name].search(note.text[:_MAX_HEAD_CHARS] if is_unread else _misplaced_head(note))
        is not None
    )


def _misplaced_head(note: Note) -> str:
    """Text that looks like a head but is not in its place, if it mentions a restriction."""
    beginning = (
        "" if note.head or note.problems else note.text[:_MAX_HEAD_CHARS].lstrip().lstrip(BOM).lstrip()
    )
    if not beginning.startswith(("---", "+++", "<!--")):
        return ""
    match = _MISPLACED.match("\n".join(beginning.splitlines()))
    head = dedent(match["head"]).strip("\n") if match else ""
    return head if any(pattern.search(head) for pattern in _RESTRICTION.values()) else ""

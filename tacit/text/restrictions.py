"""Who may see a note, as the note itself says it: `audience` and `agent` in its head.

A typing mistake must never make a note wider. So a key counts in any case, in the plural and nearly spelt; of
several values the narrowest holds; and what stands in a head that cannot be read, or that does not begin on
the first line, restricts as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from textwrap import dedent
from typing import Literal, TypeAlias
from unicodedata import normalize

from tacit.model.notes import Note
from tacit.model.problems import Problem
from tacit.model.search import AUDIENCES, Audience
from tacit.text import frontmatter
from tacit.text.frontmatter import BOM, names_in

NOBODY = "?"  # stands for an agent whose name cannot be read; none is called so

_Field: TypeAlias = Literal["audience", "agent"]
_FIELDS: tuple[_Field, ...] = ("audience", "agent")
_HEAD = 4000  # characters in which a head that cannot be read may say whom the file is for
# Text may well speak of agents, but hardly with a colon behind.
_MEANT: Mapping[_Field, re.Pattern[str]] = {
    "audience": re.compile(r"^\W*audiences?\b", re.IGNORECASE | re.MULTILINE),
    "agent": re.compile(r"^\W*agents?\W{0,3}[:=]", re.IGNORECASE | re.MULTILINE),
}
_ENTRY = re.compile(r"^[ \t]*['\"]?(?P<key>[^\s:#'\"][^:\r\n'\"]*?)['\"]?[ \t]*:(?=\s|$)", re.MULTILINE)
_FENCE = r"(?:-{3,}|\+{3,})[ \t]*$"
# After blank lines, spaces or a comment, or with other fences than a head has.
_MISPLACED = re.compile(
    rf"(?:<!--(?:(?!-->).)*+-->\s*+)*+{_FENCE}(?P<head>.*?)(?:^[ \t]*{_FENCE}|\Z)",
    re.DOTALL | re.MULTILINE,
)
_NEAR = 0.8  # of 1, how alike a key and the name that is meant must be


def says_audience(note: Note) -> bool:
    """Whether a note itself says who may see it, and not only its folder."""
    return bool(list(_values(note, "audience"))) or _is_meant_unread(note, "audience")


def said_audience(note: Note, path: str) -> tuple[Audience | None, tuple[Problem, ...]]:
    """None: it does not say."""
    values = list(_values(note, "audience"))
    wrong = next((value for value in values if value not in AUDIENCES), None)
    if wrong is not None:
        what = f"audience is {wrong!r}, so only the owner sees it."
        return "owner", (Problem(path, what, f"Write one of: {', '.join(AUDIENCES)}.", level="warning"),)
    if _misplaced(note):
        what = "What looks like its frontmatter does not stand at its beginning, so only the owner sees it."
        todo = "Let the first line be `---`, without anything before it."
        return "owner", (Problem(path, what, todo, level="warning"),)
    if values:
        return max((one for one in AUDIENCES if one in values), key=AUDIENCES.index), ()
    return ("owner" if _has_error(note) else None), ()  # it may say so where we cannot read it


def said_agents(note: Note) -> tuple[str, ...]:
    """The agents to which a note belongs; empty: to all. What is said twice must hold twice."""
    named = [names for value in _values(note, "agent") if (names := names_in(value))]
    if not named:
        return (NOBODY,) if _is_meant_unread(note, "agent") else ()
    common = tuple(name for name in named[0] if all(name in names for names in named))
    return common or (NOBODY,)


# What is written


def _values(note: Note, name: _Field) -> Iterator[object]:
    """All that a note says under this name, nothing left out."""
    yield from _meant_in(note.fields, name)
    if note.fields and _has_error(note):
        yield from _written_twice(note.head, name)
    if head := _misplaced(note):
        yield from _meant_in(frontmatter.read(head)[0], name)


def _meant_in(fields: Mapping[str, object], name: _Field) -> Iterator[object]:
    for key, value in fields.items():
        if value is not None and _means(key, name):
            yield value


def _means(key: str, name: _Field) -> bool:
    word = (key if key.isascii() else normalize("NFKC", key)).strip().casefold()
    if word in (name, f"{name}s"):
        return True
    if word[:1] != name[0] or abs(len(word) - len(name)) > 2:
        return False
    import difflib  # few notes have such a key

    return difflib.SequenceMatcher(None, word, name).ratio() >= _NEAR


def _written_twice(head: str, name: _Field) -> Iterator[object]:
    """A key that is there twice is an error of which the fields have the last value alone."""
    if "{" in head and len(re.findall(name, head, re.IGNORECASE)) > 1:
        yield NOBODY  # they may stand on one line
    found = [entry for entry in _ENTRY.finditer(head) if _means(entry["key"], name)]
    for entry in found if len(found) > 1 else ():
        line = head[entry.start() :].splitlines()[0]
        yield from list(_meant_in(frontmatter.read(f"{line.strip()}\n")[0], name)) or [NOBODY]


def _has_error(note: Note) -> bool:
    return any(problem.level == "error" for problem in note.problems)


def _is_meant_unread(note: Note, name: _Field) -> bool:
    """Whether a head that cannot be read speaks of it."""
    is_unread = _has_error(note) and not note.fields
    return _MEANT[name].search(note.text[:_HEAD] if is_unread else _misplaced(note)) is not None


def _misplaced(note: Note) -> str:
    """What looks like a head and is none, if it speaks of a restriction."""
    beginning = "" if note.head or note.problems else note.text[:_HEAD].lstrip().lstrip(BOM).lstrip()
    if not beginning.startswith(("---", "+++", "<!--")):
        return ""
    found = _MISPLACED.match("\n".join(beginning.splitlines()))
    head = dedent(found["head"]).strip("\n") if found else ""
    return head if any(meant.search(head) for meant in _MEANT.values()) else ""

"""Once a month: projects that nobody touched and people whom nobody named, as a list for somebody to look at.

Nothing is decided here. A project that sleeps gets a word behind its line in _active.md, as a proposal;
people are only named to the reviewer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import NamedTuple

from tacit.lifecycle.items import items, without
from tacit.model.changes import Rewrite
from tacit.text import marks, notes
from tacit.text.words import fold

ACTIVE = "knowledge/projects/_active.md"
PROJECT_DAYS = 60
PERSON_DAYS = 180
CATEGORY = "memory"
_PROJECT = re.compile(r"knowledge/projects/([^/]+)/[^/]+\.md")
_PERSON = re.compile(r"knowledge/people/(?!_)[^/]+\.md")
_PAGE = re.compile(r"(?:knowledge|archive)/journal/([0-9]{4}-[0-9]{2}-[0-9]{2})\.md")
_QUIET = re.compile(r"\(quiet since [0-9-]+\)")


class Quiet(NamedTuple):
    name: str  # of a project its slug, of a person the path of the note
    since: date


class Reviewed(NamedTuple):
    projects: tuple[Quiet, ...]
    people: tuple[Quiet, ...]
    rewrite: Rewrite | None  # of _active.md
    notes: tuple[str, ...]


def monthly_review(
    texts: Mapping[str, str], changed: Mapping[str, date], today: date, month: str
) -> Reviewed:
    """`texts`: the notes of projects and people, _active.md and the journal pages, by their paths; `changed`:
    the day of the last change of each. A note without one counts as changed today."""
    pages = [
        (date.fromisoformat(found[1]), fold(text)) for path, text in texts.items() if (found := _page(path))
    ]
    projects = tuple(_quiet(_projects(texts, changed, today), pages, today - timedelta(days=PROJECT_DAYS)))
    people = tuple(_quiet(_people(texts, changed, today), pages, today - timedelta(days=PERSON_DAYS)))
    told = [f"Project {one.name}: nothing since {one.since}." for one in projects]
    told += [f"{one.name}: not named since {one.since}." for one in people]
    return Reviewed(projects, people, _marked(texts.get(ACTIVE), projects, month), tuple(told))


def _page(path: str) -> re.Match[str] | None:
    found = _PAGE.fullmatch(path)
    try:
        return found if found and date.fromisoformat(found[1]) else None
    except ValueError:
        return None


def _quiet(
    known: Iterable[tuple[str, date, tuple[str, ...]]], pages: Iterable[tuple[date, str]], oldest: date
) -> Iterable[Quiet]:
    """Those of whom nothing was heard since then: neither their notes changed nor a page names them."""
    told = list(pages)
    for name, changed, names in known:
        named = (day for day, text in told if any(_names(text, one) for one in names))
        since = max((changed, *named))
        if since < oldest:
            yield Quiet(name, since)


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _projects(
    texts: Mapping[str, str], changed: Mapping[str, date], today: date
) -> Iterable[tuple[str, date, tuple[str, ...]]]:
    slugs: dict[str, date] = {}
    for path in sorted(texts):
        found = _PROJECT.fullmatch(path)
        if found:
            at = changed.get(path, today)
            slugs[found[1]] = max(slugs.get(found[1], at), at)
    return [(slug, at, (fold(slug), fold(slug.replace("-", " ")))) for slug, at in slugs.items()]


def _people(
    texts: Mapping[str, str], changed: Mapping[str, date], today: date
) -> Iterable[tuple[str, date, tuple[str, ...]]]:
    for path in sorted(texts):
        if _PERSON.fullmatch(path):
            name = fold(str(notes.parse(texts[path]).fields.get("name") or _title(path)))
            # A first name is how people are called; where two share it, both count as named.
            first = name.split()[0] if name.split() else name
            yield path, changed.get(path, today), tuple(dict.fromkeys((name, first)))


def _title(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md").replace("-", " ")


def _marked(active: str | None, projects: Iterable[Quiet], month: str) -> Rewrite | None:
    if active is None:
        return None
    instead: dict[int, str] = {}
    for project in projects:
        one = next((item for item in items(active) if _is_about(item.said, project.name)), None)
        if one is not None and not _QUIET.search(one.raw) and "\n" not in one.raw:
            text, _ = marks.read(one.raw.rstrip("\r"))
            instead[one.number] = f"{text.rstrip()} (quiet since {project.since})"
    if not instead:
        return None
    reason = f"month {month}: {len(instead)} projects were not touched for {PROJECT_DAYS} days"
    return Rewrite(ACTIVE, active, without(active, (), instead), CATEGORY, reason, (), "owner")


def _is_about(said: str, slug: str) -> bool:
    return fold(said.lstrip("*[_ ")).startswith(fold(slug))

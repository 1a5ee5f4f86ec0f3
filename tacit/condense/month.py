"""Once a month: list projects that were not touched and people who were not mentioned, for review.

Nothing is decided here. A quiet project gets a remark on its line in _active.md, as a proposal; quiet people
are only listed for the reviewer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import NamedTuple

from tacit.learn.model import Rewrite
from tacit.markdown import comment, notes
from tacit.markdown.note_page import read_items, remove_items
from tacit.text.words import fold

ACTIVE_PROJECTS = "knowledge/projects/_active.md"
QUIET_PROJECT_DAYS = 60
QUIET_PERSON_DAYS = 180
CATEGORY = "memory"
_PROJECT = re.compile(r"knowledge/projects/([^/]+)/[^/]+\.md")
_PERSON = re.compile(r"knowledge/people/(?!_)[^/]+\.md")
_PAGE = re.compile(r"(?:knowledge|archive)/journal/([0-9]{4}-[0-9]{2}-[0-9]{2})\.md")
_QUIET = re.compile(r"\(quiet since [0-9-]+\)")


class QuietSubject(NamedTuple):
    name: str  # of a project its slug, of a person the path of the note
    since: date


class MonthlyReview(NamedTuple):
    projects: tuple[QuietSubject, ...]
    people: tuple[QuietSubject, ...]
    rewrite: Rewrite | None  # of _active.md
    notes: tuple[str, ...]


def monthly_review(
    texts: Mapping[str, str], changed: Mapping[str, date], today: date, month: str
) -> MonthlyReview:
    """`texts`: the notes of projects and people, _active.md and the journal pages, by path; `changed`: the
    day of each note's last change, today if missing."""
    pages = [
        (date.fromisoformat(match[1]), fold(text))
        for path, text in texts.items()
        if (match := _match_page(path))
    ]
    projects = tuple(
        _find_quiet(
            _project_activity(texts, changed, today), pages, today - timedelta(days=QUIET_PROJECT_DAYS)
        )
    )
    people = tuple(
        _find_quiet(_person_activity(texts, changed, today), pages, today - timedelta(days=QUIET_PERSON_DAYS))
    )
    messages = [f"Project {quiet.name}: nothing since {quiet.since}." for quiet in projects]
    messages += [f"{quiet.name}: not named since {quiet.since}." for quiet in people]
    return MonthlyReview(
        projects, people, _mark_quiet(texts.get(ACTIVE_PROJECTS), projects, month), tuple(messages)
    )


def _match_page(path: str) -> re.Match[str] | None:
    match = _PAGE.fullmatch(path)
    try:
        return match if match and date.fromisoformat(match[1]) else None
    except ValueError:
        return None


def _find_quiet(
    subjects: Iterable[tuple[str, date, tuple[str, ...]]], pages: Iterable[tuple[date, str]], oldest: date
) -> Iterable[QuietSubject]:
    """Those whose notes did not change and whom no journal page names since `oldest`."""
    page_list = list(pages)
    for name, changed, names in subjects:
        mention_days = (
            day for day, text in page_list if any(_is_named_in(text, name_form) for name_form in names)
        )
        since = max((changed, *mention_days))
        if since < oldest:
            yield QuietSubject(name, since)


def _is_named_in(text: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _project_activity(
    texts: Mapping[str, str], changed: Mapping[str, date], today: date
) -> Iterable[tuple[str, date, tuple[str, ...]]]:
    slugs: dict[str, date] = {}
    for path in sorted(texts):
        match = _PROJECT.fullmatch(path)
        if match:
            changed_on = changed.get(path, today)
            slugs[match[1]] = max(slugs.get(match[1], changed_on), changed_on)
    return [
        (slug, changed_on, (fold(slug), fold(slug.replace("-", " ")))) for slug, changed_on in slugs.items()
    ]


def _person_activity(
    texts: Mapping[str, str], changed: Mapping[str, date], today: date
) -> Iterable[tuple[str, date, tuple[str, ...]]]:
    for path in sorted(texts):
        if _PERSON.fullmatch(path):
            name = fold(str(notes.parse(texts[path]).fields.get("name") or _title(path)))
            # People are usually called by their first name; if two share it, both count as named.
            first = name.split()[0] if name.split() else name
            yield path, changed.get(path, today), tuple(dict.fromkeys((name, first)))


def _title(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md").replace("-", " ")


def _mark_quiet(active: str | None, projects: Iterable[QuietSubject], month: str) -> Rewrite | None:
    if active is None:
        return None
    instead: dict[int, str] = {}
    for project in projects:
        item = next((entry for entry in read_items(active) if _is_about(entry.said, project.name)), None)
        if item is not None and not _QUIET.search(item.raw) and "\n" not in item.raw:
            text, _ = comment.read(item.raw.rstrip("\r"))
            instead[item.number] = f"{text.rstrip()} (quiet since {project.since})"
    if not instead:
        return None
    reason = f"month {month}: {len(instead)} projects were not touched for {QUIET_PROJECT_DAYS} days"
    return Rewrite(ACTIVE_PROJECTS, active, remove_items(active, (), instead), CATEGORY, reason, (), "owner")


def _is_about(statement: str, slug: str) -> bool:
    return fold(statement.lstrip("*[_ ")).startswith(fold(slug))

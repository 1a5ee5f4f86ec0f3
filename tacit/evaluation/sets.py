"""Question sets as values.

A public set is a folder with docs.jsonl (one message a line: id, collection, session, seq, speaker, date,
text) and queries.jsonl (id, collection, text, category, gold: ids of messages, gold_sessions). A collection
is one home. A file of one's own questions has gold as places: {"path", "quote"}, with other places that say
the same under "also".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit.errors import UsageError

_DATES = ("%B-%d-%Y", "%d %B %Y", "%B %d, %Y", "%Y/%m/%d (%a) %H:%M", "%Y/%m/%d")


@dataclass(frozen=True, slots=True)
class Said:
    id: str
    session: str
    speaker: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    path: str
    quote: str


@dataclass(frozen=True, slots=True)
class Question:
    """`gold`: what must be found, each with all places that will do. A public set names messages by id."""

    id: str
    text: str
    category: str
    gold: tuple[tuple[Place, ...], ...] = ()
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Collection:
    name: str
    said: tuple[Said, ...]
    questions: tuple[Question, ...]


def read_set(folder: Path) -> list[Collection]:
    said: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for line in _lines(folder / "docs.jsonl", ("id", "collection", "session", "text")):
        said.setdefault(str(line["collection"]), []).append((int(line.get("seq") or 0), line))
    asked: dict[str, list[Question]] = {}
    for line in _lines(folder / "queries.jsonl", ("id", "collection", "text")):
        asked.setdefault(str(line["collection"]), []).append(_public(line))
    unknown = sorted(set(asked) - set(said))
    if unknown:
        raise UsageError(
            f"{folder}/queries.jsonl asks about {unknown[0]!r}, of which docs.jsonl has nothing."
        )
    return [
        Collection(name, tuple(_messages(lines)), tuple(asked.get(name, ()))) for name, lines in said.items()
    ]


def read_questions(file: Path) -> list[Question]:
    return [
        Question(
            id=str(line.get("id", number)),
            text=str(line["text"]),
            category=str(line.get("category", "")),
            gold=tuple(_places(entry) for entry in line.get("gold", ())),
        )
        for number, line in enumerate(_lines(file, ("text",)), 1)
    ]


def _public(line: Mapping[str, Any]) -> Question:
    return Question(
        id=str(line["id"]),
        text=str(line["text"]),
        category=str(line.get("category", "")),
        gold=tuple((Place(str(one), ""),) for one in line.get("gold") or ()),
        sessions=tuple(map(str, line.get("gold_sessions") or ())),
    )


def _places(entry: Mapping[str, Any]) -> tuple[Place, ...]:
    return tuple(
        Place(str(one["path"]), str(one.get("quote", ""))) for one in (entry, *entry.get("also", ()))
    )


def _messages(lines: list[tuple[int, dict[str, Any]]]) -> Iterator[Said]:
    at = datetime(2000, 1, 1, tzinfo=UTC)
    for _, line in sorted(lines, key=lambda entry: entry[0]):
        at = _moment(line.get("date")) or at
        speaker = str(line.get("speaker") or "user")
        yield Said(str(line["id"]), str(line["session"]), speaker, at, str(line["text"]))


def _moment(written: object) -> datetime | None:
    text = str(written or "")
    readers: list[Callable[[str], datetime]] = [datetime.fromisoformat, *map(_as, _DATES)]
    for read in readers:
        try:
            found = read(text)
        except ValueError:
            continue
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return None


def _as(form: str) -> Callable[[str], datetime]:
    return lambda text: datetime.strptime(text, form).replace(tzinfo=UTC)


def _lines(file: Path, needed: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{file} cannot be read: {error}. Name a folder with docs.jsonl and queries.jsonl."
        ) from None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            missing = [key for key in needed if key not in value]
        except (ValueError, TypeError):
            raise UsageError(f"{file}:{number} is not a JSON object on one line.") from None
        if missing:
            raise UsageError(f"{file}:{number} lacks {', '.join(missing)}.")
        yield value

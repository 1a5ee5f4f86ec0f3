"""Question sets as values.

A public set is a folder with docs.jsonl (one message a line: id, collection, session, seq, speaker, date,
text) and queries.jsonl (id, collection, text, category, gold: ids of messages, gold_sessions). A collection
is one home. A file of one's own questions has gold as places: {"path", "quote"}, with other places that say
the same under "also".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

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


def read_set(folder: Path, every: int = 1, categories: Sequence[str] = ()) -> list[Collection]:
    """`every`: only each so many-th question of a collection; `categories`: only those of these, if any."""
    said: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for name, message in _read(folder / "docs.jsonl", ("id", "collection", "session", "text"), _numbered):
        said.setdefault(name, []).append(message)
    asked: dict[str, list[Question]] = {}
    for name, question in _read(folder / "queries.jsonl", ("id", "collection", "text"), _public):
        questions = asked.setdefault(name, [])
        if not categories or question.category in categories:
            questions.append(question)
    unknown = sorted(set(asked) - set(said))
    if unknown:
        raise UsageError(
            f"{folder}/queries.jsonl asks about {unknown[0]!r}, of which docs.jsonl has nothing."
        )
    return [
        Collection(name, tuple(_messages(lines)), tuple(asked.get(name, [])[:: max(1, every)]))
        for name, lines in said.items()
    ]


def read_questions(file: Path) -> list[Question]:
    return list(_read(file, ("text",), _own))


def _own(line: Mapping[str, Any]) -> Question:
    return Question(
        id=str(line.get("id", "")),
        text=_text(line),
        category=str(line.get("category") or ""),
        gold=tuple(map(_places, _list(line, "gold"))),
    )


def _public(line: Mapping[str, Any]) -> tuple[str, Question]:
    return str(line["collection"]), Question(
        id=str(line["id"]),
        text=_text(line),
        category=str(line.get("category") or ""),
        gold=tuple((Place(str(one), ""),) for one in _list(line, "gold")),
        sessions=tuple(map(str, _list(line, "gold_sessions"))),
    )


def _numbered(line: Mapping[str, Any]) -> tuple[str, tuple[int, Mapping[str, Any]]]:
    _text(line)
    return str(line["collection"]), (int(line.get("seq") or 0), line)


def _places(entry: Mapping[str, Any]) -> tuple[Place, ...]:
    return tuple(Place(str(one["path"]), str(one.get("quote", ""))) for one in (entry, *_list(entry, "also")))


def _text(line: Mapping[str, Any]) -> str:
    if not isinstance(line["text"], str):
        raise TypeError
    return line["text"]


def _list(line: Mapping[str, Any], key: str) -> list[Any]:
    found = line.get(key)
    if found is not None and not isinstance(found, list):
        raise TypeError
    return found or []


def _messages(lines: list[tuple[int, Mapping[str, Any]]]) -> Iterator[Said]:
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


_T = TypeVar("_T")


def _read(file: Path, needed: tuple[str, ...], make: Callable[[Mapping[str, Any]], _T]) -> Iterator[_T]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{file} cannot be read: {error}. Name a folder with docs.jsonl and queries.jsonl."
        ) from None
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines: a string may hold other line ends
        if line.strip():
            value = _object(line, f"{file}:{number}")
            missing = [key for key in needed if key not in value]
            if missing:
                raise UsageError(f"{file}:{number} lacks {', '.join(missing)}.")
            try:
                made = make(value)
            except (AttributeError, KeyError, TypeError, ValueError):
                raise UsageError(f"{file}:{number} has a field that is not what it should be.") from None
            yield made


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UsageError(f"{where} is not a JSON object on one line.")
    return value

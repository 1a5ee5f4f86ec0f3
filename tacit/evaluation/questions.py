"""Questions with the evidence that answers them, and the files that they are read from.

A public set is a folder with docs.jsonl (one message per line: id, collection, session, seq, speaker, date,
text) and queries.jsonl (id, collection, text, category, gold: ids of messages, gold_sessions). A collection
is one home. In a file of the user's own questions, gold is a list of places: {"path", "quote"}, with other
places that say the same under "also".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from tacit.errors import UsageError
from tacit.text.yaml_reader import YamlError, read_tree, to_value

_DATE_FORMATS = ("%B-%d-%Y", "%d %B %Y", "%B %d, %Y", "%Y/%m/%d (%a) %H:%M", "%Y/%m/%d")


@dataclass(frozen=True, slots=True)
class SetMessage:
    id: str
    session: str
    speaker: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class EvidencePlace:
    path: str
    quote: str


@dataclass(frozen=True, slots=True)
class EvalQuestion:
    """`gold`: the items to find, each with all places that count. A public set names messages by id."""

    id: str
    text: str
    category: str
    gold: tuple[tuple[EvidencePlace, ...], ...] = ()
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QuestionSet:
    name: str
    messages: tuple[SetMessage, ...]
    questions: tuple[EvalQuestion, ...]


def read_set(folder: Path, every: int = 1, categories: Sequence[str] = ()) -> list[QuestionSet]:
    """`every`: take only each n-th question of a collection; `categories`: only these, if any."""
    messages: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for name, message in _read_lines(
        folder / "docs.jsonl", ("id", "collection", "session", "text"), _read_message_line
    ):
        messages.setdefault(name, []).append(message)
    questions_by_name: dict[str, list[EvalQuestion]] = {}
    for name, question in _read_lines(
        folder / "queries.jsonl", ("id", "collection", "text"), _read_public_question
    ):
        questions = questions_by_name.setdefault(name, [])
        if not categories or question.category in categories:
            questions.append(question)
    unknown = sorted(set(questions_by_name) - set(messages))
    if unknown:
        raise UsageError(
            f"{folder}/queries.jsonl asks about {unknown[0]!r}, of which docs.jsonl has nothing."
        )
    return [
        QuestionSet(
            name, tuple(_parse_messages(lines)), tuple(questions_by_name.get(name, [])[:: max(1, every)])
        )
        for name, lines in messages.items()
    ]


def read_questions(file: Path) -> list[EvalQuestion]:
    return list(_read_lines(file, ("text",), _read_own_question))


def match_by_quotes(questions: Iterable[EvalQuestion]) -> list[EvalQuestion]:
    """Match evidence by quote in any note, because rebuilt notes may have other names."""
    return [
        replace(
            question,
            gold=tuple(tuple(EvidencePlace("", place.quote) for place in places) for places in question.gold),
        )
        for question in questions
    ]


def read_yaml(file: Path | Traversable) -> object:
    try:
        return to_value(read_tree(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, YamlError) as error:
        raise UsageError(f"{file} cannot be read: {error}. Give a YAML file.") from None


def read_answers(data: object, source: str) -> list[EvalQuestion]:
    """Parse questions from YAML: `- {question: …, answer: [PHRASE, EITHER|OR]}`."""
    try:
        return [_read_answer(str(number), entry) for number, entry in enumerate(_require_list(data), 1)]
    except (TypeError, KeyError, AttributeError):
        raise UsageError(
            f"{source} is no list of questions. Write - {{question: …, answer: [PHRASE…]}}."
        ) from None


def _require_list(data: object) -> list[Any]:
    if not isinstance(data, list):
        raise TypeError
    return data


def _read_answer(number: str, entry: Any) -> EvalQuestion:
    gold = tuple(
        tuple(EvidencePlace("", phrase) for phrase in str(either).split("|")) for either in entry["answer"]
    )
    return EvalQuestion(number, str(entry["question"]), "", gold)


def _read_own_question(line: Mapping[str, Any]) -> EvalQuestion:
    return EvalQuestion(
        id=str(line.get("id", "")),
        text=_require_text(line),
        category=str(line.get("category") or ""),
        gold=tuple(map(_read_places, _optional_list(line, "gold"))),
    )


def _read_public_question(line: Mapping[str, Any]) -> tuple[str, EvalQuestion]:
    return str(line["collection"]), EvalQuestion(
        id=str(line["id"]),
        text=_require_text(line),
        category=str(line.get("category") or ""),
        gold=tuple((EvidencePlace(str(message_id), ""),) for message_id in _optional_list(line, "gold")),
        sessions=tuple(map(str, _optional_list(line, "gold_sessions"))),
    )


def _read_message_line(line: Mapping[str, Any]) -> tuple[str, tuple[int, Mapping[str, Any]]]:
    _require_text(line)
    return str(line["collection"]), (int(line.get("seq") or 0), line)


def _read_places(entry: Mapping[str, Any]) -> tuple[EvidencePlace, ...]:
    return tuple(
        EvidencePlace(str(place["path"]), str(place.get("quote", "")))
        for place in (entry, *_optional_list(entry, "also"))
    )


def _require_text(line: Mapping[str, Any]) -> str:
    if not isinstance(line["text"], str):
        raise TypeError
    return line["text"]


def _optional_list(line: Mapping[str, Any], key: str) -> list[Any]:
    value = line.get(key)
    if value is not None and not isinstance(value, list):
        raise TypeError
    return value or []


def _parse_messages(lines: list[tuple[int, Mapping[str, Any]]]) -> Iterator[SetMessage]:
    moment = datetime(2000, 1, 1, tzinfo=UTC)
    for _, line in sorted(lines, key=lambda entry: entry[0]):
        moment = _parse_moment(line.get("date")) or moment
        speaker = str(line.get("speaker") or "user")
        yield SetMessage(str(line["id"]), str(line["session"]), speaker, moment, str(line["text"]))


def _parse_moment(written: object) -> datetime | None:
    text = str(written or "")
    readers: list[Callable[[str], datetime]] = [datetime.fromisoformat, *map(_date_parser, _DATE_FORMATS)]
    for read in readers:
        try:
            moment = read(text)
        except ValueError:
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _date_parser(form: str) -> Callable[[str], datetime]:
    return lambda text: datetime.strptime(text, form).replace(tzinfo=UTC)


_T = TypeVar("_T")


def _read_lines(file: Path, needed: tuple[str, ...], make: Callable[[Mapping[str, Any]], _T]) -> Iterator[_T]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{file} cannot be read: {error}. Name a folder with docs.jsonl and queries.jsonl."
        ) from None
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines: a string may hold other line ends
        if line.strip():
            value = _parse_object(line, f"{file}:{number}")
            missing = [key for key in needed if key not in value]
            if missing:
                raise UsageError(f"{file}:{number} lacks {', '.join(missing)}.")
            try:
                item = make(value)
            except (AttributeError, KeyError, TypeError, ValueError):
                raise UsageError(f"{file}:{number} has a field that is not what it should be.") from None
            yield item


def _parse_object(line: str, location: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UsageError(f"{location} is not a JSON object on one line.")
    return value

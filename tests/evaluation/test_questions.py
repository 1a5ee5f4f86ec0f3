"""Question sets are read as they are written, and what is wrong in them is said with its line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tacit.errors import UsageError
from tacit.evaluation.questions import EvidencePlace, read_questions, read_set
from tests.evaluation.tiny import messages, questions, write, write_lines


def test_a_public_set_is_read(tmp_path: Path) -> None:
    pottery, sailing = read_set(write(tmp_path / "set"))
    assert (pottery.name, len(pottery.messages), len(pottery.questions)) == ("pottery", 5, 4)
    assert (sailing.name, len(sailing.messages), len(sailing.questions)) == ("sailing", 4, 3)
    first = pottery.messages[0]
    assert (first.id, first.session, first.speaker) == ("pottery-0", "s1", "Ana")
    assert first.at == datetime(2026, 3, 1, 9, tzinfo=UTC)
    question = pottery.questions[0]
    assert question.gold == ((EvidencePlace("pottery-0", ""),),)
    assert question.sessions == ("s1",)
    assert pottery.questions[3].gold == ()


def test_messages_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    backwards = list(reversed(messages()))
    assert [one.messages for one in read_set(write(tmp_path / "a", backwards))][::-1] == [
        one.messages for one in read_set(write(tmp_path / "b"))
    ]


@pytest.mark.parametrize(
    "date",
    [
        "2023-05-08T13:56:00",
        "2023-05-08",
        "May-08-2023",
        "8 May 2023",
        "May 8, 2023",
        "2023/05/08 (Mon) 13:56",
    ],
)
def test_days_are_read_in_the_forms_that_public_sets_have(tmp_path: Path, date: str) -> None:
    said = [{"id": 1, "collection": "c", "session": "s", "text": "x", "date": date}]
    [collection] = read_set(write(tmp_path / "set", said, []))
    assert f"{collection.messages[0].at:%Y-%m-%d}" == "2023-05-08"


def test_a_message_without_a_day_is_of_the_day_before_it(tmp_path: Path) -> None:
    said = [
        {"id": 1, "collection": "c", "session": "s", "seq": 0, "text": "x", "date": "2023-05-08"},
        {"id": 2, "collection": "c", "session": "s", "seq": 1, "text": "x", "date": "some day"},
        {"id": 3, "collection": "c", "session": "s", "seq": 2, "text": "x"},
    ]
    [collection] = read_set(write(tmp_path / "set", said, []))
    assert len({one.at for one in collection.messages}) == 1


def test_a_string_may_hold_any_line_end_but_the_one(tmp_path: Path) -> None:
    """JSON may, and Python's splitlines would cut it in two."""
    text = "one\u2028two\u0085three\x0cfour\x1efive"
    said = [{"id": 1, "collection": "c", "session": "s", "text": text}]
    [collection] = read_set(write(tmp_path / "set", said, []))
    assert collection.messages[0].text == text


def test_ones_own_questions_are_read(tmp_path: Path) -> None:
    file = write_lines(
        tmp_path / "own.jsonl",
        [
            {"text": "What?", "gold": [{"path": "a.md", "quote": "q", "also": [{"path": "b.md"}]}]},
            {"text": "Nothing?", "category": "absent", "gold": []},
            {"id": 7, "text": "Null?", "gold": None},
        ],
    )
    what, nothing, null = read_questions(file)
    assert what.gold == ((EvidencePlace("a.md", "q"), EvidencePlace("b.md", "")),)
    assert (nothing.category, nothing.gold) == ("absent", ())
    assert (null.id, null.gold) == ("7", ())


def test_empty_lines_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text('\n{"text": "a"}\r\n\n  \n{"text": "b"}')
    assert [one.text for one in read_questions(tmp_path / "own.jsonl")] == ["a", "b"]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "nonsense",
        "[1, 2]",
        '"text"',
        "7",
        "null",
        "{}",
        '{"question": "a"}',
        '{"text": null}',
        '{"text": 7}',
        '{"text": "a", "gold": "b"}',
        '{"text": "a", "gold": {"path": "b"}}',
        '{"text": "a", "gold": ["b"]}',
        '{"text": "a", "gold": [7]}',
        '{"text": "a", "gold": [{"quote": "b"}]}',
        '{"text": "a", "gold": [{"path": "b", "also": "c"}]}',
        '{"text": "a", "gold": [{"path": "b", "also": [null]}]}',
        "[" * 100_000,
    ],
)
def test_what_is_wrong_in_a_file_of_questions_is_said_with_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "own.jsonl").write_text(f'{{"text": "good"}}\n{line}\n')
    with pytest.raises(UsageError, match=r"own\.jsonl:2 "):
        read_questions(tmp_path / "own.jsonl")


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("docs", {"seq": "third"}),
        ("docs", {"seq": [3]}),
        ("docs", {"text": None}),
        ("docs", {"text": ["a"]}),
        ("queries", {"text": 7}),
        ("queries", {"gold": "pottery-0"}),
        ("queries", {"gold": 7}),
        ("queries", {"gold_sessions": "s1"}),
    ],
)
def test_what_is_wrong_in_a_public_set_is_said_with_its_line(
    tmp_path: Path, file: str, change: dict[str, object]
) -> None:
    said, asked = messages(), questions()
    (said if file == "docs" else asked)[1].update(change)
    with pytest.raises(UsageError, match=rf"{file}\.jsonl:2 "):
        read_set(write(tmp_path / "set", said, asked))


@pytest.mark.parametrize("missing", ["id", "collection", "session", "text"])
def test_what_is_missing_is_named(tmp_path: Path, missing: str) -> None:
    said = messages()
    del said[0][missing]
    with pytest.raises(UsageError, match=rf"docs\.jsonl:1 lacks {missing}\."):
        read_set(write(tmp_path / "set", said))


def test_a_question_about_nothing_is_refused(tmp_path: Path) -> None:
    asked = [{"id": 1, "collection": "knitting", "text": "?"}]
    with pytest.raises(UsageError, match=r"asks about 'knitting', of which docs\.jsonl has nothing"):
        read_set(write(tmp_path / "set", asked=asked))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.jsonl cannot be read"):
        read_questions(tmp_path / "nowhere.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(json.dumps({"text": "é"}, ensure_ascii=False).encode("latin-1"))
    with pytest.raises(UsageError, match=r"latin\.jsonl cannot be read"):
        read_questions(tmp_path / "latin.jsonl")
    with pytest.raises(UsageError, match=r"docs\.jsonl cannot be read"):
        read_set(tmp_path)

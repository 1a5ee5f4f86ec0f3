"""The transcript format: exact lines, nothing forged, everything back, whatever happened to the file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.transcripts import format as form
from tacit.transcripts.format import RecordPosition, RenderedRecord
from tacit.transcripts.model import (
    Attachment,
    Closing,
    KnowledgeChange,
    Message,
    Opening,
    Role,
    ToolCall,
    Transcript,
    Turn,
)
from tests.hostile import characters, hostile

CET = timezone(timedelta(hours=1))
STARTED = datetime(2026, 2, 16, 18, 45, tzinfo=CET)
OPENING = Opening("ses_1", STARTED, channel="chat", model="some-model")
PATH = "raw/conversations/2026/02/16/1845-ses_1-hello.md"

Write = Callable[[RecordPosition], RenderedRecord]


@dataclass
class Paper:
    """A transcript as it grows, without a disk."""

    opening: Opening = OPENING
    name: str = "hello"

    def __post_init__(self) -> None:
        self.text = form.render_opening(self.opening, self.name)
        self.place = RecordPosition(0, None, self.opening.started.date())

    def add(self, write: Write) -> Paper:
        written = write(self.place)
        self.text += written.text
        self.place = written.place
        return self

    def message(
        self, text: str, role: Role = "user", at: datetime = STARTED, speaker: str | None = None
    ) -> Paper:
        return self.add(lambda place: form.render_message(place, at, role, text, speaker))

    def parsed(self) -> Transcript:
        return form.parse(self.text, PATH)


def kept(opening: Opening = OPENING) -> Paper:
    """A small transcript with one of each."""
    paper = Paper(opening)
    paper.message("Which glaze?", speaker="Ana")
    paper.add(lambda place: form.render_tool_call(place, STARTED, "read", "glazes.md", "26 lines"))
    paper.message("The blue one.", "agent")
    paper.add(
        lambda place: form.render_knowledge_change(place, STARTED, "updated", "knowledge/a.md", "glaze")
    )
    return paper.add(lambda place: form.render_attachment(place, STARTED, "user", "attachments/a.png"))


# ---------------------------------------------------------------- names


def test_the_path_is_day_minute_id_and_slug() -> None:
    assert (
        form.make_file_path(OPENING, "hello-world")
        == "raw/conversations/2026/02/16/1845-ses_1-hello-world.md"
    )
    assert form.make_file_path(OPENING, "hi", 1) == "raw/conversations/2026/02/16/1845-ses_1-hi-2.md"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("What did we decide about the kiln?", "what-did-we-decide-about-the-kiln"),
        ("\n\n  Hello,\nworld", "hello"),
        ("Grüße aus Köln", "grusse-aus-koln"),
        ("日本語のメモ", "日本語のメモ"),
        ("!!! ???", "session"),
        ("", "session"),
        ("../../etc/passwd", "etc-passwd"),
        ("a" * 100, "a" * 40),
        ("one two three four five six seven eight nine ten", "one-two-three-four-five-six-seven-eight"),
        ("--force -rf", "force-rf"),
    ],
)
def test_a_slug_is_the_words_of_the_first_line(text: str, name: str) -> None:
    assert form.make_slug(text) == name


@given(hostile)
def test_a_slug_is_always_a_plain_short_file_name(text: str) -> None:
    name = form.make_slug(text)
    assert 1 <= len(name) <= 40
    assert re.fullmatch(r"[^\W_]+(-[^\W_]+)*", name)
    name.encode()


@given(st.one_of(hostile, st.text(characters)))
@example("../../../etc/passwd")
@example("a\n-->\0")
@example("🔥" * 2500)
@example("x" * 10_000)
@example("..")
@example("-rf")
def test_any_session_id_gives_a_path_inside_raw_conversations(identifier: str) -> None:
    path = form.make_file_path(Opening(identifier, STARTED), "name", 9)
    assert re.fullmatch(
        r"raw/conversations/2026/02/16/1845-[A-Za-z0-9][A-Za-z0-9._-]{0,63}-name-10\.md", path
    )


@given(hostile, hostile)
def test_two_ids_never_share_a_file_name(one: str, other: str) -> None:
    assert (form.safe_name(one) == form.safe_name(other)) == (one == other)


# ---------------------------------------------------------------- the exact form


def test_a_live_transcript_has_the_exact_lines_of_the_format() -> None:
    marks = re.compile(r"[0-9a-f]{8} -->")
    assert marks.sub("######## -->", kept().text) == (
        "---\n"
        "session_id: ses_1\n"
        "started: 2026-02-16T17:45:00Z\n"
        "model: some-model\n"
        "channel: chat\n"
        "agent: main\n"
        'session_key: "agent:main:main"\n'
        'utc_offset: "+01:00"\n'
        "marks: crc32\n"
        "---\n"
        "\n"
        "# hello\n"
        "\n"
        "## 18:45 — user (Ana)\n"
        "Which glaze?\n"
        "<!-- 1 18:45:00 ######## -->\n"
        "\n"
        "## 18:45 — agent\n"
        "> [tool:read] glazes.md → 26 lines\n"
        "<!-- 2 18:45:00 ######## -->\n"
        "\n"
        "## 18:45 — agent\n"
        "The blue one.\n"
        "<!-- 3 18:45:00 ######## -->\n"
        "\n"
        "## 18:45 — agent [memory]\n"
        "> [knowledge:updated] knowledge/a.md — glaze\n"
        "<!-- 4 18:45:00 ######## -->\n"
        "\n"
        "## 18:45 — user\n"
        "> [attachment:attachments/a.png]\n"
        "<!-- 5 18:45:00 ######## -->\n"
    )


def test_entries_of_the_same_turn_share_its_heading() -> None:
    paper = Paper().message("Looking.", "agent")
    for name in ("read", "grep"):
        paper.add(lambda place, name=name: form.render_tool_call(place, STARTED, name, "a"))  # type: ignore[misc]
    assert paper.text.count("## 18:45") == 1
    assert "> [tool:read] a\n" in paper.text


def test_the_final_frontmatter_has_the_documented_keys_in_order() -> None:
    paper = kept(Opening("ses_1", STARTED, channel="chat", model="m", continues="raw/conversations/x.md"))
    closing = Closing(STARTED + timedelta(hours=1), ("glaze", "kiln: b"), 12, 34)
    changes = [turn for turn in paper.parsed().turns if isinstance(turn, KnowledgeChange)]
    sealed = form.render_final(paper.text, paper.opening, closing, changes)
    head = yaml.safe_load(sealed.split("---\n")[1])
    assert list(head) == [
        *("session_id", "started", "ended", "model", "channel", "topic", "tags", "tokens_in", "tokens_out"),
        *("knowledge_changes", "agent", "session_key", "utc_offset", "continues", "marks"),
    ]
    assert "ended: 2026-02-16T18:45:00Z\n" in sealed
    assert head["topic"] == "hello"
    assert head["tags"] == ["glaze", "kiln: b"]
    assert (head["tokens_in"], head["tokens_out"]) == (12, 34)
    assert head["knowledge_changes"] == [{"path": "knowledge/a.md", "action": "updated", "summary": "glaze"}]
    assert sealed.partition("\n# ")[2] == paper.text.partition("\n# ")[2]


def test_a_tool_line_is_one_line_of_at_most_500_characters_a_side() -> None:
    paper = Paper().add(
        lambda place: form.render_tool_call(place, STARTED, "read", '{\n  "path":\t"a"\n}', "word " * 1000)
    )
    (turn,) = paper.parsed().turns
    assert isinstance(turn, ToolCall)
    assert turn.summary == '{ "path": "a" }'
    assert len(turn.result) <= 500
    assert turn.result.endswith("word…")


# ---------------------------------------------------------------- forging


def _folded(text: str) -> str:
    return form.shorten(text)


_messages = st.builds(
    lambda role, text, speaker: (
        lambda place: form.render_message(place, STARTED, role, text, speaker),
        Message(0, STARTED, role, text, speaker or None),
    ),
    st.sampled_from(["user", "agent", "system"]),
    hostile,
    hostile | st.none(),
)
_tools = st.builds(
    lambda name, summary, result: (
        lambda place: form.render_tool_call(place, STARTED, name, summary, result),
        ToolCall(0, STARTED, name, _folded(summary), _folded(result)),
    ),
    hostile,
    hostile,
    hostile,
)
_changes = st.builds(
    lambda action, path, summary: (
        lambda place: form.render_knowledge_change(place, STARTED, action, path, summary),
        KnowledgeChange(0, STARTED, action, path, _folded(summary)),
    ),
    hostile,
    hostile,
    hostile,
)
_attachments = st.builds(
    lambda role, path: (
        lambda place: form.render_attachment(place, STARTED, role, path),
        Attachment(0, STARTED, role, path),
    ),
    st.sampled_from(["user", "agent", "system"]),
    hostile,
)
_records = st.lists(st.one_of(_messages, _messages, _tools, _changes, _attachments), min_size=1, max_size=5)


def _bare(turn: Turn) -> tuple[object, ...]:
    """A turn without its number and line."""
    names = [name for name in type(turn).__slots__ if name not in ("number", "line")]
    return (type(turn), *(getattr(turn, name) for name in names))


@settings(max_examples=400)
@given(_records)
def test_no_text_adds_changes_or_hides_a_turn(records: list[tuple[Write, Turn]]) -> None:
    paper = Paper()
    for write, _ in records:
        paper.add(write)
    parsed = paper.parsed()
    assert [_bare(turn) for turn in parsed.turns] == [_bare(turn) for _, turn in records]
    assert [turn.number for turn in parsed.turns] == list(range(1, len(records) + 1))
    assert parsed.problems == ()
    assert form.find_position(paper.text, STARTED) == (paper.place, False)
    assert form.read(paper.text, OPENING, PATH) == parsed.turns
    stored = paper.text.encode()
    assert b"\0" not in stored


@settings(max_examples=200)
@given(hostile, hostile, hostile, hostile | st.none(), hostile | st.none(), hostile, st.lists(hostile))
def test_hostile_names_come_back_from_the_frontmatter(
    session_id: str,
    session_key: str,
    agent: str,
    channel: str | None,
    model: str | None,
    said: str,
    tags: list[str],
) -> None:
    opening = Opening(session_id or "x", STARTED, session_key or "k", agent or "a", channel, model)
    paper = Paper(opening).message(said)
    closing = Closing(STARTED, tuple(tags), 1, 2)
    change = KnowledgeChange(1, STARTED, said, session_id, said)
    for text in (paper.text, form.render_final(paper.text, opening, closing, [change])):
        parsed = form.parse(text, PATH)
        assert parsed.problems == ()
        assert form.read_opening(parsed) == opening
        assert [turn.text for turn in parsed.messages] == [said]
        text.encode()
    assert parsed.fields["tags"] == tags
    assert parsed.fields["knowledge_changes"] == [{"path": session_id, "action": said, "summary": said}]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "\n\n\n",
        " ",
        "\t",
        "\r",
        "\r\n",
        "a\r\n",
        "a\n",
        "\na",
        "\0",
        "\ud800",
        "\u2028",
        "x" * 5_000_000,
    ],
    ids=lambda text: repr(text[:10]),
)
def test_odd_messages_come_back_byte_for_byte(text: str) -> None:
    parsed = Paper().message(text).message("next").parsed()
    assert [turn.text for turn in parsed.messages] == [text, "next"]
    assert parsed.problems == ()


def test_a_message_that_is_a_whole_transcript_stays_a_message() -> None:
    forged = kept().text
    parsed = Paper().message(forged, "agent").message("real").parsed()
    assert [turn.text for turn in parsed.turns if isinstance(turn, Message)] == [forged, "real"]


# ---------------------------------------------------------------- reasoning


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>hm</think>Yes.", "Yes."),
        ("  <thinking>\na\n\nb</thinking>\n\nYes.", "Yes."),
        ("<THINK>a</THINK><reasoning>b</reasoning> Yes.", "Yes."),
        ("<think>only</think>", ""),
        ("Yes, <think>is a tag</think>.", "Yes, <think>is a tag</think>."),
        ("<think>a</thinking>Yes.", "<think>a</thinking>Yes."),
        ("<b>Yes</b>", "<b>Yes</b>"),
        ("", ""),
    ],
)
def test_only_what_a_model_thought_before_its_answer_is_removed(text: str, left: str) -> None:
    assert form.strip_reasoning(text) == left


# ---------------------------------------------------------------- time


def test_a_new_day_stands_in_the_heading_and_the_days_after_it_go_on_from_there() -> None:
    times = [
        STARTED,
        datetime(2026, 2, 17, 0, 5, tzinfo=CET),
        datetime(2026, 2, 17, 0, 6, tzinfo=CET),
        datetime(2036, 2, 16, 12, 0, tzinfo=CET),
        datetime(2026, 2, 14, 12, 0, tzinfo=CET),
    ]
    paper = Paper()
    for number, at in enumerate(times):
        paper.message(str(number), at=at)
    assert [line for line in paper.text.split("\n") if line.startswith("## ")] == [
        "## 18:45 — user",
        "## 2026-02-17 00:05 — user",
        "## 00:06 — user",
        "## 2036-02-16 12:00 — user",
        "## 2026-02-14 12:00 — user",
    ]
    assert [turn.at for turn in paper.parsed().turns] == times


def test_a_tool_call_after_midnight_gets_a_heading_of_its_own() -> None:
    after = datetime(2026, 2, 17, 0, 5, tzinfo=CET)
    paper = (
        Paper().message("late", "agent").add(lambda place: form.render_tool_call(place, after, "read", "a"))
    )
    assert "## 2026-02-17 00:05 — agent\n> [tool:read] a\n" in paper.text
    assert paper.parsed().turns[-1].at == after


_moments = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)).map(  # noqa: DTZ001
    lambda at: at.replace(tzinfo=CET)
)


@given(st.lists(_moments, min_size=1, max_size=6))
def test_any_order_of_times_comes_back_to_the_microsecond(times: list[datetime]) -> None:
    paper = Paper()
    for at in times:
        paper.message("x", at=at)
    parsed = paper.parsed()
    assert [turn.at for turn in parsed.turns] == times
    assert parsed.problems == ()


@pytest.mark.parametrize(
    ("at", "written"),
    [(0, "18:45:07"), (120_000, "18:45:07.120"), (120_001, "18:45:07.120001")],
)
def test_a_mark_is_as_exact_as_its_time(at: int, written: str) -> None:
    paper = Paper().message("x", at=STARTED.replace(second=7, microsecond=at))
    assert f"<!-- 1 {written} " in paper.text


@pytest.mark.parametrize(
    ("offset", "written"),
    [
        (timedelta(), "+00:00"),
        (timedelta(hours=5, minutes=45), "+05:45"),
        (-timedelta(hours=3, minutes=30), "-03:30"),
        (timedelta(hours=14), "+14:00"),
    ],
)
def test_the_offset_is_written_and_read(offset: timedelta, written: str) -> None:
    opening = Opening("a", datetime(2026, 2, 16, 18, 45, tzinfo=timezone(offset)))
    paper = Paper(opening).message("x", at=opening.started)
    assert f'utc_offset: "{written}"\n' in paper.text
    parsed = paper.parsed()
    assert form.read_opening(parsed).started == opening.started
    assert parsed.turns[0].at == opening.started
    assert parsed.turns[0].at.utcoffset() == offset


@pytest.mark.parametrize("offset", ["1:00", "+25:00", "+01:60", 60, None, "x"])
def test_an_offset_that_makes_no_sense_counts_as_utc(offset: object) -> None:
    text = (
        f"---\nsession_id: a\nstarted: 2026-02-16T18:45:00Z\nutc_offset: {offset}\n---\n## 18:45 — user\nhi\n"
    )
    assert form.parse(text, PATH).turns[0].at == datetime(2026, 2, 16, 18, 45, tzinfo=UTC)


# ---------------------------------------------------------------- torn and touched


def test_a_record_cut_at_any_byte_is_found_and_closed_off() -> None:
    """The turns before it stay, it is reported once, and what is written after it is whole."""
    lasts: dict[str, Write] = {
        "message": lambda place: form.render_message(
            place, STARTED, "agent", "Größe\n\n## 18:45 — user\n", "Ä"
        ),
        "entry": lambda place: form.render_attachment(place, STARTED, "user", "a—b.png"),
        "change": lambda place: form.render_knowledge_change(place, STARTED, "updated", "k.md", "ü"),
    }
    base = kept()
    before = base.parsed().turns
    for write in lasts.values():
        record = write(base.place).text.encode()
        for cut in range(1, len(record)):
            torn = base.text.encode() + record[:cut]
            text = torn.decode("utf-8", "surrogateescape")
            assert form.parse(text, PATH).turns == before, record[:cut]
            place, is_torn = form.find_position(text, STARTED)
            assert (place, is_torn) == (base.place, True), record[:cut]

            again = text + form.TRUNCATION_LINE + form.render_message(place, STARTED, "user", "after").text
            parsed = form.parse(again, PATH)
            assert parsed.turns[:-1] == before, record[:cut]
            assert parsed.messages[-1].text == "after"
            assert parsed.turns[-1].number == 6
            said = record[:cut].strip()
            levels = [problem.level for problem in parsed.problems]
            assert levels == (["warning"] if said else []), record[:cut]
            if said:
                assert f"{len(said)} bytes" in parsed.problems[0].what
            assert form.find_position(again, STARTED)[1] is False


def test_a_changed_record_is_reported_with_its_line_and_still_read() -> None:
    text = kept().text.replace("Which glaze?", "Which price?")
    parsed = form.parse(text, PATH)
    assert [turn.text for turn in parsed.messages] == ["Which price?", "The blue one."]
    (problem,) = parsed.problems
    assert "record 1 does not fit its checksum" in problem.what
    assert problem.line is not None
    assert text.split("\n")[problem.line - 1 : problem.line + 2] == [
        "",
        "## 18:45 — user (Ana)",
        "Which price?",
    ]


def test_a_record_that_was_cut_out_leaves_a_gap_in_the_numbers() -> None:
    text = kept().text
    start, end = text.index("\n## 18:45 — agent\nThe blue"), text.index("\n## 18:45 — agent [memory]")
    parsed = form.parse(text[:start] + text[end:], PATH)
    assert [turn.number for turn in parsed.turns] == [1, 2, 4, 5]


@pytest.mark.parametrize(
    ("damage", "harmed"),
    [
        (lambda data: data.replace(b"Which glaze?", b"Which gl"), 1),
        (lambda data: data.replace(b"Which glaze?", b"Which\0glaze?"), 1),
        (lambda data: data.replace(b"Which glaze?", b"Which \xff\xfe glaze?"), 1),
        (lambda data: data.replace(b"Which glaze?", b"x" * 5_000_000), 1),
        (lambda data: b"\xef\xbb\xbf" + data, 0),
        (lambda data: data.replace(b"\n", b"\r\n"), 0),
        (lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"), 0),
    ],
    ids=["partial line", "NUL", "not UTF-8", "5 MB line", "BOM", "CRLF", "BOM and CRLF"],
)
def test_a_damaged_transcript_keeps_its_other_records(damage: Callable[[bytes], bytes], harmed: int) -> None:
    whole = kept()
    data = damage(whole.text.encode())
    text = data.decode("utf-8", "surrogateescape")
    parsed = form.parse(text, PATH)
    assert [_bare(turn) for turn in parsed.turns[harmed:]] == [
        _bare(turn) for turn in whole.parsed().turns[harmed:]
    ]
    assert [turn.number for turn in parsed.turns] == [1, 2, 3, 4, 5]
    assert parsed.fields["session_id"] == "ses_1"
    assert len(parsed.problems) == harmed
    assert text.encode("utf-8", "surrogateescape") == data


@settings(max_examples=300)
@given(
    st.one_of(
        hostile, st.text(characters), st.binary().map(lambda data: data.decode("utf-8", "surrogateescape"))
    ),
    st.booleans(),
)
@example("<!-- 1" + "1" * 6000 + " 18:45:07 00000000 -->\n", True)
@example("<!-- 1 18:45:0٣ 00000000 -->\n", True)
@example("<!-- ٣ 18:45:07 00000000 -->\n", True)
@example("<!-- 1 18:45:07.1 00000000 -->\n", True)
@example("## 2026-99-99 99:99 — user\nx\n", False)
def test_no_text_stops_the_reader(body: str, marked: bool) -> None:
    marks = "marks: crc32\n" if marked else ""
    text = f"---\nsession_id: a\nstarted: 2026-02-16T18:45:00Z\n{marks}---\n{body}"
    for odd in (text, body):
        data = odd.encode("utf-8", "replace" if "\ud800" in odd else "surrogatepass")
        stored = data.decode("utf-8", "surrogateescape")
        assert form.parse(stored, PATH).path == PATH


@pytest.mark.parametrize(
    "started", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "nonsense", "2026-02-16", ""]
)
@pytest.mark.parametrize("offset", ["-05:00", "+05:00"])
def test_a_start_that_makes_no_sense_is_a_problem_and_the_turns_are_read(started: str, offset: str) -> None:
    text = f'---\nsession_id: a\nstarted: {started}\nutc_offset: "{offset}"\n---\n## 18:45 — user\nhi\n'
    parsed = form.parse(text, PATH)
    assert [turn.text for turn in parsed.messages] == ["hi"]
    assert parsed.turns[0].at.time() == time(18, 45)
    assert all("2026-02-16T18:45:00Z" in problem.todo for problem in parsed.problems)


# ---------------------------------------------------------------- by hand

BY_HAND = """\
---
session_id: paper-notes-1
started: 2026-02-16T17:45:00Z
ended: 2026-02-16T18:00:00Z
utc_offset: "+01:00"
---

# On Paper

Some words before the first turn are nobody's.

## 18:45 — user
What did we decide?

Second paragraph.
> [attachment:attachments/kiln.png]

## 18:46 — agent
> [tool:read] notes.md → 42 lines
To fire at 1,220 °C.
> an ordinary quote

## 18:47 — agent [memory]
> [knowledge:updated] knowledge/kiln.md — 1,220 °C

## Not a turn
still the agent

## 2026-02-17 00:05 — system (cron)
late
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_transcript_written_by_hand_needs_no_marks(newline: str) -> None:
    parsed = form.parse(BY_HAND.replace("\n", newline), PATH)
    assert parsed.problems == ()
    assert parsed.sealed
    assert parsed.title == "On Paper"
    told = [(type(turn).__name__, turn.at.strftime("%d %H:%M"), turn.line) for turn in parsed.turns]
    assert told == [
        ("Message", "16 18:45", 13),
        ("Attachment", "16 18:45", 16),
        ("ToolCall", "16 18:46", 19),
        ("Message", "16 18:46", 20),
        ("KnowledgeChange", "16 18:47", 24),
        ("Message", "16 18:47", 26),
        ("Message", "17 00:05", 30),
    ]
    texts = [turn.text.replace("\r\n", "\n") for turn in parsed.messages]
    assert texts == [
        "What did we decide?\n\nSecond paragraph.",
        "To fire at 1,220 °C.\n> an ordinary quote",
        "## Not a turn\nstill the agent",
        "late",
    ]
    assert parsed.messages[-1].speaker == "cron"
    assert isinstance(parsed.turns[2], ToolCall)
    assert (parsed.turns[2].summary, parsed.turns[2].result) == ("notes.md", "42 lines")


def test_a_file_without_frontmatter_is_read_with_a_problem() -> None:
    parsed = form.parse("## 18:45 — user\nhi\n", PATH)
    assert [turn.text for turn in parsed.messages] == ["hi"]
    assert parsed.messages[0].at.date() == date(1970, 1, 1)
    assert [problem.level for problem in parsed.problems] == ["error"]


def test_lines_of_turns_are_those_of_the_file() -> None:
    paper = kept()
    lines = paper.text.split("\n")
    for turn in paper.parsed().turns:
        begins = turn.text.split("\n")[0] if isinstance(turn, Message) else "> ["
        assert lines[turn.line - 1].startswith(begins), turn


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Which glaze for the big plates?", "Which glaze for the big plates?"),
        ("Grüße: 1,215 °C 🦊\nmore", "Grüße: 1,215 °C 🦊"),
        ("\n\n  # shout  ", "# shout"),
        ("word " * 30, "word word word word word word word word word word word word…"),
        ("", "Session"),
        ("a\u2028b\x1b[0m", "a b&#x1B;[0m"),
    ],
)
def test_a_title_is_the_first_line_as_it_was_said(said: str, title: str) -> None:
    assert form.make_title(said) == title

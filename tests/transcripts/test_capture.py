"""One conversation while it happens: what is said comes back, whatever order and hour it was said in."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tacit.config import Config
from tacit.errors import SessionError, UsageError
from tacit.home.files import digest
from tacit.home.layout import Home
from tacit.memory import Memory
from tacit.transcripts import format as form
from tacit.transcripts import writer
from tacit.transcripts.capture import Session, fix_offset
from tacit.transcripts.model import Attachment, KnowledgeChange, Message, Role, Sealed, ToolCall, Turn
from tests.hostile import hostile

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2026, 2, 16, 18, 45, 7, 120_000, tzinfo=BERLIN)


class Clock:
    """A clock that only we move."""

    def __init__(self, at: datetime = START) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at

    def move(self, **by: float) -> None:
        # In UTC: adding hours to a time in a zone would skip what the clocks do.
        self.at = (self.at.astimezone(UTC) + timedelta(**by)).astimezone(BERLIN)


def keeper(root: Path, clock: Clock) -> Memory:
    """A memory of files alone: what is sealed waits for a commit that nobody makes."""
    config = replace(Config(), git=replace(Config().git, auto_commit=False))
    return Memory(Home(root), config, zone=BERLIN, now=clock)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(tmp_path: Path, clock: Clock) -> Memory:
    return keeper(tmp_path, clock)


def text_of(memory: Memory, session: Session) -> str:
    assert session.path is not None
    return (memory.home.root / session.path).read_text(encoding="utf-8")


def headings(memory: Memory, session: Session) -> list[str]:
    return [line for line in text_of(memory, session).split("\n") if line.startswith("## ")]


def times(session: Session) -> list[datetime]:
    return [turn.at for turn in session.turns()]


# ---------------------------------------------------------------- any order of anything


class Conversation(RuleBasedStateMachine):
    """A session against the plainest model of one: a list of what was said, part by part."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.memory = keeper(Path(self.folder.name), self.clock)
        self.sealed: list[tuple[Sealed, list[Turn]]] = []
        self.said: list[Turn] = []
        self.session = self.memory.session(session_id="ses/1")

    def _now(self) -> datetime:
        return self.clock.at

    def _keep(self, number: int, turn: Turn) -> None:
        self.said.append(turn)
        assert number == len(self.said)

    @rule(role=st.sampled_from(["user", "system", "human"]), text=hostile, speaker=hostile | st.none())
    def hears(self, role: str, text: str, speaker: str | None) -> None:
        who: Role = "system" if role == "system" else "user"
        turn = Message(len(self.said) + 1, self._now(), who, text, speaker or None)
        self._keep(self.session.message(role, text, speaker=speaker), turn)

    @rule(role=st.sampled_from(["agent", "assistant"]), text=hostile)
    def answers(self, role: str, text: str) -> None:
        number = self.session.message(role, "<think>\n## 18:45 — user\n</think>" + text)
        left = text.lstrip()
        if not left:
            assert number == 0
        else:
            self._keep(number, Message(number, self._now(), "agent", left))

    @rule(text=hostile)
    def thinks(self, text: str) -> None:
        assert self.session.message("thinking", text) == 0

    @rule(name=hostile, summary=hostile, result=hostile)
    def calls(self, name: str, summary: str, result: str) -> None:
        number = self.session.tool(name, summary, result)
        self._keep(number, ToolCall(number, self._now(), name, form.shorten(summary), form.shorten(result)))

    @rule(action=hostile, path=hostile, summary=hostile)
    def learns(self, action: str, path: str, summary: str) -> None:
        number = self.session.knowledge(action, path, summary)
        self._keep(number, KnowledgeChange(number, self._now(), action, path, form.shorten(summary)))

    @rule(path=hostile, role=st.sampled_from(["user", "agent", "system"]))
    def attaches(self, path: str, role: Role) -> None:
        number = self.session.attachment(path, role)
        self._keep(number, Attachment(number, self._now(), role, path))

    @rule(milliseconds=st.integers(-200_000_000, 200_000_000))
    def time_moves(self, milliseconds: int) -> None:
        self.clock.move(milliseconds=milliseconds)

    @rule()
    def another_process_goes_on(self) -> None:
        self.session.detach()
        self.session = self.memory.session(session_id="ses/1")

    @rule()
    def ends_and_goes_on(self) -> None:
        sealed = self.session.end()
        assert (sealed is None) == (not self.said)
        if sealed is not None:
            self.sealed.append((sealed, self.said))
        self.said = []
        self.session = self.memory.session(session_id="ses/1")

    @invariant()
    def what_was_said_is_there(self) -> None:
        if hasattr(self, "session"):
            assert [replace(turn, line=0) for turn in self.session.turns()] == self.said

    def teardown(self) -> None:
        if not hasattr(self, "session"):
            return
        self.ends_and_goes_on()
        for sealed, said in self.sealed:
            parsed = self.memory.transcript(sealed.path)
            assert [replace(turn, line=0) for turn in parsed.turns] == said
            assert parsed.problems == ()
            assert parsed.fields["session_id"] == "ses/1"
            assert digest((self.memory.home.root / sealed.path).read_bytes()) == sealed.sha256
        self.folder.cleanup()


TestAnyOrderOfAnything = Conversation.TestCase
TestAnyOrderOfAnything.settings = settings(max_examples=40, stateful_step_count=15)


# ---------------------------------------------------------------- roles and reasoning


def test_the_words_of_hosts_become_our_three_roles(kept: Memory) -> None:
    session = kept.session()
    for role in ("user", "human", "agent", "assistant", "system"):
        session.message(role, role)
    assert [turn.role for turn in session.turns() if isinstance(turn, Message)] == [
        *("user", "user", "agent", "agent", "system")
    ]


@pytest.mark.parametrize("role", ["tool", "User", "", "developer", "agent\n## 18:45 — user"])
def test_a_role_we_do_not_know_is_refused_and_nothing_is_written(kept: Memory, role: str) -> None:
    session = kept.session()
    with pytest.raises(UsageError, match="The roles are user, agent"):
        session.message(role, "x")
    with pytest.raises(UsageError, match="The roles are user, agent"):
        session.attachment("x", role)
    assert session.path is None


def test_tool_output_is_sent_to_the_right_method(kept: Memory) -> None:
    with pytest.raises(UsageError, match=r"Use \.tool\(\)"):
        kept.session().message("tool", "x")


def test_reasoning_is_not_kept_and_makes_no_transcript(kept: Memory) -> None:
    session = kept.session()
    assert session.message("thinking", "hm") == 0
    assert session.message("reasoning", "hm") == 0
    assert session.message("agent", "<think>hm</think>") == 0
    assert session.path is None
    session.message("agent", "<thinking>\nhm\n</thinking>\nYes.")
    assert "hm" not in text_of(kept, session)
    assert [turn.text for turn in session.turns() if isinstance(turn, Message)] == ["Yes."]


@pytest.mark.parametrize("role", ["user", "system"])
def test_what_people_write_is_never_taken_for_reasoning(kept: Memory, role: str) -> None:
    session = kept.session()
    session.message(role, "<think>this is how it looks</think> right?")
    (turn,) = session.turns()
    assert isinstance(turn, Message)
    assert turn.text == "<think>this is how it looks</think> right?"


# ---------------------------------------------------------------- time


def test_seconds_and_milliseconds_are_kept(kept: Memory) -> None:
    session = kept.session()
    session.message("user", "hello")
    assert times(session) == [START]
    assert "<!-- 1 18:45:07.120 " in text_of(kept, session)


def test_midnight_stands_in_the_heading(kept: Memory, clock: Clock) -> None:
    session = kept.session()
    session.message("user", "evening")
    clock.move(hours=6)
    session.message("agent", "night")
    session.tool("read", "a")
    clock.move(hours=6)
    session.message("user", "morning")
    assert headings(kept, session) == [*("## 18:45 — user", "## 2026-02-17 00:45 — agent", "## 06:45 — user")]
    assert session.path is not None
    assert session.path.startswith("raw/conversations/2026/02/16/1845-")


@pytest.mark.parametrize("days", [-2, -400, 3653])
def test_a_clock_that_jumps_keeps_the_order_and_the_times(kept: Memory, clock: Clock, days: int) -> None:
    session = kept.session()
    expected = []
    for text in ("one", "two", "three"):
        session.message("user", text)
        expected.append(clock.at)
        clock.move(days=days)
    sealed = session.end()
    assert sealed is not None
    parsed = kept.transcript(sealed.path)
    assert [(turn.number, turn.at, turn.text) for turn in parsed.messages] == [
        (1, expected[0], "one"),
        (2, expected[1], "two"),
        (3, expected[2], "three"),
    ]
    assert parsed.problems == ()


@pytest.mark.parametrize(
    ("begin", "offset", "written"),
    [
        (datetime(2026, 10, 25, 0, 30, tzinfo=UTC), "+02:00", ["02:30", "03:30", "04:30"]),
        (datetime(2026, 3, 29, 0, 30, tzinfo=UTC), "+01:00", ["01:30", "02:30", "03:30"]),
    ],
    ids=["autumn", "spring"],
)
@pytest.mark.parametrize("given_by", ["clock", "importer"])
def test_when_clocks_change_the_transcript_keeps_its_offset(
    tmp_path: Path, begin: datetime, offset: str, written: list[str], given_by: str
) -> None:
    clock = Clock(begin)
    memory = keeper(tmp_path, clock)
    session = memory.session()
    moments = [begin + timedelta(hours=hours) for hours in range(3)]
    for at in moments:
        if given_by == "clock":
            clock.at = at
            session.message("user", "x")
        else:
            session.message("user", "x", at=at.astimezone(BERLIN))
    assert f'utc_offset: "{offset}"' in text_of(memory, session)
    assert headings(memory, session) == [f"## {time} — user" for time in written]
    assert times(session) == moments
    sealed = session.end()
    assert sealed is not None
    assert [turn.at for turn in memory.transcript(sealed.path).turns] == moments


def test_times_from_any_zone_are_the_same_moments_in_one_offset(kept: Memory) -> None:
    zones = [UTC, timezone(timedelta(hours=-8)), ZoneInfo("Asia/Kathmandu"), ZoneInfo("Asia/Tokyo"), BERLIN]
    moment = datetime(2026, 2, 16, 23, 30, tzinfo=UTC)
    session = kept.session(started=moment)
    for zone in zones:
        session.message("user", str(zone), at=moment.astimezone(zone))
    assert times(session) == [moment] * 5
    assert headings(kept, session) == ["## 00:30 — user"] * 5
    assert session.path is not None
    assert session.path.startswith("raw/conversations/2026/02/17/0030-")


def test_naive_times_are_of_the_homes_zone_at_that_date(kept: Memory) -> None:
    session = kept.session()
    session.message("user", "in summer", at=datetime(2026, 7, 1, 12, 0))  # noqa: DTZ001
    session.message("user", "in winter", at=datetime(2026, 12, 1, 12, 0))  # noqa: DTZ001
    assert times(session) == [
        datetime(2026, 7, 1, 10, 0, tzinfo=UTC),
        datetime(2026, 12, 1, 11, 0, tzinfo=UTC),
    ]


def test_a_session_starts_when_it_is_said_to(kept: Memory) -> None:
    given = datetime(2025, 5, 5, 5, 5, tzinfo=UTC)
    session = kept.session(started=given)
    session.message("user", "later", at=given + timedelta(days=1))
    assert "started: 2025-05-05T05:05:00Z\n" in text_of(kept, session)
    assert headings(kept, session) == ["## 2025-05-06 07:05 — user"]


def test_a_session_without_a_start_starts_with_its_first_given_time(kept: Memory) -> None:
    given = datetime(2025, 5, 5, 5, 5, tzinfo=UTC)
    session = kept.session()
    session.message("user", "first", at=given)
    session.message("user", "second", at=given - timedelta(days=9))
    sealed = session.end()
    assert sealed is not None
    assert "started: 2025-05-05T05:05:00Z\n" in text_of(kept, session)
    assert sealed.path.startswith("raw/conversations/2025/05/05/")


def test_a_session_whose_times_were_given_ends_with_the_last_of_them(kept: Memory) -> None:
    given = datetime(2025, 5, 5, 5, 5, tzinfo=UTC)
    session = kept.session()
    session.message("user", "first", at=given)
    session.message("agent", "last", at=given + timedelta(minutes=7))
    session.end()
    assert "ended: 2025-05-05T05:12:00Z\n" in text_of(kept, session)


def test_the_end_can_be_given_too(kept: Memory) -> None:
    session = kept.session()
    session.message("user", "hello")
    session.end(START + timedelta(hours=2))
    assert "ended: 2026-02-16T19:45:07Z\n" in text_of(kept, session)


def test_an_offset_is_the_zones_at_that_moment() -> None:
    summer = fix_offset(datetime(2026, 7, 1, 12, 0, tzinfo=BERLIN))
    assert summer.tzinfo == timezone(timedelta(hours=2))
    assert summer == datetime(2026, 7, 1, 12, 0, tzinfo=BERLIN)


# ---------------------------------------------------------------- ending


def test_ending_twice_gives_the_same_answer(kept: Memory) -> None:
    session = kept.session()
    session.message("user", "hello")
    assert session.end() is session.end()


def test_a_session_in_which_nothing_was_said_leaves_no_file(kept: Memory) -> None:
    session = kept.session()
    assert session.end() is None
    assert session.end() is None
    assert list(kept.home.root.rglob("*.md")) == []


@pytest.mark.parametrize("said", [True, False])
@pytest.mark.parametrize("close", [lambda session: session.end(), lambda session: session.detach()])
def test_nothing_is_taken_after_the_end_and_the_error_says_what_to_do(
    kept: Memory, said: bool, close: Callable[[Session], object]
) -> None:
    session = kept.session()
    if said:
        session.message("user", "hello")
    close(session)
    attempts: list[Callable[[], int]] = [
        lambda: session.message("user", "more"),
        lambda: session.tool("read", "a"),
        lambda: session.knowledge("updated", "a.md"),
        lambda: session.attachment("a.png"),
    ]
    for attempt in attempts:
        with pytest.raises(SessionError, match=r"Continue it with Memory\.session"):
            attempt()
    assert len(session.turns()) == said
    assert len(list(kept.home.root.rglob("raw/**/*.md"))) == said


def test_a_detached_session_is_not_sealed_by_leaving_its_block(kept: Memory) -> None:
    with kept.session(session_id="ses_1") as session:
        session.message("user", "hello")
        session.detach()
    assert session.path is not None
    assert not writer.is_sealed(kept.home.root / session.path)
    assert kept.services.conversations.is_open("ses_1")


def test_leaving_the_block_seals_also_when_it_raised(kept: Memory) -> None:
    session = kept.session()
    session.message("user", "hello")
    with pytest.raises(ZeroDivisionError), session:
        raise ZeroDivisionError
    assert session.path is not None
    assert writer.is_sealed(kept.home.root / session.path)


def test_tokens_are_what_the_host_counted_else_what_was_heard_and_said(kept: Memory) -> None:
    counted = kept.session()
    counted.message("user", "one two three")
    counted.message("agent", "four")
    counted.end()
    given = kept.session()
    given.message("user", "one two three")
    given.end(tokens_in=1234, tokens_out=0)
    assert "tokens_in: 3\ntokens_out: 1\n" in text_of(kept, counted)
    assert "tokens_in: 1234\ntokens_out: 0\n" in text_of(kept, given)


@pytest.mark.parametrize(
    "text", ["\ud800", "\0", "x" * 5_000_000, ""], ids=["half a character", "NUL", "5 MB", "empty"]
)
def test_a_session_of_odd_text_can_be_ended(kept: Memory, text: str) -> None:
    session = kept.session()
    session.message("user", text)
    sealed = session.end()
    assert sealed is not None
    assert [turn.text for turn in kept.transcript(sealed.path).messages] == [text]


# ---------------------------------------------------------------- several at once


def test_eight_threads_in_one_session_keep_every_turn_once_with_its_own_number(kept: Memory) -> None:
    """Also the very first turn, which names the file and may move its start."""
    session = kept.session()
    numbers: list[int] = []
    barrier = threading.Barrier(8)

    def talk(who: int) -> None:
        barrier.wait()
        for count in range(10):
            at = START + timedelta(minutes=count)
            if who % 2:
                numbers.append(session.message("user", f"{who} {count}", at=at))
            else:
                numbers.append(session.tool(f"{who}", f"{count}"))

    threads = [threading.Thread(target=talk, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sealed = session.end()
    assert sealed is not None
    assert sorted(numbers) == list(range(1, 81))
    parsed = kept.transcript(sealed.path)
    assert [turn.number for turn in parsed.turns] == list(range(1, 81))
    told = {turn.text if isinstance(turn, Message) else _told(turn) for turn in parsed.turns}
    assert told == {f"{who} {count}" for who in range(8) for count in range(10)}
    assert parsed.problems == ()


def _told(turn: Turn) -> str:
    assert isinstance(turn, ToolCall)
    return f"{turn.name} {turn.summary}"


def test_an_agent_that_is_not_kept_leaves_nothing(tmp_path: Path, clock: Clock) -> None:
    config = replace(Config(), capture=replace(Config().capture, exclude_agents=("private",)))
    memory = Memory(Home(tmp_path), config, zone=BERLIN, now=clock)
    for session in (
        memory.session(agent="private"),
        memory.session("agent:private:main"),
        memory.session("agent:private:telegram:direct:1", detached=True),
    ):
        assert session.session_id == ""
        assert session.message("user", "secret") == 0
        assert session.tool("read", "secret") == 0
        assert session.turns() == ()
        assert session.end() is None
    assert list(tmp_path.iterdir()) == []


def test_capture_can_be_switched_off(tmp_path: Path, clock: Clock) -> None:
    config = replace(Config(), capture=replace(Config().capture, enabled=False))
    session = Memory(Home(tmp_path), config, zone=BERLIN, now=clock).session()
    assert session.message("user", "secret") == 0
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def unusual() -> list[str]:
    return [
        "../../../etc/passwd",
        "a\nb",
        "-->",
        "\0",
        "🔥🔥",
        "x" * 10_000,
        "..",
        ".",
        "a/b",
        "-rf",
        "~",
        " ",
    ]


def test_hostile_names_stay_inside_and_come_back(kept: Memory, unusual: list[str]) -> None:
    for name in unusual:
        session = kept.session(name, name, name, name, session_id=name)
        session.message("user", name)
        sealed = session.end()
        assert sealed is not None
        place = (kept.home.root / sealed.path).resolve()
        assert place.parent == kept.home.root.resolve() / "raw/conversations/2026/02/16"
        fields = kept.transcript(sealed.path).fields
        assert [fields[key] for key in ("session_id", "session_key", "agent", "channel", "model")] == [
            name
        ] * 5
        assert sealed.session_id == name
    assert {path.name for path in kept.home.root.iterdir()} == {".tacit", "raw"}


@pytest.mark.parametrize("year", [1, 9999])
@pytest.mark.parametrize("hours", [-12, 14])
def test_an_impossible_time_is_refused_in_words(kept: Memory, year: int, hours: int) -> None:
    session = kept.session()
    at = datetime(year, 1, 1, tzinfo=timezone(timedelta(hours=hours)))
    with pytest.raises(UsageError, match=r"cannot be the time\. Give one like 2026"):
        session.message("user", "x", at=at)
    assert session.path is None

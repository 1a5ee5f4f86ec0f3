"""Files that a conversation has absorbed are left out of the bootstrap lane, and come back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tacit.context import receipts
from tacit.home.layout import Home
from tacit.memory import Memory
from tacit.sessions.live_sessions import SessionRef
from tacit.sessions.registry import SessionRegistry
from tests.memory.homes import NOW, OWNER, OWNER_DM, OWNERS, opened, settle

AFTER = "inject: {deadline_ms: 60000, shed_after_turns: 2}\n"
USED = "Do not forget: Mira waters the tomatoes at dawn."
ASKED = "Who waters the tomatoes at dawn?"
IDLE = "What is the capital of Peru?"
ALL = ["SOUL.md", "USER.md", "TOOLS_COMPACT.md"]
LESS = ["SOUL.md", "TOOLS_COMPACT.md"]


class Talk:
    """One conversation, of which each turn may be in a process of its own."""

    def __init__(self, home: Path, key: str = OWNER) -> None:
        self.home, self.key, self.now = home, key, NOW

    def memory(self) -> Memory:
        return opened(self.home, self.now)

    def live(self, do: Callable[[SessionRegistry, SessionRef], Any]) -> None:
        held = SessionRegistry(self.memory().services)
        do(held, SessionRef(self.key))
        held.close()

    def say(self, role: str, text: str) -> None:
        self.now += timedelta(minutes=1)
        self.live(lambda live, about: live.message(about, role, text, at=self.now))

    def turn(self, text: str, answer: str = "All right.") -> list[str]:
        """What the host loads for it; then it is said."""
        loaded = self.files(text)
        self.say("user", text)
        self.say("agent", answer)
        return loaded

    def files(self, text: str = "") -> list[str]:
        self.now += timedelta(minutes=1)
        return [one["name"] for one in self.memory().bootstrap(self.key, [], None, message=text) or ()]


@pytest.fixture
def talk(garden: Path) -> Talk:
    settle(garden, OWNERS + AFTER)
    (garden / "knowledge/identity/TOOLS_COMPACT.md").write_text("# Tools\n\nvalve: the main one. TOOLWORD\n")
    return Talk(garden)


def test_a_file_is_left_out_once_it_was_used_and_then_not_for_so_many_turns(talk: Talk) -> None:
    loaded = [talk.turn(text) for text in (IDLE, USED, IDLE, IDLE, IDLE, IDLE)]
    assert loaded == [ALL, ALL, ALL, ALL, LESS, LESS]


def test_nothing_is_left_out_where_the_config_does_not_say_so(talk: Talk) -> None:
    settle(talk.home, OWNERS)
    assert [talk.turn(text) for text in (USED, IDLE, IDLE, IDLE, IDLE)] == [ALL] * 5


def test_while_it_is_off_no_conversation_is_read(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(talk.home, OWNERS)
    talk.turn(USED)
    monkeypatch.setattr(
        "tacit.context.service.TurnService.conversation", lambda *_: pytest.fail("it was read")
    )
    assert talk.files(IDLE) == ALL


def test_the_agents_words_are_a_use_as_well(talk: Talk) -> None:
    talk.turn("What shall I do tomorrow?", answer=USED)
    talk.turn(IDLE)
    talk.turn(IDLE)
    assert talk.files(IDLE) == LESS


def test_it_comes_back_with_the_message_that_speaks_of_it_and_goes_again(talk: Talk) -> None:
    for text in (USED, IDLE, IDLE):
        talk.turn(text)
    assert [talk.turn(text) for text in (IDLE, ASKED, IDLE, IDLE, IDLE)] == [LESS, ALL, ALL, ALL, LESS]


def test_a_host_may_have_kept_the_message_before_it_asks(talk: Talk) -> None:
    for text in (USED, IDLE, IDLE):
        talk.turn(text)
    talk.say("user", ASKED)
    assert talk.files(ASKED) == ALL
    assert talk.files() == ALL


@pytest.mark.parametrize("ends", ["end", "renew"])
def test_a_new_session_and_a_window_that_was_cut_have_absorbed_nothing(talk: Talk, ends: str) -> None:
    for text in (USED, IDLE, IDLE):
        talk.turn(text)
    assert talk.files(IDLE) == LESS
    talk.now += timedelta(minutes=1)
    if ends == "end":
        talk.live(lambda live, about: live.end(about, at=talk.now))
    else:
        talk.memory().session_ended(OWNER)
    assert [talk.turn(IDLE) for _ in range(4)] == [ALL] * 4
    assert [talk.turn(text) for text in (USED, IDLE, IDLE, IDLE)] == [ALL, ALL, ALL, LESS]


def test_what_is_said_in_the_same_second_as_the_end_of_the_last_session_counts(talk: Talk) -> None:
    talk.turn(IDLE)
    talk.live(lambda live, about: live.end(about, at=talk.now))
    talk.memory().session_ended(OWNER, sealed=True)
    talk.now -= timedelta(minutes=1, seconds=1)  # a messenger's clock knows no parts of a second
    talk.say("user", USED)
    talk.say("agent", "All right.")
    assert [talk.turn(IDLE) for _ in range(3)] == [ALL, ALL, LESS]


def test_another_session_has_its_own(talk: Talk) -> None:
    for text in (USED, IDLE, IDLE):
        talk.turn(text)
    assert Talk(talk.home, OWNER_DM).files(IDLE) == ALL
    assert talk.files(IDLE) == LESS


def test_what_tells_who_the_agent_is_and_lists_to_look_things_up_in_stay(talk: Talk) -> None:
    names = ["SOUL.md", "IDENTITY.md", "HEARTBEAT.md", "TOOLS.md", "TOOLS_COMPACT.md", "BOOTSTRAP.md"]
    lines = ["amber birch", "cedar delta", "ember fjord", "grove heron", "iris juniper", "kelp larch"]
    settle(talk.home, f"{OWNERS}{AFTER}sessions: {{main_session: {{files: [{', '.join(names)}, OPS.md]}}}}\n")
    for name, line in zip([*names, "OPS.md"], [*lines, "maple nettle"], strict=True):
        (talk.home / "knowledge/identity" / name).write_text(f"# It\n\n{line}\n")
    for text in (". ".join([*lines, "maple nettle"]), IDLE, IDLE):
        talk.turn(text)
    assert talk.files(IDLE) == names


def test_the_only_file_of_a_session_stays(talk: Talk) -> None:
    for name in ("SOUL.md", "TOOLS_COMPACT.md"):
        (talk.home / "knowledge/identity" / name).unlink()
    for text in (USED, IDLE, IDLE):
        talk.turn(text)
    assert talk.files(IDLE) == ["USER.md"]


def test_the_receipt_says_what_was_left_out_and_why(talk: Talk) -> None:
    for text in (USED, IDLE, IDLE):
        talk.turn(text)
    talk.files(IDLE)
    receipt = receipts.recent(Home(talk.home), 1)[0]
    [left] = [one for one in receipt.dropped if one.code == "absorbed"]
    assert (left.label, left.source) == ("identity:USER.md", "knowledge/identity/USER.md")
    assert left.reason == "the conversation spoke of its line 3 3 turns ago, and of nothing in it since"
    assert left.tokens
    assert receipt.tokens == sum(section.tokens for section in receipt.sections)


def test_what_is_left_out_is_found_by_search_and_what_is_loaded_is_not_given_again(talk: Talk) -> None:
    talk.turn(USED)
    talk.files(ASKED)
    assert "USERWORD" not in talk.memory().inject("When does she water them?", session_key=OWNER).text
    for text in (IDLE, IDLE):
        talk.turn(text)
    assert talk.files(IDLE) == LESS
    assert "USERWORD" in talk.memory().inject("She waters the tomatoes when?", session_key=OWNER).text


def test_a_conversation_that_cannot_be_read_leaves_all_files_and_a_notice(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in (USED, IDLE, IDLE):
        talk.turn(text)

    def broken(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tacit.transcripts.writer.read_turns", broken)
    assert talk.files(IDLE) == ALL
    notices = receipts.recent(Home(talk.home), 1)[0].notices
    assert [notice.code for notice in notices] == ["absorbed"]
    assert "Permission denied" in notices[0].text


def test_a_trial_is_asked_of_no_conversation(talk: Talk) -> None:
    for text in (USED, IDLE, IDLE):
        talk.turn(text)
    looked = talk.memory().services.bootstrap(OWNER, [], None, message=IDLE, trial=True)
    assert [one["name"] for one in looked.files or ()] == ALL

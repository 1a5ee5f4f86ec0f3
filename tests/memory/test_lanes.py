"""The lanes that are files: off unless asked for, never older than the turn, and each session's own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tacit.config import Config, parse
from tacit.context.delivery.files import context_file_path
from tacit.context.delivery.formats import session_hash, session_marker
from tacit.context.delivery.modes import TurnCopy, write_delivery_files
from tacit.context.model import Quote
from tacit.diagnostics import Notice
from tacit.errors import ConfigError
from tacit.home import files
from tacit.home.layout import Home
from tacit.memory import Memory
from tacit.sessions.policy import resolve_profile
from tests.memory.homes import (
    GROUP,
    NOW,
    OWNER,
    OWNER_DM,
    OWNERS,
    QUESTION,
    STRANGER,
    files_of,
    opened,
    settle,
    write,
)

PAGE = "knowledge/journal/2026-03-10.md"
HEADING = "## Adaptive Memory Context (auto-injected)"
SOME = (
    Quote("Water slowly, at the root.", "knowledge/procedures/watering.md:3", "2026-03-01", 0.89),
    Quote("Half an inch is right.", "knowledge/reference/hoses.md:5", "", 0.41),
)


def config(lanes: str, text: str = "") -> Config:
    written = f"{OWNERS}inject: {{lanes: {lanes}, confidence_gate: 0.12}}\n{text}"
    return parse(written, where="test", environ={}, trusted=True).config


class Lanes:
    def __init__(self, home: Path) -> None:
        self.home = Home(home)

    def __call__(
        self,
        given: tuple[Quote, ...] = SOME,
        key: str = OWNER,
        lanes: str = "[runtime, file, daily]",
        *,
        message: str = QUESTION,
        now: datetime = NOW,
        session_id: str = "ses_1",
        is_first: bool = True,
        settings: str = "",
    ) -> tuple[Notice, ...]:
        loaded = config(lanes, settings)
        copy = TurnCopy(given, message, now, (session_id,), is_first)
        return write_delivery_files(self.home, loaded, resolve_profile(key, loaded), copy)

    def mirror(self, key: str = OWNER) -> Path:
        return context_file_path(self.home, None, key)

    def page(self, path: str = PAGE) -> str:
        file = self.home.root / path
        return file.read_text() if file.exists() else ""


@pytest.fixture
def lanes(home: Path) -> Lanes:
    return Lanes(home)


def test_nothing_is_written_unless_the_config_names_a_lane(lanes: Lanes) -> None:
    before = files_of(lanes.home.root)
    assert lanes(lanes="[bootstrap, runtime]") == ()
    assert files_of(lanes.home.root) == before


# The file lane


def test_the_file_has_what_was_given_and_is_overwritten_each_turn(lanes: Lanes) -> None:
    assert lanes(lanes="[file]") == ()
    first = lanes.mirror().read_text()
    assert first.startswith("<!-- ethos:context ts=2026-03-10T09:30:00Z query_score=0.89 -->\n")
    assert "1. **[2026-03-01]** Water slowly, at the root. *(score: 0.89)*" in first
    lanes(SOME[1:], lanes="[file]")
    assert "Water slowly" not in lanes.mirror().read_text()
    assert "(top 1, similarity ≥ 0.12)" in lanes.mirror().read_text()


@pytest.mark.parametrize("given", [(), (replace(SOME[0], score=0.05),)])
def test_a_turn_without_passages_leaves_an_empty_file_and_not_the_old_one(
    lanes: Lanes, given: tuple[Quote, ...]
) -> None:
    lanes(given, lanes="[file]")
    assert lanes.mirror().read_bytes() == b""
    lanes(lanes="[file]")
    lanes(given, lanes="[file]")
    assert lanes.mirror().read_bytes() == b""


def test_no_session_reads_the_file_of_another(lanes: Lanes) -> None:
    lanes(lanes="[file]")
    lanes(SOME[1:], GROUP, lanes="[file]")
    lanes((), STRANGER, lanes="[file]")
    assert "Water slowly" in lanes.mirror().read_text()
    assert "Water slowly" not in lanes.mirror(GROUP).read_text()
    assert lanes.mirror(STRANGER).read_bytes() == b""


def test_one_type_of_session_may_have_the_lane_alone(lanes: Lanes) -> None:
    only = "sessions: {group_chat: {lanes: [file]}}\n"
    lanes(lanes="[runtime]", settings=only)
    lanes(key=GROUP, lanes="[runtime]", settings=only)
    assert not lanes.mirror().exists()
    assert lanes.mirror(GROUP).exists()


def test_the_file_is_in_the_folder_that_the_config_names(lanes: Lanes, tmp_path: Path) -> None:
    there = tmp_path / "shared"
    lanes(lanes="[file]", settings=f"sessions: {{directory: {there}}}\n")
    assert "Water slowly" in context_file_path(lanes.home, str(there), OWNER).read_text()
    assert not (lanes.home.private / "context").exists()


def test_what_cannot_be_written_is_a_notice_and_no_exception(lanes: Lanes, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    told = lanes(settings=f"sessions: {{directory: {tmp_path}/file/x}}\n")
    assert [notice.code for notice in told] == ["file-lane"]
    assert lanes.page()  # the other lane goes on


def test_passages_that_cannot_be_rendered_empty_the_file(
    lanes: Lanes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("boom")

    lanes(lanes="[file]")
    monkeypatch.setattr("tacit.context.delivery.modes.render_context_file", broken)
    assert [notice.code for notice in lanes(lanes="[file]")] == ["file-lane"]
    assert lanes.mirror().read_bytes() == b""


@pytest.mark.parametrize("key", ["", "../../x", "\0", "\ud800", "a --> b", "agent:main:main\n", "k" * 9000])
def test_whatever_a_session_key_holds_nothing_outside_its_place_is_written(lanes: Lanes, key: str) -> None:
    before = files_of(lanes.home.root)
    told = lanes(key=key)
    written = files_of(lanes.home.root).keys() - before.keys()
    assert written == {str(lanes.mirror(key).relative_to(lanes.home.root))}
    assert [notice.code for notice in told] == ["daily-lane"]  # no such key is the owner's


# The daily lane


def test_calling_twice_for_a_session_adds_one_section(lanes: Lanes) -> None:
    for _ in range(3):
        assert lanes(is_first=False) == ()
    page = lanes.page()
    assert page.count(HEADING) == 1
    assert session_marker(session_hash(OWNER, "ses_1")) in page
    assert f"Query: {QUESTION}" in page
    assert "### 1. watering.md (relevance: 89%)" in page


def test_new_sessions_of_the_same_day_each_add_theirs_also_under_one_key(lanes: Lanes) -> None:
    for key, session_id in ((OWNER, "ses_1"), (OWNER, "ses_2"), (OWNER_DM, "ses_3"), (OWNER, "ses_1")):
        assert lanes(key=key, session_id=session_id) == ()
    assert lanes.page().count(HEADING) == 3


def test_a_session_that_goes_on_after_midnight_adds_no_second_section(lanes: Lanes) -> None:
    lanes()
    lanes(now=NOW + timedelta(days=1), is_first=False)
    assert lanes.page("knowledge/journal/2026-03-11.md") == ""


def test_the_page_is_that_of_the_day_in_the_homes_zone(lanes: Lanes) -> None:
    late = datetime.fromisoformat("2026-03-11T00:30:00+02:00")  # the day before in UTC
    lanes(now=late)
    assert HEADING in lanes.page("knowledge/journal/2026-03-11.md")


def test_a_turn_without_passages_adds_nothing_and_the_next_one_may(lanes: Lanes) -> None:
    lanes(())
    assert lanes.page() == ""
    lanes(is_first=False)
    assert lanes.page().count(HEADING) == 1


def test_the_section_keeps_within_the_characters_of_the_config(lanes: Lanes) -> None:
    many = tuple(replace(SOME[0], text=f"{number} " * 900) for number in range(9))
    lanes(many)
    assert 3000 < len(lanes.page().strip()) <= 4000
    other = Lanes(lanes.home.root)
    other(many, session_id="ses_2", settings="context_compiler: {max_injected_chars: 700}\n")
    assert len(lanes.page().split("\n---\n")[1].strip()) <= 700 - len("\n---")


@pytest.mark.parametrize("key", [GROUP, STRANGER, "whatever:this:is"])
def test_only_the_owners_sessions_add_to_the_owners_page(lanes: Lanes, key: str) -> None:
    assert [notice.code for notice in lanes(key=key)] == ["daily-lane"]
    assert lanes.page() == ""


def test_the_page_is_in_the_folder_that_the_config_names(lanes: Lanes, tmp_path: Path) -> None:
    there = tmp_path / "deep" / "memory"
    loaded = config("[daily]")
    loaded = replace(loaded, inject=replace(loaded.inject, daily_directory=str(there)))
    copy = TurnCopy(SOME, QUESTION, NOW, ("ses_1",), is_first=True)
    write_delivery_files(lanes.home, loaded, resolve_profile(OWNER, loaded), copy)
    assert HEADING in (there / "2026-03-10.md").read_text()
    assert lanes.page() == ""


def test_what_a_person_wrote_on_the_page_stays(lanes: Lanes) -> None:
    mine = "---\ndate: 2026-03-10\n---\n## 2026-03-10\n\n- watered twice"
    write(lanes.home.root, PAGE, mine)
    lanes()
    assert lanes.page().startswith(mine + "\n\n<!-- adaptive-memory:session=")


def test_a_page_that_is_a_link_is_left_alone_and_told(lanes: Lanes, tmp_path: Path) -> None:
    (tmp_path / "theirs.md").write_text("theirs")
    (lanes.home.root / PAGE).parent.mkdir(parents=True, exist_ok=True)
    (lanes.home.root / PAGE).symlink_to(tmp_path / "theirs.md")
    assert [notice.code for notice in lanes()] == ["daily-lane"]
    assert (tmp_path / "theirs.md").read_text() == "theirs"


def test_a_home_that_is_busy_costs_a_notice_and_the_section_follows_with_the_next_turn(lanes: Lanes) -> None:
    with files.hold_lock(lanes.home.lock):
        assert [notice.code for notice in lanes()] == ["daily-lane"]
    assert lanes(is_first=False) == ()
    assert lanes.page().count(HEADING) == 1


def test_private_text_and_secrets_of_the_message_do_not_reach_the_page(lanes: Lanes) -> None:
    said = "Water the tomatoes <private>with HIDDENWORD</private> please"
    lanes(message=said)
    assert "HIDDENWORD" not in lanes.page()
    assert "Water the tomatoes" in lanes.page()


def test_two_processes_of_one_session_add_one_section(lanes: Lanes) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.memory.test_lanes import Lanes\n"
        "lanes = Lanes(Path(sys.argv[1])); print(flush=True); sys.stdin.read(1)\n"
        "for number in range(8):\n"
        "    while any(one.code == 'daily-lane' for one in lanes(session_id=f'ses_{number}')): pass\n"
    )
    command = [sys.executable, "-c", code, str(lanes.home.root)]
    root = Path(__file__).parents[2]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as one,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as two,
    ):
        for process in (one, two):
            assert process.stdout
            process.stdout.readline()
        for process in (one, two):
            assert process.stdin
            process.stdin.write("x")
            process.stdin.flush()
    assert (one.returncode, two.returncode) == (0, 0)
    markers = re.findall(r"^<!-- adaptive-memory:session=\w+ -->$", lanes.page(), re.MULTILINE)
    assert len(markers) == len(set(markers)) == 8


def test_a_memory_that_is_read_only_gets_no_daily_section_and_the_receipt_says_so(lanes: Lanes) -> None:
    told = lanes(lanes="[daily]", settings="memory: {read_only: true}\n")
    assert [(notice.code, "memory.read_only" in notice.text) for notice in told] == [("daily-lane", True)]
    assert lanes.page() == ""


# Whole turns

LANES = "inject: {deadline_ms: 60000, lanes: [runtime, file, daily]}\n"


@pytest.fixture
def turning(garden: Path) -> Memory:
    settle(garden, LANES + OWNERS)
    return opened(garden)


def mirror_of(memory: Memory, key: str = OWNER) -> Path:
    return context_file_path(memory.home, None, key)


def test_five_memories_and_a_message_in_leave_a_file_with_what_is_relevant(plain: Path) -> None:
    known = {
        "kiln": "The kiln needs nine hours to cool down after a glaze firing.",
        "printer": "The office printer jams when the paper is thicker than 120 grams.",
        "passport": "Noor's passport expires in October 2027.",
        "router": "The router in the attic restarts every Sunday at four in the morning.",
        "allergy": "Mira is allergic to walnuts and almonds.",
    }
    settle(plain, LANES + OWNERS)
    for name, text in known.items():
        write(plain, f"knowledge/reference/{name}.md", f"---\nupdated: 2026-02-01\n---\n# {name}\n\n{text}\n")
    memory = opened(plain)
    memory.inject("How long does the kiln need to cool down after a glaze firing?")
    text = mirror_of(memory).read_text()
    assert text.startswith("<!-- ethos:context ts=2026-03-10T09:30:00Z query_score=")
    assert (
        "1. **[2026-02-01]** kiln The kiln needs nine hours to cool down after a glaze firing. *(score: "
        in text
    )
    assert "walnuts" not in text
    page = (plain / PAGE).read_text()
    assert page.count(HEADING) == 1
    assert "### 1. kiln.md (relevance: " in page
    memory.inject("zygomorphic quasar liturgy Zoroaster")
    assert mirror_of(memory).read_bytes() == b""
    assert (plain / PAGE).read_text() == page


@pytest.mark.parametrize(
    "message", ["", "   ", "ok", "/status", "Heartbeat.", "zygomorphic quasar liturgy Zoroaster", "\ud800"]
)
def test_a_message_that_is_skipped_or_matches_nothing_empties_the_file(turning: Memory, message: str) -> None:
    turning.inject(QUESTION)
    assert mirror_of(turning).read_bytes()
    turning.inject(message)
    assert mirror_of(turning).read_bytes() == b""


def test_a_file_of_the_owner_does_not_stay_for_a_stranger_under_the_same_key(garden: Path) -> None:
    only = "sessions: {main_session: {lanes: [runtime, file]}}\n"
    settle(garden, f"inject: {{deadline_ms: 60000}}\n{OWNERS}{only}")
    memory = opened(garden)
    memory.inject(QUESTION, sender="7")
    assert "COREWORD" in mirror_of(memory).read_text()
    assert memory.inject("Who comes on Tuesdays?", sender="99").receipt.session_type == "external_dm"
    assert mirror_of(memory).read_bytes() == b""


def test_a_lane_that_is_off_by_now_leaves_an_empty_file(garden: Path, turning: Memory) -> None:
    turning.inject(QUESTION)
    assert mirror_of(turning).read_bytes()
    settle(garden, LANES.replace(", file, daily", "") + OWNERS)
    opened(garden).inject("Who comes on Tuesdays?")
    assert mirror_of(turning).read_bytes() == b""


def test_a_host_whose_own_lane_is_off_is_given_nothing_and_the_file_has_it(garden: Path) -> None:
    settle(garden, LANES.replace("runtime, file, daily", "file") + OWNERS)
    memory = opened(garden)
    done = memory.inject(QUESTION)
    assert (done.text, done.given, done.sections) == ("", (), ())
    assert "CONTEXTWORD" in mirror_of(memory).read_text()
    memory.inject(f"{QUESTION} Again?", history=[("user", QUESTION)])
    assert "CONTEXTWORD" in mirror_of(memory).read_text(), "the host never saw it otherwise"


def test_a_turn_that_is_asked_for_again_has_its_file_again(
    garden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(garden, LANES.replace(", daily", "") + OWNERS)
    memory = opened(garden)
    first = memory.inject(QUESTION, history=[("user", "Hello")])
    with monkeypatch.context() as patched:
        patched.setattr(memory.services.turns._state, "profile_of", None)
        assert memory.inject("Who comes on Tuesdays?").receipt.skipped == "bug"
    assert mirror_of(memory).read_bytes() == b""
    assert memory.inject(QUESTION, history=[("user", "Hello")]) == first
    assert "CONTEXTWORD" in mirror_of(memory).read_text()


def test_what_stands_in_a_copy_is_found_by_nobody_wherever_it_stands(garden: Path, turning: Memory) -> None:
    turning.inject(QUESTION)
    copy = mirror_of(turning).read_text()
    for folder in ("knowledge/reference", "topics", "raw/conversations/2026", "archive"):
        write(garden, f"{folder}/0123456789abcdef/ETHOS_CONTEXT.md", copy)
    seen = opened(garden)
    assert not [hit for hit in seen.search(QUESTION, limit=100) if "ETHOS" in hit.path]
    assert "COREWORD" not in seen.inject(QUESTION, session_key=GROUP).text


@pytest.mark.parametrize("folder", ["knowledge/reference", "topics", "raw", "archive/x", "knowledge"])
def test_a_folder_where_search_looks_is_refused_for_copies(garden: Path, folder: str) -> None:
    settle(garden, f"{LANES}sessions:\n  directory: {garden}/{folder}\n")
    with pytest.raises(ConfigError, match=r"4: 'sessions.directory' is inside \w+/ of the home"):
        opened(garden)


@pytest.mark.parametrize("folder", ["context", "knowledge-of-others", "../raw"])
def test_any_other_folder_may_have_copies(garden: Path, folder: str) -> None:
    settle(garden, f"{LANES}sessions:\n  directory: {garden}/{folder}\n")
    assert opened(garden).inject(QUESTION).text


def test_an_agent_that_was_excluded_since_finds_an_empty_file(garden: Path) -> None:
    settle(garden, LANES + OWNERS)
    opened(garden).inject(QUESTION)
    assert context_file_path(Home(garden), None, OWNER).read_bytes()
    settle(garden, LANES.replace("lanes", "exclude_agents: [main], lanes") + OWNERS)
    memory = opened(garden)
    memory.inject(QUESTION)
    assert mirror_of(memory).read_bytes() == b""


def test_a_search_that_fails_empties_the_file_and_the_turn_goes_on(
    turning: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: object, **__: object) -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    turning.inject(QUESTION)
    assert mirror_of(turning).read_bytes()
    monkeypatch.setattr(turning.services.searcher, "find", down)
    done = turning.inject(f"{QUESTION} And when?")
    assert mirror_of(turning).read_bytes() == b""
    assert "search" in [notice.code for notice in done.receipt.notices]


def test_a_turn_that_fails_as_a_whole_empties_the_file(
    turning: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    turning.inject(QUESTION)
    assert context_file_path(turning.home, None, OWNER).stat().st_size > 0
    monkeypatch.setattr(turning.services.turns._state, "profile_of", None)
    assert turning.inject("Who comes on Tuesdays?").receipt.skipped == "bug"
    assert context_file_path(turning.home, None, OWNER).read_bytes() == b""


def test_nothing_that_a_session_may_not_see_is_in_its_file(turning: Memory) -> None:
    forbidden = {
        GROUP: ("USERWORD", "COREWORD", "JOURNALWORD", "PERSONWORD", "SECRETWORD", "PUMPWORD", "MAINSAID"),
        STRANGER: (
            "USERWORD",
            "COREWORD",
            "PROCEDUREWORD",
            "SECRETWORD",
            "PUMPWORD",
            "MAINSAID",
            "GROUPSAID",
        ),
    }
    turning.inject(QUESTION)
    for key, words in forbidden.items():
        turning.inject(QUESTION, session_key=key)
        text = mirror_of(turning, key).read_text()
        assert not [word for word in words if word in text]
        assert "WORD" in text  # something was found


def test_a_turn_with_both_lanes_writes_nothing_else_than_the_copy_and_the_page(turning: Memory) -> None:
    turning.inject("ok")
    before = files_of(turning.home.root, without=(".tacit", ".git/"))
    turning.inject(QUESTION)
    after = files_of(turning.home.root, without=(".tacit", ".git/"))
    assert {path for path in after if after[path] != before.get(path)} == {PAGE}
    assert before.keys() <= after.keys()


def test_what_the_daily_lane_wrote_is_never_found_and_given_again(turning: Memory) -> None:
    turning.inject(QUESTION)
    assert HEADING in (turning.home.root / PAGE).read_text()
    later = opened(turning.home.root)
    found = later.search(f"{HEADING} {QUESTION}", limit=100)
    assert found
    assert not [hit for hit in found if hit.path == PAGE]
    later.inject(QUESTION, session_key=OWNER_DM)
    assert "Adaptive" not in mirror_of(later, OWNER_DM).read_text()


def test_a_trial_or_a_whole_prompt_writes_no_copy(turning: Memory) -> None:
    turning.turn(QUESTION)
    assert not mirror_of(turning).exists()
    assert not (turning.home.root / PAGE).exists()


def test_a_disk_that_takes_nothing_leaves_the_turn_with_its_text(
    turning: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: Any) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(files, "write_all", full)
    done = turning.inject(QUESTION)
    assert "PROCEDUREWORD" in done.text
    assert {"file-lane", "daily-lane"} <= {notice.code for notice in done.receipt.notices}
    assert mirror_of(turning).exists() is False or mirror_of(turning).read_bytes() == b""

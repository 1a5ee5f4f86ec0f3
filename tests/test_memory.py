"""A home at work: sessions sealed and committed, crashes put in order, notes that nobody overwrites."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tacit as product
from tacit.config import Config
from tacit.errors import Busy, ChangedOnDisk, ConfigError, UnsafePath, UsageError
from tacit.home.files import digest
from tacit.home.layout import Home
from tacit.memory import Memory
from tacit.transcripts import writer
from tacit.transcripts.writer import TranscriptWriter

if TYPE_CHECKING:
    from tests.conftest import GitLog

SPAWN = multiprocessing.get_context("spawn")
DATA = Path(__file__).parent / "data"
REFRESH = "TACIT_REFRESH" in os.environ  # read before the tests lose sight of the environment
START = datetime(2026, 2, 16, 17, 45, 7, 120_000, tzinfo=UTC)


def at(home: Path, now: datetime) -> Memory:
    """The home as it is opened at some moment."""
    memory = Memory(Home(home), Config(), zone=None, now=lambda: now)
    memory.recover()
    return memory


def only_transcript(home: Path) -> Path:
    (file,) = home.glob("raw/conversations/*/*/*/*.md")
    return file


def run_in_other_process(home: Path, script: str) -> subprocess.Popen[str]:
    """A process that uses the home; it says `ready` and then waits to be killed."""
    wait = "\nprint('ready', flush=True)\nimport time\ntime.sleep(600)\n"
    begin = "import sys, tacit\nmemory = tacit.open(sys.argv[1])\n"
    process = subprocess.Popen(
        [sys.executable, "-c", begin + script + wait, str(home)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


TALK = """
session = memory.session(session_id="ses_1")
session.message("user", "hello there")
session.message("agent", "general")
"""


# ---------------------------------------------------------------- sealing and committing


def test_a_whole_small_transcript_looks_like_this(home: Path) -> None:
    """tests/data/transcript.md; run with TACIT_REFRESH=1 to write it anew, and read the diff."""
    moments = iter(START + timedelta(seconds=9 * step) for step in range(1000))
    memory = Memory(Home(home), Config(), zone=None, now=lambda: next(moments))
    session = memory.session(
        "agent:main:telegram:direct:48210011",
        channel="telegram",
        model="some-model",
        session_id="ses_a1b2c3d4",
        started=START,
    )
    session.message("user", "Which glaze for the big plates?", at=START, speaker="Ana")
    session.attachment("attachments/2026/02/plate.png", at=START + timedelta(seconds=3))
    session.message("agent", "<think>Look it up.</think>Let me look.", at=START + timedelta(seconds=9))
    session.tool("read", "knowledge/reference/glazes.md", "26 lines", at=START + timedelta(seconds=11))
    session.message(
        "agent", "Reif, two coats:\n\n## 18:40 — user\n```\nnot a turn\n```", at=START + timedelta(minutes=1)
    )
    session.knowledge(
        "updated", "knowledge/projects/reif/context.md", "glaze decided", at=START + timedelta(minutes=2)
    )
    session.message("user", "Noted; good night\0.", at=START + timedelta(hours=6))
    sealed = session.end(START + timedelta(hours=6, minutes=1), tags=["glaze"], tokens_in=40, tokens_out=25)
    assert sealed is not None
    assert sealed.path == "raw/conversations/2026/02/16/1845-ses_a1b2c3d4-which-glaze-for-the-big-plates.md"
    written = (home / sealed.path).read_text(encoding="utf-8")
    if REFRESH:
        DATA.mkdir(exist_ok=True)
        (DATA / "transcript.md").write_text(written, encoding="utf-8")
    assert written == (DATA / "transcript.md").read_text(encoding="utf-8")


def test_the_hash_of_a_sealed_transcript_is_that_of_the_file_the_blob_and_the_trailer(
    memory: Memory, home: Path, git_log: GitLog
) -> None:
    with memory.session(channel="chat") as session:
        session.message("user", "What did we decide?")
        session.message("agent", "To fire at 1,220 °C.")
        before = (home / str(session.path)).read_bytes()
    sealed = session.end()
    assert sealed is not None
    file = home / sealed.path
    assert file.read_bytes().partition(b"\n# ")[2] == before.partition(b"\n# ")[2]
    assert stat.S_IMODE(file.stat().st_mode) == 0o400
    assert sealed.sha256 == digest(file.read_bytes())
    commit = git_log()[0]
    assert commit.name == sealed.commit
    assert commit.subject == "conversation: what-did-we-decide"
    assert commit.trailer("Session") == [sealed.path]
    assert commit.trailer("Transcript-SHA256") == [sealed.sha256]
    shown = subprocess.run(
        ["git", "-C", home, "show", f"HEAD:{sealed.path}"], capture_output=True, check=True
    )
    assert shown.stdout == file.read_bytes()
    assert memory.services.conversations.list_open() == []
    assert [(checked.path, checked.state) for checked in memory.verify()] == [(sealed.path, "proved")]


def test_ending_again_makes_no_second_commit(memory: Memory, git_log: GitLog) -> None:
    session = memory.session()
    session.message("user", "hello")
    session.end()
    count = len(git_log())
    session.end()
    memory.recover()
    assert len(git_log()) == count


def test_a_session_in_which_nothing_was_said_leaves_nothing(
    memory: Memory, home: Path, git_log: GitLog
) -> None:
    count = len(git_log())
    with memory.session():
        pass
    assert list(home.glob("raw/conversations/**/*.md")) == []
    assert memory.services.conversations.list_open() == []
    assert len(git_log()) == count


def test_a_sealed_session_that_goes_on_gets_a_new_part(memory: Memory, home: Path) -> None:
    paths = []
    for _ in range(3):
        with memory.session(session_id="ses_1", started=START) as session:
            session.message("user", "hello")
        paths.append(str(session.path))
    assert len(set(paths)) == 3
    before = [memory.transcript(path).fields.get("continues") for path in paths]
    assert before == [None, paths[0], paths[1]]


def test_parts_of_the_same_minute_continue_each_other_in_order(home: Path) -> None:
    paths = []
    for second, text in enumerate(("a long first message", "hi", "hi", "hello")):
        moment = START + timedelta(seconds=second)
        with at(home, moment).session(session_id="ses_1") as session:
            session.message("user", text)
        paths.append(str(session.path))
    memory = product.open(home)
    before = [memory.transcript(path).fields.get("continues") for path in paths]
    assert before == [None, *paths[:-1]]


def test_an_id_that_begins_like_another_does_not_continue_it(memory: Memory) -> None:
    with memory.session(session_id="chat-2") as other:
        other.message("user", "hello")
    with memory.session(session_id="chat") as session:
        session.message("user", "hello")
    assert "continues" not in memory.transcript(str(session.path)).fields


def test_an_open_session_goes_on_where_it_was(memory: Memory, home: Path) -> None:
    first = memory.session(session_id="ses_1")
    first.message("user", "one")
    first.detach()
    second = product.open(home).session(session_id="ses_1")
    assert second.path == first.path
    assert second.message("user", "two") == 2


def test_a_home_without_its_private_folder_still_keeps_conversations(home: Path) -> None:
    """As after `git clone`."""
    shutil.rmtree(home / ".tacit")
    memory = product.open(home)
    with memory.session() as session:
        session.message("user", "hello")
    sealed = session.end()
    assert sealed is not None
    assert sealed.commit is not None


# ---------------------------------------------------------------- time zones


@pytest.mark.parametrize(
    ("zone", "day", "minute", "offset"),
    [
        ("Asia/Tokyo", "2026/02/17", "0245", "+09:00"),
        ("America/Los_Angeles", "2026/02/16", "0945", "-08:00"),
        ("UTC", "2026/02/16", "1745", "+00:00"),
        ("local", "2026/02/16", "1845", "+01:00"),
    ],
)
def test_the_configured_zone_decides_day_and_hour(
    home: Path, zone: str, day: str, minute: str, offset: str
) -> None:
    (home / "memory-config.yaml").write_text(f"timezone: {zone}\n")
    session = product.open(home).session(session_id="ses_1", started=START)
    session.message("user", "hello", at=START)
    assert session.path == f"raw/conversations/{day}/{minute}-ses_1-hello.md"
    text = (home / session.path).read_text(encoding="utf-8")
    assert f'utc_offset: "{offset}"' in text
    assert "started: 2026-02-16T17:45:07Z\n" in text
    assert [turn.at for turn in session.turns()] == [START]


def test_a_naive_time_is_of_the_machines_zone_at_that_date(home: Path) -> None:
    memory = at(home, START)
    session = memory.session()
    session.message("user", "in summer", at=datetime(2026, 7, 1, 12, 0))  # noqa: DTZ001
    assert session.turns()[0].at == datetime(2026, 7, 1, 10, 0, tzinfo=UTC)


# ---------------------------------------------------------------- after a crash


def test_a_killed_session_is_sealed_and_committed_by_whoever_comes_next(home: Path, git_log: GitLog) -> None:
    process = run_in_other_process(home, TALK)
    kill(process)
    file = only_transcript(home)
    body = file.read_bytes().partition(b"\n# ")[2]
    assert not writer.is_sealed(file)

    memory = product.open(home)
    parsed = memory.transcript(str(file.relative_to(home)))
    assert [turn.text for turn in parsed.messages] == ["hello there", "general"]
    assert parsed.fields["ended"] == parsed.turns[-1].at.replace(microsecond=0)
    assert file.read_bytes().partition(b"\n# ")[2] == body
    assert git_log()[0].trailer("Transcript-SHA256") == [digest(file.read_bytes())]
    assert memory.services.conversations.list_open() == []
    assert not memory.recover().changed


def test_a_kill_in_the_middle_of_a_write_costs_only_what_was_not_acknowledged(home: Path) -> None:
    script = (
        TALK
        + """
import os
real = os.write
def torn(fd, data):
    if b"never acknowledged" not in bytes(data):
        return real(fd, data)
    real(fd, bytes(data)[:40])
    print("ready", flush=True)
    import time; time.sleep(600)
os.write = torn
session.message("user", "never acknowledged")
"""
    )
    kill(run_in_other_process(home, script))
    product.open(home)
    file = only_transcript(home)
    parsed = product.open(home).transcript(str(file.relative_to(home)))
    assert parsed.sealed
    assert [turn.text for turn in parsed.messages] == ["hello there", "general"]
    assert [problem.level for problem in parsed.problems] == ["warning"]
    assert "never acknowledged" in parsed.problems[0].what


def test_a_session_that_another_process_is_writing_is_left_alone(home: Path) -> None:
    process = run_in_other_process(home, TALK)
    try:
        memory = product.open(home)
        assert not memory.commit().sealed
        assert not writer.is_sealed(only_transcript(home))
        assert [record.opening.session_id for record in memory.services.conversations.list_open()] == [
            "ses_1"
        ]
        record = writer.find_state(memory.home, "ses_1")
        assert record is not None
        with pytest.raises(Busy):
            TranscriptWriter(memory.home, record, wait=0.0)
    finally:
        kill(process)
    assert product.open(home).services.conversations.list_open() == []
    assert writer.is_sealed(only_transcript(home))


def _delete_private(home: Path) -> None:
    shutil.rmtree(home / ".tacit")


def _damage_record(home: Path) -> None:
    (record,) = home.glob(".tacit/sessions/*.json")
    record.write_bytes(b'{"opening": ')


def _damage_types(home: Path) -> None:
    (record,) = home.glob(".tacit/sessions/*.json")
    value = json.loads(record.read_text())
    value["opening"].pop("started")
    record.write_text(json.dumps(value))


@pytest.mark.parametrize("harm", [_delete_private, _damage_record, _damage_types])
def test_a_crashed_session_is_found_without_its_record(
    home: Path, git_log: GitLog, harm: Callable[[Path], None]
) -> None:
    kill(run_in_other_process(home, TALK))
    harm(home)
    memory = product.open(home)
    file = only_transcript(home)
    assert writer.is_sealed(file)
    parsed = memory.transcript(str(file.relative_to(home)))
    assert parsed.fields["session_id"] == "ses_1"
    assert [turn.text for turn in parsed.messages] == ["hello there", "general"]
    assert git_log()[0].trailer("Session") == [str(file.relative_to(home))]
    assert memory.services.conversations.list_open() == []


def test_setting_the_home_up_again_does_not_hide_a_crashed_session(home: Path) -> None:
    kill(run_in_other_process(home, TALK))
    shutil.rmtree(home / ".tacit")
    product.init(home)
    assert writer.is_sealed(only_transcript(home))


def test_a_live_session_goes_on_when_the_private_folder_is_deleted_under_it(home: Path) -> None:
    memory = product.open(home)
    session = memory.session(session_id="ses_1")
    session.message("user", "one")
    shutil.rmtree(home / ".tacit")
    other = product.open(home)  # looks for strays, and must see that this one is alive
    assert session.message("user", "two") == 2
    sealed = session.end()
    assert sealed is not None
    other.recover()
    parsed = other.transcript(sealed.path)
    assert [turn.text for turn in parsed.messages] == ["one", "two"]
    assert [checked.state for checked in other.verify()] == ["proved"]


def test_a_detached_session_is_sealed_only_after_the_idle_hours(home: Path) -> None:
    now = datetime.now(UTC)
    session = at(home, now).session(session_id="ses_1", detached=True)
    session.message("user", "hello")
    session.detach()
    at(home, now + timedelta(hours=11, minutes=59))
    assert not writer.is_sealed(only_transcript(home))
    at(home, now - timedelta(days=2))  # a clock that jumped back
    assert not writer.is_sealed(only_transcript(home))
    memory = at(home, now + timedelta(hours=12, minutes=1))
    assert writer.is_sealed(only_transcript(home))
    assert memory.services.conversations.list_open() == []


def test_what_cannot_be_sealed_is_a_problem_and_stops_nothing_else(home: Path) -> None:
    kill(run_in_other_process(home, TALK))
    broken = only_transcript(home)
    kill(run_in_other_process_without_recovery(home))
    broken.write_bytes(b"no head at all\n")
    worked = Memory(Home(home), Config(), zone=None, now=lambda: datetime.now(UTC)).recover()
    assert [problem.where for problem in worked.problems] == [str(broken.relative_to(home))]
    assert broken.read_bytes() == b"no head at all\n"
    assert len(worked.sealed) == 1


def run_in_other_process_without_recovery(home: Path) -> subprocess.Popen[str]:
    script = """
import os
from tacit.app import open_home
memory = open_home(sys.argv[1], recover=False)
session = memory.session(session_id="ses_2")
session.message("user", "second")
print('ready', flush=True)
import time
time.sleep(600)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys\n" + script, str(home)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def _talk(root: str, who: int) -> None:
    memory = product.open(root)
    for count in range(3):
        with memory.session(session_id=f"ses_{who}_{count}") as session:
            session.message("user", f"{who} {count}")
            session.message("agent", "yes")


def test_four_processes_talk_at_once_and_nothing_is_lost_or_torn(home: Path, git_log: GitLog) -> None:
    started = [SPAWN.Process(target=_talk, args=(str(home), who)) for who in range(4)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0] * 4
    memory = product.open(home)
    memory.commit()
    assert [checked.state for checked in memory.verify()] == ["proved"] * 12
    assert len([commit for commit in git_log() if commit.subject.startswith("conversation: ")]) == 12


# ---------------------------------------------------------------- notes


def test_a_note_comes_back_byte_for_byte(memory: Memory, home: Path) -> None:
    text = "---\nname: Ruth\n---\r\n# Ruth\n\0 \udcff\n"
    memory.write("knowledge/people/ruth.md", text, replacing=None)
    assert (home / "knowledge/people/ruth.md").read_bytes() == text.encode("utf-8", "surrogateescape")
    assert memory.read("knowledge/people/ruth.md").text == text


def test_a_note_that_changed_or_appeared_is_not_overwritten(memory: Memory, home: Path) -> None:
    note = memory.write("knowledge/a.md", "one\n", replacing=None)
    (home / "knowledge/a.md").write_text("theirs\n")
    for seen in (note, None):
        with pytest.raises(ChangedOnDisk):
            memory.write("knowledge/a.md", "mine\n", replacing=seen)
    (home / "knowledge/a.md").unlink()
    with pytest.raises(ChangedOnDisk):
        memory.write("knowledge/a.md", "mine\n", replacing=note)
    assert not (home / "knowledge/a.md").exists()


@pytest.mark.parametrize("path", ["raw/conversations/x.md", "./raw/x.md", "raw//x.md"])
def test_transcripts_are_not_notes(memory: Memory, path: str) -> None:
    with pytest.raises(UsageError, match="transcripts are never edited"):
        memory.write(path, "x", replacing=None)


@pytest.mark.parametrize("path", ["../x.md", ".git/config", ".tacit/lock", "/etc/x", "knowledge/../../x"])
def test_a_note_cannot_be_anywhere_else(memory: Memory, path: str) -> None:
    with pytest.raises(UnsafePath):
        memory.write(path, "x", replacing=None)
    with pytest.raises(UnsafePath):
        memory.read(path)


def _add_lines(root: str, who: int, count: int) -> None:
    memory = Memory(Home(Path(root)), Config(), zone=None, now=lambda: datetime.now(UTC))
    for number in range(count):
        while True:
            note = memory.read("knowledge/shared.md")
            try:
                memory.write("knowledge/shared.md", f"{note.text}{who} {number}\n", replacing=note)
                break
            except ChangedOnDisk:
                time.sleep(0.001 * who)


def test_eight_processes_that_add_to_one_note_lose_no_line(memory: Memory, home: Path) -> None:
    memory.write("knowledge/shared.md", "", replacing=None)
    started = [SPAWN.Process(target=_add_lines, args=(str(home), who, 10)) for who in range(8)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0] * 8
    lines = memory.read("knowledge/shared.md").text.splitlines()
    assert sorted(lines) == sorted(f"{who} {number}" for who in range(8) for number in range(10))
    assert [line for line in lines if re.fullmatch(r"3 \d", line)] == [f"3 {n}" for n in range(10)]


def test_an_index_on_a_server_is_refused_with_what_to_do(memory: Memory) -> None:
    search = replace(memory.config.search, index="postgresql://host/base")
    memory.services.config = replace(memory.config, search=search)
    with pytest.raises(ConfigError, match="Set it to sqlite"):
        memory.search("anything")

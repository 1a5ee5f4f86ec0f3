"""What waits for the daemon: never lost, never torn, never taken twice, and clean before it is on disk."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import Busy, DiskError, HomeError, UsageError
from tacit.transcripts import spool
from tacit.transcripts.spool import SpooledEvent


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".tacit").mkdir()
    return tmp_path


def files_of(root: Path) -> list[Path]:
    return sorted((root / spool.FOLDER).glob("*.jsonl"))


def all_of(root: Path) -> list[SpooledEvent]:
    taken: list[SpooledEvent] = []
    done = spool.drain(root, taken.append)
    assert done.stopped is None
    assert done.taken == len(taken)
    return taken


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"session_key": "agent:main:main", "role": "user", "text": text, **more}


def texts(records: list[SpooledEvent]) -> list[str]:
    return [record.body["text"] for record in records]


# ---------------------------------------------------------------- adding


def test_what_is_added_is_taken_in_order_with_an_id_and_a_time(root: Path) -> None:
    names = [spool.add(root, "message", said(str(number))) for number in range(5)]
    assert spool.count_waiting(root) == 5
    taken = all_of(root)
    assert texts(taken) == ["0", "1", "2", "3", "4"]
    assert [record.id for record in taken] == names
    assert len(set(names)) == 5
    assert all(datetime.fromisoformat(record.body["at"]).tzinfo for record in taken)
    assert {record.operation for record in taken} == {"message"}


@pytest.mark.parametrize("name", [".tacit", spool.FOLDER])
def test_nothing_is_written_through_a_link_that_a_cloned_home_brought(tmp_path: Path, name: str) -> None:
    root, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / name).parent.mkdir(parents=True)
    (root / name).symlink_to(elsewhere)
    with pytest.raises(OSError, match="is a link"):
        spool.add(root, "message", said("Mine"))
    assert list(elsewhere.iterdir()) == []


def test_an_id_and_a_time_that_are_given_stay(root: Path) -> None:
    at = "2026-02-16T18:45:00+01:00"
    assert spool.add(root, "tool", {"name": "read", "id": "mine", "at": at}) == "mine"
    (taken,) = all_of(root)
    assert (taken.id, taken.body["at"]) == ("mine", at)


def test_only_the_owner_can_read_it(root: Path) -> None:
    spool.add(root, "message", said("x"))
    (file,) = files_of(root)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_text_is_cleaned_before_it_is_on_disk(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it, however deep; but the names of things come through as they are."""
    from tacit.privacy import redaction
    from tacit.privacy.redaction import Cleaned

    monkeypatch.setattr(redaction, "clean", lambda text: Cleaned(text.replace("SECRET", "[gone]")))
    body = said("a SECRET", speaker="SECRET", more=[{"SECRET": ["SECRET"]}], session_id="SECRET")
    body |= {"role": "SECRET", "at": "SECRET", "id": "SECRET", "model": "SECRET", "channel": "SECRET"}
    names = {spool.add(root, "message", {**body, "session_key": "agent:SECRET:main"}) for _ in range(2)}
    assert len(names) == 1
    (taken, again) = all_of(root)
    assert taken.id == again.id == names.pop()
    assert "SECRET" not in taken.id
    assert datetime.fromisoformat(taken.body["at"]).tzinfo
    assert [taken.body[name] for name in ("role", "model", "channel")] == ["[gone]"] * 3
    assert taken.body["text"] == "a [gone]"
    assert taken.body["speaker"] == "[gone]"
    assert taken.body["more"] == [{"[gone]": ["[gone]"]}]
    assert (taken.body["session_id"], taken.body["session_key"]) == ("SECRET", "agent:SECRET:main")


def test_what_is_set_aside_is_cleaned_as_well(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a line that somebody else wrote, and the words in which it is refused."""
    from tacit.privacy import redaction
    from tacit.privacy.redaction import Cleaned

    spool.add(root, "message", said("x"))
    with files_of(root)[0].open("ab") as file:
        file.write(b'{"a SECRET')
    monkeypatch.setattr(redaction, "clean", lambda text: Cleaned(text.replace("SECRET", "[gone]")))

    def refuse(record: SpooledEvent) -> None:
        raise UsageError("'SECRET' is not a role.")

    spool.drain(root, refuse)
    lines = [json.loads(line) for line in (root / spool.FOLDER / spool.QUARANTINE).read_text().splitlines()]
    assert lines[0]["why"] == "'[gone]' is not a role."
    assert lines[1]["line"] == '{"a [gone]'
    assert "SECRET" not in str(lines)


@pytest.mark.parametrize("at", ["yesterday", "", 7, None, ["2026-02-16"], "my key"])
def test_a_time_that_is_none_becomes_the_time_when_it_came(root: Path, at: object) -> None:
    spool.add(root, "message", said("x", at=at))
    (taken,) = all_of(root)
    assert datetime.fromisoformat(taken.body["at"]).tzinfo


def test_nothing_is_written_where_it_cannot_be_cleaned(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(text: str) -> None:
        raise RuntimeError

    monkeypatch.setattr("tacit.privacy.redaction.clean", fails)
    with pytest.raises(RuntimeError):
        spool.add(root, "message", said("a secret"))
    assert spool.count_waiting(root) == 0
    assert all(b"secret" not in file.read_bytes() for file in files_of(root))


@pytest.mark.parametrize("text", ["", "\0", "a\nb", "\u2028", "\ud800", "ß" * 10, "x" * 3_000_000])
def test_any_text_comes_through(root: Path, text: str) -> None:
    spool.add(root, "message", said(text))
    spool.add(root, "message", said("after"))
    assert texts(all_of(root)) == [text, "after"]


def test_a_torn_end_is_closed_by_the_next_writer(root: Path) -> None:
    spool.add(root, "message", said("first"))
    with files_of(root)[0].open("ab") as file:
        file.write(b'{"operation": "message", "body": {"te')  # killed, or the disk was full
    spool.add(root, "message", said("second"))
    taken: list[SpooledEvent] = []
    done = spool.drain(root, taken.append)
    assert texts(taken) == ["first", "second"]
    assert len(done.aside) == 1
    assert spool.count_quarantined(root) == 1
    assert '{\\"te' in (root / spool.FOLDER / spool.QUARANTINE).read_text()


def test_a_torn_end_that_nobody_closed_is_set_aside_and_no_later_record_with_it(root: Path) -> None:
    spool.add(root, "message", said("first"))
    with files_of(root)[0].open("ab") as file:
        file.write(b'{"oper')
    assert len(spool.drain(root, lambda record: None).aside) == 1
    spool.add(root, "message", said("second"))
    assert texts(all_of(root)) == ["second"]


def test_a_full_disk_leaves_nothing_and_says_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.add(root, "message", said("first"))
    before = files_of(root)[0].read_bytes()
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
    with pytest.raises(OSError):
        spool.add(root, "message", said("second"))
    monkeypatch.undo()
    assert files_of(root)[0].read_bytes() == before
    spool.add(root, "message", said("third"))
    assert texts(all_of(root)) == ["first", "third"]


def test_one_who_holds_the_file_too_long_is_not_waited_for(root: Path) -> None:
    spool.add(root, "message", said("first"))
    with files_of(root)[0].open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        spool.add(root, "message", said("second"))
    assert len(files_of(root)) == 2
    assert texts(all_of(root)) == ["first", "second"]


def test_a_clock_that_was_set_back_changes_no_order(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_MAX_FILE_BYTES", 1)  # a file for each
    moments = iter(["2033-05-18T00:00:00+00:00", "2001-09-09T00:00:00+00:00", "2017-07-14T00:00:00+00:00"])
    monkeypatch.setattr(spool, "_now", lambda: next(moments))
    for text in "abc":
        spool.add(root, "message", said(text))
    assert len(files_of(root)) == 3
    assert texts(all_of(root)) == ["a", "b", "c"]


def test_a_link_in_its_place_is_not_followed(root: Path) -> None:
    spool.add(root, "message", said("first"))
    outside = root / "outside"
    outside.write_text("")
    (root / spool.FOLDER / f"9999999999-aa{spool._SUFFIX}").symlink_to(outside)
    with pytest.raises(OSError):
        spool.add(root, "message", said("second"))
    assert outside.read_text() == ""


WRITER = """
import sys
from tacit.transcripts import spool
for number in range(int(sys.argv[3])):
    spool.add(sys.argv[1], "message", {"text": f"{sys.argv[2]}-{number}" + "x" * 5000})
"""


def test_many_writers_and_a_drainer_at_once_lose_and_double_nothing(root: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(root), str(name), "20"]) for name in range(6)
    ]
    taken: list[str] = []
    while any(writer.poll() is None for writer in writers):
        spool.drain(root, lambda record: taken.append(record.body["text"].rstrip("x")))
    assert [writer.returncode for writer in writers] == [0] * 6
    spool.drain(root, lambda record: taken.append(record.body["text"].rstrip("x")))
    assert len(taken) == 120
    assert set(taken) == {f"{name}-{number}" for name in range(6) for number in range(20)}
    for name in range(6):  # each writer's own are in order
        own = [text for text in taken if text.startswith(f"{name}-")]
        assert own == [f"{name}-{number}" for number in range(20)]
    assert (spool.count_waiting(root), files_of(root)) == (0, [])


def test_a_new_file_that_a_drain_removes_before_it_is_locked_loses_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.add(root, "message", said("before"))
    all_of(root)
    flock = fcntl.flock
    drained: list[list[SpooledEvent]] = []

    def drain_first(fd: int, how: int) -> None:
        if how == fcntl.LOCK_EX and not drained:
            drained.append(all_of(root))
        flock(fd, how)

    monkeypatch.setattr(fcntl, "flock", drain_first)
    spool.add(root, "message", said("kept"))
    assert drained == [[]]
    assert texts(all_of(root)) == ["kept"]


# ---------------------------------------------------------------- draining


def test_nothing_is_left_when_all_is_taken(root: Path) -> None:
    spool.add(root, "message", said("x"))
    all_of(root)
    left = {file.name for file in (root / spool.FOLDER).iterdir()}
    assert left == {"drain.lock"}
    assert all_of(root) == []


def test_there_may_be_no_spool_at_all(tmp_path: Path) -> None:
    assert all_of(tmp_path) == []
    assert (spool.count_waiting(tmp_path), spool.count_quarantined(tmp_path)) == (0, 0)
    assert list(tmp_path.iterdir()) == []


def test_what_stops_one_pass_is_the_first_of_the_next(root: Path) -> None:
    for text in "abc":
        spool.add(root, "message", said(text))
    taken: list[SpooledEvent] = []
    troubles = (DiskError("full"), Busy("held"), HomeError("gone"), OSError("gone"), ZeroDivisionError("bug"))
    for trouble in troubles:

        def take(record: SpooledEvent, trouble: Exception = trouble) -> None:
            if record.body["text"] == "b":
                raise trouble
            taken.append(record)

        done = spool.drain(root, take)
        assert done.stopped is trouble
        assert spool.count_waiting(root) == 2
    assert texts(taken) == ["a"]
    assert texts(all_of(root)) == ["b", "c"]
    assert spool.count_quarantined(root) == 0


def test_what_can_never_be_taken_is_set_aside_with_the_reason(root: Path) -> None:
    for text in "abc":
        spool.add(root, "message", said(text))
    taken: list[SpooledEvent] = []

    def take(record: SpooledEvent) -> None:
        if record.body["text"] == "b":
            raise UsageError("'robot' is not a role.")
        taken.append(record)

    done = spool.drain(root, take)
    assert texts(taken) == ["a", "c"]
    assert done.aside == ["'robot' is not a role."]
    aside = root / spool.FOLDER / spool.QUARANTINE
    (line,) = aside.read_text().splitlines()
    assert json.loads(line)["why"] == "'robot' is not a role."
    assert json.loads(json.loads(line)["line"])["body"]["text"] == "b"
    assert aside.stat().st_mode & 0o777 == 0o600
    assert (spool.count_waiting(root), spool.count_quarantined(root)) == (0, 1)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"null",
        b"[]",
        b'"x"',
        b'{"operation": "message"}',
        b'{"operation": 1, "body": {}}',
        b'{"operation": "message", "body": {"id": 7, "at": "now"}}',
        b"\0" * 50,
        b"\xff\xfe",
        b"[" * 100_000,
    ],
    ids=lambda line: repr(line[:30]),
)
def test_a_line_that_is_no_record_is_set_aside(root: Path, line: bytes) -> None:
    spool.add(root, "message", said("first"))
    with files_of(root)[0].open("ab") as file:
        file.write(line + b"\n")
    spool.add(root, "message", said("second"))
    taken: list[SpooledEvent] = []
    done = spool.drain(root, taken.append)
    assert texts(taken) == ["first", "second"]
    assert len(done.aside) == spool.count_quarantined(root) == 1


def test_two_drainers_do_not_take_the_same(root: Path) -> None:
    for text in "abc":
        spool.add(root, "message", said(text))
    outer: list[SpooledEvent] = []
    inner: list[SpooledEvent] = []

    def take(record: SpooledEvent) -> None:
        spool.drain(root, inner.append)
        outer.append(record)

    spool.drain(root, take)
    assert (texts(outer), inner) == (["a", "b", "c"], [])


def test_what_is_added_while_draining_is_not_lost(root: Path) -> None:
    spool.add(root, "message", said("first"))
    taken: list[SpooledEvent] = []

    def take(record: SpooledEvent) -> None:
        taken.append(record)
        if len(taken) == 1:
            spool.add(root, "message", said("second"))

    spool.drain(root, take)
    assert texts(taken + all_of(root)) == ["first", "second"]


def test_a_writer_that_waited_for_a_file_that_is_gone_by_then_uses_another(root: Path) -> None:
    """It has opened the file and waits for its lock; when it gets it, the file is drained and deleted."""
    spool.add(root, "message", said("first"))
    (file,) = files_of(root)
    opened = os.open(file, os.O_RDWR)
    fcntl.flock(opened, fcntl.LOCK_EX)
    flock = fcntl.flock

    def free_it(fd: int, how: int) -> None:
        file.unlink(missing_ok=True)
        flock(opened, fcntl.LOCK_UN)
        flock(fd, how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fcntl, "flock", free_it)
        spool.add(root, "message", said("second"))
    os.close(opened)
    assert texts(all_of(root)) == ["second"]


def test_a_damaged_cursor_means_from_the_beginning(root: Path) -> None:
    """Then the ids tell who has what already."""
    names = [spool.add(root, "message", said(text)) for text in "ab"]

    def stop_at_b(record: SpooledEvent) -> None:
        if record.body["text"] == "b":
            raise Busy("later")

    spool.drain(root, stop_at_b)
    (cursor,) = (root / spool.FOLDER).glob("*.taken")
    assert spool.count_waiting(root) == 1
    cursor.write_bytes(b"\0" * 20)
    assert [record.id for record in all_of(root)] == names


TAKER = """
import os, sys
from tacit.transcripts import spool
root, log, die_at, where = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
count = 0
real = os.pwrite
def die_before_the_cursor(*given):
    if where == "before" and count == die_at:
        os.kill(os.getpid(), 9)
    done = real(*given)
    if where == "after" and count == die_at:
        os.kill(os.getpid(), 9)
    return done
os.pwrite = die_before_the_cursor
def take(record):
    global count
    count += 1
    with open(log, "a") as file:
        file.write(record.id + "\\n")
    if where == "taking" and count == die_at:
        os.kill(os.getpid(), 9)
spool.drain(root, take)
"""


@pytest.mark.parametrize("where", ["taking", "before", "after"])
def test_a_drainer_that_is_killed_loses_nothing_and_gives_at_most_one_again(root: Path, where: str) -> None:
    names = [spool.add(root, "message", said(str(number))) for number in range(6)]
    log = root / "log"
    command = [sys.executable, "-c", TAKER, str(root), str(log), "3", where]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    rest = all_of(root)
    taken = [*log.read_text().split(), *(record.id for record in rest)]
    assert list(dict.fromkeys(taken)) == names  # all, in order
    assert len(taken) <= len(names) + (where != "after")


# ---------------------------------------------------------------- cost


def test_looking_at_it_imports_nothing_that_takes_time(root: Path) -> None:
    spool.add(root, "message", said("x"))
    code = (
        "import sys; from tacit.transcripts import spool; assert spool.count_waiting(sys.argv[1]) == 1;"
        "print(*sorted({'dataclasses', 'yaml', 'pathlib', 'subprocess', 'typing'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, str(root)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""

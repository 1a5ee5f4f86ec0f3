"""Copies of what was given: each session's own, never older than its turn, never in the way of one."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from tacit.context.delivery import files as mirrors
from tacit.context.delivery.files import (
    append_daily_section,
    clear_context_file,
    context_file_path,
    write_context_file,
)
from tacit.home import files
from tacit.home.layout import CONTEXT_FILE, Home
from tests.conftest import plain_user

KEY = "agent:main:main"
DAY = date(2026, 3, 10)
HOSTILE = [
    "",
    "../../etc/passwd",
    "a/b",
    "\0",
    "\ud800",
    "x" * 10_000,
    "-->",
    "CON",
    "agent:main:main\n",
    "~root",
]


@pytest.fixture
def place(home: Path) -> Home:
    return Home(home)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def fails_with(number: int) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@contextmanager
def at_once(code: str, each: Sequence[Sequence[object]]) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that say they are ready by a line, and begin together. Ended when the block is left."""
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", code, *map(str, arguments)],
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                )
            )
            for arguments in each
        ]  # fmt: skip
        for process in running:
            assert process.stdout
            process.stdout.readline()
        for process in running:
            assert process.stdin
            process.stdin.write("x")
            process.stdin.flush()
        yield running


# ETHOS_CONTEXT.md


def test_each_session_has_a_file_of_its_own_that_only_its_owner_reads(place: Home, tmp_path: Path) -> None:
    for directory in (None, str(tmp_path / "elsewhere" / "deep")):
        assert write_context_file(place, directory, KEY, "mine\n") == ""
        assert write_context_file(place, directory, "agent:main:telegram:group:-1", "theirs\n") == ""
        file = context_file_path(place, directory, KEY)
        assert file.read_text() == "mine\n"
        assert file.name == CONTEXT_FILE == "ETHOS_CONTEXT.md"
        assert re.fullmatch("[0-9a-f]{16}", file.parent.name)
        assert (mode(file), mode(file.parent), mode(file.parent.parent)) == (0o600, 0o700, 0o700)
    assert context_file_path(place, None, KEY).is_relative_to(place.private / "context")
    assert context_file_path(place, str(tmp_path), KEY).is_relative_to(tmp_path)


def test_whatever_a_session_key_holds_its_file_is_in_the_folder_and_no_other_ones(place: Home) -> None:
    found = {context_file_path(place, None, key) for key in HOSTILE}
    assert len(found) == len(HOSTILE)
    for key in HOSTILE:
        assert write_context_file(place, None, key, "x") == ""
    assert set((place.private / "context").rglob("*.md")) == found


def test_it_is_overwritten_on_each_call(place: Home) -> None:
    for text in ("a long first text\n", "second\n", "third\n"):
        write_context_file(place, None, KEY, text)
        assert context_file_path(place, None, KEY).read_text() == text
    assert os.listdir(context_file_path(place, None, KEY).parent) == [CONTEXT_FILE]


def test_an_empty_text_leaves_an_empty_file_also_where_there_was_none(place: Home) -> None:
    assert write_context_file(place, None, KEY, "") == ""
    assert context_file_path(place, None, KEY).read_bytes() == b""
    write_context_file(place, None, KEY, "something")
    assert write_context_file(place, None, KEY, "") == ""
    assert context_file_path(place, None, KEY).read_bytes() == b""


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_where_it_cannot_be_replaced_it_is_emptied_and_the_reason_told(
    place: Home, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    write_context_file(place, None, KEY, "of an earlier turn")
    with monkeypatch.context() as broken:
        broken.setattr(files, "write_all", fails_with(number))
        reason = write_context_file(place, None, KEY, "new")
    assert reason.startswith(f"Could not write {CONTEXT_FILE}: ")
    assert "\n" not in reason
    assert context_file_path(place, None, KEY).read_bytes() == b""
    assert os.listdir(context_file_path(place, None, KEY).parent) == [CONTEXT_FILE]  # no half of it is left


def test_where_it_can_not_even_be_emptied_that_is_told_as_well(place: Home) -> None:
    write_context_file(place, None, KEY, "of an earlier turn")
    file = context_file_path(place, None, KEY)
    file.chmod(0o400)
    file.parent.chmod(0o500)
    code = (
        "import sys; from pathlib import Path; from tacit.home.layout import Home;"
        "from tacit.context.delivery.files import write_context_file;"
        "print(write_context_file(Home(Path(sys.argv[1])), None, sys.argv[2], 'new'))"
    )
    command = plain_user(sys.executable, "-c", code, place.root, KEY)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    file.parent.chmod(0o700)
    assert "this user may not write there" in done.stdout
    assert "may be of an earlier turn" in done.stdout


def test_a_link_in_its_place_is_not_followed(place: Home, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / CONTEXT_FILE).write_text("theirs")
    file = context_file_path(place, None, KEY)
    file.parent.parent.mkdir(parents=True)
    file.parent.symlink_to(outside)
    assert "link" in write_context_file(place, None, KEY, "new")
    file.parent.unlink()
    file.parent.mkdir()
    file.symlink_to(outside / CONTEXT_FILE)
    assert write_context_file(place, None, KEY, "new") == ""
    assert not file.is_symlink()
    assert (outside / CONTEXT_FILE).read_text() == "theirs"


@pytest.mark.parametrize("make", [lambda file: file.mkdir(), os.mkfifo])
def test_something_else_in_its_place_stops_nobody(place: Home, make: Callable[[Path], None]) -> None:
    file = context_file_path(place, None, KEY)
    file.parent.mkdir(parents=True)
    make(file)
    write_context_file(place, None, KEY, "new")  # returns, whatever it says


def test_a_home_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    gone = Home(tmp_path / "gone")
    assert "no home" in write_context_file(gone, None, KEY, "x")
    assert "no home" in append_daily_section(
        gone, gone.root / "knowledge" / "journal", DAY, ["<!-- a -->"], "<!-- a -->"
    )
    assert not gone.root.exists()


def test_there_are_never_more_than_some_hundred_and_the_oldest_go_first(
    place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrors, "MAX_CONTEXT_FILES", 5)
    made = []
    for number in range(9):
        file = context_file_path(place, None, f"session {number}")
        write_context_file(place, None, f"session {number}", "x")
        made.append(file)
        os.utime(file.parent, (number, number))
    assert [file.exists() for file in made] == [False] * 4 + [True] * 5


def test_room_is_made_only_among_folders_that_are_exactly_ours(
    place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirrors, "MAX_CONTEXT_FILES", 1)
    shared = tmp_path / "shared"
    others = {
        "notes/ETHOS_CONTEXT.md": "a folder of another name",
        "0123456789abcdef/ETHOS_CONTEXT.md": "beside",
        "0123456789abcdef/thesis.md": "something else in it",
        "fedcba9876543210/thesis.md": "no copy in it",
        "ABCDEF0123456789/ETHOS_CONTEXT.md": "in capitals",
        "00000000000000000/ETHOS_CONTEXT.md": "one digit more",
    }
    for name, text in others.items():
        (shared / name).parent.mkdir(parents=True, exist_ok=True)
        (shared / name).write_text(text)
    (shared / "1111111111111111").symlink_to(shared / "notes")
    (shared / "2222222222222222").write_text("a file")
    (shared / "3333333333333333").mkdir()
    left_over = shared / "4444444444444444"  # by a process that was killed while it wrote
    left_over.mkdir()
    (left_over / CONTEXT_FILE).write_text("x")
    (left_over / f"{CONTEXT_FILE}.tmp.0123456789ab").write_text("half")
    for number in range(3):
        assert write_context_file(place, str(shared), f"session {number}", "x") == ""
    assert {name: (shared / name).read_text() for name in others} == others
    assert (shared / "1111111111111111").is_symlink()
    assert (shared / "2222222222222222").read_text() == "a file"
    assert (shared / "3333333333333333").is_dir()
    assert not left_over.exists()
    assert context_file_path(place, str(shared), "session 2").exists()
    assert not context_file_path(place, str(shared), "session 1").exists()


def test_git_ignores_it_wherever_it_stands_in_a_home(place: Home) -> None:
    write_context_file(place, None, KEY, "x")
    write_context_file(place, str(place.root / "knowledge" / "seen"), KEY, "x")
    told = subprocess.run(
        ["git", "-C", str(place.root), "status", "--porcelain", "--untracked-files=all"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert told == ""
    file = context_file_path(place, str(place.root / "knowledge" / "seen"), KEY)
    subprocess.run(["git", "-C", str(place.root), "check-ignore", str(file)], check=True, capture_output=True)


def test_a_reader_sees_a_whole_text_while_several_processes_write(place: Home) -> None:
    code = (
        "import sys; from pathlib import Path; from tacit.home.layout import Home;"
        "from tacit.context.delivery.files import write_context_file;"
        "home = Home(Path(sys.argv[1])); print(flush=True); sys.stdin.read(1)\n"
        "for number in range(60): assert write_context_file(home, None, 'k', f'{number:04}' * 5000) == ''"
    )
    write_context_file(place, None, "k", "0000" * 5000)
    with at_once(code, [(place.root,)] * 2) as running:
        while any(process.poll() is None for process in running):
            text = context_file_path(place, None, "k").read_text()
            assert text == text[:4] * 5000
    assert [process.returncode for process in running] == [0, 0]
    assert os.listdir(context_file_path(place, None, "k").parent) == [CONTEXT_FILE]


def test_processes_that_make_room_at_once_stop_nobody(place: Home) -> None:
    """There is room for one, and each of them takes it from the others."""
    code = (
        "import sys; from pathlib import Path; from tacit.home.layout import Home\n"
        "from tacit.context.delivery import files as mirrors\n"
        "mirrors.MAX_CONTEXT_FILES, home = 1, Home(Path(sys.argv[1])); print(flush=True); sys.stdin.read(1)\n"
        "told = [mirrors.write_context_file(home, None, sys.argv[2], 'x' * 50) for _ in range(400)]\n"
        "assert not [why for why in told if why and 'No such file' not in why], told\n"
        "assert told.count('') > 200, told\n"
    )
    with at_once(code, [(place.root, me) for me in range(3)]) as running:
        pass
    assert [process.returncode for process in running] == [0, 0, 0]
    assert len(list((place.private / "context").rglob(CONTEXT_FILE))) <= 3
    assert not list((place.private / "context").rglob("*.tmp.*"))


# Turns that overlap


def test_a_turn_that_began_earlier_neither_replaces_nor_empties_the_copy_of_a_later_one(place: Home) -> None:
    now = time.time_ns()
    earlier, later = now - 2 * 10**9, now - 10**9
    file = context_file_path(place, None, KEY)
    assert write_context_file(place, None, KEY, "later", later) == ""
    assert write_context_file(place, None, KEY, "earlier", earlier) == ""
    clear_context_file(place, None, KEY, earlier)
    assert file.read_text() == "later"
    clear_context_file(place, None, KEY, later)
    assert file.read_bytes() == b""
    assert write_context_file(place, None, KEY, "earlier", earlier) == ""
    assert file.read_bytes() == b""
    assert write_context_file(place, None, KEY, "now", now) == ""
    assert file.read_text() == "now"
    assert not list(file.parent.glob("*.tmp.*"))


def test_a_clock_that_was_set_back_keeps_no_copy_alive(place: Home) -> None:
    write_context_file(place, None, KEY, "of tomorrow", time.time_ns() + 86_400 * 10**9)
    assert write_context_file(place, None, KEY, "of now") == ""
    assert context_file_path(place, None, KEY).read_text() == "of now"


# A folder elsewhere


def test_who_has_not_read_the_config_empties_a_copy_where_it_is(place: Home, tmp_path: Path) -> None:
    there = str(tmp_path / "there")
    assert write_context_file(place, there, KEY, "x") == ""
    clear_context_file(place, None, KEY)
    assert context_file_path(place, there, KEY).read_bytes() == b""


def test_a_copy_in_somebodys_repository_is_not_theirs(place: Home, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "theirs.md").write_text("theirs")
    assert write_context_file(place, str(tmp_path), KEY, "x") == ""
    command = ["git", "-C", str(tmp_path), "status", "--porcelain", "-uall"]
    seen = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
    assert [line for line in seen if "theirs.md" in line]
    assert not [line for line in seen if CONTEXT_FILE in line or ".gitignore" in line]


# Daily notes


def a_section(name: str) -> tuple[str, str]:
    marker = f"<!-- adaptive-memory:session={name} -->"
    return marker, f"{marker}\n## Adaptive Memory Context (auto-injected)\n\n> {name}\n\n---"


def add(place: Home, folder: Path, name: str, day: date = DAY, **more: Any) -> str:
    marker, section = a_section(name)
    return append_daily_section(place, folder, day, [marker], section, **more)


def test_a_folder_that_is_missing_is_made(place: Home, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "memory"
    assert add(place, folder, "one") == ""
    assert (folder / "2026-03-10.md").read_text() == a_section("one")[1] + "\n"
    assert mode(folder / "2026-03-10.md") == 0o600


@pytest.mark.parametrize(
    "before", ["# Tuesday\n\n- watered", "# Tuesday\n", "# Tuesday\n\n", "\ufeff# T\r\n"]
)
def test_a_section_is_added_after_a_blank_line_and_nothing_else_changes(
    place: Home, tmp_path: Path, before: str
) -> None:
    note = tmp_path / "2026-03-10.md"
    note.write_bytes(before.encode())
    note.chmod(0o644)
    assert add(place, tmp_path, "one") == ""
    after = note.read_bytes().decode()
    assert after.startswith(before)
    assert re.fullmatch(r"\n*", after[len(before) :].removesuffix(a_section("one")[1] + "\n"))
    assert f"\n\n{a_section('one')[0]}\n" in after
    assert "\n\n\n" not in after
    assert mode(note) == 0o644


def test_the_same_session_twice_has_one_section_and_each_new_one_its_own(place: Home, tmp_path: Path) -> None:
    for name in ("one", "one", "two", "one", "two"):
        assert add(place, tmp_path, name) == ""
    text = (tmp_path / "2026-03-10.md").read_text()
    assert text.count("## Adaptive Memory Context (auto-injected)") == 2
    assert [text.count(a_section(name)[0]) for name in ("one", "two")] == [1, 1]


def test_the_heading_alone_or_a_marker_within_a_line_is_not_the_marker(place: Home, tmp_path: Path) -> None:
    quoted = f"I saw {a_section('one')[0]} yesterday\n> {a_section('one')[0]}\n"
    (tmp_path / "2026-03-10.md").write_text(f"## Adaptive Memory Context (auto-injected)\n{quoted}")
    assert add(place, tmp_path, "one") == ""
    assert a_section("one")[1] in (tmp_path / "2026-03-10.md").read_text()


def test_a_session_that_goes_on_for_days_has_its_section_already(place: Home, tmp_path: Path) -> None:
    add(place, tmp_path, "one")
    for days in range(1, 9):
        assert add(place, tmp_path, "one", DAY + timedelta(days=days), goes_on=True) == ""
    assert [page.name for page in tmp_path.glob("2026-*.md")] == ["2026-03-10.md"]
    assert add(place, tmp_path, "two", DAY + timedelta(days=1), goes_on=True) == ""
    assert (tmp_path / "2026-03-11.md").exists()


def test_a_session_under_another_of_its_names_has_its_section_already(place: Home, tmp_path: Path) -> None:
    add(place, tmp_path, "one")
    markers = [a_section(name)[0] for name in ("two", "one")]
    assert append_daily_section(place, tmp_path, DAY, markers, a_section("two")[1]) == ""
    assert a_section("two")[0] not in (tmp_path / "2026-03-10.md").read_text()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda note: note.symlink_to(note.parent / "other.md"), "link"),
        (os.mkfifo, "not a plain file"),
        (lambda note: note.mkdir(), "not a plain file"),
        (lambda note: note.write_bytes(b"a\0b"), "not text"),
        (lambda note: note.write_bytes(b"caf\xe9\n"), "not text"),
        (lambda note: os.link(note.parent / "other.md", note), "hard link"),
    ],
)
def test_what_is_no_plain_text_gets_a_reason_and_not_a_byte(
    place: Home, tmp_path: Path, make: Callable[[Path], None], why: str
) -> None:
    (tmp_path / "other.md").write_text("theirs")
    note = tmp_path / "2026-03-10.md"
    make(note)
    before = note.lstat()
    assert why in add(place, tmp_path, "one")
    assert (note.lstat().st_mtime_ns, note.lstat().st_ino) == (before.st_mtime_ns, before.st_ino)
    assert (tmp_path / "other.md").read_text() == "theirs"


def test_a_folder_that_is_a_file_or_a_disk_that_is_full_is_told_and_raises_nothing(
    place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("x")
    assert add(place, tmp_path / "file", "one").startswith("Could not add to 2026-03-10.md")
    (tmp_path / "2026-03-10.md").write_text("mine\n")
    monkeypatch.setattr(files, "write_all", fails_with(errno.ENOSPC))
    assert "the disk is full" in add(place, tmp_path, "one")
    assert (tmp_path / "2026-03-10.md").read_text() == "mine\n"
    assert sorted(os.listdir(tmp_path)) == ["2026-03-10.md", "file", "home"]


def test_whoever_else_writes_to_the_home_is_waited_for_only_a_moment(place: Home, tmp_path: Path) -> None:
    with files.hold_lock(place.lock):
        assert "another process is writing" in add(place, tmp_path, "one")
        assert not (tmp_path / "2026-03-10.md").exists()
    assert add(place, tmp_path, "one") == ""
    with files.hold_lock(place.lock):
        assert add(place, tmp_path, "one") == ""  # it stands there: nothing to wait for


def test_processes_at_once_neither_lose_nor_double_a_section(place: Home, tmp_path: Path) -> None:
    """Each adds its own ones and those that all have, again while it is told that another one writes."""
    code = (
        "import sys; from datetime import date; from pathlib import Path; from tacit.home.layout import Home;"
        "from tacit.context.delivery.files import append_daily_section\n"
        "home, folder, me = Home(Path(sys.argv[1])), Path(sys.argv[2]), sys.argv[3]\n"
        "def add(name):\n"
        "    marker = f'<!-- adaptive-memory:session={name} -->'\n"
        "    for _ in range(400):\n"
        "        text = marker + '\\n> x\\n\\n---'\n"
        "        why = append_daily_section(home, folder, date(2026, 3, 10), [marker], text)\n"
        "        if 'another process' not in why: break\n"
        "    assert why == '', why\n"
        "print(flush=True); sys.stdin.read(1)\n"
        "for number in range(12): add(f'{me}-{number}'); add(f'all-{number}')\n"
    )
    folder = tmp_path / "memory"
    with at_once(code, [(place.root, folder, me) for me in range(3)]) as running:
        pass
    assert [process.returncode for process in running] == [0, 0, 0]
    text = (folder / "2026-03-10.md").read_text()
    names = re.findall(r"^<!-- adaptive-memory:session=(\S+) -->$", text, re.MULTILINE)
    assert sorted(names) == sorted(f"{me}-{number}" for me in (0, 1, 2, "all") for number in range(12))
    assert text.count("\n---\n") == len(names)
    assert os.listdir(folder) == ["2026-03-10.md"]

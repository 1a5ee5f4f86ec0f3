"""Who has written in a main session: remembered once, in every process, whatever happens to the file."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.home import files
from tacit.home.layout import Home
from tacit.sessions.policy import MAX_SENDERS, MAX_SESSIONS, MORE_SENDERS, Senders
from tests.conftest import plain_user

MAIN = "agent:main:main"


@pytest.fixture
def place(tmp_path: Path) -> Home:
    return Home(tmp_path)


def kept(place: Home) -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(file_of(place).read_text())["sessions"]
    return found


def file_of(place: Home) -> Path:
    return place.private / "senders.json"


def put(place: Home, data: bytes) -> None:
    place.private.mkdir(exist_ok=True)
    file_of(place).write_bytes(data)


def test_a_sender_is_seen_from_the_first_time_on(place: Home) -> None:
    senders = Senders(place)
    assert senders.seen(MAIN, "") == frozenset()
    assert senders.seen(MAIN, "telegram:7") == {"telegram:7"}
    assert senders.seen(MAIN, "") == {"telegram:7"}
    assert senders.seen(MAIN, "telegram:9") == {"telegram:7", "telegram:9"}
    assert senders.seen("agent:shop:main", "") == frozenset()


def test_who_only_asks_leaves_no_trace(place: Home) -> None:
    Senders(place).seen(MAIN, "")
    assert not place.private.exists()


def test_senders_outlive_the_process(place: Home) -> None:
    Senders(place).seen(MAIN, "telegram:7")
    assert Senders(place).seen(MAIN, "") == {"telegram:7"}


def test_the_file_is_the_owners_alone(place: Home) -> None:
    old = os.umask(0)
    try:
        Senders(place).seen(MAIN, "telegram:7")
    finally:
        os.umask(old)
    assert stat.S_IMODE(file_of(place).stat().st_mode) == 0o600
    assert stat.S_IMODE((place.private / "senders.lock").stat().st_mode) == 0o600


def test_nothing_is_read_or_written_for_a_sender_who_was_seen(
    place: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    senders = Senders(place)
    senders.seen(MAIN, "telegram:7")

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a file was touched")

    monkeypatch.setattr(Senders, "_read", forbidden)
    monkeypatch.setattr(files, "replace", forbidden)
    for _ in range(3):
        assert senders.seen(MAIN, "telegram:7") == {"telegram:7"}
        assert senders.seen(MAIN, "") == {"telegram:7"}


def test_what_another_process_saw_counts_here_too(place: Home) -> None:
    here = Senders(place)
    here.seen(MAIN, "telegram:7")
    code = (
        "import sys; from pathlib import Path; from tacit.home.layout import Home;"
        "from tacit.sessions.policy import Senders; Senders(Home(Path(sys.argv[1]))).seen(*sys.argv[2:])"
    )
    subprocess.run([sys.executable, "-c", code, str(place.root), MAIN, "telegram:9"], check=True)
    assert here.seen(MAIN, "") == {"telegram:7", "telegram:9"}


def test_what_two_see_at_the_same_time_is_all_kept(place: Home) -> None:
    one, other = Senders(place), Senders(place)
    one.seen(MAIN, "a")
    other.seen("agent:shop:main", "b")
    one.seen("agent:pump:main", "c")
    assert kept(place) == {MAIN: ["a"], "agent:shop:main": ["b"], "agent:pump:main": ["c"]}


def test_many_threads_lose_nobody(place: Home) -> None:
    shared, own = Senders(place), [Senders(place) for _ in range(3)]
    keys = [f"agent:a{number}:main" for number in range(12)]

    def work(senders: Senders, name: str) -> None:
        for key in keys:
            senders.seen(key, name)

    threads = [
        threading.Thread(target=work, args=(senders, f"{number}"))
        for number, senders in enumerate([shared, shared, *own])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    # Who could not get the lock in time keeps it to himself, and brings it along the next time.
    for senders in [shared, *own]:
        senders.seen("agent:last:main", f"{id(senders)}")
    assert {key: set(kept(place)[key]) for key in keys} == {key: {"0", "1", "2", "3", "4"} for key in keys}


def test_of_many_senders_only_some_are_named(place: Home) -> None:
    senders = Senders(place)
    for number in range(100):
        senders.seen(MAIN, f"telegram:{number}")
    names = {f"telegram:{number}" for number in range(MAX_SENDERS)}
    assert senders.seen(MAIN, "") == names | {MORE_SENDERS}
    assert Senders(place).seen(MAIN, "") == names | {MORE_SENDERS}
    written = file_of(place).stat().st_mtime_ns
    senders.seen(MAIN, "telegram:100")
    assert file_of(place).stat().st_mtime_ns == written


def test_of_many_sessions_those_of_several_senders_are_kept(place: Home) -> None:
    put(
        place,
        json.dumps({"version": 1, "sessions": {
            "agent:first:main": ["a", "b"],
            **{f"agent:a{number}:main": ["a"] for number in range(MAX_SESSIONS - 1)},
        }}).encode(),
    )  # fmt: skip
    senders = Senders(place)
    senders.seen("agent:new:main", "a")
    assert len(kept(place)) == MAX_SESSIONS
    assert senders.seen("agent:first:main", "") == {"a", "b"}
    assert senders.seen("agent:new:main", "") == {"a"}
    assert senders.seen("agent:a0:main", "") == frozenset()


def test_a_file_of_many_sessions_stays_small(place: Home) -> None:
    many = {f"agent:a{number}:main": [f"{name}" for name in range(20)] for number in range(MAX_SESSIONS + 50)}
    put(place, json.dumps({"sessions": many}).encode())
    Senders(place).seen(MAIN, "a")
    assert len(kept(place)) == MAX_SESSIONS
    assert {len(names) for key, names in kept(place).items() if key != MAIN} == {MAX_SENDERS + 1}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b'{"sessions": []}',
        b'{"sessions": {"agent:main:main": "telegram:7"}}',
        b'{"sessions": {"agent:main:main": [7, null, "", ["x"]]}}',
        b"[" * 200_000,
        b"9" * 100_000,
    ],
    ids=lambda data: ascii(data[:30]),
)
def test_a_damaged_file_is_nobody_and_is_replaced(place: Home, data: bytes) -> None:
    put(place, data)
    senders = Senders(place)
    assert senders.seen(MAIN, "") == frozenset()
    assert senders.seen(MAIN, "telegram:7") == {"telegram:7"}
    assert kept(place) == {MAIN: ["telegram:7"]}


def test_a_file_that_is_too_large_is_replaced(place: Home) -> None:
    put(place, b'{"sessions": {"agent:main:main": ["x"]}}' + b" " * (5 << 20))
    senders = Senders(place)
    assert senders.seen(MAIN, "a") == {"a"}
    assert file_of(place).stat().st_size < 1000


def test_a_link_or_a_pipe_in_its_place_is_not_followed(place: Home, tmp_path: Path) -> None:
    secret = tmp_path / "elsewhere.json"
    secret.write_text('{"sessions": {"agent:main:main": ["x"]}}')
    place.private.mkdir()
    file_of(place).symlink_to(secret)
    assert Senders(place).seen(MAIN, "a") == {"a"}
    assert "x" in secret.read_text()
    assert not file_of(place).is_symlink()
    file_of(place).unlink()
    os.mkfifo(file_of(place))
    assert Senders(place).seen(MAIN, "b") == {"b"}


def test_a_folder_in_its_place_does_no_harm(place: Home) -> None:
    file_of(place).mkdir(parents=True)
    senders = Senders(place)
    assert senders.seen(MAIN, "a") == {"a"}
    assert senders.seen(MAIN, "b") == {"a", "b"}


def test_a_disk_that_cannot_be_written_is_no_reason_to_forget(place: Home) -> None:
    place.private.mkdir()
    place.private.chmod(0o500)
    code = (
        "import sys; from pathlib import Path; from tacit.home.layout import Home;"
        "from tacit.sessions.policy import Senders; senders = Senders(Home(Path(sys.argv[1])));"
        "senders.seen('k', 'a'); print(sorted(senders.seen('k', 'b')), sorted(senders.seen('k', '')))"
    )
    try:
        done = subprocess.run(
            plain_user(sys.executable, "-c", code, place.root), capture_output=True, text=True, check=True
        )
    finally:
        place.private.chmod(0o700)
    assert done.stdout == "['a', 'b'] ['a', 'b']\n"
    assert not file_of(place).exists()


def test_what_could_not_be_written_is_written_with_the_next_sender(place: Home) -> None:
    senders = Senders(place)
    with files.hold_lock(_lock_folder(place) / "senders.lock"):
        assert senders.seen(MAIN, "a") == {"a"}
        assert not file_of(place).exists()
    Senders(place).seen("agent:shop:main", "x")
    assert senders.seen(MAIN, "") == {"a"}
    assert senders.seen(MAIN, "b") == {"a", "b"}
    assert kept(place) == {"agent:shop:main": ["x"], MAIN: ["a", "b"]}


def _lock_folder(place: Home) -> Path:
    place.private.mkdir(exist_ok=True)
    return place.private


def test_a_home_that_is_gone_is_not_made_again(tmp_path: Path) -> None:
    gone = Home(tmp_path / "gone")
    senders = Senders(gone)
    assert senders.seen(MAIN, "a") == {"a"}
    assert not gone.root.exists()


def test_who_deletes_the_file_begins_anew(place: Home) -> None:
    senders = Senders(place)
    senders.seen(MAIN, "a")
    senders.seen(MAIN, "b")
    file_of(place).unlink()
    assert senders.seen(MAIN, "") == frozenset()
    assert senders.seen(MAIN, "a") == {"a"}


@pytest.mark.parametrize(("key", "sender"), [(None, "a"), (7, "a"), (MAIN, None), (MAIN, 7), (MAIN, ["a"])])
def test_what_is_no_text_is_nobody(place: Home, key: object, sender: object) -> None:
    assert Senders(place).seen(key, sender) == frozenset()


def test_long_names_are_kept_apart_in_little_space(place: Home) -> None:
    senders = Senders(place)
    assert len(senders.seen(MAIN, "x" * 1_000_000)) == 1
    assert len(senders.seen(MAIN, "x" * 1_000_001)) == 2
    senders.seen("k" * 1_000_000, "a")
    assert file_of(place).stat().st_size < 2000
    assert Senders(place).seen("k" * 1_000_000, "") == {"a"}


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "\ud800", ""]), st.text(max_size=8)), max_size=6))
@settings(max_examples=30)
def test_any_text_is_found_again_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, str]]
) -> None:
    place = Home(tmp_path_factory.mktemp("home"))
    senders = Senders(place)
    for key, sender in said:
        assert sender == "" or {sender, MORE_SENDERS} & senders.seen(key, sender)
    for key, _ in said:
        assert Senders(place).seen(key, "") == senders.seen(key, "")

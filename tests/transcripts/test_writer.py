"""Live conversations on a real disk: what is acknowledged is there, what is not is not."""

from __future__ import annotations

import errno
import multiprocessing
import os
import stat
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.errors import Busy, DiskError, SessionError, UnsafePath
from tacit.home.files import digest
from tacit.home.layout import Home
from tacit.transcripts import format as form
from tacit.transcripts import writer
from tacit.transcripts.model import Closing, Message, Opening, Transcript
from tacit.transcripts.writer import SessionState, TranscriptWriter
from tests.hostile import hostile

SPAWN = multiprocessing.get_context("spawn")
STARTED = datetime(2026, 2, 16, 18, 45, tzinfo=UTC)
PATH = "raw/conversations/2026/02/16/1845-ses_1-one.md"


@pytest.fixture
def bare(tmp_path: Path) -> Home:
    """Files only: no git, no config."""
    (tmp_path / ".tacit").mkdir()
    return Home(tmp_path)


def begin(home: Home, session_id: str = "ses_1", *, detached: bool = False) -> TranscriptWriter:
    return TranscriptWriter(home, SessionState(Opening(session_id, STARTED), detached=detached))


def resume(home: Home, session_id: str = "ses_1", wait: float = 0.0) -> TranscriptWriter:
    record = writer.find_state(home, session_id)
    assert record is not None
    return TranscriptWriter(home, record, wait=wait)


def say(live: TranscriptWriter, text: str, at: datetime = STARTED) -> int:
    return live.append(text, lambda place: form.render_message(place, at, "user", text))


def heard(home: Home, path: str = PATH) -> list[str]:
    return [turn.text for turn in writer.load(home, path).messages]


def loaded(home: Home, path: str = PATH) -> Transcript:
    return writer.load(home, path)


def _noted(real: Callable[..., object], note: Callable[..., None]) -> Callable[..., object]:
    def call(*arguments: object) -> object:
        note(*arguments)
        return real(*arguments)

    return call


# ---------------------------------------------------------------- acknowledged means on disk


def test_every_message_is_synced_before_it_is_acknowledged(
    bare: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = begin(bare)
    say(live, "one")
    calls: list[str] = []
    for name in ("write", "fdatasync"):
        monkeypatch.setattr(os, name, _noted(getattr(os, name), lambda *_, name=name: calls.append(name)))
    assert say(live, "two") == 2
    assert calls == ["write", "fdatasync"]


def test_the_first_message_appears_whole_under_its_name_and_the_folders_are_synced(
    bare: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(
        os, "fsync", _noted(os.fsync, lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    )
    live = begin(bare)
    assert not (bare.root / "raw").exists()
    assert say(live, "one") == 1
    assert live.record.path == PATH
    assert heard(bare) == ["one"]
    day = str((bare.root / PATH).parent)
    assert {day, day.rpartition("/")[0], str(bare.root)} <= set(synced)
    assert any(".tmp." in path for path in synced)  # the file itself, before it got its name
    assert [path.name for path in (bare.root / PATH).parent.iterdir()] == [Path(PATH).name]


def test_a_live_transcript_is_for_its_owner_alone(bare: Home) -> None:
    say(begin(bare), "one")
    for place in (PATH, "raw", "raw/conversations/2026/02/16"):
        assert stat.S_IMODE((bare.root / place).stat().st_mode) & 0o077 == 0


def _short(real: Callable[[int, bytes], int]) -> Callable[[int, bytes], int]:
    return lambda fd, data: real(fd, bytes(data)[: len(data) // 2])


def _failing(code: int) -> Callable[..., int]:
    def fails(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    return fails


def _written_then(code: int, real: Callable[[int, bytes], int]) -> Callable[[int, bytes], int]:
    def fails(fd: int, data: bytes) -> int:
        real(fd, bytes(data)[:20])
        raise OSError(code, os.strerror(code))

    return fails


@pytest.mark.parametrize(
    ("call", "fault", "words"),
    [
        ("write", _short(os.write), "disk is full"),
        ("write", _failing(errno.ENOSPC), "disk is full"),
        ("write", _written_then(errno.EIO, os.write), "disk reported an error"),
        ("fdatasync", _failing(errno.EIO), "disk reported an error"),
        ("fdatasync", _failing(errno.ENOSPC), "disk is full"),
    ],
    ids=["short write", "full", "torn write", "sync fails", "sync finds it full"],
)
def test_a_message_that_could_not_be_kept_is_not_there_and_the_next_goes_to_a_new_file(
    bare: Home, monkeypatch: pytest.MonkeyPatch, call: str, fault: Callable[..., int], words: str
) -> None:
    live = begin(bare)
    say(live, "one")
    before = (bare.root / PATH).read_bytes()
    old = (bare.root / PATH).stat().st_ino
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fault)
        with pytest.raises(DiskError, match=words):
            say(live, "lost")
    assert (bare.root / PATH).read_bytes() == before
    assert say(live, "two") == 2
    assert (bare.root / PATH).stat().st_ino != old
    assert say(live, "three") == 3
    assert heard(bare) == ["one", "two", "three"]
    assert loaded(bare).problems == ()
    with pytest.raises(Busy):  # the new file is locked as the old one was
        resume(bare)
    live.seal(Closing(STARTED))
    assert heard(bare) == ["one", "two", "three"]


def test_what_could_not_even_be_cut_off_is_left_behind_with_the_old_file(
    bare: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = begin(bare)
    say(live, "one")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", _failing(errno.EIO))
        patch.setattr(os, "ftruncate", _failing(errno.EIO))
        with pytest.raises(DiskError):
            say(live, "lost")
    say(live, "two")
    assert heard(bare) == ["one", "two"]
    assert b"lost" not in (bare.root / PATH).read_bytes()


def test_a_disk_that_stays_full_gives_the_same_answer_and_loses_nothing(
    bare: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = begin(bare)
    say(live, "one")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", _failing(errno.ENOSPC))
        for _ in range(3):
            with pytest.raises(DiskError, match="disk is full"):
                say(live, "lost")
    assert say(live, "two") == 2
    assert heard(bare) == ["one", "two"]
    assert [path.name for path in (bare.root / PATH).parent.iterdir()] == [Path(PATH).name]


@pytest.mark.parametrize("call", ["write", "fsync", "mkdir"])
def test_a_session_whose_first_message_fails_can_try_again(
    bare: Home, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    live = begin(bare)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, _failing(errno.ENOSPC))
        with pytest.raises(DiskError, match="disk is full"):
            say(live, "one")
    assert list(bare.root.glob("raw/**/*.md*")) == []
    assert say(live, "one") == 1
    assert heard(bare) == ["one"]


def test_an_interrupted_write_is_not_kept_either(bare: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    live = begin(bare)
    say(live, "one")

    def interrupted(fd: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            say(live, "lost")
    say(live, "two")
    assert heard(bare) == ["one", "two"]


@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_that_somebody_took_away_is_put_back_before_the_next_message_is_acknowledged(
    bare: Home, replaced: bool
) -> None:
    """As `git stash -u` does to files that git does not know yet."""
    live = begin(bare)
    say(live, "one")
    say(live, "two")
    (bare.root / PATH).unlink()
    if replaced:
        (bare.root / PATH).write_text("something else")
    assert say(live, "three") == 3
    assert heard(bare) == ["one", "two", "three"]
    with pytest.raises(Busy):
        resume(bare)


def test_a_file_whose_head_is_gone_is_refused_in_words_and_let_go(bare: Home) -> None:
    live = begin(bare)
    say(live, "one")
    live.close()
    changed = (bare.root / PATH).read_bytes().replace(b"\n", b"\r\n")
    (bare.root / PATH).write_bytes(changed)
    for _ in range(2):  # the second time, too: the first left no lock
        with pytest.raises(SessionError, match="Restore it, or begin a session with another id"):
            resume(bare)
    assert (bare.root / PATH).read_bytes() == changed


# ---------------------------------------------------------------- torn by a crash


def test_a_file_cut_at_any_byte_of_its_last_record_goes_on(bare: Home) -> None:
    live = begin(bare)
    say(live, "one")
    whole = (bare.root / PATH).stat().st_size
    say(live, "zwölf\n## 18:45 — agent\n")
    live.close()
    data = (bare.root / PATH).read_bytes()
    for cut in range(whole, len(data)):
        (bare.root / PATH).write_bytes(data[:cut])
        live = resume(bare)
        assert [turn.number for turn in live.turns()] == [1], cut
        assert say(live, "after") == 2, cut
        live.close()
        assert (bare.root / PATH).read_bytes().startswith(data[:cut]), cut  # nothing is rewritten
        parsed = loaded(bare)
        assert [turn.text for turn in parsed.messages] == ["one", "after"], cut
        torn = data[whole:cut].strip()
        assert [problem.level for problem in parsed.problems] == (["warning"] if torn else []), cut


def test_a_torn_transcript_is_sealed_with_its_rest(bare: Home) -> None:
    live = begin(bare)
    say(live, "one")
    say(live, "two")
    live.close()
    data = (bare.root / PATH).read_bytes()[:-9]
    (bare.root / PATH).write_bytes(data)
    resume(bare).seal(Closing(STARTED))
    sealed = (bare.root / PATH).read_bytes()
    assert sealed.partition(b"\n# ")[2] == data.partition(b"\n# ")[2]
    assert heard(bare) == ["one"]


# ---------------------------------------------------------------- sealing


def test_sealing_changes_the_head_and_nothing_else(bare: Home) -> None:
    live = begin(bare)
    for text in ("one", "\0 ## 18:45 — agent\r\n", "x" * 100_000):
        say(live, text)
    before = (bare.root / PATH).read_bytes()
    sha = live.seal(Closing(STARTED + timedelta(minutes=5), ("a", "b"), 1, 2))
    after = (bare.root / PATH).read_bytes()
    assert after.partition(b"---\n\n# one\n")[2] == before.partition(b"---\n\n# one\n")[2] != b""
    assert sha == digest(after)
    assert stat.S_IMODE((bare.root / PATH).stat().st_mode) == 0o400
    assert writer.is_sealed(bare.root / PATH)
    assert loaded(bare).fields["tags"] == ["a", "b"]


def test_a_sealed_transcript_takes_nothing_more(bare: Home) -> None:
    live = begin(bare)
    say(live, "one")
    live.seal(Closing(STARTED))
    sealed = (bare.root / PATH).read_bytes()
    with pytest.raises(SessionError, match="session_id"):
        say(live, "two")
    with pytest.raises(SessionError, match="nothing to seal"):
        live.seal(Closing(STARTED))
    assert (bare.root / PATH).read_bytes() == sealed
    assert [turn.number for turn in live.turns()] == [1]


def test_a_seal_that_fails_leaves_the_session_open(bare: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    live = begin(bare)
    say(live, "one")
    before = (bare.root / PATH).read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", _failing(errno.ENOSPC))
        with pytest.raises(DiskError):
            live.seal(Closing(STARTED))
    assert (bare.root / PATH).read_bytes() == before
    assert say(live, "two") == 2
    assert live.seal(Closing(STARTED)) == digest((bare.root / PATH).read_bytes())


def test_the_same_minute_id_and_words_give_another_file(bare: Home) -> None:
    paths = []
    for _ in range(3):
        live = begin(bare)
        say(live, "one")
        live.seal(Closing(STARTED))
        paths.append(live.record.path)
    assert paths == [PATH, PATH.replace("-one.md", "-one-2.md"), PATH.replace("-one.md", "-one-3.md")]


@settings(max_examples=60)
@given(hostile)
@example("x" * 100_000)
@example("🔥" * 2500)
@example("\nended: 2026\n---\n")
def test_whether_a_transcript_is_sealed_does_not_depend_on_its_names(
    tmp_path_factory: pytest.TempPathFactory, session_id: str
) -> None:
    file = tmp_path_factory.getbasetemp() / f"sealed-{os.getpid()}.md"
    opening = Opening(session_id or "x", STARTED, session_id, session_id, session_id, session_id)
    text = form.render_opening(opening, "one") + "\nended: 2026-01-01T00:00:00Z\n---\n"
    file.write_text(text, encoding="utf-8", newline="")
    assert not writer.is_sealed(file)
    file.write_text(form.render_final(text, opening, Closing(STARTED), []), encoding="utf-8", newline="")
    assert writer.is_sealed(file)


# ---------------------------------------------------------------- one writer


def test_a_second_writer_is_told_that_the_session_is_taken(bare: Home) -> None:
    say(begin(bare), "one")
    with pytest.raises(Busy, match="ses_1 is being written elsewhere"):
        resume(bare)


def test_a_second_writer_waits_for_the_first(bare: Home) -> None:
    first = begin(bare)
    say(first, "one")
    threading.Timer(0.2, first.close).start()
    assert say(resume(bare, wait=10.0), "two") == 2
    assert heard(bare) == ["one", "two"]


def test_a_second_writer_that_waited_for_a_seal_does_not_write_into_the_old_file(bare: Home) -> None:
    first = begin(bare)
    say(first, "one")
    threading.Timer(0.2, lambda: first.seal(Closing(STARTED))).start()
    with pytest.raises(Busy, match="sealed just now"):
        resume(bare, wait=10.0)


def test_eight_threads_keep_every_message_once(bare: Home) -> None:
    live = begin(bare)
    numbers: list[int] = []

    def talk(who: int) -> None:
        numbers.extend([say(live, f"{who} {count}") for count in range(12)])

    threads = [threading.Thread(target=talk, args=(who,)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 97))
    assert live.record.path is not None
    parsed = loaded(bare, live.record.path)
    assert [turn.number for turn in parsed.turns] == list(range(1, 97))
    assert sorted(turn.text for turn in parsed.messages) == sorted(
        f"{who} {n}" for who in range(8) for n in range(12)
    )
    assert parsed.problems == ()


def _one_message(root: str, who: int, go: str) -> None:
    home = Home(Path(root))
    record = writer.find_state(home, "ses_1")  # all see a session in which nothing was said yet
    assert record is not None
    Path(root, f"ready-{who}").touch()
    while not os.path.exists(go):
        pass
    live = TranscriptWriter(home, record, wait=30.0)
    say(live, f"from {who}")
    live.close()


def test_processes_that_all_keep_the_first_message_share_one_transcript(bare: Home) -> None:
    writer.save_state(bare, SessionState(Opening("ses_1", STARTED), detached=True))
    go = bare.root / "go"
    started = [SPAWN.Process(target=_one_message, args=(str(bare.root), who, str(go))) for who in range(4)]
    for process in started:
        process.start()
    while len(list(bare.root.glob("ready-*"))) < 4:
        assert all(process.is_alive() for process in started)
    go.touch()
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0] * 4
    (file,) = bare.root.glob("raw/conversations/*/*/*/*.md")
    path = str(file.relative_to(bare.root))
    assert sorted(heard(bare, path)) == [f"from {who}" for who in range(4)]
    assert [turn.number for turn in loaded(bare, path).turns] == [1, 2, 3, 4]
    assert [record.path for record in writer.list_states(bare)] == [path]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # newer Pythons warn of fork itself
def test_a_forked_child_can_neither_write_nor_let_go_of_its_parents_session(bare: Home) -> None:
    live = begin(bare)
    say(live, "one")
    done, leave = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        said = b""
        for attempt in (lambda: say(live, "two"), lambda: live.seal(Closing(STARTED))):
            try:
                attempt()
            except SessionError:
                said += b"refused "
        live.close()
        os.write(done[1], said)
        os.read(leave[0], 1)
        os._exit(0)
    try:
        assert os.read(done[0], 100) == b"refused refused "
        with pytest.raises(Busy):
            resume(bare)
        assert say(live, "two") == 2
    finally:
        os.write(leave[1], b"x")
        os.waitpid(child, 0)
    for fd in (*done, *leave):
        os.close(fd)
    assert heard(bare) == ["one", "two"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_that_lives_on_does_not_keep_the_session_taken(bare: Home) -> None:
    live = begin(bare)
    say(live, "one")
    leave = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(leave[0], 1)
        os._exit(0)
    try:
        live.close()
        assert say(resume(bare), "two") == 2
    finally:
        os.write(leave[1], b"x")
        os.waitpid(child, 0)
        os.close(leave[0])
        os.close(leave[1])


# ---------------------------------------------------------------- records


@settings(max_examples=50)
@given(hostile.filter(bool), hostile, hostile | st.none())
def test_a_record_comes_back_whatever_it_is_called(
    tmp_path_factory: pytest.TempPathFactory, session_id: str, key: str, model: str | None
) -> None:
    home = Home(tmp_path_factory.getbasetemp() / f"records-{os.getpid()}")
    record = SessionState(
        Opening(session_id, STARTED, key, "main", None, model), "raw/conversations/x.md", "x", True, "00"
    )
    writer.save_state(home, record)
    assert writer.state_file(home, session_id).parent == home.sessions
    assert writer.find_state(home, session_id) == record
    assert writer.list_states(home) == [record]
    writer.drop_state(home, record)
    assert writer.list_states(home) == []


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"null", b"{}", b'{"opening": {}}', b"\xff\0"])
def test_a_damaged_record_does_not_hide_its_transcript(bare: Home, damage: bytes) -> None:
    live = begin(bare)
    say(live, "one")
    other = begin(bare, "ses_2")
    say(other, "two")
    live.close()
    other.close()
    writer.state_file(bare, "ses_1").write_bytes(damage)
    found = writer.list_states(bare)
    assert sorted((record.opening.session_id, record.path) for record in found) == [
        ("ses_1", PATH),
        ("ses_2", PATH.replace("ses_1-one", "ses_2-two")),
    ]


def test_strays_are_unsealed_transcripts_of_ours_and_nothing_else(bare: Home) -> None:
    live = begin(bare)
    say(live, "one")
    live.close()
    sealed = begin(bare, "ses_2")
    say(sealed, "two")
    sealed.seal(Closing(STARTED))
    folder = (bare.root / PATH).parent
    (folder / "1900-by-hand.md").write_text("---\nsession_id: x\nstarted: 2026-02-16T18:45:00Z\n---\n")
    (folder / "notes.txt").write_text("marks: crc32")
    (folder / "1901-empty.md").touch()
    assert list(writer.find_orphaned(bare)) == []  # a record names it
    writer.drop_state(bare, live.record)
    assert [(stray.path, stray.name, stray.opening) for stray in writer.find_orphaned(bare)] == [
        (PATH, "one", Opening("ses_1", STARTED))
    ]


def test_a_transcript_reached_through_a_link_is_not_loaded(bare: Home) -> None:
    (bare.root / "secret.md").write_text("## 18:45 — user\nsecret\n")
    (bare.root / "link.md").symlink_to("secret.md")
    with pytest.raises(UnsafePath):
        writer.load(bare, "link.md")


def test_turns_can_be_read_while_and_after_a_session_is_written(bare: Home) -> None:
    live = begin(bare)
    assert live.turns() == ()
    say(live, "one")
    during = live.turns()
    live.close()
    assert live.turns() == during
    assert isinstance(during[0], Message)
    with pytest.raises(SessionError):
        say(live, "two")

"""`tacit index --follow`: what is written is in the index soon after, until somebody says stop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from tacit.errors import StoreError
from tacit.home.layout import Home
from tacit.home.listing import INDEXED
from tacit.search.home_index import IndexResult
from tacit.search.searcher import Searcher
from tacit.search.watcher import watch_home
from tests.conftest import Tacit, eventually
from tests.search.fakes import parts

PATIENCE = 20.0
_READ = apsw.SQLITE_OPEN_READONLY
CONFIG = "git:\n  auto_commit: false\nsearch:\n  embedding_model: none\n"


def held(home: Path) -> dict[str, str]:
    """The files in the index with their text, as SQLite tells it: nobody brings it up to date by asking."""
    try:
        with closing(apsw.Connection(str(home / ".tacit" / "memory.db"), flags=_READ)) as db:
            rows = db.execute("SELECT m.path, p.text FROM knowledge_meta m JOIN passages p ON p.file = m.id")
            return {str(path): str(text) for path, text in rows}
    except apsw.Error:  # it is being made
        return {}


@pytest.fixture
def follower(home: Path) -> Iterator[subprocess.Popen[str]]:
    (home / "memory-config.yaml").write_text(CONFIG)
    shutil.rmtree(home / "archive")
    process = subprocess.Popen(
        [sys.executable, "-m", "tacit", "index", "--follow"],
        env={**os.environ, "TACIT_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()  # a pipe gets each line when it is written
    assert "read" in first
    yield process
    process.kill()
    process.communicate()


def test_cli_index_follow_learns_of_every_change_until_it_is_stopped(
    home: Path, tacit: Tacit, follower: subprocess.Popen[str]
) -> None:
    note = home / "knowledge" / "reference" / "new.md"
    note.write_text("A zebra.\n")
    assert eventually(lambda: "zebra" in held(home).get("knowledge/reference/new.md", ""))
    [hit] = json.loads(tacit("search", "zebra", "--json").stdout)
    assert hit["path"] == "knowledge/reference/new.md"

    note.write_text("A camel.\n")
    assert eventually(lambda: "camel" in held(home).get("knowledge/reference/new.md", ""))
    assert json.loads(tacit("search", "zebra", "--json").stdout) == []

    deep = home / "knowledge" / "projects" / "x" / "y"
    deep.mkdir(parents=True)
    note.rename(deep / "moved.md")
    assert eventually(lambda: "knowledge/projects/x/y/moved.md" in held(home))
    assert "knowledge/reference/new.md" not in held(home)

    (home / "archive" / "reference").mkdir(parents=True)  # a folder that was not there when it began
    (home / "archive" / "reference" / "old.md").write_text("A gnu.\n")
    assert eventually(lambda: "archive/reference/old.md" in held(home))
    (home / "archive" / "reference" / "more.md").write_text("A yak.\n")
    assert eventually(lambda: "archive/reference/more.md" in held(home))

    shutil.rmtree(deep)
    assert eventually(lambda: "knowledge/projects/x/y/moved.md" not in held(home))

    follower.send_signal(signal.SIGTERM)
    _, errors = follower.communicate(timeout=PATIENCE)
    assert follower.returncode == 0
    assert errors == "Watching the files. Stop with Ctrl-C.\n"


def test_cli_index_follow_survives_the_loss_of_its_index(home: Path, follower: subprocess.Popen[str]) -> None:
    (home / ".tacit" / "memory.db").unlink()
    (home / "knowledge" / "reference" / "new.md").write_text("A zebra.\n")
    assert eventually(lambda: "knowledge/reference/new.md" in held(home))
    follower.send_signal(signal.SIGINT)
    follower.communicate(timeout=PATIENCE)
    assert follower.returncode == 0


# Without a process


class Scripted(Searcher):
    """A searcher whose updates a test decides about."""

    def __init__(self, home: Home) -> None:
        super().__init__(home, parts())
        self.updates = 0
        self.trouble = ""
        self.looked: list[Any] = []  # at which paths; None for all

    def update(self, **named: Any) -> IndexResult:
        self.updates += 1
        if self.trouble:
            raise StoreError(self.trouble)
        self.looked.append(named.get("paths"))
        return super().update(**named)


def test_trouble_is_told_and_does_not_end_the_following(home: Path) -> None:
    searcher = Scripted(Home(home))
    searcher.trouble = "The disk is full."
    stop = threading.Event()
    following = watch_home(searcher, str(home), INDEXED, stop)
    assert next(following).notes == ("The disk is full.",)
    searcher.trouble = ""
    (home / "knowledge" / "reference" / "new.md").write_text("A zebra.\n")
    assert next(following).report.read > 0
    stop.set()
    list(following)
    searcher.close()


def test_what_changed_before_the_following_began_is_not_missed(home: Path) -> None:
    """Between the first look and the first word from the operating system."""
    searcher = Scripted(Home(home))
    stop = threading.Event()
    following = watch_home(searcher, str(home), INDEXED, stop)
    next(following)
    (home / "knowledge" / "reference" / "new.md").write_text("A zebra.\n")
    assert next(following).report.read >= 1
    stop.set()
    list(following)
    searcher.close()


def test_a_home_without_folders_is_followed_quietly_until_there_are_some(home: Path) -> None:
    for folder in ("knowledge", "topics", "archive", "raw"):
        shutil.rmtree(home / folder)
    searcher = Scripted(Home(home))
    stop = threading.Event()
    following = watch_home(searcher, str(home), INDEXED, stop)
    assert next(following).report.read == 0

    def come() -> None:
        assert eventually(lambda: searcher.updates >= 2)  # it looked, found nothing, and did not say so
        (home / "knowledge").mkdir()
        (home / "knowledge" / "new.md").write_text("A zebra.\n")

    other = threading.Thread(target=come)
    other.start()
    assert next(following).report.read == 1
    other.join()
    stop.set()
    list(following)
    searcher.close()


def test_following_that_was_stopped_ends(home: Path) -> None:
    searcher = Scripted(Home(home))
    stop = threading.Event()
    following = watch_home(searcher, str(home), INDEXED, stop)
    next(following)
    stop.set()
    assert len(list(following)) <= 1
    searcher.close()


def test_who_asks_is_told_whether_the_index_can_be_relied_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.search.watcher._FULL_CHECK_S", 0.0)
    searcher, stop, told = Scripted(Home(home)), threading.Event(), list[str]()
    following = watch_home(searcher, str(home), INDEXED, stop, told.append)
    thread = threading.Thread(target=lambda: [None for _ in following], daemon=True)
    thread.start()
    assert eventually(lambda: told[-1:] == [""])
    searcher.trouble = "The disk is full."
    assert eventually(lambda: told[-1:] == ["The disk is full."])
    searcher.trouble = ""
    assert eventually(lambda: told[-1:] == [""])
    away = home.with_name("away")
    home.rename(away)
    assert eventually(lambda: told[-1:] == [f"there is no home at {home}"])
    assert not home.exists()
    away.rename(home)
    assert eventually(lambda: told[-1:] == [""])
    stop.set()
    thread.join()
    searcher.close()


def test_a_system_that_tells_of_no_changes_is_named_and_files_are_looked_at_all_the_same(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> Iterator[object]:
        return map(limit_reached, [1])

    monkeypatch.setattr("watchfiles.watch", refused)
    monkeypatch.setattr("tacit.search.watcher._POLL_S", 0.01)
    searcher, stop, told = Scripted(Home(home)), threading.Event(), list[str]()
    following = watch_home(searcher, str(home), INDEXED, stop, told.append)
    next(following)
    (home / "knowledge" / "reference" / "new.md").write_text("A zebra.\n")
    assert next(following).report.read == 1
    assert set(told) == {"changes are not told by the system: [Errno 28] OS file watch limit reached"}
    stop.set()
    list(following)
    searcher.close()


def limit_reached(_: object) -> object:
    raise OSError(28, "OS file watch limit reached")


def test_a_folder_that_another_one_took_the_place_of_is_followed(home: Path) -> None:
    searcher, stop = Scripted(Home(home)), threading.Event()
    following = watch_home(searcher, str(home), INDEXED, stop)
    next(following)
    told: list[IndexResult] = []
    thread = threading.Thread(target=lambda: told.extend(following), daemon=True)
    thread.start()
    assert eventually(lambda: searcher.updates >= 2)
    shutil.copytree(home / "knowledge", home / "copy")
    (home / "knowledge").rename(home / "old")
    (home / "copy").rename(home / "knowledge")
    assert eventually(lambda: searcher.updates >= 3)
    (home / "knowledge" / "reference" / "new.md").write_text("A zebra.\n")
    assert eventually(lambda: "knowledge/reference/new.md" in held(home))
    stop.set()
    thread.join()
    searcher.close()


def test_only_what_changed_is_looked_at_unless_somebody_made_the_index_anew(home: Path) -> None:
    searcher = Scripted(Home(home))
    stop = threading.Event()
    following = watch_home(searcher, str(home), INDEXED, stop)
    next(following)
    note = home / "knowledge" / "reference" / "new.md"
    note.write_text("A zebra.\n")
    assert next(following).report.read >= 1
    note.write_text("An okapi.\n")
    while "okapi" not in held(home).get("knowledge/reference/new.md", ""):
        next(following)
    assert searcher.looked[-1] == {"knowledge/reference/new.md"}
    for file in (home / ".tacit").glob("memory.db*"):
        file.unlink()
    with closing(Searcher(Home(home), parts())) as other:
        other.update(until=0.0)  # it had no time for more than a few
    note.write_text("A quagga.\n")
    next(following)
    assert searcher.looked[-1] is None
    stop.set()
    list(following)
    searcher.close()

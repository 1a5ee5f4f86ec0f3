"""The SQLite index through the contract of all indexes, in a file and in memory; and what only a file has."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.index.opening import memory_index, open_index, set_aside
from tacit.index.protocol import IndexBroken
from tacit.index.sqlite import SqliteIndex
from tests.index.contract import IndexContract, MakeIndex
from tests.index.samples import by_words, note, put


class TestInAFile(IndexContract):
    @pytest.fixture
    def make_index(self, tmp_path: Path) -> Iterator[MakeIndex]:
        opened: list[SqliteIndex] = []

        def make(name: str) -> SqliteIndex:
            opened.append(open_index(tmp_path / f"{name}.db"))
            return opened[-1]

        yield make
        for index in opened:
            index.close()


class TestInMemory(IndexContract):
    # It is gone when it is closed, and nobody else can open it.
    test_an_index_holds_what_it_held_when_it_is_opened_again = None  # type: ignore[assignment]
    test_two_who_have_it_open_see_each_others_changes = None  # type: ignore[assignment]
    test_vectors_of_two_embedders_never_mix = None  # type: ignore[assignment]
    test_what_others_write_meanwhile_is_seen_afterwards = None  # type: ignore[assignment]

    @pytest.fixture
    def make_index(self) -> Iterator[MakeIndex]:
        opened: list[SqliteIndex] = []

        def make(name: str) -> SqliteIndex:
            opened.append(memory_index())
            return opened[-1]

        yield make
        for index in opened:
            index.close()


def test_nobody_else_can_read_the_file(tmp_path: Path) -> None:
    index = open_index(tmp_path / "private" / "memory.db")
    put(index, note("a.md", "clay"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "private").iterdir()}
    index.close()
    assert modes == dict.fromkeys(("memory.db", "memory.db-wal", "memory.db-shm"), 0o600)
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "folder", ["a b", "100%41", "a?b#c", "ä", "a'b", os.fsdecode(b"\xff latin"), "file:x"], ids=ascii
)
def test_the_file_may_be_anywhere(tmp_path: Path, folder: str) -> None:
    index = open_index(tmp_path / folder / "memory.db")
    put(index, note("a.md", "clay"))
    index.close()
    assert os.listdir(tmp_path / folder) == ["memory.db"]
    assert os.listdir(tmp_path) == [folder]
    again = open_index(tmp_path / folder / "memory.db")
    assert by_words(again, "clay") == [("a.md", 0)]
    again.close()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    """A home that came from elsewhere must not make us write to a file of its choice."""
    for name in ("nothing", "empty", "notes"):
        target, link = tmp_path / name, tmp_path / f"{name}.db"
        if name != "nothing":
            target.write_text("" if name == "empty" else "mine")
        link.symlink_to(target)
        with pytest.raises(IndexBroken):
            open_index(link)
        assert target.exists() == (name != "nothing")
        set_aside(link)
        open_index(link).close()
        assert not link.is_symlink()
        assert not target.exists() or target.read_text() in ("", "mine")


def test_what_is_set_aside_stays_usable_for_who_has_it_open(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    old = open_index(file)
    put(old, note("old.md", "clay"))
    set_aside(file)
    new = open_index(file)
    put(new, note("new.md", "clay"))
    put(old, note("later.md", "ash"))
    assert by_words(old, "clay", "ash") == [("later.md", 0), ("old.md", 0)]
    old.close()  # which must not take the new one's files with it
    put(new, note("newer.md", "ash"))
    other = open_index(file)
    assert by_words(other, "clay", "ash") == [("new.md", 0), ("newer.md", 0)]
    for index in (new, other):
        index.close()
    assert min(os.listdir(tmp_path)) == "memory.db"


def test_the_last_one_set_aside_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    for number in range(3):
        file.write_text(f"broken {number}")
        aside = set_aside(file)
        assert aside.read_text() == f"broken {number}"
    assert os.listdir(tmp_path) == [aside.name]
    set_aside(file)  # nothing is there
    assert not file.exists()

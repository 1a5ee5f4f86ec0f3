"""The SQLite index through the contract of all indexes, in a file and in memory; and what only a file has."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from tacit.deadline import IS_ANSWERED
from tacit.search.index import MAX_NEIGHBOURS, IndexBroken, IndexTimeout
from tacit.search.model import EVERYTHING, Scope
from tacit.search.sqlite.connection import StateCache
from tacit.search.sqlite.index import SqliteIndex, open_index, open_memory_index, quarantine_index
from tests.conftest import plain_user
from tests.search.sqlite.contract import IndexContract, Interrupted, MakeIndex
from tests.search.sqlite.samples import STAMP, by_words, document, note, put


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
    test_what_others_hid_since_the_last_question_is_hidden = None  # type: ignore[assignment]

    @pytest.fixture
    def make_index(self) -> Iterator[MakeIndex]:
        opened: list[SqliteIndex] = []

        def make(name: str) -> SqliteIndex:
            opened.append(open_memory_index())
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
        quarantine_index(link)
        open_index(link).close()
        assert not link.is_symlink()
        assert not target.exists() or target.read_text() in ("", "mine")


def test_what_is_set_aside_stays_usable_for_who_has_it_open(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    old = open_index(file)
    put(old, note("old.md", "clay"))
    quarantine_index(file)
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
        aside = quarantine_index(file)
        assert aside.read_text() == f"broken {number}"
    assert os.listdir(tmp_path) == [aside.name]
    quarantine_index(file)  # nothing is there
    assert not file.exists()


# ---------------------------------------------------------------- what a scope lets through

ANYONE = Scope(audience="anyone")


@pytest.fixture
def index() -> Iterator[SqliteIndex]:
    made = open_memory_index()
    put(made, note("open.md", "clay", audience="anyone"), note("secret.md", "clay"))
    yield made
    made.close()


def _gatherings(index: SqliteIndex, ask: Callable[[], object]) -> int:
    """How often who sees what was read."""
    said: list[str] = []

    def trace(cursor: object, sql: str, bindings: object) -> bool:
        del cursor, bindings
        said.append(sql)
        return True

    index._db.handle.exec_trace = trace
    ask()
    index._db.handle.exec_trace = None
    return sum("m.audience <=" in sql for sql in said)


def _ask(index: SqliteIndex, scope: Scope = ANYONE) -> None:
    index.words.search(["clay"], scope, 10)
    index.vectors.nearest(bytes(range(8)), scope, 10)
    index.words.frequency("clay", scope)
    index.names(scope)


def test_what_a_scope_lets_through_is_read_once_for_every_state(index: SqliteIndex) -> None:
    assert _gatherings(index, lambda: _ask(index)) == 1
    assert _gatherings(index, lambda: _ask(index)) == 0
    assert _gatherings(index, lambda: _ask(index, replace(ANYONE, without=("open.md",)))) == 0
    put(index, note("new.md", "ash"))
    assert _gatherings(index, lambda: _ask(index)) == 1


def test_a_scope_that_is_asked_for_again_and_again_stays_remembered(index: SqliteIndex) -> None:
    _ask(index)
    for number in range(20):
        scope = replace(ANYONE, without=(f"{number}.md",))
        assert _gatherings(index, lambda scope=scope: _ask(index, scope)) == 0  # type: ignore[misc]


@pytest.mark.parametrize(
    "wrong",
    [
        {"audience": "zzz"}, {"audience": ["owner"]}, {"archived": "x"}, {"categories": ([],)},
        {"since": "x"}, {"under": 5}, {"without": (None,)}, {"agents": [1]},
    ],
    ids=str,
)  # fmt: skip
def test_a_scope_that_makes_no_sense_is_no_broken_index(index: SqliteIndex, wrong: dict[str, object]) -> None:
    scope = Scope(**wrong)  # type: ignore[arg-type]
    questions: list[Callable[[], object]] = [
        lambda: index.words.search(["clay"], scope, 5),
        lambda: index.vectors.nearest(bytes(8), scope, 5),
        lambda: index.names(scope),
    ]
    for ask in questions:
        with pytest.raises((TypeError, ValueError, AttributeError)):
            ask()


def test_few_scopes_are_remembered(index: SqliteIndex) -> None:
    for number in range(20):
        _ask(index, replace(ANYONE, under=f"{number}/"))
        assert len(index._db.cache.masks) <= 4
    assert _gatherings(index, lambda: _ask(index, replace(ANYONE, under="19/"))) == 0
    assert _gatherings(index, lambda: _ask(index, replace(ANYONE, under="0/"))) == 1


def test_a_question_between_two_statements_of_a_change_sees_what_is_there(index: SqliteIndex) -> None:
    assert by_words(index, "clay", scope=ANYONE) == [("open.md", 0)]
    with pytest.raises(Interrupted):
        _write_and_fail(index)
    assert by_words(index, "clay", scope=ANYONE) == [("open.md", 0)]
    assert index.words.frequency("clay", ANYONE) == 1.0


def _write_and_fail(index: SqliteIndex) -> None:
    """Numbers go over to other files, which others may see."""
    secret, new = note("secret.md", "clay", "clay"), note("new.md", "clay", "ash", audience="anyone")
    with index._db.write():
        index._remove(["open.md", "secret.md"])
        assert by_words(index, "clay", scope=ANYONE) == []
        index._insert([(secret, STAMP), (new, STAMP)])
        assert by_words(index, "clay", scope=ANYONE) == [("new.md", 0)]
        with index.unmoving():
            assert index.words.frequency("clay", ANYONE) == 0.5
        raise Interrupted


def test_nothing_changes_between_who_may_see_what_and_the_search(tmp_path: Path) -> None:
    index, other = (open_index(tmp_path / "memory.db") for _ in range(2))
    put(index, note("open.md", "clay", audience="anyone"))
    changes: list[str] = []

    def change(cursor: object, sql: str, bindings: object) -> bool:
        del cursor, bindings
        if "bm25(" in sql and not changes:
            changes.append(sql)
            put(other, note("secret.md", "ash"), gone=["open.md"])  # under the same number
        return True

    index._db.handle.exec_trace = change
    assert index.words.search(["ash"], ANYONE, 10) == []
    assert changes
    assert index.words.search(["ash"], ANYONE, 10) == []
    assert by_words(index, "ash") == [("secret.md", 0)]
    index.close()
    other.close()


def _steps(index: SqliteIndex, ask: Callable[[], object]) -> int:
    """How many hundreds of steps SQLite takes for an answer."""
    taken = count()
    index._db.handle.set_progress_handler(lambda: next(taken) < 0, 100)
    ask()
    index._db.handle.set_progress_handler(None)
    return next(taken)


@pytest.mark.parametrize("place", ["all on the first line", "each on a line of its own"])
def test_a_message_of_many_chunks_costs_no_more_than_its_neighbours(place: str) -> None:
    taken = []
    for number in (500, 2_000):
        index = open_memory_index()
        made = note("t.md", *(f"page {at}" for at in range(number))).chunks
        chunks = [
            page._replace(turn=1, speaker="Ana", first_line=1 if place.startswith("all") else page.first_line)
            for page in made
        ]
        put(index, document("t.md", chunks))
        lines = {page.first_line for page in chunks[:: number // 50]}
        ask = partial(index.around, [("t.md", line) for line in lines], 0, 1)
        taken.append(_steps(index, ask))
        found = ask()
        assert all(len(near) <= 4 * MAX_NEIGHBOURS + 2 for near in found.values())
        index.close()
    small, large = taken
    assert large < 2 * small + 20


def test_of_a_message_on_one_line_both_ends_are_given() -> None:
    index = open_memory_index()
    made = note("t.md", *(f"page {at}" for at in range(400))).chunks
    put(index, document("t.md", [page._replace(turn=1, speaker="Ana", first_line=1) for page in made]))
    near = [one.chunk.text for one in index.around([("t.md", 1)])["t.md", 1]]
    ends = [*range(MAX_NEIGHBOURS + 1), *range(400 - MAX_NEIGHBOURS - 1, 400)]
    assert near == [f"page {at}" for at in ends]
    index.close()


def test_a_question_is_given_up_when_its_time_is_over_and_the_index_goes_on() -> None:
    index = open_memory_index()
    put(index, *(note(f"{number:04}.md", "clay", "slip") for number in range(2_000)))
    for over in (time.monotonic() - 1, None):
        answered = IS_ANSWERED.set(lambda over=over: over is None)  # type: ignore[misc]
        with index.until(over), pytest.raises(IndexTimeout):
            index.words.search(["clay"], ANYONE, 10)
        IS_ANSWERED.reset(answered)
    with index.until(time.monotonic() + 600):
        assert len(index.words.search(["clay"], EVERYTHING, 10)) == 10
    index.close()


def test_what_is_written_is_given_up_as_a_whole(index: SqliteIndex) -> None:
    before = index.stamps()
    many = [note(f"{number:04}.md", *["clay and slip"] * 20) for number in range(200)]
    index._db.handle.set_progress_handler(index._db.time_limit.is_over, 50)
    with index.until(time.monotonic() - 1), pytest.raises(IndexTimeout):
        put(index, *many)
    assert index.stamps() == before
    put(index, *many)
    assert len(index.stamps()) == len(before) + 200


def test_a_question_that_is_broken_off_leaves_nothing_half_read() -> None:
    index = open_memory_index()
    open_ones = [note(f"{number:02}.md", "clay", audience="anyone") for number in range(40)]
    put(index, *open_ones, note("secret.md", "clay"))
    broken_off = 0
    for steps in range(1, 3_000, 37):
        index._db.cache = StateCache()
        index._db.handle.set_progress_handler(lambda: True, steps)
        try:
            index.words.search(["clay"], ANYONE, 100)
        except IndexTimeout:  # and not broken: it would be set aside
            broken_off += 1
        index._db.handle.set_progress_handler(None)
        assert by_words(index, "clay", scope=ANYONE) == [(one.path, 0) for one in open_ones]
    index.close()
    assert broken_off > 10


@pytest.mark.parametrize("number", [-1, 0, 2**40, 2**62])
def test_numbers_that_nobody_gave_are_found_out(index: SqliteIndex, number: int) -> None:
    index._db.execute("UPDATE passages SET id = ? WHERE id = 1", (number,))
    with pytest.raises(IndexBroken):
        index.words.search(["clay"], ANYONE, 10)


def test_numbers_below_zero_are_hidden(index: SqliteIndex) -> None:
    """Not counted from the end of those that are seen."""
    for number in range(1, 5):
        index._db.execute("INSERT INTO knowledge_fts(rowid, body) VALUES(?, 'clay')", (-number,))
        index._db.execute("INSERT INTO knowledge_vec VALUES(?, 1, x'00')", (-number,))
    index._db.execute("INSERT INTO embedded VALUES(1, x'00', ?)", (bytes(range(8)),))
    assert by_words(index, "clay", scope=ANYONE) == [("open.md", 0)]
    assert index.vectors.nearest(bytes(range(8)), ANYONE, 10) == []


def test_a_scope_hides_as_much_where_nothing_may_be_written(tmp_path: Path) -> None:
    file = tmp_path / "private" / "memory.db"
    index = open_index(file)
    put(index, note("open.md", "clay", audience="anyone"), note("secret.md", "clay"))
    index.close()
    file.chmod(0o400)
    file.parent.chmod(0o500)
    code = """
import sys
from pathlib import Path
from tacit.search.sqlite.index import open_index
from tests.search.sqlite.test_index import ANYONE, by_words
index = open_index(Path(sys.argv[1]))
print(index.writable, [by_words(index, "clay", scope=ANYONE) for _ in range(2)])
"""
    done = subprocess.run(
        plain_user(sys.executable, "-c", code, file),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    file.parent.chmod(0o700)
    assert done.stdout == "False [[('open.md', 0)], [('open.md', 0)]]\n", done.stderr

"""The index of a home follows its files, and every question is answered, whatever is in the way."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tacit.deadline import DEADLINE, IS_ANSWERED
from tacit.embeddings.endpoint import OPENAI, EmbeddingEndpoint, EmbeddingPost
from tacit.embeddings.protocol import Embedder, EmbedderError
from tacit.errors import DiskError
from tacit.home import files
from tacit.home.layout import Home
from tacit.search.index import IndexTimeout, IndexUnavailable, SearchParts
from tacit.search.model import EVERYTHING, Found
from tacit.search.searcher import Searcher
from tacit.search.sqlite.index import SQLITE
from tests.embeddings.conftest import Reply, Request, Serve, Server
from tests.search.fakes import LONG_AGO, Meaning, Reader, parts


class Watched(files.Tree):
    """Keeps which files were read. `before` may do something to a file just before it is."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.paths: list[str] = []
        self.before: Callable[[str], None] = lambda path: None

    def read(self, path: str, most: int = -1) -> bytes:
        self.paths.append(path)
        self.before(path)
        return super().read(path, most)


Make = Callable[..., Searcher]


@pytest.fixture
def make(home: Path) -> Iterator[Make]:
    made: list[Searcher] = []

    def one(embedder: Embedder | None = None, reader: Reader | None = None) -> Searcher:
        made.append(Searcher(Home(home), parts(lambda: embedder, lambda: reader)))
        return made[-1]

    yield one
    for searcher in made:
        searcher.close()


def watch(searcher: Searcher, home: Path) -> Watched:
    tree = searcher._files.tree = Watched(home)
    return tree


def put(home: Path, path: str, text: str, at: int = LONG_AGO) -> Path:
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, ns=(at, at))
    return file


def paths(found: Found) -> list[str]:
    return [hit.path for hit in found.hits]


A, B = "knowledge/reference/a.md", "knowledge/reference/b.md"


# Catching up


def test_a_new_file_is_found(home: Path, make: Make) -> None:
    searcher = make()
    assert paths(searcher.find("zebra")) == []
    put(home, A, "A zebra.\n")
    found = searcher.find("zebra")
    assert paths(found) == [A]
    assert (found.channels, found.degraded) == (("lexical",), ())


def test_an_edited_file_is_found_by_its_new_words_alone(home: Path, make: Make) -> None:
    searcher = make()
    put(home, A, "A zebra.\n")
    searcher.find("zebra")
    put(home, A, "A gnu now.\n", LONG_AGO + 1)
    assert paths(searcher.find("zebra")) == []
    assert paths(searcher.find("gnu")) == [A]


def test_a_moved_file_is_found_where_it_is(home: Path, make: Make) -> None:
    searcher = make()
    put(home, A, "A zebra.\n")
    searcher.find("zebra")
    (home / A).rename(home / B)
    assert paths(searcher.find("zebra")) == [B]


def test_a_moved_folder_is_found_where_it_is(home: Path, make: Make) -> None:
    searcher = make()
    put(home, "knowledge/projects/x/context.md", "A zebra.\n")
    searcher.find("zebra")
    (home / "archive" / "projects").mkdir(parents=True, exist_ok=True)
    (home / "knowledge/projects/x").rename(home / "archive/projects/x")
    [hit] = searcher.find("zebra").hits
    assert (hit.path, hit.archived, hit.category) == ("archive/projects/x/context.md", True, "project")


def test_a_deleted_file_is_not_found(home: Path, make: Make) -> None:
    searcher = make()
    put(home, A, "A zebra.\n")
    searcher.find("zebra")
    (home / A).unlink()
    assert paths(searcher.find("zebra")) == []
    shutil.rmtree(home / "knowledge")
    assert searcher.find("memory").degraded == ()


def test_two_files_that_change_places_are_told_apart(home: Path, make: Make) -> None:
    """Size and time are equal; only the inode says it."""
    searcher = make()
    put(home, A, "A zebra.\n")
    put(home, B, "A camel.\n")
    searcher.find("zebra")
    (home / A).rename(home / "c")
    (home / B).rename(home / A)
    (home / "c").rename(home / B)
    assert paths(searcher.find("zebra")) == [B]
    assert paths(searcher.find("camel")) == [A]


def test_a_file_that_did_not_change_is_not_read_again(home: Path, make: Make) -> None:
    for file in home.rglob("*.md"):
        os.utime(file, ns=(LONG_AGO, LONG_AGO))
    put(home, A, "A zebra.\n")
    put(home, B, "A camel.\n")
    searcher = make()
    tree = watch(searcher, home)
    searcher.find("zebra")
    assert {A, B} <= set(tree.paths)
    tree.paths.clear()
    searcher.find("zebra")
    again = make()
    rest = watch(again, home)
    again.find("zebra")
    assert tree.paths == rest.paths == []
    put(home, B, "A camel came.\n", LONG_AGO + 5)
    searcher.find("zebra")
    assert tree.paths == [B]


def test_who_knows_what_changed_has_only_that_looked_at(home: Path, make: Make) -> None:
    put(home, "knowledge/reference/a.md", "An aardvark.")
    put(home, "knowledge/reference/b.md", "A bongo.")
    searcher = make()
    searcher.update()
    put(home, "knowledge/reference/a.md", "An antelope.", LONG_AGO + 1)
    put(home, "knowledge/reference/b.md", "A bandicoot.", LONG_AGO + 1)
    tree = watch(searcher, home)
    assert searcher.update(paths=["knowledge/reference/a.md"]).report.read == 1
    assert tree.paths == ["knowledge/reference/a.md"]
    (home / "knowledge/reference/a.md").unlink()
    assert searcher.update(paths=["knowledge/reference/a.md", "knowledge/none.md"]).report.gone == 1
    assert searcher.update().report.read == 1
    assert tree.paths[1:] == ["knowledge/reference/b.md"]


def test_a_folder_among_what_changed_has_everything_looked_at(home: Path, make: Make) -> None:
    searcher = make()
    searcher.update()
    put(home, "knowledge/herd/zebra.md", "A zebra.")
    assert searcher.update(paths=["knowledge/herd"]).report.read == 1
    (home / "knowledge/herd").rename(home / "knowledge/group")
    assert searcher.update(paths=["knowledge/herd"]).report.gone == 1
    assert paths(searcher.find("zebra", catch_up=0)) == ["knowledge/group/zebra.md"]


def test_a_file_changed_twice_within_a_tick_of_the_clock_is_seen(
    home: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same size, same inode, same time. As fresh as it is, its time is not believed yet."""
    tick = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: tick + 1_000_000)
    searcher = make()
    put(home, A, "A zebra.\n", tick)
    assert paths(searcher.find("zebra")) == [A]
    with (home / A).open("r+") as file:
        file.write("A camel.\n")
    os.utime(home / A, ns=(tick, tick))
    assert paths(searcher.find("camel")) == [A]
    assert paths(searcher.find("zebra")) == []


@pytest.mark.parametrize("at", [0, -(10**9), 2**62, 4_000_000_000 * 10**9])
def test_a_time_that_makes_no_sense_is_a_time(home: Path, make: Make, at: int) -> None:
    put(home, A, "A zebra.\n")
    try:
        os.utime(home / A, ns=(at, at))
    except (OSError, OverflowError):
        pytest.skip("the file system has no such time")
    [hit] = make().find("zebra").hits
    assert len(hit.day) == 10


# Files that make trouble


def test_a_file_that_goes_between_listing_and_reading_is_passed_over(home: Path, make: Make) -> None:
    put(home, A, "A zebra.\n")
    put(home, B, "A zebra.\n")
    searcher = make()
    watch(searcher, home).before = lambda path: (home / A).unlink(missing_ok=True)
    assert paths(searcher.find("zebra")) == [B]
    assert searcher.find("zebra").degraded == ()
    assert searcher.update().report.failed == ()


def test_a_file_that_changes_between_listing_and_reading_is_read_again(home: Path, make: Make) -> None:
    put(home, A, "A zebra.\n")
    searcher = make()
    tree = watch(searcher, home)
    tree.before = lambda path: (put(home, A, "A camel.\n", LONG_AGO + 7), None)[1]
    searcher.find("zebra")
    tree.before = lambda path: None
    put(home, A, "A gnu.\n", LONG_AGO + 7)
    assert paths(searcher.find("gnu")) == [A]


def test_a_file_that_can_no_longer_be_read_is_not_found_by_its_old_text(home: Path, make: Make) -> None:
    put(home, A, "A zebra.\n")
    put(home, B, "A camel.\n")
    searcher = make()
    searcher.find("zebra")
    put(home, A, "A zebra!\n", LONG_AGO + 1)

    def refuse(path: str) -> None:
        if path == A:
            raise PermissionError(13, "Permission denied")

    watch(searcher, home).before = refuse
    assert paths(searcher.find("zebra")) == []
    assert paths(searcher.find("camel")) == [B]
    [failed] = searcher.update().report.failed
    assert failed.where == A
    assert "Permission denied" in failed.what


NAMES = [
    "new\nline.md",
    "-rf.md",
    "--help.md",
    'it\'s "quoted".md',
    "spaces  and\ttabs.md",
    "%s?#&.md",
    "ü.md",
    "u\u0308.md",
    "日本語.md",
    "\u202egpj.md",
    "a" * 252 + ".md",
    ".md",
    "~.md",
    "back\\slash.md",
    "*.md",
]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_indexed(home: Path, make: Make, name: str) -> None:
    put(home, f"knowledge/reference/{name}", "A zebra.\n")
    searcher = make()
    report = searcher.update().report
    assert report.failed == ()
    assert paths(searcher.find("zebra")) == [f"knowledge/reference/{name}"]
    (home / "knowledge" / "reference" / name).unlink()
    assert paths(searcher.find("zebra")) == []


def test_a_name_composed_and_one_decomposed_are_two_files(home: Path, make: Make) -> None:
    put(home, "knowledge/reference/ü.md", "A zebra.\n")
    put(home, "knowledge/reference/u\u0308.md", "A zebra.\n")
    if len(list((home / "knowledge/reference").glob("*.md"))) < 2:
        pytest.skip("the file system takes them for one")
    assert len(paths(make().find("zebra"))) == 2


def test_what_cannot_be_indexed_is_reported_and_harms_nothing(home: Path, make: Make, tmp_path: Path) -> None:
    reference = home / "knowledge" / "reference"
    put(home, A, "A zebra.\n")
    put(tmp_path, "secret.md", "A secret zebra.\n")
    os.link(tmp_path / "secret.md", reference / "hard.md")
    (reference / "soft.md").symlink_to(tmp_path / "secret.md")
    (reference / "folder").symlink_to(tmp_path)
    (reference / "loop").symlink_to(reference)
    (reference / "self.md").symlink_to("self.md")
    os.mkfifo(reference / "fifo.md")
    (reference / "folder.md").mkdir()
    (reference / os.fsdecode(b"\xff\xfe.md")).write_text("A zebra.\n")
    (reference / "binary.md").write_bytes(bytes(range(256)) * 40)
    (reference / "empty.md").write_bytes(b"")
    searcher = make(Meaning())
    for _ in range(2):
        failed = {os.fsencode(problem.where) for problem in searcher.update().report.failed}
        assert failed == {b"knowledge/reference/hard.md", b"knowledge/reference/\xff\xfe.md"}
        assert paths(searcher.find("zebra")) == [A]


def test_a_folder_of_the_home_that_is_a_link_leads_nowhere(home: Path, make: Make, tmp_path: Path) -> None:
    put(tmp_path, "outside/secret.md", "A zebra.\n")
    shutil.rmtree(home / "archive")
    (home / "archive").symlink_to(tmp_path / "outside")
    assert paths(make().find("zebra")) == []


# Other processes


def test_while_another_process_is_indexing_what_is_known_answers_if_it_is_all(home: Path, make: Make) -> None:
    put(home, A, "A zebra.\n")
    searcher = make()
    searcher.find("zebra")
    put(home, B, "Another zebra.\n")
    with files.hold_lock(home / ".tacit" / "index.lock"):
        found = searcher.find("zebra")
    assert sorted(paths(found)) == [A, B]
    assert found.degraded == ("another process is indexing",)
    assert found.channels == ("scan",)
    searcher.find("zebra")
    with files.hold_lock(home / ".tacit" / "index.lock"):
        found = searcher.find("zebra")
    assert sorted(paths(found)) == [A, B]
    assert found.channels == ("lexical",)


def test_while_another_process_makes_the_first_index_the_files_answer(home: Path, make: Make) -> None:
    put(home, A, "A zebra.\n")
    with files.hold_lock(home / ".tacit" / "index.lock"):
        found = make().find("zebra")
    assert paths(found) == [A]
    assert found.channels == ("scan",)
    assert found.degraded == ("another process is indexing",)


def test_an_index_that_another_process_replaced_is_opened_anew(home: Path, make: Make) -> None:
    put(home, A, "A zebra.\n")
    one, other = make(), make()
    one.find("zebra")
    other.update(rebuild=True)
    put(home, B, "Another zebra.\n")
    assert sorted(paths(one.find("zebra"))) == sorted(paths(other.find("zebra"))) == [A, B]


def test_several_threads_may_ask_while_files_change(home: Path, make: Make) -> None:
    searcher = make(Meaning())
    for number in range(10):
        put(home, f"knowledge/reference/{number}.md", f"The kiln, number {number}.\n")

    def ask(number: int) -> bool:
        if number % 4 == 0:
            put(home, f"knowledge/journal/{number}.md", f"A furnace, {number}.\n")
        return len(searcher.find("kiln", limit=20).hits) >= 10

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(40)))
    written = {f"knowledge/reference/{number}.md" for number in range(10)}
    written |= {f"knowledge/journal/{number}.md" for number in range(0, 40, 4)}
    assert written <= set(paths(searcher.find("kiln", limit=50)))


# An index that cannot be used


@pytest.mark.parametrize("damage", [b"", b"not a database", b"\0" * 100_000, os.urandom(20_000)])
def test_a_damaged_index_costs_nothing_but_its_making(home: Path, make: Make, damage: bytes) -> None:
    put(home, A, "A zebra.\n")
    before = make()
    before.update()
    before.close()
    (home / ".tacit" / "memory.db").write_bytes(damage)
    searcher = make()
    assert paths(searcher.find("zebra")) == [A]
    assert paths(searcher.find("zebra")) == [A]
    assert searcher.find("zebra").degraded == ()


def test_an_index_of_somebody_else_is_set_aside_and_kept(home: Path, make: Make) -> None:
    put(home, A, "A zebra.\n")
    db = sqlite3.connect(home / ".tacit" / "memory.db")
    db.execute("CREATE TABLE mine(x)")
    db.commit()
    db.close()
    found = make().find("zebra")
    assert paths(found) == [A]
    assert any("memory.db.aside" in note for note in found.degraded)
    kept = sqlite3.connect(home / ".tacit" / "memory.db.aside")
    assert list(kept.execute("SELECT name FROM sqlite_schema")) == [("mine",)]
    kept.close()


def test_a_damaged_index_that_cannot_be_set_aside_leaves_it_to_the_files(home: Path, make: Make) -> None:
    """On a read-only disk, where one bit of it flipped."""
    put(home, A, "A zebra.\n")
    searcher = make()
    searcher.find("zebra")
    searcher.close()
    with closing(sqlite3.connect(searcher.file)) as db:
        db.execute("UPDATE passages SET text = replace(text, 'zebra', 'zebro')")
        db.commit()

    def refuse(file: Path) -> Path:
        raise IndexUnavailable("the broken index cannot be moved away (Read-only file system)")

    refusing = Searcher(Home(home), SearchParts(lambda: SQLITE._replace(quarantine=refuse)))
    found = refusing.find("zebra")
    assert paths(found) == [A]
    assert found.channels == ("scan",)


def test_an_index_that_proves_damaged_when_vectors_are_due_is_built_anew(home: Path, make: Make) -> None:
    put(home, A, "A car.\n")
    searcher = make(Meaning())
    searcher.update()
    with closing(sqlite3.connect(searcher.file)) as db:
        db.execute("UPDATE about SET value = 'x' WHERE key = 'embedded_to'")
        db.commit()
    done = searcher.update()
    assert any("memory.db.aside" in note for note in done.notes)
    assert done.report.read
    assert done.facts
    assert done.embedded == done.facts.chunks


def test_an_index_that_proves_damaged_when_it_is_counted_is_built_anew(home: Path, make: Make) -> None:
    put(home, A, "A car.\n")
    searcher = make()
    searcher.update()
    with closing(sqlite3.connect(searcher.file)) as db:
        db.execute("DELETE FROM about WHERE key = 'embedder'")
        db.commit()
    done = searcher.update()
    assert any("memory.db.aside" in note for note in done.notes)
    assert done.facts
    assert done.facts.files == done.report.read > 0


# Neighbours


def test_a_hit_is_given_with_what_stands_around_it(home: Path, make: Make) -> None:
    said = [f"## Part {number}\n\n" + f"Clay number {number}. " * 40 for number in range(5)]
    put(home, A, "\n\n".join(said))
    searcher = make()
    hit = next(hit for hit in searcher.find('"Part 2"').hits if "Part 2" in hit.text)
    place = (hit.path, hit.lines[0])
    near = searcher.around([place, (B, 1)], before=1, after=1)
    assert near.keys() == {place}
    assert [one.chunk.text[:9] for one in near[place]] == ["## Part 1", "## Part 2", "## Part 3"]
    assert [one.chunk.text for one in searcher.around([place])[place]] == [hit.text]


def test_nothing_stands_around_a_hit_whose_index_cannot_say(home: Path, make: Make) -> None:
    put(home, A, "A zebra.\n")
    searcher = make()
    searcher.update()
    assert searcher.around([(A, 1)])
    searcher.close()
    searcher.file.write_bytes(b"no database" * 100)
    assert searcher.around([(A, 1)]) == {}
    assert paths(searcher.find("zebra")) == [A]
    assert searcher.around([(A, 1)]).keys() == {(A, 1)}


# Time that is over


@pytest.fixture
def served() -> Iterator[None]:
    """As in a daemon, which answers soon in any case."""
    mark = DEADLINE.set(time.monotonic() + 0.3)
    yield
    DEADLINE.reset(mark)


def _with_a_busy_index(searcher: Searcher, ask: Callable[[], object]) -> object:
    """What is answered while another thread has the index."""
    holds, go = threading.Event(), threading.Event()

    def hold() -> None:
        with searcher._mutex:
            holds.set()
            go.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holds.wait(60)
    try:
        return ask()
    finally:
        go.set()
        thread.join()


def test_in_a_daemon_nothing_waits_longer_for_the_index_than_its_caller_does(
    home: Path, make: Make, served: None
) -> None:
    put(home, A, "A zebra.\n")
    searcher = make()
    searcher.update()
    found = _with_a_busy_index(searcher, lambda: searcher.find("zebra"))
    assert isinstance(found, Found)
    assert found.degraded == ("deadline: the index was busy with other questions",)
    for ask in (searcher.names, searcher.generation, lambda: searcher.around([(A, 1)])):
        assert not _with_a_busy_index(searcher, ask)
    DEADLINE.set(time.monotonic() + 600)
    assert paths(searcher.find("zebra")) == [A], "and nothing is broken"


def test_who_was_answered_already_does_not_wait_for_the_index(home: Path, make: Make) -> None:
    searcher = make()
    mark = IS_ANSWERED.set(lambda: True)
    assert _with_a_busy_index(searcher, searcher.names) == ()
    IS_ANSWERED.reset(mark)


def test_a_question_whose_time_ends_in_the_index_is_given_up_and_the_index_stays(
    home: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(home, A, "A zebra.\n")
    searcher = make()
    searcher.update()

    def late(*_: object, **__: object) -> None:
        raise IndexTimeout("the question took too long and was given up")

    with monkeypatch.context() as patched:
        patched.setattr("tacit.search.searcher.find", late)
        found = searcher.find("zebra", deadline=time.monotonic() + 60)
    assert not found.hits
    assert found.degraded == ("deadline: the question took too long and was given up",)
    inode = searcher.inode()
    assert paths(searcher.find("zebra")) == [A]
    assert searcher.inode() == inode, "it was not set aside"


def test_in_a_daemon_a_question_leaves_large_files_to_the_follower(
    home: Path, make: Make, served: None
) -> None:
    DEADLINE.set(time.monotonic() + 600)
    put(home, A, "A zebra.\n")
    put(home, B, "A zebra in a book. " * 300_000)
    searcher = make()
    searcher._files.tree = watched = Watched(home)
    found = searcher.find("zebra")
    assert B not in watched.paths
    assert any("not complete yet: 1 of" in note for note in found.degraded)
    assert paths(found) == [A]
    searcher.update()
    assert B in paths(searcher.find("zebra"))


def test_without_a_daemon_the_first_question_reads_large_files(home: Path, make: Make) -> None:
    put(home, B, "A zebra in a book. " * 20_000)
    assert set(paths(make().find("zebra", catch_up=0.001))) == {B}


def test_files_are_not_looked_through_where_there_is_no_time_for_their_size(home: Path, make: Make) -> None:
    put(home, B, "A zebra in a book. " * 300_000)
    searcher = make()
    searcher._files.tree = watched = Watched(home)
    assert not searcher._may_scan(time.monotonic() + 600)
    assert not watched.paths
    assert searcher._may_scan(None), "who waits for it may"


def test_looking_through_files_ends_when_its_time_is_over(home: Path, make: Make) -> None:
    for name in (A, B):
        put(home, name, "A zebra.\n")
    searcher = make()
    searcher._files.tree = watched = Watched(home)
    mark = IS_ANSWERED.set(lambda: bool(watched.paths))
    found = searcher._scan("zebra", EVERYTHING, 10, None, None)
    IS_ANSWERED.reset(mark)
    assert found.degraded == ("deadline: there was no time to look through all files",)
    assert len(watched.paths) == 1


def test_a_lock_that_cannot_be_made_leaves_it_to_the_files(
    home: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(home, A, "A zebra.\n")

    def full(*_: object) -> None:
        raise DiskError("Could not take the home's lock: the disk is full.")

    monkeypatch.setattr(files, "hold_lock", full)
    found = make().find("zebra")
    assert paths(found) == [A]
    assert found.channels == ("scan",)
    assert any("the disk is full" in note for note in found.degraded)


def test_a_home_without_its_private_folder_gets_one(home: Path, make: Make) -> None:
    put(home, A, "A zebra.\n")
    shutil.rmtree(home / ".tacit")
    assert paths(make().find("zebra")) == [A]
    assert (home / ".tacit" / "memory.db").stat().st_mode & 0o077 == 0


def test_what_git_noted_is_forgotten_once_all_files_were_looked_at(home: Path, make: Make) -> None:
    noted = home / ".tacit" / "changed.jsonl"
    noted.write_text('{"path": "x"}\n')
    put(home, A, "A zebra.\n")
    make().find("zebra")
    assert noted.read_text() == ""


# Vectors


def test_vectors_answer_as_soon_as_there_are_some(home: Path, make: Make) -> None:
    put(home, A, "The automobile.\n")
    found = make(Meaning()).find("car")
    assert paths(found)[0] == A
    assert (found.channels, found.degraded) == (("lexical", "vector"), ())


def test_no_text_is_embedded_twice(home: Path, make: Make) -> None:
    embedder = Meaning()
    searcher = make(embedder)
    section = "The kiln needs a new door this year. " * 20
    put(home, A, f"# One\n\n{section}\n\n# Two\n\nThe cat. {section}\n")
    searcher.find("kiln")
    first = list(embedder.embedded)
    assert len(first) == len(set(first))
    searcher.find("kiln")
    (home / A).rename(home / B)
    searcher.find("kiln")
    make(embedder).find("kiln")
    put(home, "knowledge/people/copy.md", (home / B).read_text())
    searcher.find("kiln")
    assert embedder.embedded == first
    put(home, B, f"# One\n\n{section}\n\n# Two\n\nThe kitten. {section}\n", LONG_AGO + 9)
    searcher.find("kiln")
    added = embedder.embedded[len(first) :]
    assert len(added) == 1
    assert "The kitten." in added[0]


def test_a_text_without_a_vector_is_not_asked_for_again(home: Path, make: Make) -> None:
    embedder = Meaning()
    put(home, A, "Nothing that it knows.\n")
    searcher = make(embedder)
    searcher.find("car")
    asked = len(embedder.embedded)
    searcher.find("car")
    make(embedder).find("car")
    assert len(embedder.embedded) == asked


def test_another_embedder_makes_its_own_vectors_and_words_answer_meanwhile(home: Path, make: Make) -> None:
    put(home, A, "The automobile and a kiln.\n")
    make(Meaning()).find("car")
    other = Meaning(name="others/2", senses=("automobile wheels",), broken="is still loading.")
    searcher = make(other)
    found = searcher.find("automobile")
    assert paths(found) == [A]
    assert found.channels == ("lexical",)
    assert "vector: is still loading." in found.degraded
    assert "vector: there are no vectors of others/2 yet" in found.degraded
    other.broken = ""
    found = searcher.find("wheels")
    assert paths(found)[0] == A
    assert (found.channels, found.degraded) == (("lexical", "vector"), ())
    assert found.trace["embedder"] == "others/2"


def test_vectors_of_another_length_are_never_compared(home: Path, make: Make) -> None:
    put(home, A, "The automobile and a kiln.\n")
    make(Meaning()).find("car")
    shorter = Meaning(name="short/1", dimensions=8)
    assert paths(make(shorter).find("car"))[0] == A
    assert paths(make(Meaning()).find("car"))[0] == A


def test_an_embedder_that_cannot_be_had_is_named_in_every_answer(home: Path) -> None:
    def missing() -> Embedder:
        raise EmbedderError("The bundled model is missing. Run: pip install wordllama")

    put(home, A, "A zebra.\n")
    searcher = Searcher(Home(home), parts(missing))
    for _ in range(2):
        found = searcher.find("zebra")
        assert paths(found) == [A]
        assert found.degraded == ("vector: The bundled model is missing. Run: pip install wordllama",)
    searcher.close()


def test_a_reader_that_cannot_be_had_is_named_in_every_answer(home: Path) -> None:
    def missing() -> Reader:
        raise EmbedderError("search.reranker is 'x', which is no reranker.")

    put(home, A, "A zebra.\n")
    searcher = Searcher(Home(home), parts(reranker=missing))
    for _ in range(2):
        found = searcher.find("zebra")
        assert paths(found) == [A]
        assert found.degraded == ("rerank: search.reranker is 'x', which is no reranker.",)
    searcher.close()


def test_a_reader_reads_what_the_index_found(home: Path, make: Make) -> None:
    for number in range(8):
        put(home, f"knowledge/reference/{number}.md", f"The zebra, number {number}.\n")
    found = make(reader=Reader({"number 5": 9.0})).find("zebra")
    assert found.channels == ("lexical", "rerank")
    assert paths(found)[0] == "knowledge/reference/5.md"


# An embedder behind an address


def vectors(request: Request) -> Reply:
    known = Meaning(dimensions=8)
    data = []
    for text in request.json["input"]:
        vector = known.documents([text])[0]
        numbers = [float(byte) for byte in vector] if vector else [0.0] * 8
        data.append({"embedding": numbers})
    return Reply({"data": data})


def endpoint(server: Server) -> EmbeddingEndpoint:
    return EmbeddingEndpoint("http", "m", 8, OPENAI, EmbeddingPost(server.base), timeout=20.0, patience=20.0)


class Hanging:
    """Answers until it is told to hang; `gave_up`: nobody waited as long as that."""

    def __init__(self, hang: bool = False) -> None:
        self.hangs = threading.Event()
        self.let_go = threading.Event()
        self.gave_up = False
        if hang:
            self.hangs.set()

    def __call__(self, request: Request) -> Reply:
        if self.hangs.is_set() and not self.let_go.wait(4.0):
            self.gave_up = True
        return vectors(request)


def test_an_endpoint_gives_vectors(home: Path, make: Make, serve: Serve) -> None:
    put(home, A, "The automobile.\n")
    server = serve(vectors)
    found = make(endpoint(server)).find("car")
    assert paths(found)[0] == A
    assert found.channels == ("lexical", "vector")


def test_an_endpoint_that_hangs_on_the_question_leaves_it_to_the_words(
    home: Path, make: Make, serve: Serve
) -> None:
    put(home, A, "The automobile.\n")
    reply = Hanging()
    server = serve(reply)
    searcher = make(endpoint(server))
    searcher.find("car")
    reply.hangs.set()
    found = searcher.find("automobile", deadline=time.monotonic() + 0.3)
    answered_in_time = not reply.gave_up
    reply.let_go.set()
    assert answered_in_time
    assert paths(found) == [A]
    assert found.channels == ("lexical",)
    [why] = found.degraded
    assert why.startswith("vector: http://127.0.0.1:")
    assert "did not answer in time" in why


def test_an_endpoint_that_hangs_on_the_documents_holds_nobody_up(
    home: Path, make: Make, serve: Serve
) -> None:
    put(home, A, "The automobile.\n")
    reply = Hanging(hang=True)
    server = serve(reply)
    found = make(endpoint(server)).find("automobile", deadline=time.monotonic() + 1.0, catch_up=0.3)
    answered_in_time = not reply.gave_up
    reply.let_go.set()
    assert answered_in_time
    assert paths(found) == [A]
    assert found.channels == ("lexical",)
    assert any(note.startswith("vector: ") for note in found.degraded)


@pytest.mark.usefixtures("serve")
def test_an_endpoint_that_is_not_there_leaves_it_to_the_words(home: Path, make: Make) -> None:
    put(home, A, "The automobile.\n")
    with Server(vectors) as server:
        post = EmbeddingPost(server.base)
    found = make(EmbeddingEndpoint("http", "m", 8, OPENAI, post, timeout=0.2, patience=0.2)).find(
        "automobile"
    )
    assert paths(found) == [A]
    assert found.channels == ("lexical",)
    assert any("cannot be reached" in note for note in found.degraded)

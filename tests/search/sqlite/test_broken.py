"""Whatever happened to the index: every question is answered with what is in the files, no file changes, and
afterwards the index is whole again."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from tacit.home.layout import Home
from tacit.search.sqlite import connection
from tacit.search.sqlite.connection import APPLICATION_ID, SCHEMA_VERSION
from tests.conftest import plain_user
from tests.search.sqlite.homes import (
    NAMES,
    fingerprint,
    make_home,
    path_of,
    question,
    require_right,
    require_true,
    require_whole,
    searcher,
    write,
)

ASIDE = "set aside as memory.db.aside"


class Indexed(NamedTuple):
    home: Home
    file: Path
    good: bytes  # what was in it


@pytest.fixture(scope="module")
def _prepared(tmp_path_factory: pytest.TempPathFactory) -> Indexed:
    home = make_home(tmp_path_factory.mktemp("broken") / "home")
    one = searcher(home)
    one.update()
    one.close()
    file = home.private / "memory.db"
    return Indexed(home, file, file.read_bytes())


@pytest.fixture
def indexed(_prepared: Indexed) -> Iterator[Indexed]:
    """One home for all, since copied files would be other files for the index; a good index for each."""
    _clear(_prepared.file)
    _prepared.file.write_bytes(_prepared.good)
    before = fingerprint(_prepared.home.root)
    yield _prepared
    assert fingerprint(_prepared.home.root) == before


def _clear(file: Path) -> None:
    for path in file.parent.glob("memory.db*"):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def test_a_whole_index_is_used_as_it_is(indexed: Indexed) -> None:
    one = searcher(indexed.home)
    found = one.find(question(NAMES[0]))
    one.close()
    require_right(indexed.home, found, NAMES[0])
    assert (found.channels, found.degraded) == (("lexical", "vector"), ())
    assert indexed.file.read_bytes() == indexed.good


# ---------------------------------------------------------------- while nobody has it open


def _sql(sql: str) -> Callable[[Path], None]:
    def run(file: Path) -> None:
        db = apsw.Connection(str(file))
        db.execute(sql)
        db.close()

    return run


def _overwrite(start: int, data: bytes) -> Callable[[Path], None]:
    def run(file: Path) -> None:
        with file.open("r+b") as held:
            held.seek(start)
            held.write(data)

    return run


def _instead(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def run(file: Path) -> None:
        file.unlink()
        make(file)

    return run


def _beside(ending: str, data: bytes) -> Callable[[Path], None]:
    def run(file: Path) -> None:
        Path(f"{file}{ending}").write_bytes(data)

    return run


def _cut(share: float) -> Callable[[Path], None]:
    return lambda file: os.truncate(file, int(file.stat().st_size * share))


def _folder(file: Path) -> None:
    file.mkdir()
    (file / "mine.txt").write_text("mine")


_NOISE = random.Random(5).randbytes(60_000)
BROKEN: dict[str, Callable[[Path], None]] = {
    "cut in half": _cut(0.5),
    "cut short": _cut(0.9),
    "header gone": _overwrite(0, b"\0" * 100),
    "header noise": _overwrite(0, _NOISE[:100]),
    "magic gone": _overwrite(0, b"x"),
    "first page gone": _overwrite(0, b"\0" * 4096),
    "noise": _instead(lambda file: file.write_bytes(_NOISE)),
    "text": _instead(lambda file: file.write_text("# Shopping\n\n- milk\n" * 500)),
    "foreign": _instead(_sql("CREATE TABLE bookmarks(url); INSERT INTO bookmarks VALUES('x')")),
    "foreign, marked as ours": _sql(f"DROP TABLE passages; PRAGMA application_id = {APPLICATION_ID}"),
    "foreign, empty": _instead(_sql("PRAGMA application_id = 7; CREATE TABLE x(y); DROP TABLE x")),
    "older": _sql(f"PRAGMA user_version = {SCHEMA_VERSION - 1}"),
    "newer": _sql(f"PRAGMA user_version = {SCHEMA_VERSION + 1}"),
    "no words": _sql("DROP TABLE knowledge_fts"),
    "no facts": _sql("DELETE FROM about"),
    "facts under another name": _sql("UPDATE about SET key = 'embeddes' WHERE key = 'embedder'"),
    "tables of another kind": _sql(
        "PRAGMA writable_schema = on;"
        "UPDATE sqlite_schema SET sql = replace(sql, 'porter ', '') WHERE name = 'knowledge_fts'"
    ),
    "rows of another kind": _sql("UPDATE passages SET section = 'x', text = 7"),
    "text that nobody wrote": _sql("UPDATE passages SET text = text || ' and of gold'"),
    "passages of another file": _sql(
        "UPDATE passages SET file = -file;"
        "UPDATE passages SET file = (SELECT max(id) + 1 FROM knowledge_meta) + file"
    ),
    "for everybody": _sql("UPDATE knowledge_meta SET audience = 0, conversation = ''"),
    "folder": _instead(_folder),
    "link to nothing": _instead(lambda file: file.symlink_to("nowhere.db")),
    "link": _instead(lambda file: file.symlink_to("../memory-config.yaml")),
    "pipe": _instead(os.mkfifo),
}  # fmt: skip
UNHARMED: dict[str, Callable[[Path], None]] = {
    "missing": _instead(lambda file: None),
    "empty": _cut(0),
    "one byte": _instead(lambda file: file.write_bytes(b"S")),
    "facts of another kind": _sql("UPDATE about SET value = 'x' WHERE key != 'tables'"),
    "noise in the log": _beside("-wal", _NOISE),
    "noise in the map of the log": _beside("-shm", _NOISE),
    "empty log": _beside("-wal", b""),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_index_is_set_aside_and_built_anew(indexed: Indexed, how: str) -> None:
    home, file, _ = indexed
    BROKEN[how](file)
    one = searcher(home)
    answers = [one.find(question(name), catch_up=60.0) for name in NAMES[:10]]
    one.close()
    for name, found in zip(NAMES, answers, strict=False):
        require_right(home, found, name)
    told = [note for found in answers for note in found.degraded]
    assert [note for note in told if ASIDE in note] == told[:1], told
    assert os.path.lexists(f"{file}.aside")
    if how == "folder":
        assert (file.with_name("memory.db.aside") / "mine.txt").read_text() == "mine"
    require_whole(home)


@pytest.mark.parametrize("how", UNHARMED)
def test_what_does_no_harm_is_put_right_without_a_word(indexed: Indexed, how: str) -> None:
    home, file, _ = indexed
    UNHARMED[how](file)
    one = searcher(home)
    for name in NAMES[:5]:
        found = one.find(question(name), catch_up=60.0)
        require_right(home, found, name)
        assert found.degraded == ()
    one.close()
    assert not os.path.lexists(f"{file}.aside")
    require_whole(home)


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_index_can_be_brought_up_to_date(indexed: Indexed, how: str) -> None:
    BROKEN[how](indexed.file)
    one = searcher(indexed.home)
    one.update(rebuild=True)
    found = one.find(question(NAMES[1]))
    one.close()
    require_right(indexed.home, found, NAMES[1])
    assert found.degraded == ()
    require_whole(indexed.home)


def _pages_of_words(file: Path) -> set[int]:
    """From 0. What a flipped bit does to a word there cannot be told from another word."""
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    found = {number - 1 for (number,) in db.execute("SELECT pageno FROM dbstat WHERE name LIKE '%fts%'")}
    db.close()
    return found


@pytest.mark.parametrize("seed", range(6))
def test_flipped_bits_put_no_words_into_anybodys_mouth(indexed: Indexed, seed: int) -> None:
    home, file, good = indexed
    chance = random.Random(seed)
    words = _pages_of_words(file)
    for _ in range(10):
        place = chance.randrange(len(good))
        damaged = bytearray(good)
        damaged[place] ^= 1 << chance.randrange(8)
        _clear(file)
        file.write_bytes(damaged)
        one = searcher(home)
        for name in chance.sample(NAMES, 3):
            found = one.find(question(name))
            require_true(home, found)
            if place // 4096 not in words:
                require_right(home, found, name)
        one.close()


@pytest.mark.parametrize("seed", range(8))
def test_overwritten_pages_put_no_words_into_anybodys_mouth(indexed: Indexed, seed: int) -> None:
    home, file, good = indexed
    chance = random.Random(seed)
    words = _pages_of_words(file)
    pages = chance.sample(range(1, len(good) // 4096), 2)
    for page in pages:
        _overwrite(page * 4096, chance.randbytes(4096))(file)
    one = searcher(home)
    for name in NAMES[:5]:
        found = one.find(question(name))
        require_true(home, found)
        if words.isdisjoint(pages):
            require_right(home, found, name)
    one.update(rebuild=True)
    one.close()
    require_whole(home)


def test_a_log_that_was_torn_off_is_no_harm(indexed: Indexed) -> None:
    """As after a power cut: the last changes are missing, and are read again."""
    home, file, _ = indexed
    log = Path(f"{file}-wal")
    one = searcher(home)
    _note(home, "newest")
    one.update()
    held = log.read_bytes()
    copies = [file.read_bytes(), held[: len(held) // 2 + 100]]
    one.close()
    _clear(file)
    file.write_bytes(copies[0])
    log.write_bytes(copies[1])
    one = searcher(home)
    found = one.find(question("newest"))
    one.close()
    assert found.hits[0].path == path_of("newest")
    (home.root / path_of("newest")).unlink()
    require_whole(home)


def _note(home: Home, name: str) -> None:
    write(home.root / path_of(name), f"---\ntitle: New\n---\n\nThe secret of {name} is out.\n")


@pytest.fixture
def newest(indexed: Indexed) -> Iterator[str]:
    """A note that is not in the index yet, and is gone after the test."""
    _note(indexed.home, "newest")
    yield "newest"
    (indexed.home.root / path_of("newest")).unlink(missing_ok=True)


# ---------------------------------------------------------------- while somebody has it open


def _deleted(file: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        Path(f"{file}{ending}").unlink(missing_ok=True)


def _replaced(data: bytes) -> Callable[[Path], None]:
    def run(file: Path) -> None:
        other = file.with_name("other")
        other.write_bytes(data)
        other.replace(file)

    return run


def _moved(file: Path) -> None:
    file.rename(file.with_name("memory.db.elsewhere"))


WHILE_OPEN: dict[str, Callable[[Path], None]] = {
    "deleted": _deleted,
    "deleted, its log left": lambda file: file.unlink(),
    "moved": _moved,
    "replaced by text": _replaced(b"# Shopping\n"),
    "replaced by nothing": _replaced(b""),
    "replaced by a folder": BROKEN["folder"],
    "all of it deleted": lambda file: shutil.rmtree(file.parent),
}


@pytest.mark.parametrize("how", WHILE_OPEN)
@pytest.mark.parametrize("changed", [False, True], ids=["", "with changes in its log"])
def test_an_index_may_go_while_it_is_open(indexed: Indexed, how: str, changed: bool) -> None:
    home, file, _ = indexed
    private = home.private.with_name("kept")
    shutil.copytree(home.private, private, symlinks=True)
    one = searcher(home)
    require_right(home, one.find(question(NAMES[0])), NAMES[0])
    if changed:
        _note(home, "newest")
        one.update()
        (home.root / path_of("newest")).unlink()
    WHILE_OPEN[how](file)
    for name in NAMES[:4]:
        require_right(home, one.find(question(name)), name)
    one.close()
    require_whole(home)
    shutil.rmtree(home.private)
    private.rename(home.private)


def test_an_older_copy_may_be_put_in_its_place_while_it_is_open(indexed: Indexed, newest: str) -> None:
    home, file, good = indexed
    one = searcher(home)
    assert one.find(question(newest)).hits[0].path == path_of(newest)
    _replaced(good)(file)
    found = one.find(question(newest))
    assert found.hits[0].path == path_of(newest)
    require_right(home, one.find(question(NAMES[0])), NAMES[0])
    one.close()
    (home.root / path_of(newest)).unlink()
    require_whole(home)


# ---------------------------------------------------------------- in a process of its own

_CHILD = """
import json, os, resource, signal, sys
from pathlib import Path
from tests.search.fakes import parts
from tacit.search.searcher import Searcher
from tacit.home.layout import Home
from tests.search.sqlite.samples import Hashing
home, asked, before = Home(Path(sys.argv[1])), sys.argv[2], sys.argv[3]
one = Searcher(home, parts(lambda: Hashing()))
if before:
    exec(before)
found = one.find(asked)
hits = [hit.path for hit in found.hits]
print(json.dumps({"hits": hits, "channels": found.channels, "degraded": found.degraded}))
"""


def _asked(home: Home, name: str, before: str = "", *, plain: bool = False) -> Any:
    command = [sys.executable, "-c", _CHILD, str(home.root), question(name), before]
    done = subprocess.run(
        plain_user(*command) if plain else command,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    told = json.loads(done.stdout)
    assert told["hits"][0] == path_of(name)
    return told


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_file_cut_short_while_it_is_open_kills_nobody(indexed: Indexed, share: float) -> None:
    """With the file mapped into memory this would be a signal and not an error."""
    before = f"""
one.find("clay")
Path(home.root, "topics/newest.md").write_text("The newest of all.")
one.update()
os.truncate(one.file, int(one.file.stat().st_size * {share}))
one.find("pottery")
"""
    try:
        _asked(indexed.home, NAMES[2], before)
    finally:
        (indexed.home.root / path_of("newest")).unlink()
    require_whole(indexed.home)


def test_a_file_that_may_not_be_read(indexed: Indexed) -> None:
    indexed.file.chmod(0)
    told = _asked(indexed.home, NAMES[4], plain=True)
    assert told["channels"] == ["scan"]
    assert "cannot be used now" in told["degraded"][0]
    indexed.file.chmod(0o600)
    assert _asked(indexed.home, NAMES[4], plain=True)["degraded"] == []
    require_whole(indexed.home)


@pytest.mark.parametrize("which", ["file", "folder", "both"])
def test_a_file_that_may_not_be_written(indexed: Indexed, which: str) -> None:
    home, file, good = indexed
    _read_only(file, which)
    try:
        told = _asked(home, NAMES[5], plain=True)
        assert told["channels"] == ["lexical", "vector"]
        assert told["degraded"] == ["the index is read-only"]
        _note(home, "newest")
        told = _asked(home, "newest", plain=True)
        assert told["channels"] == ["scan"]
        assert "the index is read-only and not up to date" in told["degraded"]
    finally:
        _writable(file)
        (home.root / path_of("newest")).unlink(missing_ok=True)
    assert file.read_bytes() == good
    require_whole(home)


def _read_only(file: Path, which: str) -> None:
    if which != "folder":
        file.chmod(0o400)
    if which != "file":
        file.parent.chmod(0o500)


def _writable(file: Path) -> None:
    file.parent.chmod(0o700)
    if file.exists():
        file.chmod(0o600)


@pytest.mark.parametrize(
    ("how", "which"),
    [
        *((how, "folder") for how in ("text", "cut in half", "older", "missing", "no words")),
        ("text that nobody wrote", "both"),  # found out late
    ],
)
def test_a_broken_file_that_cannot_be_moved_away(indexed: Indexed, how: str, which: str) -> None:
    (BROKEN | UNHARMED)[how](indexed.file)
    _read_only(indexed.file, which)
    try:
        told = _asked(indexed.home, NAMES[6], plain=True)
    finally:
        _writable(indexed.file)
    assert told["channels"] == ["scan"]
    assert told["degraded"]
    _asked(indexed.home, NAMES[6])  # may be the first to find out
    require_whole(indexed.home)


def test_a_full_disk(indexed: Indexed) -> None:
    _deleted(indexed.file)
    before = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
"""
    told = _asked(indexed.home, NAMES[7], before)
    assert told["channels"] == ["scan"]
    assert "cannot be used now" in told["degraded"][0]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    require_whole(indexed.home)


def test_somebody_who_never_lets_go_of_it(indexed: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    home, file, _ = indexed
    monkeypatch.setattr(connection, "_LOCK_TIMEOUT_MS", 20)
    one = searcher(home)
    one.find(question(NAMES[0]))
    holder = apsw.Connection(str(file))
    holder.execute("BEGIN IMMEDIATE")
    try:
        require_right(home, one.find(question(NAMES[1])), NAMES[1])  # reading needs nobody's leave
        _note(home, "newest")
        found = one.find(question("newest"))
        assert found.hits[0].path == path_of("newest")
        assert found.channels == ("scan",)
        other = searcher(home)
        require_right(home, other.find(question(NAMES[2])), NAMES[2])
        other.close()
    finally:
        holder.close()
        (home.root / path_of("newest")).unlink()
    one.close()
    require_whole(home)

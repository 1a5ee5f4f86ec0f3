"""An index that grew change by change is the same as one that was built at once, row by row.

These tests look inside the SQLite index; numbers of rows are the only thing that may differ.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import pytest

from tacit.home.listing import Stamp
from tacit.search.home_index import embed_chunks, update_index
from tacit.search.hybrid import Engine, find
from tacit.search.model import EVERYTHING, Scope, Scored
from tacit.search.scoring import Calibration
from tacit.search.sqlite import queries
from tacit.search.sqlite.index import SqliteIndex, open_index, open_memory_index
from tests.search.sqlite.inside import inside, left_behind, rows, where_of
from tests.search.sqlite.samples import Hashing, Place

WORDS = (
    "kiln", "clay", "ash", "slip", "glaze", "fire", "fired", "firing", "cone", "wheel", "shelf", "night",
    "jar", "relay", "Ana", "Deniz", "tax", "order", "parcel", "café", "Straße", "C++", "#34", "--force",
    "窯の温度", "getUserName", "on", "Tuesday", "the", "and", "12345", "99",
)  # fmt: skip
HEADINGS = ("Notes", "Open", "Done", "Night jar", "Ton und Asche")
FOLDERS = (
    "knowledge/people", "knowledge/projects/kilnlog", "knowledge/journal", "topics", "archive/topics",
    "knowledge/reference", "raw/conversations/2026/01/02",
)  # fmt: skip
SCOPES = (
    EVERYTHING,
    Scope(audience="group"),
    Scope(archived=False, categories=("topic", "conversation")),
    Scope(under="knowledge/"),
)


@dataclass
class Home:
    """Files as they might be on a disk, and somebody who keeps changing them."""

    chance: random.Random
    files: dict[str, str] = field(default_factory=dict)
    stamps: dict[str, Stamp] = field(default_factory=dict)
    clock: int = 1_700_000_000_000_000_000

    def change(self) -> None:
        kind = self.chance.choice(("add", "add", "edit", "edit", "edit", "remove", "move", "copy", "touch"))
        if kind == "add" or not self.files:
            self._write(self._new_path(), "")
            return
        path = self.chance.choice(sorted(self.files))
        if kind == "edit":
            self._write(path, self.files[path])
        elif kind == "touch":
            self._keep(path, self.files[path])
        elif kind == "copy":
            self._keep(self._new_path(), self.files[path])
        else:
            text = self.files.pop(path)
            stamp = self.stamps.pop(path)
            if kind == "move":
                there = self._new_path()
                self.files[there], self.stamps[there] = text, stamp

    def _new_path(self) -> str:
        return (
            f"{self.chance.choice(FOLDERS)}/{self.chance.choice(WORDS).lower()}-{self.chance.randrange(9)}.md"
        )

    def _write(self, path: str, old: str) -> None:
        parts = (old or self._head(path)).split("\n\n")
        for _ in range(self.chance.randint(1, 4)):
            parts.insert(self.chance.randint(1, len(parts)), self._paragraph(path))
        if len(parts) > 6 and self.chance.random() < 0.5:
            del parts[self.chance.randrange(1, len(parts))]
        self._keep(path, "\n\n".join(parts))

    def _keep(self, path: str, text: str) -> None:
        self.clock += 1
        self.files[path] = text
        self.stamps[path] = Stamp(self.clock, len(text.encode()), self.clock % 1000)

    def _head(self, path: str) -> str:
        fields = [f"title: {self.chance.choice(HEADINGS)}", f"tags: [{self.chance.choice(HEADINGS)}]"]
        if "conversations" in path:
            fields = ["session_id: s1", "started: 2026-01-02T10:00:00Z", "session_key: agent:main:main"]
        return "---\n" + "\n".join(self.chance.sample(fields, len(fields))) + "\n---"

    def _paragraph(self, path: str) -> str:
        text = " ".join(self.chance.choices(WORDS, k=self.chance.choice((1, 3, 8, 60, 250))))
        if "conversations" in path:
            return f"## 10:{self.chance.randrange(60):02} — {self.chance.choice(('user', 'agent'))}\n{text}"
        return f"## {self.chance.choice(HEADINGS)}\n\n{text}" if self.chance.random() < 0.5 else text

    def read(self, path: str) -> bytes:
        return self.files[path].encode()


def grow(index: SqliteIndex, home: Home, embedder: Hashing, steps: int) -> None:
    for _ in range(steps):
        for _ in range(home.chance.randint(1, 4)):
            home.change()
        update_index(index, home.stamps, home.read)
        if home.chance.random() < 0.5:
            embed_chunks(index, embedder)
        if home.chance.random() < 0.05:
            embed_chunks(index, Hashing("another", 32))
    embed_chunks(index, embedder)


def built(home: Home, embedder: Hashing) -> SqliteIndex:
    index = open_memory_index()
    update_index(index, home.stamps, home.read)
    embed_chunks(index, embedder)
    return index


# ---------------------------------------------------------------- what it answers


def answers(index: SqliteIndex, embedder: Hashing) -> dict[Any, Any]:
    where = where_of(index)

    def placed(found: list[Scored]) -> list[tuple[Place, float]]:
        return [(where[one.id], one.score) for one in found]

    told: dict[Any, Any] = {"names": index.names(), "facts": index.stats()._replace(generation=0)}
    told["background"] = index.vectors.sample_cosines()
    for word in (*WORDS, "night jar", "fired clay"):
        told["frequency", word] = index.words.frequency(word)
    for at, scope in enumerate(SCOPES):
        for limit in (1, 5, 30, 1000):
            for terms in (*((word,) for word in WORDS), ("kiln", "night jar", "ana"), ("the", "and", "on")):
                told["words", at, limit, terms] = placed(index.words.search(terms, scope, limit))
            for asked in ("clay and ash", "night", "firing the kiln on Tuesday"):
                sought = embedder.query(asked)
                assert sought is not None
                told["near", at, limit, asked] = placed(index.vectors.nearest(sought, scope, limit))
    return told


def hits(index: SqliteIndex, embedder: Hashing, question: str) -> list[tuple[Any, ...]]:
    engine = Engine(index, embedder, Calibration(words=1.0, meaning=1.0))
    found = find(engine, question, limit=8).hits
    return [(hit.path, hit.lines, hit.text, hit.snippet, hit.score, round(hit.why.score, 9)) for hit in found]


@pytest.mark.parametrize("seed", range(8))
def test_a_grown_index_is_the_same_as_a_fresh_one(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 2:
        monkeypatch.setattr(queries, "MIN_RESCORED", 12)  # as if there were very many chunks
    home = Home(random.Random(seed))
    embedder = Hashing()
    grown = open_index(tmp_path / "memory.db")
    grow(grown, home, embedder, steps=30)
    fresh = built(home, embedder)
    assert fresh.stats().chunks > 40
    expected = inside(fresh)
    for name, found in inside(grown).items():
        assert found == expected[name], name
    assert left_behind(grown) == []
    assert answers(grown, embedder) == answers(fresh, embedder)
    for question in ("When do we fire the kiln?", "night jar", "C++ and #34", "Ana", "the", "窯の温度"):
        assert hits(grown, embedder, question) == hits(fresh, embedder, question)
    grown.close()
    fresh.close()


def test_a_grown_index_passes_the_checks_of_the_database(tmp_path: Path) -> None:
    home = Home(random.Random(99))
    grown = open_index(tmp_path / "memory.db")
    grow(grown, home, Hashing(), steps=40)
    grown._db.handle.execute("INSERT INTO knowledge_fts(knowledge_fts) VALUES('integrity-check')")
    assert list(rows(grown, "PRAGMA integrity_check")) == [("ok",)]
    grown.close()


def test_an_embedder_reads_each_text_once(tmp_path: Path) -> None:
    home = Home(random.Random(7))
    embedder = Hashing()
    index = open_index(tmp_path / "memory.db")
    for _ in range(30):
        home.change()
        update_index(index, home.stamps, home.read)
        embed_chunks(index, embedder)
    assert len(embedder.texts) == len(set(embedder.texts))
    index.close()


def test_the_search_for_what_lacks_a_vector_is_not_repeated(tmp_path: Path) -> None:
    """It looks at chunks one by one, so it is done once for each change."""
    home = Home(random.Random(3))
    home.change()
    index = open_index(tmp_path / "memory.db")
    update_index(index, home.stamps, home.read)
    embed_chunks(index, Hashing())
    looked: list[str] = []
    index._db.handle.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: looked.append(event["sql"]))
    assert index.vectors.list_unembedded(10) == []
    index._db.handle.trace_v2(0)
    assert looked
    assert not [sql for sql in looked if "digest" in sql]
    index.close()


# ---------------------------------------------------------------- within a time


class Slow(Hashing):
    """Takes a fixed time for each text, by a clock that stands still otherwise."""

    def __init__(self, seconds_per_text: float) -> None:
        super().__init__()
        self.seconds_per_text, self.now = seconds_per_text, 1000.0

    def documents(self, texts: Sequence[str], seconds: float | None = None) -> list[bytes | None]:
        self.now += self.seconds_per_text * len(texts)
        return super().documents(texts, seconds)


@pytest.mark.parametrize(("seconds_per_text", "most"), [(0.01, 25), (0.001, 250), (0.1, 16)])
def test_texts_are_embedded_only_as_long_as_there_is_time(
    monkeypatch: pytest.MonkeyPatch, seconds_per_text: float, most: int
) -> None:
    home, embedder = Home(random.Random(1)), Slow(seconds_per_text)
    for number in range(400):
        home._keep(f"knowledge/reference/{number}.md", f"# Note {number}\n\nThe kiln has shelf {number}.\n")
    index = open_memory_index()
    update_index(index, home.stamps, home.read)
    monkeypatch.setattr("tacit.search.home_index.time.monotonic", lambda: embedder.now)
    done = embed_chunks(index, embedder, until=embedder.now + 0.25)
    assert done == len(embedder.texts)
    assert most * 0.6 <= done <= most * 1.02
    assert embed_chunks(index, embedder) == 400 - done  # the rest, with all the time in the world

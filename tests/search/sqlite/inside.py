"""What a SQLite index holds, row by row and without the numbers of the rows: equal for equal files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tacit.search.sqlite.index import SqliteIndex
from tests.search.sqlite.samples import Place


def rows(index: SqliteIndex, sql: str) -> Iterator[tuple[Any, ...]]:
    yield from index._db.execute(sql)


def columns(index: SqliteIndex, table: str) -> str:
    names = [row[1] for row in rows(index, f"PRAGMA table_info({table})")]
    return ", ".join(f"{table}.{name}" for name in names if name not in ("id", "file"))


def inside(index: SqliteIndex) -> dict[str, list[tuple[Any, ...]]]:
    place = "knowledge_meta.path, passages.position"
    joined = "passages JOIN knowledge_meta ON knowledge_meta.id = passages.file"
    selects = {
        "files": f"SELECT {columns(index, 'knowledge_meta')} FROM knowledge_meta",
        "passages": f"SELECT {place}, {columns(index, 'passages')} FROM {joined}",
        "signs": f"SELECT {place}, v.signs FROM {joined} JOIN knowledge_vec v USING(id)",
        "vectors": f"SELECT {place}, e.vector FROM {joined} JOIN embedded e USING(digest)",
    }
    found = {name: sorted(rows(index, sql)) for name, sql in selects.items()}
    return found | {"words": sorted(words_of(index))}


def words_of(index: SqliteIndex) -> Iterator[tuple[Any, ...]]:
    """Every word of the words table with where it stands: its chunk, its column and its place there."""
    index._db.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.instances USING fts5vocab(main, knowledge_fts, instance)"
    )
    where = where_of(index)
    for term, document, column, offset in rows(index, "SELECT term, doc, col, offset FROM temp.instances"):
        yield *where[document], term, column, offset  # of a chunk that is there: nothing is left behind


def where_of(index: SqliteIndex) -> dict[int, Place]:
    sql = "SELECT p.id, m.path, p.position FROM passages p JOIN knowledge_meta m ON m.id = p.file"
    return {number: (path, position) for number, path, position in rows(index, sql)}


def left_behind(index: SqliteIndex) -> list[tuple[Any, ...]]:
    return [
        *rows(index, "SELECT id FROM knowledge_vec WHERE id NOT IN (SELECT id FROM passages)"),
        *rows(index, "SELECT id FROM knowledge_vec WHERE vector NOT IN (SELECT id FROM embedded)"),
        *rows(index, "SELECT id FROM passages WHERE file NOT IN (SELECT id FROM knowledge_meta)"),
    ]

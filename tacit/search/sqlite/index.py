"""The index in one SQLite file: what is written to it, and what is read back.

An index is never repaired: it is rebuilt from the files in seconds. A broken file is kept under another name,
until the next one breaks, so that it can be examined.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tacit.home.listing import Stamp
from tacit.home.workspace_files import project_of, split_workspace_path
from tacit.privacy.audience import AUDIENCES
from tacit.search.documents import embedded_text
from tacit.search.index import (
    MAX_NEIGHBOURS,
    ChunkLocation,
    IndexBackend,
    IndexBroken,
    IndexStats,
    IndexUnavailable,
    StoredChunk,
)
from tacit.search.model import EVERYTHING, Chunk, Document, Scope
from tacit.search.sqlite.connection import (
    FILES_CTE,
    SqliteConnection,
    checksum,
    encode_agent,
    encode_exact,
    paths_json,
    placeholders,
    to_utf8,
    translate_read_errors,
)
from tacit.search.sqlite.queries import SqliteLinks, SqliteVectors, SqliteWords
from tacit.text.words import prepare_document

_SEPARATOR = "\n\ue000\n"  # a private-use character: phrases must not match across two chunks
_SUFFIXES = ("", "-wal", "-shm")
_LOCK_TIMEOUT_S = 5.0

# The first and the last of the chunks that begin on the line of a place.
_FIRST_ON_LINE, _LAST_ON_LINE = (
    "SELECT id FROM passages WHERE file = m.id AND first_line = place.line"
    f" ORDER BY record {order}, position {order} LIMIT 1"
    for order in ("ASC", "DESC")
)


class SqliteIndex:
    """One connection. Use it from one thread at a time."""

    def __init__(self, file: Path) -> None:
        self._db = SqliteConnection(file)
        self.writable = self._db.writable
        self.words, self.vectors, self.links = (
            SqliteWords(self._db), SqliteVectors(self._db), SqliteLinks(self._db)
        )  # fmt: skip
        self.until, self.unmoving, self.close = self._db.until, self._db.unmoving, self._db.close

    # ------------------------------------------------------------ writing

    def stamps(self) -> dict[str, Stamp]:
        with translate_read_errors():
            rows = self._db.execute("SELECT path, mtime_ns, size, inode FROM knowledge_meta")
            return {path: _read_stamp(*stamp) for path, *stamp in rows}

    def replace(self, documents: Sequence[tuple[Document, Stamp]], gone: Collection[str] = ()) -> None:
        with self._db.write():
            latest = {document.path: (document, stamp) for document, stamp in documents}
            self._remove({*gone, *latest})
            self._insert(latest.values())

    def _remove(self, paths: Iterable[str]) -> None:
        for path in sorted(paths):
            file = self._db.value("SELECT id FROM knowledge_meta WHERE path = ?", path)
            if file is not None:
                id_rows = [
                    (row[0],) for row in self._db.execute("SELECT id FROM passages WHERE file = ?", (file,))
                ]
                self._db.executemany("DELETE FROM knowledge_fts WHERE rowid = ?", id_rows)
                self._db.executemany("DELETE FROM knowledge_vec WHERE id = ?", id_rows)
                self._db.execute("DELETE FROM passages WHERE file = ?", (file,))
                self._db.execute("DELETE FROM links WHERE file = ?", (file,))
                self._db.execute("DELETE FROM called WHERE file = ?", (file,))
                self._db.execute("DELETE FROM knowledge_meta WHERE id = ?", (file,))

    def _insert(self, documents: Iterable[tuple[Document, Stamp]]) -> None:
        file = (self._db.value("SELECT max(id) FROM knowledge_meta") or 0) + 1
        first = (self._db.value("SELECT max(id) FROM passages") or 0) + 1
        # The ids of removed chunks are reused, and those chunks have no vector yet.
        self._db.execute("UPDATE about SET value = min(value, ?) WHERE key = 'embedded_to'", (first - 1,))
        metas: list[Any] = []
        chunks: list[Any] = []
        words: list[Any] = []
        links: list[Any] = []
        names: list[Any] = []
        for number, (document, stamp) in enumerate(documents, file):
            ids = range(first, first + len(document.chunks))
            metas.append(_meta_row(number, document, stamp))
            chunks += _chunk_rows(ids, number, document)
            words += _word_rows(ids, document)
            links += [
                (to_utf8(target), number, to_utf8(written), line) for target, written, line in document.links
            ]
            names += [(to_utf8(name), number) for name in document.names]
            first = ids.stop
        self._db.executemany(f"INSERT INTO knowledge_meta VALUES({placeholders(15)})", metas)
        self._db.executemany(f"INSERT INTO passages VALUES({placeholders(13)})", chunks)
        self._db.executemany("INSERT OR IGNORE INTO links VALUES(?, ?, ?, ?)", links)
        self._db.executemany("INSERT OR IGNORE INTO called VALUES(?, ?)", names)
        self._db.executemany(
            f"INSERT INTO knowledge_fts(rowid, body, before, after, heading) VALUES({placeholders(5)})",
            words,
        )
        if self._db.has_vectors:  # moved and re-read chunks already have one
            self._db.execute(
                "INSERT INTO knowledge_vec SELECT p.id, e.id, vec_quantize_binary(vec_int8(e.vector))"
                " FROM passages p JOIN embedded e USING(digest) WHERE p.file >= ? AND e.vector IS NOT NULL",
                (file,),
            )

    # ------------------------------------------------------------ reading

    def read_chunks(self, ids: Collection[int]) -> dict[int, StoredChunk]:
        sql = (
            "SELECT p.id, p.checksum, p.first_line, p.last_line, p.section, p.day, p.speaker, p.turn, p.text,"
            " m.path, m.category, m.audience, m.agents, m.conversation, m.archived, m.title, m.checksum"
            " FROM passages p JOIN knowledge_meta m ON m.id = p.file"
            f" WHERE p.id IN ({placeholders(len(ids))})"
        )
        with translate_read_errors():
            rows = self._db.execute(sql, tuple(ids)).fetchall()
            _verify_files({row[9:] for row in rows})
            return {row[0]: _parse_row(row) for row in rows}

    def windows(self, ids: Collection[int]) -> dict[int, str]:
        sql = (
            "SELECT p.id, near.speaker, near.text FROM passages p JOIN passages near ON near.file = p.file"
            " AND near.position BETWEEN p.position - 2 AND p.position + 1"
            f" WHERE p.id IN ({placeholders(len(ids))}) AND p.speaker != '' ORDER BY p.id, near.position"
        )
        lines_by_id: dict[int, list[str]] = {}
        with translate_read_errors():
            for number, speaker, text in self._db.execute(sql, tuple(ids)):
                lines_by_id.setdefault(number, []).append(f"{speaker}: {text}")
        return {number: " ".join(lines) for number, lines in lines_by_id.items()}

    def around(
        self, places: Collection[ChunkLocation], before: int = 0, after: int = 0
    ) -> dict[ChunkLocation, list[StoredChunk]]:
        # Only neighbours of the first and the last chunk on the line: a message of megabytes on one line
        # is thousands of chunks, and each with its neighbours would be the square of that. "+" turns off
        # the index on record: few chunks are close by position, but all of the message by record.
        sql = (
            "WITH place(path, line) AS (SELECT value ->> 0, value ->> 1 FROM json_each(?1)),"
            " ends(path, line, first, last) AS MATERIALIZED (SELECT place.path, place.line,"
            f" ({_FIRST_ON_LINE}), ({_LAST_ON_LINE})"
            " FROM place CROSS JOIN knowledge_meta m ON m.path = place.path)"
            " SELECT DISTINCT ends.path, ends.line, near.position, near.id FROM ends"
            " CROSS JOIN passages first ON first.id = ends.first"
            " CROSS JOIN passages last ON last.id = ends.last"
            " CROSS JOIN passages p ON p.id IN (first.id, last.id)"
            " CROSS JOIN passages near ON near.file = p.file"
            " AND near.position BETWEEN p.position - ?4 AND p.position + ?4"
            " AND +near.record BETWEEN first.record - ?2 AND last.record + ?3"
            " ORDER BY ends.path, ends.line, near.position"
        )
        ids_by_place: dict[ChunkLocation, list[int]] = {}
        with translate_read_errors():
            wanted_places = json.dumps([place for place in places if to_utf8(place[0]) == place[0]])
            reach = (max(0, before), max(0, after), MAX_NEIGHBOURS)
            for path, line, _, number in self._db.execute(sql, (wanted_places, *reach)):
                ids_by_place.setdefault((path, line), []).append(number)
            stored = self.read_chunks({number for numbers in ids_by_place.values() for number in numbers})
        return {place: [stored[number] for number in numbers] for place, numbers in ids_by_place.items()}

    def names(self, scope: Scope = EVERYTHING) -> tuple[str, ...]:
        with self._db.reading(scope):
            names = self._db.cache.names
            if scope not in names:
                clause, bindings = self._db.file_clause(scope, "m.id")
                sql = (
                    "SELECT m.path, m.title FROM knowledge_meta m"
                    f" WHERE m.category IN ('person', 'project') {clause} ORDER BY m.path"
                )
                rows = self._db.execute(sql, bindings)
                names[scope] = tuple(
                    dict.fromkeys(name for path, title in rows for name in _display_names(title, path))
                )
            return names[scope]

    def chunks_of(self, paths: Collection[str], scope: Scope, most: int) -> dict[str, list[int]]:
        with self._db.reading(scope):
            clause, bindings = self._db.scope_clause(scope, "+p.id")
            sql = (
                f"{FILES_CTE} SELECT wanted.path, p.id FROM wanted CROSS JOIN passages p"
                f" ON p.file = wanted.file WHERE p.position < ? {clause} ORDER BY wanted.path, p.position"
            )
            ids_by_path: dict[str, list[int]] = {}
            for path, number in self._db.execute(sql, (paths_json(paths), most, *bindings)):
                ids_by_path.setdefault(path, []).append(number)
            return ids_by_path

    def notes(self, scope: Scope = EVERYTHING) -> list[str]:
        with self._db.reading(scope):
            clause, bindings = self._db.file_clause(scope, "m.id")
            sql = f"SELECT path FROM knowledge_meta m WHERE category != 'conversation' {clause} ORDER BY path"
            return [path for (path,) in self._db.execute(sql, bindings)]

    def stats(self) -> IndexStats:
        with translate_read_errors():
            about = dict(self._db.execute("SELECT key, value FROM about"))
            files, chunks, embedded = (
                self._db.value(f"SELECT count(*) FROM {table}")
                for table in ("knowledge_meta", "passages", "knowledge_vec")
            )
            return IndexStats(files, chunks, embedded, about["generation"], about["embedder"])

    def generation(self) -> int:
        with translate_read_errors():
            return self._db.about("generation")  # type: ignore[no-any-return]


# ---------------------------------------------------------------- rows


def _meta_row(number: int, document: Document, stamp: Stamp) -> tuple[Any, ...]:
    fields = _file_fields(document)
    tags = json.dumps(document.tags, ensure_ascii=False)
    path, category, audience, agents, conversation, archived, title = fields
    return (
        number, path, category, to_utf8(document.day), title, to_utf8(tags),
        document.lines, audience, agents, conversation, archived, *map(_to_signed, stamp), checksum(fields),
    )  # fmt: skip


def _to_signed(number: int) -> int:
    """The database has signed 64-bit integers. Some file systems use all 64 bits for an inode, and a time may
    be in the year 2300."""
    return number - 2**64 if number >= 2**63 else number


def _read_stamp(mtime_ns: int, size: int, inode: int) -> Stamp:
    return Stamp(
        mtime_ns + 2**64 if mtime_ns < -(2**62) else mtime_ns,
        size,
        inode + 2**64 if inode < -1 else inode,
    )


def _file_fields(document: Document) -> tuple[str, str, int, str, str, int, str]:
    """The fields that decide who sees a file, and those that are displayed."""
    return (
        document.path,
        document.category,
        AUDIENCES.index(document.audience),
        "".join(map(encode_agent, document.agents)),
        encode_exact(document.conversation),
        int(document.archived),
        to_utf8(document.title),
    )


def _chunk_rows(ids: range, file: int, document: Document) -> Iterator[tuple[Any, ...]]:
    title = to_utf8(document.title)
    record, turn = -1, 0
    for position, (number, chunk) in enumerate(zip(ids, document.chunks, strict=True)):
        record += not chunk.turn or chunk.turn != turn  # a long message is several chunks
        turn = chunk.turn
        text, speaker = to_utf8(chunk.text), to_utf8(chunk.speaker)
        section = tuple(map(to_utf8, chunk.section))
        headings = json.dumps(section, ensure_ascii=False) if section else "[]"
        lines = (chunk.first_line, chunk.last_line)
        visible = (*lines, headings, to_utf8(chunk.day), speaker, chunk.turn, text)
        digest = _digest(title, section, speaker, text)
        yield number, file, position, record, digest, *visible, checksum((document.path, *visible))


def _digest(title: str, section: Sequence[str], speaker: str, text: str) -> bytes:
    return blake2b(embedded_text(title, section, speaker, text).encode(), digest_size=16).digest()


def _word_rows(ids: range, document: Document) -> Iterator[tuple[int, str, str, str, str]]:
    chunks = document.chunks
    texts = [prepare_document(chunk.text) for chunk in chunks]
    for position, (number, chunk) in enumerate(zip(ids, chunks, strict=True)):
        first, last = chunk.near
        before = _SEPARATOR.join(texts[first:position])
        after = _SEPARATOR.join(texts[position + 1 : last])
        yield number, _body(chunk, texts[position]), before, after, _heading(document, chunk)


def _body(chunk: Chunk, text: str) -> str:
    """People ask what a person said on a day, so a turn is indexed with both."""
    if not chunk.speaker:
        return text
    return f"{_format_day(chunk.day)} {prepare_document(chunk.speaker)}: {text}"


def _format_day(day: str) -> str:
    try:
        return f"{date.fromisoformat(day):%d %B %Y}"
    except ValueError:
        return ""


def _heading(document: Document, chunk: Chunk) -> str:
    if chunk.speaker:
        return ""
    name = _without_suffix(document.path.rpartition("/")[2])
    above = (document.title, *chunk.section, name, *document.tags)
    return prepare_document(_SEPARATOR.join(dict.fromkeys(above)))


def _without_suffix(name: str) -> str:
    """The name without its extension, if it has one."""
    return name.rpartition(".")[0] or name


def _verify_files(files: Iterable[tuple[Any, ...]]) -> None:
    """Check rows against their checksums: a flipped bit must not attribute words to the wrong person, nor
    show a file to the wrong reader."""
    for *fields, stored_checksum in files:
        if checksum(tuple(fields)) != stored_checksum:
            raise IndexBroken("the index holds a file that was not written by tacit")


def _parse_row(row: tuple[Any, ...]) -> StoredChunk:
    number, stored_checksum, first, last, section, day, speaker, turn, text = row[:9]
    path, category, audience, _, _, archived, title, _ = row[9:]
    if checksum((path, first, last, section, day, speaker, turn, text)) != stored_checksum:
        raise IndexBroken("the index holds text that was not written by tacit")
    chunk = Chunk(text, first, last, _parse_headings(section), day, speaker, turn, (0, 0))
    return StoredChunk(number, path, title, category, AUDIENCES[audience], bool(archived), chunk)


@lru_cache(maxsize=1024)
def _parse_headings(section: str) -> tuple[str, ...]:
    return tuple(json.loads(section))


def _display_names(title: str, path: str) -> list[str]:
    """What people call it: the title of the file, and the folder of a project or the name of the file."""
    parts = path.split("/")
    name = (
        parts[-2] if path.startswith("knowledge/projects/") and len(parts) > 3 else _without_suffix(parts[-1])
    )
    name = project_of(split_workspace_path(path)[1]) or name
    return [label for label in (title, name.replace("-", " ").replace("_", " ").strip()) if len(label) > 1]


# ---------------------------------------------------------------- files


def open_index(file: Path) -> SqliteIndex:
    """Open the index, or make an empty one. Raises IndexBroken or IndexUnavailable."""
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        with _lock(file.parent, fcntl.LOCK_SH):
            if os.path.lexists(file):
                return _open(file)
        with _lock(file.parent, fcntl.LOCK_EX):
            if not os.path.lexists(file):
                _create(file)
            return _open(file)
    except OSError as error:
        raise IndexUnavailable(f"the index cannot be used now ({error.strerror})") from error


def _open(file: Path) -> SqliteIndex:
    if file.is_symlink() or not file.is_file():
        raise IndexBroken("something that is not a plain file is in the place of the index")
    return SqliteIndex(file)


def _create(file: Path) -> None:
    for ending in _SUFFIXES[1:]:  # left over from a deleted index
        Path(f"{file}{ending}").unlink(missing_ok=True)
    # The index is as private as the files.
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


@contextmanager
def _lock(folder: Path, mode: int) -> Iterator[None]:
    """Lock out others while the index is made or moved: it consists of three files, and a process must not
    open old and new ones together."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + _LOCK_TIMEOUT_S
        while not _try_lock(fd, mode):
            if time.monotonic() > deadline:
                raise IndexUnavailable("another process has been opening the index for too long")
            time.sleep(0.002)
        yield
    finally:
        os.close(fd)


def _try_lock(fd: int, mode: int) -> bool:
    try:
        fcntl.flock(fd, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def open_memory_index() -> SqliteIndex:
    return SqliteIndex(Path(":memory:"))


def quarantine_index(file: Path) -> Path:
    """Move the index out of the way, to `.aside`. Processes that have it open keep using it."""
    quarantined = file.with_name(f"{file.name}.aside")
    try:
        with _lock(file.parent, fcntl.LOCK_EX):
            for ending in _SUFFIXES:
                Path(f"{quarantined}{ending}").unlink(missing_ok=True)
                with suppress(FileNotFoundError):
                    os.replace(f"{file}{ending}", f"{quarantined}{ending}")
    except OSError as error:
        raise IndexUnavailable(f"the broken index cannot be moved away ({error.strerror})") from error
    return quarantined


SQLITE = IndexBackend(open_index, open_memory_index, quarantine_index)

"""The index in one SQLite file, through apsw, which brings a current SQLite with it.

Vectors use sqlite-vec's functions but not its tables: a scan of signs in an ordinary table with a filter in
the same statement is faster than its own index at our sizes, and any SQL filter applies before ranking. The
signs of all vectors are compared first, then the best few by their real values.

The chunks that a scope allows are computed once, as a mask with one byte per chunk, and cached until the
index changes. Statements check the mask before they rank. Ids of removed chunks are reused, so every query
runs inside a transaction, in which the index cannot change.

Text is passed through `indexable`, so the words table sees what `matched` and queries see.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import time
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import lru_cache
from hashlib import blake2b
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any

import apsw

from tacit.deadline import is_over
from tacit.home.listing import Stamp
from tacit.home.workspace_files import project_of, split_workspace_path
from tacit.markdown.links import link_target
from tacit.privacy.audience import AUDIENCES
from tacit.search.documents import embedded_text
from tacit.search.index import (
    MAX_NEIGHBOURS,
    ChunkLocation,
    IndexBroken,
    IndexStats,
    IndexTimeout,
    IndexUnavailable,
    StoredChunk,
)
from tacit.search.model import EVERYTHING, Chunk, Document, Link, Neighbour, Scope, Scored
from tacit.search.query import Term, match_expression
from tacit.search.sqlite.schema import APPLICATION_ID, SCHEMA_VERSION, TABLES, TOKENIZER
from tacit.search.weights import COLUMN_WEIGHTS, MIN_RESCORED, RESCORED_DIVISOR
from tacit.text.words import find_aliases, is_unspaced, prepare_document

_LOCK_TIMEOUT_MS = 5_000  # to wait for another process that is writing
_MAX_CACHED_SCOPES = 4  # scopes whose masks are cached
_MAX_CHUNK_ID = 2**26  # higher ids come from flipped bits, or the index is full of holes
_SAMPLE_SIZE = 64  # texts whose cosines to each other are measured
_PROGRESS_STEPS = 2_000  # SQLite's steps between two checks of the deadline: about every 0.1 ms
_SEPARATOR = "\n\ue000\n"  # a private-use character: phrases must not match across two chunks

_SURROGATE = re.compile("[\ud800-\udfff]")

# Files by their paths, in JSON; and each with its path and the names that links use for it. CROSS JOIN keeps
# this order: start from the few requested files instead of scanning all links.
_FILES_CTE = (
    "WITH wanted(path, file) AS MATERIALIZED (SELECT m.path, m.id FROM json_each(?) CROSS JOIN"
    " knowledge_meta m ON m.path = json_each.value)"
)
_NAMES_CTE = (
    f"{_FILES_CTE}, named(path, file, name) AS MATERIALIZED (SELECT path, file, path FROM wanted"
    " UNION ALL SELECT path, wanted.file, name FROM wanted CROSS JOIN called c ON c.file = wanted.file)"
)
_LINK_TARGETS = (  # of a link l
    "SELECT file FROM called WHERE name = l.target"
    " UNION ALL SELECT id FROM knowledge_meta WHERE path = l.target"
)
_BROKEN_ERRORS = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError, apsw.SchemaChangeError)
_UNAVAILABLE_ERRORS = (
    apsw.BusyError, apsw.LockedError, apsw.ReadOnlyError, apsw.FullError, apsw.IOError, apsw.CantOpenError,
    apsw.PermissionsError, apsw.NoLFSError, apsw.AuthError,
)  # fmt: skip


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Turn SQLite's errors into one of the kinds that matter: too late, try again later, or rebuild."""
    try:
        yield
    except apsw.InterruptError as error:
        raise IndexTimeout("the question took too long and was given up") from error
    except _BROKEN_ERRORS as error:
        raise IndexBroken(f"the index is damaged ({error})") from error
    except _UNAVAILABLE_ERRORS as error:
        raise IndexUnavailable(f"the index cannot be used now ({error})") from error
    except apsw.Error as error:  # missing tables, rows that make no sense
        raise IndexBroken(f"the index is not what it should be ({error})") from error


@contextmanager
def _translate_read_errors() -> Iterator[None]:
    """Also report values that we never write: a flipped bit makes invalid UTF-8, or NULL of a number."""
    with _translate_errors():
        try:
            yield
        except (ValueError, TypeError, LookupError) as error:
            raise IndexBroken(f"the index is not what it should be ({error})") from error


class _TimeLimit:
    """How long a connection may work or wait. A separate object: handlers that held the index would make a
    cycle, and an index that is dropped would stay open, with its last changes in the log beside it."""

    def __init__(self) -> None:
        self.deadline: float | None = None
        self._waiting_since = 0.0

    def is_over(self) -> bool:
        return is_over(self.deadline)

    def keep_waiting(self, times: int) -> bool:
        """Whether to wait on for another process that is writing, within the deadline."""
        now = time.monotonic()
        if not times:
            self._waiting_since = now
        if self.is_over() or now - self._waiting_since > _LOCK_TIMEOUT_MS / 1000:
            return False
        time.sleep(min(0.05, 0.001 * 2 ** min(times, 6)))
        return True


class SqliteIndex:
    """One connection. Use it from one thread at a time."""

    def __init__(self, file: Path) -> None:
        with _translate_read_errors():
            self._db, self.writable = _connect(file)
            self._vectors = _load_vectors(self._db)
            if self.writable:
                self._db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL")
            # Memory mapping would be a tenth faster, but if the file is truncated while it is open, that
            # kills the process instead of raising an error.
            self._db.execute("PRAGMA mmap_size=0; PRAGMA cache_size=-16000")
            self._require_schema()
            self._time_limit = _TimeLimit()
            self._db.set_progress_handler(self._time_limit.is_over, _PROGRESS_STEPS)
            self._db.set_busy_handler(self._time_limit.keep_waiting)
            tokenizer = self._db.fts5_tokenizer(TOKENIZER[0], list(TOKENIZER[1:]))
        self._tokenizer = tokenizer
        self._embedder_name: str | None = None  # the embedder that this connection holds vectors of
        # Caches per scope, valid for the generation below: how many chunks hold a term, how many there
        # are, their names and their masks.
        self._frequencies: dict[tuple[Scope, str], int] = {}
        self._totals: dict[Scope, int] = {}
        self._names: dict[Scope, tuple[str, ...]] = {}
        self._masks: dict[Scope, bytes] = {}  # the most recently used one last
        self._cached_generation = -1
        self._is_unmoving = False
        self._words_sought: tuple[tuple[str, ...], dict[str, str]] = ((), {})

    def _require_schema(self) -> None:
        if self.writable and self._is_blank():
            self._db.execute("BEGIN IMMEDIATE")
            with self._commit_or_roll_back():
                if self._is_blank():  # another process may have made it meanwhile
                    self._db.execute(TABLES)
                    self._db.execute(
                        "INSERT INTO about VALUES"
                        " ('generation', 0), ('embedded_to', 0), ('embedder', ''), ('tables', ?)",
                        (self._schema_checksum(),),
                    )
        application, version = self._read_pragma("application_id"), self._read_pragma("user_version")
        if application != APPLICATION_ID:
            raise IndexBroken("the file is not an index of tacit")
        if version != SCHEMA_VERSION:
            raise IndexBroken(f"the index is of version {version}, this tacit has {SCHEMA_VERSION}")
        keys = {key for (key,) in self._db.execute("SELECT key FROM about")}
        if (
            keys != {"generation", "embedded_to", "embedder", "tables"}
            or self._read_about("tables") != self._schema_checksum()
        ):
            raise IndexBroken("the index does not know what it holds")

    def _schema_checksum(self) -> int:
        """Changes with the definition of any table: one letter in it can change how words are matched."""
        return _checksum(tuple(self._db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name")))

    def _is_blank(self) -> bool:
        return self._read_pragma("application_id") == 0 and not self._value(
            "SELECT count(*) FROM sqlite_schema"
        )

    def _read_about(self, key: str) -> Any:
        return self._value("SELECT value FROM about WHERE key = ?", key)

    def _read_pragma(self, name: str) -> object:
        return self._value(f"PRAGMA {name}")

    def _value(self, sql: str, *bindings: Any) -> Any:
        row = next(iter(self._db.execute(sql, bindings)), None)
        return row[0] if row else None

    def _rows(self, sql: str, *bindings: Any) -> list[Any]:
        return self._db.execute(sql, bindings).fetchall()

    @contextmanager
    def until(self, deadline: float | None) -> Iterator[None]:
        previous, self._time_limit.deadline = self._time_limit.deadline, deadline
        try:
            yield
        finally:
            self._time_limit.deadline = previous

    @contextmanager
    def unmoving(self) -> Iterator[None]:
        if self._is_unmoving:
            yield
        elif self._db.in_transaction:  # this connection writes: the next statement may change what is there
            self._clear_caches()
            yield
        else:
            with self._read_transaction():
                yield

    @contextmanager
    def _read_transaction(self) -> Iterator[None]:
        with _translate_read_errors():
            self._db.execute("BEGIN")
        try:
            with _translate_read_errors():
                generation = self._read_about("generation")
                if generation != self._cached_generation:
                    self._clear_caches(generation)
            self._is_unmoving = True
            yield
        finally:
            self._is_unmoving = False
            with _translate_errors():
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def _clear_caches(self, generation: int = -1) -> None:
        """New entries are valid for this generation; with -1 until the next query."""
        self._frequencies, self._totals, self._names, self._masks = {}, {}, {}, {}
        self._cached_generation = generation

    # ------------------------------------------------------------ writing

    def stamps(self) -> dict[str, Stamp]:
        with _translate_read_errors():
            rows = self._db.execute("SELECT path, mtime_ns, size, inode FROM knowledge_meta")
            return {path: _read_stamp(*stamp) for path, *stamp in rows}

    def replace(self, documents: Sequence[tuple[Document, Stamp]], gone: Collection[str] = ()) -> None:
        with _translate_errors(), self._write_transaction():
            latest = {document.path: (document, stamp) for document, stamp in documents}
            self._remove({*gone, *latest})
            self._insert(latest.values())

    @contextmanager
    def _write_transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        with self._commit_or_roll_back():
            yield
            self._db.execute("UPDATE about SET value = value + 1 WHERE key = 'generation'")

    @contextmanager
    def _commit_or_roll_back(self) -> Iterator[None]:
        """Commit the open transaction, or roll it back if the block fails."""
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def _remove(self, paths: Iterable[str]) -> None:
        for path in sorted(paths):
            file = self._value("SELECT id FROM knowledge_meta WHERE path = ?", path)
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
        file = (self._value("SELECT max(id) FROM knowledge_meta") or 0) + 1
        first = (self._value("SELECT max(id) FROM passages") or 0) + 1
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
                (_to_utf8(target), number, _to_utf8(written), line)
                for target, written, line in document.links
            ]
            names += [(_to_utf8(name), number) for name in document.names]
            first = ids.stop
        self._db.executemany(f"INSERT INTO knowledge_meta VALUES({_marks(15)})", metas)
        self._db.executemany(f"INSERT INTO passages VALUES({_marks(13)})", chunks)
        self._db.executemany("INSERT OR IGNORE INTO links VALUES(?, ?, ?, ?)", links)
        self._db.executemany("INSERT OR IGNORE INTO called VALUES(?, ?)", names)
        self._db.executemany(
            f"INSERT INTO knowledge_fts(rowid, body, before, after, heading) VALUES({_marks(5)})",
            words,
        )
        if self._vectors:  # moved and re-read chunks already have one
            self._db.execute(
                "INSERT INTO knowledge_vec SELECT p.id, e.id, vec_quantize_binary(vec_int8(e.vector))"
                " FROM passages p JOIN embedded e USING(digest) WHERE p.file >= ? AND e.vector IS NOT NULL",
                (file,),
            )

    # ------------------------------------------------------------ scopes

    def _scope_clause(self, scope: Scope, column: str) -> tuple[str, list[Any]]:
        """`AND …` on the id of a chunk, or nothing for the owner's view of everything."""
        if scope.is_everything:
            return "", []
        # Flipped bits can make an id 0 or negative, and `substr` would count from the end.
        return f"AND {column} > 0 AND substr(?, {column}, 1) = x'01'", [self._mask(scope)]

    def _mask(self, scope: Scope) -> bytes:
        """A byte for each chunk: 1 if the scope allows it. Building a mask takes as long as a search. The
        scopes of turns differ only in `without` and share the rest."""
        seen = self._masks.pop(scope, None)
        if seen is None:
            seen = self._mask_without(scope) if scope.without else self._build_mask(scope)
        self._masks[scope] = seen
        if len(self._masks) > _MAX_CACHED_SCOPES:
            del self._masks[next(iter(self._masks))]
        return seen

    def _build_mask(self, scope: Scope) -> bytes:
        numbers = self._chunk_ids(*_condition(scope))
        if not numbers:
            return b""
        if min(numbers) < 1 or max(numbers) > _MAX_CHUNK_ID:
            raise IndexBroken("the index holds passages with numbers that tacit does not give")
        seen = bytearray(max(numbers))
        for number in numbers:
            seen[number - 1] = 1
        return bytes(seen)

    def _mask_without(self, scope: Scope) -> bytes:
        seen = bytearray(self._mask(dataclasses.replace(scope, without=())))
        paths = list(map(_to_utf8, scope.without))
        for number in self._chunk_ids(f"m.path IN ({_marks(len(paths))})", paths):
            if 0 < number <= len(seen):
                seen[number - 1] = 0
        return bytes(seen)

    def _chunk_ids(self, condition: str, bindings: Sequence[Any]) -> list[int]:
        sql = f"SELECT p.id FROM passages p JOIN knowledge_meta m ON m.id = p.file WHERE {condition}"
        return [number for (number,) in self._db.execute(sql, bindings)]

    # ------------------------------------------------------------ words

    def lexical(self, terms: Sequence[str], scope: Scope, limit: int) -> list[Scored]:
        expression = match_expression(
            Term(_sanitize_term(term)) for term in terms if '"' not in term and term.strip()
        )
        _condition(scope)
        if not expression:
            return []
        with _translate_errors(), self.unmoving():
            clause, bindings = self._scope_clause(scope, "+f.rowid")
            select = (
                f"SELECT f.rowid, -bm25(knowledge_fts, {', '.join(map(str, COLUMN_WEIGHTS))}) AS score"
                f" FROM knowledge_fts f {{join}} WHERE knowledge_fts MATCH ? {clause} ORDER BY score DESC"
            )
            hits = self._query_scores(select.format(join="") + " LIMIT ?", expression, *bindings, limit + 1)
            if len(hits) > limit and hits[limit - 1].score == hits[limit].score:
                # Equal scores at the cut: order by file, so that the index's history makes no difference.
                joined = select.format(
                    join="JOIN passages p ON p.id = f.rowid JOIN knowledge_meta m ON m.id = p.file"
                )
                return self._query_scores(
                    joined + ", m.path, p.position LIMIT ?", expression, *bindings, limit
                )
            return self._sort(hits[:limit])

    def _sort(self, hits: list[Scored]) -> list[Scored]:
        """Best first; equal scores in the order of the files."""
        counts = Counter([hit.score for hit in hits])
        if len(counts) == len(hits):
            return hits
        equal = [hit.id for hit in hits if counts[hit.score] > 1]
        sql = (
            "SELECT p.id, m.path, p.position FROM passages p JOIN knowledge_meta m ON m.id = p.file"
            f" WHERE p.id IN ({_marks(len(equal))})"
        )
        rows = self._db.execute(sql, equal)
        places = {number: (path, position) for number, path, position in rows}
        return sorted(hits, key=lambda hit: (-hit.score, places.get(hit.id, ("", hit.id))))

    def _query_scores(self, sql: str, *bindings: Any) -> list[Scored]:
        return list(map(Scored._make, self._db.execute(sql, bindings)))

    def frequency(self, term: str, scope: Scope = EVERYTHING) -> float:
        counted = EVERYTHING if scope.audience == "owner" else scope
        _condition(counted)
        with _translate_read_errors(), self.unmoving():
            if counted not in self._totals:
                clause, bindings = self._scope_clause(counted, "+id")
                count = self._value(f"SELECT count(*) FROM passages WHERE 1 {clause}", *bindings)
                self._totals[counted] = int(count)
            if (counted, term) not in self._frequencies:
                self._frequencies[counted, term] = self._count(term, counted)
            return self._frequencies[counted, term] / self._totals[counted] if self._totals[counted] else 0.0

    def _count(self, term: str, scope: Scope) -> int:
        """For a term of several words, the count of its rarest word: close enough, and it needs no search."""
        if scope.is_everything:
            words = {word for *_, word in self._tokenize(term)}
            clause, bindings = "", list[Any]()
            sql = "SELECT doc FROM knowledge_terms WHERE term = ?"
        else:
            data = term.encode("utf-8", "replace")  # the original words: the stem of a stem may differ
            words = {data[start:end].decode() for start, end, _ in self._tokenize(term)}
            clause, bindings = self._scope_clause(scope, "+rowid")
            sql = f"SELECT count(*) FROM knowledge_fts WHERE knowledge_fts MATCH '\"' || ? || '\"' {clause}"
        return min((self._value(sql, word, *bindings) or 0 for word in words), default=0)

    def _tokenize(self, text: str) -> list[tuple[int, int, str]]:
        """Words of a text as the index stores them, with their offsets in bytes."""
        if not text:
            return []
        data = text.encode("utf-8", "replace")
        tokens: Any = self._tokenizer(data, apsw.FTS5_TOKENIZE_DOCUMENT, None)
        return [(start, end, word) for start, end, word, *_ in tokens]

    def matched(self, terms: Sequence[str], text: str) -> list[tuple[int, int, str]]:
        if self._words_sought[0] != tuple(terms):  # the same for all hits of a query
            words = {word: term for term in reversed(terms) for *_, word in self._tokenize(term)}
            self._words_sought = tuple(terms), words
        sought = self._words_sought[1]
        spans = [(start, end, sought[word]) for start, end, word in self._tokenize(text) if word in sought]
        matches = spans if text.isascii() else _to_character_offsets(text.encode("utf-8", "replace"), spans)
        matches += _match_symbols(text, set(terms))
        matches += [span for term in terms if is_unspaced(term) for span in _match_literal(text, term)]
        return _drop_overlaps(matches)

    # ------------------------------------------------------------ vectors

    def nearest(self, vector: bytes, scope: Scope, limit: int) -> list[Scored]:
        _condition(scope)
        if not self._vectors:
            return []
        with _translate_read_errors(), self.unmoving():
            rows = [
                row for row in self._nearest_by_signs(vector, scope, limit) if row[1] is not None
            ]  # no direction
            rows.sort(key=itemgetter(1), reverse=True)
            end = limit
            while 0 < end < len(rows) and rows[end][1] == rows[end - 1][1]:
                end += 1
            return self._sort([Scored(number, cosine) for number, cosine, _ in rows[:end]])[:limit]

    def _nearest_by_signs(self, vector: bytes, scope: Scope, limit: int) -> list[Any]:
        """The chunks whose signs differ least, each with its cosine and the number of signs that differ. If
        too many tie for the last place, all of those are left out: which come first would depend on the
        index's history."""
        clause, bindings = self._scope_clause(scope, "v.id")
        select = (
            "WITH alike AS MATERIALIZED (SELECT v.id, v.vector,"
            " vec_distance_hamming(vec_bit(v.signs), vec_quantize_binary(vec_int8(?1))) AS far"
            f" FROM knowledge_vec v {{join}} WHERE 1 {clause} ORDER BY far {{then}} LIMIT ?)"
            " SELECT alike.id, 1 - vec_distance_cosine(vec_int8(e.vector), vec_int8(?1)), alike.far"
            " FROM alike CROSS JOIN embedded e ON e.id = alike.vector"
        )
        padded = _pad(vector)
        highest = self._value("SELECT max(id) FROM knowledge_vec") or 0
        count = max(MIN_RESCORED, limit, highest // RESCORED_DIVISOR)
        rows = self._rows(select.format(join="", then=""), padded, *bindings, count + 1)
        if len(rows) <= count:
            return rows
        farthest = max(map(itemgetter(2), rows))
        nearer = [row for row in rows if row[2] < farthest]
        if len(nearer) >= limit:
            return nearer
        joined = select.format(
            join="JOIN passages p ON p.id = v.id JOIN knowledge_meta m ON m.id = p.file",
            then=", m.path, p.position",
        )
        return self._rows(joined, padded, *bindings, count)

    def cosines(self, vector: bytes, ids: Collection[int]) -> dict[int, float]:
        if not self._vectors or not ids:
            return {}
        sql = (
            "SELECT v.id, 1 - vec_distance_cosine(vec_int8(e.vector), vec_int8(?)) FROM knowledge_vec v"
            f" CROSS JOIN embedded e ON e.id = v.vector WHERE v.id IN ({_marks(len(ids))})"
        )
        with _translate_errors():
            rows = self._db.execute(sql, (_pad(vector), *ids))
            return {number: cosine for number, cosine in rows if cosine is not None}  # None: no direction

    def background(self) -> list[float]:
        if not self._vectors:
            return []
        # Digests are as good as random, and the sample does not depend on the history of the index.
        sql = (
            "WITH some AS MATERIALIZED (SELECT e.digest, e.vector FROM embedded e WHERE e.vector IS NOT NULL"
            " AND EXISTS (SELECT 1 FROM passages p WHERE p.digest = e.digest) ORDER BY e.digest LIMIT ?)"
            " SELECT 1 - vec_distance_cosine(vec_int8(one.vector), vec_int8(other.vector))"
            " FROM some one JOIN some other ON one.digest < other.digest ORDER BY one.digest, other.digest"
        )
        with _translate_read_errors():
            rows = self._db.execute(sql, (_SAMPLE_SIZE,))
            return [float(cosine) for (cosine,) in rows if cosine is not None]

    def vectors_of(self) -> str:
        with _translate_errors():
            if not self._vectors or not self._value("SELECT EXISTS(SELECT 1 FROM knowledge_vec)"):
                return ""
            return str(self._read_about("embedder"))

    def has_all_vectors(self) -> bool:
        with _translate_read_errors():
            return bool(self._read_about("embedded_to") >= (self._value("SELECT max(id) FROM passages") or 0))

    def use_embedder(self, name: str) -> None:
        self._embedder_name = name
        with _translate_errors():
            if self._read_about("embedder") == name or not self.writable:
                return
            with self._write_transaction():
                self._db.execute("DELETE FROM knowledge_vec; DELETE FROM embedded")
                self._db.execute("UPDATE about SET value = ? WHERE key = 'embedder'", (name,))
                self._db.execute("UPDATE about SET value = 0 WHERE key = 'embedded_to'")

    def unembedded(self, limit: int) -> list[tuple[bytes, str]]:
        if not self._vectors or not self.writable:
            return []
        sql = (
            "SELECT p.id, p.digest, m.title, p.section, p.speaker, p.text FROM passages p"
            " JOIN knowledge_meta m ON m.id = p.file WHERE p.id > ?"
            " AND p.digest NOT IN (SELECT digest FROM embedded) ORDER BY p.id LIMIT ?"
        )
        with _translate_read_errors():
            generation, embedded_to = self._read_about("generation"), self._read_about("embedded_to")
            highest = self._value("SELECT max(id) FROM passages") or 0
            if embedded_to >= highest:
                return []
            rows = self._rows(sql, embedded_to, limit)
            self._advance_embedded_to(rows[0][0] - 1 if rows else highest, generation)
            return list(
                {
                    digest: (digest, embedded_text(title, json.loads(section), speaker, text))
                    for _, digest, title, section, speaker, text in rows
                }.values()
            )

    def _advance_embedded_to(self, chunk: int, generation: int) -> None:
        """Remember that all chunks up to this one have vectors, so that only newer ones are checked. Does
        nothing if another process has written since: its chunks may have lower ids."""
        self._db.execute(
            "UPDATE about SET value = ? WHERE key = 'embedded_to' AND value < ?"
            " AND (SELECT value FROM about WHERE key = 'generation') = ?",
            (chunk, chunk, generation),
        )

    def keep(self, vectors: Mapping[bytes, bytes | None]) -> None:
        rows = [(digest, vector and _pad(vector)) for digest, vector in vectors.items()]
        with _translate_errors(), self._write_transaction():
            if self._embedder_name is not None and self._read_about("embedder") != self._embedder_name:
                raise IndexUnavailable("another process gives the index vectors of another embedder")
            self._db.executemany(
                "INSERT INTO embedded(digest, vector) VALUES(?, ?)"
                " ON CONFLICT(digest) DO UPDATE SET vector = excluded.vector",
                rows,
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO knowledge_vec"
                " SELECT p.id, e.id, vec_quantize_binary(vec_int8(e.vector)) FROM embedded e"
                " JOIN passages p ON p.digest = e.digest WHERE e.digest = ?",
                [(digest,) for digest, vector in rows if vector is not None],
            )
            self._db.executemany(
                "DELETE FROM knowledge_vec WHERE id IN (SELECT id FROM passages WHERE digest = ?)",
                [(digest,) for digest, vector in rows if vector is None],
            )

    # ------------------------------------------------------------ reading

    def stored(self, ids: Collection[int]) -> dict[int, StoredChunk]:
        sql = (
            "SELECT p.id, p.checksum, p.first_line, p.last_line, p.section, p.day, p.speaker, p.turn, p.text,"
            " m.path, m.category, m.audience, m.agents, m.conversation, m.archived, m.title, m.checksum"
            f" FROM passages p JOIN knowledge_meta m ON m.id = p.file WHERE p.id IN ({_marks(len(ids))})"
        )
        with _translate_read_errors():
            rows = self._rows(sql, *ids)
            _verify_files({row[9:] for row in rows})
            return {row[0]: _parse_row(row) for row in rows}

    def windows(self, ids: Collection[int]) -> dict[int, str]:
        sql = (
            "SELECT p.id, near.speaker, near.text FROM passages p JOIN passages near ON near.file = p.file"
            " AND near.position BETWEEN p.position - 2 AND p.position + 1"
            f" WHERE p.id IN ({_marks(len(ids))}) AND p.speaker != '' ORDER BY p.id, near.position"
        )
        lines_by_id: dict[int, list[str]] = {}
        with _translate_read_errors():
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
            f" ({_line_edge_sql('ASC')}), ({_line_edge_sql('DESC')})"
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
        with _translate_read_errors():
            wanted_places = json.dumps([place for place in places if _to_utf8(place[0]) == place[0]])
            reach = (max(0, before), max(0, after), MAX_NEIGHBOURS)
            for path, line, _, number in self._db.execute(sql, (wanted_places, *reach)):
                ids_by_place.setdefault((path, line), []).append(number)
            stored = self.stored({number for numbers in ids_by_place.values() for number in numbers})
        return {place: [stored[number] for number in numbers] for place, numbers in ids_by_place.items()}

    def names(self, scope: Scope = EVERYTHING) -> tuple[str, ...]:
        _condition(scope)
        with _translate_read_errors(), self.unmoving():
            if scope not in self._names:
                self._names[scope] = tuple(dict.fromkeys(self._read_names(scope)))
            return self._names[scope]

    def _read_names(self, scope: Scope) -> Iterator[str]:
        clause, bindings = self._scope_clause(scope, "+p.id")
        exists = f"AND EXISTS (SELECT 1 FROM passages p WHERE p.file = m.id {clause})" if clause else ""
        sql = (
            "SELECT m.path, m.title FROM knowledge_meta m"
            f" WHERE m.category IN ('person', 'project') {exists} ORDER BY m.path"
        )
        for path, title in self._db.execute(sql, bindings):
            yield from _display_names(title, path)

    # ------------------------------------------------------------ links

    def references(self, paths: Collection[str], scope: Scope = EVERYTHING) -> dict[str, int]:
        counted_scope = scope.whose
        _condition(counted_scope)
        with _translate_read_errors(), self.unmoving():
            source, source_values = self._file_clause("l.file", counted_scope)
            target, target_values = self._file_clause("named.file", counted_scope)
            sql = (
                f"{_NAMES_CTE} SELECT named.path, count(DISTINCT l.file) FROM named CROSS JOIN links l"
                f" ON l.target = named.name WHERE l.file != named.file {source} {target} GROUP BY 1"
            )
            return dict(self._db.execute(sql, (_paths_json(paths), *source_values, *target_values)))

    def neighbours(self, paths: Collection[str], scope: Scope) -> list[Neighbour]:
        _condition(scope)
        with _translate_read_errors(), self.unmoving():
            note_clause, note_bindings = self._file_clause("named.file", scope)
            linked_clause, linked_bindings = self._file_clause("m.id", scope)
            forward = (
                " CROSS JOIN links l ON l.file = named.file AND named.name = named.path"
                f" CROSS JOIN knowledge_meta m ON m.id IN ({_LINK_TARGETS})"
            )
            backward = (
                " CROSS JOIN links l ON l.target = named.name CROSS JOIN knowledge_meta m ON m.id = l.file"
            )
            neighbours = [
                Neighbour(path, linked, is_forward)
                for joins, is_forward in ((forward, True), (backward, False))
                for path, linked in self._db.execute(
                    f"{_NAMES_CTE} SELECT DISTINCT named.path, m.path FROM named {joins}"
                    f" WHERE m.id != named.file {note_clause} {linked_clause}",
                    (_paths_json(paths), *note_bindings, *linked_bindings),
                )
            ]
            return sorted(neighbours)

    def chunks_of(self, paths: Collection[str], scope: Scope, most: int) -> dict[str, list[int]]:
        _condition(scope)
        with _translate_read_errors(), self.unmoving():
            clause, bindings = self._scope_clause(scope, "+p.id")
            sql = (
                f"{_FILES_CTE} SELECT wanted.path, p.id FROM wanted CROSS JOIN passages p"
                f" ON p.file = wanted.file WHERE p.position < ? {clause} ORDER BY wanted.path, p.position"
            )
            ids_by_path: dict[str, list[int]] = {}
            for path, number in self._db.execute(sql, (_paths_json(paths), most, *bindings)):
                ids_by_path.setdefault(path, []).append(number)
            return ids_by_path

    def links(self, scope: Scope = EVERYTHING, path: str | None = None) -> list[Link]:
        _condition(scope)
        with _translate_read_errors(), self.unmoving():
            source_clause, source_values = self._file_clause("l.file", scope)
            target_clause, target_values = self._file_clause("m.id", scope)
            sql = (
                "SELECT s.path, l.line, l.written, l.target, m.path FROM links l"
                " JOIN knowledge_meta s ON s.id = l.file"
                f" LEFT JOIN knowledge_meta m ON m.id IN ({_LINK_TARGETS}) {target_clause}"
                f" WHERE 1 {source_clause} ORDER BY s.path, l.line, l.target, m.path"
            )
            targets_by_link: dict[tuple[str, int, str, str], list[str]] = {}
            for source, line, written, target, leads_to in self._db.execute(
                sql, (*target_values, *source_values)
            ):
                targets = targets_by_link.setdefault((source, line, written, target), [])
                targets += [] if leads_to is None else [leads_to]
        links = (
            Link(source, line, written, tuple(other for other in targets if other != source))
            for (source, line, written, _), targets in targets_by_link.items()
            if targets != [source]
        )
        return [link for link in links if path is None or path in (link.source, *link.targets)]

    def called(self, name: str, scope: Scope = EVERYTHING) -> list[str]:
        _condition(scope)
        with _translate_read_errors(), self.unmoving():
            clause, bindings = self._file_clause("m.id", scope)
            sql = (
                "SELECT path FROM knowledge_meta m WHERE (path = ?"
                f" OR id IN (SELECT file FROM called WHERE name = ?)) {clause} ORDER BY path"
            )
            parameters = (_to_utf8(name), _to_utf8(link_target(name)), *bindings)
            return [path for (path,) in self._db.execute(sql, parameters)]

    def notes(self, scope: Scope = EVERYTHING) -> list[str]:
        _condition(scope)
        with _translate_read_errors(), self.unmoving():
            clause, bindings = self._file_clause("m.id", scope)
            sql = f"SELECT path FROM knowledge_meta m WHERE category != 'conversation' {clause} ORDER BY path"
            return [path for (path,) in self._db.execute(sql, bindings)]

    def _file_clause(self, column: str, scope: Scope) -> tuple[str, list[Any]]:
        """`AND …` on the id of a file that has a chunk in the scope."""
        clause, bindings = self._scope_clause(scope, "+p.id")
        exists = f"AND EXISTS (SELECT 1 FROM passages p WHERE p.file = {column} {clause})" if clause else ""
        return exists, bindings

    def facts(self) -> IndexStats:
        with _translate_read_errors():
            about = dict(self._db.execute("SELECT key, value FROM about"))
            files, chunks, embedded = (
                self._value(f"SELECT count(*) FROM {table}")
                for table in ("knowledge_meta", "passages", "knowledge_vec")
            )
            return IndexStats(files, chunks, embedded, about["generation"], about["embedder"])

    def generation(self) -> int:
        with _translate_read_errors():
            return self._read_about("generation")  # type: ignore[no-any-return]

    def close(self) -> None:
        self._db.close()


# ---------------------------------------------------------------- the connection


def _connect(file: Path) -> tuple[apsw.Connection, bool]:
    """Open for writing if possible; a home on a read-only disk can still be searched."""
    # The file must exist already: SQLite would create it readable for everyone.
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    try:
        db = apsw.Connection(_uri(file), flags=flags)
        db.set_busy_timeout(_LOCK_TIMEOUT_MS)
        if db.readonly("main"):
            raise apsw.ReadOnlyError
        db.execute("BEGIN IMMEDIATE; ROLLBACK")
        return db, True
    except (apsw.ReadOnlyError, apsw.CantOpenError):
        if not file.exists():
            raise
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return apsw.Connection(f"{_uri(file)}?immutable=1", flags=flags), False


def _uri(file: Path) -> str:
    """Takes any path, even one that is not valid UTF-8."""
    if str(file) == ":memory:":
        return "file::memory:"
    return "file://" + "".join(
        f"%{byte:02x}" if chr(byte) in "%?#" or byte > 126 else chr(byte)
        for byte in os.fsencode(file.absolute())
    )


def _load_vectors(db: apsw.Connection) -> bool:
    """Load sqlite-vec without importing it, which would import numpy. Without it only words are searched."""
    spec = find_spec("sqlite_vec")
    places = list(spec.submodule_search_locations or ()) if spec else []
    if not places:
        return False
    db.enable_load_extension(True)
    try:
        db.load_extension(str(Path(places[0]) / "vec0"))
    except apsw.ExtensionLoadingError:
        return False
    finally:
        db.enable_load_extension(False)
    return True


# ---------------------------------------------------------------- rows


def _paths_json(paths: Iterable[str]) -> str:
    return json.dumps(list(map(_to_utf8, paths)))


def _pad(vector: bytes) -> bytes:
    """Pad with zeros so that signs fill whole bytes. Cosines stay the same."""
    return vector + bytes(-len(vector) % 8)


def _sanitize_term(term: str) -> str:
    """Replace what the database refuses: stored text does not contain it either."""
    return _to_utf8(term).replace("\0", " ")


def _line_edge_sql(order: str) -> str:
    """The first or the last of the chunks that begin on the line of a place."""
    return (
        "SELECT id FROM passages WHERE file = m.id AND first_line = place.line"
        f" ORDER BY record {order}, position {order} LIMIT 1"
    )


def _marks(count: int) -> str:
    return ", ".join("?" * count)


def _meta_row(number: int, document: Document, stamp: Stamp) -> tuple[Any, ...]:
    fields = _file_fields(document)
    tags = json.dumps(document.tags, ensure_ascii=False)
    path, category, audience, agents, conversation, archived, title = fields
    return (
        number, path, category, _to_utf8(document.day), title, _to_utf8(tags),
        document.lines, audience, agents, conversation, archived, *map(_to_signed, stamp), _checksum(fields),
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
        "".join(map(_encode_agent, document.agents)),
        _encode_exact(document.conversation),
        int(document.archived),
        _to_utf8(document.title),
    )


def _encode_agent(name: str) -> str:
    """Encoded for storage and lookup, so that no name can pass for two, or for a part of another."""
    return f"\n{json.dumps(name)}\n"


def _encode_exact(text: str) -> str:
    """For texts that are compared: characters that the database refuses must not make two texts equal."""
    return json.dumps(text) if text else ""


def _checksum(values: tuple[Any, ...]) -> int:
    return zlib.crc32(repr(values).encode("utf-8", "surrogatepass"))


def _to_utf8(text: str) -> str:
    """The database takes only UTF-8. Lone surrogates come back as the replacement character."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _chunk_rows(ids: range, file: int, document: Document) -> Iterator[tuple[Any, ...]]:
    title = _to_utf8(document.title)
    record, turn = -1, 0
    for position, (number, chunk) in enumerate(zip(ids, document.chunks, strict=True)):
        record += not chunk.turn or chunk.turn != turn  # a long message is several chunks
        turn = chunk.turn
        text, speaker = _to_utf8(chunk.text), _to_utf8(chunk.speaker)
        section = tuple(map(_to_utf8, chunk.section))
        headings = json.dumps(section, ensure_ascii=False) if section else "[]"
        lines = (chunk.first_line, chunk.last_line)
        visible = (*lines, headings, _to_utf8(chunk.day), speaker, chunk.turn, text)
        digest = _digest(title, section, speaker, text)
        yield number, file, position, record, digest, *visible, _checksum((document.path, *visible))


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
    for *fields, checksum in files:
        if _checksum(tuple(fields)) != checksum:
            raise IndexBroken("the index holds a file that was not written by tacit")


def _parse_row(row: tuple[Any, ...]) -> StoredChunk:
    number, checksum, first, last, section, day, speaker, turn, text = row[:9]
    path, category, audience, _, _, archived, title, _ = row[9:]
    if _checksum((path, first, last, section, day, speaker, turn, text)) != checksum:
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


def _to_character_offsets(data: bytes, spans: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Convert ordered spans from byte offsets to character offsets."""
    converted = []
    offset = characters = 0
    for start, end, term in spans:
        first = characters + len(data[offset:start].decode("utf-8", "replace"))
        offset, characters = end, first + len(data[start:end].decode("utf-8", "replace"))
        converted.append((first, characters, term))
    return converted


def _match_symbols(text: str, terms: set[str]) -> Iterator[tuple[int, int, str]]:
    """Find names such as `C++`, which are indexed under another word."""
    for alias in find_aliases(text):
        if alias.word in terms:
            length = next(
                (end for end, ch in enumerate(text[alias.start :]) if ch.isspace()),
                len(text) - alias.start,
            )
            yield alias.start, alias.start + length, alias.word


def _match_literal(text: str, term: str) -> Iterator[tuple[int, int, str]]:
    start = text.find(term)
    while start >= 0:
        yield start, start + len(term), term
        start = text.find(term, start + 1)


def _drop_overlaps(spans: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Sort the spans and drop those that overlap an earlier one."""
    accepted: list[tuple[int, int, str]] = []
    for span in sorted(spans):
        if not accepted or span[0] >= accepted[-1][1]:
            accepted.append(span)
    return accepted


# ---------------------------------------------------------------- scopes


@lru_cache(maxsize=64)
def _condition(scope: Scope) -> tuple[str, tuple[Any, ...]]:
    """The scope as a condition with its bindings. Every query calls it first: an invalid scope is the
    caller's mistake and does not mean that the index is broken."""
    conditions, bindings = ["1"], list[Any]()
    for condition, values in _conditions(scope):
        conditions.append(condition)
        bindings += values
    invalid = [value for value in (*bindings, *scope.without) if not isinstance(value, str | int | bytes)]
    if invalid:
        raise TypeError(f"{invalid[0]!r} in a scope")
    return " AND ".join(conditions), tuple(bindings)


def _conditions(scope: Scope) -> Iterator[tuple[str, list[Any]]]:
    """All conditions except the paths in `without`."""
    if scope.categories:
        yield f"m.category IN ({_marks(len(scope.categories))})", list(scope.categories)
    if scope.audience != "owner":
        yield (
            "(m.audience <= ? OR (m.conversation != '' AND m.conversation = ?))",
            [AUDIENCES.index(scope.audience), _encode_exact(scope.conversation)],
        )
    if scope.agents:
        own = " OR ".join("instr(m.agents, ?)" for _ in scope.agents)
        yield f"(m.agents = '' OR {own})", list(map(_encode_agent, scope.agents))
    if scope.since:
        yield "p.day >= ?", [scope.since.isoformat()]
    if scope.until:
        yield "p.day <= ? AND p.day != ''", [scope.until.isoformat()]
    if scope.under:
        under = scope.under.encode("utf-8", "surrogatepass")
        yield "substr(CAST(m.path AS BLOB), 1, ?) = ?", [len(under), under]
    if scope.archived is not None:
        yield "m.archived = ?", [int(scope.archived)]

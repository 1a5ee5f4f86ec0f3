"""The index in one SQLite file, through apsw, which brings a current SQLite with it.

Vectors need sqlite-vec's functions, not its tables: a scan of signs in an ordinary table with a filter in the
same statement is faster than its own index at our sizes, and any SQL filter applies before ranking. The signs
of all vectors are compared first, then the best few by their real values.

Which passages a scope lets through is gathered once and remembered until the index changes, as a byte for
each. Statements look there before they rank. Numbers of removed passages are given again, to others: so every
question is asked inside a transaction, in which the index cannot have changed.

Text goes in through `indexable`, so the words table sees what `matched` and queries see.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
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

from tacit.index.protocol import NEIGHBOURS, Facts, IndexBroken, IndexUnavailable, Place, Stored
from tacit.index.schema import APPLICATION, TABLES, TOKENIZER, VERSION, WEIGHTS
from tacit.model.links import Link, Neighbour
from tacit.model.search import AUDIENCES, EVERYTHING, Document, Passage, Scope, Scored, Stamp
from tacit.text.links import called
from tacit.text.passages import embedded_text
from tacit.text.query import Term, match
from tacit.text.words import aliases, indexable, unspaced
from tacit.text.workspaces import project_of, split

_PATIENCE = 5_000  # milliseconds to wait for another process that is writing
_RESCORED = 800  # passages whose vectors are compared in full after all signs were, at least
_ONE_IN = 32  # and of many passages one in so many, since ever more have signs as good as the best
_SCOPES = 4  # for which it is remembered what they let through
_HIGHEST = 2**26  # number of a passage: others come from flipped bits, or the index is full of holes
_SAMPLE = 64  # texts whose cosines to each other are looked at
_FAR_APART = "\n\ue000\n"  # a word that nobody writes: phrases must not match across two passages

_HALF = re.compile("[\ud800-\udfff]")

# Files by their paths, in JSON; and each with its path and its names, by which links call it. CROSS JOIN: in
# this order, from the few files that are asked for, not by a look at all links there are.
_WANTED = (
    "WITH wanted(path, file) AS MATERIALIZED (SELECT m.path, m.id FROM json_each(?) CROSS JOIN"
    " knowledge_meta m ON m.path = json_each.value)"
)
_NAMED = (
    f"{_WANTED}, named(path, file, name) AS MATERIALIZED (SELECT path, file, path FROM wanted"
    " UNION ALL SELECT path, wanted.file, name FROM wanted CROSS JOIN called c ON c.file = wanted.file)"
)
_LEADS_TO = (  # of a link l
    "SELECT file FROM called WHERE name = l.target"
    " UNION ALL SELECT id FROM knowledge_meta WHERE path = l.target"
)

_BROKEN = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError, apsw.SchemaChangeError)
_LATER = (
    apsw.BusyError, apsw.LockedError, apsw.ReadOnlyError, apsw.FullError, apsw.IOError, apsw.CantOpenError,
    apsw.PermissionsError, apsw.NoLFSError, apsw.AuthError,
)  # fmt: skip


@contextmanager
def _explained() -> Iterator[None]:
    """SQLite's errors as one of the two kinds that matter: come back later, or build it anew."""
    try:
        yield
    except _BROKEN as error:
        raise IndexBroken(f"the index is damaged ({error})") from error
    except _LATER as error:
        raise IndexUnavailable(f"the index cannot be used now ({error})") from error
    except apsw.Error as error:  # missing tables, rows that make no sense: not what we wrote
        raise IndexBroken(f"the index is not what it should be ({error})") from error


@contextmanager
def _reading() -> Iterator[None]:
    """Besides, values that we never write: a flipped bit makes text that is no UTF-8, or NULL of a number."""
    with _explained():
        try:
            yield
        except (ValueError, TypeError, LookupError) as error:
            raise IndexBroken(f"the index is not what it should be ({error})") from error


class SqliteIndex:
    """One connection. Not for two threads at once."""

    def __init__(self, file: Path) -> None:
        with _reading():
            self._db, self.writable = _connected(file)
            self._vectors = _load_vectors(self._db)
            if self.writable:
                self._db.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL")
            # Not mapped into memory, which would be a tenth faster: if somebody cuts the file short while it
            # is open, that kills the process instead of raising an error.
            self._db.execute("PRAGMA mmap_size=0; PRAGMA cache_size=-16000")
            self._require_ours()
            tokenizer = self._db.fts5_tokenizer(TOKENIZER[0], list(TOKENIZER[1:]))
        self._tokenizer = tokenizer
        self._chosen: str | None = None  # the embedder that this connection holds vectors of
        # How many passages hold a term, which names there are and which passages, for whom; all of the
        # generation below.
        self._known: dict[tuple[Scope, str], int] = {}
        self._totals: dict[Scope, int] = {}
        self._names: dict[Scope, tuple[str, ...]] = {}
        self._seen: dict[Scope, bytes] = {}  # the last one that was asked for at the end
        self._known_at = -1
        self._is_unmoving = False
        self._sought: tuple[tuple[str, ...], dict[str, str]] = ((), {})

    def _require_ours(self) -> None:
        if self.writable and self._is_blank():
            self._db.execute("BEGIN IMMEDIATE")
            with self._ended():
                if self._is_blank():  # not made by another meanwhile
                    self._db.execute(TABLES)
                    self._db.execute(
                        "INSERT INTO about VALUES"
                        " ('generation', 0), ('embedded_to', 0), ('embedder', ''), ('tables', ?)",
                        (self._tables(),),
                    )
        application, version = self._pragma("application_id"), self._pragma("user_version")
        if application != APPLICATION:
            raise IndexBroken("the file is not an index of tacit")
        if version != VERSION:
            raise IndexBroken(f"the index is of version {version}, this tacit has {VERSION}")
        keys = {key for (key,) in self._db.execute("SELECT key FROM about")}
        if (
            keys != {"generation", "embedded_to", "embedder", "tables"}
            or self._about("tables") != self._tables()
        ):
            raise IndexBroken("the index does not know what it holds")

    def _tables(self) -> int:
        """Changes with the definition of any table: one letter in it may change how words are found."""
        return _checksum(tuple(self._db.execute("SELECT name, sql FROM sqlite_schema ORDER BY name")))

    def _is_blank(self) -> bool:
        return self._pragma("application_id") == 0 and not self._value("SELECT count(*) FROM sqlite_schema")

    def _about(self, key: str) -> Any:
        return self._value("SELECT value FROM about WHERE key = ?", key)

    def _pragma(self, name: str) -> object:
        return self._value(f"PRAGMA {name}")

    def _value(self, sql: str, *bindings: Any) -> Any:
        row = next(iter(self._db.execute(sql, bindings)), None)
        return row[0] if row else None

    def _rows(self, sql: str, *bindings: Any) -> list[Any]:
        return self._db.execute(sql, bindings).fetchall()

    @contextmanager
    def unmoving(self) -> Iterator[None]:
        if self._is_unmoving:
            yield
        elif self._db.in_transaction:  # this connection writes: the next statement may change what is there
            self._forget()
            yield
        else:
            with self._begun():
                yield

    @contextmanager
    def _begun(self) -> Iterator[None]:
        with _reading():
            self._db.execute("BEGIN")
        try:
            with _reading():
                generation = self._about("generation")
                if generation != self._known_at:
                    self._forget(generation)
            self._is_unmoving = True
            yield
        finally:
            self._is_unmoving = False
            with _explained():
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")

    def _forget(self, generation: int = -1) -> None:
        """What is learned from now on holds for this generation; for -1 until the next question."""
        self._known, self._totals, self._names, self._seen = {}, {}, {}, {}
        self._known_at = generation

    # ------------------------------------------------------------ writing

    def stamps(self) -> dict[str, Stamp]:
        with _reading():
            rows = self._db.execute("SELECT path, mtime_ns, size, inode FROM knowledge_meta")
            return {path: _stamp(*stamp) for path, *stamp in rows}

    def replace(self, documents: Sequence[tuple[Document, Stamp]], gone: Collection[str] = ()) -> None:
        with _explained(), self._writing():
            latest = {document.path: (document, stamp) for document, stamp in documents}
            self._remove({*gone, *latest})
            self._insert(latest.values())

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        with self._ended():
            yield
            self._db.execute("UPDATE about SET value = value + 1 WHERE key = 'generation'")

    @contextmanager
    def _ended(self) -> Iterator[None]:
        """The transaction that was begun, kept as a whole or not at all."""
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
                old = [
                    (row[0],) for row in self._db.execute("SELECT id FROM passages WHERE file = ?", (file,))
                ]
                self._db.executemany("DELETE FROM knowledge_fts WHERE rowid = ?", old)
                self._db.executemany("DELETE FROM knowledge_vec WHERE id = ?", old)
                self._db.execute("DELETE FROM passages WHERE file = ?", (file,))
                self._db.execute("DELETE FROM links WHERE file = ?", (file,))
                self._db.execute("DELETE FROM called WHERE file = ?", (file,))
                self._db.execute("DELETE FROM knowledge_meta WHERE id = ?", (file,))

    def _insert(self, documents: Iterable[tuple[Document, Stamp]]) -> None:
        file = (self._value("SELECT max(id) FROM knowledge_meta") or 0) + 1
        first = (self._value("SELECT max(id) FROM passages") or 0) + 1
        # The numbers of removed passages come again, and then without a vector.
        self._db.execute("UPDATE about SET value = min(value, ?) WHERE key = 'embedded_to'", (first - 1,))
        metas: list[Any] = []
        passages: list[Any] = []
        words: list[Any] = []
        links: list[Any] = []
        names: list[Any] = []
        for number, (document, stamp) in enumerate(documents, file):
            ids = range(first, first + len(document.passages))
            metas.append(_meta_row(number, document, stamp))
            passages += _passage_rows(ids, number, document)
            words += _word_rows(ids, document)
            links += [
                (_storable(target), number, _storable(written), line)
                for target, written, line in document.links
            ]
            names += [(_storable(name), number) for name in document.names]
            first = ids.stop
        self._db.executemany(f"INSERT INTO knowledge_meta VALUES({_marks(15)})", metas)
        self._db.executemany(f"INSERT INTO passages VALUES({_marks(13)})", passages)
        self._db.executemany("INSERT OR IGNORE INTO links VALUES(?, ?, ?, ?)", links)
        self._db.executemany("INSERT OR IGNORE INTO called VALUES(?, ?)", names)
        self._db.executemany(
            f"INSERT INTO knowledge_fts(rowid, body, before, after, heading) VALUES({_marks(5)})", words
        )
        if self._vectors:  # moved and re-read passages have theirs already
            self._db.execute(
                "INSERT INTO knowledge_vec SELECT p.id, e.id, vec_quantize_binary(vec_int8(e.vector))"
                " FROM passages p JOIN embedded e USING(digest) WHERE p.file >= ? AND e.vector IS NOT NULL",
                (file,),
            )

    # ------------------------------------------------------------ what a scope lets through

    def _filter(self, scope: Scope, column: str) -> tuple[str, list[Any]]:
        """`AND …` with the number of a passage, or nothing for the owner's view of everything."""
        if scope.is_everything:
            return "", []
        # Above 0, which flipped bits may not be: `substr` would count from the end.
        return f"AND {column} > 0 AND substr(?, {column}, 1) = x'01'", [self._seen_by(scope)]

    def _seen_by(self, scope: Scope) -> bytes:
        """A byte for each passage: 1 if the scope lets it through. To gather them takes as long as to search.
        Scopes of turns differ only in what they are without, and share the rest."""
        seen = self._seen.pop(scope, None)
        if seen is None:
            seen = self._without(scope) if scope.without else self._gathered(scope)
        self._seen[scope] = seen
        if len(self._seen) > _SCOPES:
            del self._seen[next(iter(self._seen))]
        return seen

    def _gathered(self, scope: Scope) -> bytes:
        numbers = self._numbers(*_wanted(scope))
        if not numbers:
            return b""
        if min(numbers) < 1 or max(numbers) > _HIGHEST:
            raise IndexBroken("the index holds passages with numbers that tacit does not give")
        seen = bytearray(max(numbers))
        for number in numbers:
            seen[number - 1] = 1
        return bytes(seen)

    def _without(self, scope: Scope) -> bytes:
        seen = bytearray(self._seen_by(dataclasses.replace(scope, without=())))
        paths = list(map(_storable, scope.without))
        for number in self._numbers(f"m.path IN ({_marks(len(paths))})", paths):
            if 0 < number <= len(seen):
                seen[number - 1] = 0
        return bytes(seen)

    def _numbers(self, condition: str, bindings: Sequence[Any]) -> list[int]:
        sql = f"SELECT p.id FROM passages p JOIN knowledge_meta m ON m.id = p.file WHERE {condition}"
        return [number for (number,) in self._db.execute(sql, bindings)]

    # ------------------------------------------------------------ words

    def lexical(self, terms: Sequence[str], scope: Scope, limit: int) -> list[Scored]:
        expression = match(Term(_sought(term)) for term in terms if '"' not in term and term.strip())
        _wanted(scope)
        if not expression:
            return []
        with _explained(), self.unmoving():
            where, bindings = self._filter(scope, "+f.rowid")
            select = (
                f"SELECT f.rowid, -bm25(knowledge_fts, {', '.join(map(str, WEIGHTS))}) AS score"
                f" FROM knowledge_fts f {{join}} WHERE knowledge_fts MATCH ? {where} ORDER BY score DESC"
            )
            found = self._scored(select.format(join="") + " LIMIT ?", expression, *bindings, limit + 1)
            if len(found) > limit and found[limit - 1].score == found[limit].score:
                # Equal scores at the cut: let the order be that of the files, not of how the index grew.
                joined = select.format(
                    join="JOIN passages p ON p.id = f.rowid JOIN knowledge_meta m ON m.id = p.file"
                )
                return self._scored(joined + ", m.path, p.position LIMIT ?", expression, *bindings, limit)
            return self._in_order(found[:limit])

    def _in_order(self, found: list[Scored]) -> list[Scored]:
        """Best first; equal ones in the order of the files."""
        times = Counter([one.score for one in found])
        if len(times) == len(found):
            return found
        equal = [one.id for one in found if times[one.score] > 1]
        sql = (
            "SELECT p.id, m.path, p.position FROM passages p JOIN knowledge_meta m ON m.id = p.file"
            f" WHERE p.id IN ({_marks(len(equal))})"
        )
        rows = self._db.execute(sql, equal)
        places = {number: (path, position) for number, path, position in rows}
        return sorted(found, key=lambda one: (-one.score, places.get(one.id, ("", one.id))))

    def _scored(self, sql: str, *bindings: Any) -> list[Scored]:
        return list(map(Scored._make, self._db.execute(sql, bindings)))

    def frequency(self, term: str, scope: Scope = EVERYTHING) -> float:
        whose = EVERYTHING if scope.audience == "owner" else scope
        _wanted(whose)
        with _reading(), self.unmoving():
            if whose not in self._totals:
                where, bindings = self._filter(whose, "+id")
                counted = self._value(f"SELECT count(*) FROM passages WHERE 1 {where}", *bindings)
                self._totals[whose] = int(counted)
            if (whose, term) not in self._known:
                self._known[whose, term] = self._count(term, whose)
            return self._known[whose, term] / self._totals[whose] if self._totals[whose] else 0.0

    def _count(self, term: str, scope: Scope) -> int:
        """For a term of several words that of its rarest: close enough, and never a search of its own."""
        if scope.is_everything:
            words = {word for *_, word in self._tokens(term)}
            where, bindings = "", list[Any]()
            sql = "SELECT doc FROM knowledge_terms WHERE term = ?"
        else:
            data = term.encode("utf-8", "replace")  # as it was written: the stem of a stem may be another one
            words = {data[start:end].decode() for start, end, _ in self._tokens(term)}
            where, bindings = self._filter(scope, "+rowid")
            sql = f"SELECT count(*) FROM knowledge_fts WHERE knowledge_fts MATCH '\"' || ? || '\"' {where}"
        return min((self._value(sql, word, *bindings) or 0 for word in words), default=0)

    def _tokens(self, text: str) -> list[tuple[int, int, str]]:
        """Words of a text as the index keeps them, with where they stand, counted in bytes."""
        if not text:
            return []
        data = text.encode("utf-8", "replace")
        found: Any = self._tokenizer(data, apsw.FTS5_TOKENIZE_DOCUMENT, None)
        return [(start, end, word) for start, end, word, *_ in found]

    def matched(self, terms: Sequence[str], text: str) -> list[tuple[int, int, str]]:
        if self._sought[0] != tuple(terms):  # the same for all hits of a question
            words = {word: term for term in reversed(terms) for *_, word in self._tokens(term)}
            self._sought = tuple(terms), words
        sought = self._sought[1]
        spans = [(start, end, sought[word]) for start, end, word in self._tokens(text) if word in sought]
        found = spans if text.isascii() else _in_characters(text.encode("utf-8", "replace"), spans)
        found += _symbols(text, set(terms))
        found += [span for term in terms if unspaced(term) for span in _literal(text, term)]
        return _apart(found)

    # ------------------------------------------------------------ vectors

    def nearest(self, vector: bytes, scope: Scope, limit: int) -> list[Scored]:
        _wanted(scope)
        if not self._vectors:
            return []
        with _reading(), self.unmoving():
            found = [row for row in self._alike(vector, scope, limit) if row[1] is not None]  # no direction
            found.sort(key=itemgetter(1), reverse=True)
            end = limit
            while 0 < end < len(found) and found[end][1] == found[end - 1][1]:
                end += 1
            return self._in_order([Scored(number, cosine) for number, cosine, _ in found[:end]])[:limit]

    def _alike(self, vector: bytes, scope: Scope, limit: int) -> list[Any]:
        """The passages whose signs differ least, each with its cosine and by how many signs it differs. Of
        many that differ as much as the last one all are left out: which of them come first depends on how the
        index grew."""
        where, bindings = self._filter(scope, "v.id")
        select = (
            "WITH alike AS MATERIALIZED (SELECT v.id, v.vector,"
            " vec_distance_hamming(vec_bit(v.signs), vec_quantize_binary(vec_int8(?1))) AS far"
            f" FROM knowledge_vec v {{join}} WHERE 1 {where} ORDER BY far {{then}} LIMIT ?)"
            " SELECT alike.id, 1 - vec_distance_cosine(vec_int8(e.vector), vec_int8(?1)), alike.far"
            " FROM alike CROSS JOIN embedded e ON e.id = alike.vector"
        )
        even = _even(vector)
        highest = self._value("SELECT max(id) FROM knowledge_vec") or 0
        count = max(_RESCORED, limit, highest // _ONE_IN)
        found = self._rows(select.format(join="", then=""), even, *bindings, count + 1)
        if len(found) <= count:
            return found
        last = max(map(itemgetter(2), found))
        nearer = [row for row in found if row[2] < last]
        if len(nearer) >= limit:
            return nearer
        joined = select.format(
            join="JOIN passages p ON p.id = v.id JOIN knowledge_meta m ON m.id = p.file",
            then=", m.path, p.position",
        )
        return self._rows(joined, even, *bindings, count)

    def cosines(self, vector: bytes, ids: Collection[int]) -> dict[int, float]:
        if not self._vectors or not ids:
            return {}
        sql = (
            "SELECT v.id, 1 - vec_distance_cosine(vec_int8(e.vector), vec_int8(?)) FROM knowledge_vec v"
            f" CROSS JOIN embedded e ON e.id = v.vector WHERE v.id IN ({_marks(len(ids))})"
        )
        with _explained():
            found = self._db.execute(sql, (_even(vector), *ids))
            return {number: cosine for number, cosine in found if cosine is not None}  # None: no direction

    def background(self) -> list[float]:
        if not self._vectors:
            return []
        # Digests are as good as random, and the same sample comes out however the index grew.
        sql = (
            "WITH some AS MATERIALIZED (SELECT e.digest, e.vector FROM embedded e WHERE e.vector IS NOT NULL"
            " AND EXISTS (SELECT 1 FROM passages p WHERE p.digest = e.digest) ORDER BY e.digest LIMIT ?)"
            " SELECT 1 - vec_distance_cosine(vec_int8(one.vector), vec_int8(other.vector))"
            " FROM some one JOIN some other ON one.digest < other.digest ORDER BY one.digest, other.digest"
        )
        with _reading():
            found = self._db.execute(sql, (_SAMPLE,))
            return [float(cosine) for (cosine,) in found if cosine is not None]

    def vectors_of(self) -> str:
        with _explained():
            if not self._vectors or not self._value("SELECT EXISTS(SELECT 1 FROM knowledge_vec)"):
                return ""
            return str(self._about("embedder"))

    def has_all_vectors(self) -> bool:
        with _reading():
            return bool(self._about("embedded_to") >= (self._value("SELECT max(id) FROM passages") or 0))

    def use_embedder(self, name: str) -> None:
        self._chosen = name
        with _explained():
            if self._about("embedder") == name or not self.writable:
                return
            with self._writing():
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
        with _reading():
            generation, to = self._about("generation"), self._about("embedded_to")
            highest = self._value("SELECT max(id) FROM passages") or 0
            if to >= highest:
                return []
            rows = self._rows(sql, to, limit)
            self._all_have_vectors_to(rows[0][0] - 1 if rows else highest, generation)
            return list(
                {
                    digest: (digest, embedded_text(title, json.loads(section), speaker, text))
                    for _, digest, title, section, speaker, text in rows
                }.values()
            )

    def _all_have_vectors_to(self, passage: int, generation: int) -> None:
        """So that what lacks a vector is looked for among the newest alone. Nothing is said if others wrote
        since: their passages may have lower numbers."""
        self._db.execute(
            "UPDATE about SET value = ? WHERE key = 'embedded_to' AND value < ?"
            " AND (SELECT value FROM about WHERE key = 'generation') = ?",
            (passage, passage, generation),
        )

    def keep(self, vectors: Mapping[bytes, bytes | None]) -> None:
        rows = [(digest, vector and _even(vector)) for digest, vector in vectors.items()]
        with _explained(), self._writing():
            if self._chosen is not None and self._about("embedder") != self._chosen:
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

    def stored(self, ids: Collection[int]) -> dict[int, Stored]:
        sql = (
            "SELECT p.id, p.checksum, p.first_line, p.last_line, p.section, p.day, p.speaker, p.turn, p.text,"
            " m.path, m.category, m.audience, m.agents, m.conversation, m.archived, m.title, m.checksum"
            f" FROM passages p JOIN knowledge_meta m ON m.id = p.file WHERE p.id IN ({_marks(len(ids))})"
        )
        with _reading():
            rows = self._rows(sql, *ids)
            _require_written({row[9:] for row in rows})
            return {row[0]: _stored(row) for row in rows}

    def windows(self, ids: Collection[int]) -> dict[int, str]:
        sql = (
            "SELECT p.id, near.speaker, near.text FROM passages p JOIN passages near ON near.file = p.file"
            " AND near.position BETWEEN p.position - 2 AND p.position + 1"
            f" WHERE p.id IN ({_marks(len(ids))}) AND p.speaker != '' ORDER BY p.id, near.position"
        )
        found: dict[int, list[str]] = {}
        with _reading():
            for number, speaker, text in self._db.execute(sql, tuple(ids)):
                found.setdefault(number, []).append(f"{speaker}: {text}")
        return {number: " ".join(lines) for number, lines in found.items()}

    def around(self, places: Collection[Place], before: int = 0, after: int = 0) -> dict[Place, list[Stored]]:
        sql = (
            "WITH place(path, line) AS (SELECT value ->> 0, value ->> 1 FROM json_each(?1))"
            " SELECT DISTINCT place.path, place.line, near.position, near.id FROM place"
            " JOIN knowledge_meta m ON m.path = place.path"
            " JOIN passages p ON p.file = m.id AND p.first_line = place.line"
            " JOIN passages near ON near.file = p.file"
            " AND near.record BETWEEN p.record - ?2 AND p.record + ?3"
            " AND near.position BETWEEN p.position - ?4 AND p.position + ?4"
            " ORDER BY place.path, place.line, near.position"
        )
        found: dict[Place, list[int]] = {}
        with _reading():
            sought = json.dumps([place for place in places if _storable(place[0]) == place[0]])
            reach = (max(0, before), max(0, after), NEIGHBOURS)
            for path, line, _, number in self._db.execute(sql, (sought, *reach)):
                found.setdefault((path, line), []).append(number)
            stored = self.stored({number for numbers in found.values() for number in numbers})
        return {place: [stored[number] for number in numbers] for place, numbers in found.items()}

    def names(self, scope: Scope = EVERYTHING) -> tuple[str, ...]:
        _wanted(scope)
        with _reading(), self.unmoving():
            if scope not in self._names:
                self._names[scope] = tuple(dict.fromkeys(self._read_names(scope)))
            return self._names[scope]

    def _read_names(self, scope: Scope) -> Iterator[str]:
        where, bindings = self._filter(scope, "+p.id")
        some = f"AND EXISTS (SELECT 1 FROM passages p WHERE p.file = m.id {where})" if where else ""
        sql = (
            "SELECT m.path, m.title FROM knowledge_meta m"
            f" WHERE m.category IN ('person', 'project') {some} ORDER BY m.path"
        )
        for path, title in self._db.execute(sql, bindings):
            yield from _names_of(title, path)

    # ------------------------------------------------------------ links

    def references(self, paths: Collection[str], scope: Scope = EVERYTHING) -> dict[str, int]:
        whose = scope.whose
        _wanted(whose)
        with _reading(), self.unmoving():
            by, seen_by = self._holds("l.file", whose)
            to, seen_to = self._holds("named.file", whose)
            sql = (
                f"{_NAMED} SELECT named.path, count(DISTINCT l.file) FROM named CROSS JOIN links l"
                f" ON l.target = named.name WHERE l.file != named.file {by} {to} GROUP BY 1"
            )
            return dict(self._db.execute(sql, (_json(paths), *seen_by, *seen_to)))

    def neighbours(self, paths: Collection[str], scope: Scope) -> list[Neighbour]:
        _wanted(scope)
        with _reading(), self.unmoving():
            one, seen = self._holds("named.file", scope)
            other, seen_too = self._holds("m.id", scope)
            forward = (
                " CROSS JOIN links l ON l.file = named.file AND named.name = named.path"
                f" CROSS JOIN knowledge_meta m ON m.id IN ({_LEADS_TO})"
            )
            backward = (
                " CROSS JOIN links l ON l.target = named.name CROSS JOIN knowledge_meta m ON m.id = l.file"
            )
            found = [
                Neighbour(path, linked, is_forward)
                for ways, is_forward in ((forward, True), (backward, False))
                for path, linked in self._db.execute(
                    f"{_NAMED} SELECT DISTINCT named.path, m.path FROM named {ways}"
                    f" WHERE m.id != named.file {one} {other}",
                    (_json(paths), *seen, *seen_too),
                )
            ]
            return sorted(found)

    def passages_of(self, paths: Collection[str], scope: Scope, most: int) -> dict[str, list[int]]:
        _wanted(scope)
        with _reading(), self.unmoving():
            where, bindings = self._filter(scope, "+p.id")
            sql = (
                f"{_WANTED} SELECT wanted.path, p.id FROM wanted CROSS JOIN passages p"
                f" ON p.file = wanted.file WHERE p.position < ? {where} ORDER BY wanted.path, p.position"
            )
            found: dict[str, list[int]] = {}
            for path, number in self._db.execute(sql, (_json(paths), most, *bindings)):
                found.setdefault(path, []).append(number)
            return found

    def links(self, scope: Scope = EVERYTHING, path: str | None = None) -> list[Link]:
        _wanted(scope)
        with _reading(), self.unmoving():
            by, seen_by = self._holds("l.file", scope)
            to, seen_to = self._holds("m.id", scope)
            sql = (
                "SELECT s.path, l.line, l.written, l.target, m.path FROM links l"
                " JOIN knowledge_meta s ON s.id = l.file"
                f" LEFT JOIN knowledge_meta m ON m.id IN ({_LEADS_TO}) {to}"
                f" WHERE 1 {by} ORDER BY s.path, l.line, l.target, m.path"
            )
            found: dict[tuple[str, int, str, str], list[str]] = {}
            for source, line, written, target, leads_to in self._db.execute(sql, (*seen_to, *seen_by)):
                targets = found.setdefault((source, line, written, target), [])
                targets += [] if leads_to is None else [leads_to]
        links = (
            Link(source, line, written, tuple(one for one in targets if one != source))
            for (source, line, written, _), targets in found.items()
            if targets != [source]
        )
        return [link for link in links if path is None or path in (link.source, *link.targets)]

    def called(self, name: str, scope: Scope = EVERYTHING) -> list[str]:
        _wanted(scope)
        with _reading(), self.unmoving():
            where, bindings = self._holds("m.id", scope)
            sql = (
                "SELECT path FROM knowledge_meta m WHERE (path = ?"
                f" OR id IN (SELECT file FROM called WHERE name = ?)) {where} ORDER BY path"
            )
            sought = (_storable(name), _storable(called(name)), *bindings)
            return [path for (path,) in self._db.execute(sql, sought)]

    def notes(self, scope: Scope = EVERYTHING) -> list[str]:
        _wanted(scope)
        with _reading(), self.unmoving():
            where, bindings = self._holds("m.id", scope)
            sql = f"SELECT path FROM knowledge_meta m WHERE category != 'conversation' {where} ORDER BY path"
            return [path for (path,) in self._db.execute(sql, bindings)]

    def _holds(self, column: str, scope: Scope) -> tuple[str, list[Any]]:
        """`AND …` with the number of a file that has a passage in the scope."""
        where, bindings = self._filter(scope, "+p.id")
        some = f"AND EXISTS (SELECT 1 FROM passages p WHERE p.file = {column} {where})" if where else ""
        return some, bindings

    def facts(self) -> Facts:
        with _reading():
            about = dict(self._db.execute("SELECT key, value FROM about"))
            files, passages, embedded = (
                self._value(f"SELECT count(*) FROM {table}")
                for table in ("knowledge_meta", "passages", "knowledge_vec")
            )
            return Facts(files, passages, embedded, about["generation"], about["embedder"])

    def generation(self) -> int:
        with _reading():
            return self._about("generation")  # type: ignore[no-any-return]

    def close(self) -> None:
        self._db.close()


# ---------------------------------------------------------------- the connection


def _connected(file: Path) -> tuple[apsw.Connection, bool]:
    """For writing where that is possible; a home on a read-only disk can still be searched."""
    # Not made here: SQLite would let everybody read it.
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    try:
        db = apsw.Connection(_uri(file), flags=flags)
        db.set_busy_timeout(_PATIENCE)
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
    """Takes any path, also one that is no UTF-8."""
    if str(file) == ":memory:":
        return "file::memory:"
    return "file://" + "".join(
        f"%{byte:02x}" if chr(byte) in "%?#" or byte > 126 else chr(byte)
        for byte in os.fsencode(file.absolute())
    )


def _load_vectors(db: apsw.Connection) -> bool:
    """sqlite-vec without importing it: it would import numpy. Without it there are words alone."""
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


def _json(paths: Iterable[str]) -> str:
    return json.dumps(list(map(_storable, paths)))


def _even(vector: bytes) -> bytes:
    """With so many zeros that signs fill whole bytes. They change no cosine."""
    return vector + bytes(-len(vector) % 8)


def _sought(term: str) -> str:
    """What the database refuses stands in no text of ours either."""
    return _storable(term).replace("\0", " ")


def _marks(count: int) -> str:
    return ", ".join("?" * count)


def _meta_row(number: int, document: Document, stamp: Stamp) -> tuple[Any, ...]:
    seen = _visible(document)
    tags = json.dumps(document.tags, ensure_ascii=False)
    path, category, audience, agents, conversation, archived, title = seen
    return (
        number, path, category, _storable(document.day), title, _storable(tags), document.lines, audience,
        agents, conversation, archived, *map(_signed, stamp), _checksum(seen),
    )  # fmt: skip


def _signed(number: int) -> int:
    """The database has 64 bits with a sign. Some file systems need all of them for an inode, and a time may
    be in the year 2300."""
    return number - 2**64 if number >= 2**63 else number


def _stamp(mtime_ns: int, size: int, inode: int) -> Stamp:
    return Stamp(
        mtime_ns + 2**64 if mtime_ns < -(2**62) else mtime_ns,
        size,
        inode + 2**64 if inode < -1 else inode,
    )


def _visible(document: Document) -> tuple[str, str, int, str, str, int, str]:
    """What decides who sees a file, and is shown of it."""
    return (
        document.path,
        document.category,
        AUDIENCES.index(document.audience),
        "".join(map(_agent, document.agents)),
        _exact(document.conversation),
        int(document.archived),
        _storable(document.title),
    )


def _agent(name: str) -> str:
    """As it is kept and looked for among others: no name can pass for two, or for a part of one."""
    return f"\n{json.dumps(name)}\n"


def _exact(text: str) -> str:
    """For texts that are compared: what the database does not take must not become equal to anything."""
    return json.dumps(text) if text else ""


def _checksum(seen: tuple[Any, ...]) -> int:
    return zlib.crc32(repr(seen).encode("utf-8", "surrogatepass"))


def _storable(text: str) -> str:
    """The database takes UTF-8 alone. Other bytes come back as the replacement character."""
    return text if text.isascii() else _HALF.sub("\ufffd", text)


def _passage_rows(ids: range, file: int, document: Document) -> Iterator[tuple[Any, ...]]:
    title = _storable(document.title)
    record, turn = -1, 0
    for position, (number, passage) in enumerate(zip(ids, document.passages, strict=True)):
        record += not passage.turn or passage.turn != turn  # a long message is several passages
        turn = passage.turn
        text, speaker = _storable(passage.text), _storable(passage.speaker)
        section = tuple(map(_storable, passage.section))
        headings = json.dumps(section, ensure_ascii=False) if section else "[]"
        lines = (passage.first_line, passage.last_line)
        shown = (*lines, headings, _storable(passage.day), speaker, passage.turn, text)
        digest = _digest(title, section, speaker, text)
        yield number, file, position, record, digest, *shown, _checksum((document.path, *shown))


def _digest(title: str, section: Sequence[str], speaker: str, text: str) -> bytes:
    return blake2b(embedded_text(title, section, speaker, text).encode(), digest_size=16).digest()


def _word_rows(ids: range, document: Document) -> Iterator[tuple[int, str, str, str, str]]:
    passages = document.passages
    texts = [indexable(passage.text) for passage in passages]
    for at, (number, passage) in enumerate(zip(ids, passages, strict=True)):
        first, last = passage.near
        before = _FAR_APART.join(texts[first:at])
        after = _FAR_APART.join(texts[at + 1 : last])
        yield number, _body(passage, texts[at]), before, after, _heading(document, passage)


def _body(passage: Passage, text: str) -> str:
    """People ask for what somebody said on a day, so a turn is found by both."""
    if not passage.speaker:
        return text
    return f"{_in_words(passage.day)} {indexable(passage.speaker)}: {text}"


def _in_words(day: str) -> str:
    try:
        return f"{date.fromisoformat(day):%d %B %Y}"
    except ValueError:
        return ""


def _heading(document: Document, passage: Passage) -> str:
    if passage.speaker:
        return ""
    name = _stem(document.path.rpartition("/")[2])
    above = (document.title, *passage.section, name, *document.tags)
    return indexable(_FAR_APART.join(dict.fromkeys(above)))


def _stem(name: str) -> str:
    """Without its ending; all of a name that has none."""
    return name.rpartition(".")[0] or name


def _require_written(files: Iterable[tuple[Any, ...]]) -> None:
    """What is shown is checked against what was written: a flipped bit must not put words into somebody's
    mouth, nor a file before somebody's eyes."""
    for *seen, checksum in files:
        if _checksum(tuple(seen)) != checksum:
            raise IndexBroken("the index holds a file that was not written by tacit")


def _stored(row: tuple[Any, ...]) -> Stored:
    number, checksum, first, last, section, day, speaker, turn, text = row[:9]
    path, category, audience, _, _, archived, title, _ = row[9:]
    if _checksum((path, first, last, section, day, speaker, turn, text)) != checksum:
        raise IndexBroken("the index holds text that was not written by tacit")
    passage = Passage(text, first, last, _headings(section), day, speaker, turn, (0, 0))
    return Stored(number, path, title, category, AUDIENCES[audience], bool(archived), passage)


@lru_cache(maxsize=1024)
def _headings(section: str) -> tuple[str, ...]:
    return tuple(json.loads(section))


def _names_of(title: str, path: str) -> list[str]:
    """What people call it: the title of its file, and the folder of a project or the name of the file."""
    parts = path.split("/")
    name = parts[-2] if path.startswith("knowledge/projects/") and len(parts) > 3 else _stem(parts[-1])
    name = project_of(split(path)[1]) or name
    return [found for found in (title, name.replace("-", " ").replace("_", " ").strip()) if len(found) > 1]


def _in_characters(data: bytes, spans: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Spans in their order, counted in bytes, counted in characters."""
    found = []
    at = counted = 0
    for start, end, term in spans:
        first = counted + len(data[at:start].decode("utf-8", "replace"))
        at, counted = end, first + len(data[start:end].decode("utf-8", "replace"))
        found.append((first, counted, term))
    return found


def _symbols(text: str, terms: set[str]) -> Iterator[tuple[int, int, str]]:
    """Names such as `C++`, which are indexed under another word."""
    for alias in aliases(text):
        if alias.word in terms:
            length = next(
                (at for at, ch in enumerate(text[alias.start :]) if ch.isspace()), len(text) - alias.start
            )
            yield alias.start, alias.start + length, alias.word


def _literal(text: str, term: str) -> Iterator[tuple[int, int, str]]:
    at = text.find(term)
    while at >= 0:
        yield at, at + len(term), term
        at = text.find(term, at + 1)


def _apart(spans: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """In order, without those that overlap an earlier one."""
    kept: list[tuple[int, int, str]] = []
    for span in sorted(spans):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept


# ---------------------------------------------------------------- what a scope lets through


@lru_cache(maxsize=64)
def _wanted(scope: Scope) -> tuple[str, tuple[Any, ...]]:
    """As a condition with what is bound to it. Every question begins with it: a scope that makes no sense is
    the mistake of who asks, and no sign that the index is broken."""
    conditions, bindings = ["1"], list[Any]()
    for condition, values in _conditions(scope):
        conditions.append(condition)
        bindings += values
    wrong = [value for value in (*bindings, *scope.without) if not isinstance(value, str | int | bytes)]
    if wrong:
        raise TypeError(f"{wrong[0]!r} in a scope")
    return " AND ".join(conditions), tuple(bindings)


def _conditions(scope: Scope) -> Iterator[tuple[str, list[Any]]]:
    """All but the paths that it is without."""
    if scope.categories:
        yield f"m.category IN ({_marks(len(scope.categories))})", list(scope.categories)
    if scope.audience != "owner":
        yield (
            "(m.audience <= ? OR (m.conversation != '' AND m.conversation = ?))",
            [AUDIENCES.index(scope.audience), _exact(scope.conversation)],
        )
    if scope.agents:
        own = " OR ".join("instr(m.agents, ?)" for _ in scope.agents)
        yield f"(m.agents = '' OR {own})", list(map(_agent, scope.agents))
    if scope.since:
        yield "p.day >= ?", [scope.since.isoformat()]
    if scope.until:
        yield "p.day <= ? AND p.day != ''", [scope.until.isoformat()]
    if scope.under:
        under = scope.under.encode("utf-8", "surrogatepass")
        yield "substr(CAST(m.path AS BLOB), 1, ?) = ?", [len(under), under]
    if scope.archived is not None:
        yield "m.archived = ?", [int(scope.archived)]

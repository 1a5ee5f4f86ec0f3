"""The three ways to search an index in SQLite: by words, by vectors, and along links.

Vectors use sqlite-vec's functions but not its tables: a scan of signs in an ordinary table with a filter in
the same statement is faster than its own index at our sizes, and any SQL filter applies before ranking. The
signs of all vectors are compared first, then the best few by their real values.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import apsw

from tacit.markdown.links import link_target
from tacit.search.documents import embedded_text
from tacit.search.index import IndexUnavailable
from tacit.search.model import EVERYTHING, Link, Neighbour, Scope, Scored
from tacit.search.query import Term, match_expression
from tacit.search.sqlite.connection import (
    FILES_CTE,
    TOKENIZER,
    SqliteConnection,
    paths_json,
    placeholders,
    scope_condition,
    to_utf8,
    translate_errors,
    translate_read_errors,
)
from tacit.search.weights import COLUMN_WEIGHTS, MIN_RESCORED, RESCORED_DIVISOR
from tacit.text.words import find_aliases, is_unspaced

_SAMPLE_SIZE = 64  # texts whose cosines to each other are measured

# Files with the names that links use for them.
_NAMES_CTE = (
    f"{FILES_CTE}, named(path, file, name) AS MATERIALIZED (SELECT path, file, path FROM wanted"
    " UNION ALL SELECT path, wanted.file, name FROM wanted CROSS JOIN called c ON c.file = wanted.file)"
)
_LINK_TARGETS = (  # of a link l
    "SELECT file FROM called WHERE name = l.target"
    " UNION ALL SELECT id FROM knowledge_meta WHERE path = l.target"
)


class SqliteWords:
    """Text is passed through `prepare_document` before it is stored, so the table of words sees what
    `matches` and queries see."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._db = connection
        self._tokenizer = connection.handle.fts5_tokenizer(TOKENIZER[0], [*TOKENIZER[1:]])
        self._words_sought: tuple[tuple[str, ...], dict[str, str]] = ((), {})

    def search(self, terms: Sequence[str], scope: Scope, limit: int) -> list[Scored]:
        # What the database refuses is replaced: stored text does not contain it either.
        expression = match_expression(
            Term(to_utf8(term).replace("\0", " ")) for term in terms if '"' not in term and term.strip()
        )
        scope_condition(scope)
        if not expression:
            return []
        with translate_errors(), self._db.unmoving():
            clause, bindings = self._db.scope_clause(scope, "+f.rowid")
            select = (
                f"SELECT f.rowid, -bm25(knowledge_fts, {', '.join(map(str, COLUMN_WEIGHTS))}) AS score"
                f" FROM knowledge_fts f {{join}} WHERE knowledge_fts MATCH ? {clause} ORDER BY score DESC"
            )
            sql = select.format(join="") + " LIMIT ?"
            rows = self._db.execute(sql, (expression, *bindings, limit + 1))
            hits = list(map(Scored._make, rows))
            if len(hits) > limit and hits[limit - 1].score == hits[limit].score:
                # Equal scores at the cut: order by file, so that the index's history makes no difference.
                joined = select.format(
                    join="JOIN passages p ON p.id = f.rowid JOIN knowledge_meta m ON m.id = p.file"
                )
                sql = joined + ", m.path, p.position LIMIT ?"
                return list(map(Scored._make, self._db.execute(sql, (expression, *bindings, limit))))
            return self._db.sort(hits[:limit])

    def frequency(self, term: str, scope: Scope = EVERYTHING) -> float:
        counted = EVERYTHING if scope.audience == "owner" else scope
        with self._db.reading(counted):
            cache = self._db.cache
            if counted not in cache.totals:
                clause, bindings = self._db.scope_clause(counted, "+id")
                count = self._db.value(f"SELECT count(*) FROM passages WHERE 1 {clause}", *bindings)
                cache.totals[counted] = int(count)
            if (counted, term) not in cache.frequencies:
                cache.frequencies[counted, term] = self._count(term, counted)
            return cache.frequencies[counted, term] / cache.totals[counted] if cache.totals[counted] else 0.0

    def _count(self, term: str, scope: Scope) -> int:
        """For a term of several words, the count of its rarest word: close enough, and it needs no search."""
        if scope == EVERYTHING:
            words = {word for *_, word in self._tokenize(term)}
            clause, bindings = "", list[Any]()
            sql = "SELECT doc FROM knowledge_terms WHERE term = ?"
        else:
            data = term.encode("utf-8", "replace")  # the original words: the stem of a stem may differ
            words = {data[start:end].decode() for start, end, _ in self._tokenize(term)}
            clause, bindings = self._db.scope_clause(scope, "+rowid")
            sql = f"SELECT count(*) FROM knowledge_fts WHERE knowledge_fts MATCH '\"' || ? || '\"' {clause}"
        return min((self._db.value(sql, word, *bindings) or 0 for word in words), default=0)

    def _tokenize(self, text: str) -> list[tuple[int, int, str]]:
        """Words of a text as the index stores them, with their offsets in bytes."""
        if not text:
            return []
        data = text.encode("utf-8", "replace")
        tokens: Any = self._tokenizer(data, apsw.FTS5_TOKENIZE_DOCUMENT, None)
        return [(start, end, word) for start, end, word, *_ in tokens]

    def matches(self, terms: Sequence[str], text: str) -> list[tuple[int, int, str]]:
        if self._words_sought[0] != tuple(terms):  # the same for all hits of a query
            words = {word: term for term in reversed(terms) for *_, word in self._tokenize(term)}
            self._words_sought = tuple(terms), words
        sought = self._words_sought[1]
        spans = [(start, end, sought[word]) for start, end, word in self._tokenize(text) if word in sought]
        matches = spans if text.isascii() else _to_character_offsets(text.encode("utf-8", "replace"), spans)
        matches += _match_symbols(text, set(terms))
        matches += [span for term in terms if is_unspaced(term) for span in _match_literal(text, term)]
        return _drop_overlaps(matches)


class SqliteVectors:
    def __init__(self, connection: SqliteConnection) -> None:
        self._db = connection
        self._embedder: str | None = None  # the embedder that this connection holds vectors of

    def nearest(self, vector: bytes, scope: Scope, limit: int) -> list[Scored]:
        scope_condition(scope)
        if not self._db.has_vectors:
            return []
        with translate_read_errors(), self._db.unmoving():
            rows = [
                row for row in self._nearest_by_signs(vector, scope, limit) if row[1] is not None
            ]  # no direction
            rows.sort(key=itemgetter(1), reverse=True)
            end = limit
            while 0 < end < len(rows) and rows[end][1] == rows[end - 1][1]:
                end += 1
            return self._db.sort([Scored(number, cosine) for number, cosine, _ in rows[:end]])[:limit]

    def _nearest_by_signs(self, vector: bytes, scope: Scope, limit: int) -> list[Any]:
        """The chunks whose signs differ least, each with its cosine and the number of signs that differ. If
        too many tie for the last place, all of those are left out: which come first would depend on the
        index's history."""
        clause, bindings = self._db.scope_clause(scope, "v.id")
        select = (
            "WITH alike AS MATERIALIZED (SELECT v.id, v.vector,"
            " vec_distance_hamming(vec_bit(v.signs), vec_quantize_binary(vec_int8(?1))) AS far"
            f" FROM knowledge_vec v {{join}} WHERE 1 {clause} ORDER BY far {{then}} LIMIT ?)"
            " SELECT alike.id, 1 - vec_distance_cosine(vec_int8(e.vector), vec_int8(?1)), alike.far"
            " FROM alike CROSS JOIN embedded e ON e.id = alike.vector"
        )
        padded = _pad(vector)
        highest = self._db.value("SELECT max(id) FROM knowledge_vec") or 0
        count = max(MIN_RESCORED, limit, highest // RESCORED_DIVISOR)
        rows = list(self._db.execute(select.format(join="", then=""), (padded, *bindings, count + 1)))
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
        return list(self._db.execute(joined, (padded, *bindings, count)))

    def cosines(self, vector: bytes, ids: Collection[int]) -> dict[int, float]:
        if not self._db.has_vectors or not ids:
            return {}
        sql = (
            "SELECT v.id, 1 - vec_distance_cosine(vec_int8(e.vector), vec_int8(?)) FROM knowledge_vec v"
            f" CROSS JOIN embedded e ON e.id = v.vector WHERE v.id IN ({placeholders(len(ids))})"
        )
        with translate_errors():
            rows = self._db.execute(sql, (_pad(vector), *ids))
            return {number: cosine for number, cosine in rows if cosine is not None}  # None: no direction

    def sample_cosines(self) -> list[float]:
        if not self._db.has_vectors:
            return []
        # Digests are as good as random, and the sample does not depend on the history of the index.
        sql = (
            "WITH some AS MATERIALIZED (SELECT e.digest, e.vector FROM embedded e WHERE e.vector IS NOT NULL"
            " AND EXISTS (SELECT 1 FROM passages p WHERE p.digest = e.digest) ORDER BY e.digest LIMIT ?)"
            " SELECT 1 - vec_distance_cosine(vec_int8(one.vector), vec_int8(other.vector))"
            " FROM some one JOIN some other ON one.digest < other.digest ORDER BY one.digest, other.digest"
        )
        with translate_read_errors():
            rows = self._db.execute(sql, (_SAMPLE_SIZE,))
            return [float(cosine) for (cosine,) in rows if cosine is not None]

    def embedder_name(self) -> str:
        with translate_errors():
            if not self._db.has_vectors or not self._db.value("SELECT EXISTS(SELECT 1 FROM knowledge_vec)"):
                return ""
            return str(self._db.about("embedder"))

    def is_complete(self) -> bool:
        with translate_read_errors():
            return bool(
                self._db.about("embedded_to") >= (self._db.value("SELECT max(id) FROM passages") or 0)
            )

    def use_embedder(self, name: str) -> None:
        self._embedder = name
        with translate_errors():
            if self._db.about("embedder") == name or not self._db.writable:
                return
            with self._db.write():
                self._db.execute("DELETE FROM knowledge_vec; DELETE FROM embedded")
                self._db.execute("UPDATE about SET value = ? WHERE key = 'embedder'", (name,))
                self._db.execute("UPDATE about SET value = 0 WHERE key = 'embedded_to'")

    def list_unembedded(self, limit: int) -> list[tuple[bytes, str]]:
        if not self._db.has_vectors or not self._db.writable:
            return []
        sql = (
            "SELECT p.id, p.digest, m.title, p.section, p.speaker, p.text FROM passages p"
            " JOIN knowledge_meta m ON m.id = p.file WHERE p.id > ?"
            " AND p.digest NOT IN (SELECT digest FROM embedded) ORDER BY p.id LIMIT ?"
        )
        with translate_read_errors():
            generation, embedded_to = self._db.about("generation"), self._db.about("embedded_to")
            highest = self._db.value("SELECT max(id) FROM passages") or 0
            if embedded_to >= highest:
                return []
            rows = self._db.execute(sql, (embedded_to, limit)).fetchall()
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

    def store(self, vectors: Mapping[bytes, bytes | None]) -> None:
        rows = [(digest, vector and _pad(vector)) for digest, vector in vectors.items()]
        with self._db.write():
            if self._embedder is not None and self._db.about("embedder") != self._embedder:
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


class SqliteLinks:
    def __init__(self, connection: SqliteConnection) -> None:
        self._db = connection

    def count_references(self, paths: Collection[str], scope: Scope = EVERYTHING) -> dict[str, int]:
        # Everything that the caller may see, without the other filters of the search.
        counted_scope = Scope(audience=scope.audience, conversation=scope.conversation, agents=scope.agents)
        with self._db.reading(counted_scope):
            source, source_values = self._db.file_clause(counted_scope, "l.file")
            target, target_values = self._db.file_clause(counted_scope, "named.file")
            sql = (
                f"{_NAMES_CTE} SELECT named.path, count(DISTINCT l.file) FROM named CROSS JOIN links l"
                f" ON l.target = named.name WHERE l.file != named.file {source} {target} GROUP BY 1"
            )
            return dict(self._db.execute(sql, (paths_json(paths), *source_values, *target_values)))

    def neighbours(self, paths: Collection[str], scope: Scope) -> Sequence[Neighbour]:
        with self._db.reading(scope):
            note_clause, note_bindings = self._db.file_clause(scope, "named.file")
            linked_clause, linked_bindings = self._db.file_clause(scope, "m.id")
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
                    (paths_json(paths), *note_bindings, *linked_bindings),
                )
            ]
            return sorted(neighbours)

    def list(self, scope: Scope = EVERYTHING, path: str | None = None) -> Sequence[Link]:
        with self._db.reading(scope):
            source_clause, source_values = self._db.file_clause(scope, "l.file")
            target_clause, target_values = self._db.file_clause(scope, "m.id")
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

    def resolve(self, name: str, scope: Scope = EVERYTHING) -> Sequence[str]:
        with self._db.reading(scope):
            clause, bindings = self._db.file_clause(scope, "m.id")
            sql = (
                "SELECT path FROM knowledge_meta m WHERE (path = ?"
                f" OR id IN (SELECT file FROM called WHERE name = ?)) {clause} ORDER BY path"
            )
            parameters = (to_utf8(name), to_utf8(link_target(name)), *bindings)
            return [path for (path,) in self._db.execute(sql, parameters)]


def _pad(vector: bytes) -> bytes:
    """Pad with zeros so that signs fill whole bytes. Cosines stay the same."""
    return vector + bytes(-len(vector) % 8)


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

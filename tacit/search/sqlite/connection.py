"""The connection to an index in one SQLite file, through apsw, which brings a current SQLite with it.

The tables:

    knowledge_meta   one row for each file
    passages         one row for each chunk, with its text
    knowledge_fts    the words of each chunk and of its surroundings; stores no text
    knowledge_vec    the signs of each chunk's vector, 32 bytes instead of 256: what a query scans
    links            the targets of a note's links, by path or by name
    called           the names that links may use for a note: together with `links`, which note links to which
    embedded         vectors by the digest of their text, so that no text is embedded twice
    about            generation, embedder, the last chunk up to which all have vectors, a schema checksum

The chunks that a scope allows are computed once, as a mask with one byte per chunk, and cached until the
index changes. Statements check the mask before they rank. Ids of removed chunks are reused, so every query
runs inside a transaction, in which the index cannot change.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import apsw

from tacit.deadline import is_over
from tacit.privacy.audience import AUDIENCES
from tacit.search.index import IndexBroken, IndexTimeout, IndexUnavailable
from tacit.search.model import EVERYTHING, Scope, Scored

APPLICATION_ID = 0x74616369  # "taci" in the header of the file
SCHEMA_VERSION = 7  # raise it when the schema changes, or the way in which chunks are made from files
TOKENIZER = ("porter", "unicode61", "remove_diacritics", "2")

_LOCK_TIMEOUT_MS = 5_000  # to wait for another process that is writing
_MAX_CACHED_SCOPES = 4  # scopes whose masks are cached
_MAX_CHUNK_ID = 2**26  # higher ids come from flipped bits, or the index is full of holes
_PROGRESS_STEPS = 2_000  # SQLite's steps between two checks of the deadline: about every 0.1 ms
_SURROGATE = re.compile("[\ud800-\udfff]")

TABLES = f"""
CREATE TABLE about(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE knowledge_meta(
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL UNIQUE,
  category TEXT NOT NULL,
  modified TEXT NOT NULL,
  title TEXT NOT NULL,
  tags TEXT NOT NULL,
  line_count INTEGER NOT NULL,
  audience INTEGER NOT NULL,
  agents TEXT NOT NULL,
  conversation TEXT NOT NULL,
  archived INTEGER NOT NULL,
  mtime_ns INTEGER NOT NULL,
  size INTEGER NOT NULL,
  inode INTEGER NOT NULL,
  checksum INTEGER NOT NULL
);
CREATE INDEX idx_meta_category ON knowledge_meta(category);
CREATE INDEX idx_meta_modified ON knowledge_meta(modified);
CREATE TABLE passages(
  id INTEGER PRIMARY KEY,
  file INTEGER NOT NULL,
  position INTEGER NOT NULL,
  record INTEGER NOT NULL,
  digest BLOB NOT NULL,
  first_line INTEGER NOT NULL,
  last_line INTEGER NOT NULL,
  section TEXT NOT NULL,
  day TEXT NOT NULL,
  speaker TEXT NOT NULL,
  turn INTEGER NOT NULL,
  text TEXT NOT NULL,
  checksum INTEGER NOT NULL,
  UNIQUE(file, position)
);
CREATE INDEX idx_passages_digest ON passages(digest);
CREATE INDEX idx_passages_line ON passages(file, first_line, record, position);
CREATE INDEX idx_passages_record ON passages(file, record, position);
CREATE TABLE links(
  target TEXT NOT NULL,
  file INTEGER NOT NULL,
  written TEXT NOT NULL,
  line INTEGER NOT NULL,
  PRIMARY KEY(target, file)
) WITHOUT ROWID;
CREATE INDEX idx_links_file ON links(file);
CREATE TABLE called(name TEXT NOT NULL, file INTEGER NOT NULL, PRIMARY KEY(name, file)) WITHOUT ROWID;
CREATE INDEX idx_called_file ON called(file);
CREATE VIRTUAL TABLE knowledge_fts USING fts5(
  body, before, after, heading, content='', contentless_delete=1, tokenize='{" ".join(TOKENIZER)}'
);
CREATE VIRTUAL TABLE knowledge_terms USING fts5vocab(knowledge_fts, row);
CREATE TABLE knowledge_vec(id INTEGER PRIMARY KEY, vector INTEGER NOT NULL, signs BLOB NOT NULL);
CREATE TABLE embedded(id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, vector BLOB);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""

# Files by their paths, in JSON; and each with its path and the names that links use for it. CROSS JOIN keeps
# this order: start from the few requested files instead of scanning all links.
FILES_CTE = (
    "WITH wanted(path, file) AS MATERIALIZED (SELECT m.path, m.id FROM json_each(?) CROSS JOIN"
    " knowledge_meta m ON m.path = json_each.value)"
)
_BROKEN_ERRORS = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError, apsw.SchemaChangeError)
_UNAVAILABLE_ERRORS = (
    apsw.BusyError, apsw.LockedError, apsw.ReadOnlyError, apsw.FullError, apsw.IOError, apsw.CantOpenError,
    apsw.PermissionsError, apsw.NoLFSError, apsw.AuthError,
)  # fmt: skip


@contextmanager
def translate_errors() -> Iterator[None]:
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
def translate_read_errors() -> Iterator[None]:
    """Also report values that we never write: a flipped bit makes invalid UTF-8, or NULL of a number."""
    with translate_errors():
        try:
            yield
        except (ValueError, TypeError, LookupError) as error:
            raise IndexBroken(f"the index is not what it should be ({error})") from error


class TimeLimit:
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


@dataclasses.dataclass(slots=True)
class StateCache:
    """Caches per scope, valid for one generation of the index."""

    generation: int = -1  # -1: only until the next query
    frequencies: dict[tuple[Scope, str], int] = dataclasses.field(default_factory=dict)
    totals: dict[Scope, int] = dataclasses.field(default_factory=dict)
    names: dict[Scope, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    masks: dict[Scope, bytes] = dataclasses.field(default_factory=dict)  # the most recently used one last


class SqliteConnection:
    """One connection to the file: its transactions, and which chunks a scope allows."""

    def __init__(self, file: Path) -> None:
        with translate_read_errors():
            self.handle, self.writable = _open_database(file)
            self.execute: Callable[..., Any] = self.handle.execute
            self.executemany = self.handle.executemany
            self.has_vectors = _load_vectors(self.handle)
            if self.writable:
                self.execute("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL")
            # Memory mapping would be a tenth faster, but if the file is truncated while it is open, that
            # kills the process instead of raising an error.
            self.execute("PRAGMA mmap_size=0; PRAGMA cache_size=-16000")
            self._require_schema()
            self.time_limit = TimeLimit()
            self.handle.set_progress_handler(self.time_limit.is_over, _PROGRESS_STEPS)
            self.handle.set_busy_handler(self.time_limit.keep_waiting)
        self.cache = StateCache()
        self._is_unmoving = False

    def _require_schema(self) -> None:
        if self.writable and self._is_blank():
            self.execute("BEGIN IMMEDIATE")
            with self._commit_or_roll_back():
                if self._is_blank():  # another process may have made it meanwhile
                    self.execute(TABLES)
                    self.execute(
                        "INSERT INTO about VALUES"
                        " ('generation', 0), ('embedded_to', 0), ('embedder', ''), ('tables', ?)",
                        (self._schema_checksum(),),
                    )
        application, version = self.value("PRAGMA application_id"), self.value("PRAGMA user_version")
        if application != APPLICATION_ID:
            raise IndexBroken("the file is not an index of tacit")
        if version != SCHEMA_VERSION:
            raise IndexBroken(f"the index is of version {version}, this tacit has {SCHEMA_VERSION}")
        keys = {key for (key,) in self.execute("SELECT key FROM about")}
        if (
            keys != {"generation", "embedded_to", "embedder", "tables"}
            or self.about("tables") != self._schema_checksum()
        ):
            raise IndexBroken("the index does not know what it holds")

    def _schema_checksum(self) -> int:
        """Changes with the definition of any table: one letter in it can change how words are matched."""
        return checksum(tuple(self.execute("SELECT name, sql FROM sqlite_schema ORDER BY name")))

    def _is_blank(self) -> bool:
        return self.value("PRAGMA application_id") == 0 and not self.value(
            "SELECT count(*) FROM sqlite_schema"
        )

    def about(self, key: str) -> Any:
        return self.value("SELECT value FROM about WHERE key = ?", key)

    def value(self, sql: str, *bindings: Any) -> Any:
        row = next(iter(self.execute(sql, bindings)), None)
        return row[0] if row else None

    def close(self) -> None:
        self.handle.close()

    # ------------------------------------------------------------ transactions

    @contextmanager
    def until(self, deadline: float | None) -> Iterator[None]:
        previous, self.time_limit.deadline = self.time_limit.deadline, deadline
        try:
            yield
        finally:
            self.time_limit.deadline = previous

    @contextmanager
    def unmoving(self) -> Iterator[None]:
        if self._is_unmoving:
            yield
        elif (
            self.handle.in_transaction
        ):  # this connection writes: the next statement may change what is there
            self.cache = StateCache()
            yield
        else:
            with translate_read_errors():
                self.execute("BEGIN")
            try:
                with translate_read_errors():
                    generation = self.about("generation")
                    if generation != self.cache.generation:
                        self.cache = StateCache(generation)
                self._is_unmoving = True
                yield
            finally:
                self._is_unmoving = False
                with translate_errors():
                    if not self.handle.getautocommit():
                        self.execute("ROLLBACK")

    @contextmanager
    def write(self) -> Iterator[None]:
        """A transaction that raises the generation."""
        with translate_errors():
            self.execute("BEGIN IMMEDIATE")
            with self._commit_or_roll_back():
                yield
                self.execute("UPDATE about SET value = value + 1 WHERE key = 'generation'")

    @contextmanager
    def _commit_or_roll_back(self) -> Iterator[None]:
        """Commit the open transaction, or roll it back if the block fails."""
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self.handle.in_transaction:
                self.execute("ROLLBACK")
            raise

    # ------------------------------------------------------------ scopes

    @contextmanager
    def reading(self, scope: Scope) -> Iterator[None]:
        """For one query: an invalid scope is the caller's mistake and does not mean that the index is
        broken."""
        scope_condition(scope)
        with translate_read_errors(), self.unmoving():
            yield

    def scope_clause(self, scope: Scope, column: str) -> tuple[str, list[Any]]:
        """`AND …` on the id of a chunk, or nothing for the owner's view of everything."""
        if scope == EVERYTHING:
            return "", []
        # Flipped bits can make an id 0 or negative, and `substr` would count from the end.
        return f"AND {column} > 0 AND substr(?, {column}, 1) = x'01'", [self._mask(scope)]

    def file_clause(self, scope: Scope, column: str) -> tuple[str, list[Any]]:
        """`AND …` on the id of a file that has a chunk in the scope."""
        clause, bindings = self.scope_clause(scope, "+p.id")
        exists = f"AND EXISTS (SELECT 1 FROM passages p WHERE p.file = {column} {clause})" if clause else ""
        return exists, bindings

    def _mask(self, scope: Scope) -> bytes:
        """A byte for each chunk: 1 if the scope allows it. Building a mask takes as long as a search. The
        scopes of turns differ only in `without` and share the rest."""
        masks = self.cache.masks
        mask = masks.pop(scope, None)
        if mask is None:
            mask = self._mask_without(scope) if scope.without else self._build_mask(scope)
        masks[scope] = mask
        if len(masks) > _MAX_CACHED_SCOPES:
            del masks[next(iter(masks))]
        return mask

    def _build_mask(self, scope: Scope) -> bytes:
        numbers = self._chunk_ids(*scope_condition(scope))
        if not numbers:
            return b""
        if min(numbers) < 1 or max(numbers) > _MAX_CHUNK_ID:
            raise IndexBroken("the index holds passages with numbers that tacit does not give")
        mask = bytearray(max(numbers))
        for number in numbers:
            mask[number - 1] = 1
        return bytes(mask)

    def _mask_without(self, scope: Scope) -> bytes:
        mask = bytearray(self._mask(dataclasses.replace(scope, without=())))
        paths = list(map(to_utf8, scope.without))
        for number in self._chunk_ids(f"m.path IN ({placeholders(len(paths))})", paths):
            if 0 < number <= len(mask):
                mask[number - 1] = 0
        return bytes(mask)

    def _chunk_ids(self, condition: str, bindings: Sequence[Any]) -> list[int]:
        sql = f"SELECT p.id FROM passages p JOIN knowledge_meta m ON m.id = p.file WHERE {condition}"
        return [number for (number,) in self.execute(sql, bindings)]

    # ------------------------------------------------------------ order

    def sort(self, hits: list[Scored]) -> list[Scored]:
        """Best first; equal scores in the order of the files, so that the history of the index makes no
        difference."""
        counts = Counter([hit.score for hit in hits])
        if len(counts) == len(hits):
            return hits
        equal = [hit.id for hit in hits if counts[hit.score] > 1]
        sql = (
            "SELECT p.id, m.path, p.position FROM passages p JOIN knowledge_meta m ON m.id = p.file"
            f" WHERE p.id IN ({placeholders(len(equal))})"
        )
        rows = self.execute(sql, equal)
        places = {number: (path, position) for number, path, position in rows}
        return sorted(hits, key=lambda hit: (-hit.score, places.get(hit.id, ("", hit.id))))


def _open_database(file: Path) -> tuple[apsw.Connection, bool]:
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


# ---------------------------------------------------------------- values


def paths_json(paths: Iterable[str]) -> str:
    return json.dumps(list(map(to_utf8, paths)))


def placeholders(count: int) -> str:
    return ", ".join("?" * count)


def checksum(values: tuple[Any, ...]) -> int:
    return zlib.crc32(repr(values).encode("utf-8", "surrogatepass"))


def to_utf8(text: str) -> str:
    """The database takes only UTF-8. Lone surrogates come back as the replacement character."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def encode_agent(name: str) -> str:
    """Encoded for storage and lookup, so that no name can pass for two, or for a part of another."""
    return f"\n{json.dumps(name)}\n"


def encode_exact(text: str) -> str:
    """For texts that are compared: characters that the database refuses must not make two texts equal."""
    return json.dumps(text) if text else ""


@lru_cache(maxsize=64)
def scope_condition(scope: Scope) -> tuple[str, tuple[Any, ...]]:
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
        yield f"m.category IN ({placeholders(len(scope.categories))})", list(scope.categories)
    if scope.audience != "owner":
        yield (
            "(m.audience <= ? OR (m.conversation != '' AND m.conversation = ?))",
            [AUDIENCES.index(scope.audience), encode_exact(scope.conversation)],
        )
    if scope.agents:
        own = " OR ".join("instr(m.agents, ?)" for _ in scope.agents)
        yield f"(m.agents = '' OR {own})", list(map(encode_agent, scope.agents))
    if scope.since:
        yield "p.day >= ?", [scope.since.isoformat()]
    if scope.until:
        yield "p.day <= ? AND p.day != ''", [scope.until.isoformat()]
    if scope.under:
        under = scope.under.encode("utf-8", "surrogatepass")
        yield "substr(CAST(m.path AS BLOB), 1, ?) = ?", [len(under), under]
    if scope.archived is not None:
        yield "m.archived = ?", [int(scope.archived)]

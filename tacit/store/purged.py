"""Origins that were purged: raw/purged.jsonl, tracked by git like the transcripts that it names.

    {"at": "2026-11-18T09:00:00+01:00", "origin": "url example.org", "by": "owner", "why": "poisoned",
     "sources": ["2026/02/16/1845-ses_x-slug", "2026/02/17/0900-ses_y-slug#12"]}

Transcripts stay as they are. What stands in this file says which of them, or which of their records, count no
more: neither the index nor a search through the files has them. A line that is torn or makes no sense names
nothing; the others hold. If the file itself cannot be read, no transcript counts until it can.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from tacit.errors import StoreError
from tacit.model.search import Stamp
from tacit.store.files import Tree
from tacit.store.home import CONVERSATIONS, PURGED, Home
from tacit.store.record import Record
from tacit.text.marks import number_of, source_of, transcript_of
from tacit.text.passages import category_of

_ARCHIVED = "archive/conversations/"


@dataclass(frozen=True, slots=True)
class Purged:
    """Which transcripts, and which records of others, count no more."""

    transcripts: frozenset[str] = frozenset()
    parts: Mapping[str, frozenset[int]] = field(default_factory=dict)
    sources: frozenset[str] = frozenset()  # the same, as marks name them
    trouble: str = ""  # why the file could not be read

    def whole(self, path: str) -> bool:
        if self.trouble:
            return category_of(path) == "conversation"
        return bool(self.transcripts) and _named(path) in self.transcripts

    def records(self, path: str) -> frozenset[int]:
        return self.parts.get(_named(path), frozenset()) if self.parts else frozenset()

    def applied(self, listed: Mapping[str, Stamp]) -> dict[str, Stamp]:
        """Files with their stamps, without what is purged. A stamp says too which records are, so that a
        transcript is read again when these change."""
        if not (self.transcripts or self.parts or self.trouble):
            return dict(listed)
        return {
            path: _marked(stamp, self.records(path)) for path, stamp in listed.items() if not self.whole(path)
        }


def purged(root: str | os.PathLike[str]) -> Purged:
    """What the file in this home names. Without one: nothing."""
    try:
        return parse(Tree(Path(root)).read(PURGED))
    except (FileNotFoundError, NotADirectoryError):
        return Purged()
    except (OSError, StoreError) as error:
        return Purged(trouble=f"{PURGED} could not be read, so no conversation is searched: {error}")


def add(home: Home, *, at: str, origin: str, sources: Iterable[str], by: str, why: str = "") -> None:
    """One more line, on disk before anything else goes: a purge that is cut short is still one."""
    with Record(home.root, PURGED).adding() as write:
        said = {"at": at, "origin": origin, "sources": sorted(sources), "by": by, "why": why}
        write({name: value for name, value in said.items() if value})


def stamp(root: str | os.PathLike[str]) -> Stamp | None:
    """Of the file; None where there is none. Another one: it may name something else now."""
    try:
        info = os.lstat(Path(root, PURGED))
    except OSError:
        return None
    return Stamp(info.st_mtime_ns, info.st_size, info.st_ino)


def parse(data: bytes) -> Purged:
    transcripts: set[str] = set()
    parts: dict[str, set[int]] = {}
    sources = frozenset(_sources(data))
    for source in sources:
        path, number = transcript_of(source), number_of(source)
        if number is None:
            transcripts.add(path)
        else:
            parts.setdefault(path, set()).add(number)
    by_path = {path: frozenset(numbers) for path, numbers in parts.items()}
    return Purged(frozenset(transcripts), by_path, sources)


def _sources(data: bytes) -> Iterator[str]:
    for line in data.splitlines():
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):  # torn, or written by hand
            continue
        named = entry.get("sources") if isinstance(entry, dict) else None
        yield from _readable(named if isinstance(named, list) else ())


def _readable(sources: Iterable[object]) -> Iterator[str]:
    for source in sources:
        if isinstance(source, str) and source.strip():
            stem, mark, number = source.strip().partition("#")
            if not mark or (number.isascii() and number.isdigit() and len(number) < 10):
                yield source_of(stem, int(number) if mark else None)


def _named(path: str) -> str:
    """By the place that it had before it was archived."""
    return f"{CONVERSATIONS}/{path.removeprefix(_ARCHIVED)}" if path.startswith(_ARCHIVED) else path


def _marked(stamp: Stamp, records: frozenset[int]) -> Stamp:
    if not records:
        return stamp
    return stamp._replace(inode=stamp.inode ^ (crc32(repr(sorted(records)).encode()) | 1 << 32))

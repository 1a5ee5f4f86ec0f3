"""Origins that were purged: raw/purged.jsonl, tracked by git like the transcripts that it names.

    {"at": "2026-11-18T09:00:00+01:00", "origin": "url example.org", "by": "owner", "why": "poisoned",
     "sources": ["2026/02/16/1845-ses_x-slug", "2026/02/17/0900-ses_y-slug#12"]}

Transcripts stay as they are. This file lists the transcripts, or single messages of them, that no longer
count: neither the index nor a fallback search returns them. A truncated or invalid line is ignored; the
others hold. If the file itself cannot be read, no transcript counts until it can.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

from tacit.errors import StoreError
from tacit.git.conflicts import refuse_conflict
from tacit.git.jsonl import JsonlLog
from tacit.home.categories import category_of
from tacit.home.files import Tree
from tacit.home.layout import CONVERSATIONS, PURGED, Home
from tacit.home.listing import Stamp, make_stamp
from tacit.markdown.comment import message_number, source_name, transcript_path

_ARCHIVED = "archive/conversations/"


@dataclass(frozen=True, slots=True)
class PurgedRecords:
    """The transcripts, and messages of others, that no longer count."""

    transcripts: frozenset[str] = frozenset()
    parts: Mapping[str, frozenset[int]] = field(default_factory=dict)
    sources: frozenset[str] = frozenset()  # the same, as provenance comments name them
    trouble: str = ""  # why the file could not be read

    def whole(self, path: str) -> bool:
        if self.trouble:
            return category_of(path) == "conversation"
        return bool(self.transcripts) and _original_path(path) in self.transcripts

    def records(self, path: str) -> frozenset[int]:
        return self.parts.get(_original_path(path), frozenset()) if self.parts else frozenset()

    def applied(self, listed: Mapping[str, Stamp]) -> dict[str, Stamp]:
        """The files with their stamps, without purged ones. The purged messages are mixed into the stamp, so
        that a transcript is read again when they change."""
        if not (self.transcripts or self.parts or self.trouble):
            return dict(listed)
        return {
            path: _mix_into_stamp(stamp, self.records(path))
            for path, stamp in listed.items()
            if not self.whole(path)
        }


def load_purged(root: str | os.PathLike[str]) -> PurgedRecords:
    """Read the file of this home. Nothing is purged if it is missing."""
    try:
        return parse_purged(Tree(Path(root)).read(PURGED))
    except (FileNotFoundError, NotADirectoryError):
        return PurgedRecords()
    except (OSError, StoreError) as error:
        return PurgedRecords(trouble=f"{PURGED} could not be read, so no conversation is searched: {error}")


def record_purge(home: Home, *, at: str, origin: str, sources: Iterable[str], by: str, why: str = "") -> None:
    """Append a line, synced before anything is removed, so that an interrupted purge still counts."""
    refuse_conflict(home.root, PURGED)
    with JsonlLog(home.root, PURGED).adding() as write:
        fields = {"at": at, "origin": origin, "sources": sorted(sources), "by": by, "why": why}
        write({name: value for name, value in fields.items() if value})


def file_stamp(root: str | os.PathLike[str]) -> Stamp | None:
    """The stamp of the file, which changes with its content; None if it is missing."""
    try:
        info = os.lstat(Path(root, PURGED))
    except OSError:
        return None
    return make_stamp(info)


def parse_purged(data: bytes) -> PurgedRecords:
    transcripts: set[str] = set()
    parts: dict[str, set[int]] = {}
    sources = frozenset(_read_sources(data))
    for source in sources:
        path, number = transcript_path(source), message_number(source)
        if number is None:
            transcripts.add(path)
        else:
            parts.setdefault(path, set()).add(number)
    by_path = {path: frozenset(numbers) for path, numbers in parts.items()}
    return PurgedRecords(frozenset(transcripts), by_path, sources)


def _read_sources(data: bytes) -> Iterator[str]:
    for line in data.splitlines():
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):  # truncated, or written by hand
            continue
        sources = entry.get("sources") if isinstance(entry, dict) else None
        yield from _valid_sources(sources if isinstance(sources, list) else ())


def _valid_sources(sources: Iterable[object]) -> Iterator[str]:
    for source in sources:
        if isinstance(source, str) and source.strip():
            stem, mark, number = source.strip().partition("#")
            if not mark or (number.isascii() and number.isdigit() and len(number) < 10):
                yield source_name(stem, int(number) if mark else None)


def _original_path(path: str) -> str:
    """The path before it was archived."""
    return f"{CONVERSATIONS}/{path.removeprefix(_ARCHIVED)}" if path.startswith(_ARCHIVED) else path


def _mix_into_stamp(stamp: Stamp, records: frozenset[int]) -> Stamp:
    if not records:
        return stamp
    return stamp._replace(inode=stamp.inode ^ (crc32(repr(sorted(records)).encode()) | 1 << 32))

"""Read git's index file without starting a process or importing anything heavy.

Up to version 3, entries are padded with NULs to a multiple of eight bytes; version 4 stores only how a name
differs from the previous one. An unreadable index counts as empty: git itself reports what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

_HEADER_BYTES = 12  # bytes: DIRC, version, number of entries
_STAT_BYTES = 40  # bytes of an entry before the name of its object
_EXTENDED_FLAG = 0x4000
_STAGE_MASK = 0x3000
_ASSUME_VALID_FLAG = 0x8000


def read_entries(data: bytes, name_size: int = 0) -> Iterator[tuple[str, int, int, bool, bool]]:
    """Path, time in nanoseconds, size, whether the entry is unmerged, and whether it is assumed unchanged,
    for every readable entry. `name_size`: bytes of an object name, if known."""
    if data[:4] != b"DIRC" or (version := _read_number(data, 4)) not in (2, 3, 4):
        return
    name_size = name_size or _detect_name_size(data, version)
    offset, name = _HEADER_BYTES, b""
    for _ in range(_read_number(data, 8)):
        flags_offset = offset + _STAT_BYTES + name_size
        flags = _read_number(data, flags_offset, 2)
        name_offset = flags_offset + (4 if version > 2 and flags & _EXTENDED_FLAG else 2)
        prefix_length = 0
        if version == 4:
            dropped, name_offset = _read_varint(data, name_offset)
            prefix_length = len(name) - dropped
        end = data.find(b"\0", name_offset)
        if end < 0 or prefix_length < 0:
            return
        name = name[:prefix_length] + data[name_offset:end]
        mtime = _read_number(data, offset + 8) * 10**9 + _read_number(data, offset + 12)
        size = _read_number(data, offset + 36)
        yield os.fsdecode(name), mtime, size, bool(flags & _STAGE_MASK), bool(flags & _ASSUME_VALID_FLAG)
        offset = end + 1 if version == 4 else offset + (end - offset + 8) // 8 * 8


def list_unmerged(top: str) -> frozenset[str]:
    """Paths of the repository at this folder that git calls unmerged."""
    return _read_flagged(top)[1]


def list_assumed_unchanged(top: str) -> frozenset[str]:
    """Paths that git assumes to be unchanged (`git update-index --assume-unchanged`)."""
    return _read_flagged(top)[2]


def _read_flagged(top: str) -> tuple[tuple[int, ...], frozenset[str], frozenset[str]]:
    """A stamp of the index file, the unmerged paths and the assumed ones. Read again if the index changed."""
    file = os.path.join(_git_directory(top), "index")
    try:
        info = os.stat(file)
        stamp = (info.st_mtime_ns, info.st_size, info.st_ino)
        if file not in _cache or _cache[file][0] != stamp:
            with open(file, "rb") as stream:
                data = stream.read()
            flagged = [
                entry for entry in _read_split_entries(data, os.path.dirname(file)) if entry[3] or entry[4]
            ]
            _cache[file] = (
                stamp,
                frozenset(path for path, _, _, is_unmerged, _ in flagged if is_unmerged),
                frozenset(path for path, _, _, _, is_assumed in flagged if is_assumed),
            )
        return _cache[file]
    except (OSError, IndexError):
        return (), frozenset(), frozenset()


_cache: dict[str, tuple[tuple[int, ...], frozenset[str], frozenset[str]]] = {}


def _read_split_entries(data: bytes, directory: str) -> Iterator[tuple[str, int, int, bool, bool]]:
    """The entries of an index, including those of the shared file of a split index. The extension `link`
    names that file by its hash, and lists the positions of its entries that were deleted since."""
    link = data.rfind(b"link\0\0") + 8
    for size in (20, 32) if link >= 8 else ():
        shared = os.path.join(directory, f"sharedindex.{data[link : link + size].hex()}")
        if os.path.exists(shared):
            with open(shared, "rb") as stream:
                shared_entries = list(read_entries(stream.read(), size))
            deleted = _read_bitmap(data, link + size, len(shared_entries))
            yield from (entry for position, entry in enumerate(shared_entries) if not deleted >> position & 1)
            yield from (
                entry for entry in read_entries(data, size) if entry[0]
            )  # an entry without a path only has a new time
            return
    yield from read_entries(data)


def _read_bitmap(data: bytes, offset: int, max_bits: int) -> int:
    """The EWAH bitmap at this offset: each marker word gives the length of a run and the number of literal
    words after it. Reads at most `max_bits` bits: a damaged file may claim billions."""
    bits = position = 0
    offset, end = offset + 8, min(len(data), offset + 8 + 8 * _read_number(data, offset + 4))
    while offset < end and 64 * position < max_bits:
        marker = _read_number(data, offset, 8)
        run_length, literal_count = min(marker >> 1 & 0xFFFFFFFF, max_bits), marker >> 33
        if marker & 1:
            bits |= ((1 << 64 * run_length) - 1) << 64 * position
        words = range(offset + 8, min(end, offset + 8 + 8 * literal_count), 8)
        literal = b"".join(data[start : start + 8][::-1] for start in words)
        bits |= int.from_bytes(literal, "little") << 64 * (position + run_length)
        position, offset = position + run_length + literal_count, offset + 8 + 8 * literal_count
    return bits


def find_repository_root(folder: str) -> str:
    """The root of the repository that contains a folder; empty if there is none."""
    if folder in _root_cache:  # called for every file
        return _root_cache[folder]
    folder = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent
    _root_cache[folder] = folder
    return folder


_root_cache: dict[str, str] = {}


def _git_directory(top: str) -> str:
    path = os.path.join(top, ".git")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # of a linked work tree
            return os.path.join(top, file.read().partition("gitdir:")[2].strip())
    except OSError:
        return path


def _read_number(data: bytes, offset: int, size: int = 4) -> int:
    return int.from_bytes(data[offset : offset + size], "big")


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    """A number in git's offset encoding, and the offset of the next byte."""
    value, more = data[offset] & 0x7F, data[offset] & 0x80
    offset += 1
    while more and offset < len(data):
        value, more = ((value + 1) << 7) | (data[offset] & 0x7F), data[offset] & 0x80
        offset += 1
    return value, offset


def _detect_name_size(data: bytes, version: int) -> int:
    """20 bytes or 32 (SHA-256), whichever makes the first path as long as its entry says."""
    for size in (20, 32):
        offset = _HEADER_BYTES + _STAT_BYTES + size
        flags = _read_number(data, offset, 2)
        offset += 4 if version > 2 and flags & _EXTENDED_FLAG else 2
        offset += version == 4  # the byte for how much of the previous name was dropped
        length = flags & 0xFFF
        end = data.find(b"\0", offset)
        if length and (end - offset == length or (length == 0xFFF and end - offset >= length)):
            return size
    return 20

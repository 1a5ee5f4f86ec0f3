"""Write new objects for the repository to a pack file, one by one.

Only their names are held in memory. The file has a temporary name in the pack folder, so git removes it by
itself if it is never finished.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
import zlib

from tacit.git.objects import add_pack
from tacit.git.repository import Git

_TYPE_CODES = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
_CHUNK_BYTES = 1 << 20


class Pack:
    def __init__(self, git: Git) -> None:
        self._git, self._algorithm = git, git.algorithm
        self._written_names: set[str] = set()
        folder = git.common / "objects" / "pack"
        folder.mkdir(0o700, exist_ok=True)
        self._path = folder / f"tmp_forget_{secrets.token_hex(6)}"
        self._file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")
        self._file.write(struct.pack(">4sII", b"PACK", 2, 0))

    def add(self, kind: str, data: bytes) -> str:
        """Add an object; returns its name."""
        head = b"%s %d\0" % (kind.encode(), len(data))
        name = hashlib.new(self._algorithm, head + data, usedforsecurity=False).hexdigest()
        if name not in self._written_names:
            self._written_names.add(name)
            self._file.write(_encode_header(_TYPE_CODES[kind], len(data)) + zlib.compress(data))
        return name

    def close(self) -> None:
        """Finish the pack and add its objects to the repository."""
        self._file.seek(4)
        self._file.write(struct.pack(">II", 2, len(self._written_names)))
        self._file.seek(0)
        checksum = hashlib.new(self._algorithm, usedforsecurity=False)
        while chunk := self._file.read(_CHUNK_BYTES):
            checksum.update(chunk)
        self._file.write(checksum.digest())
        self._file.close()
        if self._written_names:
            add_pack(self._git, self._path)
        self._path.unlink()

    def drop(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)


def _encode_header(kind: int, size: int) -> bytes:
    """Encode type and size: four bits of the size next to the type, then seven per byte, lowest first."""
    first, size = kind << 4 | size & 15, size >> 4
    data = bytearray()
    while size:
        data.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    data.append(first)
    return bytes(data)


def parse_tree(data: bytes, width: int) -> list[tuple[bytes, bytes, str]]:
    """Mode, name and object of each entry. `width`: bytes of an object name."""
    entries, offset = [], 0
    while offset < len(data):
        space = data.index(b" ", offset)
        end = data.index(b"\0", space)
        entries.append((data[offset:space], data[space + 1 : end], data[end + 1 : end + 1 + width].hex()))
        offset = end + 1 + width
    return entries


def build_tree(entries: list[tuple[bytes, bytes, str]]) -> bytes:
    """Sorts in git's order, where a folder counts as a name that ends in a slash."""
    ordered = sorted(entries, key=lambda entry: entry[1] + (b"/" if is_folder(entry[0]) else b""))
    return b"".join(b"%s %s\0%s" % (mode, name, bytes.fromhex(target)) for mode, name, target in ordered)


def is_folder(mode: bytes) -> bool:
    return mode in (b"40000", b"040000")


def is_file(mode: bytes) -> bool:
    """A file or a link; anything else is another repository inside ours."""
    return mode != b"160000" and not is_folder(mode)

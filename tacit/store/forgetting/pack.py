"""New objects on their way into the repository: a pack file that is written object by object.

Nothing is held in memory but the names. The file has a temporary name among the packs, which git clears away
by itself should nobody finish it.
"""

from __future__ import annotations

import hashlib
import secrets
import struct
import zlib

from tacit.store.git import Git

_TYPES = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
_PIECE = 1 << 20


class Pack:
    def __init__(self, git: Git) -> None:
        self._git, self._algorithm = git, git.algorithm
        self._written: set[str] = set()
        folder = git.common / "objects" / "pack"
        folder.mkdir(exist_ok=True)
        self._path = folder / f"tmp_forget_{secrets.token_hex(6)}"
        self._file = self._path.open("x+b")
        self._file.write(struct.pack(">4sII", b"PACK", 2, 0))

    def add(self, kind: str, data: bytes) -> str:
        """Returns its name."""
        head = b"%s %d\0" % (kind.encode(), len(data))
        name = hashlib.new(self._algorithm, head + data, usedforsecurity=False).hexdigest()
        if name not in self._written:
            self._written.add(name)
            self._file.write(_size(_TYPES[kind], len(data)) + zlib.compress(data))
        return name

    def close(self) -> None:
        """All of them are part of the repository now."""
        self._file.seek(4)
        self._file.write(struct.pack(">II", 2, len(self._written)))
        self._file.seek(0)
        checksum = hashlib.new(self._algorithm, usedforsecurity=False)
        while piece := self._file.read(_PIECE):
            checksum.update(piece)
        self._file.write(checksum.digest())
        self._file.close()
        if self._written:
            self._git.take_in(self._path)
        self._path.unlink()

    def drop(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)


def _size(kind: int, size: int) -> bytes:
    """Four bits of it beside the type, then seven in each byte, the lowest first."""
    first, size = kind << 4 | size & 15, size >> 4
    data = bytearray()
    while size:
        data.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    data.append(first)
    return bytes(data)


def tree_entries(data: bytes, width: int) -> list[tuple[bytes, bytes, str]]:
    """Mode, name and object of each. `width`: bytes of an object's name."""
    found, at = [], 0
    while at < len(data):
        space = data.index(b" ", at)
        end = data.index(b"\0", space)
        found.append((data[at:space], data[space + 1 : end], data[end + 1 : end + 1 + width].hex()))
        at = end + 1 + width
    return found


def tree_of(entries: list[tuple[bytes, bytes, str]]) -> bytes:
    """In git's order, which takes a folder for a name with a slash behind it."""
    ordered = sorted(entries, key=lambda entry: entry[1] + (b"/" if is_folder(entry[0]) else b""))
    return b"".join(b"%s %s\0%s" % (mode, name, bytes.fromhex(target)) for mode, name, target in ordered)


def is_folder(mode: bytes) -> bool:
    return mode in (b"40000", b"040000")


def is_file(mode: bytes) -> bool:
    """Or a link; what is neither is somebody's repository inside ours."""
    return mode != b"160000" and not is_folder(mode)

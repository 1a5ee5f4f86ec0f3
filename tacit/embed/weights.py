"""Numbers in a .safetensors file, left on the disk and read where they are needed.

The file is the length of its header (8 bytes), the header as JSON, then the numbers. A query touches a few
rows of a table of sixteen megabytes; it should not have to read, nor to convert, the others.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from struct import Struct, unpack_from
from typing import TYPE_CHECKING, Any

from tacit.embed.protocol import EmbedderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LETTERS = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "I16": "h", "I8": "b"}
_BYTES = {"d": 8, "f": 4, "e": 2, "q": 8, "i": 4, "h": 2, "b": 1}
_LARGEST_HEADER = 1_000_000

_SLICES, _SLICE = 64, 4096


class Weights:
    """One file and the tensors in it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            with file.open("rb") as opened:
                self._bytes = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
            self._start, self._header = _header(self._bytes)
        except OSError as error:
            raise _unreadable(file, error) from None
        except (ValueError, RecursionError):
            raise _broken(file) from None

    def __contains__(self, tensor: str) -> bool:
        return tensor in self._header

    def numbers(self, tensor: str) -> tuple[float, ...]:
        """A tensor of one dimension."""
        (count,), letter, start = self._place(tensor, 1)
        return unpack_from(f"<{count}{letter}", self._bytes, start)

    def table(self, tensor: str, mapping: Sequence[int] = ()) -> Table:
        """A tensor of two dimensions; with a mapping, row `i` is the row `mapping[i]` of the file."""
        (rows, columns), letter, start = self._place(tensor, 2)
        if mapping and not 0 <= min(mapping) <= max(mapping) < rows:
            raise _broken(self.file)
        return Table(self._bytes, letter, start, rows, columns, mapping)

    def _place(self, tensor: str, dimensions: int) -> tuple[tuple[int, ...], str, int]:
        """Shape, kind of number and first byte, none of which may point outside the file."""
        try:
            about = self._header[tensor]
            shape = tuple(int(length) for length in about["shape"])
            letter, first = _LETTERS[about["dtype"]], self._start + int(about["data_offsets"][0])
        except (KeyError, IndexError, TypeError, ValueError):
            raise _broken(self.file, f"no usable tensor {tensor!r}") from None
        size = _BYTES[letter]
        for length in shape:
            size *= length
        if len(shape) != dimensions or min(shape) < 1 or not self._start <= first <= len(self._bytes) - size:
            raise _broken(self.file)
        return shape, letter, first


class Table:
    """Rows of numbers. One is read in a few microseconds; `matrix` reads all, and needs numpy."""

    def __init__(
        self, source: mmap.mmap, letter: str, start: int, rows: int, columns: int, mapping: Sequence[int]
    ) -> None:
        self.rows, self.columns = len(mapping) or rows, columns
        self._source, self._letter, self._start, self._mapping = source, letter, start, mapping
        self._shape = (rows, columns)
        self._row = Struct(f"<{columns}{letter}")

    def row(self, index: int) -> tuple[float, ...]:
        place = self._mapping[index] if self._mapping else index
        return self._row.unpack_from(self._source, self._start + place * self._row.size)

    def matrix(self) -> NDArray[np.float32]:
        import numpy as np  # 80 ms, which a query has no time for

        kind = np.dtype(self._letter).newbyteorder("<")
        count = self._shape[0] * self._shape[1]
        found = np.frombuffer(self._source, kind, count, self._start).reshape(self._shape)
        return (found[list(self._mapping)] if self._mapping else found).astype(np.float32)


def fingerprint(*files: Path) -> str:
    """Tells one set of weights from another: their sizes, and 64 places spread over each file.

    All of the bytes would take longer than embedding a query. Weights that were trained anew differ
    everywhere, so the places show it.
    """
    digest = sha256()
    for file in files:
        try:
            digest.update(_sample(file))
        except OSError as error:
            raise _unreadable(file, error) from None
    return digest.hexdigest()[:12]


def _sample(file: Path) -> bytes:
    size = file.stat().st_size
    parts = [f"{size}\n".encode()]
    with file.open("rb") as opened:
        if size <= _SLICES * _SLICE:
            return parts[0] + opened.read()
        for place in range(_SLICES):
            opened.seek((size - _SLICE) * place // (_SLICES - 1))
            parts.append(opened.read(_SLICE))
    return b"".join(parts)


def _header(source: mmap.mmap) -> tuple[int, dict[str, Any]]:
    length = int.from_bytes(source[:8], "little")
    if not 2 <= length <= min(_LARGEST_HEADER, len(source) - 8):
        raise ValueError(length)
    header = json.loads(source[8 : 8 + length])
    if not isinstance(header, dict):
        raise ValueError(header)
    return 8 + length, header


def _unreadable(file: Path, error: OSError) -> EmbedderError:
    return EmbedderError(f"{file} cannot be read: {error.strerror}. Install the model again.")


def _broken(file: Path, what: str = "it is damaged, or no .safetensors file") -> EmbedderError:
    return EmbedderError(f"{file} cannot be used: {what}. Install the model again.")

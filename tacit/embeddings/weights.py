"""Reads numbers from a .safetensors file on demand, without loading it.

The file has the length of its header (8 bytes), the header as JSON, then the numbers. A query needs a few
rows of a table of sixteen megabytes and must not read or convert the others.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Sequence
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from struct import Struct, unpack_from
from typing import TYPE_CHECKING, Any

from tacit.embeddings.protocol import EmbedderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FORMAT_BY_DTYPE = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "I16": "h", "I8": "b"}
_BYTES_BY_FORMAT = {"d": 8, "f": 4, "e": 2, "q": 8, "i": 4, "h": 2, "b": 1}
_MAX_HEADER_BYTES = 1_000_000

_SAMPLE_COUNT, _SAMPLE_BYTES = 64, 4096


class Weights:
    """One file and the tensors in it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            with file.open("rb") as opened:
                self._bytes = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
            self._start, self._tensors = _read_header(self._bytes)
        except OSError as error:
            raise _unreadable_error(file, error) from None
        except (ValueError, RecursionError):
            raise _damaged_error(file) from None

    def __contains__(self, tensor: str) -> bool:
        return tensor in self._tensors

    def numbers(self, tensor: str) -> tuple[float, ...]:
        """A tensor of one dimension."""
        (count,), letter, start = self._locate(tensor, 1)
        return unpack_from(f"<{count}{letter}", self._bytes, start)

    def table(self, tensor: str, mapping: Sequence[int] = ()) -> TensorTable:
        """A tensor of two dimensions; with a mapping, row `i` is the row `mapping[i]` of the file."""
        (rows, columns), letter, start = self._locate(tensor, 2)
        if mapping and not 0 <= min(mapping) <= max(mapping) < rows:
            raise _damaged_error(self.file)
        return TensorTable(self._bytes, letter, start, rows, columns, mapping)

    def _locate(self, tensor: str, dimensions: int) -> tuple[tuple[int, ...], str, int]:
        """Shape, number format and first byte, checked to be inside the file."""
        try:
            tensor_info = self._tensors[tensor]
            shape = tuple(int(length) for length in tensor_info["shape"])
            letter, first = (
                _FORMAT_BY_DTYPE[tensor_info["dtype"]],
                self._start + int(tensor_info["data_offsets"][0]),
            )
        except (KeyError, IndexError, TypeError, ValueError):
            raise _damaged_error(self.file, f"no usable tensor {tensor!r}") from None
        size = _BYTES_BY_FORMAT[letter]
        for length in shape:
            size *= length
        if len(shape) != dimensions or min(shape) < 1 or not self._start <= first <= len(self._bytes) - size:
            raise _damaged_error(self.file)
        return shape, letter, first


class TensorTable:
    """Rows of numbers. Reading one takes a few microseconds; `matrix` reads all, and needs numpy."""

    def __init__(
        self, source: mmap.mmap, letter: str, start: int, rows: int, columns: int, mapping: Sequence[int]
    ) -> None:
        self.rows, self.columns = len(mapping) or rows, columns
        self._source, self._letter, self._start, self._mapping = source, letter, start, mapping
        self._shape = (rows, columns)
        self._row = Struct(f"<{columns}{letter}")

    def row(self, index: int) -> tuple[float, ...]:
        row_number = self._mapping[index] if self._mapping else index
        return self._row.unpack_from(self._source, self._start + row_number * self._row.size)

    def matrix(self) -> NDArray[np.float32]:
        import numpy as np  # 80 ms, which a query has no time for

        dtype = np.dtype(self._letter).newbyteorder("<")
        count = self._shape[0] * self._shape[1]
        numbers = np.frombuffer(self._source, dtype, count, self._start).reshape(self._shape)
        return (numbers[list(self._mapping)] if self._mapping else numbers).astype(np.float32)


def fingerprint(*files: Path) -> str:
    """Identifies weights by file sizes and 64 samples spread over each file.

    Hashing all bytes would take longer than embedding a query. Retrained weights differ everywhere, so the
    samples differ too.
    """
    digest = sha256()
    for file in files:
        try:
            digest.update(_sample_file(file))
        except OSError as error:
            raise _unreadable_error(file, error) from None
    return digest.hexdigest()[:12]


def _sample_file(file: Path) -> bytes:
    size = file.stat().st_size
    parts = [f"{size}\n".encode()]
    with file.open("rb") as stream:
        if size <= _SAMPLE_COUNT * _SAMPLE_BYTES:
            return parts[0] + stream.read()
        for number in range(_SAMPLE_COUNT):
            stream.seek((size - _SAMPLE_BYTES) * number // (_SAMPLE_COUNT - 1))
            parts.append(stream.read(_SAMPLE_BYTES))
    return b"".join(parts)


def _read_header(source: mmap.mmap) -> tuple[int, dict[str, Any]]:
    length = int.from_bytes(source[:8], "little")
    if not 2 <= length <= min(_MAX_HEADER_BYTES, len(source) - 8):
        raise ValueError(length)
    header = json.loads(source[8 : 8 + length])
    if not isinstance(header, dict):
        raise ValueError(header)
    return 8 + length, header


def _unreadable_error(file: Path, error: OSError) -> EmbedderError:
    return EmbedderError(f"{file} cannot be read: {error.strerror}. Install the model again.")


def _damaged_error(file: Path, reason: str = "it is damaged, or no .safetensors file") -> EmbedderError:
    return EmbedderError(f"{file} cannot be used: {reason}. Install the model again.")


# ---------------------------------------------------------------- packages


def package_folder(name: str) -> Path | None:
    """The folder where the package is installed. Packages that are used only for their weights are located
    and never imported: that would load web servers and data models."""
    try:
        spec = find_spec(name)
    except ValueError:  # a module of this name was put in place without an origin
        return None
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


def import_optional(module: str, extra: str) -> Any:
    """Import a heavy module that not all installations have."""
    try:
        return import_module(module)
    except ImportError as error:
        raise EmbedderError(
            f"This embedding model needs {module}, which is not installed ({error}). "
            f"Run: pip install 'tacit[{extra}]'"
        ) from None

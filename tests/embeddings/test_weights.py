from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tacit.embeddings.protocol import EmbedderError
from tacit.embeddings.weights import Weights, fingerprint
from tests.embeddings.tiny import ROWS, write_safetensors


@pytest.mark.parametrize("kind", ["F32", "F16", "I8"])
def test_rows_are_the_same_read_one_by_one_and_all_at_once(tmp_path: Path, kind: str) -> None:
    rows = [[int(number) for number in row] for row in ROWS]
    write_safetensors(tmp_path / "w", {"first": ("I64", [1, 2]), "table": (kind, rows)})
    table = Weights(tmp_path / "w").table("table")
    assert (table.rows, table.columns) == (len(ROWS), len(ROWS[0]))
    assert [list(table.row(at)) for at in range(table.rows)] == table.matrix().tolist() == rows
    assert table.matrix().dtype == np.float32


def test_a_mapping_gives_many_tokens_one_row(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "w", {"table": ("F32", ROWS)})
    table = Weights(tmp_path / "w").table("table", [3, 0, 3])
    assert table.rows == 3
    assert [list(table.row(at)) for at in range(3)] == table.matrix().tolist() == [ROWS[3], ROWS[0], ROWS[3]]
    with pytest.raises(EmbedderError, match="cannot be used"):
        Weights(tmp_path / "w").table("table", [0, len(ROWS)])


def _file(header: object, data: bytes = b"\0" * 64) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def _tensor(**changes: object) -> dict[str, object]:
    return {"t": {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64], **changes}}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"short",
        b"\xff" * 64,
        (2**62).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (5).to_bytes(8, "little") + b"{nope" + b"\0" * 64,
        _file({}),
        _file({"t": 5}),
        _file({"t": {}}),
        _file(_tensor(dtype="BF16")),
        _file(_tensor(shape=[16])),
        _file(_tensor(shape=[0, 4])),
        _file(_tensor(shape=[-4, -4])),
        _file(_tensor(shape=["4", None])),
        _file(_tensor(shape=[4, 5])),
        _file(_tensor(shape=[10**12, 10**12])),
        _file(_tensor(data_offsets=[4, 68])),
        _file(_tensor(data_offsets=[-8, 56])),
        _file(_tensor(data_offsets=[])),
        _file(_tensor(), b"\0" * 63),
    ],
)
def test_a_damaged_file_is_told_and_never_read_beyond_its_end(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    with pytest.raises(EmbedderError, match=r"cannot be used: .* Install the model again"):
        Weights(file).table("t")


def test_a_file_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="cannot be read: No such file"):
        Weights(tmp_path / "missing")
    with pytest.raises(EmbedderError, match="cannot be read: No such file"):
        fingerprint(tmp_path / "missing")


@pytest.mark.parametrize("size", [10, 64 * 4096, 2_000_000])
def test_a_fingerprint_tells_sizes_and_contents_apart(tmp_path: Path, size: int) -> None:
    file = tmp_path / "w"
    found = set()
    for content in (b"a" * size, b"a" * (size + 1), b"b" + b"a" * (size - 1), b"a" * (size - 1) + b"b"):
        file.write_bytes(content)
        found.add(fingerprint(file))
        assert fingerprint(file) == fingerprint(file)
    assert len(found) == 4

"""Models of a few words, written as the real ones are: tests of the loading need no large files."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "red", "car", "blue", "boat", "query", "passage", ":")
DIMENSIONS = 4
ROWS = [
    [((token * 7 + column * 3) % 11) - 5.0 for column in range(DIMENSIONS)] for token in range(len(WORDS))
]


def write_tokenizer(file: Path, special: bool = True) -> None:
    sequence = [{"Sequence": {"id": "A", "type_id": 0}}]
    begin, end = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ("[CLS]", "[SEP]"))
    second = [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    marks = {name: {"id": name, "ids": [WORDS.index(name)], "tokens": [name]} for name in ("[CLS]", "[SEP]")}
    template = {
        "type": "TemplateProcessing",
        "single": [begin, *sequence, end],
        "pair": [begin, *sequence, end, *second],
        "special_tokens": marks,
    }
    content: dict[str, object] = {
        "version": "1.0",
        # As in some real files: all texts padded to the full length, unless it is turned off.
        "truncation": {"direction": "Right", "max_length": 512, "strategy": "LongestFirst", "stride": 0},
        "padding": {
            "strategy": {"Fixed": 512}, "direction": "Right", "pad_to_multiple_of": None,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
        },
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": template if special else None,
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {word: token for token, word in enumerate(WORDS)},
            "unk_token": "[UNK]",
        },
    }  # fmt: skip
    file.write_text(json.dumps(content))


def write_model2vec(folder: Path) -> None:
    folder.mkdir()
    write_tokenizer(folder / "tokenizer.json", special=False)
    write_safetensors(folder / "model.safetensors", {"embeddings": ("F32", ROWS)})
    (folder / "config.json").write_text('{"model_type": "model2vec"}')


_KINDS = {"F32": "f", "F16": "e", "I64": "q", "I8": "b"}


def write_safetensors(file: Path, tensors: Mapping[str, tuple[str, Sequence[object]]]) -> None:
    header: dict[str, object] = {}
    data = b""
    for name, (kind, values) in tensors.items():
        rows = [row if isinstance(row, Sequence) else [row] for row in values]
        flat = [number for row in rows for number in row]
        packed = struct.pack(f"<{len(flat)}{_KINDS[kind]}", *flat)
        shape = [len(values)] if len(flat) == len(values) else [len(values), len(rows[0])]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + data)


def write_onnx(folder: Path, name: str = "model.onnx") -> None:
    """One row of the table for each token: what a real model calls its last hidden state."""
    folder.mkdir()
    write_tokenizer(folder / "tokenizer.json")
    gather = _node("Gather", ["table", "input_ids"], ["last_hidden_state"])
    inputs = [_value("input_ids", 7, ("batch", "length")), _value("attention_mask", 7, ("batch", "length"))]
    output = _value("last_hidden_state", 1, ("batch", "length", DIMENSIONS))
    (folder / name).write_bytes(_model([gather], inputs, [output]))


def write_reranker(folder: Path) -> None:
    """The sum of the first components of all tokens, as one score for each pair."""
    folder.mkdir()
    write_tokenizer(folder / "tokenizer.json")
    nodes = [
        _node("Gather", ["table", "input_ids"], ["rows"]),
        _node("ReduceSum", ["rows", "axes"], ["logits"], _flag("keepdims", 0)),
    ]
    inputs = [_value("input_ids", 7, ("batch", "length"))]
    (folder / "model.onnx").write_bytes(_model(nodes, inputs, [_value("logits", 1, ("batch",))]))


# The few messages of the ONNX format that such a graph needs, by their field numbers.


def _model(nodes: Iterable[bytes], inputs: Iterable[bytes], outputs: Iterable[bytes]) -> bytes:
    numbers = [number for row in ROWS for number in row]
    table = _tensor("table", (len(ROWS), DIMENSIONS), 1, struct.pack(f"<{len(numbers)}f", *numbers))
    axes = _tensor("axes", (2,), 7, struct.pack("<2q", 1, 2))
    graph = b"".join(
        [
            *(_field(1, node) for node in nodes),
            _field(2, b"tiny"),
            _field(5, table),
            _field(5, axes),
            *(_field(11, given) for given in inputs),
            *(_field(12, result) for result in outputs),
        ]
    )
    return _number(1, 8) + _field(7, graph) + _field(8, _field(1, b"") + _number(2, 17))


def _node(kind: str, inputs: Iterable[str], outputs: Iterable[str], attribute: bytes = b"") -> bytes:
    parts = [_field(1, name.encode()) for name in inputs] + [_field(2, name.encode()) for name in outputs]
    return b"".join(parts) + _field(4, kind.encode()) + (_field(5, attribute) if attribute else b"")


def _flag(name: str, value: int) -> bytes:
    return _field(1, name.encode()) + _number(3, value) + _number(20, 2)


def _tensor(name: str, shape: Iterable[int], kind: int, data: bytes) -> bytes:
    lengths = b"".join(_number(1, length) for length in shape)
    return lengths + _number(2, kind) + _field(8, name.encode()) + _field(9, data)


def _value(name: str, kind: int, shape: Iterable[int | str]) -> bytes:
    lengths = [_number(1, part) if isinstance(part, int) else _field(2, part.encode()) for part in shape]
    tensor = _number(1, kind) + _field(2, b"".join(_field(1, length) for length in lengths))
    return _field(1, name.encode()) + _field(2, _field(1, tensor))


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])

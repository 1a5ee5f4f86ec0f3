"""Files that nobody should write and somebody will, through every function of the layer."""

from __future__ import annotations

import pytest

from tacit.markdown.chunker import split_chunks
from tacit.markdown.notes import decode, encode, find_title, parse, set_fields
from tacit.text.lines import scan
from tacit.text.tokens import count

HEAD = b"---\ntype: topic\n---\n"
FILES = {
    "empty": b"",
    "one newline": b"\n",
    "byte order mark": b"\xef\xbb\xbf" + HEAD + b"# T\n",
    "byte order mark alone": b"\xef\xbb\xbf",
    "two byte order marks": b"\xef\xbb\xbf\xef\xbb\xbf# T\n",
    "crlf": (HEAD + b"# T\nx\n").replace(b"\n", b"\r\n"),
    "cr": (HEAD + b"# T\nx\n").replace(b"\n", b"\r"),
    "mixed endings": b"---\r\ntype: topic\n---\r# T\r\nx\ry\n",
    "no last newline": HEAD + b"# T",
    "nul": HEAD + b"# T\0\n\0\0\n",
    "nul in the head": b"---\ntype: \0\n---\nx\n",
    "latin-1": HEAD + b"# Caf\xe9\n",
    "latin-1 in the head": b"---\nname: Caf\xe9\n---\nx\n",
    "utf-16": "---\na: 1\n---\nx\n".encode("utf-16"),
    "encoded surrogate": HEAD + b"\xed\xa0\x80 x\n",
    "overlong": b"\xc0\x80\xf8\x88\x80\x80\x80",
    "all bytes": bytes(range(256)) * 20,
    "right to left": HEAD + "\u202eabc\u2066\u200f".encode(),
    "separators": HEAD + "a\u2028# b\u2029# c\x85# d\x0c# e\x0b# f\x1c".encode(),
    "conflict": HEAD + b"<<<<<<< HEAD\n# a\n=======\n# b\n>>>>>>> x\n",
    "conflict in the head": b"---\n<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> x\n---\nx\n",
    "fence never closed": HEAD + b"```\n# no\n" * 3,
    "head never closed": b"---\ntype: topic\n# T\n",
    "rules only": b"---\n" * 50,
    "5 MB line": HEAD + b"x" * 5_000_000,
    "5 MB of emoji": HEAD + "😀".encode() * 1_250_000,
    "5 MB of bad bytes": HEAD + b"\xff" * 5_000_000,
    "5 MB of blanks": HEAD + b" " * 5_000_000,
    "5 MB of NUL": HEAD + b"\0" * 5_000_000,
    "5 MB head": b"---\na: " + b"x" * 5_000_000 + b"\n---\nx\n",
    "5 MB of dashes": b"---\n" + b"-" * 5_000_000,
    "5 MB of marks": b"#" * 5_000_000,
}


@pytest.mark.parametrize("name", FILES)
def test_a_hostile_file_is_read_cut_counted_and_kept(name: str) -> None:
    text = decode(FILES[name])
    note = parse(text, name)
    assert encode(note.text) == FILES[name]
    find_title(note)
    assert sum(len(line.text) for line in scan(text)) <= len(text)
    found = split_chunks(text)
    joined = "".join("".join(chunk.text for chunk in found).split())
    assert joined == "".join(note.body.removeprefix("\ufeff").split())
    assert count(text) >= 0


@pytest.mark.parametrize("name", [name for name in FILES if not parse(decode(FILES[name])).problems])
def test_a_field_can_be_set_in_a_hostile_file_and_the_rest_is_kept(name: str) -> None:
    note = parse(decode(FILES[name]))
    changed = set_fields(note, {"updated": "now"})
    assert changed.fields == {**note.fields, "updated": "now"}
    assert encode(changed.body) == encode(note.body.removeprefix("\ufeff") if not note.head else note.body)
    assert encode(set_fields(changed, {"updated": None}).text).endswith(encode(changed.body))

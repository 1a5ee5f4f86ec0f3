"""Where words still stand in a folder, found without any code of the product.

Everything is made plain first and then compared: escapes and addresses are decoded, accents and capitals
folded, and whatever stands between words becomes one space. So this sees more than a grep would.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote

_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_GIT = (
    ("for-each-ref", "--format=%(refname) %(contents)"),
    ("log", "--all", "--reflog", "-p", "--format=%H%n%an%n%cn%n%B"),
    ("rev-list", "--all", "--reflog", "--objects"),
    ("stash", "list"),
    ("reflog", "--all"),
    ("config", "--list"),
    ("branch", "-a", "-vv"),
    ("tag", "-n99"),
    ("worktree", "list"),
    ("cat-file", "--batch-all-objects", "--batch", "--unordered"),
)


def traces(root: Path, text: str) -> list[str]:
    """The places, each once."""
    wanted = plain(text)
    return list(dict.fromkeys(place for place, data in _everything(root) if _says(data, wanted)))


def plain(text: str) -> str:
    text = unquote(text, errors="replace")
    text = re.sub(r"\\[nrt]", " ", text)
    text = _ESCAPES.sub(lambda found: str(json.loads(f'"{found[0]}"', strict=False)), text)
    text = re.sub(r"&#x([0-9A-F]{1,5});", lambda found: chr(int(found[1], 16)), text)
    apart = unicodedata.normalize("NFKD", text).casefold()
    letters = "".join(letter for letter in apart if not unicodedata.combining(letter))
    return re.sub(r"[\s>_+-]+", " ", letters).strip()


def _says(data: bytes, wanted: str) -> bool:
    texts = [data.decode("utf-8", "replace"), data.decode("latin-1")]
    if b"\0" in data:
        texts += [data.decode(form, "replace") for form in ("utf-16-le", "utf-16-be")]
    return any(wanted in plain(text) for text in texts)


def _everything(root: Path) -> Iterator[tuple[str, bytes]]:
    for here, folders, names in os.walk(root):
        for name in sorted([*folders, *names]):
            file = Path(here, name)
            place = str(file.relative_to(root))
            yield f"the name {place}", os.fsencode(name)
            if file.is_symlink():
                yield f"the link {place}", os.fsencode(os.readlink(file))
            elif file.is_file():
                data = file.read_bytes()
                yield place, data
                yield from _inside(file, place, data)
    for command in _GIT:
        done = subprocess.run(["git", *command], cwd=root, capture_output=True)
        assert done.returncode == 0, done.stderr
        yield f"git {command[0]}", done.stdout


def _inside(file: Path, place: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Loose objects, and what a database says in its rows."""
    if "/objects/" in place and data[:1] == b"\x78":
        yield f"inside {place}", zlib.decompressobj().decompress(data)
    if data.startswith(b"SQLite format 3\0"):
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            yield f"rows of {place}", "\n".join(database.iterdump()).encode("utf-8", "replace")

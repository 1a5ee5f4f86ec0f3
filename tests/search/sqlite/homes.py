"""A home with thirty notes and an index, for tests that do something bad to the index."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from tacit import app
from tacit.home.layout import Home
from tacit.search.home_index import embed_chunks, update_index
from tacit.search.model import Found
from tacit.search.searcher import Searcher
from tacit.search.sqlite.index import open_index, open_memory_index
from tests.search.fakes import parts
from tests.search.sqlite.inside import inside, left_behind
from tests.search.sqlite.samples import Hashing

LONG_AGO = 1_700_000_000
_FIRST = ("kiln", "clay", "ash", "slip", "glaz")
_LAST = ("ora", "imo", "upe", "ethy", "iska", "odra")
NAMES = tuple(first + last for first in _FIRST for last in _LAST)


def make_home(root: Path) -> Home:
    app.init_home(root)
    for file in (*root.glob("knowledge/**/*.md"), *root.glob("topics/*.md")):
        os.utime(file, (LONG_AGO, LONG_AGO))
    for number, name in enumerate(NAMES):
        text = (
            f"---\ntitle: Note {number}\ntags: [pottery]\n---\n\n# About {name}\n\n"
            f"The secret of {name} is number {number * 7}.\n\nMore of it below, in other words.\n"
        )
        write(root / path_of(name), text)
    turns = "".join(f"\n## 10:{at:02} — user\nWe spoke of {name}s.\n" for at, name in enumerate(NAMES[:8]))
    started = "session_id: s1\nstarted: 2026-01-02T10:00:00Z\n"
    write(root / "raw/conversations/2026/01/02/1000-s1-talk.md", f"---\n{started}---\n\n# Talk\n{turns}")
    return Home(root)


def path_of(name: str) -> str:
    return f"topics/{name}.md"


def write(file: Path, text: str, at: int = LONG_AGO) -> None:
    """Long ago: a file that was written just now is read again at every search."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (at, at))


def searcher(home: Home) -> Searcher:
    return Searcher(home, parts(Hashing))


def question(name: str) -> str:
    return f"What is the secret of {name}?"


def require_right(home: Home, found: Found, name: str) -> None:
    """The note is found first, and nothing is shown that is not in a file."""
    assert found.hits, found
    assert found.hits[0].path == path_of(name), [hit.path for hit in found.hits]
    require_true(home, found)


def require_true(home: Home, found: Found) -> None:
    for hit in found.hits:
        text = (home.root / hit.path).read_text()
        lines = text.split("\n")[hit.lines[0] - 1 : hit.lines[1]]
        assert "\n".join(lines).strip() == hit.text
        titles = [line.partition(" ")[2] for line in text.split("\n") if line.startswith(("title: ", "# "))]
        assert hit.title in titles


def require_whole(home: Home) -> None:
    """The index on disk is the one that would be built from the files now, and answers by itself."""
    one = searcher(home)
    try:
        one.update()
        found = one.find(question(NAMES[3]))
        require_right(home, found, NAMES[3])
        assert found.channels == ("lexical", "vector")
        assert found.degraded == ()
        listed = one._files.list()
        tree = one._files.tree
    finally:
        one.close()
    kept, fresh = open_index(home.private / "memory.db"), open_memory_index()
    update_index(fresh, listed, tree.read)
    embed_chunks(fresh, Hashing())
    try:
        assert kept.stamps() == listed
        assert inside(kept) == inside(fresh)
        assert left_behind(kept) == []
    finally:
        kept.close()
        fresh.close()


def fingerprint(root: Path, folders: Sequence[str] = ("knowledge", "topics", "archive", "raw")) -> str:
    """Of all files that are the truth, with their times."""
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted((root / folder).rglob("*")):
            digest.update(f"{file} {file.stat().st_mtime_ns}".encode())
            digest.update(file.read_bytes() if file.is_file() else b"")
    return digest.hexdigest()

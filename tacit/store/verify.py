"""Proof that no sealed transcript was touched.

Each commit of a transcript carries its hash; the commit itself is part of git's hash chain. A transcript
without a recorded hash (written and committed by hand) is held against the commit that first added it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

from tacit.store import files
from tacit.store.git import Git, blob_name
from tacit.store.home import CONVERSATIONS, Home
from tacit.store.transcripts import errors_of, load

_TRAILERS = ("Session", "Transcript-SHA256")
GOOD = frozenset({"proved", "proved by its first commit", "open", "not committed yet"})


@dataclass(frozen=True, slots=True)
class Checked:
    path: str
    state: str
    detail: str = ""

    @property
    def good(self) -> bool:
        return self.state in GOOD


def recorded(git: Git) -> dict[str, str]:
    """Path to hash from the trailers of all commits. The first record of a path counts: whoever forges a
    second one later is found out."""
    if git.head() is None:
        return {}
    form = "%x00".join(f"%(trailers:key={key},valueonly,separator=%x01)" for key in _TRAILERS)
    out = git.run("log", "--reverse", "--grep=^Transcript-SHA256: ", f"--format={form}", timeout=600)
    hashes: dict[str, str] = {}
    for line in out.decode("utf-8", "surrogateescape").split("\n"):
        paths, _, values = line.partition("\0")
        for path, value in zip(paths.split("\x01"), values.split("\x01"), strict=False):
            if path:
                hashes.setdefault(path, value.strip())
    return hashes


def first_blobs(git: Git, wanted: set[str]) -> dict[str, str]:
    """For hand-made commits: path to the blob its first commit gave it."""
    if git.head() is None or not wanted:
        return {}
    arguments = (
        "log",
        "--reverse",
        "--diff-filter=A",
        "--raw",
        "--no-abbrev",
        "--no-renames",
        "-z",
        "--format=",
    )
    out = git.run(*arguments, "HEAD", "--", CONVERSATIONS, timeout=600)
    blobs: dict[str, str] = {}
    pieces = out.split(b"\0")
    for meta, path in pairwise(pieces):
        if meta.lstrip(b"\n").startswith(b":"):
            blobs.setdefault(os.fsdecode(path), meta.split()[3].decode())
    return {path: blob for path, blob in blobs.items() if path in wanted}


def verify(home: Home, git: Git, tick: Callable[[int, int], None]) -> list[Checked]:
    """Check every transcript; `tick(done, all)` after each. git reads its log while we hash."""
    found = [path for path in files.Tree(home.root).files(CONVERSATIONS) if path.endswith(".md")]
    with ThreadPoolExecutor(max_workers=1) as pool:
        asked = pool.submit(recorded, git)
        digests = _digests(str(home.root), found, tick)
        hashes = asked.result()
    blobs = first_blobs(git, {path for path in found if path not in hashes})
    checked = [
        Checked(path, "proved")
        if digests[path] == hashes.get(path)
        else _check(home, path, hashes.get(path), blobs.get(path))
        for path in found
    ]
    todo = "It was sealed and committed; restore it with: git checkout HEAD -- <path>"
    return checked + [Checked(path, "missing", todo) for path in sorted(hashes.keys() - digests.keys())]


def _digests(root: str, paths: list[str], tick: Callable[[int, int], None]) -> dict[str, str]:
    found = {}
    for number, path in enumerate(paths, 1):
        found[path] = ""
        with suppress(OSError), open(f"{root}/{path}", "rb", buffering=0) as file:
            found[path] = files.digest(file.read())
        tick(number, len(paths))
    return found


def _check(home: Home, path: str, sha256: str | None, blob: str | None) -> Checked:
    file = home.root / path
    try:
        data = file.read_bytes()
    except OSError as error:
        return Checked(path, "unreadable", str(error))
    if sha256 is not None:
        if files.digest(data) == sha256:
            return Checked(path, "proved")
        return Checked(
            path, "touched", "Its bytes are not those that were sealed. Compare: git diff HEAD -- <path>"
        )
    if blob is not None:
        same = blob_name(data, "sha256" if len(blob) == 64 else "sha1") == blob
        state = "proved by its first commit" if same else "touched"
        return Checked(path, state, "" if same else "It differs from the commit that added it.")
    parsed = load(home, path)
    if wrong := errors_of(parsed):
        return Checked(path, "not readable", str(wrong[0]))
    return Checked(path, "not committed yet" if parsed.sealed else "open")

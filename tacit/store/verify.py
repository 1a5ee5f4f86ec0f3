"""Proof that no sealed transcript was touched.

Each commit of a transcript carries its hash; the commit itself is part of git's hash chain. A transcript
without a recorded hash (written and committed by hand) is held against the commit that first added it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Kept:
    """What a commit says of a transcript: the hash in its trailer, or the blob it added."""

    hash: str
    commit: str


def recorded(git: Git) -> tuple[dict[str, Kept], list[str]]:
    """Path to hash from the trailers of all commits, and the commits without any. The first record of a
    path counts: whoever forges a second one later is found out."""
    if git.head() is None:
        return {}, []
    form = "%x00".join(("%H", *(f"%(trailers:key={key},valueonly,separator=%x01)" for key in _TRAILERS)))
    out = git.run("log", "--topo-order", "--reverse", f"--format={form}", timeout=600)
    found: dict[str, list[Kept]] = {}
    by_hand = []
    for line in out.decode("utf-8", "surrogateescape").split("\n")[:-1]:
        commit, paths, hashes = line.split("\0")
        if not hashes:
            by_hand.append(commit)
        for path, value in zip(paths.split("\x01"), hashes.split("\x01"), strict=False):
            if path and value:
                found.setdefault(path, []).append(Kept(value.strip(), commit))
    return {path: _first(git, records) for path, records in found.items()}, by_hand


def _first(git: Git, records: list[Kept]) -> Kept:
    """The oldest by descent: a date is only what its writer claims. Of records that do not descend from one
    another, one on the main line counts before one that a merge brought along."""
    if len({record.hash for record in records}) == 1:
        return records[0]
    line = set(git.run("rev-list", "--first-parent", "HEAD", timeout=600).decode().split())
    candidates = [record for record in records if record.commit in line] or records
    others = [record for record in records if git.is_ancestor(record.commit, candidates[0].commit)]
    return [*others, candidates[0]][0]


def added(git: Git, commits: list[str]) -> dict[str, Kept]:
    """Path to the blob that the first of these commits gave it."""
    if not commits:
        return {}
    # -m: a merge commit may have added one too. --root: so may the very first commit.
    arguments = (
        "diff-tree",
        "--stdin",
        "-m",
        "--root",
        "-r",
        "--diff-filter=A",
        "--no-renames",
        "--no-abbrev",
    )
    stdin = "".join(f"{commit}\n" for commit in commits).encode()
    out = git.run(*arguments, "-z", "--", CONVERSATIONS, stdin=stdin, timeout=600)
    found: dict[str, Kept] = {}
    commit, pieces = "", iter(out.split(b"\0"))
    for piece in pieces:
        meta = piece.lstrip(b"\n")
        if meta.startswith(b":"):
            path = os.fsdecode(next(pieces))
            if path.endswith(".md"):
                found.setdefault(path, Kept(meta.split()[3].decode(), commit))
        elif meta:
            commit = meta.split()[0].decode()
    return found


def _smuggled(git: Git, unknown: set[str]) -> dict[str, Kept]:
    """Transcripts in HEAD of which no commit by hand knows: one with a trailer brought more than it names."""
    if not unknown or git.head() is None or not unknown & git.tree("HEAD", CONVERSATIONS).keys():
        return {}
    everything = git.run("rev-list", "--topo-order", "--reverse", "HEAD", timeout=600).decode().split()
    return {path: kept for path, kept in added(git, everything).items() if path in unknown}


def verify(home: Home, git: Git, tick: Callable[[int, int], None]) -> list[Checked]:
    """Check every transcript; `tick(done, all)` after each. git reads its log while we hash."""
    found = [path for path in files.Tree(home.root).files(CONVERSATIONS) if path.endswith(".md")]
    with ThreadPoolExecutor(max_workers=1) as pool:
        asked = pool.submit(recorded, git)
        digests = _digests(str(home.root), found, tick)
        told, by_hand = asked.result()
    records, first = _spelled(told, found), added(git, by_hand)
    first |= _smuggled(git, set(found) - records.keys() - first.keys())
    known = {path: first[path] for path in first.keys() - records.keys()}
    checked = [
        Checked(path, "proved")
        if path in records and digests[path] == records[path].hash
        else _check(home, git, path, records.get(path), known.get(path))
        for path in found
    ]
    gone = {**known, **records}
    return checked + [_missing(home, path, gone[path]) for path in sorted(gone.keys() - digests.keys())]


def _spelled(records: dict[str, Kept], found: list[str]) -> dict[str, Kept]:
    """Older commits could not write down a name that is not UTF-8, and have ? in the place of such bytes."""
    spelled = dict(records)
    for path in found:
        written = path.encode("utf-8", "replace").decode()
        if written != path and written in spelled and path not in spelled:
            spelled[path] = spelled.pop(written)
    return spelled


def _missing(home: Home, path: str, kept: Kept) -> Checked:
    todo = f"It was committed; restore it with: {_git(home, 'checkout', path, kept)}"
    return Checked(path, "missing", todo)


def _git(home: Home, command: str, path: str, kept: Kept) -> str:
    """A line for the shell that works from anywhere, and after the change was committed."""
    return f"git -C {shlex.quote(str(home.root))} {command} {kept.commit[:12]} -- {shlex.quote(path)}"


def _digests(root: str, paths: list[str], tick: Callable[[int, int], None]) -> dict[str, str]:
    found = {}
    for number, path in enumerate(paths, 1):
        found[path] = ""
        with suppress(OSError), open(f"{root}/{path}", "rb", buffering=0) as file:
            found[path] = files.digest(file.read())
        tick(number, len(paths))
    return found


def _check(home: Home, git: Git, path: str, record: Kept | None, first: Kept | None) -> Checked:
    try:
        data = (home.root / path).read_bytes()
    except OSError as error:
        return Checked(path, "unreadable", str(error))
    if record is not None:
        what = "Its bytes are not those that were sealed."
        return Checked(path, "touched", f"{what} Compare: {_git(home, 'diff', path, record)}")
    if first is not None:
        return _check_first(home, git, path, data, first)
    parsed = load(home, path)
    if wrong := errors_of(parsed):
        return Checked(path, "not readable", str(wrong[0]))
    return Checked(path, "not committed yet" if parsed.sealed else "open")


def _check_first(home: Home, git: Git, path: str, data: bytes, first: Kept) -> Checked:
    if blob_name(data, "sha256" if len(first.hash) == 64 else "sha1") != first.hash:
        what = "It differs from the commit that added it."
        return Checked(path, "touched", f"{what} Compare: {_git(home, 'diff', path, first)}")
    if (git.directory / "shallow").exists():  # then the oldest commit here seems to have added everything
        todo = f"Get the rest with: git -C {shlex.quote(str(home.root))} fetch --unshallow"
        return Checked(path, "not proved", f"Only a part of the history is here. {todo}")
    return Checked(path, "proved by its first commit")

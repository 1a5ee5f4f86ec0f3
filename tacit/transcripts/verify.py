"""Proves that no finalized transcript was changed.

Each commit of a transcript carries its hash; the commit itself is part of git's hash chain. A transcript
without a recorded hash (written and committed by hand) is compared with the commit that first added it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from tacit.errors import UNLOCK
from tacit.git.attributes import find_blocking_filters
from tacit.git.index import list_not_checked_out
from tacit.git.repository import Git, blob_name
from tacit.home import files
from tacit.home.layout import CONVERSATIONS, Home
from tacit.transcripts.writer import list_errors, load

_TRAILERS = ("Session", "Transcript-SHA256")
GOOD_STATES = frozenset(
    {"proved", "proved by its first commit", "open", "not committed yet", "not checked out"}
)


@dataclass(frozen=True, slots=True)
class CheckedTranscript:
    path: str
    state: str
    detail: str = ""

    @property
    def good(self) -> bool:
        return self.state in GOOD_STATES


@dataclass(frozen=True, slots=True)
class RecordedHash:
    """What a commit records of a transcript: the hash in its trailer, or the blob it added."""

    hash: str
    commit: str


def read_recorded_hashes(git: Git) -> tuple[dict[str, RecordedHash], list[str]]:
    """Path to hash from the trailers of all commits, and the commits without any. The first entry of a path
    counts, so that a forged later one is detected."""
    if git.head() is None:
        return {}, []
    log_format = "%x00".join(
        ("%H", *(f"%(trailers:key={key},valueonly,separator=%x01)" for key in _TRAILERS))
    )
    out = git.run("log", "--topo-order", "--reverse", f"--format={log_format}", timeout=600)
    by_path: dict[str, list[RecordedHash]] = {}
    without_trailer = []
    for line in out.decode("utf-8", "surrogateescape").split("\n")[:-1]:
        commit, paths, hashes = line.split("\0")
        if not hashes:
            without_trailer.append(commit)
        for path, value in zip(paths.split("\x01"), hashes.split("\x01"), strict=False):
            if path and value:
                by_path.setdefault(path, []).append(RecordedHash(value.strip(), commit))
    return {path: _choose_oldest(git, records) for path, records in by_path.items()}, without_trailer


def _choose_oldest(git: Git, records: list[RecordedHash]) -> RecordedHash:
    """The oldest by descent, since a commit may have any date. Of entries that do not descend from one
    another, one on the main line counts before one that a merge brought in."""
    if len({record.hash for record in records}) == 1:
        return records[0]
    main_line = set(git.run("rev-list", "--first-parent", "HEAD", timeout=600).decode().split())
    candidates = [record for record in records if record.commit in main_line] or records
    others = [record for record in records if git.is_ancestor(record.commit, candidates[0].commit)]
    return [*others, candidates[0]][0]


def find_added_blobs(git: Git, commits: list[str]) -> dict[str, RecordedHash]:
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
    blobs: dict[str, RecordedHash] = {}
    commit, parts = "", iter(out.split(b"\0"))
    for part in parts:
        header = part.lstrip(b"\n")
        if header.startswith(b":"):
            path = os.fsdecode(next(parts))
            if path.endswith(".md"):
                blobs.setdefault(path, RecordedHash(header.split()[3].decode(), commit))
        elif header:
            commit = header.split()[0].decode()
    return blobs


def _find_unlisted(git: Git, unknown: set[str]) -> dict[str, RecordedHash]:
    """Transcripts in HEAD that a commit with a trailer added without naming them."""
    if not unknown or git.head() is None or not unknown & git.tree("HEAD", CONVERSATIONS).keys():
        return {}
    commits = git.run("rev-list", "--topo-order", "--reverse", "HEAD", timeout=600).decode().split()
    return {path: blob for path, blob in find_added_blobs(git, commits).items() if path in unknown}


def verify(home: Home, git: Git, tick: Callable[[int, int], None]) -> list[CheckedTranscript]:
    """Check every transcript and call `tick(done, all)` after each. git reads its log while we hash."""
    paths = [path for path in files.Tree(home.root).files(CONVERSATIONS) if path.endswith(".md")]
    with ThreadPoolExecutor(max_workers=1) as pool:
        pending = pool.submit(read_recorded_hashes, git)
        digests = _compute_digests(str(home.root), paths, tick)
        recorded_hashes, without_trailer = pending.result()
    records, first = _restore_names(recorded_hashes, paths), find_added_blobs(git, without_trailer)
    first |= _find_unlisted(git, set(paths) - records.keys() - first.keys())
    first_blobs = {path: first[path] for path in first.keys() - records.keys()}
    checked = [
        CheckedTranscript(path, "proved")
        if path in records and digests[path] == records[path].hash
        else _check_transcript(home, git, path, records.get(path), first_blobs.get(path))
        for path in paths
    ]
    expected = {**first_blobs, **records}
    absent = {path: expected[path] for path in sorted(expected.keys() - digests.keys())}
    sparse = dict(_check_sparse(home, git, absent))
    return checked + [
        sparse.get(path) or _report_missing(home, path, entry) for path, entry in absent.items()
    ]


def _check_sparse(
    home: Home, git: Git, absent: dict[str, RecordedHash]
) -> Iterator[tuple[str, CheckedTranscript]]:
    """For files that are in git and not on this disk: whether git still has the finalized bytes."""
    sparse = list_not_checked_out(git) & absent.keys() if absent and git.head() else set()
    blobs = git.tree("HEAD", CONVERSATIONS) if sparse else {}
    for path in sorted(sparse & blobs.keys()):
        recorded, blob = absent[path], blobs[path]
        data = git.blobs([blob.name]).get(blob.name)
        if data is None or blob.name == recorded.hash or files.digest(data) == recorded.hash:
            yield path, CheckedTranscript(path, "not checked out")
        else:
            message = "It is not checked out, and its bytes in git are not those that were sealed."
            yield (
                path,
                CheckedTranscript(
                    path, "touched", f"{message} Compare: {_git_command(home, 'diff', path, recorded)}"
                ),
            )


def _restore_names(records: dict[str, RecordedHash], paths: list[str]) -> dict[str, RecordedHash]:
    """Older commits have ? in place of bytes of a name that are not UTF-8: restore the real names."""
    restored = dict(records)
    for path in paths:
        replaced = path.encode("utf-8", "replace").decode()
        if replaced != path and replaced in restored and path not in restored:
            restored[path] = restored.pop(replaced)
    return restored


def _report_missing(home: Home, path: str, recorded: RecordedHash) -> CheckedTranscript:
    todo = f"It was committed; restore it with: {_git_command(home, 'checkout', path, recorded)}"
    return CheckedTranscript(path, "missing", todo)


def _git_command(home: Home, command: str, path: str, recorded: RecordedHash) -> str:
    """A shell command that works from any folder, also after the change was committed."""
    return f"git -C {shlex.quote(str(home.root))} {command} {recorded.commit[:12]} -- {shlex.quote(path)}"


def _compute_digests(root: str, paths: list[str], tick: Callable[[int, int], None]) -> dict[str, str]:
    digests = {}
    for number, path in enumerate(paths, 1):
        digests[path] = ""
        with suppress(OSError), open(f"{root}/{path}", "rb", buffering=0) as file:
            digests[path] = files.digest(file.read())
        tick(number, len(paths))
    return digests


def _check_transcript(
    home: Home, git: Git, path: str, recorded: RecordedHash | None, first: RecordedHash | None
) -> CheckedTranscript:
    try:
        data = (home.root / path).read_bytes()
    except OSError as error:
        return CheckedTranscript(path, "unreadable", str(error))
    if files.is_encrypted(data) and (recorded or first):
        return CheckedTranscript(path, "locked", UNLOCK)
    if recorded is not None:
        message = "Its bytes are not those that were sealed."
        return CheckedTranscript(
            path, "touched", f"{message} Compare: {_git_command(home, 'diff', path, recorded)}"
        )
    if first is not None:
        return _check_first_commit(home, git, path, data, first)
    transcript = load(home, path)
    if errors := list_errors(transcript):
        return CheckedTranscript(path, "not readable", str(errors[0]))
    return CheckedTranscript(path, "not committed yet" if transcript.sealed else "open")


def _check_first_commit(
    home: Home, git: Git, path: str, data: bytes, first: RecordedHash
) -> CheckedTranscript:
    if blob_name(data, "sha256" if len(first.hash) == 64 else "sha1") != first.hash:
        if name := find_blocking_filters(git, [path]).get(path):
            message = f"git keeps it through the filter {name}, which tacit does not run."
            return CheckedTranscript(path, "not proved", f"{message} See whether it changed with: git status")
        message = "It differs from the commit that added it."
        return CheckedTranscript(
            path, "touched", f"{message} Compare: {_git_command(home, 'diff', path, first)}"
        )
    if (git.directory / "shallow").exists():  # then the oldest commit here seems to have added everything
        todo = f"Get the rest with: git -C {shlex.quote(str(home.root))} fetch --unshallow"
        return CheckedTranscript(path, "not proved", f"Only a part of the history is here. {todo}")
    return CheckedTranscript(path, "proved by its first commit")

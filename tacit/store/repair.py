"""What can be wrong with the repository, and the smallest repair for each.

`findings` looks and changes nothing; `repair` applies what it found. Working files are never touched, nothing
is deleted that could hold work (a broken index is set aside), and history is never rewritten: a branch whose
newest commit did not survive a power cut goes back to its last readable one, and what that commit held is
still on disk and is committed again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tacit.model.problems import Problem
from tacit.store import files, locks
from tacit.store.git import Git, blob_name
from tacit.store.home import Home

_ZERO = "0" * 40


@dataclass(frozen=True, slots=True)
class Finding:
    problem: Problem
    mend: Callable[[], None] | None = None


def findings(home: Home, git: Git, *, ours_since: float | None = None) -> Iterator[Finding]:
    """Lazily, in the order in which repairs must happen: each may depend on the one before."""
    if not (home.root / ".git").exists():
        yield _finding(".git", "the home is not a git repository.", f"Run: tacit init {home.root}")
        return
    yield from _dead_locks(home, git, ours_since)
    yield from _head(git)
    yield from _config(git)
    yield from _branch(git)
    yield from _index(git)
    yield from _empty_objects(home, git)


def repair(home: Home, git: Git) -> list[str]:
    """Mend what can be mended; returns what was done."""
    done = []
    for finding in findings(home, git):
        if finding.mend is not None:
            finding.mend()
            done.append(str(finding.problem))
    return done


def clear_dead_locks(home: Home, git: Git, *, since: float) -> None:
    for finding in _dead_locks(home, git, since):
        if finding.mend is not None:
            finding.mend()


def _finding(where: str, what: str, todo: str = "", mend: Callable[[], None] | None = None) -> Finding:
    return Finding(Problem(where, what, todo), mend)


def _dead_locks(home: Home, git: Git, ours_since: float | None) -> Iterator[Finding]:
    """`ours_since`: our own git died at work after that moment, so younger locks are certainly not older
    than that and no reason to wait. index.lock is only ever cleared when it can be ours."""
    for lock in locks.ref_locks(git.directory):
        ours = ours_since is not None and _made_since(lock, ours_since)
        if locks.is_dead(lock, home.root, ours=ours):
            yield _dead_lock(lock)
    lock = git.directory / "index.lock"
    if lock.exists() and locks.is_dead(lock, home.root, ours=True):
        if ours_since is not None and _made_since(lock, ours_since):
            yield _dead_lock(lock)
        elif locks.is_dead(lock, home.root):
            todo = f"It blocks your own git, not tacit. If no git is running: rm {lock}"
            yield _finding(".git/index.lock", "was left by a git that died.", todo)


def _made_since(lock: Path, moment: float) -> bool:
    return lock.stat().st_mtime >= moment - 1.0


def _dead_lock(lock: Path) -> Finding:
    where = ".git/" + str(lock).rpartition("/.git/")[2]
    return _finding(where, "was left by a git that died.", "", lambda: lock.unlink(missing_ok=True))


def _head(git: Git) -> Iterator[Finding]:
    file = git.directory / "HEAD"
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError):
        text = ""
    if re.fullmatch(r"(ref: refs/\S+|[0-9a-f]{40}|[0-9a-f]{64})\s*", text):
        return
    branch = _likely_branch(git)
    todo = f"`tacit init` points it at {branch} again."
    yield _finding(".git/HEAD", "is missing or damaged.", todo, lambda: _point_head(file, branch))


def _config(git: Git) -> Iterator[Finding]:
    file = git.directory / "config"
    if not file.is_file() or file.stat().st_size == 0:
        branch = git.branch() or "main"
        yield _finding(
            ".git/config", "is missing or empty.", "`tacit init` makes it.", lambda: git.init(branch)
        )


def _point_head(file: Path, branch: str) -> None:
    files.replace(file, f"ref: refs/heads/{branch}\n".encode(), mode=0o644)


def _likely_branch(git: Git) -> str:
    heads = git.directory / "logs" / "HEAD"
    folder = git.directory / "refs" / "heads"
    names = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()]
    if len(names) == 1 or not heads.exists():
        return names[0] if len(names) == 1 else "main"
    return "main" if "main" in names or not names else names[0]


def _branch(git: Git) -> Iterator[Finding]:
    branch = git.branch()
    if branch is None:
        return
    ref = git.directory / "refs" / "heads" / branch
    log = git.directory / "logs" / "refs" / "heads" / branch
    unborn = not (ref.is_file() or log.is_file())
    if unborn or _readable(git, f"refs/heads/{branch}"):
        return
    last = _last_readable(git, branch)
    what = f"branch {branch} points at a commit that did not survive."
    if last is None:
        todo = (
            "There is no older commit in its log. Restore .git from a backup or a clone; your files are safe."
        )
        yield _finding(f".git/refs/heads/{branch}", what, todo)
        return
    todo = f"`tacit init` moves it back to {last[:10]}; the files stay and are committed again."
    yield _finding(f".git/refs/heads/{branch}", what, todo, lambda: _move_back(git, ref, last))


def _readable(git: Git, name: str) -> bool:
    """Whether commit and trees can be read; blobs are looked at apart."""
    return git.attempt("ls-tree", "-r", "-t", "--name-only", "-z", f"{name}^{{commit}}").returncode == 0


def _last_readable(git: Git, branch: str) -> str | None:
    log = git.directory / "logs" / "refs" / "heads" / branch
    lines = log.read_bytes().splitlines() if log.is_file() else []
    names = [name for line in reversed(lines) for name in _names_in(line)]
    return next((name for name in names if name.strip("0") and _readable(git, name)), None)


def _names_in(line: bytes) -> list[str]:
    found = re.match(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) ", line)
    return [found[2].decode(), found[1].decode()] if found else []


def _move_back(git: Git, ref: Path, name: str) -> None:
    if ref.is_file():
        _set_aside_object(git, ref.read_bytes().strip().decode("ascii", "replace"))
    files.make_directories(ref.parent, 0o755)
    files.replace(ref, f"{name}\n".encode(), mode=0o644)
    git.sync()
    # The index still has what the lost commit held, which would now look like staged work of the user's.
    if (git.directory / "index").exists():
        _renew_index(git, git.directory / "index")


def _set_aside_object(git: Git, name: str) -> None:
    loose = git.directory / "objects" / name[:2] / name[2:]
    if name and loose.is_file():
        loose.rename(git.directory / f"{name}.broken")


def _index(git: Git) -> Iterator[Finding]:
    index = git.directory / "index"
    if not index.exists() or git.attempt("ls-files", "-z", "--cached").returncode == 0:
        return
    what = "the index is damaged, so your own git commands fail."
    todo = "`tacit init` sets it aside as .git/index.broken and makes a new one; files are not touched."
    yield _finding(".git/index", what, todo, lambda: _renew_index(git, index))


def _renew_index(git: Git, index: Path) -> None:
    index.rename(index.with_name("index.broken"))
    if git.head() is not None:
        git.run("read-tree", "HEAD")


def _empty_objects(home: Home, git: Git) -> Iterator[Finding]:
    """Loose objects of no bytes: what a power cut leaves of a file that was never synced. git takes them for
    there, so a commit that needs one again would be broken too: they always go."""
    for path in [path for path in git.directory.glob("objects/??/*") if path.stat().st_size == 0]:
        name = path.parent.name + path.name
        source = _file_of(home, git, name)
        if source is not None:
            todo = f"`tacit init` makes it anew from {source.relative_to(home.root)}."
        else:
            todo = "`tacit init` removes it. If history needs it, restore it from a backup (git fetch)."
        yield _finding(
            f".git/objects/{path.parent.name}",
            f"object {name[:10]} is empty.",
            todo,
            lambda path=path, source=source: _write_again(git, path, source),  # type: ignore[misc]
        )


def _file_of(home: Home, git: Git, name: str) -> Path | None:
    done = git.attempt("ls-tree", "-r", "-z", "HEAD")
    for entry in done.stdout.split(b"\0"):
        meta, _, path = entry.partition(b"\t")
        if name.encode() in meta:
            file = home.root / os.fsdecode(path)
            if file.is_file() and blob_name(file.read_bytes()) == name:
                return file
    return None


def _write_again(git: Git, empty: Path, source: Path | None) -> None:
    empty.unlink()
    if source is None:
        return
    git.run("hash-object", "-w", "--no-filters", "--stdin", stdin=source.read_bytes())
    git.sync()

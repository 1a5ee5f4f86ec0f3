"""What can be wrong with the repository, and the smallest repair for each.

`findings` looks and changes nothing; `repair` applies what it found. Working files are never touched, nothing
is deleted that could hold work (a broken index is set aside), and history is never rewritten: a branch whose
newest commit did not survive a power cut goes back to its last readable one, and what that commit held is
still on disk and is committed again.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from tacit.model.problems import Problem
from tacit.store import files, locks
from tacit.store.git import Git, blob_name
from tacit.store.home import Home

_OBJECT = re.compile(r"[0-9a-f]{38}|[0-9a-f]{62}")  # a loose object below its folder; else git is writing it


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
    unreadable = list(_unreadable_config(git))
    if unreadable:
        yield from unreadable  # git says no to everything now, which tells nothing about the rest
        return
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
    file = git.common / "config"
    if not file.is_file() or file.stat().st_size == 0:
        branch = git.branch() or "main"
        yield _finding(
            ".git/config", "is missing or empty.", "`tacit init` makes it.", lambda: git.init(branch)
        )


def _unreadable_config(git: Git) -> Iterator[Finding]:
    file = git.common / "config"
    for command in (["config", "--file", str(file), "--list"], ["rev-parse", "--git-dir"]):
        said = _complaint(git, *command)
        if re.search(r"\bconfig|extension|repository version", said):
            todo = "Your own git commands fail too. Correct that line; tacit does not change your settings."
            yield _finding(".git/config", f"git cannot use it: {said}.", todo)
            return


def _complaint(git: Git, *command: str) -> str:
    done = git.attempt(*command)
    return done.stderr.decode("utf-8", "replace").strip().rstrip(".") if done.returncode else ""


def _point_head(file: Path, branch: str) -> None:
    files.replace(file, f"ref: refs/heads/{branch}\n".encode(), mode=0o644)


def _likely_branch(git: Git) -> str:
    """The one that was switched to last, else the only one, else main."""
    names = _branches(git)
    last = _last_switch(git)
    if last in names:
        return last
    return names[0] if len(names) == 1 or (names and "main" not in names) else "main"


def _branches(git: Git) -> list[str]:
    """Those with a file of their own, then the packed ones. Not asked of git: it needs a sound HEAD."""
    folder = git.common / "refs" / "heads"
    loose = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()]
    packed = re.findall(
        rb"^[0-9a-f]{40,64} refs/heads/(\S+)$", _bytes(git.common / "packed-refs"), re.MULTILINE
    )
    return list(dict.fromkeys([*loose, *map(os.fsdecode, packed)]))


def _last_switch(git: Git) -> str:
    moves = re.findall(
        rb"\tcheckout: moving from \S+ to (\S+)$", _bytes(git.directory / "logs/HEAD"), re.MULTILINE
    )
    return os.fsdecode(moves[-1]) if moves else ""


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _branch(git: Git) -> Iterator[Finding]:
    branch = git.branch()
    if branch is None:
        return
    log = git.common / "logs" / "refs" / "heads" / branch
    unborn = not log.is_file() and branch not in _branches(git)
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
    yield _finding(f".git/refs/heads/{branch}", what, todo, lambda: _move_back(git, branch, last))


def _readable(git: Git, name: str) -> bool:
    """Whether commit and trees can be read; blobs are looked at apart."""
    return git.attempt("ls-tree", "-r", "-t", "--name-only", "-z", f"{name}^{{commit}}").returncode == 0


def _logged(git: Git, branch: str) -> list[str]:
    """Where the branch has been, the newest first."""
    lines = _bytes(git.common / "logs" / "refs" / "heads" / branch).splitlines()
    names = [name for line in reversed(lines) for name in _names_in(line)]
    return [name for name in names if name.strip("0")]  # before its first commit a branch was at zero


def _last_readable(git: Git, branch: str) -> str | None:
    return next((name for name in _logged(git, branch) if _readable(git, name)), None)


def _names_in(line: bytes) -> list[str]:
    found = re.match(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) ", line)
    return [found[2].decode(), found[1].decode()] if found else []


def _move_back(git: Git, branch: str, name: str) -> None:
    ref = git.common / "refs" / "heads" / branch
    lost = list(takewhile(lambda past: past != name, _logged(git, branch)))
    if ref.is_file():
        _set_aside_object(git, ref.read_bytes().strip().decode("ascii", "replace"))
    files.make_directories(ref.parent, 0o755)
    files.replace(ref, f"{name}\n".encode(), mode=0o644)
    git.sync(f"refs/heads/{branch}")
    _forget_in_logs(git, branch, lost)
    # Where commits were lost, the index still has what they held, which would look like staged work. Where
    # only the branch's file was, the index is right, and so is what the user staged in it.
    if lost and (git.directory / "index").exists():
        _renew_index(git, git.directory / "index")


def _forget_in_logs(git: Git, branch: str, lost: list[str]) -> None:
    """`git fsck` fails for ever on a log that names what is gone."""
    for log in (git.directory / "logs" / "HEAD", git.common / "logs" / "refs" / "heads" / branch):
        lines = _bytes(log).splitlines(keepends=True)
        kept = [line for line in lines if not set(_names_in(line)) & set(lost)]
        if kept != lines:
            files.replace(log, b"".join(kept), mode=0o644)


def _set_aside_object(git: Git, name: str) -> None:
    loose = git.common / "objects" / name[:2] / name[2:]
    if name and loose.is_file():
        loose.rename(git.directory / f"{name}.broken")


def _index(git: Git) -> Iterator[Finding]:
    index = git.directory / "index"
    if not index.exists() or not _is_damaged(git, index):
        return
    what = "the index is damaged, so your own git commands fail."
    todo = "`tacit init` sets it aside as .git/index.broken and makes a new one; files are not touched."
    yield _finding(".git/index", what, todo, lambda: _renew_index(git, index))


def _is_damaged(git: Git, index: Path) -> bool:
    """A git that fails is not enough: it may do so for any reason, and the index holds what was staged. Nor
    is one that does not: over an index that was cut off it reads zeros and goes on."""
    sound = _has_sound_bytes(index.read_bytes(), git.algorithm)
    return not sound or "index file" in _complaint(git, "ls-files", "-z", "--cached")


def _has_sound_bytes(data: bytes, algorithm: str) -> bool:
    size = hashlib.new(algorithm, usedforsecurity=False).digest_size
    body, ending = data[:-size], data[-size:]
    checked = hashlib.new(algorithm, body, usedforsecurity=False).digest()
    return body.startswith(b"DIRC") and ending in (checked, bytes(size))  # zeros: index.skipHash


def _renew_index(git: Git, index: Path) -> None:
    index.rename(index.with_name("index.broken"))
    if git.head() is not None:
        git.run("read-tree", "HEAD")


def _empty_objects(home: Home, git: Git) -> Iterator[Finding]:
    """Loose objects of no bytes: what a power cut leaves of a file that was never synced. git takes them for
    there, so a commit that needs one again would be broken too: they always go."""
    for path in [path for path in git.common.glob("objects/??/*") if _is_empty_object(path)]:
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


def _is_empty_object(path: Path) -> bool:
    try:
        return _OBJECT.fullmatch(path.name) is not None and path.stat().st_size == 0
    except FileNotFoundError:  # packed while we were looking
        return False


def _file_of(home: Home, git: Git, name: str) -> Path | None:
    done = git.attempt("ls-tree", "-r", "-z", "HEAD")
    for entry in done.stdout.split(b"\0"):
        meta, _, path = entry.partition(b"\t")
        if name.encode() in meta:
            file = home.root / os.fsdecode(path)
            if file.is_file() and blob_name(file.read_bytes(), git.algorithm) == name:
                return file
    return None


def _write_again(git: Git, empty: Path, source: Path | None) -> None:
    empty.unlink()
    if source is None:
        return
    started = time.time()
    git.run("hash-object", "-w", "--no-filters", "--stdin", stdin=source.read_bytes())
    git.sync(since=started)

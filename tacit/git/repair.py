"""Find damage in the repository, make the smallest repair for each kind, and finish interrupted work.

`find_damage` only reads; `repair` fixes the problems. Working files are never touched, nothing that could
hold work is deleted (a broken index is renamed), and history is never rewritten: if a power cut destroyed the
newest commit of a branch, the branch goes back to its last readable commit, and the files, which are still on
disk, are committed again.

`GitWork` puts a marker on disk while our git is at work, so that the next start can finish work that a kill
interrupted. `.tacit/git-busy` lists the paths to update in the user's index, with their previous entries: an
entry that has changed since was staged by the user and stays. A marker found at the start means one of two
things. `working`: we died in the middle, so locks made since then are ours to clear. `stale`: the commit was
made, but another process held the index. The index must be updated, or the user's next plain commit would
remove our files from HEAD again. Callers of `GitWork` hold the home's lock.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from tacit.diagnostics import Problem
from tacit.git.index import find_entries, list_not_checked_out, update_entries
from tacit.git.repository import Blob, Git, blob_name, common_directory
from tacit.git.work_trees import drop_incomplete_work_trees
from tacit.home import files
from tacit.home.layout import Home

_MAX_LOCK_AGE_S = 60.0  # without /proc, or if the owner is unknown, an older lock counts as dead
_OBJECT_NAME = re.compile(
    r"[0-9a-f]{38}|[0-9a-f]{62}"
)  # a loose object in its folder; other names are git's temporary files


@dataclass(frozen=True, slots=True)
class DamageFinding:
    problem: Problem
    mend: Callable[[], None] | None = None


def find_damage(home: Home, git: Git, *, ours_since: float | None = None) -> Iterator[DamageFinding]:
    """Yield problems lazily, in the order of repair: each check may depend on the repair before it."""
    if not (home.root / ".git").exists():
        yield _make_finding(".git", "the home is not a git repository.", f"Run: tacit init {home.root}")
        return
    yield from _check_locks(home, git, ours_since)
    yield from _check_head(git)
    yield from _check_config(git)
    unreadable = list(_check_config_readable(git))
    if unreadable:
        yield from unreadable  # every git command fails now, so the other checks would tell us nothing
        return
    yield from _check_branch(git)
    yield from _check_index(git)
    yield from _check_empty_objects(home, git)


def repair(home: Home, git: Git) -> list[str]:
    """Repair what can be repaired; returns the problems that were fixed."""
    messages = []
    for finding in find_damage(home, git):
        if finding.mend is not None:
            finding.mend()
            messages.append(str(finding.problem))
    return messages


def clear_dead_locks(home: Home, git: Git, *, since: float) -> None:
    for finding in _check_locks(home, git, since):
        if finding.mend is not None:
            finding.mend()


def _make_finding(
    path: str, message: str, advice: str = "", mend: Callable[[], None] | None = None
) -> DamageFinding:
    return DamageFinding(Problem(path, message, advice), mend)


def _check_locks(home: Home, git: Git, ours_since: float | None) -> Iterator[DamageFinding]:
    """`ours_since`: our own git died after that moment, so locks made since then are ours and need no
    waiting time. index.lock is only cleared if it can be ours."""
    for lock in list_ref_locks(git.directory):
        is_ours = ours_since is not None and _is_made_since(lock, ours_since)
        if is_dead_lock(lock, home.root, ours=is_ours):
            yield _lock_finding(lock)
    lock = git.directory / "index.lock"
    if lock.exists() and is_dead_lock(lock, home.root, ours=True):
        if ours_since is not None and _is_made_since(lock, ours_since):
            yield _lock_finding(lock)
        elif is_dead_lock(lock, home.root):
            advice = f"It blocks your own git, not tacit. If no git is running: rm {lock}"
            yield _make_finding(".git/index.lock", "was left by a git that died.", advice)


def _is_made_since(lock: Path, moment: float) -> bool:
    return lock.stat().st_mtime >= moment - 1.0


def _lock_finding(lock: Path) -> DamageFinding:
    path = ".git/" + str(lock).rpartition("/.git/")[2]
    return _make_finding(path, "was left by a git that died.", "", lambda: lock.unlink(missing_ok=True))


def _check_head(git: Git) -> Iterator[DamageFinding]:
    file = git.directory / "HEAD"
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError):
        text = ""
    if re.fullmatch(r"(ref: refs/\S+|[0-9a-f]{40}|[0-9a-f]{64})\s*", text):
        return
    branch = _guess_branch(git)
    advice = f"`tacit init` points it at {branch} again."
    yield _make_finding(".git/HEAD", "is missing or damaged.", advice, lambda: _point_head(file, branch))


def _check_config(git: Git) -> Iterator[DamageFinding]:
    file = git.common / "config"
    if not file.is_file() or file.stat().st_size == 0:
        branch = git.branch() or "main"
        yield _make_finding(
            ".git/config", "is missing or empty.", "`tacit init` makes it.", lambda: git.init(branch)
        )


def _check_config_readable(git: Git) -> Iterator[DamageFinding]:
    file = git.common / "config"
    for command in (["config", "--file", str(file), "--list"], ["rev-parse", "--git-dir"]):
        error = _run_for_error(git, *command)
        if re.search(r"\bconfig|extension|repository version", error):
            advice = "Your own git commands fail too. Correct that line; tacit does not change your settings."
            yield _make_finding(".git/config", f"git cannot use it: {error}.", advice)
            return


def _run_for_error(git: Git, *command: str) -> str:
    result = git.attempt(*command)
    return result.stderr.decode("utf-8", "replace").strip().rstrip(".") if result.returncode else ""


def _point_head(file: Path, branch: str) -> None:
    files.replace(file, f"ref: refs/heads/{branch}\n".encode())


def _guess_branch(git: Git) -> str:
    """The branch that was switched to last, else the only one, else main."""
    names = _list_branches(git)
    last = _find_last_switch(git)
    if last in names:
        return last
    return names[0] if len(names) == 1 or (names and "main" not in names) else "main"


def _list_branches(git: Git) -> list[str]:
    """Loose branches, then packed ones. Read from files, because git needs an intact HEAD."""
    folder = git.common / "refs" / "heads"
    loose = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()]
    packed = re.findall(
        rb"^[0-9a-f]{40,64} refs/heads/(\S+)$", _read_bytes(git.common / "packed-refs"), re.MULTILINE
    )
    return list(dict.fromkeys([*loose, *map(os.fsdecode, packed)]))


def _find_last_switch(git: Git) -> str:
    moves = re.findall(
        rb"\tcheckout: moving from \S+ to (\S+)$", _read_bytes(git.directory / "logs/HEAD"), re.MULTILINE
    )
    return os.fsdecode(moves[-1]) if moves else ""


def _read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _check_branch(git: Git) -> Iterator[DamageFinding]:
    branch = git.branch()
    if branch is None:
        return
    log = git.common / "logs" / "refs" / "heads" / branch
    is_unborn = not log.is_file() and branch not in _list_branches(git)
    if is_unborn or _is_readable(git, f"refs/heads/{branch}"):
        return
    if git.lacks_objects():
        message = f"the files of branch {branch} were never fetched: this is a partial clone."
        yield _make_finding(f".git/refs/heads/{branch}", message, "Get them with: git fetch --refetch")
        return
    last = _find_last_readable(git, branch)
    message = f"branch {branch} points at a commit that did not survive."
    if last is None:
        advice = (
            "There is no older commit in its log. Restore .git from a backup or a clone; your files are safe."
        )
        yield _make_finding(f".git/refs/heads/{branch}", message, advice)
        return
    advice = f"`tacit init` moves it back to {last[:10]}; the files stay and are committed again."
    yield _make_finding(f".git/refs/heads/{branch}", message, advice, lambda: _move_back(git, branch, last))


def _is_readable(git: Git, name: str) -> bool:
    """Whether the commit and its trees can be read; blobs are checked separately."""
    return git.attempt("ls-tree", "-r", "-t", "--name-only", "-z", f"{name}^{{commit}}").returncode == 0


def _read_log(git: Git, branch: str) -> list[str]:
    """The commits in the branch's log, newest first."""
    lines = _read_bytes(git.common / "logs" / "refs" / "heads" / branch).splitlines()
    names = [name for line in reversed(lines) for name in _parse_log_line(line)]
    return [name for name in names if name.strip("0")]  # the log starts at zero, before the first commit


def _find_last_readable(git: Git, branch: str) -> str | None:
    return next((name for name in _read_log(git, branch) if _is_readable(git, name)), None)


def _parse_log_line(line: bytes) -> list[str]:
    match = re.match(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) ", line)
    return [match[2].decode(), match[1].decode()] if match else []


def _move_back(git: Git, branch: str, name: str) -> None:
    ref = git.common / "refs" / "heads" / branch
    lost = list(takewhile(lambda past: past != name, _read_log(git, branch)))
    if ref.is_file():
        _set_aside_object(git, ref.read_bytes().strip().decode("ascii", "replace"))
    files.make_directories(ref.parent)
    files.replace(ref, f"{name}\n".encode())
    git.sync(f"refs/heads/{branch}")
    _drop_from_logs(git, branch, lost)
    # If commits were lost, the index still has their content, which would look like staged work. If only the
    # branch file was lost, the index is correct, including what the user staged.
    if lost and (git.directory / "index").exists():
        _renew_index(git, git.directory / "index")


def _drop_from_logs(git: Git, branch: str, lost: list[str]) -> None:
    """`git fsck` keeps failing on a log that names lost commits."""
    for log in (git.directory / "logs" / "HEAD", git.common / "logs" / "refs" / "heads" / branch):
        lines = _read_bytes(log).splitlines(keepends=True)
        remaining = [line for line in lines if not set(_parse_log_line(line)) & set(lost)]
        if remaining != lines:
            files.replace(log, b"".join(remaining))


def _set_aside_object(git: Git, name: str) -> None:
    loose = git.common / "objects" / name[:2] / name[2:]
    if name and loose.is_file():
        loose.rename(git.directory / f"{name}.broken")


def _check_index(git: Git) -> Iterator[DamageFinding]:
    index = git.directory / "index"
    if not index.exists() or not _is_damaged(git, index):
        return
    message = "the index is damaged, so your own git commands fail."
    advice = "`tacit init` sets it aside as .git/index.broken and makes a new one; files are not touched."
    yield _make_finding(".git/index", message, advice, lambda: _renew_index(git, index))


def _is_damaged(git: Git, index: Path) -> bool:
    """Checks the bytes too, because git's exit code proves nothing: git can fail for other reasons (and the
    index holds staged work), and it reads a truncated index as zeros without failing."""
    sound = _has_sound_bytes(index.read_bytes(), git.algorithm)
    return not sound or "index file" in _run_for_error(git, "ls-files", "-z", "--cached")


def _has_sound_bytes(data: bytes, algorithm: str) -> bool:
    size = hashlib.new(algorithm, usedforsecurity=False).digest_size
    body, trailer = data[:-size], data[-size:]
    checksum = hashlib.new(algorithm, body, usedforsecurity=False).digest()
    return body.startswith(b"DIRC") and trailer in (checksum, bytes(size))  # zeros: index.skipHash


def _renew_index(git: Git, index: Path) -> None:
    index.rename(index.with_name("index.broken"))
    if git.head() is not None:
        git.run("read-tree", "HEAD")


def _check_empty_objects(home: Home, git: Git) -> Iterator[DamageFinding]:
    """Empty loose objects, which a power cut leaves of files that were never synced. git thinks it has them,
    so a new commit that needs one would be broken too: they are always removed."""
    for path in [path for path in git.common.glob("objects/??/*") if _is_empty_object(path)]:
        name = path.parent.name + path.name
        source = _find_file_of(home, git, name)
        if source is not None:
            advice = f"`tacit init` makes it anew from {source.relative_to(home.root)}."
        else:
            advice = "`tacit init` removes it. If history needs it, restore it from a backup (git fetch)."
        yield _make_finding(
            f".git/objects/{path.parent.name}",
            f"object {name[:10]} is empty.",
            advice,
            lambda path=path, source=source: _rewrite_object(git, path, source),  # type: ignore[misc]
        )


def _is_empty_object(path: Path) -> bool:
    try:
        return _OBJECT_NAME.fullmatch(path.name) is not None and path.stat().st_size == 0
    except FileNotFoundError:  # packed in the meantime
        return False


def _find_file_of(home: Home, git: Git, name: str) -> Path | None:
    result = git.attempt("ls-tree", "-r", "-z", "HEAD")
    for entry in result.stdout.split(b"\0"):
        meta, _, path = entry.partition(b"\t")
        if name.encode() in meta:
            file = home.root / os.fsdecode(path)
            if file.is_file() and blob_name(file.read_bytes(), git.algorithm) == name:
                return file
    return None


def _rewrite_object(git: Git, empty: Path, source: Path | None) -> None:
    empty.unlink()
    if source is None:
        return
    started = time.time()
    git.run("hash-object", "-w", "--no-filters", "--stdin", stdin=source.read_bytes())
    git.sync(since=started)


# ---------------------------------------------------------------- lock files of git
#
# git closes index.lock while an editor is open, so an open file descriptor shows that it is in use, but its
# absence shows nothing: any live git process of this repository counts as the owner.


def is_git_running(root: Path, command: bytes = b"") -> bool | None:
    """Whether a git process (with this command) runs in this repository; None if the system cannot tell."""
    if not os.path.isdir("/proc/self/fd"):
        return None
    real_root = os.path.realpath(root)
    return any(_works_in(pid, real_root, command) for pid in _list_process_ids())


def _list_process_ids() -> Iterator[str]:
    return (name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid())


def _works_in(pid: str, root: str, command: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/comm", "rb") as name:
            if not name.read().startswith(b"git"):
                return False
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            arguments = file.read()
        if command and command not in arguments.split(b"\0"):
            return False
        folder = os.path.realpath(f"/proc/{pid}/cwd")
        return (folder + "/").startswith(root + "/") or os.fsencode(root) in arguments
    except OSError:
        return False  # it ended in the meantime, or belongs to another user


def lock_age(lock: Path) -> float:
    try:
        return time.time() - lock.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def is_dead_lock(lock: Path, root: Path, *, ours: bool = False) -> bool:
    """`ours`: our own git left the lock when it died, so its age does not matter."""
    running = is_git_running(root)
    if running is None:
        return lock_age(lock) > _MAX_LOCK_AGE_S
    return not running and (ours or lock_age(lock) > _MAX_LOCK_AGE_S)


def list_ref_locks(directory: Path) -> list[Path]:
    """Locks that block our commits. The user's index.lock does not: we never need it."""
    common = common_directory(directory)
    names = [directory / "HEAD.lock", common / "packed-refs.lock", common / "config.lock"]
    return [*(name for name in names if name.exists()), *sorted((common / "refs").rglob("*.lock"))]


class GitWork:
    def __init__(self, home: Home, git: Git) -> None:
        self._git, self._home = git, home
        self._marker = home.private / "git-busy"

    @property
    def is_unfinished(self) -> bool:
        return self._marker.exists() or not self._git.looks_sound()

    @property
    def died_since(self) -> float | None:
        """When our git started the work during which it died; None if it did not die."""
        if not self._marker.exists() or _read_marker(self._marker)[0] != "working":
            return None
        return self._marker.stat().st_mtime

    def settle(self) -> None:
        """Clear the locks of our dead git, repair damage from a power cut, update the index."""
        if (since := self.died_since) is not None:
            clear_dead_locks(self._home, self._git, since=since)
            drop_incomplete_work_trees(self._git, f"/{self._home.private.name}/")
        if self._git.directory.is_dir() and not self._git.looks_sound():
            repair(self._home, self._git)
        if not self._marker.exists():
            return
        before = _read_marker(self._marker)[1]
        self._update_index(self._read_head(self._find_unchanged(before)), before)

    def list_outdated(self) -> set[str]:
        """Paths whose index entry is outdated because of us; they are not the user's work."""
        return self._find_unchanged(_read_marker(self._marker)[1]) if self._marker.exists() else set()

    @contextmanager
    def writing(self, entries: Mapping[str, Blob | None]) -> Iterator[None]:
        """Use around every git command that writes. Afterwards the index is updated with the entries (None:
        removed). On failure the marker stays, because a stopped git may have left locks."""
        self.settle()
        missed = _read_marker(self._marker)[1] if self._marker.exists() else {}
        index_entries = find_entries(self._git, entries.keys())
        before = {**missed, **{path: index_entries.get(path) for path in entries}}
        self._write_marker("working", before)
        yield
        if list_ref_locks(self._git.common):  # git may fail to remove its own locks and still succeed
            clear_dead_locks(self._home, self._git, since=self._marker.stat().st_mtime)
        self._update_index({**self._read_head(missed.keys() - entries.keys()), **entries}, before)

    def _find_unchanged(self, before: Mapping[str, Blob | None]) -> set[str]:
        """Paths whose index entry is the same as before our commit. Others were staged by the user since."""
        index_entries = find_entries(self._git, before.keys())
        return {path for path, blob in before.items() if index_entries.get(path) == blob}

    def _read_head(self, paths: AbstractSet[str]) -> dict[str, Blob | None]:
        committed = self._git.tree("HEAD", *paths) if paths and self._git.head() else {}
        return {path: committed.get(path) for path in paths}

    def _update_index(self, entries: Mapping[str, Blob | None], before: Mapping[str, Blob | None]) -> None:
        if not entries or self._is_nothing_checked_out(entries) or update_entries(self._git, entries.items()):
            self._marker.unlink(missing_ok=True)
        else:
            self._write_marker("stale", {path: before.get(path) for path in entries})

    def _is_nothing_checked_out(self, entries: Mapping[str, Blob | None]) -> bool:
        """Then there is no index, and one with only our paths would mark all others as deleted."""
        if (self._git.directory / "index").exists():
            return False
        return bool(list_not_checked_out(self._git) - entries.keys())

    def _write_marker(self, state: str, before: Mapping[str, Blob | None]) -> None:
        entries = {path: blob and [blob.mode, blob.name] for path, blob in sorted(before.items())}
        files.replace(self._marker, json.dumps({"state": state, "before": entries}).encode())


def _read_marker(marker: Path) -> tuple[str, dict[str, Blob | None]]:
    try:
        value = json.loads(marker.read_bytes())
        before = {str(path): Blob(*entry) if entry else None for path, entry in value["before"].items()}
        return str(value["state"]), before
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "working", {}

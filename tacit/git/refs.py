"""Refs: move them safely, name moments with tags, prune explore/ branches, push them, and lease jobs.

Tags: memory/daily, memory/weekly, memory/milestone, memory/before, memory/extract. A lease is a ref on a
remote: several machines share it, so only one of them does the job. Calls to a remote use the user's own git
settings and credentials.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import NamedTuple

from tacit.config import mask_secret
from tacit.diagnostics import Problem
from tacit.errors import GitError, UsageError
from tacit.git import process
from tacit.git.objects import write_blob
from tacit.git.repair import GitWork
from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import Home
from tacit.home.paths import path_problem

SNAPSHOT_KINDS = ("milestone", "before", "extract")
_SIDE_BRANCHES = ("explore/", "extract/")
_LEASES_PREFIX = "refs/tacit/claims/"


class Ref(NamedTuple):
    name: str
    target: str
    kind: str  # commit, tag, tree or blob


def list_refs(git: Git) -> list[Ref]:
    """Every ref of this work tree and its target; symbolic refs are left out."""
    form = "%(objectname)%00%(objecttype)%00%(symref)%00%(refname)"
    out = git.run("for-each-ref", f"--format={form}")
    rows = [os.fsdecode(line).split("\0") for line in out.split(b"\n") if line]
    return [Ref(name, target, kind) for target, kind, symbolic, name in rows if not symbolic]


def set_ref(git: Git, ref: str, new: str | None, old: str | None = None) -> None:
    """Create (old None), move or delete (new None) a ref, only if it still has the expected value."""
    expected = old if old is not None else "0" * len(new or "")
    arguments = ["-d", ref, expected] if new is None else [ref, new, expected]
    git.run("update-ref", "--no-deref", *arguments)
    git.sync(ref)


def move_refs(git: Git, moves: Iterable[tuple[str, str | None, str | None]]) -> None:
    """Move many refs at once: name, new (None: delete), old (None: did not exist). All or none, unless
    git is stopped in the middle."""
    if not (moves := list(moves)):
        return
    zero = "0" * (64 if git.algorithm == "sha256" else 40)
    lines = (
        f"delete {ref}\0{old or zero}\0" if new is None else f"update {ref}\0{new}\0{old or zero}\0"
        for ref, new, old in moves
    )
    stdin = b"".join(map(os.fsencode, lines))
    git.run("update-ref", "--no-deref", "--stdin", "-z", stdin=stdin, timeout=600)
    for folder in {str(PurePosixPath(ref).parent) for ref, _, _ in moves}:
        git.sync(f"{folder}/x")


# ---------------------------------------------------------------- tags


@dataclass(frozen=True, slots=True)
class Tag:
    name: str
    commit: str
    when: datetime
    subject: str
    annotated: bool = False


def list_tags(git: Git) -> list[Tag]:
    form = "%(refname)%00%(objectname)%00%(*objectname)%00%(creatordate:iso-strict)%00%(contents:subject)"
    out = git.run("for-each-ref", "--sort=creatordate", f"--format={form}", "refs/tags/memory/")
    result = []
    for line in out.decode("utf-8", "replace").split("\n")[:-1]:
        name, target, peeled, when, subject = line.split("\0")
        if when:  # otherwise the tag names no commit
            short = name.removeprefix("refs/tags/")
            result.append(Tag(short, peeled or target, datetime.fromisoformat(when), subject, bool(peeled)))
    return result


def tag_periods(
    git: Git, now: datetime, *, daily: bool, weekly: bool, skipped: list[Problem] | None = None
) -> list[str]:
    """Tag each day and ISO week that has commits, at its last commit. Today's tag moves until the day is
    over; a week is tagged on its Sunday. Missed days and one missed week are caught up. Tags that git cannot
    create are added to `skipped` with the reason."""
    names: list[str] = []
    if (git.branch() or "").startswith(_SIDE_BRANCHES):
        return names  # experiments are not part of the day
    tags_by_name = {tag.name: tag for tag in list_tags(git)}
    periods = [*(_days(now) if daily else ()), *(_weeks(now) if weekly else ())]
    commits = _commits_since(git, min((begin for _, begin, _ in periods), default=now))
    for name, begin, end in periods:
        commit = next((commit for commit, when in commits if begin <= when < end), None)
        current = tags_by_name.get(name)
        if commit and _may_move(git, current, commit):
            try:
                set_ref(git, f"refs/tags/{name}", commit, old=current.commit if current else None)
                names.append(name)
            except GitError as error:
                _report_skipped(name, error, skipped)
    return names


def _report_skipped(name: str, error: GitError, skipped: list[Problem] | None) -> None:
    """A user's tag named `memory` or `memory/daily` is in the way of a folder that git needs. That must not
    stop the other tags or later work."""
    if skipped is not None:
        advice = "A tag of yours may be in its way; rename that with: git tag"
        skipped.append(Problem(name, f"could not be tagged: {error.detail.strip()}", advice, level="warning"))


def _may_move(git: Git, current: Tag | None, commit: str) -> bool:
    """A tag only moves forward, and never if it was made by hand."""
    if current is None or current.annotated:
        return current is None
    return current.commit != commit and git.is_ancestor(current.commit, commit)


def _days(now: datetime) -> list[tuple[str, datetime, datetime]]:
    days = [_midnight(now) - timedelta(days=back) for back in range(7, -1, -1)]
    return [(f"memory/daily/{day:%Y-%m-%d}", day, day + timedelta(days=1)) for day in days]


def _weeks(now: datetime) -> list[tuple[str, datetime, datetime]]:
    monday = _midnight(now) - timedelta(days=now.weekday())
    mondays = [monday - timedelta(days=7), *([monday] if now.weekday() == 6 else [])]
    return [(f"memory/weekly/{day:%G-W%V}", day, day + timedelta(days=7)) for day in mondays]


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0)


def _commits_since(git: Git, begin: datetime) -> list[tuple[str, datetime]]:
    """Newest first, without commits that were merged in."""
    since = f"--since=@{max(0, int(begin.timestamp()))} +0000"
    out = git.run("rev-list", "--first-parent", "--timestamp", since, "HEAD")
    rows = [line.split() for line in out.decode().splitlines()]
    return [(name, datetime.fromtimestamp(int(when), begin.tzinfo)) for when, name in rows]


def create_snapshot(git: Git, name: str, kind: str = "milestone") -> str:
    """Tag the current state. Refuses names that are taken or invalid in git. Takes the home's lock."""
    if kind not in SNAPSHOT_KINDS:
        raise UsageError(f"{kind!r} is not a kind of snapshot. Use one of: {', '.join(SNAPSHOT_KINDS)}.")
    tag = f"memory/{kind}/{name}"
    ref = f"refs/tags/{tag}"
    if path_problem(name) or git.attempt("check-ref-format", ref).returncode:
        raise UsageError(
            f"{name[:60]!r} cannot be part of a tag. Use a few letters, digits, dots and hyphens."
        )
    home = Home(git.root)
    with files.hold_lock(home.lock):
        head = git.head()
        if head is None:
            raise UsageError("There is no commit yet to take a snapshot of. Run: tacit run commit")
        if git.resolve(ref):
            raise UsageError(f"{tag} exists already. Choose another name; snapshots do not move.")
        with GitWork(home, git).writing({}):
            set_ref(git, ref, head)
    return tag


# ---------------------------------------------------------------- explore/ branches


def prune_explore_branches(git: Git, main: str, days: int, now: datetime) -> tuple[list[str], list[Problem]]:
    """Delete explore/ branches that are merged into `main`, `days` after they were created and last committed
    to; report old branches that are not merged."""
    deleted: list[str] = []
    problems: list[Problem] = []
    target = git.resolve(f"refs/heads/{main}")
    if target is None:
        return deleted, problems
    for name, commit, last, checked_out in _list_explore_branches(git):
        if now - last < timedelta(days=days):
            continue
        if git.is_ancestor(commit, target) and not checked_out:
            set_ref(git, f"refs/heads/{name}", None, old=commit)
            deleted.append(name)
        else:
            problems.append(_kept_problem(git, name, commit, target, main, checked_out))
    return deleted, problems


def _list_explore_branches(git: Git) -> list[tuple[str, str, datetime, bool]]:
    form = "%(refname:strip=2)%00%(objectname)%00%(committerdate:iso-strict)%00%(worktreepath)"
    out = git.run("for-each-ref", f"--format={form}", "refs/heads/explore/")
    rows = [line.split("\0") for line in out.decode("utf-8", "replace").split("\n")[:-1]]
    return [
        (name, commit, max(datetime.fromisoformat(when), _creation_time(git, name)), bool(worktree))
        for name, commit, when, worktree in rows
    ]


def _creation_time(git: Git, name: str) -> datetime:
    """When the branch was created: a new branch may point at an old commit."""
    log, ref = git.common / "logs/refs/heads" / name, git.common / "refs/heads" / name
    with suppress(OSError):
        first = log.read_bytes().partition(b"\n")[0]
        if match := re.search(rb"> ([0-9]{1,11}) [+-][0-9]{4}(\t|$)", first):
            return datetime.fromtimestamp(int(match[1]), UTC)
    with suppress(OSError):
        return datetime.fromtimestamp(ref.stat().st_mtime, UTC)
    return datetime.fromtimestamp(0, UTC)  # neither log nor file: packed, so the time is unknown


def _kept_problem(git: Git, name: str, commit: str, target: str, main: str, checked_out: bool) -> Problem:
    if checked_out:
        return Problem(name, "is old but checked out, so it is kept.", level="warning")
    count = git.run("rev-list", "--count", f"{target}..{commit}").decode().strip()
    message = f"is old, but {count} of its commits are not in {main}, so it is kept."
    return Problem(name, message, f"Merge it, or delete it with: git branch -D {name}", level="warning")


def list_remotes(git: Git) -> list[tuple[str, str]]:
    """Name and address of each."""
    out = git.attempt("config", "--local", "-z", "--get-regexp", r"^remote\..*\.url$").stdout
    pairs = [line.partition("\n") for line in out.decode("utf-8", "replace").split("\0") if line]
    return [(key[len("remote.") : -len(".url")], mask_secret(url)) for key, _, url in pairs]


def push_branch(git: Git, remote: str) -> str:
    """Push the current branch and the memory tags; returns git's error message."""
    branch = git.branch()
    if branch is None:
        return "HEAD is detached"
    refs = [f"refs/heads/{branch}", "refs/tags/memory/*:refs/tags/memory/*", *_exclude_moving_tags(git)]
    lfs_problem = _push_lfs(git, remote, branch)
    _, problem = process.call_remote(git.root, "push", "--quiet", "--", remote, *refs)
    return "\n".join(filter(None, [lfs_problem, problem]))


def _push_lfs(git: Git, remote: str, branch: str) -> str:
    """Do what the pre-push hook of git-lfs would do, as hooks are never run. If it fails, the branch is
    pushed all the same: most of a memory is text."""
    if shutil.which("git-lfs") is None or not (git.common / "lfs" / "objects").is_dir():
        return ""
    folder = git.root / remote
    is_path = "/" in remote and folder.is_dir()
    address = folder.resolve().as_uri() if is_path else remote  # git-lfs accepts only URLs and names
    _, problem = process.call_remote(git.root, "lfs", "push", "--", address, branch)
    return f"attachments were not sent: {problem}" if problem else ""


def take_lease(git: Git, remote: str, name: str, owner: str) -> bool | str:
    """Take a lease on the remote by creating a ref, which only one client can do. True: we hold it, now
    or from before; False: another client does; text: why the remote could not be asked."""
    ref = f"{_LEASES_PREFIX}{name}"
    blob = write_blob(git, owner.encode())
    # The expected value is empty, so the push is refused if the ref exists.
    _, problem = process.call_remote(
        git.root, "push", "--quiet", f"--force-with-lease={ref}:", "--", remote, f"{blob}:{ref}"
    )
    if not problem:
        return True
    leases = list_leases(git, remote)
    return problem if isinstance(leases, str) or name not in leases else leases[name] == blob


def list_leases(git: Git, remote: str) -> dict[str, str] | str:
    """The leases on the remote, each with the blob that names its owner; text: why the remote could not
    be asked."""
    listing, problem = process.call_remote(git.root, "ls-remote", "--", remote, f"{_LEASES_PREFIX}*")
    rows = (line.split("\t") for line in listing.splitlines())
    return problem or {row[1].removeprefix(_LEASES_PREFIX): row[0] for row in rows if len(row) == 2}


def _exclude_moving_tags(git: Git) -> list[str]:
    """Refspecs that exclude tags of a day or week that may not be over: these still move with HEAD, and
    a pushed tag could only be moved by force."""
    periods = ("refs/tags/memory/daily/", "refs/tags/memory/weekly/")
    out = git.run("for-each-ref", "--points-at=HEAD", "--format=^%(refname)", *periods)
    return out.decode("utf-8", "surrogateescape").split()

"""Prune explore/ branches, which are short-lived experiments."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from tacit.diagnostics import Problem
from tacit.git.repository import Git


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
            git.set_ref(f"refs/heads/{name}", None, old=commit)
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

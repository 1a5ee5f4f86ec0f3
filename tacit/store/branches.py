"""explore/ branches are for trying things out and do not live long."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from tacit.model.problems import Problem
from tacit.store.git import Git


def prune_explored(git: Git, main: str, days: int, now: datetime) -> tuple[list[str], list[Problem]]:
    """Delete explore/ branches whose work is in `main`, `days` after they were made and last committed to;
    name those that still hold more."""
    gone: list[str] = []
    kept: list[Problem] = []
    target = git.resolve(f"refs/heads/{main}")
    if target is None:
        return gone, kept
    for name, commit, last, checked_out in _explored(git):
        if now - last < timedelta(days=days):
            continue
        if git.is_ancestor(commit, target) and not checked_out:
            git.set_ref(f"refs/heads/{name}", None, old=commit)
            gone.append(name)
        else:
            kept.append(_kept(git, name, commit, target, main, checked_out))
    return gone, kept


def _explored(git: Git) -> list[tuple[str, str, datetime, bool]]:
    form = "%(refname:strip=2)%00%(objectname)%00%(committerdate:iso-strict)%00%(worktreepath)"
    out = git.run("for-each-ref", f"--format={form}", "refs/heads/explore/")
    rows = [line.split("\0") for line in out.decode("utf-8", "replace").split("\n")[:-1]]
    return [
        (name, commit, max(datetime.fromisoformat(when), _made(git, name)), bool(place))
        for name, commit, when, place in rows
    ]


def _made(git: Git, name: str) -> datetime:
    """When the branch was made. It may stand at an old commit and be new itself."""
    log, ref = git.common / "logs/refs/heads" / name, git.common / "refs/heads" / name
    with suppress(OSError):
        first = log.read_bytes().partition(b"\n")[0]
        if found := re.search(rb"> ([0-9]{1,11}) [+-][0-9]{4}(\t|$)", first):
            return datetime.fromtimestamp(int(found[1]), UTC)
    with suppress(OSError):
        return datetime.fromtimestamp(ref.stat().st_mtime, UTC)
    return datetime.fromtimestamp(0, UTC)  # it has neither log nor file: packed, and nobody knows


def _kept(git: Git, name: str, commit: str, target: str, main: str, checked_out: bool) -> Problem:
    if checked_out:
        return Problem(name, "is old but checked out, so it is kept.", level="warning")
    count = git.run("rev-list", "--count", f"{target}..{commit}").decode().strip()
    what = f"is old, but {count} of its commits are not in {main}, so it is kept."
    return Problem(name, what, f"Merge it, or delete it with: git branch -D {name}", level="warning")

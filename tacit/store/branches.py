"""explore/ branches are for trying things out and do not live long."""

from __future__ import annotations

from datetime import datetime, timedelta

from tacit.model.problems import Problem
from tacit.store.git import Git


def prune_explored(git: Git, main: str, days: int, now: datetime) -> tuple[list[str], list[Problem]]:
    """Delete explore/ branches older than `days` whose work is in `main`; name those that still hold more."""
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
    return [(name, commit, datetime.fromisoformat(when), bool(place)) for name, commit, when, place in rows]


def _kept(git: Git, name: str, commit: str, target: str, main: str, checked_out: bool) -> Problem:
    if checked_out:
        return Problem(name, "is old but checked out, so it is kept.", level="warning")
    count = git.run("rev-list", "--count", f"{target}..{commit}").decode().strip()
    what = f"is old, but {count} of its commits are not in {main}, so it is kept."
    return Problem(name, what, f"Merge it, or delete it with: git branch -D {name}", level="warning")

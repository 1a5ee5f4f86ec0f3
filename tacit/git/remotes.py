"""Remotes: push, and leases on jobs that several machines share.

These calls use the user's own git settings and credentials.
"""

from __future__ import annotations

import shutil

from tacit.config import mask_secret
from tacit.git import process
from tacit.git.objects import write_blob
from tacit.git.repository import Git

_LEASES_PREFIX = "refs/tacit/claims/"


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

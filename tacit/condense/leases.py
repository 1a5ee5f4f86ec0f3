"""Decide which of several machines that share a remote does a job.

A claim is a ref on the remote that only one machine can create. It names its owner, so that a machine that
crashed can resume. Without a remote there is only one machine, and the home's own lock is enough.
"""

from __future__ import annotations

import secrets

from tacit.git.remotes import list_leases, take_lease
from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import Home


def claim_periods(home: Home, git: Git, remote: str | None, names: list[str]) -> tuple[list[str], str]:
    """The names that we claimed, and why the others have to wait if the remote could not be reached."""
    if remote is None:
        return names, ""
    claimed: list[str] = []
    owner = machine_name(home)
    existing = list_leases(
        git, remote
    )  # one request for all: what others claimed stays due here until their commits arrive
    if isinstance(existing, str):
        return claimed, _not_reachable(remote, existing)
    for name in names:
        ref = name.replace(" ", "/")
        answer: bool | str = existing.get(ref) == git.blob_name(owner.encode())
        if ref not in existing:
            answer = take_lease(git, remote, ref, owner)
        if isinstance(answer, str):
            return claimed, _not_reachable(remote, answer)
        claimed += [name] if answer else []
    return claimed, ""


def _not_reachable(remote: str, why: str) -> str:
    return f"{remote} could not be asked whether another machine does it: {why}"


def machine_name(home: Home) -> str:
    """The name of this copy of the home, created once."""
    try:
        return home.machine.read_text().strip()
    except FileNotFoundError:
        files.make_directories(home.private)
        files.replace(home.machine, f"{secrets.token_hex(8)}\n".encode())
        return machine_name(home)

"""Which of several machines does something, where they share a remote.

A claim is a ref on the remote that only one can make. It names its owner, so that a machine that died at it
can go on. Without a remote there is nobody to share with, and the home's own lock is enough.
"""

from __future__ import annotations

import secrets

from tacit.store import files
from tacit.store.git import Git
from tacit.store.home import Home


def claim(home: Home, git: Git, remote: str | None, names: list[str]) -> tuple[list[str], str]:
    """Those of the names that are ours, and why the others had to wait where nobody could be asked."""
    if remote is None:
        return names, ""
    mine: list[str] = []
    owner = machine(home)
    there = git.claims(
        remote
    )  # one question for all: what others claimed is due here till their commits come
    if isinstance(there, str):
        return mine, _unasked(remote, there)
    for name in names:
        ref = name.replace(" ", "/")
        answer: bool | str = there.get(ref) == git.blob_name(owner.encode())
        if ref not in there:
            answer = git.claim(remote, ref, owner)
        if isinstance(answer, str):
            return mine, _unasked(remote, answer)
        mine += [name] if answer else []
    return mine, ""


def _unasked(remote: str, why: str) -> str:
    return f"{remote} could not be asked whether another machine does it: {why}"


def machine(home: Home) -> str:
    """A name of this copy of the home, made once."""
    try:
        return home.machine.read_text().strip()
    except FileNotFoundError:
        files.make_directories(home.private)
        files.replace(home.machine, f"{secrets.token_hex(8)}\n".encode())
        return machine(home)

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
    for name in names:
        answer = git.claim(remote, name.replace(" ", "/"), machine(home))
        if isinstance(answer, str):
            return mine, f"{remote} could not be asked whether another machine does it: {answer}"
        if answer:
            mine.append(name)
    return mine, ""


def machine(home: Home) -> str:
    """A name of this copy of the home, made once."""
    file = home.private / "machine"
    try:
        return file.read_text().strip()
    except FileNotFoundError:
        files.make_directories(home.private)
        files.replace(file, f"{secrets.token_hex(8)}\n".encode())
        return machine(home)

"""Whether `tacit init` was run for this very folder on this machine. Only then may its config reach outside.

What must stay true: trust does not travel. `.tacit/trusted` can be force-added to git, packed into an archive
or copied along, so by itself it says nothing. It has to fit to two things that stay behind: a random word
inside the git directory, which no clone carries, and the folder itself (its inode, its owner, its machine),
which no archive and no copy carries. A home that was copied or restored asks for `tacit init` once more; one
that was only renamed does not.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from tacit.store import files
from tacit.store.git import Git
from tacit.store.home import Home

_MACHINE = ("/etc/machine-id", "/var/lib/dbus/machine-id")


def is_trusted(home: Home) -> bool:
    word, said = _text(_word_file(home)), _text(home.trust)
    return bool(word) and hmac.compare_digest(said.encode(), _fitting(home, word).encode())


def trust(home: Home) -> None:
    """Only `tacit init` calls this. What is trusted already stays as it is."""
    if is_trusted(home):
        return
    home.machine.unlink(missing_ok=True)  # a copy of a home is another machine from now on
    word = secrets.token_hex(16)
    files.replace(_word_file(home), f"{word}\n".encode())
    files.replace(home.trust, f"{_fitting(home, word)}\n".encode())


def _word_file(home: Home) -> Path:
    return Git(home.root).directory / "tacit-trust"


def _fitting(home: Home, word: str) -> str:
    # The device number is left out: it changes when a disk is mounted in another order.
    place = os.stat(home.root)
    parts = (word, str(place.st_ino), str(place.st_uid), _machine())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _machine() -> str:
    """Empty where the system has no such name; the folder still has to fit."""
    return next((text for text in map(_text, map(Path, _MACHINE)) if text), "")


def _text(file: Path) -> str:
    try:
        return file.read_bytes()[:200].decode("ascii", "replace").strip()
    except OSError:
        return ""

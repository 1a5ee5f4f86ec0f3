"""Whether `tacit init` was run for this folder on this machine. Only then may its config reach outside.

What must stay true: trust does not travel. `.tacit/trusted` can be force-added to git, packed into an archive
or copied along, so by itself it proves nothing. It must match two things that stay behind: a random secret
inside the git directory, which clones do not contain, and the folder itself (its inode, owner and machine),
which archives and copies do not contain. A copied or restored home needs `tacit init` again; a renamed one
does not.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import Home

_MACHINE_ID_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")


def is_trusted(home: Home) -> bool:
    secret, stored = _read_text(_secret_file(home)), _read_text(home.trust)
    return bool(secret) and hmac.compare_digest(stored.encode(), _fingerprint(home, secret).encode())


def trust(home: Home) -> None:
    """Only `tacit init` calls this. Does nothing for a home that is already trusted."""
    if is_trusted(home):
        return
    home.machine.unlink(missing_ok=True)  # a copy of a home counts as another machine
    secret = secrets.token_hex(16)
    files.replace(_secret_file(home), f"{secret}\n".encode())
    files.replace(home.trust, f"{_fingerprint(home, secret)}\n".encode())


def _secret_file(home: Home) -> Path:
    return Git(home.root).directory / "tacit-trust"


def _fingerprint(home: Home, secret: str) -> str:
    # The device number is left out: it changes when a disk is mounted in another order.
    info = os.stat(home.root)
    parts = (secret, str(info.st_ino), str(info.st_uid), _machine_id())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _machine_id() -> str:
    """The machine's id; empty if the system has none. The folder must still match."""
    return next((text for text in map(_read_text, map(Path, _MACHINE_ID_FILES)) if text), "")


def _read_text(file: Path) -> str:
    try:
        return file.read_bytes()[:200].decode("ascii", "replace").strip()
    except OSError:
        return ""

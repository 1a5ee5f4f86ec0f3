"""Who may use a home: whether `tacit init` was run for it here, and which permissions others have.

Only the config of a trusted home may reach outside. What must stay true: trust does not travel.
`.tacit/trusted` can be force-added to git, packed into an archive or copied along, so by itself it proves
nothing. It must match two things that stay behind: a random secret inside the git directory, which clones do
not contain, and the folder itself (its inode, owner and machine), which archives and copies do not contain. A
copied or restored home needs `tacit init` again; a renamed one does not.

The permissions of the home's folder keep others out. Files of git and tacit are closed too; notes are not
checked one by one as long as that folder is closed, because editors create them with the user's umask.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import Home

_MACHINE_ID_FILES = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_OTHERS_MASK = 0o077
_PRIVATE_FOLDERS = (".git", ".tacit")


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


def close_to_others(home: Home, *, notes: bool = False) -> list[str]:
    """Remove the permissions of others; returns the changed paths. `notes`: also of each file of a home that
    was open. Files of another user stay as they are."""
    closed = []
    for path in list_open_paths(home, notes=notes):
        with suppress(OSError):
            os.chmod(path, stat.S_IMODE(os.lstat(path).st_mode) & ~_OTHERS_MASK)
            closed.append(path)
    return closed


def list_open_paths(home: Home, *, notes: bool = False) -> list[str]:
    """Files and folders of the home, including itself, that others may read, write or enter."""
    root = os.path.realpath(home.root)  # the home may be named by a link; the folder's permissions count
    tops = [f"{root}/{name}" for name in _PRIVATE_FOLDERS]
    if not _is_open(root):
        tops = [top for top in tops if _is_open(top)]
    elif notes:
        tops = [root]
    if (external := _find_external_repository(root)) and _is_open(external):
        tops.append(external)
    paths = [root] if _is_open(root) else []
    return paths + [path for top in tops for path in _walk_all(top) if path != root and _is_open(path)]


def _find_external_repository(root: str) -> str:
    """The target of .git, if it is a link or was made with --separate-git-dir: the home's folder does not
    protect it. The repository of a linked work tree belongs to another folder."""
    try:
        directory = os.path.realpath(Git(Path(root)).directory)
    except (OSError, ValueError):  # unreadable; other checks report it
        return ""
    is_ours = os.path.isdir(directory) and not os.path.exists(f"{directory}/commondir")
    return directory if is_ours and not directory.startswith(f"{root}/") else ""


def _walk_all(top: str) -> Iterator[str]:
    yield top
    for folder, folders, names in os.walk(top):
        yield from (f"{folder}/{name}" for name in (*folders, *names))


def _is_open(path: str) -> bool:
    """Ignores links and hard-linked files, which also belong to another folder: git hard-links objects when
    it clones on the same disk."""
    try:
        info = os.lstat(path)
    except OSError:  # missing, or removed in the meantime
        return False
    is_own = stat.S_ISREG(info.st_mode) and info.st_nlink == 1
    return (stat.S_ISDIR(info.st_mode) or is_own) and bool(info.st_mode & _OTHERS_MASK)

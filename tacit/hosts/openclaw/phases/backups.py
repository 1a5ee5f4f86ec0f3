"""Backups of the files that a migration may change, with a manifest of what they were.

A backup is never overwritten: if the files differ when a migration starts again, the earlier backups move to
a folder of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tacit.errors import UsageError
from tacit.home.files import digest
from tacit.hosts.openclaw.workspace.layout import (
    AGENTS,
    COMPACT,
    FOLDER,
    MEMORY,
    SOUL,
    SUMMARY,
    TOOLS,
    AgentWorkspace,
)

COPIED = (SOUL, AGENTS, TOOLS, COMPACT, SUMMARY)  # if they exist
WATCHED = (*COPIED, MEMORY)
_FOLDER = f"{FOLDER}/backups"
MANIFEST = f"{_FOLDER}/manifest.json"


@dataclass(frozen=True, slots=True)
class BackupManifest:
    taken: str  # ISO 8601
    hashes: Mapping[str, str | None]  # of each watched file; None: it did not exist
    copies: Mapping[str, str]  # path of each file's copy


def copy_path(name: str) -> str:
    return f"{_FOLDER}/{name}.bak"


def read(place: AgentWorkspace, path: str) -> bytes | None:
    try:
        return place.tree.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _hash(data: bytes | None) -> str | None:
    return None if data is None else digest(data)


def load(place: AgentWorkspace) -> BackupManifest | None:
    data = read(place, MANIFEST)
    if data is None:
        return None
    try:
        fields: dict[str, Any] = json.loads(data)
        return BackupManifest(str(fields["taken"]), dict(fields["hashes"]), dict(fields["copies"]))
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"{place.root / MANIFEST} cannot be read: {error}. Bring it back from your own backups, or move "
            f"the folder {_FOLDER} away and begin anew."
        ) from None


def take(place: AgentWorkspace) -> BackupManifest:
    """Copies the files as they are now. The manifest is written last: without one there is no backup."""
    contents = {name: read(place, name) for name in WATCHED}
    hashes = {name: _hash(data) for name, data in contents.items()}
    previous = load(place)
    if previous is not None and previous.hashes == hashes and not list(find_damage(place, previous)):
        return previous
    if previous is not None:
        _archive_backup(place, previous)
    copies = {name: data for name in COPIED if (data := contents[name]) is not None}
    for name, data in copies.items():
        place.tree.put(copy_path(name), data)
    manifest = BackupManifest(
        place.now().isoformat(timespec="seconds"), hashes, {name: copy_path(name) for name in copies}
    )
    place.tree.put(MANIFEST, json.dumps(asdict(manifest), indent=2).encode() + b"\n")
    return manifest


def _archive_backup(place: AgentWorkspace, manifest: BackupManifest) -> None:
    folder = f"{_FOLDER}/{''.join(manifest.taken[:19].split(':'))}"
    for path in (*manifest.copies.values(), MANIFEST):
        data = read(place, path)
        if data is not None:
            place.tree.put(f"{folder}/{path.rpartition('/')[2]}", data)


def find_damage(place: AgentWorkspace, manifest: BackupManifest) -> Iterator[str]:
    """Problems of the copies."""
    for name, path in manifest.copies.items():
        data = read(place, path)
        if data is None:
            yield f"{path} is gone"
        elif digest(data) != manifest.hashes.get(name):
            yield f"{path} is not what {name} was"


def read_original(place: AgentWorkspace, manifest: BackupManifest, name: str) -> bytes | None:
    """The file as it was; None if it did not exist."""
    return read(place, manifest.copies[name]) if name in manifest.copies else None


def find_changed(place: AgentWorkspace, manifest: BackupManifest) -> list[str]:
    """Files that differ from the manifest."""
    return [name for name in WATCHED if _hash(read(place, name)) != manifest.hashes.get(name)]

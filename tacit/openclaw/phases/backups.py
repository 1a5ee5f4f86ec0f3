"""Copies of the files that a migration may change, with a manifest that tells what they were.

A copy is never written over: should the files be others when a migration begins anew, the copies from before
go into a folder of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tacit.errors import UsageError
from tacit.store.files import digest
from tacit.workspace.place import AGENTS, COMPACT, FOLDER, MEMORY, SOUL, SUMMARY, TOOLS, Place

COPIED = (SOUL, AGENTS, TOOLS, COMPACT, SUMMARY)  # those of them that are there
WATCHED = (*COPIED, MEMORY)
_FOLDER = f"{FOLDER}/backups"
MANIFEST = f"{_FOLDER}/manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    taken: str  # ISO 8601
    hashes: Mapping[str, str | None]  # of each file that is watched; None: it was not there
    copies: Mapping[str, str]  # where the copy of a file is


def copy_of(name: str) -> str:
    return f"{_FOLDER}/{name}.bak"


def read(place: Place, path: str) -> bytes | None:
    try:
        return place.tree.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _hash(data: bytes | None) -> str | None:
    return None if data is None else digest(data)


def load(place: Place) -> Manifest | None:
    data = read(place, MANIFEST)
    if data is None:
        return None
    try:
        said: dict[str, Any] = json.loads(data)
        return Manifest(str(said["taken"]), dict(said["hashes"]), dict(said["copies"]))
    except (ValueError, TypeError, KeyError) as error:
        raise UsageError(
            f"{place.root / MANIFEST} cannot be read: {error}. Bring it back from your own backups, or move "
            f"the folder {_FOLDER} away and begin anew."
        ) from None


def take(place: Place) -> Manifest:
    """Copies of the files as they are now. The manifest is written last: without one there is no backup."""
    texts = {name: read(place, name) for name in WATCHED}
    hashes = {name: _hash(data) for name, data in texts.items()}
    known = load(place)
    if known is not None and known.hashes == hashes and not list(damage(place, known)):
        return known
    if known is not None:
        _set_aside(place, known)
    copied = {name: data for name in COPIED if (data := texts[name]) is not None}
    for name, data in copied.items():
        place.tree.put(copy_of(name), data)
    manifest = Manifest(
        place.now().isoformat(timespec="seconds"), hashes, {name: copy_of(name) for name in copied}
    )
    place.tree.put(MANIFEST, json.dumps(asdict(manifest), indent=2).encode() + b"\n")
    return manifest


def _set_aside(place: Place, known: Manifest) -> None:
    folder = f"{_FOLDER}/{''.join(known.taken[:19].split(':'))}"
    for path in (*known.copies.values(), MANIFEST):
        data = read(place, path)
        if data is not None:
            place.tree.put(f"{folder}/{path.rpartition('/')[2]}", data)


def damage(place: Place, manifest: Manifest) -> Iterator[str]:
    """What is wrong with the copies."""
    for name, path in manifest.copies.items():
        data = read(place, path)
        if data is None:
            yield f"{path} is gone"
        elif digest(data) != manifest.hashes.get(name):
            yield f"{path} is not what {name} was"


def before(place: Place, manifest: Manifest, name: str) -> bytes | None:
    """The file as it was; None: it was not there."""
    return read(place, manifest.copies[name]) if name in manifest.copies else None


def changed(place: Place, manifest: Manifest) -> list[str]:
    """Files that are not what they were."""
    return [name for name in WATCHED if _hash(read(place, name)) != manifest.hashes.get(name)]

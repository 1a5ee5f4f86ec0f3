"""Changes that were proposed and wait for somebody to turn them into drafts: `.tacit/proposals`.

One file for one set, named by its session and its id, so the same turns that leave a window twice are one
proposal. What already waits from a session is not kept a second time when it comes with more. A turn offers
and goes on: what cannot be kept is a reason and never an exception, and the transcript still has every word.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from typing import NamedTuple

from tacit.errors import StoreError
from tacit.model.changes import CHANGE_KINDS, TRUSTS, Change, ChangeSet, Source
from tacit.store.files import Tree, digest, is_temporary, locked
from tacit.store.home import Home

MOST_FILES = 2_000
MOST_BYTES = 16 * 2**20
_LARGEST = 2**20  # of one file; ours are smaller
_WAIT = 0.25  # seconds for the lock: a turn is waiting
_FOLDER = "proposals"


def offer(home: Home, proposal: ChangeSet) -> str | None:
    """Keep it until it is taken up. Returns why it could not be kept."""
    try:
        with locked(home.private / "proposals.lock", _WAIT):
            fresh = _fresh(home, proposal)
            if fresh.changes:
                data = json.dumps(asdict(fresh), indent=1).encode()
                if len(data) > _LARGEST:
                    return f"The proposal has {len(data):,} bytes, more than the {_LARGEST:,} that are kept."
                Tree(home.private).put(f"{_FOLDER}/{_name(fresh)}", data)
                _prune(home, keep=_name(fresh))
    except (OSError, StoreError) as error:
        return f"The proposal was not kept: {error}"
    return None


def take(home: Home, proposal: ChangeSet) -> None:
    """It is taken up, or no longer needed."""
    with (
        locked(home.private / "proposals.lock", 5.0),
        Tree(home.private).folder(f"{_FOLDER}/x") as (directory, _),
        suppress(FileNotFoundError),
    ):
        os.unlink(_name(proposal), dir_fd=directory)


def waiting(home: Home) -> list[ChangeSet]:
    """All that can be read, oldest first."""
    return sorted(_readable(home), key=lambda one: (one.made_at, one.id))


def drop(home: Home, is_meant: Callable[[ChangeSet, Change], bool]) -> int:
    """Changes that are meant wait no more. The rest of a set stays; how many went."""
    gone = 0
    with locked(home.private / "proposals.lock"):
        tree = Tree(home.private)
        for proposal in waiting(home):
            kept = tuple(change for change in proposal.changes if not is_meant(proposal, change))
            if len(kept) == len(proposal.changes):
                continue
            gone += len(proposal.changes) - len(kept)
            old = f"{_FOLDER}/{_name(proposal)}"
            if kept:
                fresh = replace(proposal, changes=kept)
                tree.put(f"{_FOLDER}/{_name(fresh)}", json.dumps(asdict(fresh), indent=1).encode())
            tree.remove(old, digest(tree.read(old)))
    return gone


def _readable(home: Home, session: str = "") -> Iterator[ChangeSet]:
    for file in _files(home):
        found = _read(home, file.name) if file.name.startswith(session) and file.size <= _LARGEST else None
        if found:
            yield found


def _name(proposal: ChangeSet) -> str:
    return f"{_session(proposal)}-{proposal.id}.json"


def _session(proposal: ChangeSet) -> str:
    return digest(proposal.session_key.encode("utf-8", "surrogatepass"))[:12]


def _fresh(home: Home, proposal: ChangeSet) -> ChangeSet:
    """What of it does not wait already."""
    here = _readable(home, _session(proposal))
    known = {change.key for one in here for change in one.changes}
    return replace(proposal, changes=tuple(c for c in proposal.changes if c.key not in known))


class _File(NamedTuple):
    changed: int
    name: str
    size: int


def _files(home: Home) -> list[_File]:
    """Plain files of ours, oldest first."""
    try:
        with Tree(home.private).folder(f"{_FOLDER}/x") as (directory, _):
            return sorted(_scanned(directory))
    except (OSError, StoreError):
        return []


def _scanned(directory: int) -> Iterator[_File]:
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):  # gone while we were looking
                info = entry.stat(follow_symlinks=False)
                if entry.is_file(follow_symlinks=False) and entry.name.endswith(".json"):
                    yield _File(info.st_mtime_ns, entry.name, info.st_size)


def _prune(home: Home, keep: str) -> None:
    """The oldest go when there are too many; called with the lock, so what is half-written is nobody's."""
    files = _files(home)
    count, size = len(files), sum(file.size for file in files)
    with Tree(home.private).folder(f"{_FOLDER}/x") as (directory, _):
        for file in files:
            if count <= MOST_FILES and size <= MOST_BYTES:
                break
            if file.name != keep:
                os.unlink(file.name, dir_fd=directory)
                count, size = count - 1, size - file.size
        for name in filter(is_temporary, os.listdir(directory)):
            os.unlink(name, dir_fd=directory)


def _read(home: Home, name: str) -> ChangeSet | None:
    """None for what is no proposal of ours: the name must be that of what it says."""
    try:
        stored = json.loads(Tree(home.private).read(f"{_FOLDER}/{name}"))
        del stored["id"]
        proposal = ChangeSet(**{**stored, "changes": tuple(map(_change, stored["changes"]))})
    except (OSError, StoreError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return proposal if _is_text(proposal) and name == _name(proposal) else None


def _change(stored: dict[str, object]) -> Change:
    more = {"source": Source(**stored["source"]), "also": tuple(stored.get("also", ()))}  # type: ignore[arg-type]
    change = Change(**{**stored, **more})  # type: ignore[arg-type]
    if change.kind not in CHANGE_KINDS or change.trust not in TRUSTS:
        raise ValueError(change.kind)
    return change


def _is_text(proposal: ChangeSet) -> bool:
    texts = [proposal.session_key, proposal.session_id, proposal.made_at, proposal.extractor, proposal.reason]
    texts += [text for change in proposal.changes for text in (change.path, change.text, change.day)]
    return all(isinstance(text, str) for text in texts)

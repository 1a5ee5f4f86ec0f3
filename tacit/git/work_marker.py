"""A marker on disk while our git is at work, so that the next start can finish work that a kill interrupted.

`.tacit/git-busy` lists the paths to update in the user's index, with their previous entries: an entry that
has changed since was staged by the user and stays. A marker found at the start means one of two things.
`working`: we died in the middle, so locks made since then are ours to clear. `stale`: the commit was made,
but another process held the index. The index must be updated, or the user's next plain commit would remove
our files from HEAD again.

Callers hold the home's lock.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path

from tacit.git.index import find_entries, list_not_checked_out, update_entries
from tacit.git.repair import clear_dead_locks, list_ref_locks, repair
from tacit.git.repository import Blob, Git
from tacit.git.work_trees import drop_incomplete_work_trees
from tacit.home import files
from tacit.home.layout import Home


class GitWork:
    def __init__(self, home: Home, git: Git) -> None:
        self._git, self._home = git, home
        self._marker = home.private / "git-busy"

    @property
    def is_unfinished(self) -> bool:
        return self._marker.exists() or not self._git.looks_sound()

    @property
    def died_since(self) -> float | None:
        """When our git started the work during which it died; None if it did not die."""
        if not self._marker.exists() or _read_marker(self._marker)[0] != "working":
            return None
        return self._marker.stat().st_mtime

    def settle(self) -> None:
        """Clear the locks of our dead git, repair damage from a power cut, update the index."""
        if (since := self.died_since) is not None:
            clear_dead_locks(self._home, self._git, since=since)
            drop_incomplete_work_trees(self._git, f"/{self._home.private.name}/")
        if self._git.directory.is_dir() and not self._git.looks_sound():
            repair(self._home, self._git)
        if not self._marker.exists():
            return
        before = _read_marker(self._marker)[1]
        self._update_index(self._read_head(self._find_unchanged(before)), before)

    def list_outdated(self) -> set[str]:
        """Paths whose index entry is outdated because of us; they are not the user's work."""
        return self._find_unchanged(_read_marker(self._marker)[1]) if self._marker.exists() else set()

    @contextmanager
    def writing(self, entries: Mapping[str, Blob | None]) -> Iterator[None]:
        """Use around every git command that writes. Afterwards the index is updated with the entries (None:
        removed). On failure the marker stays, because a stopped git may have left locks."""
        self.settle()
        missed = _read_marker(self._marker)[1] if self._marker.exists() else {}
        index_entries = find_entries(self._git, entries.keys())
        before = {**missed, **{path: index_entries.get(path) for path in entries}}
        self._write_marker("working", before)
        yield
        if list_ref_locks(self._git.common):  # git may fail to remove its own locks and still succeed
            clear_dead_locks(self._home, self._git, since=self._marker.stat().st_mtime)
        self._update_index({**self._read_head(missed.keys() - entries.keys()), **entries}, before)

    def _find_unchanged(self, before: Mapping[str, Blob | None]) -> set[str]:
        """Paths whose index entry is the same as before our commit. Others were staged by the user since."""
        index_entries = find_entries(self._git, before.keys())
        return {path for path, blob in before.items() if index_entries.get(path) == blob}

    def _read_head(self, paths: AbstractSet[str]) -> dict[str, Blob | None]:
        committed = self._git.tree("HEAD", *paths) if paths and self._git.head() else {}
        return {path: committed.get(path) for path in paths}

    def _update_index(self, entries: Mapping[str, Blob | None], before: Mapping[str, Blob | None]) -> None:
        if not entries or self._is_nothing_checked_out(entries) or update_entries(self._git, entries.items()):
            self._marker.unlink(missing_ok=True)
        else:
            self._write_marker("stale", {path: before.get(path) for path in entries})

    def _is_nothing_checked_out(self, entries: Mapping[str, Blob | None]) -> bool:
        """Then there is no index, and one with only our paths would mark all others as deleted."""
        if (self._git.directory / "index").exists():
            return False
        return bool(list_not_checked_out(self._git) - entries.keys())

    def _write_marker(self, state: str, before: Mapping[str, Blob | None]) -> None:
        entries = {path: blob and [blob.mode, blob.name] for path, blob in sorted(before.items())}
        files.replace(self._marker, json.dumps({"state": state, "before": entries}).encode())


def _read_marker(marker: Path) -> tuple[str, dict[str, Blob | None]]:
    try:
        value = json.loads(marker.read_bytes())
        before = {str(path): Blob(*entry) if entry else None for path, entry in value["before"].items()}
        return str(value["state"]), before
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "working", {}

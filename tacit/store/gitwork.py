"""What stands on disk while our git is at work, so that the next start can finish what a kill cut short.

`.tacit/git-busy` names the paths that the user's index has to learn of, with what it had of them before: an
entry that has changed since was staged by the user and stays. Found at the start the mark tells one of two
things. `working`: we died in the middle, so the locks left since then are ours to clear. `stale`: the commit
is made, but somebody held the index. An index that never learned would be worse than untidy: the user's next
plain commit would take our files out of HEAD again.

Everything here expects that the caller holds the home's lock.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path

from tacit.store import files, locks
from tacit.store.git import Blob, Git
from tacit.store.home import Home
from tacit.store.repair import clear_dead_locks, repair


class GitWork:
    def __init__(self, home: Home, git: Git) -> None:
        self._git, self._home = git, home
        self._mark = home.private / "git-busy"

    @property
    def is_unfinished(self) -> bool:
        return self._mark.exists() or not self._git.looks_sound()

    @property
    def died_since(self) -> float | None:
        """When our git was at work as its process died; None when it was not."""
        if not self._mark.exists() or _read(self._mark)[0] != "working":
            return None
        return self._mark.stat().st_mtime

    def settle(self) -> None:
        """Clear what a dead git of ours left, mend what a power cut broke, tell the index what it missed."""
        if (since := self.died_since) is not None:
            clear_dead_locks(self._home, self._git, since=since)
            self._git.forget_torn_work_trees(f"/{self._home.private.name}/")
        if self._git.directory.is_dir() and not self._git.looks_sound():
            repair(self._home, self._git)
        if not self._mark.exists():
            return
        before = _read(self._mark)[1]
        self._tell(self._in_head(self._unchanged(before)), before)

    def untold(self) -> set[str]:
        """Paths whose index entry is ours to mend, not somebody's work."""
        return self._unchanged(_read(self._mark)[1]) if self._mark.exists() else set()

    @contextmanager
    def writing(self, entries: Mapping[str, Blob | None]) -> Iterator[None]:
        """Around every git command that writes. The entries (None: gone) are what the index learns after.
        When it fails, the mark stays: a git that was stopped may have left locks."""
        self.settle()
        missed = _read(self._mark)[1] if self._mark.exists() else {}
        there = self._git.index_entries(entries.keys())
        before = {**missed, **{path: there.get(path) for path in entries}}
        self._write("working", before)
        yield
        if locks.ref_locks(self._git.common):  # git may fail to remove its own and still report success
            clear_dead_locks(self._home, self._git, since=self._mark.stat().st_mtime)
        self._tell({**self._in_head(missed.keys() - entries.keys()), **entries}, before)

    def _unchanged(self, before: Mapping[str, Blob | None]) -> set[str]:
        """Where the index is what it was before our commit. What is not was staged by somebody since."""
        there = self._git.index_entries(before.keys())
        return {path for path, blob in before.items() if there.get(path) == blob}

    def _in_head(self, paths: AbstractSet[str]) -> dict[str, Blob | None]:
        kept = self._git.tree("HEAD", *paths) if paths and self._git.head() else {}
        return {path: kept.get(path) for path in paths}

    def _tell(self, entries: Mapping[str, Blob | None], before: Mapping[str, Blob | None]) -> None:
        if not entries or self._git.update_index(entries.items()):
            self._mark.unlink(missing_ok=True)
        else:
            self._write("stale", {path: before.get(path) for path in entries})

    def _write(self, state: str, before: Mapping[str, Blob | None]) -> None:
        entries = {path: blob and [blob.mode, blob.name] for path, blob in sorted(before.items())}
        files.replace(self._mark, json.dumps({"state": state, "before": entries}).encode())


def _read(mark: Path) -> tuple[str, dict[str, Blob | None]]:
    try:
        value = json.loads(mark.read_bytes())
        before = {str(path): Blob(*entry) if entry else None for path, entry in value["before"].items()}
        return str(value["state"]), before
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "working", {}

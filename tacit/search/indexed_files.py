"""The files that search covers: those of a home and of its workspaces, without purged and unmerged ones."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tacit.git.conflicts import NoteTree, list_unmerged_below
from tacit.home.files import Tree
from tacit.home.layout import Home
from tacit.home.listing import INDEXED, Stamp, make_stamp, stat_listed, walk_indexed
from tacit.home.workspace_files import is_workspace_path
from tacit.transcripts.purged import PurgedRecords, file_stamp, load_purged
from tacit.workspaces.folders import Workspaces

_RIPGREP_TIMEOUT_S = 10.0


class Warnings:
    """What did not go as it should in one query or update. A separate object: parts that held their owner
    would make a cycle, and a searcher that is dropped would keep its index open."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        if text not in self.texts:
            self.texts.append(text)


@dataclass(slots=True)
class _LastCheck:
    """What the last check of all files saw."""

    purged: Stamp | None = None
    unmerged: frozenset[str] = frozenset()


@dataclass(slots=True)
class IndexedFiles:
    home: Home
    workspaces: Workspaces
    warnings: Warnings
    tree: Tree = field(init=False)
    _purged: tuple[Stamp | None, PurgedRecords] = (None, PurgedRecords())  # raw/purged.jsonl as last read
    _last_check: _LastCheck = field(default_factory=_LastCheck)

    def __post_init__(self) -> None:
        self.tree = NoteTree(self.home.root)

    def list(
        self, known: Mapping[str, Stamp] | None = None, paths: Collection[str] | None = None
    ) -> dict[str, Stamp]:
        """All files. If only `paths` changed since `known`, those are read again and the rest is kept."""
        purged = self.purged()
        if known and paths is not None and not self.is_purged_anew() and not self.is_merged_anew():
            doubtful = (path for path, stamp in known.items() if stamp.inode < 0)
            stamps = self._stamp_files({*paths, *doubtful})
            if stamps is not None:
                changed = purged.applied(
                    {
                        path: stamp
                        for path, stamp in stamps.items()
                        if stamp and path not in self._last_check.unmerged
                    }
                )
                return {**{path: stamp for path, stamp in known.items() if path not in stamps}, **changed}
        unmerged = self._last_check.unmerged = list_unmerged_below(self.home.root)
        listed = purged.applied(
            {
                path: make_stamp(info)
                for path, info in walk_indexed(str(self.home.root))
                if path not in unmerged
            }
        )
        return listed | self.workspaces.stamps(known or {}) if self.workspaces else listed

    def _stamp_files(self, paths: Collection[str]) -> dict[str, Stamp | None] | None:
        """Their current stamps; None if only a check of all files can tell."""
        own = stat_listed(str(self.home.root), [path for path in paths if not is_workspace_path(path)])
        attached = self.workspaces.some([path for path in paths if is_workspace_path(path)])
        if own is None or attached is None:
            return None
        return {path: None if info is None else make_stamp(info) for path, info in own.items()} | attached

    def read(self, path: str) -> bytes:
        return self.workspaces.read(path) if is_workspace_path(path) else self.tree.read(path)

    def purged(self) -> PurgedRecords:
        stamp = file_stamp(self.home.root)
        if stamp != self._purged[0] or self._purged[1].trouble:
            self._purged = stamp, load_purged(self.home.root)
        if self._purged[1].trouble:
            self.warnings.add(self._purged[1].trouble)
        return self._purged[1]

    def mark_checked(self) -> None:
        """All files have been checked with the purged origins as they were last read."""
        self._last_check.purged = self._purged[0]

    def is_purged_anew(self) -> bool:
        """Whether raw/purged.jsonl changed since all files were last checked."""
        return file_stamp(self.home.root) != self._last_check.purged

    def is_merged_anew(self) -> bool:
        """Whether git's list of unmerged files changed since all files were last checked. The files may still
        be the same."""
        return list_unmerged_below(self.home.root) != self._last_check.unmerged

    def find_with(self, words: Sequence[str], listed: Collection[str]) -> Sequence[str] | None:
        """Which of the listed files contain any of the words, with all of the workspaces; None if ripgrep is
        missing or fails."""
        root = str(self.home.root)
        folders = [folder for folder in INDEXED if os.path.isdir(f"{root}/{folder}")]
        paths = run_ripgrep(root, folders, words)
        return None if paths is None else [*paths, *filter(is_workspace_path, listed)]


def run_ripgrep(root: str, folders: Sequence[str], words: Sequence[str]) -> Sequence[str] | None:
    """Paths inside the root; None if ripgrep is missing or fails. Words are literal, never patterns or
    options."""
    program = shutil.which("rg")
    if program is None or not words:
        return None
    terms = [part for word in words for part in ("-e", word)]
    options = ["--no-config", "--no-ignore", "--hidden", "--files-with-matches", "--null", "-i", "-F", "-a"]
    try:
        result = subprocess.run(
            [program, *options, *terms, "--", *folders],
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_RIPGREP_TIMEOUT_S,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if result.returncode not in (0, 1):  # 1: nothing found
        return None
    return [path for path in result.stdout.decode("utf-8", "surrogateescape").split("\0") if path]

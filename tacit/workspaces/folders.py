"""The workspaces attached to a home: folders of agents whose files are read in place and never written.

What must stay true:
- a path `workspace/NAME/…` leads to a regular file below the folder of that name, without links, or nowhere;
- a file belongs to one workspace: if one is inside another, the outer one excludes it, and files of the home
  belong only to the home;
- if a workspace is missing (its disk is not mounted), its last known content is still found, and answers say
  so. It is dropped when the config no longer lists the workspace, or the index is rebuilt.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from tacit.config import Workspace
from tacit.config.groups import assign_names
from tacit.errors import MergeConflict, StoreError
from tacit.git.conflicts import NoteTree
from tacit.home import files
from tacit.home.layout import Home
from tacit.home.listing import ENDINGS, Stamp, walk
from tacit.home.workspace_files import (
    WORKSPACE,
    includes_file,
    includes_folder,
    includes_path,
    is_workspace_path,
    split_workspace_path,
    workspace_path,
)

MAX_FILE_BYTES = 1024 * 1024  # bytes of a file: a larger one is a log or a dump, not memory
_INODE_MASK = 0xFFFFFFFF


class WorkspaceStatus(NamedTuple):
    """The state of one workspace."""

    workspace: Workspace
    files: int
    left_out: tuple[tuple[str, str], ...]  # paths, and why
    trouble: str  # why it is not read; empty if it is
    missing: bool  # it may come back, so its last known content still counts


class Workspaces:
    def __init__(self, home: Home, workspaces: Sequence[Workspace] = ()) -> None:
        self._tree = NoteTree(home.root)
        self.all = assign_names(workspaces)
        self._by_name = {workspace.name: workspace for workspace in self.all}

    def __bool__(self) -> bool:
        return bool(self.all)

    # ------------------------------------------------------------ one file

    def read(self, path: str, most: int = -1) -> bytes:
        """Read a file of the home or of a workspace. Raises the same errors as `files.Tree.read`."""
        if not is_workspace_path(path):
            return self._tree.read(path, most)
        workspace, relative = self._split_path(path)
        relative = "/".join(files.split_safe_path(relative)) if relative else ""
        if workspace is None or self._refusal_reason(workspace) or not self._is_own(workspace, relative):
            raise FileNotFoundError(path)
        try:
            return NoteTree(Path(workspace.path)).read(
                relative, MAX_FILE_BYTES if most < 0 else min(most, MAX_FILE_BYTES)
            )
        except MergeConflict as error:
            raise MergeConflict(path, error.why, error.todo) from None

    def resolve(self, path: str) -> str:
        """The path as spelled on disk, in the home or in a workspace. Raises the same errors as
        `files.Tree.resolve`."""
        workspace, relative = self._split_path(path)
        if not is_workspace_path(path):
            return self._tree.resolve(path)
        if workspace is None:
            raise FileNotFoundError(path)
        return workspace_path(workspace.name, files.Tree(Path(workspace.path)).resolve(relative))

    def agents_of(self, path: str) -> tuple[str, ...]:
        """The agents that a file belongs to by its location; empty if its frontmatter may say so."""
        workspace, _ = self._split_path(path)
        return (workspace.agent,) if workspace is not None and workspace.agent else ()

    def file_of(self, path: str) -> str:
        """The real location of a path; empty if there is none."""
        if not is_workspace_path(path):
            return str(self._tree.root / path)
        workspace, relative = self._split_path(path)
        return "" if workspace is None else f"{workspace.path}/{relative}"

    def path_of(self, file: str) -> str:
        """The `workspace/…` path of a file or folder; empty if it is in no workspace, or excluded."""
        roots = {
            root: workspace
            for workspace in self.all
            for root in (workspace.path, os.path.realpath(workspace.path))
        }
        workspace_root = max(
            (root for root in roots if file == root or file.startswith(f"{root}/")), key=len, default=""
        )
        if not workspace_root or self._is_in_home(file):
            return ""
        relative = file[len(workspace_root) + 1 :]
        return (
            workspace_path(roots[workspace_root].name, relative)
            if not relative or includes_path(relative)
            else ""
        )

    def _split_path(self, path: str) -> tuple[Workspace | None, str]:
        name, relative = split_workspace_path(path)
        return (self._by_name.get(name) if relative else None), relative

    # ------------------------------------------------------------ all files

    def stamps(self, known: Mapping[str, Stamp]) -> dict[str, Stamp]:
        """The stamps of all searchable files. `known`: the index's stamps, used for missing workspaces."""
        result: dict[str, Stamp] = {}
        for workspace in self.all:
            if self._refusal_reason(workspace):
                continue
            stamps = {
                workspace_path(workspace.name, relative): _make_stamp(workspace, info)
                for relative, info in self._list_files(workspace)
            }
            result |= stamps if stamps or not _absence_reason(workspace) else _known_stamps(workspace, known)
        return result

    def some(self, paths: Collection[str]) -> dict[str, Stamp | None] | None:
        """Like `listing.some`, for paths of workspaces."""
        stamps: dict[str, Stamp | None] = {}
        for path in paths:
            workspace, relative = self._split_path(path)
            if workspace is None or self._refusal_reason(workspace):
                return None
            try:
                info = os.lstat(f"{workspace.path}/{relative}")
            except (OSError, ValueError):
                if not path.endswith(ENDINGS) or _absence_reason(workspace):
                    return None
                stamps[path] = None
                continue
            if stat.S_ISDIR(info.st_mode):
                return None
            if path.endswith(ENDINGS):
                stamps[path] = (
                    _make_stamp(workspace, info) if self._is_reached(workspace, relative, info) else None
                )
        return stamps

    def contents(self) -> Iterator[tuple[str, bytes]]:
        """Every searchable file that can be read now."""
        for path in self.stamps({}):
            with suppress(StoreError, OSError):
                yield path, self.read(path)

    def _is_reached(self, workspace: Workspace, relative: str, info: os.stat_result) -> bool:
        """Whether a walk over all files would find it."""
        return (
            stat.S_ISREG(info.st_mode)
            and not _unfit_reason(info)
            and self._is_own(workspace, relative)
            and not any(os.path.islink(f"{workspace.path}/{folder}") for folder in _parent_folders(relative))
        )

    def _is_own(self, workspace: Workspace, relative: str) -> bool:
        """Whether the path belongs to this workspace. Checks only the path."""
        return (
            relative.endswith(ENDINGS)
            and includes_path(relative)
            and self._foreign_folders(workspace).isdisjoint(_parent_folders(relative))
        )

    def _list_files(self, workspace: Workspace) -> Iterator[tuple[str, os.stat_result]]:
        return (
            (relative, info) for relative, info in self._list_candidates(workspace) if not _unfit_reason(info)
        )

    def _list_candidates(self, workspace: Workspace) -> Iterator[tuple[str, os.stat_result]]:
        parent, name = os.path.split(os.path.realpath(workspace.path))  # a walk must not start at a link
        others, prefix_length = self._foreign_folders(workspace), len(name) + 1

        def enters(folder: str) -> bool:
            return includes_folder(folder[prefix_length:]) and folder[prefix_length:] not in others

        for path, info in walk(parent, name, ENDINGS, enters):
            if includes_file(path[prefix_length:]):
                yield path[prefix_length:], info

    def _foreign_folders(self, workspace: Workspace) -> frozenset[str]:
        """Folders inside the workspace that do not belong to it: the home, and other workspaces."""
        prefix = f"{os.path.realpath(workspace.path)}/"
        folders = [str(self._tree.root), *(other.path for other in self.all if other is not workspace)]
        real_paths = (os.path.realpath(folder) for folder in folders)
        return frozenset(folder[len(prefix) :] for folder in real_paths if folder.startswith(prefix))

    # ------------------------------------------------------------ whether they are there

    def folders(self) -> list[str]:
        """The folders to watch."""
        return [workspace.path for workspace in self.all if not self._refusal_reason(workspace)]

    def missing(self) -> tuple[str, ...]:
        """Messages about missing workspaces, for answers."""
        return tuple(
            f"{workspace.name} {reason} ({workspace.path}); what is found of it is as it was when last read"
            for workspace in self.all
            if not self._refusal_reason(workspace) and (reason := _absence_reason(workspace))
        )

    def look(self) -> list[WorkspaceStatus]:
        return [self._inspect(workspace) for workspace in self.all]

    def _inspect(self, workspace: Workspace) -> WorkspaceStatus:
        if refusal := self._refusal_reason(workspace):
            return WorkspaceStatus(workspace, 0, (), refusal, missing=False)
        if absence := _absence_reason(workspace):
            return WorkspaceStatus(workspace, 0, (), absence, missing=True)
        candidates = [(relative, _unfit_reason(info)) for relative, info in self._list_candidates(workspace)]
        left_out = tuple(sorted((relative, reason) for relative, reason in candidates if reason))
        return WorkspaceStatus(workspace, len(candidates) - len(left_out), left_out, "", missing=False)

    def _refusal_reason(self, workspace: Workspace) -> str:
        if workspace.path.strip("/") == "":
            return "is the whole disk"
        return "is inside the home, whose files are found already" if self._is_in_home(workspace.path) else ""

    def _is_in_home(self, folder: str) -> bool:
        home, real = os.path.realpath(self._tree.root), os.path.realpath(folder)
        return real == home or real.startswith(f"{home}/")


def _parent_folders(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _absence_reason(workspace: Workspace) -> str:
    """Why a workspace is missing; empty if it is not. An empty folder counts as an unmounted disk, because no
    workspace of an agent is empty."""
    try:
        with os.scandir(workspace.path) as entries:
            return "" if next(entries, None) is not None else "is empty"
    except FileNotFoundError:
        return "is missing"
    except NotADirectoryError:
        return "is no folder"
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _unfit_reason(info: os.stat_result) -> str:
    if info.st_size > MAX_FILE_BYTES:
        return f"it is larger than {MAX_FILE_BYTES // 2**20} MB"
    return "the same file has another name elsewhere (a hard link)" if info.st_nlink != 1 else ""


def _make_stamp(workspace: Workspace, info: os.stat_result) -> Stamp:
    """Also changes with the agent that owns the file, so that it is read again for another agent."""
    return Stamp(info.st_mtime_ns, info.st_size, _workspace_tag(workspace) | (info.st_ino & _INODE_MASK))


def _workspace_tag(workspace: Workspace) -> int:
    return crc32(f"{workspace.path}\0{workspace.agent}".encode()) >> 1 << 32


def _known_stamps(workspace: Workspace, known: Mapping[str, Stamp]) -> dict[str, Stamp]:
    """The index's stamps of a workspace, if its files were read for the same agent."""
    prefix, tag = f"{WORKSPACE}/{workspace.name}/", _workspace_tag(workspace)
    return {
        path: stamp
        for path, stamp in known.items()
        if path.startswith(prefix) and stamp.inode >= 0 and stamp.inode & ~_INODE_MASK == tag
    }

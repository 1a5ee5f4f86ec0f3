"""Files in a merge conflict: excluded from everything until the user resolves them.

What must stay true:
- the text of such a file reaches no index, prompt or learned line, and nothing is written into it;
- a file is in conflict while it contains markers, committed or not, and while it is unmerged in git;
- once neither applies, the file counts again without a further step.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from tacit.diagnostics import Problem
from tacit.errors import MergeConflict, StoreError
from tacit.git.index_file import find_repository_root, list_unmerged
from tacit.home import files
from tacit.home.layout import CONFLICTS, CONVERSATIONS, NOTE_FILES, NOTE_FOLDERS, REVIEWED, Home
from tacit.home.listing import ENDINGS, TEXT_ENDINGS
from tacit.home.workspace_files import WORKSPACE
from tacit.markdown import conflict_markers
from tacit.markdown.records import find_conflict_line

_TRANSCRIPT_FOLDERS = (f"{CONVERSATIONS}/", "archive/conversations/")
_RECORDED_PREFIXES = (*_TRANSCRIPT_FOLDERS, f"{WORKSPACE}/")
LEFT_OUT_MESSAGE = "{}, so it is in no prompt, search or learned line."
_UNMERGED_REASON = "is unmerged in git"
_MIN_READ_BYTES = 16 * 1024 * 1024  # markers may come after the requested bytes


def find_markers(path: str, data: bytes) -> MergeConflict | None:
    """The conflict in a file with this content, if it contains conflict markers."""
    if path.startswith("attachments/") or not conflict_markers.may_have_markers(data):
        return None
    text = data.decode("utf-8", "surrogateescape")
    line = (
        find_conflict_line(text)
        if path.startswith(_TRANSCRIPT_FOLDERS)
        else conflict_markers.find_marker_line(text)
    )
    if not line:
        return None
    reason = f"has unresolved merge conflict markers (line {line})"
    return MergeConflict(path, reason, "Resolve them in the file; it counts again when none is left.")


def refuse_markers(path: str, data: bytes) -> None:
    if error := find_markers(path, data):
        raise error


def refuse_unmerged(root: str | os.PathLike[str], path: str) -> None:
    """Raise if the file at `path` below `root` is unmerged in git, even without markers."""
    if path in list_unmerged_below(root):
        advice = f"Resolve the merge, then run: git add -- {shlex.quote(path)}"
        raise MergeConflict(path, _UNMERGED_REASON, advice)


def find_conflict(file: str, data: bytes) -> MergeConflict | None:
    """The conflict in a file anywhere on disk, whose bytes the caller has already read."""
    folder, name = os.path.split(file)
    try:
        refuse_unmerged(folder, name)
    except MergeConflict as error:
        return error
    return find_markers(name, data)


def list_unmerged_below(root: str | os.PathLike[str]) -> frozenset[str]:
    """Paths below `root` that are unmerged in git. The repository may begin in a parent folder."""
    repository = find_repository_root(os.fspath(root))
    paths = list_unmerged(repository) if repository else frozenset()
    if not paths:
        return paths
    subfolder = os.path.relpath(os.path.realpath(root), repository)
    prefix = "" if subfolder == "." else f"{subfolder}/"
    return frozenset(path[len(prefix) :] for path in paths if path.startswith(prefix))


class NoteTree(files.Tree):
    """For reading and writing notes: refuses files in conflict."""

    def read(self, path: str, most: int = -1) -> bytes:
        data = super().read(path, most if most < 0 else max(most, _MIN_READ_BYTES))
        name = "/".join(files.split_safe_path(path))
        refuse_unmerged(self.root, name)
        refuse_markers(name, data)
        return data if most < 0 else data[:most]

    def write(self, path: str, data: bytes, expected: str | None, mode: int = 0o600) -> str:
        self._refuse_conflicts(path, data)
        return super().write(path, data, expected, mode)

    def put(self, path: str, data: bytes, mode: int = 0o600) -> None:
        self._refuse_conflicts(path, data)
        super().put(path, data, mode)

    def remove(self, path: str, expected: str) -> None:
        self._refuse_conflicts(path, b"")
        super().remove(path, expected)

    def _refuse_conflicts(self, path: str, data: bytes) -> None:
        name = "/".join(files.split_safe_path(path))
        refuse_unmerged(self.root, name)
        refuse_markers(name, data)
        refuse_conflict(self.root, path)


def refuse_conflict(root: Path, path: str) -> None:
    """Raise if the file is in conflict; a missing file is not."""
    with suppress(FileNotFoundError, NotADirectoryError):
        NoteTree(root).read(path)


def conflict_problem(root: Path, path: str) -> Problem | None:
    """The problem of a file of the home that is in conflict; None if it is not."""
    try:
        NoteTree(root).read(path)
    except MergeConflict as error:
        return Problem(path, LEFT_OUT_MESSAGE.format(error.why), error.todo)
    except (StoreError, OSError):  # other checks report these
        pass
    return None


def record_conflicts(home: Home, failed: Collection[str], *, is_all: bool) -> None:
    """Record which conversations and workspace files are in conflict, for `tacit status`, which has no time
    to open all of them. It checks the listed files again, so extra ones do no harm. `is_all`: every file was
    checked."""
    file = home.private / CONFLICTS
    with suppress(OSError, UnicodeError):
        before = set(file.read_text("utf-8").split("\n")) - {""} if file.exists() else set()
        now = {path for path in failed if path.startswith(_RECORDED_PREFIXES)} | (set() if is_all else before)
        if now != before:
            files.write_unsynced(file, "".join(f"{path}\n" for path in sorted(now)).encode("utf-8"))


def find_note_conflicts(home: Home) -> Iterator[Problem]:
    """Conflicts in the files that learning and condensing read and write."""
    for path in (*files.Tree(home.root).files("knowledge", "archive"), REVIEWED):
        is_note = path.endswith((*ENDINGS, ".jsonl")) and not path.startswith(_TRANSCRIPT_FOLDERS)
        if is_note and (problem := conflict_problem(home.root, path)):
            yield problem


def find_home_conflicts(home: Home) -> Iterator[Problem]:
    """Conflicts in all text files of the home that git tracks."""
    paths = files.Tree(home.root).files(
        *(folder for folder in NOTE_FOLDERS if folder != "attachments"), CONVERSATIONS
    )
    return conflict_problems(home, [*(path for path in paths if path.endswith(TEXT_ENDINGS)), *NOTE_FILES])


def conflict_problems(home: Home, paths: Iterable[str]) -> Iterator[Problem]:
    """Conflicts in these files, and in all that are unmerged in git."""
    merging = list_unmerged_below(home.root)
    for path in dict.fromkeys((*paths, *sorted(merging))):
        if problem := conflict_problem(home.root, path):
            yield problem
        elif path in merging:  # missing on disk: one side deleted it, the other changed it
            advice = f"Resolve the merge, then run: git add -- {shlex.quote(path)}"
            yield Problem(path, LEFT_OUT_MESSAGE.format(_UNMERGED_REASON), advice)

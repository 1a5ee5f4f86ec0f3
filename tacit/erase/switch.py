"""Switch to the new history: refs, indexes, logs, and leftover files of git.

New refs are created before HEAD points at them, and old ones are deleted last: if this is interrupted, HEAD
still points at a commit, and repeating the steps gives the same names.
"""

from __future__ import annotations

import os
import re
import shutil
import zlib
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from tacit.erase.erasure import Erasure, iterate_numbered
from tacit.erase.history import LOG_LINE, HistorySurvey, WorkTreeHead, list_ref_logs
from tacit.erase.rewrite import RewriteResult
from tacit.git.index import (
    drop_cached_folders,
    drop_resolve_undo,
    list_not_checked_out,
    set_skip_worktree,
    update_entries,
)
from tacit.git.refs import Ref, move_refs
from tacit.git.repository import Git
from tacit.home import files

_MESSAGE_FILES = ("COMMIT_EDITMSG", "TAG_EDITMSG", "NOTES_EDITMSG")
_LEFTOVER_FILES = (*_MESSAGE_FILES, "ORIG_HEAD", "FETCH_HEAD", "AUTO_MERGE", "gc.log")
_SKIPPED_FOLDERS = (
    "objects",
    "refs",
    "logs",
    "lfs",
    "modules",
)  # folders that are handled elsewhere, or not ours
_STRUCTURE_FILES = ("HEAD", "index", "packed-refs", "gitdir", "commondir")
_REPLACE_PREFIX = "refs/replace/"
_SECTION = re.compile(rb"\s*\[([\w.-]+)")
_OWN_SECTIONS = (b"core", b"extensions")
_BOOLEAN_WORDS = (b"true", b"false", b"yes", b"no", b"on", b"off")
RefMove = tuple[str, str | None, str | None]


def switch_history(
    git: Git, what: Erasure, survey: HistorySurvey, done: RewriteResult, *, again: bool
) -> list[Path]:
    """`again`: an earlier run was interrupted. Returns the indexes that another process holds."""
    _move_refs(git, survey, done, _choose_ref_names(what, survey, done, again))
    held_indexes = _update_indexes(what, survey, done)
    _rewrite_logs(git, what, done)
    _rewrite_shallow(git, done)
    _remove_leftovers(git, what)
    return held_indexes


# ---------------------------------------------------------------- refs


def _move_refs(git: Git, survey: HistorySurvey, rewritten: RewriteResult, new_names: dict[str, str]) -> None:
    targets = {ref: ref.target for ref in survey.roots.refs} | dict(rewritten.refs)
    created: list[RefMove] = []
    moved: list[RefMove] = []
    existing = {ref.name for ref in survey.roots.refs}
    for ref in survey.roots.refs:
        new, name = targets[ref], new_names[ref.name]
        if name != ref.name:
            created += [(name, new, None)] if new and name not in existing else []
            moved.append((ref.name, None, ref.target))
        elif new != ref.target:
            moved.append((name, new, ref.target))
    move_refs(git, created)
    _copy_logs(git, new_names)
    for head in survey.roots.heads:
        _move_head(head, new_names, targets, rewritten)
    move_refs(git, moved)


def _choose_ref_names(
    erasure: Erasure, survey: HistorySurvey, rewritten: RewriteResult, again: bool
) -> dict[str, str]:
    """The new name of each ref. After a kill, a ref that already has our target counts as ours."""
    taken = {ref.name: ref.target for ref in survey.roots.refs} | {
        ref.name: new for ref, new in rewritten.refs if new
    }
    new_names: dict[str, str] = {}
    for ref in survey.roots.refs:
        name, target = erasure.ref(ref.name), taken[ref.name]
        if ref.name.startswith(_REPLACE_PREFIX):  # named after the commit that it replaces
            name = _REPLACE_PREFIX + rewritten.of(ref.name.removeprefix(_REPLACE_PREFIX))
        elif name != ref.name:
            own_names = {candidate for candidate, current in taken.items() if again and current == target}
            name = next(
                candidate
                for candidate in iterate_numbered(name)
                if candidate in own_names or _is_free(candidate, taken)
            )
        new_names[ref.name] = name
        taken[name] = target
    return new_names


def _is_free(name: str, taken: Collection[str]) -> bool:
    """A ref is a file, so it can neither be inside another ref nor be a folder of others."""
    return name not in taken and not any(
        other.startswith(f"{name}/") or name.startswith(f"{other}/") for other in taken
    )


def _copy_logs(git: Git, new_names: dict[str, str]) -> None:
    """git deletes a ref's log together with the ref, so copy it first."""
    for old, new in new_names.items():
        log = git.common / "logs" / old
        if old != new and log.is_file():
            files.replace(git.common / "logs" / new, log.read_bytes())


def _move_head(
    head: WorkTreeHead, new_names: dict[str, str], targets: dict[Ref, str | None], rewritten: RewriteResult
) -> None:
    moves: list[RefMove] = [
        (ref.name, targets[ref], ref.target)
        for ref in head.refs
        if targets.get(ref, ref.target) != ref.target
    ]
    if head.detached and rewritten.of(head.detached) != head.detached:
        moves.append(("HEAD", rewritten.of(head.detached), head.detached))
    move_refs(head.git, moves)
    file = head.git.directory / "HEAD"
    branch = file.read_text(errors="surrogateescape").removeprefix("ref: ").strip()
    if new_names.get(branch, branch) != branch:
        files.replace(file, os.fsencode(f"ref: {new_names[branch]}\n"))


def _update_indexes(erasure: Erasure, survey: HistorySurvey, rewritten: RewriteResult) -> list[Path]:
    held_indexes = []
    for head, entries in rewritten.indexes:
        absent = {erasure.path(path) for path in list_not_checked_out(head.git)}  # with their new names
        removed, present = (
            [entry for entry in entries if entry[1] is None],
            [entry for entry in entries if entry[1] is not None],
        )
        if not update_entries(head.git, [*removed, *present]):
            held_indexes.append(head.git.directory / "index")
            continue
        if sparse := [path for path, _ in present if path in absent]:
            set_skip_worktree(head.git, sparse)
        if removed:
            drop_cached_folders(head.git)
    for head in survey.roots.heads:
        drop_resolve_undo(head.git)
    return held_indexes


# ---------------------------------------------------------------- logs


def _rewrite_logs(git: Git, erasure: Erasure, rewritten: RewriteResult) -> None:
    """Map log entries to the new commits. Drops the entries that our own ref updates added: otherwise
    `git stash list` would show an extra stash."""
    for file in list_ref_logs(git):
        old = file.read_bytes()
        lines = []
        for line in old.splitlines(keepends=True):
            match = LOG_LINE.fullmatch(line)
            lines.append(_rewrite_log_line(match, erasure, rewritten) if match else erasure.text(line))
        if (new := b"".join(lines)) != old:
            files.replace(file, new, mode=file.stat().st_mode & 0o777)


def _rewrite_log_line(match: re.Match[bytes], erasure: Erasure, rewritten: RewriteResult) -> bytes:
    before, after = match[1].decode(), match[2].decode()
    if rewritten.of(before) == after and before != after:
        return b""
    message = b"" if match[4] is None else b"\t" + rewritten.rename(erasure.message(match[4]))
    person = os.fsencode(erasure.person(os.fsdecode(match[3])))
    return b"%s %s %s%s\n" % (rewritten.of(before).encode(), rewritten.of(after).encode(), person, message)


def _rewrite_shallow(git: Git, rewritten: RewriteResult) -> None:
    """In a shallow clone, this file names the oldest commits."""
    file = git.common / "shallow"
    if file.is_file():
        new = "".join(f"{rewritten.of(name)}\n" for name in file.read_text().split())
        files.replace(file, new.encode())


# ---------------------------------------------------------------- leftover files


def find_large_objects(git: Git, what: Erasure) -> list[Path]:
    """Files of git-lfs that will be removed."""
    folder = git.common / "lfs"
    return [
        file for file in sorted(folder.rglob("*")) if file.is_file() and what.learn_large(file.read_bytes())
    ]


def _remove_leftovers(git: Git, erasure: Erasure) -> None:
    for directory in (git.common, *git.common.glob("worktrees/*")):
        for name in _LEFTOVER_FILES:
            (directory / name).unlink(missing_ok=True)
    for file in _list_other_files(git) if erasure.may_change("") else ():
        _scrub(file, erasure)
    for cache in ("commit-graph", "commit-graphs"):  # they name removed commits; git recreates them
        cache_path = git.common / "objects" / "info" / cache
        cache_path.unlink(missing_ok=True) if cache_path.is_file() else shutil.rmtree(
            cache_path, ignore_errors=True
        )
    for keep in git.common.glob("objects/pack/*.keep"):
        keep.unlink()


def _list_other_files(git: Git) -> Iterator[Path]:
    """Settings, unfinished messages, quarantined files, and anything else in the git directory."""
    for folder, folders, names in os.walk(git.common):
        folders[:] = [name for name in folders if Path(folder) != git.common or name not in _SKIPPED_FOLDERS]
        paths = (Path(folder, name) for name in names if name not in _STRUCTURE_FILES)
        yield from (file for file in paths if file.is_file() and not file.is_symlink())


def _scrub(file: Path, erasure: Erasure) -> None:
    data = file.read_bytes()
    if erasure.holds(_inflate(data)) or (erasure.holds(data) and b"\0" in data):
        file.unlink()
        return
    new = (
        _rewrite_settings(data, erasure) if file.name.startswith("config") else _erase_as_name(data, erasure)
    )
    if new != data and erasure.holds(data):
        files.replace(file, new, mode=file.stat().st_mode & 0o777)


def _erase_as_name(data: bytes, erasure: Erasure) -> bytes:
    """Erase as in names, because brackets have a meaning in patterns and scripts."""
    return erasure.message(os.fsencode(erasure.person(os.fsdecode(data))))


def _rewrite_settings(data: bytes, erasure: Erasure) -> bytes:
    """Settings mention branches, which may be renamed. git's own sections and words stay: git needs them."""
    lines, section = [], b""
    for line in data.splitlines(keepends=True):
        head = _SECTION.match(line)
        section = head[1].lower() if head else section
        begin = head.end() if head else line.find(b"=") + 1
        value = line[begin:]
        is_ours = section not in _OWN_SECTIONS and value.strip().lower() not in _BOOLEAN_WORDS
        new = os.fsencode(erasure.person(os.fsdecode(value))) if is_ours else value
        lines.append(line[:begin] + new)
    return b"".join(lines)


def _inflate(data: bytes) -> bytes:
    """The content of a quarantined object."""
    with suppress(zlib.error):
        return zlib.decompressobj().decompress(data)
    return b""

"""Over to the new history: refs, indexes, logs, and what git leaves lying about.

New refs are made before HEAD names them, and old ones go last: whenever this is cut short, HEAD stands at a
commit, and the same steps lead to the same names.
"""

from __future__ import annotations

import os
import re
import shutil
import zlib
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from tacit.store import files
from tacit.store.forgetting.history import LOGGED, Head, Survey, logs
from tacit.store.forgetting.rewrite import Rewritten
from tacit.store.forgetting.what import Forgetting, numbered
from tacit.store.git import Git, Ref

_EDITED = ("COMMIT_EDITMSG", "TAG_EDITMSG", "NOTES_EDITMSG")
_LEFT_OVER = (*_EDITED, "ORIG_HEAD", "FETCH_HEAD", "AUTO_MERGE", "gc.log")
_ELSEWHERE = ("objects", "refs", "logs", "lfs", "modules")  # folders that are seen to otherwise, or not ours
_STRUCTURE = ("HEAD", "index", "packed-refs", "gitdir", "commondir")
_REPLACED = "refs/replace/"
Move = tuple[str, str | None, str | None]


def switch(git: Git, what: Forgetting, survey: Survey, done: Rewritten, *, again: bool) -> list[Path]:
    """`again`: it was begun before. Returns the indexes that somebody holds."""
    _move_refs(git, survey, done, _ref_names(what, survey, done, again))
    held = _tell_indexes(survey, done)
    _rewrite_logs(git, what, done)
    _rewrite_shallow(git, done)
    _tidy(git, what)
    return held


# ---------------------------------------------------------------- refs


def _move_refs(git: Git, survey: Survey, done: Rewritten, called: dict[str, str]) -> None:
    targets = {ref: ref.target for ref in survey.roots.refs} | dict(done.refs)
    made: list[Move] = []
    moved: list[Move] = []
    there = {ref.name for ref in survey.roots.refs}
    for ref in survey.roots.refs:
        new, name = targets[ref], called[ref.name]
        if name != ref.name:
            made += [(name, new, None)] if new and name not in there else []
            moved.append((ref.name, None, ref.target))
        elif new != ref.target:
            moved.append((name, new, ref.target))
    git.move_refs(made)
    _take_logs_along(git, called)
    for head in survey.roots.heads:
        _move_head(head, called, targets, done)
    git.move_refs(moved)


def _ref_names(what: Forgetting, survey: Survey, done: Rewritten, again: bool) -> dict[str, str]:
    """What each ref is called then. After a kill, one that stands where ours would stand is ours."""
    taken = {ref.name: ref.target for ref in survey.roots.refs} | {
        ref.name: new for ref, new in done.refs if new
    }
    called: dict[str, str] = {}
    for ref in survey.roots.refs:
        name, target = what.ref(ref.name), taken[ref.name]
        if ref.name.startswith(_REPLACED):  # it is called like the commit in whose place it stands
            name = _REPLACED + done.of(ref.name.removeprefix(_REPLACED))
        elif name != ref.name:
            ours = {free for free, stands in taken.items() if again and stands == target}
            name = next(free for free in numbered(name) if free in ours or _is_free(free, taken))
        called[ref.name] = name
        taken[name] = target
    return called


def _is_free(name: str, taken: Collection[str]) -> bool:
    """A ref is a file: it can be neither inside another nor a folder of others."""
    return name not in taken and not any(
        other.startswith(f"{name}/") or name.startswith(f"{other}/") for other in taken
    )


def _take_logs_along(git: Git, called: dict[str, str]) -> None:
    """git deletes the log of a ref with it."""
    for old, new in called.items():
        log = git.common / "logs" / old
        if old != new and log.is_file():
            files.replace(git.common / "logs" / new, log.read_bytes(), mode=0o644)


def _move_head(head: Head, called: dict[str, str], targets: dict[Ref, str | None], done: Rewritten) -> None:
    moves: list[Move] = [
        (ref.name, targets[ref], ref.target)
        for ref in head.refs
        if targets.get(ref, ref.target) != ref.target
    ]
    if head.detached and done.of(head.detached) != head.detached:
        moves.append(("HEAD", done.of(head.detached), head.detached))
    head.git.move_refs(moves)
    file = head.git.directory / "HEAD"
    branch = file.read_text(errors="surrogateescape").removeprefix("ref: ").strip()
    if called.get(branch, branch) != branch:
        files.replace(file, os.fsencode(f"ref: {called[branch]}\n"), mode=0o644)


def _tell_indexes(survey: Survey, done: Rewritten) -> list[Path]:
    held = []
    for head, entries in done.indexes:
        away = head.git.not_checked_out()
        gone, here = [e for e in entries if e[1] is None], [e for e in entries if e[1] is not None]
        if not head.git.update_index([*gone, *here]):
            held.append(head.git.directory / "index")
            continue
        if sparse := [path for path, _ in here if path in away]:
            head.git.leave_out(sparse)
        if gone:
            head.git.drop_old_folders()
    for head in survey.roots.heads:
        head.git.forget_resolved()
    return held


# ---------------------------------------------------------------- logs


def _rewrite_logs(git: Git, what: Forgetting, done: Rewritten) -> None:
    """The same moves, between the new commits. What our own update of the refs added goes again: without it
    `git stash list` would have one stash more."""
    for file in logs(git):
        old = file.read_bytes()
        lines = []
        for line in old.splitlines(keepends=True):
            found = LOGGED.fullmatch(line)
            lines.append(_relogged(found, what, done) if found else what.text(line))
        if (new := b"".join(lines)) != old:
            files.replace(file, new, mode=file.stat().st_mode & 0o777)


def _relogged(found: re.Match[bytes], what: Forgetting, done: Rewritten) -> bytes:
    before, after = found[1].decode(), found[2].decode()
    if done.of(before) == after and before != after:
        return b""
    message = b"" if found[4] is None else b"\t" + done.renamed(what.message(found[4]))
    who = os.fsencode(what.person(os.fsdecode(found[3])))
    return b"%s %s %s%s\n" % (done.of(before).encode(), done.of(after).encode(), who, message)


def _rewrite_shallow(git: Git, done: Rewritten) -> None:
    """Where only a part of the history was cloned, this names the commits at its edge."""
    file = git.common / "shallow"
    if file.is_file():
        new = "".join(f"{done.of(name)}\n" for name in file.read_text().split())
        files.replace(file, new.encode(), mode=0o644)


# ---------------------------------------------------------------- what lies about


def large_objects(git: Git, what: Forgetting) -> list[Path]:
    """What git-lfs keeps and is to go."""
    folder = git.common / "lfs"
    return [
        file for file in sorted(folder.rglob("*")) if file.is_file() and what.learn_large(file.read_bytes())
    ]


def _tidy(git: Git, what: Forgetting) -> None:
    for directory in (git.common, *git.common.glob("worktrees/*")):
        for name in _LEFT_OVER:
            (directory / name).unlink(missing_ok=True)
    for file in _lying_about(git) if what.may_change("") else ():
        _scrub(file, what)
    for cache in ("commit-graph", "commit-graphs"):  # they name commits that are gone; git makes them anew
        place = git.common / "objects" / "info" / cache
        place.unlink(missing_ok=True) if place.is_file() else shutil.rmtree(place, ignore_errors=True)
    for keep in git.common.glob("objects/pack/*.keep"):
        keep.unlink()


def _lying_about(git: Git) -> Iterator[Path]:
    """Settings, messages half written, what was set aside as broken, and whatever somebody put there."""
    for here, folders, names in os.walk(git.common):
        folders[:] = [name for name in folders if Path(here) != git.common or name not in _ELSEWHERE]
        places = (Path(here, name) for name in names if name not in _STRUCTURE)
        yield from (file for file in places if file.is_file() and not file.is_symlink())


def _scrub(file: Path, what: Forgetting) -> None:
    data = file.read_bytes()
    if what.holds(_inflated(data)) or (what.holds(data) and b"\0" in data):
        file.unlink()
        return
    # Settings name branches, which are called otherwise now.
    is_settings = file.name.startswith("config")
    new = os.fsencode(what.person(os.fsdecode(data))) if is_settings else what.message(data)
    if new != data and what.holds(data):
        files.replace(file, new, mode=file.stat().st_mode & 0o777)


def _inflated(data: bytes) -> bytes:
    """An object that was set aside."""
    with suppress(zlib.error):
        return zlib.decompressobj().decompress(data)
    return b""

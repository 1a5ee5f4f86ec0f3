"""Lay out a home, complete one that is half made, or take in a folder that already holds something."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tacit.errors import HomeError
from tacit.model.problems import Problem
from tacit.store import files, hooks
from tacit.store.git import PLAIN, Blob, Change, Git, Planned, blob_name, require_installed
from tacit.store.gitwork import GitWork
from tacit.store.home import Home
from tacit.store.repair import repair
from tacit.store.trust import trust

FOLDERS = (
    "raw/conversations",
    "knowledge/identity",
    "knowledge/memory",
    "knowledge/journal",
    "knowledge/projects",
    "knowledge/people",
    "knowledge/procedures",
    "knowledge/reference",
    "topics",
    "archive",
    "attachments",
    "drafts",
)

PRIVATE_README = """\
tacit keeps here what can be made anew: records of open sessions, locks, caches, the search index.
git ignores this folder. Deleting it while no session is open loses nothing.
"""

_MERGED = (".gitignore", ".gitattributes")


@dataclass(slots=True)
class Report:
    made: list[str] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)
    adopted: list[str] = field(default_factory=list)  # workspaces
    warnings: list[Problem] = field(default_factory=list)
    commit: str | None = None


def set_up(home: Home, starter: Mapping[str, bytes], program: str, *, adopt: bool, now: datetime) -> Report:
    """Idempotent: what is there stays, what is missing is added, what is broken in git is mended."""
    require_installed()  # before anything is made: half a home helps nobody
    _refuse(home, adopt)
    _refuse_links(home)
    report = Report()
    with files.explained(f"set up {home.root}"):
        files.make_directories(home.root)
        # The private folder comes first: its presence tells a half-made home from a foreign folder.
        files.make_directories(home.private)
        _write_missing(home.private / "README", PRIVATE_README.encode())
        _write_missing(home.private / ".gitignore", b"*\n")  # also where the home's own says nothing of it
        with files.locked(home.lock):
            _lay_out(home, starter, program, report, now)
    return report


def _refuse(home: Home, adopt: bool) -> None:
    root = home.root
    if root.exists() and not root.is_dir():
        raise HomeError(f"{root} is a file. Choose a folder that does not exist yet, or an empty one.")
    if root.resolve() in (Path("/"), Path.home().resolve()):
        raise HomeError(
            f"{root} itself cannot be a home. Choose a folder inside it, such as {Path.home() / 'tacit'}."
        )
    if not root.exists() or home.private.is_dir() or home.config.is_file() or not any(root.iterdir()):
        return
    if not adopt:
        raise HomeError(
            f"{root} is not empty and not a tacit home, so nothing was touched. "
            f"To make it one and keep all that is there: tacit init --adopt {root}"
        )


def _refuse_links(home: Home) -> None:
    """A folder that is a link leads what we write to another place, which nobody asked us to fill."""
    inside = {parent for folder in (*FOLDERS, ".tacit/sessions") for parent in _way_to(home.root / folder)}
    for folder in sorted(inside - set(_way_to(home.root))):
        if folder.is_symlink():
            raise HomeError(
                f"{folder} is a link to {os.readlink(folder)}, and tacit writes only inside the home. "
                "Nothing was touched. Put a folder in its place and try again."
            )


def _way_to(folder: Path) -> list[Path]:
    return [folder, *folder.parents]


def _lay_out(home: Home, starter: Mapping[str, bytes], program: str, report: Report, now: datetime) -> None:
    for folder in FOLDERS:
        files.make_directories(home.root / folder)
    files.make_directories(home.sessions)
    git = Git(home.root)
    work = GitWork(home, git)
    report.mended.extend(_make_repository(home, git, work, report))
    for path, data in starter.items():
        if _write_missing(home.root / path, data) or (
            path in _MERGED and _merge_lines(home.root / path, data)
        ):
            report.made.append(path)
    report.warnings.extend(hooks.install(git, program))
    report.warnings.extend(_lfs())
    report.commit = _first_commit(home, git, work, starter, report, now)
    trust(home)


def _make_repository(home: Home, git: Git, work: GitWork, report: Report) -> list[str]:
    mended: list[str] = []
    if not (home.root / ".git").exists():
        report.made.append(".git")
    else:
        work.settle()
        mended = repair(home, git)  # first of all the locks of a git that died: git init would fail on them
    with work.writing({}):
        git.init("main")  # also completes a repository whose making was cut short
    return mended + repair(home, git)


def _write_missing(file: Path, data: bytes) -> bool:
    if file.exists():
        return False
    files.make_directories(file.parent)
    files.replace(file, data)
    return True


def _merge_lines(file: Path, wanted: bytes) -> bool:
    """Add the rules that are missing below those that are there."""
    there = file.read_bytes()
    known = {line.strip() for line in there.splitlines()}
    rules = [line for line in wanted.splitlines() if line.strip() and not line.startswith(b"#")]
    missing = [line for line in rules if line.strip() not in known]
    if not missing:
        return False
    start = there if there.endswith(b"\n") or not there else there + b"\n"
    files.replace(
        file, start + b"\n# tacit\n" + b"\n".join(missing) + b"\n", mode=file.stat().st_mode & 0o777
    )
    return True


def _lfs() -> list[Problem]:
    if shutil.which("git-lfs"):
        return []
    what = "git-lfs is not installed, so large attachments are kept in git itself."
    return [Problem(".gitattributes", what, "Install git-lfs to keep the repository small.", level="warning")]


def _first_commit(
    home: Home, git: Git, work: GitWork, starter: Mapping[str, bytes], report: Report, now: datetime
) -> str | None:
    """Commit what was made now, and what was made by a run that was cut short before its commit."""
    kept = git.tree("HEAD", *starter) if git.head() else {}
    made = [
        path
        for path, data in starter.items()
        if path in report.made or (path not in kept and (home.root / path).read_bytes() == data)
    ]
    if not made or git.branch() is None or git.in_progress():
        return None
    changes = [Change(path, (home.root / path).read_bytes()) for path in made]
    message = "maintenance: lay out the home\n\n" + "".join(f"- {path}\n" for path in made)
    blobs = {change.path: Blob(PLAIN, blob_name(change.data or b"", git.algorithm)) for change in changes}
    with work.writing(blobs):
        return git.commit([Planned(message, changes, now)])[0]


def starter_files(folder: Path, config: str) -> dict[str, bytes]:
    """The files of a new home, from the package, and the config as the config module writes it."""
    found = {"memory-config.yaml": config.encode()}
    for file in sorted(folder.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".py":
            name = str(file.relative_to(folder)).replace(os.sep, "/")
            found[name.replace("dot-", ".", 1) if name.startswith("dot-") else name] = file.read_bytes()
    return found

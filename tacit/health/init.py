"""Create a home, complete an unfinished one, or turn an existing folder into one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tacit.diagnostics import Problem
from tacit.errors import CHECK_OUT, HomeError
from tacit.git import hooks
from tacit.git.attributes import find_blocking_filters
from tacit.git.commits import PLAIN, CommitPlan, FileChange, import_commits
from tacit.git.conflicts import conflict_problem
from tacit.git.index import find_entries, list_not_checked_out, list_tracked
from tacit.git.note_committer import make_filter_problem
from tacit.git.repair import GitWork, repair
from tacit.git.repository import Blob, Git, blob_name, require_installed
from tacit.health.access import close_to_others, trust
from tacit.home import files
from tacit.home.layout import FOLDERS, Home

PRIVATE_README = """\
tacit keeps here what can be made anew: records of open sessions, locks, caches, the search index.
git ignores this folder. Deleting it while no session is open loses nothing.
"""

_ATTRIBUTES_FILE = ".gitattributes"
_MERGED_FILES = (".gitignore", _ATTRIBUTES_FILE)


@dataclass(slots=True)
class InitReport:
    made: list[str] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)
    adopted: list[str] = field(default_factory=list)  # workspaces
    warnings: list[Problem] = field(default_factory=list)
    commit: str | None = None


def initialize(
    home: Home, starter: Mapping[str, bytes], program: str, *, adopt: bool, now: datetime
) -> InitReport:
    """Idempotent: keeps what exists, adds what is missing, repairs what is broken in git."""
    require_installed()  # before anything is created: half a home is useless
    _refuse_unsuitable(home, adopt)
    _refuse_links(home)
    report = InitReport()
    with files.explain_disk_errors(f"set up {home.root}"):
        files.make_directories(home.root)
        close_to_others(home)
        # The private folder comes first: it distinguishes an unfinished home from a foreign folder.
        files.make_directories(home.private)
        _write_missing(home.private / "README", PRIVATE_README.encode())
        _write_missing(
            home.private / ".gitignore", b"*\n"
        )  # even if the home's own .gitignore does not list it
        with files.hold_lock(home.lock):
            _lay_out(home, starter, program, report, now)
    return report


def _refuse_unsuitable(home: Home, adopt: bool) -> None:
    root = home.root
    if root.exists() and not root.is_dir():
        raise HomeError(f"{root} is a file. Choose a folder that does not exist yet, or an empty one.")
    if root.resolve() in (Path("/"), Path.home().resolve()):
        raise HomeError(
            f"{root} itself cannot be a home. Choose a folder inside it, such as {Path.home() / 'tacit'}."
        )
    # Look for entries first: another `init` may be at work, and it begins with the private folder.
    if not root.exists() or not any(root.iterdir()) or home.private.is_dir() or home.config.is_file():
        return
    if not adopt:
        raise HomeError(
            f"{root} is not empty and not a tacit home, so nothing was touched. "
            f"To make it one and keep all that is there: tacit init --adopt {root}"
        )


def _refuse_links(home: Home) -> None:
    """A linked folder would send our writes to another place; a linked file would bring its content into our
    commits."""
    paths = (*FOLDERS, ".tacit/sessions", *_MERGED_FILES)
    candidates = {parent for folder in paths for parent in _path_and_parents(home.root / folder)}
    for folder in sorted(candidates - set(_path_and_parents(home.root))):
        if folder.is_symlink():
            raise HomeError(
                f"{folder} is a link to {os.readlink(folder)}, and tacit writes only inside the home. "
                "Nothing was touched. Take the link away and try again."
            )


def _path_and_parents(folder: Path) -> list[Path]:
    return [folder, *folder.parents]


def _lay_out(
    home: Home, starter: Mapping[str, bytes], program: str, report: InitReport, now: datetime
) -> None:
    for folder in FOLDERS:
        files.make_directories(home.root / folder)
    files.make_directories(home.sessions)
    git = Git(home.root)
    work = GitWork(home, git)
    report.mended.extend(_make_repository(home, git, work, report))
    starter = _drop_overriding_rules(starter, git)
    starter = _drop_tracked(home, git, starter, report)
    for path, data in starter.items():
        if path in _MERGED_FILES and (conflict := conflict_problem(home.root, path)):
            report.warnings.append(conflict)
        elif _write_missing(home.root / path, data) or (
            path in _MERGED_FILES and _merge_lines(home.root / path, data)
        ):
            report.made.append(path)
    report.warnings.extend(hooks.install(git, program))
    report.warnings.extend(_check_lfs())
    report.commit = _first_commit(home, git, work, starter, report, now)
    trust(home)


def _make_repository(home: Home, git: Git, work: GitWork, report: InitReport) -> list[str]:
    mended: list[str] = []
    if not (home.root / ".git").exists():
        report.made.append(".git")
    else:
        work.settle()
        mended = repair(home, git)  # clears the locks of a dead git first: git init would fail on them
    with work.writing({}):
        git.init("main")  # also completes a repository whose creation was interrupted
    return mended + repair(home, git)


def _drop_tracked(home: Home, git: Git, starter: Mapping[str, bytes], report: InitReport) -> dict[str, bytes]:
    """The files to create. A template must not replace a file that git has: a deleted one is restored from
    git, and one that is not checked out stays absent."""
    missing = [path for path in starter if not os.path.lexists(home.root / path)]
    tracked = list_tracked(git, missing)
    for path, data in _read_deleted(git, tracked).items():
        _write_missing(home.root / path, data)
        report.mended.append(f"{path}: was deleted; it is there again, as git has it.")
    absent = [path for path in missing if path in tracked and not os.path.lexists(home.root / path)]
    if home.config.name in absent:
        raise HomeError(f"{home.config.name} is in git but not checked out. {CHECK_OUT}{home.config.name}")
    message = "is in git but not checked out, so no template was put in its place."
    report.warnings.extend(Problem(path, message, f"{CHECK_OUT}{path}", level="warning") for path in absent)
    return {path: data for path, data in starter.items() if path not in absent}


def _read_deleted(git: Git, paths: Collection[str]) -> dict[str, bytes]:
    """The index's content of these files, without those that a checkout leaves out, whose removal the user
    staged, or that a filter would change."""
    excluded = list_not_checked_out(git) | find_blocking_filters(git, paths).keys()
    entries = {path: blob for path, blob in find_entries(git, paths).items() if path not in excluded}
    data = git.blobs({blob.name for blob in entries.values()})
    return {path: data[blob.name] for path, blob in entries.items() if blob.name in data}


def _write_missing(file: Path, data: bytes) -> bool:
    if file.exists():
        return False
    files.make_directories(file.parent)
    files.replace(file, data)
    return True


def _drop_overriding_rules(starter: Mapping[str, bytes], git: Git) -> dict[str, bytes]:
    """Leave out our rules for attachments if the user has a filter for them: ours would override rules for
    all repositories, and files would not be encrypted as intended."""
    rules = starter.get(_ATTRIBUTES_FILE, b"").splitlines(keepends=True)
    if not find_blocking_filters(git, ["attachments/a/a.png"]):
        return dict(starter)
    return {**starter, _ATTRIBUTES_FILE: b"".join(line for line in rules if not _names_filter(line))}


def _names_filter(rule: bytes) -> bool:
    return b" filter=" in rule


def _merge_lines(file: Path, template: bytes) -> bool:
    """Add missing rules below the existing ones. Ours that name a filter go above if there are other filters:
    the last rule wins, and the user's filter may be there for encryption."""
    current = file.read_bytes()
    present = {line.strip() for line in current.splitlines()}
    rules = [line for line in template.splitlines() if line.strip() and not line.startswith(b"#")]
    missing = [line for line in rules if line.strip() not in present]
    if not missing:
        return False
    first = [line for line in missing if _names_filter(line) and _names_filter(current)]
    last = [line for line in missing if line not in first]
    start = current if current.endswith(b"\n") or not current else current + b"\n"
    above = b"# tacit\n" + b"\n".join(first) + b"\n\n" if first else b""
    below = b"\n# tacit\n" + b"\n".join(last) + b"\n" if last else b""
    files.replace(file, above + start + below, mode=file.stat().st_mode & 0o777)
    return True


def _check_lfs() -> list[Problem]:
    if shutil.which("git-lfs"):
        return []
    message = "git-lfs is not installed, so large attachments are kept in git itself."
    return [
        Problem(".gitattributes", message, "Install git-lfs to keep the repository small.", level="warning")
    ]


def _first_commit(
    home: Home, git: Git, work: GitWork, starter: Mapping[str, bytes], report: InitReport, now: datetime
) -> str | None:
    """Commit the files created now, and those of a run that was interrupted before its commit."""
    committed = git.tree("HEAD", *starter) if git.head() else {}
    paths = [
        path
        for path, data in starter.items()
        if path in report.made or (path not in committed and (home.root / path).read_bytes() == data)
    ]
    filtered = find_blocking_filters(git, paths)
    report.warnings.extend(make_filter_problem(path, name) for path, name in filtered.items())
    paths = [path for path in paths if path not in filtered]
    if not paths or git.branch() is None or git.in_progress():
        return None
    changes = [FileChange(path, (home.root / path).read_bytes()) for path in paths]
    message = "maintenance: lay out the home\n\n" + "".join(f"- {path}\n" for path in paths)
    blobs = {change.path: Blob(PLAIN, blob_name(change.data or b"", git.algorithm)) for change in changes}
    with work.writing(blobs):
        return import_commits(git, [CommitPlan(message, changes, now)])[0]


def load_starter_files(folder: Path, config: str) -> dict[str, bytes]:
    """The files of a new home: templates from the package, and the generated config."""
    contents = {"memory-config.yaml": config.encode()}
    for file in sorted(folder.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".py":
            name = str(file.relative_to(folder)).replace(os.sep, "/")
            contents[name.replace("dot-", ".", 1) if name.startswith("dot-") else name] = file.read_bytes()
    return contents

"""A look at everything that can be wrong with a home. Reads only: nothing is created, locked or mended."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from tacit.config import Config
from tacit.errors import GitError, StoreError
from tacit.model.problems import Problem
from tacit.store import files, hooks, overview, repair
from tacit.store.committer import loose_transcripts
from tacit.store.git import Git
from tacit.store.home import Home
from tacit.store.setup import FOLDERS
from tacit.text import notes

_LEAST_FREE = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    found: str
    problems: tuple[Problem, ...] = ()


def checkup(home: Home, config: Config) -> Iterator[Check]:
    for look in (_layout, _disk, _repository, _hooks, _sessions, _notes, _memory, _reach):
        yield look(home, config)


def _layout(home: Home, _config: Config) -> Check:
    missing = [folder for folder in FOLDERS if not (home.root / folder).is_dir()]
    problems = []
    if missing:  # no error: git keeps no empty folders, so a clone lacks them
        what = f"folders are missing: {', '.join(missing)}."
        problems.append(Problem(str(home.root), what, f"Run: tacit init {home.root}", level="warning"))
    mode = stat.S_IMODE(home.root.stat().st_mode)
    if mode & 0o077:
        what = f"other users of this machine can look inside (mode {mode:04o})."
        problems.append(Problem(str(home.root), what, f"Run: chmod 700 {home.root}", level="warning"))
    return Check("layout", "complete" if not missing else f"{len(missing)} folders missing", tuple(problems))


def _disk(home: Home, _config: Config) -> Check:
    free = shutil.disk_usage(home.root).free
    problems = []
    if free < _LEAST_FREE:
        what = f"only {free // 2**20} MB are free; capture stops when none are."
        problems.append(Problem(str(home.root), what, "Free some space."))
    if not os.access(home.root, os.W_OK):
        what = "cannot be written: reading works, keeping conversations does not."
        problems.append(Problem(str(home.root), what, "Make it writable."))
    return Check("disk", f"{free / 2**30:.1f} GB free", tuple(problems))


def _repository(home: Home, _config: Config) -> Check:
    git = Git(home.root)
    problems = [finding.problem for finding in repair.findings(home, git)]
    if (what := git.in_progress()) is not None:
        problems.append(Problem(".git", f"{what} is in progress; commits wait for it.", level="warning"))
    elif (home.root / ".git").exists() and git.branch() is None:
        todo = "Go back with: git switch main"
        problems.append(Problem(".git", "HEAD is detached; commits wait.", todo, level="warning"))
    version = git.attempt("version").stdout.decode().strip().removeprefix("git version ")
    return Check("repository", f"git {version}, on {git.branch() or 'no branch'}", tuple(problems))


def _hooks(home: Home, _config: Config) -> Check:
    missing = [name for name, there in hooks.installed(Git(home.root)).items() if not there]
    todo = f"Run: tacit init {home.root}"
    problems = [
        Problem(f".git/hooks/{name}", "does not call tacit.", todo, level="warning") for name in missing
    ]
    return Check("hooks", "installed" if not missing else "not all installed", tuple(problems))


def _sessions(home: Home, _config: Config) -> Check:
    seen = overview.look(home)
    todo = "Any tacit command that writes seals it; or run: tacit run commit"
    problems = [Problem(path, "was left open by a crash.", todo, level="warning") for path in seen.left_open]
    todo = "Run: tacit run commit"
    problems += [
        Problem(path, "is sealed but not committed.", todo, level="warning") for path in seen.waiting
    ]
    with suppress(GitError):  # a broken repository is told of by its own check
        problems += loose_transcripts(home, Git(home.root)).problems
    return Check("sessions", f"{len(seen.open)} open, {seen.transcripts} transcripts", tuple(problems))


def _notes(home: Home, _config: Config) -> Check:
    tree = files.Tree(home.root)
    problems: list[Problem] = []
    count = 0
    for path in tree.files("knowledge", "topics", "archive", "drafts"):
        if path.endswith(".md"):
            count += 1
            problems.extend(_note_problems(lambda path=path: tree.read(path), path))  # type: ignore[misc]
    return Check("notes", f"{count} notes", tuple(problems))


def _note_problems(read: Callable[[], bytes], path: str) -> tuple[Problem, ...]:
    try:
        data = read()
        problems = notes.parse(notes.decode(data), path).problems
        return problems if _is_utf8(data) else (*problems, Problem(path, *_NOT_UTF8, level="warning"))
    except (StoreError, OSError) as error:
        return (Problem(path, str(error), level="warning"),)


_NOT_UTF8 = ("has bytes that are not UTF-8; they are kept but read as nonsense.", "Save it as UTF-8.")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _memory(home: Home, config: Config) -> Check:
    path = "knowledge/memory/MEMORY.md"
    file = home.root / path
    if not file.is_file():
        return Check("MEMORY.md", "none")
    lifecycle = config.lifecycle
    data = file.read_bytes()
    limits = (lifecycle.memory_warn_lines, lifecycle.memory_line_cap, lifecycle.memory_block_lines)
    problems = hooks.memory_size(data, path, *limits)
    return Check(
        "MEMORY.md", f"{hooks.count_lines(data)} lines of {lifecycle.memory_line_cap}", tuple(problems)
    )


def _reach(_home: Home, config: Config) -> Check:
    """What leaves this machine, said plainly."""
    out = []
    if config.git.auto_push and config.git.remote:
        out.append(f"commits are pushed to {config.git.remote}")
    return Check("network", "; ".join(out) or "nothing leaves this machine")

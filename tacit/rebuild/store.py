"""The folder of a rebuild: `.tacit/rebuilds/NAME/`.

    home/         a work tree of the home's repository on the branch extract/NAME: a home of its own
    rebuild.json  the base commit and the settings
    calls.jsonl   the recorded model calls and answers

What must stay true:
- the branch holds all finished work: after a kill the files are restored from its last commit;
- nothing outside this folder and this branch is touched;
- the same base and the same answers give the same commits.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import NamedTuple

from tacit.errors import GitError, UsageError
from tacit.git.attributes import find_blocking_filters
from tacit.git.commits import CommitPlan, import_commits, refuse_filtered
from tacit.git.index import reset_index
from tacit.git.objects import read_trailer
from tacit.git.refs import set_ref
from tacit.git.repair import GitWork
from tacit.git.repository import Git
from tacit.git.work_trees import add_work_tree, check_out, drop_work_tree, list_changes
from tacit.home import files
from tacit.home.layout import Home
from tacit.home.paths import name_problem

_FOLDER = "rebuilds"
_PROGRESS_TRAILER = "Rebuilt-to"  # the trailer that names the last transcript in a commit
_SHARED_FILES = ("senders.json",)  # of .tacit: who takes part in a session


class RebuildSettings(NamedTuple):
    """How a rebuild learns. Different settings need a different rebuild."""

    extractors: tuple[str, ...]  # by label
    models: tuple[tuple[str, str], ...] = ()  # by task; empty: rules only
    condenses: bool = True


class RebuildState(NamedTuple):
    base: str  # the commit it started from
    settings: RebuildSettings
    done: bool = False


class Rebuild:
    """One rebuild by its name. Hold its lock while calling methods that change it."""

    def __init__(self, home: Home, git: Git, name: str) -> None:
        self.name, self.branch = name, f"extract/{name}"
        self.folder = home.private / _FOLDER / name
        self.root = self.folder / "home"
        self.calls = self.folder / "calls.jsonl"
        self._home, self._git = home, git

    @contextmanager
    def lock(self) -> Iterator[None]:
        files.make_directories(self.folder)
        with files.hold_lock(self.folder / "lock", 0.5):
            yield

    @property
    def tip(self) -> str | None:
        return self._git.resolve(f"refs/heads/{self.branch}")

    def state(self) -> RebuildState | None:
        try:
            stored = json.loads((self.folder / "rebuild.json").read_bytes())
            models = tuple((str(task), str(model)) for task, model in stored["models"])
            settings = RebuildSettings(
                tuple(map(str, stored["extractors"])), models, bool(stored["condenses"])
            )
            return RebuildState(str(stored["base"]), settings, bool(stored["done"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, state: RebuildState) -> None:
        stored = {"base": state.base, **state.settings._asdict(), "done": state.done}
        files.replace(self.folder / "rebuild.json", json.dumps(stored, indent=1).encode())

    def begin(self, state: RebuildState) -> None:
        """Start over from the base. Recorded answers stay."""
        self._refuse_filters(state.base)
        self.keep(state._replace(done=False))
        self._remove_work_tree()
        with self._git_work():
            add_work_tree(self._git, self.root, self.branch, state.base)
        self._lay_out(state.base)

    def _refuse_filters(self, base: str) -> None:
        """Refuse git filters: the files are laid out from git's objects, which filters have changed."""
        if filters := find_blocking_filters(self._git, self._git.tree(base)):
            path, name = next(iter(filters.items()))
            raise GitError(
                f"{path} has the git filter {name}, which tacit does not run, so nothing can be rebuilt: git "
                "does not hold its plain text. Take the filter out of the git attributes first."
            )

    def resume(self) -> str | None:
        """Continue at the branch's last commit. Returns the last transcript in it; None to start over."""
        tip = self.tip
        if tip is None or not self._is_ours():
            return None
        self._refuse_filters(tip)
        self._lay_out(tip)
        return read_trailer(self._git, tip, _PROGRESS_TRAILER)

    def _is_ours(self) -> bool:
        """Whether the work tree belongs to this repository: in a copied home it belongs to the original."""
        work_tree = Git(self.root)
        is_there = (self.root / ".git").is_file() and work_tree.common == self._git.common
        return is_there and work_tree.branch() == self.branch

    def commit(self, subject: str, to: str, when: datetime) -> str:
        """Commit the current files to the branch."""
        tip = self.tip
        assert tip is not None
        message = f"{subject}\n\n{_PROGRESS_TRAILER}: {to}\n"
        planned = CommitPlan(message, list_changes(self._git, tip, self.root), when)
        refuse_filtered(
            self._git, [planned]
        )  # with the home's attributes, which may be newer than the branch
        with self._git_work():
            commits = import_commits(Git(self.root), [planned])
            reset_index(Git(self.root), "HEAD")
        return commits[0]

    def drop(self) -> None:
        """Delete the work tree, the branch and all recorded answers."""
        tip = self.tip
        self._remove_work_tree()
        if tip is not None:
            with self._git_work():
                set_ref(self._git, f"refs/heads/{self.branch}", None, old=tip)
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def _git_work(self) -> Iterator[None]:
        with files.hold_lock(self._home.lock), GitWork(self._home, self._git).writing({}):
            yield

    def _remove_work_tree(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        drop_work_tree(self._git, self.root.relative_to(self._home.root).as_posix())

    def _lay_out(self, commit: str) -> None:
        work_tree = Git(self.root)
        for lock in work_tree.directory.glob("*.lock"):  # left by a killed git process
            lock.unlink(missing_ok=True)
        reset_index(work_tree, commit)
        check_out(self._git, commit, self.root)
        private = Home(self.root).private
        shutil.rmtree(private, ignore_errors=True)
        files.make_directories(private)
        files.write_unsynced(private / ".gitignore", b"*\n")
        files.write_unsynced(private / "runs.jsonl", b"")  # else earlier runs would be imported from commits
        for name in _SHARED_FILES:
            with suppress(FileNotFoundError):
                files.write_unsynced(private / name, (self._home.private / name).read_bytes())


def read_notes(git: Git, commit: str, *folders: str) -> dict[str, bytes]:
    """The notes of a commit in these folders, by path."""
    tree = git.tree(commit, *folders)
    names = {path: blob.name for path, blob in tree.items() if path.endswith(".md")}
    data = git.blobs(dict.fromkeys(names.values()))
    return {path: data[name] for path, name in names.items() if name in data}


def list_rebuilds(home: Home, git: Git) -> list[Rebuild]:
    folder = home.private / _FOLDER
    names = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [Rebuild(home, git, name) for name in names]


def open_rebuild(home: Home, git: Git, name: str) -> Rebuild:
    """The rebuild with this name, whether it exists yet or not."""
    is_plain = "/" not in name and not name.startswith("-") and not name_problem(name)
    if not is_plain or git.attempt("check-ref-format", f"refs/heads/extract/{name}").returncode:
        raise UsageError(
            f"{name[:60]!r} cannot be the name of a rebuild. Use a few letters, digits and hyphens: v2"
        )
    rebuild = Rebuild(home, git, name)
    for path in (rebuild.folder, rebuild.root):
        if path.is_symlink():
            raise UsageError(f"{path} is a link; rebuilds are made inside the home. Remove the link first.")
    return rebuild


def find_rebuild(home: Home, git: Git, name: str) -> Rebuild:
    rebuild = open_rebuild(home, git, name.removeprefix("extract/"))
    if rebuild.state() is None:
        names = ", ".join(known.name for known in list_rebuilds(home, git)) or "none"
        raise UsageError(
            f"There is no rebuild {name!r}. There are: {names}. Make one: tacit rebuild --name v2"
        )
    return rebuild

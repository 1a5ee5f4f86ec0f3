"""Where everything is learned anew: `.tacit/rebuilds/NAME/`.

    home/         a work tree of the home's repository on the branch extract/NAME: a home of its own
    rebuild.json  from which commit it was begun, and how
    calls.jsonl   what models were asked, and what they answered

What must stay true:
- the branch holds all that is done: after a kill the files are laid out again from its last commit;
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

from tacit.errors import UsageError
from tacit.store import checkout, files
from tacit.store.git import Git, Planned
from tacit.store.gitwork import GitWork
from tacit.store.home import Home

_FOLDER = "rebuilds"
_TO = "Rebuilt-to"  # the trailer that tells how far a commit is
_SHARED = ("senders.json",)  # of .tacit: by whom a session is heard


class Settings(NamedTuple):
    """How it is learned. Another way is another rebuild."""

    extractors: tuple[str, ...]  # by label
    models: tuple[tuple[str, str], ...] = ()  # of each task; empty: by rules
    condenses: bool = True


class State(NamedTuple):
    base: str  # the commit that it was begun from
    settings: Settings
    done: bool = False


class Rebuild:
    """One of them by its name. Call what changes it while holding its lock."""

    def __init__(self, home: Home, git: Git, name: str) -> None:
        self.name, self.branch = name, f"extract/{name}"
        self.folder = home.private / _FOLDER / name
        self.root = self.folder / "home"
        self.calls = self.folder / "calls.jsonl"
        self._home, self._git = home, git

    @contextmanager
    def locked(self) -> Iterator[None]:
        files.make_directories(self.folder)
        with files.locked(self.folder / "lock", 0.5):
            yield

    @property
    def tip(self) -> str | None:
        return self._git.resolve(f"refs/heads/{self.branch}")

    def state(self) -> State | None:
        try:
            said = json.loads((self.folder / "rebuild.json").read_bytes())
            models = tuple((str(task), str(model)) for task, model in said["models"])
            settings = Settings(tuple(map(str, said["extractors"])), models, bool(said["condenses"]))
            return State(str(said["base"]), settings, bool(said["done"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, state: State) -> None:
        said = {"base": state.base, **state.settings._asdict(), "done": state.done}
        files.replace(self.folder / "rebuild.json", json.dumps(said, indent=1).encode())

    def begin(self, state: State) -> None:
        """From the base, whatever was there before. What models answered stays."""
        self.keep(state._replace(done=False))
        self._take_away()
        with self._git_at_work():
            self._git.add_work_tree(self.root, self.branch, state.base)
        self._lay_out(state.base)

    def resume(self) -> str | None:
        """Go on at the last commit of the branch: the last transcript that is in it; None: begin anew."""
        tip = self.tip
        if tip is None or not self._is_ours():
            return None
        self._lay_out(tip)
        return self._git.trailer(tip, _TO)

    def _is_ours(self) -> bool:
        """Whether the work tree is one of this repository: of a home that was copied it is the old one's."""
        place = Git(self.root)
        is_there = (self.root / ".git").is_file() and place.common == self._git.common
        return is_there and place.branch() == self.branch

    def commit(self, subject: str, to: str, when: datetime) -> str:
        """What the files are now, as one more commit of the branch."""
        tip = self.tip
        assert tip is not None
        message = f"{subject}\n\n{_TO}: {to}\n"
        found = checkout.changes(self._git, tip, self.root)
        with self._git_at_work():
            made = Git(self.root).commit([Planned(message, found, when)])
            Git(self.root).read_tree("HEAD")
        return made[0]

    def drop(self) -> None:
        """The work tree, the branch and all that was recorded for it."""
        tip = self.tip
        self._take_away()
        if tip is not None:
            with self._git_at_work():
                self._git.set_ref(f"refs/heads/{self.branch}", None, old=tip)
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def _git_at_work(self) -> Iterator[None]:
        with files.locked(self._home.lock), GitWork(self._home, self._git).writing({}):
            yield

    def _take_away(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        self._git.forget_work_tree(self.root.relative_to(self._home.root).as_posix())

    def _lay_out(self, commit: str) -> None:
        place = Git(self.root)
        for lock in place.directory.glob("*.lock"):  # of a git of ours that was killed
            lock.unlink(missing_ok=True)
        place.read_tree(commit)
        checkout.lay_out(self._git, commit, self.root)
        private = Home(self.root).private
        shutil.rmtree(private, ignore_errors=True)
        files.make_directories(private)
        (private / ".gitignore").write_bytes(b"*\n")
        (private / "runs.jsonl").touch()  # else what was learned before is told by commits
        for name in _SHARED:
            with suppress(FileNotFoundError):
                shutil.copyfile(self._home.private / name, private / name)


def rebuilds(home: Home, git: Git) -> list[Rebuild]:
    folder = home.private / _FOLDER
    names = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [Rebuild(home, git, name) for name in names]


def rebuild_of(home: Home, git: Git, name: str) -> Rebuild:
    """By its name, also where there is none yet."""
    is_plain = bool(name) and "/" not in name and not name.startswith((".", "-"))
    if not is_plain or git.attempt("check-ref-format", f"refs/heads/extract/{name}").returncode:
        raise UsageError(f"{name!r} cannot be the name of a rebuild. Use letters, digits and hyphens: v2")
    return Rebuild(home, git, name)


def existing(home: Home, git: Git, name: str) -> Rebuild:
    found = rebuild_of(home, git, name.removeprefix("extract/"))
    if found.state() is None:
        there = ", ".join(one.name for one in rebuilds(home, git)) or "none"
        raise UsageError(
            f"There is no rebuild {name!r}. There are: {there}. Make one: tacit rebuild --name v2"
        )
    return found

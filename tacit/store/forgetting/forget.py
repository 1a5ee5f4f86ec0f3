"""Forgetting: first what would go, then that it goes, then the proof that nothing is left.

What must stay true:
- nothing else is lost: what is not forgotten has the same bytes afterwards, in files and in every commit;
- each step can be done again. After a kill the same command finishes what it began, with the text given once
  more: it is never written down, and the journal in `.tacit` has only a hash of it;
- new objects are on disk before anything leads to them, old ones go when nothing leads to them any more.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from tacit.model.problems import Problem
from tacit.store import files
from tacit.store.forgetting.derived import Derived
from tacit.store.forgetting.history import History, Survey
from tacit.store.forgetting.ready import no_live_session, refuse_repository
from tacit.store.forgetting.rewrite import Rewriting
from tacit.store.forgetting.switch import large_objects, switch
from tacit.store.forgetting.what import Forgetting
from tacit.store.forgetting.worktree import Place, WorkTree
from tacit.store.git import Git
from tacit.store.gitwork import GitWork
from tacit.store.home import Home


@dataclass(slots=True)
class Plan:
    """What goes, and what cannot be reached."""

    what: Forgetting
    survey: Survey
    places: list[Place] = field(default_factory=list)
    derived: Counter[str] = field(default_factory=Counter)
    large: list[Path] = field(default_factory=list)
    similar: list[str] = field(default_factory=list)  # files that say it in another way, and keep it
    unreachable: list[str] = field(default_factory=list)
    cut_short: bool = False  # it was begun before

    @property
    def is_empty(self) -> bool:
        found = (
            self.places,
            self.survey.commits,
            self.survey.refs,
            self.survey.staged,
            self.derived,
            self.large,
        )
        return not any(found) and not self.survey.loose and not self.cut_short


def look(home: Home, git: Git, what: Forgetting, mirrors: Sequence[Path] = ()) -> Plan:
    """Changes nothing."""
    refuse_repository(home, git)
    large = large_objects(git, what)
    trees = _work_trees(git, what)
    for tree in trees:
        tree.learn()
    survey = History(git, what).look()
    plan = Plan(what, survey, large=large, cut_short=_journal(home, what).exists())
    for tree in trees:
        prefix = "" if tree.root == home.root else f"{tree.root}/"
        plan.places += [replace(place, path=prefix + place.path) for place in tree.look()]
        plan.similar += [prefix + path for path in tree.similar]
        plan.unreachable += [prefix + path for path in tree.unreadable]
        plan.unreachable += [f"{prefix}{path}, a repository of its own" for path in _strangers(tree, trees)]
    plan.derived = Derived(home, what, mirrors).look()
    return plan


def _work_trees(git: Git, what: Forgetting) -> list[WorkTree]:
    return [WorkTree(root, what) for root in (git.root, *git.work_trees())]


def _strangers(tree: WorkTree, trees: Sequence[WorkTree]) -> list[str]:
    ours = {os.path.realpath(one.root) for one in trees}
    return [path for path in tree.foreign if os.path.realpath(tree.root / path) not in ours]


# ---------------------------------------------------------------- doing it


def carry_out(
    home: Home,
    git: Git,
    plan: Plan,
    *,
    now: datetime,
    drop_index: Callable[[], None],
    mirrors: Sequence[Path] = (),
    tell: Callable[[str], None] = lambda step: None,
) -> list[str]:
    """Returns where it still is: nothing, unless something could not be reached. Expects the home's lock,
    `make_ready`, a plan made after it, and that no daemon runs."""
    what, paths = plan.what, [place.path for place in plan.places]
    derived = Derived(home, what, mirrors)
    journal = _journal(home, what)
    with no_live_session(home, what, paths), GitWork(home, git).writing({}):
        note = {"kind": what.kind, "began": now.isoformat(timespec="seconds")}
        files.replace(journal, json.dumps(note).encode())
        tell("writing the history anew")
        done = Rewriting(git, what, plan.survey).write()
        # Before the files: which lines of a log belong to a session is learned from its transcript.
        derived.clean()
        drop_index()
        tell("changing files")
        for tree in _work_trees(git, what):
            tree.change()
        held = switch(git, what, plan.survey, done, again=plan.cut_short)
        for file in plan.large:
            file.unlink(missing_ok=True)
        tell("removing what nothing leads to any more")
        git.drop_unreachable()
    tell("looking for what is left")
    found = {*_left(home, git, what, derived), *(f"{file} (somebody holds it)" for file in held)}
    journal.unlink()
    files.fsync_directory(home.private)
    return sorted(found)


# ---------------------------------------------------------------- is it really gone


def _left(home: Home, git: Git, what: Forgetting, derived: Derived) -> Iterator[str]:
    """Every file is looked at byte by byte, every object of git from inside."""
    for root in (home.root, *git.work_trees()):
        yield from _files_left(root, what)
    if what.may_change(""):
        held = ((name, kind) for name, kind, data in git.every_object() if what.holds(data))
        yield from (f".git ({kind} {name[:10]})" for name, kind in held)
    else:
        yield from (f"{path} (in the history)" for path, _ in History(git, what).look().files)
    yield from (f".tacit ({kind})" for kind in derived.look())


def _files_left(root: Path, what: Forgetting) -> Iterator[str]:
    for here, folders, names in os.walk(root):
        for name in sorted([*folders, *names]):
            file = Path(here, name)
            path = str(file.relative_to(root))
            if what.may_change(path) and (what.path(path) != path or _holds(file, path, what)):
                yield path


def _holds(file: Path, path: str, what: Forgetting) -> bool:
    if file.is_symlink():
        return what.holds(os.fsencode(os.readlink(file)))
    if not file.is_file() or path.startswith(".git/objects/"):  # those are compressed
        return False
    try:
        return what.holds(file.read_bytes())
    except OSError:
        return False


# ---------------------------------------------------------------- cut short


def _journal(home: Home, what: Forgetting) -> Path:
    name = hashlib.sha256(what.secret.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return home.private / f"forget-{name}.json"


def unfinished(home: Home) -> list[Problem]:
    """Those that a kill cut short. Only who gave the text can give it again."""
    found = []
    for file in sorted(home.private.glob("forget-*.json")):
        try:
            note = json.loads(file.read_bytes())
            began, kind = str(note["began"]), str(note["kind"])
        except (OSError, ValueError, KeyError, TypeError):
            began, kind = "", "passage"
        option = "" if kind == "passage" else f"--{kind} "
        todo = f"Run the same command again: tacit forget {option}… --yes. Or, to let it be, delete {file}."
        what = f"`tacit forget` of a {kind} was cut short{f' ({began})' if began else ''}."
        found.append(Problem(f".tacit/{file.name}", what, todo))
    return found

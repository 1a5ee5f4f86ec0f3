"""Forgetting: first what would go, then that it goes, then the proof that nothing is left.

What must stay true:
- nothing else is lost: what is not forgotten has the same bytes afterwards, in files and in every commit;
- each step can be done again. After a kill the same command finishes what it began, with the text given once
  more: it is never written down, and the journal in `.tacit` has only a hash of it;
- new objects are on disk before anything leads to them, old ones go when nothing leads to them any more.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tacit.errors import Busy, GitError, HomeError
from tacit.model.problems import Problem
from tacit.store import files, locks, transcripts
from tacit.store.forget_derived import Derived, large_objects, tidy_repository
from tacit.store.forget_files import Place, WorkTree
from tacit.store.forget_history import History, Survey
from tacit.store.forget_proof import left
from tacit.store.forget_rewrite import (
    Rewriting,
    move_refs,
    rewrite_logs,
    rewrite_shallow,
    tell_indexes,
)
from tacit.store.forget_what import Forgetting, Sessions, is_transcript
from tacit.store.git import Git
from tacit.store.gitwork import GitWork
from tacit.store.home import Home
from tacit.store.repair import clear_dead_locks

_UNDER_WAY = ("BISECT_LOG", "sequencer")


@dataclass(slots=True)
class Plan:
    """What goes, and what cannot be reached."""

    what: Forgetting
    survey: Survey
    places: list[Place] = field(default_factory=list)
    derived: Counter[str] = field(default_factory=Counter)
    large: list[Path] = field(default_factory=list)
    similar: list[str] = field(default_factory=list)  # files that say it in another spelling, and keep it
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
    _refuse_repository(home, git)
    large = large_objects(git, what)
    trees = _work_trees(git, what)
    for tree in trees:
        tree.learn()
    survey = History(git, what).look()
    plan = Plan(what, survey, large=large, cut_short=_journal(home, what).exists())
    for tree in trees:
        prefix = "" if tree.root == home.root else f"{tree.root}/"
        plan.similar += [f"{prefix}{path}" for path in tree.similar()]
        plan.places += [_placed(place, prefix) for place in tree.look()]
        plan.unreachable += [f"{prefix}{path}" for path in tree.unreadable]
        plan.unreachable += [f"{prefix}{path}, a repository of its own" for path in _strangers(tree, trees)]
    plan.derived = Derived(home, what, mirrors).look()
    return plan


def _placed(place: Place, prefix: str) -> Place:
    return Place(prefix + place.path, place.line, place.excerpt, place.becomes) if prefix else place


def _work_trees(git: Git, what: Forgetting) -> list[WorkTree]:
    return [WorkTree(root, what) for root in (git.root, *git.work_trees())]


def _strangers(tree: WorkTree, trees: Sequence[WorkTree]) -> list[str]:
    ours = {os.path.realpath(one.root) for one in trees}
    return [path for path in tree.foreign if os.path.realpath(tree.root / path) not in ours]


# ---------------------------------------------------------------- may it be done now


def _refuse_repository(home: Home, git: Git) -> None:
    if not (home.root / ".git").is_dir():
        what = "is a linked work tree" if (home.root / ".git").exists() else "has no git repository"
        raise HomeError(f"{home.root} {what}. Forget in the home whose repository it is.")
    config = (git.common / "config").read_text(errors="replace").lower()
    if "reftable" in config or "partialclone" in config:
        raise GitError("This repository keeps its refs or objects in a way that tacit cannot rewrite yet.")


def make_ready(home: Home, git: Git) -> None:
    """Clear what a git of ours left when it was killed; Busy, when somebody else is at work on what would
    change. Expects the home's lock."""
    work = GitWork(home, git)
    if (since := work.died_since) is not None:
        for root in git.work_trees():
            clear_dead_locks(Home(root), Git(root), since=since)
    work.settle()
    for root in (git.root, *git.work_trees()):
        directory = Git(root).directory
        doing = Git(root).in_progress() or next(
            ("a bisect or a sequence" for name in _UNDER_WAY if (directory / name).exists()), None
        )
        if doing:
            raise Busy(f"In {root} {doing} is in progress. Finish or abort it, then try again.")
        lock = directory / "index.lock"
        if lock.exists() and not locks.is_dead(lock, root):
            raise Busy(f"A git command is at work in {root}. Try again when it is done.")


@contextmanager
def no_daemon(home: Home) -> Iterator[None]:
    """None runs, and none starts meanwhile: it holds in memory what is forgotten."""
    files.make_directories(home.private)
    fd = os.open(home.private / "daemon.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy("`tacit serve` is running for this home. End it first with: tacit stop") from None
        yield
    finally:
        os.close(fd)


@contextmanager
def _no_live_session(home: Home, plan: Plan) -> Iterator[None]:
    """Open transcripts that change are ours alone; nobody adds a message while their files are replaced."""
    with ExitStack() as held:
        held.enter_context(files.locked(home.private / "sessions.lock"))
        for path in {place.path for place in plan.places if is_transcript(place.path)}:
            file = home.root / path
            if not file.exists() or transcripts.is_sealed(file):
                continue
            fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            held.callback(os.close, fd)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Busy(
                    f"{path} is being written at this moment. End that session, then try again."
                ) from None
        _refuse_detached(home, plan.what)
        yield


def _refuse_detached(home: Home, what: Forgetting) -> None:
    """A session of the command line is open although nobody holds it; it would go on in a new transcript."""
    if not isinstance(what, Sessions):
        return
    for record in transcripts.records(home):
        is_open = record.path and not transcripts.is_sealed(home.root / record.path)
        if (
            record.detached
            and is_open
            and what.is_meant(record.opening.session_id, record.opening.session_key)
        ):
            name = record.opening.session_id
            raise Busy(f"Session {name} is still open. End it first with: tacit capture end {name}")


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
    what, work = plan.what, GitWork(home, git)
    derived = Derived(home, what, mirrors)
    journal = _journal(home, what)
    with _no_live_session(home, plan), work.writing({}):
        note = {"kind": what.kind, "began": now.isoformat(timespec="seconds")}
        files.replace(journal, json.dumps(note).encode())
        tell("writing the history anew")
        rewriting = Rewriting(git, what, plan.survey)
        done = rewriting.write()
        # Before the files: which lines of a log belong to a session is learned from its transcript.
        derived.clean()
        drop_index()
        tell("changing files")
        for tree in _work_trees(git, what):
            tree.change()
        move_refs(git, what, plan.survey, done)
        held = tell_indexes(plan.survey, done)
        rewrite_logs(git, what, done)
        rewrite_shallow(git, done)
        tidy_repository(git, what)
        for file in plan.large:
            file.unlink(missing_ok=True)
        tell("removing what nothing leads to any more")
        git.drop_unreachable()
    tell("looking for what is left")
    found = left([home.root, *git.work_trees()], git, what, derived)
    journal.unlink()
    files.fsync_directory(home.private)
    return sorted({*found, *(f"{file} (somebody holds it)" for file in held)})


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

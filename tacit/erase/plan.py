"""Forget something: check that nothing stands in the way, plan what to remove, remove it, then prove that
nothing is left.

What must stay true:
- nothing else is lost: everything else has the same bytes afterwards, in files and in every commit;
- each step can be repeated. After a kill, the same command with the same text finishes the work: the text is
  never written to disk, and the journal in `.tacit` has only a hash of it;
- new objects are on disk before anything refers to them; old ones are removed once they are unreachable.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from tacit.diagnostics import Problem
from tacit.erase.disk import Derived, ErasurePlace, WorkTree
from tacit.erase.erasure import Erasure, is_reserved, is_transcript
from tacit.erase.history import OBJECT_LABELS, HistorySearch, HistorySurvey, Spellings, record_spellings
from tacit.erase.rewrite import HistoryRewriter
from tacit.erase.switch import find_large_objects, switch_history
from tacit.erase.targets import SessionErasure
from tacit.errors import Busy, GitError, HomeError, UnsafePath
from tacit.git.attributes import find_blocking_filters
from tacit.git.objects import drop_unreachable_objects, read_all_objects
from tacit.git.repair import GitWork, clear_dead_locks, is_dead_lock
from tacit.git.repository import Git, blob_name
from tacit.git.work_trees import list_work_trees
from tacit.home import files
from tacit.home.layout import Home
from tacit.transcripts import writer

_IN_PROGRESS_FILES = ("BISECT_LOG", "sequencer")


@dataclass(slots=True)
class ErasurePlan:
    """What will be removed, and what is out of reach."""

    what: Erasure
    survey: HistorySurvey
    places: list[ErasurePlace] = field(default_factory=list)
    derived: Counter[str] = field(default_factory=Counter)
    large: list[Path] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)  # files of git, and names in .tacit
    similar: list[str] = field(
        default_factory=list
    )  # files with the same content in another form, which stays
    spellings: Spellings = field(default_factory=dict)  # other spellings, which stay, and where
    unreachable: list[str] = field(default_factory=list)
    encrypted: int = 0  # encrypted versions of files in git
    cut_short: bool = False  # an earlier run was interrupted

    @property
    def is_empty(self) -> bool:
        parts = (
            self.places,
            self.survey.commits,
            self.survey.refs,
            self.survey.staged,
            self.derived,
            self.large,
            self.beside,
        )
        return not any(parts) and not self.survey.loose and not self.cut_short


def make_plan(home: Home, git: Git, what: Erasure, mirrors: Sequence[Path] = ()) -> ErasurePlan:
    """Make a plan, without changing anything."""
    require_rewritable(home, git)
    large = find_large_objects(git, what)
    trees = _open_work_trees(git, what)
    for tree in trees:
        tree.learn()
    survey = HistorySearch(git, what).look()
    plan = ErasurePlan(what, survey, large=large, cut_short=_journal_path(home, what).exists())
    for tree in trees:
        prefix = "" if tree.root == home.root else f"{tree.root}/"
        plan.places += [replace(place, path=prefix + place.path) for place in tree.look()]
        plan.similar += [prefix + path for path in tree.similar]
        plan.unreachable += [prefix + path for path in tree.unreadable]
        plan.unreachable += [
            f"{prefix}{path}, a repository of its own" for path in _find_foreign(tree, trees)
        ]
    plan.encrypted = len(survey.locked | _find_filtered(home, git))
    plan.derived = Derived(home, what, mirrors, list_work_trees(git)).look()
    plan.spellings = survey.spellings
    for display_path, path, data in _iterate_files(home, git):
        _record_file_spellings(plan.spellings, what, display_path, data)
        if _is_in_internals(path, data, what):
            plan.beside.append(display_path)
    return plan


def _find_filtered(home: Home, git: Git) -> set[str]:
    """Objects of HEAD that differ from the disk because a filter made them."""
    committed = git.tree("HEAD") if git.head() else {}
    tree, names = files.Tree(home.root), set()
    for path in find_blocking_filters(git, committed):
        with suppress(OSError, UnsafePath):
            if blob_name(tree.read(path), git.algorithm) != committed[path].name:
                names.add(committed[path].name)
    return names


def _open_work_trees(git: Git, erasure: Erasure) -> list[WorkTree]:
    return [WorkTree(root, erasure) for root in (git.root, *list_work_trees(git))]


def _find_foreign(tree: WorkTree, trees: Sequence[WorkTree]) -> list[str]:
    own_roots = {os.path.realpath(work_tree.root) for work_tree in trees}
    return [path for path in tree.foreign if os.path.realpath(tree.root / path) not in own_roots]


# ---------------------------------------------------------------- carrying it out


def carry_out(
    home: Home,
    git: Git,
    plan: ErasurePlan,
    *,
    now: datetime,
    drop_index: Callable[[], None],
    mirrors: Sequence[Path] = (),
    tell: Callable[[str], None] = lambda step: None,
) -> list[str]:
    """Returns the places that still contain it: none, unless something was out of reach. The caller holds the
    home's lock, has called `make_ready` before planning, and keeps the daemon from running."""
    erasure, paths = plan.what, [place.path for place in plan.places]
    derived = Derived(home, erasure, mirrors, list_work_trees(git))
    journal = _journal_path(home, erasure)
    with hold_sessions(home, erasure, paths), GitWork(home, git).writing({}):
        entry = {"kind": erasure.kind, "began": now.isoformat(timespec="seconds")}
        files.replace(journal, json.dumps(entry).encode())
        tell("rewriting the history")
        rewritten = HistoryRewriter(git, erasure, plan.survey).write()
        # Before the files: the transcript tells which log lines belong to a session.
        derived.clean()
        drop_index()
        derived.drop_indexes()
        tell("changing files")
        for tree in _open_work_trees(git, erasure):
            tree.change()
        held_indexes = switch_history(git, erasure, plan.survey, rewritten, again=plan.cut_short)
        for file in plan.large:
            file.unlink(missing_ok=True)
        tell("removing unreachable objects")
        drop_unreachable_objects(git)
    tell("searching for what is left")
    plan.spellings = {}
    remaining = {
        *_find_remaining(home, git, erasure, derived, plan.spellings),
        *(f"{file} (another process holds it)" for file in held_indexes),
    }
    journal.unlink()
    files.fsync_directory(home.private)
    return sorted(remaining)


# ---------------------------------------------------------------- proof that it is gone


def _find_remaining(
    home: Home, git: Git, erasure: Erasure, derived: Derived, spellings: Spellings
) -> Iterator[str]:
    """Searches the bytes of every file, and the content of every git object. Also fills `spellings`."""
    yield from _find_remaining_files(home, git, erasure, spellings)
    if erasure.may_change(""):
        for name, kind, data in read_all_objects(git):
            record_spellings(spellings, erasure, data, OBJECT_LABELS[kind])
            if erasure.holds(data):
                yield f".git ({kind} {name[:10]})"
    else:
        survey = HistorySearch(git, erasure).look()
        yield from (f"{path} (in the history)" for path, _ in survey.files)
        _merge_spellings(spellings, survey.spellings)
    yield from (f".tacit ({kind})" for kind in derived.look())


def _find_remaining_files(home: Home, git: Git, erasure: Erasure, spellings: Spellings) -> Iterator[str]:
    for display_path, path, data in _iterate_files(home, git):
        _record_file_spellings(spellings, erasure, display_path, data)
        if not erasure.may_change(path):
            continue
        is_named = erasure.is_named(path.rpartition("/")[2])
        if is_named and is_reserved(path):
            yield f"{display_path} ({'git' if path.startswith('.git') else 'tacit'} needs this name)"
        elif path == ".git" and erasure.holds(data):
            yield f"{display_path} (the path of this home has it: move the home, then git worktree repair)"
        elif is_reserved(path) and erasure.holds(data):
            yield f"{display_path} (it is needed, and so may be the words in it: edit it yourself)"
        elif is_named or erasure.holds(data) or (is_transcript(path) and erasure.path(path) != path):
            yield display_path


def _is_in_internals(path: str, data: bytes, erasure: Erasure) -> bool:
    """Whether it is in a file of git, or in the name of an internal file."""
    if not path.startswith((".git/", ".tacit/")) or not erasure.may_change(""):
        return False
    return erasure.is_named(path.rpartition("/")[2]) or (path.startswith(".git/") and erasure.holds(data))


def _record_file_spellings(spellings: Spellings, erasure: Erasure, display_path: str, data: bytes) -> None:
    record_spellings(spellings, erasure, os.fsencode(display_path.rpartition("/")[2]), display_path)
    record_spellings(spellings, erasure, data, display_path)


def _iterate_files(home: Home, git: Git) -> Iterator[tuple[str, str, bytes]]:
    """All files and folders: display path, path, content. For git's compressed objects the content is empty.
    Work trees inside the home are part of it."""
    outside = [root for root in list_work_trees(git) if not root.is_relative_to(home.root)]
    for root in (home.root, *outside):
        prefix = "" if root == home.root else f"{root}/"
        for directory, folders, names in os.walk(root):
            folder = directory[len(str(root)) + 1 :]
            for name in sorted([*folders, *names]):
                path = f"{folder}/{name}" if folder else name
                is_object = path.startswith(".git/objects/")
                yield prefix + path, path, b"" if is_object else _read_content(os.path.join(directory, name))


def _read_content(file: str) -> bytes:
    try:
        kind = os.lstat(file).st_mode
        if stat.S_ISLNK(kind):
            return os.fsencode(os.readlink(file))
        if not stat.S_ISREG(kind):
            return b""
        with open(file, "rb") as stream:
            return stream.read()
    except OSError:
        return b""


def _merge_spellings(spellings: Spellings, others: Spellings) -> None:
    for spelling, places in others.items():
        spellings.setdefault(spelling, Counter()).update(places)


# ---------------------------------------------------------------- interrupted runs


def _journal_path(home: Home, erasure: Erasure) -> Path:
    name = hashlib.sha256(erasure.secret.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return home.private / f"forget-{name}.json"


def find_unfinished(home: Home, besides: Erasure | None = None) -> list[Problem]:
    """Problems for runs that a kill interrupted. Only the user can give the text again."""
    problems = []
    own_journal = None if besides is None else _journal_path(home, besides)
    for file in sorted(home.private.glob("forget-*.json")):
        if file == own_journal:
            continue
        try:
            entry = json.loads(file.read_bytes())
            began, kind = str(entry["began"]), str(entry["kind"])
        except (OSError, ValueError, KeyError, TypeError):
            began, kind = "", "passage"
        option = "" if kind == "passage" else f"--{kind} "
        advice = f"Run the same command again: tacit forget {option}… --yes. Or, to let it be, delete {file}."
        message = f"`tacit forget` of a {kind} was cut short{f' ({began})' if began else ''}."
        problems.append(Problem(f".tacit/{file.name}", message, advice))
    return problems


def require_rewritable(home: Home, git: Git) -> None:
    if not (home.root / ".git").is_dir():
        problem = "is a linked work tree" if (home.root / ".git").exists() else "has no git repository"
        raise HomeError(f"{home.root} {problem}. Forget in the home whose repository it is.")
    config = (git.common / "config").read_text(errors="replace").lower()
    if "reftable" in config or "partialclone" in config:
        raise GitError("This repository keeps its refs or objects in a way that tacit cannot rewrite yet.")


def make_ready(home: Home, git: Git) -> None:
    """Clear the leftovers of our git after a kill; raise Busy if another process works on files that would
    change. The caller holds the home's lock."""
    work = GitWork(home, git)
    if (since := work.died_since) is not None:
        for root in list_work_trees(git):
            clear_dead_locks(Home(root), Git(root), since=since)
    work.settle()
    for root in (git.root, *list_work_trees(git)):
        directory = Git(root).directory
        operation = Git(root).in_progress() or next(
            ("a bisect or a sequence" for name in _IN_PROGRESS_FILES if (directory / name).exists()), None
        )
        if operation:
            raise Busy(f"In {root} {operation} is in progress. Finish or abort it, then try again.")
        lock = directory / "index.lock"
        if lock.exists() and not is_dead_lock(lock, root):
            raise Busy(f"A git command is at work in {root}. Try again when it is done.")


@contextmanager
def hold_daemon_lock(home: Home) -> Iterator[None]:
    """Make sure that no daemon runs or starts in the meantime: it has forgotten content in memory."""
    files.make_directories(home.private)
    message = "`tacit serve` is running for this home. End it first with: tacit stop"
    with _hold_exclusively(str(home.private / "daemon.lock"), os.O_RDWR | os.O_CREAT, message):
        yield


@contextmanager
def hold_sessions(home: Home, what: Erasure, paths: Iterable[str]) -> Iterator[None]:
    """Lock the open transcripts among the paths, so that no message is added while they are replaced."""
    with ExitStack() as stack:
        stack.enter_context(files.hold_lock(home.private / "sessions.lock"))
        for path in sorted(set(filter(is_transcript, paths))):
            file = home.root / path
            if file.exists() and not writer.is_sealed(file):
                message = f"{path} is being written at this moment. End that session, then try again."
                stack.enter_context(_hold_exclusively(str(file), os.O_RDONLY, message))
        _refuse_detached(home, what)
        yield


@contextmanager
def _hold_exclusively(file: str, flags: int, message: str) -> Iterator[None]:
    fd = os.open(file, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(message) from None
        yield
    finally:
        os.close(fd)


def _refuse_detached(home: Home, erasure: Erasure) -> None:
    """Command-line sessions are open without a lock; they would continue in a new transcript."""
    if not isinstance(erasure, SessionErasure):
        return
    for record in writer.list_states(home):
        name, key = record.opening.session_id, record.opening.session_key
        is_open = record.path and not writer.is_sealed(home.root / record.path)
        if record.detached and is_open and erasure.is_meant(name, key):
            raise Busy(f"Session {name} is still open. End it first with: tacit capture end {name}")

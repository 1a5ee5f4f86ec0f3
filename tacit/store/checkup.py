"""A look at everything that can be wrong with a home. Reads only: nothing is created, locked or mended."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from tacit.config import Config, without_secret
from tacit.config.keys import KEYS, flatten
from tacit.errors import StoreError, TacitError
from tacit.model.changes import is_trusted
from tacit.model.problems import Problem
from tacit.store import files, hooks, overview, repair
from tacit.store.committer import loose_transcripts
from tacit.store.forgetting.forget import unfinished
from tacit.store.generated import marked_lines, transcript_at
from tacit.store.git import Git
from tacit.store.gitwork import GitWork
from tacit.store.home import NOTE_FOLDERS, Home
from tacit.store.setup import FOLDERS
from tacit.store.verify import verify
from tacit.store.workspaces import Seen, Workspaces
from tacit.text import notes
from tacit.text.workspaces import WORKSPACE, path_in

_LEAST_FREE = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    found: str
    problems: tuple[Problem, ...] = ()


def checkup(home: Home, config: Config, tick: Callable[[int, int], None]) -> Iterator[Check]:
    """`tick(done, all)` while transcripts are proved, which can take a second."""
    looks: dict[str, Callable[[Home, Config], Check]] = {
        "layout": _layout,
        "rights": _rights,
        "disk": _disk,
        "repository": _repository,
        "hooks": _hooks,
        "sessions": _sessions,
        "transcripts": lambda home, _: _proof(home, tick),
        "notes": _notes,
        "origins": _origins,
        "MEMORY.md": _memory,
        "workspaces": _workspaces,
        "network": _reach,
    }
    for name, look in looks.items():
        try:
            yield look(home, config)
        except TacitError as error:  # such as: there is no git on this machine
            yield Check(name, "not looked at", (Problem(name, str(error)),))
        except OSError as error:
            what = f"{error.strerror or error}: {error.filename or ''}".rstrip(": ")
            yield Check(name, "not looked at", (Problem(name, f"{what}."),))


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


_ALL = (*NOTE_FOLDERS, "raw", ".git", ".tacit")
_SHOWN = 3


def _rights(home: Home, _config: Config) -> Check:
    """Whether this user may do with the files what tacit does. A run as root leaves some that nobody else
    may read."""
    owner = home.root.stat().st_uid
    shut, foreign = [], []
    for path in _everything(str(home.root)):
        uid = _owner(path)
        if uid is None:
            shut.append(path)
        elif uid != owner:
            foreign.append(path)
    place = shlex.quote(str(home.root))
    mend = f"Give all of it back with: sudo chown -R {_name(owner)} {place}"
    own = f"Run: chmod -R u+rX {place}" if owner == os.geteuid() and not foreign else mend
    problems = [
        *_some(shut, home, "cannot be used by this user.", own, "error"),
        *_some(foreign, home, f"does not belong to {_name(owner)}, who owns the home.", mend, "warning"),
    ]
    found = f"wrong for {len(shut) + len(foreign)} of the files" if problems else "all files can be used"
    return Check("rights", found, tuple(problems))


def _everything(root: str) -> Iterator[str]:
    for top in _ALL:
        if os.path.lexists(f"{root}/{top}"):
            yield f"{root}/{top}"
        for here, folders, names in os.walk(f"{root}/{top}"):
            yield from (f"{here}/{name}" for name in (*folders, *names))


def _owner(path: str) -> int | None:
    """Who owns a file, or None when this user cannot do with it what tacit does."""
    try:
        info = os.lstat(path)
    except FileNotFoundError:  # gone while we were looking
        return os.geteuid()
    except OSError:
        return None
    if stat.S_ISDIR(info.st_mode):
        needed = os.R_OK | os.W_OK | os.X_OK
    elif stat.S_ISREG(info.st_mode):
        needed = os.R_OK
    else:  # links and the like are named by others
        return info.st_uid
    return info.st_uid if os.access(path, needed) else None


def _some(paths: list[str], home: Home, what: str, todo: str, level: str) -> Iterator[Problem]:
    """A problem for each of the first few; the rest is counted."""
    for path in sorted(paths)[:_SHOWN]:
        yield Problem(os.path.relpath(path, home.root), what, todo, level=level)
    if len(paths) > _SHOWN:
        yield Problem(str(home.root), f"{len(paths) - _SHOWN} more like this.", level=level)


def _name(owner: int) -> str:
    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        return str(owner)


def _disk(home: Home, _config: Config) -> Check:
    free = shutil.disk_usage(home.root).free
    problems = []
    if free < _LEAST_FREE:
        what = f"only {free // 2**20} MB are free; capture stops when none are."
        problems.append(Problem(str(home.root), what, "Free some space."))
    if not os.access(home.root, os.W_OK):
        what = "cannot be written: reading works, keeping conversations does not."
        problems.append(Problem(str(home.root), what, "Make it writable."))
    shown = f"{free / 2**30:.1f} GB" if free >= 2**30 else f"{free // 2**20} MB"
    return Check("disk", f"{shown} free", tuple(problems))


def _repository(home: Home, _config: Config) -> Check:
    git = Git(home.root)
    problems = [
        finding.problem for finding in repair.findings(home, git, ours_since=GitWork(home, git).died_since)
    ]
    if (what := git.in_progress()) is not None:
        problems.append(Problem(".git", f"{what} is in progress; commits wait for it.", level="warning"))
    elif (home.root / ".git").exists() and git.branch() is None:
        todo = "Go back with: git switch main"
        problems.append(Problem(".git", "HEAD is detached; commits wait.", todo, level="warning"))
    problems += unfinished(home)
    version = git.attempt("version").stdout.decode().strip().removeprefix("git version ")
    return Check("repository", f"git {version}, on {git.branch() or 'no branch'}", tuple(problems))


def _hooks(home: Home, _config: Config) -> Check:
    git = Git(home.root)
    missing = [name for name, there in hooks.installed(git).items() if not there]
    todo = f"Run: tacit init {home.root}"
    problems = [
        Problem(f".git/hooks/{name}", "does not call tacit.", todo, level="warning") for name in missing
    ]
    elsewhere = git.hooks_elsewhere()
    if elsewhere.rstrip("/") not in ("", ".git/hooks"):
        what = f"are not run: your core.hooksPath is {elsewhere}."
        todo = f"For this home: git -C {home.root} config core.hooksPath .git/hooks"
        problems.append(Problem(".git/hooks", what, todo, level="warning"))
    found = "not all installed" if missing else "not run" if len(problems) > len(missing) else "installed"
    return Check("hooks", found, tuple(problems))


def _sessions(home: Home, _config: Config) -> Check:
    seen = overview.look(home)
    todo = "Any tacit command that writes seals it; or run: tacit run commit"
    problems = [Problem(path, "was left open by a crash.", todo, level="warning") for path in seen.left_open]
    todo = "Run: tacit run commit"
    problems += [
        Problem(path, "is sealed but not committed.", todo, level="warning") for path in seen.waiting
    ]
    with suppress(TacitError, OSError):  # what is broken or cannot be read is told of by its own check
        problems += loose_transcripts(home, Git(home.root)).problems
    return Check("sessions", f"{len(seen.open)} open", tuple(problems))


def _proof(home: Home, tick: Callable[[int, int], None]) -> Check:
    checked = verify(home, Git(home.root), tick)
    bad = [Problem(item.path, f"is {item.state}. {item.detail}") for item in checked if not item.good]
    count = f"{len(checked)} transcript" if len(checked) == 1 else f"{len(checked)} transcripts"
    return Check("transcripts", f"{count}, {len(bad) or 'none'} touched or missing", tuple(bad))


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


def _origins(home: Home, _config: Config) -> Check:
    """Lines in notes that are somebody else's word, and those whose words cannot be looked up any more."""
    count, foreign, lost = 0, [], []
    for one in marked_lines(home):
        if one.path.startswith("drafts/"):
            continue
        count += 1
        if not is_trusted(one.mark.trust) and not one.is_edited:
            what = _FOREIGN[one.mark.trust]
            foreign.append(Problem(one.path, what, _ASK, one.number, level="warning"))
        if any(transcript_at(home, path) is None for path in one.mark.transcripts):
            what = "was made from a transcript that is gone."
            lost.append(Problem(one.path, what, _LOOK, one.number, level="warning"))
    problems = [*_first(foreign), *_first(lost)]
    return Check("origins", f"{count} lines by tacit", tuple(problems))


_FOREIGN = {
    "other": "is the word of somebody else than you.",
    "tool": "is what a tool said.",
    "web": "is what a stranger wrote, as a tool read it.",
}
_ASK = "See where it is from: tacit why-known TEXT; to remove all from there: tacit purge --origin ORIGIN"
_LOOK = "See: tacit verify"


def _first(problems: list[Problem]) -> Iterator[Problem]:
    yield from problems[:_SHOWN]
    if len(problems) > _SHOWN:
        yield Problem("notes", f"{len(problems) - _SHOWN} more lines like this.", level="warning")


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


def _workspaces(home: Home, config: Config) -> Check:
    workspaces = Workspaces(home, config.workspaces)
    seen = workspaces.look()
    problems = [problem for one in seen for problem in _workspace_problems(one)]
    for path in workspaces.stamps({}):
        problems.extend(_note_problems(lambda path=path: workspaces.read(path), path))  # type: ignore[misc]
    if (home.root / WORKSPACE).exists():
        what = "is never read: paths that begin so are those of adopted workspaces."
        problems.append(Problem(WORKSPACE, what, "Give it another name.", level="warning"))
    found = "; ".join(f"{one.workspace.name}, {one.trouble or f'{one.files} files'}" for one in seen)
    return Check("workspaces", found or "none", tuple(problems))


def _workspace_problems(seen: Seen) -> Iterator[Problem]:
    one = seen.workspace
    if seen.missing:
        what = f"{seen.trouble}: what was read of the workspace {one.name} before is still found."
        todo = "Bring it back; or take it out of 'workspaces', then its passages go."
        yield Problem(one.path, what, todo, level="warning")
    elif seen.trouble:
        what = f"{seen.trouble}, so it is not read as a workspace."
        yield Problem(one.path, what, "Take it out of 'workspaces'.", level="warning")
    for inside, why in seen.left_out[:_SHOWN]:
        yield Problem(path_in(one.name, inside), f"is left out: {why}.", level="warning")
    if len(seen.left_out) > _SHOWN:
        more = f"{len(seen.left_out) - _SHOWN} more files are left out."
        yield Problem(path_in(one.name, ""), more, level="warning")


_BY_NETWORK = ("openai", "anthropic", "gemini", "http", "https")


def _models_by_network(config: Config) -> Iterator[tuple[str, str]]:
    values = flatten(config)
    for name in (name for name, key in KEYS.items() if key.rule.kind == "model"):
        model = str(values[name])
        if model.partition(":")[0] in _BY_NETWORK:
            yield name, model


def _reach(_home: Home, config: Config) -> Check:
    """What leaves this machine, said plainly."""
    out = []
    if config.git.auto_push and config.git.remote:
        out.append(f"commits are pushed to {without_secret(config.git.remote)}")
    out += [f"text is sent to {model} ({setting})" for setting, model in _models_by_network(config)]
    return Check("network", "; ".join(out) or "nothing leaves this machine")

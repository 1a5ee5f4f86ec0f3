"""Check everything that can be wrong with a home. Read-only: nothing is created, locked or repaired."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress

from tacit.config import Config, mask_secret
from tacit.config.schema import KEYS, flatten
from tacit.diagnostics import CheckResult, Problem
from tacit.erase.plan import find_unfinished
from tacit.errors import MergeConflict, StoreError, TacitError
from tacit.git import hooks, repair
from tacit.git.attributes import find_blocking_filters
from tacit.git.conflicts import LEFT_OUT_MESSAGE, find_home_conflicts
from tacit.git.index import list_files, list_not_checked_out
from tacit.git.note_committer import make_filter_problem
from tacit.git.process import read_user_setting
from tacit.git.repair import GitWork
from tacit.git.repository import Blob, Git, blob_name
from tacit.health import status
from tacit.home import files
from tacit.home.generated_lines import locate_transcript, read_generated
from tacit.home.layout import FOLDERS, NOTE_FOLDERS, Home
from tacit.home.workspace_files import WORKSPACE, workspace_path
from tacit.markdown import notes
from tacit.markdown.comment import is_trusted
from tacit.transcripts import spool
from tacit.transcripts.session_commits import find_loose_transcripts
from tacit.transcripts.verify import verify
from tacit.workspaces.folders import Workspaces, WorkspaceStatus

_MIN_FREE_BYTES = 100 * 1024 * 1024


def run_checks(home: Home, config: Config, tick: Callable[[int, int], None]) -> Iterator[CheckResult]:
    """`tick(done, all)` reports progress while transcripts are verified, which can take a second."""
    checks: dict[str, Callable[[Home, Config], CheckResult]] = {
        "layout": _check_layout,
        "rights": _check_permissions,
        "disk": _check_disk,
        "repository": _check_repository,
        "filters": _check_filters,
        "hooks": _check_hooks,
        "sessions": _check_sessions,
        "spool": _check_spool,
        "transcripts": lambda home, _: _check_transcripts(home, tick),
        "conflicts": _check_conflicts,
        "notes": _check_notes,
        "origins": _check_origins,
        "MEMORY.md": _check_memory,
        "workspaces": _check_workspaces,
        "network": _check_network,
    }
    for name, check in checks.items():
        try:
            yield check(home, config)
        except TacitError as error:  # for example, git is not installed
            yield CheckResult(name, "not looked at", (Problem(name, str(error)),))
        except OSError as error:
            message = f"{error.strerror or error}: {error.filename or ''}".rstrip(": ")
            yield CheckResult(name, "not looked at", (Problem(name, f"{message}."),))


def _check_layout(home: Home, _config: Config) -> CheckResult:
    missing = [folder for folder in FOLDERS if not (home.root / folder).is_dir()]
    problems = []
    if missing:  # only a warning: git keeps no empty folders, so a clone lacks them
        message = f"folders are missing: {', '.join(missing)}."
        problems.append(Problem(str(home.root), message, f"Run: tacit init {home.root}", level="warning"))
    return CheckResult(
        "layout", "complete" if not missing else f"{len(missing)} folders missing", tuple(problems)
    )


_CHECKED_FOLDERS = (*NOTE_FOLDERS, "raw", ".git", ".tacit")
_MAX_SHOWN = 3


def _check_permissions(home: Home, _config: Config) -> CheckResult:
    """Whether this user has the permissions that tacit needs. A run as root leaves files that no other user
    may read."""
    owner = home.root.stat().st_uid
    unusable, foreign = [], []
    for path in _walk_all(str(home.root)):
        uid = _find_owner(path)
        if uid is None:
            unusable.append(path)
        elif uid != owner:
            foreign.append(path)
    quoted_root = shlex.quote(str(home.root))
    chown_advice = f"Give all of it back with: sudo chown -R {_owner_name(owner)} {quoted_root}"
    advice = f"Run: chmod -R u+rX {quoted_root}" if owner == os.geteuid() and not foreign else chown_advice
    problems = [
        *_path_problems(unusable, home, "cannot be used by this user.", advice, "error"),
        *_path_problems(
            foreign,
            home,
            f"does not belong to {_owner_name(owner)}, who owns the home.",
            chown_advice,
            "warning",
        ),
    ]
    summary = (
        f"wrong for {len(unusable) + len(foreign)} of the files" if problems else "all files can be used"
    )
    return CheckResult("rights", summary, tuple(problems))


def _walk_all(root: str) -> Iterator[str]:
    for top in _CHECKED_FOLDERS:
        if os.path.lexists(f"{root}/{top}"):
            yield f"{root}/{top}"
        for folder, folders, names in os.walk(f"{root}/{top}"):
            yield from (f"{folder}/{name}" for name in (*folders, *names))


def _find_owner(path: str) -> int | None:
    """The owner of a file, or None if this user lacks the permissions that tacit needs."""
    try:
        info = os.lstat(path)
    except FileNotFoundError:  # removed in the meantime
        return os.geteuid()
    except OSError:
        return None
    if stat.S_ISDIR(info.st_mode):
        access = os.R_OK | os.W_OK | os.X_OK
    elif stat.S_ISREG(info.st_mode):
        access = os.R_OK
    else:  # other checks report links and the like
        return info.st_uid
    return info.st_uid if os.access(path, access) else None


def _path_problems(paths: list[str], home: Home, message: str, advice: str, level: str) -> Iterator[Problem]:
    """A problem for each of the first few paths, and a count of the rest."""
    for path in sorted(paths)[:_MAX_SHOWN]:
        yield Problem(os.path.relpath(path, home.root), message, advice, level=level)
    if len(paths) > _MAX_SHOWN:
        yield Problem(str(home.root), f"{len(paths) - _MAX_SHOWN} more like this.", level=level)


def _owner_name(owner: int) -> str:
    try:
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        return str(owner)


def _check_spool(home: Home, _config: Config) -> CheckResult:
    """Events that hosts left in the spool, and those that were quarantined."""
    waiting, quarantined = spool.count_waiting(home.root), spool.report_quarantined(home.root)
    summary = "empty" if not waiting else f"{waiting} events wait for the daemon"
    problems = (
        (Problem(f"{spool.FOLDER}/{spool.QUARANTINE}", quarantined, level="warning"),) if quarantined else ()
    )
    return CheckResult("spool", summary, problems)


def _check_disk(home: Home, _config: Config) -> CheckResult:
    free = shutil.disk_usage(home.root).free
    problems = []
    if free < _MIN_FREE_BYTES:
        message = f"only {free // 2**20} MB are free; capture stops when none are."
        problems.append(Problem(str(home.root), message, "Free some space."))
    if not os.access(home.root, os.W_OK):
        message = "cannot be written: reading works, keeping conversations does not."
        problems.append(Problem(str(home.root), message, "Make it writable."))
    size = f"{free / 2**30:.1f} GB" if free >= 2**30 else f"{free // 2**20} MB"
    return CheckResult("disk", f"{size} free", tuple(problems))


def _check_repository(home: Home, _config: Config) -> CheckResult:
    git = Git(home.root)
    problems = [
        finding.problem for finding in repair.find_damage(home, git, ours_since=GitWork(home, git).died_since)
    ]
    if (operation := git.in_progress()) is not None:
        problems.append(Problem(".git", f"{operation} is in progress; commits wait for it.", level="warning"))
    elif (home.root / ".git").exists() and git.branch() is None:
        advice = "Go back with: git switch main"
        problems.append(Problem(".git", "HEAD is detached; commits wait.", advice, level="warning"))
    problems += find_unfinished(home)
    version = git.attempt("version").stdout.decode().strip().removeprefix("git version ")
    return CheckResult("repository", f"git {version}, on {git.branch() or 'no branch'}", tuple(problems))


def _check_filters(home: Home, _config: Config) -> CheckResult:
    """Paths that only the user's own git can commit, and those that are in git as plain text anyway."""
    git = Git(home.root)
    committed = git.tree("HEAD") if git.head() else {}
    filtered = find_blocking_filters(git, dict.fromkeys((*committed, *list_files(git))))
    plain_paths = [
        path for path in filtered if path in committed and _is_plain_text(home, git, path, committed[path])
    ]
    advice = "Where it is to be secret, take it out of the history as well: tacit forget --help"
    plain_problems = [
        Problem(
            path,
            f"has the git filter {filtered[path]}, but is in git as plain text.",
            advice,
            level="warning",
        )
        for path in plain_paths
    ]
    problems = [
        make_filter_problem(path, name) for path, name in sorted(filtered.items()) if path not in plain_paths
    ]
    summary = f"{len(filtered)} paths have a git filter" if filtered else "none"
    return CheckResult(
        "filters",
        summary,
        (*_first_problems(plain_problems, "paths", 20), *_first_problems(problems, "paths", 20)),
    )


def _is_plain_text(home: Home, git: Git, path: str, committed: Blob) -> bool:
    """Whether git has the same bytes as the disk, and they are not encrypted."""
    with suppress(TacitError, OSError):
        return blob_name(files.Tree(home.root).read(path), git.algorithm) == committed.name
    return False


def _check_hooks(home: Home, _config: Config) -> CheckResult:
    git = Git(home.root)
    missing = [name for name, is_installed in hooks.check_installed(git).items() if not is_installed]
    advice = f"Run: tacit init {home.root}"
    problems = [
        Problem(f".git/hooks/{name}", "does not call tacit.", advice, level="warning") for name in missing
    ]
    elsewhere = read_user_setting(git.root, "core.hooksPath")  # as the user's own git sees it
    if elsewhere.rstrip("/") not in ("", ".git/hooks"):
        message = f"are not run: your core.hooksPath is {elsewhere}."
        advice = f"For this home: git -C {home.root} config core.hooksPath .git/hooks"
        problems.append(Problem(".git/hooks", message, advice, level="warning"))
    summary = "not all installed" if missing else "not run" if len(problems) > len(missing) else "installed"
    return CheckResult("hooks", summary, tuple(problems))


def _check_sessions(home: Home, _config: Config) -> CheckResult:
    overview = status.inspect_home(home)
    advice = "Any tacit command that writes seals it; or run: tacit run commit"
    problems = [
        Problem(path, "was left open by a crash.", advice, level="warning") for path in overview.left_open
    ]
    advice = "Run: tacit run commit"
    problems += [
        Problem(path, "is sealed but not committed.", advice, level="warning") for path in overview.waiting
    ]
    with suppress(TacitError, OSError):  # other checks report what is broken or unreadable
        problems += find_loose_transcripts(home, Git(home.root)).problems
    return CheckResult("sessions", f"{len(overview.open)} open", tuple(problems))


def _check_transcripts(home: Home, tick: Callable[[int, int], None]) -> CheckResult:
    results = verify(home, Git(home.root), tick)
    problems = [
        Problem(result.path, f"is {result.state}. {result.detail}") for result in results if not result.good
    ]
    count = f"{len(results)} transcript" if len(results) == 1 else f"{len(results)} transcripts"
    return CheckResult(
        "transcripts", f"{count}, {len(problems) or 'none'} touched or missing", tuple(problems)
    )


def _check_conflicts(home: Home, config: Config) -> CheckResult:
    """Files with unresolved merge conflicts."""
    problems = [*find_home_conflicts(home)]
    workspaces = Workspaces(home, config.workspaces)
    for path in workspaces.stamps({}):
        try:
            workspaces.read(path)
        except MergeConflict as error:
            problems.append(Problem(path, LEFT_OUT_MESSAGE.format(error.why), error.todo))
        except (StoreError, OSError):  # reported by the check of workspaces
            continue
    return CheckResult(
        "conflicts", _format_count(len(problems), "file") if problems else "none", tuple(problems)
    )


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _check_notes(home: Home, _config: Config) -> CheckResult:
    tree = files.Tree(home.root)
    problems: list[Problem] = []
    count = 0
    for path in tree.files("knowledge", "topics", "archive", "drafts"):
        if path.endswith(".md"):
            count += 1
            problems.extend(_find_note_problems(lambda path=path: tree.read(path), path))  # type: ignore[misc]
    return CheckResult("notes", f"{count} notes", tuple(problems))


def _find_note_problems(read: Callable[[], bytes], path: str) -> tuple[Problem, ...]:
    try:
        data = read()
        problems = notes.parse(notes.decode(data), path).problems
        return problems if _is_utf8(data) else (*problems, Problem(path, *_NOT_UTF8_PROBLEM, level="warning"))
    except MergeConflict:  # has its own check
        return ()
    except (StoreError, OSError) as error:
        return (Problem(path, str(error), level="warning"),)


_NOT_UTF8_PROBLEM = ("has bytes that are not UTF-8; they are kept but read as nonsense.", "Save it as UTF-8.")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _check_origins(home: Home, _config: Config) -> CheckResult:
    """Lines in notes that come from someone other than the owner, and lines whose transcript is missing."""
    count, foreign, untraceable = 0, [], []
    absent = list_not_checked_out(Git(home.root))
    for line in read_generated(home):
        if line.path.startswith("drafts/"):
            continue
        count += 1
        if not is_trusted(line.mark.trust) and not line.is_edited:
            message = _UNTRUSTED_MESSAGES[line.mark.trust]
            foreign.append(Problem(line.path, message, _ORIGIN_ADVICE, line.number, level="warning"))
        if any(locate_transcript(home, path) is None for path in line.mark.transcripts if path not in absent):
            message = "was made from a transcript that is gone."
            untraceable.append(Problem(line.path, message, _VERIFY_ADVICE, line.number, level="warning"))
    problems = [*_first_problems(foreign), *_first_problems(untraceable)]
    return CheckResult("origins", f"{count} lines by tacit", tuple(problems))


_UNTRUSTED_MESSAGES = {
    "other": "comes from another person.",
    "tool": "is what a tool said.",
    "web": "is what a stranger wrote, as a tool read it.",
}
_ORIGIN_ADVICE = (
    "See where it is from: tacit why-known TEXT; to remove all from there: tacit purge --origin ORIGIN"
)
_VERIFY_ADVICE = "See: tacit verify"


def _first_problems(
    problems: list[Problem], noun: str = "lines", max_problems: int = _MAX_SHOWN
) -> Iterator[Problem]:
    yield from problems[:max_problems]
    if len(problems) > max_problems:
        yield Problem("notes", f"{len(problems) - max_problems} more {noun} like this.", level="warning")


def _check_memory(home: Home, config: Config) -> CheckResult:
    path = "knowledge/memory/MEMORY.md"
    file = home.root / path
    if not file.is_file():
        return CheckResult("MEMORY.md", "none")
    lifecycle = config.lifecycle
    data = file.read_bytes()
    limits = (lifecycle.memory_warn_lines, lifecycle.memory_line_cap, lifecycle.memory_block_lines)
    problems = hooks.check_memory_size(data, path, *limits)
    return CheckResult(
        "MEMORY.md", f"{hooks.count_lines(data)} lines of {lifecycle.memory_line_cap}", tuple(problems)
    )


def _check_workspaces(home: Home, config: Config) -> CheckResult:
    workspaces = Workspaces(home, config.workspaces)
    statuses = workspaces.look()
    problems = [problem for status in statuses for problem in _find_workspace_problems(status)]
    for path in workspaces.stamps({}):
        problems.extend(_find_note_problems(lambda path=path: workspaces.read(path), path))  # type: ignore[misc]
    if (home.root / WORKSPACE).exists():
        message = "is never read: such paths belong to adopted workspaces."
        problems.append(Problem(WORKSPACE, message, "Give it another name.", level="warning"))
    summary = "; ".join(
        f"{status.workspace.name}, {status.trouble or f'{status.files} files'}" for status in statuses
    )
    return CheckResult("workspaces", summary or "none", tuple(problems))


def _find_workspace_problems(status: WorkspaceStatus) -> Iterator[Problem]:
    workspace = status.workspace
    if status.missing:
        message = f"{status.trouble}: what was read of the workspace {workspace.name} before is still found."
        advice = "Bring it back, or remove it from 'workspaces' to drop what was indexed."
        yield Problem(workspace.path, message, advice, level="warning")
    elif status.trouble:
        message = f"{status.trouble}, so it is not read as a workspace."
        yield Problem(workspace.path, message, "Take it out of 'workspaces'.", level="warning")
    for path, reason in status.left_out[:_MAX_SHOWN]:
        yield Problem(workspace_path(workspace.name, path), f"is left out: {reason}.", level="warning")
    if len(status.left_out) > _MAX_SHOWN:
        message = f"{len(status.left_out) - _MAX_SHOWN} more files are left out."
        yield Problem(workspace_path(workspace.name, ""), message, level="warning")


_NETWORK_PROVIDERS = ("openai", "anthropic", "gemini", "http", "https")


def _find_network_models(config: Config) -> Iterator[tuple[str, str]]:
    values = flatten(config)
    for name in (name for name, key in KEYS.items() if key.rule.kind == "model"):
        model = str(values[name])
        if model.partition(":")[0] in _NETWORK_PROVIDERS:
            yield name, model


def _check_network(_home: Home, config: Config) -> CheckResult:
    """List what is sent from this machine."""
    destinations = []
    if config.git.auto_push and config.git.remote:
        destinations.append(f"commits are pushed to {mask_secret(config.git.remote)}")
    destinations += [
        f"text is sent to {model} ({setting})" for setting, model in _find_network_models(config)
    ]
    return CheckResult("network", "; ".join(destinations) or "nothing leaves this machine")

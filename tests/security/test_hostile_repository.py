"""A repository and an environment that want to run something: nothing but git runs, only our files go in."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

import tacit
from tacit.git.refs import create_snapshot, list_tags, prune_explore_branches
from tacit.git.repository import Git
from tacit.memory import Memory

EVERYTHING = """
import sys, tacit
from pathlib import Path
from tacit.git.refs import create_snapshot
home = Path(sys.argv[1])
memory = tacit.open(home)
with memory.session() as session:
    session.message("user", "hello kiln")
    session.knowledge("created", "knowledge/kiln.md")
(home / "knowledge/kiln.md").write_text("fire at 1220\\n")
worked = memory.commit()
assert worked.commits and not worked.waiting, worked
memory.history.when("1220"); memory.history.blame("knowledge/kiln.md")
memory.history.diff("1 week"); memory.history.today(); memory.history.recall("knowledge/kiln.md", "HEAD")
create_snapshot(memory.git, "here")
assert {item.state for item in memory.verify()} == {"proved"}
memory.history.undo(worked.commits[-1])
(home / "knowledge/kiln.md").write_text("fire at 1240\\n")
assert memory.commit().commits
"""


def user(root: Path, *arguments: str) -> str:
    """The user's git, with none of the traps of the repository it works on."""
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments]
    return os.fsdecode(subprocess.run(command, cwd=root, capture_output=True, check=True).stdout)


def everything(home: Path, memory: Memory) -> None:
    """All that tacit asks of git in a day; in this process, so that a trap cannot hide behind another one."""
    with memory.session() as session:
        session.message("user", "hello kiln")
        session.knowledge("created", "knowledge/kiln.md")
    (home / "knowledge/kiln.md").write_text("fire at 1220\n")
    worked = memory.commit()
    assert worked.waiting == ""
    assert len(worked.commits) == 1
    assert memory.history.when("1220")
    assert memory.history.blame("knowledge/kiln.md")
    assert memory.history.diff("1 week")
    assert memory.history.today()
    assert memory.history.recall("knowledge/kiln.md", "HEAD") == "fire at 1220\n"
    create_snapshot(memory.git, "here")
    assert {item.state for item in memory.verify()} == {"proved"}
    assert prune_explore_branches(memory.git, "main", 7, datetime.now().astimezone()) == ([], [])
    assert list_tags(memory.git)
    memory.history.undo(worked.commits[-1])
    assert not (home / "knowledge/kiln.md").exists()


class Trap:
    """A command that leaves a mark when somebody runs it, and says yes to everything."""

    def __init__(self, folder: Path) -> None:
        self.mark = folder / "SPRUNG"
        self.script = folder / "trap"
        self.script.write_text(f'#!/bin/sh\necho "$0 $@" >> "{self.mark}"\ncat 2>/dev/null\nexit 0\n')
        self.script.chmod(0o755)

    def __str__(self) -> str:
        return str(self.script)


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


def configured(*lines: str) -> Callable[[Path, Trap], None]:
    def set_trap(home: Path, trap: Trap) -> None:
        for line in lines:
            key, _, value = line.partition("=")
            user(home, "config", "--add", key, value.replace("TRAP", str(trap)))

    return set_trap


def attributed(attribute: str, *lines: str) -> Callable[[Path, Trap], None]:
    def set_trap(home: Path, trap: Trap) -> None:
        configured(*lines)(home, trap)
        (home / ".git/info").mkdir(exist_ok=True)
        (home / ".git/info/attributes").write_text(f"* {attribute}\n")
        (home / "knowledge/.gitattributes").write_text(f"* {attribute}\n")

    return set_trap


def _hooks(home: Path, trap: Trap) -> None:
    names = (
        "pre-commit commit-msg prepare-commit-msg post-commit post-index-change reference-transaction "
        "fsmonitor-watchman pre-push post-checkout post-merge pre-auto-gc post-rewrite update"
    )
    for name in names.split():
        (home / ".git/hooks" / name).unlink(missing_ok=True)
        shutil.copy(trap.script, home / ".git/hooks" / name)


def _hooks_elsewhere(home: Path, trap: Trap) -> None:
    _hooks(home, trap)
    (home / ".git/hooks").rename(home.parent / "hooks elsewhere")
    (home / ".git/hooks").mkdir()
    user(home, "config", "core.hooksPath", str(home.parent / "hooks elsewhere"))


def _included(home: Path, trap: Trap) -> None:
    evil = home.parent / "evil.config"
    evil.write_text(f"[core]\n\tfsmonitor = {trap}\n\tpager = {trap}\n[diff]\n\texternal = {trap}\n")
    user(home, "config", "include.path", str(evil))
    user(home, "config", f"includeIf.gitdir:{home}/.path", str(evil))


def _submodule(home: Path, trap: Trap) -> None:
    (home / ".gitmodules").write_text(
        f'[submodule "x"]\n\tpath = knowledge/x\n\turl = ext::{trap}\n\tupdate = !{trap}\n'
    )
    configured("submodule.x.update=!TRAP", "submodule.x.url=ext::TRAP", "submodule.recurse=true")(home, trap)
    entry = f"160000,{'1' * 40},knowledge/x"
    user(home, "update-index", "--add", "--cacheinfo", entry)
    user(home, "commit", "-q", "--no-verify", "-m", "submodule")
    (home / "knowledge/x").mkdir()


def _embedded(home: Path, trap: Trap) -> None:
    inner = home / "knowledge/inner"
    user(home, "init", "-q", str(inner))
    (inner / "a.md").write_text("x\n")
    user(inner, "add", ".")
    user(inner, "commit", "-q", "-m", "x")
    configured("core.fsmonitor=TRAP", "core.pager=TRAP", "diff.external=TRAP")(inner, trap)
    (inner / "a.md").write_text("y\n")


def _embedded_bare(home: Path, trap: Trap) -> None:
    inner = home / "knowledge/notes"
    user(home, "init", "-q", "--bare", str(inner))
    configured("core.fsmonitor=TRAP", "core.pager=TRAP")(inner, trap)
    user(inner, "config", "core.bare", "false")
    user(inner, "config", "core.worktree", str(home / "knowledge"))


TRAPS = {
    "hooks": _hooks,
    "hooks elsewhere": _hooks_elsewhere,
    "fsmonitor": configured("core.fsmonitor=TRAP", "core.useBuiltinFSMonitor=true"),
    "signing": configured(
        "commit.gpgSign=true", "tag.gpgSign=true", "gpg.program=TRAP", "gpg.format=openpgp",
        "user.signingKey=x", "log.showSignature=true", "push.gpgSign=true",
    ),
    "ssh signing": configured("commit.gpgSign=true", "gpg.format=ssh", "gpg.ssh.program=TRAP"),
    "pager": configured("core.pager=TRAP", "pager.log=TRAP", "pager.blame=TRAP", "pager.diff=TRAP"),
    "editor": configured("core.editor=TRAP", "sequence.editor=TRAP"),
    "aliases": configured(*(f"alias.{name}=!TRAP" for name in ("log", "ls-tree", "fast-import", "blame"))),
    "ssh": configured("core.sshCommand=TRAP", "core.gitProxy=TRAP", "core.askPass=TRAP"),
    "credentials": configured("credential.helper=!TRAP"),
    "alternates": configured("core.alternateRefsCommand=TRAP"),
    "external diff": configured("diff.external=TRAP", "interactive.diffFilter=TRAP"),
    "clean filter": attributed("filter=evil", "filter.evil.clean=TRAP", "filter.evil.smudge=TRAP",
                               "filter.evil.required=true"),
    "process filter": attributed("filter=evil", "filter.evil.process=TRAP", "filter.evil.required=true"),
    "textconv": attributed("diff=evil", "diff.evil.textconv=TRAP", "diff.evil.cachetextconv=true"),
    "diff driver": attributed("diff=evil", "diff.evil.command=TRAP"),
    "merge driver": attributed("merge=evil", "merge.evil.driver=TRAP"),
    "trailer command": configured("trailer.Session.command=TRAP", "trailer.Session.cmd=TRAP"),
    "includes": _included,
    "maintenance": configured("gc.auto=1", "maintenance.auto=true", "gc.recentObjectsHook=TRAP"),
    "submodule": _submodule,
    "embedded repository": _embedded,
    "embedded bare repository": _embedded_bare,
    "partial clone": configured("extensions.partialClone=evil", "remote.evil.url=ext::TRAP",
                                "remote.evil.promisor=true", "core.repositoryFormatVersion=1"),
}  # fmt: skip


FILTERS = ("clean filter", "process filter")


@pytest.mark.parametrize("name", FILTERS)
def test_no_filter_springs_and_what_it_would_change_is_not_committed(
    home: Path, trap: Trap, name: str
) -> None:
    TRAPS[name](home, trap)
    memory = tacit.open(home)
    (home / "knowledge/kiln.md").write_text("fire at 1220\n")
    with memory.session() as session:
        session.message("user", "hello kiln")
    head = memory.git.head()
    worked = memory.commit()
    memory.verify()
    assert "filter evil" in worked.waiting
    assert "knowledge/kiln.md" in {problem.where for problem in worked.problems}
    assert memory.git.head() == head
    assert not trap.mark.exists()


@pytest.mark.parametrize("name", [name for name in TRAPS if name not in FILTERS])
def test_no_trap_in_the_repository_springs(home: Path, trap: Trap, name: str) -> None:
    TRAPS[name](home, trap)
    everything(home, tacit.open(home))
    assert not trap.mark.exists(), trap.mark.read_text()
    checked = subprocess.run(
        ["git", "-c", "core.fsmonitor=false", "fsck", "--strict"], cwd=home, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("name", ["fsmonitor", "clean filter", "textconv", "hooks", "external diff"])
def test_the_traps_do_spring_for_a_careless_git(home: Path, trap: Trap, name: str) -> None:
    """Else the test above would prove nothing."""
    TRAPS[name](home, trap)
    (home / "knowledge/people/_index.md").write_text("x\n")
    run = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com"]
    for command in (["status"], ["diff"], ["commit", "-q", "-a", "-m", "x"]):
        subprocess.run([*run, *command], cwd=home, capture_output=True)
    assert trap.mark.exists()


def test_only_git_is_ever_started(home: Path, trap: Trap, tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed; the marks of the other tests stand in for it")
    for name in ("hooks", "fsmonitor", "signing", "pager", "external diff", "includes"):
        TRAPS[name](home, trap)
    log = tmp_path / "strace"
    done = subprocess.run(
        [
            strace,
            "-f",
            "-qq",
            "-e",
            "trace=execve",
            "-o",
            str(log),
            sys.executable,
            "-c",
            EVERYTHING,
            str(home),
        ],
        capture_output=True,
        text=True,
    )
    if "ptrace" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    started = set(re.findall(r'execve\("([^"]+)".* = 0$', log.read_text(), flags=re.MULTILINE))
    started.discard(sys.executable)
    assert {Path(program).name for program in started} == {"git"}


# ---------------------------------------------------------------- settings that lead astray


@pytest.mark.parametrize(
    "settings",
    [
        ("core.autocrlf=true", "core.eol=crlf", "core.safecrlf=true"),
        ("core.worktree=/tmp",),
        ("core.bare=true",),
        ("core.worktree=/nonexistent", "core.bare=true"),
        ("core.excludesFile=/dev/stdin",),
        ("core.ignoreCase=true", "core.precomposeUnicode=true"),
        ("core.untrackedCache=true", "core.splitIndex=true", "index.version=4"),
        ("core.sharedRepository=world",),
        ("core.logAllRefUpdates=false",),
        ("commit.template=/nonexistent", "commit.cleanup=scissors", "commit.verbose=true"),
        ("user.useConfigOnly=true",),
        ("i18n.commitEncoding=ISO-8859-1",),
        ("fastimport.unpackLimit=1",),
        ("core.notesRef=refs/notes/x", "notes.displayRef=*"),
        ("status.showUntrackedFiles=no",),
        ("safe.directory=",),
    ],
)
def test_no_setting_of_the_repository_changes_what_is_committed(
    home: Path, settings: tuple[str, ...]
) -> None:
    for line in settings:
        key, _, value = line.partition("=")
        with (home / ".git/config").open("a") as file:
            section, _, name = key.partition(".")
            file.write(f"[{section}]\n\t{name} = {value}\n")
    memory = tacit.open(home)
    data = "crlf\r\nlf\n\u00e9\n"
    (home / "knowledge/caf\u00e9.md").write_bytes(data.encode())
    memory.commit()
    everything(home, memory)
    assert Git(home).read("HEAD", "knowledge/caf\u00e9.md") == data.encode()
    out = Git(home).run("log", "-4", "-z", "--format=", "--name-only")
    names = {os.fsdecode(name) for name in out.split(b"\0")} - {""}
    assert {name for name in names if not name.startswith("raw/")} == {
        "knowledge/caf\u00e9.md",
        "knowledge/kiln.md",
    }


@pytest.mark.parametrize("branch", ["trunk", "we/ird", "caf\u00e9"])
def test_an_odd_default_branch_of_the_user_is_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, branch: str
) -> None:
    config = tmp_path / "gitconfig"
    config.write_text(f'[init]\n\tdefaultBranch = "{branch}"\n\ttemplateDir = {tmp_path}\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    memory = tacit.init(tmp_path / "h")
    assert memory.git.branch() == "main"


@pytest.mark.parametrize("has_rules", [False, True])
def test_nothing_of_a_hostile_global_config_runs(
    home: Path, trap: Trap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_rules: bool
) -> None:
    """With rules that name its filter for every file, nothing is committed either."""
    folder = tmp_path / "ada"
    (folder / ".config/git").mkdir(parents=True)
    text = (
        f"[core]\n\tfsmonitor = {trap}\n\tpager = {trap}\n\thooksPath = {tmp_path}\n"
        f"\tattributesFile = {folder}/a\n"
        f"[commit]\n\tgpgSign = true\n[gpg]\n\tprogram = {trap}\n[diff]\n\texternal = {trap}\n"
        f'[filter "e"]\n\tclean = {trap}\n\trequired = true\n[alias]\n\tlog = !{trap}\n'
    )
    (folder / "a").write_text("* filter=e\n" if has_rules else "")
    (folder / ".gitconfig").write_text(text)
    (folder / ".config/git/config").write_text(text)
    (folder / ".config/git/attributes").write_text("* filter=e\n" if has_rules else "")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    if has_rules:
        (home / "knowledge/kiln.md").write_text("fire at 1220\n")
        assert tacit.open(home).commit().commits == ()
    else:
        everything(home, tacit.open(home))
    assert not trap.mark.exists()


@pytest.mark.parametrize(
    "variables",
    [
        {"GIT_DIR": "OTHER/.git"},
        {"GIT_DIR": "OTHER/.git", "GIT_WORK_TREE": "OTHER"},
        {"GIT_INDEX_FILE": "OTHER/.git/index"},
        {"GIT_OBJECT_DIRECTORY": "OTHER/.git/objects"},
        {"GIT_ALTERNATE_OBJECT_DIRECTORIES": "OTHER/.git/objects"},
        {"GIT_COMMON_DIR": "OTHER/.git"},
        {"GIT_NAMESPACE": "evil"},
        {"GIT_CEILING_DIRECTORIES": "/"},
        {"GIT_CONFIG_PARAMETERS": "'core.fsmonitor=TRAP' 'core.pager=TRAP'"},
        {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "TRAP"},
        {"GIT_CONFIG": "OTHER/.git/config", "GIT_CONFIG_SYSTEM": "OTHER/.git/config"},
        {"GIT_EXTERNAL_DIFF": "TRAP", "GIT_PAGER": "TRAP", "PAGER": "TRAP", "GIT_EDITOR": "TRAP"},
        {"GIT_SSH_COMMAND": "TRAP", "GIT_SSH": "TRAP", "GIT_ASKPASS": "TRAP", "SSH_ASKPASS": "TRAP"},
        {"GIT_AUTHOR_NAME": "", "GIT_AUTHOR_EMAIL": "", "GIT_COMMITTER_DATE": "not a date"},
        {"GIT_TRACE": "OTHER/trace", "GIT_TRACE2_EVENT": "OTHER/trace2"},
        {"GIT_LITERAL_PATHSPECS": "0", "GIT_GLOB_PATHSPECS": "1", "GIT_ICASE_PATHSPECS": "1"},
        {"GIT_DEFAULT_HASH": "sha256", "GIT_TEMPLATE_DIR": "OTHER"},
        {"GIT_QUARANTINE_PATH": "OTHER"},
        {"GIT_EXEC_PATH": "OTHER"},
        {"GIT_REPLACE_REF_BASE": "refs/heads", "GIT_SHALLOW_FILE": "OTHER/x", "GIT_GRAFT_FILE": "OTHER/x"},
    ],
    ids=" ".join,
)
def test_no_variable_of_the_environment_leads_git_elsewhere(
    home: Path, tmp_path: Path, trap: Trap, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    other = tmp_path / "other"
    user(tmp_path, "init", "-q", "-b", "main", str(other))
    (other / "theirs.txt").write_text("x\n")
    user(other, "add", ".")
    user(other, "commit", "-q", "-m", "theirs")
    before = {file: file.read_bytes() for file in other.rglob("*") if file.is_file()}
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("OTHER", str(other)).replace("TRAP", str(trap)))
    everything(home, tacit.open(home))
    monkeypatch.undo()
    assert {file: file.read_bytes() for file in other.rglob("*") if file.is_file()} == before
    assert not trap.mark.exists()
    assert user(home, "status", "--porcelain") == ""
    assert user(home, "log", "-1", "--format=%an") == "tacit\n"


# ---------------------------------------------------------------- objects that lie


def test_replaced_objects_do_not_change_the_past(home: Path, memory: Memory) -> None:
    with memory.session() as session:
        session.message("user", "The truth.")
    assert session.path is not None
    blob = user(home, "rev-parse", f"HEAD:{session.path}").strip()
    (home.parent / "lie").write_text("---\nlie\n")
    lie = user(home, "hash-object", "-w", str(home.parent / "lie")).strip()
    user(home, "replace", blob, lie)
    assert "The truth." in memory.history.recall(session.path, "HEAD")


def test_an_embedded_bare_repository_is_committed_as_plain_files_or_named_and_stays_dead(
    home: Path, trap: Trap, memory: Memory
) -> None:
    _embedded_bare(home, trap)
    (home / "knowledge/ours.md").write_text("ours\n")
    memory.commit()
    assert Git(home).read("HEAD", "knowledge/ours.md") == b"ours\n"
    assert {blob.mode for blob in Git(home).tree("HEAD").values()} <= {"100644", "100755"}
    assert not trap.mark.exists()


def test_an_entry_of_a_submodule_is_left_as_it_is(home: Path, trap: Trap) -> None:
    _submodule(home, trap)
    memory = tacit.open(home)
    (home / "knowledge/ours.md").write_text("ours\n")
    worked = memory.commit()
    assert Git(home).tree("HEAD")["knowledge/x"].mode == "160000"
    assert [problem.where for problem in worked.problems] == ["knowledge/x"]


# ---------------------------------------------------------------- objects that are missing


def _missing_object(home: Path, trap: Trap) -> str:
    """A partial clone whose remote is a command, allowed by name, and a note that only it could bring."""
    configured(
        "core.repositoryFormatVersion=1", "extensions.partialClone=evil", "remote.evil.promisor=true",
        f"remote.evil.url=ext::touch {trap.mark}", "protocol.ext.allow=always", "protocol.file.allow=always",
    )(home, trap)  # fmt: skip
    path = "knowledge/identity/USER.md"
    name = user(home, "rev-parse", f"HEAD:{path}").strip()
    (home / ".git/objects" / name[:2] / name[2:]).unlink()
    return path


def test_a_missing_object_is_never_fetched_from_where_the_repository_says(home: Path, trap: Trap) -> None:
    path = _missing_object(home, trap)
    assert Git(home).read("HEAD", path) is None
    tacit.open(home).commit()
    assert not trap.mark.exists()


def test_a_careless_git_does_fetch_it(home: Path, trap: Trap) -> None:
    """Else the test above would prove nothing."""
    path = _missing_object(home, trap)
    subprocess.run(["git", "cat-file", "blob", f"HEAD:{path}"], cwd=home, capture_output=True)
    assert trap.mark.exists()

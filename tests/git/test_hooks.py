"""The repository's hooks, run by the user's own git."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tacit.git.hooks import HOOK_NAMES, check_installed, count_lines, install, render_shim
from tacit.git.repository import Git
from tacit.memory import Memory

MEMORY = "knowledge/memory/MEMORY.md"


def user(
    root: Path, *arguments: str, check: bool = True, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments]
    environment = {**os.environ, "GIT_EDITOR": "true", **(env or {})}
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=check, env=environment)


def head(home: Path) -> str:
    return user(home, "rev-parse", "HEAD").stdout


def write(home: Path, path: str, text: str) -> Path:
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def commit(home: Path, *paths: str) -> tuple[int, str]:
    """Stage and commit as the user does; the exit code and what the hook said."""
    user(home, "add", "--", *paths)
    done = user(home, "commit", "-q", "-m", "mine", check=False)
    return done.returncode, done.stderr


def changed(home: Path) -> list[list[str]]:
    file = home / ".tacit/changed.jsonl"
    return [json.loads(line)["paths"] for line in file.read_text().splitlines()] if file.exists() else []


@pytest.fixture
def hooked(home: Path) -> Path:
    """A home whose hooks call the tacit under test (the script beside the interpreter may be missing)."""
    program = write(home.parent, "bin/tacit", f'#!/bin/sh\nexec "{sys.executable}" -m tacit "$@"\n')
    program.chmod(0o755)
    assert install(Git(home), str(program)) == []
    return home


@pytest.fixture
def transcript(hooked: Path, memory: Memory) -> str:
    with memory.session() as session:
        session.message("user", "Keep this.")
    assert session.path is not None
    (hooked / session.path).chmod(0o600)
    return session.path


# ---------------------------------------------------------------- the shims


@pytest.mark.parametrize("name", HOOK_NAMES)
def test_init_installs_shims_of_two_lines_that_can_be_run(home: Path, name: str) -> None:
    hook = home / ".git/hooks" / name
    assert hook.read_text().count("\n") == 2
    assert hook.read_text().startswith("#!/bin/sh\n")
    assert hook.stat().st_mode & 0o777 == 0o700
    assert check_installed(Git(home)) == dict.fromkeys(HOOK_NAMES, True)


@pytest.mark.parametrize(
    "folder",
    [
        "plain",
        "two words",
        "it's",
        'dou"ble',
        "do$HOME",
        "$(touch pwned)",
        "`touch pwned`",
        "back\\slash",
        "semi;colon",
        "*",
        "-dash",
        "caf\u00e9",
        "!bang",
    ],
)
def test_a_shim_survives_any_path_of_its_program(tmp_path: Path, folder: str) -> None:
    program = write(tmp_path, f"{folder}/tacit", '#!/bin/sh\necho "$0 $*"\nexit 7\n')
    hook = write(tmp_path, "hook", render_shim(str(program), "pre-commit"))
    assert hook.read_text().count("\n") == 2
    program.chmod(0o755)
    ran = subprocess.run(["sh", str(hook)], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (7, f"{program} hook pre-commit\n")
    program.unlink()
    ran = subprocess.run(["sh", str(hook)], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "checks skipped" in ran.stderr
    assert folder.replace("\\", "") in ran.stderr.replace("\\", "")
    assert not list(tmp_path.rglob("pwned"))


def test_a_commit_goes_through_when_tacit_is_gone(hooked: Path) -> None:
    (hooked.parent / "bin/tacit").unlink()
    write(hooked, "knowledge/a.md", "x\n")
    code, said = commit(hooked, "knowledge/a.md")
    assert code == 0
    assert "Repair with: tacit init" in said


def test_installing_again_changes_nothing_and_says_nothing(home: Path) -> None:
    program = str(Path(sys.executable).with_name("tacit"))
    install(Git(home), program)
    before = {name: (home / ".git/hooks" / name).stat().st_mtime_ns for name in HOOK_NAMES}
    assert install(Git(home), program) == []
    assert {name: (home / ".git/hooks" / name).stat().st_mtime_ns for name in HOOK_NAMES} == before


def test_a_shim_of_an_older_place_is_renewed(home: Path) -> None:
    install(Git(home), "/old/tacit")
    assert install(Git(home), "/new/tacit") == []
    assert (home / ".git/hooks/pre-commit").read_text() == render_shim("/new/tacit", "pre-commit")


def test_a_hook_of_the_users_own_is_kept_and_told_about(home: Path) -> None:
    own = write(home, ".git/hooks/pre-commit", "#!/bin/sh\necho mine\n")
    problems = install(Git(home), "/opt/my tacit")
    assert own.read_text() == "#!/bin/sh\necho mine\n"
    (problem,) = problems
    assert str(problem) == (
        ".git/hooks/pre-commit: is yours and was kept. "
        "To have tacit check commits too, add this line to it: '/opt/my tacit' hook pre-commit"
    )
    assert check_installed(Git(home)) == {"pre-commit": False, "post-commit": True}


def test_a_hook_of_the_users_own_that_calls_ours_is_kept_too(home: Path) -> None:
    text = "#!/bin/sh\necho mine\n/opt/tacit hook pre-commit\n"
    own = write(home, ".git/hooks/pre-commit", text)
    own.chmod(0o755)
    assert install(Git(home), "/opt/tacit") == []
    assert own.read_text() == text
    assert check_installed(Git(home))["pre-commit"]


# ---------------------------------------------------------------- transcripts


def test_a_new_transcript_may_be_committed_by_hand(hooked: Path) -> None:
    path = "raw/conversations/2026/02/16/1200 by hand.md"
    write(hooked, path, "---\nsession: x\n---\n\n# By hand\n")
    assert commit(hooked, path) == (0, "")


@pytest.mark.parametrize("text", ["# No frontmatter\n", "", "--\n", "\n---\n"])
def test_a_transcript_without_frontmatter_is_refused(hooked: Path, text: str) -> None:
    path = "raw/conversations/2026/02/16/x y.md"
    write(hooked, path, text)
    before = head(hooked)
    code, said = commit(hooked, path)
    assert code == 1
    assert f"error: {path}: does not begin with frontmatter" in said
    assert head(hooked) == before


@pytest.mark.parametrize("how", [["-m", "x"], ["-a", "-m", "x"], ["-m", "x", "."]])
def test_a_changed_transcript_is_refused_however_it_is_committed(
    hooked: Path, transcript: str, how: list[str]
) -> None:
    with (hooked / transcript).open("a") as file:
        file.write("forged\n")
    if how == ["-m", "x"]:
        user(hooked, "add", transcript)
    before = head(hooked)
    done = user(hooked, "commit", *how, check=False)
    assert done.returncode == 1
    assert "is a sealed transcript, and those do not change" in done.stderr
    assert "git restore --staged --worktree" in done.stderr
    assert head(hooked) == before


@pytest.mark.parametrize("target", ["raw/conversations/2026/moved.md", "archive/moved.md"])
def test_a_renamed_transcript_is_refused(hooked: Path, transcript: str, target: str) -> None:
    (hooked / target).parent.mkdir(parents=True, exist_ok=True)
    user(hooked, "mv", transcript, target)
    done = user(hooked, "commit", "-m", "x", check=False)
    assert done.returncode == 1
    assert f"error: {transcript}: is a sealed transcript" in done.stderr


def test_a_transcript_that_became_a_link_is_refused(hooked: Path, transcript: str) -> None:
    (hooked / transcript).unlink()
    (hooked / transcript).symlink_to("/etc/passwd")
    assert commit(hooked, transcript)[0] == 1


def test_a_deleted_transcript_is_warned_about_and_committed(hooked: Path, transcript: str) -> None:
    user(hooked, "rm", "-q", transcript)
    done = user(hooked, "commit", "-q", "-m", "x")
    assert f"warning: {transcript}: is a sealed transcript and would be deleted" in done.stderr


# ---------------------------------------------------------------- the index, not the work tree


def test_what_is_staged_is_checked_and_not_what_lies_in_the_work_tree(hooked: Path, transcript: str) -> None:
    sealed = (hooked / transcript).read_bytes()
    (hooked / transcript).write_bytes(sealed + b"forged\n")
    user(hooked, "add", transcript)
    (hooked / transcript).write_bytes(sealed)
    assert user(hooked, "commit", "-m", "x", check=False).returncode == 1
    user(hooked, "reset", "-q")
    (hooked / transcript).write_bytes(sealed + b"forged but not staged\n")
    write(hooked, "knowledge/a.md", "x\n")
    assert commit(hooked, "knowledge/a.md")[0] == 0


def test_the_very_first_commit_of_a_repository_is_checked_too(hooked: Path) -> None:
    user(hooked, "update-ref", "-d", "HEAD")
    write(hooked, "raw/conversations/x.md", "no frontmatter\n")
    code, said = commit(hooked, ".")
    assert code == 1
    assert "does not begin with frontmatter" in said
    (hooked / "raw/conversations/x.md").unlink()
    user(hooked, "rm", "-q", "--cached", "raw/conversations/x.md")
    assert commit(hooked, ".")[0] == 0
    assert MEMORY in changed(hooked)[-1]


# ---------------------------------------------------------------- MEMORY.md and topics


@pytest.mark.parametrize(
    ("lines", "code", "said"),
    [
        (180, 0, ""),
        (181, 0, "warning: {path}: has 181 lines (cap: 200)."),
        (200, 0, "warning: {path}: has 200 lines (cap: 200)."),
        (201, 0, "warning: {path}: has 201 lines, over its cap of 200."),
        (220, 0, "warning: {path}: has 220 lines, over its cap of 200."),
        (221, 1, "error: {path}: has 221 lines; more than 220 are not committed"),
    ],
)
@pytest.mark.parametrize("end", ["\n", ""])
def test_memory_md_is_warned_about_and_then_refused_as_it_grows(
    hooked: Path, lines: int, code: int, said: str, end: str
) -> None:
    write(hooked, MEMORY, "\n".join(f"- fact {number}" for number in range(lines)) + end)
    got, stderr = commit(hooked, MEMORY)
    assert got == code
    assert (stderr == "") if said == "" else (said.format(path=MEMORY) in stderr)


def test_limits_come_from_the_config_of_the_home(hooked: Path) -> None:
    config = hooked / "memory-config.yaml"
    config.write_text("lifecycle: {memory_warn_lines: 3, memory_line_cap: 4, memory_block_lines: 5}\n")
    write(hooked, MEMORY, "x\n" * 6)
    code, said = commit(hooked, MEMORY)
    assert code == 1
    assert "more than 5 are not committed (cap: 4)" in said


def test_a_broken_config_is_said_and_the_defaults_are_used(hooked: Path) -> None:
    (hooked / "memory-config.yaml").write_text("lifecycle: [\n")
    write(hooked, MEMORY, "x\n" * 221)
    code, said = commit(hooked, MEMORY)
    assert code == 1
    assert "The defaults are used for this check" in said


@pytest.mark.parametrize(
    ("data", "lines"), [(b"", 0), (b"\n", 1), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"a\r\nb\r\n", 2)]
)
def test_lines_are_counted_one_way(data: bytes, lines: int) -> None:
    assert count_lines(data) == lines


def test_a_topic_without_triggers_is_warned_about(hooked: Path) -> None:
    write(hooked, "topics/two words.md", "---\ntitle: x\n---\n")
    code, said = commit(hooked, "topics/two words.md")
    assert code == 0
    assert "warning: topics/two words.md: has no triggers" in said
    write(hooked, "topics/two words.md", "---\ntriggers: [x]\n---\n")
    assert commit(hooked, "topics/two words.md") == (0, "")


@pytest.mark.parametrize("name", ["new\nline.md", 'quo"te.md', "-dash.md", "caf\u00e9.md", "esc\x1b[31m.md"])
def test_odd_names_are_checked_like_others_and_not_printed_raw(hooked: Path, name: str) -> None:
    write(hooked, f"topics/{name}", "no triggers\n")
    code, said = commit(hooked, f"topics/{name}")
    assert code == 0
    assert "has no triggers" in said
    assert "\x1b" not in said


# ---------------------------------------------------------------- post-commit


def test_post_commit_lists_what_the_commit_changed(hooked: Path) -> None:
    write(hooked, "knowledge/a b.md", "x\n")
    write(hooked, "topics/t.md", "---\ntriggers: [x]\n---\n")
    write(hooked, "other.txt", "x\n")
    commit(hooked, "knowledge/a b.md", "topics/t.md", "other.txt")
    assert changed(hooked) == [["knowledge/a b.md", "topics/t.md"]]
    user(hooked, "rm", "-q", "knowledge/a b.md")
    user(hooked, "commit", "-q", "-m", "x")
    assert changed(hooked)[1:] == [["knowledge/a b.md"]]
    first = json.loads((hooked / ".tacit/changed.jsonl").read_text().splitlines()[0])
    assert first["commit"] == user(hooked, "rev-parse", "HEAD~1").stdout.strip()
    assert (hooked / ".tacit/changed.jsonl").stat().st_mode & 0o777 == 0o600


def test_post_commit_lists_nothing_when_no_note_changed(hooked: Path) -> None:
    write(hooked, "other.txt", "x\n")
    commit(hooked, "other.txt")
    assert changed(hooked) == []


def test_post_commit_of_a_merge_lists_what_each_side_brought(hooked: Path) -> None:
    user(hooked, "switch", "-q", "-c", "side")
    write(hooked, "knowledge/side.md", "x\n")
    commit(hooked, "knowledge/side.md")
    user(hooked, "switch", "-q", "main")
    write(hooked, "knowledge/main.md", "x\n")
    commit(hooked, "knowledge/main.md")
    user(hooked, "merge", "-q", "--no-commit", "side")
    user(hooked, "commit", "-q", "--no-edit")
    assert changed(hooked)[-1] == ["knowledge/main.md", "knowledge/side.md"]


def test_in_a_linked_work_tree_commits_are_checked_and_nothing_breaks(
    hooked: Path, tmp_path: Path, transcript: str
) -> None:
    user(hooked, "worktree", "add", "-q", "-b", "explore/x", str(tmp_path / "side"))
    side = tmp_path / "side"
    write(side, "knowledge/a.md", "x\n")
    assert commit(side, "knowledge/a.md") == (0, "")
    with (side / transcript).open("a") as file:
        file.write("forged\n")
    assert commit(side, transcript)[0] == 1


def test_our_own_commits_run_no_hook(hooked: Path, memory: Memory) -> None:
    write(hooked, ".git/hooks/post-commit", "#!/bin/sh\ntouch pwned\n").chmod(0o755)
    write(hooked, ".git/hooks/reference-transaction", "#!/bin/sh\ntouch pwned\n").chmod(0o755)
    write(hooked, "knowledge/a.md", "x\n")
    assert memory.commit().commits
    assert not list(hooked.rglob("pwned"))


def test_the_hook_needs_no_tacit_home_in_the_environment(hooked: Path) -> None:
    write(hooked, MEMORY, "x\n" * 221)
    user(hooked, "add", MEMORY)
    environment = {"TACIT_HOME": str(hooked.parent / "nowhere")}
    assert user(hooked, "commit", "-m", "x", check=False, env=environment).returncode == 1


def test_hooks_work_in_a_home_whose_path_has_spaces_and_quotes(hooked: Path) -> None:
    odd = hooked.parent / 'it\'s an "odd" home'
    shutil.move(hooked, odd)
    write(odd, MEMORY, "x\n" * 221)
    assert commit(odd, MEMORY)[0] == 1

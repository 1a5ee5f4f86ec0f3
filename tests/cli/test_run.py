"""`tacit run`: the work that is due, told in words and in JSON."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tacit.home import files
from tacit.memory import Memory

if TYPE_CHECKING:
    from tests.conftest import GitLog, Tacit


def user(root: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments]
    environment = {**os.environ, **(env or {})}
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def head(home: Path) -> str:
    return user(home, "rev-parse", "HEAD").strip()


def left_open(home: Path, memory: Memory) -> str:
    """A session whose process died."""
    session = memory.session()
    session.message("user", "cut off")
    path, live = session.path, session._writer
    assert live is not None
    assert path is not None
    live.close()
    return path


@pytest.mark.parametrize("what", ["commit", "all"])
def test_run_commits_and_tells_what_it_did(home: Path, tacit: Tacit, what: str) -> None:
    (home / "knowledge/a.md").write_text("x\n")
    ran = tacit("run", what)
    today = f"{datetime.now().astimezone():%Y-%m-%d}"
    assert (ran.code, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert lines[0] == f"  commit  {head(home)[:10]}"
    assert lines[1] == f"  tag  memory/daily/{today}"
    ran = tacit("run", what)
    assert (ran.code, ran.stdout) == (0, "Nothing to do.\n")


def test_run_tells_of_sessions_that_a_crash_left_open(home: Path, memory: Memory, tacit: Tacit) -> None:
    path = left_open(home, memory)
    value = json.loads(tacit("run", "commit", "--json").stdout)
    assert value["sealed"] == [path]
    assert value["commits"] == [head(home)]
    assert (value["waiting"], value["problems"], value["branches_deleted"]) == ("", [], [])


def test_a_dry_run_says_what_would_be_committed_and_changes_nothing(
    home: Path, memory: Memory, tacit: Tacit
) -> None:
    path = left_open(home, memory)
    (home / "knowledge/a.md").write_text("x\n")
    (home / "knowledge/people/_index.md").unlink()
    (home / "knowledge/link.md").symlink_to("/etc/passwd")
    before = (head(home), user(home, "status", "--porcelain"), (home / path).read_bytes())
    ran = tacit("run", "commit", "--dry-run")
    assert ran.code == 0
    assert ran.stdout.splitlines() == ["  add     knowledge/a.md", "  remove  knowledge/people/_index.md"]
    assert ran.stderr == "warning: knowledge/link.md: is not a plain file, so it is not committed.\n"
    told = json.loads(tacit("run", "commit", "--dry-run", "--json").stdout)
    assert {name: value for name, value in told.items() if value} == {
        "would_commit": ["knowledge/a.md", "knowledge/people/_index.md"],
        "left": ["knowledge/link.md: is not a plain file, so it is not committed."],
    }
    assert (head(home), user(home, "status", "--porcelain"), (home / path).read_bytes()) == before


def test_a_dry_run_with_nothing_to_do_says_so(tacit: Tacit) -> None:
    assert tacit("run", "commit", "--dry-run").stdout == "Nothing to commit.\n"


def test_if_due_waits_for_the_interval_but_still_looks_after_crashes(
    home: Path, memory: Memory, tacit: Tacit, git_log: GitLog
) -> None:
    path = left_open(home, memory)
    (home / "knowledge/a.md").write_text("x\n")
    ran = tacit("run", "commit", "--if-due")
    assert ran.code == 0
    assert git_log("-1")[0].trailer("Session") == [path]
    assert user(home, "status", "--porcelain") == "?? knowledge/a.md\n"
    assert tacit("run", "commit", "--if-due").stdout == "Nothing to do.\n"


@pytest.mark.parametrize(("minutes", "due"), [(29, False), (31, True)])
def test_if_due_commits_when_the_interval_has_passed(
    home: Path, tacit: Tacit, minutes: int, due: bool
) -> None:
    then = (datetime.now().astimezone() - timedelta(minutes=minutes)).isoformat()
    user(home, "commit", "--amend", "-q", "--no-verify", "--no-edit", env={"GIT_COMMITTER_DATE": then})
    (home / "knowledge/a.md").write_text("x\n")
    assert tacit("run", "commit", "--if-due", "--quiet").code == 0
    assert (user(home, "status", "--porcelain") == "") is due


def test_what_has_to_wait_is_said_with_exit_code_one(home: Path, tacit: Tacit) -> None:
    (home / "knowledge/a.md").write_text("x\n")
    user(home, "checkout", "-q", "--detach")
    ran = tacit("run", "commit")
    assert ran.code == 1
    assert ran.stdout == (
        "Not committed: HEAD is detached; it will be committed when you are on a branch again "
        "(git switch main).\n"
    )
    assert json.loads(tacit("run", "commit", "--json").stdout)["waiting"].startswith("HEAD is detached")
    user(home, "switch", "-q", "main")
    assert tacit("run", "commit").code == 0
    assert user(home, "status", "--porcelain") == ""


def test_a_commit_on_another_branch_is_said(home: Path, tacit: Tacit) -> None:
    user(home, "switch", "-q", "-c", "explore/idea")
    (home / "knowledge/a.md").write_text("x\n")
    ran = tacit("run", "commit")
    assert ran.code == 0
    assert "This is on explore/idea, not on main; it comes to main when you merge it." in ran.stdout


def test_staged_notes_are_named_as_the_users(home: Path, tacit: Tacit) -> None:
    (home / "knowledge/a.md").write_text("x\n")
    user(home, "add", "knowledge/a.md")
    ran = tacit("run", "commit")
    assert ran.code == 0
    assert ran.stderr == "warning: knowledge/a.md: is staged by you, so it is yours to commit.\n"


def test_quiet_prints_only_problems(home: Path, tacit: Tacit) -> None:
    (home / "knowledge/a.md").write_text("x\n")
    ran = tacit("run", "commit", "--quiet")
    assert (ran.code, ran.stdout, ran.stderr) == (0, "", "")


def test_auto_push_from_the_config_reaches_a_local_repository(home: Path, tacit: Tacit) -> None:
    remote = home.parent / "remote.git"
    user(home, "init", "-q", "--bare", "-b", "main", str(remote))
    assert tacit("init", str(home)).code == 0  # a copied home may not push before this
    (home / "memory-config.yaml").write_text(f"git: {{auto_push: true, remote: {remote}}}\n")
    ran = tacit("run", "commit")
    assert (ran.code, ran.stderr) == (0, "")
    assert head(remote) == head(home)
    remote.rename(home.parent / "gone.git")
    (home / "knowledge/a.md").write_text("x\n")
    ran = tacit("run", "commit")
    assert ran.code == 0
    assert f"warning: {remote}: could not be pushed to: " in ran.stderr


def talked(memory: Memory, said: str, ago: timedelta) -> None:
    session = memory.session(started=datetime.now().astimezone() - ago)
    session.message("user", said)
    session.end()


def test_if_due_condenses_by_its_schedule_though_notes_were_just_committed(
    home: Path, memory: Memory, tacit: Tacit
) -> None:
    talked(memory, "We decided to fire the big plates at 1,215 degrees.", timedelta(days=2))
    (home / "knowledge/a.md").write_text("x\n")
    assert tacit("run", "commit").code == 0
    told = json.loads(tacit("run", "all", "--if-due", "--json").stdout)
    assert any(period.startswith("day ") for period in told["condensed"]["periods"])
    assert told["learned"]["added"]


def test_cron_says_nothing_where_another_process_is_at_it(home: Path, tacit: Tacit) -> None:
    with files.hold_lock(home / ".tacit/lifecycle.lock"):
        assert tacit("run", "all").code != 0
        ran = tacit("run", "all", "--if-due", "--quiet")
    assert (ran.code, ran.stdout, ran.stderr) == (0, "", "")


def test_a_dry_run_shows_the_diff_of_what_it_would_propose(home: Path, tacit: Tacit) -> None:
    note = home / "knowledge/memory/MEMORY.md"
    note.write_text(note.read_text() + "".join(f"- 2026-01-01: entry {n} of many\n" for n in range(210)))
    said = tacit("run", "prune", "--dry-run").stdout
    assert "would propose (memory)" in said
    assert "\n-- 2026-01-01: entry 0 of many\n" in said
    assert "\n+- 2026-01-01: entry 0 of many\n" in said  # on the page of the archive
    tacit("run", "prune")
    assert "would propose" not in tacit("run", "all", "--dry-run").stdout  # it is not Sunday again


def test_run_all_says_that_a_remote_could_not_be_asked(home: Path, memory: Memory, tacit: Tacit) -> None:
    talked(memory, "We decided to fire the big plates at 1,215 degrees.", timedelta(days=2))
    config = home / "memory-config.yaml"
    text = config.read_text().replace("auto_push: false", "auto_push: true")
    config.write_text(text.replace("#remote: null", "remote: /nowhere/at/all.git"))
    ran = tacit("run", "all")
    assert ran.code == 1
    assert "Not condensed: /nowhere/at/all.git could not be asked" in ran.stdout

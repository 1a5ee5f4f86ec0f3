"""Names for moments, and branches that do not live long."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tacit.config import Config
from tacit.diagnostics import Problem
from tacit.errors import Busy, TacitError, UsageError
from tacit.git import refs
from tacit.git.commits import CommitPlan, FileChange, import_commits
from tacit.git.refs import create_snapshot, list_tags, prune_explore_branches, tag_periods
from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import Home
from tacit.memory import Memory

BERLIN = ZoneInfo("Europe/Berlin")


def user(root: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments]
    done = subprocess.run(
        command, cwd=root, capture_output=True, check=True, env={**os.environ, **(env or {})}
    )
    return done.stdout.decode()


def day(text: str) -> datetime:
    """`02-16 18:00` in Berlin in 2026; the 16th of February is a Monday."""
    return datetime.strptime(f"2026-{text}", "%Y-%m-%d %H:%M").replace(tzinfo=BERLIN)


@pytest.fixture
def git(tmp_path: Path) -> Git:
    root = tmp_path / "r"
    root.mkdir()
    made = Git(root)
    made.init("main")
    commit(made, "01-05 09:00")
    return made


def commit(git: Git, when: str, path: str = "a.md") -> str:
    return import_commits(
        git, [CommitPlan(f"memory: {when}\n", [FileChange(path, when.encode())], day(when))]
    )[0]


def tag_now(git: Git, when: str, *, daily: bool = True, weekly: bool = True) -> list[str]:
    return tag_periods(git, day(when), daily=daily, weekly=weekly)


def tagged(git: Git) -> dict[str, str]:
    return {tag.name.removeprefix("memory/"): tag.commit for tag in list_tags(git)}


# ---------------------------------------------------------------- days and weeks


def test_a_day_without_commits_gets_no_tag(git: Git) -> None:
    assert tag_now(git, "02-16 12:00") == []
    assert list_tags(git) == []


def test_the_tag_of_today_moves_with_every_commit_of_today(git: Git) -> None:
    commit(git, "02-16 09:00")
    assert tag_now(git, "02-16 10:00") == ["memory/daily/2026-02-16"]
    assert tag_now(git, "02-16 11:00") == []
    second = commit(git, "02-16 12:00")
    assert tag_now(git, "02-16 12:01") == ["memory/daily/2026-02-16"]
    assert tagged(git) == {"daily/2026-02-16": second}


def test_a_day_ends_at_local_midnight(git: Git) -> None:
    late = commit(git, "02-16 23:59")
    early = commit(git, "02-17 00:00")
    tag_now(git, "02-17 08:00")
    assert tagged(git) == {"daily/2026-02-16": late, "daily/2026-02-17": early}


def test_what_was_committed_after_the_last_tag_of_a_day_still_belongs_to_it(git: Git) -> None:
    commit(git, "02-16 09:00")
    tag_now(git, "02-16 10:00")
    evening = commit(git, "02-16 18:00")
    assert tag_now(git, "02-17 08:00") == ["memory/daily/2026-02-16"]
    assert tagged(git) == {"daily/2026-02-16": evening}


def test_days_that_were_missed_are_caught_up_those_with_commits_only(git: Git) -> None:
    one, two = commit(git, "02-17 09:00"), commit(git, "02-19 09:00")
    assert tag_now(git, "02-20 08:00") == ["memory/daily/2026-02-17", "memory/daily/2026-02-19"]
    assert tagged(git) == {"daily/2026-02-17": one, "daily/2026-02-19": two}
    assert tag_now(git, "02-20 08:01") == []


def test_a_merge_of_older_work_moves_no_past_tag(git: Git) -> None:
    kept = commit(git, "02-16 09:00")
    tag_now(git, "02-16 23:00")
    user(git.root, "checkout", "-qf", "-b", "side")
    commit(git, "02-16 20:00", "side.md")
    user(git.root, "checkout", "-qf", "main")
    commit(git, "02-18 09:00")
    user(git.root, "reset", "-q", "--hard")
    user(git.root, "merge", "-q", "side", env={"GIT_COMMITTER_DATE": "2026-02-18T10:00:00+0100"})
    tag_now(git, "02-18 11:00")
    assert tagged(git)["daily/2026-02-16"] == kept


def test_the_week_is_tagged_on_its_sunday_and_moves_until_it_is_over(git: Git) -> None:
    commit(git, "02-17 09:00")
    assert "memory/weekly/2026-W08" not in tag_now(git, "02-21 23:59")
    assert "memory/weekly/2026-W08" in tag_now(git, "02-22 08:00")
    last = commit(git, "02-22 20:00")
    tag_now(git, "02-22 23:59")
    assert tagged(git)["weekly/2026-W08"] == last


def test_a_week_whose_sunday_was_missed_is_tagged_after_it(git: Git) -> None:
    last = commit(git, "02-20 09:00")
    commit(git, "02-24 09:00")
    assert "memory/weekly/2026-W08" in tag_now(git, "02-25 08:00")
    assert tagged(git)["weekly/2026-W08"] == last
    assert "weekly/2026-W09" not in tagged(git)


def test_weeks_are_named_by_their_iso_year(git: Git) -> None:
    when = datetime(2027, 1, 2, 9, tzinfo=BERLIN)  # a Saturday in the last week of 2026
    import_commits(git, [CommitPlan("x\n", [FileChange("a.md", b"new year")], when)])
    tag_periods(git, when + timedelta(days=1), daily=False, weekly=True)
    assert list(tagged(git)) == ["weekly/2026-W53"]


@pytest.mark.parametrize(
    ("daily", "weekly", "names"),
    [(False, False, set()), (True, False, {"daily/2026-02-22"}), (False, True, {"weekly/2026-W08"})],
)
def test_each_kind_of_tag_can_be_switched_off(git: Git, daily: bool, weekly: bool, names: set[str]) -> None:
    commit(git, "02-22 09:00")
    tag_now(git, "02-22 10:00", daily=daily, weekly=weekly)
    assert set(tagged(git)) == names


def test_summer_time_makes_no_day_too_short_or_too_long(git: Git) -> None:
    before, after = commit(git, "03-29 00:30"), commit(git, "03-29 23:30")
    assert before != after
    tag_now(git, "03-30 08:00")
    assert tagged(git)["daily/2026-03-29"] == after


def test_a_tag_that_the_user_made_by_hand_is_not_moved(git: Git) -> None:
    commit(git, "02-16 09:00")
    user(git.root, "tag", "-a", "-m", "mine", "memory/daily/2026-02-16")
    before = user(git.root, "rev-parse", "memory/daily/2026-02-16")
    commit(git, "02-16 10:00")
    assert tag_now(git, "02-16 11:00") == []
    assert user(git.root, "rev-parse", "memory/daily/2026-02-16") == before


def test_tags_with_odd_subjects_and_tags_of_no_commit_do_not_stop_the_work(git: Git) -> None:
    name = import_commits(
        git, [CommitPlan("memory: a\rb\u2028c\x85d\x0ce\n", [FileChange("b.md", b"1")], day("02-16 09:00"))]
    )
    create_snapshot(git, "odd")
    user(git.root, "tag", "memory/milestone/blob", "HEAD:a.md")
    user(git.root, "tag", "memory/milestone/tree", "HEAD^{tree}")
    tag_now(git, "02-16 10:00")
    assert tagged(git) == {"daily/2026-02-16": name[0], "milestone/odd": name[0]}


@pytest.mark.parametrize(("theirs", "made"), [("memory", []), ("memory/daily", ["memory/weekly/2026-W08"])])
def test_a_tag_that_stands_in_the_way_stops_only_those_it_is_in_the_way_of(
    git: Git, theirs: str, made: list[str]
) -> None:
    commit(git, "02-22 09:00")
    user(git.root, "tag", theirs)
    assert tag_now(git, "02-22 10:00") == made
    skipped: list[Problem] = []
    tag_periods(git, day("02-22 10:00"), daily=True, weekly=False, skipped=skipped)
    (problem,) = skipped
    assert problem.where == "memory/daily/2026-02-22"
    assert f"refs/tags/{theirs}" in problem.what


@pytest.mark.parametrize("branch", ["explore/idea", "extract/v2"])
def test_what_is_tried_out_aside_is_not_what_the_day_was(git: Git, branch: str) -> None:
    own = commit(git, "02-16 09:00")
    user(git.root, "checkout", "-qf", "-b", branch)
    commit(git, "02-16 10:00")
    assert tag_now(git, "02-16 11:00") == []
    user(git.root, "checkout", "-qf", "main")
    tag_now(git, "02-16 12:00")
    assert tagged(git) == {"daily/2026-02-16": own}


# ---------------------------------------------------------------- snapshots


@pytest.mark.parametrize("kind", ["milestone", "before", "extract"])
def test_a_snapshot_names_the_present_state(git: Git, kind: str) -> None:
    assert create_snapshot(git, "the-move", kind) == f"memory/{kind}/the-move"
    assert tagged(git) == {f"{kind}/the-move": git.head()}


def test_a_snapshot_never_moves(git: Git) -> None:
    create_snapshot(git, "v1")
    before = tagged(git)
    commit(git, "02-16 09:00")
    with pytest.raises(UsageError, match="exists already"):
        create_snapshot(git, "v1")
    assert tagged(git) == before


@pytest.mark.parametrize(
    "name",
    [
        "", "two words", "a..b", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "a.lock", ".a", "a/", "/a",
        "a//b", "@{1}", "a@{1}", "new\nline", "tab\t", "\x1b[2J", "\x7f", "../escape", "../../heads/main",
        "a/../b", "nul\0",
    ],
)  # fmt: skip
def test_names_that_git_cannot_carry_are_refused_and_make_nothing(git: Git, name: str) -> None:
    before = user(git.root, "for-each-ref")
    with pytest.raises(TacitError):
        create_snapshot(git, name)
    assert user(git.root, "for-each-ref") == before


@pytest.mark.parametrize("name", ["--output=x", "-d", "--delete", "-f", "caf\u00e9", "@", "v1.0/beta"])
def test_names_that_look_like_options_are_only_names(git: Git, name: str) -> None:
    assert create_snapshot(git, name) == f"memory/milestone/{name}"
    assert tagged(git) == {f"milestone/{name}": git.head()}


@pytest.mark.parametrize("kind", ["daily", "weekly", "../heads", "", "--all"])
def test_other_kinds_are_refused(git: Git, kind: str) -> None:
    with pytest.raises(UsageError, match="not a kind of snapshot"):
        create_snapshot(git, "x", kind)
    assert list_tags(git) == []


def test_a_snapshot_of_nothing_is_refused(tmp_path: Path) -> None:
    git = Git(tmp_path)
    git.init("main")
    with pytest.raises(UsageError, match="no commit yet"):
        create_snapshot(git, "x")


def test_a_snapshot_waits_for_the_home_and_leaves_a_mark_when_it_is_cut_short(
    git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(git.root)

    def cut_short(*_: object) -> None:
        with pytest.raises(Busy), files.hold_lock(home.lock, wait=0.0):
            pass
        raise KeyboardInterrupt

    monkeypatch.setattr(refs, "set_ref", cut_short)
    with pytest.raises(KeyboardInterrupt):
        create_snapshot(git, "cut")
    assert (home.private / "git-busy").exists()
    monkeypatch.undo()
    create_snapshot(git, "cut")
    assert not (home.private / "git-busy").exists()


# ---------------------------------------------------------------- explore/


def branches(git: Git) -> set[str]:
    return set(user(git.root, "for-each-ref", "--format=%(refname:strip=2)", "refs/heads/").split())


def at(when: str) -> dict[str, str]:
    """Variables under which git writes into its log that it was then."""
    return {"GIT_COMMITTER_DATE": day(when).isoformat()}


def explore(git: Git, name: str, when: str) -> None:
    user(git.root, "checkout", "-qf", "-b", name, env=at(when))
    commit(git, when, f"{name}.md")
    user(git.root, "checkout", "-qf", "main")


def test_a_merged_branch_goes_after_seven_days_and_not_before(git: Git) -> None:
    explore(git, "explore/idea", "02-01 12:00")
    user(git.root, "merge", "-q", "--no-ff", "explore/idea")
    assert prune_explore_branches(git, "main", 7, day("02-08 11:59")) == ([], [])
    assert prune_explore_branches(git, "main", 7, day("02-08 12:00")) == (["explore/idea"], [])
    assert branches(git) == {"main"}


def test_a_branch_with_work_of_its_own_is_kept_and_named(git: Git) -> None:
    explore(git, "explore/idea", "02-01 12:00")
    gone, kept = prune_explore_branches(git, "main", 7, day("02-20 12:00"))
    assert gone == []
    (problem,) = kept
    assert str(problem) == (
        "explore/idea: is old, but 1 of its commits are not in main, so it is kept. "
        "Merge it, or delete it with: git branch -D explore/idea"
    )
    assert branches(git) == {"main", "explore/idea"}


def test_a_branch_that_is_checked_out_here_or_in_another_work_tree_is_kept(git: Git, tmp_path: Path) -> None:
    user(git.root, "branch", "explore/there", env=at("02-01 12:00"))
    user(git.root, "worktree", "add", "-q", str(tmp_path / "there"), "explore/there")
    user(git.root, "checkout", "-qf", "-b", "explore/here", env=at("02-01 12:00"))
    gone, kept = prune_explore_branches(git, "main", 7, day("02-20 12:00"))
    assert gone == []
    assert {problem.where for problem in kept} == {"explore/here", "explore/there"}
    assert all("checked out" in problem.what for problem in kept)


def test_other_branches_are_nobodys_business(git: Git) -> None:
    for name in ("feature", "extract/v2", "explorer/x"):
        user(git.root, "branch", name)
    assert prune_explore_branches(git, "main", 7, day("02-20 12:00")) == ([], [])
    assert branches(git) == {"main", "feature", "extract/v2", "explorer/x"}


def test_without_the_main_branch_nothing_is_deleted(git: Git) -> None:
    user(git.root, "branch", "explore/idea")
    assert prune_explore_branches(git, "trunk", 7, day("02-20 12:00")) == ([], [])
    assert "explore/idea" in branches(git)


def test_hostile_branch_names_are_deleted_as_names(git: Git) -> None:
    for name in ("explore/--help", "explore/-D", "explore/\u2028x", "explore/a;touch${IFS}pwned"):
        user(git.root, "update-ref", f"refs/heads/{name}", "HEAD", env=at("02-01 12:00"))
    gone, kept = prune_explore_branches(git, "main", 7, day("02-20 12:00"))
    assert (len(gone), kept) == (4, [])
    assert branches(git) == {"main"}
    assert not (git.root / "pwned").exists()


def test_a_branch_made_today_from_an_old_commit_is_not_old(git: Git) -> None:
    user(git.root, "branch", "explore/new", env=at("02-20 09:00"))
    assert prune_explore_branches(git, "main", 7, day("02-20 12:00")) == ([], [])
    assert prune_explore_branches(git, "main", 7, day("02-27 12:00")) == (["explore/new"], [])


def test_without_a_log_the_file_of_the_branch_tells_when_it_was_made(git: Git) -> None:
    user(git.root, "branch", "explore/new")
    (git.directory / "logs/refs/heads/explore/new").unlink()
    made = day("02-20 09:00").timestamp()
    os.utime(git.directory / "refs/heads/explore/new", (made, made))
    assert prune_explore_branches(git, "main", 7, day("02-20 12:00")) == ([], [])
    user(git.root, "pack-refs", "--all")
    assert prune_explore_branches(git, "main", 7, day("02-20 12:00")) == (["explore/new"], [])


# ---------------------------------------------------------------- the two in a pass of work


def test_work_tags_the_day_and_prunes_what_is_merged(home: Path) -> None:
    user(home, "branch", "explore/done")
    now = datetime.now().astimezone()
    later = now + timedelta(days=8)
    memory = Memory(Home(home), Config(), zone=later.tzinfo, now=lambda: later)
    (home / "knowledge/a.md").write_text("x\n")
    worked = memory.commit()
    assert f"memory/daily/{later:%Y-%m-%d}" in worked.tags
    assert worked.branches == ("explore/done",)

"""A person works with git in the home at the same time: nothing of theirs is swept, locked or lost, their
command succeeds, and what we sealed meanwhile is committed afterwards."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import tacit
from tests.faults import homes, invariants
from tests.faults.cases import Case
from tests.faults.homes import git, must
from tests.faults.inject import end_group, start
from tests.faults.invariants import Kept
from tests.faults.machine import acknowledgements, environment, workshop
from tests.faults.report import Figure
from tests.faults.said import acknowledged, text_of

_PERSON = {
    "GIT_AUTHOR_NAME": "Person",
    "GIT_AUTHOR_EMAIL": "person@example.org",
    "GIT_COMMITTER_NAME": "Person",
    "GIT_COMMITTER_EMAIL": "person@example.org",
}
_EDITOR = "sleep 2; echo 'my own words' >"  # git appends the file


def _say(home: Path, name: str) -> tacit.Sealed:
    session = tacit.open(home).session(session_id=name, channel="test")
    session.message("user", text_of(f"{name}.question"))
    sealed = session.end()
    assert sealed is not None
    return sealed


def _furnished(folder: Path) -> Path:
    home = folder / "home"
    homes.furnish(home)
    return home


def _clean(folder: Path) -> Path:
    """A home whose person has committed everything."""
    home = _furnished(folder)
    must(home, "add", "-A")
    must(home, "commit", "-q", "-m", "all of mine")
    return home


def _start_git(home: Path, *arguments: str, editor: str = _EDITOR) -> subprocess.Popen[bytes]:
    """The person's git as they run it, our hooks included."""
    return subprocess.Popen(
        ["git", "-C", str(home), *arguments],
        env={**environment(home.parent), **_PERSON, "GIT_EDITOR": editor},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def _finished(command: subprocess.Popen[bytes]) -> Iterator[str]:
    _, error = command.communicate(timeout=60)
    if command.returncode:
        yield f"the person's git failed: {error.decode('utf-8', 'replace').strip()}"


def _kept(home: Path, *names: str) -> Iterator[str]:
    yield from invariants.broken(home, Kept(tuple(f"{name}.question" for name in names)))


# ---------------------------------------------------------------- cases


def _staged(folder: Path) -> Iterator[str]:
    home = _furnished(folder)
    own = homes.own_work(home)
    _say(home, "beside")
    yield from invariants.broken(home, Kept(("beside.question",), own))


def _commit_in_editor(folder: Path, *arguments: str) -> Iterator[str]:
    """A conversation ends while the person writes their commit message."""
    home = _furnished(folder)
    command = _start_git(home, "commit", *arguments)
    time.sleep(1.0)
    had_lock = (home / ".git/index.lock").exists()
    _say(home, "meanwhile")
    tacit.open(home).commit()
    if had_lock and command.poll() is None and not (home / ".git/index.lock").exists():
        yield "the person's lock was taken away"
    yield from _finished(command)
    mine = must(home, "log", "-1", "--grep=my own words", "--format=%H").decode().strip()
    if not mine:
        yield "the person's commit is not there"
    elif swept := [path for path in _changed_by(home, mine) if path.startswith("raw/")]:
        yield f"the person's commit touches ours: {swept}"
    yield from _kept(home, "meanwhile")


def _changed_by(home: Path, commit: str) -> list[str]:
    return must(home, "diff-tree", "--name-only", "-r", "--no-commit-id", commit).decode().split()


def _commit_all_in_editor(folder: Path) -> Iterator[str]:
    yield from _commit_in_editor(folder, "-a")


def _rebase(folder: Path) -> Iterator[str]:
    home = _clean(folder)
    stop = {**_PERSON, "GIT_SEQUENCE_EDITOR": "sed -i s/^pick/edit/", "GIT_EDITOR": "true"}
    stopped = git(home, "rebase", "-i", "HEAD~1", given=stop)
    if not (home / ".git/rebase-merge").exists():
        yield f"the rebase did not stop: {stopped.stderr.decode('utf-8', 'replace')}"
    if _say(home, "meanwhile").commit:
        yield "a commit was made in the middle of a rebase"
    yield from _finished(_start_git(home, "rebase", "--continue", editor="true"))
    yield from _kept(home, "meanwhile")


def _merge(folder: Path) -> Iterator[str]:
    home = _clean(folder)
    must(home, "switch", "-q", "-c", "other")
    for branch, text in (("other", "theirs\n"), ("main", "ours\n")):
        must(home, "switch", "-q", branch)
        (home / "own/plan.txt").write_text(text)
        must(home, "commit", "-q", "-a", "-m", branch)
    git(home, "merge", "other")
    if _say(home, "meanwhile").commit:
        yield "a commit was made in the middle of a merge"
    (home / "own/plan.txt").write_text("both\n")
    must(home, "add", "own/plan.txt")
    yield from _finished(_start_git(home, "commit", "-q", "-m", "merged"))
    yield from _kept(home, "meanwhile")


def _detached(folder: Path) -> Iterator[str]:
    home = _clean(folder)
    must(home, "switch", "-q", "--detach")
    if _say(home, "meanwhile").commit:
        yield "a commit was made on no branch"
    yield from _finished(_start_git(home, "switch", "-q", "main"))
    yield from _kept(home, "meanwhile")


def _other_branch(folder: Path) -> Iterator[str]:
    home = _clean(folder)
    before = must(home, "rev-parse", "main")
    must(home, "switch", "-q", "-c", "idea")
    if not _say(home, "meanwhile").commit:
        yield "nothing is committed on another branch"
    if must(home, "rev-parse", "main") != before:
        yield "main moved while another branch is checked out"
    yield from _kept(home, "meanwhile")


def _takes_a_live_transcript(folder: Path) -> Iterator[str]:
    """`git add -A; git commit` while a conversation is open, which then ends."""
    home = _furnished(folder)
    session = tacit.open(home).session(session_id="open", channel="test")
    session.message("user", text_of("open.question"))
    must(home, "add", "-A")
    yield from _finished(_start_git(home, "commit", "-q", "-m", "everything"))
    session.message("agent", text_of("open.answer"))
    session.end()
    yield from invariants.broken(home, Kept(("open.question", "open.answer")))


def _takes_a_left_transcript(folder: Path) -> Iterator[str]:
    """The same, but the conversation's process died: recovery seals what a commit holds unsealed."""
    home = _furnished(folder)
    with acknowledgements() as acks:
        start(["leave", str(home), str(acks), "left"], folder).communicate()
    must(home, "add", "-A")
    must(home, "commit", "-q", "-m", "everything")
    yield from _kept(home, "left")


CASES = (
    Case("staged and edited files", _staged),
    Case("git commit -a waits in an editor", _commit_all_in_editor),
    Case("git commit waits in an editor", _commit_in_editor),
    Case("a rebase stopped in the middle", _rebase),
    Case("a merge with a conflict", _merge),
    Case("detached HEAD", _detached),
    Case("another branch", _other_branch),
    Case("git add -A takes an open transcript along", _takes_a_live_transcript),
    Case("git add -A takes a transcript along whose process died", _takes_a_left_transcript),
)


# ---------------------------------------------------------------- both at full speed


def side_by_side(seconds: float = 10.0) -> Figure:
    """The person adds and commits as fast as they can while turns are committed. When our update of their
    index is in the way for a moment, git refuses; they try again, as anybody would."""
    began = time.monotonic()
    with workshop() as folder, acknowledgements() as acks:
        home = _clean(folder)
        writer = start(["turns", str(home), str(acks), "turns"], folder)
        while not acknowledged(acks):
            time.sleep(0.01)
        commits = retries = 0
        failures: list[str] = []
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            commits += 1
            retries += _person_commits(home, commits, failures)
        end_group(writer)
        failures += invariants.broken(home, Kept(tuple(acknowledged(acks))))
    return Figure(
        part="person",
        what=f"a person commits without pause beside a writer for {seconds:.0f} s",
        unit="commits",
        broken=len(failures),
        tried=commits,
        seconds=time.monotonic() - began,
        details={"commits that had to be tried again": retries},
        failures=failures,
    )


def _person_commits(home: Path, number: int, failures: list[str]) -> bool:
    """Whether the commit, or what it staged, had to be tried again."""
    (home / "own/plan.txt").write_text(f"plan {number}\n")
    again = False
    for arguments in (("add", "own"), ("commit", "-q", "-m", f"mine {number}")):
        tries = [_refusal(home, *arguments)]
        while tries[-1] and len(tries) < 5:
            time.sleep(0.05)
            tries.append(_refusal(home, *arguments))
        again = again or len(tries) > 1
        failures += [f"git {arguments[0]}: {tries[-1]}"] if tries[-1] else []
    return again


def _refusal(home: Path, *arguments: str) -> str:
    done = git(home, *arguments)
    return (done.stderr or done.stdout).decode("utf-8", "replace").strip() if done.returncode else ""

"""What is on disk goes into git: all of ours, nothing of the user's, and never in their way."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tacit.config import Config
from tacit.config.schema import GitSettings
from tacit.git.note_committer import NoteCommitter
from tacit.git.repository import Git
from tacit.home.layout import Home
from tacit.memory import Memory
from tests.git.committers import note_committer

if TYPE_CHECKING:
    from tests.conftest import GitLog

NOON = datetime(2026, 2, 16, 12, 0, tzinfo=timezone(timedelta(hours=1)))
ODD_NAMES = [
    "new\nline.md",
    'quote".md',
    "it's.md",
    "-leading.md",
    "--output=pwned",
    "two words.md",
    "tab\there.md",
    "back\\slash.md",
    "caf\u00e9.md",
    "cafe\u0301.md",
    ":(exclude)*",
    "return\r.md",
    "\u2028.md",
    "x" * 252 + ".md",
    os.fsdecode(b"\xff\xfe.md"),
]


def user(root: Path, *arguments: str, env: Mapping[str, str] | None = None) -> str:
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments]
    environment = {**os.environ, "GIT_EDITOR": "true", **(env or {})}
    done = subprocess.run(command, cwd=root, capture_output=True, check=True, env=environment)
    return os.fsdecode(done.stdout)


def status(home: Path) -> str:
    return user(home, "status", "--porcelain", "-z")


def head(home: Path) -> str:
    return user(home, "rev-parse", "HEAD").strip()


def files_of(home: Path, commit: str = "HEAD") -> set[str]:
    out = user(home, "show", "--format=", "--name-only", "-z", "--no-renames", commit)
    return set(out.split("\0")) - {""}


def note(home: Path, path: str, text: str = "# One\n\nA line.\n") -> Path:
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.fixture
def committer(home: Path) -> NoteCommitter:
    return note_committer(home, lambda: NOON)


def at(home: Path, moment: datetime, **settings: object) -> Memory:
    config = replace(Config(), git=replace(GitSettings(), **settings))  # type: ignore[arg-type]
    return Memory(Home(home), config, zone=moment.tzinfo, now=lambda: moment)


def say_something(memory: Memory, text: str = "What is the kiln at?") -> str:
    with memory.session() as session:
        session.message("user", text)
    assert session.path is not None
    return session.path


# ---------------------------------------------------------------- messages


def test_each_kind_of_note_gets_its_own_commit(home: Path, committer: NoteCommitter, git_log: GitLog) -> None:
    note(home, "knowledge/identity/USER.md", "# Ada\n")
    note(home, "knowledge/projects/kiln.md")
    note(home, "topics/kiln.md", "---\ntriggers: [kiln]\n---\n")
    note(home, "drafts/letter.md")
    outcome = committer.commit_notes()
    maintenance, memory, identity = git_log("-3")
    assert outcome.commits == (identity.name, memory.name, maintenance.name)
    assert identity.subject == "identity: update identity/USER"
    assert memory.subject == "memory: add projects/kiln, topics/kiln"
    assert maintenance.subject == "maintenance: add drafts/letter"
    assert files_of(home, memory.name) == {"knowledge/projects/kiln.md", "topics/kiln.md"}
    assert status(home) == ""


@pytest.mark.parametrize("kind", ["explore", "extract"])
def test_on_a_branch_for_trying_out_the_kind_is_that_of_the_branch(
    home: Path, committer: NoteCommitter, git_log: GitLog, kind: str
) -> None:
    user(home, "switch", "-q", "-c", f"{kind}/other-way")
    main = head(home)
    note(home, "knowledge/identity/USER.md", "# Ada\n")
    note(home, "knowledge/projects/kiln.md")
    assert len(committer.commit_notes().commits) == 1
    assert git_log("-1")[0].subject == f"{kind}: update identity/USER; add projects/kiln"
    assert user(home, "rev-parse", "main").strip() == main
    assert status(home) == ""


def test_the_message_says_what_changed_file_by_file(
    home: Path, committer: NoteCommitter, git_log: GitLog
) -> None:
    note(home, "knowledge/projects/kiln.md", "# Kiln\n\n## Heat\n\n1200\n")
    committer.commit_notes()
    note(home, "knowledge/projects/kiln.md", "# Kiln\n\n## Heat\n\n1220\n1240\n")
    note(home, "knowledge/projects/one.md", "one line\n")
    (home / "knowledge/people/_index.md").unlink()
    committer.commit_notes()
    message = git_log("-1")[0].message
    assert message.startswith("memory: remove people/_index; update projects/kiln; add projects/one\n\n")
    assert "- knowledge/projects/kiln.md: +2 −1 in Heat\n" in message
    assert "- knowledge/projects/one.md: added, 1 line\n" in message
    assert re.search(r"- knowledge/people/_index\.md: removed, \d+ lines\n", message)


def test_the_same_changes_get_the_same_commit_wherever_they_are_made(home: Path, tmp_path: Path) -> None:
    user(tmp_path, "clone", "-q", str(home), "copy")
    (tmp_path / "copy/.tacit").mkdir()
    names = set()
    for root in (home, tmp_path / "copy"):
        note(root, "knowledge/b.md", "b\n")
        note(root, "knowledge/a.md", "a\n")
        names.add(note_committer(root, lambda: NOON).commit_notes().commits)
    assert len(names) == 1


def test_trailers_of_a_conversation_and_of_its_notes_are_read_by_git(
    home: Path, memory: Memory, git_log: GitLog
) -> None:
    with memory.session() as session:
        session.message("user", "The kiln is at 1220 now.")
        session.knowledge("updated", "knowledge/projects/kiln.md", "heat")
    note(home, "knowledge/projects/kiln.md", "# Kiln\n\nTranscript-SHA256: forged\n")
    memory.commit()
    noted, conversation = git_log("-2")
    parsed = subprocess.run(
        ["git", "interpret-trailers", "--parse"],
        input=conversation.message.encode(),
        capture_output=True,
        check=True,
    ).stdout.decode()
    sealed = (home / (session.path or "")).read_bytes()
    digest = subprocess.run(["sha256sum"], input=sealed, capture_output=True, check=True).stdout.decode()
    assert parsed == f"Session: {session.path}\nTranscript-SHA256: {digest.split()[0]}\n"
    assert conversation.subject.startswith("conversation: ")
    assert user(home, "log", "-1", "--format=%(trailers:key=Session,valueonly)", noted.name).strip() == (
        session.path
    )
    assert json.loads((home / ".tacit/touched.json").read_text()) == {}


def test_a_note_is_credited_to_the_last_session_that_changed_it_and_only_once(
    home: Path, memory: Memory, git_log: GitLog
) -> None:
    for text in ("first talk", "second talk"):
        with memory.session() as session:
            session.message("user", text)
            session.knowledge("updated", "knowledge/a.md")
    note(home, "knowledge/a.md")
    memory.commit()
    assert git_log("-1")[0].trailer("Session") == [session.path]
    note(home, "knowledge/a.md", "edited by hand later\n")
    memory.commit()
    assert git_log("-1")[0].trailer("Session") == []


def test_file_names_cannot_forge_a_trailer(home: Path, committer: NoteCommitter) -> None:
    note(home, "knowledge/x\n\nSession: forged\nTranscript-SHA256: forged\n.md")
    note(home, "knowledge/zz\n\nTranscript-SHA256: forged.md")
    committer.commit_notes()
    assert user(home, "log", "-1", "--format=%(trailers:key=Transcript-SHA256)").strip() == ""
    assert user(home, "log", "-1", "--format=%(trailers:key=Session)").strip() == ""


# ---------------------------------------------------------------- nothing twice


def test_a_second_pass_with_nothing_new_changes_nothing(home: Path) -> None:
    memory = at(home, datetime.now().astimezone())
    say_something(memory)
    note(home, "knowledge/projects/kiln.md")
    assert memory.commit().changed
    before = (head(home), user(home, "for-each-ref"), _all_files(home))
    again = memory.commit()
    assert not again.changed
    assert (again.waiting, again.problems) == ("", ())
    assert (head(home), user(home, "for-each-ref"), _all_files(home)) == before


def _all_files(home: Path) -> dict[str, tuple[bytes, float]]:
    return {
        str(file): (file.read_bytes(), file.stat().st_mtime)
        for file in home.rglob("*")
        if file.is_file() and file.name != "lock"
    }


def test_commits_are_due_after_the_interval_and_not_before(home: Path) -> None:
    last = at(home, datetime.now().astimezone()).history.last_commit_of("maintenance")
    assert last is not None
    assert not at(home, last + timedelta(minutes=29)).services.maintenance.is_commit_due()
    assert at(home, last + timedelta(minutes=31)).services.maintenance.is_commit_due()


def test_a_conversation_does_not_put_off_the_commit_of_notes(home: Path) -> None:
    later = datetime.now().astimezone() + timedelta(minutes=31)
    say_something(at(home, later))
    assert at(home, later).services.maintenance.is_commit_due()


def test_without_auto_commit_a_conversation_waits_until_it_is_asked_for(home: Path, git_log: GitLog) -> None:
    memory = at(home, datetime.now().astimezone(), auto_commit=False)
    with memory.session() as session:
        session.message("user", "Keep this.")
    sealed = session.end()
    assert sealed is not None
    assert sealed.commit is None
    assert "git.auto_commit is off" in sealed.waiting
    assert git_log("-1")[0].subject == "maintenance: lay out the home"
    memory.recover()
    assert git_log("-1")[0].subject == "maintenance: lay out the home"
    assert memory.commit().commits
    assert git_log("-1")[0].trailer("Session") == [session.path]
    assert status(home) == ""


# ---------------------------------------------------------------- file names


@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_committed_exactly_also_when_changed_renamed_and_deleted(
    home: Path, committer: NoteCommitter, name: str
) -> None:
    file = note(home, f"knowledge/{name}")
    assert committer.commit_notes().left == ()
    assert files_of(home) == {f"knowledge/{name}"}
    assert user(home, "show", f"HEAD:knowledge/{name}") == "# One\n\nA line.\n"
    assert status(home) == ""
    file.write_text("# Two\n")
    committer.commit_notes()
    assert user(home, "show", f"HEAD:knowledge/{name}") == "# Two\n"
    (home / "knowledge/deep").mkdir()
    file.rename(home / "knowledge/deep" / name)
    committer.commit_notes()
    assert files_of(home) == {f"knowledge/{name}", f"knowledge/deep/{name}"}
    assert status(home) == ""
    (home / "knowledge/deep" / name).unlink()
    committer.commit_notes()
    assert files_of(home) == {f"knowledge/deep/{name}"}
    assert status(home) == ""
    user(home, "fsck", "--strict")


def test_all_odd_names_go_into_one_commit(home: Path, committer: NoteCommitter) -> None:
    for name in ODD_NAMES:
        note(home, f"knowledge/{name}")
    assert len(committer.commit_notes().commits) == 1
    assert files_of(home) == {f"knowledge/{name}" for name in ODD_NAMES}
    assert status(home) == ""


def test_a_file_that_becomes_a_folder_and_back_is_committed_as_it_is(
    home: Path, committer: NoteCommitter
) -> None:
    file = note(home, "knowledge/thing")
    committer.commit_notes()
    file.unlink()
    note(home, "knowledge/thing/inside.md")
    committer.commit_notes()
    assert "knowledge/thing/inside.md" in Git(home).tree("HEAD")
    assert status(home) == ""
    (home / "knowledge/thing/inside.md").unlink()
    (home / "knowledge/thing").rmdir()
    note(home, "knowledge/thing")
    committer.commit_notes()
    assert "knowledge/thing" in Git(home).tree("HEAD")
    assert status(home) == ""
    user(home, "fsck", "--strict")


def test_bytes_of_a_note_are_committed_as_they_are(home: Path, committer: NoteCommitter) -> None:
    data = b"\xff\xfe\x00crlf\r\nno end"
    (home / "knowledge/raw.bin").write_bytes(data)
    committer.commit_notes()
    assert Git(home).read("HEAD", "knowledge/raw.bin") == data
    assert status(home) == ""


def test_an_executable_note_leaves_the_index_clean_and_stays_executable(
    home: Path, committer: NoteCommitter
) -> None:
    note(home, "knowledge/run.sh", "#!/bin/sh\n").chmod(0o755)
    committer.commit_notes()
    assert Git(home).tree("HEAD")["knowledge/run.sh"].mode == "100755"
    assert status(home) == ""
    (home / "knowledge/run.sh").chmod(0o644)
    committer.commit_notes()
    assert Git(home).tree("HEAD")["knowledge/run.sh"].mode == "100644"
    assert status(home) == ""


def test_two_thousand_notes_are_committed_changed_and_deleted(home: Path, committer: NoteCommitter) -> None:
    paths = [home / f"knowledge/many/{number}.md" for number in range(2000)]
    paths[0].parent.mkdir()
    for file in paths:
        file.write_text(f"{file.name}\n")
    committer.commit_notes()
    assert len(files_of(home)) == 2000
    for file in paths:
        file.write_text("changed\n")
    committer.commit_notes()
    for file in paths:
        file.unlink()
    committer.commit_notes()
    assert len(files_of(home)) == 2000
    assert status(home) == ""


# ---------------------------------------------------------------- what is not committed is named


def test_links_and_pipes_are_left_and_named(home: Path, committer: NoteCommitter, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n")
    (home / "knowledge/link.md").symlink_to(tmp_path / "secret")
    (home / "knowledge/folder").symlink_to(tmp_path)
    before = head(home)
    assert [problem.where for problem in committer.commit_notes().left] == [
        "knowledge/folder",
        "knowledge/link.md",
    ]
    assert head(home) == before


def test_a_note_that_turned_into_a_pipe_or_a_link_is_neither_read_nor_deleted(
    home: Path, committer: NoteCommitter, tmp_path: Path
) -> None:
    one, two = note(home, "knowledge/one.md"), note(home, "knowledge/two.md")
    committer.commit_notes()
    (tmp_path / "secret").write_text("secret\n")
    one.unlink()
    os.mkfifo(one)
    two.unlink()
    two.symlink_to(tmp_path / "secret")
    before = head(home)
    assert [problem.where for problem in committer.commit_notes().left] == [
        "knowledge/one.md",
        "knowledge/two.md",
    ]
    assert head(home) == before


def test_a_folder_that_turned_into_a_link_leads_nowhere(
    home: Path, committer: NoteCommitter, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "_index.md").write_text("hush-hush\n")
    (home / "knowledge/people/_index.md").unlink()
    (home / "knowledge/people").rmdir()
    (home / "knowledge/people").symlink_to(outside)
    outcome = committer.commit_notes()
    assert "knowledge/people/_index.md" in [problem.where for problem in outcome.left]
    assert "hush-hush" not in user(home, "log", "-p")


def test_a_hard_link_to_a_file_elsewhere_is_left_and_named(
    home: Path, committer: NoteCommitter, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret\n")
    os.link(tmp_path / "secret", home / "knowledge/hard.md")
    outcome = committer.commit_notes()
    assert [problem.where for problem in outcome.left] == ["knowledge/hard.md"]
    assert outcome.commits == ()


def test_a_repository_inside_knowledge_is_left_and_named(home: Path, committer: NoteCommitter) -> None:
    inner = home / "knowledge/inner"
    user(home, "init", "-q", str(inner))
    note(home, "knowledge/inner/a.md")
    user(inner, "add", "a.md")
    user(inner, "commit", "-q", "-m", "theirs")
    note(home, "knowledge/ours.md")
    outcome = committer.commit_notes()
    assert [problem.where for problem in outcome.left] == ["knowledge/inner/"]
    assert files_of(home) == {"knowledge/ours.md"}


def test_only_the_folders_of_notes_are_looked_after(home: Path, committer: NoteCommitter) -> None:
    for path in ("knowledge/good.md", "raw/elsewhere.md", "other.md", "somewhere/else.md"):
        note(home, path)
    assert len(committer.commit_notes().commits) == 1
    assert files_of(home) == {"knowledge/good.md"}


def test_what_gitignore_excludes_is_not_committed(home: Path, committer: NoteCommitter) -> None:
    for name in ("knowledge/a.tmp", "knowledge/.env", "knowledge/id.key", "knowledge/secrets/x.md"):
        note(home, name)
    assert committer.commit_notes().commits == ()


# ---------------------------------------------------------------- beside the user


def test_staged_work_of_the_user_stays_staged_and_is_not_swept_in(home: Path, memory: Memory) -> None:
    note(home, "elsewhere.txt", "mine\n")
    note(home, "knowledge/mine.md", "mine\n")
    note(home, "knowledge/people/_index.md", "mine\n")
    user(home, "add", "elsewhere.txt", "knowledge/mine.md", "knowledge/people/_index.md")
    staged = user(home, "diff", "--cached")
    note(home, "knowledge/ours.md")
    transcript = say_something(memory)
    worked = memory.commit()
    assert user(home, "diff", "--cached") == staged
    assert [files_of(home, name) for name in worked.commits] == [{"knowledge/ours.md"}]
    assert files_of(home, "HEAD~1") == {transcript}
    assert [(problem.where, problem.what) for problem in worked.problems] == [
        ("knowledge/mine.md", "is staged by you, so it is yours to commit."),
        ("knowledge/people/_index.md", "is staged by you, so it is yours to commit."),
    ]
    user(home, "commit", "-q", "-m", "mine")
    assert files_of(home) == {"elsewhere.txt", "knowledge/mine.md", "knowledge/people/_index.md"}
    assert status(home) == ""


def test_a_staged_rename_is_the_users(home: Path, committer: NoteCommitter) -> None:
    user(home, "mv", "knowledge/people/_index.md", "knowledge/people/all.md")
    before = status(home)
    outcome = committer.commit_notes()
    assert outcome.commits == ()
    assert {problem.where for problem in outcome.left} == {
        "knowledge/people/_index.md",
        "knowledge/people/all.md",
    }
    assert status(home) == before


def test_a_note_the_user_means_to_add_is_left_and_named(home: Path, committer: NoteCommitter) -> None:
    note(home, "knowledge/new.md")
    user(home, "add", "-N", "knowledge/new.md")
    outcome = committer.commit_notes()
    assert (outcome.commits, [problem.where for problem in outcome.left]) == ((), ["knowledge/new.md"])


def test_unstaged_edits_outside_the_notes_are_left_as_they_are(home: Path, committer: NoteCommitter) -> None:
    note(home, "README.md", "one\n")
    user(home, "add", "README.md")
    user(home, "commit", "-q", "-m", "mine", "--no-verify")
    note(home, "README.md", "two\n")
    note(home, "knowledge/ours.md")
    committer.commit_notes()
    assert files_of(home) == {"knowledge/ours.md"}
    assert status(home) == " M README.md\0"


@contextmanager
def editing(home: Path, *arguments: str) -> Iterator[Callable[[], int]]:
    """The user's `git commit`, waiting in an editor until `finish` is called."""
    done = home.parent / "close-the-editor"
    began = home.parent / "editor-is-open"
    script = home.parent / "editor"
    script.write_text(
        f'#!/bin/sh\necho theirs > "$1"\ntouch "{began}"\nwhile [ ! -e "{done}" ]; do sleep 0.02; done\n'
    )
    script.chmod(0o755)
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", "commit", *arguments]
    environment = {**os.environ, "GIT_EDITOR": str(script)}
    process = subprocess.Popen(
        command, cwd=home, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def finish() -> int:
        done.touch()
        return process.wait(20)

    try:
        deadline = time.monotonic() + 20
        while not began.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield finish
    finally:
        finish()


@pytest.mark.parametrize("how", [["-a"], [], ["knowledge/people/_index.md"]])
def test_while_the_user_writes_a_commit_message_ours_waits_and_both_succeed(
    home: Path, memory: Memory, git_log: GitLog, how: list[str]
) -> None:
    note(home, "knowledge/people/_index.md", "theirs\n")
    if not how:
        user(home, "add", "knowledge/people/_index.md")
    with editing(home, *how) as finish:
        with memory.session() as session:
            session.message("user", "Meanwhile.")
        sealed = session.end()
        assert sealed is not None
        assert (sealed.commit, "in the middle of a git command" in sealed.waiting) == (None, True)
        assert "in the middle of a git command" in memory.commit().waiting
        assert finish() == 0
    assert git_log("-1")[0].subject == "theirs"
    assert files_of(home) == {"knowledge/people/_index.md"}
    worked = memory.commit()
    assert worked.waiting == ""
    assert files_of(home) == {session.path}
    assert status(home) == ""


def test_the_users_editor_is_also_seen_when_the_home_is_reached_through_a_link(home: Path) -> None:
    link = home.parent / "link"
    link.symlink_to(home)
    note(home, "knowledge/people/_index.md", "theirs\n")
    with editing(home, "-a") as finish:
        lock = home / ".git/index.lock"
        os.utime(lock, (time.time() - 300,) * 2)
        assert note_committer(link, lambda: NOON).commit_notes().waiting
        assert finish() == 0
    assert status(home) == ""


def _detach(home: Path) -> Callable[[], object]:
    user(home, "checkout", "-q", "--detach")
    return lambda: user(home, "switch", "-q", "main")


def _conflict(home: Path) -> None:
    """Two branches that cannot be merged without a person."""
    user(home, "switch", "-q", "-c", "side")
    note(home, "x.txt", "side\n")
    user(home, "add", "x.txt")
    user(home, "commit", "-q", "--no-verify", "-m", "side")
    user(home, "switch", "-q", "main")
    note(home, "x.txt", "main\n")
    user(home, "add", "x.txt")
    user(home, "commit", "-q", "--no-verify", "-m", "main")


def _stuck(home: Path, *command: str) -> Callable[[], object]:
    _conflict(home)
    with pytest.raises(subprocess.CalledProcessError):
        user(home, *command)
    return lambda: user(home, command[0], "--abort")


@pytest.mark.parametrize(
    ("what", "begin"),
    [
        ("HEAD is detached", _detach),
        ("a merge is in progress", lambda home: _stuck(home, "merge", "side")),
        ("a rebase is in progress", lambda home: _stuck(home, "rebase", "side")),
        ("a cherry-pick is in progress", lambda home: _stuck(home, "cherry-pick", "side")),
        ("a revert is in progress", lambda home: _stuck(home, "revert", "--no-edit", "side")),
    ],
)
def test_in_the_middle_of_something_commits_wait_and_nothing_is_lost(
    home: Path, memory: Memory, git_log: GitLog, what: str, begin: Callable[[Path], Callable[[], object]]
) -> None:
    finish = begin(home)
    before = head(home)
    with memory.session() as session:
        session.message("user", "Said meanwhile.")
    sealed = session.end()
    note(home, "knowledge/meanwhile.md")
    assert sealed is not None
    assert what in sealed.waiting
    assert what in memory.commit().waiting
    assert (home / (session.path or "")).is_file()
    assert head(home) == before
    finish()
    worked = memory.commit()
    assert worked.waiting == ""
    assert [commit.subject.split(":")[0] for commit in git_log("-2")] == ["memory", "conversation"]
    assert files_of(home, "HEAD~1") == {session.path}
    assert status(home) == ""


def test_a_commit_on_another_branch_leaves_main_alone_and_comes_with_the_merge(
    home: Path, memory: Memory
) -> None:
    user(home, "switch", "-q", "-c", "explore/idea")
    main = user(home, "rev-parse", "main")
    path = say_something(memory)
    assert user(home, "rev-parse", "main") == main
    user(home, "switch", "-q", "main")
    assert not (home / path).exists()
    user(home, "merge", "-q", "explore/idea")
    assert (home / path).is_file()
    assert {item.state for item in memory.verify()} == {"proved"}


# ---------------------------------------------------------------- locks


def test_a_young_index_lock_is_somebodys_and_is_respected(home: Path, committer: NoteCommitter) -> None:
    note(home, "knowledge/a.md")
    (home / ".git/index.lock").touch()
    assert "in the middle of a git command" in committer.commit_notes().waiting
    assert (home / ".git/index.lock").exists()


def test_an_old_index_lock_stops_no_commit_is_left_and_the_index_learns_later(
    home: Path, committer: NoteCommitter
) -> None:
    lock = home / ".git/index.lock"
    lock.touch()
    os.utime(lock, (time.time() - 300,) * 2)
    note(home, "knowledge/a.md")
    (home / "knowledge/people/_index.md").unlink()
    assert committer.commit_notes().commits
    assert lock.exists()
    assert committer.commit_notes().commits == ()  # what the index does not know is not taken for staged
    lock.unlink()
    assert committer.commit_notes().commits == ()
    assert status(home) == ""


@pytest.mark.parametrize("name", ["refs/heads/main.lock", "HEAD.lock", "packed-refs.lock"])
def test_an_old_lock_of_a_dead_git_is_cleared_and_the_commit_goes_through(
    home: Path, committer: NoteCommitter, name: str
) -> None:
    lock = home / ".git" / name
    lock.touch()
    os.utime(lock, (time.time() - 300,) * 2)
    note(home, "knowledge/a.md")
    assert committer.commit_notes().commits
    assert files_of(home) == {"knowledge/a.md"}
    assert status(home) == ""


def test_a_young_lock_of_unknown_owner_is_not_cleared(home: Path, memory: Memory) -> None:
    lock = home / ".git/refs/heads/main.lock"
    lock.touch()
    before = head(home)
    with memory.session() as session:
        session.message("user", "Kept anyway.")
    sealed = session.end()
    assert sealed is not None
    assert "not made" in sealed.waiting
    assert lock.exists()
    assert head(home) == before
    lock.unlink()
    memory.recover()
    assert files_of(home) == {session.path}


@pytest.mark.parametrize("name", ["refs/heads/main.lock", "index.lock"])
def test_a_young_lock_that_our_own_dead_git_left_is_cleared_at_once(
    home: Path, committer: NoteCommitter, name: str
) -> None:
    (home / ".tacit/git-busy").touch()
    (home / ".git" / name).touch()
    note(home, "knowledge/a.md")
    if name == "index.lock":
        # Nobody can tell whose it is until it is old; it is ours once the next commit finds our mark.
        os.utime(home / ".git" / name, (time.time() - 90,) * 2)
        os.utime(home / ".tacit/git-busy", (time.time() - 100,) * 2)
    assert committer.commit_notes().commits
    assert not (home / ".git" / name).exists()
    assert not (home / ".tacit/git-busy").exists()
    assert status(home) == ""


def test_a_lock_older_than_our_death_is_not_ours(home: Path, committer: NoteCommitter) -> None:
    lock = home / ".git/refs/heads/main.lock"
    lock.touch()
    os.utime(lock, (time.time() - 30,) * 2)
    (home / ".tacit/git-busy").touch()
    note(home, "knowledge/a.md")
    with pytest.raises(Exception, match="not made"):
        committer.commit_notes()
    assert lock.exists()


# ---------------------------------------------------------------- transcripts


def test_a_transcript_is_committed_once_also_after_a_crash_between_commit_and_clean_up(
    home: Path, memory: Memory
) -> None:
    path = say_something(memory)
    record = {
        "opening": {
            "session_id": "ses_x",
            "started": NOON.isoformat(),
            "session_key": "agent:main:main",
            "agent": "main",
            "channel": None,
            "model": None,
        },
        "path": path,
        "name": "x",
        "detached": False,
        "sha256": None,
    }
    (home / ".tacit/sessions").mkdir(exist_ok=True)
    (home / ".tacit/sessions/ses_x.json").write_text(json.dumps(record))
    before = head(home)
    assert memory.recover().commits == ()
    assert head(home) == before
    assert list((home / ".tacit/sessions").iterdir()) == []


def test_a_transcript_that_came_by_hand_is_committed_with_its_hash(
    home: Path, memory: Memory, git_log: GitLog
) -> None:
    path = say_something(memory)
    copy = path.replace("ses_", "ses_copied")
    (home / copy).write_bytes((home / path).read_bytes())
    worked = memory.commit()
    assert len(worked.commits) == 1
    assert git_log("-1")[0].trailer("Session") == [copy]
    assert {item.state for item in memory.verify()} == {"proved"}


# ---------------------------------------------------------------- push


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    place = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(place)], check=True)
    return place


def test_nothing_is_pushed_by_default_even_with_a_remote(home: Path, remote: Path) -> None:
    user(home, "remote", "add", "origin", str(remote))
    memory = at(home, datetime.now().astimezone(), remote="origin")
    say_something(memory)
    memory.commit()
    assert user(remote, "for-each-ref") == ""


def test_auto_push_sends_what_was_committed(home: Path, remote: Path) -> None:
    memory = at(home, datetime.now().astimezone(), auto_push=True, remote=str(remote))
    say_something(memory)
    for text in ("one\n", "two\n"):
        note(home, "knowledge/a.md", text)
        assert memory.commit().problems == ()
    assert user(remote, "rev-parse", "main") == user(home, "rev-parse", "main")


def test_a_push_that_fails_is_a_problem_and_no_error(home: Path, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "none.git")
    memory = at(home, datetime.now().astimezone(), auto_push=True, remote=nowhere)
    note(home, "knowledge/a.md")
    worked = memory.commit()
    assert len(worked.commits) == 1
    assert [(problem.where, problem.level) for problem in worked.problems] == [(nowhere, "warning")]
    assert status(home) == ""

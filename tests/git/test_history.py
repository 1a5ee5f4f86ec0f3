"""Questions to the past, asked of a small story with known answers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from tacit.config import Config
from tacit.errors import GitError, TacitError, UnsafePath, UsageError
from tacit.git.attributes import is_lfs_pointer, make_lfs_pointer
from tacit.git.committer import Committer
from tacit.git.history import History
from tacit.home.layout import Home
from tacit.memory import Memory
from tests.git.committers import note_committer

CET = timezone(timedelta(hours=1))
NOTE = "knowledge/projects/kiln.md"
TEN = "".join(f"line {number}\n" for number in range(10))


def user(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments]
    return os.fsdecode(subprocess.run(command, cwd=root, capture_output=True, check=True).stdout)


def day(text: str) -> datetime:
    return datetime.strptime(f"2030-{text}", "%Y-%m-%d %H:%M").replace(tzinfo=CET)


class Story:
    """A home whose clock can be set."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.now = day("02-16 12:00")
        self.memory = Memory(Home(home), Config(), zone=CET, now=lambda: self.now)
        self.history: History = self.memory.history

    def write(self, when: str, *notes: tuple[str, str | None]) -> str:
        """Write or delete notes and commit them at a moment."""
        self.now = day(when)
        for path, text in notes:
            file = self.home / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                file.unlink()
            else:
                file.write_text(text)
        made = note_committer(self.home, lambda: self.now).commit_notes().commits
        assert len(made) == 1
        return made[0]

    def tree(self) -> dict[str, bytes]:
        return {
            str(file.relative_to(self.home)): file.read_bytes()
            for file in self.home.rglob("*")
            if file.is_file() and ".git" not in file.parts and ".tacit" not in file.parts
        }

    def state(self) -> tuple[object, ...]:
        """All that an undo that is refused must leave as it was."""
        index = user(self.home, "ls-files", "-s")
        return (self.tree(), user(self.home, "rev-parse", "HEAD"), index, self.status())

    def status(self) -> str:
        return user(self.home, "status", "--porcelain")


@pytest.fixture
def story(home: Path) -> Story:
    return Story(home)


@pytest.fixture
def kiln(story: Story) -> Story:
    story.write("02-16 09:00", (NOTE, "# Kiln\n\nFire at 1200.\n"))
    story.write("02-17 10:00", (NOTE, "# Kiln\n\nFire at 1220.\nSlowly.\n"))
    story.write("02-18 11:00", (NOTE, None), ("knowledge/people/ada.md", "Ada fires the kiln.\n"))
    story.now = day("02-18 12:00")
    return story


# ---------------------------------------------------------------- when


def test_when_tells_every_coming_and_going_oldest_first(kiln: Story) -> None:
    found = kiln.history.when("Fire at 12")
    assert [(f"{item.commit.when:%m-%d %H:%M}", item.path, item.line, item.appeared) for item in found] == [
        ("02-16 09:00", NOTE, "Fire at 1200.", True),
        ("02-18 11:00", NOTE, "Fire at 1220.", False),
    ]
    exact = kiln.history.when("1220")
    assert [(item.commit.when.day, item.appeared) for item in exact] == [(17, True), (18, False)]


def test_when_knows_the_session_that_taught_it(story: Story) -> None:
    with story.memory.session() as session:
        session.message("user", "Note it.")
        session.knowledge("created", NOTE)
    name = story.write("02-17 10:00", (NOTE, "cone six\n"))
    (found,) = story.history.when("cone six")
    assert (found.commit.name, found.commit.session) == (name, session.path)


def test_when_looks_into_conversations_topics_and_the_archive_too(story: Story) -> None:
    with story.memory.session() as session:
        session.message("user", "quokka in a talk")
    story.write("02-17 10:00", ("topics/q.md", "---\ntriggers: [x]\n---\nquokka in a topic\n"))
    story.write("02-18 10:00", ("archive/q.md", "quokka in the archive\n"))
    assert [item.path for item in story.history.when("quokka")] == [
        session.path,
        "topics/q.md",
        "archive/q.md",
    ]


def test_when_finds_what_the_first_commit_brought(story: Story) -> None:
    assert story.history.when("triggers:")[0].commit.subject == "maintenance: lay out the home"


def test_what_was_never_there_is_never_found(kiln: Story) -> None:
    assert kiln.history.when("unicorn") == []


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_when_wants_words(kiln: Story, text: str) -> None:
    with pytest.raises(UsageError, match="Say what to look for"):
        kiln.history.when(text)


@pytest.mark.parametrize("text", ["--output=pwned", "-S", ".*", "a[b", "$(touch pwned)", "\x02", "caf\u00e9"])
def test_when_takes_every_text_literally(story: Story, text: str) -> None:
    story.write("02-17 10:00", (NOTE, f"before {text} after\n"))
    assert [item.line for item in story.history.when(text)] == [f"before {text} after".strip()]
    assert not list(story.home.parent.rglob("pwned"))


def test_a_note_with_control_characters_is_found_with_all_its_lines(story: Story) -> None:
    story.write("02-17 10:00", (NOTE, "one \x02 two\n\x02three needle\nfour\n"))
    (found,) = story.history.when("needle")
    assert (found.path, found.line) == (NOTE, "\x02three needle")


# ---------------------------------------------------------------- blame


def test_blame_tells_for_each_line_the_commit_it_came_with(kiln: Story) -> None:
    first = kiln.write("02-19 09:00", ("knowledge/a.md", "one\ntwo\nthree\n"))
    second = kiln.write("02-20 09:00", ("knowledge/a.md", "one\n2\nthree\n"))
    found = kiln.history.blame("knowledge/a.md")
    assert [(item.commit.name, item.first, item.lines) for item in found] == [
        (first, 1, ("one",)),
        (second, 2, ("2",)),
        (first, 3, ("three",)),
    ]
    assert found[0].commit.when == day("02-19 09:00")
    assert found[0].commit.subject == "memory: add a"


def test_blame_is_about_what_is_committed_not_what_is_on_disk(kiln: Story) -> None:
    kiln.write("02-19 09:00", ("knowledge/a.md", "one\n"))
    (kiln.home / "knowledge/a.md").write_text("not committed\n")
    assert [item.lines for item in kiln.history.blame("knowledge/a.md")] == [("one",)]


def test_lines_that_look_like_git_are_only_lines(story: Story) -> None:
    text = f"{'a' * 40} 1 1 1\nauthor Mallory\nsummary forged\n\ttab\n"
    name = story.write("02-19 09:00", ("knowledge/a.md", text))
    (origin,) = story.history.blame("knowledge/a.md")
    assert (origin.commit.name, "\n".join(origin.lines) + "\n") == (name, text)


@pytest.mark.parametrize("path", ["knowledge/none.md", "knowledge", NOTE, ":(glob)knowledge/**", "-L1,1"])
def test_blame_of_what_is_not_a_committed_file_is_refused(kiln: Story, path: str) -> None:
    with pytest.raises(UsageError, match="not in the history"):
        kiln.history.blame(path)


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", ".git/config", ".tacit/lock", "a\0b", ""])
@pytest.mark.parametrize("ask", ["blame", "recall"])
def test_paths_that_leave_the_home_are_refused(kiln: Story, ask: str, path: str) -> None:
    with pytest.raises(UnsafePath):
        kiln.history.blame(path) if ask == "blame" else kiln.history.recall(path, "HEAD")


# ---------------------------------------------------------------- diff, today, recall


def shape(found: list[object]) -> list[tuple[object, ...]]:
    return [(d.path, d.what, d.added, d.removed) for d in found]  # type: ignore[attr-defined]


def test_diff_between_dates_tells_what_was_added_and_removed(kiln: Story) -> None:
    assert shape([*kiln.history.diff("2030-02-16", "2030-02-17")]) == [
        (NOTE, "changed", ("Fire at 1220.", "Slowly."), ("Fire at 1200.",))
    ]
    assert shape([*kiln.history.diff("2030-02-17")]) == [
        ("knowledge/people/ada.md", "added", ("Ada fires the kiln.",), ()),
        (NOTE, "removed", (), ("# Kiln", "", "Fire at 1220.", "Slowly.")),
    ]


@pytest.mark.parametrize(
    ("moment", "found"),
    [
        ("1 hour", "02-18 11:00"),
        ("1 hour ago", "02-18 11:00"),
        ("1day", "02-17 10:00"),
        ("2 days", "02-16 09:00"),
        ("yesterday", "02-17 10:00"),
        ("2030-02-16", "02-16 09:00"),
        ("2030-02-17T09:59:59", "02-16 09:00"),
        ("2030-02-17T10:00", "02-17 10:00"),
        ("2030-02-17T09:00:00+00:00", "02-17 10:00"),
        ("2030-02-17 10:00", "02-17 10:00"),
        ("9999-12-31", "02-18 11:00"),
        ("now", "02-18 11:00"),
        ("today", "02-18 11:00"),
        ("HEAD", "02-18 11:00"),
        ("main", "02-18 11:00"),
    ],
)
def test_a_moment_is_the_last_commit_until_then(kiln: Story, moment: str, found: str) -> None:
    name = kiln.history.at(moment)
    assert name is not None
    assert kiln.history.describe(name).when == day(found)


@pytest.mark.parametrize(
    "moment",
    ["1969-12-31", "1970-01-01", "1970-01-02", "1972-06-01", "0001-01-01", "99999 years", "99999 weeks"],
)
def test_before_the_first_commit_there_was_nothing(kiln: Story, moment: str) -> None:
    assert kiln.history.at(moment) is None
    assert {d.what for d in kiln.history.diff(moment)} == {"added"}
    assert kiln.history.diff(moment, moment) == []
    with pytest.raises(UsageError, match="did not exist"):
        kiln.history.recall(NOTE, moment)


def test_tags_and_commits_full_and_short_are_moments(kiln: Story) -> None:
    name = kiln.history.at("2030-02-17")
    assert name is not None
    user(kiln.home, "tag", "memory/before/move", name)
    user(kiln.home, "tag", "-a", "-m", "x", "memory/milestone/annotated", name)
    for moment in ("memory/before/move", "memory/milestone/annotated", name, name[:10]):
        assert kiln.history.at(moment) == name


@pytest.mark.parametrize(
    "moment",
    [
        "", "tomorrow", "@{1}", "@{yesterday}", "HEAD@{1}", "--all", "--output=pwned", "-1", ":/memory", "zz",
        "dead", "HEAD:knowledge", "refs/heads/main", "main\n", "2030-13-01", "2030-02-30", "\x1b[2J",
        "..", "HEAD..main", "memory/*",
    ],
)  # fmt: skip
def test_what_is_no_moment_is_refused_with_examples(kiln: Story, moment: str) -> None:
    with pytest.raises(UsageError, match="is not a moment"):
        kiln.history.at(moment)
    assert not list(kiln.home.parent.rglob("pwned"))


@pytest.mark.parametrize("moment", ["a\0b", "\ud800"])
def test_a_moment_that_git_cannot_be_given_is_an_error_in_words(kiln: Story, moment: str) -> None:
    with pytest.raises(TacitError):
        kiln.history.at(moment)


def test_diff_can_be_asked_backwards(kiln: Story) -> None:
    assert shape([*kiln.history.diff("2030-02-17", "2030-02-16")]) == [
        (NOTE, "changed", ("Fire at 1200.",), ("Fire at 1220.", "Slowly."))
    ]


def test_today_is_what_changed_since_local_midnight(kiln: Story) -> None:
    assert [d.path for d in kiln.history.today()] == ["knowledge/people/ada.md", NOTE]
    kiln.now = day("02-19 00:00")
    assert kiln.history.today() == []


@pytest.mark.parametrize(
    "name",
    ['qu"ote.md', "new\nline.md", "tab\t.md", "back\\slash.md", "two words.md", "caf\u00e9.md", "esc\x1b.md"],
)
@pytest.mark.parametrize("text", ["text\n", ""])
def test_diff_and_when_name_files_exactly(story: Story, name: str, text: str) -> None:
    path = f"knowledge/{name}"
    story.write("02-17 10:00", (path, text))
    assert [(d.path, d.what) for d in story.history.diff("2030-02-16")] == [(path, "added")]
    story.write("02-18 10:00", (path, None))
    assert [(d.path, d.what) for d in story.history.diff("2030-02-17")] == [(path, "removed")]
    if text:
        assert [item.path for item in story.history.when("text\n") if item.path == path] == [path, path]


def test_a_note_whose_lines_look_like_a_diff_is_told_right(story: Story) -> None:
    text = "diff --git a/x b/x\n+++ b/evil\n@@ -1 +1 @@\n-- minus\n"
    story.write("02-17 10:00", (NOTE, text))
    assert shape([*story.history.diff("2030-02-16")]) == [(NOTE, "added", tuple(text.splitlines()), ())]


def test_recall_gives_the_file_as_it_was(kiln: Story) -> None:
    assert kiln.history.recall(NOTE, "2030-02-16") == "# Kiln\n\nFire at 1200.\n"
    assert kiln.history.recall(NOTE, "1 day") == "# Kiln\n\nFire at 1220.\nSlowly.\n"
    for moment in ("HEAD", "2030-02-15"):
        with pytest.raises(UsageError, match=f"did not exist at {moment}"):
            kiln.history.recall(NOTE, moment)


def test_recall_of_a_folder_is_refused(kiln: Story) -> None:
    with pytest.raises(UsageError, match="did not exist"):
        kiln.history.recall("knowledge", "HEAD")


# ---------------------------------------------------------------- undo


def test_undo_takes_a_change_back_with_one_new_commit_and_a_clean_index(story: Story) -> None:
    story.write("02-16 09:00", (NOTE, "one\n"))
    bad = story.write("02-17 09:00", (NOTE, "two\n"), ("knowledge/new.md", "x\n"))
    made = story.history.undo(bad)
    assert (story.home / NOTE).read_text() == "one\n"
    assert not (story.home / "knowledge/new.md").exists()
    assert user(story.home, "rev-parse", "HEAD~1").strip() == bad
    assert story.status() == ""
    assert user(story.home, "log", "-1", "--format=%B", made).strip() == (
        f"maintenance: undo {bad[:10]} (memory: add new; update projects/kiln)\n\nThis reverts commit {bad}."
    )


def test_undo_of_a_deletion_brings_the_file_back(story: Story) -> None:
    story.write("02-16 09:00", (NOTE, "one\n"))
    bad = story.write("02-17 09:00", (NOTE, None))
    story.history.undo(bad[:10])
    assert (story.home / NOTE).read_text() == "one\n"
    assert story.status() == ""


def test_undo_keeps_later_edits_elsewhere_in_the_file_committed_or_not(story: Story) -> None:
    story.write("02-16 09:00", (NOTE, TEN))
    bad = story.write("02-17 09:00", (NOTE, TEN.replace("line 1\n", "WRONG\n")))
    story.write("02-18 09:00", (NOTE, TEN.replace("line 1\n", "WRONG\n").replace("line 5", "better 5")))
    (story.home / NOTE).write_text(
        TEN.replace("line 1\n", "WRONG\n").replace("line 5", "better 5").replace("line 9", "fresh 9")
    )
    story.history.undo(bad)
    expected = TEN.replace("line 5", "better 5").replace("line 9", "fresh 9")
    assert (story.home / NOTE).read_text() == expected
    assert user(story.home, "show", f"HEAD:{NOTE}") == expected
    assert story.status() == ""


def test_undo_of_an_undo_gives_the_change_back(story: Story) -> None:
    story.write("02-16 09:00", (NOTE, "one\n"))
    change = story.write("02-17 09:00", (NOTE, "two\n"))
    story.history.undo(story.history.undo(change))
    assert (story.home / NOTE).read_text() == "two\n"
    assert story.status() == ""


def _later_edit_in_the_way(story: Story) -> str:
    story.write("02-16 09:00", (NOTE, TEN), ("knowledge/a.md", "one\n"))
    bad = story.write("02-17 09:00", (NOTE, TEN.replace("line 1\n", "WRONG\n")), ("knowledge/a.md", "two\n"))
    (story.home / NOTE).write_text(TEN.replace("line 1\n", "ANOTHER\n"))
    return bad


def _deleted_since(story: Story) -> str:
    bad = story.write("02-17 09:00", (NOTE, "x\n"), ("knowledge/a.md", "one\n"))
    (story.home / NOTE).unlink()
    return bad


def _first_commit(story: Story) -> str:
    return user(story.home, "rev-list", "--max-parents=0", "HEAD").strip()


def _transcript(story: Story) -> str:
    with story.memory.session() as session:
        session.message("user", "sealed")
    return user(story.home, "rev-parse", "HEAD").strip()


def _undone_already(story: Story) -> str:
    story.write("02-16 09:00", (NOTE, "one\n"))
    bad = story.write("02-17 09:00", (NOTE, "two\n"))
    story.history.undo(bad)
    return bad


def _staged_by_the_user(story: Story) -> str:
    bad = story.write("02-17 09:00", (NOTE, TEN))
    (story.home / NOTE).write_text(TEN + "more\n")
    user(story.home, "add", NOTE)
    (story.home / NOTE).write_text(TEN)
    return bad


def _detached(story: Story) -> str:
    bad = story.write("02-17 09:00", (NOTE, "x\n"))
    user(story.home, "checkout", "-q", "--detach")
    return bad


def _merge_in_progress(story: Story) -> str:
    bad = story.write("02-17 09:00", (NOTE, "x\n"))
    (story.home / ".git/MERGE_HEAD").write_text(user(story.home, "rev-parse", "HEAD"))
    return bad


def _merge(story: Story) -> str:
    user(story.home, "checkout", "-q", "-b", "side")
    story.write("02-17 09:00", ("knowledge/side.md", "x\n"))
    user(story.home, "checkout", "-q", "main")
    user(story.home, "merge", "-q", "--no-ff", "side")
    return user(story.home, "rev-parse", "HEAD").strip()


def _binary_edited_since(story: Story) -> str:
    story.write("02-16 09:00", ("knowledge/a.bin", "\0one"))
    bad = story.write("02-17 09:00", ("knowledge/a.bin", "\0two"))
    (story.home / "knowledge/a.bin").write_text("\0three")
    return bad


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        (_later_edit_in_the_way, "edited in the same place"),
        (_deleted_since, "has changed since"),
        (_first_commit, "first commit"),
        (_transcript, "sealed transcript"),
        (_undone_already, "nothing to undo"),
        (_staged_by_the_user, "staged by you"),
        (_detached, "HEAD is detached"),
        (_merge_in_progress, "a merge is in progress"),
        (_merge, "a merge"),
        (_binary_edited_since, "edited in the same place"),
    ],
)
def test_an_undo_that_cannot_be_clean_changes_nothing_at_all(
    story: Story, prepare: Callable[[Story], str], why: str
) -> None:
    commit = prepare(story)
    before = story.state()
    with pytest.raises(TacitError, match=why):
        story.history.undo(commit)
    assert story.state() == before


def test_undo_leaves_the_users_other_work_alone(story: Story) -> None:
    bad = story.write("02-17 09:00", (NOTE, "x\n"))
    (story.home / "mine.txt").write_text("staged\n")
    user(story.home, "add", "mine.txt")
    (story.home / "knowledge/people/_index.md").write_text("unstaged\n")
    before = story.status()
    story.history.undo(bad)
    assert story.status() == before
    assert user(story.home, "show", "--format=", "--name-only", "HEAD").split() == [NOTE]


def test_undo_of_an_unknown_commit_says_so(story: Story) -> None:
    with pytest.raises(UsageError, match="is not a commit"):
        story.history.undo("0123456789")


@pytest.mark.parametrize(
    "name", ["2030-02-18", "1 day", "yesterday", "now", "HEAD", "main", "memory/x", "abcd"]
)
def test_undo_takes_a_commit_and_no_other_moment(kiln: Story, name: str) -> None:
    user(kiln.home, "tag", "memory/x")
    user(kiln.home, "tag", "abcd")  # a tag that looks like the name of a commit
    before = kiln.state()
    with pytest.raises(UsageError, match="is not a commit"):
        kiln.history.undo(name)
    assert kiln.state() == before


def test_an_undo_whose_second_file_is_refused_puts_the_first_back(story: Story, tmp_path: Path) -> None:
    story.write("02-16 09:00", ("knowledge/a.md", "one\n"), ("knowledge/z/b.md", "one\n"))
    bad = story.write("02-17 09:00", ("knowledge/a.md", "two\n"), ("knowledge/z/b.md", None))
    (story.home / "knowledge/z").rmdir()
    (story.home / "knowledge/z").symlink_to(tmp_path)
    before = story.state()
    with pytest.raises(UnsafePath):
        story.history.undo(bad)
    assert story.state() == before
    assert not (tmp_path / "b.md").exists()


def test_an_undo_whose_commit_fails_puts_every_file_back(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.write("02-16 09:00", ("knowledge/a.md", "one\n"), ("knowledge/b.md", "one\n"))
    bad = story.write("02-17 09:00", ("knowledge/a.md", "two\n"), ("knowledge/b.md", None))
    bad_file = story.home / "knowledge/a.md"
    bad_file.chmod(0o640)
    before = story.state()

    def fail(*_: object) -> str:
        raise GitError("no")

    monkeypatch.setattr(Committer, "commit", fail)
    with pytest.raises(GitError):
        story.history.undo(bad)
    assert story.state() == before
    assert bad_file.stat().st_mode & 0o777 == 0o640


def test_undo_keeps_and_restores_what_may_be_run(story: Story) -> None:
    story.write("02-16 09:00", ("knowledge/run.sh", "one\n"), ("knowledge/gone.sh", "x\n"))
    for name in ("run.sh", "gone.sh"):
        (story.home / "knowledge" / name).chmod(0o755)
    runnable = story.write("02-16 10:00")
    bad = story.write("02-17 09:00", ("knowledge/run.sh", "two\n"), ("knowledge/gone.sh", None))
    story.history.undo(bad)
    for name in ("run.sh", "gone.sh"):
        assert (story.home / "knowledge" / name).stat().st_mode & 0o100
        assert user(story.home, "ls-tree", "HEAD", f"knowledge/{name}").startswith("100755")
    assert story.status() == ""
    story.history.undo(runnable)
    assert not (story.home / "knowledge/run.sh").stat().st_mode & 0o111
    assert (story.home / "knowledge/run.sh").read_text() == "one\n"
    assert story.status() == ""


PICTURE = "attachments/kiln.png"


@pytest.fixture
def large(story: Story, monkeypatch: pytest.MonkeyPatch) -> Story:
    """A picture that git-lfs keeps, and its deletion."""
    monkeypatch.setattr("tacit.git.note_committer.is_lfs_installed", lambda: True)
    story.write("02-16 09:00", (PICTURE, "the picture"))
    assert is_lfs_pointer(user(story.home, "show", f"HEAD:{PICTURE}").encode())
    return story


def test_undo_of_a_deleted_attachment_brings_back_its_bytes_and_not_the_pointer(large: Story) -> None:
    bad = large.write("02-17 09:00", (PICTURE, None))
    again = large.history.undo(bad)
    assert (large.home / PICTURE).read_text() == "the picture"
    assert user(large.home, "show", f"HEAD:{PICTURE}").encode() == make_lfs_pointer(b"the picture")
    assert large.memory.services.note_committer.note_changes().edits == ()
    large.history.undo(again)
    assert not (large.home / PICTURE).exists()


def test_undo_of_an_attachment_whose_bytes_are_elsewhere_is_refused(large: Story) -> None:
    bad = large.write("02-17 09:00", (PICTURE, None))
    shutil.rmtree(large.home / ".git/lfs")
    before = large.state()
    with pytest.raises(UsageError, match="git lfs fetch --all"):
        large.history.undo(bad)
    assert large.state() == before


def test_when_shows_what_was_said_rather_than_a_title_made_from_it(story: Story) -> None:
    with story.memory.session() as session:
        session.message("user", "quokka")
    (found,) = story.history.when("quokka")
    assert (found.path, found.line) == (session.path, "quokka")


# ---------------------------------------------------------------- settings of the repository


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("log.showRoot", "false"),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.orderFile", "/nonexistent"),
        ("diff.context", "9"),
        ("diff.interHunkContext", "9"),
        ("diff.wsErrorHighlight", "all"),
        ("color.ui", "always"),
        ("blame.coloring", "highlightRecent"),
        ("blame.date", "relative"),
        ("log.date", "relative"),
        ("log.follow", "true"),
        ("log.mailmap", "true"),
        ("grep.patternType", "fixed"),
        ("i18n.logOutputEncoding", "UTF-16"),
        ("trailer.separators", "="),
        ("core.quotePath", "true"),
        ("core.abbrev", "4"),
        ("format.pretty", "oneline"),
        ("log.excludeDecoration", "*"),
    ],
)
def test_answers_do_not_depend_on_settings_of_the_repository(kiln: Story, key: str, value: str) -> None:
    def answers() -> list[object]:
        history = kiln.history
        asked = (
            history.when("Fire at"),
            history.when("triggers:"),
            history.blame("knowledge/people/ada.md"),
            history.diff("2030-02-16"),
            history.today(),
            history.recall(NOTE, "2030-02-16"),
            history.last_commit_of("memory"),
            [str(item) for item in kiln.memory.verify()],
        )
        return list(asked)

    with kiln.memory.session() as session:
        session.message("user", "caf\u00e9")
    before = answers()
    user(kiln.home, "config", key, value)
    assert answers() == before


def test_blame_hides_no_commit_that_the_repository_wants_hidden(kiln: Story) -> None:
    name = kiln.write("02-19 09:00", ("knowledge/people/ada.md", "Ada fires the big kiln.\n"))
    (kiln.home / ".git/hidden").write_text(f"{name}\n")
    user(kiln.home, "config", "blame.ignoreRevsFile", ".git/hidden")
    assert [item.commit.name for item in kiln.history.blame("knowledge/people/ada.md")] == [name]

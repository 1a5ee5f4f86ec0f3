"""Forgetting leaves nothing of it behind, and everything else as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import unicodedata
import zlib
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tacit as product
from tacit.context import receipts
from tacit.context.model import Receipt, Section
from tacit.erase import plan
from tacit.erase import service as forgetting
from tacit.erase.erasure import Erasure, iterate_numbered
from tacit.erase.service import ErasureReport
from tacit.erase.spellings import TextEraser
from tacit.erase.targets import TextErasure, match_origin
from tacit.errors import Busy, HomeError, UsageError
from tacit.git.attributes import make_lfs_pointer, store_lfs_object
from tacit.git.repair import list_ref_locks
from tacit.home import files
from tacit.home.layout import Home
from tacit.learn import window_proposals
from tacit.learn.model import CHANGE_KINDS, Change, ChangeSet, Source
from tacit.markdown.comment import TRUSTS
from tacit.memory import Memory
from tacit.topics.decision_log import GateLog
from tacit.topics.model import TopicDecision
from tacit.transcripts import format as form
from tacit.transcripts import spool
from tacit.transcripts.capture import count_tokens
from tacit.transcripts.event_ids import EventIds, NotedEvent

if TYPE_CHECKING:
    from tests.conftest import Tacit

SECRET = "blue heron 7719"
NOTE = "knowledge/people/noor.md"
PERSON = ("-c", "user.name=U", "-c", "user.email=u@example.com", "-c", "core.hooksPath=/dev/null")


def user(root: Path, *arguments: str, stdin: bytes | None = None) -> str:
    """git as the person runs it."""
    done = subprocess.run(["git", *PERSON, *arguments], cwd=root, input=stdin, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode("utf-8", "surrogateescape")


def put(home: Path, path: str, text: str | bytes) -> Path:
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def commit(home: Path, path: str, text: str | bytes, message: str = "a note") -> str:
    put(home, path, text)
    user(home, "add", "-f", "--", path)
    user(home, "commit", "-q", "-m", message)
    return user(home, "rev-parse", "HEAD").strip()


def say(memory: Memory, *messages: str, session_id: str = "talk", key: str = "agent:main:main") -> str:
    with memory.session(session_id=session_id, session_key=key) as session:
        for at, text in enumerate(messages):
            session.message("agent" if at % 2 else "user", text)
    assert session.path is not None
    return session.path


def receive(
    home: Path, name: str, message: str, session_id: str = "", sections: tuple[Section, ...] = ()
) -> None:
    at = "2026-11-02T10:00:00+01:00"
    key, kind = "agent:main:main", "main_session"
    kept = Receipt(name, at, key, session_id, kind, "main", "h", message, 1, 1, 1, sections, ())
    assert receipts.append(Home(home), kept) == ""


def drop(home: Path, what: Erasure | str) -> tuple[ErasureReport, list[str]]:
    meant = forgetting.text_erasure(what) if isinstance(what, str) else what
    return product.open(home).services.erasure.carry_out(meant, lambda step: None)


def forgotten(home: Path, what: Erasure | str = SECRET) -> ErasureReport:
    report, left = drop(home, what)
    assert left == []
    assert not report.plan.is_empty
    sound(home)
    return report


def sound(home: Path) -> None:
    assert (
        subprocess.run(["git", "fsck", "--full", "--strict"], cwd=home, capture_output=True).returncode == 0
    )
    assert [item for item in product.open(home).verify() if not item.good] == []
    assert list((home / ".tacit").glob("forget-*")) == []
    assert list_ref_locks(home / ".git") == []


def residue(root: Path, text: str = SECRET) -> list[str]:
    """Raw bytes of all files, their names, and all objects of git, also those that nothing leads to."""
    forms = [text.encode(), text.encode("utf-16-le"), json.dumps(text)[1:-1].encode()]
    found = []
    for here, folders, names in os.walk(root):
        found += [f"{here}/{name}" for name in (*folders, *names) if text in name]
        for name in names:
            file = Path(here, name)
            data = (
                os.fsencode(os.readlink(file))
                if file.is_symlink()
                else file.read_bytes()
                if file.is_file()
                else b""
            )
            found += [str(file)] if any(form in data for form in forms) else []
    command = ["git", "cat-file", "--batch-all-objects", "--batch", "--unordered"]
    objects = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    return found + ["an object"] * any(form in objects for form in forms)


def pictures(home: Path) -> list[tuple[str, dict[str, str]]]:
    """All commits, by who made them when, with every file that they have."""
    found = []
    for line in user(home, "log", "--all", "--topo-order", "--format=%H %an %ae %ad %cd").splitlines():
        name, _, who = line.partition(" ")
        rows = user(home, "ls-tree", "-r", "-z", name).split("\0")[:-1]
        found.append((who, {path: meta for meta, _, path in (row.partition("\t") for row in rows)}))
    return found


# ---------------------------------------------------------------- a text and its spellings


@pytest.mark.parametrize(
    "written",
    [
        "it is blue heron 7719.",
        "it is blue heron\n7719.",
        "> it is blue\n> heron 7719.",
        "it is blue\r\n   heron 7719.",
        r'{"text": "blue\nheron 7719"}',
        "blue\u00a0heron 7719",
        "blue&#xA;heron 7719",
    ],
)
def test_a_text_is_found_however_it_is_wrapped_or_escaped(written: str) -> None:
    words = TextEraser(SECRET)
    assert words.are_in(written.encode())
    assert "heron" not in words.erase_text(written)


@pytest.mark.parametrize(
    "written", ["Blue heron 7719", "blue heron 771", "blue heron, 7719", "blueheron 7719"]
)
def test_other_words_and_other_capitals_are_not_the_text(written: str) -> None:
    assert not TextEraser(SECRET).are_in(written.encode())


@pytest.mark.parametrize("text", ["a+b (c)* [d] $", r"C:\new\path", 'say "no" → ok', "50% & <more>", "^.*$"])
def test_characters_that_mean_something_elsewhere_are_taken_as_they_are(text: str) -> None:
    words = TextEraser(text)
    for written in (text, json.dumps(text), json.dumps(text, ensure_ascii=False)):
        assert words.are_in(written.encode())
    assert not words.are_in(b"a b c d, C:newpath, say no")


def test_text_of_any_script_is_found_composed_decomposed_and_in_other_encodings() -> None:
    words = TextEraser("Müller Žižka 東京")
    for written in ("Müller Žižka 東京", unicodedata.normalize("NFD", "Müller Žižka 東京")):
        assert words.are_in(written.encode())
    assert words.are_in(json.dumps("Müller Žižka 東京").encode())
    assert words.are_in("\ufeffMüller Žižka 東京".encode("utf-16-le"))
    assert TextEraser("Müller").are_in("Müller".encode("latin-1"))
    assert TextEraser("Café").are_in("«Café» ok".encode("latin-1"))
    assert not TextEraser("Café").are_in("Caf\u91d1".encode())  # begins with the same bytes


@pytest.mark.parametrize("given", ["Caf\u00e9 Zo\u00eb", "Cafe\u0301 Zoe\u0308"])
@pytest.mark.parametrize("written", ["Caf\u00e9 Zo\u00eb", "Cafe\u0301 Zoe\u0308", "Cafe\u0301 Zo\u00eb"])
def test_accents_may_be_composed_in_one_word_and_not_in_the_next(given: str, written: str) -> None:
    words = TextEraser(given)
    assert words.are_in(written.encode())
    assert words.are_in(json.dumps(written).encode())
    assert not words.are_in(b"Cafe Zoe")


def test_a_text_of_digits_is_not_sought_in_hashes() -> None:
    words = TextEraser("abcd12")
    assert words.are_in(b"the code is abcd12.")
    assert not words.are_in(b"Transcript-SHA256: " + b"abcd12ef" * 8)


def test_a_text_of_digits_is_sought_quickly_in_a_message_of_nothing_but_digits() -> None:
    text, message = TextEraser("4711"), b"4711" * 100_000
    began = time.process_time()
    assert list(text.spans(message)) == []
    assert time.process_time() - began < 5.0  # it took minutes when each find was followed to both its ends


def test_fewer_than_four_characters_are_refused() -> None:
    with pytest.raises(UsageError, match="4 characters"):
        TextEraser("  abc ")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- one\n- blue heron 7719\n- two\n", "- one\n- two\n"),
        ("1. blue heron 7719.\n2. x\n", "2. x\n"),
        ("a blue heron 7719 b\n", "a b\n"),
        ("say blue heron 7719\n", "say\n"),
        ("- [ ] blue heron 7719 soon\n", "- [ ] soon\n"),
        ("a blue\n  heron 7719 b\n", "a\n  b\n"),
        ("x\r\nblue heron 7719\r\ny\r\n", "x\r\ny\r\n"),
        (
            "---\nname: blue heron 7719\ntags: [a, blue heron 7719]\n---\nx\n",
            "---\nname: forgotten\ntags: [a, forgotten]\n---\nx\n",
        ),
        ("---\ntags:\n  - blue heron 7719\n  - b\n---\nx\n", "---\ntags:\n  - b\n---\nx\n"),
        ("---\nline_count: 6\n---\nblue heron 7719\na\nb\n", "---\nline_count: 5\n---\na\nb\n"),
        ("blue heron 7719", None),
        ("blue heron 77blue heron 771919 x", "x"),
    ],
)
def test_a_note_without_the_text_reads_on(before: str, after: str | None) -> None:
    left = TextEraser(SECRET).without("knowledge/a.md", before.encode())
    assert (None if left is None else left.decode()) == after


def test_whole_lines_go_where_that_is_asked_for() -> None:
    left = TextEraser(SECRET).without("a.md", b"one\nsay blue heron 7719 now\ntwo\n", lines=True)
    assert left == b"one\ntwo\n"


# ---------------------------------------------------------------- where it may stand


def test_a_note_that_was_edited_later_loses_it_in_every_version(home: Path) -> None:
    commit(home, NOTE, f"# Noor\n\n- {SECRET}\n- tea\n", "one")
    commit(home, NOTE, f"# Noor\n\n- {SECRET}\n- tea, no milk\n", "two")
    commit(home, NOTE, "# Noor\n\n- tea, no milk\n", "three")
    forgotten(home)
    assert residue(home) == []
    versions = [user(home, "show", f"HEAD~{back}:{NOTE}") for back in (2, 1, 0)]
    assert versions == ["# Noor\n\n- tea\n", "# Noor\n\n- tea, no milk\n", "# Noor\n\n- tea, no milk\n"]


def test_a_sealed_transcript_keeps_its_form_and_is_proved(home: Path, memory: Memory) -> None:
    old = say(memory, f"The {SECRET} is mine", f"Noted:\n{SECRET} it is.", "## 10:00 — user")
    other = say(memory, "Nothing to see", session_id="other")
    untouched = (home / other).read_bytes()
    report = forgotten(home)
    new = next(place.becomes for place in report.plan.places if place.path == old and not place.line)
    assert new.endswith("-talk-the-forgotten-is-mine.md")
    assert not (home / old).exists()
    read = memory.transcript(new)
    assert [turn.text for turn in read.messages] == [
        "The [forgotten] is mine",
        "Noted:\n[forgotten] it is.",
        "## 10:00 — user",
    ]
    assert not read.problems
    assert read.title == read.fields["topic"] == "The [forgotten] is mine"
    assert (read.fields["tokens_in"], read.fields["tokens_out"]) == count_tokens(read.turns)
    assert (home / new).stat().st_mode & 0o777 == 0o400
    assert {item.path: item.state for item in memory.verify()} == {new: "proved", other: "proved"}
    assert (home / other).read_bytes() == untouched
    assert residue(home) == []
    assert residue(home, "blue-heron") == []


def test_a_beginning_that_was_cut_in_title_and_name_goes_too(home: Path, memory: Memory) -> None:
    long = "the quick brown heron jumps over a lazy dog and then over the moon at night"
    say(memory, long, "ok")
    forgotten(home, long)
    assert residue(home, "quick") == []


def test_tools_speakers_and_frontmatter_of_a_transcript_keep_their_form(home: Path, memory: Memory) -> None:
    with memory.session(session_id="talk") as session:
        session.message("user", "Hello", speaker=SECRET)
        session.tool(SECRET, f"look for {SECRET}", f"two {SECRET}")
        session.knowledge("updated", NOTE, f"knows {SECRET}")
        session.attachment(f"attachments/{SECRET}.txt")
        session.end(tags=("a", SECRET))
    put(home, f"attachments/{SECRET}.txt", "x\n")
    memory.commit()
    forgotten(home)
    assert session.path is not None
    read = memory.transcript(session.path)
    assert not read.problems
    assert [type(turn).__name__ for turn in read.turns] == [
        "Message",
        "ToolCall",
        "KnowledgeChange",
        "Attachment",
    ]
    assert (home / "attachments/forgotten.txt").read_text() == "x\n"
    assert read.turns[3].path == "attachments/forgotten.txt"  # type: ignore[union-attr]
    assert read.messages[0].speaker == "[forgotten]"
    assert read.fields["tags"] == ["a", "[forgotten]"]
    assert residue(home) == []


def test_a_record_that_somebody_touched_still_does_not_fit_its_mark(home: Path, memory: Memory) -> None:
    path = say(memory, "One", f"Two {SECRET}")
    data = (home / path).read_bytes().replace(b"Two", b"Too")
    words = TextErasure(SECRET, lines=False, under="", count=count_tokens)
    read = form.parse((words.file(path, data) or b"").decode(), path)
    assert [problem.level for problem in read.problems] == ["error"]


def test_the_next_part_of_a_session_names_the_first_by_its_new_name(home: Path, memory: Memory) -> None:
    say(memory, f"Begin {SECRET}")
    second = say(memory, "Go on")
    forgotten(home)
    first = str(memory.transcript(second).fields["continues"])
    assert (home / first).exists()
    assert residue(home) == []


def test_messages_names_and_people_of_commits_and_tags(home: Path) -> None:
    commit(home, f"knowledge/{SECRET}/{SECRET}.md", "x\n", f"about {SECRET}")
    user(home, "-c", f"user.name={SECRET}", "commit", "-q", "--allow-empty", "-m", "by somebody")
    user(home, "tag", "-a", "-m", f"for {SECRET}", "memory/milestone/one")
    user(home, "tag", "light", "HEAD~1")
    dates = user(home, "log", "--format=%ad %cd")
    forgotten(home)
    assert residue(home) == []
    assert user(home, "log", "--format=%an %s", "-2").splitlines() == [
        "forgotten by somebody",
        "U about [forgotten]",
    ]
    assert user(home, "log", "--format=%ad %cd") == dates
    assert (home / "knowledge/forgotten/forgotten.md").read_text() == "x\n"
    assert user(home, "tag", "-l", "-n1", "memory/milestone/one").split() == [
        "memory/milestone/one",
        "for",
        "[forgotten]",
    ]
    assert user(home, "rev-parse", "light") == user(home, "rev-parse", "HEAD~1")
    assert user(home, "status", "--short") == ""


def test_branches_and_tags_that_are_named_after_it(home: Path) -> None:
    commit(home, NOTE, "x\n")
    user(home, "switch", "-q", "-c", "explore/heron7719")
    user(home, "tag", "heron7719")
    forgotten(home, "heron7719")
    assert residue(home, "heron7719") == []
    assert user(home, "branch", "--show-current").strip() == "explore/forgotten"
    assert user(home, "rev-parse", "forgotten", "HEAD").split()[0] == user(home, "rev-parse", "main").strip()


def listed(home: Path, revision: str = "HEAD") -> dict[str, str]:
    """Every note about people, as a commit has it."""
    names = user(home, "ls-tree", "-r", "-z", "--name-only", revision, "knowledge/people").split("\0")[:-1]
    return {name.rpartition("/")[2]: user(home, "show", f"{revision}:{name}") for name in names}


def test_two_files_do_not_become_one_when_both_lose_their_names(home: Path) -> None:
    commit(home, "knowledge/people/forgotten.md", "first\n")
    commit(home, f"knowledge/people/{SECRET}.md", "second\n")
    commit(home, f"knowledge/people/{SECRET}/one.md", "third\n")
    commit(home, "knowledge/people/green ibis 8820.md", f"[[knowledge/people/{SECRET}.md]]\n")
    forgotten(home)
    forgotten(home, "green ibis 8820")
    kept = {name: text for name, text in listed(home).items() if name != "_index.md"}
    assert kept == {
        "forgotten.md": "first\n",
        "forgotten-2.md": "second\n",
        "one.md": "third\n",
        "forgotten-3.md": "[[knowledge/people/forgotten-2.md]]\n",
    }
    assert user(home, "status", "--short") == ""
    assert residue(home) == residue(home, "green ibis") == []


@pytest.mark.parametrize("name", ["heron7719", "avocet7719"])  # behind and before `forgotten` in the list
@pytest.mark.parametrize("taken", ["main~1", "main"])
def test_branches_keep_their_logs_and_do_not_become_one(home: Path, name: str, taken: str) -> None:
    logged = branched(home, name)
    user(home, "branch", "-f", "explore/forgotten", taken)
    forgotten(home, name)
    on_the_second_branch(home, name, logged, taken)


@pytest.mark.parametrize("name", ["heron7719", "avocet7719"])
@pytest.mark.parametrize("point", ["switch:_copy_logs:1", "switch:_move_head:1", "switch:move_refs:3"])
def test_a_branch_gets_the_same_name_after_a_kill(home: Path, tacit: Tacit, name: str, point: str) -> None:
    logged = branched(home, name)
    assert killed(home, point, name).returncode == -9
    assert tacit("forget", name, "--yes").code == 0
    sound(home)
    on_the_second_branch(home, name, logged)


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("a.b/forgotten", "a.b/forgotten-2"),
        ("a/forgotten.md", "a/forgotten-2.md"),
        (".forgotten", ".forgotten-2"),
    ],
)
def test_a_number_stands_before_the_ending(name: str, second: str) -> None:
    assert list(islice(iterate_numbered(name), 2)) == [name, second]


@pytest.mark.parametrize("is_tracked", [True, False])
def test_a_file_gets_the_same_name_after_a_kill(home: Path, tacit: Tacit, is_tracked: bool) -> None:
    (commit if is_tracked else put)(home, "knowledge/people/forgotten.md", "first\n")
    (commit if is_tracked else put)(home, f"knowledge/people/{SECRET}.md", "second\n")
    assert killed(home, "tree:remove:1", SECRET).returncode == -9  # it has both names now
    assert len(list((home / "knowledge/people").glob("*.md"))) == 4
    assert tacit("forget", SECRET, "--yes").code == 0
    sound(home)
    kept = {file.name: file.read_text() for file in (home / "knowledge/people").glob("f*.md")}
    assert kept == {"forgotten.md": "first\n", "forgotten-2.md": "second\n"}
    assert (user(home, "status", "--short") == "") is is_tracked
    assert residue(home) == []


def branched(home: Path, name: str) -> str:
    """HEAD is on a branch of this name, and the name that it would get is taken. Returns its log."""
    commit(home, NOTE, "x\n")
    user(home, "branch", "explore/forgotten", "HEAD~1")
    user(home, "switch", "-q", "-c", f"explore/{name}")
    commit(home, NOTE, "y\n")
    user(home, "reset", "-q", "--hard", "HEAD~1")
    return user(home, "log", "-g", "--format=%H", f"explore/{name}")


def on_the_second_branch(home: Path, name: str, logged: str, taken: str = "main~1") -> None:
    branches = user(home, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()
    assert branches == ["explore/forgotten", "explore/forgotten-2", "main"]
    assert user(home, "branch", "--show-current").strip() == "explore/forgotten-2"
    assert user(home, "rev-parse", "explore/forgotten") == user(home, "rev-parse", taken)
    assert user(home, "log", "-g", "--format=%H", "explore/forgotten-2") == logged
    assert residue(home, name) == []


def test_a_text_with_a_slash_moves_no_file(home: Path) -> None:
    commit(home, NOTE, "see knowledge/people for more\n")
    _, left = drop(home, "knowledge/people")
    assert left == [".git/index"]  # which has the paths of all files
    assert (home / NOTE).read_text() == "see for more\n"
    assert user(home, "status", "--short") == ""


def test_a_transcript_is_named_anew_wherever_it_is_named(home: Path, memory: Memory) -> None:
    path = say(memory, f"The {SECRET} is mine")
    stem = Path(path).stem
    commit(home, NOTE, f"[[{stem}]], [[{stem}.md|it]], {path}: as in {stem}.\n")
    forgotten(home)
    new = stem.replace("blue-heron-7719", "forgotten")
    place = path.replace(stem, new)
    assert (home / NOTE).read_text() == f"[[{new}]], [[{new}.md|it]], {place}: as in {new}.\n"


def test_what_lies_about_in_the_git_directory(home: Path) -> None:
    commit(home, NOTE, f"{SECRET}\ntea\n")
    user(home, "config", "branch.main.description", f"about {SECRET}")
    for name in (
        "description",
        "info/exclude",
        "hooks/x.sample",
        "MERGE_MSG",
        "gc.log",
        "rr-cache/1/preimage",
    ):
        put(home, f".git/{name}", f"a {SECRET}\nb\n")
    put(home, ".git/x.bundle", b"\0" + SECRET.encode())
    put(home, ".git/0123.broken", zlib.compress(b"blob 15\0" + SECRET.encode()))
    put(home, ".git/objects/pack/tmp_pack_1", SECRET)
    forgotten(home)
    assert residue(home) == []
    assert user(home, "config", "branch.main.description").strip() == "about forgotten"
    assert (home / ".git/description").read_text() == "a forgotten\nb\n"
    assert not (home / ".git/0123.broken").exists()


def test_stashes_are_kept_without_it_all_of_them(home: Path) -> None:
    for number in (1, 2, 3):
        put(home, "drafts/d.md", f"draft {number}\n{SECRET}\n")
        user(home, "add", "drafts/d.md")
        user(home, "stash", "push", "-q", "-m", f"{SECRET} {number}")
    forgotten(home)
    assert residue(home) == []
    assert [line.partition(": ")[2] for line in user(home, "stash", "list").splitlines()] == [
        f"On main: [forgotten] {number}" for number in (3, 2, 1)
    ]
    user(home, "stash", "pop", "-q", "stash@{2}")
    assert (home / "drafts/d.md").read_text() == "draft 1\n"


def test_other_branches_and_work_trees_lose_it_too(home: Path, tmp_path: Path) -> None:
    commit(home, NOTE, "tea\n")
    user(home, "branch", "aside")
    tree, alone = tmp_path / "tree", tmp_path / "alone"
    user(home, "worktree", "add", "-q", str(tree), "-b", "extract/one")
    commit(tree, NOTE, f"tea\n{SECRET}\n")
    user(home, "worktree", "add", "-q", "--detach", str(alone), "extract/one")
    aside = user(home, "rev-parse", "aside")
    forgotten(home)
    for place in (home, tree, alone):
        assert residue(place) == []
        assert user(place, "status", "--short") == ""
        assert (place / NOTE).read_text() == "tea\n"
    assert user(home, "rev-parse", "aside", "main") == aside * 2
    assert user(alone, "rev-parse", "HEAD") == user(tree, "rev-parse", "HEAD")


def test_notes_of_git_stay_with_their_commits(home: Path) -> None:
    commit(home, NOTE, f"{SECRET}\ntea\n")
    user(home, "notes", "add", "-m", f"first {SECRET}")
    commit(home, NOTE, "tea\n")
    user(home, "notes", "add", "-m", "second")
    forgotten(home)
    assert [user(home, "notes", "show", name).strip() for name in ("HEAD~1", "HEAD")] == [
        "first",
        "second",
    ]
    assert residue(home) == []


def test_commits_that_only_a_log_remembers_are_kept_without_it(home: Path) -> None:
    commit(home, NOTE, f"{SECRET}\ntea\n", "thrown away")
    user(home, "reset", "-q", "--hard", "HEAD~1")
    forgotten(home)
    assert residue(home) == []
    assert user(home, "show", f"main@{{1}}:{NOTE}") == "tea\n"


def test_a_message_that_names_a_commit_names_the_new_one(home: Path) -> None:
    name = commit(home, NOTE, f"{SECRET}\ntea\n")
    commit(home, NOTE, "tea\n", f"undo {name[:10]}\n\nThis reverts commit {name}.")
    forgotten(home)
    new = user(home, "rev-parse", "HEAD~1").strip()
    assert user(home, "log", "-1", "--format=%B").strip() == f"undo {new[:10]}\n\nThis reverts commit {new}."


def test_work_of_the_user_that_is_not_committed_stays_as_it_is(home: Path) -> None:
    commit(home, NOTE, f"one\n{SECRET}\n")
    commit(home, "knowledge/people/ada.md", "ada\n")
    put(home, NOTE, f"one\nstaged\n{SECRET}\n")
    user(home, "add", NOTE)
    put(home, NOTE, f"one\nstaged\nnot staged\n{SECRET}\n")
    put(home, "knowledge/people/ada.md", "ada staged\n")
    user(home, "add", "knowledge/people/ada.md")
    put(home, "scratch.txt", f"a {SECRET} b\n")
    status = user(home, "status", "--short")
    forgotten(home)
    assert user(home, "status", "--short") == status
    assert user(home, "show", f":{NOTE}") == "one\nstaged\n"
    assert (home / NOTE).read_text() == "one\nstaged\nnot staged\n"
    assert user(home, "show", ":knowledge/people/ada.md") == "ada staged\n"
    assert (home / "scratch.txt").read_text() == "a b\n"
    assert residue(home) == []


def test_files_of_other_kinds(home: Path) -> None:
    commit(home, "attachments/wide.txt", f"\ufeffone {SECRET} two".encode("utf-16-le"))
    commit(home, "attachments/scan.bin", b"\0\1" + SECRET.encode() + b"\0")
    commit(home, "knowledge/reference/dos.md", f"one\r\n{SECRET}\r\ntwo\r\n")
    os.symlink(f"{SECRET}.md", home / "knowledge" / "link.md")
    user(home, "add", "-A")
    user(home, "commit", "-q", "-m", "link")
    report = forgotten(home)
    assert residue(home) == []
    assert (home / "attachments/wide.txt").read_bytes().decode("utf-16") == "one two"
    assert not (home / "attachments/scan.bin").exists()
    assert ("attachments/scan.bin", "removed") in {
        (place.path, place.becomes) for place in report.plan.places
    }
    assert (home / "knowledge/reference/dos.md").read_bytes() == b"one\r\ntwo\r\n"
    assert user(home, "status", "--short") == ""


def test_an_attachment_of_git_lfs_goes_with_its_object(home: Path) -> None:
    data = b"%PDF\0" + SECRET.encode()
    store_lfs_object(home / ".git", data)
    commit(home, "attachments/a.txt", make_lfs_pointer(data))
    put(home, "attachments/a.txt", data)
    assert forgotten(home).plan.large
    assert residue(home) == []
    assert not (home / "attachments/a.txt").exists()
    assert user(home, "ls-tree", "-r", "--name-only", "HEAD", "attachments") == ""


# ---------------------------------------------------------------- beside the files


def test_logs_lose_it_in_place(home: Path) -> None:
    here = Home(home)
    receive(home, "aaaa", f"{SECRET}, please")
    receive(home, "bbbb", "tea")
    cut = "x" * 66 + " " + SECRET
    decision = TopicDecision("2026-11-02T10:00:00", "h", "t", True, 0.5, "activated", "rule", "")
    GateLog(here).append([decision], cut)
    spool.add(str(home), "message", {"text": f"a {SECRET}", "session_key": "agent:main:main"})
    spool.add(str(home), "message", {"text": "b", "session_key": "agent:main:main"})
    logs = [
        *home.glob(".tacit/receipts/*"),
        *home.glob(".tacit/gate/*.jsonl"),
        *home.glob(".tacit/spool/*.jsonl"),
    ]
    before = {file: (file.stat().st_size, file.stat().st_ino) for file in logs}
    put(home, ".tacit/context/0123456789abcdef/ETHOS_CONTEXT.md", SECRET)
    put(home, ".tacit/daemon.log", f"told {SECRET}\nfine\n")
    put(home, ".tacit/sessions/x.json.tmp.0123456789ab", SECRET)
    report = forgotten(home)
    assert set(report.plan.derived) >= {"receipts", "gate log", "spool", "context copies", "daemon log"}
    assert residue(home) == []
    assert residue(home, "blue her") == []
    assert {file: (file.stat().st_size, file.stat().st_ino) for file in logs} == before
    assert [found.message for found in receipts.recent(here, 5)] == ["tea", "[forgotten], please"]
    taken: list[object] = []
    spool.drain(str(home), lambda record: taken.append(record.body["text"]))
    assert taken == ["a [forgotten]", "b"]


def test_hashes_from_which_it_could_be_guessed_go_too(home: Path) -> None:
    commit(home, NOTE, f"{SECRET}\ntea\n")
    told = Section("knowledge", "knowledge", f"{NOTE}:1", 5, 0.5, "words", digest="0123456789abcdef")
    other = replace(told, source="knowledge/people/ada.md:1")
    for name, message, sections in (("aaaa", SECRET, (other,)), ("bbbb", "tea", (told, other))):
        receive(home, name, message, sections=sections)
    put(home, ".tacit/gate/cache.jsonl", '{"key": "0123456789abcdef", "yes": true}\n')
    forgotten(home)
    second, first = receipts.recent(Home(home), 5)
    assert (first.message_hash, second.message_hash) == ("", "h")
    assert [part.digest for part in second.sections] == ["", "0123456789abcdef"]
    assert (home / ".tacit/gate/cache.jsonl").read_bytes() == b""


def test_what_else_was_proposed_with_it_still_waits(home: Path) -> None:
    source = Source("agent:main:main", 1, "user")
    lines = [
        Change(NOTE, None, text, "2026-11-02", CHANGE_KINDS[0], source, TRUSTS[0])
        for text in (f"a {SECRET}", "tea")
    ]
    proposal = ChangeSet("agent:main:main", "s", "2026-11-02T10:00:00+01:00", "cues/1", "flush", tuple(lines))
    assert window_proposals.offer(Home(home), proposal) is None
    forgotten(home)
    assert [change.text for one in window_proposals.list_waiting(Home(home)) for change in one.changes] == [
        "tea"
    ]
    assert residue(home) == []


def test_an_open_session_goes_on_under_its_new_name(home: Path, memory: Memory) -> None:
    session = memory.session(session_id="open", detached=True)
    session.message("user", f"My {SECRET}")
    session.detach()
    forgotten(home)
    again = product.open(home).session(session_id="open")
    again.message("agent", "And on.")
    sealed = again.end()
    assert sealed is not None
    assert sealed.path.endswith("-open-my-forgotten.md")
    assert len(product.open(home).transcript(sealed.path).messages) == 2
    sound(home)
    assert residue(home) == []


def test_the_index_is_made_anew_without_it(home: Path, memory: Memory) -> None:
    commit(home, NOTE, f"# Noor\n\nHer {SECRET} is a bird\n")
    assert memory.search("heron")
    memory.services.searcher.close()
    assert forgotten(home).passages
    assert not list(home.glob(".tacit/memory.db*"))
    fresh = product.open(home)
    assert fresh.search("bird")[0].path == NOTE
    fresh.services.searcher.close()
    assert residue(home) == []


# ---------------------------------------------------------------- sessions and origins


def test_a_session_goes_with_all_its_parts(home: Path, memory: Memory) -> None:
    first = say(memory, "Which engobe for plates?", session_id="one")
    say(memory, "Zirkon too", session_id="one")
    kept = say(memory, "Which clay?", session_id="two")
    commit(home, NOTE, f"Learned in {first}\n", f"memory: x\n\nSession: {first}")
    receive(home, "aaaa", "engobe?", "one")
    data = (home / kept).read_bytes()
    before = len(pictures(home))
    forgotten(home, forgetting.session_erasure("one"))
    for word in ("engobe", "Zirkon", "zirkon"):
        assert residue(home, word) == []
    assert (home / kept).read_bytes() == data
    assert [item.path for item in memory.verify()] == [kept]
    assert (home / NOTE).read_text() == "Learned in forgotten\n"
    assert user(home, "log", "-1", "--format=%B").strip() == "memory: x"
    assert len(pictures(home)) == before - 2  # their commits held nothing else
    assert user(home, "status", "--short") == ""


def test_the_ids_of_its_records_go_with_a_session(home: Path, memory: Memory) -> None:
    path = say(memory, "Which engobe?", session_id="one")
    ids = EventIds(Home(home))
    ids.note("a", NotedEvent("one", 1, "2026-11-02T10:00:00", path))
    ids.note("b", NotedEvent("two", 1, "2026-11-02T10:00:00"))
    forgotten(home, forgetting.session_erasure("one"))
    fresh = EventIds(Home(home))
    assert (fresh.find("a"), fresh.find("b")) == (None, NotedEvent("two", 1, "2026-11-02T10:00:00"))
    assert b'"one"' not in (home / ".tacit/records.jsonl").read_bytes()


def test_files_that_quote_a_session_are_named_and_stay(home: Path, memory: Memory) -> None:
    say(memory, "The old kiln stands behind the mill", session_id="one")
    quoting = say(memory, "You said: THE OLD KILN\nstands behind a hill", session_id="two")
    quoted = say(memory, "You said: the old kiln\n> stands, behind the mill", session_id="three")
    commit(home, NOTE, "The old kiln stands behind it.\n")
    before = {path: (home / path).read_bytes() for path in (quoting, quoted, NOTE)}
    report = forgotten(home, forgetting.session_erasure("one"))
    assert report.plan.similar == [NOTE, quoted, quoting]
    assert {path: (home / path).read_bytes() for path in before} == before


def test_an_origin_is_a_key_and_what_lies_below_it(home: Path, memory: Memory) -> None:
    keys = {
        "a": "agent:main:telegram:direct:99",
        "b": "agent:shop:telegram:direct:99:thread:5",
        "c": "agent:main:telegram:direct:991",
        "d": "agent:main:telegram:group:99",
    }
    paths = {name: say(memory, f"word{name}{name}", session_id=name, key=key) for name, key in keys.items()}
    forgotten(home, forgetting.origin_erasure("telegram:direct:99"))
    assert {name for name, path in paths.items() if (home / path).exists()} == {"c", "d"}
    assert residue(home, "wordaa") == residue(home, "wordbb") == []


@pytest.mark.parametrize(
    ("origin", "key", "meant"),
    [
        ("agent:main:telegram:group:-100", "agent:main:telegram:group:-100", True),
        ("agent:main:telegram:group:-100", "agent:main:telegram:group:-100:topic:7", True),
        ("agent:main:telegram:group:-100", "agent:main:telegram:group:-1001", False),
        ("telegram", "agent:main:telegram:group:-1", True),
        ("telegram:direct:9", "agent:main:telegram:direct:99", False),
        ("direct:99", "agent:main:telegram:direct:99", False),
        ("main", "agent:main:main", True),
        ("cron:daily", "cron:daily", True),
    ],
)
def test_keys_are_compared_by_segments(origin: str, key: str, meant: bool) -> None:
    assert match_origin(origin)("", key) is meant


def test_a_session_that_is_still_open_is_not_forgotten(home: Path, memory: Memory) -> None:
    with memory.session(session_id="live") as session:
        session.message("user", f"My {SECRET}")
        for what in (forgetting.session_erasure("live"), forgetting.text_erasure(SECRET)):
            with pytest.raises(Busy, match="being written"):
                drop(home, what)
        session.detach()
    with pytest.raises(Busy, match="capture end live"):
        drop(home, forgetting.session_erasure("live"))


# ---------------------------------------------------------------- everything else


def test_everything_else_has_the_same_bytes_in_every_commit(home: Path, memory: Memory) -> None:
    for number in range(4):
        say(memory, f"Talk {number}", session_id=f"t{number}")
        commit(home, f"knowledge/reference/n{number}.md", f"note {number}\n")
    first = user(home, "rev-parse", "HEAD").strip()
    user(home, "branch", "clean")
    commit(home, NOTE, f"{SECRET}\ntea\n")
    user(home, "switch", "-q", "-c", "side", "clean")
    commit(home, "knowledge/reference/side.md", "side\n")
    side = user(home, "rev-parse", "HEAD")
    user(home, "switch", "-q", "main")
    user(home, "merge", "-q", "--no-ff", "-m", "merge", "side")
    before, logged = pictures(home), user(home, "reflog").count("\n")
    forgotten(home)
    after = pictures(home)
    assert [who for who, _ in after] == [who for who, _ in before]
    for (_, old), (_, new) in zip(before, after, strict=True):
        assert {path: old[path] for path in old if path != NOTE} == {
            path: new[path] for path in new if path != NOTE
        }
    assert user(home, "rev-parse", "clean").strip() == first
    assert user(home, "rev-parse", "side") == side
    assert user(home, "rev-parse", "HEAD^2") == side
    assert user(home, "reflog").count("\n") == logged


ODD_COMMITS = {
    "signature": (
        "\n\n",
        "\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n abc\n -----END PGP SIGNATURE-----\n\n",
    ),
    "merge tag": ("\n\n", "\nmergetag object abc\n type commit\n tag v\n \n text\n\n"),
    "other header": ("\n\n", "\nHG:extra close:1\n\n"),
}


@pytest.mark.parametrize("kind", ODD_COMMITS)
def test_a_commit_that_is_not_rewritten_keeps_its_name(home: Path, kind: str) -> None:
    """`git fast-export` would lose or refuse each of these."""
    raw = user(home, "cat-file", "commit", "HEAD").replace(*ODD_COMMITS[kind], 1)
    arguments = ("-t", "commit", "-w", "--stdin", "--literally")
    name = user(home, "hash-object", *arguments, stdin=raw.encode()).strip()
    user(home, "branch", "odd", name)
    commit(home, NOTE, f"{SECRET}\ntea\n")
    forgotten(home)
    assert user(home, "rev-parse", "odd").strip() == name


def test_a_rewritten_commit_keeps_every_header_but_its_signature(home: Path) -> None:
    commit(home, NOTE, f"{SECRET}\ntea\n")
    raw = user(home, "cat-file", "commit", "HEAD")
    for kind in ("signature", "other header"):
        raw = raw.replace(*ODD_COMMITS[kind], 1)
    arguments = ("-t", "commit", "-w", "--stdin", "--literally")
    name = user(home, "hash-object", *arguments, stdin=raw.encode()).strip()
    user(home, "branch", "odd", name)
    forgotten(home)
    new = user(home, "cat-file", "commit", "odd")
    assert "HG:extra close:1" in new
    assert "gpgsig" not in new


def test_nothing_of_the_users_runs(home: Path, tmp_path: Path) -> None:
    proof = tmp_path / "ran"
    for name in ("reference-transaction", "post-rewrite", "post-checkout", "pre-auto-gc"):
        put(home, f".git/hooks/{name}", f"#!/bin/sh\necho {name} >> {proof}\n").chmod(0o755)
    for key in ("core.fsmonitor", "filter.x.clean", "filter.x.smudge"):
        user(home, "config", key, f"echo filter >> {proof}; cat")
    commit(home, NOTE, f"{SECRET}\ntea\n")
    proof.unlink(missing_ok=True)
    _, left = drop(home, SECRET)
    assert left == []
    assert not proof.exists()


def test_three_hundred_commits(home: Path) -> None:
    stream = []
    for number in range(300):
        text = f"# Log\n\n{SECRET if number % 50 == 3 else 'tea'} {number}\n".encode()
        stream.append(
            b"commit refs/heads/main\ncommitter t <t@t> %d +0000\ndata 2\nc\n" % (1700000000 + number)
        )
        stream.append(b"from refs/heads/main^0\n" if number == 0 else b"")
        stream.append(
            b"M 100644 inline knowledge/reference/n%d.md\ndata %d\n%s\n" % (number % 7, len(text), text)
        )
    user(home, "fast-import", "--quiet", "--force", stdin=b"".join(stream))
    user(home, "reset", "-q", "--hard")
    before = pictures(home)
    report = forgotten(home)
    assert (len(report.plan.survey.commits), len(report.plan.survey.graph)) == (297, 301)
    assert residue(home) == []
    assert [who for who, _ in pictures(home)] == [who for who, _ in before]


def test_one_file_only(home: Path) -> None:
    commit(home, NOTE, f"{SECRET}\ntea\n", f"about {SECRET}")
    commit(home, "knowledge/people/ada.md", f"{SECRET}\nada\n")
    forgotten(home, forgetting.text_erasure(SECRET, under="knowledge/people/noor.md"))
    assert (home / NOTE).read_text() == "tea\n"
    assert (home / "knowledge/people/ada.md").read_text() == f"{SECRET}\nada\n"
    assert user(home, "show", f"HEAD~1:{NOTE}") == "tea\n"
    assert user(home, "log", "-1", "--format=%s", "HEAD~1").strip() == f"about {SECRET}"


def test_nothing_changes_where_nothing_matches(home: Path) -> None:
    commit(home, NOTE, "Blue Heron 7719\n")
    head = user(home, "rev-parse", "HEAD")
    report, left = drop(home, SECRET)
    assert report.plan.is_empty
    assert report.plan.similar == [NOTE]
    assert left == []
    assert user(home, "rev-parse", "HEAD") == head


def test_what_stays_in_other_capitals_is_named_also_beside_what_goes(home: Path) -> None:
    commit(home, "knowledge/people/old.md", "Blue Heron 7719\n")
    commit(home, "knowledge/people/old.md", "tea\n")
    commit(home, NOTE, f"{SECRET}\n{SECRET.upper()}\n")
    report = forgotten(home)
    assert report.plan.similar == [NOTE]
    assert report.plan.survey.similar == 1
    assert (home / NOTE).read_text() == f"{SECRET.upper()}\n"


def test_what_cannot_be_reached_is_named_and_found_again(home: Path) -> None:
    commit(home, NOTE, f"{SECRET}\ntea\n")
    user(home, "remote", "add", "origin", "https://me:pw@example.org/x.git")
    (home / "scratch").mkdir()
    user(home / "scratch", "init", "-q")
    put(home, "scratch/other.md", SECRET)
    report, left = drop(home, SECRET)
    assert left == ["scratch/other.md"]
    assert any("scratch, a repository of its own" in place for place in report.outside)
    assert any("origin" in place and "pw" not in place for place in report.outside)


# ---------------------------------------------------------------- when it may not be done


def test_it_is_refused_while_the_daemon_runs(home: Path) -> None:
    commit(home, NOTE, f"{SECRET}\n")
    with files.hold_lock(home / ".tacit" / "daemon.lock"), pytest.raises(Busy, match="tacit stop"):
        drop(home, SECRET)


@pytest.mark.parametrize("name", ["MERGE_HEAD", "rebase-merge", "BISECT_LOG"])
def test_it_is_refused_in_the_middle_of_the_users_git_work(home: Path, name: str) -> None:
    commit(home, NOTE, f"{SECRET}\n")
    put(home, f".git/{name}", "x")
    with pytest.raises(Busy, match="in progress"):
        drop(home, SECRET)


def test_it_is_refused_in_a_linked_work_tree(home: Path, tmp_path: Path) -> None:
    user(home, "worktree", "add", "-q", str(tmp_path / "linked"))
    with pytest.raises(HomeError, match="linked work tree"):
        drop(tmp_path / "linked", SECRET)


# ---------------------------------------------------------------- kill -9


KILLED = """
import os, signal, sys
from tacit.cli.main import main
from tacit.erase import disk, plan, rewrite, switch
from tacit.home import files

owner, name, count = sys.argv[1].split(":")
place = {"forget": plan, "switch": switch, "files": disk.WorkTree, "pack": rewrite.Pack,
         "rewrite": rewrite, "derived": disk.Derived, "tree": files.Tree}[owner]
real, calls = getattr(place, name), 0

def deadly(*arguments, **named):
    global calls
    calls += 1
    if calls == int(count):
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments, **named)

setattr(place, name, deadly)
sys.exit(main(sys.argv[2:]))
"""


def killed(home: Path, point: str, *what: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", KILLED, point, "forget", *what, "--yes", "--home", str(home)]
    return subprocess.run(command, capture_output=True)


POINTS = (
    "pack:add:4",
    "rewrite:add_pack:1",
    "derived:_clean_log:1",
    "files:_replace:1",
    "files:_replace:2",
    "switch:_move_refs:1",
    "switch:_move_head:1",
    "switch:_update_indexes:1",
    "switch:_rewrite_logs:1",
    "switch:_remove_leftovers:1",
    "forget:drop_unreachable_objects:1",
    "forget:_find_remaining:1",
)


def furnished(home: Path) -> list[tuple[str, dict[str, str]]]:
    memory = product.open(home)
    say(memory, f"The {SECRET} is mine", "Yes.")
    say(memory, "Tea?", session_id="tea")
    commit(home, NOTE, f"{SECRET}\ntea\n", f"about {SECRET}")
    user(home, "tag", "-a", "-m", SECRET, "one")
    put(home, "drafts/d.md", f"draft {SECRET}\n")
    user(home, "add", "drafts/d.md")
    user(home, "stash", "-q")
    receive(home, "aaaa", SECRET)
    return pictures(home)


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_anywhere_is_finished_by_the_same_command(home: Path, tacit: Tacit, point: str) -> None:
    before = furnished(home)
    done = killed(home, point, SECRET)
    assert done.returncode == -9, done.stderr
    assert subprocess.run(["git", "fsck", "--full"], cwd=home, capture_output=True).returncode == 0
    unfinished = plan.find_unfinished(Home(home))
    assert [problem.where for problem in unfinished] == [
        f".tacit/{file.name}" for file in (home / ".tacit").glob("forget-*")
    ]
    assert len(unfinished) == 1
    assert SECRET not in (home / unfinished[0].where).read_text()
    assert "Run the same command again: tacit forget … --yes" in tacit("doctor").stdout
    again = tacit("forget", SECRET, "--yes")
    assert (again.code, again.stderr.count("error")) == (0, 0), again.stderr
    sound(home)
    assert residue(home) == []
    assert user(home, "status", "--short") == ""
    assert len(user(home, "stash", "list").splitlines()) == 1
    after = pictures(home)
    assert [who for who, _ in after] == [who for who, _ in before]
    for (_, old), (_, new) in zip(before, after, strict=True):
        same = [path for path in old if "-talk-" not in path and path not in (NOTE, "drafts/d.md")]
        assert {path: old[path] for path in same} == {path: new.get(path) for path in same}


def test_a_session_that_was_cut_short_is_finished_too(home: Path, tacit: Tacit) -> None:
    furnished(home)
    for point in (
        "files:_remove_empty_folders:1",
        "switch:_update_indexes:1",
        "forget:drop_unreachable_objects:1",
    ):
        assert killed(home, point, "--session", "talk").returncode == -9
    assert tacit("forget", "--session", "talk", "--yes").code == 0
    sound(home)
    assert residue(home, "is mine") == residue(home, "is-mine") == []
    assert tacit("forget", "--session", "talk").code == 1

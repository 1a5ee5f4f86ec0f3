"""Proof that no sealed transcript was touched."""

from __future__ import annotations

import json
import os
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tacit as product
from tacit.git.commits import CommitPlan, FileChange, import_commits
from tacit.git.repository import Git
from tacit.home.files import digest
from tacit.memory import Memory

if TYPE_CHECKING:
    from tests.conftest import Tacit

BY_HAND = "raw/conversations/2026/02/16/1200-by hand.md"
SEALED = "---\nsession: x\nstarted: 2026-02-16T12:00:00+01:00\nended: 2026-02-16T12:01:00+01:00\n---\n\n# X\n"


def user(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def say(memory: Memory, text: str = "Keep this.") -> str:
    with memory.session() as session:
        session.message("user", text)
    assert session.path is not None
    return session.path


def states(memory: Memory) -> dict[str, str]:
    return {item.path: item.state for item in memory.verify()}


def overwrite(file: Path, data: bytes) -> None:
    """Change the bytes and nothing that a quick look would see."""
    info = file.stat()
    file.chmod(0o600)
    file.write_bytes(data)
    os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))
    file.chmod(info.st_mode)


def test_an_untouched_transcript_is_proved(memory: Memory) -> None:
    assert states(memory) == {}
    path = say(memory)
    assert states(memory) == {path: "proved"}


def test_one_changed_byte_is_found_even_with_size_time_and_rights_kept(home: Path, memory: Memory) -> None:
    good, bad = say(memory, "one"), say(memory, "two")
    data = (home / bad).read_bytes()
    overwrite(home / bad, data[:-2] + bytes([data[-2] ^ 1]) + data[-1:])
    assert states(memory) == {good: "proved", bad: "touched"}
    overwrite(home / bad, data)
    assert states(memory) == {good: "proved", bad: "proved"}


def test_a_touched_transcript_that_was_committed_too_is_still_found(home: Path, memory: Memory) -> None:
    path = say(memory)
    overwrite(home / path, (home / path).read_bytes() + b"forged\n")
    user(home, "commit", "-q", "--no-verify", "-a", "-m", "looks harmless")
    assert states(memory) == {path: "touched"}


def test_a_second_record_of_the_same_path_does_not_win(home: Path, memory: Memory) -> None:
    path = say(memory)
    forged = (home / path).read_bytes() + b"forged\n"
    overwrite(home / path, forged)
    message = f"conversation: x\n\nSession: {path}\nTranscript-SHA256: {digest(forged)}\n"
    import_commits(Git(home), [CommitPlan(message, [FileChange(path, forged)], datetime.now().astimezone())])
    assert states(memory) == {path: "touched"}


def test_trailers_doubled_in_one_commit_prove_nothing_else(home: Path, memory: Memory) -> None:
    path = say(memory)
    forged = (home / path).read_bytes() + b"forged\n"
    overwrite(home / path, forged)
    message = (
        f"conversation: x\n\nSession: other.md\nSession: {path}\n"
        f"Transcript-SHA256: {digest(b'')}\nTranscript-SHA256: {digest(forged)}\n"
    )
    import_commits(
        Git(home), [CommitPlan(message, [FileChange("knowledge/x.md", b"")], datetime.now().astimezone())]
    )
    assert states(memory)[path] == "touched"


def test_a_hash_in_the_text_of_a_message_is_no_record(home: Path, memory: Memory) -> None:
    (home / BY_HAND).parent.mkdir(parents=True)
    (home / BY_HAND).write_text(SEALED)
    user(home, "add", BY_HAND)
    text = f"x\n\nSession: {BY_HAND}\nTranscript-SHA256: {'0' * 64}\n\nand more text after it"
    user(home, "commit", "-q", "-m", text)
    assert states(memory) == {BY_HAND: "proved by its first commit"}


def test_a_missing_transcript_is_named(home: Path, memory: Memory) -> None:
    path = say(memory)
    data = (home / path).read_bytes()
    (home / path).unlink()
    (found,) = memory.verify()
    assert (found.path, found.state, found.good) == (path, "missing", False)
    assert found.detail.startswith(f"It was committed; restore it with: git -C {home} checkout ")
    (home / path).write_bytes(data)
    assert states(memory) == {path: "proved"}


def test_a_deletion_that_was_committed_is_still_named(home: Path, memory: Memory) -> None:
    path = say(memory)
    user(home, "rm", "-q", path)
    user(home, "commit", "-q", "-m", "gone")
    assert states(memory) == {path: "missing"}


def test_a_moved_transcript_is_missing_where_it_was(home: Path, memory: Memory) -> None:
    path = say(memory)
    moved = f"raw/conversations/{Path(path).name}"
    (home / path).rename(home / moved)
    assert states(memory) == {path: "missing", moved: "not committed yet"}


def test_a_transcript_replaced_by_a_link_is_missing(home: Path, memory: Memory, tmp_path: Path) -> None:
    path = say(memory)
    (home / path).rename(tmp_path / "elsewhere.md")
    (home / path).symlink_to(tmp_path / "elsewhere.md")
    assert states(memory) == {path: "missing"}


def test_an_open_session_and_one_that_waits_are_no_problem(home: Path, memory: Memory) -> None:
    session = memory.session()
    session.message("user", "still talking")
    assert session.path is not None
    assert states(memory) == {session.path: "open"}
    (home / ".git/MERGE_HEAD").write_text(user(home, "rev-parse", "HEAD"))
    session.end()
    (home / ".git/MERGE_HEAD").unlink()
    assert states(memory) == {session.path: "not committed yet"}
    assert all(item.good for item in memory.verify())


def test_a_transcript_written_and_committed_by_hand_is_held_against_its_first_commit(
    home: Path, memory: Memory
) -> None:
    (home / BY_HAND).parent.mkdir(parents=True)
    (home / BY_HAND).write_text(SEALED)
    assert states(memory) == {BY_HAND: "not committed yet"}
    user(home, "add", BY_HAND)
    user(home, "commit", "-q", "-m", "by hand")
    assert states(memory) == {BY_HAND: "proved by its first commit"}
    (home / BY_HAND).write_text(SEALED + "edited\n")
    user(home, "commit", "-q", "--no-verify", "-a", "-m", "edited")
    assert states(memory) == {BY_HAND: "touched"}


def test_a_file_without_frontmatter_is_named(home: Path, memory: Memory) -> None:
    (home / "raw/conversations/x.md").write_text("# Just text\n")
    (found,) = memory.verify()
    assert (found.state, found.good) == ("not readable", False)


@pytest.mark.parametrize("name", ["new\nline.md", 'quo"te.md', "-dash.md", "caf\u00e9.md", "a\tb.md"])
def test_odd_names_are_proved_too(home: Path, memory: Memory, name: str) -> None:
    path = f"raw/conversations/{name}"
    (home / path).write_text(SEALED)
    user(home, "add", path)
    user(home, "commit", "-q", "-m", "by hand")
    assert states(memory) == {path: "proved by its first commit"}


def test_three_hundred_transcripts_are_proved_quickly_and_each_is_counted(home: Path, memory: Memory) -> None:
    path = say(memory)
    data = (home / path).read_bytes()
    plans = []
    now = datetime.now().astimezone()
    for number in range(299):
        copy, text = f"raw/conversations/2026/02/16/{number}.md", data + b"%d\n" % number
        (home / copy).parent.mkdir(parents=True, exist_ok=True)
        (home / copy).write_bytes(text)
        message = f"conversation: {number}\n\nSession: {copy}\nTranscript-SHA256: {digest(text)}\n"
        plans.append(CommitPlan(message, [FileChange(copy, text)], now))
    import_commits(Git(home), plans)
    overwrite(home / "raw/conversations/2026/02/16/123.md", data)
    ticks: list[tuple[int, int]] = []
    began = time.monotonic()
    checked = list(memory.verify(lambda done, total: ticks.append((done, total))))
    assert time.monotonic() - began < 5
    assert len(checked) == 300
    assert [item.path for item in checked if not item.good] == ["raw/conversations/2026/02/16/123.md"]
    assert ticks[-1] == (300, 300)


# ---------------------------------------------------------------- the command


def test_the_command_tells_counts_names_what_is_wrong_and_exits_with_one(
    home: Path, memory: Memory, tacit: Tacit
) -> None:
    ran = tacit("verify")
    assert (ran.code, ran.stdout) == (0, "0 transcripts: none yet.\n")
    good, bad = say(memory, "one"), say(memory, "two")
    sealing = user(home, "rev-parse", "HEAD")
    say(memory, "three")
    assert tacit("verify").stdout == "3 transcripts: 3 proved.\n"
    overwrite(home / bad, b"---\nforged\n")
    ran = tacit("verify")
    assert ran.code == 1
    assert ran.stdout.splitlines() == [
        f"TOUCHED: {bad}",
        f"    Its bytes are not those that were sealed. Compare: git -C {home} diff {sealing[:12]} -- {bad}",
        "3 transcripts: 2 proved, 1 touched.",
    ]
    assert good not in tacit("verify", "--quiet").stdout


def test_the_command_prints_json(home: Path, memory: Memory, tacit: Tacit) -> None:
    path = say(memory)
    (home / path).unlink()
    ran = tacit("verify", "--json")
    value = json.loads(ran.stdout)
    assert ran.code == 1
    assert value["states"] == {"missing": 1}
    assert [problem["path"] for problem in value["problems"]] == [path]


def hint(detail: str) -> subprocess.CompletedProcess[str]:
    """Run what a hint says, from somewhere else."""
    return subprocess.run(detail.partition(": ")[2], shell=True, cwd="/", capture_output=True, text=True)


def test_what_is_advised_works_after_the_change_was_committed_and_from_anywhere(
    home: Path, memory: Memory
) -> None:
    odd = home.parent / "it's a home"
    home.rename(odd)
    memory = product.open(odd)
    gone, touched = say(memory, "one"), say(memory, "two")
    data = (odd / gone).read_bytes()
    user(odd, "rm", "-q", gone)
    overwrite(odd / touched, (odd / touched).read_bytes() + b"forged\n")
    user(odd, "commit", "-q", "--no-verify", "-a", "-m", "looks harmless")
    found = {item.path: item for item in memory.verify()}
    assert "+forged" in hint(found[touched].detail).stdout
    assert hint(found[gone].detail).returncode == 0
    assert (odd / gone).read_bytes() == data


@pytest.mark.parametrize("committed", [True, False])
def test_a_deleted_transcript_that_was_committed_by_hand_is_named(
    home: Path, memory: Memory, committed: bool
) -> None:
    (home / BY_HAND).parent.mkdir(parents=True)
    (home / BY_HAND).write_text(SEALED)
    user(home, "add", BY_HAND)
    user(home, "commit", "-q", "-m", "by hand")
    (home / BY_HAND).unlink()
    if committed:
        user(home, "commit", "-q", "--no-verify", "-a", "-m", "gone")
    (found,) = memory.verify()
    assert (found.path, found.state) == (BY_HAND, "missing")
    assert hint(found.detail).returncode == 0
    assert (home / BY_HAND).read_text() == SEALED


def forge(home: Path, path: str, data: bytes, when: datetime) -> None:
    message = f"conversation: x\n\nSession: {path}\nTranscript-SHA256: {digest(data)}\n"
    import_commits(Git(home), [CommitPlan(message, [FileChange(path, data)], when)])


def test_a_forged_record_with_an_older_date_on_a_merged_branch_does_not_win(
    home: Path, memory: Memory
) -> None:
    fork = user(home, "rev-parse", "HEAD").strip()
    path = say(memory)
    sealed = (home / path).read_bytes()
    user(home, "switch", "-q", "-c", "side", fork)
    forge(home, path, b"forged\n", datetime.fromisoformat("2001-01-01T00:00:00+00:00"))
    user(home, "switch", "-q", "-f", "main")
    user(home, "merge", "-q", "--no-verify", "-s", "ours", "-m", "merge", "side")
    assert states(memory) == {path: "proved"}
    overwrite(home / path, b"forged\n")
    assert states(memory) == {path: "touched"}
    overwrite(home / path, sealed)
    assert states(memory) == {path: "proved"}


def test_a_record_that_a_merge_brought_counts_before_a_later_one_of_the_main_line(
    home: Path, memory: Memory
) -> None:
    user(home, "switch", "-q", "-c", "explore/x")
    path = say(memory)
    user(home, "switch", "-q", "main")
    user(home, "merge", "-q", "--no-ff", "-m", "merge", "explore/x")
    assert states(memory) == {path: "proved"}
    forge(home, path, b"forged\n", datetime.fromisoformat("2001-01-01T00:00:00+00:00"))
    overwrite(home / path, b"forged\n")
    assert states(memory) == {path: "touched"}


def test_a_name_that_is_not_utf_8_is_found_as_older_commits_wrote_it(home: Path, memory: Memory) -> None:
    path = os.fsdecode(b"raw/conversations/caf\xe9.md")
    (home / path).write_text(SEALED)
    message = f"conversation: x\n\nSession: {path.encode('utf-8', 'replace').decode()}\n"
    message += f"Transcript-SHA256: {digest(SEALED.encode())}\n"
    import_commits(
        Git(home), [CommitPlan(message, [FileChange(path, SEALED.encode())], datetime.now().astimezone())]
    )
    assert states(memory) == {path: "proved"}


def test_in_a_shallow_clone_the_oldest_commit_proves_nothing(
    home: Path, memory: Memory, tmp_path: Path
) -> None:
    (home / BY_HAND).parent.mkdir(parents=True)
    (home / BY_HAND).write_text(SEALED)
    user(home, "add", BY_HAND)
    user(home, "commit", "-q", "-m", "by hand")
    say(memory)
    user(home, "clone", "-q", "--depth=1", f"file://{home}", str(tmp_path / "clone"))
    found = {item.path: item for item in product.open(tmp_path / "clone").verify()}
    assert (found[BY_HAND].state, found[BY_HAND].good) == ("not proved", False)
    assert "fetch --unshallow" in found[BY_HAND].detail


def test_one_transcript_is_told_in_the_singular(memory: Memory, tacit: Tacit) -> None:
    say(memory)
    assert tacit("verify").stdout == "1 transcript: 1 proved.\n"


def test_a_transcript_that_a_merge_commit_added_is_proved_and_then_guarded(
    home: Path, memory: Memory
) -> None:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=u", "-c", "user.email=u@example.com"]
        subprocess.run(["git", "-C", home, *identity, *arguments], check=True, capture_output=True)

    git("checkout", "-q", "-b", "side")
    git("commit", "-q", "--allow-empty", "-m", "side", "--no-verify")
    git("checkout", "-q", "main")
    git("merge", "--no-ff", "--no-commit", "side")
    with memory.session(session_id="merged") as session:
        session.message("user", "said during a merge")
    git("add", "-A")
    git("commit", "-q", "--no-verify", "-m", "merge")
    (found,) = memory.verify()
    assert found.good
    (home / found.path).chmod(0o600)
    (home / found.path).write_text((home / found.path).read_text().replace("said", "sold"))
    assert [item.state for item in memory.verify()] == ["touched"]


def test_a_transcript_that_came_along_with_anothers_record_is_guarded_too(home: Path, memory: Memory) -> None:
    with memory.session(session_id="own") as session:
        session.message("user", "mine")
    more = home / "raw" / "conversations" / "2026" / "more.md"
    more.parent.mkdir(exist_ok=True)
    more.write_text(
        "---\nsession_id: more\nstarted: 2026-01-01T00:00:00Z\nended: 2026-01-01T00:01:00Z\n---\n"
    )
    identity = ["-c", "user.name=u", "-c", "user.email=u@example.com"]
    message = f"conversation: x\n\nSession: {session.path}\nTranscript-SHA256: {'0' * 64}\n"
    subprocess.run(["git", "-C", home, "add", "-A"], check=True)
    subprocess.run(["git", "-C", home, *identity, "commit", "-q", "--no-verify", "-m", message], check=True)
    assert all(item.good for item in memory.verify())
    more.write_text(more.read_text() + "\n# changed\n")
    assert {item.path for item in memory.verify() if not item.good} == {"raw/conversations/2026/more.md"}

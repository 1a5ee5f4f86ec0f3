"""A file in a merge conflict reaches nobody, and comes back when it is resolved."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tacit.context.request import Request
from tacit.errors import ConfigError, MergeConflict, UsageError
from tacit.memory import Memory
from tacit.search.model import EVERYTHING, Scope
from tests.conftest import GitLog, Tacit
from tests.memory.homes import (
    NOTES,
    NOW,
    OWNER,
    OWNERS,
    PATIENT,
    QUESTION,
    SAID,
    TOPICS,
    files_of,
    opened,
    settle,
    write,
)

MEMORY = "knowledge/memory/MEMORY.md"
SOUL = "knowledge/identity/SOUL.md"
HOSES = "knowledge/reference/hoses.md"
SHOWN = {
    path: text.split()[-1]
    for path, text in {**NOTES, **TOPICS}.items()
    if not any(part in path for part in ("pump", "AGENTS", "HEARTBEAT", "codes"))
}
ALL = "context_compiler: {memory_md: always, journal: always, projects: always}\n"
LABELS = {"crlf": "\r\n", "plain": "\n"}


def in_conflict(text: str, eol: str = "\n") -> str:
    """Both machines added a line at the end."""
    merged = f"{text}<<<<<<< HEAD\n- ours MARKED\n=======\n- theirs MARKED\n>>>>>>> origin/main\n"
    return merged.replace("\n", eol)


def turn(memory: Memory, question: str = QUESTION) -> str:
    """Without what earlier turns were given: that is not given again."""
    return memory.services.turns.look(Request(question, OWNER)).text


def git(root: Path, *arguments: str, stdin: str = "") -> str:
    names = {f"GIT_{who}_{what}": "x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", "-c", "core.hooksPath=/dev/null", *arguments],
        cwd=root, input=stdin, capture_output=True, text=True, env={**os.environ, **names},
    )  # fmt: skip
    return done.stdout


def unmerge(root: Path, path: str) -> None:
    """As after a merge in which one side deleted the file, or which no driver could do: no markers."""
    blob = git(root, "hash-object", "-w", path).strip()
    stages = f"0 {'0' * len(blob)}\t{path}\n100644 {blob} 1\t{path}\n100644 {blob} 2\t{path}\n"
    git(root, "update-index", "--index-info", stdin=stages)


def transcript_of(root: Path, word: str) -> Path:
    return next(file for file in (root / "raw").rglob("*.md") if word in file.read_text())


# Reading


@pytest.mark.parametrize("eol", LABELS.values(), ids=LABELS.keys())
@pytest.mark.parametrize("path", SHOWN)
def test_a_file_with_markers_is_in_no_prompt_until_it_is_resolved(garden: Path, path: str, eol: str) -> None:
    settle(garden, PATIENT + OWNERS + ALL)
    before = (garden / path).read_text()
    write(garden, path, in_conflict(before, eol))
    text = turn(opened(garden))
    assert "MARKED" not in text
    assert SHOWN[path] not in text
    assert "<<<<<<<" not in text
    write(garden, path, before)
    assert SHOWN[path] in turn(opened(garden))


@pytest.mark.parametrize("path", [SOUL, MEMORY, HOSES, "topics/watering.md"])
def test_a_file_that_git_calls_unmerged_is_in_no_prompt_until_it_is_added(garden: Path, path: str) -> None:
    settle(garden, PATIENT + OWNERS + ALL)
    memory = opened(garden)
    assert SHOWN[path] in turn(memory)
    unmerge(garden, path)
    assert SHOWN[path] not in turn(memory)
    assert not any(hit.path == path for hit in memory.search(QUESTION, limit=50))
    git(garden, "add", path)
    assert SHOWN[path] in turn(memory)
    assert SHOWN[path] in turn(opened(garden))


def test_an_index_that_somebody_follows_hears_of_a_merge_at_once(garden: Path) -> None:
    memory = opened(garden)
    memory.services.searcher.update()
    memory.services.turns.present.is_watched = True
    assert "OPENWORD" in turn(memory)
    unmerge(garden, HOSES)
    assert "OPENWORD" not in turn(memory)
    git(garden, "add", HOSES)
    assert "OPENWORD" in turn(memory)


def test_what_is_found_without_an_index_has_no_conflict_in_it(garden: Path) -> None:
    write(garden, HOSES, in_conflict(NOTES[HOSES]))
    unmerge(garden, "knowledge/reference/taps.md")
    memory = opened(garden)
    found = memory.services.searcher._scan("hoses taps inch MARKED tomatoes", EVERYTHING, 50, NOW, None)
    assert found.channels == ("scan",)
    assert not {HOSES, "knowledge/reference/taps.md"} & {hit.path for hit in found.hits}


def test_a_question_for_the_words_of_a_conflict_finds_nothing_of_it(garden: Path) -> None:
    write(garden, HOSES, in_conflict(NOTES[HOSES]))
    memory = opened(garden)
    assert all("MARKED" not in hit.text for hit in memory.search("ours theirs MARKED", limit=50))
    with pytest.raises(MergeConflict, match="hoses"):
        memory.services.file_reader.read(HOSES, EVERYTHING)
    with pytest.raises(UsageError, match="that this session may read"):
        memory.services.file_reader.read(HOSES, Scope(audience="anyone"))
    with pytest.raises(MergeConflict, match=r"hoses\.md has unresolved merge conflict markers \(line 7\)"):
        memory.read(HOSES)


def test_committed_markers_are_in_no_prompt_of_the_past(garden: Path) -> None:
    for path in (SOUL, HOSES, "topics/watering.md"):
        write(garden, path, in_conflict((garden / path).read_text()))
    whole = git(garden, "rev-parse", "HEAD").strip()
    git(garden, "commit", "-qam", "oops")
    memory = opened(garden)
    compiled = memory.services.turns.look(Request(QUESTION, OWNER), "HEAD")
    for word in ("MARKED", "SOULWORD", "OPENWORD", "TOPICWORD", "<<<<<<<"):
        assert word not in compiled.text
    assert "TAPSWORD" in compiled.text
    assert "SOULWORD" in memory.services.turns.look(Request(QUESTION, OWNER), f"{whole}").text
    assert any("merge conflict" in one.reason for one in compiled.dropped if one.source == SOUL)


def test_files_that_sessions_begin_with_are_left_out_wherever_they_come_from(
    garden: Path, tmp_path: Path
) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / "SOUL.md").write_text(in_conflict("# Soul\n"))
    write(garden, "knowledge/identity/USER.md", in_conflict("# Ines\n"))
    told = in_conflict("# Rules\n")
    listed = [{"name": "AGENTS.md", "path": "/elsewhere/AGENTS.md", "content": told, "missing": False}]
    done = opened(garden).bootstrap(OWNER, listed, workspace=str(workspace))
    assert "MARKED" not in json.dumps(done)
    assert "SOULWORD" in json.dumps(done)  # the home has one that is whole


def test_files_of_an_adopted_workspace_are_left_out(garden: Path, tmp_path: Path) -> None:
    vault = tmp_path / "repository/vault"
    vault.mkdir(parents=True)
    git(tmp_path / "repository", "init", "-q")
    (vault / "drip.md").write_text(in_conflict("# Drip\n\nTomatoes in the greenhouse, water DRIPWORD\n"))
    (vault / "bed.md").write_text("# Bed\n\nTomatoes in the greenhouse bed, water BEDWORD\n")
    settle(garden, PATIENT + OWNERS + f"workspaces: ['{vault}']\n")
    git(tmp_path / "repository", "add", ".")
    text = turn(opened(garden))
    assert "DRIPWORD" not in text
    assert "BEDWORD" in text
    unmerge(tmp_path / "repository", "vault/bed.md")
    memory = opened(garden)
    memory.services.searcher.update(rebuild=True)
    assert "BEDWORD" not in turn(memory)


def test_a_note_that_explains_conflicts_is_found(garden: Path) -> None:
    quoted = "```\n<<<<<<< HEAD\nEXPLAINED\n=======\nb\n>>>>>>> x\n```\n"
    text = f"# Git\n\nA conflict about tomatoes looks like this:\n\n{quoted}"
    write(garden, "knowledge/reference/git.md", text)
    assert any("EXPLAINED" in hit.text for hit in opened(garden).search("conflict tomatoes EXPLAINED"))


# Conversations


def test_a_conversation_about_conflicts_is_kept_and_found(garden: Path) -> None:
    memory = opened(garden)
    session = memory.session(OWNER, started=NOW)
    session.message("user", "What is this?\n<<<<<<< HEAD\nKEPTWORD one\n=======\ntwo\n>>>>>>> main", NOW)
    sealed = session.end(NOW)
    assert sealed is not None
    assert sealed.commit
    assert any("KEPTWORD" in hit.text for hit in opened(garden).search("KEPTWORD"))


def test_a_conversation_that_was_merged_is_left_out_and_named(garden: Path, tacit: Tacit) -> None:
    file = transcript_of(garden, "MAINSAID")
    whole = file.read_bytes()
    file.chmod(0o600)
    head, turns, rest = whole.partition(b"\n## ")
    file.write_bytes(head + b"\n<<<<<<< HEAD" + turns + rest + b"=======\n>>>>>>> theirs\n")
    memory = opened(garden)
    assert not any("MAINSAID" in hit.text for hit in memory.search(SAID[OWNER], limit=50))
    path = str(file.relative_to(garden))
    tacit = Tacit(garden)
    assert f"conflict     {path} has unresolved merge conflict markers" in tacit("status").stdout
    assert path in tacit("doctor").stdout
    file.write_bytes(whole)
    assert any("MAINSAID" in hit.text for hit in memory.search(SAID[OWNER], limit=50))
    assert "conflict" not in tacit("status").stdout


# Writing


def test_nothing_is_remembered_in_a_note_in_conflict(garden: Path) -> None:
    write(garden, MEMORY, in_conflict(NOTES[MEMORY]))
    unmerge(garden, HOSES)
    before = files_of(garden, without=(".git/", ".tacit/"))
    memory = opened(garden)
    for to in ("memory", MEMORY, HOSES):
        with pytest.raises(MergeConflict, match="Resolve"):
            memory.remember("The valve is green.", to, session_key=None)
    assert files_of(garden, without=(".git/", ".tacit/")) == before
    write(garden, MEMORY, NOTES[MEMORY])
    assert memory.remember("The valve is green.", "memory", session_key=None).is_new


def test_no_markers_are_written_into_a_note(garden: Path) -> None:
    memory = opened(garden)
    with pytest.raises(MergeConflict):
        memory.write(HOSES, in_conflict("# Hoses\n"), replacing=memory.read(HOSES))
    assert (garden / HOSES).read_text() == NOTES[HOSES]


def test_a_commit_leaves_a_file_in_conflict_out_and_says_so(garden: Path) -> None:
    write(garden, HOSES, in_conflict(NOTES[HOSES]))
    write(garden, "knowledge/reference/taps.md", "# Taps\n\nNew.\n")
    done = opened(garden).commit()
    assert [problem.where for problem in done.problems if "conflict" in problem.what] == [HOSES]
    assert "MARKED" not in git(garden, "show", f"HEAD:{HOSES}")
    assert "New." in git(garden, "show", "HEAD:knowledge/reference/taps.md")
    write(garden, HOSES, NOTES[HOSES] + "- resolved\n")
    opened(garden).commit()
    assert "resolved" in git(garden, "show", f"HEAD:{HOSES}")


def test_a_commit_by_hand_is_refused_while_there_are_markers(garden: Path) -> None:
    write(garden, HOSES, in_conflict(NOTES[HOSES]))
    git(garden, "add", HOSES)
    ran = Tacit(garden)("hook", "pre-commit")
    assert ran.code == 1
    assert f"{HOSES}: has unresolved merge conflict markers (line 7)" in ran.stdout + ran.stderr


def test_undoing_a_commit_commits_no_markers(garden: Path) -> None:
    memory = opened(garden)
    write(garden, HOSES, f"{NOTES[HOSES]}\n\n\n- more\n")
    (commit,) = memory.commit().commits
    write(garden, HOSES, f"<<<<<<< HEAD\n{NOTES[HOSES]}=======\n>>>>>>> x\n\n\n- more\n")
    with pytest.raises(MergeConflict):
        memory.history.undo(commit)
    assert git(garden, "rev-parse", "HEAD").strip() == commit


# Telling


def test_status_and_doctor_name_the_file_and_what_to_do(garden: Path) -> None:
    write(garden, MEMORY, in_conflict(NOTES[MEMORY]))
    unmerge(garden, HOSES)
    git(garden, "rm", "-q", "--cached", "knowledge/reference/taps.md")
    tacit = Tacit(garden)
    status, doctor = tacit("status"), tacit("doctor")
    assert f"conflict     {MEMORY} has unresolved merge conflict markers (line 6)" in status.stdout
    assert f"git add -- {HOSES}" in status.stdout
    assert doctor.code == 1
    for path in (MEMORY, HOSES):
        assert path in doctor.stdout
    told = json.loads(tacit("status", "--json").stdout)["conflicts"]
    assert {one["path"] for one in told} == {MEMORY, HOSES}
    write(garden, MEMORY, NOTES[MEMORY])
    git(garden, "add", ".")
    assert "conflict " not in tacit("status").stdout
    assert json.loads(tacit("status", "--json").stdout)["conflicts"] == []


@pytest.mark.parametrize(
    "path", ["knowledge/reference/old.txt", "archive/x.markdown", "drafts/approvals.jsonl"]
)
def test_status_names_a_file_of_any_kind(garden: Path, path: str) -> None:
    write(garden, path, in_conflict("text\n"))
    assert f"conflict     {path} has unresolved" in Tacit(garden)("status").stdout


def test_status_names_files_of_adopted_workspaces(garden: Path, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "drip.md").write_text(in_conflict("# Drip\n"))
    settle(garden, PATIENT + OWNERS + f"workspaces: ['{vault}']\n")
    opened(garden).services.searcher.update()
    tacit = Tacit(garden)
    assert "conflict     workspace/vault/drip.md has unresolved" in tacit("status").stdout
    (vault / "drip.md").write_text("# Drip\n")
    assert "conflict" not in tacit("status").stdout


@pytest.mark.parametrize("name", [".gitignore", ".gitattributes"])
def test_init_adds_nothing_to_a_file_in_conflict(garden: Path, name: str) -> None:
    write(garden, name, in_conflict("*.bak\n"))
    done = Tacit(garden)("init", str(garden))
    assert done.code == 0
    assert f"{name}: has unresolved merge conflict markers (line 2)" in done.stderr
    assert (garden / name).read_text() == in_conflict("*.bak\n")


def test_a_file_that_one_side_deleted_is_named_too(garden: Path) -> None:
    unmerge(garden, HOSES)
    (garden / HOSES).unlink()
    assert f"conflict     {HOSES} is unmerged in git" in Tacit(garden)("status").stdout


def test_a_config_in_conflict_is_a_clear_error(garden: Path) -> None:
    file = garden / "memory-config.yaml"
    file.write_text(in_conflict(file.read_text()).replace("- ours", "owners: []"))
    with pytest.raises(ConfigError, match="unresolved merge conflict markers"):
        opened(garden)
    ran = Tacit(garden)("search", "tomatoes")
    assert ran.code == 1
    assert "has unresolved merge conflict markers" in ran.stderr


def test_two_homes_that_both_learned_a_line_do_not_show_both(
    garden: Path, tmp_path: Path, git_log: GitLog
) -> None:
    """The first sync of two machines, as it happens."""
    other = tmp_path / "other"
    subprocess.run(["git", "clone", "-q", str(garden), str(other)], check=True, capture_output=True)
    write(other, MEMORY, f"{NOTES[MEMORY]}- theirs THEIRWORD tomatoes greenhouse water\n")
    git(other, "commit", "-qam", "theirs")
    write(garden, MEMORY, f"{NOTES[MEMORY]}- ours OURWORD tomatoes greenhouse water\n")
    git(garden, "commit", "-qam", "ours")
    git(garden, "pull", "-q", "--no-rebase", str(other), "HEAD")
    assert "<<<<<<<" in (garden / MEMORY).read_text()
    memory = opened(garden)
    assert "OURWORD" not in turn(memory)
    assert "THEIRWORD" not in turn(memory)
    git(garden, "commit", "-qam", "markers and all")
    assert "OURWORD" not in turn(memory)
    write(garden, MEMORY, f"{NOTES[MEMORY]}- both BOTHWORD tomatoes greenhouse water\n")
    assert "BOTHWORD" in turn(memory)

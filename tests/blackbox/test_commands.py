"""Every command at least once: its exit code, its JSON, what it leaves on disk and in git.

A snapshot holds the JSON of a command: whole where only the home decides it ("values"), keys and types where
numbers depend on wording or on the machine ("shape").
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.outside import HERE, Commands, environment, files_of, git, messages_of, mode_of, write
from tests.blackbox.small_home import OTHER_SESSION, QUESTION, SESSION
from tests.blackbox.snapshots import WORDS, Snapshots, normalize, shape

READING: dict[str, tuple[list[str], int, str]] = {
    "search": (["search", "tomatoes", "water"], 0, "values"),
    "search-explain": (["search", "tomatoes", "--explain", "-n", "2"], 0, "shape"),
    "search-nothing": (["search", "tomatoes", "--category", "topic", "--under", "archive"], 0, "values"),
    "links": (["links"], 0, "values"),
    "links-note": (["links", "knowledge/procedures/watering.md"], 0, "values"),
    "links-broken": (["links", "--broken"], 1, "values"),
    "why": (["why"], 0, "shape"),
    "why-list": (["why", "-n", "5"], 0, "shape"),
    "why-not": (["why", "--not", "USER.md"], 0, "shape"),
    "why-block": (["why", "--block", "SOUL"], 0, "shape"),
    "why-known": (["why-known", "cold water from the well"], 0, "values"),
    "why-known-nothing": (["why-known", "zzzzqqqq"], 1, "values"),
    "topics": (["topics"], 0, "values"),
    "topics-list": (["topics", "list"], 0, "values"),
    "topics-show": (["topics", "show", "watering"], 0, "values"),
    "topics-try": (["topics", "try", "water please"], 0, "values"),
    "topics-due": (["topics", "due"], 0, "values"),
    "index": (["index"], 0, "shape"),
    "gate-report": (["gate", "report"], 0, "shape"),
    "gate-log": (["gate", "log"], 0, "shape"),
    "gate-tune": (["gate", "tune"], 0, "values"),
    "explain-session": (["explain-session", "agent:main:main"], 0, "values"),
    "explain-session-topic": (["explain-session", "agent:main:telegram:group:-100:topic:3"], 0, "values"),
    "skills": (["skills"], 0, "shape"),
    "forget-shown": (["forget", "Gardena"], 0, "values"),
    "forget-session-shown": (["forget", "--session", OTHER_SESSION], 0, "values"),
    "forget-nothing": (["forget", "zzzzqqqq"], 1, "values"),
    "purge-shown": (["purge", "--origin", SESSION], 0, "values"),
    "rebuild-list": (["rebuild", "--list"], 0, "values"),
    "run-dry": (["run", "all", "--dry-run"], 0, "values"),
    "review-list": (["review", "list"], 0, "values"),
    "review-log": (["review", "list", "--log"], 0, "values"),
    "cost": (["cost"], 0, "shape"),
    "cost-prices": (["cost", "--prices"], 0, "values"),
    "history-when": (["history", "when", "Gardena"], 0, "values"),
    "history-blame": (["history", "blame", "knowledge/memory/MEMORY.md"], 0, "values"),
    "history-diff": (["history", "diff", "2026-03-07"], 0, "values"),
    "history-today": (["history", "today"], 0, "values"),
    "history-recall": (["history", "recall", "knowledge/memory/MEMORY.md", "2026-03-05"], 0, "values"),
    "history-tags": (["history", "tags"], 0, "values"),
    "verify": (["verify"], 0, "values"),
    "status": (["status"], 0, "values"),
    "doctor": (["doctor"], 0, "values"),
    "config-section": (["config", "git"], 0, "values"),
    "config-key": (["config", "inject.deadline_ms"], 0, "values"),
    "capture-list": (["capture", "list"], 0, "values"),
}


def frozen(found: Any, home: Path, how: str = "values") -> Any:
    paths = ((str(home), "<home>"), (str(home.parent), "<folder>"))
    return shape(found) if how == "shape" else normalize(found, paths=paths, words=WORDS)


@pytest.mark.parametrize("name", READING)
def test_a_command_that_reads_prints_the_json_it_always_printed(
    prepared: Commands, snapshots: Snapshots, name: str
) -> None:
    arguments, code, how = READING[name]
    result = prepared(*arguments, "--json")
    assert (result.code, result.stderr) == (code, "")
    snapshots.check_json(f"commands/{name}", frozen(result.json, prepared.home, how))


def test_compile_prints_prompt_and_receipt_and_leaves_only_a_receipt(
    tacit_command: Commands, snapshots: Snapshots
) -> None:
    tacit = tacit_command
    before = (messages_of(tacit.home), files_of(tacit.home))
    found = {"now": tacit.checked("compile", QUESTION, "--json").json}
    found["then"] = tacit.checked("compile", QUESTION, "--at", "2026-03-05", "--json").json
    found["from stdin"] = tacit.checked("compile", "-", "--wake", "watering", "--json", stdin="Hello").json
    found["by schedule"] = tacit.checked("compile", "", "--cron", "watering", "--json").json
    snapshots.check_json("commands/compile", {name: shape(entry) for name, entry in found.items()})
    assert (messages_of(tacit.home), files_of(tacit.home)) == before
    text = tacit.checked("compile", QUESTION).stdout
    assert "slowly, at the root" in text
    assert tacit.checked("why", "--json").json["message"] == QUESTION


def test_commands_options_and_arguments_keep_their_names(tmp_path: Path, snapshots: Snapshots) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "helps.py")],
        capture_output=True,
        check=True,
        env=environment(tmp_path, COLUMNS="100"),
        cwd=tmp_path,
    )
    snapshots.check_json("command-line", json.loads(done.stdout))


def test_the_version_is_printed_alone(prepared: Commands) -> None:
    result = prepared("--version")
    assert result.code == 0
    assert len(result.stdout.split()) <= 2


def test_without_json_commands_print_text_for_people(prepared: Commands) -> None:
    for command in (["status"], ["search", "tomatoes"], ["review", "list"]):
        result = prepared(*command)
        assert result.code == 0
        assert result.stdout.strip()
        assert not result.stdout.startswith(("{", "["))


# ---------------------------------------------------------------- commands that write


def test_init_makes_a_home_once_and_completes_it_afterwards(tmp_path: Path, snapshots: Snapshots) -> None:
    home = tmp_path / "home"
    commands = Commands(home)
    first = commands("init", str(home), "--json")
    assert first.code == 0
    snapshots.check_json("commands/init", frozen(first.json, home))
    (home / "knowledge/identity/USER.md").unlink()
    again = commands("init", str(home), "--json")
    assert again.code == 0
    snapshots.check_json("commands/init-again", frozen(again.json, home))
    assert (home / "knowledge/identity/USER.md").exists()


def test_capture_keeps_a_conversation_and_commits_it(tacit_command: Commands, snapshots: Snapshots) -> None:
    tacit, found, name = tacit_command, {}, "ses_0000cccc"
    at = ("--at", "2026-03-10T08:15:00+01:00", "--json")
    write(tacit.home, "attachments/2026/03/plan.txt", "plan\n")
    found["start"] = tacit.checked("capture", "start", "--session-id", name, "--channel", "chat", *at).json
    say = ("capture", "message", name)
    found["message"] = tacit.checked(*say, "user", "Where is the plan?", "--speaker", "Ines", *at).json
    found["from stdin"] = tacit.checked(*say, "agent", "-", *at, stdin="In the shed.\n## 10:00 — user\n").json
    found["tool"] = tacit.checked("capture", "tool", name, "read", "plan.txt", "--result", "1 line", *at).json
    knowledge = ("knowledge", name, "updated", "knowledge/reference/hoses.md", "--summary", "longer")
    found["knowledge"] = tacit.checked("capture", *knowledge, *at).json
    found["attach"] = tacit.checked("capture", "attach", name, "attachments/2026/03/plan.txt", *at).json
    found["list"] = tacit.checked("capture", "list", "--json").json
    found["end"] = tacit.checked("capture", "end", name, "--tag", "plan", "--tokens-in", "9", *at).json
    snapshots.check_json("commands/capture", frozen(found, tacit.home))
    file = tacit.home / found["end"]["path"]
    snapshots.check("files/captured-transcript.md", file.read_text(encoding="utf-8"))
    assert mode_of(file) == "0400"
    subject, *body = messages_of(tacit.home)[0].split("\n")
    assert subject == "conversation: where-is-the-plan"
    keys = [line.partition(": ")[0] for line in body if line]
    assert keys == ["Session", "Transcript-SHA256"]


def test_remember_adds_one_line_and_adds_it_once(tacit_command: Commands, snapshots: Snapshots) -> None:
    tacit, found = tacit_command, {}
    key = "The spare key hangs behind the blue door."
    found["journal"] = tacit.checked("remember", key, "--json").json
    found["again"] = tacit.checked("remember", key, "--json").json
    found["memory"] = tacit.checked("remember", "--to", "memory", "We fire at noon.", "--json").json
    note = "knowledge/people/mira-olsen.md"
    found["note"] = tacit.checked("remember", "--to", note, "Likes moss.", "--json").json
    snapshots.check_json("commands/remember", frozen(found, tacit.home))
    for name, path in (("journal", "knowledge/journal/2026-03-10.md"), ("person", note)):
        snapshots.check(f"files/remembered-{name}.md", (tacit.home / path).read_text(encoding="utf-8"))


def test_review_shows_edits_rejects_and_approves_drafts(
    tacit_command: Commands, snapshots: Snapshots
) -> None:
    tacit, found = tacit_command, {}
    drafts = {draft["category"]: draft["id"] for draft in tacit.checked("review", "list", "--json").json}
    by = ("--by", "Ines", "--json")
    found["show"] = tacit.checked("review", "show", drafts["decisions"], "--json").json
    text = (tacit.home / "drafts" / f"{drafts['decisions']}.md").read_text(encoding="utf-8")
    edit = ("review", "edit", drafts["decisions"], "--file", "-")
    tacit.checked(*edit, *by, stdin=text.replace("half inch", "wide"))
    found["approve"] = tacit.checked("review", "approve", drafts["decisions"], *by).json
    tacit.checked("review", "rebase", drafts["memory"], *by)
    found["reject"] = tacit.checked("review", "reject", drafts["memory"], "--why", "no", *by).json
    snapshots.check_json("commands/review", frozen(found, tacit.home))
    assert "we take the wide drip hose" in (tacit.home / "knowledge/memory/MEMORY.md").read_text()
    assert files_of(tacit.home / "drafts") == ["approvals.jsonl"]
    snapshots.check_json("commands/review-commits", frozen(messages_of(tacit.home)[:3], tacit.home))


def test_run_does_nothing_when_nothing_is_new(tacit_command: Commands, snapshots: Snapshots) -> None:
    before = messages_of(tacit_command.home)
    found = {
        work: tacit_command.checked("run", work, "--json").json
        for work in ("commit", "extract", "condense", "prune", "archive", "all")
    }
    snapshots.check_json("commands/run", frozen(found, tacit_command.home))
    assert messages_of(tacit_command.home) == before


def test_history_undoes_a_commit_and_names_a_moment(tacit_command: Commands, snapshots: Snapshots) -> None:
    tacit, found = tacit_command, {}
    commits = git(tacit.home, "log", "--format=%H %s").splitlines()
    learned = next(line.split()[0] for line in commits if " memory: learned" in line)
    found["snapshot"] = tacit.checked("history", "snapshot", "spring", "--json").json
    found["undo"] = tacit.checked("history", "undo", learned, "--json").json
    snapshots.check_json("commands/history-writes", frozen(found, tacit.home))
    assert "memory/milestone/spring" in git(tacit.home, "tag").split()
    assert "leaves curl" not in (tacit.home / "knowledge/memory/MEMORY.md").read_text()
    snapshots.check_json("commands/undo-commit", frozen(messages_of(tacit.home)[0], tacit.home))


def test_forget_removes_words_from_files_and_history(tacit_command: Commands, snapshots: Snapshots) -> None:
    tacit = tacit_command
    result = tacit("forget", "Gardena", "--yes", "--json")
    assert result.code == 0
    snapshots.check_json("commands/forget", frozen(result.json, tacit.home, "shape"))
    assert "Gardena" not in git(tacit.home, "log", "-p", "--all")
    assert tacit.checked("verify", "--json").json["problems"] == []
    gone = tacit("forget", "--session", OTHER_SESSION, "--yes", "--json")
    assert gone.code == 0
    assert not [file for file in files_of(tacit.home) if OTHER_SESSION in file]


def test_purge_takes_out_what_was_derived(tacit_command: Commands, snapshots: Snapshots) -> None:
    tacit = tacit_command
    result = tacit("purge", "--origin", SESSION, "--yes", "--by", "Ines", "--why", "test", "--json")
    assert result.code == 0
    snapshots.check_json("commands/purge", frozen(result.json, tacit.home))
    assert "leaves curl" not in (tacit.home / "knowledge/memory/MEMORY.md").read_text()
    lines = (tacit.home / "raw/purged.jsonl").read_text().splitlines()
    snapshots.check_json("files/purged", frozen([json.loads(line) for line in lines], tacit.home))
    assert tacit("purge", "--origin", "telegram:direct:12345", "--json").code == 1


def test_rebuild_compare_and_adopt_make_one_commit(tacit_command: Commands, snapshots: Snapshots) -> None:
    tacit, found = tacit_command, {}
    found["rebuild"] = tacit.checked("rebuild", "--name", "v2", "--json").json
    found["list"] = tacit.checked("rebuild", "--list", "--json").json
    questions = write(
        tacit.home.parent,
        "questions.yaml",
        "- {question: What makes the leaves curl, answer: [cold water]}\n",
    )
    compare = ("compare", "main", "v2", "--questions", str(questions), "--budgets", "512", "--json")
    snapshots.check_json("commands/compare", shape(tacit.checked(*compare).json))
    assert "extract/v2" in git(tacit.home, "branch", "--list", "--all")
    found["adopt"] = tacit.checked("adopt-branch", "v2", "--json").json
    assert "extract/v2" not in git(tacit.home, "branch", "--list", "--all")
    tacit.checked("rebuild", "--name", "v3", "--quiet")
    tacit.checked("rebuild", "--drop", "v3")
    assert "extract/v3" not in git(tacit.home, "branch", "--list", "--all")
    snapshots.check_json("commands/rebuild", frozen(found, tacit.home))


def test_gate_marks_are_kept_and_shown(tacit_command: Commands, snapshots: Snapshots) -> None:
    tacit = tacit_command
    decision = tacit.checked("gate", "log", "--json").json[0]["id"]
    marked = tacit.checked("gate", "mark", decision, "useful", "--json").json
    snapshots.check_json("commands/gate-mark", shape(marked))
    assert tacit.checked("gate", "log", "--json").json[0]["was_useful"] is True
    assert tacit.checked("gate", "report", "--json").json[0]["useful"] == 1


def test_topics_due_is_told_once_when_it_is_done(tacit_command: Commands) -> None:
    assert len(tacit_command.checked("topics", "due", "--done", "--json").json) == 1
    assert tacit_command.checked("topics", "due", "--json").json == []


def test_index_is_made_anew_from_the_files(tacit_command: Commands, snapshots: Snapshots) -> None:
    before = tacit_command.checked("search", "tomatoes", "--json").json
    result = tacit_command.checked("index", "--rebuild", "--json")
    snapshots.check_json("commands/index-rebuild", shape(result.json))
    assert tacit_command.checked("search", "tomatoes", "--json").json == before


def test_skills_are_copied_and_printed(prepared: Commands, tmp_path: Path) -> None:
    names = [card["name"] for card in prepared.checked("skills", "--json").json]
    prepared.checked("skills", "--copy", str(tmp_path / "skills"))
    assert sorted(file.parent.name for file in tmp_path.glob("skills/*/SKILL.md")) == sorted(names)
    for host in ("openclaw", "claude-code", "codex", "shell"):
        assert prepared.checked("skills", "--snippet", host).stdout.strip()


def test_hooks_of_git_pass_clean_files_and_refuse_others(tacit_command: Commands) -> None:
    tacit = tacit_command
    assert tacit("hook", "pre-commit", cwd=tacit.home).code == 0
    assert tacit("hook", "post-commit", cwd=tacit.home).code == 0
    long = "# Core Memory\n\n" + "".join(f"- 2026-02-01: line {number}\n" for number in range(300))
    write(tacit.home, "knowledge/memory/MEMORY.md", long)
    git(tacit.home, "add", "knowledge/memory/MEMORY.md")
    assert tacit("hook", "pre-commit", cwd=tacit.home).code == 1


def test_verify_finds_a_transcript_that_was_touched(tacit_command: Commands, snapshots: Snapshots) -> None:
    tacit = tacit_command
    file = next(tacit.home.glob(f"raw/conversations/**/*{SESSION}*.md"))
    file.chmod(0o600)
    file.write_text(file.read_text() + "\nMore.\n")
    result = tacit("verify", "--json")
    assert result.code == 1
    snapshots.check_json("commands/verify-touched", frozen(result.json, tacit.home))
    assert tacit("doctor", "--json").code == 1


def test_eval_measures_questions_about_a_home_and_a_folder(
    prepared: Commands, tmp_path: Path, snapshots: Snapshots
) -> None:
    quote = {"path": "knowledge/procedures/watering.md", "quote": "slowly, at the root"}
    own = write(
        tmp_path, "own.jsonl", json.dumps({"id": "1", "text": "How to water?", "gold": [quote]}) + "\n"
    )
    measured = prepared.checked("eval", str(own), "--json", "--quiet").json
    snapshots.check_json("commands/eval-own", shape(measured))
    said = {"id": "m1", "collection": "c", "session": "s", "seq": 1, "speaker": "user", "date": "2026-01-01"}
    write(tmp_path, "set/docs.jsonl", json.dumps({**said, "text": "The cat is called Otto."}) + "\n")
    asked = {
        "id": "q1",
        "collection": "c",
        "text": "What is the cat called?",
        "category": "a",
        "gold": ["m1"],
    }
    write(tmp_path, "set/queries.jsonl", json.dumps(asked) + "\n")
    measured = prepared.checked("eval", str(tmp_path / "set"), "--json", "--quiet", "--budgets", "512").json
    snapshots.check_json("commands/eval-budgets", shape(measured))


# ---------------------------------------------------------------- workspaces of OpenClaw


@pytest.fixture
def workspace(tacit_command: Commands) -> Path:
    folder = tacit_command.home.parent / "workspace"
    lessons = "".join(f"- Lesson {number}: read the manual of part {number} first.\n" for number in range(12))
    write(folder, "SOUL.md", "# Soul\n\n## Identity\n\nI am Moss.\n\n## Wisdom\n\n- Be calm.\n")
    write(folder, "TOOLS.md", "# Tools\n\n## Ports\n\n- valve: 8417, because 8080 was taken\n")
    write(folder, "MEMORY.md", "# Memory\n\n- 2026-02-01: the shed is locked\n- 2026-02-03: it is open\n")
    write(folder, "LESSONS_LEARNED.md", f"# Lessons\n\n{lessons}")
    tacit_command.checked("init", "--workspace", str(folder), "--quiet", str(tacit_command.home))
    config = tacit_command.home / "memory-config.yaml"
    approvers = "openclaw: {soul_approvers: [Ines], wisdom_approvers: [Ines], tools_approvers: [Ines]}\n"
    config.write_text(config.read_text() + approvers)
    return folder


def test_drafts_for_a_workspace_are_made_approved_promoted_and_undone(
    tacit_command: Commands, workspace: Path, snapshots: Snapshots
) -> None:
    tacit, found, codes = tacit_command, {}, {}
    steps = {
        "compact-tools --check": ["openclaw", "compact-tools", "--check"],
        "compact-tools": ["openclaw", "compact-tools"],
        "compress-soul": ["openclaw", "compress-soul"],
        "memory-summary": ["openclaw", "memory-summary"],
        "drafts": ["openclaw", "drafts"],
        "promote before approve": ["openclaw", "promote", "tools"],
        "approve": ["openclaw", "approve", "tools", "--by", "Ines"],
        "promote": ["openclaw", "promote", "tools", "--by", "Ines"],
        "undo": ["openclaw", "undo", "tools", "--by", "Ines"],
        "log": ["openclaw", "drafts", "--log"],
        "wisdom due": ["wisdom", "due"],
        "wisdom sources": ["wisdom", "sources"],
        "wisdom draft": ["wisdom", "draft"],
        "wisdom check": ["wisdom", "check"],
        "wisdom approve": ["wisdom", "approve", "--by", "Ines"],
        "wisdom promote": ["wisdom", "promote", "--by", "Ines"],
        "wisdom undo": ["wisdom", "undo", "--by", "Ines"],
        "phase status": ["openclaw", "phase", "status"],
        "phase check": ["openclaw", "phase", "check"],
        "phase next": ["openclaw", "phase", "next", "--by", "Ines"],
        "phase note": ["openclaw", "phase", "note", "worked", "All is well."],
        "phase rollback": ["openclaw", "phase", "rollback", "--all"],
    }
    for name, arguments in steps.items():
        result = tacit(*arguments, "--json")
        codes[name] = result.code
        found[name] = shape(result.json) if result.stdout.strip() else None
    snapshots.check_json("commands/workspace-drafts", {"exit codes": codes, "shapes": found})
    snapshots.check_json("files/workspace-after-drafts", files_of(workspace))


@pytest.mark.parametrize("command", ["status", "doctor", "baseline", "install", "uninstall"])
def test_openclaw_commands_say_so_when_there_is_no_host(prepared: Commands, command: str) -> None:
    result = prepared("openclaw", command)
    assert result.code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("tacit: ")

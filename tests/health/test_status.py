"""The quick look: right without git, also where things are odd."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import config as configuration
from tacit.config import Config
from tacit.config.schema import flatten
from tacit.errors import ConfigError
from tacit.health.status import DEFAULT_SETTINGS, DELIVERY_MODES, Overview, inspect_home, read_settings
from tacit.home.files import hold_lock
from tacit.home.layout import CONFIG, Home
from tacit.memory import Memory
from tacit.transcripts import spool

if TYPE_CHECKING:
    from tests.conftest import Tacit


def user(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def seen(home: Path) -> Overview:
    return inspect_home(Home(home))


def edit(file: Path) -> None:
    """A moment after the last commit, whatever the clock's grain."""
    file.write_text("edited\n")
    os.utime(file, (time.time() + 2,) * 2)


def test_branch_and_commit_are_those_of_git(home: Path) -> None:
    now = seen(home)
    assert (now.branch, now.commit) == ("main", user(home, "rev-parse", "HEAD").strip())
    user(home, "switch", "-q", "-c", "explore/x/y")
    assert seen(home).branch == "explore/x/y"
    user(home, "checkout", "-q", "--detach")
    assert (seen(home).branch, seen(home).commit) == ("", now.commit)


def test_branches_that_gc_has_packed_are_still_read(home: Path) -> None:
    before = seen(home).commit
    user(home, "pack-refs", "--all")
    assert not (home / ".git/refs/heads/main").exists()
    assert (seen(home).commit, seen(home).edited) == (before, 0)
    edit(home / "knowledge/people/_index.md")
    assert seen(home).edited == 1


def test_notes_are_counted_and_those_edited_since_the_last_commit(home: Path, memory: Memory) -> None:
    before = seen(home)
    assert before.notes > 5
    assert before.edited == 0
    edit(home / "knowledge/people/_index.md")
    edit(home / "knowledge/new.md")
    (home / "knowledge/picture.png").write_bytes(b"")
    (home / "knowledge/link.md").symlink_to("/etc/passwd")
    assert (seen(home).notes, seen(home).edited) == (before.notes + 1, 2)
    past = time.time() - 5
    for path in ("knowledge/people/_index.md", "knowledge/new.md"):
        os.utime(home / path, (past, past))
    memory.commit()
    assert seen(home).edited == 0


def test_sessions_are_told_apart_open_left_open_and_waiting(home: Path, memory: Memory) -> None:
    session = memory.session()
    session.message("user", "talking")
    assert session.path is not None
    assert session.session_id is not None
    alive = [(session.session_id, session.path)]
    assert (seen(home).open, seen(home).left_open, seen(home).waiting) == (alive, [], [])
    path, live = session.path, session._writer
    assert live is not None
    live.close()  # what the kernel does when the process dies
    assert (seen(home).open, seen(home).left_open) == ([], [path])
    (home / ".git/MERGE_HEAD").write_text("x")
    memory.recover()
    assert (seen(home).left_open, seen(home).waiting) == ([], [path])
    (home / ".git/MERGE_HEAD").unlink()
    memory.recover()
    now = seen(home)
    assert (now.open, now.left_open, now.waiting) == ([], [], [])
    assert (now.transcripts, now.last_transcript) == (1, path)


def test_a_session_of_the_command_line_is_open_though_nobody_holds_it(home: Path, memory: Memory) -> None:
    session = memory.session(session_id="ses_cli", detached=True)
    session.detach()
    assert seen(home).open == [("ses_cli", "")]


@pytest.mark.parametrize(
    "record",
    [
        "", "{", "[]", "null", "5", "{}", '{"path": null, "detached": false}',
        '{"path": null, "detached": false, "opening": null}', '{"path": "none.md", "detached": true}',
        '{"path": "none.md", "detached": true, "opening": {"session_id": "x"}}',
    ],
)  # fmt: skip
def test_a_damaged_record_is_passed_over(home: Path, tacit: Tacit, record: str) -> None:
    (home / ".tacit/sessions").mkdir(exist_ok=True)
    (home / ".tacit/sessions/x.json").write_text(record)
    assert tacit("status").code == 0
    assert seen(home).open == []


def test_a_home_without_repository_or_private_folder_is_still_looked_at(home: Path) -> None:
    (home / ".git").rename(home.parent / "git")
    (home / ".tacit").rename(home.parent / "private")
    now = seen(home)
    assert (now.branch, now.commit, now.open) == ("", "", [])
    assert now.notes > 5


def test_status_prints_what_was_seen(home: Path, memory: Memory, tacit: Tacit) -> None:
    with memory.session() as session:
        session.message("user", "kept")
    edit(home / "knowledge/new.md")
    ran = tacit("status")
    lines = ran.stdout.splitlines()
    commit = user(home, "rev-parse", "HEAD")[:10]
    assert ran.code == 0
    assert lines[0] == f"home         {home}"
    assert lines[1] == f"branch       main at {commit}"
    assert lines[2] == f"transcripts  1, last {session.path}"
    assert lines[3].endswith(", 1 edited since the last commit")
    value = json.loads(tacit("status", "--json").stdout)
    assert (value["branch"], value["transcripts"], value["edited"]) == ("main", 1, 1)


def test_the_state_of_a_session_is_read_from_the_file_and_not_from_its_rights(
    home: Path, memory: Memory
) -> None:
    session = memory.session(session_id="ses_1", detached=True)
    session.message("user", "talking")
    assert session.path is not None
    (home / session.path).chmod(0o400)
    assert (seen(home).open, seen(home).waiting) == ([("ses_1", session.path)], [])
    (home / ".git/MERGE_HEAD").write_text("x")
    session.end()
    (home / session.path).chmod(0o600)
    assert (seen(home).open, seen(home).waiting) == ([], [session.path])


def test_the_last_transcript_is_the_last_by_time(home: Path) -> None:
    folder = home / "raw/conversations/2026/02/16"
    folder.mkdir(parents=True)
    for number, name in enumerate(("1845-ses_z-x.md", "1845-ses_a-x.md", "0900-ses_b-x.md")):
        (folder / name).write_text("x\n")
        os.utime(folder / name, (number, number))
    (home / "raw/conversations/z by hand.md").write_text("x\n")
    assert seen(home).last_transcript == "raw/conversations/2026/02/16/1845-ses_a-x.md"


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_notes_that_git_has_just_written_are_not_edited(home: Path, tmp_path: Path, version: str) -> None:
    clone = tmp_path / "clone"
    user(home, "clone", "-q", str(home), str(clone))
    user(clone, "update-index", f"--index-version={version}")
    os.utime(clone / ".git/logs/refs/heads/main", (1, 1))  # as in a clone that takes long
    os.utime(clone / ".git/refs/heads/main", (1, 1))
    assert seen(clone).edited == 0
    edit(clone / "knowledge/people/_index.md")
    assert seen(clone).edited == 1


@pytest.mark.parametrize("data", [b"", b"DIRC", b"DIRC\0\0\0\2\xff\xff\xff\xff", b"x" * 500])
def test_a_damaged_index_is_passed_over(home: Path, data: bytes) -> None:
    (home / ".git/index").write_bytes(data)
    edit(home / "knowledge/people/_index.md")
    assert seen(home).edited == 1


def test_status_is_aligned_and_tells_ids_and_paths_of_open_sessions(tacit: Tacit) -> None:
    assert tacit("capture", "start", "--session-id", "ses_1").code == 0
    assert tacit("capture", "start", "--session-id", "ses_2").code == 0
    assert tacit("capture", "message", "ses_2", "user", "hello").code == 0
    lines = tacit("status").stdout.splitlines()
    (path,) = [session["path"] for session in json.loads(tacit("status", "--json").stdout)["open"][1:]]
    assert lines[4:6] == ["open         ses_1  (no message yet)", f"open         ses_2  {path}"]
    assert {line[:13].rstrip().islower() for line in lines} == {True}


# ---------------------------------------------------------------- the daemon


def test_a_daemon_runs_while_its_lock_is_held_whatever_files_say(home: Path) -> None:
    private = home / ".tacit"
    assert seen(home).daemon is None
    (private / "daemon.json").write_text(json.dumps({"pid": 1, "tcp": None}))
    assert seen(home).daemon is None
    with hold_lock(private / "daemon.lock"):
        assert seen(home).daemon == {"pid": 1, "tcp": None}
        for odd in ("", "{", "[]", "5"):
            (private / "daemon.json").write_text(odd)
            assert seen(home).daemon == {}
    assert seen(home).daemon is None


def test_what_waits_for_a_daemon_is_counted(home: Path) -> None:
    assert seen(home).spool == 0
    spool.add(home, "message", {"text": "x"})
    assert seen(home).spool == 1


# ---------------------------------------------------------------- a few settings


def in_force(text: str) -> dict[str, object] | None:
    """As the program itself reads them."""
    try:
        loaded = configuration.parse(text, where=CONFIG, environ={}, trusted=True)
    except ConfigError:
        return None
    values = flatten(loaded.config)
    return {name: _listed(values[name]) for name in DEFAULT_SETTINGS}


def _listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def test_the_defaults_and_the_lanes_are_those_of_the_config() -> None:
    assert in_force("") == DEFAULT_SETTINGS
    assert {name.partition(".")[2] for name in DEFAULT_SETTINGS} == {
        "enabled", "lanes", "exclude_agents", "read_only",
    }  # fmt: skip
    assert in_force(f"inject:\n  lanes: [{', '.join(DELIVERY_MODES)}]\n") is not None
    assert Config().inject.lanes == ("bootstrap", "runtime")


def test_what_tacit_init_writes_is_read_at_a_glance(home: Path) -> None:
    assert read_settings(configuration.render_starter()) == DEFAULT_SETTINGS
    assert seen(home).settings == DEFAULT_SETTINGS


PLAIN = [
    "inject:\n  exclude_agents: [a, b-c]\n  lanes: [file]  # only\ncapture:\n  enabled: false\n",
    "inject:\n    lanes:\n    - file\n    - daily\n    exclude_agents:\n      - mole # digs\n",
    "capture: # mine\n  exclude_agents: []\n\n# it's \"odd\ninject:\n  deadline_ms: 300\n  enabled: true\n",
    "timezone: 'UTC'\nsessions:\n  group_chat: {files: [SOUL.md], audience: group}\n",
    "watchers:\n  gate_model: null\nlifecycle:\n  pruning_schedule: '0 0 * * 0'\n",
    "inject:\n  lanes: []\n",
    "inject: {enabled: false}\n",
    "inject: { exclude_agents: [a, b-c], deadline_ms: 300, lanes: [file] }  # mine\ncapture: {}\n",
    "capture: {exclude_agents: [], enabled: true}\n",
    "memory:\n  read_only: true\n",
    "memory: {read_only: false}\ninject:\n  enabled: true\n",
    "memory:\n  read_only: null  # as it comes\n",
]


@pytest.mark.parametrize("text", PLAIN)
def test_plain_settings_are_read_at_a_glance(text: str) -> None:
    assert read_settings(text) is not None
    assert read_settings(text) == in_force(text)


NOT_PLAIN = [
    "inject: {enabled: no}\n",
    "memory:\n  read_only: yes\n",
    "memory:\n  read_only:\n",
    "memory: {read_only: [true]}\n",
    "inject: {enabled: false,}\n",
    "inject: {enabled: false, enabled: true}\n",
    "inject: {enabled:false}\n",
    "inject: {exclude_agents: }\n",
    "inject: {exclude_agents: [a, 'b']}\n",
    "inject: {exclude_agents: [a, [b]]}\n",
    "inject: {enabled: false}\n  lanes: [file]\n",
    "inject:\n  enabled: no\n",
    "inject:\n  exclude_agents: ['a', b]\n",
    "inject:\n  exclude_agents: a\n",
    "inject:\n  exclude_agents: [a,\n    b]\n",
    "inject:\n  exclude_agents:\n",
    "inject:\n  exclude_agents: [$WHO]\n",
    "inject:\n  lanes: [sidewalk]\n",
    "inject:\n  lanes: &l [file]\n",
    "inject:\n  <<: {enabled: false}\n",
    "inject:\n  enabled: true\n  enabled: false\n",
    "inject:\n  enabled: true\ninject:\n  enabled: false\n",
    '"inject":\n  enabled: false\n',
    "timezone: |\n  UTC\ninject:\n  enabled: true\n",
    "timezone: 'UTC\ninject:\n  enabled: false\n'\n",
    "owners: [\ninject:\n  enabled: false\n]\n",
    "---\ninject:\n  enabled: false\n",
    "inject:\n\tenabled: false\n",
    "inject:\n  enabled: false\r\n",
    "inject:\n  more:\n    enabled: false\n",
    " inject:\n  enabled: false\n",
    "{inject: {enabled: false}}\n",
    "\ufeffinject:\n  enabled: false\n",
]


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_everything_else_is_left_to_who_reads_yaml(text: str) -> None:
    assert read_settings(text) is None


_PIECES = st.sampled_from(
    [
        *(line for text in PLAIN + NOT_PLAIN for line in text.split("\n")),
        *(
            "inject:",
            "capture:",
            "  enabled: true",
            "  enabled: false",
            "  lanes: [file]",
            "  - a",
            "    - b",
        ),
        *(
            "  exclude_agents:",
            "  exclude_agents: [x]",
            "timezone: UTC",
            "- a",
            "  # x",
            "",
            "'",
            "[",
            "]",
            "}",
        ),
    ]
)


@given(st.lists(_PIECES, max_size=12).map("\n".join))
def test_a_glance_never_tells_anything_else_than_the_config_does(text: str) -> None:
    glanced, meant = read_settings(text), in_force(text)
    assert glanced is None or meant is None or glanced == meant

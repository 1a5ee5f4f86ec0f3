"""The command line itself: finding commands, exit codes, where output goes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tacit.cli.commands import load_commands, status
from tacit.cli.dispatch import load_command
from tacit.cli.main import main
from tacit.errors import DiskError, GitError, HomeError, UsageError
from tacit.memory import Memory
from tacit.version import VERSION

if TYPE_CHECKING:
    from tests.conftest import Tacit


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(tacit: Tacit, flag: str) -> None:
    ran = tacit(flag)
    assert (ran.code, ran.stdout, ran.stderr) == (0, f"tacit {VERSION}\n", "")


@pytest.mark.parametrize("flag", ["--help", "-h", "help"])
def test_help_names_every_command(tacit: Tacit, flag: str) -> None:
    ran = tacit(flag)
    assert ran.code == 0
    for name, (_, about) in load_commands().items():
        assert f"  {name}" in ran.stdout
        assert about in ran.stdout
    assert "Exit codes: 0 ok, 1 problem found, 2 usage, 3 bug." in ran.stdout


def test_without_a_command_help_is_shown_and_the_exit_code_says_usage(tacit: Tacit) -> None:
    ran = tacit()
    assert ran.code == 2
    assert ran.stdout == tacit("--help").stdout


@pytest.mark.parametrize("name", load_commands())
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main([name, "--help"]) == 0
    assert capsys.readouterr().out.startswith(f"usage: tacit {name}")


@pytest.mark.parametrize(
    ("typed", "meant"), [("histroy", "history"), ("stauts", "status"), ("verfiy", "verify")]
)
def test_an_unknown_command_is_told_with_the_nearest(tacit: Tacit, typed: str, meant: str) -> None:
    ran = tacit(typed)
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr == f"tacit: '{typed}' is not a command. Did you mean '{meant}'? See: tacit --help\n"


def test_a_command_like_no_other_gets_no_suggestion(tacit: Tacit) -> None:
    assert tacit("xyzzy").stderr == "tacit: 'xyzzy' is not a command. See: tacit --help\n"


@pytest.mark.parametrize(
    "arguments", [["history"], ["history", "nosuch"], ["run"], ["status", "extra"], ["status", "--jsn"]]
)
def test_wrong_arguments_are_usage(tacit: Tacit, arguments: list[str]) -> None:
    ran = tacit(*arguments)
    assert ran.code == 2
    assert ran.stdout == ""
    assert "usage: tacit" in ran.stderr


@pytest.mark.parametrize("arguments", [["--home"], ["--home="], ["--home", "x"]])
def test_a_home_without_a_command_is_usage(tacit: Tacit, arguments: list[str]) -> None:
    assert tacit(*arguments).code == 2


def test_the_home_may_stand_before_and_after_the_command_and_after_wins(home: Path, tacit: Tacit) -> None:
    nowhere = str(home.parent / "nowhere")
    elsewhere = {"TACIT_HOME": nowhere}
    for arguments in (
        ["--home", str(home), "status"],
        [f"--home={home}", "status"],
        ["status", "--home", str(home)],
        ["status", f"--home={home}"],
        ["--home", nowhere, "status", "--home", str(home)],
        ["--home", str(home), "history", "tags"],
        ["history", "tags", "--home", str(home)],
    ):
        assert tacit(*arguments, env=elsewhere).code == 0, arguments
    assert tacit("status", env=elsewhere).code == 1


def test_without_a_home_the_message_says_how_to_make_one(tacit: Tacit, tmp_path: Path) -> None:
    ran = tacit("status", "--home", str(tmp_path / "none"))
    assert ran.code == 1
    assert (
        ran.stderr
        == f"tacit: There is no home at {tmp_path}/none. Make one with: tacit init {tmp_path}/none\n"
    )


def test_the_current_folder_never_decides(home: Path, tacit: Tacit, tmp_path: Path) -> None:
    environment = {"TACIT_HOME": "", "HOME": str(tmp_path / "nobody")}
    ran = tacit("status", cwd=home, env=environment)
    assert ran.code == 1
    assert "/nobody/tacit" in ran.stderr


def test_it_works_where_the_current_folder_is_gone(tacit: Tacit, home: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = (
        "import os, sys; os.chdir(sys.argv[1]); os.rmdir(sys.argv[1]);"
        "from tacit.cli.main import main; sys.exit(main(['--home', sys.argv[2], 'status']))"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(gone), str(home)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


# ---------------------------------------------------------------- exit codes


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("Say it differently."), 2, "tacit: Say it differently.\n"),
        (HomeError("No home."), 1, "tacit: No home.\n"),
        (DiskError("The disk is full."), 1, "tacit: The disk is full.\n"),
        (GitError("git failed.", "fatal: x"), 1, "tacit: git failed.\n  git said: fatal: x\n"),
        (PermissionError(13, "Permission denied", "/x"), 1, "tacit: Permission denied: /x\n"),
        (OSError("odd"), 1, "tacit: odd\n"),
        (KeyboardInterrupt(), 130, "tacit: stopped.\n"),
    ],
)
def test_each_error_has_its_exit_code_and_no_traceback(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    said: str,
) -> None:
    def fail(_options: object) -> int:
        raise error

    monkeypatch.setattr(status, "run", fail)
    assert main(["status", "--home", str(home)]) == code
    assert capsys.readouterr().err == said


def test_a_bug_is_said_as_one_with_its_traceback(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_options: object) -> int:
        raise ZeroDivisionError("surprise")

    monkeypatch.setattr(status, "run", fail)
    assert main(["status", "--home", str(home)]) == 3
    said = capsys.readouterr().err
    assert "ZeroDivisionError: surprise" in said
    assert said.endswith("tacit: this is a bug in tacit. Nothing was acknowledged that is not on disk.\n")


LIGHT = [
    "tacit",
    *("tacit.cli", "tacit.cli.commands", "tacit.cli.main"),
    "tacit.terminal",
    "tacit.version",
]


def test_a_command_is_imported_only_when_it_is_called() -> None:
    code = (
        "import sys; from tacit.cli.main import main; main(['--version']);"
        "print(sorted(name for name in sys.modules if name.startswith('tacit')))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.splitlines()[-1] == str(LIGHT)


def test_every_command_has_arguments_a_function_that_runs_it_and_a_help_text() -> None:
    for name in load_commands():
        add_arguments, run, text = load_command(name)
        assert callable(add_arguments)
        assert callable(run)
        assert text


# ---------------------------------------------------------------- output


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["status"], ["status", "--help"], ["history", "tags"], ["config"], ["--version"]],
)
def test_a_reader_that_leaves_early_is_no_error(home: Path, arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "tacit", *arguments],
            stdout=writer,
            stderr=subprocess.PIPE,
            env={**os.environ, "TACIT_HOME": str(home)},
        )
    finally:
        os.close(writer)
    assert (ran.returncode, ran.stderr) == (0, b"")


HOSTILE = "\x1b]0;owned\x07\x1b[2Jname\u202e\x9b31m"


def test_hostile_characters_of_file_names_never_reach_the_terminal(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TACIT_HOME", str(home))
    (home / f"knowledge/{HOSTILE}.md").write_text(f"{HOSTILE} needle\n")
    (home / f"knowledge/link {HOSTILE}").symlink_to("/etc/passwd")
    asked = [
        ["run", "commit", "--dry-run"],
        ["run", "commit"],
        ["history", "when", "needle"],
        ["history", "diff", "1 hour"],
        ["history", "today"],
        ["history", "blame", f"knowledge/{HOSTILE}.md"],
        ["history", "blame", f"knowledge/no {HOSTILE}.md"],
        ["history", "recall", f"knowledge/{HOSTILE}.md", "HEAD"],
        ["history", "recall", f"knowledge/{HOSTILE}.md", HOSTILE],
        ["history", "undo", HOSTILE],
        ["history", "snapshot", HOSTILE],
        ["verify"],
        ["status"],
        ["status", "--json"],
        ["history", "tags", "--json"],
        ["history", "when", "needle", "--json"],
        ["status", "--home", f"/nonexistent/{HOSTILE}"],
        [HOSTILE],
    ]
    for arguments in asked:
        code = main(arguments)
        printed = "".join(capsys.readouterr())
        assert code in (0, 1, 2), printed
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(printed), arguments


def test_an_undo_that_is_refused_prints_hostile_names_safely(
    home: Path, memory: Memory, tacit: Tacit
) -> None:
    file = home / f"knowledge/{HOSTILE}.md"
    file.write_text("one\n")
    memory.commit()
    file.write_text("two\n")
    (commit,) = memory.commit().commits
    file.write_text("three\n")
    ran = tacit("history", "undo", commit)
    assert ran.code == 2
    assert "edited in the same place" in ran.stderr
    assert "\x1b" not in ran.stderr


def test_names_that_are_not_unicode_can_be_printed(home: Path, tacit: Tacit) -> None:
    (home / "knowledge" / os.fsdecode(b"\xff\xfe.md")).write_text("x\n")
    ran = tacit("run", "commit", "--dry-run", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert ran.code == 0
    assert ran.stdout.strip().startswith("add  knowledge/")


def shell(home: Path, command: str) -> subprocess.CompletedProcess[str]:
    """`tacit` in this home, started by a shell that can close and redirect its streams."""
    called = f"{sys.executable} -m tacit"
    environment = {**os.environ, "TACIT_HOME": str(home)}
    return subprocess.run(
        ["sh", "-c", command.replace("tacit", called)], capture_output=True, text=True, env=environment
    )


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("tacit status >&-", 0),
        ("tacit status --json >&-", 0),
        ("tacit --version >&-", 0),
        ("tacit --help <&- >&-", 0),
        ("tacit bogus >&-", 2),
        ("tacit status <&- >&- 2>&-", 0),
        ("tacit run commit <&- >&- 2>&-", 0),
        ("tacit verify <&- 2>&-", 0),
    ],
)
def test_closed_streams_change_neither_the_exit_code_nor_anything_else(
    home: Path, command: str, code: int
) -> None:
    ran = shell(home, command)
    assert ran.returncode == code
    assert "Traceback" not in ran.stderr


def test_with_stderr_closed_its_words_go_nowhere_else(home: Path) -> None:
    ran = shell(home, "tacit bogus 2>&-")
    assert (ran.returncode, ran.stdout) == (2, "")


def test_what_is_printed_with_streams_closed_does_not_land_in_a_file(home: Path) -> None:
    before = (home / "memory-config.yaml").read_bytes()
    assert shell(home, "tacit capture start --session-id ses_1 <&- >&- 2>&-").returncode == 0
    assert shell(home, "tacit capture message ses_1 user hello <&- >&- 2>&-").returncode == 0
    assert shell(home, "tacit capture end ses_1 <&- >&- 2>&-").returncode == 0
    assert (home / "memory-config.yaml").read_bytes() == before
    assert shell(home, "tacit verify").stdout == "1 transcript: 1 proved.\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments", ["--help", "--version", "status", "status --json", "status --help", "config", "history tags"]
)
def test_output_that_cannot_be_written_is_said_in_one_line(
    home: Path, arguments: str, unbuffered: str
) -> None:
    ran = shell(home, f"PYTHONUNBUFFERED={unbuffered} tacit {arguments} >/dev/full")
    said = "tacit: cannot write to standard output: No space left on device\n"
    assert (ran.returncode, ran.stderr) == (1, said)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_messages_that_cannot_be_written_leave_the_exit_code_alone(home: Path) -> None:
    assert shell(home, "tacit bogus 2>/dev/full").returncode == 2
    assert shell(home, "tacit status 2>/dev/full").returncode == 0


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("fatal: cannot lock ref 'x': Read-only file system", "The file system is read-only"),
        ("error: unable to write file: No space left on device", "The disk is full"),
        ("fatal: Unable to create '/x.lock': Permission denied", "This user may not write there"),
    ],
)
def test_what_git_says_about_the_disk_is_said_in_words(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], said: str, words: str
) -> None:
    def fail(_options: object) -> int:
        raise GitError("git update-ref failed.", said)

    monkeypatch.setattr(status, "run", fail)
    assert main(["status", "--home", str(home)]) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"tacit: git update-ref failed. {words}")
    assert "fatal" not in told


def test_what_is_missing_is_named_in_plain_words(tacit: Tacit) -> None:
    assert "required: WORK" in tacit("run").stderr
    assert "required: HOOK" in tacit("hook").stderr
    assert "argument WORK: invalid choice: 'x'" in tacit("run", "x").stderr

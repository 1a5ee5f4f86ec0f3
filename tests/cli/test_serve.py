"""`tacit serve`, `tacit stop` and what `tacit status` tells of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tacit.cli.main import main
from tacit.daemon_socket import socket_path
from tacit.home.layout import CONFIG, Home
from tacit.server.instance import find_daemon
from tacit.transcripts import spool
from tests.conftest import Tacit
from tests.server.served import PATIENCE, answers, serving


@pytest.fixture
def background(home: Path, tacit: Tacit) -> Iterator[str]:
    ran = tacit("serve", "--detach", "--tcp", "0", timeout=PATIENCE)
    assert ran.code == 0, ran
    yield ran.stdout
    tacit("stop", timeout=PATIENCE)


def test_cli_serve_in_the_background_answers_when_the_command_returns_and_stop_ends_it(
    home: Path, tacit: Tacit, background: str
) -> None:
    info = find_daemon(Home(home))
    assert info is not None
    assert answers(home)
    assert f"listening on {socket_path(str(home))} and 127.0.0.1:{info.tcp}" in background
    assert f"{home}/.tacit/daemon.log" in background
    assert os.getsid(info.pid) != os.getsid(0)

    again = tacit("serve")
    assert again.code == 1
    assert f"process {info.pid} since {info.started}" in again.stderr
    detached = tacit("serve", "--detach", timeout=PATIENCE)
    assert detached.code == 1
    assert f"process {info.pid} since" in detached.stderr
    assert find_daemon(Home(home)) == info

    spool.add(home, "turn", {"message": "nothing for a daemon"})
    settings = "inject: {exclude_agents: [mole], lanes: [runtime, file]}\nmemory: {read_only: true}\n"
    (home / CONFIG).write_text(settings)
    rows = until_told(tacit, "inject", "lanes runtime, file; never for mole")
    assert (
        rows["daemon"] == f"process {info.pid} since {info.started} on {info.socket} and 127.0.0.1:{info.tcp}"
    )
    assert rows["capture"] == "on"
    assert rows["memory"] == "read-only; nothing is added to notes"
    assert "set aside" in until_told(tacit, "problem", "1 event of a host")["problem"]
    value = json.loads(tacit("status", "--json").stdout)
    assert (value["daemon"]["pid"], value["daemon"]["answers"]) == (info.pid, True)
    assert value["settings"]["inject.exclude_agents"] == ["mole"]
    assert len(value["problems"]) == 1

    ran = tacit("stop", timeout=PATIENCE)
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout == f"The daemon of {home} (process {info.pid}) was asked to stop and has ended.\n"
    assert find_daemon(Home(home)) is None
    ran = tacit("stop")
    assert (ran.code, ran.stdout) == (0, f"No daemon runs for {home}.\n")


def until_told(tacit: Tacit, name: str, text: str) -> dict[str, str]:
    for _ in range(60):
        lines = tacit("status").stdout.splitlines()
        rows = {line[:13].strip(): line[13:] for line in lines}
        if text in rows.get(name, ""):
            return rows
    pytest.fail(f"{name} never told {text!r}: {rows}")


def test_cli_serve_detach_says_why_it_cannot(home: Path, tacit: Tacit) -> None:
    (home / CONFIG).write_text("nonsense: 1\n")
    ran = tacit("serve", "--detach", timeout=PATIENCE)
    assert ran.code == 1
    assert "unknown key 'nonsense'" in ran.stderr
    assert find_daemon(Home(home)) is None


@pytest.mark.parametrize("arguments", [("--tcp", "x"), ("--tcp", "70000"), ("--detach", "--install")])
def test_cli_serve_refuses_what_makes_no_sense(home: Path, arguments: tuple[str, ...]) -> None:
    assert main(["--home", str(home), "serve", *arguments]) == 2


def test_cli_serve_and_stop_need_a_home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("serve", "stop", "status"):
        assert main([command, "--home", str(tmp_path / "none")]) == 1
        assert "There is no home at" in capsys.readouterr().err


# ---------------------------------------------------------------- a daemon that does not answer


HOLDER = """
import os, sys, time
from pathlib import Path
from tacit.server.instance import DaemonInstance
from tacit.home.layout import Home

place = DaemonInstance(Home(Path(sys.argv[1])))
place.take()
place.announce()
print("held", flush=True)
time.sleep(600)
"""


@contextmanager
def holder(home: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the place of the daemon and answers nobody."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(home)], stdout=subprocess.PIPE, text=True
    ) as held:
        assert held.stdout is not None
        assert held.stdout.readline() == "held\n"
        yield held
        held.kill()


def test_cli_stop_signals_the_process_that_holds_the_home_when_it_does_not_answer(
    home: Path, tacit: Tacit
) -> None:
    with holder(home) as process:
        told = tacit("status").stdout
        assert f"daemon       process {process.pid} since" in told
        assert "problem      The daemon does not answer" in told
        assert "inject       see: tacit config" in told
        ran = tacit("stop", timeout=PATIENCE)
        assert (ran.code, ran.stderr) == (0, "")
        assert "signalled" in ran.stdout
        assert process.wait(PATIENCE) == -15


def test_cli_stop_never_signals_a_process_that_has_the_number_of_another(home: Path, tacit: Tacit) -> None:
    with subprocess.Popen(["sleep", "600"]) as innocent:
        with holder(home):
            file = home / ".tacit/daemon.json"
            file.write_text(json.dumps({**json.loads(file.read_text()), "pid": innocent.pid}))
            ran = tacit("stop", timeout=PATIENCE)
        assert ran.code == 1
        assert "is not the one that holds it" in ran.stderr
        assert innocent.poll() is None
        innocent.kill()


def test_files_that_a_killed_daemon_left_are_no_daemon(home: Path, tacit: Tacit) -> None:
    with holder(home):
        pass
    assert (home / ".tacit/daemon.json").exists()
    assert "daemon       not running" in tacit("status").stdout
    assert tacit("stop").stdout == f"No daemon runs for {home}.\n"
    with serving(home) as process:
        assert process.end()[0] == 0


# ---------------------------------------------------------------- started by the system


def test_cli_serve_install_writes_a_service_shows_it_and_says_what_to_do_next(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "conf"))
    monkeypatch.setattr(sys, "platform", "linux")

    def told(*arguments: str) -> tuple[int, str, str]:
        code = main(["--home", str(home), "serve", *arguments])
        return code, *capsys.readouterr()

    _, first, _ = told("--install")
    [unit] = (tmp_path / "conf/systemd/user").iterdir()
    assert unit.read_text() in first
    assert f"systemctl --user daemon-reload && systemctl --user enable --now {unit.name}" in first
    assert f'"serve" "--home" "{home}"' in unit.read_text()
    assert "Nothing to change" in told("--install")[1]
    assert "Wrote" in told("--install", "--tcp", "4711")[1]
    assert '"--tcp" "4711"' in unit.read_text()
    link = unit.parent / "default.target.wants" / unit.name  # as `systemctl enable` makes it
    link.parent.mkdir()
    link.symlink_to(unit)
    removed = told("--uninstall")[1]
    assert "Removed" in removed
    assert f"systemctl --user stop {unit.name}; systemctl --user daemon-reload" in removed
    assert not unit.exists()
    assert not link.is_symlink()
    assert told("--uninstall")[0] == 0

    unit.write_text("[Service]\nExecStart=/usr/bin/mine\n")
    for option in ("--install", "--uninstall"):
        code, _, errors = told(option)
        assert code == 2
        assert "not of tacit's making" in errors
    assert unit.read_text() == "[Service]\nExecStart=/usr/bin/mine\n"


# ---------------------------------------------------------------- status without a daemon


def test_cli_status_names_who_is_left_out_as_the_config_says(home: Path, tacit: Tacit) -> None:
    (home / CONFIG).write_text(
        textwrap.dedent(
            """\
            inject:
              exclude_agents: [mole, shrew]
              lanes:
                - runtime
                - daily
            capture:
              enabled: false
              exclude_agents: []
            """
        )
    )
    spool.add(home, "message", {"text": "x"})
    lines = tacit("status").stdout.splitlines()
    assert lines[4:] == [
        "daemon       not running (start it with `tacit serve`)",
        "spool        1 record waiting for the daemon",
        "inject       lanes runtime, daily; never for mole, shrew",
        "capture      off",
        "memory       agents may add to it; read-only while tacit is the host's memory slot",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("memory:\n  read_only: true\n", "read-only; nothing is added to notes"),
        ("memory:\n  read_only: false\n", "agents may add to it"),
        ('"memory": {read_only: true}\n', "read-only; nothing is added to notes"),  # read as YAML
    ],
)
def test_cli_status_tells_whether_agents_only_read(home: Path, tacit: Tacit, text: str, told: str) -> None:
    (home / CONFIG).write_text(text)
    assert tacit("status").stdout.splitlines()[-1] == f"memory       {told}"


@pytest.mark.parametrize(
    "text", ["inject: {exclude_agents: [mole]}\n", "inject: {exclude_agents: ['mole']}\n"]
)
def test_cli_status_reads_a_config_that_it_does_not_understand_at_a_glance(
    home: Path, tacit: Tacit, text: str
) -> None:
    (home / CONFIG).write_text(text)
    assert json.loads(tacit("status", "--json").stdout)["settings"]["inject.exclude_agents"] == ["mole"]


def test_cli_status_says_nothing_about_a_config_that_is_wrong(home: Path, tacit: Tacit) -> None:
    (home / CONFIG).write_text("inject: {exclude_agents: 5}\n")
    assert "inject       see: tacit config\ncapture      see: tacit config\n" in tacit("status").stdout
    assert json.loads(tacit("status", "--json").stdout)["settings"] is None


def test_cli_status_loads_nothing_heavy(home: Path) -> None:
    heavy = {"yaml", "subprocess", "rich", "splintr", "dataclasses", "socket", "asyncio"}
    code = (
        "import sys; from tacit.cli.main import main; main(sys.argv[1:]);"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "--home", str(home), "status"], capture_output=True, text=True
    )
    assert ran.stdout.splitlines()[-1] == "[]"

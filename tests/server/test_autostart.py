"""What starts the daemon when its owner logs in."""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from tacit.server.autostart import Service, UserPaths, is_ours, render_service

USER = UserPaths("/home/ines", "/home/ines/.config")
ODD = ("/home/ines/tacit", "/srv/with space", '/srv/100% "sure" & <$HOME>', "/srv/back\\slash", "/srv/größe")


def of(platform: str, home: str, program: str = "/usr/bin/tacit", *options: str) -> Service:
    return render_service(platform, USER, program, home, options)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_each_home_has_a_file_of_its_own_and_ours_are_known(platform: str) -> None:
    made = [of(platform, home) for home in ODD]
    assert len({one.path for one in made}) == len(ODD)
    assert all(is_ours(one.text) for one in made)
    assert of(platform, ODD[1]) == made[1]
    assert not is_ours("[Unit]\nDescription=mine\n")


def test_the_usual_home_is_plain_tacit() -> None:
    assert of("linux", "/home/ines/tacit").path == "/home/ines/.config/systemd/user/tacit.service"
    assert of("darwin", "/home/ines/tacit").path == "/home/ines/Library/LaunchAgents/local.tacit.plist"
    assert "enable --now tacit.service" in of("linux", "/home/ines/tacit").begin


@pytest.mark.parametrize("home", ODD)
def test_launchd_reads_the_arguments_as_they_are(home: str) -> None:
    value = plistlib.loads(of("darwin", home, "/opt/a & b/tacit", "--tcp", "0").text.encode())
    assert value["ProgramArguments"] == ["/opt/a & b/tacit", "serve", "--home", home, "--tcp", "0"]
    assert value["KeepAlive"] == {"SuccessfulExit": False}
    assert value["RunAtLoad"] is True


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
@pytest.mark.parametrize("home", ODD)
def test_systemd_finds_nothing_to_complain_about(tmp_path: Path, home: str) -> None:
    program = tmp_path / "a program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / os.path.basename(of("linux", home).path)
    unit.write_text(of("linux", home, str(program)).text)
    ran = subprocess.run(
        ["systemd-analyze", "verify", "--user", str(unit)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_systemd_gets_a_command_that_it_reads_as_it_is() -> None:
    [line] = [line for line in of("linux", ODD[2]).text.split("\n") if line.startswith("ExecStart=")]
    assert line.endswith(r'"--home" "/srv/100%% \"sure\" & <$$HOME>"')

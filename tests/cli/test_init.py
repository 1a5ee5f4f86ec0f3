"""`tacit init` as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Ran, Tacit


def user(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=U", "-c", "user.email=u@example.com", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def without_lfs(ran: Ran) -> str:
    """git-lfs may or may not be installed where the tests run."""
    return "".join(line for line in ran.stderr.splitlines(keepends=True) if "git-lfs" not in line)


def test_init_tells_what_it_made_and_what_to_do_next(tacit: Tacit, tmp_path: Path) -> None:
    place = tmp_path / "new home"
    ran = tacit("init", str(place))
    lines = ran.stdout.splitlines()
    assert (ran.code, without_lfs(ran)) == (0, "")
    assert lines[0] == f"{place} is a tacit home."
    assert {"  made  .git", "  made  memory-config.yaml", "  made  knowledge/identity/USER.md"} <= set(lines)
    assert lines[-1] == "Tell it who you are in knowledge/identity/USER.md, then try: tacit status"
    assert tacit("status", "--home", str(place)).code == 0


def test_init_again_says_that_all_is_in_place(tacit: Tacit, home: Path) -> None:
    ran = tacit("init", str(home))
    assert ran.code == 0
    assert ran.stdout == f"{home} is a tacit home already; all is in place.\n"
    assert without_lfs(ran) == ""


@pytest.mark.parametrize("how", ["argument", "option", "before", "variable"])
def test_the_place_can_be_named_in_every_way(tacit: Tacit, tmp_path: Path, how: str) -> None:
    place = str(tmp_path / "place")
    arguments, env = {
        "argument": (["init", place], {}),
        "option": (["init", "--home", place], {}),
        "before": (["--home", place, "init"], {}),
        "variable": (["init"], {"TACIT_HOME": place}),
    }[how]
    assert tacit(*arguments, env=env).code == 0
    assert (tmp_path / "place/memory-config.yaml").is_file()


def test_by_default_the_home_is_below_the_users_home(tacit: Tacit, tmp_path: Path) -> None:
    assert tacit("init", env={"HOME": str(tmp_path), "TACIT_HOME": ""}).code == 0
    assert (tmp_path / "tacit/memory-config.yaml").is_file()


def test_init_prints_json(tacit: Tacit, tmp_path: Path) -> None:
    value = json.loads(tacit("init", str(tmp_path / "x"), "--json").stdout)
    assert value["home"] == str(tmp_path / "x")
    assert ".git" in value["made"]
    assert value["mended"] == []
    assert isinstance(value["warnings"], list)


def test_quiet_prints_only_problems(tacit: Tacit, tmp_path: Path) -> None:
    ran = tacit("init", str(tmp_path / "x"), "--quiet")
    assert (ran.code, ran.stdout, without_lfs(ran)) == (0, "", "")


def test_a_foreign_folder_is_refused_with_the_way_to_adopt_it(tacit: Tacit, tmp_path: Path) -> None:
    place = tmp_path / "theirs"
    place.mkdir()
    (place / "a.txt").write_text("x\n")
    ran = tacit("init", str(place))
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr == (
        f"tacit: {place} is not empty and not a tacit home, so nothing was touched. "
        f"To make it one and keep all that is there: tacit init --adopt {place}\n"
    )
    assert tacit("init", "--adopt", str(place)).code == 0
    assert (place / "a.txt").read_text() == "x\n"


def test_a_damaged_repository_is_mended_and_told(tacit: Tacit, home: Path) -> None:
    (home / ".git/index").write_bytes(b"")
    ran = tacit("init", str(home))
    assert ran.code == 0
    assert "  mended  .git/index: the index is damaged" in ran.stdout
    assert user(home, "status", "--porcelain") == ""


def test_inits_at_once_make_one_home(tmp_path: Path) -> None:
    place = tmp_path / "raced"
    command = [sys.executable, "-m", "tacit", "init", str(place), "--quiet"]
    running = [subprocess.Popen(command, stderr=subprocess.DEVNULL, env=os.environ) for _ in range(6)]
    deadline = time.monotonic() + 60
    assert [process.wait(deadline - time.monotonic()) for process in running] == [0] * 6
    assert user(place, "log", "--format=%s") == "maintenance: lay out the home\n"
    assert user(place, "status", "--porcelain") == ""


def test_a_place_that_cannot_be_made_is_told_without_traceback(tacit: Tacit, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    ran = tacit("init", str(tmp_path / "file/below"))
    assert ran.code == 1
    assert "Traceback" not in ran.stderr
    assert ran.stderr.startswith("tacit: ")

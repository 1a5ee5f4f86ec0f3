"""Adopting a workspace, and what the commands say of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import Tacit
from tests.memory.homes import files_of, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "agents" / "ws"
    write(root, "MEMORY.md", "# Memory\n\nMarit Solberg mends the boiler.\n")
    write(root, "memory/2026-02-16.md", "# Monday\n\nThe ledger moves to double entry.\n")
    write(root, "TOOLS.md", "# Tools\n\nThe camera is on port 8554.\n")
    return root


@pytest.fixture
def adopted(tacit: Tacit, folder: Path) -> Tacit:
    assert tacit("init", "--workspace", str(folder)).code == 0
    return tacit


def test_cli_init_adopts_a_workspace_once(tacit: Tacit, folder: Path) -> None:
    before = (tacit.home / "memory-config.yaml").read_text()
    first = tacit("init", "--workspace", str(folder), "--json")
    assert json.loads(first.stdout)["adopted"] == [str(folder)]
    config = (tacit.home / "memory-config.yaml").read_text()
    assert config.replace(f"workspaces: [{folder}]", "#workspaces: []") == before
    again = tacit("init", "--workspace", f"{folder}/../ws")
    assert "all is in place" in again.stdout
    assert (tacit.home / "memory-config.yaml").read_text() == config


def test_cli_init_adopts_a_second_one_beside_the_first(adopted: Tacit, tmp_path: Path) -> None:
    other = tmp_path / "others" / "ws"
    write(other, "MEMORY.md", "The orchard.\n")
    assert adopted("init", "--workspace", str(other)).code == 0
    rows = json.loads(adopted("status", "--json").stdout)["workspaces"]
    assert [(row["name"], row["files"]) for row in rows] == [("ws", 3), ("ws-2", 1)]


@pytest.mark.parametrize("what", ["missing", "the home", "inside the home", "the disk", "a home folder"])
def test_cli_init_refuses_what_is_no_workspace_before_anything_is_made(
    tacit: Tacit, tmp_path: Path, what: str
) -> None:
    place = {
        "missing": tmp_path / "none",
        "the home": tacit.home,
        "inside the home": tacit.home / "knowledge",
        "the disk": Path("/"),
        "a home folder": tmp_path,
    }[what]
    before = files_of(tacit.home)
    ran = tacit("init", "--workspace", str(place), env={"HOME": str(tmp_path)})
    assert ran.code == 2
    assert str(place) in ran.stderr
    assert files_of(tacit.home) == before
    if what == "missing":
        assert tacit("init", str(tmp_path / "new"), "--workspace", str(place)).code == 2
        assert not (tmp_path / "new").exists()


def test_cli_init_leaves_a_config_that_it_cannot_change_safely_to_its_owner(
    tacit: Tacit, folder: Path
) -> None:
    config = tacit.home / "memory-config.yaml"
    config.write_text("workspaces: [/a,\n  /b]\n")
    ran = tacit("init", "--workspace", str(folder))
    assert ran.code == 2
    assert f"workspaces: [/a, /b, {folder}]" in ran.stderr
    assert config.read_text() == "workspaces: [/a,\n  /b]\n"


def test_cli_search_finds_it_and_names_it_by_its_workspace(adopted: Tacit) -> None:
    hits = json.loads(adopted("search", "who mends the boiler", "--json").stdout)
    assert (hits[0]["path"], hits[0]["category"]) == ("workspace/ws/MEMORY.md", "memory")
    group = json.loads(adopted("search", "boiler camera ledger", "--audience", "group", "--json").stdout)
    assert not [hit for hit in group if hit["path"].startswith("workspace/")]


def test_cli_status_tells_the_workspaces(adopted: Tacit, folder: Path) -> None:
    assert f"workspace    ws  3 files  {folder}\n" in adopted("status").stdout
    shutil.move(folder, folder.parent / "away")
    assert f"workspace    ws  is missing  {folder}\n" in adopted("status").stdout


def test_cli_status_of_a_copied_home_says_that_its_workspaces_are_not_read(
    adopted: Tacit, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(adopted.home, copy, symlinks=True)
    told = json.loads(adopted("status", "--json", "--home", str(copy)).stdout)
    assert told["workspaces"] == []
    assert "this home was not set up on this machine" in told["problems"][0]
    assert adopted("init", str(copy)).code == 0
    assert len(json.loads(adopted("status", "--json", "--home", str(copy)).stdout)["workspaces"]) == 1


def test_cli_doctor_tells_what_is_left_out_and_what_is_missing(adopted: Tacit, folder: Path) -> None:
    def check() -> dict[str, object]:
        checks = json.loads(adopted("doctor", "--json").stdout)
        return next(one for one in checks if one["name"] == "workspaces")

    assert check() == {"name": "workspaces", "found": "ws, 3 files", "problems": []}
    write(folder, "dump.md", "x" * 2_000_000)
    write(folder, "broken.md", "---\ntags: [\n---\nx\n")
    write(adopted.home, "workspace/a.md", "x\n")
    wheres = [problem["where"] for problem in check()["problems"]]  # type: ignore[attr-defined]
    assert wheres == ["workspace/ws/dump.md", "workspace/ws/broken.md", "workspace"]
    shutil.rmtree(folder)
    missing = check()
    assert missing["found"] == "ws, is missing"
    assert adopted("doctor").code in (0, 1)


def test_cli_why_explains_a_file_of_a_workspace(adopted: Tacit, folder: Path) -> None:
    compiled = adopted("compile", "Who mends the boiler?", "--json")
    assert "workspace/ws/MEMORY.md:1" in compiled.stdout
    for name in ("workspace/ws/MEMORY.md", str(folder / "MEMORY.md")):
        assert "workspace/ws/MEMORY.md is in the prompt" in adopted("why", "--not", name).stdout
    assert "relevance" in adopted("why", "--block", "ws/MEMORY").stdout
    adopted("compile", "Who mends the boiler?", "--session-key", "agent:main:telegram:group:-1")
    told = adopted("why", "--not", "2026-02-16.md").stdout
    assert "workspace/ws/memory/2026-02-16.md was not considered" in told
    assert "the owner alone" in told


def test_cli_forget_names_the_places_in_workspaces_and_leaves_them(adopted: Tacit, folder: Path) -> None:
    before = files_of(folder)
    write(adopted.home, "knowledge/people/marit.md", "Marit Solberg comes in October.\n")
    assert adopted("run", "commit").code == 0
    adopted("compile", "Who mends the boiler?")
    report = json.loads(adopted("forget", "Marit Solberg", "--json").stdout)
    assert report["workspaces"] == ["workspace/ws/MEMORY.md:3"]
    done = adopted("forget", "Marit Solberg", "--yes")
    assert done.code == 0
    assert "workspace/ws/MEMORY.md:3" in done.stdout
    assert files_of(folder) == before
    again = adopted("forget", "Marit Solberg")
    assert again.code == 1
    assert "Nothing in the home matches." in again.stdout
    assert "workspace/ws/MEMORY.md:3" in again.stdout


def test_cli_config_shows_workspaces_as_they_were_written(adopted: Tacit, folder: Path) -> None:
    rows = json.loads(adopted("config", "workspaces", "--json").stdout)
    assert rows[0]["value"] == [str(folder)]

"""Adopted workspaces: a path leads to a plain file below its folder, or nowhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tacit.config import Workspace
from tacit.config.groups import assign_names
from tacit.errors import UnsafePath
from tacit.home.layout import Home
from tacit.workspaces.folders import MAX_FILE_BYTES, Workspaces
from tests.memory.homes import write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "agents" / "ws"
    write(root, "MEMORY.md", "memory\n")
    write(root, "memory/2026-02-16.md", "day\n")
    return root


def of(home: Path, *given: Path | Workspace) -> Workspaces:
    return Workspaces(
        Home(home), [one if isinstance(one, Workspace) else Workspace(str(one)) for one in given]
    )


def listed(workspaces: Workspaces) -> list[str]:
    return sorted(workspaces.stamps({}))


def test_files_are_listed_and_read_by_the_name_of_their_workspace(home: Path, folder: Path) -> None:
    workspaces = of(home, folder)
    assert listed(workspaces) == ["workspace/ws/MEMORY.md", "workspace/ws/memory/2026-02-16.md"]
    assert workspaces.read("workspace/ws/MEMORY.md") == b"memory\n"
    assert workspaces.file_of("workspace/ws/MEMORY.md") == str(folder / "MEMORY.md")
    assert workspaces.path_of(str(folder / "memory" / "2026-02-16.md")) == "workspace/ws/memory/2026-02-16.md"


def test_a_home_without_workspaces_has_none_of_it(home: Path) -> None:
    write(home, "workspace/ws/MEMORY.md", "a folder of the home\n")
    workspaces = of(home)
    assert not workspaces
    assert listed(workspaces) == []
    with pytest.raises(FileNotFoundError):
        workspaces.read("workspace/ws/MEMORY.md")


def test_a_folder_of_the_home_that_is_called_workspace_is_never_read_for_one(
    home: Path, folder: Path
) -> None:
    write(home, "workspace/ws/MEMORY.md", "a folder of the home\n")
    write(home, "workspace/ws/only-here.md", "a folder of the home\n")
    workspaces = of(home, folder)
    assert workspaces.read("workspace/ws/MEMORY.md") == b"memory\n"
    with pytest.raises(FileNotFoundError):
        workspaces.read("workspace/ws/only-here.md")


@pytest.mark.parametrize(
    "path",
    [
        "workspace/ws/../secret.md",
        "workspace/ws/memory/../../secret.md",
        "workspace/ws/../../../../etc/hostname",
        "workspace/ws//etc/hostname.md",
        "workspace/../secret.md",
        "workspace/ws/\0.md",
        "workspace/other/MEMORY.md",
        "workspace/ws",
        "workspace/ws/",
        "workspace//MEMORY.md",
        "workspace/ws/keys.json",
        "workspace/ws/.hidden.md",
        "workspace/ws/initiatives//adaptive-context-injection/draft.md",
    ],
)
def test_no_path_leads_out_of_a_workspace_or_to_what_is_left_out(home: Path, folder: Path, path: str) -> None:
    write(folder.parent, "secret.md", "secret\n")
    for left_out in ("keys.json", ".hidden.md", "initiatives/adaptive-context-injection/draft.md"):
        write(folder, left_out, "secret\n")
    with pytest.raises((UnsafePath, FileNotFoundError)):
        of(home, folder).read(path)


def test_links_are_not_followed_neither_when_listing_nor_when_reading(home: Path, folder: Path) -> None:
    write(folder.parent, "outside/secret.md", "secret\n")
    (folder / "link.md").symlink_to(folder.parent / "outside" / "secret.md")
    (folder / "folder").symlink_to(folder.parent / "outside")
    os.link(folder.parent / "outside" / "secret.md", folder / "hard.md")
    workspaces = of(home, folder)
    assert listed(workspaces) == ["workspace/ws/MEMORY.md", "workspace/ws/memory/2026-02-16.md"]
    told = workspaces.some(["workspace/ws/link.md", "workspace/ws/hard.md", "workspace/ws/folder/secret.md"])
    assert told is not None
    assert set(told.values()) == {None}
    for path in told:
        with pytest.raises(UnsafePath):
            workspaces.read(path)


def test_a_file_that_becomes_a_link_after_it_was_listed_is_not_read(home: Path, folder: Path) -> None:
    write(folder.parent, "secret.md", "secret\n")
    workspaces = of(home, folder)
    path = listed(workspaces)[0]
    (folder / "MEMORY.md").unlink()
    (folder / "MEMORY.md").symlink_to(folder.parent / "secret.md")
    with pytest.raises(UnsafePath):
        workspaces.read(path)


def test_a_workspace_may_itself_be_reached_by_a_link(home: Path, folder: Path) -> None:
    link = folder.parent / "current"
    link.symlink_to(folder)
    assert listed(of(home, link)) == ["workspace/current/MEMORY.md", "workspace/current/memory/2026-02-16.md"]
    assert of(home, link).path_of(str(folder / "MEMORY.md")) == "workspace/current/MEMORY.md"


def test_what_is_too_large_or_no_text_is_left_out_and_told(home: Path, folder: Path) -> None:
    write(folder, "huge.md", "x" * (MAX_FILE_BYTES + 1))
    write(folder, "data.json", "{}")
    workspaces = of(home, folder)
    assert len(listed(workspaces)) == 2
    (seen,) = workspaces.look()
    assert seen.files == 2
    assert [inside for inside, _ in seen.left_out] == ["huge.md"]


def test_folders_that_are_left_out_are_not_even_looked_into(home: Path, folder: Path) -> None:
    for inside in ("node_modules/x/README.md", ".git/x.md", "hooks/HOOK.md", ".cache/y.md"):
        write(folder, inside, "x\n")
        assert of(home, folder).path_of(str(folder / inside)) == ""
    assert len(listed(of(home, folder))) == 2


def test_a_workspace_inside_another_is_its_own(home: Path, folder: Path) -> None:
    write(folder, "agents/shop/MEMORY.md", "of the shop\n")
    shop = Workspace(str(folder / "agents" / "shop"), agent="shop")
    workspaces = of(home, folder, shop)
    assert "workspace/ws/agents/shop/MEMORY.md" not in listed(workspaces)
    assert "workspace/shop/MEMORY.md" in listed(workspaces)
    assert workspaces.path_of(f"{shop.path}/MEMORY.md") == "workspace/shop/MEMORY.md"
    assert workspaces.agents_of("workspace/shop/MEMORY.md") == ("shop",)
    assert workspaces.agents_of("workspace/ws/MEMORY.md") == ()
    assert workspaces.some(["workspace/ws/agents/shop/MEMORY.md"]) == {
        "workspace/ws/agents/shop/MEMORY.md": None
    }
    with pytest.raises(FileNotFoundError):
        workspaces.read("workspace/ws/agents/shop/MEMORY.md")


def test_the_files_of_the_home_are_the_homes_alone(home: Path) -> None:
    write(home.parent, "notes.md", "beside the home\n")
    write(home, "knowledge/reference/a.md", "in the home\n")
    around = of(home, home.parent)
    assert [path for path in listed(around) if "/home/" in path] == []
    assert around.path_of(str(home / "knowledge" / "reference" / "a.md")) == ""
    for inside in (home, home / "knowledge", Path("/")):
        (seen,) = of(home, inside).look()
        assert seen.trouble
        assert not seen.missing
        assert listed(of(home, inside)) == []
        assert of(home, inside).missing() == ()


def test_folders_of_one_name_get_names_of_their_own(home: Path, tmp_path: Path) -> None:
    for place in ("a/ws", "b/ws", "c/ws-2"):
        write(tmp_path / place, "MEMORY.md", f"{place}\n")
    workspaces = of(home, tmp_path / "a/ws", tmp_path / "b/ws", tmp_path / "c/ws-2")
    assert {path: workspaces.read(path).decode().strip() for path in listed(workspaces)} == {
        "workspace/ws/MEMORY.md": "a/ws",
        "workspace/ws-3/MEMORY.md": "b/ws",
        "workspace/ws-2/MEMORY.md": "c/ws-2",
    }


def test_a_name_that_somebody_gave_counts_before_all_others() -> None:
    given = (Workspace("/a/ws"), Workspace("/b", name="ws"), Workspace("/c/.open claw"), Workspace("/d/.."))
    assert [one.name for one in assign_names(given)] == ["ws-2", "ws", "open-claw", "workspace"]


def test_a_stamp_changes_with_the_file_and_with_whose_it_is(home: Path, folder: Path) -> None:
    path = "workspace/ws/MEMORY.md"
    before = of(home, folder).stamps({})[path]
    assert of(home, folder).stamps({})[path] == before
    assert of(home, folder).some([path]) == {path: before}
    assert of(home, Workspace(str(folder), agent="shop")).stamps({})[path] != before
    (folder / "MEMORY.md").write_text("longer than before\n")
    assert of(home, folder).stamps({})[path] != before


@pytest.mark.parametrize("how", ["gone", "empty", "a file"])
def test_of_a_workspace_that_is_not_there_what_was_known_stays_known(
    home: Path, folder: Path, how: str
) -> None:
    workspaces = of(home, folder)
    known = workspaces.stamps({})
    folder.rename(folder.parent / "elsewhere")
    if how == "empty":
        folder.mkdir()
    if how == "a file":
        folder.write_text("x")
    assert workspaces.stamps(known) == known
    assert workspaces.stamps({}) == {}
    assert workspaces.some(["workspace/ws/MEMORY.md"]) is None
    (told,) = workspaces.missing()
    assert told.startswith("ws is ")
    assert str(folder) in told
    assert [one.missing for one in workspaces.look()] == [True]
    other = of(home, Workspace(str(folder), agent="shop"))
    assert other.stamps(known) == {}  # it was read for all agents: nobody knows it for this one


def test_a_workspace_whose_last_text_was_deleted_is_there(home: Path, folder: Path) -> None:
    workspaces = of(home, folder)
    known = workspaces.stamps({})
    (folder / "MEMORY.md").unlink()
    (folder / "memory" / "2026-02-16.md").unlink()
    assert workspaces.stamps(known) == {}
    assert workspaces.missing() == ()

"""Reading one file, as a session may."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.errors import UsageError
from tacit.memory import Memory
from tests.memory.homes import opened, write

OWNER, GROUP, STRANGER = "agent:main:main", "agent:main:telegram:group:-1", "agent:main:telegram:direct:99"


@pytest.fixture
def memory(home: Path) -> Memory:
    write(home, "knowledge/people/vera.md", "# Vera\n\nOWNERWORD\n")
    write(home, "knowledge/procedures/fire.md", "# Fire\n\nGROUPWORD\n")
    write(home, "knowledge/reference/other.md", "---\nagent: pumpkin\n---\nPUMPWORD\n")
    return opened(home)


def seen(memory: Memory, path: str, key: str) -> str:
    try:
        return memory.services.file_reader.read(path, memory.services.profiles.scope_of(key)).text
    except UsageError as error:
        return f"refused: {error}"


@pytest.mark.parametrize(
    ("key", "sees"), [(OWNER, {"OWNERWORD", "GROUPWORD"}), (GROUP, {"GROUPWORD"}), (STRANGER, set())]
)
def test_a_session_reads_what_it_may_search(memory: Memory, key: str, sees: set[str]) -> None:
    paths = ["knowledge/people/vera.md", "knowledge/procedures/fire.md", "knowledge/reference/other.md"]
    shown = " ".join(seen(memory, path, key) for path in paths)
    assert {word for word in ("OWNERWORD", "GROUPWORD", "PUMPWORD") if word in shown} == sees


def test_what_may_not_be_seen_is_refused_as_what_is_not_there(memory: Memory) -> None:
    hidden = seen(memory, "knowledge/people/vera.md", STRANGER)
    absent = seen(memory, "knowledge/people/nora.md", STRANGER)
    assert hidden.replace("vera", "nora") == absent


@pytest.mark.parametrize(
    "path",
    ["../x.md", "/etc/passwd", "memory-config.yaml", ".tacit/README", "drafts/a.md", "link.md",
     "knowledge/reference/link.md", "", "knowledge", "knowledge/people/\0.md"],
)  # fmt: skip
def test_only_files_that_search_sees_are_read(memory: Memory, path: str) -> None:
    (memory.home.root / "knowledge/reference/link.md").symlink_to(
        memory.home.root / "knowledge/people/vera.md"
    )
    assert seen(memory, path, OWNER).startswith("refused")


def test_a_part_of_a_file_is_told_by_its_lines(memory: Memory) -> None:
    write(memory.home.root, "knowledge/reference/long.md", "".join(f"line {n}\n" for n in range(1, 1001)))
    path, scope = "knowledge/reference/long.md", memory.services.profiles.scope_of(OWNER)
    part = memory.services.file_reader.read(path, scope, 10, 3)
    assert (part.text, part.first, part.last) == ("line 10\nline 11\nline 12", 10, 12)
    assert len(memory.services.file_reader.read(path, scope).text.split("\n")) == 400


def test_a_file_of_an_adopted_workspace_is_read_by_the_path_that_search_gives(
    home: Path, tmp_path: Path
) -> None:
    place = tmp_path / "jules"
    write(place, "MEMORY.md", "# Memory\n\nWORKSPACEWORD\n")
    write(place, "TOOLS_COMPACT.md", "# Tools\n\nTOOLSWORD\n")
    config = home / "memory-config.yaml"
    lines = [line for line in config.read_text().splitlines() if not line.startswith("workspaces:")]
    config.write_text("\n".join([*lines, f"workspaces: ['{place}']", ""]))
    memory = opened(home)
    assert "WORKSPACEWORD" in seen(memory, "workspace/jules/MEMORY.md", OWNER)
    assert "WORKSPACEWORD" not in seen(memory, "workspace/jules/MEMORY.md", GROUP)
    assert "TOOLSWORD" in seen(memory, "workspace/jules/TOOLS_COMPACT.md", GROUP)
    assert seen(memory, "workspace/jules/../../etc/passwd.md", OWNER).startswith("refused")

"""Turns of every type of session with an adopted workspace: who is given what stands in it, who is not."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from tacit.context.model import Compiled
from tacit.errors import UsageError
from tests.memory.homes import (
    CRON,
    FORUM,
    GROUP,
    OWNER,
    OWNER_DM,
    OWNERS,
    PATIENT,
    STRANGER,
    SUBAGENT,
    UNKNOWN,
    everything,
    files_of,
    in_slot,
    notice_codes,
    opened,
    settle,
    write,
)

QUESTION = "Who mends the boiler in the cellar?"
FILES = {
    "SOUL.md": "# Soul\n\nWho mends the boiler in the cellar is greeted first. SOULMARK\n",
    "TOOLS.md": "# Tools\n\nThe camera at the boiler in the cellar is on port 8554. TOOLMARK\n",
    "AGENTS.md": "# Agents\n\nThe agent ember watches the boiler in the cellar. AGENTMARK\n",
    "IDENTITY.md": "# Identity\n\nKestrel, who knows the boiler in the cellar. IDENTITYMARK\n",
    "USER.md": "# User\n\nInes hears the boiler in the cellar from her bed. USERMARK\n",
    "MEMORY.md": "# Memory\n\nMarit Solberg mends the boiler in the cellar. MEMORYMARK\n",
    "memory/2026-03-09.md": "# Monday\n\nThe boiler in the cellar was mended again. DAILYMARK\n",
    "initiatives/heating/STATUS.md": "# Heating\n\nA new boiler for the cellar is ordered. STATUSMARK\n",
    "ETHOS_CONTEXT.md": "The boiler in the cellar, as a turn was told. COPYMARK\n",
}
OWNERS_ALONE = ("TOOLMARK", "AGENTMARK", "USERMARK", "MEMORYMARK", "DAILYMARK", "STATUSMARK", "COPYMARK")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "agents" / "ws"
    for inside, text in FILES.items():
        write(root, inside, text)
    return root


@pytest.fixture
def adopted(home: Path, folder: Path) -> Path:
    """A home that adopted it for all of its agents."""
    settle(home, f"{PATIENT}{OWNERS}workspaces: [{folder}]\n")
    return home


def turn(home: Path, key: str, message: str = QUESTION) -> Compiled:
    return opened(home).turn(message, session_key=key)


@pytest.mark.parametrize("key", [OWNER, OWNER_DM, CRON])
def test_the_owner_is_given_what_the_agent_kept_in_its_workspace(adopted: Path, key: str) -> None:
    compiled = turn(adopted, key)
    assert "MEMORYMARK" in compiled.text
    assert "workspace/ws/MEMORY.md:1" in in_slot(compiled, "knowledge")
    assert "COPYMARK" not in everything(compiled)


@pytest.mark.parametrize("key", [GROUP, FORUM, SUBAGENT, STRANGER, UNKNOWN])
def test_nobody_else_is_given_what_is_the_owners(adopted: Path, key: str) -> None:
    compiled = turn(adopted, key)
    assert [mark for mark in OWNERS_ALONE if mark in everything(compiled)] == []
    injected = opened(adopted).inject(QUESTION, session_key=key)
    assert [mark for mark in OWNERS_ALONE if mark in everything(injected)] == []


def test_a_group_is_given_what_is_for_groups_and_a_stranger_what_is_for_anyone(adopted: Path) -> None:
    assert "IDENTITYMARK" in turn(adopted, GROUP).text
    stranger = opened(adopted).search(QUESTION, session_key=STRANGER)
    assert [hit.path for hit in stranger if hit.path.startswith("workspace/")] == ["workspace/ws/SOUL.md"]


def test_a_file_of_identity_that_no_session_loads_is_still_found(adopted: Path) -> None:
    found = [hit.path for hit in opened(adopted).search("Kestrel identity boiler")]
    assert found[0] == "workspace/ws/IDENTITY.md"
    assert "workspace/ws/TOOLS.md" in [hit.path for hit in opened(adopted).search("camera port")]


def test_the_workspace_of_another_agent_is_none_of_its_business(home: Path, folder: Path) -> None:
    settle(home, f"{PATIENT}{OWNERS}workspaces: [{{path: {folder}, agent: shop}}]\n")
    theirs = turn(home, OWNER)
    assert "MARK" not in everything(theirs)
    assert "MEMORYMARK" in turn(home, "agent:shop:main").text
    asked = [hit.path for hit in opened(home).search(QUESTION)]  # by the owner, who is no agent
    assert "workspace/ws/MEMORY.md" in asked


def test_a_topic_may_subscribe_to_a_file_of_a_workspace_and_brings_it_to_nobody_else(
    home: Path, folder: Path
) -> None:
    topic = (
        "---\ntriggers:\n  - type: pattern\n    match: '\\bboiler\\b'\nactivation: auto\naudience: anyone\n"
        "subscriptions:\n  - workspace/ws/initiatives/heating/STATUS.md\n---\n# Boiler\n\nBe brief.\n"
    )
    write(home, "topics/boiler.md", topic)
    settle(home, f"{PATIENT}{OWNERS}workspaces: [{folder}]\n")
    assert "workspace/ws/initiatives/heating/STATUS.md" in in_slot(turn(home, OWNER), "subscriptions")
    assert "STATUSMARK" not in everything(turn(home, GROUP))
    settle(home, f"{PATIENT}{OWNERS}workspaces: [{{path: {folder}, agent: shop}}]\n")
    assert "STATUSMARK" not in everything(turn(home, OWNER))


def test_memory_md_of_a_workspace_follows_the_setting_of_memory_md(home: Path, folder: Path) -> None:
    settings = f"{PATIENT}{OWNERS}workspaces: [{folder}]\n"
    settle(home, f"{settings}context_compiler: {{memory_md: never}}\n")
    assert "MEMORYMARK" not in turn(home, OWNER).text


def test_what_the_host_loaded_whole_is_not_given_again_as_a_passage(adopted: Path, folder: Path) -> None:
    memory = opened(adopted)
    listed = [
        {"name": name, "path": str(folder / name), "content": FILES[name], "missing": False}
        for name in ("SOUL.md", "USER.md", "TOOLS.md", "MEMORY.md")
    ]
    before = memory.inject(QUESTION, session_key=OWNER_DM)
    assert "USERMARK" in before.text
    loaded = memory.bootstrap(OWNER, listed, str(folder))
    assert loaded is not None
    assert [one["name"] for one in loaded][:2] == ["SOUL.md", "USER.md"]
    after = memory.inject(QUESTION, session_key=OWNER)
    assert "USERMARK" not in after.text
    assert "SOULMARK" not in after.text
    assert "MEMORYMARK" in after.text  # the host listed it, and the rule left it out
    reasons = {one.source: one.reason for one in after.dropped}
    assert reasons["workspace/ws/USER.md:1"] == "the host loads it whole"


def test_a_file_that_the_home_has_too_is_not_given_twice(adopted: Path) -> None:
    write(adopted, "knowledge/identity/SOUL.md", FILES["SOUL.md"])
    compiled = turn(adopted, OWNER)
    assert compiled.text.count("SOULMARK") == 1
    assert [one.code for one in compiled.dropped if one.source == "workspace/ws/SOUL.md:1"] == ["duplicate"]


def test_a_workspace_that_is_missing_is_a_notice_of_the_turn(adopted: Path, folder: Path) -> None:
    assert "workspace" not in notice_codes(turn(adopted, OWNER))
    shutil.move(folder, folder.parent / "away")
    compiled = turn(adopted, OWNER)
    assert "workspace" in notice_codes(compiled)
    stranger = turn(adopted, STRANGER)
    assert str(folder) not in everything(stranger)


def test_a_home_that_was_not_set_up_here_reaches_no_workspace(
    home: Path, folder: Path, tmp_path: Path
) -> None:
    settle(home, f"{PATIENT}{OWNERS}workspaces: [{folder}]\n")
    assert "MEMORYMARK" in turn(home, OWNER).text
    copy = tmp_path / "copy"
    shutil.copytree(home, copy, symlinks=True)  # with its index
    assert "MARK" not in everything(turn(copy, OWNER))
    hits = opened(copy).search(QUESTION, limit=50)
    assert not [hit.path for hit in hits if hit.path.startswith("workspace/")]


def test_a_workspace_is_read_and_never_written(adopted: Path, folder: Path) -> None:
    before = files_of(folder)
    memory = opened(adopted)
    memory.turn(QUESTION, session_key=OWNER)
    memory.inject(QUESTION, session_key=OWNER)
    memory.bootstrap(OWNER, [], str(folder))
    memory.services.searcher.update(rebuild=True)
    note = memory.read("workspace/ws/MEMORY.md")
    assert note.text == FILES["MEMORY.md"]
    with pytest.raises(UsageError):
        memory.write("workspace/ws/MEMORY.md", "other", replacing=note)
    memory.commit()
    assert files_of(folder) == before
    assert hashlib.sha256(FILES["TOOLS.md"].encode()).hexdigest() == before["TOOLS.md"]

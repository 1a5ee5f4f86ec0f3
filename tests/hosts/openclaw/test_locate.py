"""Where a host is, by its environment and its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.errors import HostError
from tacit.hosts.openclaw.machine import find_host, find_workspaces
from tacit.hosts.openclaw.settings import lookup


def environ(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PATH": str(home / "bin"), **more}


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_it_is_in_the_home_folder_unless_the_environment_says_otherwise(tmp_path: Path) -> None:
    write(tmp_path / ".openclaw/openclaw.json", "{a: 1}")
    write(tmp_path / ".openclaw-work/openclaw.json", "{a: 2}")
    write(tmp_path / "other.json", "{a: 3}")
    assert find_host(environ(tmp_path)).tree == {"a": 1}
    assert find_host(environ(tmp_path, OPENCLAW_PROFILE="work")).tree == {"a": 2}
    state = str(tmp_path / ".openclaw-work")
    assert find_host(environ(tmp_path, OPENCLAW_STATE_DIR=state)).tree == {"a": 2}
    host = find_host(environ(tmp_path, OPENCLAW_CONFIG_PATH="~/other.json".replace("~", str(tmp_path))))
    assert (host.tree, host.state) == ({"a": 3}, tmp_path / ".openclaw")


def test_where_there_is_none_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(HostError, match="There is no OpenClaw here"):
        find_host(environ(tmp_path))
    with pytest.raises(HostError, match="--openclaw PATH"):
        find_host(environ(tmp_path), "/no/such/openclaw")


def test_a_config_that_cannot_be_read_is_named_with_its_line(tmp_path: Path) -> None:
    write(tmp_path / ".openclaw/openclaw.json", "{\n  a: ,\n}")
    with pytest.raises(HostError, match=r"openclaw\.json cannot be read: line 2: a value is missing"):
        find_host(environ(tmp_path))


def test_included_files_and_variables_count_as_the_host_reads_them(tmp_path: Path) -> None:
    write(tmp_path / ".openclaw/openclaw.json", "{$include: './base.json5', agents: {defaults: {x: 1}}}")
    base = "{agents: {defaults: {x: 0, workspace: '${PLACE}/ws'}}, channels: {$include: ['./c.json5']}}"
    write(tmp_path / ".openclaw/base.json5", base)
    write(tmp_path / ".openclaw/c.json5", "{telegram: {enabled: true}}")
    host = find_host(environ(tmp_path, PLACE="/somewhere"))
    assert lookup(host.tree, "agents.defaults") == {"x": 1, "workspace": "/somewhere/ws"}
    assert lookup(host.tree, "channels.telegram.enabled") is True
    assert find_workspaces(host) == {"main": Path("/somewhere/ws")}


def test_files_that_include_each_other_end(tmp_path: Path) -> None:
    write(tmp_path / ".openclaw/openclaw.json", "{$include: './openclaw.json', a: 1}")
    assert find_host(environ(tmp_path)).tree == {"a": 1}


def test_without_a_command_the_workspace_is_the_configs_or_the_default(tmp_path: Path) -> None:
    write(tmp_path / ".openclaw/openclaw.json", "{}")
    assert find_workspaces(find_host(environ(tmp_path))) == {"main": tmp_path / ".openclaw/workspace"}


def test_comments_in_the_config_are_noticed(tmp_path: Path) -> None:
    file = write(tmp_path / ".openclaw/openclaw.json", "// mine\n{}")
    assert not find_host(environ(tmp_path)).is_plain
    file.write_text("{}")
    assert find_host(environ(tmp_path)).is_plain

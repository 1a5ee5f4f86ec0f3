"""`tacit openclaw` where no host runs and its command is not there; with the real one: tests/e2e."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tacit.home.layout import Home
from tacit.hosts.openclaw import manifest, packaged
from tacit.hosts.openclaw.settings import TESTED_VERSION, find_changes, hook_keys
from tests.conftest import Ran, Tacit
from tests.e2e.grown import grow

PORT = 1  # where nobody listens


@dataclass(frozen=True, slots=True)
class Place:
    """A host's files, and no command."""

    folder: Path
    tacit: Tacit

    @property
    def config(self) -> Path:
        return self.folder / ".openclaw/openclaw.json"

    @property
    def workspace(self) -> Path:
        return self.folder / ".openclaw/workspace"

    @property
    def home(self) -> Home:
        return Home(self.tacit.home)

    def __call__(self, *arguments: str) -> Ran:
        env = {"HOME": str(self.folder), "PATH": str(self.folder / "bin")}
        return self.tacit("openclaw", *arguments, env=env)

    def write(self, tree: Mapping[str, Any]) -> None:
        self.config.write_text(json.dumps({"gateway": {"port": PORT}, **tree}))

    def problems(self) -> dict[str, list[str]]:
        """What doctor finds, by check."""
        found = json.loads(self("doctor", "--json").stdout)
        told = {
            one["name"]: [f"{p['level']}: {p['what']} {p['todo']}" for p in one["problems"]] for one in found
        }
        return {name: problems for name, problems in told.items() if problems}


@pytest.fixture
def place(tmp_path: Path, tacit: Tacit) -> Place:
    git = shutil.which("git")
    assert git is not None
    made = Place(tmp_path / "person", tacit)
    (made.folder / "bin").mkdir(parents=True)
    (made.folder / "bin/git").symlink_to(git)
    made.workspace.mkdir(parents=True)
    made.write({})
    return made


def test_without_a_host_it_says_what_to_do(place: Place) -> None:
    place.config.unlink()
    ran = place("status")
    assert ran.code == 1
    assert "There is no OpenClaw here" in ran.stderr


def test_nothing_is_changed_where_the_hosts_command_is_missing(place: Place) -> None:
    before = place.config.read_bytes()
    ran = place("install", "--yes")
    assert (ran.code, place.config.read_bytes()) == (1, before)
    assert "There is no `openclaw` on PATH. Name it with --openclaw PATH." in ran.stderr
    assert place("uninstall", "--yes").stdout.startswith("Nothing to do")


def test_doctor_names_all_that_is_missing_and_how_to_mend_it(place: Place) -> None:
    place.write({
        "channels": {"telegram": {"allowFrom": ["1", "2"]}},
        "plugins": {"entries": {"tacit": {"enabled": True}}, "slots": {"contextEngine": "lossless"}},
        "hooks": {"internal": {"entries": {"aci-bootstrap": {"enabled": True}}}},
    })  # fmt: skip
    found = place.problems()
    assert "error: There is no `openclaw` on PATH" in found["host"][0]
    assert found["plugin"] == ["error: The plugin is not there. Run: tacit openclaw install"]
    assert (
        "openclaw config set plugins.entries.tacit.hooks.allowConversationAccess true"
        in found["permission"][0]
    )
    assert "The plugin's home is not set." in found["settings"][0]
    assert "openclaw config set hooks.internal.enabled true" in found["classic"][0]
    assert 'owners: ["telegram:<your id>"]' in found["senders"][0]
    assert "openclaw config set session.dmScope per-channel-peer" in found["senders"][1]
    assert "memory-core.config.dreaming.enabled false" in found["dreaming"][0]
    assert "is not in `workspaces`" in found["workspaces"][0]
    assert "slots" not in found
    assert place("doctor").code == 1


@pytest.mark.parametrize(
    ("version", "told"),
    [
        (TESTED_VERSION, ""),
        ("2027.1.0", f"warning: It is newer than {TESTED_VERSION}, which tacit was tested with."),
        ("2026.8.9", "error: This version is older than 2026.9, and its hooks differ."),
    ],
)
def test_doctor_holds_the_host_to_the_version_that_it_was_tested_with(
    place: Place, version: str, told: str
) -> None:
    command = place.folder / "bin/openclaw"
    says = f"echo 'OpenClaw {version} (abc1234)'"
    command.write_text(f'#!/bin/sh\ncase "$1" in --version) {says};; *) exit 1;; esac\n')
    command.chmod(0o755)
    found = place.problems().get("host", [])
    assert [one[: len(told)] for one in found] == ([told] if told else [])


def test_a_slot_of_somebody_else_is_said_to_be_fine(place: Place) -> None:
    place.write({"plugins": {"slots": {"memory": "lancedb"}}})
    assert "memory: lancedb; tacit needs none, so that is fine" in place("doctor").stdout


def test_a_slot_of_ours_is_told_with_what_agents_may_do(place: Place) -> None:
    place.write({"plugins": {"slots": {"memory": "tacit"}}})
    assert "memory: tacit; the host's own memory is off, and agents only read" in place("doctor").stdout
    place.home.config.write_text("memory: {read_only: false}\n")
    assert "agents may add to it by memory.read_only: false" in place("doctor").stdout


def test_status_looks_without_running_anything(place: Place) -> None:
    seen = json.loads(place("status", "--json").stdout)
    assert (seen["plugin"], seen["gateway"], seen["daemon"], seen["last_turn"]) == ("", False, False, None)
    assert "not installed: tacit openclaw install" in place("status").stdout


def test_the_comparison_needs_no_host_at_all(place: Place) -> None:
    grow(place.workspace)
    place.config.unlink()
    ran = place("baseline", "--compare", "--workspace", str(place.workspace))
    assert ran.code == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[0].split() == [
        "session",
        "host",
        "alone",
        "files",
        "turn",
        "tacit",
        "saving",
        "aim",
        "known",
        "by",
    ]
    assert [line.split()[0] for line in lines[1:7]] == [
        "main",
        "direct",
        "group",
        "topic",
        "subagent",
        "cron",
    ]
    assert sum("reached" in line for line in lines) == 3


def _installed_hooks(place: Place) -> bytes:
    """As an install of the hooks leaves it; what the config was before."""
    before = b"// mine\n{ gateway: { port: 1 }, }\n"
    place.config.write_bytes(before)
    place.config.chmod(0o640)
    now = datetime(2026, 11, 17, tzinfo=UTC)
    backup = manifest.back_up(place.home, place.config, now)
    keys = find_changes({}, hook_keys(str(place.home.root)))
    made = manifest.InstallManifest(now.isoformat(), "0", "0", str(place.config), backup, 0o640, "", keys)
    manifest.save(place.home, made)
    entries = {name: {"enabled": True} for name in packaged.all_hook_files()}
    place.write({"hooks": {"internal": {"enabled": True, "entries": entries}}, "meta": {"x": 1}})
    for name, files in packaged.all_hook_files().items():
        folder = place.config.parent / "hooks" / name
        folder.mkdir(parents=True)
        for file, data in files.items():
            (folder / file).write_bytes(data)
    return before


def test_a_config_that_differs_by_ours_alone_comes_back_byte_for_byte_with_its_mode(place: Place) -> None:
    before = _installed_hooks(place)
    ran = place("uninstall", "--yes")
    assert ran.code == 0, ran.stderr
    assert place.config.read_bytes() == before
    assert place.config.stat().st_mode & 0o777 == 0o640
    assert not list((place.config.parent / "hooks").iterdir())
    assert manifest.load(place.home) is None
    assert (place.home.private / "openclaw/backups/20261117T000000/manifest.json").is_file()


def test_a_hook_that_somebody_changed_is_left_where_it_is(place: Place) -> None:
    _installed_hooks(place)
    changed = place.config.parent / "hooks/aci-bootstrap/handler.js"
    changed.write_text("export default () => {};\n")
    ran = place("uninstall", "--yes")
    assert ran.code == 0
    assert "was edited, so it was left" in ran.stderr
    assert changed.read_text() == "export default () => {};\n"


def test_without_a_terminal_nothing_is_asked(place: Place) -> None:
    _installed_hooks(place)
    ran = place("uninstall")
    assert (ran.code, ran.stderr) == (2, "tacit: There is no terminal to ask on. Add --yes.\n")

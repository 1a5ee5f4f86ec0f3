"""The files that hosts get from us are in the wheel, whole."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from tacit.hosts.openclaw import packaged
from tacit.hosts.openclaw.settings import HOOKS, PLUGIN_ID

ROOT = Path(__file__).parents[3]


def test_the_wheel_has_the_plugin_the_hooks_the_probe_and_the_cards(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        f"tacit/integrations/{file.relative_to(ROOT / 'integrations')}"
        for folder in ("openclaw", "openclaw-probe")
        for file in (ROOT / "integrations" / folder).rglob("*")
        if file.is_file()
    }
    assert len(wanted) > 12
    cards = {f"tacit/{file.relative_to(ROOT)}" for file in ROOT.glob("skills/*/SKILL.md")}
    assert len(cards) > 2
    assert wanted | cards <= names


def test_a_hook_is_whole_by_itself() -> None:
    for name in HOOKS:
        files = packaged.hook_files(name)
        handler = files["handler.js"].decode()
        imported = [line.split('"./')[1].split('"')[0] for line in handler.splitlines() if 'from "./' in line]
        assert imported
        assert set(imported) <= set(files)
        assert f"name: {name}\n" in files["HOOK.md"].decode()


def test_a_hook_names_the_events_that_the_host_calls_it_for() -> None:
    heads = {name: packaged.hook_files(name)["HOOK.md"].decode() for name in HOOKS}
    assert '"events": ["agent:bootstrap"]' in heads["aci-bootstrap"]
    assert '"events": ["message:received", "agent:bootstrap"]' in heads["ethos-context"]


def test_the_plugin_has_the_id_that_settings_name_and_a_version() -> None:
    assert f'"id": "{PLUGIN_ID}"' in packaged.plugin_files()[packaged.MANIFEST].decode()
    assert packaged.version()
    assert packaged.is_same(packaged.folder(), packaged.plugin_files())
    assert not packaged.is_same(ROOT, packaged.plugin_files())

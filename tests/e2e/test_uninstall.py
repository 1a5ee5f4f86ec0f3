"""Going back, and the classic hooks: on a host of its own, because all of tacit is taken out of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import Tacit
from tests.e2e.conftest import Commands, host_in
from tests.e2e.grown import grow
from tests.e2e.host import OWNER, Host
from tests.e2e.npm import Installed


@pytest.fixture(scope="module")
def alone(openclaw: Installed, tmp_path_factory: pytest.TempPathFactory) -> Host:
    """A host of one owner whose config has comments."""
    host = host_in(tmp_path_factory.mktemp("alone"), openclaw)
    grow(host.workspace)
    host.write_config()
    config = json.loads(host.config.read_text())
    config["channels"]["telegram"] |= {"dmPolicy": "allowlist", "allowFrom": [f"tg:{OWNER}"]}
    text = json.dumps(config, indent=2)
    host.config.write_text("// mine, with a comment\n" + re.sub(r"\n}$", ",\n}\n", text))
    host.config.chmod(0o640)
    return host


@pytest.fixture
def commands(alone: Host, tmp_path: Path) -> Commands:
    return Commands(alone, tmp_path / "tacit")


def _workspace(host: Host) -> dict[str, bytes]:
    files = (file for file in host.workspace.rglob("*") if file.is_file())
    return {str(file.relative_to(host.workspace)): file.read_bytes() for file in files}


def test_uninstall_leaves_config_and_workspace_byte_for_byte_as_they_were(
    alone: Host, commands: Commands
) -> None:
    before, files = alone.config.read_bytes(), _workspace(alone)
    shown = commands("install", "--dry-run")
    assert (shown.code, alone.config.read_bytes(), commands.home.exists()) == (0, before, False)
    assert commands("install").code == 2  # nobody is there to ask

    ran = commands("install", "--yes")
    assert ran.code == 0, ran.stderr
    assert f"Only telegram:{OWNER} may write to the host, so that is taken to be you." in ran.stdout
    assert "comments in it go" in ran.stdout
    assert "The gateway is not running." in ran.stdout
    assert f'owners: ["telegram:{OWNER}"]' in (commands.home / "memory-config.yaml").read_text()
    assert b"comment" not in alone.config.read_bytes()

    ran = commands("uninstall", "--yes")
    assert ran.code == 0, ran.stderr
    assert "as it was before, byte for byte" in ran.stdout
    assert alone.config.read_bytes() == before
    assert alone.config.stat().st_mode & 0o777 == 0o640
    assert _workspace(alone) == files
    assert not (alone.state / "extensions/tacit").exists()
    assert (commands.home / "memory-config.yaml").is_file()


def test_the_classic_hooks_choose_files_and_add_memories_and_go_without_what_others_set(
    alone: Host, commands: Commands
) -> None:
    ran = commands("install", "--hooks-only", "--yes")
    assert ran.code == 0, ran.stderr
    (commands.home / "knowledge/reference/kiln.md").write_text(
        "# Kiln\n\nThe kiln Berta fires at 1215 degrees since Monday, because the glaze ran.\n"
    )
    tacit = Tacit(commands.home)
    assert tacit("serve", "--detach").code == 0
    try:
        with alone.running():
            turn = alone.write("How hot does the kiln Berta fire?")
            again = alone.write("thanks")
    finally:
        tacit("stop")
    assert "1215 degrees" in turn.first.system
    assert "ETHOS_CONTEXT.md" in turn.first.system
    assert "## What happened" not in turn.first.system  # of MEMORY.md
    assert "1215 degrees" not in again.first.system  # what was said before is not added again

    alone.openclaw("config", "set", "update.channel", "beta")
    ran = commands("uninstall", "--yes")
    assert ran.code == 0, ran.stderr
    assert "only what is tacit's was taken out of it" in ran.stdout
    left = json.loads(alone.config.read_text())
    assert left["update"]["channel"] == "beta"
    assert "aci-bootstrap" not in json.dumps(left)
    assert not (alone.state / "hooks/aci-bootstrap").exists()

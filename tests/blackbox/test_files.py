"""Files on disk: their places, keys, bytes and modes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.blackbox.outside import HERE, Commands, environment, files_of, messages_of, mode_of
from tests.blackbox.small_home import SESSION
from tests.blackbox.snapshots import Snapshots, normalize, shape


def frontmatter_keys(file: Path) -> list[str]:
    head = file.read_text(encoding="utf-8").split("---\n")[1]
    return [line.partition(":")[0] for line in head.splitlines() if not line.startswith((" ", "#"))]


def lines_of(file: Path) -> list[str]:
    return [line for line in file.read_text().splitlines() if line and not line.startswith("#")]


def test_every_setting_keeps_its_name_type_and_default(tmp_path: Path, snapshots: Snapshots) -> None:
    commands = Commands(tmp_path / "home")
    commands.checked("init", "--quiet", str(commands.home))
    settings = commands.checked("config", "--json").json
    found = {entry["key"]: entry["default"] for entry in settings}
    assert all(entry["value"] == entry["default"] for entry in settings if entry["origin"] == "default")
    snapshots.check_json("files/settings", found)


def test_a_new_home_has_the_layout_it_always_had(tmp_path: Path, snapshots: Snapshots) -> None:
    commands = Commands(tmp_path / "home")
    commands.checked("init", "--quiet", str(commands.home))
    home = commands.home
    folders = sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_dir())
    found = {
        "files": {name: mode_of(home / name) for name in files_of(home)},
        "folders": [name for name in folders if not name.startswith(".git")],
        "hooks": sorted(file.name for file in (home / ".git/hooks").iterdir() if not file.suffix),
        "ignored": lines_of(home / ".gitignore"),
        "attributes": lines_of(home / ".gitattributes"),
        "keys": {
            name: frontmatter_keys(home / name)
            for name in files_of(home)
            if name.endswith(".md") and (home / name).read_text().startswith("---\n")
        },
        "commits": messages_of(home),
    }
    snapshots.check_json("files/layout", found)


def test_a_sealed_transcript_is_the_same_bytes_and_read_only(
    prepared: Commands, snapshots: Snapshots
) -> None:
    (file,) = prepared.home.glob(f"raw/conversations/2026/03/08/1000-{SESSION}-*.md")
    snapshots.check("files/transcript.md", file.read_bytes().decode())
    assert mode_of(file) == "0400"


def test_commits_keep_their_subjects_and_trailers(prepared: Commands, snapshots: Snapshots) -> None:
    snapshots.check_json("files/commits", normalize(messages_of(prepared.home)))


def test_notes_that_were_learned_keep_their_form(prepared: Commands, snapshots: Snapshots) -> None:
    for name in ("memory/MEMORY", "journal/2026-03-08"):
        text = (prepared.home / "knowledge" / f"{name}.md").read_text(encoding="utf-8")
        snapshots.check(f"files/{name.split('/')[0]}.md", text)


def test_drafts_and_their_record_keep_their_form(prepared: Commands, snapshots: Snapshots) -> None:
    drafts = sorted((prepared.home / "drafts").glob("*.md"))
    found = {file.name: frontmatter_keys(file) for file in drafts}
    snapshots.check_json("files/drafts", found)
    record = (prepared.home / "drafts/approvals.jsonl").read_text().splitlines()
    snapshots.check_json("files/approvals", [list(json.loads(line)) for line in record])


def test_receipts_and_decisions_keep_their_keys(prepared: Commands, snapshots: Snapshots) -> None:
    found = {}
    for name in ("receipts/*.jsonl", "gate/decisions.jsonl"):
        lines = [
            json.loads(line)
            for file in sorted((prepared.home / ".tacit").glob(name))
            for line in file.read_text(encoding="utf-8").splitlines()
        ]
        found[name] = shape(lines[:1])
        assert lines
    snapshots.check_json("files/machine-records", found)


def test_what_is_private_is_readable_by_its_owner_only(prepared: Commands) -> None:
    machine = prepared.home / ".tacit"
    assert mode_of(machine) == "0700"
    for file in machine.glob("receipts/*"):
        assert mode_of(file) == "0600"


def test_an_open_session_is_on_disk_before_the_command_returns(
    tacit_command: Commands, snapshots: Snapshots
) -> None:
    name = "ses_0000dddd"
    at = ("--at", "2026-03-10T08:15:00+01:00")
    tacit_command.checked("capture", "start", "--session-id", name, *at)
    tacit_command.checked("capture", "message", name, "user", "Still here?", *at)
    (file,) = tacit_command.home.glob(f"raw/conversations/2026/03/10/*{name}*")
    snapshots.check("files/open-transcript.md", file.read_bytes().decode())
    assert mode_of(file) == "0600"


@pytest.fixture
def model(tmp_path: Path) -> Iterator[str]:
    """The address of a model on this machine."""
    command = [sys.executable, str(HERE / "model_server.py")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(tmp_path))
    assert process.stdout is not None
    yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1#m"
    process.terminate()
    process.wait(60)
    process.stdout.close()


def test_the_ledger_of_model_calls_keeps_its_keys(
    tacit_command: Commands, model: str, snapshots: Snapshots
) -> None:
    tacit = tacit_command
    config = tacit.home / "memory-config.yaml"
    prices = f'models: {{prices: ["{model} 1 2"]}}\n'
    config.write_text(config.read_text() + f'lifecycle: {{extract_model: "{model}"}}\n{prices}')
    name, at = "ses_0000ffff", ("--at", "2026-03-10T08:15:00+01:00")
    tacit.checked("capture", "start", "--session-id", name, *at)
    tacit.checked("capture", "message", name, "user", "We decided to buy a wheelbarrow.", *at)
    tacit.checked("capture", "end", name, *at)
    tacit("run", "extract", "--json")
    (ledger,) = (tacit.home / ".tacit/ledger").glob("*.jsonl")
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert ledger.name == "2026-03-10.jsonl"
    assert mode_of(ledger) == "0600"
    snapshots.check_json("files/ledger", shape(lines))
    snapshots.check_json("files/cost-after-calls", shape(tacit.checked("cost", "--json").json["spent"]))

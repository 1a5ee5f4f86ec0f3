"""What the host loads by itself, what tacit loads, and what is saved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.context import receipts
from tacit.context.model import Receipt
from tacit.errors import UsageError
from tacit.hosts.openclaw import baseline, bootstrap_files
from tacit.hosts.openclaw.baseline import DefaultContext, compare_costs, gather_turns
from tacit.hosts.openclaw.bootstrap_files import BootstrapLimits, LoadedFile, simulate_load
from tacit.memory import Memory
from tacit.text import tokens
from tests.e2e.grown import grow

TEXTS = {name: f"# {name}\n" + "word " * 50 for name in bootstrap_files.NAMES}


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("main", ["AGENTS", "SOUL", "IDENTITY", "USER", "BOOTSTRAP", "MEMORY"]),
        ("direct", ["AGENTS", "SOUL", "IDENTITY", "USER", "BOOTSTRAP", "MEMORY"]),
        ("group", ["AGENTS", "SOUL", "IDENTITY", "USER", "BOOTSTRAP"]),
        ("topic", ["AGENTS", "SOUL", "IDENTITY", "USER", "BOOTSTRAP"]),
        ("cron", ["AGENTS", "SOUL", "IDENTITY", "USER"]),
        ("subagent", ["AGENTS"]),
    ],
)
def test_the_host_loads_by_the_kind_of_session(kind: str, names: list[str]) -> None:
    loaded = simulate_load(kind, TEXTS)
    assert [file.name.removesuffix(".md") for file in loaded] == names
    assert all(file.tokens == tokens.count(TEXTS[file.name]) for file in loaded)


def test_long_files_are_cut_as_the_host_cuts_them() -> None:
    long = dict.fromkeys(("AGENTS.md", "SOUL.md", "USER.md", "MEMORY.md"), "x" * 30000)
    assert [(file.name, file.injected) for file in simulate_load("main", long)] == [
        ("AGENTS.md", 20_000), ("SOUL.md", 20_000), ("USER.md", 4_000), ("MEMORY.md", 16_000),
    ]  # fmt: skip
    assert bootstrap_files.shorten("abcdefgh", 4) == "abch"
    assert bootstrap_files.read_limits(
        {"agents": {"defaults": {"bootstrapMaxChars": 10}}}
    ) == BootstrapLimits(10, 60_000)


def receipt(
    lane: str, kind: str = "main_session", *, key: str = "k", tokens: int = 0, host: int | None = None
) -> Receipt:
    return Receipt("id", "2026-11-17T10:00:00+00:00", key, "", kind, "main", "", "", 0, tokens, 0, (), (),
                   lane=lane, host_tokens=host)  # fmt: skip


def test_turns_that_were_seen_count_most_then_the_report_then_the_replay() -> None:
    seen = gather_turns(
        [
            receipt("bootstrap", tokens=100, host=1000),
            receipt("bootstrap", tokens=200, host=2000),
            receipt("runtime", tokens=50),
            receipt("prompt", tokens=9999),
            receipt("bootstrap", "fallback", tokens=1, host=1),
            receipt("bootstrap", key=baseline.OWN_SESSION_KEYS[1], tokens=1, host=1),
        ],
        baseline.OWN_SESSION_KEYS,
    )
    replayed = {kind: (DefaultContext(500, "replayed"), 100.0) for kind in bootstrap_files.TYPES}
    rows = {row.kind: row for row in compare_costs(seen, {"topic": DefaultContext(4000, "report")}, replayed)}
    main, topic, group = rows["main"], rows["topic"], rows["group"]
    assert (main.bulk, main.files, main.text, main.source) == (1500, 150, 50, "2 runs")
    assert (main.total, round(main.saving or 0, 1), main.verdict) == (200, 86.7, "reached")
    assert (topic.bulk, topic.bulk_source, topic.files, topic.text) == (4000, "report", 100, None)
    assert (group.bulk, group.aim, group.verdict) == (500, None, "")


def test_an_aim_can_be_missed_and_nothing_can_be_saved_of_nothing() -> None:
    rows = compare_costs(
        {},
        {},
        {"topic": (DefaultContext(100, "replayed"), 20.0), "cron": (DefaultContext(0, "replayed"), 0.0)},
    )
    assert [(row.kind, row.saving, row.verdict) for row in rows] == [
        ("topic", 80, "missed"),
        ("cron", None, ""),
    ]


def test_a_hook_was_shown_more_than_the_host_would_have_loaded() -> None:
    seen = gather_turns([receipt("bootstrap", tokens=100, host=9000)])
    cut = {"main": (DefaultContext(5000, "replayed, shortened"), 100.0)}
    assert compare_costs(seen, {}, cut)[0].bulk == 5000
    whole = {"main": (DefaultContext(5000, "replayed"), 100.0)}
    assert compare_costs(seen, {}, whole)[0].bulk == 9000


def test_a_replay_on_a_grown_workspace_reaches_the_aims_and_logs_nothing(
    memory: Memory, tmp_path: Path
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    grow(workspace)
    rows = {row.kind: row for row in baseline.compare_rows(memory, workspace, BootstrapLimits())}
    assert list(rows) == list(bootstrap_files.TYPES)
    assert {row.verdict for row in rows.values() if row.aim} == {"reached"}
    assert list(receipts.read_receipts(memory.home, None)) == []


def test_what_is_loaded_does_not_grow_with_the_workspace(memory: Memory, tmp_path: Path) -> None:
    grow(tmp_path)
    before = {row.kind: row for row in baseline.compare_rows(memory, tmp_path, BootstrapLimits(10**6, 10**7))}
    for name in ("MEMORY.md", "AGENTS.md", "TOOLS.md"):
        (tmp_path / name).write_text((tmp_path / name).read_text() * 4)
    for number in range(300):
        (tmp_path / "memory" / f"2025-{number % 12 + 1:02}-{number % 28 + 1:02}-{number}.md").write_text(
            "- A day.\n"
        )
    after = {row.kind: row for row in baseline.compare_rows(memory, tmp_path, BootstrapLimits(10**6, 10**7))}
    assert {kind: row.files for kind, row in after.items()} == {
        kind: row.files for kind, row in before.items()
    }
    assert after["main"].bulk > 2 * before["main"].bulk


def test_a_report_of_the_host_is_read_with_the_tokens_of_its_files(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("word " * 100 + "\n")
    (tmp_path / "SOUL.md").write_text("I am calm.\n")
    listed = [
        {"name": "MEMORY.md", "path": f"{tmp_path}/MEMORY.md", "rawChars": 499, "injectedChars": 100},
        {"name": "AGENTS.md", "path": f"{tmp_path}/SOUL.md", "rawChars": 10, "injectedChars": 10},
        {"name": "ETHOS_CONTEXT.md", "path": "/none", "missing": False, "rawChars": 40, "injectedChars": 40},
        {"name": "BOOTSTRAP.md", "path": "/none", "missing": True, "rawChars": 0, "injectedChars": 0},
    ]  # fmt: skip
    report = {"generatedAt": 1_794_956_400_000, "injectedWorkspaceFiles": listed}
    found = baseline.parse_report("main", "agent:main:main", report, "2026-11-18T00:00:00+00:00")
    assert found is not None
    assert found.is_before
    assert [(file.name, file.injected) for file in found.files] == [
        ("MEMORY.md", 100),
        ("SOUL.md", 10),
        ("none", 40),
    ]
    assert found.files[1].tokens == tokens.count("I am calm.")
    after = baseline.parse_report("main", "agent:main:main", report, "2026-11-16T00:00:00+00:00")
    assert after is not None
    assert not after.is_before
    assert baseline.parse_report("main", "k", {}, "") is None


def test_a_report_is_not_given_up_for_something_computed(memory: Memory) -> None:
    told = baseline.SessionReport(
        "main", "agent:main:main", "2026-11-01", (LoadedFile("SOUL.md", 9, 9, 3),), True
    )
    guess = baseline.SessionReport("main", "", "2026-11-02", (LoadedFile("SOUL.md", 1, 1, 1),), True)
    baseline.save_reports(memory.home, [told], "2026-11-01", "OpenClaw")
    assert baseline.save_reports(memory.home, [guess], "2026-11-02", "OpenClaw") == [told]
    assert baseline.default_contexts(baseline.load_reports(memory.home)) == {
        "main": DefaultContext(3, "the host's report of 2026-11-01")
    }
    newer = told._replace(at="2026-11-03")
    assert baseline.save_reports(memory.home, [newer, guess], "2026-11-03", "OpenClaw") == [newer]
    assert (
        json.loads((memory.home.private / "openclaw/baseline.json").read_text())["captured"] == "2026-11-03"
    )


def test_the_file_in_the_workspace_is_written_over_ours_alone(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("# Agents\n")
    found = baseline.compute_reports(baseline.read_texts(tmp_path), BootstrapLimits(), "2026-11-17T10:00:00")
    text = baseline.render(found, "2026-11-17", "OpenClaw 2026.9.6")
    assert "MEMORY.md is not among it." in text
    file = baseline.write_file(tmp_path, text)
    assert baseline.write_file(tmp_path, text).read_text() == text
    file.write_text("my own notes")
    with pytest.raises(UsageError, match="was not written by tacit"):
        baseline.write_file(tmp_path, text)
    assert file.read_text() == "my own notes"

"""`tacit openclaw` on the real host, with a gateway that runs."""

from __future__ import annotations

import json
from typing import Any

from tacit.hosts.openclaw import baseline
from tests.e2e.conftest import Gateway

Json = dict[str, Any]


def test_install_shows_what_it_changes_and_says_what_comes_next(gateway: Gateway) -> None:
    said = gateway.said.stdout
    assert f"A new home in {gateway.home}, with:" in said
    assert f"+workspaces: [{gateway.host.workspace}]" in said
    assert "+ plugins.entries.tacit.hooks.allowConversationAccess = true" in said
    assert f'+ plugins.entries.tacit.config.home = "{gateway.home}"' in said
    assert "Your id on telegram is not known" in said  # anybody may write to this host
    assert "kept    what the host loads by itself: main" in said
    assert "The gateway has loaded it" in said
    assert "tacit openclaw uninstall" in said


def test_a_second_install_finds_nothing_to_do(gateway: Gateway) -> None:
    before = gateway.host.config.read_bytes()
    ran = gateway.tacit("install", "--yes")
    assert (ran.code, ran.stdout.splitlines()[0]) == (0, "Nothing to do: everything is installed and set.")
    assert gateway.host.config.read_bytes() == before


def test_the_bulk_of_the_files_gives_way_to_those_of_the_rule(gateway: Gateway) -> None:
    assert gateway.bulk.files == ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "MEMORY.md"]
    assert gateway.host.agent("Good evening").files == ["SOUL.md", "USER.md", "TOOLS_COMPACT.md"]


def test_doctor_proves_by_a_turn_that_hooks_fire_and_answers_the_five_questions(gateway: Gateway) -> None:
    ran = gateway.tacit("doctor", "--probe", "--json")
    assert ran.code == 0, ran.stdout + ran.stderr
    checks: dict[str, Json] = {one["name"]: one for one in json.loads(ran.stdout)}
    assert checks["turn"]["found"].startswith("fired: agent:bootstrap (receipt ")
    assert "before_prompt_build (receipt " in checks["turn"]["found"]
    assert checks["turn"]["found"].endswith("; the messages were kept")
    assert (
        checks["shape"]["found"]
        == "an entry is {name: string, path: string, content: string, missing: boolean}"
    )
    assert checks["key"]["found"] == "sessionKey at the top of the event: yes"
    assert checks["list"]["found"] == "a change counts: assigned yes, pushed yes, element yes"
    assert checks["names"]["found"] == "any name is loaded: yes"
    assert checks["surprises"]["found"] == "none"
    assert checks["hooks"]["found"] == "8 registered"
    warned = {name for name, one in checks.items() if one["problems"]}
    assert warned == {"dreaming"}  # which the host does by default


def test_the_baseline_is_the_hosts_own_report_from_before_the_install(gateway: Gateway) -> None:
    gateway.host.agent("And now with tacit")
    ran = gateway.tacit("baseline", "--json")
    assert ran.code == 0, ran.stderr
    known = {(one["kind"], one["is_before"]): one for one in json.loads(ran.stdout)["sessions"]}
    before, after = known["main", True], known["main", False]
    assert [file["name"] for file in before["files"]] == gateway.bulk.files
    assert before["source"].startswith("the host's report of ")
    assert after["key"] == "agent:main:main"
    assert [file["name"] for file in after["files"]] == ["SOUL.md", "USER.md", "TOOLS_COMPACT.md"]
    text = (gateway.host.workspace / baseline.FILE).read_text()
    assert "MEMORY.md is among it." in text
    assert "- AGENTS.md: " in text


def test_the_comparison_is_by_kind_of_session_and_reaches_the_aims(gateway: Gateway) -> None:
    gateway.host.agent("What port does Mission Control run on?")
    gateway.host.write("What lessons did we learn about timeout settings?", chat=-100777, topic=15)
    ran = gateway.tacit("baseline", "--compare", "--json")
    assert ran.code == 0, ran.stderr
    rows = {row["kind"]: row for row in json.loads(ran.stdout)}
    assert list(rows) == ["main", "direct", "group", "topic", "subagent", "cron"]
    assert {kind: row["verdict"] for kind, row in rows.items() if row["aim"]} == {
        "main": "reached",
        "topic": "reached",
        "subagent": "reached",
    }, ran.stdout
    assert rows["topic"]["source"] == "1 run"


def test_status_tells_plugin_daemon_turn_and_workspace(gateway: Gateway) -> None:
    gateway.host.agent("Where do things stand?")
    ran = gateway.tacit("status", "--json")
    assert ran.code == 0, ran.stderr
    seen = json.loads(ran.stdout)
    assert seen["gateway"] is True
    assert seen["daemon"] is True
    assert seen["same"] is True
    assert seen["blocked"] == []
    assert seen["workspaces"] == [str(gateway.host.workspace)]
    assert seen["last_turn"]["lane"] == "runtime"
    assert seen["sessions_today"] >= 1

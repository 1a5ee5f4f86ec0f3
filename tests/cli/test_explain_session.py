"""`tacit explain-session`: the reading, the rule, what would be loaded, the JSON, the exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tacit.home.layout import Home
from tacit.sessions.policy import Senders
from tests.memory.homes import files_of, opened, settle

if TYPE_CHECKING:
    from tests.conftest import Tacit

FORUM = "agent:main:telegram:group:-100:topic:15"
RULES = """owners: ['7']
sessions:
  group_chat: {token_budget: 3000}
  rules:
    - {type: forum_topic, topic: "15", files: [SOUL.md, OPS.md], token_budget: 999}
    - {channel: telegram, lanes: [runtime]}
"""


def rows(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    last = ""
    for line in text.splitlines():
        name, value = line[:8].strip(), line[10:]
        last = name or last
        found[last] = f"{found[last]}\n{value}" if last in found else value
    return found


def told(tacit: Tacit, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(tacit("explain-session", *arguments, "--json").stdout)
    return found


def test_cli_explain_session_tells_the_reading_the_rule_and_what_would_be_loaded(
    home: Path, tacit: Tacit
) -> None:
    settle(home, RULES)
    (home / "knowledge/identity/SOUL.md").write_text("# Soul\n\nI am Moss.\n")
    done = tacit("explain-session", FORUM)
    assert done.code == 0
    assert done.stderr == ""
    assert rows(done.stdout) == {
        "key": FORUM,
        "form": "a topic or thread of a group",
        "agent": "main",
        "type": "forum_topic",
        "channel": "telegram",
        "peer": "-100",
        "topic": "15",
        "owner": "no: others read it",
        "rule": (
            "rule 1 of sessions.rules (memory-config.yaml:6); what it does not say, sessions.forum_topic says"
        ),
        "audience": "group: what is for groups or for anyone; nothing of yours alone",
        "lanes": "bootstrap, runtime",
        "budget": "999 tokens (rule 1 of sessions.rules)",
        "files": "SOUL.md  7 tokens\nOPS.md  missing\n7 tokens in all",
        "search": (
            "notes that all agents share or that belong to main, if they are for groups or for anyone, "
            "and this session's own transcripts"
        ),
    }


def test_cli_explain_session_lists_what_the_bootstrap_lane_loads(home: Path, tacit: Tacit) -> None:
    settle(home, "context_compiler: {profile: full}\n")
    (home / "knowledge/identity/USER.md").write_text("---\ntype: identity\n---\n# Ines\n\nPots.\n")
    found = {file["name"]: file for file in told(tacit, "agent:main:main")["files"]}
    loaded = opened(home).services.bootstrap("agent:main:main", [], None)
    assert [name for name, file in found.items() if file["tokens"]] == [
        one["name"] for one in loaded.files or ()
    ]
    assert sum(file["tokens"] or 0 for file in found.values()) == loaded.receipt.tokens
    assert list(found) == ["SOUL.md", "USER.md", "TOOLS_COMPACT.md"]
    settle(home, "context_compiler: {profile: full}\ninject: {lanes: [runtime]}\n")
    assert "AGENTS.md" in [file["name"] for file in told(tacit, "agent:main:main")["files"]]  # with each turn


def test_cli_explain_session_tells_which_files_are_left_out_once_the_conversation_has_them(
    home: Path, tacit: Tacit
) -> None:
    (home / "knowledge/identity/SOUL.md").write_text("# Soul\n\nI am Moss.\n")
    (home / "knowledge/identity/USER.md").write_text("# Ines\n\nPots.\n")
    assert "shed" not in rows(tacit("explain-session", "agent:main:main").stdout)
    assert told(tacit, "agent:main:main")["shed"] is None
    settle(home, "inject: {shed_after_turns: 6}\n")
    found = rows(tacit("explain-session", "agent:main:main").stdout)
    assert found["shed"] == "USER.md: left out once used and then not for 6 turns"
    assert told(tacit, "agent:main:main")["shed"] == {"after_turns": 6, "files": ["USER.md"]}


def test_cli_explain_session_says_whose_notes_and_transcripts_are_searched(home: Path, tacit: Tacit) -> None:
    settle(home, RULES)
    search = rows(tacit("explain-session", "agent:shop:main").stdout)["search"]
    assert search == "notes and transcripts that all agents share or that belong to shop"
    assert told(tacit, "agent:shop:main")["search"]["transcripts"] == "agent"
    both = rows(tacit("explain-session", "agent:shop:main", "--agent", "main").stdout)
    assert both["agent"] == "shop and main"
    assert both["search"] == "notes and transcripts that all agents share"
    assert "only what all agents share" in both["note"]


def test_cli_explain_session_says_the_same_in_json(home: Path, tacit: Tacit) -> None:
    settle(home, RULES)
    found = told(tacit, "agent:shop:telegram:group:-100")
    assert found["type"] == "group_chat"
    assert (found["agent"], found["channel"], found["peer"], found["topic"]) == (
        "shop",
        "telegram",
        "-100",
        "",
    )
    assert found["owner"] is False
    assert (found["rule"], found["where"]) == ("rule 2 of sessions.rules", "memory-config.yaml:7")
    assert found["lanes"] == ["runtime"]
    assert (found["budget"], found["budget_from"]) == (3000, "sessions.group_chat")
    assert found["search"] == {"audience": "group", "agents": ["shop"], "transcripts": "own"}
    assert [file["name"] for file in found["files"]] == ["SOUL.md", "TOOLS_COMPACT.md"]
    assert found["notices"] == []


@pytest.mark.parametrize(
    ("key", "owner", "why"),
    [
        ("agent:main:main", True, "only owners have been seen in it"),
        ("agent:main:telegram:direct:7", True, "7 is in owners"),
        ("agent:main:cron:daily", True, "it runs for you"),
        ("agent:main:telegram:direct:9", False, "telegram:9 is not in owners"),
        ("agent:main:direct:9", False, "9 is not in owners"),
        ("agent:main:slack:channel:c1", False, "others read it"),
        ("agent:main:subagent:0c", False, "it answers to another session"),
        ("agent:main:main:thread:7", False, "see the note"),
    ],
)
def test_cli_explain_session_says_whose_it_is_and_why(
    home: Path, tacit: Tacit, key: str, owner: bool, why: str
) -> None:
    settle(home, RULES)
    found = told(tacit, key)
    assert (found["owner"], found["why"]) == (owner, why)


def test_cli_explain_session_of_no_known_form_is_a_problem_found(home: Path, tacit: Tacit) -> None:
    done = tacit("explain-session", "agent:main:web1")
    assert done.code == 1
    found = rows(done.stdout)
    assert found["form"] == "no form that tacit knows"
    assert found["files"] == "the host's own list, untouched"
    assert "add its last word to sessions.main_keys" in found["note"]
    assert told(tacit, "agent:main:web1")["files"] is None


def test_cli_explain_session_of_a_form_that_is_nobodys_is_no_problem(home: Path, tacit: Tacit) -> None:
    done = tacit("explain-session", "agent:main:dashboard:0c")
    assert done.code == 0
    assert "add dashboard to sessions.main_keys" in done.stdout


def test_cli_explain_session_takes_what_a_host_says_beside_the_key(home: Path, tacit: Tacit) -> None:
    settle(home, RULES)
    stranger = told(tacit, "agent:main:main", "--sender", "telegram:9")
    assert (stranger["type"], stranger["notices"][0]["code"]) == ("external_dm", "not-owner")
    assert told(tacit, "agent:main:main", "--sender", "telegram:7")["type"] == "main_session"
    names = [file["name"] for file in told(tacit, "agent:main:main", "--trigger", "heartbeat")["files"]]
    assert names[-1] == "HEARTBEAT.md"
    assert told(tacit, "agent:main:main", "--agent", "shop")["search"]["agents"] == ["shop"]


def test_cli_explain_session_knows_who_wrote_before_and_remembers_nobody(home: Path, tacit: Tacit) -> None:
    settle(home, "")
    before = files_of(home)
    told(tacit, "agent:main:main", "--sender", "telegram:9")
    assert files_of(home) == before
    assert told(tacit, "agent:main:main", "--sender", "telegram:7")["type"] == "main_session"
    Senders(Home(home)).seen("agent:main:main", "telegram:9")
    found = told(tacit, "agent:main:main", "--sender", "telegram:7")
    assert (found["type"], found["notices"][0]["code"]) == ("external_dm", "several-senders")


def test_cli_explain_session_says_why_a_session_gets_nothing_at_all(home: Path, tacit: Tacit) -> None:
    settle(home, "inject: {exclude_agents: [main]}\n")
    assert "main is in inject.exclude_agents" in tacit("explain-session", "agent:main:main").stdout
    settle(home, "inject: {enabled: false}\n")
    assert "inject.enabled is false" in told(tacit, "agent:main:main")["off"]
    settle(home, "inject: {lanes: []}\n")
    assert "no lane is open" in told(tacit, "agent:main:main")["off"]


def test_cli_explain_session_names_a_file_that_is_not_for_such_sessions(home: Path, tacit: Tacit) -> None:
    settle(home, "sessions:\n  group_chat: {files: [SOUL.md, USER.md]}\n")
    (home / "knowledge/identity/USER.md").write_text("---\naudience: owner\n---\n# Ines\n\nUSERWORD\n")
    done = tacit("explain-session", "agent:main:slack:channel:c1")
    assert "USER.md  it is not for this session" in done.stdout
    assert "(memory-config.yaml:3)" in done.stdout


@pytest.mark.parametrize(
    "key", ["", " ", "\x1b[31m", "a\nb", "-->", "x" * 10_000, "agent:main:telegram:group:🦊"]
)
def test_cli_explain_session_prints_any_key_safely(home: Path, tacit: Tacit, key: str) -> None:
    done = tacit("explain-session", "--", key)
    assert done.code in (0, 1)
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 400
    assert rows(done.stdout)["audience"].startswith(("anyone", "group"))


def test_cli_explain_session_needs_no_index(home: Path, tacit: Tacit) -> None:
    (home / ".tacit" / "memory.db").unlink(missing_ok=True)
    assert tacit("explain-session", "agent:main:main").code == 0
    assert not (home / ".tacit" / "memory.db").exists()


def test_cli_explain_session_without_a_key_is_a_usage_error(home: Path, tacit: Tacit) -> None:
    assert tacit("explain-session").code == 2

"""OpenClaw's records in our words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import UsageError
from tacit.hosts.base import OperationCall, find_translation
from tacit.hosts.openclaw import events

RECORDED = Path(__file__).parents[2] / "data" / "openclaw" / "turns.jsonl"
DM, CRON = "agent:main:telegram:direct:111", "agent:main:cron:7:run:8"


def told(record: dict[str, Any], key: str = DM, **more: Any) -> list[OperationCall]:
    return events.event({"name": "message", "session_key": key, "agent": "main", "record": record, **more})


def user(text: object, **meta: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, "timestamp": 1794955123000, "__openclaw": meta}


def test_a_persons_message_has_who_wrote_it_and_when() -> None:
    [asked] = told(user("hello", senderId="111", senderName="Alice", transport={"channel": "telegram"}))
    assert asked.operation == "message"
    assert asked.body["sender"] == "telegram:111"
    assert (asked.body["role"], asked.body["speaker"], asked.body["text"]) == ("user", "Alice", "hello")
    assert asked.body["at"] == "2026-11-17T22:38:43.000+00:00"
    assert asked.body["channel"] == "telegram"


@pytest.mark.parametrize(
    ("slots", "holds"),
    [({"memory": "tacit"}, True), ({"memory": "memory-core"}, False), (None, False), ("tacit", False)],
)
def test_a_request_tells_whether_the_hosts_memory_slot_is_ours(slots: object, holds: bool) -> None:
    asked = events.turn({"host": "openclaw", "session_key": DM, "text": "x", "slots": slots})
    assert asked.get("holds_slot", False) is holds
    assert "slots" not in asked


def test_a_message_at_the_owners_own_command_line_is_a_users() -> None:
    assert told(user("hello", senderIsOwner=True))[0].body["role"] == "user"


@pytest.mark.parametrize(
    ("record", "key", "speaker"),
    [
        ({**user("[OpenClaw heartbeat poll]"), "provenance": {"sourceTool": "heartbeat"}}, "agent:main:main",
         "heartbeat"),
        ({"role": "user", "content": "[cron:7 j] do it", "timestamp": 1}, CRON, "cron"),
        (user("[Subagent Context] …", senderIsOwner=False), "agent:main:subagent:5", "subagent"),
    ],
)  # fmt: skip
def test_what_the_host_says_in_a_users_place_is_not_the_users(
    record: dict[str, Any], key: str, speaker: str
) -> None:
    [asked] = told(record, key)
    assert (asked.body["role"], asked.body["speaker"]) == ("system", speaker)


def test_a_record_that_is_written_twice_has_one_id_and_another_record_another() -> None:
    rows = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    written = [row["event"]["message"] for row in rows if row["hook"] == "before_message_write"]
    hello = [told(one)[0].body["id"] for one in written if one["content"] == "hello dm"]
    assert len(hello) == 2
    assert len(set(hello)) == 1
    ids = [asked.body["id"] for one in written for asked in told(one)]
    twice = len([one for one in written if one["role"] == "user" and "idempotencyKey" in one])
    assert len(ids) - len(set(ids)) <= twice // 2
    assert told(user("a", senderId="1"))[0].body["id"] != told(user("b", senderId="1"))[0].body["id"]


def test_a_tool_is_kept_with_what_it_was_asked_and_what_came_back() -> None:
    result = {"role": "toolResult", "toolName": "read", "toolCallId": "c1", "isError": False, "timestamp": 1,
              "content": [{"type": "text", "text": "31 lines"}]}  # fmt: skip
    [asked] = told(result, arguments={"path": "a.md", "limit": 3})
    assert asked.operation == "tool"
    assert (asked.body["name"], asked.body["summary"], asked.body["result"]) == (
        "read", "path=a.md limit=3", "31 lines",
    )  # fmt: skip
    assert told({**result, "isError": True})[0].body["result"] == "error: 31 lines"


def test_what_our_own_tools_gave_is_not_kept_as_news() -> None:
    result = {"role": "toolResult", "toolName": "tacit_search", "toolCallId": "c", "content": "SECRETWORD"}
    assert "SECRETWORD" not in json.dumps(told(result)[0].body)


def test_reasoning_and_calls_are_no_words_and_a_picture_is_said_to_be_one() -> None:
    content = [
        {"type": "thinking", "text": "hm"},
        {"type": "text", "text": "Yes."},
        {"type": "image", "data": "x"},
    ]
    [asked] = told({"role": "assistant", "content": content, "timestamp": 1})
    assert asked.body["text"] == "Yes.\n[image]"
    assert told({"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "x"}]}) == []


@pytest.mark.parametrize("reason", ["new", "reset", "idle", "daily", "deleted"])
def test_a_reset_ends_the_session(reason: str) -> None:
    asked = events.event({"name": "session_end", "session_key": DM, "record": {"reason": reason}})
    assert [one.operation for one in asked] == ["end_session"]


@pytest.mark.parametrize("reason", ["shutdown", "restart", "unknown", "", None, 7])
def test_a_gateway_that_stops_ends_no_session(reason: object) -> None:
    assert events.event({"name": "session_end", "session_key": DM, "record": {"reason": reason}}) == []


def test_compaction_renews_a_session_and_the_end_of_a_jobs_run_ends_its_session() -> None:
    def operations(name: str, key: str) -> list[str]:
        return [one.operation for one in events.event({"name": name, "session_key": key, "record": {}})]

    assert operations("after_compaction", DM) == ["renew"]
    assert operations("agent_end", CRON) == ["end_session"]
    assert operations("agent_end", DM) == []
    assert operations("subagent_ended", "agent:main:subagent:5") == ["end_session"]


@pytest.mark.parametrize("record", [None, 5, [], "x", {"role": 5}, {"role": "user", "content": {"a": 1}}])
def test_what_is_no_record_is_nothing_to_keep(record: Any) -> None:
    assert told(record) == []


def test_a_turn_tells_who_asks_and_what_without_the_hosts_words_around_it() -> None:
    run = {"trigger": "user", "senderId": "111", "channel": "telegram"}
    said = events.turn({"host": "openclaw", "session_key": DM, "message": "hello", "run": run})
    assert said == {"session_key": DM, "message": "hello", "sender": "telegram:111", "trigger": "user",
                    "keeps_text": False}  # fmt: skip
    task = "[Subagent Context] depth 1/5.\n\n[Subagent Task]\n\nCount the tiles.\n\nBegin. Execute it."
    assert events.turn({"message": task})["message"] == "Count the tiles."
    job = "[cron:7 j1] Water the beds\nCurrent time: Tuesday"
    assert events.turn({"message": job})["message"] == "Water the beds"


@pytest.mark.parametrize(
    ("identity", "channel", "expected"),
    [
        ("111", "telegram", "telegram:111"),
        (111, "telegram", "telegram:111"),
        ("telegram:7", "telegram", "telegram:7"),
        ("Telegram:7", "telegram", "Telegram:7"),
        ("telegram:7", "irc", "irc:telegram:7"),
        ("telegram:7", "Telegram2", "Telegram2:telegram:7"),
        ("irc:telegram:7", "irc", "irc:telegram:7"),
        ("@ana:example.org", "matrix", "matrix:@ana:example.org"),
        ("uuid:0c", "signal", "signal:uuid:0c"),
        ("telegram:7", None, "?:telegram:7"),
        ("telegram:7", 5, "?:telegram:7"),
        ("my.channel:7", None, "?:my.channel:7"),
        ("@ana:example.org", None, "@ana:example.org"),
        ("7", None, "7"),
        (["7"], "telegram", "*"),
        (True, "telegram", "*"),
        (7.5, "telegram", "*"),
        ({"id": "7"}, "telegram", "*"),
    ],
    ids=str,
)
def test_a_sender_is_on_the_channel_that_the_host_names(
    identity: object, channel: object, expected: str
) -> None:
    run = {"senderId": identity, "channel": channel}
    assert events.turn({"message": "hello", "run": run})["sender"] == expected
    [asked] = told(user("hello", senderId=identity, transport={"channel": channel}))
    assert (asked.body["role"], asked.body["sender"]) == ("user", expected)


def test_a_host_that_names_no_sender_names_none() -> None:
    for identity in (None, ""):
        assert "sender" not in events.turn(
            {"message": "hello", "run": {"senderId": identity, "channel": "irc"}}
        )


def test_a_webhooks_run_is_told_from_a_jobs_by_its_prompt() -> None:
    run = {"trigger": "cron"}
    assert events.turn({"message": "[cron:7 j1] Water the beds\n", "run": run})["trigger"] == "cron"
    assert events.turn({"message": "Job ID: 7 | Received: today\n\nhi", "run": run})["trigger"] == "webhook"


def test_files_go_by_names_that_the_session_takes() -> None:
    files = [{"name": "SOUL.md", "path": "/w/SOUL.md"}, {"name": "HEARTBEAT.md", "path": "/w/HEARTBEAT.md"}]

    def names(key: str) -> list[tuple[str, str]]:
        return [(one["name"], one["path"]) for one in events.bootstrap_entries(key, files)]

    assert names(DM) == [("SOUL.md", "/w/SOUL.md"), ("HEARTBEAT.md", "/w/HEARTBEAT.md")]
    assert names(CRON) == [("SOUL.md", "/w/SOUL.md"), ("AGENTS.md", "/w/HEARTBEAT.md")]
    assert names("agent:main:subagent:5") == [("AGENTS.md", "/w/SOUL.md"), ("AGENTS.md", "/w/HEARTBEAT.md")]
    assert files[1]["name"] == "HEARTBEAT.md"


def test_a_host_that_nobody_knows_is_refused_by_name() -> None:
    assert find_translation({}) is None
    with pytest.raises(UsageError, match="openclaw"):
        find_translation({"host": "elsewhere"})

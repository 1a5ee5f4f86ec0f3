from __future__ import annotations

from dataclasses import fields
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.config.keys import SessionRule, Sessions
from tacit.model.search import Scope
from tacit.sessions.classify import LONGEST_KEY, SessionKind, SessionType, classify, scope_of
from tests.hostile import hostile

OWNERS = ("48210011", "slack:U0ANA", "@ana:example.org", "+43660123")

# key -> type, agent, channel, peer, topic
KNOWN = {
    "agent:main:main": ("main_session", "main", "", "", ""),
    "agent:werkbank:main": ("main_session", "werkbank", "", "", ""),
    "agent:lead:main": ("orchestration", "lead", "", "", ""),
    "agent:main:telegram:direct:48210011": ("private_dm", "main", "telegram", "48210011", ""),
    "agent:main:telegram:dm:48210011": ("private_dm", "main", "telegram", "48210011", ""),
    "agent:main:direct:48210011": ("private_dm", "main", "", "48210011", ""),
    "agent:main:whatsapp:shop:direct:+43660123": ("private_dm", "main", "whatsapp", "+43660123", ""),
    "agent:main:slack:direct:u0ana": ("private_dm", "main", "slack", "u0ana", ""),
    "agent:main:slack:direct:u0ana:thread:17.2": ("private_dm", "main", "slack", "u0ana", "17.2"),
    "agent:main:matrix:direct:@ana:example.org": ("private_dm", "main", "matrix", "@ana:example.org", ""),
    "agent:main:telegram:direct:666": ("external_dm", "main", "telegram", "666", ""),
    "agent:main:direct:666": ("external_dm", "main", "", "666", ""),
    "agent:main:discord:direct:u0ana": ("external_dm", "main", "discord", "u0ana", ""),
    "agent:main:direct:u0ana": ("external_dm", "main", "", "u0ana", ""),
    "agent:lead:telegram:direct:666": ("external_dm", "lead", "telegram", "666", ""),
    "agent:main:telegram:group:-100123": ("group_chat", "main", "telegram", "-100123", ""),
    "agent:main:slack:channel:c1": ("group_chat", "main", "slack", "c1", ""),
    "agent:main:matrix:room:!AbC:example.org": ("group_chat", "main", "matrix", "!AbC:example.org", ""),
    "agent:main:telegram:group:-100123:topic:7": ("forum_topic", "main", "telegram", "-100123", "7"),
    "agent:main:slack:channel:c1:thread:17.25": ("forum_topic", "main", "slack", "c1", "17.25"),
    "agent:main:matrix:channel:!r:a.org:thread:$e:a": ("forum_topic", "main", "matrix", "!r:a.org", "$e:a"),
    "agent:main:slack:thread:17": ("forum_topic", "main", "slack", "", "17"),
    "agent:main:subagent:f9b2e09d": ("subagent", "main", "", "", ""),
    "agent:main:subagent:f9:subagent:0c": ("subagent", "main", "", "", ""),
    "agent:main:cron:daily:subagent:0c": ("subagent", "main", "", "", ""),
    "subagent:f9b2e09d": ("subagent", "main", "", "", ""),
    "cron:daily": ("heartbeat_cron", "main", "", "", ""),
    "agent:main:cron:daily": ("heartbeat_cron", "main", "", "", ""),
    "agent:shop:cron:daily:run:0c1d": ("heartbeat_cron", "shop", "", "", ""),
    "agent:main:heartbeat": ("heartbeat_cron", "main", "", "", ""),
    "agent:main:main:heartbeat": ("heartbeat_cron", "main", "", "", ""),
    "heartbeat": ("heartbeat_cron", "main", "", "", ""),
}
HOSTILE = [
    "", " ", "main", "global", "unknown", "garbage", "agent", "agent:", "agent::main", "agent:main",
    "agent:main:", "agent:main:main:", "agent:main:main:x", "x:agent:main:main", "AGENT:main:main",
    " agent:main:main", "agent:main:main ", "agent:main:main\n", "agent:main:Main", "agent:main:main\0",
    "agent:*:*", "agent:-->:main", "agent:a\nb:main", "agent:../x:main", "agent:..:main", "agent:\0:main",
    "agent:🦊:main", "agent: :main", f"agent:{'a' * 10_000}:main", "agent:main:telegram:group:-->",
    "agent:main:telegram:group:a\u2028b", "agent:main:telegram:direct:../../48210011",
    "agent:main:telegram:group:\u202e1", "agent:main:telegram:group:", "agent:main:telegram::direct:48210011",
    f"agent:main:telegram:group:{'1' * 10_000}", "agent:main:web1", "agent:main:explicit:48210011",
    "agent:main:dashboard:direct", "agent:main:telegram:direct", "cron:", "cron", "subagent", "\ud800",
    "agent:main:a:b:c:direct:48210011", "agent:main:telegram\\direct:48210011",
]  # fmt: skip


@pytest.mark.parametrize(("key", "expected"), KNOWN.items())
def test_each_form_of_key_is_recognised(key: str, expected: tuple[str, ...]) -> None:
    kind = classify(key, OWNERS, ["lead"])
    assert (kind.type, kind.agent, kind.channel, kind.peer, kind.topic) == expected
    assert kind.known
    assert kind.key == key


@pytest.mark.parametrize("key", HOSTILE, ids=lambda key: ascii(key)[:40])
def test_a_key_of_no_known_form_is_a_fallback_without_parts(key: str) -> None:
    kind = classify(key, OWNERS, ["lead"])
    assert (kind.type, kind.known, kind.channel, kind.peer, kind.topic) == ("fallback", False, "", "", "")


@pytest.mark.parametrize("key", [None, 7, b"agent:main:main", ["agent", "main", "main"]])
def test_what_is_no_text_is_a_fallback(key: object) -> None:
    assert classify(key, OWNERS) == SessionKind("")


def test_the_agent_of_an_unknown_form_is_still_known() -> None:
    assert classify("agent:werkbank:web1").agent == "werkbank"
    assert classify(f"agent:werkbank:{'x' * 10_000}").agent == "werkbank"
    assert classify("agent:-->:main").agent == "main"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("agent:subagent:main", "main_session"),
        ("agent:cron:telegram:direct:666", "external_dm"),
        ("agent:group:telegram:direct:666", "external_dm"),
        ("agent:main:irc:direct:channel", "external_dm"),
        ("agent:main:irc:direct:main", "external_dm"),
        ("agent:main:irc:direct:x:subagent:1", "external_dm"),
        ("agent:main:irc:direct:x:group:1", "external_dm"),
        ("agent:main:telegram:group:subagent", "group_chat"),
        ("agent:main:telegram:group:direct:48210011", "group_chat"),
        ("agent:main:telegram:group:topic", "group_chat"),
        ("agent:main:main:thread:7", "forum_topic"),
    ],
)
def test_a_name_or_an_id_does_not_decide_the_type(key: str, expected: str) -> None:
    assert classify(key, OWNERS).type == expected


def test_nobody_is_the_owner_unless_named() -> None:
    key = "agent:main:telegram:direct:48210011"
    assert classify(key).type == "external_dm"
    assert classify(key, ["*"]).type == "external_dm"
    assert classify(key, ["4821001"]).type == "external_dm"
    assert classify(key, ["telegram:48210011"]).type == "private_dm"
    assert classify(key, ["signal:48210011"]).type == "external_dm"
    assert classify("agent:main:direct:", [""]).type == "fallback"
    assert classify("agent:main:telegram:direct:<48210011>", ["48210011"]).type == "fallback"


def test_the_types_are_those_of_the_config() -> None:
    rules = [part.name for part in fields(Sessions) if isinstance(part.default, SessionRule)]
    assert sorted(get_args(SessionType)) == sorted(rules)


def test_an_audience_becomes_what_may_be_searched() -> None:
    kind = classify("agent:shop:telegram:group:-1")
    assert scope_of(kind, "owner") == Scope(agents=("shop",))
    assert scope_of(kind, "group") == Scope(audience="group", conversation=kind.key, agents=("shop",))
    assert scope_of(kind, "anyone") == Scope(audience="anyone", agents=("shop",))
    assert scope_of(kind, "gruop") == Scope(audience="anyone", agents=("shop",))


_SEGMENT = st.one_of(
    st.sampled_from(
        ["agent", "main", "direct", "dm", "group", "channel", "room", "topic", "thread", "subagent", "cron",
         "heartbeat", "telegram", "48210011", "-->", "../x", "", " ", "\n", "\0", "🦊", "lead"]
    ),
    st.text(max_size=8),
)  # fmt: skip


@given(st.one_of(st.text(), hostile, st.lists(_SEGMENT, max_size=9).map(":".join)))
def test_any_key_gives_a_type_and_parts_that_can_be_shown(key: str) -> None:
    kind = classify(key, OWNERS, ["lead"])
    assert kind == classify(key, OWNERS, ["lead"])
    assert kind.type in get_args(SessionType)
    for part in (kind.agent, kind.channel, kind.peer, kind.topic):
        assert part.isprintable()
        assert "<" not in part
        assert ">" not in part
        assert len(part) <= LONGEST_KEY
    assert "/" not in kind.agent


@given(st.lists(_SEGMENT, max_size=9).map(":".join))
def test_only_named_owners_and_main_sessions_are_the_owners(key: str) -> None:
    kind = classify(key, OWNERS)
    if kind.type == "main_session":
        assert key == f"agent:{kind.agent}:main"
    if kind.type == "private_dm":
        assert kind.peer in OWNERS

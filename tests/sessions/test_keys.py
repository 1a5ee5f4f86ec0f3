from __future__ import annotations

from dataclasses import fields
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.config.schema import SESSION_TYPES, SessionRule, SessionSettings
from tacit.search.model import Scope
from tacit.sessions.keys import (
    MAX_KEY_CHARS,
    KeyForm,
    SessionKind,
    SessionType,
    classify,
    is_owner,
    parse_sender,
    search_scope,
)
from tests.hostile import hostile

OWNERS = ("48210011", "slack:U0ANA", "@ana:example.org", "+43660123")

# key -> type, agent, channel, peer, topic
KNOWN = {
    "agent:main:main": ("main_session", "main", "", "", ""),
    "agent:werkbank:main": ("main_session", "werkbank", "", "", ""),
    "agent:main:main:session:4a4c67da-29cd": ("main_session", "main", "", "", ""),
    "agent:lead:main:session:4a4c67da-29cd": ("orchestration", "lead", "", "", ""),
    "agent:lead:main": ("orchestration", "lead", "", "", ""),
    "agent:main:telegram:direct:48210011": ("private_dm", "main", "telegram", "48210011", ""),
    "agent:main:telegram:dm:48210011": ("private_dm", "main", "telegram", "48210011", ""),
    "agent:main:direct:48210011": ("private_dm", "main", "", "48210011", ""),
    "agent:main:dm:48210011": ("private_dm", "main", "", "48210011", ""),
    "agent:main:whatsapp:default:direct:+43660123": ("private_dm", "main", "whatsapp", "+43660123", ""),
    "agent:main:telegram:main:direct:48210011": ("private_dm", "main", "telegram", "48210011", ""),
    "agent:main:telegram:direct:48210011:topic:9": ("private_dm", "main", "telegram", "48210011", "9"),
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
    "agent:main:telegram:work:group:-1": ("group_chat", "main", "telegram", "-1", ""),
    "agent:main:discord:acc:channel:5": ("group_chat", "main", "discord", "5", ""),
    "agent:main:telegram:default:group:-1:topic:7": ("forum_topic", "main", "telegram", "-1", "7"),
    "agent:main:group:-1": ("group_chat", "main", "", "-1", ""),
    "agent:main:channel:5": ("group_chat", "main", "", "5", ""),
    "agent:main:channel:5:thread:7": ("forum_topic", "main", "", "5", "7"),
    "agent:main:matrix:room:!AbC:example.org": ("group_chat", "main", "matrix", "!AbC:example.org", ""),
    "agent:main:telegram:group:-100123:topic:7": ("forum_topic", "main", "telegram", "-100123", "7"),
    "agent:main:slack:channel:c1:thread:17.25": ("forum_topic", "main", "slack", "c1", "17.25"),
    "agent:main:matrix:channel:!r:a.org:thread:$e:a": ("forum_topic", "main", "matrix", "!r:a.org", "$e:a"),
    "agent:main:slack:thread:17": ("forum_topic", "main", "slack", "", "17"),
    "agent:main:telegram:group:-100123:thread:9": ("forum_topic", "main", "telegram", "-100123", "9"),
    "agent:main:main:thread:7": ("external_dm", "main", "", "", "7"),
    "agent:lead:main:thread:17.25": ("external_dm", "lead", "", "", "17.25"),
    "agent:main:main:topic:7": ("external_dm", "main", "", "", "7"),
    "agent:main:subagent:f9b2e09d": ("subagent", "main", "", "", ""),
    "agent:main:subagent:f9:subagent:0c": ("subagent", "main", "", "", ""),
    "agent:main:cron:daily:subagent:0c": ("subagent", "main", "", "", ""),
    "agent:main:cron:daily:run:0c1d:subagent:0c": ("subagent", "main", "", "", ""),
    "agent:lead:subagent:0c": ("subagent", "lead", "", "", ""),
    "subagent:f9b2e09d": ("subagent", "main", "", "", ""),
    "cron:daily": ("heartbeat_cron", "main", "", "", ""),
    "agent:main:cron:daily": ("heartbeat_cron", "main", "", "", ""),
    "agent:shop:cron:daily:run:0c1d": ("heartbeat_cron", "shop", "", "", ""),
    "agent:main:heartbeat": ("heartbeat_cron", "main", "", "", ""),
    "agent:main:main:heartbeat": ("heartbeat_cron", "main", "", "", ""),
    "heartbeat": ("heartbeat_cron", "main", "", "", ""),
    "cron:daily:run:0c1d": ("heartbeat_cron", "main", "", "", ""),
    # Forms that hosts make and that do not tell whose the session is.
    "agent:main:acp:0c1d-4e": ("fallback", "main", "", "", ""),
    "agent:codex:acp:binding:discord:default:0c": ("fallback", "codex", "", "", ""),
    "agent:main:boot:0c1d": ("fallback", "main", "", "", ""),
    "agent:main:hook:gmail:17": ("fallback", "main", "", "", ""),
    "hook:0c1d": ("fallback", "main", "", "", ""),
    "agent:main:dashboard:0c1d": ("fallback", "main", "", "", ""),
    "agent:main:dashboard:direct": ("fallback", "main", "", "", ""),
    "agent:main:explicit:48210011": ("fallback", "main", "", "", ""),
    "agent:main:telegram:slash:48210011": ("fallback", "main", "", "", ""),
    "agent:lead:discord:slash:48210011": ("fallback", "lead", "", "", ""),
    "global": ("fallback", "main", "", "", ""),
    "unknown": ("fallback", "main", "", "", ""),
}
HOSTILE = [
    "", " ", "main", "garbage", "agent:main:global", "agent:main:unknown", "global:x", "unknown:",
    "agent", "agent:", "agent::main", "agent:main",
    "agent:main:", "agent:main:main:", "agent:main:main:x", "x:agent:main:main", "AGENT:main:main",
    " agent:main:main", "agent:main:main ", "agent:main:main\n", "agent:main:Main", "agent:main:main\0",
    "agent:*:*", "agent:-->:main", "agent:a\nb:main", "agent:../x:main", "agent:..:main", "agent:\0:main",
    "agent:🦊:main", "agent: :main", f"agent:{'a' * 10_000}:main", "agent:main:telegram:group:-->",
    "agent:main:telegram:group:a\u2028b", "agent:main:telegram:direct:../../48210011",
    "agent:main:telegram:group:\u202e1", "agent:main:telegram:group:", "agent:main:telegram::direct:48210011",
    f"agent:main:telegram:group:{'1' * 10_000}", "agent:main:web1", "agent:main:home",
    "agent:main:telegram:direct", "cron:", "cron", "subagent", "\ud800", "hook", "heartbeat:x",
    "agent:main:main:direct:48210011", "agent:main:group:direct:48210011", "agent:main:group",
    "agent:main:group:topic", "agent:main:telegram:hook:group:1",
    "agent:main:channel:direct:48210011", "agent:main:topic:direct:48210011",
    "agent:main:openai-user:direct:48210011", "agent:main:openresponses-user:direct:48210011",
    "agent:main:telegram:cron:direct:48210011", "agent:main:telegram:subagent:direct:48210011",
    "agent:main:cron:daily:48210011", "agent:main:cron:daily:run", "agent:main:cron:daily:run:1:2",
    "agent:main:cron:daily:telegram:direct:48210011", "agent:main:subagent:1:2", "agent:main:subagent",
    "agent:main:subagent:1:subagent", "agent:main:subagent:1:cron:2", "agent:main:heartbeat:48210011",
    "agent:main:main:heartbeat:x", "agent:main:acp", "agent:main:hook", "agent:main:dashboard",
    "agent:main:telegram:slash", "agent:main:main:subagent:1", "agent:main:main:cron:1",
    "agent:main:main:main",
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
        ("agent:direct:main", "main_session"),
        ("agent:main:telegram:group:main", "group_chat"),
        ("agent:main:telegram:group:-1:heartbeat", "group_chat"),
        ("agent:main:telegram:group:-1:subagent:2", "group_chat"),
        ("agent:main:telegram:direct:48210011:heartbeat", "external_dm"),
        ("agent:main:telegram:direct:direct:48210011", "external_dm"),
        ("agent:main:direct:direct:48210011", "external_dm"),
        ("agent:main:slack:thread:direct:48210011", "forum_topic"),
        ("agent:main:hook:direct:48210011", "fallback"),
        ("agent:main:dashboard:main", "fallback"),
        ("agent:main:explicit:telegram:direct:48210011", "fallback"),
        ("agent:main:telegram:slash:direct:48210011", "fallback"),
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


@pytest.mark.parametrize(
    ("owner", "key", "expected"),
    [
        ("7", "agent:main:telegram:direct:7", True),
        ("7", "agent:main:telegram:direct:07", False),
        ("07", "agent:main:telegram:direct:7", False),
        ("7", "agent:main:telegram:direct:٧", False),
        ("7", "agent:main:telegram:direct:７", False),
        ("7", "agent:main:telegram:direct: 7", False),
        (" 7", "agent:main:telegram:direct:7", False),
        ("7", "agent:main:telegram:direct:77", False),
        ("telegram:7", "agent:main:telegram:direct:7", True),
        ("Telegram:7", "agent:main:telegram:direct:7", True),
        ("telegram:7", "agent:main:telegram:shop:direct:7", True),
        ("telegram:7", "agent:main:signal:direct:7", False),
        ("telegram:7", "agent:main:direct:7", False),
        ("telegram:7", "agent:main:direct:telegram:7", False),
        ("telegram:7", "agent:main:irc:direct:telegram:7", False),
        ("telegram:7", "agent:main:telegram:7:direct:8", False),
        ("telegram:7", "agent:main:tеlegram:direct:7", False),  # a Cyrillic letter in it
        ("7", "agent:main:tеlegram:direct:7", False),
        ("slack:U0ANA", "agent:main:slack:direct:u0ana", True),
        ("u0ana", "agent:main:slack:direct:U0ANA", True),
        ("kim", "agent:main:irc:direct:\u212aim", False),  # the Kelvin sign, which folds into k
        ("\u212aim", "agent:main:irc:direct:kim", False),
        ("kim", "agent:main:irc:direct:ｋｉｍ", False),
        ("ünal", "agent:main:irc:direct:ünal", True),
        ("Ünal", "agent:main:irc:direct:ünal", False),
        ("ünal", "agent:main:irc:direct:u\u0308nal", False),
        ("ss", "agent:main:irc:direct:ß", False),
        ("@ana:example.org", "agent:main:matrix:direct:@ana:example.org", True),
        ("matrix:@ana:example.org", "agent:main:matrix:direct:@ana:example.org", True),
        ("@ana:example.org", "agent:main:matrix:direct:@ana:example.org.evil", False),
        ("@ana:example.org", "agent:main:matrix:direct:@ana", False),
        ("signal:uuid:0c", "agent:main:signal:direct:uuid:0c", True),
        ("*", "agent:main:telegram:direct:*", False),
        ("telegram:*", "agent:main:telegram:direct:7", False),
        ("", "agent:main:telegram:direct:7", False),
        (":7", "agent:main:telegram:direct:7", False),
        ("telegram:", "agent:main:telegram:direct:7", False),
    ],
)
def test_an_owner_is_exactly_who_is_named_but_for_the_case(owner: str, key: str, expected: bool) -> None:
    assert (classify(key, [owner]).type == "private_dm") is expected


def test_a_person_is_an_id_or_a_channel_and_an_id() -> None:
    assert parse_sender("telegram:7") == ("telegram", "7")
    assert parse_sender("7") == ("", "7")
    assert parse_sender("@ana:example.org") == ("", "@ana:example.org")
    assert parse_sender("29:1abc") == ("", "29:1abc")
    assert is_owner(("telegram", "7"), ["7"])
    assert not is_owner(("", "7"), ["telegram:7"])


def test_the_main_session_may_have_another_name() -> None:
    names = ("Home", "work")
    assert classify("agent:main:home", main_keys=names).type == "main_session"
    assert classify("agent:lead:work", (), ["lead"], names).type == "orchestration"
    assert classify("agent:main:home:heartbeat", main_keys=names).type == "heartbeat_cron"
    assert classify("agent:main:home:thread:7", main_keys=names).type == "external_dm"
    assert classify("agent:main:home:direct:7", ["7"], main_keys=names).type == "fallback"
    for key in ("agent:main:main", "agent:main:Home", "agent:main:homes", "agent:main:home:x", "home"):
        assert classify(key, main_keys=names).type == "fallback"


def test_the_dashboard_is_a_main_session_only_where_the_config_says_so() -> None:
    for word in ("dashboard", "explicit"):
        names = ("main", word)
        assert classify(f"agent:main:{word}:0c1d", main_keys=names).type == "main_session"
        assert classify(f"agent:main:{word}:0c1d", main_keys=names).is_main
        assert classify(f"agent:main:{word}:a:b", main_keys=names).type == "fallback"
        assert classify(f"agent:main:{word}:0c1d").type == "fallback"
    assert classify("agent:main:hook:0c1d", main_keys=("hook",)).type == "fallback"
    assert classify("global", main_keys=("global",)).type == "fallback"


def test_an_agent_leads_others_however_the_config_spells_it() -> None:
    assert classify("agent:lead:main", (), ["Lead"]).type == "orchestration"
    assert classify("agent:Lead:main", (), ["lead"]).type == "orchestration"


def test_only_main_sessions_may_have_several_senders_folded_into_them() -> None:
    assert [key for key in KNOWN if classify(key, OWNERS, ["lead"]).is_main] == [
        "agent:main:main", "agent:werkbank:main", "agent:main:main:session:4a4c67da-29cd",
        "agent:lead:main:session:4a4c67da-29cd", "agent:lead:main",
    ]  # fmt: skip


def test_the_types_are_those_of_the_config() -> None:
    rules = [part.name for part in fields(SessionSettings) if isinstance(part.default, SessionRule)]
    assert list(get_args(SessionType)) == rules == list(SESSION_TYPES)


def test_every_form_is_among_the_samples() -> None:
    found = {classify(key, OWNERS, ["lead"]).form for key in [*KNOWN, *HOSTILE]}
    assert found == set(get_args(KeyForm))


def test_an_audience_becomes_what_may_be_searched() -> None:
    kind = classify("agent:shop:telegram:group:-1")
    assert search_scope(kind, "owner") == Scope(agents=("shop",))
    assert search_scope(kind, "group") == Scope(audience="group", conversation=kind.key, agents=("shop",))
    assert search_scope(kind, "anyone") == Scope(audience="anyone", agents=("shop",))
    assert search_scope(kind, "gruop") == Scope(audience="anyone", agents=("shop",))


_SEGMENT = st.one_of(
    st.sampled_from(
        ["agent", "main", "home", "acp", "hook", "dashboard", "slash", "run", "openai-user",
         "direct", "dm", "group", "channel", "room", "topic", "thread", "subagent", "cron",
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
        assert len(part) <= MAX_KEY_CHARS
    assert "/" not in kind.agent

"""Keys, senders and owners made to be taken for the owner: none of them is."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.config import Config, parse
from tacit.privacy.audience import AUDIENCES
from tacit.sessions.policy import SessionProfile, resolve_profile
from tests.hostile import hostile

CONFIG = parse(
    """
owners: ["7", "telegram:11", "@ana:example.org"]
sessions:
  orchestration_agents: [lead]
  main_keys: [main, home]
  rules:
    - {type: group_chat, channel: telegram, peer: "-1", files: [SOUL.md, USER.md]}
    - {agent: shop, audience: anyone}
    - {type: main_session, token_budget: 999}
""",
    where="f", environ={}, trusted=True,
).config  # fmt: skip

_AGENT = r"[^\W_][\w.-]{0,63}"
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.+@-]{0,63}"
# All there is of keys that are the owner's, written once more and in another way.
OWNERS = re.compile(
    rf"agent:{_AGENT}:(main|home)(:heartbeat)?"
    rf"|(agent:{_AGENT}:)?heartbeat"
    rf"|(agent:{_AGENT}:)?cron:[^:]+(:run:[^:]+)?"
    rf"|agent:{_AGENT}:({_NAME}:({_NAME}:)?)?(direct|dm):(7|@ana:example\.org)(:(topic|thread):.+)?"
    rf"|agent:{_AGENT}:[Tt][Ee][Ll][Ee][Gg][Rr][Aa][Mm]:({_NAME}:)?(direct|dm):11(:(topic|thread):.+)?"
)

LOOKALIKES = [
    "mаin", "ｍａｉｎ", "main\u200b", "\u200bmain", "ma\u00adin", "main\u0301", "ⅿain", "mаіn", "MAIN",
    "Main",
    " main", "main ", "main\t", "main\n", "main\r", "main\0", "main\x00x", "main/", "main.", "main#",
    "main%20",
]  # fmt: skip
FORGED = [
    *(f"agent:main:{word}" for word in LOOKALIKES),
    *(f"agent:main:telegram:{word}:7" for word in ("dіrect", "ｄirect", "direct\u200b", "Direct", "dⅿ")),
    "agent：main：main", "agent꞉main꞉main", "agent∶main∶main", "agent:main：main", "agent:main;main",
    "agent:main:telegram：direct：7", "agent%3Amain%3Amain", "agent\\:main\\:main",
    "x:agent:main:main", "agent:agent:main:main", "agent:main:agent:main:main",
    "agent:main:main:agent:main:main",
    "agent:main:main:7", "agent:main:main:direct:7", "agent:main:main:telegram:direct:7", "agent:main:x:main",
    "agent:main:telegram:group:agent:main:main", "agent:main:telegram:group:main", "agent:main:telegram:main",
    "agent:main:telegram:group:-1:main", "agent:main:telegram:group:direct:7", "agent:main:group:direct:7",
    "agent:main:telegram:group:-1:direct:7", "agent:main:telegram:group:-1:subagent:7",
    "agent:main:telegram:group:subagent:7", "agent:main:telegram:group:cron:7",
    "agent:subagent:telegram:group:7",
    "agent:cron:telegram:direct:9", "agent:main:telegram:direct:9:cron:1",
    "agent:main:telegram:direct:9:direct:7",
    "agent:main:telegram:direct:9:topic:7", "agent:main:telegram:direct:9:thread:direct:7",
    "agent:main:cron:1:direct:7", "agent:main:cron:1:run:2:direct:7", "agent:main:cron:1:main",
    "agent:main:heartbeat:7", "agent:main:telegram:heartbeat", "agent:main:telegram:group:1:heartbeat",
    "agent:main:hook:direct:7", "agent:main:hook:main", "agent:main:dashboard:direct:7",
    "agent:main:dashboard:7",
    "agent:main:explicit:main", "agent:main:explicit:agent:main:main", "agent:main:acp:main",
    "agent:main:boot:7",
    "agent:main:openai-user:direct:7", "agent:main:openai-user:7", "agent:main:telegram:slash:7",
    "agent:main:telegram:slash:direct:7", "agent:main:slack:thread:direct:7", "agent:main:channel:direct:7",
    "agent:main:room:direct:7", "agent:main:topic:direct:7", "agent:main:run:direct:7",
    "agent:main:telegram:hook:direct:7", "agent:main:telegram:run:direct:7",
    "agent:main:main:thread:7", "agent:main:main:topic:7", "agent:main:home:thread:7",
    "agent:main:telegram:direct:07", "agent:main:telegram:direct:7.0", "agent:main:telegram:direct:+7",
    "agent:main:telegram:direct:٧", "agent:main:telegram:direct:７", "agent:main:telegram:direct:²7",
    "agent:main:telegram:direct: 7", "agent:main:telegram:direct:7 ", "agent:main:telegram:direct:7\n",
    "agent:main:telegram:direct:7\0", "agent:main:telegram:direct:7/../7", "agent:main:telegram:direct:../7",
    "agent:main:telegram:direct:7:x", "agent:main:telegram:direct:x:7", "agent:main:telegram:direct:<7>",
    "agent:main:direct:telegram:11", "agent:main:direct:11", "agent:main:signal:direct:11",
    "agent:main:irc:direct:telegram:11", "agent:main:tеlegram:direct:11", "agent:main:telegram:direct:@ana",
    "agent:main:matrix:direct:@ana:example.org.evil", "agent:main:matrix:direct:x@ana:example.org",
    "agent:main:matrix:direct:@ana:exampIe.org", "agent:main:telegram:direct:*", "agent:*:*", "*",
    f"agent:main:main{' ' * 10_000}", f"agent:main:{'main:' * 2000}main", f"agent:{'m' * 10_000}:main",
    f"agent:main:telegram:direct:7{chr(0x200b) * 10}", f"agent:main:telegram:{'x' * 100}:direct:7",
    "agent:../main:main", "agent:..:main", "agent:main/..:main", "agent:main:..:main", "agent::main",
    "agent:main:",
    "", ":", "::", "main", "home", "global", "unknown", "subagent:main", "\ud800",
]  # fmt: skip


def is_wide(profile: SessionProfile) -> bool:
    files = profile.rule.files or ()
    return profile.rule.audience == "owner" or "USER.md" in files or "HEARTBEAT.md" in files


@pytest.mark.parametrize("key", FORGED, ids=lambda key: ascii(key)[:60])
def test_a_forged_key_is_never_the_owners(key: str) -> None:
    for sender in ("", "7", "telegram:7", "telegram:11"):
        for trigger in ("", "heartbeat", "cron"):
            for agent in (None, "main", "lead"):
                profile = resolve_profile(key, CONFIG, agent=agent, sender=sender, trigger=trigger)
                assert not is_wide(profile), profile


_PIECES = st.one_of(
    st.sampled_from(
        ["agent", "main", "home", "lead", "shop", "direct", "dm", "group", "channel", "room", "topic",
        "thread",
         "subagent", "cron", "run", "heartbeat", "telegram", "Telegram", "slack", "default", "7", "11", "9",
         "@ana", "example.org", "-1", "hook", "dashboard", "explicit", "acp", "boot", "slash", "openai-user",
         "global", "unknown", "mаin", "７", "", " ", "\n", "\0", "..", "*", "-->"]
    ),
    st.text(max_size=5),
)  # fmt: skip
_KEYS = st.one_of(
    st.lists(_PIECES, max_size=8).map(":".join),
    st.lists(_PIECES, max_size=6).map(lambda parts: ":".join(["agent", "main", *parts])),
    st.text(),
    hostile,
    st.sampled_from(FORGED),
)
_WHO = st.one_of(
    st.sampled_from(["", "7", "telegram:7", "telegram:11", "9", "telegram:9"]), st.text(max_size=6)
)


@given(
    _KEYS, _WHO, st.sampled_from(["", "user", "heartbeat", "cron"]), st.sampled_from([None, "main", "lead"])
)
@example("agent:main:main:heartbeat", "", "", None)
@settings(max_examples=1500)
def test_only_a_key_of_the_right_shape_is_ever_the_owners(
    key: str, sender: str, trigger: str, agent: str | None
) -> None:
    profile = resolve_profile(key, CONFIG, agent=agent, sender=sender, trigger=trigger)
    if profile.rule.audience == "owner":
        assert OWNERS.fullmatch(key), profile
        assert profile.kind.type in ("main_session", "private_dm", "heartbeat_cron", "orchestration")
    if profile.kind.type == "fallback":
        assert profile.rule.files is None
        assert profile.rule.audience == "anyone"
    assert all(notice.text.isprintable() and len(notice.text) < 400 for notice in profile.notices)


@given(_KEYS, _WHO, st.lists(_WHO, max_size=3))
def test_whoever_is_said_to_write_nothing_gets_wider_by_it(key: str, sender: str, seen: list[str]) -> None:
    for config in (CONFIG, Config()):
        alone = resolve_profile(key, config)
        told = resolve_profile(key, config, sender=sender, senders=seen)
        assert AUDIENCES.index(told.rule.audience) <= AUDIENCES.index(alone.rule.audience)
        assert told.rule == alone.rule or told.rule.audience == "anyone"
        assert told.scope.agents == alone.scope.agents


@given(st.text(min_size=1, max_size=12))
@example("\u212a")
@example("٧")
def test_an_owner_is_matched_by_that_text_alone(owner: str) -> None:
    """Whatever a person writes into `owners`, another person with another id is somebody else."""
    config = parse("", where="f", environ={}, trusted=True).config
    config = type(config)(owners=(owner,))
    for other in ("7", "x", owner + "0", "0" + owner, owner[:-1], owner + " "):
        if other.lower() != owner.lower():
            assert resolve_profile(f"agent:main:telegram:direct:{other}", config).rule.audience == "anyone"
            assert resolve_profile("agent:main:main", config, sender=other or "x y").rule.audience == "anyone"

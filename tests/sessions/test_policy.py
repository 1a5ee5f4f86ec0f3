"""Which rule a session gets, and when a session that looks like the owner's is not."""

from __future__ import annotations

from itertools import product

import pytest

from tacit.config import Config, parse
from tacit.config.schema import SESSION_TYPES
from tacit.privacy.audience import AUDIENCES
from tacit.search.model import Scope
from tacit.sessions.keys import find_excluded_agent, named_agents
from tacit.sessions.policy import SessionProfile, resolve_profile, sender_name

MAIN = "agent:main:main"
DM = "agent:main:telegram:direct:7"
GROUP = "agent:main:telegram:group:-100"
KEYS = {
    "main_session": MAIN,
    "private_dm": DM,
    "external_dm": "agent:main:telegram:direct:9",
    "forum_topic": "agent:main:telegram:group:-100:topic:15",
    "group_chat": GROUP,
    "subagent": "agent:main:subagent:0c",
    "heartbeat_cron": "agent:main:cron:daily",
    "orchestration": "agent:lead:main",
    "fallback": "agent:main:web1",
}
BASE = "owners: ['7', 'slack:U0ANA']\nsessions:\n  orchestration_agents: [lead]\n"


def config(rules: str = "", base: str = BASE) -> Config:
    text = base + (f"  rules:\n{rules}" if rules else "")
    return parse(text, where="f", environ={}, trusted=True).config


def codes(profile: SessionProfile) -> list[str]:
    return [notice.code for notice in profile.notices]


def is_for_strangers(profile: SessionProfile) -> bool:
    return (profile.kind.type, profile.rule.audience, profile.rule.files, profile.scope) == (
        "external_dm", "anyone", ("SOUL.md",), Scope(audience="anyone", agents=(profile.kind.agent,))
    )  # fmt: skip


# ---------------------------------------------------------------- the table


@pytest.mark.parametrize("kind", SESSION_TYPES)
def test_each_type_gets_its_own_rule(kind: str) -> None:
    profile = resolve_profile(KEYS[kind], config())
    assert profile.kind.type == kind
    assert profile.won == f"sessions.{kind}"
    assert profile.number == 0
    assert profile.rule.files == getattr(Config().sessions, kind).files
    assert profile.rule.audience == getattr(Config().sessions, kind).audience
    assert codes(profile) == (["unknown-key"] if kind == "fallback" else [])


def test_lanes_are_those_of_the_type_or_those_of_all() -> None:
    base = (
        BASE + "  group_chat: {lanes: [file]}\n  subagent: {lanes: []}\ninject: {lanes: [runtime, daily]}\n"
    )
    settings = config(base=base)
    assert resolve_profile(GROUP, settings).rule.lanes == ("file",)
    assert resolve_profile(KEYS["subagent"], settings).rule.lanes == ()
    assert resolve_profile(MAIN, settings).rule.lanes == ("runtime", "daily")


def test_a_rule_wins_over_the_type_only_in_what_it_names() -> None:
    profile = resolve_profile(GROUP, config("    - {type: group_chat, token_budget: 999}\n"))
    assert profile.rule.token_budget == 999
    assert profile.rule.files == Config().sessions.group_chat.files
    assert profile.rule.audience == "group"
    assert profile.rule.lanes == ("bootstrap", "runtime")
    assert (profile.won, profile.number) == ("rule 1 of sessions.rules", 1)


def test_a_rule_can_take_back_what_the_type_sets() -> None:
    base = BASE + "  main_session: {files: [SOUL.md, A.md], token_budget: 999, lanes: [file]}\n"
    rule = resolve_profile(
        MAIN, config("    - {type: main_session, files: null, token_budget: null, lanes: null}\n", base)
    ).rule
    assert (rule.files, rule.token_budget, rule.lanes) == (None, None, ("bootstrap", "runtime"))


def test_the_first_rule_whose_conditions_all_hold_wins_alone() -> None:
    settings = config(
        "    - {channel: slack, token_budget: 1001}\n"
        "    - {channel: telegram, peer: '-100', topic: '15', token_budget: 1002}\n"
        "    - {channel: telegram, peer: '-100', lanes: []}\n"
        "    - {type: group_chat, token_budget: 1004}\n"
    )
    assert resolve_profile(KEYS["forum_topic"], settings).rule.token_budget == 1002
    group = resolve_profile(GROUP, settings)
    assert (group.rule.lanes, group.rule.token_budget, group.number) == ((), None, 3)
    assert resolve_profile("agent:main:telegram:group:-200", settings).number == 4
    assert resolve_profile("agent:main:slack:direct:u0ana", settings).number == 1
    assert resolve_profile(MAIN, settings).number == 0


@pytest.mark.parametrize(
    ("condition", "key"),
    [
        ("type: forum_topic", KEYS["forum_topic"]),
        ("agent: shop", "agent:shop:main"),
        ("channel: Telegram", GROUP),
        ("peer: '-100'", GROUP),
        ("peer: U0ANA", "agent:main:slack:direct:u0ana"),
        ("topic: '15'", KEYS["forum_topic"]),
    ],
)
def test_each_condition_is_asked_of_its_own_part_of_the_key(condition: str, key: str) -> None:
    settings = config(f"    - {{{condition}, token_budget: 999}}\n")
    holds = {found for found in [*KEYS.values(), "agent:shop:main", "agent:main:slack:direct:u0ana"]
             if resolve_profile(found, settings).number}  # fmt: skip
    assert key in holds
    assert MAIN not in holds


@pytest.mark.parametrize("written", ["Shop", "shop"])
def test_an_agent_is_the_same_in_any_case(written: str) -> None:
    """A host folds the case of keys, and the config need not know."""
    settings = config(f"    - {{agent: {written}, token_budget: 999}}\n")
    assert resolve_profile("agent:Shop:main", settings).number == 1
    assert resolve_profile("agent:shop:main", settings).number == 1
    assert resolve_profile(MAIN, settings, agent="SHOP").number == 1
    assert resolve_profile("agent:shops:main", settings).number == 0


def test_with_the_key_that_stands_for_none_it_is_the_main_session_of_the_agent_that_is_named() -> None:
    for agent in ("shop", "lead"):
        assert resolve_profile(MAIN, config(), agent=agent) == resolve_profile(
            f"agent:{agent}:main", config()
        )
    assert resolve_profile(MAIN, config(), agent="shop").scope == Scope(agents=("shop",))
    public = "    - {agent: public, audience: anyone}\n"
    assert resolve_profile(MAIN, config(public), agent="public").rule.audience == "anyone"
    assert resolve_profile("cron:daily", config(), agent="shop").scope == Scope(
        agents=("shop",)
    )  # it names none


@pytest.mark.parametrize("agent", ["shop", "-->", ["shop"]])
def test_where_the_key_names_another_agent_it_is_neithers(agent: object) -> None:
    for key in ("agent:werkbank:main", "agent:main:cron:daily", GROUP):
        profile = resolve_profile(key, config(), agent=agent)
        assert profile.kind.agent == ""
        assert profile.scope.agents == ("",)  # what belongs to an agent belongs to none of that name
        assert profile.scope.audience == resolve_profile(key, config()).scope.audience
        assert codes(profile) == ["agents"]
        assert codes(resolve_profile(key, config(), agent=profile.agents[0].upper())) == []


def test_of_two_agents_that_a_host_names_the_one_counts_that_may_see_less() -> None:
    public = "    - {agent: public, audience: anyone}\n"
    assert resolve_profile("agent:public:main", config(public), agent="main").rule.audience == "anyone"
    assert resolve_profile("agent:main:cron:x", config(public), agent="public").rule.audience == "anyone"
    narrow = BASE + "  main_session: {audience: anyone}\n"
    trusted = "    - {agent: trusted, type: main_session, audience: owner}\n"
    assert resolve_profile("agent:trusted:main", config(trusted, narrow)).rule.audience == "owner"
    assert (
        resolve_profile("agent:other:main", config(trusted, narrow), agent="trusted").rule.audience
        == "anyone"
    )
    assert (
        resolve_profile("agent:trusted:main", config(trusted, narrow), agent="main").rule.audience == "anyone"
    )


def test_being_named_as_an_orchestrating_agent_beside_a_group_changes_no_type() -> None:
    assert resolve_profile(GROUP, config(), agent="lead").kind.type == "group_chat"


def test_an_agent_is_excluded_by_either_name_in_any_case() -> None:
    for key, agent, excluded, expected in [
        (MAIN, None, ["Main"], "main"),
        (MAIN, "shop", ["main"], ""),  # it is the main session of the shop
        (MAIN, "Shop", ["shop"], "Shop"),
        ("agent:shop:telegram:group:1", "main", ["SHOP"], "shop"),
        ("agent:shop:telegram:group:1", "main", ["MAIN"], "main"),
        ("agent:shop:telegram:group:1", None, ["main"], ""),
        ("cron:x", "shop", ["main"], ""),
    ]:
        assert find_excluded_agent(named_agents(key, agent), excluded) == expected


# ---------------------------------------------------------------- whose main session it is

WITH, WITHOUT = config(), config(base="timezone: UTC\nsessions:\n  orchestration_agents: [lead]\n")
OWNER, STRANGER, OTHER = "telegram:7", "telegram:9", "signal:8"


@pytest.mark.parametrize("key", [MAIN, "agent:lead:main"])
@pytest.mark.parametrize(
    ("owners", "sender", "seen", "expected"),
    [
        # Nobody is named: one sender is taken for the owner, of several none.
        (WITHOUT, "", (), ""),
        (WITHOUT, "", (STRANGER,), ""),
        (WITHOUT, STRANGER, (), ""),
        (WITHOUT, STRANGER, (STRANGER,), ""),
        (WITHOUT, "TELEGRAM:9", (STRANGER,), ""),
        (WITHOUT, STRANGER, (OTHER,), "several-senders"),
        (WITHOUT, STRANGER, (STRANGER, OTHER), "several-senders"),
        (WITHOUT, "", (STRANGER, OTHER), "several-senders"),
        (WITHOUT, " ", (STRANGER,), "several-senders"),
        # Owners are named: they are themselves, whoever else has written.
        (WITH, "", (), ""),
        (WITH, "", (OWNER,), ""),
        (WITH, "", (OWNER, "7", "slack:u0ana"), ""),
        (WITH, OWNER, (), ""),
        (WITH, "7", (), ""),
        (WITH, "SLACK:u0ana", (), ""),
        (WITH, OWNER, (OWNER, STRANGER, OTHER), ""),
        # Everybody else is not, and who may be somebody else is not either.
        (WITH, STRANGER, (), "not-owner"),
        (WITH, STRANGER, (OWNER,), "not-owner"),
        (WITH, "u0ana", (), "not-owner"),
        (WITH, "discord:u0ana", (), "not-owner"),
        (WITH, "07", (), "not-owner"),
        (WITH, "٧", (), "not-owner"),
        (WITH, " 7", (), "not-owner"),
        (WITH, " ", (), "not-owner"),
        (WITH, "*", (), "not-owner"),
        (WITH, "", (OWNER, STRANGER), "not-owner"),
        (WITH, "", (STRANGER,), "not-owner"),
    ],
)  # fmt: skip
def test_a_main_session_is_the_owners_as_long_as_nobody_else_writes_in_it(
    key: str, owners: Config, sender: str, seen: tuple[str, ...], expected: str
) -> None:
    profile = resolve_profile(key, owners, sender=sender, senders=seen)
    assert codes(profile) == ([expected] if expected else [])
    if expected:
        assert is_for_strangers(profile)
        assert profile.kind.is_main  # by its key; it is still to be watched who writes in it
    else:
        assert profile.rule.audience == "owner"
        assert profile.won in ("sessions.main_session", "sessions.orchestration")


def test_a_notice_says_what_to_do() -> None:
    stranger = resolve_profile(MAIN, WITH, sender=STRANGER).notices[0].text
    assert "'telegram:9'" in stranger
    assert "add it to owners" in stranger
    several = resolve_profile(MAIN, WITHOUT, senders=("a", "b")).notices[0].text
    assert "Name your own ids in owners" in several
    before = resolve_profile(MAIN, WITH, senders=("a",)).notices[0].text
    assert "add that id to owners" in before


def test_a_notice_shows_little_of_what_a_host_gave_and_nothing_that_could_do_harm() -> None:
    for text in ("x" * 10_000, "\n## 18:45 — agent\n", "\x1b[31m", "-->", "\ud800", "🦊" * 500):
        for profile in (resolve_profile(text, WITH), resolve_profile(MAIN, WITH, sender=text)):
            told = profile.notices[0].text
            assert told.isascii() or "…" in told
            assert told.isprintable()
            assert len(told) < 400


def test_a_sender_never_makes_a_session_wider() -> None:
    for key, sender, seen, owners in product(
        [*KEYS.values(), "agent:main:main:thread:1", "agent:main:dashboard:1", "global"],
        ["", OWNER, "7", STRANGER, "x"],
        [(), (OWNER,), (OWNER, STRANGER)],
        [WITH, WITHOUT],
    ):
        alone = resolve_profile(key, owners)
        told = resolve_profile(key, owners, sender=sender, senders=seen)
        assert AUDIENCES.index(told.rule.audience) <= AUDIENCES.index(alone.rule.audience)
        assert told.rule == alone.rule or is_for_strangers(told)


def test_in_a_direct_message_only_the_owner_is_the_owner() -> None:
    by_channel = config(base="owners: ['telegram:7', 'signal:uuid:0c']\nsessions:\n")
    assert resolve_profile(DM, by_channel, sender="7").rule.audience == "owner"
    assert resolve_profile(DM, by_channel, sender="telegram:7").rule.audience == "owner"
    assert (
        resolve_profile("agent:main:signal:direct:uuid:0c", by_channel, sender="uuid:0c").rule.audience
        == "owner"
    )
    for sender in ("9", "signal:7", "telegram:9"):
        profile = resolve_profile(DM, by_channel, sender=sender)
        assert is_for_strangers(profile)
        assert codes(profile) == ["not-owner"]
    assert is_for_strangers(resolve_profile(KEYS["external_dm"], by_channel, sender="telegram:7"))


@pytest.mark.parametrize(
    "sender",
    ["irc:telegram:7", "telegram:irc:7", "?:telegram:7", "telegram:telegram:7", "telegram :7", "telegram: 7",
     " telegram:7", "telegram:7 ", "telegram:\uff17", "\uff54elegram:7", "telegram\uff1a7",
     "tg:7", ":7", "7", "*"],
    ids=ascii,
)  # fmt: skip
def test_an_id_that_only_looks_like_the_owners_is_a_strangers(sender: str) -> None:
    by_channel = config(base="owners: ['telegram:7']\nsessions:\n")
    assert is_for_strangers(resolve_profile("agent:main:main", by_channel, sender=sender))


def test_a_sender_with_a_channel_in_front_is_on_no_other_channel() -> None:
    owners = config(base="owners: ['telegram:7', 'irc:ines']\nsessions:\n")
    own = "agent:main:irc:direct:ines"
    assert resolve_profile(own, owners, sender="irc:ines").rule.audience == "owner"
    assert is_for_strangers(resolve_profile(own, owners, sender="telegram:7"))
    assert resolve_profile("agent:main:main", owners, sender="TELEGRAM:7").rule.audience == "owner"


@pytest.mark.parametrize(
    "channel", ["my.channel", "3cx", "a+b", "bot@home", "_irc", "\u0442\u0435\u043b\u0435", "c" * 65, "a/b"]
)
def test_however_a_channel_is_written_an_owner_on_it_is_on_no_other(channel: str) -> None:
    owners = config(base=f"owners: ['{channel}:7']\nsessions:\n")
    assert resolve_profile(MAIN, owners, sender=f"{channel}:7").rule.audience == "owner"
    assert is_for_strangers(resolve_profile(MAIN, owners, sender=f"irc:{channel}:7"))
    assert is_for_strangers(resolve_profile(f"agent:main:irc:direct:{channel}:7", owners))


@pytest.mark.parametrize("identity", ["@ana:example.org", "49170:12@s.whatsapp.net", "+49170:1", "29:1abc"])
def test_an_id_with_a_colon_of_its_own_has_no_channel_in_it(identity: str) -> None:
    owners = config(base=f"owners: ['matrix:{identity}']\nsessions:\n")
    assert resolve_profile(MAIN, owners, sender=f"matrix:{identity}").rule.audience == "owner"
    assert is_for_strangers(resolve_profile(MAIN, owners, sender=f"irc:{identity}"))
    anywhere = config(base=f"owners: ['{identity}']\nsessions:\n")
    assert resolve_profile(f"agent:main:matrix:direct:{identity}", anywhere).rule.audience == "owner"


def test_who_wrote_before_counts_only_in_main_sessions() -> None:
    assert resolve_profile(DM, WITH, senders=(STRANGER, OTHER)).rule.audience == "owner"
    assert (
        resolve_profile(KEYS["heartbeat_cron"], WITHOUT, senders=(STRANGER, OTHER)).rule.audience == "owner"
    )
    assert resolve_profile(GROUP, WITH, senders=(STRANGER, OTHER)).rule.audience == "group"


def test_a_job_that_a_stranger_wrote_to_is_not_the_owners() -> None:
    assert is_for_strangers(resolve_profile(KEYS["heartbeat_cron"], WITH, sender=STRANGER))
    assert resolve_profile(KEYS["heartbeat_cron"], WITH, sender=OWNER).rule.audience == "owner"


def test_a_rule_for_main_sessions_is_not_for_strangers_in_them() -> None:
    settings = config(
        "    - {type: main_session, token_budget: 999}\n    - {type: external_dm, token_budget: 555}\n"
    )
    assert resolve_profile(MAIN, settings, sender=OWNER).rule.token_budget == 999
    assert resolve_profile(MAIN, settings, sender=STRANGER).rule.token_budget == 555


def test_a_sender_that_is_no_text_is_nobody_we_know() -> None:
    assert resolve_profile(MAIN, WITH, sender=None).rule.audience == "owner"
    assert resolve_profile(MAIN, WITH, sender=7).rule.audience == "owner"
    for sender in (9, 0, True, False, 7.0, b"7", ["7"], [], {}, {"id": 7}):
        assert is_for_strangers(resolve_profile(MAIN, WITH, sender=sender)), sender
        assert sender_name(sender)


@pytest.mark.parametrize("sender", [["7"], {}, b"7", True, "*"])
def test_a_sender_that_cannot_be_read_is_no_owner_even_where_none_is_named(sender: object) -> None:
    profile = resolve_profile(MAIN, WITHOUT, sender=sender)
    assert is_for_strangers(profile)
    assert codes(profile) == ["not-owner"]
    assert codes(resolve_profile(MAIN, WITHOUT, senders=(sender_name(sender),))) == ["several-senders"]


# ---------------------------------------------------------------- webhooks


@pytest.mark.parametrize("trigger", ["webhook", "hook", "Webhook", "hook:gmail"])
def test_a_run_that_a_webhook_began_is_nobodys_whatever_its_key_looks_like(trigger: str) -> None:
    for kind, key in KEYS.items():
        profile = resolve_profile(key, WITH, sender=OWNER, trigger=trigger)
        assert codes(profile) == ["nobodys"]
        assert "started from outside" in profile.notices[0].text
        assert profile.rule.audience == "anyone"
        assert profile.rule.files == (None if kind == "fallback" else ("SOUL.md",))


def test_the_key_of_a_webhooks_run_alone_reads_as_a_job() -> None:
    for trigger in ("", "cron", "hooked", None, ["webhook"]):
        assert resolve_profile(KEYS["heartbeat_cron"], WITH, trigger=trigger).rule.audience == "owner"


# ---------------------------------------------------------------- heartbeats and jobs


@pytest.mark.parametrize("trigger", ["heartbeat", "cron"])
def test_a_heartbeat_in_the_owners_session_keeps_its_instructions(trigger: str) -> None:
    for kind in ("main_session", "private_dm", "orchestration"):
        files = resolve_profile(KEYS[kind], WITH).rule.files
        assert files is not None
        assert resolve_profile(KEYS[kind], WITH, trigger=trigger).rule.files == (*files, "HEARTBEAT.md")
    assert resolve_profile(KEYS["heartbeat_cron"], WITH, trigger=trigger).rule.files == (
        "SOUL.md",
        "HEARTBEAT.md",
    )


@pytest.mark.parametrize("trigger", ["heartbeat", "cron", "user", "Heartbeat", "", "owner"])
def test_a_trigger_gives_nothing_to_a_session_of_others(trigger: str) -> None:
    for kind in ("external_dm", "forum_topic", "group_chat", "subagent", "fallback"):
        assert resolve_profile(KEYS[kind], WITH, trigger=trigger) == resolve_profile(KEYS[kind], WITH)
    assert resolve_profile(MAIN, WITH, sender=STRANGER, trigger=trigger).rule.files == ("SOUL.md",)


def test_a_heartbeat_leaves_the_hosts_list_where_the_rule_leaves_it() -> None:
    settings = config(base=BASE + "  main_session: {files: null}\n")
    assert resolve_profile(MAIN, settings, trigger="heartbeat").rule.files is None


# ---------------------------------------------------------------- keys of no known form


@pytest.mark.parametrize("key", ["", "garbage", "agent:main:web1", "agent:main:main:x", None, 7, "\ud800"])
def test_a_key_of_no_known_form_leaves_the_hosts_list_and_says_so_once(key: object) -> None:
    profile = resolve_profile(key, WITH, sender=OWNER, trigger="heartbeat")
    assert codes(profile) == ["unknown-key"]
    assert profile.rule.files is None
    assert profile.rule.audience == "anyone"
    assert profile.scope == Scope(audience="anyone", agents=("main",))


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("agent:main:acp:0c", "another program"),
        ("agent:main:boot:0c", "that the host started"),
        ("agent:main:hook:0c", "started from outside"),
        ("agent:main:dashboard:0c", "add dashboard to sessions.main_keys"),
        ("agent:main:explicit:0c", "add explicit to sessions.main_keys"),
        ("agent:main:telegram:slash:7", "others may read the answer"),
        ("global", "all people"),
        ("unknown", "knows nothing about"),
    ],
)
def test_a_key_that_does_not_tell_whose_it_is_is_nobodys_and_says_why(key: str, expected: str) -> None:
    profile = resolve_profile(key, WITH, sender=OWNER)
    assert codes(profile) == ["nobodys"]
    assert expected in profile.notices[0].text
    assert (profile.rule.files, profile.rule.audience) == (None, "anyone")


def test_a_thread_of_the_main_session_is_a_strangers_and_says_why() -> None:
    profile = resolve_profile("agent:main:main:thread:7", WITH, sender=OWNER)
    assert is_for_strangers(profile)
    assert codes(profile) == ["main-thread"]


def test_the_config_names_the_main_session() -> None:
    settings = config(base=BASE + "  main_keys: [home]\n")
    assert resolve_profile("agent:main:home", settings).rule.audience == "owner"
    assert codes(resolve_profile("agent:main:home", settings, sender=STRANGER)) == ["not-owner"]
    assert codes(resolve_profile(MAIN, settings)) == ["unknown-key"]

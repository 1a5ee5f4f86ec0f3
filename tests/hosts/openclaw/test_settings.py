"""What the host's config says."""

from __future__ import annotations

import pytest

from tacit.hosts.openclaw import settings
from tacit.hosts.openclaw.settings import Tree


def channel(**telegram: object) -> Tree:
    return {"channels": {"telegram": telegram}}


@pytest.mark.parametrize(
    ("tree", "owners", "unsure"),
    [
        (channel(allowFrom=["tg:123"]), ("telegram:123",), ()),
        (channel(allowFrom=[123]), ("telegram:123",), ()),
        (channel(allowFrom=["telegram:123", "123"]), ("telegram:123",), ()),
        (channel(allowFrom=["1", "2"]), (), ("telegram",)),
        (channel(allowFrom=["*"]), (), ("telegram",)),
        (channel(allowFrom=["1"], dmPolicy="open"), (), ("telegram",)),
        (channel(dmPolicy="pairing"), (), ("telegram",)),
        (channel(allowFrom=["1"], enabled=False), (), ()),
        (channel(allowFrom=["1"], accounts={"work": {"allowFrom": ["2"]}}), (), ("telegram",)),
        (channel(dm={"allowFrom": ["7"]}), ("telegram:7",), ()),
        ({"channels": {"telegram": {"allowFrom": ["1"]}, "signal": {"allowFrom": ["+49", "+50"]}}},
         ("telegram:1",), ("signal",)),
        ({}, (), ()),
        ({"channels": []}, (), ()),
    ],
)  # fmt: skip
def test_the_owner_is_known_only_where_one_person_may_write(
    tree: Tree, owners: tuple[str, ...], unsure: tuple[str, ...]
) -> None:
    assert settings.owners(tree) == owners
    assert settings.channels_without_owner(tree) == unsure


@pytest.mark.parametrize(
    ("tree", "folds"),
    [
        ({**channel(allowFrom=["*"])}, True),
        ({**channel(allowFrom=["1", "2"]), "session": {"dmScope": "main"}}, True),
        ({**channel(allowFrom=["1"])}, False),
        ({**channel(allowFrom=["*"]), "session": {"dmScope": "per-channel-peer"}}, False),
        ({}, False),
    ],
)
def test_several_senders_in_one_session_are_noticed(tree: Tree, folds: bool) -> None:
    assert settings.merges_senders(tree) is folds


@pytest.mark.parametrize(
    ("text", "version", "is_too_old"),
    [
        ("OpenClaw 2026.9.6 (eb377ac)", (2026, 9, 6), False),
        ("OpenClaw 2026.10.1", (2026, 10, 1), False),
        ("2026.8.30", (2026, 8, 30), True),
        ("v24.21.0", (24, 21, 0), True),
        ("no number", (), False),
    ],
)
def test_versions_are_compared_as_numbers(text: str, version: tuple[int, ...], is_too_old: bool) -> None:
    assert settings.version_of(text) == version
    assert settings.is_too_old(version) is is_too_old


def entry(**more: object) -> Tree:
    return {
        "plugins": {
            "entries": {"tacit": {"enabled": True, "hooks": {"allowConversationAccess": True}}},
            **more,
        }
    }


@pytest.mark.parametrize(
    ("tree", "what", "todo"),
    [
        ({}, "is not enabled", "openclaw plugins enable tacit"),
        ({"plugins": {"entries": {"tacit": {"enabled": True}}}}, "may not see conversations",
         "openclaw config set plugins.entries.tacit.hooks.allowConversationAccess true"),
        (entry(enabled=False), "no plugin is loaded", "openclaw config set plugins.enabled true"),
        (entry(deny=["tacit"]), "plugins.deny names tacit", "Take it out"),
        (entry(allow=["other"]), "plugins.allow does not name tacit", "Add it"),
    ],
)  # fmt: skip
def test_what_keeps_the_plugin_from_working_is_named_with_its_remedy(
    tree: Tree, what: str, todo: str
) -> None:
    found = [one for one in settings.find_blocks(tree) if what in one.what]
    assert len(found) == 1
    assert todo in found[0].todo


def test_nothing_keeps_a_plugin_that_is_set_as_it_must_be() -> None:
    assert not list(settings.find_blocks(entry()))
    assert not list(settings.find_blocks(entry(allow=["tacit", "other"])))


def test_the_host_dreams_unless_it_is_told_not_to() -> None:
    assert settings.is_dreaming({})
    off = {"memory-core": {"config": {"dreaming": {"enabled": False}}}}
    assert not settings.is_dreaming({"plugins": {"entries": off}})
    assert not settings.is_dreaming({"plugins": {"slots": {"memory": "none"}}})

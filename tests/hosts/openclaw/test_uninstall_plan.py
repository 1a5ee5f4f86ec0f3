"""What was added to the host's config can be taken out again."""

from __future__ import annotations

import json
from typing import Any

from tacit.hosts.openclaw.settings import (
    HOOKS,
    PLUGIN_KEY,
    SettingChange,
    build_patch,
    find_changes,
    find_leftovers,
    hook_keys,
    is_unchanged,
    plugin_keys,
    settings_to_revert,
)

BEFORE = b"// mine\n{ gateway: { port: 1 }, plugins: { allow: ['other'] }, }\n"
ADDED: dict[str, Any] = {
    "gateway": {"port": 1},
    "plugins": {"allow": ["other", "tacit"], "entries": {"tacit": {"enabled": False}}},
    "meta": {"lastTouchedVersion": "2026.9.6"},
}


def test_a_config_that_differs_by_ours_alone_is_as_before() -> None:
    assert is_unchanged(BEFORE, json.dumps(ADDED).encode())


def test_a_config_that_somebody_changed_is_not() -> None:
    for changed in ({"gateway": {"port": 2}}, {"tools": {"toolSearch": False}}):
        assert not is_unchanged(BEFORE, json.dumps({**ADDED, **changed}).encode())
    assert not is_unchanged(BEFORE, json.dumps({**ADDED, "plugins": {"allow": ["tacit"]}}).encode())


def test_what_cannot_be_read_is_never_taken_for_as_before() -> None:
    assert not is_unchanged(BEFORE, b"{")
    assert not is_unchanged(b"\xff", b"{}")


def test_a_setting_besides_ours_counts_as_ours_where_the_install_made_it() -> None:
    now = {"gateway": {"port": 1}, "plugins": {"allow": ["other"]}, "hooks": {"internal": {"enabled": True}}}
    keys = find_changes({}, hook_keys("/h"))
    assert is_unchanged(BEFORE, json.dumps(now).encode(), keys)
    assert not is_unchanged(BEFORE, json.dumps(now).encode())


def test_the_patch_holds_what_is_missing_and_nothing_that_is_there() -> None:
    there = {
        "plugins": {"entries": {"tacit": {"enabled": True, "config": {"home": "/old", "deadlineMs": 9}}}}
    }
    keys = find_changes(there, plugin_keys("/h", "/py"))
    assert build_patch({key.path: key.after for key in keys}) == {
        "plugins": {
            "entries": {
                "tacit": {
                    "hooks": {"allowConversationAccess": True},
                    "config": {"home": "/h", "python": "/py"},
                }
            }
        }
    }
    shown = [line for key in keys for line in key.lines()]
    assert '- plugins.entries.tacit.config.home = "/old"' in shown
    assert '+ plugins.entries.tacit.config.home = "/h"' in shown


def test_an_install_sets_its_own_entry_and_nothing_else() -> None:
    assert {path.rpartition(".")[0] for path in plugin_keys("/h", "/p")} == {
        PLUGIN_KEY, f"{PLUGIN_KEY}.hooks", f"{PLUGIN_KEY}.config",
    }  # fmt: skip
    assert sorted(hook_keys("/h")) == sorted(
        ["hooks.internal.enabled"]
        + [f"hooks.internal.entries.{name}.{key}" for name in HOOKS for key in ("enabled", "home")]
    )


def test_a_second_look_at_what_was_set_finds_nothing_missing() -> None:
    wanted = {**plugin_keys("/h", "/py"), **hook_keys("/h")}
    assert find_changes(build_patch(wanted), wanted) == ()


def test_one_is_not_true() -> None:
    assert find_changes({"a": {"b": 1}}, {"a.b": True}) == (SettingChange("a.b", False, 1, True),)


def test_only_what_is_left_of_ours_is_named() -> None:
    assert list(find_leftovers(ADDED)) == ["plugins.entries.tacit"]
    assert list(find_leftovers({"hooks": {"internal": {"entries": {"aci-bootstrap": {}, "mine": {}}}}})) == [
        "hooks.internal.entries.aci-bootstrap"
    ]
    assert list(find_leftovers({})) == []


def test_what_the_install_changed_besides_goes_back_unless_somebody_changed_it_since() -> None:
    made = SettingChange("hooks.internal.enabled", True, None, True)
    changed = SettingChange("hooks.internal.enabled", False, False, True)
    now = {"hooks": {"internal": {"enabled": True}}}
    assert list(settings_to_revert(now, [made])) == [("hooks.internal.enabled", None)]
    assert list(settings_to_revert(now, [changed])) == [("hooks.internal.enabled", False)]
    assert list(settings_to_revert({"hooks": {"internal": {"enabled": False}}}, [made])) == []
    assert list(settings_to_revert(ADDED, find_changes({}, plugin_keys("/h", "/py")))) == []

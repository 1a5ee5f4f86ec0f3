"""The bootstrap lane: a fresh list by the rule of the session, complete, without doubles, never a broken one.

Files of the host are marked HOST, those of the workspace DISK; what the home has carries its own words.
"""

from __future__ import annotations

import copy
import json
import os
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.config import Config, parse
from tacit.context import receipts
from tacit.context.delivery import bootstrap as module
from tacit.context.delivery.bootstrap import BootstrapResult, bootstrap
from tacit.home.layout import Home
from tacit.sessions.policy import resolve_profile
from tacit.text.tokens import count
from tests.memory.homes import (
    CRON,
    FORUM,
    GROUP,
    NOW,
    OWNER,
    OWNER_DM,
    OWNERS,
    STRANGER,
    SUBAGENT,
    UNKNOWN,
    opened,
)

IDENTITY = "knowledge/identity"


def entry(name: str, content: str | None = "", folder: str = "/ws", **more: Any) -> dict[str, Any]:
    """As a host lists a file; None: it is missing."""
    told: dict[str, Any] = {"name": name, "path": f"{folder}/{name}", "missing": content is None}
    if content is not None:
        told["content"] = content or f"# {name}\n\nHOST {name}\n"
    return {**told, **more}


HOST = [
    entry("AGENTS.md"),
    entry("SOUL.md"),
    entry("IDENTITY.md"),
    entry("USER.md", personalUser=True),
    entry("BOOTSTRAP.md", None),
    entry("MEMORY.md"),
]


def config(text: str = "") -> Config:
    return parse(OWNERS + text, where="test", environ={}, trusted=True).config


class Lane:
    """The lane of one home and one workspace."""

    def __init__(self, home: Path, workspace: Path) -> None:
        self.home, self.workspace = Home(home), workspace

    def __call__(
        self,
        files: object,
        key: str = OWNER,
        settings: str = "",
        *,
        trigger: str = "",
        agent: str | None = None,
    ) -> BootstrapResult:
        loaded = config(settings)
        profile = resolve_profile(key, loaded, trigger=trigger, agent=agent)
        return bootstrap(self.home, loaded, profile, files, str(self.workspace), NOW)

    def put(self, name: str, text: str | bytes = "", *, home: bool = False) -> Path:
        file = (self.home.root / IDENTITY if home else self.workspace) / name
        data = text or f"# {name}\n\nDISK {name}\n"
        file.write_bytes(data if isinstance(data, bytes) else data.encode())
        return file


@pytest.fixture
def lane(garden: Path, tmp_path: Path) -> Lane:
    (tmp_path / "ws").mkdir()
    return Lane(garden, tmp_path / "ws")


def names(done: BootstrapResult) -> list[str]:
    return [one["name"] for one in done.files or ()]


def texts(done: BootstrapResult) -> str:
    return "\n".join(one["content"] for one in done.files or ())


def codes(done: BootstrapResult) -> dict[str, str]:
    return {one.label.removeprefix("identity:"): one.code for one in done.receipt.dropped}


def notices(done: BootstrapResult) -> list[str]:
    return [notice.code for notice in done.receipt.notices]


def whole(files: list[Any] | None) -> bool:
    """Every entry has its four fields, of the right type."""
    kinds = {"name": str, "path": str, "content": str, "missing": bool}
    return files is not None and all(
        type(one[field]) is kind for one in files for field, kind in kinds.items()
    )


# By the rule


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        (OWNER, ["SOUL.md", "USER.md", "TOOLS_COMPACT.md"]),
        (OWNER_DM, ["SOUL.md", "USER.md", "TOOLS_COMPACT.md"]),
        (STRANGER, ["SOUL.md"]),
        (GROUP, ["SOUL.md", "TOOLS_COMPACT.md"]),
        (FORUM, ["SOUL.md", "TOOLS_COMPACT.md"]),
        (SUBAGENT, ["SOUL.md"]),
        (CRON, ["SOUL.md", "HEARTBEAT.md"]),
    ],
)
def test_each_type_of_session_gets_exactly_the_files_of_its_rule_in_that_order(
    lane: Lane, key: str, wanted: list[str]
) -> None:
    done = lane(HOST, key)
    assert names(done) == wanted
    assert whole(done.files)
    assert done.changed
    assert done.receipt.rule == f"sessions.{done.receipt.session_type}"


def test_what_a_subagent_or_a_job_lacks_in_its_list_is_read_from_disk(lane: Lane) -> None:
    listed = [entry("AGENTS.md"), entry("TOOLS.md")]  # all that a host gives a subagent
    assert "SOULWORD" in texts(lane(listed, SUBAGENT))
    assert "BEATWORD" in texts(lane(listed, CRON))


def test_a_file_is_the_hosts_before_the_workspaces_before_the_homes(lane: Lane) -> None:
    lane.put("SOUL.md")
    lane.put("USER.md")
    done = lane([entry("SOUL.md")])
    assert [one["content"].split()[2] for one in done.files or ()] == ["HOST", "DISK", "valve:"]
    assert [one["path"] for one in done.files or ()] == [
        "/ws/SOUL.md",
        str(lane.workspace / "USER.md"),
        str(lane.home.root / IDENTITY / "TOOLS_COMPACT.md"),
    ]
    assert [one.source for one in done.receipt.sections] == [
        "/ws/SOUL.md",
        str(lane.workspace / "USER.md"),
        f"{IDENTITY}/TOOLS_COMPACT.md",
    ]


def test_what_the_host_lists_as_missing_or_without_content_is_read_from_disk(lane: Lane) -> None:
    odd: list[dict[str, Any]] = [
        entry("SOUL.md", None),
        {"name": "USER.md", "path": "/ws/USER.md", "missing": False},
        entry("TOOLS_COMPACT.md", "x", missing="yes"),
    ]
    done = lane(odd)
    assert all(word in texts(done) for word in ("SOULWORD", "USERWORD", "TOOLWORD"))
    assert whole(done.files)


def test_keys_of_the_host_that_we_do_not_know_stay(lane: Lane) -> None:
    user = next(one for one in lane(HOST).files or () if one["name"] == "USER.md")
    assert user == entry("USER.md", personalUser=True)


def test_a_file_that_is_nowhere_is_left_out_and_told(lane: Lane) -> None:
    (lane.home.root / IDENTITY / "TOOLS_COMPACT.md").unlink()
    done = lane(HOST)
    assert names(done) == ["SOUL.md", "USER.md"]
    assert codes(done)["TOOLS_COMPACT.md"] == "missing"


def test_a_file_of_the_home_in_which_nothing_is_written_yet_is_left_out(lane: Lane) -> None:
    lane.put("TOOLS_COMPACT.md", "---\ntype: identity\n---\n\n# Tools\n\n<!-- fill me in -->\n", home=True)
    assert codes(lane(HOST))["TOOLS_COMPACT.md"] == "empty"


def test_what_the_host_or_the_workspace_has_is_taken_as_it_is_even_if_it_says_little(lane: Lane) -> None:
    lane.put("USER.md", "# User\n")
    done = lane([entry("SOUL.md", content="# Soul\n")])
    assert [one["content"] for one in done.files or ()][:2] == ["# Soul\n", "# User\n"]


def test_the_main_session_of_an_agent_that_leads_others_gets_its_rules(lane: Lane) -> None:
    done = lane(HOST, "agent:lead:main", settings="sessions: {orchestration_agents: [lead]}\n")
    assert names(done) == ["SOUL.md", "AGENTS.md"]
    assert done.receipt.rule == "sessions.orchestration"


def test_memory_md_is_dropped_unless_the_rule_names_it(lane: Lane) -> None:
    assert codes(lane(HOST))["MEMORY.md"] == "not-in-rule"
    named = lane(HOST, settings="sessions: {main_session: {files: [SOUL.md, MEMORY.md]}}\n")
    assert names(named) == ["SOUL.md", "MEMORY.md"]


def test_heartbeat_md_stays_for_a_heartbeat_in_the_main_session(lane: Lane) -> None:
    assert "HEARTBEAT.md" not in names(lane([*HOST, entry("HEARTBEAT.md")]))
    done = lane([*HOST, entry("HEARTBEAT.md")], trigger="heartbeat")
    assert "HOST HEARTBEAT.md" in texts(done)


# Fresh


def test_neither_the_hosts_list_nor_its_entries_are_touched_or_handed_back(lane: Lane) -> None:
    listed, before = copy.deepcopy(HOST), copy.deepcopy(HOST)
    for key in (OWNER, GROUP, UNKNOWN):
        done = lane(listed, key)
        assert done.files is not listed
        for one in done.files or ():
            assert not any(one is theirs for theirs in listed)
            one["content"] = "spoilt"
        (done.files or []).clear()
        assert listed == before


def test_nothing_inside_an_entry_is_shared_with_the_host(lane: Lane) -> None:
    listed = [entry("SOUL.md", meta={"tags": ["a"]})]
    for key in (OWNER, UNKNOWN):
        done = lane(listed, key).files or []
        done[0]["meta"]["tags"].append("spoilt")
        assert listed == [entry("SOUL.md", meta={"tags": ["a"]})]


def test_an_entry_that_cannot_be_copied_is_still_answered(lane: Lane) -> None:
    lock = threading.Lock()
    done = lane([entry("SOUL.md", lock=lock)])
    assert (done.files or [{}])[0]["lock"] is lock


def test_the_answer_fed_back_in_is_the_same_answer_and_never_grows(lane: Lane) -> None:
    first = lane(HOST)
    again: BootstrapResult = first
    for _ in range(8):
        again = lane(again.files)
    assert json.dumps(again.files) == json.dumps(first.files)
    assert not again.changed


def test_the_answer_is_the_same_to_the_byte_whatever_the_order_of_the_hosts_list(lane: Lane) -> None:
    said = {json.dumps(lane(listed).files, sort_keys=True) for listed in (HOST, HOST[::-1], HOST + HOST)}
    assert len(said) == 1


def test_no_file_is_there_twice_by_name_in_any_case(lane: Lane) -> None:
    listed = [entry("SOUL.md"), entry("soul.md", "second"), entry("SOUL.md", "third", "/elsewhere")]
    done = lane(listed, settings="sessions: {main_session: {files: [SOUL.md, Soul.md, SOUL.md]}}\n")
    assert names(done) == ["SOUL.md"]
    assert texts(done) == entry("SOUL.md")["content"]
    assert [one.code for one in done.receipt.dropped] == ["duplicate", "duplicate"]


def test_no_file_is_there_twice_under_two_names(lane: Lane) -> None:
    soul = lane.put("SOUL.md")
    (lane.workspace / "USER.md").symlink_to(soul)
    listed = [entry("SOUL.md", "x", str(lane.workspace)), entry("USER.md", "x", str(lane.workspace))]
    done = lane(listed, settings="sessions: {main_session: {files: [SOUL.md, USER.md]}}\n")
    assert names(done) == ["SOUL.md"]
    assert codes(done) == {"USER.md": "duplicate"}


# Left as they are


@pytest.mark.parametrize("files", [None, "SOUL.md", {}, 7, ("SOUL.md",), {"0": HOST[0]}])
def test_what_is_no_list_is_answered_with_a_warning_of_one_line_and_no_change(
    lane: Lane, files: object
) -> None:
    for key in (OWNER, GROUP, UNKNOWN):
        done = lane(files, key)
        assert done.files is None
        assert not done.changed
        told = next(one.text for one in done.receipt.notices if one.code == "no-files")
        assert "nothing was changed" in told
        assert "\n" not in told


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ("inject: {enabled: false}\n", "disabled"),
        ("inject: {exclude_agents: [main]}\n", "excluded"),
        ("inject: {exclude_agents: [Main]}\n", "excluded"),
        ("inject: {lanes: [runtime]}\n", "lane"),
        ("sessions: {main_session: {lanes: [runtime, file]}}\n", "lane"),
    ],
)
def test_where_the_lane_is_off_the_hosts_list_stays_and_the_receipt_says_why(
    lane: Lane, settings: str, code: str
) -> None:
    listed = [*HOST, "garbage", {"filePath": "/x"}]
    done = lane(listed, settings=settings)
    assert done.files == listed
    assert done.files is not listed
    assert not done.changed
    assert code in notices(done)
    assert done.receipt.skipped == code
    assert done.receipt.tokens == done.receipt.host_tokens


def test_an_unknown_key_leaves_the_hosts_list_as_it_is_with_the_notice_of_the_rule(lane: Lane) -> None:
    done = lane(HOST, UNKNOWN)
    assert done.files == HOST
    assert not done.changed
    assert "unknown-key" in notices(done)


def test_a_failure_of_ours_leaves_the_hosts_list_as_it_is(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(module, "_choose_by_rule", broken)
    done = lane(HOST)
    assert done.files == HOST
    assert not done.changed
    assert notices(done) == ["bug"]


def test_files_are_given_also_where_they_cannot_be_counted(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_count_cached", lambda text: 1 / 0)
    done = lane(HOST)
    assert names(done) == ["SOUL.md", "USER.md", "TOOLS_COMPACT.md"]
    assert done.receipt.tokens > 0


def test_a_home_that_is_gone_still_answers(lane: Lane) -> None:
    os.rename(lane.home.root, lane.home.root.with_name("moved"))
    done = lane(HOST)
    assert names(done) == ["SOUL.md", "USER.md"]
    assert not lane.home.root.exists()


# Garbage

GARBAGE: list[Any] = [
    None,
    "SOUL.md",
    7,
    [],
    {},
    {"name": "SOUL.md"},
    {"name": "SOUL.md", "filePath": "/ws/SOUL.md", "content": "WRONG", "missing": False},
    {"name": "USER.md", "path": 7, "content": "WRONG", "missing": False},
    {"name": 7, "path": "/ws/USER.md", "content": "WRONG", "missing": False},
    {"name": " ", "path": "/ws/USER.md", "content": "WRONG"},
    {"path": "/ws/TOOLS_COMPACT.md", "content": "WRONG"},
    {"name": "TOOLS_COMPACT.md", "path": "/ws/TOOLS_COMPACT.md", "content": b"WRONG"},
    {"name": "SOUL.md", "path": "/ws/SOUL.md", "content": ["WRONG"], "missing": False},
]


def test_entries_that_are_no_files_are_dropped_with_one_notice_and_their_files_read_anew(lane: Lane) -> None:
    done = lane([*GARBAGE, *HOST[:1]])
    assert whole(done.files)
    assert "WRONG" not in texts(done)
    assert all(word in texts(done) for word in ("SOULWORD", "USERWORD", "TOOLWORD"))
    assert notices(done) == ["bad-entry"]
    assert "entry 1 is no object; entry 2 is no object" in done.receipt.notices[0].text


@pytest.mark.parametrize(
    "path", ["/ws/\0", "/ws/\ud800", "scheme://x/SOUL.md", "relative/SOUL.md", "~", "/" * 5000]
)
def test_a_path_that_no_disk_could_have_is_the_hosts_business(lane: Lane, path: str) -> None:
    done = lane([{"name": "SOUL.md", "path": path, "content": "mine", "missing": False}])
    assert (done.files or [{}])[0] == {"name": "SOUL.md", "path": path, "content": "mine", "missing": False}


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from(["SOUL.md", "USER.md", "/ws", "\0", "\ud800"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["name", "path", "content", "missing", "filePath"]), inner, max_size=5
        ),
    ),
    max_leaves=25,
)


@settings(max_examples=60)
@given(st.lists(json_values, max_size=6))
def test_whatever_a_host_lists_it_gets_whole_entries_back(
    tmp_path_factory: pytest.TempPathFactory, listed: list[Any]
) -> None:
    nowhere = tmp_path_factory.getbasetemp() / "nowhere"
    before = copy.deepcopy(listed)
    done = bootstrap(Home(nowhere), Config(), resolve_profile(OWNER, Config()), listed, str(nowhere), NOW)
    assert listed == before
    if "no-soul" in notices(done):
        assert done.files == before  # there is no file of ours, so the host's own stay
        return
    assert whole(done.files)
    assert len(set(names(done))) == len(names(done))
    assert not nowhere.exists()


# Nothing to give


def empty(lane: Lane, *kept: str) -> None:
    for file in (lane.home.root / IDENTITY).iterdir():
        if file.name not in kept:
            file.unlink()


@pytest.mark.parametrize("key", [OWNER, STRANGER, GROUP, CRON])
def test_a_session_without_a_soul_says_so(lane: Lane, key: str) -> None:
    empty(lane, "USER.md", "TOOLS_COMPACT.md", "HEARTBEAT.md")
    done = lane([entry("AGENTS.md")], key)
    assert "SOUL.md" not in names(done)
    assert notices(done) == ["no-soul"]
    assert "SOUL.md is not loaded" in done.receipt.notices[0].text
    assert notices(lane(HOST, key)) == []


def test_a_session_of_the_owner_that_would_have_no_file_keeps_the_hosts(lane: Lane) -> None:
    empty(lane)
    listed = [entry("AGENTS.md"), entry("IDENTITY.md")]
    done = lane(listed)
    assert (done.files, done.changed) == (listed, False)
    assert (notices(done), done.receipt.skipped) == (["no-soul"], "no-soul")
    assert done.receipt.tokens == done.receipt.host_tokens
    assert lane(listed, SUBAGENT).files == []  # others get what the rule gives them, and no more


def test_what_is_another_agents_does_not_come_back_with_the_hosts_list(lane: Lane) -> None:
    empty(lane)
    done = lane([entry("SOUL.md", "---\nagent: pumpkin\n---\nPUMPSOUL\n")])
    assert (done.files, notices(done)) == ([], ["no-soul"])


# Hostile files


@pytest.mark.parametrize(
    "make",
    [
        lambda lane, file: file.symlink_to(lane.home.root / "knowledge/reference/codes.md"),
        lambda lane, file: os.mkfifo(file),
        lambda lane, file: file.mkdir(),
        lambda lane, file: os.link(lane.home.root / "knowledge/reference/codes.md", file),
        lambda lane, file: file.write_bytes(b"\0\1\2SECRETWORD"),
    ],
    ids=["link", "fifo", "folder", "hard link", "binary"],
)
def test_what_is_no_plain_file_of_the_workspace_is_not_read_and_the_homes_is_taken(
    lane: Lane, make: Callable[[Lane, Path], None]
) -> None:
    make(lane, lane.workspace / "SOUL.md")
    done = lane([], GROUP)
    assert "SOULWORD" in texts(done)
    assert "SECRETWORD" not in texts(done)
    logged = receipts.last(lane.home)
    assert logged
    assert [one.code for one in logged.dropped if one.source.startswith(str(lane.workspace))] == ["unsafe"]


def test_a_link_out_of_the_home_is_not_followed(lane: Lane) -> None:
    outside = lane.workspace / "outside.md"
    outside.write_text("SECRETWORD")
    soul = lane.home.root / IDENTITY / "SOUL.md"
    soul.unlink()
    soul.symlink_to(outside)
    done = lane([])
    assert "SECRETWORD" not in texts(done)
    assert codes(done)["SOUL.md"] == "unsafe"


def test_a_large_file_is_read_up_to_two_megabytes_and_the_receipt_says_so(lane: Lane) -> None:
    lane.put("SOUL.md", "é" * 2**20 + "BEHIND")
    done = lane([], SUBAGENT)
    content = (done.files or [{}])[0]["content"]
    assert content == "é" * 2**20
    assert done.receipt.sections[0].shortened == "all after its first 2 MB"
    assert notices(done) == ["too-large"]
    lane.put("SOUL.md", "a" + "é" * 2**20 + "BEHIND")  # cut within a character
    assert (lane([], SUBAGENT).files or [{}])[0]["content"] == "a" + "é" * (2**20 - 1)


def test_bytes_that_are_no_text_in_utf_8_become_text_that_a_host_can_send_on(lane: Lane) -> None:
    lane.put("SOUL.md", b"\xef\xbb\xbfcaf\xe9\n")
    assert (lane([], SUBAGENT).files or [{}])[0]["content"] == "caf\ufffd\n"


@pytest.mark.parametrize("workspace", [None, "", "relative/ws", "/ws\0", "/nowhere/at/all", "/ws\ud800", 7])
def test_a_workspace_that_is_none_leaves_the_homes_files(lane: Lane, workspace: Any) -> None:
    loaded = config()
    done = bootstrap(lane.home, loaded, resolve_profile(OWNER, loaded), [], workspace, NOW)
    assert "SOULWORD" in texts(done)


def test_a_relative_workspace_is_not_looked_for_where_we_happen_to_stand(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane.put("SOUL.md")
    monkeypatch.chdir(lane.workspace.parent)
    loaded = config()
    done = bootstrap(lane.home, loaded, resolve_profile(OWNER, loaded), [], "ws", NOW)
    assert "SOULWORD" in texts(done)
    assert notices(done) == ["workspace"]


# Who may have it


def test_a_file_that_says_it_is_the_owners_goes_to_nobody_else_even_if_a_rule_names_it(lane: Lane) -> None:
    named = "sessions: {group_chat: {files: [SOUL.md, USER.md]}}\n"
    private = "---\naudience: owner\n---\nPRIVATE\n"
    lane.put("USER.md", private)  # and the home has one that says nothing, which must not stand in for it
    assert names(lane([], GROUP, named)) == ["SOUL.md"]
    assert names(lane([entry("USER.md", private)], GROUP, named)) == ["SOUL.md"]
    (lane.workspace / "USER.md").unlink()
    lane.put("USER.md", private, home=True)
    assert names(lane([], GROUP, named)) == ["SOUL.md"]
    assert "PRIVATE" in texts(lane([], OWNER, named))


def test_a_rule_that_names_a_file_counts_where_the_file_itself_says_nothing(lane: Lane) -> None:
    named = "sessions: {group_chat: {files: [SOUL.md, USER.md]}}\n"
    assert "USERWORD" in texts(lane([], GROUP, named))


@pytest.mark.parametrize(
    "head",
    [
        "audience: nobody",
        "audience: [owner",
        "audience: owner\n bad: [",
        "'audience': owner\n\tx",
        "Audience: [x",
    ],
)
def test_a_file_whose_head_cannot_be_read_but_speaks_of_its_audience_is_the_owners(
    lane: Lane, head: str
) -> None:
    lane.put("TOOLS_COMPACT.md", f"---\n{head}\n---\nPRIVATE\n")
    assert "PRIVATE" not in texts(lane([], GROUP))
    assert "PRIVATE" in texts(lane([], OWNER))


def test_a_head_that_cannot_be_read_and_speaks_of_nothing_hides_no_soul(lane: Lane) -> None:
    lane.put("SOUL.md", "---\n# Soul: [\n\nI begin with a rule.\n")
    assert "I begin with a rule." in texts(lane([], GROUP))


def test_a_file_of_another_agent_stays_with_that_agent(lane: Lane) -> None:
    lane.put("TOOLS_COMPACT.md", "---\nagent: [pumpkin, melon]\n---\nPUMPTOOLS\n")
    assert "PUMPTOOLS" not in texts(lane([]))
    assert "PUMPTOOLS" in texts(lane([], "agent:melon:main"))


# The receipt


def test_the_receipt_tells_each_files_tokens_and_what_the_host_would_have_loaded(lane: Lane) -> None:
    done = lane(HOST)
    receipt = done.receipt
    assert receipt.lane == "bootstrap"
    assert [section.slot for section in receipt.sections] == ["identity"] * 3
    assert [one.tokens for one in receipt.sections] == [count(one["content"]) for one in done.files or ()]
    assert receipt.tokens == sum(one.tokens for one in receipt.sections)
    assert receipt.host_tokens == sum(count(one["content"]) for one in HOST if not one["missing"])
    assert receipt.characters == len(texts(done)) - 2
    assert codes(done) == dict.fromkeys(("AGENTS.md", "IDENTITY.md", "MEMORY.md"), "not-in-rule")
    assert all(one.tokens for one in receipt.dropped)
    assert receipts.last(lane.home) == receipt


def test_a_path_that_the_host_lists_twice_counts_once_for_it(lane: Lane) -> None:
    assert lane(HOST + HOST).receipt.host_tokens == lane(HOST).receipt.host_tokens


def test_the_receipt_of_others_names_nothing_that_the_host_did_not_list(lane: Lane) -> None:
    lane.put("DIARY.md", "---\naudience: owner\n---\nPRIVATE\n", home=True)
    lane.put("PLANS.md", "---\nagent: pumpkin\n---\nPRIVATE\n")
    lane.put("ODD.md", b"\0")
    rule = "sessions: {group_chat: {files: [SOUL.md, DIARY.md, PLANS.md, ODD.md, GONE.md]}}\n"
    done = lane([entry("SOUL.md"), entry("MEMORY.md")], GROUP, rule)
    assert names(done) == ["SOUL.md"]
    assert codes(done) == {"MEMORY.md": "not-in-rule"}
    assert done.receipt.unlisted == {"hidden": 4}
    told = repr(done)
    assert not [word for word in ("DIARY", "PLANS", "ODD", "GONE", "PRIVATE") if word in told]
    logged = receipts.find_by_id(lane.home, done.receipt.id)
    assert logged
    assert sorted(one.code for one in logged.dropped) == [
        "agent",
        "audience",
        "missing",
        "not-in-rule",
        "unsafe",
    ]


def test_the_receipt_of_a_failure_tells_others_no_detail(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(f"cannot read {lane.home.root}/knowledge/identity/DIARY.md")

    monkeypatch.setattr(module, "_choose_by_rule", broken)
    assert "DIARY" not in repr(lane(HOST, GROUP).receipt)
    assert "DIARY" in repr(lane(HOST, OWNER).receipt)


def test_a_bootstrap_is_no_turn_of_the_session(garden: Path) -> None:
    """What a host loads before the first message neither begins nor goes on with a session."""
    memory = opened(garden)
    memory.turn("How do we water the tomatoes?")
    first = receipts.last(memory.home)
    assert first
    assert memory.bootstrap(OWNER, copy.deepcopy(HOST), None) is not None
    later = opened(garden, NOW + timedelta(minutes=1))
    assert later.turn("And the peppers?").receipt.session_id == first.session_id


def test_memory_bootstrap_answers_with_the_list_alone(garden: Path) -> None:
    memory = opened(garden)
    assert [one["name"] for one in memory.bootstrap(STRANGER, HOST, None) or ()] == ["SOUL.md"]
    assert memory.bootstrap(OWNER, None, None) is None
    assert memory.services.bootstrap(OWNER, HOST, None, trigger="heartbeat").receipt.lane == "bootstrap"


def test_a_host_may_keep_its_own_files_or_lose_memory_md_alone(lane: Lane) -> None:
    kept = lane(HOST, settings="inject:\n  files: host\n")
    assert (kept.files, kept.changed, kept.receipt.skipped) == (HOST, False, "files")
    lean = lane([*HOST, entry("memory.md", folder="/other")], settings="inject:\n  files: without-memory\n")
    assert names(lean) == ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "BOOTSTRAP.md"]
    assert [(one.source, one.code) for one in lean.receipt.dropped] == [
        ("/ws/MEMORY.md", "memory"),
        ("/other/memory.md", "memory"),
    ]
    assert [one.source for one in lean.receipt.sections] == [
        "/ws/AGENTS.md", "/ws/SOUL.md", "/ws/IDENTITY.md", "/ws/USER.md"]  # fmt: skip
    assert lean.receipt.tokens < (lean.receipt.host_tokens or 0)

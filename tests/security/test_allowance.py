"""What a host is sent for a session, by every operation, holds nothing that the session may not see.

Not in the text, not in the receipt, not in what is kept for the next question, not in an error. The owner of
the home asks for a lot of things first, so that there is something to leak.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import TacitError, UsageError
from tacit.memory import Memory
from tacit.operations import handlers as operations
from tacit.operations.handlers import OperationContext
from tacit.sessions.registry import SessionRegistry
from tests.memory.conftest import _lived, garden, lived
from tests.memory.homes import (
    CRON,
    FORUM,
    GROUP,
    NOTES,
    OTHER_GROUP,
    OWNER,
    OWNER_DM,
    OWNERS,
    PATIENT,
    QUESTION,
    STRANGER,
    SUBAGENT,
    UNKNOWN,
    opened,
    settle,
    write,
)
from tests.memory.test_private import MAY_SEE, hidden_from, marks

__all__ = ["_lived", "garden", "lived"]

PUMP = "agent:pumpkin:main"
QUESTIONS = (
    QUESTION,
    "What does Mira Olsen do on Tuesdays?",
    "the code of the valve in the greenhouse",
    "Do you remember what Ines said about the tomatoes?",
)
HOME_FILES = ("SOUL.md", "TOOLS_COMPACT.md")
HOST_FILES = [
    {"name": name, "path": f"/ws/{name}", "content": f"{name} of the host", "missing": False}
    for name in ("AGENTS.md", "SOUL.md", "USER.md", "MEMORY.md")
]


def served(memory: Memory) -> OperationContext:
    return OperationContext(memory, SessionRegistry(memory.services))


def owner_talks(one: OperationContext) -> None:
    for question in QUESTIONS:
        for lane in ("prompt", "runtime"):
            operations.turn(one, {"message": question, "session_key": OWNER, "lane": lane})
        operations.search(one, {"query": question, "session_key": OWNER})


def answers(one: OperationContext, key: str, **more: object) -> Iterator[str]:
    """All that a host can be sent for a session."""
    about = {"session_key": key, **more}
    for question in QUESTIONS:
        for lane in ("prompt", "runtime"):
            body = {"message": question, "lane": lane, "full": True, "wake": ["codes", "pump", "watering"]}
            yield json.dumps(operations.turn(one, {**body, **about}))
        yield json.dumps(operations.search(one, {"query": question, **about}))
        yield json.dumps(operations.ipc(one, {"action": "search", "payload": {"query": question, **about}}))
    yield json.dumps(operations.bootstrap(one, {"files": HOST_FILES, "workspace": "/nowhere", **about}))
    yield json.dumps(operations.list_receipts(one, {"limit": 100, **about}))


def leaked(told: str, key: str) -> list[str]:
    hidden = {mark for source in hidden_from(key) for mark in marks(source)}
    return sorted(mark for mark in hidden if mark in told)


@pytest.mark.parametrize("key", [key for key in MAY_SEE if key not in (OWNER, OWNER_DM, CRON)])
def test_no_operation_sends_what_a_session_may_not_see(garden: Path, key: str) -> None:
    one = served(opened(garden))
    owner_talks(one)
    assert leaked("\n".join(answers(one, key)), key) == []


def test_the_owners_of_another_agent_are_not_sent_its_neighbours_words(garden: Path) -> None:
    one = served(opened(garden))
    owner_talks(one)
    told = "\n".join(answers(one, PUMP))
    assert "PUMPWORD" in told
    assert "MAINSAID" not in told
    owners = "\n".join(answers(one, OWNER))
    assert "PUMPWORD" not in owners
    assert "PUMPTOPIC" not in owners


def test_what_is_kept_for_the_next_question_is_kept_apart(garden: Path) -> None:
    one = served(opened(garden))
    owner_talks(one)
    list(answers(one, STRANGER))
    recent = one.memory.services.turns._state.recent
    strangers = [
        (question, found)
        for question, (_, found) in recent.results._values.items()
        if question.session_type == "external_dm"  # type: ignore[attr-defined]
    ]
    assert strangers
    assert leaked(repr([found for _, found in strangers]), STRANGER) == []
    assert {question.scope.audience for question, _ in strangers} == {"anyone"}  # type: ignore[attr-defined]


# ---------------------------------------------------------------- forged


FORGED = [
    "agent:main:main ",
    " agent:main:main",
    "agent:main:main\n",
    "agent:main:main\0",
    "agent:main:mаin",  # a Cyrillic а
    "agent:main:ｍain",
    "agent:main：main",  # a full-width colon
    "agent:main:MAIN",
    "AGENT:main:main",
    "agent:main:main:main",
    "agent:main:main:direct:99",
    "agent::main",
    "agent:main:",
    "xagent:main:main",
    "agent:main:telegram:direct:7x",
    "agent:main:telegram:direct:07",
    "agent:main:telegram:direct:７",
    "agent:main:telegram:direct:٧",
    "agent:main:telegram:direct: 7",
    "agent:main:telegram:direct:7/../99",
    "agent:main:telegram:group:agent:main:main",
    "agent:main:telegram:group:-100:direct:7",
    "agent:main:telegram:channel:7",
    "agent:main:telegram:group:7",
    "agent:main:slash:7",
    "agent:main:hook:7",
    "agent:main:acp:7",
    "agent:../main:main",
    "main",
    "global",
    "unknown",
    "",
    "agent:main:telegram:direct:7:" + "x" * 10_000,
]


@pytest.mark.parametrize("key", FORGED)
def test_a_forged_key_is_never_the_owners(garden: Path, key: str) -> None:
    one = served(opened(garden))
    owner_talks(one)
    for told in answers(one, key):
        assert "COREWORD" not in told
        assert "SECRETWORD" not in told
        assert "MAINSAID" not in told
        assert "USERWORD" not in told


@pytest.mark.parametrize("sender", ["99", "telegram:99", "7 ", "*", "٧", 99, 0, ["7"], {"id": 7}, True])
def test_a_stranger_who_writes_into_the_main_session_is_given_what_anyone_is(
    garden: Path, sender: object
) -> None:
    one = served(opened(garden))
    owner_talks(one)
    assert leaked("\n".join(answers(one, OWNER, sender=sender)), STRANGER) == []


def test_a_main_session_with_several_senders_is_nobodys(garden: Path) -> None:
    settle(garden, PATIENT)  # nobody is named as the owner
    memory = opened(garden)
    assert "COREWORD" in memory.turn(QUESTION, sender="telegram:7").text
    stranger = memory.turn(QUESTION, sender="telegram:99")
    first = memory.turn(QUESTION, sender="telegram:7")
    silent = memory.turn(QUESTION)
    for compiled in (stranger, first, silent):
        assert "COREWORD" not in compiled.text
        assert "several-senders" in [notice.code for notice in compiled.receipt.notices]
    assert "COREWORD" not in opened(garden).turn(QUESTION).text  # also after a restart


@pytest.mark.parametrize("sender", [99, 0, ["7"], b"7", True])
def test_a_sender_that_is_no_text_is_not_the_owner_for_the_library_either(garden: Path, sender: Any) -> None:
    memory = opened(garden)
    told = [memory.turn(QUESTION, sender=sender).text, memory.inject(QUESTION, sender=sender).text]
    told.append(json.dumps(memory.bootstrap(OWNER, HOST_FILES, None, sender=sender)))
    assert leaked("\n".join(told), STRANGER) == []
    assert "COREWORD" not in memory.turn(QUESTION).text  # somebody else has written here
    assert "USERWORD" in memory.turn(QUESTION, sender=7).text  # type: ignore[arg-type]


def test_a_sender_that_is_a_number_is_remembered(garden: Path) -> None:
    settle(garden, PATIENT)  # nobody is named as the owner
    memory = opened(garden)
    assert "COREWORD" in memory.turn(QUESTION, sender=7).text  # type: ignore[arg-type]
    assert "COREWORD" not in memory.turn(QUESTION, sender=99).text  # type: ignore[arg-type]


def test_to_ask_in_somebodys_name_is_not_to_write_in_a_session(garden: Path) -> None:
    settle(garden, PATIENT)
    one = served(opened(garden))

    def type_for_the_first() -> str:
        return str(operations.bootstrap(one, {"sender": "telegram:7"})["session_type"])

    assert type_for_the_first() == "main_session"
    asked = {"session_key": OWNER, "sender": "telegram:99", "query": QUESTION}
    assert leaked(json.dumps(operations.search(one, asked)), STRANGER) == []
    assert leaked(json.dumps(operations.ipc(one, {"action": "search", "payload": asked})), STRANGER) == []
    assert operations.list_receipts(one, asked) == {"receipts": []}
    assert type_for_the_first() == "main_session"
    operations.message(one, {"text": "Hello", "role": "assistant", "sender": "telegram:bot"})
    assert type_for_the_first() == "main_session"
    operations.message(one, {"text": "Hello", "sender": "telegram:99"})
    assert type_for_the_first() == "external_dm"


# ---------------------------------------------------------------- what a host calls it

UNREAD = [
    {"session_key": None},
    {"session_key": 12},
    {"session_key": ["agent:main:main"]},
    {"sessionKey": None},
]


@pytest.mark.parametrize("about", UNREAD, ids=str)
def test_a_session_key_that_cannot_be_read_is_not_the_main_session(
    garden: Path, about: dict[str, Any]
) -> None:
    one = served(opened(garden))
    owner_talks(one)
    told = [json.dumps(operations.turn(one, {"message": QUESTION, "full": True, **about}))]
    told.append(json.dumps(operations.search(one, {"query": QUESTION, **about})))
    told.append(
        json.dumps(operations.ipc(one, {"action": "search", "payload": {"query": QUESTION, **about}}))
    )
    told.append(json.dumps(operations.list_receipts(one, about)))
    assert leaked("\n".join(told), UNKNOWN) == []
    assert operations.message(one, {"text": "Hello", **about})["path"]  # nothing that is said is lost


@pytest.mark.parametrize(
    "about",
    [
        {"sessionKey": STRANGER},
        {"session_key": None, "sessionKey": STRANGER},
        {"session_key": "", "sessionKey": STRANGER},
        {"sessionKey": OWNER, "senderId": "telegram:99"},
        {"sessionKey": OWNER, "senderId": 99},
        {"session_key": OWNER, "sender": "", "from": "99", "channel": "telegram"},
        {"session_key": OWNER, "from": {"id": 7}},
        {"senderId": "7", "sender": "99"},
    ],
    ids=str,
)
def test_a_session_and_its_sender_are_known_by_the_names_that_hosts_have_for_them(
    garden: Path, about: dict[str, Any]
) -> None:
    one = served(opened(garden))
    told = [json.dumps(operations.turn(one, {"prompt": QUESTION, "full": True, **about}))]
    told.append(json.dumps(operations.bootstrap(one, {"files": HOST_FILES, **about})))
    assert "TAPSWORD" in told[0]
    assert leaked("\n".join(told), STRANGER) == []


def test_the_channel_that_a_host_names_beside_the_sender_counts(garden: Path) -> None:
    settle(garden, PATIENT + "owners: ['telegram:7']\n")
    one = served(opened(garden))
    for channel, expected in (("telegram", True), ("signal", False), (None, False)):
        told = operations.turn(one, {"prompt": QUESTION, "senderId": 7, "channel": channel})
        assert ("COREWORD" in told["text"]) is expected


@pytest.mark.parametrize("name", ["sender", "senderId", "from"])
def test_an_id_that_begins_with_another_channel_is_a_strangers(garden: Path, name: str) -> None:
    settle(garden, PATIENT + "owners: ['telegram:7']\n")
    one = served(opened(garden))
    channels: list[tuple[object, bool]] = [("telegram", True), ("Telegram", True)]
    channels += [(other, False) for other in ("irc", "tele", 5, ["telegram"])]
    for channel, expected in channels:
        about = {name: "telegram:7", "channel": channel, "keeps_text": False}
        told = operations.turn(one, {"prompt": QUESTION, **about})
        assert ("COREWORD" in told["text"]) is expected, channel
        payload = {"query": QUESTION, name: "telegram:7", "limit": 20}
        asked = {"action": "search", "payload": payload, "channel": channel}
        assert ("COREWORD" in str(operations.ipc(one, asked))) is expected, channel
        host = {"senderId": "telegram:7", "channel": channel}
        told = operations.turn(one, {"host": "openclaw", "message": QUESTION, "run": host})
        assert ("COREWORD" in told["text"]) is expected, channel


@pytest.mark.parametrize(
    "who",
    [{"sender": "telegram:9"}, {"senderId": [7]}, {"trigger": "webhook"}],
    ids=lambda who: next(iter(who)),
)
def test_who_asks_counts_also_where_no_session_is_named(garden: Path, who: dict[str, object]) -> None:
    settle(garden, PATIENT + "owners: ['telegram:7']\n")
    one = served(opened(garden))
    operations.turn(one, {"message": QUESTION})
    looked = {"query": QUESTION, "limit": 20}
    note = {"path": "knowledge/memory/MEMORY.md"}
    assert "COREWORD" in str(operations.search(one, looked))
    assert "COREWORD" not in str(operations.search(one, {**looked, **who}))
    assert operations.read(one, note)["text"]
    with pytest.raises(TacitError):
        operations.read(one, {**note, **who})
    assert operations.list_receipts(one, {})["receipts"]
    assert not operations.list_receipts(one, who)["receipts"]
    with pytest.raises(UsageError, match="not for /v1/find"):
        operations.find(one, {**looked, **who})
    told = operations.remember(one, {"text": "The spare key hangs in the shed.", **who})
    assert "waits for the owner" in told["said"]


def test_a_host_that_says_neither_where_nor_who_gets_what_anyone_may_see(garden: Path) -> None:
    one = served(opened(garden))
    run = {"trigger": "user"}
    told = operations.turn(one, {"host": "openclaw", "message": QUESTION, "run": run})
    assert "COREWORD" not in told["text"]
    asked = {"host": "openclaw", "query": QUESTION, "limit": 20, "run": run}
    assert "COREWORD" not in str(operations.search(one, asked))


@pytest.mark.parametrize("identity", [99, [7], {"id": 7}, True, 7.5], ids=str)
def test_a_sender_of_openclaw_that_is_no_text_is_not_taken_for_no_sender(
    garden: Path, identity: object
) -> None:
    settle(garden, PATIENT + "owners: ['telegram:7']\n")
    one = served(opened(garden))
    run = {"senderId": identity, "channel": "telegram"}
    told = operations.turn(one, {"host": "openclaw", "message": QUESTION, "run": run, "full": True})
    assert "TAPSWORD" in told["text"]
    assert "COREWORD" not in told["text"]


def test_an_agent_that_a_host_names_has_its_own_sessions(garden: Path) -> None:
    one = served(opened(garden))
    owner_talks(one)
    told = operations.turn(one, {"message": "the pump gives water", "agentId": "pumpkin", "full": True})
    assert "PUMPTOPIC" in told["text"]
    assert "MAINSAID" not in json.dumps(told)
    of_main, of_pumpkin = (
        operations.message(one, {"text": "Hello", **about}) for about in ({}, {"agent": "pumpkin"})
    )
    assert of_main["session_id"] != of_pumpkin["session_id"]
    listed = operations.list_receipts(one, {"session_key": OWNER, "agent": "pumpkin"})["receipts"]
    assert {receipt["agent"] for receipt in listed} == {"pumpkin"}


def test_an_excluded_agent_is_left_alone_under_either_name(garden: Path) -> None:
    names = "exclude_agents: [Pumpkin]"
    settle(garden, OWNERS + f"inject: {{deadline_ms: 60000, {names}}}\ncapture: {{{names}}}\n")
    one = served(opened(garden))
    assert operations.turn(one, {"message": QUESTION})["skipped"] == ""
    assert operations.message(one, {"text": "Hello"})["session_id"]
    for about in ({"session_key": PUMP}, {"agent": "pumpkin"}, {"session_key": CRON, "agent": "pumpkin"},
                  {"session_key": PUMP, "agent": "main"}):  # fmt: skip
        assert operations.turn(one, {"message": QUESTION, **about})["skipped"] == "excluded"
        assert [n["code"] for n in operations.bootstrap(one, {"files": [], **about})["notices"]][
            -1
        ] == "excluded"
        assert operations.message(one, {"text": "Hello", **about})["session_id"] == ""


# ---------------------------------------------------------------- ways round


def test_a_receipt_is_for_the_session_that_it_is_of(garden: Path) -> None:
    one = served(opened(garden))
    owners = operations.turn(one, {"message": QUESTIONS[1], "session_key": OWNER})["receipt"]
    mine = operations.turn(one, {"message": QUESTION, "session_key": STRANGER, "wake": ["codes"]})["receipt"]
    assert "mira-olsen" in json.dumps(operations.get_receipt(one, {"id": owners}))
    assert "mira-olsen" in json.dumps(operations.get_receipt(one, {"id": owners, "session_key": OWNER}))
    assert (
        leaked(json.dumps(operations.get_receipt(one, {"id": mine, "session_key": STRANGER})), STRANGER) == []
    )
    for body in (
        {"session_key": STRANGER},
        {"session_key": GROUP},
        {"session_key": None},
        {"sessionKey": STRANGER},
        {"session_key": OWNER, "sender": "99"},
        {"session_key": OWNER, "agent": "pumpkin"},
    ):
        with pytest.raises(UsageError, match="There is no receipt"):
            operations.get_receipt(one, {"id": owners, **body})


def test_the_session_of_the_ethos_protocol_may_stand_beside_the_payload(garden: Path) -> None:
    one = served(opened(garden))
    asked = {"action": "search", "payload": {"query": "the valve SECRETWORD"}}
    assert "SECRETWORD" in json.dumps(operations.ipc(one, asked))
    for about in (
        {"session_key": STRANGER},
        {"sessionKey": STRANGER},
        {"session_key": OWNER, "sender": "99"},
    ):
        told = operations.ipc(one, {**asked, **about})
        assert told["status"] == "ok"
        assert "opens with SECRETWORD" not in json.dumps(told)
    inside = {"action": "search", "payload": {"query": "the valve", "sessionKey": STRANGER}}
    assert "SECRETWORD" not in json.dumps(operations.ipc(one, {**inside, "session_key": OWNER}))


@pytest.mark.parametrize("action", [5, None, ["search"], {}])
def test_the_ethos_protocol_answers_a_wrong_action_as_an_error(garden: Path, action: object) -> None:
    assert operations.ipc(served(opened(garden)), {"action": action})["status"] == "error"


@pytest.mark.parametrize(
    "about", [{"session_key": STRANGER}, {"sessionKey": STRANGER}, {"session_key": None}]
)
def test_a_search_with_all_filters_is_for_no_session(garden: Path, about: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="session_key"):
        operations.find(served(opened(garden)), {"query": "valve", **about})


@pytest.mark.parametrize(
    ("scope", "named"),
    [
        ({"audience": "zzz"}, "audience"),
        ({"audience": None}, "audience"),
        ({"audience": ["owner"]}, "audience"),
        ({"audience": []}, "audience"),
        ({"archived": "x"}, "archived"),
        ({"archived": 1}, "archived"),
        ({"since": "x"}, "since"),
        ({"until": 5}, "until"),
        ({"under": 5}, "under"),
        ({"conversation": []}, "conversation"),
        ({"categories": ["zzz"]}, "categories"),
        ({"categories": [[]]}, "categories"),
        ({"agents": [1]}, "agents"),
        ({"agents": "main"}, "agents"),
        ({"without": [None]}, "without"),
        ({"audiense": "anyone"}, "audiense"),
        (["owner"], "scope"),
        ("owner", "scope"),
        ([], "scope"),
    ],
    ids=str,
)
def test_a_filter_that_makes_no_sense_is_refused_by_name_and_the_index_stays(
    garden: Path, scope: object, named: str
) -> None:
    memory = opened(garden)
    before = memory.services.searcher.inode()
    with pytest.raises(UsageError, match=f"'{named}'"):
        operations.find(served(memory), {"query": "tomatoes", "scope": scope})
    assert memory.services.searcher.inode() == before
    assert memory.find("tomatoes").degraded == ()


def test_a_topic_for_all_that_subscribes_to_private_files_gives_none_of_them(garden: Path) -> None:
    head = "---\naudience: anyone\ntriggers:\n  - type: pattern\n    match: tomatoes\nactivation: auto\n"
    private = [path for path in NOTES if path not in MAY_SEE[STRANGER]]
    listed = "".join(f"  - {path}\n" for path in (*private, "../../etc/passwd", "/etc/passwd"))
    write(garden, "topics/trap.md", f"{head}subscriptions:\n{listed}---\n# Trap\n\nTRAPWORD\n")
    one = served(opened(garden))
    told = "\n".join(answers(one, STRANGER))
    assert "TRAPWORD" in told
    words = {mark for source in hidden_from(STRANGER) for mark in marks(source) if mark.isupper()}
    assert sorted(word for word in words if word in told) == []
    assert "root:" not in told


def test_a_link_from_an_open_note_does_not_bring_what_it_points_to(garden: Path) -> None:
    text = (
        "---\naudience: anyone\n---\n# Open\n\nWho waters tomatoes: see [[Mira Olsen]], [[codes]] LINKWORD\n"
    )
    write(garden, "knowledge/reference/open.md", text)
    told = "\n".join(answers(served(opened(garden)), STRANGER))
    assert "LINKWORD" in told
    assert "PERSONWORD" not in told
    assert "SECRETWORD" not in told


def test_a_symbolic_link_does_not_bring_a_private_file_to_others(garden: Path) -> None:
    os.symlink("codes.md", garden / "knowledge/reference/aaa-open.md")
    os.symlink("../reference/codes.md", garden / "knowledge/identity/TOOLS_COMPACT.md.new")
    (garden / "knowledge/identity/TOOLS_COMPACT.md").unlink()
    os.rename(
        garden / "knowledge/identity/TOOLS_COMPACT.md.new", garden / "knowledge/identity/TOOLS_COMPACT.md"
    )
    told = "\n".join(answers(served(opened(garden)), GROUP))
    assert "SECRETWORD" not in told


@pytest.mark.parametrize("key", [GROUP, STRANGER, SUBAGENT, FORUM, OTHER_GROUP, UNKNOWN])
def test_a_failure_tells_a_session_nothing_of_what_it_may_not_see(garden: Path, key: str) -> None:
    memory = opened(garden)
    one = served(memory)
    for path in ("knowledge/reference/codes.md", "knowledge/people/mira-olsen.md"):
        os.chmod(garden / path, 0)

    def broken(path: str) -> bytes:
        raise PermissionError(13, "Permission denied", str(garden / path))

    memory.services.turns.present.read = broken  # type: ignore[method-assign]
    told = "\n".join(answers(one, key))
    assert "Permission denied" not in told
    for place in HOME_FILES:  # the host is told where the files are that it loads
        told = told.replace(f"{garden}/knowledge/identity/{place}", place)
    assert str(garden) not in told
    assert leaked(told, key) == []


def test_an_error_does_not_repeat_what_was_asked_of_somebody_else(garden: Path) -> None:
    one = served(opened(garden))
    with pytest.raises(TacitError) as error:
        operations.get_receipt(one, {"id": "zzzz0000nothing"})
    assert str(garden) not in str(error.value)
    with pytest.raises(TacitError) as wrong:
        operations.turn(one, {"message": 7, "session_key": STRANGER})
    assert str(wrong.value) == "'message' must be text."


def test_a_config_cannot_give_a_group_what_is_the_owners(garden: Path) -> None:
    for line in (
        "sessions: {group_chat: {audience: owner}}",
        "sessions: {rules: [{channel: telegram, audience: owner}]}",
    ):
        settle(garden, PATIENT + OWNERS + line + "\n")
        with pytest.raises(TacitError):
            opened(garden)

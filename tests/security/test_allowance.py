"""What a host is sent for a session, by every operation, holds nothing that the session may not see.

Not in the text, not in the receipt, not in what is kept for the next question, not in an error. The owner of
the home asks for a lot of things first, so that there is something to leak.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit import api
from tacit.api import Served
from tacit.errors import TacitError
from tacit.memory import Memory
from tacit.memory.live import Conversations
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


def served(memory: Memory) -> Served:
    return Served(memory, Conversations(memory))


def owner_talks(one: Served) -> None:
    for question in QUESTIONS:
        for lane in ("prompt", "runtime"):
            api.turn(one, {"message": question, "session_key": OWNER, "lane": lane})
        api.search(one, {"query": question, "session_key": OWNER})


def answers(one: Served, key: str, **more: object) -> Iterator[str]:
    """All that a host can be sent for a session."""
    about = {"session_key": key, **more}
    for question in QUESTIONS:
        for lane in ("prompt", "runtime"):
            body = {"message": question, "lane": lane, "full": True, "wake": ["codes", "pump", "watering"]}
            yield json.dumps(api.turn(one, {**body, **about}))
        yield json.dumps(api.search(one, {"query": question, **about}))
        yield json.dumps(api.ipc(one, {"action": "search", "payload": {"query": question, **about}}))
    yield json.dumps(api.bootstrap(one, {"files": HOST_FILES, "workspace": "/nowhere", **about}))
    yield json.dumps(api.list_receipts(one, {"limit": 100, **about}))


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
    recent = one.memory.turns._compiler.recent
    strangers = [
        (question, found)
        for question, (_, found) in recent.found._values.items()
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


@pytest.mark.parametrize("sender", ["99", "telegram:99", "7 ", "*", "٧"])
def test_a_stranger_who_writes_into_the_main_session_is_given_what_anyone_is(
    garden: Path, sender: str
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


# ---------------------------------------------------------------- ways round


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

    memory.turns.present.read = broken  # type: ignore[method-assign]
    told = "\n".join(answers(one, key))
    assert "Permission denied" not in told
    for place in HOME_FILES:  # the host is told where the files are that it loads
        told = told.replace(f"{garden}/knowledge/identity/{place}", place)
    assert str(garden) not in told
    assert leaked(told, key) == []


def test_an_error_does_not_repeat_what_was_asked_of_somebody_else(garden: Path) -> None:
    one = served(opened(garden))
    with pytest.raises(TacitError) as error:
        api.one_receipt(one, {"id": "zzzz0000nothing"})
    assert str(garden) not in str(error.value)
    with pytest.raises(TacitError) as wrong:
        api.turn(one, {"message": ["a list"], "session_key": STRANGER})
    assert str(wrong.value) == "'message' must be text."


def test_a_config_cannot_give_a_group_what_is_the_owners(garden: Path) -> None:
    for line in (
        "sessions: {group_chat: {audience: owner}}",
        "sessions: {rules: [{channel: telegram, audience: owner}]}",
    ):
        settle(garden, PATIENT + OWNERS + line + "\n")
        with pytest.raises(TacitError):
            opened(garden)

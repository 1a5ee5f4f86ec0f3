"""A session id that comes with another session key opens nobody's conversation."""

from __future__ import annotations

from typing import Any

import pytest

from tacit.memory import Memory
from tacit.operations import handlers as operations
from tacit.operations.handlers import OperationContext
from tacit.sessions.registry import SessionRegistry

OWNER, GROUP = "agent:main:main", "agent:main:telegram:group:-100"
SECRET = "ZEBRAPIN"


def say(served: OperationContext, key: str, text: str) -> Any:
    return operations.message(served, {"session_key": key, "session_id": "s1", "role": "user", "text": text})


def end(served: OperationContext, key: str) -> Any:
    return operations.end_session(served, {"session_key": key, "session_id": "s1"})


def found(served: OperationContext, key: str) -> str:
    return str(operations.search(served, {"query": "zebra pin", "session_key": key})["hits"])


@pytest.mark.parametrize("first", [OWNER, GROUP])
def test_a_group_does_not_find_what_the_owner_said_under_the_same_session_id(
    memory: Memory, first: str
) -> None:
    served = OperationContext(memory, SessionRegistry(memory.services))
    said = {GROUP: "Hello group zebra pin", OWNER: f"my private zebra pin {SECRET}"}
    for key in (first, *(said.keys() - {first})):
        say(served, key, said[key])
    for key in (GROUP, OWNER):
        assert end(served, key)["path"]
    memory.commit()
    assert "Hello group" in found(served, GROUP)
    assert SECRET not in found(served, GROUP)
    assert SECRET in found(served, OWNER)
    served.live.close()


def test_nobody_ends_the_owners_session_by_its_id(memory: Memory) -> None:
    served = OperationContext(memory, SessionRegistry(memory.services))
    mine = say(served, OWNER, "the first")
    assert end(served, GROUP)["path"] is None
    assert say(served, OWNER, "the second")["number"] == 2
    assert end(served, OWNER)["path"] == mine["path"]
    assert mine["path"] not in str(end(served, GROUP)), "nor is told where it is"
    served.live.close()

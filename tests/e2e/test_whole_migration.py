"""A whole migration on the real host, and all of it taken back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import Ran, eventually
from tests.e2e.conftest import Gateway
from tests.e2e.host import GROUP, OWNER

_TOUCHED = ("SOUL.md", "AGENTS.md", "TOOLS.md", "TOOLS_COMPACT.md", "MEMORY.md")
_ANSWERS = {
    "What did we decide about local model strategy?": "[[say A large remote one only for customer letters.]]",
    "When did we run the APA shakedown": "[[say Fourteen of sixteen checks passed.]]",
    "What's Forge's role": "[[say Forge was set up on 2026-08-20.]]",
    "Spawn Melody": '[[call read {"path": "AGENTS.md"}]] [[say Melody mends bugs; she gets the repository.]]',
    "What port does Mission Control run on?": "[[say It has 3310.]]",
    "What lessons did we learn about timeout": '[[call read {"path": "MEMORY.md"}]] [[say Thirty is right.]]',
}


class Steps:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def __call__(self, *arguments: str) -> Ran:
        return self._gateway.tacit("phase", *arguments)

    def next(self, *more: str) -> str:
        ran = self("next", "--by", "Ines", "--json", *more)
        assert ran.code == 0, f"{ran.stdout}{ran.stderr}"
        return str(json.loads(ran.stdout)["phase"])

    def standing(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads(self("status", "--json").stdout)
        return read

    def verdicts(self, *more: str) -> dict[str, str]:
        found = json.loads(self("check", "--json", *more).stdout)
        print(*(f"{one['name']} {one['verdict']} {one['evidence']}" for one in found), sep="\n")
        return {one["name"]: one["verdict"] for one in found}


@pytest.fixture
def steps(gateway: Gateway) -> Iterator[Steps]:
    """With nobody who waits, and afterwards with tacit's files again."""
    config = gateway.home / "memory-config.yaml"
    before = config.read_text()
    config.write_text(
        before.replace("#soul_approvers: []", "soul_approvers: [Ines]").replace(
            "#hold_hours: 48", "hold_hours: 0"
        )
    )
    gateway.host.model.wishes.update(_ANSWERS)
    yield Steps(gateway)
    gateway.host.model.wishes.clear()
    config.write_text(before)


def test_a_migration_goes_from_the_hosts_files_to_tacits_and_back(gateway: Gateway, steps: Steps) -> None:
    host = gateway.host
    before = {name: (host.workspace / name).read_bytes() for name in _TOUCHED}

    assert steps.next() == "0a"
    assert steps.standing()["files"] == "host"
    assert steps("next").code == 1  # nobody has approved anything
    for draft in ("wisdom", "soul", "tools", "agents"):
        if draft == "soul":  # with the wisdom that was approved
            assert gateway.tacit("compress-soul").code == 0
        assert gateway.tacit("approve", draft, "--by", "Ines").code == 0
    assert {name: (host.workspace / name).read_bytes() for name in _TOUCHED} == before
    assert steps.next() == "0b"
    assert (host.workspace / "SOUL.md").read_bytes() != before["SOUL.md"]

    assert steps.next() == "1"
    assert eventually(lambda: "## What happened" not in host.write("Hello", OWNER).first.system)
    assert (
        "## Who does what" in host.write("Hello again", OWNER).first.system
    )  # everything else is still there
    assert steps("next").code == 1  # the questions were not asked
    assert steps.verdicts("--ask")["AC-3"] == "PASS"

    assert steps.next() == "2"
    assert eventually(lambda: "## Who does what" not in host.write("Hello", OWNER).first.system)
    host.write("Hello", OWNER, GROUP - 1)  # one that never had topics: to the host a forum has nothing else
    host.write('[[call sessions_spawn {"task": "Look around", "label": "look"}]]', OWNER)
    added = host.openclaw("cron", "add", "--name", "look", "--at", "20m", "--session", "isolated", "--json",
                          "--message", "Look at the beds")  # fmt: skip
    seen = len(host.model.requests)
    job = re.search(r'"id": "([^"]+)"', added.stdout)
    assert job is not None
    host.openclaw("cron", "run", job[1])
    assert eventually(lambda: any("[cron:" in one.everything for one in host.model.requests[seen:]))
    host.settle()
    found = steps.verdicts("--ask")
    assert found == {**dict.fromkeys(found, "PASS"), "AC-1b": "BLOCKED"}  # no rule names a topic

    assert steps("next").code == 1
    assert steps.next("--waive", "AC-1b", "--why", "no rule of ours names a topic") == "3"
    ran = steps("rollback", "--all", "--by", "Ines")
    assert ran.code == 0, ran.stderr
    assert {name: (host.workspace / name).read_bytes() for name in _TOUCHED} == before
    assert eventually(lambda: "## What happened" in host.write("Hello", OWNER).first.system)

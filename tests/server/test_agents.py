"""Eight agents of one home at once, through one real daemon: each gets what is its own, and all that is said
is kept once, in order, whoever was there to take it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import tacit as product
from tacit.client import Client, connect
from tacit.daemon_socket import send_request, socket_path
from tacit.home import files
from tacit.transcripts import spool
from tacit.transcripts.model import Message
from tests.client.conftest import _garden, another, garden
from tests.client.relay.conftest import Relay
from tests.conftest import eventually
from tests.memory.homes import everything, settle, write
from tests.server.served import PATIENCE, serving

__all__ = ["_garden", "another", "garden"]

AGENTS = 8
LONG = 60.0  # seconds: a slow machine must not change what a turn holds


def agent(number: int) -> str:
    return f"agent{number}x"


def canary(number: int, what: str) -> str:
    return f"CANARY{number}{what.upper()}Y"


NOTES, SAID = [f"N{one}" for one in range(12)], [f"S{one}" for one in range(12)]
ALL = {number: [canary(number, what) for what in (*NOTES, *SAID, "T")] for number in range(AGENTS)}


def furnish(home: Path) -> None:
    """For each agent twelve notes and a topic that are its own."""
    settle(home, "inject: {deadline_ms: 60000}\nowners: ['7']\n")
    for number in range(AGENTS):
        name = agent(number)
        for what in NOTES:
            text = f"# Gate {what}\n\n- The orchard gate {what} of {name} opens with {canary(number, what)}\n"
            write(home, f"knowledge/reference/{name}-{what}.md", f"---\nagent: {name}\n---\n{text}")
        write(
            home,
            f"topics/{name}.md",
            f"---\nagent: {name}\ntriggers:\n  - type: pattern\n    match: gate\nactivation: auto\n"
            f"subscriptions:\n  - knowledge/reference/{name}-N0.md\n---\n"
            f"# {name}\n\nSay the word. {canary(number, 'T')}\n",
        )


class Asking:
    """All that one agent is told, in whatever way it asks."""

    def __init__(self, home: Path, number: int) -> None:
        self.number, self.name = number, agent(number)
        self.main, self.direct = f"agent:{self.name}:main", f"agent:{self.name}:telegram:direct:7"
        self.client: Client = connect(home, warn=lambda text: None)
        self.home = home
        self.heard: list[str] = []

    def hear(self, told: object) -> None:
        self.heard.append(str(told))

    def talk(self) -> None:
        for what in SAID:
            text = f"The orchard gate {what} of {self.name} is shut with {canary(self.number, what)}"
            self.client.message("user", text, session_key=self.main, session_id=f"ses_{self.name}")
        self.client.end_session(self.main, session_id=f"ses_{self.name}")

    def ask(self, other: int) -> None:
        """About the gate of another agent, by every name that it has."""
        theirs = agent(other)
        question = f"What opens and shuts the orchard gate of {theirs}?"
        path = f"knowledge/reference/{theirs}-N1.md"
        reach: dict[str, Any] = {"paths": [path], "wake": [theirs, f"topics/{theirs}.md"], "seconds": LONG}
        self.hear(everything(self.client.turn(question, session_key=self.main, **reach)))
        self.hear(everything(self.client.inject(question, session_key=self.direct, **reach)))
        self.hear(everything(self.client.look(question, session_key=self.main, paths=[path])))
        for key in (self.main, self.direct):
            self.hear(self.client.search(question, session_key=key, limit=50))
            self.hear(self.client.bootstrap(key, [{"name": path, "path": path, "missing": False}]))
        self.hear([one for key in (self.main, self.direct) for one in self.client.receipts(50, key)])
        self.hear(self.raw("/v1/turn", message=question, session_key=self.main, agent=["wrong"]))
        self.hear(self.raw("/v1/ipc", action="search", payload={"query": question, "session_key": self.main}))

    def finds_what_it_said(self) -> bool:
        return canary(self.number, "S0") in str(
            self.client.search("orchard gate S0 shut", session_key=self.main, limit=50)
        )

    def raw(self, target: str, **body: object) -> str:
        data = json.dumps(body).encode()
        return str(send_request(socket_path(str(self.home)), "POST", target, data, PATIENCE))

    def own(self) -> set[str]:
        return {one for one in ALL[self.number] if one in "".join(self.heard)}

    def of_others(self) -> list[str]:
        said = "".join(self.heard)
        return [one for number, each in ALL.items() if number != self.number for one in each if one in said]


def together(calls: list[Callable[[], None]]) -> None:
    """All at the same moment; what one of them raises is raised."""
    gate = threading.Barrier(len(calls))

    def one(call: Callable[[], None]) -> None:
        gate.wait(PATIENCE)
        call()

    with ThreadPoolExecutor(len(calls)) as pool:
        for done in [pool.submit(one, call) for call in calls]:
            done.result(10 * PATIENCE)


def test_agents_at_once_hear_nothing_of_each_other(garden: Path) -> None:
    """200 words that are one agent's each, eight agents that ask for those of all others."""
    furnish(garden)
    assert sum(map(len, ALL.values())) == 200
    with serving(garden) as daemon:
        agents = [Asking(garden, number) for number in range(AGENTS)]
        together([one.talk for one in agents])
        for one in agents:  # what was said is in the index by now, for whoever may see it
            assert eventually(one.finds_what_it_said)
        for away in range(1, AGENTS):
            together([partial(one.ask, (one.number + away) % AGENTS) for one in agents])
        assert daemon.ask("GET", "/v1/health")["workers"]["stuck"] == 0
        for one in agents:
            one.ask(one.number)
    for one in agents:
        one.client.close()
        assert one.of_others() == []
        assert {canary(one.number, "T"), canary(one.number, "N1"), canary(one.number, "S0")} <= one.own()
    kept = [said(garden, f"ses_{one.name}") for one in agents]
    assert all(len(texts) == len(SAID) for texts in kept)
    for number, texts in enumerate(kept):
        assert [canary(number, what) in text for what, text in zip(SAID, texts, strict=True)] == [True] * 12


def said(home: Path, session_id: str) -> list[str]:
    memory = product.open(home)
    path = memory.services.conversations.find_last_part(session_id)
    assert path is not None
    return [turn.text for turn in memory.transcript(path).turns if isinstance(turn, Message)]


def test_agents_100_records_that_nobody_could_take_are_taken_in_order_and_once(garden: Path) -> None:
    """No daemon, and somebody holds the lock: each hook spools its record and the host goes on. The daemon
    that comes up takes all of them, though some come twice."""
    relay = Relay(garden)
    with serving(garden) as first:
        first.popen.kill()
        first.popen.wait()
    with files.hold_lock(garden / ".tacit/lock", 10.0):
        for number in range(100):
            event = {"text": f"Said {number}", "session_id": "ses_q", "id": f"r{number}"}
            assert relay("message", event).json == {"continue": True, "spooled": True}
            if number % 10 == 0:  # a host that was not told in time says it again
                relay("message", event)
        assert spool.count_waiting(garden) == 110
        with serving(garden) as second:
            assert eventually(lambda: spool.count_waiting(garden) == 0)
            assert second.message("At last", session_id="ses_q")["number"] == 101
    with serving(garden) as third:
        assert third.message("Said 7", session_id="ses_q", id="r7")["again"] is True
    assert said(garden, "ses_q") == [*(f"Said {number}" for number in range(100)), "At last"]
    assert spool.count_quarantined(garden) == 0
    lines = [json.loads(line) for line in (garden / ".tacit/daemon.log").read_text().splitlines()]
    assert sum(line["taken"] for line in lines if line["event"] == "drained") == 110

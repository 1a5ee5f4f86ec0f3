"""Proof that hooks fire, by two turns of the real host.

The first goes through the host as it is set up, and asks its model once: what tacit's daemon wrote down tells
which hooks fired. The second runs in a throw-away set-up of the same version, with a model of our own, and
finds out how the list of files behaves there; nothing of the owner's is touched or asked by it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tacit.errors import HostError
from tacit.memory import Memory
from tacit.model.problems import Problem
from tacit.openclaw import model, packaged, settings
from tacit.openclaw.baseline import KEYS
from tacit.openclaw.command import Command
from tacit.openclaw.find import Host
from tacit.openclaw.listing import NAMES
from tacit.openclaw.state import is_up
from tacit.store import receipts
from tacit.store.checkup import Check

KEY = KEYS[1]
_SOUL = "# Soul\n\nA probe.\n"
_ENTRY = {"name": "string", "path": "string", "content": "string", "missing": "boolean"}
_ALSO = {"personalUser"}  # a field that some entries have
_EVENT = {"type", "action", "sessionKey", "context", "timestamp", "messages"}
_CONTEXT = {"workspaceDir", "bootstrapFiles", "cfg", "sessionKey", "sessionId", "agentId", "pluginConfig"}
_SEEN = ("probe-assigned", "probe-pushed", "probe-element", "probe-turn", "probe-standing")


# ---------------------------------------------------------------- a turn of the host as it is


def turn(host: Host, memory: Memory, now: datetime) -> Check:
    if not is_up(memory.home):
        todo = "Start the gateway (openclaw gateway run), or tacit serve."
        return _failed("turn", "no daemon answers, so no hook could be seen.", todo)
    local = () if host.is_serving() else ("--local",)
    message = "This is a probe by tacit. Answer with one word."
    try:
        host.openclaw().json("agent", "--message", message, "--session-key", KEY, "--json", *local)
    except HostError as error:
        return _failed("turn", str(error), "Mend the host first: openclaw doctor")
    since = now.replace(microsecond=0)
    found = list(receipts.of_session(memory.home, KEY, since=since))
    lanes = {one.lane: one.id for one in found}
    kept = any(record.opening.session_key == KEY for record in memory.open_sessions())
    problems = tuple(_unfired(lanes, kept=kept))
    seen = ", ".join(f"{_HOOK[lane]} (receipt {lanes[lane]})" for lane in _HOOK if lane in lanes)
    return Check("turn", f"fired: {seen or 'nothing'}{'; the messages were kept' if kept else ''}", problems)


_HOOK = {"bootstrap": "agent:bootstrap", "runtime": "before_prompt_build"}


def _unfired(lanes: Mapping[str, str], *, kept: bool) -> Iterator[Problem]:
    for lane, hook in _HOOK.items():
        if lane not in lanes:
            what = f"{hook} did not reach tacit."
            yield Problem("probe", what, "See the permission and the plugin above, and the gateway's log.")
    if not kept:
        what = "What was said did not reach tacit."
        yield Problem("probe", what, "Is capture on, for this agent? See: tacit status", level="warning")


def _failed(name: str, what: str, todo: str) -> Check:
    return Check(name, "not seen", (Problem("probe", what, todo),))


# ---------------------------------------------------------------- how the list of files behaves


class Points(NamedTuple):
    """The five questions to a version of the host."""

    shape: str
    session_key: bool  # at the top of the event
    assigned: bool
    pushed: bool
    element: bool
    any_name: bool
    turn: bool  # what before_prompt_build returns reaches the model
    surprises: tuple[str, ...]


def points(command: Command, environ: Mapping[str, str]) -> Points:
    with tempfile.TemporaryDirectory(prefix="tacit-probe-") as name, model.serving() as answering:
        folder = Path(name).resolve()
        out = folder / "seen.json"
        _lay_out(folder, answering.url, out)
        plain = {name: value for name, value in environ.items() if not name.startswith("OPENCLAW_")}
        probed = Command(command.program, plain).elsewhere(
            HOME=str(folder / "home"),
            OPENCLAW_STATE_DIR=str(folder / "home/.openclaw"),
            OPENCLAW_CONFIG_PATH=str(folder / "openclaw.json"),
        )
        said = probed.run(
            "agent", "--local", "--message", "hello", "--session-key", "agent:main:probe", "--json"
        )
        if not out.is_file() or not answering.asked:
            raise HostError(f"A throw-away host made no turn ({said.code}): {said.all[-500:]}")
        return read(json.loads(out.read_bytes()), json.dumps(answering.asked[0].get("messages")))


def _lay_out(folder: Path, url: str, out: Path) -> None:
    workspace = folder / "workspace"
    for path in (workspace, folder / "home/.openclaw"):
        os.makedirs(path)
    (workspace / "SOUL.md").write_text(_SOUL)
    (workspace / "AGENTS.md").write_text("# Agents\n\nNone.\n")
    free = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    known = {"id": "probe", "name": "Probe", "reasoning": False, "input": ["text"], "cost": free,
             "contextWindow": 100_000, "maxTokens": 1000}  # fmt: skip
    provider = {"baseUrl": url, "apiKey": "none", "api": "openai-completions", "models": [known]}
    config = {
        "models": {"mode": "merge", "providers": {"probe": provider}},
        "agents": {"defaults": {"workspace": str(workspace), "model": {"primary": "probe/probe"},
                                "skipBootstrap": True, "heartbeat": {"every": "0m"}}},
        "gateway": {"mode": "local"},
        "plugins": {"load": {"paths": [str(packaged.folder("openclaw-probe"))]},
                    "entries": {"tacit-probe": {"enabled": True, "hooks": {"allowConversationAccess": True},
                                                "config": {"out": str(out)}}}},
        "logging": {"file": str(folder / "log")},
        "update": {"checkOnStart": False},
    }  # fmt: skip
    (folder / "openclaw.json").write_text(json.dumps(config))


def read(seen: Mapping[str, Any], sent: str) -> Points:
    """`seen`: what the hook was given; `sent`: what the model was sent."""
    files = [one for one in seen.get("files") or () if isinstance(one, Mapping)]
    there = [one["shape"] for one in files if "content" in one["shape"]]
    shape = ", ".join(f"{name}: {kind}" for name, kind in (there[0] if there else {}).items())
    reached = {mark: mark in sent for mark in _SEEN}
    return Points(
        shape,
        isinstance(seen.get("sessionKey"), str),
        reached["probe-assigned"],
        reached["probe-pushed"],
        reached["probe-element"],
        reached["probe-assigned"] or reached["probe-pushed"],
        reached["probe-turn"] and reached["probe-standing"],
        tuple(_surprises(seen, files, there)),
    )


def _surprises(
    seen: Mapping[str, Any], files: Sequence[Mapping[str, Any]], there: Sequence[Mapping[str, str]]
) -> Iterator[str]:
    for shape in there:
        if odd := {
            name for name in (*shape, *_ENTRY) if name not in _ALSO and shape.get(name) != _ENTRY.get(name)
        }:
            yield f"an entry's {', '.join(sorted(odd))}: {json.dumps(shape)}"
            break
    if odd := {str(one["name"]) for one in files} - set(NAMES):
        yield f"files that were not loaded before: {', '.join(sorted(odd))}"
    for what, known in (("event", _EVENT), ("context", _CONTEXT)):
        found = set(seen.get(what) or ())
        if odd := found - known:
            yield f"new in the {what}: {', '.join(sorted(odd))}"
        if odd := known - found:
            yield f"no longer in the {what}: {', '.join(sorted(odd))}"


def check(found: Points) -> Iterator[Check]:
    """The answers, and a problem where one is not what tacit needs."""
    yield Check("shape", f"an entry is {{{found.shape}}}", _needed("name: string" in found.shape, "a name"))
    at_top = _needed(found.session_key, "sessionKey at the top of the event")
    yield Check("key", f"sessionKey at the top of the event: {_yes(found.session_key)}", at_top)
    ways = f"assigned {_yes(found.assigned)}, pushed {_yes(found.pushed)}, element {_yes(found.element)}"
    yield Check("list", f"a change counts: {ways}", _needed(found.assigned, "an assigned list that counts"))
    yield Check("names", f"any name is loaded: {_yes(found.any_name)}", _needed(found.any_name, "any name"))
    yield Check("prompt", f"before_prompt_build reaches the model: {_yes(found.turn)}",
                _needed(found.turn, "text in the prompt"))  # fmt: skip
    surprises = tuple(Problem("probe", one, level="warning") for one in found.surprises)
    yield Check(
        "surprises", f"{len(surprises)} against {settings.TESTED}" if surprises else "none", surprises
    )


def _yes(held: bool) -> str:
    return "yes" if held else "no"


def _needed(held: bool, what: str) -> tuple[Problem, ...]:
    todo = f"Use OpenClaw {settings.TESTED}, or look for a newer tacit."
    return () if held else (Problem("probe", f"tacit needs {what}, and this version has not.", todo),)

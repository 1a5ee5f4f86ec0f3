"""Proves that hooks fire, with two turns of the real host.

The first runs on the host as it is configured and calls its model once: the daemon's records show which hooks
fired. The second runs in a temporary setup of the same version, with a model of tacit's own that answers one
word, and tests how the list of files behaves; it touches nothing of the owner's.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from tacit.context import receipts
from tacit.diagnostics import CheckResult, Problem
from tacit.errors import HostError
from tacit.hosts.openclaw import packaged, settings
from tacit.hosts.openclaw.baseline import OWN_SESSION_KEYS
from tacit.hosts.openclaw.bootstrap_files import NAMES
from tacit.hosts.openclaw.doctor import is_daemon_up
from tacit.hosts.openclaw.machine import Command, OpenClawHost
from tacit.memory import Memory

_ANSWER = "ok"


class ProbeModel(NamedTuple):
    url: str
    asked: list[dict[str, Any]]  # bodies of the requests, in the form of OpenAI's chat completions


@contextmanager
def serve_model() -> Iterator[ProbeModel]:
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *shown: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer(json.dumps({"object": "list", "data": [{"id": "probe", "object": "model"}]}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
            requests.append(body)
            self._answer(*_render_completion(bool(body.get("stream"))))

        def _answer(self, text: str, kind: str = "application/json") -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            with suppress(OSError):  # the client has disconnected
                self.wfile.write(text.encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield ProbeModel(f"http://127.0.0.1:{server.server_port}/v1", requests)
    finally:
        server.shutdown()
        server.server_close()


def _render_completion(stream: bool) -> tuple[str, str]:
    head = {"id": "probe", "created": 0, "model": "probe"}
    message = {"role": "assistant", "content": _ANSWER}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if not stream:
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return json.dumps(whole), "application/json"
    chunk = {**head, "object": "chat.completion.chunk"}
    parts = (
        {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage},
    )
    lines = [f"data: {json.dumps(part)}\n\n" for part in parts]
    return "".join((*lines, "data: [DONE]\n\n")), "text/event-stream"


PROBE_SESSION_KEY = OWN_SESSION_KEYS[1]
_SOUL = "# Soul\n\nA probe.\n"
_ENTRY_FIELDS = {"name": "string", "path": "string", "content": "string", "missing": "boolean"}
_OPTIONAL_FIELDS = {"personalUser"}  # fields that only some entries have
_EVENT_FIELDS = {"type", "action", "sessionKey", "context", "timestamp", "messages"}
_CONTEXT_FIELDS = {
    "workspaceDir",
    "bootstrapFiles",
    "cfg",
    "sessionKey",
    "sessionId",
    "agentId",
    "pluginConfig",
}
_MARKERS = ("probe-assigned", "probe-pushed", "probe-element", "probe-turn", "probe-standing")


# ---------------------------------------------------------------- a turn of the host as it is


def run_turn(host: OpenClawHost, memory: Memory, now: datetime) -> CheckResult:
    if not is_daemon_up(memory.home):
        todo = "Start the gateway (openclaw gateway run), or tacit serve."
        return _failed_check("turn", "no daemon answers, so no hook could be seen.", todo)
    local = () if host.is_serving() else ("--local",)
    message = "This is a probe by tacit. Answer with one word."
    try:
        host.openclaw().json(
            "agent", "--message", message, "--session-key", PROBE_SESSION_KEY, "--json", *local
        )
    except HostError as error:
        return _failed_check("turn", str(error), "Mend the host first: openclaw doctor")
    since = now.replace(microsecond=0)
    session_receipts = list(receipts.read_receipts(memory.home, PROBE_SESSION_KEY, since=since))
    lanes = {receipt.lane: receipt.id for receipt in session_receipts}
    was_captured = any(
        record.opening.session_key == PROBE_SESSION_KEY
        for record in memory.services.conversations.list_open()
    )
    problems = tuple(_find_missing_hooks(lanes, was_captured=was_captured))
    fired = ", ".join(f"{_LANE_HOOKS[lane]} (receipt {lanes[lane]})" for lane in _LANE_HOOKS if lane in lanes)
    return CheckResult(
        "turn", f"fired: {fired or 'nothing'}{'; the messages were kept' if was_captured else ''}", problems
    )


_LANE_HOOKS = {"bootstrap": "agent:bootstrap", "runtime": "before_prompt_build"}


def _find_missing_hooks(lanes: Mapping[str, str], *, was_captured: bool) -> Iterator[Problem]:
    for lane, hook in _LANE_HOOKS.items():
        if lane not in lanes:
            message = f"{hook} did not reach tacit."
            yield Problem("probe", message, "See the permission and the plugin above, and the gateway's log.")
    if not was_captured:
        message = "What was said did not reach tacit."
        yield Problem("probe", message, "Is capture on, for this agent? See: tacit status", level="warning")


def _failed_check(name: str, message: str, todo: str) -> CheckResult:
    return CheckResult(name, "not seen", (Problem("probe", message, todo),))


# ---------------------------------------------------------------- how the list of files behaves


class ProbeResult(NamedTuple):
    """What a version of the host does with the list of files."""

    shape: str
    session_key: bool  # at the top of the event
    assigned: bool
    pushed: bool
    element: bool
    any_name: bool
    turn: bool  # the result of before_prompt_build reaches the model
    surprises: tuple[str, ...]


def observe_file_list(command: Command, environ: Mapping[str, str]) -> ProbeResult:
    with tempfile.TemporaryDirectory(prefix="tacit-probe-") as name, serve_model() as model:
        folder = Path(name).resolve()
        out = folder / "seen.json"
        _write_setup(folder, model.url, out)
        plain = {name: value for name, value in environ.items() if not name.startswith("OPENCLAW_")}
        probed = Command(command.program, plain).elsewhere(
            HOME=str(folder / "home"),
            OPENCLAW_STATE_DIR=str(folder / "home/.openclaw"),
            OPENCLAW_CONFIG_PATH=str(folder / "openclaw.json"),
        )
        output = probed.run(
            "agent", "--local", "--message", "hello", "--session-key", "agent:main:probe", "--json"
        )
        if not out.is_file() or not model.asked:
            raise HostError(f"A throw-away host made no turn ({output.code}): {output.all[-500:]}")
        return parse_result(json.loads(out.read_bytes()), json.dumps(model.asked[0].get("messages")))


def _write_setup(folder: Path, url: str, out: Path) -> None:
    workspace = folder / "workspace"
    for path in (workspace, folder / "home/.openclaw"):
        os.makedirs(path)
    (workspace / "SOUL.md").write_text(_SOUL)
    (workspace / "AGENTS.md").write_text("# Agents\n\nNone.\n")
    no_cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    model = {"id": "probe", "name": "Probe", "reasoning": False, "input": ["text"], "cost": no_cost,
             "contextWindow": 100_000, "maxTokens": 1000}  # fmt: skip
    provider = {"baseUrl": url, "apiKey": "none", "api": "openai-completions", "models": [model]}
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


def parse_result(seen: Mapping[str, Any], sent: str) -> ProbeResult:
    """`seen`: what the hook received; `sent`: what the model received."""
    files = [file for file in seen.get("files") or () if isinstance(file, Mapping)]
    shapes = [file["shape"] for file in files if "content" in file["shape"]]
    shape = ", ".join(f"{name}: {kind}" for name, kind in (shapes[0] if shapes else {}).items())
    reached = {mark: mark in sent for mark in _MARKERS}
    return ProbeResult(
        shape,
        isinstance(seen.get("sessionKey"), str),
        reached["probe-assigned"],
        reached["probe-pushed"],
        reached["probe-element"],
        reached["probe-assigned"] or reached["probe-pushed"],
        reached["probe-turn"] and reached["probe-standing"],
        tuple(_find_surprises(seen, files, shapes)),
    )


def _find_surprises(
    record: Mapping[str, Any], files: Sequence[Mapping[str, Any]], shapes: Sequence[Mapping[str, str]]
) -> Iterator[str]:
    for shape in shapes:
        if unexpected := {
            name
            for name in (*shape, *_ENTRY_FIELDS)
            if name not in _OPTIONAL_FIELDS and shape.get(name) != _ENTRY_FIELDS.get(name)
        }:
            yield f"an entry's {', '.join(sorted(unexpected))}: {json.dumps(shape)}"
            break
    if unexpected := {str(file["name"]) for file in files} - set(NAMES):
        yield f"files that were not loaded before: {', '.join(sorted(unexpected))}"
    for part, expected in (("event", _EVENT_FIELDS), ("context", _CONTEXT_FIELDS)):
        names = set(record.get(part) or ())
        if unexpected := names - expected:
            yield f"new in the {part}: {', '.join(sorted(unexpected))}"
        if unexpected := expected - names:
            yield f"no longer in the {part}: {', '.join(sorted(unexpected))}"


def check_result(found: ProbeResult) -> Iterator[CheckResult]:
    """The results, with a problem for each that tacit cannot work with."""
    yield CheckResult(
        "shape", f"an entry is {{{found.shape}}}", _require("name: string" in found.shape, "a name")
    )
    key_problems = _require(found.session_key, "sessionKey at the top of the event")
    yield CheckResult(
        "key", f"sessionKey at the top of the event: {_yes_or_no(found.session_key)}", key_problems
    )
    changes = (
        f"assigned {_yes_or_no(found.assigned)}, pushed {_yes_or_no(found.pushed)}, "
        f"element {_yes_or_no(found.element)}"
    )
    yield CheckResult(
        "list", f"a change counts: {changes}", _require(found.assigned, "an assigned list that counts")
    )
    yield CheckResult(
        "names", f"any name is loaded: {_yes_or_no(found.any_name)}", _require(found.any_name, "any name")
    )
    yield CheckResult("prompt", f"before_prompt_build reaches the model: {_yes_or_no(found.turn)}",
                _require(found.turn, "text in the prompt"))  # fmt: skip
    surprises = tuple(Problem("probe", surprise, level="warning") for surprise in found.surprises)
    yield CheckResult(
        "surprises", f"{len(surprises)} against {settings.TESTED_VERSION}" if surprises else "none", surprises
    )


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def _require(is_met: bool, need: str) -> tuple[Problem, ...]:
    todo = f"Use OpenClaw {settings.TESTED_VERSION}, or look for a newer tacit."
    return () if is_met else (Problem("probe", f"tacit needs {need}, and this version has not.", todo),)

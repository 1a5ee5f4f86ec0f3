"""One real OpenClaw gateway with a home, a workspace, a model and a messenger of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.npm import Installed
from tests.e2e.servers import Model, Request, Telegram

QUIET = 2.0  # seconds after which a host that was busy with itself has finished
PATIENCE = 120.0  # seconds for what takes a second or two on a machine at rest
Json = dict[str, Any]
OWNER, STRANGER, GROUP = 111, 222, -100123


@dataclass(slots=True)
class Turn:
    """What one message led to."""

    reply: str
    requests: list[Request]
    seconds: float
    report: Json = field(default_factory=dict)  # the host's own account of its system prompt

    @property
    def first(self) -> Request:
        return self.requests[0]

    @property
    def files(self) -> list[str]:
        """Workspace files in the prompt, by name."""
        found = self.report.get("injectedWorkspaceFiles") or []
        return [one["name"] for one in found if not one.get("missing")]


class Host:
    def __init__(self, installed: Installed, folder: Path) -> None:
        self.installed, self.folder = installed, folder
        self.workspace = folder / "workspace"
        self.state = folder / "home" / ".openclaw"
        self.config = folder / "openclaw.json"
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.state.mkdir(parents=True, exist_ok=True)
        self.model, self.telegram = Model(), Telegram()
        self.port = _free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("OPENCLAW_")},
            "PATH": f"{installed.path}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder / "home"),
            "OPENCLAW_STATE_DIR": str(self.state),
            "OPENCLAW_CONFIG_PATH": str(self.config),
            "NO_COLOR": "1",
        }

    def write_config(self, **more: Any) -> None:
        free = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
        model = {"id": "model", "name": "Model", "reasoning": False, "input": ["text"], "cost": free}
        model |= {"contextWindow": 200_000, "maxTokens": 4096}
        provider = {"baseUrl": self.model.url, "apiKey": "none", "api": "openai-completions"}
        telegram = {"enabled": True, "botToken": "4242:none", "apiRoot": self.telegram.url}
        telegram |= {"dmPolicy": "open", "allowFrom": ["*"], "groupPolicy": "open"}
        telegram |= {"groups": {"*": {"requireMention": False}}}
        config = {
            "models": {"mode": "merge", "providers": {"local": {**provider, "models": [model]}}},
            "agents": {"defaults": {"workspace": str(self.workspace), "model": {"primary": "local/model"},
                                    "skipBootstrap": True, "heartbeat": {"every": "0m"}}},
            "gateway": {"mode": "local", "port": self.port, "bind": "loopback",
                        "auth": {"mode": "token", "token": "token"}},
            "session": {"dmScope": "per-channel-peer"},
            "channels": {"telegram": telegram},
            "hooks": {"enabled": True, "token": "hook", "path": "/hooks"},
            "logging": {"file": str(self.folder / "openclaw.log")},
            "update": {"checkOnStart": False},
            "tools": {"toolSearch": False},
        }  # fmt: skip
        self.config.write_text(json.dumps({**config, **more}, indent=2) + "\n")

    # ------------------------------------------------------------ life

    def start(self) -> None:
        log = self.folder / "gateway.log"
        with open(log, "wb") as out:
            command = ["openclaw", "gateway", "run", "--port", str(self.port)]
            self.process = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, env=self.environ, start_new_session=True
            )
        until = time.monotonic() + PATIENCE
        while "[gateway] ready" not in re.sub(r"\x1b\[\d+m", "", log.read_text(errors="replace")):
            assert self.process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < until, log.read_text()[-3000:]
            time.sleep(0.1)

    def stop(self) -> None:
        process, self.process = self.process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)

    @property
    def log(self) -> str:
        return (self.folder / "gateway.log").read_text(errors="replace")

    @contextmanager
    def running(self) -> Iterator[Host]:
        self.start()
        try:
            yield self
        finally:
            self.stop()

    # ------------------------------------------------------------ asking

    def openclaw(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["openclaw", *arguments], env=self.environ, capture_output=True, text=True, timeout=PATIENCE
        )
        assert not check or done.returncode == 0, f"openclaw {arguments}: {done.stdout}{done.stderr}"
        return done

    def agent(self, message: str, key: str = "agent:main:main", *more: str) -> Turn:
        """A turn by the host's own command line."""
        before, began = len(self.model.requests), time.monotonic()
        done = self.openclaw("agent", "--message", message, "--session-key", key, "--json", *more)
        said = _json_in(done.stdout)
        result = said.get("result", said)
        reply = "\n".join(str(one.get("text")) for one in result.get("payloads", []))
        report = (result.get("meta") or {}).get("systemPromptReport") or {}
        return Turn(reply, self.model.requests[before:], time.monotonic() - began, report)

    def write(self, text: str, sender: int = OWNER, chat: int | None = None, topic: int = 0) -> Turn:
        """A turn by the messenger. A command is answered by the host itself, everything else by the model."""
        before, since, began = len(self.model.requests), len(self.telegram.sent), time.monotonic()
        said = len(self.model.answers)
        self.telegram.write(text, sender, chat, topic)
        is_command = text.startswith("/")
        sent = self.telegram.wait_for(
            lambda: () if is_command else self.model.answers[said:] or ("-",), since, chat or sender, PATIENCE
        )
        assert sent is not None, f"no reply to {text!r}: {self.log[-2000:]}"
        return Turn(str(sent.get("text")), self.model.requests[before:], float(sent["at"]) - began)

    def settle(self) -> None:
        """Until nothing has been asked of the model for a while: a subagent that is done tells its parent,
        and the host refuses a message that comes in the middle of that."""
        seen, since = len(self.model.requests), time.monotonic()
        until = since + PATIENCE
        while time.monotonic() < min(since + QUIET, until):
            time.sleep(0.1)
            if len(self.model.requests) != seen:
                seen, since = len(self.model.requests), time.monotonic()

    def report(self, key: str) -> Json:
        """The host's own account of the last system prompt of a session."""
        asked = json.dumps({"includeContextWeight": True, "key": key})
        said = self.openclaw("gateway", "call", "sessions.usage", "--params", asked, "--json").stdout
        sessions = _json_in(said).get("sessions") or [{}]
        found: Json = sessions[0].get("contextWeight") or {}
        return found


def _json_in(text: str) -> Json:
    read: Json = json.loads(text[text.index("{") :])
    return read


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def files_of(report: Mapping[str, Any]) -> list[str]:
    return [one["name"] for one in report.get("injectedWorkspaceFiles") or [] if not one.get("missing")]

"""Where the host is on this machine: its command, its config, its state, its workspaces."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.errors import HostError
from tacit.openclaw import settings
from tacit.openclaw.command import Command
from tacit.text import json5

_CONFIG = "openclaw.json"
_INCLUDE = "$include"
_DEEPEST = 10  # files that include each other


@dataclass(frozen=True, slots=True)
class Host:
    config: Path
    state: Path
    command: Command | None  # None: it is not on PATH
    tree: Mapping[str, Any]  # what the config says, with what it includes
    data: bytes | None  # of the config itself; None: there is none yet

    @property
    def is_plain(self) -> bool:
        """Whether the config has no comments that the host would take out."""
        return self.data is None or json5.is_plain(self.data.decode("utf-8", "replace"))

    @property
    def plugin(self) -> Path:
        return self.state / "extensions" / settings.ID

    @property
    def hooks(self) -> Path:
        return self.state / "hooks"

    def openclaw(self) -> Command:
        if self.command is None:
            raise HostError("There is no `openclaw` on PATH. Name it with --openclaw PATH.")
        return self.command

    def is_serving(self) -> bool:
        """Whether somebody listens where the gateway does."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", settings.gateway_port(self.tree)), 1):
            return True
        return False


def find(environ: Mapping[str, str], program: str | None = None) -> Host:
    """As the host itself looks for its files."""
    base = _base(environ)
    state = Path(_set(environ, "OPENCLAW_STATE_DIR") or base / f".openclaw{_profile(environ)}").expanduser()
    config = Path(_set(environ, "OPENCLAW_CONFIG_PATH") or state / _CONFIG).expanduser()
    found = shutil.which(program or "openclaw", path=environ.get("PATH"))
    if program and found is None:
        raise HostError(f"{program} is no command that can be run. Name OpenClaw's with --openclaw PATH.")
    data = config.read_bytes() if config.is_file() else None
    if data is None and found is None:
        raise HostError(
            f"There is no OpenClaw here: neither {config} nor a command `openclaw` on PATH. "
            "Install it first, or say where it is with OPENCLAW_CONFIG_PATH and --openclaw."
        )
    command = Command(found, environ) if found else None
    return Host(config, state, command, _read(config, environ, _DEEPEST) if data else {}, data)


def again(host: Host, environ: Mapping[str, str]) -> Host:
    """The same host after something changed."""
    return find(environ, host.command.program if host.command else None)


def _base(environ: Mapping[str, str]) -> Path:
    return Path(_set(environ, "OPENCLAW_HOME") or environ.get("HOME") or "~").expanduser()


def _profile(environ: Mapping[str, str]) -> str:
    name = _set(environ, "OPENCLAW_PROFILE")
    return f"-{name}" if name and name != "default" else ""


def _set(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "").strip()
    return "" if value in ("undefined", "null") else value


# ---------------------------------------------------------------- the config


def _read(file: Path, environ: Mapping[str, str], depth: int) -> Mapping[str, Any]:
    try:
        tree = json5.parse(file.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise HostError(f"{file} cannot be read: {error}. Mend it, then run: openclaw doctor") from None
    if not isinstance(tree, dict):
        raise HostError(f"{file} holds no settings. Mend it, then run: openclaw doctor")
    included: dict[str, Any] = _included(tree, file.parent, environ, depth)
    return included


def _included(value: Any, folder: Path, environ: Mapping[str, str], depth: int) -> Any:
    """What other files add; what stands here counts more."""
    if isinstance(value, list):
        return [_included(one, folder, environ, depth) for one in value]
    if not isinstance(value, dict):
        return _expanded(value, environ) if isinstance(value, str) else value
    own = {name: _included(one, folder, environ, depth) for name, one in value.items() if name != _INCLUDE}
    named = value.get(_INCLUDE)
    if named is None or depth == 0:
        return own
    merged: dict[str, Any] = {}
    for name in [named] if isinstance(named, str) else named:
        merged = _merged(merged, _read(folder / str(name), environ, depth - 1))
    return _merged(merged, own)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        name: _merged(below[name], value)
        if isinstance(value, Mapping) and isinstance(below.get(name), Mapping)
        else value
        for name, value in above.items()
    }
    return {**below, **both}


def _expanded(text: str, environ: Mapping[str, str]) -> str:
    """`${NAME}` as the host reads it."""
    if "${" not in text:
        return text
    for name, value in environ.items():
        text = text.replace(f"${{{name}}}", value)
    return text


# ---------------------------------------------------------------- agents


def workspaces(host: Host) -> dict[str, Path]:
    """Agent → its workspace, the default agent first. Asked of the host; else read in its config."""
    if host.command is not None:
        with suppress(HostError):
            agents = host.command.json("agents", "list", "--json")
            listed = sorted(agents, key=lambda agent: not agent.get("isDefault"))
            return {str(one["id"]): Path(one["workspace"]) for one in listed if one.get("workspace")}
    named = settings.workspace(host.tree)
    return {"main": Path(named).expanduser() if named else host.state / "workspace"}

"""OpenClaw on this machine: where its files are, how it is configured, and its own command.

Only this module runs the host's command. The command may print banners and warnings first, so JSON is read
from its first bracket on.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tacit.errors import HostError
from tacit.hosts.openclaw import json5, settings

COMMAND_TIMEOUT_S = 300.0  # seconds: on a busy machine an install takes one minute
_MAX_ERROR_CHARS = 600  # of the output


class CommandOutput(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return "\n".join(part for part in (self.out.strip(), self.err.strip()) if part)


class Command:
    def __init__(self, program: str, environ: Mapping[str, str]) -> None:
        self.program = program
        # A service or a test may put the command and Node together outside of PATH.
        path = f"{environ.get('PATH', os.defpath)}{os.pathsep}{Path(program).parent}"
        self._environ = {**environ, "PATH": path, "NO_COLOR": "1"}

    def run(self, *arguments: str, given: str = "", seconds: float = COMMAND_TIMEOUT_S) -> CommandOutput:
        return run([self.program, *arguments], self._environ, given=given, seconds=seconds)

    def require(self, *arguments: str, given: str = "", seconds: float = COMMAND_TIMEOUT_S) -> CommandOutput:
        output = self.run(*arguments, given=given, seconds=seconds)
        if output.code:
            raise HostError(
                f"`openclaw {' '.join(arguments)}` failed ({output.code}): {output.all[-_MAX_ERROR_CHARS:]}"
            )
        return output

    def json(self, *arguments: str, seconds: float = COMMAND_TIMEOUT_S) -> Any:
        return extract_json(self.require(*arguments, seconds=seconds).out, " ".join(arguments))

    def version(self) -> str:
        return self.require("--version", seconds=60).out.strip()

    def node(self) -> str:
        """The version of Node; empty if it is not on PATH."""
        try:
            output = run(["node", "--version"], self._environ, seconds=60)
        except HostError:
            return ""
        return output.out.strip() if output.code == 0 else ""

    def elsewhere(self, **environ: str) -> Command:
        """The same command with other environment variables."""
        return Command(self.program, {**self._environ, **environ})


def run(
    command: list[str], environ: Mapping[str, str], *, given: str = "", seconds: float = COMMAND_TIMEOUT_S
) -> CommandOutput:
    try:
        process = subprocess.run(
            command,
            env=dict(environ),
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HostError(f"`{' '.join(command)}` did not end within {seconds:.0f} seconds.") from None
    except OSError as error:
        raise HostError(f"{command[0]} cannot be run: {error.strerror or error}.") from error
    return CommandOutput(process.returncode, process.stdout, process.stderr)


def extract_json(text: str, what: str) -> Any:
    starts = [index for index in (text.find("{"), text.find("[")) if index >= 0]
    for start in sorted(starts):
        try:
            return json.JSONDecoder().raw_decode(text, start)[0]
        except ValueError:
            continue
    raise HostError(f"`openclaw {what}` answered with no JSON: {text[:200]!r}. Is this version supported?")


# ---------------------------------------------------------------- finding it

_CONFIG = "openclaw.json"
_INCLUDE = "$include"
_MAX_INCLUDE_DEPTH = 10  # levels of nested includes


@dataclass(frozen=True, slots=True)
class OpenClawHost:
    config: Path
    state: Path
    command: Command | None  # None: it is not on PATH
    tree: Mapping[str, Any]  # the config with its includes
    data: bytes | None  # bytes of the config; None: there is none yet

    @property
    def is_plain(self) -> bool:
        """Whether the config has no comments, which the host would remove."""
        return self.data is None or json5.is_plain(self.data.decode("utf-8", "replace"))

    @property
    def plugin(self) -> Path:
        return self.state / "extensions" / settings.PLUGIN_ID

    @property
    def hooks(self) -> Path:
        return self.state / "hooks"

    def openclaw(self) -> Command:
        if self.command is None:
            raise HostError("There is no `openclaw` on PATH. Name it with --openclaw PATH.")
        return self.command

    def is_serving(self) -> bool:
        """Whether something listens on the gateway's port."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", settings.gateway_port(self.tree)), 1):
            return True
        return False


def find_host(environ: Mapping[str, str], program: str | None = None) -> OpenClawHost:
    """Looks for files in the same places as the host itself."""
    base = _base_folder(environ)
    state = Path(
        _read_variable(environ, "OPENCLAW_STATE_DIR") or base / f".openclaw{_profile_suffix(environ)}"
    ).expanduser()
    config = Path(_read_variable(environ, "OPENCLAW_CONFIG_PATH") or state / _CONFIG).expanduser()
    program_path = shutil.which(program or "openclaw", path=environ.get("PATH"))
    if program and program_path is None:
        raise HostError(f"{program} is no command that can be run. Name OpenClaw's with --openclaw PATH.")
    data = config.read_bytes() if config.is_file() else None
    if data is None and program_path is None:
        raise HostError(
            f"There is no OpenClaw here: neither {config} nor a command `openclaw` on PATH. "
            "Install it first, or say where it is with OPENCLAW_CONFIG_PATH and --openclaw."
        )
    command = Command(program_path, environ) if program_path else None
    return OpenClawHost(
        config, state, command, _read_config(config, environ, _MAX_INCLUDE_DEPTH) if data else {}, data
    )


def reload_host(host: OpenClawHost, environ: Mapping[str, str]) -> OpenClawHost:
    """The same host, read again after a change."""
    return find_host(environ, host.command.program if host.command else None)


def _base_folder(environ: Mapping[str, str]) -> Path:
    return Path(_read_variable(environ, "OPENCLAW_HOME") or environ.get("HOME") or "~").expanduser()


def _profile_suffix(environ: Mapping[str, str]) -> str:
    name = _read_variable(environ, "OPENCLAW_PROFILE")
    return f"-{name}" if name and name != "default" else ""


def _read_variable(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "").strip()
    return "" if value in ("undefined", "null") else value


# ---------------------------------------------------------------- the config


def _read_config(file: Path, environ: Mapping[str, str], depth: int) -> Mapping[str, Any]:
    try:
        tree = json5.parse(file.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise HostError(f"{file} cannot be read: {error}. Mend it, then run: openclaw doctor") from None
    if not isinstance(tree, dict):
        raise HostError(f"{file} holds no settings. Mend it, then run: openclaw doctor")
    resolved: dict[str, Any] = _resolve_includes(tree, file.parent, environ, depth)
    return resolved


def _resolve_includes(value: Any, folder: Path, environ: Mapping[str, str], depth: int) -> Any:
    """Adds included files; settings of the including file win."""
    if isinstance(value, list):
        return [_resolve_includes(item, folder, environ, depth) for item in value]
    if not isinstance(value, dict):
        return _expand_variables(value, environ) if isinstance(value, str) else value
    own_settings = {
        name: _resolve_includes(item, folder, environ, depth)
        for name, item in value.items()
        if name != _INCLUDE
    }
    include = value.get(_INCLUDE)
    if include is None or depth == 0:
        return own_settings
    merged: dict[str, Any] = {}
    for name in [include] if isinstance(include, str) else include:
        merged = _merge(merged, _read_config(folder / str(name), environ, depth - 1))
    return _merge(merged, own_settings)


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = {
        name: _merge(below[name], value)
        if isinstance(value, Mapping) and isinstance(below.get(name), Mapping)
        else value
        for name, value in above.items()
    }
    return {**below, **merged}


def _expand_variables(text: str, environ: Mapping[str, str]) -> str:
    """Replaces `${NAME}` as the host does."""
    if "${" not in text:
        return text
    for name, value in environ.items():
        text = text.replace(f"${{{name}}}", value)
    return text


# ---------------------------------------------------------------- agents


def find_workspaces(host: OpenClawHost) -> dict[str, Path]:
    """Each agent's workspace, the default agent first. Asks the host, or else reads its config."""
    if host.command is not None:
        with suppress(HostError):
            agents = host.command.json("agents", "list", "--json")
            ordered = sorted(agents, key=lambda agent: not agent.get("isDefault"))
            return {str(agent["id"]): Path(agent["workspace"]) for agent in ordered if agent.get("workspace")}
    folder = settings.workspace(host.tree)
    return {"main": Path(folder).expanduser() if folder else host.state / "workspace"}

"""Looks at a home and its host, by their files and one question to the daemon, and says what is missing.

Changes nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tacit.config import Config
from tacit.context import receipts
from tacit.context.model import Receipt
from tacit.daemon_socket import Unreachable, send_request, socket_path
from tacit.diagnostics import CheckResult, Problem
from tacit.errors import HostError
from tacit.home.layout import Home
from tacit.hosts.openclaw import baseline, packaged, phases, settings
from tacit.hosts.openclaw import manifest as record
from tacit.hosts.openclaw.machine import Command, OpenClawHost, find_workspaces, run
from tacit.hosts.openclaw.phases import read_evidence
from tacit.transcripts import spool
from tacit.version import VERSION

_HEALTH_TIMEOUT_S = 1.0  # seconds to wait for the daemon


class HostState(NamedTuple):
    host: str  # its config
    gateway: bool
    plugin: str  # version; empty: it is not there
    same: bool  # its files match this version of tacit
    blocked: tuple[str, ...]  # why the host does not load it as it should
    hooks: tuple[str, ...]  # enabled classic hooks
    home_set: str  # the home in the plugin's config
    daemon: bool
    spool: int
    last_turn: Receipt | None
    sessions_today: int
    workspaces: tuple[str, ...]  # read by the home
    owners: tuple[str, ...]
    baseline: str  # when it was taken; empty: never
    phase: str
    installed: str  # when


def inspect_host(host: OpenClawHost, home: Home, config: Config, now: datetime) -> HostState:
    manifest = record.load(home)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    today = {receipt.session_key for receipt in receipts.read_receipts(home, None, since=midnight)}
    return HostState(
        host=str(host.config),
        gateway=host.is_serving(),
        plugin=packaged.version_in(host.plugin),
        same=packaged.is_same(host.plugin, packaged.plugin_files()),
        blocked=tuple(block.what for block in settings.find_blocks(host.tree)),
        hooks=settings.uses_hooks(host.tree),
        home_set=str(settings.lookup(host.tree, f"{settings.PLUGIN_KEY}.config.home") or ""),
        daemon=is_daemon_up(home),
        spool=spool.count_waiting(str(home.root)),
        last_turn=_last_turn(home),
        sessions_today=len(today - set(baseline.OWN_SESSION_KEYS)),
        workspaces=workspace_folders(config),
        owners=config.owners,
        baseline=_read_field(record.read_json(home, baseline.STORE_NAME), "captured"),
        phase=_describe_phase(config),
        installed=manifest.installed if manifest else "",
    )


def is_daemon_up(home: Home) -> bool:
    try:
        status, body = send_request(socket_path(str(home.root)), "GET", "/v1/health", b"", _HEALTH_TIMEOUT_S)
        json.loads(body)
    except (Unreachable, ValueError):
        return False
    return status == 200


def _last_turn(home: Home) -> Receipt | None:
    turns = receipts.read_receipts(home, None, trial=False)
    return next(
        (
            receipt
            for receipt in turns
            if receipt.lane == "runtime" and receipt.session_key not in baseline.OWN_SESSION_KEYS
        ),
        None,
    )


def _read_field(data: Any, name: str) -> str:
    value = data.get(name) if isinstance(data, dict) else None
    return "" if value is None else str(value)


def _describe_phase(config: Config) -> str:
    """The phase of a migration begun in one of the workspaces; empty if there is none."""
    standings = (phases.find_standing(read_evidence(Path(folder))) for folder in workspace_folders(config))
    started = next((standing for standing in standings if standing.phase != phases.NONE), None)
    return (
        f"{started.phase}: {phases.PHASES[started.phase].about}, since {started.since[:16]}"
        if started
        else ""
    )


def workspace_folders(config: Config) -> tuple[str, ...]:
    """The workspaces that the home reads."""
    return tuple(workspace.path for workspace in config.workspaces)


def is_attached(config: Config, workspace: str) -> bool:
    return os.path.realpath(workspace) in {os.path.realpath(folder) for folder in workspace_folders(config)}


# ---------------------------------------------------------------- checks

_MIN_NODE = (24, 16)  # version that the host requires
_REINSTALL_HINT = "Run: tacit openclaw install"
_REQUIRED_HOOKS = (
    "before_prompt_build",
    "before_message_write",
    "agent_end",
)  # hooks that tacit needs


def checks(host: OpenClawHost, home: Home, config: Config) -> Iterator[CheckResult]:
    yield _check_host(host)
    if host.command is not None:
        yield _check_node(host.command)
    is_plugin = host.plugin.exists() or settings.lookup(host.tree, settings.PLUGIN_KEY) is not None
    hooks = settings.uses_hooks(host.tree)
    if is_plugin or not hooks:
        yield from _plugin_checks(host, home)
    if hooks:
        yield _check_classic_hooks(host, hooks, is_plugin)
    yield _check_daemon(host, home)
    yield _check_workspaces(host, config)
    yield _check_senders(host, config)
    yield _check_slots(host, config)
    yield _check_dreaming(host)
    if is_plugin:
        yield _check_tools(host)


def _make_check(name: str, result: str, *problems: Problem) -> CheckResult:
    return CheckResult(name, result, tuple(problems))


def _warning(source: str, message: str, todo: str = "") -> Problem:
    return Problem(source, message, todo, level="warning")


# ---------------------------------------------------------------- the host


def _check_host(host: OpenClawHost) -> CheckResult:
    if host.command is None:
        message = "There is no `openclaw` on PATH, so it cannot be asked."
        return _make_check(
            "host", "not found", Problem(str(host.config), message, "Name it with --openclaw PATH.")
        )
    try:
        version_text = host.command.version()
    except HostError as error:
        return _make_check(
            "host", "does not run", Problem(host.command.program, str(error), "Mend or install it.")
        )
    version = settings.version_of(version_text)
    if settings.is_too_old(version):
        oldest = ".".join(map(str, settings.MIN_VERSION))
        message = f"This version is older than {oldest}, and its hooks differ."
        return _make_check(
            "host", version_text, Problem(host.command.program, message, "Run: openclaw update")
        )
    if version > settings.version_of(settings.TESTED_VERSION):
        message = f"It is newer than {settings.TESTED_VERSION}, which tacit was tested with."
        todo = "Run: tacit openclaw doctor --probe"
        return _make_check("host", version_text, _warning(host.command.program, message, todo))
    return _make_check("host", version_text)


def _check_node(command: Command) -> CheckResult:
    version_text = command.node()
    version = settings.version_of(version_text)
    if version and version < _MIN_NODE:
        message = f"The host asks for Node {'.'.join(map(str, _MIN_NODE))} or newer."
        return _make_check("node", version_text, Problem("node", message, "Install a newer one."))
    return _make_check("node", version_text or "not on PATH; the host brings its own")


# ---------------------------------------------------------------- our part in it


def _plugin_checks(host: OpenClawHost, home: Home) -> Iterator[CheckResult]:
    yield _check_plugin(host)
    problems = [
        Problem(str(host.config), block.what, block.todo) for block in settings.find_blocks(host.tree)
    ]
    yield _make_check("permission", "as it must be" if not problems else "not enough", *problems)
    yield _check_settings(host, home)
    if host.plugin.exists() and host.command is not None:
        yield _check_registered_hooks(host.command)


def _check_plugin(host: OpenClawHost) -> CheckResult:
    installed, packaged_version = packaged.version_in(host.plugin), packaged.version()
    if not installed:
        return _make_check(
            "plugin", "not installed", Problem(str(host.plugin), "The plugin is not there.", _REINSTALL_HINT)
        )
    if installed != packaged_version or not packaged.is_same(host.plugin, packaged.plugin_files()):
        message = (
            f"Its files are those of version {installed}, "
            f"and this is tacit {VERSION} with {packaged_version}."
        )
        message = (
            message
            if installed != packaged_version
            else f"Its files are not those of version {packaged_version} here."
        )
        return _make_check("plugin", installed, Problem(str(host.plugin), message, _REINSTALL_HINT))
    return _make_check("plugin", installed)


def _check_settings(host: OpenClawHost, home: Home) -> CheckResult:
    config = settings.lookup(host.tree, f"{settings.PLUGIN_KEY}.config", {})
    plugin_home, python = str(config.get("home") or ""), str(config.get("python") or "python3")
    problems = []
    if not plugin_home or os.path.realpath(os.path.expanduser(plugin_home)) != os.path.realpath(home.root):
        problems.append(
            Problem(str(host.config), f"The plugin's home is {plugin_home or 'not set'}.", _REINSTALL_HINT)
        )
    plugin_version = _tacit_version(os.path.expanduser(python))
    if plugin_version != f"tacit {VERSION}":
        message = (
            f"The plugin's python ({python}) has {plugin_version or 'no tacit'}; this is tacit {VERSION}."
        )
        problems.append(Problem(str(host.config), message, _REINSTALL_HINT))
    return _make_check("settings", plugin_home or "not set", *problems)


def _tacit_version(python: str) -> str:
    try:
        return run([python, "-P", "-m", "tacit", "--version"], os.environ, seconds=60).out.strip()
    except HostError:
        return ""


def _check_registered_hooks(command: Command) -> CheckResult:
    """What the host reports about the plugin after loading it."""
    try:
        inspection = command.json("plugins", "inspect", settings.PLUGIN_ID, "--runtime", "--json")
    except HostError as error:
        return _make_check("hooks", "not known", Problem("openclaw plugins inspect", str(error)))
    problems = list(_find_load_problems(inspection))
    return _make_check("hooks", f"{len(inspection.get('typedHooks') or ())} registered", *problems)


def _find_load_problems(inspection: Mapping[str, Any]) -> Iterator[Problem]:
    status = str((inspection.get("plugin") or {}).get("status") or "unknown")
    if status != "loaded":
        yield Problem(
            "openclaw plugins inspect", f"The plugin is {status}.", "Look at: openclaw plugins doctor"
        )
        return
    typed_hooks = {str(hook.get("name")) for hook in inspection.get("typedHooks") or ()}
    custom_events = {
        event for hook in inspection.get("customHooks") or () for event in hook.get("events") or ()
    }
    missing = [name for name in _REQUIRED_HOOKS if name not in typed_hooks]
    missing += [] if "agent:bootstrap" in custom_events else ["agent:bootstrap"]
    if missing:
        message = f"The host did not register {', '.join(missing)}."
        yield Problem("openclaw plugins inspect", message, f"See the permission above, or: {_REINSTALL_HINT}")
    for diagnostic in inspection.get("diagnostics") or ():
        if diagnostic.get("level") in ("error", "warn"):
            yield _warning("openclaw plugins inspect", str(diagnostic.get("message")))


def _check_classic_hooks(host: OpenClawHost, names: Sequence[str], is_plugin: bool) -> CheckResult:
    problems = []
    if settings.lookup(host.tree, "hooks.internal.enabled") is not True:
        message = "hooks.internal.enabled is not true, so no classic hook runs."
        todo = "Run: openclaw config set hooks.internal.enabled true"
        problems.append(Problem(str(host.config), message, todo))
    for name in names:
        if settings.lookup(host.tree, f"hooks.internal.entries.{name}.enabled") is not True:
            problems.append(
                Problem(str(host.config), f"{name} is off.", f"Run: openclaw hooks enable {name}")
            )
        elif not packaged.is_same(host.hooks / name, packaged.hook_files(name)):
            message = "Its files are not those of this tacit."
            problems.append(Problem(str(host.hooks / name), message, f"{_REINSTALL_HINT} --hooks-only"))
        elif is_plugin:
            message = f"{name} runs beside the plugin, which does the same."
            problems.append(_warning(str(host.config), message, f"Run: openclaw hooks disable {name}"))
    return _make_check("classic", ", ".join(names), *problems)


def _check_daemon(host: OpenClawHost, home: Home) -> CheckResult:
    if is_daemon_up(home):
        return _make_check("daemon", "answers")
    if not host.is_serving():
        return _make_check("daemon", "does not run; neither does the gateway, which starts it")
    message = "The gateway runs and the daemon does not answer: turns go on without memory."
    todo = "Look at .tacit/daemon.log and at the gateway's log for `tacit`; or run: tacit serve"
    return _make_check("daemon", "does not answer", Problem(str(home.root), message, todo))


# ---------------------------------------------------------------- what is around it


def _check_workspaces(host: OpenClawHost, config: Config) -> CheckResult:
    problems = []
    folders = find_workspaces(host)
    for agent, folder in folders.items():
        if not is_attached(config, str(folder)):
            message = f"The workspace of {agent} is not in `workspaces` of memory-config.yaml."
            problems.append(Problem(str(folder), message, _REINSTALL_HINT))
        problems += list(_check_workspace_files(folder))
    return _make_check("workspaces", ", ".join(map(str, folders.values())), *problems)


def _check_workspace_files(folder: Path) -> Iterator[Problem]:
    compact, tools = folder / "TOOLS_COMPACT.md", folder / "TOOLS.md"
    if not compact.is_file() and tools.is_file():
        message = "There is no TOOLS_COMPACT.md, so sessions get nothing of TOOLS.md unless it is looked up."
        yield _warning(str(folder), message, "Run: tacit openclaw compact-tools")
    if not (folder / "SOUL.md").is_file():
        yield _warning(str(folder), "There is no SOUL.md, which every session gets.", "Write one.")


def _check_senders(host: OpenClawHost, config: Config) -> CheckResult:
    channels = settings.senders(host.tree)
    if not channels:
        return _make_check("senders", "no channel")
    problems = []
    if not config.owners:
        known_owners = settings.owners(host.tree)
        example = ", ".join(f'"{owner}"' for owner in known_owners) or f'"{next(iter(channels))}:<your id>"'
        message = "`owners` in memory-config.yaml is empty, so what you write on a channel is a stranger's."
        problems.append(Problem("owners", message, f"Set it: owners: [{example}]"))
    if settings.merges_senders(host.tree):
        message = (
            "session.dmScope is main and more than one person may write: all of them share the main session, "
            "which no longer counts as yours once a stranger wrote in it."
        )
        todo = "Run: openclaw config set session.dmScope per-channel-peer"
        problems.append(_warning(str(host.config), message, todo))
    summary = ", ".join(f"{name} ({_describe_people(people)})" for name, people in channels.items())
    return _make_check("senders", summary, *problems)


def _describe_people(people: set[str]) -> str:
    if "*" in people:
        return "anyone"
    return f"{len(people)} listed" if people else "by pairing"


def _check_slots(host: OpenClawHost, config: Config) -> CheckResult:
    slots = settings.slots(host.tree)
    summary = ", ".join(f"{name}: {value}" for name, value in slots.items())
    if settings.holds_slot(host.tree):
        allowed = config.memory.read_only is False
        agents = "agents may add to it by memory.read_only: false" if allowed else "agents only read"
        return _make_check("slots", f"{summary}; the host's own memory is off, and {agents}")
    return _make_check(
        "slots", f"{summary}; tacit needs none, so that is fine" if summary else "free; tacit needs none"
    )


def _check_dreaming(host: OpenClawHost) -> CheckResult:
    if not settings.is_dreaming(host.tree):
        return _make_check("dreaming", "off")
    message = "At night the host rewrites MEMORY.md in the workspace. tacit reads it again and loses nothing."
    todo = (
        "To keep that file to yourself: "
        "openclaw config set plugins.entries.memory-core.config.dreaming.enabled false"
    )
    return _make_check("dreaming", "on", _warning(str(host.config), message, todo))


def _check_tools(host: OpenClawHost) -> CheckResult:
    if settings.lookup(host.tree, "tools.toolSearch") is False:
        return _make_check("tools", "the model sees tacit's tools directly")
    return _make_check(
        "tools",
        "the model finds tacit's tools by searching for them; directly with: "
        "openclaw config set tools.toolSearch false",
    )

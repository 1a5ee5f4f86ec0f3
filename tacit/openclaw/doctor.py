"""What is missing between a home and its host, and how to mend it. Changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.config import Config
from tacit.errors import HostError
from tacit.model.problems import Problem
from tacit.openclaw import packaged, settings
from tacit.openclaw.command import Command, run
from tacit.openclaw.find import Host, workspaces
from tacit.openclaw.state import adopts, is_up
from tacit.store.checkup import Check
from tacit.store.home import Home
from tacit.version import VERSION

_NODE = (24, 16)  # what the host asks for
_AGAIN = "Run: tacit openclaw install"
_TYPED = ("before_prompt_build", "before_message_write", "agent_end")  # hooks that we cannot do without


def checks(host: Host, home: Home, config: Config) -> Iterator[Check]:
    yield _host(host)
    if host.command is not None:
        yield _node(host.command)
    is_plugin = host.plugin.exists() or settings.at(host.tree, settings.ENTRY) is not None
    hooks = settings.uses_hooks(host.tree)
    if is_plugin or not hooks:
        yield from _plugin_checks(host, home)
    if hooks:
        yield _hooks(host, hooks, is_plugin)
    yield _daemon(host, home)
    yield _workspaces(host, config)
    yield _senders(host, config)
    yield _slots(host, config)
    yield _dreaming(host)
    if is_plugin:
        yield _tools(host)


def _check(name: str, found: str, *problems: Problem) -> Check:
    return Check(name, found, tuple(problems))


def _warning(where: str, what: str, todo: str = "") -> Problem:
    return Problem(where, what, todo, level="warning")


# ---------------------------------------------------------------- the host


def _host(host: Host) -> Check:
    if host.command is None:
        what = "There is no `openclaw` on PATH, so it cannot be asked."
        return _check("host", "not found", Problem(str(host.config), what, "Name it with --openclaw PATH."))
    try:
        said = host.command.version()
    except HostError as error:
        return _check(
            "host", "does not run", Problem(host.command.program, str(error), "Mend or install it.")
        )
    version = settings.version_of(said)
    if settings.is_too_old(version):
        oldest = ".".join(map(str, settings.OLDEST))
        what = f"This version is older than {oldest}, and its hooks differ."
        return _check("host", said, Problem(host.command.program, what, "Run: openclaw update"))
    if version > settings.version_of(settings.TESTED):
        what = f"It is newer than {settings.TESTED}, which tacit was tested with."
        todo = "Run: tacit openclaw doctor --probe"
        return _check("host", said, _warning(host.command.program, what, todo))
    return _check("host", said)


def _node(command: Command) -> Check:
    said = command.node()
    version = settings.version_of(said)
    if version and version < _NODE:
        what = f"The host asks for Node {'.'.join(map(str, _NODE))} or newer."
        return _check("node", said, Problem("node", what, "Install a newer one."))
    return _check("node", said or "not on PATH; the host brings its own")


# ---------------------------------------------------------------- our part in it


def _plugin_checks(host: Host, home: Home) -> Iterator[Check]:
    yield _plugin(host)
    blocked = [Problem(str(host.config), one.what, one.todo) for one in settings.blocks(host.tree)]
    yield _check("permission", "as it must be" if not blocked else "not enough", *blocked)
    yield _settings(host, home)
    if host.plugin.exists() and host.command is not None:
        yield _registered(host.command)


def _plugin(host: Host) -> Check:
    there, ours = packaged.version_in(host.plugin), packaged.version()
    if not there:
        return _check(
            "plugin", "not installed", Problem(str(host.plugin), "The plugin is not there.", _AGAIN)
        )
    if there != ours or not packaged.is_same(host.plugin, packaged.plugin()):
        what = f"Its files are those of version {there}, and this is tacit {VERSION} with {ours}."
        what = what if there != ours else f"Its files are not those of version {ours} here."
        return _check("plugin", there, Problem(str(host.plugin), what, _AGAIN))
    return _check("plugin", there)


def _settings(host: Host, home: Home) -> Check:
    config = settings.at(host.tree, f"{settings.ENTRY}.config", {})
    where, python = str(config.get("home") or ""), str(config.get("python") or "python3")
    problems = []
    if not where or os.path.realpath(os.path.expanduser(where)) != os.path.realpath(home.root):
        problems.append(Problem(str(host.config), f"The plugin's home is {where or 'not set'}.", _AGAIN))
    said = _tacit_of(os.path.expanduser(python))
    if said != f"tacit {VERSION}":
        what = f"The plugin's python ({python}) has {said or 'no tacit'}; this is tacit {VERSION}."
        problems.append(Problem(str(host.config), what, _AGAIN))
    return _check("settings", where or "not set", *problems)


def _tacit_of(python: str) -> str:
    try:
        return run([python, "-P", "-m", "tacit", "--version"], os.environ, seconds=60).out.strip()
    except HostError:
        return ""


def _registered(command: Command) -> Check:
    """What the host itself says of the plugin once it has loaded it."""
    try:
        said = command.json("plugins", "inspect", settings.ID, "--runtime", "--json")
    except HostError as error:
        return _check("hooks", "not known", Problem("openclaw plugins inspect", str(error)))
    problems = list(_refused(said))
    return _check("hooks", f"{len(said.get('typedHooks') or ())} registered", *problems)


def _refused(said: Mapping[str, Any]) -> Iterator[Problem]:
    status = str((said.get("plugin") or {}).get("status") or "unknown")
    if status != "loaded":
        yield Problem(
            "openclaw plugins inspect", f"The plugin is {status}.", "Look at: openclaw plugins doctor"
        )
        return
    typed = {str(one.get("name")) for one in said.get("typedHooks") or ()}
    custom = {event for one in said.get("customHooks") or () for event in one.get("events") or ()}
    missing = [name for name in _TYPED if name not in typed]
    missing += [] if "agent:bootstrap" in custom else ["agent:bootstrap"]
    if missing:
        what = f"The host did not register {', '.join(missing)}."
        yield Problem("openclaw plugins inspect", what, f"See the permission above, or: {_AGAIN}")
    for one in said.get("diagnostics") or ():
        if one.get("level") in ("error", "warn"):
            yield _warning("openclaw plugins inspect", str(one.get("message")))


def _hooks(host: Host, names: Sequence[str], is_plugin: bool) -> Check:
    problems = []
    if settings.at(host.tree, "hooks.internal.enabled") is not True:
        what = "hooks.internal.enabled is not true, so no classic hook runs."
        todo = "Run: openclaw config set hooks.internal.enabled true"
        problems.append(Problem(str(host.config), what, todo))
    for name in names:
        if settings.at(host.tree, f"hooks.internal.entries.{name}.enabled") is not True:
            problems.append(
                Problem(str(host.config), f"{name} is off.", f"Run: openclaw hooks enable {name}")
            )
        elif not packaged.is_same(host.hooks / name, packaged.hook(name)):
            what = "Its files are not those of this tacit."
            problems.append(Problem(str(host.hooks / name), what, f"{_AGAIN} --hooks-only"))
        elif is_plugin:
            what = f"{name} runs beside the plugin, which does the same."
            problems.append(_warning(str(host.config), what, f"Run: openclaw hooks disable {name}"))
    return _check("classic", ", ".join(names), *problems)


def _daemon(host: Host, home: Home) -> Check:
    if is_up(home):
        return _check("daemon", "answers")
    if not host.is_serving():
        return _check("daemon", "does not run; neither does the gateway, which starts it")
    what = "The gateway runs and the daemon does not answer: turns go on without memory."
    todo = "Look at .tacit/daemon.log and at the gateway's log for `tacit`; or run: tacit serve"
    return _check("daemon", "does not answer", Problem(str(home.root), what, todo))


# ---------------------------------------------------------------- what is around it


def _workspaces(host: Host, config: Config) -> Check:
    problems = []
    found = workspaces(host)
    for agent, folder in found.items():
        if not adopts(config, str(folder)):
            what = f"The workspace of {agent} is not in `workspaces` of memory-config.yaml."
            problems.append(Problem(str(folder), what, _AGAIN))
        problems += list(_files(folder))
    return _check("workspaces", ", ".join(map(str, found.values())), *problems)


def _files(folder: Path) -> Iterator[Problem]:
    compact, tools = folder / "TOOLS_COMPACT.md", folder / "TOOLS.md"
    if not compact.is_file() and tools.is_file():
        what = "There is no TOOLS_COMPACT.md, so sessions get nothing of TOOLS.md unless it is looked up."
        yield _warning(str(folder), what, "Run: tacit openclaw compact-tools")
    if not (folder / "SOUL.md").is_file():
        yield _warning(str(folder), "There is no SOUL.md, which every session gets.", "Write one.")


def _senders(host: Host, config: Config) -> Check:
    channels = settings.senders(host.tree)
    if not channels:
        return _check("senders", "no channel")
    problems = []
    if not config.owners:
        sure = settings.owners(host.tree)
        example = ", ".join(f'"{one}"' for one in sure) or f'"{next(iter(channels))}:<your id>"'
        what = "`owners` in memory-config.yaml is empty, so what you write on a channel is a stranger's."
        problems.append(Problem("owners", what, f"Set it: owners: [{example}]"))
    if settings.folds_senders(host.tree):
        what = (
            "session.dmScope is main and more than one person may write: all of them share the main session, "
            "which is nobody's once a stranger wrote in it."
        )
        todo = "Run: openclaw config set session.dmScope per-channel-peer"
        problems.append(_warning(str(host.config), what, todo))
    who = ", ".join(f"{name} ({_people(people)})" for name, people in channels.items())
    return _check("senders", who, *problems)


def _people(people: set[str]) -> str:
    if "*" in people:
        return "anybody"
    return f"{len(people)} listed" if people else "by pairing"


def _slots(host: Host, config: Config) -> Check:
    taken = settings.slots(host.tree)
    said = ", ".join(f"{name}: {value}" for name, value in taken.items())
    if settings.holds_slot(host.tree):
        allowed = config.memory.read_only is False
        agents = "agents may add to it by memory.read_only: false" if allowed else "agents only read"
        return _check("slots", f"{said}; the host's own memory is off, and {agents}")
    return _check("slots", f"{said}; tacit needs none, so that is fine" if said else "free; tacit needs none")


def _dreaming(host: Host) -> Check:
    if not settings.dreams(host.tree):
        return _check("dreaming", "off")
    what = "At night the host rewrites MEMORY.md in the workspace. tacit reads it again and loses nothing."
    todo = (
        "To keep that file to yourself: "
        "openclaw config set plugins.entries.memory-core.config.dreaming.enabled false"
    )
    return _check("dreaming", "on", _warning(str(host.config), what, todo))


def _tools(host: Host) -> Check:
    if settings.at(host.tree, "tools.toolSearch") is False:
        return _check("tools", "the model sees tacit's tools directly")
    return _check(
        "tools",
        "the model finds tacit's tools by searching for them; directly with: "
        "openclaw config set tools.toolSearch false",
    )

"""Show the state of a home: branch, sessions, what waits for a commit, the daemon, excluded agents, whether
agents may add to memory, workspaces, and what models cost today. It runs no git, and parses YAML only if a
glance at the config is not enough, so it answers at once. `tacit doctor` checks more."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import suppress

from tacit.daemon_socket import Unreachable, send_request, socket_path
from tacit.errors import ConfigError, MergeConflict, TacitError
from tacit.health import status as overview
from tacit.home.layout import Home, find_home
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option

TYPE_CHECKING = False  # as in typing, which would cost every command several milliseconds
if TYPE_CHECKING:
    from typing import Any

_ASK_TIMEOUT_S = 1.0  # for an answer from the daemon
_READ_ONLY = {
    True: "read-only; nothing is added to notes",
    False: "agents may add to it",
    None: "agents may add to it; read-only while tacit is the host's memory slot",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    add_home_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    home = find_home(options.home, os.environ).require()
    state = overview.inspect_home(home)
    health = _ask_health(state)
    settings = _settings(home, state, health)
    problems = [*_problems(state, health), *_find_unfinished(home)]
    workspaces = _workspaces(home, state, problems)
    models = _models(home, problems)
    if options.json:
        sessions = [{"session_id": name, "path": path or None} for name, path in state.open]
        answer = {"answers": health is not None} if state.daemon is not None else {}
        daemon = None if state.daemon is None else {**state.daemon, **answer}
        output.dump(
            {
                **vars(state),
                "open": sessions,
                "conflicts": [{"path": path, "trouble": trouble} for path, trouble in state.conflicts],
                "daemon": daemon,
                "settings": settings,
                "workspaces": workspaces,
                "models": models,
                "problems": problems,
            }
        )
        return 0
    rows = [*_rows(state), *_workspace_rows(workspaces), *_model_rows(models)]
    rows += [*_daemon_rows(state, problems), *_setting_rows(settings)]
    output.print_table(rows, indent="")
    return 0


def _ask_health(state: overview.Overview) -> dict[str, Any] | None:
    """The daemon's own health report; None if it does not answer."""
    if state.daemon is None:
        return None
    try:
        status, body = send_request(socket_path(state.home), "GET", "/v1/health", b"", _ASK_TIMEOUT_S)
        answer = json.loads(body)
    except (Unreachable, ValueError):
        return None
    return answer if status == 200 and isinstance(answer, dict) else None


def _problems(state: overview.Overview, health: dict[str, Any] | None) -> list[str]:
    quarantined = [state.set_aside] if state.set_aside else []
    if state.daemon is None:
        return quarantined
    if health is None:
        symptom = "The daemon does not answer" if state.daemon else "The daemon is starting"
        return [f"{symptom}. Look at .tacit/daemon.log", *quarantined]
    reported = health.get("problems") if health else None
    return [str(problem) for problem in reported] if isinstance(reported, list) else []


def _find_unfinished(home: Home) -> Iterator[str]:
    """Look at file names only, so that nothing has to be imported; `tacit doctor` says more."""
    with suppress(OSError):
        if any(name.startswith("forget-") and name.endswith(".json") for name in os.listdir(home.private)):
            yield "`tacit forget` was cut short. Run the same command again; `tacit doctor` tells more."


def _settings(
    home: Home, state: overview.Overview, health: dict[str, Any] | None
) -> dict[str, object] | None:
    """The settings in force. The daemon has read the config; otherwise a glance at it usually suffices."""
    if state.daemon is None:
        return state.settings or _read_settings(home)
    try:
        sections = {section: health[section].items() for section in ("inject", "capture", "memory")}  # type: ignore[index]
        return {f"{section}.{key}": value for section, items in sections.items() for key, value in items}
    except (TypeError, KeyError, AttributeError):
        return None


def _read_settings(home: Home) -> dict[str, object] | None:
    """Load the whole config, for one that is written in a way that a glance does not understand."""
    from tacit.app import load_config

    try:
        config = load_config(home).config
    except (TacitError, OSError):
        return None  # `tacit config` says what is wrong
    return {
        f"{section}.{name}": list(value) if isinstance(value, tuple) else value
        for section, _, name in (setting.partition(".") for setting in overview.DEFAULT_SETTINGS)
        for value in [getattr(getattr(config, section), name)]
    }


def _workspaces(home: Home, state: overview.Overview, problems: list[str]) -> list[dict[str, Any]]:
    """Load the config only if it names a workspace: parsing YAML takes longer than all the rest."""
    if not overview.has_workspaces(home):
        return []
    from tacit.app import load_config
    from tacit.git.conflicts import LEFT_OUT_MESSAGE
    from tacit.workspaces.folders import Workspaces

    try:
        loaded = load_config(home)
    except ConfigError as error:
        problems.append(str(error))
        return []
    problems += [str(problem) for problem in loaded.problems if "'workspaces'" in problem.what]
    workspaces = Workspaces(home, loaded.config.workspaces)
    named = dict(state.conflicts)
    for path in (path for path in overview.list_known_conflicts(home) if path not in named):
        try:
            workspaces.read(path)
        except MergeConflict as error:
            state.conflicts.append((path, f"{LEFT_OUT_MESSAGE.format(error.why)} {error.todo}"))
        except (TacitError, OSError):
            continue
    return [
        {
            **adopted.workspace._asdict(),
            "files": adopted.files,
            "left_out": len(adopted.left_out),
            "trouble": adopted.trouble,
        }
        for adopted in workspaces.look()
    ]


def _workspace_rows(workspaces: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for workspace in workspaces:
        agent = f", for the agent {workspace['agent']}" if workspace["agent"] else ""
        left_out = f", {workspace['left_out']} left out" if workspace["left_out"] else ""
        summary = workspace["trouble"] or output.pluralize(workspace["files"], "file")
        yield "workspace", f"{workspace['name']}  {summary}{left_out}{agent}  {workspace['path']}"


def _models(home: Home, problems: list[str]) -> dict[str, Any] | None:
    """What was spent today; None if the config names no model, so that none is ever called."""
    if not overview.uses_models(home):
        return None
    from tacit.app import load_config, spending_report

    try:
        spent = spending_report(load_config(home).config, home)
    except (TacitError, OSError):
        return None  # `tacit config` says what is wrong
    problems += [
        f"{model} is paused for {seconds:.0f} more seconds, because it failed several times: {reason}"
        for model, (seconds, reason) in spent.left_alone.items()
    ]
    today, limits = spent.today, spent.limits
    used = {"calls": today.calls, "tokens": today.tokens, "usd": today.usd}
    problems += [
        f"The limit models.daily_{name} is reached: {used[name]:g} of {limit:g}. "
        "No model is called any more today"
        for name, limit in limits._asdict().items()
        if limit is not None and used[name] >= limit
    ]
    spent_today = {**used, "refused": today.refused, "refused_why": spent.refused}
    return {"used": spent.models, "today": spent_today, "limits": limits._asdict()}


def _model_rows(models: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    if models is None or not (models["used"] or models["today"]["calls"]):
        return
    today, limits = models["today"], models["limits"]
    of_limit = {name: "" if limit is None else f" of {limit:.10g}" for name, limit in limits.items()}
    names = ", ".join(sorted(set(models["used"].values())))
    yield (
        "models",
        (
            f"today {today['calls']}{of_limit['calls']} calls, {today['tokens']}{of_limit['tokens']} tokens, "
            f"${today['usd']:.4f}{of_limit['usd']}; {names or 'none for chat'}"
        ),
    )
    if today["refused"]:
        yield "models", f"{output.pluralize(today['refused'], 'call')} refused today: {today['refused_why']}"


def _rows(state: overview.Overview) -> Iterator[tuple[str, str]]:
    yield "home", state.home
    commit = f" at {state.commit[:10]}" if state.commit else ""
    yield "branch", (state.branch or "none: HEAD is detached") + commit
    last = f", last {state.last_transcript}" if state.last_transcript else ""
    yield "transcripts", f"{state.transcripts}{last}"
    edited = f", {state.edited} edited since the last commit" if state.edited else ""
    yield "notes", f"{state.notes}{edited}"
    for path, trouble in state.conflicts:
        yield "conflict", f"{path} {trouble}"
    for name, path in state.open:
        yield "open", f"{output.shorten(name, 60)}  {path or '(no message yet)'}"
    if state.unlearned:
        reason = f": {output.shorten(state.unlearned_why, 200)}" if state.unlearned_why else ""
        yield (
            "to learn",
            f"{output.pluralize(state.unlearned, 'conversation')}{reason} (`tacit run extract` tries now)",
        )
    if state.drafts:
        yield "to review", f"{output.pluralize(state.drafts, 'draft')} (`tacit review list`)"
    for path in state.left_open:
        yield "left open", f"{path} (a crash; the next command seals it)"
    for path in state.waiting:
        yield "waiting", f"{path} (sealed; `tacit run commit` commits it)"


def _daemon_rows(state: overview.Overview, problems: list[str]) -> Iterator[tuple[str, str]]:
    daemon = state.daemon
    if daemon is None:
        yield "daemon", "not running (start it with `tacit serve`)"
    elif daemon:
        port = f" and 127.0.0.1:{daemon.get('tcp')}" if daemon.get("tcp") else ""
        address = f"on {daemon.get('socket')}{port}"
        yield "daemon", f"process {daemon.get('pid')} since {daemon.get('started')} {address}"
    if state.spool:
        yield "spool", f"{output.pluralize(state.spool, 'record')} waiting for the daemon"
    for problem in problems:
        yield "problem", problem


def _setting_rows(settings: dict[str, object] | None) -> Iterator[tuple[str, str]]:
    if settings is None:
        yield from ((name, "see: tacit config") for name in ("inject", "capture", "memory"))
        return
    lanes = _names(settings.get("inject.lanes"))
    enabled = f"lanes {lanes}" if lanes else "no lanes"
    yield "inject", _with_exclusions(enabled if settings.get("inject.enabled") else "off", settings, "inject")
    yield "capture", _with_exclusions("on" if settings.get("capture.enabled") else "off", settings, "capture")
    yield "memory", _READ_ONLY[settings.get("memory.read_only")]  # type: ignore[index]


def _with_exclusions(setting: str, settings: dict[str, object], section: str) -> str:
    excluded = _names(settings.get(f"{section}.exclude_agents"))
    return f"{setting}; never for {excluded}" if excluded else setting


def _names(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else ""

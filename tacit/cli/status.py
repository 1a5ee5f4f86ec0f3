"""Where things stand: the home, its branch, its sessions, what waits for a commit, the daemon, whose
conversations are left alone, whether agents may add to memory, which workspaces are read, and what was spent
on models today. Runs no git, and parses YAML only where a glance at the config is not enough, so it answers
at once; `tacit doctor` looks closer."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator

from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option
from tacit.errors import ConfigError, TacitError
from tacit.net.local import Unreachable, ask, socket_path
from tacit.store import overview
from tacit.store.home import Home, locate

TYPE_CHECKING = False  # as in typing, which would cost every command several milliseconds
if TYPE_CHECKING:
    from typing import Any

_ASK = 1.0  # seconds for an answer of the daemon
_READ_ONLY = {
    True: "read-only; nothing is added to notes",
    False: "agents may add to it",
    None: "agents may add to it; read-only while tacit is the host's memory slot",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    home_option(parser)
    json_option(parser)


def run(options: argparse.Namespace) -> int:
    home = locate(options.home, os.environ).require()
    seen = overview.look(home)
    health = _health(seen)
    settings = _settings(home, seen, health)
    problems = _problems(seen, health)
    workspaces = _workspaces(home, problems)
    models = _models(home, problems)
    if options.json:
        sessions = [{"session_id": name, "path": path or None} for name, path in seen.open]
        more = {"answers": health is not None} if seen.daemon is not None else {}
        daemon = None if seen.daemon is None else {**seen.daemon, **more}
        output.dump(
            {
                **vars(seen),
                "open": sessions,
                "daemon": daemon,
                "settings": settings,
                "workspaces": workspaces,
                "models": models,
                "problems": problems,
            }
        )
        return 0
    rows = [*_rows(seen), *_workspace_rows(workspaces), *_model_rows(models)]
    rows += [*_daemon_rows(seen, problems), *_setting_rows(settings)]
    output.table(rows, indent="")
    return 0


def _health(seen: overview.Overview) -> dict[str, Any] | None:
    """What the daemon itself says; None where it does not answer."""
    if seen.daemon is None:
        return None
    try:
        status, body = ask(socket_path(seen.home), "GET", "/v1/health", b"", _ASK)
        told = json.loads(body)
    except (Unreachable, ValueError):
        return None
    return told if status == 200 and isinstance(told, dict) else None


def _problems(seen: overview.Overview, health: dict[str, Any] | None) -> list[str]:
    if seen.daemon is not None and health is None:
        starts = "The daemon does not answer" if seen.daemon else "The daemon is starting"
        return [f"{starts}. Look at .tacit/daemon.log"]
    told = health.get("problems") if health else None
    return [str(one) for one in told] if isinstance(told, list) else []


def _settings(home: Home, seen: overview.Overview, health: dict[str, Any] | None) -> dict[str, object] | None:
    """As they are in force. The daemon has read the config; without it, a glance at it is enough for most."""
    if seen.daemon is None:
        return seen.settings or _read(home)
    try:
        sections = {one: health[one].items() for one in ("inject", "capture", "memory")}  # type: ignore[index]
        return {f"{one}.{key}": value for one, found in sections.items() for key, value in found}
    except (TypeError, KeyError, AttributeError):
        return None


def _read(home: Home) -> dict[str, object] | None:
    """All of the config, where it is written in a way that a glance does not understand."""
    from tacit.app import load_config

    try:
        config = load_config(home).config
    except (TacitError, OSError):
        return None  # `tacit config` says what is wrong
    return {
        f"{section}.{name}": list(value) if isinstance(value, tuple) else value
        for section, _, name in (one.partition(".") for one in overview.SETTINGS)
        for value in [getattr(getattr(config, section), name)]
    }


def _workspaces(home: Home, problems: list[str]) -> list[dict[str, Any]]:
    """Looked at only where the config names one: reading YAML takes longer than all the rest."""
    if not overview.adopts(home):
        return []
    from tacit.app import load_config
    from tacit.store.workspaces import Workspaces

    try:
        loaded = load_config(home)
    except ConfigError as error:
        problems.append(str(error))
        return []
    problems += [str(one) for one in loaded.problems if "'workspaces'" in one.what]
    return [
        {**one.workspace._asdict(), "files": one.files, "left_out": len(one.left_out), "trouble": one.trouble}
        for one in Workspaces(home, loaded.config.workspaces).look()
    ]


def _workspace_rows(workspaces: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for one in workspaces:
        agent = f", for the agent {one['agent']}" if one["agent"] else ""
        left = f", {one['left_out']} left out" if one["left_out"] else ""
        found = one["trouble"] or output.plural(one["files"], "file")
        yield "workspace", f"{one['name']}  {found}{left}{agent}  {one['path']}"


def _models(home: Home, problems: list[str]) -> dict[str, Any] | None:
    """What was spent today. None: the config names no model, so nothing is ever asked."""
    if not overview.names_models(home):
        return None
    from tacit.app import load_config, spending

    try:
        found = spending(load_config(home).config, home)
    except (TacitError, OSError):
        return None  # `tacit config` says what is wrong
    problems += [
        f"{model} is left alone for {left:.0f} s more, because it failed several times: {why}"
        for model, (left, why) in found.left_alone.items()
    ]
    today, limits = found.today, found.limits
    used = {"calls": today.calls, "tokens": today.tokens, "usd": today.usd}
    problems += [
        f"The limit models.daily_{name} is reached: {used[name]:g} of {limit:g}. "
        "Models are asked nothing more today"
        for name, limit in limits._asdict().items()
        if limit is not None and used[name] >= limit
    ]
    told = {**used, "refused": today.refused, "refused_why": found.refused}
    return {"used": found.models, "today": told, "limits": limits._asdict()}


def _model_rows(models: dict[str, Any] | None) -> Iterator[tuple[str, str]]:
    if models is None or not (models["used"] or models["today"]["calls"]):
        return
    today, limits = models["today"], models["limits"]
    most = {name: "" if limit is None else f" of {limit:.10g}" for name, limit in limits.items()}
    names = ", ".join(sorted(set(models["used"].values())))
    yield (
        "models",
        (
            f"today {today['calls']}{most['calls']} calls, {today['tokens']}{most['tokens']} tokens, "
            f"${today['usd']:.4f}{most['usd']}; {names or 'none for chat'}"
        ),
    )
    if today["refused"]:
        yield "models", f"{output.plural(today['refused'], 'call')} refused today: {today['refused_why']}"


def _rows(seen: overview.Overview) -> Iterator[tuple[str, str]]:
    yield "home", seen.home
    at = f" at {seen.commit[:10]}" if seen.commit else ""
    yield "branch", (seen.branch or "none: HEAD is detached") + at
    last = f", last {seen.last_transcript}" if seen.last_transcript else ""
    yield "transcripts", f"{seen.transcripts}{last}"
    edited = f", {seen.edited} edited since the last commit" if seen.edited else ""
    yield "notes", f"{seen.notes}{edited}"
    for name, path in seen.open:
        yield "open", f"{output.short(name, 60)}  {path or '(no message yet)'}"
    if seen.unlearned:
        why = f": {output.short(seen.unlearned_why, 200)}" if seen.unlearned_why else ""
        yield (
            "to learn",
            f"{output.plural(seen.unlearned, 'conversation')}{why} (`tacit run extract` tries now)",
        )
    if seen.drafts:
        yield "to review", f"{output.plural(seen.drafts, 'draft')} (`tacit review list`)"
    for path in seen.left_open:
        yield "left open", f"{path} (a crash; the next command seals it)"
    for path in seen.waiting:
        yield "waiting", f"{path} (sealed; `tacit run commit` commits it)"


def _daemon_rows(seen: overview.Overview, problems: list[str]) -> Iterator[tuple[str, str]]:
    daemon = seen.daemon
    if daemon is None:
        yield "daemon", "does not run (`tacit serve` starts it)"
    elif daemon:
        port = f" and 127.0.0.1:{daemon.get('tcp')}" if daemon.get("tcp") else ""
        where = f"on {daemon.get('socket')}{port}"
        yield "daemon", f"process {daemon.get('pid')} since {daemon.get('started')} {where}"
    if seen.spool:
        yield "spool", f"{output.plural(seen.spool, 'record')} for the daemon to take"
    for problem in problems:
        yield "problem", problem


def _setting_rows(settings: dict[str, object] | None) -> Iterator[tuple[str, str]]:
    if settings is None:
        yield from ((name, "see: tacit config") for name in ("inject", "capture", "memory"))
        return
    lanes = _names(settings.get("inject.lanes"))
    on = f"lanes {lanes}" if lanes else "no lanes"
    yield "inject", _but_not(on if settings.get("inject.enabled") else "off", settings, "inject")
    yield "capture", _but_not("on" if settings.get("capture.enabled") else "off", settings, "capture")
    yield "memory", _READ_ONLY[settings.get("memory.read_only")]  # type: ignore[index]


def _but_not(what: str, settings: dict[str, object], section: str) -> str:
    left_out = _names(settings.get(f"{section}.exclude_agents"))
    return f"{what}; never for {left_out}" if left_out else what


def _names(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else ""

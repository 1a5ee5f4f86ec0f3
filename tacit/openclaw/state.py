"""Where things stand between a home and its host: from files and one question to the daemon."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tacit.config import Config
from tacit.model.context import Receipt
from tacit.net.local import Unreachable, ask, socket_path
from tacit.openclaw import baseline, packaged, settings
from tacit.openclaw import manifest as record
from tacit.openclaw.find import Host
from tacit.openclaw.phases import stages
from tacit.openclaw.phases.migration import lines_at
from tacit.store import receipts, spool
from tacit.store.home import Home

_ASK = 1.0  # seconds for an answer of the daemon


class State(NamedTuple):
    host: str  # its config
    gateway: bool
    plugin: str  # version; empty: it is not there
    same: bool  # its files are those of this tacit
    blocked: tuple[str, ...]  # why the host does not load it as it should
    hooks: tuple[str, ...]  # classic ones that are enabled
    home_set: str  # the home that the plugin is told
    daemon: bool
    spool: int
    last_turn: Receipt | None
    sessions_today: int
    workspaces: tuple[str, ...]  # that the home reads
    owners: tuple[str, ...]
    baseline: str  # when it was taken; empty: never
    phase: str
    installed: str  # when


def look(host: Host, home: Home, config: Config, now: datetime) -> State:
    known = record.load(home)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    today = {one.session_key for one in receipts.of_session(home, None, since=midnight)}
    return State(
        host=str(host.config),
        gateway=host.is_serving(),
        plugin=packaged.version_in(host.plugin),
        same=packaged.is_same(host.plugin, packaged.plugin()),
        blocked=tuple(one.what for one in settings.blocks(host.tree)),
        hooks=settings.uses_hooks(host.tree),
        home_set=str(settings.at(host.tree, f"{settings.ENTRY}.config.home") or ""),
        daemon=is_up(home),
        spool=spool.waiting(str(home.root)),
        last_turn=_last_turn(home),
        sessions_today=len(today - set(baseline.KEYS)),
        workspaces=folders_of(config),
        owners=config.owners,
        baseline=_text(record.read_json(home, baseline.STORED), "captured"),
        phase=_phase(config),
        installed=known.installed if known else "",
    )


def is_up(home: Home) -> bool:
    try:
        status, body = ask(socket_path(str(home.root)), "GET", "/v1/health", b"", _ASK)
        json.loads(body)
    except (Unreachable, ValueError):
        return False
    return status == 200


def _last_turn(home: Home) -> Receipt | None:
    turns = receipts.of_session(home, None, trial=False)
    return next(
        (one for one in turns if one.lane == "runtime" and one.session_key not in baseline.KEYS), None
    )


def _text(said: Any, name: str) -> str:
    found = said.get(name) if isinstance(said, dict) else None
    return "" if found is None else str(found)


def _phase(config: Config) -> str:
    """Of a migration that was begun in one of the workspaces; empty: in none."""
    found = (stages.standing(lines_at(Path(folder))) for folder in folders_of(config))
    begun = next((one for one in found if one.phase != stages.NONE), None)
    return f"{begun.phase}: {stages.ABOUT[begun.phase]}, since {begun.since[:16]}" if begun else ""


def folders_of(config: Config) -> tuple[str, ...]:
    """The workspaces that the home reads."""
    return tuple(one.path for one in config.workspaces)


def adopts(config: Config, workspace: str) -> bool:
    return os.path.realpath(workspace) in {os.path.realpath(folder) for folder in folders_of(config)}

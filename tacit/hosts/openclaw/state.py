"""The current state of a home and its host, from files and one question to the daemon."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tacit.client.socket import Unreachable, send_request, socket_path
from tacit.config import Config
from tacit.context import receipts
from tacit.context.model import Receipt
from tacit.home.layout import Home
from tacit.hosts.openclaw import baseline, packaged, settings
from tacit.hosts.openclaw import manifest as record
from tacit.hosts.openclaw.locate import OpenClawHost
from tacit.hosts.openclaw.phases import stages
from tacit.hosts.openclaw.phases.migration import read_evidence
from tacit.transcripts import spool

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
    standings = (stages.find_standing(read_evidence(Path(folder))) for folder in workspace_folders(config))
    started = next((standing for standing in standings if standing.phase != stages.NONE), None)
    return f"{started.phase}: {stages.ABOUT[started.phase]}, since {started.since[:16]}" if started else ""


def workspace_folders(config: Config) -> tuple[str, ...]:
    """The workspaces that the home reads."""
    return tuple(workspace.path for workspace in config.workspaces)


def is_attached(config: Config, workspace: str) -> bool:
    return os.path.realpath(workspace) in {os.path.realpath(folder) for folder in workspace_folders(config)}

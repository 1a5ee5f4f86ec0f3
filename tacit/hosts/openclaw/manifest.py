"""Records what an install changed and how it was before: `.tacit/openclaw/manifest.json`, with backups beside
it.

Written before anything is changed, so that an interrupted install can be undone as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tacit.errors import HostError
from tacit.home import files
from tacit.home.layout import Home
from tacit.hosts.openclaw.settings import SettingChange

_FILE_NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class InstallManifest:
    installed: str  # ISO 8601
    tacit: str  # version
    host: str  # version
    config: str  # the host's
    config_backup: str  # below the folder; empty: there was no config
    config_mode: int
    home_backup: str  # of memory-config.yaml; empty: the install made the home
    keys: tuple[SettingChange, ...] = ()
    hooks: tuple[str, ...] = ()  # folders that were installed


def folder(home: Home) -> Path:
    return home.private / "openclaw"


def load(home: Home) -> InstallManifest | None:
    file = folder(home) / _FILE_NAME
    try:
        data = json.loads(file.read_bytes())
        keys = tuple(SettingChange(*key) for key in data.pop("keys"))
        return InstallManifest(**{**data, "keys": keys, "hooks": tuple(data["hooks"])})
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
        raise HostError(
            f"{file} cannot be read: {error}. Move it away; `tacit openclaw uninstall` then removes only "
            "what is tacit's."
        ) from None


def save(home: Home, manifest: InstallManifest) -> None:
    _write_file(folder(home) / _FILE_NAME, json.dumps(asdict(manifest), indent=2).encode() + b"\n")


def back_up(home: Home, file: Path, now: datetime) -> str:
    """Copies the file below the folder and returns the copy's name; empty if there is no such file."""
    if not file.is_file():
        return ""
    name = f"backups/{now:%Y%m%dT%H%M%S}/{file.name}"
    _write_file(folder(home) / name, file.read_bytes())
    return name


def read_backup(home: Home, name: str) -> bytes | None:
    return (folder(home) / name).read_bytes() if name else None


def archive(home: Home, manifest: InstallManifest) -> None:
    """Moves the manifest to its backups after an uninstall."""
    place = folder(home) / (os.path.dirname(manifest.config_backup or manifest.home_backup) or "backups")
    files.make_directories(place)
    os.replace(folder(home) / _FILE_NAME, place / _FILE_NAME)


def merge_keys(before: Sequence[SettingChange], now: Sequence[SettingChange]) -> tuple[SettingChange, ...]:
    """Joins the keys of two installs, with the values from before the first of them."""
    by_path = {key.path: key for key in before}
    updated = {
        key.path: by_path[key.path]._replace(after=key.after) if key.path in by_path else key for key in now
    }
    return tuple({**by_path, **updated}.values())


def read_json(home: Home, name: str) -> Any:
    """Another file of the folder; None if it is missing or cannot be read."""
    try:
        return json.loads((folder(home) / name).read_bytes())
    except (OSError, ValueError):
        return None


def write_json(home: Home, name: str, value: object) -> None:
    _write_file(folder(home) / name, json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n")


def _write_file(file: Path, data: bytes) -> None:
    files.make_directories(file.parent)
    files.replace(file, data)

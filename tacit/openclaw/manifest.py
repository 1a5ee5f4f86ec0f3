"""What an install touched, and how it was before: `.tacit/openclaw/manifest.json`, with the files beside it.

Written before anything is touched, so that an install which was cut short can be undone as well.
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
from tacit.openclaw.plan import Key
from tacit.store import files
from tacit.store.home import Home

_NAME = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    installed: str  # ISO 8601
    tacit: str  # version
    host: str  # version
    config: str  # the host's
    config_backup: str  # below the folder; empty: there was no config
    config_mode: int
    home_backup: str  # of memory-config.yaml; empty: the home was made
    keys: tuple[Key, ...] = ()
    hooks: tuple[str, ...] = ()  # folders that were put there


def folder(home: Home) -> Path:
    return home.private / "openclaw"


def load(home: Home) -> Manifest | None:
    file = folder(home) / _NAME
    try:
        said = json.loads(file.read_bytes())
        keys = tuple(Key(*key) for key in said.pop("keys"))
        return Manifest(**{**said, "keys": keys, "hooks": tuple(said["hooks"])})
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
        raise HostError(
            f"{file} cannot be read: {error}. Move it away; `tacit openclaw uninstall` then removes only "
            "what is tacit's."
        ) from None


def save(home: Home, manifest: Manifest) -> None:
    _put(folder(home) / _NAME, json.dumps(asdict(manifest), indent=2).encode() + b"\n")


def back_up(home: Home, file: Path, now: datetime) -> str:
    """Its bytes, below the folder; the name of the copy. Empty: there is no such file."""
    if not file.is_file():
        return ""
    name = f"backups/{now:%Y%m%dT%H%M%S}/{file.name}"
    _put(folder(home) / name, file.read_bytes())
    return name


def backed_up(home: Home, name: str) -> bytes | None:
    return (folder(home) / name).read_bytes() if name else None


def close(home: Home, manifest: Manifest) -> None:
    """After an uninstall: the record goes to the copies that it tells of."""
    place = folder(home) / (os.path.dirname(manifest.config_backup or manifest.home_backup) or "backups")
    files.make_directories(place)
    os.replace(folder(home) / _NAME, place / _NAME)


def merged(before: Sequence[Key], now: Sequence[Key]) -> tuple[Key, ...]:
    """Of two installs: what was there before the first of them."""
    first = {key.path: key for key in before}
    later = {key.path: first[key.path]._replace(after=key.after) if key.path in first else key for key in now}
    return tuple({**first, **later}.values())


def read_json(home: Home, name: str) -> Any:
    """Another file of the folder; None where there is none, or nothing that can be read."""
    try:
        return json.loads((folder(home) / name).read_bytes())
    except (OSError, ValueError):
        return None


def write_json(home: Home, name: str, value: object) -> None:
    _put(folder(home) / name, json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n")


def _put(file: Path, data: bytes) -> None:
    files.make_directories(file.parent)
    files.replace(file, data)

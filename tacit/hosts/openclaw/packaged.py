"""The files that tacit installs into the host: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

import json
from pathlib import Path

from tacit.errors import HostError
from tacit.hosts.openclaw.settings import HOOKS

MANIFEST = "openclaw.plugin.json"
_PACKAGE = Path(__file__).parents[2]
_CANDIDATES = (_PACKAGE / "integrations", _PACKAGE.parent / "integrations")
_SHARED_FILES = (
    "daemon.js",
    "settings.js",
    "package.json",
)  # files of the plugin that a hook needs beside it


def folder(name: str = "openclaw") -> Path:
    path = next((place / name for place in _CANDIDATES if (place / name / MANIFEST).is_file()), None)
    if path is None:
        raise HostError("The plugin's files are not in this installation of tacit. Install tacit again.")
    return path


def plugin_files() -> dict[str, bytes]:
    """The plugin's files by name."""
    return {file.name: file.read_bytes() for file in sorted(folder().iterdir()) if file.is_file()}


def hook_files(name: str) -> dict[str, bytes]:
    """All files of one classic hook by name; it imports nothing from elsewhere."""
    own = {file.name: file.read_bytes() for file in sorted((folder() / "hooks" / name).iterdir())}
    return {**{name: (folder() / name).read_bytes() for name in _SHARED_FILES}, **own}


def all_hook_files() -> dict[str, dict[str, bytes]]:
    return {name: hook_files(name) for name in HOOKS}


def version() -> str:
    return version_in(folder())


def version_in(place: Path) -> str:
    """The version of the plugin in that folder; empty if there is none."""
    try:
        return str(json.loads((place / MANIFEST).read_bytes()).get("version", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def is_same(place: Path, files: dict[str, bytes]) -> bool:
    """Whether the folder holds exactly these contents for these files."""
    try:
        return all((place / name).read_bytes() == data for name, data in files.items())
    except OSError:
        return False

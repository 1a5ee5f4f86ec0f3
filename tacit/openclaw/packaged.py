"""The files that the host gets from us: in a checkout beside the package, in a wheel inside it."""

from __future__ import annotations

import json
from pathlib import Path

from tacit.errors import HostError
from tacit.openclaw.settings import HOOKS

MANIFEST = "openclaw.plugin.json"
_PACKAGE = Path(__file__).parents[1]
_PLACES = (_PACKAGE / "integrations", _PACKAGE.parent / "integrations")
_SHARED = ("daemon.js", "settings.js", "package.json")  # what a hook needs of the plugin, put beside it


def folder(name: str = "openclaw") -> Path:
    found = next((place / name for place in _PLACES if (place / name / MANIFEST).is_file()), None)
    if found is None:
        raise HostError("The plugin's files are not in this installation of tacit. Install tacit again.")
    return found


def plugin() -> dict[str, bytes]:
    """Its files by name."""
    return {file.name: file.read_bytes() for file in sorted(folder().iterdir()) if file.is_file()}


def hook(name: str) -> dict[str, bytes]:
    """The files of one classic hook by name, whole: it imports nothing from elsewhere."""
    own = {file.name: file.read_bytes() for file in sorted((folder() / "hooks" / name).iterdir())}
    return {**{name: (folder() / name).read_bytes() for name in _SHARED}, **own}


def hooks() -> dict[str, dict[str, bytes]]:
    return {name: hook(name) for name in HOOKS}


def version() -> str:
    return version_in(folder())


def version_in(place: Path) -> str:
    """Of the plugin that is there; empty where none is."""
    try:
        return str(json.loads((place / MANIFEST).read_bytes()).get("version", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def is_same(place: Path, files: dict[str, bytes]) -> bool:
    """Whether these files are there as they are here."""
    try:
        return all((place / name).read_bytes() == data for name, data in files.items())
    except OSError:
        return False

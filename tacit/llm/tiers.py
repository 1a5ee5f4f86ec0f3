"""Tiers of models: some tasks need better judgment than a local model has.

A model is local if its server is on this machine or in its network, whatever its name; the one that comes as
a package is small. A task has a minimum tier, and a model below it is never asked."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Literal, get_args
from urllib.parse import urlsplit

from tacit.llm.chat import ChatError

Tier = Literal["small", "local", "cloud"]
_TIERS: tuple[Tier, ...] = get_args(Tier)
_BASE_VARIABLES = {
    "openai": "OPENAI_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
    "gemini": "GOOGLE_GEMINI_BASE_URL",
}
_HOME_NETWORKS = (".local", ".lan", ".home", ".internal", ".localhost")


def determine_tier(model: str, environ: Mapping[str, str]) -> Tier:
    kind, _, name = model.partition(":")
    if kind == "local":
        return "local" if name.startswith("/") else "small"
    url = environ.get(_BASE_VARIABLES[kind], "") if kind in _BASE_VARIABLES else model
    return "local" if url and _is_near(url) else "cloud"


def _is_near(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return True  # it cannot be located
    try:
        return not ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(_HOME_NETWORKS)


_REASONS: Mapping[Tier, str] = {
    "cloud": "which runs on this machine or in its network. Who an agent is takes more judgment than such a "
    "model has: name a hosted one, as anthropic:MODEL, or null.",
    "local": "which is too small to judge: it says yes and no by chance. Name a larger one, or null.",
}


def require_tier(model: str, environ: Mapping[str, str], setting: str, least: Tier) -> None:
    """Raises ChatError if the model is not good enough for the task of the setting."""
    if _TIERS.index(determine_tier(model, environ)) < _TIERS.index(least):
        raise ChatError(f"{setting} is {model[:80]!r}, {_REASONS[least]}")

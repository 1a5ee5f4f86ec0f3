"""The tasks of models: which setting names the model, how good it must be, and whether a turn waits for it.

The ledger counts by task. The first setting that names a model counts; if none does, no model is asked and
built-in rules do the work.

Some tasks need better judgment than a small model has, so each has a minimum tier, and a model below it is
never asked. A model is local if its server is on this machine or in its network; the one that comes as a
package is small."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Literal, NamedTuple, get_args
from urllib.parse import urlsplit

from tacit.hosts.base import load_hosts
from tacit.llm.chat import ChatError

Tier = Literal["small", "local", "cloud"]
_TIERS: tuple[Tier, ...] = get_args(Tier)
_BASE_VARIABLES = {
    "openai": "OPENAI_BASE_URL",
    "anthropic": "ANTHROPIC_BASE_URL",
    "gemini": "GOOGLE_GEMINI_BASE_URL",
}
_HOME_NETWORKS = (".local", ".lan", ".home", ".internal", ".localhost")


class Task(NamedTuple):
    settings: tuple[str, ...]
    least: Tier
    about: str
    in_turns: bool = False  # a turn waits: one attempt


TASKS: Mapping[str, Task] = {
    "gate": Task(("watchers.gate_model",), "local", "whether a topic in doubt applies", in_turns=True),
    "commit": Task(("git.commit_message_model",), "small", "the first line of a commit message"),
    "extract": Task(("lifecycle.extract_model", "lifecycle.model"), "small", "notes from a conversation"),
    "condense": Task(("lifecycle.condense_model", "lifecycle.model"), "small", "summaries and rollups"),
    "prune": Task(("lifecycle.condense_model", "lifecycle.model"), "small", "a shorter MEMORY.md"),
    **{
        task.name: Task((task.setting,), task.tier, task.about)
        for host in load_hosts()
        for task in host.model_tasks
    },
}
EMBED = "embed"  # counted like a task; search.embedding_model has its own rules


def find_model(task: str, settings: Mapping[str, object]) -> tuple[str, str]:
    """The setting that counts and the model that it names; both empty if none does."""
    for setting in TASKS[task].settings:
        model = settings.get(setting)
        if isinstance(model, str) and model:
            return setting, model
    return "", ""


def find_models(settings: Mapping[str, object]) -> dict[str, str]:
    """The models that settings name, by task."""
    return {task: model for task in TASKS if (model := find_model(task, settings)[1])}


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

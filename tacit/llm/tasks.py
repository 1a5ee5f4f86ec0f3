"""The tasks of models: which setting names the model, how good it must be, and whether a turn waits for it.

The ledger counts by task. The first setting that names a model counts; if none does, no model is asked and
built-in rules do the work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tacit.llm.tiers import Tier


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
    "wisdom": Task(("openclaw.wisdom_model",), "local", "the wisdom section"),
    # An agent's identity takes better judgment than a local model has.
    "identity": Task(("openclaw.soul_model",), "cloud", "a shorter SOUL.md"),
}
EMBED = "embed"  # counted like a task; search.embedding_model has its own rules


def find_model(task: str, settings: Mapping[str, object]) -> tuple[str, str]:
    """The setting that counts and the model that it names; both empty if none does."""
    for setting in TASKS[task].settings:
        model = settings.get(setting)
        if isinstance(model, str) and model:
            return setting, model
    return "", ""

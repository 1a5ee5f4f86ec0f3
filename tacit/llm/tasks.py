"""Which setting names the model of a task, how good a model it needs, and whether a turn waits for it.

A task is what a model is asked to do; the ledger counts by it. The first setting that names a model counts;
where none does, nothing is asked and the rules that need no model do the work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tacit.llm.tiers import Tier


class Task(NamedTuple):
    settings: tuple[str, ...]
    least: Tier
    about: str
    in_turns: bool = False  # somebody waits: one attempt and no import


TASKS: Mapping[str, Task] = {
    "gate": Task(("watchers.gate_model",), "local", "whether a topic in doubt applies", in_turns=True),
    "commit": Task(("git.commit_message_model",), "small", "the first line of a commit message"),
    "extract": Task(("lifecycle.extract_model", "lifecycle.model"), "small", "notes from a conversation"),
    "condense": Task(("lifecycle.condense_model", "lifecycle.model"), "small", "summaries and rollups"),
    "prune": Task(("lifecycle.condense_model", "lifecycle.model"), "small", "a shorter MEMORY.md"),
    "wisdom": Task(("openclaw.wisdom_model",), "local", "the wisdom section"),
    # Who an agent is takes more judgment than a model on a desk has.
    "identity": Task(("openclaw.soul_model",), "cloud", "a shorter SOUL.md"),
}
EMBED = "embed"  # counted like a task; search.embedding_model has its own rules


def named_model(task: str, settings: Mapping[str, object]) -> tuple[str, str]:
    """The setting that counts and the model that it names; empty where none does."""
    for setting in TASKS[task].settings:
        model = settings.get(setting)
        if isinstance(model, str) and model:
            return setting, model
    return "", ""

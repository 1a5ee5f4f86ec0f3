"""How a rebuild learns: with which extractors and which model, and where their answers are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tacit.app import ask_for
from tacit.config import Config
from tacit.config.keys import flatten
from tacit.errors import UsageError
from tacit.lifecycle.extractors.registry import chosen
from tacit.llm.items import Ask
from tacit.llm.recorded import Tape
from tacit.llm.tasks import named_model
from tacit.memory import Memory
from tacit.memory.rebuilding import How
from tacit.store.rebuilds import Rebuild, Settings, rebuild_of

RULES = "rules"  # in the place of a model: none


def way_of_learning(
    memory: Memory, name: str, extractors: Sequence[str] = (), model: str | None = None
) -> How:
    """How a rebuild learns: with these extractors and this model (`rules`: none), or as the config says. What
    models answer is recorded with the rebuild, and asked for once."""
    lifecycle = memory.config.lifecycle
    if extractors:
        lifecycle = replace(lifecycle, extractors=tuple(dict.fromkeys(extractors)))
    if model is not None:
        model = None if model == RULES else model
        lifecycle = replace(lifecycle, model=model, extract_model=None, condense_model=None)
    return _way(memory, name, replace(memory.config, lifecycle=lifecycle), condenses=not extractors)


def way_of(memory: Memory, rebuild: Rebuild) -> How:
    """How a rebuild learned that is there."""
    state = rebuild.state()
    assert state is not None
    models = dict(state.settings.models)
    lifecycle = replace(
        memory.config.lifecycle,
        extractors=tuple(label.partition("/")[0] for label in state.settings.extractors),
        model=None,
        extract_model=models.get("extract"),
        condense_model=models.get("condense"),
    )
    config = replace(memory.config, lifecycle=lifecycle)
    return _way(memory, rebuild.name, config, condenses=state.settings.condenses)


def _way(memory: Memory, name: str, config: Config, *, condenses: bool) -> How:
    extractors, problems = chosen(config.lifecycle.extractors)
    if problems:
        raise UsageError(str(problems[0]))
    named = {task: named_model(task, flatten(config))[1] for task in ("extract", "condense")}
    models = tuple((task, model) for task, model in named.items() if model)
    tape = Tape(rebuild_of(memory.home, memory.git, name).calls) if models else None
    asks: dict[str, Ask | None] = {}

    def ask(task: str) -> Ask | None:
        if task not in asks:
            asks[task] = ask_for(config, task, memory.home, tape)
        return asks[task]

    for task, _ in models:
        ask(task)  # a model that cannot be had is told before anything is begun
    # What is done in the work tree is for its branch alone.
    alone = replace(config, git=replace(config.git, auto_commit=False, auto_push=False))
    return How(alone, ask, Settings(tuple(one.label for one in extractors), models, condenses))

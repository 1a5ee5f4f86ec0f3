"""The setup of a rebuild: extractors, models, and where their answers are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tacit.app import ask_for
from tacit.config import Config
from tacit.config.schema import flatten
from tacit.errors import UsageError
from tacit.learn.extractors.registry import load_extractors
from tacit.llm.recording import Recording
from tacit.llm.structured import Ask
from tacit.llm.tasks import find_model
from tacit.memory import Memory
from tacit.rebuild.service import LearningSetup
from tacit.rebuild.store import Rebuild, RebuildSettings, open_rebuild

NO_MODEL = "rules"  # instead of a model name: use no model


def setup_from_options(
    memory: Memory, name: str, extractors: Sequence[str] = (), model: str | None = None
) -> LearningSetup:
    """The setup of a rebuild with these extractors and this model (`rules`: none), by default from the
    config. Model answers are recorded with the rebuild, and each question is asked once."""
    lifecycle = memory.config.lifecycle
    if extractors:
        lifecycle = replace(lifecycle, extractors=tuple(dict.fromkeys(extractors)))
    if model is not None:
        model = None if model == NO_MODEL else model
        lifecycle = replace(lifecycle, model=model, extract_model=None, condense_model=None)
    return _make_setup(memory, name, replace(memory.config, lifecycle=lifecycle), condenses=not extractors)


def restore_setup(memory: Memory, rebuild: Rebuild) -> LearningSetup:
    """The setup of an existing rebuild."""
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
    return _make_setup(memory, rebuild.name, config, condenses=state.settings.condenses)


def _make_setup(memory: Memory, name: str, config: Config, *, condenses: bool) -> LearningSetup:
    extractors, problems = load_extractors(config.lifecycle.extractors)
    if problems:
        raise UsageError(str(problems[0]))
    models_by_task = {task: find_model(task, flatten(config))[1] for task in ("extract", "condense")}
    models = tuple((task, model) for task, model in models_by_task.items() if model)
    tape = Recording(open_rebuild(memory.home, memory.git, name).calls) if models else None
    asks: dict[str, Ask | None] = {}

    def ask(task: str) -> Ask | None:
        if task not in asks:
            asks[task] = ask_for(config, task, memory.home, tape)
        return asks[task]

    for task, _ in models:
        ask(task)  # so that an unavailable model is reported before the rebuild starts
    # Work in the work tree is for its branch alone.
    isolated = replace(config, git=replace(config.git, auto_commit=False, auto_push=False))
    return LearningSetup(
        isolated, ask, RebuildSettings(tuple(extractor.label for extractor in extractors), models, condenses)
    )

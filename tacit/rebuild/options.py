"""The setup of a rebuild: extractors, models, and where their answers are recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tacit.config import Config
from tacit.config.schema import flatten
from tacit.errors import UsageError
from tacit.git.repository import Git
from tacit.home.layout import Home
from tacit.learn.extractors.registry import load_extractors
from tacit.llm.recording import Recording
from tacit.llm.structured import Ask
from tacit.llm.tasks import find_model
from tacit.rebuild.store import Rebuild, RebuildSettings, open_rebuild

NO_MODEL = "rules"  # instead of a model name: use no model


AskByTask = Callable[[str], Ask | None]


class LearningSetup(NamedTuple):
    """How a rebuild learns."""

    config: Config
    ask: AskByTask  # replays recorded answers
    settings: RebuildSettings


def describe_settings(settings: RebuildSettings) -> str:
    models = ", ".join(dict.fromkeys(model for _, model in settings.models)) or "rules"
    return (
        f"{', '.join(settings.extractors)}, by {models}{'' if settings.condenses else ', without summaries'}"
    )


class SetupMaker:
    """`open_ask` returns the model that answers questions of a task under a config, and records them."""

    def __init__(
        self,
        home: Home,
        config: Config,
        git: Git,
        open_ask: Callable[[Config, str, Recording | None], Ask | None],
    ) -> None:
        self._home, self._config, self._git, self._open_ask = home, config, git, open_ask

    def from_options(
        self, name: str, extractors: Sequence[str] = (), model: str | None = None
    ) -> LearningSetup:
        """The setup of a rebuild with these extractors and this model (`rules`: none), by default from the
        config. Model answers are recorded with the rebuild, and each question is asked once."""
        lifecycle = self._config.lifecycle
        if extractors:
            lifecycle = replace(lifecycle, extractors=tuple(dict.fromkeys(extractors)))
        if model is not None:
            model = None if model == NO_MODEL else model
            lifecycle = replace(lifecycle, model=model, extract_model=None, condense_model=None)
        return self._make_setup(name, replace(self._config, lifecycle=lifecycle), condenses=not extractors)

    def restore(self, rebuild: Rebuild) -> LearningSetup:
        """The setup of an existing rebuild."""
        state = rebuild.state()
        assert state is not None
        models = dict(state.settings.models)
        lifecycle = replace(
            self._config.lifecycle,
            extractors=tuple(label.partition("/")[0] for label in state.settings.extractors),
            model=None,
            extract_model=models.get("extract"),
            condense_model=models.get("condense"),
        )
        config = replace(self._config, lifecycle=lifecycle)
        return self._make_setup(rebuild.name, config, condenses=state.settings.condenses)

    def _make_setup(self, name: str, config: Config, *, condenses: bool) -> LearningSetup:
        extractors, problems = load_extractors(config.lifecycle.extractors)
        if problems:
            raise UsageError(str(problems[0]))
        models_by_task = {task: find_model(task, flatten(config))[1] for task in ("extract", "condense")}
        models = tuple((task, model) for task, model in models_by_task.items() if model)
        tape = Recording(open_rebuild(self._home, self._git, name).calls) if models else None
        asks: dict[str, Ask | None] = {}

        def ask(task: str) -> Ask | None:
            if task not in asks:
                asks[task] = self._open_ask(config, task, tape)
            return asks[task]

        for task, _ in models:
            ask(task)  # so that an unavailable model is reported before the rebuild starts
        # Work in the work tree is for its branch alone.
        isolated = replace(config, git=replace(config.git, auto_commit=False, auto_push=False))
        return LearningSetup(
            isolated,
            ask,
            RebuildSettings(tuple(extractor.label for extractor in extractors), models, condenses),
        )

"""The available extractors by name: those built in, and those that users add.

One that is built in is a module here and its name in `EXTRACTORS` of tacit/config/schema.py.

A user's extractor is a package with an entry point in the group `tacit.extractors`, which has the
extractor's name and refers to an `Extractor`. It is loaded only when its name is requested. If it cannot be
loaded, that is a Problem, and the others still run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from tacit.config.conversion import find_nearest
from tacit.config.schema import EXTRACTORS
from tacit.diagnostics import Problem
from tacit.errors import UsageError
from tacit.learn.extractors.extractor import Extractor

GROUP = "tacit.extractors"
BUILT_IN: Mapping[str, Extractor] = {
    name: import_module(f"tacit.learn.extractors.{name}").EXTRACTOR for name in EXTRACTORS
}


class LoadedExtractors(NamedTuple):
    extractors: list[Extractor]
    problems: list[Problem]


def load_extractors(names: Sequence[str]) -> LoadedExtractors:
    """Load the extractors with these names, each once, in their order."""
    extractors: list[Extractor] = []
    problems: list[Problem] = []
    for name in dict.fromkeys(names):
        extractor = BUILT_IN.get(name) or _load_plugin(name)
        if isinstance(extractor, Problem):
            problems.append(extractor)
        else:
            extractors.append(extractor)
    return LoadedExtractors(extractors, problems)


def _load_plugin(name: str) -> Extractor | Problem:
    from importlib.metadata import entry_points  # rarely needed, and it searches all packages

    points = entry_points(group=GROUP)
    entry_point = next((candidate for candidate in points if candidate.name == name), None)
    if entry_point is None:
        near = find_nearest(name, [*BUILT_IN, *(candidate.name for candidate in points)])
        hint = f"Did you mean {near!r}?" if near else f"There are: {', '.join(BUILT_IN)}."
        raise UsageError(f"There is no extractor {name!r}. {hint}")
    try:
        loaded = entry_point.load()
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything; the others go on
        return _make_problem(name, f"it cannot be loaded from {entry_point.value}: {error!r}.")
    if not isinstance(loaded, Extractor):
        return _make_problem(name, f"{entry_point.value} is a {type(loaded).__name__}, not an Extractor.")
    if loaded.name != name or not isinstance(loaded.version, int) or loaded.version < 1:
        return _make_problem(name, f"{entry_point.value} calls itself {loaded.name}/{loaded.version}.")
    return loaded


def _make_problem(name: str, message: str) -> Problem:
    todo = "Repair or remove its package, or take its name out of lifecycle.extractors."
    return Problem(f"extractor {name}", message, todo)

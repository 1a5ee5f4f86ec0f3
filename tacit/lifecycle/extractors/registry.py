"""The extractors that are there, by name: six built in, and those that a user brings.

A user's own is a package with an entry point in the group `tacit.extractors`, whose name is the extractor's
and whose object is an `Extractor`. It is loaded only when its name is asked for. One that cannot be loaded
is a Problem, and the others go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tacit.config.values import nearest
from tacit.errors import UsageError
from tacit.lifecycle.extractors import decisions, facts, journal, lessons, people, procedures
from tacit.lifecycle.extractors.extractor import Extractor
from tacit.model.problems import Problem

GROUP = "tacit.extractors"
BUILT_IN: Mapping[str, Extractor] = {
    module.EXTRACTOR.name: module.EXTRACTOR
    for module in (decisions, lessons, people, procedures, facts, journal)
}


class Chosen(NamedTuple):
    extractors: list[Extractor]
    problems: list[Problem]


def chosen(names: Sequence[str]) -> Chosen:
    """Those of these names, each once, in their order."""
    found: list[Extractor] = []
    problems: list[Problem] = []
    for name in dict.fromkeys(names):
        one = BUILT_IN.get(name) or _own(name)
        if isinstance(one, Problem):
            problems.append(one)
        else:
            found.append(one)
    return Chosen(found, problems)


def _own(name: str) -> Extractor | Problem:
    from importlib.metadata import entry_points  # few have one, and it looks through all packages

    points = entry_points(group=GROUP)
    point = next((one for one in points if one.name == name), None)
    if point is None:
        near = nearest(name, [*BUILT_IN, *(one.name for one in points)])
        hint = f"Did you mean {near!r}?" if near else f"There are: {', '.join(BUILT_IN)}."
        raise UsageError(f"There is no extractor {name!r}. {hint}")
    try:
        loaded = point.load()
    except Exception as error:  # noqa: BLE001 - somebody else's code: whatever it raises, the others go on
        return _problem(name, f"it cannot be loaded from {point.value}: {error!r}.")
    if not isinstance(loaded, Extractor):
        return _problem(name, f"{point.value} is no Extractor but {type(loaded).__name__}.")
    if loaded.name != name or not isinstance(loaded.version, int) or loaded.version < 1:
        return _problem(name, f"{point.value} calls itself {loaded.name}/{loaded.version}.")
    return loaded


def _problem(name: str, what: str) -> Problem:
    todo = "Repair or remove the package that brings it, or take its name out of lifecycle.extractors."
    return Problem(f"extractor {name}", what, todo)

"""The topics of a home, read again only when their files change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tacit.errors import TacitError
from tacit.model.problems import Problem
from tacit.model.search import Stamp
from tacit.model.topics import Topic
from tacit.text.notes import decode
from tacit.text.topics import read as read_topic


@dataclass(slots=True)
class Shelf:
    """One bad file is a problem of its own; the others are there all the same."""

    _read: dict[str, tuple[Stamp, Topic | None, tuple[Problem, ...]]] = field(default_factory=dict)
    topics: tuple[Topic, ...] = ()
    problems: tuple[Problem, ...] = ()
    generation: int = 0  # grows when a topic changed

    def refresh(self, listed: Mapping[str, Stamp], read: Callable[[str], bytes]) -> None:
        known = {path: kept for path, kept in self._read.items() if listed.get(path) == kept[0]}
        if len(known) == len(listed) == len(self._read):
            return
        for path in sorted(listed.keys() - known.keys()):
            known[path] = (listed[path], *_loaded(path, read))
        self._read = known
        self.generation += 1
        self._gather()

    def _gather(self) -> None:
        found: dict[str, Topic] = {}
        problems: list[Problem] = []
        for path in sorted(self._read):
            _, topic, trouble = self._read[path]
            problems += trouble
            if topic is None:
                continue
            if topic.name in found:
                what = f"has the same name as {found[topic.name].path}, which is used."
                problems.append(Problem(path, what, "Give it another name."))
            else:
                found[topic.name] = topic
        self.topics, self.problems = tuple(found.values()), tuple(problems)


def _loaded(path: str, read: Callable[[str], bytes]) -> tuple[Topic | None, tuple[Problem, ...]]:
    try:
        return read_topic(path, decode(read(path)))
    except (TacitError, OSError) as error:
        return None, (Problem(path, f"cannot be read: {error}"),)

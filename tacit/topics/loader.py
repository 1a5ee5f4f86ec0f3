"""Loads the topics of a home and reloads those whose files change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tacit.diagnostics import Problem
from tacit.errors import TacitError
from tacit.home.listing import Stamp
from tacit.markdown.notes import decode
from tacit.topics.model import Topic
from tacit.topics.parser import parse_topic as read_topic


@dataclass(slots=True)
class TopicLoader:
    """The loaded topics. A bad file becomes a problem; the others are loaded anyway."""

    _files: dict[str, tuple[Stamp, Topic | None, tuple[Problem, ...]]] = field(default_factory=dict)
    topics: tuple[Topic, ...] = ()
    problems: tuple[Problem, ...] = ()
    generation: int = 0  # grows when a topic changes

    def refresh(self, listed: Mapping[str, Stamp], read: Callable[[str], bytes]) -> None:
        entries = {path: entry for path, entry in self._files.items() if listed.get(path) == entry[0]}
        if len(entries) == len(listed) == len(self._files):
            return
        for path in sorted(listed.keys() - entries.keys()):
            entries[path] = (listed[path], *_load(path, read))
        self._files = entries
        self.generation += 1
        self._collect()

    def _collect(self) -> None:
        by_name: dict[str, Topic] = {}
        problems: list[Problem] = []
        for path in sorted(self._files):
            _, topic, file_problems = self._files[path]
            problems += file_problems
            if topic is None:
                continue
            if topic.name in by_name:
                message = f"has the same name as {by_name[topic.name].path}, which is used."
                problems.append(Problem(path, message, "Give it another name."))
            else:
                by_name[topic.name] = topic
        self.topics, self.problems = tuple(by_name.values()), tuple(problems)


def _load(path: str, read: Callable[[str], bytes]) -> tuple[Topic | None, tuple[Problem, ...]]:
    try:
        return read_topic(path, decode(read(path)))
    except (TacitError, OSError) as error:
        return None, (Problem(path, f"cannot be read: {error}"),)

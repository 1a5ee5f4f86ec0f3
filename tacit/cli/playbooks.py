"""Topics as people see them: what wakes each, whom it is for, what it brings, what is wrong with it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from typing import TypeGuard

from tacit.context.loaded_files import FileLoader, Listener, LoadedBlock
from tacit.context.model import Dropped
from tacit.diagnostics import Problem
from tacit.home.listing import ENDINGS
from tacit.markdown import notes
from tacit.memory import Memory
from tacit.sessions.keys import DEFAULT_AGENT
from tacit.terminal.lines import clip, one_line
from tacit.topics.model import Activation, Topic, TopicDecision, Trigger
from tacit.topics.patterns import PatternMatcher

MAX_TRIGGER_CHARS = 40  # characters of a trigger


def find_topic_problems(memory: Memory) -> list[Problem]:
    """Problems of topic files, their triggers and their subscriptions."""
    catalog = memory.turns.topics()
    found_problems = [
        *_find_odd_entries(str(memory.home.root)),
        *catalog.problems,
        *(Problem(topic.path, *_NOT_TEXT) for topic in catalog.topics if "\0" in topic.body),
        *PatternMatcher(catalog.topics).problems,
        *(problem for topic in catalog.topics for problem in _check_subscriptions(memory, topic)),
    ]
    return sorted(found_problems, key=lambda problem: (problem.where, problem.line or 0))


_NOT_TEXT = ("is not text, though its name says so.", "Take it out of topics/.")


def _find_odd_entries(root: str) -> Iterator[Problem]:
    """Entries that look like topics but are not plain files."""
    for directory, folders, names in os.walk(f"{root}/topics"):
        folders.sort()
        for name in sorted((*folders, *names)):
            path = f"{directory}/{name}"
            oddity, level = _oddity(path, name)
            if oddity:
                todo = "Topics are plain files whose names end in .md."
                yield Problem(os.path.relpath(path, root), oddity, todo, level=level)


def _oddity(path: str, name: str) -> tuple[str, str]:
    try:
        mode = os.lstat(path).st_mode
    except OSError:  # deleted meanwhile
        return "", ""
    if stat.S_ISLNK(mode):
        return "is a link, which is not followed.", "error"
    if not name.endswith(ENDINGS) or stat.S_ISREG(mode):
        return "", ""
    if stat.S_ISDIR(mode):
        return "is a folder; what is in it is read all the same.", "warning"
    return "is no plain file and is passed over.", "error"


def _check_subscriptions(memory: Memory, topic: Topic) -> Iterator[Problem]:
    for block in load_topic_blocks(memory, topic):
        if is_absent(block):
            description = f"It subscribes to {block.source}: {block.reason.removesuffix('.')}."
            todo = "Write that file, or take it out of the subscriptions." if block.code == "missing" else ""
            yield Problem(topic.path, description, todo, _line_of(memory, topic, block.source), "warning")


def is_absent(one: LoadedBlock) -> TypeGuard[Dropped]:
    return isinstance(one, Dropped) and one.code in ("missing", "unsafe")


def _line_of(memory: Memory, topic: Topic, text: str) -> int | None:
    head, _ = notes.split(notes.decode(memory.turns.present.read(topic.path)))
    lines = enumerate(head.split("\n"), 1)
    return next((number for number, line in lines if text in line), None)


def load_topic_blocks(memory: Memory, topic: Topic) -> list[LoadedBlock]:
    """The topic and its subscriptions, as the owner would get them."""
    decision = TopicDecision("", "", topic.name, False, 0.0, "activated", "asked", "asked for by name")
    listener = Listener("owner", topic.agents[0] if topic.agents else DEFAULT_AGENT)
    present = memory.turns.present
    return list(FileLoader(present.read, listener, present.agents_of).topics([Activation(topic, decision)]))


def exit_code(wrong: Iterable[Problem]) -> int:
    return 1 if any(problem.level == "error" for problem in wrong) else 0


# Short descriptions


def describe_audience(topic: Topic) -> str:
    """The topic's audience and agents; the default audience, `group`, is left out."""
    parts = [topic.audience] if topic.audience != "group" else []
    return one_line(", ".join((*parts, *topic.agents)))


def describe_triggers(topic: Topic) -> str:
    if topic.activation == "manual":
        return "its name"
    parts = [*map(_describe_trigger, topic.triggers), *(["similarity"] if topic.by_similarity else [])]
    return ", ".join(parts) or "nothing"


def _describe_trigger(trigger: Trigger) -> str:
    text = {
        "pattern": f'pattern "{clip(one_line(trigger.match), MAX_TRIGGER_CHARS)}"',
        "webhook": f"webhook {trigger.source}/{trigger.event or '*'}",
        "cron": f"cron {trigger.schedule}",
    }.get(trigger.type) or f"{trigger.type} {trigger.match} {', '.join(trigger.words[:3])}"
    rest = f" and {len(trigger.words) - 3} more" if len(trigger.words) > 3 else ""
    side = "" if trigger.scope == "input" else f" ({trigger.scope})"
    return one_line(text) + rest + side

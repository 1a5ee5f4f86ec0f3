"""Topics as people see them: what wakes each, whom it is for, what it brings, what is wrong with it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from typing import TypeGuard

from tacit.cli.lines import clipped, one_line
from tacit.context.sources import Listener, Loaded, Sources
from tacit.memory import Memory
from tacit.model.context import Dropped
from tacit.model.problems import Problem
from tacit.model.topics import Activation, Decision, Topic, Trigger
from tacit.sessions.classify import DEFAULT_AGENT
from tacit.store.listing import ENDINGS
from tacit.text import notes
from tacit.watch.patterns import PatternMatcher

SHOWN = 40  # characters of a trigger


def problems(memory: Memory) -> list[Problem]:
    """With the files themselves, their triggers, and what they subscribe to."""
    shelf = memory.turns.topics()
    found = [
        *_passed_over(str(memory.home.root)),
        *shelf.problems,
        *(Problem(topic.path, *_NO_TEXT) for topic in shelf.topics if "\0" in topic.body),
        *PatternMatcher(shelf.topics).problems,
        *(problem for topic in shelf.topics for problem in _subscription_problems(memory, topic)),
    ]
    return sorted(found, key=lambda problem: (problem.where, problem.line or 0))


_NO_TEXT = ("is not text, though its name says so.", "Take it out of topics/.")


def _passed_over(root: str) -> Iterator[Problem]:
    """What looks like a topic and is no plain file."""
    for here, folders, names in os.walk(f"{root}/topics"):
        folders.sort()
        for name in sorted((*folders, *names)):
            path = f"{here}/{name}"
            what, level = _oddity(path, name)
            if what:
                todo = "Topics are plain files whose names end in .md."
                yield Problem(os.path.relpath(path, root), what, todo, level=level)


def _oddity(path: str, name: str) -> tuple[str, str]:
    try:
        mode = os.lstat(path).st_mode
    except OSError:  # gone while we were looking
        return "", ""
    if stat.S_ISLNK(mode):
        return "is a link, which is not followed.", "error"
    if not name.endswith(ENDINGS) or stat.S_ISREG(mode):
        return "", ""
    if stat.S_ISDIR(mode):
        return "is a folder; what is in it is read all the same.", "warning"
    return "is no plain file and is passed over.", "error"


def _subscription_problems(memory: Memory, topic: Topic) -> Iterator[Problem]:
    for one in loaded(memory, topic):
        if is_absent(one):
            what = f"It subscribes to {one.source}: {one.reason.removesuffix('.')}."
            todo = "Write that file, or take it out of the subscriptions." if one.code == "missing" else ""
            yield Problem(topic.path, what, todo, _line_of(memory, topic, one.source), "warning")


def is_absent(one: Loaded) -> TypeGuard[Dropped]:
    return isinstance(one, Dropped) and one.code in ("missing", "unsafe")


def _line_of(memory: Memory, topic: Topic, words: str) -> int | None:
    head, _ = notes.split(notes.decode(memory.turns.present.read(topic.path)))
    lines = enumerate(head.split("\n"), 1)
    return next((number for number, line in lines if words in line), None)


def loaded(memory: Memory, topic: Topic) -> list[Loaded]:
    """The topic and what it subscribes to, as the owner would get them."""
    asked = Decision("", "", topic.name, False, 0.0, "activated", "asked", "asked for by name")
    listener = Listener("owner", topic.agents[0] if topic.agents else DEFAULT_AGENT)
    present = memory.turns.present
    return list(Sources(present.read, listener, present.agents_of).topics([Activation(topic, asked)]))


def code_of(wrong: Iterable[Problem]) -> int:
    return 1 if any(problem.level == "error" for problem in wrong) else 0


# In a few words


def audience(topic: Topic) -> str:
    """Who it is for, where that is not everybody in a group."""
    told = [topic.audience] if topic.audience != "group" else []
    return one_line(", ".join((*told, *topic.agents)))


def wakes_on(topic: Topic) -> str:
    if topic.activation == "manual":
        return "its name"
    told = [*map(_short, topic.triggers), *(["similarity"] if topic.by_similarity else [])]
    return ", ".join(told) or "nothing"


def _short(trigger: Trigger) -> str:
    told = {
        "pattern": f'pattern "{clipped(one_line(trigger.match), SHOWN)}"',
        "webhook": f"webhook {trigger.source}/{trigger.event or '*'}",
        "cron": f"cron {trigger.schedule}",
    }.get(trigger.type) or f"{trigger.type} {trigger.match} {', '.join(trigger.words[:3])}"
    more = f" and {len(trigger.words) - 3} more" if len(trigger.words) > 3 else ""
    side = "" if trigger.scope == "input" else f" ({trigger.scope})"
    return one_line(told) + more + side

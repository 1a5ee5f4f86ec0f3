"""What is wrong with topic files, their triggers and their subscriptions."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import TypeGuard

from tacit.context.home_view import LiveHome
from tacit.context.loaded_files import FileLoader, Listener, LoadedBlock
from tacit.context.model import Dropped
from tacit.diagnostics import Problem
from tacit.home.listing import ENDINGS
from tacit.markdown import notes
from tacit.sessions.keys import DEFAULT_AGENT
from tacit.topics.model import Activation, Topic, TopicDecision
from tacit.topics.patterns import PatternMatcher


def find_topic_problems(root: str, present: LiveHome) -> list[Problem]:
    """Problems of topic files, their triggers and their subscriptions."""
    catalog = present.shelf()
    problems = [
        *_find_odd_entries(root),
        *catalog.problems,
        *(Problem(topic.path, *_NOT_TEXT) for topic in catalog.topics if "\0" in topic.body),
        *PatternMatcher(catalog.topics).problems,
        *(problem for topic in catalog.topics for problem in _check_subscriptions(present, topic)),
    ]
    return sorted(problems, key=lambda problem: (problem.where, problem.line or 0))


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


def _check_subscriptions(present: LiveHome, topic: Topic) -> Iterator[Problem]:
    for block in load_topic_blocks(present, topic):
        if is_absent(block):
            description = f"It subscribes to {block.source}: {block.reason.removesuffix('.')}."
            todo = "Write that file, or take it out of the subscriptions." if block.code == "missing" else ""
            yield Problem(topic.path, description, todo, _line_of(present, topic, block.source), "warning")


def is_absent(block: LoadedBlock) -> TypeGuard[Dropped]:
    return isinstance(block, Dropped) and block.code in ("missing", "unsafe")


def _line_of(present: LiveHome, topic: Topic, text: str) -> int | None:
    head, _ = notes.split(notes.decode(present.read(topic.path)))
    lines = enumerate(head.split("\n"), 1)
    return next((number for number, line in lines if text in line), None)


def load_topic_blocks(present: LiveHome, topic: Topic) -> list[LoadedBlock]:
    """The topic and its subscriptions, as the owner would get them."""
    decision = TopicDecision("", "", topic.name, False, 0.0, "activated", "asked", "asked for by name")
    listener = Listener("owner", topic.agents[0] if topic.agents else DEFAULT_AGENT)
    return list(FileLoader(present.read, listener, present.agents_of).topics([Activation(topic, decision)]))

"""Playbooks: list them, try a message on them, what is due.

  list  every topic, what wakes it, and what is wrong (this is also what no ACTION does)
  show  everything about one
  try   which topics a message would wake, and why the others would not; nothing is logged
  due   topics whose schedules came due

For schedules let cron ask every few minutes, with `tacit topics due --json --done`, and begin a turn for
each topic that it names: `tacit compile "" --cron NAME`, or Memory.turn with an Event.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tacit.app import open_home
from tacit.cli import schedules, trial
from tacit.cli.playbooks import (
    MAX_TRIGGER_CHARS,
    describe_audience,
    describe_triggers,
    exit_code,
    find_topic_problems,
    is_absent,
    load_topic_blocks,
)
from tacit.context.blocks import TOKENS_PER_KB, Block
from tacit.context.loaded_files import LoadedBlock
from tacit.context.model import Dropped
from tacit.diagnostics import Problem
from tacit.errors import UsageError
from tacit.memory import Memory
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, utf8_argument
from tacit.terminal.lines import clip, one_line, terminal_width
from tacit.text import tokens
from tacit.topics.model import Topic, Trigger
from tacit.topics.policy import own_threshold

_MAX_DESCRIPTION_CHARS = 200


def arguments(parser: argparse.ArgumentParser) -> None:
    add_home_option(parser)
    add_json_option(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for name, (about, *_) in _ACTIONS.items():
        action = actions.add_parser(name, help=about, description=about)
        _add_arguments(action, name)
        # A default would override the same option given before the action.
        action.add_argument("--home", metavar="DIR", default=argparse.SUPPRESS, help="the home")
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


def _add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    if name == "show":
        parser.add_argument("name", type=utf8_argument, help="the topic's name, or its file")
    if name == "try":
        parser.add_argument(
            "message", type=utf8_argument, help="what is said; - reads it from standard input"
        )
        parser.add_argument(
            "--session-key",
            type=utf8_argument,
            default="agent:main:main",
            metavar="KEY",
            help="whose session it is",
        )
        parser.add_argument(
            "--path",
            type=utf8_argument,
            action="append",
            default=[],
            help="a file that tools touched; may be repeated",
        )
        parser.add_argument("--output", action="store_true", help="these are the agent's own words")
    if name == "due":
        parser.add_argument(
            "--since",
            type=utf8_argument,
            metavar="WHEN",
            help="a time, a date (its beginning) or a span such as `2 hours` "
            "(default: when --done was last said, at first 24 hours)",
        )
        parser.add_argument("--done", action="store_true", help="remember that this was looked at")
        parser.epilog = f"For cron: tacit topics due --json --done. {schedules.START_HINT}"


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    _, act = _ACTIONS[options.action or "list"]
    return act(memory, options)


# list


def _list(memory: Memory, options: argparse.Namespace) -> int:
    topics, diagnostics = (
        sorted(memory.turns.topics().topics, key=lambda topic: topic.name),
        find_topic_problems(memory),
    )
    if options.json:
        values = [_topic_json(topic, load_topic_blocks(memory, topic)) for topic in topics]
        output.dump({"topics": values, "problems": [asdict(problem) for problem in diagnostics]})
        return exit_code(diagnostics)
    if topics:
        rows = [_HEADER, *(_row(topic, load_topic_blocks(memory, topic)) for topic in topics)]
        output.print_table(_fit_to_terminal(rows))
    else:
        output.say("There are no topics. A topic is a note in topics/, such as topics/weekly-review.md.")
    _say_problems(diagnostics)
    return exit_code(diagnostics)


_HEADER = ("topic", "activation", "priority", "subscribes", "for", "wakes on")


def _row(topic: Topic, blocks: Sequence[LoadedBlock]) -> tuple[str, ...]:
    absent = sum(map(is_absent, blocks))
    count = str(len(topic.subscriptions)) + (f", {absent} not there" if absent else "")
    return (
        clip(one_line(topic.name), MAX_TRIGGER_CHARS),
        topic.activation,
        topic.priority,
        count,
        describe_audience(topic),
        describe_triggers(topic),
    )


def _fit_to_terminal(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Cut the last column to what the terminal has room for."""
    used = sum(2 + max(len(cell) for cell in column) for column in list(zip(*rows, strict=True))[:-1])
    room = max(MAX_TRIGGER_CHARS, terminal_width() - used - 2)
    return ((*row[:-1], clip(row[-1], room)) for row in rows)


def _say_problems(diagnostics: Sequence[Problem]) -> None:
    if diagnostics:
        output.say()
    for problem in diagnostics:
        output.say(f"{problem.level}: {problem}")


def _topic_json(topic: Topic, blocks: Sequence[LoadedBlock]) -> dict[str, Any]:
    plain = {key: value for key, value in asdict(topic).items() if key not in ("body", "day")}
    absent = {block.source: block.reason for block in blocks if is_absent(block)}
    plain["triggers"] = [_trigger_json(trigger) for trigger in topic.triggers]
    plain["subscriptions"] = [{"path": path, "problem": absent.get(path)} for path in topic.subscriptions]
    return plain


def _trigger_json(trigger: Trigger) -> dict[str, Any]:
    return {key: value for key, value in asdict(trigger).items() if value}


# show


def _show(memory: Memory, options: argparse.Namespace) -> int:
    name = options.name.rpartition("/")[2].removesuffix(".md")
    topic = next((topic for topic in memory.turns.topics().topics if topic.name == name), None)
    diagnostics = [
        problem
        for problem in find_topic_problems(memory)
        if problem.where.rpartition("/")[2].removesuffix(".md") == name
    ]
    if topic is None:
        if not diagnostics:
            raise UsageError(f"There is no topic {options.name!r}. See: tacit topics")
        if options.json:
            output.dump({"name": name, "problems": [asdict(problem) for problem in diagnostics]})
        else:
            output.say(f"{name} cannot be used.")
            _say_problems(diagnostics)
        return exit_code(diagnostics)
    size = _Size.of(topic, load_topic_blocks(memory, topic))
    if options.json:
        output.dump(
            {**_topic_json(topic, size.brought), **size.value(), "problems": list(map(asdict, diagnostics))}
        )
        return exit_code(diagnostics)
    output.print_table(_facts(memory, topic, size), indent="")
    _say_problems(diagnostics)
    return exit_code(diagnostics)


@dataclass(frozen=True, slots=True)
class _Size:
    """What a topic brings into a prompt, in tokens."""

    brought: Sequence[LoadedBlock]
    counts: Mapping[str, int]  # by path
    most: int

    @classmethod
    def of(cls, topic: Topic, blocks: Sequence[LoadedBlock]) -> _Size:
        counts = {block.source: tokens.count(block.text) for block in blocks if isinstance(block, Block)}
        return cls(blocks, counts, int(topic.max_context_kb * TOKENS_PER_KB))

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def value(self) -> dict[str, Any]:
        most = {"tokens_at_most": self.most, "exceeds": self.total > self.most}
        return {"tokens": dict(self.counts), "tokens_in_all": self.total, **most}


def _facts(memory: Memory, topic: Topic, size: _Size) -> Iterator[tuple[str, str]]:
    yield topic.name, one_line(topic.title)
    yield "file", topic.path
    yield "about", clip(one_line(topic.description), _MAX_DESCRIPTION_CHARS)
    yield "wakes", _describe_mode(topic)
    yield "for", describe_audience(topic) or "the owner and groups"
    for number, trigger in enumerate(topic.triggers, 1):
        yield f"trigger {number}", ", ".join(_trigger_parts(trigger))
    threshold = own_threshold(topic, memory.config.watchers.similarity_threshold)
    origin = "of the home" if topic.similarity_threshold is None else "its own"
    yield "threshold", f"{threshold:g}, {origin}"
    if topic.keywords:
        yield "looks for", one_line(", ".join(topic.keywords))
    if topic.steering:
        yield "corrects", f"the agent's own words, at most once in {topic.steering_pause} turns"
    for block in size.brought:
        label = "text" if block.source == topic.path else "subscribes to"
        yield label, one_line(f"{block.source}: {_tokens_of(block, size.counts)}")
    yield "in all", _format_total(topic, size)


def _describe_mode(topic: Topic) -> str:
    condition = {
        "auto": "by itself when a trigger matches (auto)",
        "gated": "when a trigger matches and the score or the gate agree (gated)",
        "manual": "only when it is asked for (manual)",
    }[topic.activation]
    similarity = ", or by similarity alone" if topic.by_similarity else ""
    return f"{condition}{similarity}; {topic.priority} priority"


def _trigger_parts(trigger: Trigger) -> Iterator[str]:
    yield trigger.type
    for key, value in _trigger_json(trigger).items():
        if key == "type" or (key, value) == ("scope", "input"):
            continue
        text = ", ".join(value) if key == "words" else value
        yield f"{key} {one_line(text)}"


def _tokens_of(block: LoadedBlock, counts: Mapping[str, int]) -> str:
    return block.reason if isinstance(block, Dropped) else output.pluralize(counts[block.source], "token")


def _format_total(topic: Topic, size: _Size) -> str:
    usage = f"{size.total:,} of at most {size.most:,} tokens (max_context_kb {topic.max_context_kb:g})"
    return f"{usage}: too much, so the end is cut" if size.total > size.most else usage


_ACTIONS = {
    "list": ("Every topic, what wakes it, and what is wrong.", _list),
    "show": ("Everything about one topic.", _show),
    "try": ("Which topics a message would wake, and why. Nothing is logged.", trial.run),
    "due": ("Topics whose schedules came due, each once, with the last time that they did.", schedules.run),
}

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
from tacit.cli import output, schedules, trial
from tacit.cli.dispatch import home_option, json_option, words
from tacit.cli.lines import clipped, one_line, terminal_width
from tacit.cli.playbooks import SHOWN, audience, code_of, is_absent, loaded, problems, wakes_on
from tacit.context.blocks import KB, Block
from tacit.context.sources import Loaded
from tacit.errors import UsageError
from tacit.memory import Memory
from tacit.model.context import Dropped
from tacit.model.problems import Problem
from tacit.model.topics import Topic, Trigger
from tacit.text import tokens
from tacit.watch.table import own_threshold

_LONG = 200  # characters of a description


def arguments(parser: argparse.ArgumentParser) -> None:
    home_option(parser)
    json_option(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for name, (about, *_) in _ACTIONS.items():
        action = actions.add_parser(name, help=about, description=about)
        _own(action, name)
        # With a default it would undo what stands before the action.
        action.add_argument("--home", metavar="DIR", default=argparse.SUPPRESS, help="the home")
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


def _own(parser: argparse.ArgumentParser, name: str) -> None:
    if name == "show":
        parser.add_argument("name", type=words, help="the topic's name, or its file")
    if name == "try":
        parser.add_argument("message", type=words, help="what is said; - reads it from standard input")
        parser.add_argument(
            "--session-key", type=words, default="agent:main:main", metavar="KEY", help="whose session it is"
        )
        parser.add_argument(
            "--path",
            type=words,
            action="append",
            default=[],
            help="a file that tools touched; may be repeated",
        )
        parser.add_argument("--output", action="store_true", help="these are the agent's own words")
    if name == "due":
        parser.add_argument(
            "--since",
            type=words,
            metavar="WHEN",
            help="a time, a date (its beginning) or a span such as `2 hours` "
            "(default: when --done was last said, at first 24 hours)",
        )
        parser.add_argument("--done", action="store_true", help="remember that this was looked at")
        parser.epilog = f"For cron: tacit topics due --json --done. {schedules.BEGIN}"


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    _, act = _ACTIONS[options.action or "list"]
    return act(memory, options)


# All of them


def _list(memory: Memory, options: argparse.Namespace) -> int:
    topics, wrong = sorted(memory.turns.topics().topics, key=lambda topic: topic.name), problems(memory)
    if options.json:
        values = [_value(topic, loaded(memory, topic)) for topic in topics]
        output.dump({"topics": values, "problems": [asdict(problem) for problem in wrong]})
        return code_of(wrong)
    if topics:
        rows = [_HEADER, *(_row(topic, loaded(memory, topic)) for topic in topics)]
        output.table(_fitted(rows))
    else:
        output.say("There are no topics. A topic is a note in topics/, such as topics/weekly-review.md.")
    _say_problems(wrong)
    return code_of(wrong)


_HEADER = ("topic", "activation", "priority", "subscribes", "for", "wakes on")


def _row(topic: Topic, brought: Sequence[Loaded]) -> tuple[str, ...]:
    absent = sum(map(is_absent, brought))
    count = str(len(topic.subscriptions)) + (f", {absent} not there" if absent else "")
    return (
        clipped(one_line(topic.name), SHOWN),
        topic.activation,
        topic.priority,
        count,
        audience(topic),
        wakes_on(topic),
    )


def _fitted(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """The last column as wide as the terminal allows."""
    used = sum(2 + max(len(cell) for cell in column) for column in list(zip(*rows, strict=True))[:-1])
    room = max(SHOWN, terminal_width() - used - 2)
    return ((*row[:-1], clipped(row[-1], room)) for row in rows)


def _say_problems(wrong: Sequence[Problem]) -> None:
    if wrong:
        output.say()
    for problem in wrong:
        output.say(f"{problem.level}: {problem}")


def _value(topic: Topic, brought: Sequence[Loaded]) -> dict[str, Any]:
    plain = {key: value for key, value in asdict(topic).items() if key not in ("body", "day")}
    absent = {one.source: one.reason for one in brought if is_absent(one)}
    plain["triggers"] = [_trigger(trigger) for trigger in topic.triggers]
    plain["subscriptions"] = [{"path": path, "problem": absent.get(path)} for path in topic.subscriptions]
    return plain


def _trigger(trigger: Trigger) -> dict[str, Any]:
    return {key: value for key, value in asdict(trigger).items() if value}


# One of them


def _show(memory: Memory, options: argparse.Namespace) -> int:
    name = options.name.rpartition("/")[2].removesuffix(".md")
    topic = next((topic for topic in memory.turns.topics().topics if topic.name == name), None)
    wrong = [one for one in problems(memory) if one.where.rpartition("/")[2].removesuffix(".md") == name]
    if topic is None:
        if not wrong:
            raise UsageError(f"There is no topic {options.name!r}. See: tacit topics")
        if options.json:
            output.dump({"name": name, "problems": [asdict(problem) for problem in wrong]})
        else:
            output.say(f"{name} cannot be used.")
            _say_problems(wrong)
        return code_of(wrong)
    size = _Size.of(topic, loaded(memory, topic))
    if options.json:
        output.dump({**_value(topic, size.brought), **size.value(), "problems": list(map(asdict, wrong))})
        return code_of(wrong)
    output.table(_facts(memory, topic, size), indent="")
    _say_problems(wrong)
    return code_of(wrong)


@dataclass(frozen=True, slots=True)
class _Size:
    """What a topic brings into a prompt, in tokens."""

    brought: Sequence[Loaded]
    counts: Mapping[str, int]  # by path
    most: int

    @classmethod
    def of(cls, topic: Topic, brought: Sequence[Loaded]) -> _Size:
        counts = {one.source: tokens.count(one.text) for one in brought if isinstance(one, Block)}
        return cls(brought, counts, int(topic.max_context_kb * KB))

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def value(self) -> dict[str, Any]:
        most = {"tokens_at_most": self.most, "exceeds": self.total > self.most}
        return {"tokens": dict(self.counts), "tokens_in_all": self.total, **most}


def _facts(memory: Memory, topic: Topic, size: _Size) -> Iterator[tuple[str, str]]:
    yield topic.name, one_line(topic.title)
    yield "file", topic.path
    yield "about", clipped(one_line(topic.description), _LONG)
    yield "wakes", _mode(topic)
    yield "for", audience(topic) or "the owner and groups"
    for number, trigger in enumerate(topic.triggers, 1):
        yield f"trigger {number}", ", ".join(_full(trigger))
    own = own_threshold(topic, memory.config.watchers.similarity_threshold)
    whose = "of the home" if topic.similarity_threshold is None else "its own"
    yield "threshold", f"{own:g}, {whose}"
    if topic.keywords:
        yield "looks for", one_line(", ".join(topic.keywords))
    if topic.steering:
        yield "corrects", f"the agent's own words, at most once in {topic.steering_pause} turns"
    for one in size.brought:
        what = "text" if one.source == topic.path else "subscribes to"
        yield what, one_line(f"{one.source}: {_tokens_of(one, size.counts)}")
    yield "in all", _total(topic, size)


def _mode(topic: Topic) -> str:
    how = {
        "auto": "by itself when a trigger matches (auto)",
        "gated": "when a trigger matches and the score or the gate agree (gated)",
        "manual": "only when it is asked for (manual)",
    }[topic.activation]
    alone = ", or by similarity alone" if topic.by_similarity else ""
    return f"{how}{alone}; {topic.priority} priority"


def _full(trigger: Trigger) -> Iterator[str]:
    yield trigger.type
    for key, value in _trigger(trigger).items():
        if key == "type" or (key, value) == ("scope", "input"):
            continue
        shown = ", ".join(value) if key == "words" else value
        yield f"{key} {one_line(shown)}"


def _tokens_of(one: Loaded, counts: Mapping[str, int]) -> str:
    return one.reason if isinstance(one, Dropped) else output.plural(counts[one.source], "token")


def _total(topic: Topic, size: _Size) -> str:
    told = f"{size.total:,} of at most {size.most:,} tokens (max_context_kb {topic.max_context_kb:g})"
    return f"{told}: too much, so the end is cut" if size.total > size.most else told


_ACTIONS = {
    "list": ("Every topic, what wakes it, and what is wrong.", _list),
    "show": ("Everything about one topic.", _show),
    "try": ("Which topics a message would wake, and why. Nothing is logged.", trial.run),
    "due": ("Topics whose schedules came due, each once, with the last time that they did.", schedules.run),
}

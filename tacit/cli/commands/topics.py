"""Playbooks: list them, try a message on them, what is due.

  list  every topic, what activates it, and what is wrong (this is also what no ACTION does)
  show  everything about one
  try   which topics a message would activate, and why the others would not; nothing is logged
  due   topics whose schedules came due

For schedules let cron ask every few minutes, with `tacit topics due --json --done`, and begin a turn for
each topic that it names: `tacit compile "" --cron NAME`, or Memory.turn with an Event.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from tacit.app import open_home
from tacit.context.loaded_files import Listener, LoadedBlock
from tacit.context.model import TOKENS_PER_KB, Block, Dropped
from tacit.context.topic_problems import find_topic_problems, is_absent, load_topic_blocks
from tacit.context.topic_trial import TopicTrial, TrialResult
from tacit.diagnostics import Problem
from tacit.errors import UsageError
from tacit.memory import Memory
from tacit.search.query_filter import filter_query
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, text_or_stdin, utf8_argument
from tacit.terminal.lines import clip, one_line, terminal_width
from tacit.text import tokens
from tacit.topics.activation import own_threshold
from tacit.topics.model import Topic, Trigger
from tacit.topics.pipeline import Moment
from tacit.topics.schedules import (
    DueSchedule,
    acknowledge,
    find_due_schedules,
    find_last_acknowledgement,
    lock_due,
    subtract_elapsed,
    to_json,
)
from tacit.topics.triggers import TRIGGER_TYPES

_MAX_DESCRIPTION_CHARS = 200
_MAX_TRIGGER_CHARS = 40


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
        parser.epilog = f"For cron: tacit topics due --json --done. {_START_HINT}"


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    _, act = _ACTIONS[options.action or "list"]
    return act(memory, options)


def _find_problems(memory: Memory) -> list[Problem]:
    return find_topic_problems(str(memory.home.root), memory.services.turns.present)


def _exit_code(problems: Iterable[Problem]) -> int:
    return 1 if any(problem.level == "error" for problem in problems) else 0


# list


def _list(memory: Memory, options: argparse.Namespace) -> int:
    topics, diagnostics = (
        sorted(memory.services.turns.topics().topics, key=lambda topic: topic.name),
        _find_problems(memory),
    )
    if options.json:
        values = [
            _topic_json(topic, load_topic_blocks(memory.services.turns.present, topic)) for topic in topics
        ]
        output.dump({"topics": values, "problems": [asdict(problem) for problem in diagnostics]})
        return _exit_code(diagnostics)
    if topics:
        rows = [
            _HEADER,
            *(_row(topic, load_topic_blocks(memory.services.turns.present, topic)) for topic in topics),
        ]
        output.print_table(_fit_to_terminal(rows))
    else:
        output.say("There are no topics. A topic is a note in topics/, such as topics/weekly-review.md.")
    _say_problems(diagnostics)
    return _exit_code(diagnostics)


_HEADER = ("topic", "activation", "priority", "subscribes", "for", "activates on")


def _row(topic: Topic, blocks: Sequence[LoadedBlock]) -> tuple[str, ...]:
    absent = sum(map(is_absent, blocks))
    count = str(len(topic.subscriptions)) + (f", {absent} not there" if absent else "")
    return (
        clip(one_line(topic.name), _MAX_TRIGGER_CHARS),
        topic.activation,
        topic.priority,
        count,
        _describe_audience(topic),
        _describe_triggers(topic),
    )


def _fit_to_terminal(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Cut the last column to what the terminal has room for."""
    used = sum(2 + max(len(cell) for cell in column) for column in list(zip(*rows, strict=True))[:-1])
    room = max(_MAX_TRIGGER_CHARS, terminal_width() - used - 2)
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
    topic = next((topic for topic in memory.services.turns.topics().topics if topic.name == name), None)
    diagnostics = [
        problem
        for problem in _find_problems(memory)
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
        return _exit_code(diagnostics)
    size = _Size.of(topic, load_topic_blocks(memory.services.turns.present, topic))
    if options.json:
        output.dump(
            {**_topic_json(topic, size.brought), **size.value(), "problems": list(map(asdict, diagnostics))}
        )
        return _exit_code(diagnostics)
    output.print_table(_facts(memory, topic, size), indent="")
    _say_problems(diagnostics)
    return _exit_code(diagnostics)


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
    yield "activates", _describe_mode(topic)
    yield "for", _describe_audience(topic) or "the owner and groups"
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


_MAX_ASLEEP_SHOWN = 5  # inactive topics


def _try(memory: Memory, options: argparse.Namespace) -> int:
    text = text_or_stdin(options.message)
    listener = _listener(memory, options.session_key)
    turns = memory.services.turns
    trial = TopicTrial(
        turns.topics().topics,
        turns.watchers(),
        listener,
        threshold=memory.config.watchers.similarity_threshold,
        moment=Moment(memory.services.clock.now().isoformat()),
    )
    results = trial.try_output(text) if options.output else trial.try_input(text, options.path)
    awake = [result for result in results if not result.lacks]
    asleep = sorted(
        (result for result in results if result.lacks and result.is_near), key=lambda result: result.nearness
    )
    del asleep[_MAX_ASLEEP_SHOWN:]
    skipped = "" if options.output else filter_query(text).reason if filter_query(text).skip else ""
    if options.json:
        values = {
            "awake": [result.value() for result in awake],
            "asleep": [result.value() for result in asleep],
        }
        output.dump({**values, "audience": listener.audience, "agent": listener.agent, "skipped": skipped})
        return 0
    if skipped:
        output.say(
            f"A turn would activate no topic for it: {skipped} "
            "(unless it names a person or project of the home)."
        )
    output.say(f"{_count_awake(awake)} for “{output.shorten(one_line(text), 60)}”.")
    for result in awake:
        output.say()
        output.say(
            f"{one_line(result.topic.name)}  {result.topic.activation}, {result.topic.priority} priority"
        )
        output.print_table(_tier_rows(result))
    if asleep:
        output.say()
        output.say("Inactive, the nearest first:")
        output.print_table(_asleep_row(result) for result in asleep)
    return 0


def _count_awake(awake: Sequence[TrialResult]) -> str:
    if not awake:
        return "No topic activates"
    return "1 topic activates" if len(awake) == 1 else f"{len(awake)} topics activate"


def _listener(memory: Memory, session_key: str) -> Listener:
    profile = memory.services.profiles.profile_of(session_key, trial=True)
    return Listener(profile.rule.audience, profile.kind.agent)


def _asleep_row(result: TrialResult) -> tuple[str, ...]:
    wakes = (
        ""
        if result.matches or result.decision
        else f"; it activates on {clip(_describe_triggers(result.topic), 80)}"
    )
    score = f"{result.similarity.score:.2f}" if result.similarity.channels else ""
    return one_line(result.topic.name), score, one_line(result.lacks) + wakes


def _tier_rows(result: TrialResult) -> Iterator[tuple[str, str]]:
    yield "triggers", one_line("; ".join(match.text for match in result.matches)) or "none matched"
    if result.similarity.channels:
        channels = ", ".join(f"{name} {value:.2f}" for name, value in result.similarity.channels.items())
        yield "score", f"{result.similarity.score:.2f}: {channels}"
        yield "verdict", result.verdict
    decision = result.decision
    if decision and decision.gate_result is not None:
        # The log repeats the triggers in front of the reason.
        shown = ", ".join(dict.fromkeys(match.text for match in result.matches[:3]))
        reason = one_line(decision.reason.removeprefix(f"{shown}; "))
        yield "gate", f"{'yes' if decision.gate_result else 'no'}, by {decision.by}: {reason}"
    if result.hint:
        yield "says", one_line(result.hint)


_START_HINT = 'Begin a turn for one with: tacit compile "" --cron NAME'


def _due(memory: Memory, options: argparse.Namespace) -> int:
    catalog = memory.services.turns.topics()
    if _exit_code(catalog.problems):
        output.warn("warning: not every topic could be read as it is meant. See: tacit topics")
    with lock_due(memory.home) if options.done else nullcontext():
        now = memory.services.clock.local_now()
        since = _read_last_done(memory, now) if options.since is None else _parse_moment(options.since, now)
        due_topics = find_due_schedules(catalog.topics, since, now)
        _print_due(due_topics, since.astimezone(now.tzinfo), options)
        if options.done:
            # If the output cannot be written, the topics stay due.
            sys.stdout.flush()
            acknowledge(memory.home, now)
    return 0


def _print_due(due_topics: Sequence[DueSchedule], since: datetime, options: argparse.Namespace) -> None:
    if options.json:
        output.dump([to_json(item) for item in due_topics])
        return
    if not due_topics:
        output.say(f"Nothing came due since {since:%Y-%m-%d %H:%M}.")
        return
    output.print_table(
        (one_line(item.topic.name), f"{item.at:%Y-%m-%d %H:%M}", item.schedule) for item in due_topics
    )
    output.say(_START_HINT)


def _read_last_done(memory: Memory, now: datetime) -> datetime:
    last = find_last_acknowledgement(memory.home, now)
    if last.doubt:
        output.warn(f"warning: {last.doubt}")
    return last.at


_SPAN = re.compile(r"(\d{1,4}) ?(minute|hour|day|week)s?(?: ago)?")


def _parse_moment(text: str, now: datetime) -> datetime:
    span = _SPAN.fullmatch(text)
    if span:
        return subtract_elapsed(now, timedelta(**{f"{span[2]}s": int(span[1])}))
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    days = {"today": 0, "yesterday": 1}
    if text in days:
        return midnight - timedelta(days=days[text])
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)).astimezone(UTC)
    except (ValueError, OverflowError):
        hint = "Write 2026-02-16, 2026-02-16T08:00, 2 hours, 3 days, today or yesterday."
        raise UsageError(f"{text!r} is not a time. {hint}") from None


# Short descriptions


def _describe_audience(topic: Topic) -> str:
    """The topic's audience and agents; the default audience, `group`, is left out."""
    parts = [topic.audience] if topic.audience != "group" else []
    return one_line(", ".join((*parts, *topic.agents)))


def _describe_triggers(topic: Topic) -> str:
    if topic.activation == "manual":
        return "its name"
    parts = [*map(_describe_trigger, topic.triggers), *(["similarity"] if topic.by_similarity else [])]
    return ", ".join(parts) or "nothing"


def _describe_trigger(trigger: Trigger) -> str:
    side = "" if trigger.scope == "input" else f" ({trigger.scope})"
    return one_line(TRIGGER_TYPES[trigger.type].describe(trigger)) + side


_ACTIONS = {
    "list": ("Every topic, what activates it, and what is wrong.", _list),
    "show": ("Everything about one topic.", _show),
    "try": ("Which topics a message would activate, and why. Nothing is logged.", _try),
    "due": ("Topics whose schedules came due, each once, with the last time that they did.", _due),
}

"""What woke topics or did not; mark, report, tune.

A decision has an id, which `log` shows. `mark` says whether the topic was of use to that message; of a topic
that stayed asleep, whether it would have been. `tune` goes by the marks.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from tacit.app import now, open_home
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, words
from tacit.errors import DiskError, StoreError, UsageError
from tacit.memory import Memory
from tacit.model.notes import Note
from tacit.model.topics import Decision, Topic
from tacit.store.files import Tree
from tacit.store.gatelog import Decisions, GateLog, Logged, decision_id
from tacit.text import topics
from tacit.text.notes import decode, with_fields
from tacit.watch.tune import Proposal, Row, propose, report

_SHORTEST_ID = 4
_SUSPECTS = 3
_SIGNS = {"activated": "●", "rejected": "○", "dropped": "·"}
_MARKS = {True: "useful", False: "useless", None: ""}


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (about, *_) in _ACTIONS.items():
        action = actions.add_parser(name, help=about, description=about)
        _own(action, name)
        home_option(action)
        json_option(action)


def _own(parser: argparse.ArgumentParser, name: str) -> None:
    if name == "mark":
        parser.add_argument(
            "id", help="as `tacit gate log` shows it, or its beginning; last: the newest message"
        )
        parser.add_argument("useful", choices=("useful", "useless"))
    if name != "tune":
        parser.add_argument("--topic", type=words, default=None, metavar="T", help="only this topic")
    if name == "log":
        parser.add_argument("-n", type=_count, default=20, metavar="N", help="most lines (default: 20)")
    if name == "tune":
        parser.add_argument("--write", action="store_true", help="write the thresholds into the topics")


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    _, act = _ACTIONS[options.action]
    return act(memory, options)


# The log


def _log(memory: Memory, options: argparse.Namespace) -> int:
    read = GateLog(memory.home).read()
    found = list(deque(_of_topic(read, options.topic), maxlen=options.n))
    _warn_of_broken(read)
    if options.json:
        output.dump([_line(one) for one in found])
        return 0
    if not found:
        output.say(_NOTHING if options.topic is None else f"Nothing was decided about {options.topic!r}.")
    output.table(_log_rows(found))
    return 0


_NOTHING = "Nothing was decided yet: no message came near a topic."


def _log_rows(found: Sequence[Logged]) -> Iterator[tuple[str, ...]]:
    for one in found:
        made = one.decision
        yield (
            one.id,
            made.timestamp[:16].replace("T", " "),
            f"{_SIGNS[made.outcome]} {made.outcome}",
            made.topic_name,
            f"{made.tier2_score:.2f}",
            _MARKS[made.was_useful],
            f"“{output.short(one.message, 40)}”  {made.by}: {output.short(made.reason, 120)}",
        )


def _line(one: Logged) -> dict[str, Any]:
    return {"id": one.id, **asdict(one.decision), "message": one.message}


def _of_topic(read: Iterable[Logged], topic: str | None) -> Iterator[Logged]:
    return (one for one in read if topic in (None, one.decision.topic_name))


def _warn_of_broken(read: Decisions) -> None:
    if read.broken:
        output.warn(f"warning: {output.plural(read.broken, 'line')} of the gate log could not be read.")


# Marks


def _mark(memory: Memory, options: argparse.Namespace) -> int:
    log = GateLog(memory.home)
    found = list(_of_topic(log.read(), options.topic))
    one = _last(found, options.topic) if options.id == "last" else _by_id(found, options.id)
    if why := log.mark(one.id, options.useful == "useful", now().isoformat()):
        raise DiskError(why)
    if options.json:
        output.dump({**_line(one), "was_useful": options.useful == "useful"})
        return 0
    would = "was" if one.decision.outcome == "activated" else "would have been"
    output.say(
        f"{one.id}: {one.decision.topic_name} {would} {options.useful} to “{output.short(one.message, 60)}”."
    )
    return 0


def _last(found: Sequence[Logged], topic: str | None) -> Logged:
    """What the newest message woke; of a topic that is named, the newest decision."""
    if not found:
        raise UsageError("There is no such decision. See: tacit gate log")
    if topic is not None:
        return found[-1]
    newest = found[-1].decision
    awake = [
        one
        for one in found
        if (one.decision.message_hash, one.decision.timestamp) == (newest.message_hash, newest.timestamp)
        and one.decision.outcome == "activated"
    ]
    if len(awake) != 1:
        names = ", ".join(one.decision.topic_name for one in awake) or "nothing"
        raise UsageError(f"The last message woke {names}. Say which with --topic, or give an id.")
    return awake[0]


def _by_id(found: Sequence[Logged], name: str) -> Logged:
    if len(name) < _SHORTEST_ID:
        raise UsageError(f"{name!r} is too short for an id. Give at least {_SHORTEST_ID} characters.")
    fitting = {one.id: one for one in found if one.id.startswith(name.lower())}
    if len(fitting) != 1:
        what = "No decision has" if not fitting else f"{len(fitting)} decisions have"
        raise UsageError(f"{what} an id that begins with {name!r}. See: tacit gate log")
    return next(iter(fitting.values()))


# The report


def _report(memory: Memory, options: argparse.Namespace) -> int:
    read = GateLog(memory.home).read()
    made = (one.decision for one in _of_topic(read, options.topic))
    rows = report(made, _topics(memory), memory.config.watchers.similarity_threshold)
    _warn_of_broken(read)
    if options.json:
        output.dump([_row(row) for row in rows])
        return 0
    if not rows:
        output.say(_NOTHING if options.topic is None else f"Nothing was decided about {options.topic!r}.")
        return 0
    output.table([_HEADER, *(_report_row(row) for row in rows)])
    for row in rows:
        _say_details(row)
    return 0


_HEADER = ("topic", "awake", "no", "dropped", "score p10 p50 p90", "0 to 1", "marks")


def _report_row(row: Row) -> tuple[str, ...]:
    low, middle, high, histogram = row.scores
    marks = [f"{row.useful} useful", f"{row.useless} useless", f"{row.missed} missed"]
    return (
        row.topic,
        str(row.activated),
        str(row.rejected),
        str(row.dropped),
        f"{low:.2f} {middle:.2f} {high:.2f}",
        histogram,
        ", ".join(mark for mark in marks if not mark.startswith("0 ")),
    )


def _say_details(row: Row) -> None:
    output.say()
    output.say(f"{row.topic}, decided by: {', '.join(f'{by} {count}' for by, count in row.by.items())}")
    if row.suspects:
        misses = "miss" if len(row.suspects) == 1 else "misses"
        output.say(f"  {len(row.suspects)} suspected {misses}; the newest:")
    for made in row.suspects[: -_SUSPECTS - 1 : -1]:
        output.say(f"    {_id(made)}  {made.tier2_score:.2f}  {output.short(made.reason, 120)}")


def _row(row: Row) -> dict[str, Any]:
    plain = {**asdict(row), "scores": row.scores._asdict()}
    plain["suspects"] = [{"id": _id(made), **asdict(made)} for made in row.suspects]
    return plain


def _id(made: Decision) -> str:
    return decision_id(made.timestamp, made.message_hash, made.topic_name)


# Thresholds


def _tune(memory: Memory, options: argparse.Namespace) -> int:
    read = GateLog(memory.home).read()
    made = (one.decision for one in read)
    found = propose(made, _topics(memory), memory.config.watchers.similarity_threshold)
    _warn_of_broken(read)
    for one in found:
        if not options.json:
            output.say(f"{one.topic.name}: {one.current:g} → {one.proposed:g}, {one}")
        if options.write:
            _write(memory, one, quiet=options.json)
    if options.json:
        output.dump([_proposal(one, written=options.write) for one in found])
        return 0
    if not found:
        output.say(
            "No threshold would do better by the marks. A topic needs five marks, of both kinds: "
            "tacit gate mark ID useful, or useless."
        )
    elif not options.write:
        output.say("Nothing is written yet. To write: tacit gate tune --write")
    return 0


def _proposal(one: Proposal, *, written: bool) -> dict[str, Any]:
    return {
        "topic": one.topic.name,
        "path": one.topic.path,
        "current": one.current,
        "proposed": one.proposed,
        "marks": one.marks,
        "before": one.before._asdict(),
        "after": one.after._asdict(),
        "written": written,
    }


def _write(memory: Memory, one: Proposal, *, quiet: bool) -> None:
    old = memory.read(one.topic.path)
    new = with_fields(old, {"similarity_threshold": one.proposed})
    memory.write(one.topic.path, new.text, replacing=old)
    if not quiet:
        for line in _difference(old, new):
            output.say(f"  {line}")


def _difference(old: Note, new: Note) -> Iterator[str]:
    from difflib import unified_diff

    lines = unified_diff(old.text.splitlines(), new.text.splitlines(), n=1, lineterm="")
    return (line for line in lines if not line.startswith(("---", "+++", "@@")))


def _topics(memory: Memory) -> list[Topic]:
    """Those that can be read; `tacit doctor` tells of the others. Of two of one name the first is used."""
    tree, found = Tree(memory.home.root), dict[str, Topic]()
    for path in tree.files("topics"):
        if path.endswith(".md"):
            try:
                topic, _ = topics.read(path, decode(tree.read(path)))
            except (OSError, StoreError):
                continue
            if topic is not None:
                found.setdefault(topic.name, topic)
    return list(found.values())


_ACTIONS = {
    "report": ("What each topic woke for, with which scores, and what may have been missed.", _report),
    "log": ("The last decisions.", _log),
    "mark": ("Say whether a topic was of use to a message, or would have been.", _mark),
    "tune": ("Propose thresholds by the marks.", _tune),
}

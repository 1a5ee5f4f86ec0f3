"""Why topics activated or did not; mark, report, tune.

A decision has an id, which `log` shows. `mark` says whether the topic was useful for that message; for a
topic that stayed inactive, whether it would have been. `tune` proposes thresholds from the marks.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from tacit.app import open_home, utc_now
from tacit.errors import DiskError, StoreError, UsageError
from tacit.git.conflicts import NoteTree
from tacit.markdown.notes import Note, decode, set_fields
from tacit.memory import Memory
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, utf8_argument
from tacit.topics import parser as topics
from tacit.topics.decision_log import Decisions, GateLog, LoggedDecision, decision_id
from tacit.topics.model import Topic, TopicDecision
from tacit.topics.tuning import ThresholdProposal, TopicStats, propose_thresholds, summarize_decisions

_MIN_ID_CHARS = 4
_MAX_SUSPECTS_SHOWN = 3
_SIGNS = {"activated": "●", "rejected": "○", "dropped": "·"}
_MARK_LABELS = {True: "useful", False: "useless", None: ""}


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, (about, *_) in _ACTIONS.items():
        action = actions.add_parser(name, help=about, description=about)
        _add_arguments(action, name)
        add_home_option(action)
        add_json_option(action)


def _add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    if name == "mark":
        parser.add_argument(
            "id", help="as `tacit gate log` shows it, or its beginning; last: the newest message"
        )
        parser.add_argument("useful", choices=("useful", "useless"))
    if name != "tune":
        parser.add_argument("--topic", type=utf8_argument, default=None, metavar="T", help="only this topic")
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
    log = GateLog(memory.home).read()
    entries = list(deque(_filter_by_topic(log, options.topic), maxlen=options.n))
    _warn_of_broken_lines(log)
    if options.json:
        output.dump([_entry_json(entry) for entry in entries])
        return 0
    if not entries:
        output.say(
            _NO_DECISIONS if options.topic is None else f"Nothing was decided about {options.topic!r}."
        )
    output.print_table(_log_rows(entries))
    return 0


_NO_DECISIONS = "Nothing was decided yet: no message came near a topic."


def _log_rows(entries: Sequence[LoggedDecision]) -> Iterator[tuple[str, ...]]:
    for entry in entries:
        decision = entry.decision
        yield (
            entry.id,
            decision.timestamp[:16].replace("T", " "),
            f"{_SIGNS[decision.outcome]} {decision.outcome}",
            decision.topic_name,
            f"{decision.tier2_score:.2f}",
            _MARK_LABELS[decision.was_useful],
            f"“{output.shorten(entry.message, 40)}”  {decision.by}: {output.shorten(decision.reason, 120)}",
        )


def _entry_json(entry: LoggedDecision) -> dict[str, Any]:
    return {"id": entry.id, **asdict(entry.decision), "message": entry.message}


def _filter_by_topic(entries: Iterable[LoggedDecision], topic: str | None) -> Iterator[LoggedDecision]:
    return (entry for entry in entries if topic in (None, entry.decision.topic_name))


def _warn_of_broken_lines(log: Decisions) -> None:
    if log.broken:
        output.warn(f"warning: {output.pluralize(log.broken, 'line')} of the gate log could not be read.")


# Marks


def _mark(memory: Memory, options: argparse.Namespace) -> int:
    log = GateLog(memory.home)
    entries = list(_filter_by_topic(log.read(), options.topic))
    entry = _find_newest(entries, options.topic) if options.id == "last" else _find_by_id(entries, options.id)
    if error := log.mark(entry.id, options.useful == "useful", utc_now().isoformat()):
        raise DiskError(error)
    if options.json:
        output.dump({**_entry_json(entry), "was_useful": options.useful == "useful"})
        return 0
    would = "was" if entry.decision.outcome == "activated" else "would have been"
    output.say(
        f"{entry.id}: {entry.decision.topic_name} {would} {options.useful} "
        f"to “{output.shorten(entry.message, 60)}”."
    )
    return 0


def _find_newest(entries: Sequence[LoggedDecision], topic: str | None) -> LoggedDecision:
    """The decision that the newest message activated; for a named topic, its newest decision."""
    if not entries:
        raise UsageError("There is no such decision. See: tacit gate log")
    if topic is not None:
        return entries[-1]
    newest = entries[-1].decision
    awake = [
        entry
        for entry in entries
        if (entry.decision.message_hash, entry.decision.timestamp) == (newest.message_hash, newest.timestamp)
        and entry.decision.outcome == "activated"
    ]
    if len(awake) != 1:
        names = ", ".join(entry.decision.topic_name for entry in awake) or "nothing"
        raise UsageError(f"The last message woke {names}. Say which with --topic, or give an id.")
    return awake[0]


def _find_by_id(entries: Sequence[LoggedDecision], name: str) -> LoggedDecision:
    if len(name) < _MIN_ID_CHARS:
        raise UsageError(f"{name!r} is too short for an id. Give at least {_MIN_ID_CHARS} characters.")
    matching = {entry.id: entry for entry in entries if entry.id.startswith(name.lower())}
    if len(matching) != 1:
        subject = "No decision has" if not matching else f"{len(matching)} decisions have"
        raise UsageError(f"{subject} an id that begins with {name!r}. See: tacit gate log")
    return next(iter(matching.values()))


# The report


def _report(memory: Memory, options: argparse.Namespace) -> int:
    log = GateLog(memory.home).read()
    decisions = (entry.decision for entry in _filter_by_topic(log, options.topic))
    rows = summarize_decisions(decisions, _read_topics(memory), memory.config.watchers.similarity_threshold)
    _warn_of_broken_lines(log)
    if options.json:
        output.dump([_row_json(row) for row in rows])
        return 0
    if not rows:
        output.say(
            _NO_DECISIONS if options.topic is None else f"Nothing was decided about {options.topic!r}."
        )
        return 0
    output.print_table([_HEADER, *(_report_row(row) for row in rows)])
    for row in rows:
        _say_details(row)
    return 0


_HEADER = ("topic", "awake", "no", "dropped", "score p10 p50 p90", "0 to 1", "marks")


def _report_row(row: TopicStats) -> tuple[str, ...]:
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


def _say_details(row: TopicStats) -> None:
    output.say()
    output.say(
        f"{row.topic}, decided by: {', '.join(f'{decider} {count}' for decider, count in row.by.items())}"
    )
    if row.suspects:
        misses = "miss" if len(row.suspects) == 1 else "misses"
        output.say(f"  {len(row.suspects)} suspected {misses}; the newest:")
    for suspect in row.suspects[: -_MAX_SUSPECTS_SHOWN - 1 : -1]:
        output.say(f"    {_id_of(suspect)}  {suspect.tier2_score:.2f}  {output.shorten(suspect.reason, 120)}")


def _row_json(row: TopicStats) -> dict[str, Any]:
    plain = {**asdict(row), "scores": row.scores._asdict()}
    plain["suspects"] = [{"id": _id_of(suspect), **asdict(suspect)} for suspect in row.suspects]
    return plain


def _id_of(decision: TopicDecision) -> str:
    return decision_id(decision.timestamp, decision.message_hash, decision.topic_name)


# Thresholds


def _tune(memory: Memory, options: argparse.Namespace) -> int:
    log = GateLog(memory.home).read()
    decisions = (entry.decision for entry in log)
    proposals = propose_thresholds(
        decisions, _read_topics(memory), memory.config.watchers.similarity_threshold
    )
    _warn_of_broken_lines(log)
    for proposal in proposals:
        if not options.json:
            output.say(f"{proposal.topic.name}: {proposal.current:g} → {proposal.proposed:g}, {proposal}")
        if options.write:
            _write_threshold(memory, proposal, quiet=options.json)
    if options.json:
        output.dump([_proposal_json(proposal, written=options.write) for proposal in proposals])
        return 0
    if not proposals:
        output.say(
            "No threshold would do better by the marks. A topic needs five marks, of both kinds: "
            "tacit gate mark ID useful, or useless."
        )
    elif not options.write:
        output.say("Nothing is written yet. To write: tacit gate tune --write")
    return 0


def _proposal_json(proposal: ThresholdProposal, *, written: bool) -> dict[str, Any]:
    return {
        "topic": proposal.topic.name,
        "path": proposal.topic.path,
        "current": proposal.current,
        "proposed": proposal.proposed,
        "marks": proposal.marks,
        "before": proposal.before._asdict(),
        "after": proposal.after._asdict(),
        "written": written,
    }


def _write_threshold(memory: Memory, proposal: ThresholdProposal, *, quiet: bool) -> None:
    old = memory.read(proposal.topic.path)
    new = set_fields(old, {"similarity_threshold": proposal.proposed})
    memory.write(proposal.topic.path, new.text, replacing=old)
    if not quiet:
        for line in _diff_lines(old, new):
            output.say(f"  {line}")


def _diff_lines(old: Note, new: Note) -> Iterator[str]:
    from difflib import unified_diff

    lines = unified_diff(old.text.splitlines(), new.text.splitlines(), n=1, lineterm="")
    return (line for line in lines if not line.startswith(("---", "+++", "@@")))


def _read_topics(memory: Memory) -> list[Topic]:
    """Topics that can be read; `tacit doctor` reports the others. If two share a name, the first is used."""
    tree, by_name = NoteTree(memory.home.root), dict[str, Topic]()
    for path in tree.files("topics"):
        if path.endswith(".md"):
            try:
                topic, _ = topics.parse_topic(path, decode(tree.read(path)))
            except (OSError, StoreError):
                continue
            if topic is not None:
                by_name.setdefault(topic.name, topic)
    return list(by_name.values())


_ACTIONS = {
    "report": ("What each topic woke for, with which scores, and what may have been missed.", _report),
    "log": ("The last decisions.", _log),
    "mark": ("Say whether a topic was of use to a message, or would have been.", _mark),
    "tune": ("Propose thresholds by the marks.", _tune),
}

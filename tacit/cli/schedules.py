"""`tacit topics due`: topics that came due since the last `--done`, which is kept in .tacit/due.json."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

from tacit.cli.playbooks import exit_code
from tacit.errors import UsageError
from tacit.memory import Memory
from tacit.terminal import output
from tacit.terminal.lines import one_line
from tacit.topics.schedules import (
    DueSchedule,
    acknowledge,
    find_due_schedules,
    last_acknowledged,
    lock_due,
    subtract_elapsed,
    to_json,
)

START_HINT = 'Begin a turn for one with: tacit compile "" --cron NAME'


def run(memory: Memory, options: argparse.Namespace) -> int:
    catalog = memory.turns.topics()
    if exit_code(catalog.problems):
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
    output.say(START_HINT)


def _read_last_done(memory: Memory, now: datetime) -> datetime:
    last = last_acknowledged(memory.home, now)
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
        raise UsageError(f"{text!r} is no moment. {hint}") from None

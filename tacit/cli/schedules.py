"""`tacit topics due`: what came due since somebody last said that it was done, kept in .tacit/due.json."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

from tacit.cli import output
from tacit.cli.lines import one_line
from tacit.cli.playbooks import code_of
from tacit.errors import UsageError
from tacit.memory import Memory
from tacit.memory.schedules import wall
from tacit.store.due import before, last_done, mark_done, marking
from tacit.watch.due import Due, as_value, due

BEGIN = 'Begin a turn for one with: tacit compile "" --cron NAME'


def run(memory: Memory, options: argparse.Namespace) -> int:
    shelf = memory.turns.topics()
    if code_of(shelf.problems):
        output.warn("warning: not every topic could be read as it is meant. See: tacit topics")
    with marking(memory.home) if options.done else nullcontext():
        now = wall(memory)
        since = _last_done(memory, now) if options.since is None else _moment(options.since, now)
        found = due(shelf.topics, since, now)
        _print_due(found, since.astimezone(now.tzinfo), options)
        if options.done:
            # What nobody could read is due again.
            sys.stdout.flush()
            mark_done(memory.home, now)
    return 0


def _print_due(found: Sequence[Due], since: datetime, options: argparse.Namespace) -> None:
    if options.json:
        output.dump([as_value(one) for one in found])
        return
    if not found:
        output.say(f"Nothing came due since {since:%Y-%m-%d %H:%M}.")
        return
    output.table((one_line(one.topic.name), f"{one.at:%Y-%m-%d %H:%M}", one.schedule) for one in found)
    output.say(BEGIN)


def _last_done(memory: Memory, now: datetime) -> datetime:
    done = last_done(memory.home, now)
    if done.doubt:
        output.warn(f"warning: {done.doubt}")
    return done.at


_SPAN = re.compile(r"(\d{1,4}) ?(minute|hour|day|week)s?(?: ago)?")


def _moment(text: str, now: datetime) -> datetime:
    span = _SPAN.fullmatch(text)
    if span:
        return before(now, timedelta(**{f"{span[2]}s": int(span[1])}))
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    days = {"today": 0, "yesterday": 1}
    if text in days:
        return midnight - timedelta(days=days[text])
    try:
        when = datetime.fromisoformat(text)
        return (when if when.tzinfo else when.replace(tzinfo=now.tzinfo)).astimezone(UTC)
    except (ValueError, OverflowError):
        hint = "Write 2026-02-16, 2026-02-16T08:00, 2 hours, 3 days, today or yesterday."
        raise UsageError(f"{text!r} is no moment. {hint}") from None

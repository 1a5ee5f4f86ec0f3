"""`.tacit/due.json`: when due topics were last acknowledged."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from tacit.home import files
from tacit.home.layout import Home

_FIRST_PERIOD = timedelta(hours=24)  # how far back to look the first time


class Acknowledgement(NamedTuple):
    at: datetime  # in the caller's time zone
    doubt: str = ""  # why it is a guess


def last_acknowledged(home: Home, now: datetime) -> Acknowledgement:
    try:
        text = _file(home).read_text(encoding="utf-8")
    except FileNotFoundError:
        return Acknowledgement(subtract_elapsed(now, _FIRST_PERIOD))
    except (OSError, ValueError):
        text = ""
    try:
        done = datetime.fromisoformat(json.loads(text)["done"]).astimezone(now.tzinfo)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        done = None
    if done is None or done.astimezone(UTC) > now.astimezone(UTC):
        doubt = ".tacit/due.json names no moment in the past, so the last 24 hours count."
        return Acknowledgement(subtract_elapsed(now, _FIRST_PERIOD), doubt)
    return Acknowledgement(done)


def acknowledge(home: Home, now: datetime) -> None:
    """Call it within `marking`, with the time up to which due topics were read."""
    with files.explain_disk_errors("remember that this was looked at"):
        files.replace(_file(home), json.dumps({"done": now.isoformat()}).encode())


def lock_due(home: Home) -> AbstractContextManager[None]:
    """A lock around reading and acknowledging, so that only one process gets what came due."""
    return files.hold_lock(home.private / "due.lock")


def subtract_elapsed(now: datetime, span: timedelta) -> datetime:
    """Subtract elapsed time and not local time, which jumps twice a year."""
    return (now.astimezone(UTC) - span).astimezone(now.tzinfo)


def _file(home: Home) -> Path:
    return home.private / "due.json"

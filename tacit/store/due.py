"""`.tacit/due.json`: when somebody last said that what came due is done."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from tacit.store import files
from tacit.store.home import Home

_FIRST = timedelta(hours=24)  # how far back to look where nobody has looked before


class Done(NamedTuple):
    at: datetime  # in the zone of who asks
    doubt: str = ""  # why it is a guess


def last_done(home: Home, now: datetime) -> Done:
    try:
        text = _file(home).read_text(encoding="utf-8")
    except FileNotFoundError:
        return Done(before(now, _FIRST))
    except (OSError, ValueError):
        text = ""
    try:
        done = datetime.fromisoformat(json.loads(text)["done"]).astimezone(now.tzinfo)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        done = None
    if done is None or done.astimezone(UTC) > now.astimezone(UTC):
        doubt = ".tacit/due.json names no moment in the past, so the last 24 hours count."
        return Done(before(now, _FIRST), doubt)
    return Done(done)


def mark_done(home: Home, now: datetime) -> None:
    """Call it within `marking`, with the moment that was looked at."""
    with files.explained("remember that this was looked at"):
        files.replace(_file(home), json.dumps({"done": now.isoformat()}).encode())


def marking(home: Home) -> AbstractContextManager[None]:
    """Around looking and marking: what two take at the same time is due for one of them only."""
    return files.locked(home.private / "due.lock")


def before(now: datetime, span: timedelta) -> datetime:
    """By the time that passes and not by the clock on the wall, which jumps twice a year."""
    return (now.astimezone(UTC) - span).astimezone(now.tzinfo)


def _file(home: Home) -> Path:
    return home.private / "due.json"

"""The lanes that are files: a copy of what a turn was given, for who reads it there.

`file` keeps ETHOS_CONTEXT.md of the session as the turn left it: with what was given, or empty. `daily` adds
what the session was given first to the owner's daily note, once. Both are off unless the config names them,
and neither ever stops a turn.

Only the owner's sessions add to the daily note. It is read back in the owner's sessions, and whoever else
writes to the agent must not choose what stands in it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from tacit.config import Config
from tacit.context import adaptive, ethos
from tacit.model.context import Compiled, Notice
from tacit.sessions.rules import Profile
from tacit.store.home import Home
from tacit.store.mirrors import add_daily, write_mirror
from tacit.text.redact import clean


def lanes_of(profile: Profile, config: Config) -> tuple[str, ...]:
    return config.inject.lanes if profile.rule.lanes is None else profile.rule.lanes


def write_lanes(
    home: Home,
    config: Config,
    profile: Profile,
    compiled: Compiled,
    message: str,
    now: datetime,
    *,
    is_first: bool,
) -> tuple[Notice, ...]:
    """What could not be written, and why. Never raises. `is_first`: the session has just begun."""
    lanes = lanes_of(profile, config)
    told = []
    if "file" in lanes:
        told.append(Notice("file-lane", _mirrored(home, config, profile, compiled, now)))
    if "daily" in lanes and compiled.given:
        told.append(
            Notice("daily-lane", _noted(home, config, profile, compiled, message, now, is_first=is_first))
        )
    return tuple(notice for notice in told if notice.text)


def _mirrored(home: Home, config: Config, profile: Profile, compiled: Compiled, now: datetime) -> str:
    directory, key = config.sessions.directory, profile.kind.key
    try:
        text = ethos.render(compiled.given, now, config.inject.confidence_gate)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with us, what stands there is old
        write_mirror(home, directory, key, "")
        return f"The copy could not be made: {type(error).__name__}: {error}. The file was emptied."
    return write_mirror(home, directory, key, text)


def _noted(
    home: Home,
    config: Config,
    profile: Profile,
    compiled: Compiled,
    message: str,
    now: datetime,
    *,
    is_first: bool,
) -> str:
    if profile.rule.audience != "owner":
        return "Only the owner's sessions add to the daily note."
    limits = config.context_compiler
    session = adaptive.session_hash(profile.kind.key, compiled.receipt.session_id)
    try:
        section = adaptive.section(
            compiled.given,
            now,
            session,
            clean(message).text,
            most=limits.max_injected_chars,
            most_snippet=limits.max_snippet_chars,
        )
    except Exception as error:  # noqa: BLE001 - a turn never breaks, whatever is wrong with us
        return f"The section could not be made: {type(error).__name__}: {error}."
    if not section:
        return "No passage fits into context_compiler.max_injected_chars."
    # A session that goes on after midnight has its section on the page of the day before.
    earlier = () if is_first else (now.date() - timedelta(days=1),)
    return add_daily(
        home, _daily_folder(home, config), now.date(), adaptive.marker(session), section, earlier
    )


def _daily_folder(home: Home, config: Config) -> Path:
    directory = config.inject.daily_directory
    return home.root / "knowledge" / "journal" if directory is None else Path(directory)

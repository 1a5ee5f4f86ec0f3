"""The lanes that are files: a copy of what a turn was given, for who reads it there.

`file` keeps ETHOS_CONTEXT.md of the session as the turn left it: with what was given, or empty. Where the
lane is off, a file that is still there is emptied: who listens may have changed under the same key. `daily`
adds what the session was given first to the owner's daily note, once. Both are off unless the config names
them, and neither ever stops a turn.

Only the owner's sessions add to the daily note. It is read back in the owner's sessions, and whoever else
writes to the agent must not choose what stands in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from tacit.config import Config
from tacit.context import adaptive, ethos
from tacit.model.context import Compiled, Notice
from tacit.sessions.rules import Profile
from tacit.store.home import Home
from tacit.store.mirrors import add_daily, empty_mirror, write_mirror
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
    names: Sequence[str] = (),
    began: int | None = None,
) -> tuple[Notice, ...]:
    """What could not be written, and why. Never raises. `is_first`: the session has just begun. `names`: the
    ids that it had so far. `began`: when the turn did, in nanoseconds."""
    lanes = lanes_of(profile, config)
    told = []
    if "file" in lanes:
        told.append(Notice("file-lane", _mirrored(home, config, profile, compiled, now, began)))
    else:
        empty_mirror(home, config.sessions.directory, profile.kind.key, began)
    if "daily" in lanes and config.memory.read_only:
        told.append(Notice("daily-lane", "memory.read_only is true, so nothing is added to the daily notes."))
    elif "daily" in lanes and compiled.given:
        names = names or (compiled.receipt.session_id,)
        noted = _noted(home, config, profile, compiled, message, now, is_first=is_first, names=names)
        told.append(Notice("daily-lane", noted))
    return tuple(notice for notice in told if notice.text)


def _mirrored(
    home: Home, config: Config, profile: Profile, compiled: Compiled, now: datetime, began: int | None
) -> str:
    directory, key = config.sessions.directory, profile.kind.key
    try:
        text = ethos.render(compiled.given, now, config.inject.confidence_gate)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with us, what stands there is old
        write_mirror(home, directory, key, "", began)
        return f"The copy could not be made: {type(error).__name__}: {error}. The file was emptied."
    return write_mirror(home, directory, key, text, began)


def _noted(
    home: Home,
    config: Config,
    profile: Profile,
    compiled: Compiled,
    message: str,
    now: datetime,
    *,
    is_first: bool,
    names: Sequence[str],
) -> str:
    if profile.rule.audience != "owner":
        return "Only the owner's sessions add to the daily note."
    limits = config.context_compiler
    session, *others = [adaptive.session_hash(profile.kind.key, name) for name in names]
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
    markers = [adaptive.marker(one) for one in (session, *others)]
    return add_daily(home, _daily_folder(home, config), now.date(), markers, section, goes_on=not is_first)


def _daily_folder(home: Home, config: Config) -> Path:
    directory = config.inject.daily_directory
    return home.root / "knowledge" / "journal" if directory is None else Path(directory)

"""The lanes that write files: copies of a turn's context, for readers of those files.

`file` keeps the session's ETHOS_CONTEXT.md up to date: with the chunks of the last turn, or empty. If the
lane is off, an existing file is emptied, because the listener may have changed under the same key. `daily`
adds the first chunks of a session to the owner's daily note, once. Both are off unless the config names them,
and neither ever stops a turn.

Only the owner's sessions add to the daily note. It is read back in the owner's sessions, so other people who
write to the agent must not control its content.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from tacit.config import Config
from tacit.context.delivery import context_file, daily_section
from tacit.context.delivery.files import append_daily_section, clear_context_file, write_context_file
from tacit.context.model import Compiled, Notice
from tacit.home.layout import Home
from tacit.privacy.redaction import clean
from tacit.sessions.policy import SessionProfile


def delivery_modes(profile: SessionProfile, config: Config) -> tuple[str, ...]:
    return config.inject.lanes if profile.rule.lanes is None else profile.rule.lanes


def write_delivery_files(
    home: Home,
    config: Config,
    profile: SessionProfile,
    compiled: Compiled,
    message: str,
    now: datetime,
    *,
    is_first: bool,
    names: Sequence[str] = (),
    began: int | None = None,
) -> tuple[Notice, ...]:
    """Return notices about files that could not be written. Never raises. `is_first`: this is the session's
    first turn. `names`: all ids that the session had. `began`: the start of the turn, in nanoseconds."""
    lanes = delivery_modes(profile, config)
    notices = []
    if "file" in lanes:
        notices.append(Notice("file-lane", _write_context_file(home, config, profile, compiled, now, began)))
    else:
        clear_context_file(home, config.sessions.directory, profile.kind.key, began)
    if "daily" in lanes and config.memory.read_only:
        notices.append(
            Notice("daily-lane", "memory.read_only is true, so nothing is added to the daily notes.")
        )
    elif "daily" in lanes and compiled.given:
        names = names or (compiled.receipt.session_id,)
        problem = _add_to_daily_note(
            home, config, profile, compiled, message, now, is_first=is_first, names=names
        )
        notices.append(Notice("daily-lane", problem))
    return tuple(notice for notice in notices if notice.text)


def _write_context_file(
    home: Home, config: Config, profile: SessionProfile, compiled: Compiled, now: datetime, began: int | None
) -> str:
    directory, key = config.sessions.directory, profile.kind.key
    try:
        text = context_file.render(compiled.given, now, config.inject.confidence_gate)
    except Exception as error:  # noqa: BLE001 - after any error, the old content must go
        write_context_file(home, directory, key, "", began)
        return f"The copy could not be made: {type(error).__name__}: {error}. The file was emptied."
    return write_context_file(home, directory, key, text, began)


def _add_to_daily_note(
    home: Home,
    config: Config,
    profile: SessionProfile,
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
    session, *others = [daily_section.session_hash(profile.kind.key, name) for name in names]
    try:
        section = daily_section.render_section(
            compiled.given,
            now,
            session,
            clean(message).text,
            most=limits.max_injected_chars,
            most_snippet=limits.max_snippet_chars,
        )
    except Exception as error:  # noqa: BLE001 - after any error, the old content must go
        return f"The section could not be made: {type(error).__name__}: {error}."
    if not section:
        return "No passage fits into context_compiler.max_injected_chars."
    markers = [daily_section.session_marker(hashed) for hashed in (session, *others)]
    return append_daily_section(
        home, _daily_folder(home, config), now.date(), markers, section, goes_on=not is_first
    )


def _daily_folder(home: Home, config: Config) -> Path:
    directory = config.inject.daily_directory
    return home.root / "knowledge" / "journal" if directory is None else Path(directory)

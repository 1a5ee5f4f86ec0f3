"""The delivery modes that write files: copies of a turn's context, for readers of those files.

`file` keeps the session's ETHOS_CONTEXT.md up to date: with the chunks of the last turn, or empty. If this
mode is off, an existing file is emptied, because the listener may have changed under the same key. `daily`
adds the first chunks of a session to the owner's daily note, once. Both are off unless the config names them,
and neither ever stops a turn.

Only the owner's sessions add to the daily note. It is read back in the owner's sessions, so other people who
write to the agent must not control its content.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tacit.config import Config
from tacit.context.delivery.files import append_daily_section, clear_context_file, write_context_file
from tacit.context.delivery.formats import (
    render_context_file,
    render_daily_section,
    session_hash,
    session_marker,
)
from tacit.context.model import Quote
from tacit.diagnostics import Notice
from tacit.home.layout import Home
from tacit.privacy.redaction import clean
from tacit.sessions.policy import SessionProfile


@dataclass(frozen=True, slots=True)
class TurnCopy:
    """What the files get from one turn."""

    quotes: tuple[Quote, ...]
    message: str
    now: datetime
    session_ids: tuple[str, ...]  # all that the session had, the current one first
    is_first: bool  # this is the session's first turn
    began_ns: int | None = None  # the start of the turn; None: now


def write_delivery_files(
    home: Home, config: Config, profile: SessionProfile, copy: TurnCopy
) -> tuple[Notice, ...]:
    """Return notices about files that could not be written. Never raises."""
    modes, directory = profile.rule.lanes or (), config.sessions.directory
    file_problem = daily_problem = ""
    if "file" in modes:
        gate = config.inject.confidence_gate
        file_problem = _write_context_file(home, directory, profile.kind.key, copy, gate)
    else:
        clear_context_file(home, directory, profile.kind.key, copy.began_ns)
    if "daily" in modes and config.memory.read_only:
        daily_problem = "memory.read_only is true, so nothing is added to the daily notes."
    elif "daily" in modes and copy.quotes:
        daily_problem = _add_to_daily_note(home, config, profile, copy)
    problems = (("file-lane", file_problem), ("daily-lane", daily_problem))
    return tuple(Notice(code, problem) for code, problem in problems if problem)


def _write_context_file(home: Home, directory: str | None, key: str, copy: TurnCopy, gate: float) -> str:
    try:
        text = render_context_file(copy.quotes, copy.now, gate)
    except Exception as error:  # noqa: BLE001 - after any error, the old content must go
        write_context_file(home, directory, key, "", copy.began_ns)
        return f"The copy could not be made: {type(error).__name__}: {error}. The file was emptied."
    return write_context_file(home, directory, key, text, copy.began_ns)


def _add_to_daily_note(home: Home, config: Config, profile: SessionProfile, copy: TurnCopy) -> str:
    if profile.rule.audience != "owner":
        return "Only the owner's sessions add to the daily note."
    limits = config.context_compiler
    hashes = [session_hash(profile.kind.key, name) for name in copy.session_ids]
    try:
        section = render_daily_section(
            copy.quotes,
            copy.now,
            hashes[0],
            clean(copy.message).text,
            max_chars=limits.max_injected_chars,
            max_snippet_chars=limits.max_snippet_chars,
        )
    except Exception as error:  # noqa: BLE001 - after any error, the old content must go
        return f"The section could not be made: {type(error).__name__}: {error}."
    if not section:
        return "No passage fits into context_compiler.max_injected_chars."
    directory = config.inject.daily_directory
    folder = home.root / "knowledge" / "journal" if directory is None else Path(directory)
    markers = [session_marker(hashed) for hashed in hashes]
    return append_daily_section(home, folder, copy.now.date(), markers, section, goes_on=not copy.is_first)

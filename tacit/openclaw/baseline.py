"""What the host loads into a session, by its own report; what it would load, by its rules; what tacit loads.

A report tells characters. Tokens are counted in the file itself, cut as the host cuts it. Reports of before
and after the install are kept apart by when they were made: those from before are the baseline.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tacit.app import load_config
from tacit.errors import HostError, UsageError
from tacit.memory import Memory
from tacit.openclaw import listing
from tacit.openclaw import manifest as record
from tacit.openclaw.compare import Bulk, Row, compared, gathered
from tacit.openclaw.find import Host
from tacit.openclaw.listing import Limits, Loaded
from tacit.sessions.classify import classify
from tacit.store import files, receipts
from tacit.store.home import Home
from tacit.text import tokens

FILE = "initiatives/adaptive-context-injection/baseline-context.txt"
STORED = "baseline.json"
KEYS = ("agent:main:tacit-baseline", "agent:main:tacit-probe")  # sessions that are nobody's conversation
_HEAD = "Context that OpenClaw loads by itself"
_LARGEST = 2 * 1024 * 1024
_SESSIONS = 200  # that the host is asked about at least, the newest


class Reported(NamedTuple):
    """One session as the host, or a replay of its rules, tells it."""

    kind: str
    key: str  # empty: no session was looked at
    at: str
    files: tuple[Loaded, ...]
    is_before: bool  # tacit had no part in it

    @property
    def tokens(self) -> int:
        return sum(file.tokens for file in self.files)

    @property
    def source(self) -> str:
        return f"the host's report of {self.at[:10]}" if self.key else "computed by the host's rules"


# ---------------------------------------------------------------- the host's report


def reports(host: Host, installed: str, owners: Sequence[str]) -> Iterator[Reported]:
    """The newest of each kind of session, before and after the install."""
    met = set()
    for key, weight in told(host):
        kind = listing.kind_of(classify(key, owners).type)
        if not kind or kind in met or key in KEYS:
            continue
        found = reported(kind, key, weight, installed)
        if found is not None:
            met.add(kind)
            yield found


def told(host: Host) -> list[tuple[str, Mapping[str, Any]]]:
    """The sessions that a running host knows and its report of each, the newest first.

    The host answers the same question from a cache for half a minute, so it is never asked the same twice.
    """
    if host.command is None or not host.is_serving():
        return []
    limit = _SESSIONS + secrets.randbelow(_SESSIONS)
    asked = json.dumps({"includeContextWeight": True, "agentScope": "all", "limit": limit})
    said = host.command.json("gateway", "call", "sessions.usage", "--params", asked, "--json")
    newest = sorted(said.get("sessions") or [], key=lambda one: -int(one.get("updatedAt") or 0))
    return [(str(one.get("key") or ""), one.get("contextWeight") or {}) for one in newest]


def turn(host: Host, installed: str) -> Reported:
    """By one turn of a session that is made for it, which asks the model once."""
    local = () if host.is_serving() else ("--local",)
    message = "This is a test of which files you were given. Answer with one word."
    said = host.openclaw().json("agent", "--message", message, "--session-key", KEYS[0], "--json", *local)
    result = said.get("result", said)
    report = (result.get("meta") or {}).get("systemPromptReport") or {}
    found = reported("main", KEYS[0], report, installed)
    if found is None:
        raise HostError("The host gave no report about its prompt. Is this version supported?")
    return found


def reported(kind: str, key: str, report: Mapping[str, Any], installed: str) -> Reported | None:
    listed = report.get("injectedWorkspaceFiles")
    if not isinstance(listed, list):
        return None
    made = datetime.fromtimestamp(float(report.get("generatedAt") or 0) / 1000, UTC)
    found = tuple(_loaded(one) for one in listed if not one.get("missing"))
    is_before = not installed or made < datetime.fromisoformat(installed)
    return Reported(kind, key, made.isoformat(timespec="seconds"), found, is_before)


def _loaded(entry: Mapping[str, Any]) -> Loaded:
    path = Path(str(entry.get("path") or ""))
    raw, injected = int(entry.get("rawChars") or 0), int(entry.get("injectedChars") or 0)
    text = _text(path)
    shown = listing.cut(text, injected) if text else ""
    cost = tokens.count(shown) if shown else injected // 4  # gone since, or never a file
    return Loaded(path.name, raw, injected, cost)  # under its own name, whatever it was listed as


def _text(file: Path) -> str:
    try:
        with open(file, "rb") as opened:
            text = opened.read(_LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
    return text.removeprefix("\ufeff").rstrip()  # as the host takes it


# ---------------------------------------------------------------- a replay


def texts_of(workspace: Path) -> dict[str, str]:
    """The files that the host loads by itself, those that are there."""
    return {name: _text(workspace / name) for name in listing.NAMES if (workspace / name).is_file()}


def computed(texts: Mapping[str, str], limits: Limits, now: str) -> list[Reported]:
    return [
        Reported(kind, "", now, tuple(listing.loads(kind, texts, limits)), True) for kind in listing.TYPES
    ]


def replayed(memory: Memory, workspace: Path, limits: Limits) -> dict[str, tuple[Bulk, float]]:
    """What the host would load, and what tacit loads instead: the bootstrap lane on the files as they are."""
    texts, found = texts_of(workspace), {}
    for kind, key in keys_of(memory.config.owners).items():
        loaded = listing.loads(kind, texts, limits)
        is_cut = any(file.injected < file.chars for file in loaded)
        bulk = Bulk(sum(file.tokens for file in loaded), "replayed, shortened" if is_cut else "replayed")
        listed = listing.entries(kind, texts, str(workspace))
        done = memory.bootstrapped(key, listed, str(workspace), trial=True)
        found[kind] = (bulk, float(done.receipt.tokens))
    return found


def keys_of(owners: Sequence[str]) -> dict[str, str]:
    """A session key of each kind."""
    channel, _, person = (owners[0] if owners else "telegram:1").rpartition(":")
    place = f"agent:main:{channel or 'telegram'}"
    return {
        "main": "agent:main:main",
        "direct": f"{place}:direct:{person}",
        "group": f"{place}:group:1",
        "topic": f"{place}:group:1:topic:1",
        "subagent": "agent:main:subagent:1",
        "cron": "agent:main:cron:1",
    }


def captured(
    host: Host, memory: Memory, workspace: Path, now: datetime, *, ask: bool
) -> tuple[list[Reported], Path]:
    """What is known of each kind of session, kept in the home and in a file of the workspace. `ask`: with a
    turn that is made for it."""
    known, moment = record.load(memory.home), now.isoformat(timespec="seconds")
    installed, version = known.installed if known else "", host.openclaw().version()
    found = list(reports(host, installed, memory.config.owners))
    if ask:
        found.append(turn(host, installed))
    if load_config(memory.home).config.inject.files == "host":
        found = [_as_host(one, memory.home) for one in found]
    found += computed(texts_of(workspace), listing.limits_of(host.tree), moment)
    kept = store(memory.home, found, moment, version)
    return kept, write(workspace, written(kept, moment, version))


def _as_host(one: Reported, home: Home) -> Reported:
    """With `inject.files: host` tacit has no part in which files are loaded, once the config says so."""
    changed = datetime.fromtimestamp(home.config.stat().st_mtime, UTC)
    return one._replace(is_before=one.is_before or datetime.fromisoformat(one.at) >= changed)


# ---------------------------------------------------------------- what is known


def stored(home: Home) -> list[Reported]:
    said = record.read_json(home, STORED)
    with suppress(TypeError, KeyError, ValueError):
        return [
            Reported(**{**one, "files": tuple(Loaded(*file) for file in one["files"])})
            for one in (said or {}).get("sessions", [])
        ]
    return []


def store(home: Home, found: Sequence[Reported], now: str, host: str) -> list[Reported]:
    """With what is known from before: a report of the host is not given up for something computed."""
    known = {(one.kind, one.is_before): one for one in stored(home)}
    for one in found:
        place = (one.kind, one.is_before)
        if one.key or place not in known or not known[place].key:
            known[place] = one
    kept = sorted(known.values(), key=lambda one: (not one.is_before, listing.TYPES.index(one.kind)))
    record.write_json(
        home, STORED, {"captured": now, "host": host, "sessions": [one._asdict() for one in kept]}
    )
    return kept


def bulk_of(known: Sequence[Reported]) -> dict[str, Bulk]:
    return {one.kind: Bulk(one.tokens, one.source) for one in known if one.is_before and one.key}


def rows(memory: Memory, workspace: Path, limits: Limits) -> list[Row]:
    seen = gathered(receipts.of_session(memory.home, None), KEYS)
    return compared(seen, bulk_of(stored(memory.home)), replayed(memory, workspace, limits))


# ---------------------------------------------------------------- the file in the workspace


def written(found: Sequence[Reported], now: str, host: str) -> str:
    """As people read it, in the lines of the host's own /context list."""
    before = [one for one in found if one.is_before]
    has_memory = any(file.name == "MEMORY.md" and file.injected for one in before for file in one.files)
    lines = [
        f"{_HEAD} ({host}, {now[:10]})",
        f"MEMORY.md is {'' if has_memory else 'not '}among it.",
    ]
    for one in before:
        lines += ["", f"{one.kind}: {one.tokens} tokens ({one.source}{f', {one.key}' if one.key else ''})"]
        lines += [_line(file) for file in one.files]
    return "\n".join(lines) + "\n"


def _line(file: Loaded) -> str:
    state = "OK" if file.injected == file.chars else "TRUNCATED"
    injected = f"injected {file.injected:,} chars ({file.tokens:,} tok)"
    return f"- {file.name}: {state} | raw {file.chars:,} chars | {injected}"


def write(workspace: Path, text: str) -> Path:
    """Over an earlier one of ours, and over nothing else."""
    file = workspace / FILE
    there = _text(file)
    if file.exists() and not there.startswith(_HEAD):
        raise UsageError(f"{file} was not written by tacit, so it was left. Move it away and try again.")
    if not workspace.is_dir():
        raise UsageError(f"There is no workspace at {workspace}.")
    files.make_directories(file.parent, 0o755)
    files.replace(file, text.encode(), 0o644)
    return file

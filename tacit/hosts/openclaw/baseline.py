"""What sessions cost with the host's own files and with tacit, by kind of session.

The host reports which files it loaded, in characters. Tokens are counted in the file itself, shortened as the
host shortens it. Reports from before the install are the baseline; their time tells them apart.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tacit.app import load_config
from tacit.context import receipts
from tacit.context.model import Receipt
from tacit.errors import HostError, UsageError
from tacit.home import files
from tacit.home.layout import Home
from tacit.hosts.openclaw import bootstrap_files
from tacit.hosts.openclaw import manifest as record
from tacit.hosts.openclaw.bootstrap_files import TYPES, BootstrapLimits, LoadedFile, kind_of
from tacit.hosts.openclaw.machine import OpenClawHost
from tacit.memory import Memory
from tacit.sessions.keys import classify
from tacit.sessions.keys import parse_sender as person_of
from tacit.text import tokens

# ---------------------------------------------------------------- comparing costs

AIMS = {"main": 60, "topic": 85, "subagent": 85}  # target savings in percent
_MAX_RECEIPTS = 500  # newest receipts per kind and delivery mode


class DefaultContext(NamedTuple):
    """What the host loads by itself."""

    tokens: float
    source: str  # where the figure comes from


class AverageTurns(NamedTuple):
    """What tacit added on average in the turns of one kind."""

    files: float | None = None
    listed: float | None = None  # what the host would have loaded in those turns
    text: float | None = None
    runs: int = 0
    turns: int = 0


class ComparisonRow(NamedTuple):
    kind: str
    bulk: float
    bulk_source: str
    files: float
    text: float | None  # None: no turn yet
    source: str

    @property
    def total(self) -> float:
        return self.files + (self.text or 0)

    @property
    def saving(self) -> float | None:
        """In percent; None if the host loads nothing."""
        return 100 * (1 - self.total / self.bulk) if self.bulk else None

    @property
    def aim(self) -> int | None:
        return AIMS.get(self.kind)

    @property
    def verdict(self) -> str:
        if self.aim is None or self.saving is None:
            return ""
        return "reached" if self.saving >= self.aim else "missed"


def gather_turns(receipts: Iterable[Receipt], without: Sequence[str] = ()) -> dict[str, AverageTurns]:
    """`without`: session keys that are not real conversations."""
    files: dict[str, list[Receipt]] = {}
    turns: dict[str, list[Receipt]] = {}
    for receipt in receipts:
        kind = kind_of(receipt.session_type)
        if not kind or receipt.trial or receipt.session_key in without:
            continue
        if receipt.lane == "bootstrap" and receipt.host_tokens is not None:
            files.setdefault(kind, []).append(receipt)
        elif receipt.lane == "runtime":
            turns.setdefault(kind, []).append(receipt)
    return {
        kind: _average_turns(files.get(kind, [])[:_MAX_RECEIPTS], turns.get(kind, [])[:_MAX_RECEIPTS])
        for kind in {*files, *turns}
    }


def _average_turns(files: Sequence[Receipt], turns: Sequence[Receipt]) -> AverageTurns:
    return AverageTurns(
        _mean([receipt.tokens for receipt in files]),
        _mean([receipt.host_tokens or 0 for receipt in files]),
        _mean([receipt.tokens for receipt in turns]),
        len(files),
        len(turns),
    )


def _mean(numbers: Sequence[int]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def compare_costs(
    seen: Mapping[str, AverageTurns],
    reported: Mapping[str, DefaultContext],
    replayed: Mapping[str, tuple[DefaultContext, float]],
) -> list[ComparisonRow]:
    """Measured turns count most, then the host's own report, then the replay. The host shortens long files,
    so the files that a hook was shown may be larger than what the host would have loaded."""
    rows = []
    for kind in TYPES:
        turns = seen.get(kind, AverageTurns())
        replay, replay_files = replayed.get(kind, (None, None))
        bulk = _choose_bulk(turns, reported.get(kind), replay)
        files = replay_files if turns.files is None else turns.files
        if bulk is not None and files is not None:
            source = "replayed" if turns.files is None else _describe_runs(turns)
            rows.append(ComparisonRow(kind, bulk.tokens, bulk.source, files, turns.text, source))
    return rows


def _choose_bulk(
    turns: AverageTurns, reported: DefaultContext | None, replay: DefaultContext | None
) -> DefaultContext | None:
    if turns.listed is None:
        return reported or replay
    if replay is not None and replay.tokens < turns.listed and replay.source.endswith("shortened"):
        return replay
    return DefaultContext(turns.listed, _describe_runs(turns))


def _describe_runs(turns: AverageTurns) -> str:
    return "1 run" if turns.runs == 1 else f"{turns.runs} runs"


FILE = "initiatives/adaptive-context-injection/baseline-context.txt"
STORE_NAME = "baseline.json"
OWN_SESSION_KEYS = (
    "agent:main:tacit-baseline",
    "agent:main:tacit-probe",
)  # sessions that are not real conversations
_HEAD = "Context that OpenClaw loads by itself"
_MAX_FILE_BYTES = 2 * 1024 * 1024
_MIN_SESSIONS = 200  # newest sessions to request, at least


class SessionReport(NamedTuple):
    """The files of one session, by the host's report or by a replay of its rules."""

    kind: str
    key: str  # empty: computed, not from a session
    at: str
    files: tuple[LoadedFile, ...]
    is_before: bool  # tacit was not involved

    @property
    def tokens(self) -> int:
        return sum(file.tokens for file in self.files)

    @property
    def source(self) -> str:
        return f"the host's report of {self.at[:10]}" if self.key else "computed by the host's rules"


# ---------------------------------------------------------------- the host's report


def reports(host: OpenClawHost, installed: str, owners: Sequence[str]) -> Iterator[SessionReport]:
    """The newest report of each kind of session, before and after the install."""
    seen_kinds = set()
    for key, weight in fetch_reports(host):
        kind = bootstrap_files.kind_of(classify(key, owners).type)
        if not kind or kind in seen_kinds or key in OWN_SESSION_KEYS:
            continue
        report = parse_report(kind, key, weight, installed)
        if report is not None:
            seen_kinds.add(kind)
            yield report


def fetch_reports(host: OpenClawHost) -> list[tuple[str, Mapping[str, Any]]]:
    """The sessions that a running host knows, each with its report, newest first.

    The host caches an answer for half a minute, so each request uses a different limit.
    """
    if host.command is None or not host.is_serving():
        return []
    limit = _MIN_SESSIONS + secrets.randbelow(_MIN_SESSIONS)
    params = json.dumps({"includeContextWeight": True, "agentScope": "all", "limit": limit})
    usage = host.command.json("gateway", "call", "sessions.usage", "--params", params, "--json")
    newest = sorted(usage.get("sessions") or [], key=lambda session: -int(session.get("updatedAt") or 0))
    return [(str(session.get("key") or ""), session.get("contextWeight") or {}) for session in newest]


def run_turn(host: OpenClawHost, installed: str) -> SessionReport:
    """Runs one turn in a session made for it, which calls the model once."""
    local = () if host.is_serving() else ("--local",)
    message = "This is a test of which files you were given. Answer with one word."
    answer = host.openclaw().json(
        "agent", "--message", message, "--session-key", OWN_SESSION_KEYS[0], "--json", *local
    )
    result = answer.get("result", answer)
    report = (result.get("meta") or {}).get("systemPromptReport") or {}
    session_report = parse_report("main", OWN_SESSION_KEYS[0], report, installed)
    if session_report is None:
        raise HostError("The host gave no report about its prompt. Is this version supported?")
    return session_report


def parse_report(kind: str, key: str, report: Mapping[str, Any], installed: str) -> SessionReport | None:
    listed = report.get("injectedWorkspaceFiles")
    if not isinstance(listed, list):
        return None
    moment = datetime.fromtimestamp(float(report.get("generatedAt") or 0) / 1000, UTC)
    loaded = tuple(_parse_file(entry) for entry in listed if not entry.get("missing"))
    is_before = not installed or moment < datetime.fromisoformat(installed)
    return SessionReport(kind, key, moment.isoformat(timespec="seconds"), loaded, is_before)


def _parse_file(entry: Mapping[str, Any]) -> LoadedFile:
    path = Path(str(entry.get("path") or ""))
    chars, injected = int(entry.get("rawChars") or 0), int(entry.get("injectedChars") or 0)
    text = _read_text(path)
    injected_text = bootstrap_files.shorten(text, injected) if text else ""
    cost = (
        tokens.count(injected_text) if injected_text else injected // 4
    )  # the file is gone, or never existed
    return LoadedFile(path.name, chars, injected, cost)  # its own name, even if it was listed under another


def _read_text(file: Path) -> str:
    try:
        with open(file, "rb") as stream:
            text = stream.read(_MAX_FILE_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    return text.removeprefix("\ufeff").rstrip()  # as the host reads it


# ---------------------------------------------------------------- a replay


def read_texts(workspace: Path) -> dict[str, str]:
    """The files that the host loads by itself and that exist."""
    return {
        name: _read_text(workspace / name) for name in bootstrap_files.NAMES if (workspace / name).is_file()
    }


def compute_reports(texts: Mapping[str, str], limits: BootstrapLimits, now: str) -> list[SessionReport]:
    return [
        SessionReport(kind, "", now, tuple(bootstrap_files.simulate_load(kind, texts, limits)), True)
        for kind in bootstrap_files.TYPES
    ]


def replay_files(
    memory: Memory, workspace: Path, limits: BootstrapLimits
) -> dict[str, tuple[DefaultContext, float]]:
    """What the host would load, and what tacit loads instead in bootstrap mode, from the files as they are
    now."""
    texts, replays = read_texts(workspace), {}
    for kind, key in example_keys(memory.config.owners).items():
        loaded = bootstrap_files.simulate_load(kind, texts, limits)
        is_cut = any(file.injected < file.chars for file in loaded)
        bulk = DefaultContext(
            sum(file.tokens for file in loaded), "replayed, shortened" if is_cut else "replayed"
        )
        listed = bootstrap_files.list_entries(kind, texts, str(workspace))
        compiled = memory.services.bootstrap(key, listed, str(workspace), trial=True)
        replays[kind] = (bulk, float(compiled.receipt.tokens))
    return replays


def example_keys(owners: Sequence[str]) -> dict[str, str]:
    """An example session key of each kind."""
    channel, person = person_of(owners[0] if owners else "telegram:1")
    place = f"agent:main:{channel or 'telegram'}"
    return {
        "main": "agent:main:main",
        "direct": f"{place}:direct:{person}",
        "group": f"{place}:group:1",
        "topic": f"{place}:group:1:topic:1",
        "subagent": "agent:main:subagent:1",
        "cron": "agent:main:cron:1",
    }


def capture(
    host: OpenClawHost, memory: Memory, workspace: Path, now: datetime, *, ask: bool
) -> tuple[list[SessionReport], Path]:
    """Collects what is known of each kind of session and saves it in the home and in a file of the workspace.
    `ask`: also run a turn for it."""
    manifest, moment = record.load(memory.home), now.isoformat(timespec="seconds")
    installed, version = manifest.installed if manifest else "", host.openclaw().version()
    session_reports = list(reports(host, installed, memory.config.owners))
    if ask:
        session_reports.append(run_turn(host, installed))
    if load_config(memory.home).config.inject.files == "host":
        session_reports = [_mark_before(report, memory.home) for report in session_reports]
    session_reports += compute_reports(read_texts(workspace), bootstrap_files.read_limits(host.tree), moment)
    stored_reports = save_reports(memory.home, session_reports, moment, version)
    return stored_reports, write_file(workspace, render(stored_reports, moment, version))


def _mark_before(report: SessionReport, home: Home) -> SessionReport:
    """With `inject.files: host` tacit does not choose the files, so reports since that setting count as
    before."""
    changed = datetime.fromtimestamp(home.config.stat().st_mtime, UTC)
    return report._replace(is_before=report.is_before or datetime.fromisoformat(report.at) >= changed)


# ---------------------------------------------------------------- what is known


def load_reports(home: Home) -> list[SessionReport]:
    data = record.read_json(home, STORE_NAME)
    with suppress(TypeError, KeyError, ValueError):
        return [
            SessionReport(**{**session, "files": tuple(LoadedFile(*file) for file in session["files"])})
            for session in (data or {}).get("sessions", [])
        ]
    return []


def save_reports(home: Home, found: Sequence[SessionReport], now: str, host: str) -> list[SessionReport]:
    """Merges with earlier sessions: a report of the host is never replaced by a computed one."""
    reports_by_kind = {(report.kind, report.is_before): report for report in load_reports(home)}
    for report in found:
        kind_key = (report.kind, report.is_before)
        if report.key or kind_key not in reports_by_kind or not reports_by_kind[kind_key].key:
            reports_by_kind[kind_key] = report
    sessions = sorted(
        reports_by_kind.values(),
        key=lambda session: (not session.is_before, bootstrap_files.TYPES.index(session.kind)),
    )
    record.write_json(
        home,
        STORE_NAME,
        {"captured": now, "host": host, "sessions": [report._asdict() for report in sessions]},
    )
    return sessions


def default_contexts(known: Sequence[SessionReport]) -> dict[str, DefaultContext]:
    return {
        report.kind: DefaultContext(report.tokens, report.source)
        for report in known
        if report.is_before and report.key
    }


def compare_rows(memory: Memory, workspace: Path, limits: BootstrapLimits) -> list[ComparisonRow]:
    turns = gather_turns(receipts.read_receipts(memory.home, None), OWN_SESSION_KEYS)
    return compare_costs(
        turns, default_contexts(load_reports(memory.home)), replay_files(memory, workspace, limits)
    )


# ---------------------------------------------------------------- the file in the workspace


def render(found: Sequence[SessionReport], now: str, host: str) -> str:
    """The text for people, in the format of the host's own /context list."""
    before = [report for report in found if report.is_before]
    has_memory = any(file.name == "MEMORY.md" and file.injected for report in before for file in report.files)
    lines = [
        f"{_HEAD} ({host}, {now[:10]})",
        f"MEMORY.md is {'' if has_memory else 'not '}among it.",
    ]
    for report in before:
        lines += [
            "",
            (
                f"{report.kind}: {report.tokens} tokens "
                f"({report.source}{f', {report.key}' if report.key else ''})"
            ),
        ]
        lines += [_render_file(file) for file in report.files]
    return "\n".join(lines) + "\n"


def _render_file(file: LoadedFile) -> str:
    state = "OK" if file.injected == file.chars else "TRUNCATED"
    injected = f"injected {file.injected:,} chars ({file.tokens:,} tok)"
    return f"- {file.name}: {state} | raw {file.chars:,} chars | {injected}"


def write_file(workspace: Path, text: str) -> Path:
    """Replaces only a file that tacit wrote."""
    file = workspace / FILE
    present = _read_text(file)
    if file.exists() and not present.startswith(_HEAD):
        raise UsageError(f"{file} was not written by tacit, so it was left. Move it away and try again.")
    if not workspace.is_dir():
        raise UsageError(f"There is no workspace at {workspace}.")
    files.make_directories(file.parent, 0o755)
    files.replace(file, text.encode(), 0o644)
    return file

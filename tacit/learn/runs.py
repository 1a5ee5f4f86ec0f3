"""The log of what was learned from and condensed: `.tacit/runs.jsonl`.

The commit is the receipt. A commit of learned lines names the transcript, its hash and the extractors in a
`Learned:` trailer, and a condensing commit names its periods in `Condensed:`. The log is faster to read and
also has the conversations that gave no lines. Runs that only commits know, because another machine made them
or because the log is gone, are imported; at worst some conversations are read once more, which adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tacit.git.jsonl import JsonlLog
from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import Home

LEARNED, CONDENSED = "Learned", "Condensed"
_FILE = "runs.jsonl"
_LAST_COMMIT_FILE = "runs.head"  # the last commit that was imported
_LONG_AGO = datetime(1, 1, 2, tzinfo=UTC)


class LearnRun(NamedTuple):
    """The outcome of learning from one conversation."""

    transcript: str
    sha256: str
    extractors: tuple[str, ...]  # labels of those that finished
    failed: tuple[str, ...] = ()  # names of those that have to run again
    later: str = ""  # when, if not at once
    why: str = ""


class RunLog:
    def __init__(self, home: Home, git: Git) -> None:
        self._home, self._git = home, git
        self._record = JsonlLog(home.private, _FILE)

    def list_learn_runs(self) -> dict[str, LearnRun]:
        """By transcript path, all its runs combined."""
        by_transcript: dict[str, LearnRun] = {}
        for line in self._lines():
            if (run := _parse_run(line)) is not None:
                previous = by_transcript.get(run.transcript)
                labels = (*(previous.extractors if previous else ()), *run.extractors)
                by_transcript[run.transcript] = run._replace(extractors=tuple(dict.fromkeys(labels)))
        return by_transcript

    def list_condense_times(self) -> dict[str, datetime]:
        """Periods (`day 2026-11-17`, `week 2026-W46`, `month 2026-10`), each with its last run."""
        return dict(_parse_time_of(line, "condensed") for line in self._lines() if "condensed" in line)

    def list_condensed_sources(self) -> dict[str, frozenset[str]]:
        """The conversations that a day's summary has seen, and the lines that a week's rollup has seen.
        Periods known only from a commit are missing."""
        by_period: dict[str, frozenset[str]] = {}
        for line in self._lines():
            if "condensed" in line and isinstance(line.get("of"), list):
                name = str(line["condensed"])
                by_period[name] = by_period.get(name, frozenset()) | {str(item) for item in line["of"]}
        return by_period

    def find_last_prune(self) -> datetime | None:
        """When pruning and archiving last ran."""
        moments = [_parse_time_of(line, "pruned")[1] for line in self._lines() if "pruned" in line]
        return max(moments, default=None)

    def finish(self, run: LearnRun, at: datetime) -> None:
        self._add([{"at": at.isoformat(timespec="seconds"), **run._asdict()}])

    def condense(
        self, periods: Mapping[str, Sequence[str] | None], at: datetime, *, pruned: bool = False
    ) -> None:
        """`periods`: days and weeks come with what they have seen."""
        timestamp = at.isoformat(timespec="seconds")
        self._add(
            [
                {"at": timestamp, "condensed": period, **({} if seen is None else {"of": list(seen)})}
                for period, seen in periods.items()
            ]
        )
        if pruned:
            self._add([{"at": timestamp, "pruned": True}])

    def _lines(self) -> list[dict[str, Any]]:
        self._import_commits()
        return self._record.lines()

    def _import_commits(self) -> None:
        marker, head = (
            self._home.private / _LAST_COMMIT_FILE,
            self._git.head() if self._git.directory.is_dir() else None,
        )
        is_there = (self._home.private / _FILE).exists()
        seen = marker.read_text().strip() if is_there and marker.exists() else ""
        if head is None or seen == head:
            return
        since = seen if seen and self._git.resolve(seen) else ""
        known = {_content_key(line) for line in self._record.lines()}
        self._add([line for line in self._read_commits(since) if _content_key(line) not in known])
        files.replace(marker, head.encode())

    def _add(self, lines: list[dict[str, Any]]) -> None:
        with self._record.adding() as add:
            for line in lines:
                add(line)

    def _read_commits(self, since: str) -> Iterator[dict[str, Any]]:
        log_format = f"--format=at: %cI%n%(trailers:key={LEARNED},key={CONDENSED})"
        revisions = f"{since}..HEAD" if since else "HEAD"
        output = self._git.run("log", "--reverse", log_format, revisions, timeout=300).decode(
            "utf-8", "replace"
        )
        timestamp = ""
        for line in output.splitlines():
            key, _, value = line.partition(": ")
            if key == "at":
                timestamp = value
            elif key == LEARNED and len(parts := value.split()) == 3:
                yield {"at": timestamp, **LearnRun(parts[0], parts[1], tuple(parts[2].split(",")))._asdict()}
            elif key == CONDENSED and value:
                yield {"at": timestamp, "condensed": value.strip()}


def format_learned_trailer(run: LearnRun) -> str:
    return f"{LEARNED}: {run.transcript} {run.sha256} {','.join(run.extractors)}"


def _content_key(line: Mapping[str, Any]) -> tuple[str, ...]:
    """The content of a line without its time."""
    run = _parse_run(line)
    return (*run[:2], *run.extractors) if run is not None else (str(line.get("condensed", "")),)


def _parse_time_of(line: Mapping[str, Any], key: str) -> tuple[str, datetime]:
    try:
        moment = datetime.fromisoformat(str(line.get("at")))
    except ValueError:
        moment = _LONG_AGO
    return str(line[key]), moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _is_timestamp(text: object) -> bool:
    try:
        return isinstance(text, str) and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _parse_run(entry: Mapping[str, Any]) -> LearnRun | None:
    try:
        return LearnRun(
            str(entry["transcript"]),
            str(entry["sha256"]),
            tuple(map(str, entry["extractors"])),
            tuple(map(str, entry.get("failed", ()))),
            entry["later"] if _is_timestamp(entry.get("later")) else "",
            str(entry.get("why", "")),
        )
    except (KeyError, TypeError):
        return None

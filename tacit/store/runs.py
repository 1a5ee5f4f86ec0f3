"""What was learned from already, and what was condensed: `.tacit/runs.jsonl`.

The commit is the receipt. A commit of learned lines names the transcript, its hash and the extractors in a
trailer `Learned:`, and one that condenses names its periods in `Condensed:`. The file here is faster to read
and also knows the conversations from which nothing came. What commits tell that it does not know, because
another machine made them or because it is gone, is added to it; the worst that follows is that some
conversations are read once more, which adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tacit.store import files
from tacit.store.git import Git
from tacit.store.home import Home
from tacit.store.record import Record

LEARNED, CONDENSED = "Learned", "Condensed"
_FILE = "runs.jsonl"
_SEEN = "runs.head"  # the commit up to which commits were asked
_LONG_AGO = datetime(1, 1, 2, tzinfo=UTC)


class Run(NamedTuple):
    """What became of one conversation."""

    transcript: str
    sha256: str
    extractors: tuple[str, ...]  # labels of those that are done with it
    failed: tuple[str, ...] = ()  # names of those that have to try again
    later: str = ""  # when, if not at once
    why: str = ""


class Runs:
    def __init__(self, home: Home, git: Git) -> None:
        self._home, self._git = home, git
        self._record = Record(home.private, _FILE)

    def learned(self) -> dict[str, Run]:
        """By the path of the transcript, all that is done with it put together."""
        found: dict[str, Run] = {}
        for line in self._lines():
            if (run := _run(line)) is not None:
                before = found.get(run.transcript)
                done = (*(before.extractors if before else ()), *run.extractors)
                found[run.transcript] = run._replace(extractors=tuple(dict.fromkeys(done)))
        return found

    def condensed(self) -> dict[str, datetime]:
        """Periods (`day 2026-11-17`, `week 2026-W46`, `month 2026-10`), each with when it was done last."""
        return dict(_dated(line, "condensed") for line in self._lines() if "condensed" in line)

    def summed_up(self) -> dict[str, frozenset[str]]:
        """The conversations that the summary of a day has seen, and the lines that the rollup of a week has.
        Periods of which only a commit tells are not among them."""
        found: dict[str, frozenset[str]] = {}
        for line in self._lines():
            if "condensed" in line and isinstance(line.get("of"), list):
                name = str(line["condensed"])
                found[name] = found.get(name, frozenset()) | {str(one) for one in line["of"]}
        return found

    def pruned(self) -> datetime | None:
        """When it was last looked at what may be pruned or archived."""
        found = [_dated(line, "pruned")[1] for line in self._lines() if "pruned" in line]
        return max(found, default=None)

    def finish(self, run: Run, at: datetime) -> None:
        self._add([{"at": at.isoformat(timespec="seconds"), **run._asdict()}])

    def condense(
        self, periods: Mapping[str, Sequence[str] | None], at: datetime, *, pruned: bool = False
    ) -> None:
        """`periods`: with what was there, of days and weeks."""
        when = at.isoformat(timespec="seconds")
        self._add(
            [
                {"at": when, "condensed": period, **({} if seen is None else {"of": list(seen)})}
                for period, seen in periods.items()
            ]
        )
        if pruned:
            self._add([{"at": when, "pruned": True}])

    def _lines(self) -> list[dict[str, Any]]:
        self._ask_commits()
        return self._record.lines()

    def _ask_commits(self) -> None:
        file, head = self._home.private / _SEEN, self._git.head() if self._git.directory.is_dir() else None
        is_there = (self._home.private / _FILE).exists()
        seen = file.read_text().strip() if is_there and file.exists() else ""
        if head is None or seen == head:
            return
        since = seen if seen and self._git.resolve(seen) else ""
        known = {_said(line) for line in self._record.lines()}
        self._add([line for line in self._told_by_commits(since) if _said(line) not in known])
        files.replace(file, head.encode())

    def _add(self, lines: list[dict[str, Any]]) -> None:
        with self._record.adding() as add:
            for line in lines:
                add(line)

    def _told_by_commits(self, since: str) -> Iterator[dict[str, Any]]:
        form = f"--format=at: %cI%n%(trailers:key={LEARNED},key={CONDENSED})"
        which = f"{since}..HEAD" if since else "HEAD"
        told = self._git.run("log", "--reverse", form, which, timeout=300).decode("utf-8", "replace")
        at = ""
        for line in told.splitlines():
            key, _, value = line.partition(": ")
            if key == "at":
                at = value
            elif key == LEARNED and len(parts := value.split()) == 3:
                yield {"at": at, **Run(parts[0], parts[1], tuple(parts[2].split(",")))._asdict()}
            elif key == CONDENSED and value:
                yield {"at": at, "condensed": value.strip()}


def learned_trailer(run: Run) -> str:
    return f"{LEARNED}: {run.transcript} {run.sha256} {','.join(run.extractors)}"


def _said(line: Mapping[str, Any]) -> tuple[str, ...]:
    """What a line tells, whenever it was."""
    run = _run(line)
    return (*run[:2], *run.extractors) if run is not None else (str(line.get("condensed", "")),)


def _dated(line: Mapping[str, Any], key: str) -> tuple[str, datetime]:
    try:
        at = datetime.fromisoformat(str(line.get("at")))
    except ValueError:
        at = _LONG_AGO
    return str(line[key]), at if at.tzinfo else at.replace(tzinfo=UTC)


def _is_moment(text: object) -> bool:
    try:
        return isinstance(text, str) and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _run(said: Mapping[str, Any]) -> Run | None:
    try:
        return Run(
            str(said["transcript"]),
            str(said["sha256"]),
            tuple(map(str, said["extractors"])),
            tuple(map(str, said.get("failed", ()))),
            said["later"] if _is_moment(said.get("later")) else "",
            str(said.get("why", "")),
        )
    except (KeyError, TypeError):
        return None

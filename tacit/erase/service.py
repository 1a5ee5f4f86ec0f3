"""Forget something in a home: choose it, report what would be removed, and remove it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tacit.clock import Clock
from tacit.config import Config
from tacit.erase import plan as forget
from tacit.erase.disk import drop_index
from tacit.erase.erasure import Erasure
from tacit.erase.targets import SessionErasure, TextErasure, match_origin, match_session
from tacit.errors import UsageError
from tacit.git.refs import list_remotes
from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import Home
from tacit.transcripts.capture import count_tokens
from tacit.workspaces.folders import Workspaces

_UNREACHABLE = (
    "other clones and backups of this home",
    "what hosts logged, and what a model's provider was sent",
    "blocks of the disk that were freed, until they are written again",
    "text inside pictures and compressed files",
)


@dataclass(frozen=True, slots=True)
class ErasureReport:
    """What would be removed, and what is out of reach."""

    plan: forget.ErasurePlan
    passages: int  # chunks in the index
    outside: tuple[str, ...]
    staying: tuple[str, ...]  # attachments that a session mentioned
    adopted: tuple[str, ...] = ()  # places in workspaces, whose files are never written


def text_erasure(text: str, *, lines: bool = False, under: str = "") -> Erasure:
    return TextErasure(text, lines=lines, under=under, count=count_tokens)


def session_erasure(session_id: str) -> Erasure:
    if not session_id.strip():
        raise UsageError("Name a session: tacit forget --session ID")
    return SessionErasure("session", session_id, match_session(session_id), count_tokens)


def origin_erasure(key: str) -> Erasure:
    return SessionErasure("origin", key, match_origin(key), count_tokens)


class ErasureService:
    def __init__(
        self,
        home: Home,
        config: Config,
        clock: Clock,
        git: Git,
        workspaces: Workspaces,
        quarantine_index: Callable[[Path], Path],
    ) -> None:
        self._home, self._config, self._clock = home, config, clock
        self._git, self._workspaces, self._quarantine_index = git, workspaces, quarantine_index

    def report(self, what: Erasure) -> ErasureReport:
        for path, data in self._workspaces.contents():
            if what.holds(data):
                what.learn(path, data)  # logs may mention it
        plan = forget.make_plan(self._home, self._git, what, self._mirror_folders())
        adopted = tuple(self._find_in_workspaces(what))
        return ErasureReport(
            plan, self._count_indexed(plan), tuple(self._list_outside(plan)), _list_staying(plan), adopted
        )

    def _find_in_workspaces(self, erasure: Erasure) -> Iterator[str]:
        for path, data in self._workspaces.contents():
            if erasure.may_change(path) and erasure.holds(data):
                lines = [data.count(b"\n", 0, start) + 1 for start, _ in erasure.spans(data)]
                yield from (f"{path}:{line}" for line in dict.fromkeys(lines)) if lines else (path,)
            elif erasure.is_like(path, data) or erasure.path(path) != path:
                yield path

    def carry_out(self, what: Erasure, tell: Callable[[str], None]) -> tuple[ErasureReport, list[str]]:
        """Returns what was removed, and where it still is. Makes a new plan under the lock."""
        home = self._home

        def remove_index() -> None:
            file = home.private / "memory.db"
            with files.hold_lock(home.private / "index.lock"):
                if file.exists():
                    self._quarantine_index(file)
                drop_index(home)

        with (
            forget.hold_daemon_lock(home),
            files.hold_lock(home.lock),
            files.explain_disk_errors("forget"),
        ):
            forget.make_ready(home, self._git)
            report = self.report(what)
            if report.plan.is_empty:
                return report, []
            remaining = forget.carry_out(
                home,
                self._git,
                report.plan,
                now=self._clock.now(),
                drop_index=remove_index,
                mirrors=self._mirror_folders(),
                tell=tell,
            )
        return report, remaining

    def _mirror_folders(self) -> list[Path]:
        folder = self._config.sessions.directory
        return [] if folder is None else [Path(folder)]

    def _list_outside(self, plan: forget.ErasurePlan) -> list[str]:
        git, config = self._git, self._config
        places = [
            f"the remote {name} ({url}): {_describe_push(plan, name)}" for name, url in list_remotes(git)
        ]
        if config.git.remote and config.git.remote not in (url for _, url in list_remotes(git)):
            places.append(f"the remote of git.remote in {self._home.config.name}")
        for status in self._workspaces.look():
            workspace, suffix = (
                status.workspace,
                f" (it {status.trouble}, so it was not searched)" if status.trouble else "",
            )
            places.append(
                f"the workspace {workspace.name} in {workspace.path}: its files are read, not written{suffix}"
            )
        if config.inject.daily_directory:
            places += _search_daily_notes(Path(config.inject.daily_directory), plan.what)
        borrowed = git.common / "objects" / "info" / "alternates"
        if borrowed.is_file():
            places += [
                f"objects that are borrowed from {line}" for line in borrowed.read_text().split("\n") if line
            ]
        if plan.encrypted:
            description = "files that a git filter has encrypted: who has the key may find it there"
            places.append(f"in git, {plan.encrypted} versions of {description}")
        return [*places, *plan.unreachable, *_UNREACHABLE]

    def _count_indexed(self, plan: forget.ErasurePlan) -> int:
        """Indexed chunks of files that change or are removed. An unreadable index is dropped anyway."""
        file = self._home.private / "memory.db"
        paths = sorted({place.path for place in plan.places})
        if not file.is_file() or not paths:
            return 0
        try:
            with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)) as index:
                query = (
                    "SELECT count(*) FROM passages "
                    "JOIN knowledge_meta ON knowledge_meta.id = file WHERE path = ?"
                )
                return sum(index.execute(query, (path,)).fetchone()[0] for path in paths)
        except sqlite3.Error:
            return 0


def _describe_push(plan: forget.ErasurePlan, name: str) -> str:
    """What a remote has, judged by its known branches, and the commands that remove it there."""
    is_known = any(ref.startswith(f"refs/remotes/{name}/") for ref in plan.survey.refs)
    command = f"git push --force --all {name}, git push --force --tags {name}"
    renamed = [ref for ref in plan.survey.refs if ref.startswith("refs/heads/") and plan.what.ref(ref) != ref]
    deletions = "".join(
        f", git push {name} --delete {ref.removeprefix('refs/heads/')}" for ref in sorted(renamed)
    )
    return f"it {'has' if is_known else 'may have'} what was pushed before; {command}{deletions}"


def _search_daily_notes(folder: Path, erasure: Erasure) -> Iterator[str]:
    """Files outside the home are read but not written."""
    yield f"daily notes in {folder}"
    for file in sorted(folder.glob("*.md")):
        with suppress(OSError):
            if file.is_file() and erasure.holds(file.read_bytes()):
                yield f"{file}: it is in here; remove it yourself"


def _list_staying(plan: forget.ErasurePlan) -> tuple[str, ...]:
    return tuple(sorted(plan.what.attachments)) if isinstance(plan.what, SessionErasure) else ()

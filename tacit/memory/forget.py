"""Forgetting in a home: what is meant, what it would take, and doing it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tacit.capture import counted
from tacit.errors import UsageError
from tacit.index.opening import set_aside
from tacit.memory.memory import Memory
from tacit.store import files
from tacit.store.forgetting import forget, ready
from tacit.store.forgetting.derived import drop_index
from tacit.store.forgetting.passage import Passage
from tacit.store.forgetting.sessions import Sessions, one_session, sessions_of
from tacit.store.forgetting.what import Forgetting

_ELSEWHERE = (
    "other clones and backups of this home",
    "what hosts logged, and what a model's provider was sent",
    "blocks of the disk that were freed, until they are written again",
    "text inside pictures and compressed files",
)


@dataclass(frozen=True, slots=True)
class Report:
    """What would go, and what is out of reach."""

    plan: forget.Plan
    passages: int  # of the index
    outside: tuple[str, ...]
    staying: tuple[str, ...]  # attachments that a session named
    adopted: tuple[str, ...] = ()  # places in workspaces, whose files are read and not written


def passage(text: str, *, lines: bool = False, under: str = "") -> Forgetting:
    return Passage(text, lines=lines, under=under, count=counted)


def session(session_id: str) -> Forgetting:
    if not session_id.strip():
        raise UsageError("Name a session: tacit forget --session ID")
    return Sessions("session", session_id, one_session(session_id), counted)


def origin(key: str) -> Forgetting:
    return Sessions("origin", key, sessions_of(key), counted)


def look(memory: Memory, what: Forgetting) -> Report:
    for path, data in memory.workspaces.contents():
        if what.holds(data):
            what.learn(path, data)  # logs may know it from there
    plan = forget.look(memory.home, memory.git, what, _mirrors(memory))
    adopted = tuple(_adopted(memory, what))
    return Report(plan, _indexed(memory, plan), tuple(_outside(memory, plan)), _staying(plan), adopted)


def _adopted(memory: Memory, what: Forgetting) -> Iterator[str]:
    for path, data in memory.workspaces.contents():
        if what.may_change(path) and what.holds(data):
            lines = [data.count(b"\n", 0, start) + 1 for start, _ in what.spans(data)]
            yield from (f"{path}:{line}" for line in dict.fromkeys(lines)) if lines else (path,)
        elif what.is_like(path, data) or what.path(path) != path:
            yield path


def carry_out(memory: Memory, what: Forgetting, tell: Callable[[str], None]) -> tuple[Report, list[str]]:
    """What went, and where it still is. It is looked at once more, under the lock."""
    home = memory.home

    def without_index() -> None:
        file = home.private / "memory.db"
        with files.locked(home.private / "index.lock"):
            if file.exists():
                set_aside(file)
            drop_index(home)

    with ready.no_daemon(home), files.locked(home.lock), files.explained("forget"):
        ready.make_ready(home, memory.git)
        report = look(memory, what)
        if report.plan.is_empty:
            return report, []
        left = forget.carry_out(
            home,
            memory.git,
            report.plan,
            now=memory.moment(),
            drop_index=without_index,
            mirrors=_mirrors(memory),
            tell=tell,
        )
    return report, left


def _mirrors(memory: Memory) -> list[Path]:
    folder = memory.config.sessions.directory
    return [] if folder is None else [Path(folder)]


def _outside(memory: Memory, plan: forget.Plan) -> list[str]:
    git, config = memory.git, memory.config
    found = [
        f"the remote {name} ({url}): a push does not take back what it has" for name, url in git.remotes()
    ]
    if config.git.remote and config.git.remote not in (url for _, url in git.remotes()):
        found.append(f"the remote of git.remote in {memory.home.config.name}")
    for seen in memory.workspaces.look():
        one, looked = seen.workspace, f" (it {seen.trouble}, so nobody looked)" if seen.trouble else ""
        found.append(f"the workspace {one.name} in {one.path}: its files are read, not written{looked}")
    if config.inject.daily_directory:
        found.append(f"daily notes in {config.inject.daily_directory}")
    borrowed = git.common / "objects" / "info" / "alternates"
    if borrowed.is_file():
        found += [
            f"objects that are borrowed from {line}" for line in borrowed.read_text().split("\n") if line
        ]
    return [*found, *plan.unreachable, *_ELSEWHERE]


def _staying(plan: forget.Plan) -> tuple[str, ...]:
    return tuple(sorted(plan.what.attachments)) if isinstance(plan.what, Sessions) else ()


def _indexed(memory: Memory, plan: forget.Plan) -> int:
    """Passages of the index in files that change or go. An index that cannot be read goes all the same."""
    file = memory.home.private / "memory.db"
    paths = sorted({place.path for place in plan.places})
    if not file.is_file() or not paths:
        return 0
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True)) as index:
            query = (
                "SELECT count(*) FROM passages JOIN knowledge_meta ON knowledge_meta.id = file WHERE path = ?"
            )
            return sum(index.execute(query, (path,)).fetchone()[0] for path in paths)
    except sqlite3.Error:
        return 0

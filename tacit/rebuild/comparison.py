"""Compare two versions of the notes: size, model cost, and diff. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import environ
from typing import NamedTuple

from tacit.errors import UsageError
from tacit.git.repository import Git
from tacit.home.generated_lines import find_generated
from tacit.home.layout import Home
from tacit.llm.ledger import RETENTION_DAYS, Call, Ledger, SpendTotal, sum_calls
from tacit.llm.prices import find_price
from tacit.llm.recording import read_recordings
from tacit.markdown import comment, notes
from tacit.rebuild.store import Rebuild, list_rebuilds, read_notes
from tacit.text import tokens

_TASKS = ("extract", "condense", "prune")


class NotesVersion(NamedTuple):
    name: str
    commit: str
    rebuild: Rebuild | None = None


class NotesSize(NamedTuple):
    notes: int
    lines: int
    learned: int  # lines that tacit wrote
    tokens: int


class NoteDiff(NamedTuple):
    path: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


def find_version(home: Home, git: Git, name: str) -> NotesVersion:
    """Find a rebuild, branch, tag or commit by its name."""
    for rebuild in list_rebuilds(home, git):
        tip = rebuild.tip
        if tip is not None and name in (rebuild.name, rebuild.branch):
            return NotesVersion(name, tip, rebuild)
    commit = git.resolve(f"refs/heads/{name}") or git.resolve(name)
    if commit is None:
        names = ", ".join(rebuild.name for rebuild in list_rebuilds(home, git)) or "none"
        raise UsageError(f"{name!r} is not a rebuild, branch, tag or commit. Rebuilds: {names}")
    return NotesVersion(name, commit)


def measure_size(git: Git, side: NotesVersion) -> NotesSize:
    texts = _read_texts(git, side.commit)
    return NotesSize(
        len(texts),
        sum(text.count("\n") for text in texts.values()),
        sum(1 for path, text in texts.items() for _ in find_generated(text, path)),
        sum(tokens.count(comment.remove_superseded(text)) for text in texts.values()),
    )


def sum_spending(side: NotesVersion, ledger: Ledger, prices: Sequence[str]) -> SpendTotal:
    """Model usage: of a rebuild from its recorded calls, else from the ledger's learning tasks."""
    if side.rebuild is None:
        days = ledger.days(RETENTION_DAYS)
        return sum_calls(call for calls in days.values() for call in calls if call.task in _TASKS)
    calls = []
    for request, answer in read_recordings(side.rebuild.calls):
        price = find_price(request.model, environ, prices)
        usd = None if price is None else price.of(answer.tokens_in, answer.tokens_out)
        tokens_used = (answer.tokens_in, answer.tokens_out)
        calls.append(Call("", "", request.task, request.model, "ok", *tokens_used, usd))
    return sum_calls(calls)


def diff_notes(git: Git, before: NotesVersion, after: NotesVersion) -> Iterator[NoteDiff]:
    """Added and removed lines of each note, ignoring their position."""
    old, new = _read_texts(git, before.commit), _read_texts(git, after.commit)
    for path in sorted({*old, *new}):
        old_lines, new_lines = old.get(path, "").split("\n"), new.get(path, "").split("\n")
        known, remaining = set(old_lines), set(new_lines)
        added = tuple(line for line in new_lines if line.strip() and line not in known)
        removed = tuple(line for line in old_lines if line.strip() and line not in remaining)
        if added or removed or (path in old) != (path in new):
            yield NoteDiff(path, added, removed)


def _read_texts(git: Git, commit: str) -> dict[str, str]:
    return {path: notes.decode(data) for path, data in read_notes(git, commit, "knowledge").items()}

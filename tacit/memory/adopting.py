"""What was learned anew is taken over, in one commit, which one command takes back.

Somebody may talk, learn or write while that is prepared: what is committed by then is learned in the same way
first, and what changes in the last moment is left to a second try. Nobody's words are overwritten."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tacit.errors import Busy, ChangedOnDisk, UsageError
from tacit.memory.memory import Memory
from tacit.memory.rebuilding import How, Rebuilt, Tick, rebuild, replayed, told
from tacit.memory.reviewing import Edit, put, read_note
from tacit.store import files
from tacit.store.generated import REBUILT
from tacit.store.rebuilds import Rebuild, rebuild_of
from tacit.store.runs import Run
from tacit.store.tags import snapshot

_AGAIN = "Then adopt it again: tacit adopt-branch "


class Adopted(NamedTuple):
    commit: str  # empty: there was nothing to change
    tag: str
    paths: tuple[str, ...]
    rebuilt: Rebuilt


def adopt(memory: Memory, name: str, how: How, tick: Tick = lambda done, total: None) -> Adopted:
    """Take over what was learned anew. What happened since is learned in the same way first."""
    with files.locked(memory.home.private / "lifecycle.lock", 5.0):  # nobody learns meanwhile
        place = rebuild_of(memory.home, memory.git, name)
        done = rebuild(memory, name, how, tick, _half_done(memory, place))
        with place.locked():
            commit, paths = _taken_over(memory, place, done.base)
        _remember(memory, how, done.base)
        tag = _tagged(memory, name) if commit else ""
        place.drop()
    return Adopted(commit, tag, paths, done)


def _taken_over(memory: Memory, place: Rebuild, base: str) -> tuple[str, tuple[str, ...]]:
    with files.locked(memory.home.lock):
        if memory.git.head() != base:
            raise Busy(f"Something was committed just now. {_AGAIN}{place.name}")
        paths = tuple(memory.git.changed_between(base, place.tip or base))
        edits = list(_edits(memory, place, base))
        try:
            put(memory, edits)
        except ChangedOnDisk as error:
            raise Busy(
                f"{error.path} was changed just now. Run: tacit run commit. {_AGAIN}{place.name}"
            ) from None
        commits = memory.commit_paths(_message(place, len(paths)), paths).commits if paths else ()
        return next(iter(commits), ""), paths


def _half_done(memory: Memory, place: Rebuild) -> list[str]:
    """Notes that an adoption which was cut short has written already."""
    state, tip = place.state(), place.tip
    if state is None or tip is None or not state.done:
        return []
    paths = memory.git.changed_between(state.base, tip)
    return [path for path in paths if read_note(memory, path) == memory.git.read(tip, path)]


def _message(place: Rebuild, count: int) -> str:
    state = place.state()
    assert state is not None
    return (
        f"{REBUILT}regenerated knowledge with {place.name}\n\n"
        f"{count} notes, learned anew ({told(state.settings)}).\n\nAdopted: {place.branch} {place.tip}\n"
    )


def _edits(memory: Memory, place: Rebuild, base: str) -> Iterator[Edit]:
    tip = place.tip
    assert tip is not None
    for path in memory.git.changed_between(base, tip):
        old, new = memory.git.read(base, path), memory.git.read(tip, path)
        if read_note(memory, path) != new:
            yield Edit(path, old, new)


def _remember(memory: Memory, how: How, base: str) -> None:
    """Conversations that an extractor has read for the first time in the rebuild are not read again."""
    known_runs = memory.runs.learned()
    labels = how.settings.extractors
    for path in replayed(memory, base):
        done = known_runs[path].extractors if path in known_runs else ()
        read = {label.partition("/")[0] for label in done}
        if missing := tuple(label for label in labels if label.partition("/")[0] not in read):
            sha = files.digest((memory.home.root / path).read_bytes())
            memory.runs.finish(Run(path, sha, missing), memory.moment())


def _tagged(memory: Memory, name: str) -> str:
    """A name for the state; one that was used before gets a number."""
    for number in range(1, 100):
        try:
            return snapshot(memory.git, name if number == 1 else f"{name}-{number}", "extract")
        except UsageError:
            continue
    return ""

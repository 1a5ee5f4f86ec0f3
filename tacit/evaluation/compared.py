"""Two states of the notes beside each other: how large they are, what models took for them, how much of what
answers need stands in prompts that are compiled from them, and in which lines they differ.

Each state is laid out as a home of its own and asked with the settings of the home, so that nothing differs
but the notes. The home itself is not touched.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from os import environ
from pathlib import Path
from typing import NamedTuple

from tacit.app import ledger_of, memory_of
from tacit.errors import UsageError
from tacit.evaluation.budgets import Measured, Tick, measure_home
from tacit.evaluation.searchable import Searchable
from tacit.evaluation.sets import Place, Question
from tacit.llm.prices import price_of
from tacit.llm.recorded import kept
from tacit.memory import Memory
from tacit.model.spending import Call, Spent, total
from tacit.store import checkout
from tacit.store.generated import marked_in
from tacit.store.home import CONVERSATIONS, Home
from tacit.store.ledger import KEPT_DAYS
from tacit.store.rebuilds import Rebuild, rebuilds
from tacit.text import marks, notes, tokens

_WITHOUT: dict[Searchable, tuple[str, ...]] = {
    "knowledge": (CONVERSATIONS, "drafts", "attachments"),
    "transcripts": ("knowledge", "drafts", "attachments"),
    "both": ("drafts", "attachments"),
}
_TASKS = ("extract", "condense", "prune")


class Side(NamedTuple):
    name: str
    commit: str
    rebuild: Rebuild | None = None


class Size(NamedTuple):
    notes: int
    lines: int
    learned: int  # lines that tacit wrote
    tokens: int


class Differs(NamedTuple):
    path: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


def side_of(memory: Memory, name: str) -> Side:
    """A rebuild, a branch, a tag or a commit by its name."""
    for one in rebuilds(memory.home, memory.git):
        tip = one.tip
        if tip is not None and name in (one.name, one.branch):
            return Side(name, tip, one)
    commit = memory.git.resolve(f"refs/heads/{name}") or memory.git.resolve(name)
    if commit is None:
        there = ", ".join(one.name for one in rebuilds(memory.home, memory.git)) or "none"
        raise UsageError(f"{name!r} is no rebuild, branch, tag or commit. Rebuilds: {there}. See: git branch")
    return Side(name, commit)


def size_of(memory: Memory, side: Side) -> Size:
    texts = dict(_notes(memory, side.commit))
    return Size(
        len(texts),
        sum(text.count("\n") for text in texts.values()),
        sum(1 for path, text in texts.items() for _ in marked_in(text, path)),
        sum(tokens.count(marks.without_superseded(text)) for text in texts.values()),
    )


def spent_on(memory: Memory, side: Side) -> Spent:
    """What models took: for a rebuild what was recorded with it, else what the ledger has of learning."""
    if side.rebuild is None:
        days = ledger_of(memory.config, memory.home).days(KEPT_DAYS)
        return total(call for calls in days.values() for call in calls if call.task in _TASKS)
    calls = []
    for asked, answer in kept(side.rebuild.calls):
        price = price_of(asked.model, environ, memory.config.models.prices)
        usd = None if price is None else price.of(answer.tokens_in, answer.tokens_out)
        took = (answer.tokens_in, answer.tokens_out)
        calls.append(Call("", "", asked.task, asked.model, "ok", *took, usd))
    return total(calls)


def differences(memory: Memory, one: Side, other: Side) -> Iterator[Differs]:
    """Notes by their lines, wherever in the note these stand."""
    old, new = dict(_notes(memory, one.commit)), dict(_notes(memory, other.commit))
    for path in sorted({*old, *new}):
        before, after = old.get(path, "").split("\n"), new.get(path, "").split("\n")
        there, here = set(before), set(after)
        added = tuple(line for line in after if line.strip() and line not in there)
        removed = tuple(line for line in before if line.strip() and line not in here)
        if added or removed or (path in old) != (path in new):
            yield Differs(path, added, removed)


def _notes(memory: Memory, commit: str) -> Iterator[tuple[str, str]]:
    tree = memory.git.tree(commit, "knowledge")
    data = memory.git.blobs(dict.fromkeys(blob.name for blob in tree.values()))
    for path, blob in tree.items():
        if path.endswith(".md") and blob.name in data:
            yield path, notes.decode(data[blob.name])


def asked(
    memory: Memory,
    side: Side,
    searchable: Searchable,
    questions: Sequence[Question],
    budgets: Sequence[int],
    tick: Tick,
) -> list[Measured]:
    """What prompts hold that are compiled from this state."""
    # Beside the home: there transcripts need not be copied.
    with tempfile.TemporaryDirectory(prefix="compare-", dir=memory.home.private) as folder:
        root = Path(folder) / "home"
        root.mkdir()
        checkout.lay_out(memory.git, side.commit, root, _WITHOUT[searchable])
        config = replace(memory.config, workspaces=())
        alone = memory_of(Home(root), config, memory.moment)
        try:
            return list(measure_home(alone, questions, budgets, tick))
        finally:
            alone.searcher.close()


def by_quotes(questions: Iterable[Question]) -> list[Question]:
    """Questions whose evidence may stand anywhere: notes that are made anew may have other names."""
    return [
        replace(one, gold=tuple(tuple(Place("", each.quote) for each in places) for places in one.gold))
        for one in questions
    ]

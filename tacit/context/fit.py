"""Blocks and a budget: what is kept, what is shortened, what is dropped.

The order decides who gets the room:

    message      at most half; its beginning and end if it is longer
    identity     up to its cap; shortened at a section, never dropped as long as a line of it fits
    (reserved)   what history and knowledge need, up to their floors
    session      memory, journal, projects, each up to its cap
    topics       by importance, each followed by what it subscribes to
    knowledge    best first, as long as something fits
    history      all that is left, newest first

Costs are counted block by block, and a little high. `tacit.context.render` counts the whole once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from math import inf, log

from tacit.context.blocks import Block, Room, heading
from tacit.context.history import Window, window
from tacit.context.shorten import Shortened, around, middle_out, shorten
from tacit.model.changes import Said
from tacit.model.context import Dropped, Notice, Slot
from tacit.text.fence import fenced

Count = Callable[[str], int]

_INSTRUCTING: tuple[Slot, ...] = ("identity", "topics")  # they stand as they were written, unfenced
_WORD = re.compile(r"\w{3,}")
_WORTH = 24  # fewer tokens than this of a shortened file tell nothing
_MARK = "e722"  # as long as those that fences get
_JOIN = 2  # tokens between two parts, at most
_DENSITY = 0.3  # what a passage of e times the tokens must be worth more
NEAR = 4.0  # how far below the best a passage may stand and still be near it


@dataclass(frozen=True, slots=True)
class Wanted:
    """Everything that wants in, in the order of its importance within each field."""

    message: str
    system: str = ""
    fixed: tuple[Block, ...] = ()  # identity, memory, journal, projects
    topics: tuple[Block, ...] = ()  # each followed by its subscriptions
    knowledge: tuple[Block, ...] = ()
    history: tuple[Said, ...] = ()
    # Where the host has message and conversation itself, they take no room and stand here.
    asked: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class Appetite:
    """How much knowledge is wanted: nothing below a relevance or so far below the best, and never more than
    so many characters, those of its frame among them."""

    least: float = 0.0
    far: float = inf
    characters: int | None = None
    each: int | None = None  # characters of one passage


FULL = Appetite()  # a budget that somebody named is there to be used


@dataclass(frozen=True, slots=True)
class Kept:
    block: Block
    text: str
    tokens: int
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Fitted:
    message: Shortened
    system: str
    kept: tuple[Kept, ...]
    history: Window
    dropped: tuple[Dropped, ...]
    notices: tuple[Notice, ...]


def fit(wanted: Wanted, room: Room, count: Count, appetite: Appetite = FULL) -> Fitted:
    filling = _Filling(room, count, wanted.asked or wanted.message)
    message = filling.message(wanted.message)
    recent = window(wanted.history, min(room.history_floor, filling.left), count)
    floor = recent.tokens + filling.fence("history") if wanted.history else 0
    filling.add((block for block in wanted.fixed if block.slot == "identity"), floor)
    system = filling.system(wanted.system) if _has_data(wanted) else ""
    sought = filling.needed(wanted.knowledge, room.knowledge_floor)
    filling.add((block for block in wanted.fixed if block.slot != "identity"), floor + sought)
    filling.add(wanted.topics, floor + sought)
    said = "\n".join([wanted.said, *(line.text for line in recent.kept)])
    filling.add_knowledge(wanted.knowledge, floor, appetite, said)
    if wanted.history:
        recent = window(wanted.history, max(0, filling.left - filling.fence("history")), count)
    if all(kept.block.slot in _INSTRUCTING for kept in filling.kept):
        system = ""
    return Fitted(
        message, system, tuple(filling.kept), recent, tuple(filling.dropped), tuple(filling.notices)
    )


def _has_data(wanted: Wanted) -> bool:
    """Whether anything will stand between fences, of which the system text speaks."""
    blocks = (*wanted.fixed, *wanted.topics, *wanted.knowledge)
    return any(block.slot not in _INSTRUCTING for block in blocks)


class _Filling:
    """The prompt while it fills."""

    def __init__(self, room: Room, count: Count, asked: str) -> None:
        self._room, self._count = room, count
        self.left = room.budget
        self.kept: list[Kept] = []
        self.dropped: list[Dropped] = []
        self.notices: list[Notice] = []
        self._used: dict[str, int] = {}
        self._texts: dict[str, str] = {}  # what is in already, by path
        self._framing = len(fenced("knowledge", _MARK, ""))  # characters around all knowledge
        self._asked = frozenset(_WORD.findall(asked[:2000].casefold()))

    def message(self, text: str) -> Shortened:
        if not text:
            return Shortened("", "")
        label = self._label(f"message {_MARK}")
        allowed = max(0, min(self._room.most["message"], self.left) - label)
        said = middle_out(text, allowed, self._count)
        if said.left_out:
            self._notice(
                "message-shortened", f"The message is longer than half of the budget: {said.left_out}."
            )
        self.left -= self._count(said.text) + label
        return said

    def system(self, text: str) -> str:
        cost = self._count(text) + self._label("system")
        if cost > self.left:
            return ""
        self.left -= cost
        self._framing += len(f"<!-- system -->\n{text}\n\n")
        return text

    def add(self, blocks: Iterable[Block], reserved: int) -> None:
        for block in blocks:
            if not self._is_repeat(block):
                self._put(block, self._allowed(block, reserved))

    def _is_repeat(self, block: Block) -> bool:
        known = self._texts.get(block.path, "") if block.path else ""
        repeated = bool(known) and (block.text in known)
        if block.slot == "knowledge" and not repeated:  # a workspace may hold the very files of the home
            repeated = any(block.text in kept.text for kept in self.kept)
        if repeated:
            self._drop(block, "duplicate", "it is loaded already")
        return repeated

    def _allowed(self, block: Block, reserved: int) -> int:
        shared: tuple[Slot, ...] = ("topics", "subscriptions")
        slots = shared if block.slot in shared else (block.slot,)
        limits = [
            self.left - reserved,
            self._room.most[block.slot] - sum(self._used.get(slot, 0) for slot in slots),
        ]
        if block.most is not None:
            limits.append(block.most - self._used.get(f"group {block.group}", 0))
        return min(limits) - self._overhead(block)

    def _put(self, block: Block, allowed: int) -> None:
        shown = shorten(block.text, max(0, allowed), self._count)
        if shown.left_out and (not shown.text or (allowed < _WORTH and block.slot != "identity")):
            code = "budget" if self.left < _WORTH + self._overhead(block) else "slot"
            self._drop(block, code, "there is no room for it", self._count(block.text[:100_000]))
            if block.slot == "identity":
                self._notice("identity-shortened", f"{block.source} does not fit the budget at all.")
            return
        if shown.left_out:
            notice = f"{block.source} is cut to fit: {shown.left_out}."
            self._notice(f"{block.slot}-shortened", notice)
        self._keep(block, shown, self._count(shown.text) + self._overhead(block))

    def _keep(self, block: Block, shown: Shortened, cost: int) -> None:
        self.left -= cost
        self._used[block.slot] = self._used.get(block.slot, 0) + cost
        if block.group:
            group = f"group {block.group}"
            self._used[group] = self._used.get(group, 0) + cost
        if block.path:
            self._texts[block.path] = f"{self._texts.get(block.path, '')}\n{shown.text}"
        self.kept.append(Kept(block, shown.text, cost, shown.left_out))

    # Knowledge

    def needed(self, blocks: Sequence[Block], most: int) -> int:
        """What these would take, up to `most`."""
        total = self.fence("knowledge") if blocks else 0
        for block in blocks:
            if total >= most:
                return most
            total += self._cost(block, headed=False)
        return min(total, most)

    def add_knowledge(self, blocks: Sequence[Block], reserved: int, appetite: Appetite, said: str) -> None:
        """The best for its price first, until nothing fits. `said`: what stands in the conversation."""
        left = self.left - reserved - self.fence("knowledge")
        fresh = [block for block in blocks if not self._is_repeat(block) and not self._is_said(block, said)]
        units = [unit for block in fresh for unit in self._units(block, left, appetite.each)]
        waiting = _Waiting(units, self._cost)
        top = max((unit.value for unit in units), default=0.0)
        used, characters = 0, self._framing
        while unit := waiting.next():
            cost = self._cost(unit, headed=unit.path in waiting.opened)
            length = self._length(unit, headed=unit.path in waiting.opened)
            if (unit.score or 0.0) < appetite.least:
                self._drop(unit, "far", f"relevance below {appetite.least:g}, and the best is there", cost)
            elif unit.value < top - appetite.far:
                self._drop(unit, "far", "far less relevant than the best", cost)
            elif cost > left - used:
                self._drop(unit, "budget", "there is no room for it", cost)
            elif appetite.characters is not None and characters + length > appetite.characters:
                self._drop(unit, "characters", f"more than {appetite.characters:,} characters", cost)
            else:
                waiting.open(unit.path)
                used, characters = used + cost, characters + length
                self._keep(unit, Shortened(unit.text, unit.left_out), cost)
        if used:
            self.left -= self.fence("knowledge")

    def _is_said(self, block: Block, said: str) -> bool:
        if block.text in said:
            self._drop(block, "duplicate", "it stands in the conversation")
        return block.text in said

    def _units(self, block: Block, most: float, each: int | None) -> Sequence[Block]:
        """A turn as a whole, or where it takes too much of the room the pieces of it that were found."""
        long = each is not None and len(block.text) > each
        if block.pieces and (long or self._cost(block, headed=False) > most):
            pieces = [replace(piece, value=block.value) for piece in block.pieces]
            return [unit for piece in pieces for unit in self._units(piece, inf, each)]
        if long and each is not None:
            shown = around(block.text, each, self._asked)
            if not shown.text:
                self._drop(block, "characters", f"nothing of it can be said in {each:,} characters")
                return []
            return [replace(block, text=shown.text, left_out=shown.left_out)]
        return [block]

    def _cost(self, block: Block, headed: bool) -> int:
        """A piece among others of its file costs a mark for the gap before it, its file a heading."""
        said = f"{block.speaker}: {block.text}\n" if block.speaker else f"{block.text}\n"
        return self._count(said) + (2 if headed else self._count(f"[{_MARK} {heading(block)}]\n"))

    def _length(self, block: Block, headed: bool) -> int:
        """Characters, with what `_cost` counts as well."""
        said = f"{block.speaker}: {block.text}\n" if block.speaker else f"{block.text}\n"
        return len(said) + (len("…\n") if headed else len(f"[{_MARK} {heading(block)}]\n"))

    # Frames

    def _label(self, label: str) -> int:
        return self._count(f"<!-- {label} -->\n") + _JOIN

    def fence(self, slot: Slot) -> int:
        return self._count(fenced(slot, _MARK, "")) + _JOIN

    def _overhead(self, block: Block) -> int:
        if block.slot in _INSTRUCTING:
            return self._label(block.label)
        return self.fence(block.slot) + self._count(f"[{_MARK} {heading(block)}]\n")

    # What is told

    def _drop(self, block: Block, code: str, reason: str, tokens: int | None = None) -> None:
        self.dropped.append(
            Dropped(block.label, block.slot, block.source, code, reason, tokens, block.score, block.channels)
        )

    def _notice(self, code: str, text: str) -> None:
        self.notices.append(Notice(code, text))


class _Waiting:
    """Passages that wait for room, by value and price, those near the best before all others. The first of a
    file pays for the line that names it, so the others become cheaper then."""

    def __init__(self, units: Sequence[Block], cost: Callable[[Block, bool], int]) -> None:
        self._units, self._cost = units, cost
        self._near = max((unit.value for unit in units), default=0.0) - NEAR
        self._heap = [self._entry(number, headed=False) for number in range(len(units))]
        heapify(self._heap)
        self._by_path: dict[str, list[int]] = {}
        for number, unit in enumerate(units):
            self._by_path.setdefault(unit.path, []).append(number)
        self._gone: set[int] = set()
        self.opened: set[str] = set()

    def _entry(self, number: int, headed: bool) -> tuple[bool, float, int]:
        unit = self._units[number]
        price = _DENSITY * log(max(1, self._cost(unit, headed)))
        return (unit.value < self._near, round(price - unit.value, 9), number)

    def next(self) -> Block | None:
        while self._heap:
            *_, number = heappop(self._heap)
            if number not in self._gone:
                self._gone.add(number)
                return self._units[number]
        return None

    def open(self, path: str) -> None:
        if path not in self.opened:
            self.opened.add(path)
            for number in self._by_path[path]:
                if number not in self._gone:
                    heappush(self._heap, self._entry(number, headed=True))

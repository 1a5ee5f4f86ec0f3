"""Fits blocks into a token budget: keeps, shortens or drops each.

The budget is spent in this order:

    message      at most half; if it is longer, its beginning and end
    identity     up to its limit; shortened at a section, never dropped as long as a line of it fits
    (reserved)   what history and knowledge need, up to their minimums
    session      memory, journal, projects, each up to its limit
    topics       by importance, each followed by its subscriptions
    knowledge    best first, as long as something fits
    history      the rest, newest first

Costs are counted block by block, and a little high. `tacit.context.rendering` counts the whole text again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from heapq import heapify, heappop, heappush
from math import inf, log

from tacit.config import ContextCompilerSettings
from tacit.context.history_window import HistoryWindow, fill_window
from tacit.context.model import TOKENS_PER_KB, Block, Dropped, Notice, Slot
from tacit.context.shorten import ShortenedText, excerpt_around, shorten, shorten_middle
from tacit.privacy.delimiters import to_one_line, wrap_fenced
from tacit.search.weights import COST_PENALTY, NEAR_BEST_MARGIN
from tacit.text import tokens
from tacit.transcripts.attribution import Utterance

TokenCounter = Callable[[str], int]

_UNFENCED_SLOTS: tuple[Slot, ...] = ("identity", "topics")  # inserted as written: they instruct the agent
_WORD_PATTERN = re.compile(r"\w{3,}")
_MIN_USEFUL_TOKENS = 24  # a shortened file with fewer is not worth keeping
_SAMPLE_MARK = "e722"  # as long as a real fence code
_MIN_MESSAGE_TOKENS = 64  # a message may always have this many
_FULL_BUDGET_TOKENS = 8192  # the kilobytes in the config are meant for this; smaller budgets scale them
_MAX_CACHED_CHARS = 20_000  # longer texts are counted anew each time
_JOIN_TOKENS = 2  # tokens between two parts, at most


@dataclass(frozen=True, slots=True)
class SlotLimits:
    """Tokens for one turn: the limit of each slot, and the minimums of history and knowledge."""

    budget: int
    most: Mapping[Slot, int]
    history_floor: int
    knowledge_floor: int


def compute_slot_limits(config: ContextCompilerSettings, budget: int) -> SlotLimits:
    """Identity, memory, journal, projects and topics have limits in kilobytes, which shrink with a budget
    below 8,192 tokens. History and knowledge keep their minimums; the message gets at most half."""
    scale = min(1.0, budget / _FULL_BUDGET_TOKENS)

    def scaled(kilobytes: float) -> int:
        return int(kilobytes * TOKENS_PER_KB * scale)

    topics = scaled(config.topic_budget_kb)
    return SlotLimits(
        budget,
        {
            "system": budget,
            "identity": scaled(config.identity_budget_kb),
            "memory": scaled(config.memory_budget_kb),
            "journal": scaled(config.journal_budget_kb),
            "projects": scaled(config.projects_budget_kb),
            "topics": topics,
            "subscriptions": topics,
            "knowledge": budget,
            "history": budget,
            "message": max(budget // 2, min(budget, _MIN_MESSAGE_TOKENS)),
        },
        history_floor=int(budget * config.history_floor_share),
        knowledge_floor=int(budget * config.knowledge_floor_share),
    )


@dataclass(frozen=True, slots=True)
class PromptCandidates:
    """All candidates for a prompt, in the order of importance within each field."""

    message: str
    system: str = ""
    fixed: tuple[Block, ...] = ()  # identity, memory, journal, projects
    topics: tuple[Block, ...] = ()  # each followed by its subscriptions
    knowledge: tuple[Block, ...] = ()
    history: tuple[Utterance, ...] = ()
    # If the host adds message and conversation itself, they stand here and cost nothing.
    asked: str = ""
    said: str = ""


@dataclass(frozen=True, slots=True)
class KnowledgeLimits:
    """Limits for knowledge: a minimum score, a maximum distance from the best value, and a maximum number of
    characters, including the frame."""

    least: float = 0.0
    far: float = inf
    characters: int | None = None
    each: int | None = None  # characters of one chunk


NO_LIMITS = KnowledgeLimits()  # an explicit budget is filled


@dataclass(frozen=True, slots=True)
class SelectedBlock:
    block: Block
    text: str
    tokens: int
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class FittedPrompt:
    message: ShortenedText
    system: str
    kept: tuple[SelectedBlock, ...]
    history: HistoryWindow
    dropped: tuple[Dropped, ...]
    notices: tuple[Notice, ...]


def source_heading(block: Block) -> str:
    """The short source and day of a block; for a transcript the time it started, which identifies it."""
    parts = block.path.split("/")
    if parts[:2] == ["raw", "conversations"] and len(parts) == 6:
        started = parts[5][:4]
        return to_one_line(f"{'-'.join(parts[2:5])} {started[:2]}:{started[2:]}")
    return to_one_line(f"{block.day} {block.path}" if block.path else block.label)


@lru_cache(maxsize=4096)
def _count_cached(text: str) -> int:
    return tokens.count(text)


def count_tokens(text: str) -> int:
    """Count tokens, cached: identity, topics and chunks come again and again."""
    return _count_cached(text) if len(text) <= _MAX_CACHED_CHARS else tokens.count(text)


def fit_to_budget(
    wanted: PromptCandidates, room: SlotLimits, count: TokenCounter, appetite: KnowledgeLimits = NO_LIMITS
) -> FittedPrompt:
    builder = _PromptBuilder(room, count, wanted.asked or wanted.message)
    message = builder.add_message(wanted.message)
    history = fill_window(wanted.history, min(room.history_floor, builder.tokens_left), count)
    history_reserve = history.tokens + builder.fence_cost("history") if wanted.history else 0
    builder.add((block for block in wanted.fixed if block.slot == "identity"), history_reserve)
    system = builder.add_system(wanted.system) if _has_data(wanted) else ""
    knowledge_reserve = builder.tokens_needed(wanted.knowledge, room.knowledge_floor)
    builder.add(
        (block for block in wanted.fixed if block.slot != "identity"), history_reserve + knowledge_reserve
    )
    builder.add(wanted.topics, history_reserve + knowledge_reserve)
    conversation = "\n".join([wanted.said, *(line.text for line in history.kept)])
    builder.add_knowledge(wanted.knowledge, history_reserve, appetite, conversation)
    if wanted.history:
        history = fill_window(
            wanted.history, max(0, builder.tokens_left - builder.fence_cost("history")), count
        )
    if all(selected.block.slot in _UNFENCED_SLOTS for selected in builder.selected):
        system = ""
    return FittedPrompt(
        message, system, tuple(builder.selected), history, tuple(builder.dropped), tuple(builder.notices)
    )


def _has_data(wanted: PromptCandidates) -> bool:
    """Whether any block will be fenced: the system text explains the fences."""
    blocks = (*wanted.fixed, *wanted.topics, *wanted.knowledge)
    return any(block.slot not in _UNFENCED_SLOTS for block in blocks)


class _PromptBuilder:
    """Collects the blocks of a prompt and counts what is left of the budget."""

    def __init__(self, room: SlotLimits, count: TokenCounter, query: str) -> None:
        self._room, self._count = room, count
        self.tokens_left = room.budget
        self.selected: list[SelectedBlock] = []
        self.dropped: list[Dropped] = []
        self.notices: list[Notice] = []
        self._used_tokens: dict[str, int] = {}
        self._texts_by_path: dict[str, str] = {}  # text that is in the prompt already, by path
        self._frame_chars = len(
            wrap_fenced("knowledge", _SAMPLE_MARK, "")
        )  # of the frame around all knowledge
        self._query_words = frozenset(_WORD_PATTERN.findall(query[:2000].casefold()))

    def add_message(self, text: str) -> ShortenedText:
        if not text:
            return ShortenedText("", "")
        label = self._label_cost(f"message {_SAMPLE_MARK}")
        allowed = max(0, min(self._room.most["message"], self.tokens_left) - label)
        shortened = shorten_middle(text, allowed, self._count)
        if shortened.left_out:
            self._add_notice(
                "message-shortened", f"The message is longer than half of the budget: {shortened.left_out}."
            )
        self.tokens_left -= self._count(shortened.text) + label
        return shortened

    def add_system(self, text: str) -> str:
        cost = self._count(text) + self._label_cost("system")
        if cost > self.tokens_left:
            return ""
        self.tokens_left -= cost
        self._frame_chars += len(f"<!-- system -->\n{text}\n\n")
        return text

    def add(self, blocks: Iterable[Block], reserved: int) -> None:
        for block in blocks:
            if not self._drop_if_loaded(block):
                self._fit_block(block, self._token_allowance(block, reserved))

    def _drop_if_loaded(self, block: Block) -> bool:
        loaded_text = self._texts_by_path.get(block.path, "") if block.path else ""
        is_repeated = bool(loaded_text) and (block.text in loaded_text)
        if block.slot == "knowledge" and not is_repeated:  # a workspace may hold files of the home
            is_repeated = any(block.text in selected.text for selected in self.selected)
        if is_repeated:
            self._drop(block, "duplicate", "it is loaded already")
        return is_repeated

    def _token_allowance(self, block: Block, reserved: int) -> int:
        shared: tuple[Slot, ...] = ("topics", "subscriptions")
        slots = shared if block.slot in shared else (block.slot,)
        limits = [
            self.tokens_left - reserved,
            self._room.most[block.slot] - sum(self._used_tokens.get(slot, 0) for slot in slots),
        ]
        if block.most is not None:
            limits.append(block.most - self._used_tokens.get(f"group {block.group}", 0))
        return min(limits) - self._overhead(block)

    def _fit_block(self, block: Block, allowed: int) -> None:
        shortened = shorten(block.text, max(0, allowed), self._count)
        if shortened.left_out and (
            not shortened.text or (allowed < _MIN_USEFUL_TOKENS and block.slot != "identity")
        ):
            code = "budget" if self.tokens_left < _MIN_USEFUL_TOKENS + self._overhead(block) else "slot"
            self._drop(block, code, "there is no room for it", self._count(block.text[:100_000]))
            if block.slot == "identity":
                self._add_notice("identity-shortened", f"{block.source} does not fit the budget at all.")
            return
        if shortened.left_out:
            notice = f"{block.source} is cut to fit: {shortened.left_out}."
            self._add_notice(f"{block.slot}-shortened", notice)
        self._accept(block, shortened, self._count(shortened.text) + self._overhead(block))

    def _accept(self, block: Block, shortened: ShortenedText, cost: int) -> None:
        self.tokens_left -= cost
        self._used_tokens[block.slot] = self._used_tokens.get(block.slot, 0) + cost
        if block.group:
            group = f"group {block.group}"
            self._used_tokens[group] = self._used_tokens.get(group, 0) + cost
        if block.path:
            self._texts_by_path[block.path] = f"{self._texts_by_path.get(block.path, '')}\n{shortened.text}"
        self.selected.append(SelectedBlock(block, shortened.text, cost, shortened.left_out))

    # Knowledge

    def tokens_needed(self, blocks: Sequence[Block], limit: int) -> int:
        """The tokens that these blocks need, up to `limit`."""
        total = self.fence_cost("knowledge") if blocks else 0
        for block in blocks:
            if total >= limit:
                return limit
            total += self._cost(block, headed=False)
        return min(total, limit)

    def add_knowledge(
        self, blocks: Sequence[Block], reserved: int, appetite: KnowledgeLimits, conversation: str
    ) -> None:
        """Add the blocks with the best value for their cost until nothing fits. `conversation`: its text."""
        budget = self.tokens_left - reserved - self.fence_cost("knowledge")
        fresh = [
            block
            for block in blocks
            if not self._drop_if_loaded(block) and not self._drop_if_in_conversation(block, conversation)
        ]
        units = [unit for block in fresh for unit in self._split_block(block, budget, appetite.each)]
        queue = _KnowledgeQueue(units, self._cost)
        best = max((unit.value for unit in units), default=0.0)
        used, characters = 0, self._frame_chars
        while unit := queue.pop():
            cost = self._cost(unit, headed=unit.path in queue.opened_paths)
            length = self._length(unit, headed=unit.path in queue.opened_paths)
            if (unit.score or 0.0) < appetite.least:
                self._drop(unit, "far", f"relevance below {appetite.least:g}, and the best is there", cost)
            elif unit.value < best - appetite.far:
                self._drop(unit, "far", "far less relevant than the best", cost)
            elif cost > budget - used:
                self._drop(unit, "budget", "there is no room for it", cost)
            elif appetite.characters is not None and characters + length > appetite.characters:
                self._drop(unit, "characters", f"more than {appetite.characters:,} characters", cost)
            else:
                queue.mark_opened(unit.path)
                used, characters = used + cost, characters + length
                self._accept(unit, ShortenedText(unit.text, unit.left_out), cost)
        if used:
            self.tokens_left -= self.fence_cost("knowledge")

    def _drop_if_in_conversation(self, block: Block, conversation: str) -> bool:
        if block.text in conversation:
            self._drop(block, "duplicate", "it stands in the conversation")
        return block.text in conversation

    def _split_block(self, block: Block, max_tokens: float, max_chars: int | None) -> Sequence[Block]:
        """The block as a whole, or its found pieces if it is too large."""
        is_long = max_chars is not None and len(block.text) > max_chars
        if block.pieces and (is_long or self._cost(block, headed=False) > max_tokens):
            pieces = [replace(piece, value=block.value) for piece in block.pieces]
            return [unit for piece in pieces for unit in self._split_block(piece, inf, max_chars)]
        if is_long and max_chars is not None:
            shortened = excerpt_around(block.text, max_chars, self._query_words)
            if not shortened.text:
                self._drop(block, "characters", f"nothing of it can be said in {max_chars:,} characters")
                return []
            return [replace(block, text=shortened.text, left_out=shortened.left_out)]
        return [block]

    def _cost(self, block: Block, headed: bool) -> int:
        """The first block of a file pays for the file's heading, others for a gap mark."""
        line = f"{block.speaker}: {block.text}\n" if block.speaker else f"{block.text}\n"
        return self._count(line) + (
            2 if headed else self._count(f"[{_SAMPLE_MARK} {source_heading(block)}]\n")
        )

    def _length(self, block: Block, headed: bool) -> int:
        """As `_cost`, in characters."""
        line = f"{block.speaker}: {block.text}\n" if block.speaker else f"{block.text}\n"
        return len(line) + (len("…\n") if headed else len(f"[{_SAMPLE_MARK} {source_heading(block)}]\n"))

    # Frames

    def _label_cost(self, label: str) -> int:
        return self._count(f"<!-- {label} -->\n") + _JOIN_TOKENS

    def fence_cost(self, slot: Slot) -> int:
        return self._count(wrap_fenced(slot, _SAMPLE_MARK, "")) + _JOIN_TOKENS

    def _overhead(self, block: Block) -> int:
        if block.slot in _UNFENCED_SLOTS:
            return self._label_cost(block.label)
        return self.fence_cost(block.slot) + self._count(f"[{_SAMPLE_MARK} {source_heading(block)}]\n")

    # Receipt

    def _drop(self, block: Block, code: str, reason: str, tokens: int | None = None) -> None:
        self.dropped.append(
            Dropped(block.label, block.slot, block.source, code, reason, tokens, block.score, block.channels)
        )

    def _add_notice(self, code: str, text: str) -> None:
        self.notices.append(Notice(code, text))


class _KnowledgeQueue:
    """A queue of chunks by value and cost; those near the best come before all others. The first chunk of a
    file pays for the heading, so the others become cheaper then."""

    def __init__(self, units: Sequence[Block], cost: Callable[[Block, bool], int]) -> None:
        self._split_block, self._cost = units, cost
        self._near_threshold = max((unit.value for unit in units), default=0.0) - NEAR_BEST_MARGIN
        self._heap = [self._heap_entry(number, headed=False) for number in range(len(units))]
        heapify(self._heap)
        self._by_path: dict[str, list[int]] = {}
        for number, unit in enumerate(units):
            self._by_path.setdefault(unit.path, []).append(number)
        self._popped: set[int] = set()
        self.opened_paths: set[str] = set()

    def _heap_entry(self, number: int, headed: bool) -> tuple[bool, float, int]:
        unit = self._split_block[number]
        price = COST_PENALTY * log(max(1, self._cost(unit, headed)))
        return (unit.value < self._near_threshold, round(price - unit.value, 9), number)

    def pop(self) -> Block | None:
        while self._heap:
            *_, number = heappop(self._heap)
            if number not in self._popped:
                self._popped.add(number)
                return self._split_block[number]
        return None

    def mark_opened(self, path: str) -> None:
        if path not in self.opened_paths:
            self.opened_paths.add(path)
            for number in self._by_path[path]:
                if number not in self._popped:
                    heappush(self._heap, self._heap_entry(number, headed=True))

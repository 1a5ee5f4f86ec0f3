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
from tacit.context.model import TOKENS_PER_KB, Block, Dropped, Slot, drop_block
from tacit.context.shorten import ShortenedText, excerpt_around, shorten, shorten_middle
from tacit.diagnostics import Notice
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
_GAP_SIZE = 2  # tokens of a line with an ellipsis, which has two characters too


@dataclass(frozen=True, slots=True)
class SlotLimits:
    """Tokens for one turn: the limit of each slot, and the minimums of history and knowledge."""

    budget: int
    max_tokens: Mapping[Slot, int]
    min_history: int
    min_knowledge: int


def compute_slot_limits(config: ContextCompilerSettings, budget: int) -> SlotLimits:
    """Identity, memory, journal, projects and topics have limits in kilobytes, which shrink with a budget
    below 8,192 tokens. History and knowledge keep their minimums; the message gets at most half."""
    scale = min(1.0, budget / _FULL_BUDGET_TOKENS)
    kilobytes: dict[Slot, float] = {
        "identity": config.identity_budget_kb,
        "memory": config.memory_budget_kb,
        "journal": config.journal_budget_kb,
        "projects": config.projects_budget_kb,
        "topics": config.topic_budget_kb,
        "subscriptions": config.topic_budget_kb,
    }
    max_tokens: dict[Slot, int] = {
        "system": budget,
        "knowledge": budget,
        "history": budget,
        "message": max(budget // 2, min(budget, _MIN_MESSAGE_TOKENS)),
    }
    max_tokens |= {slot: int(size * TOKENS_PER_KB * scale) for slot, size in kilobytes.items()}
    return SlotLimits(
        budget,
        max_tokens,
        min_history=int(budget * config.history_floor_share),
        min_knowledge=int(budget * config.knowledge_floor_share),
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
    # If the host itself adds the message and the conversation, they are here and cost nothing.
    host_message: str = ""
    host_conversation: str = ""


@dataclass(frozen=True, slots=True)
class KnowledgeLimits:
    """Limits for knowledge: a minimum score, a maximum distance from the best value, and a maximum number of
    characters, including the frame."""

    min_score: float = 0.0
    max_distance: float = inf
    max_chars: int | None = None
    max_chunk_chars: int | None = None


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
    selected: tuple[SelectedBlock, ...]
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
def _count_short_text(text: str) -> int:
    return tokens.count(text)


def count_tokens(text: str) -> int:
    """Count tokens, cached: identity, topics and chunks come again and again."""
    return _count_short_text(text) if len(text) <= _MAX_CACHED_CHARS else tokens.count(text)


def fit_to_budget(
    candidates: PromptCandidates,
    slots: SlotLimits,
    count: TokenCounter,
    limits: KnowledgeLimits = NO_LIMITS,
) -> FittedPrompt:
    turns, knowledge = candidates.history, candidates.knowledge
    builder = _PromptBuilder(slots, count, candidates.host_message or candidates.message)
    message = builder.add_message(candidates.message)
    history = fill_window(turns, min(slots.min_history, builder.tokens_left), count)
    history_reserve = history.tokens + builder.fence_cost("history") if turns else 0
    builder.add((block for block in candidates.fixed if block.slot == "identity"), history_reserve)
    blocks, system = (*candidates.fixed, *candidates.topics, *knowledge), ""
    if any(block.slot not in _UNFENCED_SLOTS for block in blocks):
        system = builder.add_system(candidates.system)  # it explains the fences
    reserve = history_reserve + builder.estimate_tokens(knowledge, slots.min_knowledge)
    builder.add((block for block in candidates.fixed if block.slot != "identity"), reserve)
    builder.add(candidates.topics, reserve)
    conversation = "\n".join([candidates.host_conversation, *(line.text for line in history.lines)])
    builder.add_knowledge(knowledge, history_reserve, limits, conversation)
    if turns:
        history = fill_window(turns, max(0, builder.tokens_left - builder.fence_cost("history")), count)
    if all(selected.block.slot in _UNFENCED_SLOTS for selected in builder.selected):
        system = ""
    return FittedPrompt(
        message, system, tuple(builder.selected), history, tuple(builder.dropped), tuple(builder.notices)
    )


class _PromptBuilder:
    """Collects the blocks of a prompt and counts what is left of the budget."""

    def __init__(self, slots: SlotLimits, count: TokenCounter, query: str) -> None:
        self._slots, self._count = slots, count
        self.tokens_left = slots.budget
        self.selected: list[SelectedBlock] = []
        self.dropped: list[Dropped] = []
        self.notices: list[Notice] = []
        self._used_tokens: dict[str, int] = {}
        self._texts_by_path: dict[str, str] = {}  # text that is in the prompt already, by path
        self._frame_chars = len(wrap_fenced("knowledge", _SAMPLE_MARK, ""))  # around all knowledge
        self._query_words = frozenset(_WORD_PATTERN.findall(query[:2000].casefold()))

    def add_message(self, text: str) -> ShortenedText:
        if not text:
            return ShortenedText("", "")
        label = self._label_cost(f"message {_SAMPLE_MARK}")
        allowed = max(0, min(self._slots.max_tokens["message"], self.tokens_left) - label)
        shortened = shorten_middle(text, allowed, self._count)
        if shortened.left_out:
            text = f"The message is longer than half of the budget: {shortened.left_out}."
            self.notices.append(Notice("message-shortened", text))
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
            if self._is_loaded(block):
                self.dropped.append(drop_block(block, "duplicate", "it is loaded already"))
            else:
                self._fit_block(block, self._token_allowance(block, reserved))

    def _is_loaded(self, block: Block) -> bool:
        loaded_text = self._texts_by_path.get(block.path, "") if block.path else ""
        is_repeated = bool(loaded_text) and (block.text in loaded_text)
        if block.slot == "knowledge" and not is_repeated:  # a workspace may hold files of the home
            return any(block.text in selected.text for selected in self.selected)
        return is_repeated

    def _token_allowance(self, block: Block, reserved: int) -> int:
        shared: tuple[Slot, ...] = ("topics", "subscriptions")
        slots = shared if block.slot in shared else (block.slot,)
        limits = [
            self.tokens_left - reserved,
            self._slots.max_tokens[block.slot] - sum(self._used_tokens.get(slot, 0) for slot in slots),
        ]
        if block.max_tokens is not None:
            limits.append(block.max_tokens - self._used_tokens.get(f"group {block.group}", 0))
        return min(limits) - self._overhead(block)

    def _fit_block(self, block: Block, allowed: int) -> None:
        shortened = shorten(block.text, max(0, allowed), self._count)
        if shortened.left_out and (
            not shortened.text or (allowed < _MIN_USEFUL_TOKENS and block.slot != "identity")
        ):
            code = "budget" if self.tokens_left < _MIN_USEFUL_TOKENS + self._overhead(block) else "slot"
            tokens_needed = self._count(block.text[:100_000])
            self.dropped.append(drop_block(block, code, "there is no room for it", tokens_needed))
            if block.slot == "identity":
                text = f"{block.source} does not fit the budget at all."
                self.notices.append(Notice("identity-shortened", text))
            return
        if shortened.left_out:
            text = f"{block.source} is cut to fit: {shortened.left_out}."
            self.notices.append(Notice(f"{block.slot}-shortened", text))
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

    def estimate_tokens(self, blocks: Sequence[Block], limit: int) -> int:
        """The tokens that these blocks need, up to `limit`."""
        total = self.fence_cost("knowledge") if blocks else 0
        for block in blocks:
            if total >= limit:
                return limit
            total += _measure(block, self._count)
        return min(total, limit)

    def add_knowledge(
        self, blocks: Sequence[Block], reserved: int, limits: KnowledgeLimits, conversation: str
    ) -> None:
        """Add the blocks with the best value for their cost until nothing fits. `conversation`: its text."""
        budget = self.tokens_left - reserved - self.fence_cost("knowledge")
        fresh: list[Block] = []
        for block in blocks:
            if self._is_loaded(block):
                self.dropped.append(drop_block(block, "duplicate", "it is loaded already"))
            elif block.text in conversation:
                self.dropped.append(drop_block(block, "duplicate", "it stands in the conversation"))
            else:
                fresh.append(block)
        units = [unit for block in fresh for unit in self._split_block(block, budget, limits.max_chunk_chars)]
        queue = _KnowledgeQueue(units, self._count)
        best = max((unit.value for unit in units), default=0.0)
        used, chars, max_chars = 0, self._frame_chars, limits.max_chars
        while unit := queue.pop():
            has_heading = unit.path not in queue.opened_paths
            cost, length = _measure(unit, self._count, has_heading), _measure(unit, len, has_heading)
            if (unit.score or 0.0) < limits.min_score:
                reason = f"relevance below {limits.min_score:g}, and the best is there"
                self.dropped.append(drop_block(unit, "far", reason, cost))
            elif unit.value < best - limits.max_distance:
                self.dropped.append(drop_block(unit, "far", "far less relevant than the best", cost))
            elif cost > budget - used:
                self.dropped.append(drop_block(unit, "budget", "there is no room for it", cost))
            elif max_chars is not None and chars + length > max_chars:
                reason = f"more than {max_chars:,} characters"
                self.dropped.append(drop_block(unit, "characters", reason, cost))
            else:
                queue.open_path(unit.path)
                used, chars = used + cost, chars + length
                self._accept(unit, ShortenedText(unit.text, unit.left_out), cost)
        if used:
            self.tokens_left -= self.fence_cost("knowledge")

    def _split_block(self, block: Block, max_tokens: float, max_chars: int | None) -> Sequence[Block]:
        """The block as a whole, or the hits in it if it is too large."""
        is_long = max_chars is not None and len(block.text) > max_chars
        if block.pieces and (is_long or _measure(block, self._count) > max_tokens):
            pieces = [replace(piece, value=block.value) for piece in block.pieces]
            return [unit for piece in pieces for unit in self._split_block(piece, inf, max_chars)]
        if is_long and max_chars is not None:
            shortened = excerpt_around(block.text, max_chars, self._query_words)
            if not shortened.text:
                reason = f"nothing of it can be said in {max_chars:,} characters"
                self.dropped.append(drop_block(block, "characters", reason))
                return []
            return [replace(block, text=shortened.text, left_out=shortened.left_out)]
        return [block]

    # Frames

    def _label_cost(self, label: str) -> int:
        return self._count(f"<!-- {label} -->\n") + _JOIN_TOKENS

    def fence_cost(self, slot: Slot) -> int:
        return self._count(wrap_fenced(slot, _SAMPLE_MARK, "")) + _JOIN_TOKENS

    def _overhead(self, block: Block) -> int:
        if block.slot in _UNFENCED_SLOTS:
            return self._label_cost(block.label)
        return self.fence_cost(block.slot) + self._count(f"[{_SAMPLE_MARK} {source_heading(block)}]\n")


def _measure(block: Block, count: TokenCounter, has_heading: bool = True) -> int:
    """The size of a chunk: `count` gives tokens or characters. The first chunk of a file pays for the file's
    heading, others for a gap mark."""
    line = f"{block.speaker}: {block.text}\n" if block.speaker else f"{block.text}\n"
    return count(line) + (count(f"[{_SAMPLE_MARK} {source_heading(block)}]\n") if has_heading else _GAP_SIZE)


class _KnowledgeQueue:
    """A queue of chunks by value and cost; those near the best come before all others. The first chunk of a
    file pays for the heading, so the others become cheaper then."""

    def __init__(self, units: Sequence[Block], count: TokenCounter) -> None:
        self._units, self._count = units, count
        self._near_threshold = max((unit.value for unit in units), default=0.0) - NEAR_BEST_MARGIN
        self._heap = [self._heap_entry(number, has_heading=True) for number in range(len(units))]
        heapify(self._heap)
        self._by_path: dict[str, list[int]] = {}
        for number, unit in enumerate(units):
            self._by_path.setdefault(unit.path, []).append(number)
        self._popped: set[int] = set()
        self.opened_paths: set[str] = set()  # files that have a heading in the prompt

    def _heap_entry(self, number: int, has_heading: bool) -> tuple[bool, float, int]:
        unit = self._units[number]
        price = COST_PENALTY * log(max(1, _measure(unit, self._count, has_heading)))
        return (unit.value < self._near_threshold, round(price - unit.value, 9), number)

    def pop(self) -> Block | None:
        while self._heap:
            *_, number = heappop(self._heap)
            if number not in self._popped:
                self._popped.add(number)
                return self._units[number]
        return None

    def open_path(self, path: str) -> None:
        if path not in self.opened_paths:
            self.opened_paths.add(path)
            for number in self._by_path[path]:
                if number not in self._popped:
                    heappush(self._heap, self._heap_entry(number, has_heading=False))

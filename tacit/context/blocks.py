"""Blocks of a prompt, and how many tokens each slot may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tacit.config import ContextCompilerSettings
from tacit.context.model import Slot
from tacit.privacy.delimiters import to_one_line

TOKENS_PER_KB = 256  # tokens in a kilobyte of ordinary text
_MIN_MESSAGE_TOKENS = 64  # a message may always have this many
_FULL_BUDGET_TOKENS = (
    8192  # the kilobytes in the config are meant for this budget; smaller budgets scale them
)


@dataclass(frozen=True, slots=True)
class Block:
    """A candidate text for the prompt."""

    slot: Slot
    label: str
    source: str
    text: str
    reason: str
    path: str = ""  # of its file; blocks of one file are rendered together
    place: int = 0  # the first line in the file, and the last
    end: int = 0
    turn: int = 0  # of a transcript
    day: str = ""
    speaker: str = ""
    score: float | None = None
    channels: Mapping[str, float] = field(default_factory=dict)
    group: str = ""  # the topic that it belongs to
    most: int | None = None  # tokens that its group may have
    digest: str = ""
    left_out: str = ""  # describes what was cut from it already, for people
    value: float = 0.0  # of retrieved chunks: the highest is tried first
    pieces: tuple[Block, ...] = ()  # used instead if the whole is too long


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


def is_adjacent(block: Block, above: Block) -> bool:
    """Whether nothing is between the two blocks in their file."""
    if block.turn and above.turn:
        return block.turn <= above.turn + 1
    return block.place <= above.end + 2  # a blank line between paragraphs does not count


def source_heading(block: Block) -> str:
    """The short source and day of a block; for a transcript the time it started, which identifies it."""
    parts = block.path.split("/")
    if parts[:2] == ["raw", "conversations"] and len(parts) == 6:
        started = parts[5][:4]
        return to_one_line(f"{'-'.join(parts[2:5])} {started[:2]}:{started[2:]}")
    return to_one_line(f"{block.day} {block.path}" if block.path else block.label)

"""What wants into a prompt, and how much room each slot has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tacit.config import ContextCompiler
from tacit.model.context import Slot
from tacit.text.fence import one_line

KB = 256  # tokens in a kilobyte of ordinary text
_SMALL = 64  # tokens that a message may have whatever the budget
_FULL = 8192  # the budget for which the kilobytes in the config are meant; a smaller one shrinks them


@dataclass(frozen=True, slots=True)
class Block:
    """One text that wants into the prompt."""

    slot: Slot
    label: str
    source: str
    text: str
    reason: str
    path: str = ""  # of its file; blocks of one file stand together
    place: int = 0  # the first line in the file, and the last
    end: int = 0
    turn: int = 0  # of a transcript
    day: str = ""
    speaker: str = ""
    score: float | None = None
    channels: Mapping[str, float] = field(default_factory=dict)
    group: str = ""  # the topic that it came with
    most: int | None = None  # tokens that its group may have
    digest: str = ""
    left_out: str = ""  # what was cut from it already, for people
    value: float = 0.0  # of what was retrieved: the greatest is tried first
    pieces: tuple[Block, ...] = ()  # what to take instead where the whole is too long


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens for one turn: the most that each slot may have, and what history is always left."""

    budget: int
    most: Mapping[Slot, int]
    history_floor: int
    knowledge_floor: int


def room(config: ContextCompiler, budget: int) -> Room:
    """Identity, memory, journal, projects and topics have caps in kilobytes, which shrink with a budget below
    8,192 tokens; they are caps and no targets. The conversation keeps its floor, and so does what is
    retrieved; the message has at most half."""
    scale = min(1.0, budget / _FULL)

    def capped(kilobytes: float) -> int:
        return int(kilobytes * KB * scale)

    topics = capped(config.topic_budget_kb)
    return Room(
        budget,
        {
            "system": budget,
            "identity": capped(config.identity_budget_kb),
            "memory": capped(config.memory_budget_kb),
            "journal": capped(config.journal_budget_kb),
            "projects": capped(config.projects_budget_kb),
            "topics": topics,
            "subscriptions": topics,
            "knowledge": budget,
            "history": budget,
            "message": max(budget // 2, min(budget, _SMALL)),
        },
        history_floor=int(budget * config.history_floor_share),
        knowledge_floor=int(budget * config.knowledge_floor_share),
    )


def follows(block: Block, above: Block) -> bool:
    """Whether nothing stands between the two in their file."""
    if block.turn and above.turn:
        return block.turn <= above.turn + 1
    return block.place <= above.end + 2  # a blank line between paragraphs is nothing


def heading(block: Block) -> str:
    """Where a block is from and of which day, short: of a transcript the moment it began, which names it."""
    parts = block.path.split("/")
    if parts[:2] == ["raw", "conversations"] and len(parts) == 6:
        begun = parts[5][:4]
        return one_line(f"{'-'.join(parts[2:5])} {begun[:2]}:{begun[2:]}")
    return one_line(f"{block.day} {block.path}" if block.path else block.label)

"""What a prompt holds, block by block, for its receipt."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tacit.context.blocks import Room
from tacit.context.fit import Fitted, Kept
from tacit.model.context import SLOTS, Section, Slot

Count = Callable[[str], int]


def sections(fitted: Fitted, count: Count) -> Iterator[Section]:
    """In the order in which they stand in the text."""
    if fitted.system:
        yield Section("system", "system", "", count(fitted.system), None, "how to read what follows")
    yield from map(_section, sorted(fitted.kept, key=lambda kept: SLOTS.index(kept.block.slot)))
    window = fitted.history
    if window.kept:
        kept, all_ = len(window.kept), len(window.kept) + len(window.left)
        left = f"{len(window.left)} older left out" if window.left else ""
        reason = "the conversation so far" if not left else f"the newest {kept} of {all_} turns"
        yield Section("history", "history", "", window.tokens, None, reason, shortened=left)
    if fitted.message.text:
        tokens = count(fitted.message.text)
        left = fitted.message.left_out
        yield Section("message", "message", "", tokens, None, "what was asked", shortened=left)


def _section(kept: Kept) -> Section:
    block = kept.block
    return Section(
        block.label,
        block.slot,
        block.source,
        kept.tokens,
        block.score,
        block.reason,
        block.day,
        block.channels,
        kept.left_out,
        block.digest,
    )


def slots(found: tuple[Section, ...], room: Room) -> dict[str, tuple[int, int]]:
    """Tokens that each slot has, and the most it may have."""
    used: dict[Slot, int] = {}
    for section in found:
        used[section.slot] = used.get(section.slot, 0) + section.tokens
    return {slot: (used[slot], min(room.most[slot], room.budget)) for slot in SLOTS if slot in used}

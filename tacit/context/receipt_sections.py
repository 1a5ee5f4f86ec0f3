"""The sections of a prompt, for its receipt."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tacit.context.blocks import SlotLimits
from tacit.context.budget import FittedPrompt, Kept
from tacit.context.model import SLOTS, Section, Slot

TokenCounter = Callable[[str], int]


def build_sections(fitted: FittedPrompt, count: TokenCounter) -> Iterator[Section]:
    """In the order of the text."""
    if fitted.system:
        yield Section("system", "system", "", count(fitted.system), None, "how to read what follows")
    yield from map(_to_section, sorted(fitted.kept, key=lambda newest: SLOTS.index(newest.block.slot)))
    window = fitted.history
    if window.kept:
        newest, total = len(window.kept), len(window.kept) + len(window.left)
        left_out = f"{len(window.left)} older left out" if window.left else ""
        reason = "the conversation so far" if not left_out else f"the newest {newest} of {total} turns"
        yield Section("history", "history", "", window.tokens, None, reason, shortened=left_out)
    if fitted.message.text:
        tokens = count(fitted.message.text)
        left_out = fitted.message.left_out
        yield Section("message", "message", "", tokens, None, "what was asked", shortened=left_out)


def _to_section(selected: Kept) -> Section:
    block = selected.block
    return Section(
        block.label,
        block.slot,
        block.source,
        selected.tokens,
        block.score,
        block.reason,
        block.day,
        block.channels,
        selected.left_out,
        block.digest,
    )


def slot_usage(found: tuple[Section, ...], room: SlotLimits) -> dict[str, tuple[int, int]]:
    """Tokens used by each slot, and its limit."""
    used: dict[Slot, int] = {}
    for section in found:
        used[section.slot] = used.get(section.slot, 0) + section.tokens
    return {slot: (used[slot], min(room.most[slot], room.budget)) for slot in SLOTS if slot in used}

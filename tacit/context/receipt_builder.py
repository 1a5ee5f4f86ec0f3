"""Builds the receipt of a turn: what is in its prompt and why, what is not, and how long each step took."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tacit.config import ContextCompilerSettings
from tacit.context.budget import FittedPrompt, compute_slot_limits, count_tokens
from tacit.context.model import SLOTS, Compiled, Quote, Receipt, Section, Slot
from tacit.context.receipts import new_id
from tacit.context.rendering import Prompt
from tacit.context.request import preview, text_digest
from tacit.context.situation import Situation
from tacit.context.stage import StageRunner
from tacit.diagnostics import Notice

# The order of the keys in a receipt is part of its format.
_TIMED_STEPS = (
    "history", "guard", "again", "fixed", "watch", "topics", "mode", "search", "rank", "assemble", "session",
    "flush", "lanes",
)  # fmt: skip


def build_receipt(
    situation: Situation, prompt: Prompt, skip: str, stages: StageRunner, config: ContextCompilerSettings
) -> Receipt:
    request, profile = situation.request, situation.profile
    sections = tuple(section for part in prompt.parts for section in _build_sections(part))
    return Receipt(
        id=new_id(situation.now, secrets.randbits(20)),
        at=situation.now.isoformat(),
        session_key=situation.key,
        session_id=situation.session_id,
        session_type=profile.kind.type,
        agent=profile.kind.agent,
        audience=profile.rule.audience,
        message_hash=text_digest(situation.query),
        message=preview(situation.query),
        budget=situation.budget,
        tokens=prompt.tokens,
        characters=len(prompt.text) + len(prompt.static_prefix),
        sections=() if prompt.is_withheld else sections,
        dropped=tuple(stages.dropped),
        skipped=skip,
        notices=tuple(stages.notices),
        timings_ms={name: stages.timings[name] for name in _TIMED_STEPS if name in stages.timings},
        slots=_measure_slots(sections, config, situation.budget),
        had_history=bool(situation.history),
        trial=request.trial,
        past=situation.past,
        lane=request.lane,
        rule=profile.won,
    )


def _build_sections(part: FittedPrompt) -> Iterator[Section]:
    """In the order of the text."""
    if part.system:
        yield Section("system", "system", "", count_tokens(part.system), None, "how to read what follows")
    for selected in sorted(part.selected, key=lambda selected: SLOTS.index(selected.block.slot)):
        block = selected.block
        yield Section(
            block.label, block.slot, block.source, selected.tokens, block.score, block.reason, block.day,
            block.channels, selected.left_out, block.digest,
        )  # fmt: skip
    window = part.history
    if window.lines:
        newest, total = len(window.lines), len(window.lines) + len(window.overflow)
        left_out = f"{len(window.overflow)} older left out" if window.overflow else ""
        reason = "the conversation so far" if not left_out else f"the newest {newest} of {total} turns"
        yield Section("history", "history", "", window.tokens, None, reason, shortened=left_out)
    if part.message.text:
        tokens, left_out = count_tokens(part.message.text), part.message.left_out
        yield Section("message", "message", "", tokens, None, "what was asked", shortened=left_out)


def _measure_slots(
    sections: Sequence[Section], config: ContextCompilerSettings, budget: int
) -> dict[str, tuple[int, int]]:
    """Tokens used by each slot, and its limit."""
    limits = compute_slot_limits(config, budget)
    used: dict[Slot, int] = {}
    for section in sections:
        used[section.slot] = used.get(section.slot, 0) + section.tokens
    return {slot: (used[slot], min(limits.max_tokens[slot], limits.budget)) for slot in SLOTS if slot in used}


def quote_chunks(prompt: Prompt) -> tuple[Quote, ...]:
    """The retrieved chunks of the prompt."""
    return tuple(
        Quote(selected.text, selected.block.source, selected.block.day, selected.block.score or 0.0)
        for part in prompt.parts
        for selected in part.selected
        if selected.block.slot == "knowledge"
    )


def discard_late(compiled: Compiled) -> Compiled:
    """The answer that came too late. No one received it, so the turn does not count."""
    notice = Notice("deadline", "It was done too late: the host was answered without it.")
    receipt = replace(
        compiled.receipt,
        tokens=0,
        characters=0,
        sections=(),
        slots={},
        skipped="deadline",
        notices=(*compiled.receipt.notices, notice),
    )
    return Compiled("", 0, (), compiled.dropped, receipt)

"""Render receipts as text: one turn with its budget, a list of turns, or one block in full."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from tacit.context.absence import ReceiptBlock, explain_skip, other_notices
from tacit.context.model import SLOTS, Dropped, Receipt, Section
from tacit.terminal.lines import (
    Line,
    StyledText,
    clip,
    clip_left,
    count_cells,
    fold_parts,
    one_line,
    pad,
    wrap_beside,
    wrap_styled,
)
from tacit.terminal.output import pluralize

_MAX_DROPPED_SHOWN = 3  # of each kind
_MAX_BAR_CELLS = 60


def render_receipt(receipt: Receipt, width: int) -> Iterator[Line]:
    """Render a receipt for people, as lines of at most this width."""
    yield [StyledText(clip(_title_of(receipt), width), "bold")]
    yield from _head(receipt, width)
    yield []
    yield from _bar(receipt, width)
    if notices := list(_notice_lines(receipt, width)):
        yield []
        yield from notices
    yield []
    yield from _tables(receipt, width)
    yield []
    yield from _timings(receipt, width)
    hint = "More: tacit why --block PART, tacit why --not FILE"
    yield [StyledText(clip(hint, width), "dim")]


def _title_of(receipt: Receipt) -> str:
    if receipt.lane == "bootstrap":
        return "The files of a session that begins"
    return f'"{one_line(receipt.message)}"'


def _head(receipt: Receipt, width: int) -> Iterator[Line]:
    share = f" ({receipt.tokens / receipt.budget:.0%})" if receipt.budget else ""
    facts = [
        _format_time(receipt.at),
        receipt.session_type,
        f"{receipt.tokens:,} of {receipt.budget:,} tokens{share}",
        f"agent {receipt.agent}" if receipt.agent else "",
        f"lane {receipt.lane}" if receipt.lane != "prompt" else "",
        f"rule {receipt.rule}" if receipt.rule else "",
        f"receipt {receipt.id}",
    ]
    yield from fold_parts(filter(None, facts), "  ", width)
    if receipt.host_tokens is not None:
        comparison = f"{receipt.tokens:,} tokens, where the host by itself would load {receipt.host_tokens:,}"
        yield [StyledText(clip(comparison, width))]
    if receipt.past:
        yield [StyledText(clip(f"Compiled from the past: commit {receipt.past}", width))]
    if receipt.trial:
        yield [StyledText(clip("Asked for by hand; it counts as no turn of a session.", width))]


def _format_time(timestamp: str) -> str:
    try:
        return datetime.fromisoformat(timestamp).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return timestamp


# The bar

_LETTERS: Mapping[str, str] = {
    "system": "S",
    "identity": "I",
    "memory": "M",
    "journal": "J",
    "projects": "P",
    "topics": "T",
    "subscriptions": "U",
    "knowledge": "K",
    "history": "H",
    "message": "Q",
}
_STYLES: Mapping[str, str] = {
    "system": "white",
    "identity": "blue",
    "memory": "cyan",
    "journal": "bright_cyan",
    "projects": "bright_blue",
    "topics": "yellow",
    "subscriptions": "bright_yellow",
    "knowledge": "green",
    "history": "magenta",
    "message": "bright_white",
}


def _letter(slot: str) -> str:
    return _LETTERS.get(slot, "?")


def _bar(receipt: Receipt, width: int) -> Iterator[Line]:
    used = _used_tokens(receipt)
    cells = min(_MAX_BAR_CELLS, width - 2)
    bar = [
        StyledText(_letter(slot) * count, _STYLES.get(slot, ""))
        for slot, count in _allocate_cells(used, receipt, cells)
    ]
    free = cells - sum(len(piece.text) for piece in bar)
    yield [StyledText("["), *bar, StyledText("." * free, "dim"), StyledText("]")]
    legend = [
        f"{_letter(slot)} {slot} {_format_usage(receipt, slot, tokens)}" for slot, tokens in used.items()
    ]
    legend.append(f". free {max(0, receipt.budget - receipt.tokens):,}")
    yield from fold_parts(legend, "   ", width, " ")


def _used_tokens(receipt: Receipt) -> dict[str, int]:
    """Tokens used per slot, in prompt order; empty slots are left out."""
    tokens: dict[str, int] = {}
    for section in receipt.sections:
        tokens[section.slot] = tokens.get(section.slot, 0) + section.tokens
    tokens |= {slot: used for slot, (used, _) in receipt.slots.items() if used}
    order = [*(slot for slot in SLOTS if slot in tokens), *(slot for slot in tokens if slot not in SLOTS)]
    return {slot: tokens[slot] for slot in order if tokens[slot] > 0}


def _format_usage(receipt: Receipt, slot: str, used: int) -> str:
    """Name the slot's limit when it is nearly reached and lower than the whole budget."""
    _, limit = receipt.slots.get(slot, (0, 0))
    nearly = limit < receipt.budget and used >= 0.9 * limit > 0
    return f"{used:,} of {limit:,}" if nearly else f"{used:,}"


def _allocate_cells(used: Mapping[str, int], receipt: Receipt, cells: int) -> list[tuple[str, int]]:
    """Give each slot its share of the bar: at least one cell each, and no more than `cells` in all."""
    total = max(receipt.budget, sum(used.values()), 1)
    counts = {slot: max(1, round(tokens * cells / total)) for slot, tokens in used.items()}
    while sum(counts.values()) > cells and max(counts.values()) > 1:
        largest = max(counts, key=lambda slot: counts[slot])
        counts[largest] -= 1
    return list(counts.items())


# Notices


def _notice_lines(receipt: Receipt, width: int) -> Iterator[Line]:
    if receipt.skipped:
        yield from wrap_styled(f"Nothing was looked up: {explain_skip(receipt)}.", width, "yellow")
    for notice in other_notices(receipt):
        yield from wrap_styled(f"{notice.code}: {one_line(notice.text)}", width, "yellow")


# The tables

_TRANSCRIPT_LINE = re.compile(r"raw/conversations/(\d{4})/(\d\d)/(\d\d)/(\d\d)(\d\d)-[^/]*:(\d+)")
# In display order: the nearest misses first.
_DROP_TITLES = {
    "budget": "no room left in the budget",
    "slot": "no room left in its slot",
    "characters": "more characters than passages may have",
    "repeated": "given before in this session",
    "duplicate": "the same is there already",
    "echo": "the same question, asked before",
    "asleep": "topics that stayed inactive",
    "missing": "no such file",
    "unsafe": "not a plain file of the home",
    "audience": "not for this audience",
    "agent": "belongs to another agent",
    "excluded": "never retrieved",
    "empty": "nothing is written in it",
    "far": "far below the best",
    "weak": "too weak to stand alone",
    "gate": "not relevant enough",
}


def _tables(receipt: Receipt, width: int) -> Iterator[Line]:
    groups = _group_dropped(receipt)
    shown: list[ReceiptBlock] = [block for group in groups.values() for block in _best_dropped(group)]
    columns = _columns([*receipt.sections, *shown], width)
    yield [StyledText(f"In the prompt: {len(receipt.sections)}", "bold")]
    if receipt.sections:
        yield [StyledText(columns.line("", "tokens", "rel.", "source", "why"), "dim")]
    yield from _rows(receipt.sections, columns)
    if not groups:
        return
    total = len(receipt.dropped) + sum(receipt.unlisted.values())
    yield []
    yield [StyledText(f"Not in the prompt: {total:,}", "bold")]
    for code, group in groups.items():
        count = len(group) + receipt.unlisted.get(code, 0)
        yield [StyledText(clip(f"  {_title(code)} ({count:,}):", width))]
        yield from _rows(_best_dropped(group), columns, "dim")
        if (hidden := count - len(_best_dropped(group))) and group:
            yield [StyledText(columns.line("", "", "", f"and {hidden:,} more", ""), "dim")]


def _group_dropped(receipt: Receipt) -> dict[str, list[Dropped]]:
    groups: dict[str, list[Dropped]] = {code: [] for code in receipt.unlisted}
    for block in receipt.dropped:
        groups.setdefault(_kind(block), []).append(block)
    order = list(_DROP_TITLES)
    ranked = sorted(groups, key=lambda code: order.index(code) if code in order else len(order))
    return {code: groups[code] for code in ranked}


def _kind(block: Dropped) -> str:
    """The drop code. Chunks and topics share the code `gate`, so topics get one of their own."""
    return "asleep" if (block.code, block.slot) == ("gate", "topics") else block.code


def _title(kind: str) -> str:
    return _DROP_TITLES.get(kind, kind)


def _best_dropped(group: Sequence[Dropped]) -> list[Dropped]:
    return sorted(group, key=lambda block: -1.0 if block.score is None else block.score, reverse=True)[
        :_MAX_DROPPED_SHOWN
    ]


class _Columns(NamedTuple):
    source: int
    why: int

    def line(self, letter: str, tokens: str, relevance: str, source: str, why: str) -> str:
        source = pad(clip_left(source, self.source), self.source)
        return f"  {letter:<1} {tokens:>6}  {relevance:>4}  {source}  {clip(why, self.why)}".rstrip()


def _columns(blocks: Sequence[ReceiptBlock], width: int) -> _Columns:
    """Sources get what they need, up to half of the line."""
    rest = width - len("  K 123456  0.12    ")
    source = min(max([6, *(count_cells(_source_of(block)) for block in blocks)]), max(24, rest // 2))
    return _Columns(source, rest - source)


def _rows(blocks: Iterable[ReceiptBlock], columns: _Columns, style: str = "") -> Iterator[Line]:
    previous_reason = ""
    for block in blocks:
        reason = _short_reason(block)
        cells = (
            _letter(block.slot),
            _format_tokens(block.tokens),
            _format_score(block.score),
            _source_of(block),
        )
        line = columns.line(
            *cells, "" if reason == previous_reason and isinstance(block, Dropped) else reason
        )
        previous_reason = reason
        colour = style or _STYLES.get(block.slot, "")
        yield [StyledText(line[:2]), StyledText(line[2:3], colour), StyledText(line[3:], style)]


def _short_reason(block: ReceiptBlock) -> str:
    cut = f"shortened: {block.shortened}; " if isinstance(block, Section) and block.shortened else ""
    return cut + one_line(block.reason)


def _source_of(block: ReceiptBlock) -> str:
    match = _TRANSCRIPT_LINE.fullmatch(block.source)
    if match:  # as the prompt names it: the slug of a transcript is long and says little
        year, month, day, hour, minute, line = match.groups()
        return f"{year}-{month}-{day} {hour}:{minute} line {line}"
    return one_line(block.source or block.label)


def _format_tokens(tokens: int | None) -> str:
    return "" if tokens is None else f"{tokens:,}"


def _format_score(score: float | None) -> str:
    return "" if score is None else f"{score:.2f}"


def _timings(receipt: Receipt, width: int) -> Iterator[Line]:
    steps = dict(receipt.timings_ms)
    total = steps.pop("total", sum(steps.values()))
    if not receipt.timings_ms:
        return
    parts = [f"{name} {_format_ms(duration)}" for name, duration in steps.items()]
    yield from fold_parts(
        [f"Took {_format_ms(total)} ms" + (":" if parts else ""), *parts], "  ", width, style="dim"
    )


def _format_ms(milliseconds: float) -> str:
    return f"{milliseconds:.0f}" if milliseconds >= 10 else f"{milliseconds:.1f}"


# The list


def render_receipt_list(found: Sequence[Receipt], width: int) -> Iterator[Line]:
    rows = [
        (
            receipt.id,
            _format_time(receipt.at),
            receipt.session_type,
            f"{receipt.tokens:,} of {receipt.budget:,}",
            _outcome(receipt),
        )
        for receipt in found
    ]
    widths = [max(map(count_cells, column)) for column in zip(*rows, strict=True)]
    for receipt, row in zip(found, rows, strict=True):
        cells = "  ".join(pad(cell, wide) for cell, wide in zip(row, widths, strict=True))
        about = "(bootstrap)" if receipt.lane == "bootstrap" else one_line(receipt.message)
        yield [StyledText(clip(f"{cells}  {about}", width))]


def _outcome(receipt: Receipt) -> str:
    return (
        f"skipped: {receipt.skipped}"
        if receipt.skipped
        else f"{len(receipt.sections)} in, {len(receipt.dropped) + sum(receipt.unlisted.values())} out"
    )


# One block


def is_about(block: ReceiptBlock, part: str) -> bool:
    wanted = part.casefold()
    return wanted in block.label.casefold() or wanted in block.source.casefold()


def separate_blocks(parts: Iterable[Iterable[Line]]) -> Iterator[Line]:
    for index, part in enumerate(parts):
        if index:
            yield []
        yield from part


def render_block(receipt: Receipt, block: ReceiptBlock, width: int) -> Iterator[Line]:
    yield [StyledText(clip(one_line(block.label), width), "bold")]
    for name, text in _facts_of(receipt, block):
        if text:
            yield from wrap_beside(StyledText(f"  {name:<9}  ", "dim"), text, width)


def _facts_of(receipt: Receipt, block: ReceiptBlock) -> Iterator[tuple[str, str]]:
    if isinstance(block, Section):
        yield "verdict", f"in the prompt, slot {block.slot}"
    else:
        yield "verdict", f"not in the prompt: {_title(_kind(block))}"
    yield "because", block.reason
    yield "source", block.source
    yield "tokens", _format_tokens(block.tokens)
    yield "relevance", _format_score(block.score)
    yield "channels", ", ".join(f"{name} {value:g}" for name, value in block.channels.items())
    if isinstance(block, Section):
        yield "day", block.day
        yield "shortened", block.shortened
        yield "digest", block.digest
    else:
        yield "needed", inclusion_hint(receipt, block)


def inclusion_hint(receipt: Receipt, block: Dropped) -> str:
    """What would have brought the block into the prompt."""
    kind = _kind(block)
    return _COMPUTED_HINTS[kind](receipt, block) if kind in _COMPUTED_HINTS else _FIXED_HINTS.get(kind, "")


def _relevance_hint(receipt: Receipt, block: Dropped) -> str:
    scores = [part.score for part in receipt.sections if part.slot == block.slot and part.score is not None]
    return "more relevance" + (f": the least that came in has {min(scores):.2f}" if scores else "")


def _budget_hint(receipt: Receipt, block: Dropped) -> str:
    free = max(0, receipt.budget - receipt.tokens)
    return f"{_describe_room(block)} of the budget of {receipt.budget:,}; {free:,} were left in the end"


def _slot_hint(receipt: Receipt, block: Dropped) -> str:
    if block.slot not in receipt.slots:
        return f"{_describe_room(block)} in its slot, {block.slot}"
    used, limit = receipt.slots[block.slot]
    return (
        f"{_describe_room(block)} in its slot, {block.slot}, "
        f"which had {max(0, limit - used):,} left of {limit:,}"
    )


def _describe_room(block: Dropped) -> str:
    return "room" if block.tokens is None else pluralize(block.tokens, "token")


_COMPUTED_HINTS: Mapping[str, Callable[[Receipt, Dropped], str]] = {
    "gate": _relevance_hint,
    "budget": _budget_hint,
    "slot": _slot_hint,
}
_FIXED_HINTS = {
    "characters": "a higher context_compiler.max_injected_chars, or a budget of the turn's own",
    "far": "a budget of the turn's own: then room that is left is filled",
    "repeated": "another text: the session has this one",
    "duplicate": "nothing: what it says is in the prompt",
    "echo": "nothing: the message asks just that",
    "asleep": "another decision; `tacit gate report` shows how the topic fares",
    "weak": "a second passage that passes, or more relevance",
    "empty": "something written in it",
    "missing": "the file, or a subscription that names another",
    "unsafe": "a plain file inside the home",
    "audience": "an `audience` in its frontmatter that this session belongs to",
    "agent": "an `agent` in its frontmatter that names this one, or no such line",
}

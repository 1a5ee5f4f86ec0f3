"""A receipt in words: one turn with its budget, a list of turns, one block with all that is known of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeAlias

from tacit.cli.lines import (
    Line,
    Piece,
    cells_of,
    clipped,
    clipped_left,
    folded,
    hanging,
    one_line,
    padded,
    wrapped,
)
from tacit.cli.output import plural
from tacit.model.context import SLOTS, Dropped, Notice, Receipt, Section

Block: TypeAlias = Section | Dropped

_BEST = 3  # dropped blocks shown of each kind
_BAR = 60


def explained(receipt: Receipt, width: int) -> Iterator[Line]:
    """What a person is told of a receipt, as lines of at most this width."""
    yield [Piece(clipped(_title_of(receipt), width), "bold")]
    yield from _head(receipt, width)
    yield []
    yield from _bar(receipt, width)
    if told := list(_told(receipt, width)):
        yield []
        yield from told
    yield []
    yield from _tables(receipt, width)
    yield []
    yield from _timings(receipt, width)
    hint = "More: tacit why --block PART, tacit why --not FILE"
    yield [Piece(clipped(hint, width), "dim")]


def _title_of(receipt: Receipt) -> str:
    if receipt.lane == "bootstrap":
        return "The files of a session that begins"
    return f'"{one_line(receipt.message)}"'


def _head(receipt: Receipt, width: int) -> Iterator[Line]:
    share = f" ({receipt.tokens / receipt.budget:.0%})" if receipt.budget else ""
    facts = [
        _moment(receipt.at),
        receipt.session_type,
        f"{receipt.tokens:,} of {receipt.budget:,} tokens{share}",
        f"agent {receipt.agent}" if receipt.agent else "",
        f"lane {receipt.lane}" if receipt.lane != "prompt" else "",
        f"rule {receipt.rule}" if receipt.rule else "",
        f"receipt {receipt.id}",
    ]
    yield from folded(filter(None, facts), "  ", width)
    if receipt.host_tokens is not None:
        told = f"{receipt.tokens:,} tokens, where the host by itself would load {receipt.host_tokens:,}"
        yield [Piece(clipped(told, width))]
    if receipt.past:
        yield [Piece(clipped(f"Compiled from the past: commit {receipt.past}", width))]
    if receipt.trial:
        yield [Piece(clipped("Asked for by hand; it counts as no turn of a session.", width))]


def _moment(at: str) -> str:
    try:
        return datetime.fromisoformat(at).strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return at


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
    used = _used(receipt)
    cells = min(_BAR, width - 2)
    bar = [
        Piece(_letter(slot) * count, _STYLES.get(slot, "")) for slot, count in _cells(used, receipt, cells)
    ]
    free = cells - sum(len(piece.text) for piece in bar)
    yield [Piece("["), *bar, Piece("." * free, "dim"), Piece("]")]
    legend = [f"{_letter(slot)} {slot} {_of_slot(receipt, slot, tokens)}" for slot, tokens in used.items()]
    legend.append(f". free {max(0, receipt.budget - receipt.tokens):,}")
    yield from folded(legend, "   ", width, " ")


def _used(receipt: Receipt) -> dict[str, int]:
    """Tokens of each slot that has any, in the order of the prompt."""
    found: dict[str, int] = {}
    for section in receipt.sections:
        found[section.slot] = found.get(section.slot, 0) + section.tokens
    found |= {slot: used for slot, (used, _) in receipt.slots.items() if used}
    order = [*(slot for slot in SLOTS if slot in found), *(slot for slot in found if slot not in SLOTS)]
    return {slot: found[slot] for slot in order if found[slot] > 0}


def _of_slot(receipt: Receipt, slot: str, used: int) -> str:
    """The most it may have is told where it is nearly reached, and where others might share it."""
    _, most = receipt.slots.get(slot, (0, 0))
    nearly = most < receipt.budget and used >= 0.9 * most > 0
    return f"{used:,} of {most:,}" if nearly else f"{used:,}"


def _cells(used: Mapping[str, int], receipt: Receipt, cells: int) -> list[tuple[str, int]]:
    """So many cells for each slot: one at least, and never more in all than there are."""
    whole = max(receipt.budget, sum(used.values()), 1)
    counts = {slot: max(1, round(tokens * cells / whole)) for slot, tokens in used.items()}
    while sum(counts.values()) > cells and max(counts.values()) > 1:
        largest = max(counts, key=lambda slot: counts[slot])
        counts[largest] -= 1
    return list(counts.items())


# What the turn went on without

SKIPPED = {
    "empty": "the message is empty",
    "heartbeat": "it is a heartbeat",
    "command": "it is a command of the host",
    "acknowledgement": "it is only an acknowledgement",
    "disabled": "inject.enabled is false",
    "excluded": "the agent is in inject.exclude_agents",
    "lane": "the session's rule has no lane that gives anything to a turn",
    "files": "inject.files is host",
    "own-tool": "a tool of tacit asked",
    "own-block": "the message is only what tacit gave before",
    "not-first": "inject.mode is first, and this session had its search",
    "debounced": "the message before came less than inject.debounce_ms ago",
    "search": "the search failed",
    "deadline": "the time was over before anything was looked for",
    "busy": "too much was asked at the same time",
}


def _told(receipt: Receipt, width: int) -> Iterator[Line]:
    if receipt.skipped:
        yield from wrapped(f"Nothing was looked up: {why_skipped(receipt)}.", width, "yellow")
    for notice in other_notices(receipt):
        yield from wrapped(f"{notice.code}: {one_line(notice.text)}", width, "yellow")


def why_skipped(receipt: Receipt) -> str:
    said = next((notice.text for notice in receipt.notices if notice.code == receipt.skipped), "")
    return (one_line(said) or SKIPPED.get(receipt.skipped, receipt.skipped)).rstrip(".")


def other_notices(receipt: Receipt) -> list[Notice]:
    return [notice for notice in receipt.notices if notice.code != receipt.skipped]


# The tables

# In the order in which they are shown: first what came nearest.
_TALK = re.compile(r"raw/conversations/(\d{4})/(\d\d)/(\d\d)/(\d\d)(\d\d)-[^/]*:(\d+)")
_CODES = {
    "budget": "no room left in the budget",
    "slot": "no room left in its slot",
    "characters": "more characters than passages may have",
    "repeated": "given before in this session",
    "duplicate": "the same is there already",
    "echo": "the same question, asked before",
    "asleep": "topics that stayed asleep",
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
    groups = _grouped(receipt)
    shown: list[Block] = [block for group in groups.values() for block in _best(group)]
    columns = _columns([*receipt.sections, *shown], width)
    yield [Piece(f"In the prompt: {len(receipt.sections)}", "bold")]
    if receipt.sections:
        yield [Piece(columns.line("", "tokens", "rel.", "source", "why"), "dim")]
    yield from _rows(receipt.sections, columns)
    if not groups:
        return
    total = len(receipt.dropped) + sum(receipt.unlisted.values())
    yield []
    yield [Piece(f"Not in the prompt: {total:,}", "bold")]
    for code, group in groups.items():
        count = len(group) + receipt.unlisted.get(code, 0)
        yield [Piece(clipped(f"  {_title(code)} ({count:,}):", width))]
        yield from _rows(_best(group), columns, "dim")
        if (more := count - len(_best(group))) and group:
            yield [Piece(columns.line("", "", "", f"and {more:,} more", ""), "dim")]


def _grouped(receipt: Receipt) -> dict[str, list[Dropped]]:
    groups: dict[str, list[Dropped]] = {code: [] for code in receipt.unlisted}
    for block in receipt.dropped:
        groups.setdefault(_kind(block), []).append(block)
    order = list(_CODES)
    ranked = sorted(groups, key=lambda code: order.index(code) if code in order else len(order))
    return {code: groups[code] for code in ranked}


def _kind(block: Dropped) -> str:
    """The code; passages and topics have a gate each."""
    return "asleep" if (block.code, block.slot) == ("gate", "topics") else block.code


def _title(kind: str) -> str:
    return _CODES.get(kind, kind)


def _best(group: Sequence[Dropped]) -> list[Dropped]:
    return sorted(group, key=lambda block: -1.0 if block.score is None else block.score, reverse=True)[:_BEST]


class _Columns(NamedTuple):
    source: int
    why: int

    def line(self, letter: str, tokens: str, relevance: str, source: str, why: str) -> str:
        source = padded(clipped_left(source, self.source), self.source)
        return f"  {letter:<1} {tokens:>6}  {relevance:>4}  {source}  {clipped(why, self.why)}".rstrip()


def _columns(blocks: Sequence[Block], width: int) -> _Columns:
    """Sources get what they need, up to half of the line."""
    rest = width - len("  K 123456  0.12    ")
    source = min(max([6, *(cells_of(_place(block)) for block in blocks)]), max(24, rest // 2))
    return _Columns(source, rest - source)


def _rows(blocks: Iterable[Block], columns: _Columns, style: str = "") -> Iterator[Line]:
    above = ""
    for block in blocks:
        why = _few_words(block)
        cells = (_letter(block.slot), _tokens(block.tokens), _score(block.score), _place(block))
        line = columns.line(*cells, "" if why == above and isinstance(block, Dropped) else why)
        above = why
        colour = style or _STYLES.get(block.slot, "")
        yield [Piece(line[:2]), Piece(line[2:3], colour), Piece(line[3:], style)]


def _few_words(block: Block) -> str:
    cut = f"shortened: {block.shortened}; " if isinstance(block, Section) and block.shortened else ""
    return cut + one_line(block.reason)


def _place(block: Block) -> str:
    talk = _TALK.fullmatch(block.source)
    if talk:  # as the prompt names it: the slug of a transcript is long and says little
        year, month, day, hour, minute, line = talk.groups()
        return f"{year}-{month}-{day} {hour}:{minute} line {line}"
    return one_line(block.source or block.label)


def _tokens(tokens: int | None) -> str:
    return "" if tokens is None else f"{tokens:,}"


def _score(score: float | None) -> str:
    return "" if score is None else f"{score:.2f}"


def _timings(receipt: Receipt, width: int) -> Iterator[Line]:
    steps = dict(receipt.timings_ms)
    total = steps.pop("total", sum(steps.values()))
    if not receipt.timings_ms:
        return
    parts = [f"{name} {_ms(took)}" for name, took in steps.items()]
    yield from folded([f"Took {_ms(total)} ms" + (":" if parts else ""), *parts], "  ", width, style="dim")


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.0f}" if milliseconds >= 10 else f"{milliseconds:.1f}"


# The list


def listed(found: Sequence[Receipt], width: int) -> Iterator[Line]:
    rows = [
        (
            receipt.id,
            _moment(receipt.at),
            receipt.session_type,
            f"{receipt.tokens:,} of {receipt.budget:,}",
            _outcome(receipt),
        )
        for receipt in found
    ]
    widths = [max(map(cells_of, column)) for column in zip(*rows, strict=True)]
    for receipt, row in zip(found, rows, strict=True):
        cells = "  ".join(padded(cell, wide) for cell, wide in zip(row, widths, strict=True))
        about = "(bootstrap)" if receipt.lane == "bootstrap" else one_line(receipt.message)
        yield [Piece(clipped(f"{cells}  {about}", width))]


def _outcome(receipt: Receipt) -> str:
    return (
        f"skipped: {receipt.skipped}"
        if receipt.skipped
        else f"{len(receipt.sections)} in, {len(receipt.dropped) + sum(receipt.unlisted.values())} out"
    )


# One block


def is_about(block: Block, part: str) -> bool:
    wanted = part.casefold()
    return wanted in block.label.casefold() or wanted in block.source.casefold()


def blocks_of(receipt: Receipt) -> list[Block]:
    return [*receipt.sections, *receipt.dropped]


def path_of(block: Block) -> str:
    """The source without its line."""
    path, colon, line = block.source.rpartition(":")
    return path if colon and line.replace("-", "").isdecimal() else block.source


def separated(parts: Iterable[Iterable[Line]]) -> Iterator[Line]:
    for at, part in enumerate(parts):
        if at:
            yield []
        yield from part


def details(receipt: Receipt, block: Block, width: int) -> Iterator[Line]:
    yield [Piece(clipped(one_line(block.label), width), "bold")]
    for name, text in _facts_of(receipt, block):
        if text:
            yield from hanging(Piece(f"  {name:<9}  ", "dim"), text, width)


def _facts_of(receipt: Receipt, block: Block) -> Iterator[tuple[str, str]]:
    if isinstance(block, Section):
        yield "verdict", f"in the prompt, slot {block.slot}"
    else:
        yield "verdict", f"not in the prompt: {_title(_kind(block))}"
    yield "because", block.reason
    yield "source", block.source
    yield "tokens", _tokens(block.tokens)
    yield "relevance", _score(block.score)
    yield "channels", ", ".join(f"{name} {value:g}" for name, value in block.channels.items())
    if isinstance(block, Section):
        yield "day", block.day
        yield "shortened", block.shortened
        yield "digest", block.digest
    else:
        yield "needed", needed(receipt, block)


def needed(receipt: Receipt, block: Dropped) -> str:
    """What would have brought it in."""
    kind = _kind(block)
    return _RECKONED[kind](receipt, block) if kind in _RECKONED else _NEEDED.get(kind, "")


def _relevance_needed(receipt: Receipt, block: Dropped) -> str:
    scores = [part.score for part in receipt.sections if part.slot == block.slot and part.score is not None]
    return "more relevance" + (f": the least that came in has {min(scores):.2f}" if scores else "")


def _budget_needed(receipt: Receipt, block: Dropped) -> str:
    free = max(0, receipt.budget - receipt.tokens)
    return f"{_some_tokens(block)} of the budget of {receipt.budget:,}; {free:,} were left in the end"


def _slot_needed(receipt: Receipt, block: Dropped) -> str:
    if block.slot not in receipt.slots:
        return f"{_some_tokens(block)} in its slot, {block.slot}"
    used, most = receipt.slots[block.slot]
    return (
        f"{_some_tokens(block)} in its slot, {block.slot}, which had {max(0, most - used):,} left of {most:,}"
    )


def _some_tokens(block: Dropped) -> str:
    return "room" if block.tokens is None else plural(block.tokens, "token")


_RECKONED: Mapping[str, Callable[[Receipt, Dropped], str]] = {
    "gate": _relevance_needed,
    "budget": _budget_needed,
    "slot": _slot_needed,
}
_NEEDED = {
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

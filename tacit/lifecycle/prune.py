"""MEMORY.md over its cap → a shorter one, and a page in archive/memory/ with all that was taken out.

Four rules, in this order: what another note says word for word; what says the same as another entry; what no
longer holds (superseded entries, then the oldest of Active Context); and then the oldest of the rest. The
first two are always done, the others until there is room again. A model may choose for the last two which
entries go first; it writes nothing.

What must stay true: every entry is afterwards in MEMORY.md or on the archive page, as it was. Headings and
whatever is no entry stay. What is within its cap is left alone, so a second pass changes nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from tacit.lifecycle.apply import MEMORY, lines_of
from tacit.lifecycle.condense import asking
from tacit.lifecycle.contradict import says_the_same
from tacit.lifecycle.items import Item, dated, items, said_in, without
from tacit.llm.chat import ChatError
from tacit.llm.items import Ask
from tacit.model.changes import TRUSTS, Rewrite, is_trusted
from tacit.text import marks
from tacit.text.words import fold
from tacit.text.yaml_values import entry

CATEGORY = "memory"
ACTIVE = "Active Context"
_MARGIN = 10  # one part of so many stays free, so that pruning is not due again on the next day
_MOST_CHOSEN = 0.5  # of the entries: a model that wants more out has not understood

PROMPT = f"""MEMORY.md of an agent has too many entries. Choose those that matter least from now on: what is over, what is a
detail of something else, what nobody will ask for. They are moved to an archive, none is lost or changed.
Give the number of each entry and a reason of a few words, the least important first. Choose no more than you
are asked for. Rules, decisions that hold and lessons stay as long as anything else can go.
{asking.DATA}"""  # noqa: E501 - as the model reads it
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "entry": {"type": "integer"},
        "reason": {"type": "string", "maxLength": asking.LONGEST},
    },
    "required": ["entry", "reason"],
    "additionalProperties": False,
}


class Pruned(NamedTuple):
    rewrites: tuple[Rewrite, ...]  # MEMORY.md and the archive page; none: nothing could be taken out
    notes: tuple[str, ...]  # for the reviewer: each entry with the reason why it goes


class Taken(NamedTuple):
    item: Item
    reason: str


def archive_page(now: datetime) -> str:
    return f"archive/memory/{now:%Y-%m}.md"


def prune_memory(
    memory: str,
    *,
    cap: int,
    now: datetime,
    archive: str | None = None,
    elsewhere: Mapping[str, str] | None = None,
    ask: Ask | None = None,
) -> Pruned:
    """`archive` is the text of this month's archive page; `elsewhere` are other notes, by their paths."""
    if lines_of(memory) <= cap:
        return Pruned((), ())
    target = cap - max(1, cap // _MARGIN)
    taken, merged, told = _choose(memory, target, elsewhere or {}, ask)
    if not taken:
        return Pruned((), (*told, f"{MEMORY} is over its cap of {cap} lines, and has no entry to take out."))
    new = dated(without(memory, [one.item for one in taken], merged), now)
    page = with_archived(archive, taken, now)
    reason = (
        f"{lines_of(memory)} lines, over the cap of {cap}: {len(taken)} entries move to {archive_page(now)}"
    )
    notes = [*told, *(f"{one.reason}: {one.item.said}" for one in taken)]
    if lines_of(new) > cap:
        notes.append(f"{lines_of(new)} lines are left, more than {cap}: the rest are no entries.")
    # No line is new, and each keeps its own mark: nobody's word is trusted more or less than before.
    rewrites = (
        Rewrite(MEMORY, memory, new, CATEGORY, reason, (), "owner"),
        Rewrite(archive_page(now), archive, page, CATEGORY, reason, (), "owner"),
    )
    return Pruned(rewrites, tuple(notes))


def left_out(old: str, new: str) -> list[Item]:
    """The entries of the one that the other has not: neither as they stood nor in other words around the same
    text, as when one was superseded."""
    after = items(new)
    raws = Counter(one.raw for one in after)
    before = [one for one in items(old) if not _counted(raws, one.raw)]
    said = Counter(fold(one.said) for one in after)
    said.subtract(fold(one.said) for one in items(old) if one not in before)
    return [one for one in before if not _counted(said, fold(one.said))]


def _counted(counts: Counter[str], text: str) -> bool:
    """Whether there is one more of it, which is used up then."""
    counts[text] -= 1
    return counts[text] >= 0


def with_archived(page: str | None, taken: Sequence[Taken], now: datetime) -> str:
    """The archive page with these entries at its end, each as it stood and under its old heading. What the
    page has already, because a kill came between, is not added again."""
    there = {one.raw for one in items(page or "")}
    taken = [one for one in taken if one.item.raw.replace("\r\n", "\n") not in there]
    if page is not None and not taken:
        return page
    head = "".join(entry(key, value) for key, value in (("type", "memory"), ("generated", True)))
    text = page if page is not None else f"---\n{head}---\n\n# Taken out of MEMORY.md, {now:%Y-%m}\n"
    parts = [text.rstrip("\n"), f"## {now:%Y-%m-%d}"]
    for section in dict.fromkeys(one.item.section for one in taken):
        lines = [one.item.raw.replace("\r\n", "\n") for one in taken if one.item.section == section]
        parts.append("\n".join((f"### {section}", *lines) if section else lines))
    return "\n\n".join(parts) + "\n"


def _choose(
    memory: str, target: int, elsewhere: Mapping[str, str], ask: Ask | None
) -> tuple[list[Taken], dict[int, str], list[str]]:
    """What goes, what stands in another form from now on, and what there is to tell about it."""
    there = items(memory)
    taken = list(_captured(there, elsewhere))
    twice, merged = duplicates(_left(there, taken))
    taken += twice
    asked, told = _asked(_left(there, taken), _over(memory, taken, target), ask)
    for one in (*_stale(_left(there, taken)), *asked, *_active(there), *_oldest(there)):
        if _over(memory, taken, target) <= 0:
            break
        if all(one.item.number != other.item.number for other in taken):
            taken.append(one)
    gone = {one.item.number for one in taken}
    # What became the better form of a duplicate may have to go itself, and then as it was.
    return taken, {number: line for number, line in merged.items() if number not in gone}, told


def _left(there: Sequence[Item], taken: Sequence[Taken]) -> list[Item]:
    gone = {one.item.number for one in taken}
    return [one for one in there if one.number not in gone]


def _over(memory: str, taken: Sequence[Taken], target: int) -> int:
    return lines_of(memory) - sum(one.item.stop - one.item.start for one in taken) - target


# The rules


def _captured(there: Iterable[Item], elsewhere: Mapping[str, str]) -> Iterator[Taken]:
    said = {path: said_in([text]) for path, text in elsewhere.items()}
    for one in there:
        where = next((path for path, known in said.items() if fold(one.said) in known), None)
        if where is not None and one.stop == one.start + 1:
            yield Taken(one, f"{where} says the same")


def duplicates(there: Sequence[Item], *, generated: bool = False) -> tuple[list[Taken], dict[int, str]]:
    """Entries that say what another says, and lines that take over their sources. Of two, the one stays that
    is trusted more, then the one that a person wrote, then the earlier. `generated`: only lines that tacit
    wrote may go."""
    kept: list[Item] = []
    taken: list[Taken] = []
    merged: dict[int, str] = {}
    for one in sorted(there, key=lambda one: (TRUSTS.index(one.trust), one.is_generated, one.number)):
        same = next((other for other in kept if _is_same(one, other)), None)
        if same is None or (generated and not one.is_generated):
            kept.append(one)
            continue
        taken.append(Taken(one, f"says the same as “{same.said}”"))
        if same.is_generated and one.is_generated and same.trust == one.trust:
            merged[same.number] = _with_sources(merged.get(same.number, same.raw), one)
    return taken, merged


def _is_same(one: Item, other: Item) -> bool:
    is_short = one.stop == one.start + 1  # what somebody explained below an entry is more than the entry
    return is_short and one.is_superseded == other.is_superseded and says_the_same(one.said, other.said)


def _with_sources(line: str, other: Item) -> str:
    text, mark = marks.read(line)
    if mark is None or other.mark is None:
        return line
    return marks.marked(text, mark.extractor, dict.fromkeys((*mark.sources, *other.mark.sources)), mark.trust)


def _stale(there: Iterable[Item]) -> list[Taken]:
    return [Taken(one, "superseded") for one in _by_age(one for one in there if one.is_superseded)]


def _active(there: Iterable[Item]) -> list[Taken]:
    found = (one for one in there if fold(one.section.split(" / ")[0]) == fold(ACTIVE))
    return [Taken(one, f"the oldest of {ACTIVE}") for one in _by_age(found)]


def _oldest(there: Iterable[Item]) -> list[Taken]:
    return [Taken(one, "the oldest of the rest") for one in _by_age(there)]


def _by_age(there: Iterable[Item]) -> list[Item]:
    """The oldest first, of one day what tacit wrote. Last what has no day: nobody knows how old it is."""
    return sorted(there, key=lambda one: (one.day or "9999", not one.is_generated, one.number))


# With a model


def _asked(there: Sequence[Item], over: int, ask: Ask | None) -> tuple[list[Taken], list[str]]:
    """Entries in the order in which a model would let them go. It sees no words of others."""
    shown = {one.number: one for one in there if is_trusted(one.trust) and not one.is_superseded}
    if ask is None or over <= 0 or not shown:
        return [], []
    lines = asking.numbered((number, f"{one.day} {one.said}") for number, one in shown.items())
    try:
        answer = ask("prune", PROMPT, f"Choose {over} entries.\n\n{lines}", SCHEMA)
    except ChatError as error:
        return [], [f"The model chose nothing, so the oldest go: {error}"]
    named = [asking.numbers_in([item.get("entry")], shown) for item in answer]
    numbers = list(dict.fromkeys(one[0] for one in named if one))
    if len(numbers) > max(over, _MOST_CHOSEN * len(shown)):
        return [], [f"The model wanted {len(numbers)} of {len(shown)} entries out, so the oldest go instead."]
    reasons = {item.get("entry"): asking.plain_line(item.get("reason")) for item in answer}
    return [
        Taken(shown[number], f"chosen by a model ({reasons.get(number) or 'no reason given'})")
        for number in numbers
    ], []

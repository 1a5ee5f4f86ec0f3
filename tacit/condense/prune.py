"""What leaves the notes for the archive: entries of a full MEMORY.md, old journal pages, and unused notes.

Nothing is deleted: the archive is in git and is searched, it is only never loaded automatically.

MEMORY.md over its cap gives a shorter one, and a page in archive/memory/ with the removed entries. Four
rules, in this order: entries that another note has word for word; entries that repeat another one; entries
that no longer hold (superseded ones, then the oldest of Active Context); and then the oldest of the rest. The
first two rules always run, the others until there is room again. For the last two a model may choose which
entries go first; it writes nothing. Every entry is afterwards in MEMORY.md or on the archive page, unchanged.
Headings and text outside entries stay. A file within its cap is left alone, so a second pass changes nothing.

A note's score is exp(−0.05 · days since its last change) · (1 + references). The 1 is the note itself:
without it a note without references would score 0 on its first day, and so would SOUL.md. A note may go if it
scores below 0.01 and is unchanged for more than 30 days: after 93 days without references, after 106 with one
reference, 139 with nine. Independent of the score, these stay: identity, MEMORY.md, journal pages (they have
their own rule), topics, files whose name begins with `_`, notes with `pinned: true`, and notes that a person
linked to.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from math import exp
from typing import Any, NamedTuple

from tacit.home.layout import MEMORY
from tacit.learn import model_answers
from tacit.learn.model import Move, Rewrite
from tacit.llm.chat import ChatError
from tacit.llm.structured import Ask
from tacit.markdown import comment
from tacit.markdown.comment import TRUSTS, is_trusted
from tacit.markdown.note_page import (
    NoteItem,
    collect_item_texts,
    line_count,
    read_items,
    remove_items,
    update_dates,
)
from tacit.review.entries import append_archived, archive_page_path
from tacit.text.statements import says_the_same
from tacit.text.words import fold

CATEGORY = "memory"
ACTIVE_SECTION = "Active Context"
_FREE_SHARE = 10  # 1/10 of the cap stays free, so that pruning is not due again on the next day
_MAX_CHOSEN_SHARE = 0.5  # of the entries: a model that chooses more has not understood

PROMPT = f"""The MEMORY.md of an agent has too many entries. Choose those that matter least from now on: finished matters,
details of other entries, and things that will not be asked about. They move to an archive; none is lost or changed.
Give the number of each entry and a short reason, the least important first. Choose no more than requested.
Choose rules, valid decisions and lessons only if there is nothing else left to choose.
{model_answers.DATA_NOTICE}"""  # noqa: E501 - as the model reads it
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "entry": {"type": "integer"},
        "reason": {"type": "string", "maxLength": model_answers.MAX_TEXT_CHARS},
    },
    "required": ["entry", "reason"],
    "additionalProperties": False,
}

JOURNAL_FOLDER = "knowledge/journal/"
DECAY_PER_DAY = 0.05  # a day
MIN_SCORE = 0.01
MIN_AGE_DAYS = 30  # days
_KNOWLEDGE, _ARCHIVE = "knowledge/", "archive/"
_PAGE = re.compile(r"knowledge/journal/([0-9]{4}-[0-9]{2}-[0-9]{2})\.md")
_PROTECTED = ("knowledge/identity/", "knowledge/memory/", JOURNAL_FOLDER)


class PruneResult(NamedTuple):
    rewrites: tuple[Rewrite, ...]  # MEMORY.md and the archive page; empty if nothing could be removed
    notes: tuple[str, ...]  # for the reviewer: each removed entry with the reason


class RemovedEntry(NamedTuple):
    item: NoteItem
    reason: str


def prune_memory(
    memory: str,
    *,
    cap: int,
    now: datetime,
    archive: str | None = None,
    elsewhere: Mapping[str, str] | None = None,
    ask: Ask | None = None,
) -> PruneResult:
    """`archive`: the text of this month's archive page; `elsewhere`: other notes by path."""
    if line_count(memory) <= cap:
        return PruneResult((), ())
    target = cap - max(1, cap // _FREE_SHARE)
    taken, merged, messages = _choose(memory, target, elsewhere or {}, ask)
    if not taken:
        return PruneResult(
            (), (*messages, f"{MEMORY} is over its cap of {cap} lines, and has no entry to take out.")
        )
    new = update_dates(remove_items(memory, [removal.item for removal in taken], merged), now)
    page = append_archived(archive, [removal.item for removal in taken], now)
    lines = line_count(memory)
    reason = f"{lines} lines, over the cap of {cap}: {len(taken)} entries move to {archive_page_path(now)}"
    notes = [*messages, *(f"{removal.reason}: {removal.item.said}" for removal in taken)]
    if line_count(new) > cap:
        notes.append(f"{line_count(new)} lines are left, more than {cap}: the rest are no entries.")
    # No line is new and each keeps its provenance comment, so no trust changes.
    rewrites = (
        Rewrite(MEMORY, memory, new, CATEGORY, reason, (), "owner"),
        Rewrite(archive_page_path(now), archive, page, CATEGORY, reason, (), "owner"),
    )
    return PruneResult(rewrites, tuple(notes))


def _choose(
    memory: str, target: int, elsewhere: Mapping[str, str], ask: Ask | None
) -> tuple[list[RemovedEntry], dict[int, str], list[str]]:
    """The removed entries, the entries with a new text, and messages about both."""
    entries = read_items(memory)
    taken = list(_find_copies(entries, elsewhere))
    repeats, merged = find_duplicates(_drop_taken(entries, taken))
    taken += repeats
    chosen, messages = _ask_model(_drop_taken(entries, taken), _lines_over(memory, taken, target), ask)
    for removal in (
        *_choose_superseded(_drop_taken(entries, taken)),
        *chosen,
        *_take_active(entries),
        *_take_oldest(entries),
    ):
        if _lines_over(memory, taken, target) <= 0:
            break
        if all(removal.item.number != earlier.item.number for earlier in taken):
            taken.append(removal)
    gone = {removal.item.number for removal in taken}
    # An entry that absorbed a duplicate may have to go itself, and then in its old form.
    return taken, {number: line for number, line in merged.items() if number not in gone}, messages


def _drop_taken(entries: Sequence[NoteItem], taken: Sequence[RemovedEntry]) -> list[NoteItem]:
    gone = {removal.item.number for removal in taken}
    return [entry for entry in entries if entry.number not in gone]


def _lines_over(memory: str, taken: Sequence[RemovedEntry], target: int) -> int:
    return line_count(memory) - sum(removal.item.stop - removal.item.start for removal in taken) - target


# The rules


def _find_copies(entries: Iterable[NoteItem], elsewhere: Mapping[str, str]) -> Iterator[RemovedEntry]:
    statements = {path: collect_item_texts([text]) for path, text in elsewhere.items()}
    for item in entries:
        source = next(
            (path for path, known_statements in statements.items() if fold(item.said) in known_statements),
            None,
        )
        if source is not None and item.stop == item.start + 1:
            yield RemovedEntry(item, f"{source} says the same")


def find_duplicates(
    there: Sequence[NoteItem], *, generated: bool = False
) -> tuple[list[RemovedEntry], dict[int, str]]:
    """Entries that repeat another one, and the lines that take over their sources. Of two entries the more
    trusted stays, then the one that a person wrote, then the earlier. `generated`: remove only lines that
    tacit wrote."""
    remaining: list[NoteItem] = []
    taken: list[RemovedEntry] = []
    merged: dict[int, str] = {}
    for item in sorted(there, key=lambda item: (TRUSTS.index(item.trust), item.is_generated, item.number)):
        duplicate = next((other for other in remaining if _is_duplicate(item, other)), None)
        if duplicate is None or (generated and not item.is_generated):
            remaining.append(item)
            continue
        taken.append(RemovedEntry(item, f"says the same as “{duplicate.said}”"))
        if duplicate.is_generated and item.is_generated and duplicate.trust == item.trust:
            merged[duplicate.number] = _merge_sources(merged.get(duplicate.number, duplicate.raw), item)
    return taken, merged


def _is_duplicate(item: NoteItem, other: NoteItem) -> bool:
    is_short = item.stop == item.start + 1  # text explained below an entry would be lost
    return is_short and item.is_superseded == other.is_superseded and says_the_same(item.said, other.said)


def _merge_sources(line: str, other: NoteItem) -> str:
    text, mark = comment.read(line)
    if mark is None or other.mark is None:
        return line
    return comment.attach(
        text, mark.extractor, dict.fromkeys((*mark.sources, *other.mark.sources)), mark.trust
    )


def _choose_superseded(entries: Iterable[NoteItem]) -> list[RemovedEntry]:
    return [
        RemovedEntry(item, "superseded")
        for item in _sort_by_age(item for item in entries if item.is_superseded)
    ]


def _take_active(entries: Iterable[NoteItem]) -> list[RemovedEntry]:
    active = (item for item in entries if fold(item.section.split(" / ")[0]) == fold(ACTIVE_SECTION))
    return [RemovedEntry(item, f"the oldest of {ACTIVE_SECTION}") for item in _sort_by_age(active)]


def _take_oldest(entries: Iterable[NoteItem]) -> list[RemovedEntry]:
    return [RemovedEntry(item, "the oldest of the rest") for item in _sort_by_age(entries)]


def _sort_by_age(entries: Iterable[NoteItem]) -> list[NoteItem]:
    """The oldest first, and within a day generated entries first. Entries without a day come last, because
    their age is unknown."""
    return sorted(entries, key=lambda item: (item.day or "9999", not item.is_generated, item.number))


# With a model


def _ask_model(
    entries: Sequence[NoteItem], excess: int, ask: Ask | None
) -> tuple[list[RemovedEntry], list[str]]:
    """Entries in the order in which a model would drop them. It sees no words of others."""
    shown = {item.number: item for item in entries if is_trusted(item.trust) and not item.is_superseded}
    if ask is None or excess <= 0 or not shown:
        return [], []
    lines = model_answers.number_lines((number, f"{item.day} {item.said}") for number, item in shown.items())
    try:
        answer = ask("prune", PROMPT, f"Choose {excess} entries.\n\n{lines}", SCHEMA)
    except ChatError as error:
        return [], [f"The model chose nothing, so the oldest go: {error}"]
    named_numbers = [model_answers.parse_numbers([item.get("entry")], shown) for item in answer]
    numbers = list(dict.fromkeys(item[0] for item in named_numbers if item))
    if len(numbers) > max(excess, _MAX_CHOSEN_SHARE * len(shown)):
        return [], [f"The model wanted {len(numbers)} of {len(shown)} entries out, so the oldest go instead."]
    reasons = {item.get("entry"): model_answers.normalize_line(item.get("reason")) for item in answer}
    return [
        RemovedEntry(shown[number], f"chosen by a model ({reasons.get(number) or 'no reason given'})")
        for number in numbers
    ], []


# Journal pages and unused notes


class NoteUsage(NamedTuple):
    """How much a note is used."""

    path: str
    changed: date  # the day of its last change
    references: int = 0  # notes and conversations that name it
    is_pinned: bool = False
    is_linked: bool = False  # a person wrote a link to it


def prune_journals(paths: Iterable[str], today: date, retention_days: int) -> list[Move]:
    """Pages older than the retention, by the day in their name. Pages without a day stay. The caller checks
    for pinned pages."""
    existing = set(paths)
    oldest = today - timedelta(days=retention_days)
    reason = f"older than {retention_days} days"
    return [
        Move(path, _free_path(path, existing), "archive", reason)
        for path in sorted(existing)
        if (day := _day_of(path)) is not None and day < oldest
    ]


def score_and_evict(uses: Iterable[NoteUsage], today: date, paths: Collection[str] = ()) -> list[Move]:
    """Notes that were not changed or named for a long time. `paths`: the files of the home, so that no move
    overwrites one."""
    existing = set(paths)
    moves = []
    for use in sorted(uses):
        days = (today - use.changed).days
        if days > MIN_AGE_DAYS and score(days, use.references) < MIN_SCORE and not is_protected(use):
            reason = f"unchanged for {days} days, named {use.references} times"
            moves.append(Move(use.path, _free_path(use.path, existing), "evict", reason))
    return moves


def score(days: int, references: int) -> float:
    return exp(-DECAY_PER_DAY * max(0, days)) * (1 + max(0, references))


def is_protected(use: NoteUsage) -> bool:
    path = use.path
    if not path.startswith(_KNOWLEDGE) or path.startswith(_PROTECTED) or not path.endswith(".md"):
        return True
    return path.rpartition("/")[2].startswith("_") or use.is_pinned or use.is_linked


def archive_path(path: str) -> str:
    """Where a note goes in the archive, if that path is free."""
    return _ARCHIVE + path.removeprefix(_KNOWLEDGE)


def _day_of(path: str) -> date | None:
    match = _PAGE.fullmatch(path)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def _free_path(path: str, taken: set[str]) -> str:
    """Its path in the archive, numbered if the path is taken."""
    number, target = 1, archive_path(path)
    stem = target.removesuffix(".md")
    while target in taken:
        number += 1
        target = f"{stem}-{number}.md"
    taken.add(target)
    return target

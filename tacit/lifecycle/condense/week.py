"""The journal pages of a week → MEMORY.md with what they decided and taught, as a proposal.

What must stay true:
- lines that a person wrote stay word for word, and every heading stays;
- a line that is added says where it is from, carried over from the page, and has the trust it had there;
  words of others are given apart;
- the result has no more lines than the cap: what has to go for that goes to the archive page (prune);
- a model answers with numbers of lines and at most one line each, never with a file. An answer that would
  lose more than it may is left out as a whole, and that is said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

from tacit.lifecycle.apply import MEMORY, Line, with_lines
from tacit.lifecycle.condense import asking
from tacit.lifecycle.condense.checks import KEPT, validate_rewrite
from tacit.lifecycle.extract import told
from tacit.lifecycle.items import Item, dated, items, said_in, without
from tacit.lifecycle.prune import duplicates, prune_memory
from tacit.llm.chat import ChatError
from tacit.llm.items import Ask
from tacit.model.changes import Change, ChangeKind, Rewrite, Source, Trust, is_trusted, lowest
from tacit.text import marks, notes
from tacit.text.words import fold

LABEL = "week/1"
CATEGORY = "memory"
SECTIONS: Mapping[ChangeKind, str] = {"decision": "Key Decisions", "lesson": "Lessons Learned"}
_MOST_SHOWN = 150  # lines of the journal that a model is asked about
_KINDS: Mapping[str, ChangeKind] = {"decisions": "decision", "lessons": "lesson"}  # by what wrote a line

PROMPT = f"""You keep MEMORY.md of an agent short and true. Below are its entries, and lines from the journal
of one week, all numbered. Answer with items:
- action "add", lines: numbers of journal lines that tell of a decision or a lesson which no entry has yet;
  kind; text: one sentence with names and numbers as they stand there;
- action "merge", lines: numbers of entries that say the same; text: one sentence that says it once;
- action "drop", lines: numbers of entries that repeat another one;
- action "keep" is meant for every entry that you do not name.
Entries that begin with "(fixed)" can only be kept. Events of a day are no decisions. Add little.
{asking.DATA}"""
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"enum": ["keep", "merge", "drop", "add"]},
        "lines": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        "text": {"type": "string", "maxLength": asking.LONGEST},
        "kind": {"enum": list(SECTIONS)},
    },
    "required": ["action", "lines"],
    "additionalProperties": False,
}


class RolledUp(NamedTuple):
    rewrites: tuple[Rewrite, ...]  # MEMORY.md, and the archive page where something had to go
    untrusted: tuple[Change, ...]  # decisions and lessons by the word of others: for review
    notes: tuple[str, ...]
    seen: tuple[str, ...] = ()  # tokens of the lines that were looked at


class Found(NamedTuple):
    """A line of a journal page."""

    kind: ChangeKind | None  # None: neither a decision nor a lesson by its words
    text: str
    day: str
    sources: tuple[str, ...]
    trust: Trust


class _Edit(NamedTuple):
    """What becomes of MEMORY.md."""

    added: tuple[Found, ...]
    gone: tuple[Item, ...]
    instead: Mapping[int, str]
    notes: tuple[str, ...]


def weekly_rollup(
    pages: Mapping[str, str],
    memory: str | None,
    *,
    week: str,
    cap: int,
    now: datetime,
    archive: str | None = None,
    elsewhere: Mapping[str, str] | None = None,
    ask: Ask | None = None,
    seen: Collection[str] = (),
) -> RolledUp:
    """`pages` are the journal pages of the week by their paths; `elsewhere` other notes that may say it
    already; `archive` the page for what has to go; `seen` what was looked at when the week was rolled up
    before: somebody decided on that."""
    there = [one for path, text in sorted(pages.items()) for one in found_in(path, text)]
    found = [one for one in there if token_of(one.text) not in seen]
    rolled = _rolled_up(found, memory, week, cap, now, archive, elsewhere or {}, ask)
    return rolled._replace(seen=tuple(dict.fromkeys(token_of(one.text) for one in there)))


def token_of(text: str) -> str:
    """A line, short, for remembering that it was looked at."""
    return sha256(fold(text).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _rolled_up(
    found: Sequence[Found],
    memory: str | None,
    week: str,
    cap: int,
    now: datetime,
    archive: str | None,
    elsewhere: Mapping[str, str],
    ask: Ask | None,
) -> RolledUp:
    old = memory if memory is not None else ""
    new = _unknown(found, old, elsewhere.values())
    own = [one for one in new if is_trusted(one.trust)]
    edit = _by_model(old, own, ask) if ask is not None else _by_rules(old, own)
    text = _edited(memory, edit, now)
    others = tuple(_change(one) for one in new if one.kind and not is_trusted(one.trust))
    if text is None:
        return RolledUp((), others, edit.notes)
    problems = validate_rewrite(old, text)
    if problems:
        return RolledUp((), others, (*edit.notes, *(f"Rejected. {one.what}" for one in problems)))
    reason = f"week {week}: new from the journal: {len(edit.added)}, repeated and out: {len(edit.gone)}"
    sources = tuple(dict.fromkeys(source for one in edit.added for source in one.sources))
    trust = lowest((*(one.trust for one in edit.added), "owner"))
    whole = Rewrite(MEMORY, memory, text, CATEGORY, reason, sources, trust)
    return _within(whole, RolledUp((), others, edit.notes), cap, now, archive, elsewhere, ask)


def found_in(path: str, page: str) -> list[Found]:
    """The lines of a journal page, with what they are by what wrote them or by their words."""
    day = path.rpartition("/")[2].removesuffix(".md")
    return [_found(one, path, one.day or day) for one in items(page) if not one.is_superseded]


def _found(one: Item, path: str, day: str) -> Found:
    kind = _KINDS.get(one.mark.name) if one.mark is not None and one.is_generated else None
    text = one.said
    if kind is None:
        noticed = next(((kind, said) for kind, said in told(text) if kind in SECTIONS), None)
        kind = noticed[0] if noticed else None
    sources = one.mark.sources if one.mark is not None else (marks.source_of(path),)
    return Found(kind, text, day, sources, one.trust)


def _once(found: Sequence[Found]) -> list[Found]:
    kept: list[Found] = []
    for one in sorted(found, key=lambda one: not is_trusted(one.trust)):  # the trusted word of two
        if asking.plain_line(one.text) and not asking.echoes(one.text, (other.text for other in kept)):
            kept.append(one)
    return sorted(kept, key=lambda one: one.day)


def _unknown(found: Sequence[Found], memory: str, elsewhere: Iterable[str]) -> list[Found]:
    """What neither MEMORY.md nor another note has: in these words, or from the same turn. What is superseded
    there is known too: it does not come back from an old page."""
    there = items(memory)
    texts = list(elsewhere)
    known = said_in(texts)
    turns = {
        source
        for one in (*there, *(one for text in texts for one in items(text)))
        if one.mark is not None
        for source in one.mark.sources
        if marks.number_of(source) is not None
    }
    said = [one.said for one in there]
    return [
        one
        for one in _once(found)
        if fold(one.text) not in known
        and not turns.intersection(one.sources)
        and not asking.echoes(one.text, said)
    ]


def _change(one: Found) -> Change:
    first, *further = one.sources
    number = marks.number_of(first) or 0
    source = Source("", number, "user", transcript=marks.transcript_of(first))
    kind = one.kind or "event"
    return Change(
        MEMORY, SECTIONS.get(kind), one.text, one.day, kind, source, one.trust, LABEL, tuple(further)
    )


# Writing


def _edited(memory: str | None, edit: _Edit, now: datetime) -> str | None:
    """None where nothing changes."""
    if not edit.added and not edit.gone and not edit.instead:
        return None
    text = without(memory, edit.gone, edit.instead) if memory is not None else None
    text = with_lines(text, MEMORY, [_line(one) for one in edit.added])
    if memory is None:
        text = notes.with_fields(notes.parse(text), {"updated": now, "line_count": 0}).text
    return None if text == memory else dated(text, now)


def _line(one: Found) -> Line:
    text = marks.marked(f"- {one.day}: {one.text}", LABEL, one.sources, one.trust)
    return Line(SECTIONS[one.kind] if one.kind else None, text)


def _within(
    whole: Rewrite,
    so_far: RolledUp,
    cap: int,
    now: datetime,
    archive: str | None,
    elsewhere: Mapping[str, str],
    ask: Ask | None,
) -> RolledUp:
    """The rewrite, with a page of what had to go where it was over the cap."""
    pruned = prune_memory(whole.new, cap=cap, now=now, archive=archive, elsewhere=elsewhere, ask=ask)
    if not pruned.rewrites:
        return so_far._replace(rewrites=(whole,), notes=(*so_far.notes, *pruned.notes))
    memory, page = pruned.rewrites
    both = Rewrite(
        MEMORY,
        whole.old,
        memory.new,
        CATEGORY,
        f"{whole.reason}; {memory.reason}",
        whole.sources,
        whole.trust,
    )
    return so_far._replace(rewrites=(both, page), notes=(*so_far.notes, *pruned.notes))


# Without a model


def _by_rules(memory: str, found: Sequence[Found]) -> _Edit:
    taken, merged = duplicates(items(memory), generated=True)
    told_why = tuple(f"{one.reason}: {one.item.said}" for one in taken)
    return _Edit(tuple(one for one in found if one.kind), tuple(one.item for one in taken), merged, told_why)


# With a model


class _Answer:
    """The items of an answer that count, over the lines that were shown."""

    def __init__(self, memory: Sequence[Item], found: Sequence[Found]) -> None:
        self._items = dict(enumerate(memory, 1))
        self._found = dict(enumerate(found, len(memory) + 1))
        # What it says has the trust of the least trusted of all that it saw, not of what it names.
        self._trust = lowest((*(one.trust for one in memory), *(one.trust for one in found)))
        self.added: list[Found] = []
        self.gone: dict[int, Item] = {}
        self.instead: dict[int, str] = {}
        self.touched: set[int] = set()  # entries that it wanted changed or out, whether that counts or not
        self.wrong = 0

    def shown(self) -> list[tuple[int, str]]:
        entries = [
            (number, one.said if one.is_generated else f"(fixed) {one.said}")
            for number, one in self._items.items()
        ]
        return entries + [(number, f"({one.day}) {one.text}") for number, one in self._found.items()]

    def take(self, item: Mapping[str, Any]) -> None:
        steps = {"add": self._add, "merge": self._merge, "drop": self._drop}
        action = item.get("action")
        step = steps.get(str(action))
        if action != "keep" and (step is None or not step(item)):
            self.wrong += 1

    def _add(self, item: Mapping[str, Any]) -> bool:
        named = asking.numbers_in(item.get("lines"), self._found)
        lines = [self._found[number] for number in named]
        kind = next((one for one in SECTIONS if one == item.get("kind")), lines[0].kind if lines else None)
        text = asking.plain_line(item.get("text") or (lines[0].text if lines else None))
        if not lines or kind is None or text is None:
            return False
        if not asking.grounded(text, [one.text for one in lines]):
            return False
        sources = tuple(dict.fromkeys(source for one in lines for source in one.sources))
        self.added.append(Found(kind, text, lines[-1].day, sources, self._trust))
        return True

    def _merge(self, item: Mapping[str, Any]) -> bool:
        lines = self._generated(item)
        text = asking.plain_line(item.get("text"))
        said = [one.said for one in lines]
        if len(lines) < 2 or text is None or not asking.grounded(text, said):
            return False
        if asking.numbers_of(said) - asking.numbers_of([text]):
            return False
        first, *others = lines
        sources = dict.fromkeys(s for one in lines if one.mark for s in one.mark.sources)
        day = max(one.day for one in lines)
        self.instead[first.number] = marks.marked(
            f"- {day}: {text}" if day else f"- {text}", LABEL, sources, self._trust
        )
        self.gone.update({one.number: one for one in others})
        return True

    def _drop(self, item: Mapping[str, Any]) -> bool:
        """Only what another entry says too: for anything else there is the archive."""
        lines = self._generated(item)
        out = {*self.gone, *(one.number for one in lines)}
        kept = [one.said for one in self._items.values() if one.number not in out]
        if not lines or not all(asking.echoes(one.said, kept) for one in lines):
            return False
        self.gone.update({one.number: one for one in lines})
        return True

    def _generated(self, item: Mapping[str, Any]) -> list[Item]:
        """The entries that an item names; none where one of them is a person's, or named before."""
        named = asking.numbers_in(item.get("lines"), self._items)
        self.touched.update(named)
        lines = [self._items[number] for number in named]
        is_free = all(
            one.is_generated and one.number not in self.gone and one.number not in self.instead
            for one in lines
        )
        return lines if is_free else []


def _by_model(memory: str, found: Sequence[Found], ask: Ask) -> _Edit:
    entries = [one for one in items(memory) if is_trusted(one.trust) and not one.is_superseded]
    # Those that say by their words what they are come first, where there are too many.
    shown = sorted(found, key=lambda one: one.kind is None)[:_MOST_SHOWN]
    answer = _Answer(entries, sorted(shown, key=lambda one: one.day))
    if not found and not any(one.is_generated for one in entries):
        return _Edit((), (), {}, ())
    try:
        for item in ask("condense", PROMPT, asking.numbered(answer.shown()), SCHEMA):
            answer.take(item)
    except ChatError as error:
        edit = _by_rules(memory, found)
        return edit._replace(notes=(f"The model gave no answer, so rules chose: {error}", *edit.notes))
    lost, total = len(answer.touched), len(items(memory))
    if lost > (1 - KEPT) * total:
        edit = _by_rules(memory, found)
        why = f"The model's answer was rejected: it would change or drop {lost} of {total} entries."
        return edit._replace(notes=(why, *edit.notes))
    told_why = (f"{answer.wrong} items of the model's answer were left out.",) if answer.wrong else ()
    return _Edit(tuple(answer.added), tuple(answer.gone.values()), answer.instead, told_why)

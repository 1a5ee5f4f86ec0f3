"""The journal pages of a week → MEMORY.md with their decisions and lessons, as a proposal.

What must stay true:
- lines that a person wrote stay word for word, and every heading stays;
- an added line keeps the sources and the trust it had on the page; words of others are returned separately;
- the result has no more lines than the cap: the excess goes to the archive page (prune);
- a model answers with line numbers and at most one line per item, never with a file. An answer that would
  lose too many entries is rejected as a whole, and the notes say so.

A model's answer may be cut off at its token limit. A rewrite is checked for what it must keep of the old
text, so that such an answer never replaces a complete file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple

from tacit.condense.prune import find_duplicates, prune_memory
from tacit.diagnostics import Problem
from tacit.home.layout import MEMORY
from tacit.learn import model_answers
from tacit.learn.model import Change, ChangeKind, Rewrite, Source
from tacit.learn.model_answers import gives_orders
from tacit.learn.patterns import find_statements
from tacit.llm.chat import ChatError
from tacit.llm.structured import Ask
from tacit.markdown import comment, notes
from tacit.markdown.comment import Trust, is_trusted, lowest
from tacit.markdown.note_page import (
    NoteItem,
    NoteLine,
    collect_item_texts,
    read_items,
    remove_items,
    update_dates,
)
from tacit.review.entries import add_lines
from tacit.text.lines import scan
from tacit.text.words import fold

LABEL = "week/1"
CATEGORY = "memory"
SECTIONS: Mapping[ChangeKind, str] = {"decision": "Key Decisions", "lesson": "Lessons Learned"}
_MAX_SHOWN_LINES = 150  # journal lines that a model is shown
_KINDS: Mapping[str, ChangeKind] = {"decisions": "decision", "lessons": "lesson"}  # by extractor name

PROMPT = f"""You keep the MEMORY.md of an agent short and true. Below are its entries, and journal lines
of one week, all numbered. Answer with items:
- action "add", lines: numbers of journal lines with a decision or a lesson that is not in any entry yet;
  kind; text: one sentence with names and numbers copied exactly;
- action "merge", lines: numbers of entries that say the same; text: one sentence for all of them;
- action "drop", lines: numbers of entries that repeat another one;
- action "keep" is meant for every entry that you do not name.
Entries that begin with "(fixed)" can only be kept. Events of a day are not decisions. Add little.
{model_answers.DATA_NOTICE}"""
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "action": {"enum": ["keep", "merge", "drop", "add"]},
        "lines": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        "text": {"type": "string", "maxLength": model_answers.MAX_TEXT_CHARS},
        "kind": {"enum": list(SECTIONS)},
    },
    "required": ["action", "lines"],
    "additionalProperties": False,
}
MIN_KEPT_SHARE = 0.7  # of the entries
_MIN_CUT_CHARS = 8  # a new line of at least this length that begins an old one counts as cut off
_CHANGING_FIELDS = ("updated", "line_count")  # fields that a rewrite changes
_TODO = "The old text stays."


class WeeklyRollup(NamedTuple):
    rewrites: tuple[Rewrite, ...]  # MEMORY.md, and the archive page if entries had to go
    untrusted: tuple[Change, ...]  # decisions and lessons in the words of others: for review
    notes: tuple[str, ...]
    seen: tuple[str, ...] = ()  # tokens of the lines that were considered


class JournalLine(NamedTuple):
    """A line of a journal page."""

    kind: ChangeKind | None  # None: its words say neither decision nor lesson
    text: str
    day: str
    sources: tuple[str, ...]
    trust: Trust


class _Edit(NamedTuple):
    """The changes to MEMORY.md."""

    added: tuple[JournalLine, ...]
    gone: tuple[NoteItem, ...]
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
) -> WeeklyRollup:
    """`pages`: the journal pages of the week by path; `elsewhere`: other notes that may say the same already;
    `archive`: the page for entries that have to go; `seen`: lines that an earlier rollup of the week
    considered and that are decided on."""
    all_lines = [line for path, text in sorted(pages.items()) for line in parse_page(path, text)]
    new_lines = [line for line in all_lines if line_token(line.text) not in seen]
    rollup = _roll_up(new_lines, memory, week, cap, now, archive, elsewhere or {}, ask)
    return rollup._replace(seen=tuple(dict.fromkeys(line_token(line.text) for line in all_lines)))


def line_token(text: str) -> str:
    """A short hash of a line, to remember that it was considered."""
    return sha256(fold(text).encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _roll_up(
    lines: Sequence[JournalLine],
    memory: str | None,
    week: str,
    cap: int,
    now: datetime,
    archive: str | None,
    elsewhere: Mapping[str, str],
    ask: Ask | None,
) -> WeeklyRollup:
    old = memory if memory is not None else ""
    new = _drop_known(lines, old, elsewhere.values())
    trusted = [line for line in new if is_trusted(line.trust)]
    edit = _by_model(old, trusted, ask) if ask is not None else _by_rules(old, trusted)
    text = _apply_edit(memory, edit, now)
    for_review = tuple(_to_change(line) for line in new if line.kind and not is_trusted(line.trust))
    if text is None:
        return WeeklyRollup((), for_review, edit.notes)
    problems = validate_rewrite(old, text)
    if problems:
        return WeeklyRollup(
            (), for_review, (*edit.notes, *(f"Rejected. {problem.what}" for problem in problems))
        )
    reason = f"week {week}: new from the journal: {len(edit.added)}, repeated and out: {len(edit.gone)}"
    sources = tuple(dict.fromkeys(source for line in edit.added for source in line.sources))
    trust = lowest((*(line.trust for line in edit.added), "owner"))
    rewrite = Rewrite(MEMORY, memory, text, CATEGORY, reason, sources, trust)
    return _prune_to_cap(rewrite, WeeklyRollup((), for_review, edit.notes), cap, now, archive, elsewhere, ask)


def parse_page(path: str, page: str) -> list[JournalLine]:
    """The lines of a journal page, with their kind by extractor or by their words."""
    day = path.rpartition("/")[2].removesuffix(".md")
    return [_classify(item, path, item.day or day) for item in read_items(page) if not item.is_superseded]


def _classify(item: NoteItem, path: str, day: str) -> JournalLine:
    kind = _KINDS.get(item.mark.name) if item.mark is not None and item.is_generated else None
    text = item.said
    if kind is None:
        statement = next(
            ((kind, sentence) for kind, sentence in find_statements(text) if kind in SECTIONS), None
        )
        kind = statement[0] if statement else None
    sources = item.mark.sources if item.mark is not None else (comment.source_name(path),)
    return JournalLine(kind, text, day, sources, item.trust)


def _drop_repeats(lines: Sequence[JournalLine]) -> list[JournalLine]:
    unique: list[JournalLine] = []
    for line in sorted(lines, key=lambda line: not is_trusted(line.trust)):  # so that trusted lines win
        if model_answers.normalize_line(line.text) and not model_answers.is_echo(
            line.text, (earlier.text for earlier in unique)
        ):
            unique.append(line)
    return sorted(unique, key=lambda line: line.day)


def _drop_known(lines: Sequence[JournalLine], memory: str, elsewhere: Iterable[str]) -> list[JournalLine]:
    """The lines that neither MEMORY.md nor another note has, in these words or from the same turn. Superseded
    entries count as known, so that they do not come back from an old page."""
    entries = read_items(memory)
    texts = list(elsewhere)
    known = collect_item_texts(texts)
    turns = {
        source
        for entry in (*entries, *(entry for text in texts for entry in read_items(text)))
        if entry.mark is not None
        for source in entry.mark.sources
        if comment.message_number(source) is not None
    }
    statements = [entry.said for entry in entries]
    return [
        line
        for line in _drop_repeats(lines)
        if fold(line.text) not in known
        and not turns.intersection(line.sources)
        and not model_answers.is_echo(line.text, statements)
    ]


def _to_change(line: JournalLine) -> Change:
    first, *others = line.sources
    number = comment.message_number(first) or 0
    source = Source("", number, "user", transcript=comment.transcript_path(first))
    kind = line.kind or "event"
    return Change(
        MEMORY, SECTIONS.get(kind), line.text, line.day, kind, source, line.trust, LABEL, tuple(others)
    )


# Writing


def _apply_edit(memory: str | None, edit: _Edit, now: datetime) -> str | None:
    """None if nothing changes."""
    if not edit.added and not edit.gone and not edit.instead:
        return None
    text = remove_items(memory, edit.gone, edit.instead) if memory is not None else None
    text = add_lines(text, MEMORY, [_to_line(line) for line in edit.added])
    if memory is None:
        text = notes.set_fields(notes.parse(text), {"updated": now, "line_count": 0}).text
    return None if text == memory else update_dates(text, now)


def _to_line(line: JournalLine) -> NoteLine:
    text = comment.attach(f"- {line.day}: {line.text}", LABEL, line.sources, line.trust)
    return NoteLine(SECTIONS[line.kind] if line.kind else None, text)


def _prune_to_cap(
    rewrite: Rewrite,
    rollup: WeeklyRollup,
    cap: int,
    now: datetime,
    archive: str | None,
    elsewhere: Mapping[str, str],
    ask: Ask | None,
) -> WeeklyRollup:
    """The rewrite, plus the archive page if it was over the cap."""
    pruned = prune_memory(rewrite.new, cap=cap, now=now, archive=archive, elsewhere=elsewhere, ask=ask)
    if not pruned.rewrites:
        return rollup._replace(rewrites=(rewrite,), notes=(*rollup.notes, *pruned.notes))
    memory, page = pruned.rewrites
    combined = Rewrite(
        MEMORY,
        rewrite.old,
        memory.new,
        CATEGORY,
        f"{rewrite.reason}; {memory.reason}",
        rewrite.sources,
        rewrite.trust,
    )
    return rollup._replace(rewrites=(combined, page), notes=(*rollup.notes, *pruned.notes))


# Without a model


def _by_rules(memory: str, lines: Sequence[JournalLine]) -> _Edit:
    duplicate_entries, merged = find_duplicates(read_items(memory), generated=True)
    reasons = tuple(f"{duplicate.reason}: {duplicate.item.said}" for duplicate in duplicate_entries)
    return _Edit(
        tuple(item for item in lines if item.kind),
        tuple(item.item for item in duplicate_entries),
        merged,
        reasons,
    )


# With a model


class _Answer:
    """Collects the valid items of an answer about the lines that were shown."""

    def __init__(self, memory: Sequence[NoteItem], lines: Sequence[JournalLine]) -> None:
        self._items = dict(enumerate(memory, 1))
        self._lines = dict(enumerate(lines, len(memory) + 1))
        # The answer has the lowest trust of all lines that the model saw, not of those it names.
        self._trust = lowest((*(item.trust for item in memory), *(item.trust for item in lines)))
        self.added: list[JournalLine] = []
        self.gone: dict[int, NoteItem] = {}
        self.instead: dict[int, str] = {}
        self.touched: set[int] = set()  # entries it wanted to change or drop, also in invalid items
        self.wrong = 0

    def list_lines(self) -> list[tuple[int, str]]:
        entries = [
            (number, item.said if item.is_generated else f"(fixed) {item.said}")
            for number, item in self._items.items()
        ]
        return entries + [(number, f"({line.day}) {line.text}") for number, line in self._lines.items()]

    def take(self, item: Mapping[str, Any]) -> None:
        steps = {"add": self._add, "merge": self._merge, "drop": self._drop}
        action = item.get("action")
        step = steps.get(str(action))
        if action != "keep" and (step is None or not step(item)):
            self.wrong += 1

    def _add(self, item: Mapping[str, Any]) -> bool:
        numbers = model_answers.parse_numbers(item.get("lines"), self._lines)
        lines = [self._lines[number] for number in numbers]
        kind = next(
            (allowed for allowed in SECTIONS if allowed == item.get("kind")), lines[0].kind if lines else None
        )
        text = model_answers.normalize_line(item.get("text") or (lines[0].text if lines else None))
        if not lines or kind is None or text is None:
            return False
        if not model_answers.is_grounded(text, [line.text for line in lines]):
            return False
        sources = tuple(dict.fromkeys(source for line in lines for source in line.sources))
        self.added.append(JournalLine(kind, text, lines[-1].day, sources, self._trust))
        return True

    def _merge(self, item: Mapping[str, Any]) -> bool:
        lines = self._pick_generated(item)
        text = model_answers.normalize_line(item.get("text"))
        statements = [entry.said for entry in lines]
        if len(lines) < 2 or text is None or not model_answers.is_grounded(text, statements):
            return False
        if model_answers.extract_numbers(statements) - model_answers.extract_numbers([text]):
            return False
        first, *others = lines
        sources = dict.fromkeys(source for entry in lines if entry.mark for source in entry.mark.sources)
        day = max(entry.day for entry in lines)
        self.instead[first.number] = comment.attach(
            f"- {day}: {text}" if day else f"- {text}", LABEL, sources, self._trust
        )
        self.gone.update({entry.number: entry for entry in others})
        return True

    def _drop(self, item: Mapping[str, Any]) -> bool:
        """Drop entries only if another entry says the same: other entries are left to pruning."""
        lines = self._pick_generated(item)
        dropped = {*self.gone, *(entry.number for entry in lines)}
        remaining = [entry.said for entry in self._items.values() if entry.number not in dropped]
        if not lines or not all(model_answers.is_echo(entry.said, remaining) for entry in lines):
            return False
        self.gone.update({entry.number: entry for entry in lines})
        return True

    def _pick_generated(self, item: Mapping[str, Any]) -> list[NoteItem]:
        """The entries that an item names; none if one is a person's or was named before."""
        numbers = model_answers.parse_numbers(item.get("lines"), self._items)
        self.touched.update(numbers)
        lines = [self._items[number] for number in numbers]
        is_free = all(
            entry.is_generated and entry.number not in self.gone and entry.number not in self.instead
            for entry in lines
        )
        return lines if is_free else []


def _by_model(memory: str, lines: Sequence[JournalLine], ask: Ask) -> _Edit:
    entries = [entry for entry in read_items(memory) if is_trusted(entry.trust) and not entry.is_superseded]
    # If there are too many lines, those with a known kind come first.
    shown = sorted(lines, key=lambda entry: entry.kind is None)[:_MAX_SHOWN_LINES]
    answer = _Answer(entries, sorted(shown, key=lambda entry: entry.day))
    if not lines and not any(entry.is_generated for entry in entries):
        return _Edit((), (), {}, ())
    try:
        for item in ask("condense", PROMPT, model_answers.number_lines(answer.list_lines()), SCHEMA):
            answer.take(item)
    except ChatError as error:
        edit = _by_rules(memory, lines)
        return edit._replace(notes=(f"The model gave no answer, so rules chose: {error}", *edit.notes))
    touched, total = len(answer.touched), len(read_items(memory))
    if touched > (1 - MIN_KEPT_SHARE) * total:
        edit = _by_rules(memory, lines)
        why = f"The model's answer was rejected: it would change or drop {touched} of {total} entries."
        return edit._replace(notes=(why, *edit.notes))
    reasons = (f"{answer.wrong} items of the model's answer were left out.",) if answer.wrong else ()
    return _Edit(tuple(answer.added), tuple(answer.gone.values()), answer.instead, reasons)


# Checks of a rewrite


def validate_rewrite(old: str, new: str) -> list[Problem]:
    """The problems of replacing `old` by `new`; empty if there are none."""
    findings = (
        *_check_frontmatter(old, new),
        *_check_headings(old, new),
        *_check_entries(old, new),
        *_check_cut(old, new),
    )
    problems = [*findings, *_check_orders(old, new)]
    return [Problem(MEMORY, message, _TODO) for message in problems]


def _check_frontmatter(old: str, new: str) -> Iterator[str]:
    before, after = notes.parse(old), notes.parse(new)
    if any(problem.level == "error" for problem in after.problems):
        yield "Its frontmatter cannot be read."
    for key, value in before.fields.items():
        if key not in after.fields:
            yield f"Its frontmatter lost `{key}`."
        elif key not in _CHANGING_FIELDS and repr(after.fields[key]) != repr(value):
            yield f"`{key}` in its frontmatter changed."


def _check_headings(old: str, new: str) -> Iterator[str]:
    lost = Counter(_heading_titles(old)) - Counter(_heading_titles(new))
    for level, title in lost:
        yield f"The heading `{'#' * level} {title}` is gone."


def _heading_titles(text: str) -> list[tuple[int, str]]:
    body = notes.split(text)[1]
    return [(line.level, line.title) for line in scan(body) if line.kind == "heading"]


def _check_entries(old: str, new: str) -> Iterator[str]:
    """Compare entries by their words: a moved, newly marked or deduplicated entry is still there."""
    before, after = _entry_texts(old), set(_entry_texts(new))
    total, kept_count = len(before), sum(statement in after for statement in before)
    if kept_count < MIN_KEPT_SHARE * total:
        yield f"Only {kept_count} of {total} entries are kept; at least {MIN_KEPT_SHARE:.0%} must be."


def _entry_texts(text: str) -> list[str]:
    return [fold(item.said) for item in read_items(text)]


def _check_cut(old: str, new: str) -> Iterator[str]:
    if old.endswith("\n") and not new.endswith("\n"):
        yield "Its last line is cut off."
    if new.count("<!--") > new.count("-->"):
        yield "A comment in it is never closed."
    if _open_fences(new) > _open_fences(old):
        yield "A block of code in it is never closed."
    old_lines = {_bare_text(line) for line in old.split("\n")}
    for line in new.split("\n"):
        text = _bare_text(line)
        if (
            text not in old_lines
            and len(text) >= _MIN_CUT_CHARS
            and any(old_line.startswith(text) for old_line in old_lines)
        ):
            yield f"A line is cut short: {text[:60]!r}."


def _bare_text(line: str) -> str:
    return comment.strip_superseded(comment.read(line.rstrip("\r"))[0]).rstrip()


def _open_fences(text: str) -> int:
    last = ""
    for line in scan(text):
        last = line.kind
    return sum(line.kind == "fence" for line in scan(text)) % 2 or int(last == "code")


def _check_orders(old: str, new: str) -> Iterator[str]:
    old_statements = set(_entry_texts(old))
    for item in read_items(new):
        if fold(item.said) not in old_statements and item.mark is None and gives_orders(item.said):
            yield f"A new line gives instructions and has no source: {item.said[:60]!r}."
    old_lines = {line.strip() for line in old.split("\n")}
    item_lines = {index for item in read_items(new) for index in range(item.start, item.stop)}
    for index, line in enumerate(new.split("\n")):
        if index not in item_lines and line.strip() not in old_lines and gives_orders(line):
            yield f"A new line gives instructions and has no source: {line.strip()[:60]!r}."

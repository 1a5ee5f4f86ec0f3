"""Lessons → the draft of a section. The order of the steps, and what fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

from tacit.lifecycle.review import reviewed
from tacit.lifecycle.wisdom.asking import Answered, Pattern, ask
from tacit.lifecycle.wisdom.lessons import Lesson
from tacit.lifecycle.wisdom.likeness import Likeness, Vectors
from tacit.lifecycle.wisdom.lint import MOST_ENTRIES, MOST_TOKENS
from tacit.lifecycle.wisdom.patterns import pattern
from tacit.lifecycle.wisdom.section import MANDATORY, Entry, coverage_notes, is_mandatory, parse, render
from tacit.lifecycle.wisdom.themes import themes
from tacit.llm.chat import Chat, ChatError
from tacit.text import tokens

MOST_LESSONS = 1_000  # compared with each other
_SHOWN = 160  # characters of a lesson in the notes


class Compressed(NamedTuple):
    section: str
    draft: str  # the section, and the notes for the reviewer
    how: str  # extractive, or the model's name
    covers: dict[str, int]  # lessons by the names of entries
    notes: tuple[str, ...]


class _Worded(NamedTuple):
    patterns: Sequence[Pattern]
    how: str
    notes: tuple[str, ...]


def compress(
    lessons: Sequence[Lesson], present: str, today: date, vectors: Vectors | None, chat: Chat | None
) -> Compressed:
    """`present` is the section as it stands now: its way of saying the mandatory entry is kept."""
    used = lessons[-MOST_LESSONS:]
    texts = [lesson.text for lesson in used]
    likeness = Likeness(texts, vectors)
    worded = _worded(texts, likeness, chat)
    old = parse(present).entries
    mandatory = next(filter(is_mandatory, old), MANDATORY)
    kept, beyond = _fitted(worded.patterns, mandatory, today, len(lessons))
    section = render([mandatory, *(one.entry for one in kept)], today, len(lessons))
    notes = (
        *worded.notes,
        *_left_out(beyond, "Did not fit", f"the section may have {MOST_TOKENS} tokens"),
        *_gone(old, kept),
        *_uncovered(used, kept, len(lessons)),
    )
    covers = {one.entry.name: [_told(used[at]) for at in one.covers] for one in kept}
    draft = reviewed(section, [*notes, "", *coverage_notes(covers)])
    return Compressed(section, draft, worded.how, {name: len(all_) for name, all_ in covers.items()}, notes)


def _worded(texts: Sequence[str], likeness: Likeness, chat: Chat | None) -> _Worded:
    if chat is None:
        return _extracted(texts, likeness, "no model is configured (openclaw.wisdom_model)")
    try:
        answered = ask(chat, texts, likeness) if texts else Answered((), (), 0)
    except ChatError as error:
        return _extracted(texts, likeness, f"{chat.name} gave no answer: {error}")
    if not answered.patterns:
        return _extracted(texts, likeness, f"nothing that {chat.name} answered twice could be used")
    ranked = sorted(answered.patterns, key=lambda one: -len(one.covers))
    wrong = tuple(f"Left out of what the model said: {why}" for why in answered.wrong)
    unread = (f"There was no room to show the model {answered.unread} lessons.",) if answered.unread else ()
    return _Worded(ranked, chat.name, (f"Worded by {chat.name}.", *wrong, *unread))


def _extracted(texts: Sequence[str], likeness: Likeness, why: str) -> _Worded:
    found, silent = list[Pattern](), list[str]()
    for theme in themes(likeness):
        entry = pattern(texts, theme, likeness)
        if entry is None:
            lesson = texts[theme[0]][:_SHOWN]
            silent.append(f"No sentence of these is short and general enough; write one: {lesson} …")
        elif entry.name not in {one.entry.name for one in found}:
            found.append(Pattern(entry, tuple(theme)))
    how = f"Extractive: sentences of the lessons themselves, because {why}. Reword them as you like."
    return _Worded(found, "extractive", (how, *silent))


def _fitted(
    patterns: Sequence[Pattern], mandatory: Entry, today: date, count: int
) -> tuple[list[Pattern], list[Pattern]]:
    """Those that cover most come first; a shorter one may still fit where a longer one did not."""
    kept, beyond = list[Pattern](), list[Pattern]()
    for one in patterns:
        tried = render([mandatory, *(other.entry for other in (*kept, one))], today, count)
        fits = len(kept) + 2 <= MOST_ENTRIES and tokens.count(tried.strip()) <= MOST_TOKENS
        (kept if fits else beyond).append(one)
    return kept, beyond


def _left_out(patterns: Sequence[Pattern], what: str, why: str) -> Iterator[str]:
    for one in patterns:
        yield f"{what} ({why}), covers {len(one.covers)}: {one.entry.written}"


def _gone(old: Sequence[Entry], kept: Sequence[Pattern]) -> Iterator[str]:
    new = {one.entry.written for one in kept}
    for entry in old:
        if not is_mandatory(entry) and entry.written not in new:
            yield f"In SOUL.md now and not in this draft: {entry.written}"


def _uncovered(used: Sequence[Lesson], kept: Sequence[Pattern], count: int) -> Iterator[str]:
    covered = {at for one in kept for at in one.covers}
    yield (
        f"{len(covered)} of {count} lessons stand behind these entries. All of them stay where they are: "
        "wisdom is added to them and replaces none."
    )
    if count > len(used):
        yield f"Only the last {len(used)} were compared."


def _told(lesson: Lesson) -> str:
    text = lesson.text if len(lesson.text) <= _SHOWN else f"{lesson.text[: _SHOWN - 1]}…"
    return f"{lesson.where} {text}"

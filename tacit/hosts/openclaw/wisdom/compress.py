"""Compresses lessons into the draft of a section: the order of the steps, and what fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

from tacit.hosts.openclaw.wisdom.lessons import Lesson
from tacit.hosts.openclaw.wisdom.lint import MAX_ENTRIES, MAX_TOKENS
from tacit.hosts.openclaw.wisdom.model import ModelPatterns, Pattern, ask_patterns
from tacit.hosts.openclaw.wisdom.patterns import summarize_theme
from tacit.hosts.openclaw.wisdom.section import (
    MANDATORY,
    WisdomEntry,
    coverage_notes,
    is_mandatory,
    parse,
    render,
)
from tacit.hosts.openclaw.wisdom.similarity import Likeness, Vectors
from tacit.hosts.openclaw.wisdom.themes import find_themes
from tacit.llm.chat import Chat, ChatError
from tacit.review.reviewer_notes import add_reviewer_notes
from tacit.text import tokens

MAX_LESSONS = 1_000  # compared with each other
_MAX_NOTE_CHARS = 160  # characters of a lesson in the notes


class CompressedWisdom(NamedTuple):
    section: str
    draft: str  # the section, and the notes for the reviewer
    how: str  # extractive or the model's name
    covers: dict[str, int]  # number of lessons by entry name
    notes: tuple[str, ...]


class _PatternSet(NamedTuple):
    patterns: Sequence[Pattern]
    how: str
    notes: tuple[str, ...]


def compress(
    lessons: Sequence[Lesson], present: str, today: date, vectors: Vectors | None, chat: Chat | None
) -> CompressedWisdom:
    """`present` is the current section: its wording of the mandatory entry is kept."""
    used = lessons[-MAX_LESSONS:]
    texts = [lesson.text for lesson in used]
    likeness = Likeness(texts, vectors)
    pattern_set = _find_patterns(texts, likeness, chat)
    old_entries = parse(present).entries
    mandatory = next(filter(is_mandatory, old_entries), MANDATORY)
    selected, beyond = _select_fitting(pattern_set.patterns, mandatory, today, len(lessons))
    section = render([mandatory, *(pattern.entry for pattern in selected)], today, len(lessons))
    notes = (
        *pattern_set.notes,
        *_describe_left_out(beyond, "Did not fit", f"the section may have {MAX_TOKENS} tokens"),
        *_describe_removed(old_entries, selected),
        *_describe_coverage(used, selected, len(lessons)),
    )
    covers = {
        pattern.entry.name: [_describe_lesson(used[index]) for index in pattern.covers]
        for pattern in selected
    }
    draft = add_reviewer_notes(section, [*notes, "", *coverage_notes(covers)])
    return CompressedWisdom(
        section, draft, pattern_set.how, {name: len(places) for name, places in covers.items()}, notes
    )


def _find_patterns(texts: Sequence[str], likeness: Likeness, chat: Chat | None) -> _PatternSet:
    if chat is None:
        return _extract_patterns(texts, likeness, "no model is configured (openclaw.wisdom_model)")
    try:
        answer = ask_patterns(chat, texts, likeness) if texts else ModelPatterns((), (), 0)
    except ChatError as error:
        return _extract_patterns(texts, likeness, f"{chat.name} gave no answer: {error}")
    if not answer.patterns:
        return _extract_patterns(texts, likeness, f"nothing that {chat.name} answered twice could be used")
    ranked = sorted(answer.patterns, key=lambda pattern: -len(pattern.covers))
    faults = tuple(f"Left out of what the model said: {fault}" for fault in answer.wrong)
    unread = (f"There was no room to show the model {answer.unread} lessons.",) if answer.unread else ()
    return _PatternSet(ranked, chat.name, (f"Worded by {chat.name}.", *faults, *unread))


def _extract_patterns(texts: Sequence[str], likeness: Likeness, reason: str) -> _PatternSet:
    patterns, unmatched = list[Pattern](), list[str]()
    for theme in find_themes(likeness):
        entry = summarize_theme(texts, theme, likeness)
        if entry is None:
            lesson = texts[theme[0]][:_MAX_NOTE_CHARS]
            unmatched.append(f"No sentence of these is short and general enough; write one: {lesson} …")
        elif entry.name not in {pattern.entry.name for pattern in patterns}:
            patterns.append(Pattern(entry, tuple(theme)))
    method_note = (
        f"Extractive: sentences of the lessons themselves, because {reason}. Reword them as you like."
    )
    return _PatternSet(patterns, "extractive", (method_note, *unmatched))


def _select_fitting(
    patterns: Sequence[Pattern], mandatory: WisdomEntry, today: date, count: int
) -> tuple[list[Pattern], list[Pattern]]:
    """Patterns that cover most come first; a shorter one may still fit where a longer one did not."""
    selected, beyond = list[Pattern](), list[Pattern]()
    for candidate in patterns:
        section = render([mandatory, *(chosen.entry for chosen in (*selected, candidate))], today, count)
        fits = len(selected) + 2 <= MAX_ENTRIES and tokens.count(section.strip()) <= MAX_TOKENS
        (selected if fits else beyond).append(candidate)
    return selected, beyond


def _describe_left_out(patterns: Sequence[Pattern], label: str, reason: str) -> Iterator[str]:
    for dropped in patterns:
        yield f"{label} ({reason}), covers {len(dropped.covers)}: {dropped.entry.written}"


def _describe_removed(old_entries: Sequence[WisdomEntry], selected: Sequence[Pattern]) -> Iterator[str]:
    new_texts = {pattern.entry.written for pattern in selected}
    for entry in old_entries:
        if not is_mandatory(entry) and entry.written not in new_texts:
            yield f"In SOUL.md now and not in this draft: {entry.written}"


def _describe_coverage(used: Sequence[Lesson], selected: Sequence[Pattern], count: int) -> Iterator[str]:
    covered = {index for pattern in selected for index in pattern.covers}
    yield (
        f"{len(covered)} of {count} lessons stand behind these entries. All of them stay where they are: "
        "wisdom is added to them and replaces none."
    )
    if count > len(used):
        yield f"Only the last {len(used)} were compared."


def _describe_lesson(lesson: Lesson) -> str:
    text = lesson.text if len(lesson.text) <= _MAX_NOTE_CHARS else f"{lesson.text[: _MAX_NOTE_CHARS - 1]}…"
    return f"{lesson.where} {text}"

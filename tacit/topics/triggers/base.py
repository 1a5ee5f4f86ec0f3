"""What a type of trigger is: how a note writes it, what it matches, and how it is described to people.

A new type is a subclass of `TriggerType` and one line in `triggers/__init__.py`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

from tacit.diagnostics import Problem
from tacit.markdown.frontmatter import parse_names
from tacit.text.words import UNSPACED_CHARS, clean, space_marks
from tacit.topics.model import Event, ScopeName, Stimulus, Topic, Trigger

MAX_START_CHARS = 20_000  # characters of a long text that are checked, from its start and its end
MAX_END_CHARS = 4_000
MAX_WORDS = 1000
_MAX_WORD_CHARS = 200
MAX_PREVIEW_CHARS = 60

MATCH_KEYS = ("match", "pattern", "regex", "glob", "path", "url")
LIST_KEYS = ("words", "keywords", "names", "name", "languages", "language", "hosts", "host", "list")
KNOWN_KEYS = {
    "type", "scope", "source", "event", "schedule", "correction_hint", "hint", "description",
    *MATCH_KEYS, *LIST_KEYS,
}  # fmt: skip
_SCOPES: Mapping[str, ScopeName] = {
    "input": "input", "in": "input", "user": "input", "output": "output", "out": "output", "agent": "output",
    "both": "both", "all": "both", "any": "both",
}  # fmt: skip
_WORD = re.compile(r"\w+")
_SPACED_WORD = re.compile(rf"[^\W{UNSPACED_CHARS}]+")


class Report(Protocol):
    """Shows a problem of one field or trigger to the author of the note."""

    def __call__(self, message: str, advice: str = "", level: str = "error") -> None: ...


class Rule(NamedTuple):
    """A trigger with its place."""

    position: int  # among all rules that are matched together
    number: int  # among the triggers of its topic
    topic: Topic
    trigger: Trigger


class TriggerType:
    """One type of trigger. An instance matches all triggers of this type together."""

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()  # other values of `type` that mean this one
    advice: ClassVar[str] = ""  # how to write one that lacks something
    is_event: ClassVar[bool] = False  # starts a turn without a message that a gate could judge

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules

    @classmethod
    def read(cls, entry: TriggerEntry) -> Iterator[Trigger]:
        """The triggers that an entry of the note stands for. Mistakes are reported."""
        raise NotImplementedError

    @classmethod
    def describe(cls, trigger: Trigger) -> str:
        """What the trigger reacts to, in a few words for people."""
        more = f" and {len(trigger.words) - 3} more" if len(trigger.words) > 3 else ""
        return f"{cls.name} {trigger.match} {', '.join(trigger.words[:3])}{more}"

    @classmethod
    def words(cls, trigger: Trigger) -> Iterable[str]:  # noqa: ARG003
        """Words that say what the topic is about."""
        return ()

    def find(self, source: MatchInput) -> Iterable[tuple[int, str]]:  # noqa: ARG002
        """The positions of the rules that match, and what matched: `keyword "deploy"`."""
        return ()

    def problems(self) -> Iterable[Problem]:
        """Triggers that cannot be used, and why."""
        return ()


class MatchInput:
    """What triggers are matched against. Each form of the text is computed once, for all types."""

    def __init__(self, stimulus: Stimulus) -> None:
        self.text = text_to_match(stimulus.text)
        self.paths: tuple[str, ...] = stimulus.paths
        self.event: Event | None = stimulus.event

    @cached_property
    def folded(self) -> str:
        return normalize_text(self.text)

    @cached_property
    def words(self) -> list[tuple[str, int]]:
        """The words of `folded` with their positions; none of scripts without spaces."""
        pattern = _WORD if self.folded.isascii() else _SPACED_WORD
        return [(word[0], word.start()) for word in pattern.finditer(self.folded)]

    @cached_property
    def data(self) -> bytes:
        return compose(self.text).encode("utf-8", "replace")


def text_to_match(text: str) -> str:
    """The part of the text that is checked: the start and the end of a long one."""
    if len(text) <= MAX_START_CHARS + MAX_END_CHARS:
        return text
    return f"{text[:MAX_START_CHARS]}\n{text[-MAX_END_CHARS:]}"


def normalize_text(text: str) -> str:
    """Normalize case, spelling and spaces."""
    return " ".join(clean(text).casefold().split())


def compose(text: str) -> str:
    """Letters and their marks as one character, as expressions expect them."""
    return text if text.isascii() else unicodedata.normalize("NFC", space_marks(text))


def preview(text: str, max_chars: int = MAX_PREVIEW_CHARS) -> str:
    """One short line without control characters."""
    plain = text[: 4 * max_chars]
    if not plain.isprintable():
        plain = "".join(letter if letter.isprintable() else " " for letter in plain)
    plain = " ".join(plain.split())
    return plain if len(plain) <= max_chars else plain[: max_chars - 1] + "…"


# Reading


class TriggerEntry:
    """One entry below `triggers:`, with a way to report what is wrong with it."""

    def __init__(self, kind: str, values: Mapping[str, object], number: int, report: Report) -> None:
        self._kind, self._values, self._number, self.report = kind, values, number, report

    def trigger(self, **fields: Any) -> Trigger:
        hint = self._values.get("correction_hint", self._values.get("hint"))
        return Trigger(self._kind, scope=self._scope, correction_hint=to_text(hint).strip(), **fields)

    @cached_property
    def _scope(self) -> ScopeName:
        declared = self._values.get("scope")
        if declared is None:
            return "input"
        scopes = {_SCOPES.get(name.lower()) for name in parse_names(declared)}
        if not scopes or None in scopes:
            message = f"The scope of trigger {self._number} is {show(declared)}, so input is used."
            self.report(message, "Write input, output or both.")
            return "input"
        return "both" if len(scopes) > 1 else scopes.pop() or "input"

    def text(self, *keys: str) -> str:
        """The value of the first of the keys that the entry has."""
        return " ".join(
            to_text(next((self._values[key] for key in keys if key in self._values), None)).split()
        )

    def matches(self) -> list[str] | None:
        """The expressions to match; None if they cannot be used, which is reported."""
        declared = self._first_of(MATCH_KEYS)
        values = declared if isinstance(declared, list) else [declared]
        if any(isinstance(value, bool | dict | list) for value in values):
            self.skip(f"match is {show(declared)}", "Write it as text, in quotes.")
            return None
        return [text for value in values if (text := to_text(value).strip())]

    def words(
        self,
        keys: Sequence[str] = (*LIST_KEYS, MATCH_KEYS[0]),
        prepare: Callable[[object], object] = lambda value: value,
    ) -> tuple[str, ...]:
        return read_words(prepare(self._first_of(keys)), self.report)

    def has_words(self) -> bool:
        return any(self._values.get(key) for key in LIST_KEYS)

    def skip(self, reason: str, advice: str) -> None:
        self.report(f"Trigger {self._number} is left out: {reason}.", advice)

    def reject_word(self, reason: str, advice: str) -> None:
        self.report(f"Trigger {self._number}: {reason}.", advice)

    def _first_of(self, keys: Sequence[str]) -> object:
        return next((self._values[key] for key in keys if self._values.get(key) is not None), None)


def read_words(value: object, report: Report) -> tuple[str, ...]:
    """Words from a list or from a text with commas."""
    values = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
    words: dict[str, None] = {}
    for item in values if value is not None else ():
        word = " ".join(to_text(item).split())
        if isinstance(item, bool):
            message = f"{show(item)} among the words is true or false to YAML, not a word."
            report(message, 'Put it in quotes: "no", "yes".', "warning")
        elif len(word) > _MAX_WORD_CHARS:
            advice = f"Words have at most {_MAX_WORD_CHARS} characters."
            report(f"{show(word)} is too long for a word.", advice, "warning")
        elif word:
            words[word] = None
    if len(words) > MAX_WORDS:
        report(f"Of {len(words)} words the first {MAX_WORDS} count.", "Split the topic.", "warning")
    return tuple(words)[:MAX_WORDS]


def to_text(value: object) -> str:
    return "" if value is None else str(value)


def show(value: object) -> str:
    """A value as its author would recognize it."""
    text = repr(value)
    return text if len(text) <= MAX_PREVIEW_CHARS else text[: MAX_PREVIEW_CHARS - 1] + "…"

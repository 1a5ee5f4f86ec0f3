"""A note as a topic. What is wrong in it is a problem to show; the rest of it still counts.

Where a value cannot be used, the safe one stands for it: a topic whose `activation` has a typing mistake
wakes by hand only, one whose `priority` has is the last in line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from math import isfinite
from typing import TypeVar

from tacit.model.notes import Note
from tacit.model.problems import Problem
from tacit.model.topics import (
    PRIORITIES,
    TRIGGER_TYPES,
    WAKE_MODES,
    ScopeName,
    Topic,
    Trigger,
    TriggerType,
)
from tacit.text import notes
from tacit.text.chunk import unnamed
from tacit.text.frontmatter import names_in
from tacit.text.language import LANGUAGES, code_of
from tacit.text.lines import scan
from tacit.text.passages import LIMIT, audience_of, day_of, title_of
from tacit.text.restrictions import said_agents

_Choice = TypeVar("_Choice", bound=str)

MOST_TRIGGERS = 200
MOST_WORDS = 1000
_LONGEST_WORD = 200
_MOST_KB = 1024.0
_LONGEST_DESCRIPTION = 500

_TYPES: Mapping[str, TriggerType] = {
    **{name: name for name in TRIGGER_TYPES},
    "regex": "pattern", "regexp": "pattern", "keyword": "keywords", "words": "keywords", "path": "glob",
    "paths": "glob", "file": "glob", "files": "glob", "lang": "language", "languages": "language",
    "mentions": "mention", "name": "mention", "names": "mention", "person": "mention", "link": "url",
    "urls": "url", "host": "url", "hosts": "url", "urgent": "urgency", "schedule": "cron",
    "mood": "sentiment",
}  # fmt: skip
_MATCHING = ("match", "pattern", "regex", "glob", "path", "url")
_LISTING = ("words", "keywords", "names", "name", "languages", "language", "hosts", "host", "list")
_KNOWN = {
    "type", "scope", "source", "event", "schedule", "correction_hint", "hint", "description",
    *_MATCHING, *_LISTING,
}  # fmt: skip
_SCOPES: Mapping[str, ScopeName] = {
    "input": "input", "in": "input", "user": "input", "output": "output", "out": "output", "agent": "output",
    "both": "both", "all": "both", "any": "both",
}  # fmt: skip
_SCHEDULES = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip


def read(path: str, text: str) -> tuple[Topic | None, tuple[Problem, ...]]:
    """The topic in a note, None if there is nothing in it that could be used, and what is wrong with it."""
    note, problems = _mended(notes.parse(text, path), path)
    reader = _Reader(path, note, problems)
    if not note.fields and any(problem.level == "error" for problem in problems):
        return None, tuple(problems)  # who may see it, and when, stands where we cannot read it
    return reader.topic(), tuple(reader.problems)


# A mistake that is easily made: fields of the topic, indented as if they were triggers.

_STRAY = re.compile(r"[ \t]+(similarity_threshold|similarity|activation|priority|max_context_kb|keywords|"
                    r"description|steering|steering_pause|audience|agent)[ \t]*:[ \t]+\S")  # fmt: skip
_ITEM = re.compile(r"([ \t]*)-(?:[ \t]|$)")


def _mended(note: Note, path: str) -> tuple[Note, list[Problem]]:
    """The note with such fields where they belong, if that makes it readable."""
    if note.fields or not note.problems:
        return note, list(note.problems)
    lines = note.head.split("\n")
    stray = list(_stray(lines))
    if not stray:
        return note, list(note.problems)
    moved = [lines[at].lstrip() for at in stray]
    kept = [line for at, line in enumerate(lines) if at not in stray]
    end = next((at for at in range(1, len(kept)) if kept[at].rstrip() == "---"), len(kept))
    fixed = notes.parse("\n".join((*kept[:end], *moved, *kept[end:])) + note.body, path)
    names = ", ".join(f"`{line.partition(':')[0].strip()}`" for line in moved)
    belongs = "They belong" if len(moved) > 1 else "It belongs"
    problem = Problem(
        path,
        f"{names} among the triggers: YAML does not allow a list and fields in one place.",
        f"{belongs} at the left edge, beside `triggers:`, not below it.",
        stray[0] + 1,
    )
    if not fixed.fields:
        return note, [problem, *note.problems]
    return fixed, [problem, *fixed.problems]


def _stray(lines: Sequence[str]) -> Iterator[int]:
    """Lines below `triggers:` that are fields as deep as its items, or less."""
    inside, depth = False, 0
    for at, line in enumerate(lines):
        if line[:1] not in (" ", "\t", "-", "\r", ""):
            inside = line.startswith("triggers:")
        elif inside and (item := _ITEM.match(line)):
            depth = len(item[1])
        elif inside and _STRAY.match(line) and len(line) - len(line.lstrip()) <= depth:
            yield at


@dataclass
class _Reader:
    """Reads the fields of one note and gathers what is wrong with them."""

    path: str
    note: Note
    problems: list[Problem] = field(default_factory=list)

    def topic(self) -> Topic | None:
        fields = self.note.fields
        kind = fields.get("type")
        if isinstance(kind, str) and kind.strip().lower() != "topic":
            self._say(
                "type", f"type is {_shown(kind)}, so it is no topic.", "Write `type: topic`.", "warning"
            )
            return None
        body = self.note.body.lstrip("\ufeff")
        triggers = tuple(self._triggers())
        if not body.strip() and not triggers:
            self._say("", "There is nothing in it: no instructions and no triggers.", "Write what to do.")
            return None
        audience, found = audience_of(self.note, self.path)
        self.problems += found
        title = title_of(fields, unnamed(self.note.text, LIMIT), self.path)
        topic = Topic(
            name=self.path.rpartition("/")[2].removesuffix(".md"),
            path=self.path,
            title=title,
            description=self._text("description") or _description(title, body),
            body=body,
            triggers=triggers,
            subscriptions=tuple(self._subscriptions()),
            activation=self._choice("activation", WAKE_MODES, "gated", "manual"),
            priority=self._choice("priority", PRIORITIES, "medium", "low"),
            max_context_kb=self._kilobytes(),
            similarity_threshold=self._threshold(),
            by_similarity=self._truth("similarity") or self._truth("by_similarity"),
            keywords=self._words(fields.get("keywords"), "keywords", None),
            steering=self._truth("steering") or any(map(_corrects, triggers)),
            steering_pause=self._pause(),
            audience=audience,
            agents=said_agents(self.note),
            day=day_of(fields, self.path),
        )
        self._warn_if_it_never_wakes(topic)
        return topic

    def _warn_if_it_never_wakes(self, topic: Topic) -> None:
        if not topic.triggers and not topic.by_similarity and topic.activation != "manual":
            todo = "Add triggers, or `similarity: true`, or `activation: manual`."
            self._say("triggers", "Nothing wakes it: it has no usable trigger.", todo, "warning")

    def _say(
        self, key: str, what: str, todo: str = "", level: str = "error", item: int | None = None
    ) -> None:
        self.problems.append(Problem(self.path, what, todo, _line(self.note.head, key, item), level))

    # Fields

    def _text(self, key: str) -> str:
        value = self.note.fields.get(key)
        if value is None or isinstance(value, str):
            return (value or "").strip()
        self._say(key, f"{key} is {_shown(value)}.", "Write it as text.", "warning")
        return ""

    def _choice(self, key: str, allowed: Sequence[_Choice], default: _Choice, safe: _Choice) -> _Choice:
        value = self.note.fields.get(key)
        if value is None:
            return default
        for one in allowed:
            if isinstance(value, str) and value.strip().lower() == one:
                return one
        self._say(
            key, f"{key} is {_shown(value)}, so {safe} is used.", f"Write one of: {', '.join(allowed)}."
        )
        return safe

    def _truth(self, key: str) -> bool:
        value = self.note.fields.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        self._say(key, f"{key} is {_shown(value)}, so it counts as no.", "Write true or false.")
        return False

    def _kilobytes(self) -> float:
        value = self.note.fields.get("max_context_kb")
        default = 4.0
        if value is None:
            return default
        number = _number(re.sub(r"(?i)\s*kb?$", "", value.strip()) if isinstance(value, str) else value)
        if number is not None and 0 < number <= _MOST_KB:
            return number
        what = f"max_context_kb is {_shown(value)}, so {default:g} is used."
        self._say("max_context_kb", what, f"Write a number above 0, at most {_MOST_KB:g}.")
        return default

    def _threshold(self) -> float | None:
        value = self.note.fields.get("similarity_threshold")
        number = _number(value)
        if value is None or (number is not None and 0 <= number <= 1):
            return number
        what = f"similarity_threshold is {_shown(value)}, so the one of the home is used."
        self._say("similarity_threshold", what, "Write a number from 0 to 1.")
        return None

    def _pause(self) -> int:
        value = self.note.fields.get("steering_pause")
        default = 10
        if value is None or (type(value) is int and 0 <= value <= 1_000_000):
            return default if value is None else int(str(value))
        what = f"steering_pause is {_shown(value)}, so {default} is used."
        self._say("steering_pause", what, "Write a number of turns.")
        return default

    def _subscriptions(self) -> Iterator[str]:
        given = self.note.fields.get("subscriptions", self.note.fields.get("subscription"))
        for item, path in enumerate(names_in(given)):
            reason = _no_home_path(path)
            if reason:
                what = f"The subscription {_shown(path)} {reason} and is left out."
                todo = "Write a path inside the home, such as knowledge/people/ana.md."
                self._say("subscriptions", what, todo, item=item)
            else:
                yield path

    def _words(self, value: object, key: str, item: int | None) -> tuple[str, ...]:
        """A list, or a text with commas."""
        values = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
        words: dict[str, None] = {}
        for one in values if value is not None else ():
            word = " ".join(_plain(one).split())
            if isinstance(one, bool):
                todo = 'Put it in quotes: "no", "yes".'
                self._say(
                    key, f"{_shown(one)} among the words is a yes or no, no word.", todo, "warning", item
                )
            elif len(word) > _LONGEST_WORD:
                todo = f"Words have at most {_LONGEST_WORD} characters."
                self._say(key, f"{_shown(word)} is too long for a word.", todo, "warning", item)
            elif word:
                words[word] = None
        if len(words) > MOST_WORDS:
            what = f"Of {len(words)} words the first {MOST_WORDS} count."
            self._say(key, what, "Split the topic.", "warning", item)
        return tuple(words)[:MOST_WORDS]

    # Triggers

    def _triggers(self) -> Iterator[Trigger]:
        given = self.note.fields.get("triggers", self.note.fields.get("trigger"))
        items = _items(given)
        for item, value in enumerate(items[:MOST_TRIGGERS]):
            yield from self._trigger(value, item)
        if len(items) > MOST_TRIGGERS:
            what = f"Of {len(items)} triggers the first {MOST_TRIGGERS} count."
            self._say("triggers", what, "Gather words in one trigger.")

    def _trigger(self, value: object, item: int) -> Iterator[Trigger]:
        if isinstance(value, str) and value.strip():
            yield Trigger("pattern", value.strip())
        elif isinstance(value, dict):
            kind = self._type(value, item)
            if kind:
                yield from self._of_type(kind, value, item)
        else:
            self._left_out(item, f"{_shown(value)} is no trigger", "Write `- type: keywords` and so on.")

    def _left_out(self, item: int, what: str, todo: str) -> None:
        self._say("triggers", f"Trigger {item + 1} is left out: {what}.", todo, item=item)

    def _type(self, value: Mapping[str, object], item: int) -> TriggerType | None:
        given = value.get("type")
        if given is None:
            kind = next((_TYPES[key] for key in value if key in _TYPES), None)
            kind = kind or ("pattern" if "match" in value else None)
            kind = kind or ("webhook" if "source" in value or "event" in value else None)
        else:
            kind = _TYPES.get(str(given).strip().lower())
        if kind is None:
            what = "it has no type" if given is None else f"there is no type {_shown(given)}"
            self._left_out(item, what, f"Types are: {', '.join(TRIGGER_TYPES)}.")
        return kind

    def _of_type(self, kind: TriggerType, value: Mapping[str, object], item: int) -> Iterator[Trigger]:
        self._warn_of_unknown(value, item)
        hint = value.get("correction_hint", value.get("hint"))
        base = Trigger(
            kind,
            scope=self._scope(value, item),
            source=_plain(value.get("source")).strip(),
            event=_plain(value.get("event")).strip(),
            schedule=self._schedule(kind, value),
            correction_hint=_plain(hint).strip(),
        )
        if kind in ("pattern", "glob", "url"):
            yield from self._matching(base, value, item)
        elif kind in ("webhook", "cron"):
            yield from self._event(base, item)
        else:
            yield from self._listing(base, value, item)

    def _warn_of_unknown(self, value: Mapping[str, object], item: int) -> None:
        unknown = [key for key in value if key not in _KNOWN and key not in _TYPES]
        if unknown:
            what = f"Trigger {item + 1} has {', '.join(map(_shown, unknown))}, which is not read."
            todo = "Read are: type, match, words, scope, source, event, schedule, correction_hint."
            self._say("triggers", what, todo, "warning", item)

    def _scope(self, value: Mapping[str, object], item: int) -> ScopeName:
        given = value.get("scope")
        named = {_SCOPES.get(name.lower()) for name in names_in(given)}
        if given is None:
            return "input"
        if not named or None in named:
            what = f"The scope of trigger {item + 1} is {_shown(given)}, so input is used."
            self._say("triggers", what, "Write input, output or both.", item=item)
            return "input"
        return "both" if len(named) > 1 else named.pop() or "input"

    def _matching(self, base: Trigger, value: Mapping[str, object], item: int) -> Iterator[Trigger]:
        given = next((value[key] for key in _MATCHING if value.get(key) is not None), None)
        listed = given if isinstance(given, list) else [given] if given is not None else []
        words = self._listed(value, item) if not listed else self._hosts(base, value, item)
        if any(isinstance(one, bool | dict | list) for one in listed):
            self._left_out(item, f"match is {_shown(given)}", "Write it as text, in quotes.")
            return
        texts = [text for one in listed if (text := _plain(one).strip())]
        if base.type == "url":
            yield from (_with(base, text, words) for text in texts or [""])
        elif texts or words:
            yield from (_with(base, text) for text in texts or words)
        else:
            self._left_out(item, f"a {base.type} needs `match`", _EXAMPLES[base.type])

    def _hosts(self, base: Trigger, value: Mapping[str, object], item: int) -> tuple[str, ...]:
        hosts = {key: value.get(key) for key in _LISTING}
        return self._listed(hosts, item) if base.type == "url" else ()

    def _listed(self, value: Mapping[str, object], item: int) -> tuple[str, ...]:
        given = next((value[key] for key in (*_LISTING, *_MATCHING[:1]) if value.get(key) is not None), None)
        return self._words(given, "triggers", item)

    def _listing(self, base: Trigger, value: Mapping[str, object], item: int) -> Iterator[Trigger]:
        is_language = base.type == "language"
        words = tuple(self._languages(value, item)) if is_language else self._listed(value, item)
        if words or base.type in ("code", "urgency", "sentiment"):
            yield _with(base, "", words)
        elif not is_language or not any(value.get(key) for key in _LISTING):
            self._left_out(item, f"a {base.type} trigger needs `words`", _EXAMPLES[base.type])

    def _languages(self, value: Mapping[str, object], item: int) -> Iterator[str]:
        # `no` is Norwegian here, and what YAML makes of it is False.
        plain = {key: _unbool(one) for key, one in value.items()}
        for word in self._listed(plain, item):
            code = code_of(word)
            if code:
                yield code
            else:
                todo = f"Known are: {', '.join(LANGUAGES)}."
                what = f"Trigger {item + 1}: the language {_shown(word)} is not known."
                self._say("triggers", what, todo, item=item)

    def _event(self, base: Trigger, item: int) -> Iterator[Trigger]:
        if base.type == "webhook":
            if base.source:
                yield base
            else:
                self._left_out(item, "a webhook needs `source`", _EXAMPLES["webhook"])
            return
        reason = _no_schedule(base.schedule)
        if reason:
            self._left_out(item, reason, _EXAMPLES["cron"])
        else:
            yield base

    def _schedule(self, kind: TriggerType, value: Mapping[str, object]) -> str:
        given = value.get("schedule", value.get("cron", value.get("match")) if kind == "cron" else None)
        plain = " ".join(_plain(given).split())
        return _SCHEDULES.get(plain.lower(), plain)


_EXAMPLES: Mapping[TriggerType, str] = {
    "pattern": "Write for instance match: 'deploy|rollback'.",
    "glob": "Write for instance match: '*.py'.",
    "url": "Write for instance match: 'github.com/*/pull/*'.",
    "keywords": "Write for instance words: [deploy, rollback].",
    "mention": "Write for instance words: [David, Silas].",
    "language": "Write for instance words: [de].",
    "webhook": "Write for instance source: shop and event: order_created, or '*' for any.",
    "cron": "Write five fields: minute, hour, day, month, weekday, such as '0 8 * * 1-5'.",
}


def _items(given: object) -> list[object]:
    """The triggers, however they were listed."""
    if isinstance(given, list):
        return given
    if isinstance(given, dict) and "type" not in given and "match" not in given:
        return [{key: value} for key, value in given.items()]
    return [] if given is None else [given]


def _with(base: Trigger, match: str, words: tuple[str, ...] = ()) -> Trigger:
    return Trigger(
        base.type, match, base.scope, words, base.source, base.event, base.schedule, base.correction_hint
    )


def _corrects(trigger: Trigger) -> bool:
    return trigger.scope != "input" and bool(trigger.correction_hint)


def _unbool(value: object) -> object:
    if isinstance(value, list):
        return [_unbool(one) for one in value]
    return "no" if value is False else value


def _plain(value: object) -> str:
    if isinstance(value, date | datetime):
        return value.isoformat()
    return "" if value is None else str(value)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _no_home_path(path: str) -> str:
    """Why it names nothing in the home; empty if it does."""
    checks: tuple[tuple[str, Callable[[], bool]], ...] = (
        (
            "is no path inside the home",
            lambda: path.startswith(("/", "~")) or re.match(r"\w:", path) is not None,
        ),
        ("leads out of the home", lambda: ".." in path.split("/")),
        ("has a backslash", lambda: "\\" in path),
        ("has a character that no path has", lambda: not path.isprintable()),
        ("is too long", lambda: len(path) > 1000),
    )
    return next((reason for reason, is_so in checks if is_so()), "")


def _no_schedule(schedule: str) -> str:
    """Why it is no schedule; empty if it is one."""
    from cronsim import CronSim, CronSimError

    if not schedule:
        return "a cron trigger needs `schedule`"
    if len(schedule) > 200 or len(schedule.split()) != 5:
        return f"the schedule {_shown(schedule)} has not five fields"
    try:
        CronSim(schedule.upper(), datetime(2026, 1, 1))  # noqa: DTZ001 - any moment would do
    except CronSimError as error:
        return f"the schedule {_shown(schedule)} cannot be: {str(error).lower()}"
    return ""


def _description(title: str, body: str) -> str:
    """What it is about, if it does not say so: its title and the first thing to do."""
    line = _first_line(body)
    return (f"{title}: {line}" if line else title)[:_LONGEST_DESCRIPTION]


def _first_line(body: str) -> str:
    """Of the section Instructions, or of the text at all."""
    lines = list(scan(body))
    start = next((at for at, one in enumerate(lines) if one.title.strip().lower() == "instructions"), -1)
    for one in lines[start + 1 :]:
        if one.kind == "text":
            return _MARK.sub("", one.text).strip()
    return ""


_MARK = re.compile(r"\s*(?:[-*+>]|\d+[.)])\s+")


def _line(head: str, key: str, item: int | None) -> int | None:
    """Where a field stands, or one item of its list; as near as can be seen without parsing."""
    lines = head.split("\n")
    names = {key, key.removesuffix("s")}
    start = next((at for at, one in enumerate(lines) if key and one.partition(":")[0].strip() in names), None)
    if start is None:
        return None
    seen, depth = -1, None
    for at in range(start + 1, len(lines)) if item is not None else ():
        found = _ITEM.match(lines[at])
        if found and (depth is None or len(found[1]) == depth):
            depth = len(found[1])
            seen += 1
        elif lines[at][:1] not in (" ", "\t", "", "#", "\r"):
            break
        if seen == item:
            return at + 1
    return start + 1

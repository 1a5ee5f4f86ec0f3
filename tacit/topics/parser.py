"""Parses a note as a topic. Mistakes become problems to show; the rest of the note still counts.

A value that cannot be used is replaced by the safe one: a topic with a typo in `activation` activates only
manually, one with a typo in `priority` gets the lowest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from math import isfinite
from typing import TypeVar

from tacit.diagnostics import Problem
from tacit.markdown import notes
from tacit.markdown.chunker import iterate_chunks
from tacit.markdown.frontmatter import parse_names
from tacit.markdown.model import Note
from tacit.privacy.audience import read_agents
from tacit.search.documents import audience_of, day_of, title_of
from tacit.text.language import LANGUAGES, parse_language_code
from tacit.text.lines import scan
from tacit.topics.model import PRIORITIES, TRIGGER_TYPES, WAKE_MODES, ScopeName, Topic, Trigger, TriggerType

_Choice = TypeVar("_Choice", bound=str)

MAX_TRIGGERS = 200
MAX_WORDS = 1000
_MAX_WORD_CHARS = 200
_MAX_KB = 1024.0
_MAX_DESCRIPTION_CHARS = 500

_TRIGGER_TYPES: Mapping[str, TriggerType] = {
    **{name: name for name in TRIGGER_TYPES},
    "regex": "pattern", "regexp": "pattern", "keyword": "keywords", "words": "keywords", "path": "glob",
    "paths": "glob", "file": "glob", "files": "glob", "lang": "language", "languages": "language",
    "mentions": "mention", "name": "mention", "names": "mention", "person": "mention", "link": "url",
    "urls": "url", "host": "url", "hosts": "url", "urgent": "urgency", "schedule": "cron",
    "mood": "sentiment",
}  # fmt: skip
_MATCH_KEYS = ("match", "pattern", "regex", "glob", "path", "url")
_LIST_KEYS = ("words", "keywords", "names", "name", "languages", "language", "hosts", "host", "list")
_KNOWN_KEYS = {
    "type", "scope", "source", "event", "schedule", "correction_hint", "hint", "description",
    *_MATCH_KEYS, *_LIST_KEYS,
}  # fmt: skip
_SCOPES: Mapping[str, ScopeName] = {
    "input": "input", "in": "input", "user": "input", "output": "output", "out": "output", "agent": "output",
    "both": "both", "all": "both", "any": "both",
}  # fmt: skip
_SCHEDULES = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip


def parse_topic(path: str, text: str) -> tuple[Topic | None, tuple[Problem, ...]]:
    """The topic in a note, or None if it has nothing usable, and the problems found."""
    note, problems = _move_stray_fields(notes.parse(text, path), path)
    reader = _TopicReader(path, note, problems)
    if not note.fields and any(problem.level == "error" for problem in problems):
        return None, tuple(problems)  # its audience and activation are unreadable
    return reader.topic(), tuple(reader.problems)


# A common mistake: fields of the topic, indented as if they were triggers.

_STRAY_KEY = re.compile(r"[ \t]+(similarity_threshold|similarity|activation|priority|max_context_kb|keywords|"
                        r"description|steering|steering_pause|audience|agent)[ \t]*:[ \t]+\S")  # fmt: skip
_LIST_ITEM = re.compile(r"([ \t]*)-(?:[ \t]|$)")


def _move_stray_fields(note: Note, path: str) -> tuple[Note, list[Problem]]:
    """Move such fields to where they belong, if that makes the note readable."""
    if note.fields or not note.problems:
        return note, list(note.problems)
    lines = note.head.split("\n")
    stray = list(_find_stray_fields(lines))
    if not stray:
        return note, list(note.problems)
    moved = [lines[number].lstrip() for number in stray]
    remaining = [line for number, line in enumerate(lines) if number not in stray]
    end = next(
        (number for number in range(1, len(remaining)) if remaining[number].rstrip() == "---"), len(remaining)
    )
    fixed = notes.parse("\n".join((*remaining[:end], *moved, *remaining[end:])) + note.body, path)
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


def _find_stray_fields(lines: Sequence[str]) -> Iterator[int]:
    """Lines below `triggers:` that are topic fields, indented no deeper than its items."""
    inside, depth = False, 0
    for number, line in enumerate(lines):
        if line[:1] not in (" ", "\t", "-", "\r", ""):
            inside = line.startswith("triggers:")
        elif inside and (item := _LIST_ITEM.match(line)):
            depth = len(item[1])
        elif inside and _STRAY_KEY.match(line) and len(line) - len(line.lstrip()) <= depth:
            yield number


@dataclass
class _TopicReader:
    """Reads the fields of one note and collects problems."""

    path: str
    note: Note
    problems: list[Problem] = field(default_factory=list)

    def topic(self) -> Topic | None:
        fields = self.note.fields
        kind = fields.get("type")
        if isinstance(kind, str) and kind.strip().lower() != "topic":
            self._add_problem(
                "type", f"type is {_preview(kind)}, so it is no topic.", "Write `type: topic`.", "warning"
            )
            return None
        body = self.note.body.lstrip("\ufeff")
        triggers = tuple(self._read_triggers())
        if not body.strip() and not triggers:
            self._add_problem(
                "", "There is nothing in it: no instructions and no triggers.", "Write what to do."
            )
            return None
        audience, audience_problems = audience_of(self.note, self.path)
        self.problems += audience_problems
        title = title_of(fields, iterate_chunks(self.note.text), self.path)
        topic = Topic(
            name=self.path.rpartition("/")[2].removesuffix(".md"),
            path=self.path,
            title=title,
            description=self._read_text("description") or _default_description(title, body),
            body=body,
            triggers=triggers,
            subscriptions=tuple(self._read_subscriptions()),
            activation=self._read_choice("activation", WAKE_MODES, "gated", "manual"),
            priority=self._read_choice("priority", PRIORITIES, "medium", "low"),
            max_context_kb=self._read_max_context_kb(),
            similarity_threshold=self._read_threshold(),
            by_similarity=self._read_bool("similarity") or self._read_bool("by_similarity"),
            keywords=self._read_words(fields.get("keywords"), "keywords", None),
            steering=self._read_bool("steering") or any(map(_is_correcting, triggers)),
            steering_pause=self._read_pause(),
            audience=audience,
            agents=read_agents(self.note),
            day=day_of(fields, self.path),
        )
        self._warn_if_never_active(topic)
        return topic

    def _warn_if_never_active(self, topic: Topic) -> None:
        if not topic.triggers and not topic.by_similarity and topic.activation != "manual":
            advice = "Add triggers, or `similarity: true`, or `activation: manual`."
            self._add_problem("triggers", "Nothing wakes it: it has no usable trigger.", advice, "warning")

    def _add_problem(
        self, key: str, message: str, advice: str = "", level: str = "error", item: int | None = None
    ) -> None:
        self.problems.append(
            Problem(self.path, message, advice, _find_line(self.note.head, key, item), level)
        )

    # Fields

    def _read_text(self, key: str) -> str:
        value = self.note.fields.get(key)
        if value is None or isinstance(value, str):
            return (value or "").strip()
        self._add_problem(key, f"{key} is {_preview(value)}.", "Write it as text.", "warning")
        return ""

    def _read_choice(self, key: str, allowed: Sequence[_Choice], default: _Choice, safe: _Choice) -> _Choice:
        value = self.note.fields.get(key)
        if value is None:
            return default
        for choice in allowed:
            if isinstance(value, str) and value.strip().lower() == choice:
                return choice
        self._add_problem(
            key, f"{key} is {_preview(value)}, so {safe} is used.", f"Write one of: {', '.join(allowed)}."
        )
        return safe

    def _read_bool(self, key: str) -> bool:
        value = self.note.fields.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        self._add_problem(key, f"{key} is {_preview(value)}, so it counts as no.", "Write true or false.")
        return False

    def _read_max_context_kb(self) -> float:
        value = self.note.fields.get("max_context_kb")
        default = 4.0
        if value is None:
            return default
        number = _to_number(re.sub(r"(?i)\s*kb?$", "", value.strip()) if isinstance(value, str) else value)
        if number is not None and 0 < number <= _MAX_KB:
            return number
        message = f"max_context_kb is {_preview(value)}, so {default:g} is used."
        self._add_problem("max_context_kb", message, f"Write a number above 0, at most {_MAX_KB:g}.")
        return default

    def _read_threshold(self) -> float | None:
        value = self.note.fields.get("similarity_threshold")
        number = _to_number(value)
        if value is None or (number is not None and 0 <= number <= 1):
            return number
        message = f"similarity_threshold is {_preview(value)}, so the one of the home is used."
        self._add_problem("similarity_threshold", message, "Write a number from 0 to 1.")
        return None

    def _read_pause(self) -> int:
        value = self.note.fields.get("steering_pause")
        default = 10
        if value is None or (type(value) is int and 0 <= value <= 1_000_000):
            return default if value is None else int(str(value))
        message = f"steering_pause is {_preview(value)}, so {default} is used."
        self._add_problem("steering_pause", message, "Write a number of turns.")
        return default

    def _read_subscriptions(self) -> Iterator[str]:
        paths = self.note.fields.get("subscriptions", self.note.fields.get("subscription"))
        for item, path in enumerate(parse_names(paths)):
            reason = _path_fault(path)
            if reason:
                message = f"The subscription {_preview(path)} {reason} and is left out."
                advice = "Write a path inside the home, such as knowledge/people/ana.md."
                self._add_problem("subscriptions", message, advice, item=item)
            else:
                yield path

    def _read_words(self, value: object, key: str, item: int | None) -> tuple[str, ...]:
        """Words from a list or from a text with commas."""
        values = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else [value]
        words: dict[str, None] = {}
        for item_value in values if value is not None else ():
            word = " ".join(_to_text(item_value).split())
            if isinstance(item_value, bool):
                advice = 'Put it in quotes: "no", "yes".'
                self._add_problem(
                    key,
                    f"{_preview(item_value)} among the words is a yes or no, no word.",
                    advice,
                    "warning",
                    item,
                )
            elif len(word) > _MAX_WORD_CHARS:
                advice = f"Words have at most {_MAX_WORD_CHARS} characters."
                self._add_problem(key, f"{_preview(word)} is too long for a word.", advice, "warning", item)
            elif word:
                words[word] = None
        if len(words) > MAX_WORDS:
            message = f"Of {len(words)} words the first {MAX_WORDS} count."
            self._add_problem(key, message, "Split the topic.", "warning", item)
        return tuple(words)[:MAX_WORDS]

    # Triggers

    def _read_triggers(self) -> Iterator[Trigger]:
        triggers = self.note.fields.get("triggers", self.note.fields.get("trigger"))
        items = _trigger_items(triggers)
        for item, value in enumerate(items[:MAX_TRIGGERS]):
            yield from self._read_trigger(value, item)
        if len(items) > MAX_TRIGGERS:
            message = f"Of {len(items)} triggers the first {MAX_TRIGGERS} count."
            self._add_problem("triggers", message, "Gather words in one trigger.")

    def _read_trigger(self, value: object, item: int) -> Iterator[Trigger]:
        if isinstance(value, str) and value.strip():
            yield Trigger("pattern", value.strip())
        elif isinstance(value, dict):
            kind = self._read_type(value, item)
            if kind:
                yield from self._make_triggers(kind, value, item)
        else:
            self._skip_trigger(
                item, f"{_preview(value)} is no trigger", "Write `- type: keywords` and so on."
            )

    def _skip_trigger(self, item: int, reason: str, advice: str) -> None:
        self._add_problem("triggers", f"Trigger {item + 1} is left out: {reason}.", advice, item=item)

    def _read_type(self, value: Mapping[str, object], item: int) -> TriggerType | None:
        declared = value.get("type")
        if declared is None:
            kind = next((_TRIGGER_TYPES[key] for key in value if key in _TRIGGER_TYPES), None)
            kind = kind or ("pattern" if "match" in value else None)
            kind = kind or ("webhook" if "source" in value or "event" in value else None)
        else:
            kind = _TRIGGER_TYPES.get(str(declared).strip().lower())
        if kind is None:
            reason = "it has no type" if declared is None else f"there is no type {_preview(declared)}"
            self._skip_trigger(item, reason, f"Types are: {', '.join(TRIGGER_TYPES)}.")
        return kind

    def _make_triggers(self, kind: TriggerType, value: Mapping[str, object], item: int) -> Iterator[Trigger]:
        self._warn_of_unknown_keys(value, item)
        hint = value.get("correction_hint", value.get("hint"))
        base = Trigger(
            kind,
            scope=self._read_scope(value, item),
            source=_to_text(value.get("source")).strip(),
            event=_to_text(value.get("event")).strip(),
            schedule=self._read_schedule(kind, value),
            correction_hint=_to_text(hint).strip(),
        )
        if kind in ("pattern", "glob", "url"):
            yield from self._make_match_triggers(base, value, item)
        elif kind in ("webhook", "cron"):
            yield from self._make_event_trigger(base, item)
        else:
            yield from self._make_list_trigger(base, value, item)

    def _warn_of_unknown_keys(self, value: Mapping[str, object], item: int) -> None:
        unknown = [key for key in value if key not in _KNOWN_KEYS and key not in _TRIGGER_TYPES]
        if unknown:
            message = f"Trigger {item + 1} has {', '.join(map(_preview, unknown))}, which is not read."
            advice = "Read are: type, match, words, scope, source, event, schedule, correction_hint."
            self._add_problem("triggers", message, advice, "warning", item)

    def _read_scope(self, value: Mapping[str, object], item: int) -> ScopeName:
        declared = value.get("scope")
        scopes = {_SCOPES.get(name.lower()) for name in parse_names(declared)}
        if declared is None:
            return "input"
        if not scopes or None in scopes:
            message = f"The scope of trigger {item + 1} is {_preview(declared)}, so input is used."
            self._add_problem("triggers", message, "Write input, output or both.", item=item)
            return "input"
        return "both" if len(scopes) > 1 else scopes.pop() or "input"

    def _make_match_triggers(
        self, base: Trigger, value: Mapping[str, object], item: int
    ) -> Iterator[Trigger]:
        declared = next((value[key] for key in _MATCH_KEYS if value.get(key) is not None), None)
        values = declared if isinstance(declared, list) else [declared] if declared is not None else []
        words = self._read_listed(value, item) if not values else self._read_hosts(base, value, item)
        if any(isinstance(item_value, bool | dict | list) for item_value in values):
            self._skip_trigger(item, f"match is {_preview(declared)}", "Write it as text, in quotes.")
            return
        texts = [text for item_value in values if (text := _to_text(item_value).strip())]
        if base.type == "url":
            yield from (_copy_trigger(base, text, words) for text in texts or [""])
        elif texts or words:
            yield from (_copy_trigger(base, text) for text in texts or words)
        else:
            self._skip_trigger(item, f"a {base.type} needs `match`", _EXAMPLES[base.type])

    def _read_hosts(self, base: Trigger, value: Mapping[str, object], item: int) -> tuple[str, ...]:
        hosts = {key: value.get(key) for key in _LIST_KEYS}
        return self._read_listed(hosts, item) if base.type == "url" else ()

    def _read_listed(self, value: Mapping[str, object], item: int) -> tuple[str, ...]:
        words = next(
            (value[key] for key in (*_LIST_KEYS, *_MATCH_KEYS[:1]) if value.get(key) is not None), None
        )
        return self._read_words(words, "triggers", item)

    def _make_list_trigger(self, base: Trigger, value: Mapping[str, object], item: int) -> Iterator[Trigger]:
        is_language = base.type == "language"
        words = tuple(self._read_languages(value, item)) if is_language else self._read_listed(value, item)
        if words or base.type in ("code", "urgency", "sentiment"):
            yield _copy_trigger(base, "", words)
        elif not is_language or not any(value.get(key) for key in _LIST_KEYS):
            self._skip_trigger(item, f"a {base.type} trigger needs `words`", _EXAMPLES[base.type])

    def _read_languages(self, value: Mapping[str, object], item: int) -> Iterator[str]:
        # `no` is Norwegian here, but YAML reads it as False.
        plain = {key: _restore_no(item_value) for key, item_value in value.items()}
        for word in self._read_listed(plain, item):
            code = parse_language_code(word)
            if code:
                yield code
            else:
                advice = f"Known are: {', '.join(LANGUAGES)}."
                message = f"Trigger {item + 1}: the language {_preview(word)} is not known."
                self._add_problem("triggers", message, advice, item=item)

    def _make_event_trigger(self, base: Trigger, item: int) -> Iterator[Trigger]:
        if base.type == "webhook":
            if base.source:
                yield base
            else:
                self._skip_trigger(item, "a webhook needs `source`", _EXAMPLES["webhook"])
            return
        reason = _schedule_fault(base.schedule)
        if reason:
            self._skip_trigger(item, reason, _EXAMPLES["cron"])
        else:
            yield base

    def _read_schedule(self, kind: TriggerType, value: Mapping[str, object]) -> str:
        schedule = value.get("schedule", value.get("cron", value.get("match")) if kind == "cron" else None)
        normalized = " ".join(_to_text(schedule).split())
        return _SCHEDULES.get(normalized.lower(), normalized)


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


def _trigger_items(triggers: object) -> list[object]:
    """The triggers as a list, from any of the accepted forms."""
    if isinstance(triggers, list):
        return triggers
    if isinstance(triggers, dict) and "type" not in triggers and "match" not in triggers:
        return [{key: value} for key, value in triggers.items()]
    return [] if triggers is None else [triggers]


def _copy_trigger(base: Trigger, match: str, words: tuple[str, ...] = ()) -> Trigger:
    return Trigger(
        base.type, match, base.scope, words, base.source, base.event, base.schedule, base.correction_hint
    )


def _is_correcting(trigger: Trigger) -> bool:
    return trigger.scope != "input" and bool(trigger.correction_hint)


def _restore_no(value: object) -> object:
    if isinstance(value, list):
        return [_restore_no(item) for item in value]
    return "no" if value is False else value


def _to_text(value: object) -> str:
    if isinstance(value, date | datetime):
        return value.isoformat()
    return "" if value is None else str(value)


def _to_number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def _preview(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _path_fault(path: str) -> str:
    """Why the path is not one inside the home; empty if it is."""
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
    return next((reason for reason, applies in checks if applies()), "")


def _schedule_fault(schedule: str) -> str:
    """Why the schedule is invalid; empty if it is valid."""
    from cronsim import CronSim, CronSimError

    if not schedule:
        return "a cron trigger needs `schedule`"
    if len(schedule) > 200 or len(schedule.split()) != 5:
        return f"the schedule {_preview(schedule)} has not five fields"
    try:
        CronSim(schedule.upper(), datetime(2026, 1, 1))  # noqa: DTZ001 - any moment would do
    except CronSimError as error:
        return f"the schedule {_preview(schedule)} cannot be: {str(error).lower()}"
    return ""


def _default_description(title: str, body: str) -> str:
    """A default description: the title and the first instruction."""
    line = _first_line(body)
    return (f"{title}: {line}" if line else title)[:_MAX_DESCRIPTION_CHARS]


def _first_line(body: str) -> str:
    """The first line of the section Instructions, or else of the whole text."""
    lines = list(scan(body))
    heading = next(
        (number for number, line in enumerate(lines) if line.title.strip().lower() == "instructions"), -1
    )
    for line in lines[heading + 1 :]:
        if line.kind == "text":
            return _LIST_MARKER.sub("", line.text).strip()
    return ""


_LIST_MARKER = re.compile(r"\s*(?:[-*+>]|\d+[.)])\s+")


def _find_line(head: str, key: str, item: int | None) -> int | None:
    """The line of a field, or of one item of its list, as near as possible without parsing."""
    lines = head.split("\n")
    names = {key, key.removesuffix("s")}
    start = next(
        (number for number, line in enumerate(lines) if key and line.partition(":")[0].strip() in names), None
    )
    if start is None:
        return None
    count, depth = -1, None
    for number in range(start + 1, len(lines)) if item is not None else ():
        list_item = _LIST_ITEM.match(lines[number])
        if list_item and (depth is None or len(list_item[1]) == depth):
            depth = len(list_item[1])
            count += 1
        elif lines[number][:1] not in (" ", "\t", "", "#", "\r"):
            break
        if count == item:
            return number + 1
    return start + 1

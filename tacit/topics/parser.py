"""Loads the topics of a home, and reloads those whose files change.

Mistakes in a note become problems to show; the rest of the note still counts. A value that cannot be used is
replaced by the safe one: a topic with a typo in `activation` activates only manually, one with a typo in
`priority` gets the lowest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isfinite
from typing import TypeVar

from tacit.diagnostics import Problem
from tacit.errors import TacitError
from tacit.home.listing import Stamp
from tacit.markdown import notes
from tacit.markdown.chunker import iterate_chunks
from tacit.markdown.frontmatter import parse_names
from tacit.markdown.notes import Note
from tacit.privacy.audience import read_agents
from tacit.search.documents import audience_of, day_of, title_of
from tacit.text.lines import scan
from tacit.topics.model import PRIORITIES, WAKE_MODES, Topic, Trigger
from tacit.topics.triggers import TRIGGER_TYPES, TYPES_BY_ALIAS, PatternTrigger, TriggerType, WebhookTrigger
from tacit.topics.triggers.base import KNOWN_KEYS, TriggerEntry, read_words, show

_Choice = TypeVar("_Choice", bound=str)

MAX_TRIGGERS = 200
_MAX_KB = 1024.0
_MAX_DESCRIPTION_CHARS = 500
_MAX_PATH_CHARS = 1000


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
            self._report(
                "type", f"type is {show(kind)}, so it is no topic.", "Write `type: topic`.", "warning"
            )
            return None
        body = self.note.body.lstrip("\ufeff")
        triggers = tuple(self._read_triggers())
        if not body.strip() and not triggers:
            self._report("", "There is nothing in it: no instructions and no triggers.", "Write what to do.")
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
            keywords=read_words(fields.get("keywords"), partial(self._report, "keywords")),
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
            self._report("triggers", "Nothing wakes it: it has no usable trigger.", advice, "warning")

    def _report(
        self, key: str, message: str, advice: str = "", level: str = "error", item: int | None = None
    ) -> None:
        line = _find_line(self.note.head, key, item)
        self.problems.append(Problem(self.path, message, advice, line, level))

    # Fields

    def _read_text(self, key: str) -> str:
        value = self.note.fields.get(key)
        if value is None or isinstance(value, str):
            return (value or "").strip()
        self._report(key, f"{key} is {show(value)}.", "Write it as text.", "warning")
        return ""

    def _read_choice(self, key: str, allowed: Sequence[_Choice], default: _Choice, safe: _Choice) -> _Choice:
        value = self.note.fields.get(key)
        if value is None:
            return default
        for choice in allowed:
            if isinstance(value, str) and value.strip().lower() == choice:
                return choice
        self._report(
            key, f"{key} is {show(value)}, so {safe} is used.", f"Write one of: {', '.join(allowed)}."
        )
        return safe

    def _read_bool(self, key: str) -> bool:
        value = self.note.fields.get(key)
        if value is None or isinstance(value, bool):
            return bool(value)
        self._report(key, f"{key} is {show(value)}, so it counts as no.", "Write true or false.")
        return False

    def _read_max_context_kb(self) -> float:
        value = self.note.fields.get("max_context_kb")
        default = 4.0
        if value is None:
            return default
        number = _to_number(re.sub(r"(?i)\s*kb?$", "", value.strip()) if isinstance(value, str) else value)
        if number is not None and 0 < number <= _MAX_KB:
            return number
        message = f"max_context_kb is {show(value)}, so {default:g} is used."
        self._report("max_context_kb", message, f"Write a number above 0, at most {_MAX_KB:g}.")
        return default

    def _read_threshold(self) -> float | None:
        value = self.note.fields.get("similarity_threshold")
        number = _to_number(value)
        if value is None or (number is not None and 0 <= number <= 1):
            return number
        message = f"similarity_threshold is {show(value)}, so the one of the home is used."
        self._report("similarity_threshold", message, "Write a number from 0 to 1.")
        return None

    def _read_pause(self) -> int:
        value = self.note.fields.get("steering_pause")
        default = 10
        if value is None or (type(value) is int and 0 <= value <= 1_000_000):
            return default if value is None else int(str(value))
        message = f"steering_pause is {show(value)}, so {default} is used."
        self._report("steering_pause", message, "Write a number of turns.")
        return default

    def _read_subscriptions(self) -> Iterator[str]:
        paths = self.note.fields.get("subscriptions", self.note.fields.get("subscription"))
        for item, path in enumerate(parse_names(paths)):
            reason = _path_fault(path)
            if reason:
                message = f"The subscription {show(path)} {reason} and is left out."
                advice = "Write a path inside the home, such as knowledge/people/ana.md."
                self._report("subscriptions", message, advice, item=item)
            else:
                yield path

    # Triggers

    def _read_triggers(self) -> Iterator[Trigger]:
        triggers = self.note.fields.get("triggers", self.note.fields.get("trigger"))
        items = _trigger_items(triggers)
        for item, value in enumerate(items[:MAX_TRIGGERS]):
            yield from self._read_trigger(value, item)
        if len(items) > MAX_TRIGGERS:
            message = f"Of {len(items)} triggers the first {MAX_TRIGGERS} count."
            self._report("triggers", message, "Gather words in one trigger.")

    def _read_trigger(self, value: object, item: int) -> Iterator[Trigger]:
        report = partial(self._report, "triggers", item=item)
        if isinstance(value, str) and value.strip():
            yield Trigger(PatternTrigger.name, value.strip())
            return
        values: Mapping[str, object] = value if isinstance(value, dict) else {}
        trigger_type = _find_type(values)
        entry = TriggerEntry(trigger_type.name if trigger_type else "", values, item + 1, report)
        if not isinstance(value, dict):
            entry.skip(f"{show(value)} is not a trigger", "Write `- type: keywords` and so on.")
        elif trigger_type is None:
            declared = values.get("type")
            reason = "it has no type" if declared is None else f"there is no type {show(declared)}"
            entry.skip(reason, f"Types are: {', '.join(TRIGGER_TYPES)}.")
        else:
            unknown = [key for key in values if key not in KNOWN_KEYS and key not in TYPES_BY_ALIAS]
            if unknown:
                message = f"Trigger {item + 1} has {', '.join(map(show, unknown))}, which is not read."
                advice = "Read are: type, match, words, scope, source, event, schedule, correction_hint."
                report(message, advice, "warning")
            yield from trigger_type.read(entry)


def _find_type(values: Mapping[str, object]) -> type[TriggerType] | None:
    """The type that an entry declares, or else the one that its keys imply."""
    declared = values.get("type")
    if declared is not None:
        return TYPES_BY_ALIAS.get(str(declared).strip().lower())
    named = next((TYPES_BY_ALIAS[key] for key in values if key in TYPES_BY_ALIAS), None)
    if named is None and "match" in values:
        return PatternTrigger
    return named or (WebhookTrigger if "source" in values or "event" in values else None)


def _trigger_items(triggers: object) -> list[object]:
    """The triggers as a list, from any of the accepted forms."""
    if isinstance(triggers, list):
        return triggers
    if isinstance(triggers, dict) and "type" not in triggers and "match" not in triggers:
        return [{key: value} for key, value in triggers.items()]
    return [] if triggers is None else [triggers]


def _is_correcting(trigger: Trigger) -> bool:
    return trigger.scope != "input" and bool(trigger.correction_hint)


def _to_number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


def _path_fault(path: str) -> str:
    """Why the path is not one inside the home; empty if it is."""
    if path.startswith(("/", "~")) or re.match(r"\w:", path):
        return "is not a path inside the home"
    if ".." in path.split("/"):
        return "leads out of the home"
    if "\\" in path:
        return "has a backslash"
    if not path.isprintable():
        return "has a character that no path has"
    return "is too long" if len(path) > _MAX_PATH_CHARS else ""


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


@dataclass(slots=True)
class TopicLoader:
    """The loaded topics. A bad file becomes a problem; the others are loaded anyway."""

    _files: dict[str, tuple[Stamp, Topic | None, tuple[Problem, ...]]] = field(default_factory=dict)
    topics: tuple[Topic, ...] = ()
    problems: tuple[Problem, ...] = ()
    generation: int = 0  # grows when a topic changes

    def refresh(self, listed: Mapping[str, Stamp], read: Callable[[str], bytes]) -> None:
        entries = {path: entry for path, entry in self._files.items() if listed.get(path) == entry[0]}
        if len(entries) == len(listed) == len(self._files):
            return
        for path in sorted(listed.keys() - entries.keys()):
            entries[path] = (listed[path], *_load(path, read))
        self._files = entries
        self.generation += 1
        self._collect()

    def _collect(self) -> None:
        by_name: dict[str, Topic] = {}
        problems: list[Problem] = []
        for path in sorted(self._files):
            _, topic, file_problems = self._files[path]
            problems += file_problems
            if topic is None:
                continue
            if topic.name in by_name:
                message = f"has the same name as {by_name[topic.name].path}, which is used."
                problems.append(Problem(path, message, "Give it another name."))
            else:
                by_name[topic.name] = topic
        self.topics, self.problems = tuple(by_name.values()), tuple(problems)


def _load(path: str, read: Callable[[str], bytes]) -> tuple[Topic | None, tuple[Problem, ...]]:
    try:
        return parse_topic(path, notes.decode(read(path)))
    except (TacitError, OSError) as error:
        return None, (Problem(path, f"cannot be read: {error}"),)

"""The `## Wisdom` section: reading and writing it, the lessons behind each entry, and its checks.

## Wisdom

_Last compressed: YYYY-MM-DD | Source lessons: N_

**Pattern name.** Wisdom in at most 15 words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from tacit.diagnostics import Problem
from tacit.markdown.sections import find_sections
from tacit.text import tokens

TITLE, LEVEL = "Wisdom", 2

_ENTRY = re.compile(r"\s*(?:[-*+]\s+)?\*\*(?P<name>[^*\n]{1,200}?)\*\*\s*(?P<text>.*?)\s*")
_HEADER = re.compile(r"_Last compressed: (?P<day>\d{4}-\d{2}-\d{2}) \| Source lessons: (?P<count>\d+)_")


class WisdomEntry(NamedTuple):
    name: str  # ends with a full stop
    text: str
    line: int = 0

    @property
    def as_item(self) -> str:
        return f"**{self.name}** {self.text}".rstrip()


# Without it an agent that no longer gets MEMORY.md whole would not know where to look.
MANDATORY = WisdomEntry(
    "When context feels incomplete, check your memory.",
    "Read `memory/YYYY-MM-DD.md` and `MEMORY.md` when historical knowledge is needed.",
)
_LOOKUP_VERB = re.compile(
    r"\b(?:read|check|open|look|search|consult|lies|lesen|schau|such)\w*", re.IGNORECASE
)


class Wisdom(NamedTuple):
    entries: tuple[WisdomEntry, ...]
    day: date | None = None  # when it was compressed
    lessons: int | None = None  # number of source lessons
    header_line: int | None = None
    stray: tuple[tuple[int, str], ...] = ()  # lines that are neither header nor entry


def is_mandatory(entry: WisdomEntry) -> bool:
    """Whether it sends the agent to the same two places, in these words or others."""
    text = f"{entry.name} {entry.text}"
    return "MEMORY.md" in text and "memory/" in text and _LOOKUP_VERB.search(text) is not None


def render(entries: Sequence[WisdomEntry], day: date, lessons: int) -> str:
    header = f"_Last compressed: {day.isoformat()} | Source lessons: {lessons}_"
    lines = "\n".join(entry.as_item for entry in entries)
    return f"{'#' * LEVEL} {TITLE}\n\n{header}\n\n{lines}\n"


def parse(section: str, first: int = 1) -> Wisdom:
    """Accepts any text that people made of it. `first` is the number of its first line."""
    entries: list[WisdomEntry] = []
    stray: list[tuple[int, str]] = []
    header_match: re.Match[str] | None = None
    header_line: int | None = None
    for number, line in enumerate(section.splitlines(), first):
        header, entry = _HEADER.fullmatch(line.strip()), _ENTRY.fullmatch(line)
        if header and header_match is None:
            header_match, header_line = header, number
        elif entry:
            entries.append(WisdomEntry(entry["name"].strip(), entry["text"], number))
        elif line.strip() and number > first:
            stray.append((number, line.strip()))
    day, count = (
        (parse_day(header_match["day"]), int(header_match["count"])) if header_match else (None, None)
    )
    return Wisdom(tuple(entries), day, count, header_line, tuple(stray))


def parse_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


# The lessons behind each entry, in the notes for the reviewer


def coverage_notes(covers: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, places in covers.items():
        yield f"{name} covers:"
        yield from (f"- {place}" for place in places)
        yield ""


def parse_coverage(notes: str) -> dict[str, int]:
    """The number of lessons that the notes name for each entry. A reviewer may have changed them."""
    counts: dict[str, int] = {}
    name = None
    for line in notes.splitlines():
        if line.endswith(" covers:"):
            name = line.removesuffix(" covers:")
            counts[name] = 0
        elif name is not None and line.startswith("- "):
            counts[name] += 1
        elif not line.strip():
            name = None
    return counts


# ---------------------------------------------------------------- checking

MAX_WORDS = 15
MIN_LESSONS = 3  # lessons that an entry must cover
MAX_ENTRIES = 15
MAX_TOKENS = 150  # of the section
MAX_NAME_WORDS = 8
MAX_SOUL_TOKENS = 250  # default; the config may differ
_WARN_RATIO = 0.8  # of the limit of SOUL.md
FORBIDDEN_FILE = "WISDOM.md"

_ENDINGS = (
    "md|markdown|txt|py|sh|js|mjs|ts|tsx|json|jsonl|ya?ml|toml|ini|cfg|conf|env|log|db|sqlite|csv|html?|css|"
    "pdf|png|jpe?g|svg|mp[34]|wav|zip|gz|tar|lock|service|plist|rs|go|rb|java|c|h|cpp|sql|xml"
)
_MODELS = (
    r"gpt-?\d|gpt-?oss|chatgpt|claude|sonnet|opus|haiku|gemini|gemma|llama|qwen|mi[sx]tral|deepseek|nomic|"
    r"grok|whisper|phi-?\d|kimi|glm-?\d|minimax|codestral|elevenlabs|o[134]-(?:mini|pro)"
)
# In this order: the first match names the kind.
_DETAILS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE if lower else 0)
    for name, lower, pattern in (
        ("code", False, r"`[^`]*`|\b\w+\(\)|\$\{?\w+\}?"),
        ("an address", True, r"\b[a-z][a-z0-9+.-]*://\S+|\b\d{1,3}(?:\.\d{1,3}){3}\b|\blocalhost\b"),
        ("a path", False,
         r"(?<![\w.])(?:~|\.{1,2})?/[\w.-]+(?:/[\w.-]*)*|\b[A-Za-z]:\\\S+|\b[\w.-]+/[\w.-]+/[\w./-]*"),
        ("a file name", True,
         rf"(?<![\w.])[\w-]+\.(?:{_ENDINGS})\b|(?<![\w.])\.(?:env|git|bashrc|zshrc)\w*\b"),
        ("a model's name", True, rf"\b(?:{_MODELS})[\w.:-]*|\b[a-z][\w.-]*:\d+(?:\.\d+)?b\b"),
        ("a port", True, r"\bports?\s+\d{2,5}\b|(?<=:)\d{2,5}\b"),
        ("a version", True,
         r"\bv\d+(?:\.\d+)*\b|\b\d+\.\d+(?:\.\d+)+\b|(?<=\bversion )\d[\w.]*|\b[a-z]+ \d+\.\d+\b"),
        ("an option", False, r"(?<!\S)--?[A-Za-z][\w-]*"),
        ("a name from code", False, r"\b[A-Za-z]+_\w+\b|\b[a-z]+[A-Z]\w*\b"),
        ("a number", False, r"\b\d{3,}\b(?!\s*%)"),
    )
}  # fmt: skip


def find_details(text: str) -> list[tuple[str, str]]:
    """Details that would be wrong tomorrow or elsewhere: their kind and their words."""
    matches: list[tuple[str, str]] = []
    taken: list[tuple[int, int]] = []
    for kind, pattern in _DETAILS.items():
        for match in pattern.finditer(text):
            if not any(start < match.end() and match.start() < end for start, end in taken):
                taken.append(match.span())
                matches.append((kind, match[0].strip()))
    return matches


def entry_problems(entry: WisdomEntry, where: str, covered: int | None) -> Iterator[Problem]:
    """Problems of one entry. `covered`: the number of lessons behind it; None: unknown."""
    if is_mandatory(entry):  # it covers no lesson and names two files
        return
    label = f"“{entry.name}”"
    line = entry.line or None
    if not entry.text:
        yield Problem(where, f"{label} says nothing.", "Add its sentence, or remove it.", line)
    if not entry.name.endswith((".", "!", "?", "。")):
        yield Problem(
            where, f"{label} does not end with a full stop.", "Write **Name.** and the sentence.", line
        )
    if len(entry.name.split()) > MAX_NAME_WORDS:
        yield Problem(where, f"{label} is a long name.", "A few words are enough.", line, "warning")
    count = len(entry.text.split())
    if count > MAX_WORDS:
        message = f"{label} has {count} words; {MAX_WORDS} is the most."
        yield Problem(where, message, f"Take {count - MAX_WORDS} out.", line)
    for kind, words in find_details(f"{entry.name} {entry.text}"):
        message = f"{label} names {kind}: {words}."
        yield Problem(where, message, "Say what holds elsewhere too; the raw lesson keeps the detail.", line)
    if covered is not None and covered < MIN_LESSONS:
        message = f"{label} covers {covered} of the {MIN_LESSONS} lessons that an entry must cover."
        yield Problem(where, message, "Make it broader, or remove it. The lessons stay where they are.", line)


def section_problems(
    section: str, where: str, covers: Mapping[str, int] | None, first: int = 1
) -> list[Problem]:
    """`covers`: the number of lessons by entry name; None: unknown."""
    wisdom = parse(section, first)
    diagnostics = list(_check_form(wisdom, where, first))
    for entry in wisdom.entries:
        diagnostics += entry_problems(entry, where, None if covers is None else covers.get(entry.name, 0))
    if not any(map(is_mandatory, wisdom.entries)):
        diagnostics.append(
            Problem(
                where, "The entry that sends the agent to its memory is missing.", f"Add: {MANDATORY.as_item}"
            )
        )
    return [*diagnostics, *_check_size(section, wisdom, where, first)]


def _check_form(wisdom: Wisdom, source: str, first: int) -> Iterator[Problem]:
    if wisdom.header_line is None or wisdom.day is None:
        todo = "Add: _Last compressed: YYYY-MM-DD | Source lessons: N_"
        yield Problem(source, "The line that says when it was compressed is missing.", todo, first)
    for number, text in wisdom.stray:
        message = f"This is no entry: {text[:60]}"
        yield Problem(source, message, "Write **Pattern name.** Wisdom in at most 15 words.", number)
    names = [entry.name for entry in wisdom.entries]
    for entry in wisdom.entries:
        if names.index(entry.name) != wisdom.entries.index(entry):
            yield Problem(source, f"“{entry.name}” is there twice.", "Keep one.", entry.line)


def _check_size(section: str, wisdom: Wisdom, source: str, first: int) -> Iterator[Problem]:
    if len(wisdom.entries) > MAX_ENTRIES:
        message = f"There are {len(wisdom.entries)} entries; {MAX_ENTRIES} is the most."
        yield Problem(source, message, "Join some, or remove those that cover the fewest lessons.", first)
    size = tokens.count(section.strip())
    if size > MAX_TOKENS:
        yield Problem(
            source,
            f"The section has {size} tokens; {MAX_TOKENS} is the most.",
            f"What does not fit: {', '.join(_find_excess(section, wisdom))}.",
            first,
        )


def _find_excess(section: str, wisdom: Wisdom) -> list[str]:
    """The last entries, as many as have to go, without the mandatory one."""
    remaining, names = section.strip(), list[str]()
    for entry in reversed(wisdom.entries):
        if tokens.count(remaining) <= MAX_TOKENS:
            break
        if not is_mandatory(entry):
            remaining = "\n".join(line for line in remaining.splitlines() if f"**{entry.name}**" not in line)
            names.append(f"“{entry.name}”")
    return names[::-1] or ["what is not an entry"]


# SOUL.md around it


def soul_problems(
    soul: str, where: str, most: int = MAX_SOUL_TOKENS, covers: Mapping[str, int] | None = None
) -> list[Problem]:
    """Checks the section in its place and the size of the whole file."""
    wisdom_sections = find_sections(soul, TITLE, LEVEL)
    problems = list(size_problems(soul, where, most))
    if not wisdom_sections:
        todo = "Make one: tacit wisdom draft"
        return [*problems, Problem(where, f"There is no `## {TITLE}` section.", todo, level="warning")]
    if len(wisdom_sections) > 1:
        message = (
            f"There are {len(wisdom_sections)} `## {TITLE}` sections, so it is not clear which one counts."
        )
        return [*problems, Problem(where, message, "Join them by hand.", wisdom_sections[1].line)]
    return [
        *problems,
        *section_problems(wisdom_sections[0].text(soul), where, covers, wisdom_sections[0].line),
    ]


def size_problems(soul: str, where: str, most: int = MAX_SOUL_TOKENS) -> Iterator[Problem]:
    size, target = tokens.count(soul), int(most * _WARN_RATIO)
    if size > most:
        todo = "Shorten it: tacit openclaw compress-soul; or raise openclaw.soul_max_tokens."
        yield Problem(where, f"It would have {size} tokens; {most} is the most, {target} the aim.", todo)
    elif size > target:
        yield Problem(where, f"It has {size} tokens; {target} is the aim, {most} the most.", level="warning")


def root_problems(names: Iterable[str]) -> Iterator[Problem]:
    """Checks the files in the root: wisdom belongs in SOUL.md and nowhere else."""
    for name in sorted(names):
        if name.casefold() == FORBIDDEN_FILE.casefold():
            message = "Wisdom has no file of its own: it is a section of SOUL.md, which every session loads."
            yield Problem(name, message, "Move what is in it to SOUL.md's `## Wisdom` and delete the file.")

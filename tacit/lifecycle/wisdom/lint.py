"""What is wrong with a wisdom section, and with the SOUL.md around it, as problems to show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from tacit.lifecycle.wisdom.section import LEVEL, MANDATORY, TITLE, Entry, Wisdom, is_mandatory, parse
from tacit.lifecycle.wisdom.themes import FEWEST
from tacit.model.problems import Problem
from tacit.text import tokens
from tacit.text.sections import named

MOST_WORDS = 15
MOST_ENTRIES = 15
MOST_TOKENS = 150  # of the section
MOST_NAME_WORDS = 8
SOUL_TOKENS = 250  # unless the config says otherwise
_WARNED_FROM = 0.8  # of the most tokens of SOUL.md
FORBIDDEN = "WISDOM.md"

_ENDINGS = (
    "md|markdown|txt|py|sh|js|mjs|ts|tsx|json|jsonl|ya?ml|toml|ini|cfg|conf|env|log|db|sqlite|csv|html?|css|"
    "pdf|png|jpe?g|svg|mp[34]|wav|zip|gz|tar|lock|service|plist|rs|go|rb|java|c|h|cpp|sql|xml"
)
_MODELS = (
    r"gpt-?\d|gpt-?oss|chatgpt|claude|sonnet|opus|haiku|gemini|gemma|llama|qwen|mi[sx]tral|deepseek|nomic|"
    r"grok|whisper|phi-?\d|kimi|glm-?\d|minimax|codestral|elevenlabs|o[134]-(?:mini|pro)"
)
# In this order: the first that fits names what it is.
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


def details(text: str) -> list[tuple[str, str]]:
    """What would be wrong tomorrow, or elsewhere: the kind of it and the words."""
    found: list[tuple[str, str]] = []
    taken: list[tuple[int, int]] = []
    for kind, pattern in _DETAILS.items():
        for match in pattern.finditer(text):
            if not any(start < match.end() and match.start() < end for start, end in taken):
                taken.append(match.span())
                found.append((kind, match[0].strip()))
    return found


def entry_problems(entry: Entry, where: str, covered: int | None) -> Iterator[Problem]:
    """What is wrong with one entry. `covered` lessons stand behind it; None: nobody can tell."""
    if is_mandatory(entry):  # it stands for no lesson, and is about two files
        return
    shown = f"“{entry.name}”"
    line = entry.line or None
    if not entry.text:
        yield Problem(where, f"{shown} says nothing.", "Add its sentence, or remove it.", line)
    if not entry.name.endswith((".", "!", "?", "。")):
        yield Problem(
            where, f"{shown} does not end with a full stop.", "Write **Name.** and the sentence.", line
        )
    if len(entry.name.split()) > MOST_NAME_WORDS:
        yield Problem(where, f"{shown} is a long name.", "A few words are enough.", line, "warning")
    count = len(entry.text.split())
    if count > MOST_WORDS:
        what = f"{shown} has {count} words; {MOST_WORDS} is the most."
        yield Problem(where, what, f"Take {count - MOST_WORDS} out.", line)
    for kind, words in details(f"{entry.name} {entry.text}"):
        what = f"{shown} names {kind}: {words}."
        yield Problem(where, what, "Say what holds elsewhere too; the raw lesson keeps the detail.", line)
    if covered is not None and covered < FEWEST:
        what = f"{shown} covers {covered} of the {FEWEST} lessons that an entry must cover."
        yield Problem(where, what, "Make it broader, or remove it. The lessons stay where they are.", line)


def section_problems(
    section: str, where: str, covers: Mapping[str, int] | None, first: int = 1
) -> list[Problem]:
    """`covers` has the number of lessons by the names of entries; None: it is not known."""
    wisdom = parse(section, first)
    found = list(_form(wisdom, where, first))
    for entry in wisdom.entries:
        found += entry_problems(entry, where, None if covers is None else covers.get(entry.name, 0))
    if not any(map(is_mandatory, wisdom.entries)):
        found.append(
            Problem(
                where, "The entry that sends the agent to its memory is missing.", f"Add: {MANDATORY.written}"
            )
        )
    return [*found, *_size(section, wisdom, where, first)]


def _form(wisdom: Wisdom, where: str, first: int) -> Iterator[Problem]:
    if wisdom.header_line is None or wisdom.day is None:
        todo = "Add: _Last compressed: YYYY-MM-DD | Source lessons: N_"
        yield Problem(where, "The line that says when it was compressed is missing.", todo, first)
    for number, text in wisdom.stray:
        what = f"This is no entry: {text[:60]}"
        yield Problem(where, what, "Write **Pattern name.** Wisdom in at most 15 words.", number)
    names = [entry.name for entry in wisdom.entries]
    for entry in wisdom.entries:
        if names.index(entry.name) != wisdom.entries.index(entry):
            yield Problem(where, f"“{entry.name}” is there twice.", "Keep one.", entry.line)


def _size(section: str, wisdom: Wisdom, where: str, first: int) -> Iterator[Problem]:
    if len(wisdom.entries) > MOST_ENTRIES:
        what = f"There are {len(wisdom.entries)} entries; {MOST_ENTRIES} is the most."
        yield Problem(where, what, "Join some, or remove those that cover the fewest lessons.", first)
    size = tokens.count(section.strip())
    if size > MOST_TOKENS:
        yield Problem(
            where,
            f"The section has {size} tokens; {MOST_TOKENS} is the most.",
            f"What does not fit: {', '.join(_beyond(section, wisdom))}.",
            first,
        )


def _beyond(section: str, wisdom: Wisdom) -> list[str]:
    """The last entries, as many as have to go. The mandatory one never has to."""
    left, names = section.strip(), list[str]()
    for entry in reversed(wisdom.entries):
        if tokens.count(left) <= MOST_TOKENS:
            break
        if not is_mandatory(entry):
            left = "\n".join(line for line in left.splitlines() if f"**{entry.name}**" not in line)
            names.append(f"“{entry.name}”")
    return names[::-1] or ["what is not an entry"]


# SOUL.md around it


def soul_problems(
    soul: str, where: str, most: int = SOUL_TOKENS, covers: Mapping[str, int] | None = None
) -> list[Problem]:
    """The section in its place, and the size of the whole."""
    found = named(soul, TITLE, LEVEL)
    problems = list(size_problems(soul, where, most))
    if not found:
        todo = "Make one: tacit wisdom draft"
        return [*problems, Problem(where, f"There is no `## {TITLE}` section.", todo, level="warning")]
    if len(found) > 1:
        what = f"There are {len(found)} `## {TITLE}` sections, so nobody can tell which one counts."
        return [*problems, Problem(where, what, "Join them by hand.", found[1].line)]
    return [*problems, *section_problems(found[0].text(soul), where, covers, found[0].line)]


def size_problems(soul: str, where: str, most: int = SOUL_TOKENS) -> Iterator[Problem]:
    size, warned = tokens.count(soul), int(most * _WARNED_FROM)
    if size > most:
        todo = "Shorten it: tacit openclaw compress-soul; or raise openclaw.soul_max_tokens."
        yield Problem(where, f"It would have {size} tokens; {most} is the most, {warned} the aim.", todo)
    elif size > warned:
        yield Problem(where, f"It has {size} tokens; {warned} is the aim, {most} the most.", level="warning")


def root_problems(names: Iterable[str]) -> Iterator[Problem]:
    """Of the files in the root: wisdom lives in SOUL.md and nowhere else."""
    for name in sorted(names):
        if name.casefold() == FORBIDDEN.casefold():
            what = "Wisdom has no file of its own: it is a section of SOUL.md, which every session loads."
            yield Problem(name, what, "Move what is in it to SOUL.md's `## Wisdom` and delete the file.")

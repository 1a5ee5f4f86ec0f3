"""Decides which messages need no search, and which are technical rather than personal.

Messages without words, host heartbeats, slash commands and pure acknowledgements are skipped. Length does not
matter: "my keys?" and 鍵は？ are searched. A technical message is never skipped, but personal memory comes
second there.

A word that asks for memory ("last time") overrides all of this, and so does the name of a person or project
that the home knows; only a message without words leaves nothing to search for. A host's own phrases, the name
of a command, fenced code and quoted lines override nothing.

Any text is valid; of a long one only the start and the end are read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from tacit.hosts.base import HOSTS
from tacit.search.query import parse_query
from tacit.text.words import STOPWORDS, UNSPACED_RUN, fold

WORDS_FILE = Path(__file__).with_name("query_filter_words.txt")

Skip: TypeAlias = Literal["", "empty", "heartbeat", "command", "acknowledgement"]

MAX_START_CHARS = 4_000
MAX_END_CHARS = 1_000  # people who paste a log ask below it
MAX_ACKNOWLEDGEMENT_CHARS = 120


@dataclass(frozen=True, slots=True)
class FilterResult:
    skip: Skip = ""
    reason: str = ""  # for people; empty if no rule applied
    technical: bool = False
    cue: str = ""  # what overrode a skip or the technical rule


class _SkipMatch(NamedTuple):
    skip: Skip
    reason: str
    rest: str  # the rest of the message, which the rule did not match


def filter_query(message: object, names: Collection[str] = ()) -> FilterResult:
    """`names`: people and projects that this session may know of."""
    if not isinstance(message, str):
        return FilterResult("empty", "there is no message")
    text = _text_to_check(message)
    if not text:
        return _without_words(message)
    skip_match = _match_heartbeat(text) or _match_command(text) or _match_acknowledgement(text)
    if skip_match:
        cue = _find_memory_cue(skip_match.rest, names)
        return _override(skip_match.reason, cue) if cue else FilterResult(skip_match.skip, skip_match.reason)
    technical = _technical_reason(text)
    if not technical:
        return FilterResult()
    reason = f"it is technical: {technical}"
    cue = _find_memory_cue(text, names) or _find_cue(_personal_pattern(), _strip_quoted(text))
    return _override(reason, cue) if cue else FilterResult(reason=reason, technical=True)


def _override(reason: str, cue: str) -> FilterResult:
    return FilterResult(reason=f"{reason}; but it says “{cue}”", cue=cue)


# Our own tools.

_PLACES = re.compile(r"__+|[.:/\s]+")
_TOOL_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def is_own_tool(name: str) -> bool:
    """Whether a tool is tacit's own, under any host's naming: `memory_search`, `memorySearch`,
    `mcp__plugin_tacit_tacit__search`, `functions.memory_get`."""
    for place in _PLACES.split(name.strip()):
        words = [word.lower() for word in _TOOL_WORDS.findall(place)]
        if "tacit" in words or (words[1:] if words[:1] == ["mcp"] else words)[:1] == ["memory"]:
            return True
    return False


# The part that is read.

_WORD = re.compile(r"[^\W_]")
_REACTION = re.compile("[\u2600-\u27bf\u2b50\u2b55\U0001f000-\U0001faff]")


def _text_to_check(message: str) -> str:
    """The part of the message that is checked; empty if it has no words."""
    word = _WORD.search(message)
    if not word:
        return ""
    text = message[max(0, word.start() - 40) :].strip()
    if len(text) <= MAX_START_CHARS + MAX_END_CHARS:
        return text
    return f"{text[:MAX_START_CHARS]}\n{text[-MAX_END_CHARS:]}"


def _without_words(message: str) -> FilterResult:
    start = message.strip()[:MAX_START_CHARS]
    if _REACTION.search(start) or _EMOTICON.search(start):
        return FilterResult("acknowledgement", "it is only a reaction")
    return FilterResult("empty", "it has no words")


# Heartbeats.

_HEARTBEAT = re.compile(
    r"""
      \A\W* (?:(?:HOST)\ )? heartbeat (?:\ (?:poll|check|wake|tick|run))? \W*\Z
    | \A\W* heartbeat_ok \b
    | \A\W* heartbeat \s? [.:!\]] (?! [^?]* \?)
    | (?: ^ | [.:\]]\ ) [ \t>*\#\[`]{0,8} (?:please\ )? (?:read|check|lies|lis|lee) \ (?:the\ )?
      [`*]{0,2} heartbeat\.md \b
    | ^[ \t`*]{0,8} heartbeat\.md [`*\ ]{0,3} を [読確]
    | ^[ \t`*]{0,8} (?:请)? (?:阅读|读取|检查|查看) [`*\ ]{0,3} heartbeat\.md
    | \b follow \ the \ heartbeat \ monitor \ scratch
    | \b (?: if \ nothing | wenn \ nichts ) \b [^.\n]{0,80}
      \b (?: reply | respond | answer | antworte ) \b [^.\n]{0,30} \b heartbeat_ok \b
    | \b after \ completing \ all \ due \ tasks,\ reply \b
    | \b use \ heartbeat_respond \ to \ report \b
    """.replace("HOST", "|".join(HOSTS)),
    re.VERBOSE | re.MULTILINE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
# A host's heartbeat may also contain the owner's folder and the day.
_HOST_SAYS = re.compile(
    r"heartbeat|\A(?:current time:|follow it strictly|do not infer or repeat|set notify=|recurring tasks are"
    r"|run the following periodic|if nothing needs attention)"
)


def _match_heartbeat(text: str) -> _SkipMatch | None:
    if not _HEARTBEAT.search(fold(text)):
        return None
    rest = (
        sentence for sentence in _SENTENCE_END.split(text) if not _HOST_SAYS.search(fold(sentence).strip())
    )
    return _SkipMatch("heartbeat", "it is a heartbeat of the host", "\n".join(rest))


# Commands.

_COMMAND = re.compile(r"[/／]([^\W\d_][\w-]{0,40}+)(?:@\w{1,64})?(?![\w/.\\@-])")
# Root folders, which are not commands.
_ROOTS = frozenset(
    ("bin", "boot", "dev", "etc", "home", "lib", "lib64", "mnt", "opt", "proc", "root", "sbin", "srv", "sys",
     "tmp", "usr", "var")
)  # fmt: skip


def _match_command(text: str) -> _SkipMatch | None:
    matched = _COMMAND.match(text)
    if not matched or fold(matched[1]) in _ROOTS:
        return None
    return _SkipMatch("command", f"it is a command: /{matched[1]}", text[matched.end() :])


# Acknowledgements.

_EMOTICON = re.compile(r"(?<![\w/])(?:[:;=][-'^]?[)(dpo3*|/]+|x+d+|<+3+|\+1)(?!\w)", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W_]+")


def _match_acknowledgement(text: str) -> _SkipMatch | None:
    if len(text) > MAX_ACKNOWLEDGEMENT_CHARS or any(mark in text for mark in "?？¿؟"):
        return None
    line = fold(_EMOTICON.sub(" ok ", text)).replace("'", "").replace("’", "")
    line = " ".join(_LETTERS.findall(UNSPACED_RUN.sub(r" \g<0> ", line)))
    position, is_acknowledged = 0, False
    while position < len(line):
        matched = _acknowledgement_pattern().match(line, position)
        if not matched:
            return None
        position, is_acknowledged = matched.end(), is_acknowledged or matched.lastgroup == "meant"
    return _SkipMatch("acknowledgement", "it is only an acknowledgement", text) if is_acknowledged else None


@cache
def _acknowledgement_pattern() -> re.Pattern[str]:
    """Matches the next words, or letters of a script without spaces, that acknowledge or may accompany."""
    acknowledging = _stretchable(load_phrases("acknowledgement"), load_patterns("acknowledgement"))
    beside = _stretchable(load_phrases("beside"), load_patterns("beside"))
    return re.compile(f"(?P<meant>{acknowledging})|(?:{beside})")


def _stretchable(phrases: Iterable[str], unspaced: str) -> str:
    """Each letter may be repeated: "thaaanks", "はーい"."""
    words = map(_stretch_letters, _longest_first(map(fold, phrases)))
    runs = map(_stretch_letters, _longest_first(map(fold, unspaced.split("|"))))
    return rf"(?:{'|'.join(words)})(?: |\Z)|(?:{'|'.join(runs)})[ーっッ]* ?"


def _stretch_letters(phrase: str) -> str:
    return "".join(" " if letter == " " else f"{letter}+" for letter in phrase)


# Cues.

_FENCED = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_QUOTED = re.compile(r"^[ \t]{0,3}>.*$", re.MULTILINE)


def _find_memory_cue(text: str, names: Collection[str]) -> str:
    spoken = _strip_quoted(text)
    return _find_cue(_memory_pattern(), spoken) or _find_name(spoken, names)


def _strip_quoted(text: str) -> str:
    return _QUOTED.sub(" ", _FENCED.sub(" ", text))


def _find_name(text: str, names: Collection[str]) -> str:
    """The first of `names` in the text that is not also a common word."""
    found_names = parse_query(text, names=names).names if names and text.strip() else ()
    return next((name for name in found_names if name.casefold() not in STOPWORDS), "")


def _find_cue(pattern: re.Pattern[str], text: str) -> str:
    matched = pattern.search(_fold_for_matching(text))
    if not matched:
        return ""
    cue = " ".join(matched[0].split())
    return _cue_spellings().get(cue, cue)


def _fold_for_matching(text: str) -> str:
    return fold(text).replace("’", "'")


@cache
def _memory_pattern() -> re.Pattern[str]:
    return _any_of(load_phrases("memory"), load_patterns("memory"))


@cache
def _personal_pattern() -> re.Pattern[str]:
    return _any_of(load_phrases("personal"), load_patterns("personal"))


@cache
def _technical_pattern() -> re.Pattern[str]:
    return _any_of(load_phrases("technical"), load_patterns("technical"))


@cache
def _weak_pattern() -> re.Pattern[str]:
    return _any_of(load_phrases("weak technical"))


@cache
def _cue_spellings() -> dict[str, str]:
    """Cues as people write them, by their folded form."""
    lists = (
        load_phrases("memory"),
        load_phrases("personal"),
        load_phrases("technical"),
    )
    return {fold(phrase): phrase for phrases in lists for phrase in phrases}


def _any_of(phrases: Iterable[str], unspaced: str = "") -> re.Pattern[str]:
    """Matches whole words, but not parts of a path, an address or a hyphenated name."""
    alternatives = "|".join(
        re.escape(phrase).replace(r"\ ", r"\s+") for phrase in _longest_first(map(fold, phrases))
    )
    words = rf"(?<![\w/\\@.-])(?:{alternatives})(?![\w/\\@]|[.-]\w)"
    return re.compile(f"{words}|{unspaced}" if unspaced else words)


def _longest_first(phrases: Iterable[str]) -> list[str]:
    return sorted(dict.fromkeys(phrases), key=lambda phrase: (-len(phrase), phrase))


# The word lists.


def load_phrases(name: str) -> Sequence[str]:
    """Words and phrases of a list, as people write them."""
    return [
        phrase for part in _load_lists()[f"{name} SPACED"].split(",") if (phrase := " ".join(part.split()))
    ]


def load_patterns(name: str) -> str:
    """The same for scripts without spaces: alternatives of a regular expression."""
    return _load_lists()[f"{name} UNSPACED"].replace("\n", "")


@cache
def _load_lists() -> Mapping[str, str]:
    text = re.sub("^#.*\n", "", WORDS_FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = (section.partition("]\n") for section in re.split(r"^\[", text, flags=re.MULTILINE)[1:])
    return {name: body for name, _, body in sections}


# Technical messages.

_CODE = re.compile(
    r"""
      ```|~~~
    | \bfunction\ ?\w{0,40}\ ?\( | \bdef\ \w{1,60}\( | \bclass\ [A-Z]\w{0,60}\ ?[:({] | \#include\b
    | ^from\ [\w.]{1,80}\ import\b | ^import\ .{1,80}\ from\ ['"] | \bSELECT\b.{1,200}\bFROM\b
    | [{};<>]= | => | [=!]== | \);$ | [{}]$ | (?<!\S)--[a-z][a-z-]{1,40}\b | ^\$\ [a-z]
    | </[a-z][\w-]{0,30}> | <[a-z]\w{0,20}\ [\w-]{1,30}=
    | \w(?:Error|Exception)\b | \bTraceback\b | \bFile\ "[^"\n]{1,200}",\ line\ \d | \.[a-z]{1,5}:\d{1,6}\b
    | \b(?:ECONN\w+|ENOENT|EACCES|EPERM|ETIMEDOUT|EADDRINUSE|SIG(?:SEGV|KILL|TERM|ABRT))\b
    | \b0x[0-9a-fA-F]{4,16}\b | \b(?:500\ Internal|502\ Bad|503\ Service|404\ Not\ Found|403\ Forbidden)\b
    """,
    re.VERBOSE | re.MULTILINE,
)


def _technical_reason(text: str) -> str:
    """Why the message is technical, for people; empty if it is not."""
    if _CODE.search(text):
        return "it has code"
    word = _find_cue(_technical_pattern(), text)
    if word:
        return f"it says “{word}”"
    weak = list(dict.fromkeys(matched[0] for matched in _weak_pattern().finditer(_fold_for_matching(text))))
    return f"it says “{weak[0]}” and “{weak[1]}”" if len(weak) > 1 else ""

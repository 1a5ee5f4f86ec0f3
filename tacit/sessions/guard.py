"""Which messages are not worth searching for, and which are about machines rather than people.

Skipped are messages without a word, the host's heartbeats, slash commands and pure acknowledgements. How
short a message is decides nothing: "my keys?" and 鍵は？ are searched. A technical message is never
skipped; personal memory only comes second there.

A word that asks for memory ("last time") overrides all of this, and so does the name of somebody or
something that the home knows; only a message without a word leaves nothing to search for. What a host says
in its own words, the name of a command, code between fences and quoted lines override nothing.

Any text is taken, and of a long one the beginning and the end count.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from tacit.sessions import cues
from tacit.text.query import understand
from tacit.text.stopwords import STOPWORDS
from tacit.text.words import RUN, fold

Skip: TypeAlias = Literal["", "empty", "heartbeat", "command", "acknowledgement"]

LONGEST_START = 4_000
LONGEST_END = 1_000  # who pastes a log asks below it
LONGEST_ACKNOWLEDGEMENT = 120


@dataclass(frozen=True, slots=True)
class Guarded:
    skip: Skip = ""
    reason: str = ""  # for people; empty where no rule had anything to say
    technical: bool = False
    cue: str = ""  # what overrode a skip or the technical rule


class _Skipped(NamedTuple):
    skip: Skip
    reason: str
    rest: str  # what was said besides what the rule saw


def look(message: object, names: Collection[str] = ()) -> Guarded:
    """`names`: people and projects that this session may know of."""
    if not isinstance(message, str):
        return Guarded("empty", "there is no message")
    text = _looked_at(message)
    if not text:
        return _wordless(message)
    skipped = _heartbeat(text) or _command(text) or _acknowledgement(text)
    if skipped:
        cue = _memory(skipped.rest, names)
        return _overridden(skipped.reason, cue) if cue else Guarded(skipped.skip, skipped.reason)
    technical = _technical(text)
    if not technical:
        return Guarded()
    reason = f"it is technical: {technical}"
    cue = _memory(text, names) or _first(_personal(), _spoken(text))
    return _overridden(reason, cue) if cue else Guarded(reason=reason, technical=True)


def _overridden(reason: str, cue: str) -> Guarded:
    return Guarded(reason=f"{reason}; but it says “{cue}”", cue=cue)


# Our own tools.

_PLACES = re.compile(r"__+|[.:/\s]+")
_TOOL_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def is_own_tool(name: str) -> bool:
    """Whether a tool is one of ours, under whatever name a host has it: `memory_search`, `memorySearch`,
    `mcp__plugin_tacit_tacit__search`, `functions.memory_get`."""
    for place in _PLACES.split(name.strip()):
        words = [word.lower() for word in _TOOL_WORDS.findall(place)]
        if "tacit" in words or (words[1:] if words[:1] == ["mcp"] else words)[:1] == ["memory"]:
            return True
    return False


# What is looked at.

_WORD = re.compile(r"[^\W_]")
_REACTION = re.compile("[\u2600-\u27bf\u2b50\u2b55\U0001f000-\U0001faff]")


def _looked_at(message: str) -> str:
    """Empty if there is no word in it."""
    word = _WORD.search(message)
    if not word:
        return ""
    text = message[max(0, word.start() - 40) :].strip()
    if len(text) <= LONGEST_START + LONGEST_END:
        return text
    return f"{text[:LONGEST_START]}\n{text[-LONGEST_END:]}"


def _wordless(message: str) -> Guarded:
    shown = message.strip()[:LONGEST_START]
    if _REACTION.search(shown) or _EMOTICON.search(shown):
        return Guarded("acknowledgement", "it is only a reaction")
    return Guarded("empty", "it has no words")


# Heartbeats.

_HEARTBEAT = re.compile(
    r"""
      \A\W* (?:openclaw\ )? heartbeat (?:\ (?:poll|check|wake|tick|run))? \W*\Z
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
    """,
    re.VERBOSE | re.MULTILINE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
# A host may also name the owner's folder and the day there.
_HOST_SAYS = re.compile(
    r"heartbeat|\A(?:current time:|follow it strictly|do not infer or repeat|set notify=|recurring tasks are"
    r"|run the following periodic|if nothing needs attention)"
)


def _heartbeat(text: str) -> _Skipped | None:
    if not _HEARTBEAT.search(fold(text)):
        return None
    rest = (said for said in _SENTENCE_END.split(text) if not _HOST_SAYS.search(fold(said).strip()))
    return _Skipped("heartbeat", "it is a heartbeat of the host", "\n".join(rest))


# Commands.

_COMMAND = re.compile(r"[/／]([^\W\d_][\w-]{0,40}+)(?:@\w{1,64})?(?![\w/.\\@-])")
# Folders that no command is named after.
_ROOTS = frozenset(
    ("bin", "boot", "dev", "etc", "home", "lib", "lib64", "mnt", "opt", "proc", "root", "sbin", "srv", "sys",
     "tmp", "usr", "var")
)  # fmt: skip


def _command(text: str) -> _Skipped | None:
    found = _COMMAND.match(text)
    if not found or fold(found[1]) in _ROOTS:
        return None
    return _Skipped("command", f"it is a command: /{found[1]}", text[found.end() :])


# Acknowledgements.

_EMOTICON = re.compile(r"(?<![\w/])(?:[:;=][-'^]?[)(dpo3*|/]+|x+d+|<+3+|\+1)(?!\w)", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W_]+")


def _acknowledgement(text: str) -> _Skipped | None:
    if len(text) > LONGEST_ACKNOWLEDGEMENT or any(mark in text for mark in "?？¿؟"):
        return None
    line = fold(_EMOTICON.sub(" ok ", text)).replace("'", "").replace("’", "")
    line = " ".join(_LETTERS.findall(RUN.sub(r" \g<0> ", line)))
    at, meant = 0, False
    while at < len(line):
        found = _acknowledging().match(line, at)
        if not found:
            return None
        at, meant = found.end(), meant or found.lastgroup == "meant"
    return _Skipped("acknowledgement", "it is only an acknowledgement", text) if meant else None


@cache
def _acknowledging() -> re.Pattern[str]:
    """The next words, or letters of a script without spaces, that acknowledge or may stand beside."""
    meant = _stretched(cues.ACKNOWLEDGED_SPACED, cues.ACKNOWLEDGED_UNSPACED)
    beside = _stretched(cues.BESIDE_SPACED, cues.BESIDE_UNSPACED)
    return re.compile(f"(?P<meant>{meant})|(?:{beside})")


def _stretched(spaced: str, unspaced: str) -> str:
    """Each letter may be said longer: "thaaanks", "はーい"."""
    words = map(_longer, _longest_first(_listed(spaced)))
    runs = map(_longer, _longest_first(map(fold, unspaced.split("|"))))
    return rf"(?:{'|'.join(words)})(?: |\Z)|(?:{'|'.join(runs)})[ーっッ]* ?"


def _longer(phrase: str) -> str:
    return "".join(" " if letter == " " else f"{letter}+" for letter in phrase)


# Cues.

_FENCED = re.compile(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_QUOTED = re.compile(r"^[ \t]{0,3}>.*$", re.MULTILINE)


def _memory(text: str, names: Collection[str]) -> str:
    said = _spoken(text)
    return _first(_remembering(), said) or _known(said, names)


def _spoken(text: str) -> str:
    return _QUOTED.sub(" ", _FENCED.sub(" ", text))


def _known(said: str, names: Collection[str]) -> str:
    """The first of `names` that is said and is not also a common word."""
    found = understand(said, names=names).names if names and said.strip() else ()
    return next((name for name in found if name.casefold() not in STOPWORDS), "")


def _first(pattern: re.Pattern[str], said: str) -> str:
    found = pattern.search(_comparable(said))
    if not found:
        return ""
    cue = " ".join(found[0].split())
    return _written().get(cue, cue)


def _comparable(text: str) -> str:
    return fold(text).replace("’", "'")


@cache
def _remembering() -> re.Pattern[str]:
    return _any_of(cues.MEMORY_SPACED, cues.MEMORY_UNSPACED)


@cache
def _personal() -> re.Pattern[str]:
    return _any_of(cues.PERSONAL_SPACED, cues.PERSONAL_UNSPACED)


@cache
def _technical_words() -> re.Pattern[str]:
    return _any_of(cues.TECHNICAL_SPACED, cues.TECHNICAL_UNSPACED)


@cache
def _weak_words() -> re.Pattern[str]:
    return _any_of(cues.WEAK_TECHNICAL_SPACED)


@cache
def _written() -> dict[str, str]:
    """Cues as people write them, by how they are compared."""
    lists = (cues.MEMORY_SPACED, cues.PERSONAL_SPACED, cues.TECHNICAL_SPACED)
    return {fold(phrase): phrase for listed in lists for phrase in _phrases(listed)}


def _any_of(spaced: str, unspaced: str = "") -> re.Pattern[str]:
    """Whole words, and no part of a path, an address or a name with a hyphen."""
    phrases = "|".join(re.escape(phrase).replace(r"\ ", r"\s+") for phrase in _longest_first(_listed(spaced)))
    words = rf"(?<![\w/\\@.-])(?:{phrases})(?![\w/\\@]|[.-]\w)"
    return re.compile(f"{words}|{unspaced}" if unspaced else words)


def _listed(spaced: str) -> Iterable[str]:
    return map(fold, _phrases(spaced))


def _phrases(spaced: str) -> list[str]:
    return [phrase for part in spaced.split(",") if (phrase := " ".join(part.split()))]


def _longest_first(phrases: Iterable[str]) -> list[str]:
    return sorted(dict.fromkeys(phrases), key=lambda phrase: (-len(phrase), phrase))


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


def _technical(text: str) -> str:
    """What makes it technical, for people; empty: nothing does."""
    if _CODE.search(text):
        return "it has code"
    word = _first(_technical_words(), text)
    if word:
        return f"it says “{word}”"
    weak = list(dict.fromkeys(found[0] for found in _weak_words().finditer(_comparable(text))))
    return f"it says “{weak[0]}” and “{weak[1]}”" if len(weak) > 1 else ""

"""What all extractors do alike: which turns they read, and how words become a line for a note.

What must stay true: a line is one line of plain text that cannot close a comment, begin a heading or a list,
or pass for something that tacit wrote itself. Words that could are not repaired, they are not taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from tacit.lifecycle.condense.asking import grounded
from tacit.lifecycle.cues import Noticed
from tacit.lifecycle.extract import told
from tacit.model.changes import Change, ChangeKind, Heard, Said, Source, Trust, lowest
from tacit.text import marks
from tacit.text.fence import one_line
from tacit.text.sentences import LONGEST, masked, says_enough, sentences, shortened
from tacit.text.transcript import slug

MEMORY = "knowledge/memory/MEMORY.md"
LOOKED_AT = 20_000  # characters of one turn
_NO_SENTENCE = 2 * LONGEST  # an answer with a text as long as that is none: it is asked for once more
_MOST_TURNS = 2_000  # the transcript has the others; a conversation that long is a log

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# A line that imitates a heading or an entry of a transcript was copied there: whose words follow is unknown.
_COPIED = re.compile(
    r"^ {0,3}\\{0,9}(?:#{1,6} (?:\d{4}-\d\d-\d\d )?\d\d:\d\d — |> \[\w{1,20}[:\]])", re.MULTILINE
)
# A mail that was pasted or forwarded: from its first line on nobody can tell whose words follow.
_MAIL = re.compile(
    r"^[ \t>*]*(?:(?:from|von|de)\**:\** [^\n]+\n(?:[^\n]*\n){0,3}?"
    r"[ \t>*]*(?:to|an|cc|subject|betreff|date|datum|sent|gesendet|reply-to)\**:"
    r"|-{2,} ?(?:original message|forwarded message|(?:ursprüngliche|weitergeleitete) nachricht)"
    r"|begin forwarded message:"
    r"|on [^\n]{5,100} wrote: *$|am [^\n]{5,100} schrieb[^\n]{0,80}: *$)",
    re.MULTILINE | re.IGNORECASE,
)
# A line of somebody's chat: `[09:14] Mallory: …`, `12/03/2026, 09:14 - Mallory: …`
_CHATTED = re.compile(
    r"^ {0,3}(?:\[(?:[0-9./-]{6,10},? )?[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?: ?[AP]M)?\]"
    r"|[0-9./-]{6,10},? [0-9]{1,2}:[0-9]{2}(?: ?[AP]M)? [-–]) ?[^\s:][^:\n]{0,40}: .*",
    re.MULTILINE,
)
_QUOTED = re.compile(r"^ {0,3}>.*", re.MULTILINE)
_NOTED = re.compile(r"^ {0,3}[-*+] \d{4}-\d\d-\d\d: .*", re.MULTILINE)
_DATED = re.compile(r"\d{4}-\d\d-\d\d: +")
_LEADING = re.compile(r"(?:(?:#{1,6}|>{1,9}|[-*+•|]|\d{1,9}[.)]|\[[ xX]\])(?:\s+|\Z))+")
_FENCE = re.compile(r"```|~~~")
_NO_NAME = frozenset({"con", "prn", "aux", "nul", "index", "session"})  # of a file, on some system or for us


# Reading


def turns_of(heard: Heard) -> Iterator[Said]:
    """What people and the agent said, without comments; of tools and the system nothing."""
    for said in heard.said[:_MOST_TURNS]:
        if said.role in ("user", "agent"):
            yield said


def words_of(said: Said) -> str:
    """What rules read of a turn."""
    return own_words(said.text[:LOOKED_AT])


@lru_cache(maxsize=256)  # the extractors read the same turns one after the other
def own_words(text: str) -> str:
    """What may be read of a turn: no comments, no quotations, no lines that were copied from a note or a
    chat, and nothing from a pasted mail on. Those are somebody else's words, whoever brings them."""
    if "<!--" in text:
        text = _COMMENT.sub(" ", "\n".join(line for line in text.split("\n") if not marks.read(line)[1]))
    for pasted in (_COPIED, _MAIL):
        found = pasted.search(text)
        text = text[: found.start()] if found else text
    for copied in (_NOTED, _CHATTED, _QUOTED):
        text = copied.sub("", text)
    return text


def sentences_of(said: Said) -> Iterator[str]:
    """Those that say enough to be worth a look."""
    return iter(_sentences(words_of(said)))


@lru_cache(maxsize=256)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(sentence for sentence in sentences(text) if says_enough(sentence))


def told_in(said: Said) -> tuple[tuple[Noticed, str], ...]:
    """Sentences that say they are decisions, lessons or events."""
    return told(words_of(said), by_agent=said.role == "agent")


@lru_cache(maxsize=2048)
def plain(sentence: str) -> str:
    """As wordings are looked for in it: what is quoted or code is not seen."""
    return masked(sentence)


# Writing


def line_of(text: str) -> str:
    """The text as it may stand in a note; empty if it may not."""
    text = one_line(text).replace("**", "")
    text = text[found.end() :] if (found := _LEADING.match(text)) else text
    text = text[found.end() :] if (found := _DATED.match(text)) else text
    if "<!--" in text or "-->" in text or _FENCE.match(text) or marks.is_superseded(text):
        return ""
    return text if any(map(str.isalnum, text)) else ""


def note_name(words: str) -> str:
    """A file name from words of a person or a model; empty if there is none in them."""
    name = slug(words) if any(map(str.isalnum, words[:400])) else ""
    return f"{name}-note" if name in _NO_NAME else name


def day_of(said: Said, heard: Heard) -> str:
    return said.at.date().isoformat() if said.at else heard.day


def change(
    heard: Heard,
    said: Said,
    text: str,
    to: tuple[str, str | None],
    kind: ChangeKind,
    extractor: str,
    trust: Trust | None = None,
) -> Iterator[Change]:
    """The line for the note and section `to`, or nothing where the text is no line."""
    line = shortened(line_of(text))
    if not line:
        return
    at = said.at.isoformat() if said.at else ""
    source = Source(heard.session_key, said.number, said.role, said.speaker, at, heard.transcript)
    path, section = to
    yield Change(path, section, line, day_of(said, heard), kind, source, trust or said.trust, extractor)


# Models


def schema(**more: str) -> Mapping[str, Any]:
    """Of one item. `more`: further fields that may be there, each with what it is."""
    fields: dict[str, Any] = {
        "text": {
            "type": "string",
            "description": f"one sentence, at most {LONGEST} characters",
            "maxLength": _NO_SENTENCE,
        },
        "turn": {"type": "integer", "description": "number of the turn that says it"},
        **{name: {"type": "string", "description": about} for name, about in more.items()},
    }
    return {
        "type": "object",
        "properties": fields,
        "required": ["text", "turn"],
        "additionalProperties": False,
    }


def answered(item: Mapping[str, Any], said: Sequence[Said]) -> tuple[Said, str, Trust] | None:
    """The turn that an item is from, its text, and how far it is trusted: no more than anything that the
    model was shown. None for an item that is from no such turn, is no line, or says what neither that turn
    nor the ones beside it say."""
    at = next((at for at, one in enumerate(said) if one.number == item.get("turn")), None)
    text = line_of(field(item, "text"))
    if at is None or not text or len(text) > LONGEST:
        return None
    if not grounded(text, [own_words(one.text) for one in said[max(0, at - 1) : at + 2]]):
        return None
    return said[at], text, lowest(one.trust for one in said)


def field(item: Mapping[str, Any], name: str) -> str:
    """A field of an answer, on one line; empty where it is something other than text."""
    value = item.get(name)
    return one_line(value) if isinstance(value, str) else ""

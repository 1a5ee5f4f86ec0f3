"""What an extractor is, and what all of them share: which turns they read, and how words become a line.

Users add their own through the entry point `tacit.extractors`.

What must stay true: a line is one line of plain text that cannot close a comment, begin a heading or a list,
or look like something that tacit wrote itself. Text that could is rejected, not repaired.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tacit.learn.model import Change, ChangeKind, Known, Source
from tacit.learn.model_answers import is_grounded
from tacit.learn.patterns import StatementKind, find_statements
from tacit.markdown import comment
from tacit.markdown.comment import Trust, lowest
from tacit.privacy.delimiters import to_one_line
from tacit.text.lines import scan
from tacit.text.sentences import (
    MAX_SENTENCE_CHARS,
    is_informative,
    mask_quotes,
    shorten_sentence,
    split_sentences,
)
from tacit.transcripts.attribution import AttributedTranscript, Utterance
from tacit.transcripts.format import make_slug

MAX_TURN_CHARS = 20_000  # characters of one turn
_MAX_ANSWER_CHARS = (
    2 * MAX_SENTENCE_CHARS
)  # a longer text makes the answer invalid, and it is requested once more
_MAX_TURNS = 2_000  # the transcript has the others; a conversation that long is a log

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# A line that imitates a heading or an entry of a transcript was copied: it is unknown who wrote the rest.
_COPIED_TRANSCRIPT = re.compile(
    r"^ {0,3}\\{0,9}(?:#{1,6} (?:\d{4}-\d\d-\d\d )?\d\d:\d\d — |> \[\w{1,20}[:\]])", re.MULTILINE
)
# A pasted or forwarded mail: from its first line on the author of the text is unknown.
_MAIL = re.compile(
    r"^[ \t>*]*(?:(?:from|von|de)\**:\** [^\n]+\n(?:[^\n]*\n){0,3}?"
    r"[ \t>*]*(?:to|an|cc|subject|betreff|date|datum|sent|gesendet|reply-to)\**:"
    r"|-{2,} ?(?:original message|forwarded message|(?:ursprüngliche|weitergeleitete) nachricht)"
    r"|begin forwarded message:"
    r"|on [^\n]{5,100} wrote: *$|am [^\n]{5,100} schrieb[^\n]{0,80}: *$)",
    re.MULTILINE | re.IGNORECASE,
)
# A line of a chat: `[09:14] Mallory: …`, `12/03/2026, 09:14 - Mallory: …`
_CHAT_LINE = re.compile(
    r"^ {0,3}(?:\[(?:[0-9./-]{6,10},? )?[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?: ?[AP]M)?\]"
    r"|[0-9./-]{6,10},? [0-9]{1,2}:[0-9]{2}(?: ?[AP]M)? [-–]) ?[^\s:][^:\n]{0,40}: .*",
    re.MULTILINE,
)
_QUOTE_LINE = re.compile(r"^ {0,3}>.*", re.MULTILINE)
_NOTE_LINE = re.compile(r"^ {0,3}[-*+] \d{4}-\d\d-\d\d: .*", re.MULTILINE)
_DATE_PREFIX = re.compile(r"\d{4}-\d\d-\d\d: +")
_LEADING = re.compile(r"(?:(?:#{1,6}|>{1,9}|[-*+•|]|\d{1,9}[.)]|\[[ xX]\])(?:\s+|\Z))+")
_FENCE = re.compile(r"```|~~~")
_NO_NAME = frozenset({"con", "prn", "aux", "nul", "index", "session"})  # of a file, on some system or for us
_LIST_ITEM = re.compile(r" {0,8}(?:(?P<number>[0-9]{1,3})[.)]|[-*+•])\s+(?:\[[ xX]\]\s+)?(?P<text>\S.*)")
_TABLE_RULE = re.compile(r"[\s|:-]+\Z")
_MIN_ROWS, _MAX_ROWS = 2, 40  # items or rows
_MAX_CELLS = 8


class Extractor(NamedTuple):
    """Extracts lines for notes from one conversation. Both ways give the same lines for the same words.

    `by_rules` needs no model. `by_model` turns one item of a model's answer, valid against `schema`, into
    lines; `turns` are those that the model was shown, all of one trust. Neither reads files or the clock.
    """

    name: str  # also its category, which selects the review policy for its lines
    version: int  # a new number means that the same conversation gives different lines
    by_rules: Callable[[AttributedTranscript, Known], Iterable[Change]]
    prompt: str  # for the model: what to look for
    schema: Mapping[str, Any]  # JSON schema of one item; the answer is {"items": [...]}
    by_model: Callable[
        [Mapping[str, Any], AttributedTranscript, tuple[Utterance, ...], Known], Iterable[Change]
    ]

    @property
    def label(self) -> str:
        """Its name in provenance comments."""
        return f"{self.name}/{self.version}"


# Turns and their words


def spoken_turns(conversation: AttributedTranscript) -> Iterator[Utterance]:
    """The turns of people and the agent, without tools and the system."""
    for turn in conversation.said[:_MAX_TURNS]:
        if turn.role in ("user", "agent"):
            yield turn


def turn_words(turn: Utterance) -> str:
    """The text of a turn that the rules read."""
    return strip_quotes(turn.text[:MAX_TURN_CHARS])


@lru_cache(maxsize=256)  # the extractors read the same turns one after the other
def strip_quotes(text: str) -> str:
    """The speaker's own words: without comments, quotations, lines copied from a note or a chat, and
    everything from a pasted mail on. Those are the words of others."""
    if "<!--" in text:
        text = _COMMENT.sub(" ", "\n".join(line for line in text.split("\n") if not comment.read(line)[1]))
    for pattern in (_COPIED_TRANSCRIPT, _MAIL):
        match = pattern.search(text)
        text = text[: match.start()] if match else text
    for line_pattern in (_NOTE_LINE, _CHAT_LINE, _QUOTE_LINE):
        text = line_pattern.sub("", text)
    return text


def turn_sentences(turn: Utterance) -> Iterator[str]:
    """The sentences that say enough to be considered."""
    return iter(_sentences(turn_words(turn)))


@lru_cache(maxsize=256)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(sentence for sentence in split_sentences(text) if is_informative(sentence))


def turn_statements(turn: Utterance) -> tuple[tuple[StatementKind, str], ...]:
    """Sentences that say they are decisions, lessons or events."""
    return find_statements(turn_words(turn), by_agent=turn.role == "agent")


@lru_cache(maxsize=2048)
def mask_sentence_quotes(sentence: str) -> str:
    """The sentence with quotes and code masked, for matching patterns."""
    return mask_quotes(sentence)


# Lists and tables in a message


class MessageList(NamedTuple):
    title: str  # the line above it, without its colon; empty if that line has none
    items: tuple[str, ...]
    is_numbered: bool


class MessageTable(NamedTuple):
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def find_lists(text: str) -> Iterator[MessageList]:
    """Lists of two items or more. Of items with several lines only the first line is read."""
    title, items, is_numbered = "", list[str](), True
    for line in scan(text):
        match = _LIST_ITEM.fullmatch(line.text) if line.kind == "text" else None
        if match:
            items.append(match["text"].strip())
            is_numbered = is_numbered and match["number"] is not None
        elif items and line.kind == "text" and line.text.startswith(" "):
            continue  # a continuation line
        elif line.kind != "blank":
            yield from _make_list(title, items, is_numbered)
            title, items, is_numbered = _title_of(line.text), [], True
    yield from _make_list(title, items, is_numbered)


def _make_list(title: str, items: list[str], is_numbered: bool) -> Iterator[MessageList]:
    if _MIN_ROWS <= len(items) <= _MAX_ROWS:
        yield MessageList(title, tuple(items), is_numbered)


def _title_of(line: str) -> str:
    line = line.strip()
    return line[:-1].strip() if line.endswith((":", "：")) else ""


def find_tables(text: str) -> Iterator[MessageTable]:
    title, above, rows = "", "", list[tuple[str, ...]]()
    for line in scan(text):
        is_row = line.kind == "text" and line.text.lstrip().startswith("|")
        if is_row and len(line.text) < 1_000:
            rows.append(_split_cells(line.text))
            continue
        yield from _make_table(title, rows)
        rows = []
        above = line.text if line.kind != "blank" else above
        title = _title_of(above)
    yield from _make_table(title, rows)


def _split_cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|")[:_MAX_CELLS])


def _make_table(title: str, rows: list[tuple[str, ...]]) -> Iterator[MessageTable]:
    if len(rows) > 2 and all(_TABLE_RULE.match(cell) for cell in rows[1]) and len(rows) <= _MAX_ROWS + 2:
        yield MessageTable(title, rows[0], tuple(rows[2:]))


# Lines of a note


def clean_line(text: str) -> str:
    """The text as a line of a note; empty if it cannot be one."""
    text = to_one_line(text).replace("**", "")
    text = text[match.end() :] if (match := _LEADING.match(text)) else text
    text = text[match.end() :] if (match := _DATE_PREFIX.match(text)) else text
    if "<!--" in text or "-->" in text or _FENCE.match(text) or comment.is_superseded(text):
        return ""
    return text if any(map(str.isalnum, text)) else ""


def note_name(words: str) -> str:
    """A file name from the words of a person or a model; empty if they give none."""
    name = make_slug(words) if any(map(str.isalnum, words[:400])) else ""
    return f"{name}-note" if name in _NO_NAME else name


def turn_day(turn: Utterance, conversation: AttributedTranscript) -> str:
    return turn.at.date().isoformat() if turn.at else conversation.day


def make_change(
    conversation: AttributedTranscript,
    turn: Utterance,
    text: str,
    to: tuple[str, str | None],
    kind: ChangeKind,
    trust: Trust | None = None,
) -> Iterator[Change]:
    """The line for the note and section `to`, or nothing if the text cannot be a line."""
    line = shorten_sentence(clean_line(text))
    if not line:
        return
    timestamp = turn.at.isoformat() if turn.at else ""
    source = Source(
        conversation.session_key, turn.number, turn.role, turn.speaker, timestamp, conversation.transcript
    )
    path, section = to
    yield Change(path, section, line, turn_day(turn, conversation), kind, source, trust or turn.trust)


# Answers of a model


def item_schema(**more: str) -> Mapping[str, Any]:
    """JSON schema of one item. `more`: optional fields with their descriptions."""
    fields: dict[str, Any] = {
        "text": {
            "type": "string",
            "description": f"one sentence, at most {MAX_SENTENCE_CHARS} characters",
            "maxLength": _MAX_ANSWER_CHARS,
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


def parse_answer(item: Mapping[str, Any], turns: Sequence[Utterance]) -> tuple[Utterance, str, Trust] | None:
    """The turn that an item comes from, its text, and its trust: the lowest of all that the model was shown.
    None if there is no such turn, if the text is not a line, or if neither that turn nor its neighbors say
    it."""
    index = next((index for index, turn in enumerate(turns) if turn.number == item.get("turn")), None)
    text = clean_line(text_field(item, "text"))
    if index is None or not text or len(text) > MAX_SENTENCE_CHARS:
        return None
    if not is_grounded(text, [strip_quotes(turn.text) for turn in turns[max(0, index - 1) : index + 2]]):
        return None
    return turns[index], text, lowest(turn.trust for turn in turns)


def text_field(item: Mapping[str, Any], name: str) -> str:
    """A field of an answer, on one line; empty if it is not text."""
    value = item.get(name)
    return to_one_line(value) if isinstance(value, str) else ""

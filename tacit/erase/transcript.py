"""Erase a text from a transcript: the format stays, and checksums and token counts are updated.

What must stay true: a valid transcript stays valid; a message whose checksum was wrong before still has a
wrong one afterwards, since forgetting must not hide that it was modified.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

from tacit.erase.spellings import PLACEHOLDER, PLACEHOLDER_WORD, TextEraser
from tacit.errors import StoreError
from tacit.markdown import escape, notes
from tacit.markdown.notes import Note
from tacit.markdown.records import HEADING, checksum
from tacit.transcripts import format as form
from tacit.transcripts.model import Attachment, KnowledgeChange, Message, ToolCall, Turn

CountTokens = Callable[[Sequence[Turn]], tuple[int, int]]
EraseText = Callable[[str, str], str]  # a text, and the placeholder for the erased part

_CHECKSUM_LINE = re.compile(
    r"^<!-- (?:(\d{1,18}) (\S{1,20}) ([0-9a-f]{8})|torn) -->(\r?)\n", re.MULTILINE | re.ASCII
)
_ENTRY_LINE = re.compile(r"^(> \[(?:tool|knowledge|attachment):)([^\]\n]*)(\].*)$", re.DOTALL)
_TITLE_LINE = re.compile(r"(\r?\n?# )([^\r\n]*)")
_ANY_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FIELD_LINE = re.compile(r"(\s*(?:- )?\w+:(?=\s)|---)?(.*)", re.DOTALL)
_FIXED_FIELDS = frozenset({"marks", "utc_offset"})
_NAME_FIELDS = frozenset(
    {"session_id", "session_key", "agent", "channel", "model", "continues", "path", "action"}
)


def redact(data: bytes, path: str, erase: EraseText, *, turns: bool, count: CountTokens) -> bytes:
    """`turns`: remove the whole turn that contains the text, not only the text."""
    old = notes.parse(notes.decode(data), path)
    title, rest = _split_title(old.body)
    has_checksums = "\nmarks: crc32" in old.head
    body = (
        _erase_records(rest, erase, turns, title != "")
        if has_checksums
        else _erase_content(rest, erase, turns)
    )
    before, after = _parse_turns(old.head + title + rest, path), _parse_turns(old.head + title + body, path)
    new_title = _rewrite_title(title, before, after, erase)
    fields = _erase_fields(old.fields, erase)
    if escape.restore_characters(_title_text(title)) == old.fields.get("topic") and new_title != title:
        fields["topic"] = escape.restore_characters(_title_text(new_title))
    if before != after and _token_counts(old.fields) == count(before):
        fields |= dict(zip(("tokens_in", "tokens_out"), count(after), strict=True))
    return notes.encode(_rewrite_head(old, fields, erase) + new_title + body)


def choose_path(path: str, before: bytes, after: bytes, words: TextEraser) -> str:
    """The transcript's new path: its name contains the beginning of the first message."""
    old, new = form.parse(notes.decode(before), path), form.parse(notes.decode(after), path)
    old_path = PurePosixPath(path)
    identifier = words.erase_text(str(old.fields.get("session_id", "")), PLACEHOLDER_WORD)
    begin, rest = _split_name(old_path.stem, str(old.fields.get("session_id", "")))
    if begin and identifier != old.fields.get("session_id"):
        begin = f"{begin[:5]}{form.safe_name(identifier)}-"
    name, number = _split_number(rest, form.make_slug(hint_of(old.turns)))
    if name == form.make_slug(hint_of(old.turns)):
        rest = form.make_slug(hint_of(new.turns)) + number
    rest = re.sub(rf"(?<![^\W_]){re.escape(words.slug)}(?![^\W_])", PLACEHOLDER_WORD, words.rename(rest))
    return str(old_path.with_name(words.rename(begin) + rest + old_path.suffix))


def slug_of(data: bytes, path: str) -> str:
    """The slug in the name and commit of the transcript."""
    return form.make_slug(hint_of(_parse_turns(notes.decode(data), path)))


def hint_of(turns: Sequence[Turn]) -> str:
    """The text that title and name of a transcript are made from."""
    match turns[:1]:
        case [Message() as message]:
            return message.text
        case [ToolCall() as call]:
            return f"{call.name} {call.summary}"
        case [KnowledgeChange() | Attachment() as reference]:
            return reference.path
    return ""


def _parse_turns(text: str, path: str) -> tuple[Turn, ...]:
    return form.parse(text, path).turns


def _token_counts(fields: Mapping[str, object]) -> tuple[object, object]:
    return fields.get("tokens_in"), fields.get("tokens_out")


def _split_name(stem: str, session_id: str) -> tuple[str, str]:
    begin = re.match(rf"\d{{4}}-{re.escape(form.safe_name(session_id))}-", stem)
    return (begin[0], stem[begin.end() :]) if begin else ("", stem)


def _split_number(rest: str, name: str) -> tuple[str, str]:
    """Split off the -2 of a second transcript with the same name."""
    match = re.fullmatch(rf"({re.escape(name)})(-\d+)", rest)
    return (match[1], match[2]) if match else (rest, "")


# ---------------------------------------------------------------- title and head


def _split_title(body: str) -> tuple[str, str]:
    match = _TITLE_LINE.match(body)
    end = match.end() if match else 0
    return body[:end], body[end:]


def _title_text(title: str) -> str:
    match = _TITLE_LINE.match(title)
    return match[2] if match else ""


def _rewrite_title(title: str, before: Sequence[Turn], after: Sequence[Turn], erase: EraseText) -> str:
    match = _TITLE_LINE.match(title)
    if match is None:
        return title
    old_hint, new_hint = hint_of(before), hint_of(after)
    if old_hint != new_hint and match[2] == form.make_title(old_hint):
        return match[1] + form.make_title(new_hint)
    return match[1] + erase(match[2], PLACEHOLDER)


def _erase_fields(fields: Mapping[str, object], erase: EraseText) -> dict[str, object]:
    """The fields that contain the text, without it."""
    new = {key: _erase_value(value, key, erase) for key, value in fields.items() if key not in _FIXED_FIELDS}
    return {key: value for key, value in new.items() if value != fields[key]}


def _erase_value(value: object, key: str, erase: EraseText) -> object:
    if isinstance(value, str):
        return erase(value, PLACEHOLDER_WORD if key in _NAME_FIELDS else PLACEHOLDER)
    if isinstance(value, list):
        return [_erase_value(item, key, erase) for item in value]
    if isinstance(value, dict):
        return {name: _erase_value(item, name, erase) for name, item in value.items()}
    return value


def _rewrite_head(note: Note, fields: Mapping[str, object], erase: EraseText) -> str:
    try:
        head = notes.set_fields(note, fields).head
    except StoreError:
        head = note.head
    return "".join(_erase_head_line(line, erase) for line in _ANY_LINE.findall(head))


def _erase_head_line(line: str, erase: EraseText) -> str:
    """Erase only from values: the field names are fixed."""
    match = _FIELD_LINE.fullmatch(line)
    if match is None or line.startswith("marks:"):
        return line
    return (match[1] or "") + erase(match[2], PLACEHOLDER_WORD)


# ---------------------------------------------------------------- messages


def _erase_records(text: str, erase: EraseText, turns: bool, has_title: bool) -> str:
    position = text.find("\n") + 1 if has_title else 0  # messages begin on the line after the title
    pieces = [text[:position]]
    for match in _CHECKSUM_LINE.finditer(text, position):
        old = text[position : match.start()]
        new = _erase_content(old, erase, turns)
        pieces += [new, match[0] if new == old else _update_checksum(match, old, new)]
        position = match.end()
    return "".join([*pieces, _erase_content(text[position:], erase, turns)])


def _update_checksum(match: re.Match[str], old: str, new: str) -> str:
    if match[3] is None:
        return match[0]
    old_text, new_text = (side.replace("\r\n", "\n") if match[4] else side for side in (old, new))
    return match[0].replace(match[3], checksum(new_text)) if checksum(old_text) == match[3] else match[0]


def _erase_content(text: str, erase: EraseText, turns: bool) -> str:
    """Headings and one-line entries keep their format; everything between them is message text."""
    pieces: list[str] = []
    text_lines: list[str] = []
    for line in _ANY_LINE.findall(text):
        bare = line.rstrip("\r\n")
        heading, entry = HEADING.match(bare), _ENTRY_LINE.match(bare)
        if heading is None and entry is None:
            text_lines.append(line)
            continue
        pieces.append(_erase_text("".join(text_lines), erase, turns))
        text_lines = []
        ending = line[len(bare) :]
        pieces.append(
            (_erase_heading(heading, erase) if heading else _erase_entry(bare, erase, turns)) + ending
        )
    return "".join([*pieces, _erase_text("".join(text_lines), erase, turns)])


def _erase_text(text: str, erase: EraseText, turns: bool) -> str:
    new = erase(text, PLACEHOLDER)
    if turns and new != text:
        inner = text.strip()
        start = text.index(inner)
        return text[:start] + PLACEHOLDER + text[start + len(inner) :]
    return new


def _erase_heading(heading: re.Match[str], erase: EraseText) -> str:
    if heading["speaker"] is None:
        return heading[0]
    start, end = heading.span("speaker")
    return heading.string[:start] + erase(heading["speaker"], PLACEHOLDER) + heading.string[end:]


def _erase_entry(line: str, erase: EraseText, turns: bool) -> str:
    match = _ENTRY_LINE.match(line)
    assert match is not None
    begin, name, rest = match.groups()
    new = begin + erase(name, PLACEHOLDER_WORD) + erase(rest, PLACEHOLDER)
    if not turns or new == line:
        return new
    if "attachment" in begin:
        return f"{begin}{PLACEHOLDER_WORD}]"
    return f"{begin}{erase(name, PLACEHOLDER_WORD)}] {PLACEHOLDER}"

"""A transcript without a text: the same form, with marks and counts that fit again.

What must stay true: of a transcript that reads well, the new one reads well too; a record that did not fit
its mark before does not fit it afterwards, since forgetting must not hide that somebody touched it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

from tacit.errors import StoreError
from tacit.model.notes import Note
from tacit.model.turns import Attachment, KnowledgeChange, Message, ToolCall, Turn
from tacit.store.forgetting.words import SHOWN, WORD, Words
from tacit.text import escape, notes
from tacit.text import transcript as form

Count = Callable[[Sequence[Turn]], tuple[int, int]]
Erase = Callable[[str, str], str]  # a text, and what stands in it instead of what is forgotten

_MARK = re.compile(r"^<!-- (?:(\d{1,18}) (\S{1,20}) ([0-9a-f]{8})|torn) -->(\r?)\n", re.MULTILINE | re.ASCII)
_ENTRY = re.compile(r"^(> \[(?:tool|knowledge|attachment):)([^\]\n]*)(\].*)$", re.DOTALL)
_TITLE = re.compile(r"(\r?\n?# )([^\r\n]*)")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_KEY = re.compile(r"(\s*(?:- )?\w+:(?=\s)|---)?(.*)", re.DOTALL)
_STRUCTURE = frozenset({"marks", "utc_offset"})
_NAMES = frozenset({"session_id", "session_key", "agent", "channel", "model", "continues", "path", "action"})


def redacted(data: bytes, path: str, erase: Erase, *, turns: bool, count: Count) -> bytes:
    """`turns`: all of a turn in which it stands goes, not only the text."""
    old = notes.parse(notes.decode(data), path)
    title, rest = _split_title(old.body)
    marked = "\nmarks: crc32" in old.head
    body = _records(rest, erase, turns, title != "") if marked else _content(rest, erase, turns)
    before, after = _turns(old.head + title + rest, path), _turns(old.head + title + body, path)
    new_title = _retitled(title, before, after, erase)
    fields = _fields(old.fields, erase)
    if escape.restore_characters(_said(title)) == old.fields.get("topic") and new_title != title:
        fields["topic"] = escape.restore_characters(_said(new_title))
    if before != after and _counts(old.fields) == count(before):
        fields |= dict(zip(("tokens_in", "tokens_out"), count(after), strict=True))
    return notes.encode(_with_head(old, fields, erase) + new_title + body)


def new_path(path: str, before: bytes, after: bytes, words: Words) -> str:
    """Where the transcript belongs now: its name has the beginning of what was said in it."""
    old, new = form.parse(notes.decode(before), path), form.parse(notes.decode(after), path)
    place = PurePosixPath(path)
    identifier = words.erased_text(str(old.fields.get("session_id", "")), WORD)
    begin, rest = _name_parts(place.stem, str(old.fields.get("session_id", "")))
    if begin and identifier != old.fields.get("session_id"):
        begin = f"{begin[:5]}{form.safe_name(identifier)}-"
    name, number = _without_number(rest, form.slug(hint_of(old.turns)))
    if name == form.slug(hint_of(old.turns)):
        rest = form.slug(hint_of(new.turns)) + number
    rest = re.sub(rf"(?<![^\W_]){re.escape(words.slug)}(?![^\W_])", WORD, words.renamed(rest))
    return str(place.with_name(words.renamed(begin) + rest + place.suffix))


def slug_of(data: bytes, path: str) -> str:
    """As the name and the commit of the transcript have it."""
    return form.slug(hint_of(_turns(notes.decode(data), path)))


def hint_of(turns: Sequence[Turn]) -> str:
    """What title and name of a transcript are made from."""
    match turns[:1]:
        case [Message() as said]:
            return said.text
        case [ToolCall() as call]:
            return f"{call.name} {call.summary}"
        case [KnowledgeChange() | Attachment() as named]:
            return named.path
    return ""


def _turns(text: str, path: str) -> tuple[Turn, ...]:
    return form.parse(text, path).turns


def _counts(fields: Mapping[str, object]) -> tuple[object, object]:
    return fields.get("tokens_in"), fields.get("tokens_out")


def _name_parts(stem: str, session_id: str) -> tuple[str, str]:
    begin = re.match(rf"\d{{4}}-{re.escape(form.safe_name(session_id))}-", stem)
    return (begin[0], stem[begin.end() :]) if begin else ("", stem)


def _without_number(rest: str, name: str) -> tuple[str, str]:
    """A second transcript of the same name has -2 behind it."""
    found = re.fullmatch(rf"({re.escape(name)})(-\d+)", rest)
    return (found[1], found[2]) if found else (rest, "")


# ---------------------------------------------------------------- title and head


def _split_title(body: str) -> tuple[str, str]:
    found = _TITLE.match(body)
    end = found.end() if found else 0
    return body[:end], body[end:]


def _said(title: str) -> str:
    found = _TITLE.match(title)
    return found[2] if found else ""


def _retitled(title: str, before: Sequence[Turn], after: Sequence[Turn], erase: Erase) -> str:
    found = _TITLE.match(title)
    if found is None:
        return title
    was, now = hint_of(before), hint_of(after)
    if was != now and found[2] == form.title(was):
        return found[1] + form.title(now)
    return found[1] + erase(found[2], SHOWN)


def _fields(fields: Mapping[str, object], erase: Erase) -> dict[str, object]:
    """Those that hold the text, without it."""
    new = {key: _value(value, key, erase) for key, value in fields.items() if key not in _STRUCTURE}
    return {key: value for key, value in new.items() if value != fields[key]}


def _value(value: object, key: str, erase: Erase) -> object:
    if isinstance(value, str):
        return erase(value, WORD if key in _NAMES else SHOWN)
    if isinstance(value, list):
        return [_value(item, key, erase) for item in value]
    if isinstance(value, dict):
        return {name: _value(item, name, erase) for name, item in value.items()}
    return value


def _with_head(note: Note, fields: Mapping[str, object], erase: Erase) -> str:
    try:
        head = notes.with_fields(note, fields).head
    except StoreError:
        head = note.head
    return "".join(_head_line(line, erase) for line in _LINE.findall(head))


def _head_line(line: str, erase: Erase) -> str:
    """Names of fields are ours and say nothing."""
    found = _KEY.fullmatch(line)
    if found is None or line.startswith("marks:"):
        return line
    return (found[1] or "") + erase(found[2], WORD)


# ---------------------------------------------------------------- records


def _records(text: str, erase: Erase, turns: bool, titled: bool) -> str:
    position = text.find("\n") + 1 if titled else 0  # a record begins on the line after the title
    pieces = [text[:position]]
    for mark in _MARK.finditer(text, position):
        old = text[position : mark.start()]
        new = _content(old, erase, turns)
        pieces += [new, mark[0] if new == old else _marked(mark, old, new)]
        position = mark.end()
    return "".join([*pieces, _content(text[position:], erase, turns)])


def _marked(mark: re.Match[str], old: str, new: str) -> str:
    if mark[3] is None:
        return mark[0]
    was, now = (side.replace("\r\n", "\n") if mark[4] else side for side in (old, new))
    return mark[0].replace(mark[3], form.checksum(now)) if form.checksum(was) == mark[3] else mark[0]


def _content(text: str, erase: Erase, turns: bool) -> str:
    """Headings and one-line entries keep their form; all that stands between two of them was said."""
    pieces: list[str] = []
    said: list[str] = []
    for line in _LINE.findall(text):
        bare = line.rstrip("\r\n")
        heading, entry = form.HEADING.match(bare), _ENTRY.match(bare)
        if heading is None and entry is None:
            said.append(line)
            continue
        pieces.append(_spoken("".join(said), erase, turns))
        said = []
        ending = line[len(bare) :]
        pieces.append((_heading(heading, erase) if heading else _entry(bare, erase, turns)) + ending)
    return "".join([*pieces, _spoken("".join(said), erase, turns)])


def _spoken(text: str, erase: Erase, turns: bool) -> str:
    new = erase(text, SHOWN)
    if turns and new != text:
        inner = text.strip()
        at = text.index(inner)
        return text[:at] + SHOWN + text[at + len(inner) :]
    return new


def _heading(heading: re.Match[str], erase: Erase) -> str:
    if heading["speaker"] is None:
        return heading[0]
    start, end = heading.span("speaker")
    return heading.string[:start] + erase(heading["speaker"], SHOWN) + heading.string[end:]


def _entry(line: str, erase: Erase, turns: bool) -> str:
    found = _ENTRY.match(line)
    assert found is not None
    begin, name, rest = found.groups()
    new = begin + erase(name, WORD) + erase(rest, SHOWN)
    if not turns or new == line:
        return new
    if "attachment" in begin:
        return f"{begin}{WORD}]"
    return f"{begin}{erase(name, WORD)}] {SHOWN}"

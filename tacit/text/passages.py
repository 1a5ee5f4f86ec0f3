"""A file as a document: what it is, who may see it, and its passages with what surrounds each.

Words that answer a question often stand next to the passage and not in it ("Yes, on Tuesday."). So each
passage carries its neighbours for the lexical index; but only where all of them together are short: among
long passages the neighbours drown the passage itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import takewhile

from tacit.model.notes import Note
from tacit.model.problems import Problem
from tacit.model.search import Audience, Category, Document, Passage
from tacit.model.turns import Attachment, Message, ToolCall, Transcript, Turn
from tacit.text import marks, notes, ours, workspaces
from tacit.text import transcript as transcripts
from tacit.text.chunk import Chunk, pieces, unnamed
from tacit.text.frontmatter import names_in
from tacit.text.links import links_of, names_of
from tacit.text.restrictions import said_agents, said_audience

LIMIT = 1200  # characters of a passage
_GATHERED = 500  # short sections that follow each other share a passage up to this
_ABOVE = 300  # a heading may make the passage below it longer by this: alone it says nothing
_CROWD = 1500  # a passage and its neighbours, at most

_FOLDERS: Mapping[str, Category] = {
    "identity": "identity",
    "memory": "memory",
    "journal": "journal",
    "projects": "project",
    "people": "person",
    "procedures": "procedure",
    "reference": "reference",
    "conversations": "conversation",
    "topics": "topic",
}
_FOR_GROUPS = ("topics", "procedures", "reference")
_DAY = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")


def document(
    path: str,
    text: str,
    modified: date,
    agents: tuple[str, ...] = (),
    purged: Collection[int] = frozenset(),
) -> Document:
    """Read a file of the home, whatever is in it. `modified` is for notes that carry no date themselves.
    `agents`: whose it is, whatever it says itself. `purged`: records of a transcript that are left out."""
    if category_of(path) == "conversation":
        return _conversation(path, transcripts.parse(text, path), text, purged)
    return _note(path, text, modified, agents)


def category_of(path: str) -> Category:
    """By folder, below archive/ as well as outside it. What stands elsewhere is reference."""
    if workspaces.is_of_one(path):
        return workspaces.category_of(workspaces.split(path)[1])
    return _FOLDERS.get(_folder(path), "reference")


def _folder(path: str) -> str:
    parts = path.split("/")
    names = parts[1:] if parts[0] in ("archive", "raw", "knowledge") else parts
    return names[0] if len(names) > 1 else ""


def embedded_text(title: str, section: Sequence[str], speaker: str, text: str) -> str:
    """What an embedder gets to read: who said it, or under which headings it stands."""
    if speaker:
        return f"{speaker}: {text}"
    above = " > ".join(dict.fromkeys(part for part in (title, *section) if part and part not in text))
    return f"{above}\n{text}" if above else text


# Notes


def _note(path: str, text: str, modified: date, agents: tuple[str, ...] = ()) -> Document:
    note = notes.parse(text, path)
    fields = note.fields
    category = category_of(path)
    day = day_of(fields, path) or modified.isoformat()
    audience, problems = audience_of(note, path)
    # What one turn was given is no knowledge for the next, and what no longer holds is none for anybody.
    head, body = notes.split(ours.without_sections(text))
    written = head + marks.holding(body)
    parts = list(_parts(unnamed(written, LIMIT), _given_lines(text)))
    found = [chunk for part in parts for chunk in part]
    gathered = [chunk for part in parts for chunk in _gathered(part)]
    texts = [chunk.text for chunk in gathered]
    title = title_of(fields, found, path)
    return Document(
        path=path,
        category=category,
        audience=audience,
        agents=agents or said_agents(note),
        conversation="",
        archived=path.startswith("archive/"),
        title=title,
        day=day,
        tags=names_in(fields.get("tags")),
        lines=_lines(text),
        passages=tuple(
            Passage(chunk.text, chunk.start, chunk.end, chunk.section, day, "", 0, near)
            for chunk, near in zip(gathered, _near(texts, 1), strict=True)
        ),
        problems=(*note.problems, *problems),
        names=names_of(path, title, fields),
        links=links_of(path, written),
    )


def _given_lines(text: str) -> list[tuple[int, int]]:
    """The lines, first and last, of each section that the daily lane added."""
    found, line, at = [], 1, 0
    for begin, end in ours.sections(text):
        first = line + text.count("\n", at, begin)
        line, at = first + text.count("\n", begin, end), end
        found.append((first, line))
    return found


def _parts(found: Iterable[Chunk], given: Sequence[tuple[int, int]]) -> Iterator[list[Chunk]]:
    """The chunks between such sections: none reaches over one."""
    part: list[Chunk] = []
    waiting = list(given)
    for chunk in found:
        rest = chunk
        while waiting and rest.end > waiting[0][1]:
            first, last = waiting.pop(0)
            if rest.start < first:
                part.append(_lines_of(rest, rest.start, first - 1))
                rest = _lines_of(rest, last + 1, rest.end)
            yield part
            part = []
        if rest.text:  # else there was nothing but such sections behind it
            part.append(rest)
    yield part


def _lines_of(chunk: Chunk, first: int, last: int) -> Chunk:
    """Without blank ones at either end."""
    lines = chunk.text.split("\n")[first - chunk.start : last - chunk.start + 1]
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        first += 1
        lines.pop(0)
    return Chunk(chunk.id, chunk.section, first, first + len(lines) - 1, "\n".join(lines))


def _gathered(found: Iterable[Chunk]) -> Iterator[Chunk]:
    """Short sections one after the other in one passage: alone they say too little."""
    held: Chunk | None = None
    for chunk in found:
        if held is None:
            held = chunk
        elif _together(held, chunk) <= (LIMIT + _ABOVE if _is_heading(held.text) else _GATHERED):
            held = _joined(held, chunk)
        else:
            yield held
            held = chunk
    if held is not None:
        yield held


def _is_heading(text: str) -> bool:
    return all(line.lstrip(" ").startswith("#") or not line.strip() for line in text.split("\n"))


def _gap(one: Chunk, other: Chunk) -> int:
    return max(1, other.start - one.end)


def _together(one: Chunk, other: Chunk) -> int:
    return len(one.text) + _gap(one, other) + len(other.text)


def _joined(one: Chunk, other: Chunk) -> Chunk:
    both = takewhile(lambda pair: pair[0] == pair[1], zip(one.section, other.section, strict=False))
    text = one.text + "\n" * _gap(one, other) + other.text
    return Chunk(one.id, tuple(name for name, _ in both), one.start, other.end, text)


def title_of(fields: Mapping[str, object], found: Iterable[Chunk], path: str) -> str:
    named = fields.get("title") or fields.get("name")
    if isinstance(named, str) and named.strip():
        return named.strip()[:200]
    first = next((chunk.section[0] for chunk in found if chunk.section), "")
    name = path.rpartition("/")[2]
    return first or name.rpartition(".")[0] or name


def day_of(fields: Mapping[str, object], path: str) -> str:
    daily = workspaces.day_of(workspaces.split(path)[1])
    if daily and (day := _valid(_DAY.match(daily))):
        return day
    for key in ("updated", "date", "created"):
        value = fields.get(key)
        if isinstance(value, datetime):
            return value.date().isoformat()
        if isinstance(value, date):
            return value.isoformat()
        if isinstance(value, str) and (day := _valid(_DAY.match(value.strip()))):  # in quotes
            return day
    return _valid(_DAY.search(path.rpartition("/")[2]))


def _valid(found: re.Match[str] | None) -> str:
    try:
        return date(*map(int, found.groups())).isoformat() if found else ""
    except ValueError:
        return ""


def audience_of(note: Note, path: str) -> tuple[Audience, tuple[Problem, ...]]:
    _, inside = workspaces.split(path)
    if inside and workspaces.is_always_the_owners(inside):
        return "owner", ()
    folder = _folder(path)
    said, problems = said_audience(note, path)
    if folder == "memory" and said not in (None, "owner"):
        what = f"audience is {said!r}, but what is in knowledge/memory is the owner's alone."
        return "owner", (Problem(path, what, "Move it elsewhere, or remove the line.", level="warning"),)
    if said is not None:
        return said, problems
    if inside:
        return workspaces.audience_of(inside), ()
    if folder == "identity" and path.endswith("/SOUL.md"):
        return "anyone", ()
    return ("group" if folder in _FOR_GROUPS else "owner"), ()


# Conversations


def _conversation(path: str, transcript: Transcript, text: str, purged: Collection[int]) -> Document:
    fields = transcript.fields
    kept = [turn for turn in transcript.turns if turn.number not in purged]
    said = [(turn, piece) for turn in kept for piece in _said(turn)]
    nears = _near([piece.text for _, piece in said], 2)
    passages = tuple(
        Passage(
            piece.text,
            turn.line + piece.start,
            turn.line + piece.end,
            (),
            turn.at.date().isoformat(),
            _speaker(turn),
            turn.number,
            near,
        )
        for (turn, piece), near in zip(said, nears, strict=True)
    )
    return Document(
        path=path,
        category="conversation",
        audience="owner",
        agents=names_in(fields.get("agent")),
        conversation=str(fields.get("session_key") or ""),
        archived=path.startswith("archive/"),
        # The title is often what was said first.
        title=transcript.title if len(kept) == len(transcript.turns) else "",
        day=passages[0].day if passages else day_of(fields, path),
        tags=names_in(fields.get("tags")),
        lines=_lines(text),
        passages=passages,
        problems=transcript.problems,
    )


def _said(turn: Turn) -> Iterator[Chunk]:
    """The pieces of one record. Lines are counted from where it begins."""
    if isinstance(turn, Message):
        yield from pieces(turn.text, LIMIT)
    elif isinstance(turn, ToolCall):
        yield Chunk("", (), 0, 0, f"{turn.summary} → {turn.result}" if turn.result else turn.summary)
    elif isinstance(turn, Attachment):
        yield Chunk("", (), 0, 0, turn.path)


def _speaker(turn: Turn) -> str:
    if isinstance(turn, Message):
        return turn.speaker or turn.role
    return f"tool {turn.name}" if isinstance(turn, ToolCall) else "attachment"


# Both


def _lines(text: str) -> int:
    """As editors count them: what ends with a newline has no further line."""
    return text.count("\n") + (text[-1:] not in ("", "\n"))


def _near(texts: Sequence[str], reach: int) -> Iterator[tuple[int, int]]:
    """For each text the range of texts around it, itself included; only itself among long ones."""
    sizes = [len(text) for text in texts]
    for at in range(len(texts)):
        first, last = max(0, at - reach), min(len(texts), at + reach + 1)
        yield (first, last) if sum(sizes[first:last]) <= _CROWD else (at, at + 1)

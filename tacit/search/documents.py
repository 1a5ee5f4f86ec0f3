"""A file as a document: its category, who may see it, and its chunks with their surroundings.

Words that answer a question are often next to the chunk and not in it ("Yes, on Tuesday."). So each chunk
carries its neighbours for the lexical index, but only if all of them together are short: long neighbours
drown the chunk itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import takewhile

from tacit.diagnostics import Problem
from tacit.home import workspace_files
from tacit.home.categories import category_of, folder_of
from tacit.markdown import comment, notes
from tacit.markdown.chunker import MAX_CHUNK_CHARS, TextChunk, iterate_chunks, split_message
from tacit.markdown.frontmatter import parse_names
from tacit.markdown.links import find_links, list_link_names
from tacit.markdown.notes import Note
from tacit.privacy import strip_injected
from tacit.privacy.audience import Audience, read_agents, read_audience
from tacit.search.model import Chunk, Document
from tacit.search.weights import (
    EXTRA_HEADING_CHARS,
    MAX_MERGED_CHARS,
    MAX_NEIGHBOURHOOD_CHARS,
    NOTE_NEIGHBOURS,
    TURN_NEIGHBOURS,
)
from tacit.transcripts import format as transcripts
from tacit.transcripts.model import Attachment, Message, ToolCall, Transcript, Turn

_FOR_GROUPS = ("topics", "procedures", "reference")
_DAY = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")


def read_document(
    path: str,
    text: str,
    modified: date,
    agents: tuple[str, ...] = (),
    purged: Collection[int] = frozenset(),
) -> Document:
    """Read a file of the home; any content is valid. `modified` is used for notes without a date. `agents`
    overrides the agents named in the file. `purged`: events of a transcript to leave out."""
    if category_of(path) == "conversation":
        return _read_conversation(path, transcripts.parse(text, path), text, purged)
    return _read_note(path, text, modified, agents)


def embedded_text(title: str, section: Sequence[str], speaker: str, text: str) -> str:
    """The text for the embedder: the chunk with its speaker, or with the headings above it."""
    if speaker:
        return f"{speaker}: {text}"
    above = " > ".join(dict.fromkeys(part for part in (title, *section) if part and part not in text))
    return f"{above}\n{text}" if above else text


# Notes


def _read_note(path: str, text: str, modified: date, agents: tuple[str, ...] = ()) -> Document:
    note = notes.parse(text, path)
    fields = note.fields
    category = category_of(path)
    day = day_of(fields, path) or modified.isoformat()
    audience, problems = audience_of(note, path)
    # Injected context must not be indexed as knowledge, nor must lines that no longer hold.
    head, body = notes.split(strip_injected.remove_sections(text))
    written = head + comment.current_text(body)
    parts = list(_split_at_injected(iterate_chunks(written), _injected_lines(text)))
    chunks = [chunk for part in parts for chunk in part]
    merged = [chunk for part in parts for chunk in _merge_short(part)]
    texts = [chunk.text for chunk in merged]
    title = title_of(fields, chunks, path)
    return Document(
        path=path,
        category=category,
        audience=audience,
        agents=agents or read_agents(note),
        conversation="",
        archived=path.startswith("archive/"),
        title=title,
        day=day,
        tags=parse_names(fields.get("tags")),
        lines=_count_lines(text),
        chunks=tuple(
            Chunk(chunk.text, chunk.start, chunk.end, chunk.section, day, "", 0, near)
            for chunk, near in zip(merged, _neighbour_ranges(texts, NOTE_NEIGHBOURS), strict=True)
        ),
        problems=(*note.problems, *problems),
        names=list_link_names(path, title, fields),
        links=find_links(path, written),
    )


def _injected_lines(text: str) -> list[tuple[int, int]]:
    """The first and last line of each section that daily delivery injected."""
    ranges, line, position = [], 1, 0
    for start, end in strip_injected.find_injected_sections(text):
        first = line + text.count("\n", position, start)
        line, position = first + text.count("\n", start, end), end
        ranges.append((first, line))
    return ranges


def _split_at_injected(
    chunks: Iterable[TextChunk], injected: Sequence[tuple[int, int]]
) -> Iterator[list[TextChunk]]:
    """The chunks between injected sections: no chunk spans one."""
    part: list[TextChunk] = []
    waiting = list(injected)
    for chunk in chunks:
        rest = chunk
        while waiting and rest.end > waiting[0][1]:
            first, last = waiting.pop(0)
            if rest.start < first:
                part.append(_slice_lines(rest, rest.start, first - 1))
                rest = _slice_lines(rest, last + 1, rest.end)
            yield part
            part = []
        if rest.text:  # empty if only injected sections follow
            part.append(rest)
    yield part


def _slice_lines(chunk: TextChunk, first: int, last: int) -> TextChunk:
    """These lines of the chunk, without blank ones at either end."""
    lines = chunk.text.split("\n")[first - chunk.start : last - chunk.start + 1]
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        first += 1
        lines.pop(0)
    return TextChunk(chunk.id, chunk.section, first, first + len(lines) - 1, "\n".join(lines))


def _merge_short(chunks: Iterable[TextChunk]) -> Iterator[TextChunk]:
    """Merge consecutive short sections into one chunk: alone they say too little."""
    pending: TextChunk | None = None
    is_heading = False  # the pending chunk has only headings
    for chunk in chunks:
        if pending is not None and _merged_length(pending, chunk) <= (
            MAX_CHUNK_CHARS + EXTRA_HEADING_CHARS if is_heading else MAX_MERGED_CHARS
        ):
            pending, is_heading = _merge(pending, chunk), is_heading and _is_heading(chunk.text)
        else:
            if pending is not None:
                yield pending
            pending, is_heading = chunk, _is_heading(chunk.text)
    if pending is not None:
        yield pending


def _is_heading(text: str) -> bool:
    return all(line.lstrip(" ").startswith("#") or not line.strip() for line in text.split("\n"))


def _gap(first: TextChunk, second: TextChunk) -> int:
    return max(1, second.start - first.end)


def _merged_length(first: TextChunk, second: TextChunk) -> int:
    return len(first.text) + _gap(first, second) + len(second.text)


def _merge(first: TextChunk, second: TextChunk) -> TextChunk:
    both = takewhile(lambda pair: pair[0] == pair[1], zip(first.section, second.section, strict=False))
    text = first.text + "\n" * _gap(first, second) + second.text
    return TextChunk(first.id, tuple(name for name, _ in both), first.start, second.end, text)


def title_of(fields: Mapping[str, object], chunks: Iterable[TextChunk], path: str) -> str:
    named = fields.get("title") or fields.get("name")
    if isinstance(named, str) and named.strip():
        return named.strip()[:200]
    first = next((chunk.section[0] for chunk in chunks if chunk.section), "")
    name = path.rpartition("/")[2]
    return first or name.rpartition(".")[0] or name


def day_of(fields: Mapping[str, object], path: str) -> str:
    daily = workspace_files.day_of(workspace_files.split_workspace_path(path)[1])
    if daily and (day := _parse_day(_DAY.match(daily))):
        return day
    for key in ("updated", "date", "created"):
        value = fields.get(key)
        if isinstance(value, datetime):
            return value.date().isoformat()
        if isinstance(value, date):
            return value.isoformat()
        if isinstance(value, str) and (day := _parse_day(_DAY.match(value.strip()))):  # in quotes
            return day
    return _parse_day(_DAY.search(path.rpartition("/")[2]))


def _parse_day(matched: re.Match[str] | None) -> str:
    try:
        return date(*map(int, matched.groups())).isoformat() if matched else ""
    except ValueError:
        return ""


def audience_of(note: Note, path: str) -> tuple[Audience, tuple[Problem, ...]]:
    _, inside = workspace_files.split_workspace_path(path)
    if inside and workspace_files.is_owner_only(inside):
        return "owner", ()
    folder = folder_of(path)
    declared, problems = read_audience(note, path)
    if folder == "memory" and declared not in (None, "owner"):
        message = f"audience is {declared!r}, but what is in knowledge/memory is the owner's alone."
        return "owner", (Problem(path, message, "Move it elsewhere, or remove the line.", level="warning"),)
    if declared is not None:
        return declared, problems
    if inside:
        return workspace_files.audience_of(inside), ()
    if folder == "identity" and path.endswith("/SOUL.md"):
        return "anyone", ()
    return ("group" if folder in _FOR_GROUPS else "owner"), ()


# Conversations


def _read_conversation(path: str, transcript: Transcript, text: str, purged: Collection[int]) -> Document:
    fields = transcript.fields
    turns = [turn for turn in transcript.turns if turn.number not in purged]
    pieces_by_turn = [(turn, piece) for turn in turns for piece in _chunks_of(turn)]
    ranges = _neighbour_ranges([piece.text for _, piece in pieces_by_turn], TURN_NEIGHBOURS)
    chunks = tuple(
        Chunk(
            piece.text,
            turn.line + piece.start,
            turn.line + piece.end,
            (),
            turn.at.date().isoformat(),
            _speaker(turn),
            turn.number,
            near,
        )
        for (turn, piece), near in zip(pieces_by_turn, ranges, strict=True)
    )
    return Document(
        path=path,
        category="conversation",
        audience="owner",
        agents=parse_names(fields.get("agent")),
        conversation=str(fields.get("session_key") or ""),
        archived=path.startswith("archive/"),
        # The title is often the first message, which may be purged.
        title=transcript.title if len(turns) == len(transcript.turns) else "",
        day=chunks[0].day if chunks else day_of(fields, path),
        tags=parse_names(fields.get("tags")),
        lines=_count_lines(text),
        chunks=chunks,
        problems=transcript.problems,
    )


def _chunks_of(turn: Turn) -> Iterator[TextChunk]:
    """The chunks of one event. Lines are counted from its start."""
    if isinstance(turn, Message):
        yield from split_message(turn.text)
    elif isinstance(turn, ToolCall):
        yield TextChunk("", (), 0, 0, f"{turn.summary} → {turn.result}" if turn.result else turn.summary)
    elif isinstance(turn, Attachment):
        yield TextChunk("", (), 0, 0, turn.path)


def _speaker(turn: Turn) -> str:
    if isinstance(turn, Message):
        return turn.speaker or turn.role
    return f"tool {turn.name}" if isinstance(turn, ToolCall) else "attachment"


# Both


def _count_lines(text: str) -> int:
    """Counted as in editors: a final newline starts no further line."""
    return text.count("\n") + (text[-1:] not in ("", "\n"))


def _neighbour_ranges(texts: Sequence[str], reach: int) -> Iterator[tuple[int, int]]:
    """For each text the range of its neighbours, itself included; only itself if they are too long."""
    sizes = [len(text) for text in texts]
    for position in range(len(texts)):
        first, last = max(0, position - reach), min(len(texts), position + reach + 1)
        yield (
            (first, last) if sum(sizes[first:last]) <= MAX_NEIGHBOURHOOD_CHARS else (position, position + 1)
        )

"""Which lines a note keeps in a rebuild, and which must not come back.

What must stay true:
- lines of people stay, and so do generated lines that a person edited, commented below, or approved: only
  lines that were added automatically go;
- a line whose conversation is not read again stays, because nothing would bring it back;
- lines that a person removed or edited do not come back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from tacit.condense.day import SUMMARISED
from tacit.errors import StoreError
from tacit.git.conflicts import NoteTree
from tacit.git.repository import Git
from tacit.home.generated_lines import find_generated
from tacit.learn.model import Change
from tacit.markdown import comment, notes
from tacit.markdown.comment import Provenance
from tacit.markdown.frontmatter import parse_names
from tacit.markdown.note_page import line_statement, read_items, remove_lines
from tacit.text.statements import index_words, says_the_same
from tacit.text.words import fold
from tacit.transcripts.format import safe_name

REBUILD_SUBJECT = "extract: "  # prefix of the commit subjects of a rebuild
DAY_EXTRACTOR = "day"  # the extractor name of daily summaries


class LearnedLine(NamedTuple):
    """A line with a provenance comment, and the note where it is or was."""

    path: str
    line: str  # without its provenance comment
    mark: Provenance
    is_intact: bool = True  # unedited
    until: datetime | None = None  # when it was removed


def find_removed(git: Git, commit: str) -> Iterator[LearnedLine]:
    """Generated lines that a commit up to this one removed from a note, except those removed by a merged
    rebuild or by reverting one."""
    log_options = ("--format=%x01%cI %s", "-p", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv")
    output = git.run("log", *log_options, "--no-prefix", commit, "--", "knowledge", timeout=600)
    is_rebuild, committed_at, path = False, datetime.min.replace(tzinfo=UTC), ""
    for line in output.decode("utf-8", "surrogateescape").split("\n"):
        if line.startswith("\x01"):
            timestamp, _, subject = line[1:].partition(" ")
            is_rebuild, committed_at = REBUILD_SUBJECT in subject, datetime.fromisoformat(timestamp)
        elif line.startswith("--- "):
            path = line[4:].rstrip("\t")
        elif line.startswith("-") and not is_rebuild and comment.is_generated(line[1:]):
            text, mark = comment.read(line[1:])
            assert mark is not None
            yield LearnedLine(path, text, mark, until=committed_at)


class RemovedLines:
    """Lines that were learned once and are no longer in their notes."""

    def __init__(self, removed: Iterable[LearnedLine], present: Collection[LearnedLine]) -> None:
        """`removed`: lines that a commit removed from a note; `present`: lines that are in notes."""
        intact = {_line_key(line) for line in present if line.is_intact}
        missing = [line for line in removed if _line_key(line) not in intact]
        self._by_word: dict[tuple[str, str], list[LearnedLine]] = {}
        for line in missing:
            for word in index_words(line_statement(line.line)):
                self._by_word.setdefault((line.path, word), []).append(line)
        self._emptied_turns = _source_turns([*missing, *(line for line in present if not line.is_intact)])
        self._emptied_turns -= _source_turns(line for line in present if line.is_intact)

    def has(self, change: Change) -> bool:
        """Whether all lines from its turn were removed, or it repeats a line that a person removed from its
        note later. If it is said again after the removal, it is learned again."""
        source = comment.source_name(change.source.transcript, change.source.number or None)
        return (change.extractor.partition("/")[0], source) in self._emptied_turns or any(
            _is_before(change, line.until) and says_the_same(line_statement(line.line), change.text)
            for word in index_words(change.text)
            for line in self._by_word.get((change.path, word), ())
        )

    def transcripts(self, name: str) -> frozenset[str]:
        """The transcripts from which a line of this extractor was removed or edited."""
        return frozenset(
            comment.transcript_path(source) for extractor, source in self._emptied_turns if extractor == name
        )


def _is_before(change: Change, moment: datetime | None) -> bool:
    if moment is None:
        return True
    try:
        said_at = datetime.fromisoformat(change.source.at or change.day)
    except ValueError:
        return True
    return (said_at if said_at.tzinfo else said_at.replace(tzinfo=moment.tzinfo)) <= moment


def _line_key(line: LearnedLine) -> tuple[str, ...]:
    return (line.mark.name, fold(line_statement(line.line)), *line.mark.sources)


def _source_turns(lines: Iterable[LearnedLine]) -> set[tuple[str, str]]:
    return {(line.mark.name, source) for line in lines for source in line.mark.sources}


def strip_generated(
    text: str, goes: Callable[[Provenance], bool], settled: Collection[str] = ()
) -> str | None:
    """The note without the generated lines that will be learned again. None if nothing of it is left.
    `settled`: transcripts that are not summarized again."""
    single_lines = {item.raw for item in read_items(text) if item.is_generated}
    rest = remove_lines(text, lambda line, mark: line.rstrip("\r") in single_lines and goes(mark))
    if rest is None or rest == text:
        return rest
    return _reset_summarised(rest, settled)


def _reset_summarised(page: str, settled: Collection[str]) -> str:
    """Unmark sessions of a journal page whose lines were removed, so that they are summarized again."""
    note = notes.parse(page)
    seen = parse_names(note.fields.get(SUMMARISED))
    if not seen:
        return page
    cited = (
        item.mark for item in read_items(page) if item.mark is not None and item.mark.name == DAY_EXTRACTOR
    )
    paths = {*settled, *(path for mark in cited for path in mark.transcripts)}
    left = [name for name in seen if any(f"-{safe_name(name)}-" in path for path in paths)]
    try:
        return notes.set_fields(note, {SUMMARISED: left or None}).text
    except StoreError:  # the frontmatter is broken, which `tacit doctor` reports
        return page


def restore_order(old: str, new: str) -> str:
    """Restore the old order of the lines in a rebuilt note, so that the diff shows only what was learned
    differently, and a note with the same lines is unchanged, including its frontmatter. A note whose sections
    changed is returned as it is."""
    head, body = notes.split(new)
    before, after = _split_frame(notes.split(old)[1]), _split_frame(body)
    if [frame for frame, _ in before] != [frame for frame, _ in after]:
        return new
    pairs = zip(before, after, strict=True)
    lines = (
        line
        for (_, old_marked), (frame, new_marked) in pairs
        for line in (*_order_lines(old_marked, new_marked), *frame)
    )
    ordered = "\n".join(lines)
    return old if ordered == notes.split(old)[1] else head + ordered


def _split_frame(body: str) -> list[tuple[tuple[str, ...], list[str]]]:
    """Each line without a provenance comment, with the generated ones before it; then the generated rest."""
    gaps: list[tuple[tuple[str, ...], list[str]]] = []
    marked: list[str] = []
    for line in body.split("\n"):
        if comment.read(line)[1] is not None:
            marked.append(line)
        else:
            gaps.append(((line,), marked))
            marked = []
    return [*gaps, ((), marked)]


def _order_lines(old_lines: Collection[str], new_lines: Iterable[str]) -> Iterator[str]:
    """The new lines in the old order; each line without an old position follows the same line as before."""
    behind: dict[str, list[str]] = {"": []}
    known, last = set(old_lines), ""
    for line in new_lines:
        if line in known:
            behind[line] = []
            last = line
        else:
            behind[last].append(line)
    yield from behind[""]
    for line in old_lines:
        if line in behind:
            yield line
            yield from behind.pop(line)


# Files


def strip_note(
    tree: NoteTree, path: str, is_relearned: Callable[[Provenance], bool], settled: frozenset[str]
) -> None:
    text = notes.decode(tree.read(path))
    new = strip_generated(text, is_relearned, settled)
    if new is None:
        (tree.root / path).unlink()
    elif new != text:
        (tree.root / path).write_bytes(notes.encode(new))


def learned_lines(path: str, data: bytes) -> Iterator[LearnedLine]:
    for line in find_generated(notes.decode(data), path):
        yield LearnedLine(path, line.text, line.mark, is_intact=not line.is_edited)


def restore_orders(tree: NoteTree, base_notes: Mapping[str, bytes]) -> None:
    for path, data in base_notes.items():
        file = tree.root / path
        if file.is_file() and (current := file.read_bytes()) != data:
            text = restore_order(notes.decode(data), notes.decode(current))
            file.write_bytes(notes.encode(text))

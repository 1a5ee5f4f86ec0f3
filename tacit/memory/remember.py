"""What somebody asks to be remembered: one line, added to one note.

Adding is the only thing that happens here: nothing is rewritten, and a note that somebody changed at the
same time is read again. In a session that is not the owner's nothing is added to a note; the line waits as a
proposal. So does one that an agent asks for after it read what others wrote: its words may be theirs. Where
memory is read-only there is neither.

A line that an agent asked for has a mark with the last record of its conversation; the owner's own has none.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from tacit.errors import ChangedOnDisk, ReadOnly, StoreError, UsageError
from tacit.lifecycle.hearing import taint
from tacit.memory.hearing import listening_in
from tacit.model.changes import Change, ChangeSet, SaidBy, Source, Trust, is_trusted
from tacit.model.notes import Remembered
from tacit.store import proposals, transcripts
from tacit.text import marks
from tacit.text.ours import without_ours
from tacit.text.redact import LEFT_OPEN, PRIVATE, clean

if TYPE_CHECKING:
    from tacit.memory.memory import Memory
    from tacit.sessions.rules import Profile

MEMORY = "knowledge/memory/MEMORY.md"
SECTION = "Remembered"
EXTRACTOR = "remember/1"
LONGEST = 1_000  # characters of a line
_NOT_THEIRS = "asked for in a session that is not the owner's"
_AFTER_OTHERS = "asked for after what others wrote was read"
_FOR_GROUPS = ("knowledge/procedures/", "knowledge/reference/")
_TRIES = 5  # somebody else may write to the same note


def remember(
    memory: Memory, text: str, to: str, profile: Profile, *, holds_slot: bool = False, by_owner: bool = False
) -> Remembered:
    """`to`: journal, memory, or the path of a note. `holds_slot`: a host asks whose memory slot is ours.
    `by_owner`: a person asks, and no agent in a session."""
    _refuse_where_read_only(memory.config.memory.read_only, holds_slot=holds_slot)
    sentence = _sentence(text)
    now = memory.moment()
    path = _path(to, now)
    if profile.rule.audience != "owner":
        said = "It waits for the owner to look at it: this session is not the owner's."
        return _proposed(memory, _wish(sentence, path, profile, now, "other"), profile, _NOT_THEIRS, said)
    asked = None if by_owner else _asked(memory, sentence, profile)
    if asked is not None and not is_trusted(asked.trust):
        said = "It waits for the owner to look at it: what others wrote was read just before."
        wish = _wish(sentence, path, profile, now, asked.trust, asked.source)
        return _proposed(memory, wish, profile, _AFTER_OTHERS, said)
    line = _line(path, sentence, now)
    kept = marks.marked(line, EXTRACTOR, [asked.source], asked.trust) if asked else line
    for _ in range(_TRIES):
        try:
            return _added(memory, path, line, kept, sentence)
        except ChangedOnDisk:
            continue
    raise ChangedOnDisk(path)


def _refuse_where_read_only(is_set: bool | None, *, holds_slot: bool) -> None:
    if is_set:
        todo = "Who owns this memory edits its notes by hand, or sets that to false."
        raise ReadOnly("memory.read_only in memory-config.yaml is true", todo)
    if is_set is None and holds_slot:
        todo = "Its owner can allow it in memory-config.yaml: memory: {read_only: false}"
        raise ReadOnly("tacit is the memory slot of this host", todo)


def _sentence(text: str) -> str:
    kept = " ".join(clean(without_ours(text)).text.split())
    if not kept.replace(PRIVATE, "").replace(LEFT_OPEN, "").strip():
        raise UsageError("There is nothing to remember: the text is empty, or all of it is private.")
    if len(kept) > LONGEST:
        raise UsageError(
            f"A line has at most {LONGEST} characters, and this one has {len(kept)}. Say it shorter."
        )
    return kept


def _path(to: str, now: datetime) -> str:
    if to in ("", "journal"):
        return f"knowledge/journal/{now.date().isoformat()}.md"
    if to == "memory":
        return MEMORY
    if to.startswith("knowledge/") and to.endswith(".md") and not to.startswith("knowledge/identity/"):
        return to
    raise UsageError(
        f"{to[:80]!r} is no place to remember things. Use journal, memory, or a note below knowledge/."
    )


def _line(path: str, sentence: str, now: datetime) -> str:
    day = now.date().isoformat()
    return f"- {now:%H:%M} {sentence}" if path.endswith(f"/{day}.md") else f"- {day}: {sentence}"


def _added(memory: Memory, path: str, line: str, kept: str, sentence: str) -> Remembered:
    """`kept`: the line with its mark."""
    try:
        before = memory.read(path)
    except FileNotFoundError:
        memory.write(path, f"{_head(path)}# {_title(path)}\n\n## {SECTION}\n\n{kept}\n", replacing=None)
        return Remembered(path, line, is_new=True, said=f"Remembered in {path}.")
    standing = (marks.read(one)[0].strip() for one in before.text.split("\n"))
    if any(one.startswith("- ") and one.endswith(sentence) for one in standing):
        return Remembered(path, line, is_new=False, said=f"{path} has it already.")
    memory.write(path, _with_line(before.text, kept), replacing=before)
    return Remembered(path, line, is_new=True, said=f"Remembered in {path}.")


def _head(path: str) -> str:
    """What was said to the owner's agent is the owner's, also where notes are for groups by default."""
    return "---\naudience: owner\n---\n\n" if path.startswith(_FOR_GROUPS) else ""


def _title(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def _with_line(text: str, line: str) -> str:
    """At the end of its section, which is made at the end of the note where there is none."""
    lines = text.rstrip("\n").split("\n")
    heading = f"## {SECTION}"
    if heading not in lines:
        return "\n".join([*lines, "", heading, "", line, ""])
    begin = lines.index(heading) + 1
    end = next((at for at in range(begin, len(lines)) if lines[at].startswith(("# ", "## "))), len(lines))
    inside = lines[begin:end]
    while inside and not inside[-1].strip():
        inside.pop()
    rest = ["", *lines[end:]] if end < len(lines) else []
    return "\n".join([*lines[:begin], *(inside or [""]), line, *rest, ""])


# Who asks


class _Asked(NamedTuple):
    """By which conversation an agent asks, and how far its words are its own just now."""

    source: str
    trust: Trust


def _asked(memory: Memory, sentence: str, profile: Profile) -> _Asked | None:
    """None: the conversation is not kept, so nobody can tell."""
    mine = [one for one in memory.open_sessions() if one.opening.session_key == profile.kind.key and one.path]
    record = max(mine, key=lambda one: one.opening.started, default=None)
    try:
        turns = transcripts.turns(memory.home, record) if record else ()
    except (StoreError, OSError, ValueError):
        return None
    if record is None or record.path is None or not turns:
        return None
    is_owner = listening_in(memory, profile, turns).is_owner
    trusted = memory.config.lifecycle.trusted_tools
    trust = taint(turns, sentence, is_owner=is_owner, trusted_tools=trusted)
    return _Asked(marks.source_of(record.path, turns[-1].number), trust)


def _wish(
    sentence: str, path: str, profile: Profile, now: datetime, trust: Trust, source: str = ""
) -> Change:
    number, transcript = (marks.number_of(source) or 0, marks.transcript_of(source)) if source else (0, "")
    role: SaidBy = "agent" if source else "user"
    where = Source(profile.kind.key, number, role, at=now.isoformat(), transcript=transcript)
    return Change(path, SECTION, sentence, now.date().isoformat(), "fact", where, trust)


def _proposed(memory: Memory, wish: Change, profile: Profile, reason: str, said: str) -> Remembered:
    key, at = profile.kind.key, wish.source.at
    why = proposals.offer(memory.home, ChangeSet(key, "", at, EXTRACTOR, reason, (wish,)))
    if why:
        raise UsageError(why)
    return Remembered("", wish.line, is_new=True, said=said)

"""What somebody asks to be remembered: one line, added to one note.

Adding is the only thing that happens here: nothing is rewritten, and a note that somebody changed at the
same time is read again. In a session that is not the owner's nothing is added to a note; the line waits as a
proposal. Where memory is read-only there is neither.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from tacit.errors import ChangedOnDisk, ReadOnly, UsageError
from tacit.model.changes import Change, ChangeSet, Source
from tacit.model.notes import Remembered
from tacit.store import proposals
from tacit.text.ours import without_ours
from tacit.text.redact import LEFT_OPEN, PRIVATE, clean

if TYPE_CHECKING:
    from tacit.memory.memory import Memory
    from tacit.sessions.rules import Profile

MEMORY = "knowledge/memory/MEMORY.md"
SECTION = "Remembered"
LONGEST = 1_000  # characters of a line
_TRIES = 5  # somebody else may write to the same note


def remember(memory: Memory, text: str, to: str, profile: Profile, *, holds_slot: bool = False) -> Remembered:
    """`to`: journal, memory, or the path of a note. `holds_slot`: a host asks whose memory slot is ours."""
    _refuse_where_read_only(memory.config.memory.read_only, holds_slot=holds_slot)
    sentence = _sentence(text)
    now = memory.moment()
    path = _path(to, now)
    if profile.rule.audience != "owner":
        return _proposed(memory, sentence, path, profile, now)
    line = _line(path, sentence, now)
    for _ in range(_TRIES):
        try:
            return _added(memory, path, line, sentence)
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


def _added(memory: Memory, path: str, line: str, sentence: str) -> Remembered:
    try:
        before = memory.read(path)
    except FileNotFoundError:
        memory.write(path, f"# {_title(path)}\n\n## {SECTION}\n\n{line}\n", replacing=None)
        return Remembered(path, line, is_new=True, said=f"Remembered in {path}.")
    if any(
        one.strip().startswith("- ") and one.strip().endswith(sentence) for one in before.text.split("\n")
    ):
        return Remembered(path, line, is_new=False, said=f"{path} has it already.")
    memory.write(path, _with_line(before.text, line), replacing=before)
    return Remembered(path, line, is_new=True, said=f"Remembered in {path}.")


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


def _proposed(memory: Memory, sentence: str, path: str, profile: Profile, now: datetime) -> Remembered:
    key, at = profile.kind.key, now.isoformat()
    source = Source(key, 0, "user", at=at)
    change = Change(path, SECTION, sentence, now.date().isoformat(), "fact", source, "other")
    reason = "asked for in a session that is not the owner's"
    why = proposals.offer(memory.home, ChangeSet(key, "", at, "remember/1", reason, (change,)))
    if why:
        raise UsageError(why)
    said = "It waits for the owner to look at it: this session is not the owner's."
    return Remembered("", change.line, is_new=True, said=said)

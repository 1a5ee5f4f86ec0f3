"""SOUL.md → a proposal for a short one: who the agent is, what it decides, where it stops, how it sounds,
and its wisdom.

How agents work together and the rhythm of the day are suggested for AGENTS.md; detailed lessons stay in
MEMORY.md. It is a reorganisation and no loss: every sentence that is not in the proposal is listed, and
nothing happens before an owner has read it. Without a model sentences are kept or left out, never reworded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Literal, NamedTuple

from tacit.lifecycle.review import reviewed
from tacit.lifecycle.wisdom.likeness import stems
from tacit.lifecycle.wisdom.lint import SOUL_TOKENS, soul_problems
from tacit.lifecycle.wisdom.section import LEVEL, MANDATORY, TITLE, Entry, is_mandatory, parse, render
from tacit.llm.chat import Chat, ChatError
from tacit.model.problems import Problem
from tacit.text import tokens
from tacit.text.lines import scan
from tacit.text.sections import Section, named, sections, with_section
from tacit.text.sentences import sentences
from tacit.text.words import fold

Role = Literal[
    "identity", "decisions", "boundaries", "vibe", "context", "wisdom", "agents", "rhythm", "lessons"
]

MEMORY_LINE = "For long-term memory, read MEMORY.md on demand when conversation requires historical context."
TOOLS_LINE = "For full tool details, read TOOLS.md explicitly when needed."
SHEDDING_LINE = (
    "Let go of USER.md once acted on, of AGENTS.md once all orchestration tasks complete, "
    "of topic files once the thread has its own context."
)
CHECKLIST_LINE = "- Bring TOOLS_COMPACT.md up to date: `tacit openclaw compact-tools`"

# The first that fits a title. What fits none is about who the agent is.
_ROLES: Sequence[tuple[Role, str]] = (
    ("wisdom", r"\bwisdom\b"),
    ("identity", r"\b(?:identity|who i am|about me|core)\b"),
    ("decisions", r"\b(?:decisions?|decides?|authority|autonomy|permissions?)\b"),
    ("boundaries", r"\b(?:boundar\w+|limits?|privacy|red lines?)\b"),
    ("vibe", r"\b(?:vibe|tone|voice|style|personality|manners?)\b"),
    ("lessons", r"\b(?:lessons?|learned|learnt)\b"),
    ("rhythm", r"\b(?:rhythm|routines?|cadence|schedule|heartbeat|daily|day)\b"),
    ("agents", r"\b(?:agents?|team|delegat\w+|orchestrat\w+|dynamics|subagents?|colleagues)\b"),
    ("context", r"\b(?:memory|context|continuity|retrieval|files?)\b"),
)
_MOVED: Mapping[Role, str] = {"agents": "AGENTS.md", "rhythm": "AGENTS.md", "lessons": "MEMORY.md"}
_TITLES: Mapping[Role, str] = {
    "decisions": "Decisions",
    "boundaries": "Boundaries",
    "vibe": "Vibe",
    "context": "Context",
}
_ORDER: Sequence[Role] = ("identity", "decisions", "boundaries", "vibe")
_MOST: Mapping[Role, int] = {"boundaries": 3, "vibe": 4}  # lines
# What is taken away until it fits: the role, and how many sentences (or entries) of it are left at least.
_SHRINKING: Sequence[tuple[Role, int]] = (
    ("identity", 4), ("vibe", 3), ("identity", 3), ("boundaries", 2), ("wisdom", 6), ("vibe", 2),
    ("identity", 2), ("wisdom", 4), ("wisdom", 3), ("identity", 1), ("wisdom", 2), ("vibe", 1),
    ("boundaries", 1), ("wisdom", 1),
)  # fmt: skip
_TIERS: Mapping[str, re.Pattern[str]] = {
    "alone": re.compile(r"\b(?:solo|alone|myself|by itself|freely|allein)\b"),
    "and report": re.compile(r"\b(?:report|tell|inform|afterwards|melde)\w*"),
    "always ask": re.compile(r"\b(?:ask|asks|approval|frage?n?)\b"),
}
_EXTRACTIVE = "extractive"
_MEMORY = re.compile(
    r"MEMORY\.md.{0,60}\bon demand\b|\bon demand\b.{0,60}MEMORY\.md|\bread MEMORY\.md\b", re.DOTALL
)
_TOOLS = re.compile(r"\bread TOOLS\.md\b")
_SHEDDING = re.compile(r"(?=.*\bUSER\.md\b)(?=.*\bAGENTS\.md\b)", re.DOTALL)
INSTRUCTIONS: Mapping[str, tuple[str, re.Pattern[str]]] = {  # the sentence, and how people may say it
    "memory": (MEMORY_LINE, _MEMORY),
    "tools": (TOOLS_LINE, _TOOLS),
    "shedding": (SHEDDING_LINE, _SHEDDING),
}
_SECONDS = 180.0
_MOST_ANSWERED = 4_096

SYSTEM = """You shorten the text by which an agent knows who it is. This is reorganisation and tightening:
personality, voice and decision framework stay, nothing is added, no name or number that is not there.
Keep every heading as it is written and in its order, the three tiers of decisions each in a line,
boundaries in 2 or 3 lines, vibe in 3 or 4 lines. Answer with the shortened markdown and nothing else."""


class Part(NamedTuple):
    """One section of SOUL.md, and what the proposal makes of it."""

    title: str
    role: Role
    before: str
    after: str
    fate: str

    @property
    def told(self) -> str:
        size = f"{tokens.count(self.before)} → {tokens.count(self.after)} tokens"
        return f"{self.title or 'before the first heading'}: {self.fate}, {size}"


class Proposal(NamedTuple):
    soul: str
    draft: str  # with the notes for the reviewer
    parts: tuple[Part, ...]
    dropped: tuple[str, ...]  # sentences that are in it no more and stand nowhere else in the proposal
    agents: str | None  # AGENTS.md with what moves there; None: nothing does
    how: str
    notes: tuple[str, ...]


class _Piece(NamedTuple):
    """Everything of one role: sentences and items, each as it is written."""

    role: Role
    title: str
    units: tuple[str, ...]


def compress_soul(
    soul: str, agents: str, wisdom: str, today: date, most: int = SOUL_TOKENS, chat: Chat | None = None
) -> Proposal:
    """`wisdom` is the section that shall stand in it; empty: what SOUL.md has."""
    found = _roles(soul)
    heading = next((one.title for one, _ in found if one.level == 1), "Soul")
    entries, header = _wisdom(soul, wisdom, today)
    pieces = {role: _piece(soul, found, role) for role in _ORDER}
    new, how, notes = _shortened(heading, pieces, entries, header, most, chat)
    parts = tuple(_parts(soul, found, new, how))
    dropped = tuple(_dropped(soul, found, new, how))
    moved = [one for one, role in found if _MOVED.get(role) == "AGENTS.md"]
    text_of_agents = with_moved(agents, [one.own(soul) for one in moved]) if agents or moved else agents
    review = [how_told(how), *notes, "", "Sections:", *(f"- {part.told}" for part in parts), ""]
    review += ["Sentences that are not in it:", *(f"- {one}" for one in dropped or ("none",))]
    return Proposal(
        new,
        reviewed(new, review),
        parts,
        dropped,
        text_of_agents if text_of_agents != agents else None,
        how,
        notes,
    )


def how_told(how: str) -> str:
    if how != _EXTRACTIVE:
        return f"Worded by {how}."
    why = "openclaw.soul_model is not set, or was of no use"
    return f"Extractive: sentences were kept or left out, none was reworded ({why})."


def _roles(soul: str) -> list[tuple[Section, Role]]:
    """A heading that says nothing takes the role of the one above it."""
    found: list[tuple[Section, Role]] = []
    above: dict[int, Role] = {}
    for one in sections(soul):
        inherited = next((above[level] for level in range(one.level - 1, 1, -1) if level in above), None)
        role = _role(one.title) or inherited or "identity"
        above = {level: kept for level, kept in above.items() if level < one.level} | {one.level: role}
        found.append((one, role if one.level != 1 else "identity"))
    return found


def _role(title: str) -> Role | None:
    return next((role for role, pattern in _ROLES if re.search(pattern, fold(title))), None)


def _wisdom(soul: str, given: str, today: date) -> tuple[list[Entry], str]:
    """The entries, the mandatory one first, and the line above them."""
    text = given or next((one.text(soul) for one in named(soul, TITLE, LEVEL)), "")
    there = parse(text)
    mandatory = next(filter(is_mandatory, there.entries), MANDATORY)
    entries = [mandatory, *(entry for entry in there.entries if not is_mandatory(entry))]
    return entries, render([], there.day or today, there.lessons or 0).strip()


def _piece(soul: str, found: Sequence[tuple[Section, Role]], role: Role) -> _Piece:
    own = [one for one, its in found if its == role]
    title = next((one.title for one in own if one.level > 1), _TITLES.get(role, ""))
    units = [unit for one in own for unit in _units(one.own(soul))]
    return _Piece(role, title if role != "identity" else "", tuple(units[: _MOST.get(role, len(units))]))


def _units(text: str) -> Iterator[str]:
    """Items as they are, code line by line, prose by its sentences. Those lose their bold type: a cut through
    it would show."""
    prose: list[str] = []
    for line in scan(text):
        is_item = line.kind == "text" and line.text.lstrip().startswith(("- ", "* ", "+ ", "|"))
        if (is_item or line.kind != "text") and prose:
            yield from _sentences(prose)
            prose = []
        if is_item:
            yield line.text.rstrip()
        elif line.kind == "text":
            prose.append(line.text.lstrip("> "))
        elif line.kind == "code" and line.text.strip():
            yield f"`{line.text.strip()}`"
    yield from _sentences(prose)


def _sentences(lines: Sequence[str]) -> Iterator[str]:
    plain = "\n".join(lines).replace("**", "").replace("__", "")
    return (sentence for sentence in sentences(plain) if any(map(str.isalnum, sentence)))


# Making it fit


def _shortened(
    heading: str,
    pieces: Mapping[Role, _Piece],
    entries: Sequence[Entry],
    header: str,
    most: int,
    chat: Chat | None,
) -> tuple[str, str, tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    if chat is not None:
        worded, why = _worded(chat, heading, pieces, entries, header, most)
        if worded:
            return worded, chat.name, ()
        notes = (why,)
    counts = {role: len(piece.units) for role, piece in pieces.items()} | {"wisdom": len(entries)}

    def text() -> str:
        kept = {role: piece._replace(units=piece.units[: counts[role]]) for role, piece in pieces.items()}
        return _assembled(heading, kept, entries[: counts["wisdom"]], header)

    _fit(counts, lambda: tokens.count(text()) <= most)
    gone = entries[counts["wisdom"] :]
    notes += tuple(f"No room for this entry of the wisdom section: {entry.written}" for entry in gone)
    return text(), _EXTRACTIVE, notes


def _fit(counts: dict[Role, int], fits: Callable[[], bool]) -> None:
    """Take away until it fits, the last of each first; then give back what there is room for after all."""
    taken: list[Role] = []
    for role, least in _SHRINKING:
        while counts[role] > least and not fits():
            counts[role] -= 1
            taken.append(role)
    for role in reversed(taken):
        counts[role] += 1
        if not fits():
            counts[role] -= 1


def _assembled(heading: str, pieces: Mapping[Role, _Piece], entries: Sequence[Entry], header: str) -> str:
    parts = [f"# {heading}", *_paragraphs(pieces)]
    parts.append(f"## {_TITLES['context']}\n{MEMORY_LINE}\n{TOOLS_LINE}\n{SHEDDING_LINE}")
    parts.append(f"{header}\n\n" + "\n".join(entry.written for entry in entries))
    return "\n\n".join(parts) + "\n"


def _paragraphs(pieces: Mapping[Role, _Piece]) -> Iterator[str]:
    for role in _ORDER:
        piece = pieces[role]
        if piece.units:
            text = _joined(piece.units)
            yield f"## {piece.title}\n{text}" if piece.title else text


def _joined(units: Sequence[str]) -> str:
    """Items in lines of their own, sentences one after the other."""
    text = ""
    for unit in units:
        between = "\n" if unit.lstrip().startswith(("- ", "* ", "+ ", "|")) else " "
        text += f"{between if text else ''}{unit}"
    return text


# By a model


def _worded(
    chat: Chat, heading: str, pieces: Mapping[Role, _Piece], entries: Sequence[Entry], header: str, most: int
) -> tuple[str, str]:
    """The whole text, or why there is none."""
    source = "\n\n".join([f"# {heading}", *_paragraphs(pieces)])
    empty = {role: piece._replace(units=()) for role, piece in pieces.items()}
    room = most - tokens.count(_assembled(heading, empty, entries, header))
    asked, why = f"At most {room} tokens, headings included.\n\n{source}", ""
    for _ in range(2):
        try:
            answer = chat.answer(SYSTEM, asked, max_tokens=_MOST_ANSWERED, seconds=_SECONDS).text
        except ChatError as error:
            return "", f"{chat.name} gave no answer: {error}"
        text = _THINKING.sub("", answer).strip().removeprefix("```markdown").strip("`\n ")
        why = _unfit(text, source, room)
        if not why:
            frame = _assembled(heading, empty, entries, header)
            return frame.replace(f"# {heading}", text, 1), ""
        asked = f"{asked}\n\nYour answer before could not be used: {why} Answer anew."
    return "", f"What {chat.name} answered could not be used: {why}"


_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_FACT = re.compile(r"\b\d[\w.:-]*|\b[\w-]+\.[a-z]{2,4}\b")


def _unfit(text: str, source: str, room: int) -> str:
    want = [line.title for line in scan(source) if line.kind == "heading"]
    have = [line.title for line in scan(text) if line.kind == "heading"]
    if have != want:
        return f"Its headings are {', '.join(have) or 'none'} and not {', '.join(want)}."
    invented = sorted(set(_FACT.findall(text)) - set(_FACT.findall(source)))
    if invented:
        return f"It has what the text has not: {', '.join(invented)}."
    size = tokens.count(text)
    return f"It has {size} tokens, {room} is the most." if size > room else ""


# What became of it


def _parts(soul: str, found: Sequence[tuple[Section, Role]], new: str, how: str) -> Iterator[Part]:
    after = {fold(one.title): one.own(new) for one in sections(new)}
    for one, role in found:
        before, left = one.own(soul), after.get(fold(one.title), "")
        if role in _MOVED:
            fate = "suggested for AGENTS.md" if _MOVED[role] == "AGENTS.md" else "belongs in MEMORY.md"
            yield Part(one.title, role, before, "", fate)
        elif not list(_missing(before, new, how)):
            yield Part(one.title, role, before, left or before, "kept")
        else:
            yield Part(one.title, role, before, left, "shortened" if left else "left out")
    old = {fold(one.title) for one, _ in found}
    for one in sections(new):
        if one.level > 1 and fold(one.title) not in old:
            yield Part(one.title, _role(one.title) or "identity", "", one.own(new), "added")


def _dropped(soul: str, found: Sequence[tuple[Section, Role]], new: str, how: str) -> Iterator[str]:
    for one, role in found:
        where = f" (suggested for {_MOVED[role]})" if role in _MOVED else ""
        yield from (f"{sentence}{where}" for sentence in _missing(one.own(soul), new, how))


def _missing(text: str, new: str, how: str) -> Iterator[str]:
    """The sentences that are not in the new text. Where somebody reworded it, those of whose words no
    sentence there has half."""
    there = fold(" ".join(new.split()))
    worded = [stems(unit) for unit in _units(new)] if how != _EXTRACTIVE else []
    for unit in _units(text):
        bare, words = unit.strip("-*+ "), stems(unit)
        said = any(2 * len(words & other) >= len(words) for other in worded)
        if fold(" ".join(bare.split())) not in there and not said:
            yield bare


def lost(soul: str, new: str, agents: str) -> Iterator[str]:
    """Titles of the sections that AGENTS.md should have taken over and has not."""
    for one, role in _roles(soul):
        moves = _MOVED.get(role) == "AGENTS.md" and not named(new, one.title, one.level)
        if moves and list(_missing(one.own(soul), agents, "somebody")):
            yield one.title


# Single instructions


def instructs(soul: str, name: str) -> bool:
    return INSTRUCTIONS[name][1].search(soul) is not None


def with_instruction(soul: str, name: str) -> str:
    """With the sentence at the end of the section about memory and files, or of one that is made for it."""
    if instructs(soul, name):
        return soul
    line = INSTRUCTIONS[name][0]
    place = next((one for one, role in _roles(soul) if role == "context" and one.level > 1), None)
    if place is None:
        return with_section(soul, _TITLES["context"], 2, f"## {_TITLES['context']}\n{line}")
    stop = place.start + len(place.own(soul).rstrip())
    return f"{soul[:stop]}{_eol(soul)}{line}{soul[stop:]}"


def without_instruction(soul: str, name: str) -> str:
    """Without the sentence, if it stands there word for word; else as it is."""
    line = re.escape(INSTRUCTIONS[name][0])
    alone = re.sub(rf"^[ \t]*(?:[-*+] )?{line}[ \t]*(?:\r?\n|\Z)", "", soul, count=1, flags=re.MULTILINE)
    if alone != soul:
        return alone
    return re.sub(rf"[ \t]?{line}", "", soul, count=1)


def _eol(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


# AGENTS.md


def with_moved(agents: str, moved: Sequence[str]) -> str:
    """AGENTS.md with these sections at its end, as far as it has not got them, and with the line about new
    tools."""
    text = agents
    for section in moved:
        if fold(section.strip()) not in fold(text):
            text = f"{text.rstrip()}\n\n{section.strip()}\n" if text.strip() else f"{section.strip()}\n"
    return with_checklist(text)


def with_checklist(agents: str) -> str:
    if "TOOLS_COMPACT.md" in agents:
        return agents
    for one in sections(agents):
        if "checklist" in fold(one.title) and "tool" in fold(one.title):
            body = one.text(agents).rstrip()
            return with_section(agents, one.title, one.level, f"{body}\n{CHECKLIST_LINE}")
    return with_section(agents, "New tool checklist", 2, f"## New tool checklist\n\n{CHECKLIST_LINE}")


# Linting


def problems(
    soul: str, where: str, most: int = SOUL_TOKENS, covers: Mapping[str, int] | None = None
) -> list[Problem]:
    """What a SOUL.md that every session loads must have, and must not."""
    return [*soul_problems(soul, where, most, covers), *_lacking(soul, where), *_misplaced(soul, where)]


def _lacking(soul: str, where: str) -> Iterator[Problem]:
    if not instructs(soul, "memory"):
        what = "It does not say that MEMORY.md is read on demand."
        yield Problem(where, what, f"Add: {MEMORY_LINE}")
    if not instructs(soul, "tools"):
        yield Problem(
            where, "It does not say that TOOLS.md is read when needed.", f"Add: {TOOLS_LINE}", level="warning"
        )
    if not instructs(soul, "shedding"):
        what = "It does not say when the files that were loaded may be let go of."
        yield Problem(where, what, f"Add: {SHEDDING_LINE}", level="warning")
    missing = [name for name, pattern in _TIERS.items() if not pattern.search(fold(soul))]
    if missing:
        what = f"It does not say what the agent decides: {', '.join(missing)}."
        yield Problem(
            where, what, "Name the three tiers: alone, decide and report, always ask.", level="warning"
        )


def _misplaced(soul: str, where: str) -> Iterator[Problem]:
    found = _roles(soul)
    for one, role in found:
        if role in _MOVED:
            what = f"“{one.title}” need not be in every session."
            yield Problem(where, what, f"It belongs in {_MOVED[role]}.", one.line, "warning")
    for role, most in _MOST.items():
        units = [unit for one, its in found if its == role for unit in _units(one.own(soul))]
        if len(units) > most:
            what = f"“{_TITLES[role]}” has {len(units)} lines; {most} is the most."
            yield Problem(where, what, "Take the less telling ones out.", level="warning")

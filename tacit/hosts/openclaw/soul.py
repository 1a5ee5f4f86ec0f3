"""Drafts a short SOUL.md: who the agent is, what it decides, where it stops, how it sounds, and its wisdom.

How agents work together and the rhythm of the day are suggested for AGENTS.md; detailed lessons stay in
MEMORY.md. Nothing gets lost: every sentence that is not in the draft is listed, and nothing happens before an
owner has read it. Without a model, sentences are kept or left out, never reworded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Literal, NamedTuple

from tacit.diagnostics import Problem
from tacit.hosts.openclaw.wisdom_section import (
    LEVEL,
    MANDATORY,
    MAX_SOUL_TOKENS,
    TITLE,
    WisdomEntry,
    is_mandatory,
    parse,
    render,
    soul_problems,
)
from tacit.llm.chat import Chat, ChatError, strip_reasoning
from tacit.markdown.sections import Section, find_sections, replace_section, split_sections
from tacit.review.model import add_reviewer_notes
from tacit.text import tokens
from tacit.text.lines import scan
from tacit.text.sentences import split_sentences
from tacit.text.words import fold, stems

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

# The first match for a title counts. A title without a match is about the agent's identity.
_ROLE_PATTERNS: Sequence[tuple[Role, str]] = (
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
_TARGET_FILES: Mapping[Role, str] = {"agents": "AGENTS.md", "rhythm": "AGENTS.md", "lessons": "MEMORY.md"}
_TITLES: Mapping[Role, str] = {
    "decisions": "Decisions",
    "boundaries": "Boundaries",
    "vibe": "Vibe",
    "context": "Context",
}
_ROLE_ORDER: Sequence[Role] = ("identity", "decisions", "boundaries", "vibe")
_MAX_LINES: Mapping[Role, int] = {"boundaries": 3, "vibe": 4}  # lines
# What is removed until the text fits: the role, and its minimum number of sentences (or entries).
_SHRINKING: Sequence[tuple[Role, int]] = (
    ("identity", 4), ("vibe", 3), ("identity", 3), ("boundaries", 2), ("wisdom", 6), ("vibe", 2),
    ("identity", 2), ("wisdom", 4), ("wisdom", 3), ("identity", 1), ("wisdom", 2), ("vibe", 1),
    ("boundaries", 1), ("wisdom", 1),
)  # fmt: skip
_TIER_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "alone": re.compile(r"\b(?:solo|alone|myself|by itself|freely|allein)\b"),
    "and report": re.compile(r"\b(?:report|tell|inform|afterwards|melde)\w*"),
    "always ask": re.compile(r"\b(?:ask|asks|approval|frage?n?)\b"),
}
_EXTRACTIVE = "extractive"
_MEMORY_PATTERN = re.compile(
    r"MEMORY\.md.{0,60}\bon demand\b|\bon demand\b.{0,60}MEMORY\.md|\bread MEMORY\.md\b", re.DOTALL
)
_TOOLS_PATTERN = re.compile(r"\bread TOOLS\.md\b")
_SHEDDING_PATTERN = re.compile(r"(?=.*\bUSER\.md\b)(?=.*\bAGENTS\.md\b)", re.DOTALL)
INSTRUCTIONS: Mapping[str, tuple[str, re.Pattern[str]]] = {  # the sentence, and a pattern for other wordings
    "memory": (MEMORY_LINE, _MEMORY_PATTERN),
    "tools": (TOOLS_LINE, _TOOLS_PATTERN),
    "shedding": (SHEDDING_LINE, _SHEDDING_PATTERN),
}
_MODEL_TIMEOUT_S = 180.0
_MAX_ANSWER_TOKENS = 4_096

SYSTEM = """You shorten the text by which an agent knows who it is. This is reorganisation and tightening:
personality, voice and decision framework stay, nothing is added, no name or number that is not there.
Keep every heading as it is written and in its order, the three tiers of decisions each in a line,
boundaries in 2 or 3 lines, vibe in 3 or 4 lines. Answer with the shortened markdown and nothing else."""


class SoulPart(NamedTuple):
    """One section of SOUL.md, and what the draft does with it."""

    title: str
    role: Role
    before: str
    after: str
    fate: str

    @property
    def summary(self) -> str:
        size = f"{tokens.count(self.before)} → {tokens.count(self.after)} tokens"
        return f"{self.title or 'before the first heading'}: {self.fate}, {size}"


class SoulProposal(NamedTuple):
    soul: str
    draft: str  # with the notes for the reviewer
    parts: tuple[SoulPart, ...]
    dropped: tuple[str, ...]  # sentences that are nowhere in the draft
    agents: str | None  # AGENTS.md with what moves there; None: nothing moves
    how: str
    notes: tuple[str, ...]


class _RoleText(NamedTuple):
    """All sentences and items of one role, as written."""

    role: Role
    title: str
    units: tuple[str, ...]


def compress_soul(
    soul: str, agents: str, wisdom: str, today: date, most: int = MAX_SOUL_TOKENS, chat: Chat | None = None
) -> SoulProposal:
    """`wisdom` is the section to include; empty: the one in SOUL.md."""
    roles = _assign_roles(soul)
    heading = next((section.title for section, _ in roles if section.level == 1), "Soul")
    entries, header = _read_wisdom(soul, wisdom, today)
    pieces = {role: _collect_role(soul, roles, role) for role in _ROLE_ORDER}
    new_soul, method, notes = _shorten(heading, pieces, entries, header, most, chat)
    parts = tuple(_describe_parts(soul, roles, new_soul, method))
    dropped = tuple(_find_omissions(soul, roles, new_soul, method))
    moved_sections = [section for section, role in roles if _TARGET_FILES.get(role) == "AGENTS.md"]
    new_agents = (
        with_moved_sections(agents, [section.own(soul) for section in moved_sections])
        if agents or moved_sections
        else agents
    )
    review = [describe_method(method), *notes, "", "Sections:", *(f"- {part.summary}" for part in parts), ""]
    review += ["Sentences that are not in it:", *(f"- {sentence}" for sentence in dropped or ("none",))]
    return SoulProposal(
        new_soul,
        add_reviewer_notes(new_soul, review),
        parts,
        dropped,
        new_agents if new_agents != agents else None,
        method,
        notes,
    )


def describe_method(how: str) -> str:
    if how != _EXTRACTIVE:
        return f"Worded by {how}."
    reason = "openclaw.soul_model is not set, or was of no use"
    return f"Extractive: sentences were kept or left out, none was reworded ({reason})."


def _assign_roles(soul: str) -> list[tuple[Section, Role]]:
    """A heading without a role of its own takes the role of the heading above it."""
    roles: list[tuple[Section, Role]] = []
    above: dict[int, Role] = {}
    for section in split_sections(soul):
        inherited = next((above[level] for level in range(section.level - 1, 1, -1) if level in above), None)
        role = _match_role(section.title) or inherited or "identity"
        above = {level: role_above for level, role_above in above.items() if level < section.level} | {
            section.level: role
        }
        roles.append((section, role if section.level != 1 else "identity"))
    return roles


def _match_role(title: str) -> Role | None:
    return next((role for role, pattern in _ROLE_PATTERNS if re.search(pattern, fold(title))), None)


def _read_wisdom(soul: str, draft: str, today: date) -> tuple[list[WisdomEntry], str]:
    """The entries, the mandatory one first, and the line above them."""
    text = draft or next((section.text(soul) for section in find_sections(soul, TITLE, LEVEL)), "")
    wisdom = parse(text)
    mandatory = next(filter(is_mandatory, wisdom.entries), MANDATORY)
    entries = [mandatory, *(entry for entry in wisdom.entries if not is_mandatory(entry))]
    return entries, render([], wisdom.day or today, wisdom.lessons or 0).strip()


def _collect_role(soul: str, roles: Sequence[tuple[Section, Role]], role: Role) -> _RoleText:
    own_sections = [section for section, section_role in roles if section_role == role]
    title = next((section.title for section in own_sections if section.level > 1), _TITLES.get(role, ""))
    units = _role_units(soul, roles, role)
    return _RoleText(
        role, title if role != "identity" else "", tuple(units[: _MAX_LINES.get(role, len(units))])
    )


def _role_units(soul: str, roles: Sequence[tuple[Section, Role]], role: Role) -> list[str]:
    return [
        unit
        for section, section_role in roles
        if section_role == role
        for unit in _split_units(section.own(soul))
    ]


def _split_units(text: str) -> Iterator[str]:
    """Yields items as they are, code line by line, and prose sentence by sentence. Prose loses its bold type,
    because a cut through it would show."""
    prose: list[str] = []
    for line in scan(text):
        is_item = line.kind == "text" and line.text.lstrip().startswith(("- ", "* ", "+ ", "|"))
        if (is_item or line.kind != "text") and prose:
            yield from _split_sentences(prose)
            prose = []
        if is_item:
            yield line.text.rstrip()
        elif line.kind == "text":
            prose.append(line.text.lstrip("> "))
        elif line.kind == "code" and line.text.strip():
            yield f"`{line.text.strip()}`"
    yield from _split_sentences(prose)


def _split_sentences(lines: Sequence[str]) -> Iterator[str]:
    text = "\n".join(lines).replace("**", "").replace("__", "")
    return (sentence for sentence in split_sentences(text) if any(map(str.isalnum, sentence)))


# Making it fit


def _shorten(
    heading: str,
    pieces: Mapping[Role, _RoleText],
    entries: Sequence[WisdomEntry],
    header: str,
    max_tokens: int,
    chat: Chat | None,
) -> tuple[str, str, tuple[str, ...]]:
    notes: tuple[str, ...] = ()
    if chat is not None:
        new_soul, problem = _ask_model(chat, heading, pieces, entries, header, max_tokens)
        if new_soul:
            return new_soul, chat.name, ()
        notes = (problem,)
    counts = {role: len(piece.units) for role, piece in pieces.items()} | {"wisdom": len(entries)}

    def text() -> str:
        shortened = {
            role: piece._replace(units=piece.units[: counts[role]]) for role, piece in pieces.items()
        }
        return _assemble(heading, shortened, entries[: counts["wisdom"]], header)

    _fit(counts, lambda: tokens.count(text()) <= max_tokens)
    dropped = entries[counts["wisdom"] :]
    notes += tuple(f"No room for this entry of the wisdom section: {entry.as_item}" for entry in dropped)
    return text(), _EXTRACTIVE, notes


def _fit(counts: dict[Role, int], fits: Callable[[], bool]) -> None:
    """Removes units until the text fits, the last of each role first; then restores those that still fit."""
    taken: list[Role] = []
    for role, minimum in _SHRINKING:
        while counts[role] > minimum and not fits():
            counts[role] -= 1
            taken.append(role)
    for role in reversed(taken):
        counts[role] += 1
        if not fits():
            counts[role] -= 1


def _assemble(
    heading: str, pieces: Mapping[Role, _RoleText], entries: Sequence[WisdomEntry], header: str
) -> str:
    parts = [f"# {heading}", *_render_paragraphs(pieces)]
    parts.append(f"## {_TITLES['context']}\n{MEMORY_LINE}\n{TOOLS_LINE}\n{SHEDDING_LINE}")
    parts.append(f"{header}\n\n" + "\n".join(entry.as_item for entry in entries))
    return "\n\n".join(parts) + "\n"


def _render_paragraphs(pieces: Mapping[Role, _RoleText]) -> Iterator[str]:
    for role in _ROLE_ORDER:
        piece = pieces[role]
        if piece.units:
            text = _join_units(piece.units)
            yield f"## {piece.title}\n{text}" if piece.title else text


def _join_units(units: Sequence[str]) -> str:
    """Puts each item on a line of its own and sentences one after another."""
    text = ""
    for unit in units:
        separator = "\n" if unit.lstrip().startswith(("- ", "* ", "+ ", "|")) else " "
        text += f"{separator if text else ''}{unit}"
    return text


# By a model


def _ask_model(
    chat: Chat,
    heading: str,
    pieces: Mapping[Role, _RoleText],
    entries: Sequence[WisdomEntry],
    header: str,
    max_tokens: int,
) -> tuple[str, str]:
    """The whole text, or why there is none."""
    source = "\n\n".join([f"# {heading}", *_render_paragraphs(pieces)])
    empty = {role: piece._replace(units=()) for role, piece in pieces.items()}
    available = max_tokens - tokens.count(_assemble(heading, empty, entries, header))
    request, fault = f"At most {available} tokens, headings included.\n\n{source}", ""
    for _ in range(2):
        try:
            answer = chat.answer(
                SYSTEM, request, max_tokens=_MAX_ANSWER_TOKENS, seconds=_MODEL_TIMEOUT_S
            ).text
        except ChatError as error:
            return "", f"{chat.name} gave no answer: {error}"
        text = strip_reasoning(answer).strip().removeprefix("```markdown").strip("`\n ")
        fault = _find_fault(text, source, available)
        if not fault:
            frame = _assemble(heading, empty, entries, header)
            return frame.replace(f"# {heading}", text, 1), ""
        request = f"{request}\n\nYour answer before could not be used: {fault} Answer anew."
    return "", f"What {chat.name} answered could not be used: {fault}"


_FACT = re.compile(r"\b\d[\w.:-]*|\b[\w-]+\.[a-z]{2,4}\b")


def _find_fault(text: str, source: str, room: int) -> str:
    expected = [line.title for line in scan(source) if line.kind == "heading"]
    headings = [line.title for line in scan(text) if line.kind == "heading"]
    if headings != expected:
        return f"Its headings are {', '.join(headings) or 'none'} and not {', '.join(expected)}."
    invented = sorted(set(_FACT.findall(text)) - set(_FACT.findall(source)))
    if invented:
        return f"It has what the text has not: {', '.join(invented)}."
    size = tokens.count(text)
    return f"It has {size} tokens, {room} is the most." if size > room else ""


# What happened to each part


def _describe_parts(
    soul: str, roles: Sequence[tuple[Section, Role]], new: str, method: str
) -> Iterator[SoulPart]:
    after = {fold(section.title): section.own(new) for section in split_sections(new)}
    for section, role in roles:
        before, remainder = section.own(soul), after.get(fold(section.title), "")
        if role in _TARGET_FILES:
            fate = "suggested for AGENTS.md" if _TARGET_FILES[role] == "AGENTS.md" else "belongs in MEMORY.md"
            yield SoulPart(section.title, role, before, "", fate)
        elif not list(_find_missing(before, new, method)):
            yield SoulPart(section.title, role, before, remainder or before, "kept")
        else:
            yield SoulPart(section.title, role, before, remainder, "shortened" if remainder else "left out")
    old = {fold(section.title) for section, _ in roles}
    for section in split_sections(new):
        if section.level > 1 and fold(section.title) not in old:
            yield SoulPart(
                section.title, _match_role(section.title) or "identity", "", section.own(new), "added"
            )


def _find_omissions(soul: str, roles: Sequence[tuple[Section, Role]], new: str, method: str) -> Iterator[str]:
    for section, role in roles:
        destination = f" (suggested for {_TARGET_FILES[role]})" if role in _TARGET_FILES else ""
        yield from (f"{sentence}{destination}" for sentence in _find_missing(section.own(soul), new, method))


def _find_missing(text: str, new: str, method: str) -> Iterator[str]:
    """Sentences that are not in the new text. In reworded text a sentence counts as present if one sentence
    there has half of its words."""
    new_text = fold(" ".join(new.split()))
    new_units = [stems(unit) for unit in _split_units(new)] if method != _EXTRACTIVE else []
    for unit in _split_units(text):
        sentence, words = unit.strip("-*+ "), stems(unit)
        is_reworded = any(2 * len(words & unit_stems) >= len(words) for unit_stems in new_units)
        if fold(" ".join(sentence.split())) not in new_text and not is_reworded:
            yield sentence


def find_lost_sections(soul: str, new: str, agents: str) -> Iterator[str]:
    """Titles of the sections that should have moved to AGENTS.md and have not."""
    for section, role in _assign_roles(soul):
        moves = _TARGET_FILES.get(role) == "AGENTS.md" and not find_sections(
            new, section.title, section.level
        )
        if moves and list(_find_missing(section.own(soul), agents, "a model")):
            yield section.title


# Single instructions


def has_instruction(soul: str, name: str) -> bool:
    return INSTRUCTIONS[name][1].search(soul) is not None


def with_instruction(soul: str, name: str) -> str:
    """Adds the sentence at the end of the section about memory and files, which is created if necessary."""
    if has_instruction(soul, name):
        return soul
    line = INSTRUCTIONS[name][0]
    place = next(
        (section for section, role in _assign_roles(soul) if role == "context" and section.level > 1), None
    )
    if place is None:
        return replace_section(soul, _TITLES["context"], 2, f"## {_TITLES['context']}\n{line}")
    stop = place.start + len(place.own(soul).rstrip())
    return f"{soul[:stop]}{_line_ending(soul)}{line}{soul[stop:]}"


def without_instruction(soul: str, name: str) -> str:
    """Removes the sentence if it is there word for word."""
    line = re.escape(INSTRUCTIONS[name][0])
    alone = re.sub(rf"^[ \t]*(?:[-*+] )?{line}[ \t]*(?:\r?\n|\Z)", "", soul, count=1, flags=re.MULTILINE)
    if alone != soul:
        return alone
    return re.sub(rf"[ \t]?{line}", "", soul, count=1)


def _line_ending(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


# AGENTS.md


def with_moved_sections(agents: str, moved: Sequence[str]) -> str:
    """Appends the sections that AGENTS.md does not have yet, and the line about new tools."""
    text = agents
    for section in moved:
        if fold(section.strip()) not in fold(text):
            text = f"{text.rstrip()}\n\n{section.strip()}\n" if text.strip() else f"{section.strip()}\n"
    return with_checklist(text)


def with_checklist(agents: str) -> str:
    if "TOOLS_COMPACT.md" in agents:
        return agents
    for section in split_sections(agents):
        if "checklist" in fold(section.title) and "tool" in fold(section.title):
            body = section.text(agents).rstrip()
            return replace_section(agents, section.title, section.level, f"{body}\n{CHECKLIST_LINE}")
    return replace_section(agents, "New tool checklist", 2, f"## New tool checklist\n\n{CHECKLIST_LINE}")


# Linting


def find_problems(
    soul: str, where: str, most: int = MAX_SOUL_TOKENS, covers: Mapping[str, int] | None = None
) -> list[Problem]:
    """Problems of a SOUL.md that every session loads."""
    return [
        *soul_problems(soul, where, most, covers),
        *_check_instructions(soul, where),
        *_check_placement(soul, where),
    ]


def _check_instructions(soul: str, source: str) -> Iterator[Problem]:
    expected: tuple[tuple[str, str, str], ...] = (
        ("memory", "that MEMORY.md is read on demand", "error"),
        ("tools", "that TOOLS.md is read when needed", "warning"),
        ("shedding", "when the files that were loaded may be let go of", "warning"),
    )
    for name, statement, level in expected:
        if not has_instruction(soul, name):
            todo = f"Add: {INSTRUCTIONS[name][0]}"
            yield Problem(source, f"It does not say {statement}.", todo, level=level)
    missing = [name for name, pattern in _TIER_PATTERNS.items() if not pattern.search(fold(soul))]
    if missing:
        message = f"It does not say what the agent decides: {', '.join(missing)}."
        yield Problem(
            source, message, "Name the three tiers: alone, decide and report, always ask.", level="warning"
        )


def _check_placement(soul: str, source: str) -> Iterator[Problem]:
    roles = _assign_roles(soul)
    for section, role in roles:
        if role in _TARGET_FILES:
            message = f"“{section.title}” need not be in every session."
            yield Problem(source, message, f"It belongs in {_TARGET_FILES[role]}.", section.line, "warning")
    for role, max_lines in _MAX_LINES.items():
        count = len(_role_units(soul, roles, role))
        if count > max_lines:
            message = f"“{_TITLES[role]}” has {count} lines; {max_lines} is the most."
            yield Problem(source, message, "Take the less telling ones out.", level="warning")

"""Drafts of an agent's files: a shorter SOUL.md, TOOLS_COMPACT.md, MEMORY_SUMMARY.md, the changes to
AGENTS.md that follow from them, and the wisdom section with its checks and its schedule.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from tacit.diagnostics import Problem
from tacit.errors import StoreError, UsageError
from tacit.git.conflicts import NoteTree
from tacit.home.files import Tree, digest
from tacit.hosts.openclaw import compact_files, wisdom_section
from tacit.hosts.openclaw import soul as souls
from tacit.hosts.openclaw.compact_files import CompactTools, summarize
from tacit.hosts.openclaw.config import settings_of
from tacit.hosts.openclaw.lessons import (
    OPERATIONAL,
    Kind,
    Lesson,
    LessonSource,
    collect_lessons,
    has_lesson_sections,
    read_lessons,
)
from tacit.hosts.openclaw.soul import SoulProposal, compress_soul
from tacit.hosts.openclaw.wisdom import CompressedWisdom, compress
from tacit.hosts.openclaw.wisdom_section import LEVEL, TITLE, parse, parse_day
from tacit.hosts.openclaw.workspace import (
    AGENTS,
    COMPACT,
    CURATED_FILES,
    DAILY,
    LESSONS,
    MEMORY,
    SOUL,
    SUMMARY,
    TOOLS,
    AgentWorkspace,
    ProposedDraft,
    find_problems,
    propose,
)
from tacit.markdown.notes import encode
from tacit.markdown.sections import find_sections
from tacit.review.model import Decision, add_reviewer_notes, split_notes


class SoulDraft(NamedTuple):
    proposed: ProposedDraft
    proposal: SoulProposal
    agents: ProposedDraft | None  # sections that would move to AGENTS.md


class ToolsDraft(NamedTuple):
    proposed: ProposedDraft
    compact: CompactTools
    agents: ProposedDraft | None


# SOUL.md


def shorten_soul(workspace: AgentWorkspace) -> SoulDraft:
    soul, agents = _require_text(workspace, SOUL), workspace.read(AGENTS)
    proposal = compress_soul(
        soul,
        agents or "",
        _approved_wisdom(workspace),
        workspace.now().date(),
        settings_of(workspace.config).soul_max_tokens,
        workspace.soul_chat(),
    )
    proposed = propose(workspace, CURATED_FILES["soul"], proposal.draft, soul, {"how": proposal.how})
    return SoulDraft(proposed, proposal, _propose_agents(workspace, agents, proposal.agents, moving=True))


def _approved_wisdom(workspace: AgentWorkspace) -> str:
    """The section of an approved draft that is not in SOUL.md yet; empty if there is none."""
    wisdom = CURATED_FILES["wisdom"]
    text = workspace.read(wisdom.draft)
    if text is None or workspace.status(wisdom).state != "approved":
        return ""
    return split_notes(text)[0].strip()


def add_instruction(workspace: AgentWorkspace, name: str) -> ProposedDraft | None:
    """Drafts SOUL.md with one more sentence; None if it says so already."""
    soul = _require_text(workspace, SOUL)
    new_soul = souls.with_instruction(soul, name)
    if new_soul == soul:
        return None
    return propose(workspace, CURATED_FILES["lines"], new_soul, soul, {"instruction": name})


# TOOLS_COMPACT.md


def compact_tools(workspace: AgentWorkspace) -> ToolsDraft:
    text = _require_text(workspace, TOOLS)
    compacted = compact_files.compact_text(text)
    notes = [
        f"From {TOOLS}, line by line; nothing was worded.",
        *(f"No room for: {row.as_item}" for row in compacted.beyond),
    ]
    notes += [f"{row.name}: {TOOLS}:{row.line}" for row in compacted.rows]
    origin = {"source": digest(encode(text))}
    proposed = propose(
        workspace,
        CURATED_FILES["tools"],
        add_reviewer_notes(compacted.text, notes),
        workspace.read(COMPACT),
        origin,
    )
    agents = workspace.read(AGENTS)
    new_agents = None if agents is None else souls.with_checklist(agents)
    return ToolsDraft(proposed, compacted, _propose_agents(workspace, agents, new_agents, moving=False))


def check_stale_tools(workspace: AgentWorkspace) -> Problem | None:
    """Whether TOOLS.md has changed since TOOLS_COMPACT.md was made from it."""
    text = workspace.read(TOOLS)
    if text is None or workspace.read(COMPACT) is None or not _is_newer(workspace):
        return None
    standing = workspace.status(CURATED_FILES["tools"])
    if (
        standing.promoted
        and standing.drafted
        and standing.drafted.notes.get("source") == digest(encode(text))
    ):
        return None  # only its date is newer
    todo = "Make a new one: tacit openclaw compact-tools"
    return Problem(COMPACT, f"{TOOLS} is newer, so it may be out of date.", todo, level="warning")


def _is_newer(workspace: AgentWorkspace) -> bool:
    return os.stat(workspace.root / TOOLS).st_mtime_ns > os.stat(workspace.root / COMPACT).st_mtime_ns


# MEMORY_SUMMARY.md


def summarise_memory(workspace: AgentWorkspace) -> tuple[ProposedDraft, str, int]:
    """The proposal, its text, and the number of all entries of MEMORY.md."""
    text, count = summarize(_require_text(workspace, MEMORY))
    proposed = propose(workspace, CURATED_FILES["summary"], text, workspace.read(SUMMARY), {"entries": count})
    return proposed, text, count


# AGENTS.md


def _propose_agents(
    workspace: AgentWorkspace, agents: str | None, new_agents: str | None, *, moving: bool
) -> ProposedDraft | None:
    """Proposes a draft for AGENTS.md. It does not replace a waiting draft with one that has less."""
    file = CURATED_FILES["agents"]
    if new_agents is None or new_agents == (agents or ""):
        return None
    is_waiting = workspace.status(file).state in ("waiting", "approved", "changed")
    if is_waiting and not moving:
        return None
    return propose(workspace, file, new_agents, agents, {})


def _require_text(workspace: AgentWorkspace, name: str) -> str:
    text = workspace.read(name)
    if text is None or not text.strip():
        raise UsageError(
            f"There is no {name} in {workspace.root}. Name the folder that has it: --workspace DIR"
        )
    return text


# ---------------------------------------------------------------- the wisdom section

DAILY_NOTE_DAYS = 30  # of daily notes
MIN_NEW_LESSONS = 10  # new lessons after which a run is due, however recent the last one
WISDOM = CURATED_FILES["wisdom"]
_DAILY_NAME = re.compile(r"(\d{4}-\d{2}-\d{2})[^/]*\.md")
_MAX_FILE_BYTES = 4 * 2**20


class Found(NamedTuple):
    source: LessonSource
    lessons: int
    warning: str  # empty: nothing is wrong


class WisdomDraft(NamedTuple):
    proposed: ProposedDraft
    compressed: CompressedWisdom
    sources: list[Found]


class CompressionDue(NamedTuple):
    due: bool
    why: str
    last: date | None
    new: int
    lessons: int


# Sources


def read_sources(workspace: AgentWorkspace, more: Sequence[str] = ()) -> list[Found]:
    """Every place that may have lessons. A missing one makes the result poorer, never impossible."""
    named_files: list[tuple[str, Kind]] = [(AGENTS, "agents"), (LESSONS, "lessons"), (MEMORY, "memory")]
    named_files += [(path, "lessons") for path in more]
    inspected = [_inspect_source(*_read_source(workspace.tree, path, kind)) for path, kind in named_files]
    inspected += _read_other_agents(workspace)
    days = [
        _inspect_source(*_read_source(workspace.tree, path, "daily")) for path in _list_daily_notes(workspace)
    ]
    if not days:
        days = [
            Found(
                LessonSource(f"{DAILY}/", "daily", None),
                0,
                f"there is no note of the last {DAILY_NOTE_DAYS} days",
            )
        ]
    return inspected + days


def _read_other_agents(workspace: AgentWorkspace) -> Iterator[Found]:
    """Lessons of this home's other agents, if they have a file of them."""
    for folder in (entry.path for entry in workspace.config.workspaces):
        if os.path.realpath(folder) != os.path.realpath(workspace.root):
            source, warning = _read_source(NoteTree(Path(folder)), LESSONS, "lessons")
            if not warning:
                yield _inspect_source(source._replace(path=f"{folder}/{LESSONS}"), "")


def _read_source(tree: Tree, path: str, kind: Kind) -> tuple[LessonSource, str]:
    try:
        data = tree.read(path, _MAX_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return LessonSource(path, kind, None), "it is not there"
    except (OSError, StoreError) as error:
        return LessonSource(path, kind, None), f"it cannot be read: {error}"
    return LessonSource(path, kind, data.decode("utf-8", "replace")), ""


def _inspect_source(source: LessonSource, warning: str) -> Found:
    if not warning and not has_lesson_sections(source):
        section_name = f"“{OPERATIONAL}”" if source.kind == "agents" else "about lessons or decisions"
        warning = f"it has no section {section_name}"
    return Found(source, len(list(read_lessons(source))), warning)


def _list_daily_notes(workspace: AgentWorkspace) -> Iterator[str]:
    """Notes of the last days, oldest first. Hosts add a word to some of the names."""
    today = workspace.now().date()
    with suppress(OSError):
        for name in sorted(entry.name for entry in (workspace.root / DAILY).iterdir()):
            match = _DAILY_NAME.fullmatch(name)
            day = parse_day(match[1]) if match else None
            if day is not None and timedelta(0) <= today - day <= timedelta(DAILY_NOTE_DAYS):
                yield f"{DAILY}/{name}"


# Drafting


def draft_wisdom(workspace: AgentWorkspace, more: Sequence[str] = ()) -> WisdomDraft:
    inspected = read_sources(workspace, more)
    all_lessons = collect_lessons(entry.source for entry in inspected)
    soul = workspace.read(SOUL)
    today = workspace.now().date()
    compressed = compress(
        all_lessons, _wisdom_section(soul or ""), today, workspace.vectors(), workspace.wisdom_chat()
    )
    notes = {
        "how": compressed.how,
        "covers": compressed.covers,
        "lessons": [lesson.key for lesson in all_lessons],
        "sources": [entry.source.path for entry in inspected if entry.source.text is not None],
    }
    return WisdomDraft(propose(workspace, WISDOM, compressed.draft, soul, notes), compressed, inspected)


def _wisdom_section(soul: str) -> str:
    return next((section.text(soul) for section in find_sections(soul, TITLE, LEVEL)), "")


# Checking


def check_wisdom(workspace: AgentWorkspace) -> list[Problem]:
    """Problems of a waiting draft and of the current SOUL.md."""
    problems: list[Problem] = []
    text = workspace.drafts.text(WISDOM)
    if text is not None and workspace.status(WISDOM).state != "promoted":
        problems += find_problems(workspace, WISDOM, text.decode("utf-8", "replace"))
    soul = workspace.read(SOUL)
    if soul is None:
        return [*problems, Problem(SOUL, "It is not there.", "Name the folder that has it: --workspace DIR")]
    max_tokens = settings_of(workspace.config).soul_max_tokens
    problems += wisdom_section.soul_problems(soul, SOUL, max_tokens, _approved_coverage(workspace))
    return list(dict.fromkeys([*problems, *wisdom_section.root_problems(workspace.names())]))


def _approved_coverage(workspace: AgentWorkspace) -> dict[str, int] | None:
    """From the last approval of the promoted draft. None: the section got there in another way."""
    promoted = workspace.status(WISDOM).promoted
    events = workspace.drafts.decisions(WISDOM)
    approvals = [
        event for event in events if promoted and event.what == "approved" and event.sha256 == promoted.sha256
    ]
    return dict(approvals[-1].notes.get("covers", {})) if approvals else None


# Whether a run is due


def check_due(workspace: AgentWorkspace) -> CompressionDue:
    all_lessons = collect_lessons(entry.source for entry in read_sources(workspace))
    last, new = _find_last_run(workspace, all_lessons)
    is_due = True
    if not all_lessons:
        is_due, reason = False, "There are no lessons to compress."
    elif last is None:
        reason = f"Nothing was ever compressed, and there are {len(all_lessons)} lessons."
    elif new >= MIN_NEW_LESSONS:
        reason = f"{new} lessons are new since {last}."
    elif workspace.now().date() >= _add_month(last):
        reason = f"The last run was on {last}, a month ago or longer."
    else:
        is_due = False
        reason = f"The last run was on {last}, and {new} of {MIN_NEW_LESSONS} lessons are new since."
    return CompressionDue(is_due, reason, last, new, len(all_lessons))


def _find_last_run(workspace: AgentWorkspace, all_lessons: Sequence[Lesson]) -> tuple[date | None, int]:
    """From the record, or else from the header in SOUL.md."""
    drafted = [event for event in workspace.drafts.decisions(WISDOM) if event.what == "drafted"]
    if drafted:
        return _read_run(drafted[-1], all_lessons)
    wisdom = parse(_wisdom_section(workspace.read(SOUL) or ""))
    return wisdom.day, max(0, len(all_lessons) - (wisdom.lessons or 0))


def _read_run(event: Decision, all_lessons: Sequence[Lesson]) -> tuple[date | None, int]:
    known_keys = set(event.notes.get("lessons", ()))
    return parse_day(event.at[:10]), sum(lesson.key not in known_keys for lesson in all_lessons)


def _add_month(day: date) -> date:
    """The same day of the next month, or its last day."""
    first = (day.replace(day=1) + timedelta(32)).replace(day=1)
    last = (first + timedelta(32)).replace(day=1) - timedelta(1)
    return first.replace(day=min(day.day, last.day))

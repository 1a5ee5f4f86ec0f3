"""Drafts a shorter SOUL.md, TOOLS_COMPACT.md, and the changes to AGENTS.md that follow from both."""

from __future__ import annotations

import os
from typing import NamedTuple

from tacit.diagnostics import Problem
from tacit.errors import UsageError
from tacit.home.files import digest
from tacit.hosts.openclaw import soul as souls
from tacit.hosts.openclaw import tools
from tacit.hosts.openclaw.memory_summary import summarize
from tacit.hosts.openclaw.soul import SoulProposal, compress_soul
from tacit.hosts.openclaw.tools import CompactTools
from tacit.hosts.openclaw.workspace.layout import (
    AGENTS,
    ARTEFACTS,
    COMPACT,
    MEMORY,
    SOUL,
    SUMMARY,
    TOOLS,
    AgentWorkspace,
)
from tacit.hosts.openclaw.workspace.review import ProposedDraft, propose
from tacit.markdown.notes import encode
from tacit.review.reviewer_notes import add_reviewer_notes, split_notes


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
        workspace.config.openclaw.soul_max_tokens,
        workspace.soul_chat(),
    )
    proposed = propose(workspace, ARTEFACTS["soul"], proposal.draft, soul, {"how": proposal.how})
    return SoulDraft(proposed, proposal, _propose_agents(workspace, agents, proposal.agents, moving=True))


def _approved_wisdom(workspace: AgentWorkspace) -> str:
    """The section of an approved draft that is not in SOUL.md yet; empty if there is none."""
    wisdom = ARTEFACTS["wisdom"]
    text = workspace.read(wisdom.draft)
    if text is None or workspace.standing(wisdom).state != "approved":
        return ""
    return split_notes(text)[0].strip()


def add_instruction(workspace: AgentWorkspace, name: str) -> ProposedDraft | None:
    """Drafts SOUL.md with one more sentence; None if it says so already."""
    soul = _require_text(workspace, SOUL)
    new_soul = souls.with_instruction(soul, name)
    if new_soul == soul:
        return None
    return propose(workspace, ARTEFACTS["lines"], new_soul, soul, {"instruction": name})


# TOOLS_COMPACT.md


def compact_tools(workspace: AgentWorkspace) -> ToolsDraft:
    text = _require_text(workspace, TOOLS)
    compacted = tools.compact_text(text)
    notes = [
        f"From {TOOLS}, line by line; nothing was worded.",
        *(f"No room for: {row.written}" for row in compacted.beyond),
    ]
    notes += [f"{row.name}: {TOOLS}:{row.line}" for row in compacted.rows]
    origin = {"source": digest(encode(text))}
    proposed = propose(
        workspace,
        ARTEFACTS["tools"],
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
    standing = workspace.standing(ARTEFACTS["tools"])
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
    proposed = propose(workspace, ARTEFACTS["summary"], text, workspace.read(SUMMARY), {"entries": count})
    return proposed, text, count


# AGENTS.md


def _propose_agents(
    workspace: AgentWorkspace, agents: str | None, new_agents: str | None, *, moving: bool
) -> ProposedDraft | None:
    """Proposes a draft for AGENTS.md. It does not replace a waiting draft with one that has less."""
    artefact = ARTEFACTS["agents"]
    if new_agents is None or new_agents == (agents or ""):
        return None
    is_waiting = workspace.standing(artefact).state in ("waiting", "approved", "changed")
    if is_waiting and not moving:
        return None
    return propose(workspace, artefact, new_agents, agents, {})


def _require_text(workspace: AgentWorkspace, name: str) -> str:
    text = workspace.read(name)
    if text is None or not text.strip():
        raise UsageError(
            f"There is no {name} in {workspace.root}. Name the folder that has it: --workspace DIR"
        )
    return text

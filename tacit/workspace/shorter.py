"""Proposals for a shorter SOUL.md and for TOOLS_COMPACT.md, and for AGENTS.md what follows from both."""

from __future__ import annotations

import os
from typing import NamedTuple

from tacit.errors import UsageError
from tacit.lifecycle import soul as souls
from tacit.lifecycle import tools
from tacit.lifecycle.review import reviewed, split_review
from tacit.lifecycle.soul import Proposal, compress_soul
from tacit.lifecycle.summary import summary
from tacit.lifecycle.tools import Compact
from tacit.model.problems import Problem
from tacit.store.files import digest
from tacit.text.notes import encode
from tacit.workspace.place import AGENTS, ARTEFACTS, COMPACT, MEMORY, SOUL, SUMMARY, TOOLS, Place
from tacit.workspace.review import Proposed, propose


class Shorter(NamedTuple):
    proposed: Proposed
    proposal: Proposal
    agents: Proposed | None  # what AGENTS.md would take over


class Compacted(NamedTuple):
    proposed: Proposed
    compact: Compact
    agents: Proposed | None


# SOUL.md


def shorten_soul(workspace: Place) -> Shorter:
    soul, agents = _needed(workspace, SOUL), workspace.read(AGENTS)
    proposal = compress_soul(
        soul,
        agents or "",
        _approved_wisdom(workspace),
        workspace.now().date(),
        workspace.config.openclaw.soul_max_tokens,
        workspace.soul_chat(),
    )
    proposed = propose(workspace, ARTEFACTS["soul"], proposal.draft, soul, {"how": proposal.how})
    return Shorter(proposed, proposal, _for_agents(workspace, agents, proposal.agents, moving=True))


def _approved_wisdom(workspace: Place) -> str:
    """The section of a draft that was approved and is not in SOUL.md yet; empty: there is none."""
    wisdom = ARTEFACTS["wisdom"]
    text = workspace.read(wisdom.draft)
    if text is None or workspace.standing(wisdom).state != "approved":
        return ""
    return split_review(text)[0].strip()


def add_instruction(workspace: Place, name: str) -> Proposed | None:
    """SOUL.md with one sentence more; None: it says so already."""
    soul = _needed(workspace, SOUL)
    wanted = souls.with_instruction(soul, name)
    if wanted == soul:
        return None
    return propose(workspace, ARTEFACTS["lines"], wanted, soul, {"instruction": name})


# TOOLS_COMPACT.md


def compact_tools(workspace: Place) -> Compacted:
    text = _needed(workspace, TOOLS)
    made = tools.compact(text)
    notes = [
        f"From {TOOLS}, line by line; nothing was worded.",
        *(f"No room for: {row.written}" for row in made.beyond),
    ]
    notes += [f"{row.name}: {TOOLS}:{row.line}" for row in made.rows]
    about = {"source": digest(encode(text))}
    proposed = propose(
        workspace, ARTEFACTS["tools"], reviewed(made.text, notes), workspace.read(COMPACT), about
    )
    agents = workspace.read(AGENTS)
    wanted = None if agents is None else souls.with_checklist(agents)
    return Compacted(proposed, made, _for_agents(workspace, agents, wanted, moving=False))


def stale_tools(workspace: Place) -> Problem | None:
    """Whether TOOLS.md has changed since TOOLS_COMPACT.md was made from it."""
    text = workspace.read(TOOLS)
    if text is None or workspace.read(COMPACT) is None or not _is_newer(workspace):
        return None
    last = workspace.standing(ARTEFACTS["tools"])
    if last.promoted and last.drafted and last.drafted.notes.get("source") == digest(encode(text)):
        return None  # only its date is newer
    todo = "Make a new one: tacit openclaw compact-tools"
    return Problem(COMPACT, f"{TOOLS} is newer, so it may be out of date.", todo, level="warning")


def _is_newer(workspace: Place) -> bool:
    return os.stat(workspace.root / TOOLS).st_mtime_ns > os.stat(workspace.root / COMPACT).st_mtime_ns


# MEMORY_SUMMARY.md


def summarise_memory(workspace: Place) -> tuple[Proposed, str, int]:
    """With its text, and the number of all entries of MEMORY.md."""
    text, count = summary(_needed(workspace, MEMORY))
    proposed = propose(workspace, ARTEFACTS["summary"], text, workspace.read(SUMMARY), {"entries": count})
    return proposed, text, count


# AGENTS.md


def _for_agents(workspace: Place, agents: str | None, wanted: str | None, *, moving: bool) -> Proposed | None:
    """A draft of its own. One that waits is not replaced by one that says less."""
    artefact = ARTEFACTS["agents"]
    if wanted is None or wanted == (agents or ""):
        return None
    waits = workspace.standing(artefact).state in ("waiting", "approved", "changed")
    if waits and not moving:
        return None
    return propose(workspace, artefact, wanted, agents, {})


def _needed(workspace: Place, name: str) -> str:
    text = workspace.read(name)
    if text is None or not text.strip():
        raise UsageError(
            f"There is no {name} in {workspace.root}. Name the folder that has it: --workspace DIR"
        )
    return text

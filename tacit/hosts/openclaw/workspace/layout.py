"""Where files are in a workspace, who may approve what, and the commands to type next."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tacit.config import Config
from tacit.home.conflicts import NoteTree
from tacit.home.files import Tree
from tacit.hosts.openclaw.wisdom.similarity import Vectors
from tacit.llm.chat import Chat
from tacit.markdown.notes import decode
from tacit.review.file_drafts import FileDrafts, RefusalHints
from tacit.review.file_drafts_model import Artefact, DraftStatus

FOLDER = "initiatives/adaptive-context-injection"
QUEUE = "DAILY_EXECUTION_QUEUE.md"
SOUL, AGENTS, TOOLS, MEMORY, LESSONS = "SOUL.md", "AGENTS.md", "TOOLS.md", "MEMORY.md", "LESSONS_LEARNED.md"
COMPACT, SUMMARY = "TOOLS_COMPACT.md", "MEMORY_SUMMARY.md"
DAILY = "memory"

ARTEFACTS: Mapping[str, Artefact] = {
    artefact.name: artefact
    for artefact in (
        Artefact("wisdom", f"{FOLDER}/SOUL_WISDOM_DRAFT.md", SOUL),
        Artefact("soul", f"{FOLDER}/SOUL_COMPRESSED_DRAFT.md", SOUL),
        Artefact("lines", f"{FOLDER}/SOUL_LINES_DRAFT.md", SOUL),
        Artefact("tools", f"{FOLDER}/TOOLS_COMPACT_DRAFT.md", COMPACT),
        Artefact("agents", f"{FOLDER}/AGENTS_DRAFT.md", AGENTS),
        Artefact("summary", f"{FOLDER}/MEMORY_SUMMARY_DRAFT.md", SUMMARY),
    )
}
_DRAFT_COMMANDS = {
    "wisdom": "tacit wisdom draft",
    "soul": "tacit openclaw compress-soul",
    "lines": "tacit openclaw phase next",
    "tools": "tacit openclaw compact-tools",
    "agents": "tacit openclaw compress-soul",
    "summary": "tacit openclaw memory-summary",
}


@dataclass(frozen=True, slots=True)
class AgentWorkspace:
    """An agent's folder, opened to propose changes to files that people curate."""

    root: Path
    config: Config
    now: Callable[[], datetime]
    vectors: Callable[[], Vectors | None]
    wisdom_chat: Callable[[], Chat | None]
    soul_chat: Callable[[], Chat | None]

    @property
    def tree(self) -> Tree:
        return NoteTree(self.root)

    @property
    def drafts(self) -> FileDrafts:
        return FileDrafts(self.root, FOLDER, self.now)

    def read(self, path: str) -> str | None:
        """None if there is no such file."""
        try:
            return decode(self.tree.read(path))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self) -> list[str]:
        """Names of the files in the root."""
        return [entry.name for entry in os.scandir(self.root) if not entry.is_dir(follow_symlinks=False)]

    def allowed(self, artefact: Artefact) -> tuple[str, ...]:
        """Owners may approve everything; only they may approve SOUL.md as a whole and AGENTS.md."""
        settings = self.config.openclaw
        approvers = {"wisdom": settings.wisdom_approvers, "tools": settings.tools_approvers}
        return (*settings.soul_approvers, *self.config.owners, *approvers.get(artefact.name, ()))

    def standing(self, artefact: Artefact) -> DraftStatus:
        return self.drafts.standing(artefact, self.allowed(artefact), self.advice(artefact))

    def advice(self, artefact: Artefact) -> RefusalHints:
        verb = (
            "tacit wisdom approve" if artefact.name == "wisdom" else f"tacit openclaw approve {artefact.name}"
        )
        more_keys = {"wisdom": " or openclaw.wisdom_approvers", "tools": " or openclaw.tools_approvers"}
        names = ", ".join(dict.fromkeys(self.allowed(artefact))) or "nobody yet"
        keys = f"openclaw.soul_approvers (owners){more_keys.get(artefact.name, '')}"
        allow = f"Who may: {names}. Others are to be named in {keys} of memory-config.yaml."
        return RefusalHints(_DRAFT_COMMANDS[artefact.name], f"{verb} --by NAME", allow)

"""Where things are in a workspace, who may approve what, and what a person would type next."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tacit.config import Config
from tacit.lifecycle.wisdom.likeness import Vectors
from tacit.llm.chat import Chat
from tacit.model.drafts import Artefact, Standing
from tacit.store.drafts import Advice, Drafts
from tacit.store.files import Tree
from tacit.text.notes import decode

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
_DRAFTED_BY = {
    "wisdom": "tacit wisdom draft",
    "soul": "tacit openclaw compress-soul",
    "lines": "tacit openclaw phase next",
    "tools": "tacit openclaw compact-tools",
    "agents": "tacit openclaw compress-soul",
    "summary": "tacit openclaw memory-summary",
}


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of an agent, opened to propose changes of what people curate there."""

    root: Path
    config: Config
    now: Callable[[], datetime]
    vectors: Callable[[], Vectors | None]
    wisdom_chat: Callable[[], Chat | None]
    soul_chat: Callable[[], Chat | None]

    @property
    def tree(self) -> Tree:
        return Tree(self.root)

    @property
    def drafts(self) -> Drafts:
        return Drafts(self.root, FOLDER, self.now)

    def read(self, path: str) -> str | None:
        """None: there is no such file."""
        try:
            return decode(self.tree.read(path))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self) -> list[str]:
        """Of the files in the root."""
        return [entry.name for entry in os.scandir(self.root) if not entry.is_dir(follow_symlinks=False)]

    def allowed(self, artefact: Artefact) -> tuple[str, ...]:
        """Owners may approve everything; SOUL.md as a whole, and AGENTS.md, only they."""
        names = self.config.openclaw
        more = {"wisdom": names.wisdom_approvers, "tools": names.tools_approvers}
        return (*names.soul_approvers, *self.config.owners, *more.get(artefact.name, ()))

    def standing(self, artefact: Artefact) -> Standing:
        return self.drafts.standing(artefact, self.allowed(artefact), self.advice(artefact))

    def advice(self, artefact: Artefact) -> Advice:
        verb = (
            "tacit wisdom approve" if artefact.name == "wisdom" else f"tacit openclaw approve {artefact.name}"
        )
        more = {"wisdom": " or openclaw.wisdom_approvers", "tools": " or openclaw.tools_approvers"}
        names = ", ".join(dict.fromkeys(self.allowed(artefact))) or "nobody yet"
        keys = f"openclaw.soul_approvers (owners){more.get(artefact.name, '')}"
        allow = f"Who may: {names}. Others are to be named in {keys} of memory-config.yaml."
        return Advice(_DRAFTED_BY[artefact.name], f"{verb} --by NAME", allow)

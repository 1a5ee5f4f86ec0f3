"""An agent's folder on its host: where its files are, who may approve what, how a draft changes a file.

Only an approved draft changes a file; drafts, backups and the day's queue are what tacit adds by itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tacit.app import chat_for, load_config, search_parts, utc_now, zone_of
from tacit.config import Config
from tacit.diagnostics import Problem
from tacit.embeddings.protocol import EmbedderError
from tacit.errors import ChangedOnDisk, DraftRefused, StoreError, UsageError
from tacit.git.conflicts import NoteTree
from tacit.home.files import Tree, digest
from tacit.home.layout import CONFIG, find_home
from tacit.hosts.openclaw import compact_files, soul
from tacit.hosts.openclaw.config import settings_of
from tacit.hosts.openclaw.host import HOST
from tacit.hosts.openclaw.wisdom import Vectors
from tacit.hosts.openclaw.wisdom_section import (
    LEVEL,
    TITLE,
    parse_coverage,
    root_problems,
    section_problems,
    size_problems,
)
from tacit.llm.chat import Chat
from tacit.markdown.notes import decode, encode
from tacit.markdown.sections import find_sections, replace_section
from tacit.review.curated_files import ApprovalRule, CuratedFiles
from tacit.review.model import CuratedFile, Decision, FileStatus, check_off, request_review, split_notes

FOLDER = "initiatives/adaptive-context-injection"
QUEUE = "DAILY_EXECUTION_QUEUE.md"
SOUL, AGENTS, TOOLS, MEMORY, LESSONS = "SOUL.md", "AGENTS.md", "TOOLS.md", "MEMORY.md", "LESSONS_LEARNED.md"
COMPACT, SUMMARY = "TOOLS_COMPACT.md", "MEMORY_SUMMARY.md"
DAILY = "memory"

CURATED_FILES: Mapping[str, CuratedFile] = {
    file.name: file
    for file in (
        CuratedFile("wisdom", f"{FOLDER}/SOUL_WISDOM_DRAFT.md", SOUL),
        CuratedFile("soul", f"{FOLDER}/SOUL_COMPRESSED_DRAFT.md", SOUL),
        CuratedFile("lines", f"{FOLDER}/SOUL_LINES_DRAFT.md", SOUL),
        CuratedFile("tools", f"{FOLDER}/TOOLS_COMPACT_DRAFT.md", COMPACT),
        CuratedFile("agents", f"{FOLDER}/AGENTS_DRAFT.md", AGENTS),
        CuratedFile("summary", f"{FOLDER}/MEMORY_SUMMARY_DRAFT.md", SUMMARY),
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


def files_of(target: str) -> list[CuratedFile]:
    """The curated files whose drafts change this file."""
    return [file for file in CURATED_FILES.values() if file.target == target]


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
    def drafts(self) -> CuratedFiles:
        return CuratedFiles(self.root, FOLDER, self.now)

    def read(self, path: str) -> str | None:
        """None if there is no such file."""
        try:
            return decode(self.tree.read(path))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def names(self) -> list[str]:
        """Names of the files in the root."""
        return [entry.name for entry in os.scandir(self.root) if not entry.is_dir(follow_symlinks=False)]

    def status(self, file: CuratedFile) -> FileStatus:
        return self.drafts.status(file, self.rule(file))

    def rule(self, file: CuratedFile) -> ApprovalRule:
        """Owners may approve everything; only they may approve SOUL.md as a whole and AGENTS.md."""
        settings = settings_of(self.config)
        more = {"wisdom": settings.wisdom_approvers, "tools": settings.tools_approvers}.get(file.name)
        allowed = (*settings.soul_approvers, *self.config.owners, *(more or ()))
        key = "" if more is None else f" or openclaw.{file.name}_approvers"
        verb = "tacit wisdom approve" if file.name == "wisdom" else f"tacit openclaw approve {file.name}"
        hint = (
            f"Who may: {', '.join(dict.fromkeys(allowed)) or 'no one yet'}. Add other names to "
            f"openclaw.soul_approvers (owners){key} in memory-config.yaml."
        )
        return ApprovalRule(allowed, _DRAFT_COMMANDS[file.name], f"{verb} --by NAME", hint)


def open_workspace(home: str | os.PathLike[str] | None, folder: str | None) -> AgentWorkspace:
    """The given folder, else that of the config, else the one of the host's first agent."""
    owner = find_home(None if home is None else os.fspath(home), os.environ).require()
    config = load_config(owner).config
    zone = zone_of(config)

    def vectors() -> Vectors | None:
        with suppress(EmbedderError):  # without vectors, words are compared
            embedder = search_parts(config, owner).embedder()
            return None if embedder is None else embedder.documents
        return None

    return AgentWorkspace(
        _find_root(config, folder),
        config,
        now=lambda: utc_now().astimezone(zone),
        vectors=vectors,
        wisdom_chat=lambda: chat_for(config, "wisdom", owner),
        soul_chat=lambda: chat_for(config, "identity", owner),
    )


def _find_root(config: Config, folder: str | None) -> Path:
    if folder is None and len(config.workspaces) > 1:
        names = ", ".join(workspace.path for workspace in config.workspaces)
        raise UsageError(f"Which workspace? Name one with --workspace: {names}.")
    name = folder or next((workspace.path for workspace in config.workspaces), HOST.workspace)
    root = Path(os.path.abspath(os.path.expanduser(name)))
    if root.is_dir():
        return root
    if folder is None and not config.workspaces:
        raise UsageError(
            f"There is no workspace: {root} does not exist, and workspaces in {CONFIG} names none. "
            "Name one with --workspace DIR."
        )
    raise UsageError(f"There is no folder {root}. Name another one with --workspace DIR.")


# ---------------------------------------------------------------- drafts


class ProposedDraft(NamedTuple):
    file: CuratedFile
    event: Decision
    kept: str  # path of a draft that was edited by hand; empty: there was none
    unflagged: str  # why the day's queue does not mention it; empty: it does
    problems: list[Problem]


# Proposing


def propose(
    workspace: AgentWorkspace, file: CuratedFile, draft: str, target: str | None, notes: Mapping[str, Any]
) -> ProposedDraft:
    """`target`: the text that the draft was made from; None if there was no such file."""
    base = None if target is None else digest(encode(target))
    event, kept_path = workspace.drafts.propose(file, encode(draft), base, notes)
    unflagged = _flag_review(workspace, file, event)
    return ProposedDraft(file, event, kept_path, unflagged, find_problems(workspace, file, draft))


def propose_as_is(workspace: AgentWorkspace, file: CuratedFile) -> ProposedDraft:
    """Proposes the existing draft again, for the target as it is now."""
    draft = _read_draft(workspace, file)
    last = [event for event in workspace.drafts.decisions(file) if event.what == "drafted"]
    return propose(workspace, file, draft, workspace.read(file.target), last[-1].notes if last else {})


def _read_draft(workspace: AgentWorkspace, file: CuratedFile) -> str:
    text = workspace.drafts.text(file)
    if text is None:
        raise UsageError(f"There is no {file.draft}. Make one: {workspace.rule(file).draft}")
    return decode(text)


# Checking


class _Draft(NamedTuple):
    workspace: AgentWorkspace
    where: str
    text: str  # what would be promoted
    notes: str  # for the reviewer
    promoting: bool


def find_problems(
    workspace: AgentWorkspace, file: CuratedFile, draft: str, *, promoting: bool = False
) -> list[Problem]:
    """Problems of a draft. A SOUL.md that is too long does not prevent approving a section: the section may
    reach it through a shorter SOUL.md."""
    text, notes = split_notes(draft)
    problems = _CHECKS[file.name](_Draft(workspace, file.draft, text, notes, promoting))
    return [*problems, *root_problems(workspace.names())]


def _check_wisdom(draft: _Draft) -> list[Problem]:
    text, present = draft.text, draft.workspace.read(SOUL) or ""
    problems = section_problems(text.strip(), draft.where, parse_coverage(draft.notes))
    if len(find_sections(text, TITLE, LEVEL)) != 1 or not text.lstrip().startswith("## "):
        message = "A wisdom draft is one `## Wisdom` section and nothing else."
        problems.append(Problem(draft.where, message, "Leave the section and remove the rest."))
    if len(find_sections(present, TITLE, LEVEL)) > 1:
        message = "There are several `## Wisdom` sections, so it is not clear which one to replace."
        problems.append(Problem(SOUL, message, "Join them by hand, then draft anew."))
    max_tokens = settings_of(draft.workspace.config).soul_max_tokens
    sizes = size_problems(replace_section(present, TITLE, LEVEL, text), f"{SOUL} with it", max_tokens)
    return [
        *problems,
        *(problem if draft.promoting else replace(problem, level="warning") for problem in sizes),
    ]


def _check_soul(draft: _Draft) -> list[Problem]:
    workspace = draft.workspace
    problems = soul.find_problems(draft.text, draft.where, settings_of(workspace.config).soul_max_tokens)
    agents = workspace.read(AGENTS) or ""
    for title in soul.find_lost_sections(workspace.read(SOUL) or "", draft.text, agents):
        message = f"“{title}” would stand neither in {SOUL} nor in {AGENTS}."
        todo = f"Promote the draft for {AGENTS} first, if it is still wanted: tacit openclaw promote agents"
        problems.append(Problem(draft.where, message, todo, level="warning"))
    return problems


def _check_lines(draft: _Draft) -> list[Problem]:
    """SOUL.md with one more sentence: everything else has to stay."""
    present = draft.workspace.read(SOUL) or ""
    draft_lines = {line.strip() for line in draft.text.splitlines()}
    missing = [line for line in present.splitlines() if line.strip() and line.strip() not in draft_lines]
    todo = "This draft only adds. To leave something out: tacit openclaw compress-soul"
    problems = [Problem(draft.where, f"It lacks: {line.strip()}", todo) for line in missing]
    sizes = size_problems(draft.text, draft.where, settings_of(draft.workspace.config).soul_max_tokens)
    return [*problems, *(replace(problem, level="warning") for problem in sizes)]


def _check_tools(draft: _Draft) -> list[Problem]:
    return compact_files.find_problems(draft.text, draft.where, draft.workspace.read(TOOLS))


def _check_agents(draft: _Draft) -> list[Problem]:
    return [] if draft.text.strip() else [Problem(draft.where, "It is empty.", "Draft it anew.")]


def _check_summary(draft: _Draft) -> list[Problem]:
    count = compact_files.count_entries(draft.text)
    if count <= compact_files.MAX_ENTRIES:
        return []
    message = f"It has {count} entries; {compact_files.MAX_ENTRIES} is the most."
    return [Problem(draft.where, message, "Take the older ones out. MEMORY.md keeps them.")]


_CHECKS = {
    "wisdom": _check_wisdom,
    "soul": _check_soul,
    "lines": _check_lines,
    "tools": _check_tools,
    "agents": _check_agents,
    "summary": _check_summary,
}


# Approving and promoting


def approve_draft(workspace: AgentWorkspace, file: CuratedFile, by: str) -> Decision:
    draft = _read_draft(workspace, file)
    _refuse_errors(find_problems(workspace, file, draft), "approved")
    covers = parse_coverage(split_notes(draft)[1])
    return workspace.drafts.approve(file, by, workspace.rule(file), {"covers": covers})


def promote_draft(workspace: AgentWorkspace, file: CuratedFile, by: str) -> Decision:
    def merge_draft(old: bytes | None, draft: bytes) -> bytes:
        text = decode(draft)
        _refuse_errors(find_problems(workspace, file, text, promoting=True), "promoted")
        body = split_notes(text)[0]
        before = "" if old is None else decode(old)
        return encode(replace_section(before, TITLE, LEVEL, body) if file.name == "wisdom" else body)

    event = workspace.drafts.promote(file, by, workspace.rule(file), merge_draft)
    with suppress(OSError, StoreError):  # the queue keeps its line; the promotion is done
        _rewrite_queue(workspace, lambda queue: check_off(queue, file.draft), create=False)
    return event


def _refuse_errors(problems: Iterable[Problem], action: str) -> None:
    errors = [problem for problem in problems if problem.level == "error"]
    if errors:
        details = "\n".join(f"  {problem}" for problem in errors)
        raise DraftRefused(
            f"It cannot be {action} as it is:\n{details}\nChange the draft, or the file that is named."
        )


# The day's queue


def _flag_review(workspace: AgentWorkspace, file: CuratedFile, event: Decision) -> str:
    """Empty, or why the day's queue does not mention the draft, which exists all the same."""
    note = f"(for {file.target}, {event.at[:10]}). Approve it: {workspace.rule(file).approve}"
    try:
        _rewrite_queue(workspace, lambda queue: request_review(queue, file.draft, note), create=True)
    except (OSError, StoreError) as error:
        return f"{QUEUE} does not ask for the review: {error}"
    return ""


def _rewrite_queue(workspace: AgentWorkspace, change: Callable[[str], str], *, create: bool) -> None:
    """Tries twice, in case another program writes at the same moment."""
    for is_last in (False, True):
        old = workspace.read(QUEUE)
        if old is None and not create:
            return
        new = change(old or "")
        try:
            if new != old:
                base = None if old is None else digest(encode(old))
                workspace.tree.write(QUEUE, encode(new), base, workspace.tree.mode(QUEUE))
            return
        except ChangedOnDisk:
            if is_last:
                raise

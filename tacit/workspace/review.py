"""The way of every draft: proposed, checked, approved, promoted, undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from tacit.errors import ChangedOnDisk, DraftRefused, StoreError, UsageError
from tacit.lifecycle import soul, tools
from tacit.lifecycle import summary as summaries
from tacit.lifecycle.review import flagged, settled, split_review
from tacit.lifecycle.wisdom import lint
from tacit.lifecycle.wisdom.section import LEVEL, TITLE, coverage
from tacit.model.drafts import Artefact, Event
from tacit.model.problems import Problem
from tacit.store.files import digest
from tacit.text.notes import decode, encode
from tacit.text.sections import named, with_section
from tacit.workspace.place import AGENTS, QUEUE, SOUL, TOOLS, Place


class Proposed(NamedTuple):
    artefact: Artefact
    event: Event
    kept: str  # where the draft is that somebody had worked on; empty: there was none
    unflagged: str  # why the list of the day does not say so; empty: it does
    problems: list[Problem]


# Proposing


def propose(
    workspace: Place, artefact: Artefact, draft: str, target: str | None, notes: Mapping[str, Any]
) -> Proposed:
    """`target` is what the draft was made from; None: there was no such file."""
    base = None if target is None else digest(encode(target))
    event, kept = workspace.drafts.propose(artefact, encode(draft), base, notes)
    unflagged = _flag(workspace, artefact, event)
    return Proposed(artefact, event, kept, unflagged, problems_of(workspace, artefact, draft))


def propose_as_is(workspace: Place, artefact: Artefact) -> Proposed:
    """The draft in the words that it has, for the target as it is now."""
    draft = _draft(workspace, artefact)
    last = [event for event in workspace.drafts.events(artefact) if event.what == "drafted"]
    return propose(
        workspace, artefact, draft, workspace.read(artefact.target), last[-1].notes if last else {}
    )


def _draft(workspace: Place, artefact: Artefact) -> str:
    text = workspace.drafts.text(artefact)
    if text is None:
        raise UsageError(f"There is no {artefact.draft}. Make one: {workspace.advice(artefact).draft}")
    return decode(text)


# Checking


class _Draft(NamedTuple):
    workspace: Place
    where: str
    text: str  # what would be promoted
    notes: str  # for the reviewer
    promoting: bool


def problems_of(
    workspace: Place, artefact: Artefact, draft: str, *, promoting: bool = False
) -> list[Problem]:
    """What is wrong with a draft. That SOUL.md is too long for it does not keep anybody from approving a
    section: it may come into it by way of a shorter SOUL.md."""
    text, notes = split_review(draft)
    found = _CHECKS[artefact.name](_Draft(workspace, artefact.draft, text, notes, promoting))
    return [*found, *lint.root_problems(workspace.names())]


def _wisdom(draft: _Draft) -> list[Problem]:
    text, present = draft.text, draft.workspace.read(SOUL) or ""
    found = lint.section_problems(text.strip(), draft.where, coverage(draft.notes))
    if len(named(text, TITLE, LEVEL)) != 1 or not text.lstrip().startswith("## "):
        what = "A wisdom draft is one `## Wisdom` section and nothing else."
        found.append(Problem(draft.where, what, "Leave the section and remove the rest."))
    if len(named(present, TITLE, LEVEL)) > 1:
        what = "There are several `## Wisdom` sections, so nobody can tell which one to replace."
        found.append(Problem(SOUL, what, "Join them by hand, then draft anew."))
    most = draft.workspace.config.openclaw.soul_max_tokens
    sizes = lint.size_problems(with_section(present, TITLE, LEVEL, text), f"{SOUL} with it", most)
    return [*found, *(one if draft.promoting else replace(one, level="warning") for one in sizes)]


def _soul(draft: _Draft) -> list[Problem]:
    workspace = draft.workspace
    found = soul.problems(draft.text, draft.where, workspace.config.openclaw.soul_max_tokens)
    agents = workspace.read(AGENTS) or ""
    for title in soul.lost(workspace.read(SOUL) or "", draft.text, agents):
        what = f"“{title}” would stand neither in {SOUL} nor in {AGENTS}."
        todo = f"Promote the draft for {AGENTS} first, if it is still wanted: tacit openclaw promote agents"
        found.append(Problem(draft.where, what, todo, level="warning"))
    return found


def _lines(draft: _Draft) -> list[Problem]:
    """SOUL.md with a sentence more: what it says already has to stay."""
    present = draft.workspace.read(SOUL) or ""
    there = {line.strip() for line in draft.text.splitlines()}
    gone = [line for line in present.splitlines() if line.strip() and line.strip() not in there]
    todo = "This draft only adds. To leave something out: tacit openclaw compress-soul"
    found = [Problem(draft.where, f"It lacks: {line.strip()}", todo) for line in gone]
    sizes = lint.size_problems(draft.text, draft.where, draft.workspace.config.openclaw.soul_max_tokens)
    return [*found, *(replace(one, level="warning") for one in sizes)]


def _tools(draft: _Draft) -> list[Problem]:
    return tools.problems(draft.text, draft.where, draft.workspace.read(TOOLS))


def _agents(draft: _Draft) -> list[Problem]:
    return [] if draft.text.strip() else [Problem(draft.where, "It is empty.", "Draft it anew.")]


def _summary(draft: _Draft) -> list[Problem]:
    count = summaries.entries_in(draft.text)
    if count <= summaries.MOST_ENTRIES:
        return []
    what = f"It has {count} entries; {summaries.MOST_ENTRIES} is the most."
    return [Problem(draft.where, what, "Take the older ones out. MEMORY.md keeps them.")]


_CHECKS = {
    "wisdom": _wisdom,
    "soul": _soul,
    "lines": _lines,
    "tools": _tools,
    "agents": _agents,
    "summary": _summary,
}


# Approving, promoting, undoing


def approve(workspace: Place, artefact: Artefact, by: str) -> Event:
    draft = _draft(workspace, artefact)
    _refuse_errors(problems_of(workspace, artefact, draft), "approved")
    allowed, advice = workspace.allowed(artefact), workspace.advice(artefact)
    return workspace.drafts.approve(
        artefact, by, allowed, advice, {"covers": coverage(split_review(draft)[1])}
    )


def promote(workspace: Place, artefact: Artefact, by: str) -> Event:
    def make(old: bytes | None, draft: bytes) -> bytes:
        text = decode(draft)
        _refuse_errors(problems_of(workspace, artefact, text, promoting=True), "promoted")
        body = split_review(text)[0]
        before = "" if old is None else decode(old)
        return encode(with_section(before, TITLE, LEVEL, body) if artefact.name == "wisdom" else body)

    allowed, advice = workspace.allowed(artefact), workspace.advice(artefact)
    event = workspace.drafts.promote(artefact, by, allowed, advice, make)
    with suppress(OSError, StoreError):  # the line stays as it is; what was asked for is done
        _rewrite(workspace, lambda queue: settled(queue, artefact.draft), make=False)
    return event


def undo(workspace: Place, artefact: Artefact, by: str) -> Event:
    return workspace.drafts.undo(artefact, by)


def _refuse_errors(problems: Iterable[Problem], what: str) -> None:
    errors = [problem for problem in problems if problem.level == "error"]
    if errors:
        told = "\n".join(f"  {problem}" for problem in errors)
        raise DraftRefused(
            f"It cannot be {what} as it is:\n{told}\nChange the draft, or the file that is named."
        )


# The list of the day


def _flag(workspace: Place, artefact: Artefact, event: Event) -> str:
    """Empty, or why it does not say so. The draft is there all the same."""
    told = f"(for {artefact.target}, {event.at[:10]}). Approve it: {workspace.advice(artefact).approve}"
    try:
        _rewrite(workspace, lambda queue: flagged(queue, artefact.draft, told), make=True)
    except (OSError, StoreError) as error:
        return f"{QUEUE} does not ask for the review: {error}"
    return ""


def _rewrite(workspace: Place, change: Callable[[str], str], *, make: bool) -> None:
    """Twice, if somebody wrote to it at the same moment."""
    for last in (False, True):
        old = workspace.read(QUEUE)
        if old is None and not make:
            return
        new = change(old or "")
        try:
            if new != old:
                base = None if old is None else digest(encode(old))
                workspace.tree.write(QUEUE, encode(new), base, workspace.tree.mode(QUEUE))
            return
        except ChangedOnDisk:
            if last:
                raise

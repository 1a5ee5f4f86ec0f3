"""Propose a shorter SOUL.md: identity, decision tiers, boundaries, vibe, how to reach memory and tools,
wisdom.

How agents work together and the rhythm of the day are suggested for AGENTS.md, as a draft of its own. Every
sentence that would no longer be there is listed. SOUL.md itself is not touched: an owner approves with
tacit openclaw approve soul --by NAME, then tacit openclaw promote soul."""

from __future__ import annotations

import argparse

from tacit.cli import output, reviewing
from tacit.cli.reviewing import opened
from tacit.lifecycle.soul import Proposal, how_told
from tacit.workspace import ARTEFACTS
from tacit.workspace.review import propose_as_is
from tacit.workspace.shorter import shorten_soul


def arguments(parser: argparse.ArgumentParser) -> None:
    reviewing.as_is_option(parser)
    reviewing.options(parser)


def run(options: argparse.Namespace) -> int:
    workspace = opened(options)
    if options.as_is:
        return reviewing.said(workspace, propose_as_is(workspace, ARTEFACTS["soul"]), options)
    made = shorten_soul(workspace)
    if options.json:
        return reviewing.said(workspace, made.proposed, options, **_value(made.proposal))
    _say(made.proposal)
    code = reviewing.said(workspace, made.proposed, options)
    if made.agents is not None:
        output.say()
        reviewing.said(workspace, made.agents, options)
    return code


def _say(made: Proposal) -> None:
    output.say(made.soul)
    output.say(how_told(made.how))
    for note in made.notes:
        output.say(note)
    output.say("\nSections:")
    for part in made.parts:
        output.say(f"  {part.told}")
    output.say("\nSentences that are not in it:")
    for sentence in made.dropped or ("none",):
        output.say(f"  {sentence}")
    output.say()


def _value(made: Proposal) -> dict[str, object]:
    sections = [{"title": part.title, "role": part.role, "fate": part.fate} for part in made.parts]
    return {"how": made.how, "sections": sections, "dropped": list(made.dropped), "notes": list(made.notes)}

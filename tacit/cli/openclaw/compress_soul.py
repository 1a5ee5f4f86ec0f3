"""Propose a shorter SOUL.md: identity, decision tiers, boundaries, vibe, how to reach memory and tools,
wisdom.

How agents work together and the rhythm of the day are suggested for AGENTS.md, as a draft of its own. Every
sentence that would no longer be there is listed. SOUL.md itself is not touched: an owner approves with
tacit openclaw approve soul --by NAME, then tacit openclaw promote soul."""

from __future__ import annotations

import argparse

from tacit.cli import reviewing
from tacit.cli.reviewing import open_from_options
from tacit.hosts.openclaw.drafts import shorten_soul
from tacit.hosts.openclaw.soul import SoulProposal, describe_method
from tacit.hosts.openclaw.workspace import ARTEFACTS, propose_as_is
from tacit.terminal import output


def arguments(parser: argparse.ArgumentParser) -> None:
    reviewing.add_as_is_option(parser)
    reviewing.add_options(parser)


def run(options: argparse.Namespace) -> int:
    workspace = open_from_options(options)
    if options.as_is:
        return reviewing.print_proposal(workspace, propose_as_is(workspace, ARTEFACTS["soul"]), options)
    result = shorten_soul(workspace)
    if options.json:
        return reviewing.print_proposal(workspace, result.proposed, options, **_value(result.proposal))
    _say(result.proposal)
    code = reviewing.print_proposal(workspace, result.proposed, options)
    if result.agents is not None:
        output.say()
        reviewing.print_proposal(workspace, result.agents, options)
    return code


def _say(proposal: SoulProposal) -> None:
    output.say(proposal.soul)
    output.say(describe_method(proposal.how))
    for note in proposal.notes:
        output.say(note)
    output.say("\nSections:")
    for part in proposal.parts:
        output.say(f"  {part.told}")
    output.say("\nSentences that are not in it:")
    for sentence in proposal.dropped or ("none",):
        output.say(f"  {sentence}")
    output.say()


def _value(proposal: SoulProposal) -> dict[str, object]:
    sections = [{"title": part.title, "role": part.role, "fate": part.fate} for part in proposal.parts]
    return {
        "how": proposal.how,
        "sections": sections,
        "dropped": list(proposal.dropped),
        "notes": list(proposal.notes),
    }

"""Drafts of an agent's files: the commands that make them, and those that decide about them."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from tacit.hosts.openclaw import drafts
from tacit.hosts.openclaw.soul import SoulProposal, describe_method
from tacit.hosts.openclaw.workspace import (
    CURATED_FILES,
    AgentWorkspace,
    ProposedDraft,
    approve_draft,
    open_workspace,
    promote_draft,
    propose_as_is,
)
from tacit.review.model import CuratedFile, Decision, FileStatus
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, utf8_argument
from tacit.terminal.lines import one_line

# ---------------------------------------------------------------- options


def add_workspace_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workspace", type=utf8_argument, default=None, metavar="DIR",
        help="the agent's folder (default: that of `workspaces` in the config, else ~/.openclaw/workspace)",
    )  # fmt: skip
    add_home_option(parser)
    add_json_option(parser)


def add_as_is_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as-is",
        action="store_true",
        help="propose the existing draft again, for its target as it is now",
    )


def add_by_option(parser: argparse.ArgumentParser, *, required: bool) -> None:
    about = (
        "who approves it; openclaw.soul_approvers and its neighbours name who may"
        if required
        else "who does it"
    )
    parser.add_argument("--by", type=utf8_argument, required=required, default="", metavar="NAME", help=about)


def open_from_options(options: argparse.Namespace) -> AgentWorkspace:
    return open_workspace(options.home, options.workspace)


# ---------------------------------------------------------------- proposing


def compact_tools_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--check", action="store_true", help="only say whether TOOLS.md is newer; exit code 1 if it is"
    )
    add_as_is_option(parser)
    add_workspace_options(parser)


def run_compact_tools(options: argparse.Namespace) -> int:
    """Propose TOOLS_COMPACT.md: browser aliases, ports, topic ids, options of model command lines, voices,
    cameras.

    Values are copied from TOOLS.md and never reworded. It has at most 300 tokens; values without room are
    listed. TOOLS_COMPACT.md itself is not touched: tacit openclaw approve tools --by NAME, then tacit
    openclaw promote tools.
    """
    workspace = open_from_options(options)
    stale = drafts.check_stale_tools(workspace)
    output.print_problems([stale] if stale else [])
    if options.check:
        return 1 if stale else 0
    if options.as_is:
        return print_proposal(workspace, propose_as_is(workspace, CURATED_FILES["tools"]), options)
    result = drafts.compact_tools(workspace)
    if not options.json:
        output.say(result.compact.text)
        for row in result.compact.beyond:
            output.warn(f"warning: no room for {row.name}: {row.value} ({row.header})")
    return _print_proposals(workspace, result.proposed, result.agents, options)


def compress_soul_arguments(parser: argparse.ArgumentParser) -> None:
    add_as_is_option(parser)
    add_workspace_options(parser)


def run_compress_soul(options: argparse.Namespace) -> int:
    """Propose a shorter SOUL.md: identity, decision tiers, boundaries, vibe, how to reach memory and tools,
    wisdom.

    How agents work together and the rhythm of the day are suggested for AGENTS.md, as a draft of its own.
    Every sentence that would no longer be there is listed. SOUL.md itself is not touched: an owner approves
    with tacit openclaw approve soul --by NAME, then tacit openclaw promote soul.
    """
    workspace = open_from_options(options)
    if options.as_is:
        return print_proposal(workspace, propose_as_is(workspace, CURATED_FILES["soul"]), options)
    result = drafts.shorten_soul(workspace)
    if options.json:
        return print_proposal(workspace, result.proposed, options, **_soul_json(result.proposal))
    _print_soul(result.proposal)
    return _print_proposals(workspace, result.proposed, result.agents, options)


def _print_soul(proposal: SoulProposal) -> None:
    output.say(proposal.soul)
    output.say(describe_method(proposal.how))
    for note in proposal.notes:
        output.say(note)
    output.say("\nSections:")
    for part in proposal.parts:
        output.say(f"  {part.summary}")
    output.say("\nSentences that are not in it:")
    for sentence in proposal.dropped or ("none",):
        output.say(f"  {sentence}")
    output.say()


def _soul_json(proposal: SoulProposal) -> dict[str, object]:
    sections = [{"title": part.title, "role": part.role, "fate": part.fate} for part in proposal.parts]
    return {
        "how": proposal.how,
        "sections": sections,
        "dropped": list(proposal.dropped),
        "notes": list(proposal.notes),
    }


memory_summary_arguments = add_workspace_options


def run_memory_summary(options: argparse.Namespace) -> int:
    """Propose MEMORY_SUMMARY.md: the last thirty entries of MEMORY.md, for an agent that does not look them
    up itself.

    It only helps where it is loaded: name it in the files of a session type, such as
    sessions.main_session.files. MEMORY.md stays as it is. tacit openclaw approve summary --by NAME, then
    tacit openclaw promote summary.
    """
    workspace = open_from_options(options)
    proposed, text, count = drafts.summarise_memory(workspace)
    if not options.json:
        output.say(text)
        output.say(f"Entries of MEMORY.md: {count}.")
    return print_proposal(workspace, proposed, options)


def _print_proposals(
    workspace: AgentWorkspace,
    proposed: ProposedDraft,
    agents: ProposedDraft | None,
    options: argparse.Namespace,
) -> int:
    """`agents`: the draft for AGENTS.md that goes with it."""
    code = print_proposal(workspace, proposed, options)
    if agents is not None and not options.json:
        output.say()
        print_proposal(workspace, agents, options)
    return code


def print_proposal(
    workspace: AgentWorkspace, proposed: ProposedDraft, options: argparse.Namespace, **more: Any
) -> int:
    """Print what was proposed, its problems and the next step. Exit code 1 if it cannot be approved."""
    errors = sum(problem.level == "error" for problem in proposed.problems)
    if options.json:
        output.dump({**_event_json(workspace, proposed.event), "path": proposed.file.draft,
                     "kept": proposed.kept or None,
                     "problems": [asdict(problem) for problem in proposed.problems], **more})  # fmt: skip
        return 1 if errors else 0
    output.print_problems(proposed.problems)
    if proposed.kept:
        output.say(f"The earlier draft, which was edited by hand, is kept: {proposed.kept}")
    if proposed.unflagged:
        output.warn(f"warning: {proposed.unflagged}")
    file = proposed.file
    output.say(f"Draft for {file.target}: {workspace.root / file.draft}")
    output.say(f"{file.target} did not change. Read the draft, edit it as you like, then: "
               f"{workspace.rule(file).approve}")  # fmt: skip
    return 1 if errors else 0


def _event_json(workspace: AgentWorkspace, event: Decision) -> dict[str, Any]:
    return {name: value for name, value in workspace.drafts.log.as_dict(event).items() if name != "notes"}


# ---------------------------------------------------------------- the list


def drafts_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--log", action="store_true", help="the record of approvals")
    add_workspace_options(parser)


def run_drafts(options: argparse.Namespace) -> int:
    """All drafts of a workspace, where they stand and what is missing; with --log the whole record of
    them."""
    workspace = open_from_options(options)
    return _print_log(workspace, options) if options.log else _print_standings(workspace, options)


def _print_standings(workspace: AgentWorkspace, options: argparse.Namespace) -> int:
    standings = {name: workspace.status(file) for name, file in CURATED_FILES.items()}
    if options.json:
        output.dump({name: _standing_json(name, standing) for name, standing in standings.items()})
        return 0
    output.print_table(
        (name, CURATED_FILES[name].target, standing.state, f"{standing.why} {standing.todo}".strip())
        for name, standing in standings.items()
    )
    return 0


def _standing_json(name: str, standing: FileStatus) -> dict[str, str]:
    file = CURATED_FILES[name]
    places = {"target": file.target, "draft": file.draft}
    return {**places, "state": standing.state, "why": standing.why, "todo": standing.todo}


def _print_log(workspace: AgentWorkspace, options: argparse.Namespace) -> int:
    events = workspace.drafts.decisions()
    if options.json:
        output.dump([workspace.drafts.log.as_dict(event) for event in events])
    else:
        output.print_table(_event_row(event) for event in events)
    return 0


def _event_row(event: Decision) -> tuple[str, ...]:
    return (
        event.at[:16].replace("T", " "),
        event.what,
        event.request,
        event.by,
        (event.sha256 or "")[:12],
        one_line(event.why),
    )


# ---------------------------------------------------------------- deciding


def approve_arguments(parser: argparse.ArgumentParser) -> None:
    _decision_arguments(parser, required=True)


def promote_arguments(parser: argparse.ArgumentParser) -> None:
    _decision_arguments(parser, required=False)


undo_arguments = promote_arguments


def _decision_arguments(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument("draft", choices=tuple(CURATED_FILES), help="which one")
    add_by_option(parser, required=required)
    add_workspace_options(parser)


def run_approve(options: argparse.Namespace) -> int:
    """Approve a draft, word for word as it stands: who, when and its hash are recorded."""
    return approve(open_from_options(options), CURATED_FILES[options.draft], options)


def run_promote(options: argparse.Namespace) -> int:
    """Put an approved draft in its place. The replaced text is backed up."""
    return promote(open_from_options(options), CURATED_FILES[options.draft], options)


def run_undo(options: argparse.Namespace) -> int:
    """Bring back what the last promotion replaced, unless the file was edited since."""
    return undo(open_from_options(options), CURATED_FILES[options.draft], options)


def approve(workspace: AgentWorkspace, file: CuratedFile, options: argparse.Namespace) -> int:
    event = approve_draft(workspace, file, options.by)
    text = f"{event.by} approved {file.draft} ({(event.sha256 or '')[:12]})."
    return _print_event(
        workspace, event, options, f"{text} To put it into {file.target}: {_command('promote', file)}"
    )


def promote(workspace: AgentWorkspace, file: CuratedFile, options: argparse.Namespace) -> int:
    event = promote_draft(workspace, file, options.by)
    backup = f" The replaced text is in {event.backup}." if event.backup else ""
    text = f"{file.target} has the draft now.{backup} To go back: {_command('undo', file)}"
    return _print_event(workspace, event, options, text)


def undo(workspace: AgentWorkspace, file: CuratedFile, options: argparse.Namespace) -> int:
    event = workspace.drafts.undo(file, options.by)
    state = "is gone, as before" if event.result is None else "is as it was before"
    return _print_event(workspace, event, options, f"{file.target} {state} the draft was promoted.")


def _command(verb: str, file: CuratedFile) -> str:
    return f"tacit wisdom {verb}" if file.name == "wisdom" else f"tacit openclaw {verb} {file.name}"


def _print_event(workspace: AgentWorkspace, event: Decision, options: argparse.Namespace, text: str) -> int:
    if options.json:
        output.dump(_event_json(workspace, event))
    else:
        output.say(text)
    return 0

"""Review pending changes to notes.

  list            pending changes, oldest first; --log: all decisions so far
  show NAME       one change: its reason, its source and its diff
  approve NAME    apply it, in one commit; approver, time and hash of the draft are recorded
  reject NAME     discard it; it is not proposed again
  edit NAME       edit it first: in $EDITOR, or by --file
  rebase NAME     update it if its note changed meanwhile

A name may be shortened. `tacit history undo COMMIT` reverts an approval.
"""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tacit.app import open_home
from tacit.cli.editor import edit_text
from tacit.errors import TacitError
from tacit.home.files import Tree
from tacit.markdown import comment, notes
from tacit.memory import Memory
from tacit.review import service
from tacit.review.model import ChangeRequest
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, utf8_argument
from tacit.terminal.lines import one_line


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="what waits")
    listing.add_argument("--log", action="store_true", help="the record of what was decided")
    _add_common_arguments(listing)
    for name, about in _ACTIONS.items():
        action = actions.add_parser(name, help=about)
        action.add_argument("name", type=utf8_argument, metavar="NAME", help="the draft")
        if name != "show":
            action.add_argument(
                "--by", type=utf8_argument, default="", metavar="NAME", help="who says so (default: you)"
            )
        if name == "reject":
            action.add_argument(
                "--why", type=utf8_argument, default="", metavar="TEXT", help="for the record"
            )
        if name == "edit":
            action.add_argument(
                "--file",
                type=utf8_argument,
                default="",
                metavar="FILE",
                help="the new text; - is standard input",
            )
        _add_common_arguments(action)


_ACTIONS = {
    "show": "why it was made, and what it would change",
    "approve": "do what it says",
    "reject": "drop it for good",
    "edit": "change its text",
    "rebase": "bring it up to its note",
}


def _add_common_arguments(parser: argparse.ArgumentParser) -> None:
    add_home_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home)
    if options.action == "list":
        return _log(memory, options) if options.log else _list(memory, options)
    if options.action == "show":
        return _show(memory, options)
    reviewer = options.by or _current_user()
    return {"approve": _approve, "reject": _reject, "edit": _edit, "rebase": _rebase}[options.action](
        memory, options, reviewer
    )


def _current_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no user has this id
        return ""


# ---------------------------------------------------------------- list and show


def _list(memory: Memory, options: argparse.Namespace) -> int:
    drafts, problems = memory.reviews.waiting(), memory.reviews.problems()
    if options.json:
        output.dump([_draft_json(memory, draft) for draft in drafts])
        return 0
    output.print_table(
        (
            draft.id,
            draft.made[:10],
            draft.trust,
            draft.policy,
            _describe_change(draft),
            one_line(draft.reason),
        )
        for draft in drafts
    )
    output.print_problems(problems)
    if not drafts:
        output.say("Nothing waits for a review.")
    else:
        output.say(f"\n{_count_drafts(len(drafts))}. See one with: tacit review show {drafts[0].id}")
    return 0


def _count_drafts(count: int) -> str:
    return "1 draft waits" if count == 1 else f"{count} drafts wait"


def _describe_change(draft: ChangeRequest) -> str:
    if draft.form == "lines":
        count = sum(line.startswith(("- ", "* ")) or line[:1].isdigit() for line in draft.body.split("\n"))
        return f"{count} line{'' if count == 1 else 's'}"
    return f"{draft.target} → {draft.to}" if draft.form == "move" else draft.target


def _draft_json(memory: Memory, draft: ChangeRequest) -> dict[str, Any]:
    return {**asdict(draft), "stale": memory.services.review.is_stale(draft)}


def _show(memory: Memory, options: argparse.Namespace) -> int:
    draft = memory.reviews.find(options.name)
    diff, refused = _preview(memory, draft)
    if options.json:
        output.dump({**_draft_json(memory, draft), "diff": diff, "refused": refused})
        return 0
    output.say(f"{draft.id}: {draft.reason}")
    output.print_table(
        [("made", draft.made[:16].replace("T", " ")), ("word of", draft.trust), ("policy", draft.policy)]
    )
    for remark in draft.notes:
        output.say(f"  {remark}")
    for line in _source_lines(memory, draft):
        output.say(line)
    output.say(
        f"\n{diff}" if diff else f"\n{refused or 'It would change nothing: the notes say it already.'}"
    )
    output.say(f"\nYes: tacit review approve {draft.id}\nNo:  tacit review reject {draft.id}")
    return 0


def _preview(memory: Memory, draft: ChangeRequest) -> tuple[str, str]:
    try:
        return service.render_diff(memory.services.review.plan_edits(draft)), ""
    except TacitError as error:
        return "", str(error)


def _source_lines(memory: Memory, draft: ChangeRequest, limit: int = 8) -> Iterator[str]:
    """The messages that the draft was made from."""
    sources = dict.fromkeys(source for line in draft.body.split("\n") for source in _sources_of(line))
    for source in list(sources)[:limit]:
        path, number = comment.transcript_path(source), comment.message_number(source)
        try:
            turns = {turn.number: turn for turn in memory.transcript(path).turns}
        except (OSError, TacitError):
            yield f"from {path}, which is gone"
            continue
        turn = turns.get(number or 0)
        text = one_line(str(getattr(turn, "text", "") or getattr(turn, "result", "")))
        yield f"from {path}" + (f" #{number}: “{text[:160]}”" if text else "")


def _sources_of(line: str) -> tuple[str, ...]:
    provenance = comment.read(line)[1]
    return provenance.sources if provenance else ()


def _log(memory: Memory, options: argparse.Namespace) -> int:
    decisions = memory.reviews.decisions()
    if options.json:
        output.dump(
            [
                {name: value or "" for name, value in memory.reviews.log.as_dict(decision).items()}
                for decision in decisions
            ]
        )
    else:
        output.print_table(
            (
                decision.at[:16].replace("T", " "),
                decision.what,
                decision.request,
                decision.by,
                (decision.sha256 or "")[:12],
                one_line(decision.why),
            )
            for decision in decisions
        )
    return 0


# ---------------------------------------------------------------- decisions


def _approve(memory: Memory, options: argparse.Namespace, reviewer: str) -> int:
    result = memory.services.review.approve(options.name, reviewer)
    if options.json:
        output.dump(
            {"draft": result.draft.id, "by": reviewer, "paths": result.paths, "commit": result.commit}
        )
        return 0
    output.say(
        f"{reviewer} approved {result.draft.id}: {', '.join(result.paths) or 'the notes said it already'}"
    )
    if result.commit:
        output.say(f"To take it back: tacit history undo {result.commit[:10]}")
    return 0


def _reject(memory: Memory, options: argparse.Namespace, reviewer: str) -> int:
    result = memory.services.review.reject(options.name, reviewer, options.why)
    if options.json:
        output.dump({"draft": result.draft.id, "by": reviewer, "commit": result.commit})
    else:
        output.say(f"{reviewer} rejected {result.draft.id}. It is not proposed again; nothing else changed.")
    return 0


def _edit(memory: Memory, options: argparse.Namespace, reviewer: str) -> int:
    draft = memory.reviews.find(options.name)
    path = memory.reviews.path_of(draft)
    text = notes.decode(Tree(memory.home.root).read(path))
    new = _read_text(options.file) if options.file else edit_text(text)
    if new == text:
        output.say(f"{draft.id} is as it was.")
        return 0
    memory.services.review.edit_draft(draft.id, new, reviewer)
    output.say(f"{draft.id} is changed. Approve it with: tacit review approve {draft.id}")
    return 0


def _read_text(file: str) -> str:
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return notes.decode(data)


def _rebase(memory: Memory, options: argparse.Namespace, reviewer: str) -> int:
    draft = memory.services.review.rebase(options.name, reviewer)
    output.say(f"{draft.id} is for {draft.target} as it is now. See it with: tacit review show {draft.id}")
    return 0

"""Changes to notes that wait for somebody's word.

  list            what waits, oldest first; --log: everything that was ever decided
  show NAME       a draft: why it was made, from which words, and what it would change
  approve NAME    do what it says, in one commit; who, when and the hash of the draft are recorded
  reject NAME     it goes, and is not proposed again
  edit NAME       change it first: in $EDITOR, or by --file
  rebase NAME     bring it up to its note, where that changed meanwhile

A name may be cut short. What an approval did is taken back by `tacit history undo COMMIT`.
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
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, words
from tacit.cli.editor import in_editor
from tacit.cli.lines import one_line
from tacit.errors import TacitError
from tacit.memory import Memory, reviewing
from tacit.model.review import Draft
from tacit.store.files import Tree
from tacit.text import marks, notes


def arguments(parser: argparse.ArgumentParser) -> None:
    below = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = below.add_parser("list", help="what waits")
    listing.add_argument("--log", action="store_true", help="the record of what was decided")
    _common(listing)
    for name, about in _ACTIONS.items():
        one = below.add_parser(name, help=about)
        one.add_argument("name", type=words, metavar="NAME", help="the draft")
        if name != "show":
            one.add_argument(
                "--by", type=words, default="", metavar="NAME", help="who says so (default: you)"
            )
        if name == "reject":
            one.add_argument("--why", type=words, default="", metavar="TEXT", help="for the record")
        if name == "edit":
            one.add_argument(
                "--file", type=words, default="", metavar="FILE", help="the new text; - is standard input"
            )
        _common(one)


_ACTIONS = {
    "show": "why it was made, and what it would change",
    "approve": "do what it says",
    "reject": "drop it for good",
    "edit": "change its text",
    "rebase": "bring it up to its note",
}


def _common(parser: argparse.ArgumentParser) -> None:
    home_option(parser)
    json_option(parser)


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home)
    if options.action == "list":
        return _log(memory, options) if options.log else _list(memory, options)
    if options.action == "show":
        return _show(memory, options)
    by = options.by or _user()
    return {"approve": _approve, "reject": _reject, "edit": _edit, "rebase": _rebase}[options.action](
        memory, options, by
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # nobody by that number
        return ""


# ---------------------------------------------------------------- looking


def _list(memory: Memory, options: argparse.Namespace) -> int:
    drafts, problems = memory.reviews.waiting(), memory.reviews.problems()
    if options.json:
        output.dump([_value(memory, draft) for draft in drafts])
        return 0
    output.table(
        (draft.id, draft.made[:10], draft.trust, draft.policy, _what(draft), one_line(draft.reason))
        for draft in drafts
    )
    output.problems(problems)
    if not drafts:
        output.say("Nothing waits for a review.")
    else:
        output.say(f"\n{_waiting(len(drafts))}. See one with: tacit review show {drafts[0].id}")
    return 0


def _waiting(count: int) -> str:
    return "1 draft waits" if count == 1 else f"{count} drafts wait"


def _what(draft: Draft) -> str:
    if draft.form == "lines":
        count = sum(line.startswith(("- ", "* ")) or line[:1].isdigit() for line in draft.body.split("\n"))
        return f"{count} line{'' if count == 1 else 's'}"
    return f"{draft.target} → {draft.to}" if draft.form == "move" else draft.target


def _value(memory: Memory, draft: Draft) -> dict[str, Any]:
    return {**asdict(draft), "stale": reviewing.is_stale(memory, draft)}


def _show(memory: Memory, options: argparse.Namespace) -> int:
    draft = memory.reviews.find(options.name)
    diff, refused = _diff(memory, draft)
    if options.json:
        output.dump({**_value(memory, draft), "diff": diff, "refused": refused})
        return 0
    output.say(f"{draft.id}: {draft.reason}")
    output.table(
        [("made", draft.made[:16].replace("T", " ")), ("word of", draft.trust), ("policy", draft.policy)]
    )
    for remark in draft.notes:
        output.say(f"  {remark}")
    for said in _words(memory, draft):
        output.say(said)
    output.say(
        f"\n{diff}" if diff else f"\n{refused or 'It would change nothing: the notes say it already.'}"
    )
    output.say(f"\nYes: tacit review approve {draft.id}\nNo:  tacit review reject {draft.id}")
    return 0


def _diff(memory: Memory, draft: Draft) -> tuple[str, str]:
    try:
        return reviewing.diff_of(reviewing.edits_of(memory, draft)), ""
    except TacitError as error:
        return "", str(error)


def _words(memory: Memory, draft: Draft, most: int = 8) -> Iterator[str]:
    """What was said, where it came from."""
    sources = dict.fromkeys(source for line in draft.body.split("\n") for source in _sources(line))
    for source in list(sources)[:most]:
        path, number = marks.transcript_of(source), marks.number_of(source)
        try:
            turns = {turn.number: turn for turn in memory.transcript(path).turns}
        except (OSError, TacitError):
            yield f"from {path}, which is gone"
            continue
        turn = turns.get(number or 0)
        said = one_line(str(getattr(turn, "text", "") or getattr(turn, "result", "")))
        yield f"from {path}" + (f" #{number}: “{said[:160]}”" if said else "")


def _sources(line: str) -> tuple[str, ...]:
    mark = marks.read(line)[1]
    return mark.sources if mark else ()


def _log(memory: Memory, options: argparse.Namespace) -> int:
    decisions = memory.reviews.decisions()
    if options.json:
        output.dump([asdict(one) for one in decisions])
    else:
        output.table(
            (one.at[:16].replace("T", " "), one.what, one.draft, one.by, one.sha256[:12], one_line(one.why))
            for one in decisions
        )
    return 0


# ---------------------------------------------------------------- deciding


def _approve(memory: Memory, options: argparse.Namespace, by: str) -> int:
    done = reviewing.approve(memory, options.name, by)
    if options.json:
        output.dump({"draft": done.draft.id, "by": by, "paths": done.paths, "commit": done.commit})
        return 0
    output.say(f"{by} approved {done.draft.id}: {', '.join(done.paths) or 'the notes said it already'}")
    if done.commit:
        output.say(f"To take it back: tacit history undo {done.commit[:10]}")
    return 0


def _reject(memory: Memory, options: argparse.Namespace, by: str) -> int:
    done = reviewing.reject(memory, options.name, by, options.why)
    if options.json:
        output.dump({"draft": done.draft.id, "by": by, "commit": done.commit})
    else:
        output.say(f"{by} rejected {done.draft.id}. It is not proposed again; nothing else changed.")
    return 0


def _edit(memory: Memory, options: argparse.Namespace, by: str) -> int:
    draft = memory.reviews.find(options.name)
    path = memory.reviews.path_of(draft)
    text = notes.decode(Tree(memory.home.root).read(path))
    new = _given(options.file) if options.file else in_editor(text)
    if new == text:
        output.say(f"{draft.id} is as it was.")
        return 0
    reviewing.edit(memory, draft.id, new, by)
    output.say(f"{draft.id} is changed. Approve it with: tacit review approve {draft.id}")
    return 0


def _given(file: str) -> str:
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return notes.decode(data)


def _rebase(memory: Memory, options: argparse.Namespace, by: str) -> int:
    draft = reviewing.rebase(memory, options.name, by)
    output.say(f"{draft.id} is for {draft.target} as it is now. See it with: tacit review show {draft.id}")
    return 0

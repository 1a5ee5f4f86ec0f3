"""Ask the past.

A moment is a date (2026-02-16: the end of that day), a date and time, a span (`3 days`, `1 week`),
`yesterday`, `today` or `now`, a tag or a commit. `undo` takes only a commit.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence

from tacit.app import open_home
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, words
from tacit.cli.paths import within
from tacit.errors import UsageError
from tacit.memory import Memory
from tacit.store.history import FileDiff, Learned, Origin
from tacit.store.tags import KINDS, snapshot, tags


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="QUESTION", required=True)
    for name, (about, *_) in _ACTIONS.items():
        action = actions.add_parser(name, help=about, description=about)
        _positional(action, name)
        home_option(action)
        json_option(action)


def _positional(parser: argparse.ArgumentParser, name: str) -> None:
    if name == "when":
        parser.add_argument(
            "text", type=words, help="the words to look for, exactly; -- before them if they begin with -"
        )
    if name in ("blame", "recall"):
        parser.add_argument("path", help="a file of the home")
    if name == "recall":
        parser.add_argument("at", help="the moment")
    if name == "diff":
        parser.add_argument("since", help="the earlier moment")
        parser.add_argument("until", nargs="?", default="HEAD", help="the later moment (default: now)")
    if name == "undo":
        parser.add_argument("commit", help="the commit to take back, by its name (4 hex digits or more)")
    if name == "snapshot":
        parser.add_argument("name", help="a name for the present state")
        parser.add_argument(
            "--kind", choices=KINDS, default="milestone", help="before: ahead of a big change"
        )


def run(options: argparse.Namespace) -> int:
    memory = open_home(options.home, recover=False)
    _, act = _ACTIONS[options.action]
    return act(memory, options)


def _when(memory: Memory, options: argparse.Namespace) -> int:
    found = memory.history.when(options.text)
    if options.json:
        output.dump([_learned(item) for item in found])
        return 0 if found else 1
    if not found:
        output.say(f"Nothing in the history ever contained {options.text!r}.")
        return 1
    first = found[0]
    output.say(f"First on {first.commit.when:%Y-%m-%d %H:%M}, in {first.path}:")
    for item in found:
        sign = "+" if item.appeared else "−"
        output.say(f"  {item.commit.when:%Y-%m-%d %H:%M}  {item.commit.name[:10]}  {sign} {item.path}")
        output.say(f"      {_short(item.line)}")
    return 0


def _learned(item: Learned) -> dict[str, object]:
    return {
        "when": item.commit.when.isoformat(),
        "commit": item.commit.name,
        "subject": item.commit.subject,
        "session": item.commit.session or None,
        "path": item.path,
        "line": item.line,
        "appeared": item.appeared,
    }


def _blame(memory: Memory, options: argparse.Namespace) -> int:
    found = memory.history.blame(within(memory.home.root, options.path))
    if options.json:
        output.dump([_origin(item) for item in found])
        return 0
    for item in found:
        output.say(f"{item.commit.when:%Y-%m-%d %H:%M}  {item.commit.name[:10]}  {item.commit.subject}")
        for number, line in enumerate(item.lines, item.first):
            output.say(f"  {number:>5}  {line}")
    return 0


def _origin(item: Origin) -> dict[str, object]:
    return {
        "when": item.commit.when.isoformat(),
        "commit": item.commit.name,
        "subject": item.commit.subject,
        "first_line": item.first,
        "lines": item.lines,
    }


def _diff(memory: Memory, options: argparse.Namespace) -> int:
    return _print_diff(memory.history.diff(options.since, options.until), options, f"since {options.since}")


def _today(memory: Memory, options: argparse.Namespace) -> int:
    return _print_diff(memory.history.today(), options, "today")


def _print_diff(found: Sequence[FileDiff], options: argparse.Namespace, span: str) -> int:
    if options.json:
        output.dump([{"path": d.path, "what": d.what, "added": d.added, "removed": d.removed} for d in found])
        return 0
    if not found:
        output.say(f"Nothing changed in knowledge/ {span}.")
    for item in found:
        output.say(f"{item.path}  ({item.what}, +{len(item.added)} −{len(item.removed)})")
        for sign, lines in (("−", item.removed), ("+", item.added)):
            for line in lines:
                if line.strip():
                    output.say(f"  {sign} {line}")
    return 0


def _recall(memory: Memory, options: argparse.Namespace) -> int:
    path = within(memory.home.root, options.path)
    text = memory.history.recall(path, options.at)
    if options.json:
        output.dump({"path": path, "at": options.at, "text": text})
    else:
        output.say(text.removesuffix("\n"))
    return 0


def _undo(memory: Memory, options: argparse.Namespace) -> int:
    made = memory.history.undo(options.commit)
    if options.json:
        output.dump({"commit": made})
    else:
        output.say(f"Undone with commit {made[:10]}; take that back with: tacit history undo {made[:10]}")
    return 0


def _snapshot(memory: Memory, options: argparse.Namespace) -> int:
    _require_plain(options.name)
    left = [edit.path for edit in memory.note_changes().edits]
    tag = snapshot(memory.git, options.name, options.kind)
    if options.json:
        output.dump({"tag": tag, "not_in_it": left})
        return 0
    output.say(f"{tag} names the present state. See a file as it is now: tacit history recall PATH {tag}")
    if left:
        edited = f"{output.plural(len(left), 'edited note')} {'is' if len(left) == 1 else 'are'} not in it"
        output.warn(f"warning: {edited}: {output.short(', '.join(left), 200)}")
        output.warn("To have such edits in a snapshot, run `tacit run commit` before it.")
    return 0


def _require_plain(name: str) -> None:
    """A tag is a file below .git/refs: its name has no folders, and room for what git appends to it."""
    if not re.fullmatch(r"\w[\w.+-]*", name) or len(os.fsencode(name)) > 200:
        what = f"{output.short(name, 60)!r} cannot be the name of a snapshot."
        raise UsageError(
            f"{what} Use at most 200 letters, digits, dots and hyphens, a letter or digit first."
        )


def _tags(memory: Memory, options: argparse.Namespace) -> int:
    found = tags(memory.git)
    if options.json:
        output.dump([{"tag": tag.name, "commit": tag.commit, "when": tag.when.isoformat()} for tag in found])
        return 0
    output.table((f"{tag.when:%Y-%m-%d %H:%M}", tag.commit[:10], tag.name, tag.subject) for tag in found)
    if not found:
        output.say(
            "No tags yet. `tacit run commit` tags each day; `tacit history snapshot NAME` names a moment."
        )
    return 0


def _short(line: str) -> str:
    return line if len(line) <= 160 else line[:159] + "…"


_ACTIONS = {
    "when": ("When did I learn this?", _when),
    "blame": ("Where does each line of this file come from?", _blame),
    "diff": ("What changed in my understanding between two moments?", _diff),
    "today": ("What did I learn today?", _today),
    "recall": ("What did this file say then?", _recall),
    "undo": ("Take back what one commit did to the notes.", _undo),
    "snapshot": ("Name the present state.", _snapshot),
    "tags": ("Which moments have names?", _tags),
}

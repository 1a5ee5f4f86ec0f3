"""The commands about the past, and the proof that transcripts are unchanged."""

from __future__ import annotations

import argparse
import os
import re
from collections import Counter
from collections.abc import Sequence

from tacit.app import open_home
from tacit.errors import UsageError
from tacit.git.history import BlameRange, FileDiff, TextOccurrence
from tacit.git.refs import SNAPSHOT_KINDS, create_snapshot, list_tags
from tacit.memory import Memory
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, add_quiet_option, utf8_argument
from tacit.terminal.paths import path_in_home


def history_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="QUESTION", required=True)
    for name, (about, *_) in _ACTIONS.items():
        action = actions.add_parser(name, help=about, description=about)
        _add_arguments(action, name)
        add_home_option(action)
        add_json_option(action)


def _add_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    if name == "when":
        parser.add_argument(
            "text",
            type=utf8_argument,
            help="the words to look for, exactly; -- before them if they begin with -",
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
            "--kind", choices=SNAPSHOT_KINDS, default="milestone", help="before: ahead of a big change"
        )


def run_history(options: argparse.Namespace) -> int:
    """Ask the history.

    A moment is a date (2026-02-16: the end of that day), a date and time, a span (`3 days`, `1 week`),
    `yesterday`, `today` or `now`, a tag or a commit. `undo` takes only a commit.
    """
    memory = open_home(options.home, recover=False)
    _, act = _ACTIONS[options.action]
    return act(memory, options)


def _when(memory: Memory, options: argparse.Namespace) -> int:
    hits = memory.history.when(options.text)
    if options.json:
        output.dump([_learned_json(hit) for hit in hits])
        return 0 if hits else 1
    if not hits:
        output.say(f"Nothing in the history ever contained {options.text!r}.")
        return 1
    first = hits[0]
    output.say(f"First on {first.commit.when:%Y-%m-%d %H:%M}, in {first.path}:")
    for hit in hits:
        sign = "+" if hit.appeared else "−"
        output.say(f"  {hit.commit.when:%Y-%m-%d %H:%M}  {hit.commit.name[:10]}  {sign} {hit.path}")
        output.say(f"      {_shorten(hit.line)}")
    return 0


def _learned_json(learned: TextOccurrence) -> dict[str, object]:
    return {
        "when": learned.commit.when.isoformat(),
        "commit": learned.commit.name,
        "subject": learned.commit.subject,
        "session": learned.commit.session or None,
        "path": learned.path,
        "line": learned.line,
        "appeared": learned.appeared,
    }


def _blame(memory: Memory, options: argparse.Namespace) -> int:
    origins = memory.history.blame(path_in_home(memory.home.root, options.path))
    if options.json:
        output.dump([_origin_json(origin) for origin in origins])
        return 0
    for origin in origins:
        output.say(f"{origin.commit.when:%Y-%m-%d %H:%M}  {origin.commit.name[:10]}  {origin.commit.subject}")
        for number, line in enumerate(origin.lines, origin.first):
            output.say(f"  {number:>5}  {line}")
    return 0


def _origin_json(origin: BlameRange) -> dict[str, object]:
    return {
        "when": origin.commit.when.isoformat(),
        "commit": origin.commit.name,
        "subject": origin.commit.subject,
        "first_line": origin.first,
        "lines": origin.lines,
    }


def _diff(memory: Memory, options: argparse.Namespace) -> int:
    return _print_diff(memory.history.diff(options.since, options.until), options, f"since {options.since}")


def _today(memory: Memory, options: argparse.Namespace) -> int:
    return _print_diff(memory.history.today(), options, "today")


def _print_diff(diffs: Sequence[FileDiff], options: argparse.Namespace, span: str) -> int:
    if options.json:
        output.dump(
            [
                {"path": diff.path, "what": diff.what, "added": diff.added, "removed": diff.removed}
                for diff in diffs
            ]
        )
        return 0
    if not diffs:
        output.say(f"Nothing changed in knowledge/ {span}.")
    for diff in diffs:
        output.say(f"{diff.path}  ({diff.what}, +{len(diff.added)} −{len(diff.removed)})")
        for sign, lines in (("−", diff.removed), ("+", diff.added)):
            for line in lines:
                if line.strip():
                    output.say(f"  {sign} {line}")
    return 0


def _recall(memory: Memory, options: argparse.Namespace) -> int:
    path = path_in_home(memory.home.root, options.path)
    text = memory.history.recall(path, options.at)
    if options.json:
        output.dump({"path": path, "at": options.at, "text": text})
    else:
        output.say(text.removesuffix("\n"))
    return 0


def _undo(memory: Memory, options: argparse.Namespace) -> int:
    commit = memory.history.undo(options.commit)
    if options.json:
        output.dump({"commit": commit})
    else:
        output.say(f"Undone with commit {commit[:10]}; take that back with: tacit history undo {commit[:10]}")
    return 0


def _snapshot(memory: Memory, options: argparse.Namespace) -> int:
    _require_plain_name(options.name)
    left_out = [edit.path for edit in memory.services.note_committer.note_changes().edits]
    tag = create_snapshot(memory.git, options.name, options.kind)
    if options.json:
        output.dump({"tag": tag, "not_in_it": left_out})
        return 0
    output.say(f"{tag} names the present state. See a file as it is now: tacit history recall PATH {tag}")
    if left_out:
        count = output.pluralize(len(left_out), "edited note")
        edited = f"{count} {'is' if len(left_out) == 1 else 'are'} not in it"
        output.warn(f"warning: {edited}: {output.shorten(', '.join(left_out), 200)}")
        output.warn("To have such edits in a snapshot, run `tacit run commit` before it.")
    return 0


def _require_plain_name(name: str) -> None:
    """A tag is a file below .git/refs: its name may hold no folders and leaves room for what git appends."""
    if not re.fullmatch(r"\w[\w.+-]*", name) or len(os.fsencode(name)) > 200:
        problem = f"{output.shorten(name, 60)!r} cannot be the name of a snapshot."
        raise UsageError(
            f"{problem} Use at most 200 letters, digits, dots and hyphens, a letter or digit first."
        )


def _tags(memory: Memory, options: argparse.Namespace) -> int:
    all_tags = list_tags(memory.git)
    if options.json:
        output.dump(
            [{"tag": tag.name, "commit": tag.commit, "when": tag.when.isoformat()} for tag in all_tags]
        )
        return 0
    output.print_table(
        (f"{tag.when:%Y-%m-%d %H:%M}", tag.commit[:10], tag.name, tag.subject) for tag in all_tags
    )
    if not all_tags:
        output.say(
            "No tags yet. `tacit run commit` tags each day; `tacit history snapshot NAME` names a moment."
        )
    return 0


def _shorten(line: str) -> str:
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


def verify_arguments(parser: argparse.ArgumentParser) -> None:
    add_home_option(parser)
    add_json_option(parser)
    add_quiet_option(parser)


def run_verify(options: argparse.Namespace) -> int:
    """Check every sealed transcript against its hash, and list those that were changed.

    Files that a sparse checkout leaves out are "not checked out"; their copy in git is checked instead.

    Exit code 1 if a transcript was changed, or is missing or unreadable.
    """
    memory = open_home(options.home, recover=False)
    with output.progress("verifying", quiet=options.quiet or options.json) as tick:
        checked = list(memory.verify(tick))
    bad = [item for item in checked if not item.good]
    counts = Counter(item.state for item in checked)
    if options.json:
        problems = [{"path": item.path, "state": item.state, "detail": item.detail} for item in bad]
        output.dump({"transcripts": len(checked), "states": dict(counts), "problems": problems})
        return 1 if bad else 0
    for item in bad:
        output.say(f"{item.state.upper()}: {item.path}\n    {item.detail}")
    if not options.quiet:
        states = ", ".join(f"{count} {state}" for state, count in counts.most_common()) or "none yet"
        output.say(f"{output.pluralize(len(checked), 'transcript')}: {states}.")
    return 1 if bad else 0

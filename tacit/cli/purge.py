"""Remove an origin and all that was derived from it.

  tacit purge --origin telegram:direct:99       sessions by their key, as `tacit forget` reads it
  tacit purge --origin ses_a1b2                 one session by its id
  tacit purge --origin raw/conversations/….md   one transcript
  tacit purge --origin tool:mail                what a tool gave back, and what was said in answer to it
  tacit purge --origin web:example.org          the same, of tools that had an address there
  tacit purge --origin url:TEXT                 the same, of tools whose call or answer has this text

Lines that tacit made from it go out of notes, archive, drafts and proposals. raw/purged.jsonl says what
counts no more, so that neither search nor learning nor a rebuild brings it back. Lines that somebody changed
since stay, unless --edited is given. Transcripts stay as they are: `tacit forget` removes the words
themselves, from the history too. Without --yes it only shows what would go. Exit code 1 when nothing matches.
"""

from __future__ import annotations

import argparse
import getpass
import shlex
from collections.abc import Sequence

from tacit.app import open_home
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, words
from tacit.errors import UsageError
from tacit.memory.purge import Purge, carry_out, look
from tacit.store.generated import Marked

_SHOWN = 200  # lines


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--origin", metavar="ORIGIN", type=words, required=True, help="what goes")
    parser.add_argument("--yes", action="store_true", help="do it")
    parser.add_argument("--edited", action="store_true", help="lines that somebody changed since, too")
    parser.add_argument("--by", metavar="NAME", type=words, help="who does it (default: the user)")
    parser.add_argument("--why", metavar="TEXT", type=words, default="", help="kept with it")
    home_option(parser)
    json_option(parser)


def run(options: argparse.Namespace) -> int:
    if not options.origin.strip():
        raise UsageError("Name an origin: tacit purge --origin telegram:direct:99")
    memory = open_home(options.home, recover=False)
    if options.yes:
        by = options.by or getpass.getuser()
        found = carry_out(memory, options.origin, by=by, why=options.why, edited=options.edited)
    else:
        found = look(memory, options.origin, edited=options.edited)
    if options.json:
        output.dump({**_value(found), "done": options.yes and not found.is_empty})
    elif found.is_empty:
        output.say(
            f"Nothing here is from {options.origin!r}. Origins are session keys, session ids, transcripts,"
        )
        output.say("tool:NAME, web:DOMAIN and url:TEXT; `tacit why-known TEXT` tells where a line is from.")
    else:
        _say(found, options)
    return 1 if found.is_empty else 0


def _say(found: Purge, options: argparse.Namespace) -> None:
    _say_lines("These lines went:" if options.yes else "These lines would go:", found.lines)
    _say_lines("Somebody changed these since, so they stay (--edited takes them too):", found.edited)
    rows = [
        ("transcripts", str(len({source.partition("#")[0] for source in found.sources}))),
        ("records", str(sum("#" in source for source in found.sources))),
        ("notes that are empty then", str(len(found.notes))),
        ("proposals", str(found.proposals)),
    ]
    output.table(row for row in rows if row[1] != "0")
    if not options.yes:
        again = " It was purged before." if found.is_named else ""
        output.say(f"\nNothing was changed.{again} To remove all of this:\n  {_command(options)}")
        return
    if found.commit:
        output.say(f"\nDone in {found.commit[:10]}. To take it back: tacit history undo {found.commit[:10]}")
    else:
        output.say("\nIt was purged before, and nothing of it is left.")
    output.say(
        "The words still stand in transcripts and in the history. To remove them too: tacit forget --help"
    )


def _say_lines(title: str, lines: Sequence[Marked]) -> None:
    if not lines:
        return
    output.say(title)
    for one in lines[:_SHOWN]:
        output.say(f"  {one.path}:{one.number}  {output.short(one.text.strip(), 90)}")
    if len(lines) > _SHOWN:
        output.say(f"  and {output.plural(len(lines) - _SHOWN, 'more line')}")


def _command(options: argparse.Namespace) -> str:
    parts = ["tacit", "purge", "--origin", options.origin]
    for name in ("by", "why", "home"):
        if getattr(options, name):
            parts += [f"--{name}", getattr(options, name)]
    return shlex.join([*parts, *(["--edited"] if options.edited else []), "--yes"])


def _value(found: Purge) -> dict[str, object]:
    return {
        "origin": found.origin,
        "sources": list(found.sources),
        "lines": [_line(one) for one in found.lines],
        "edited": [_line(one) for one in found.edited],
        "notes": list(found.notes),
        "proposals": found.proposals,
        "purged_before": found.is_named,
        "commit": found.commit or None,
    }


def _line(one: Marked) -> dict[str, object]:
    mark = one.mark
    return {
        "path": one.path,
        "line": one.number,
        "text": one.text,
        "extractor": mark.extractor,
        "trust": mark.trust,
        "sources": list(mark.sources),
    }

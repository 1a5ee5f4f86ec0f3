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
from tacit.errors import UsageError
from tacit.provenance.generated_lines import GeneratedLine
from tacit.provenance.purge import Purge, carry_out, inspect
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, utf8_argument

_MAX_LINES_SHOWN = 200


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--origin", metavar="ORIGIN", type=utf8_argument, required=True, help="what goes")
    parser.add_argument("--yes", action="store_true", help="do it")
    parser.add_argument("--edited", action="store_true", help="lines that somebody changed since, too")
    parser.add_argument("--by", metavar="NAME", type=utf8_argument, help="who does it (default: the user)")
    parser.add_argument("--why", metavar="TEXT", type=utf8_argument, default="", help="kept with it")
    add_home_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    if not options.origin.strip():
        raise UsageError("Name an origin: tacit purge --origin telegram:direct:99")
    memory = open_home(options.home, recover=False)
    if options.yes:
        user = options.by or getpass.getuser()
        purge = carry_out(memory, options.origin, by=user, why=options.why, edited=options.edited)
    else:
        purge = inspect(memory, options.origin, edited=options.edited)
    if options.json:
        output.dump({**_purge_json(purge), "done": options.yes and not purge.is_empty})
    elif purge.is_empty:
        output.say(
            f"Nothing here is from {options.origin!r}. Origins are session keys, session ids, transcripts,"
        )
        output.say("tool:NAME, web:DOMAIN and url:TEXT; `tacit why-known TEXT` tells where a line is from.")
    else:
        _say(purge, options)
    return 1 if purge.is_empty else 0


def _say(purge: Purge, options: argparse.Namespace) -> None:
    _say_lines("These lines went:" if options.yes else "These lines would go:", purge.lines)
    _say_lines("Somebody changed these since, so they stay (--edited takes them too):", purge.edited)
    rows = [
        ("transcripts", str(len({source.partition("#")[0] for source in purge.sources}))),
        ("records", str(sum("#" in source for source in purge.sources))),
        ("notes that are empty then", str(len(purge.notes))),
        ("proposals", str(purge.proposals)),
    ]
    output.print_table(row for row in rows if row[1] != "0")
    if not options.yes:
        remark = " It was purged before." if purge.is_named else ""
        output.say(f"\nNothing was changed.{remark} To remove all of this:\n  {_confirm_command(options)}")
        return
    if purge.commit:
        output.say(f"\nDone in {purge.commit[:10]}. To take it back: tacit history undo {purge.commit[:10]}")
    else:
        output.say(
            "\nIt was purged before. No line that tacit made from it stands in notes, archive or drafts."
        )
    output.say(
        "The words still stand in transcripts and in the history. To remove them too: tacit forget --help"
    )


def _say_lines(title: str, lines: Sequence[GeneratedLine]) -> None:
    if not lines:
        return
    output.say(title)
    for line in lines[:_MAX_LINES_SHOWN]:
        output.say(f"  {line.path}:{line.number}  {output.shorten(line.text.strip(), 90)}")
    if len(lines) > _MAX_LINES_SHOWN:
        output.say(f"  and {output.pluralize(len(lines) - _MAX_LINES_SHOWN, 'more line')}")


def _confirm_command(options: argparse.Namespace) -> str:
    parts = ["tacit", "purge", "--origin", options.origin]
    for name in ("by", "why", "home"):
        if getattr(options, name):
            parts += [f"--{name}", getattr(options, name)]
    return shlex.join([*parts, *(["--edited"] if options.edited else []), "--yes"])


def _purge_json(purge: Purge) -> dict[str, object]:
    return {
        "origin": purge.origin,
        "sources": list(purge.sources),
        "lines": [_line_json(line) for line in purge.lines],
        "edited": [_line_json(line) for line in purge.edited],
        "notes": list(purge.notes),
        "proposals": purge.proposals,
        "purged_before": purge.is_named,
        "commit": purge.commit or None,
    }


def _line_json(line: GeneratedLine) -> dict[str, object]:
    mark = line.mark
    return {
        "path": line.path,
        "line": line.number,
        "text": line.text,
        "extractor": mark.extractor,
        "trust": mark.trust,
        "sources": list(mark.sources),
    }

"""Follow a line to its file, the commit that brought it, and the words that it was made of.

    tacit why-known "two coats of Reif 3b"

It is looked for in notes, drafts and proposals, word by word and then without capitals and accents. What
stands only in conversations is told of too. Where it stands nowhere, the nearest that search finds is shown.
Exit code 1 when there is nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict

from tacit.app import open_home
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, words
from tacit.model.known import Trace, Words

_TOLD = {
    "generated": "tacit wrote it",
    "edited": "tacit wrote it, and somebody changed it since",
    "written": "written by hand",
    "said": "it stands in a conversation only",
    "drafted": "it waits in a draft",
    "proposed": "it waits as a proposal",
}
_WHOSE = {
    "owner": "the owner's word",
    "agent": "the agent's word",
    "other": "the word of somebody else",
    "tool": "from a tool",
    "web": "from a tool that reads what strangers write",
}
_GONE = {"gone": "the transcript is gone", "purged": "this origin was purged"}
_LINES = 6  # of what was said


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="+", type=words, help="a line, or some words of it")
    home_option(parser)
    json_option(parser)


def run(options: argparse.Namespace) -> int:
    text = " ".join(options.text)
    found = open_home(options.home, recover=False).why_known(text)
    if options.json:
        output.dump([asdict(one) for one in found])
    elif found:
        _say(text, found)
    else:
        output.warn(f"tacit: Nothing here is known about {text!r}. `tacit search` looks for other words.")
    return 0 if found else 1


def _say(text: str, found: list[Trace]) -> None:
    if found[0].is_nearest:
        output.say(f"{text!r} stands nowhere. The nearest:")
        output.say()
    for number, trace in enumerate(found):
        if number:
            output.say()
        for line in _lines(trace):
            output.say(line)


def _lines(trace: Trace) -> Iterator[str]:
    yield f"{trace.path}:{trace.line}" if trace.line else trace.path
    yield f"  {trace.text}"
    if trace.is_superseded:
        yield "  superseded: it is kept and given to nobody"
    made = f" ({trace.extractor})" if trace.extractor else ""
    whose = f", {_WHOSE[trace.trust]}" if trace.trust else ""
    yield f"  {_TOLD[trace.how]}{made}{whose}"
    if trace.since is not None:
        since = trace.since
        yield f"  since {since.when:%Y-%m-%d %H:%M}, {since.commit[:10]} by {since.author}: {since.subject}"
    elif trace.how != "proposed":
        yield "  not committed yet"
    for said in trace.words:
        yield from _spoken(said)


def _spoken(said: Words) -> Iterator[str]:
    place = said.transcript if said.number is None else f"{said.transcript}, record {said.number}"
    yield f"  from {place}" + (f" ({_GONE[said.state]})" if said.state else "")
    if said.before:
        yield f"    {said.before}"
    if said.text:
        who = f"{said.role} {said.speaker}".rstrip()
        when = f"{said.at:%Y-%m-%d %H:%M} " if said.at else ""
        first, *rest = said.text.strip().split("\n")
        yield f"  > {when}{who}: {first}"
        yield from (f"    {line}" for line in rest[: _LINES - 1])
        if len(rest) >= _LINES:
            yield "    …"

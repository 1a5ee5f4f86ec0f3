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
from tacit.provenance.model import SourceTurn, Trace
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, utf8_argument

_HOW_LABELS = {
    "generated": "tacit wrote it",
    "edited": "tacit wrote it, and somebody changed it since",
    "written": "written by hand",
    "said": "it stands in a conversation only",
    "drafted": "it waits in a draft",
    "proposed": "it waits as a proposal",
}
_TRUST_LABELS = {
    "owner": "the owner's word",
    "agent": "the agent's word",
    "other": "the word of somebody else",
    "tool": "from a tool",
    "web": "from a tool that reads what strangers write",
}
_STATE_LABELS = {"gone": "the transcript is gone", "purged": "this origin was purged"}
_MAX_QUOTED_LINES = 6  # of a message


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text", metavar="TEXT", nargs="+", type=utf8_argument, help="a line, or some words of it"
    )
    add_home_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    text = " ".join(options.text)
    traces = open_home(options.home, recover=False).why_known(text)
    if options.json:
        output.dump([asdict(trace) for trace in traces])
    elif traces:
        _say(text, traces)
    else:
        output.warn(f"tacit: Nothing here is known about {text!r}. `tacit search` looks for other words.")
    return 0 if traces else 1


def _say(text: str, traces: list[Trace]) -> None:
    if traces[0].is_nearest:
        output.say(f"{text!r} stands nowhere. The nearest:")
        output.say()
    for number, trace in enumerate(traces):
        if number:
            output.say()
        for line in _trace_lines(trace):
            output.say(line)


def _trace_lines(trace: Trace) -> Iterator[str]:
    yield f"{trace.path}:{trace.line}" if trace.line else trace.path
    yield f"  {trace.text}"
    if trace.is_superseded:
        yield "  superseded: it is kept and given to nobody"
    extractor = f" ({trace.extractor})" if trace.extractor else ""
    trust = f", {_TRUST_LABELS[trace.trust]}" if trace.trust else ""
    yield f"  {_HOW_LABELS[trace.how]}{extractor}{trust}"
    if trace.since is not None:
        since = trace.since
        yield f"  since {since.when:%Y-%m-%d %H:%M}, {since.commit[:10]} by {since.author}: {since.subject}"
    elif trace.how != "proposed":
        yield "  not committed yet"
    for source in trace.words:
        yield from _source_lines(source)


def _source_lines(source: SourceTurn) -> Iterator[str]:
    place = source.transcript if source.number is None else f"{source.transcript}, record {source.number}"
    yield f"  from {place}" + (f" ({_STATE_LABELS[source.state]})" if source.state else "")
    if source.before:
        yield f"    {source.before}"
    if source.text:
        speaker = f"{source.role} {source.speaker}".rstrip()
        moment = f"{source.at:%Y-%m-%d %H:%M} " if source.at else ""
        first, *rest = source.text.strip().split("\n")
        yield f"  > {moment}{speaker}: {first}"
        yield from (f"    {line}" for line in rest[: _MAX_QUOTED_LINES - 1])
        if len(rest) >= _MAX_QUOTED_LINES:
            yield "    …"

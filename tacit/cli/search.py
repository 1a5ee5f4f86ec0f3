"""Find passages in notes and conversations.

A filter narrows what is looked at, before anything is ranked. A day is written 2026-02-16; days in the
question itself ("last Tuesday") are understood and only lift what is from then.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from datetime import date

from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, words
from tacit.client import connect
from tacit.model.search import AUDIENCES, CATEGORIES, Found, Hit, Scope, Why
from tacit.text.wire import found_form, hit_form

_LONGEST_LINE = 5000  # a path may have 4096 bytes


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", type=words, nargs="+", help="a question or a few words")
    parser.add_argument("--limit", "-n", type=_count, default=10, metavar="N", help="most hits (default: 10)")
    parser.add_argument(
        "--category",
        "-c",
        action="append",
        choices=CATEGORIES,
        default=[],
        help="only this kind; may be repeated",
    )
    parser.add_argument("--audience", choices=AUDIENCES, default="owner", help="as who asks (default: owner)")
    parser.add_argument("--agent", action="append", default=[], metavar="NAME", help="as this agent")
    parser.add_argument("--since", type=_day, metavar="DAY", help="from this day on")
    parser.add_argument("--until", type=_day, metavar="DAY", help="up to this day")
    parser.add_argument("--under", type=words, default="", metavar="PATH", help="only below this path")
    archived = parser.add_mutually_exclusive_group()
    archived.add_argument("--archived", action="store_true", default=None, help="only what is archived")
    archived.add_argument(
        "--not-archived", action="store_false", dest="archived", help="only what is not archived"
    )
    parser.add_argument("--explain", action="store_true", help="say how each hit came to its place")
    home_option(parser)
    json_option(parser)


def run(options: argparse.Namespace) -> int:
    scope = Scope(
        categories=tuple(options.category),
        audience=options.audience,
        agents=tuple(options.agent),
        since=options.since,
        until=options.until,
        under=options.under.removeprefix("./"),
        archived=options.archived,
    )
    with connect(options.home, warn=output.warn, recover=False) as client:
        found = client.find(" ".join(options.query), scope, options.limit)
    for note in found.degraded:
        output.warn(f"tacit: {note}")
    if options.json:
        output.dump(found_form(found) if options.explain else [hit_form(hit) for hit in found.hits])
    else:
        _print(found, options.explain)
    return 0


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1000")
    return int(text)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day; write it as 2026-02-16") from None


# Terminal


def _print(found: Found, explain: bool) -> None:
    if not found.hits:
        output.say("Nothing found.")
    for rank, hit in enumerate(found.hits):
        parts = (_place(hit), hit.day, f"{hit.score:.2f}", _reason(hit))
        output.say(_line("  ".join(part for part in parts if part)))
        output.say_marked(_indented(hit.snippet))
        if explain:
            above = _above(hit, found.hits[:rank])
            output.say(_indented(_reckoning(hit, above), "  | "))
        output.say()
    if explain:
        output.say("\n".join(map(_line, _account(found))))


def _line(text: str) -> str:
    """One line, whatever the name of a file or the title of a note holds."""
    return output.short(text, _LONGEST_LINE)


def _place(hit: Hit) -> str:
    first, last = hit.lines
    return f"{hit.path}:{first}" if first == last else f"{hit.path}:{first}-{last}"


def _indented(text: str, with_: str = "  ") -> str:
    return "\n".join(with_ + line for line in text.splitlines() if line.strip())


def _reason(hit: Hit) -> str:
    """Why it is here, in a few words."""
    why = hit.why
    parts = [f"words: {', '.join(why.words)}"] if why.words else []
    if why.bm25 is not None and not why.words:
        parts.append("words around it")
    if why.vector_rank is not None:
        parts.append(f"meaning: rank {why.vector_rank}")
    parts += [name for name, _ in why.boosts]
    parts += ["asks the same"] if why.echo is not None else []
    return "; ".join(parts)


def _reckoning(hit: Hit, above: Hit | None) -> str:
    """The sum that put it in its place."""
    why = hit.why
    lines = [f"{why.lexical:+.2f} words{_of_words(why)}", f"{why.vector:+.2f} meaning{_of_meaning(why)}"]
    lines += [f"{size:+.2f} {name}" for name, size in why.boosts]
    lines.append(
        f"{why.score:+.2f} in all" + (f", {_compared(why, above.why)} the hit above" if above else "")
    )
    if why.echo is not None:
        lines.append("it asks the same, so it is set apart: nothing else is measured against it")
    if why.rerank is not None:
        lines.append(f"read again: {why.rerank:+.1f}, which decides most of the order")
    lines.append(
        f"{hit.score:.2f} relevance: how likely it answers, from the sum and how well anything matches"
    )
    return "\n".join(lines)


def _above(hit: Hit, before: Sequence[Hit]) -> Hit | None:
    """The last of those that it was measured against."""
    measured = [other for other in before if other.why.echo is None]
    return measured[-1] if measured and hit.why.echo is None else None


def _of_words(why: Why) -> str:
    if why.bm25 is None:
        return ": none of them in it"
    rank = f", rank {why.lexical_rank}" if why.lexical_rank else ""
    return f" (BM25 {why.bm25:.1f}{rank})"


def _of_meaning(why: Why) -> str:
    if why.cosine is None:
        return ": no vector"
    rank = f"rank {why.vector_rank}" if why.vector_rank else "not among the nearest"
    return f" (cosine {why.cosine:.3f}, {rank})"


def _compared(why: Why, above: Why) -> str:
    gap = above.score - why.score
    return f"{gap:.2f} below" if gap >= 0 else f"{-gap:.2f} above by this sum, but read again it fell behind"


def _account(found: Found) -> Iterator[str]:
    """How the answer was made."""
    trace = found.trace
    yield f"asked: {', '.join(found.channels)}"
    yield f"words looked for: {', '.join(map(str, _list(trace.get('terms')))) or 'none'}"
    if days := _list(trace.get("days")):
        yield f"days understood: {days[0]} to {days[1]} ({days[2]})"
    if names := _list(trace.get("names")):
        yield f"known names: {', '.join(map(str, names))}"
    if echoes := trace.get("echoes"):
        yield f"turns that ask the same, set apart: {echoes}"
    if trace.get("embedder"):
        yield f"vectors of: {trace['embedder']}"
    yield "A part of a sum says how many standard deviations a passage is above the mean of all candidates,"
    yield f"times its weight (words and meaning: {trace.get('weights')})."
    yield f"candidates: {trace.get('candidates')}"
    yield f"milliseconds: {trace.get('milliseconds')}"


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []

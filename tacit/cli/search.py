"""Find passages in notes and conversations.

A filter narrows what is looked at, before anything is ranked. A day is written 2026-02-16; days in the
question itself ("last Tuesday") are understood and only lift what is from then.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from datetime import date

from tacit.client import connect
from tacit.search.model import AUDIENCES, CATEGORIES, Found, Hit, Scope, Why
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, utf8_argument
from tacit.wire import found_form, hit_form

_MAX_LINE_CHARS = 5000  # a path may have 4096 bytes


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", type=utf8_argument, nargs="+", help="a question or a few words")
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
    parser.add_argument("--since", type=_parse_day, metavar="DAY", help="from this day on")
    parser.add_argument("--until", type=_parse_day, metavar="DAY", help="up to this day")
    parser.add_argument(
        "--under", type=utf8_argument, default="", metavar="PATH", help="only below this path"
    )
    archived = parser.add_mutually_exclusive_group()
    archived.add_argument("--archived", action="store_true", default=None, help="only what is archived")
    archived.add_argument(
        "--not-archived", action="store_false", dest="archived", help="only what is not archived"
    )
    parser.add_argument("--explain", action="store_true", help="say how each hit came to its place")
    add_home_option(parser)
    add_json_option(parser)


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
        results = client.find(" ".join(options.query), scope, options.limit)
    for note in results.degraded:
        output.warn(f"tacit: {note}")
    if options.json:
        output.dump(found_form(results) if options.explain else [hit_form(hit) for hit in results.hits])
    else:
        _print_results(results, options.explain)
    return 0


def _count(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 1000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 1000")
    return int(text)


def _parse_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day; write it as 2026-02-16") from None


# Terminal


def _print_results(results: Found, explain: bool) -> None:
    if not results.hits:
        output.say("Nothing found.")
    for rank, hit in enumerate(results.hits):
        parts = (_location(hit), hit.day, f"{hit.score:.2f}", _reason(hit))
        output.say(_to_line("  ".join(part for part in parts if part)))
        output.say_marked(_indent(hit.snippet))
        if explain:
            previous = _compared_hit(hit, results.hits[:rank])
            output.say(_indent(_score_breakdown(hit, previous), "  | "))
        output.say()
    if explain:
        output.say("\n".join(map(_to_line, _trace_lines(results))))


def _to_line(text: str) -> str:
    """One line, even if the name of a file or the title of a note has line breaks."""
    return output.shorten(text, _MAX_LINE_CHARS)


def _location(hit: Hit) -> str:
    first, last = hit.lines
    return f"{hit.path}:{first}" if first == last else f"{hit.path}:{first}-{last}"


def _indent(text: str, prefix: str = "  ") -> str:
    return "\n".join(prefix + line for line in text.splitlines() if line.strip())


def _reason(hit: Hit) -> str:
    """Why the hit was found, in a few words."""
    why = hit.why
    parts = [f"words: {', '.join(why.words)}"] if why.words else []
    if why.bm25 is not None and not why.words:
        parts.append("words around it")
    if why.vector_rank is not None:
        parts.append(f"meaning: rank {why.vector_rank}")
    parts += [name for name, _ in why.boosts]
    parts += ["asks the same"] if why.echo is not None else []
    return "; ".join(parts)


def _score_breakdown(hit: Hit, previous: Hit | None) -> str:
    """The sum behind the hit's rank."""
    why = hit.why
    lines = [
        f"{why.lexical:+.2f} words{_word_detail(why)}",
        f"{why.vector:+.2f} meaning{_meaning_detail(why)}",
    ]
    lines += [f"{size:+.2f} {name}" for name, size in why.boosts]
    lines.append(
        f"{why.score:+.2f} in all" + (f", {_compare(why, previous.why)} the hit above" if previous else "")
    )
    if why.echo is not None:
        lines.append("it asks the same, so it is set apart: nothing else is measured against it")
    if why.rerank is not None:
        lines.append(f"read again: {why.rerank:+.1f}, which decides most of the order")
    lines.append(
        f"{hit.score:.2f} relevance: how likely it answers, from the sum and how well anything matches"
    )
    return "\n".join(lines)


def _compared_hit(hit: Hit, earlier: Sequence[Hit]) -> Hit | None:
    """The last earlier hit that this one is compared with."""
    measured = [other for other in earlier if other.why.echo is None]
    return measured[-1] if measured and hit.why.echo is None else None


def _word_detail(why: Why) -> str:
    if why.bm25 is None:
        return ": none of them in it"
    rank = f", rank {why.lexical_rank}" if why.lexical_rank else ""
    return f" (BM25 {why.bm25:.1f}{rank})"


def _meaning_detail(why: Why) -> str:
    if why.cosine is None:
        return ": no vector"
    rank = f"rank {why.vector_rank}" if why.vector_rank else "not among the nearest"
    return f" (cosine {why.cosine:.3f}, {rank})"


def _compare(why: Why, previous: Why) -> str:
    gap = previous.score - why.score
    return f"{gap:.2f} below" if gap >= 0 else f"{-gap:.2f} above by this sum, but read again it fell behind"


def _trace_lines(results: Found) -> Iterator[str]:
    """How the search was done."""
    trace = results.trace
    yield f"asked: {', '.join(results.channels)}"
    yield f"words looked for: {', '.join(map(str, _as_list(trace.get('terms')))) or 'none'}"
    if days := _as_list(trace.get("days")):
        yield f"days understood: {days[0]} to {days[1]} ({days[2]})"
    if names := _as_list(trace.get("names")):
        yield f"known names: {', '.join(map(str, names))}"
    if echoes := trace.get("echoes"):
        yield f"turns that ask the same, set apart: {echoes}"
    if trace.get("embedder"):
        yield f"vectors of: {trace['embedder']}"
    yield "A part of a sum says how many standard deviations a passage is above the mean of all candidates,"
    yield f"times its weight (words and meaning: {trace.get('weights')})."
    yield f"candidates: {trace.get('candidates')}"
    yield f"milliseconds: {trace.get('milliseconds')}"


def _as_list(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []

"""The commands that ask a home as agents do, through its daemon if one runs: search, compile, remember."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from tacit.client import connect
from tacit.errors import UsageError
from tacit.home.categories import CATEGORIES
from tacit.privacy.audience import AUDIENCES
from tacit.search.model import Found, Hit, Scope, Why
from tacit.terminal import output
from tacit.terminal.arguments import (
    add_home_option,
    add_json_option,
    parse_count,
    text_or_stdin,
    utf8_argument,
)
from tacit.topics.model import Event
from tacit.wire import compiled_form, found_form, hit_form

_MAX_LINE_CHARS = 5000  # a path may have 4096 bytes


def search_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", type=utf8_argument, nargs="+", help="a question or a few words")
    parser.add_argument(
        "--limit", "-n", type=parse_count, default=10, metavar="N", help="most hits (default: 10)"
    )
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


def run_search(options: argparse.Namespace) -> int:
    """Search notes and conversations.

    Filters are applied before ranking. Write a day as 2026-02-16. Days in the question itself ("last
    Tuesday") are understood too, and only rank chunks from that day higher.
    """
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


def compile_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("message", type=utf8_argument, help="what is said; - reads it from standard input")
    parser.add_argument(
        "--session-key",
        type=utf8_argument,
        default="agent:main:main",
        metavar="KEY",
        help="whose session it is",
    )
    parser.add_argument("--agent", type=utf8_argument, default=None, metavar="NAME", help="as this agent")
    parser.add_argument("--budget", type=_parse_tokens, default=None, metavar="TOKENS", help="most tokens")
    parser.add_argument(
        "--history",
        type=Path,
        metavar="FILE",
        help="the conversation so far: a JSON list, or a JSON object a line, each with role and content",
    )
    parser.add_argument(
        "--at", type=utf8_argument, metavar="WHEN", help="as it was: a date, a tag or a commit"
    )
    parser.add_argument(
        "--wake", type=utf8_argument, action="append", default=[], metavar="TOPIC", help="wake this topic"
    )
    event = parser.add_mutually_exclusive_group()
    event.add_argument(
        "--webhook", type=utf8_argument, metavar="SOURCE/EVENT", help="as begun by this webhook"
    )
    event.add_argument(
        "--cron", type=utf8_argument, metavar="TOPIC", help="as begun by this topic's schedule"
    )
    parser.add_argument(
        "--path",
        type=utf8_argument,
        action="append",
        default=[],
        help="a file that tools touched; may be repeated",
    )
    add_home_option(parser)
    add_json_option(parser)


def run_compile(options: argparse.Namespace) -> int:
    """Compile one turn and print the prompt, as a host would get it.

    `tacit compile MESSAGE` is a dry run: it prints the prompt and does not count as a turn of the session.
    `tacit why` explains it afterwards. MESSAGE may be -, to read it from standard input. --at compiles from
    the home as it was then, from git.
    """
    message = text_or_stdin(options.message)
    with connect(options.home, warn=output.warn, recover=False) as client:
        compiled = client.look(
            message,
            at=options.at,
            session_key=options.session_key,
            agent=options.agent,
            history=_read_history(options.history) if options.history else (),
            budget=options.budget,
            event=_event_of(options),
            paths=options.path,
            wake=options.wake,
        )
    if options.json:
        output.dump(compiled_form(compiled))
        return 0
    output.say(compiled.text)
    receipt = compiled.receipt
    output.warn(f"\n{compiled.tokens:,} of {receipt.budget:,} tokens. Why: tacit why {receipt.id}")
    return 0


def _parse_tokens(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) <= 10_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of tokens")
    return int(text)


def _event_of(options: argparse.Namespace) -> Event | None:
    if options.cron:
        return Event("cron", topic=options.cron)
    if options.webhook:
        source, _, event = options.webhook.partition("/")
        return Event("webhook", source, event)
    return None


def _read_history(file: Path) -> list[object]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}.") from None
    try:
        turns = json.loads(text)
    except ValueError:
        turns = [_parse_turn(line, f"{file}:{number}") for number, line in _numbered_lines(text)]
    return turns if isinstance(turns, list) else [turns]


def _numbered_lines(text: str) -> list[tuple[int, str]]:
    return [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def _parse_turn(line: str, location: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        raise UsageError(
            f'{location} is not JSON. Write a turn a line: {{"role": …, "content": …}}.'
        ) from None


def remember_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", type=utf8_argument, nargs="+", help="one sentence")
    parser.add_argument(
        "--to", type=utf8_argument, default="journal", metavar="PLACE", help="journal, memory, a note"
    )
    parser.add_argument("--shared", action="store_true", help="others may read it: add it to that very note")
    add_home_option(parser)
    add_json_option(parser)


def run_remember(options: argparse.Namespace) -> int:
    """Keep one line for later sessions.

        tacit remember "The spare key hangs behind the blue door."      in today's journal
        tacit remember --to memory "We fire at 1,215 degrees."          in MEMORY.md
        tacit remember --to knowledge/people/vera.md "Likes moss."      in a note

    The line is added under the heading Remembered, unless the note has it already. A note that others can
    read (audience group or anyone) gets the line only with --shared; otherwise it goes into a note next to it
    that only you can read.
    """
    with connect(options.home, warn=output.warn, recover=False) as client:
        text = " ".join(options.text)
        result = client.remember(text, options.to, session_key=None, shared=options.shared)
    if options.json:
        output.dump(result._asdict())
    else:
        output.say(result.said)
    return 0

"""What commands print: plain lines that a person can read and a pipe can carry.

Text from notes and transcripts may hold anything, so control characters never reach the terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from tacit.terminal import CANNOT_WRITE, drop_output

TYPE_CHECKING = False  # as in typing, which would cost every command several milliseconds
if TYPE_CHECKING:
    from typing import TypeAlias

    from rich.progress import Progress as RichProgress

    from tacit.diagnostics import CheckResult, Problem

    Progress: TypeAlias = Callable[[int, int], None]  # done, total


def say(text: str = "") -> None:
    _write_line(sanitize(text))


def say_marked(text: str) -> None:
    """Print the text; what is between ** ** is bold on a terminal."""
    line = sanitize(text)
    if sys.stdout.isatty():
        parts = line.split("**")
        line = "".join(f"\033[1m{part}\033[0m" if index % 2 else part for index, part in enumerate(parts))
    _write_line(line)


def warn(text: str) -> None:
    with suppress(OSError):  # there is nowhere left to report it
        print(sanitize(text), file=sys.stderr)


def _write_line(line: str) -> None:
    try:
        sys.stdout.write(line + "\n")
    except BrokenPipeError:
        raise  # not an error: `entry` handles it
    except OSError as error:
        drop_output()
        raise OSError(error.errno, f"{CANNOT_WRITE}: {error.strerror}") from error


def sanitize(text: str) -> str:
    """Replace what could move the cursor, change colours or stop the encoder."""
    printable = "".join(ch if ch in "\n\t" or ch.isprintable() else "\ufffd" for ch in text)
    return printable.encode(sys.stdout.encoding or "utf-8", "replace").decode(sys.stdout.encoding or "utf-8")


def shorten(text: str, width: int) -> str:
    """One line of at most this many characters."""
    line = "".join(ch if ch.isprintable() else "\ufffd" for ch in text[: width + 1])
    return line if len(line) <= width else line[: width - 1] + "…"


def pluralize(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def dump(value: object) -> None:
    _write_line(json.dumps(value, indent=2, ensure_ascii=True, default=str))


def print_table(rows: Iterable[Sequence[str]], indent: str = "  ") -> None:
    """Print columns as wide as their widest cell; the last one is not padded."""
    lines = [[sanitize(cell) for cell in row] for row in rows]
    columns = range(max(map(len, lines), default=0))
    widths = [max((len(row[i]) for row in lines if i < len(row) - 1), default=0) for i in columns]
    for row in lines:
        cells = [cell.ljust(widths[i]) for i, cell in enumerate(row[:-1])]
        _write_line((indent + "  ".join([*cells, *row[-1:]])).rstrip())


def print_problems(found: Iterable[Problem]) -> None:
    for problem in found:
        warn(f"{problem.level}: {problem}")


def print_checks(checks: list[CheckResult], *, as_json: bool, quiet: bool) -> None:
    if as_json:
        dump([_check_json(check) for check in checks])
    else:
        _print_plain(checks, quiet=quiet)


def exit_code(checks: list[CheckResult]) -> int:
    return int(any(problem.level == "error" for check in checks for problem in check.problems))


def _print_plain(checks: list[CheckResult], *, quiet: bool) -> None:
    for check in checks:
        bad = any(problem.level == "error" for problem in check.problems)
        mark = "error" if bad else "look" if check.problems else "ok"
        if not quiet or check.problems:
            say(f"{mark:<6} {check.name:<11} {check.found}")
        for problem in check.problems:
            say(f"       {problem}")


def _check_json(check: CheckResult) -> dict[str, object]:
    problems = [
        {
            "where": problem.where,
            "line": problem.line,
            "what": problem.what,
            "todo": problem.todo,
            "level": problem.level,
        }
        for problem in check.problems
    ]
    return {"name": check.name, "found": check.found, "problems": problems}


@contextmanager
def progress(what: str, *, quiet: bool = False) -> Iterator[Progress]:
    """Show a bar on a terminal, a line now and then in a pipe, nothing when quiet. Always on stderr."""
    if quiet:
        yield lambda done, total: None
    elif sys.stderr.isatty():
        with _make_bar() as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
    else:
        yield _report_lines(what)


def _make_bar() -> RichProgress:
    from rich.console import Console  # only a terminal needs it
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True)


def _report_lines(label: str) -> Progress:
    import time

    last = time.monotonic()

    def tick(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= 1.0:
            last = time.monotonic()
            warn(f"{label}: {done} of {total}")

    return tick

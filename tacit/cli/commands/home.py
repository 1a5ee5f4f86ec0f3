"""The commands about a home as a whole: init, config, doctor."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Collection

from tacit import config as configuration
from tacit.app import create_memory, init_home, load_config, utc_now
from tacit.config import Config
from tacit.context.topic_problems import find_topic_problems
from tacit.diagnostics import CheckResult, Problem
from tacit.errors import ConfigError, TacitError, UsageError
from tacit.health.access import close_to_others, list_open_paths
from tacit.health.doctor import run_checks
from tacit.health.init import InitReport
from tacit.home.layout import Home, find_home
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, add_quiet_option


def init_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dir", nargs="?", metavar="DIR", help="where (default: $TACIT_HOME, else ~/tacit)")
    parser.add_argument("--adopt", action="store_true", help="take in a folder that already holds something")
    parser.add_argument(
        "--workspace",
        action="append",
        default=[],
        metavar="DIR",
        help="adopt an agent's workspace: its files are found too and never written; may be repeated",
    )
    add_home_option(parser)
    add_json_option(parser)
    add_quiet_option(parser)


def run_init(options: argparse.Namespace) -> int:
    """Make a home: a git repository of markdown files, ready to use.

    You can run it again at any time: existing files are kept, missing ones are added, and a damaged
    repository is repaired. A file that git has but this disk lacks is never replaced by a template.
    """
    place = options.home if options.dir is None else options.dir
    memory, report = init_home(place, adopt=options.adopt, workspaces=options.workspace)
    root = memory.home.root
    if options.json:
        warnings = [str(problem) for problem in report.warnings]
        output.dump(
            {
                "home": str(root),
                "made": report.made,
                "mended": report.mended,
                "adopted": report.adopted,
                "warnings": warnings,
            }
        )
        return 0
    if not options.quiet:
        _say_created(str(root), report)
    output.print_problems(report.warnings)
    return 0


def _say_created(root: str, report: InitReport) -> None:
    changed = report.made or report.mended or report.adopted
    output.say(f"{root} is a tacit home." if changed else f"{root} is a tacit home already; all is in place.")
    output.print_table(("made", path) for path in report.made)
    output.print_table(("mended", item) for item in report.mended)
    output.print_table(("adopted", folder) for folder in report.adopted)
    if report.made:
        output.say("\nTell it who you are in knowledge/identity/USER.md, then try: tacit status")


def config_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", nargs="?", help="only this key, or the keys of this section")
    add_home_option(parser)
    add_json_option(parser)


def run_config(options: argparse.Namespace) -> int:
    """Show every setting: its effective value, where it comes from, and what it does.

    `tacit config KEY` shows one setting; the name of a section shows its keys.
    """
    loaded = load_config(find_home(options.home, os.environ).require())
    rows = configuration.describe(loaded)
    if options.key is not None:
        rows = [row for row in rows if row.key == options.key or row.key.startswith(options.key + ".")]
        if not rows:
            raise UsageError(f"There is no key {options.key!r}. See them all with: tacit config")
    if options.json:
        output.dump(
            [
                {
                    "key": row.key,
                    "value": row.value,
                    "default": row.default,
                    "origin": row.origin,
                    "about": row.about,
                }
                for row in rows
            ]
        )
    else:
        width = max(len(row.key) for row in rows)
        for row in rows:
            output.say(f"{row.key:<{width}}  {configuration.show(row.value)}  ({row.origin})")
            output.say(f"{'':<{width}}  {row.about}" + (f" {row.allowed}" if row.allowed else ""))
    output.print_problems(loaded.problems)
    return 0


_MAX_FILES_SHOWN = 3


def doctor_arguments(parser: argparse.ArgumentParser) -> None:
    add_home_option(parser)
    add_json_option(parser)
    add_quiet_option(parser)


def run_doctor(options: argparse.Namespace) -> int:
    """Check config, files, repository, hooks, sessions and topics. Say what is wrong and how to fix it.

    It changes only permissions: files of the home that other users could read are closed to them. Exit code 1
    if there is an error (warnings do not count).
    """
    home = find_home(options.home, os.environ).require()
    config, config_check = _check_config(home)
    privacy_check = _check_privacy(home)
    with output.progress("looking at transcripts", quiet=options.quiet or options.json) as tick:
        checks = [config_check, privacy_check, *run_checks(home, config, tick)]
    checks.append(_check_topics(home, config, {problem for check in checks for problem in check.problems}))
    output.print_checks(checks, as_json=options.json, quiet=options.quiet)
    return output.exit_code(checks)


def _check_config(home: Home) -> tuple[Config, CheckResult]:
    try:
        loaded = load_config(home)
    except ConfigError as error:
        return Config(), CheckResult(
            "config", "not usable", (Problem(error.where, error.what, error.hint, error.line),)
        )
    changed = sum(origin != "default" for origin in loaded.origins.values())
    return loaded.config, CheckResult("config", f"{changed} keys set", loaded.problems)


def _check_privacy(home: Home) -> CheckResult:
    closed = close_to_others(home, notes=True)
    todo = f"Run as their owner: chmod -R go= {shlex.quote(str(home.root))}"
    still_open = [
        Problem(os.path.relpath(path, home.root), "can be read by others.", todo, level="warning")
        for path in list_open_paths(home, notes=True)[:_MAX_FILES_SHOWN]
    ]
    summary = f"others could read {output.pluralize(len(closed), 'file')}; closed now" if closed else "open"
    return CheckResult(
        "privacy", summary if closed or still_open else "only the owner can read the home", tuple(still_open)
    )


def _check_topics(home: Home, config: Config, reported: Collection[Problem]) -> CheckResult:
    """Leave out problems that are reported already: topics are notes as well."""
    try:
        memory = create_memory(home, config, utc_now)
        problems = [
            problem
            for problem in find_topic_problems(str(home.root), memory.services.turns.present)
            if problem not in reported
        ]
        return CheckResult(
            "topics", output.pluralize(len(memory.services.turns.topics().topics), "topic"), tuple(problems)
        )
    except (TacitError, OSError) as error:
        return CheckResult("topics", "not looked at", (Problem("topics", str(error)),))

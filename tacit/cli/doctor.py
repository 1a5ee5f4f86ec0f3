"""Look at config, files, repository, hooks, sessions and topics, and say what is wrong and what mends it.

Changes nothing but rights: what others could read of the home is closed to them. Exit code 1 when there is an
error (not for warnings).
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Collection

from tacit.app import create_memory, load_config, utc_now
from tacit.cli import playbooks
from tacit.config import Config
from tacit.diagnostics import Problem
from tacit.errors import ConfigError, TacitError
from tacit.home.doctor import CheckResult, run_checks
from tacit.home.layout import Home, find_home
from tacit.home.permissions import close_to_others, list_open_paths
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, add_quiet_option
from tacit.terminal.checks import exit_code, print_checks

_MAX_FILES_SHOWN = 3


def arguments(parser: argparse.ArgumentParser) -> None:
    add_home_option(parser)
    add_json_option(parser)
    add_quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    home = find_home(options.home, os.environ).require()
    config, config_check = _check_config(home)
    privacy_check = _check_privacy(home)
    with output.progress("looking at transcripts", quiet=options.quiet or options.json) as tick:
        checks = [config_check, privacy_check, *run_checks(home, config, tick)]
    checks.append(_check_topics(home, config, {problem for check in checks for problem in check.problems}))
    print_checks(checks, as_json=options.json, quiet=options.quiet)
    return exit_code(checks)


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
    todo = f"Run as the user whose they are: chmod -R go= {shlex.quote(str(home.root))}"
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
        problems = [problem for problem in playbooks.find_topic_problems(memory) if problem not in reported]
        return CheckResult(
            "topics", output.pluralize(len(memory.turns.topics().topics), "topic"), tuple(problems)
        )
    except (TacitError, OSError) as error:
        return CheckResult("topics", "not looked at", (Problem("topics", str(error)),))

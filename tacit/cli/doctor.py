"""Look at config, files, repository, hooks, sessions and topics, and say what is wrong and what mends it.

Changes nothing. Exit code 1 when there is an error (not for warnings).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection

from tacit.app import load_config, memory_of, now
from tacit.cli import output, playbooks
from tacit.cli.dispatch import home_option, json_option, quiet_option
from tacit.config import Config
from tacit.errors import ConfigError, TacitError
from tacit.model.problems import Problem
from tacit.store.checkup import Check, checkup
from tacit.store.home import Home, locate


def arguments(parser: argparse.ArgumentParser) -> None:
    home_option(parser)
    json_option(parser)
    quiet_option(parser)


def run(options: argparse.Namespace) -> int:
    home = locate(options.home, os.environ).require()
    config, first = _config(home)
    with output.progress("looking at transcripts", quiet=options.quiet or options.json) as tick:
        checks = [first, *checkup(home, config, tick)]
    checks.append(_topics(home, config, {problem for check in checks for problem in check.problems}))
    tell(checks, as_json=options.json, quiet=options.quiet)
    return code_of(checks)


def tell(checks: list[Check], *, as_json: bool, quiet: bool) -> None:
    if as_json:
        output.dump([_value(check) for check in checks])
    else:
        _print(checks, quiet=quiet)


def code_of(checks: list[Check]) -> int:
    return int(any(problem.level == "error" for check in checks for problem in check.problems))


def _config(home: Home) -> tuple[Config, Check]:
    try:
        loaded = load_config(home)
    except ConfigError as error:
        return Config(), Check(
            "config", "not usable", (Problem(error.where, error.what, error.hint, error.line),)
        )
    changed = sum(origin != "default" for origin in loaded.origins.values())
    return loaded.config, Check("config", f"{changed} keys set", loaded.problems)


def _topics(home: Home, config: Config, told: Collection[Problem]) -> Check:
    """Without what was told already: topics are notes as well."""
    try:
        memory = memory_of(home, config, now)
        found = [problem for problem in playbooks.problems(memory) if problem not in told]
        return Check("topics", output.plural(len(memory.turns.topics().topics), "topic"), tuple(found))
    except (TacitError, OSError) as error:
        return Check("topics", "not looked at", (Problem("topics", str(error)),))


def _print(checks: list[Check], *, quiet: bool) -> None:
    for check in checks:
        bad = any(problem.level == "error" for problem in check.problems)
        mark = "error" if bad else "look" if check.problems else "ok"
        if not quiet or check.problems:
            output.say(f"{mark:<6} {check.name:<11} {check.found}")
        for problem in check.problems:
            output.say(f"       {problem}")


def _value(check: Check) -> dict[str, object]:
    problems = [
        {"where": p.where, "line": p.line, "what": p.what, "todo": p.todo, "level": p.level}
        for p in check.problems
    ]
    return {"name": check.name, "found": check.found, "problems": problems}

"""The checks of a doctor, printed as a list or as JSON."""

from __future__ import annotations

from tacit.home.doctor import CheckResult
from tacit.terminal import output


def print_checks(checks: list[CheckResult], *, as_json: bool, quiet: bool) -> None:
    if as_json:
        output.dump([_check_json(check) for check in checks])
    else:
        _print_plain(checks, quiet=quiet)


def exit_code(checks: list[CheckResult]) -> int:
    return int(any(problem.level == "error" for check in checks for problem in check.problems))


def _print_plain(checks: list[CheckResult], *, quiet: bool) -> None:
    for check in checks:
        bad = any(problem.level == "error" for problem in check.problems)
        mark = "error" if bad else "look" if check.problems else "ok"
        if not quiet or check.problems:
            output.say(f"{mark:<6} {check.name:<11} {check.found}")
        for problem in check.problems:
            output.say(f"       {problem}")


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

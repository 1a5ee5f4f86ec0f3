"""Make a home: a git repository of markdown files, laid out and ready.

Running it again is safe: what is there stays, what is missing is added, a damaged repository is mended.
A file that git has and this disk does not is never replaced by a template.
"""

from __future__ import annotations

import argparse

from tacit.app import init_home
from tacit.home.init import InitReport
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, add_quiet_option


def arguments(parser: argparse.ArgumentParser) -> None:
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


def run(options: argparse.Namespace) -> int:
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
        _say_report(str(root), report)
    output.print_problems(report.warnings)
    return 0


def _say_report(root: str, report: InitReport) -> None:
    changed = report.made or report.mended or report.adopted
    output.say(f"{root} is a tacit home." if changed else f"{root} is a tacit home already; all is in place.")
    output.print_table(("made", path) for path in report.made)
    output.print_table(("mended", item) for item in report.mended)
    output.print_table(("adopted", folder) for folder in report.adopted)
    if report.made:
        output.say("\nTell it who you are in knowledge/identity/USER.md, then try: tacit status")

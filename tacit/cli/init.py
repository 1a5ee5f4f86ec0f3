"""Make a home: a git repository of markdown files, laid out and ready.

Running it again is safe: what is there stays, what is missing is added, a damaged repository is mended.
"""

from __future__ import annotations

import argparse

from tacit.app import init_home
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, quiet_option
from tacit.store.setup import Report


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
    home_option(parser)
    json_option(parser)
    quiet_option(parser)


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
        _tell(str(root), report)
    output.problems(report.warnings)
    return 0


def _tell(root: str, report: Report) -> None:
    changed = report.made or report.mended or report.adopted
    output.say(f"{root} is a tacit home." if changed else f"{root} is a tacit home already; all is in place.")
    output.table(("made", path) for path in report.made)
    output.table(("mended", what) for what in report.mended)
    output.table(("adopted", folder) for folder in report.adopted)
    if report.made:
        output.say("\nTell it who you are in knowledge/identity/USER.md, then try: tacit status")

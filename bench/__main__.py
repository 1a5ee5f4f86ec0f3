"""`python -m bench [PART …]`: measure, print a table, write .cache/bench.json."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path

from bench import homes, report
from bench.pairs import Measured

PARTS = (
    "append", "start", "seal", "verify", "capture", "recover", "many", "chunk", "redact",
    "index", "query", "vectors", "follow", "tiers", "turn", "serve", "relay",
)  # fmt: skip
ASKED_FOR = ("growth", "rebuild")  # take minutes, so they run only if named
RESULT = Path(".cache/bench.json")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        choices=(*PARTS, *ASKED_FOR, []),
        metavar="PART",
        help=", ".join((*PARTS, *ASKED_FOR)),
    )
    chosen = parser.parse_args().parts or PARTS
    _isolate_environment()
    results: list[Measured] = []
    with homes.workshop() as folder:
        for part in chosen:
            results += import_module(f"bench.{part}").measure(folder)
    about = report.facts(homes.CACHE)
    report.save(RESULT, results, about)
    print(", ".join(f"{key} {value}" for key, value in about.items()) + "\n")
    print(report.table(results))
    return 0


def _isolate_environment() -> None:
    """Keep the real home and the user's settings out: they must not be touched or change the numbers."""
    for name in [name for name in os.environ if name.startswith(("TACIT_", "GIT_", "PYTHON"))]:
        del os.environ[name]
    # An installed tacit has its bytecode. PYTHONDONTWRITEBYTECODE, which some containers set, would make each
    # start compile it again; and the source tree must not be filled with bytecode.
    os.environ["PYTHONPYCACHEPREFIX"] = str(homes.CACHE / "bytecode")
    os.environ["HOME"] = str(homes.CACHE)
    os.environ["GIT_CONFIG_GLOBAL"] = os.devnull
    os.environ["GIT_CONFIG_NOSYSTEM"] = "1"


if __name__ == "__main__":
    sys.exit(main())

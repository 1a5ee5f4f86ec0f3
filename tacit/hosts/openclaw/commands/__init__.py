"""OpenClaw: give its agents memory, see what that saves, and go back.

  install         show what will change, ask, and install the plugin
  status          where things stand
  doctor          what is missing and how to mend it; --probe proves it with real turns
  baseline        what the host loads by itself; --compare: what tacit saves
  uninstall       put everything back as it was

  phase           the same in steps, each of which is watched and can be taken back

Files that people curate change only through drafts that a person approved:

  compact-tools   propose TOOLS_COMPACT.md: daily lookups, without the reasons
  compress-soul   propose a shorter SOUL.md, with a list of what it would leave out
  memory-summary  propose MEMORY_SUMMARY.md: the last thirty entries of MEMORY.md
  drafts          all drafts and where they stand
  approve         approve a draft, word for word as it stands
  promote         put an approved draft in its place
  undo            bring back what the last promotion replaced

The host is found by OPENCLAW_CONFIG_PATH and OPENCLAW_STATE_DIR, else in ~/.openclaw; its command on PATH.
`tacit openclaw SUBCOMMAND --help` says more.
"""

from __future__ import annotations

import argparse
from importlib import import_module

# name: its module here, which has NAME_arguments and run_NAME, and what it does
SUBCOMMANDS = {
    "install": ("setup", "give the agents of this OpenClaw memory"),
    "uninstall": ("setup", "take tacit out of OpenClaw; the home stays"),
    "status": ("state", "where things stand"),
    "doctor": ("state", "what is missing, and how to mend it"),
    "baseline": ("state", "what the host loads by itself, and what tacit saves"),
    "phase": ("phase", "go from the host's files to tacit's in steps that can be taken back"),
    "compact-tools": (
        "drafts",
        "propose TOOLS_COMPACT.md: daily lookups, without the reasons",
    ),
    "compress-soul": ("drafts", "propose a shorter SOUL.md, with a list of what it would leave out"),
    "memory-summary": ("drafts", "propose MEMORY_SUMMARY.md: the last thirty entries of MEMORY.md"),
    "drafts": ("drafts", "all drafts and where they stand"),
    "approve": ("drafts", "approve a draft as it stands"),
    "promote": ("drafts", "put an approved draft in its place"),
    "undo": ("drafts", "bring back what the last promotion replaced"),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="SUBCOMMAND", required=True)
    for name, (module_name, about) in SUBCOMMANDS.items():
        module, function = import_module(f"{__name__}.{module_name}"), name.replace("-", "_")
        run = getattr(module, f"run_{function}")
        lines = (run.__doc__ or "").strip().split("\n")
        action = actions.add_parser(
            name,
            help=about,
            description="\n".join(line.removeprefix("    ") for line in lines),
            formatter_class=parser.formatter_class,
        )
        getattr(module, f"{function}_arguments")(action)
        action.set_defaults(run_action=run)


def run(options: argparse.Namespace) -> int:
    code: int = options.run_action(options)
    return code

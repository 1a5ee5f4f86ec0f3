"""OpenClaw: give its agents memory, see what that saves, and go back.

  install         show what will change, ask, and install the plugin
  status          where things stand
  doctor          what is missing and how to mend it; --probe proves it with real turns
  baseline        what the host loads by itself; --compare: what tacit saves
  uninstall       as it was before

  phase           the same in steps, each watched and each to be taken back

Files that people curate are changed only by drafts that somebody approved:

  compact-tools   propose TOOLS_COMPACT.md: what is looked up every day, without why
  compress-soul   propose a shorter SOUL.md, with what it would leave out
  memory-summary  propose MEMORY_SUMMARY.md: the last thirty entries of MEMORY.md
  drafts          all drafts and where they stand
  approve         say yes to a draft, word for word as it stands
  promote         put an approved draft in its place
  undo            bring back what the last promotion replaced

The host is found by OPENCLAW_CONFIG_PATH and OPENCLAW_STATE_DIR, else in ~/.openclaw; its command on PATH.
`tacit openclaw SUBCOMMAND --help` says more.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from types import ModuleType

# name: what it is for. The module is tacit.cli.openclaw.<name>, with _ for -.
SUBCOMMANDS = {
    "install": "give the agents of this OpenClaw memory",
    "uninstall": "take tacit out of OpenClaw; the home stays",
    "status": "where things stand",
    "doctor": "what is missing, and how to mend it",
    "baseline": "what the host loads by itself, and what tacit saves",
    "phase": "go from the host's files to tacit's in steps that can be taken back",
    "compact-tools": "propose TOOLS_COMPACT.md: what is looked up every day, without why",
    "compress-soul": "propose a shorter SOUL.md, with what it would leave out",
    "memory-summary": "propose MEMORY_SUMMARY.md: the last thirty entries of MEMORY.md",
    "drafts": "all drafts and where they stand",
    "approve": "say yes to a draft as it stands",
    "promote": "put an approved draft in its place",
    "undo": "bring back what the last promotion replaced",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="SUBCOMMAND", required=True)
    for name, about in SUBCOMMANDS.items():
        module = _module_of(name)
        description = (module.__doc__ or "").strip()
        action = actions.add_parser(
            name, help=about, description=description, formatter_class=parser.formatter_class
        )
        module.arguments(action)


def run(options: argparse.Namespace) -> int:
    code: int = _module_of(options.action).run(options)
    return code


def _module_of(name: str) -> ModuleType:
    return import_module(f"{__name__}.{name.replace('-', '_')}")

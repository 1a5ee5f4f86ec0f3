"""What git's hooks call. pre-commit checks what is staged; post-commit lists what changed for the index."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tacit.app import load_config
from tacit.cli import output
from tacit.cli.dispatch import home_option
from tacit.config import Config
from tacit.errors import ConfigError
from tacit.store.git import Git
from tacit.store.home import Home
from tacit.store.hooks import NAMES, check_staged, note_changed


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="HOOK", choices=NAMES, help=" or ".join(NAMES))
    home_option(parser, default="the current folder")


def run(options: argparse.Namespace) -> int:
    # git runs a hook at the top of the work tree, so the home is where we stand.
    home = Home(Path(options.home or os.getcwd()).resolve())
    # `git commit -a` and `git commit PATH` are about another index than the repository's own, and name it.
    git = Git(home.root, os.environ.get("GIT_INDEX_FILE"))
    if options.name == "post-commit":
        note_changed(home, git)
        return 0
    lifecycle = _config(home).lifecycle
    found = check_staged(
        git, lifecycle.memory_warn_lines, lifecycle.memory_line_cap, lifecycle.memory_block_lines
    )
    output.problems(found)
    return 1 if any(problem.level == "error" for problem in found) else 0


def _config(home: Home) -> Config:
    try:
        return load_config(home).config
    except (ConfigError, OSError) as error:
        output.warn(f"warning: {error} The defaults are used for this check.")
        return Config()

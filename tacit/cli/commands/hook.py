"""Called by git's hooks: pre-commit checks staged notes, post-commit records changed paths for the index."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tacit.app import load_config
from tacit.config import Config
from tacit.errors import ConfigError
from tacit.git.hooks import HOOK_NAMES, check_staged, log_changed_paths
from tacit.git.repository import Git
from tacit.home.layout import Home
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="HOOK", choices=HOOK_NAMES, help=" or ".join(HOOK_NAMES))
    add_home_option(parser, default="the current folder")


def run(options: argparse.Namespace) -> int:
    # git runs a hook at the top of the work tree, so the home is the current folder.
    home = Home(Path(options.home or os.getcwd()).resolve())
    # `git commit -a` and `git commit PATH` use another index than the repository's own, and name it.
    git = Git(home.root, os.environ.get("GIT_INDEX_FILE"))
    if options.name == "post-commit":
        log_changed_paths(home, git)
        return 0
    lifecycle = _load_config(home).lifecycle
    problems = check_staged(
        git, lifecycle.memory_warn_lines, lifecycle.memory_line_cap, lifecycle.memory_block_lines
    )
    output.print_problems(problems)
    return 1 if any(problem.level == "error" for problem in problems) else 0


def _load_config(home: Home) -> Config:
    try:
        return load_config(home).config
    except (ConfigError, OSError) as error:
        output.warn(f"warning: {error} The defaults are used for this check.")
        return Config()

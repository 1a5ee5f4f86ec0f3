"""ripgrep, if it is installed: finds the files with any of some words. Optional."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

_TIMEOUT_S = 10.0  # seconds


def find_files_with(root: str, folders: Sequence[str], words: Sequence[str]) -> list[str] | None:
    """Paths inside the root; None if ripgrep is missing or fails. Words are literal, never patterns or
    options."""
    program = shutil.which("rg")
    if program is None or not words:
        return None
    terms = [part for word in words for part in ("-e", word)]
    options = ["--no-config", "--no-ignore", "--hidden", "--files-with-matches", "--null", "-i", "-F", "-a"]
    try:
        result = subprocess.run(
            [program, *options, *terms, "--", *folders],
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if result.returncode not in (0, 1):  # 1: nothing found
        return None
    return [path for path in result.stdout.decode("utf-8", "surrogateescape").split("\0") if path]

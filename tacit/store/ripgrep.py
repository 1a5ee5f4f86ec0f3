"""ripgrep, where it is installed: which files hold one of some words. A help, never needed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

_PATIENCE = 10.0  # seconds


def files_with(root: str, folders: Sequence[str], words: Sequence[str]) -> list[str] | None:
    """Paths inside the root, or None if it cannot be told: no ripgrep, or it gave up. Words are taken as they
    are, none of them as a pattern or an option."""
    program = shutil.which("rg")
    if program is None or not words:
        return None
    terms = [part for word in words for part in ("-e", word)]
    options = ["--no-config", "--no-ignore", "--hidden", "--files-with-matches", "--null", "-i", "-F", "-a"]
    try:
        ran = subprocess.run(
            [program, *options, *terms, "--", *folders],
            cwd=root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    if ran.returncode not in (0, 1):  # 1: nothing found
        return None
    return [path for path in ran.stdout.decode("utf-8", "surrogateescape").split("\0") if path]

"""What commands share: the options that many of them take, and how they print."""

from __future__ import annotations

import os
import sys

CANNOT_WRITE = "cannot write to standard output"


def drop_output() -> None:
    """Discard all further output, so that Python does not complain about it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

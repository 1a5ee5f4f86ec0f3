"""Where things are in a home."""

from __future__ import annotations

import os
from pathlib import Path

from tacit.errors import HomeError, UsageError

CONFIG = "memory-config.yaml"
CONVERSATIONS = "raw/conversations"
PURGED = "raw/purged.jsonl"  # origins that count no more
REVIEWED = "drafts/approvals.jsonl"  # what was decided about drafts: only ever added to, and never undone
MIRROR = "ETHOS_CONTEXT.md"  # a copy of what a turn was given: never knowledge, wherever it stands
# What `tacit run commit` looks after; raw/ is committed session by session.
NOTE_FOLDERS = ("knowledge", "topics", "archive", "attachments", "drafts")
NOTE_FILES = (CONFIG, ".gitignore", ".gitattributes", PURGED)


class Home:
    """One home by its place. Not a dataclass: `tacit status` starts faster without them."""

    __slots__ = ("root",)

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def private(self) -> Path:
        """Ignored by git: records of open sessions, locks, caches. Deletable without losing a turn."""
        return self.root / ".tacit"

    @property
    def sessions(self) -> Path:
        return self.private / "sessions"

    @property
    def lock(self) -> Path:
        return self.private / "lock"

    @property
    def config(self) -> Path:
        return self.root / CONFIG

    @property
    def machine(self) -> Path:
        """The name by which this copy of the home claims work on a shared remote."""
        return self.private / "machine"

    @property
    def trust(self) -> Path:
        """Made by `tacit init` on this machine, never carried by git: a cloned home is foreign without it."""
        return self.private / "trusted"

    def require(self) -> Home:
        if self.root.exists() and not self.root.is_dir():
            raise HomeError(f"{self.root} is a file, not a home. Name another folder.")
        if not self.root.is_dir():
            raise HomeError(f"There is no home at {self.root}. Make one with: tacit init {self.root}")
        if not self.config.is_file():
            raise HomeError(
                f"{self.root} is not a tacit home ({CONFIG} is missing). Run: tacit init {self.root}"
            )
        return self


def locate(given: str | None, environ: dict[str, str] | os._Environ[str]) -> Home:
    """The home somebody named, else $TACIT_HOME, else ~/tacit. Never the current folder by itself: a
    folder one happens to stand in must not decide what tacit does."""
    if given == "":
        raise UsageError("--home is empty. Name a folder, or leave it out for $TACIT_HOME or ~/tacit.")
    name = given or environ.get("TACIT_HOME") or "~/tacit"
    return Home(Path(os.path.abspath(os.path.expanduser(name))))

"""The layout of a home: its files and folders, and where to find it."""

from __future__ import annotations

import os
from pathlib import Path

from tacit.errors import HomeError, UsageError

CONFIG = "memory-config.yaml"
CONVERSATIONS = "raw/conversations"
MEMORY = "knowledge/memory/MEMORY.md"  # the note that is always loaded, with a cap on its lines
PURGED = "raw/purged.jsonl"  # origins that were purged
REVIEWED = "drafts/approvals.jsonl"  # decisions about drafts: append-only, and never undone
CONFLICTS = "conflicts"  # below .tacit: conversations that were in a merge conflict when last checked
CONTEXT_FILE = "ETHOS_CONTEXT.md"  # a copy of a turn's prompt: never knowledge, wherever it is
# The folders that `tacit run commit` commits; raw/ is committed session by session.
NOTE_FOLDERS = ("knowledge", "topics", "archive", "attachments", "drafts")
NOTE_FILES = (CONFIG, ".gitignore", ".gitattributes", PURGED)

# The folders that `tacit init` makes.
FOLDERS = (
    "raw/conversations",
    "knowledge/identity",
    "knowledge/memory",
    "knowledge/journal",
    "knowledge/projects",
    "knowledge/people",
    "knowledge/procedures",
    "knowledge/reference",
    "topics",
    "archive",
    "attachments",
    "drafts",
)


def origin_of(path: str) -> str:
    """The original of an archived file, judged by its path; any other path is returned as it is. A copy is as
    secret as its original."""
    if path.startswith("archive/conversations/"):
        return f"raw/{path.removeprefix('archive/')}"
    if path.startswith("archive/memory/"):
        return MEMORY
    return f"knowledge/{path.removeprefix('archive/')}" if path.startswith("archive/") else path


class Home:
    """The paths of one home. Not a dataclass: `tacit status` starts faster without them."""

    __slots__ = ("root",)

    def __init__(self, root: Path) -> None:
        self.root = root

    @property
    def private(self) -> Path:
        """Ignored by git: records of open sessions, locks, caches. Can be deleted without losing a turn."""
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
        """Written by `tacit init` on this machine and not in git: without it, a cloned home is untrusted."""
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
        if link := self._link_in_private():
            raise HomeError(
                f"{link} is a link to {os.readlink(link)}, and tacit writes only inside the home. "
                f"Nothing was touched. Take the link away (rm {link}) and try again."
            )
        return self

    def _link_in_private(self) -> str:
        """A clone may contain a .tacit that links elsewhere, although git should ignore it."""
        private = str(self.private)
        if os.path.islink(private):
            return private
        try:
            with os.scandir(private) as entries:
                return next((entry.path for entry in entries if entry.is_symlink()), "")
        except OSError:
            return ""


def find_home(given: str | None, environ: dict[str, str] | os._Environ[str]) -> Home:
    """The given home, else $TACIT_HOME, else ~/tacit. Never the current folder, which must not decide what
    tacit does."""
    if given == "":
        raise UsageError("--home is empty. Name a folder, or leave it out for $TACIT_HOME or ~/tacit.")
    name = given or environ.get("TACIT_HOME") or "~/tacit"
    return Home(Path(os.path.abspath(os.path.expanduser(name))))

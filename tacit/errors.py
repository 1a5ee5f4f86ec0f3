"""Every exception that tacit raises on purpose.

    TacitError
    ├── UsageError            the request is invalid
    │   └── ReadOnly          memory may only be read here
    ├── ConfigError           memory-config.yaml cannot be used
    ├── HomeError             the directory is not (or not yet) a home
    ├── StoreError
    │   ├── ChangedOnDisk     the file is no longer what the writer read
    │   ├── UnsafePath        a path leaves the home, or is not a plain file
    │   │   └── Locked        the file is encrypted on the disk
    │   ├── MergeConflict     the file has unresolved merge conflict markers
    │   ├── NotCheckedOut     the file is in git but not checked out
    │   ├── DraftRefused      a draft cannot be approved, promoted or undone in its state
    │   ├── Busy              another process holds what is needed
    │   └── DiskError         the operating system refused: full, read-only, failing
    ├── SessionError          a conversation cannot take this message
    ├── LimitReached          the daily limit for model calls is reached
    ├── HostError             the host program is missing, or refused
    └── GitError              git refused
        └── Filtered          a path has a git filter, and its plain text is not committed

The message always ends with what to do next. An error in text that people wrote is not an exception but a
`Problem` value (tacit/diagnostics.py), collected and shown.
"""

from __future__ import annotations

from collections.abc import Mapping

UNLOCK = "Unlock it with the program that encrypts it, such as: git-crypt unlock"

COMMIT_YOURSELF = (
    "Where the filter is set up, commit it yourself with git add and git commit; or take the filter out of "
    "the git attributes."
)
CHECK_OUT = "Get it with: git sparse-checkout add FOLDER, or: git checkout HEAD -- "


class TacitError(Exception):
    """The base class. `str(error)` is written for the person at the terminal."""


class UsageError(TacitError):
    pass


class ReadOnly(UsageError):
    def __init__(self, why: str, todo: str) -> None:
        super().__init__(f"Memory is read-only here, so nothing was added: {why}. {todo}")


class ConfigError(TacitError):
    def __init__(self, where: str, line: int | None, what: str, hint: str = "") -> None:
        place = where if line is None else f"{where}:{line}"
        super().__init__(f"{place}: {what}" + (f" {hint}" if hint else ""))
        self.where, self.line, self.what, self.hint = where, line, what, hint


class HomeError(TacitError):
    pass


class StoreError(TacitError):
    pass


class ChangedOnDisk(StoreError):
    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} changed since it was read, so it was not overwritten. "
            "Read it again, apply your change to the new text and write once more."
        )
        self.path = path


class UnsafePath(StoreError):
    def __init__(self, path: str, why: str) -> None:
        quoted = f"{path!r}" if len(path) <= 200 else f"{path[:200]!r}…"
        super().__init__(f"{quoted} is refused: {why}. Use a plain file inside the home.")
        self.path, self.why = path, why


class MergeConflict(StoreError):
    def __init__(self, path: str, why: str, todo: str) -> None:
        super().__init__(f"{path} {why}, so it is neither read nor written. {todo}")
        self.path, self.why, self.todo = path, why, todo


class Locked(UnsafePath):
    """The file is encrypted on disk, as in a clone that is not unlocked yet."""

    def __init__(self, path: str) -> None:
        StoreError.__init__(self, f"{path} is locked: it holds encrypted bytes. {UNLOCK}")
        self.path, self.why = path, "it is locked: it holds encrypted bytes"


class NotCheckedOut(StoreError):
    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} is in git but not checked out here, so it was not begun anew. {CHECK_OUT}{path}"
        )
        self.path = path


class DraftRefused(StoreError):
    pass


class Busy(StoreError):
    pass


class DiskError(StoreError):
    pass


class SessionError(TacitError):
    pass


class LimitReached(TacitError):
    pass


class HostError(TacitError):
    pass


class GitError(TacitError):
    def __init__(self, what: str, detail: str = "") -> None:
        super().__init__(what + (f"\n  git said: {detail.strip()}" if detail.strip() else ""))
        self.detail = detail


class Filtered(GitError):
    """Paths with a git filter, which tacit does not run."""

    def __init__(self, filters: Mapping[str, str]) -> None:
        path, extra = next(iter(filters)), len(filters) - 1
        suffix = f" (and {extra} more)" if extra else ""
        super().__init__(
            f"{path}{suffix} has the git filter {filters[path]}, which tacit does not run, so it was not "
            "committed: that would put its plain text into the repository. " + COMMIT_YOURSELF
        )
        self.filters = filters

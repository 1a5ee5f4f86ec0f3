"""Every exception that tacit raises on purpose.

    TacitError
    ├── UsageError            the request itself makes no sense
    │   └── ReadOnly          memory may be read here and not added to
    ├── ConfigError           memory-config.yaml cannot be used
    ├── HomeError             the directory is not (or not yet) a home
    ├── StoreError
    │   ├── ChangedOnDisk     the file is no longer what the writer read
    │   ├── UnsafePath        a path leaves the home, or is not a plain file
    │   ├── DraftRefused      a draft may not be approved, promoted or undone as things stand
    │   ├── Busy              another process holds what is needed
    │   └── DiskError         the operating system refused: full, read-only, failing
    ├── SessionError          a conversation cannot take this message
    ├── LimitReached          a model may not be asked any more today
    ├── HostError             the program that tacit serves is not there, or said no
    └── GitError              git said no

The message always ends with what to do next. Wrong text that people wrote is not an exception but a
`Problem` value (model/problems.py), gathered and shown.
"""


class TacitError(Exception):
    """Base of all. `str(error)` is meant for the person at the terminal."""


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
        super().__init__(f"{path!r} is refused: {why}. Use a plain file inside the home.")
        self.path, self.why = path, why


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

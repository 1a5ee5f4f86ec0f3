"""Paths inside a home, judged by name only: when two are the same, and which a new note may have.

Disks differ. Some treat `Soul.md` and `SOUL.md` as the same file, some two Unicode forms of a letter, some
drop invisible characters or trailing dots. So names are compared by a key, which is the same for all
spellings that any disk treats as one file.
"""

from __future__ import annotations

import re
from unicodedata import category, normalize

# Files that tell an agent who it is and what to do.
IDENTITY = ("SOUL.md", "USER.md", "AGENTS.md", "TOOLS.md", "TOOLS_COMPACT.md", "IDENTITY.md", "HEARTBEAT.md")
MAX_NAME_BYTES = 255  # limit of file systems
MAX_PATH_BYTES = 1_000  # of a new note
_RESERVED_BYTES = len("-owner-owner")  # suffix of an owner-only note next to it
_IDENTITY_FOLDER = ("knowledge", "identity")
# Invisible characters, and marks that only change the look of the character before them.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_FORBIDDEN = re.compile(r'[\\:*?"<>|\uff0f\uff3c]| — ')
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")


def split_names(path: str) -> list[str]:
    """The names along a path; `//` and `/./` are no names."""
    return [name for name in path.split("/") if name not in ("", ".")]


def name_key(name: str) -> str:
    """A key that is the same for all spellings of a name that some disk treats as one."""
    if name.isascii():
        return name.lower().rstrip(". ")
    visible = "".join(character for character in _INVISIBLE.sub("", name) if category(character) != "Cf")
    return normalize("NFKC", normalize("NFKC", visible).casefold()).rstrip(". ")


def is_identity(path: str) -> bool:
    """Whether a path is an identity file: by its folder in any spelling, or by its name in any folder."""
    names = split_names(path)
    in_folder = tuple(map(name_key, names[:2])) == _IDENTITY_FOLDER
    return in_folder or normalize("NFKC", names[-1] if names else "") in IDENTITY


def name_problem(name: str) -> str:
    """Why a new note or folder must not have this name; empty if it may."""
    shown = f"{name[:60]!r}"
    if (size := len(name.encode("utf-8", "surrogatepass"))) > MAX_NAME_BYTES - _RESERVED_BYTES:
        return f"the name {shown} has {size} bytes, and {MAX_NAME_BYTES - _RESERVED_BYTES} are allowed"
    if any(
        category(character)[0] == "C" or (category(character)[0] == "Z" and character != " ")
        for character in name
    ):
        return f"the name {shown} has an invisible character"
    if match := _FORBIDDEN.search(name):
        return f"the name {shown} has {match[0]!r} in it"
    if _ESCAPE.search(name):
        return f"the name {shown} has a percent escape, which would not be read as one"
    if name != name.strip(" .") or not name:
        return f"the name {shown} begins or ends with a dot or a space"
    return ""


def path_problem(path: str) -> str:
    """Like `name_problem`, for all names along the path of a new note."""
    if (size := len(path.encode("utf-8", "surrogatepass"))) > MAX_PATH_BYTES:
        return f"the path has {size} bytes, and {MAX_PATH_BYTES} are allowed"
    return next(filter(None, map(name_problem, split_names(path))), "")

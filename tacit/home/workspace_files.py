"""Files of an attached workspace, by path: their audience, their day, and which are excluded.

Such a path is `workspace/NAME/…`. The first word is not a folder: a folder of that name in a home is never
read, so the two cannot be confused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tacit.privacy.audience import Audience

WORKSPACE = "workspace"

# Names as hosts write them; another spelling is a different file, visible only to the owner.
_AUDIENCES: Mapping[str, Audience] = {
    "SOUL.md": "anyone",
    "TOOLS_COMPACT.md": "group",
    "IDENTITY.md": "group",
}
_DAILY_NOTE = re.compile(r"memory/(?:[^/]+/)*(\d{4}-\d\d-\d\d)[^/]*")
_PROJECT_FILE = re.compile(r"(?:initiatives|projects)/([^/]+)/.+")

# Not part of an agent's memory: third-party code, hooks that the host runs, and unapproved drafts.
_EXCLUDED_FOLDERS = ("node_modules", "hooks")
_DRAFT_FOLDER = "initiatives/adaptive-context-injection"
_COPIED_FILES = ("ethos_context.md",)  # of a turn's prompt


def workspace_path(name: str, inside: str) -> str:
    return f"{WORKSPACE}/{name}/{inside}"


def is_workspace_path(path: str) -> bool:
    return path.startswith(f"{WORKSPACE}/")


def split_workspace_path(path: str) -> tuple[str, str]:
    """The name of the workspace, and the path inside it; both empty for every other path."""
    if not is_workspace_path(path):
        return "", ""
    name, _, inside = path[len(WORKSPACE) + 1 :].partition("/")
    return name, inside


def audience_of(inside: str) -> Audience:
    """The audience if the file itself does not say. TOOLS.md and AGENTS.md hold ports, cameras and names of
    people and agents, so they are for the owner only, like every file that is not listed here."""
    return _AUDIENCES.get(inside, "owner")


def is_owner_only(inside: str) -> bool:
    """Whether a file is always for the owner only: agents write confidential things there."""
    *folders, name = inside.casefold().split("/")
    return name == "memory.md" or "memory" in folders


def day_of(inside: str) -> str:
    """The day in the name of a daily note; it may not be a valid date."""
    match = _DAILY_NOTE.fullmatch(inside)
    return match[1] if match else ""


def project_of(inside: str) -> str:
    """The folder of the project that a file is about."""
    match = _PROJECT_FILE.fullmatch(inside)
    return match[1] if match else ""


def includes_folder(inside: str) -> bool:
    """Whether a folder is included, if its parent is."""
    name = inside.rpartition("/")[2].casefold()
    return not name.startswith(".") and name not in _EXCLUDED_FOLDERS and inside.casefold() != _DRAFT_FOLDER


def includes_file(inside: str) -> bool:
    """Whether a file is included, by its name only."""
    name = inside.rpartition("/")[2].casefold()
    return not name.startswith(".") and name not in _COPIED_FILES


def includes_path(inside: str) -> bool:
    """Whether a file and all its parent folders are included."""
    parts = inside.split("/")
    parents = ("/".join(parts[:count]) for count in range(1, len(parts)))
    return includes_file(inside) and all(map(includes_folder, parents))

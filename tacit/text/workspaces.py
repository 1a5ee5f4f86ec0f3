"""Files of an adopted workspace, by their paths: what they are, who may see them, and which are left out.

Such a path is `workspace/NAME/…`. The first word stands for no folder: one of that name in a home is never
read, so the two cannot be confused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tacit.model.search import Audience, Category

WORKSPACE = "workspace"

# Names as hosts write them; another spelling is some other file, and so the owner's.
_AUDIENCES: Mapping[str, Audience] = {
    "SOUL.md": "anyone",
    "TOOLS_COMPACT.md": "group",
    "IDENTITY.md": "group",
}
_IDENTITY = ("SOUL.md", "USER.md", "AGENTS.md", "TOOLS.md", "TOOLS_COMPACT.md", "IDENTITY.md", "HEARTBEAT.md")
_MEMORY = ("MEMORY.md", "LESSONS_LEARNED.md")
_FOLDERS: Mapping[str, Category] = {
    "memory": "memory",
    "journal": "journal",
    "initiatives": "project",
    "projects": "project",
    "people": "person",
    "procedures": "procedure",
    "skills": "procedure",
}
_DAILY = re.compile(r"memory/(?:[^/]+/)*(\d{4}-\d\d-\d\d)[^/]*")
_PROJECT = re.compile(r"(?:initiatives|projects)/([^/]+)/.+")

# What is no memory of an agent: code of others, what the host runs, and drafts that nobody approved yet.
_LEFT_OUT = ("node_modules", "hooks")
_DRAFTS = "initiatives/adaptive-context-injection"
_COPIES = ("ethos_context.md",)  # of what a turn was given


def path_in(name: str, inside: str) -> str:
    return f"{WORKSPACE}/{name}/{inside}"


def is_of_one(path: str) -> bool:
    return path.startswith(f"{WORKSPACE}/")


def split(path: str) -> tuple[str, str]:
    """The name of the workspace, and the path inside it; both empty for every other path."""
    if not is_of_one(path):
        return "", ""
    name, _, inside = path[len(WORKSPACE) + 1 :].partition("/")
    return name, inside


def category_of(inside: str) -> Category:
    if inside in _IDENTITY:
        return "identity"
    if inside in _MEMORY:
        return "memory"
    if day_of(inside):
        return "journal"
    folder, slash, _ = inside.partition("/")
    return _FOLDERS.get(folder, "reference") if slash else "reference"


def audience_of(inside: str) -> Audience:
    """Where the file itself does not say. TOOLS.md and AGENTS.md hold ports, cameras and names of people and
    agents, so they are the owner's, as is everything that is not named here."""
    return _AUDIENCES.get(inside, "owner")


def is_always_the_owners(inside: str) -> bool:
    """Whatever it says itself: an agent writes there what it was told in confidence."""
    *folders, name = inside.casefold().split("/")
    return name == "memory.md" or "memory" in folders


def day_of(inside: str) -> str:
    """Of a daily note, the day in its name; it may be none that a calendar has."""
    found = _DAILY.fullmatch(inside)
    return found[1] if found else ""


def project_of(inside: str) -> str:
    """The folder of the project that a file is about."""
    found = _PROJECT.fullmatch(inside)
    return found[1] if found else ""


def has_folder(inside: str) -> bool:
    """Whether a folder is looked into, if the one above it is."""
    name = inside.rpartition("/")[2].casefold()
    return not name.startswith(".") and name not in _LEFT_OUT and inside.casefold() != _DRAFTS


def has_file(inside: str) -> bool:
    """By its name alone."""
    name = inside.rpartition("/")[2].casefold()
    return not name.startswith(".") and name not in _COPIES


def has(inside: str) -> bool:
    """With all folders above it."""
    parts = inside.split("/")
    above = ("/".join(parts[:at]) for at in range(1, len(parts)))
    return has_file(inside) and all(map(has_folder, above))

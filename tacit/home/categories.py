"""The category of a file, by its path alone: by its folder in a home or in an attached workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

from tacit.home.paths import IDENTITY, split_names
from tacit.home.workspace_files import day_of, is_workspace_path, split_workspace_path

Category: TypeAlias = Literal[
    "identity", "memory", "journal", "project", "person", "procedure", "reference", "conversation", "topic"
]
CATEGORIES: tuple[Category, ...] = get_args(Category)

_FOLDERS: Mapping[str, Category] = {
    "identity": "identity",
    "memory": "memory",
    "journal": "journal",
    "projects": "project",
    "people": "person",
    "procedures": "procedure",
    "reference": "reference",
    "conversations": "conversation",
    "topics": "topic",
}
_WORKSPACE_FOLDERS: Mapping[str, Category] = {
    "memory": "memory",
    "journal": "journal",
    "initiatives": "project",
    "projects": "project",
    "people": "person",
    "procedures": "procedure",
    "skills": "procedure",
}
_WORKSPACE_MEMORY = ("MEMORY.md", "LESSONS_LEARNED.md")


def category_of(path: str) -> Category:
    """The category by folder, in archive/ as well as outside it. Anything else is reference."""
    if is_workspace_path(path):
        return _category_in_workspace(split_workspace_path(path)[1])
    return _FOLDERS.get(folder_of(path), "reference")


def folder_of(path: str) -> str:
    """The folder of a home that decides about a file: `people` of `knowledge/people/ana.md`."""
    parts = split_names(path)
    names = parts[1:] if parts[:1] and parts[0] in ("archive", "raw", "knowledge") else parts
    return names[0] if len(names) > 1 else ""


def _category_in_workspace(inside: str) -> Category:
    if inside in IDENTITY:
        return "identity"
    if inside in _WORKSPACE_MEMORY:
        return "memory"
    if day_of(inside):
        return "journal"
    folder, slash, _ = inside.partition("/")
    return _WORKSPACE_FOLDERS.get(folder, "reference") if slash else "reference"

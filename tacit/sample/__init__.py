"""A sample home: four weeks of one invented person and her agent, for the demo, the docs and the tests.

`home/` holds the notes as they lie in a home; `conversations/` the 25 sessions from which they came, in
order of time; `live.yaml` one more session, two days later, that is still going on. Everything in them is
invented.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, cast

from tacit.text.yaml_reader import read_tree, to_value


@dataclass(frozen=True, slots=True)
class Turn:
    """One entry of a conversation: a message, a tool call, a memory operation or an attachment."""

    at: datetime
    role: str | None = None  # user | agent | system; only messages have one
    text: str = ""
    speaker: str | None = None
    tool: str | None = None
    knowledge: str | None = None  # created | updated | appended
    path: str | None = None
    summary: str = ""
    result: str = ""
    attachment: str | None = None

    @property
    def kind(self) -> str:
        if self.role:
            return "message"
        if self.tool:
            return "tool"
        return "knowledge" if self.knowledge else "attachment"


@dataclass(frozen=True, slots=True)
class Conversation:
    slug: str
    session_id: str
    started: datetime
    ended: datetime
    session_key: str
    agent: str
    channel: str
    model: str
    tags: tuple[str, ...]
    tokens_in: int
    tokens_out: int
    turns: tuple[Turn, ...]


def notes() -> list[tuple[str, bytes]]:
    """Path inside the home and content of each note, sorted by path."""
    return sorted(_walk(files(__name__) / "home", ""))


def conversations() -> list[Conversation]:
    """The finished sessions, oldest first."""
    sessions = [f for f in (files(__name__) / "conversations").iterdir() if f.name.endswith(".yaml")]
    return [_load(f) for f in sorted(sessions, key=lambda f: f.name)]


def live() -> Conversation:
    """The session that the demo continues."""
    return _load(files(__name__) / "live.yaml")


def _walk(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    note_files: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            note_files += _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".md"):
            note_files.append((prefix + entry.name, entry.read_bytes()))
    return note_files


def _load(file: Traversable) -> Conversation:
    data = cast("dict[str, Any]", to_value(read_tree(file.read_text(encoding="utf-8"))))
    number, _, slug = file.name.removesuffix(".yaml").partition("-")
    data["tags"] = tuple(data["tags"])
    data["turns"] = tuple(Turn(**turn) for turn in data["turns"])
    return Conversation(slug=slug or number, **data)

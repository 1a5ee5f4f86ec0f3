"""A home that holds one collection, made as a user's would be: captured, sealed, indexed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Literal

from tacit.app import init_home, open_home
from tacit.evaluation.sets import Collection, Said
from tacit.memory import Memory
from tacit.store.home import CONFIG

_AGENTS = ("assistant", "agent", "ai", "bot")


Known = Mapping[tuple[str, int], Said]  # path of a transcript and number of a record


def build(root: Path, collection: Collection, search: Mapping[str, object]) -> tuple[Memory, Known]:
    """The home, and which message stands where. `search`: settings to try."""
    init_home(root)
    lines = [f"  {key}: {value}" for key, value in search.items()]
    (root / CONFIG).write_text("\n".join(["git:", "  auto_commit: false", "search:", *lines, ""]))
    memory = open_home(root, recover=False)
    return memory, _say(memory, collection)


def _say(memory: Memory, collection: Collection) -> Known:
    known: dict[tuple[str, int], Said] = {}
    for name, messages in groupby(collection.said, key=lambda said: said.session):
        said = list(messages)
        session = memory.session(session_id=f"{collection.name}-{name}", started=said[0].at)
        numbers = []
        at = said[0].at
        for message in said:
            at = max(at + timedelta(seconds=1), message.at)
            role, speaker = _who(message.speaker)
            numbers.append((session.message(role, message.text, at=at, speaker=speaker), message))
        sealed = session.end(at=at)
        if sealed is not None:
            known |= {(sealed.path, number): message for number, message in numbers}
    return known


def _who(speaker: str) -> tuple[Literal["user", "agent"], str | None]:
    if speaker.casefold() in _AGENTS:
        return "agent", None
    return "user", None if speaker.casefold() == "user" else speaker

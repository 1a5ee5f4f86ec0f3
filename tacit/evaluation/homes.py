"""A home that holds one collection, built like a user's: captured, sealed, indexed. It contains nothing else,
and its clock stands at the last message."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Literal

from tacit.app import create_memory, init_home, load_config
from tacit.evaluation.sets import QuestionSet, SetMessage
from tacit.home.layout import CONFIG, Home
from tacit.memory import Memory

_AGENT_NAMES = ("assistant", "agent", "ai", "bot")
_STARTER_FOLDERS = ("knowledge/", "topics/")


MessagesByPlace = Mapping[tuple[str, int], SetMessage]  # path of a transcript and number of a record


@contextmanager
def temporary_home(
    collection: QuestionSet, settings: Mapping[str, object]
) -> Iterator[tuple[Memory, MessagesByPlace]]:
    """A temporary home of a collection."""
    with tempfile.TemporaryDirectory(prefix="tacit-eval-") as folder:
        memory, known = build_home(Path(folder) / "home", collection, settings)
        memory.searcher.update()
        try:
            yield memory, known
        finally:
            memory.searcher.close()


def build_home(
    root: Path, collection: QuestionSet, settings: Mapping[str, object]
) -> tuple[Memory, MessagesByPlace]:
    """The home, and its messages by place. `settings` are those of search, or have a section before the last
    dot."""
    _, report = init_home(root)
    for path in report.made:
        if path.startswith(_STARTER_FOLDERS):
            (root / path).unlink()
    (root / CONFIG).write_text(_config_text(settings))
    home, newest = Home(root), max(message.at for message in collection.said)
    memory = create_memory(home, load_config(home).config, lambda: newest)
    return memory, _capture(memory, collection)


def _config_text(settings: Mapping[str, object]) -> str:
    sections: dict[str, list[str]] = {"git": ["auto_commit: false"]}
    for key, value in settings.items():
        section, _, name = key.rpartition(".")
        sections.setdefault(section or "search", []).append(f"{name}: {value}")
    return "".join(
        f"{section}:\n" + "".join(f"  {line}\n" for line in lines) for section, lines in sections.items()
    )


def _capture(memory: Memory, collection: QuestionSet) -> MessagesByPlace:
    known: dict[tuple[str, int], SetMessage] = {}
    for name, messages in groupby(collection.said, key=lambda message: message.session):
        batch = list(messages)
        session = memory.session(session_id=f"{collection.name}-{name}", started=batch[0].at)
        numbers = []
        moment = batch[0].at
        for message in batch:
            moment = max(moment + timedelta(seconds=1), message.at)
            role, speaker = _role_of(message.speaker)
            numbers.append((session.message(role, message.text, at=moment, speaker=speaker), message))
        sealed = session.end(at=moment)
        if sealed is not None:
            known |= {(sealed.path, number): message for number, message in numbers}
    return known


def _role_of(speaker: str) -> tuple[Literal["user", "agent"], str | None]:
    if speaker.casefold() in _AGENT_NAMES:
        return "agent", None
    return "user", None if speaker.casefold() == "user" else speaker

"""A home that holds one collection, made as a user's would be: captured, sealed, indexed. There is nothing
else in it, and its clock stands at the last message."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Literal

from tacit.app import init_home, load_config, memory_of
from tacit.evaluation.sets import Collection, Said
from tacit.memory import Memory
from tacit.store.home import CONFIG, Home

_AGENTS = ("assistant", "agent", "ai", "bot")
_NOTES = ("knowledge/", "topics/")


Known = Mapping[tuple[str, int], Said]  # path of a transcript and number of a record


@contextmanager
def home_of(collection: Collection, settings: Mapping[str, object]) -> Iterator[tuple[Memory, Known]]:
    """For as long as it is asked."""
    with tempfile.TemporaryDirectory(prefix="tacit-eval-") as folder:
        memory, known = build(Path(folder) / "home", collection, settings)
        memory.searcher.update()
        try:
            yield memory, known
        finally:
            memory.searcher.close()


def build(root: Path, collection: Collection, settings: Mapping[str, object]) -> tuple[Memory, Known]:
    """The home, and which message stands where. `settings` to try: of search, or with a section before the
    last dot."""
    _, report = init_home(root)
    for path in report.made:
        if path.startswith(_NOTES):
            (root / path).unlink()
    (root / CONFIG).write_text(_config(settings))
    home, last = Home(root), max(said.at for said in collection.said)
    memory = memory_of(home, load_config(home).config, lambda: last)
    return memory, _say(memory, collection)


def _config(settings: Mapping[str, object]) -> str:
    sections: dict[str, list[str]] = {"git": ["auto_commit: false"]}
    for key, value in settings.items():
        section, _, name = key.rpartition(".")
        sections.setdefault(section or "search", []).append(f"{name}: {value}")
    return "".join(
        f"{section}:\n" + "".join(f"  {line}\n" for line in lines) for section, lines in sections.items()
    )


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

"""The conversations of a home as they are learned from, by the names that a key may call them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from tacit.memory import Memory
from tacit.memory.hearing import hear
from tacit.model.changes import Heard
from tacit.store.home import CONVERSATIONS
from tacit.store.listing import walk


def hearings(memory: Memory) -> Iterator[Heard]:
    """Oldest first. Nothing counts as given before: what the notes say by now was made from them."""
    for path in sorted(path for path, _ in walk(str(memory.home.root), CONVERSATIONS)):
        heard = hear(memory, path, given=())
        if heard is not None:
            yield heard


def named(heard: Iterable[Heard], names: Collection[str]) -> Iterator[tuple[str, Heard]]:
    """A conversation is called by its session's id, or by the end of its file's name."""
    for one in heard:
        stem = one.transcript.rpartition("/")[2].removesuffix(".md")
        fitting = (name for name in names if name == one.session_id or stem.endswith(f"-{name}"))
        yield next(fitting, stem), one

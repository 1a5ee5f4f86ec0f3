"""The attributed conversations of a home, under the names that a key uses for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from tacit.home.layout import CONVERSATIONS
from tacit.home.listing import walk
from tacit.learn.model import Heard
from tacit.memory import Memory


def attributed_conversations(memory: Memory) -> Iterator[Heard]:
    """Oldest first. Nothing counts as injected: the notes of today were made from these conversations."""
    for path in sorted(path for path, _ in walk(str(memory.home.root), CONVERSATIONS)):
        conversation = memory.services.attribution.attribute(path, given=())
        if conversation is not None:
            yield conversation


def pair_with_names(heard: Iterable[Heard], names: Collection[str]) -> Iterator[tuple[str, Heard]]:
    """Pair each conversation with its name: the session's id, or the end of its file name."""
    for conversation in heard:
        stem = conversation.transcript.rpartition("/")[2].removesuffix(".md")
        fitting = (name for name in names if name == conversation.session_id or stem.endswith(f"-{name}"))
        yield next(fitting, stem), conversation

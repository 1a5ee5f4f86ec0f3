"""Search in files as they once were: read into an index in memory that is gone afterwards."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from tacit.embed.protocol import EmbedderError
from tacit.index.opening import memory_index
from tacit.index.protocol import Place, Stored
from tacit.model.search import EVERYTHING, Found, Scope, Stamp
from tacit.search import calibration
from tacit.search.find import Engine, find
from tacit.search.parts import Parts
from tacit.search.update import embed, update
from tacit.store.purged import Purged


class Snapshot:
    """Answers as `Searcher` does, from `files`. `at`: the day of notes that carry none themselves. What was
    purged since is not in it."""

    def __init__(self, files: Mapping[str, bytes], at: datetime, parts: Parts, purged: Purged) -> None:
        self.notes: list[str] = []
        index = memory_index()
        stamp = Stamp(int(at.timestamp() * 1e9), 0, 0)
        listed = purged.applied(dict.fromkeys(files, stamp))
        update(index, listed, files.__getitem__, purged=purged.records)
        try:
            embedder = parts.embedder()
            if embedder is not None:
                embed(index, embedder)
        except EmbedderError as error:
            embedder = None
            self.notes.append(f"vector: {error}")
        name = embedder.name if embedder else ""
        self._engine = Engine(
            index,
            embedder,
            calibration.choose(calibration.read(), name, reranker=False, unrelated=index.background),
            None,
            parts.lexical_weight,
            parts.vector_weight,
            spreading=parts.spreading,
        )

    def find(
        self, text: object, scope: Scope = EVERYTHING, limit: int = 10, *, now: datetime | None = None
    ) -> Found:
        return find(self._engine, text, scope, limit, now=now, snippets=False)

    def around(self, places: Collection[Place], before: int = 0, after: int = 0) -> dict[Place, list[Stored]]:
        return self._engine.index.around(places, before, after)

    def names(self, scope: Scope = EVERYTHING) -> tuple[str, ...]:
        return self._engine.index.names(scope)

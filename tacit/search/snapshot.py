"""Search in files as they were at a commit, with a temporary index in memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from tacit.embeddings.protocol import EmbedderError
from tacit.home.listing import Stamp
from tacit.search import calibration
from tacit.search.hybrid import Engine, find
from tacit.search.index import ChunkLocation, StoredChunk
from tacit.search.model import EVERYTHING, Found, Scope
from tacit.search.models import SearchModels
from tacit.search.open_index import open_memory_index
from tacit.search.updater import embed_chunks, update_index
from tacit.transcripts.purged import PurgedRecords


class Snapshot:
    """Searches `files` as `Searcher` does. `at`: the day of notes without a date. What was purged since is
    left out."""

    def __init__(
        self, files: Mapping[str, bytes], at: datetime, parts: SearchModels, purged: PurgedRecords
    ) -> None:
        self.notes: list[str] = []
        index = open_memory_index()
        stamp = Stamp(int(at.timestamp() * 1e9), 0, 0)
        listed = purged.applied(dict.fromkeys(files, stamp))
        update_index(index, listed, files.__getitem__, purged=purged.records)
        try:
            embedder = parts.embedder()
            if embedder is not None:
                embed_chunks(index, embedder)
        except EmbedderError as error:
            embedder = None
            self.notes.append(f"vector: {error}")
        name = embedder.name if embedder else ""
        self._engine = Engine(
            index,
            embedder,
            calibration.choose_calibration(
                calibration.load_calibrations(), name, reranker=False, unrelated=index.background
            ),
            None,
            parts.lexical_weight,
            parts.vector_weight,
            spreading=parts.spreading,
        )

    def find(
        self, text: object, scope: Scope = EVERYTHING, limit: int = 10, *, now: datetime | None = None
    ) -> Found:
        return find(self._engine, text, scope, limit, now=now, snippets=False)

    def around(
        self, places: Collection[ChunkLocation], before: int = 0, after: int = 0
    ) -> dict[ChunkLocation, list[StoredChunk]]:
        return self._engine.index.around(places, before, after)

    def names(self, scope: Scope = EVERYTHING) -> tuple[str, ...]:
        return self._engine.index.names(scope)

"""Turns that repeat the question.

A repeated question (an echo) has every word of the question and the same vector: beside it nothing else
stands out, and the answer looks far away. So echoes are removed before chunks are compared with each other,
together with turns of the same files that match only by borrowed words: from the echo next to them, or from
the title, which is often the first question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from tacit.search.fusion import Candidates
from tacit.search.index import Index, StoredChunk
from tacit.search.weights import REPEATS_DEPTH_FACTOR

_IsSame: TypeAlias = Callable[[str], bool]


class SeparatedEchoes(NamedTuple):
    echoes: Mapping[int, StoredChunk]
    among: Candidates  # all candidates, including echoes
    rest: Candidates


def separate_echoes(
    index: Index,
    found: Candidates,
    is_same: _IsSame,
    terms: Sequence[str],
    deeper: Callable[[int], Candidates],
) -> SeparatedEchoes:
    """Separate the echoes from the other candidates. If most are echoes, `deeper` fetches that many times
    more."""
    split = _split(index, found, is_same, terms)
    remaining = {hit.id for hit in (*split.rest.lexical, *split.rest.nearest)}
    if 2 * len(remaining) < len({hit.id for hit in (*found.lexical, *found.nearest)}):
        return _split(index, deeper(REPEATS_DEPTH_FACTOR), is_same, terms)
    return split


def _split(index: Index, candidates: Candidates, is_same: _IsSame, terms: Sequence[str]) -> SeparatedEchoes:
    stored = index.stored({hit.id for hit in (*candidates.lexical, *candidates.nearest)})
    echoes = {id_: hit for id_, hit in stored.items() if hit.chunk.turn and is_same(hit.chunk.text)}
    files = {hit.path for hit in echoes.values()}
    same_file = [
        stored[hit.id] for hit in candidates.lexical if hit.id in stored and stored[hit.id].path in files
    ]
    borrowed = {
        hit.id
        for hit in same_file
        if hit.chunk.turn and hit.id not in echoes and not index.matched(terms, hit.chunk.text)
    }
    return SeparatedEchoes(echoes, candidates, _remove(candidates, echoes, borrowed))


def _remove(candidates: Candidates, echoes: Collection[int], borrowed: Collection[int]) -> Candidates:
    return Candidates(
        [hit for hit in candidates.lexical if hit.id not in echoes and hit.id not in borrowed],
        [hit for hit in candidates.nearest if hit.id not in echoes],
        {id_: cosine for id_, cosine in candidates.cosines.items() if id_ not in echoes},
        candidates.ideal,
    )


def newest_echoes(echoes: Iterable[tuple[int, StoredChunk]], most: int) -> list[int]:
    def sort_key(echo: tuple[int, StoredChunk]) -> tuple[str, str, int]:
        _, stored = echo
        return (stored.chunk.day, stored.path, stored.chunk.turn)

    return [id_ for id_, _ in sorted(echoes, key=sort_key, reverse=True)[:most]]

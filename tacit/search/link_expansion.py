"""What links between notes add to a search, and reports about links.

The number of notes that link to a file is a tie-break: at most 0.15 in the units of the fused score.

Link expansion by one hop: a note that is linked with one of the strongest hits may be the answer though it
has none of the query's words. So a few such notes become hits, with a share of the relevance of the hit that
links to them: `search.spreading` of it, less the more links that hit has, and always below every hit that is
strong by itself. Only what the scope allows is counted, expanded or reached. Linked notes are no evidence:
the other hits decide whether there is an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

from tacit.search.index import Index, StoredChunk
from tacit.search.model import Link, LinkSummary, Neighbour, NoteLinks, Scope, Why
from tacit.search.weights import (
    MAX_CHUNKS_PER_NOTE,
    MAX_EXPANDED,
    MAX_REFERENCES,
    MAX_SEED_DISTANCE,
    MAX_SEEDS,
    REFERENCE_BOOST,
    STRONG_RELEVANCE,
)

_CEILING_MARGIN = 1e-6
_MAX_MOST_LINKED = 10  # in the report about all links


def reference_boosts(
    index: Index, stored: Mapping[int, StoredChunk], scope: Scope
) -> dict[str, tuple[str, float]]:
    """For notes that others link to: the name of the boost and its size."""
    notes = {hit.path for hit in stored.values() if not hit.chunk.turn}
    counts = index.links.count_references(notes, scope) if notes else {}
    return {
        path: (
            f"linked from {count} {'note' if count == 1 else 'notes'}",
            REFERENCE_BOOST * min(count, MAX_REFERENCES),
        )
        for path, count in counts.items()
    }


# ---------------------------------------------------------------- one hop


@dataclass(frozen=True, slots=True)
class Seed:
    """A hit whose links are expanded."""

    path: str
    standing: float
    relevance: float


def choose_seeds(
    relevances: Mapping[int, float], stored: Mapping[int, StoredChunk], whys: Mapping[int, Why]
) -> list[Seed]:
    """The notes among the first hits, each once. A hit far from the best is no seed."""
    by_path: dict[str, Seed] = {}
    minimum = max(why.standing for why in whys.values()) - MAX_SEED_DISTANCE
    for id_ in list(relevances)[:MAX_SEEDS]:
        hit, standing = stored[id_], whys[id_].standing
        if not hit.chunk.turn and standing > minimum:
            by_path.setdefault(hit.path, Seed(hit.path, standing, relevances[id_]))
    return list(by_path.values())


def rank_scores_by_path(
    chosen: Sequence[int], stored: Mapping[int, StoredChunk], whys: Mapping[int, Why]
) -> dict[str, float]:
    """The rank scores of notes among the hits. A note that has words of the query keeps its place; one that
    is only a nearest vector, as every note of a small home is, may be raised by a link."""
    standings: dict[str, float] = {}
    for id_ in chosen:
        standing = whys[id_].standing if whys[id_].bm25 is None else inf
        standings[stored[id_].path] = max(standing, standings.get(stored[id_].path, -inf))
    return standings


def expand_seeds(
    index: Index,
    seeds: Sequence[Seed],
    scope: Scope,
    vector: bytes | None,
    *,
    there: Mapping[str, float],
    whys: Mapping[int, Why],
    weight: float,
    apart: Callable[[float, float], float],
    ceiling: float | None,
) -> dict[int, Why]:
    """Chunks of notes that are linked with the seeds and rank higher because of it. `there`: rank scores of
    notes that are hits already. `apart`: the distance between two relevances. `ceiling`: upper bound of their
    rank scores, or None."""
    neighbours = index.links.neighbours([seed.path for seed in seeds], scope) if seeds else []
    fan = Counter(neighbour.path for neighbour in neighbours)
    shares = {
        seed.path: seed.standing - apart(seed.relevance, seed.relevance * weight / sqrt(fan[seed.path]))
        for seed in (replace(seed, relevance=min(seed.relevance, STRONG_RELEVANCE)) for seed in seeds)
        if seed.path in fan
    }
    links = _best_links(neighbours, shares, there)
    if not links:
        return {}
    chunks = index.chunks_of(links.keys(), scope, MAX_CHUNKS_PER_NOTE)
    cosines = (
        index.vectors.cosines(
            vector, [id_ for ids in chunks.values() for id_ in ids][: 20 * MAX_CHUNKS_PER_NOTE]
        )
        if vector
        else {}
    )
    best = {path: max(ids, key=lambda id_: cosines.get(id_, -1.0)) for path, ids in chunks.items()}
    order = sorted(best, key=lambda path: (-round(links[path][1], 9), -cosines.get(best[path], -1.0), path))
    return {
        best[path]: _explain(
            *links[path], whys.get(best[path], Why(0.0, cosine=cosines.get(best[path]))), ceiling
        )
        for path in order[:MAX_EXPANDED]
    }


def _best_links(
    neighbours: Sequence[Neighbour], shares: Mapping[str, float], there: Mapping[str, float]
) -> dict[str, tuple[Neighbour, float]]:
    """For each note the best link to it, and the rank score it gives."""
    best: dict[str, tuple[Neighbour, float]] = {}
    for neighbour in neighbours:
        known = best[neighbour.other][1] if neighbour.other in best else -inf
        if shares[neighbour.path] > max(known, there.get(neighbour.other, -inf)):
            best[neighbour.other] = (neighbour, shares[neighbour.path])
    return best


def _explain(link: Neighbour, share: float, before: Why, ceiling: float | None) -> Why:
    standing = share if ceiling is None else min(share, ceiling - _CEILING_MARGIN)
    reason = f"linked from {link.path}" if link.forward else f"links to {link.path}"
    boosts = (*before.boosts, (reason, standing - before.score))
    return replace(before, score=standing, standing=standing, boosts=boosts, linked=link.path)


# ---------------------------------------------------------------- reports


def links_of_note(path: str, links: Sequence[Link]) -> NoteLinks:
    return NoteLinks(
        path,
        tuple(link for link in links if link.source == path),
        tuple(link for link in links if link.source != path),
    )


def summarize_links(notes: Sequence[str], links: Sequence[Link]) -> LinkSummary:
    """A summary of all links."""
    pairs = {(link.source, target) for link in links for target in link.targets}
    counts = Counter(target for _, target in pairs)
    ends = {end for pair in pairs for end in pair}
    return LinkSummary(
        notes=len(notes),
        links=len(links),
        most=tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_MAX_MOST_LINKED]),
        broken=tuple(link for link in links if not link.targets),
        ambiguous=tuple(link for link in links if len(link.targets) > 1),
        orphans=tuple(path for path in notes if path not in ends),
    )

"""What links between notes add to a search, and what can be told of them.

How many notes point to a file is a tie-break: at most 0.15 in the units of the fused score.

One hop of spreading activation: a note that is linked with one of the strongest hits may be what was asked
for, though it has none of the question's words. So a few such notes that no word found become hits, with
a share of the relevance of the one that leads to them: `search.spreading` of it, less the more links that one
has, and always below every hit that is strong by itself. Only what the scope lets through is counted,
spreads or is reached. What is linked supports nothing: whether there is an answer is for the other hits
to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

from tacit.index.protocol import Index, Stored
from tacit.model.links import Link, Linked, Neighbour, Web
from tacit.model.search import Scope, Why

STRONG = 0.75  # relevance that at most one in ten questions without an answer reaches
_REFERENCE, _MOST_REFERENCES = 0.05, 3
_SEEDS = 3  # of the first hits: these spread
_CLOSE = 1.0  # how far from the best they stand at most
_SPREAD = 3  # notes that are reached, at most
_PASSAGES = 40  # of a note that was reached: the best of them is taken
_BELOW = 1e-6
_MOST_LINKED = 10  # shown of all notes


def references(index: Index, stored: Mapping[int, Stored], scope: Scope) -> dict[str, tuple[str, float]]:
    """For files of notes that others point to: what that is called, and what it is worth."""
    notes = {one.path for one in stored.values() if not one.passage.turn}
    counted = index.references(notes, scope) if notes else {}
    return {
        path: (
            f"linked from {count} {'note' if count == 1 else 'notes'}",
            _REFERENCE * min(count, _MOST_REFERENCES),
        )
        for path, count in counted.items()
    }


# ---------------------------------------------------------------- one hop


@dataclass(frozen=True, slots=True)
class Seed:
    """A hit that spreads."""

    path: str
    standing: float
    relevance: float


def seeds(
    relevances: Mapping[int, float], stored: Mapping[int, Stored], whys: Mapping[int, Why]
) -> list[Seed]:
    """The notes among the first hits, each once. One that is far from the best spreads nothing."""
    found: dict[str, Seed] = {}
    least = max(why.standing for why in whys.values()) - _CLOSE
    for one in list(relevances)[:_SEEDS]:
        kept, standing = stored[one], whys[one].standing
        if not kept.passage.turn and standing > least:
            found.setdefault(kept.path, Seed(kept.path, standing, relevances[one]))
    return list(found.values())


def found_already(
    chosen: Sequence[int], stored: Mapping[int, Stored], whys: Mapping[int, Why]
) -> dict[str, float]:
    """The standings of notes among the hits. One that has words of the question is in its place, however low;
    of one that is only the nearest of few, which every note of a small home is, a link may say more."""
    there: dict[str, float] = {}
    for one in chosen:
        standing = whys[one].standing if whys[one].bm25 is None else inf
        there[stored[one].path] = max(standing, there.get(stored[one].path, -inf))
    return there


def spread(
    index: Index,
    found: Sequence[Seed],
    scope: Scope,
    vector: bytes | None,
    *,
    there: Mapping[str, float],
    whys: Mapping[int, Why],
    weight: float,
    apart: Callable[[float, float], float],
    ceiling: float | None,
) -> dict[int, Why]:
    """Passages of notes that are linked with the seeds, and did not stand as high without it. `there`: the
    standing of notes that were found. `apart`: how far two relevances stand from each other. `ceiling`: what
    none of them reaches; None: there is no such."""
    neighbours = index.neighbours([seed.path for seed in found], scope) if found else []
    fan = Counter(one.path for one in neighbours)
    shares = {
        seed.path: seed.standing - apart(seed.relevance, seed.relevance * weight / sqrt(fan[seed.path]))
        for seed in (replace(seed, relevance=min(seed.relevance, STRONG)) for seed in found)
        if seed.path in fan
    }
    reached = _reached(neighbours, shares, there)
    if not reached:
        return {}
    passages = index.passages_of(reached.keys(), scope, _PASSAGES)
    cosines = (
        index.cosines(vector, [one for ids in passages.values() for one in ids][: 20 * _PASSAGES])
        if vector
        else {}
    )
    best = {path: max(ids, key=lambda one: cosines.get(one, -1.0)) for path, ids in passages.items()}
    order = sorted(best, key=lambda path: (-round(reached[path][1], 9), -cosines.get(best[path], -1.0), path))
    return {
        best[path]: _why(
            *reached[path], whys.get(best[path], Why(0.0, cosine=cosines.get(best[path]))), ceiling
        )
        for path in order[:_SPREAD]
    }


def _reached(
    neighbours: Sequence[Neighbour], shares: Mapping[str, float], there: Mapping[str, float]
) -> dict[str, tuple[Neighbour, float]]:
    """The best way to each note: which link, and the standing that comes by it."""
    reached: dict[str, tuple[Neighbour, float]] = {}
    for one in neighbours:
        known = reached[one.other][1] if one.other in reached else -inf
        if shares[one.path] > max(known, there.get(one.other, -inf)):
            reached[one.other] = (one, shares[one.path])
    return reached


def _why(way: Neighbour, share: float, before: Why, ceiling: float | None) -> Why:
    standing = share if ceiling is None else min(share, ceiling - _BELOW)
    by = f"linked from {way.path}" if way.forward else f"links to {way.path}"
    boosts = (*before.boosts, (by, standing - before.score))
    return replace(before, score=standing, standing=standing, boosts=boosts, linked=way.path)


# ---------------------------------------------------------------- telling


def of_note(path: str, found: Sequence[Link]) -> Linked:
    return Linked(
        path,
        tuple(link for link in found if link.source == path),
        tuple(link for link in found if link.source != path),
    )


def web(notes: Sequence[str], found: Sequence[Link]) -> Web:
    """All links as a whole."""
    pairs = {(link.source, target) for link in found for target in link.targets}
    counted = Counter(target for _, target in pairs)
    ends = {end for pair in pairs for end in pair}
    return Web(
        notes=len(notes),
        links=len(found),
        most=tuple(sorted(counted.items(), key=lambda one: (-one[1], one[0]))[:_MOST_LINKED]),
        broken=tuple(link for link in found if not link.targets),
        ambiguous=tuple(link for link in found if len(link.targets) > 1),
        orphans=tuple(path for path in notes if path not in ends),
    )

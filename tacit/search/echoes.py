"""Turns that ask the same as the question.

Such an echo has every word of the question, and its very vector: beside it nothing else stands out, neither
by its words nor by its meaning, and what answers would look far away. So echoes are taken out before passages
are compared with each other, and with them the words that turns of their files have from nowhere else: from
the echo next to them, or from the title, which is often the first question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from tacit.index.protocol import Index, Stored
from tacit.search.fusion import Candidates

KEPT = 3  # echoes among the hits, the newest ones: they lead to what was answered then
_DEEPER = 4

_IsSame: TypeAlias = Callable[[str], bool]


class Apart(NamedTuple):
    echoes: Mapping[int, Stored]
    among: Candidates  # what was found, with them
    rest: Candidates


def apart(
    index: Index,
    found: Candidates,
    is_same: _IsSame,
    terms: Sequence[str],
    deeper: Callable[[int], Candidates],
) -> Apart:
    """All echoes among the candidates, and these without them. Where most are echoes, `deeper` looks for so
    many times more."""
    divided = _divided(index, found, is_same, terms)
    left = {one.id for one in (*divided.rest.lexical, *divided.rest.nearest)}
    if 2 * len(left) < len({one.id for one in (*found.lexical, *found.nearest)}):
        return _divided(index, deeper(_DEEPER), is_same, terms)
    return divided


def _divided(index: Index, found: Candidates, is_same: _IsSame, terms: Sequence[str]) -> Apart:
    stored = index.stored({one.id for one in (*found.lexical, *found.nearest)})
    echoes = {id_: one for id_, one in stored.items() if one.passage.turn and is_same(one.passage.text)}
    files = {one.path for one in echoes.values()}
    beside = [stored[one.id] for one in found.lexical if one.id in stored and stored[one.id].path in files]
    borrowed = {
        one.id
        for one in beside
        if one.passage.turn and one.id not in echoes and not index.matched(terms, one.passage.text)
    }
    return Apart(echoes, found, _without(found, echoes, borrowed))


def _without(found: Candidates, echoes: Collection[int], borrowed: Collection[int]) -> Candidates:
    return Candidates(
        [one for one in found.lexical if one.id not in echoes and one.id not in borrowed],
        [one for one in found.nearest if one.id not in echoes],
        {id_: cosine for id_, cosine in found.cosines.items() if id_ not in echoes},
        found.ideal,
    )


def newest(echoes: Iterable[tuple[int, Stored]], most: int) -> list[int]:
    def when(echo: tuple[int, Stored]) -> tuple[str, str, int]:
        _, stored = echo
        return (stored.passage.day, stored.path, stored.passage.turn)

    return [id_ for id_, _ in sorted(echoes, key=when, reverse=True)[:most]]

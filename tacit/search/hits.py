"""Hits as they are returned: relevance, the snippet around the match, and the reasons for the rank."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tacit.search.index import Index, StoredChunk
from tacit.search.model import Hit, Why
from tacit.search.scoring import Calibration, Candidates
from tacit.search.weights import STRONG_RELEVANCE

MAX_CHARS = 300  # characters of a snippet, about 48 words
_BOLD = re.compile(r"\*\*(?=\S).+?(?<=\S)\*\*")


class Evidence(NamedTuple):
    """How well the home as a whole matches a query: the same for all hits of that query."""

    words: float  # the best BM25 as a share of the best possible
    cosine: float | None
    reading: float  # the best of the cross-encoder's scores


def gather_evidence(candidates: Candidates, whys: Mapping[int, Why]) -> Evidence:
    words = max((hit.score for hit in candidates.lexical), default=0.0)
    readings = [why.rerank for why in whys.values() if why.rerank is not None]
    return Evidence(
        words / candidates.ideal if candidates.ideal else 0.0,
        max(candidates.cosines.values(), default=None),
        max(readings, default=0.0),
    )


def relevance_of(calibration: Calibration, evidence: Evidence, below: float) -> float:
    """The relevance of a hit that is so far below the first, in rank score."""
    meaning = calibration.meaning_of(evidence.cosine)
    return calibration.relevance(evidence.words, meaning, evidence.reading, below)


def make_hits(
    index: Index,
    calibration: Calibration,
    selected: Sequence[int],
    stored: Mapping[int, StoredChunk],
    whys: Mapping[int, Why],
    evidence: Evidence,
    terms: Sequence[str] | None,
) -> Iterator[Hit]:
    """`terms`: None if the hits need no snippets."""
    for id_ in selected:
        row, why, chunk = stored[id_], whys[id_], stored[id_].chunk
        relevance = relevance_of(calibration, evidence, whys[selected[0]].standing - why.standing)
        if why.linked:
            relevance = min(relevance, STRONG_RELEVANCE - 0.001)
        snippet = ""
        if terms is not None:
            matches = index.words.matches(terms, chunk.text)
            snippet = make_snippet(chunk.text, matches)
            why = replace(why, words=tuple(dict.fromkeys(term for *_, term in matches)))
        yield Hit(
            path=row.path,
            text=chunk.text,
            snippet=snippet,
            score=round(relevance, 4),
            category=row.category,
            lines=(chunk.first_line, chunk.last_line),
            day=chunk.day,
            speaker=chunk.speaker,
            turn=chunk.turn,
            title=row.title,
            section=chunk.section,
            audience=row.audience,
            archived=row.archived,
            why=why,
        )


def make_snippet(text: str, matches: Sequence[tuple[int, int, str]], width: int = MAX_CHARS) -> str:
    """At most `width` characters of the text, around as many different terms as possible, each match between
    ** **; cut ends are marked. Bold in the text itself loses its markers, which would look like matches."""
    start, end = _window(text, matches, width)
    markers = _bold_markers(text)
    parts = ["… " if start else ""]
    position = start
    for first, last, _ in matches:
        if first >= position and last <= end:
            parts += [
                _without_markers(text, position, first, markers),
                "**",
                _without_markers(text, first, last, markers),
                "**",
            ]
            position = last
    parts += [_without_markers(text, position, end, markers), " …" if end < len(text) else ""]
    return "".join(parts).strip()


def _bold_markers(text: str) -> set[int]:
    """Offsets of the ** that mark bold text; not those of `2 ** 3` or `src/**`."""
    ends = (start for bold in _BOLD.finditer(text) for start in (bold.start(), bold.end() - 2))
    return {offset for start in ends for offset in (start, start + 1)}


def _without_markers(text: str, start: int, end: int, markers: Collection[int]) -> str:
    if not markers:
        return text[start:end]
    return "".join(text[offset] for offset in range(start, end) if offset not in markers)


def _window(text: str, matches: Sequence[tuple[int, int, str]], width: int) -> tuple[int, int]:
    if len(text) <= width:
        return 0, len(text)
    start = _densest_start(matches, width)
    start = max(0, min(start - width // 6, len(text) - width))
    return _nearest_word_boundary(text, start, 1 if start else 0), _nearest_word_boundary(
        text, start + width, -1
    )


def _densest_start(matches: Sequence[tuple[int, int, str]], width: int) -> int:
    """Start of the window with the most different terms; the first one of equals."""
    best, most = 0, 0
    for first, _, _ in matches:
        inside = {term for begin, end, term in matches if first <= begin and end <= first + width * 5 // 6}
        if len(inside) > most:
            best, most = first, len(inside)
    return best


def _nearest_word_boundary(text: str, offset: int, step: int) -> int:
    """The nearest word boundary in the direction of `step`, if there is one close by."""
    for distance in range(30):
        candidate = offset + step * distance
        if not step or candidate <= 0 or candidate >= len(text) or text[candidate - 1].isspace():
            return max(0, min(candidate, len(text)))
    return max(0, min(offset, len(text)))

"""Scores: two rankings fused into one, relevance from 0 to 1 that is comparable between embedders, and hits.

The scores of each channel are standardized over the candidates of the query: standard deviations above their
mean. That puts BM25, whose scale depends on the query, and cosine, whose scale depends on the model, on one
scale. A chunk that lexical search did not find counts as 0 there; for vectors the cosine is looked up,
since every chunk has one. Relevance is calibrated:

    log odds = bias + words · the best chunk's share of the best possible word match
                    + meaning · how far the best cosine is above that of unrelated texts
                    + reading · the best score of a cross-encoder, if there is one
                    - fall · the distance of the hit from the first

The first three are the same for all hits of a query and say whether the home has an answer at all; the last
makes relevance fall with rank. The constants are fitted by `tacit eval --calibrate` on questions with and
without an answer, one set per model, and stored in calibrations.json. evaluation/calibration.py says what
0.12 and 0.75 mean.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from pathlib import Path
from typing import NamedTuple

from tacit.search.index import Index, StoredChunk
from tacit.search.model import Hit, Scored, Why
from tacit.search.weights import STRONG_RELEVANCE

CALIBRATIONS_FILE = Path(__file__).with_name("calibrations.json")
LEXICAL_ONLY = "none"
GENERAL = "any"  # for models without fitted constants
_MIN_COSINES = 20  # needed for a mean and a spread


@dataclass(frozen=True, slots=True)
class Candidates:
    """What both channels found for one query."""

    lexical: Sequence[Scored]
    nearest: Sequence[Scored]
    cosines: Mapping[int, float]  # of all candidates that have a vector; empty: there are no vectors
    ideal: float  # the BM25 of a chunk that repeats every term many times


def fuse(
    candidates: Candidates, lexical_weight: float, vector_weight: float, count: int | None = None
) -> dict[int, Why]:
    """The best `count` and those that tie with the last of them; without `count` all."""
    ids = {scored.id for scored in (*candidates.lexical, *candidates.nearest)}
    bm25 = {scored.id: scored.score for scored in candidates.lexical}
    words = _standardize({id_: bm25.get(id_, 0.0) for id_ in ids})
    meaning = _standardize({id_: candidates.cosines[id_] for id_ in ids if id_ in candidates.cosines})
    total = lexical_weight + vector_weight
    lexical_share = lexical_weight / total if candidates.cosines and total else 1.0
    lexical_rank = {scored.id: rank for rank, scored in enumerate(candidates.lexical, 1)}
    vector_rank = {scored.id: rank for rank, scored in enumerate(candidates.nearest, 1)}
    scores = {id_: lexical_share * words[id_] + (1 - lexical_share) * meaning.get(id_, 0.0) for id_ in ids}
    return {
        id_: Why(
            score=scores[id_],
            standing=scores[id_],
            lexical=lexical_share * words[id_],
            vector=(1 - lexical_share) * meaning.get(id_, 0.0),
            bm25=bm25.get(id_),
            cosine=candidates.cosines.get(id_),
            lexical_rank=lexical_rank.get(id_),
            vector_rank=vector_rank.get(id_),
        )
        for id_ in (ids if count is None else top_with_ties(scores, count))
    }


def _standardize(values: Mapping[int, float]) -> dict[int, float]:
    """Each value in standard deviations above the mean; 0 if all are equal."""
    if not values:
        return {}
    mean = sum(values.values()) / len(values)
    spread = sqrt(sum((value - mean) ** 2 for value in values.values()) / len(values))
    return {id_: (value - mean) / spread if spread > 1e-9 else 0.0 for id_, value in values.items()}


def blend(whys: Mapping[int, Why], logits: Mapping[int, float], share: float) -> dict[int, float]:
    """Blend the scores with those of a cross-encoder, whose share is `share`."""
    before = _standardize({id_: whys[id_].score for id_ in logits})
    after = _standardize(logits)
    return {id_: (1 - share) * before[id_] + share * after[id_] for id_ in logits}


def order_by_score(
    scores: Mapping[int, float], places: Mapping[int, tuple[str, int]], limit: int
) -> list[int]:
    """Highest first; ties in the order of the files, so that the history of the index makes no difference."""
    ordered = sorted(scores, key=lambda id_: (-round(scores[id_], 9), places.get(id_, ("", id_))))
    return ordered[: max(0, limit)]


def top_with_ties(scores: Mapping[int, float], count: int) -> list[int]:
    """The highest `count` and those that tie with the last of them, which `best` puts in order."""
    ordered = sorted(scores, key=lambda id_: -scores[id_])
    end = max(0, count)
    while 0 < end < len(ordered) and scores[ordered[end]] > scores[ordered[end - 1]] - 1e-9:
        end += 1
    return ordered[:end]


# ---------------------------------------------------------------- relevance


@dataclass(frozen=True, slots=True)
class Calibration:
    """Constants of one model. `mean` and `spread` are those of the cosine between unrelated texts; `trust` is
    the weight of its cosines against words, 1 for a good transformer."""

    mean: float = 0.0
    spread: float = 1.0
    trust: float = 1.0
    bias: float = 0.0
    words: float = 0.0
    meaning: float = 0.0
    reading: float = 0.0
    fall: float = 1.0

    def meaning_of(self, cosine: float | None) -> float:
        return 0.0 if cosine is None else (cosine - self.mean) / self.spread

    def relevance(self, words: float, meaning: float, reading: float, below: float) -> float:
        odds = self.bias + self.words * words + self.meaning * meaning + self.reading * reading
        return 1 / (1 + exp(-max(-30.0, min(30.0, odds - self.fall * below))))

    def apart(self, relevance: float, lower: float) -> float:
        """The distance in rank score between a hit of this relevance and one of the lower relevance."""
        return (_log_odds(relevance) - _log_odds(lower)) / max(0.1, self.fall)


def _log_odds(relevance: float) -> float:
    clamped = max(1e-9, min(1 - 1e-9, relevance))
    return log(clamped / (1 - clamped))


def load_calibrations(file: Path = CALIBRATIONS_FILE) -> dict[str, Calibration]:
    constants: dict[str, dict[str, float]] = json.loads(file.read_bytes())
    return {name: Calibration(**values) for name, values in constants.items()}


def choose_calibration(
    known: Mapping[str, Calibration],
    embedder: str,
    reranker: bool,
    unrelated: Callable[[], Sequence[float]] = list,
) -> Calibration:
    """The constants of this embedder. An embedder without fitted constants gets the general ones, with the
    mean and spread of its own cosines between `unrelated` texts of the home."""
    family = embedder.partition("/")[0] or LEXICAL_ONLY
    suffix = "+rerank" if reranker else ""
    if family + suffix in known:
        return known[family + suffix]
    cosines = unrelated()
    if len(cosines) < _MIN_COSINES:
        return known[GENERAL + suffix]
    mean, spread = mean_and_spread(cosines)
    return replace(known[GENERAL + suffix], mean=mean, spread=spread)


def mean_and_spread(cosines: Sequence[float]) -> tuple[float, float]:
    """Mean and spread of the cosine between texts that have nothing to do with each other."""
    mean = sum(cosines) / len(cosines)
    return mean, max(1e-3, sqrt(sum((cosine - mean) ** 2 for cosine in cosines) / len(cosines)))


# ---------------------------------------------------------------- hits


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

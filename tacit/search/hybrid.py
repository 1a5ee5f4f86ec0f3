"""One query to one index.

    understand   words, days and names in the query                        (tacit.search.query)
    words        the best chunks by BM25, within the scope
    vector       the query's vector, if it is ready before the deadline; then the nearest chunks
    fuse         both rankings on one scale, boosts for named days, people and projects
    echoes       separates turns that ask the same question
    rerank       a cross-encoder reads the best few, if there is one and time for it
    links        adds notes that are linked with the best hits, below them (tacit.search.link_expansion)
    explain      relevance, snippet and reasons for the hits that are returned

If a step fails, the search goes on without it and the answer says so; lexical search always answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf, log
from typing import NamedTuple, TypeAlias

from tacit.embeddings.protocol import Embedder, EmbedderError, Reranker
from tacit.search.index import Index, StoredChunk
from tacit.search.link_expansion import (
    choose_seeds,
    expand_seeds,
    rank_scores_by_path,
    reference_boosts,
)
from tacit.search.model import EVERYTHING, Found, Scope, Scored, Why
from tacit.search.query import Query, parse_query
from tacit.search.scoring import (
    Calibration,
    Candidates,
    Evidence,
    blend,
    fuse,
    gather_evidence,
    make_hits,
    order_by_score,
    relevance_of,
    top_with_ties,
)
from tacit.search.weights import (
    BM25_CEILING,
    CANDIDATES_PER_CHANNEL,
    COMMON_WORD_FREQUENCY,
    DAY_BOOST,
    LEXICAL_WEIGHT,
    MAX_CHECKED_FOR_REPEATS,
    MAX_REPEATS,
    MAX_RERANKED,
    MAX_SAME_QUESTION_FACTOR,
    MAX_TERM_FREQUENCY,
    MIN_HITS_FOR_MORE_REPEATS,
    MIN_RERANKED,
    MIN_SAME_WORDS,
    NAME_BOOST,
    REPEATS_DEPTH_FACTOR,
    RERANK_SHARE,
    STRONG_RELEVANCE,
    VECTOR_WEIGHT,
)
from tacit.text.sentences import match_same_question

_Fused: TypeAlias = tuple[dict[int, Why], dict[int, StoredChunk]]


class SeparatedEchoes(NamedTuple):
    echoes: Mapping[int, StoredChunk]
    among: Candidates  # all candidates, including echoes
    rest: Candidates


class _CandidateQuery(NamedTuple):
    """The terms, the vector and the scope with which candidates are searched, and how many."""

    terms: Sequence[str]
    vector: bytes | None
    scope: Scope
    depth: int


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts of a search, chosen by the app. Without an embedder it is purely lexical."""

    index: Index
    embedder: Embedder | None
    calibration: Calibration
    reranker: Reranker | None = None
    lexical_weight: float = LEXICAL_WEIGHT
    vector_weight: float = VECTOR_WEIGHT
    alone: Calibration | None = None  # for lexical search, when the embedder does not answer
    spreading: float = 0.0  # share of a hit's relevance that linked notes get


def find(
    engine: Engine,
    text: object,
    scope: Scope = EVERYTHING,
    limit: int = 10,
    *,
    now: datetime | None = None,
    deadline: float | None = None,
    snippets: bool = True,
) -> Found:
    """The best chunks for a query. `deadline` is a monotonic time; None: no limit. Without `snippets`, hits
    carry neither snippets nor matched words: callers that take many hits show only a few."""
    timer = _StepTimer()
    index = engine.index
    with index.unmoving():
        with timer("understand"):
            query = parse_query(text, now, index.names(scope))
            terms = [term.text for term in query.terms]
            depth = (
                CANDIDATES_PER_CHANNEL if limit <= 2 * CANDIDATES_PER_CHANNEL else 2 * CANDIDATES_PER_CHANNEL
            )  # both sides together fill the limit
        with timer("words"):
            lexical, ideal = _search_words(index, terms, scope, depth)
        with timer("vector"):
            vector, problem = _embed_query(engine, query, scope, deadline)
            if problem and engine.alone is not None:
                engine = replace(engine, calibration=engine.alone)
        with timer("nearest"):
            candidate_query = _CandidateQuery(terms, vector, scope, depth)
            candidates = _find_candidates(index, candidate_query, lexical, ideal)
        with timer("fuse"):
            needed = _count_candidates(engine, query, limit)
            whys, stored = _fuse(engine, candidates, needed)
        with timer("echoes"):
            echoes = _separate_echoes(engine, text, candidate_query, candidates, (whys, stored))
            if echoes is not None:
                candidates = echoes.rest
                whys, stored = _fuse(engine, candidates, needed)
            references_by_path = reference_boosts(index, stored, scope)
            whys = {id_: _apply_boosts(whys[id_], stored[id_], query, references_by_path) for id_ in stored}
        channels = ["lexical", *(["vector"] if vector else [])]
        with timer("rerank"):
            whys, rerank_problem = _rerank(engine, query, whys, stored, deadline)
        if any(why.rerank is not None for why in whys.values()):
            channels.append("rerank")
        evidence = gather_evidence(candidates, whys)
        selected = _select_best(whys, stored, limit)
        with timer("links"):
            expanded = _expand_links(engine, candidate_query, selected, (whys, stored), evidence)
            if expanded:
                whys, stored = {**whys, **expanded}, {**stored, **index.read_chunks(expanded.keys())}
                selected = _select_best(whys, stored, limit)
    with timer("explain"):
        if echoes is not None:
            repeated = _select_echoes(engine, echoes, whys, limit)
            evidence = evidence if selected else gather_evidence(echoes.among, whys)
            selected = [*selected[:1], *repeated, *selected[1:]][:limit]
            whys, stored = {**whys, **repeated}, {**stored, **echoes.echoes}
        hits = tuple(
            make_hits(
                index, engine.calibration, selected, stored, whys, evidence, terms if snippets else None
            )
        )
    return Found(
        hits=hits,
        channels=tuple(channels),
        degraded=tuple(filter(None, (problem, rerank_problem))),
        trace={
            **_make_trace(query, engine, candidates, scope, evidence, timer),
            "echoes": len(echoes.echoes) if echoes is not None else 0,
            "linked": len(expanded),
        },
    )


def _count_candidates(engine: Engine, query: Query, limit: int) -> int:
    """How many candidates may still rise into the first `limit`, by a boost or by reranking."""
    is_reordered = query.days is not None or bool(query.names)
    if engine.reranker is not None:
        return max(limit, MAX_RERANKED) * 2
    return limit * 4 if is_reordered else limit


class _StepTimer:
    """How long each step took, in milliseconds."""

    def __init__(self) -> None:
        self.steps: dict[str, float] = {}

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.steps[step] = round((time.perf_counter() - started) * 1000, 3)


# Words


def _search_words(index: Index, terms: Sequence[str], scope: Scope, depth: int) -> tuple[list[Scored], float]:
    """The lexical ranking, and the score that no chunk can exceed."""
    shares = {term: index.words.frequency(term, scope) for term in terms}
    present = [term for term in terms if shares[term] > 0]
    selective = [term for term in present if shares[term] <= MAX_TERM_FREQUENCY] or present
    counted = [*selective, *(term for term in terms if not shares[term])]
    ideal = sum(_rarity(shares[term]) for term in counted) * BM25_CEILING
    return (index.words.search(selective, scope, depth) if selective else []), ideal


def _rarity(share: float) -> float:
    """Inverse document frequency. A word that the home does not contain counts as one of the rarest."""
    return max(0.1, log((1 - share + 1e-4) / (share + 1e-4)))


# Candidates


def _find_candidates(
    index: Index, query: _CandidateQuery, lexical: Sequence[Scored], ideal: float
) -> Candidates:
    vector = query.vector
    nearest = index.vectors.nearest(vector, query.scope, query.depth) if vector else []
    cosines = {hit.id: hit.score for hit in nearest}
    if vector:
        cosines |= index.vectors.cosines(vector, {hit.id for hit in lexical} - cosines.keys())
    return Candidates(lexical, nearest, cosines, ideal)


def _fuse(engine: Engine, candidates: Candidates, count: int | None) -> _Fused:
    trust = engine.calibration.trust
    whys = fuse(candidates, engine.lexical_weight, engine.vector_weight * trust, count)
    return whys, engine.index.read_chunks(whys.keys())


def _select_best(whys: Mapping[int, Why], stored: Mapping[int, StoredChunk], limit: int) -> list[int]:
    standings = {id_: why.standing for id_, why in whys.items() if id_ in stored}
    places = {id_: (chunk.path, chunk.chunk.first_line) for id_, chunk in stored.items()}
    return order_by_score(standings, places, limit)


# Links


def _expand_links(
    engine: Engine, query: _CandidateQuery, selected: Sequence[int], fused: _Fused, evidence: Evidence
) -> dict[int, Why]:
    """Notes that are linked with the best hits and have no matching word."""
    whys, stored = fused
    if not engine.spreading or not selected:
        return {}
    best = whys[selected[0]].standing
    relevances = {
        id_: relevance_of(engine.calibration, evidence, best - whys[id_].standing) for id_ in selected
    }
    note_seeds = choose_seeds(relevances, stored, whys)
    strong = [whys[id_].standing for id_ in selected if relevances[id_] >= STRONG_RELEVANCE]
    return expand_seeds(
        engine.index,
        note_seeds,
        query.scope,
        query.vector,
        there=rank_scores_by_path(selected, stored, whys) | {seed.path: inf for seed in note_seeds},
        whys=whys,
        weight=engine.spreading,
        apart=engine.calibration.apart,
        ceiling=min(strong, default=None),
    )


# Vectors


def _embed_query(
    engine: Engine, query: Query, scope: Scope, deadline: float | None
) -> tuple[bytes | None, str]:
    if engine.embedder is None or not query.text:
        return None, ""

    def weigh(word: str) -> float:
        """A word that is in many chunks of this home says little about which one is meant."""
        return COMMON_WORD_FREQUENCY / (COMMON_WORD_FREQUENCY + engine.index.words.frequency(word, scope))

    try:
        seconds = None if deadline is None else deadline - time.monotonic()
        return engine.embedder.query(query.text, weigh, seconds), ""
    except EmbedderError as error:
        return None, f"vector: {error}"


# Boosts


def _apply_boosts(
    why: Why, stored: StoredChunk, query: Query, references_by_path: Mapping[str, tuple[str, float]]
) -> Why:
    boosts = tuple(_boosts(stored, query))
    if stored.path in references_by_path and not stored.chunk.turn:
        boosts += (references_by_path[stored.path],)
    if not boosts:
        return why
    score = why.score + sum(size for _, size in boosts)
    return replace(why, score=score, standing=score, boosts=boosts)


def _boosts(stored: StoredChunk, query: Query) -> Iterator[tuple[str, float]]:
    days = query.days
    if days and days.first.isoformat() <= stored.chunk.day <= days.last.isoformat():
        yield f"day: {days.text}", DAY_BOOST
    for name in query.names:
        if stored.category in ("person", "project") and name.casefold() in _searchable_name(stored):
            yield f"name: {name}", NAME_BOOST
            return


def _searchable_name(stored: StoredChunk) -> str:
    return f"{stored.title} {stored.path.replace('-', ' ').replace('_', ' ')}".casefold()


# Reading


def _rerank(
    engine: Engine,
    query: Query,
    whys: Mapping[int, Why],
    stored: Mapping[int, StoredChunk],
    deadline: float | None,
) -> tuple[dict[int, Why], str]:
    if engine.reranker is None or not whys:
        return dict(whys), ""
    best_ids = top_with_ties({id_: why.score for id_, why in whys.items()}, MAX_RERANKED)
    logits = _cross_encode(engine, engine.reranker, query, best_ids, stored, deadline)
    if len(logits) < min(MIN_RERANKED, len(best_ids)):
        return dict(whys), "rerank: no time to read the best passages"
    standings = blend(whys, logits, RERANK_SHARE)
    floor = min(standings.values())  # unread chunks stay below those that were read
    unread = {
        id_: replace(why, standing=floor - 1 - rank)
        for rank, (id_, why) in enumerate(_unread_by_score(whys, logits))
    }
    reranked = {id_: replace(whys[id_], rerank=logits[id_], standing=standings[id_]) for id_ in logits}
    warning = f"rerank: time for {len(reranked)} passages only" if len(reranked) < len(best_ids) else ""
    return {**unread, **reranked}, warning


def _unread_by_score(whys: Mapping[int, Why], reranked: Collection[int]) -> list[tuple[int, Why]]:
    others = [(id_, why) for id_, why in whys.items() if id_ not in reranked]
    return sorted(others, key=lambda pair: -pair[1].score)


def _cross_encode(
    engine: Engine,
    reranker: Reranker,
    query: Query,
    ids: Sequence[int],
    stored: Mapping[int, StoredChunk],
    deadline: float | None,
) -> dict[int, float]:
    """The cross-encoder's score for each chunk, as the mean of the chunk alone and with the turns around
    it: often only both together answer. Leaves out those it had no time for."""
    alone = {id_: _reranker_text(stored[id_]) for id_ in ids}
    in_context = {**alone, **engine.index.windows(ids)}
    texts = list(dict.fromkeys(text for id_ in ids for text in (alone[id_], in_context[id_])))
    score_by_text = dict(zip(texts, reranker.scores(query.text, texts, deadline), strict=True))
    scores = {}
    for id_ in ids:
        score_alone, score_in_context = score_by_text[alone[id_]], score_by_text[in_context[id_]]
        if score_alone is not None and score_in_context is not None:
            scores[id_] = (score_alone + score_in_context) / 2
    return scores


def _reranker_text(stored: StoredChunk) -> str:
    chunk = stored.chunk
    return f"{chunk.speaker}: {chunk.text}" if chunk.speaker else f"{stored.title}: {chunk.text}"


# Echoes
#
# A repeated question (an echo) has every word of the question and the same vector: beside it nothing else
# stands out, and the answer looks far away. So echoes are removed before chunks are compared with each other,
# together with turns of the same files that match only by borrowed words: from the echo next to them, or from
# the title, which is often the first question.


def _separate_echoes(
    engine: Engine, text: object, query: _CandidateQuery, candidates: Candidates, fused: _Fused
) -> SeparatedEchoes | None:
    """All candidates are fetched and checked only if one of the best is a repeated question."""
    whys, stored = fused
    best_ids = sorted(stored, key=lambda id_: -whys[id_].score)[:MAX_CHECKED_FOR_REPEATS]
    turns = [stored[id_].chunk for id_ in best_ids if stored[id_].chunk.turn]
    if not turns or not isinstance(text, str):
        return None
    is_same = match_same_question(text, MIN_SAME_WORDS, MAX_SAME_QUESTION_FACTOR)
    if is_same is None or not any(is_same(turn.text) for turn in turns):
        return None

    def deeper(factor: int) -> Candidates:
        deeper_query = query._replace(depth=query.depth * factor)
        lexical, ideal = _search_words(engine.index, query.terms, query.scope, deeper_query.depth)
        return _find_candidates(engine.index, deeper_query, lexical, ideal)

    return _split_off_echoes(engine.index, candidates, is_same, query.terms, deeper)


def _select_echoes(
    engine: Engine, echoes: SeparatedEchoes, whys: Mapping[int, Why], limit: int
) -> dict[int, Why]:
    """Some repeated questions, ranked no higher than the best of the other hits."""
    calibration = engine.calibration
    relevance = round(relevance_of(calibration, gather_evidence(echoes.among, whys), 0.0), 4)
    scored = fuse(echoes.among, engine.lexical_weight, engine.vector_weight * calibration.trust)
    best_standing = max((why.standing for why in whys.values()), default=None)
    return {
        id_: replace(
            scored[id_],
            standing=scored[id_].score if best_standing is None else best_standing,
            echo=relevance,
        )
        for id_ in _newest_echoes(
            echoes.echoes.items(), MAX_REPEATS if limit >= MIN_HITS_FOR_MORE_REPEATS else 1
        )
    }


def _split_off_echoes(
    index: Index,
    candidates: Candidates,
    is_same: Callable[[str], bool],
    terms: Sequence[str],
    deeper: Callable[[int], Candidates],
) -> SeparatedEchoes:
    """Separate the echoes from the other candidates. If most are echoes, `deeper` fetches that many times
    more."""
    split = _separate(index, candidates, is_same, terms)
    remaining = {hit.id for hit in (*split.rest.lexical, *split.rest.nearest)}
    if 2 * len(remaining) < len({hit.id for hit in (*candidates.lexical, *candidates.nearest)}):
        return _separate(index, deeper(REPEATS_DEPTH_FACTOR), is_same, terms)
    return split


def _separate(
    index: Index, candidates: Candidates, is_same: Callable[[str], bool], terms: Sequence[str]
) -> SeparatedEchoes:
    stored = index.read_chunks({hit.id for hit in (*candidates.lexical, *candidates.nearest)})
    echoes = {id_: hit for id_, hit in stored.items() if hit.chunk.turn and is_same(hit.chunk.text)}
    files = {hit.path for hit in echoes.values()}
    same_file = [
        stored[hit.id] for hit in candidates.lexical if hit.id in stored and stored[hit.id].path in files
    ]
    borrowed = {
        hit.id
        for hit in same_file
        if hit.chunk.turn and hit.id not in echoes and not index.words.matches(terms, hit.chunk.text)
    }
    return SeparatedEchoes(echoes, candidates, _without_echoes(candidates, echoes, borrowed))


def _without_echoes(candidates: Candidates, echoes: Collection[int], borrowed: Collection[int]) -> Candidates:
    return Candidates(
        [hit for hit in candidates.lexical if hit.id not in echoes and hit.id not in borrowed],
        [hit for hit in candidates.nearest if hit.id not in echoes],
        {id_: cosine for id_, cosine in candidates.cosines.items() if id_ not in echoes},
        candidates.ideal,
    )


def _newest_echoes(echoes: Iterable[tuple[int, StoredChunk]], most: int) -> list[int]:
    def sort_key(echo: tuple[int, StoredChunk]) -> tuple[str, str, int]:
        _, stored = echo
        return (stored.chunk.day, stored.path, stored.chunk.turn)

    return [id_ for id_, _ in sorted(echoes, key=sort_key, reverse=True)[:most]]


def _make_trace(
    query: Query, engine: Engine, candidates: Candidates, scope: Scope, evidence: Evidence, timer: _StepTimer
) -> dict[str, object]:
    return {
        "terms": [term.text for term in query.terms],
        "days": query.days and [str(query.days.first), str(query.days.last), query.days.text],
        "names": list(query.names),
        "scope": scope,
        "embedder": engine.embedder.name if engine.embedder else "",
        "weights": [engine.lexical_weight, engine.vector_weight * engine.calibration.trust],
        "candidates": {"lexical": len(candidates.lexical), "vector": len(candidates.nearest)},
        "evidence": evidence._asdict(),
        "milliseconds": timer.steps,
    }

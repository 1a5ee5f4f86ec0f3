"""One question to one index.

    understand   words, days and names in the question                     (tacit.text.query)
    words        the best passages by BM25, scope applied inside
    vector       the question's vector, within the time there is; then the nearest passages
    fuse         both rankings on one footing, boosts for named days, people and projects
    echoes       turns that ask the same are set apart: they are nearer than any answer  (tacit.search.echoes)
    rerank       a cross-encoder reads the best few, if there is one and time for it
    links        notes that are linked with the best hits come in behind them          (tacit.search.links)
    explain      relevance, snippet and reasons for the hits that are returned

Whatever fails on the way makes the answer poorer and is named in it; words always answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf, log
from typing import NamedTuple, TypeAlias

from tacit.embed.protocol import Embedder, EmbedderError
from tacit.index.protocol import Index, Stored
from tacit.model.search import EVERYTHING, Found, Hit, Scope, Scored, Why
from tacit.search.calibration import Calibration
from tacit.search.echoes import KEPT, Apart, apart, newest
from tacit.search.fusion import DEPTH, Candidates, best, blend, fuse, top
from tacit.search.links import STRONG, found_already, references, seeds, spread
from tacit.search.parts import Reranker
from tacit.search.snippet import snippet
from tacit.text.asking import asking_same
from tacit.text.query import Query, understand

_RERANKED = 50
_READ_AT_LEAST = 5  # the order of fewer is not worth changing
_RERANK_SHARE = 0.8
_CROWDED = 0.25  # a term in more passages than this says little and costs most of the time
_NAMED_DAY = 0.5  # boosts, in the units of the fused score
_NAMED_NAME = 0.3
_ECHOES_AMONG = 5  # of the best: an echo is one of them
_MANY = 30  # hits among which more than one echo may stand
_COMMON = 0.2  # share of passages at which a word of the question counts half in its vector

_Fused: TypeAlias = tuple[dict[int, Why], dict[int, Stored]]


class _Asked(NamedTuple):
    """What candidates are looked for with."""

    terms: Sequence[str]
    vector: bytes | None
    scope: Scope
    depth: int


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts that answer, chosen by the app. Without an embedder words answer alone."""

    index: Index
    embedder: Embedder | None
    calibration: Calibration
    reranker: Reranker | None = None
    lexical_weight: float = 0.4
    vector_weight: float = 0.6
    alone: Calibration | None = None  # for when the embedder does not answer and words do alone
    spreading: float = 0.0  # share of a hit's relevance for notes that are linked with it


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
    """The best passages for a question. `deadline` is a monotonic time; None: take what it needs. Without
    `snippets` hits have neither those nor the words that matched: who takes many looks at few."""
    clock = _Clock()
    index = engine.index
    with index.unmoving():
        with clock("understand"):
            question = understand(text, now, index.names(scope))
            terms = [term.text for term in question.terms]
            depth = DEPTH if limit <= 2 * DEPTH else 2 * DEPTH  # both sides together fill the limit
        with clock("words"):
            lexical, ideal = _by_words(index, terms, scope, depth)
        with clock("vector"):
            vector, trouble = _vector(engine, question, scope, deadline)
            if trouble and engine.alone is not None:
                engine = replace(engine, calibration=engine.alone)
        with clock("nearest"):
            asked = _Asked(terms, vector, scope, depth)
            found = _candidates(index, asked, lexical, ideal)
        with clock("fuse"):
            looked_at = _looked_at(engine, question, limit)
            whys, stored = _fused(engine, found, looked_at)
        with clock("echoes"):
            echoes = _echoes(engine, text, asked, found, (whys, stored))
            if echoes is not None:
                found = echoes.rest
                whys, stored = _fused(engine, found, looked_at)
            pointed = references(index, stored, scope)
            whys = {one: _boosted(whys[one], stored[one], question, pointed) for one in stored}
        channels = ["lexical", *(["vector"] if vector else [])]
        with clock("rerank"):
            whys, trouble_reading = _reranked(engine, question, whys, stored, deadline)
        if any(why.rerank is not None for why in whys.values()):
            channels.append("rerank")
        evidence = _evidence(found, whys)
        chosen = _chosen(whys, stored, limit)
        with clock("links"):
            linked = _linked(engine, asked, chosen, (whys, stored), evidence)
            if linked:
                whys, stored = {**whys, **linked}, {**stored, **index.stored(linked.keys())}
                chosen = _chosen(whys, stored, limit)
    with clock("explain"):
        if echoes is not None:
            asked_before = _returned(engine, echoes, whys, limit)
            evidence = evidence if chosen else _evidence(echoes.among, whys)
            chosen = [*chosen[:1], *asked_before, *chosen[1:]][:limit]
            whys, stored = {**whys, **asked_before}, {**stored, **echoes.echoes}
        hits = list(_hits(engine, chosen, stored, whys, evidence, terms if snippets else None))
    return Found(
        hits=tuple(hits),
        channels=tuple(channels),
        degraded=tuple(filter(None, (trouble, trouble_reading))),
        trace={
            **_trace(question, engine, found, scope, evidence, clock),
            "echoes": len(echoes.echoes) if echoes is not None else 0,
            "linked": len(linked),
        },
    )


def _looked_at(engine: Engine, question: Query, limit: int) -> int:
    """How many of the candidates may still come among the first: a boost or a reading moves them."""
    moved = question.days is not None or bool(question.names)
    if engine.reranker is not None:
        return max(limit, _RERANKED) * 2
    return limit * 4 if moved else limit


class _Clock:
    """How long each step took, in milliseconds."""

    def __init__(self) -> None:
        self.steps: dict[str, float] = {}

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.steps[step] = round((time.perf_counter() - began) * 1000, 3)


# Words


def _by_words(index: Index, terms: Sequence[str], scope: Scope, depth: int) -> tuple[list[Scored], float]:
    """The ranking by words, and the score that no passage can exceed."""
    shares = {term: index.frequency(term, scope) for term in terms}
    present = [term for term in terms if shares[term] > 0]
    telling = [term for term in present if shares[term] <= _CROWDED] or present
    sought = [*telling, *(term for term in terms if not shares[term])]
    ideal = sum(_rarity(shares[term]) for term in sought) * 2.2  # 1 + k1 of FTS5's BM25
    return (index.lexical(telling, scope, depth) if telling else []), ideal


def _rarity(share: float) -> float:
    """Inverse document frequency. A word that is nowhere in the home counts as one of the rarest."""
    return max(0.1, log((1 - share + 1e-4) / (share + 1e-4)))


# Candidates


def _candidates(index: Index, asked: _Asked, lexical: Sequence[Scored], ideal: float) -> Candidates:
    vector = asked.vector
    nearest = index.nearest(vector, asked.scope, asked.depth) if vector else []
    cosines = {one.id: one.score for one in nearest}
    if vector:
        cosines |= index.cosines(vector, {one.id for one in lexical} - cosines.keys())
    return Candidates(lexical, nearest, cosines, ideal)


def _fused(engine: Engine, found: Candidates, count: int | None) -> _Fused:
    trust = engine.calibration.trust
    whys = fuse(found, engine.lexical_weight, engine.vector_weight * trust, count)
    return whys, engine.index.stored(whys.keys())


def _chosen(whys: Mapping[int, Why], stored: Mapping[int, Stored], limit: int) -> list[int]:
    standings = {one: why.standing for one, why in whys.items() if one in stored}
    places = {one: (kept.path, kept.passage.first_line) for one, kept in stored.items()}
    return best(standings, places, limit)


# Links


def _linked(
    engine: Engine, asked: _Asked, chosen: Sequence[int], fused: _Fused, evidence: Evidence
) -> dict[int, Why]:
    """Notes that are linked with the best hits and that no word found."""
    whys, stored = fused
    if not engine.spreading or not chosen:
        return {}
    relevances = {one: _relevance(engine, evidence, whys, chosen, one) for one in chosen}
    found = seeds(relevances, stored, whys)
    strong = [whys[one].standing for one in chosen if relevances[one] >= STRONG]
    return spread(
        engine.index,
        found,
        asked.scope,
        asked.vector,
        there=found_already(chosen, stored, whys) | {seed.path: inf for seed in found},
        whys=whys,
        weight=engine.spreading,
        apart=engine.calibration.apart,
        ceiling=min(strong, default=None),
    )


# Echoes


def _echoes(engine: Engine, text: object, asked: _Asked, found: Candidates, fused: _Fused) -> Apart | None:
    """Only where one of the best is an echo are all candidates looked at: else nothing is fetched."""
    whys, stored = fused
    first = sorted(stored, key=lambda one: -whys[one].score)[:_ECHOES_AMONG]
    turns = [stored[one].passage for one in first if stored[one].passage.turn]
    is_same = asking_same(text) if turns and isinstance(text, str) else None
    if is_same is None or not any(is_same(turn.text) for turn in turns):
        return None

    def deeper(times: int) -> Candidates:
        further = asked._replace(depth=asked.depth * times)
        lexical, ideal = _by_words(engine.index, asked.terms, asked.scope, further.depth)
        return _candidates(engine.index, further, lexical, ideal)

    return apart(engine.index, found, is_same, asked.terms, deeper)


def _returned(engine: Engine, echoes: Apart, whys: Mapping[int, Why], limit: int) -> dict[int, Why]:
    """Some echoes, to stand beside the best of the rest and not above."""
    calibration = engine.calibration
    evidence = _evidence(echoes.among, whys)
    meaning = calibration.meaning_of(evidence.cosine)
    relevance = round(calibration.relevance(evidence.words, meaning, evidence.reading, 0.0), 4)
    among = fuse(echoes.among, engine.lexical_weight, engine.vector_weight * calibration.trust)
    first = max((why.standing for why in whys.values()), default=None)
    return {
        one: replace(among[one], standing=among[one].score if first is None else first, echo=relevance)
        for one in newest(echoes.echoes.items(), KEPT if limit >= _MANY else 1)
    }


# Vectors


def _vector(
    engine: Engine, question: Query, scope: Scope, deadline: float | None
) -> tuple[bytes | None, str]:
    if engine.embedder is None or not question.text:
        return None, ""
    weigh = _weigher(engine.index, scope)
    try:
        seconds = None if deadline is None else deadline - time.monotonic()
        return engine.embedder.query(question.text, weigh, seconds), ""
    except EmbedderError as error:
        return None, f"vector: {error}"


def _weigher(index: Index, scope: Scope) -> Callable[[str], float]:
    """A word that stands in many passages of this home says little about which one is meant."""

    def weigh(word: str) -> float:
        return _COMMON / (_COMMON + index.frequency(word, scope))

    return weigh


# Boosts


def _boosted(why: Why, stored: Stored, question: Query, pointed: Mapping[str, tuple[str, float]]) -> Why:
    boosts = tuple(_boosts(stored, question))
    if stored.path in pointed and not stored.passage.turn:
        boosts += (pointed[stored.path],)
    if not boosts:
        return why
    score = why.score + sum(size for _, size in boosts)
    return replace(why, score=score, standing=score, boosts=boosts)


def _boosts(stored: Stored, question: Query) -> Iterator[tuple[str, float]]:
    days = question.days
    if days and days.first.isoformat() <= stored.passage.day <= days.last.isoformat():
        yield f"day: {days.text}", _NAMED_DAY
    for name in question.names:
        if stored.category in ("person", "project") and name.casefold() in _called(stored):
            yield f"name: {name}", _NAMED_NAME
            return


def _called(stored: Stored) -> str:
    return f"{stored.title} {stored.path.replace('-', ' ').replace('_', ' ')}".casefold()


# Reading


def _reranked(
    engine: Engine,
    question: Query,
    whys: Mapping[int, Why],
    stored: Mapping[int, Stored],
    deadline: float | None,
) -> tuple[dict[int, Why], str]:
    if engine.reranker is None or not whys:
        return dict(whys), ""
    best_few = top({one: why.score for one, why in whys.items()}, _RERANKED)
    logits = _read(engine, engine.reranker, question, best_few, stored, deadline)
    if len(logits) < min(_READ_AT_LEAST, len(best_few)):
        return dict(whys), "rerank: no time to read the best passages"
    standings = blend(whys, logits, _RERANK_SHARE)
    floor = min(standings.values())  # what was not read stays below what was
    unread = {
        one: replace(why, standing=floor - 1 - rank) for rank, (one, why) in enumerate(_rest(whys, logits))
    }
    read = {one: replace(whys[one], rerank=logits[one], standing=standings[one]) for one in logits}
    hurried = f"rerank: time for {len(read)} passages only" if len(read) < len(best_few) else ""
    return {**unread, **read}, hurried


def _rest(whys: Mapping[int, Why], read: Collection[int]) -> list[tuple[int, Why]]:
    others = [(one, why) for one, why in whys.items() if one not in read]
    return sorted(others, key=lambda pair: -pair[1].score)


def _read(
    engine: Engine,
    reranker: Reranker,
    question: Query,
    ids: Sequence[int],
    stored: Mapping[int, Stored],
    deadline: float | None,
) -> dict[int, float]:
    """What a cross-encoder makes of each passage, alone and among the turns around it: often only both
    together answer. Those it had no time for are left out."""
    alone = {one: _readable(stored[one]) for one in ids}
    among = {**alone, **engine.index.windows(ids)}
    texts = list(dict.fromkeys(text for one in ids for text in (alone[one], among[one])))
    read = dict(zip(texts, reranker.scores(question.text, texts, deadline), strict=True))
    found = {}
    for one in ids:
        mine, ours = read[alone[one]], read[among[one]]
        if mine is not None and ours is not None:
            found[one] = (mine + ours) / 2
    return found


def _readable(stored: Stored) -> str:
    passage = stored.passage
    return f"{passage.speaker}: {passage.text}" if passage.speaker else f"{stored.title}: {passage.text}"


# Explaining


def _hits(
    engine: Engine,
    chosen: Sequence[int],
    stored: Mapping[int, Stored],
    whys: Mapping[int, Why],
    evidence: Evidence,
    terms: Sequence[str] | None,
) -> Iterator[Hit]:
    for one in chosen:
        relevance = _relevance(engine, evidence, whys, chosen, one)
        if whys[one].linked:
            relevance = min(relevance, STRONG - 0.001)
        yield _hit(engine.index, stored[one], whys[one], relevance, terms)


def _relevance(
    engine: Engine, evidence: Evidence, whys: Mapping[int, Why], chosen: Sequence[int], one: int
) -> float:
    calibration = engine.calibration
    below = whys[chosen[0]].standing - whys[one].standing
    meaning = calibration.meaning_of(evidence.cosine)
    return calibration.relevance(evidence.words, meaning, evidence.reading, below)


class Evidence(NamedTuple):
    """How well anything in the home matches a question: the same for all its hits."""

    words: float  # the best BM25 as a share of the best possible
    cosine: float | None
    reading: float  # the best of the cross-encoder's scores


def _evidence(found: Candidates, whys: Mapping[int, Why]) -> Evidence:
    words = max((one.score for one in found.lexical), default=0.0)
    readings = [why.rerank for why in whys.values() if why.rerank is not None]
    return Evidence(
        words / found.ideal if found.ideal else 0.0,
        max(found.cosines.values(), default=None),
        max(readings, default=0.0),
    )


def _hit(index: Index, stored: Stored, why: Why, relevance: float, terms: Sequence[str] | None) -> Hit:
    """`terms`: None for a hit that is not explained."""
    passage = stored.passage
    shown = ""
    if terms is not None:
        matches = index.matched(terms, passage.text)
        shown = snippet(passage.text, matches)
        why = replace(why, words=tuple(dict.fromkeys(term for *_, term in matches)))
    return Hit(
        path=stored.path,
        text=passage.text,
        snippet=shown,
        score=round(relevance, 4),
        category=stored.category,
        lines=(passage.first_line, passage.last_line),
        day=passage.day,
        speaker=passage.speaker,
        turn=passage.turn,
        title=stored.title,
        section=passage.section,
        audience=stored.audience,
        archived=stored.archived,
        why=why,
    )


def _trace(
    question: Query, engine: Engine, found: Candidates, scope: Scope, evidence: Evidence, clock: _Clock
) -> dict[str, object]:
    return {
        "terms": [term.text for term in question.terms],
        "days": question.days and [str(question.days.first), str(question.days.last), question.days.text],
        "names": list(question.names),
        "scope": scope,
        "embedder": engine.embedder.name if engine.embedder else "",
        "weights": [engine.lexical_weight, engine.vector_weight * engine.calibration.trust],
        "candidates": {"lexical": len(found.lexical), "vector": len(found.nearest)},
        "evidence": evidence._asdict(),
        "milliseconds": clock.steps,
    }

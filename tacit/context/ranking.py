"""Decides which chunks go into a prompt, and in which order they are tried.

The gate applies to the question: if even the best chunk scores below it, nothing is returned. Otherwise
chunks are tried in the order of their value, which is their rank score and a few adjustments:

    a question among the hits lifts the turn after it, which may answer it; so does an earlier occurrence of
    the message itself, which is not returned
    the words of a person whom the question names, or means by "I" and "you", count more
    so do chunks of a file with a hit that stands out
    recent notes of the kinds that grow old count more, but only among near equals
    personal notes count less for a technical question
    a chunk that is only linked from a hit supports nothing and ranks below every strong hit

Dropping each chunk by its own score would lose a quarter of all evidence: of two turns that answer together,
the second often scores low. docs/context.md has the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from heapq import nsmallest
from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

from tacit.context.model import Block, Dropped, drop_block
from tacit.home.categories import Category
from tacit.markdown.strip import strip_comments
from tacit.search.index import MAX_NEIGHBOURS, ChunkLocation, StoredChunk
from tacit.search.model import Hit
from tacit.search.query import is_asked_about, parse_speaker_roles
from tacit.search.weights import (
    ANSWER_SHARE,
    EARLIER_ANSWER_PENALTY,
    FILE_SHARE,
    HALF_LIFE_FACTORS,
    MAX_ANSWER_LIFT,
    MAX_PAIR_CHARS,
    MIN_DUPLICATE_OVERLAP,
    RECENCY_BONUS,
    SPEAKER_BONUS,
    TECHNICAL_PENALTY,
)
from tacit.text.sentences import QUESTION_MARKS

_EPSILON = 1e-6

_PERSONAL_CATEGORIES: tuple[Category, ...] = ("person", "journal", "memory")
_MAX_COMPARED_WORDS = 500  # of a chunk
_FOLLOWS_REASON = "it follows a question that was found"
MAX_HITS_WITH_NEIGHBOURS = 60  # hits whose neighbouring turns are loaded


class ChunkKey(NamedTuple):
    """A turn of a transcript, or a chunk of a note."""

    path: str
    place: int


@dataclass(frozen=True, slots=True)
class RankingRules:
    question: str
    gate: float
    strong: float
    half_life: float  # days, of the journal
    today: date
    technical: bool = False


@dataclass(frozen=True, slots=True)
class RankedBlocks:
    blocks: tuple[Block, ...]  # best first
    dropped: tuple[Dropped, ...]
    band: str  # strong | weak | none


def rank(
    hits: Sequence[Hit],
    rules: RankingRules,
    *,
    near: Mapping[ChunkLocation, Sequence[StoredChunk]],
    injected: Collection[str] = (),
    exclusion_of: Callable[[Hit], str] = lambda hit: "",
) -> RankedBlocks:
    """`near`: for hits in transcripts, all chunks of the turn and of the next. `injected`: digests of chunks
    that this session has already. `exclusion_of`: the reason why a hit may not be used, or empty."""
    reasons = [exclusion_of(hit) for hit in hits]
    dropped = [
        _drop_hit(hit, "excluded", reason) for hit, reason in zip(hits, reasons, strict=True) if reason
    ]
    usable, (band, code, reason) = _judge(
        [hit for hit, reason in zip(hits, reasons, strict=True) if not reason], rules
    )
    if band == "none":
        return RankedBlocks((), (*dropped, *(_drop_hit(hit, code, reason) for hit in usable)), band)
    turns, followers = _group_by_turn(near), list(_find_followers(usable, near))
    values = _compute_values(usable, rules, turns, followers)
    for hit in usable:
        # A longer turn that contains the message may say more.
        if hit.why.echo is not None and len(turns.get(chunk_key(hit), ())) <= 1:
            values.pop(chunk_key(hit), None)
            dropped.append(_drop_hit(hit, "echo", "it asks the same and says nothing besides"))
    units = _build_blocks(usable, values, turns, followers)
    ordered = sorted(units, key=lambda unit: (-unit.value, unit.path, unit.place))
    blocks = tuple(_drop_duplicates(ordered, injected, dropped))
    if injected and not any((block.score or 0.0) >= rules.gate for block in blocks):
        # The session has the hits that passed already, and the rest alone is too weak.
        dropped += [drop_block(block, "gate", f"nothing new reaches {rules.gate:g}") for block in blocks]
        return RankedBlocks((), tuple(dropped), "none")
    return RankedBlocks(blocks, tuple(dropped), band)


def _judge(hits: Sequence[Hit], rules: RankingRules) -> tuple[list[Hit], tuple[str, str, str]]:
    """The hits to rank and the confidence band. Repeated questions count only if there is nothing else: their
    answers are worth having then."""
    others = [hit for hit in hits if hit.why.echo is None]
    verdict = _find_band([hit for hit in others if not hit.why.linked], rules)
    if verdict[0] != "none" or len(others) == len(hits):
        return list(hits), verdict
    repeats = [
        # As if it were the only hit, so that the earlier answer comes first.
        replace(
            hit,
            score=hit.why.echo,
            why=replace(hit.why, standing=hit.why.standing + EARLIER_ANSWER_PENALTY),
        )
        for hit in hits
        if hit.why.echo is not None
    ]
    return [*repeats, *others], _find_band(repeats, rules)


def _find_band(hits: Sequence[Hit], rules: RankingRules) -> tuple[str, str, str]:
    """The confidence band of the question, and a code and a reason if nothing is returned."""
    passing = [hit for hit in hits if hit.score >= rules.gate]
    if not passing:
        return "none", "gate", f"even the best passage is below {rules.gate:g}"
    if max(hit.score for hit in passing) >= rules.strong:
        return "strong", "", ""
    why = passing[0].why
    if len(passing) > 1 or (why.lexical_rank is not None and why.vector_rank is not None):
        return "weak", "", ""
    side = "words" if hits[0].why.bm25 is not None else "meaning"
    return "none", "weak", f"only one passage reaches {rules.gate:g}, for its {side} alone"


# ---------------------------------------------------------------- values


def chunk_key(hit: Hit) -> ChunkKey:
    return ChunkKey(hit.path, hit.turn or -hit.lines[0])


class _Follower(NamedTuple):
    """The turn after a question among the hits, which may answer it."""

    key: ChunkKey
    score: float  # of the question
    lift: float = 0.0  # added to its value
    min_value: float | None = None  # if the question is an earlier occurrence of the message


def _find_followers(
    hits: Iterable[Hit], near: Mapping[ChunkLocation, Sequence[StoredChunk]]
) -> Iterator[_Follower]:
    for hit in hits:
        following = [
            stored for stored in near.get((hit.path, hit.lines[0]), ()) if stored.chunk.turn > hit.turn
        ]
        if not following:
            continue
        key, value = ChunkKey(hit.path, following[0].chunk.turn), hit.why.standing
        chars = len(hit.text) + sum(len(stored.chunk.text) for stored in following)
        is_question = hit.turn and any(sign in hit.text for sign in QUESTION_MARKS)
        if hit.why.echo is not None:
            # It is the answer, however long, but may say nothing: so it ranks below the best and close to it.
            yield _Follower(key, hit.score, min_value=value - EARLIER_ANSWER_PENALTY)
        elif is_question and value > 0 and chars <= MAX_PAIR_CHARS:
            yield _Follower(key, hit.score, lift=ANSWER_SHARE * min(MAX_ANSWER_LIFT, value))


def _compute_values(
    hits: Sequence[Hit],
    rules: RankingRules,
    turns: Mapping[ChunkKey, Sequence[StoredChunk]],
    followers: Iterable[_Follower],
) -> dict[ChunkKey, float]:
    values: dict[ChunkKey, float] = {}
    best: dict[str, float] = {}
    for hit in hits:
        values[chunk_key(hit)] = max(values.get(chunk_key(hit), hit.why.standing), hit.why.standing)
        best[hit.path] = max(best.get(hit.path, hit.why.standing), hit.why.standing)
    lowest = min(values.values())
    for follower in followers:
        if follower.min_value is None:
            values[follower.key] = values.get(follower.key, lowest) + follower.lift
    for follower in followers:
        if follower.min_value is not None:
            values[follower.key] = max(values.get(follower.key, lowest), follower.min_value)
    roles, words = parse_speaker_roles(rules.question)
    speakers = {key: pieces[0].chunk.speaker for key, pieces in turns.items()}
    speakers |= {chunk_key(hit): hit.speaker for hit in hits if hit.turn}
    for key in values.keys() & speakers.keys():
        if is_asked_about(speakers[key], roles, words):
            values[key] += SPEAKER_BONUS
    nudges = {chunk_key(hit): _compute_nudge(hit, rules) for hit in hits}
    values = {
        key: value + FILE_SHARE * best[key.path] + nudges.get(key, 0.0) for key, value in values.items()
    }
    return _limit_linked_chunks(values, hits, rules)


def _limit_linked_chunks(
    values: Mapping[ChunkKey, float], hits: Iterable[Hit], rules: RankingRules
) -> dict[ChunkKey, float]:
    """Rank chunks that are only linked from a hit below every strong hit."""
    linked = {chunk_key(hit) for hit in hits if hit.why.linked}
    strong = [values[chunk_key(hit)] for hit in hits if hit.score >= rules.strong and not hit.why.linked]
    limit = min(strong, default=float("inf")) - _EPSILON
    return {key: min(value, limit) if key in linked else value for key, value in values.items()}


def _compute_nudge(hit: Hit, rules: RankingRules) -> float:
    personal = TECHNICAL_PENALTY if rules.technical and hit.category in _PERSONAL_CATEGORIES else 0.0
    return RECENCY_BONUS * _freshness(hit, rules) - personal


def _freshness(hit: Hit, rules: RankingRules) -> float:
    """1 for today, 0 for old notes and for categories that never grow old."""
    half_life = HALF_LIFE_FACTORS.get(hit.category)
    try:
        age = (rules.today - date.fromisoformat(hit.day)).days
    except ValueError:
        return 0.0
    return 0.0 if half_life is None or age < 0 else float(0.5 ** (age / (half_life * rules.half_life)))


# ---------------------------------------------------------------- blocks


def _build_blocks(
    hits: Sequence[Hit],
    values: Mapping[ChunkKey, float],
    turns: Mapping[ChunkKey, Sequence[StoredChunk]],
    followers: Iterable[_Follower],
) -> Iterator[Block]:
    """One block for each turn and each chunk of a note. A long turn is one block, with its chunks among the
    hits as `pieces` to fall back to."""
    pieces: dict[ChunkKey, list[Block]] = {}
    for hit in hits:
        pieces.setdefault(chunk_key(hit), []).append(_to_block(hit))
    answer_scores = {each.key: each.score for each in followers if each.min_value is None}
    earlier_scores = {each.key: each.score for each in followers if each.min_value is not None}
    for key, value in values.items():
        blocks = pieces.get(key, [])
        if key in earlier_scores:
            # An answer to an earlier occurrence of the question scores at least as high as the question.
            score = earlier_scores[key]
            blocks = [
                replace(block, score=max(block.score or 0.0, score), reason=_FOLLOWS_REASON)
                for block in blocks
            ]
        whole = turns.get(key)
        if whole is not None and len(whole) > len(blocks) and _is_complete(whole, blocks):
            joined = _join_turn(whole, blocks, earlier_scores.get(key, answer_scores.get(key)))
            yield replace(joined, value=value, pieces=tuple(blocks))
        else:
            yield from (replace(block, value=value) for block in blocks)


def _is_complete(pieces: Sequence[StoredChunk], blocks: Sequence[Block]) -> bool:
    """Whether the pieces contain all found chunks and have no gap: of a very long turn on one line the index
    returns only both ends, and a found chunk may lie between them."""
    if len(pieces) > MAX_NEIGHBOURS and pieces[-1].id - pieces[0].id >= len(pieces):
        return False
    texts = {stored.chunk.text for stored in pieces}
    return all(block.text in texts for block in blocks)


def _group_by_turn(
    near: Mapping[ChunkLocation, Sequence[StoredChunk]],
) -> dict[ChunkKey, list[StoredChunk]]:
    turns: dict[ChunkKey, dict[int, StoredChunk]] = {}
    for group in near.values():
        for stored in group:
            if stored.chunk.turn:
                turns.setdefault(ChunkKey(stored.path, stored.chunk.turn), {})[stored.id] = stored
    return {key: [pieces[id_] for id_ in sorted(pieces)] for key, pieces in turns.items()}


def _join_turn(pieces: Sequence[StoredChunk], blocks: Sequence[Block], fallback_score: float | None) -> Block:
    first, last = pieces[0].chunk, pieces[-1].chunk
    parts = [first.text]
    for above, below in pairwise(pieces):
        gap = below.chunk.first_line - above.chunk.last_line
        parts += ["\n" * gap if gap > 0 else " ", below.chunk.text]
    text = "".join(parts)
    source = f"{pieces[0].path}:{first.first_line}"
    best = max(blocks, key=lambda block: block.score or 0.0, default=None)
    return Block(
        slot="knowledge",
        label=f"knowledge:{source}",
        source=source,
        text=text,
        reason=best.reason if best else _FOLLOWS_REASON,
        path=pieces[0].path,
        place=first.first_line,
        end=last.last_line,
        turn=first.turn,
        day=first.day,
        speaker=first.speaker,
        score=best.score if best else fallback_score,
        channels=best.channels if best else {},
        digest=short_digest(text),
    )


def _to_block(hit: Hit) -> Block:
    text = hit.text if hit.turn else strip_comments(hit.text)
    return Block(
        slot="knowledge",
        label=f"knowledge:{_source(hit)}",
        source=_source(hit),
        text=text,
        reason=_describe_match(hit),
        path=hit.path,
        place=hit.lines[0],
        end=hit.lines[1],
        turn=hit.turn,
        day=hit.day,
        speaker=hit.speaker,
        score=hit.score,
        channels=channel_scores(hit),
        digest=short_digest(text),
    )


def _drop_duplicates(
    units: Iterable[Block], injected: Collection[str], dropped: list[Dropped]
) -> Iterator[Block]:
    """Yield one block of each group of duplicates, and none that the session has already."""
    seen: dict[int, list[frozenset[str]]] = {}
    for block in units:
        words = _sample_words(block.text)
        signature = _signature(words)
        if not words:
            dropped.append(drop_block(block, "empty", "nothing is written in it yet"))
        elif block.digest in injected:
            dropped.append(drop_block(block, "repeated", "this session was given it already"))
        elif any(_are_alike(words, other) for sign in signature for other in seen.get(sign, ())):
            dropped.append(drop_block(block, "duplicate", "another passage says the same"))
        else:
            for sign in signature:
                seen.setdefault(sign, []).append(words)
            yield block


def _sample_words(text: str) -> frozenset[str]:
    """The words of a text; of a long one those with the lowest checksums, so that near duplicates give the
    same sample and very long texts are not compared word by word."""
    words = frozenset(text.casefold().split())
    return (
        words
        if len(words) <= _MAX_COMPARED_WORDS
        else frozenset(nsmallest(_MAX_COMPARED_WORDS, words, key=_checksum))
    )


def _checksum(word: str) -> int:
    return crc32(word.encode("utf-8", "surrogatepass"))


def _signature(words: Collection[str]) -> tuple[int, ...]:
    """Two checksums that near duplicates have in common, so that not all pairs must be compared. It misses
    one in a hundred of the pairs that are just similar enough."""
    sums = [_checksum(word) for word in words]
    return (min(sums), max(sums)) if sums else ()


def _are_alike(first: frozenset[str], other: frozenset[str]) -> bool:
    return len(first & other) >= MIN_DUPLICATE_OVERLAP * len(first | other)


def short_digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def channel_scores(hit: Hit) -> dict[str, float]:
    why = hit.why
    scores = {"lexical": why.lexical, "vector": why.vector, **dict(why.boosts)}
    measured = {"bm25": why.bm25, "cosine": why.cosine, "rerank": why.rerank}
    scores |= {name: value for name, value in measured.items() if value is not None}
    return {name: round(value, 4) for name, value in scores.items() if value}


def _describe_match(hit: Hit) -> str:
    why = hit.why
    sides = [
        *(["words"] if why.bm25 is not None else []),
        *(["meaning"] if why.vector_rank else []),
        *(name for name, _ in why.boosts),
    ]
    return " + ".join(sides) or "near to what was asked"


def _source(hit: Hit) -> str:
    return f"{hit.path}:{hit.lines[0]}"


def _drop_hit(hit: Hit, code: str, reason: str) -> Dropped:
    source = _source(hit)
    return Dropped(
        f"knowledge:{source}", "knowledge", source, code, reason, None, hit.score, channel_scores(hit)
    )

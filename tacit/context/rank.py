"""Which passages go into a prompt, and in which order they are tried.

The gate is about the question: if not even the best passage is relevant enough, nothing is given. If it is,
passages are tried in the order of their value, which is their standing in the search and a few nudges:

    a question that was found points to the turn after it, which may answer it; the message itself, asked
    before, does so too and is not given
    the words of whom the question names, or means by "I" and "you", count more
    so do passages of a file in which something stands out
    what is recent, for kinds of notes that grow old: only among near equals
    personal notes beside a technical question count less
    what is only linked with a hit supports nothing, and stands below every hit that is strong by itself

Dropping each passage by its own relevance would lose a quarter of all evidence: the second of two turns that
answer together is often nothing by itself. docs/context.md has the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

from tacit.context.blocks import Block
from tacit.context.meant import is_meant, meant
from tacit.context.plain import without_comments
from tacit.index.protocol import Place, Stored
from tacit.model.context import Dropped
from tacit.model.search import Category, Hit
from tacit.text.asking import SIGNS

# In units of the standing: how far above all candidates of a question a passage stands.
_ANSWER = 0.6  # of the standing of a question, for the turn after it
_MOST_ANSWER = 4.0
_EARLIER = 2.0  # how far below the best an earlier answer to the same question stands at most
_TOGETHER = 600  # characters of a question and its answer; longer ones speak for themselves
_MEANT = 0.6
_FILE = 0.3  # of the best standing in the same file
_RECENT = 0.1
_TECHNICAL = 1.0
_LEAST = 1e-6

_PERSONAL: tuple[Category, ...] = ("person", "journal", "memory")
# Half-lives as multiples of that of the journal. What is not named here never grows old.
_HALF_LIVES: Mapping[Category, float] = {"journal": 1, "conversation": 4, "project": 8}
_SAME = 0.9  # share of words in common from which two passages say the same
_FOLLOWS = "it follows a question that was found"
NEAR = 60  # hits whose neighbours are worth looking up


class Key(NamedTuple):
    """A turn of a transcript, or a passage of a note."""

    path: str
    place: int


@dataclass(frozen=True, slots=True)
class Rules:
    question: str
    gate: float
    strong: float
    half_life: float  # days, of the journal
    today: date
    technical: bool = False


@dataclass(frozen=True, slots=True)
class Ranked:
    blocks: tuple[Block, ...]  # best first
    dropped: tuple[Dropped, ...]
    band: str  # strong | weak | none


def rank(
    hits: Sequence[Hit],
    rules: Rules,
    *,
    near: Mapping[Place, Sequence[Stored]],
    given: Collection[str] = (),
    excluded: Callable[[Hit], str] = lambda hit: "",
) -> Ranked:
    """`near`: of hits that are turns, all pieces of the turn and of the next one. `given`: digests of what
    this session has already. `excluded`: why a hit may not be used, or empty."""
    dropped: list[Dropped] = []
    usable = [hit for hit in hits if not _is_excluded(hit, excluded, dropped)]
    usable, (band, code, reason) = _judged(usable, rules)
    if band == "none":
        return Ranked((), (*dropped, *(_dropped(hit, code, reason) for hit in usable)), band)
    values = _values(usable, rules, near)
    for hit in _echoes(usable, near):
        values.pop(key_of(hit), None)
        dropped.append(_dropped(hit, "echo", "it asks the same and says nothing besides"))
    units = sorted(_units(usable, values, near), key=lambda unit: (-unit.value, unit.path, unit.place))
    blocks = tuple(_distinct(units, given, dropped))
    if given and not any((block.score or 0.0) >= rules.gate for block in blocks):
        # What passed is in the session already: the rest alone is not worth a word.
        dropped += [_left(block, "gate", f"nothing new reaches {rules.gate:g}") for block in blocks]
        return Ranked((), tuple(dropped), "none")
    return Ranked(blocks, tuple(dropped), band)


def _is_excluded(hit: Hit, excluded: Callable[[Hit], str], dropped: list[Dropped]) -> bool:
    reason = excluded(hit)
    if reason:
        dropped.append(_dropped(hit, "excluded", reason))
    return bool(reason)


def _judged(hits: Sequence[Hit], rules: Rules) -> tuple[list[Hit], tuple[str, str, str]]:
    """The band of what else there is. Only where that is nothing it is enough that the same was asked before,
    for the sake of what was answered then."""
    others = [hit for hit in hits if hit.why.echo is None]
    judged = _band([hit for hit in others if not hit.why.linked], rules)
    if judged[0] != "none" or len(others) == len(hits):
        return list(hits), judged
    asked = [_alone(hit, hit.why.echo) for hit in hits if hit.why.echo is not None]
    return [*asked, *others], _band(asked, rules)


def _alone(echo: Hit, relevance: float) -> Hit:
    """As much as if nothing else had been found: what was answered then comes first."""
    return replace(echo, score=relevance, why=replace(echo.why, standing=echo.why.standing + _EARLIER))


def _echoes(hits: Iterable[Hit], near: Mapping[Place, Sequence[Stored]]) -> list[Hit]:
    """Turns that are nothing but the message once more; a longer one of which it is a piece is none."""
    turns = _turns(near)
    return [hit for hit in hits if hit.why.echo is not None and len(turns.get(key_of(hit), ())) <= 1]


def _band(hits: Sequence[Hit], rules: Rules) -> tuple[str, str, str]:
    """The band of the whole question, and why nothing is given where that is so."""
    scores = sorted((hit.score for hit in hits), reverse=True)
    if not scores or scores[0] < rules.gate:
        return "none", "gate", f"even the best passage is below {rules.gate:g}"
    if scores[0] >= rules.strong:
        return "strong", "", ""
    if _is_supported(hits, rules):
        return "weak", "", ""
    return "none", "weak", f"only one passage reaches {rules.gate:g}, for its {_sides(hits[0])} alone"


def _is_supported(hits: Sequence[Hit], rules: Rules) -> bool:
    """Two passages that pass, or one that words and meaning found each for itself."""
    passing = [hit for hit in hits if hit.score >= rules.gate]
    why = passing[0].why
    return len(passing) > 1 or (why.lexical_rank is not None and why.vector_rank is not None)


def _sides(hit: Hit) -> str:
    return "words" if hit.why.bm25 is not None else "meaning"


# ---------------------------------------------------------------- values


def key_of(hit: Hit) -> Key:
    return Key(hit.path, hit.turn or -hit.lines[0])


def _values(
    hits: Sequence[Hit],
    rules: Rules,
    near: Mapping[Place, Sequence[Stored]],
) -> dict[Key, float]:
    values: dict[Key, float] = {}
    best: dict[str, float] = {}
    for hit in hits:
        values[key_of(hit)] = max(values.get(key_of(hit), hit.why.standing), hit.why.standing)
        best[hit.path] = max(best.get(hit.path, hit.why.standing), hit.why.standing)
    lowest = min(values.values())
    for key, lift, _ in _answers(hits, near):
        values[key] = values.get(key, lowest) + lift
    for key, value, _ in _earlier(hits, near):
        values[key] = max(values.get(key, lowest), value)
    roles, words = meant(rules.question)
    for key, speaker in _speakers(hits, near).items():
        if key in values and is_meant(speaker, roles, words):
            values[key] += _MEANT
    nudges = {key_of(hit): _nudge(hit, rules) for hit in hits}
    values = {key: value + _FILE * best[key.path] + nudges.get(key, 0.0) for key, value in values.items()}
    return _below_strong(values, hits, rules)


def _below_strong(values: Mapping[Key, float], hits: Iterable[Hit], rules: Rules) -> dict[Key, float]:
    """What is only linked with a hit comes after every hit that is strong by itself."""
    linked = {key_of(hit) for hit in hits if hit.why.linked}
    strong = [values[key_of(hit)] for hit in hits if hit.score >= rules.strong and not hit.why.linked]
    most = min(strong, default=float("inf")) - _LEAST
    return {key: min(value, most) if key in linked else value for key, value in values.items()}


def _answers(
    hits: Iterable[Hit], near: Mapping[Place, Sequence[Stored]]
) -> Iterator[tuple[Key, float, float]]:
    """Turns after a question that was found, what that is worth to them, and the question's relevance."""
    for hit in hits:
        if hit.why.echo is None and hit.turn and hit.why.standing > 0 and any(s in hit.text for s in SIGNS):
            after = _after(hit, near)
            if after and len(hit.text) + sum(len(one.passage.text) for one in after) <= _TOGETHER:
                key = Key(hit.path, after[0].passage.turn)
                yield key, _ANSWER * min(_MOST_ANSWER, hit.why.standing), hit.score


def _earlier(
    hits: Iterable[Hit], near: Mapping[Place, Sequence[Stored]]
) -> Iterator[tuple[Key, float, float]]:
    """Turns after the message itself, asked before; what they are worth at least, and its relevance. They are
    answers to it, however long, but what they say may be nothing: so below the best and never far from it."""
    for hit in hits:
        if hit.why.echo is not None and (after := _after(hit, near)):
            yield Key(hit.path, after[0].passage.turn), hit.why.standing - _EARLIER, hit.score


def _after(hit: Hit, near: Mapping[Place, Sequence[Stored]]) -> list[Stored]:
    return [stored for stored in near.get(_place(hit), ()) if stored.passage.turn > hit.turn]


def _speakers(hits: Iterable[Hit], near: Mapping[Place, Sequence[Stored]]) -> dict[Key, str]:
    found = {key_of(hit): hit.speaker for hit in hits if hit.turn}
    for some in near.values():
        for stored in some:
            found.setdefault(Key(stored.path, stored.passage.turn), stored.passage.speaker)
    return found


def _nudge(hit: Hit, rules: Rules) -> float:
    personal = _TECHNICAL if rules.technical and hit.category in _PERSONAL else 0.0
    return _RECENT * _freshness(hit, rules) - personal


def _freshness(hit: Hit, rules: Rules) -> float:
    """1 for what is of today, 0 for what is old or never grows old."""
    half_life = _HALF_LIVES.get(hit.category)
    try:
        age = (rules.today - date.fromisoformat(hit.day)).days
    except ValueError:
        return 0.0
    return 0.0 if half_life is None or age < 0 else float(0.5 ** (age / (half_life * rules.half_life)))


# ---------------------------------------------------------------- blocks


def _units(
    hits: Sequence[Hit], values: Mapping[Key, float], near: Mapping[Place, Sequence[Stored]]
) -> Iterator[Block]:
    """One for each turn and each passage of a note. A long turn is whole, with the pieces that were found as
    what to fall back to."""
    pieces: dict[Key, list[Block]] = {}
    for hit in hits:
        pieces.setdefault(key_of(hit), []).append(_block(hit))
    turns = _turns(near)
    asked = {key: score for key, _, score in _answers(hits, near)}
    earlier = {key: score for key, _, score in _earlier(hits, near)}
    for key, value in values.items():
        found = pieces.get(key, [])
        if key in earlier:
            found = [_answering(block, earlier[key]) for block in found]
        whole = turns.get(key)
        if whole is not None and len(whole) > len(found):
            joined = _joined(whole, found, earlier.get(key, asked.get(key)))
            yield replace(joined, value=value, pieces=tuple(found))
        else:
            yield from (replace(block, value=value) for block in found)


def _answering(block: Block, relevance: float) -> Block:
    """What was said when the same was asked before is as relevant as that, whatever its words are."""
    return replace(block, score=max(block.score or 0.0, relevance), reason=_FOLLOWS)


def _turns(near: Mapping[Place, Sequence[Stored]]) -> dict[Key, list[Stored]]:
    found: dict[Key, dict[int, Stored]] = {}
    for some in near.values():
        for stored in some:
            if stored.passage.turn:
                found.setdefault(Key(stored.path, stored.passage.turn), {})[stored.id] = stored
    return {key: [one[id_] for id_ in sorted(one)] for key, one in found.items()}


def _joined(whole: Sequence[Stored], found: Sequence[Block], asked: float | None) -> Block:
    first, last = whole[0].passage, whole[-1].passage
    parts = [first.text]
    for above, below in pairwise(whole):
        gap = below.passage.first_line - above.passage.last_line
        parts += ["\n" * gap if gap > 0 else " ", below.passage.text]
    text = "".join(parts)
    source = f"{whole[0].path}:{first.first_line}"
    best = max(found, key=lambda block: block.score or 0.0, default=None)
    return Block(
        slot="knowledge",
        label=f"knowledge:{source}",
        source=source,
        text=text,
        reason=best.reason if best else _FOLLOWS,
        path=whole[0].path,
        place=first.first_line,
        end=last.last_line,
        turn=first.turn,
        day=first.day,
        speaker=first.speaker,
        score=best.score if best else asked,
        channels=best.channels if best else {},
        digest=digest(text),
    )


def _block(hit: Hit) -> Block:
    text = hit.text if hit.turn else without_comments(hit.text)
    return Block(
        slot="knowledge",
        label=f"knowledge:{_source(hit)}",
        source=_source(hit),
        text=text,
        reason=_reason(hit),
        path=hit.path,
        place=hit.lines[0],
        end=hit.lines[1],
        turn=hit.turn,
        day=hit.day,
        speaker=hit.speaker,
        score=hit.score,
        channels=channels(hit),
        digest=digest(text),
    )


def _distinct(units: Iterable[Block], given: Collection[str], dropped: list[Dropped]) -> Iterator[Block]:
    """One of those that say the same, and none that this session was given already."""
    seen: dict[int, list[frozenset[str]]] = {}
    for block in units:
        words = frozenset(block.text.casefold().split())
        signs = _signs(words)
        if not words:
            dropped.append(_left(block, "empty", "nothing is written in it yet"))
        elif block.digest in given:
            dropped.append(_left(block, "repeated", "this session was given it already"))
        elif any(_alike(words, other) for sign in signs for other in seen.get(sign, ())):
            dropped.append(_left(block, "duplicate", "another passage says the same"))
        else:
            for sign in signs:
                seen.setdefault(sign, []).append(words)
            yield block


def _signs(words: Collection[str]) -> tuple[int, ...]:
    """Two words picked by their checksums, the same ones from texts that are nearly the same: so not all
    pairs need be compared. Of a hundred pairs that are just alike enough one is missed."""
    sums = [crc32(word.encode("utf-8", "surrogatepass")) for word in words]
    return (min(sums), max(sums)) if sums else ()


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= _SAME * len(one | other)


def digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def channels(hit: Hit) -> dict[str, float]:
    why = hit.why
    found = {"lexical": why.lexical, "vector": why.vector, **dict(why.boosts)}
    measured = {"bm25": why.bm25, "cosine": why.cosine, "rerank": why.rerank}
    found |= {name: value for name, value in measured.items() if value is not None}
    return {name: round(value, 4) for name, value in found.items() if value}


def _reason(hit: Hit) -> str:
    why = hit.why
    sides = [
        *(["words"] if why.bm25 is not None else []),
        *(["meaning"] if why.vector_rank else []),
        *(name for name, _ in why.boosts),
    ]
    return " + ".join(sides) or "near to what was asked"


def _place(hit: Hit) -> Place:
    return (hit.path, hit.lines[0])


def _source(hit: Hit) -> str:
    return f"{hit.path}:{hit.lines[0]}"


def _dropped(hit: Hit, code: str, reason: str) -> Dropped:
    source = _source(hit)
    return Dropped(f"knowledge:{source}", "knowledge", source, code, reason, None, hit.score, channels(hit))


def _left(block: Block, code: str, reason: str) -> Dropped:
    return Dropped(block.label, "knowledge", block.source, code, reason, None, block.score, block.channels)

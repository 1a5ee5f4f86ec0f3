"""How much a message is about each topic: words and letters compared, no model asked.

A topic is what its name, title, description, keywords, triggers and body say. Its words are taken apart
once per text and kept, so that a scorer made anew after one topic changed reads only that one. What
depends on all topics, how rare a word is and which topics have it, is put together each time.

Five channels from 0 to 1 make one score:

- `tfidf`: the cosine of the words, rare ones counting more;
- `bm25`: how much of what could be found of the message was found in the topic;
- `jaccard`: the share of words in common with what the topic says in its head, without the body;
- `ngrams`: the same for three letters in a row, so that typos and compounds count, estimated by MinHash;
- `mood`: whether the message sounds as a `sentiment` trigger asks.

How rare a word is, is known from few topics. So a number of texts is imagined beside them, half of which
have each everyday word, and none of which has any other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from math import log, sqrt
from typing import NamedTuple, TypeAlias
from zlib import crc32

from tacit.model.topics import Similarity, Topic, Trigger
from tacit.text import words
from tacit.text.forms import EVERYDAY, forms_of, words_of
from tacit.text.mood import agreement, mood

LONGEST = 20_000  # characters of a message or a topic that count
LONGEST_PATTERN = 1_000
MOST_FEATURES = 5_000
_IMAGINED = 20
_HEAD, _ABOUT, _BODY = 3.0, 2.0, 1.0  # how often a word counts: name, title, triggers; description; body
_K1, _B = 1.2, 0.3
_UNKNOWN = 0.6  # how much a word that no topic has speaks against all
_UNKNOWN_PAIR = 0.2  # half of the pairs of letters are no words
_SPARE = 0.7  # of a rare word, as if each message had it besides: one word alone says little
_COMPOUND = 0.7  # how much a word counts that was found inside a longer one
_BINS = 128

# Chosen on half of tests/data/topic_messages.jsonl, so that 0.15 is plausible, 0.2 likely and 0.3 sure.
_TFIDF, _BM25, _JACCARD, _NGRAMS = 0.5, 0.6, 0.2, 0.1
_MOOD = 0.4  # of what is left to 1


class _Profile(NamedTuple):
    """What can be said of one topic without the others."""

    counts: Mapping[str, float]
    head: frozenset[str]
    sketch: tuple[int, ...]  # the least of each bin, -1 where it is empty
    filled: int  # one bit per bin
    length: float


# One topic that has a word: which, its part of the cosine and of BM25, and 1 if the word is in its head.
_Posting: TypeAlias = tuple[int, float, float, int]


class SimilarityScorer:
    """Compares messages with a set of topics. Immutable; make a new one when topics change."""

    def __init__(self, topics: Sequence[Topic], threshold: float = 0.15) -> None:
        self._topics = tuple({topic.name: topic for topic in topics}.values())
        self._threshold = threshold
        self._places = {topic.name: nth for nth, topic in enumerate(self._topics)}
        self._profiles = [_profile(_texts(topic)) for topic in self._topics]
        self._moods = [_moods(topic) for topic in self._topics]
        self._rarity = _rarities(self._profiles)
        self._postings = _postings(self._profiles, self._rarity)
        self._bins = _binned(self._profiles)
        self._rarest = _rarity(len(self._topics), 0, False)

    def measure(self, text: str, candidates: Collection[str] | None = None) -> dict[str, Similarity]:
        """Every candidate with all channels, in the order of the topics. None: all; empty: none."""
        chosen = self._chosen(candidates)
        if not chosen:
            return {}
        tokens = words_of(text[:LONGEST])
        said = self._said(_features(tokens, text[:LONGEST]))
        cosine, found, shared = self._compared(said)
        alike = self._alike(*_sketch(tokens))
        felt = mood(text) if any(self._moods[nth] for nth in chosen) else 0.0
        telling = sum(term not in EVERYDAY for term in said)
        measured: dict[str, Similarity] = {}
        for nth in chosen:
            union = telling + len(self._profiles[nth].head) - shared[nth]
            measured[self._topics[nth].name] = _similarity(
                cosine[nth],
                found[nth],
                shared[nth] / union if union else 0.0,
                alike.get(nth, 0.0),
                agreement(felt, self._moods[nth]) if self._moods[nth] else 0.0,
            )
        return measured

    def score(self, text: str, candidates: Collection[str] | None = None) -> list[tuple[str, float]]:
        """Those candidates that reach their threshold, the best first."""
        measured = self.measure(text, candidates)
        reached = [name for name, one in measured.items() if one.score >= self.threshold(name)]
        best = sorted(reached, key=lambda name: (-measured[name].score, name))
        return [(name, measured[name].score) for name in best]

    def threshold(self, name: str) -> float:
        """The topic's own, or the one for all."""
        own = self._topics[self._places[name]].similarity_threshold
        return self._threshold if own is None else own

    def _chosen(self, candidates: Collection[str] | None) -> Sequence[int]:
        if candidates is None:
            return range(len(self._topics))
        return sorted({self._places[name] for name in candidates if name in self._places})

    def _said(self, features: Iterable[str]) -> dict[str, float]:
        """The words of a message and how much each counts. A compound counts as the known word in it."""
        said: dict[str, float] = {}
        for term in features:
            said[term] = 1.0
            if term not in self._rarity and (part := _part(term, self._rarity)):
                del said[term]
                said.setdefault(part, _COMPOUND)
        return said

    def _compared(self, said: Mapping[str, float]) -> tuple[list[float], list[float], list[int]]:
        topics = len(self._topics)
        cosine, found, shared = [0.0] * topics, [0.0] * topics, [0] * topics
        most = _SPARE * self._rarest
        length = most * most
        for term, counts in said.items():
            worth = counts * (self._rarity.get(term) or self._unknown(term))
            length += worth * worth
            most += worth
            for nth, near, share, in_head in self._postings.get(term, ()):
                cosine[nth] += worth * near
                found[nth] += worth * share
                shared[nth] += in_head
        return [value / sqrt(length) for value in cosine], [value / most for value in found], shared

    def _unknown(self, term: str) -> float:
        if term in EVERYDAY:
            return _UNKNOWN * _EVERYDAY_RARITY
        return self._rarest * (_UNKNOWN_PAIR if words.unspaced(term) else _UNKNOWN)

    def _alike(self, sketch: tuple[int, ...], filled: int) -> dict[int, float]:
        same = Counter(chain.from_iterable(self._bins.get(key, ()) for key in enumerate(sketch)))
        either = {nth: filled | self._profiles[nth].filled for nth in same}
        return {nth: hits / either[nth].bit_count() for nth, hits in same.items()}


def _similarity(cosine: float, found: float, jaccard: float, alike: float, felt: float) -> Similarity:
    worded = min(1.0, _TFIDF * cosine + _BM25 * found + _JACCARD * jaccard + _NGRAMS * alike)
    channels = {
        "tfidf": round(cosine, 4),
        "bm25": round(found, 4),
        "jaccard": round(jaccard, 4),
        "ngrams": round(alike, 4),
        "mood": round(felt, 4),
    }
    return Similarity(round(worded + (1 - worded) * _MOOD * felt, 4), channels)


# The topics together.


def _rarity(topics: int, having: int, everyday: bool) -> float:
    return log((topics + _IMAGINED + 1) / (having + 0.5 + (_IMAGINED / 2 if everyday else 0)))


def _rarities(profiles: Sequence[_Profile]) -> dict[str, float]:
    having = Counter(term for profile in profiles for term in profile.counts)
    weight: dict[str, float] = {}
    for profile in profiles:
        for term, count in profile.counts.items():
            weight[term] = weight.get(term, 0.0) + count
    kept = sorted(having, key=lambda term: (-weight[term], term))[:MOST_FEATURES]
    return {term: _rarity(len(profiles), having[term], term in EVERYDAY) for term in kept}


def _postings(profiles: Sequence[_Profile], rarity: Mapping[str, float]) -> dict[str, list[_Posting]]:
    usual = sum(profile.length for profile in profiles) / max(1, len(profiles)) or 1.0
    postings: dict[str, list[_Posting]] = {}
    for nth, profile in enumerate(profiles):
        known = {term: count for term, count in profile.counts.items() if term in rarity}
        vector = {term: log(1 + count) * rarity[term] for term, count in known.items()}
        length = sqrt(sum(value * value for value in vector.values()))
        slack = _K1 * (1 - _B + _B * profile.length / usual)
        for term, value in vector.items():
            found = known[term] / (known[term] + slack)
            posting = (nth, value / length, found, int(term in profile.head))
            postings.setdefault(term, []).append(posting)
    return postings


def _binned(profiles: Sequence[_Profile]) -> dict[tuple[int, int], list[int]]:
    binned: dict[tuple[int, int], list[int]] = {}
    for nth, profile in enumerate(profiles):
        for key in enumerate(profile.sketch):
            if key[1] >= 0:
                binned.setdefault(key, []).append(nth)
    return binned


# One topic.


class _Texts(NamedTuple):
    head: str
    about: str
    body: str


def _texts(topic: Topic) -> _Texts:
    triggers = (word for trigger in topic.triggers for word in _trigger_words(trigger))
    head = "\n".join((topic.name, topic.title, *topic.keywords, *triggers))
    return _Texts(head[:LONGEST], topic.description[:LONGEST], topic.body[:LONGEST])


@lru_cache(maxsize=2048)
def _profile(texts: _Texts) -> _Profile:
    counts: dict[str, float] = {}
    head: set[str] = set()
    for text, weight in zip(texts, (_HEAD, _ABOUT, _BODY), strict=True):
        features = list(_features(words_of(text), text))
        if weight == _HEAD:
            features = list(dict.fromkeys(features))  # who lists every form of a word means it once
        if weight == _BODY:
            features = [feature for feature in features if feature not in EVERYDAY]
        else:
            head.update(features)
        for feature in features:
            counts[feature] = counts.get(feature, 0.0) + weight
    sketch, filled = _sketch(words_of(f"{texts.head}\n{texts.about}"))
    return _Profile(counts, frozenset(head - EVERYDAY), sketch, filled, sum(counts.values()))


_BOTH_CASES = re.compile(r"\[(\w)\w\]")  # [Pp]ull
_CLASS = re.compile(r"\\[pP]\{[^}]*\}|\\[a-zA-Z]|\[(?:[^\]\\]|\\.)*\][?*+]?|\(\?(?:P?<\w*>|[a-zA-Z-]*[:)])")
_ENDINGS = re.compile(r"(\w+)\(([\w|]+)\)\??")
_OPTIONAL = re.compile(r"[\w-]\?")
_SYNTAX = re.compile(r"\{\d*,?\d*\}|[.^$*+?{}()|\[\]\\]")
_ADDRESS = re.compile(r"\b(?:https?|www|com|org|net|html?)\b")


def _trigger_words(trigger: Trigger) -> Iterator[str]:
    """What a trigger looks for, as far as it is words."""
    if trigger.type == "pattern":
        pattern = _CLASS.sub(" ", _BOTH_CASES.sub(r"\1", trigger.match[:LONGEST_PATTERN]))
        pattern = _ENDINGS.sub(_with_endings, pattern)
        yield _SYNTAX.sub(" ", _OPTIONAL.sub("", pattern))
    elif trigger.type == "url":
        yield _ADDRESS.sub(" ", trigger.match)
    elif trigger.type in ("keywords", "mention", "code"):
        yield from trigger.words
    elif trigger.type == "webhook":
        yield f"{trigger.source} {trigger.event}"


def _with_endings(found: re.Match[str]) -> str:
    """`deploy(ing|ed)?` as the words that it stands for."""
    return " ".join((found[1], *(found[1] + ending for ending in found[2].split("|"))))


def _moods(topic: Topic) -> tuple[str, ...]:
    asked = (trigger.words for trigger in topic.triggers if trigger.type == "sentiment")
    return tuple(word for moods in asked for word in moods)


# Words.


def _features(tokens: Iterable[str], text: str) -> Iterator[str]:
    for token in tokens:
        yield from forms_of(token)
    plain = words.clean(text)
    for alias in words.aliases(plain):
        yield alias.word
    for part in words.camel_parts(plain):
        yield from forms_of(part.casefold())


def _part(term: str, known: Collection[str]) -> str:
    """The longest known word that a compound begins or ends with: `rechnung` in `rechnungsnummer`."""
    for length in range(len(term) - 4, 4, -1):
        for part in (term[:length], term[-length:]):
            if part in known and part not in EVERYDAY:
                return part
    return ""


_EVERYDAY_RARITY = _rarity(0, 0, True)


# Letters.


@lru_cache(maxsize=16_384)
def _hashes(token: str) -> tuple[int, ...]:
    """A number for each three letters in a row. The same in every process, which hash() is not."""
    padded = f" {token} ".encode("utf-32-le", "surrogatepass")
    return tuple(
        (crc32(padded[at : at + 12]) * 0x9E3779B1 + 0x7F4A7C15) & 0xFFFFFFFF
        for at in range(0, len(padded) - 8, 4)
    )


def _sketch(tokens: Iterable[str]) -> tuple[tuple[int, ...], int]:
    """MinHash by one permutation: the numbers fall into bins, and the least of each stands for it."""
    least = [-1] * _BINS
    for token in dict.fromkeys(tokens):
        for number in _hashes(token):
            place = number % _BINS
            if number < least[place] or least[place] < 0:
                least[place] = number
    return tuple(least), sum(1 << place for place, number in enumerate(least) if number >= 0)

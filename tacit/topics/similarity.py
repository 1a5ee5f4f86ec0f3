"""How much a message is about each topic, from words and letters, without a model.

A topic is represented by its name, title, description, keywords, triggers and body. The words of each text
are extracted once and cached, so that a new scorer after one topic changed processes only that one. What
depends on all topics (how rare a word is, and which topics have it) is computed each time.

Five channels from 0 to 1 make one score:

- `tfidf`: the cosine of the words, rare ones counting more;
- `bm25`: the share of the best possible word match of the message that the topic reaches;
- `jaccard`: the share of words in common with the head of the topic, without the body;
- `ngrams`: the same for character trigrams, so that typos and compounds count, estimated by MinHash;
- `mood`: whether the mood of the message is that of a `sentiment` trigger.

Few topics are a poor sample for the rarity of words. So a number of imaginary texts is added, half of which
have each everyday word, and none of which has any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from math import log, sqrt
from typing import NamedTuple, TypeAlias
from zlib import crc32

from tacit.text import words
from tacit.text.sentiment import measure_mood, score_agreement
from tacit.text.words import EVERYDAY_FORMS, split_words, stem_token
from tacit.topics.model import Similarity, Topic
from tacit.topics.triggers import TRIGGER_TYPES, SentimentTrigger

MAX_CHARS = 20_000  # characters of a message or a topic that count
MAX_FEATURES = 5_000
_IMAGINARY_TEXTS = 20
_HEAD_WEIGHT, _ABOUT_WEIGHT, _BODY_WEIGHT = (
    3.0,
    2.0,
    1.0,
)  # weight of a word in: name, title, triggers; description; body
_K1, _B = 1.2, 0.3
_UNKNOWN_WEIGHT = 0.6  # how much a word that no topic has counts against all topics
_UNKNOWN_PAIR_WEIGHT = 0.2  # half of the pairs of letters are not words
_EXTRA_WORD_SHARE = 0.7  # of a rare word is added to each message: one word alone says little
_COMPOUND_WEIGHT = 0.7  # weight of a word found inside a longer one
_BINS = 128

# Chosen on half of tests/data/topic_messages.jsonl, so that 0.15 is plausible, 0.2 likely and 0.3 sure.
_TFIDF_WEIGHT, _BM25_WEIGHT, _JACCARD_WEIGHT, _NGRAMS_WEIGHT = 0.5, 0.6, 0.2, 0.1
_MOOD_WEIGHT = 0.4  # share of the remainder to 1


class _Profile(NamedTuple):
    """What is computed for one topic independently of the others."""

    counts: Mapping[str, float]
    head: frozenset[str]
    sketch: tuple[int, ...]  # the minimum of each bin, -1 if it is empty
    filled: int  # one bit per bin
    length: float


# One topic that has a word: its index, its part of the cosine and of BM25, and 1 if the word is in its head.
_Posting: TypeAlias = tuple[int, float, float, int]


class SimilarityScorer:
    """Compares messages with a set of topics. Immutable; make a new one when topics change."""

    def __init__(self, topics: Sequence[Topic], threshold: float = 0.15) -> None:
        self._topics = tuple({topic.name: topic for topic in topics}.values())
        self._threshold = threshold
        self._index_by_name = {topic.name: index for index, topic in enumerate(self._topics)}
        self._profiles = [_make_profile(_topic_texts(topic)) for topic in self._topics]
        self._moods = [_mood_triggers(topic) for topic in self._topics]
        self._rarity = _compute_rarities(self._profiles)
        self._postings = _build_postings(self._profiles, self._rarity)
        self._bins = _build_bins(self._profiles)
        self._highest_rarity = _rarity(len(self._topics), 0, False)

    def measure(self, text: str, candidates: Collection[str] | None = None) -> dict[str, Similarity]:
        """All channels for every candidate, in the order of the topics. None: all topics; empty: none."""
        indices = self._candidate_indices(candidates)
        if not indices:
            return {}
        tokens = split_words(text[:MAX_CHARS])
        word_weights = self._weigh_words(_extract_features(tokens, text[:MAX_CHARS]))
        cosine, bm25, common = self._compare_words(word_weights)
        ngrams = self._compare_sketches(*_make_sketch(tokens))
        message_mood = measure_mood(text) if any(self._moods[index] for index in indices) else 0.0
        content_words = sum(term not in EVERYDAY_FORMS for term in word_weights)
        measured: dict[str, Similarity] = {}
        for index in indices:
            union = content_words + len(self._profiles[index].head) - common[index]
            measured[self._topics[index].name] = _combine(
                cosine[index],
                bm25[index],
                common[index] / union if union else 0.0,
                ngrams.get(index, 0.0),
                score_agreement(message_mood, self._moods[index]) if self._moods[index] else 0.0,
            )
        return measured

    def score(self, text: str, candidates: Collection[str] | None = None) -> list[tuple[str, float]]:
        """The candidates that reach their threshold, best first."""
        measured = self.measure(text, candidates)
        reached = [name for name, similarity in measured.items() if similarity.score >= self.threshold(name)]
        best = sorted(reached, key=lambda name: (-measured[name].score, name))
        return [(name, measured[name].score) for name in best]

    def threshold(self, name: str) -> float:
        """The topic's own threshold, or the general one."""
        own = self._topics[self._index_by_name[name]].similarity_threshold
        return self._threshold if own is None else own

    def _candidate_indices(self, candidates: Collection[str] | None) -> Sequence[int]:
        if candidates is None:
            return range(len(self._topics))
        return sorted({self._index_by_name[name] for name in candidates if name in self._index_by_name})

    def _weigh_words(self, features: Iterable[str]) -> dict[str, float]:
        """The words of a message with their weights. A compound counts as the known word in it."""
        word_weights: dict[str, float] = {}
        for term in features:
            word_weights[term] = 1.0
            if term not in self._rarity and (part := _find_known_part(term, self._rarity)):
                del word_weights[term]
                word_weights.setdefault(part, _COMPOUND_WEIGHT)
        return word_weights

    def _compare_words(self, word_weights: Mapping[str, float]) -> tuple[list[float], list[float], list[int]]:
        topics = len(self._topics)
        cosine, bm25, common = [0.0] * topics, [0.0] * topics, [0] * topics
        best_possible = _EXTRA_WORD_SHARE * self._highest_rarity
        length = best_possible * best_possible
        for term, count_weight in word_weights.items():
            word_weight = count_weight * (self._rarity.get(term) or self._unknown_rarity(term))
            length += word_weight * word_weight
            best_possible += word_weight
            for index, cosine_part, bm25_part, in_head in self._postings.get(term, ()):
                cosine[index] += word_weight * cosine_part
                bm25[index] += word_weight * bm25_part
                common[index] += in_head
        return [value / sqrt(length) for value in cosine], [value / best_possible for value in bm25], common

    def _unknown_rarity(self, term: str) -> float:
        if term in EVERYDAY_FORMS:
            return _UNKNOWN_WEIGHT * _EVERYDAY_RARITY
        return self._highest_rarity * (_UNKNOWN_PAIR_WEIGHT if words.is_unspaced(term) else _UNKNOWN_WEIGHT)

    def _compare_sketches(self, sketch: tuple[int, ...], filled: int) -> dict[int, float]:
        same = Counter(chain.from_iterable(self._bins.get(key, ()) for key in enumerate(sketch)))
        either = {index: filled | self._profiles[index].filled for index in same}
        return {index: hits / either[index].bit_count() for index, hits in same.items()}


def _combine(cosine: float, bm25: float, jaccard: float, ngrams: float, message_mood: float) -> Similarity:
    lexical = min(
        1.0,
        _TFIDF_WEIGHT * cosine + _BM25_WEIGHT * bm25 + _JACCARD_WEIGHT * jaccard + _NGRAMS_WEIGHT * ngrams,
    )
    channels = {
        "tfidf": round(cosine, 4),
        "bm25": round(bm25, 4),
        "jaccard": round(jaccard, 4),
        "ngrams": round(ngrams, 4),
        "mood": round(message_mood, 4),
    }
    return Similarity(round(lexical + (1 - lexical) * _MOOD_WEIGHT * message_mood, 4), channels)


# The topics together.


def _rarity(topics: int, having: int, everyday: bool) -> float:
    return log((topics + _IMAGINARY_TEXTS + 1) / (having + 0.5 + (_IMAGINARY_TEXTS / 2 if everyday else 0)))


def _compute_rarities(profiles: Sequence[_Profile]) -> dict[str, float]:
    having = Counter(term for profile in profiles for term in profile.counts)
    weight: dict[str, float] = {}
    for profile in profiles:
        for term, count in profile.counts.items():
            weight[term] = weight.get(term, 0.0) + count
    most_used = sorted(having, key=lambda term: (-weight[term], term))[:MAX_FEATURES]
    return {term: _rarity(len(profiles), having[term], term in EVERYDAY_FORMS) for term in most_used}


def _build_postings(profiles: Sequence[_Profile], rarity: Mapping[str, float]) -> dict[str, list[_Posting]]:
    mean_length = sum(profile.length for profile in profiles) / max(1, len(profiles)) or 1.0
    postings: dict[str, list[_Posting]] = {}
    for index, profile in enumerate(profiles):
        counts = {term: count for term, count in profile.counts.items() if term in rarity}
        vector = {term: log(1 + count) * rarity[term] for term, count in counts.items()}
        length = sqrt(sum(value * value for value in vector.values()))
        slack = _K1 * (1 - _B + _B * profile.length / mean_length)
        for term, value in vector.items():
            bm25_part = counts[term] / (counts[term] + slack)
            posting = (index, value / length, bm25_part, int(term in profile.head))
            postings.setdefault(term, []).append(posting)
    return postings


def _build_bins(profiles: Sequence[_Profile]) -> dict[tuple[int, int], list[int]]:
    binned: dict[tuple[int, int], list[int]] = {}
    for index, profile in enumerate(profiles):
        for key in enumerate(profile.sketch):
            if key[1] >= 0:
                binned.setdefault(key, []).append(index)
    return binned


# One topic.


class _Texts(NamedTuple):
    head: str
    about: str
    body: str


def _topic_texts(topic: Topic) -> _Texts:
    triggers = (word for trigger in topic.triggers for word in TRIGGER_TYPES[trigger.type].words(trigger))
    head = "\n".join((topic.name, topic.title, *topic.keywords, *triggers))
    return _Texts(head[:MAX_CHARS], topic.description[:MAX_CHARS], topic.body[:MAX_CHARS])


@lru_cache(maxsize=2048)
def _make_profile(texts: _Texts) -> _Profile:
    counts: dict[str, float] = {}
    head: set[str] = set()
    for text, weight in zip(texts, (_HEAD_WEIGHT, _ABOUT_WEIGHT, _BODY_WEIGHT), strict=True):
        features = list(_extract_features(split_words(text), text))
        if weight == _HEAD_WEIGHT:
            features = list(dict.fromkeys(features))  # listing every form of a word counts once
        if weight == _BODY_WEIGHT:
            features = [feature for feature in features if feature not in EVERYDAY_FORMS]
        else:
            head.update(features)
        for feature in features:
            counts[feature] = counts.get(feature, 0.0) + weight
    sketch, filled = _make_sketch(split_words(f"{texts.head}\n{texts.about}"))
    return _Profile(counts, frozenset(head - EVERYDAY_FORMS), sketch, filled, sum(counts.values()))


def _mood_triggers(topic: Topic) -> tuple[str, ...]:
    word_lists = (trigger.words for trigger in topic.triggers if trigger.type == SentimentTrigger.name)
    return tuple(word for moods in word_lists for word in moods)


# Words.


def _extract_features(tokens: Iterable[str], text: str) -> Iterator[str]:
    for token in tokens:
        yield from stem_token(token)
    plain = words.clean(text)
    for alias in words.find_aliases(plain):
        yield alias.word
    for part in words.split_camel_case(plain):
        yield from stem_token(part.casefold())


def _find_known_part(term: str, vocabulary: Collection[str]) -> str:
    """The longest known word at the start or end of a compound: `rechnung` in `rechnungsnummer`."""
    for length in range(len(term) - 4, 4, -1):
        for part in (term[:length], term[-length:]):
            if part in vocabulary and part not in EVERYDAY_FORMS:
                return part
    return ""


_EVERYDAY_RARITY = _rarity(0, 0, True)


# Letters.


@lru_cache(maxsize=16_384)
def _trigram_hashes(token: str) -> tuple[int, ...]:
    """A hash for each character trigram. The same in every process, unlike hash()."""
    padded = f" {token} ".encode("utf-32-le", "surrogatepass")
    return tuple(
        (crc32(padded[start : start + 12]) * 0x9E3779B1 + 0x7F4A7C15) & 0xFFFFFFFF
        for start in range(0, len(padded) - 8, 4)
    )


def _make_sketch(tokens: Iterable[str]) -> tuple[tuple[int, ...], int]:
    """MinHash by one permutation: the hashes fall into bins, each represented by its minimum."""
    minimums = [-1] * _BINS
    for token in dict.fromkeys(tokens):
        for number in _trigram_hashes(token):
            bin_index = number % _BINS
            if number < minimums[bin_index] or minimums[bin_index] < 0:
                minimums[bin_index] = number
    return tuple(minimums), sum(1 << bin_index for bin_index, number in enumerate(minimums) if number >= 0)

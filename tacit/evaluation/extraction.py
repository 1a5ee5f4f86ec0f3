"""Scores the extractors against a key that a person wrote.

For each conversation and each extractor the key lists the expected items and others that are allowed: a turn,
and words that the line must contain. A line is right if it is from such a turn and has all these words. It is
wrong if it fits no item, and also if it only repeats another line. Precision is the share of lines that are
right, and recall the share of expected items that were found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tacit.errors import UsageError
from tacit.home.layout import CONVERSATIONS
from tacit.home.listing import walk
from tacit.learn.extractors.extractor import Extractor
from tacit.learn.model import Change, Known
from tacit.learn.pipeline import learn
from tacit.memory import Memory
from tacit.text.words import fold
from tacit.transcripts.attribution import AttributedTranscript


class KeyItem(NamedTuple):
    turns: tuple[int, ...]
    words: tuple[tuple[str, ...], ...]  # one word of each tuple must be in the line
    is_wanted: bool

    def fits(self, change: Change) -> bool:
        text = fold(change.text)
        return change.source.number in self.turns and all(
            any(fold(word) in text for word in either) for either in self.words
        )


AnswerKey = Mapping[str, Mapping[str, Sequence[KeyItem]]]  # conversation → extractor → items


@dataclass(frozen=True, slots=True)
class ExtractionScore:
    """The score of one extractor over some conversations."""

    wanted: int = 0
    found: int = 0  # of the expected items
    lines: int = 0
    right: int = 0
    missed: tuple[str, ...] = field(default=(), repr=False)
    mistaken: tuple[str, ...] = field(default=(), repr=False)

    @property
    def precision(self) -> float | None:
        return self.right / self.lines if self.lines else None

    @property
    def recall(self) -> float | None:
        return self.found / self.wanted if self.wanted else None

    def __add__(self, other: ExtractionScore) -> ExtractionScore:
        return ExtractionScore(
            self.wanted + other.wanted,
            self.found + other.found,
            self.lines + other.lines,
            self.right + other.right,
            self.missed + other.missed,
            self.mistaken + other.mistaken,
        )


def score_extractors(
    conversations: Iterable[tuple[str, AttributedTranscript]],
    key: AnswerKey,
    known: Known,
    extractors: Sequence[Extractor],
) -> dict[str, ExtractionScore]:
    """The scores by extractor. Conversations are named as in the key; those not in it are skipped."""
    totals = {extractor.name: ExtractionScore() for extractor in extractors}
    for name, conversation in conversations:
        if name in key:
            for extractor in extractors:
                changes = learn(conversation, known, [extractor], None).changes
                totals[extractor.name] += score_conversation(name, changes, key[name].get(extractor.name, ()))
    return totals


def score_conversation(name: str, changes: Sequence[Change], items: Sequence[KeyItem]) -> ExtractionScore:
    """The score of one extractor in one conversation."""
    matched: set[KeyItem] = set()
    mistaken: list[str] = []
    for change in changes:
        fitting = {item for item in items if item.fits(change)}
        if not fitting - matched:
            mistaken.append(f"{name}#{change.source.number} {change.text}")
        matched |= fitting
    wanted = [item for item in items if item.is_wanted]
    missed = [f"{name}#{_describe(item)}" for item in wanted if item not in matched]
    return ExtractionScore(
        len(wanted),
        len(wanted) - len(missed),
        len(changes),
        len(changes) - len(mistaken),
        tuple(missed),
        tuple(mistaken),
    )


def _describe(item: KeyItem) -> str:
    return f"{','.join(map(str, item.turns))} {' + '.join('|'.join(either) for either in item.words)}"


def read_key(data: object, source: str) -> AnswerKey:
    """Parse a key from YAML: `conversation: {extractor: {wanted: [[TURN, WORDS…]], also: …}}`."""
    try:
        return {
            str(name): {
                str(extractor): [
                    *(_read_item(entry, True) for entry in parts.get("wanted") or ()),
                    *(_read_item(entry, False) for entry in parts.get("also") or ()),
                ]
                for extractor, parts in by_extractor.items()
            }
            for name, by_extractor in _require_mapping(data).items()
        }
    except (TypeError, ValueError, AttributeError, IndexError, KeyError):
        raise UsageError(
            f"{source} is no key. Write CONVERSATION: {{EXTRACTOR: {{wanted: [[TURN, WORDS…]], also: […]}}}}."
        ) from None


def _require_mapping(data: object) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise TypeError
    return data


def _read_item(entry: Sequence[Any], is_wanted: bool) -> KeyItem:
    turns = entry[0] if isinstance(entry[0], list) else [entry[0]]
    words = tuple(tuple(str(word).split("|")) for word in entry[1:])
    if not words:
        raise ValueError
    return KeyItem(tuple(map(int, turns)), words, is_wanted)


def attributed_conversations(memory: Memory) -> Iterator[AttributedTranscript]:
    """Oldest first. Nothing counts as injected: the notes of today were made from these conversations."""
    for path in sorted(path for path, _ in walk(str(memory.home.root), CONVERSATIONS)):
        conversation = memory.services.attribution.attribute(path, injected=())
        if conversation is not None:
            yield conversation


def pair_with_names(
    conversations: Iterable[AttributedTranscript], names: Collection[str]
) -> Iterator[tuple[str, AttributedTranscript]]:
    """Pair each conversation with its name: the session's id, or the end of its file name."""
    for conversation in conversations:
        stem = conversation.transcript.rpartition("/")[2].removesuffix(".md")
        fitting = (name for name in names if name == conversation.session_id or stem.endswith(f"-{name}"))
        yield next(fitting, stem), conversation

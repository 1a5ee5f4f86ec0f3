"""How well the extractors find what a careful person would note, by a key that a person wrote.

The key names, for each conversation and each extractor, what is wanted and what may be found besides: a turn,
and words that the line must have. A line is right when it is from such a turn and has all these words. It is
wrong when it fits nothing in the key, and also when it only says again what another line has given already.
So precision is the share of lines that are right, and recall the share of what is wanted that was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tacit.errors import UsageError
from tacit.lifecycle.extractors.extractor import Extractor
from tacit.lifecycle.learn import learn
from tacit.model.changes import Change, Heard, Known
from tacit.text.words import fold


class Item(NamedTuple):
    turns: tuple[int, ...]
    words: tuple[tuple[str, ...], ...]  # one of each must be in the line
    is_wanted: bool

    def fits(self, change: Change) -> bool:
        text = fold(change.text)
        return change.source.number in self.turns and all(
            any(fold(word) in text for word in either) for either in self.words
        )


Key = Mapping[str, Mapping[str, Sequence[Item]]]  # conversation → extractor → items


@dataclass(frozen=True, slots=True)
class Score:
    """Of one extractor over some conversations."""

    wanted: int = 0
    found: int = 0  # of what is wanted
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

    def __add__(self, other: Score) -> Score:
        return Score(
            self.wanted + other.wanted,
            self.found + other.found,
            self.lines + other.lines,
            self.right + other.right,
            self.missed + other.missed,
            self.mistaken + other.mistaken,
        )


def scores(
    conversations: Iterable[tuple[str, Heard]], key: Key, known: Known, extractors: Sequence[Extractor]
) -> dict[str, Score]:
    """By extractor. Conversations come with the names that they have in the key; others are left out."""
    found = {one.name: Score() for one in extractors}
    for name, heard in conversations:
        if name in key:
            for one in extractors:
                changes = learn(heard, known, [one], None).changes
                found[one.name] += score(name, changes, key[name].get(one.name, ()))
    return found


def score(name: str, changes: Sequence[Change], items: Sequence[Item]) -> Score:
    """Of one extractor in one conversation."""
    given: set[Item] = set()
    mistaken: list[str] = []
    for change in changes:
        fitting = {item for item in items if item.fits(change)}
        if not fitting - given:
            mistaken.append(f"{name}#{change.source.number} {change.text}")
        given |= fitting
    wanted = [item for item in items if item.is_wanted]
    missed = [f"{name}#{_shown(item)}" for item in wanted if item not in given]
    return Score(
        len(wanted),
        len(wanted) - len(missed),
        len(changes),
        len(changes) - len(mistaken),
        tuple(missed),
        tuple(mistaken),
    )


def _shown(item: Item) -> str:
    return f"{','.join(map(str, item.turns))} {' + '.join('|'.join(either) for either in item.words)}"


def read_key(data: object, where: str) -> Key:
    """The key as it is written in YAML: `conversation: {extractor: {wanted: [[TURN, WORDS…]], also: …}}`."""
    try:
        return {
            str(name): {
                str(extractor): [
                    *(_item(one, True) for one in parts.get("wanted") or ()),
                    *(_item(one, False) for one in parts.get("also") or ()),
                ]
                for extractor, parts in by_extractor.items()
            }
            for name, by_extractor in _mapping(data).items()
        }
    except (TypeError, ValueError, AttributeError, IndexError, KeyError):
        raise UsageError(
            f"{where} is no key. Write CONVERSATION: {{EXTRACTOR: {{wanted: [[TURN, WORDS…]], also: […]}}}}."
        ) from None


def _mapping(data: object) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise TypeError
    return data


def _item(one: Sequence[Any], is_wanted: bool) -> Item:
    turns = one[0] if isinstance(one[0], list) else [one[0]]
    words = tuple(tuple(str(word).split("|")) for word in one[1:])
    if not words:
        raise ValueError
    return Item(tuple(map(int, turns)), words, is_wanted)

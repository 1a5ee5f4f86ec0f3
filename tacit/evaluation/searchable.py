"""Evidence recall by what is searchable: the knowledge learned from the conversations, the conversations
themselves, or both.

It is measured on the sample's conversations after the rules have learned from them as in a real home: lines
that need review are left out. The same is measured with the notes that a person wrote.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from tacit.errors import UsageError
from tacit.evaluation.budgets import Measurement, ProgressCallback, measure_home
from tacit.evaluation.sampled import copy_home, sample_home
from tacit.evaluation.sets import EvalQuestion, EvidencePlace
from tacit.memory import Memory

Searchable: TypeAlias = Literal["knowledge", "transcripts", "both"]
SEARCHABLE: tuple[Searchable, ...] = get_args(Searchable)
_EXCLUDED_FOLDERS: dict[Searchable, tuple[str, ...]] = {
    "knowledge": ("raw", "drafts"),
    "transcripts": ("knowledge", "drafts"),
    "both": ("drafts",),
}


def measure_searchable(
    questions: Sequence[EvalQuestion],
    searchable: Sequence[Searchable],
    budgets: Sequence[int],
    tick: ProgressCallback,
) -> Iterator[tuple[Searchable, list[Measurement]]]:
    with sample_home() as memory:
        memory.services.extractor.learn_pending()
        for number, kind in enumerate(searchable):
            offset, total = number * len(questions), len(searchable) * len(questions)
            yield (
                kind,
                list(_measure_alone(memory, kind, questions, budgets, _offset_tick(tick, offset, total))),
            )


def _offset_tick(tick: ProgressCallback, offset: int, total: int) -> ProgressCallback:
    return lambda finished, _: tick(offset + finished, total)


def _measure_alone(
    memory: Memory,
    kind: Searchable,
    questions: Sequence[EvalQuestion],
    budgets: Sequence[int],
    tick: ProgressCallback,
) -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory(prefix="tacit-eval-") as folder:
        memory_copy = copy_home(memory, Path(folder) / "home", _EXCLUDED_FOLDERS[kind])
        try:
            yield from measure_home(memory_copy, questions, budgets, tick)
        finally:
            memory_copy.searcher.close()


def read_answers(data: object, where: str) -> list[EvalQuestion]:
    """Parse questions from YAML: `- {question: …, answer: [PHRASE, EITHER|OR]}`."""
    try:
        return [_read_question(str(number), entry) for number, entry in enumerate(_require_list(data), 1)]
    except (TypeError, KeyError, AttributeError):
        raise UsageError(
            f"{where} is no list of questions. Write - {{question: …, answer: [PHRASE…]}}."
        ) from None


def _require_list(data: object) -> list[Any]:
    if not isinstance(data, list):
        raise TypeError
    return data


def _read_question(number: str, entry: Any) -> EvalQuestion:
    gold = tuple(
        tuple(EvidencePlace("", phrase) for phrase in str(either).split("|")) for either in entry["answer"]
    )
    return EvalQuestion(number, str(entry["question"]), "", gold)

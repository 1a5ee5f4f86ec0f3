"""How much of what an answer needs is in the prompt, by what may be searched: what was learned from the
conversations, the conversations themselves, or both.

Measured on the sample's conversations, after the rules have learned from them as they would in a home: what
needs review is not there. Beside it stands what the same prompts hold with the notes that a person wrote.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from tacit.errors import UsageError
from tacit.evaluation.budgets import Measured, Tick, measure_home
from tacit.evaluation.sampled import copied, sample_home
from tacit.evaluation.sets import Place, Question
from tacit.memory import Memory
from tacit.memory.learning import learn_pending

Searchable: TypeAlias = Literal["knowledge", "transcripts", "both"]
SEARCHABLE: tuple[Searchable, ...] = get_args(Searchable)
_WITHOUT: dict[Searchable, tuple[str, ...]] = {
    "knowledge": ("raw", "drafts"),
    "transcripts": ("knowledge", "drafts"),
    "both": ("drafts",),
}


def measure(
    questions: Sequence[Question], searchable: Sequence[Searchable], budgets: Sequence[int], tick: Tick
) -> Iterator[tuple[Searchable, list[Measured]]]:
    with sample_home() as memory:
        learn_pending(memory)
        for number, one in enumerate(searchable):
            done, total = number * len(questions), len(searchable) * len(questions)
            yield one, list(_asked(memory, one, questions, budgets, _shifted(tick, done, total)))


def _shifted(tick: Tick, before: int, total: int) -> Tick:
    return lambda done, _: tick(before + done, total)


def _asked(
    memory: Memory, one: Searchable, questions: Sequence[Question], budgets: Sequence[int], tick: Tick
) -> Iterator[Measured]:
    with tempfile.TemporaryDirectory(prefix="tacit-eval-") as folder:
        alone = copied(memory, Path(folder) / "home", _WITHOUT[one])
        try:
            yield from measure_home(alone, questions, budgets, tick)
        finally:
            alone.searcher.close()


def read_answers(data: object, where: str) -> list[Question]:
    """Questions as they are written in YAML: `- {question: …, answer: [PHRASE, EITHER|OR]}`."""
    try:
        return [_question(str(number), one) for number, one in enumerate(_list(data), 1)]
    except (TypeError, KeyError, AttributeError):
        raise UsageError(
            f"{where} is no list of questions. Write - {{question: …, answer: [PHRASE…]}}."
        ) from None


def _list(data: object) -> list[Any]:
    if not isinstance(data, list):
        raise TypeError
    return data


def _question(number: str, one: Any) -> Question:
    gold = tuple(tuple(Place("", phrase) for phrase in str(each).split("|")) for each in one["answer"])
    return Question(number, str(one["question"]), "", gold)

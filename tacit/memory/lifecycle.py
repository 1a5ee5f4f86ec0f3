"""The order of all that is due: commit what people and sessions left, learn from conversations, condense,
prune, archive, commit, tag."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tacit.memory.condensing import Summed, condense, due_periods, prune_is_due
from tacit.memory.learning import learn_pending
from tacit.memory.memory import Worked
from tacit.memory.offers import take_offers

if TYPE_CHECKING:
    from tacit.memory.memory import Memory


def run_all(memory: Memory, *, if_due: bool = False) -> Worked:
    """A second call with nothing new changes nothing. `if_due`: notes are committed where that is due."""
    commit = memory.recover if if_due and not memory.commit_due() else memory.commit
    first = commit()
    learnt = learn_pending(memory)
    learnt = replace(learnt, drafts=(*learnt.drafts, *take_offers(memory)))
    summed = condense_due(memory)
    last = commit()
    return replace(
        last,
        sealed=(*first.sealed, *last.sealed),
        commits=(*first.commits, *learnt.commits, *summed.commits, *last.commits),
        tags=tuple(dict.fromkeys((*first.tags, *last.tags))),
        waiting=last.waiting or summed.waiting,
        branches=(*first.branches, *last.branches),
        problems=tuple(dict.fromkeys((*first.problems, *last.problems))),
        learnt=learnt,
        summed=summed,
    )


def condense_due(memory: Memory) -> Summed:
    periods, prune = due_periods(memory), prune_is_due(memory)
    if not periods and not prune:
        return Summed()
    return condense(memory, periods, prune=prune, archive=prune)

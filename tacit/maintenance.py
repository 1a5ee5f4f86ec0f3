"""The maintenance run, in order: commit what people and sessions left, learn from conversations, condense,
prune, archive, commit, tag."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tacit.condense.service import CondenseResult, condense, due_periods, prune_is_due
from tacit.diagnostics import Problem
from tacit.errors import CHECK_OUT, UNLOCK, Locked, MergeConflict, NotCheckedOut, UnsafePath
from tacit.memory import Worked

if TYPE_CHECKING:
    from tacit.memory import Memory

_Result = TypeVar("_Result")


def run_all(memory: Memory, *, if_due: bool = False) -> Worked:
    """A second call with nothing new changes nothing. `if_due`: commit notes only if that is due."""
    commit = memory.recover if if_due and not memory.commit_due() else memory.commit
    before = commit()
    learnt = memory.services.extractor.learn_pending()
    offers, offer_problems = _run_step(memory.services.inbox.take_offers, tuple[str, ...]())
    learnt = replace(learnt, drafts=(*learnt.drafts, *offers))
    summed, condense_problems = _run_step(lambda: condense_due(memory), CondenseResult())
    after = commit()
    return replace(
        after,
        sealed=(*before.sealed, *after.sealed),
        commits=(*before.commits, *learnt.commits, *summed.commits, *after.commits),
        tags=tuple(dict.fromkeys((*before.tags, *after.tags))),
        waiting=after.waiting or summed.waiting,
        branches=(*before.branches, *after.branches),
        problems=tuple(
            dict.fromkeys((*before.problems, *offer_problems, *condense_problems, *after.problems))
        ),
        learnt=learnt,
        summed=summed,
    )


def _run_step(step: Callable[[], _Result], default: _Result) -> tuple[_Result, tuple[Problem, ...]]:
    """Run a step. A file that is in conflict, locked, a link or not checked out stops this step only."""
    try:
        return step(), ()
    except MergeConflict as error:
        message = f"{error.why}, so some of the work waits."
        return default, (Problem(error.path, message, error.todo),)
    except UnsafePath as error:
        message = f"cannot be used ({error.why}), so some of the work waits."
        todo = UNLOCK if isinstance(error, Locked) else "Put a plain file in its place."
        return default, (Problem(error.path, message, todo),)
    except NotCheckedOut as error:
        message = "is in git but not checked out here, so some of the work waits."
        return default, (Problem(error.path, message, f"{CHECK_OUT}{error.path}"),)


def condense_due(memory: Memory) -> CondenseResult:
    periods, prune = due_periods(memory), prune_is_due(memory)
    if not periods and not prune:
        return CondenseResult()
    return condense(memory, periods, prune=prune, archive=prune)

"""The work that is due, in order: commit what people and sessions left, learn from conversations, condense,
prune, archive, commit, tag."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from tacit.clock import Clock
from tacit.config import Config, mask_secret
from tacit.diagnostics import Problem
from tacit.errors import CHECK_OUT, UNLOCK, Locked, MergeConflict, NotCheckedOut, UnsafePath
from tacit.git.committer import Committer
from tacit.git.history import History
from tacit.git.note_committer import NoteCommitter
from tacit.git.objects import pack_loose_objects
from tacit.git.refs import prune_explore_branches, push_branch, tag_periods
from tacit.git.repository import Git
from tacit.health.sweep import sweep
from tacit.home import files
from tacit.home.layout import Home
from tacit.sessions.conversations import SessionRecovery
from tacit.transcripts.session_commits import SessionCommitter

if TYPE_CHECKING:
    from tacit.condense.service import CondenseResult, MemoryCondenser
    from tacit.learn.drafts import RememberInbox
    from tacit.learn.service import KnowledgeExtractor, LearnResult

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class WorkResult:
    """The result of one maintenance run."""

    sealed: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    waiting: str = ""
    problems: tuple[Problem, ...] = ()
    learnt: LearnResult | None = None  # None: not requested
    summed: CondenseResult | None = None

    @property
    def changed(self) -> bool:
        return bool(self.sealed or self.commits or self.tags or self.branches)


class Maintenance:
    """Learning and condensing are passed as functions, because loading them is dear and committing needs
    neither. `composer` returns the function that writes commit messages."""

    def __init__(
        self,
        home: Home,
        config: Config,
        clock: Clock,
        *,
        git: Git,
        history: History,
        committer: Committer,
        note_committer: NoteCommitter,
        session_committer: SessionCommitter,
        recovery: SessionRecovery,
        composer: Callable[[], Callable[..., str]],
        extractor: Callable[[], KnowledgeExtractor],
        inbox: Callable[[], RememberInbox],
        condenser: Callable[[], MemoryCondenser],
    ) -> None:
        self._home, self._config, self._clock, self._git = home, config, clock, git
        self._history, self._committer, self._recovery = history, committer, recovery
        self._note_committer, self._session_committer = note_committer, session_committer
        self._composer = composer
        self._extractor, self._inbox, self._condenser = extractor, inbox, condenser

    def run(self, *, if_due: bool = False) -> WorkResult:
        """Do everything that is due. A second call with nothing new changes nothing. `if_due`: commit notes
        only if the interval has passed."""
        commit = self.recover if if_due and not self.is_commit_due() else self.commit
        before = commit()
        learnt = self._extractor().learn_pending()
        offers, offer_problems = _run_step(self._inbox().take_offers, tuple[str, ...]())
        condenser = self._condenser()
        condensed, condense_problems = _run_step(condenser.condense_due, condenser.NOTHING)
        after = commit()
        problems = (*before.problems, *offer_problems, *condense_problems, *after.problems)
        return WorkResult(
            sealed=(*before.sealed, *after.sealed),
            commits=(*before.commits, *learnt.commits, *condensed.commits, *after.commits),
            tags=tuple(dict.fromkeys((*before.tags, *after.tags))),
            branches=(*before.branches, *after.branches),
            waiting=after.waiting or condensed.waiting,
            problems=tuple(dict.fromkeys(problems)),
            learnt=replace(learnt, drafts=(*learnt.drafts, *offers)),
            summed=condensed,
        )

    def recover(self, *, is_requested: bool = False) -> WorkResult:
        recovered = self._recovery.recover(is_requested=is_requested)
        return WorkResult(
            recovered.sealed, recovered.commits, waiting=recovered.waiting, problems=recovered.problems
        )

    # ------------------------------------------------------------ commits

    def is_commit_due(self) -> bool:
        """Whether the interval between two commits of notes has passed."""
        last_commit = self._history.last_commit_of("memory", "identity", "maintenance")
        minutes = self._config.lifecycle.commit_interval_minutes
        return last_commit is None or self._clock.now() - last_commit >= timedelta(minutes=minutes)

    def list_uncommitted_transcripts(self) -> list[str]:
        """The finalized transcripts that the next run commits."""
        loose = self._session_committer.find_loose().ready
        return [state.path for state, _ in [*self._recovery.list_uncommitted(), *loose] if state.path]

    def commit(self) -> WorkResult:
        """Recover, commit changed notes, tag the day, prune explored branches, and push if configured."""
        with files.explain_disk_errors("do the work that is due"):
            self._recovery.restore_states(again=True)
            recovered = self.recover(is_requested=True)
            loose = self._session_committer.commit_loose()
            note_outcome = self._note_committer.commit_notes(self._composer())
            if note_outcome.waiting:
                return replace(recovered, waiting=note_outcome.waiting)
            tags, branches, problems = self._tidy_refs()
            sweep(self._home, self._git)
            return WorkResult(
                sealed=recovered.sealed,
                commits=(*recovered.commits, *loose.commits, *note_outcome.commits),
                tags=tuple(tags),
                branches=tuple(branches),
                waiting=recovered.waiting,
                problems=(*recovered.problems, *loose.left, *note_outcome.left, *problems, *self._push()),
            )

    def _tidy_refs(self) -> tuple[list[str], list[str], list[Problem]]:
        """The new tags, the deleted branches, and problems."""
        settings, now = self._config.git, self._clock.now()
        skipped: list[Problem] = []
        with self._committer.at_work():
            tags = tag_periods(
                self._git,
                now,
                daily=settings.auto_tag_daily,
                weekly=settings.auto_tag_weekly,
                skipped=skipped,
            )
            branches, problems = prune_explore_branches(
                self._git, settings.branch, settings.explore_days, now
            )
            pack_loose_objects(self._git)
        return tags, branches, [*skipped, *problems]

    def _push(self) -> list[Problem]:
        settings = self._config.git
        if not settings.auto_push or settings.remote is None:
            return []
        error = mask_secret(push_branch(self._git, settings.remote))
        remote = mask_secret(settings.remote)
        return [Problem(remote, f"could not be pushed to: {error}", level="warning")] if error else []


def _run_step(step: Callable[[], _Result], nothing: _Result) -> tuple[_Result, tuple[Problem, ...]]:
    """Run a step. A file that is in conflict, locked, a link or not checked out stops this step only."""
    try:
        return step(), ()
    except MergeConflict as error:
        message = f"{error.why}, so some of the work waits."
        return nothing, (Problem(error.path, message, error.todo),)
    except UnsafePath as error:
        message = f"cannot be used ({error.why}), so some of the work waits."
        todo = UNLOCK if isinstance(error, Locked) else "Put a plain file in its place."
        return nothing, (Problem(error.path, message, todo),)
    except NotCheckedOut as error:
        message = "is in git but not checked out here, so some of the work waits."
        return nothing, (Problem(error.path, message, f"{CHECK_OUT}{error.path}"),)

"""Learn everything again, on a branch and in a work tree of its own.

What must stay true:
- nothing in the home changes (rebuild/merge.py merges the result);
- only lines that were added automatically are learned again (rebuild/strip.py); drafts follow the same
  policies;
- the result depends only on the base commit and the recorded answers of models: the same input gives the same
  bytes, also after a kill and a restart.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from tacit.clock import Clock
from tacit.condense.day import journal_path
from tacit.condense.periods import Period, find_due
from tacit.condense.prune import JOURNAL_FOLDER, prune_journals
from tacit.condense.service import MemoryCondenser
from tacit.condense.week import line_token, parse_page
from tacit.config import Config
from tacit.errors import TacitError, UsageError
from tacit.git.conflicts import NoteTree
from tacit.git.note_committer import NoteCommitter
from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import CONVERSATIONS, Home
from tacit.learn.attribution import SpeakerAttribution
from tacit.learn.drafts import DraftMaker, policy_for_change
from tacit.learn.entities import load_known_names
from tacit.learn.extractors.registry import load_extractors
from tacit.learn.model import Change
from tacit.learn.note_changes import NoteBuffer, private_note, redirect_changes
from tacit.learn.pipeline import learn
from tacit.learn.runs import RunLog
from tacit.learn.service import MEMORY_FULL, group_by_path
from tacit.learn.taint import InjectedTexts
from tacit.llm.chat import ChatError
from tacit.llm.structured import Ask, BadAnswer
from tacit.markdown import comment, notes
from tacit.markdown.comment import Provenance, is_trusted
from tacit.rebuild.options import AskByTask, LearningSetup, describe_settings
from tacit.rebuild.store import Rebuild, RebuildState, open_rebuild, read_notes
from tacit.rebuild.strip import (
    DAY_EXTRACTOR,
    REBUILD_SUBJECT,
    LearnedLine,
    RemovedLines,
    find_removed,
    learned_lines,
    restore_orders,
    strip_note,
)
from tacit.review.model import ChangeRequest
from tacit.review.store import ReviewQueue, draft_key
from tacit.sessions.policy import SessionProfiles
from tacit.transcripts import writer
from tacit.transcripts.attribution import AttributedTranscript

CHECKPOINT_EVERY = 500  # conversations per commit of the branch
_MAX_BAD_ANSWERS = 20
_ARCHIVED_JOURNAL = "archive/journal/"
_ENTITY_FOLDERS = ("knowledge/people/", "knowledge/projects/")

RebuildProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class RebuildResult:
    name: str
    branch: str
    base: str
    commit: str
    conversations: int
    resumed: int = 0  # conversations that an earlier run had finished
    left_out: int = 0  # lines that a person had removed
    failed: tuple[str, ...] = ()  # reasons of failed extractions, each once
    was_done: bool = False


class Replica(Protocol):
    """The services of the home in the work tree of a rebuild."""

    home: Home
    clock: Clock
    profiles: SessionProfiles
    reviews: ReviewQueue
    runs: RunLog

    @property
    def attribution(self) -> SpeakerAttribution: ...

    @property
    def drafts(self) -> DraftMaker: ...

    @property
    def condenser(self) -> MemoryCondenser: ...


OpenReplica = Callable[[Home, Config, Callable[[], datetime], AskByTask], Replica]


class Rebuilder:
    def __init__(
        self,
        home: Home,
        git: Git,
        *,
        committer: NoteCommitter,
        list_uncommitted_transcripts: Callable[[], list[str]],
        open_replica: OpenReplica,
    ) -> None:
        self._home, self._git, self._committer = home, git, committer
        self._list_uncommitted_transcripts = list_uncommitted_transcripts
        self._open_replica = open_replica

    def rebuild(
        self,
        name: str,
        setup: LearningSetup,
        tick: RebuildProgress = lambda done, total: None,
        taken_over: Collection[str] = (),
    ) -> RebuildResult:
        """Learn from all conversations on the branch extract/NAME. An unfinished rebuild is resumed; a
        finished one is updated to the current home. `taken_over`: notes that match the branch already and
        need not be committed."""
        target = open_rebuild(self._home, self._git, name)
        with target.lock():
            base = self._require_clean_base(taken_over)
            previous, wanted = target.state(), RebuildState(base, setup.settings)
            if previous is not None and previous.settings != wanted.settings:
                raise UsageError(
                    f"{name} was begun with other settings ({describe_settings(previous.settings)}). "
                    f"Choose another --name, or remove it with: tacit rebuild --drop {name}"
                )
            replay = _Replay(self._home, self._git, target, setup, base, self._open_replica)
            if previous == wanted._replace(done=True) and target.tip is not None:
                return replay.result(target.tip, was_done=True)
            last_done = target.resume() if previous == wanted else None
            if last_done is None:
                target.begin(wanted)
            commit = replay.run(last_done or "", tick)
            target.keep(wanted._replace(done=True))
            return replay.result(commit)

    def _require_clean_base(self, taken_over: Collection[str]) -> str:
        base = self._git.head()
        changed: list[str] = []
        if base is not None:
            changes = self._committer.note_changes().changes
            changed = [path for path in changes if path not in taken_over]
            changed += self._list_uncommitted_transcripts()
        if base is None or changed:
            problem = f"{changed[0]} is not committed" if changed else "There is no commit yet"
            others = f", nor are {len(changed) - 1} more files" if len(changed) > 1 else ""
            raise UsageError(f"{problem}{others}, and a rebuild begins from a commit. Run: tacit run commit")
        return base


def replayable_transcripts(root: Path, git: Git, base: str) -> list[str]:
    """The finalized transcripts of the commit that still exist, oldest first."""
    paths = (path for path in git.tree(base, CONVERSATIONS) if path.endswith(".md"))
    return sorted(path for path in paths if (root / path).is_file() and writer.is_sealed(root / path))


class _Replay:
    """One run of a rebuild."""

    def __init__(
        self,
        home: Home,
        git: Git,
        target: Rebuild,
        setup: LearningSetup,
        base: str,
        open_replica: OpenReplica,
    ) -> None:
        self._git, self._rebuild, self._setup, self._base = git, target, setup, base
        self._open_replica = open_replica
        self._moment = _commit_date(git, base)
        self._names = tuple(label.partition("/")[0] for label in setup.settings.extractors)
        self._transcripts = replayable_transcripts(home.root, git, base)
        self._models = _WatchedModels(setup.ask)
        self._resumed = self._left_out = 0
        self._failed: list[str] = []

    def result(self, commit: str, *, was_done: bool = False) -> RebuildResult:
        return RebuildResult(
            self._rebuild.name,
            self._rebuild.branch,
            self._base,
            commit,
            len(self._transcripts),
            self._resumed,
            self._left_out,
            tuple(dict.fromkeys(self._failed)),
            was_done,
        )

    def run(self, last_done: str, tick: RebuildProgress) -> str:
        """Replay everything after the transcript `last_done`. Returns the name of the last commit."""
        self._open()
        self._resumed = self._transcripts.index(last_done) + 1 if last_done in self._transcripts else 0
        if not self._resumed:
            self._strip_notes()
        finished = committed = self._resumed
        self._refresh(finished)
        for day, paths in groupby(self._transcripts[self._resumed :], key=_day_of):
            if finished - committed >= CHECKPOINT_EVERY:
                self._checkpoint(finished)
                committed = finished
            conversations = []
            for path in paths:
                conversations += self._learn_transcript(path)
                finished += 1
                tick(finished, len(self._transcripts))
            self._summarise_day(day, conversations)
        return self._finish()

    # ------------------------------------------------------------ loading

    def _open(self) -> None:
        home = Home(self._rebuild.root)
        # Work there is for the branch alone: nothing is committed, tagged or pushed on the side.
        self._replica = self._open_replica(
            home, self._setup.config, lambda: self._moment, self._models.ask_for
        )
        self._tree = NoteTree(home.root)
        self._pages = NoteBuffer(self._tree, self._setup.config.lifecycle.memory_line_cap)
        self._extractors = load_extractors(self._names).extractors
        self._finished_days = self._find_finished_days()
        self._notes = read_notes(self._git, self._base, "knowledge", "archive")
        self._removed_lines = RemovedLines(find_removed(self._git, self._base), self._present_lines())

    def _find_finished_days(self) -> frozenset[str]:
        """The days that were over when the base was committed."""
        now = self._replica.clock.local_now()
        assert now.tzinfo is not None
        days = {_day_of(path): now for path in self._transcripts}
        schedule = self._setup.config.lifecycle.condensation_schedule
        periods = find_due(schedule, now.tzinfo, now, days, {})
        self._weeks = [period for period in periods if period.kind == "week"]
        return frozenset(period.name for period in periods if period.kind == "day")

    def _present_lines(self) -> list[LearnedLine]:
        paths = [
            *self._in_base("knowledge"),
            *(path for path in self._in_base("archive") if path.startswith(_ARCHIVED_JOURNAL)),
        ]
        return [line for path in paths for line in learned_lines(path, self._notes[path])]

    def _in_base(self, folder: str) -> list[str]:
        return [path for path in self._notes if path.startswith(f"{folder}/")]

    def _refresh(self, finished: int) -> None:
        """Restore the state between conversations from the files, because a resumed run has only these."""
        last = self._transcripts[finished - 1] if finished else ""
        self._pages.clear()
        self._known_names = load_known_names(self._replica.home)
        self._keys = self._replica.reviews.keys()
        self._drafts: list[ChangeRequest] = []
        self._contradictions: list[tuple[str, str, Change]] = []
        self._injected_texts, self._later_lines = InjectedTexts(), dict[str, list[str]]()
        for path in self._tree.files("knowledge", "topics"):
            if path.endswith(".md"):
                self._add_given(notes.decode(self._tree.read(path)), last)

    def _add_given(self, text: str, last: str) -> None:
        """Add the lines that agents may have been given; learned lines count after their conversation."""
        lines_now: list[str] = []
        for line in text.split("\n"):
            mark = comment.read(line)[1]
            if mark is None or (newest := max(mark.transcripts)) <= last:
                lines_now.append(line)
            else:
                self._later_lines.setdefault(newest, []).append(line)
        self._injected_texts.add("\n".join(lines_now))

    # ------------------------------------------------------------ stripping

    def _strip_notes(self) -> None:
        for path in [*self._tree.files("archive/journal")]:
            target = f"{JOURNAL_FOLDER}{path.removeprefix(_ARCHIVED_JOURNAL)}"
            if not (self._tree.root / target).exists():
                (self._tree.root / target).parent.mkdir(parents=True, exist_ok=True)
                (self._tree.root / path).rename(self._tree.root / target)
        transcripts = set(self._transcripts)
        settled = self._removed_lines.transcripts(DAY_EXTRACTOR)

        def is_relearned(mark: Provenance) -> bool:
            return self._is_relearned(mark, settled) and transcripts.issuperset(mark.transcripts)

        for path in [*self._tree.files("knowledge")]:
            if path.endswith(".md"):
                strip_note(self._tree, path, is_relearned, settled)

    def _is_relearned(self, mark: Provenance, settled: frozenset[str]) -> bool:
        """Whether such a line was added automatically and would be added again."""
        config = self._setup.config
        if not is_trusted(mark.trust) or not config.lifecycle.auto_apply:
            return False
        if mark.name == DAY_EXTRACTOR:
            is_over = all(_day_of(path) in self._finished_days for path in mark.transcripts)
            return self._condenses and is_over and settled.isdisjoint(mark.transcripts)
        policy = getattr(config.review, mark.name, config.review.others)
        return mark.name in self._names and policy == "auto"

    @property
    def _condenses(self) -> bool:
        return self._setup.settings.condenses and self._setup.config.review.journal == "auto"

    # ------------------------------------------------------------ one conversation

    def _learn_transcript(self, path: str) -> list[AttributedTranscript]:
        """Returns the attributed transcript; empty if nothing is learned from it."""
        conversation = self._replica.attribution.attribute(path, injected=self._injected_texts)
        for line in self._later_lines.pop(path, ()):
            self._injected_texts.add(line)
        if conversation is None:
            return []
        learned = learn(conversation, self._known_names, self._extractors, self._models.ask_for("extract"))
        self._check_models(learned.failed.values())
        changes = [
            change
            for change in redirect_changes(learned.changes, self._replica.profiles, self._pages.head)
            if not self._was_removed(change)
        ]
        automatic = [change for change in changes if policy_for_change(self._setup.config, change) == "auto"]
        over_cap = [
            change
            for note, note_changes in group_by_path(automatic).items()
            for change in self._add_to_note(note, note_changes)
        ]
        self._propose([change for change in changes if change not in automatic])
        self._propose(over_cap, MEMORY_FULL)
        return [conversation]

    def _add_to_note(self, path: str, changes: Sequence[Change]) -> Sequence[Change]:
        """Add the changes to the note. Returns those that had no room."""
        is_new = self._pages.head(path) is None
        outcome = self._pages.add(path, changes, supersede=self._setup.config.review.supersede == "auto")
        if outcome is None:
            return changes
        for change in outcome.added:
            self._injected_texts.add(change.text)
        self._contradictions += [(path, line, change) for line, change in outcome.contradicts]
        if is_new and outcome.added and path.startswith(_ENTITY_FOLDERS):
            self._pages.flush([path])
            self._known_names = load_known_names(self._replica.home)
        return ()

    def _was_removed(self, change: Change) -> bool:
        is_out = self._removed_lines.has(change)
        self._left_out += is_out
        return is_out

    def _propose(self, changes: Sequence[Change], reason: str = "") -> None:
        """Add drafts, except for changes that were proposed before or are in their note by now."""
        for _, group in groupby(sorted(changes, key=_draft_kind), key=_draft_kind):
            lines = list(group)
            if all(
                draft_key(draft) in self._keys for draft in self._replica.drafts.draft_changes(lines, reason)
            ):
                continue
            new = [change for change in lines if not self._pages.says(change)]
            self._drafts += self._replica.drafts.draft_changes(new, reason)

    # ------------------------------------------------------------ days, checkpoints, the end

    def _summarise_day(self, day: str, conversations: Sequence[AttributedTranscript]) -> None:
        if not self._condenses or day not in self._finished_days:
            return
        page = journal_path(day)
        self._pages.flush([page, private_note(page, self._pages.head)])
        periods = [Period("day", day)]
        summary = self._replica.condenser.condense(
            periods, prune=False, archive=False, conversations={day: conversations}
        )
        self._check_models(())
        for edit in summary.edits:
            self._pages.drop(edit.path)
            old_lines = set(_lines(edit.old))
            for line in _lines(edit.new):
                if line not in old_lines:
                    self._injected_texts.add(line)

    def _checkpoint(self, finished: int) -> None:
        self._settle()
        last = self._transcripts[finished - 1]
        subject = (
            f"{REBUILD_SUBJECT}{self._rebuild.name}, {finished} of {len(self._transcripts)} conversations"
        )
        self._rebuild.commit(subject, last, self._moment)
        self._refresh(finished)

    def _settle(self) -> None:
        self._pages.flush()
        with files.hold_lock(self._replica.home.lock):
            self._replica.reviews.propose(self._drafts)
            self._replica.reviews.propose(self._corrections())
        self._drafts, self._contradictions = [], []

    def _corrections(self) -> Iterator[ChangeRequest]:
        """Drafts for contradicted lines of people, unless they were proposed before."""
        known_reasons = {decision.why for decision in self._replica.reviews.decisions()}
        for path, line, change in self._contradictions:
            drafts = self._replica.drafts.draft_contradictions(path, [(line, change)])
            yield from (draft for draft in drafts if draft.reason not in known_reasons)

    def _finish(self) -> str:
        self._settle()
        self._roll_up()
        self._archive()
        restore_orders(self._tree, self._notes)
        last = self._transcripts[-1] if self._transcripts else ""
        return self._rebuild.commit(
            f"{REBUILD_SUBJECT}regenerated knowledge with {self._rebuild.name}", last, self._moment
        )

    def _roll_up(self) -> None:
        """Roll the new journal lines up into MEMORY.md. The old lines were considered in their time."""
        if not self._condenses or not self._weeks:
            return
        seen = {str(week): [*map(line_token, _week_lines(self._notes, week))] for week in self._weeks}
        self._replica.runs.condense(seen, self._moment)
        self._replica.condenser.condense(self._weeks, prune=False, archive=False)
        self._check_models(())

    def _archive(self) -> None:
        """Archive the pages that were archived before, and new pages that are old enough."""
        root = self._tree.root
        days = self._setup.config.lifecycle.journal_retention_days
        expired = {
            move.path
            for move in prune_journals(
                self._tree.files("knowledge/journal"), self._replica.clock.local_now().date(), days
            )
        }
        archived_before = {
            path.replace(_ARCHIVED_JOURNAL, JOURNAL_FOLDER, 1) for path in self._in_base("archive")
        }
        for path in sorted((expired | archived_before) - self._notes.keys()):
            target = root / f"{_ARCHIVED_JOURNAL}{path.removeprefix(JOURNAL_FOLDER)}"
            if (root / path).is_file() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                (root / path).rename(target)

    def _check_models(self, failed: Iterable[str]) -> None:
        self._failed += failed
        if self._models.error:
            raise TacitError(
                f"{self._rebuild.name} is not finished: {self._models.error} Answers are kept. "
                "Run the same command to continue."
            )


class _WatchedModels:
    """The models of a rebuild. If none can be called, or if one only gives bad answers, `error` says why, and
    the rebuild stops for now; a single bad answer only leaves something out."""

    def __init__(self, ask_for: AskByTask) -> None:
        self._ask_for = ask_for
        self._bad_answers = 0  # in a row
        self.error = ""

    def ask_for(self, task: str) -> Ask | None:
        task_ask = self._ask_for(task)
        if task_ask is None:
            return None

        def ask(task: str, system: str, user: str, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
            try:
                items = task_ask(task, system, user, schema)
            except BadAnswer as error:
                self._bad_answers += 1
                if self._bad_answers == _MAX_BAD_ANSWERS:
                    self.error = f"{_MAX_BAD_ANSWERS} answers in a row could not be used. {error}"
                raise
            except ChatError as error:
                self.error = self.error or str(error)
                raise
            self._bad_answers = 0
            return items

        return ask


def _lines(data: bytes | None) -> list[str]:
    return [] if data is None else notes.decode(data).split("\n")


def _draft_kind(change: Change) -> tuple[str, str]:
    return change.extractor.partition("/")[0], change.trust


def _day_of(path: str) -> str:
    return "-".join(path.split("/")[2:5])


def _commit_date(git: Git, commit: str) -> datetime:
    return datetime.fromisoformat(git.run("log", "-1", "--format=%cI", commit).decode().strip())


def _week_lines(base_notes: Mapping[str, bytes], week: Period) -> Iterator[str]:
    for path in map(journal_path, week.days):
        data = base_notes.get(path) or base_notes.get(
            f"{_ARCHIVED_JOURNAL}{path.removeprefix(JOURNAL_FOLDER)}"
        )
        yield from (line.text for line in parse_page(path, notes.decode(data or b"")))

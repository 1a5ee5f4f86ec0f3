"""One job in a fixed order: daily summaries, weekly rollups, the monthly review, then pruning and archiving;
one commit, which names the condensed periods.

What must stay true:
- a period is condensed once, even with two daemons or two machines, and missed periods are caught up;
- the job is all or nothing, and a restart after a kill gives the same result;
- a note that a person edited meanwhile stays as it is: the change to it becomes a draft.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from tacit.clock import Clock
from tacit.condense.day import add_summary
from tacit.condense.periods import Period, claim_periods, find_due, is_due
from tacit.condense.plan import CondensePlan, PlanInput, plan
from tacit.condense.prune import archive_path
from tacit.config import Config
from tacit.errors import Locked, MergeConflict, StoreError
from tacit.git.attributes import find_blocking_filters, split_filter
from tacit.git.conflicts import NoteTree, conflict_problem, find_note_conflicts
from tacit.git.note_committer import NoteCommitter
from tacit.git.objects import store_unreferenced_blob
from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import CONFIG, CONVERSATIONS, REVIEWED, Home
from tacit.home.listing import walk
from tacit.learn.attribution import SpeakerAttribution
from tacit.learn.drafts import DraftMaker
from tacit.learn.model import Change, Move, Rewrite
from tacit.learn.note_changes import redirect_changes
from tacit.learn.runs import CONDENSED, RunLog
from tacit.learn.service import group_by_path
from tacit.llm.structured import Ask
from tacit.markdown import comment, notes
from tacit.markdown.comment import is_trusted
from tacit.markdown.links import find_links, list_link_names
from tacit.review.model import ChangeRequest
from tacit.review.policies import find_policy, waiting_policy
from tacit.review.service import NoteEdit, NoteEditor
from tacit.review.store import ReviewQueue
from tacit.sessions.policy import SessionProfiles
from tacit.transcripts import writer
from tacit.transcripts.attribution import AttributedTranscript
from tacit.workspaces.note_store import read_note

_NOTE_FOLDERS = ("knowledge", "archive")
_PRUNED_FOLDER = "archive/memory/"


@dataclass(frozen=True, slots=True)
class CondenseResult:
    """What one run did, or would do."""

    periods: tuple[str, ...] = ()
    edits: tuple[NoteEdit, ...] = ()
    drafts: tuple[ChangeRequest, ...] = ()
    commits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    waiting: str = ""


class MemoryCondenser:
    """`ask` returns the model for a task, or None."""

    NOTHING = CondenseResult()

    def __init__(
        self,
        home: Home,
        config: Config,
        clock: Clock,
        *,
        git: Git,
        committer: NoteCommitter,
        runs: RunLog,
        reviews: ReviewQueue,
        editor: NoteEditor,
        attribution: SpeakerAttribution,
        profiles: SessionProfiles,
        drafts: DraftMaker,
        ask: Callable[[str], Ask | None],
    ) -> None:
        self._home, self._config, self._clock, self._git = home, config, clock, git
        self._committer, self._runs, self._reviews, self._editor = committer, runs, reviews, editor
        self._attribution, self._profiles, self._drafts, self._ask = attribution, profiles, drafts, ask

    def condense_due(self) -> CondenseResult:
        periods, prune = self.find_due_periods(), self.is_prune_due()
        if not periods and not prune:
            return self.NOTHING
        return self.condense(periods, prune=prune, archive=prune)

    def find_due_periods(self) -> list[Period]:
        now = self._clock.local_now()
        assert now.tzinfo is not None
        schedule = self._config.lifecycle.condensation_schedule
        return find_due(schedule, now.tzinfo, now, self._last_activity(), self._runs.list_condense_times())

    def is_prune_due(self) -> bool:
        now = self._clock.local_now()
        assert now.tzinfo is not None
        return is_due(self._config.lifecycle.pruning_schedule, now.tzinfo, self._runs.find_last_prune(), now)

    def condense(
        self,
        periods: Sequence[Period],
        *,
        prune: bool,
        archive: bool,
        dry_run: bool = False,
        conversations: Mapping[str, Sequence[AttributedTranscript]] | None = None,
    ) -> CondenseResult:
        """Condense these periods and run these steps. `dry_run`: only report what would be done.
        `conversations`: those of each day, if the caller has read them already."""
        if conflict := next(
            find_note_conflicts(self._home), None
        ):  # before paying a model for text that cannot be written
            raise MergeConflict(conflict.where, conflict.what.partition(",")[0], conflict.todo)
        with files.hold_lock(self._home.private / "lifecycle.lock", 0.5):
            claimed, waiting = list(periods), ""
            if not dry_run and periods and self._config.git.auto_push:
                names, waiting = claim_periods(
                    self._home, self._git, self._config.git.remote, list(map(str, periods))
                )
                claimed = [period for period in periods if str(period) in names]
            if not (claimed or prune or archive):
                return CondenseResult(waiting=waiting)
            transcripts_by_day = {
                period.name: _finalized_transcripts(self._home, period.name)
                for period in claimed
                if period.kind == "day"
            }
            if conversations is None:
                conversations = {
                    day: self._read_conversations(paths) for day, paths in sorted(transcripts_by_day.items())
                }
            planned = self._make_plan(claimed, conversations, prune=prune, archive=archive)
            result = (
                self._preview(planned)
                if dry_run
                else self._carry_out(planned, transcripts_by_day, pruned=prune or archive)
            )
            return replace(
                result, periods=tuple(map(str, planned.periods)), notes=planned.notes, waiting=waiting
            )

    def _last_activity(self) -> dict[str, datetime]:
        """The days with conversations, each with the time of the last one."""
        latest: dict[str, datetime] = {}
        condensed, seen = self._runs.list_condense_times(), self._runs.list_condensed_sources()
        for path, _ in walk(str(self._home.root), CONVERSATIONS):
            day = "-".join(path.split("/")[2:5])
            summarised = seen.get(f"day {day}")
            if summarised is not None and path in summarised:
                moment: datetime | None = condensed[f"day {day}"]
            else:
                moment = writer.read_end(self._home.root / path)
                if moment is not None and summarised is not None:
                    moment = self._clock.now()  # it arrived after the summary, however early it ended
            if moment is not None and (day not in latest or latest[day] < moment):
                latest[day] = moment
        return latest

    def _make_plan(
        self,
        periods: Sequence[Period],
        conversations: Mapping[str, Sequence[AttributedTranscript]],
        *,
        prune: bool,
        archive: bool,
    ) -> CondensePlan:
        looks_back = archive or any(period.kind == "month" for period in periods)
        return plan(
            self._plan_input(wants_uses=looks_back),
            conversations,
            periods,
            now=self._clock.local_now(),
            lifecycle=self._config.lifecycle,
            review=self._config.review,
            ask=self._ask_function(),
            prune=prune,
            archive=archive,
        )

    def _ask_function(self) -> Ask | None:
        """One function for all these tasks; None if no model is configured."""
        if self._ask("condense") is None:
            return None

        def ask(task: str, system: str, user: str, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
            task_ask = self._ask(task)
            assert task_ask is not None  # all tasks have the same settings
            return task_ask(task, system, user, schema)

        return ask

    def _read_conversations(self, paths: Iterable[str]) -> list[AttributedTranscript]:
        conversations = map(self._attribution.attribute, paths)
        return [conversation for conversation in conversations if conversation is not None]

    def _plan_input(self, *, wants_uses: bool) -> PlanInput:
        tree = NoteTree(self._home.root)
        paths = [path for path in tree.files(*_NOTE_FOLDERS) if path.endswith(".md")]
        rolled = self._runs.list_condensed_sources()
        if not wants_uses:
            return PlanInput(_make_reader(self._home), paths, rolled=rolled)
        texts = {}
        for path in _linking_files(self._home, tree):
            with suppress(StoreError):  # the links of a locked note are unknown
                texts[path] = notes.decode(tree.read(path))
        changed = {path: day for path, day in self._change_days().items() if path in texts}
        return PlanInput(_make_reader(self._home), paths, changed, *_count_references(texts), rolled)

    def _change_days(self) -> dict[str, date]:
        """The day of each note's last commit, and today for notes edited since. Notes that were never
        committed are missing."""
        output = self._git.run("log", "--format=%x01%cI", "--name-only", "-z", "--", "knowledge", timeout=300)
        days: dict[str, date] = {}
        day = date.min
        for field in output.decode("utf-8", "surrogateescape").replace("\n", "\0").split("\0"):
            if field.startswith("\x01"):
                day = datetime.fromisoformat(field[1:]).astimezone(self._clock.now().tzinfo).date()
            elif field:
                days.setdefault(field, day)
        return days | {
            edit.path: self._clock.local_now().date() for edit in self._committer.note_changes().edits
        }

    def _sort_by_policy(self, planned: CondensePlan) -> tuple[list[NoteEdit], list[ChangeRequest]]:
        """Split the plan into edits to apply now and drafts for review."""
        automatic = [
            item for item in planned.changes if self._is_auto("journal", is_own=is_trusted(item.trust))
        ]
        for_review = [*(item for item in planned.changes if item not in automatic), *planned.untrusted]
        automatic, for_review = (
            list(redirect_changes(group, self._profiles, lambda path: read_note(self._home, path)))
            for group in (automatic, for_review)
        )
        edits = [*self._page_edits(automatic, planned.sessions)]
        drafts = list(self._drafts.draft_changes(for_review))
        proposed_paths = {
            item.path
            for item in planned.rewrites
            if not self._is_auto(item.category, is_own=is_trusted(item.trust))
        }
        for item in planned.rewrites:
            if item.path.startswith(_PRUNED_FOLDER):
                continue  # entries are archived when they leave MEMORY.md
            if item.path in proposed_paths or (rewrite_edit := _rewrite_edit(self._home, item)) is None:
                drafts.append(self._rewrite_draft(item, planned.notes))
            else:
                edits += [*self._editor.archive_removals(rewrite_edit), rewrite_edit]
        filters = find_blocking_filters(self._git, [move.to for move in planned.moves])
        for move in planned.moves:
            if split_filter(filters.get(move.to, ""))[1]:
                continue  # its place in the archive lacks the git filter, so it could not be committed there
            if self._is_auto(move.category, is_own=True):
                edits = _add_move(self._home, move, edits)
            else:
                drafts.append(self._move_draft(move))
        return [edit for edit in edits if edit.old != edit.new], drafts

    def _is_auto(self, category: str, *, is_own: bool) -> bool:
        return find_policy(self._config, category, is_own=is_own) == "auto"

    def _page_edits(
        self, changes: Sequence[Change], sessions: Mapping[str, Sequence[str]]
    ) -> Iterable[NoteEdit]:
        for path, page_changes in group_by_path(changes).items():
            old = read_note(self._home, path)
            text = add_summary(
                None if old is None else notes.decode(old),
                page_changes[0].day,
                page_changes,
                sessions.get(path, ()),
            )
            if text is not None:
                yield NoteEdit(path, old, notes.encode(text))

    def _rewrite_draft(self, rewrite: Rewrite, remarks: Sequence[str]) -> ChangeRequest:
        base = None if rewrite.old is None else notes.encode(rewrite.old)
        return self._drafts.draft_text(
            rewrite.path,
            base,
            rewrite.new,
            category=rewrite.category,
            reason=rewrite.reason,
            sources=rewrite.sources,
            remarks=remarks,
            trust=rewrite.trust,
        )

    def _move_draft(self, move: Move) -> ChangeRequest:
        data = read_note(self._home, move.path)
        return ChangeRequest(
            id="",
            form="move",
            category=move.category,
            policy=waiting_policy(find_policy(self._config, move.category, is_own=True)),
            reason=move.reason,
            made=self._clock.now().isoformat(timespec="seconds"),
            trust="agent",
            target=move.path,
            to=move.to,
            base=None if data is None else files.digest(data),
        )

    def _preview(self, planned: CondensePlan) -> CondenseResult:
        edits, drafts = self._sort_by_policy(planned)
        return CondenseResult(edits=tuple(edits), drafts=tuple(drafts))

    def _carry_out(
        self, planned: CondensePlan, transcripts_by_day: Mapping[str, Sequence[str]], *, pruned: bool
    ) -> CondenseResult:
        with files.hold_lock(self._home.lock):
            edits, drafts = self._sort_by_policy(planned)
            self._editor.write(edits)
            proposed = self._reviews.propose(drafts)
            _keep_bases(self._git, planned.rewrites, {draft.target for draft in proposed})
            paths = [edit.path for edit in edits]
            paths += [*map(self._reviews.path_of, proposed), *([REVIEWED] if proposed else [])]
            commits = self._commit(planned.periods, paths)
        seen_by_period = {
            str(period): transcripts_by_day.get(period.name, planned.rolled.get(period.name))
            for period in planned.periods
        }
        self._runs.condense(seen_by_period, self._clock.now(), pruned=pruned)
        return CondenseResult(edits=tuple(edits), drafts=tuple(proposed), commits=commits)

    def _commit(self, periods: Sequence[Period], paths: Sequence[str]) -> tuple[str, ...]:
        if not paths or not self._config.git.auto_commit:
            return ()
        kinds = {period.kind for period in periods}
        frequency = "weekly" if "week" in kinds else "daily" if kinds else ""
        subject = f"{frequency} condensation" if frequency else "pruning and archiving"
        trailers = "".join(f"{CONDENSED}: {period}\n" for period in periods)
        message = f"maintenance: {subject}\n\n{trailers}"
        return self._committer.commit_paths(message.rstrip("\n") + "\n", list(paths)).commits


def _count_references(texts: Mapping[str, str]) -> tuple[dict[str, int], frozenset[str]]:
    """How many notes link to each note, and which notes a person linked to."""
    counts: Counter[str] = Counter()
    by_hand: set[str] = set()
    for path, text in texts.items():
        handwritten = "\n".join(line for line in text.split("\n") if not comment.is_generated(line))
        counts.update(pointer.target for pointer in find_links(path, text))
        by_hand.update(pointer.target for pointer in find_links(path, handwritten))
    names = {path: _link_names(path, text) for path, text in texts.items()}
    return (
        {path: sum(counts[name] for name in aliases) for path, aliases in names.items()},
        frozenset(path for path, aliases in names.items() if by_hand.intersection(aliases)),
    )


def _link_names(path: str, text: str) -> tuple[str, ...]:
    """All names that a link may use for it."""
    note = notes.parse(text, path)
    return (path, *list_link_names(path, notes.find_title(note) or "", note.fields))


def _finalized_transcripts(home: Home, day: str) -> list[str]:
    """Without those in a merge conflict: once resolved, they count as conversations that came later."""
    folder = f"{CONVERSATIONS}/{day.replace('-', '/')}"
    paths = sorted(path for path, _ in walk(str(home.root), folder))
    return [
        path
        for path in paths
        if writer.is_sealed(home.root / path) and conflict_problem(home.root, path) is None
    ]


def _linking_files(home: Home, tree: files.Tree) -> list[str]:
    """Files whose links keep a note from moving. The config names some notes by path."""
    paths = [path for path in tree.files("knowledge", "topics") if path.endswith(".md")]
    return [*paths, *([CONFIG] if home.config.is_file() else [])]


def _make_reader(home: Home) -> Callable[[str], str | None]:
    def read(path: str) -> str | None:
        try:
            data = read_note(home, path)
        except Locked:  # unknown content, and writes to it are refused
            return None
        return None if data is None else notes.decode(data)

    return read


def _rewrite_edit(home: Home, rewrite: Rewrite) -> NoteEdit | None:
    """None if the file was edited since: that edit stays."""
    old = read_note(home, rewrite.path)
    same = None if rewrite.old is None else notes.encode(rewrite.old)
    return NoteEdit(rewrite.path, old, notes.encode(rewrite.new)) if old == same else None


def _add_move(home: Home, move: Move, edits: Sequence[NoteEdit]) -> list[NoteEdit]:
    """Move the note with the lines that this run adds to it. If a killed run left it in both places, only
    remove the original."""
    old = read_note(home, move.path)
    new = next((edit.new for edit in edits if edit.path == move.path), old)
    others = [edit for edit in edits if edit.path != move.path]
    if old is None or new is None:
        return list(edits)
    if read_note(home, archive_path(move.path)) == new:
        return [*others, NoteEdit(move.path, old, None)]
    if read_note(home, move.to) is not None:
        return list(edits)
    return [*others, NoteEdit(move.to, None, new), NoteEdit(move.path, old, None)]


def _keep_bases(git: Git, rewrites: Sequence[Rewrite], proposed: set[str]) -> None:
    """Keep the base texts for a later rebase: a MEMORY.md far over its cap is in no commit."""
    for rewrite in rewrites:
        if rewrite.path in proposed and rewrite.old is not None:
            store_unreferenced_blob(git, notes.encode(rewrite.old), rewrite.path)

"""Everything learned anew, on a branch and in a work tree of its own.

What must stay true:
- nothing in the home changes (memory/adopting.py takes it over);
- only lines that came by themselves are made anew (lifecycle/anew.py); drafts are made by the same policies;
- it depends on the commit that it was begun from and on what models answered, which is recorded: the same of
  both gives the same bytes, also after a kill and a second start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Any, NamedTuple

from tacit.config import Config
from tacit.errors import TacitError, UsageError
from tacit.lifecycle import calendar
from tacit.lifecycle.anew import DAY, Gone, Learned, in_old_order, stripped
from tacit.lifecycle.archive import JOURNAL, prune_journals
from tacit.lifecycle.calendar import Period
from tacit.lifecycle.condense.day import page_of
from tacit.lifecycle.condense.week import found_in, token_of
from tacit.lifecycle.extractors.registry import chosen
from tacit.lifecycle.hearing import Given
from tacit.lifecycle.learn import learn
from tacit.llm.chat import ChatError
from tacit.llm.items import Ask, BadAnswer
from tacit.memory.condensing import condense
from tacit.memory.hearing import hear
from tacit.memory.learning import FULL, by_path, contradictions, drafts_of
from tacit.memory.memory import Memory
from tacit.memory.names import known
from tacit.memory.pages import Pages
from tacit.memory.placing import placed
from tacit.memory.policies import policy_of
from tacit.memory.schedules import wall
from tacit.model.changes import Change, Heard, is_trusted
from tacit.model.review import Draft
from tacit.store import files, transcripts
from tacit.store.generated import REBUILT, marked_in, removed
from tacit.store.git import Git
from tacit.store.home import CONVERSATIONS, Home
from tacit.store.rebuilds import Rebuild, Settings, State, rebuild_of
from tacit.store.reviews import key_of
from tacit.text import marks, notes
from tacit.text.marks import Mark

EVERY = 500  # conversations between two commits of the branch
_MOST_BAD = 20
_ARCHIVED = "archive/journal/"
_NAMED = ("knowledge/people/", "knowledge/projects/")

Tick = Callable[[int, int], None]


class How(NamedTuple):
    """The way of learning."""

    config: Config
    ask: Callable[[str], Ask | None]  # by task, with what was answered before
    settings: Settings


@dataclass(frozen=True, slots=True)
class Rebuilt:
    name: str
    branch: str
    base: str
    commit: str
    conversations: int
    resumed: int = 0  # conversations that an earlier start had done
    left_out: int = 0  # lines that somebody had taken out
    failed: tuple[str, ...] = ()  # what no good answer was given to, each reason once
    was_done: bool = False


def rebuild(
    memory: Memory,
    name: str,
    how: How,
    tick: Tick = lambda done, total: None,
    taken_over: Collection[str] = (),
) -> Rebuilt:
    """Learn from all conversations on the branch extract/NAME. Begun before, it goes on where it was; done
    before, it is brought up to the home as it is now. `taken_over`: notes that are as the branch has them and
    need not be committed."""
    place = rebuild_of(memory.home, memory.git, name)
    with place.locked():
        base = _base(memory, taken_over)
        before, wanted = place.state(), State(base, how.settings)
        if before is not None and before.settings != wanted.settings:
            raise UsageError(
                f"{name} was begun in another way ({told(before.settings)}). Choose another --name, or "
                f"remove it with: tacit rebuild --drop {name}"
            )
        replay = _Replay(memory, place, how, base)
        if before == wanted._replace(done=True) and place.tip is not None:
            return replay.result(place.tip, was_done=True)
        to = place.resume() if before == wanted else None
        if to is None:
            place.begin(wanted)
        commit = replay.run(to or "", tick)
        place.keep(wanted._replace(done=True))
        return replay.result(commit)


def _base(memory: Memory, taken_over: Collection[str]) -> str:
    base = memory.git.head()
    changed = [path for path in memory.note_changes().changes if path not in taken_over] if base else []
    changed += memory.transcripts_to_commit() if base else []
    if base is None or changed:
        what = f"{changed[0]} is not committed" if changed else "There is no commit yet"
        more = f", nor are {len(changed) - 1} more files" if len(changed) > 1 else ""
        raise UsageError(
            f"{what}{more}, and what is learned anew begins from a commit. Run: tacit run commit"
        )
    return base


def replayed(memory: Memory, base: str) -> list[str]:
    """Sealed ones of the commit that are still there, oldest first."""
    found = (path for path in memory.git.tree(base, CONVERSATIONS) if path.endswith(".md"))
    root = memory.home.root
    return sorted(path for path in found if (root / path).is_file() and transcripts.is_sealed(root / path))


def told(settings: Settings) -> str:
    by = ", ".join(dict.fromkeys(model for _, model in settings.models)) or "rules"
    return f"{', '.join(settings.extractors)}, by {by}{'' if settings.condenses else ', without summaries'}"


class _Replay:
    """One rebuild while it works."""

    def __init__(self, memory: Memory, place: Rebuild, how: How, base: str) -> None:
        self._live, self._place, self._how, self._base = memory, place, how, base
        self._when = _date_of(memory.git, base)
        self._names = tuple(label.partition("/")[0] for label in how.settings.extractors)
        self._transcripts = replayed(memory, base)
        self._down = ""  # why no model can be asked
        self._bad = 0  # answers in a row that could not be used
        self._resumed = self._left_out = 0
        self._failed: list[str] = []

    def result(self, commit: str, *, was_done: bool = False) -> Rebuilt:
        return Rebuilt(
            self._place.name,
            self._place.branch,
            self._base,
            commit,
            len(self._transcripts),
            self._resumed,
            self._left_out,
            tuple(dict.fromkeys(self._failed)),
            was_done,
        )

    def run(self, to: str, tick: Tick) -> str:
        """From behind the transcript `to` to the end; the name of the last commit."""
        self._open()
        self._resumed = self._transcripts.index(to) + 1 if to in self._transcripts else 0
        if not self._resumed:
            self._strip()
        done = kept = self._resumed
        self._refresh(done)
        for day, some in groupby(self._transcripts[self._resumed :], key=_day_of):
            if done - kept >= EVERY:
                self._checkpoint(done)
                kept = done
            heards = []
            for path in some:
                heards += self._learn(path)
                done += 1
                tick(done, len(self._transcripts))
            self._sum_up(day, heards)
        return self._finish()

    # ------------------------------------------------------------ what there is

    def _open(self) -> None:
        home = Home(self._place.root)
        # What is done there is for the branch alone: nothing is committed, tagged or pushed by the way.
        self._anew = Memory(
            home, self._how.config, zone=self._live.zone, now=lambda: self._when, ask=self._ask
        )
        self._tree = files.Tree(home.root)
        self._pages = Pages(self._tree, self._how.config.lifecycle.memory_line_cap)
        self._extractors = chosen(self._names).extractors
        self._over = self._days_over()
        self._notes = _notes_of(self._live.git, self._base)
        self._gone = Gone(self._removed(), self._present())

    def _days_over(self) -> frozenset[str]:
        """Days that were over when the base was committed."""
        now = wall(self._anew)
        assert now.tzinfo is not None
        days = {_day_of(path): now for path in self._transcripts}
        schedule = self._how.config.lifecycle.condensation_schedule
        periods = calendar.due(schedule, now.tzinfo, now, days, {})
        self._weeks = [one for one in periods if one.kind == "week"]
        return frozenset(one.name for one in periods if one.kind == "day")

    def _removed(self) -> Iterator[Learned]:
        for one in removed(self._live.git, self._base):
            yield Learned(one.path, one.text, one.mark, until=one.at)

    def _present(self) -> list[Learned]:
        found = [
            *self._in_base("knowledge"),
            *(path for path in self._in_base("archive") if path.startswith(_ARCHIVED)),
        ]
        return [one for path in found for one in self._marked(path)]

    def _in_base(self, folder: str) -> list[str]:
        return [path for path in self._notes if path.startswith(f"{folder}/")]

    def _marked(self, path: str) -> Iterator[Learned]:
        for one in marked_in(notes.decode(self._notes[path]), path):
            yield Learned(path, one.text, one.mark, is_intact=not one.is_edited)

    def _refresh(self, done: int) -> None:
        """All that is remembered between conversations, from the files alone: who resumes has no more."""
        last = self._transcripts[done - 1] if done else ""
        self._pages.clear()
        self._known = known(self._anew)
        self._keys = self._anew.reviews.keys()
        self._drafts: list[Draft] = []
        self._contradicts: list[tuple[str, str, Change]] = []
        self._given, self._later = Given(), dict[str, list[str]]()
        for path in self._tree.files("knowledge", "topics"):
            if path.endswith(".md"):
                self._give(notes.decode(self._tree.read(path)), last)

    def _give(self, text: str, last: str) -> None:
        """What agents may have been given; a line that is from a conversation, only after that one."""
        now: list[str] = []
        for line in text.split("\n"):
            mark = marks.read(line)[1]
            if mark is None or (newest := max(mark.transcripts)) <= last:
                now.append(line)
            else:
                self._later.setdefault(newest, []).append(line)
        self._given.add("\n".join(now))

    # ------------------------------------------------------------ what goes first

    def _strip(self) -> None:
        for path in [*self._tree.files("archive/journal")]:
            to = f"{JOURNAL}{path.removeprefix(_ARCHIVED)}"
            if not (self._tree.root / to).exists():
                (self._tree.root / to).parent.mkdir(parents=True, exist_ok=True)
                (self._tree.root / path).rename(self._tree.root / to)
        there = set(self._transcripts)
        settled = self._gone.transcripts(DAY)

        def goes(mark: Mark) -> bool:
            return self._is_made_anew(mark, settled) and there.issuperset(mark.transcripts)

        for path in [*self._tree.files("knowledge")]:
            if path.endswith(".md"):
                self._strip_one(path, goes, settled)

    def _strip_one(self, path: str, goes: Callable[[Mark], bool], settled: frozenset[str]) -> None:
        text = notes.decode(self._tree.read(path))
        new = stripped(text, goes, settled)
        if new is None:
            (self._tree.root / path).unlink()
        elif new != text:
            (self._tree.root / path).write_bytes(notes.encode(new))

    def _is_made_anew(self, mark: Mark, settled: frozenset[str]) -> bool:
        """Whether such a line came by itself, and would again."""
        config = self._how.config
        if not is_trusted(mark.trust) or not config.lifecycle.auto_apply:
            return False
        if mark.name == DAY:
            is_over = all(_day_of(path) in self._over for path in mark.transcripts)
            return self._condenses and is_over and settled.isdisjoint(mark.transcripts)
        policy = getattr(config.review, mark.name, config.review.others)
        return mark.name in self._names and policy == "auto"

    @property
    def _condenses(self) -> bool:
        return self._how.settings.condenses and self._how.config.review.journal == "auto"

    # ------------------------------------------------------------ one conversation

    def _learn(self, path: str) -> list[Heard]:
        """Returns it as it was heard; nothing where nothing is learned from it."""
        heard = hear(self._anew, path, given=self._given)
        for line in self._later.pop(path, ()):
            self._given.add(line)
        if heard is None:
            return []
        learned = learn(heard, self._known, self._extractors, self._ask("extract"))
        self._go_on(learned.failed.values())
        changes = [
            change
            for change in placed(self._anew, learned.changes, self._pages.head)
            if not self._is_taken_out(change)
        ]
        own = [change for change in changes if policy_of(self._how.config, change) == "auto"]
        full = [change for note, mine in by_path(own).items() for change in self._add(note, mine)]
        self._wait([change for change in changes if change not in own])
        self._wait(full, FULL)
        return [heard]

    def _add(self, path: str, changes: Sequence[Change]) -> Sequence[Change]:
        """Into its note; what has no room there comes back."""
        is_new = self._pages.head(path) is None
        done = self._pages.add(path, changes, supersede=self._how.config.review.supersede == "auto")
        if done is None:
            return changes
        for change in done.added:
            self._given.add(change.text)
        self._contradicts += [(path, line, change) for line, change in done.contradicts]
        if is_new and done.added and path.startswith(_NAMED):
            self._pages.flush([path])
            self._known = known(self._anew)
        return ()

    def _is_taken_out(self, change: Change) -> bool:
        is_out = self._gone.has(change)
        self._left_out += is_out
        return is_out

    def _wait(self, changes: Sequence[Change], reason: str = "") -> None:
        """As drafts, unless they were proposed before or stand in their note by now."""
        for _, some in groupby(sorted(changes, key=_kind), key=_kind):
            lines = list(some)
            if all(key_of(draft) in self._keys for draft in drafts_of(self._anew, lines, reason)):
                continue
            new = [change for change in lines if not self._pages.says(change)]
            self._drafts += drafts_of(self._anew, new, reason)

    # ------------------------------------------------------------ a day, a part, all of it

    def _sum_up(self, day: str, heards: Sequence[Heard]) -> None:
        if not self._condenses or day not in self._over:
            return
        page = page_of(day)
        self._pages.flush([page])
        periods = [Period("day", day)]
        done = condense(self._anew, periods, prune=False, archive=False, heards={day: heards})
        self._go_on(())
        for edit in done.edits:
            self._pages.drop(edit.path)
            before = set(_lines(edit.old))
            for line in _lines(edit.new):
                if line not in before:
                    self._given.add(line)

    def _checkpoint(self, done: int) -> None:
        self._settle()
        last = self._transcripts[done - 1]
        subject = f"{REBUILT}{self._place.name}, {done} of {len(self._transcripts)} conversations"
        self._place.commit(subject, last, self._when)
        self._refresh(done)

    def _settle(self) -> None:
        self._pages.flush()
        with files.locked(self._anew.home.lock):
            self._anew.reviews.propose(self._drafts)
            self._anew.reviews.propose(self._corrections())
        self._drafts, self._contradicts = [], []

    def _corrections(self) -> Iterator[Draft]:
        """Lines of a person that were contradicted, unless that was proposed before."""
        before = {one.why for one in self._anew.reviews.decisions()}
        for path, line, change in self._contradicts:
            found = contradictions(self._anew, path, [(line, change)])
            yield from (draft for draft in found if draft.reason not in before)

    def _finish(self) -> str:
        self._settle()
        self._roll_up()
        self._archive()
        self._reorder()
        last = self._transcripts[-1] if self._transcripts else ""
        return self._place.commit(f"{REBUILT}regenerated knowledge with {self._place.name}", last, self._when)

    def _roll_up(self) -> None:
        """Into MEMORY.md what the journal says now. What it said before was looked at in its time."""
        if not self._condenses or not self._weeks:
            return
        seen = {str(week): [*map(token_of, self._said_in(week))] for week in self._weeks}
        self._anew.runs.condense(seen, self._when)
        condense(self._anew, self._weeks, prune=False, archive=False)
        self._go_on(())

    def _said_in(self, week: Period) -> Iterator[str]:
        for path in map(page_of, week.days):
            data = self._notes.get(path) or self._notes.get(f"{_ARCHIVED}{path.removeprefix(JOURNAL)}")
            yield from (one.text for one in found_in(path, notes.decode(data or b"")))

    def _archive(self) -> None:
        """Pages that had left the journal leave it again, and those that are new and old enough."""
        root = self._tree.root
        days = self._how.config.lifecycle.journal_retention_days
        old = {move.path for move in prune_journals(self._tree.files("knowledge/journal"), self._today, days)}
        was = {path.replace(_ARCHIVED, JOURNAL, 1) for path in self._in_base("archive")}
        for path in sorted((old | was) - self._notes.keys()):
            to = root / f"{_ARCHIVED}{path.removeprefix(JOURNAL)}"
            if (root / path).is_file() and not to.exists():
                to.parent.mkdir(parents=True, exist_ok=True)
                (root / path).rename(to)

    def _reorder(self) -> None:
        for path, data in self._notes.items():
            file = self._tree.root / path
            if file.is_file() and (now := file.read_bytes()) != data:
                text = in_old_order(notes.decode(data), notes.decode(now))
                file.write_bytes(notes.encode(text))

    @property
    def _today(self) -> date:
        return wall(self._anew).date()

    # ------------------------------------------------------------ models

    def _ask(self, task: str) -> Ask | None:
        """Who answers. A model that cannot be asked, or never answers well, ends the rebuild for now; a bad
        answer now and then leaves something out."""
        found = self._how.ask(task)
        if found is None:
            return None

        def ask(task: str, system: str, user: str, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
            try:
                items = found(task, system, user, schema)
            except BadAnswer as error:
                self._bad += 1
                if self._bad == _MOST_BAD:
                    self._down = f"{_MOST_BAD} answers in a row could not be used. {error}"
                raise
            except ChatError as error:
                self._down = self._down or str(error)
                raise
            self._bad = 0
            return items

        return ask

    def _go_on(self, failed: Iterable[str]) -> None:
        self._failed += failed
        if self._down:
            raise TacitError(
                f"{self._place.name} is not finished: {self._down} What was answered is kept. "
                "Go on with the same command."
            )


def _notes_of(git: Git, commit: str) -> dict[str, bytes]:
    tree = git.tree(commit, "knowledge", "archive")
    names = {path: blob.name for path, blob in tree.items() if path.endswith(".md")}
    data = git.blobs(dict.fromkeys(names.values()))
    return {path: data[name] for path, name in names.items() if name in data}


def _lines(data: bytes | None) -> list[str]:
    return [] if data is None else notes.decode(data).split("\n")


def _kind(change: Change) -> tuple[str, str]:
    return change.extractor.partition("/")[0], change.trust


def _day_of(path: str) -> str:
    return "-".join(path.split("/")[2:5])


def _date_of(git: Git, commit: str) -> datetime:
    return datetime.fromisoformat(git.run("log", "-1", "--format=%cI", commit).decode().strip())

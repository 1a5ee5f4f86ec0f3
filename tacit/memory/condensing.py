"""One ordered job: days are summed up, weeks rolled up, the month looked at, then pruning and archiving; one
commit, which names the periods that are done.

What must stay true:
- a period is condensed once, also with two daemons or two machines, and what was missed is caught up with;
- what is done is whole or not done at all, and a second start after a kill ends the same;
- a note that somebody changed meanwhile stays as that person left it: what was to become of it is a draft.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from tacit.lifecycle import calendar
from tacit.lifecycle.archive import place_of
from tacit.lifecycle.calendar import Period
from tacit.lifecycle.condense.day import with_summary
from tacit.lifecycle.condense.plan import Condensed, Home, plan
from tacit.llm.items import Ask
from tacit.memory.hearing import hear
from tacit.memory.learning import by_path, drafts_of, text_draft
from tacit.memory.policies import policy, reviewed
from tacit.memory.reviewing import Edit, archived, put, read_note
from tacit.memory.schedules import wall
from tacit.model.changes import Change, Heard, Move, Rewrite, is_trusted
from tacit.model.review import Draft
from tacit.store import files, transcripts
from tacit.store.claims import claim
from tacit.store.home import CONFIG, CONVERSATIONS, REVIEWED
from tacit.store.listing import walk
from tacit.store.runs import CONDENSED
from tacit.text import marks, notes
from tacit.text.links import links_of, names_of

if TYPE_CHECKING:
    from tacit.memory.memory import Memory

_NOTES = ("knowledge", "archive")
_TAKEN_OUT = "archive/memory/"


@dataclass(frozen=True, slots=True)
class Summed:
    """What one pass did, or would do."""

    periods: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    drafts: tuple[Draft, ...] = ()
    commits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    waiting: str = ""


def due_periods(memory: Memory) -> list[Period]:
    now = wall(memory)
    assert now.tzinfo is not None
    schedule = memory.config.lifecycle.condensation_schedule
    return calendar.due(schedule, now.tzinfo, now, _days(memory), memory.runs.condensed())


def prune_is_due(memory: Memory) -> bool:
    now = wall(memory)
    assert now.tzinfo is not None
    return calendar.came_due(memory.config.lifecycle.pruning_schedule, now.tzinfo, memory.runs.pruned(), now)


def condense(
    memory: Memory,
    periods: Sequence[Period],
    *,
    prune: bool,
    archive: bool,
    dry_run: bool = False,
    heards: Mapping[str, Sequence[Heard]] | None = None,
) -> Summed:
    """These periods and steps. `dry_run`: only what would be done. `heards`: conversations by their day, from
    who has heard them already."""
    with files.locked(memory.home.private / "lifecycle.lock", 0.5):
        mine, waiting = list(periods), ""
        if not dry_run and periods and memory.config.git.auto_push:
            names, waiting = claim(memory.home, memory.git, memory.config.git.remote, list(map(str, periods)))
            mine = [period for period in periods if str(period) in names]
        if not (mine or prune or archive):
            return Summed(waiting=waiting)
        sealed = {period.name: _sealed(memory, period.name) for period in mine if period.kind == "day"}
        if heards is None:
            heards = {day: _heards(memory, paths) for day, paths in sorted(sealed.items())}
        made = _planned(memory, mine, heards, prune=prune, archive=archive)
        done = _would(memory, made) if dry_run else _done(memory, made, sealed, pruned=prune or archive)
        return replace(done, periods=tuple(map(str, made.periods)), notes=made.notes, waiting=waiting)


# ---------------------------------------------------------------- what there is


def _days(memory: Memory) -> dict[str, datetime]:
    """The days with conversations, each with the moment when the last of them was there."""
    found: dict[str, datetime] = {}
    done, seen = memory.runs.condensed(), memory.runs.summed_up()
    for path, _ in walk(str(memory.home.root), CONVERSATIONS):
        day = "-".join(path.split("/")[2:5])
        known = seen.get(f"day {day}")
        if known is not None and path in known:
            at: datetime | None = done[f"day {day}"]
        else:
            at = transcripts.ended_of(memory.home.root / path)
            if at is not None and known is not None:
                at = memory.moment()  # it came after the summary, however early it ended
        if at is not None and (day not in found or found[day] < at):
            found[day] = at
    return found


def _planned(
    memory: Memory,
    periods: Sequence[Period],
    heards: Mapping[str, Sequence[Heard]],
    *,
    prune: bool,
    archive: bool,
) -> Condensed:
    looks_back = archive or any(period.kind == "month" for period in periods)
    return plan(
        _home(memory, wants_uses=looks_back),
        heards,
        periods,
        now=wall(memory),
        lifecycle=memory.config.lifecycle,
        review=memory.config.review,
        ask=_asking(memory),
        prune=prune,
        archive=archive,
    )


def _asking(memory: Memory) -> Ask | None:
    """One who answers the questions of all these tasks; None: no model does."""
    if memory.ask("condense") is None:
        return None

    def ask(task: str, system: str, user: str, schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        found = memory.ask(task)
        assert found is not None  # the same settings
        return found(task, system, user, schema)

    return ask


def _sealed(memory: Memory, day: str) -> list[str]:
    folder = f"{CONVERSATIONS}/{day.replace('-', '/')}"
    paths = sorted(path for path, _ in walk(str(memory.home.root), folder))
    return [path for path in paths if transcripts.is_sealed(memory.home.root / path)]


def _heards(memory: Memory, paths: Iterable[str]) -> list[Heard]:
    return [one for one in (hear(memory, path) for path in paths) if one is not None]


def _home(memory: Memory, *, wants_uses: bool) -> Home:
    tree = files.Tree(memory.home.root)
    paths = [path for path in tree.files(*_NOTES) if path.endswith(".md")]
    rolled = memory.runs.summed_up()
    if not wants_uses:
        return Home(_reader(memory), paths, rolled=rolled)
    texts = {path: notes.decode(tree.read(path)) for path in _linking(memory, tree)}
    changed = {path: day for path, day in _changed(memory).items() if path in texts}
    return Home(_reader(memory), paths, changed, *_references(texts), rolled)


def _linking(memory: Memory, tree: files.Tree) -> list[str]:
    """Whatever may name a note that must stay where it is. The config names some by their paths."""
    there = [path for path in tree.files("knowledge", "topics") if path.endswith(".md")]
    return [*there, *([CONFIG] if memory.home.config.is_file() else [])]


def _reader(memory: Memory) -> Callable[[str], str | None]:
    def read(path: str) -> str | None:
        data = read_note(memory, path)
        return None if data is None else notes.decode(data)

    return read


def _changed(memory: Memory) -> dict[str, date]:
    """The day of each note's last commit, and today for those that somebody changed since. What was never
    committed has none, and is younger than any."""
    said = memory.git.run("log", "--format=%x01%cI", "--name-only", "-z", "--", "knowledge", timeout=300)
    found: dict[str, date] = {}
    day = date.min
    for piece in said.decode("utf-8", "surrogateescape").replace("\n", "\0").split("\0"):
        if piece.startswith("\x01"):
            day = datetime.fromisoformat(piece[1:]).astimezone(memory.moment().tzinfo).date()
        elif piece:
            found.setdefault(piece, day)
    return found | {edit.path: wall(memory).date() for edit in memory.note_changes().edits}


def _references(texts: Mapping[str, str]) -> tuple[dict[str, int], frozenset[str]]:
    """How many notes name each note, and those that a person wrote a link to."""
    counts: Counter[str] = Counter()
    by_hand: set[str] = set()
    for path, text in texts.items():
        hand = "\n".join(line for line in text.split("\n") if not marks.is_generated(line))
        counts.update(pointer.target for pointer in links_of(path, text))
        by_hand.update(pointer.target for pointer in links_of(path, hand))
    names = {path: _names(path, text) for path, text in texts.items()}
    return (
        {path: sum(counts[name] for name in both) for path, both in names.items()},
        frozenset(path for path, both in names.items() if by_hand.intersection(both)),
    )


def _names(path: str, text: str) -> tuple[str, ...]:
    """All that a link may call it by."""
    note = notes.parse(text, path)
    return (path, *names_of(path, notes.title(note) or "", note.fields))


# ---------------------------------------------------------------- what becomes of it


def _sorted_out(memory: Memory, made: Condensed) -> tuple[list[Edit], list[Draft]]:
    """What happens by itself, and what waits."""
    own = [one for one in made.changes if _is_auto(memory, "journal", is_own=is_trusted(one.trust))]
    others = [*(one for one in made.changes if one not in own), *made.untrusted]
    edits = [*_pages(memory, own, made.sessions)]
    drafts = list(drafts_of(memory, others))
    kept = {
        one.path for one in made.rewrites if not _is_auto(memory, one.category, is_own=is_trusted(one.trust))
    }
    for one in made.rewrites:
        if one.path.startswith(_TAKEN_OUT):
            continue  # what leaves MEMORY.md is archived where and when it leaves
        if one.path in kept or (change := _rewritten(memory, one)) is None:
            drafts.append(_rewrite_draft(memory, one, made.notes))
        else:
            edits += [*archived(memory, change, one.reason), change]
    for move in made.moves:
        if _is_auto(memory, move.category, is_own=True):
            edits = _moved(memory, move, edits)
        else:
            drafts.append(_move_draft(memory, move))
    return [edit for edit in edits if edit.old != edit.new], drafts


def _is_auto(memory: Memory, category: str, *, is_own: bool) -> bool:
    return policy(memory.config, category, is_own=is_own) == "auto"


def _pages(
    memory: Memory, changes: Sequence[Change], sessions: Mapping[str, Sequence[str]]
) -> Iterable[Edit]:
    for path, mine in by_path(changes).items():
        old = read_note(memory, path)
        text = with_summary(
            None if old is None else notes.decode(old), mine[0].day, mine, sessions.get(path, ())
        )
        if text is not None:
            yield Edit(path, old, notes.encode(text))


def _rewritten(memory: Memory, one: Rewrite) -> Edit | None:
    """None: somebody changed the file since, and theirs stays."""
    old = read_note(memory, one.path)
    same = None if one.old is None else notes.encode(one.old)
    return Edit(one.path, old, notes.encode(one.new)) if old == same else None


def _rewrite_draft(memory: Memory, one: Rewrite, remarks: Sequence[str]) -> Draft:
    base = None if one.old is None else notes.encode(one.old)
    return text_draft(
        memory,
        one.path,
        base,
        one.new,
        category=one.category,
        reason=one.reason,
        sources=one.sources,
        remarks=remarks,
        trust=one.trust,
    )


def _moved(memory: Memory, move: Move, edits: Sequence[Edit]) -> list[Edit]:
    """With what this run adds to the note. One that a killed run left in both places only goes."""
    old = read_note(memory, move.path)
    new = next((edit.new for edit in edits if edit.path == move.path), old)
    others = [edit for edit in edits if edit.path != move.path]
    if old is None or new is None:
        return list(edits)
    if read_note(memory, place_of(move.path)) == new:
        return [*others, Edit(move.path, old, None)]
    if read_note(memory, move.to) is not None:
        return list(edits)
    return [*others, Edit(move.to, None, new), Edit(move.path, old, None)]


def _move_draft(memory: Memory, move: Move) -> Draft:
    data = read_note(memory, move.path)
    return Draft(
        id="",
        form="move",
        category=move.category,
        policy=reviewed(policy(memory.config, move.category, is_own=True)),
        reason=move.reason,
        made=memory.moment().isoformat(timespec="seconds"),
        trust="agent",
        target=move.path,
        to=move.to,
        base=None if data is None else files.digest(data),
    )


def _would(memory: Memory, made: Condensed) -> Summed:
    edits, drafts = _sorted_out(memory, made)
    return Summed(edits=tuple(edits), drafts=tuple(drafts))


def _done(memory: Memory, made: Condensed, sealed: Mapping[str, Sequence[str]], *, pruned: bool) -> Summed:
    with files.locked(memory.home.lock):
        edits, drafts = _sorted_out(memory, made)
        put(memory, edits)
        kept = memory.reviews.propose(drafts)
        _keep_bases(memory, made.rewrites, {draft.target for draft in kept})
        paths = [edit.path for edit in edits]
        paths += [*map(memory.reviews.path_of, kept), *([REVIEWED] if kept else [])]
        commits = _commit(memory, made.periods, paths)
    done = {str(one): sealed.get(one.name, made.rolled.get(one.name)) for one in made.periods}
    memory.runs.condense(done, memory.moment(), pruned=pruned)
    return Summed(edits=tuple(edits), drafts=tuple(kept), commits=commits)


def _keep_bases(memory: Memory, rewrites: Sequence[Rewrite], proposed: set[str]) -> None:
    """A rebase needs what a draft was made for; a MEMORY.md far over its cap is in no commit."""
    for one in rewrites:
        if one.path in proposed and one.old is not None:
            memory.git.keep_blob(notes.encode(one.old))


def _commit(memory: Memory, periods: Sequence[Period], paths: Sequence[str]) -> tuple[str, ...]:
    if not paths or not memory.config.git.auto_commit:
        return ()
    kinds = {period.kind for period in periods}
    what = "weekly" if "week" in kinds else "daily" if kinds else ""
    subject = f"{what} condensation" if what else "pruning and archiving"
    trailers = "".join(f"{CONDENSED}: {period}\n" for period in periods)
    message = f"maintenance: {subject}\n\n{trailers}"
    return memory.commit_paths(message.rstrip("\n") + "\n", list(paths)).commits

"""A week of the sample agent's life, time-lapsed: `tacit demo --week`.

Conversations are captured; what they taught is added to notes, with its sources; each evening the day is
summed up; on Sunday MEMORY.md is proposed and approved, and an old journal page moves to the archive; then
everything is learned anew on a branch, compared and adopted. Nothing here is special to the demo: it calls
what `tacit run`, `tacit review`, `tacit rebuild` and the daemon call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from importlib.resources import files as resources
from pathlib import Path
from typing import Protocol

import yaml

from tacit import sample
from tacit.app import init_home, load_config, memory_of
from tacit.cli import output
from tacit.cli.lines import one_line
from tacit.evaluation.budgets import summary
from tacit.evaluation.compared import Side, asked, side_of, size_of
from tacit.evaluation.sampled import SETTINGS, play
from tacit.evaluation.searchable import read_answers
from tacit.memory import Memory, reviewing
from tacit.memory.adopting import adopt
from tacit.memory.condensing import Summed
from tacit.memory.learning import Learnt, learn_pending
from tacit.memory.lifecycle import condense_due
from tacit.memory.rebuilding import rebuild
from tacit.model.review import Draft
from tacit.sample import Conversation
from tacit.store import files
from tacit.store.home import Home
from tacit.text import marks, notes
from tacit.text.yaml_values import entry
from tacit.ways import way_of_learning

OWNER = "hanna"
_FIRST = ("knowledge/identity/", "knowledge/people/", "knowledge/projects/", "topics/")
_OLD_PAGE = "knowledge/journal/2026-07-12.md"  # 91 days before the Sunday
_OLD_DAY = "---\ntype: journal\ndate: 2026-07-12\n---\n\n## 2026-07-12\n\n- First firing of the summer.\n"
# What the owner writes into her journal by hand, on the Wednesday.
_BY_HAND = "- Agreed with Tomasz: from now on parcels leave on Tuesdays and Thursdays only.\n"
_DAYS = 7
_FEWER = "  extractors: [decisions, lessons, people, procedures, journal]\n"
_NAME = "v2"
_BUDGETS = (512, 2048)  # tokens
_SHOWN = 4  # lines of each kind


class Clock(Protocol):
    moment: datetime

    def __call__(self) -> datetime: ...


def live_a_week(root: Path, clock: Clock) -> Memory:
    memory = _begin(root, clock)
    first = clock.moment.date()
    said = [one for one in sample.conversations() if one.started.date() < first + timedelta(days=_DAYS)]
    for number in range(_DAYS):
        day = first + timedelta(days=number)
        _live_day(memory, clock, day, [one for one in said if one.started.date() == day])
    _sunday(memory)
    clock.moment += timedelta(hours=9)
    return _again(memory)


def _begin(root: Path, clock: Clock) -> Memory:
    """A home on its first morning: who is who, and nothing learned yet."""
    home = init_home(root, now=clock)[0].home
    settings = "".join(entry(key, value) for key, value in SETTINGS.items())
    lines = [line for line in home.config.read_text().split("\n") if line.split(":")[0] not in SETTINGS]
    text = "\n".join(lines).rstrip() + f"\n\n{settings}"
    files.replace(home.config, re.sub(r"  #extractors: .*\n", lambda line: _FEWER + line[0], text).encode())
    for path, data in [*sample.notes(), (_OLD_PAGE, _OLD_DAY.encode())]:
        if path.startswith(_FIRST) or path == _OLD_PAGE:
            files.make_directories((root / path).parent)
            files.replace(root / path, _beginning(path, data))
    memory = memory_of(Home(root), load_config(home).config, clock)
    memory.commit()
    return memory


def _beginning(path: str, data: bytes) -> bytes:
    """Who the agent is stands as it is; of people and projects only their names are known."""
    if not path.startswith(("knowledge/people/", "knowledge/projects/")) or path.rpartition("/")[2][0] == "_":
        return data
    head, body = notes.split(data.decode())
    title = next((line for line in body.split("\n") if line.startswith("# ")), "# Note")
    return f"{head}\n{title}\n".encode()


# ---------------------------------------------------------------- a day


def _live_day(memory: Memory, clock: Clock, day: date, said: list[Conversation]) -> None:
    output.say_marked(f"**{day:%A}, {day}**")
    for conversation in said:
        clock.moment = max(clock.moment, conversation.started)
        play(memory, conversation)
        clock.moment = max(clock.moment, conversation.ended)
        told = f"{conversation.started:%H:%M}, {len(conversation.turns)} turns: {conversation.slug}"
        output.say(f"   talked     {told}")
        _tell_learnt(learn_pending(memory))
    if day.weekday() == 2:
        _write_by_hand(memory, day)
    evening = datetime.combine(day, datetime.min.time(), clock.moment.tzinfo).replace(hour=23, minute=5)
    clock.moment = max(clock.moment, evening)
    _tell_condensed(condense_due(memory))
    memory.commit()
    output.say()


def _tell_condensed(done: Summed) -> None:
    for edit in done.edits:
        if edit.new is None:
            continue  # it stands in the archive
        output.say(f"   {'archived ' if edit.path.startswith('archive/') else 'condensed'}  {edit.path}")
        summed = [line for line in notes.decode(edit.new).split("\n") if "<!-- day/" in line]
        for line in summed[:_SHOWN]:
            output.say(f"              {_cut(marks.read(line)[0])}")
    for draft in done.drafts:
        output.say(f"   proposed   {draft.id}: {_cut(draft.reason)}")


def _write_by_hand(memory: Memory, day: date) -> None:
    path = f"knowledge/journal/{day}.md"
    file = memory.home.root / path
    before = file.read_text() if file.exists() else f"## {day}\n"
    files.replace(file, f"{before.rstrip()}\n\n### By hand\n\n{_BY_HAND}".encode())
    output.say(f"   by hand    {path}: {_cut(_BY_HAND)}")


def _tell_learnt(done: Learnt) -> None:
    for change in done.added[:_SHOWN]:
        output.say(f"   learned    {change.path.removeprefix('knowledge/')}: {_cut(change.line)}")
    if len(done.added) > _SHOWN:
        output.say(f"   learned    {output.plural(len(done.added) - _SHOWN, 'more line')}")
    if done.superseded:
        output.say(f"   superseded {output.plural(done.superseded, 'line')} that no longer holds")
    if done.drafts:
        drafts = output.plural(len(done.drafts), "draft")
        output.say(f"   waits      {drafts}: the words of others are reviewed first")


def _cut(text: str, width: int = 100) -> str:
    line = one_line(text)
    return line if len(line) <= width else line[: width - 1] + "…"


# ---------------------------------------------------------------- Sunday


def _sunday(memory: Memory) -> None:
    output.say_marked("**Sunday night: review**")
    for draft in _to_approve(memory):
        approved = reviewing.approve(memory, draft.id, OWNER)
        output.say(f"   approved   {draft.id} by {OWNER}: {', '.join(approved.paths)}")
        output.say(f"              taken back by: tacit history undo {approved.commit[:10]}")
    left = len(memory.reviews.waiting())
    output.say(f"   waiting    {output.plural(left, 'draft')} for whoever looks next: tacit review list\n")
    memory.commit()


def _to_approve(memory: Memory) -> Iterator[Draft]:
    """What changes MEMORY.md, and one stranger's word."""
    waiting = memory.reviews.waiting()
    yield from (draft for draft in waiting if draft.category == "memory")
    yield from [draft for draft in waiting if draft.form == "lines" and draft.trust == "other"][:1]


# ---------------------------------------------------------------- again


def _again(memory: Memory) -> Memory:
    """The owner lets facts be learned too: everything anew, on a branch, compared, adopted."""
    output.say_marked("**Monday: all of it again, with one extractor more**")
    file = memory.home.config
    files.replace(file, file.read_text().replace(_FEWER, "").encode())
    memory = memory_of(memory.home, load_config(memory.home).config, memory.moment)
    memory.commit()
    how = way_of_learning(memory, _NAME)
    done = rebuild(memory, _NAME, how)
    output.say(f"   rebuilt    {done.branch} from {output.plural(done.conversations, 'conversation')}")
    main, new = side_of(memory, memory.config.git.branch), side_of(memory, _NAME)
    lines = [size_of(memory, side).learned for side in (main, new)]
    output.say(f"   compared   learned lines: {lines[0]} on main, {lines[1]} on {_NAME}")
    for budget, before, after in _evidence(memory, main, new):
        output.say(
            f"              evidence in {budget:,} tokens, notes alone: {before} on main, {after} on v2"
        )
    adopted = adopt(memory, _NAME, how)
    output.say(
        f"   adopted    {output.plural(len(adopted.paths), 'note')}, tag {adopted.tag}, the branch is gone"
    )
    output.say(f"              taken back by: tacit history undo {adopted.commit[:10]}\n")
    return memory


def _evidence(memory: Memory, main: Side, new: Side) -> Iterator[tuple[int, str, str]]:
    """Of all questions that the sample has, also of those whose answer nobody has said yet."""
    text = (resources("tacit.sample") / "questions.yaml").read_text(encoding="utf-8")
    questions = read_answers(yaml.safe_load(text), "questions.yaml")
    found = [
        summary(asked(memory, side, "knowledge", questions, _BUDGETS, _silent), _BUDGETS, 1.0)
        for side in (main, new)
    ]
    for budget in _BUDGETS:
        before, after = (one.ways["compiled"][budget].recall or 0.0 for one in found)
        yield budget, f"{100 * before:.0f} %", f"{100 * after:.0f} %"


def _silent(done: int, total: int) -> None: ...

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
from tacit.app import create_memory, init_home, load_config
from tacit.condense.service import CondenseResult
from tacit.evaluation.budgets import summarize
from tacit.evaluation.sampled import SAMPLE_SETTINGS, play_conversation
from tacit.evaluation.searchable import read_answers
from tacit.home import files
from tacit.home.layout import Home
from tacit.learn.service import LearnResult
from tacit.maintenance import condense_due
from tacit.markdown import notes
from tacit.markdown.yaml_values import format_entry
from tacit.memory import Memory
from tacit.provenance import comment
from tacit.rebuild.comparison import NotesVersion, find_version, measure_recall, measure_size
from tacit.rebuild.merge import merge_rebuild
from tacit.rebuild.options import setup_from_options
from tacit.rebuild.service import rebuild
from tacit.review import service
from tacit.review.model import Draft
from tacit.sample import Conversation
from tacit.terminal import output
from tacit.terminal.lines import one_line

OWNER = "hanna"
_SEEDED_FOLDERS = ("knowledge/identity/", "knowledge/people/", "knowledge/projects/", "topics/")
_OLD_PAGE = "knowledge/journal/2026-07-12.md"  # 91 days before the Sunday
_OLD_DAY = "---\ntype: journal\ndate: 2026-07-12\n---\n\n## 2026-07-12\n\n- First firing of the summer.\n"
# The owner writes this into her journal by hand, on the Wednesday.
_HANDWRITTEN_LINE = "- Agreed with Tomasz: from now on parcels leave on Tuesdays and Thursdays only.\n"
_DAYS = 7
_FEWER_EXTRACTORS = "  extractors: [decisions, lessons, people, procedures, journal]\n"
_REBUILD_NAME = "v2"
_BUDGETS = (512, 2048)  # tokens
_MAX_LINES_SHOWN = 4  # of each kind


class SettableClock(Protocol):
    moment: datetime

    def __call__(self) -> datetime: ...


def live_a_week(root: Path, clock: SettableClock) -> Memory:
    memory = _make_home(root, clock)
    first = clock.moment.date()
    conversations = [
        conversation
        for conversation in sample.conversations()
        if conversation.started.date() < first + timedelta(days=_DAYS)
    ]
    for number in range(_DAYS):
        day = first + timedelta(days=number)
        _live_day(
            memory,
            clock,
            day,
            [conversation for conversation in conversations if conversation.started.date() == day],
        )
    _review_on_sunday(memory)
    clock.moment += timedelta(hours=9)
    return _rebuild_and_adopt(memory)


def _make_home(root: Path, clock: SettableClock) -> Memory:
    """A home on its first morning: who is who, and nothing learned yet."""
    home = init_home(root, now=clock)[0].home
    settings = "".join(format_entry(key, value) for key, value in SAMPLE_SETTINGS.items())
    lines = [
        line for line in home.config.read_text().split("\n") if line.split(":")[0] not in SAMPLE_SETTINGS
    ]
    text = "\n".join(lines).rstrip() + f"\n\n{settings}"
    files.replace(
        home.config, re.sub(r"  #extractors: .*\n", lambda line: _FEWER_EXTRACTORS + line[0], text).encode()
    )
    for path, data in [*sample.notes(), (_OLD_PAGE, _OLD_DAY.encode())]:
        if path.startswith(_SEEDED_FOLDERS) or path == _OLD_PAGE:
            files.make_directories((root / path).parent)
            files.replace(root / path, _initial_text(path, data))
    memory = create_memory(Home(root), load_config(home).config, clock)
    memory.commit()
    return memory


def _initial_text(path: str, data: bytes) -> bytes:
    """Identity files are used as they are; of people and projects only the names are known."""
    if not path.startswith(("knowledge/people/", "knowledge/projects/")) or path.rpartition("/")[2][0] == "_":
        return data
    head, body = notes.split(data.decode())
    title = next((line for line in body.split("\n") if line.startswith("# ")), "# Note")
    return f"{head}\n{title}\n".encode()


# ---------------------------------------------------------------- a day


def _live_day(memory: Memory, clock: SettableClock, day: date, conversations: list[Conversation]) -> None:
    output.say_marked(f"**{day:%A}, {day}**")
    for conversation in conversations:
        clock.moment = max(clock.moment, conversation.started)
        play_conversation(memory, conversation)
        clock.moment = max(clock.moment, conversation.ended)
        about = f"{conversation.started:%H:%M}, {len(conversation.turns)} turns: {conversation.slug}"
        output.say(f"   talked     {about}")
        _say_learnt(memory.services.extractor.learn_pending())
    if day.weekday() == 2:
        _write_by_hand(memory, day)
    evening = datetime.combine(day, datetime.min.time(), clock.moment.tzinfo).replace(hour=23, minute=5)
    clock.moment = max(clock.moment, evening)
    _say_condensed(condense_due(memory))
    memory.commit()
    output.say()


def _say_condensed(condensed: CondenseResult) -> None:
    for edit in condensed.edits:
        if edit.new is None:
            continue  # moved to the archive
        output.say(f"   {'archived ' if edit.path.startswith('archive/') else 'condensed'}  {edit.path}")
        lines = [line for line in notes.decode(edit.new).split("\n") if "<!-- day/" in line]
        for line in lines[:_MAX_LINES_SHOWN]:
            output.say(f"              {_shorten(comment.read(line)[0])}")
    for draft in condensed.drafts:
        output.say(f"   proposed   {draft.id}: {_shorten(draft.reason)}")


def _write_by_hand(memory: Memory, day: date) -> None:
    path = f"knowledge/journal/{day}.md"
    file = memory.home.root / path
    before = file.read_text() if file.exists() else f"## {day}\n"
    files.replace(file, f"{before.rstrip()}\n\n### By hand\n\n{_HANDWRITTEN_LINE}".encode())
    output.say(f"   by hand    {path}: {_shorten(_HANDWRITTEN_LINE)}")


def _say_learnt(learnt: LearnResult) -> None:
    for change in learnt.added[:_MAX_LINES_SHOWN]:
        output.say(f"   learned    {change.path.removeprefix('knowledge/')}: {_shorten(change.line)}")
    if len(learnt.added) > _MAX_LINES_SHOWN:
        output.say(f"   learned    {output.pluralize(len(learnt.added) - _MAX_LINES_SHOWN, 'more line')}")
    if learnt.superseded:
        output.say(f"   superseded {output.pluralize(learnt.superseded, 'line')} that no longer holds")
    if learnt.drafts:
        drafts = output.pluralize(len(learnt.drafts), "draft")
        output.say(f"   waits      {drafts}: the words of others are reviewed first")


def _shorten(text: str, width: int = 100) -> str:
    line = one_line(text)
    return line if len(line) <= width else line[: width - 1] + "…"


# ---------------------------------------------------------------- Sunday


def _review_on_sunday(memory: Memory) -> None:
    output.say_marked("**Sunday night: review**")
    for draft in _drafts_to_approve(memory):
        approved = service.approve(memory, draft.id, OWNER)
        output.say(f"   approved   {draft.id} by {OWNER}: {', '.join(approved.paths)}")
        output.say(f"              taken back by: tacit history undo {approved.commit[:10]}")
    count = len(memory.reviews.waiting())
    output.say(
        f"   waiting    {output.pluralize(count, 'draft')} for whoever looks next: tacit review list\n"
    )
    memory.commit()


def _drafts_to_approve(memory: Memory) -> Iterator[Draft]:
    """The drafts that change MEMORY.md, and one that quotes a stranger."""
    waiting = memory.reviews.waiting()
    yield from (draft for draft in waiting if draft.category == "memory")
    yield from [draft for draft in waiting if draft.form == "lines" and draft.trust == "other"][:1]


# ---------------------------------------------------------------- rebuild


def _rebuild_and_adopt(memory: Memory) -> Memory:
    """Turn on one more extractor, then rebuild on a branch, compare and adopt."""
    output.say_marked("**Monday: all of it again, with one extractor more**")
    file = memory.home.config
    files.replace(file, file.read_text().replace(_FEWER_EXTRACTORS, "").encode())
    memory = create_memory(memory.home, load_config(memory.home).config, memory.moment)
    memory.commit()
    method = setup_from_options(memory, _REBUILD_NAME)
    rebuilt = rebuild(memory, _REBUILD_NAME, method)
    output.say(
        f"   rebuilt    {rebuilt.branch} from {output.pluralize(rebuilt.conversations, 'conversation')}"
    )
    main, new = find_version(memory, memory.config.git.branch), find_version(memory, _REBUILD_NAME)
    lines = [measure_size(memory, side).learned for side in (main, new)]
    output.say(f"   compared   learned lines: {lines[0]} on main, {lines[1]} on {_REBUILD_NAME}")
    for budget, before, after in _recall_by_budget(memory, main, new):
        output.say(
            f"              evidence in {budget:,} tokens, notes alone: {before} on main, {after} on v2"
        )
    adopted = merge_rebuild(memory, _REBUILD_NAME, method)
    output.say(
        f"   adopted    {output.pluralize(len(adopted.paths), 'note')}, tag {adopted.tag}, the branch is gone"
    )
    output.say(f"              taken back by: tacit history undo {adopted.commit[:10]}\n")
    return memory


def _recall_by_budget(
    memory: Memory, main: NotesVersion, new: NotesVersion
) -> Iterator[tuple[int, str, str]]:
    """Recall over all questions of the sample, including those not answered in its first week."""
    text = (resources("tacit.sample") / "questions.yaml").read_text(encoding="utf-8")
    questions = read_answers(yaml.safe_load(text), "questions.yaml")
    summaries = [
        summarize(measure_recall(memory, side, "knowledge", questions, _BUDGETS, _silent), _BUDGETS, 1.0)
        for side in (main, new)
    ]
    for budget in _BUDGETS:
        before, after = (result.ways["compiled"][budget].recall or 0.0 for result in summaries)
        yield budget, f"{100 * before:.0f} %", f"{100 * after:.0f} %"


def _silent(done: int, total: int) -> None: ...

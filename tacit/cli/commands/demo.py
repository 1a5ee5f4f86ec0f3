"""A sample home at work: four weeks of an invented potter and her agent, then one live conversation.

Without --home everything happens in a temporary folder that is gone afterwards.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from importlib.resources import files as resources
from pathlib import Path

from tacit import sample
from tacit.app import create_memory, init_home, load_config, make_setups
from tacit.cli.commands.why import print_receipt
from tacit.condense.service import CondenseResult
from tacit.context.model import Compiled
from tacit.errors import UsageError
from tacit.evaluation.homes import SAMPLE_SETTINGS, open_session, play_conversation, record_turn
from tacit.evaluation.prompt_quality import measure_commit, summarize
from tacit.evaluation.questions import read_answers
from tacit.git.commit_message import short_name
from tacit.home import files
from tacit.home.layout import Home
from tacit.learn.service import LearnResult
from tacit.markdown import comment, notes
from tacit.markdown.frontmatter import format_entry
from tacit.memory import Memory
from tacit.rebuild.comparison import NotesVersion, find_version, measure_size
from tacit.review.model import ChangeRequest
from tacit.sample import Conversation, Turn
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_quiet_option
from tacit.text.yaml_reader import read_tree, to_value


def arguments(parser: argparse.ArgumentParser) -> None:
    add_home_option(parser, default="a temporary folder")
    add_quiet_option(parser)
    parser.add_argument(
        "--week", action="store_true", help="a week in which conversations become knowledge, time-lapsed"
    )


def run(options: argparse.Namespace) -> int:
    if options.home:
        root = Path(options.home).expanduser().absolute()
        if root.exists() and any(root.iterdir()):
            raise UsageError(f"{root} is not empty. Name a folder that does not exist yet.")
        return _run_demo(root, options, keep=True)
    folder = Path(tempfile.mkdtemp(prefix="tacit-demo-"))
    try:
        return _run_demo(folder / "home", options, keep=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run_demo(root: Path, options: argparse.Namespace, *, keep: bool) -> int:
    if not options.week:
        return _show_month(root, keep=keep, quiet=options.quiet)
    live_a_week(root, StoryClock(sample.conversations()[0].started.replace(hour=7)))
    _say_location(root, keep=keep)
    return 0


def _show_month(root: Path, *, keep: bool, quiet: bool) -> int:
    output.say(f"1  A home in {root}\n")
    clock = StoryClock(sample.conversations()[0].started)
    memory = build(root, clock, quiet=quiet)
    _say_contents(memory)
    output.say("\n2  A conversation, kept as it happens\n")
    compiled = _live_conversation(memory, sample.live(), clock)
    output.say("\n3  Questions to it\n")
    _say_hits(memory)
    output.say("\n4  What the home can say about itself\n")
    _say_checks(memory)
    output.say("\n5  What the agent was given for that last message\n")
    _say_prompt(compiled)
    _say_location(root, keep=keep)
    return 0


# ---------------------------------------------------------------- four weeks in a few seconds


@dataclass(slots=True)
class StoryClock:
    """The sample's own time, so that its history has the dates of its story."""

    moment: datetime

    def __call__(self) -> datetime:
        return self.moment


def build(root: Path, clock: StoryClock, *, quiet: bool) -> Memory:
    """Play the sample in the order in which it happened, through the same calls as in real use."""
    home = init_home(root, now=clock)[0].home
    _add_settings(home)
    config = load_config(home).config
    memory = create_memory(home, config, clock)
    events = sorted(_events(memory), key=lambda event: event[0])
    with output.progress("living four weeks", quiet=quiet) as tick:
        for number, (at, play) in enumerate(events, 1):
            if at.date() > clock.moment.date():
                memory.commit()
            clock.moment = max(clock.moment, at)
            play()
            tick(number, len(events))
    memory.commit()
    return memory


def _events(memory: Memory) -> Iterator[tuple[datetime, Callable[[], None]]]:
    """What happens in the sample, and when."""
    for conversation in sample.conversations():
        yield conversation.ended, partial(play_conversation, memory, conversation)
    for path, data in sample.notes():
        yield _written_time(data.decode()), partial(_write_note, memory, path, data.decode())


def _write_note(memory: Memory, path: str, text: str) -> None:
    exists = (memory.home.root / path).exists()
    memory.write(path, text, replacing=memory.read(path) if exists else None)


def _written_time(text: str) -> datetime:
    """When the note says it was written: `updated`, or the evening of its `date`; else the story's end."""
    start, end = sample.conversations()[0].started, sample.conversations()[-1].ended
    for line in text.split("\n---", 1)[0].splitlines():
        key, _, value = line.partition(":")
        if key in ("updated", "date"):
            moment = datetime.fromisoformat(value.strip().strip("\"'"))
            if key == "date" or len(value.strip()) == 10:
                moment = moment.replace(hour=22)
            return max(start, moment if moment.tzinfo else moment.replace(tzinfo=start.tzinfo))
    return end


def _add_settings(home: Home) -> None:
    lines = [
        line for line in home.config.read_text().split("\n") if line.split(":")[0] not in SAMPLE_SETTINGS
    ]
    settings = "".join(format_entry(key, value) for key, value in SAMPLE_SETTINGS.items())
    files.replace(home.config, ("\n".join(lines).rstrip() + f"\n\n{settings}").encode())


# ---------------------------------------------------------------- one conversation


def _live_conversation(memory: Memory, conversation: Conversation, clock: StoryClock) -> Compiled:
    """Record it turn by turn, and compile a prompt for its last message, as a host would."""
    session = open_session(memory, conversation)
    for turn in conversation.turns:
        clock.moment = turn.at
        number = record_turn(session, turn)
        output.say(f"   {number}  {turn.at:%H:%M}  {_format_turn(turn)}")
    *earlier, last_turn = conversation.turns
    history = [(turn.role, turn.text) if turn.role else _tool_message(turn) for turn in earlier]
    compiled = memory.turn(last_turn.text, session_key=conversation.session_key, history=history)
    clock.moment = conversation.ended
    sealed = session.end(conversation.ended, tags=conversation.tags)
    assert sealed is not None
    output.say(f"\n   sealed     {sealed.path}")
    output.say(f"   SHA-256    {sealed.sha256}")
    output.say(f"   committed  {(sealed.commit or sealed.waiting)[:12]}")
    return compiled


def _tool_message(turn: Turn) -> dict[str, str | None]:
    return {"role": "tool", "name": turn.tool, "content": f"{turn.summary} → {turn.result}"}


def _format_turn(turn: Turn) -> str:
    if turn.kind == "tool":
        return _shorten(f"[tool:{turn.tool}] {turn.summary} → {turn.result}")
    return _shorten(f"{turn.role}: {turn.text}")


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    width = max(40, shutil.get_terminal_size((100, 24)).columns - 14) if sys.stdout.isatty() else 86
    return line if len(line) <= width else line[: width - 1] + "…"


# ---------------------------------------------------------------- output


def _say_contents(memory: Memory) -> None:
    root = memory.home.root
    names = {
        "knowledge/identity": "who the agent is and whom it serves",
        "knowledge/memory": "MEMORY.md, the core of what was learned",
        "knowledge/journal": "one file per day",
        "knowledge/projects": "what is going on",
        "knowledge/people": "who is who",
        "knowledge/procedures": "how things are done",
        "knowledge/reference": "facts to look up",
        "topics": "playbooks that a message activates",
        "archive": "cold, still searchable",
        "raw/conversations": "sealed transcripts, never edited",
    }
    rows = [(f"{_count(root / folder)}", folder, about) for folder, about in names.items()]
    output.print_table(rows, indent="   ")


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*.md"))


_QUESTIONS = ("when does Reif go online?", "what does Deniz charge per hour", "who is on port 8417")
_MAX_LINES_PER_PART = 3  # of the prompt


def _say_hits(memory: Memory) -> None:
    for question in _QUESTIONS:
        output.say(f"   tacit search {question!r}")
        for hit in memory.search(question, limit=1):
            output.say(f"      {hit.path}:{hit.lines[0]}  {hit.day}")
            for line in _matching_lines(hit.snippet):
                output.say(f"      {_shorten(line)}")
            output.say()


def _matching_lines(snippet: str) -> list[str]:
    """The lines with the words of the question."""
    lines = [line.strip(" …") for line in snippet.splitlines() if line.strip(" …")]
    return [line for line in lines if "**" in line][:2] or lines[:1]


def _say_prompt(compiled: Compiled) -> None:
    """Print the beginning of each part of the prompt, then why it is there."""
    for part in compiled.text.split("\n\n<!-- "):
        lines = f"<!-- {part.removeprefix('<!-- ')}".splitlines()
        for line in lines[: _MAX_LINES_PER_PART + 1]:
            output.say(f"   {_shorten(line)}")
        if len(lines) > _MAX_LINES_PER_PART + 1:
            output.say(f"   … {output.pluralize(len(lines) - _MAX_LINES_PER_PART - 1, 'more line')}")
    output.say("\n   tacit why\n")
    print_receipt(compiled.receipt)


def _say_checks(memory: Memory) -> None:
    states = [item.good for item in memory.verify()]
    output.say(f"   tacit verify                  {sum(states)} of {len(states)} transcripts proved")
    hits = memory.history.when("Kontora")
    if hits:
        first = hits[0]
        output.say(
            f"   tacit history when Kontora    first on {first.commit.when:%Y-%m-%d}, "
            f"in {_shorten(first.path)}"
        )
    diffs = memory.history.diff("2026-10-25")
    names = ", ".join(short_name(diff.path) for diff in diffs[:4])
    output.say(f"   tacit history diff 2026-10-25 {len(diffs)} notes since: {names} …")


def _say_location(root: Path, *, keep: bool) -> None:
    if keep:
        output.say(f"\nIt is yours to look at: cd {root} and read, or: tacit --home {root} status")
    else:
        output.say("\nThis home was temporary and is gone. Keep one: tacit demo --home ~/tacit-demo")
        output.say("Start your own: tacit init ~/tacit")


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


def live_a_week(root: Path, clock: StoryClock) -> Memory:
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


def _make_home(root: Path, clock: StoryClock) -> Memory:
    """A home on its first morning: who is who, and nothing learned yet."""
    home = init_home(root, now=clock)[0].home
    _add_settings(home)
    text = home.config.read_text()
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


def _live_day(memory: Memory, clock: StoryClock, day: date, conversations: list[Conversation]) -> None:
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
    _say_condensed(memory.services.condenser.condense_due())
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


# ---------------------------------------------------------------- Sunday


def _review_on_sunday(memory: Memory) -> None:
    output.say_marked("**Sunday night: review**")
    for draft in _drafts_to_approve(memory):
        approved = memory.services.review.approve(draft.id, OWNER)
        output.say(f"   approved   {draft.id} by {OWNER}: {', '.join(approved.paths)}")
        output.say(f"              taken back by: tacit history undo {approved.commit[:10]}")
    count = len(memory.reviews.waiting())
    output.say(
        f"   waiting    {output.pluralize(count, 'draft')} for the owner to review: tacit review list\n"
    )
    memory.commit()


def _drafts_to_approve(memory: Memory) -> Iterator[ChangeRequest]:
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
    memory = create_memory(memory.home, load_config(memory.home).config, memory.services.clock.now)
    memory.commit()
    method = make_setups(memory).from_options(_REBUILD_NAME)
    rebuilt = memory.services.rebuilder.rebuild(_REBUILD_NAME, method)
    output.say(
        f"   rebuilt    {rebuilt.branch} from {output.pluralize(rebuilt.conversations, 'conversation')}"
    )
    main, new = (
        find_version(memory.home, memory.git, name) for name in (memory.config.git.branch, _REBUILD_NAME)
    )
    lines = [measure_size(memory.git, side).learned for side in (main, new)]
    output.say(f"   compared   learned lines: {lines[0]} on main, {lines[1]} on {_REBUILD_NAME}")
    for budget, before, after in _recall_by_budget(memory, main, new):
        output.say(
            f"              evidence in {budget:,} tokens, notes alone: {before} on main, {after} on v2"
        )
    adopted = memory.services.rebuild_merger.merge(_REBUILD_NAME, method)
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
    questions = read_answers(to_value(read_tree(text)), "questions.yaml")
    summaries = [
        summarize(
            measure_commit(memory, side.commit, "knowledge", questions, _BUDGETS, _silent), _BUDGETS, 1.0
        )
        for side in (main, new)
    ]
    for budget in _BUDGETS:
        before, after = (result.ways["compiled"][budget].recall or 0.0 for result in summaries)
        yield budget, f"{100 * before:.0f} %", f"{100 * after:.0f} %"


def _silent(done: int, total: int) -> None: ...

"""A sample home at work: four weeks of an invented potter and her agent, then one live conversation.

Without --home everything happens in a temporary folder that is gone afterwards.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tacit import sample
from tacit.app import create_memory, init_home, load_config
from tacit.cli.week import live_a_week
from tacit.cli.why import print_receipt
from tacit.context.model import Compiled
from tacit.errors import UsageError
from tacit.evaluation.sampled import SAMPLE_SETTINGS, keep_turn, open_session, play_conversation
from tacit.git.commit_message import short_name
from tacit.home import files
from tacit.home.layout import Home
from tacit.markdown.yaml_values import format_entry
from tacit.memory import Memory
from tacit.sample import Conversation, Turn
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_quiet_option


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
    events: list[_ConversationEvent | _NoteEvent] = sorted(
        [*_conversation_events(), *_note_events()], key=lambda event: event.at
    )
    with output.progress("living four weeks", quiet=quiet) as tick:
        for number, event in enumerate(events, 1):
            _commit_on_new_day(memory, clock, event.at)
            clock.moment = max(clock.moment, event.at)
            event.play(memory)
            tick(number, len(events))
    memory.commit()
    return memory


@dataclass(frozen=True, slots=True)
class _ConversationEvent:
    at: datetime
    conversation: Conversation

    def play(self, memory: Memory) -> None:
        play_conversation(memory, self.conversation)


@dataclass(frozen=True, slots=True)
class _NoteEvent:
    at: datetime
    path: str
    data: bytes

    def play(self, memory: Memory) -> None:
        exists = (memory.home.root / self.path).exists()
        before = memory.read(self.path) if exists else None
        memory.write(self.path, self.data.decode(), replacing=before)


def _conversation_events() -> list[_ConversationEvent]:
    return [_ConversationEvent(conversation.ended, conversation) for conversation in sample.conversations()]


def _note_events() -> list[_NoteEvent]:
    return [_NoteEvent(_written_time(data.decode()), path, data) for path, data in sample.notes()]


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


def _commit_on_new_day(memory: Memory, clock: StoryClock, moment: datetime) -> None:
    if moment.date() > clock.moment.date():
        memory.commit()


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
        number = keep_turn(session, turn)
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
        "topics": "playbooks that a message wakes",
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

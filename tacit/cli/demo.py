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
from tacit.app import init_home, load_config, memory_of
from tacit.cli import output
from tacit.cli.dispatch import home_option, quiet_option
from tacit.cli.week import live_a_week
from tacit.cli.why import show
from tacit.errors import UsageError
from tacit.evaluation.sampled import SETTINGS, keep, open_session, play
from tacit.memory import Memory
from tacit.model.context import Compiled
from tacit.sample import Conversation, Turn
from tacit.store import files
from tacit.store.home import Home
from tacit.text.commit_message import short_name
from tacit.text.yaml_values import entry


def arguments(parser: argparse.ArgumentParser) -> None:
    home_option(parser, default="a temporary folder")
    quiet_option(parser)
    parser.add_argument(
        "--week", action="store_true", help="a week in which conversations become knowledge, time-lapsed"
    )


def run(options: argparse.Namespace) -> int:
    if options.home:
        root = Path(options.home).expanduser().absolute()
        if root.exists() and any(root.iterdir()):
            raise UsageError(f"{root} is not empty. Name a folder that does not exist yet.")
        return _told(root, options, keep=True)
    folder = Path(tempfile.mkdtemp(prefix="tacit-demo-"))
    try:
        return _told(folder / "home", options, keep=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _told(root: Path, options: argparse.Namespace, *, keep: bool) -> int:
    if not options.week:
        return _show(root, keep=keep, quiet=options.quiet)
    live_a_week(root, Clock(sample.conversations()[0].started.replace(hour=7)))
    _tell_where(root, keep=keep)
    return 0


def _show(root: Path, *, keep: bool, quiet: bool) -> int:
    output.say(f"1  A home in {root}\n")
    clock = Clock(sample.conversations()[0].started)
    memory = build(root, clock, quiet=quiet)
    _tell_contents(memory)
    output.say("\n2  A conversation, kept as it happens\n")
    compiled = _live(memory, sample.live(), clock)
    output.say("\n3  Questions to it\n")
    _search(memory)
    output.say("\n4  What the home can say about itself\n")
    _questions(memory)
    output.say("\n5  What the agent was given for that last message\n")
    _given(compiled)
    _tell_where(root, keep=keep)
    return 0


# ---------------------------------------------------------------- four weeks in a few seconds


@dataclass(slots=True)
class Clock:
    """The sample's own time, so that its history has the dates of its story."""

    moment: datetime

    def __call__(self) -> datetime:
        return self.moment


def build(root: Path, clock: Clock, *, quiet: bool) -> Memory:
    """Play the sample in the order in which it happened, through the same doors as real life."""
    home = init_home(root, now=clock)[0].home
    _add_settings(home)
    config = load_config(home).config
    memory = memory_of(home, config, clock)
    events: list[_Said | _Noted] = sorted([*_sessions(), *_notes()], key=lambda event: event.at)
    with output.progress("living four weeks", quiet=quiet) as tick:
        for number, event in enumerate(events, 1):
            _next_day(memory, clock, event.at)
            clock.moment = max(clock.moment, event.at)
            event.play(memory)
            tick(number, len(events))
    memory.commit()
    return memory


@dataclass(frozen=True, slots=True)
class _Said:
    at: datetime
    conversation: Conversation

    def play(self, memory: Memory) -> None:
        play(memory, self.conversation)


@dataclass(frozen=True, slots=True)
class _Noted:
    at: datetime
    path: str
    data: bytes

    def play(self, memory: Memory) -> None:
        exists = (memory.home.root / self.path).exists()
        before = memory.read(self.path) if exists else None
        memory.write(self.path, self.data.decode(), replacing=before)


def _sessions() -> list[_Said]:
    return [_Said(conversation.ended, conversation) for conversation in sample.conversations()]


def _notes() -> list[_Noted]:
    return [_Noted(_written_at(data.decode()), path, data) for path, data in sample.notes()]


def _written_at(text: str) -> datetime:
    """When the note says it was written: `updated`, or the evening of its `date`; else the story's end."""
    start, end = sample.conversations()[0].started, sample.conversations()[-1].ended
    for line in text.split("\n---", 1)[0].splitlines():
        key, _, value = line.partition(":")
        if key in ("updated", "date"):
            found = datetime.fromisoformat(value.strip().strip("\"'"))
            if key == "date" or len(value.strip()) == 10:
                found = found.replace(hour=22)
            return max(start, found if found.tzinfo else found.replace(tzinfo=start.tzinfo))
    return end


def _next_day(memory: Memory, clock: Clock, at: datetime) -> None:
    if at.date() > clock.moment.date():
        memory.commit()


def _add_settings(home: Home) -> None:
    lines = [line for line in home.config.read_text().split("\n") if line.split(":")[0] not in SETTINGS]
    settings = "".join(entry(key, value) for key, value in SETTINGS.items())
    files.replace(home.config, ("\n".join(lines).rstrip() + f"\n\n{settings}").encode())


# ---------------------------------------------------------------- one conversation


def _live(memory: Memory, conversation: Conversation, clock: Clock) -> Compiled:
    """Keep it turn by turn, and compile a prompt for its last message, as a host would."""
    session = open_session(memory, conversation)
    for turn in conversation.turns:
        clock.moment = turn.at
        number = keep(session, turn)
        output.say(f"   {number}  {turn.at:%H:%M}  {_line(turn)}")
    *before, asked = conversation.turns
    history = [(turn.role, turn.text) if turn.role else _as_tool(turn) for turn in before]
    compiled = memory.turn(asked.text, session_key=conversation.session_key, history=history)
    clock.moment = conversation.ended
    sealed = session.end(conversation.ended, tags=conversation.tags)
    assert sealed is not None
    output.say(f"\n   sealed     {sealed.path}")
    output.say(f"   SHA-256    {sealed.sha256}")
    output.say(f"   committed  {(sealed.commit or sealed.waiting)[:12]}")
    return compiled


def _as_tool(turn: Turn) -> dict[str, str | None]:
    return {"role": "tool", "name": turn.tool, "content": f"{turn.summary} → {turn.result}"}


def _line(turn: Turn) -> str:
    if turn.kind == "tool":
        return _cut(f"[tool:{turn.tool}] {turn.summary} → {turn.result}")
    return _cut(f"{turn.role}: {turn.text}")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    width = max(40, shutil.get_terminal_size((100, 24)).columns - 14) if sys.stdout.isatty() else 86
    return line if len(line) <= width else line[: width - 1] + "…"


# ---------------------------------------------------------------- what to look at


def _tell_contents(memory: Memory) -> None:
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
    output.table(rows, indent="   ")


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*.md"))


_ASKED = ("when does Reif go online?", "what does Deniz charge per hour", "who is on port 8417")
_LINES = 3  # of each part of the prompt


def _search(memory: Memory) -> None:
    for question in _ASKED:
        output.say(f"   tacit search {question!r}")
        for hit in memory.search(question, limit=1):
            output.say(f"      {hit.path}:{hit.lines[0]}  {hit.day}")
            for line in _marked(hit.snippet):
                output.say(f"      {_cut(line)}")
            output.say()


def _marked(snippet: str) -> list[str]:
    """The lines with the words that were asked for."""
    lines = [line.strip(" …") for line in snippet.splitlines() if line.strip(" …")]
    return [line for line in lines if "**" in line][:2] or lines[:1]


def _given(compiled: Compiled) -> None:
    """The beginning of each part of the prompt, then why it is there."""
    for part in compiled.text.split("\n\n<!-- "):
        lines = f"<!-- {part.removeprefix('<!-- ')}".splitlines()
        for line in lines[: _LINES + 1]:
            output.say(f"   {_cut(line)}")
        if len(lines) > _LINES + 1:
            output.say(f"   … {output.plural(len(lines) - _LINES - 1, 'more line')}")
    output.say("\n   tacit why\n")
    show(compiled.receipt)


def _questions(memory: Memory) -> None:
    states = [item.good for item in memory.verify()]
    output.say(f"   tacit verify                  {sum(states)} of {len(states)} transcripts proved")
    learned = memory.history.when("Kontora")
    if learned:
        first = learned[0]
        output.say(
            f"   tacit history when Kontora    first on {first.commit.when:%Y-%m-%d}, in {_cut(first.path)}"
        )
    changed = memory.history.diff("2026-10-25")
    names = ", ".join(short_name(diff.path) for diff in changed[:4])
    output.say(f"   tacit history diff 2026-10-25 {len(changed)} notes since: {names} …")


def _tell_where(root: Path, *, keep: bool) -> None:
    if keep:
        output.say(f"\nIt is yours to look at: cd {root} and read, or: tacit --home {root} status")
    else:
        output.say("\nThis home was temporary and is gone. Keep one: tacit demo --home ~/tacit-demo")
        output.say("Start your own: tacit init ~/tacit")

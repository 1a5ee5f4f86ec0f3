"""What is learned from: a transcript of this home with whose word each turn is, or nothing.

Whose session it is, its key tells, by the same rules as for what it may see. Who is named as a speaker can
only take away: hosts show names that people choose for themselves.

Nothing is learned from what tacit's own work says, from agents whose conversations are not kept, and from
what was purged. Where nobody speaks (a schedule, a heartbeat, a subagent) only the agent and its tools are
heard, and since nobody can tell what began it, the agent's word counts as a tool's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from tacit.errors import StoreError
from tacit.lifecycle.hearing import Given, echoes, heard
from tacit.model.changes import Heard, Trust
from tacit.model.turns import Message, Transcript, Turn
from tacit.sessions.agents import agents_of, excluded_agent, is_own_work
from tacit.sessions.classify import folded, is_owner, person
from tacit.store import files, receipts
from tacit.store.purged import purged
from tacit.text import marks, notes

if TYPE_CHECKING:
    from tacit.memory.memory import Memory
    from tacit.sessions.rules import Profile

_SPOKEN = ("main_session", "orchestration", "private_dm")
_UNSPOKEN = ("heartbeat_cron", "subagent")
_MOST_RECEIPTS = 500  # of one conversation
_MOST_BYTES = 1 << 20  # of what it may have been given
_FIRST = ("knowledge/memory", "knowledge/identity", "knowledge", "topics")  # where given words stand


@dataclass(frozen=True, slots=True)
class Listening:
    """How the turns of one session are heard."""

    is_owner: Callable[[str | None], bool]
    agents: Trust = "agent"  # how far the agent is trusted at best
    users_speak: bool = True


def hear(memory: Memory, path: str, *, given: Sequence[str] | Given | None = None) -> Heard | None:
    """The sealed transcript at this path, as it is learned from; None: nothing is. `given`: texts that the
    agent had before it; None: those of its receipts, and without any, what the notes say."""
    transcript = memory.transcript(path)
    if is_unheard(memory, transcript):
        return None
    gone = purged(memory.home.root)
    if gone.whole(path):
        return None
    how = listening(memory, transcript)
    found = heard(
        transcript,
        is_owner=how.is_owner,
        trusted_tools=memory.config.lifecycle.trusted_tools,
        purged_records=gone.records(path),
        agents=how.agents,
        users_speak=how.users_speak,
    )
    return echoes(found, given_before(memory, transcript) if given is None else given)


def is_unheard(memory: Memory, transcript: Transcript) -> bool:
    """Tacit's own work, and what is not kept any more."""
    fields = transcript.fields
    key = str(fields.get("session_key", ""))
    agents = agents_of(key, fields.get("agent"))
    excluded = excluded_agent(agents, memory.config.capture.exclude_agents)
    return bool(excluded) or is_own_work(key) or fields.get("origin") == "tacit"


# Who speaks


def listening(memory: Memory, transcript: Transcript) -> Listening:
    fields = transcript.fields
    agent = fields.get("agent")
    key = str(fields.get("session_key", ""))
    profile = memory.profile_of(key, agent=agent if isinstance(agent, str) else None, trial=True)
    return listening_in(memory, profile, transcript.turns)


def listening_in(memory: Memory, profile: Profile, turns: Sequence[Turn]) -> Listening:
    kind = profile.kind
    if kind.type in _UNSPOKEN:
        return Listening(lambda _: False, "tool", users_speak=False)
    if kind.type not in _SPOKEN:
        return Listening(lambda _: False, "other")
    owners = memory.config.owners
    names = {folded(name) for turn in turns if (name := _speaker(turn))}
    # With owners in the config, all that were seen to write here are among them, or it would not be theirs.
    seen = memory.senders_of(kind.key) if owners else ()
    is_sure = kind.type == "private_dm" or bool(seen) or (not owners and len(names) < 2)

    def is_the_owner(speaker: str | None) -> bool:
        if not speaker:
            return is_sure or not names
        channel, identity = person(speaker)
        if channel or owners:
            known = is_owner((channel or folded(kind.channel), identity), owners)
            return known or (not channel and is_sure)
        return is_sure

    return Listening(is_the_owner)


def _speaker(turn: Turn) -> str:
    return (turn.speaker or "") if isinstance(turn, Message) and turn.role == "user" else ""


# What it was given


def given_before(memory: Memory, transcript: Transcript) -> list[str]:
    """Texts that the agent had, so that it says nothing new by repeating them. A line that was made from this
    conversation, or a later one, is none of them: else nobody could learn it again."""
    paths = _given_paths(memory, transcript) or _note_paths(memory)
    texts, room = [], _MOST_BYTES
    for path in paths:
        with suppress(StoreError, OSError):
            data = memory.workspaces.read(path, room)
            texts.append(_earlier(notes.decode(data), transcript.path))
            room -= len(data)
        if room <= 0:
            break
    return texts


def _given_paths(memory: Memory, transcript: Transcript) -> list[str]:
    if not transcript.turns:
        return []
    began, ended = transcript.turns[0].at, transcript.turns[-1].at + timedelta(minutes=1)
    key = str(transcript.fields.get("session_key", ""))
    found = receipts.of_session(memory.home, key, since=began - timedelta(minutes=1))
    within = (one for one in found if not one.trial and _moment(one.at, ended) <= ended)
    sources = (section.source for one in islice(within, _MOST_RECEIPTS) for section in one.sections)
    return list(
        dict.fromkeys(path for source in sources if (path := _file(source)) not in ("", transcript.path))
    )


def _moment(text: str, otherwise: datetime) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        return otherwise


def _file(source: str) -> str:
    """Of `knowledge/people/noor.md:12` the file. What the conversation itself or no file is, is none."""
    path = source.rpartition(":")[0] if source.rpartition(":")[2].isdecimal() else source
    return path if path.endswith(".md") else ""


def _note_paths(memory: Memory) -> Iterator[str]:
    tree = files.Tree(memory.home.root)
    return iter(
        dict.fromkeys(path for folder in _FIRST for path in tree.files(folder) if path.endswith(".md"))
    )


def _earlier(text: str, transcript: str) -> str:
    own = marks.source_of(transcript)
    return "\n".join(line for line in text.split("\n") if _is_earlier(line, own))


def _is_earlier(line: str, own: str) -> bool:
    mark = marks.read(line)[1]
    return mark is None or all(source.partition("#")[0] < own for source in mark.sources)

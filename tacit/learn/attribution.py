"""Attributes each turn of a transcript to its speaker, as learning needs it.

The session key tells whose session it is, by the same rules that decide what the session may see. A speaker's
name can only reduce trust: hosts show names that people choose for themselves.

Learning leaves out sessions of tacit's own work, agents whose conversations are not kept, and purged records.
In sessions without a person (a schedule, a heartbeat, a subagent) only the agent and its tools count, and
since it is unknown what started the session, the agent is trusted no more than a tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from tacit.config import Config
from tacit.errors import StoreError
from tacit.git.conflicts import refuse_conflict
from tacit.home import files
from tacit.home.layout import Home
from tacit.learn.taint import InjectedTexts, attribute_turns, drop_echoes
from tacit.markdown import comment, notes
from tacit.markdown.comment import Trust
from tacit.sessions.keys import (
    find_excluded_agent,
    fold_case,
    is_own_work,
    is_owner_on,
    named_agents,
    parse_sender,
)
from tacit.sessions.policy import SessionProfile, SessionProfiles
from tacit.transcripts import writer
from tacit.transcripts.attribution import AttributedTranscript
from tacit.transcripts.model import Message, Transcript, Turn
from tacit.transcripts.purged import load_purged
from tacit.workspaces.folders import Workspaces

_SPOKEN_TYPES = ("main_session", "orchestration", "private_dm")
_UNATTENDED_TYPES = ("heartbeat_cron", "subagent")
_MAX_INJECTED_BYTES = 1 << 20  # of what it may have been given
_NOTE_FOLDERS = ("knowledge/memory", "knowledge/identity", "knowledge", "topics")


@dataclass(frozen=True, slots=True)
class SessionTrust:
    """How far the speakers of one session are trusted."""

    is_owner: Callable[[str | None], bool]
    agents: Trust = "agent"  # how far the agent is trusted at best
    users_speak: bool = True


class SpeakerAttribution:
    """Says who spoke each turn of this home's transcripts, and how far they are trusted."""

    def __init__(
        self,
        home: Home,
        config: Config,
        profiles: SessionProfiles,
        workspaces: Workspaces,
        list_prompt_files: Callable[[str, datetime, datetime], Sequence[str]],
    ) -> None:
        """`list_prompt_files`: the files in the prompts of a session between two times."""
        self._home, self._config = home, config
        self._profiles, self._workspaces = profiles, workspaces
        self._list_prompt_files = list_prompt_files

    def attribute(
        self, path: str, *, injected: Sequence[str] | InjectedTexts | None = None
    ) -> AttributedTranscript | None:
        """The finalized transcript at this path, attributed; None if nothing is learned from it. `injected`:
        texts that the agent had before; None: those of its receipts, and without receipts, the notes."""
        refuse_conflict(self._home.root, path)
        transcript = writer.load(self._home, path)
        if self._is_excluded(transcript):
            return None
        retractions = load_purged(self._home.root)
        if retractions.whole(path):
            return None
        trust = self.trust_of(transcript)
        attributed = attribute_turns(
            transcript,
            is_owner=trust.is_owner,
            trusted_tools=self._config.lifecycle.trusted_tools,
            purged_records=retractions.records(path),
            agents=trust.agents,
            users_speak=trust.users_speak,
        )
        return drop_echoes(
            attributed, self._load_injected_texts(transcript) if injected is None else injected
        )

    def _is_excluded(self, transcript: Transcript) -> bool:
        """Whether it is tacit's own work, or of an agent whose conversations are not kept."""
        fields = transcript.fields
        key = str(fields.get("session_key", ""))
        agents = named_agents(key, fields.get("agent"))
        excluded = find_excluded_agent(agents, self._config.capture.exclude_agents)
        return bool(excluded) or is_own_work(key) or fields.get("origin") == "tacit"

    def trust_of(self, transcript: Transcript) -> SessionTrust:
        fields = transcript.fields
        agent = fields.get("agent")
        key = str(fields.get("session_key", ""))
        profile = self._profiles.profile_of(key, agent=agent if isinstance(agent, str) else None, trial=True)
        return self.trust_of_turns(profile, transcript.turns)

    def trust_of_turns(self, profile: SessionProfile, turns: Sequence[Turn]) -> SessionTrust:
        kind = profile.kind
        if kind.type in _UNATTENDED_TYPES:
            return SessionTrust(lambda _: False, "tool", users_speak=False)
        if kind.type not in _SPOKEN_TYPES:
            return SessionTrust(lambda _: False, "other")
        owners = self._config.owners
        names = {fold_case(name) for turn in turns if (name := _user_speaker(turn))}
        # With owners in the config, every sender seen here is one of them, or it would not be an owner's
        # session.
        seen = self._profiles.senders_of(kind.key) if owners else ()
        is_sure = kind.type == "private_dm" or bool(seen) or (not owners and len(names) < 2)

        def is_the_owner(speaker: str | None) -> bool:
            if not speaker:
                return is_sure or not names
            channel, _ = parse_sender(speaker)
            if channel or owners:
                is_known_owner = is_owner_on(kind.channel, speaker, owners)
                return is_known_owner or (not channel and is_sure)
            return is_sure

        return SessionTrust(is_the_owner)

    def _load_injected_texts(self, transcript: Transcript) -> list[str]:
        """Texts that the agent had, so that repeating them is not taken for something new. Lines made from
        this conversation or a later one are left out, or they could never be learned again."""
        paths = self._paths_in_receipts(transcript) or self._note_paths()
        texts, bytes_left = [], _MAX_INJECTED_BYTES
        for path in paths:
            with suppress(StoreError, OSError):
                data = self._workspaces.read(path, bytes_left)
                texts.append(_keep_earlier_lines(notes.decode(data), transcript.path))
                bytes_left -= len(data)
            if bytes_left <= 0:
                break
        return texts

    def _paths_in_receipts(self, transcript: Transcript) -> list[str]:
        if not transcript.turns:
            return []
        key = str(transcript.fields.get("session_key", ""))
        start, end = transcript.turns[0].at, transcript.turns[-1].at
        return [path for path in self._list_prompt_files(key, start, end) if path != transcript.path]

    def _note_paths(self) -> Iterator[str]:
        tree = files.Tree(self._home.root)
        return iter(
            dict.fromkeys(
                path for folder in _NOTE_FOLDERS for path in tree.files(folder) if path.endswith(".md")
            )
        )


def _user_speaker(turn: Turn) -> str:
    return (turn.speaker or "") if isinstance(turn, Message) and turn.role == "user" else ""


def _keep_earlier_lines(text: str, transcript: str) -> str:
    own_source = comment.source_name(transcript)
    return "\n".join(line for line in text.split("\n") if _is_earlier(line, own_source))


def _is_earlier(line: str, own_source: str) -> bool:
    mark = comment.read(line)[1]
    return mark is None or all(source.partition("#")[0] < own_source for source in mark.sources)

"""Files that are loaded whole: identity, what a session always has, topics and what they subscribe to.

Whoever asks gives a reader. A file that is missing, foreign, for others or of no use becomes a Dropped that
says so, and the rest goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from typing import NamedTuple

from tacit.config import ContextCompiler
from tacit.context.blocks import KB, Block
from tacit.context.plain import is_text, plain
from tacit.context.rank import digest
from tacit.errors import TacitError
from tacit.model.context import Dropped, Slot
from tacit.model.search import AUDIENCES, Audience
from tacit.model.topics import Activation
from tacit.text import notes
from tacit.text.ours import without_sections
from tacit.text.passages import audience_of, category_of, day_of
from tacit.text.restrictions import said_agents, says_audience

IDENTITY = "knowledge/identity"
MEMORY = "knowledge/memory/MEMORY.md"
PROJECTS = "knowledge/projects/_active.md"
_ALL_IDENTITY = ("SOUL.md", "USER.md", "AGENTS.md", "TOOLS.md")
_LABEL = re.compile(r"[^\w./:@+ -]|--")
_REMEMBERED = 64 * 1024  # bytes of a file that is not read anew each turn

Loaded = Block | Dropped


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears what is compiled."""

    audience: Audience
    agent: str

    def may_hear(self, audience: Audience, agents: Sequence[str]) -> str:
        """Empty, or the code of what forbids it."""
        if AUDIENCES.index(audience) > AUDIENCES.index(self.audience):
            return "audience"
        return "agent" if agents and self.agent not in agents else ""


@dataclass(frozen=True, slots=True)
class Sources:
    read: Callable[[str], bytes]
    listener: Listener
    agents_of: Callable[[str], tuple[str, ...]] = lambda path: ()  # whose a file is, whatever it says

    def identity(self, names: Iterable[str]) -> Iterator[Loaded]:
        """The rule of a session names these files, so only what a file itself says is weighed against it."""
        for name in names:
            path = f"{IDENTITY}/{name}"
            yield self._load(path, "identity", f"identity:{name}", "who the agent is", named=True)

    def session(self, config: ContextCompiler, today: date) -> Iterator[Loaded]:
        """What the owner's sessions always have, as configured."""
        if self.listener.audience != "owner":
            return
        if config.memory_md == "always":
            yield self._load(MEMORY, "memory", "memory:MEMORY.md", "memory_md is always")
        if config.journal == "always":
            for day in (today, today - timedelta(days=1)):
                path = f"knowledge/journal/{day.isoformat()}.md"
                yield self._load(path, "journal", f"journal:{day.isoformat()}", "journal is always")
        if config.projects == "always":
            yield self._load(PROJECTS, "projects", "projects:_active.md", "what is going on")

    def topics(self, awake: Iterable[Activation]) -> Iterator[Loaded]:
        for one in awake:
            topic = one.topic
            most = int(topic.max_context_kb * KB)
            name = label("topic", topic.name)
            reason = one.decision.reason
            if one.decision.by == "steering":
                text = one.hint or plain(topic.body)
                yield Block("topics", label("correction", topic.name), topic.path, text, reason, most=most)
                continue
            yield Block(
                "topics", name, topic.path, plain(topic.body), reason, topic.path,
                day=topic.day, score=one.decision.tier2_score, channels=one.decision.channels,
                group=topic.name, most=most,
            )  # fmt: skip
            for path in topic.subscriptions:
                loaded = self._load(
                    path, "subscriptions", label("sub", path), f"{topic.name} subscribes to it"
                )
                yield _grouped(loaded, topic.name, most)

    def _load(self, path: str, slot: Slot, name: str, reason: str, *, named: bool = False) -> Loaded:
        try:
            data = self.read(path)
        except FileNotFoundError:
            return Dropped(name, slot, path, "missing", "there is no such file")
        except (TacitError, OSError) as error:
            return Dropped(name, slot, path, "unsafe", str(error))
        file = _known(path, data) if len(data) <= _REMEMBERED else _file(path, data)
        if file is None:
            return Dropped(name, slot, path, "unsafe", "it is not text")
        forbidden = self._forbidden(file, path, named)
        if forbidden:
            reason = (
                "it is not for this session" if forbidden == "audience" else "it belongs to another agent"
            )
            return Dropped(name, slot, path, forbidden, reason)
        if not file.text:
            return Dropped(name, slot, path, "empty", "nothing is written in it yet")
        return Block(slot, name, path, file.text, reason, path, day=file.day, digest=digest(file.text))

    def _forbidden(self, file: _File, path: str, named: bool) -> str:
        audience = file.audience
        if named and not file.says_audience:
            audience = "anyone"
        if category_of(path) == "conversation":  # only search knows whose conversation it is
            audience = "owner"
        return self.listener.may_hear(audience, self.agents_of(path) or file.agents)


class _File(NamedTuple):
    text: str
    day: str
    audience: Audience
    says_audience: bool  # itself, and not its folder
    agents: tuple[str, ...]


def _file(path: str, data: bytes) -> _File | None:
    """None: it is not text."""
    if not is_text(data):
        return None
    note = notes.parse(notes.decode(data), path)
    return _File(
        plain(without_sections(note.text)),
        day_of(note.fields, path),
        audience_of(note, path)[0],
        says_audience(note),
        said_agents(note),
    )


_known = lru_cache(maxsize=256)(_file)  # the same few files, turn after turn


def _grouped(loaded: Loaded, group: str, most: int) -> Loaded:
    return replace(loaded, group=group, most=most) if isinstance(loaded, Block) else loaded


def identity_files(files: Sequence[str] | None, profile: str, audience: Audience) -> Sequence[str]:
    """The rule's own files; in the owner's sessions of the full profile all there are."""
    if files is None:
        return ()
    if profile == "full" and audience == "owner":
        return tuple(dict.fromkeys((*_ALL_IDENTITY, *(name for name in files if name != "TOOLS_COMPACT.md"))))
    return files


def label(kind: str, name: str) -> str:
    """For a comment in the prompt: nothing that could end it."""
    return f"{kind}:{_LABEL.sub('_', name)[:120]}"

"""Files that are loaded whole: identity, the files that a session always has, topics and their subscriptions.

The caller passes a reader. A file that is missing, unsafe, empty or not for this session becomes a Dropped
with the reason, and the others are loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from typing import NamedTuple

from tacit.config import ContextCompilerSettings
from tacit.context.model import TOKENS_PER_KB, Block, Dropped, Slot
from tacit.context.ranking import short_digest
from tacit.errors import TacitError
from tacit.home.categories import category_of
from tacit.markdown import notes
from tacit.markdown.strip import is_text, strip_note
from tacit.privacy.audience import AUDIENCES, Audience, has_audience, read_agents
from tacit.privacy.strip_injected import remove_sections
from tacit.search.documents import audience_of, day_of
from tacit.topics.model import Activation

IDENTITY_FOLDER = "knowledge/identity"
MEMORY_FILE = "knowledge/memory/MEMORY.md"
PROJECTS_FILE = "knowledge/projects/_active.md"
_IDENTITY_FILES = ("SOUL.md", "USER.md", "AGENTS.md", "TOOLS.md")
_UNSAFE_IN_LABEL = re.compile(r"[^\w./:@+ -]|--")
_MAX_CACHED_BYTES = 64 * 1024  # larger files are parsed anew each turn

LoadedBlock = Block | Dropped


@dataclass(frozen=True, slots=True)
class Listener:
    """Who reads the compiled context."""

    audience: Audience
    agent: str

    def may_hear(self, audience: Audience, agents: Sequence[str]) -> str:
        """Empty, or the code of the reason why not."""
        if AUDIENCES.index(audience) > AUDIENCES.index(self.audience):
            return "audience"
        return "agent" if agents and self.agent not in agents else ""


@dataclass(frozen=True, slots=True)
class FileLoader:
    read: Callable[[str], bytes]
    listener: Listener
    agents_of: Callable[[str], tuple[str, ...]] = lambda path: ()  # a file's agents, by its path

    def identity(self, names: Iterable[str]) -> Iterator[LoadedBlock]:
        """The session's rule names these files, so only a file's own declarations can forbid it."""
        for name in names:
            path = f"{IDENTITY_FOLDER}/{name}"
            yield self._load(path, "identity", f"identity:{name}", "who the agent is", named=True)

    def session(self, config: ContextCompilerSettings, today: date) -> Iterator[LoadedBlock]:
        """The files that the owner's sessions always have, as configured."""
        if self.listener.audience != "owner":
            return
        if config.memory_md == "always":
            yield self._load(MEMORY_FILE, "memory", "memory:MEMORY.md", "memory_md is always")
        if config.journal == "always":
            for day in (today, today - timedelta(days=1)):
                path = f"knowledge/journal/{day.isoformat()}.md"
                yield self._load(path, "journal", f"journal:{day.isoformat()}", "journal is always")
        if config.projects == "always":
            yield self._load(PROJECTS_FILE, "projects", "projects:_active.md", "what is going on")

    def topics(self, activations: Iterable[Activation]) -> Iterator[LoadedBlock]:
        for activation in activations:
            topic = activation.topic
            max_tokens = int(topic.max_context_kb * TOKENS_PER_KB)
            topic_label = block_label("topic", topic.name)
            reason = activation.decision.reason
            if activation.decision.by == "steering":
                text = activation.hint or strip_note(topic.body)
                label = block_label("correction", topic.name)
                yield Block("topics", label, topic.path, text, reason, max_tokens=max_tokens)
                continue
            yield Block(
                "topics", topic_label, topic.path, strip_note(topic.body), reason, topic.path,
                day=topic.day, score=activation.decision.tier2_score, channels=activation.decision.channels,
                group=topic.name, max_tokens=max_tokens,
            )  # fmt: skip
            for path in topic.subscriptions:
                loaded = self._load(
                    path, "subscriptions", block_label("sub", path), f"{topic.name} subscribes to it"
                )
                yield _with_group(loaded, topic.name, max_tokens)

    def _load(self, path: str, slot: Slot, name: str, reason: str, *, named: bool = False) -> LoadedBlock:
        try:
            data = self.read(path)
        except FileNotFoundError:
            return Dropped(name, slot, path, "missing", "there is no such file")
        except (TacitError, OSError) as error:
            return Dropped(name, slot, path, "unsafe", str(error))
        file = _parse_file_cached(path, data) if len(data) <= _MAX_CACHED_BYTES else _parse_file(path, data)
        if file is None:
            return Dropped(name, slot, path, "unsafe", "it is not text")
        forbidden = self._forbidden_code(file, path, named)
        if forbidden:
            reason = (
                "it is not for this session" if forbidden == "audience" else "it belongs to another agent"
            )
            return Dropped(name, slot, path, forbidden, reason)
        if not file.text:
            return Dropped(name, slot, path, "empty", "nothing is written in it yet")
        return Block(slot, name, path, file.text, reason, path, day=file.day, digest=short_digest(file.text))

    def _forbidden_code(self, file: _ParsedFile, path: str, named: bool) -> str:
        audience = file.audience
        if named and not file.says_audience:
            audience = "anyone"
        if category_of(path) == "conversation":  # only search knows the owner of a conversation
            audience = "owner"
        return self.listener.may_hear(audience, self.agents_of(path) or file.agents)


class _ParsedFile(NamedTuple):
    text: str
    day: str
    audience: Audience
    says_audience: bool  # the file itself does, not its folder
    agents: tuple[str, ...]


def _parse_file(path: str, data: bytes) -> _ParsedFile | None:
    """None: the data is not text."""
    if not is_text(data):
        return None
    note = notes.parse(notes.decode(data), path)
    return _ParsedFile(
        strip_note(remove_sections(note.text)),
        day_of(note.fields, path),
        audience_of(note, path)[0],
        has_audience(note),
        read_agents(note),
    )


_parse_file_cached = lru_cache(maxsize=256)(_parse_file)  # the same few files, turn after turn


def _with_group(loaded: LoadedBlock, group: str, max_tokens: int) -> LoadedBlock:
    return replace(loaded, group=group, max_tokens=max_tokens) if isinstance(loaded, Block) else loaded


def identity_files(files: Sequence[str] | None, profile: str, audience: Audience) -> Sequence[str]:
    """The rule's files; in the owner's sessions with the full profile all identity files."""
    if files is None:
        return ()
    if profile == "full" and audience == "owner":
        return tuple(
            dict.fromkeys((*_IDENTITY_FILES, *(name for name in files if name != "TOOLS_COMPACT.md")))
        )
    return files


def block_label(kind: str, name: str) -> str:
    """A label for a comment in the prompt, without characters that could end the comment."""
    return f"{kind}:{_UNSAFE_IN_LABEL.sub('_', name)[:120]}"

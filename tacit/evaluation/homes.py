"""Temporary homes to measure: one for each collection of a public set, and one for the sample.

They are built like a user's: their conversations are captured, finalized and indexed, and their clock stands
at the last message. The sample's home has none of the sample's notes, which were written from its
conversations: all its knowledge is learned. Only names are there from the start, as in a home that was used
before: of the owner, of the projects and of the people who have a note.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Literal

from tacit import sample
from tacit.app import create_memory, init_home, load_config
from tacit.evaluation.questions import QuestionSet, SetMessage
from tacit.home import files
from tacit.home.layout import CONFIG, Home
from tacit.markdown import notes
from tacit.markdown.frontmatter import format_entry
from tacit.memory import Memory
from tacit.sample import Conversation, Turn
from tacit.transcripts.capture import Session

# The sample's owner lives in Vienna and writes from this account.
SAMPLE_SETTINGS = {"timezone": "Europe/Vienna", "owners": ["48210011"]}
_AGENT_NAMES = ("assistant", "agent", "ai", "bot")
_STARTER_FOLDERS = ("knowledge/", "topics/")
_NAME_FOLDERS = ("knowledge/people/", "knowledge/projects/")
_OWNER_NOTE = "knowledge/identity/USER.md"

MessagesByPlace = Mapping[tuple[str, int], SetMessage]  # path of a transcript and number of a message


@contextmanager
def temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="tacit-eval-") as folder:
        yield Path(folder)


@contextmanager
def temporary_home(
    collection: QuestionSet, settings: Mapping[str, object]
) -> Iterator[tuple[Memory, MessagesByPlace]]:
    """A temporary home of a collection."""
    with temporary_folder() as folder:
        memory, known = build_home(folder / "home", collection, settings)
        memory.services.searcher.update()
        try:
            yield memory, known
        finally:
            memory.services.searcher.close()


def build_home(
    root: Path, collection: QuestionSet, settings: Mapping[str, object]
) -> tuple[Memory, MessagesByPlace]:
    """The home, and its messages by place. `settings` are those of search, or have a section before the last
    dot."""
    newest = max(message.at for message in collection.messages)
    memory = _create_empty_home(root, _format_settings(settings), newest)
    return memory, _capture(memory, collection)


def _create_empty_home(root: Path, config: str, now: datetime) -> Memory:
    """A home without the notes that a new home starts with."""
    _, report = init_home(root)
    for path in report.made:
        if path.startswith(_STARTER_FOLDERS):
            (root / path).unlink()
    (root / CONFIG).write_text(config, encoding="utf-8")
    home = Home(root)
    return create_memory(home, load_config(home).config, lambda: now)


def _format_settings(settings: Mapping[str, object]) -> str:
    sections: dict[str, list[str]] = {"git": ["auto_commit: false"]}
    for key, value in settings.items():
        section, _, name = key.rpartition(".")
        sections.setdefault(section or "search", []).append(f"{name}: {value}")
    return "".join(
        f"{section}:\n" + "".join(f"  {line}\n" for line in lines) for section, lines in sections.items()
    )


def _capture(memory: Memory, collection: QuestionSet) -> MessagesByPlace:
    known: dict[tuple[str, int], SetMessage] = {}
    for name, messages in groupby(collection.messages, key=lambda message: message.session):
        batch = list(messages)
        session = memory.session(session_id=f"{collection.name}-{name}", started=batch[0].at)
        numbers = []
        moment = batch[0].at
        for message in batch:
            moment = max(moment + timedelta(seconds=1), message.at)
            role, speaker = _role_of(message.speaker)
            numbers.append((session.message(role, message.text, at=moment, speaker=speaker), message))
        sealed = session.end(at=moment)
        if sealed is not None:
            known |= {(sealed.path, number): message for number, message in numbers}
    return known


def _role_of(speaker: str) -> tuple[Literal["user", "agent"], str | None]:
    if speaker.casefold() in _AGENT_NAMES:
        return "agent", None
    return "user", None if speaker.casefold() == "user" else speaker


# The sample


@contextmanager
def sample_home() -> Iterator[Memory]:
    """A temporary home with the sample's conversations."""
    with temporary_folder() as folder:
        memory = build_sample_home(folder / "home")
        try:
            yield memory
        finally:
            memory.services.searcher.close()


def build_sample_home(root: Path) -> Memory:
    conversations = sample.conversations()
    settings = "".join(format_entry(key, value) for key, value in SAMPLE_SETTINGS.items())
    config = f"{settings}git:\n  auto_commit: false\n"
    memory = _create_empty_home(root, config, conversations[-1].ended)
    for path, data in sample.notes():
        if path.startswith(_NAME_FOLDERS) or path == _OWNER_NOTE:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            files.replace(root / path, _keep_title(data.decode()).encode())
    for conversation in conversations:
        play_conversation(memory, conversation)
    return memory


def _keep_title(text: str) -> str:
    """The head and the title of a note."""
    head, body = notes.split(text)
    title = next((line for line in body.split("\n") if line.startswith("# ")), "")
    return f"{head}{title}\n"


def copy_home(memory: Memory, root: Path, without: tuple[str, ...]) -> Memory:
    """A copy of the home without some of its folders."""
    shutil.copytree(memory.home.root, root, ignore=shutil.ignore_patterns("memory.db*", "daemon.sock"))
    for folder in without:
        shutil.rmtree(root / folder, ignore_errors=True)
    home = Home(root)
    return create_memory(home, load_config(home).config, memory.services.clock.now)


def play_conversation(memory: Memory, conversation: Conversation) -> None:
    session = open_session(memory, conversation)
    for turn in conversation.turns:
        record_turn(session, turn)
    session.end(
        conversation.ended,
        tags=conversation.tags,
        tokens_in=conversation.tokens_in,
        tokens_out=conversation.tokens_out,
    )


def open_session(memory: Memory, conversation: Conversation) -> Session:
    return memory.session(
        conversation.session_key,
        conversation.agent,
        conversation.channel,
        conversation.model,
        conversation.session_id,
        conversation.started,
    )


def record_turn(session: Session, turn: Turn) -> int:
    if turn.kind == "message":
        return session.message(turn.role or "user", turn.text, turn.at, turn.speaker)
    if turn.kind == "tool":
        return session.tool(turn.tool or "", turn.summary, turn.result, turn.at)
    if turn.kind == "knowledge":
        return session.knowledge(turn.knowledge or "", turn.path or "", turn.summary, turn.at)
    return session.attachment(turn.attachment or "", at=turn.at)

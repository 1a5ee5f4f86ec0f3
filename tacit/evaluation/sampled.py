"""The sample's conversations in a home of their own, kept and sealed as real ones would be.

It has none of the sample's notes, which were written from these conversations: what it knows afterwards is
what was learned. Only names are there from the start, as in a home that was used before: of the owner, of
the projects and of the people who have a note.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tacit import sample
from tacit.app import init_home, load_config, memory_of
from tacit.capture import Session
from tacit.memory import Memory
from tacit.sample import Conversation, Turn
from tacit.store import files
from tacit.store.home import CONFIG, Home
from tacit.text import notes
from tacit.text.yaml_values import entry

# The sample's owner lives in Vienna and writes from this account.
SETTINGS = {"timezone": "Europe/Vienna", "owners": ["48210011"]}
_STARTER = ("knowledge/", "topics/")
_NAMED = ("knowledge/people/", "knowledge/projects/")
_OWNER = "knowledge/identity/USER.md"


@contextmanager
def sample_home() -> Iterator[Memory]:
    """For as long as it is measured."""
    with tempfile.TemporaryDirectory(prefix="tacit-eval-") as folder:
        memory = build(Path(folder) / "home")
        try:
            yield memory
        finally:
            memory.searcher.close()


def build(root: Path) -> Memory:
    _, report = init_home(root)
    for path in report.made:
        if path.startswith(_STARTER):
            (root / path).unlink()
    settings = "".join(entry(key, value) for key, value in SETTINGS.items())
    (root / CONFIG).write_text(f"{settings}git:\n  auto_commit: false\n", encoding="utf-8")
    for path, data in sample.notes():
        if path.startswith(_NAMED) or path == _OWNER:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            files.replace(root / path, _only_named(data.decode()).encode())
    said = sample.conversations()
    home = Home(root)
    memory = memory_of(home, load_config(home).config, lambda: said[-1].ended)
    for conversation in said:
        play(memory, conversation)
    return memory


def _only_named(text: str) -> str:
    """A note as far as its title."""
    head, body = notes.split(text)
    title = next((line for line in body.split("\n") if line.startswith("# ")), "")
    return f"{head}{title}\n"


def copied(memory: Memory, root: Path, without: tuple[str, ...]) -> Memory:
    """The same home without some of its folders, to be asked alone."""
    shutil.copytree(memory.home.root, root, ignore=shutil.ignore_patterns("memory.db*", "daemon.sock"))
    for folder in without:
        shutil.rmtree(root / folder, ignore_errors=True)
    home = Home(root)
    return memory_of(home, load_config(home).config, memory.moment)


# One conversation


def play(memory: Memory, conversation: Conversation) -> None:
    session = open_session(memory, conversation)
    for turn in conversation.turns:
        keep(session, turn)
    end_session(session, conversation)


def open_session(memory: Memory, conversation: Conversation) -> Session:
    return memory.session(
        conversation.session_key,
        conversation.agent,
        conversation.channel,
        conversation.model,
        conversation.session_id,
        conversation.started,
    )


def keep(session: Session, turn: Turn) -> int:
    if turn.kind == "message":
        return session.message(turn.role or "user", turn.text, turn.at, turn.speaker)
    if turn.kind == "tool":
        return session.tool(turn.tool or "", turn.summary, turn.result, turn.at)
    if turn.kind == "knowledge":
        return session.knowledge(turn.knowledge or "", turn.path or "", turn.summary, turn.at)
    return session.attachment(turn.attachment or "", at=turn.at)


def end_session(session: Session, conversation: Conversation) -> None:
    session.end(
        conversation.ended,
        tags=conversation.tags,
        tokens_in=conversation.tokens_in,
        tokens_out=conversation.tokens_out,
    )

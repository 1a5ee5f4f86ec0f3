"""The sample's conversations in a home of their own, captured and sealed like real ones.

It has none of the sample's notes, which were written from these conversations: all its knowledge is learned.
Only names are there from the start, as in a home that was used before: of the owner, of the projects and of
the people who have a note.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tacit import sample
from tacit.app import create_memory, init_home, load_config
from tacit.home import files
from tacit.home.layout import CONFIG, Home
from tacit.markdown import notes
from tacit.markdown.yaml_values import format_entry
from tacit.memory import Memory
from tacit.sample import Conversation, Turn
from tacit.transcripts.capture import Session

# The sample's owner lives in Vienna and writes from this account.
SAMPLE_SETTINGS = {"timezone": "Europe/Vienna", "owners": ["48210011"]}
_STARTER_FOLDERS = ("knowledge/", "topics/")
_NAME_FOLDERS = ("knowledge/people/", "knowledge/projects/")
_OWNER_NOTE = "knowledge/identity/USER.md"


@contextmanager
def sample_home() -> Iterator[Memory]:
    """A temporary home with the sample's conversations."""
    with tempfile.TemporaryDirectory(prefix="tacit-eval-") as folder:
        memory = build_sample_home(Path(folder) / "home")
        try:
            yield memory
        finally:
            memory.searcher.close()


def build_sample_home(root: Path) -> Memory:
    _, report = init_home(root)
    for path in report.made:
        if path.startswith(_STARTER_FOLDERS):
            (root / path).unlink()
    settings = "".join(format_entry(key, value) for key, value in SAMPLE_SETTINGS.items())
    (root / CONFIG).write_text(f"{settings}git:\n  auto_commit: false\n", encoding="utf-8")
    for path, data in sample.notes():
        if path.startswith(_NAME_FOLDERS) or path == _OWNER_NOTE:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            files.replace(root / path, _keep_title(data.decode()).encode())
    conversations = sample.conversations()
    home = Home(root)
    memory = create_memory(home, load_config(home).config, lambda: conversations[-1].ended)
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
    return create_memory(home, load_config(home).config, memory.moment)


# One conversation


def play_conversation(memory: Memory, conversation: Conversation) -> None:
    session = open_session(memory, conversation)
    for turn in conversation.turns:
        keep_turn(session, turn)
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


def keep_turn(session: Session, turn: Turn) -> int:
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

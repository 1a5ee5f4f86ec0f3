"""Homes for measurements: empty, filled from the sample, or with thousands of transcripts.

The large ones are made once and kept in .cache/bench; a measurement that changes a home uses a copy.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path

import tacit
from tacit import sample
from tacit.transcripts import format as form
from tacit.transcripts.model import Closing, Opening

CACHE = Path(".cache/bench").absolute()
_LAYOUT = "2"  # raise it to rebuild the cached homes
_PER_DAY = 5
_FIRST_DAY = datetime(2015, 3, 2, 8, 0, tzinfo=UTC)


@contextmanager
def workshop() -> Iterator[Path]:
    """A temporary folder on the file system of the cached homes."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=CACHE))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def empty(root: Path) -> tacit.Memory:
    return tacit.init(root)


def from_sample(root: Path) -> tacit.Memory:
    """The sample's notes and conversations, written like a host would and committed."""
    memory = tacit.init(root)
    for path, data in sample.notes():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    for conversation in sample.conversations():
        session = memory.session(conversation.session_key, conversation.agent, started=conversation.started)
        for turn in conversation.turns:
            if turn.role:
                session.message(turn.role, turn.text, turn.at, turn.speaker)
        session.end(conversation.ended)
    memory.commit()
    return memory


def with_transcripts(count: int) -> Path:
    """A cached home with this many sealed and committed transcripts. Read it, do not write to it."""
    root = CACHE / f"home-{count}-v{_LAYOUT}"
    if not root.exists():
        print(f"making a home with {count} transcripts, once", file=sys.stderr)
        making = root.with_name(root.name + ".making")
        shutil.rmtree(making, ignore_errors=True)
        memory = tacit.init(making)
        for path, text in islice(_generate_transcripts(), count):
            file = making / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            file.chmod(0o400)
        memory.commit()  # commits the sealed transcripts that it finds, each with its hash
        making.rename(root)
    return root


def copy(home: Path, to: Path) -> Path:
    shutil.copytree(home, to, symlinks=True)
    os.sync()  # otherwise the first measured fsync would pay for the copy
    return to


def words(length: int) -> Iterator[str]:
    """Endless texts of this length from the sample."""
    text = " ".join(turn.text for talk in sample.conversations() for turn in talk.turns if turn.text)
    plain = " ".join(text.split())
    while True:
        for start in range(0, len(plain) - length, length):
            yield plain[start : start + length].strip().ljust(length, ".")


def _generate_transcripts() -> Iterator[tuple[str, str]]:
    """Path and text of sealed transcripts: twenty messages of 400 characters, five a day."""
    texts = words(400)
    for number in range(sys.maxsize):
        day, slot = divmod(number, _PER_DAY)
        started = _FIRST_DAY + timedelta(days=day, hours=2 * slot)
        opening = Opening(f"ses_{number:08x}", started, channel="bench", model="none")
        yield _format_transcript(opening, list(islice(texts, 20)))


def _format_transcript(opening: Opening, texts: list[str]) -> tuple[str, str]:
    name = form.make_slug(texts[0])
    parts = [form.render_opening(opening, texts[0])]
    place = form.RecordPosition(0, None, opening.started.date())
    moment = opening.started
    for text, turn in zip(texts, chain.from_iterable([("user", "agent")] * len(texts)), strict=False):
        moment += timedelta(seconds=30)
        message = form.render_message(place, moment, "user" if turn == "user" else "agent", text)
        parts.append(message.text)
        place = message.place
    text = form.render_final("".join(parts), opening, Closing(moment, (), 1000, 1000), [])
    return form.make_file_path(opening, name), text

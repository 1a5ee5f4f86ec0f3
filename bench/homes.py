"""Homes to measure in: empty, filled from the sample, or with thousands of transcripts.

The large ones are made once and kept in .cache/bench; whoever changes a home gets a copy.
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
from tacit.model.turns import Closing, Opening
from tacit.text import transcript as form

CACHE = Path(".cache/bench").absolute()
_LAYOUT = "2"  # raise it when the cached homes are to be made anew
_PER_DAY = 5
_FIRST = datetime(2015, 3, 2, 8, 0, tzinfo=UTC)


@contextmanager
def workshop() -> Iterator[Path]:
    """A folder on the file system of the cached homes, gone afterwards."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=CACHE))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def empty(root: Path) -> tacit.Memory:
    return tacit.init(root)


def from_sample(root: Path) -> tacit.Memory:
    """Its notes and conversations, written the way a host would and committed."""
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
        for path, text in islice(_transcripts(), count):
            file = making / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            file.chmod(0o400)
        memory.commit()  # takes in sealed transcripts that it finds: one commit each, with their hashes
        making.rename(root)
    return root


def copy(home: Path, to: Path) -> Path:
    shutil.copytree(home, to, symlinks=True)
    os.sync()  # else the first measured fsync would pay for the copying
    return to


def words(length: int) -> Iterator[str]:
    """Texts of this length, from the sample, without end."""
    said = " ".join(turn.text for talk in sample.conversations() for turn in talk.turns if turn.text)
    plain = " ".join(said.split())
    while True:
        for at in range(0, len(plain) - length, length):
            yield plain[at : at + length].strip().ljust(length, ".")


def _transcripts() -> Iterator[tuple[str, str]]:
    """Path and text of sealed transcripts: twenty messages of 400 characters, five a day."""
    texts = words(400)
    for number in range(sys.maxsize):
        day, slot = divmod(number, _PER_DAY)
        started = _FIRST + timedelta(days=day, hours=2 * slot)
        opening = Opening(f"ses_{number:08x}", started, channel="bench", model="none")
        yield _transcript(opening, list(islice(texts, 20)))


def _transcript(opening: Opening, texts: list[str]) -> tuple[str, str]:
    name = form.slug(texts[0])
    pieces = [form.begin(opening, texts[0])]
    place = form.Place(0, None, opening.started.date())
    at = opening.started
    for text, turn in zip(texts, chain.from_iterable([("user", "agent")] * len(texts)), strict=False):
        at += timedelta(seconds=30)
        written = form.message(place, at, "user" if turn == "user" else "agent", text)
        pieces.append(written.text)
        place = written.place
    text = form.finish("".join(pieces), opening, Closing(at, (), 1000, 1000), [])
    return form.file_path(opening, name), text

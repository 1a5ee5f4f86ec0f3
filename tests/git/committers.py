from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from tacit.git.committer import Committer
from tacit.git.note_committer import NoteCommitter
from tacit.git.repository import Git
from tacit.home.layout import Home
from tacit.review.model import find_targets


def note_committer(home: Path, now: Callable[[], datetime]) -> NoteCommitter:
    return NoteCommitter(Committer(Home(home), Git(home), now), (180, 200, 220), find_targets)

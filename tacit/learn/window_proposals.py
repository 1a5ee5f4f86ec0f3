"""Proposed changes from turns that leave the window, and where they wait: `.tacit/proposals`.

`extract` needs no model and is shallow. It knows wordings (`patterns`), not meanings: a decision in other
words is missed, and a joke in those words is taken. It takes sentences word for word, each with its speaker
and time. The transcript still has everything for better extractors later.

One file per set, named after its session and its id, so turns that leave a window twice give one proposal.
Changes of a session that wait already are not stored again. A turn must not fail here: if a proposal cannot
be stored, `offer` returns the reason and never raises.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import date, datetime
from typing import NamedTuple

from tacit.errors import StoreError
from tacit.home.files import Tree, digest, hold_lock, is_temporary
from tacit.home.layout import MEMORY, Home
from tacit.home.paths import path_problem
from tacit.learn.entities import NameIndex
from tacit.learn.model import CHANGE_KINDS, Change, ChangeSet, Source
from tacit.learn.patterns import StatementKind, find_statements
from tacit.markdown.comment import TRUSTS, Trust
from tacit.text.words import fold
from tacit.transcripts.attribution import Utterance

EXTRACTOR = "cues/1"
LEFT_THE_WINDOW = "history left the window"
MAX_CHANGES = 20  # changes in one set
_MAX_TURN_CHARS = 20_000
_MAX_TURNS = 200  # the newest; the transcript has the others
_SECTIONS: dict[StatementKind, str] = {"decision": "Key Decisions", "lesson": "Lessons Learned"}
MAX_FILES = 2_000
MAX_TOTAL_BYTES = 16 * 2**20
_MAX_BYTES = 2**20  # ours are smaller
_LOCK_TIMEOUT_S = 0.25  # short, because a turn is waiting
_FOLDER = "proposals"


def extract(
    turns: Sequence[Utterance],
    *,
    session_key: str,
    session_id: str,
    made_at: datetime,
    day: date | None = None,
    projects: Mapping[str, str] | None = None,
    users: Trust = "other",
    most: int = MAX_CHANGES,
    reason: str = LEFT_THE_WINDOW,
) -> ChangeSet | None:
    """The changes worth keeping from `turns`; None if there are none.

    `day` is for turns without a time: pass the day on which the session began, so that the same turns give
    the same changes tomorrow. `projects` maps the names of projects to their slugs. `users` is the trust of
    users in this session.
    """
    names = NameIndex(projects or {})
    changes_by_key: dict[tuple[str, str], Change] = {}
    for turn in turns[-_MAX_TURNS:]:
        if turn.role not in ("user", "agent"):
            continue
        trust: Trust = "agent" if turn.role == "agent" else users
        for kind, sentence in find_statements(turn.text, by_agent=turn.role == "agent"):
            day_text = (turn.at.date() if turn.at else day or made_at.date()).isoformat()
            slug = names.one_in(sentence) or names.one_in(turn.text[:_MAX_TURN_CHARS])
            change = Change(
                *_target_note(kind, day_text, slug),
                sentence,
                day_text,
                kind,
                _source_of(turn, session_key),
                trust,
            )
            changes_by_key.setdefault((change.path, fold(sentence)), change)
    changes = tuple(changes_by_key.values())[-most:] if most > 0 else ()
    if not changes:
        return None
    return ChangeSet(session_key, session_id, made_at.isoformat(), EXTRACTOR, reason, changes)


def _target_note(kind: StatementKind, day: str, slug: str | None) -> tuple[str, str | None]:
    if kind == "event":
        return f"knowledge/journal/{day}.md", slug
    if kind == "decision" and slug:
        return f"knowledge/projects/{slug}/context.md", _SECTIONS[kind]
    return MEMORY, _SECTIONS[kind]


def _source_of(turn: Utterance, session_key: str) -> Source:
    timestamp = turn.at.isoformat() if turn.at else ""
    return Source(session_key, turn.number, turn.role, turn.speaker, timestamp)


# Storage


def offer(home: Home, proposal: ChangeSet) -> str | None:
    """Store a proposal. Returns the reason if it could not be stored."""
    try:
        with hold_lock(home.private / "proposals.lock", _LOCK_TIMEOUT_S):
            new = _drop_waiting(home, proposal)
            if new.changes:
                data = json.dumps(asdict(new), indent=1).encode()
                if len(data) > _MAX_BYTES:
                    return (
                        f"The proposal has {len(data):,} bytes, more than the {_MAX_BYTES:,} that are kept."
                    )
                Tree(home.private).put(f"{_FOLDER}/{_file_name(new)}", data)
                _prune_oldest(home, keep=_file_name(new))
    except (OSError, StoreError) as error:
        return f"The proposal was not kept: {error}"
    return None


def remove(home: Home, proposal: ChangeSet) -> None:
    """Remove a proposal that was handled or is no longer needed."""
    with (
        hold_lock(home.private / "proposals.lock", 5.0),
        Tree(home.private).folder(f"{_FOLDER}/x") as (directory, _),
        suppress(FileNotFoundError),
    ):
        os.unlink(_file_name(proposal), dir_fd=directory)


def list_waiting(home: Home) -> list[ChangeSet]:
    """All readable proposals, oldest first."""
    return sorted(_read_all(home), key=lambda proposal: (proposal.made_at, proposal.id))


def drop_changes(home: Home, is_meant: Callable[[ChangeSet, Change], bool]) -> int:
    """Drop the matching changes and keep the rest of each set. Returns how many were dropped."""
    dropped = 0
    with hold_lock(home.private / "proposals.lock"):
        tree = Tree(home.private)
        for proposal in list_waiting(home):
            remaining = tuple(change for change in proposal.changes if not is_meant(proposal, change))
            if len(remaining) == len(proposal.changes):
                continue
            dropped += len(proposal.changes) - len(remaining)
            old = f"{_FOLDER}/{_file_name(proposal)}"
            if remaining:
                updated = replace(proposal, changes=remaining)
                tree.put(f"{_FOLDER}/{_file_name(updated)}", json.dumps(asdict(updated), indent=1).encode())
            tree.remove(old, digest(tree.read(old)))
    return dropped


def _read_all(home: Home, session: str = "") -> Iterator[ChangeSet]:
    for file in _list_files(home):
        proposal = (
            _read(home, file.name) if file.name.startswith(session) and file.size <= _MAX_BYTES else None
        )
        if proposal:
            yield proposal


def _file_name(proposal: ChangeSet) -> str:
    return f"{_session_hash(proposal)}-{proposal.id}.json"


def _session_hash(proposal: ChangeSet) -> str:
    return digest(proposal.session_key.encode("utf-8", "surrogatepass"))[:12]


def _drop_waiting(home: Home, proposal: ChangeSet) -> ChangeSet:
    """The proposal without changes that wait already."""
    existing = _read_all(home, _session_hash(proposal))
    known = {change.key for proposal in existing for change in proposal.changes}
    return replace(proposal, changes=tuple(change for change in proposal.changes if change.key not in known))


class _File(NamedTuple):
    changed: int
    name: str
    size: int


def _list_files(home: Home) -> list[_File]:
    """Plain files of ours, oldest first."""
    try:
        with Tree(home.private).folder(f"{_FOLDER}/x") as (directory, _):
            return sorted(_scan(directory))
    except (OSError, StoreError):
        return []


def _scan(directory: int) -> Iterator[_File]:
    with os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError):  # gone while we were looking
                info = entry.stat(follow_symlinks=False)
                if entry.is_file(follow_symlinks=False) and entry.name.endswith(".json"):
                    yield _File(info.st_mtime_ns, entry.name, info.st_size)


def _prune_oldest(home: Home, keep: str) -> None:
    """Delete the oldest if there are too many. Called with the lock held, so temporary files are orphaned."""
    files = _list_files(home)
    count, size = len(files), sum(file.size for file in files)
    with Tree(home.private).folder(f"{_FOLDER}/x") as (directory, _):
        for file in files:
            if count <= MAX_FILES and size <= MAX_TOTAL_BYTES:
                break
            if file.name != keep:
                os.unlink(file.name, dir_fd=directory)
                count, size = count - 1, size - file.size
        for name in filter(is_temporary, os.listdir(directory)):
            os.unlink(name, dir_fd=directory)


def _read(home: Home, name: str) -> ChangeSet | None:
    """None if it is not a valid proposal: the file name must match the content."""
    try:
        stored = json.loads(Tree(home.private).read(f"{_FOLDER}/{name}"))
        del stored["id"]
        proposal = ChangeSet(**{**stored, "changes": tuple(map(_parse_change, stored["changes"]))})
    except (OSError, StoreError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return (
        proposal
        if _has_text_fields(proposal) and _has_valid_paths(proposal) and name == _file_name(proposal)
        else None
    )


def _parse_change(stored: dict[str, object]) -> Change:
    parsed = {"source": Source(**stored["source"]), "also": tuple(stored.get("also", ()))}  # type: ignore[arg-type]
    change = Change(**{**stored, **parsed})  # type: ignore[arg-type]
    if change.kind not in CHANGE_KINDS or change.trust not in TRUSTS:
        raise ValueError(change.kind)
    return change


def _has_valid_paths(proposal: ChangeSet) -> bool:
    """Whether its paths are valid note names: a draft puts them in headings."""
    return not any(path_problem(change.path) for change in proposal.changes)


def _has_text_fields(proposal: ChangeSet) -> bool:
    texts = [proposal.session_key, proposal.session_id, proposal.made_at, proposal.extractor, proposal.reason]
    texts += [text for change in proposal.changes for text in (change.path, change.text, change.day)]
    return all(isinstance(text, str) for text in texts)

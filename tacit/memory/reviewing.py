"""The review queue: somebody looks at a draft, and says yes or no.

What must stay true:
- a draft is approved word for word as its file stands at that moment; who, when and its hash are recorded;
- a note that changed since a draft was made for it is not overwritten: the draft is rebased, or refused;
- what an approval does is one commit, so one command takes it back.
"""

from __future__ import annotations

import difflib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tacit.errors import DraftRefused, UsageError
from tacit.lifecycle.apply import MEMORY, Line, with_lines
from tacit.lifecycle.items import dated
from tacit.lifecycle.prune import Taken, archive_page, left_out, with_archived
from tacit.lifecycle.rebase import rebased, with_head_of
from tacit.memory.policies import policy
from tacit.memory.schedules import wall
from tacit.model.review import Draft
from tacit.store import files
from tacit.store.home import NOTE_FOLDERS, REVIEWED
from tacit.text import notes
from tacit.text.proposals import Addition, Unreadable, additions_in, read
from tacit.text.words import fold

if TYPE_CHECKING:
    from tacit.memory.memory import Memory

_AGAIN = "It changed since the draft was made for it, so nothing was overwritten."


class Edit(NamedTuple):
    """A note before and after; None is no file."""

    path: str
    old: bytes | None
    new: bytes | None


class Approved(NamedTuple):
    draft: Draft
    paths: tuple[str, ...]
    commit: str  # empty: it is committed later


def approve(memory: Memory, name: str, by: str) -> Approved:
    with files.locked(memory.home.lock):
        draft = memory.reviews.find(name)
        edits = edits_of(memory, draft)
        _refuse_approver(memory, draft, edits, by)
        sha = memory.reviews.sha_of(draft)
        # Said first: should the power fail in between, the same approval is only done once more.
        memory.reviews.decided("approved", draft, memory.moment(), by=by, sha256=sha)
        put(memory, edits)
        memory.reviews.remove(draft)
        message = (
            f"{_kind(edits)}: {draft.id} approved by {by}\n\n{draft.reason}\n\n"
            f"Draft: {draft.id} {sha}\nApproved-by: {by}\n"
        )
        paths = (*(edit.path for edit in edits), memory.reviews.path_of(draft), REVIEWED)
        return Approved(draft, tuple(edit.path for edit in edits), _commit(memory, message, paths))


def reject(memory: Memory, name: str, by: str, why: str = "") -> Approved:
    with files.locked(memory.home.lock):
        draft = memory.reviews.find(name)
        sha = memory.reviews.sha_of(draft)
        memory.reviews.decided("rejected", draft, memory.moment(), by=by, sha256=sha, why=why)
        memory.reviews.remove(draft)
        subject = f"maintenance: {draft.id} rejected by {by}"
        message = f"{subject}\n\n{why or draft.reason}\n\nDraft: {draft.id} {sha}\n"
        commit = _commit(memory, message, (memory.reviews.path_of(draft), REVIEWED))
        return Approved(draft, (), commit)


def edit(memory: Memory, name: str, text: str, by: str) -> Draft:
    """Another text for the draft, whole: frontmatter and body."""
    with files.locked(memory.home.lock):
        old = memory.reviews.find(name)
        try:
            new = read(old.id, text)
            if new.form == "lines":
                additions_in(new)
        except Unreadable as error:
            raise DraftRefused(
                f"The draft was left as it was: {error}. Mend the text and try again."
            ) from None
        if (new.form, new.target, new.policy, new.trust) != (old.form, old.target, old.policy, old.trust):
            raise DraftRefused(
                "The draft was left as it was: its form, target, policy and trust cannot be changed. "
                "Reject it and write the note yourself."
            )
        memory.reviews.rewrite(new)
        memory.reviews.decided("edited", new, memory.moment(), by=by, sha256=memory.reviews.sha_of(new))
        return new


def rebase(memory: Memory, name: str, by: str) -> Draft:
    """The draft for its target as it is now, where both changes can stand beside each other."""
    with files.locked(memory.home.lock):
        draft = memory.reviews.find(name)
        now = read_note(memory, draft.target)
        if draft.form != "text" or not is_stale(memory, draft):
            raise UsageError(f"{draft.id} needs no rebase. Approve it with: tacit review approve {draft.id}")
        base = memory.git.blobs([draft.blob]).get(draft.blob) if draft.blob else None
        if now is None or base is None or files.digest(base) != draft.base:
            raise DraftRefused(
                f"What {draft.id} was made for is not known any more. Take what you want of it into "
                f"{draft.target} yourself, then: tacit review reject {draft.id}"
            )
        merged = _merged(memory, draft, notes.decode(now), notes.decode(base))
        new = replace(draft, body=merged, base=files.digest(now), blob=memory.git.blob_name(now))
        memory.reviews.rewrite(new)
        memory.reviews.decided("rebased", new, memory.moment(), by=by, sha256=memory.reviews.sha_of(new))
        return new


def _merged(memory: Memory, draft: Draft, now: str, base: str) -> str:
    """Line by line where that goes, else entry by entry."""
    parts = (now, with_head_of(base, now), with_head_of(draft.body, now))
    if (lines := _merged_lines(memory, *map(notes.encode, parts))) is not None:
        return dated(notes.decode(lines), wall(memory))
    entries = rebased(base, draft.body, now, draft.target, wall(memory))
    if entries is None:
        raise DraftRefused(
            f"{draft.target} was changed in the same place, so {draft.id} cannot be rebased. Change it "
            f"with: tacit review edit {draft.id}, or reject it."
        )
    return entries


def _merged_lines(memory: Memory, now: bytes, base: bytes, new: bytes) -> bytes | None:
    with tempfile.TemporaryDirectory(dir=memory.home.private) as folder:
        names = [Path(folder, name) for name in ("now", "base", "new")]
        for name, data in zip(names, (now, base, new), strict=True):
            name.write_bytes(data)
        done = memory.git.attempt("merge-file", "-p", *map(str, names))
    return None if done.returncode else done.stdout


# ---------------------------------------------------------------- what a draft would do


def is_stale(memory: Memory, draft: Draft) -> bool:
    if draft.form == "lines":
        return False
    now = read_note(memory, draft.target)
    return (None if now is None else files.digest(now)) != draft.base


def edits_of(memory: Memory, draft: Draft) -> list[Edit]:
    """What approving it changes, as things are now. Raises where it cannot be done so."""
    try:
        found = _edits(memory, draft)
    except Unreadable as error:
        raise DraftRefused(
            f"{draft.id} cannot be approved: {error}. Change it: tacit review edit {draft.id}"
        ) from None
    return [edit for edit in found if edit.old != edit.new]


def _edits(memory: Memory, draft: Draft) -> list[Edit]:
    if draft.form == "lines":
        return _with_lines(memory, additions_in(draft))
    now = read_note(memory, _note(draft.target))
    if _is_done(memory, draft, now):
        return []
    if is_stale(memory, draft):
        todo = (
            f"tacit review rebase {draft.id}" if draft.form == "text" else f"tacit review reject {draft.id}"
        )
        raise DraftRefused(f"{draft.target}: {_AGAIN} Try: {todo}")
    if draft.form == "text":
        new = Edit(draft.target, now, notes.encode(draft.body))
        return [*archived(memory, new, draft.reason), new]
    there = read_note(memory, _note(draft.to))
    if there not in (None, now):
        raise DraftRefused(f"{draft.to} is there already. Move it away, or: tacit review reject {draft.id}")
    return [Edit(draft.to, there, now), Edit(draft.target, now, None)]


def _is_done(memory: Memory, draft: Draft, now: bytes | None) -> bool:
    """Whether somebody approved it before and was killed at it."""
    if draft.form == "text":
        return now == notes.encode(draft.body)
    there = read_note(memory, _note(draft.to)) if now is None else None
    return there is not None and files.digest(there) == draft.base


def archived(memory: Memory, edit: Edit, reason: str) -> list[Edit]:
    """What leaves MEMORY.md is kept in the archive, whatever somebody made of the draft."""
    if edit.path != MEMORY or edit.old is None or edit.new is None:
        return []
    gone = [Taken(item, reason) for item in left_out(notes.decode(edit.old), notes.decode(edit.new))]
    if not gone:
        return []
    page = archive_page(wall(memory))
    old = read_note(memory, page)
    text = with_archived(None if old is None else notes.decode(old), gone, wall(memory))
    return [Edit(page, old, notes.encode(text))]


def _with_lines(memory: Memory, additions: list[Addition]) -> list[Edit]:
    by_path: dict[str, list[Line]] = {}
    for one in additions:
        by_path.setdefault(_note(one.path), []).append(Line(one.section, one.line))
    found = []
    for path, lines in by_path.items():
        old = read_note(memory, path)
        text = with_lines(None if old is None else notes.decode(old), path, lines)
        found.append(Edit(path, old, notes.encode(text)))
    return found


def _note(path: str) -> str:
    parts = files.parts_of(path)
    if parts[0] not in NOTE_FOLDERS or parts[0] == "drafts" or not path.endswith(".md"):
        raise Unreadable(f"{path} is not a note")
    return path


def diff_of(edits: list[Edit]) -> str:
    """As a unified diff."""
    out: list[str] = []
    for one in edits:
        old, new = _lines(one.old), _lines(one.new)
        out += difflib.unified_diff(old, new, f"a/{one.path}", f"b/{one.path}", lineterm="")
    return "\n".join(out)


def _lines(data: bytes | None) -> list[str]:
    return [] if data is None else notes.decode(data).splitlines()


# ---------------------------------------------------------------- doing it


def _refuse_approver(memory: Memory, draft: Draft, edits: list[Edit], by: str) -> None:
    if not by.strip():
        raise UsageError("Somebody has to say who approves: --by NAME")
    allowed = memory.config.review.approvers
    # By the config and the notes as they are now: the draft is a file that was written before, and edited.
    paths = ("", *(edit.path for edit in edits))
    now = {policy(memory.config, draft.category, is_own=False, path=path) for path in paths}
    if "owner" in (draft.policy, *now) and fold(by) not in {fold(name) for name in allowed}:
        who = ", ".join(allowed) or "nobody yet"
        raise DraftRefused(
            f"{by!r} may not approve {draft.id}: review.approvers in memory-config.yaml names {who}. "
            "Add the name there."
        )


def put(memory: Memory, edits: list[Edit]) -> None:
    """Each note as it becomes, if it is still what it was. Call it with the home's lock."""
    tree = files.Tree(memory.home.root)
    if memory.config.git.auto_commit:
        memory.commit_theirs([edit.path for edit in edits if edit.old is not None])
    # What comes is written before anything goes, from a note or with it: a crash between leaves it twice,
    # never not at all.
    for one in sorted(edits, key=lambda edit: (edit.new is None, not edit.path.startswith("archive/"))):
        if one.new is not None:
            tree.write(
                one.path, one.new, None if one.old is None else files.digest(one.old), tree.mode(one.path)
            )
        elif one.old is not None:
            tree.remove(one.path, files.digest(one.old))


def read_note(memory: Memory, path: str) -> bytes | None:
    try:
        return files.Tree(memory.home.root).read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _kind(edits: list[Edit]) -> str:
    return "identity" if any(edit.path.startswith("knowledge/identity/") for edit in edits) else "memory"


def _commit(memory: Memory, message: str, paths: tuple[str, ...]) -> str:
    if not memory.config.git.auto_commit:
        return ""
    return next(iter(memory.commit_paths(message, paths).commits), "")

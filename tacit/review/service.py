"""The review queue: a person approves, rejects, edits or rebases a draft.

What must stay true:
- a draft is approved exactly as its file is at that moment; the approver, the time and its hash are recorded;
- a note that changed since the draft was made is not overwritten: the draft is rebased or refused;
- an approval is one commit, so one command reverts it.
"""

from __future__ import annotations

import difflib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from tacit.clock import Clock
from tacit.config import Config
from tacit.errors import DraftRefused, UsageError
from tacit.git.conflicts import NoteTree
from tacit.git.index import require_checked_out
from tacit.git.note_committer import NoteCommitter
from tacit.git.repository import Git
from tacit.home import files
from tacit.home.layout import MEMORY, NOTE_FOLDERS, REVIEWED, Home
from tacit.home.paths import path_problem
from tacit.markdown import notes
from tacit.markdown.note_page import NoteLine, update_dates
from tacit.review.entries import (
    add_lines,
    append_archived,
    archive_page_path,
    copy_head,
    rebase_entries,
    removed_entries,
)
from tacit.review.model import Addition, ChangeRequest, UnreadableDraft, parse_draft, read_additions
from tacit.review.policies import find_policy, is_allowed
from tacit.review.store import ReviewQueue
from tacit.workspaces.note_store import read_note

_STALE = "It changed since the draft was made for it, so nothing was overwritten."


class NoteEdit(NamedTuple):
    """A note before and after; None means no file."""

    path: str
    old: bytes | None
    new: bytes | None


class ReviewResult(NamedTuple):
    draft: ChangeRequest
    paths: tuple[str, ...]
    commit: str  # empty if it is committed later


class NoteEditor:
    """Writes edits of notes, each only if the note is unchanged."""

    def __init__(self, home: Home, config: Config, clock: Clock, committer: NoteCommitter) -> None:
        self._home, self._config, self._clock, self._committer = home, config, clock, committer

    def write(self, edits: list[NoteEdit]) -> None:
        """Write each edit if its note is unchanged. Call with the home's lock held."""
        tree = NoteTree(self._home.root)
        for change in edits:
            if change.old is None and change.new is not None:
                require_checked_out(self._home.root, change.path)
        if self._config.git.auto_commit:
            self._committer.commit_theirs([edit.path for edit in edits if edit.old is not None])
        # Write before removing: after a crash in between, text is there twice, and never lost.
        for change in sorted(
            edits, key=lambda edit: (edit.new is None, not edit.path.startswith("archive/"))
        ):
            if change.new is not None:
                tree.write(
                    change.path,
                    change.new,
                    None if change.old is None else files.digest(change.old),
                    tree.mode(change.path),
                )
            elif change.old is not None:
                tree.remove(change.path, files.digest(change.old))

    def archive_removals(self, edit: NoteEdit) -> list[NoteEdit]:
        """Archive the entries that leave MEMORY.md, even if the draft was edited."""
        if edit.path != MEMORY or edit.old is None or edit.new is None:
            return []
        removed = removed_entries(notes.decode(edit.old), notes.decode(edit.new))
        if not removed:
            return []
        page = archive_page_path(self._clock.local_now())
        old = read_note(self._home, page)
        text = append_archived(None if old is None else notes.decode(old), removed, self._clock.local_now())
        return [NoteEdit(page, old, notes.encode(text))]


class ReviewService:
    """The decisions on drafts."""

    def __init__(
        self,
        home: Home,
        config: Config,
        clock: Clock,
        *,
        git: Git,
        reviews: ReviewQueue,
        committer: NoteCommitter,
        editor: NoteEditor,
    ) -> None:
        self._home, self._config, self._clock = home, config, clock
        self._git, self._reviews, self._committer, self._editor = git, reviews, committer, editor

    def approve(self, name: str, by: str) -> ReviewResult:
        with files.hold_lock(self._home.lock):
            draft = self._reviews.find(name)
            edits = self.plan_edits(draft)
            self._refuse_approver(draft, edits, by)
            sha = self._reviews.sha_of(draft)
            # Recorded first: after a power failure in between, the same approval is simply repeated.
            self._reviews.record("approved", draft, self._clock.now(), by=by, sha256=sha)
            self._editor.write(edits)
            self._reviews.remove(draft)
            message = (
                f"{_commit_kind(edits)}: {draft.id} approved by {by}\n\n{draft.reason}\n\n"
                f"Draft: {draft.id} {sha}\nApproved-by: {by}\n"
            )
            paths = (*(edit.path for edit in edits), self._reviews.path_of(draft), REVIEWED)
            return ReviewResult(draft, tuple(edit.path for edit in edits), self._commit(message, paths))

    def reject(self, name: str, by: str, why: str = "") -> ReviewResult:
        with files.hold_lock(self._home.lock):
            draft = self._reviews.find(name)
            sha = self._reviews.sha_of(draft)
            self._reviews.record("rejected", draft, self._clock.now(), by=by, sha256=sha, why=why)
            self._reviews.remove(draft)
            subject = f"maintenance: {draft.id} rejected by {by}"
            message = f"{subject}\n\n{why or draft.reason}\n\nDraft: {draft.id} {sha}\n"
            commit = self._commit(message, (self._reviews.path_of(draft), REVIEWED))
            return ReviewResult(draft, (), commit)

    def edit_draft(self, name: str, text: str, by: str) -> ChangeRequest:
        """Replace the whole text of the draft: frontmatter and body."""
        with files.hold_lock(self._home.lock):
            old = self._reviews.find(name)
            try:
                new = parse_draft(old.id, text)
                if new.form == "lines":
                    read_additions(new)
            except UnreadableDraft as error:
                raise DraftRefused(
                    f"The draft was left as it was: {error}. Correct the text and try again."
                ) from None
            target = files.Tree(self._home.root).resolve(new.target) if new.target else ""
            if (new.form, target, new.policy, new.trust) != (old.form, old.target, old.policy, old.trust):
                raise DraftRefused(
                    "The draft was left as it was: its form, target, policy and trust cannot be changed. "
                    "Reject it and write the note yourself."
                )
            self._reviews.rewrite(new)
            self._reviews.record("edited", new, self._clock.now(), by=by, sha256=self._reviews.sha_of(new))
            return new

    def rebase(self, name: str, by: str) -> ChangeRequest:
        """Update the draft to the current target, if both changes fit together."""
        with files.hold_lock(self._home.lock):
            draft = self._reviews.find(name)
            current = read_note(self._home, draft.target)
            if draft.form != "text" or not self.is_stale(draft):
                raise UsageError(
                    f"{draft.id} needs no rebase. Approve it with: tacit review approve {draft.id}"
                )
            base = self._git.blobs([draft.blob]).get(draft.blob) if draft.blob else None
            if current is None or base is None or files.digest(base) != draft.base:
                raise DraftRefused(
                    f"What {draft.id} was made for is no longer known. Copy what you want to keep into "
                    f"{draft.target} yourself, then: tacit review reject {draft.id}"
                )
            merged = self._merge(draft, notes.decode(current), notes.decode(base))
            new = replace(draft, body=merged, base=files.digest(current), blob=self._git.blob_name(current))
            self._reviews.rewrite(new)
            self._reviews.record("rebased", new, self._clock.now(), by=by, sha256=self._reviews.sha_of(new))
            return new

    def _merge(self, draft: ChangeRequest, current: str, base: str) -> str:
        """Merge line by line if possible, else entry by entry."""
        parts = (current, copy_head(base, current), copy_head(draft.body, current))
        if (lines := self._merge_lines(*map(notes.encode, parts))) is not None:
            return update_dates(notes.decode(lines), self._clock.local_now())
        entries = rebase_entries(base, draft.body, current, draft.target, self._clock.local_now())
        if entries is None:
            raise DraftRefused(
                f"{draft.target} was changed in the same place, so {draft.id} cannot be rebased. Change it "
                f"with: tacit review edit {draft.id}, or reject it."
            )
        return entries

    def _merge_lines(self, current: bytes, base: bytes, new: bytes) -> bytes | None:
        with tempfile.TemporaryDirectory(dir=self._home.private) as folder:
            names = [Path(folder, name) for name in ("now", "base", "new")]
            for name, data in zip(names, (current, base, new), strict=True):
                name.write_bytes(data)
            result = self._git.attempt("merge-file", "-p", *map(str, names))
        return None if result.returncode else result.stdout

    def is_stale(self, draft: ChangeRequest) -> bool:
        if draft.form == "lines":
            return False
        current = read_note(self._home, draft.target)
        return (None if current is None else files.digest(current)) != draft.base

    def plan_edits(self, draft: ChangeRequest) -> list[NoteEdit]:
        """The edits that an approval would make now. Raises if the draft cannot be approved."""
        try:
            edits = self._compute_edits(draft)
        except UnreadableDraft as error:
            raise DraftRefused(
                f"{draft.id} cannot be approved: {error}. Change it: tacit review edit {draft.id}"
            ) from None
        return [edit for edit in edits if edit.old != edit.new]

    def _compute_edits(self, draft: ChangeRequest) -> list[NoteEdit]:
        if draft.form == "lines":
            return self._line_edits(read_additions(draft))
        current = read_note(self._home, self._note_path(draft.target))
        if self._was_applied(draft, current):
            return []
        if self.is_stale(draft):
            todo = (
                f"tacit review rebase {draft.id}"
                if draft.form == "text"
                else f"tacit review reject {draft.id}"
            )
            raise DraftRefused(f"{draft.target}: {_STALE} Try: {todo}")
        if draft.form == "text":
            new = NoteEdit(draft.target, current, notes.encode(draft.body))
            return [*self._editor.archive_removals(new), new]
        occupant = read_note(self._home, self._note_path(draft.to))
        if occupant not in (None, current):
            raise DraftRefused(
                f"{draft.to} is there already. Move it away, or: tacit review reject {draft.id}"
            )
        return [NoteEdit(draft.to, occupant, current), NoteEdit(draft.target, current, None)]

    def _was_applied(self, draft: ChangeRequest, current: bytes | None) -> bool:
        """Whether an interrupted approval applied it already."""
        if draft.form == "text":
            return current == notes.encode(draft.body)
        moved = read_note(self._home, self._note_path(draft.to)) if current is None else None
        return moved is not None and files.digest(moved) == draft.base

    def _line_edits(self, additions: list[Addition]) -> list[NoteEdit]:
        by_path: dict[str, list[NoteLine]] = {}
        for addition in additions:
            by_path.setdefault(self._note_path(addition.path), []).append(
                NoteLine(addition.section, addition.line)
            )
        edits = []
        for path, lines in by_path.items():
            old = read_note(self._home, path)
            text = add_lines(None if old is None else notes.decode(old), path, lines)
            edits.append(NoteEdit(path, old, notes.encode(text)))
        return edits

    def _note_path(self, path: str) -> str:
        """The path as spelled on disk; the draft may spell it differently."""
        resolved = files.Tree(self._home.root).resolve(path)
        folder = resolved.partition("/")[0]
        if folder not in NOTE_FOLDERS or folder == "drafts" or not resolved.endswith(".md"):
            raise UnreadableDraft(f"{path} is not a note")
        if read_note(self._home, resolved) is None and (problem := path_problem(resolved)):
            raise UnreadableDraft(f"{path[:80]!r} cannot be the name of a note: {problem}")
        return resolved

    def _refuse_approver(self, draft: ChangeRequest, edits: list[NoteEdit], approver: str) -> None:
        if not approver.strip():
            raise UsageError("Say who approves: --by NAME")
        allowed = self._config.review.approvers
        # Checked against the current config and notes: the draft is an older file that may have been edited.
        paths = ("", *(edit.path for edit in edits))
        policies = {find_policy(self._config, draft.category, is_own=False, path=path) for path in paths}
        if "owner" in (draft.policy, *policies) and not is_allowed(approver, allowed):
            names = ", ".join(allowed) or "no one yet"
            raise DraftRefused(
                f"{approver!r} may not approve {draft.id}: review.approvers in memory-config.yaml names "
                f"{names}. Add the name there."
            )

    def _commit(self, message: str, paths: tuple[str, ...]) -> str:
        if not self._config.git.auto_commit:
            return ""
        return next(iter(self._committer.commit_paths(message, paths).commits), "")


def render_diff(edits: list[NoteEdit]) -> str:
    """The edits as a unified diff."""
    diff_lines: list[str] = []
    for change in edits:
        old, new = _lines(change.old), _lines(change.new)
        diff_lines += difflib.unified_diff(old, new, f"a/{change.path}", f"b/{change.path}", lineterm="")
    return "\n".join(diff_lines)


def _lines(data: bytes | None) -> list[str]:
    return [] if data is None else notes.decode(data).splitlines()


def _commit_kind(edits: list[NoteEdit]) -> str:
    return "identity" if any(edit.path.startswith("knowledge/identity/") for edit in edits) else "memory"

"""Change requests for the files of a workspace that people curate: drafted, approved, promoted, undone.

What must stay true:
- only a draft that was approved, exactly as it is, by a person with permission changes its target;
- a target that changed since the draft was made is never overwritten, neither by promoting nor by undoing;
- the replaced text is backed up first, so that one command restores it;
- the log, `approvals.jsonl`, is append-only, and is on disk before any result is reported.

The log and the drafts are in the workspace and not in a home: they belong to the owner of the files, and
outlive tacit. The log is also the lock: hold it to work on drafts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from tacit.errors import DraftRefused
from tacit.git.conflicts import NoteTree
from tacit.git.index import require_checked_out
from tacit.home.files import digest
from tacit.review.model import CuratedFile, Decision, DecisionKind, FileStatus
from tacit.review.policies import is_allowed
from tacit.review.store import DecisionLog

LOG_FILE = "approvals.jsonl"
BACKUP_FOLDER = "backups"

RenderTarget: TypeAlias = Callable[
    [bytes | None, bytes], bytes
]  # the target as it is, the draft → the target as it will be
Record: TypeAlias = Callable[[Decision], None]


class ApprovalRule(NamedTuple):
    """Who may approve a draft, and the commands that a refusal suggests."""

    allowed: tuple[str, ...]
    draft: str
    approve: str
    allow: str  # how to become one who may


class CuratedFiles:
    """The drafts below `folder` in `root`."""

    def __init__(self, root: Path, folder: str, now: Callable[[], datetime]) -> None:
        self.root, self._folder, self._now = root, folder, now
        self._tree = NoteTree(root)
        self.log = DecisionLog(root, f"{folder}/{LOG_FILE}", is_about_files=True)

    def decisions(self, file: CuratedFile | None = None) -> list[Decision]:
        """All readable decisions, oldest first."""
        return [
            decision for decision in self.log.decisions() if file is None or decision.request == file.name
        ]

    def text(self, file: CuratedFile) -> bytes | None:
        return self._read(file.draft)

    def target(self, file: CuratedFile) -> bytes | None:
        return self._read(file.target)

    def status(self, file: CuratedFile, rule: ApprovalRule) -> FileStatus:
        """The state of the last draft, and what is missing to promote it."""
        hashes = digest_or_none(self.text(file)), digest_or_none(self.target(file))
        return _find_status(self.decisions(file), file, *hashes, rule)

    # Proposing

    def propose(
        self, file: CuratedFile, text: bytes, base: str | None, notes: Mapping[str, Any]
    ) -> tuple[Decision, str]:
        """Store a draft that was made from the target with the hash `base`. An older draft that was edited is
        backed up; returns where."""
        with self._deciding(file) as record:
            backup = self._back_up_own_words(file, text)
            self._tree.put(file.draft, text)
            return record("drafted", sha256=digest(text), base=base, notes=notes), backup

    def _back_up_own_words(self, file: CuratedFile, text: bytes) -> str:
        old = self.text(file)
        proposed = {decision.sha256 for decision in self.decisions(file) if decision.what == "drafted"}
        return "" if old is None or old == text or digest(old) in proposed else self._back_up(file.draft, old)

    # Deciding

    def approve(self, file: CuratedFile, by: str, rule: ApprovalRule, notes: Mapping[str, Any]) -> Decision:
        """Approve the draft as it is now."""
        with self._deciding(file, by) as record:
            status = self.status(file, rule)
            if status.state in ("none", "stale", "promoted"):
                raise self._refuse(record, file, f"{status.why} {status.todo}")
            if not is_allowed(by, rule.allowed):
                raise self._refuse(record, file, _explain_permission(by, file, rule))
            return record("approved", **self._hashes(file), notes=notes)

    def promote(self, file: CuratedFile, by: str, rule: ApprovalRule, make: RenderTarget) -> Decision:
        """Apply an approved draft to its target. `make` may refuse by raising DraftRefused."""
        with self._deciding(file, by) as record:
            status = self.status(file, rule)
            draft, old = self.text(file), self.target(file)
            if status.state != "approved" or draft is None:
                raise self._refuse(record, file, f"{status.why} {status.todo}")
            try:
                new = make(old, draft)
            except DraftRefused as error:
                raise self._refuse(record, file, str(error)) from None
            if old is None:
                require_checked_out(self.root, file.target)
            backup = "" if old is None else self._back_up(file.target, old)
            # Logged before and after: if the power fails in between, the target shows whether it was written.
            details = {**self._hashes(file), "result": digest(new), "backup": backup}
            record("promoting", **details)
            self._write_target(file.target, new, old)
            return record("promoted", **details)

    def undo(self, file: CuratedFile, by: str) -> Decision:
        """Restore what the last promoted draft replaced, unless the target was edited since."""
        with self._deciding(file, by) as record:
            target = self.target(file)
            last = _last_promotion(self.decisions(file), digest_or_none(target))
            if last is None:
                why = f"No draft for {file.target} was promoted, so none can be undone."
                raise self._refuse(record, file, why)
            if digest_or_none(target) != last.result:
                raise self._refuse(record, file, _explain_edit(file, last))
            old = self._read(last.backup) if last.base is not None else None
            if digest_or_none(old) != last.base:
                why = f"{last.backup} is not what was there before, so {file.target} was left as it is."
                raise self._refuse(record, file, f"{why} Look for it in your own backups.")
            self._write_target(file.target, old, target)
            return record("undone", base=last.result, result=last.base)

    # Changing without a draft

    def is_ours(self, files: Sequence[CuratedFile], text: bytes | None) -> bool:
        """Whether this text is the result of a recorded decision on these files."""
        known = {decision.result for file in files for decision in self.decisions(file)}
        return text is not None and digest(text) in known

    def restore(
        self, files: Sequence[CuratedFile], old: bytes | None, by: str, *, force: bool = False
    ) -> str:
        """Restore the target of these drafts to its state before all of them; None: there was no such file.
        Returns where the previous text is backed up; empty if there was none. Refused if tacit did not write
        it last."""
        first = files[0]
        with self._deciding(first, by) as record:
            current = self.target(first)
            if current != old and not force and not self.is_ours(files, current):
                why = f"{first.target} was edited since, so it was not overwritten."
                raise self._refuse(record, first, why)
            hashes = {"base": digest_or_none(current), "result": digest_or_none(old)}
            promoted = [file for file in files if _last_promotion(self.decisions(file), hashes["base"])]
            backup = "" if current is None or current == old else self._back_up(first.target, current)
            self._write_target(first.target, old, current)
            for file in promoted or files[:1]:
                record("undone", request=file.name, **hashes, backup=backup)
        return backup

    def change(self, file: CuratedFile, old: bytes, new: bytes, by: str, why: str) -> Decision:
        """Change a target at a person's explicit request, without a draft. The old text is backed up."""
        with self._deciding(file, by) as record:
            backup = self._back_up(file.target, old)
            self._write_target(file.target, new, old)
            return record("changed", base=digest(old), result=digest(new), backup=backup, why=why)

    # The log

    @contextmanager
    def _deciding(self, file: CuratedFile, by: str = "") -> Iterator[Callable[..., Decision]]:
        """Hold the log, and record decisions on the file."""
        with self.log.adding() as add:

            def record(what: DecisionKind, request: str = file.name, **details: Any) -> Decision:
                moment = self._now().isoformat(timespec="seconds")
                decision = Decision(moment, what, request, by, **details)
                add(decision)
                return decision

            yield record

    def _refuse(self, record: Callable[..., Decision], file: CuratedFile, why: str) -> DraftRefused:
        record("refused", why=why, **self._hashes(file))
        return DraftRefused(why)

    def _hashes(self, file: CuratedFile) -> dict[str, str | None]:
        return {"sha256": digest_or_none(self.text(file)), "base": digest_or_none(self.target(file))}

    # Files

    def _read(self, path: str) -> bytes | None:
        try:
            return self._tree.read(path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _write_target(self, path: str, new: bytes | None, current: bytes | None) -> None:
        if new == current:
            return
        if new is not None:
            self._tree.write(path, new, digest_or_none(current), self._tree.mode(path))
        elif current is not None:
            self._tree.remove(path, digest(current))

    def _back_up(self, path: str, data: bytes) -> str:
        """Back up a text under a name with its hash: a text is stored once, and no copy replaces another."""
        backup = f"{self._folder}/{BACKUP_FOLDER}/{path.rpartition('/')[2]}.{digest(data)[:12]}.bak"
        if self._read(backup) != data:
            self._tree.put(backup, data)
        return backup


# The state of a draft


def _find_status(
    decisions: Sequence[Decision],
    file: CuratedFile,
    draft: str | None,
    target: str | None,
    rule: ApprovalRule,
) -> FileStatus:
    """`draft`, `target`: the hashes of both as they are now."""
    index = max((index for index, past in enumerate(decisions) if past.what == "drafted"), default=None)
    if index is None or draft is None:
        return FileStatus("none", f"There is no draft for {file.target}.", f"Make one: {rule.draft}")
    drafted, later = decisions[index], decisions[index + 1 :]
    promoted = _last_promotion(later, target)
    if promoted is not None:
        why = f"This draft was promoted on {promoted.at[:10]}."
        return FileStatus("promoted", why, f"For a new one: {rule.draft}", drafted, promoted=promoted)
    if target != drafted.base:
        why = f"{file.target} changed since the draft was made, so nothing was overwritten."
        todo = f"Make a new draft: {rule.draft}; to keep the words of this one: {rule.draft} --as-is"
        return FileStatus("stale", why, todo, drafted)
    undone = max((index for index, past in enumerate(later) if past.what == "undone"), default=-1)
    approvals = [past for past in later[undone + 1 :] if past.what == "approved"]
    if not approvals:
        return FileStatus(
            "waiting", f"{file.draft} is not approved yet.", f"Read it, then: {rule.approve}", drafted
        )
    last = approvals[-1]
    if last.sha256 != draft:
        why = f"{file.draft} changed since {last.by} approved it."
        return FileStatus("changed", why, f"Read it again, then: {rule.approve}", drafted, last)
    if not is_allowed(last.by, rule.allowed):
        return FileStatus("not allowed", _explain_permission(last.by, file, rule), "", drafted, last)
    return FileStatus("approved", f"{last.by} approved it on {last.at[:10]}.", "", drafted, last)


def _last_promotion(decisions: Sequence[Decision], target: str | None) -> Decision | None:
    """The last promotion that really happened and was not undone. An unfinished one happened if the target is
    what it would have produced."""
    for past in reversed(decisions):
        if past.what == "undone":
            return None
        if past.what == "promoted" or (past.what == "promoting" and past.result == target):
            return past
    return None


def _explain_permission(person: str, file: CuratedFile, rule: ApprovalRule) -> str:
    if not person.strip():
        return f"Say who approves the change of {file.target}: --by NAME. {rule.allow}"
    return f"{person!r} may not approve what changes {file.target}. {rule.allow}"


def _explain_edit(file: CuratedFile, last: Decision) -> str:
    hint = f"The text from before is in {last.backup}." if last.backup else "Before there was no such file."
    return (
        f"{file.target} changed since the draft was promoted, so it was not overwritten. {hint} "
        "Take from it by hand what you want back."
    )


def digest_or_none(data: bytes | None) -> str | None:
    return None if data is None else digest(data)

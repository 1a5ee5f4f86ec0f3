"""Stores change requests: the log of decisions, and the queue of a home, drafts/*.md.

A log, approvals.jsonl, is append-only. That of a home is in git, beside the drafts. A proposal that was
decided on is not made again, in either way: it is recognized by a key that is derived from its content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

from tacit.diagnostics import Problem
from tacit.errors import MergeConflict, UnsafePath, UsageError
from tacit.git.conflicts import NoteTree, refuse_conflict
from tacit.git.jsonl import JsonlLog
from tacit.home import files
from tacit.home.layout import REVIEWED, Home
from tacit.markdown import notes
from tacit.review.model import (
    ChangeRequest,
    Decision,
    DecisionKind,
    UnreadableDraft,
    is_draft_name,
    parse_draft,
    render_draft,
)

DRAFTS_FOLDER = "drafts"
# The fields of a decision, by the names that the log has for them.
_NOTE_FIELDS = {
    "at": "at", "what": "what", "draft": "request", "by": "by", "sha256": "sha256", "why": "why",
    "commit": "commit", "key": "key",
}  # fmt: skip
_FILE_FIELDS = {
    "at": "at", "what": "what", "artefact": "request", "by": "by", "draft": "sha256", "base": "base",
    "result": "result", "backup": "backup", "why": "why", "notes": "notes",
}  # fmt: skip


class DecisionLog:
    """`is_about_files`: of curated files; there None is written, since it means that there was no file."""

    def __init__(self, root: Path, path: str, *, is_about_files: bool = False) -> None:
        self.path, self._log = path, JsonlLog(root, path)
        self._fields = _FILE_FIELDS if is_about_files else _NOTE_FIELDS
        self._empty: tuple[object, ...] = ("", {}) if is_about_files else ("", {}, None)

    def decisions(self) -> list[Decision]:
        """All readable ones, oldest first."""
        parsed = map(self._parse, self._log.lines())
        return [decision for decision in parsed if decision is not None]

    @contextmanager
    def adding(self) -> Iterator[Callable[[Decision], None]]:
        """Hold the log's lock. What is added is on disk before the call returns."""
        with self._log.adding() as add:
            yield lambda decision: add(
                {name: value for name, value in self.as_dict(decision).items() if value not in self._empty}
            )

    def as_dict(self, decision: Decision) -> dict[str, Any]:
        return {name: getattr(decision, part) for name, part in self._fields.items()}

    def _parse(self, entry: Mapping[str, Any]) -> Decision | None:
        try:
            decision = Decision(**{part: entry[name] for name, part in self._fields.items() if name in entry})
        except TypeError:
            return None
        is_known = decision.what in get_args(DecisionKind) and isinstance(decision.at, str)
        return decision if is_known else None


class ReviewQueue:
    """Hold the home's lock while calling methods that write."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._tree = files.Tree(home.root)
        self.log = DecisionLog(home.root, REVIEWED)

    def waiting(self) -> list[ChangeRequest]:
        """All readable drafts, oldest first."""
        return [item for item in self._read_all() if isinstance(item, ChangeRequest)]

    def problems(self) -> list[Problem]:
        return [item for item in self._read_all() if isinstance(item, Problem)]

    def _read_all(self) -> list[ChangeRequest | Problem]:
        items = [self._try_read(path) for path in self._draft_paths()]
        return sorted(
            items,
            key=lambda item: (item.made, item.id) if isinstance(item, ChangeRequest) else ("", item.where),
        )

    def _draft_paths(self) -> list[str]:
        return [
            path for path in self._tree.files(DRAFTS_FOLDER) if path.count("/") == 1 and path.endswith(".md")
        ]

    def _try_read(self, path: str) -> ChangeRequest | Problem:
        name = path.removeprefix(f"{DRAFTS_FOLDER}/").removesuffix(".md")
        try:
            return self._resolve_paths(parse_draft(name, notes.decode(NoteTree(self._home.root).read(path))))
        except (UnreadableDraft, MergeConflict, UnsafePath, OSError) as error:
            return Problem(
                path, f"cannot be read as a draft: {error}", "Mend it, or delete the file.", level="warning"
            )

    def _resolve_paths(self, draft: ChangeRequest) -> ChangeRequest:
        """The draft with its paths as spelled on disk. They decide who may approve it, and the file may come
        from anywhere."""
        target, to = (path and self._tree.resolve(path) for path in (draft.target, draft.to))
        return replace(draft, target=target, to=to)

    def find(self, name: str) -> ChangeRequest:
        """Find a draft by its name or a unique prefix of it."""
        paths = [
            path for path in self._draft_paths() if path.removeprefix(f"{DRAFTS_FOLDER}/").startswith(name)
        ]
        exact = [path for path in paths if path == f"{DRAFTS_FOLDER}/{name}.md"]
        if not name or not is_draft_name(name) or len(exact or paths) != 1:
            problem = f"There is no draft {name!r}" if not paths else f"Several drafts begin with {name!r}"
            raise UsageError(f"{problem}. See: tacit review list")
        draft = self._try_read((exact or paths)[0])
        if isinstance(draft, Problem):
            raise UsageError(str(draft))
        return draft

    def path_of(self, draft: ChangeRequest) -> str:
        return f"{DRAFTS_FOLDER}/{draft.id}.md"

    def sha_of(self, draft: ChangeRequest) -> str:
        """The hash of the current file, which is exactly what is approved."""
        return files.digest(self._tree.read(self.path_of(draft)))

    # ------------------------------------------------------------ writing

    def propose(self, drafts: Iterable[ChangeRequest]) -> list[ChangeRequest]:
        """Store drafts, except those that wait already or were decided on before."""
        stored: list[ChangeRequest] = []
        keys: set[str] | None = None
        refuse_conflict(self._home.root, REVIEWED)
        for draft in drafts:
            keys = self.keys() if keys is None else keys
            if (key := draft_key(draft)) not in keys:
                stored.append(self._store(draft, key))
                keys.add(key)
        return stored

    def _store(self, draft: ChangeRequest, key: str) -> ChangeRequest:
        stored = replace(draft, id=f"{draft.category}-{key[:8]}")
        self._tree.put(self.path_of(stored), notes.encode(render_draft(stored)))
        self.record("proposed", stored, datetime.fromisoformat(draft.made), why=draft.reason, key=key)
        return stored

    def rewrite(self, draft: ChangeRequest) -> None:
        self._tree.put(self.path_of(draft), notes.encode(render_draft(draft)))

    def remove(self, draft: ChangeRequest) -> None:
        with suppress(FileNotFoundError):
            self._tree.remove(self.path_of(draft), self.sha_of(draft))

    def record(self, what: DecisionKind, draft: ChangeRequest, at: datetime, **details: str) -> None:
        refuse_conflict(self._home.root, REVIEWED)
        with self.log.adding() as add:
            add(Decision(at.isoformat(timespec="seconds"), what, draft.id, **details))  # type: ignore[arg-type]

    def decisions(self) -> list[Decision]:
        return self.log.decisions()

    def keys(self) -> set[str]:
        """The keys of all drafts ever proposed."""
        return {decision.key for decision in self.decisions() if decision.what == "proposed"}


def draft_key(draft: ChangeRequest) -> str:
    """The same for the same proposal: built from its effect, without its time and reason."""
    # A rewrite contains its time; the same one tomorrow must have the same key.
    body = "\n".join(line for line in draft.body.split("\n") if not line.startswith("updated:"))
    parts = (draft.form, draft.category, draft.target, draft.to, draft.base or "", body)
    return files.digest("\0".join(parts).encode("utf-8", "surrogatepass"))

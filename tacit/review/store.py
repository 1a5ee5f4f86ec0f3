"""The review queue of a home: drafts/*.md, and drafts/approvals.jsonl, the log of decisions.

Both are in git. The log is append-only. A proposal that was decided on is not made again, whatever the
decision: it is recognized by a key that is derived from its content.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import Any

from tacit.diagnostics import Problem
from tacit.errors import MergeConflict, UnsafePath, UsageError
from tacit.git.conflicts import NoteTree, refuse_conflict
from tacit.git.jsonl import JsonlLog
from tacit.home import files
from tacit.home.layout import REVIEWED, Home
from tacit.markdown import notes
from tacit.review.format import UnreadableDraft, is_draft_name, parse_draft, render_draft
from tacit.review.model import DecisionKind, Draft, ReviewDecision

DRAFTS_FOLDER = "drafts"
_DECISION_FIELDS = {part.name for part in fields(ReviewDecision)}


class ReviewQueue:
    """Hold the home's lock while calling methods that write."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._tree = files.Tree(home.root)
        self._record = JsonlLog(home.root, REVIEWED)

    def waiting(self) -> list[Draft]:
        """All readable drafts, oldest first."""
        return [item for item in self._read_all() if isinstance(item, Draft)]

    def problems(self) -> list[Problem]:
        return [item for item in self._read_all() if isinstance(item, Problem)]

    def _read_all(self) -> list[Draft | Problem]:
        items = [self._try_read(path) for path in self._draft_paths()]
        return sorted(
            items, key=lambda item: (item.made, item.id) if isinstance(item, Draft) else ("", item.where)
        )

    def _draft_paths(self) -> list[str]:
        return [
            path for path in self._tree.files(DRAFTS_FOLDER) if path.count("/") == 1 and path.endswith(".md")
        ]

    def _try_read(self, path: str) -> Draft | Problem:
        name = path.removeprefix(f"{DRAFTS_FOLDER}/").removesuffix(".md")
        try:
            return self._resolve_paths(parse_draft(name, notes.decode(NoteTree(self._home.root).read(path))))
        except (UnreadableDraft, MergeConflict, UnsafePath, OSError) as error:
            return Problem(
                path, f"cannot be read as a draft: {error}", "Mend it, or delete the file.", level="warning"
            )

    def _resolve_paths(self, draft: Draft) -> Draft:
        """The draft with its paths as spelled on disk. They decide who may approve it, and the file may come
        from anywhere."""
        target, to = (path and self._tree.resolve(path) for path in (draft.target, draft.to))
        return replace(draft, target=target, to=to)

    def find(self, name: str) -> Draft:
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

    def path_of(self, draft: Draft) -> str:
        return f"{DRAFTS_FOLDER}/{draft.id}.md"

    def sha_of(self, draft: Draft) -> str:
        """The hash of the current file, which is exactly what is approved."""
        return files.digest(self._tree.read(self.path_of(draft)))

    # ------------------------------------------------------------ writing

    def propose(self, drafts: Iterable[Draft]) -> list[Draft]:
        """Store drafts, except those that wait already or were decided on before."""
        stored: list[Draft] = []
        keys: set[str] | None = None
        refuse_conflict(self._home.root, REVIEWED)
        for draft in drafts:
            keys = self.keys() if keys is None else keys
            if (key := draft_key(draft)) not in keys:
                stored.append(self._store(draft, key))
                keys.add(key)
        return stored

    def _store(self, draft: Draft, key: str) -> Draft:
        stored = replace(draft, id=f"{draft.category}-{key[:8]}")
        self._tree.put(self.path_of(stored), notes.encode(render_draft(stored)))
        self.decided("proposed", stored, datetime.fromisoformat(draft.made), why=draft.reason, key=key)
        return stored

    def rewrite(self, draft: Draft) -> None:
        self._tree.put(self.path_of(draft), notes.encode(render_draft(draft)))

    def remove(self, draft: Draft) -> None:
        with suppress(FileNotFoundError):
            self._tree.remove(self.path_of(draft), self.sha_of(draft))

    def decided(self, what: DecisionKind, draft: Draft, at: datetime, **details: str) -> None:
        refuse_conflict(self._home.root, REVIEWED)
        decision = ReviewDecision(at.isoformat(timespec="seconds"), what, draft.id, **details)
        with self._record.adding() as add:
            add({name: value for name, value in asdict(decision).items() if value})

    def decisions(self) -> list[ReviewDecision]:
        parsed = (_parse_decision(line) for line in self._record.lines())
        return [decision for decision in parsed if decision is not None]

    def keys(self) -> set[str]:
        """The keys of all drafts ever proposed."""
        return {decision.key for decision in self.decisions() if decision.what == "proposed"}


def draft_key(draft: Draft) -> str:
    """The same for the same proposal: built from its effect, without its time and reason."""
    # A rewrite contains its time; the same one tomorrow must have the same key.
    body = "\n".join(line for line in draft.body.split("\n") if not line.startswith("updated:"))
    parts = (draft.form, draft.category, draft.target, draft.to, draft.base or "", body)
    return files.digest("\0".join(parts).encode("utf-8", "surrogatepass"))


def _parse_decision(entry: Mapping[str, Any]) -> ReviewDecision | None:
    try:
        fields = {name: str(value) for name, value in entry.items() if name in _DECISION_FIELDS}
        return ReviewDecision(**fields)  # type: ignore[arg-type]
    except TypeError:
        return None

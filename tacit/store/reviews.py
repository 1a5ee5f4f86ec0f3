"""The review queue of a home: drafts/*.md, and drafts/approvals.jsonl, which says what was decided.

Both are in git. The record is only added to. A proposal that was decided on does not come again, whatever the
decision was: it is known by a key that its content gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import Any

from tacit.errors import UsageError
from tacit.model.problems import Problem
from tacit.model.review import Decided, Decision, Draft
from tacit.store import files
from tacit.store.home import REVIEWED, Home
from tacit.store.record import Record
from tacit.text import notes
from tacit.text.proposals import Unreadable, is_name, read, written

FOLDER = "drafts"
_NAMES = {part.name for part in fields(Decision)}


class Reviews:
    """Call what writes while holding the home's lock."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._tree = files.Tree(home.root)
        self._record = Record(home.root, REVIEWED)

    def waiting(self) -> list[Draft]:
        """All that can be read, oldest first."""
        return [one for one in self._all() if isinstance(one, Draft)]

    def problems(self) -> list[Problem]:
        return [one for one in self._all() if isinstance(one, Problem)]

    def _all(self) -> list[Draft | Problem]:
        found = [self._attempt(path) for path in self._paths()]
        return sorted(
            found, key=lambda one: (one.made, one.id) if isinstance(one, Draft) else ("", one.where)
        )

    def _paths(self) -> list[str]:
        return [path for path in self._tree.files(FOLDER) if path.count("/") == 1 and path.endswith(".md")]

    def _attempt(self, path: str) -> Draft | Problem:
        name = path.removeprefix(f"{FOLDER}/").removesuffix(".md")
        try:
            return read(name, notes.decode(self._tree.read(path)))
        except (Unreadable, OSError) as error:
            return Problem(
                path, f"cannot be read as a draft: {error}", "Mend it, or delete the file.", level="warning"
            )

    def find(self, name: str) -> Draft:
        """By its name, or by the beginning of it that only one has."""
        paths = [path for path in self._paths() if path.removeprefix(f"{FOLDER}/").startswith(name)]
        exact = [path for path in paths if path == f"{FOLDER}/{name}.md"]
        if not name or not is_name(name) or len(exact or paths) != 1:
            what = f"There is no draft {name!r}" if not paths else f"Several drafts begin with {name!r}"
            raise UsageError(f"{what}. See: tacit review list")
        found = self._attempt((exact or paths)[0])
        if isinstance(found, Problem):
            raise UsageError(str(found))
        return found

    def path_of(self, draft: Draft) -> str:
        return f"{FOLDER}/{draft.id}.md"

    def sha_of(self, draft: Draft) -> str:
        """Of the file as it is now: what somebody approves is just that."""
        return files.digest(self._tree.read(self.path_of(draft)))

    # ------------------------------------------------------------ writing

    def propose(self, drafts: Iterable[Draft]) -> list[Draft]:
        """Keep drafts, those left out that wait already or were decided on before."""
        kept: list[Draft] = []
        keys: set[str] | None = None
        for draft in drafts:
            keys = self.keys() if keys is None else keys
            if (key := key_of(draft)) not in keys:
                kept.append(self._keep(draft, key))
                keys.add(key)
        return kept

    def _keep(self, draft: Draft, key: str) -> Draft:
        named = replace(draft, id=f"{draft.category}-{key[:8]}")
        self._tree.put(self.path_of(named), notes.encode(written(named)))
        self.decided("proposed", named, datetime.fromisoformat(draft.made), why=draft.reason, key=key)
        return named

    def rewrite(self, draft: Draft) -> None:
        self._tree.put(self.path_of(draft), notes.encode(written(draft)))

    def remove(self, draft: Draft) -> None:
        with suppress(FileNotFoundError):
            self._tree.remove(self.path_of(draft), self.sha_of(draft))

    def decided(self, what: Decided, draft: Draft, at: datetime, **said: str) -> None:
        decision = Decision(at.isoformat(timespec="seconds"), what, draft.id, **said)
        with self._record.adding() as add:
            add({name: value for name, value in asdict(decision).items() if value})

    def decisions(self) -> list[Decision]:
        found = (_decision(line) for line in self._record.lines())
        return [one for one in found if one is not None]

    def keys(self) -> set[str]:
        """Of all that was ever proposed."""
        return {one.key for one in self.decisions() if one.what == "proposed"}


def key_of(draft: Draft) -> str:
    """The same for the same proposal: what it would do to what, not when and why it was made."""
    # A rewrite tells when it was made; the same one tomorrow is the same.
    body = "\n".join(line for line in draft.body.split("\n") if not line.startswith("updated:"))
    parts = (draft.form, draft.category, draft.target, draft.to, draft.base or "", body)
    return files.digest("\0".join(parts).encode("utf-8", "surrogatepass"))


def _decision(said: Mapping[str, Any]) -> Decision | None:
    try:
        return Decision(**{name: str(value) for name, value in said.items() if name in _NAMES})  # type: ignore[arg-type]
    except TypeError:
        return None

"""Search without an index: look through the files themselves.

The files with the most different words of the question are read into an index in memory, which then answers
as always, by words alone: same filters, same ranking, same kind of hits. Which files those are is decided by
the beginnings of words in the file and in its name, so that hardly any is passed over that the index would
find.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from math import log

from tacit.errors import StoreError
from tacit.index.protocol import Index
from tacit.model.search import Found, Scope, Stamp
from tacit.search.calibration import Calibration
from tacit.search.find import Engine, find
from tacit.search.update import update
from tacit.text.passages import category_of
from tacit.text.query import LONGEST, understand
from tacit.text.words import aliases, clean, fold, indexable

_READ = 300  # files that are looked at closely
_STEM = 3  # letters of a word's end that may differ: reads, reading
_SHORTEST = 3
_PIECE = re.compile(r"[^\W_]+")


def scan(
    text: object,
    listed: Mapping[str, Stamp],
    read: Callable[[str], bytes],
    *,
    scope: Scope,
    limit: int,
    now: datetime | None,
    index: Index,
    calibration: Calibration,
    narrowed: Callable[[Sequence[str]], Iterable[str] | None] = lambda words: None,
    agents_of: Callable[[str], tuple[str, ...]] = lambda path: (),
    purged: Callable[[str], frozenset[int]] = lambda path: frozenset(),
    spreading: float = 0.0,
) -> Found:
    """`index` is an empty one in memory. `narrowed` may know quickly which files hold any of the words."""
    words = _words(text, now)
    inside = [path for path in listed if _is_inside(path, scope)] if words else []
    near = narrowed(words) if inside and _are_plain(text) else None
    if near is not None:
        held = frozenset(near)
        inside = [path for path in inside if path in held or _held(words, fold(path))]
    chosen = _fullest(inside, words, read)
    some = {path: listed[path] for path in chosen}
    report = update(index, some, read, agents_of=agents_of, purged=purged)
    found = find(Engine(index, None, calibration, spreading=spreading), text, scope, limit, now=now)
    return replace(
        found, channels=("scan",), trace={**found.trace, "read": report.read, "files": len(listed)}
    )


def _words(text: object, now: datetime | None) -> list[str]:
    """What to look for in raw text: the beginnings of the words, since there is no stemming here."""
    pieces = [piece for term in understand(text, now).terms for piece in _PIECE.findall(fold(term.text))]
    return list(dict.fromkeys(piece[: max(_SHORTEST, len(piece) - _STEM)] for piece in pieces))


def _are_plain(text: object) -> bool:
    """Whether its words stand in the files letter for letter. `é` may be written in two ways, and what the
    index keeps for `C++` is in no file."""
    asked = text[:LONGEST] if isinstance(text, str) else ""
    return asked.isascii() and not any(aliases(clean(asked)))


def _is_inside(path: str, scope: Scope) -> bool:
    """What can be told by the path alone; the rest is told when it was read."""
    return (
        path.startswith(scope.under)
        and (not scope.categories or category_of(path) in scope.categories)
        and (scope.archived is None or scope.archived == path.startswith("archive/"))
    )


def _held(words: Sequence[str], text: str) -> list[str]:
    return [word for word in words if word in text]


def _fullest(paths: Iterable[str], words: Sequence[str], read: Callable[[str], bytes]) -> list[str]:
    """The files with the most and the rarest of the words."""
    inside: dict[str, list[str]] = {}
    for path in paths:
        try:
            text = fold(indexable(f"{path}\n{read(path).decode('utf-8', 'replace')}"))
        except (OSError, StoreError):
            continue
        if held := _held(words, text):
            inside[path] = held
    files = Counter(word for held in inside.values() for word in held)
    worth = {word: log(1 + len(inside) / count) for word, count in files.items()}
    return sorted(inside, key=lambda path: (-sum(worth[word] for word in inside[path]), path))[:_READ]

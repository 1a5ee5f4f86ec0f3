"""Search without an index: look through the files themselves.

The files with the most different words of the question are read into an index in memory, which then answers
as always, by words alone: same filters, same ranking, same kind of hits.
"""

from __future__ import annotations

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
from tacit.text.query import understand

_READ = 300  # files that are looked at closely
_STEM = 3  # letters of a word's end that may differ: reads, reading


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
) -> Found:
    """`index` is an empty one in memory. `narrowed` may know quickly which files hold any of the words."""
    words = _words(text, now)
    near = narrowed(words)
    paths = listed if near is None else [path for path in near if path in listed]
    chosen = _fullest(paths, words, read)
    report = update(index, {path: listed[path] for path in chosen}, read)
    found = find(Engine(index, None, calibration), text, scope, limit, now=now)
    return replace(
        found, channels=("scan",), trace={**found.trace, "read": report.read, "files": len(listed)}
    )


def _words(text: object, now: datetime | None) -> list[str]:
    """What to look for in raw text: the beginnings of the words, since there is no stemming here."""
    terms = [term.text.casefold() for term in understand(text, now).terms]
    return list(dict.fromkeys(term[:-_STEM] if len(term) > 2 * _STEM else term for term in terms))


def _fullest(paths: Iterable[str], words: Sequence[str], read: Callable[[str], bytes]) -> list[str]:
    """The files with the most and the rarest of the words."""
    inside: dict[str, list[str]] = {}
    for path in paths:
        try:
            text = read(path).decode("utf-8", "replace").casefold()
        except (OSError, StoreError):
            continue
        held = [word for word in words if word in text]
        if held:
            inside[path] = held
    files = Counter(word for held in inside.values() for word in held)
    worth = {word: log(1 + len(inside) / count) for word, count in files.items()}
    return sorted(inside, key=lambda path: (-sum(worth[word] for word in inside[path]), path))[:_READ]

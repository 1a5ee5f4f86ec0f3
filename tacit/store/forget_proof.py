"""Is it really gone? Every file below the home is looked at byte by byte, every object of git from inside."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from tacit.store.forget_derived import Derived
from tacit.store.forget_history import History
from tacit.store.forget_what import Forgetting, Passage
from tacit.store.git import Git

_CHANCE = 8  # characters; fewer are found in any compressed file, sooner or later


def left(roots: Iterable[Path], git: Git, what: Forgetting, derived: Derived) -> list[str]:
    """Places where it still is."""
    found = [place for root in roots for place in _files(root, what)]
    if isinstance(what, Passage) and what.limit:
        found += [f"{path} (in the history)" for path, _ in History(git, what).look().files]
    else:
        found += [f".git ({kind} {name[:10]})" for name, kind in _objects(git, what)]
    found += [f".tacit ({kind})" for kind in derived.look()]
    return sorted(set(found))


def _objects(git: Git, what: Forgetting) -> Iterator[tuple[str, str]]:
    for name, kind, data in git.every_object():
        if what.holds(data):
            yield name, kind


def _files(root: Path, what: Forgetting) -> Iterator[str]:
    for here, folders, names in os.walk(root):
        for name in sorted([*folders, *names]):
            file = Path(here, name)
            path = str(file.relative_to(root))
            if what.is_limited_to(path) and (what.path(path) != path or _holds(file, path, what)):
                yield path


def _holds(file: Path, path: str, what: Forgetting) -> bool:
    if file.is_symlink():
        return what.holds(os.fsencode(os.readlink(file)))
    if not file.is_file() or (path.startswith(".git/objects/") and _is_short(what)):
        return False
    try:
        return what.holds(file.read_bytes())
    except OSError:
        return False


def _is_short(what: Forgetting) -> bool:
    return isinstance(what, Passage) and len(what.words.text) < _CHANCE

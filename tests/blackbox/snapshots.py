"""Snapshots: what is compared with a file, after exactly that is replaced which differs from run to run.

`pytest tests/blackbox --update-snapshots` writes the files anew; read the diff before you keep it.

Two kinds of values are replaced everywhere: random ones (ids of receipts, hashes of commits and of files that
hold such ids) and measured ones (milliseconds, process ids). With `words=True` the sentences that people read
are replaced too, because their wording is not frozen; the place, key and type of each are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "snapshots"

_PATTERNS = (
    (re.compile(r"\bses_[0-9a-f]{8}\b"), "<session>"),
    (re.compile(r"\bturns_[0-9a-f]{8}\b"), "<turns>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<sha256>"),
    (re.compile(r"\b[0-9a-f]{40}\b"), "<commit>"),
    (re.compile(r"(?<=\bundo )[0-9a-f]{10}\b"), "<commit>"),
    (re.compile(r"\b1[0-9a-z]{12}\b"), "<receipt>"),
)
# Keys whose values are measured or random.
_MEASURED = {
    "timings_ms": "<timings>",
    "ms": "<ms>",
    "seconds": "<seconds>",
    "p50 ms": "<ms>",
    "p95 ms": "<ms>",
    "pid": "<pid>",
    "uptime_s": "<seconds>",
}
# Keys whose values are sentences for people. `why` and `found` are objects in some answers; those stay.
WORDS = frozenset(
    {
        "about",
        "boosts",
        "detail",
        "found",
        "hint",
        "means",
        "needed",
        "notices",
        "out_of_reach",
        "reason",
        "reasons",
        "said",
        "todo",
        "unlearned_why",
        "verdict",
        "what_to_do",
        "why",
        "why_not",
    }
)


def normalize(
    value: Any, *, paths: Iterable[tuple[str, str]] = (), words: frozenset[str] = frozenset(), digits: int = 3
) -> Any:
    """`paths`: temporary folders and their names; `words`: keys with sentences; `digits` of fractions."""
    paths = tuple(paths)

    def walk(item: Any, key: str = "") -> Any:
        if key in _MEASURED and item is not None:
            return _MEASURED[key]
        if key in words and not isinstance(item, dict):
            return _without_words(item)
        if isinstance(item, dict):
            return {normalize_text(name, paths): walk(below, name) for name, below in item.items()}
        if isinstance(item, list):
            return [walk(below) for below in item]
        if isinstance(item, float):
            return round(item, digits)
        return normalize_text(item, paths) if isinstance(item, str) else item

    return walk(value)


def normalize_text(text: str, paths: Iterable[tuple[str, str]] = ()) -> str:
    for path, name in paths:
        text = text.replace(path, name)
    for pattern, name in _PATTERNS:
        text = pattern.sub(name, text)
    return text


def _without_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: below if key in ("code", "level") else _without_words(below) for key, below in value.items()
        }
    if isinstance(value, list):
        return [_without_words(below) for below in value]
    return "<words>" if isinstance(value, str) and value else value


def shape(value: Any) -> Any:
    """Keys and types. Items of a list are laid over each other; a key that some of them lack gets a `?`."""
    if isinstance(value, dict):
        return {key: shape(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_overlay([shape(below) for below in value])] if value else []
    return "null" if value is None else type(value).__name__


def _overlay(shapes: list[Any]) -> Any:
    first = shapes[0]
    if all(item == first for item in shapes):
        return first
    if all(isinstance(item, dict) for item in shapes):
        keys = dict.fromkeys(key for item in shapes for key in item)
        return {
            key if all(key in item for item in shapes) else f"{key}?": _overlay(
                [item[key] for item in shapes if key in item]
            )
            for key in keys
        }
    if all(isinstance(item, list) for item in shapes):
        inner = [below for item in shapes for below in item]
        return [_overlay(inner)] if inner else []
    names = {json.dumps(item, ensure_ascii=False) if not isinstance(item, str) else item for item in shapes}
    return " | ".join(sorted(names))


class Snapshots:
    def __init__(self, *, update: bool) -> None:
        self._update = update

    def check(self, name: str, found: str) -> None:
        file = FOLDER / name
        if self._update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(found, encoding="utf-8")
        assert file.exists(), f"no snapshot {name}; run pytest tests/blackbox --update-snapshots"
        assert found == file.read_text(encoding="utf-8")

    def check_json(self, name: str, found: Any) -> None:
        self.check(f"{name}.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")

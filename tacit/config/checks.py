"""Rules between keys: each value is fine alone, but not beside the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import NamedTuple

from tacit.config.keys import DEFAULTS, KEYS, Config, SessionRule, flatten
from tacit.model.problems import Problem

# Each sees what stands before it as well: a session for strangers only what anyone may see.
_NARROW_TO_WIDE = ("anyone", "group", "owner")


class Clash(NamedTuple):
    keys: tuple[str, ...]
    what: str
    hint: str


def first_clash(config: Config, lines: Mapping[str, int]) -> tuple[Clash, int] | None:
    """The first by line, where a clash stands at the last of its keys that the file names."""
    placed = [(clash, max(lines[key] for key in clash.keys if key in lines)) for clash in _clashes(config)]
    return min(placed, key=lambda pair: pair[1], default=None)


def doubts(config: Config, where: str, lines: Mapping[str, int]) -> Iterator[Problem]:
    if config.git.auto_push and config.git.remote is None:
        yield Problem(
            where,
            "'git.auto_push' is true, but 'git.remote' is null, so nothing is pushed.",
            "Set git.remote.",
            lines.get("git.auto_push"),
            "warning",
        )


def _clashes(config: Config) -> Iterator[Clash]:
    yield from _ordered(config, "lifecycle.memory_warn_lines", "lifecycle.memory_line_cap")
    yield from _ordered(config, "lifecycle.memory_line_cap", "lifecycle.memory_block_lines")
    yield from _ordered(config, "inject.confidence_gate", "inject.strong")
    yield from _weights(config)
    yield from _dimensions(config)
    for part in fields(config.sessions):
        rule = getattr(config.sessions, part.name)
        if isinstance(rule, SessionRule):
            yield from _session(f"sessions.{part.name}", rule, getattr(DEFAULTS.sessions, part.name))


def _ordered(config: Config, small: str, large: str) -> Iterator[Clash]:
    values = flatten(config)
    low, high = values[small], values[large]
    assert isinstance(low, int | float)
    assert isinstance(high, int | float)
    if low > high:
        what = f"{small!r} ({_told(small, low)}) must not be above {large!r} ({_told(large, high)})."
        yield Clash((small, large), what, "Set both.")


def _told(name: str, value: float) -> str:
    return f"{value}, the default" if value == KEYS[name].default else str(value)


def _weights(config: Config) -> Iterator[Clash]:
    if config.search.bm25_weight == 0 and config.search.vector_weight == 0:
        names = ("search.bm25_weight", "search.vector_weight")
        yield Clash(names, f"{names[0]!r} and {names[1]!r} are both 0.", "Give one of them a weight.")


def _dimensions(config: Config) -> Iterator[Clash]:
    length = DEFAULTS.search.embedding_dimensions
    bundled = config.search.embedding_model == DEFAULTS.search.embedding_model
    if bundled and config.search.embedding_dimensions != length:
        names = ("search.embedding_model", "search.embedding_dimensions")
        given = config.search.embedding_dimensions
        what = f"{names[1]!r} is {given}, but the bundled model has {length}."
        yield Clash(names, what, f"Remove it, or name another model in {names[0]!r}.")


def _session(name: str, rule: SessionRule, default: SessionRule) -> Iterator[Clash]:
    if rule.files is not None and "SOUL.md" not in rule.files:
        yield Clash((f"{name}.files",), f"'{name}.files' lacks SOUL.md.", "Every session loads it: add it.")
    reach = _NARROW_TO_WIDE[: _NARROW_TO_WIDE.index(default.audience) + 1]
    if rule.audience not in reach:
        what = f"'{name}.audience' must not be {rule.audience!r}: others read such sessions."
        yield Clash((f"{name}.audience",), what, f"Allowed: {', '.join(reach)}.")

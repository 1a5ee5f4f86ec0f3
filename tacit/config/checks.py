"""Rules between keys: each value is fine alone, but not beside the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from posixpath import relpath
from typing import NamedTuple

from tacit.config.keys import DEFAULTS, HOST_WORDS, KEYS, Config, Override, SessionRule, flatten
from tacit.config.overrides import rule_name
from tacit.model.problems import Problem

# Each sees what stands before it as well: a session for strangers only what anyone may see.
_NARROW_TO_WIDE = ("anyone", "group", "owner")
_FOR_ANYONE = ("SOUL.md",)
_MAIN_WORDS = HOST_WORDS - {"main", "dashboard", "explicit"}  # that no main session is called by
_SEARCHED = ("knowledge", "topics", "archive", "raw")  # folders of a home


class Clash(NamedTuple):
    keys: tuple[str, ...]
    what: str
    hint: str


def first_clash(config: Config, lines: Mapping[str, int], root: str) -> tuple[Clash, int] | None:
    """The first by line, where a clash stands at the last of its keys that the file names. `root`: of the
    home; empty where there is none."""
    found = [*_clashes(config), *_searched(config, root)]
    placed = [(clash, max(lines[key] for key in clash.keys if key in lines)) for clash in found]
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
    rules = config.sessions.rules
    for at, rule in enumerate(rules):
        before = _same_or_wider(rules[:at], rule)
        if before is not None:
            yield Problem(
                where,
                f"this rule of 'sessions.rules' never counts: that on line {lines[rule_name(before)]} "
                "holds wherever it does.",
                "Put this one before it.",
                lines[rule_name(at)],
                "warning",
            )


def _same_or_wider(rules: Sequence[Override], rule: Override) -> int | None:
    """The first that holds wherever the rule does: it asks for nothing that the rule does not ask for."""
    return next((at for at, one in enumerate(rules) if set(one.conditions) <= set(rule.conditions)), None)


def _clashes(config: Config) -> Iterator[Clash]:
    yield from _ordered(config, "lifecycle.memory_warn_lines", "lifecycle.memory_line_cap")
    yield from _ordered(config, "lifecycle.memory_line_cap", "lifecycle.memory_block_lines")
    yield from _ordered(config, "inject.confidence_gate", "inject.strong")
    yield from _weights(config)
    yield from _dimensions(config)
    yield from _main_keys(config)
    for part in fields(config.sessions):
        rule = getattr(config.sessions, part.name)
        if isinstance(rule, SessionRule):
            yield from _session(f"sessions.{part.name}", rule, getattr(DEFAULTS.sessions, part.name))
    for at, override in enumerate(config.sessions.rules):
        yield from _override(override, rule_name(at))


def _searched(config: Config, root: str) -> Iterator[Clash]:
    """Copies of what one session was given must not be found by another."""
    name, given = "sessions.directory", config.sessions.directory
    inside = relpath(given, root) if given and root else ".."
    if inside.split("/")[0] in _SEARCHED:
        what = f"{name!r} is inside {inside.split('/')[0]}/ of the home, where search looks."
        yield Clash((name,), what, "Name a folder outside of it.")


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


def _main_keys(config: Config) -> Iterator[Clash]:
    for word in config.sessions.main_keys:
        if word.lower() in _MAIN_WORDS:
            name = "sessions.main_keys"
            what = f"{name!r} must not have {word!r}: hosts begin keys of other sessions with it."
            yield Clash((name,), what, "Remove it.")


def _session(name: str, rule: SessionRule, default: SessionRule) -> Iterator[Clash]:
    place = f"{name}.files"
    yield from _soulless(place, place, rule.files)
    yield from _too_much(place, place, rule.files, name.rpartition(".")[2])
    yield from _too_wide(f"{name}.audience", f"{name}.audience", rule.audience, default.audience)


def _override(rule: Override, place: str) -> Iterator[Clash]:
    """A rule that names no type holds for strangers as well, whatever else it asks for."""
    settings, kind = dict(rule.settings), dict(rule.conditions).get("type")
    audience, files = f"{place}.audience", f"{place}.files"
    if "files" in settings:
        yield from _soulless(files, "sessions.rules.files", settings["files"])
    if kind is not None:
        default: SessionRule = getattr(DEFAULTS.sessions, kind)
        if "files" in settings:
            yield from _too_much(files, "sessions.rules.files", settings["files"], kind)
        if "audience" in settings:
            yield from _too_wide(audience, "sessions.rules.audience", settings["audience"], default.audience)
        return
    if settings.get("audience", "anyone") != "anyone":
        what = f"'sessions.rules.audience' must not be {settings['audience']!r} in a rule without 'type'"
        yield Clash(
            (audience,), f"{what}: it would hold for strangers too.", "Add a type, or set it to anyone."
        )
    if settings.get("files", _FOR_ANYONE) != _FOR_ANYONE:
        what = "'sessions.rules.files' must not be more than SOUL.md in a rule without 'type'"
        yield Clash((files,), f"{what}: it would hold for strangers too.", "Add a type.")


def _soulless(place: str, name: str, files: tuple[str, ...] | None) -> Iterator[Clash]:
    if files is not None and "SOUL.md" not in files:
        yield Clash((place,), f"{name!r} lacks SOUL.md.", "Every session loads it: add it.")


def _too_much(place: str, name: str, files: tuple[str, ...] | None, kind: str) -> Iterator[Clash]:
    """Files that others than the owner would read."""
    default: SessionRule = getattr(DEFAULTS.sessions, kind)
    if default.audience == "owner" or files == default.files:
        return
    why = "others read such sessions"
    if files is None:
        what = f"{name!r} must not be null: {why}, and the host's own list has your files."
        yield Clash((place,), what, "Name the files.")
    elif any(file.lower() == "memory.md" for file in files):
        yield Clash((place,), f"{name!r} must not have MEMORY.md: {why}.", "Remove it.")
    elif kind == "external_dm" and set(files) != set(_FOR_ANYONE):
        what = f"{name!r} must not be more than SOUL.md: strangers read such sessions."
        yield Clash((place,), what, "Set it to [SOUL.md].")


def _too_wide(place: str, name: str, audience: str, default: str) -> Iterator[Clash]:
    reach = _NARROW_TO_WIDE[: _NARROW_TO_WIDE.index(default) + 1]
    if audience not in reach:
        what = f"{name!r} must not be {audience!r}: others read such sessions."
        yield Clash((place,), what, f"Allowed: {', '.join(reach)}.")

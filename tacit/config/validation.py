"""Rules between keys: each value is valid alone, but not in combination."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from posixpath import relpath
from typing import NamedTuple

from tacit.config.groups import rule_name
from tacit.config.schema import DEFAULTS, HOST_WORDS, KEYS, Config, Override, SessionRule, flatten
from tacit.diagnostics import Problem

# Each includes those before it: a session with strangers sees only what anyone may see.
_NARROW_TO_WIDE = ("anyone", "group", "owner")
_FOR_ANYONE = ("SOUL.md",)
_MAIN_WORDS = HOST_WORDS - {"main", "dashboard", "explicit"}  # not allowed as names of main sessions
_SEARCHED_FOLDERS = ("knowledge", "topics", "archive", "raw")  # folders of a home


class Clash(NamedTuple):
    keys: tuple[str, ...]
    what: str
    hint: str


def find_first_clash(config: Config, lines: Mapping[str, int], root: str) -> tuple[Clash, int] | None:
    """The first clash by line; a clash is at the last of its keys that the file names. `root`: the folder of
    the home, empty if there is none."""
    clashes = [*_find_clashes(config), *_check_directory(config, root)]
    located = [(clash, max(lines[key] for key in clash.keys if key in lines)) for clash in clashes]
    return min(located, key=lambda pair: pair[1], default=None)


def find_warnings(config: Config, where: str, lines: Mapping[str, int]) -> Iterator[Problem]:
    if config.git.auto_push and config.git.remote is None:
        yield Problem(
            where,
            "'git.auto_push' is true, but 'git.remote' is null, so nothing is pushed.",
            "Set git.remote.",
            lines.get("git.auto_push"),
            "warning",
        )
    rules = config.sessions.rules
    for index, rule in enumerate(rules):
        shadowing = _find_shadowing(rules[:index], rule)
        if shadowing is not None:
            yield Problem(
                where,
                f"this rule of 'sessions.rules' never counts: that on line {lines[rule_name(shadowing)]} "
                "holds wherever it does.",
                "Put this one before it.",
                lines[rule_name(index)],
                "warning",
            )


def _find_shadowing(rules: Sequence[Override], rule: Override) -> int | None:
    """The first earlier rule that always applies when this one does: its conditions are a subset."""
    return next(
        (index for index, earlier in enumerate(rules) if set(earlier.conditions) <= set(rule.conditions)),
        None,
    )


def _find_clashes(config: Config) -> Iterator[Clash]:
    yield from _check_order(config, "lifecycle.memory_warn_lines", "lifecycle.memory_line_cap")
    yield from _check_order(config, "lifecycle.memory_line_cap", "lifecycle.memory_block_lines")
    yield from _check_order(config, "inject.confidence_gate", "inject.strong")
    yield from _check_weights(config)
    yield from _check_dimensions(config)
    yield from _check_main_keys(config)
    for part in fields(config.sessions):
        rule = getattr(config.sessions, part.name)
        if isinstance(rule, SessionRule):
            yield from _check_session(f"sessions.{part.name}", rule, getattr(DEFAULTS.sessions, part.name))
    for index, override in enumerate(config.sessions.rules):
        yield from _check_override(override, rule_name(index))


def _check_directory(config: Config, root: str) -> Iterator[Clash]:
    """Copies of one session's context must not be found by another session."""
    name, directory = "sessions.directory", config.sessions.directory
    inside = relpath(directory, root) if directory and root else ".."
    if inside.split("/")[0] in _SEARCHED_FOLDERS:
        message = f"{name!r} is inside {inside.split('/')[0]}/ of the home, where search looks."
        yield Clash((name,), message, "Name a folder outside of it.")


def _check_order(config: Config, small: str, large: str) -> Iterator[Clash]:
    values = flatten(config)
    low, high = values[small], values[large]
    assert isinstance(low, int | float)
    assert isinstance(high, int | float)
    if low > high:
        message = (
            f"{small!r} ({_describe(small, low)}) must not be above {large!r} ({_describe(large, high)})."
        )
        yield Clash((small, large), message, "Set both.")


def _describe(name: str, value: float) -> str:
    return f"{value}, the default" if value == KEYS[name].default else str(value)


def _check_weights(config: Config) -> Iterator[Clash]:
    if config.search.bm25_weight == 0 and config.search.vector_weight == 0:
        names = ("search.bm25_weight", "search.vector_weight")
        yield Clash(names, f"{names[0]!r} and {names[1]!r} are both 0.", "Give one of them a weight.")


def _check_dimensions(config: Config) -> Iterator[Clash]:
    length = DEFAULTS.search.embedding_dimensions
    bundled = config.search.embedding_model == DEFAULTS.search.embedding_model
    if bundled and config.search.embedding_dimensions != length:
        names = ("search.embedding_model", "search.embedding_dimensions")
        configured = config.search.embedding_dimensions
        message = f"{names[1]!r} is {configured}, but the bundled model has {length}."
        yield Clash(names, message, f"Remove it, or name another model in {names[0]!r}.")


def _check_main_keys(config: Config) -> Iterator[Clash]:
    for word in config.sessions.main_keys:
        if word.lower() in _MAIN_WORDS:
            name = "sessions.main_keys"
            message = f"{name!r} must not have {word!r}: hosts begin keys of other sessions with it."
            yield Clash((name,), message, "Remove it.")


def _check_session(name: str, rule: SessionRule, default: SessionRule) -> Iterator[Clash]:
    place = f"{name}.files"
    yield from _check_soul(place, place, rule.files)
    yield from _check_files(place, place, rule.files, name.rpartition(".")[2])
    yield from _check_audience(f"{name}.audience", f"{name}.audience", rule.audience, default.audience)


def _check_override(rule: Override, place: str) -> Iterator[Clash]:
    """A rule without a type also applies to strangers, even with other conditions."""
    settings, kind = dict(rule.settings), dict(rule.conditions).get("type")
    audience, files = f"{place}.audience", f"{place}.files"
    if "files" in settings:
        yield from _check_soul(files, "sessions.rules.files", settings["files"])
    if kind is not None:
        default: SessionRule = getattr(DEFAULTS.sessions, kind)
        if "files" in settings:
            yield from _check_files(files, "sessions.rules.files", settings["files"], kind)
        if "audience" in settings:
            yield from _check_audience(
                audience, "sessions.rules.audience", settings["audience"], default.audience
            )
        return
    if settings.get("audience", "anyone") != "anyone":
        message = f"'sessions.rules.audience' must not be {settings['audience']!r} in a rule without 'type'"
        yield Clash(
            (audience,), f"{message}: it would hold for strangers too.", "Add a type, or set it to anyone."
        )
    if settings.get("files", _FOR_ANYONE) != _FOR_ANYONE:
        message = "'sessions.rules.files' must not be more than SOUL.md in a rule without 'type'"
        yield Clash((files,), f"{message}: it would hold for strangers too.", "Add a type.")


def _check_soul(place: str, name: str, files: tuple[str, ...] | None) -> Iterator[Clash]:
    if files is not None and "SOUL.md" not in files:
        yield Clash((place,), f"{name!r} lacks SOUL.md.", "Every session loads it: add it.")


def _check_files(place: str, name: str, files: tuple[str, ...] | None, kind: str) -> Iterator[Clash]:
    """Refuse files that people other than the owner would read."""
    default: SessionRule = getattr(DEFAULTS.sessions, kind)
    if default.audience == "owner" or files == default.files:
        return
    reason = "others read such sessions"
    if files is None:
        message = f"{name!r} must not be null: {reason}, and the host's own list has your files."
        yield Clash((place,), message, "Name the files.")
    elif any(file.lower() == "memory.md" for file in files):
        yield Clash((place,), f"{name!r} must not have MEMORY.md: {reason}.", "Remove it.")
    elif kind == "external_dm" and set(files) != set(_FOR_ANYONE):
        message = f"{name!r} must not be more than SOUL.md: strangers read such sessions."
        yield Clash((place,), message, "Set it to [SOUL.md].")


def _check_audience(place: str, name: str, audience: str, default: str) -> Iterator[Clash]:
    reach = _NARROW_TO_WIDE[: _NARROW_TO_WIDE.index(default) + 1]
    if audience not in reach:
        message = f"{name!r} must not be {audience!r}: others read such sessions."
        yield Clash((place,), message, f"Allowed: {', '.join(reach)}.")

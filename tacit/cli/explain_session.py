"""What a session key means, which rule it gets and what it may see.

    tacit explain-session agent:main:telegram:group:-100123:topic:7
    tacit explain-session agent:main:main --sender telegram:7

Reads the config and the identity files of the home; nothing is searched and nothing is kept. Who wrote in a
main session before counts, as it does in a turn.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import NamedTuple

from tacit.app import load_config
from tacit.config import Config, LoadedConfig
from tacit.context.blocks import Block
from tacit.context.delivery.bootstrap import can_unload as can_shed
from tacit.context.delivery.bootstrap import choose_home_files
from tacit.context.loaded_files import FileLoader, Listener, identity_files
from tacit.context.loaded_files import block_label as label
from tacit.home.conflicts import NoteTree
from tacit.home.layout import Home, find_home
from tacit.search.model import Scope
from tacit.sessions.agents import find_excluded_agent, resolve_key
from tacit.sessions.keys import SessionKind, classify
from tacit.sessions.policy import SessionProfile, resolve_profile
from tacit.sessions.senders import Senders
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, utf8_argument
from tacit.terminal.lines import one_line
from tacit.text import tokens

_FORMS = {
    "": "no form that tacit knows",
    "main": "the main session of an agent",
    "main thread": "a thread of the main session of an agent",
    "direct": "a direct message",
    "group": "a group",
    "thread": "a topic or thread of a group",
    "subagent": "a subagent",
    "cron": "a scheduled job",
    "heartbeat": "a heartbeat",
    "acp": "a run of another program",
    "boot": "a run at the start of the host",
    "hook": "a run that a webhook began",
    "dashboard": "a session of the host's dashboard",
    "explicit": "a session that somebody named by hand",
    "slash": "a command on a channel",
    "global": "the host's one session for everybody",
    "unknown": "a session that the host itself knows nothing about",
}
_AUDIENCES = {
    "owner": "all that is in the home, also what is yours alone",
    "group": "what is for groups or for anyone; nothing of yours alone",
    "anyone": "what is for anyone, and nothing else",
}


class _File(NamedTuple):
    name: str
    tokens: int | None  # None: not loaded
    why_not: str = ""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "key", metavar="KEY", type=utf8_argument, help="the session key, as the host gives it"
    )
    parser.add_argument(
        "--agent", type=utf8_argument, help="the agent, where the host names one beside the key"
    )
    parser.add_argument(
        "--sender",
        type=utf8_argument,
        metavar="ID",
        default="",
        help="who writes, like telegram:7, as the host says",
    )
    parser.add_argument(
        "--trigger",
        type=utf8_argument,
        default="",
        help="what began the run: user, heartbeat, cron or webhook",
    )
    add_home_option(parser)
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    home = find_home(options.home, os.environ).require()
    loaded = load_config(home)
    profile = resolve_profile(
        options.key,
        loaded.config,
        agent=options.agent,
        sender=options.sender,
        trigger=options.trigger,
        senders=_seen_senders(home, loaded.config, resolve_key(options.key, options.agent)),
    )
    files = list(_list_files(home, loaded.config, profile))
    if options.json:
        output.dump(_as_json(profile, loaded, files))
    else:
        output.print_table(_rows(profile, loaded, files), indent="")
    output.print_problems(loaded.problems)
    return 0 if profile.kind.known else 1


def _seen_senders(home: Home, config: Config, key: str) -> frozenset[str]:
    kind = classify(key, main_keys=config.sessions.main_keys)
    return Senders(home).seen(key, "") if kind.is_main else frozenset()


# ---------------------------------------------------------------- facts


def _is_owner_session(profile: SessionProfile) -> bool:
    return profile.kind.type in ("main_session", "orchestration", "private_dm", "heartbeat_cron")


def _describe_owner(profile: SessionProfile, config: Config) -> str:
    """Whether the session is the owner's, and why."""
    kind = profile.kind
    if _is_owner_session(profile):
        return f"yes: {_ownership_reason(kind, config)}"
    if profile.notices:
        return "no: see the note"
    if kind.form == "direct":
        peer = f"{kind.channel}:{kind.peer}" if kind.channel else kind.peer
        return f"no: {peer} is not in owners"
    return "no: it answers to another session" if kind.form == "subagent" else "no: others read it"


def _ownership_reason(kind: SessionKind, config: Config) -> str:
    if kind.form == "direct":
        return f"{kind.peer} is in owners"
    if kind.form != "main":
        return "it runs for you"
    return "nobody but owners has been seen in it" if config.owners else "nobody else has been seen in it"


def _list_files(home: Home, config: Config, profile: SessionProfile) -> Iterator[_File]:
    """The files come with the bootstrap if the rule allows that lane, otherwise with each turn."""
    if "bootstrap" not in (profile.rule.lanes or ()):
        yield from _list_turn_files(home, config, profile)
        return
    sections, dropped = choose_home_files(home, profile)
    loaded = {section.label: section.tokens for section in sections}
    why_not = {block.label: block.reason if block.code != "missing" else "missing" for block in dropped}
    for name in profile.rule.files or ():
        block_label = label("identity", name)
        yield _File(
            name, loaded.get(block_label), why_not.get(block_label, "") if block_label not in loaded else ""
        )


def _list_turn_files(home: Home, config: Config, profile: SessionProfile) -> Iterator[_File]:
    rule = profile.rule
    names = identity_files(rule.files, config.context_compiler.profile, rule.audience)
    sources = FileLoader(NoteTree(home.root).read, Listener(rule.audience, profile.kind.agent))
    for name, loaded in zip(names, sources.identity(names), strict=True):
        if isinstance(loaded, Block):
            yield _File(name, tokens.count(loaded.text))
        else:
            yield _File(name, None, "missing" if loaded.code == "missing" else loaded.reason)


def _files_to_unload(profile: SessionProfile, config: Config, files: list[_File]) -> list[str]:
    """Files that are unloaded once the conversation has used them."""
    can_unload = config.inject.shed_after_turns is not None and "bootstrap" in (profile.rule.lanes or ())
    return [file.name for file in files if can_unload and file.tokens is not None and can_shed(file.name)]


def _rule_origin(profile: SessionProfile, loaded: LoadedConfig) -> str:
    """Where the config sets the rule, or `default`."""
    if profile.number:
        return loaded.rules[profile.number - 1]
    origins = (origin for key, origin in loaded.origins.items() if key.startswith(f"{profile.won}."))
    return next((origin for origin in origins if origin != "default"), "default")


def _budget(profile: SessionProfile, config: Config) -> tuple[int, str]:
    if profile.rule.token_budget is None:
        return config.context_compiler.token_budget, "context_compiler.token_budget"
    by_type = profile.number and "token_budget" not in dict(
        config.sessions.rules[profile.number - 1].settings
    )
    return profile.rule.token_budget, f"sessions.{profile.kind.type}" if by_type else profile.won


def _describe_search(scope: Scope) -> str:
    agents = ", ".join(filter(None, scope.agents))
    shared = "that all agents share" + (f" or that belong to {agents}" if agents else "")
    if scope.audience == "owner":
        return f"notes and transcripts {shared}"
    if scope.conversation:
        return f"notes {shared}, if they are for groups or for anyone, and this session's own transcripts"
    return f"notes {shared}, if they are for anyone, and no transcript"


def _off_reason(profile: SessionProfile, config: Config) -> str:
    if not config.inject.enabled:
        return "inject.enabled is false, so no session gets anything"
    if agent := find_excluded_agent(profile.agents, config.inject.exclude_agents):
        return f"{agent} is in inject.exclude_agents, so this session gets nothing"
    return "" if profile.rule.lanes else "no lane is open to this session, so it gets nothing"


# ---------------------------------------------------------------- output


def _rows(profile: SessionProfile, loaded: LoadedConfig, files: list[_File]) -> Iterator[tuple[str, str]]:
    kind, rule, config = profile.kind, profile.rule, loaded.config
    budget, source = _budget(profile, config)
    yield "key", output.shorten(one_line(kind.key), 120)
    yield "form", _FORMS[kind.form]
    yield "agent", one_line(" and ".join(profile.agents))
    yield "type", kind.type
    for name in ("channel", "peer", "topic"):
        if value := getattr(kind, name):
            yield name, one_line(value)
    yield "owner", one_line(_describe_owner(profile, config))
    fallback = f"; what it does not say, sessions.{kind.type} says" if profile.number else ""
    yield "rule", f"{profile.won} ({_rule_origin(profile, loaded)}){fallback}"
    yield "audience", f"{rule.audience}: {_AUDIENCES[rule.audience]}"
    yield "lanes", ", ".join(rule.lanes or ()) or "none"
    yield "budget", f"{budget} tokens ({source})"
    yield from _file_rows(files, rule.files is None)
    if to_unload := _files_to_unload(profile, config, files):
        turns = output.pluralize(config.inject.shed_after_turns or 0, "turn")
        yield "shed", f"{', '.join(to_unload)}: left out once used and then not for {turns}"
    yield "search", _describe_search(profile.scope)
    if reason := _off_reason(profile, config):
        yield "off", reason
    for notice in profile.notices:
        yield "note", notice.text


def _file_rows(files: list[_File], untouched: bool) -> Iterator[tuple[str, str]]:
    if untouched:
        yield "files", "the host's own list, untouched"
        return
    for number, file in enumerate(files):
        size = output.pluralize(file.tokens, "token") if file.tokens is not None else file.why_not
        yield "files" if number == 0 else "", f"{file.name}  {one_line(size)}"
    if len(files) > 1:
        yield "", f"{output.pluralize(sum(file.tokens or 0 for file in files), 'token')} in all"


def _as_json(profile: SessionProfile, loaded: LoadedConfig, files: list[_File]) -> dict[str, object]:
    kind, rule, scope = profile.kind, profile.rule, profile.scope
    budget, source = _budget(profile, loaded.config)
    to_unload = _files_to_unload(profile, loaded.config, files)
    return {
        "key": kind.key,
        "known": kind.known,
        "form": kind.form or None,
        "agent": kind.agent or list(profile.agents),
        "type": kind.type,
        "channel": kind.channel,
        "peer": kind.peer,
        "topic": kind.topic,
        "owner": _is_owner_session(profile),
        "why": _describe_owner(profile, loaded.config).partition(": ")[2],
        "rule": profile.won,
        "where": _rule_origin(profile, loaded),
        "audience": rule.audience,
        "means": _AUDIENCES[rule.audience],
        "lanes": list(rule.lanes or ()),
        "budget": budget,
        "budget_from": source,
        "files": None
        if rule.files is None
        else [{"name": file.name, "tokens": file.tokens, "why_not": file.why_not or None} for file in files],
        "shed": {"after_turns": loaded.config.inject.shed_after_turns, "files": to_unload}
        if to_unload
        else None,
        "search": {
            "audience": scope.audience,
            "agents": list(filter(None, scope.agents)),
            "transcripts": _transcript_scope(scope),
        },
        "off": _off_reason(profile, loaded.config) or None,
        "notices": [{"code": notice.code, "text": notice.text} for notice in profile.notices],
    }


def _transcript_scope(scope: Scope) -> str:
    if scope.audience == "owner":
        return "agent"
    return "own" if scope.conversation else "none"

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
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, words
from tacit.cli.lines import one_line
from tacit.config import Config, Loaded
from tacit.context.blocks import Block
from tacit.context.sources import Listener, Sources, identity_files, label
from tacit.memory.bootstrap import can_shed, of_home
from tacit.model.search import Scope
from tacit.sessions.agents import excluded_agent, meant_key
from tacit.sessions.classify import SessionKind, classify
from tacit.sessions.rules import Profile, profile_of
from tacit.store.files import Tree
from tacit.store.home import Home, locate
from tacit.store.senders import Senders
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
    tokens: int | None  # None: it is not loaded
    why_not: str = ""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", type=words, help="the session key, as the host gives it")
    parser.add_argument("--agent", type=words, help="the agent, where the host names one beside the key")
    parser.add_argument(
        "--sender", type=words, metavar="ID", default="", help="who writes, like telegram:7, as the host says"
    )
    parser.add_argument(
        "--trigger", type=words, default="", help="what began the run: user, heartbeat, cron or webhook"
    )
    home_option(parser)
    json_option(parser)


def run(options: argparse.Namespace) -> int:
    home = locate(options.home, os.environ).require()
    loaded = load_config(home)
    profile = profile_of(
        options.key,
        loaded.config,
        agent=options.agent,
        sender=options.sender,
        trigger=options.trigger,
        senders=_senders(home, loaded.config, meant_key(options.key, options.agent)),
    )
    files = list(_files(home, loaded.config, profile))
    if options.json:
        output.dump(_form(profile, loaded, files))
    else:
        output.table(_rows(profile, loaded, files), indent="")
    output.problems(loaded.problems)
    return 0 if profile.kind.known else 1


def _senders(home: Home, config: Config, key: str) -> frozenset[str]:
    kind = classify(key, main_keys=config.sessions.main_keys)
    return Senders(home).seen(key, "") if kind.is_main else frozenset()


# ---------------------------------------------------------------- what is told


def _is_owners(profile: Profile) -> bool:
    return profile.kind.type in ("main_session", "orchestration", "private_dm", "heartbeat_cron")


def _whose(profile: Profile, config: Config) -> str:
    """Whether it is the owner's, and why."""
    kind = profile.kind
    if _is_owners(profile):
        return f"yes: {_why_owned(kind, config)}"
    if profile.notices:
        return "no: see the note"
    if kind.form == "direct":
        who = f"{kind.channel}:{kind.peer}" if kind.channel else kind.peer
        return f"no: {who} is not in owners"
    return "no: it answers to another session" if kind.form == "subagent" else "no: others read it"


def _why_owned(kind: SessionKind, config: Config) -> str:
    if kind.form == "direct":
        return f"{kind.peer} is in owners"
    if kind.form != "main":
        return "it runs for you"
    return "nobody but owners has been seen in it" if config.owners else "nobody else has been seen in it"


def _files(home: Home, config: Config, profile: Profile) -> Iterator[_File]:
    """By the bootstrap lane, if it is open; else they come with each turn."""
    if "bootstrap" not in (profile.rule.lanes or ()):
        yield from _with_turns(home, config, profile)
        return
    sections, dropped = of_home(home, profile)
    loaded = {section.label: section.tokens for section in sections}
    why_not = {one.label: one.reason if one.code != "missing" else "missing" for one in dropped}
    for name in profile.rule.files or ():
        known = label("identity", name)
        yield _File(name, loaded.get(known), why_not.get(known, "") if known not in loaded else "")


def _with_turns(home: Home, config: Config, profile: Profile) -> Iterator[_File]:
    rule = profile.rule
    names = identity_files(rule.files, config.context_compiler.profile, rule.audience)
    sources = Sources(Tree(home.root).read, Listener(rule.audience, profile.kind.agent))
    for name, loaded in zip(names, sources.identity(names), strict=True):
        if isinstance(loaded, Block):
            yield _File(name, tokens.count(loaded.text))
        else:
            yield _File(name, None, "missing" if loaded.code == "missing" else loaded.reason)


def _shed(profile: Profile, config: Config, files: list[_File]) -> list[str]:
    """Files that are not loaded any more once the conversation has absorbed them."""
    is_on = config.inject.shed_after_turns is not None and "bootstrap" in (profile.rule.lanes or ())
    return [file.name for file in files if is_on and file.tokens is not None and can_shed(file.name)]


def _place(profile: Profile, loaded: Loaded) -> str:
    """The line of the config where the rule stands, or that it is the default."""
    if profile.number:
        return loaded.rules[profile.number - 1]
    inside = (origin for key, origin in loaded.origins.items() if key.startswith(f"{profile.won}."))
    return next((origin for origin in inside if origin != "default"), "default")


def _budget(profile: Profile, config: Config) -> tuple[int, str]:
    if profile.rule.token_budget is None:
        return config.context_compiler.token_budget, "context_compiler.token_budget"
    by_type = profile.number and "token_budget" not in dict(
        config.sessions.rules[profile.number - 1].settings
    )
    return profile.rule.token_budget, f"sessions.{profile.kind.type}" if by_type else profile.won


def _searched(scope: Scope) -> str:
    agents = ", ".join(filter(None, scope.agents))
    shared = "that all agents share" + (f" or that belong to {agents}" if agents else "")
    if scope.audience == "owner":
        return f"notes and transcripts {shared}"
    if scope.conversation:
        return f"notes {shared}, if they are for groups or for anyone, and this session's own transcripts"
    return f"notes {shared}, if they are for anyone, and no transcript"


def _off(profile: Profile, config: Config) -> str:
    if not config.inject.enabled:
        return "inject.enabled is false, so no session gets anything"
    if agent := excluded_agent(profile.agents, config.inject.exclude_agents):
        return f"{agent} is in inject.exclude_agents, so this session gets nothing"
    return "" if profile.rule.lanes else "no lane is open to this session, so it gets nothing"


# ---------------------------------------------------------------- how it is told


def _rows(profile: Profile, loaded: Loaded, files: list[_File]) -> Iterator[tuple[str, str]]:
    kind, rule, config = profile.kind, profile.rule, loaded.config
    budget, source = _budget(profile, config)
    yield "key", output.short(one_line(kind.key), 120)
    yield "form", _FORMS[kind.form]
    yield "agent", one_line(" and ".join(profile.agents))
    yield "type", kind.type
    for name in ("channel", "peer", "topic"):
        if value := getattr(kind, name):
            yield name, one_line(value)
    yield "owner", one_line(_whose(profile, config))
    rest = f"; what it does not say, sessions.{kind.type} says" if profile.number else ""
    yield "rule", f"{profile.won} ({_place(profile, loaded)}){rest}"
    yield "audience", f"{rule.audience}: {_AUDIENCES[rule.audience]}"
    yield "lanes", ", ".join(rule.lanes or ()) or "none"
    yield "budget", f"{budget} tokens ({source})"
    yield from _file_rows(files, rule.files is None)
    if shed := _shed(profile, config, files):
        turns = output.plural(config.inject.shed_after_turns or 0, "turn")
        yield "shed", f"{', '.join(shed)}: left out once used and then not for {turns}"
    yield "search", _searched(profile.scope)
    if off := _off(profile, config):
        yield "off", off
    for notice in profile.notices:
        yield "note", notice.text


def _file_rows(files: list[_File], untouched: bool) -> Iterator[tuple[str, str]]:
    if untouched:
        yield "files", "the host's own list, untouched"
        return
    for number, file in enumerate(files):
        size = output.plural(file.tokens, "token") if file.tokens is not None else file.why_not
        yield "files" if number == 0 else "", f"{file.name}  {one_line(size)}"
    if len(files) > 1:
        yield "", f"{output.plural(sum(file.tokens or 0 for file in files), 'token')} in all"


def _form(profile: Profile, loaded: Loaded, files: list[_File]) -> dict[str, object]:
    kind, rule, scope = profile.kind, profile.rule, profile.scope
    budget, source = _budget(profile, loaded.config)
    shed = _shed(profile, loaded.config, files)
    return {
        "key": kind.key,
        "known": kind.known,
        "form": kind.form or None,
        "agent": kind.agent or list(profile.agents),
        "type": kind.type,
        "channel": kind.channel,
        "peer": kind.peer,
        "topic": kind.topic,
        "owner": _is_owners(profile),
        "why": _whose(profile, loaded.config).partition(": ")[2],
        "rule": profile.won,
        "where": _place(profile, loaded),
        "audience": rule.audience,
        "means": _AUDIENCES[rule.audience],
        "lanes": list(rule.lanes or ()),
        "budget": budget,
        "budget_from": source,
        "files": None
        if rule.files is None
        else [{"name": file.name, "tokens": file.tokens, "why_not": file.why_not or None} for file in files],
        "shed": {"after_turns": loaded.config.inject.shed_after_turns, "files": shed} if shed else None,
        "search": {
            "audience": scope.audience,
            "agents": list(filter(None, scope.agents)),
            "transcripts": _transcripts(scope),
        },
        "off": _off(profile, loaded.config) or None,
        "notices": [{"code": notice.code, "text": notice.text} for notice in profile.notices],
    }


def _transcripts(scope: Scope) -> str:
    if scope.audience == "owner":
        return "agent"
    return "own" if scope.conversation else "none"

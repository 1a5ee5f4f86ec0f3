"""The commands that explain a turn, a line of a note, or a session key."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import NamedTuple

from tacit.app import load_config, open_home
from tacit.cli.render.receipt import (
    inclusion_hint,
    is_about,
    render_block,
    render_receipt,
    render_receipt_list,
    separate_blocks,
)
from tacit.config import Config, LoadedConfig
from tacit.context import receipts
from tacit.context.absence import (
    Reason,
    ReceiptBlock,
    blocks_of,
    file_exists,
    path_of,
    reasons_for,
    resolve_path,
)
from tacit.context.delivery.bootstrap import can_unload as can_shed
from tacit.context.delivery.bootstrap import choose_home_files
from tacit.context.loaded_files import FileLoader, Listener, identity_files
from tacit.context.loaded_files import block_label as label
from tacit.context.model import Block, Dropped, Receipt, Section
from tacit.context.receipt_codec import as_dict
from tacit.errors import UsageError
from tacit.git.conflicts import NoteTree
from tacit.home.layout import Home, find_home
from tacit.provenance.trace import SourceTurn, Trace
from tacit.search.model import Scope
from tacit.sessions.keys import SessionKind, classify, find_excluded_agent, resolve_key
from tacit.sessions.policy import Senders, SessionProfile, resolve_profile
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, parse_count, utf8_argument
from tacit.terminal.lines import (
    Line,
    StyledText,
    one_line,
    print_lines,
    terminal_width,
    wrap_beside,
    wrap_styled,
)
from tacit.terminal.paths import path_in_home
from tacit.text import tokens
from tacit.workspaces.folders import Workspaces

_COMPILE_HINT = '`tacit compile "…"` makes one.'


def why_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", type=utf8_argument, nargs="?", help="which receipt (default: the last one)")
    about = parser.add_mutually_exclusive_group()
    about.add_argument(
        "--block", type=utf8_argument, metavar="PART", help="all about blocks whose name holds this"
    )
    about.add_argument(
        "--not", type=utf8_argument, dest="absent", metavar="FILE", help="why this file is not there"
    )
    about.add_argument("-n", type=parse_count, dest="count", metavar="N", help="list the last N receipts")
    parser.add_argument("--session-key", type=utf8_argument, metavar="KEY", help="of this session")
    add_home_option(parser)
    add_json_option(parser)


def run_why(options: argparse.Namespace) -> int:
    """Explain why a turn got what it got, and why something was left out.

        tacit why                     the last turn
        tacit why 7k2q                another turn: its id, or the beginning or end of the id
        tacit why -n 20               the last twenty
        tacit why --block glazes      everything about the blocks with this in their name
        tacit why --not USER.md       why a file is not in the prompt

    Every compiled prompt leaves a receipt in .tacit/receipts. You can delete receipts without losing
    anything.
    """
    home = find_home(options.home, os.environ).require()
    if options.id is not None and (options.count or options.session_key is not None):
        raise UsageError("An id names one receipt. Leave out -n and --session-key, or the id.")
    if options.count:
        return _list_receipts(receipts.recent(home, options.count, options.session_key), options)
    receipt = _find_receipt(home, options)
    if receipt is None:
        return _refuse(_missing_receipt(options))
    if options.block is not None:
        return _print_blocks(receipt, options.block, options.json)
    if options.absent is not None:
        return _print_absence(home, receipt, options.absent, options.json)
    if options.json:
        output.dump(as_dict(receipt))
    else:
        print_receipt(receipt)
    return 0


def _find_receipt(home: Home, options: argparse.Namespace) -> Receipt | None:
    if options.id is not None:
        return receipts.find_by_id(home, options.id)
    return receipts.last(home, session_key=options.session_key)


def _missing_receipt(options: argparse.Namespace) -> str:
    if options.id is not None:
        return f"No receipt has the id {options.id!r}. `tacit why -n 20` lists the last ones."
    if options.session_key is not None:
        return f"The session {options.session_key!r} has no receipt. `tacit why -n 20` lists the last of all."
    return f"There is no receipt yet. {_COMPILE_HINT}"


def _refuse(sentence: str) -> int:
    output.warn(f"tacit: {sentence}")
    return 1


# One receipt


def print_receipt(receipt: Receipt) -> None:
    """Print it to standard output, in colour on a terminal."""
    print_lines(render_receipt(receipt, terminal_width()))


# The list


def _list_receipts(entries: list[Receipt], options: argparse.Namespace) -> int:
    if not entries:
        return _refuse(_missing_receipt(options))
    if options.json:
        output.dump([as_dict(receipt) for receipt in entries])
    else:
        print_lines(render_receipt_list(entries, terminal_width()))
    return 0


# One block


def _print_blocks(receipt: Receipt, part: str, as_json: bool) -> int:
    blocks = [block for block in blocks_of(receipt) if is_about(block, part)]
    if not blocks:
        remark = " It was cut and does not list everything." if receipt.unlisted else ""
        return _refuse(
            f"No block of receipt {receipt.id} has {part!r} in its name.{remark} "
            "`tacit why` lists the blocks; `tacit why --not FILE` says why a file is not among them."
        )
    if as_json:
        output.dump({"receipt": receipt.id, "blocks": [_block_json(receipt, block) for block in blocks]})
    else:
        print_lines(separate_blocks(render_block(receipt, block, terminal_width()) for block in blocks))
    return 0


def _block_json(receipt: Receipt, block: ReceiptBlock) -> dict[str, object]:
    return {
        **as_dict(block),
        "kept": isinstance(block, Section),
        **({"needed": inclusion_hint(receipt, block)} if isinstance(block, Dropped) else {}),
    }


# Absent files


def _print_absence(home: Home, receipt: Receipt, argument: str, as_json: bool) -> int:
    workspaces = Workspaces(home, load_config(home).config.workspaces)
    given = workspaces.path_of(os.path.abspath(argument)) or path_in_home(home.root, argument)
    path = resolve_path(home, workspaces, receipt, given)
    blocks = [block for block in blocks_of(receipt) if path_of(block) == path]
    if not blocks and not file_exists(workspaces, path):
        return _refuse(f"There is no file {path!r} in the home, and receipt {receipt.id} has no such block.")
    reasons = [] if blocks else list(reasons_for(home, workspaces, receipt, path))
    if as_json:
        output.dump(
            {
                "receipt": receipt.id,
                "file": path,
                "in_prompt": any(isinstance(block, Section) for block in blocks),
                "blocks": [_block_json(receipt, block) for block in blocks],
                "reasons": [reason._asdict() for reason in reasons],
            }
        )
    elif blocks:
        print_lines(_file_lines(receipt, path, blocks, terminal_width()))
    else:
        print_lines(_absence_lines(path, reasons, terminal_width()))
    return 0


def _file_lines(receipt: Receipt, path: str, blocks: Sequence[ReceiptBlock], width: int) -> Iterator[Line]:
    included = sum(isinstance(block, Section) for block in blocks)
    if included == len(blocks):
        verdict = "is in the prompt"
    elif included:
        verdict = f"is in the prompt in part: {included} of its {len(blocks)} blocks"
    else:
        verdict = "was considered and is not in the prompt"
    yield from wrap_styled(f"{one_line(path)} {verdict}.", width, "bold")
    yield []
    yield from separate_blocks(render_block(receipt, block, width) for block in blocks)


def _absence_lines(path: str, reasons: Sequence[Reason], width: int) -> Iterator[Line]:
    yield from wrap_styled(f"{one_line(path)} was not considered in this turn.", width, "bold")
    for reason in reasons:
        yield from wrap_beside(StyledText("  - "), reason.text, width)
        if reason.command:
            yield [StyledText(f"    {reason.command}")]  # on one line, so that it can be copied


_HOW_LABELS = {
    "generated": "tacit wrote it",
    "edited": "tacit wrote it, and a person has edited it since",
    "written": "written by hand",
    "said": "it is only in a conversation",
    "drafted": "it waits in a draft",
    "proposed": "it waits as a proposal",
}
_TRUST_LABELS = {
    "owner": "the owner's word",
    "agent": "the agent's word",
    "other": "another person's word",
    "tool": "from a tool",
    "web": "from a tool that reads what strangers write",
}
_STATE_LABELS = {"gone": "the transcript is gone", "purged": "this origin was purged"}
_MAX_QUOTED_LINES = 6  # of a message


def why_known_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text", metavar="TEXT", nargs="+", type=utf8_argument, help="a line, or some words of it"
    )
    add_home_option(parser)
    add_json_option(parser)


def run_why_known(options: argparse.Namespace) -> int:
    """Trace a line to its file, the commit that added it, and the words it was made from.

        tacit why-known "two coats of Reif 3b"

    It searches notes, drafts and proposals for the exact words, then ignoring case and accents. If the line
    is only in conversations, it says so. If the line is nowhere, it shows the nearest result of search. Exit
    code 1 if nothing was found.
    """
    text = " ".join(options.text)
    traces = open_home(options.home, recover=False).why_known(text)
    if options.json:
        output.dump([asdict(trace) for trace in traces])
    elif traces:
        _say_traces(text, traces)
    else:
        output.warn(f"tacit: Nothing is known about {text!r}. `tacit search` looks for other words.")
    return 0 if traces else 1


def _say_traces(text: str, traces: list[Trace]) -> None:
    if traces[0].is_nearest:
        output.say(f"{text!r} is nowhere in the home. The nearest match:")
        output.say()
    for number, trace in enumerate(traces):
        if number:
            output.say()
        for line in _trace_lines(trace):
            output.say(line)


def _trace_lines(trace: Trace) -> Iterator[str]:
    yield f"{trace.path}:{trace.line}" if trace.line else trace.path
    yield f"  {trace.text}"
    if trace.is_superseded:
        yield "  superseded: it is kept, but never put into a prompt"
    extractor = f" ({trace.extractor})" if trace.extractor else ""
    trust = f", {_TRUST_LABELS[trace.trust]}" if trace.trust else ""
    yield f"  {_HOW_LABELS[trace.how]}{extractor}{trust}"
    if trace.since is not None:
        since = trace.since
        yield f"  since {since.when:%Y-%m-%d %H:%M}, {since.commit[:10]} by {since.author}: {since.subject}"
    elif trace.how != "proposed":
        yield "  not committed yet"
    for source in trace.words:
        yield from _source_lines(source)


def _source_lines(source: SourceTurn) -> Iterator[str]:
    place = source.transcript if source.number is None else f"{source.transcript}, record {source.number}"
    yield f"  from {place}" + (f" ({_STATE_LABELS[source.state]})" if source.state else "")
    if source.before:
        yield f"    {source.before}"
    if source.text:
        speaker = f"{source.role} {source.speaker}".rstrip()
        moment = f"{source.at:%Y-%m-%d %H:%M} " if source.at else ""
        first, *rest = source.text.strip().split("\n")
        yield f"  > {moment}{speaker}: {first}"
        yield from (f"    {line}" for line in rest[: _MAX_QUOTED_LINES - 1])
        if len(rest) >= _MAX_QUOTED_LINES:
            yield "    …"


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
    "explicit": "a session that was named by hand",
    "slash": "a command on a channel",
    "global": "the host's one session for all senders",
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


def explain_session_arguments(parser: argparse.ArgumentParser) -> None:
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


def run_explain_session(options: argparse.Namespace) -> int:
    """Explain what a session key means, which rule applies and what the session may see.

        tacit explain-session agent:main:telegram:group:-100123:topic:7
        tacit explain-session agent:main:main --sender telegram:7

    It reads the config and the identity files of the home. It searches nothing and records nothing. Senders
    that were seen in a main session before count, as they do in a turn.
    """
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
        output.dump(_session_json(profile, loaded, files))
    else:
        output.print_table(_session_rows(profile, loaded, files), indent="")
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
    return "only owners have been seen in it" if config.owners else "no other person has been seen in it"


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


def _budget_of(profile: SessionProfile, config: Config) -> tuple[int, str]:
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


def _session_rows(
    profile: SessionProfile, loaded: LoadedConfig, files: list[_File]
) -> Iterator[tuple[str, str]]:
    kind, rule, config = profile.kind, profile.rule, loaded.config
    budget, source = _budget_of(profile, config)
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


def _session_json(profile: SessionProfile, loaded: LoadedConfig, files: list[_File]) -> dict[str, object]:
    kind, rule, scope = profile.kind, profile.rule, profile.scope
    budget, source = _budget_of(profile, loaded.config)
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

"""Keep a conversation from the command line, one message per call.

    id=$(tacit capture start --channel chat)
    tacit capture message $id user "What did we decide?"
    tacit capture tool $id read "notes.md" --result "42 lines"
    tacit capture message $id agent - < answer.txt
    tacit capture message $id user -- "--really?"
    tacit capture end $id

Text may begin with a hyphen when it comes after `--` or from standard input.

A message is on disk when the command returns. A session that nobody ends is sealed after
capture.idle_seal_hours by the next command. For an agent whose conversations are not kept
(capture.exclude_agents) the id is `-`, and what is said to `-` is dropped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

from tacit.app import open_home, recover_quietly
from tacit.capture import Session
from tacit.cli import output
from tacit.cli.dispatch import home_option, json_option, words
from tacit.cli.paths import within
from tacit.client import Client
from tacit.errors import UsageError
from tacit.memory import Memory
from tacit.model.turns import Opening, Sealed
from tacit.store.transcripts import find_record
from tacit.text.transcript import opening_of

NOT_KEPT = "-"
_ID_SHOWN = 60  # characters of an id in a list; the whole of it is in the JSON


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _start(actions.add_parser("start", help="begin a session and print its id"))
    _message(actions.add_parser("message", help="keep a message"))
    _tool(actions.add_parser("tool", help="keep a tool call as one line"))
    _knowledge(actions.add_parser("knowledge", help="keep that a note was changed"))
    _attach(actions.add_parser("attach", help="name a file that belongs to the conversation"))
    _end(actions.add_parser("end", help="seal the transcript and commit it"))
    _list(actions.add_parser("list", help="sessions that are open or wait for their commit"))


def _start(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session-id", type=_own_id, help="an id of your own (default: a new one)")
    parser.add_argument(
        "--session-key", type=words, default="agent:main:main", help="the host's key of the session"
    )
    parser.add_argument("--agent", type=words, help="the agent's name (default: from the key)")
    parser.add_argument("--channel", type=words, help="where the conversation happens")
    parser.add_argument("--model", type=words, help="the model that answers")
    _common(parser, moment="when it began")


def _message(parser: argparse.ArgumentParser) -> None:
    _id(parser)
    parser.add_argument("role", help="user, agent or system")
    parser.add_argument(
        "text", type=words, help="what was said; - reads it from standard input, -- before it if it begins so"
    )
    parser.add_argument("--speaker", type=words, help="who said it, where several people talk")
    _common(parser)


def _tool(parser: argparse.ArgumentParser) -> None:
    _id(parser)
    parser.add_argument("name", type=words, help="the tool")
    parser.add_argument("summary", type=words, help="what it was asked")
    parser.add_argument(
        "--result", type=words, default="", help="briefly what came back; - reads it from standard input"
    )
    _common(parser)


def _knowledge(parser: argparse.ArgumentParser) -> None:
    _id(parser)
    parser.add_argument("what", metavar="ACTION", type=words, help="updated, appended, created, removed …")
    parser.add_argument("path", type=words, help="the note")
    parser.add_argument("--summary", type=words, default="", help="what changed, in a few words")
    _common(parser)


def _attach(parser: argparse.ArgumentParser) -> None:
    _id(parser)
    parser.add_argument("path", help="a file that is in the home")
    parser.add_argument("--role", default="user", help="whose it is (default: user)")
    _common(parser)


def _end(parser: argparse.ArgumentParser) -> None:
    _id(parser)
    parser.add_argument(
        "--tag", type=words, action="append", default=[], help="a tag; may be given more than once"
    )
    parser.add_argument("--tokens-in", type=_count, metavar="COUNT", help="as the host counted them")
    parser.add_argument("--tokens-out", type=_count, metavar="COUNT", help="as the host counted them")
    _common(parser)


def _list(parser: argparse.ArgumentParser) -> None:
    home_option(parser)
    json_option(parser)


def _id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", type=words, help="the session's id")


def _common(parser: argparse.ArgumentParser, moment: str = "when it was said") -> None:
    parser.add_argument(
        "--at", type=_time, metavar="TIME", help=f"{moment}, as 2026-02-16T18:45:00+01:00 (default: now)"
    )
    home_option(parser)
    json_option(parser)


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time like 2026-02-16T18:45:00+01:00") from error


def _own_id(text: str) -> str:
    """`-` stands for sessions that are not kept: as an id of one's own, all that is said would be lost."""
    if not text or text.startswith("-"):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be an id: it is empty or begins with a hyphen")
    return words(text)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a count; use 0 or more")
    return int(text)


def run(options: argparse.Namespace) -> int:
    # What is said now comes first; what a crash left behind has time, and may have to wait for a lock.
    memory = open_home(options.home, recover=False)
    code = _ACTIONS[options.action](memory, options)
    if options.action in ("start", "end"):
        recover_quietly(memory)
    return code


def _run_start(memory: Memory, options: argparse.Namespace) -> int:
    session = memory.session(
        options.session_key,
        options.agent,
        options.channel,
        options.model,
        options.session_id,
        options.at,
        detached=True,
    )
    name = session.session_id or NOT_KEPT
    _print(options, name, {"session_id": name})
    session.detach()
    return 0


def _run_message(memory: Memory, options: argparse.Namespace) -> int:
    text = _argument(options.text)
    return _add(
        memory,
        options,
        lambda session: session.message(options.role, text, options.at, options.speaker),
        "message",
        {"role": options.role, "text": text, "speaker": options.speaker},
    )


def _run_tool(memory: Memory, options: argparse.Namespace) -> int:
    _require(options.name, "which tool")
    result = _argument(options.result)
    return _add(
        memory,
        options,
        lambda session: session.tool(options.name, options.summary, result, options.at),
        "tool",
        {"name": options.name, "summary": options.summary, "result": result},
    )


def _run_knowledge(memory: Memory, options: argparse.Namespace) -> int:
    _require(options.what, "what was done to the note")
    _require(options.path, "which note")
    return _add(
        memory,
        options,
        lambda session: session.knowledge(options.what, options.path, options.summary, options.at),
        "knowledge",
        {"action": options.what, "path": options.path, "summary": options.summary},
    )


def _run_attach(memory: Memory, options: argparse.Namespace) -> int:
    path = NOT_KEPT if options.id == NOT_KEPT else _attached(memory, options.path)
    return _add(
        memory,
        options,
        lambda session: session.attachment(path, options.role, options.at),
        "attachment",
        {"path": path, "role": options.role},
    )


def _attached(memory: Memory, given: str) -> str:
    path = within(memory.home.root, given)
    if not (memory.home.root / path).is_file():
        raise UsageError(f"There is no file {path!r} in the home. Put it there first, in attachments/.")
    return words(path)


def _require(argument: str, what: str) -> None:
    if not argument.strip():
        raise UsageError(f"Say {what}: the argument is empty.")


def _add(
    memory: Memory,
    options: argparse.Namespace,
    keep: Callable[[Session], int],
    operation: str,
    body: dict[str, object],
) -> int:
    kept = _by_daemon(memory, options, operation, body)
    if kept is not None:
        _print(options, "", {name: kept.get(name) for name in ("session_id", "number", "path")})
        return 0
    session = _continued(memory, options.id)
    number = keep(session)
    _print(options, "", {"session_id": session.session_id, "number": number, "path": session.path})
    session.detach()
    return 0


def _by_daemon(
    memory: Memory, options: argparse.Namespace, operation: str, body: dict[str, object]
) -> dict[str, Any] | None:
    """The daemon holds the transcripts that are written to, so what it can keep is kept by it. None: there is
    no daemon, or it cannot; then we do it ourselves."""
    if options.id == NOT_KEPT:
        return None
    opening = _opening(memory, options.id)
    about = {name: getattr(opening, name) for name in ("session_key", "agent", "channel", "model")}
    at = options.at.isoformat() if options.at else None
    with Client(memory.home, warn=output.warn, recover=False) as client:
        return client.daemon(operation, {**about, "session_id": options.id, "at": at, **body})


def _run_end(memory: Memory, options: argparse.Namespace) -> int:
    if options.id != NOT_KEPT and not memory.knows(options.id):
        return _ended_before(memory, options)
    counts = {"tokens_in": options.tokens_in, "tokens_out": options.tokens_out}
    ended = _by_daemon(memory, options, "end_session", {"tags": options.tag, **counts})
    if ended is not None:
        sealed = None
        if ended.get("path"):
            sealed = Sealed(options.id, ended["path"], ended["sha256"], None, "the daemon does that next")
    else:
        sealed = _continued(memory, options.id).end(options.at, tags=options.tag, **counts)
    if sealed is None:
        memory.discard(options.id)
        _print(options, "nothing was said, so nothing is kept", {"path": None})
        return 0
    _print(options, _told(sealed), {"path": sealed.path, "sha256": sealed.sha256, "commit": sealed.commit})
    return 0


def _ended_before(memory: Memory, options: argparse.Namespace) -> int:
    """A host that ends a session twice, or one that was sealed for being idle, has what it wanted."""
    path = memory.last_part(options.id)
    if path is None:
        raise UsageError(_unknown(options.id))
    _print(options, f"was sealed before as {path}", {"path": path, "sha256": None, "commit": None})
    return 0


def _told(sealed: Sealed) -> str:
    kept = f"committed as {sealed.commit[:10]}" if sealed.commit else f"not committed yet: {sealed.waiting}"
    return f"sealed {sealed.path}\n{kept}"


def _run_list(memory: Memory, options: argparse.Namespace) -> int:
    found = memory.open_sessions()
    if options.json:
        output.dump([{"session_id": record.opening.session_id, "path": record.path} for record in found])
        return 0
    output.table(
        (
            (
                output.short(record.opening.session_id, _ID_SHOWN),
                f"{record.opening.started:%Y-%m-%d %H:%M}",
                record.path or "no message yet",
            )
        )
        for record in found
    )
    return 0


_ACTIONS = {
    "start": _run_start,
    "message": _run_message,
    "tool": _run_tool,
    "knowledge": _run_knowledge,
    "attach": _run_attach,
    "end": _run_end,
    "list": _run_list,
}


def _continued(memory: Memory, session_id: str) -> Session:
    """The open session; one that was sealed meanwhile goes on in a new part, so that no message is lost."""
    if session_id == NOT_KEPT:
        return memory.unkept_session()
    if memory.knows(session_id):
        return memory.session(session_id=session_id)
    was = _opening(memory, session_id)
    return memory.session(was.session_key, was.agent, was.channel, was.model, session_id, detached=True)


def _opening(memory: Memory, session_id: str) -> Opening:
    """What is known about the session, open or sealed."""
    record = find_record(memory.home, session_id)
    if record is not None and memory.knows(session_id):
        return record.opening
    before = memory.last_part(session_id)
    if before is None:
        raise UsageError(_unknown(session_id))
    return opening_of(memory.transcript(before))


def _unknown(session_id: str) -> str:
    name = output.short(session_id, _ID_SHOWN)
    return f"There is no session {name!r}. Begin one with: tacit capture start"


def _argument(text: str | list[str]) -> str:
    if isinstance(text, list):  # all that argparse leaves of the text `--`
        return "--"
    if text != "-":
        return text
    if sys.stdin is None:
        raise UsageError("There is nothing to read: standard input is closed. Give the text, or pipe it in.")
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def _print(options: argparse.Namespace, text: str, value: dict[str, object]) -> None:
    if options.json:
        output.dump(value)
    elif text:
        output.say(text)

"""Keep a conversation from the command line, one message per call.

    id=$(tacit capture start --channel chat)
    tacit capture message $id user "What did we decide?"
    tacit capture tool $id read "notes.md" --result "42 lines"
    tacit capture message $id agent - < answer.txt
    tacit capture message $id user -- "--really?"
    tacit capture end $id

Text may begin with a hyphen when it comes after `--` or from standard input.

A message is on disk when the command returns. A session that is never ended is sealed after
capture.idle_seal_hours by the next command. For an agent whose conversations are not kept
(capture.exclude_agents) the id is `-`, and what is said to `-` is dropped.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime
from typing import Any

from tacit.app import open_home, recover_quietly
from tacit.client import Client
from tacit.errors import UsageError
from tacit.memory import Memory
from tacit.terminal import output
from tacit.terminal.arguments import add_home_option, add_json_option, text_or_stdin, utf8_argument
from tacit.terminal.paths import path_in_home
from tacit.transcripts.capture import Session
from tacit.transcripts.format import read_opening
from tacit.transcripts.model import Opening, Sealed
from tacit.transcripts.writer import find_state

UNRECORDED_ID = "-"
_MAX_ID_CHARS = 60  # in a list; the JSON has the whole id


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_start_arguments(actions.add_parser("start", help="begin a session and print its id"))
    _add_message_arguments(actions.add_parser("message", help="keep a message"))
    _add_tool_arguments(actions.add_parser("tool", help="keep a tool call as one line"))
    _add_knowledge_arguments(actions.add_parser("knowledge", help="keep that a note was changed"))
    _add_attach_arguments(actions.add_parser("attach", help="name a file that belongs to the conversation"))
    _add_end_arguments(actions.add_parser("end", help="seal the transcript and commit it"))
    _add_list_arguments(actions.add_parser("list", help="sessions that are open or wait for their commit"))


def _add_start_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session-id", type=_parse_id, help="an id of your own (default: a new one)")
    parser.add_argument(
        "--session-key", type=utf8_argument, default="agent:main:main", help="the host's key of the session"
    )
    parser.add_argument("--agent", type=utf8_argument, help="the agent's name (default: from the key)")
    parser.add_argument("--channel", type=utf8_argument, help="where the conversation happens")
    parser.add_argument("--model", type=utf8_argument, help="the model that answers")
    _add_common_arguments(parser, moment="when it began")


def _add_message_arguments(parser: argparse.ArgumentParser) -> None:
    _add_id_argument(parser)
    parser.add_argument("role", help="user, agent or system")
    parser.add_argument(
        "text",
        type=utf8_argument,
        help="what was said; - reads it from standard input, -- before it if it begins so",
    )
    parser.add_argument("--speaker", type=utf8_argument, help="who said it, where several people talk")
    _add_common_arguments(parser)


def _add_tool_arguments(parser: argparse.ArgumentParser) -> None:
    _add_id_argument(parser)
    parser.add_argument("name", type=utf8_argument, help="the tool")
    parser.add_argument("summary", type=utf8_argument, help="what it was asked")
    parser.add_argument(
        "--result",
        type=utf8_argument,
        default="",
        help="briefly what came back; - reads it from standard input",
    )
    _add_common_arguments(parser)


def _add_knowledge_arguments(parser: argparse.ArgumentParser) -> None:
    _add_id_argument(parser)
    parser.add_argument(
        "what", metavar="ACTION", type=utf8_argument, help="updated, appended, created, removed …"
    )
    parser.add_argument("path", type=utf8_argument, help="the note")
    parser.add_argument("--summary", type=utf8_argument, default="", help="what changed, in a few words")
    _add_common_arguments(parser)


def _add_attach_arguments(parser: argparse.ArgumentParser) -> None:
    _add_id_argument(parser)
    parser.add_argument("path", help="a file that is in the home")
    parser.add_argument("--role", default="user", help="whose it is (default: user)")
    _add_common_arguments(parser)


def _add_end_arguments(parser: argparse.ArgumentParser) -> None:
    _add_id_argument(parser)
    parser.add_argument(
        "--tag", type=utf8_argument, action="append", default=[], help="a tag; may be given more than once"
    )
    parser.add_argument("--tokens-in", type=_count, metavar="COUNT", help="as the host counted them")
    parser.add_argument("--tokens-out", type=_count, metavar="COUNT", help="as the host counted them")
    _add_common_arguments(parser)


def _add_list_arguments(parser: argparse.ArgumentParser) -> None:
    add_home_option(parser)
    add_json_option(parser)


def _add_id_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", type=utf8_argument, help="the session's id")


def _add_common_arguments(parser: argparse.ArgumentParser, moment: str = "when it was said") -> None:
    parser.add_argument(
        "--at",
        type=_parse_time,
        metavar="TIME",
        help=f"{moment}, as 2026-02-16T18:45:00+01:00 (default: now)",
    )
    add_home_option(parser)
    add_json_option(parser)


def _parse_time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time like 2026-02-16T18:45:00+01:00") from error


def _parse_id(text: str) -> str:
    """Refuse `-`, which names sessions that are not recorded: everything said in it would be lost."""
    if not text or text.startswith("-"):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be an id: it is empty or begins with a hyphen")
    return utf8_argument(text)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a count; use 0 or more")
    return int(text)


def run(options: argparse.Namespace) -> int:
    # Record the new message first: recovery after a crash can wait, also for a lock.
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
    name = session.session_id or UNRECORDED_ID
    _print_result(options, name, {"session_id": name})
    session.detach()
    return 0


def _run_message(memory: Memory, options: argparse.Namespace) -> int:
    text = _read_argument(options.text)
    return _record(
        memory,
        options,
        lambda session: session.message(options.role, text, options.at, options.speaker),
        "message",
        {"role": options.role, "text": text, "speaker": options.speaker},
    )


def _run_tool(memory: Memory, options: argparse.Namespace) -> int:
    _require(options.name, "which tool")
    result = _read_argument(options.result)
    return _record(
        memory,
        options,
        lambda session: session.tool(options.name, options.summary, result, options.at),
        "tool",
        {"name": options.name, "summary": options.summary, "result": result},
    )


def _run_knowledge(memory: Memory, options: argparse.Namespace) -> int:
    _require(options.what, "what was done to the note")
    _require(options.path, "which note")
    return _record(
        memory,
        options,
        lambda session: session.knowledge(options.what, options.path, options.summary, options.at),
        "knowledge",
        {"action": options.what, "path": options.path, "summary": options.summary},
    )


def _run_attach(memory: Memory, options: argparse.Namespace) -> int:
    path = UNRECORDED_ID if options.id == UNRECORDED_ID else _resolve_attachment(memory, options.path)
    return _record(
        memory,
        options,
        lambda session: session.attachment(path, options.role, options.at),
        "attachment",
        {"path": path, "role": options.role},
    )


def _resolve_attachment(memory: Memory, argument: str) -> str:
    path = path_in_home(memory.home.root, argument)
    if not (memory.home.root / path).is_file():
        raise UsageError(f"There is no file {path!r} in the home. Put it there first, in attachments/.")
    return utf8_argument(path)


def _require(argument: str, question: str) -> None:
    if not argument.strip():
        raise UsageError(f"Say {question}: the argument is empty.")


def _record(
    memory: Memory,
    options: argparse.Namespace,
    write: Callable[[Session], int],
    operation: str,
    body: dict[str, object],
) -> int:
    answer = _ask_daemon(memory, options, operation, body)
    if answer is not None:
        _print_result(options, "", {name: answer.get(name) for name in ("session_id", "number", "path")})
        return 0
    session = _open_or_continue(memory, options.id)
    number = write(session)
    _print_result(options, "", {"session_id": session.session_id, "number": number, "path": session.path})
    session.detach()
    return 0


def _ask_daemon(
    memory: Memory, options: argparse.Namespace, operation: str, body: dict[str, object]
) -> dict[str, Any] | None:
    """Hand the call to the daemon, which holds the open transcripts. None: there is no daemon or it cannot do
    it, so the caller has to."""
    if options.id == UNRECORDED_ID:
        return None
    opening = _find_opening(memory, options.id)
    session_fields = {name: getattr(opening, name) for name in ("session_key", "agent", "channel", "model")}
    moment = options.at.isoformat() if options.at else None
    with Client(memory.home, warn=output.warn, recover=False) as client:
        return client.daemon(operation, {**session_fields, "session_id": options.id, "at": moment, **body})


def _run_end(memory: Memory, options: argparse.Namespace) -> int:
    if options.id != UNRECORDED_ID and not memory.services.conversations.is_open(options.id):
        return _report_sealed_before(memory, options)
    counts = {"tokens_in": options.tokens_in, "tokens_out": options.tokens_out}
    answer = _ask_daemon(memory, options, "end_session", {"tags": options.tag, **counts})
    if answer is not None:
        sealed = None
        if answer.get("path"):
            sealed = Sealed(options.id, answer["path"], answer["sha256"], None, "the daemon does that next")
    else:
        sealed = _open_or_continue(memory, options.id).end(options.at, tags=options.tag, **counts)
    if sealed is None:
        memory.services.conversations.discard(options.id)
        _print_result(options, "nothing was said, so nothing is kept", {"path": None})
        return 0
    _print_result(
        options,
        _describe_sealed(sealed),
        {"path": sealed.path, "sha256": sealed.sha256, "commit": sealed.commit},
    )
    return 0


def _report_sealed_before(memory: Memory, options: argparse.Namespace) -> int:
    """Ending a session that was finalized before, by a host or for being idle, is no error."""
    path = memory.services.conversations.find_last_part(options.id)
    if path is None:
        raise UsageError(_unknown_session(options.id))
    _print_result(options, f"was sealed before as {path}", {"path": path, "sha256": None, "commit": None})
    return 0


def _describe_sealed(sealed: Sealed) -> str:
    commit_status = (
        f"committed as {sealed.commit[:10]}" if sealed.commit else f"not committed yet: {sealed.waiting}"
    )
    return f"sealed {sealed.path}\n{commit_status}"


def _run_list(memory: Memory, options: argparse.Namespace) -> int:
    sessions = memory.services.conversations.list_open()
    if options.json:
        output.dump([{"session_id": record.opening.session_id, "path": record.path} for record in sessions])
        return 0
    output.print_table(
        (
            (
                output.shorten(record.opening.session_id, _MAX_ID_CHARS),
                f"{record.opening.started:%Y-%m-%d %H:%M}",
                record.path or "no message yet",
            )
        )
        for record in sessions
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


def _open_or_continue(memory: Memory, session_id: str) -> Session:
    """The open session. A finalized one goes on in a new part, so that no message is lost."""
    if session_id == UNRECORDED_ID:
        return memory.services.conversations.open_without_capture()
    if memory.services.conversations.is_open(session_id):
        return memory.session(session_id=session_id)
    opening = _find_opening(memory, session_id)
    return memory.session(
        opening.session_key, opening.agent, opening.channel, opening.model, session_id, detached=True
    )


def _find_opening(memory: Memory, session_id: str) -> Opening:
    """The opening of a session, open or finalized."""
    record = find_state(memory.home, session_id)
    if record is not None and memory.services.conversations.is_open(session_id):
        return record.opening
    path = memory.services.conversations.find_last_part(session_id)
    if path is None:
        raise UsageError(_unknown_session(session_id))
    return read_opening(memory.transcript(path))


def _unknown_session(session_id: str) -> str:
    name = output.shorten(session_id, _MAX_ID_CHARS)
    return f"There is no session {name!r}. Begin one with: tacit capture start"


def _read_argument(text: str | list[str]) -> str:
    return "--" if isinstance(text, list) else text_or_stdin(text)  # argparse makes a list of the text `--`


def _print_result(options: argparse.Namespace, text: str, value: dict[str, object]) -> None:
    if options.json:
        output.dump(value)
    elif text:
        output.say(text)

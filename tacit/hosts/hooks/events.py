"""Translates hooks of Claude Code 2.1 and Codex 0.166 into tacit's operations.

Observed on the real hosts and relied on here:
- all events of one prompt share a `prompt_id` (Claude Code) or `turn_id` (Codex), and a turn may have several
  prompts, so a message's id is made of that id and the text;
- the model's last words come with `Stop`; the host's transcript may not have them yet at that moment;
- Claude Code's summariser ends as a subagent with an empty type;
- Codex's `notify` holds all prompts of the thread; the last one belongs to the turn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from tacit.errors import UsageError
from tacit.hosts.base import Body, OperationCall
from tacit.hosts.fields import NotUnderstood, as_text, summarize_arguments
from tacit.hosts.hooks.hook_events import NOTIFY_EVENT, is_host_prompt, read_event_name, read_session

_OPERATIONS = {
    "message": "message",
    "tool": "tool",
    "session-end": "end_session",
}  # by relay name
_RESET_SOURCES = frozenset(("compact", "clear"))  # sources of a SessionStart after which earlier text is gone


def turn(body: Mapping[str, Any]) -> Body:
    """The relay names message and session; a turn needs nothing else of a hook."""
    return {name: value for name, value in body.items() if name != "host"}


def bootstrap_entries(session_key: str, files: Sequence[Mapping[str, Any]]) -> list[Body]:  # noqa: ARG001
    """These hosts take any file."""
    return [dict(file) for file in files]


def event(body: Mapping[str, Any]) -> list[OperationCall]:
    """`operation`: the relay operation that was requested; other calls are left out. Without it: all
    calls."""
    operation = body.get("operation", "event")
    try:
        calls = list(_convert_event(body, read_event_name(body), _session_fields(body)))
    except NotUnderstood as error:
        raise UsageError(f"An event of a host is not understood: {error}.") from None
    return [call for call in calls if operation == "event" or call.operation == _OPERATIONS.get(operation)]


def _session_fields(body: Mapping[str, Any]) -> Body:
    key, session = read_session(body)
    model = body.get("model")
    return {"session_key": key, "session_id": session, **({"model": model} if isinstance(model, str) else {})}


def _convert_event(body: Mapping[str, Any], name: str, about: Body) -> Iterator[OperationCall]:
    match name:
        case "UserPromptSubmit":
            yield from _convert_message(body, about, "user", body.get("prompt"))
        case "Stop":
            yield from _convert_reply(body, about, "last_assistant_message")
        case "SubagentStop" if body.get("agent_type") != "":
            yield from _convert_reply(body, about, "last_assistant_message")
            yield OperationCall("end_session", about)
        case "PostToolUse" | "PostToolUseFailure" | "PostToolBatch":
            calls = _read_calls(body.get("tool_calls")) if name == "PostToolBatch" else [body]
            yield from (_convert_call(body, about, call) for call in calls)
        case "SessionEnd":
            yield OperationCall("end_session", about)
        case "SessionStart" | "PostCompact" if name == "PostCompact" or body.get("source") in _RESET_SOURCES:
            yield OperationCall("renew", about)
        case _ if name == NOTIFY_EVENT:
            prompts = body.get("input-messages")
            last = prompts[-1] if isinstance(prompts, list) and prompts else None
            yield from _convert_message(body, about, "user", last)
            yield from _convert_reply(body, about, "last-assistant-message")


def _convert_reply(body: Mapping[str, Any], about: Body, name: str) -> Iterator[OperationCall]:
    """A turn may end without any words from the model."""
    if body.get(name) is not None:
        yield from _convert_message(body, about, "agent", body[name])


def _convert_message(
    body: Mapping[str, Any], about: Body, role: str, value: object
) -> Iterator[OperationCall]:
    text = as_text(value, "prompt" if role == "user" else "the answer")
    if not text.strip():
        return
    fields: Body = {**about, "role": role, "text": text, "id": _record_id(body, role, text)}
    if role == "user" and is_host_prompt(text):
        fields |= {"role": "system", "speaker": "host"}
    yield OperationCall("message", fields)


def _read_calls(value: object) -> Sequence[Mapping[str, Any]]:
    if isinstance(value, list) and all(isinstance(call, Mapping) for call in value):
        return value
    raise NotUnderstood("'tool_calls' is no list of calls")


def _convert_call(body: Mapping[str, Any], about: Body, call: Mapping[str, Any]) -> OperationCall:
    name = call.get("tool_name")
    if not isinstance(name, str) or not name:
        raise NotUnderstood("'tool_name' is missing")
    arguments = call.get("tool_input")
    arguments_text = (
        summarize_arguments(arguments) if isinstance(arguments, Mapping) else _render_value(arguments)
    )
    call_id = call.get("tool_use_id")
    # A call's id is unique within its session; the event of a batch reports the same call again.
    record_id = (
        f"call:{call_id}"
        if isinstance(call_id, str) and call_id
        else _record_id(body, "tool", name, arguments_text)
    )
    return OperationCall(
        "tool",
        {**about, "name": name, "summary": arguments_text, "result": _render_result(call), "id": record_id},
    )


def _render_result(call: Mapping[str, Any]) -> str:
    if call.get("error") is not None:
        return f"error: {_render_value(call['error'])}"
    answer = call.get("tool_response")
    if isinstance(answer, Mapping) and isinstance(answer.get("stdout"), str):
        parts = (answer["stdout"], answer.get("stderr"))
        return "\n".join(part.strip("\n") for part in parts if isinstance(part, str) and part.strip())
    return _render_value(answer).strip("\n")


def _render_value(value: object) -> str:
    if value is None:
        return ""
    try:
        return as_text(value, "")
    except NotUnderstood:
        return json.dumps(value, ensure_ascii=False)


def _record_id(body: Mapping[str, Any], *parts: str) -> str:
    """The same id for the same words of one turn, whichever event reports them. Empty where the host does not
    say which turn it is: each event then counts separately."""
    turn = body.get("prompt_id") or body.get("turn_id") or body.get("turn-id") or body.get("id") or ""
    if not turn:
        return ""
    return sha256(repr((turn, *parts)).encode("utf-8", "surrogatepass")).hexdigest()[:32]

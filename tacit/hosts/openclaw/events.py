"""Translates OpenClaw's records, as version 2026.9 writes them, into tacit's operations.

Observed on the real host and relied on here:
- a user's message is written twice with the same key and timestamp, once when it arrives and once when its
  run begins; an event's id is made of both, so it is stored once;
- on a channel, `__openclaw.senderId` says who wrote; the owner's own command line has `senderIsOwner` and no
  sender. A user's message with neither comes from the host: a heartbeat, a job, a subagent's task;
- a webhook's run has the session key of a job; only its prompt tells them apart;
- what a hook puts around the user's text applies to this run alone: the next run has the plain text;
- of the files that a hook lists, a job's session accepts four names and a subagent's one. AGENTS.md is among
  them, under any path, so other files of a rule are listed under that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from tacit.config.conversion import split_channel
from tacit.hosts.base import Body, OperationCall
from tacit.hosts.fields import summarize_arguments

# File names that the hook accepts, by the first word of the session key after the agent.
_ALLOWED_NAMES = {
    "cron": frozenset(("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md")),
    "subagent": frozenset(("AGENTS.md",)),
}
_JOB_PREFIX = "[cron:"  # start of a job's prompt
_SCHEDULED = re.compile(r"\s*\[cron:[^\]\n]*\] (.*?)\n(?:Current time:|\Z)", re.DOTALL)
_SUBAGENT = re.compile(r"\[Subagent Task\]\s+(.*?)(?:\n\nBegin\. Execute|\Z)", re.DOTALL)
_PLUGIN_ID = "tacit"  # of tacit's plugin
_OWN_TOOL_PREFIX = "tacit_"  # start of the names of tacit's own tools
_END_REASONS = frozenset(
    ("new", "reset", "idle", "daily", "deleted")
)  # reasons of session_end that end a session; a shutdown does not
_STRANGER = "*"  # a sender who is certainly not the owner
_UNKNOWN_CHANNEL = "?"  # stands for a channel that the host does not name; no owner is on it


# ---------------------------------------------------------------- turns


def turn(body: Mapping[str, Any]) -> Body:
    """`run`: the context of the run, as the host gives it to hooks. `slots`: from its config."""
    run = _as_mapping(body.get("run"))
    prompt = _as_text(run.get("prompt")) or _as_text(body.get("message"))
    fields = {name: value for name, value in body.items() if name not in ("host", "run", "slots")}
    message = {"message": _extract_task(_as_text(body["message"]))} if body.get("message") else {}
    slots = {"holds_slot": True} if _as_mapping(body.get("slots")).get("memory") == _PLUGIN_ID else {}
    sender = _read_sender(run)
    # Without a session key and a sender it is not the owner's command line, which has a session key.
    session = {} if "session_key" in fields or sender else {"session_key": ""}
    return {
        **fields,
        **session,
        **message,
        **sender,
        **slots,
        "trigger": _find_trigger(run, prompt),
        "keeps_text": False,
    }


def bootstrap_entries(session_key: str, files: Sequence[Mapping[str, Any]]) -> list[Body]:
    """The files for bootstrap mode, under names that the host accepts."""
    allowed = _ALLOWED_NAMES.get(_strip_agent(session_key).partition(":")[0])
    if allowed is None:
        return [dict(file) for file in files]
    return [dict(file) if file.get("name") in allowed else {**file, "name": "AGENTS.md"} for file in files]


def _read_sender(run: Mapping[str, Any]) -> Body:
    """The sender, if the host names one."""
    sender = _qualify_sender(run.get("senderId"), _as_text(run.get("channel")) or run.get("messageProvider"))
    return {"sender": sender} if sender else {}


def _qualify_sender(identity: object, channel: object) -> str:
    """Adds the channel: an id alone may belong to another person on another channel, and a prefix that
    looks like another channel may be part of a name that a person chose. Empty: the host does not say."""
    if identity is None or identity == "":
        return ""
    is_number = isinstance(identity, int) and not isinstance(identity, bool)
    sender_id, channel_name = str(identity) if is_number else _as_text(identity), _as_text(channel).strip()
    if not sender_id:  # there is a sender, but in an unknown form
        return _STRANGER
    if channel_name:
        return (
            sender_id
            if sender_id.lower().startswith(f"{channel_name.lower()}:")
            else f"{channel_name}:{sender_id}"
        )
    return f"{_UNKNOWN_CHANNEL}:{sender_id}" if split_channel(sender_id)[0] else sender_id


def _find_trigger(run: Mapping[str, Any], prompt: str) -> str:
    trigger = _as_text(run.get("trigger"))
    if trigger == "cron" and prompt and not prompt.lstrip().startswith(_JOB_PREFIX):
        return "webhook"
    return trigger


def _extract_task(prompt: str) -> str:
    """The request itself, without what the host writes around the task of a job or a subagent."""
    if match := _SUBAGENT.search(prompt):
        return match[1]
    if match := _SCHEDULED.match(prompt):
        return match[1]
    return prompt


def _strip_agent(session_key: str) -> str:
    """The part of the key after the agent."""
    return session_key.split(":", 2)[2] if session_key.count(":") > 1 else session_key


# ---------------------------------------------------------------- what is kept


def event(body: Mapping[str, Any]) -> list[OperationCall]:
    """`name`: the name of the hook, or message; `record`: what the hook received."""
    record, key = _as_mapping(body.get("record")), _as_text(body.get("session_key"))
    about = {name: body[name] for name in ("session_key", "agent") if body.get(name)}
    match body.get("name"):
        case "message":
            return list(
                _convert_message(
                    about, record, _as_mapping(body.get("run")), _as_mapping(body.get("arguments"))
                )
            )
        case "session_end" if _as_text(record.get("reason")) in _END_REASONS:
            return [OperationCall("end_session", about)]
        case "agent_end" if _strip_agent(key).startswith("cron:") and ":run:" in key:
            return [OperationCall("end_session", about)]  # a job's run is a session of its own and ends here
        case "subagent_ended":
            return [OperationCall("end_session", about)]
        case "after_compaction":
            return [OperationCall("renew", about)]
    return []


def _convert_message(
    about: Body, record: Mapping[str, Any], run: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Iterator[OperationCall]:
    text = _extract_text(record.get("content"))
    fields = {**about, **_find_channel(record, run), "at": _format_time(record.get("timestamp"))}
    match record.get("role"):
        case "user" if text:
            person = _find_speaker(about, record)
            yield OperationCall(
                "message", {**fields, **person, "text": text, "id": _record_id(about, record)}
            )
        case "assistant" if text:
            answer = {"role": "agent", "text": text, "id": _record_id(about, record)}
            yield OperationCall("message", {**fields, **answer, "model": _as_text(record.get("model"))})
        case "toolResult":
            name = _as_text(record.get("toolName")) or "tool"
            result = ("error: " if record.get("isError") is True else "") + text
            if name.startswith(_OWN_TOOL_PREFIX):
                result = "(from memory)"  # a lookup is no news
            call = {"name": name, "summary": summarize_arguments(arguments), "result": result}
            yield OperationCall("tool", {**fields, **call, "id": _record_id(about, record)})


def _find_speaker(about: Body, record: Mapping[str, Any]) -> Body:
    """Who said it: a person, or the host itself in a user's place."""
    meta = _as_mapping(record.get("__openclaw"))
    sender = _qualify_sender(meta.get("senderId"), _as_mapping(meta.get("transport")).get("channel"))
    if sender:
        return {"role": "user", "sender": sender, "speaker": _as_text(meta.get("senderName"))}
    if meta.get("senderIsOwner") is True:
        return {"role": "user"}
    return {"role": "system", "speaker": _find_author(about, record)}


def _find_author(about: Body, record: Mapping[str, Any]) -> str:
    source = _as_text(_as_mapping(record.get("provenance")).get("sourceTool"))
    return source or _strip_agent(_as_text(about.get("session_key"))).partition(":")[0] or "host"


def _find_channel(record: Mapping[str, Any], run: Mapping[str, Any]) -> Body:
    transport = _as_mapping(_as_mapping(record.get("__openclaw")).get("transport"))
    channel = _as_text(transport.get("channel") or run.get("channel"))
    return {"channel": channel} if channel else {}


def _record_id(about: Body, record: Mapping[str, Any]) -> str:
    """The same id for the same record, however often the host reports it."""
    native_id = record.get("idempotencyKey") or record.get("toolCallId") or record.get("responseId") or ""
    parts = (about.get("session_key"), record.get("role"), native_id, record.get("timestamp"),
             "" if native_id else _extract_text(record.get("content")))  # fmt: skip
    return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _extract_text(content: object) -> str:
    """The words of a message; pictures and files only by type. Reasoning is left out, and a tool call is
    stored with its result."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(filter(None, (_render_part(part) for part in content)))


def _render_part(part: object) -> str:
    if not isinstance(part, Mapping):
        return ""
    if part.get("type") == "text":
        return _as_text(part.get("text"))
    if part.get("type") in ("thinking", "toolCall", None):
        return ""
    return f"[{part.get('type')}]"


def _format_time(milliseconds: object) -> str:
    if isinstance(milliseconds, int | float) and 0 < milliseconds < 4e12:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    return ""


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else ""

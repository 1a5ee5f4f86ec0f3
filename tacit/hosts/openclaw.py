"""OpenClaw's records in our words, as 2026.9 writes them.

What was seen on the real host and is relied on here:
- a user's message is written twice with the same key and timestamp, once when it comes in and once when its
  run begins; a record's id is made of both, so that it is kept once;
- who wrote stands in `__openclaw.senderId`, on a channel; the owner's own command line has `senderIsOwner`
  and no sender. A user's message with neither was made by the host: a heartbeat, a job, a subagent's task;
- a webhook's run has the key of a job, and only its prompt tells it from one;
- what a hook puts around the user's text is for this run alone: the next one has the plain words;
- of what a hook lists, a job's session takes four names and a subagent's one. AGENTS.md is among them, under
  any path, so what else a rule names goes by that name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

Body = dict[str, Any]

# Names that survive the hook, by the first word of the session key behind the agent.
_SURVIVES = {
    "cron": frozenset(("AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md")),
    "subagent": frozenset(("AGENTS.md",)),
}
_JOB = "[cron:"  # how the prompt of a job begins
_SCHEDULED = re.compile(r"\s*\[cron:[^\]\n]*\] (.*?)\n(?:Current time:|\Z)", re.DOTALL)
_SUBAGENT = re.compile(r"\[Subagent Task\]\s+(.*?)(?:\n\nBegin\. Execute|\Z)", re.DOTALL)
_ID = "tacit"  # of our plugin
_OURS = "tacit_"  # how the names of our own tools begin
_ENDS = frozenset(("new", "reset", "idle", "daily", "deleted"))  # of session_end; a shutdown ends nothing
_SUMMARY = 400  # characters of a tool's arguments


class Asked(NamedTuple):
    """An operation of tacit.api and its body."""

    operation: str
    body: Body


# ---------------------------------------------------------------- turns


def turn(body: Mapping[str, Any]) -> Body:
    """`run`: the context of the run, as the host gives it to hooks. `slots`: of its config."""
    run = _object(body.get("run"))
    prompt = _text(run.get("prompt")) or _text(body.get("message"))
    made = {name: value for name, value in body.items() if name not in ("host", "run", "slots")}
    asked = {"message": _task(_text(body["message"]))} if body.get("message") else {}
    slot = {"holds_slot": True} if _object(body.get("slots")).get("memory") == _ID else {}
    return {**made, **asked, **_who(run), **slot, "trigger": _trigger(run, prompt), "keeps_text": False}


bootstrap = turn  # the same fields, and `files` and `workspace` as they are


def listed(session_key: str, files: Sequence[Mapping[str, Any]]) -> list[Body]:
    """Files of the bootstrap lane, under names that the host lets through."""
    survives = _SURVIVES.get(_rest(session_key).partition(":")[0])
    if survives is None:
        return [dict(one) for one in files]
    return [dict(one) if one.get("name") in survives else {**one, "name": "AGENTS.md"} for one in files]


def _who(run: Mapping[str, Any]) -> Body:
    """Who wrote, where the host says so."""
    sender = _sender(run.get("senderId"), run.get("channel") or run.get("messageProvider"))
    return {"sender": sender} if sender else {}


def _sender(identity: object, channel: object) -> str:
    """With the channel: an id alone may be somebody else's elsewhere. Empty: the host does not say."""
    who, where = _text(identity), _text(channel)
    return f"{where}:{who}" if who and where and ":" not in who else who


def _trigger(run: Mapping[str, Any], prompt: str) -> str:
    said = _text(run.get("trigger"))
    if said == "cron" and prompt and not prompt.lstrip().startswith(_JOB):
        return "webhook"
    return said


def _task(prompt: str) -> str:
    """What is asked, without what the host says around the task of a job or of a subagent."""
    if found := _SUBAGENT.search(prompt):
        return found[1]
    if found := _SCHEDULED.match(prompt):
        return found[1]
    return prompt


def _rest(session_key: str) -> str:
    """What stands behind the agent."""
    return session_key.split(":", 2)[2] if session_key.count(":") > 1 else session_key


# ---------------------------------------------------------------- what is kept


def event(body: Mapping[str, Any]) -> list[Asked]:
    """`name`: that of the hook, or message; `record`: what the hook was given."""
    record, key = _object(body.get("record")), _text(body.get("session_key"))
    about = {name: body[name] for name in ("session_key", "agent") if body.get(name)}
    match body.get("name"):
        case "message":
            return list(_kept(about, record, _object(body.get("run")), _object(body.get("arguments"))))
        case "session_end" if _text(record.get("reason")) in _ENDS:
            return [Asked("end_session", about)]
        case "agent_end" if _rest(key).startswith("cron:") and ":run:" in key:
            return [
                Asked("end_session", about)
            ]  # a job's run is a session of its own, and this was all of it
        case "subagent_ended":
            return [Asked("end_session", about)]
        case "after_compaction":
            return [Asked("renew", about)]
    return []


def _kept(
    about: Body, record: Mapping[str, Any], run: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Iterator[Asked]:
    text = _said(record.get("content"))
    made = {**about, **_channel(record, run), "at": _moment(record.get("timestamp"))}
    match record.get("role"):
        case "user" if text:
            person = _person(about, record)
            yield Asked("message", {**made, **person, "text": text, "id": _id(about, record)})
        case "assistant" if text:
            yield Asked("message", {**made, "role": "agent", "text": text, "id": _id(about, record),
                                    "model": _text(record.get("model"))})  # fmt: skip
        case "toolResult":
            name = _text(record.get("toolName")) or "tool"
            shown = ("error: " if record.get("isError") is True else "") + text
            if name.startswith(_OURS):
                shown = "(from memory)"  # what was looked up is no news, and would be found again as such
            yield Asked("tool", {**made, "name": name, "summary": _summary(arguments), "result": shown,
                                 "id": _id(about, record)})  # fmt: skip


def _person(about: Body, record: Mapping[str, Any]) -> Body:
    """Who said it: a person, or the host itself in a user's place."""
    meta = _object(record.get("__openclaw"))
    sender = _sender(meta.get("senderId"), _object(meta.get("transport")).get("channel"))
    if sender:
        return {"role": "user", "sender": sender, "speaker": _text(meta.get("senderName"))}
    if meta.get("senderIsOwner") is True:
        return {"role": "user"}
    return {"role": "system", "speaker": _made_by(about, record)}


def _made_by(about: Body, record: Mapping[str, Any]) -> str:
    source = _text(_object(record.get("provenance")).get("sourceTool"))
    return source or _rest(_text(about.get("session_key"))).partition(":")[0] or "host"


def _channel(record: Mapping[str, Any], run: Mapping[str, Any]) -> Body:
    transport = _object(_object(record.get("__openclaw")).get("transport"))
    channel = _text(transport.get("channel") or run.get("channel"))
    return {"channel": channel} if channel else {}


def _id(about: Body, record: Mapping[str, Any]) -> str:
    """The same for the same record, however often the host tells it."""
    named = record.get("idempotencyKey") or record.get("toolCallId") or record.get("responseId") or ""
    parts = (about.get("session_key"), record.get("role"), named, record.get("timestamp"),
             "" if named else _said(record.get("content")))  # fmt: skip
    return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _said(content: object) -> str:
    """The words of a message; of pictures and files only that there were some. Reasoning is no part of the
    record, and a call of a tool is kept with its result."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(filter(None, (_part(part) for part in content)))


def _part(part: object) -> str:
    if not isinstance(part, Mapping):
        return ""
    if part.get("type") == "text":
        return _text(part.get("text"))
    if part.get("type") in ("thinking", "toolCall", None):
        return ""
    return f"[{part.get('type')}]"


def _summary(arguments: Mapping[str, Any]) -> str:
    """What a tool was asked, on one line."""
    shown = " ".join(
        f"{name}={value if isinstance(value, str) else repr(value)}" for name, value in arguments.items()
    )
    flat = " ".join(shown.split())
    return flat if len(flat) <= _SUMMARY else flat[: _SUMMARY - 1] + "…"


def _moment(milliseconds: object) -> str:
    if isinstance(milliseconds, int | float) and 0 < milliseconds < 4e12:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    return ""


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

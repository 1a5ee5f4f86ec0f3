"""The fields of an event under the names that hosts use for them, and the text in them and in tool calls.

The relay loads this before every turn of a host, so nothing is imported. A value that cannot be read must not
count as missing, because missing values are trusted: a request without a session key is the owner's.
"""

TYPE_CHECKING = False  # as in typing, which would cost more than the rest of this module
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Names that hosts use for our fields. The first with a value counts, and only if our own field has none.
ALIASES = {
    "prompt": "message",
    "sessionKey": "session_key",
    "sessionId": "session_id",
    "agentId": "agent",
    "senderId": "sender",
    "from": "sender",
}
_UNKNOWN_SENDER = "*"  # a sender that is never the owner
_UNKNOWN_CHANNEL = "?"  # for a channel that cannot be read; the owner is never on it
# The fields that may hold the text of a plain event; the first with a value counts.
TEXT_FIELDS = {
    "turn": ("message", "prompt", "text", "content"),
    "message": ("text", "prompt", "message", "content"),
}
_TEXT_TYPES = frozenset((None, "text", "input_text", "output_text"))
_FILE_TYPES = frozenset(("image", "input_image", "image_url", "document", "file", "input_file", "audio"))
_REASONING_TYPES = frozenset(("thinking", "redacted_thinking", "reasoning"))
_MAX_SUMMARY_CHARS = 400  # of a tool's arguments


class NotUnderstood(Exception):
    """The event has an unknown shape. Its content must not be lost."""


def normalize_fields(body: "Mapping[str, Any]") -> "dict[str, Any]":
    """The fields of an event under the names that operations use.

    A value that cannot be read must not count as missing, since missing values are trusted: a key that is not
    text becomes an unknown session, and a sender that is neither text nor number an unknown sender."""
    fields = dict(body)
    for alias, name in ALIASES.items():
        if (value := _read_alias(body, alias)) and fields.get(name) in (None, ""):
            fields[name] = value
    if fields.get("sender") not in (None, ""):
        fields["sender"] = _qualify_sender(fields["sender"], body.get("channel"))
    if "session_key" in fields or "sessionKey" in fields:
        fields["session_key"] = fields["session_key"] if isinstance(fields.get("session_key"), str) else ""
    return fields


def _read_alias(body: "Mapping[str, Any]", alias: str) -> str:
    value, name = body.get(alias), ALIASES[alias]
    if name == "sender" and value is not None:
        return _qualify_sender(value, body.get("channel"))
    if isinstance(value, int) and not isinstance(value, bool) and name != "session_key":
        value = str(value)
    return value if isinstance(value, str) else ""


def _qualify_sender(value: object, channel: object) -> str:
    """The sender with the channel in front, if the host names one: an id alone may belong to someone else on
    another channel, and an id with another channel in front may be a name that a person chose."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return _UNKNOWN_SENDER
    if not value or value == _UNKNOWN_SENDER or channel is None or channel == "":
        return value
    if not isinstance(channel, str):
        channel = _UNKNOWN_CHANNEL
    return value if value.lower().startswith(f"{channel.lower()}:") else f"{channel}:{value}"


def find_text(event: "Mapping[str, Any]", *names: str) -> str | None:
    """The text of an event: the first of these fields that is not blank. None if all are missing or null;
    NotUnderstood if a value is not text."""
    text = None
    for name in names:
        if event.get(name) is not None:
            text = as_text(event[name], name)
            if text.strip():
                return text
    return text


def as_text(value: object, name: str) -> str:
    """The text of a string, a number or a list of content parts; pictures and files become a placeholder."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list):
        parts = [_part_text(part, name) for part in value]
        return "\n".join(part for part in parts if part)
    raise NotUnderstood(f"{name!r} is neither text nor a list of its parts")


def _part_text(part: object, name: str) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and "role" not in part:  # a message of a history may be from anyone
        kind = part.get("type")
        if kind is not None and not isinstance(kind, str):
            kind = "?"
        if kind in _TEXT_TYPES and isinstance(part.get("text"), str):
            return str(part["text"])
        if kind in _FILE_TYPES:
            return f"[{kind}]"
        if kind in _REASONING_TYPES:
            return ""
    raise NotUnderstood(f"{name!r} has a part that is not known")


def summarize_arguments(arguments: "Mapping[str, Any]") -> str:
    """The arguments of a tool call on one line."""
    text = " ".join(
        f"{name}={value if isinstance(value, str) else repr(value)}" for name, value in arguments.items()
    )
    flat = " ".join(text.split())
    return flat if len(flat) <= _MAX_SUMMARY_CHARS else flat[: _MAX_SUMMARY_CHARS - 1] + "…"

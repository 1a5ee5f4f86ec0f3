"""Hook events of Claude Code, Codex and similar hosts: the session of an event and its operation.

The relay loads this before every turn of a host, so it imports almost nothing. The daemon handles the
events, in `events.py`.

What must stay true:
- an event whose session or text cannot be read is not understood. It is never treated as one without them: it
  would become an empty turn, or end up in another session's transcript;
- every session of a host has a session key of its own, since events of other hosts may come without an id and
  join the session that is open under their key.
"""

from tacit.hosts.fields import NotUnderstood

TYPE_CHECKING = False  # as in typing, which would cost more than the rest of this module
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

HOST_NAME = "hooks"  # the name of such hosts in a request
NOTIFY_EVENT = (
    "agent-turn-complete"  # Codex's `notify`: a whole turn, as the last argument of the command line
)
# The operations that each event can be sent to. All events can be sent to `event`.
OPERATIONS_BY_EVENT = {
    "UserPromptSubmit": ("turn", "message"),
    "Stop": ("message",),
    "SubagentStop": ("message", "session-end"),
    "PostToolUse": ("tool",),
    "PostToolUseFailure": ("tool",),
    "PostToolBatch": ("tool",),
    "SessionEnd": ("session-end",),
    "SessionStart": (),  # after a compaction, injected text may be injected again
    "PostCompact": (),
    NOTIFY_EVENT: ("message",),
}
# Events of Claude Code or Codex without text of the conversation, or with text that another event holds too.
IGNORED_EVENTS = frozenset((
    "PreToolUse", "Notification", "UserPromptExpansion", "StopFailure", "SubagentStart", "PreCompact",
    "PreModelSwitch", "PostModelSwitch", "PermissionRequest", "PermissionDenied", "Setup", "TeammateIdle",
    "TaskCreated", "TaskCompleted", "Elicitation", "ElicitationResult", "ConfigChange", "WorktreeCreate",
    "WorktreeRemove", "InstructionsLoaded", "CwdChanged", "FileChanged", "DirectoryAdded", "MessageDisplay",
    "PreModelRequest", "PostModelRequest", "Interrupt",
))  # fmt: skip
# Claude Code passes the output of hooks for these to its summariser, and shows it to the model later.
SILENT_EVENTS = frozenset(("PreCompact", "PostCompact", NOTIFY_EVENT))
# The fields that hold the text of an event.
_TEXT_FIELDS = {
    "UserPromptSubmit": ("prompt",),
    "Stop": ("last_assistant_message",),
    "SubagentStop": ("last_assistant_message",),
    "PostToolUse": ("tool_response", "error"),
    "PostToolUseFailure": ("tool_response", "error"),
    NOTIFY_EVENT: ("last-assistant-message",),
}
# The other fields of such events, and those that the relay's caller may add. None of them holds a message.
_OTHER_FIELDS = frozenset((
    "hook_event_name", "session_id", "transcript_path", "cwd", "prompt_id", "turn_id", "permission_mode",
    "effort", "model", "session_title", "source", "agent_id", "agent_type", "agent_transcript_path",
    "stop_hook_active", "background_tasks", "session_crons", "tool_name", "tool_input", "tool_use_id",
    "duration_ms", "is_interrupt", "type", "thread-id", "turn-id", "client", "input-messages", "session_key",
    "agent", "channel", "sender", "trigger", "id", "at", "host", "operation", "lane", "history", "budget",
    "keeps_text", "deadline_ms", "full", "paths", "event", "wake", "tool",
))  # fmt: skip
_SESSION_PREFIX, _SUBAGENT_PREFIX = "agent:main:main:session:", "agent:main:subagent:"
_HOST_PROMPT_PREFIX = "<task-notification>"  # the start of a prompt that the host itself wrote
_MAX_ID_CHARS = 128


def is_hook(event: "Mapping[str, Any]") -> bool:
    return "hook_event_name" in event or (event.get("type") == NOTIFY_EVENT and "thread-id" in event)


def read_event_name(event: "Mapping[str, Any]") -> str:
    """The name of a hook event; NotUnderstood if it is unknown."""
    name = event.get("hook_event_name", NOTIFY_EVENT)
    if not isinstance(name, str) or not (name in OPERATIONS_BY_EVENT or name in IGNORED_EVENTS):
        raise NotUnderstood(f"{str(name)[:40]!r} is an event of a host that is not known")
    return name


def read_session(event: "Mapping[str, Any]") -> tuple[str, str]:
    """The session key of an event and the id of its session. A subagent's session is not its parent's."""
    key, is_subagent = event.get("session_key"), event.get("agent_id") not in (None, "")
    prefix = _SUBAGENT_PREFIX if is_subagent else _SESSION_PREFIX
    if isinstance(key, str) and key.startswith(prefix):
        return key, key.removeprefix(prefix)  # already normalized, perhaps by the relay
    session = _read_id(event, "session_id" if "hook_event_name" in event else "thread-id")
    if is_subagent:
        session = f"{session}-{_read_id(event, 'agent_id')}"
        return prefix + session, session
    return (key if isinstance(key, str) and key else prefix + session), session


def _read_id(event: "Mapping[str, Any]", name: str) -> str:
    value = event.get(name)
    text = value if isinstance(value, str) and value.isascii() and len(value) <= _MAX_ID_CHARS else ""
    if text.replace("-", "").replace("_", "").isalnum():
        return text
    raise NotUnderstood(f"{name!r} names no session that can be read")


def is_host_prompt(prompt: str) -> bool:
    """Whether the host wrote a prompt itself, such as a notice that a background task ended."""
    return prompt.lstrip().startswith(_HOST_PROMPT_PREFIX)


def require_known_words(event: "Mapping[str, Any]", name: str) -> None:
    """Raise NotUnderstood for an event without text but with an unknown field: its text is likely to be
    there, and would be lost unnoticed."""
    text_fields = _TEXT_FIELDS.get(name)
    if text_fields is None or not all(_is_empty(event.get(text_field)) for text_field in text_fields):
        return
    for field, value in event.items():
        is_known = field in _OTHER_FIELDS or field in text_fields
        if not is_known and isinstance(value, (str, list, dict)) and not _is_empty(value):
            raise NotUnderstood(f"{text_fields[0]!r} holds nothing, and {field[:40]!r} is not known")


def _is_empty(value: object) -> bool:
    return not (value.strip() if isinstance(value, str) else value not in (None, [], {}))

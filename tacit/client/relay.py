"""Forwards one event of a host to the daemon; tacit/relay.py runs it.

What must stay true:
- even if the daemon, the input or the disk fails: one JSON object, exit code 0, within the deadline;
- a host's hook is answered in the fields that the host reads, or not at all;
- an event that is not understood goes into the spool, where the daemon sets it aside; it is never forwarded
  as an empty one;
- a failed turn adds no context and says why in `reason`, and the session's ETHOS_CONTEXT.md is emptied;
- an event that the daemon did not acknowledge is spooled, by a child process that outlives the deadline;
- starting costs little more than starting Python: besides four small modules of ours, only built-in modules
  are imported. `signal` and `json` alone would double the time.
"""

import os
import time
from _json import encode_basestring_ascii, make_scanner

from tacit.daemon_socket import Unreachable, send_request, socket_path
from tacit.hosts.fields import ALIASES, TEXT_FIELDS, NotUnderstood, find_text, normalize_fields
from tacit.hosts.hooks import hook_events

TYPE_CHECKING = False  # as in typing, which would cost more than the rest of this module
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, NoReturn, TypeAlias

    Spool: TypeAlias = Callable[[str, str, Mapping[str, Any]], object]  # home, operation, body
else:
    import _signal as signal

_DEFAULT_DEADLINE_MS = 250
_MAX_EVENT_BYTES = 32_000_000  # for an event
_MAX_REQUEST_BYTES = 4_000_000  # for an event that is sent to the daemon, as every turn is
_MAX_ANSWER_BYTES = 1_000_000
_GRACE_S = 0.02  # seconds reserved for printing the result
_DEFAULT_KEY = "agent:main:main"
# The fields of a turn without text. If there is another field, the text is likely to be in it.
_TURN_FIELDS = frozenset((
    "session_key", "lane", "history", "budget", "sender", "trigger", "tool", "paths", "event", "wake",
    "agent", "session_id", "keeps_text", "deadline_ms", "full", "channel", "id", "at", *ALIASES,
    *TEXT_FIELDS["turn"],
))  # fmt: skip
_MAX_NAMED_FIELDS = 12  # fields listed in the error for an event that is not understood
# By the name on the command line: the operation and its path, as in tacit.operations.catalog.
_OPERATIONS = {
    "turn": ("turn", "/v1/turn"),
    "message": ("message", "/v1/message"),
    "tool": ("tool", "/v1/tool"),
    "session-end": ("end_session", "/v1/session/end"),
    "event": ("event", "/v1/event"),
}
_USAGE = "use: tacit-relay turn|message|tool|session-end|event [--home DIR] [--deadline-ms N]"


class RelayRun:
    """The state of one run. It is mutable, because the alarm may fire at any line and needs all of it."""

    def __init__(self, spool: "Spool") -> None:
        self.spool = spool
        self.until = time.monotonic() + _DEFAULT_DEADLINE_MS / 1000
        self.operation = ""
        self.home = ""
        self.raw = bytearray()  # the bytes of the event read so far
        self.event: dict[str, Any] = {}  # as the host sent it
        self.unread = ""  # why it is not understood, if so
        self.hook: str | None = None  # the name of the event if it is a hook event
        self.body: dict[str, Any] = {}  # the event with our field names
        self.added: dict[str, Any] = {}  # the fields of `body` that the event as sent lacks
        self.activity = "starting"
        self.is_spooling = False
        self.is_answered = False

    @property
    def sent_as(self) -> str:
        """The operation to call. Hook events other than turns are interpreted by the daemon."""
        return "event" if self.hook is not None and self.operation != "turn" else self.operation

    def seconds_left(self) -> float:
        return max(0.001, self.until - time.monotonic())


class InvalidEvent(Exception):
    """The event or the command line makes no sense."""


# ---------------------------------------------------------------- output


def _print_and_exit(run: RelayRun, answer: "Mapping[str, object]") -> "NoReturn":
    """Print the answer, once, and end the process."""
    try:
        if not run.is_answered:
            # A host that reads slowly gets the whole answer; one that never reads cannot keep us running. An
            # alarm before this line prints its own answer; after the next line it only ends the process.
            signal.setitimer(signal.ITIMER_REAL, 1.0)
            run.is_answered = True
            if shaped := _shape_for_hook(run, answer):
                _write_all(_encode(shaped))
    finally:
        os._exit(0)


def _shape_for_hook(run: RelayRun, answer: "Mapping[str, object]") -> "Mapping[str, object]":
    """For a hook, the fields that its host reads: some hosts refuse an answer with other fields."""
    name = run.hook
    if name is None and not run.event and b'"hook_event_name"' in run.raw:
        name = ""  # too long or cut off
    if name is None:
        return answer
    if name in hook_events.SILENT_EVENTS:
        return {}
    if "additionalContext" in answer:
        output = {"hookEventName": name, "additionalContext": answer["additionalContext"]}
        return {"hookSpecificOutput": output}
    return {"systemMessage": answer["reason"]} if "reason" in answer else {}


def _encode(answer: "Mapping[str, object]") -> bytes:
    return (_encode_value(answer) + "\n").encode("ascii")


def _encode_value(value: object) -> str:
    if isinstance(value, dict):
        pairs = [f"{encode_basestring_ascii(name)}: {_encode_value(inner)}" for name, inner in value.items()]
        return "{" + ", ".join(pairs) + "}"
    return "true" if value is True else encode_basestring_ascii(str(value))


def _write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def _fail(run: RelayRun, reason: str) -> "NoReturn":
    """Print why it failed; the host goes on without us."""
    try:
        if run.operation == "turn" and not run.is_answered:
            _empty_mirror(run)
    finally:
        _print_and_exit(run, {"continue": True, "reason": f"tacit: {reason}"})


def _empty_mirror(run: RelayRun) -> None:
    """Empty the context file: it holds the context of an earlier turn."""
    folders = [f"{run.home}/.tacit/context"]
    try:
        with open(f"{run.home}/.tacit/context-folder", encoding="utf-8") as file:
            folders.append(file.read().rstrip("\n"))
    except (OSError, ValueError):
        pass  # the copies are in the default folder
    for folder in filter(os.path.isdir, folders):
        # The session of an unreadable event is unknown, so all sessions' files are emptied.
        names = [_mirror_folder(run.body)] if run.body else os.listdir(folder)
        for name in names:
            if len(name) == 16:  # our folder names have 16 characters; there may be others
                _truncate(f"{folder}/{name}/ETHOS_CONTEXT.md")


def _mirror_folder(body: "Mapping[str, Any]") -> str:
    from hashlib import sha256

    key, agent = body.get("session_key", _DEFAULT_KEY), body.get("agent")
    if key == _DEFAULT_KEY and isinstance(agent, str) and agent:
        key = f"agent:{agent}:main"  # as tacit.sessions.keys reads it
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _truncate(path: str) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    os.ftruncate(fd, 0)
    os.close(fd)


# ---------------------------------------------------------------- input


def _read_arguments(run: RelayRun, argv: "Sequence[str]") -> None:
    words = list(argv)
    named: dict[str, str] = {}
    while words:
        word = words.pop(0)
        name, _, value = word.partition("=")
        if name in ("--home", "--deadline-ms"):
            named[name] = value or (words.pop(0) if words else "")
        elif word in _OPERATIONS and not run.operation:
            run.operation = word
        elif word.startswith("{") and not run.raw:  # some hosts add the event to the command
            run.raw += os.fsencode(word)
        else:
            raise InvalidEvent(f"{word[:40]!r} is not understood; {_USAGE}")
    if "--deadline-ms" in named:
        _read_deadline(run, named["--deadline-ms"])
    home = named.get("--home") or os.environ.get("TACIT_HOME") or "~/tacit"
    run.home = os.path.abspath(os.path.expanduser(home))
    if not run.operation:
        raise InvalidEvent(_USAGE)


def _read_deadline(run: RelayRun, text: str) -> None:
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:9]) <= 600_000):
        raise InvalidEvent(f"{text[:40]!r} is no number of milliseconds; {_USAGE}")
    run.until += (int(text) - _DEFAULT_DEADLINE_MS) / 1000


def _read_event(run: RelayRun) -> None:
    """Read the event into `run.event`. A host need not close our standard input."""
    # Only an event that may be spooled must be read to its end.
    max_bytes = _MAX_REQUEST_BYTES if run.operation == "turn" else _MAX_EVENT_BYTES
    data, is_given = run.raw, bool(run.raw)
    while not is_given and (piece := os.read(0, 1 << 20)):
        data += piece
        if len(data) > max_bytes:
            raise InvalidEvent(f"the event has more than {max_bytes} bytes")
        is_last = piece.rstrip()[-1:] == b"}" and len(piece) < 65536
        if is_last and (event := _parse_object(data)) is not None:
            run.event = event
            return
    event = _parse_object(data)
    if event is None and not data.strip():
        raise InvalidEvent("standard input is empty; a JSON object is expected there")
    if event is None:
        raise NotUnderstood("what is on standard input is not one JSON object")
    run.event = event


def _normalize_event(run: RelayRun) -> None:
    """Fill `run.body`: the event with our field names, its session and its text."""
    event = run.event
    if hook_events.is_hook(event):
        run.hook = str(event.get("hook_event_name", hook_events.NOTIFY_EVENT))[:80]
        fields = _normalize_hook(run)
    else:
        fields = run.body = normalize_fields(event)
        if run.operation in TEXT_FIELDS and "host" not in event:
            fields |= _text_field(run)
    run.added = {name: value for name, value in fields.items() if event.get(name) is not value}
    run.body = fields


def _normalize_hook(run: RelayRun) -> "dict[str, Any]":
    event = run.event
    name = hook_events.read_event_name(event)
    key, session = hook_events.read_session(event)
    fields = {**event, "session_key": key, "session_id": session}
    run.body = fields  # whose context file is emptied if the rest makes no sense
    if run.operation != "event" and run.operation not in hook_events.OPERATIONS_BY_EVENT.get(name, ()):
        use = " or ".join(
            f"`tacit-relay {fitting}`"
            for fitting in (*hook_events.OPERATIONS_BY_EVENT.get(name, ()), "event")
        )
        raise InvalidEvent(f"{name} is not for `tacit-relay {run.operation}`. Use {use} for it")
    prompt = find_text(event, "prompt") if name == "UserPromptSubmit" else ""
    if prompt is None:
        raise NotUnderstood("'prompt' is missing")
    hook_events.require_known_words(event, name)
    if name == "UserPromptSubmit":
        fields["prompt"] = prompt
    if run.operation != "turn":
        return {**fields, "host": hook_events.HOST_NAME, "operation": run.operation}
    if hook_events.is_host_prompt(prompt):
        _print_and_exit(run, {"continue": True})  # not a question of the user
    return {**fields, "message": prompt}


def _text_field(run: RelayRun) -> "dict[str, Any]":
    event, names = run.event, TEXT_FIELDS[run.operation]
    text = find_text(event, *names)
    if text is not None:
        return {names[0]: text}
    if run.operation == "turn" and event.keys() <= _TURN_FIELDS and not any(name in event for name in names):
        return {}
    fields = ", ".join(sorted(str(name)[:40] for name in event)[:_MAX_NAMED_FIELDS])
    raise NotUnderstood(f"its text is in none of {', '.join(names)}. It has the fields: {fields or 'none'}")


def _parse_object(data: bytes | bytearray) -> "dict[str, Any] | None":
    text = _decode(data)
    try:
        value, end = _scan_json(text, 0)
    except (ValueError, StopIteration, RecursionError, SystemError):
        return None  # SystemError: the scanner raises an exception of `json`, which is not imported
    return value if end == len(text) and isinstance(value, dict) else None


def _decode(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "replace").strip().removeprefix("\ufeff").strip()


class _JsonSettings:
    """The settings of `json.loads`, without the regular expressions that `json` imports."""

    strict = False
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


_scan_json: "Any" = make_scanner(_JsonSettings)  # type: ignore[arg-type]


# ---------------------------------------------------------------- the request


def _encode_request(run: RelayRun) -> bytes:
    """The event with the missing fields appended to its text, which is cheaper than encoding it again. If a
    name is there twice, the last one counts."""
    added = run.added
    if run.operation == "turn" and "lane" not in run.body:
        added["lane"] = "runtime"
    elif run.operation != "turn" and not run.body.get("id"):
        # So that the daemon recognizes the event if it comes from the spool too.
        run.body["id"] = os.urandom(8).hex()
        added["id"] = run.body["id"]
    parts = [
        f"{encode_basestring_ascii(name)}:{encode_basestring_ascii(value)}" for name, value in added.items()
    ]
    if run.operation == "turn" and "deadline_ms" not in run.body:
        parts.append(f'"deadline_ms":{max(1, int((run.seconds_left() - 2 * _GRACE_S) * 1000))}')
    if len(run.raw) > _MAX_REQUEST_BYTES:  # check before copying, which takes long for a large event
        raise Unreachable("garbage", f"the event has more than {_MAX_REQUEST_BYTES} bytes")
    content = _decode(run.raw)[1:-1].strip()
    return ("{" + ",".join([content, *parts] if content else parts) + "}").encode("utf-8", "replace")


def _ask_daemon(run: RelayRun, request: bytes, seconds: float) -> "dict[str, Any]":
    """The daemon's answer, or Unreachable."""
    path = os.environ.get("TACIT_SOCKET") or socket_path(run.home)
    _, target = _OPERATIONS[run.sent_as]
    status, data = send_request(path, "POST", target, request, seconds, _MAX_ANSWER_BYTES)
    if status == 503:
        raise Unreachable("late", "the daemon is busy")
    if status != 200:
        raise Unreachable("garbage", f"the daemon answered {status}")
    answer = _parse_object(data)
    if answer is None:
        raise Unreachable("garbage", "the daemon's answer is no JSON object")
    return answer


def _run_turn(run: RelayRun) -> "NoReturn":
    run.activity = "waiting for the daemon"
    answer = _ask_daemon(run, _encode_request(run), run.seconds_left() - _GRACE_S)
    text = answer.get("text")
    if not isinstance(text, str):
        raise Unreachable("garbage", "the daemon's answer has no text")
    if text:
        _print_and_exit(run, {"continue": True, "additionalContext": text})
    if answer.get("skipped") == "deadline":
        _fail(run, "the daemon was not done in time")
    _print_and_exit(run, {"continue": True})


def _keep_event(run: RelayRun) -> "NoReturn":
    """Send the event to the daemon, or spool it; each may take half of the time."""
    run.activity = "waiting for the daemon"
    try:
        if "session_id" not in _ask_daemon(run, _encode_request(run), run.seconds_left() / 2):
            raise Unreachable("garbage", "the daemon's answer acknowledges nothing")
    except Unreachable as error:
        run.activity = f"spooling, which goes on ({error})"
        if _spool_event(run):
            _print_and_exit(run, {"continue": True, "spooled": True})
        _fail(run, f"it is not kept: {error}, and the spool could not be written")
    _print_and_exit(run, {"continue": True})


def _keep_unread(run: RelayRun, reason: str) -> "NoReturn":
    """Spool the event as sent, even for a turn: it may hold the prompt."""
    if os.environ.get("TACIT_WORKER"):
        _print_and_exit(run, {"continue": True})
    run.unread = reason
    run.activity = "spooling an event that is not understood, which goes on"
    if not _spool_event(run):
        _fail(run, f"{reason}. It is not kept: the spool could not be written")
    _fail(run, f"{reason}. It is kept in .tacit/spool and in no transcript; `tacit status` tells")


def _spool_event(run: RelayRun) -> bool:
    reader = _start_spooling(run)
    return reader is not None and os.read(reader, 1) == b"+"


def _start_spooling(run: RelayRun) -> int | None:
    """Let a child process write, since the disk may take longer than the host waits. The pipe tells when it
    is done."""
    if not os.path.isfile(f"{run.home}/memory-config.yaml"):
        return None  # no home, and a hook never creates one
    reader, writer = os.pipe()
    if os.fork() == 0:
        _spool_in_child(run, writer)
    # After the fork: if the alarm spools it twice, the id tells; if neither does, it is lost.
    run.is_spooling = True
    os.close(writer)
    return reader


def _spool_in_child(run: RelayRun, writer: int) -> "NoReturn":
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 60.0)
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        try:
            run.spool(run.home, *_spooled_form(run))
        except RecursionError:  # parsing allows deeper nesting than redaction; as text it is flat
            run.unread, run.event = run.unread or "it is nested too deeply", {}
            run.spool(run.home, *_spooled_form(run))
        os.write(writer, b"+")
    finally:
        os._exit(0)


def _spooled_form(run: RelayRun) -> "tuple[str, dict[str, Any]]":
    """An operation and its body. An event that is not understood becomes one that the daemon sets aside."""
    if run.unread or not run.body:
        reason = run.unread or "the deadline passed before all of it was there"
        raw = _decode(run.raw)
        # A private part may begin in one field and end in another, so it is redacted as one text.
        event = raw if "<private" in raw.lower() else run.event or raw
        return "unread", {"why": reason, "operation": run.operation, "event": event}
    return _OPERATIONS[run.sent_as][0], run.body


def forward_event(arguments: "Sequence[str]", spool: "Spool") -> "NoReturn":
    """Forward the event on standard input, with the arguments of the command line."""
    run = RelayRun(spool)

    def on_alarm(*_: object) -> None:
        is_ours = os.environ.get("TACIT_WORKER")
        has_event = run.body or run.raw.strip()
        is_lost = has_event and run.operation != "turn" and not (run.is_spooling or run.is_answered)
        if is_lost and not is_ours and _start_spooling(run) is not None:
            run.activity += "; it is being spooled"
        _fail(run, f"the deadline passed while {run.activity}")

    try:
        signal.signal(signal.SIGALRM, on_alarm)
        signal.setitimer(signal.ITIMER_REAL, run.seconds_left())
        _read_arguments(run, arguments)
        signal.setitimer(signal.ITIMER_REAL, run.seconds_left())
        run.activity = "waiting for the event on standard input"
        _read_event(run)
        if os.environ.get("TACIT_WORKER"):  # started by tacit itself, which must not learn from it
            _print_and_exit(run, {"continue": True})
        run.activity = "reading the event"
        _normalize_event(run)
        (_run_turn if run.operation == "turn" else _keep_event)(run)
    except NotUnderstood as error:
        _keep_unread(run, str(error))
    except Unreachable as error:
        hint = ". Start it with: tacit serve" if error.kind == "absent" else ""
        _fail(run, f"{error}{hint}")
    except InvalidEvent as error:
        _fail(run, str(error))
    except BaseException as error:  # noqa: BLE001 - a hook that fails stops the host's turn
        _fail(run, f"{type(error).__name__} while {run.activity}")

"""One event of a host, forwarded to the daemon: what tacit/relay.py does.

What must stay true:
- whatever the daemon, the input or the disk does: one JSON object, exit code 0, within the deadline;
- a turn that failed adds nothing and says why in `reason`, and the session's ETHOS_CONTEXT.md is emptied;
- what the daemon did not acknowledge is spooled, by a child that the deadline does not end;
- starting costs little more than starting Python: besides one module of ours nothing is imported that is not
  built in. `signal` and `json` alone would double the time.
"""

import os
import time
from _json import encode_basestring_ascii, make_scanner

from tacit.net.local import Unreachable, ask, socket_path

TYPE_CHECKING = False  # as in typing, which would cost more than the rest of this module
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, NoReturn, TypeAlias

    Spool: TypeAlias = Callable[[str, str, Mapping[str, Any]], object]  # home, operation, body
else:
    import _signal as signal

_DEADLINE_MS = 250
_MOST_READ = 32_000_000  # bytes of an event
_MOST_ASKED = 4_000_000  # of one that the daemon is asked about; a turn is nothing else
_MOST_OUT = 1_000_000
_GRACE = 0.02  # seconds that are left to say what happened
_KEY = "agent:main:main"
# What hosts call it. The first that says something counts, and only where our own name says nothing.
_ALIASES = {
    "prompt": "message",
    "sessionKey": "session_key",
    "sessionId": "session_id",
    "agentId": "agent",
    "senderId": "sender",
    "from": "sender",
}
_ANYBODY = "*"  # as a sender: somebody who is surely no owner
# What it is called here: its name and address, as in tacit.api.
_OPERATIONS = {
    "turn": ("turn", "/v1/turn"),
    "message": ("message", "/v1/message"),
    "tool": ("tool", "/v1/tool"),
    "session-end": ("end_session", "/v1/session/end"),
    "event": ("event", "/v1/event"),
}
_USAGE = "use: tacit-relay turn|message|tool|session-end|event [--home DIR] [--deadline-ms N]"


class Asked:
    """What one run is about. A plain class, and attributes: the alarm may ring at any line."""

    def __init__(self, spool: "Spool") -> None:
        self.spool = spool
        self.until = time.monotonic() + _DEADLINE_MS / 1000
        self.operation = ""
        self.home = ""
        self.body: dict[str, Any] = {}  # in our words
        self.added: dict[str, Any] = {}  # what of it does not stand in the event as it came
        self.doing = "starting"
        self.is_spooling = False
        self.is_said = False

    def left(self) -> float:
        return max(0.001, self.until - time.monotonic())


class Wrong(Exception):
    """The event or the command line makes no sense."""


def in_our_words(body: "Mapping[str, Any]") -> "dict[str, Any]":
    """The fields of an event by the names that operations have for them.

    What cannot be read must not become what is not said, since that is trusted: a key that is no text is no
    session that anybody knows, and a sender that is neither text nor number is nobody whom we know."""
    ours = dict(body)
    for alias, name in _ALIASES.items():
        if (said := _said(body, alias)) and ours.get(name) in (None, ""):
            ours[name] = said
    if "session_key" in ours or "sessionKey" in ours:
        ours["session_key"] = ours["session_key"] if isinstance(ours.get("session_key"), str) else ""
    return ours


def _said(body: "Mapping[str, Any]", alias: str) -> str:
    value, name = body.get(alias), _ALIASES[alias]
    if isinstance(value, int) and not isinstance(value, bool) and name != "session_key":
        value = str(value)
    if name == "sender" and value is not None:
        return _sender(value, body.get("channel"))
    return value if isinstance(value, str) else ""


def _sender(value: object, channel: object) -> str:
    """With the channel, where the host names it beside: an id alone may be somebody else's elsewhere."""
    if not isinstance(value, str):
        return _ANYBODY
    is_alone = value and ":" not in value
    return f"{channel}:{value}" if is_alone and channel and isinstance(channel, str) else value


# ---------------------------------------------------------------- saying


def _say(asked: Asked, said: "Mapping[str, object]") -> "NoReturn":
    """Once, and then there is nothing left to do."""
    try:
        if not asked.is_said:
            # A host that reads slowly gets the whole of it; one that never reads cannot keep us. The alarm
            # that rings before this line has its own say; after the next one it only ends us.
            signal.setitimer(signal.ITIMER_REAL, 1.0)
            asked.is_said = True
            _write(_encoded(said))
    finally:
        os._exit(0)


def _encoded(said: "Mapping[str, object]") -> bytes:
    pairs = [f"{encode_basestring_ascii(name)}: {_value(value)}" for name, value in said.items()]
    return ("{" + ", ".join(pairs) + "}\n").encode("ascii")


def _value(value: object) -> str:
    return "true" if value is True else encode_basestring_ascii(str(value))


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def _failed(asked: Asked, reason: str) -> "NoReturn":
    """The host goes on without us."""
    try:
        if asked.operation == "turn" and not asked.is_said:
            _empty_mirror(asked)
    finally:
        _say(asked, {"continue": True, "reason": f"tacit: {reason}"})


def _empty_mirror(asked: Asked) -> None:
    """What an earlier turn was given is not for this one."""
    folders = [f"{asked.home}/.tacit/context"]
    try:
        with open(f"{asked.home}/.tacit/context-folder", encoding="utf-8") as noted:
            folders.append(noted.read().rstrip("\n"))
    except (OSError, ValueError):
        pass  # copies are where they are by default
    for folder in filter(os.path.isdir, folders):
        # Of an event that could not be read nobody knows the session: then none keeps what it was given.
        names = [_mirror_of(asked.body)] if asked.body else os.listdir(folder)
        for name in names:
            if len(name) == 16:  # as ours are; the folder may hold other things
                _truncate(f"{folder}/{name}/ETHOS_CONTEXT.md")


def _mirror_of(body: "Mapping[str, Any]") -> str:
    from hashlib import sha256

    key, agent = body.get("session_key", _KEY), body.get("agent")
    if key == _KEY and isinstance(agent, str) and agent:
        key = f"agent:{agent}:main"  # as tacit.sessions.agents reads it
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _truncate(path: str) -> None:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return
    os.ftruncate(fd, 0)
    os.close(fd)


# ---------------------------------------------------------------- reading


def _read_arguments(asked: Asked, argv: "Sequence[str]") -> None:
    rest = list(argv)
    named: dict[str, str] = {}
    while rest:
        word = rest.pop(0)
        name, _, value = word.partition("=")
        if name in ("--home", "--deadline-ms"):
            named[name] = value or (rest.pop(0) if rest else "")
        elif word in _OPERATIONS and not asked.operation:
            asked.operation = word
        else:
            raise Wrong(f"{word[:40]!r} is not understood; {_USAGE}")
    if "--deadline-ms" in named:
        _read_deadline(asked, named["--deadline-ms"])
    home = named.get("--home") or os.environ.get("TACIT_HOME") or "~/tacit"
    asked.home = os.path.abspath(os.path.expanduser(home))
    if not asked.operation:
        raise Wrong(_USAGE)


def _read_deadline(asked: Asked, text: str) -> None:
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:9]) <= 600_000):
        raise Wrong(f"{text[:40]!r} is no number of milliseconds; {_USAGE}")
    asked.until += (int(text) - _DEADLINE_MS) / 1000


def _read_event(asked: Asked) -> bytes:
    """The event as it came; `asked.body` is what is in it. A host need not close our standard input."""
    # What the daemon is not asked about need not be read to its end; only what is spooled must.
    most = _MOST_ASKED if asked.operation == "turn" else _MOST_READ
    data = bytearray()
    while piece := os.read(0, 1 << 20):
        data += piece
        if len(data) > most:
            raise Wrong(f"the event has more than {most} bytes")
        is_last = piece.rstrip()[-1:] == b"}" and len(piece) < 65536
        if is_last and (found := _object(data)) is not None:
            _take(asked, found)
            return bytes(data)
    found = _object(data)
    if found is None:
        raise Wrong("what is on standard input is not one JSON object")
    _take(asked, found)
    return bytes(data)


def _take(asked: Asked, found: "dict[str, Any]") -> None:
    ours = in_our_words(found)
    asked.added = {name: value for name, value in ours.items() if found.get(name) is not value}
    asked.body = ours


def _object(data: bytes | bytearray) -> "dict[str, Any] | None":
    text = data.decode("utf-8", "replace").strip()
    try:
        value, end = _scan(text, 0)
    except (ValueError, StopIteration, RecursionError, SystemError):
        return None  # SystemError: it wants to raise what `json` defines, and nobody imported that
    return value if end == len(text) and isinstance(value, dict) else None


class _Reading:
    """How `json.loads` reads, without the regular expressions that `json` imports."""

    strict = False
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


_scan: "Any" = make_scanner(_Reading)  # type: ignore[arg-type]


# ---------------------------------------------------------------- asking


def _request(asked: Asked, event: bytes) -> bytes:
    """The event with what it lacks. It is added behind the text as it came: writing JSON is not free either,
    and of a name that is there twice the last one counts."""
    added = asked.added
    if asked.operation == "turn" and "lane" not in asked.body:
        added["lane"] = "runtime"
    elif asked.operation != "turn" and not asked.body.get("id"):
        asked.body["id"] = os.urandom(8).hex()  # by which the daemon knows it, if it comes from the spool too
        added["id"] = asked.body["id"]
    parts = [
        f"{encode_basestring_ascii(name)}:{encode_basestring_ascii(value)}" for name, value in added.items()
    ]
    if asked.operation == "turn" and "deadline_ms" not in asked.body:
        parts.append(f'"deadline_ms":{max(1, int((asked.left() - 2 * _GRACE) * 1000))}')
    if len(event) > _MOST_ASKED:  # before it is copied: a long one takes long
        raise Unreachable("garbage", f"the event has more than {_MOST_ASKED} bytes")
    inside = event.decode("utf-8", "replace").strip()[1:-1].strip()
    return ("{" + ",".join([inside, *parts] if inside else parts) + "}").encode("utf-8", "replace")


def _answer(asked: Asked, request: bytes, seconds: float) -> "dict[str, Any]":
    """What the daemon says, or Unreachable."""
    path = os.environ.get("TACIT_SOCKET") or socket_path(asked.home)
    _, target = _OPERATIONS[asked.operation]
    status, data = ask(path, "POST", target, request, seconds, _MOST_OUT)
    if status == 503:
        raise Unreachable("late", "the daemon is busy")
    if status != 200:
        raise Unreachable("garbage", f"the daemon answered {status}")
    found = _object(data)
    if found is None:
        raise Unreachable("garbage", "the daemon's answer is no JSON object")
    return found


def _turn(asked: Asked, event: bytes) -> "NoReturn":
    asked.doing = "waiting for the daemon"
    found = _answer(asked, _request(asked, event), asked.left() - _GRACE)
    text = found.get("text")
    if not isinstance(text, str):
        raise Unreachable("garbage", "the daemon's answer has no text")
    if text:
        _say(asked, {"continue": True, "additionalContext": text})
    if found.get("skipped") == "deadline":
        _failed(asked, "the daemon was not done in time")
    _say(asked, {"continue": True})


def _keep(asked: Asked, event: bytes) -> "NoReturn":
    """Given to the daemon, or spooled for it: half of the time is for each."""
    asked.doing = "waiting for the daemon"
    try:
        if "session_id" not in _answer(asked, _request(asked, event), asked.left() / 2):
            raise Unreachable("garbage", "the daemon's answer acknowledges nothing")
    except Unreachable as error:
        asked.doing = f"spooling, which goes on ({error})"
        if _is_spooled(asked):
            _say(asked, {"continue": True, "spooled": True})
        _failed(asked, f"it is not kept: {error}, and the spool could not be written")
    _say(asked, {"continue": True})


def _is_spooled(asked: Asked) -> bool:
    reader = _begin_spooling(asked)
    return reader is not None and os.read(reader, 1) == b"+"


def _begin_spooling(asked: Asked) -> int | None:
    """A child writes, and goes on where the disk takes longer than the host waits. The pipe tells when it
    is done."""
    if not os.path.isfile(f"{asked.home}/memory-config.yaml"):
        return None  # no home, and none is begun by a hook
    reader, writer = os.pipe()
    if os.fork() == 0:
        _write_behind(asked, writer)
    # After the fork: one that the alarm begins again is known by its id, one that nobody began is lost.
    asked.is_spooling = True
    os.close(writer)
    return reader


def _write_behind(asked: Asked, writer: int) -> "NoReturn":
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, 60.0)
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        asked.spool(asked.home, _OPERATIONS[asked.operation][0], asked.body)
        os.write(writer, b"+")
    finally:
        os._exit(0)


def forward(arguments: "Sequence[str]", spool: "Spool") -> "NoReturn":
    """The event on standard input, with the arguments of the command line."""
    asked = Asked(spool)

    def rang(*_: object) -> None:
        is_lost = asked.body and asked.operation != "turn" and not (asked.is_spooling or asked.is_said)
        if is_lost and _begin_spooling(asked) is not None:
            asked.doing += "; it is being spooled"
        _failed(asked, f"the deadline passed while {asked.doing}")

    try:
        signal.signal(signal.SIGALRM, rang)
        signal.setitimer(signal.ITIMER_REAL, asked.left())
        _read_arguments(asked, arguments)
        signal.setitimer(signal.ITIMER_REAL, asked.left())
        asked.doing = "waiting for the event on standard input"
        event = _read_event(asked)
        if os.environ.get("TACIT_WORKER"):  # a program that tacit itself started: memory must not feed on it
            _say(asked, {"continue": True})
        (_turn if asked.operation == "turn" else _keep)(asked, event)
    except (Unreachable, Wrong) as error:
        _failed(asked, str(error))
    except BaseException as error:  # noqa: BLE001 - a hook that fails stops the host's turn
        _failed(asked, f"{type(error).__name__} while {asked.doing}")

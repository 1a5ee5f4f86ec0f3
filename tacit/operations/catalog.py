"""The list of operations: what the daemon answers, and what a client can ask for.

A new operation is one entry here and one function in `handlers.py`. The server takes its routes, time limits
and queues from this list, the client its requests and what it may do without a daemon, and `make docs` the
table in docs/daemon.md.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

# turn: a host waits for it, so it has a deadline and is always answered. record: keeps what was said or done;
# quick, and may be large. read: changes nothing, so a client runs it itself if the daemon does not respond.
# write: everything else.
OperationKind: TypeAlias = Literal["turn", "record", "read", "write"]

_CALLER = "session_key agent sender trigger"
_SESSION = "session_key session_id agent channel model at id"


class Operation(NamedTuple):
    """`fields` are the names in its request, separated by spaces; `answer` is the text of the reference."""

    name: str
    method: Literal["GET", "POST"]
    path: str
    kind: OperationKind
    fields: str = ""
    answer: str = ""
    is_spooled: bool = False  # while no daemon runs, hosts put it into the spool
    is_local: bool = False  # answered on the unix socket only

    @property
    def is_turn(self) -> bool:
        return self.kind == "turn"


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        *("turn", "POST", "/v1/turn", "turn"),
        "message session_key lane history budget sender trigger tool paths event wake agent session_id "
        "keeps_text deadline_ms full",
        "`text`, `standing`, `tokens`, `sections`, `dropped`, `notices`, `skipped`, `receipt`. `lane` is "
        "`prompt`, the whole prompt, or `runtime`, what the host lacks",
    ),
    Operation(
        *("bootstrap", "POST", "/v1/bootstrap", "turn"),
        "session_key files workspace message agent sender trigger deadline_ms",
        "`files`, `changed`, `tokens`, `host_tokens`, `session_type`, `rule`, `notices`, `receipt`",
    ),
    Operation(
        *("search", "POST", "/v1/search", "read"),
        f"query limit category {_CALLER}",
        "`hits`; with a session key or a sender, only what they may see",
    ),
    Operation(
        *("message", "POST", "/v1/message", "record"),
        f"{_SESSION} role text sender speaker",
        "acknowledged when it is on disk; a repeated `id` is kept once",
        is_spooled=True,
    ),
    Operation(
        *("tool", "POST", "/v1/tool", "record"),
        f"{_SESSION} name summary result",
        "as for a message",
        is_spooled=True,
    ),
    Operation(
        *("end_session", "POST", "/v1/session/end", "record"),
        "session_key session_id agent at id tags",
        "the finalized transcript; the key's next turn begins a new session. Also for /new and /reset",
        is_spooled=True,
    ),
    Operation(
        *("event", "POST", "/v1/event", "record"),
        "host name record operation session_key at id",
        "a host's own event, kept as messages, tool calls and session ends; what is in it, `host` decides",
        is_spooled=True,
    ),
    Operation(
        *("renew", "POST", "/v1/session/renew", "record"),
        "session_key",
        "the host cut its window: chunks injected before may be injected again",
    ),
    Operation(
        *("read", "POST", "/v1/read", "read"),
        f"path from lines {_CALLER}",
        "a file that the session may see, by its path from a search",
    ),
    Operation(
        *("remember", "POST", "/v1/remember", "write"),
        f"text to {_CALLER} shared",
        "one line kept for later sessions; see `tacit remember`. `shared` is for the owner alone: "
        "no session key, no host",
    ),
    Operation(
        *("why", "POST", "/v1/why", "read"),
        f"{_CALLER} limit",
        "why its last turns were given what they were, in words",
    ),
    Operation(*("due", "GET", "/v1/due", "read"), "", "topics whose schedule is due"),
    Operation(
        *("done_due", "POST", "/v1/due/done", "write"),
        "",
        "the same topics, which the caller takes: they are no longer due",
    ),
    Operation(
        *("list_receipts", "GET", "/v1/receipts", "read"),
        f"{_CALLER} limit",
        "what turns were given, and why; with a session key, only its own, as far as it may see them",
    ),
    Operation(*("one_receipt", "GET", "/v1/receipts/{id}", "read"), f"id {_CALLER}", "one of them"),
    Operation(
        *("ipc", "POST", "/v1/ipc", "read"),
        "action payload",
        '`{"status": "ok", "data": {"results": […]}}`, Ethos\'s protocol. `action` is `search`, `payload` '
        "has `query` and `limit`; the session is in the payload or beside it",
    ),
    Operation(
        *("look", "POST", "/v1/look", "read"),
        "message session_key lane history budget sender trigger paths event wake agent at full",
        "a dry run of a turn, with the owner's rights. `at`: the home as it was then",
    ),
    Operation(
        *("find", "POST", "/v1/find", "read"),
        "query limit scope",
        "as search, for the owner: no `session_key`. `scope` may have `categories`, `audience`, "
        "`conversation`, `agents`, `since`, `until`, `under`, `without`, `archived`",
    ),
)
# What the daemon answers about itself, without a home.
DAEMON_OPERATIONS: tuple[Operation, ...] = (
    Operation("health", "GET", "/v1/health", "read", "", "the daemon's state, its jobs and its problems"),
    Operation("metrics", "GET", "/metrics", "read", "", "metrics for Prometheus"),
    Operation("stop", "POST", "/v1/stop", "write", "", "stop the daemon", is_local=True),
)
OPERATIONS_BY_NAME = {operation.name: operation for operation in OPERATIONS}

"""The daemon on its socket: every route, its status and its JSON."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.blackbox.outside import NOW, Commands, UnixConnection, ask, copy_home, environment, mode_of
from tests.blackbox.small_home import QUESTION
from tests.blackbox.snapshots import Snapshots, shape

KEY = "agent:main:main"
ROUTES: dict[str, tuple[str, str, Any]] = {
    "health": ("GET", "/v1/health", None),
    "turn": ("POST", "/v1/turn", {"message": QUESTION, "session_key": KEY}),
    "turn-runtime": ("POST", "/v1/turn", {"prompt": QUESTION, "sessionKey": KEY, "lane": "runtime"}),
    "turn-full": ("POST", "/v1/turn", {"message": QUESTION, "session_key": KEY, "full": True}),
    "look": ("POST", "/v1/look", {"message": QUESTION}),
    "bootstrap": (
        "POST",
        "/v1/bootstrap",
        {
            "session_key": KEY,
            "files": [{"name": "SOUL.md", "path": "/nowhere/SOUL.md", "content": "# Soul\n"}],
        },
    ),
    "search": ("POST", "/v1/search", {"query": "tomatoes", "limit": 3, "session_key": KEY}),
    "find": ("POST", "/v1/find", {"query": "tomatoes", "scope": {"categories": ["procedure"]}}),
    "message": (
        "POST",
        "/v1/message",
        {"session_key": KEY, "role": "user", "text": "Hello there.", "id": "m1", "at": NOW},
    ),
    "message-again": (
        "POST",
        "/v1/message",
        {"session_key": KEY, "role": "user", "text": "Hello there.", "id": "m1", "at": NOW},
    ),
    "tool": (
        "POST",
        "/v1/tool",
        {"session_key": KEY, "name": "read", "summary": "a.md", "result": "1 line", "id": "t1", "at": NOW},
    ),
    "renew": ("POST", "/v1/session/renew", {"session_key": KEY}),
    "session-end": ("POST", "/v1/session/end", {"session_key": KEY, "at": NOW, "tags": ["x"]}),
    "event": (
        "POST",
        "/v1/event",
        {"host": "openclaw", "name": "session_end", "record": {}, "session_key": KEY, "id": "e1"},
    ),
    "read": ("POST", "/v1/read", {"path": "knowledge/procedures/watering.md", "session_key": KEY}),
    "remember": ("POST", "/v1/remember", {"text": "The shed is green.", "session_key": KEY}),
    "why": ("POST", "/v1/why", {"session_key": KEY, "limit": 2}),
    "ipc": ("POST", "/v1/ipc", {"action": "search", "payload": {"query": "tomatoes", "limit": 2}}),
    "ipc-unknown": ("POST", "/v1/ipc", {"action": "nonsense", "payload": {}}),
    "receipts": ("GET", "/v1/receipts?limit=2", None),
    "due": ("GET", "/v1/due", None),
    "due-done": ("POST", "/v1/due/done", {}),
    "no-route": ("GET", "/v1/nonsense", None),
    "wrong-method": ("GET", "/v1/turn", None),
    "not-json": ("POST", "/v1/turn", b"{"),
    "not-an-object": ("POST", "/v1/turn", []),
    "field-missing": ("POST", "/v1/search", {}),
    "field-of-wrong-type": ("POST", "/v1/search", {"query": 7}),
    "role-unknown": ("POST", "/v1/message", {"session_key": KEY, "role": "king", "text": "x"}),
    "file-missing": ("POST", "/v1/read", {"path": "knowledge/none.md", "session_key": KEY}),
    "file-outside": ("POST", "/v1/read", {"path": "../../etc/passwd", "session_key": KEY}),
    "receipt-missing": ("GET", "/v1/receipts/nonsense", None),
    "remember-nothing": ("POST", "/v1/remember", {"text": "", "session_key": KEY}),
}


@pytest.fixture(scope="module")
def served(prepared: Commands, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    commands = copy_home(prepared.home, tmp_path_factory.mktemp("served"))
    environ = environment(commands.home.parent, TACIT_HOME=str(commands.home))
    process = subprocess.Popen(
        [sys.executable, "-m", "tacit", "serve", "--quiet"], env=environ, cwd=commands.home.parent
    )
    try:
        wait_until_served(commands.home)
        yield commands
    finally:
        process.terminate()
        assert process.wait(60) == 0


def wait_until_served(home: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            if ask(home, "GET", "/v1/health").status == 200:
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the daemon did not come up")


def settled(keys: Any) -> Any:
    """Without what a young daemon may or may not have to say: answers kept, vectors not ready yet."""
    if not isinstance(keys, dict):
        return keys
    return {key: "list" if key in ("notices", "degraded") else settled(below) for key, below in keys.items()}


def test_every_route_answers_with_its_status_and_keys(served: Commands, snapshots: Snapshots) -> None:
    found = {}
    for name, (method, path, body) in ROUTES.items():
        answer = ask(served.home, method, path, body)
        assert answer.kind.startswith("application/json"), name
        keys = settled(shape(answer.json))
        if name == "health":  # what is below depends on which jobs have run
            keys = sorted(keys)
        found[name] = {"asked": f"{method} {path}", "status": answer.status, "answer": keys}
        if answer.status >= 400 and "error" in answer.json:
            found[name]["code"] = answer.json["error"]["code"]
    snapshots.check_json("http/routes", found)


def test_answers_hold_what_the_home_holds(served: Commands) -> None:
    hits = ask(served.home, "POST", "/v1/search", {"query": "tomatoes root"}).json["hits"]
    assert "knowledge/procedures/watering.md" in [hit["path"] for hit in hits]
    turn = ask(
        served.home, "POST", "/v1/turn", {"message": QUESTION, "session_key": "agent:main:telegram:direct:7"}
    ).json
    assert "I am Moss" in turn["text"]
    listed = ask(served.home, "GET", "/v1/receipts?limit=50").json["receipts"]
    assert listed
    one = ask(served.home, "GET", f"/v1/receipts/{listed[0]['id']}")
    assert one.status == 200


def test_metrics_are_text_for_prometheus(served: Commands, snapshots: Snapshots) -> None:
    answer = ask(served.home, "GET", "/metrics")
    assert answer.status == 200
    assert answer.kind.startswith("text/plain")
    names = {line.split()[2] for line in answer.text.splitlines() if line.startswith("# TYPE")}
    snapshots.check_json("http/metrics", sorted(names))


def test_the_socket_and_its_neighbours_are_private(served: Commands) -> None:
    assert mode_of(served.home / ".tacit" / "daemon.sock") == "0600"


def test_a_message_too_large_is_refused(served: Commands) -> None:
    body = {"message": "x" * 3_000_000, "session_key": KEY}
    connection = UnixConnection(served.home / ".tacit" / "daemon.sock")
    try:
        connection.request("POST", "/v1/turn", body=str(body).encode())
        assert connection.getresponse().status == 413
    except BrokenPipeError:
        pass  # it hung up before all was sent
    finally:
        connection.close()


def test_commands_use_the_daemon_and_a_second_one_is_refused(served: Commands, snapshots: Snapshots) -> None:
    status = served.checked("status", "--json").json
    snapshots.check_json("http/status-of-daemon", shape(status["daemon"]))
    assert served("serve").code == 1


def test_a_daemon_in_the_background_is_stopped_by_a_command(
    prepared: Commands, tmp_path_factory: pytest.TempPathFactory
) -> None:
    commands = copy_home(prepared.home, tmp_path_factory.mktemp("own"))  # a socket's path has to be short
    assert commands("serve", "--detach", "--quiet").code == 0
    try:
        assert ask(commands.home, "GET", "/v1/health").status == 200
    finally:
        assert commands("stop").code == 0
    assert commands.checked("status", "--json").json["daemon"] is None
    assert commands("stop").code == 0


def test_the_relay_leaves_messages_in_the_spool_and_asks_the_daemon(
    prepared: Commands, served: Commands, tmp_path: Path, snapshots: Snapshots
) -> None:
    relay = str(Path(sys.executable).with_name("tacit-relay"))

    def run(home: Path, operation: str, event: str) -> Any:
        done = subprocess.run(
            [relay, operation, "--deadline-ms", "20000"],
            input=event.encode(),
            capture_output=True,
            env=environment(home.parent, TACIT_HOME=str(home)),
            cwd=home.parent,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return settled(shape(json.loads(done.stdout)))

    alone = copy_home(prepared.home, tmp_path / "copy")
    say, turn = '{"role": "user", "text": "Hello."}', f'{{"prompt": "{QUESTION}", "sessionKey": "{KEY}"}}'
    found = {
        "message without daemon": run(alone.home, "message", say),
        "turn without daemon": run(alone.home, "turn", turn),
        "message": run(served.home, "message", say),
        "turn": run(served.home, "turn", turn),
    }
    snapshots.check_json("http/relay", found)
    assert alone.checked("status", "--json").json["spool"] == 1

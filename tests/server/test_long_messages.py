"""Messages of megabytes from a stranger, sent to a real daemon: turns of others go on, before and after a
restart, and no worker is lost."""

from __future__ import annotations

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tacit.daemon_socket import send_request, socket_path
from tests.conftest import eventually
from tests.security.long_messages import SHAPES
from tests.server.served import PATIENCE, Process, serving

_SENT = ("words", "base64", "a letter on each line", "comments", "dots", "combining")
_SIZE = 1_200_000  # characters
_DEADLINE = 5.0  # seconds of a turn
_GENEROUS = 15.0  # seconds in which such a turn is answered on the busiest machine


def _send(home: Path, shape: str) -> int:
    """Of what is refused for now nothing is lost: hosts keep it and send it again."""
    body = {"text": SHAPES[shape](_SIZE), "role": "user", "session_key": f"agent:main:telegram:group:{shape}"}
    status, _ = send_request(
        socket_path(str(home)), "POST", "/v1/message", json.dumps(body).encode(), PATIENCE
    )
    return status


def _turns(daemon: Process, count: int, about: str) -> list[Any]:
    """Normal turns of the owner, one after the other, each in time."""
    answers = []
    for number in range(count):
        began = time.monotonic()
        answer = daemon.ask(
            "POST",
            "/v1/turn",
            message=f"What did Ottoline decide about the lighthouse, {about} {number}?",
            session_key="agent:main:main",
            deadline_ms=int(_DEADLINE * 1000),
        )
        assert time.monotonic() - began < _GENEROUS
        answers.append(answer)
    return answers


def _require_workers(daemon: Process) -> None:
    told = daemon.ask("GET", "/v1/health")
    assert (told["workers"]["stuck"], told["given_up"]) == (0, 0)


def test_messages_of_megabytes_use_up_no_worker_before_or_after_a_restart(home: Path) -> None:
    with serving(home) as daemon, ThreadPoolExecutor(len(_SENT)) as strangers:
        daemon.message(
            "Ottoline decided that the lighthouse opens on Tuesday.", session_key="agent:main:main"
        )
        sent = [strangers.submit(_send, home, shape) for shape in _SENT]
        _turns(daemon, 6, "during")
        assert {one.result() for one in sent} <= {200, 503, 504}
        _turns(daemon, 6, "after")
        _require_workers(daemon)
        daemon.end(signal.SIGKILL)
    (home / ".tacit/memory.db").unlink()  # all of it has to be indexed anew
    with serving(home) as daemon:
        _turns(daemon, 6, "restarted")
        _require_workers(daemon)
        assert eventually(lambda: daemon.ask("GET", "/v1/health")["followed"], 4 * PATIENCE)
        assert not _turns(daemon, 2, "settled")[-1]["skipped"]
        found = daemon.ask("POST", "/v1/search", query="What did Ottoline decide about the lighthouse?")
        assert "Tuesday" in found["hits"][0]["text"]
        _require_workers(daemon)

"""A model on loopback that answers one word and records its requests, so that a probe needs no other
model."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

_ANSWER = "ok"


class ProbeModel(NamedTuple):
    url: str
    asked: list[dict[str, Any]]  # bodies of the requests, in the form of OpenAI's chat completions


@contextmanager
def serve_model() -> Iterator[ProbeModel]:
    requests: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *shown: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer(json.dumps({"object": "list", "data": [{"id": "probe", "object": "model"}]}))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
            requests.append(body)
            self._answer(*_render_completion(bool(body.get("stream"))))

        def _answer(self, text: str, kind: str = "application/json") -> None:
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            with suppress(OSError):  # the client has disconnected
                self.wfile.write(text.encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield ProbeModel(f"http://127.0.0.1:{server.server_port}/v1", requests)
    finally:
        server.shutdown()
        server.server_close()


def _render_completion(stream: bool) -> tuple[str, str]:
    head = {"id": "probe", "created": 0, "model": "probe"}
    message = {"role": "assistant", "content": _ANSWER}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    if not stream:
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return json.dumps(whole), "application/json"
    chunk = {**head, "object": "chat.completion.chunk"}
    parts = (
        {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage},
    )
    lines = [f"data: {json.dumps(part)}\n\n" for part in parts]
    return "".join((*lines, "data: [DONE]\n\n")), "text/event-stream"

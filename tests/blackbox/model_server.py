"""A model that always gives the same answer: prints its port, then serves OpenAI's chat form on 127.0.0.1."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer


class Answer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": '{"lines": []}'}
        usage = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
        body = json.dumps(
            {"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", 0), Answer)
    print(server.server_port, flush=True)
    server.serve_forever()

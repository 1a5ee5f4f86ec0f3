"""What the host talks to: a model and a messenger, both on loopback, both recording what they were sent.

The model speaks OpenAI's chat completions, streamed and whole. What it answers stands in the message:
`[[say TEXT]]` is the answer, `[[call NAME {…}]]` makes it call that tool first; asked for a summary, it
fills in the headings. The messenger speaks as much of Telegram's Bot API as the host uses.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

Json = dict[str, Any]
_OF_HOST = "BEGIN_OPENCLAW_INTERNAL_CONTEXT"
BOT = {"id": 4242, "is_bot": True, "first_name": "Bot", "username": "bot"}


class _Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *shown: object) -> None:
        pass

    def read_json(self) -> Json:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        if "json" in (self.headers.get("content-type") or ""):
            read: Json = json.loads(data or b"{}")
            return read
        return dict(parse_qsl(data.decode("utf-8", "replace")))

    def answer(self, value: object, kind: str = "application/json") -> None:
        data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        with suppress(BrokenPipeError, ConnectionResetError):  # who asked has gone meanwhile
            self.wfile.write(data)


def _served(handler: type[BaseHTTPRequestHandler]) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


# ---------------------------------------------------------------- the model


@dataclass(frozen=True, slots=True)
class Request:
    """What the model was sent for one call."""

    at: float
    messages: list[Json]
    tools: tuple[str, ...] = ()

    @property
    def system(self) -> str:
        return "\n".join(
            words(one["content"]) for one in self.messages if one["role"] in ("system", "developer")
        )

    @property
    def user(self) -> str:
        """The newest message of the user, with what was put around it."""
        at = _newest(self.messages)
        return words(self.messages[at]["content"]) if at >= 0 else ""

    @property
    def everything(self) -> str:
        return json.dumps(self.messages, ensure_ascii=False)


def words(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


@dataclass(slots=True)
class Model:
    requests: list[Request] = field(default_factory=list)
    answers: list[str] = field(
        default_factory=list
    )  # each is said once, so that a reply is known by its words
    wishes: dict[str, str] = field(default_factory=dict)  # what it does for a message that asks for nothing
    server: ThreadingHTTPServer = field(init=False)

    def __post_init__(self) -> None:
        model = self

        class Handler(_Quiet):
            def do_GET(self) -> None:
                self.answer({"object": "list", "data": [{"id": "model", "object": "model"}]})

            def do_POST(self) -> None:
                asked = self.read_json()
                if self.path.endswith("/chat/completions"):
                    self.answer(*model.answered(asked))
                else:
                    self.answer({"error": {"message": f"nothing at {self.path}"}})

        self.server = _served(Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def answered(self, asked: Json) -> tuple[object, str]:
        messages = asked.get("messages") or []
        tools = tuple(tool["function"]["name"] for tool in asked.get("tools") or [])
        self.requests.append(Request(time.monotonic(), messages, tools))
        message = _message(messages, f"Understood, for the {len(self.requests)}. time.", self.wishes)
        why = "tool_calls" if "tool_calls" in message else "stop"
        if why == "stop":
            self.answers.append(str(message["content"]))
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        if not asked.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": why}
            return _part("chat.completion", choices=[choice], usage=usage), "application/json"
        events = [
            _part("chat.completion.chunk", choices=[{"index": 0, "delta": message, "finish_reason": None}]),
            _part("chat.completion.chunk", choices=[{"index": 0, "delta": {}, "finish_reason": why}]),
            _part("chat.completion.chunk", choices=[], usage=usage),
        ]
        lines = [f"data: {json.dumps(event)}\n\n" for event in events] + ["data: [DONE]\n\n"]
        return "".join(lines), "text/event-stream"


def _newest(messages: list[Json]) -> int:
    """Where the newest message of the user stands: the host adds one of its own about the conversation."""
    said = (
        at
        for at, one in enumerate(messages)
        if one["role"] == "user" and _OF_HOST not in words(one["content"])
    )
    return max(said, default=-1)


def _part(kind: str, **more: object) -> Json:
    return {
        "id": f"answer-{time.time_ns()}",
        "object": kind,
        "created": int(time.time()),
        "model": "model",
        **more,
    }


def _message(messages: list[Json], reply: str, wishes: Mapping[str, str]) -> Json:
    """By what the newest message of the user asks for. A call that was answered is not made again."""
    at = _newest(messages)
    asked = words(messages[at]["content"]) if at >= 0 else ""
    asked = asked.rpartition("<!-- /")[2]  # what was recalled may quote what another message asked for
    if "[[" not in asked:
        asked = next((wish for part, wish in wishes.items() if part in asked), asked)
    called = any(one["role"] == "tool" for one in messages[at + 1 :])
    call = re.search(r"\[\[call (\w+) (\{.*?\})\]\]", asked, re.DOTALL)
    if call and not called:
        function = {"name": call[1], "arguments": call[2]}
        made = {"index": 0, "id": f"call_{time.time_ns()}", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [made]}
    if "exact section headings" in asked:  # the host wants to compact
        return {"role": "assistant", "content": _summary(asked)}
    say = re.search(r"\[\[say (.*?)\]\]", asked, re.DOTALL)
    return {"role": "assistant", "content": say[1] if say else reply}


def _summary(asked: str) -> str:
    headings = re.findall(r"^## .*$", asked.rpartition("</conversation>")[2], re.MULTILINE)
    return "".join(f"{heading}\n- None.\n\n" for heading in headings)


# ---------------------------------------------------------------- the messenger


class Telegram:
    def __init__(self) -> None:
        self._updates: list[Json] = []
        self.sent: list[Json] = []  # what the host said, as the API was given it
        self._changed = threading.Condition()
        self._last = 10
        messenger = self

        class Handler(_Quiet):
            def do_GET(self) -> None:
                self.answer({"ok": True, "result": messenger.call(self._method(), {})})

            def do_POST(self) -> None:
                self.answer({"ok": True, "result": messenger.call(self._method(), self.read_json())})

            def _method(self) -> str:
                return self.path.split("?")[0].rpartition("/")[2].lower()

        self.server = _served(Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def write(self, text: str, sender: int, chat: int | None = None, topic: int = 0) -> None:
        """Somebody writes: to the bot itself, to a group (a negative chat), to a topic of one."""
        with self._changed:
            self._last += 1
            where = {"id": chat or sender, "type": "supergroup" if chat else "private"}
            where |= {"title": "Group"} if chat else {}
            person = {"id": sender, "is_bot": False, "first_name": f"Person {sender}"}
            said: Json = {"message_id": self._last, "date": int(time.time()), "chat": where}
            said |= {"text": text, "from": person}
            if topic:
                where["is_forum"] = True
                said |= {"message_thread_id": topic, "is_topic_message": True}
            if text.startswith("/"):
                said["entities"] = [
                    {"type": "bot_command", "offset": 0, "length": len(text.split(maxsplit=1)[0])}
                ]
            self._updates.append({"update_id": 1000 + self._last, "message": said})
            self._changed.notify_all()

    def call(self, method: str, given: Json) -> object:
        answers: dict[str, Callable[[], object]] = {
            "getme": lambda: {**BOT, "can_join_groups": True, "can_read_all_group_messages": True},
            "getupdates": lambda: self._news(int(given.get("offset") or 0)),
            "getwebhookinfo": lambda: {"url": "", "has_custom_certificate": False, "pending_update_count": 0},
            "getchat": lambda: {"id": int(given.get("chat_id") or 0), "type": "supergroup", "title": "Group"},
            "sendmessage": lambda: self._said(given),
            "editmessagetext": lambda: self._said(given),
        }
        if method in answers:
            return answers[method]()
        return [] if method.startswith("getmy") else True

    def _news(self, offset: int) -> list[Json]:
        until = time.monotonic() + 2
        with self._changed:
            while True:
                news = [one for one in self._updates if one["update_id"] >= offset]
                left = until - time.monotonic()
                if news or left <= 0:
                    return news
                self._changed.wait(left)

    def _said(self, given: Json) -> Json:
        with self._changed:
            self._last += 1
            self.sent.append({**given, "at": time.monotonic()})
            self._changed.notify_all()
        chat = int(given.get("chat_id") or 0)
        said = {"message_id": self._last, "date": int(time.time()), "text": given.get("text", "")}
        return said | {"from": BOT, "chat": {"id": chat, "type": "supergroup" if chat < 0 else "private"}}

    def wait_for(
        self, texts: Callable[[], Collection[str]], since: int, chat: int, seconds: float
    ) -> Json | None:
        """What was sent to a chat after the first `since` messages and is one of these texts."""
        until = time.monotonic() + seconds
        with self._changed:
            while True:
                mine = [one for one in self.sent[since:] if str(one.get("chat_id")) == str(chat)]
                wanted = texts()
                found = [one for one in mine if not wanted or one.get("text") in wanted]
                left = until - time.monotonic()
                if found or left <= 0:
                    return found[-1] if found else None
                self._changed.wait(min(left, 0.2))

"""What every chat model keeps to, however it is reached: plain HTTP or a provider's own SDK.

Each speaks its real protocol with a server on the loopback."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from tacit.llm.chat import Chat, ChatAnswer, ChatError
from tacit.llm.registry import choose_chat
from tacit.llm.sdk import choose_sdk, is_installed
from tests.embeddings.conftest import Reply, Request, Serve, Server
from tests.llm.test_chat import KEY, anthropic_says, openai_says, text

# What a shell may hold that belongs to somebody else than the server that is asked.
SHELL = {
    "OPENAI_ORG_ID": "org-of-the-shell",
    "OPENAI_PROJECT_ID": "project-of-the-shell",
    "OPENAI_ADMIN_KEY": "admin-of-the-shell",
    "ANTHROPIC_AUTH_TOKEN": "token-of-the-shell",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Shell: header-of-the-shell",
    "OPENAI_CUSTOM_HEADERS": "X-Shell: header-of-the-shell",
}


class Way(NamedTuple):
    provider: str
    by_sdk: bool

    def chat(self, server: Server, **environ: str) -> Chat:
        base = server.base
        keys = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "OPENAI_BASE_URL": base, **environ}
        keys["ANTHROPIC_BASE_URL"] = base.removesuffix("/v1")
        model = f"{base}#m" if self.provider == "http" else f"{self.provider}:m"
        if not self.by_sdk:
            return choose_chat(model, keys, "lifecycle.model", breaks=False)
        chat = choose_sdk(model, keys, "lifecycle.model")
        assert chat is not None
        return chat

    def says(self, said: str) -> Reply:
        return anthropic_says(text(said)) if self.provider == "anthropic" else openai_says(said)


WAYS = [Way(provider, by_sdk) for by_sdk in (False, True) for provider in ("openai", "anthropic", "http")]


@pytest.fixture(params=WAYS, ids=lambda way: f"{way.provider}-{'sdk' if way.by_sdk else 'http'}")
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Way:
    found: Way = request.param
    if found.by_sdk and not is_installed(found.provider):
        pytest.skip(f"the SDK for {found.provider} is not installed: pip install 'tacit[openai,anthropic]'")
    for name, value in SHELL.items():
        monkeypatch.setenv(name, value)
    return found


def ask(chat: Chat, seconds: float = 5.0) -> ChatAnswer:
    return chat.answer("the rules", "the question", max_tokens=8, seconds=seconds)


def test_text_and_tokens_come_back(serve: Serve, way: Way) -> None:
    server = serve(lambda request: way.says("YES"))
    assert ask(way.chat(server)) == ChatAnswer("YES", 50, 1)
    request = server.requests[0]
    assert request.path == ("/v1/messages" if way.provider == "anthropic" else "/v1/chat/completions")
    assert request.json["model"] == "m"
    assert request.json["max_tokens"] == 8
    assert "the rules" in str(request.json)
    assert request.json["messages"][-1] == {"role": "user", "content": "the question"}


def test_where_a_server_counts_nothing_we_do(serve: Serve, way: Way) -> None:
    def reply(request: Request) -> Reply:
        said = way.says("YES")
        assert isinstance(said.body, dict)
        return Reply({name: value for name, value in said.body.items() if name != "usage"})

    answer = ask(way.chat(serve(reply)))
    assert answer.text == "YES"
    assert 0 < answer.tokens_in < 10
    assert answer.tokens_out == 1


def test_where_a_server_counts_only_zeros_we_count(serve: Serve, way: Way) -> None:
    def reply(request: Request) -> Reply:
        said = way.says("YES")
        assert isinstance(said.body, dict)
        return Reply({**said.body, "usage": dict.fromkeys(said.body["usage"], 0)})

    answer = ask(way.chat(serve(reply)))
    assert 0 < answer.tokens_in < 10
    assert answer.tokens_out == 1


def test_a_key_goes_only_where_it_is_meant_to_go(serve: Serve, way: Way) -> None:
    server = serve(lambda request: way.says("YES"))
    ask(way.chat(server))
    sent = str(server.requests[0].headers)
    assert (KEY in sent) == (way.provider != "http")
    ask(way.chat(server, TACIT_CHAT_KEY="mine"))
    assert ("mine" in str(server.requests[1].headers)) == (way.provider == "http")
    for request in server.requests:
        assert "of-the-shell" not in str(request.headers)


def test_the_name_is_that_of_the_setting(serve: Serve, way: Way) -> None:
    server = serve(lambda request: way.says("YES"))
    assert way.chat(server).name == (f"{server.base}#m" if way.provider == "http" else f"{way.provider}:m")


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_who_is_busy_may_be_asked_again_after_what_it_says(serve: Serve, way: Way, status: int) -> None:
    server = serve(lambda request: Reply({"error": {"message": "busy"}}, status, (("Retry-After", "7"),)))
    with pytest.raises(ChatError, match=f"status {status}.*lifecycle.model") as caught:
        ask(way.chat(server))
    assert (caught.value.again, caught.value.wait, caught.value.spent) == (True, 7.0, False)
    assert len(server.requests) == 1, "whoever is patient asks again, and nobody else"


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refusal_is_final_and_shows_no_key(serve: Serve, way: Way, status: int) -> None:
    server = serve(lambda request: Reply({"error": {"message": f"no, {KEY}"}}, status))
    with pytest.raises(ChatError, match=f"status {status}") as caught:
        ask(way.chat(server))
    assert not caught.value.again
    assert KEY not in str(caught.value) or way.provider == "http"  # which never had it
    assert len(server.requests) == 1


def test_a_server_that_hangs_is_given_up_in_time_and_may_be_on_the_bill(serve: Serve, way: Way) -> None:
    def wait(request: Request) -> Reply:
        server.stopped.wait(60)
        return way.says("YES")

    server = serve(wait)
    with pytest.raises(ChatError, match="in time") as caught:
        ask(way.chat(server), seconds=0.3)
    assert (caught.value.again, caught.value.spent) == (True, True)


def test_a_server_that_is_not_there_may_be_there_later(serve: Serve, way: Way) -> None:
    with Server(lambda request: way.says("YES")) as server:
        chat = way.chat(server)
    with pytest.raises(ChatError, match="cannot be reached") as caught:
        ask(chat)
    assert (caught.value.again, caught.value.spent) == (True, False)


def test_a_server_that_hangs_up_may_be_asked_again_and_may_be_on_the_bill(serve: Serve, way: Way) -> None:
    def hang_up(request: Request) -> Reply:
        raise OSError

    with pytest.raises(ChatError, match="broke off") as caught:
        ask(way.chat(serve(hang_up)))
    assert (caught.value.again, caught.value.spent) == (True, True)


def test_a_server_that_drips_is_given_up_in_time(serve: Serve, way: Way) -> None:
    server = serve(lambda request: Reply(b" " * 10_000, drip=True))
    with pytest.raises(ChatError, match="in time"):
        ask(way.chat(server), seconds=0.3)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'"YES"', b"null", b"<html>", b'{"choices": []}'])
def test_garbage_is_an_error_and_no_answer(serve: Serve, way: Way, body: bytes) -> None:
    server = serve(lambda request: Reply(body, headers=(("Content-Type", "application/json"),)))
    with pytest.raises(ChatError) as caught:
        ask(way.chat(server))
    assert caught.value.spent, "somebody worked on it"


def test_text_is_not_carried_elsewhere_by_a_redirect(serve: Serve, way: Way) -> None:
    other = serve(lambda request: way.says("YES"))
    server = serve(lambda request: Reply(b"", 307, (("Location", f"{other.base}/elsewhere"),)))
    with pytest.raises(ChatError):
        ask(way.chat(server))
    assert other.requests == []


def test_halves_of_characters_are_not_sent(serve: Serve, way: Way) -> None:
    server = serve(lambda request: way.says("YES"))
    way.chat(server).answer("rules", "\ud83d\ude00 \ud800 ä", max_tokens=8, seconds=5)
    assert server.requests[0].json["messages"][-1]["content"] == "😀 \ufffd ä"


def test_without_time_nothing_is_sent(serve: Serve, way: Way) -> None:
    server = serve(lambda request: way.says("YES"))
    with pytest.raises(ChatError, match="no time left"):
        ask(way.chat(server), seconds=0)
    assert server.requests == []


@pytest.mark.parametrize("chosen", [choose_chat, choose_sdk])
@pytest.mark.parametrize(
    "model", ["", "gpt-4o", "openai:", "http://host/v1", "gemini:x", "http://a:b@host/v1#m"]
)
def test_what_is_no_model_is_refused_in_the_same_words(
    chosen: Callable[..., Chat | None], model: str
) -> None:
    with pytest.raises(ChatError, match=r"chat model"):
        chosen(model, {"OPENAI_API_KEY": KEY}, "lifecycle.model")


def test_choosing_imports_no_sdk() -> None:
    before = {name for name in ("openai", "anthropic") if name in sys.modules}
    choose_chat("openai:m", {"OPENAI_API_KEY": KEY})
    choose_sdk("anthropic:m", {"ANTHROPIC_API_KEY": KEY}, "lifecycle.model")
    assert {name for name in ("openai", "anthropic") if name in sys.modules} == before

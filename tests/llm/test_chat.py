"""Chat models over real sockets: what is sent, what is read, and what is never sent where.

Most tests run for each provider, in its own protocol."""

from __future__ import annotations

import pytest

from tacit.llm.chat import Chat, ChatAnswer, ChatError, UnavailableChat
from tacit.llm.registry import choose_chat
from tests.embeddings.conftest import Reply, Request, Serve, Server

KEY = "sk-very-secret-0123456789"
# Variables of the shell that belong to other programs.
SHELL = {
    "OPENAI_ORG_ID": "org-of-the-shell",
    "ANTHROPIC_AUTH_TOKEN": "token-of-the-shell",
    "ANTHROPIC_CUSTOM_HEADERS": "X-Shell: header-of-the-shell",
}


def openai_says(content: object) -> Reply:
    message = {"role": "assistant", "content": content}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 50, "completion_tokens": 1, "total_tokens": 51}
    return Reply({"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": usage})


def anthropic_says(*blocks: object) -> Reply:
    return Reply(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "content": list(blocks),
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 50, "output_tokens": 1},
        }
    )


def text(said: object) -> object:
    return {"type": "text", "text": said}


def chat_of(provider: str, server: Server, **environ: str) -> Chat:
    keys = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "OPENAI_BASE_URL": server.base, **environ}
    keys["ANTHROPIC_BASE_URL"] = server.base.removesuffix("/v1")
    model = f"{server.base}#m" if provider == "http" else f"{provider}:m"
    return choose_chat(model, keys, "lifecycle.model", breaks=False)


def reply_of(provider: str, content: str) -> Reply:
    return anthropic_says(text(content)) if provider == "anthropic" else openai_says(content)


def ask(chat: Chat, user: str = "the question", seconds: float = 5.0) -> ChatAnswer:
    return chat.answer("the rules", user, max_tokens=8, seconds=seconds)


@pytest.fixture(params=["openai", "anthropic", "http"])
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in SHELL.items():
        monkeypatch.setenv(name, value)
    return str(request.param)


# What holds for every provider


def test_text_and_tokens_come_back(serve: Serve, provider: str) -> None:
    server = serve(lambda request: reply_of(provider, "YES"))
    assert ask(chat_of(provider, server)) == ChatAnswer("YES", 50, 1)


@pytest.mark.parametrize("usage", [None, 0])
def test_where_a_server_counts_nothing_we_do(serve: Serve, provider: str, usage: int | None) -> None:
    def reply(request: Request) -> Reply:
        full = reply_of(provider, "YES").body
        assert isinstance(full, dict)
        counts = dict.fromkeys(full.pop("usage"), usage)
        return Reply(full if usage is None else {**full, "usage": counts})

    answer = ask(chat_of(provider, serve(reply)))
    assert answer.text == "YES"
    assert 0 < answer.tokens_in < 10
    assert answer.tokens_out == 1


def test_a_key_goes_only_where_it_is_meant_to_go(serve: Serve, provider: str) -> None:
    server = serve(lambda request: reply_of(provider, "YES"))
    ask(chat_of(provider, server, TACIT_EMBEDDING_KEY=KEY))
    sent = str(server.requests[0].headers)
    assert (KEY in sent) == (provider != "http")
    ask(chat_of(provider, server, TACIT_CHAT_KEY="mine"))
    assert ("mine" in str(server.requests[1].headers)) == (provider == "http")
    for request in server.requests:
        assert "of-the-shell" not in str(request.headers)


def test_the_name_is_that_of_the_setting(serve: Serve, provider: str) -> None:
    server = serve(lambda request: reply_of(provider, "YES"))
    expected = f"{server.base}#m" if provider == "http" else f"{provider}:m"
    assert chat_of(provider, server).name == expected


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_busy_server_may_be_asked_again_after_what_it_says(
    serve: Serve, provider: str, status: int
) -> None:
    server = serve(lambda request: Reply({"error": {"message": "busy"}}, status, (("Retry-After", "7"),)))
    with pytest.raises(ChatError, match=f"status {status}.*lifecycle.model") as caught:
        ask(chat_of(provider, server))
    assert (caught.value.again, caught.value.wait, caught.value.spent) == (True, 7.0, False)
    assert len(server.requests) == 1, "retries are for the caller"


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refusal_is_final_and_shows_no_key(serve: Serve, provider: str, status: int) -> None:
    server = serve(lambda request: Reply({"error": {"message": f"no, {KEY}"}}, status))
    with pytest.raises(ChatError, match=f"status {status}") as caught:
        ask(chat_of(provider, server))
    assert not caught.value.again
    assert KEY not in str(caught.value) or provider == "http"  # which never had it
    assert len(server.requests) == 1


def test_a_server_that_hangs_is_given_up_in_time_and_may_bill_it(serve: Serve, provider: str) -> None:
    def wait(request: Request) -> Reply:
        server.stopped.wait(60)
        return reply_of(provider, "YES")

    server = serve(wait)
    with pytest.raises(ChatError, match="in time") as caught:
        ask(chat_of(provider, server), seconds=0.1)
    assert (caught.value.again, caught.value.spent) == (True, True)


def test_a_server_that_is_not_there_may_be_there_later(serve: Serve, provider: str) -> None:
    with Server(lambda request: reply_of(provider, "YES")) as server:
        chat = chat_of(provider, server)
    with pytest.raises(ChatError, match="cannot be reached") as caught:
        ask(chat)
    assert (caught.value.again, caught.value.spent) == (True, False)


def test_a_server_that_hangs_up_may_be_asked_again_and_may_bill_it(serve: Serve, provider: str) -> None:
    def hang_up(request: Request) -> Reply:
        raise OSError

    with pytest.raises(ChatError, match="broke off") as caught:
        ask(chat_of(provider, serve(hang_up)))
    assert (caught.value.again, caught.value.spent) == (True, True)


def test_a_server_that_drips_is_given_up_in_time(serve: Serve) -> None:
    server = serve(lambda request: Reply(b" " * 10_000, drip=True))
    with pytest.raises(ChatError, match="in time"):
        ask(chat_of("openai", server), seconds=0.3)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'"YES"', b"null", b"<html>", b'{"choices": []}'])
def test_garbage_is_an_error_and_no_answer(serve: Serve, provider: str, body: bytes) -> None:
    server = serve(lambda request: Reply(body, headers=(("Content-Type", "application/json"),)))
    with pytest.raises(ChatError) as caught:
        ask(chat_of(provider, server))
    assert caught.value.spent, "the server worked on it"


def test_text_is_not_carried_elsewhere_by_a_redirect(serve: Serve, provider: str) -> None:
    other = serve(lambda request: reply_of(provider, "YES"))
    server = serve(lambda request: Reply(b"", 307, (("Location", f"{other.base}/elsewhere"),)))
    with pytest.raises(ChatError):
        ask(chat_of(provider, server))
    assert other.requests == []


def test_halves_of_characters_are_not_sent(serve: Serve, provider: str) -> None:
    server = serve(lambda request: reply_of(provider, "YES"))
    ask(chat_of(provider, server), "\ud83d\ude00 \ud800 ä")
    assert server.requests[0].json["messages"][-1]["content"] == "😀 \ufffd ä"


def test_without_time_nothing_is_sent(serve: Serve, provider: str) -> None:
    server = serve(lambda request: reply_of(provider, "YES"))
    with pytest.raises(ChatError, match="no time left"):
        ask(chat_of(provider, server), seconds=0)
    assert server.requests == []


# What differs


def test_the_way_of_openai(serve: Serve) -> None:
    server = serve(lambda request: openai_says("YES"))
    assert ask(chat_of("openai", server)).text == "YES"
    request = server.requests[0]
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "the rules"},
            {"role": "user", "content": "the question"},
        ],
        "max_tokens": 8,
        "temperature": 0,
    }


def test_the_way_of_anthropic(serve: Serve) -> None:
    server = serve(
        lambda request: anthropic_says({"type": "thinking", "thinking": "hm"}, text("NO"), text("."))
    )
    assert ask(chat_of("anthropic", server)).text == "NO."
    request = server.requests[0]
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers
    assert request.json == {
        "model": "m",
        "system": "the rules",
        "messages": [{"role": "user", "content": "the question"}],
        "max_tokens": 8,
    }


def test_the_models_of_openai_that_think_are_asked_as_they_want_it(serve: Serve) -> None:
    server = serve(lambda request: openai_says("YES"))
    environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.base}
    ask(choose_chat("openai:gpt-5-mini", environ))
    assert server.requests[0].json["max_completion_tokens"] == 8
    assert not {"max_tokens", "temperature"} & server.requests[0].json.keys()
    ask(choose_chat(f"{server.base}#gpt-5-oss", {}))
    assert server.requests[1].json["max_tokens"] == 8


def test_any_server_that_speaks_the_way_of_openai(serve: Serve) -> None:
    server = serve(lambda request: openai_says([text("Y"), text("ES")]))
    assert ask(choose_chat(f"{server.base}#qwen3:0.6b", {})).text == "YES"
    assert server.requests[0].json["model"] == "qwen3:0.6b"


@pytest.mark.parametrize("answer", [
    openai_says(None), openai_says(7), openai_says([7]), openai_says([text(None)]), Reply({"choices": []}),
    Reply({}), Reply([]), Reply("YES"), Reply({"error": "no"}),
])  # fmt: skip
def test_what_is_no_text_is_an_error(serve: Serve, answer: Reply) -> None:
    server = serve(lambda request: answer)
    with pytest.raises(ChatError, match="something other than text"):
        ask(chat_of("openai", server))


@pytest.mark.parametrize("answer", [Reply({"content": None}), Reply({"content": [7]}), Reply({})])
def test_what_is_no_text_is_an_error_for_anthropic_too(serve: Serve, answer: Reply) -> None:
    server = serve(lambda request: answer)
    with pytest.raises(ChatError, match="something other than text"):
        ask(chat_of("anthropic", server))


@pytest.mark.parametrize(
    "model", ["", "gpt-4o-mini", "openai:", "anthropic:", "http://host/v1", "gemini:x", "#m"]
)
def test_what_is_no_chat_model_is_refused_with_the_setting(model: str) -> None:
    with pytest.raises(ChatError, match=r"lifecycle\.model is .*Use openai:MODEL"):
        choose_chat(model, {"OPENAI_API_KEY": KEY}, "lifecycle.model")


@pytest.mark.parametrize("model", ["http://me:pw@host/v1#m", "http://host/v1?a=b#m", "http://ho st#m"])
def test_an_address_that_is_none_is_refused(model: str) -> None:
    with pytest.raises(ChatError, match="chat model"):
        choose_chat(model, {})


@pytest.mark.parametrize(
    ("model", "variable"), [("openai:m", "OPENAI_API_KEY"), ("anthropic:m", "ANTHROPIC_API_KEY")]
)
def test_a_missing_key_is_told_with_its_variable(model: str, variable: str) -> None:
    with pytest.raises(ChatError, match=variable):
        choose_chat(model, {variable: " "})


def test_a_model_that_cannot_be_had_says_why_when_it_is_asked() -> None:
    chat = UnavailableChat("openai:m", ChatError("OPENAI_API_KEY is not set"))
    assert chat.name == "openai:m"
    with pytest.raises(ChatError, match="OPENAI_API_KEY"):
        ask(chat)

"""Chat models over real sockets: what is sent, what is read, and what is never sent where."""

from __future__ import annotations

import pytest

from tacit.llm.chat import Chat, ChatError, UnavailableChat
from tacit.llm.registry import choose_chat
from tests.embeddings.conftest import Reply, Request, Serve, Server

KEY = "sk-very-secret-0123456789"


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


def openai(server: Server) -> Chat:
    return choose_chat("openai:m", {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.base})


def anthropic(server: Server) -> Chat:
    base = server.base.removesuffix("/v1")
    return choose_chat("anthropic:claude-x", {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": base})


def ask(chat: Chat, user: str = "the question") -> str:
    return chat.answer("the rules", user, max_tokens=8, seconds=5).text


def test_the_way_of_openai(serve: Serve) -> None:
    server = serve(lambda request: openai_says("YES"))
    assert ask(openai(server)) == "YES"
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
    assert ask(anthropic(server)) == "NO."
    request = server.requests[0]
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == KEY
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers
    assert request.json == {
        "model": "claude-x",
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
    assert ask(choose_chat(f"{server.base}#qwen3:0.6b", {})) == "YES"
    assert server.requests[0].json["model"] == "qwen3:0.6b"


def test_a_key_is_sent_only_where_it_is_meant_to_go(serve: Serve) -> None:
    server = serve(lambda request: openai_says("YES"))
    environ = {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, "TACIT_EMBEDDING_KEY": KEY}
    ask(choose_chat(f"{server.base}#m", environ))
    assert KEY not in str(server.requests[0].headers)
    ask(choose_chat(f"{server.base}#m", {**environ, "TACIT_CHAT_KEY": "mine"}))
    assert server.requests[1].headers["authorization"] == "Bearer mine"


def test_a_name_says_which_model_answers_and_holds_no_key(serve: Serve) -> None:
    server = serve(lambda request: openai_says("YES"))
    assert openai(server).name == "openai:m"
    assert anthropic(server).name == "anthropic:claude-x"
    assert choose_chat("http://localhost:11434/v1#a", {}).name == "http://localhost:11434/v1#a"


@pytest.mark.parametrize("answer", [
    openai_says(None), openai_says(7), openai_says([7]), openai_says([text(None)]), Reply({"choices": []}),
    Reply({}), Reply([]), Reply("YES"), Reply({"error": "no"}),
])  # fmt: skip
def test_what_is_no_text_is_an_error(serve: Serve, answer: Reply) -> None:
    server = serve(lambda request: answer)
    with pytest.raises(ChatError, match="something other than text"):
        ask(openai(server))


@pytest.mark.parametrize("answer", [Reply({"content": None}), Reply({"content": [7]}), Reply({})])
def test_what_is_no_text_is_an_error_for_anthropic_too(serve: Serve, answer: Reply) -> None:
    server = serve(lambda request: answer)
    with pytest.raises(ChatError, match="something other than text"):
        ask(anthropic(server))


def test_a_refusal_names_the_setting_and_not_the_key(serve: Serve) -> None:
    server = serve(lambda request: Reply({"error": {"message": f"bad key {KEY}"}}, 400))
    with pytest.raises(ChatError, match=r"status 400.*Correct watchers\.gate_model\.") as caught:
        ask(openai(server))
    assert KEY not in str(caught.value)


def test_a_server_that_says_nothing_is_given_up_in_time(serve: Serve) -> None:
    def wait(request: Request) -> Reply:
        server.stopped.wait(60)
        return openai_says("YES")

    server = serve(wait)
    with pytest.raises(ChatError, match="did not answer in time"):
        openai(server).answer("s", "u", max_tokens=8, seconds=0.1)


def test_without_time_nothing_is_sent(serve: Serve) -> None:
    server = serve(lambda request: openai_says("YES"))
    with pytest.raises(ChatError, match="no time left"):
        openai(server).answer("s", "u", max_tokens=8, seconds=0)
    assert server.requests == []


def test_halves_of_characters_are_not_sent(serve: Serve) -> None:
    server = serve(lambda request: openai_says("YES"))
    ask(openai(server), "\ud83d\ude00 \ud800 ä")
    assert server.requests[0].json["messages"][1]["content"] == "😀 \ufffd ä"


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

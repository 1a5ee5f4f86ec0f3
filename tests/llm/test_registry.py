"""From the config to a model that answers: which, whether it may, what is counted, what is never asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from tacit.app import ask_for, chat_for, gate_factory, ledger_of, load_config, search_parts, spending_report
from tacit.config import Config
from tacit.embeddings.protocol import EmbedderError
from tacit.home.layout import Home
from tacit.llm.chat import ChatError, NotAsked, OverLimit
from tacit.llm.ledger import FREE, Price
from tacit.llm.prices import BUILT_IN, find_price
from tacit.llm.recording import Recording
from tacit.llm.structured import BadAnswer
from tacit.llm.tasks import TASKS, find_model
from tacit.topics.model import Topic
from tests.embeddings.conftest import Reply, Request, Serve, Server
from tests.llm.test_chat import openai_says

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def config_of(home: Path, text: str) -> Config:
    (home / "memory-config.yaml").write_text(text)
    return load_config(Home(home)).config


def by(server: Server, home: Path, more: str = "") -> Config:
    return config_of(home, f"lifecycle: {{model: '{server.base}#m'}}\n{more}")


@pytest.mark.parametrize("task", TASKS)
def test_without_a_setting_nothing_is_ever_asked(home: Path, task: str) -> None:
    assert chat_for(config_of(home, ""), task, Home(home)) is None
    assert ask_for(config_of(home, ""), task, Home(home)) is None
    assert not (home / ".tacit" / "ledger").exists()


def test_every_task_has_its_setting_and_the_first_that_names_a_model_counts(home: Path) -> None:
    settings = {"lifecycle.model": "openai:a", "lifecycle.extract_model": "openai:b"}
    assert find_model("extract", settings) == ("lifecycle.extract_model", "openai:b")
    assert find_model("condense", settings) == ("lifecycle.model", "openai:a")
    assert find_model("prune", settings) == ("lifecycle.model", "openai:a")
    assert find_model("commit", settings) == ("", "")


def test_a_cloned_home_reaches_nothing(home: Path, serve: Serve) -> None:
    server = serve(lambda request: openai_says("hello"))
    (home / ".tacit" / "trusted").unlink()
    settings = (
        f"lifecycle: {{model: '{server.base}#m'}}\ngit: {{commit_message_model: '{server.base}#m'}}\n"
        f"watchers: {{gate_model: '{server.base}#m'}}\nopenclaw: {{soul_model: 'openai:m'}}\n"
    )
    config = config_of(home, settings)
    assert [task for task in TASKS if chat_for(config, task, Home(home)) is not None] == []
    assert server.requests == []


def test_identity_is_never_left_to_a_local_model(home: Path) -> None:
    config = config_of(home, "openclaw: {soul_model: 'http://127.0.0.1:1/v1#m'}\n")
    with pytest.raises(ChatError, match=r"openclaw\.soul_model .* name a hosted one"):
        chat_for(config, "identity", Home(home))


def test_a_call_is_counted_by_task_and_model(home: Path, serve: Serve) -> None:
    server = serve(lambda request: openai_says("hello"))
    config = by(server, home)
    chat = chat_for(config, "extract", Home(home))
    assert chat is not None
    assert chat.answer("s", "u", max_tokens=8, seconds=5).text == "hello"
    ((call,),) = ledger_of(config, Home(home)).days(1).values()
    assert (call.task, call.model, call.outcome) == ("extract", f"{server.base}#m", "ok")
    assert (call.tokens_in, call.tokens_out, call.usd) == (50, 1, 0.0)
    assert call.ms >= 0
    assert spending_report(config, Home(home)).today.calls == 1


def test_over_a_limit_nothing_is_sent_and_the_error_says_how_to_raise_it(home: Path, serve: Serve) -> None:
    server = serve(lambda request: openai_says("hello"))
    chat = chat_for(by(server, home, "models: {daily_calls: 1}\n"), "extract", Home(home))
    assert chat is not None
    chat.answer("s", "u", max_tokens=8, seconds=5)
    with pytest.raises(OverLimit, match=r"limit of 1 calls.*Raise models\.daily_calls"):
        chat.answer("s", "u", max_tokens=8, seconds=5)
    assert len(server.requests) == 1


def test_a_provider_that_is_down_is_left_alone_by_the_next_process_too(home: Path, serve: Serve) -> None:
    server = serve(lambda request: Reply({"error": "no"}, 401))
    config = by(server, home)
    for _ in range(3):
        chat = chat_for(config, "extract", Home(home))
        assert chat is not None
        with pytest.raises(ChatError, match="status 401"):
            chat.answer("s", "u", max_tokens=8, seconds=5)
    chat = chat_for(config, "condense", Home(home))
    assert chat is not None
    with pytest.raises(ChatError, match="is paused for"):
        chat.answer("s", "u", max_tokens=8, seconds=5)
    assert len(server.requests) == 3
    assert list(spending_report(config, Home(home)).left_alone) == [f"{server.base}#m"]


def test_items_that_are_bad_are_in_the_ledger(home: Path, serve: Serve) -> None:
    server = serve(lambda request: openai_says("no JSON at all"))
    config = by(server, home)
    ask = ask_for(config, "extract", Home(home))
    assert ask is not None
    with pytest.raises(BadAnswer):
        ask("extract", "Find facts.", "text", SCHEMA)
    today = ledger_of(config, Home(home)).today()
    assert (today.calls, today.bad) == (2, 2)


def test_a_model_that_only_gives_bad_answers_is_left_alone(home: Path, serve: Serve) -> None:
    server = serve(lambda request: openai_says("no JSON at all"))
    config = by(server, home)
    for _ in range(3):
        ask = ask_for(config, "extract", Home(home))
        assert ask is not None
        with pytest.raises(BadAnswer):
            ask("extract", "Find facts.", "text", SCHEMA)
    ask = ask_for(config, "extract", Home(home))
    assert ask is not None
    with pytest.raises(NotAsked, match="is paused for"):
        ask("extract", "Find facts.", "text", SCHEMA)
    assert len(server.requests) == 6
    assert list(spending_report(config, Home(home)).left_alone) == [f"{server.base}#m (extract)"]


def test_good_answers_in_between_leave_no_model_alone(home: Path, serve: Serve) -> None:
    says = iter(["bad", "bad", "bad", "bad", '{"items": []}', "bad", "bad", "bad", "bad", '{"items": []}'])
    server = serve(lambda request: openai_says(next(says)))
    ask = ask_for(by(server, home), "extract", Home(home))
    assert ask is not None
    for _ in range(2):
        for _ in range(2):
            with pytest.raises(BadAnswer):
                ask("extract", "Find facts.", "text", SCHEMA)
        assert ask("extract", "Find facts.", "text", SCHEMA) == []


def test_a_run_that_was_recorded_is_played_back_without_a_server(
    home: Path, serve: Serve, tmp_path: Path
) -> None:
    server = serve(lambda request: openai_says('{"items": [{"text": "a"}]}'))
    config, path = by(server, home), tmp_path / "calls.jsonl"
    for mode, requests in (("record", 1), ("both", 1), ("replay", 1)):
        ask = ask_for(config, "extract", Home(home), Recording(path, mode))  # type: ignore[arg-type]
        assert ask is not None
        assert ask("extract", "Find facts.", "text", SCHEMA) == [{"text": "a"}]
        assert len(server.requests) == requests
    assert ledger_of(config, Home(home)).today().calls == 1


# Turns


def gate_says(home: Path, config: Config) -> tuple[bool, str]:
    gate = gate_factory(Home(home), config, search_parts(config, Home(home)))()
    topic = Topic("mail", "topics/mail.md", "Mail", "Sorting the inbox", "")
    gated = gate.should_activate("Anything in my inbox?", topic, score=0.3, matched=True)
    return gated.yes, gated.reason


def test_the_gate_is_counted_and_asked_once(home: Path, serve: Serve) -> None:
    server = serve(lambda request: openai_says("YES"))
    config = config_of(home, f"watchers: {{gate_model: '{server.base}#m'}}\n")
    assert gate_says(home, config)[0]
    ((call,),) = ledger_of(config, Home(home)).days(1).values()
    assert (call.task, call.outcome) == ("gate", "ok")


def test_a_gate_that_fails_is_a_no_at_once(home: Path, serve: Serve) -> None:
    server = serve(lambda request: Reply(b"", 500))
    config = config_of(home, f"watchers: {{gate_model: '{server.base}#m'}}\n")
    assert not gate_says(home, config)[0]
    assert len(server.requests) == 1


def test_without_a_ledger_a_turn_goes_on_without_its_model_and_a_run_stops(home: Path, serve: Serve) -> None:
    server = serve(lambda request: openai_says("YES"))
    (home / ".tacit" / "ledger").write_text("a file in its place")
    model = f"{server.base}#m"
    config = config_of(home, f"watchers: {{gate_model: '{model}'}}\nlifecycle: {{model: '{model}'}}\n")
    yes, why = gate_says(home, config)
    assert (yes, "ledger of model calls cannot be written" in why) == (False, True)
    chat = chat_for(config, "extract", Home(home))
    assert chat is not None
    with pytest.raises(OverLimit, match="ledger"):
        chat.answer("s", "u", max_tokens=8, seconds=5)
    assert server.requests == []


def test_a_gate_over_the_limit_is_a_no_that_says_so(home: Path, serve: Serve) -> None:
    server = serve(lambda request: openai_says("YES"))
    config = config_of(home, f"watchers: {{gate_model: '{server.base}#m'}}\nmodels: {{daily_calls: 0}}\n")
    yes, why = gate_says(home, config)
    assert not yes
    assert "models.daily_calls" in why
    assert server.requests == []


def test_a_gate_by_a_model_that_cannot_be_had_is_a_no_that_says_so(home: Path) -> None:
    yes, why = gate_says(home, config_of(home, "watchers: {gate_model: 'openai:m'}\n"))
    assert (yes, "OPENAI_API_KEY" in why) == (False, True)
    yes, why = gate_says(home, config_of(home, "watchers: {gate_model: 'local:smollm2'}\n"))
    assert (yes, "too small to judge" in why) == (False, True)


# Embeddings


def vectors(request: Request) -> Reply:
    data = [{"index": at, "embedding": [1.0, 0.5]} for at, _ in enumerate(request.json["input"])]
    return Reply({"data": data})


def test_embeddings_are_counted_and_kept_under_the_limits(home: Path, serve: Serve) -> None:
    server = serve(vectors)
    search = f"search: {{embedding_model: '{server.base}#e', embedding_dimensions: 2}}\n"
    config = config_of(home, search + "models: {daily_calls: 2}\n")
    embedder = search_parts(config, Home(home)).embedder()
    assert embedder is not None
    embedder.documents([f"text {number}" for number in range(65)])  # two batches
    with pytest.raises(EmbedderError, match=r"models\.daily_calls"):
        embedder.query("more")
    calls = next(iter(ledger_of(config, Home(home)).days(1).values()))
    assert [call.outcome for call in calls] == ["ok", "ok", "refused"]
    assert {call.task for call in calls} == {"embed"}
    assert calls[0].tokens_in > 64
    assert len(server.requests) == 2


def test_every_attempt_of_an_embedding_is_counted_and_kept_under_the_limits(home: Path, serve: Serve) -> None:
    server = serve(lambda request: Reply(b"", 503, (("Retry-After", "0"),)))
    search = f"search: {{embedding_model: '{server.base}#e', embedding_dimensions: 2}}\n"
    config = config_of(home, search + "models: {daily_calls: 3}\n")
    embedder = search_parts(config, Home(home)).embedder()
    assert embedder is not None
    with pytest.raises(EmbedderError, match=r"models\.daily_calls"):
        embedder.documents(["a text"])
    today = ledger_of(config, Home(home)).today()
    assert (len(server.requests), today.calls, today.failed, today.tokens) == (3, 3, 3, 0)


def test_an_embedding_that_breaks_off_may_be_on_the_bill(home: Path, serve: Serve) -> None:
    def hang_up(request: Request) -> Reply:
        raise OSError

    server = serve(hang_up)
    search = f"search: {{embedding_model: '{server.base}#e', embedding_dimensions: 2}}\n"
    config = config_of(home, search + "models: {daily_calls: 1}\n")
    embedder = search_parts(config, Home(home)).embedder()
    assert embedder is not None
    with pytest.raises(EmbedderError):
        embedder.documents(["a text"])
    assert ledger_of(config, Home(home)).today().tokens == 2


# Prices


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("anthropic:claude-haiku-4-5", Price(1, 5)),
        ("anthropic:claude-haiku-4-5-20251001", Price(1, 5)),
        ("openai:gpt-5", Price(1.25, 10)),
        ("openai:gpt-5-2025-08-07", Price(1.25, 10)),
        ("openai:gpt-5-pro", None),
        ("openai:gpt-5.9", None),
        ("openai:text-embedding-3-small", Price(0.02, 0)),
        ("gemini:gemini-embedding-001", Price(0.15, 0)),
        ("gemini:another", None),
        ("https://generativelanguage.googleapis.com/v1beta/openai#gemini-2.5-flash", Price(0.3, 2.5)),
        ("https://models.example.com/v1#whatever", None),
        ("http://127.0.0.1:11434/v1#qwen3:8b", FREE),
        ("local:smollm2", FREE),
        ("local:/models/big.gguf", FREE),
    ],
)
def test_a_price_is_known_or_it_is_not(model: str, price: Price | None) -> None:
    assert find_price(model, {}) == price


def test_what_the_user_says_about_prices_wins_and_the_longest_name_wins_there() -> None:
    own = ("openai: 9 9", "openai:gpt-5 2 20", "http://127.0.0.1 0.1 0.1")
    assert find_price("openai:gpt-5-pro", {}, own) == Price(2, 20)
    assert find_price("openai:other", {}, own) == Price(9, 9)
    assert find_price("http://127.0.0.1:1/v1#m", {}, own) == Price(0.1, 0.1)
    assert find_price("anthropic:claude-haiku-4-5", {}, own) == BUILT_IN["anthropic:claude-haiku-4-5"]


def test_openai_s_names_at_an_address_of_this_machine_cost_nothing() -> None:
    assert find_price("openai:gpt-5", {"OPENAI_BASE_URL": "http://localhost:11434/v1"}) == FREE

"""Which models are local, and what they may not be asked."""

from __future__ import annotations

import pytest

from tacit.llm.chat import ChatError
from tacit.llm.tasks import determine_tier, require_tier


@pytest.mark.parametrize(
    ("model", "environ", "tier"),
    [
        ("anthropic:claude-sonnet-4-5", {}, "cloud"),
        ("openai:gpt-5", {}, "cloud"),
        ("openai:qwen", {"OPENAI_BASE_URL": "http://localhost:11434/v1"}, "local"),
        ("http://127.0.0.1:11434/v1#qwen3.5:35b", {}, "local"),
        ("http://[::1]:8080/v1#m", {}, "local"),
        ("http://192.168.1.9:8080/v1#m", {}, "local"),
        ("http://desk.local:8080/v1#m", {}, "local"),
        ("http://desk:8080/v1#m", {}, "local"),
        ("https://models.example.com/v1#m", {}, "cloud"),
        ("local:/models/qwen.gguf", {}, "local"),
        ("local:smollm2", {}, "small"),
    ],
)
def test_a_model_is_local_where_its_server_is_near(model: str, environ: dict[str, str], tier: str) -> None:
    assert determine_tier(model, environ) == tier


def test_a_local_model_is_never_asked_who_an_agent_is() -> None:
    with pytest.raises(ChatError, match=r"openclaw\.soul_model .* name a hosted one"):
        require_tier("http://127.0.0.1:1/v1#qwen3.5:35b", {}, "openclaw.soul_model", "cloud")
    require_tier("http://127.0.0.1:1/v1#qwen3.5:35b", {}, "openclaw.wisdom_model", "local")
    require_tier("anthropic:m", {}, "openclaw.soul_model", "cloud")


def test_the_small_model_of_a_package_is_asked_nothing_that_takes_judgment() -> None:
    with pytest.raises(ChatError, match=r"watchers\.gate_model .* too small to judge"):
        require_tier("local:smollm2", {}, "watchers.gate_model", "local")
    require_tier("local:smollm2", {}, "git.commit_message_model", "small")
    require_tier("local:/models/qwen.gguf", {}, "watchers.gate_model", "local")

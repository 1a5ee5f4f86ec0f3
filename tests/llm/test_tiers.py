"""Which models are local, and what they may not be asked."""

from __future__ import annotations

import pytest

from tacit.llm.chat import ChatError
from tacit.llm.tiers import choose_for, tier_of

KEYS = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}


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
    ],
)
def test_a_model_is_local_where_its_server_is_near(model: str, environ: dict[str, str], tier: str) -> None:
    assert tier_of(model, environ) == tier


def test_a_local_model_is_never_asked_who_an_agent_is() -> None:
    with pytest.raises(ChatError, match=r"openclaw\.soul_model .* name a hosted one"):
        choose_for("http://127.0.0.1:1/v1#qwen3.5:35b", {}, "openclaw.soul_model", "cloud")
    assert choose_for("http://127.0.0.1:1/v1#qwen3.5:35b", {}, "openclaw.wisdom_model", "local").name
    assert choose_for("anthropic:m", KEYS, "openclaw.soul_model", "cloud").name == "anthropic:m"

"""The section `openclaw` of the config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.config import Config


def _rule(kind: str, about: str, **limits: Any) -> Mapping[str, Mapping[str, Any]]:
    return {"rule": {"kind": kind, "about": about, **limits}}


@dataclass(frozen=True, slots=True)
class OpenClawSettings:
    soul_approvers: tuple[str, ...] = field(
        default=(),
        metadata=_rule(
            "name",
            "Your names, as you give them to --by: who may approve drafts of SOUL.md and of everything else.",
            many=True,
        ),
    )
    wisdom_approvers: tuple[str, ...] = field(
        default=(), metadata=_rule("name", "Who may also approve the wisdom section.", many=True)
    )
    tools_approvers: tuple[str, ...] = field(
        default=(), metadata=_rule("name", "Who may also approve TOOLS_COMPACT.md.", many=True)
    )
    soul_max_tokens: int = field(
        default=250,
        metadata=_rule(
            "whole",
            "Maximum tokens of SOUL.md, which every session loads; above four fifths there is a warning.",
            low=100,
            high=100_000,
        ),
    )
    hold_hours: int = field(
        default=48,
        metadata=_rule(
            "whole",
            "Hours that a phase of a migration is watched before the next begins; 0 does not wait.",
            low=0,
            high=8760,
        ),
    )
    memory_prompts: tuple[str, ...] = field(
        default=(),
        metadata=_rule(
            "name", "Questions of yours that MEMORY.md answers, for AC-3 of `phase check`.", many=True
        ),
    )
    topic_prompts: tuple[str, ...] = field(
        default=(),
        metadata=_rule(
            "name", "Requests in a topic that need files that are not loaded there, for AC-9.", many=True
        ),
    )
    wisdom_model: str | None = field(
        default=None,
        metadata=_rule(
            "model",
            "Model that words the wisdom section; null takes sentences from the lessons and calls no model.",
            nullable=True,
            reaches=True,
            example=("wisdom_model: http://127.0.0.1:11434/v1#qwen3.5:35b",),
        ),
    )
    soul_model: str | None = field(
        default=None,
        metadata=_rule(
            "model",
            "Model that shortens SOUL.md, never one on this machine; null leaves sentences out instead.",
            nullable=True,
            reaches=True,
        ),
    )


SETTINGS = OpenClawSettings()


def settings_of(config: Config) -> OpenClawSettings:
    settings: OpenClawSettings = config.openclaw  # type: ignore[attr-defined]  # added from HOST.settings
    return settings

"""OpenClaw as a host: a plugin forwards what its hooks receive, and agents keep their files in workspaces."""

from __future__ import annotations

from tacit.hosts.base import Command, Host, ModelTask, Snippet

HOST = Host(
    "openclaw",
    workspace="~/.openclaw/workspace",
    settings="config",
    model_tasks=(
        ModelTask("wisdom", "openclaw.wisdom_model", "local", "the wisdom section"),
        # An agent's identity takes better judgment than a local model has.
        ModelTask("identity", "openclaw.soul_model", "cloud", "a shorter SOUL.md"),
    ),
    commands=(
        Command(
            "openclaw",
            "commands",
            "install, check, measure and remove tacit in OpenClaw; propose shorter files",
            after="gate",
        ),
        Command(
            "wisdom",
            "commands.wisdom",
            "turn lessons into the wisdom section of SOUL.md: draft, check, approve, promote",
            after="adopt-branch",
        ),
    ),
    snippets=(
        Snippet(
            "openclaw",
            "OpenClaw without the plugin",
            "AGENTS.md of the agent's workspace",
            is_shared=True,
            by_session_type=True,
        ),
    ),
)

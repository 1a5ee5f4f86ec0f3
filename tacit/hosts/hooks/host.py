"""Claude Code, Codex and similar programs: no part of tacit runs inside them, and their hooks call the
relay."""

from __future__ import annotations

from tacit.hosts.base import Host, Snippet

HOST = Host(
    "hooks",
    snippets=(
        Snippet(
            "claude-code",
            "Claude Code",
            "CLAUDE.md of a project, or ~/.claude/CLAUDE.md for all of them",
            is_shared=False,
        ),
        Snippet(
            "codex", "Codex", "AGENTS.md of a project, or ~/.codex/AGENTS.md for all of them", is_shared=False
        ),
    ),
)

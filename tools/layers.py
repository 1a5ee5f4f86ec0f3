"""The layers of the package, from bottom to top. A package imports only from packages that come before it.

A module that stands lower than the rest of its package is listed by itself.
"""

from __future__ import annotations

LAYERS = {
    "values and pure functions": (
        *("version", "errors", "diagnostics", "deadline", "clock", "hosts.base"),
        *("text", "config", "markdown", "review.model"),
        *("circuit_breaker", "json_http", "privacy"),
    ),
    "files, git, models, search": (
        *("daemon_socket", "home", "git", "llm", "embeddings", "sample", "skills"),
        *("transcripts", "workspaces", "search", "sessions"),
    ),
    "features": (
        *("topics", "review", "learn", "context", "condense", "rebuild", "erase", "provenance"),
        *("health", "terminal"),
    ),
    "one home": (
        *("maintenance", "services", "memory", "app", "evaluation", "hosts"),
        *("wire", "operations", "client", "relay", "aio"),
    ),
    "programs": ("server", "cli", "__main__", ""),
}
ORDER = tuple(name for names in LAYERS.values() for name in names)

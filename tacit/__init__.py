"""tacit: memory and context for AI agents, kept in files you own.

    import tacit

    memory = tacit.open("~/agent")
    with memory.session(channel="chat", model="some-model") as session:
        session.message("user", "What did we decide about the kiln?")
        session.message("agent", "To fire at 1,220 °C from Monday.")
    print(memory.turn("How hot do we fire?").text)

Names are loaded when they are first used, so that starting a command stays cheap.
"""

from __future__ import annotations

from tacit.version import VERSION as __version__

TYPE_CHECKING = False  # as in typing, which would cost every command several milliseconds
if TYPE_CHECKING:
    import os
    from typing import Any

    from tacit.config import Config
    from tacit.context.model import Compiled, Receipt, Section
    from tacit.diagnostics import Problem
    from tacit.errors import (
        Busy,
        ChangedOnDisk,
        ConfigError,
        DiskError,
        GitError,
        HomeError,
        SessionError,
        StoreError,
        TacitError,
        UnsafePath,
        UsageError,
    )
    from tacit.markdown.notes import Note
    from tacit.memory import Memory
    from tacit.search.model import Found, Hit, Scope, Why
    from tacit.topics.model import Event
    from tacit.transcripts.capture import Session
    from tacit.transcripts.model import (
        Attachment,
        KnowledgeChange,
        Message,
        Sealed,
        ToolCall,
        Transcript,
        Turn,
    )

_WHERE = {
    "Session": "tacit.transcripts.capture",
    "Config": "tacit.config",
    "Memory": "tacit.memory",
    "Note": "tacit.markdown.notes",
    "Problem": "tacit.diagnostics",
    "Event": "tacit.topics.model",
    **dict.fromkeys(("Compiled", "Receipt", "Section"), "tacit.context.model"),
    **dict.fromkeys(("Found", "Hit", "Scope", "Why"), "tacit.search.model"),
    **dict.fromkeys(
        ("Attachment", "KnowledgeChange", "Message", "Sealed", "ToolCall", "Transcript", "Turn"),
        "tacit.transcripts.model",
    ),
    **dict.fromkeys(
        (
            "Busy",
            "ChangedOnDisk",
            "ConfigError",
            "DiskError",
            "GitError",
            "HomeError",
            "SessionError",
            "StoreError",
            "TacitError",
            "UnsafePath",
            "UsageError",
        ),
        "tacit.errors",
    ),
}

__all__ = [
    "Attachment",
    "Busy",
    "ChangedOnDisk",
    "Compiled",
    "Config",
    "ConfigError",
    "DiskError",
    "Event",
    "Found",
    "GitError",
    "Hit",
    "HomeError",
    "KnowledgeChange",
    "Memory",
    "Message",
    "Note",
    "Problem",
    "Receipt",
    "Scope",
    "Sealed",
    "Section",
    "Session",
    "SessionError",
    "StoreError",
    "TacitError",
    "ToolCall",
    "Transcript",
    "Turn",
    "UnsafePath",
    "UsageError",
    "Why",
    "__version__",
    "init",
    "open",
]


def open(home: str | os.PathLike[str] | None = None) -> Memory:  # noqa: A001
    """Open a home: the one given, else $TACIT_HOME, else ~/tacit."""
    from tacit.app import open_home

    return open_home(home)


def init(home: str | os.PathLike[str] | None = None, *, adopt: bool = False) -> Memory:
    """Make a home, or complete one, and open it."""
    from tacit.app import init_home

    return init_home(home, adopt=adopt)[0]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        from importlib import import_module

        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")

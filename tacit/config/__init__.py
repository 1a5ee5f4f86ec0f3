"""memory-config.yaml: one frozen Config.

A value is the default in keys.py unless the file says otherwise; there is no third place. Whoever owns
the outside reads the file and the environment and hands both to `parse`. A wrong file gives a
ConfigError and no Config at all, so nothing ever runs on half of what someone wrote.
"""

from tacit.config.keys import (
    Audience,
    Capture,
    Config,
    ContextCompiler,
    Files,
    Git,
    Inject,
    Lifecycle,
    Override,
    Policy,
    Review,
    Search,
    SessionRule,
    Sessions,
    Value,
    Watchers,
    Workspace,
)
from tacit.config.load import Loaded, parse
from tacit.config.show import Row, describe, starter, without_secret
from tacit.config.values import show

__all__ = [
    "Audience",
    "Capture",
    "Config",
    "ContextCompiler",
    "Files",
    "Git",
    "Inject",
    "Lifecycle",
    "Loaded",
    "Override",
    "Policy",
    "Review",
    "Row",
    "Search",
    "SessionRule",
    "Sessions",
    "Value",
    "Watchers",
    "Workspace",
    "describe",
    "parse",
    "show",
    "starter",
    "without_secret",
]

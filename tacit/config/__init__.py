"""memory-config.yaml, parsed to one frozen `Config`.

A value is the default in `schema.py` unless the file sets it; there is no third place. The caller reads the
file and the environment and passes both to `parse`. An invalid file gives a ConfigError and no Config at
all, so nothing ever runs on half of a file. A new key is one field in `schema.py`: its type, default,
limits and help text stand together there, and the help, the starter file and the checks are made from them.
"""

from tacit.config.conversion import show
from tacit.config.help import ConfigRow, describe, mask_secret, render_starter
from tacit.config.loader import LoadedConfig, parse
from tacit.config.schema import (
    Audience,
    CaptureSettings,
    Config,
    ContextCompilerSettings,
    Files,
    GitSettings,
    InjectSettings,
    LifecycleSettings,
    Override,
    Policy,
    ReviewSettings,
    SearchSettings,
    SessionRule,
    SessionSettings,
    Value,
    WatcherSettings,
    Workspace,
)

__all__ = [
    "Audience",
    "CaptureSettings",
    "Config",
    "ConfigRow",
    "ContextCompilerSettings",
    "Files",
    "GitSettings",
    "InjectSettings",
    "LifecycleSettings",
    "LoadedConfig",
    "Override",
    "Policy",
    "ReviewSettings",
    "SearchSettings",
    "SessionRule",
    "SessionSettings",
    "Value",
    "WatcherSettings",
    "Workspace",
    "describe",
    "mask_secret",
    "parse",
    "render_starter",
    "show",
]

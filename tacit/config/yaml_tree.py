"""Reads the YAML of memory-config.yaml.

What the file does not need is refused by name: aliases (a few lines can expand to gigabytes), tags, deep
nesting, more than one document.
"""

from __future__ import annotations

from tacit.errors import ConfigError
from tacit.text.yaml_reader import Node, YamlError, read_tree

MAX_CHARS = 64 * 1024  # the parser manages about 100 KB a second, and a stranger may have written it
MAX_DEPTH = 8  # the deepest key needs five

_ANCHOR = ("anchors and aliases ('&name', '*name') are not allowed.",
           "Write the value out, or quote it if it is text.")  # fmt: skip
_TAG = ("tags ('!name') are not allowed.", "Write the plain value, or quote it if it is text.")
_SYNTAX_HINT = "Indent with spaces, and quote text that holds ': ', ' #', '{' or '['."


def read_config_tree(text: str, where: str) -> Node | None:
    """The tree, or None if the text has only comments."""
    if len(text) > MAX_CHARS:
        raise ConfigError(where, None, f"the file is longer than {MAX_CHARS} characters.", "Shorten it.")
    try:
        return read_tree(text, MAX_DEPTH, strict=True)
    except YamlError as error:
        raise ConfigError(where, error.line, *_describe_error(error)) from None


def _describe_error(error: YamlError) -> tuple[str, str]:
    if error.kind == "escape":
        return "this is not valid YAML.", "Look for an escape like '\\U'."
    return {
        "alias": _ANCHOR,
        "tag": _TAG,
        "depth": (f"nesting is deeper than {MAX_DEPTH} levels.", "No key is that deep."),
        "character": (f"{error.detail} is not allowed.".removeprefix("the "), "Remove it."),
        "documents": ("this is not valid YAML: but found another document.", _SYNTAX_HINT),
    }.get(error.kind) or (f"this is not valid YAML: {error.detail}.", _SYNTAX_HINT)
